//! From measured cells to a profile: which variant serves each slot and from what size on, how much
//! is lost by it, and how much by the rules that others ship.
//!
//! The cells are [planned](Plan), measured by a [survey](crate::map::Survey) with the contenders
//! that a [screening](screen) leaves, and [split] in two: two thirds are fitted, the rest only
//! scored. Which cell goes where depends on the seed, not on what was measured.
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

use crate::map::{Cell, Measured};
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
    /// An earlier rule that says the same of all these cells.
    pub same_as: Option<&'static str>,
}

/// All that came out.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The fitted policy.
    pub fit: Fit,
    /// Its regret where the caller says what is done with the result: [`Call::Advised`].
    pub regret: Option<Regret>,
    /// Cells that were held out.
    pub held_out: usize,
    /// Those of them that are too noisy to say anything of a regret, and are left out of it.
    pub unclear: usize,
    /// That of the library's other calls, of the policy that would have been best for just these
    /// cells, of the library untuned, and of what others ship.
    pub rivals: Vec<Scored>,
}

/// Fits a policy to the cells that are not among those held out, and scores it on these.
pub fn tune(
    cells: &[Measured],
    held_out: &[Cell],
    setting: &Setting,
    last_level_bytes: usize,
) -> Tuned {
    let (held_out, fitted): (Vec<&Measured>, Vec<&Measured>) =
        cells.iter().partition(|measured| held_out.contains(&measured.cell));
    let fit = fit(&fitted, setting);
    let served = |call: Call, policy: &Policy| -> Vec<(&Measured, &'static str)> {
        let suits = |m: &&&Measured| call.suits(&m.cell, setting.page_bytes);
        let serves = |m: &&'_ Measured| policy.serves(call, setting.intent(&m.cell), &m.cell);
        held_out.iter().filter(suits).map(|m| (*m, serves(m))).collect()
    };
    let mut rivals = vec![
        ("tuned, plain calls", served(Call::Bytes, &fit.policy)),
        ("tuned, page calls", served(Call::Page, &fit.policy)),
        ("tuned, always _auto", served(Call::Auto, &fit.policy)),
        ("best in hindsight", served(Call::Advised, &fit::hindsight(&held_out, setting))),
        ("library untuned", served(Call::Advised, &setting.default)),
    ];
    rivals.extend(Rival::all(last_level_bytes).map(|(name, rival)| {
        let served = held_out.iter().map(|m| (*m, rival.serves(&setting.default, &m.cell)));
        (name, served.collect())
    }));
    let names = |served: &[(&Measured, &'static str)]| -> Vec<(Cell, &'static str)> {
        served.iter().map(|(measured, name)| (measured.cell, *name)).collect()
    };
    let scored = rivals.iter().enumerate().map(|(index, (name, served))| Scored {
        name,
        regret: score::regret(served),
        same_as: rivals[..index]
            .iter()
            .find(|(_, other)| !other.is_empty() && names(other) == names(served))
            .map(|(name, _)| *name),
    });
    let unclear = held_out.iter().filter(|cell| !score::is_clear(cell)).count();
    let regret = score::regret(&served(Call::Advised, &fit.policy));
    Tuned { regret, held_out: held_out.len(), unclear, rivals: scored.collect(), fit }
}

/// Cells to fit and cells to score. Of each operation and intent every third is held out, in an
/// order shuffled by the seed; the first of each is fitted. Known before the measurement, so that
/// the two can be measured in memory of their own: in a survey those held out come last.
pub fn split(cells: &[Cell], setting: &Setting) -> (Vec<Cell>, Vec<Cell>) {
    const HELD_OUT: usize = 3;
    let mut order: Vec<&Cell> = cells.iter().collect();
    Rng::new(setting.seed).shuffle(&mut order);
    let mut seen = std::collections::HashMap::new();
    let mut held_out: Vec<&Cell> = Vec::new();
    for cell in order {
        let count = seen.entry((cell.operation, setting.intent(cell))).or_insert(0);
        *count += 1;
        if *count % HELD_OUT == 0 {
            held_out.push(cell);
        }
    }
    cells.iter().partition(|cell| !held_out.contains(cell))
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
            last_level_bytes: machine.last_level_bytes(),
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

/// The date, UTC.
pub fn today() -> String {
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
