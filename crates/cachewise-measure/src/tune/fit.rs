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

use super::rule::{Call, Intent, Policy, Slots};
use super::score::{is_a_gain, loss, saving, weights};
use crate::map::{Cell, Measured};
use crate::stats::Estimate;
use cachewise::policy::{Gate, Threshold};
use cachewise::switch::Slot;
use cachewise::variant::{self, Operation, Store, Variant};

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

impl Found {
    /// Whether the library's own choice has been given up.
    pub fn is_better(&self) -> bool {
        matches!(self, Self::Better(_))
    }
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
    pub last_level_bytes: usize,
    /// For [`Call::suits`].
    pub page_bytes: usize,
    /// For the intervals.
    pub seed: u64,
}

impl Setting {
    pub(super) fn intent(&self, cell: &Cell) -> Intent {
        Intent::of(cell, self.last_level_bytes)
    }
}

/// The policy with the least loss over cells, confirmed or not: of the cells themselves, nothing of
/// its shape does better.
pub(super) fn hindsight(cells: &[&Measured], setting: &Setting) -> Policy {
    fit_by(cells, setting, false).policy
}

/// Fits a policy to cells.
pub fn fit(cells: &[&Measured], setting: &Setting) -> Fit {
    fit_by(cells, setting, true)
}

fn fit_by(cells: &[&Measured], setting: &Setting, confirm: bool) -> Fit {
    let policy = setting.default.clone();
    let mut fit = Fit { policy, slots: Vec::new(), gates: Vec::new() };
    for slot in Slot::ALL {
        let group = Group { confirm, ..Group::of_slot(slot, cells, setting) };
        match Gate::ALL.into_iter().find(|gate| gate.name() == slot.name()) {
            Some(gate) => fit.slot_and_gate(slot, gate, &group),
            None => fit.slot(slot, &group),
        }
    }
    // The `_auto` calls use what has been chosen for the others.
    for gate in Gate::ALL.into_iter().filter(|gate| gate.is_auto()) {
        fit.gate(gate, &Group { confirm, ..Group::of_gate(gate, cells, setting) });
    }
    fit.gates.sort_by_key(|choice| choice.gate as u8);
    fit
}

/// The cells that concern a choice, and by which call they are served.
pub(super) struct Group<'a> {
    call: Call,
    pub(super) cells: Vec<&'a Measured>,
    weights: Vec<f64>,
    setting: &'a Setting,
    /// Whether what looks better must be so on samples that the search has not seen.
    confirm: bool,
}

impl<'a> Group<'a> {
    pub(super) fn of_slot(slot: Slot, cells: &[&'a Measured], setting: &'a Setting) -> Self {
        let call = if slot.is_page() { Call::Page } else { Call::Bytes };
        let intent = if slot.is_nontemporal() { Intent::NotSoon } else { Intent::Soon };
        Self::new(call, slot.operation(), intent, cells, setting)
    }

    pub(super) fn of_gate(gate: Gate, cells: &[&'a Measured], setting: &'a Setting) -> Self {
        match Slot::ALL.into_iter().find(|slot| slot.name() == gate.name()) {
            Some(slot) => Self::of_slot(slot, cells, setting),
            None => {
                let is_copy = Slots::of(Operation::Copy, Call::Auto).auto == gate;
                let operation = if is_copy { Operation::Copy } else { Operation::Clear };
                // Who doesn't use the result has another call for it.
                Self::new(Call::Auto, operation, Intent::Soon, cells, setting)
            }
        }
    }

    fn new(
        call: Call,
        operation: Operation,
        intent: Intent,
        cells: &[&'a Measured],
        setting: &'a Setting,
    ) -> Self {
        let suits = |m: &&&Measured| {
            m.cell.operation == operation
                && call.suits(&m.cell, setting.page_bytes)
                && intent == setting.intent(&m.cell)
        };
        let cells: Vec<&Measured> = cells.iter().filter(suits).copied().collect();
        Self { call, weights: weights(&cells), cells, setting, confirm: true }
    }

    fn serves(&self, policy: &Policy, cell: &Cell) -> &'static str {
        policy.serves(self.call, self.setting.intent(cell), cell)
    }

    fn loss(&self, policy: &Policy) -> Option<f64> {
        loss(&self.cells, &self.weights, |cell| self.serves(policy, cell))
    }

    pub(super) fn saving(&self, from: &Policy, to: &Policy) -> Option<Estimate> {
        let serves = |policy: &Policy, cell: &Cell| self.serves(policy, cell);
        let (cells, weights, seed) = (&self.cells, &self.weights, self.setting.seed);
        saving(cells, weights, |cell| serves(from, cell), |cell| serves(to, cell), seed)
    }

    /// The sizes of the cells, each once, from the smallest.
    pub(super) fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<usize> = self.cells.iter().map(|m| m.cell.size_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Whether `to` has a saving over `from`, the library's own choice in what differs.
    fn found(&self, from: &Policy, to: &Policy) -> Found {
        if from == to {
            return Found::Default;
        }
        match self.saving(from, to) {
            Some(saving) if is_a_gain(&saving) || !self.confirm => Found::Better(saving),
            saving => Found::NoDifference(saving),
        }
    }

    /// The policy with the least loss; the first of equals.
    fn best(&self, policies: impl IntoIterator<Item = Policy>) -> Option<Policy> {
        let scored = policies.into_iter().filter_map(|p| Some((self.loss(&p)?, p)));
        scored.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, policy)| policy)
    }

    fn thresholds(&self) -> Vec<Threshold> {
        let from = self.sizes().into_iter().skip(1).map(Threshold::Bytes);
        [Threshold::Off].into_iter().chain(from).chain([Threshold::Always]).collect()
    }
}

/// What may serve a slot here. In a `_nontemporal` slot, ordinary stores have their place below the
/// threshold.
fn candidates(slot: Slot) -> impl Iterator<Item = &'static Variant> + Clone {
    let suits = move |v: &&Variant| slot.is_nontemporal() <= (v.store() == Store::NonTemporal);
    let rows = variant::all().iter().filter(move |v| slot.accepts(v) && v.unavailable().is_none());
    rows.filter(suits)
}

