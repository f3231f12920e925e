//! Memory of our own, so that a case begins with pages nobody has used: mmap(2), anonymous.
//!
//! # Safety
//!
//! A [`Mapping`] owns its pages until it is dropped, and lends them out under the borrow rules.

use crate::Error;
use crate::case::Page;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ptr::NonNull;
use std::slice;

pub(crate) struct Mapping {
    start: NonNull<u8>,
    len_bytes: usize,
    /// Where it begins to be used.
    first: usize,
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
            Some(start) => Ok(Self { start, len_bytes, first: 0 }),
            // Without an address to map at, the kernel never picks the null page.
            None => Err(Error::Map { len_bytes, source: std::io::ErrorKind::OutOfMemory.into() }),
        }
    }

    /// As [`Mapping::new`], in pages of this size. Whether huge ones came can be asked with
    /// [`Mapping::is_huge`] once they were touched.
    pub(crate) fn in_pages(len_bytes: usize, page: Page) -> Result<Self, Error> {
        let (len_bytes, advice) = match page {
            Page::Base => (len_bytes, Advice::LinuxNoHugepage),
            // Wherever it is mapped, so many bytes of it are whole huge pages.
            Page::Huge => (len_bytes.saturating_add(2 * HUGE_BYTES), Advice::LinuxHugepage),
        };
        let mut mapping = Self::new(len_bytes)?;
        // SAFETY: the advice changes the size of the pages of our own memory, not what is in them.
        let advised = unsafe { madvise(mapping.start.as_ptr().cast(), mapping.len_bytes, advice) };
        // A kernel built without huge pages knows neither advice, and has only small ones.
        match (advised, page) {
            (Err(_), Page::Huge) => return Err(Error::HugePages),
            (_, Page::Huge) => {
                mapping.first = mapping.start.as_ptr().align_offset(HUGE_BYTES);
            }
            (_, Page::Base) => {}
        }
        Ok(mapping)
    }

    /// Whether all its whole huge pages are huge, as `/proc/self/smaps` says (proc_pid_smaps(5)).
    pub(crate) fn is_huge(&self) -> bool {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let start = self.start.as_ptr().addr() + self.first;
        let whole = (self.len_bytes - self.first) / HUGE_BYTES * HUGE_BYTES;
        // The kernel may have joined it with its neighbours: the mapping around it counts.
        huge_bytes_around(&smaps, start) >= whole
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr().wrapping_add(self.first)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        let start = self.start.as_ptr().wrapping_add(self.first);
        // SAFETY: the mapping is readable for `len_bytes`, initialised by the kernel, and borrowed
        // as long as the slice; `first` lies within it.
        unsafe { slice::from_raw_parts(start, self.len_bytes - self.first) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.as_mut_ptr(), self.len_bytes - self.first) }
    }
}

const HUGE_BYTES: usize = 2 << 20;

/// `AnonHugePages` of the mapping that this address lies in.
fn huge_bytes_around(smaps: &str, address: usize) -> usize {
    let mut inside = false;
    for line in smaps.lines() {
        let word = line.split(' ').next().unwrap_or_default();
        if let Some((from, to)) = word.split_once('-') {
            let parse = |hex| usize::from_str_radix(hex, 16).unwrap_or(0);
            inside = (parse(from)..parse(to)).contains(&address);
        } else if let (true, Some(kib)) = (inside, line.strip_prefix("AnonHugePages:")) {
            let kib = kib.trim().trim_end_matches("kB").trim();
            return kib.parse::<usize>().unwrap_or(0) << 10;
        }
    }
    0
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new` and no borrow of it is left. An error would mean
        // that it is not mapped, and then there is nothing to give back.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_found_by_address() {
        let smaps = "1000-2000 rw-p 0 00:00 0 \nRss: 4 kB\nAnonHugePages:     0 kB\n\
                     2000-9000 rw-p 0 00:00 0 \nAnonHugePages:  2048 kB\n";
        assert_eq!(huge_bytes_around(smaps, 0x1fff), 0);
        assert_eq!(huge_bytes_around(smaps, 0x2000), 2 << 20);
        assert_eq!(huge_bytes_around(smaps, 0x9000), 0);
    }

    #[test]
    fn small_pages_are_small() {
        let mut memory = Mapping::in_pages(8 << 20, Page::Base).unwrap();
        memory.bytes_mut().fill(1);
        assert!(!memory.is_huge());
    }
}
