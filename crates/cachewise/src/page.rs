//! Whole pages: what an allocator, a pager or a kernel clears and copies.
//!
//! The plain functions are for a page about to be used, as after a page fault: there ordinary
//! stores are best almost always (seeds rows M5, F1). The `_nontemporal` ones are for pages that
//! this CPU does not touch soon. Each page slot is switched apart from the others.

use crate::bytes::{copy_around, fill_around};
use crate::destination::Destination;
use crate::policy::Gate;
use crate::switch::{self, Slot};
use core::mem::MaybeUninit;

/// A page of `SIZE` bytes: 4 KiB unless said otherwise; kernels with 16 and 64 KiB pages exist.
///
/// Aligned to 4 KiB, the least common to all sizes. `SIZE` is a power of two from 4 KiB on.
#[repr(C, align(4096))]
#[derive(Clone)]
pub struct Page<const SIZE: usize = 4096>([u8; SIZE]);

impl<const SIZE: usize> Page<SIZE> {
    const IS_A_PAGE: () = assert!(
        SIZE.is_power_of_two() && SIZE >= 4096,
        "the size of a page is a power of two from 4096 on"
    );

    /// The length of a page.
    pub const SIZE_BYTES: usize = {
        let () = Self::IS_A_PAGE;
        SIZE
    };

    /// A page of zeros.
    pub const fn zeroed() -> Self {
        let () = Self::IS_A_PAGE;
        Self([0; SIZE])
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &[u8; SIZE] {
        &self.0
    }

    /// The bytes, to write.
    pub const fn as_mut_bytes(&mut self) -> &mut [u8; SIZE] {
        &mut self.0
    }
}

impl<const SIZE: usize> core::fmt::Debug for Page<SIZE> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Page<{SIZE}>")
    }
}

// SAFETY: a page is its bytes: `repr(C)` with one field, and the alignment divides the size.
unsafe impl<const SIZE: usize> Destination for Page<SIZE> {
    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }
    fn len_bytes(&self) -> usize {
        Self::SIZE_BYTES
    }
}

/// A page to be written: initialised or not.
pub trait PageDestination<const SIZE: usize>: private::Sealed {
    /// The page's first byte, valid for writes of `SIZE`.
    #[doc(hidden)]
    fn page_ptr(&mut self) -> *mut Page<SIZE>;
}

impl<const SIZE: usize> PageDestination<SIZE> for Page<SIZE> {
    fn page_ptr(&mut self) -> *mut Page<SIZE> {
        self
    }
}

impl<const SIZE: usize> PageDestination<SIZE> for MaybeUninit<Page<SIZE>> {
    fn page_ptr(&mut self) -> *mut Page<SIZE> {
        self.as_mut_ptr()
    }
}

mod private {
    pub trait Sealed {}
    impl<const SIZE: usize> Sealed for super::Page<SIZE> {}
    impl<const SIZE: usize> Sealed for core::mem::MaybeUninit<super::Page<SIZE>> {}
}

/// Clears a page that is used soon, and gives it back, initialised.
///
/// ```
/// use cachewise::page::{Page, clear_page};
/// use core::mem::MaybeUninit;
///
/// let mut frame = MaybeUninit::<Page>::uninit();
/// assert_eq!(clear_page(&mut frame).as_bytes(), &[0; 4096]);
/// ```
pub fn clear_page<const SIZE: usize>(page: &mut impl PageDestination<SIZE>) -> &mut Page<SIZE> {
    let page = page.page_ptr();
    // SAFETY: the pointer comes from an exclusive reference to a page.
    unsafe { clear_page_raw(page.cast(), Page::<SIZE>::SIZE_BYTES) };
    // SAFETY: as above; all of it has been written.
    unsafe { &mut *page }
}

/// Clears a page that is not used soon, and gives it back, initialised. Fences.
pub fn clear_page_nontemporal<const SIZE: usize>(
    page: &mut impl PageDestination<SIZE>,
) -> &mut Page<SIZE> {
    let page = page.page_ptr();
    // SAFETY: the pointer comes from an exclusive reference to a page.
    unsafe { clear_page_nontemporal_raw(page.cast(), Page::<SIZE>::SIZE_BYTES) };
    // SAFETY: as above; all of it has been written.
    unsafe { &mut *page }
}

/// Copies a page to one that is used soon, and gives that back, initialised.
pub fn copy_page<'a, const SIZE: usize>(
    dst: &'a mut impl PageDestination<SIZE>,
    src: &Page<SIZE>,
) -> &'a mut Page<SIZE> {
    let dst = dst.page_ptr();
    let src = src.as_bytes().as_ptr();
    // SAFETY: both come from references to pages, one of them exclusive.
    unsafe { copy_page_raw(dst.cast(), src, Page::<SIZE>::SIZE_BYTES) };
    // SAFETY: as above; all of it has been written.
    unsafe { &mut *dst }
}

