//! Every variant at every kind of length and alignment, against the oracle, between guard pages.
//!
//! The bulk and the partial lines at both ends take different paths, so all lengths up to a few
//! blocks are tried, all pairs of alignments within a line are met, and longer lengths
//! lie around the multiples where loops end: lines, pages, groups of pages walked in step.

mod common;

use cachewise::variant::{Operation, Variant};
use common::{Arena, Handle, Rng, Shape, for_each_variant, is_small, title};
use std::mem::MaybeUninit;

/// Zero, all ones (what a sign extension would make of a bad value), and neither.
const VALUES: [u8; 3] = [0, 0xff, 0xa5];
const LINE_BYTES: usize = 64;
const PAGE_BYTES: usize = 4096;

/// Miri interprets, and qemu translates: a sample of each test is all they have time for.
fn stride() -> usize {
    match (cfg!(miri), is_small()) {
        (true, _) => 61,
        (_, true) => 7,
        _ => 1,
    }
}

fn is_copy(variant: &Variant) -> bool {
    variant.operation() == Operation::Copy
}

#[test]
fn every_length_up_to_1100() {
    let all = 0..=if is_small() { 300 } else { 1100 };
    let lengths = all.step_by(if cfg!(miri) { stride() } else { 1 });
    let mut arena = Arena::new(3 * PAGE_BYTES);
    for_each_variant(
        |_| true,
        |variant| {
            let mut rng = Rng::new(1);
            for len in lengths.clone() {
                for sample in 0..8 {
                    // The first is aligned on both sides, the second as far apart as can be.
                    let (dst, src) = match sample {
                        0 => (0, 0),
                        1 => (1, LINE_BYTES - 1),
                        _ => (rng.below(LINE_BYTES), rng.below(LINE_BYTES)),
                    };
                    let shape = Shape { dst: PAGE_BYTES + dst, src: PAGE_BYTES + src, len };
                    arena.check_variant(variant, shape, VALUES[sample % VALUES.len()]);
                }
            }
            arena.check_everywhere(title(variant));
        },
    );
}

#[test]
fn all_pairs_of_alignments() {
    /// Per pair and variant. With all lengths it would be a thousand million.
    const LENGTHS_PER_PAIR: usize = 6;
    const LONGEST: usize = 260;
    let mut arena = Arena::new(3 * PAGE_BYTES);
    for_each_variant(is_copy, |variant| {
        let mut rng = Rng::new(2);
        for pair in (0..LINE_BYTES * LINE_BYTES).step_by(stride() * stride()) {
            let (dst, src) = (PAGE_BYTES + pair / LINE_BYTES, PAGE_BYTES + pair % LINE_BYTES);
            for _ in 0..LENGTHS_PER_PAIR {
                let shape = Shape { dst, src, len: rng.below(LONGEST + 1) };
                arena.check_variant(variant, shape, 0);
            }
        }
        arena.check_everywhere(title(variant));
    });
    for_each_variant(
        |v| !is_copy(v),
        |variant| {
            for dst in 0..LINE_BYTES {
                for len in (0..=LONGEST).step_by(stride()) {
                    let shape = Shape { dst: PAGE_BYTES + dst, src: 0, len };
                    arena.check_variant(variant, shape, VALUES[len % VALUES.len()]);
                }
            }
            arena.check_everywhere(title(variant));
        },
    );
}

