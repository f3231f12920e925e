//! From measured cells to a policy.
//!
//! The policy is small: a variant per slot, a threshold per gate. Each is looked for among all that
//! could be, by the mean loss over the cells that concern it; then it must show, on samples that
//! the search has not seen, a saving over the library's own choice that is clear of noise and worth
//! a word. What cannot keeps the library's choice: measuring must not make a machine's policy
//! depend on the weather (seeds row F3, case 14).
//!
//! Rejected: a threshold per variant, per alignment, per thread count. A table that a person cannot
//! read is a table that nobody checks.

use super::policy::{Call, Intent, Policy, Slots};
use super::score::{is_a_gain, loss, saving};
use crate::map::Measured;
use crate::stats::Estimate;
use cachewise::policy::{Gate, Threshold};
use cachewise::switch::Slot;
use cachewise::variant::{self, Operation, Variant};

/// What became of one choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    /// Another choice saves this share of the operation-related time over the library's own.
    Better(Estimate),
    /// The library's own choice was the best that the search found.
    Default,
    /// Another one looked better, and the other half of the samples did not confirm it.
    NoDifference(Option<Estimate>),
    /// No cell concerns it.
    Unmeasured,
}

/// The variant for a slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotChoice {
    /// The slot.
    pub slot: Slot,
    /// The choice; the library's own unless [`Found::Better`].
    pub variant: &'static Variant,
    /// The library's own choice.
    pub default: &'static Variant,
    /// Why.
    pub found: Found,
    /// The cells looked at.
    pub cells: usize,
}

/// The threshold of a gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GateChoice {
    /// The gate.
    pub gate: Gate,
    /// The choice; the library's own unless [`Found::Better`].
    pub threshold: Threshold,
    /// The library's own choice.
    pub default: Threshold,
    /// Why.
    pub found: Found,
    /// The cells looked at.
    pub cells: usize,
}

/// A fitted policy and how each of its parts came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The policy.
    pub policy: Policy,
    /// By slot.
    pub slots: Vec<SlotChoice>,
    /// By gate.
    pub gates: Vec<GateChoice>,
}

/// What the fit must know beside the cells.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The library untuned.
    pub default: Policy,
    /// For [`Intent::of`].
    pub l2_bytes: usize,
    /// For [`Call::suits`].
    pub page_bytes: usize,
    /// For the intervals.
    pub seed: u64,
}

impl Setting {
    pub(super) fn intent(&self, cell: &crate::map::Cell) -> Intent {
        Intent::of(cell, self.l2_bytes)
    }
}

/// Fits a policy to cells.
pub fn fit(cells: &[&Measured], setting: &Setting) -> Fit {
    let policy = setting.default.clone();
    let mut fit = Fit { policy, slots: Vec::new(), gates: Vec::new() };
    for call in [Call::Page, Call::Bytes] {
        for operation in [Operation::Clear, Operation::Copy] {
            let of = |intent| Group { call, operation, intent, cells: &[] }.select(cells, setting);
            let slots = Slots::of(operation, call);
            let soon = of(Some(Intent::Soon));
            let group = Group { call, operation, intent: Some(Intent::Soon), cells: &soon };
            fit.slot(slots.plain, &group, setting);
            let not_soon = of(Some(Intent::NotSoon));
            let group = Group { call, operation, intent: Some(Intent::NotSoon), cells: &not_soon };
            fit.slot_and_gate(slots.nontemporal, slots.gate, &group, setting);
        }
    }
    // The `_auto` calls use what has been chosen for the others.
    for operation in [Operation::Clear, Operation::Copy] {
        let group = Group { call: Call::Auto, operation, intent: None, cells: &[] };
        let all = group.select(cells, setting);
        let group = Group { cells: &all, ..group };
        fit.gate(Slots::of(operation, Call::Auto).auto, &group, setting);
    }
    fit.slots.sort_by_key(|choice| choice.slot as u8);
    fit.gates.sort_by_key(|choice| choice.gate as u8);
    fit
}

/// The cells that concern a choice, and how they are served.
#[derive(Clone, Copy)]
struct Group<'a> {
    call: Call,
    operation: Operation,
    /// `None`: either.
    intent: Option<Intent>,
    cells: &'a [&'a Measured],
}

