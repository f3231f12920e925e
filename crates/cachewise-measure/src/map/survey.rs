//! The whole map, within a time: choose contenders, measure what was planned, look closer where it
//! is close.
//!
//! - Contenders are chosen per kind of memory (operation, size, source, pages, threads) among all
//!   rows of the registry by a few samples of three cells, nothing used, all used, nothing used
//!   beside a bystander: the best of each kind of store, and the best of the rest. libc always
//!   takes part.
//! - Each cell gets a few samples, as few as can be scored. Then what is left of the time goes where
//!   the sides are close: shares between two where the winner changes, and more samples where the
//!   ratio is near 1. What is left even then is for all cells alike.
//!
//! A policy is fitted to a survey of its own plan ([`tune`](crate::tune)), all of whose field
//! contends everywhere and none of whose cells is left out.

use super::break_even::{Finding, Side, break_even, duel};
use super::cell::{Cell, Measured, Share, Victim};
use super::plan::groups;
use super::run::{Soil, measure};
use crate::contestant::{Contestant, LIBC};
use crate::runner::BATCHES;
use crate::{Effort, Error, Machine, Stop};
use cachewise::variant::Store;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What to measure and how much to spend.
pub struct Survey<'a> {
    /// This machine.
    pub machine: &'a Machine,
    /// All that may contend, of each operation libc first.
    pub field: &'a [Contestant],
    /// Whether all of the field contend in every cell.
    pub all_contend: bool,
    /// What was planned.
    pub cells: Vec<Cell>,
    /// Whether it is these cells and no others, each as good as the next: all get the same number of
    /// samples, the least that can be scored whatever the time, and none is added between them.
    pub fixed: bool,
    /// All in all. The first cells are measured whatever the time.
    pub time: Duration,
    /// Samples per contender and cell, if the time suffices.
    pub samples: usize,
    /// For all that is shuffled.
    pub seed: u64,
    /// Set by whoever wants no more.
    pub stop: &'a Stop,
}

/// How far a survey has come.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// Contenders are chosen for cells like this one.
    Choosing(&'a Cell),
    /// Such cells, so many of them, are measured.
    Measuring(&'a Cell, usize),
    /// So many have been done.
    Done(usize),
    /// So many cells more are looked at, or again.
    Refining(usize),
}

/// How a survey ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All was measured.
    Complete,
    /// So many cells had no time.
    TimeShort(usize),
    /// Stopped by the user.
    Stopped,
}

/// One for either half of the samples.
const ROUNDS_MIN: usize = 2;
/// The share of the time that is kept for looking closer.
const KEPT_FOR_REFINING: f64 = 0.2;
/// Of a planned cell, as long as it is not known to be close. In many batches, since few placements
/// of memory may by chance all favour the same one.
const SAMPLES_PLANNED: usize = BATCHES * ROUNDS_MIN;
/// Of each contender, to see whether it is worth its time.
const SAMPLES_SCREENED: usize = 3;
/// Two sides are close if neither is so many times cheaper.
const CLOSE: f64 = 1.1;
/// The ends of an interval are so far apart, at most, where no difference is known well enough.
const SETTLED: f64 = 1.04;
/// And so far where a few more samples won't help.
const HOPELESS: f64 = 3.0;

/// What a pass over cells may take.
#[derive(Clone, Copy)]
struct Spending {
    /// From when on no more is begun, unless it is needed.
    until: Instant,
    needed: bool,
    /// Per contender and cell, at least so many in each batch.
    samples: usize,
    rounds_min: usize,
    /// Whether each cell has its share of the time until then, or as long as its samples take.
    shared: bool,
}

/// A survey on its way.
struct Course<'a, 'b> {
    known: &'a mut Vec<Measured>,
    contenders: HashMap<Soil, Vec<String>>,
    /// So that no two groups are shuffled alike.
    groups: u64,
    tell: &'a mut dyn FnMut(Progress<'_>),
    survey: &'a Survey<'b>,
}

