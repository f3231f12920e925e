//! Runs all contestants of a case side by side.
//!
//! A case is a few batches, each in memory mapped anew; a batch is a few [rounds](crate::rounds).

use crate::arena::{Arena, Ground};
use crate::case::{Case, Page, Temperature};
use crate::clock;
use crate::contestant::Contestant;
use crate::rng::Rng;
use crate::rounds::{Bench, Rounds, schedule};
use crate::{Error, Machine, Samples};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How much to spend on a case.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Samples per contestant, if the time suffices.
    pub samples: usize,
    /// When to begin no further round, but see `rounds_min`.
    pub time: Duration,
    /// Three batches of so many rounds are done in any case.
    pub rounds_min: usize,
    /// For the order of contestants and pieces, the places and the intervals.
    pub seed: u64,
}

impl Effort {
    /// How many batches of how many rounds give the samples: batches first, as far as each has its
    /// least rounds.
    pub(crate) fn batches_and_rounds(&self) -> (usize, usize) {
        let rounds_min = self.rounds_min.max(1);
        let least = BATCHES_MIN.min(self.samples).max(1);
        let batches = (self.samples / rounds_min).clamp(least, BATCHES);
        (batches, self.samples.div_ceil(batches).max(rounds_min))
    }
}

/// Fewer placements of memory would show nothing of how much they matter.
pub(crate) const BATCHES_MIN: usize = 3;
pub(crate) const BATCHES: usize = 6;

/// Set by whoever wants no more.
pub type Stop = AtomicBool;

/// What came of a case.
#[derive(Debug)]
pub struct Measured {
    /// The case.
    pub case: Case,
    /// By contestant, in their order: nanoseconds per call, or why there are none.
    pub results: Vec<Result<Samples, Error>>,
    /// How many calls a sample is the mean of.
    pub calls_per_sample: usize,
    /// The memory gone through per thread, all sides together.
    pub footprint_bytes: usize,
}

/// Measures a case.
///
/// # Errors
///
/// If there is no figure for anybody: too little memory, or stopped.
pub fn measure(
    machine: &Machine,
    case: &Case,
    contestants: &[Contestant],
    effort: &Effort,
    stop: &Stop,
) -> Result<Measured, Error> {
    let footprint_bytes = machine.footprint_bytes(case)?;
    let ground = Ground { footprint_bytes, source: case.temperature, page: Page::Base };
    let (batches, rounds) = effort.batches_and_rounds();
    let mut rng = Rng::new(effort.seed);
    let mut results: Vec<_> = contestants.iter().map(|_| Ok(Samples::default())).collect();
    let mut calls_per_sample = None;
    let started = Instant::now();

    for batch in 0..batches {
        if batch >= BATCHES_MIN && started.elapsed() > effort.time {
            break;
        }
        let mut arenas = arenas(machine, case, &ground, &mut rng)?;
        for (contestant, result) in contestants.iter().zip(&mut results) {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            if result.is_ok()
                && let Err(error) = arenas[0].check(contestant)
            {
                *result = Err(error);
            }
        }
        let field: Vec<usize> = (0..contestants.len()).filter(|&i| results[i].is_ok()).collect();
        let Some(&reference) = field.first() else { break };
        let calls = *calls_per_sample.get_or_insert_with(|| {
            let least = clock::sample(effort.time, rounds * batches * field.len());
            calls_lasting(&mut arenas[0], &contestants[reference], least)
        });
        let share = (batch + 1) as f64 / batches as f64;
        let rounds = Rounds {
            entrants: contestants.len(),
            schedule: schedule(&field, rounds, &mut rng),
            rounds_min: effort.rounds_min,
            until: started + effort.time.mul_f64(share),
            stop,
        };
        let bench = |arena| Calls { arena, contestants, calls };
        let taken = rounds.run(&mut arenas.into_iter().map(bench).collect::<Vec<_>>())?;
        for (result, samples) in results.iter_mut().zip(taken) {
            if let Ok(all) = result {
                all.push_batch(samples.concat());
            }
        }
    }
    let calls_per_sample = calls_per_sample.unwrap_or(0);
    Ok(Measured { case: *case, results, calls_per_sample, footprint_bytes })
}

