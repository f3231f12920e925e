//! What the safe functions write to: bytes that may not be initialised yet, and are afterwards.

use core::mem::MaybeUninit;
use core::slice;

/// Memory that can be copied to or cleared: bytes, initialised or not.
///
/// # Safety
///
/// `as_mut_ptr` is valid for writes of `len_bytes` for as long as the borrow lasts, and any byte
/// written there leaves the value valid.
pub unsafe trait Destination {
    /// The first byte.
    fn as_mut_ptr(&mut self) -> *mut u8;
    /// The length.
    fn len_bytes(&self) -> usize;
    /// The memory as initialised bytes.
    ///
    /// # Safety
    ///
    /// Every byte has been written.
    unsafe fn assume_init_bytes(&mut self) -> &mut [u8] {
        let len = self.len_bytes();
        // SAFETY: `as_mut_ptr` is valid for `len` bytes under this borrow, and the caller promises
        // that they are initialised.
        unsafe { slice::from_raw_parts_mut(self.as_mut_ptr(), len) }
    }
}

// SAFETY: a slice is valid for its own length, and any byte is a valid `u8`.
unsafe impl Destination for [u8] {
    fn as_mut_ptr(&mut self) -> *mut u8 {
        <[u8]>::as_mut_ptr(self)
    }
    fn len_bytes(&self) -> usize {
        self.len()
    }
}

// SAFETY: as above; any byte is a valid `MaybeUninit<u8>`.
unsafe impl Destination for [MaybeUninit<u8>] {
    fn as_mut_ptr(&mut self) -> *mut u8 {
        <[MaybeUninit<u8>]>::as_mut_ptr(self).cast()
    }
    fn len_bytes(&self) -> usize {
        self.len()
    }
}

// SAFETY: an array is a slice of known length.
unsafe impl<T, const N: usize> Destination for [T; N]
where
    [T]: Destination,
{
    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.as_mut_slice().as_mut_ptr().cast()
    }
    fn len_bytes(&self) -> usize {
        self.as_slice().len_bytes()
    }
}

#[inline(always)]
#[track_caller]
pub(crate) fn check_lengths(dst_bytes: usize, src_bytes: usize) {
    assert!(dst_bytes == src_bytes, "destination and source differ in length");
}

/// Gives a destination back after all of it has been written.
///
/// # Safety
///
/// `write` is handed the destination's pointer and length and writes every byte of it.
#[inline(always)]
pub(crate) unsafe fn written<D: Destination + ?Sized>(
    dst: &mut D,
    write: impl FnOnce(*mut u8, usize),
) -> &mut [u8] {
    write(dst.as_mut_ptr(), dst.len_bytes());
    // SAFETY: `write` has written all of it.
    unsafe { dst.assume_init_bytes() }
}
