//! The memory one thread works in during one batch of a case: ranges cut into pieces, and the
//! order in which the pieces are taken.
#![allow(unsafe_code, reason = "hands pieces of its memory to raw routines")]

use crate::case::{Case, Page, Pattern, Temperature};
use crate::clock;
use crate::contestant::{Contestant, Routine};
use crate::memory::Mapping;
use crate::rng::{Rng, mix};
use crate::{Error, Machine};
use cachewise::variant::Operation;
use std::hint::black_box;
use std::iter;
use std::time::Duration;

pub(crate) struct Arena {
    case: Case,
    dst: Side,
    src: Option<Side>,
    /// Piece numbers. As many fit in a `u32` as any memory holds lines of.
    order: Vec<u32>,
    next: usize,
    lead_in_bytes: usize,
    margin_bytes: usize,
}

/// What the pieces lie in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ground {
    /// All sides together.
    pub(crate) footprint_bytes: usize,
    /// Hot: all pieces have the same source.
    pub(crate) source: Temperature,
    pub(crate) page: Page,
}

impl Ground {
    /// Over how many ranges the pieces are spread: a hot source is one piece.
    pub(crate) fn sides(&self, case: &Case) -> usize {
        if self.source == Temperature::Hot { 1 } else { case.sides() }
    }
}

/// One mapping. Pieces begin `first` bytes into it, `stride` bytes apart; there is always at least
/// a page before the first and behind the last.
struct Side {
    memory: Mapping,
    first: usize,
    stride: usize,
}

impl Arena {
    /// Maps, writes and reads back.
    pub(crate) fn new(
        machine: &Machine,
        case: &Case,
        ground: &Ground,
        rng: &mut Rng,
    ) -> Result<Self, Error> {
        let page = machine.page_bytes;
        let line = machine.geometry.line_max().value;
        let too_large = || Error::Map {
            len_bytes: case.size_bytes,
            source: std::io::ErrorKind::OutOfMemory.into(),
        };
        let offset = case.align.dst_bytes.max(case.align.src_bytes);
        let stride = case.size_bytes.checked_add(offset).ok_or_else(too_large)?;
        let stride = stride.max(1).checked_next_multiple_of(line).ok_or_else(too_large)?;
        let pieces = match case.temperature {
            Temperature::Hot => 1,
            Temperature::Cold => (ground.footprint_bytes / ground.sides(case) / stride).max(1),
        };
        let mut order: Vec<u32> = (0..u32::try_from(pieces).unwrap_or(u32::MAX)).collect();
        if case.pattern == Pattern::Random {
            rng.shuffle(&mut order);
        }
        let mut side = |offset: usize, pieces: usize| {
            // A short buffer begins anywhere in a page; if both always began at its start, the
            // loads of one call would meet the stores of the last at the same low address bits.
            let line = match case.temperature {
                Temperature::Hot if case.size_bytes < page => line * rng.below(page / line),
                _ => 0,
            };
            let first = page + line + offset;
            let bytes = stride.checked_mul(pieces).and_then(|all| all.checked_add(3 * page));
            let len_bytes = bytes.and_then(|all| all.checked_add(offset)).ok_or_else(too_large)?;
            let memory = Mapping::in_pages(len_bytes, ground.page)?;
            Ok::<_, Error>(Side { memory, first, stride: if pieces == 1 { 0 } else { stride } })
        };
        let mut dst = side(case.align.dst_bytes, order.len())?;
        dst.memory.bytes_mut().fill(UNTOUCHED);
        if dst.memory.bytes().iter().any(|&byte| byte != UNTOUCHED) {
            return Err(Error::Memory);
        }
        let src = match case.operation {
            Operation::Clear => None,
            Operation::Copy => {
                let pieces = match ground.source {
                    Temperature::Hot => 1,
                    Temperature::Cold => order.len(),
                };
                let mut src = side(case.align.src_bytes, pieces)?;
                fill_distinct(src.memory.bytes_mut(), rng.next())?;
                Some(src)
            }
        };
        let huge = || dst.memory.is_huge() && src.as_ref().is_none_or(|src| src.memory.is_huge());
        if ground.page == Page::Huge && !huge() {
            return Err(Error::HugePages);
        }
        let lead_in_bytes = machine.last_level_bytes();
        Ok(Self { case: *case, dst, src, order, next: 0, lead_in_bytes, margin_bytes: line })
    }

