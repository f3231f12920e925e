//! Recorded CPUs replayed through the reader, forged ones, and this machine.

#[cfg(feature = "std")]
mod arm;
#[cfg(all(target_arch = "x86", not(cachewise_portable)))]
mod defaults;
mod dumps;
mod features;
mod native;
#[cfg(feature = "std")]
mod sysfs;

use std::string::{String, ToString};
use std::vec::Vec;

use super::Level::{self, L1d, L1i, L2, L3, L4};
use super::Source::{
    self, CpuidAmdLegacy, CpuidAmdTopology, CpuidClflush, CpuidLeaf2, CpuidLeaf4, Default,
};
use super::{Cache, Cpu, Doubt, Fact, Features, Field, Geometry, Reader, Registers};
use dumps::{Beyond, Dump, Replay};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// What a recorded CPU must be read as: written from its data sheet, not from our output.
struct Expected {
    dump: &'static Dump,
    brand: &'static str,
    family_model_stepping: (u16, u16, u8),
    /// Has and, with the recorded XCR0, can use.
    features: &'static str,
    /// Level, size, ways, CPUs that share it.
    caches: &'static [(Level, usize, u32, u32)],
    line_bytes: usize,
    source: Source,
    last_level_bytes_per_cpu: usize,
    doubts: &'static [Doubt],
}

