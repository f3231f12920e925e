//! The set of CPU features this crate's routines can need.
//!
//! A plain `u64`, so that a registry row can hold its needs in a constant and a choice is one mask
//! test. Only features that some routine, or the choice between two routines, depends on are here:
//! this is not a list of all that CPUID knows.

use core::fmt;

/// A set of CPU features.
///
/// ```
/// use cachewise::cpu::Features;
///
/// let needs = Features::AVX512F.union(Features::AVX512VL);
/// assert!(needs.contains(Features::AVX512F));
/// assert_eq!(needs.to_string(), "avx512f and avx512vl");
/// assert_eq!(Features::from_name("movdir64b"), Some(Features::MOVDIR64B));
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Features(u64);

macro_rules! features {
    ($($(#[$doc:meta])* $constant:ident = $bit:literal, $name:literal;)*) => {
        impl Features {
            $($(#[$doc])* pub const $constant: Self = Self(1 << $bit);)*

            /// Every known feature in ascending order of its bit, with its name.
            const TABLE: &'static [(Self, &'static str)] = &[$((Self::$constant, $name),)*];
        }
    };
}

features! {
    /// MMX registers.
    MMX = 0, "mmx";
    /// `movntq`, `sfence` and `prefetchnta`: these came with SSE, and on the K7, which has no SSE,
    /// with AMD's extensions to MMX. They touch no xmm register, so they work whatever the
    /// operating system saves.
    MMXEXT = 1, "mmxext";
    /// xmm registers, `movaps`, `movntps`.
    SSE = 2, "sse";
    /// `movnti`, which came with SSE2 but touches general registers only: it works before, or
    /// without, any vector state being enabled (SDM volume 3, 13.1.3).
    MOVNTI = 3, "movnti";
    /// `movdqa`, `movntdq`.
    SSE2 = 4, "sse2";
    /// `movntdqa`, the non-temporal load.
    SSE4_1 = 5, "sse4_1";
    /// ymm registers.
    AVX = 6, "avx";
    /// Integer instructions on ymm registers.
    AVX2 = 7, "avx2";
    /// zmm and mask registers.
    AVX512F = 8, "avx512f";
    /// Masks by byte.
    AVX512BW = 9, "avx512bw";
    /// The AVX-512 instructions on xmm and ymm registers.
    AVX512VL = 10, "avx512vl";
    /// 4 and 8 byte direct stores.
    MOVDIRI = 11, "movdiri";
    /// 64 byte direct stores.
    MOVDIR64B = 12, "movdir64b";
    /// Clears one line, past the cache.
    CLZERO = 13, "clzero";
    /// `rep movsb` and `rep stosb` are fast when long.
    ERMS = 14, "erms";
    /// `rep movsb` is fast when short.
    FSRM = 15, "fsrm";
    /// `rep movsb` of zero length is fast.
    FZRM = 16, "fzrm";
    /// `rep stosb` is fast when short.
    FSRS = 17, "fsrs";
    /// Evicts a line, ordered.
    CLFLUSH = 18, "clflush";
    /// Evicts a line, weakly ordered.
    CLFLUSHOPT = 19, "clflushopt";
    /// Writes a line back and may keep it.
    CLWB = 20, "clwb";
    /// Arm: Advanced SIMD registers.
    NEON = 32, "neon";
    /// Arm: the memory-copy and memory-set instructions.
    MOPS = 33, "mops";
    /// Arm: `dc zva`, which clears a block, is allowed.
    DC_ZVA = 34, "dczva";
}

impl Features {
    /// No feature.
    pub const fn empty() -> Self {
        Self(0)
    }

    /// The set with these bits. A bit without a feature stays, and stands for a feature that no
    /// CPU has.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The bits, for storing; their meaning holds within one version of this crate.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether the set has no feature.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Features in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Features in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Features of `self` that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether every feature of `other` is here.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether at least one feature of `other` is here.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The features one by one.
    pub fn iter(self) -> impl Iterator<Item = Self> + Clone {
        (0..u64::BITS).map(|bit| Self(1 << bit)).filter(move |&one| self.contains(one))
    }

    /// The name of a single feature, as Linux lists it in `/proc/cpuinfo` where it does. Of several
    /// features, that of the first; of none, `none`.
    pub fn name(self) -> &'static str {
        if self.is_empty() {
            return "none";
        }
        Self::TABLE
            .iter()
            .find(|(feature, _)| self.contains(*feature))
            .map_or("unknown", |&(_, name)| name)
    }

    /// The single feature of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::TABLE.iter().find(|(_, known)| *known == name).map(|&(feature, _)| feature)
    }

    /// Every feature this crate knows.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        Self::TABLE.iter().map(|&(feature, _)| feature)
    }
}

/// As in a sentence: `sse2`, `avx512f and avx512vl`, `mmx, sse and sse2`.
impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.count_ones() as usize;
        if count == 0 {
            return f.write_str(self.name());
        }
        for (index, feature) in self.iter().enumerate() {
            let separator = match index {
                0 => "",
                last if last + 1 == count => " and ",
                _ => ", ",
            };
            write!(f, "{separator}{}", feature.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Features({self})")
    }
}
