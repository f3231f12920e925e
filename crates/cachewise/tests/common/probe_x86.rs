//! A call between sentinels, for 32 bits: the same face as `probe.rs`.
//!
//! Of AVX-512 nothing is compared: no 32-bit routine uses it.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part of this")]

use crate::common::{Handle, Rng};
use std::arch::global_asm;
use std::mem::offset_of;

/// `call(context, dst, src or value, len)`.
pub type Called = unsafe extern "C" fn(*const Handle, *mut u8, *const u8, usize);

#[repr(C, align(64))]
#[derive(Clone)]
pub struct Probe {
    /// The 8 ymm (or xmm) registers: before and after the call.
    pub vectors: [[[u8; 32]; 8]; 2],
    /// ebx, ebp, esi, edi, esp.
    general: [[u32; 5]; 2],
    flags: u32,
    mxcsr: [u32; 2],
    /// `fnstenv`'s 28 bytes: control, status and tag word at 0, 4 and 8.
    x87: [[u32; 8]; 2],
    /// 0 (no SSE), 16 or 32: how wide the sentinels are.
    vector_bytes: u32,
    called: Called,
    context: *const Handle,
    dst: *mut u8,
    src: *const u8,
    len: usize,
}

unsafe extern "C" {
    #[link_name = "cachewise_test_probe"]
    fn probe(probe: *mut Probe);
}

// The probe's address is kept on the stack over the call, as nothing else survives a wrong one. The
// stack is aligned to 16 bytes at the call, as the convention wants.
global_asm!(
    ".pushsection .text.cachewise_test, \"ax\", @progbits",
    ".globl cachewise_test_probe",
    ".hidden cachewise_test_probe",
    ".type cachewise_test_probe, @function",
    "cachewise_test_probe:",
    "push ebx",
    "push ebp",
    "push esi",
    "push edi",
    "mov edi, [esp + 20]",
    "push edi",
    "sub esp, 8",
    "cld",
    "fninit",
    "fnstenv [edi + {x87}]",
    "fldenv [edi + {x87}]",
    "cmp dword ptr [edi + {vector_bytes}], 16",
    "jb 5f",
    "stmxcsr [edi + {mxcsr}]",
    "ja 3f",
    ".irp i, 0, 1, 2, 3, 4, 5, 6, 7",
    "movups xmm\\i, [edi + {vectors} + 32 * \\i]",
    ".endr",
    "jmp 5f",
    "3:",
    ".irp i, 0, 1, 2, 3, 4, 5, 6, 7",
    "vmovups ymm\\i, [edi + {vectors} + 32 * \\i]",
    ".endr",
    "5:",
    "push dword ptr [edi + {len}]",
    "push dword ptr [edi + {src}]",
    "push dword ptr [edi + {dst}]",
    "push dword ptr [edi + {context}]",
    "mov eax, [edi + {called}]",
    "mov ebx, [edi + {general}]",
    "mov ebp, [edi + {general} + 4]",
    "mov esi, [edi + {general} + 8]",
    "mov [edi + {general} + 16], esp",
    "mov edi, [edi + {general} + 12]",
    "call eax",
    "mov ecx, [esp + 24]",
    "mov [ecx + {general} + 20], ebx",
    "mov [ecx + {general} + 20 + 4], ebp",
    "mov [ecx + {general} + 20 + 8], esi",
    "mov [ecx + {general} + 20 + 12], edi",
    "mov [ecx + {general} + 20 + 16], esp",
    "pushfd",
    "pop dword ptr [ecx + {flags}]",
    "cld",
    "fnstenv [ecx + {x87} + 32]",
    "fninit",
    "cmp dword ptr [ecx + {vector_bytes}], 16",
    "jb 5f",
    "stmxcsr [ecx + {mxcsr} + 4]",
    "ja 3f",
    ".irp i, 0, 1, 2, 3, 4, 5, 6, 7",
    "movups [ecx + {vectors} + 256 + 32 * \\i], xmm\\i",
    ".endr",
    "jmp 5f",
    "3:",
    ".irp i, 0, 1, 2, 3, 4, 5, 6, 7",
    "vmovups [ecx + {vectors} + 256 + 32 * \\i], ymm\\i",
    ".endr",
    "vzeroupper",
    "5:",
    "add esp, 28",
    "pop edi",
    "pop esi",
    "pop ebp",
    "pop ebx",
    "ret",
    ".size cachewise_test_probe, . - cachewise_test_probe",
    ".popsection",
    vectors = const offset_of!(Probe, vectors),
    general = const offset_of!(Probe, general),
    flags = const offset_of!(Probe, flags),
    mxcsr = const offset_of!(Probe, mxcsr),
    x87 = const offset_of!(Probe, x87),
    vector_bytes = const offset_of!(Probe, vector_bytes),
    called = const offset_of!(Probe, called),
    context = const offset_of!(Probe, context),
    dst = const offset_of!(Probe, dst),
    src = const offset_of!(Probe, src),
    len = const offset_of!(Probe, len),
);

pub fn vector_bytes() -> u64 {
    if std::arch::is_x86_feature_detected!("avx") {
        32
    } else if std::arch::is_x86_feature_detected!("sse") {
        16
    } else {
        0
    }
}

impl Probe {
    pub fn new(
        called: Called,
        handle: &Handle,
        dst: *mut u8,
        src: *const u8,
        len: usize,
    ) -> Box<Self> {
        let mut rng = Rng::new(21);
        let mut probe = Box::new(Self {
            vectors: [[[0; 32]; 8]; 2],
            general: [[0; 5]; 2],
            flags: 0,
            mxcsr: [0; 2],
            x87: [[0; 8]; 2],
            vector_bytes: vector_bytes() as u32,
            called,
            context: handle,
            dst,
            src,
            len,
        });
        let width = vector_bytes() as usize;
        for register in &mut probe.vectors[0] {
            rng.fill(&mut register[..width]);
        }
        probe.general[0].fill_with(|| rng.next() as u32);
        probe
    }

    pub fn run(&mut self) {
        // SAFETY: the probe's call is one its maker has promised to be sound, and the trampoline
        // keeps the calling convention.
        unsafe { probe(self) }
    }

    /// Everything that no call may change.
    pub fn check_convention(&self, subject: &str) {
        const DIRECTION: u32 = 1 << 10;
        assert_eq!(self.general[0], self.general[1], "{subject}: callee-saved registers");
        assert_eq!(self.flags & DIRECTION, 0, "{subject}: direction flag");
        assert_eq!(self.mxcsr[0], self.mxcsr[1], "{subject}: MXCSR");
        let word = |of: usize, at: usize| self.x87[of][at] & 0xffff;
        assert_eq!(word(1, 0), word(0, 0), "{subject}: x87 control word");
        assert_eq!(word(1, 1), 0, "{subject}: x87 status word (top of stack, exceptions)");
        assert_eq!(word(1, 2), 0xffff, "{subject}: x87 tag word, all empty");
    }

    pub fn check_vectors(&self, subject: &str) {
        for (i, (before, after)) in self.vectors[0].iter().zip(&self.vectors[1]).enumerate() {
            assert_eq!(before, after, "{subject}: vector register {i}");
        }
    }
}
