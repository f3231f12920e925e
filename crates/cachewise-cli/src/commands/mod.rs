//! One module per command. Each measures or asks, and makes a report of the answers.

pub(crate) mod bench;
mod cell;
mod compare;
mod earlier;
mod list;
mod machine;
pub(crate) mod map;
mod report;
mod survey;
mod tune;
mod verdict;

use crate::args::{Args, Command};
use crate::export;
use crate::failure::{Failure, INTERRUPTED, NEGATIVE, USAGE_OR_RUN};
use crate::record::{Column, Object, Report, Section, Value, data, identifying};
use crate::results::Fields;
use crate::size::Size;
use crate::voice::Voice;
use cachewise_measure::contestant::libc_version;
use cachewise_measure::tune::today;
use cachewise_measure::{Align, Case, Machine, Temperature};
use std::process::ExitCode;

/// A report, and whether it is all that was asked for.
pub(crate) struct Done {
    pub(crate) report: Report,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Complete,
    /// Some case has no figure because something is wrong.
    Errors,
    /// By a signal; what was finished is in the report.
    Stopped,
    /// The verdict that was asked for is negative.
    Negative,
}

impl Done {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.end {
            End::Complete => ExitCode::SUCCESS,
            End::Errors => USAGE_OR_RUN.into(),
            End::Stopped => INTERRUPTED.into(),
            End::Negative => NEGATIVE.into(),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut voice = Voice::new(&args.output);
    let machine = Machine::detect();
    let done = match &args.command {
        None => verdict::run(&machine, &args.quick, &mut voice)?,
        Some(Command::List) => list::run(&machine),
        Some(Command::Machine) => machine::run(&machine, &mut voice)?,
        Some(Command::Bench(bench)) => bench::run(&machine, bench, &mut voice)?,
        Some(Command::Map(map)) => map::run(&machine, map, args.output.format, &mut voice)?,
        Some(Command::Compare(compare)) => compare::run(&machine, compare, &mut voice)?,
        Some(Command::Tune(tune)) => tune::run(&machine, tune, &mut voice)?,
        Some(Command::LibcTimes(times)) => tune::libc_times(&machine, times)?,
        // A page is no record.
        Some(Command::Report(page)) => return report::run(page),
    };
    export::write(&done.report, args.output.format, args.output.lines)?;
    Ok(done.exit_code())
}

/// The common head's machine. What identifies it is what makes a machine another one; the memory
/// and CPUs it lets us use may change between two runs on one.
const HEAD: &[Column<Machine>] = &[
    identifying(data("vendor", |m| Value::text(m.cpu.vendor()))),
    identifying(data("brand", |m| Value::text(m.cpu.brand()))),
    identifying(data("family", |m| Value::Count(m.cpu.family.into()))),
    identifying(data("model", |m| Value::Count(m.cpu.model.into()))),
    identifying(data("stepping", |m| Value::Count(m.cpu.stepping.into()))),
    identifying(data("hypervisor", |m| Value::Flag(m.cpu.hypervisor))),
    data("cpus", |m| Value::Count(m.cpus as u64)),
    data("memory_bytes", |m| Value::Bytes(m.total_bytes)),
    identifying(data("l1d_bytes", |m| Value::bytes(m.geometry.l1d_bytes().value))),
    identifying(data("l2_bytes", |m| Value::bytes(m.geometry.l2_bytes().value))),
    identifying(data("last_level_bytes", |m| Value::bytes(m.last_level_bytes()))),
    identifying(data("line_bytes", |m| Value::bytes(m.geometry.line_max().value))),
    data("page_bytes", |m| Value::bytes(m.page_bytes)),
];

/// By which fields two heads are of different machines. What one of them doesn't say is no
/// difference.
fn differing(a: &Fields, b: &Fields) -> Vec<&'static str> {
    let differs = |key: &&str| a.get(*key).zip(b.get(*key)).is_some_and(|(a, b)| a != b);
    HEAD.iter().filter(|c| c.identifies).map(|column| column.key).filter(differs).collect()
}

/// What was run.
struct Run;

const RUN: &[Column<Run>] = &[
    data("tool_version", |_| Value::text(env!("CARGO_PKG_VERSION"))),
    data("date", |_| Value::text(today())),
    data("arguments", |_| {
        let arguments = std::env::args_os().skip(1);
        Value::Words(arguments.map(|one| one.to_string_lossy().into_owned()).collect())
    }),
    data("libc", |_| Value::or_missing(libc_version(), Value::Text)),
];

fn report(command: &'static str, machine: &Machine, sections: Vec<Section>) -> Report {
    let machine = Object::new("machine", HEAD, machine);
    Report { command, machine, run: Object::new("run", RUN, &Run), sections }
}

/// The scenario of a case, without its size: cases that differ only in that stand in one table.
fn scenario(case: &Case) -> String {
    let Case { operation, temperature, pattern, align, threads, .. } = *case;
    let mut text = format!("{operation}, {temperature}");
    if temperature == Temperature::Cold {
        text += &format!(" {pattern}");
    }
    if align != Align::default() {
        text += &format!(", {}:{} bytes off", align.dst_bytes, align.src_bytes);
    }
    if threads != 1 {
        text += &format!(", {threads} threads");
    }
    text
}

fn described(case: &Case) -> String {
    format!("{}, {}", scenario(case), Size(case.size_bytes))
}

/// What a reader must know of any figure: that no page fault is in it.
fn note_first_touch(voice: &mut Voice) {
    voice.note(&"memory was written and read back, and results checked, before anything is timed");
}

fn warn_if_range_is_short(machine: &Machine, threads: usize, voice: &mut Voice) {
    if !machine.range(threads).exceeds_last_level() {
        voice.warn(
            "range-within-cache",
            &"memory is too short for a range larger than the last-level cache, so cold is not cold",
            &"free memory, or use fewer threads; the level of each row is measured",
        );
    }
}