const RECORDED: &[Expected] = &[
    Expected {
        dump: &dumps::PENTIUM_II,
        brand: "",
        family_model_stepping: (6, 5, 3),
        features: "mmx",
        caches: &[(L1d, 16 * KIB, 4, 1), (L1i, 16 * KIB, 4, 1), (L2, MIB, 4, 1)],
        line_bytes: 32,
        source: CpuidLeaf2,
        last_level_bytes_per_cpu: MIB,
        doubts: &[],
    },
    Expected {
        dump: &dumps::PENTIUM_III,
        brand: "",
        family_model_stepping: (6, 8, 3),
        features: "mmx mmxext sse",
        caches: &[(L1d, 16 * KIB, 4, 1), (L1i, 16 * KIB, 4, 1), (L2, 256 * KIB, 8, 1)],
        line_bytes: 32,
        source: CpuidLeaf2,
        last_level_bytes_per_cpu: 256 * KIB,
        doubts: &[],
    },
    Expected {
        dump: &dumps::ATHLON_K7,
        brand: "AMD Athlon(tm) Processor",
        family_model_stepping: (6, 4, 4),
        features: "mmx mmxext",
        caches: &[(L1d, 64 * KIB, 2, 1), (L1i, 64 * KIB, 2, 1), (L2, 256 * KIB, 16, 1)],
        line_bytes: 64,
        source: CpuidAmdLegacy,
        last_level_bytes_per_cpu: 256 * KIB,
        doubts: &[],
    },
    Expected {
        dump: &dumps::PENTIUM_4,
        brand: "Intel(R) Pentium(R) 4 CPU 2.53GHz",
        family_model_stepping: (15, 2, 7),
        features: "mmx mmxext sse movnti sse2 clflush",
        caches: &[(L1d, 8 * KIB, 4, 1), (L2, 512 * KIB, 8, 1)],
        line_bytes: 64,
        source: CpuidLeaf2,
        last_level_bytes_per_cpu: 512 * KIB,
        doubts: &[],
    },
    Expected {
        dump: &dumps::HASWELL,
        brand: "Intel(R) Core(TM) i7-4710MQ CPU @ 2.50GHz",
        family_model_stepping: (6, 60, 3),
        features: "mmx mmxext sse movnti sse2 sse4_1 avx avx2 erms clflush",
        caches: &[
            (L1d, 32 * KIB, 8, 2),
            (L1i, 32 * KIB, 8, 2),
            (L2, 256 * KIB, 8, 2),
            (L3, 6 * MIB, 12, 8),
        ],
        line_bytes: 64,
        source: CpuidLeaf4,
        last_level_bytes_per_cpu: 768 * KIB,
        doubts: &[],
    },
    Expected {
        dump: &dumps::HASWELL_L4,
        brand: "Intel(R) Core(TM) i7-4750HQ CPU @ 2.00GHz",
        family_model_stepping: (6, 70, 1),
        features: "mmx mmxext sse movnti sse2 sse4_1 avx avx2 erms clflush",
        caches: &[
            (L1d, 32 * KIB, 8, 2),
            (L1i, 32 * KIB, 8, 2),
            (L2, 256 * KIB, 8, 2),
            (L3, 6 * MIB, 12, 8),
            (L4, 128 * MIB, 16, 8),
        ],
        line_bytes: 64,
        source: CpuidLeaf4,
        last_level_bytes_per_cpu: 16 * MIB,
        doubts: &[],
    },
    Expected {
        dump: &dumps::ZEN_2,
        brand: "AMD Ryzen 5 3600 6-Core Processor",
        family_model_stepping: (23, 113, 0),
        features: "mmx mmxext sse movnti sse2 sse4_1 avx avx2 clzero clflush clflushopt clwb",
        caches: &[
            (L1d, 32 * KIB, 8, 2),
            (L1i, 32 * KIB, 8, 2),
            (L2, 512 * KIB, 8, 2),
            (L3, 16 * MIB, 16, 6),
        ],
        line_bytes: 64,
        source: CpuidAmdTopology,
        last_level_bytes_per_cpu: 16 * MIB / 6,
        doubts: &[],
    },
    Expected {
        dump: &dumps::ZEN_4_GUEST,
        brand: "AMD EPYC",
        family_model_stepping: (25, 17, 1),
        features: "mmx mmxext sse movnti sse2 sse4_1 avx avx2 avx512f avx512bw avx512vl clzero \
                   erms fsrm clflush clflushopt clwb",
        caches: &[
            (L1d, 32 * KIB, 8, 1),
            (L1i, 32 * KIB, 8, 1),
            (L2, MIB, 8, 1),
            (L3, 32 * MIB, 16, 2),
        ],
        line_bytes: 64,
        source: CpuidAmdTopology,
        last_level_bytes_per_cpu: 16 * MIB,
        doubts: &[Doubt::Hypervisor { level: L3 }],
    },
    Expected {
        dump: &dumps::SKYLAKE_SP,
        brand: "Intel(R) Xeon(R) Gold 6154 CPU @ 3.00GHz",
        family_model_stepping: (6, 85, 4),
        features: "mmx mmxext sse movnti sse2 sse4_1 avx avx2 avx512f avx512bw avx512vl erms \
                   clflush clflushopt clwb",
        caches: &[
            (L1d, 32 * KIB, 8, 2),
            (L1i, 32 * KIB, 8, 2),
            (L2, MIB, 16, 2),
            (L3, 25344 * KIB, 11, 36),
        ],
        line_bytes: 64,
        source: CpuidLeaf4,
        last_level_bytes_per_cpu: 704 * KIB,
        doubts: &[],
    },
    Expected {
        dump: &dumps::SAPPHIRE_RAPIDS,
        brand: "Intel(R) Xeon(R) w7-2475X",
        family_model_stepping: (6, 143, 8),
        features: "mmx mmxext sse movnti sse2 sse4_1 avx avx2 avx512f avx512bw avx512vl movdiri \
                   movdir64b erms fsrm fzrm fsrs clflush clflushopt clwb",
        caches: &[
            (L1d, 48 * KIB, 12, 2),
            (L1i, 32 * KIB, 8, 2),
            (L2, 2 * MIB, 16, 2),
            (L3, 38400 * KIB, 15, 40),
        ],
        line_bytes: 64,
        source: CpuidLeaf4,
        last_level_bytes_per_cpu: 960 * KIB,
        doubts: &[],
    },
];

fn names(features: Features) -> String {
    features.iter().map(Features::name).collect::<Vec<_>>().join(" ")
}

fn doubts(geometry: &Geometry) -> Vec<Doubt> {
    geometry.doubts().collect()
}

