//! Which level of the hierarchy a range really lies in: by the latency of dependent loads.
//!
//! What CPUID claims is one thing; what answers is another. A last-level cache may be shared with
//! strangers, forged by a hypervisor, or larger than any benchmark's buffer (case 27). So a chain
//! of loads, each the address of the next, goes once through every line of a range in random order
//! (nothing to prefetch), and the time per load is compared with that of ranges well inside each
//! claimed level and well outside all of them.
//!
//! The chain pays for translation too: in small pages a range beyond the TLB's reach looks slower
//! than its cache. The rungs pay it alike.

use crate::case::{Case, Temperature};
use crate::lines::Lines;
use crate::{Error, Machine, clock};
use cachewise::cpu::{Cache, Kind, Level};
use std::collections::HashMap;

/// What stands below the last cache.
pub(crate) const MEMORY: &str = "memory";

/// A level and how long a load from it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Rung {
    /// `L1d`, `L2`, `L3`, `L4` or `memory`.
    pub level: &'static str,
    /// The claimed size; `None` of memory.
    pub size_bytes: Option<usize>,
    /// What was gone through to measure it: well inside this level, outside the one before.
    pub range_bytes: usize,
    /// The time of a load that waits for the one before.
    pub latency_ns: f64,
}

/// The level a range was found in.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    /// By latency.
    pub level: &'static str,
    /// By the claimed sizes.
    pub level_claimed: &'static str,
    /// The latency of the range.
    pub latency_ns: f64,
}

/// The levels of a machine, measured.
#[derive(Debug)]
pub struct Ladder {
    rungs: Vec<Rung>,
    line_bytes: usize,
    memory_bytes: usize,
    by_footprint: HashMap<usize, f64>,
}

impl Ladder {
    /// Measures each level. A fraction of a second; on large caches one or two.
    ///
    /// # Errors
    ///
    /// If memory cannot be had.
    pub fn measure(machine: &Machine) -> Result<Self, Error> {
        let line_bytes = machine.geometry.line_max().value;
        let memory_bytes = machine.range(1).footprint_bytes;
        let mut ladder =
            Self { rungs: Vec::new(), line_bytes, memory_bytes, by_footprint: HashMap::new() };
        let mut nearer_bytes = 0;
        for cache in machine.geometry.caches().filter(|c| c.kind != Kind::Instruction) {
            // Well inside this level and, as far as there is room, well outside the one before.
            let inside = (cache.size_bytes / 2).max(nearer_bytes * 2).min(cache.size_bytes);
            nearer_bytes = cache.size_bytes;
            if inside >= memory_bytes {
                break;
            }
            let latency_ns = ladder.latency_ns(inside)?;
            let (level, size_bytes) = (name(cache.level), Some(cache.size_bytes));
            ladder.rungs.push(Rung { level, size_bytes, range_bytes: inside, latency_ns });
        }
        let latency_ns = ladder.latency_ns(memory_bytes)?;
        ladder.rungs.push(Rung {
            level: MEMORY,
            size_bytes: None,
            range_bytes: memory_bytes,
            latency_ns,
        });
        Ok(ladder)
    }

    /// The levels from the nearest to memory.
    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    /// The rung of a cache; none of instructions, nor of a level too large to see outside of it.
    pub fn rung(&self, cache: &Cache) -> Option<&Rung> {
        let level = (cache.kind != Kind::Instruction).then(|| name(cache.level))?;
        self.rungs.iter().find(|rung| rung.level == level)
    }

    /// A load from beyond all caches.
    pub fn memory_ns(&self) -> Option<f64> {
        self.rungs.last().map(|rung| rung.latency_ns)
    }

    /// Where a case's range lies.
    ///
    /// # Errors
    ///
    /// If memory cannot be had.
    pub fn locate(&mut self, case: &Case, footprint_bytes: usize) -> Result<Located, Error> {
        let threads = if case.temperature == Temperature::Hot { 1 } else { case.threads };
        self.locate_range(footprint_bytes, threads)
    }

    /// Where ranges of this size lie, if so many threads go through one each.
    ///
    /// # Errors
    ///
    /// If memory cannot be had.
    pub fn locate_range(&mut self, range_bytes: usize, threads: usize) -> Result<Located, Error> {
        let latency_ns = self.latency_ns(range_bytes.min(self.memory_bytes))?;
        let touched = range_bytes.saturating_mul(threads);
        let holds = |rung: &&Rung| rung.size_bytes.is_none_or(|size| touched <= size);
        let level_claimed = self.rungs.iter().find(holds).map_or(MEMORY, |rung| rung.level);
        Ok(Located { level: nearest(&self.rungs, latency_ns), level_claimed, latency_ns })
    }

    /// Each range once: the answer doesn't change while we look.
    fn latency_ns(&mut self, range_bytes: usize) -> Result<f64, Error> {
        if let Some(&known) = self.by_footprint.get(&range_bytes) {
            return Ok(known);
        }
        let measured = chase_ns(range_bytes, self.line_bytes)?;
        self.by_footprint.insert(range_bytes, measured);
        Ok(measured)
    }
}

/// The rung whose latency is the nearest by ratio.
fn nearest(rungs: &[Rung], latency_ns: f64) -> &'static str {
    let distance = |rung: &Rung| (latency_ns / rung.latency_ns).ln().abs();
    let nearest = rungs.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
    nearest.map_or(MEMORY, |rung| rung.level)
}

fn name(level: u8) -> &'static str {
    let levels = [Level::L1d, Level::L2, Level::L3, Level::L4];
    levels.into_iter().find(|l| l.number() == level).map_or(MEMORY, Level::name)
}

/// The time of one load of the chain: the least of a few passes, as a disturbance only adds.
fn chase_ns(range_bytes: usize, line_bytes: usize) -> Result<f64, Error> {
    const PASSES: usize = 5;
    const LOADS: usize = 1 << 15;
    let mut lines = Lines::new(range_bytes, line_bytes)?;
    lines.dependent(lines.count().min(LOADS));
    let pass = |_| clock::ns_each(clock::time(|| lines.dependent(LOADS)), LOADS);
    Ok((0..PASSES).map(pass).fold(f64::INFINITY, f64::min))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_belongs_to_the_nearest_rung_by_ratio() {
        let rung = |level, latency_ns| Rung { level, size_bytes: None, range_bytes: 0, latency_ns };
        let rungs = [rung("L1d", 1.0), rung("L2", 4.0), rung(MEMORY, 100.0)];
        for (latency_ns, level) in
            [(0.5, "L1d"), (1.9, "L1d"), (2.1, "L2"), (19.0, "L2"), (21.0, MEMORY)]
        {
            assert_eq!(nearest(&rungs, latency_ns), level);
        }
        assert_eq!(nearest(&[], 1.0), MEMORY);
    }

    #[test]
    fn every_level_of_this_machine_gets_a_rung() {
        let machine = Machine { available_bytes: 64 << 20, ..Machine::detect() };
        let ladder = Ladder::measure(&machine).unwrap();
        assert_eq!(ladder.rungs().last().map(|rung| rung.level), Some(MEMORY));
        assert_eq!(ladder.rungs().first().map(|rung| rung.level), Some("L1d"));
        assert!(ladder.rungs().iter().all(|rung| rung.latency_ns > 0.0));
    }
}