impl Group<'_> {
    fn select<'c>(&self, cells: &[&'c Measured], setting: &Setting) -> Vec<&'c Measured> {
        let suits = |m: &&&Measured| {
            m.cell.operation == self.operation
                && self.call.suits(&m.cell, setting.page_bytes)
                && self.intent.is_none_or(|intent| intent == setting.intent(&m.cell))
        };
        cells.iter().filter(suits).copied().collect()
    }

    fn loss(&self, policy: &Policy, setting: &Setting) -> Option<f64> {
        loss(self.cells, |cell| policy.serves(self.call, setting.intent(cell), cell))
    }

    fn saving(&self, from: &Policy, to: &Policy, setting: &Setting) -> Option<Estimate> {
        let serves = |policy: &Policy, cell: &_| {
            policy.serves(self.call, setting.intent(cell), cell)
        };
        saving(self.cells, |cell| serves(from, cell), |cell| serves(to, cell), setting.seed)
    }

    /// Whether `to` has a saving over `from`.
    fn found(&self, from: &Policy, to: &Policy, setting: &Setting) -> Found {
        match self.saving(from, to, setting) {
            Some(saving) if is_a_gain(&saving) => Found::Better(saving),
            saving => Found::NoDifference(saving),
        }
    }

    /// The policy with the least loss; the first of equals.
    fn best(&self, policies: impl IntoIterator<Item = Policy>, setting: &Setting) -> Option<Policy> {
        let scored = policies.into_iter().filter_map(|p| Some((self.loss(&p, setting)?, p)));
        scored.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, policy)| policy)
    }

    fn thresholds(&self) -> Vec<Threshold> {
        let mut sizes: Vec<usize> = self.cells.iter().map(|m| m.cell.size_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let from = sizes.into_iter().skip(1).map(Threshold::Bytes);
        [Threshold::Off].into_iter().chain(from).chain([Threshold::Always]).collect()
    }
}

fn candidates(slot: Slot) -> impl Iterator<Item = &'static Variant> + Clone {
    variant::all().iter().filter(move |v| slot.accepts(v) && v.unavailable().is_none())
}

impl Fit {
    fn slot(&mut self, slot: Slot, group: &Group<'_>, setting: &Setting) {
        let default = self.policy.clone();
        let others = candidates(slot).map(|variant| default.with_variant(slot, variant));
        let best = group.best([default.clone()].into_iter().chain(others), setting);
        let found = match best {
            None => Found::Unmeasured,
            Some(best) if best == default => Found::Default,
            Some(best) => {
                let found = group.found(&default, &best, setting);
                self.take(&best, found);
                found
            }
        };
        self.push_slot(slot, found, group, setting);
    }

    /// Variant and threshold are looked for together, since each depends on the other; then each
    /// must be worth its place by itself.
    fn slot_and_gate(&mut self, slot: Slot, gate: Gate, group: &Group<'_>, setting: &Setting) {
        let default = self.policy.clone();
        let thresholds = [default.threshold(gate)].into_iter().chain(group.thresholds());
        let all = thresholds.flat_map(|threshold| {
            let default = default.with_threshold(gate, threshold);
            let own = default.variant(slot);
            let others = candidates(slot).filter(move |v| *v != own);
            [own].into_iter().chain(others).map(move |v| default.with_variant(slot, v))
        });
        let (by_slot, by_gate) = match group.best(all, setting) {
            None => (Found::Unmeasured, Found::Unmeasured),
            Some(best) => {
                let own_variant = best.with_variant(slot, default.variant(slot));
                let by_slot = match best == own_variant {
                    true => Found::Default,
                    false => group.found(&own_variant, &best, setting),
                };
                let kept = match by_slot {
                    Found::Better(_) => best,
                    _ => own_variant,
                };
                let own_threshold = kept.with_threshold(gate, default.threshold(gate));
                let by_gate = match kept == own_threshold {
                    true => Found::Default,
                    false => group.found(&own_threshold, &kept, setting),
                };
                self.take(&own_threshold, by_slot);
                self.take(&kept, by_gate);
                (by_slot, by_gate)
            }
        };
        self.push_slot(slot, by_slot, group, setting);
        self.push_gate(gate, by_gate, group, setting);
    }

    fn gate(&mut self, gate: Gate, group: &Group<'_>, setting: &Setting) {
        let default = self.policy.clone();
        let others = group.thresholds().into_iter().map(|t| default.with_threshold(gate, t));
        let best = group.best([default.clone()].into_iter().chain(others), setting);
        let found = match best {
            None => Found::Unmeasured,
            Some(best) if best == default => Found::Default,
            Some(best) => {
                let found = group.found(&default, &best, setting);
                self.take(&best, found);
                found
            }
        };
        self.push_gate(gate, found, group, setting);
    }

    fn take(&mut self, policy: &Policy, found: Found) {
        if matches!(found, Found::Better(_)) {
            self.policy = policy.clone();
        }
    }

    fn push_slot(&mut self, slot: Slot, found: Found, group: &Group<'_>, setting: &Setting) {
        let (variant, default) = (self.policy.variant(slot), setting.default.variant(slot));
        self.slots.push(SlotChoice { slot, variant, default, found, cells: group.cells.len() });
    }

    fn push_gate(&mut self, gate: Gate, found: Found, group: &Group<'_>, setting: &Setting) {
        let (threshold, default) = (self.policy.threshold(gate), setting.default.threshold(gate));
        self.gates.push(GateChoice { gate, threshold, default, found, cells: group.cells.len() });
    }
}
