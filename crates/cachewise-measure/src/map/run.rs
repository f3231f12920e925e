//! Measures cells that share one kind of ground: the same operation at the same size, from the same
//! kind of source, in the same pages, by as many threads.
//!
//! Mapping, writing and reading back memory takes longer than most cells, so a batch's memory serves
//! all cells of the group in turn, and what is mapped anew for the next batch is mapped anew for
//! all of them.

use super::cell::{Cell, Core, Measured, Misses, Outcome, Status, Times};
use super::step::{self, FIGURES, Sample, Stage};
use crate::arena::Ground;
use crate::case::{Align, Case, Page, Pattern, Temperature};
use crate::contestant::Contestant;
use crate::rng::Rng;
use crate::rounds::{Rounds, schedule};
use crate::runner::{BATCHES_MIN, Effort, Stop, arenas};
use crate::stats::Samples;
use crate::{Error, Machine};
use cachewise::variant::Operation;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// What the cells of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Soil {
    /// Copy or clear.
    pub operation: Operation,
    /// The length of one call.
    pub size_bytes: usize,
    /// Hot or cold.
    pub source: Temperature,
    /// The pages.
    pub page: Page,
    /// Threads at once.
    pub threads: usize,
}

impl Cell {
    /// What it has in common with others of its group.
    pub fn soil(&self) -> Soil {
        let Self { operation, size_bytes, source, page, threads, .. } = *self;
        Soil { operation, size_bytes, source, page, threads }
    }
}

impl Soil {
    fn case(&self) -> Case {
        Case {
            operation: self.operation,
            size_bytes: self.size_bytes,
            temperature: Temperature::Cold,
            pattern: Pattern::Walk,
            align: Align::default(),
            threads: self.threads,
        }
    }
}