#[test]
fn recorded_cpus() {
    for expected in RECORDED {
        let reader = expected.dump.replay();
        let source = expected.dump.source;
        let cpu = Cpu::detect(&reader);
        assert_eq!(cpu.brand(), expected.brand, "{source}");
        let identity = (cpu.family, cpu.model, cpu.stepping);
        assert_eq!(identity, expected.family_model_stepping, "{source}");
        assert_eq!(names(cpu.has), expected.features, "{source}");
        assert_eq!(cpu.usable, cpu.has, "{source}");
        assert_eq!(cpu.missing(cpu.has), None, "{source}");

        let geometry = Geometry::detect(&reader);
        let caches: Vec<Cache> = expected
            .caches
            .iter()
            .map(|&(level, size_bytes, ways, shared_by)| Cache {
                level: level.number(),
                kind: level.kind(),
                size_bytes,
                line_bytes: expected.line_bytes,
                ways,
                shared_by,
                source: expected.source,
            })
            .collect();
        assert_eq!(geometry.caches().copied().collect::<Vec<_>>(), caches, "{source}");
        assert_eq!(doubts(&geometry), expected.doubts, "{source}");

        let fact = |value| Fact { value, source: expected.source };
        let size = |level| geometry.cache(level).unwrap().size_bytes;
        assert_eq!(geometry.line_min(), fact(expected.line_bytes), "{source}");
        assert_eq!(geometry.line_max(), fact(expected.line_bytes), "{source}");
        assert_eq!(geometry.l1d_bytes(), fact(size(L1d)), "{source}");
        assert_eq!(geometry.l2_bytes(), fact(size(L2)), "{source}");
        let last_level = fact(expected.last_level_bytes_per_cpu);
        assert_eq!(geometry.last_level_bytes_per_cpu(), last_level, "{source}");
    }
}

#[test]
fn answers_beyond_the_maximum_leaf_are_not_read() {
    for expected in RECORDED {
        let mut reader = expected.dump.replay();
        let before = (Cpu::detect(&reader), Geometry::detect(&reader));
        reader.beyond = Beyond::Ones;
        let after = (Cpu::detect(&reader), Geometry::detect(&reader));
        assert_eq!(after, before, "{}", expected.dump.source);
    }
}

#[test]
fn a_pentium_ii_has_neither_non_temporal_store() {
    let cpu = Cpu::detect(&dumps::PENTIUM_II.replay());
    assert_eq!(cpu.vendor(), "GenuineIntel");
    let missing = cpu.missing(Features::MMXEXT).unwrap();
    assert_eq!(missing.to_string(), "needs mmxext, which this CPU lacks");
    let missing = cpu.missing(Features::MMX.union(Features::SSE).union(Features::SSE2)).unwrap();
    assert_eq!(missing.to_string(), "needs sse and sse2, which this CPU lacks");
}

#[test]
fn a_k7_has_movntq_without_sse() {
    let cpu = Cpu::detect(&dumps::ATHLON_K7.replay());
    assert_eq!(cpu.vendor(), "AuthenticAMD");
    assert_eq!(cpu.missing(Features::MMX.union(Features::MMXEXT)), None);
    let missing = cpu.missing(Features::MOVNTI).unwrap();
    assert_eq!(missing.to_string(), "needs movnti, which this CPU lacks");
}

