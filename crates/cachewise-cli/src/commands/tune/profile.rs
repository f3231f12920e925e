//! A profile: measured, fitted, written, with its regret.

use super::{PROFILE, end, per_cent, survey};
use crate::args::Tune;
use crate::commands::cell::described;
use crate::commands::map::{self, rows};
use crate::commands::{Done, End, earlier, report};
use crate::failure::Failure;
use crate::record::{Column, Grouped, Section, Value, data, only_shown, shown};
use crate::size::Size;
use crate::voice::Voice;
use cachewise::policy::Threshold;
use cachewise_measure::Machine;
use cachewise_measure::map::{self as measured, Measured};
use cachewise_measure::stats::Estimate;
use cachewise_measure::tune::{self, Fit, Found, Plan, Regret, Scored, Setting, Tuned};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

pub(super) fn run(
    machine: &Machine,
    args: &Tune,
    setting: &Setting,
    voice: &mut Voice,
) -> Result<Done, Failure> {
    let output = args.output.as_deref().map(Output::new).transpose()?;
    let from = args.from.as_deref().map(|path| from(path, machine)).transpose()?;
    let sizes: Vec<usize> = args.size.iter().map(|size| size.0).collect();
    let plan = match &from {
        Some((plan, _)) => plan.clone(),
        None => Plan::new(&sizes, args.quick),
    };
    voice.note(
        &"two thirds of the cells are fitted; the regret is of the rest, as a share of the whole \
          time less what bystander, delay and use cost by themselves",
    );
    // Those held out come last, and so lie in memory of their own.
    let (fitted, held_out) = tune::split(&plan.cells(machine), setting);
    let (cells, ended) = match from {
        Some((_, cells)) => (cells, measured::End::Complete),
        None => {
            let all = fitted.iter().chain(&held_out).copied().collect();
            survey(machine, args, &plan, all, &[], voice)?
        }
    };
    let tuned = tune::tune(&cells, &held_out, setting, machine.last_level_bytes());
    let profile = tuned.fit.profile(env!("CARGO_PKG_VERSION"), setting.seed)?;
    let end = end(ended);
    if tuned.unclear > 0 {
        voice.warn(
            "noisy-cells",
            &format_args!(
                "{} of {} held-out cells are too noisy to say anything of a regret",
                tuned.unclear, tuned.held_out
            ),
            &"measure on an idle machine, or give more by --time and --samples",
        );
    }
    match output {
        Some(_) if end == End::Stopped => voice.note(&"stopped: no profile was written"),
        Some(output) => {
            let evidence = evidence(&plan, &tuned, cells.len());
            let path = output.finish(&format!("{PROFILE_HEAD}{profile}{evidence}"))?;
            voice.note(&format_args!(
                "load it with CACHEWISE_PROFILE={}, or by the library's profile module",
                path.display()
            ));
        }
        None => voice.note(&"nothing was written; give -o FILE for a profile"),
    }
    let sections = vec![
        Section::object("profile", PROFILE, &profile),
        Section::list("choices", CHOICES, choices(&tuned.fit)),
        Section::object("regret", REGRET, &tuned),
        Section::data("rivals", RIVALS, rules(&tuned).into_iter().skip(1)),
        Section::list("", RULES, rules(&tuned)),
        Section::data("cells", map::CELLS, rows(&cells, setting.seed)).of_cases(),
    ];
    Ok(Done { report: report("tune", machine, sections), end })
}

/// The cells of an earlier result, measured here, and their plan.
fn from(path: &Path, machine: &Machine) -> Result<(Plan, Vec<Measured>), Failure> {
    let cells = earlier::cells(path, machine)?;
    let plan = Plan::of(&cells.iter().map(|measured| measured.cell).collect::<Vec<_>>(), machine);
    let plan = plan.ok_or_else(|| {
        let path = path.display();
        Failure::Input(format!("{path}: its cells are no plan of tune's; measure without --from"))
    })?;
    Ok((plan, cells))
}

