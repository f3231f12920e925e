//! A working set: gone through line by line, by loads that wait for each other or by loads that
//! don't.
//!
//! In the first word of each line stands where the next one is, one cycle through all in random
//! order: nothing to prefetch. In address order the same lines are loaded independently of each
//! other.

use crate::Error;
use crate::memory::Mapping;
use crate::rng::Rng;
use std::hint::black_box;

pub(crate) struct Lines {
    memory: Mapping,
    count: usize,
    line_bytes: usize,
    at: usize,
}

impl Lines {
    /// At least one line.
    pub(crate) fn new(range_bytes: usize, line_bytes: usize) -> Result<Self, Error> {
        let count = (range_bytes / line_bytes).max(1);
        let mut memory = Mapping::new(count * line_bytes)?;
        let (words, _) = memory.bytes_mut().as_chunks_mut::<8>();
        let words_per_line = line_bytes / 8;
        let mut order: Vec<u32> = (0..count as u32).collect();
        Rng::new(count as u64).shuffle(&mut order);
        let next = order.iter().skip(1).chain(order.first());
        for (&from, &to) in order.iter().zip(next) {
            words[from as usize * words_per_line] =
                (u64::from(to) * words_per_line as u64).to_ne_bytes();
        }
        Ok(Self { memory, count, line_bytes, at: 0 })
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// So many loads, each waiting for the one before; goes on where it ended.
    #[inline(never)]
    pub(crate) fn dependent(&mut self, loads: usize) {
        let words = self.memory.bytes().as_chunks::<8>().0;
        let mut at = self.at;
        for _ in 0..loads {
            at = u64::from_ne_bytes(words[at]) as usize;
        }
        self.at = black_box(at);
    }

    /// A load from every line, in address order.
    #[inline(never)]
    pub(crate) fn independent(&self) {
        let words = self.memory.bytes().as_chunks::<8>().0;
        let each = words.iter().step_by(self.line_bytes / 8);
        black_box(each.fold(0, |all, word| all ^ u64::from_ne_bytes(*word)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_visits_every_line_once() {
        let mut lines = Lines::new(100 * 64 + 5, 64).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..lines.count() {
            lines.dependent(1);
            assert!(lines.at.is_multiple_of(8) && seen.insert(lines.at));
        }
        assert_eq!((lines.at, seen.len()), (0, 100));
        assert_eq!(Lines::new(1, 64).unwrap().count(), 1);
    }
}
