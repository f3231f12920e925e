//! Arm CPUs: hwcaps and registers as they read on some of them.

use std::path::Path;
use std::string::ToString;
use std::{fs, vec};

use super::sysfs::Root;
use crate::cpu::Level::{L1d, L1i};
use crate::cpu::Source::{Ctr, Default, DeviceTree, Sysfs};
use crate::cpu::{Arm, Cpu, Fact, Geometry, Reader, Registers};

struct Is(Arm);

impl Reader for Is {
    fn cpuid(&self, _leaf: u32, _subleaf: u32) -> Registers {
        Registers::default()
    }
    fn xcr0(&self) -> u64 {
        0
    }
    fn arm(&self) -> Option<Arm> {
        Some(self.0)
    }
}

/// CTR_EL0 of a Cortex-A53: 64-byte lines, writeback granule 64 bytes.
const A53: u64 = 0x8444_8004;
/// Of an A64FX: 256-byte lines and granule.
const A64FX: u64 = 0x8666_8006;

fn a64(hwcap: u64, hwcap2: u64, ctr: u64, dczid: u64) -> Is {
    Is(Arm::A64 { hwcap, hwcap2, ctr, dczid })
}

#[test]
fn features() {
    for (arm, expected) in [
        (a64(0, 0, A53, 0x10), "none"),
        (a64(1 << 1, 0, A53, 4), "neon and dczva"),
        (a64(1 << 1, 1 << 43, A64FX, 6), "neon, mops and dczva"),
        (a64(1 << 1, 1 << 43, A53, 0x14), "neon and mops"),
        (Is(Arm::A32 { hwcap: 1 << 12, ctr: None }), "neon"),
        (Is(Arm::A32 { hwcap: !(1 << 12), ctr: None }), "none"),
    ] {
        let cpu = Cpu::detect(&arm);
        assert_eq!(cpu.usable.to_string(), expected, "{:?}", arm.0);
        assert_eq!(cpu.has, cpu.usable, "{:?}", arm.0);
    }
}

#[test]
fn lines_from_the_cache_type_register() {
    for (arm, min, max) in [
        (a64(0, 0, A53, 4), (64, Ctr), (64, Ctr)),
        (a64(0, 0, A64FX, 6), (256, Ctr), (256, Ctr)),
        // Lines of 64 bytes, written back two at a time.
        (a64(0, 0, 0x8544_8004, 4), (64, Ctr), (128, Ctr)),
        // A granule of 2 KiB stands for one that is not known, and zero for none told.
        (a64(0, 0, 0x8944_8004, 4), (64, Ctr), (64, Ctr)),
        (a64(0, 0, 0x8043_8003, 4), (32, Ctr), (32, Ctr)),
        (Is(Arm::A32 { hwcap: 0, ctr: Some(0x8333_8003) }), (32, Ctr), (32, Ctr)),
        (Is(Arm::A32 { hwcap: 0, ctr: None }), (64, Default), (64, Default)),
    ] {
        let geometry = Geometry::detect(&arm);
        let fact = |(value, source)| Fact { value, source };
        assert_eq!(geometry.line_min(), fact(min), "{:?}", arm.0);
        assert_eq!(geometry.line_max(), fact(max), "{:?}", arm.0);
        assert_eq!(geometry.dma_alignment(), fact(max), "{:?}", arm.0);
    }
}

const SILENT: Is = Is(Arm::A32 { hwcap: 0, ctr: None });

/// A Cortex-A7 beside a Cortex-A15, had they lines of different lengths.
#[test]
fn lines_over_all_cpus() {
    let root = Root::new("big-little")
        .cache(0, 0, ["1", "Data", "32K", "32", "0-1"])
        .cache(1, 0, ["1", "Data", "32K", "32", "0-1"])
        .cache(2, 0, ["1", "Data", "32K", "64", "2"])
        .cache(2, 1, ["2", "Unified", "2048K", "128", "2"]);
    let geometry = Geometry::from_both(&SILENT, root.path());
    assert_eq!(geometry.line_min(), Fact { value: 32, source: Sysfs });
    assert_eq!(geometry.line_max(), Fact { value: 128, source: Sysfs });
    assert_eq!(geometry.dma_alignment(), geometry.line_max());
}

fn tell(root: &Path, cpu: &str, properties: &[(&str, u32)]) {
    let folder = root.join("cpus").join(cpu);
    fs::create_dir_all(&folder).unwrap();
    for (name, value) in properties {
        fs::write(folder.join(name), value.to_be_bytes()).unwrap();
    }
}

#[test]
fn a_device_tree_where_sysfs_tells_of_no_cache() {
    let root = Root::new("device-tree");
    tell(root.path(), "cpu@0", &[("d-cache-size", 0x8000), ("d-cache-line-size", 64)]);
    tell(root.path(), "cpu@0", &[("i-cache-size", 0x4000), ("i-cache-block-size", 32)]);
    // A line, but no size; a line that cannot be; a node that is no CPU.
    tell(root.path(), "cpu@1", &[("d-cache-line-size", 128), ("i-cache-line-size", 7)]);
    tell(root.path(), "idle-states", &[("d-cache-line-size", 16)]);
    let no_sysfs = root.path().join("none");
    let geometry = Geometry::from_all(&SILENT, &no_sysfs, root.path());
    assert_eq!(geometry.line_min(), Fact { value: 32, source: DeviceTree });
    assert_eq!(geometry.line_max(), Fact { value: 128, source: DeviceTree });
    let sizes = [L1d, L1i].map(|level| geometry.cache(level).map(|cache| cache.size_bytes));
    assert_eq!(sizes, [Some(0x8000), Some(0x4000)]);

    // Where sysfs tells, it stands alone.
    let sysfs = Root::new("device-tree-sysfs").cache(0, 0, ["1", "Data", "32K", "32", "0"]);
    let geometry = Geometry::from_all(&SILENT, sysfs.path(), root.path());
    assert_eq!(geometry.line_max(), Fact { value: 32, source: Sysfs });
}

#[test]
fn a_device_tree_of_rubbish_is_all_default() {
    let root = Root::new("device-tree-rubbish");
    let folder = root.path().join("cpus/cpu@0");
    fs::create_dir_all(&folder).unwrap();
    for (name, bytes) in [("d-cache-line-size", vec![1]), ("i-cache-block-size", vec![0; 5])] {
        fs::write(folder.join(name), bytes).unwrap();
    }
    let geometry = Geometry::from_all(&SILENT, &root.path().join("none"), root.path());
    assert_eq!(geometry.line_min().source, Default);
}
