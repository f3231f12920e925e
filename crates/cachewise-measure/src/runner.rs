//! Runs all contestants of a case side by side.
//!
//! A case is a few batches, each in memory mapped anew; a batch is a few rounds; in a round every
//! contestant gives one sample, in shuffled order. With several threads all do the same contestant
//! at the same time, from a barrier on, and the slowest counts.

use crate::arena::Arena;
use crate::case::{Case, Temperature};
use crate::clock;
use crate::contestant::Contestant;
use crate::rng::Rng;
use crate::{Error, Machine, Samples};
use std::sync::Barrier;
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

/// Fewer placements of memory would show nothing of how much they matter.
const BATCHES_MIN: usize = 3;
const BATCHES: usize = 6;

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
    let batches = effort.samples.clamp(1, BATCHES);
    let rounds = effort.samples.div_ceil(batches).max(effort.rounds_min);
    let mut rng = Rng::new(effort.seed);
    let mut results: Vec<_> = contestants.iter().map(|_| Ok(Samples::default())).collect();
    let mut calls_per_sample = None;
    let started = Instant::now();

    for batch in 0..batches {
        if batch >= BATCHES_MIN && started.elapsed() > effort.time {
            break;
        }
        let mut arenas = arenas(machine, case, footprint_bytes, &mut rng)?;
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
        let schedule = (0..rounds).map(|_| {
            let mut order = field.clone();
            rng.shuffle(&mut order);
            order
        });
        let share = (batch + 1) as f64 / batches as f64;
        let job = Job {
            contestants,
            schedule: schedule.collect(),
            calls,
            rounds_min: effort.rounds_min,
            until: started + effort.time.mul_f64(share),
            stop,
        };
        let times = job.run(&mut arenas)?;
        for (result, times) in results.iter_mut().zip(times) {
            if let Ok(samples) = result {
                samples.push_batch(times);
            }
        }
    }
    let calls_per_sample = calls_per_sample.unwrap_or(0);
    Ok(Measured { case: *case, results, calls_per_sample, footprint_bytes })
}

/// One arena per thread, each written by a thread of its own so that its pages lie near one.
fn arenas(
    machine: &Machine,
    case: &Case,
    footprint_bytes: usize,
    rng: &mut Rng,
) -> Result<Vec<Arena>, Error> {
    let seeds: Vec<u64> = (0..case.threads.max(1)).map(|_| rng.next()).collect();
    thread::scope(|scope| {
        let build = |seed| Arena::new(machine, case, footprint_bytes, &mut Rng::new(seed));
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

/// One batch, as all threads see it.
struct Job<'a> {
    contestants: &'a [Contestant],
    schedule: Vec<Vec<usize>>,
    calls: usize,
    rounds_min: usize,
    until: Instant,
    stop: &'a Stop,
}

/// How a thread's batch ended: by contestant the time of each call, or stopped.
type Times = Result<Vec<Vec<f64>>, Error>;

impl Job<'_> {
    fn run(&self, arenas: &mut [Arena]) -> Times {
        let barrier = Barrier::new(arenas.len());
        let go_on = AtomicBool::new(true);
        let by_thread: Result<Vec<_>, Error> = thread::scope(|scope| {
            let (barrier, go_on) = (&barrier, &go_on);
            let worker =
                |(index, arena)| scope.spawn(move || self.work(arena, index == 0, barrier, go_on));
            let workers: Vec<_> = arenas.iter_mut().enumerate().map(worker).collect();
            workers.into_iter().map(|w| w.join().unwrap_or(Err(Error::Thread))).collect()
        });
        by_thread?.into_iter().reduce(slowest).ok_or(Error::Thread)
    }

    fn work(&self, arena: &mut Arena, leads: bool, barrier: &Barrier, go_on: &AtomicBool) -> Times {
        let mut times = vec![Vec::new(); self.contestants.len()];
        for (round, order) in self.schedule.iter().enumerate() {
            for (turn, &index) in order.iter().enumerate() {
                if leads {
                    let enough = round >= self.rounds_min.max(1) && turn == 0;
                    let late = enough && Instant::now() > self.until;
                    go_on.store(!late && !self.stop.load(Ordering::Relaxed), Ordering::Relaxed);
                }
                // All have read the leader's word before the second wait, and it speaks again only
                // after that: either all go on or none.
                barrier.wait();
                if !go_on.load(Ordering::Relaxed) {
                    let stopped = self.stop.load(Ordering::Relaxed);
                    return if stopped { Err(Error::Stopped) } else { Ok(times) };
                }
                let routine = self.contestants[index].routine();
                arena.lead_in(routine, self.calls);
                barrier.wait();
                let time = arena.time(routine, self.calls);
                times[index].push(clock::ns_each(time, self.calls));
            }
        }
        Ok(times)
    }
}

fn slowest(mut all: Vec<Vec<f64>>, other: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    for (ours, theirs) in all.iter_mut().zip(other) {
        for (time, other) in ours.iter_mut().zip(theirs) {
            *time = time.max(other);
        }
    }
    all
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
    fn stopping_is_an_error_not_a_figure() {
        let field = Contestant::field(Operation::Copy);
        let case = small(Temperature::Hot, 1);
        let result = measure(&Machine::detect(), &case, &field, &effort(), &Stop::new(true));
        assert!(matches!(result, Err(Error::Stopped)));
    }

    #[test]
    fn a_thread_is_as_late_as_the_slowest() {
        let slow = slowest(vec![vec![1.0, 5.0]], vec![vec![2.0, 4.0]]);
        assert_eq!(slow, [[2.0, 5.0]]);
    }
}
