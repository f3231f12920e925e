//! Who serves a call: the library's rule, and the rules of others, as functions of a cell.

use crate::contestant::{LIBC, fenced_name};
use crate::map::{Cell, Share};
use cachewise::policy::{self, Gate, Threshold};
use cachewise::switch::{self, Slot};
use cachewise::variant::{Operation, Store, Variant};

/// What the caller of a cell's operation would know to say about its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Intent {
    /// It is used soon: the plain call.
    Soon,
    /// It is not: the `_nontemporal` call.
    NotSoon,
}

/// Of the result, a quarter or more must be used for it to count as used: below that most of its
/// lines would be in the cache for nothing.
const USED_LEAST: f64 = 0.25;

impl Intent {
    /// Used soon is what is used before as many bytes as the last level holds have passed.
    pub fn of(cell: &Cell, last_level_bytes: usize) -> Self {
        let is_used = cell.used != Share::NONE && cell.used.as_f64() >= USED_LEAST;
        if is_used && cell.delay_bytes < last_level_bytes { Self::Soon } else { Self::NotSoon }
    }
}

/// Which of the library's calls a cell is done by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// `copy`, `clear` and their `_nontemporal` kin, by the caller's intent.
    Bytes,
    /// The same for pages.
    Page,
    /// `copy_auto` and `clear_auto`: the size alone decides.
    Auto,
    /// `_auto` for what is used soon, so that what is too large to stay in the cache goes around it,
    /// and `_nontemporal` for what is not.
    Advised,
}

impl Call {
    /// Whether a cell can be done by this call.
    pub fn suits(self, cell: &Cell, page_bytes: usize) -> bool {
        self != Self::Page || cell.size_bytes.is_multiple_of(page_bytes)
    }
}

/// A variant for each slot and a threshold for each gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    pub(super) variants: [&'static Variant; Slot::ALL.len()],
    /// What serves a `_nontemporal` slot below its threshold; not chosen by anybody.
    pub(super) below: [&'static Variant; Slot::ALL.len()],
    pub(super) thresholds: [Threshold; Gate::ALL.len()],
}

impl Policy {
    /// What the library does here at the moment.
    pub fn in_force() -> Self {
        Self {
            variants: Slot::ALL.map(switch::get),
            below: Slot::ALL.map(switch::get_below_threshold),
            thresholds: Gate::ALL.map(|gate| policy::threshold(gate).threshold),
        }
    }

    /// The variant of a slot.
    pub fn variant(&self, slot: Slot) -> &'static Variant {
        self.variants[slot as usize]
    }

    /// The threshold of a gate.
    pub fn threshold(&self, gate: Gate) -> Threshold {
        self.thresholds[gate as usize]
    }

    pub(super) fn with_variant(&self, slot: Slot, variant: &'static Variant) -> Self {
        let mut changed = self.clone();
        changed.variants[slot as usize] = variant;
        changed
    }

    pub(super) fn with_threshold(&self, gate: Gate, threshold: Threshold) -> Self {
        let mut changed = self.clone();
        changed.thresholds[gate as usize] = threshold;
        changed
    }

    /// The variant that does a cell's operation.
    pub fn serves(&self, call: Call, intent: Intent, cell: &Cell) -> &'static str {
        let slots = Slots::of(cell.operation, call);
        let plain = self.variants[slots.plain as usize];
        let around = |gate: Gate| reaches(self.thresholds[gate as usize], cell.size_bytes);
        let nontemporal = || match around(slots.gate) {
            true => in_nontemporal_call(self.variants[slots.nontemporal as usize]),
            false => in_nontemporal_call(self.below[slots.nontemporal as usize]),
        };
        let by_size = match (call, intent) {
            (Call::Auto, _) | (Call::Advised, Intent::Soon) => true,
            (Call::Bytes | Call::Page | Call::Advised, _) => false,
        };
        match (by_size, intent) {
            (true, _) if around(slots.auto) => nontemporal(),
            (true, _) | (false, Intent::Soon) => plain.name(),
            (false, Intent::NotSoon) => nontemporal(),
        }
    }
}

/// The contender that a row is in a `_nontemporal` call, which ends in a fence whatever serves it.
fn in_nontemporal_call(row: &'static Variant) -> &'static str {
    if row.store() == Store::NonTemporal { row.name() } else { fenced_name(row) }
}

/// The slots and gates that serve a call.
#[derive(Clone, Copy)]
pub(super) struct Slots {
    pub(super) plain: Slot,
    pub(super) nontemporal: Slot,
    pub(super) gate: Gate,
    pub(super) auto: Gate,
}

impl Slots {
    pub(super) fn of(operation: Operation, call: Call) -> Self {
        let (plain, nontemporal, gate) = match (operation, call) {
            (Operation::Copy, Call::Page) => {
                (Slot::CopyPage, Slot::CopyPageNontemporal, Gate::CopyPageNontemporal)
            }
            (Operation::Copy, _) => (Slot::Copy, Slot::CopyNontemporal, Gate::CopyNontemporal),
            (Operation::Clear, Call::Page) => {
                (Slot::ClearPage, Slot::ClearPageNontemporal, Gate::ClearPageNontemporal)
            }
            (Operation::Clear, _) => (Slot::Clear, Slot::ClearNontemporal, Gate::ClearNontemporal),
        };
        let auto = match operation {
            Operation::Copy => Gate::CopyAuto,
            Operation::Clear => Gate::ClearAuto,
        };
        Self { plain, nontemporal, gate, auto }
    }
}

/// Whether a length is from the threshold on.
fn reaches(threshold: Threshold, len_bytes: usize) -> bool {
    match threshold {
        Threshold::Off => false,
        Threshold::Bytes(bytes) => len_bytes >= bytes,
        Threshold::Always => true,
    }
}

/// A rule to compare with: what others ship, or the simplest there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// libc's routine, whatever the cell.
    Libc,
    /// Ordinary stores below the threshold, non-temporal ones from there on; the library's own
    /// variants, whatever the intent.
    SizeAlone(Threshold),
}

impl Rival {
    /// Those that are shown beside a tuned policy, with their names: FreeBSD-like small
    /// thresholds, a megabyte, and three quarters of the last level as glibc has it.
    pub fn all(last_level_bytes: usize) -> [(&'static str, Self); 6] {
        let from = |bytes| Self::SizeAlone(Threshold::Bytes(bytes));
        [
            ("always libc", Self::Libc),
            ("always temporal", Self::SizeAlone(Threshold::Off)),
            ("always non-temporal", Self::SizeAlone(Threshold::Always)),
            ("non-temporal from 256 B", from(256)),
            ("non-temporal from 1 MiB", from(1 << 20)),
            ("non-temporal from 3/4 LLC", from(last_level_bytes / 4 * 3)),
        ]
    }

    /// The contender that does a cell's operation; `default` is the library untuned.
    pub fn serves(self, default: &Policy, cell: &Cell) -> &'static str {
        let slots = Slots::of(cell.operation, Call::Bytes);
        match self {
            Self::Libc => LIBC,
            Self::SizeAlone(threshold) if reaches(threshold, cell.size_bytes) => {
                in_nontemporal_call(default.variant(slots.nontemporal))
            }
            Self::SizeAlone(_) => default.variant(slots.plain).name(),
        }
    }
}