    pub(crate) fn temperature(&self) -> Temperature {
        self.case.temperature
    }

    /// Lets the contestant do a piece and looks at what it left there and beside it.
    pub(crate) fn check(&mut self, contestant: &Contestant) -> Result<(), Error> {
        let len = self.case.size_bytes;
        let start = self.dst.first;
        let around = start - self.margin_bytes..start + len + self.margin_bytes;
        let looked_at: Vec<usize> = looked_at(around.len()).map(|at| around.start + at).collect();
        let bytes = self.dst.memory.bytes_mut();
        looked_at.iter().for_each(|&at| bytes[at] = UNTOUCHED);

        let (dst, src) = self.places()(0);
        // SAFETY: the place is a piece of this arena, of `len` bytes on both sides.
        unsafe { contestant.routine().run(dst, src, len) };

        let bytes = self.dst.memory.bytes();
        let wanted = |at: usize| match &self.src {
            _ if !(start..start + len).contains(&at) => UNTOUCHED,
            None => 0,
            Some(src) => src.memory.bytes()[at - start + src.first],
        };
        match looked_at.into_iter().find(|&at| bytes[at] != wanted(at)) {
            _ if contestant.only_reads() => Ok(()),
            None => Ok(()),
            Some(at) => Err(Error::WrongResult {
                contestant: contestant.name().to_owned(),
                case: self.case,
                at_byte: at as isize - start as isize,
            }),
        }
    }

    /// Brings the caches into the state that this routine leaves them in, before `calls` timed
    /// ones: of a cold range as many bytes as the last level holds, of a hot one a few calls.
    pub(crate) fn lead_in(&mut self, routine: &dyn Routine, calls: usize) {
        let len = self.case.size_bytes;
        match self.case.temperature {
            Temperature::Hot => self.run(routine, calls / 8 + 2),
            Temperature::Cold if len <= self.lead_in_bytes => {
                self.run(routine, self.lead_in_bytes / len.max(1));
            }
            Temperature::Cold => {
                let skip = len - self.lead_in_bytes;
                let (dst, src) = self.places()(self.order[self.next]);
                let (dst, src) = (dst.wrapping_add(skip), src.wrapping_add(skip));
                // SAFETY: the end of a piece, on both sides.
                unsafe { routine.run(dst, src, self.lead_in_bytes) };
            }
        }
    }

    /// The time of `calls` calls.
    pub(crate) fn time(&mut self, routine: &dyn Routine, calls: usize) -> Duration {
        clock::time(|| self.run(routine, calls))
    }

    fn run(&mut self, routine: &dyn Routine, calls: usize) {
        let len = self.case.size_bytes;
        if self.case.temperature == Temperature::Hot {
            let place = self.places();
            // SAFETY: the place is the arena's only piece.
            return unsafe { call_each(routine, iter::repeat_n(place(0), calls), len) };
        }
        // SAFETY: the places are pieces of this arena.
        unsafe { call_each(routine, self.take(calls), len) };
    }

    /// The next so many pieces, on both sides.
    pub(crate) fn take(&mut self, count: usize) -> impl Iterator<Item = (*mut u8, *const u8)> + '_ {
        let place = self.places();
        let mut next = self.next;
        self.next = (self.next + count) % self.order.len();
        let order = self.order.as_slice();
        (0..count).map(move |_| {
            let piece = order[next];
            next = if next + 1 == order.len() { 0 } else { next + 1 };
            place(piece)
        })
    }

    /// Where each piece begins on both sides. What has no source gets the destination.
    fn places(&mut self) -> impl Fn(u32) -> (*mut u8, *const u8) + use<> {
        let dst = self.dst.first_piece();
        let src = self.src.as_mut().map_or(dst, Side::first_piece).cast_const();
        let strides = (self.dst.stride, self.src.as_ref().map_or(0, |src| src.stride));
        move |piece| {
            let piece = piece as usize;
            (dst.wrapping_add(piece * strides.0), src.wrapping_add(piece * strides.1))
        }
    }
}

impl Side {
    fn first_piece(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr().wrapping_add(self.first)
    }
}

/// The timed loop, the same for every contestant.
///
/// # Safety
///
/// Each place has `len` bytes as [`Routine::run`] asks for them.
#[inline(never)]
unsafe fn call_each(
    routine: &dyn Routine,
    places: impl Iterator<Item = (*mut u8, *const u8)>,
    len: usize,
) {
    let (routine, len) = black_box((routine, len));
    places.for_each(|(dst, src)| {
        // SAFETY: the caller's promise.
        unsafe { routine.run(dst, src, len) }
    });
}

