//! What this CPU can do, what the operating system lets it do, and how its caches are built.
//!
//! All of it is read through a [`Reader`], so a test replays a Pentium II on a machine that never
//! saw one, and a kernel answers for itself what user space may take for granted.
//!
//! - [`Cpu`]: identity and [`Features`]. The operating system's part counts as much as the CPU's:
//!   an AVX instruction faults when XCR0 does not hold the AVX state, and an SSE instruction when
//!   CR4.OSFXSR is clear. Build flags say nothing about either, so nothing here asks them.
//! - [`Geometry`]: sizes and line lengths, each with the [`Source`] that claimed it. CPUID has four
//!   ways to describe a cache, hypervisors forge all of them, and a threshold computed from a zero
//!   would turn every copy into a non-temporal one. So a claim that cannot be true is replaced by a
//!   default that says it is one, and listed among the [doubts](Geometry::doubts).
//!
//! Family, model and stepping are for display. Instructions that were slow on one generation were
//! fast on the next, so no choice in this crate may depend on them.
//!
//! Manuals: Intel SDM volume 2A, CPUID (leaves 1, 2, 4, 7, 0Bh, 1Fh) and volume 1, chapter 13
//! (XCR0); AMD APM volume 3, appendix E (leaves 8000_0001h to 8000_001Dh). The decoding is plain
//! arithmetic and compiles everywhere; on a target without CPUID, [`Native`] answers it with zero:
//! no features and default geometry. An Arm CPU is asked as [`Arm`] says.

mod arm;
mod features;
mod geometry;
mod reader;
#[cfg(feature = "std")]
mod sysfs;
#[cfg(test)]
mod tests;
mod x86;

pub use arm::Arm;
pub use features::Features;
pub(crate) use geometry::DEFAULT_LINE_BYTES;
pub use geometry::{Cache, Cause, Doubt, Fact, Field, Geometry, Kind, Level, Source};
pub use reader::{Native, Reader, Registers};

use core::fmt;

/// Where [`Native`]'s features come from, for display.
pub const FEATURES_SOURCE: &str = if cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
    "cpuid and xgetbv"
} else if cfg!(any(target_arch = "aarch64", target_arch = "arm")) {
    "auxiliary vector"
} else {
    "nothing"
};

/// One CPU as its [`Reader`] described it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// What the CPU says it has.
    pub has: Features,
    /// What the CPU has *and* the operating system enabled: the only set to choose code by.
    pub usable: Features,
    /// Whether a hypervisor announces itself. Its claims about caches deserve doubt.
    pub hypervisor: bool,
    /// For display only.
    pub family: u16,
    /// For display only.
    pub model: u16,
    /// For display only.
    pub stepping: u8,
    vendor: Text<12>,
    brand: Text<48>,
}

impl Cpu {
    /// Reads identity and features.
    pub fn detect(reader: &impl Reader) -> Self {
        let mut cpu = x86::detect(reader);
        if let Some(arm) = reader.arm() {
            // Linux announces only what a program may use.
            cpu.has = cpu.has.union(arm.features());
            cpu.usable = cpu.usable.union(arm.features());
        }
        cpu
    }

    /// The vendor as the CPU spells it (`GenuineIntel`); empty where nothing tells.
    pub fn vendor(&self) -> &str {
        self.vendor.as_str()
    }

    /// The brand string without its padding; empty where the CPU has none (a Pentium III).
    pub fn brand(&self) -> &str {
        self.brand.as_str()
    }

    /// What keeps code with these `needs` from running here, or `None` when it can run.
    pub fn missing(&self, needs: Features) -> Option<Missing> {
        let missing = Missing {
            lacking: needs.without(self.has),
            not_enabled: needs.intersection(self.has).without(self.usable),
        };
        (!missing.lacking.union(missing.not_enabled).is_empty()).then_some(missing)
    }
}

/// Why code cannot run on this CPU, as the clause of a sentence: `needs avx512f, which this CPU
/// lacks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Needed, and the CPU does not have it.
    pub lacking: Features,
    /// Needed, and the CPU has it, but the operating system does not save its registers.
    pub not_enabled: Features,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("needs ")?;
        if !self.lacking.is_empty() {
            write!(f, "{}, which this CPU lacks", self.lacking)?;
        }
        if !self.not_enabled.is_empty() {
            if !self.lacking.is_empty() {
                f.write_str(", and ")?;
            }
            write!(
                f,
                "{}, which this CPU has but the operating system has not enabled",
                self.not_enabled
            )?;
        }
        Ok(())
    }
}

/// Up to `N` printable ASCII bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text<const N: usize> {
    bytes: [u8; N],
    len_bytes: usize,
}

impl<const N: usize> Text<N> {
    /// Takes what stands before the first NUL, without surrounding spaces. A forged brand string
    /// may hold anything, so what is not printable ASCII becomes `?`.
    pub(crate) fn new(raw: [u8; N]) -> Self {
        let end = raw.iter().position(|&byte| byte == 0).unwrap_or(N);
        let mut bytes = [0; N];
        let mut len_bytes = 0;
        for (to, &from) in bytes.iter_mut().zip(raw[..end].trim_ascii()) {
            *to = if from == b' ' || from.is_ascii_graphic() { from } else { b'?' };
            len_bytes += 1;
        }
        Self { bytes, len_bytes }
    }

    pub(crate) fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.len_bytes]).unwrap_or("")
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
