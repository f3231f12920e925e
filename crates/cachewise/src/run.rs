//! Runs a routine to the end: the one place where an infallible call meets a fault.
//!
//! Every routine is recoverable, so a call that cannot fail could come back early if a fault
//! handler took a fault in it. Such a call must die, or reach the application's own pager,
//! exactly as a plain store would (cases 29 and 30): the failing byte is touched by an ordinary
//! access, which no exception table knows, and then the routine goes on from there.

use crate::arch::{ClearRoutine, CopyRoutine, Outcome};

/// The byte repeated eight times, as the clearing routines take it.
#[inline(always)]
pub(crate) const fn pattern(value: u8) -> u64 {
    u64::from_ne_bytes([value; 8])
}

/// # Safety
///
/// `src` is valid for reads and `dst` for writes of `len` bytes, they do not overlap, and the
/// CPU has what the routine needs.
#[inline(always)]
pub(crate) unsafe fn copy(routine: CopyRoutine, dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the caller's promises are the routine's.
    let outcome = unsafe { routine(dst, src, len) };
    if outcome.left_bytes != 0 {
        // SAFETY: as above; `outcome` is this call's.
        unsafe { copy_on(routine, dst, src, len, outcome) };
    }
}

/// # Safety
///
/// `dst` is valid for writes of `len` bytes, and the CPU has what the routine needs.
#[inline(always)]
pub(crate) unsafe fn clear(routine: ClearRoutine, dst: *mut u8, value: u8, len: usize) {
    // SAFETY: the caller's promises are the routine's.
    let outcome = unsafe { routine(dst, pattern(value), len) };
    if outcome.left_bytes != 0 {
        // SAFETY: as above; `outcome` is this call's.
        unsafe { clear_on(routine, dst, value, len, outcome) };
    }
}

#[cold]
#[inline(never)]
unsafe fn copy_on(
    routine: CopyRoutine,
    dst: *mut u8,
    src: *const u8,
    len: usize,
    mut outcome: Outcome,
) {
    while outcome.left_bytes != 0 {
        let done = len - outcome.left_bytes;
        // SAFETY: `done < len`, so both stay inside their ranges.
        let (dst, src) = unsafe { (dst.add(done), src.add(done)) };
        if outcome.stopped_by != Outcome::NOTHING {
            // SAFETY: the byte is inside the source range, which the caller called readable.
            let byte = unsafe { src.read_volatile() };
            // SAFETY: the byte is inside the destination range, which the caller called writable.
            unsafe { dst.write_volatile(byte) };
        }
        // SAFETY: the remaining ranges are parts of the caller's.
        outcome = unsafe { routine(dst, src, outcome.left_bytes) };
    }
}

#[cold]
#[inline(never)]
unsafe fn clear_on(
    routine: ClearRoutine,
    dst: *mut u8,
    value: u8,
    len: usize,
    mut outcome: Outcome,
) {
    while outcome.left_bytes != 0 {
        // SAFETY: `left_bytes <= len`, so this stays inside the range.
        let dst = unsafe { dst.add(len - outcome.left_bytes) };
        if outcome.stopped_by != Outcome::NOTHING {
            // SAFETY: the byte is inside the range that the caller called writable.
            unsafe { dst.write_volatile(value) };
        }
        // SAFETY: the remaining range is a part of the caller's.
        outcome = unsafe { routine(dst, pattern(value), outcome.left_bytes) };
    }
}
