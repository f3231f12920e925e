//! Whether an earlier profile still holds.

use super::profile::PLAN;
use super::{PROFILE, end, per_cent, survey};
use crate::args::{CheckFailOn, Tune};
use crate::commands::map::{self, rows};
use crate::commands::{Done, End, report};
use crate::failure::Failure;
use crate::record::{Column, Grouped, Section, Value, data, only_shown, shown};
use crate::voice::Voice;
use cachewise::profile::{Profile, evidence};
use cachewise::switch::Slot;
use cachewise::variant::{self, Variant};
use cachewise_measure::map::Measured;
use cachewise_measure::stats::Estimate;
use cachewise_measure::tune::{self, Checked, Plan, Setting, Standing};
use cachewise_measure::{Error, Machine};
use std::fs;
use std::path::Path;

pub(super) fn run(
    machine: &Machine,
    args: &Tune,
    path: &Path,
    setting: &Setting,
    voice: &mut Voice,
) -> Result<Done, Failure> {
    let profile = Profile::from_path(path).map_err(Error::from)?;
    let plan = plan(path, args, voice)?;
    let then = tune::policy_of(&profile, &setting.default)?;
    let also: Vec<&'static Variant> = variant::all()
        .iter()
        .filter(|v| Slot::ALL.iter().any(|s| then.variant(*s) == *v))
        .collect();
    let (cells, ended) = survey(machine, args, &plan, plan.cells(machine), &also, voice)?;
    let all: Vec<&Measured> = cells.iter().collect();
    let fit = tune::fit(&all, setting);
    let checked = tune::check(&then, &fit, &all, setting);
    let differs = checked.iter().any(|line| matches!(line.standing, Standing::Differs(_)));
    let end = match end(ended) {
        End::Complete if differs && args.fail_on == Some(CheckFailOn::Differs) => End::Negative,
        end => end,
    };
    let sections = vec![
        Section::object("profile", PROFILE, &profile),
        Section::list("checks", CHECKS, checked),
        Section::data("cells", map::CELLS, rows(&cells, setting.seed)).of_cases(),
    ];
    Ok(Done { report: report("tune", machine, sections), end })
}

/// The profile's own plan, unless another one is asked for.
fn plan(path: &Path, args: &Tune, voice: &mut Voice) -> Result<Plan, Failure> {
    let fail = |because: String| Failure::Input(format!("{}: {because}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
    let recorded = evidence(&text, PLAN);
    if args.quick || !args.size.is_empty() || recorded.is_none() {
        if recorded.is_none() {
            voice.note(&"the profile does not say what it was measured by; see --quick and --size");
        }
        let sizes: Vec<usize> = args.size.iter().map(|size| size.0).collect();
        return Ok(Plan::new(&sizes, args.quick));
    }
    recorded.unwrap_or_default().parse().map_err(|error| {
        fail(format!("the plan in its evidence is wrong: {error}; give --size or --quick"))
    })
}

fn difference(standing: &Standing) -> Option<Estimate> {
    match standing {
        Standing::Same => None,
        Standing::Differs(saving) | Standing::Holds(saving) => Some(*saving),
        Standing::CannotTell(saving) => *saving,
    }
}

const CHECKS: &[Column<Checked>] = &[
    only_shown("slot", |row| Value::text(row.name)),
    data("name", |row| Value::text(row.name)),
    data("part", |row| Value::text(row.part)),
    shown("then", "profile", |row| Value::text(&row.then)),
    shown("now", "now", |row| Value::text(&row.now)),
    shown("standing", "standing", |row| {
        Value::text(match row.standing {
            Standing::Same => "same",
            Standing::Differs(_) => "differs",
            Standing::Holds(_) => "holds",
            Standing::CannotTell(_) => "cannot tell",
        })
    }),
    only_shown("now saves", |row| {
        Value::or_missing(difference(&row.standing), |s| Value::text(per_cent(s.median)))
    }),
    data("saving", |row| Value::or_missing(difference(&row.standing), |s| Value::Share(s.median))),
    data("saving_low", |row| Value::or_missing(difference(&row.standing), |s| Value::Share(s.low))),
    data("saving_high", |row| {
        Value::or_missing(difference(&row.standing), |s| Value::Share(s.high))
    }),
];

impl Grouped for Checked {
    fn group(&self) -> String {
        match self.part {
            "variant" => "variants".into(),
            _ => "thresholds; one step of the sizes is the same".into(),
        }
    }
}
