//! Caches from CPUID, which has four ways to tell.
//!
//! Leaf 4 and AMD's 8000_001Dh list caches in the same layout. Older CPUs have Intel's descriptor
//! bytes (leaf 2) or AMD's 8000_0005h and 8000_0006h. The first that tells anything is believed as
//! a whole; two of them are never mixed, for hypervisors that forge one forget the others. The
//! vendor decides only which to ask first: on AMD, leaf 4 is reserved, and emulators that fill it
//! anyway fill it with an Intel CPU's caches.

use super::{Leaves, leaf2};
use crate::cpu::geometry::{Claims, Unchecked};
use crate::cpu::{Level, Reader, Source};

pub(in crate::cpu) fn claims(reader: &dyn Reader) -> Claims {
    let leaves = Leaves::new(reader);
    let mut claims = Claims::default();
    let amd_first = matches!(&leaves.vendor(), b"AuthenticAMD" | b"HygonGenuine");
    let _ = if amd_first {
        amd_topology(&leaves, &mut claims)
            || amd_legacy(&leaves, &mut claims)
            || leaf_4(&leaves, &mut claims)
            || leaf_2(&leaves, &mut claims)
    } else {
        leaf_4(&leaves, &mut claims)
            || leaf_2(&leaves, &mut claims)
            || amd_topology(&leaves, &mut claims)
            || amd_legacy(&leaves, &mut claims)
    };
    claims.hypervisor = leaves.hypervisor();
    let signature = leaves.read(1, 0);
    const CLFSH: u32 = 1 << 19;
    if signature.edx & CLFSH != 0 {
        claims.fallback_line((signature.ebx >> 8 & 0xff) * 8, Source::CpuidClflush);
    }
    claims
}

/// Whether the leaf told of any cache, believable or not.
fn leaf_4(leaves: &Leaves<'_>, claims: &mut Claims) -> bool {
    listed(leaves, 4, claims, |ids| cpus_sharing(leaves, ids), Source::CpuidLeaf4)
}

fn amd_topology(leaves: &Leaves<'_>, claims: &mut Claims) -> bool {
    const TOPOEXT: u32 = 1 << 22;
    leaves.read(0x8000_0001, 0).ecx & TOPOEXT != 0
        && listed(leaves, 0x8000_001d, claims, |cpus| cpus, Source::CpuidAmdTopology)
}

fn listed(
    leaves: &Leaves<'_>,
    leaf: u32,
    claims: &mut Claims,
    shared_by: impl Fn(u32) -> u32,
    source: Source,
) -> bool {
    // More caches than any CPU has: a forged list may never end.
    const CACHES_MAX: u32 = 16;
    let mut told = false;
    for index in 0..CACHES_MAX {
        let answer = leaves.read(leaf, index);
        let level = match (answer.eax & 0x1f, answer.eax >> 5 & 7) {
            (0, _) => break,
            (1 | 3, 1) => Level::L1d,
            (2, 1) => Level::L1i,
            (1 | 3, 2) => Level::L2,
            (1 | 3, 3) => Level::L3,
            (1 | 3, 4) => Level::L4,
            _ => continue,
        };
        told = true;
        let line_bytes = (answer.ebx & 0xfff) + 1;
        let partitions = (answer.ebx >> 12 & 0x3ff) + 1;
        let ways = (answer.ebx >> 22) + 1;
        let sets = u64::from(answer.ecx) + 1;
        let size_bytes =
            (u64::from(line_bytes) * u64::from(partitions) * u64::from(ways)).saturating_mul(sets);
        claims.tell(Unchecked {
            level,
            size_bytes,
            line_bytes: u64::from(line_bytes),
            ways,
            shared_by: shared_by((answer.eax >> 14 & 0xfff) + 1),
            source,
        });
    }
    told
}