#[test]
fn avx_needs_its_state_in_xcr0() {
    const NOT_ENABLED: &str = "which this CPU has but the operating system has not enabled";
    let no_osxsave: fn(&mut Registers) = |answer| answer.ecx &= !(1 << 27);
    let xmm_only = dumps::HASWELL.replay().with_xcr0(0b011);
    let ymm_only = dumps::HASWELL.replay().with_xcr0(0b101);
    // Its XCR0 would allow it, but must not be read: the replay panics.
    let silent = dumps::HASWELL.replay().patch(1, 0, no_osxsave);
    for reader in [xmm_only, ymm_only, silent] {
        let cpu = Cpu::detect(&reader);
        assert!(cpu.has.contains(Features::AVX2));
        assert_eq!(names(cpu.usable), "mmx mmxext sse movnti sse2 sse4_1 erms clflush");
        let missing = cpu.missing(Features::SSE.union(Features::AVX)).unwrap();
        assert_eq!(missing.to_string(), std::format!("needs avx, {NOT_ENABLED}"));
        let missing = cpu.missing(Features::AVX512F.union(Features::AVX)).unwrap();
        let both = std::format!("needs avx512f, which this CPU lacks, and avx, {NOT_ENABLED}");
        assert_eq!(missing.to_string(), both);
    }

    const AVX512: Features = Features::AVX512F.union(Features::AVX512BW).union(Features::AVX512VL);
    for without in [1, 2, 5, 6, 7] {
        let xcr0 = dumps::SKYLAKE_SP.xcr0 & !(1 << without);
        let cpu = Cpu::detect(&dumps::SKYLAKE_SP.replay().with_xcr0(xcr0));
        assert!(cpu.has.contains(AVX512) && !cpu.usable.intersects(AVX512), "bit {without}");
        assert_eq!(cpu.usable.contains(Features::AVX2), without > 2, "bit {without}");
        let missing = cpu.missing(Features::AVX512F).unwrap();
        assert_eq!(missing.to_string(), std::format!("needs avx512f, {NOT_ENABLED}"));
    }
}

/// Seeds row M4: a kernel's clear_page runs before CR4.OSFXSR is set.
#[test]
fn before_the_os_saves_xmm_only_general_and_mmx_registers_are_usable() {
    let mut reader = dumps::SKYLAKE_SP.replay();
    reader.os_saves_xmm = false;
    let cpu = Cpu::detect(&reader);
    assert_eq!(names(cpu.usable), "mmx mmxext movnti erms clflush clflushopt clwb");
    assert_eq!(
        cpu.missing(Features::SSE).unwrap().to_string(),
        "needs sse, which this CPU has but the operating system has not enabled"
    );
}

#[test]
fn leaf_7_subleaves_beyond_its_own_maximum_are_not_read() {
    let reader = dumps::SAPPHIRE_RAPIDS.replay().patch(7, 0, |answer| answer.eax = 0);
    let has = Cpu::detect(&reader).has;
    assert!(has.contains(Features::FSRM) && !has.intersects(Features::FZRM));
}

#[test]
fn a_cache_of_an_impossible_size_is_replaced_by_a_default() {
    let geometry = Geometry::detect(&dumps::DURON_K7.replay());
    let value = 1 << 10;
    let claim =
        Doubt::Implausible { level: L2, field: Field::SizeBytes, value, source: CpuidAmdLegacy };
    assert_eq!(doubts(&geometry), [claim]);
    assert_eq!(
        claim.to_string(),
        "cpuid leaf 0x80000005/6 says size_bytes 1024 of the L2 cache, which cannot \
         be; set the thresholds from a measured profile instead"
    );
    assert_eq!(geometry.l1d_bytes(), Fact { value: 64 * KIB, source: CpuidAmdLegacy });
    assert_eq!(geometry.l2_bytes(), Fact { value: 256 * KIB, source: Default });
    assert_eq!(geometry.last_level_bytes_per_cpu().source, Default);
}

/// Case 15: zero sizes must not become a threshold of zero.
#[test]
fn a_hypervisor_that_hides_the_caches() {
    let reader = dumps::HYPERVISOR_ZEROS.replay();
    assert!(Cpu::detect(&reader).hypervisor);
    let geometry = Geometry::detect(&reader);
    let reported = |level| Doubt::NotReported { level };
    assert_eq!(doubts(&geometry), [L1d, L1i, L2, L3].map(reported));
    assert_eq!(geometry.l1d_bytes(), Fact { value: 32 * KIB, source: Default });
    assert_eq!(geometry.l2_bytes(), Fact { value: 256 * KIB, source: Default });
    assert_eq!(geometry.last_level_bytes_per_cpu(), Fact { value: MIB, source: Default });
    assert_eq!(geometry.line_min(), Fact { value: 64, source: CpuidClflush });
}

