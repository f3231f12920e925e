//! What the machine can do at best, measured in the same run: reading memory without doing
//! anything with it, and storing around the cache without reading anything.
//!
//! Both walk the cold range in pieces, as the cases do, with the same number of threads. They are
//! limits of this machine now, its neighbours included, not of its data sheet.

use crate::case::{Align, Case, Pattern, Temperature};
use crate::contestant::Contestant;
use crate::runner::{Effort, Stop, measure};
use crate::{Error, Machine, Samples};
use cachewise::variant::Operation;

/// Rates of all threads together.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// The read-only walk.
    pub read_gb_per_s: f64,
    /// The fastest non-temporal clear, if there is any, and whose.
    pub nt_store: Option<(f64, String)>,
}

/// Large enough that a call's start costs nothing, small enough that a sample ends soon.
const PIECE_BYTES: usize = 1 << 20;

impl Limits {
    /// Measures both, side by side.
    ///
    /// # Errors
    ///
    /// If memory cannot be had, or stopped.
    pub fn measure(
        machine: &Machine,
        threads: usize,
        effort: &Effort,
        stop: &Stop,
    ) -> Result<Self, Error> {
        let case = Case {
            operation: Operation::Clear,
            size_bytes: PIECE_BYTES.min(machine.range(threads).footprint_bytes.max(1)),
            temperature: Temperature::Cold,
            pattern: Pattern::Walk,
            align: Align::default(),
            threads,
        };
        let mut contestants = vec![Contestant::read_walk(Operation::Clear)];
        contestants.extend(Contestant::nontemporal(Operation::Clear));
        let measured = measure(machine, &case, &contestants, effort, stop)?;
        let mut rates = contestants.into_iter().zip(measured.results).map(|(who, result)| {
            let rate = result.map(|samples| gb_per_s(&case, &samples, effort.seed));
            (who, rate)
        });
        let read_gb_per_s = match rates.next() {
            Some((_, rate)) => rate?.ok_or(Error::Stopped)?,
            None => return Err(Error::Stopped),
        };
        let nt_store = rates
            .filter_map(|(who, rate)| Some((rate.ok()??, who.name().to_owned())))
            .max_by(|(a, _), (b, _)| a.total_cmp(b));
        Ok(Self { read_gb_per_s, nt_store })
    }
}

fn gb_per_s(case: &Case, samples: &Samples, seed: u64) -> Option<f64> {
    samples.estimate(seed).map(|estimate| case.gb_per_s(estimate.median))
}
