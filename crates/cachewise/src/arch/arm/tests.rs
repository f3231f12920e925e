//! The copy by lines for lines that this CPU does not have, and its prefetches, counted.

use super::super::{Outcome, Returned};
use super::goes_by_lines;
use std::vec::Vec;

const PAGE_BYTES: usize = 4096;

#[repr(C, align(64))]
struct Page([u8; PAGE_BYTES]);

type ByLines = unsafe extern "C" fn(*mut u8, *const u8, usize, usize) -> Returned;

/// Copies a page and compares; what stopped the routine is handed back.
fn copied(routine: ByLines, line: usize) -> usize {
    let mut src = Page([0; PAGE_BYTES]);
    for (i, byte) in src.0.iter_mut().enumerate() {
        *byte = (i % 251) as u8;
    }
    let mut dst = Page([0xee; PAGE_BYTES]);
    assert!(goes_by_lines(dst.0.as_ptr().addr(), src.0.as_ptr().addr(), PAGE_BYTES, line));
    // SAFETY: two pages, and the shapes have just been checked.
    let returned = unsafe { routine(dst.0.as_mut_ptr(), src.0.as_ptr(), PAGE_BYTES, line) };
    let outcome = Outcome::from_returned(returned);
    assert_eq!(outcome.left_bytes, 0, "line of {line}");
    assert!(dst.0 == src.0, "line of {line}");
    outcome.stopped_by
}

const LINES: [usize; 8] = [16, 32, 64, 128, 256, 512, 1024, 2048];

#[test]
fn any_line_that_divides_the_page_in_pairs_copies_it() {
    for line in LINES {
        let plain = routine!(
            ("copy_lines") (dst: *mut u8, src: *const u8, len: usize, line: usize) -> Returned
        );
        assert_eq!(copied(plain, line), Outcome::NOTHING);
    }
}

/// The very loop, with an addition for each prefetch: one per line, so half as many where lines are
/// twice as long.
#[test]
fn each_line_is_prefetched_once() {
    let counting = routine!(
        ("copy_lines_counting") (dst: *mut u8, src: *const u8, len: usize, line: usize) -> Returned
    );
    let counts: Vec<usize> = LINES.iter().map(|&line| copied(counting, line)).collect();
    let expected: Vec<usize> = LINES.iter().map(|&line| PAGE_BYTES / line).collect();
    assert_eq!(counts, expected);
}

#[test]
fn what_cannot_go_by_lines_is_told_apart() {
    for line in [0, 8, 24, 33, 48, 96, 4096] {
        assert!(!goes_by_lines(0, 0, PAGE_BYTES, line), "line of {line}");
    }
    // 48 divides this one in pairs.
    assert!(goes_by_lines(0, 0, 9600, 48));
    for (dst, src) in [(1, 0), (0, 2), (4, 3)] {
        assert!(!goes_by_lines(dst, src, PAGE_BYTES, 32), "{dst} {src}");
    }
    for len in [0, 32, 63, 4095, 4096 + 32] {
        assert!(!goes_by_lines(0, 0, len, 32), "{len}");
    }
}

/// A fault in Thumb code: its IT block's progress must not go on in ours, nor the other flags change.
#[cfg(all(feature = "std", target_os = "linux"))]
#[test]
fn the_it_bits_are_cleared() {
    use super::context;
    use crate::fallible::extable::Fixup;

    // SAFETY: all-zero is a valid context.
    let mut interrupted: libc::ucontext_t = unsafe { core::mem::zeroed() };
    interrupted.uc_mcontext.arm_cpsr = u32::MAX;
    context::resume_at(&mut interrupted, Fixup { pc: 0x100, done_bytes: 3 }, 2, true);
    assert_eq!(interrupted.uc_mcontext.arm_cpsr, 0xf9ff_03ff);
    assert_eq!(context::told(&interrupted), [0x100, 1 << 31 | 3, 2]);
}
