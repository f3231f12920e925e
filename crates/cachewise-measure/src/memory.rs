//! Memory of our own, so that a case begins with pages nobody has used: mmap(2), anonymous.
//!
//! # Safety
//!
//! A [`Mapping`] owns its pages until it is dropped, and lends them out under the borrow rules.

use crate::Error;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::ptr::NonNull;
use std::slice;

pub(crate) struct Mapping {
    start: NonNull<u8>,
    len_bytes: usize,
}

// SAFETY: the mapping is plain memory with one owner; no thread is special to it.
unsafe impl Send for Mapping {}

impl Mapping {
    /// At least one byte; whole pages, page-aligned.
    pub(crate) fn new(len_bytes: usize) -> Result<Self, Error> {
        let len_bytes = len_bytes.max(1);
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping where the kernel finds room touches no existing memory.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), len_bytes, prot, flags) }
            .map_err(|error| Error::Map { len_bytes, source: error.into() })?;
        match NonNull::new(start.cast()) {
            Some(start) => Ok(Self { start, len_bytes }),
            // Without an address to map at, the kernel never picks the null page.
            None => Err(Error::Map { len_bytes, source: std::io::ErrorKind::OutOfMemory.into() }),
        }
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is readable for `len_bytes`, initialised by the kernel, and borrowed
        // as long as the slice.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len_bytes) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len_bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new` and no borrow of it is left. An error would mean
        // that it is not mapped, and then there is nothing to give back.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len_bytes) };
    }
}
