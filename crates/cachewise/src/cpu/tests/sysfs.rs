//! Machines as Linux shows them, laid out in a temporary folder; and this one.

use std::eprintln;
use std::fs;
use std::path::{Path, PathBuf};
use std::string::{String, ToString};
use std::vec::Vec;

use super::{KIB, MIB, doubts, dumps};
use crate::cpu::Level::{L1d, L1i, L2, L3};
use crate::cpu::Source::{CpuidAmdLegacy, CpuidLeaf4, Default, Sysfs};
use crate::cpu::{Cache, Doubt, Fact, Field, Geometry, Kind, Level, Native};

/// A folder that is removed at the end of the test.
pub(super) struct Root(PathBuf);

impl Root {
    pub(super) fn new(test: &str) -> Self {
        let folder = std::format!("cachewise-sysfs-{}-{test}", std::process::id());
        let root = std::env::temp_dir().join(folder);
        // Left by an earlier run with the same process id that was killed.
        let _ = fs::remove_dir_all(&root);
        fs::create_dir(&root).unwrap();
        Self(root)
    }

    /// Level, type, size, line and the CPUs that share it, as the files spell them.
    pub(super) fn cache(self, cpu: u32, index: u32, files: [&str; 5]) -> Self {
        let folder = self.0.join(std::format!("cpu{cpu}/cache/index{index}"));
        fs::create_dir_all(&folder).unwrap();
        let names = ["level", "type", "size", "coherency_line_size", "shared_cpu_list"];
        for (name, text) in names.into_iter().zip(files) {
            fs::write(folder.join(name), std::format!("{text}\n")).unwrap();
        }
        self
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    fn haswell(self) -> Self {
        self.cache(0, 0, ["1", "Data", "32K", "64", "0,4"])
            .cache(0, 1, ["1", "Instruction", "32K", "64", "0,4"])
            .cache(0, 2, ["2", "Unified", "256K", "64", "0,4"])
            .cache(0, 3, ["3", "Unified", "6144K", "64", "0-7"])
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn sizes(geometry: &Geometry) -> Vec<(Level, usize)> {
    [L1d, L1i, L2, L3]
        .into_iter()
        .filter_map(|level| Some((level, geometry.cache(level)?.size_bytes)))
        .collect()
}

#[test]
fn one_kind_of_cpu() {
    let root = Root::new("one-kind").haswell();
    // Not CPUs, though their names begin like one.
    fs::create_dir(root.0.join("cpufreq")).unwrap();
    fs::create_dir(root.0.join("cpuidle")).unwrap();
    let geometry = Geometry::from_sysfs(&root.0);
    let expected = [(L1d, 32 * KIB), (L1i, 32 * KIB), (L2, 256 * KIB), (L3, 6 * MIB)];
    assert_eq!(sizes(&geometry), expected);
    assert_eq!(doubts(&geometry), []);
    assert_eq!(geometry.cache(L1d).unwrap().kind, Kind::Data);
    assert_eq!(geometry.cache(L2).unwrap().shared_by, 2);
    let last_level = Fact { value: 768 * KIB, source: Sysfs };
    assert_eq!(geometry.last_level_bytes_per_cpu(), last_level);
}

/// Seeds row A5: code that touches every line needs the shortest, DMA alignment the longest.
#[test]
fn two_kinds_of_cpu() {
    let root = Root::new("two-kinds")
        .cache(0, 0, ["1", "Data", "48K", "64", "0"])
        .cache(0, 1, ["2", "Unified", "1280K", "128", "0"])
        .cache(9, 0, ["1", "Data", "32K", "32", "9"])
        .cache(9, 1, ["2", "Unified", "2048K", "128", "8-11"])
        .cache(10, 0, ["1", "Data", "32K", "32", "10"]);
    let geometry = Geometry::from_sysfs(&root.0);
    assert_eq!(sizes(&geometry), [(L1d, 32 * KIB), (L2, 1280 * KIB)]);
    let differ = [L1d, L2].map(|level| Doubt::CpusDiffer { level });
    assert_eq!(doubts(&geometry), differ);
    assert_eq!(geometry.line_min().value, 32);
    assert_eq!(geometry.line_max().value, 128);
}

#[test]
fn cpuid_of_one_cpu_where_cpus_differ() {
    let root = Root::new("differ-cpuid")
        .haswell()
        .cache(1, 0, ["1", "Data", "24K", "64", "1"])
        .cache(1, 1, ["1", "Instruction", "64K", "64", "1"]);
    let geometry = Geometry::from_both(&dumps::HASWELL.replay(), &root.0);
    assert_eq!(geometry.l1d_bytes(), Fact { value: 24 * KIB, source: Sysfs });
    assert_eq!(geometry.cache(L1i).unwrap().source, CpuidLeaf4);
    assert_eq!(doubts(&geometry), [L1d, L1i].map(|level| Doubt::CpusDiffer { level }));
}

#[test]
fn no_folder_is_all_default() {
    let root = Root::new("none");
    for folder in [root.0.clone(), root.0.join("absent")] {
        let geometry = Geometry::from_sysfs(&folder);
        assert_eq!(geometry.l1d_bytes(), Fact { value: 32 * KIB, source: Default });
        let missing = [L1d, L1i, L2, L3].map(|level| Doubt::NotReported { level });
        assert_eq!(doubts(&geometry), missing);
    }
}

#[test]
fn rubbish_is_refused() {
    let root = Root::new("rubbish")
        .cache(0, 0, ["1", "Data", "0K", "64", "0"])
        .cache(0, 1, ["1", "Instruction", "32K", "63", "0"])
        .cache(0, 2, ["2", "Unified", "1M", "64", "7-3"])
        .cache(0, 3, ["3", "Unified", "99999999999999999999G", "64", "0"])
        .cache(0, 4, ["eleven", "Unified", "1K", "64", "0"]);
    let geometry = Geometry::from_sysfs(&root.0);
    let refused = |level, field, value| Doubt::Implausible { level, field, value, source: Sysfs };
    let expected = [
        refused(L1d, Field::SizeBytes, 0),
        refused(L1i, Field::LineBytes, 63),
        refused(L2, Field::SharedBy, 0),
        refused(L3, Field::SizeBytes, 0),
    ];
    assert_eq!(doubts(&geometry), expected);
    assert_eq!(geometry.l1d_bytes(), Fact { value: 32 * KIB, source: Default });
    assert_eq!(geometry.l2_bytes(), Fact { value: MIB, source: Sysfs });
    assert_eq!(geometry.cache(L2).unwrap().shared_by, 1);
    assert_eq!(geometry.last_level_bytes_per_cpu(), Fact { value: MIB, source: Default });
}

#[test]
fn both_agree() {
    let root = Root::new("agree").haswell();
    let reader = dumps::HASWELL.replay();
    let both = Geometry::from_both(&reader, &root.0);
    assert_eq!(both, Geometry::detect(&reader));
}

#[test]
fn sysfs_fills_in_for_a_silent_cpuid() {
    let root = Root::new("silent").haswell();
    for dump in [&dumps::HYPERVISOR_ZEROS, &dumps::HYPERVISOR_EMPTY_CACHES] {
        let geometry = Geometry::from_both(&dump.replay(), &root.0);
        assert_eq!(sizes(&geometry), sizes(&Geometry::from_sysfs(&root.0)));
        assert!(geometry.caches().all(|cache| cache.source == Sysfs));
        // What Linux shows in a guest is the hypervisor's claim as well.
        assert!(geometry.doubts().any(|doubt| doubt == Doubt::Hypervisor { level: L3 }));
    }
}

#[test]
fn sysfs_fills_in_for_a_refused_cache_only() {
    let root = Root::new("refused").cache(0, 0, ["2", "Unified", "64K", "64", "0"]);
    let geometry = Geometry::from_both(&dumps::DURON_K7.replay(), &root.0);
    assert_eq!(geometry.l1d_bytes(), Fact { value: 64 * KIB, source: CpuidAmdLegacy });
    assert_eq!(geometry.l2_bytes(), Fact { value: 64 * KIB, source: Sysfs });
    assert_eq!(geometry.doubts().map(Doubt::id).collect::<Vec<_>>(), ["cache-implausible"]);
}

#[test]
fn where_both_tell_and_differ_cpuid_stays_and_is_doubted() {
    let root = Root::new("differ")
        .haswell()
        .cache(0, 2, ["2", "Unified", "512K", "64", "0,4"])
        .cache(0, 3, ["3", "Unified", "6144K", "64", "0-1"]);
    let geometry = Geometry::from_both(&dumps::HASWELL.replay(), &root.0);
    assert_eq!(geometry.l2_bytes(), Fact { value: 256 * KIB, source: CpuidLeaf4 });
    let texts: Vec<String> = geometry.doubts().map(|doubt| doubt.cause().to_string()).collect();
    let expected = [
        "size_bytes of the L2 cache is 262144 in cpuid but 524288 in sysfs",
        "shared_by of the L3 cache is 8 in cpuid but 2 in sysfs",
    ];
    assert_eq!(texts, expected);
}

/// This machine.
#[test]
fn agrees_with_sysfs() {
    let root = Path::new(crate::cpu::sysfs::ROOT);
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
        if ours.source == Default || differ(level) {
            eprintln!("not checked: {level}, which has no single value in both sources");
            continue;
        }
        let fields = |cache: &Cache| (cache.size_bytes, cache.line_bytes);
        assert_eq!(fields(ours), fields(theirs), "{level}");
        compared += 1;
    }
    if compared == 0 {
        eprintln!("not checked: cpuid tells of no cache here");
    }
}
