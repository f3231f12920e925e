//! `tune`: a policy for this machine, as a profile, with its regret; whether an earlier profile still
//! holds; libc's tunables.

mod check;
mod glibc;
mod profile;

use super::Done;
use crate::args::{LibcTimes, Tune};
use crate::failure::Failure;
use crate::interrupt;
use crate::record::{Column, Value, data};
use crate::voice::Voice;
use cachewise::policy::{Gate, Threshold};
use cachewise::profile::{Profile, SCHEMA_VERSION};
use cachewise::switch::{self, DecidedBy, Slot};
use cachewise::variant::{Operation, Variant};
use cachewise_measure::map::{Cell, End, Measured, Survey};
use cachewise_measure::tune::{self, Plan, Setting};
use cachewise_measure::{Error, Machine};

pub(super) fn run(machine: &Machine, args: &Tune, voice: &mut Voice) -> Result<Done, Failure> {
    if args.glibc {
        return glibc::run(machine, args, voice);
    }
    if Slot::ALL.into_iter().any(|slot| switch::why(slot).decided_by != DecidedBy::Default) {
        voice.note(
            &"what the environment chose is set aside: a profile is measured against defaults",
        );
    }
    tune::start_from_defaults();
    let setting = Setting::of(machine, args.effort.seed);
    match &args.check {
        Some(path) => check::run(machine, args, path, &setting, voice),
        None => profile::run(machine, args, &setting, voice),
    }
}

pub(super) fn libc_times(machine: &Machine, args: &LibcTimes) -> Result<Done, Failure> {
    glibc::times(machine, args)
}

/// Measures the cells of a plan; `also` takes part whatever the screening says. What has no figures
/// is left out.
fn survey(
    machine: &Machine,
    args: &Tune,
    plan: &Plan,
    cells: Vec<Cell>,
    also: &[&'static Variant],
    voice: &mut Voice,
) -> Result<(Vec<Measured>, End), Failure> {
    let stop = interrupt::on_ctrl_c()?;
    let effort = args.effort.of_tune(plan.is_quick());
    super::warn_if_range_is_short(machine, 1, voice);
    for doubt in machine.geometry.doubts() {
        voice.warn(doubt.id(), &doubt.cause(), &doubt.remedy());
    }
    let mut field = Vec::new();
    for operation in [Operation::Clear, Operation::Copy] {
        voice.step(&format_args!("who may contend, {operation}"));
        let also: Vec<_> = also.iter().copied().filter(|v| v.operation() == operation).collect();
        let samples = if plan.is_quick() { 3 } else { 9 };
        field.extend(tune::screen(machine, operation, &also, samples, effort.seed, &stop)?);
    }
    let survey = Survey {
        machine,
        field: &field,
        all_contend: true,
        cells,
        fixed: true,
        time: effort.time,
        samples: effort.samples,
        seed: effort.seed,
        stop: &stop,
    };
    let mut cells = Vec::new();
    let end = super::survey::run(&survey, &mut cells, voice)?;
    cells.retain(|measured| measured.ok().next().is_some());
    match (cells.is_empty(), end) {
        (true, End::Stopped) => Err(Error::Stopped.into()),
        (true, _) => Err(Failure::Input(
            "no cell could be measured, for the reasons in the notes; free memory or take smaller \
             --size"
                .into(),
        )),
        _ => Ok((cells, end)),
    }
}

fn end(of_survey: End) -> super::End {
    match of_survey {
        End::Stopped => super::End::Stopped,
        End::Complete | End::TimeShort(_) => super::End::Complete,
    }
}

fn per_cent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
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
