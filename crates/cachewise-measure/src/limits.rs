//! What the machine can do at best, measured in the same run: reading without doing anything with
//! what is read, from each level, and storing around the cache without reading anything.
//!
//! They walk as the cases do, with the same number of threads. They are limits of this machine now,
//! its neighbours included, not of its data sheet; on a machine shared with others they change
//! while the cases run.

use crate::case::{Align, Case, Pattern, Temperature};
use crate::contestant::Contestant;
use crate::ladder::{Ladder, MEMORY};
use crate::runner::{Effort, Stop, measure};
use crate::stats::Estimate;
use crate::{Error, Machine};
use cachewise::variant::{Operation, Store};

/// Rates of all threads together.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// The read-only walk over memory.
    pub read_gb_per_s: f64,
    /// The fastest non-temporal clear, if there is any, and whose.
    pub nt_store: Option<(f64, String)>,
    /// The read-only walk inside each cache.
    read_by_level: Vec<(&'static str, f64)>,
}

/// Large enough that a call's start costs nothing, small enough that a sample ends soon.
const PIECE_BYTES: usize = 1 << 20;

impl Limits {
    /// Measures them.
    ///
    /// # Errors
    ///
    /// If memory cannot be had, or stopped.
    pub fn measure(
        machine: &Machine,
        ladder: &Ladder,
        threads: usize,
        effort: &Effort,
        stop: &Stop,
    ) -> Result<Self, Error> {
        let best = |size_bytes, temperature, contestants: &[Contestant]| {
            let (operation, pattern) = (Operation::Clear, Pattern::Walk);
            let align = Align::default();
            let case = Case { operation, size_bytes, temperature, pattern, align, threads };
            let measured = measure(machine, &case, contestants, effort, stop)?;
            let rates = contestants.iter().zip(measured.results).filter_map(|(who, result)| {
                let Estimate { median, .. } = result.ok()?.estimate(effort.seed)?;
                Some((case.gb_per_s(median), who.name().to_owned()))
            });
            Ok::<_, Error>(rates.max_by(|(a, _), (b, _)| a.total_cmp(b)))
        };
        let walks: Vec<Contestant> = Contestant::read_walks().collect();
        let stores: Vec<Contestant> =
            Contestant::field(Operation::Clear).into_iter().filter(is_nontemporal).collect();
        let piece = PIECE_BYTES.min(machine.range(threads).footprint_bytes.max(1));
        let read = best(piece, Temperature::Cold, &walks)?.ok_or(Error::Memory)?;
        let nt_store = best(piece, Temperature::Cold, &stores)?;
        let mut read_by_level = Vec::new();
        for rung in ladder.rungs().iter().filter(|rung| rung.level != MEMORY) {
            if let Some((rate, _)) = best(rung.range_bytes, Temperature::Hot, &walks)? {
                read_by_level.push((rung.level, rate));
            }
        }
        Ok(Self { read_gb_per_s: read.0, nt_store, read_by_level })
    }

    /// What a case that was found in this level is held against: a copy must read, and so does any
    /// store that stays in the cache; a clear of memory must store.
    pub fn of(&self, case: &Case, level: &str) -> Option<f64> {
        let by_level = self.read_by_level.iter().find(|(known, _)| *known == level);
        match (by_level, case.operation) {
            (Some((_, rate)), _) => Some(*rate),
            (None, Operation::Copy) => Some(self.read_gb_per_s),
            (None, Operation::Clear) => self.nt_store.as_ref().map(|(rate, _)| *rate),
        }
    }
}

fn is_nontemporal(contestant: &Contestant) -> bool {
    contestant.registry_row().is_some_and(|row| row.store() == Store::NonTemporal)
}
