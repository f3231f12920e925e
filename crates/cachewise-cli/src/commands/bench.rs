//! `bench`: ways to copy or to clear, side by side, the operation alone.

use super::{Done, End, described, note_first_touch, report, scenario, warn_if_range_is_short};
use crate::args::Bench;
use crate::failure::Failure;
use crate::interrupt;
use crate::record::{Column, Grouped, Section, Value, data, identifying, only_shown, shown};
use crate::size::Size;
use crate::voice::Voice;
use cachewise::variant::{self, Operation, Variant};
use cachewise_measure::contestant::LIBC;
use cachewise_measure::stats::Estimate;
use cachewise_measure::{
    Case, Contestant, Effort, Error, Ladder, Limits, Located, Machine, Measured, Samples, Stop,
    Temperature, measure,
};
use std::time::Duration;

pub(super) fn run(machine: &Machine, args: &Bench, voice: &mut Voice) -> Result<Done, Failure> {
    let operation = args.operation.into();
    let field = field(operation, args)?;
    let cases = cases(operation, args);
    let stop = interrupt::on_ctrl_c()?;
    let effort = args.effort.per_case();
    let threads = args.threads.into();
    notes(machine, operation, args, voice);
    voice.begin(cases.len() + 1);

    voice.step(&"the machine's limits and the latency of its levels");
    let mut ladder = Ladder::measure(machine)?;
    let limits = Limits::measure(machine, &ladder, threads, &limits_effort(&effort), &stop)?;
    voice.step_done();

    let bench = Table { machine, field: &field, limits: &limits, effort, stop: &stop };
    let mut rows = Vec::new();
    let mut end = End::Complete;
    for case in &cases {
        voice.step(&described(case));
        match bench.case(case, &mut ladder, voice) {
            Ok(measured) => rows.extend(measured),
            Err(Error::Stopped) => {
                end = End::Stopped;
                break;
            }
            Err(error @ Error::MemoryShort { .. }) => {
                rows.extend(bench.without_figures(case, Status::Skipped, &error));
            }
            Err(error) => rows.extend(bench.without_figures(case, Status::Error, &error)),
        }
        voice.step_done();
    }
    voice.end();
    for row in &rows {
        if let (Status::Error | Status::Skipped, Some(because)) = (row.status, &row.because) {
            voice.note(&format_args!("{} ({}): {because}", row.status.name(), row.variant));
        }
    }
    if end == End::Complete && rows.iter().any(|row| row.status == Status::Error) {
        end = End::Errors;
    }
    if args.variant.is_empty() {
        rows.extend(unsupported(operation, &cases));
    }
    let sections = vec![
        Section::list("cases", CASES, rows).of_cases(),
        Section::object("limits", LIMITS, &limits),
    ];
    Ok(Done { report: report("bench", machine, sections), end })
}

/// libc first: it sets the length of a sample.
fn field(operation: Operation, args: &Bench) -> Result<Vec<Contestant>, Error> {
    let mut field = if args.variant.is_empty() {
        Contestant::field(operation)
    } else {
        let named = args.variant.iter().filter(|name| *name != LIBC);
        let named = named.map(|name| Contestant::named(operation, name));
        [Ok(Contestant::libc(operation))].into_iter().chain(named).collect::<Result<_, _>>()?
    };
    for peer in &args.peer {
        field.push(Contestant::peer(operation, peer)?);
    }
    Ok(field)
}

/// Patterns are of cold ranges: a hot case has one piece.
fn cases(operation: Operation, args: &Bench) -> Vec<Case> {
    let mut cases = Vec::new();
    for &temperature in &args.temperature {
        let patterns = match temperature.into() {
            Temperature::Hot => &args.pattern[..1],
            Temperature::Cold => &args.pattern[..],
        };
        for &pattern in patterns {
            for &align in &args.align {
                cases.extend(args.size.iter().map(|size| Case {
                    operation,
                    size_bytes: size.0,
                    temperature: temperature.into(),
                    pattern: pattern.into(),
                    align: align.0,
                    threads: args.threads.into(),
                }));
            }
        }
    }
    cases
}

/// The limits are few and stable: a second is plenty.
fn limits_effort(effort: &Effort) -> Effort {
    Effort { time: effort.time.min(Duration::from_secs(1)), ..*effort }
}

