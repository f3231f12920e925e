//! Runs a variant on memory that may not be there: which one, and until it is done or stopped.

use super::Fault;
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
#[inline(always)]
pub(super) unsafe fn copy(
    variant: &'static Variant,
    dst: *mut u8,
    src: *const u8,
    len: usize,
) -> Result<(), Fault> {
    // SAFETY: the variant copies.
    let (fenced, _) = unsafe { variant.copy_code() };
    // SAFETY: the caller's promises.
    unsafe { run_copy(fenced, dst, src, len) }
}

/// [`copy`] that leaves non-temporal stores pending.
///
/// # Safety
///
/// As there, and the caller fences before anything touches the destination.
#[inline(always)]
pub(super) unsafe fn copy_unfenced(
    variant: &'static Variant,
    dst: *mut u8,
    src: *const u8,
    len: usize,
) -> Result<(), Fault> {
    // SAFETY: the variant copies.
    let (_, unfenced) = unsafe { variant.copy_code() };
    // SAFETY: the caller's promises.
    unsafe { run_copy(unfenced, dst, src, len) }
}

/// # Safety
///
/// The variant clears, is recoverable and can run here; what exists of the range may be written.
#[inline(always)]
pub(super) unsafe fn fill(
    variant: &'static Variant,
    dst: *mut u8,
    value: u8,
    len: usize,
) -> Result<(), Fault> {
    // SAFETY: the variant clears.
    let (fenced, _) = unsafe { variant.clear_code() };
    // SAFETY: the caller's promises.
    let stand = unsafe { arch::call_clear(fenced, dst, arch::pattern(value), len) };
    if stand.outcome.left_bytes == 0 {
        return Ok(());
    }
    // SAFETY: as above, for what is left.
    unsafe { clear_on(fenced, value, stand.dst, stand.outcome, len) }
}

/// # Safety
///
/// As [`copy`].
#[inline(always)]
unsafe fn run_copy(
    routine: CopyRoutine,
    dst: *mut u8,
    src: *const u8,
    len: usize,
) -> Result<(), Fault> {
    // SAFETY: the caller's promises.
    let stand = unsafe { arch::call_copy(routine, dst, src, len) };
    if stand.outcome.left_bytes == 0 {
        return Ok(());
    }
    // SAFETY: as above, for what is left.
    unsafe { copy_on(routine, stand.dst, stand.src, stand.outcome, len) }
}

/// From a first fault on: calls again as long as faults are transient.
///
/// # Safety
///
/// As [`copy`], for what is left.
#[cold]
#[inline(never)]
unsafe fn copy_on(
    routine: CopyRoutine,
    mut dst: *mut u8,
    mut src: *const u8,
    mut outcome: Outcome,
    len: usize,
) -> Result<(), Fault> {
    while outcome.left_bytes != 0 {
        if outcome.stopped_by != Outcome::NOTHING {
            return Err(Fault::new(len, outcome));
        }
        // SAFETY: the caller's promise, for the part that is left.
        Stand { dst, src, outcome } =
            unsafe { arch::call_copy(routine, dst, src, outcome.left_bytes) };
    }
    Ok(())
}

/// [`copy_on`] for a routine that clears.
///
/// # Safety
///
/// As [`fill`], for what is left.
#[cold]
#[inline(never)]
unsafe fn clear_on(
    routine: ClearRoutine,
    value: u8,
    mut dst: *mut u8,
    mut outcome: Outcome,
    len: usize,
) -> Result<(), Fault> {
    while outcome.left_bytes != 0 {
        if outcome.stopped_by != Outcome::NOTHING {
            return Err(Fault::new(len, outcome));
        }
        // SAFETY: the caller's promise, for the part that is left.
        Stand { dst, outcome, .. } =
            unsafe { arch::call_clear(routine, dst, arch::pattern(value), outcome.left_bytes) };
    }
    Ok(())
}