const PROFILE_HEAD: &str = "\
# A cachewise profile, measured by `cachewise tune` on the machine described in it.
# What is not named keeps the library's own choice. CACHEWISE_PROFILE=FILE loads it.
";

/// A file that is there as a whole or not at all. What cannot be written is found out before the
/// measurement, not after it.
struct Output<'a> {
    path: &'a Path,
    partial: PathBuf,
}

impl<'a> Output<'a> {
    fn new(path: &'a Path) -> io::Result<Self> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".partial");
        let partial = path.with_file_name(name);
        std::fs::write(&partial, "").map_err(|error| cannot_write(path, &error))?;
        Ok(Self { path, partial })
    }

    fn finish(self, text: &str) -> io::Result<&'a Path> {
        std::fs::write(&self.partial, text)
            .and_then(|()| std::fs::rename(&self.partial, self.path))
            .map_err(|error| cannot_write(self.path, &error))?;
        Ok(self.path)
    }
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        // Once renamed it is not there any more.
        let _ = std::fs::remove_file(&self.partial);
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!("cannot write {}: {error}", path.display()))
}

/// Under which name the plan stands in the evidence.
pub(super) const PLAN: &str = "plan";

/// As the profile's last table, which decides nothing. `--check` looks for the plan.
fn evidence(plan: &Plan, tuned: &Tuned, cells: usize) -> String {
    let mut text = format!("\n[evidence]\n{PLAN} = \"{plan}\"\ncells = {cells}\n");
    for Choice { name, part, chosen, found, .. } in choices(&tuned.fit) {
        let _ = writeln!(text, "{name}-{part} = \"{chosen}: {}\"", why(&found));
    }
    for Ruled { name, regret, .. } in rules(tuned) {
        let key: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        if let Some(Regret { cells, median, p95, worst, .. }) = regret {
            let [median, p95, worst] = [median, p95, worst].map(per_cent);
            let figures = format!("median {median}, 95th percentile {p95}, worst {worst}");
            let _ = writeln!(text, "regret-{key} = \"{figures}, of {cells} held-out cells\"");
        }
    }
    text
}

fn why(found: &Found) -> String {
    let interval = |saving: &Estimate| {
        format!(
            "saves {} ({} to {}) of the operation-related time",
            per_cent(saving.median),
            per_cent(saving.low),
            per_cent(saving.high)
        )
    };
    match found {
        Found::Better(saving) => interval(saving),
        Found::Default => "the default, and nothing better was found".into(),
        Found::NoDifference(_) => "the default, no difference to it was clear of noise".into(),
        Found::Unmeasured => "the default, no cell was about it".into(),
    }
}

/// A slot's variant or a gate's threshold.
struct Choice {
    name: &'static str,
    part: &'static str,
    chosen: String,
    default: String,
    found: Found,
    cells: usize,
}

fn choices(fit: &Fit) -> Vec<Choice> {
    let slots = fit.slots.iter().map(|choice| Choice {
        name: choice.slot.name(),
        part: "variant",
        chosen: choice.variant.name().to_owned(),
        default: choice.default.name().to_owned(),
        found: choice.found,
        cells: choice.cells,
    });
    let gates = fit.gates.iter().map(|choice| Choice {
        name: choice.gate.name(),
        part: "threshold",
        chosen: size_or_state(choice.threshold),
        default: size_or_state(choice.default),
        found: choice.found,
        cells: choice.cells,
    });
    slots.chain(gates).collect()
}

fn size_or_state(threshold: Threshold) -> String {
    match threshold {
        Threshold::Bytes(bytes) => Size(bytes).short(),
        state => state.to_string(),
    }
}

impl Choice {
    fn saving(&self) -> Option<Estimate> {
        match self.found {
            Found::Better(saving) => Some(saving),
            Found::NoDifference(saving) => saving,
            Found::Default | Found::Unmeasured => None,
        }
    }

    fn verdict(&self) -> &'static str {
        match self.found {
            Found::Better(_) => "better",
            Found::Default => "default",
            Found::NoDifference(_) => "no difference",
            Found::Unmeasured => "unmeasured",
        }
    }
}

