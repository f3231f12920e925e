//! Copying, clearing and filling any range of bytes.
//!
//! Every operation comes in pairs. The plain one leaves the destination in the cache: the bytes
//! are used soon. The `_nontemporal` one goes around the cache from a
//! [threshold](crate::policy) on: nobody on this CPU touches the bytes soon (DMA, another process,
//! a page cache). `_auto` lets the size decide.
//!
//! What holds on return, for all of them: the bytes behave as if written by ordinary stores of this
//! thread. `_nontemporal` calls always end in a store fence, at every length; plain ones never do.
//!
//! The safe functions take `&mut [u8]`, `&mut [MaybeUninit<u8>]`, arrays or pages
//! ([`Destination`]) and give the initialised slice back. The `_raw` ones are the same on pointers;
//! the pointers of one call don't overlap unless the name says so.

pub use crate::destination::Destination;

use crate::arch;
use crate::destination::{check_lengths, written};
use crate::policy::{self, Gate, LONGEST_BYTES};
use crate::switch::{self, Slot};
use crate::variant::{Store, Variant};
use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr;

/// What a caller knows beside the two ranges. All of it is optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Hints {
    total_bytes: usize,
    keep_first_bytes: usize,
    source_nontemporal: bool,
}

impl Hints {
    /// Nothing is known.
    pub const fn new() -> Self {
        Self { total_bytes: 0, keep_first_bytes: 0, source_nontemporal: false }
    }

    /// This call is one piece of a transfer of `total_bytes`: the threshold looks at the total
    /// (case 11: 1 GB in pieces of 64 KiB).
    pub const fn total_bytes(mut self, total_bytes: usize) -> Self {
        self.total_bytes = if total_bytes < LONGEST_BYTES { total_bytes } else { LONGEST_BYTES };
        self
    }

    /// The first bytes of the destination are used soon: they stay cached whatever happens to the
    /// rest (seeds row Y4).
    pub const fn keep_first_bytes(mut self, keep_first_bytes: usize) -> Self {
        self.keep_first_bytes = keep_first_bytes;
        self
    }

    /// The source isn't used again either: it should not be drawn in deeper than needed. Served
    /// by the variant's prefetching sibling; without one the hint has no effect.
    pub const fn source_nontemporal(mut self) -> Self {
        self.source_nontemporal = true;
        self
    }

    /// The length that thresholds look at.
    #[inline(always)]
    fn weight(&self, len_bytes: usize) -> usize {
        if self.total_bytes > len_bytes { self.total_bytes } else { len_bytes }
    }
}

// ---- The way through: small moves here, the rest by the slot's routine. ----

/// Up to this length a plain copy or fill is done by two moves in the caller's own code; a constant
/// length becomes a single move (seeds row Y12).
const INLINE_BYTES: usize = 16;

/// # Safety
///
/// `src` is valid for reads and `dst` for writes of the size of `T`.
#[inline(always)]
unsafe fn move_one<T>(dst: *mut u8, src: *const u8) {
    // SAFETY: the caller's promise. `MaybeUninit` carries uninitialised bytes.
    unsafe {
        dst.cast::<MaybeUninit<T>>().write_unaligned(src.cast::<MaybeUninit<T>>().read_unaligned())
    }
}

/// Copies a length that is one move's in one move; says whether it was.
///
/// # Safety
///
/// `src` is valid for reads and `dst` for writes of `len` bytes.
#[inline(always)]
unsafe fn moved_as_one(dst: *mut u8, src: *const u8, len: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        match len {
            1 => move_one::<u8>(dst, src),
            2 => move_one::<u16>(dst, src),
            4 => move_one::<u32>(dst, src),
            8 => move_one::<u64>(dst, src),
            _ => return false,
        }
    }
    true
}

/// # Safety
///
/// `src` is valid for reads and `dst` for writes of `len` bytes, and they do not overlap.
#[inline(always)]
unsafe fn move_two<T>(dst: *mut u8, src: *const u8, len: usize) {
    let last = len - size_of::<T>();
    // SAFETY: `len` is from one to two sizes of `T`, so the first and the last `T` are inside. Both
    // are read before either is written. `MaybeUninit` carries uninitialised bytes.
    unsafe {
        let head = src.cast::<MaybeUninit<T>>().read_unaligned();
        let tail = src.add(last).cast::<MaybeUninit<T>>().read_unaligned();
        dst.cast::<MaybeUninit<T>>().write_unaligned(head);
        dst.add(last).cast::<MaybeUninit<T>>().write_unaligned(tail);
    }
}

