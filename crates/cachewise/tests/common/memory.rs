//! Memory with an unmapped page on either side (case 7: over-reads next to an unmapped page).

use std::ops::{Deref, DerefMut};

/// Bytes whose first and last lie directly next to pages that cannot be touched. Page-aligned.
pub struct Guarded {
    first: *mut u8,
    len_bytes: usize,
}

// SAFETY: it owns its memory, as a `Vec` does.
unsafe impl Send for Guarded {}

impl Deref for Guarded {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: mapped, initialised by the kernel or allocator, owned by `self`.
        unsafe { std::slice::from_raw_parts(self.first, self.len_bytes) }
    }
}

impl DerefMut for Guarded {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.first, self.len_bytes) }
    }
}

/// A multiple of the page size of every system the tests run on.
pub const EDGE_BYTES: usize = 1 << 16;

fn round_up(len_bytes: usize) -> usize {
    len_bytes.next_multiple_of(EDGE_BYTES)
}

#[cfg(all(unix, not(miri)))]
impl Guarded {
    /// Zeroed; the length is rounded up to whole pages.
    pub fn new(len_bytes: usize) -> Self {
        let len_bytes = round_up(len_bytes);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let whole = len_bytes + 2 * EDGE_BYTES;
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), whole, libc::PROT_NONE, flags, -1, 0) };
        assert!(map != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
        // SAFETY: inside the mapping.
        let first = unsafe { map.cast::<u8>().add(EDGE_BYTES) };
        let guarded = Self { first, len_bytes };
        guarded.protect(libc::PROT_READ | libc::PROT_WRITE);
        guarded
    }

    /// From here on a write to it ends the process.
    pub fn make_read_only(&mut self) {
        self.protect(libc::PROT_READ);
    }

    fn protect(&self, protection: i32) {
        // SAFETY: the range is part of our own mapping, and no reference to it is alive but ours.
        let result = unsafe { libc::mprotect(self.first.cast(), self.len_bytes, protection) };
        assert!(result == 0, "mprotect: {}", std::io::Error::last_os_error());
    }
}

#[cfg(all(unix, not(miri)))]
impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping begins one edge below `first`.
        let map = unsafe { self.first.sub(EDGE_BYTES) };
        // SAFETY: exactly our mapping, which nobody borrows any more.
        unsafe { libc::munmap(map.cast(), self.len_bytes + 2 * EDGE_BYTES) };
    }
}

/// Without `mmap` there are no guards; Miri checks the bounds itself.
#[cfg(not(all(unix, not(miri))))]
impl Guarded {
    pub fn new(len_bytes: usize) -> Self {
        let len_bytes = round_up(len_bytes);
        // SAFETY: the layout is not empty.
        let first = unsafe { std::alloc::alloc_zeroed(Self::layout(len_bytes)) };
        assert!(!first.is_null(), "out of memory");
        Self { first, len_bytes }
    }

    pub fn make_read_only(&mut self) {}

    fn layout(len_bytes: usize) -> std::alloc::Layout {
        std::alloc::Layout::from_size_align(len_bytes, EDGE_BYTES).expect("a valid layout")
    }
}

#[cfg(not(all(unix, not(miri))))]
impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { std::alloc::dealloc(self.first, Self::layout(self.len_bytes)) }
    }
}
