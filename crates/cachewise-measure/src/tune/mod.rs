//! From measured cells to a profile: which variant serves each slot and from what size on, how much
//! is lost by it, and how much by the rules that others ship.
//!
//! The cells are [planned](Plan), measured by a [survey](crate::map::Survey) with the contenders
//! that a [screening](screen) leaves, and [split] in two: two thirds are fitted,
//! the rest only scored. Which cell goes where depends on the seed, not on what was measured.
//!
//! A policy knows the caller's [`Intent`] and the size; whatever else differs between the cells
//! (source, bystander, kind of use) it must do right on average.

mod check;
mod fit;
pub mod glibc;
mod plan;
mod rule;
mod score;
#[cfg(test)]
mod tests;

pub use check::{Checked, Standing, check, policy_of};
pub use fit::{Fit, Found, GateChoice, Setting, SlotChoice, fit};
pub use plan::{Plan, screen};
pub use rule::{Call, Intent, Policy, Rival};
pub use score::Regret;

use crate::map::Measured;
use crate::rng::Rng;
use crate::{Error, Machine};
use cachewise::policy::{self, Gate};
use cachewise::profile::{Fingerprint, Profile};
use cachewise::switch::{self, Slot};
use std::time::{SystemTime, UNIX_EPOCH};

/// A rule and its regret.
#[derive(Clone, Debug)]
pub struct Scored {
    /// The rule.
    pub name: &'static str,
    /// Over the held-out cells in which the rule's contender was measured; `None` if there is none.
    pub regret: Option<Regret>,
}

/// All that came out.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The fitted policy.
    pub fit: Fit,
    /// Its regret where the caller says what is done with the result.
    pub regret: Option<Regret>,
    /// Cells that were held out.
    pub held_out: usize,
    /// Those of them that are too noisy to say anything of a regret, and are left out of it.
    pub unclear: usize,
    /// That of the library's other calls, of the library untuned, and of what others ship.
    pub rivals: Vec<Scored>,
}

/// Fits a policy to two thirds of the cells and scores it on the rest.
pub fn tune(cells: &[Measured], setting: &Setting, last_level_bytes: usize) -> Tuned {
    let (fitted, held_out) = split(cells, setting);
    let fit = fit(&fitted, setting);
    let regret = |call: Call, policy: &Policy| {
        let suits = |m: &&&Measured| call.suits(&m.cell, setting.page_bytes);
        let served = held_out.iter().filter(suits).map(|m| {
            let variant = policy.serves(call, setting.intent(&m.cell), &m.cell);
            (*m, variant)
        });
        score::regret(&served.collect::<Vec<_>>())
    };
    let mut rivals = vec![
        Scored { name: "tuned, page calls", regret: regret(Call::Page, &fit.policy) },
        Scored { name: "tuned, _auto calls", regret: regret(Call::Auto, &fit.policy) },
        Scored { name: "library untuned", regret: regret(Call::Bytes, &setting.default) },
    ];
    rivals.extend(Rival::all(last_level_bytes).map(|(name, rival)| {
        let served = held_out.iter().map(|m| (*m, rival.serves(&setting.default, &m.cell)));
        Scored { name, regret: score::regret(&served.collect::<Vec<_>>()) }
    }));
    let unclear = held_out.iter().filter(|cell| !score::is_clear(cell)).count();
    let regret = regret(Call::Bytes, &fit.policy);
    Tuned { regret, held_out: held_out.len(), unclear, fit, rivals }
}

/// Cells to fit and cells to score. Of each operation and intent every third is held out, in an
/// order shuffled by the seed; the first of each is fitted.
pub fn split<'a>(
    cells: &'a [Measured],
    setting: &Setting,
) -> (Vec<&'a Measured>, Vec<&'a Measured>) {
    const HELD_OUT: usize = 3;
    let mut order: Vec<&Measured> = cells.iter().collect();
    Rng::new(setting.seed).shuffle(&mut order);
    let mut seen = std::collections::HashMap::new();
    order.into_iter().partition(|m| {
        let count = seen.entry((m.cell.operation, setting.intent(&m.cell))).or_insert(0);
        *count += 1;
        *count % HELD_OUT != 0
    })
}

/// Gives every slot and threshold back to the library, whatever the environment said: a profile is
/// measured against what the library does by itself.
pub fn start_from_defaults() {
    Slot::ALL.into_iter().for_each(switch::reset);
    Gate::ALL.into_iter().for_each(policy::reset_threshold);
}

impl Setting {
    /// The library as it is in force, on this machine.
    pub fn of(machine: &Machine, seed: u64) -> Self {
        Self {
            default: Policy::in_force(),
            l2_bytes: machine.geometry.l2_bytes().value,
            page_bytes: machine.page_bytes,
            seed,
        }
    }
}

impl Fit {
    /// The profile: what is better than the library's own choice. What is not is left out, so that
    /// a later version's better default is not held back by it.
    ///
    /// # Errors
    ///
    /// If a variant has become unavailable since the fit.
    pub fn profile(&self, tool_version: &str, seed: u64) -> Result<Profile, Error> {
        let mut profile = Profile::new(Fingerprint::detect(), tool_version, seed, &today());
        for choice in self.slots.iter().filter(|choice| choice.found.is_better()) {
            profile.set_variant(choice.slot, choice.variant)?;
        }
        for choice in self.gates.iter().filter(|choice| choice.found.is_better()) {
            profile.set_threshold(choice.gate, choice.threshold);
        }
        Ok(profile)
    }
}

fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date(since.as_secs() / (24 * 60 * 60))
}

/// The day so many days after 1970-01-01, in the Gregorian calendar.
fn date(days: u64) -> String {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    let mut left = days;
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let months = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while left >= months[month] {
        left -= months[month];
        month += 1;
    }
    format!("{year:04}-{:02}-{:02}", month + 1, left + 1)
}