impl Survey<'_> {
    /// Measures what is not among the `known` ones and adds it there; of known cells the contenders
    /// stay who they were.
    ///
    /// # Errors
    ///
    /// What no cell can do without: memory that reads back what was written.
    pub fn run(
        &self,
        known: &mut Vec<Measured>,
        tell: &mut dyn FnMut(Progress<'_>),
    ) -> Result<End, Error> {
        let started = Instant::now();
        let is_new = |cell: &&Cell| !known.iter().any(|measured| measured.cell == **cell);
        let planned: Vec<Cell> = self.cells.iter().filter(is_new).copied().collect();
        let mut contenders: HashMap<Soil, Vec<String>> = HashMap::new();
        for measured in known.iter() {
            let names = measured.outcomes.iter().map(|outcome| outcome.variant.clone());
            contenders.entry(measured.cell.soil()).or_insert_with(|| names.collect());
        }
        let mut course = Course { known, contenders, groups: 0, tell, survey: self };
        let until = started + self.time;
        if self.fixed {
            let (samples, rounds_min) = (self.samples, 2 * ROUNDS_MIN);
            let all = Spending { until, needed: true, samples, rounds_min, shared: true };
            course.pass(&planned, &all)?;
            return Ok(course.end(0));
        }
        let plan = Spending {
            until: started + self.time.mul_f64(1.0 - KEPT_FOR_REFINING),
            needed: false,
            samples: self.samples.min(SAMPLES_PLANNED),
            rounds_min: ROUNDS_MIN,
            shared: false,
        };
        let left = course.pass(&planned, &plan)?;
        let closer = Spending { until, samples: self.samples, shared: true, ..plan };
        for _ in 0..CLOSER_LOOKS {
            let cells = self.close(course.known);
            if cells.is_empty() || Instant::now() > until || self.is_stopped() {
                break;
            }
            (course.tell)(Progress::Refining(cells.len()));
            course.pass(&cells, &closer)?;
        }
        // Whatever time is left is for all alike.
        let is_thin = |cell: &&Cell| {
            let known = course.known.iter().find(|measured| measured.cell == **cell);
            known.and_then(Measured::samples).is_some_and(|samples| samples < self.samples)
        };
        let thin: Vec<Cell> = self.cells.iter().filter(is_thin).copied().collect();
        if !thin.is_empty() && Instant::now() < until && !self.is_stopped() {
            (course.tell)(Progress::Refining(thin.len()));
            let samples = self.samples - plan.samples;
            course.pass(&thin, &Spending { samples, ..closer })?;
        }
        Ok(course.end(left))
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn field(&self, soil: &Soil) -> impl Iterator<Item = &Contestant> {
        let operation = soil.operation;
        self.field.iter().filter(move |who| who.operation() == operation)
    }

    /// The names of those who are worth their time in cells like this one.
    fn contenders(&self, like: &Cell) -> Result<Vec<String>, Error> {
        let field: Vec<&Contestant> = self.field(&like.soil()).collect();
        if self.all_contend {
            return Ok(field.iter().map(|who| who.name().to_owned()).collect());
        }
        let unused = Cell {
            used: Share::NONE,
            use_kind: super::UseKind::Read,
            delay_bytes: 0,
            victim: Victim::NONE,
            ..*like
        };
        let mut cells = vec![unused, Cell { used: Share::ALL, ..unused }];
        let of_soil = self.cells.iter().filter(|cell| cell.soil() == like.soil());
        let mut victims = of_soil.map(|cell| cell.victim).filter(|victim| *victim != Victim::NONE);
        cells.extend(victims.next().map(|victim| Cell { victim, ..unused }));
        let screened =
            screen(self.machine, &cells, &field, SAMPLES_SCREENED, self.seed, self.stop)?;
        let kind = |name: &str| {
            let who = field.iter().find(|who| who.name() == name)?;
            who.registry_row().map(|row| row.store())
        };
        Ok(choose(&scores(&screened), kind))
    }

    /// Cells that would tell more: shares between two where the winner changes, and cells of which
    /// it is not known well enough whether the sides differ; the best known of these first, since
    /// more samples would soon decide them.
    fn close(&self, known: &[Measured]) -> Vec<Cell> {
        let lines = break_even(known, self.seed);
        let between = lines.iter().filter_map(|line| {
            let Finding::Until(_, crossing, _) = line.finding() else { return None };
            let mut pairs = line.points.windows(2).map(|pair| (pair[0].0, pair[1].0));
            let (low, high) = pairs.find(|(_, high)| high.as_f64() >= crossing.share)?;
            let used = middle(low, high)?;
            Some(Cell { used, ..line.line })
        });
        let mut cells: Vec<Cell> = between.collect();
        let of_plan = |measured: &&Measured| self.cells.contains(&measured.cell);
        let mut open: Vec<(f64, Cell)> = known
            .iter()
            .filter(of_plan)
            .filter_map(|measured| {
                let duel = duel(measured, self.seed)?;
                let width = duel.ratio.high / duel.ratio.low;
                let is_settled = match duel.side() {
                    Side::Neither => width < SETTLED,
                    Side::Unclear => width > HOPELESS,
                    // Sure by a hair is sure by chance in one cell of many.
                    Side::NonTemporal => duel.ratio.low > CLOSE,
                    Side::Temporal => duel.ratio.high < 1.0 / CLOSE,
                };
                (!is_settled).then_some((width, measured.cell))
            })
            .collect();
        open.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        cells.extend(open.into_iter().map(|(_, cell)| cell));
        // Those that have memory in common next to each other.
        let mut soils: Vec<Soil> = Vec::new();
        for cell in &cells {
            if !soils.contains(&cell.soil()) {
                soils.push(cell.soil());
            }
        }
        cells.sort_by_key(|cell| soils.iter().position(|soil| *soil == cell.soil()));
        cells.dedup();
        cells
    }
}

impl Course<'_, '_> {
    /// Goes through the cells as long as there is time, and says how many are left.
    fn pass(&mut self, cells: &[Cell], spending: &Spending) -> Result<usize, Error> {
        let survey = self.survey;
        let mut left = cells.len();
        for group in groups(cells) {
            let now = Instant::now();
            if survey.is_stopped()
                || (now > spending.until && left < cells.len() && !spending.needed)
            {
                break;
            }
            let soil = group[0].soil();
            let names = match self.contenders.entry(soil) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    (self.tell)(Progress::Choosing(&group[0]));
                    match survey.contenders(&group[0]) {
                        Ok(names) => unknown.insert(names),
                        Err(Error::Stopped) => break,
                        // The cells of this soil will meet the same and say so.
                        Err(_) => unknown.insert(vec![LIBC.to_owned()]),
                    }
                }
            };
            (self.tell)(Progress::Measuring(&group[0], group.len()));
            let time = match spending.shared {
                true => {
                    let share = group.len() as f64 / left as f64;
                    spending.until.saturating_duration_since(now).mul_f64(share)
                }
                false => UNLIMITED,
            };
            self.groups += 1;
            let effort = Effort {
                samples: spending.samples,
                time,
                rounds_min: spending.rounds_min,
                seed: survey.seed ^ self.groups << 32,
            };
            let field: Vec<&Contestant> = survey
                .field(&soil)
                .filter(|who| names.iter().any(|name| name == who.name()))
                .collect();
            match measure(survey.machine, group, &field, &effort, survey.stop) {
                Ok(measured) => measured.into_iter().for_each(|m| add(self.known, m)),
                Err(Error::Stopped) => break,
                Err(error @ Error::Memory) => return Err(error),
                Err(error) => {
                    let is_new = |cell: &&Cell| !self.known.iter().any(|m| m.cell == **cell);
                    let new: Vec<&Cell> = group.iter().filter(is_new).collect();
                    let skip = |cell: &Cell| Measured::skipped(cell, names, &error);
                    self.known.extend(new.into_iter().map(skip));
                }
            }
            left -= group.len();
            (self.tell)(Progress::Done(group.len()));
        }
        Ok(left)
    }

    fn end(&self, left: usize) -> End {
        match left {
            _ if self.survey.is_stopped() => End::Stopped,
            0 => End::Complete,
            left => End::TimeShort(left),
        }
    }
}