/// Measures all cells side by side, in the order given. `effort.time` is for all of them together.
/// Stopped, it gives back what has enough batches by then.
///
/// # Errors
///
/// If there is no figure for anybody: too little memory, no huge pages, or stopped too early.
pub fn measure(
    machine: &Machine,
    cells: &[Cell],
    contestants: &[&Contestant],
    effort: &Effort,
    stop: &Stop,
) -> Result<Vec<Measured>, Error> {
    let Some(soil) = cells.first().map(Cell::soil) else { return Ok(Vec::new()) };
    let case = soil.case();
    let footprint_bytes = machine.footprint_bytes(&case)?;
    let ground = Ground { footprint_bytes, source: soil.source, page: soil.page };
    let (batches, rounds) = effort.batches_and_rounds();
    let mut rng = Rng::new(effort.seed);
    let mut group: Vec<Record> =
        cells.iter().filter(|cell| cell.soil() == soil).map(Record::new).collect();
    let mut wrong: Vec<Option<String>> = contestants.iter().map(|_| None).collect();
    let started = Instant::now();
    for batch in 0..batches {
        if batch >= BATCHES_MIN && started.elapsed() > effort.time {
            break;
        }
        let mut arenas = match arenas(machine, &case, &ground, &mut rng) {
            Ok(arenas) => arenas,
            // What there is by now is enough, and better than nothing.
            Err(_) if batch >= BATCHES_MIN => break,
            Err(error) => return Err(error),
        };
        for (contestant, wrong) in contestants.iter().zip(&mut wrong) {
            if wrong.is_none() {
                *wrong = arenas[0].check(contestant).err().map(|error| error.to_string());
            }
        }
        let field: Vec<usize> = (0..contestants.len()).filter(|&i| wrong[i].is_none()).collect();
        for record in &mut group {
            let mut benches = Vec::new();
            for (thread, arena) in arenas.iter_mut().enumerate() {
                let stage =
                    Stage::new(machine, &record.cell, arena, contestants, thread, record.steps);
                benches.push(stage);
            }
            let benches: Result<Vec<Stage>, Error> = benches.into_iter().collect();
            let mut benches = match benches {
                Ok(benches) => benches,
                Err(error) => {
                    record.skipped = Some(error.to_string());
                    continue;
                }
            };
            record.steps = benches.first().map_or(0, Stage::steps);
            let baseline = contestants.len();
            let entrants: Vec<usize> =
                field.iter().copied().chain(record.has_baseline().then_some(baseline)).collect();
            let job = Rounds {
                entrants: baseline + 1,
                schedule: schedule(&entrants, rounds, &mut rng),
                rounds_min: rounds,
                until: started + effort.time,
                stop,
            };
            match job.run::<FIGURES, _>(&mut benches) {
                Ok(taken) => record.batches.push(taken),
                Err(Error::Stopped) => break,
                Err(error) => return Err(error),
            }
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let done: Vec<Measured> = group
        .into_iter()
        .filter(|record| {
            record.skipped.is_some() || record.batches.len() >= BATCHES_MIN.min(batches)
        })
        .map(|record| record.measured(contestants, &wrong))
        .collect();
    if done.is_empty() { Err(Error::Stopped) } else { Ok(done) }
}

/// A cell on its way.
struct Record {
    cell: Cell,
    steps: usize,
    skipped: Option<String>,
    /// By batch, entrant and round.
    batches: Vec<Vec<Vec<Sample>>>,
}

impl Record {
    fn new(cell: &Cell) -> Self {
        Self { cell: *cell, steps: 0, skipped: None, batches: Vec::new() }
    }

    /// Whether something is left when the operation is left out.
    fn has_baseline(&self) -> bool {
        let Cell { victim, delay_bytes, used, .. } = self.cell;
        victim.bytes > 0 || delay_bytes > 0 || used != super::Share::NONE
    }

    fn measured(self, contestants: &[&Contestant], wrong: &[Option<String>]) -> Measured {
        let outcome = |(index, who): (usize, &&Contestant)| {
            let (status, because) = match (&self.skipped, &wrong[index]) {
                (Some(skipped), _) => (Status::Skipped, Some(skipped.clone())),
                (None, Some(wrong)) => (Status::Error, Some(wrong.clone())),
                (None, None) => (Status::Ok, None),
            };
            let times = match status {
                Status::Ok => self.times(index, contestants.len()),
                _ => Times::default(),
            };
            Outcome { variant: who.name().to_owned(), status, because, times }
        };
        let outcomes = contestants.iter().enumerate().map(outcome).collect();
        Measured { cell: self.cell, outcomes }
    }

    fn times(&self, entrant: usize, baseline: usize) -> Times {
        let mut times = Times::default();
        for batch in &self.batches {
            let own = &batch[entrant];
            let rounds = own.iter().enumerate().filter_map(|(round, own)| {
                let nothing = [0.0; FIGURES];
                let baseline = batch[baseline].get(round).unwrap_or(&nothing);
                round_times(self.cell.victim.core, own, baseline)
            });
            let rounds: Vec<_> = rounds.collect();
            let column = |index: usize| rounds.iter().map(|round| round[index]).collect();
            for (index, samples) in times.columns_mut().into_iter().enumerate() {
                samples.push_batch(column(index));
            }
        }
        times
    }
}

const COLUMNS: usize = 11;

/// One round of one entrant beside the baseline's, in the order of [`Times::columns_mut`]; `None`,
/// for all entrants alike, if its baseline says nothing.
///
/// A victim on another core has walked as long as the step lasted; what its loads would have taken
/// without the operation is its baseline, and the difference is a part of what the step cost.
fn round_times(core: Core, own: &Sample, baseline: &Sample) -> Option<[f64; COLUMNS]> {
    let (victim, victim_baseline, whole) = match core {
        Core::Same => (own[step::VICTIM], baseline[step::VICTIM], own[step::WHOLE]),
        Core::Other => {
            if baseline[step::LOADS] <= 0.0 {
                return None;
            }
            let without = own[step::LOADS] * baseline[step::WHOLE] / baseline[step::LOADS];
            (own[step::WHOLE], without, own[step::WHOLE] + (own[step::WHOLE] - without))
        }
    };
    let (op, delay, used) = (own[step::OP], own[step::DELAY], own[step::USE]);
    let misses = [step::OP, step::USE, step::VICTIM].map(|part| own[step::MISSES + part]);
    let (again, delay_baseline) = (baseline[step::USE_AGAIN], baseline[step::DELAY]);
    let [op_misses, use_misses, victim_misses] = misses;
    Some([
        op,
        delay,
        delay_baseline,
        used,
        victim,
        victim_baseline,
        again,
        whole,
        op_misses,
        use_misses,
        victim_misses,
    ])
}

impl Times {
    fn columns_mut(&mut self) -> [&mut Samples; COLUMNS] {
        let Self { op, delay, delay_baseline, used, use_baseline, whole, misses, .. } = self;
        let Self { victim, victim_baseline, .. } = self;
        let Misses { op: op_misses, used: use_misses, victim: victim_misses } = misses;
        [
            op,
            delay,
            delay_baseline,
            used,
            victim,
            victim_baseline,
            use_baseline,
            whole,
            op_misses,
            use_misses,
            victim_misses,
        ]
    }

    /// Adds the batches of a later measurement of the same.
    pub fn extend(&mut self, mut other: Self) {
        for (ours, theirs) in self.columns_mut().into_iter().zip(other.columns_mut()) {
            theirs.batches().iter().for_each(|batch| ours.push_batch(batch.clone()));
        }
    }
}

impl Measured {
    /// A cell without figures.
    pub(super) fn skipped(cell: &Cell, names: &[String], because: &Error) -> Self {
        let outcome = |name: &String| Outcome {
            variant: name.clone(),
            status: Status::Skipped,
            because: Some(because.to_string()),
            times: Times::default(),
        };
        Self { cell: *cell, outcomes: names.iter().map(outcome).collect() }
    }
}
