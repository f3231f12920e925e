//! Which variants can run here: what the CPU has and the operating system supports, the registers
//! that may be used, and what the environment has taken away.

use crate::arch;
use crate::cpu::{Cpu, Features, Native};
use crate::error::Unavailable;
use crate::variant::{self, RegisterClass, Variant};
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// Usable features, with [`KNOWN`] set once somebody has looked.
static FEATURES: AtomicU64 = AtomicU64::new(0);
const KNOWN: u64 = 1 << 63;
static REGISTERS: AtomicU8 = AtomicU8::new(REGISTERS_UNASKED as u8);
const REGISTERS_UNASKED: RegisterClass =
    if cfg!(feature = "std") { RegisterClass::Vector } else { RegisterClass::General };

static DISABLED_FEATURES: AtomicU64 = AtomicU64::new(0);
/// A bit per row of the registry.
static DISABLED_ROWS: AtomicU64 = AtomicU64::new(0);
const _: () = assert!(arch::ROWS.len() <= 64, "one bit per row");

pub(crate) fn permit(usable: Features, registers: RegisterClass) {
    FEATURES.store(usable.bits() | KNOWN, Relaxed);
    REGISTERS.store(registers as u8, Relaxed);
}

fn usable_features() -> Features {
    let known = FEATURES.load(Relaxed);
    if known & KNOWN != 0 {
        return Features::from_bits(known & !KNOWN);
    }
    if cfg!(all(feature = "std", not(miri))) {
        let usable = Cpu::detect(&Native).usable;
        FEATURES.store(usable.bits() | KNOWN, Relaxed);
        return usable;
    }
    BASELINE
}

/// What the build already requires of every CPU it runs on.
const BASELINE: Features = {
    let mut features = Features::empty();
    if cfg!(target_feature = "sse") {
        features = features.union(Features::SSE).union(Features::MMXEXT);
    }
    if cfg!(target_feature = "sse2") {
        features = features.union(Features::SSE2).union(Features::MOVNTI);
    }
    if cfg!(target_feature = "neon") {
        features = features.union(Features::NEON);
    }
    features
};

pub(crate) fn unavailable(variant: &'static Variant) -> Option<Unavailable> {
    unavailable_under(variant, Disabled::load())
}

pub(crate) fn unavailable_under(
    variant: &'static Variant,
    disabled: Disabled,
) -> Option<Unavailable> {
    let needs = variant.required_features();
    if !usable_features().contains(needs) {
        let missing = Cpu::detect(&Native).missing(needs);
        return Some(missing.map_or(Unavailable::NotDetected, Unavailable::Missing));
    }
    if variant.registers() as u8 > REGISTERS.load(Relaxed) {
        return Some(Unavailable::RegistersNotAllowed);
    }
    disabled.contains(variant).then_some(Unavailable::Disabled)
}

/// What `CACHEWISE_DISABLE` has taken away, or would.
#[derive(Clone, Copy)]
pub(crate) struct Disabled {
    features: Features,
    rows: u64,
}

impl Disabled {
    pub(crate) fn load() -> Self {
        let features = Features::from_bits(DISABLED_FEATURES.load(Relaxed));
        Self { features, rows: DISABLED_ROWS.load(Relaxed) }
    }

    fn contains(self, variant: &Variant) -> bool {
        variant.required_features().intersects(self.features) || self.rows & bit(variant) != 0
    }

    #[cfg(feature = "std")]
    pub(crate) fn parse<'a>(
        words: impl Iterator<Item = &'a str>,
    ) -> Result<Self, crate::error::Error> {
        use crate::error::{Error, Word};

        let mut disabled = Self { features: Features::empty(), rows: 0 };
        for word in words {
            let rows = variant::all().iter().filter(|v| v.name() == word).map(bit);
            let rows = rows.fold(0, |all, bit| all | bit);
            let feature = Features::from_name(word);
            if rows == 0 && feature.is_none() {
                return Err(Error::UnknownDisable { name: Word::new(word) });
            }
            disabled.rows |= rows;
            disabled.features = disabled.features.union(feature.unwrap_or(Features::empty()));
        }
        Ok(disabled)
    }

    #[cfg(feature = "std")]
    pub(crate) fn apply(self) {
        DISABLED_FEATURES.store(self.features.bits(), Relaxed);
        DISABLED_ROWS.store(self.rows, Relaxed);
    }
}

fn bit(variant: &Variant) -> u64 {
    let index = variant::all().iter().position(|v| v == variant);
    index.map_or(0, |i| 1 << i)
}
