//! Fallible copies, clears and fills: the infallible ones' routines, with the outcome handed on.

use super::{Fault, Side, attempt};
use crate::policy::{Gate, LONGEST_BYTES};
use crate::switch::Slot;
use crate::variant::{Clearer, Copier, Variant};
use crate::{arch, bytes};
use core::fmt;
use core::ops::ControlFlow;

/// Copies `len_bytes` from `src` to `dst`, which is used soon.
///
/// # Errors
///
/// See the [module](super): exact, and maximal where the fault says so.
///
/// # Safety
///
/// - Whatever of `dst[..len_bytes]` can be written may be written: it belongs to no reference and
///   to nobody who does not expect it.
/// - Whatever of the two ranges exists does not overlap.
///
/// Nothing is asked of what does not exist.
#[inline]
pub unsafe fn try_copy(dst: *mut u8, src: *const u8, len_bytes: usize) -> Result<(), Fault> {
    // SAFETY: the caller's promise; the slot's variant copies and can run here.
    unsafe { attempt::copy(attempt::serving(Slot::Copy), dst, src, len_bytes) }
}

/// [`try_copy`], not used soon. Fences, also after a fault.
///
/// # Errors
///
/// As [`try_copy`].
///
/// # Safety
///
/// As [`try_copy`].
pub unsafe fn try_copy_nontemporal(
    dst: *mut u8,
    src: *const u8,
    len_bytes: usize,
) -> Result<(), Fault> {
    let variant =
        attempt::serving_at(Slot::CopyNontemporal, Gate::CopyNontemporal, len_bytes);
    // SAFETY: the caller's promise; the slot's variant copies and can run here.
    let result = unsafe { attempt::copy(variant, dst, src, len_bytes) };
    bytes::fence_unless_fenced(variant);
    result
}

/// [`try_copy`] that leaves no stale tail: after a fault of the source, what was not copied of the
/// destination is zeroed, as far as it can be written.
///
/// # Errors
///
/// As [`try_copy`].
///
/// # Safety
///
/// As [`try_copy`].
pub unsafe fn try_copy_zeroing(
    dst: *mut u8,
    src: *const u8,
    len_bytes: usize,
) -> Result<(), Fault> {
    // SAFETY: the caller's promise.
    let result = unsafe { try_copy(dst, src, len_bytes) };
    // SAFETY: as above.
    unsafe { zero_tail(dst, result) }
}

/// [`try_copy_nontemporal`] that leaves no stale tail, as [`try_copy_zeroing`].
///
/// # Errors
///
/// As [`try_copy`].
///
/// # Safety
///
/// As [`try_copy`].
pub unsafe fn try_copy_nontemporal_zeroing(
    dst: *mut u8,
    src: *const u8,
    len_bytes: usize,
) -> Result<(), Fault> {
    // SAFETY: the caller's promise.
    let result = unsafe { try_copy_nontemporal(dst, src, len_bytes) };
    // SAFETY: as above.
    unsafe { zero_tail(dst, result) }
}

/// # Safety
///
/// `result` is that of a copy to `dst`, whose rest may still be written.
unsafe fn zero_tail(dst: *mut u8, result: Result<(), Fault>) -> Result<(), Fault> {
    if let Err(fault) = &result {
        if fault.side() == Side::Source {
            let tail = dst.wrapping_add(fault.copied_bytes());
            // SAFETY: the rest of the caller's destination. That it can't all be written is no news
            // beside the fault at hand.
            let _ = unsafe { try_clear(tail, fault.residue_bytes()) };
        }
    }
    result
}

/// Writes `value` to each of `len_bytes` at `dst`, which is used soon.
///
/// # Errors
///
/// See the [module](super); the side is the destination.
///
/// # Safety
///
/// Whatever of `dst[..len_bytes]` can be written may be written: it belongs to no reference and to
/// nobody who does not expect it.
#[inline]
pub unsafe fn try_fill(dst: *mut u8, value: u8, len_bytes: usize) -> Result<(), Fault> {
    // SAFETY: the caller's promise; the slot's variant clears and can run here.
    unsafe { attempt::fill(attempt::serving(Slot::Clear), dst, value, len_bytes) }
}

