//! A call between sentinels: which registers it changes, and how it leaves the modes.
//!
//! A trampoline loads every register it can with sentinels, calls, and stores what it finds.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part of this")]

use crate::common::{Handle, Rng};
use std::arch::global_asm;
use std::mem::offset_of;

/// `call(context, dst, src or value, len)`.
pub type Called = unsafe extern "C" fn(*const Handle, *mut u8, *const u8, usize);

#[repr(C, align(64))]
#[derive(Clone)]
pub struct Probe {
    /// The 32 zmm registers (or 16 ymm, or 16 xmm, each in the low part of its 64 bytes).
    pub vectors: [[[u8; 64]; 32]; 2],
    pub masks: [[u64; 8]; 2],
    /// rbx, rbp, r12 to r15, rsp: before and after the call.
    general: [[u64; 7]; 2],
    flags: u64,
    mxcsr: [u32; 2],
    /// `fnstenv`'s 28 bytes: control, status and tag word at 0, 4 and 8.
    x87: [[u32; 8]; 2],
    /// 16, 32 or 64: how wide the sentinels are.
    vector_bytes: u64,
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

// rdi is kept on the stack over the call, as nothing else survives a wrong one. `\op` lines are
// written by the assembler's own loop.
global_asm!(
    ".pushsection .text.cachewise_test, \"ax\", @progbits",
    ".globl cachewise_test_probe",
    ".hidden cachewise_test_probe",
    ".type cachewise_test_probe, @function",
    "cachewise_test_probe:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "push rdi",
    "cld",
    "fninit",
    "fnstenv [rdi + {x87}]",
    "fldenv [rdi + {x87}]",
    "stmxcsr [rdi + {mxcsr}]",
    "mov rax, [rdi + {vector_bytes}]",
    "cmp rax, 64",
    "je 4f",
    "cmp rax, 32",
    "je 3f",
    ".altmacro",
    ".macro cachewise_test_each count, do:vararg",
    ".set cachewise_test_i, 0",
    ".rept \\count",
    "cachewise_test_one %cachewise_test_i, \\do",
    ".set cachewise_test_i, cachewise_test_i + 1",
    ".endr",
    ".endm",
    ".macro cachewise_test_one i, do, register, at",
    ".ifc \\do, load",
    "cachewise_test_load \\register, \\i, \\at",
    ".else",
    "cachewise_test_store \\register, \\i, \\at",
    ".endif",
    ".endm",
    ".macro cachewise_test_load register, i, at",
    ".ifc \\register, xmm",
    "movups xmm\\i, [rdi + \\at + 64 * \\i]",
    ".endif",
    ".ifc \\register, ymm",
    "vmovups ymm\\i, [rdi + \\at + 64 * \\i]",
    ".endif",
    ".ifc \\register, zmm",
    "vmovups zmm\\i, [rdi + \\at + 64 * \\i]",
    ".endif",
    ".ifc \\register, k",
    "kmovw k\\i, [rdi + \\at + 8 * \\i]",
    ".endif",
    ".endm",
    ".macro cachewise_test_store register, i, at",
    ".ifc \\register, xmm",
    "movups [rdi + \\at + 64 * \\i], xmm\\i",
    ".endif",
    ".ifc \\register, ymm",
    "vmovups [rdi + \\at + 64 * \\i], ymm\\i",
    ".endif",
    ".ifc \\register, zmm",
    "vmovups [rdi + \\at + 64 * \\i], zmm\\i",
    ".endif",
    ".ifc \\register, k",
    "kmovw [rdi + \\at + 8 * \\i], k\\i",
    ".endif",
    ".endm",
    "cachewise_test_each 16, load, xmm, {vectors}",
    "jmp 5f",
    "3: cachewise_test_each 16, load, ymm, {vectors}",
    "jmp 5f",
    "4: cachewise_test_each 32, load, zmm, {vectors}",
    "cachewise_test_each 8, load, k, {masks}",
    "5:",
    "mov rbx, [rdi + {general}]",
    "mov rbp, [rdi + {general} + 8]",
    "mov r12, [rdi + {general} + 16]",
    "mov r13, [rdi + {general} + 24]",
    "mov r14, [rdi + {general} + 32]",
    "mov r15, [rdi + {general} + 40]",
    "mov [rdi + {general} + 48], rsp",
    "mov rax, [rdi + {called}]",
    "mov rsi, [rdi + {dst}]",
    "mov rdx, [rdi + {src}]",
    "mov rcx, [rdi + {len}]",
    "mov rdi, [rdi + {context}]",
    "call rax",
    "mov rdi, [rsp]",
    "mov [rdi + {general} + 56], rbx",
    "mov [rdi + {general} + 56 + 8], rbp",
    "mov [rdi + {general} + 56 + 16], r12",
    "mov [rdi + {general} + 56 + 24], r13",
    "mov [rdi + {general} + 56 + 32], r14",
    "mov [rdi + {general} + 56 + 40], r15",
    "mov [rdi + {general} + 56 + 48], rsp",
    "pushfq",
    "pop [rdi + {flags}]",
    "cld",
    "stmxcsr [rdi + {mxcsr} + 4]",
    "fnstenv [rdi + {x87} + 32]",
    "fninit",
    "mov rax, [rdi + {vector_bytes}]",
    "cmp rax, 64",
    "je 4f",
    "cmp rax, 32",
    "je 3f",
    "cachewise_test_each 16, store, xmm, {vectors} + 2048",
    "jmp 5f",
    "3: cachewise_test_each 16, store, ymm, {vectors} + 2048",
    "vzeroupper",
    "jmp 5f",
    "4: cachewise_test_each 32, store, zmm, {vectors} + 2048",
    "cachewise_test_each 8, store, k, {masks} + 64",
    "vzeroupper",
    "5:",
    ".purgem cachewise_test_each",
    ".purgem cachewise_test_one",
    ".purgem cachewise_test_load",
    ".purgem cachewise_test_store",
    ".noaltmacro",
    "add rsp, 8",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    ".size cachewise_test_probe, . - cachewise_test_probe",
    ".popsection",
    vectors = const offset_of!(Probe, vectors),
    masks = const offset_of!(Probe, masks),
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
    if std::arch::is_x86_feature_detected!("avx512f") {
        64
    } else if std::arch::is_x86_feature_detected!("avx") {
        32
    } else {
        16
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
            vectors: [[[0; 64]; 32]; 2],
            masks: [[0; 8]; 2],
            general: [[0; 7]; 2],
            flags: 0,
            mxcsr: [0; 2],
            x87: [[0; 8]; 2],
            vector_bytes: vector_bytes(),
            called,
            context: handle,
            dst,
            src,
            len,
        });
        let width = vector_bytes() as usize;
        let registers = if width == 64 { 32 } else { 16 };
        for register in &mut probe.vectors[0][..registers] {
            rng.fill(&mut register[..width]);
        }
        if width == 64 {
            // `kmovw` moves 16 bits.
            probe.masks[0].fill_with(|| rng.next() & 0xffff);
        }
        probe.general[0].fill_with(|| rng.next());
        probe
    }

    pub fn run(&mut self) {
        // SAFETY: the probe's call is one its maker has promised to be sound, and the trampoline
        // keeps the calling convention.
        unsafe { probe(self) }
    }

    /// Everything that no call may change.
    pub fn check_convention(&self, subject: &str) {
        const DIRECTION: u64 = 1 << 10;
        assert_eq!(self.general[0], self.general[1], "{subject}: callee-saved registers");
        assert_eq!(self.flags & DIRECTION, 0, "{subject}: direction flag");
        // Status bits (the low six) may be set by arithmetic, and there is none.
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
        assert_eq!(self.masks[0], self.masks[1], "{subject}: mask registers");
    }
}
