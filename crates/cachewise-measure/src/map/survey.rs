//! The whole map, within a time: choose contenders, measure what was planned, look closer where it
//! is close.
//!
//! - Contenders are chosen per kind of memory (operation, size, source, pages, threads) among all
//!   rows of the registry by a few samples of three cells, nothing used, all used, nothing used
//!   beside a bystander: the best of each kind of store, and the best of the rest. libc always
//!   takes part.
//! - Each cell gets a few samples, as few as can be scored. Then what is left of the time goes where
//!   the sides are close: shares between two where the winner changes, and more samples where the
//!   ratio is near 1.
//!
//! A policy is fitted to a survey of its own plan ([`tune`](crate::tune)), all of whose field
//! contends everywhere and none of whose cells is left out.

use super::break_even::{Finding, break_even, duel};
use super::cell::{Cell, Measured, Share, Victim};
use super::plan::groups;
use super::run::{Soil, measure};
use crate::contestant::{Contestant, LIBC};
use crate::runner::BATCHES_MIN;
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
    /// Such cells, so many of them, are measured, of so many that are left.
    Measuring(&'a Cell, usize, usize),
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

/// Enough that either half of the samples can be scored.
const ROUNDS_MIN: usize = 4;
/// The share of the time that is kept for looking closer.
const KEPT_FOR_REFINING: f64 = 0.2;
/// Of a planned cell, as long as it is not known to be close: four rounds in each of three batches.
const SAMPLES_PLANNED: usize = BATCHES_MIN * ROUNDS_MIN;
/// Two sides are close if neither is so many times faster.
const CLOSE: f64 = 1.1;

/// What a pass over cells may take.
#[derive(Clone, Copy)]
struct Spending {
    /// When it should be done: what each cell's time is a share of.
    aim: Instant,
    /// From when on no more is begun.
    until: Instant,
    /// Per contender and cell.
    samples: usize,
    /// Whether all is measured even so.
    whatever: bool,
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
        tell: &mut dyn FnMut(Progress),
    ) -> Result<End, Error> {
        let started = Instant::now();
        let mut contenders: HashMap<Soil, Vec<String>> = HashMap::new();
        for measured in known.iter() {
            let names = measured.outcomes.iter().map(|outcome| outcome.variant.clone());
            contenders.entry(measured.cell.soil()).or_insert_with(|| names.collect());
        }
        let is_new = |cell: &&Cell| !known.iter().any(|measured| measured.cell == **cell);
        let planned: Vec<Cell> = self.cells.iter().filter(is_new).copied().collect();
        let until = started + self.time;
        let plan = Spending {
            aim: started + self.time.mul_f64(1.0 - KEPT_FOR_REFINING),
            until,
            samples: if self.fixed { self.samples } else { self.samples.min(SAMPLES_PLANNED) },
            whatever: self.fixed,
        };
        let refinement = Spending { aim: until, until, samples: self.samples, whatever: false };
        let (mut pending, mut spending) = (planned, plan);
        for round in 0..REFINEMENTS {
            if round > 0 {
                pending = self.close(known);
                if pending.is_empty() || Instant::now() > until {
                    break;
                }
                tell(Progress::Refining(pending.len()));
                spending = refinement;
            }
            let left = self.pass(&pending, &spending, &mut contenders, known, tell)?;
            if self.stop.load(Ordering::Relaxed) {
                return Ok(End::Stopped);
            }
            if left > 0 {
                return Ok(if round == 0 { End::TimeShort(left) } else { End::Complete });
            }
        }
        Ok(End::Complete)
    }

    /// Goes through the cells as long as there is time, and says how many are left.
    fn pass(
        &self,
        cells: &[Cell],
        spending: &Spending,
        contenders: &mut HashMap<Soil, Vec<String>>,
        known: &mut Vec<Measured>,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<usize, Error> {
        let mut left = cells.len();
        for group in groups(cells) {
            let now = Instant::now();
            if now > spending.until && left < cells.len() && !spending.whatever {
                break;
            }
            let soil = group[0].soil();
            let names = match contenders.entry(soil) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    tell(Progress::Choosing(&group[0]));
                    match self.contenders(&group[0]) {
                        Ok(names) => unknown.insert(names),
                        Err(Error::Stopped) => break,
                        // The cells of this soil will meet the same and say so.
                        Err(_) => unknown.insert(vec![LIBC.to_owned()]),
                    }
                }
            };
            tell(Progress::Measuring(&group[0], group.len(), left));
            let share = group.len() as f64 / left as f64;
            let effort = Effort {
                samples: spending.samples,
                time: spending.aim.saturating_duration_since(now).mul_f64(share),
                rounds_min: ROUNDS_MIN,
                seed: self.seed ^ (known.len() as u64) << 32,
            };
            let field: Vec<&Contestant> = self
                .field(&soil)
                .filter(|who| names.iter().any(|name| name == who.name()))
                .collect();
            match measure(self.machine, group, &field, &effort, self.stop) {
                Ok(measured) => measured.into_iter().for_each(|m| add(known, m)),
                Err(Error::Stopped) => break,
                Err(error @ Error::Memory) => return Err(error),
                Err(error) => {
                    let skip = |cell| Measured::skipped(cell, names, &error);
                    known.extend(group.iter().map(skip));
                }
            }
            left -= group.len();
            tell(Progress::Done(group.len()));
        }
        Ok(left)
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
        let effort = Effort { samples: 3, time: Duration::ZERO, rounds_min: 1, seed: self.seed };
        let screened = measure(self.machine, &cells, &field, &effort, self.stop)?;
        let kind = |name: &str| {
            let who = field.iter().find(|who| who.name() == name)?;
            who.registry_row().map(|row| row.store())
        };
        Ok(choose(&scores(&screened), kind))
    }

    /// Cells that would tell more: shares between two where the winner changes, and cells whose
    /// sides are close.
    fn close(&self, known: &[Measured]) -> Vec<Cell> {
        let lines = break_even(known, self.seed);
        let between = lines.iter().filter_map(|line| {
            let Finding::Until(_, crossing, _) = line.finding() else { return None };
            let mut pairs = line.points.windows(2).map(|pair| (pair[0].0, pair[1].0));
            let (low, high) = pairs.find(|(_, high)| high.as_f64() >= crossing.share)?;
            let used = middle(low, high)?;
            Some(Cell { used, ..line.line })
        });
        let mut cells: Vec<Cell> = match self.fixed {
            true => Vec::new(),
            false => between.collect(),
        };
        let of_plan = |measured: &&Measured| self.cells.contains(&measured.cell);
        let mut close: Vec<(f64, Cell)> = known
            .iter()
            .filter(of_plan)
            .filter_map(|measured| {
                let log = duel(measured, self.seed)?.ratio.median.ln().abs();
                (log < CLOSE.ln()).then_some((log, measured.cell))
            })
            .collect();
        close.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        cells.extend(close.into_iter().map(|(_, cell)| cell));
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

/// The plan, and two closer looks.
const REFINEMENTS: usize = 3;

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

/// The sum of the logarithms of its whole times, by name.
fn scores(screened: &[Measured]) -> Vec<(String, f64)> {
    let Some(first) = screened.first() else { return Vec::new() };
    let score = |name: &str| -> Option<f64> {
        screened.iter().map(|cell| Some(cell.of(name)?.times.whole.median()?.ln())).sum()
    };
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
