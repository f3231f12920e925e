//! Many non-temporal copies under one fence.
//!
//! A non-temporal store must be fenced before anything else looks at its bytes, and a fence waits
//! for all stores before it: cheap once, dear after each of a thousand small records. A guard
//! object could be forgotten and give its borrows back unfenced, so the fence belongs to a
//! scope instead, as in `std::thread::scope`: what is written in the scope stays borrowed until
//! the scope has fenced.

use crate::arch;
use crate::destination::{Destination, check_lengths};
use crate::policy::{self, Gate};
use crate::switch::Slot;
use core::marker::PhantomData;

/// The scope of [`batch`]. Not `Send`: the fence orders the stores of one thread.
#[derive(Debug)]
pub struct Batch<'scope, 'env: 'scope> {
    /// Invariant in both, as `std::thread::Scope` is, and tied to this thread.
    marker: PhantomData<(&'scope mut &'scope (), &'env mut &'env (), *mut ())>,
}

/// Fences when dropped: also when the closure unwinds.
struct Fence;

impl Drop for Fence {
    fn drop(&mut self) {
        arch::fence();
    }
}

/// Runs `work`, in which copies and clears go around the cache unfenced, and fences once.
///
/// ```
/// let records = [[1_u8; 600], [2; 600], [3; 600]];
/// let mut log = vec![0_u8; 1800];
/// cachewise::batch(|batch| {
///     for (place, record) in log.chunks_exact_mut(600).zip(&records) {
///         batch.copy(place, record);
///     }
/// });
/// assert_eq!(log[1799], 3);
/// ```
///
/// A destination can't be looked at before the fence:
///
/// ```compile_fail,E0502
/// let mut log = vec![0_u8; 600];
/// cachewise::batch(|batch| {
///     batch.copy(&mut log[..], &[1; 600]);
///     assert_eq!(log[0], 1);
/// });
/// ```
///
/// Nor can the batch leave its thread:
///
/// ```compile_fail,E0277
/// cachewise::batch(|batch| {
///     std::thread::scope(|s| {
///         s.spawn(|| batch.copy(&mut [0; 600], &[1; 600]));
///     });
/// });
/// ```
pub fn batch<'env, R>(work: impl for<'scope> FnOnce(&'scope Batch<'scope, 'env>) -> R) -> R {
    let _fence = Fence;
    work(&Batch { marker: PhantomData })
}

impl<'scope> Batch<'scope, '_> {
    /// Copies all of `src` to `dst`, which stays borrowed until the batch has fenced.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    #[track_caller]
    pub fn copy<D: Destination + ?Sized>(&'scope self, dst: &'scope mut D, src: &[u8]) {
        check_lengths(dst.len_bytes(), src.len());
        // SAFETY: both come from references, of equal length, one of them exclusive until the
        // batch has fenced.
        unsafe { self.copy_raw(dst.as_mut_ptr(), src.as_ptr(), src.len()) }
    }

    /// Writes zero to all of `dst`, which stays borrowed until the batch has fenced.
    pub fn clear<D: Destination + ?Sized>(&'scope self, dst: &'scope mut D) {
        // SAFETY: the range comes from a reference, exclusive until the batch has fenced.
        unsafe { self.clear_raw(dst.as_mut_ptr(), dst.len_bytes()) }
    }

    /// Copies `len_bytes` from `src` to `dst`.
    ///
    /// # Safety
    ///
    /// - `src` is valid for reads and `dst` for writes of `len_bytes`; they do not overlap.
    /// - Nothing reads or writes the destination until the batch has ended, this thread included.
    pub unsafe fn copy_raw(&self, dst: *mut u8, src: *const u8, len_bytes: usize) {
        const SLOT: Slot = Slot::CopyNontemporal;
        let variant = policy::serving(SLOT, Gate::CopyNontemporal, len_bytes);
        // SAFETY: the slot copies; the rest is the caller's promise.
        unsafe { variant.run_copy_unfenced(dst, src, len_bytes) }
    }

    /// Writes zero to `len_bytes` at `dst`.
    ///
    /// # Safety
    ///
    /// - `dst` is valid for writes of `len_bytes`.
    /// - Nothing reads or writes the destination until the batch has ended, this thread included.
    pub unsafe fn clear_raw(&self, dst: *mut u8, len_bytes: usize) {
        const SLOT: Slot = Slot::ClearNontemporal;
        let variant = policy::serving(SLOT, Gate::ClearNontemporal, len_bytes);
        // SAFETY: the slot clears; the rest is the caller's promise.
        unsafe { variant.run_fill_unfenced(dst, 0, len_bytes) }
    }
}

/// Copies each pair's source to its destination, all around the cache under one fence. The
/// threshold looks at the sum of the lengths, as the pairs are one transfer.
///
/// # Panics
///
/// If the lengths of a pair differ. Nothing has been copied then.
#[track_caller]
pub fn copy_vectored_nontemporal(pairs: &mut [(&mut [u8], &[u8])]) {
    pairs.iter().for_each(|(dst, src)| check_lengths(dst.len(), src.len()));
    let total: usize = pairs.iter().map(|(_, src)| src.len()).fold(0, usize::saturating_add);
    let variant = policy::serving(Slot::CopyNontemporal, Gate::CopyNontemporal, total);
    let _fence = Fence;
    for (dst, src) in pairs {
        // SAFETY: the slot copies; both come from references, of equal length, one of them
        // exclusive, and nothing else touches them before the fence.
        unsafe { variant.run_copy_unfenced(dst.as_mut_ptr(), src.as_ptr(), src.len()) }
    }
}

/// Copies each pair's source to its destination, to be used soon.
///
/// # Panics
///
/// If the lengths of a pair differ. Nothing has been copied then.
#[track_caller]
pub fn copy_vectored(pairs: &mut [(&mut [u8], &[u8])]) {
    pairs.iter().for_each(|(dst, src)| check_lengths(dst.len(), src.len()));
    for (dst, src) in pairs {
        crate::bytes::copy(&mut **dst, src);
    }
}
