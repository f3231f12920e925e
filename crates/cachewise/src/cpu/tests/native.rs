//! This machine: the features we read against those that Linux reads.

use std::string::String;
use std::vec::Vec;
use std::{eprintln, format};

use crate::cpu::{Cpu, Features, Native};

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
    for feature in Features::all() {
        let named = match feature {
            Features::MMXEXT => flag("mmxext") || flag("sse"),
            Features::MOVNTI => flag("sse2"),
            Features::FZRM | Features::FSRS => {
                eprintln!("not checked: {feature}, which Linux does not list");
                continue;
            }
            _ => flag(feature.name()),
        };
        assert_eq!(cpu.usable.contains(feature), named, "{feature}");
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