fn notes(machine: &Machine, operation: Operation, args: &Bench, voice: &mut Voice) {
    for note in [
        "median of the samples; +- is its 95 % interval; libc is libc's time over the row's",
        "limit is the share of what reading alone reaches at that level; of what non-temporal \
         stores alone reach if memory is cleared",
    ] {
        voice.note(&note);
    }
    note_first_touch(voice);
    if args.temperature.contains(&crate::args::Temperature::Cold) {
        let range = machine.range(args.threads.into());
        voice.note(&format_args!(
            "cold: each piece once per pass over {}, the last-level cache is said to have {}",
            Size(range.footprint_bytes),
            Size(range.last_level_bytes),
        ));
        warn_if_range_is_short(machine, args.threads.into(), voice);
    }
    if usize::from(args.threads) > machine.cpus {
        voice.warn(
            "threads-exceed-cpus",
            &format_args!("{} threads share {} CPUs", args.threads, machine.cpus),
            &"use fewer threads",
        );
    }
    for doubt in machine.geometry.doubts() {
        voice.warn(doubt.id(), &doubt.cause(), &doubt.remedy());
    }
    if args.variant.is_empty() {
        for (variant, because) in unavailable(operation) {
            voice.note(&format_args!("{} {because}", variant.name()));
        }
    }
}

fn unavailable(operation: Operation) -> impl Iterator<Item = (&'static Variant, String)> {
    let rows = variant::all().iter().filter(move |v| v.operation() == operation);
    rows.filter_map(|v| Some((v, v.unavailable()?.to_string())))
}

/// What all cases share.
struct Table<'a> {
    machine: &'a Machine,
    field: &'a [Contestant],
    limits: &'a Limits,
    effort: Effort,
    stop: &'a Stop,
}

impl Table<'_> {
    fn case(&self, case: &Case, ladder: &mut Ladder, voice: &mut Voice) -> Result<Vec<Row>, Error> {
        let measured = measure(self.machine, case, self.field, &self.effort, self.stop)?;
        let located = ladder.locate(case, measured.footprint_bytes)?;
        if located.level != located.level_claimed {
            voice.note(&format_args!(
                "{}: a load takes {:.1} ns as from {}, by the claimed sizes it is {}",
                described(case),
                located.latency_ns,
                located.level,
                located.level_claimed
            ));
        }
        let limit = self.limits.of(case, located.level);
        let mut rows = self.rows(measured, &located, limit);
        let ns = |row: &Row| row.time.map_or(f64::INFINITY, |time| time.median);
        rows.sort_by(|a, b| ns(a).total_cmp(&ns(b)));
        Ok(rows)
    }

    fn rows(&self, measured: Measured, located: &Located, limit: Option<f64>) -> Vec<Row> {
        let Measured { case, results, .. } = measured;
        let libc = match results.first() {
            Some(Ok(samples)) => samples.clone(),
            _ => Samples::default(),
        };
        let row = |(who, result): (&Contestant, Result<Samples, Error>)| match result {
            Err(error) => Row::without_figures(case, who.name(), Status::Error, Some(&error)),
            Ok(samples) => Row {
                time: samples.estimate(self.effort.seed),
                ratio: libc.ratio(&samples).estimate(self.effort.seed),
                located: Some(located.clone()),
                limit_gb_per_s: limit,
                samples: Some(samples),
                ..Row::without_figures(case, who.name(), Status::Ok, None)
            },
        };
        self.field.iter().zip(results).map(row).collect()
    }

    fn without_figures(&self, case: &Case, status: Status, because: &Error) -> Vec<Row> {
        let row = |who: &Contestant| Row::without_figures(*case, who.name(), status, Some(because));
        self.field.iter().map(row).collect()
    }
}

/// Variants that nobody asked for by name and that cannot run here: in the data, not in tables.
fn unsupported(operation: Operation, cases: &[Case]) -> Vec<Row> {
    let of_case = |case: &Case| {
        let case = *case;
        unavailable(operation).map(move |(variant, because)| {
            Row::without_figures(case, variant.name(), Status::Unsupported, Some(&because))
        })
    };
    cases.iter().flat_map(of_case).collect()
}

pub(crate) struct Row {
    case: Case,
    variant: String,
    status: Status,
    because: Option<String>,
    time: Option<Estimate>,
    /// libc's time over this one's.
    ratio: Option<Estimate>,
    located: Option<Located>,
    limit_gb_per_s: Option<f64>,
    samples: Option<Samples>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Ok,
    Unsupported,
    Skipped,
    Error,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unsupported => "unsupported",
            Self::Skipped => "skipped",
            Self::Error => "error",
        }
    }
}

