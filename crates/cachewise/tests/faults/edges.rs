//! Every variant by its handle, and the page edge at every byte of its blocks (case 23).

use crate::common::{Handle, for_each_variant, title};
use crate::say;
use crate::stage::{AREA, Case, Kind, NON_CANONICAL, PAGE, PAGES, Stage, Tail, check_result};
use cachewise::fallible::{self, Cause, Side};
use cachewise::variant::{Operation, Variant};

/// Two of the longest block: eight vector registers of 64 bytes.
const BLOCKS: usize = 2 * 8 * 64;
/// In the middle of an area.
const EDGE: usize = AREA / 2;
const EDGE_PAGE: usize = PAGES / 2;

fn recoverable(operation: Operation) -> impl Fn(&Variant) -> bool {
    move |v| v.operation() == operation && v.recoverable()
}

fn each(operation: Operation, mut test: impl FnMut(&mut Stage, &'static Variant)) {
    fallible::install().expect("the handlers can be installed");
    let mut stage = Stage::new();
    for_each_variant(recoverable(operation), |variant| {
        stage.all_there();
        test(&mut stage, variant);
        stage.check_source();
    });
}

#[track_caller]
fn try_copy(stage: &mut Stage, variant: &'static Variant, case: Case) {
    let Handle::Copy(copier) = Handle::of(variant) else { unreachable!("it copies") };
    stage.copy(&title(variant), case, Tail::Unspecified, |dst, src, len| {
        // SAFETY: what exists of both areas is the stage's, and they are apart.
        unsafe { copier.try_copy_raw(dst, src, len) }
    });
}

#[track_caller]
fn try_fill(stage: &mut Stage, variant: &'static Variant, dst: usize, len: usize, value: u8) {
    let Handle::Clear(clearer) = Handle::of(variant) else { unreachable!("it clears") };
    stage.fill(&title(variant), (dst, len), value, |dst, len| {
        // SAFETY: what exists of the area is the stage's.
        unsafe { clearer.try_fill_raw(dst, value, len) }
    });
}

/// Lengths that put the fault at byte `at` into the head, the loop, the last block and the tail.
fn lengths(at: usize) -> [usize; 4] {
    [at + 1, at + 2 + at * 7 % 61, at + 64 + at % 200, at + BLOCKS + at % 129]
}

const ALIGNMENTS: [usize; 3] = [0, 1, 37];

#[test]
fn source_edge_at_every_byte_of_two_blocks() {
    each(Operation::Copy, |stage, variant| {
        stage.src.set(EDGE_PAGE, Kind::NoAccess);
        for at in 0..=1100 {
            for len in lengths(at) {
                let dst = 2 * PAGE + ALIGNMENTS[(at + len) % ALIGNMENTS.len()];
                try_copy(stage, variant, Case { dst, src: EDGE - at, len });
            }
        }
    });
}

#[test]
fn destination_edge_at_every_byte_of_two_blocks() {
    each(Operation::Copy, |stage, variant| {
        stage.dst.set(EDGE_PAGE, Kind::ReadOnly);
        for at in 0..=1100 {
            for len in lengths(at) {
                let src = 2 * PAGE + ALIGNMENTS[(at + len) % ALIGNMENTS.len()];
                try_copy(stage, variant, Case { dst: EDGE - at, src, len });
            }
        }
    });
}

/// The nearer edge decides; at the same byte the source, which is read first.
#[test]
fn both_edges_at_every_byte_of_two_blocks() {
    each(Operation::Copy, |stage, variant| {
        stage.src.set(EDGE_PAGE, Kind::NoAccess);
        stage.dst.set(EDGE_PAGE, Kind::BeyondEnd);
        for at in 0..=1100_usize {
            for (other, len) in [at, at + 1, at.saturating_sub(1), at + 40, at.saturating_sub(40)]
                .into_iter()
                .zip([at + 1, at + 70, at + 3, at + BLOCKS, at + 333])
            {
                try_copy(stage, variant, Case { dst: EDGE - other, src: EDGE - at, len });
            }
        }
    });
}

#[test]
fn clear_edge_at_every_byte_of_two_blocks() {
    each(Operation::Clear, |stage, variant| {
        stage.dst.set(EDGE_PAGE, Kind::NoAccess);
        for at in 0..=1100 {
            for len in lengths(at) {
                try_fill(stage, variant, EDGE - at, len, 0);
                try_fill(stage, variant, EDGE - at, len, 0xa5);
            }
        }
    });
}

/// The short ways: every length up to two of the widest registers, the edge at each of its bytes.
#[test]
fn short_lengths_and_every_edge_in_them() {
    each(Operation::Copy, |stage, variant| {
        for (in_src, in_dst) in [(true, false), (false, true)] {
            let kind = |here| if here { Kind::Unmapped } else { Kind::ReadWrite };
            stage.src.set(EDGE_PAGE, kind(in_src));
            stage.dst.set(EDGE_PAGE, kind(in_dst));
            for len in 1..=130 {
                for at in 0..len {
                    let place = |edge| if edge { EDGE - at } else { 3 * PAGE + len % 64 };
                    try_copy(stage, variant, Case { dst: place(in_dst), src: place(in_src), len });
                }
            }
        }
    });
    each(Operation::Clear, |stage, variant| {
        stage.dst.set(EDGE_PAGE, Kind::Unmapped);
        for len in 1..=130 {
            for at in 0..len {
                try_fill(stage, variant, EDGE - at, len, if at % 2 == 0 { 0 } else { 0x3c });
            }
        }
    });
}

/// Some variants copy four pages in step: the edge in each of the four, at sampled lines, and at
/// every byte of one line.
#[test]
fn edge_in_each_of_four_pages_in_step() {
    let lines =
        [0, 1, 2, 31, 62, 63].into_iter().flat_map(|line| [0, 1, 63].map(|b| line * 64 + b));
    let offsets: Vec<usize> = lines.chain((0..64).map(|b| 40 * 64 + b)).collect();
    each(Operation::Copy, |stage, variant| {
        for (in_src, in_dst) in [(true, false), (false, true), (true, true)] {
            // One group of four pages, then the edge.
            let edge_page = 11;
            let kind = |here, kind| if here { kind } else { Kind::ReadWrite };
            stage.src.set(edge_page, kind(in_src, Kind::NoAccess));
            stage.dst.set(edge_page, kind(in_dst, Kind::ReadOnly));
            for group in 0..2 {
                for page in 0..4 {
                    for &offset in &offsets {
                        let at = group * 4 * PAGE + page * PAGE + offset;
                        let len = (group + 1) * 4 * PAGE + 200;
                        let edge = edge_page * PAGE - at;
                        let other = PAGE + ALIGNMENTS[offset % ALIGNMENTS.len()];
                        let place = |edged| if edged { edge } else { other };
                        let (mut dst, src) = (place(in_dst), place(in_src));
                        if in_dst && in_src && offset % 3 == 0 {
                            dst -= offset;
                        }
                        try_copy(stage, variant, Case { dst, src, len });
                    }
                }
            }
        }
    });
}

/// Flush between two pages that can't be touched: nothing to report.
#[test]
fn no_fault_where_the_range_ends_at_the_edge() {
    each(Operation::Copy, |stage, variant| {
        for area in [&mut stage.dst, &mut stage.src] {
            area.set(3, Kind::NoAccess);
            area.set(6, Kind::Unmapped);
        }
        for len in (0..=1100).chain([2 * PAGE - 1, 2 * PAGE]) {
            let (first, last) = (4 * PAGE, 6 * PAGE - len);
            for (dst, src) in [(first, last), (last, first), (first, first), (last, last)] {
                try_copy(stage, variant, Case { dst, src, len });
            }
        }
    });
    each(Operation::Clear, |stage, variant| {
        stage.dst.set(3, Kind::BeyondEnd);
        stage.dst.set(6, Kind::ReadOnly);
        for len in (0..=1100).chain([2 * PAGE - 1, 2 * PAGE]) {
            try_fill(stage, variant, 4 * PAGE, len, 0);
            try_fill(stage, variant, 6 * PAGE - len, len, 9);
        }
    });
}

/// Each kind of page on each side, before the range's first byte that is there and after its last.
#[test]
fn each_kind_of_page_before_and_after() {
    let lens = [1, 8, 15, 64, 100, 500, 1000, PAGE, PAGE + 1];
    each(Operation::Copy, |stage, variant| {
        for kind in Kind::ALL {
            for in_src in [false, true] {
                stage.all_there();
                let area = if in_src { &mut stage.src } else { &mut stage.dst };
                area.set(EDGE_PAGE, kind);
                for len in lens {
                    // The last is after the page and must not notice it.
                    for first in [EDGE - len / 2, EDGE, EDGE + PAGE - 1, EDGE + PAGE] {
                        let case = if in_src {
                            Case { dst: 99, src: first, len }
                        } else {
                            Case { dst: first, src: 99, len }
                        };
                        try_copy(stage, variant, case);
                    }
                }
            }
        }
    });
    each(Operation::Clear, |stage, variant| {
        for kind in Kind::ALL {
            stage.dst.set(EDGE_PAGE, kind);
            for len in lens {
                for first in [EDGE - len / 2, EDGE, EDGE + PAGE - 1, EDGE + PAGE] {
                    try_fill(stage, variant, first, len, 0);
                    try_fill(stage, variant, first, len, 0xc3);
                }
            }
        }
    });
}

/// 4 GiB and so much more, where there is such a length.
fn beyond_4_gib(more: usize) -> std::option::IntoIter<usize> {
    1_usize.checked_shl(32).and_then(|bytes| bytes.checked_add(more)).into_iter()
}

/// Pointers that lead nowhere, and lengths that nothing has: any argument is an answer.
#[test]
fn null_non_canonical_and_beyond_user_space() {
    let bad = [
        (0, Cause::Unmapped),
        (1, Cause::Unmapped),
        (0x8000_0000_0000_0000, NON_CANONICAL),
        (0x0000_8000_0000_0000, NON_CANONICAL),
        (0xdead_beef_dead_beef, NON_CANONICAL),
        (0xffff_8000_0000_0000, Cause::Unmapped),
        (usize::MAX as u64 - 99, Cause::Unmapped),
    ];
    // Those that 32 bits can hold.
    let bad = bad.map(|(address, cause): (u64, _)| (usize::try_from(address).ok(), cause));
    // Emulated on x86-64, a pointer that is no address there raises what the emulator's own code
    // happens to raise: a bus error, if its base register is the frame's.
    let emulated = |address| matches!(address, 0x8000_0000_0000_u64 | 0xdead_beef_dead_beef);
    let known = move |address: usize| cfg!(target_arch = "x86_64") || !emulated(address as u64);
    let bad = || {
        let bad = bad.into_iter().filter_map(|(address, cause)| Some((address?, cause)));
        bad.filter(|&(address, _)| known(address))
    };
    let top = [isize::MAX as usize, usize::MAX];
    let lens = [1, 7, 8, 31, 64, 100, 600, 5000, 70_000].into_iter().chain(beyond_4_gib(1)).chain(top);
    each(Operation::Copy, |stage, variant| {
        let Handle::Copy(copier) = Handle::of(variant) else { unreachable!("it copies") };
        stage.dst.set(1, Kind::NoAccess);
        for (address, cause) in bad() {
            let wild = address as *mut u8;
            for len in lens.clone() {
                for (dst, src, side) in [
                    (stage.dst.at(0), wild, Side::Source),
                    (wild, stage.src.at(0), Side::Destination),
                ] {
                    // SAFETY: the one range that exists is the stage's.
                    let result = unsafe { copier.try_copy_raw(dst, src, len) };
                    let stop = crate::stage::Stop { copied: 0, side, cause };
                    check_result(&title(variant), len, Some(stop), result, &(address, side));
                }
            }
        }
    });
    each(Operation::Clear, |_, variant| {
        let Handle::Clear(clearer) = Handle::of(variant) else { unreachable!("it clears") };
        for (address, cause) in bad() {
            for len in lens.clone() {
                for value in [0, 1] {
                    // SAFETY: nothing exists there.
                    let result = unsafe { clearer.try_fill_raw(address as *mut u8, value, len) };
                    let stop = crate::stage::Stop { copied: 0, side: Side::Destination, cause };
                    check_result(&title(variant), len, Some(stop), result, &address);
                }
            }
        }
    });
}

/// The end of user space, from below: the last page cannot be mapped, the one before it can't
/// always, so a wild length is tried from an ordinary place instead.
#[test]
fn a_length_far_too_long_ends_at_the_first_edge() {
    each(Operation::Copy, |stage, variant| {
        let Handle::Copy(copier) = Handle::of(variant) else { unreachable!("it copies") };
        stage.src.set(EDGE_PAGE, Kind::NoAccess);
        let at = 777;
        let top = [isize::MAX as usize, usize::MAX];
        for len in beyond_4_gib(0).chain(beyond_4_gib(100)).chain(top) {
            let case = Case { dst: 5, src: EDGE - at, len: at };
            stage.prepare_copy(case);
            let (dst, src) = (stage.dst.at(case.dst), stage.src.at(case.src));
            // SAFETY: what exists of the ranges before the edge is the stage's and apart.
            let result = unsafe { copier.try_copy_raw(dst, src, len) };
            let stop =
                crate::stage::Stop { copied: at, side: Side::Source, cause: Cause::Protection };
            check_result(&title(variant), len, Some(stop), result, &case);
            stage.check_copy(&title(variant), Case { len: at, ..case }, Tail::Unspecified, None);
        }
    });
}

#[test]
fn rows_without_recovery_are_named() {
    for_each_variant(
        |v| !v.recoverable(),
        |v| say!("not recoverable, so not tested with faults: {}", title(v)),
    );
}
