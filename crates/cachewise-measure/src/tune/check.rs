//! Whether a profile still says what a new measurement says.

use super::fit::{Fit, Group, Setting};
use super::rule::Policy;
use super::score::is_a_difference;
use crate::Error;
use crate::map::Measured;
use crate::stats::Estimate;
use cachewise::policy::{Gate, Threshold};
use cachewise::profile::{Fingerprint, Profile};
use cachewise::switch::Slot;
use cachewise::variant;

/// How a line of the profile stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standing {
    /// The same variant, or a threshold within one step of the grid.
    Same,
    /// Another choice, which saves this share of the operation-related time.
    Differs(Estimate),
    /// The new measurement chose otherwise, but the profile's choice is the better one on samples
    /// that the search has not seen.
    Holds(Estimate),
    /// Another choice, with no difference that is clear of noise.
    CannotTell(Option<Estimate>),
}

const VARIANT: &str = "variant";
const THRESHOLD: &str = "threshold";

/// A slot or gate, then and now.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The slot or gate.
    pub name: &'static str,
    /// `variant` or `threshold`: a `_nontemporal` slot has both.
    pub part: &'static str,
    /// What the profile says; the library's own choice where it says nothing.
    pub then: String,
    /// What the new measurement says.
    pub now: String,
    /// Whether it comes to the same.
    pub standing: Standing,
}

/// The policy that a profile makes of the library's own.
///
/// # Errors
///
/// If the profile is another machine's, or names a variant that is not here.
pub fn policy_of(profile: &Profile, default: &Policy) -> Result<Policy, Error> {
    if let Some(difference) = profile.machine.difference(&Fingerprint::detect()) {
        return Err(cachewise::Error::AnotherMachine(difference).into());
    }
    let mut policy = default.clone();
    for slot in Slot::ALL {
        if let Some(name) = profile.variant(slot) {
            let variant = variant::find(slot.operation(), name)?;
            // The profile of a copy checks it: nothing is changed here.
            profile.clone().set_variant(slot, variant)?;
            policy = policy.with_variant(slot, variant);
        }
    }
    for gate in Gate::ALL {
        if let Some(threshold) = profile.threshold(gate) {
            policy = policy.with_threshold(gate, threshold);
        }
    }
    Ok(policy)
}

/// Compares a profile's policy with a fit to new cells, slot by slot and gate by gate.
pub fn check(then: &Policy, fit: &Fit, cells: &[&Measured], setting: &Setting) -> Vec<Checked> {
    let now = &fit.policy;
    let slots = Slot::ALL.into_iter().map(|slot| {
        let (old, new) = (then.variant(slot), now.variant(slot));
        let group = Group::of_slot(slot, cells, setting);
        let standing = match old == new {
            true => Standing::Same,
            false => standing(&group, &now.with_variant(slot, old), now),
        };
        let (then, now) = (old.name().to_owned(), new.name().to_owned());
        Checked { name: slot.name(), part: VARIANT, then, now, standing }
    });
    let gates = Gate::ALL.into_iter().map(|gate| {
        let (old, new) = (then.threshold(gate), now.threshold(gate));
        let group = Group::of_gate(gate, cells, setting);
        let sizes = group.sizes();
        let standing = match step(old, &sizes).abs_diff(step(new, &sizes)) {
            0 | 1 => Standing::Same,
            _ => standing(&group, &now.with_threshold(gate, old), now),
        };
        Checked {
            name: gate.name(),
            part: THRESHOLD,
            then: old.to_string(),
            now: new.to_string(),
            standing,
        }
    });
    slots.chain(gates).collect()
}

fn standing(group: &Group<'_>, then: &Policy, now: &Policy) -> Standing {
    match group.saving(then, now) {
        Some(saving) if is_a_difference(&saving) && saving.median > 0.0 => {
            Standing::Differs(saving)
        }
        Some(saving) if is_a_difference(&saving) => Standing::Holds(saving),
        saving => Standing::CannotTell(saving),
    }
}

/// How many of the grid's sizes are below the threshold.
fn step(threshold: Threshold, sizes: &[usize]) -> usize {
    match threshold {
        Threshold::Always => 0,
        Threshold::Bytes(bytes) => sizes.iter().filter(|&&size| size < bytes).count(),
        Threshold::Off => sizes.len(),
    }
}
