//! A step and how it is timed: by its parts, with time stamps between them, and as a whole, without.
//!
//! Both kinds are one loop, instantiated with a stopwatch that stamps and with one that doesn't, so
//! that they differ in nothing else. What a stamp costs is measured once and taken off the parts.
//! A stamp waits for earlier loads (the kernel's reader orders the counter's read after them) but
//! not for stores that are still on their way: those are paid by whoever needs their place, which
//! is why the parts don't always sum up to the whole and the rest is shown.
#![allow(unsafe_code, reason = "operates on and uses pieces of raw memory")]

use super::cell::{Cell, Core, Share, USE_UNIT_BYTES, UseKind, Victim, Walk};
use crate::arena::Arena;
use crate::clock;
use crate::companion::Companion;
use crate::contestant::{Contestant, Routine};
use crate::cores;
use crate::counters::Counter;
use crate::lines::Lines;
use crate::rounds::Bench;
use crate::{Error, Machine};
use std::hint::{self, black_box};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// One sample, in nanoseconds per step, except for the loads.
pub(super) type Sample = [f64; FIGURES];
pub(super) const VICTIM: usize = 0;
pub(super) const OP: usize = 1;
pub(super) const DELAY: usize = 2;
pub(super) const USE: usize = 3;
pub(super) const USE_AGAIN: usize = 4;
const PARTS: usize = 5;
pub(super) const WHOLE: usize = PARTS;
/// Of a bystander on another core, per step of the whole.
pub(super) const LOADS: usize = PARTS + 1;
/// From here on by part, where they can be counted: misses per step.
pub(super) const MISSES: usize = PARTS + 2;
pub(super) const FIGURES: usize = MISSES + PARTS;

/// A pass of steps is not timed shorter.
const PASS: Duration = Duration::from_micros(500);
/// Long steps are few, and an odd one must not be all that a sample is made of.
const STEPS_MIN: usize = 2;
/// Full steps before the timed ones, so that victim, delay and result meet each other.
const LEAD_IN_STEPS: usize = 2;

/// One thread's side of a cell. Its last entrant is the loop with the operation left out.
pub(super) struct Stage<'a> {
    cell: Cell,
    arena: &'a mut Arena,
    contestants: &'a [&'a Contestant],
    bystander: Bystander,
    delay: Option<Lines>,
    steps: usize,
    lead_in_steps: usize,
    cpu: Option<usize>,
    misses: Option<Counter>,
}

enum Bystander {
    None,
    InTurn(Lines),
    Beside(Companion),
}

/// What is run in a pass.
#[derive(Clone, Copy)]
struct Roles {
    victim: bool,
    delay: bool,
}

const ALL: Roles = Roles { victim: true, delay: true };
const WRITERS: Roles = Roles { victim: false, delay: false };

trait Stopwatch {
    fn lap(&mut self, part: usize);
}

struct Unstamped;

impl Stopwatch for Unstamped {
    #[inline(always)]
    fn lap(&mut self, _part: usize) {}
}

struct Stamped {
    last: Instant,
    sums: [Duration; PARTS],
}

impl Stopwatch for Stamped {
    #[inline(always)]
    fn lap(&mut self, part: usize) {
        let now = Instant::now();
        self.sums[part] += now - self.last;
        self.last = now;
    }
}

impl Stamped {
    fn new() -> Self {
        Self { last: Instant::now(), sums: [Duration::ZERO; PARTS] }
    }

    /// The least of some averages: a disturbance only adds.
    fn lap_ns() -> f64 {
        static LAP_NS: OnceLock<f64> = OnceLock::new();
        const LAPS: usize = 1000;
        let average = || {
            let mut laps = Self::new();
            (0..LAPS).for_each(|_| laps.lap(black_box(OP)));
            clock::ns_each(laps.sums[OP], LAPS)
        };
        *LAP_NS.get_or_init(|| (0..20).map(|_| average()).fold(f64::INFINITY, f64::min))
    }
}

/// Reads a counter instead of the clock. It costs a system call a lap, so it has a pass of its own.
struct Counted<'a> {
    counter: &'a mut Counter,
    last: u64,
    sums: [u64; PARTS],
}

impl Stopwatch for Counted<'_> {
    fn lap(&mut self, part: usize) {
        let now = self.counter.read();
        self.sums[part] += now.saturating_sub(self.last);
        self.last = self.counter.read();
    }
}