/// What a destination holds before anybody wrote there: no byte of a result that is zero.
const UNTOUCHED: u8 = 0xa5;

/// No two words alike, no byte zero, and read back.
fn fill_distinct(bytes: &mut [u8], seed: u64) -> Result<(), Error> {
    let word = |index: usize| (mix(seed ^ index as u64) | NO_ZERO_BYTE).to_ne_bytes();
    let (words, rest) = bytes.as_chunks_mut::<8>();
    words.iter_mut().enumerate().for_each(|(index, to)| *to = word(index));
    rest.fill(1);
    let as_written = black_box(words).iter().enumerate().all(|(i, from)| *from == word(i));
    if as_written { Ok(()) } else { Err(Error::Memory) }
}

const NO_ZERO_BYTE: u64 = u64::from_ne_bytes([1; 8]);

/// The bytes of a range that a check looks at: all of a short one; of a long one both ends whole
/// and a byte in between now and then, at a distance that meets every offset in a line.
fn looked_at(len: usize) -> impl Iterator<Item = usize> {
    const WHOLE: usize = 1 << 20;
    const STEP: usize = 1021;
    let ends = len.min(WHOLE);
    let tail = len.saturating_sub(WHOLE).max(ends);
    (0..ends).chain((ends..tail).step_by(STEP)).chain(tail..len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Align;

    fn arena(case: &Case) -> Arena {
        let machine = Machine::detect();
        let (source, page) = (Temperature::Cold, Page::Base);
        let ground = Ground { footprint_bytes: 1 << 20, source, page };
        Arena::new(&machine, case, &ground, &mut Rng::new(1)).unwrap()
    }

    fn case(operation: Operation, size_bytes: usize) -> Case {
        Case {
            operation,
            size_bytes,
            temperature: Temperature::Cold,
            pattern: Pattern::Random,
            align: Align { dst_bytes: 3, src_bytes: 17 },
            threads: 1,
        }
    }

    struct Flawed {
        skip: usize,
        beyond: usize,
    }

    impl Routine for Flawed {
        unsafe fn run(&self, dst: *mut u8, src: *const u8, len: usize) {
            let len = len - self.skip + self.beyond;
            // SAFETY: the arena has a margin around every piece.
            unsafe { std::ptr::copy(src, dst, len) }
        }
    }

    #[test]
    fn checks_pass_what_is_right_at_any_size() {
        for operation in [Operation::Copy, Operation::Clear] {
            for size in [0, 1, 63, 64, 4096, 5000, 3 << 20] {
                let mut arena = arena(&case(operation, size));
                for contestant in Contestant::field(operation) {
                    arena.check(&contestant).unwrap();
                }
            }
        }
    }

    #[test]
    fn checks_find_a_byte_too_few_and_one_too_many() {
        for (skip, beyond, at) in [(1, 0, 99), (0, 1, 100)] {
            let flawed = Contestant::of_routine(Operation::Copy, Box::new(Flawed { skip, beyond }));
            match arena(&case(Operation::Copy, 100)).check(&flawed) {
                Err(Error::WrongResult { at_byte, .. }) => assert_eq!(at_byte, at),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_pass_touches_each_piece_once() {
        let mut arena = arena(&case(Operation::Clear, 100));
        let pieces = arena.order.len();
        assert!(pieces > 1000);
        arena.run(Contestant::libc(Operation::Clear).routine(), pieces);
        assert_eq!(arena.next, 0);
        let (first, stride) = (arena.dst.first, arena.dst.stride);
        for piece in 0..pieces {
            let at = first + piece * stride;
            assert!(arena.dst.memory.bytes()[at..at + 100].iter().all(|&byte| byte == 0));
        }
        let zeros = arena.dst.memory.bytes().iter().filter(|&&byte| byte == 0).count();
        assert_eq!(zeros, pieces * 100);
    }

    #[test]
    fn sources_have_no_zero_byte_and_no_two_words_alike() {
        let mut bytes = [0; 4099];
        fill_distinct(&mut bytes, 5).unwrap();
        assert!(bytes.iter().all(|&byte| byte != 0));
        let mut words = bytes.as_chunks::<8>().0.to_vec();
        words.sort_unstable();
        assert!(words.windows(2).all(|w| w[0] != w[1]));
    }
}