/// The CPUs among `ids` consecutive APIC ids, which is all that leaf 4 counts: a CPU with 18 cores
/// reserves 32 ids for them. Leaf 1Fh or 0Bh says how many are there at the level with as many id
/// bits.
fn cpus_sharing(leaves: &Leaves<'_>, ids: u32) -> u32 {
    let leaf = if leaves.read(0x1f, 0).ebx & 0xffff != 0 { 0x1f } else { 0xb };
    let id_bits = ids.next_power_of_two().trailing_zeros();
    const LEVELS_MAX: u32 = 8;
    (0..LEVELS_MAX)
        .map(|index| leaves.read(leaf, index))
        .take_while(|level| level.ebx & 0xffff != 0)
        .filter(|level| level.eax & 0x1f == id_bits)
        .map(|level| level.ebx & 0xffff)
        .find(|&cpus| cpus <= ids)
        .unwrap_or(ids)
}

fn leaf_2(leaves: &Leaves<'_>, claims: &mut Claims) -> bool {
    let answer = leaves.read(2, 0);
    // AL is how often to ask; every CPU that was built says once.
    let first = answer.eax & !0xff;
    let mut told = false;
    for register in [first, answer.ebx, answer.ecx, answer.edx] {
        const INVALID: u32 = 1 << 31;
        if register & INVALID != 0 {
            continue;
        }
        for descriptor in register.to_le_bytes() {
            let Some(&(_, level, size_kib, ways, line_bytes)) = leaf2::cache(descriptor) else {
                continue;
            };
            told = true;
            claims.tell(Unchecked {
                level,
                size_bytes: u64::from(size_kib) << 10,
                line_bytes: u64::from(line_bytes),
                ways,
                shared_by: cpus_in_package(leaves),
                source: Source::CpuidLeaf2,
            });
        }
    }
    told
}

/// What leaf 1 says, for CPUs that have nothing better: the two threads of a Pentium 4 share all
/// of its caches.
fn cpus_in_package(leaves: &Leaves<'_>) -> u32 {
    const HTT: u32 = 1 << 28;
    let answer = leaves.read(1, 0);
    if answer.edx & HTT != 0 { (answer.ebx >> 16 & 0xff).max(1) } else { 1 }
}

fn amd_legacy(leaves: &Leaves<'_>, claims: &mut Claims) -> bool {
    let l1 = leaves.read(0x8000_0005, 0);
    let upper = leaves.read(0x8000_0006, 0);
    let mut told = false;
    let mut tell = |level, size_bytes: u64, ways, shared_by, register: u32| {
        told = true;
        claims.tell(Unchecked {
            level,
            size_bytes,
            line_bytes: u64::from(register & 0xff),
            ways,
            shared_by,
            source: Source::CpuidAmdLegacy,
        });
    };
    for (level, register) in [(Level::L1d, l1.ecx), (Level::L1i, l1.edx)] {
        if register != 0 {
            let size_bytes = (register >> 24) << 10;
            let ways = match register >> 16 & 0xff {
                FULL_L1 => size_bytes / (register & 0xff).max(1),
                ways => ways,
            };
            tell(level, u64::from(size_bytes), ways, 1, register);
        }
    }
    let l2_ways = upper.ecx >> 12 & 0xf;
    if l2_ways != DISABLED {
        let size_bytes = u64::from(upper.ecx >> 16) << 10;
        tell(Level::L2, size_bytes, ways_of_code(l2_ways), 1, upper.ecx);
    }
    let l3_ways = upper.edx >> 12 & 0xf;
    if l3_ways != DISABLED {
        let size_bytes = u64::from(upper.edx >> 18) * (512 << 10);
        let cores = (leaves.read(0x8000_0008, 0).ecx & 0xff) + 1;
        tell(Level::L3, size_bytes, ways_of_code(l3_ways), cores, upper.edx);
    }
    told
}

const FULL_L1: u32 = 0xff;
const DISABLED: u32 = 0;

/// AMD's four-bit associativity. Zero stands for "not told": 9 refers to 8000_001Dh, and a fully
/// associative L2 or L3 was never built.
fn ways_of_code(code: u32) -> u32 {
    match code {
        1..=4 => code,
        5 => 6,
        6 => 8,
        8 => 16,
        0xa => 32,
        0xb => 48,
        0xc => 64,
        0xd => 96,
        0xe => 128,
        _ => 0,
    }
}
