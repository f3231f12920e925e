//! Without a subcommand: for each slot who wins, by how much and from what size; then what to try
//! next.
//!
//! Slots whose result is used soon are judged hot, where the stores stay in the cache; the
//! `_nontemporal` ones cold, where nobody waits for the bytes. The cost of the later use is not in
//! it.

use super::{Done, End, described, note_first_touch, report, warn_if_range_is_short};
use crate::args::Quick;
use crate::failure::Failure;
use crate::interrupt;
use crate::record::{Column, Grouped, Section, Value, data, only_shown, shown};
use crate::voice::Voice;
use cachewise::switch::Slot;
use cachewise::variant::Operation;
use cachewise_measure::verdict::{Point, Verdict, decide};
use cachewise_measure::{
    Align, Case, Contestant, Effort, Error, Machine, Pattern, Stop, Temperature, measure,
};
use std::time::Instant;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// The most telling first: where time is short, the others are left out.
const HOT_BYTES: [usize; 6] = [4 * KIB, 512, 64 * KIB, 64, 16 * KIB, 256 * KIB];
const COLD_BYTES: [usize; 5] = [64 * KIB, 4 * KIB, MIB, 512, 16 * MIB];

pub(super) fn run(machine: &Machine, args: &Quick, voice: &mut Voice) -> Result<Done, Failure> {
    let stop = interrupt::on_ctrl_c()?;
    voice.note(&"the operation alone, one thread; slots used soon are timed hot, others cold");
    note_first_touch(voice);
    warn_if_range_is_short(machine, 1, voice);
    let sizes = |default: &[usize]| match args.size.is_empty() {
        true => default.to_vec(),
        false => args.size.iter().map(|size| size.0).collect(),
    };
    let (hot, cold) = (sizes(&HOT_BYTES), sizes(&COLD_BYTES));
    let mut grids = Vec::new();
    for operation in [Operation::Clear, Operation::Copy] {
        grids.push(Grid::new(operation, Temperature::Hot, &hot));
        grids.push(Grid::new(operation, Temperature::Cold, &cold));
    }
    let end = measure_all(machine, &mut grids, &args.effort.of_verdict(), &stop, voice);
    voice.end();

    let mut rows = Vec::new();
    for slot in Slot::ALL {
        let Some(grid) = grids.iter().find(|grid| grid.judges(slot)) else { continue };
        let suits =
            |point: &&Point| !slot.is_page() || point.size_bytes.is_multiple_of(machine.page_bytes);
        let mut points: Vec<Point> = grid.points.iter().filter(suits).cloned().collect();
        points.sort_by_key(|point| point.size_bytes);
        match decide(slot, &points, args.effort.seed) {
            Some(verdict) => rows.push(verdict),
            None => voice.note(&format_args!("{slot}: no verdict, too little was measured for it")),
        }
    }
    voice.note(&"next: cachewise map copy --quick   (the later use and the bystanders counted)");
    let sections = vec![Section::list("verdicts", VERDICTS, rows).of_cases()];
    Ok(Done { report: report("verdict", machine, sections), end })
}

/// One operation at one temperature, at several sizes.
struct Grid {
    field: Vec<Contestant>,
    cases: Vec<Case>,
    points: Vec<Point>,
}

impl Grid {
    fn new(operation: Operation, temperature: Temperature, sizes: &[usize]) -> Self {
        let case = |&size_bytes| Case {
            operation,
            size_bytes,
            temperature,
            pattern: Pattern::Walk,
            align: Align::default(),
            threads: 1,
        };
        let (field, cases) = (Contestant::field(operation), sizes.iter().map(case).collect());
        Self { field, cases, points: Vec::new() }
    }

    fn judges(&self, slot: Slot) -> bool {
        let temperature = if slot.is_nontemporal() { Temperature::Cold } else { Temperature::Hot };
        let suits =
            |case: &Case| (case.operation, case.temperature) == (slot.operation(), temperature);
        self.cases.first().is_some_and(suits)
    }

    fn measure(
        &mut self,
        machine: &Machine,
        case: &Case,
        effort: &Effort,
        stop: &Stop,
        voice: &mut Voice,
    ) -> Result<(), Error> {
        let measured = measure(machine, case, &self.field, effort, stop)?;
        let mut times = Vec::new();
        for (who, result) in self.field.iter().zip(measured.results) {
            match result {
                Ok(samples) => times.push((who.name().to_owned(), samples)),
                Err(error) => voice.note(&error),
            }
        }
        self.points.push(Point { size_bytes: case.size_bytes, times });
        Ok(())
    }
}

/// Goes through the grids size by size, sharing what is left of the time among the cases that are
/// left. Every grid gets its first size, whatever the time.
fn measure_all(
    machine: &Machine,
    grids: &mut [Grid],
    effort: &Effort,
    stop: &Stop,
    voice: &mut Voice,
) -> End {
    let mut left: usize = grids.iter().map(|grid| grid.cases.len()).sum();
    let rows = grids.iter().map(|grid| grid.cases.len()).max().unwrap_or(0);
    let until = Instant::now() + effort.time;
    let mut end = End::Complete;
    voice.begin(left);
    for row in 0..rows {
        for grid in grids.iter_mut() {
            let Some(case) = grid.cases.get(row).copied() else { continue };
            let time = until.saturating_duration_since(Instant::now()) / left.max(1) as u32;
            if time.is_zero() && row > 0 {
                voice.note(&"the time was too short for all sizes; give more by --time");
                return end;
            }
            voice.step(&described(&case));
            match grid.measure(machine, &case, &Effort { time, ..*effort }, stop, voice) {
                Ok(()) => {}
                Err(Error::Stopped) => return End::Stopped,
                Err(error @ Error::MemoryShort { .. }) => {
                    voice.note(&format_args!("skipped {}: {error}", described(&case)));
                }
                Err(error) => {
                    voice.note(&format_args!("failed {}: {error}", described(&case)));
                    end = End::Errors;
                }
            }
            left -= 1;
            voice.step_done();
        }
    }
    end
}

const VERDICTS: &[Column<Verdict>] = &[
    shown("slot", "slot", |v| Value::text(v.slot)),
    shown("variant", "variant", |v| Value::text(&v.winner)),
    shown("from_bytes", "from", |v| Value::bytes(v.from_bytes)),
    data("against", |v| Value::text(&v.against)),
    shown("ratio", "ratio", |v| Value::Ratio(v.ratio.median)),
    data("ratio_low", |v| Value::Ratio(v.ratio.low)),
    data("ratio_high", |v| Value::Ratio(v.ratio.high)),
    only_shown("interval", |v| Value::Interval(v.ratio.low, v.ratio.high)),
    shown("verdict", "verdict", |v| {
        Value::text(match v.is_a_difference() {
            false => "no difference",
            true if v.ratio.median > 1.0 => "faster",
            // Chosen on one half of the samples, and not confirmed by the other.
            true => "not confirmed",
        })
    }),
];

impl Grouped for Verdict {
    fn group(&self) -> String {
        "how many times faster than libc from that size on (libc: than the best variant)".into()
    }
}