/// Copies a page to one that is not used soon, and gives that back, initialised. Fences.
pub fn copy_page_nontemporal<'a, const SIZE: usize>(
    dst: &'a mut impl PageDestination<SIZE>,
    src: &Page<SIZE>,
) -> &'a mut Page<SIZE> {
    let dst = dst.page_ptr();
    let src = src.as_bytes().as_ptr();
    // SAFETY: both come from references to pages, one of them exclusive.
    unsafe { copy_page_nontemporal_raw(dst.cast(), src, Page::<SIZE>::SIZE_BYTES) };
    // SAFETY: as above; all of it has been written.
    unsafe { &mut *dst }
}

/// Clears pages that are used soon.
pub fn clear_pages<const SIZE: usize>(pages: &mut [Page<SIZE>]) {
    let bytes = size_of_val(pages);
    // SAFETY: the range comes from an exclusive slice of pages.
    unsafe { clear_page_raw(pages.as_mut_ptr().cast(), bytes) }
}

/// Clears pages that are not used soon. One fence.
pub fn clear_pages_nontemporal<const SIZE: usize>(pages: &mut [Page<SIZE>]) {
    let bytes = size_of_val(pages);
    // SAFETY: the range comes from an exclusive slice of pages.
    unsafe { clear_page_nontemporal_raw(pages.as_mut_ptr().cast(), bytes) }
}

/// Clears the pages of a huge page. The one at `hot` is about to be used: it is cleared last and by
/// ordinary stores, the others around the cache.
///
/// # Panics
///
/// If `hot` is not the index of a page.
#[track_caller]
pub fn clear_huge<const SIZE: usize>(pages: &mut [Page<SIZE>], hot: usize) {
    let (before, rest) = pages.split_at_mut(hot);
    let (hot, after) = rest.split_first_mut().expect("the hot page is one of the pages");
    let cold_bytes = size_of_val(before) + size_of_val(after);
    for cold in [before, after] {
        let bytes = size_of_val(cold);
        // SAFETY: the range comes from an exclusive slice of pages.
        unsafe { clear_around(cold.as_mut_ptr().cast(), bytes, cold_bytes) };
    }
    clear_page(hot);
}

/// Clears whole pages, used soon.
///
/// # Safety
///
/// `pages` is aligned to 4096 and valid for writes of `len_bytes`, a multiple of 4096.
#[inline]
pub unsafe fn clear_page_raw(pages: *mut u8, len_bytes: usize) {
    // SAFETY: the caller's promise; the slot clears.
    unsafe { switch::serving(Slot::ClearPage).run_fill(pages, 0, len_bytes) }
}

/// Clears whole pages, not used soon. Fences.
///
/// # Safety
///
/// As [`clear_page_raw`].
#[inline]
pub unsafe fn clear_page_nontemporal_raw(pages: *mut u8, len_bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { clear_around(pages, len_bytes, len_bytes) }
}

/// # Safety
///
/// As [`clear_page_raw`].
#[inline(always)]
unsafe fn clear_around(pages: *mut u8, len_bytes: usize, total_bytes: usize) {
    const SLOT: Slot = Slot::ClearPageNontemporal;
    // SAFETY: the caller's promise.
    unsafe { fill_around(SLOT, Gate::ClearPageNontemporal, total_bytes, pages, 0, len_bytes) }
}

/// Copies whole pages to ones that are used soon.
///
/// # Safety
///
/// - Both are aligned to 4096, and `len_bytes` is a multiple of it.
/// - `src` is valid for reads and `dst` for writes of `len_bytes`, and they do not overlap.
#[inline]
pub unsafe fn copy_page_raw(dst: *mut u8, src: *const u8, len_bytes: usize) {
    // SAFETY: the caller's promise; the slot copies.
    unsafe { switch::serving(Slot::CopyPage).run_copy(dst, src, len_bytes) }
}

/// Copies whole pages to ones that are not used soon. Fences.
///
/// # Safety
///
/// As [`copy_page_raw`].
#[inline]
pub unsafe fn copy_page_nontemporal_raw(dst: *mut u8, src: *const u8, len_bytes: usize) {
    const SLOT: Slot = Slot::CopyPageNontemporal;
    const GATE: Gate = Gate::CopyPageNontemporal;
    // SAFETY: the caller's promise.
    unsafe { copy_around(SLOT, GATE, false, len_bytes, dst, src, len_bytes) }
}