/// [`try_fill`], not used soon. Fences, also after a fault.
///
/// # Errors
///
/// As [`try_fill`].
///
/// # Safety
///
/// As [`try_fill`].
pub unsafe fn try_fill_nontemporal(
    dst: *mut u8,
    value: u8,
    len_bytes: usize,
) -> Result<(), Fault> {
    let variant =
        attempt::serving_at(Slot::ClearNontemporal, Gate::ClearNontemporal, len_bytes);
    // SAFETY: the caller's promise; the slot's variant clears and can run here.
    let result = unsafe { attempt::fill(variant, dst, value, len_bytes) };
    bytes::fence_unless_fenced(variant);
    result
}

/// Writes zero to `len_bytes` at `dst`, which is used soon.
///
/// # Errors
///
/// As [`try_fill`].
///
/// # Safety
///
/// As [`try_fill`].
#[inline]
pub unsafe fn try_clear(dst: *mut u8, len_bytes: usize) -> Result<(), Fault> {
    // SAFETY: the caller's promise.
    unsafe { try_fill(dst, 0, len_bytes) }
}

/// [`try_clear`], not used soon. Fences, also after a fault.
///
/// # Errors
///
/// As [`try_fill`].
///
/// # Safety
///
/// As [`try_fill`].
pub unsafe fn try_clear_nontemporal(dst: *mut u8, len_bytes: usize) -> Result<(), Fault> {
    // SAFETY: the caller's promise.
    unsafe { try_fill_nontemporal(dst, 0, len_bytes) }
}

impl Copier {
    /// [`try_copy`] by this variant.
    ///
    /// # Errors
    ///
    /// As [`try_copy`].
    ///
    /// # Safety
    ///
    /// As [`try_copy`], if the variant is [recoverable](crate::variant::Variant::recoverable); else as
    /// [`Self::copy_raw`].
    #[inline]
    pub unsafe fn try_copy_raw(
        &self,
        dst: *mut u8,
        src: *const u8,
        len_bytes: usize,
    ) -> Result<(), Fault> {
        // SAFETY: the caller's promise; a handle's variant copies and can run here.
        unsafe { attempt::copy(self.variant(), dst, src, len_bytes) }
    }
}

impl Clearer {
    /// [`try_fill`] by this variant.
    ///
    /// # Errors
    ///
    /// As [`try_fill`].
    ///
    /// # Safety
    ///
    /// As [`try_fill`], if the variant is [recoverable](crate::variant::Variant::recoverable); else as
    /// [`Self::fill_raw`].
    #[inline]
    pub unsafe fn try_fill_raw(
        &self,
        dst: *mut u8,
        value: u8,
        len_bytes: usize,
    ) -> Result<(), Fault> {
        // SAFETY: the caller's promise; a handle's variant clears and can run here.
        unsafe { attempt::fill(self.variant(), dst, value, len_bytes) }
    }
}

/// How long a copy may go on before the caller is asked: what a preemption point or a watchdog
/// needs (seeds row Y7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    /// The longest piece; 0 is taken for 1.
    pub chunk_bytes: usize,
}

/// 64 KiB: some microseconds at the rates of today's memory.
impl Default for Chunks {
    fn default() -> Self {
        Self { chunk_bytes: 64 << 10 }
    }
}

/// [`try_copy`] in pieces; `between` is asked after each but the last, with the bytes copied so far,
/// and may end the copy. Returns the bytes copied.
///
/// # Errors
///
/// As [`try_copy`].
///
/// # Safety
///
/// As [`try_copy`].
pub unsafe fn try_copy_chunked(
    dst: *mut u8,
    src: *const u8,
    len_bytes: usize,
    chunks: Chunks,
    mut between: impl FnMut(usize) -> ControlFlow<()>,
) -> Result<usize, Fault> {
    let mut done = 0;
    loop {
        let piece = chunks.chunk_bytes.max(1).min(len_bytes - done);
        let (to, from) = (dst.wrapping_add(done), src.wrapping_add(done));
        // SAFETY: a part of the caller's ranges.
        let result = unsafe { try_copy(to, from, piece) };
        result.map_err(|fault| fault.within(done, len_bytes - done - piece))?;
        done += piece;
        if done == len_bytes || between(done).is_break() {
            return Ok(done);
        }
    }
}

