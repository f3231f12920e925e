//! Caches as Linux shows them, `cpuN/cache/indexN` under `/sys/devices/system/cpu`.
//!
//! The only source where the architecture has no CPUID, and on x86 the second opinion: it counts
//! the CPUs that share a cache instead of reserved ids, and it shows every CPU, so machines with
//! two kinds of them are seen. (Format: Linux, Documentation/ABI/testing/sysfs-devices-system-cpu.)

use std::path::Path;
use std::string::String;
use std::vec::Vec;

use super::geometry::{Claims, Unchecked};
use super::{Level, Source};

pub(super) const ROOT: &str = "/sys/devices/system/cpu";

/// No CPU shows more; a folder that pretends to is not read for ever.
const CACHES_MAX: usize = 16;

pub(super) fn claims(root: &Path) -> Claims {
    let mut claims = Claims::default();
    // Per index: size and line as last seen, to skip the other files of the many equal CPUs.
    let mut seen: [Option<(String, String)>; CACHES_MAX] = Default::default();
    for cpu in cpus(root) {
        for (index, seen) in seen.iter_mut().enumerate() {
            let folder = root.join(std::format!("cpu{cpu}/cache/index{index}"));
            let Some(size) = read(&folder, "size") else { break };
            let line = read(&folder, "coherency_line_size").unwrap_or_default();
            let this = Some((size, line));
            if *seen != this {
                if let Some((size, line)) = &this {
                    tell(&folder, size, line, &mut claims);
                }
                *seen = this;
            }
        }
    }
    claims
}

fn tell(folder: &Path, size: &str, line: &str, claims: &mut Claims) {
    let level = read(folder, "level").unwrap_or_default();
    let kind = read(folder, "type").unwrap_or_default();
    let level = match (level.as_str(), kind.as_str()) {
        ("1", "Data" | "Unified") => Level::L1d,
        ("1", "Instruction") => Level::L1i,
        ("2", "Data" | "Unified") => Level::L2,
        ("3", "Data" | "Unified") => Level::L3,
        ("4", "Data" | "Unified") => Level::L4,
        _ => return,
    };
    claims.tell(Unchecked {
        level,
        size_bytes: bytes(size).unwrap_or(0),
        line_bytes: line.parse().unwrap_or(0),
        ways: read(folder, "ways_of_associativity").and_then(|ways| ways.parse().ok()).unwrap_or(0),
        shared_by: read(folder, "shared_cpu_list").map_or(0, |list| count(&list)),
        source: Source::Sysfs,
    });
}

/// The numbers N of the folders `cpuN`, ascending.
fn cpus(root: &Path) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(root) else { return Vec::new() };
    let mut cpus: Vec<u32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("cpu")?.parse().ok())
        .collect();
    cpus.sort_unstable();
    cpus
}

fn read(folder: &Path, file: &str) -> Option<String> {
    let text = std::fs::read_to_string(folder.join(file)).ok()?;
    Some(String::from(text.trim()))
}

/// `48K`, `2M` or plain bytes.
fn bytes(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// How many CPUs a list such as `0-3,8` names; 0 when it is no such list.
fn count(list: &str) -> u32 {
    let mut cpus = 0_u32;
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else { return 0 };
        let Some(more) = last.checked_sub(first) else { return 0 };
        cpus = cpus.saturating_add(more).saturating_add(1);
    }
    cpus
}