/// One arena per thread, each written by a thread of its own so that its pages lie near one.
pub(crate) fn arenas(
    machine: &Machine,
    case: &Case,
    ground: &Ground,
    rng: &mut Rng,
) -> Result<Vec<Arena>, Error> {
    let seeds: Vec<u64> = (0..case.threads.max(1)).map(|_| rng.next()).collect();
    thread::scope(|scope| {
        let build = |seed| Arena::new(machine, case, ground, &mut Rng::new(seed));
        let builders: Vec<_> =
            seeds.into_iter().map(|seed| scope.spawn(move || build(seed))).collect();
        builders.into_iter().map(|b| b.join().unwrap_or(Err(Error::Thread))).collect()
    })
}

/// Doubles the calls until they last as long as a sample should. Of a cold range long enough that
/// the caches' state at the start of the sample is not the sample.
fn calls_lasting(arena: &mut Arena, contestant: &Contestant, least: Duration) -> usize {
    let least = match arena.temperature() {
        Temperature::Hot => least,
        Temperature::Cold => least.max(clock::SAMPLE_MIN * 10),
    };
    let mut calls = 1;
    while calls < 1 << 30 && arena.time(contestant.routine(), calls) < least {
        calls *= 2;
    }
    calls
}

/// One thread's side of a case.
struct Calls<'a> {
    arena: Arena,
    contestants: &'a [Contestant],
    calls: usize,
}

impl Bench<1> for Calls<'_> {
    const TIME: usize = 0;

    fn lead_in(&mut self, entrant: usize) {
        self.arena.lead_in(self.contestants[entrant].routine(), self.calls);
    }

    fn sample(&mut self, entrant: usize) -> [f64; 1] {
        let time = self.arena.time(self.contestants[entrant].routine(), self.calls);
        [clock::ns_each(time, self.calls)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Align, Pattern};
    use cachewise::variant::Operation;

    fn small(temperature: Temperature, threads: usize) -> Case {
        Case {
            operation: Operation::Copy,
            size_bytes: 1000,
            temperature,
            pattern: Pattern::Random,
            align: Align::default(),
            threads,
        }
    }

    fn effort() -> Effort {
        Effort { samples: 6, time: Duration::ZERO, rounds_min: 1, seed: 1 }
    }

    #[test]
    fn every_contestant_gives_the_same_number_of_samples() {
        // A small machine, so that the cold range is small.
        let machine = Machine { available_bytes: 8 << 20, ..Machine::detect() };
        let field = Contestant::field(Operation::Copy);
        for case in [small(Temperature::Hot, 2), small(Temperature::Cold, 2)] {
            let measured = measure(&machine, &case, &field, &effort(), &Stop::new(false)).unwrap();
            for result in &measured.results {
                let samples = result.as_ref().unwrap();
                assert_eq!(samples.batches().len(), BATCHES_MIN);
                assert!(samples.batches().iter().all(|batch| !batch.is_empty()));
                assert!(samples.batches().concat().iter().all(|&ns| ns > 0.0));
            }
        }
    }

    #[test]
    fn samples_are_spread_over_batches_as_far_as_each_has_its_rounds() {
        for (samples, rounds_min, batches_and_rounds) in [
            (30, 1, (6, 5)),
            (30, 4, (6, 5)),
            (12, 4, (3, 4)),
            (5, 1, (5, 1)),
            (1, 4, (1, 4)),
            (0, 0, (1, 1)),
        ] {
            let effort = Effort { samples, rounds_min, ..effort() };
            assert_eq!(effort.batches_and_rounds(), batches_and_rounds);
        }
    }

    #[test]
    fn stopping_is_an_error_not_a_figure() {
        let field = Contestant::field(Operation::Copy);
        let case = small(Temperature::Hot, 1);
        let result = measure(&Machine::detect(), &case, &field, &effort(), &Stop::new(true));
        assert!(matches!(result, Err(Error::Stopped)));
    }
}
