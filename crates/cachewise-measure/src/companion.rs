//! A bystander on another core: it goes through its working set all the time, and how many loads it
//! has done can be read at any time.

use crate::cores;
use crate::lines::Lines;
use crate::map::Walk;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

pub(crate) struct Companion {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    walks: AtomicBool,
    ends: AtomicBool,
    loads: AtomicU64,
}

/// Few enough that the count is never far behind.
const LOADS_AT_ONCE: usize = 256;

impl Companion {
    pub(crate) fn new(lines: Lines, walk: Walk, cpu: usize) -> Self {
        let shared = Arc::new(Shared::default());
        let its = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            cores::stay_on(cpu);
            its.go_through(lines, walk);
        });
        Self { shared, thread: Some(thread) }
    }

    pub(crate) fn walk(&self, yes: bool) {
        self.shared.walks.store(yes, Relaxed);
        if let (true, Some(thread)) = (yes, &self.thread) {
            thread.thread().unpark();
        }
    }

    /// Until it runs: others may have had its core.
    pub(crate) fn wait(&self) {
        let before = self.loads();
        while self.loads() == before {
            thread::yield_now();
        }
    }

    /// Loads done so far.
    pub(crate) fn loads(&self) -> u64 {
        self.shared.loads.load(Relaxed)
    }
}

impl Shared {
    fn go_through(&self, mut lines: Lines, walk: Walk) {
        while !self.ends.load(Relaxed) {
            if !self.walks.load(Relaxed) {
                thread::park();
                continue;
            }
            match walk {
                Walk::Dependent => lines.dependent(LOADS_AT_ONCE),
                Walk::Independent => lines.independent(LOADS_AT_ONCE),
            }
            self.loads.fetch_add(LOADS_AT_ONCE as u64, Relaxed);
        }
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        self.shared.ends.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It only loads; if it panicked, its figures were wrong and nothing else.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_walks_when_told_and_ends_when_dropped() {
        for walk in [Walk::Dependent, Walk::Independent] {
            let companion = Companion::new(Lines::new(1 << 20, 64).unwrap(), walk, 0);
            assert_eq!(companion.loads(), 0);
            companion.walk(true);
            companion.wait();
            // In small steps, however large the working set is.
            let loads = companion.loads();
            assert!(loads > 0 && loads.is_multiple_of(LOADS_AT_ONCE as u64));
            companion.walk(false);
        }
    }
}
