//! `tune`: a policy for this machine, as a profile, with its regret; whether an earlier profile still
//! holds; libc's tunables.

use super::{Done, End, report};
use crate::args::{LibcTimes, Tune};
use crate::failure::Failure;
use crate::interrupt;
use crate::record::{Column, Grouped, Section, Value, data, only_shown, shown};
use crate::size::Size;
use crate::voice::Voice;
use cachewise::policy::Gate;
use cachewise::policy::Threshold;
use cachewise::profile::{Profile, SCHEMA_VERSION};
use cachewise::switch::{self, DecidedBy, Slot};
use cachewise::variant::{self, Operation, Variant};
use cachewise_measure::map::{self, Cell, Share, Victim};
use cachewise_measure::stats::Estimate;
use cachewise_measure::tune::glibc::{self, Timed, Trial};
use cachewise_measure::tune::{
    self, Checked, Fit, Found, Regret, Scored, Setting, Standing, Survey, Surveyed, Tuned,
};
use cachewise_measure::{Effort, Error, Machine};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) fn run(machine: &Machine, args: &Tune, voice: &mut Voice) -> Result<Done, Failure> {
    if args.glibc {
        return tunables(machine, args, voice);
    }
    if Slot::ALL.into_iter().any(|slot| switch::why(slot).decided_by != DecidedBy::Default) {
        voice.note(
            &"what the environment chose is set aside: a profile is measured against defaults",
        );
    }
    tune::start_from_defaults();
    let setting = Setting::of(machine, args.effort.seed);
    match &args.check {
        Some(path) => check(machine, args, path, &setting, voice),
        None => profile(machine, args, &setting, voice),
    }
}

// ---- A profile. ----

fn profile(
    machine: &Machine,
    args: &Tune,
    setting: &Setting,
    voice: &mut Voice,
) -> Result<Done, Failure> {
    let output = args.output.as_deref().map(Output::new).transpose()?;
    let surveyed = survey(machine, args, &[], voice)?;
    let tuned = tune::tune(&surveyed.cells, setting, machine.last_level_bytes());
    let profile = tuned.fit.profile(env!("CARGO_PKG_VERSION"), setting.seed)?;
    let end = if surveyed.stopped { End::Stopped } else { End::Complete };
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
            let evidence = evidence(&tuned, surveyed.cells.len());
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
        Section::list("rivals", RIVALS, rules(&tuned).into_iter().skip(1).map(Data)),
        Section::list("", RULES, rules(&tuned)),
    ];
    Ok(Done { report: report("tune", machine, sections), end })
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