/// # Safety
///
/// `dst` is valid for writes of `len` bytes.
#[inline(always)]
unsafe fn fill_two<T: Copy>(dst: *mut u8, value: T, len: usize) {
    // SAFETY: as in `move_two`.
    unsafe {
        dst.cast::<T>().write_unaligned(value);
        dst.add(len - size_of::<T>()).cast::<T>().write_unaligned(value);
    }
}

/// Copies `len_bytes` from `src` to `dst`, which is used soon.
///
/// # Safety
///
/// - `src` is valid for reads and `dst` for writes of `len_bytes`.
/// - The two ranges do not overlap.
#[inline(always)]
pub unsafe fn copy_raw(dst: *mut u8, src: *const u8, len_bytes: usize) {
    if len_bytes > INLINE_BYTES {
        // SAFETY: the caller's promise; the slot copies.
        return unsafe { switch::serving(Slot::Copy).run_copy(dst, src, len_bytes) };
    }
    // SAFETY: the caller's promise, with the length in the range that `move_two` asks for.
    unsafe {
        match len_bytes {
            8.. => move_two::<u64>(dst, src, len_bytes),
            4.. => move_two::<u32>(dst, src, len_bytes),
            2.. => move_two::<u16>(dst, src, len_bytes),
            1 => move_one::<u8>(dst, src),
            0 => {}
        }
    }
}

/// Writes `value` to each of `len_bytes` at `dst`, which is used soon.
///
/// # Safety
///
/// `dst` is valid for writes of `len_bytes`.
#[inline(always)]
pub unsafe fn fill_raw(dst: *mut u8, value: u8, len_bytes: usize) {
    if len_bytes > INLINE_BYTES {
        // SAFETY: the caller's promise; the slot clears.
        return unsafe { switch::serving(Slot::Clear).run_fill(dst, value, len_bytes) };
    }
    let word = arch::pattern(value);
    // SAFETY: the caller's promise, with the length in the range that `fill_two` asks for.
    unsafe {
        match len_bytes {
            8.. => fill_two(dst, word, len_bytes),
            4.. => fill_two(dst, word as u32, len_bytes),
            2.. => fill_two(dst, word as u16, len_bytes),
            1 => fill_two(dst, value, len_bytes),
            0 => {}
        }
    }
}

/// Writes zero to `len_bytes` at `dst`, which is used soon.
///
/// # Safety
///
/// `dst` is valid for writes of `len_bytes`.
#[inline(always)]
pub unsafe fn clear_raw(dst: *mut u8, len_bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { fill_raw(dst, 0, len_bytes) }
}

/// What `_nontemporal` calls do after a variant that did not fence by itself: case 4, callers rely
/// on the fence whatever serves them.
#[inline(always)]
pub(crate) fn fence_unless_fenced(variant: &'static Variant) {
    if variant.store() != Store::NonTemporal {
        arch::fence();
    }
}

/// A copy that goes around the cache when `weight` says so, writes each byte once, and fences.
///
/// # Safety
///
/// As [`copy_raw`].
#[inline(always)]
pub(crate) unsafe fn copy_around(
    slot: Slot,
    gate: Gate,
    source_nontemporal: bool,
    weight: usize,
    dst: *mut u8,
    src: *const u8,
    len: usize,
) {
    let around = policy::goes_around(gate, weight);
    // SAFETY: the caller's promise.
    if !around && unsafe { moved_as_one(dst, src, len) } {
        return arch::fence();
    }
    let variant = if !around {
        switch::serving_below_threshold(slot)
    } else if source_nontemporal {
        switch::serving_source_nontemporal(slot)
    } else {
        switch::serving(slot)
    };
    // SAFETY: the caller's promise.
    unsafe { variant.run_copy(dst, src, len) };
    fence_unless_fenced(variant);
}

