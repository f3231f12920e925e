//! This machine: what we read against what Linux reads.

use std::path::Path;
use std::string::String;
use std::vec::Vec;
use std::{eprintln, format};

use crate::cpu::{Cpu, Doubt, Features, Geometry, Level, Native};

#[test]
fn agrees_with_proc_cpuinfo() {
    let flags = match cpuinfo_flags() {
        Ok(flags) => flags,
        Err(because) => {
            eprintln!("not checked: {because}");
            return;
        }
    };
    let flag = |name: &str| flags.iter().any(|flag| flag == name);
    let cpu = Cpu::detect(&Native);
    // Linux does not name all of them, and drops some that it was told not to use.
    let named = |feature: Features| match feature {
        Features::MMXEXT => flag("mmxext") || flag("sse"),
        Features::MOVNTI => flag("sse2"),
        Features::FZRM | Features::FSRS => cpu.has.contains(feature),
        _ => flag(feature.name()),
    };
    for feature in Features::all() {
        assert_eq!(cpu.usable.contains(feature), named(feature), "{feature}");
    }
    assert_eq!(cpu.hypervisor, flag("hypervisor"));
}

fn cpuinfo_flags() -> Result<Vec<String>, String> {
    if cfg!(miri) {
        return Err(String::from("Miri cannot run CPUID"));
    }
    let path = "/proc/cpuinfo";
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let line = text.lines().find(|line| line.starts_with("flags"));
    let (_, flags) = line.and_then(|line| line.split_once(':')).ok_or("no line of x86 flags")?;
    Ok(flags.split_whitespace().map(String::from).collect())
}

#[cfg(feature = "std")]
#[test]
fn agrees_with_sysfs() {
    let root = Path::new("/sys/devices/system/cpu");
    if cfg!(miri) || !root.join("cpu0/cache/index0/size").exists() {
        eprintln!("not checked: {} shows no cache here", root.display());
        return;
    }
    let cpuid = Geometry::detect(&Native);
    let sysfs = Geometry::from_sysfs(root);
    let differ = |level| sysfs.doubts().any(|doubt| doubt == Doubt::CpusDiffer { level });
    let mut compared = 0;
    for level in [Level::L1d, Level::L1i, Level::L2, Level::L3] {
        let (Some(ours), Some(theirs)) = (cpuid.cache(level), sysfs.cache(level)) else { continue };
        if ours.source == crate::cpu::Source::Default || differ(level) {
            eprintln!("not checked: {level}, which has no single value in both sources");
            continue;
        }
        let fields = |cache: &crate::cpu::Cache| (cache.size_bytes, cache.line_bytes);
        assert_eq!(fields(ours), fields(theirs), "{level}");
        compared += 1;
    }
    if compared == 0 {
        eprintln!("not checked: cpuid tells of no cache here");
    }
}