impl Row {
    fn without_figures(
        case: Case,
        variant: &str,
        status: Status,
        because: Option<&dyn std::fmt::Display>,
    ) -> Self {
        Self {
            case,
            variant: variant.to_owned(),
            status,
            because: because.map(ToString::to_string),
            time: None,
            ratio: None,
            located: None,
            limit_gb_per_s: None,
            samples: None,
        }
    }

    fn gb_per_s(&self) -> Option<f64> {
        self.time.map(|time| self.case.gb_per_s(time.median))
    }

    fn share_of_limit(&self) -> Option<f64> {
        Some(self.gb_per_s()? / self.limit_gb_per_s?)
    }

    /// The interval's farther end, as a share of the median.
    fn spread(&self) -> Option<f64> {
        let time = self.time?;
        Some((time.high - time.median).max(time.median - time.low) / time.median)
    }

    fn time(&self, part: fn(Estimate) -> f64) -> Value {
        Value::or_missing(self.time.map(part), Value::Ns)
    }

    fn ratio(&self, part: fn(Estimate) -> f64) -> Value {
        Value::or_missing(self.ratio.map(part), Value::Ratio)
    }

    fn located(&self, part: fn(&Located) -> Value) -> Value {
        Value::or_missing(self.located.as_ref(), part)
    }
}

pub(crate) const CASES: &[Column<Row>] = &[
    identifying(data("operation", |row| Value::text(row.case.operation))),
    identifying(shown("size_bytes", "size", |row| Value::bytes(row.case.size_bytes))),
    identifying(shown("variant", "variant", |row| Value::text(&row.variant))),
    identifying(data("temperature", |row| Value::text(row.case.temperature))),
    identifying(data("pattern", |row| match row.case.temperature {
        Temperature::Hot => Value::Missing,
        Temperature::Cold => Value::text(row.case.pattern),
    })),
    identifying(data("align_dst_bytes", |row| Value::bytes(row.case.align.dst_bytes))),
    identifying(data("align_src_bytes", |row| Value::bytes(row.case.align.src_bytes))),
    identifying(data("threads", |row| Value::Count(row.case.threads as u64))),
    shown("median_ns", "median", |row| match row.status {
        Status::Ok => row.time(|time| time.median),
        // A word where the figure would be, for people; machines have their own field.
        _ => Value::Missing,
    }),
    data("low_ns", |row| row.time(|time| time.low)),
    data("high_ns", |row| row.time(|time| time.high)),
    only_shown("+-", |row| Value::or_missing(row.spread(), Value::Share)),
    shown("gb_per_s", "GB/s", |row| Value::or_missing(row.gb_per_s(), Value::GbPerS)),
    data("limit_gb_per_s", |row| Value::or_missing(row.limit_gb_per_s, Value::GbPerS)),
    shown("share_of_limit", "limit", |row| Value::or_missing(row.share_of_limit(), Value::Share)),
    data("against", |_| Value::text(LIBC)),
    shown("ratio", "libc", |row| row.ratio(|ratio| ratio.median)),
    data("ratio_low", |row| row.ratio(|ratio| ratio.low)),
    data("ratio_high", |row| row.ratio(|ratio| ratio.high)),
    only_shown("level", |row| match row.status {
        Status::Ok => row.located(|located| Value::text(located.level)),
        status => Value::text(status.name()),
    }),
    data("level", |row| row.located(|located| Value::text(located.level))),
    data("level_claimed", |row| row.located(|located| Value::text(located.level_claimed))),
    data("latency_ns", |row| row.located(|located| Value::Ns(located.latency_ns))),
    data("status", |row| Value::text(row.status.name())),
    data("because", |row| Value::or_missing(row.because.as_ref(), Value::text)),
    data("samples", |row| {
        Value::or_missing(row.samples.as_ref(), |s| Value::Count(s.count() as u64))
    }),
    data("samples_ns", |row| {
        Value::or_missing(row.samples.as_ref(), |s| Value::Samples(s.batches().to_vec()))
    }),
];

const LIMITS: &[Column<Limits>] = &[
    shown("read_gb_per_s", "read-only walk, GB/s", |l| Value::GbPerS(l.read_gb_per_s)),
    shown("nt_store_gb_per_s", "non-temporal store walk, GB/s", |l| {
        Value::or_missing(l.nt_store.as_ref(), |(rate, _)| Value::GbPerS(*rate))
    }),
    shown("nt_store_variant", "by", |l| {
        Value::or_missing(l.nt_store.as_ref(), |(_, name)| Value::text(name))
    }),
];

impl Grouped for Row {
    fn group(&self) -> String {
        scenario(&self.case)
    }

    fn only_data(&self) -> bool {
        self.status == Status::Unsupported
    }
}