/// A fill that goes around the cache when `weight` says so, writes each byte once, and fences.
///
/// # Safety
///
/// As [`fill_raw`].
#[inline(always)]
pub(crate) unsafe fn fill_around(
    slot: Slot,
    gate: Gate,
    weight: usize,
    dst: *mut u8,
    value: u8,
    len: usize,
) {
    let variant = policy::serving(slot, gate, weight);
    // SAFETY: the caller's promise.
    unsafe { variant.run_fill(dst, value, len) };
    fence_unless_fenced(variant);
}

// ---- Copies. ----

/// Copies `len_bytes` from `src` to `dst`, which is used soon, with [`Hints`].
///
/// # Safety
///
/// As [`copy_raw`].
#[inline]
pub unsafe fn copy_with_raw(dst: *mut u8, src: *const u8, len_bytes: usize, hints: Hints) {
    if !hints.source_nontemporal {
        // SAFETY: the caller's promise.
        return unsafe { copy_raw(dst, src, len_bytes) };
    }
    // SAFETY: the caller's promise.
    unsafe { switch::serving_source_nontemporal(Slot::Copy).run_copy(dst, src, len_bytes) }
}

/// Copies `len_bytes` from `src` to `dst`, which is not used soon.
///
/// # Safety
///
/// As [`copy_raw`].
#[inline]
pub unsafe fn copy_nontemporal_raw(dst: *mut u8, src: *const u8, len_bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { copy_nontemporal_with_raw(dst, src, len_bytes, Hints::new()) }
}

/// Copies `len_bytes` from `src` to `dst`, which is not used soon, with [`Hints`].
///
/// # Safety
///
/// As [`copy_raw`].
#[inline]
pub unsafe fn copy_nontemporal_with_raw(
    dst: *mut u8,
    src: *const u8,
    len_bytes: usize,
    hints: Hints,
) {
    const SLOT: Slot = Slot::CopyNontemporal;
    let weight = hints.weight(len_bytes);
    let kept = hints.keep_first_bytes.min(len_bytes);
    if kept != 0 {
        // SAFETY: `kept <= len_bytes`, so this is the beginning of the caller's ranges.
        unsafe { switch::serving_below_threshold(SLOT).run_copy(dst, src, kept) };
    }
    // SAFETY: as above; the rest of the caller's ranges.
    let (dst, src) = unsafe { (dst.add(kept), src.add(kept)) };
    let (gate, len) = (Gate::CopyNontemporal, len_bytes - kept);
    // SAFETY: as above.
    unsafe { copy_around(SLOT, gate, hints.source_nontemporal, weight, dst, src, len) }
}

/// Copies `len_bytes` from `src` to `dst`; the size, or [`Hints::total_bytes`], decides whether
/// around the cache.
///
/// # Safety
///
/// As [`copy_raw`].
#[inline]
pub unsafe fn copy_auto_raw(dst: *mut u8, src: *const u8, len_bytes: usize, hints: Hints) {
    if policy::goes_around(Gate::CopyAuto, hints.weight(len_bytes)) {
        // SAFETY: the caller's promise.
        unsafe { copy_nontemporal_with_raw(dst, src, len_bytes, hints) }
    } else {
        // SAFETY: the caller's promise.
        unsafe { copy_with_raw(dst, src, len_bytes, hints) }
    }
}

/// Copies `len_bytes` from `src` to `dst`, which may overlap, and which is used soon.
///
/// # Safety
///
/// `src` is valid for reads and `dst` for writes of `len_bytes`.
#[inline]
pub unsafe fn copy_overlapping_raw(dst: *mut u8, src: *const u8, len_bytes: usize) {
    if dst.addr().abs_diff(src.addr()) >= len_bytes {
        // SAFETY: the ranges don't overlap; the rest is the caller's promise.
        unsafe { copy_raw(dst, src, len_bytes) }
    } else {
        // SAFETY: the caller's promise. The platform's `memmove` is good at this.
        unsafe { ptr::copy(src, dst, len_bytes) }
    }
}

