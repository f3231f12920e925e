//! Memory whose pages are there or not, one by one, and the model of what a copy over it comes to.
//!
//! Each area is a file in memory mapped twice: as the code under test sees it, with holes, and as
//! the test does, whole. So contents can be prepared and compared whatever the protection.
//!
//! The model knows nothing of blocks, registers or retries: a copy goes byte by byte, loads before
//! it stores, and stops at the first byte that can't be loaded or stored.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part of this")]

use crate::common::Rng;
use cachewise::fallible::{Cause, Fault, Side};
use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Of x86; the least of Arm.
pub const PAGE: usize = 4096;
pub const PAGES: usize = 16;
pub const AREA: usize = PAGES * PAGE;
const MARGIN: usize = 256;

/// Of a pointer that is no address: only x86-64 tells it apart.
pub const NON_CANONICAL: Cause =
    if cfg!(target_arch = "x86_64") { Cause::NonCanonical } else { Cause::Unmapped };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    ReadWrite,
    ReadOnly,
    NoAccess,
    Unmapped,
    BeyondEnd,
}

impl Kind {
    pub const ALL: [Self; 5] =
        [Self::ReadWrite, Self::ReadOnly, Self::NoAccess, Self::Unmapped, Self::BeyondEnd];

    pub fn refuses_read(self) -> Option<Cause> {
        match self {
            Self::ReadWrite | Self::ReadOnly => None,
            Self::NoAccess => Some(Cause::Protection),
            Self::Unmapped => Some(Cause::Unmapped),
            Self::BeyondEnd => Some(Cause::BeyondEndOfFile),
        }
    }

    pub fn refuses_write(self) -> Option<Cause> {
        if self == Self::ReadOnly { Some(Cause::Protection) } else { self.refuses_read() }
    }
}

/// A file in memory.
pub fn memory_file(len: usize) -> File {
    // SAFETY: a valid C string.
    let fd = unsafe { libc::memfd_create(c"cachewise-test".as_ptr(), libc::MFD_CLOEXEC) };
    assert!(fd >= 0, "memfd_create: {}", std::io::Error::last_os_error());
    // SAFETY: nobody else owns it.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len(len as u64).expect("a file in memory can be sized");
    file
}

/// Maps `len` bytes of the file, at `at` if that isn't null.
pub fn map(at: *mut u8, len: usize, protection: i32, file: &File, offset: usize) -> *mut u8 {
    let fixed = if at.is_null() { 0 } else { libc::MAP_FIXED };
    let (flags, fd) = (libc::MAP_SHARED | fixed, file.as_raw_fd());
    // SAFETY: a new mapping, or one that replaces a part of the caller's.
    let map = unsafe { libc::mmap(at.cast(), len, protection, flags, fd, offset as libc::off_t) };
    assert!(map != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
    map.cast()
}

/// Where the next area goes: far below what the kernel hands out by itself, so that nobody else's
/// mapping lands in a hole. Of 32 bits there are fewer: an area that is gone makes room again.
fn next_place() -> *mut u8 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let next = NEXT.fetch_add(1, Relaxed);
    if cfg!(target_pointer_width = "64") {
        (0x1000_0000_0000_u64 as usize).wrapping_add(next << 30) as *mut u8
    } else {
        (0x1000_0000 + next % 0x200 * (16 * AREA)) as *mut u8
    }
}

pub struct Area {
    seen: *mut u8,
    whole: *mut u8,
    kinds: [Kind; PAGES],
    memory: File,
    empty: File,
}

impl Area {
    pub fn new() -> Self {
        let (memory, empty) = (memory_file(AREA), memory_file(0));
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let whole = map(null_mut(), AREA, both, &memory, 0);
        let seen = map(next_place(), AREA, both, &memory, 0);
        Self { seen, whole, kinds: [Kind::ReadWrite; PAGES], memory, empty }
    }

    pub fn set(&mut self, page: usize, kind: Kind) {
        let old = std::mem::replace(&mut self.kinds[page], kind);
        if old == kind {
            return;
        }
        let at = self.seen.wrapping_add(page * PAGE);
        let protection = match kind {
            Kind::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
            Kind::ReadOnly => libc::PROT_READ,
            Kind::NoAccess => libc::PROT_NONE,
            Kind::BeyondEnd => {
                map(at, PAGE, libc::PROT_READ | libc::PROT_WRITE, &self.empty, 0);
                return;
            }
            Kind::Unmapped => {
                // SAFETY: a page of our own mapping, to which no reference exists.
                unsafe { libc::munmap(at.cast(), PAGE) };
                return;
            }
        };
        if matches!(old, Kind::Unmapped | Kind::BeyondEnd) {
            map(at, PAGE, protection, &self.memory, page * PAGE);
        } else {
            // SAFETY: as above.
            let result = unsafe { libc::mprotect(at.cast(), PAGE, protection) };
            assert!(result == 0, "mprotect: {}", std::io::Error::last_os_error());
        }
    }