impl<'a> Stage<'a> {
    /// `steps` as measured before, or 0 to find out.
    pub(super) fn new(
        machine: &Machine,
        cell: &Cell,
        arena: &'a mut Arena,
        contestants: &'a [&'a Contestant],
        thread: usize,
        steps: usize,
    ) -> Result<Self, Error> {
        let line_bytes = machine.geometry.line_max().value;
        let lines = |bytes| Lines::new(bytes, line_bytes);
        let Victim { bytes, core, walk, .. } = cell.victim;
        let mut cpu = None;
        let bystander = match (bytes, core) {
            (0, _) => Bystander::None,
            (_, Core::Same) => Bystander::InTurn(lines(bytes)?),
            (_, Core::Other) => {
                let cores = cores::one_per_core();
                let (needed, available) = (2 * cell.threads, cores.len());
                let short = Error::CoresShort { needed, available };
                cpu = cores.get(thread).copied();
                let its = *cores.get(cell.threads + thread).ok_or(short)?;
                Bystander::Beside(Companion::new(lines(bytes)?, walk, its))
            }
        };
        let delay = (cell.delay_bytes > 0).then(|| lines(cell.delay_bytes)).transpose()?;
        let lead_in_steps = machine.last_level_bytes() / (cell.size_bytes * sides(cell)).max(1);
        let lead_in_steps = lead_in_steps.max(LEAD_IN_STEPS);
        let mut stage = Self {
            cell: *cell,
            arena,
            contestants,
            bystander,
            delay,
            steps,
            lead_in_steps,
            cpu,
            misses: None,
        };
        if steps == 0 {
            stage.steps = stage.steps_lasting(PASS);
        }
        Ok(stage)
    }

    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    fn steps_lasting(&mut self, least: Duration) -> usize {
        let first = self.contestants.first().map(|first| first.routine());
        let mut steps = STEPS_MIN;
        while steps < 1 << 24
            && clock::time(|| self.pass(first, ALL, steps, &mut Unstamped)) < least
        {
            steps *= 2;
        }
        steps
    }

    /// The loop.
    #[inline(never)]
    fn pass(
        &mut self,
        routine: Option<&dyn Routine>,
        roles: Roles,
        steps: usize,
        watch: &mut impl Stopwatch,
    ) {
        let Cell { size_bytes, used, use_kind, victim, .. } = black_box(self.cell);
        let mut in_turn = match &mut self.bystander {
            Bystander::InTurn(lines) if roles.victim => Some(lines),
            _ => None,
        };
        let mut delay = self.delay.as_mut().filter(|_| roles.delay);
        for (dst, src) in self.arena.take(steps) {
            if let Some(lines) = &mut in_turn {
                for _ in 0..victim.retouch {
                    match victim.walk {
                        Walk::Dependent => lines.dependent(lines.count()),
                        Walk::Independent => lines.independent(lines.count()),
                    }
                }
                watch.lap(VICTIM);
            }
            if let Some(routine) = routine {
                // SAFETY: a piece of the arena, of that size on both sides.
                unsafe { routine.run(dst, src, size_bytes) };
                watch.lap(OP);
            }
            if let Some(lines) = &mut delay {
                lines.independent(lines.count());
                watch.lap(DELAY);
            }
            if used != Share::NONE {
                // SAFETY: as above; nobody else knows the arena's memory.
                unsafe { make_use(use_kind, used, dst, size_bytes) };
                watch.lap(USE);
                if routine.is_none() {
                    // SAFETY: as above.
                    unsafe { make_use(use_kind, used, dst, size_bytes) };
                    watch.lap(USE_AGAIN);
                }
            }
        }
    }

    fn routine(&self, entrant: usize) -> Option<&'a dyn Routine> {
        self.contestants.get(entrant).map(|who| who.routine())
    }

    fn misses(&mut self, routine: Option<&dyn Routine>) -> [f64; PARTS] {
        let steps = self.steps;
        let Some(mut counter) = self.misses.take() else { return [0.0; PARTS] };
        let last = counter.read();
        let mut counted = Counted { counter: &mut counter, last, sums: [0; PARTS] };
        self.pass(routine, ALL, steps, &mut counted);
        let misses = counted.sums.map(|sum| sum as f64 / steps as f64);
        self.misses = Some(counter);
        misses
    }

    fn accompany(&self, yes: bool) {
        if let Bystander::Beside(companion) = &self.bystander {
            companion.walk(yes);
        }
    }

    fn loads(&self) -> u64 {
        match &self.bystander {
            Bystander::Beside(companion) => companion.loads(),
            _ => 0,
        }
    }
}

