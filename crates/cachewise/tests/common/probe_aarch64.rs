//! A call between sentinels, for AArch64: the same face as `probe.rs`.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part of this")]

use crate::common::{Handle, Rng};
use std::arch::global_asm;
use std::mem::offset_of;

/// `call(context, dst, src or value, len)`.
pub type Called = unsafe extern "C" fn(*const Handle, *mut u8, *const u8, usize);

#[repr(C, align(64))]
#[derive(Clone)]
pub struct Probe {
    /// The 32 vector registers: before and after the call.
    pub vectors: [[[u8; 16]; 32]; 2],
    /// x19 to x29, sp.
    general: [[u64; 12]; 2],
    fpcr: [u64; 2],
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

// The probe's address is kept on the stack over the call, as nothing else survives a wrong one.
global_asm!(
    ".pushsection .text.cachewise_test, \"ax\", @progbits",
    ".globl cachewise_test_probe",
    ".hidden cachewise_test_probe",
    ".type cachewise_test_probe, @function",
    ".p2align 2",
    "cachewise_test_probe:",
    "sub sp, sp, 176",
    "stp x19, x20, [sp]",
    "stp x21, x22, [sp, 16]",
    "stp x23, x24, [sp, 32]",
    "stp x25, x26, [sp, 48]",
    "stp x27, x28, [sp, 64]",
    "stp x29, x30, [sp, 80]",
    "stp d8, d9, [sp, 96]",
    "stp d10, d11, [sp, 112]",
    "stp d12, d13, [sp, 128]",
    "stp d14, d15, [sp, 144]",
    "str x0, [sp, 160]",
    "mrs x9, fpcr",
    "str x9, [x0, {fpcr}]",
    "add x10, x0, {vectors}",
    ".irp i, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30",
    "ldr q\\i, [x10]",
    "add x10, x10, 32",
    ".endr",
    "add x10, x0, {vectors} + 16",
    ".irp i, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31",
    "ldr q\\i, [x10]",
    "add x10, x10, 32",
    ".endr",
    "add x10, x0, {general}",
    "ldp x19, x20, [x10]",
    "ldp x21, x22, [x10, 16]",
    "ldp x23, x24, [x10, 32]",
    "ldp x25, x26, [x10, 48]",
    "ldp x27, x28, [x10, 64]",
    "ldr x29, [x10, 80]",
    "mov x9, sp",
    "str x9, [x10, 88]",
    "ldr x9, [x0, {called}]",
    "ldr x1, [x0, {dst}]",
    "ldr x2, [x0, {src}]",
    "ldr x3, [x0, {len}]",
    "ldr x0, [x0, {context}]",
    "blr x9",
    "ldr x0, [sp, 160]",
    "add x10, x0, {general} + 96",
    "stp x19, x20, [x10]",
    "stp x21, x22, [x10, 16]",
    "stp x23, x24, [x10, 32]",
    "stp x25, x26, [x10, 48]",
    "stp x27, x28, [x10, 64]",
    "str x29, [x10, 80]",
    "mov x9, sp",
    "str x9, [x10, 88]",
    "mrs x9, fpcr",
    "str x9, [x0, {fpcr} + 8]",
    "add x10, x0, {vectors} + 512",
    ".irp i, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30",
    "str q\\i, [x10]",
    "add x10, x10, 32",
    ".endr",
    "add x10, x0, {vectors} + 528",
    ".irp i, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31",
    "str q\\i, [x10]",
    "add x10, x10, 32",
    ".endr",
    "ldp x19, x20, [sp]",
    "ldp x21, x22, [sp, 16]",
    "ldp x23, x24, [sp, 32]",
    "ldp x25, x26, [sp, 48]",
    "ldp x27, x28, [sp, 64]",
    "ldp x29, x30, [sp, 80]",
    "ldp d8, d9, [sp, 96]",
    "ldp d10, d11, [sp, 112]",
    "ldp d12, d13, [sp, 128]",
    "ldp d14, d15, [sp, 144]",
    "add sp, sp, 176",
    "ret",
    ".size cachewise_test_probe, . - cachewise_test_probe",
    ".popsection",
    vectors = const offset_of!(Probe, vectors),
    general = const offset_of!(Probe, general),
    fpcr = const offset_of!(Probe, fpcr),
    called = const offset_of!(Probe, called),
    context = const offset_of!(Probe, context),
    dst = const offset_of!(Probe, dst),
    src = const offset_of!(Probe, src),
    len = const offset_of!(Probe, len),
);

pub fn vector_bytes() -> u64 {
    16
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
            vectors: [[[0; 16]; 32]; 2],
            general: [[0; 12]; 2],
            fpcr: [0; 2],
            called,
            context: handle,
            dst,
            src,
            len,
        });
        probe.vectors[0].iter_mut().for_each(|register| rng.fill(register));
        probe.general[0].fill_with(|| rng.next());
        probe
    }

    pub fn run(&mut self) {
        // SAFETY: the probe's call is one its maker has promised to be sound, and the trampoline
        // keeps the calling convention.
        unsafe { probe(self) }
    }

    /// Everything that no call may change: of v8 to v15 the lower halves (AAPCS64, 6.1.2).
    pub fn check_convention(&self, subject: &str) {
        assert_eq!(self.general[0], self.general[1], "{subject}: callee-saved registers");
        for i in 8..16 {
            let half = |of: usize| &self.vectors[of][i][..8];
            assert_eq!(half(0), half(1), "{subject}: lower half of v{i}");
        }
        assert_eq!(self.fpcr[0], self.fpcr[1], "{subject}: FPCR");
    }

    pub fn check_vectors(&self, subject: &str) {
        for (i, (before, after)) in self.vectors[0].iter().zip(&self.vectors[1]).enumerate() {
            assert_eq!(before, after, "{subject}: vector register {i}");
        }
    }
}
