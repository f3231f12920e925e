//! The routines: assembly per architecture, and plain Rust where there is none.
//!
//! Each architecture's module holds its assembly and, next to it, the registry rows that
//! describe it ([`Variant`](crate::variant::Variant)). Which module is compiled is decided here
//! and nowhere else. Miri and the sanitizers cannot see into assembly: under `cfg(miri)` and
//! `--cfg cachewise_portable` only the plain Rust rows exist.

use core::sync::atomic::AtomicUsize;

mod portable;

/// Whether this build has assembly: the one place that says so. The assembly uses ELF directives
/// and the platform's C calling convention. `cachewise_armv7` is set by `build.rs`.
macro_rules! if_assembly {
    ({ $($yes:item)* } else { $($no:item)* }) => {
        $(#[cfg(all(
            any(
                all(target_arch = "x86_64", target_pointer_width = "64"),
                target_arch = "x86",
                all(target_arch = "aarch64", target_pointer_width = "64", target_endian = "little"),
                cachewise_armv7,
            ),
            any(unix, target_os = "none"),
            not(target_vendor = "apple"),
            not(miri),
            not(cachewise_portable),
        ))] $yes)*
        $(#[cfg(not(all(
            any(
                all(target_arch = "x86_64", target_pointer_width = "64"),
                target_arch = "x86",
                all(target_arch = "aarch64", target_pointer_width = "64", target_endian = "little"),
                cachewise_armv7,
            ),
            any(unix, target_os = "none"),
            not(target_vendor = "apple"),
            not(miri),
            not(cachewise_portable),
        )))] $no)*
    };
}

if_assembly! {
    {
        #[macro_use]
        mod assembly;
        #[cfg_attr(target_arch = "x86_64", path = "x86_64/mod.rs")]
        #[cfg_attr(target_arch = "aarch64", path = "aarch64/mod.rs")]
        #[cfg_attr(target_arch = "arm", path = "arm/mod.rs")]
        #[cfg_attr(target_arch = "x86", path = "x86/mod.rs")]
        mod native;
        pub(crate) use assembly::{Accessed, WordRoutine, exception_table};
        #[cfg(all(feature = "std", target_os = "linux"))]
        pub(crate) use native::context;
        pub(crate) use native::word;
    } else {
        #[path = "portable.rs"]
        mod native;
    }
}

pub(crate) use native::{BLOCK_BYTES, ROWS, call_clear, call_copy, fence, walk};
pub(crate) use portable::{CLEAR as PORTABLE_CLEAR, COPY as PORTABLE_COPY};

/// The line that routines which go line by line take for granted: the shortest of any CPU, once it
/// is known. Correctness does not depend on it.
pub(crate) static LINE_BYTES: AtomicUsize = AtomicUsize::new(crate::cpu::DEFAULT_LINE_BYTES);

/// Whether there are other rows than the plain Rust ones.
pub(crate) const HAS_ASSEMBLY: bool = ROWS.len() > 2;

/// What a routine hands back: how much is left, and what stopped it.
///
/// `left_bytes` is 0 unless a fault was recovered on the way. The prefix of `len - left_bytes`
/// bytes is then complete and the rest unspecified.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) left_bytes: usize,
    pub(crate) stopped_by: usize,
}

#[allow(dead_code, reason = "plain Rust never stops")]
impl Outcome {
    /// All bytes were done.
    pub(crate) const DONE: Self = Self { left_bytes: 0, stopped_by: Self::NOTHING };
    /// A fault was recovered but did not repeat: call again for the bytes left.
    pub(crate) const NOTHING: usize = 0;
    /// The first byte left cannot be read from the source.
    pub(crate) const SOURCE: usize = 1;
    /// The first byte left cannot be written to the destination.
    pub(crate) const DESTINATION: usize = 2;
    /// Above the side, what the fault handler said of the cause.
    pub(crate) const CAUSE_SHIFT: usize = 8;
    /// The cause of poisoned memory: the one that the routines themselves know.
    pub(crate) const POISON: usize = 6;

    pub(crate) const fn returned(self) -> Returned {
        #[cfg(target_pointer_width = "64")]
        return self;
        #[cfg(not(target_pointer_width = "64"))]
        return self.left_bytes as u64 | (self.stopped_by as u64) << 32;
    }

    pub(crate) const fn from_returned(returned: Returned) -> Self {
        #[cfg(target_pointer_width = "64")]
        return returned;
        #[cfg(not(target_pointer_width = "64"))]
        return Self {
            left_bytes: returned as u32 as usize,
            stopped_by: (returned >> 32) as usize,
        };
    }
}

/// How a routine returns its [`Outcome`]: in two registers. The conventions of 32-bit systems return
/// a structure through memory, and a `u64` in two registers.
#[cfg(target_pointer_width = "64")]
pub(crate) type Returned = Outcome;
#[cfg(not(target_pointer_width = "64"))]
pub(crate) type Returned = u64;

/// Copies `len` bytes from `src` to `dst`, which do not overlap.
pub(crate) type CopyRoutine =
    unsafe extern "C" fn(dst: *mut u8, src: *const u8, len: usize) -> Returned;

/// Fills `len` bytes at `dst` with the byte that `pattern` repeats eight times.
pub(crate) type ClearRoutine =
    unsafe extern "C" fn(dst: *mut u8, pattern: u64, len: usize) -> Returned;

/// The byte repeated eight times, as the clearing routines take it.
#[inline(always)]
pub(crate) const fn pattern(value: u8) -> u64 {
    u64::from_ne_bytes([value; 8])
}