/// Longer than any group of cells takes.
const UNLIMITED: Duration = Duration::from_secs(24 * 60 * 60);
/// After the plan.
const CLOSER_LOOKS: usize = 2;

/// A share between two, in proportion where both are something; none if they are next to each other.
fn middle(low: Share, high: Share) -> Option<Share> {
    const NEAR: f64 = 0.05;
    let (low, high) = (low.as_f64(), high.as_f64());
    let middle = if low > 0.0 { (low * high).sqrt() } else { high / 2.0 };
    (high - low > NEAR).then(|| Share::new(middle)).flatten()
}

/// More samples of a known cell, or a new one.
fn add(known: &mut Vec<Measured>, new: Measured) {
    let Some(old) = known.iter_mut().find(|measured| measured.cell == new.cell) else {
        return known.push(new);
    };
    for outcome in new.outcomes {
        match old.outcomes.iter_mut().find(|known| known.variant == outcome.variant) {
            Some(known) => known.times.extend(outcome.times),
            None => old.outcomes.push(outcome),
        }
    }
}

/// A few samples of each in cells on the same ground.
///
/// # Errors
///
/// As [`measure`].
pub(crate) fn screen(
    machine: &Machine,
    cells: &[Cell],
    field: &[&Contestant],
    samples: usize,
    seed: u64,
    stop: &Stop,
) -> Result<Vec<Measured>, Error> {
    let effort = Effort { samples, time: UNLIMITED, rounds_min: 1, seed };
    measure(machine, cells, field, &effort, stop)
}

