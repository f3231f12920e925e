//! libc's tunables.

use crate::args::{LibcTimes, Tune};
use crate::commands::{Done, End, report};
use crate::failure::Failure;
use crate::interrupt;
use crate::record::{Column, Grouped, Section, Value, data, only_shown, shown};
use crate::voice::Voice;
use cachewise_measure::tune::glibc::{self, Timed, Trial};
use cachewise_measure::{Error, Machine};
use std::io;
use std::process::Command;

pub(super) fn run(machine: &Machine, args: &Tune, voice: &mut Voice) -> Result<Done, Failure> {
    let stop = interrupt::on_ctrl_c()?;
    let trials = glibc::installed();
    if trials.is_empty() {
        voice.note(&"this libc lists no tunables that could be tried; glibc does from 2.33 on");
    }
    let rounds =
        args.effort.samples.map_or(usize::MAX, usize::from).min(if args.quick { 6 } else { 12 });
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
    let sections = vec![
        Section::object("glibc", LINE, &line),
        Section::list("tunables", TUNABLES, found).of_cases(),
    ];
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
    data("tried", |f| Value::List(f.trial.values.iter().copied().map(Value::Bytes).collect())),
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
pub(super) fn times(machine: &Machine, args: &LibcTimes) -> Result<Done, Failure> {
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