    /// The pages, for a thread that takes them away while others copy.
    pub fn pages(&self) -> Pages {
        let memory = self.memory.try_clone().expect("the file can be had twice");
        Pages { seen: self.seen.expose_provenance(), memory }
    }

    pub fn set_all(&mut self, kinds: impl Fn(usize) -> Kind) {
        (0..PAGES).for_each(|page| self.set(page, kinds(page)));
    }

    pub fn at(&self, offset: usize) -> *mut u8 {
        self.seen.wrapping_add(offset)
    }

    /// The contents, also of the pages that can't be seen.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: mapped and initialised by the kernel, never unmapped; nothing writes meanwhile.
        unsafe { std::slice::from_raw_parts(self.whole, AREA) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.whole, AREA) }
    }

    fn first_refused(
        &self,
        range: Range<usize>,
        refuses: fn(Kind) -> Option<Cause>,
    ) -> Option<(usize, Cause)> {
        let mut at = range.start;
        while at < range.end {
            if let Some(cause) = refuses(self.kinds[at / PAGE]) {
                return Some((at - range.start, cause));
            }
            at = (at / PAGE + 1) * PAGE;
        }
        None
    }

    /// How far from the range's start reading fails, and why.
    pub fn refused_read(&self, range: Range<usize>) -> Option<(usize, Cause)> {
        self.first_refused(range, Kind::refuses_read)
    }

    /// The same for writing.
    pub fn refused_write(&self, range: Range<usize>) -> Option<(usize, Cause)> {
        self.first_refused(range, Kind::refuses_write)
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        for map in [self.seen, self.whole] {
            // SAFETY: our own mapping, which nobody borrows any more; holes are allowed.
            unsafe { libc::munmap(map.cast(), AREA) };
        }
    }
}

/// An area's pages, changed without the area's knowledge: put all of them back.
pub struct Pages {
    seen: usize,
    memory: File,
}

impl Pages {
    fn at(&self, page: usize) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.seen + page * PAGE)
    }

    pub fn map(&self, page: usize) {
        map(self.at(page), PAGE, libc::PROT_READ | libc::PROT_WRITE, &self.memory, page * PAGE);
    }

    pub fn unmap(&self, page: usize) {
        // SAFETY: a page of the area's mapping, to which no reference exists.
        unsafe { libc::munmap(self.at(page).cast(), PAGE) };
    }

    pub fn allow(&self, page: usize, allowed: bool) {
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let protection = if allowed { both } else { libc::PROT_NONE };
        // SAFETY: as above.
        unsafe { libc::mprotect(self.at(page).cast(), PAGE, protection) };
    }
}

/// Offsets into the two areas, and a length.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub dst: usize,
    pub src: usize,
    pub len: usize,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dst, src, len } = self;
        write!(f, "{len} bytes, dst offset {dst:#x}, src offset {src:#x}")
    }
}

/// What a call must come to, and must have been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    pub copied: usize,
    pub side: Side,
    pub cause: Cause,
}

/// Compares a result with the model's.
#[track_caller]
pub fn check_result(
    subject: &str,
    len: usize,
    expected: Option<Stop>,
    result: Result<(), Fault>,
    case: &dyn fmt::Debug,
) {
    let found = result.err().map(|fault| {
        assert_eq!(
            fault.copied_bytes() + fault.residue_bytes(),
            len,
            "{subject}: {case:?}: copied and left add up"
        );
        assert!(fault.is_maximal(), "{subject}: {case:?}: {fault}");
        Stop { copied: fault.copied_bytes(), side: fault.side(), cause: fault.cause() }
    });
    assert_eq!(found, expected, "{subject}: {case:?}: found (left), expected (right)");
}

/// What a copy promises of the rest of the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    Unspecified,
    Zeroed,
}

/// A destination, a source, and the expectation.
pub struct Stage {
    pub dst: Area,
    pub src: Area,
    pattern: Vec<u8>,
    /// The complement of the pattern, three times in a row.
    complement: Vec<u8>,
}

impl Stage {
    pub fn new() -> Self {
        let mut src = Area::new();
        Rng::new(0xfa017).fill(src.bytes_mut());
        let pattern = src.bytes().to_vec();
        let once: Vec<u8> = pattern.iter().map(|byte| !byte).collect();
        Self { dst: Area::new(), src, pattern, complement: once.repeat(3) }
    }