/// The sum of the logarithms of its whole times, by name.
pub(crate) fn scores(screened: &[Measured]) -> Vec<(String, f64)> {
    // A cell in which nobody has figures says nothing of anybody.
    let cells = || screened.iter().filter(|cell| cell.ok().next().is_some());
    let score = |name: &str| -> Option<f64> {
        cells().map(|cell| Some(cell.of(name)?.times.whole.median()?.ln())).sum()
    };
    let Some(first) = cells().next() else { return Vec::new() };
    let scored = first.ok().filter_map(|o| Some((o.variant.clone(), score(&o.variant)?)));
    scored.collect()
}

/// libc, the best of each kind of store, and the best of the rest.
fn choose(scores: &[(String, f64)], kind: impl Fn(&str) -> Option<Store>) -> Vec<String> {
    let mut sorted: Vec<&(String, f64)> = scores.iter().collect();
    sorted.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let mut chosen = vec![LIBC.to_owned()];
    let kinds = [Store::Temporal, Store::NonTemporal, Store::Implementation].map(Some);
    for wanted in kinds.into_iter().chain([None]) {
        let suits = |name: &str| match wanted {
            Some(_) => kind(name) == wanted,
            None => true,
        };
        let best = sorted.iter().find(|(name, _)| !chosen.contains(name) && suits(name));
        chosen.extend(best.map(|(name, _)| name.clone()));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Axes, Axis};
    use super::*;
    use crate::Machine;
    use cachewise::variant::Operation;

    #[test]
    fn chosen_are_libc_the_best_of_each_kind_and_the_best_of_the_rest() {
        let kind = |name: &str| match name.as_bytes()[0] {
            b't' => Some(Store::Temporal),
            b'n' => Some(Store::NonTemporal),
            b'r' => Some(Store::Implementation),
            _ => None,
        };
        let scores =
            [("libc", 9.0), ("t1", 5.0), ("t2", 3.0), ("n1", 1.0), ("n2", 2.0), ("r1", 7.0)];
        let scores = scores.map(|(name, score)| (name.to_owned(), score));
        assert_eq!(choose(&scores, kind), ["libc", "t2", "n1", "r1", "n2"]);
        assert_eq!(choose(&scores[..2], kind), ["libc", "t1"]);
    }

    #[test]
    fn a_middle_is_between_and_ends_the_search() {
        let share = |share| Share::new(share).unwrap();
        assert_eq!(middle(share(0.25), share(1.0)), Some(share(0.5)));
        assert_eq!(middle(share(0.0), share(0.25)), Some(share(0.125)));
        assert_eq!(middle(share(0.002), share(0.03)), None);
    }

    /// Small, so that it ends soon; what comes out has the shape that was planned.
    #[test]
    fn a_survey_measures_what_was_planned_and_goes_on_where_it_was() {
        let machine = Machine { available_bytes: 8 << 20, ..Machine::detect() };
        let mut axes = Axes::quick(&machine, Operation::Copy);
        axes.sizes = vec![4096];
        axes.victims = Axis::given(vec![0, 8192]);
        let field = Contestant::field(Operation::Copy);
        let stop = Stop::new(false);
        let survey = |cells| Survey {
            machine: &machine,
            field: &field,
            all_contend: false,
            cells,
            fixed: false,
            time: Duration::ZERO,
            samples: 12,
            seed: 1,
            stop: &stop,
        };
        let planned = axes.cells();
        let first: Vec<Cell> = planned[..2].to_vec();
        let mut known = Vec::new();
        survey(first.clone()).run(&mut known, &mut |_| {}).unwrap();
        assert_eq!(known.len(), 2);
        for measured in &known {
            assert!(measured.outcomes.len() <= 5 && measured.outcomes[0].variant == LIBC);
            assert!(measured.ok().all(|outcome| outcome.times.whole.count() >= 12));
        }
        let before = known.clone();
        let end = survey(first).run(&mut known, &mut |_| {}).unwrap();
        assert_eq!((end, &known), (End::Complete, &before));
        survey(planned.clone()).run(&mut known, &mut |_| {}).unwrap();
        assert!(known.len() > 2 && known[..2] == before);
        // Those of other memory have had no time, unless they are the plan and nothing else.
        axes.sizes = vec![4096, 8192];
        axes.victims = Axis::given(vec![0]);
        let cells = axes.cells();
        let mut some = Vec::new();
        let end = survey(cells.clone()).run(&mut some, &mut |_| {}).unwrap();
        assert_eq!(end, End::TimeShort(cells.len() - some.len()));
        assert!(some.len() < cells.len());
        let mut all = Vec::new();
        let fixed = Survey { fixed: true, ..survey(cells.clone()) };
        assert_eq!(fixed.run(&mut all, &mut |_| {}).unwrap(), End::Complete);
        assert!(all.iter().map(|measured| measured.cell).eq(cells));
    }
}
