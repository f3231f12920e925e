//! AArch64: one loop, one instance per instruction family, one row per instance.
//!
//! The routines are assembly so that every load and store has a known address for the exception
//! table. They are out of line, in one block, and follow the AAPCS64: only caller-saved registers
//! change, and x18 does not.
//!
//! - `frame.S`: entry, exit, an access with its row of the exception table, the short pieces;
//! - `copy.S`, `clear.S`: the loops and their instances;
//! - `word.S`: single objects that may not be there;
//! - `recover.S`: where a fault leads.
//!
//! Manual: Arm ARM, DDI 0487 (LDNP, STNP, DC ZVA, CPYFP, SETP; B2 for the memory model).
//!
//! # What non-temporal means here
//!
//! A hint: `stnp`, `ldnp` and the non-temporal forms of the memory-copy instructions tell the memory
//! system that the data is not used again soon. It may stream the stores past the caches or do
//! nothing about it, and nothing in the architecture tells which. So the rows are called
//! non-temporal for what they ask; what they get, only a measurement says.
//!
//! # Why nothing is fenced
//!
//! `stnp`, and `dc zva`, and the memory-copy instructions too, are ordered as any other store is (the
//! hint relaxes nothing for stores): a release store, or `dmb ish`, that comes after them in this
//! thread orders them, and a load of this thread sees them. That is all the contract promises, so
//! [`fence`] is empty and a routine has one entry. (Memory mapped as Device, or a device that does
//! not snoop, needs what it needs after ordinary stores: `dsb`, or cache maintenance.)
//!
//! `ldnp` does relax something: a load whose address comes from an earlier load may be observed
//! before that one unless there is a barrier in between. Rust gives no order to an address
//! dependency anyway; who receives a pointer by an `Acquire` load, or after a fence, has the barrier,
//! since that orders all later accesses. A kernel that hands pointers over by dependency alone (RCU)
//! must not read through them by `ldnp_stnp` or `neon_nt`.
//!
//! # Alignment
//!
//! Sides that are not aligned are read and written as they are: Normal memory allows it while
//! SCTLR_ELx.A is clear, as every system that runs Rust's targets has it.

#[cfg(all(feature = "std", target_os = "linux"))]
pub(crate) mod context;
#[cfg(test)]
mod tests;

use super::assembly::version;
use super::{Outcome, portable};
use crate::cpu::Features;
use crate::run;
use crate::variant::RegisterClass::{General, Vector};
use crate::variant::Store::{Implementation, NonTemporal, Temporal};
use crate::variant::StoresOnce::Always;
use crate::variant::Variant;
use core::arch::global_asm;

pub(crate) use portable::{call_clear, call_copy};

global_asm!(
    concat!(
        ".pushsection .text.cachewise, \"ax\", @progbits\n",
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
);

/// No block is longer, so that a retry of so many bytes from a block's start passes its end: DC ZVA
/// clears at most 2 KiB.
const RETRY_BYTES: usize = 2048;

/// The unit of the loops, and of what is hinted to go around the cache. Lines are as long on nearly
/// every AArch64 CPU; correctness does not depend on it.
pub(crate) const BLOCK_BYTES: usize = 64;

/// Nothing to do, as the [module](self) says.
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
        unsafe { run::copy(routine!(copy "copy_ldp_stp"), dst, src, len) }
    }
}

word_routines! {
    read_1 read_2 read_4 read_8 write_1 write_2 write_4 write_8
    swap_4 swap_8 compare_exchange_4 compare_exchange_8 string_end
}

const NEON: Features = Features::NEON;
const MOPS: Features = Features::MOPS;

/// The registry's rows for AArch64. Unmeasured, the wider registers are preferred; the hints, and the
/// instructions by which the CPU chooses how to store, are for who asks or measures. That the
/// memory-copy instructions store each byte once is what their pseudocode does.
pub(crate) static ROWS: &[Variant] = &[
    ordered!(copy "ldp_stp", Temporal, General).once(Always).preferred(1),
    ordered!(copy "neon", Temporal, Vector).needs(NEON).once(Always).preferred(2),
    ordered!(copy "mops", Implementation, General).needs(MOPS).once(Always),
    ordered!(copy "ldnp_stnp", NonTemporal, General).once(Always).preferred(1),
    ordered!(copy "neon_nt", NonTemporal, Vector).needs(NEON).once(Always).preferred(2),
    ordered!(copy "mops_nt", NonTemporal, General).needs(MOPS).once(Always),
    portable::COPY,
    ordered!(clear "stp", Temporal, General).once(Always).preferred(1),
    ordered!(clear "neon", Temporal, Vector).needs(NEON).once(Always).preferred(2),
    ordered!(clear "dc_zva", Implementation, General).needs(Features::DC_ZVA).once(Always),
    ordered!(clear "mops", Implementation, General).needs(MOPS).once(Always),
    ordered!(clear "stnp", NonTemporal, General).once(Always).preferred(1),
    ordered!(clear "neon_nt", NonTemporal, Vector).needs(NEON).once(Always).preferred(2),
    ordered!(clear "mops_nt", NonTemporal, General).needs(MOPS).once(Always),
    portable::CLEAR,
];