/// Copies `len_bytes` from `src` to `dst`, which may overlap, and which is not used soon.
///
/// Ranges at a distance of at least the threshold are copied in pieces of that distance, none of
/// which overlaps itself, from the end that keeps the source intact. Nearer ones are copied by
/// general registers in one walk.
///
/// # Safety
///
/// `src` is valid for reads and `dst` for writes of `len_bytes`.
pub unsafe fn copy_overlapping_nontemporal_raw(dst: *mut u8, src: *const u8, len_bytes: usize) {
    const SLOT: Slot = Slot::CopyNontemporal;
    let distance = dst.addr().abs_diff(src.addr());
    let piece = if distance >= len_bytes {
        len_bytes
    } else {
        distance / arch::BLOCK_BYTES * arch::BLOCK_BYTES
    };
    if piece < len_bytes && !policy::goes_around(Gate::CopyNontemporal, piece) || piece == 0 {
        // SAFETY: the caller's promise.
        unsafe { arch::walk(dst, src, len_bytes) };
        return arch::fence();
    }
    let copy_piece = |from: usize, len: usize| {
        // SAFETY: the piece lies in the caller's ranges and is no longer than their distance, so
        // it doesn't overlap itself; what it overwrites of the source has been copied before.
        unsafe {
            let (dst, src) = (dst.add(from), src.add(from));
            copy_around(SLOT, Gate::CopyNontemporal, false, len_bytes, dst, src, len);
        }
    };
    if dst.addr() <= src.addr() {
        let mut from = 0;
        while from < len_bytes {
            let len = piece.min(len_bytes - from);
            copy_piece(from, len);
            from += len;
        }
    } else {
        let mut left = len_bytes;
        while left > 0 {
            let len = piece.min(left);
            left -= len;
            copy_piece(left, len);
        }
    }
}

/// The safe copies differ only in what they call.
macro_rules! safe_copies {
    ($($(#[$doc:meta])* $name:ident($($hints:ident)?) => $raw:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Panics
        ///
        /// If the lengths differ.
        #[inline(always)]
        #[track_caller]
        pub fn $name<'a, D: Destination + ?Sized>(
            dst: &'a mut D,
            src: &[u8]
            $(, $hints: Hints)?
        ) -> &'a mut [u8] {
            check_lengths(dst.len_bytes(), src.len());
            // SAFETY: both ranges come from references, of equal length, one of them exclusive;
            // all of the destination is written.
            unsafe { written(dst, |dst, len| $raw(dst, src.as_ptr(), len $(, $hints)?)) }
        }
    )*};
}

safe_copies! {
    /// Copies all of `src` to `dst`, which is used soon, and gives `dst` back, initialised.
    ///
    /// ```
    /// use core::mem::MaybeUninit;
    ///
    /// let mut buffer = [MaybeUninit::uninit(); 1000];
    /// let copied = cachewise::copy(&mut buffer, &[7; 1000]);
    /// assert_eq!(copied[999], 7);
    /// ```
    copy() => copy_raw;

    /// [`copy`] with [`Hints`] about the source.
    copy_with(hints) => copy_with_raw;

    /// Copies all of `src` to `dst`, which is not used soon, and gives `dst` back, initialised.
    ///
    /// Ends in a store fence at every length. Writes each byte exactly once.
    copy_nontemporal() => copy_nontemporal_raw;

    /// [`copy_nontemporal`] with [`Hints`].
    ///
    /// ```
    /// use cachewise::Hints;
    ///
    /// let (piece, mut buffer) = ([1; 65536], [0; 65536]);
    /// // One piece of a gigabyte; the receiver looks at the first 256 bytes at once.
    /// let hints = Hints::new().total_bytes(1 << 30).keep_first_bytes(256);
    /// cachewise::copy_nontemporal_with(&mut buffer, &piece, hints);
    /// assert_eq!(buffer, piece);
    /// ```
    copy_nontemporal_with(hints) => copy_nontemporal_with_raw;

    /// Copies all of `src` to `dst`; the size, or [`Hints::total_bytes`], against the cache
    /// decides how.
    copy_auto(hints) => copy_auto_raw;
}

/// Copies `bytes[src]` to `bytes[dst..]` within one slice, as `copy_within` does; used soon.
///
/// # Panics
///
/// If either range is not inside the slice.
#[track_caller]
pub fn copy_overlapping(bytes: &mut [u8], src: Range<usize>, dst: usize) {
    let (dst, src, len) = within(bytes, src, dst);
    // SAFETY: `within` has checked both ranges against the slice.
    unsafe { copy_overlapping_raw(dst, src, len) }
}

