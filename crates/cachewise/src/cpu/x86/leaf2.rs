//! Cache descriptors of CPUID leaf 2: one byte names a whole cache.
//!
//! The only description on Pentium II, III and early 4; later CPUs answer FFh, "ask leaf 4". From
//! Intel SDM volume 2A, table "Encoding of CPUID Leaf 2 Descriptors". Left out: TLBs and
//! prefetchers, and the trace caches 70h to 73h, whose size is in micro-operations, not bytes.
//! 49h is an L3 on one Xeon MP and an L2 on everything else; telling them apart needs the model
//! number, and that Xeon has leaf 4, so it is an L2 here. Bytes 40h and 00h name no cache.

use crate::cpu::Level::{self, L1d, L1i, L2, L3};

/// Descriptor, cache, size in KiB, ways, line in bytes.
type Row = (u8, Level, u32, u32, u32);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    (0x06, L1i,     8,  4, 32),
    (0x08, L1i,    16,  4, 32),
    (0x09, L1i,    32,  4, 64),
    (0x0a, L1d,     8,  2, 32),
    (0x0c, L1d,    16,  4, 32),
    (0x0d, L1d,    16,  4, 64),
    (0x0e, L1d,    24,  6, 64),
    (0x1d, L2,    128,  2, 64),
    (0x21, L2,    256,  8, 64),
    (0x22, L3,    512,  4, 64),
    (0x23, L3,   1024,  8, 64),
    (0x24, L2,   1024, 16, 64),
    (0x25, L3,   2048,  8, 64),
    (0x29, L3,   4096,  8, 64),
    (0x2c, L1d,    32,  8, 64),
    (0x30, L1i,    32,  8, 64),
    (0x41, L2,    128,  4, 32),
    (0x42, L2,    256,  4, 32),
    (0x43, L2,    512,  4, 32),
    (0x44, L2,   1024,  4, 32),
    (0x45, L2,   2048,  4, 32),
    (0x46, L3,   4096,  4, 64),
    (0x47, L3,   8192,  8, 64),
    (0x48, L2,   3072, 12, 64),
    (0x49, L2,   4096, 16, 64),
    (0x4a, L3,   6144, 12, 64),
    (0x4b, L3,   8192, 16, 64),
    (0x4c, L3,  12288, 12, 64),
    (0x4d, L3,  16384, 16, 64),
    (0x4e, L2,   6144, 24, 64),
    (0x60, L1d,    16,  8, 64),
    (0x66, L1d,     8,  4, 64),
    (0x67, L1d,    16,  4, 64),
    (0x68, L1d,    32,  4, 64),
    (0x78, L2,   1024,  4, 64),
    (0x79, L2,    128,  8, 64),
    (0x7a, L2,    256,  8, 64),
    (0x7b, L2,    512,  8, 64),
    (0x7c, L2,   1024,  8, 64),
    (0x7d, L2,   2048,  8, 64),
    (0x7f, L2,    512,  2, 64),
    (0x80, L2,    512,  8, 64),
    (0x82, L2,    256,  8, 32),
    (0x83, L2,    512,  8, 32),
    (0x84, L2,   1024,  8, 32),
    (0x85, L2,   2048,  8, 32),
    (0x86, L2,    512,  4, 64),
    (0x87, L2,   1024,  8, 64),
    (0xd0, L3,    512,  4, 64),
    (0xd1, L3,   1024,  4, 64),
    (0xd2, L3,   2048,  4, 64),
    (0xd6, L3,   1024,  8, 64),
    (0xd7, L3,   2048,  8, 64),
    (0xd8, L3,   4096,  8, 64),
    (0xdc, L3,   1536, 12, 64),
    (0xdd, L3,   3072, 12, 64),
    (0xde, L3,   6144, 12, 64),
    (0xe2, L3,   2048, 16, 64),
    (0xe3, L3,   4096, 16, 64),
    (0xe4, L3,   8192, 16, 64),
    (0xea, L3,  12288, 24, 64),
    (0xeb, L3,  18432, 24, 64),
    (0xec, L3,  24576, 24, 64),
];

pub(super) fn cache(descriptor: u8) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.0 == descriptor)
}
