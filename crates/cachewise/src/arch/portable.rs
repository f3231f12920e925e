//! The fallback in plain Rust: every architecture without assembly, Miri, the sanitizers.
//!
//! `ptr::copy_nonoverlapping` is an untyped copy, so it carries uninitialised bytes and keeps
//! provenance. It becomes a call of the platform's `memcpy`, whose stores may overlap and whose
//! accesses have no exception-table entry.

use super::{ClearRoutine, CopyRoutine, Outcome, Returned};
use crate::run::Stand;
use crate::variant::{RegisterClass, Store, Variant};

pub(crate) const COPY: Variant =
    Variant::copying("portable", Store::Temporal, RegisterClass::General, copy).unrecoverable();
pub(crate) const CLEAR: Variant =
    Variant::clearing("portable", Store::Temporal, RegisterClass::General, clear).unrecoverable();

#[allow(dead_code, reason = "the registry where no assembly is compiled")]
pub(crate) static ROWS: &[Variant] = &[COPY, CLEAR];

/// What the other modules take for a line where no assembly says better.
#[allow(dead_code, reason = "used where no assembly is compiled")]
pub(crate) const BLOCK_BYTES: usize = 64;

/// Calls a routine by the platform's convention.
///
/// # Safety
///
/// The routine's.
#[allow(dead_code, reason = "used where no assembly is compiled")]
#[inline(always)]
pub(crate) unsafe fn call_copy(
    routine: CopyRoutine,
    dst: *mut u8,
    src: *const u8,
    len: usize,
) -> Stand {
    // SAFETY: the caller's promise.
    let outcome = Outcome::from_returned(unsafe { routine(dst, src, len) });
    let done = len - outcome.left_bytes;
    Stand { dst: dst.wrapping_add(done), src: src.wrapping_add(done), outcome }
}

/// [`call_copy`] for a routine that clears.
///
/// # Safety
///
/// The routine's.
#[allow(dead_code, reason = "used where no assembly is compiled")]
#[inline(always)]
pub(crate) unsafe fn call_clear(
    routine: ClearRoutine,
    dst: *mut u8,
    pattern: u64,
    len: usize,
) -> Stand {
    // SAFETY: the caller's promise.
    let outcome = Outcome::from_returned(unsafe { routine(dst, pattern, len) });
    let done = len - outcome.left_bytes;
    Stand { dst: dst.wrapping_add(done), src: core::ptr::null(), outcome }
}

/// Copies between ranges that may overlap.
///
/// # Safety
///
/// `src` is valid for reads and `dst` for writes of `len` bytes.
#[allow(dead_code, reason = "used where no assembly is compiled")]
pub(crate) unsafe fn walk(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { core::ptr::copy(src, dst, len) }
}

/// Nothing to order: there are no non-temporal stores in plain Rust.
#[allow(dead_code, reason = "used where no assembly is compiled")]
#[inline(always)]
pub(crate) fn fence() {}

unsafe extern "C" fn copy(dst: *mut u8, src: *const u8, len: usize) -> Returned {
    // SAFETY: the caller of a routine promises `len` readable bytes at `src`, `len` writable ones
    // at `dst`, and no overlap.
    unsafe { core::ptr::copy_nonoverlapping(src, dst, len) };
    Outcome::DONE.returned()
}

unsafe extern "C" fn clear(dst: *mut u8, pattern: u64, len: usize) -> Returned {
    // SAFETY: the caller of a routine promises `len` writable bytes at `dst`.
    unsafe { core::ptr::write_bytes(dst, pattern as u8, len) };
    Outcome::DONE.returned()
}