/// [`copy_overlapping`], not used soon.
///
/// # Panics
///
/// If either range is not inside the slice.
#[track_caller]
pub fn copy_overlapping_nontemporal(bytes: &mut [u8], src: Range<usize>, dst: usize) {
    let (dst, src, len) = within(bytes, src, dst);
    // SAFETY: `within` has checked both ranges against the slice.
    unsafe { copy_overlapping_nontemporal_raw(dst, src, len) }
}

#[track_caller]
fn within(bytes: &mut [u8], src: Range<usize>, dst: usize) -> (*mut u8, *const u8, usize) {
    let len = bytes[src.clone()].len();
    assert!(dst <= bytes.len() - len, "destination is not inside the slice");
    let first = bytes.as_mut_ptr();
    // SAFETY: both offsets are at most the slice's length.
    unsafe { (first.add(dst), first.add(src.start), len) }
}

// ---- Clears and fills. ----

/// Writes zero to `len_bytes` at `dst`, which is not used soon.
///
/// # Safety
///
/// `dst` is valid for writes of `len_bytes`.
#[inline]
pub unsafe fn clear_nontemporal_raw(dst: *mut u8, len_bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { fill_nontemporal_raw(dst, 0, len_bytes) }
}

/// Writes `value` to each of `len_bytes` at `dst`, which is not used soon.
///
/// # Safety
///
/// `dst` is valid for writes of `len_bytes`.
#[inline]
pub unsafe fn fill_nontemporal_raw(dst: *mut u8, value: u8, len_bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { fill_nontemporal_with_raw(dst, value, len_bytes, Hints::new()) }
}

/// [`fill_nontemporal_raw`] with [`Hints`].
///
/// # Safety
///
/// `dst` is valid for writes of `len_bytes`.
#[inline]
pub unsafe fn fill_nontemporal_with_raw(dst: *mut u8, value: u8, len_bytes: usize, hints: Hints) {
    const SLOT: Slot = Slot::ClearNontemporal;
    let kept = hints.keep_first_bytes.min(len_bytes);
    if kept != 0 {
        // SAFETY: `kept <= len_bytes`, so this is the beginning of the caller's range.
        unsafe { switch::serving_below_threshold(SLOT).run_fill(dst, value, kept) };
    }
    let (weight, len) = (hints.weight(len_bytes), len_bytes - kept);
    // SAFETY: as above; the rest of the caller's range.
    unsafe { fill_around(SLOT, Gate::ClearNontemporal, weight, dst.add(kept), value, len) }
}

/// Writes zero to `len_bytes` at `dst`; the size, or [`Hints::total_bytes`], decides whether
/// around the cache.
///
/// # Safety
///
/// `dst` is valid for writes of `len_bytes`.
#[inline]
pub unsafe fn clear_auto_raw(dst: *mut u8, len_bytes: usize, hints: Hints) {
    if policy::goes_around(Gate::ClearAuto, hints.weight(len_bytes)) {
        // SAFETY: the caller's promise.
        unsafe { fill_nontemporal_with_raw(dst, 0, len_bytes, hints) }
    } else {
        // SAFETY: the caller's promise.
        unsafe { clear_raw(dst, len_bytes) }
    }
}

/// The safe clears and fills differ only in what they call.
macro_rules! safe_fills {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty)?) => |$dst:ident, $len:ident| $call:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name<D: Destination + ?Sized>(dst: &mut D $(, $arg: $type)?) -> &mut [u8] {
            // SAFETY: the range comes from an exclusive reference; all of it is written.
            unsafe { written(dst, |$dst, $len| $call) }
        }
    )*};
}

safe_fills! {
    /// Writes zero to all of `dst`, which is used soon, and gives it back, initialised.
    clear() => |dst, len| clear_raw(dst, len);
    /// Writes zero to all of `dst`, which is not used soon. Fences; writes each byte once.
    clear_nontemporal() => |dst, len| clear_nontemporal_raw(dst, len);
    /// Writes zero to all of `dst`; the size, or [`Hints::total_bytes`], decides how.
    clear_auto(hints: Hints) => |dst, len| clear_auto_raw(dst, len, hints);
    /// Writes `value` to all of `dst`, which is used soon, and gives it back, initialised.
    fill(value: u8) => |dst, len| fill_raw(dst, value, len);
    /// Writes `value` to all of `dst`, which is not used soon. Fences; writes each byte once.
    fill_nontemporal(value: u8) => |dst, len| fill_nontemporal_raw(dst, value, len);
}