const CHOICES: &[Column<Choice>] = &[
    only_shown("slot", |row| Value::text(row.name)),
    data("name", |row| Value::text(row.name)),
    data("part", |row| Value::text(row.part)),
    shown("chosen", "chosen", |row| Value::text(&row.chosen)),
    shown("default", "default", |row| Value::text(&row.default)),
    shown("verdict", "verdict", |row| Value::text(row.verdict())),
    only_shown("saves", |row| {
        Value::or_missing(row.saving(), |saving| Value::text(per_cent(saving.median)))
    }),
    data("saving", |row| Value::or_missing(row.saving(), |s| Value::Share(s.median))),
    data("saving_low", |row| Value::or_missing(row.saving(), |s| Value::Share(s.low))),
    data("saving_high", |row| Value::or_missing(row.saving(), |s| Value::Share(s.high))),
    shown("cells", "cells", |row| Value::Count(row.cells as u64)),
];

impl Grouped for Choice {
    fn group(&self) -> String {
        match self.part {
            "variant" => "variants; a default is kept where no other is clearly better".into(),
            _ => "non-temporal from this size on".into(),
        }
    }
}

/// A rule and its regret.
struct Ruled {
    name: &'static str,
    same_as: Option<&'static str>,
    regret: Option<Regret>,
}

fn rules(tuned: &Tuned) -> Vec<Ruled> {
    let rivals = tuned.rivals.iter().map(|Scored { name, same_as, regret }| Ruled {
        name,
        same_as: *same_as,
        regret: regret.clone(),
    });
    [own(tuned)].into_iter().chain(rivals).collect()
}

impl Ruled {
    fn share(&self, part: fn(&Regret) -> f64) -> Value {
        Value::or_missing(self.regret.as_ref(), |regret| Value::Share(part(regret)))
    }

    fn shown(&self, part: fn(&Regret) -> f64) -> Value {
        Value::or_missing(self.regret.as_ref(), |regret| Value::text(per_cent(part(regret))))
    }

    fn cells(&self) -> Value {
        Value::Count(self.regret.as_ref().map_or(0, |regret| regret.cells as u64))
    }

    fn worst_cell(&self) -> Value {
        Value::or_missing(self.regret.as_ref(), |regret| Value::text(described(&regret.worst_cell)))
    }
}

const REGRET: &[Column<Tuned>] = &[
    data("held_out", |tuned| Value::Count(tuned.held_out as u64)),
    data("unclear", |tuned| Value::Count(tuned.unclear as u64)),
    data("cells", |tuned| own(tuned).cells()),
    data("median", |tuned| own(tuned).share(|regret| regret.median)),
    data("p95", |tuned| own(tuned).share(|regret| regret.p95)),
    data("worst", |tuned| own(tuned).share(|regret| regret.worst)),
    data("worst_cell", |tuned| own(tuned).worst_cell()),
];

fn own(tuned: &Tuned) -> Ruled {
    Ruled { name: "tuned", same_as: None, regret: tuned.regret.clone() }
}

const RIVALS: &[Column<Ruled>] = &[
    data("policy", |row| Value::text(row.name)),
    data("same_as", |row| Value::or_missing(row.same_as, Value::text)),
    data("cells", Ruled::cells),
    data("median", |row| row.share(|regret| regret.median)),
    data("p95", |row| row.share(|regret| regret.p95)),
    data("worst", |row| row.share(|regret| regret.worst)),
    data("worst_cell", Ruled::worst_cell),
];

const RULES: &[Column<Ruled>] = &[
    only_shown("policy", |row| Value::text(row.name)),
    only_shown("cells", Ruled::cells),
    only_shown("median", |row| row.shown(|regret| regret.median)),
    only_shown("p95", |row| row.shown(|regret| regret.p95)),
    only_shown("worst", |row| row.shown(|regret| regret.worst)),
    only_shown("where", |row| match row.same_as {
        Some(other) => Value::text(format!("as {other}")),
        None => row.worst_cell(),
    }),
];

impl Grouped for Ruled {
    fn group(&self) -> String {
        "regret on held-out cells, against the best in each".into()
    }
}
