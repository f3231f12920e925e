//! Runs a variant on memory that may not be there: which one, and until it is done or stopped.

use crate::arch::{self, ClearRoutine, CopyRoutine, Outcome};
use crate::policy::{self, Gate};
use crate::run::Stand;
use crate::switch::{self, Slot};
use crate::variant::Variant;

/// What serves the slot: its variant, or the preferred recoverable one if that has no exception
/// table.
pub(super) fn serving(slot: Slot) -> &'static Variant {
    let variant = switch::get(slot);
    if variant.recoverable() {
        return variant;
    }
    switch::best(slot, Variant::recoverable).unwrap_or(variant)
}

/// What serves a transfer of this length through a `_nontemporal` slot.
pub(super) fn serving_at(slot: Slot, gate: Gate, total_bytes: usize) -> &'static Variant {
    let variant = serving(slot);
    if policy::goes_around(gate, total_bytes) {
        variant
    } else {
        switch::serving_below_threshold(slot)
    }
}

/// # Safety
///
/// The variant copies, is recoverable and can run here; what exists of the ranges does not overlap
/// and may be read and written.
#[inline]
pub(super) unsafe fn copy(
    variant: &'static Variant,
    dst: *mut u8,
    src: *const u8,
    len: usize,
) -> Outcome {
    // SAFETY: the caller's promises.
    unsafe { copy_to_the_end(variant.copy_code().0, dst, src, len) }
}

/// [`copy`] that leaves non-temporal stores pending.
///
/// # Safety
///
/// As there, and the caller fences before anything touches the destination.
#[inline]
pub(super) unsafe fn copy_unfenced(
    variant: &'static Variant,
    dst: *mut u8,
    src: *const u8,
    len: usize,
) -> Outcome {
    // SAFETY: the caller's promises.
    unsafe { copy_to_the_end(variant.copy_code().1, dst, src, len) }
}

/// # Safety
///
/// As [`copy`].
#[inline]
unsafe fn copy_to_the_end(
    routine: CopyRoutine,
    mut dst: *mut u8,
    mut src: *const u8,
    len: usize,
) -> Outcome {
    let mut outcome = Outcome { left_bytes: len, stopped_by: Outcome::NOTHING };
    loop {
        // SAFETY: the caller's promise, for the part that is left.
        Stand { dst, src, outcome } =
            unsafe { arch::call_copy(routine, dst, src, outcome.left_bytes) };
        if outcome.left_bytes == 0 || outcome.stopped_by != Outcome::NOTHING {
            return outcome;
        }
    }
}

/// # Safety
///
/// The variant clears, is recoverable and can run here; what exists of the range may be written.
#[inline]
pub(super) unsafe fn fill(
    variant: &'static Variant,
    mut dst: *mut u8,
    value: u8,
    len: usize,
) -> Outcome {
    // SAFETY: the variant clears.
    let routine: ClearRoutine = unsafe { variant.clear_code() }.0;
    let mut outcome = Outcome { left_bytes: len, stopped_by: Outcome::NOTHING };
    loop {
        // SAFETY: the caller's promise, for the part that is left.
        Stand { dst, outcome, .. } = unsafe {
            arch::call_clear(routine, dst, arch::pattern(value), outcome.left_bytes)
        };
        if outcome.left_bytes == 0 || outcome.stopped_by != Outcome::NOTHING {
            return outcome;
        }
    }
}
