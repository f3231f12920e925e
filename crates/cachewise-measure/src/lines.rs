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
    /// The word that the chain is at.
    at: usize,
    /// The line that the walk in address order is at.
    place: usize,
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
        Ok(Self { memory, count, line_bytes, at: 0, place: 0 })
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

    /// So many loads, each from the next line in address order and none waiting for another; goes on
    /// where it ended, and from the start after the last line.
    #[inline(never)]
    pub(crate) fn independent(&mut self, loads: usize) {
        let words_per_line = self.line_bytes / 8;
        let words = self.memory.bytes().as_chunks::<8>().0;
        let mut left = loads;
        while left > 0 {
            let here = left.min(self.count - self.place);
            let piece = &words[self.place * words_per_line..][..here * words_per_line];
            let each = piece.iter().step_by(words_per_line);
            black_box(each.fold(0, |all, word| all ^ u64::from_ne_bytes(*word)));
            self.place = (self.place + here) % self.count;
            left -= here;
        }
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

    #[test]
    fn a_walk_in_address_order_goes_on_where_it_was_and_begins_again() {
        let mut lines = Lines::new(10 * 64, 64).unwrap();
        for (loads, place) in [(4, 4), (6, 0), (25, 5), (0, 5), (10, 5)] {
            lines.independent(loads);
            assert_eq!(lines.place, place);
        }
    }
}