#[test]
fn a_hypervisor_that_lists_caches_of_no_size() {
    let geometry = Geometry::detect(&dumps::HYPERVISOR_EMPTY_CACHES.replay());
    let implausible =
        |level| Doubt::Implausible { level, field: Field::SizeBytes, value: 1, source: CpuidLeaf4 };
    // Leaf 1's CLFLUSH size is zero too, so nothing tells of a line.
    assert_eq!(geometry.line_max(), Fact { value: 64, source: Default });
    assert_eq!(doubts(&geometry), [L1d, L1i, L2, L3].map(implausible));
    assert!(geometry.caches().all(|cache| cache.source == Default && cache.size_bytes > 0));
}

#[test]
fn a_guest_without_topoext_falls_back_to_the_legacy_leaves() {
    let hidden: fn(&mut Registers) = |answer| answer.ecx &= !(1 << 22);
    let geometry = Geometry::detect(&dumps::ZEN_4_GUEST.replay().patch(0x8000_0001, 0, hidden));
    let l2 = geometry.cache(L2).unwrap();
    assert_eq!((l2.size_bytes, l2.ways, l2.source), (MIB, 8, CpuidAmdLegacy));
    let l3 = geometry.cache(L3).unwrap();
    let claim = (l3.size_bytes, l3.ways, l3.shared_by);
    assert_eq!(claim, (320 * MIB, 0, 2), "640 units of 512 KiB, no associativity, two cores");
    assert_eq!(doubts(&geometry), [Doubt::Hypervisor { level: L3 }]);
}

#[test]
fn an_emulator_that_fills_leaf_4_on_amd_is_not_asked_there() {
    let reader = dumps::ZEN_4_GUEST.replay();
    let expected = Geometry::detect(&reader);
    let intel = Registers { eax: 0x1c00_4121, ebx: 0x02c0_003f, ecx: 0x3f, edx: 0 };
    assert_eq!(Geometry::detect(&reader.add(4, 0, intel)), expected);
}

#[test]
fn leaf_1f_counts_cpus_before_leaf_0b() {
    let fewer: fn(&mut Registers) = |answer| answer.ebx = 20;
    let reader = dumps::SAPPHIRE_RAPIDS.replay().patch(0xb, 1, fewer);
    assert_eq!(Geometry::detect(&reader).cache(L3).unwrap().shared_by, 40);
    let reader = reader.patch(0x1f, 0, |answer| answer.ebx = 0);
    assert_eq!(Geometry::detect(&reader).cache(L3).unwrap().shared_by, 20);
    // Without either, the reserved ids are all that is known.
    let reader = reader.patch(0xb, 0, |answer| answer.ebx = 0);
    assert_eq!(Geometry::detect(&reader).cache(L3).unwrap().shared_by, 128);
}

#[test]
fn the_threads_of_a_pentium_4_share_its_caches() {
    let two: fn(&mut Registers) = |answer| answer.ebx = answer.ebx & !0xff_0000 | 2 << 16;
    let geometry = Geometry::detect(&dumps::PENTIUM_4.replay().patch(1, 0, two));
    assert!(geometry.caches().all(|cache| cache.shared_by == 2));
    assert_eq!(geometry.last_level_bytes_per_cpu().value, 256 * KIB);
}

#[test]
fn a_register_of_leaf_2_marked_invalid_is_not_read() {
    let invalid: fn(&mut Registers) = |answer| answer.edx |= 1 << 31;
    let geometry = Geometry::detect(&dumps::PENTIUM_II.replay().patch(2, 0, invalid));
    assert!(geometry.caches().all(|cache| cache.source == Default));
}

/// The first Celeron had no second level: descriptor 40h.
#[test]
fn without_a_second_level_the_first_one_counts() {
    let none: fn(&mut Registers) = |answer| answer.edx = answer.edx & !0xff | 0x40;
    let geometry = Geometry::detect(&dumps::PENTIUM_II.replay().patch(2, 0, none));
    let first = Fact { value: 16 * KIB, source: CpuidLeaf2 };
    assert_eq!(geometry.cache(L2), None);
    assert_eq!(geometry.l2_bytes(), first);
    assert_eq!(geometry.last_level_bytes_per_cpu(), first);
    assert_eq!(doubts(&geometry), []);
}

