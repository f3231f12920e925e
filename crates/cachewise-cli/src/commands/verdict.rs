//! Without a subcommand: for each slot who wins, by how much and from what size; then what to try
//! next.
//!
//! Slots whose result is used soon are judged hot, where the stores stay in the cache; the
//! `_nontemporal` ones cold, where nobody waits for the bytes. The cost of the later use is not in
//! it.

use super::{Done, End, described, report, warn_if_range_is_short};
use crate::args::Quick;
use crate::failure::Failure;
use crate::interrupt;
use crate::record::{Column, Grouped, Section, Value, data, shown};
use crate::voice::Voice;
use cachewise::switch::Slot;
use cachewise::variant::Operation;
use cachewise_measure::verdict::{Point, Verdict, decide};
use cachewise_measure::{
    Align, Case, Contestant, Effort, Error, Machine, Pattern, Stop, Temperature, measure,
};
use std::time::{Duration, Instant};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const HOT_BYTES: [usize; 6] = [64, 512, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB];
const COLD_BYTES: [usize; 5] = [512, 4 * KIB, 64 * KIB, MIB, 16 * MIB];

pub(super) fn run(machine: &Machine, args: &Quick, voice: &mut Voice) -> Result<Done, Failure> {
    let stop = interrupt::on_ctrl_c()?;
    voice.note(&"the operation alone, one thread; slots used soon are timed hot, others cold");
    warn_if_range_is_short(machine, 1, voice);
    let sizes = |default: &[usize]| match args.size.is_empty() {
        true => default.to_vec(),
        false => args.size.iter().map(|size| size.0).collect(),
    };
    let mut grids = Vec::new();
    for operation in [Operation::Clear, Operation::Copy] {
        grids.push(Grid::new(operation, Temperature::Hot, sizes(&HOT_BYTES)));
        grids.push(Grid::new(operation, Temperature::Cold, sizes(&COLD_BYTES)));
    }
    let effort = args.effort.of_verdict();
    let complete = measure_all(machine, &mut grids, &effort, &stop, voice)?;

    let mut rows = Vec::new();
    for slot in Slot::ALL {
        let Some(grid) = grids.iter().find(|grid| grid.judges(slot)) else { continue };
        let pages =
            |point: &&Point| !slot.is_page() || point.size_bytes.is_multiple_of(machine.page_bytes);
        let points: Vec<Point> = grid.points.iter().filter(pages).cloned().collect();
        match decide(slot, &points, args.effort.seed) {
            Some(verdict) => rows.push(verdict),
            None => voice.note(&format_args!("{slot}: no verdict, nothing was measured for it")),
        }
    }
    voice.note(&"next: cachewise bench copy --temperature cold   (all variants, each size)");
    let sections = vec![Section::list("verdicts", VERDICTS, rows)];
    let end = if complete { End::Complete } else { End::Stopped };
    Ok(Done { report: report("verdict", machine, sections), end })
}

/// One operation at one temperature, at several sizes.
struct Grid {
    operation: Operation,
    temperature: Temperature,
    sizes: Vec<usize>,
    points: Vec<Point>,
}

impl Grid {
    fn new(operation: Operation, temperature: Temperature, mut sizes: Vec<usize>) -> Self {
        sizes.sort_unstable();
        sizes.dedup();
        Self { operation, temperature, sizes, points: Vec::new() }
    }

    fn judges(&self, slot: Slot) -> bool {
        let temperature = if slot.is_nontemporal() { Temperature::Cold } else { Temperature::Hot };
        (self.operation, self.temperature) == (slot.operation(), temperature)
    }
}

/// Shares what is left of the time among the cases that are left. False if stopped.
fn measure_all(
    machine: &Machine,
    grids: &mut [Grid],
    effort: &Effort,
    stop: &Stop,
    voice: &mut Voice,
) -> Result<bool, Failure> {
    let mut left: usize = grids.iter().map(|grid| grid.sizes.len()).sum();
    voice.begin(left);
    let until = Instant::now() + effort.time;
    for grid in grids {
        let field = Contestant::field(grid.operation);
        for &size_bytes in &grid.sizes {
            let case = Case {
                operation: grid.operation,
                size_bytes,
                temperature: grid.temperature,
                pattern: Pattern::Walk,
                align: Align::default(),
                threads: 1,
            };
            voice.step(&described(&case));
            let time = until.saturating_duration_since(Instant::now()) / left.max(1) as u32;
            let effort = Effort { time: time.max(Duration::from_millis(1)), ..*effort };
            match measure(machine, &case, &field, &effort, stop) {
                Ok(measured) => {
                    let times =
                        field.iter().zip(measured.results).filter_map(
                            |(who, result)| match result {
                                Ok(samples) => Some((who.name().to_owned(), samples)),
                                Err(error) => {
                                    voice.note(&error);
                                    None
                                }
                            },
                        );
                    grid.points.push(Point { size_bytes, times: times.collect() });
                }
                Err(Error::Stopped) => {
                    voice.end();
                    return Ok(false);
                }
                Err(error) => voice.note(&format_args!("skipped {}: {error}", described(&case))),
            }
            left -= 1;
            voice.step_done();
        }
    }
    voice.end();
    Ok(true)
}

const VERDICTS: &[Column<Verdict>] = &[
    shown("slot", "slot", |v| Value::text(v.slot)),
    shown("variant", "variant", |v| Value::text(&v.winner)),
    shown("from_bytes", "from", |v| Value::Bytes(v.from_bytes)),
    data("against", |v| Value::text(&v.against)),
    shown("ratio", "ratio", |v| Value::Ratio(v.ratio.median)),
    data("ratio_low", |v| Value::Ratio(v.ratio.low)),
    data("ratio_high", |v| Value::Ratio(v.ratio.high)),
    crate::record::only_shown("interval", |v| Value::Interval(v.ratio.low, v.ratio.high)),
    shown("verdict", "verdict", |v| {
        Value::text(if v.is_a_difference() { "faster" } else { "no difference" })
    }),
];

impl Grouped for Verdict {
    fn group(&self) -> String {
        "times faster than libc from that size on; libc: than the best variant".into()
    }
}