/// [`try_copy`] with a slow path, as a kernel's write path has it (seeds row Y5): after a fault
/// `make_present` may wait, map, read in, and say `Continue`; the copy goes on at the byte it
/// stopped at. `Break` ends it with the fault at hand.
///
/// # Errors
///
/// The fault that could not be mended: the one that `make_present` gave up on, or one at a byte
/// that it had called present and that failed again.
///
/// # Safety
///
/// As [`try_copy`].
pub unsafe fn try_copy_with_slow_path(
    dst: *mut u8,
    src: *const u8,
    len_bytes: usize,
    mut make_present: impl FnMut(&Fault) -> ControlFlow<()>,
) -> Result<(), Fault> {
    let mut done = 0;
    let mut mended = None;
    loop {
        let (to, from) = (dst.wrapping_add(done), src.wrapping_add(done));
        // SAFETY: a part of the caller's ranges.
        let Err(fault) = (unsafe { try_copy(to, from, len_bytes - done) }) else { return Ok(()) };
        let fault = fault.within(done, 0);
        let place = Some((fault.copied_bytes(), fault.side()));
        if place == mended || make_present(&fault).is_break() {
            return Err(fault);
        }
        mended = place;
        done = fault.copied_bytes();
    }
}

/// One piece of a vectored copy.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// Where to.
    pub dst: *mut u8,
    /// Where from.
    pub src: *const u8,
    /// How much.
    pub len_bytes: usize,
}

/// A vectored copy that met a fault: all pairs before `pair` are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectoredFault {
    /// The index of the pair that failed.
    pub pair: usize,
    /// The bytes copied in all, those of the failed pair included.
    pub copied_bytes: usize,
    /// What happened in that pair.
    pub fault: Fault,
}

impl fmt::Display for VectoredFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pair {}: {}", self.pair, self.fault)
    }
}

impl core::error::Error for VectoredFault {}

/// Copies each pair in order, used soon, up to the first that fails.
///
/// # Errors
///
/// The first fault, with its pair.
///
/// # Safety
///
/// As [`try_copy`] for each pair.
pub unsafe fn try_copy_vectored(pairs: &[Pair]) -> Result<(), VectoredFault> {
    // SAFETY: the caller's promise; the slot's variant copies and can run here.
    unsafe { each(pairs, attempt::serving(Slot::Copy)) }
}

/// [`try_copy_vectored`], not used soon. One fence, also after a fault; the threshold looks at the
/// sum of the lengths, as the pairs are one transfer.
///
/// # Errors
///
/// As [`try_copy_vectored`].
///
/// # Safety
///
/// As [`try_copy`] for each pair.
pub unsafe fn try_copy_vectored_nontemporal(pairs: &[Pair]) -> Result<(), VectoredFault> {
    let total = pairs.iter().fold(0_usize, |sum, pair| sum.saturating_add(pair.len_bytes));
    let total = total.min(LONGEST_BYTES);
    let variant = attempt::serving_at(Slot::CopyNontemporal, Gate::CopyNontemporal, total);
    // SAFETY: as above; the fence follows.
    let result = unsafe { each(pairs, variant) };
    arch::fence();
    result
}

/// # Safety
///
/// As [`try_copy`] for each pair; the variant copies and can run here, and the caller fences.
unsafe fn each(pairs: &[Pair], variant: &'static Variant) -> Result<(), VectoredFault> {
    let mut copied = 0;
    for (index, &Pair { dst, src, len_bytes }) in pairs.iter().enumerate() {
        // SAFETY: the caller's promise.
        let result = unsafe { attempt::copy_unfenced(variant, dst, src, len_bytes) };
        result.map_err(|fault| VectoredFault {
            pair: index,
            copied_bytes: copied + fault.copied_bytes(),
            fault,
        })?;
        copied += len_bytes;
    }
    Ok(())
}
