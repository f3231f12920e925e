//! Identity and features from CPUID.
//!
//! One table says where each feature's bit is and which register state it needs; everything else is
//! reading it. i686 and x86-64 are told apart nowhere: the leaves are the same.

mod caches;
mod leaf2;

pub(super) use caches::claims;

use super::{Cpu, Features, Reader, Registers, Text};

/// The reader with its maximum leaves, which are checked on every read: beyond them an Intel CPU
/// answers with the data of its last basic leaf, and a leaf that is not there must read as zero.
struct Leaves<'a> {
    reader: &'a dyn Reader,
    basic_max: u32,
    extended_max: u32,
}

impl<'a> Leaves<'a> {
    fn new(reader: &'a dyn Reader) -> Self {
        let basic_max = reader.cpuid(0, 0).eax;
        // Without extended leaves this answer is rubbish too; only a real one names its own range.
        let claimed = reader.cpuid(0x8000_0000, 0).eax;
        let extended_max = if claimed >> 16 == 0x8000 { claimed } else { 0 };
        Self { reader, basic_max, extended_max }
    }

    fn read(&self, leaf: u32, subleaf: u32) -> Registers {
        let max = if leaf >= 0x8000_0000 { self.extended_max } else { self.basic_max };
        let exists = leaf <= max && (leaf != 7 || subleaf <= self.reader.cpuid(7, 0).eax);
        if exists { self.reader.cpuid(leaf, subleaf) } else { Registers::default() }
    }

    fn vendor(&self) -> [u8; 12] {
        let Registers { ebx, ecx, edx, .. } = self.reader.cpuid(0, 0);
        text([ebx, edx, ecx])
    }

    fn hypervisor(&self) -> bool {
        self.read(1, 0).ecx & 1 << 31 != 0
    }
}

#[derive(Clone, Copy)]
enum Register {
    Eax,
    Ebx,
    Ecx,
    Edx,
}
use Register::{Eax, Ebx, Ecx, Edx};

/// The register state that the operating system must save for a feature to be usable.
#[derive(Clone, Copy)]
enum State {
    /// General and MMX registers, which every operating system saves.
    Always,
    Xmm,
    Ymm,
    Zmm,
}
use State::{Always, Xmm, Ymm, Zmm};

/// Feature, leaf, subleaf, register, bit, state. A feature with two rows is there if either says
/// so.
#[rustfmt::skip]
const TABLE: &[(Features, u32, u32, Register, u32, State)] = &[
    (Features::CLFLUSH,    1,           0, Edx, 19, Always),
    (Features::MMX,        1,           0, Edx, 23, Always),
    (Features::SSE,        1,           0, Edx, 25, Xmm),
    (Features::MMXEXT,     1,           0, Edx, 25, Always),
    (Features::MMXEXT,     0x8000_0001, 0, Edx, 22, Always),
    (Features::SSE2,       1,           0, Edx, 26, Xmm),
    (Features::MOVNTI,     1,           0, Edx, 26, Always),
    (Features::SSE4_1,     1,           0, Ecx, 19, Xmm),
    (Features::AVX,        1,           0, Ecx, 28, Ymm),
    (Features::AVX2,       7,           0, Ebx,  5, Ymm),
    (Features::ERMS,       7,           0, Ebx,  9, Always),
    (Features::AVX512F,    7,           0, Ebx, 16, Zmm),
    (Features::CLFLUSHOPT, 7,           0, Ebx, 23, Always),
    (Features::CLWB,       7,           0, Ebx, 24, Always),
    (Features::AVX512BW,   7,           0, Ebx, 30, Zmm),
    (Features::AVX512VL,   7,           0, Ebx, 31, Zmm),
    (Features::MOVDIRI,    7,           0, Ecx, 27, Always),
    (Features::MOVDIR64B,  7,           0, Ecx, 28, Always),
    (Features::FSRM,       7,           0, Edx,  4, Always),
    (Features::FZRM,       7,           1, Eax, 10, Always),
    (Features::FSRS,       7,           1, Eax, 11, Always),
    (Features::CLZERO,     0x8000_0008, 0, Ebx,  0, Always),
];

/// XCR0: SSE and AVX state.
const XCR0_YMM: u64 = 1 << 1 | 1 << 2;
/// XCR0: these and opmask, the upper halves of zmm0-15, and zmm16-31.
const XCR0_ZMM: u64 = XCR0_YMM | 1 << 5 | 1 << 6 | 1 << 7;

pub(super) fn detect(reader: &dyn Reader) -> Cpu {
    let leaves = Leaves::new(reader);
    let signature = leaves.read(1, 0);
    let osxsave = signature.ecx & 1 << 27 != 0;
    let xcr0 = if osxsave { reader.xcr0() } else { 0 };
    let saves_xmm = reader.os_saves_xmm();

    let mut has = Features::empty();
    let mut usable = Features::empty();
    for &(feature, leaf, subleaf, register, bit, state) in TABLE {
        let answer = leaves.read(leaf, subleaf);
        let word = match register {
            Eax => answer.eax,
            Ebx => answer.ebx,
            Ecx => answer.ecx,
            Edx => answer.edx,
        };
        if word & 1 << bit == 0 {
            continue;
        }
        has = has.union(feature);
        let enabled = match state {
            Always => true,
            Xmm => saves_xmm,
            Ymm => saves_xmm && xcr0 & XCR0_YMM == XCR0_YMM,
            Zmm => saves_xmm && xcr0 & XCR0_ZMM == XCR0_ZMM,
        };
        if enabled {
            usable = usable.union(feature);
        }
    }

    let (family, model, stepping) = identity(signature.eax);
    Cpu {
        has,
        usable,
        hypervisor: leaves.hypervisor(),
        family,
        model,
        stepping,
        vendor: Text::new(leaves.vendor()),
        brand: Text::new(brand(&leaves)),
    }
}

/// Family, model and stepping as Linux and the manuals print them: the extended family counts only
/// on top of a full one, the extended model for families 6 and 15.
fn identity(signature: u32) -> (u16, u16, u8) {
    let field = |shift: u32, mask: u32| (signature >> shift & mask) as u16;
    let base_family = field(8, 0xf);
    let family = if base_family == 0xf { base_family + field(20, 0xff) } else { base_family };
    let extended = matches!(base_family, 6 | 0xf);
    let model = field(4, 0xf) | if extended { field(16, 0xf) << 4 } else { 0 };
    (family, model, (signature & 0xf) as u8)
}

fn brand(leaves: &Leaves<'_>) -> [u8; 48] {
    let mut words = [0; 12];
    if leaves.extended_max >= 0x8000_0004 {
        for (leaf, four) in (0x8000_0002..).zip(words.chunks_exact_mut(4)) {
            let Registers { eax, ebx, ecx, edx } = leaves.read(leaf, 0);
            four.copy_from_slice(&[eax, ebx, ecx, edx]);
        }
    }
    text(words)
}

/// The bytes of `WORDS` little-endian words; `BYTES` is four times as many.
fn text<const WORDS: usize, const BYTES: usize>(words: [u32; WORDS]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (four, word) in bytes.chunks_exact_mut(4).zip(words) {
        four.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}
