//! What the measurement must know of the machine before it begins: CPU, caches, memory.

use crate::Error;
use crate::case::{Case, Temperature};
use cachewise::cpu::{Cpu, Geometry, Kind, Native};

/// This machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The CPU that answered.
    pub cpu: Cpu,
    /// Its caches, as claimed.
    pub geometry: Geometry,
    /// CPUs this process may use.
    pub cpus: usize,
    /// The smallest page.
    pub page_bytes: usize,
    /// Memory that could be had without swapping, as Linux estimates it; 0 where it does not tell.
    pub available_bytes: u64,
    /// All memory; 0 where the system does not tell.
    pub total_bytes: u64,
}

/// The memory that a cold case goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Per thread, all sides of the operation together.
    pub footprint_bytes: usize,
    /// What the geometry claims as the last cache before memory.
    pub last_level_bytes: usize,
}

/// How many times the last-level cache a cold range is: what is met again has been pushed out even
/// by a replacement policy that keeps half of the old lines.
const RANGE_IN_CACHES: usize = 4;
/// A hypervisor may claim less than there is; below this a range is never taken for memory.
const RANGE_MIN_BYTES: usize = 64 << 20;
/// No measurement takes more than half of what is free: others live here too.
const AVAILABLE_SHARE: u64 = 2;

impl Machine {
    /// Asks the CPU and the operating system.
    pub fn detect() -> Self {
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Self {
            cpu: Cpu::detect(&Native),
            geometry: Geometry::system(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            page_bytes: rustix::param::page_size(),
            available_bytes: meminfo_bytes(&meminfo, "MemAvailable").unwrap_or(0),
            total_bytes: meminfo_bytes(&meminfo, "MemTotal").unwrap_or(0),
        }
    }

    /// The last cache before memory, whole: a single thread can fill all of it.
    pub fn last_level_bytes(&self) -> usize {
        let last = self.geometry.caches().filter(|cache| cache.kind != Kind::Instruction).last();
        last.map_or(self.geometry.l1d_bytes().value, |cache| cache.size_bytes)
    }

    /// The range for a cold case. It may be smaller than wanted where memory is short:
    /// [`Range::exceeds_last_level`] tells.
    pub fn range(&self, threads: usize) -> Range {
        let last_level_bytes = self.last_level_bytes();
        let wanted = last_level_bytes.saturating_mul(RANGE_IN_CACHES).max(RANGE_MIN_BYTES);
        let free = usize::try_from(self.usable_bytes()).unwrap_or(usize::MAX);
        let footprint_bytes = wanted.min(free / threads.max(1));
        Range { footprint_bytes, last_level_bytes }
    }

    /// The memory a case needs per thread, all sides together.
    ///
    /// # Errors
    ///
    /// [`Error::MemoryShort`] if all threads together would need more than may be used.
    pub fn footprint_bytes(&self, case: &Case) -> Result<usize, Error> {
        let once = case.size_bytes.saturating_mul(case.sides());
        let footprint_bytes = match case.temperature {
            Temperature::Hot => once,
            Temperature::Cold => once.max(self.range(case.threads).footprint_bytes),
        };
        let needed_bytes = (footprint_bytes as u64).saturating_mul(case.threads as u64);
        let available_bytes = self.usable_bytes();
        if needed_bytes > available_bytes {
            return Err(Error::MemoryShort { needed_bytes, available_bytes });
        }
        Ok(footprint_bytes)
    }

    fn usable_bytes(&self) -> u64 {
        match self.available_bytes {
            // Nobody tells: take what any machine has, and let the system refuse the rest.
            0 => (RANGE_MIN_BYTES as u64) * AVAILABLE_SHARE,
            available => available / AVAILABLE_SHARE,
        }
    }
}

impl Range {
    /// Whether what is met again must have left the claimed last-level cache.
    pub fn exceeds_last_level(&self) -> bool {
        self.footprint_bytes > self.last_level_bytes
    }
}

/// One line of /proc/meminfo (proc_meminfo(5)), whose kB are KiB.
fn meminfo_bytes(meminfo: &str, field: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Align, Pattern};
    use cachewise::variant::Operation;

    fn machine(available_bytes: u64) -> Machine {
        Machine { available_bytes, ..Machine::detect() }
    }

    fn cold(size_bytes: usize, threads: usize) -> Case {
        Case {
            operation: Operation::Copy,
            size_bytes,
            temperature: Temperature::Cold,
            pattern: Pattern::Walk,
            align: Align::default(),
            threads,
        }
    }

    #[test]
    fn a_cold_range_exceeds_the_claimed_cache_where_memory_allows() {
        let roomy = machine(1 << 50).range(2);
        assert!(roomy.exceeds_last_level() && roomy.footprint_bytes >= RANGE_MIN_BYTES);
        assert!(!machine(1 << 20).range(2).exceeds_last_level());
    }

    #[test]
    fn a_case_beyond_memory_is_refused_and_one_within_is_not() {
        let machine = machine(1 << 30);
        assert!(matches!(
            machine.footprint_bytes(&cold(1 << 29, 1)),
            Err(Error::MemoryShort { .. })
        ));
        assert!(matches!(
            machine.footprint_bytes(&cold(1 << 27, 4)),
            Err(Error::MemoryShort { .. })
        ));
        assert_eq!(machine.footprint_bytes(&cold(1 << 28, 1)).unwrap(), 1 << 29);
        assert!(machine.footprint_bytes(&cold(usize::MAX, 3)).is_err());
    }

    #[test]
    fn meminfo_is_read_by_whole_names() {
        let text = "MemTotal:       16 kB\nMemAvailable:   8 kB\nMemAvailableOther: 1 kB\n";
        assert_eq!(meminfo_bytes(text, "MemAvailable"), Some(8192));
        assert_eq!(meminfo_bytes(text, "Mem"), None);
    }
}
