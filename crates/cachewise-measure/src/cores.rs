//! Which CPUs there are to run on, one of each core first: two threads of one core share its caches,
//! so a bystander on "another core" must not be the sibling (topology: sysfs, as the kernel's
//! `Documentation/admin-guide/cputopology.rst` describes it).

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs this process may use: the first of each core, as far as the system tells.
pub(crate) fn one_per_core() -> Vec<usize> {
    let Ok(allowed) = sched_getaffinity(None) else { return Vec::new() };
    let allowed = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    let mut cores: Vec<(String, usize)> = Vec::new();
    for cpu in allowed {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let siblings = std::fs::read_to_string(path).unwrap_or_else(|_| cpu.to_string());
        if !cores.iter().any(|(known, _)| *known == siblings) {
            cores.push((siblings, cpu));
        }
    }
    cores.into_iter().map(|(_, cpu)| cpu).collect()
}

/// Keeps the calling thread on a CPU. Where that is not allowed it runs anywhere.
pub(crate) fn stay_on(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    let _ = sched_setaffinity(None, &set);
}
