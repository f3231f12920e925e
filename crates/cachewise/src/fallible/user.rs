//! The fallible calls under the names and conventions of Linux's user-space accessors.
//!
//! Code written against those reads here as it did there: the result is the number of bytes *not*
//! copied, 0 for success; `copy_from_user` zeroes what it could not copy, its `_inatomic` kin do not
//! (seeds rows Y5, Y8). Linux renamed `_nocache` to `_nontemporal` in 2026; so here.
//!
//! One of Linux's own documented traps holds as well: a caller that ignores the residue of an
//! `_inatomic` copy reads stale bytes.

use super::{Word, try_clear, try_copy, try_copy_nontemporal, try_copy_nontemporal_zeroing};
use super::{try_copy_zeroing, try_read, try_write};
use super::{Fault, try_strnlen};

fn residue(result: Result<(), Fault>) -> usize {
    result.map_or_else(|fault| fault.residue_bytes(), |()| 0)
}

/// The address is bad: what Linux reports as `-EFAULT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Efault;

impl core::fmt::Display for Efault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("bad address")
    }
}

impl core::error::Error for Efault {}

macro_rules! copies {
    ($($(#[$doc:meta])* $name:ident => $call:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// As [`try_copy`].
        pub unsafe fn $name(dst: *mut u8, src: *const u8, len_bytes: usize) -> usize {
            // SAFETY: the caller's promise.
            residue(unsafe { $call(dst, src, len_bytes) })
        }
    )*};
}

copies! {
    /// Copies from memory that may not be there, zeroes the tail of `dst` it could not copy, and
    /// returns that tail's length.
    copy_from_user => try_copy_zeroing;
    /// [`copy_from_user`], not used soon.
    copy_from_user_nontemporal => try_copy_nontemporal_zeroing;
    /// [`copy_from_user`] without the zeroes: for a caller that has a slow path for the rest.
    copy_from_user_inatomic => try_copy;
    /// [`copy_from_user_inatomic`], not used soon: the 2005 patch's call.
    copy_from_user_inatomic_nontemporal => try_copy_nontemporal;
    /// Copies to memory that may not be there, and returns the bytes not copied.
    copy_to_user => try_copy;
}

/// Writes zero to memory that may not be there, and returns the bytes not cleared.
///
/// # Safety
///
/// As [`try_clear`].
pub unsafe fn clear_user(dst: *mut u8, len_bytes: usize) -> usize {
    // SAFETY: the caller's promise.
    residue(unsafe { try_clear(dst, len_bytes) })
}

/// Reads one object that may not be there.
///
/// # Errors
///
/// [`Efault`].
///
/// # Safety
///
/// As [`try_read`].
pub unsafe fn get_user<W: Word>(src: *const W) -> Result<W, Efault> {
    // SAFETY: the caller's promise.
    unsafe { try_read(src) }.map_err(|_| Efault)
}

/// Writes one object that may not be there.
///
/// # Errors
///
/// [`Efault`].
///
/// # Safety
///
/// As [`try_write`].
pub unsafe fn put_user<W: Word>(value: W, dst: *mut W) -> Result<(), Efault> {
    // SAFETY: the caller's promise.
    unsafe { try_write(dst, value) }.map_err(|_| Efault)
}

/// The length of a string with its zero; 0 if it isn't there; more than `max_bytes` if it is longer.
///
/// # Safety
///
/// As [`try_strnlen`].
pub unsafe fn strnlen_user(string: *const u8, max_bytes: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { try_strnlen(string, max_bytes) }.map_or(0, |len| len.saturating_add(1))
}
