//! Identity and features of an Arm CPU.
//!
//! There is no instruction that user space may ask. Linux hands out what a program may use as bits
//! in the auxiliary vector (getauxval(3), `AT_HWCAP` and `AT_HWCAP2`; Linux,
//! Documentation/arch/arm64/elf_hwcaps.rst), so a feature that is there is also enabled. Two
//! registers can be read on AArch64: CTR_EL0 for the lines and DCZID_EL0 for DC ZVA (Arm ARM
//! DDI 0487, D24.2). ARMv7 shows its cache type register to the kernel only; lines come from sysfs
//! or the device tree there.

#[cfg(feature = "std")]
pub(super) mod devicetree;

use super::geometry::Claims;
use super::{Features, Source};

/// What an Arm CPU, and its operating system, say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// AArch64.
    A64 {
        /// `AT_HWCAP`.
        hwcap: u64,
        /// `AT_HWCAP2`.
        hwcap2: u64,
        /// CTR_EL0, the cache type register.
        ctr: u64,
        /// DCZID_EL0, the data cache zero ID register.
        dczid: u64,
    },
    /// AArch32.
    A32 {
        /// `AT_HWCAP`.
        hwcap: u64,
        /// CTR, which has the same fields for the lines; only a kernel can read it.
        ctr: Option<u32>,
    },
}

/// AArch64 hwcaps, second word: FEAT_MOPS.
const A64_MOPS: u64 = 1 << 43;
/// AArch32 hwcaps: Advanced SIMD.
const A32_NEON: u64 = 1 << 12;
/// DCZID_EL0.DZP: DC ZVA is prohibited.
const DZP: u64 = 1 << 4;

impl Arm {
    /// AArch64 hwcaps: Advanced SIMD.
    pub(super) const A64_ASIMD: u64 = 1 << 1;

    pub(super) fn features(self) -> Features {
        let mut features = Features::empty();
        let mut add = |there: bool, feature: Features| {
            if there {
                features = features.union(feature);
            }
        };
        match self {
            Self::A64 { hwcap, hwcap2, dczid, .. } => {
                add(hwcap & Self::A64_ASIMD != 0, Features::NEON);
                add(hwcap2 & A64_MOPS != 0, Features::MOPS);
                add(dczid & DZP == 0, Features::DC_ZVA);
            }
            Self::A32 { hwcap, .. } => add(hwcap & A32_NEON != 0, Features::NEON),
        }
        features
    }

    /// The lines, from the cache type register: the smallest of all data caches, and the writeback
    /// granule, the most that a cache writes back at once. Linux makes the register tell the same on
    /// all CPUs.
    pub(super) fn claims(self) -> Claims {
        let mut claims = Claims::default();
        let ctr = match self {
            Self::A64 { ctr, .. } => Some(ctr),
            Self::A32 { ctr, .. } => ctr.map(u64::from),
        };
        if let Some(ctr) = ctr {
            let bytes = |log2_words: u64| 4_u32 << (log2_words & 0xf);
            claims.tell_line(bytes(ctr >> 16), Source::Ctr);
            // Zero: the register does not tell the granule.
            if ctr >> 24 & 0xf != 0 {
                claims.tell_line(bytes(ctr >> 24), Source::Ctr);
            }
        }
        claims
    }
}
