//! What no run of a routine on one CPU can show: the state of the memory-copy instructions in the
//! form that this CPU does not use, and DC ZVA where it is prohibited. The code is entered with
//! made-up registers, as a fault handler would.

use super::super::Outcome;
use super::RETRY_BYTES;
use core::arch::asm;
use std::vec;
use std::vec::Vec;

const LEN: usize = 5000;

/// How a memory-copy instruction says where it is (Arm ARM, CPYFM).
#[derive(Clone, Copy, Debug)]
enum Form {
    /// Carry clear: the addresses of the end, and the bytes left as a negative number.
    OptionA,
    /// Carry set: the cursors, and the bytes left.
    OptionB,
}

impl Form {
    const BOTH: [Self; 2] = [Self::OptionA, Self::OptionB];

    /// PSTATE's N, Z, C and V, as MSR NZCV takes them.
    fn nzcv(self) -> u64 {
        match self {
            Self::OptionA => 0,
            Self::OptionB => 1 << 29,
        }
    }

    /// An address register, `done` bytes into a range.
    fn address(self, first: usize, done: usize) -> usize {
        match self {
            Self::OptionA => first + LEN,
            Self::OptionB => first + done,
        }
    }

    fn left(self, done: usize) -> usize {
        match self {
            Self::OptionA => (LEN - done).wrapping_neg(),
            Self::OptionB => LEN - done,
        }
    }
}

/// Goes on at `fixup` after a fault in the middle instruction, `done` bytes into the ranges; the
/// second range is given by the value of its register.
fn go_on(fixup: usize, form: Form, done: usize, dst: &mut [u8], second: usize) -> Outcome {
    let (left_bytes, stopped_by);
    // SAFETY: the fix-up does as a routine does, on what is left of the ranges, and returns.
    unsafe {
        asm!(
            "msr nzcv, {flags}",
            "blr {fixup}",
            flags = in(reg) form.nzcv(),
            fixup = in(reg) fixup,
            inout("x0") form.address(dst.as_mut_ptr().addr(), done) => left_bytes,
            inout("x1") second => stopped_by,
            in("x2") form.left(done),
            in("x9") 0,
            in("x10") 0,
            clobber_abi("C"),
        );
    }
    Outcome { left_bytes, stopped_by }
}

/// What is left after a retry that found nothing wrong.
fn retried(done: usize) -> (usize, Outcome) {
    let end = LEN.min(done + RETRY_BYTES);
    (end, Outcome { left_bytes: LEN - end, stopped_by: Outcome::NOTHING })
}

const PLACES: [usize; 6] = [0, 1, 63, 1000, LEN - RETRY_BYTES + 1, LEN - 1];

#[test]
fn a_copy_goes_on_where_either_form_of_its_registers_says() {
    let src: Vec<u8> = (0..LEN).map(|i| (i % 251) as u8).collect();
    for form in Form::BOTH {
        for done in PLACES {
            let mut dst = vec![0xee; LEN];
            let second = form.address(src.as_ptr().addr(), done);
            let fixup = routine!(copy "fault_copy_mops") as *const () as usize;
            let outcome = go_on(fixup, form, done, &mut dst, second);
            let (end, expected) = retried(done);
            assert_eq!(outcome, expected, "{form:?}, {done} done");
            assert_eq!(dst[done..end], src[done..end], "{form:?}, {done} done");
            assert!(dst[..done].iter().chain(&dst[end..]).all(|&byte| byte == 0xee), "{form:?}");
        }
    }
}

#[test]
fn a_clear_goes_on_where_either_form_of_its_registers_says() {
    for form in Form::BOTH {
        for done in PLACES {
            let mut dst = vec![0xee; LEN];
            let fixup = routine!(clear "fault_clear_mops") as *const () as usize;
            let outcome = go_on(fixup, form, done, &mut dst, 0x5a5a_5a5a_5a5a_5a5a);
            let (end, expected) = retried(done);
            assert_eq!(outcome, expected, "{form:?}, {done} done");
            assert!(dst[done..end].iter().all(|&byte| byte == 0x5a), "{form:?}, {done} done");
            assert!(dst[..done].iter().chain(&dst[end..]).all(|&byte| byte == 0xee), "{form:?}");
        }
    }
}

/// DCZID_EL0.DZP set: DC ZVA traps. And a block longer than the piece.
#[test]
fn dc_zva_is_not_used_where_it_is_prohibited_or_too_long() {
    const PROHIBITED: u64 = 1 << 4;
    for (dczid, len) in [(PROHIBITED, 4096), (PROHIBITED | 4, 4096), (9, 2047), (15, 4096)] {
        let mut dst = vec![0xee_u8; len];
        let (left_bytes, stopped_by);
        // SAFETY: the routine, told so, clears the range by ordinary stores.
        unsafe {
            asm!(
                "bl {routine}",
                routine = sym as_told,
                inout("x0") dst.as_mut_ptr() => left_bytes,
                inout("x1") 0_usize => stopped_by,
                in("x2") len,
                in("x3") dczid,
                clobber_abi("C"),
            );
        }
        let outcome = Outcome { left_bytes, stopped_by };
        assert_eq!(outcome, Outcome::DONE, "DCZID_EL0 {dczid:#x}");
        assert!(dst.iter().all(|&byte| byte == 0), "DCZID_EL0 {dczid:#x}");
    }
}

unsafe extern "C" {
    #[link_name = concat!(
        "cachewise_",
        env!("CARGO_PKG_VERSION_MAJOR"), "_",
        env!("CARGO_PKG_VERSION_MINOR"), "_",
        env!("CARGO_PKG_VERSION_PATCH"), "_",
        "clear_dc_zva_as_told"
    )]
    fn as_told(dst: *mut u8, pattern: u64, len: usize) -> Outcome;
}
