//! Rounds: everyone who takes part gives one sample per round, in shuffled order. With several
//! threads all do the same at the same time, from a barrier on, and the slowest counts.

use crate::rng::Rng;
use crate::{Error, Stop};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// What one thread measures with, by entrants' numbers. A sample is `N` figures.
pub(crate) trait Bench<const N: usize>: Send {
    /// Which figure is the time by which a thread is slow.
    const TIME: usize;

    /// Called by the thread that is going to measure, the first thread being 0.
    fn enter(&mut self, _thread: usize) {}

    /// Brings the caches into the state in which this entrant leaves them.
    fn lead_in(&mut self, entrant: usize);

    fn sample(&mut self, entrant: usize) -> [f64; N];
}

/// One batch.
pub(crate) struct Rounds<'a> {
    pub(crate) entrants: usize,
    /// By round the order of the entrants that take part.
    pub(crate) schedule: Vec<Vec<usize>>,
    /// So many rounds are done whatever the time.
    pub(crate) rounds_min: usize,
    pub(crate) until: Instant,
    pub(crate) stop: &'a Stop,
}

/// By entrant the samples by round, or stopped.
pub(crate) type Taken<const N: usize> = Result<Vec<Vec<[f64; N]>>, Error>;

/// By round all of the field, shuffled.
pub(crate) fn schedule(field: &[usize], rounds: usize, rng: &mut Rng) -> Vec<Vec<usize>> {
    let order = |_| {
        let mut order = field.to_vec();
        rng.shuffle(&mut order);
        order
    };
    (0..rounds).map(order).collect()
}

impl Rounds<'_> {
    /// One bench per thread.
    pub(crate) fn run<const N: usize, B: Bench<N>>(&self, benches: &mut [B]) -> Taken<N> {
        let barrier = Barrier::new(benches.len());
        let go_on = AtomicBool::new(true);
        let by_thread: Result<Vec<_>, Error> = thread::scope(|scope| {
            let (barrier, go_on) = (&barrier, &go_on);
            let worker =
                |(index, bench)| scope.spawn(move || self.work(bench, index, barrier, go_on));
            let workers: Vec<_> = benches.iter_mut().enumerate().map(worker).collect();
            workers.into_iter().map(|w| w.join().unwrap_or(Err(Error::Thread))).collect()
        });
        by_thread?.into_iter().reduce(|a, b| slowest(B::TIME, a, b)).ok_or(Error::Thread)
    }

    fn work<const N: usize>(
        &self,
        bench: &mut impl Bench<N>,
        thread: usize,
        barrier: &Barrier,
        go_on: &AtomicBool,
    ) -> Taken<N> {
        bench.enter(thread);
        let mut samples = vec![Vec::new(); self.entrants];
        for (round, order) in self.schedule.iter().enumerate() {
            for (turn, &entrant) in order.iter().enumerate() {
                if thread == 0 {
                    let enough = round >= self.rounds_min.max(1) && turn == 0;
                    let late = enough && Instant::now() > self.until;
                    go_on.store(!late && !self.stop.load(Ordering::Relaxed), Ordering::Relaxed);
                }
                // All have read the leader's word before the second wait, and it speaks again only
                // after that: either all go on or none.
                barrier.wait();
                if !go_on.load(Ordering::Relaxed) {
                    let stopped = self.stop.load(Ordering::Relaxed);
                    return if stopped { Err(Error::Stopped) } else { Ok(samples) };
                }
                bench.lead_in(entrant);
                barrier.wait();
                samples[entrant].push(bench.sample(entrant));
            }
        }
        Ok(samples)
    }
}

/// By entrant and round all figures of the thread that took longest: they belong together.
fn slowest<const N: usize>(
    time: usize,
    mut all: Vec<Vec<[f64; N]>>,
    other: Vec<Vec<[f64; N]>>,
) -> Vec<Vec<[f64; N]>> {
    let samples = all.iter_mut().zip(other).flat_map(|(ours, theirs)| ours.iter_mut().zip(theirs));
    for (ours, theirs) in samples.filter(|(ours, theirs)| theirs[time] > ours[time]) {
        *ours = theirs;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_threads_figures_stay_together() {
        let ours = vec![vec![[9.0, 1.0], [9.0, 5.0]]];
        let theirs = vec![vec![[1.0, 2.0], [1.0, 4.0]]];
        assert_eq!(slowest(1, ours, theirs), [[[1.0, 2.0], [9.0, 5.0]]]);
    }
}