/// Lengths around which some loop of some variant begins or ends, each with its neighbours.
fn turning_points() -> Vec<usize> {
    let powers = (6..=16).flat_map(|bit| [1 << bit, 3 << (bit - 1)]);
    let lines = (16..=64).step_by(2).map(|lines| lines * LINE_BYTES);
    let pages = (1..=20).map(|pages| pages * PAGE_BYTES);
    let pages_and_lines = (1..=9).map(|pages| pages * PAGE_BYTES + 3 * LINE_BYTES);
    let points = powers.chain(lines).chain(pages).chain(pages_and_lines);
    let mut all: Vec<usize> = points.flat_map(|point| [point - 1, point, point + 1]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn lengths_where_loops_end() {
    let points = turning_points();
    let longest = points[points.len() - 1];
    let mut arena = Arena::new(longest + 4 * PAGE_BYTES);
    for_each_variant(
        |_| true,
        |variant| {
            let mut rng = Rng::new(3);
            for (i, &len) in points.iter().enumerate().step_by(stride()) {
                let aligned = (0, 0);
                let line_aligned = (LINE_BYTES * rng.below(64), LINE_BYTES * rng.below(64));
                let any = (rng.below(PAGE_BYTES), rng.below(PAGE_BYTES));
                for (dst, src) in [aligned, line_aligned, any] {
                    let shape = Shape { dst: PAGE_BYTES + dst, src: PAGE_BYTES + src, len };
                    arena.check_variant(variant, shape, VALUES[i % VALUES.len()]);
                }
            }
            arena.check_everywhere(title(variant));
        },
    );
}

#[test]
fn more_than_a_mebibyte() {
    if cfg!(miri) {
        say!("skipped under Miri: more_than_a_mebibyte would take hours");
        return;
    }
    const LEN: usize = (1 << 20) + 4321;
    let mut arena = Arena::new(LEN + 4 * PAGE_BYTES);
    for_each_variant(
        |_| true,
        |variant| {
            for (dst, src, len) in [(0, 0, 1 << 20), (0, 7, LEN), (13, 0, LEN), (63, 1, LEN - 1)] {
                let shape = Shape { dst: PAGE_BYTES + dst, src: PAGE_BYTES + src, len };
                arena.check_variant(variant, shape, VALUES[dst % VALUES.len()]);
            }
            arena.check_everywhere(title(variant));
        },
    );
}

/// Each buffer begins or ends directly at a page that cannot be touched.
#[test]
fn nothing_beyond_either_edge() {
    let mut arena = Arena::new(1 << 17);
    let whole = arena.len_bytes();
    let pages = [1, 2, 3, 4, 5, 8, 9, 16, 17].map(|pages| pages * PAGE_BYTES);
    let long = pages.into_iter().flat_map(|len| [len - 1, len, len + 1, len + 100]);
    let lengths: Vec<usize> = (0..=700).step_by(stride()).chain(long).chain([whole]).collect();
    for_each_variant(
        |_| true,
        |variant| {
            let edges = if is_copy(variant) { 4 } else { 2 };
            for &len in &lengths {
                for edge in 0..edges {
                    let far = whole - len;
                    let (dst, src) = (edge % 2 * far, edge / 2 * far);
                    arena.check_variant(variant, Shape { dst, src, len }, VALUES[len % 3]);
                }
            }
            arena.check_everywhere(title(variant));
        },
    );
}

#[test]
fn every_value_can_fill() {
    let mut arena = Arena::new(3 * PAGE_BYTES);
    for_each_variant(
        |v| !is_copy(v),
        |variant| {
            for value in (0..=u8::MAX).step_by(stride()) {
                for len in [1, 7, 64, 300, 1029] {
                    let shape = Shape { dst: PAGE_BYTES + usize::from(value) % 64, src: 0, len };
                    arena.check_variant(variant, shape, value);
                }
            }
        },
    );
}

#[test]
fn uninitialised_memory_comes_back_as_bytes() {
    let source: Vec<u8> = (0..1500_u32).map(|i| (i * 31) as u8).collect();
    for_each_variant(
        |_| true,
        |variant| {
            for len in [0, 1, 5, 16, 64, 100, 512, 1500] {
                let mut heap: Vec<MaybeUninit<u8>> = Vec::with_capacity(len);
                // SAFETY: uninitialised bytes are what `MaybeUninit` is for, and the capacity is
                // at least `len`.
                unsafe { heap.set_len(len) };
                match Handle::of(variant) {
                    Handle::Copy(copier) => {
                        let copied = copier.copy(&mut heap[..], &source[..len]);
                        assert_eq!(copied, &source[..len], "{}", title(variant));
                    }
                    Handle::Clear(clearer) => {
                        assert_eq!(clearer.fill(&mut heap[..], 9), vec![9; len]);
                        assert_eq!(clearer.clear(&mut heap[..]), vec![0; len]);
                    }
                }
            }
            let mut array = [MaybeUninit::uninit(); 33];
            match Handle::of(variant) {
                Handle::Copy(copier) => assert_eq!(copier.copy(&mut array, &[3; 33]), [3; 33]),
                Handle::Clear(clearer) => assert_eq!(clearer.clear(&mut array), [0; 33]),
            }
        },
    );
}
