//! ARMv7: copies by multiples of registers, with one prefetch per line, and by NEON.
//!
//! The routines are assembly so that every load and store has a known address for the exception
//! table. They are out of line, in one block, in the A32 instruction set, and follow the AAPCS.
//!
//! - `frame.S`: entry, exit, an access with its row of the exception table, the short pieces;
//! - `copy.S`, `clear.S`: the loops;
//! - `word.S`: single objects that may not be there;
//! - `recover.S`: where a fault leads.
//!
//! The copy of pages is the one of 2009 (seeds rows A1 to A5), whose point was that a kernel had
//! taken the line for 32 bytes, and a Cortex-A8 has 64: half of its prefetches went to lines already
//! on their way. So here the line is a number that the caller passes, found at run time.
//!
//! Nothing is non-temporal: ARMv7 has no such store. Nothing is fenced: the stores are ordinary
//! ones.
//!
//! Manual: ARM Architecture Reference Manual, ARMv7-A edition, DDI 0406 (A3.2.1 on alignment: `ldm`,
//! `stm`, `ldrd` and the exclusive instructions trap where others need not). Sides that are not
//! aligned are accessed by `ldr` and `str`, which Linux lets programs do.

#[cfg(all(feature = "std", target_os = "linux"))]
pub(crate) mod context;
#[cfg(test)]
mod tests;

use super::assembly::version;
use super::{LINE_BYTES, Outcome, Returned, portable};
use crate::cpu::Features;
use crate::run;
use crate::variant::Prefetch::Line;
use crate::variant::RegisterClass::{General, Vector};
use crate::variant::Store::Temporal;
use crate::variant::StoresOnce::Always;
use crate::variant::Variant;
use core::arch::global_asm;
use core::sync::atomic::Ordering::Relaxed;

pub(crate) use portable::{call_clear, call_copy};

global_asm!(
    concat!(
        ".pushsection .text.cachewise, \"ax\", %progbits\n",
        include_str!("frame.S"),
        include_str!("recover.S"),
        include_str!("copy.S"),
        include_str!("clear.S"),
        include_str!("word.S"),
        include_str!("purge.S"),
        ".popsection\n",
    ),
    major = const version(env!("CARGO_PKG_VERSION_MAJOR")),
    minor = const version(env!("CARGO_PKG_VERSION_MINOR")),
    patch = const version(env!("CARGO_PKG_VERSION_PATCH")),
    retry_bytes = const RETRY_BYTES,
    source = const Outcome::SOURCE,
    destination = const Outcome::DESTINATION,
    cause_shift = const Outcome::CAUSE_SHIFT,
    poison = const Outcome::POISON,
    counts = const cfg!(test) as u32,
);

/// No block is longer, so that a retry of so many bytes from a block's start passes its end.
const RETRY_BYTES: usize = 64;

/// What the policy takes for a line; correctness does not depend on it.
pub(crate) const BLOCK_BYTES: usize = 64;

/// Nothing to order: all stores are ordinary ones.
#[inline(always)]
pub(crate) fn fence() {}

/// Copies between ranges that may overlap, each byte stored once, by general registers.
///
/// # Safety
///
/// `src` is valid for reads and `dst` for writes of `len` bytes.
pub(crate) unsafe fn walk(dst: *mut u8, src: *const u8, len: usize) {
    if dst.addr() > src.addr() {
        // SAFETY: the caller's promise. The walk reads a block before it overwrites it, and never
        // reads again behind itself.
        let outcome = unsafe { routine!(copy "copy_backward")(dst, src, len) };
        debug_assert_eq!(Outcome::from_returned(outcome), Outcome::DONE);
    } else {
        // SAFETY: as above; and what a fault leaves to be done again has not been overwritten.
        unsafe { run::copy(routine!(copy "copy_ldm_stm"), dst, src, len) }
    }
}

word_routines! {
    read_1 read_2 read_4 read_8 write_1 write_2 write_4 write_8
    swap_4 swap_8 compare_exchange_4 compare_exchange_8 string_end
}

/// Copies with one prefetch per line, or, where [`goes_by_lines`] says no, without.
///
/// # Safety
///
/// A routine's.
unsafe extern "C" fn copy_ldm_stm_pld(dst: *mut u8, src: *const u8, len: usize) -> Returned {
    let line = LINE_BYTES.load(Relaxed);
    if goes_by_lines(dst.addr(), src.addr(), len, line) {
        let by_lines = routine!(
            ("copy_lines") (dst: *mut u8, src: *const u8, len: usize, line: usize) -> Returned
        );
        // SAFETY: the caller's promise, and the shapes are what the routine asks for.
        return unsafe { by_lines(dst, src, len, line) };
    }
    // SAFETY: the caller's promise.
    unsafe { routine!(copy "copy_ldm_stm")(dst, src, len) }
}

/// The conditions of the copy by lines (seeds row A2): a line is a multiple of the 16 bytes of a
/// step, the length one of two lines; and `ldm` needs both sides at a word boundary.
fn goes_by_lines(dst: usize, src: usize, len: usize, line: usize) -> bool {
    let step = 2 * line;
    (dst | src) % 4 == 0 && line != 0 && line % 16 == 0 && len != 0 && len % step == 0
}

const NEON: Features = Features::NEON;

/// The registry's rows for ARMv7. Unmeasured, the general registers with prefetch are preferred: the
/// one figure there is (a quarter faster than without, on an OMAP3; seeds row A3) speaks for them.
pub(crate) static ROWS: &[Variant] = &[
    ordered!(copy "ldm_stm", Temporal, General).once(Always).preferred(1),
    Variant::copying("ldm_stm_pld", Temporal, General, copy_ldm_stm_pld)
        .once(Always)
        .prefetches(Line)
        .preferred(2),
    ordered!(copy "neon", Temporal, Vector).needs(NEON).once(Always),
    portable::COPY,
    ordered!(clear "stm", Temporal, General).once(Always).preferred(1),
    ordered!(clear "neon", Temporal, Vector).needs(NEON).once(Always),
    portable::CLEAR,
];
