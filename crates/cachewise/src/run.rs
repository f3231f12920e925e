//! Runs a routine to the end: the one place where an infallible call meets a fault.
//!
//! Every routine is recoverable, so a call that cannot fail could come back early if a fault
//! handler took a fault in it. Such a call must die, or reach the application's own pager,
//! exactly as a plain store would (cases 29 and 30): the failing byte is touched by an ordinary
//! access, which no exception table knows, and then the routine goes on from there.

use crate::arch::{self, ClearRoutine, CopyRoutine, Outcome};
use core::mem::MaybeUninit;

/// Where a call stands when its routine has come back.
#[derive(Clone, Copy)]
pub(crate) struct Stand {
    /// The first byte of the destination that is not done.
    pub(crate) dst: *mut u8,
    /// The source of that byte; for a fill, without meaning.
    pub(crate) src: *const u8,
    pub(crate) outcome: Outcome,
}

/// # Safety
///
/// `src` is valid for reads and `dst` for writes of `len` bytes, they do not overlap, and the
/// CPU has what the routine needs.
#[inline(always)]
pub(crate) unsafe fn copy(routine: CopyRoutine, dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the caller's promises are the routine's.
    let stand = unsafe { arch::call_copy(routine, dst, src, len) };
    if stand.outcome.left_bytes != 0 {
        // SAFETY: as above, for what is left.
        unsafe { copy_on(routine, stand.dst, stand.src, stand.outcome) };
    }
}

/// # Safety
///
/// `dst` is valid for writes of `len` bytes, and the CPU has what the routine needs.
#[inline(always)]
pub(crate) unsafe fn clear(routine: ClearRoutine, dst: *mut u8, value: u8, len: usize) {
    // SAFETY: the caller's promises are the routine's.
    let stand = unsafe { arch::call_clear(routine, dst, arch::pattern(value), len) };
    if stand.outcome.left_bytes != 0 {
        // SAFETY: as above, for what is left.
        unsafe { clear_on(routine, value, stand.dst, stand.outcome) };
    }
}

#[cold]
#[inline(never)]
unsafe fn copy_on(
    routine: CopyRoutine,
    mut dst: *mut u8,
    mut src: *const u8,
    mut outcome: Outcome,
) {
    while outcome.left_bytes != 0 {
        if outcome.stopped_by != Outcome::NOTHING {
            // SAFETY: the byte is inside the source range, which the caller called readable.
            let byte = unsafe { src.cast::<MaybeUninit<u8>>().read_volatile() };
            // SAFETY: the byte is inside the destination range, which the caller called writable.
            unsafe { dst.cast::<MaybeUninit<u8>>().write_volatile(byte) };
            // On behind it: after poison the routine stops at the start of its block, which may be
            // good, and would for ever stop there again.
            (dst, src) = (dst.wrapping_add(1), src.wrapping_add(1));
            outcome.left_bytes -= 1;
        }
        // SAFETY: the remaining ranges are parts of the caller's.
        Stand { dst, src, outcome } =
            unsafe { arch::call_copy(routine, dst, src, outcome.left_bytes) };
    }
}

#[cold]
#[inline(never)]
unsafe fn clear_on(routine: ClearRoutine, value: u8, mut dst: *mut u8, mut outcome: Outcome) {
    while outcome.left_bytes != 0 {
        if outcome.stopped_by != Outcome::NOTHING {
            // SAFETY: the byte is inside the range that the caller called writable.
            unsafe { dst.write_volatile(value) };
            // As above.
            dst = dst.wrapping_add(1);
            outcome.left_bytes -= 1;
        }
        // SAFETY: the remaining range is a part of the caller's.
        Stand { dst, outcome, .. } =
            unsafe { arch::call_clear(routine, dst, arch::pattern(value), outcome.left_bytes) };
    }
}