impl Fit {
    fn slot(&mut self, slot: Slot, group: &Group<'_>) {
        let default = self.policy.clone();
        let others = candidates(slot).map(|variant| default.with_variant(slot, variant));
        let found = self.search(others, group);
        self.push_slot(slot, found, group);
    }

    fn gate(&mut self, gate: Gate, group: &Group<'_>) {
        let default = self.policy.clone();
        let others = group.thresholds().into_iter().map(|t| default.with_threshold(gate, t));
        let found = self.search(others, group);
        self.push_gate(gate, found, group);
    }

    /// Takes the best of the policies, or keeps the one there is.
    fn search(&mut self, others: impl Iterator<Item = Policy>, group: &Group<'_>) -> Found {
        let default = self.policy.clone();
        let Some(best) = group.best([default.clone()].into_iter().chain(others)) else {
            return Found::Unmeasured;
        };
        let found = group.found(&default, &best);
        if found.is_better() {
            self.policy = best;
        }
        found
    }

    /// Variant and threshold are looked for together, since each depends on the other; then each
    /// must be worth its place beside what is kept of the other.
    fn slot_and_gate(&mut self, slot: Slot, gate: Gate, group: &Group<'_>) {
        let default = self.policy.clone();
        let own = default.variant(slot);
        let thresholds = [default.threshold(gate)].into_iter().chain(group.thresholds());
        let all = thresholds.flat_map(|threshold| {
            let default = default.with_threshold(gate, threshold);
            let others = candidates(slot).filter(|v| *v != own);
            [own].into_iter().chain(others).map(move |v| default.with_variant(slot, v))
        });
        let (mut by_slot, mut by_gate) = (Found::Unmeasured, Found::Unmeasured);
        if let Some(best) = group.best(all) {
            let worth_its_place = |policy: &Policy| {
                group.found(&policy.with_threshold(gate, default.threshold(gate)), policy)
            };
            let mut policy = best;
            by_gate = worth_its_place(&policy);
            if !by_gate.is_better() {
                policy = policy.with_threshold(gate, default.threshold(gate));
            }
            by_slot = group.found(&policy.with_variant(slot, own), &policy);
            if !by_slot.is_better() {
                policy = policy.with_variant(slot, own);
                // A threshold that was not confirmed stays one that was not.
                if by_gate.is_better() {
                    by_gate = worth_its_place(&policy);
                }
                if !by_gate.is_better() {
                    policy = policy.with_threshold(gate, default.threshold(gate));
                }
            }
            self.policy = policy;
        }
        self.push_slot(slot, by_slot, group);
        self.push_gate(gate, by_gate, group);
    }

    fn push_slot(&mut self, slot: Slot, found: Found, group: &Group<'_>) {
        let (variant, default) = (self.policy.variant(slot), group.setting.default.variant(slot));
        self.slots.push(SlotChoice { slot, variant, default, found, cells: group.cells.len() });
    }

    fn push_gate(&mut self, gate: Gate, found: Found, group: &Group<'_>) {
        let (threshold, default) =
            (self.policy.threshold(gate), group.setting.default.threshold(gate));
        self.gates.push(GateChoice { gate, threshold, default, found, cells: group.cells.len() });
    }
}
