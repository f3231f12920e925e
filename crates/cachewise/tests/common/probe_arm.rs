//! A call between sentinels, for ARMv7: the same face as `probe.rs`. Of the vector registers d0 to
//! d15 are compared, which every CPU of this target has.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part of this")]

use crate::common::{Handle, Rng};
use std::arch::global_asm;
use std::mem::offset_of;

/// `call(context, dst, src or value, len)`.
pub type Called = unsafe extern "C" fn(*const Handle, *mut u8, *const u8, usize);

#[repr(C, align(64))]
#[derive(Clone)]
pub struct Probe {
    /// d0 to d15: before and after the call.
    pub vectors: [[[u8; 8]; 16]; 2],
    /// r4 to r11, sp.
    general: [[u32; 9]; 2],
    fpscr: [u32; 2],
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
    ".pushsection .text.cachewise_test, \"ax\", %progbits",
    ".arm",
    ".fpu vfpv3-d16",
    ".globl cachewise_test_probe",
    ".hidden cachewise_test_probe",
    ".type cachewise_test_probe, %function",
    ".p2align 2",
    "cachewise_test_probe:",
    "push {{r4-r11, lr}}",
    "vpush {{d8-d15}}",
    "sub sp, sp, 12",
    "str r0, [sp]",
    "vmrs r1, fpscr",
    "str r1, [r0, {fpscr}]",
    "add r1, r0, {vectors}",
    "vldmia r1, {{d0-d15}}",
    "add r1, r0, {general}",
    "str sp, [r1, 32]",
    "ldm r1, {{r4-r11}}",
    "ldr r12, [r0, {called}]",
    "ldr r1, [r0, {dst}]",
    "ldr r2, [r0, {src}]",
    "ldr r3, [r0, {len}]",
    "ldr r0, [r0, {context}]",
    "blx r12",
    "ldr r0, [sp]",
    "add r1, r0, {general} + 36",
    "stm r1, {{r4-r11}}",
    "str sp, [r1, 32]",
    "vmrs r2, fpscr",
    "str r2, [r0, {fpscr} + 4]",
    "add r1, r0, {vectors} + 128",
    "vstmia r1, {{d0-d15}}",
    "add sp, sp, 12",
    "vpop {{d8-d15}}",
    "pop {{r4-r11, pc}}",
    ".size cachewise_test_probe, . - cachewise_test_probe",
    ".popsection",
    vectors = const offset_of!(Probe, vectors),
    general = const offset_of!(Probe, general),
    fpscr = const offset_of!(Probe, fpscr),
    called = const offset_of!(Probe, called),
    context = const offset_of!(Probe, context),
    dst = const offset_of!(Probe, dst),
    src = const offset_of!(Probe, src),
    len = const offset_of!(Probe, len),
);

pub fn vector_bytes() -> u64 {
    8
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
            vectors: [[[0; 8]; 16]; 2],
            general: [[0; 9]; 2],
            fpscr: [0; 2],
            called,
            context: handle,
            dst,
            src,
            len,
        });
        probe.vectors[0].iter_mut().for_each(|register| rng.fill(register));
        probe.general[0].fill_with(|| rng.next() as u32);
        probe
    }

    pub fn run(&mut self) {
        // SAFETY: the probe's call is one its maker has promised to be sound, and the trampoline
        // keeps the calling convention.
        unsafe { probe(self) }
    }

    /// Everything that no call may change (AAPCS32, 6.1.2): of the FPSCR, all but its status.
    pub fn check_convention(&self, subject: &str) {
        const CONTROL: u32 = 0x07ff_9f00;
        assert_eq!(self.general[0], self.general[1], "{subject}: callee-saved registers");
        for i in 8..16 {
            assert_eq!(self.vectors[0][i], self.vectors[1][i], "{subject}: d{i}");
        }
        assert_eq!(self.fpscr[0] & CONTROL, self.fpscr[1] & CONTROL, "{subject}: FPSCR");
    }

    pub fn check_vectors(&self, subject: &str) {
        for (i, (before, after)) in self.vectors[0].iter().zip(&self.vectors[1]).enumerate() {
            assert_eq!(before, after, "{subject}: vector register {i}");
        }
    }
}