#[test]
fn a_cpu_without_cpuid_leaves_gets_defaults() {
    struct Nothing;
    impl Reader for Nothing {
        fn cpuid(&self, _leaf: u32, _subleaf: u32) -> Registers {
            Registers::default()
        }
        fn xcr0(&self) -> u64 {
            panic!("there is no XCR0")
        }
    }
    let cpu = Cpu::detect(&Nothing);
    assert_eq!((cpu.vendor(), cpu.brand(), cpu.has), ("", "", Features::empty()));
    let geometry = Geometry::detect(&Nothing);
    assert_eq!(geometry.line_min(), Fact { value: 64, source: Default });
    assert_eq!(doubts(&geometry).len(), 4);
}

/// Registers of every leaf drawn at random: nothing may panic, nothing implausible may come out.
#[test]
fn forged_answers_stay_within_limits() {
    struct Forger(u64);
    impl Reader for Forger {
        fn cpuid(&self, leaf: u32, subleaf: u32) -> Registers {
            let draw = |register: u64| {
                let mut x = self.0 ^ u64::from(leaf) << 32 ^ u64::from(subleaf) << 8 ^ register;
                for _ in 0..3 {
                    x = (x ^ x >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                }
                (x >> 32) as u32
            };
            let [mut eax, mut ebx, mut ecx, mut edx] = [0, 1, 2, 3].map(draw);
            match leaf {
                0 => {
                    eax = 0x20;
                    if self.0 % 2 == 0 {
                        [ebx, edx, ecx] = [0x6874_7541, 0x6974_6e65, 0x444d_4163];
                    }
                }
                0x8000_0000 => eax = 0x8000_0021,
                // A known level, and a line and number of sets that can be, more often than not.
                4 | 0x8000_001d => {
                    eax = eax & !0xff | [0x21, 0x22, 0x43, 0x63][subleaf as usize & 3];
                    if eax & 1 << 14 != 0 {
                        ebx = ebx & 0x0fc0_0000 | 63;
                        ecx &= 0x1fff;
                    }
                }
                _ => {}
            }
            Registers { eax, ebx, ecx, edx }
        }
        fn xcr0(&self) -> u64 {
            self.0
        }
    }
    let mut sources = Vec::new();
    let mut refused = 0;
    for seed in 0..20_000 {
        let reader = Forger(seed);
        let cpu = Cpu::detect(&reader);
        assert!(cpu.has.contains(cpu.usable));
        let geometry = Geometry::detect(&reader);
        for cache in geometry.caches() {
            assert!((KIB..=2048 * MIB).contains(&cache.size_bytes), "seed {seed}: {cache:?}");
            assert!(cache.line_bytes.is_power_of_two() && cache.line_bytes >= 16);
            assert!(cache.shared_by >= 1);
            if !sources.contains(&cache.source) {
                sources.push(cache.source);
            }
        }
        assert!(geometry.last_level_bytes_per_cpu().value > 0);
        assert!(geometry.line_min().value <= geometry.line_max().value);
        refused += geometry.doubts().filter(|doubt| doubt.id() == "cache-implausible").count();
        for doubt in geometry.doubts() {
            assert!(doubt.to_string().contains("; "));
        }
    }
    assert!(refused > 0);
    // Not leaf 2: leaf 4 always answers here.
    for source in [CpuidLeaf4, CpuidAmdLegacy, CpuidAmdTopology, Default] {
        assert!(sources.contains(&source), "the forger never reaches {source}");
    }
}

#[test]
fn a_forged_brand_is_printable() {
    let reader: Replay = dumps::HASWELL.replay().patch(0x8000_0002, 0, |answer| {
        *answer = Registers { eax: 0x1b5b_8020, ..*answer };
    });
    let cpu = Cpu::detect(&reader);
    assert!(cpu.brand().starts_with("?[?l(R)"), "{}", cpu.brand());
}