impl Bench<FIGURES> for Stage<'_> {
    const TIME: usize = WHOLE;

    /// With a bystander on another core both must stay where they are. A counter counts the thread
    /// that opened it.
    fn enter(&mut self, _thread: usize) {
        self.misses = Counter::cache_misses();
        if let Some(cpu) = self.cpu {
            cores::stay_on(cpu);
        }
    }

    /// As much as the last level holds is written by this entrant, used as the cell says, so that
    /// the write-backs that are paid in the timed steps are its own; then a few whole steps.
    fn lead_in(&mut self, entrant: usize) {
        let routine = self.routine(entrant);
        self.accompany(true);
        self.pass(routine, WRITERS, self.lead_in_steps, &mut Unstamped);
        self.pass(routine, ALL, LEAD_IN_STEPS, &mut Unstamped);
        if let Bystander::Beside(companion) = &self.bystander {
            companion.wait();
        }
    }

    fn sample(&mut self, entrant: usize) -> Sample {
        let (routine, steps) = (self.routine(entrant), self.steps);
        let loads = self.loads();
        let start = Instant::now();
        self.pass(routine, ALL, steps, &mut Unstamped);
        // Without operation and use there may be nothing to do; a bystander's own pace takes time.
        while routine.is_none() && self.cpu.is_some() && start.elapsed() < PASS {
            hint::spin_loop();
        }
        let whole_ns = clock::ns_each(start.elapsed(), steps);
        let loads = (self.loads() - loads) as f64 / steps as f64;

        let mut stamped = Stamped::new();
        self.pass(routine, ALL, steps, &mut stamped);
        let misses = self.misses(routine);
        self.accompany(false);
        let part = |sum| (clock::ns_each(sum, steps) - Stamped::lap_ns()).max(0.0);
        let [victim, op, delay, used, again] = stamped.sums.map(part);
        let mut sample = [0.0; FIGURES];
        sample[..MISSES].copy_from_slice(&[victim, op, delay, used, again, whole_ns, loads]);
        sample[MISSES..].copy_from_slice(&misses);
        sample
    }
}

/// How many ranges a step goes through: a hot source is one piece.
fn sides(cell: &Cell) -> usize {
    use crate::Temperature::Cold;
    use cachewise::variant::Operation::Copy;
    if (cell.operation, cell.source) == (Copy, Cold) { 2 } else { 1 }
}

/// Reads or writes the share's words.
///
/// # Safety
///
/// `start` is aligned for a `u64` and valid for reads and writes of `len` bytes; while this runs,
/// nobody else reads or writes them.
#[inline(never)]
unsafe fn make_use(kind: UseKind, used: Share, start: *mut u8, len: usize) {
    let mut folded = 0;
    for at in (0..len).step_by(USE_UNIT_BYTES) {
        let words = used.of_bytes(USE_UNIT_BYTES.min(len - at)) / size_of::<u64>();
        let first = start.wrapping_add(at).cast::<u64>();
        match kind {
            UseKind::Read => {
                // SAFETY: so many words lie within `len`; any bytes are a u64.
                let words = unsafe { std::slice::from_raw_parts(first, words) };
                folded = words.iter().fold(folded, |all, word| all ^ word);
            }
            UseKind::Write => (0..words).for_each(|index| {
                // SAFETY: the word lies within `len`. Volatile, or it would become a call to
                // libc's memset, which may itself go around the cache.
                unsafe { first.wrapping_add(index).write_volatile(index as u64) }
            }),
        }
    }
    black_box(folded);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_touches_the_share_of_each_unit_and_no_more() {
        for (share, touched) in [(0.002, 1), (0.25, 128), (1.0, 512)] {
            let mut words = [u64::MAX; 1024];
            let share = Share::new(share).unwrap();
            // SAFETY: an array of so many bytes.
            unsafe { make_use(UseKind::Write, share, words.as_mut_ptr().cast(), 8192) };
            for unit in words.chunks(512) {
                assert!(unit[..touched].iter().enumerate().all(|(i, word)| *word == i as u64));
                assert!(unit[touched..].iter().all(|word| *word == u64::MAX));
            }
        }
    }

    #[test]
    fn laps_add_up_to_the_time_between() {
        let start = Instant::now();
        let mut watch = Stamped::new();
        (0..PARTS).for_each(|part| watch.lap(part));
        let sum: Duration = watch.sums.iter().sum();
        assert!(sum <= start.elapsed());
        assert!(Stamped::lap_ns() > 0.0);
    }
}