    pub fn all_there(&mut self) {
        self.dst.set_all(|_| Kind::ReadWrite);
        self.src.set_all(|_| Kind::ReadWrite);
    }

    pub fn pattern(&self) -> &[u8] {
        &self.pattern
    }

    pub fn predict_copy(&self, Case { dst, src, len }: Case) -> Option<Stop> {
        let stop = |side, (copied, cause)| Stop { copied, side, cause };
        let read = self.src.refused_read(src..src + len).map(|at| stop(Side::Source, at));
        let write = self.dst.refused_write(dst..dst + len).map(|at| stop(Side::Destination, at));
        match (read, write) {
            (Some(read), Some(write)) if write.copied < read.copied => Some(write),
            (Some(read), _) => Some(read),
            (None, write) => write,
        }
    }

    pub fn predict_fill(&self, dst: usize, len: usize) -> Option<Stop> {
        let stop = |(copied, cause)| Stop { copied, side: Side::Destination, cause };
        self.dst.refused_write(dst..dst + len).map(stop)
    }

    /// Runs `call(dst, src, len)` and checks result and memory.
    #[track_caller]
    pub fn copy(
        &mut self,
        subject: &str,
        case: Case,
        tail: Tail,
        call: impl FnOnce(*mut u8, *const u8, usize) -> Result<(), Fault>,
    ) {
        let stop = self.predict_copy(case);
        self.prepare_copy(case);
        let result = call(self.dst.at(case.dst), self.src.at(case.src), case.len);
        check_result(subject, case.len, stop, result, &case);
        self.check_copy(subject, case, tail, stop);
    }

    /// The complement of what a copy would write, also around it.
    pub fn prepare_copy(&mut self, case: Case) {
        let window = window(case.dst, case.len);
        let from = AREA + case.src - case.dst;
        let complement = &self.complement[window.start + from..window.end + from];
        self.dst.bytes_mut()[window].copy_from_slice(complement);
    }

    #[track_caller]
    pub fn check_copy(&self, subject: &str, case: Case, tail: Tail, stop: Option<Stop>) {
        let Case { dst, src, len } = case;
        let copied = stop.map_or(len, |stop| stop.copied);
        let found = &self.dst.bytes()[dst..dst + len];
        same(subject, case, "prefix", &found[..copied], &self.pattern[src..src + copied]);
        let window = window(dst, len);
        let from = AREA + src - dst;
        for (name, part) in [("before", window.start..dst), ("behind", dst + len..window.end)] {
            let complement = &self.complement[part.start + from..part.end + from];
            same(subject, case, name, &self.dst.bytes()[part], complement);
        }
        if tail == Tail::Zeroed && stop.is_some_and(|stop| stop.side == Side::Source) {
            let rest = dst + copied..dst + len;
            let zeroed = self.dst.refused_write(rest.clone()).map_or(rest.len(), |(at, _)| at);
            let zeroes = vec![0; zeroed];
            same(subject, case, "zeroed tail", &found[copied..copied + zeroed], &zeroes);
        }
    }

    /// Runs `call(dst, len)`, which fills with `value`, and checks result and memory.
    #[track_caller]
    pub fn fill(
        &mut self,
        subject: &str,
        (dst, len): (usize, usize),
        value: u8,
        call: impl FnOnce(*mut u8, usize) -> Result<(), Fault>,
    ) {
        let case = Case { dst, src: 0, len };
        let window = window(dst, len);
        self.dst.bytes_mut()[window.clone()].fill(!value);
        let stop = self.predict_fill(dst, len);
        check_result(subject, len, stop, call(self.dst.at(dst), len), &case);
        let copied = stop.map_or(len, |stop| stop.copied);
        let all = |part: Range<usize>, name: &str, byte: u8| {
            let wrong = self.dst.bytes()[part].iter().position(|&found| found != byte);
            assert_eq!(wrong, None, "{subject}: {case}: wrong in {name}");
        };
        all(window.start..dst, "before", !value);
        all(dst..dst + copied, "prefix", value);
        all(dst + len..window.end, "behind", !value);
    }

    /// Nobody wrote to the source.
    #[track_caller]
    pub fn check_source(&self) {
        assert!(self.src.bytes() == self.pattern, "the source has been written to");
    }
}

fn window(dst: usize, len: usize) -> Range<usize> {
    dst.saturating_sub(MARGIN)..(dst + len + MARGIN).min(AREA)
}

#[track_caller]
fn same(subject: &str, case: Case, part: &str, found: &[u8], expected: &[u8]) {
    if found != expected {
        let at = found.iter().zip(expected).position(|(a, b)| a != b);
        panic!("{subject}: {case}: {part} differs at {at:?} of {}", expected.len());
    }
}