/// As the profile's last table, which nobody reads but people.
fn evidence(tuned: &Tuned, cells: usize) -> String {
    let mut text = format!("\n[evidence]\ncells = {cells}\n");
    for Choice { name, part, chosen, found, .. } in choices(&tuned.fit) {
        let _ = writeln!(text, "{name}-{part} = \"{chosen}: {}\"", why(&found));
    }
    for Ruled { name, regret } in rules(tuned) {
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

fn per_cent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
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

fn survey(
    machine: &Machine,
    args: &Tune,
    also: &[&'static Variant],
    voice: &mut Voice,
) -> Result<Surveyed, Failure> {
    let stop = interrupt::on_ctrl_c()?;
    let sizes: Vec<usize> = args.size.iter().map(|size| size.0).collect();
    let cells = tune::plan(machine, &sizes, args.quick);
    let effort = args.effort.of_tune(args.quick);
    super::warn_if_range_is_short(machine, 1, voice);
    for doubt in machine.geometry.doubts() {
        voice.warn(doubt.id(), &doubt.cause(), &doubt.remedy());
    }
    voice.note(
        &"two thirds of the cells are fitted; the regret is of the rest, as a share of the whole \
          time less what bystander, delay and use cost by themselves",
    );
    let mut field = Vec::new();
    let screening = Effort { time: effort.time.mul_f64(SCREENING), ..effort };
    voice.begin(cells.len());
    for operation in [Operation::Clear, Operation::Copy] {
        voice.step(&format_args!("who may contend, {operation}"));
        let also: Vec<_> = also.iter().copied().filter(|v| v.operation() == operation).collect();
        field.extend(tune::screen(machine, operation, &also, &screening, &stop)?);
    }
    let survey = Survey { machine, cells: &cells, field: &field, effort, stop: &stop };
    let mut under_way = 0;
    let surveyed = survey.run(&mut |cell, count| {
        (0..under_way).for_each(|_| voice.step_done());
        under_way = count;
        voice.step(&format_args!("{count} cells of {}", ground(cell)));
    });
    voice.end();
    for (cell, error) in &surveyed.without {
        voice.note(&format_args!("left out {}: {error}", ground(cell)));
    }
    if surveyed.cells.is_empty() {
        return match surveyed.without.into_iter().next() {
            Some((_, error)) => Err(error.into()),
            None => Err(Error::Stopped.into()),
        };
    }
    Ok(surveyed)
}

/// Of the time, for each of three sizes.
const SCREENING: f64 = 0.01;

fn ground(cell: &Cell) -> String {
    match cell.operation {
        Operation::Copy => format!("copy, {}, {} source", Size(cell.size_bytes), cell.source),
        Operation::Clear => format!("clear, {}", Size(cell.size_bytes)),
    }
}

const PROFILE: &[Column<Profile>] = &[
    data("schema_version", |_| Value::Count(SCHEMA_VERSION)),
    data("tool_version", |p| Value::text(p.tool_version())),
    data("seed", |p| Value::Count(p.seed())),
    data("date", |p| Value::text(p.date())),
    data("machine", |p| {
        Value::Named(p.machine.entries().map(|(k, v)| (k, bare(&v.to_string()))).collect())
    }),
    data("variants", |p| {
        let named = Slot::ALL.into_iter().filter_map(|slot| Some((slot, p.variant(slot)?)));
        Value::Named(named.map(|(slot, name)| (slot.name(), Value::text(name))).collect())
    }),
    data("thresholds", |p| {
        let named = Gate::ALL.into_iter().filter_map(|gate| Some((gate, p.threshold(gate)?)));
        Value::Named(named.map(|(gate, t)| (gate.name(), threshold(t))).collect())
    }),
];

/// As the profile writes them: a number, or a text in quotes.
fn bare(written: &str) -> Value {
    match written.parse() {
        Ok(number) => Value::Count(number),
        Err(_) => Value::text(written.trim_matches('"')),
    }
}

fn threshold(threshold: Threshold) -> Value {
    match threshold {
        Threshold::Bytes(bytes) => Value::bytes(bytes),
        state => Value::text(state),
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
    regret: Option<Regret>,
}

fn rules(tuned: &Tuned) -> Vec<Ruled> {
    let rivals =
        tuned.rivals.iter().map(|Scored { name, regret }| Ruled { name, regret: regret.clone() });
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
        Value::or_missing(self.regret.as_ref(), |regret| Value::text(scenario(&regret.worst_cell)))
    }
}

/// A cell in a few words.
fn scenario(cell: &Cell) -> String {
    let mut text = ground(cell);
    let used = cell.used.as_f64() * 100.0;
    let _ = match cell.used {
        Share::NONE => write!(text, ", unused"),
        _ => write!(text, ", {used:.0} % {} after", cell.use_kind),
    };
    if cell.delay_bytes > 0 {
        let _ = write!(text, ", {} between", Size(cell.delay_bytes).short());
    }
    if cell.victim != Victim::NONE {
        let _ = write!(text, ", bystander {}", Size(cell.victim.bytes).short());
    }
    text
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
    Ruled { name: "tuned", regret: tuned.regret.clone() }
}

/// A row for machines only.
struct Data(Ruled);

const RIVALS: &[Column<Data>] = &[
    data("policy", |row| Value::text(row.0.name)),
    data("cells", |row| row.0.cells()),
    data("median", |row| row.0.share(|regret| regret.median)),
    data("p95", |row| row.0.share(|regret| regret.p95)),
    data("worst", |row| row.0.share(|regret| regret.worst)),
    data("worst_cell", |row| row.0.worst_cell()),
];

const RULES: &[Column<Ruled>] = &[
    only_shown("policy", |row| Value::text(row.name)),
    only_shown("cells", Ruled::cells),
    only_shown("median", |row| row.shown(|regret| regret.median)),
    only_shown("p95", |row| row.shown(|regret| regret.p95)),
    only_shown("worst", |row| row.shown(|regret| regret.worst)),
    only_shown("where", Ruled::worst_cell),
];

impl Grouped for Data {
    fn only_data(&self) -> bool {
        true
    }
}

impl Grouped for Ruled {
    fn group(&self) -> String {
        "regret on held-out cells, against the best in each".into()
    }
}

// ---- An earlier profile. ----

fn check(
    machine: &Machine,
    args: &Tune,
    path: &Path,
    setting: &Setting,
    voice: &mut Voice,
) -> Result<Done, Failure> {
    let profile = Profile::from_path(path).map_err(Error::from)?;
    let then = tune::policy_of(&profile, &setting.default)?;
    let also: Vec<&'static Variant> = variant::all()
        .iter()
        .filter(|v| Slot::ALL.iter().any(|s| then.variant(*s) == *v))
        .collect();
    let surveyed = survey(machine, args, &also, voice)?;
    let cells: Vec<&map::Measured> = surveyed.cells.iter().collect();
    let fit = tune::fit(&cells, setting);
    let rows = tune::check(&then, &fit, &cells, setting);
    let sections =
        vec![Section::object("profile", PROFILE, &profile), Section::list("checks", CHECKS, rows)];
    let end = if surveyed.stopped { End::Stopped } else { End::Complete };
    Ok(Done { report: report("tune", machine, sections), end })
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

// ---- libc's tunables. ----

fn tunables(machine: &Machine, args: &Tune, voice: &mut Voice) -> Result<Done, Failure> {
    let stop = interrupt::on_ctrl_c()?;
    let trials = glibc::installed();
    if trials.is_empty() {
        voice.note(&"this libc lists no tunables that could be tried; glibc does from 2.33 on");
    }
    let rounds = usize::from(args.effort.samples).min(if args.quick { 6 } else { 12 });
    if rounds < glibc::ROUNDS_MIN {
        voice.note(&format_args!("below {} samples nothing is confirmed", glibc::ROUNDS_MIN));
    }
    voice.note(
        &"each trial is a process of its own; large copies are timed as a whole, half of them with \
          all of the result read at once, half with nothing of it used",
    );
    let mut child = |setting: &str, trial: &Trial| libc_child(setting, trial, args.effort.seed);
    voice.begin(2 * trials.len());
    let found =
        glibc::find(&trials, rounds, args.effort.seed, &mut child, &stop, &mut |trial, again| {
            let what = if again { "the best value once more" } else { "all values" };
            voice.step(&format_args!("{}, {what}", trial.tunable.name));
            voice.step_done();
        })?;
    voice.end();
    let line = Line(glibc::line(&found));
    if line.0.is_none() {
        voice.note(&"no tunable is a gain here that is clear of noise");
    }
    let sections =
        vec![Section::object("glibc", LINE, &line), Section::list("tunables", TUNABLES, found)];
    Ok(Done { report: report("tune", machine, sections), end: End::Complete })
}

struct Line(Option<String>);

const LINE: &[Column<Line>] = &[shown("tunables", "set", |line| match &line.0 {
    Some(line) => Value::text(format!("GLIBC_TUNABLES={line}")),
    None => Value::Missing,
})];

const TUNABLES: &[Column<glibc::Found>] = &[
    only_shown("tunable", |f| Value::text(f.trial.tunable.name.trim_start_matches("glibc.cpu."))),
    data("tunable", |f| Value::text(&f.trial.tunable.name)),
    data("operation", |f| Value::text(f.trial.operation)),
    shown("default_bytes", "default", |f| Value::Bytes(f.trial.tunable.value)),
    data("tried", |f| Value::Words(f.trial.values.iter().map(u64::to_string).collect())),
    shown("value_bytes", "best", |f| Value::or_missing(f.value, Value::Bytes)),
    shown("ratio", "faster", |f| Value::or_missing(f.ratio, |r| Value::Ratio(r.median))),
    data("ratio_low", |f| Value::or_missing(f.ratio, |r| Value::Ratio(r.low))),
    data("ratio_high", |f| Value::or_missing(f.ratio, |r| Value::Ratio(r.high))),
    only_shown("interval", |f| Value::or_missing(f.ratio, |r| Value::Interval(r.low, r.high))),
    shown("verdict", "verdict", |f| {
        Value::text(match (f.value, f.is_a_gain()) {
            (_, true) => "gain",
            (Some(_), false) => "no difference",
            (None, false) => "default",
        })
    }),
];

impl Grouped for glibc::Found {
    fn group(&self) -> String {
        "the value that looked best, run against the default once more".into()
    }
}

/// This program again, under a setting, for the times of its libc.
fn libc_child(setting: &str, trial: &Trial, seed: u64) -> Result<Vec<f64>, Error> {
    let sizes: Vec<String> = trial.sizes_bytes.iter().map(ToString::to_string).collect();
    let mut command = Command::new(std::env::current_exe().map_err(Error::Child)?);
    command.args(["libc-times", &trial.operation.to_string(), "--size", &sizes.join(",")]);
    command.args(["--format", "json", "--quiet", "--seed", &seed.to_string()]);
    if trial.timed == Timed::Whole {
        command.arg("--whole");
    }
    match setting {
        "" => command.env_remove("GLIBC_TUNABLES"),
        setting => command.env("GLIBC_TUNABLES", setting),
    };
    let output = command.stderr(std::process::Stdio::inherit()).output().map_err(Error::Child)?;
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let times = value["times"].as_array().map(Vec::as_slice).unwrap_or_default();
    let times: Option<Vec<f64>> = times.iter().map(|time| time["ns"].as_f64()).collect();
    match times.filter(|times| output.status.success() && !times.is_empty()) {
        Some(times) => Ok(times),
        None => Err(Error::Child(io::Error::other(format!("it ended with {}", output.status)))),
    }
}

/// `libc-times`: what the process above reads.
pub(super) fn libc_times(machine: &Machine, args: &LibcTimes) -> Result<Done, Failure> {
    let stop = interrupt::on_ctrl_c()?;
    let timed = if args.whole { Timed::Whole } else { Timed::Hot };
    let sizes: Vec<usize> = args.size.iter().map(|size| size.0).collect();
    let operation = args.operation.into();
    let times = glibc::times(machine, operation, timed, &sizes, args.effort.seed, &stop)?;
    let sections = vec![Section::list("times", TIMES, times)];
    Ok(Done { report: report("libc-times", machine, sections), end: End::Complete })
}

const TIMES: &[Column<f64>] = &[shown("ns", "time", |ns| Value::Ns(*ns))];

impl Grouped for f64 {}
