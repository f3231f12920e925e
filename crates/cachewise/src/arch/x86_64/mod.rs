//! x86-64: one loop per kind of store, one instance per instruction family, one row per instance.
//!
//! The routines are assembly so that every load and store has a known address for the exception
//! table, and because a non-temporal store must not be seen by the compiler without its fence. They
//! are out of line, in one block, and follow the System V calling convention: the caller-saved
//! registers are theirs, flags are, the direction flag is clear on entry and stays so.
//!
//! - `frame.S`: entry, exit, an access with its row of the exception table, the short pieces;
//! - `copy.S`, `clear.S`: the loops and their instances;
//! - `word.S`: single objects that may not be there;
//! - `recover.S`: where a fault leads.
//!
//! Manuals: Intel SDM 325462 (volume 1, 10.4.6 on non-temporal data; volume 2 for each
//! instruction), AMD APM 24592 and 24594.
//!
//! Rejected: masked AVX-512 tails (they can defeat store forwarding, and in a trial lost to
//! overlapping stores, 5.5 ns against 3.6 ns at 64 to 100 bytes).

#[cfg(all(feature = "std", target_os = "linux"))]
pub(crate) mod context;

use super::assembly::version;
use super::{ClearRoutine, CopyRoutine, Outcome, portable};
use crate::cpu::Features;
use crate::run::{self, Stand};
use crate::variant::Prefetch::Nta;
use crate::variant::RegisterClass::{General, Mmx, Vector};
use crate::variant::Store::{Implementation, Temporal};
use crate::variant::StoresOnce::{Always, Pages};
use crate::variant::Variant;
use core::arch::{asm, global_asm};

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
    step_pages = const STEP_PAGES,
    step_bytes = const STEP_BYTES,
    prefetch_bytes = const PREFETCH_BYTES,
    retry_bytes = const RETRY_BYTES,
    source = const Outcome::SOURCE,
    destination = const Outcome::DESTINATION,
    cause_shift = const Outcome::CAUSE_SHIFT,
    poison = const Outcome::POISON,
);

/// The `_pages` variants copy this many streams in step, each of this length.
const STEP_PAGES: usize = 4;
const STEP_BYTES: usize = 4096;
/// How far ahead the prefetching variants reach: the 2005 patch's distance (seeds row Y2).
const PREFETCH_BYTES: usize = 320;
/// No block is longer, so that a retry of so many bytes from a block's start passes its end.
const RETRY_BYTES: usize = 1024;

/// The unit of a non-temporal store: the write-combining buffer, one line, on every x86 that has
/// such stores with lines of 64 bytes. Correctness does not depend on it.
pub(crate) const BLOCK_BYTES: usize = 64;

/// Makes this thread's non-temporal stores behave as if they were ordinary ones from here on.
#[inline(always)]
pub(crate) fn fence() {
    // SAFETY: x86-64 has SSE.
    unsafe { core::arch::x86_64::_mm_sfence() }
}

/// Calls a routine by the System V convention, and takes from it, beside its result, the cursors:
/// the assembly leaves them where they were when it stopped. So a caller need not keep its
/// arguments for the rare call that is not done. A routine in Rust leaves anything there, and is
/// always done.
macro_rules! call {
    ($routine:ident, $dst:ident, $second:ident, $len:ident) => {{
        let (dst, src): (*mut u8, *const u8);
        let (left_bytes, stopped_by): (usize, usize);
        // SAFETY: the operands are the convention's, and all that it lets a callee change is
        // declared. Without `nostack` the stack is aligned for a call.
        unsafe {
            asm!(
                "call {routine}",
                routine = in(reg) $routine,
                inout("rdi") $dst => dst,
                inout("rsi") $second => src,
                inout("rdx") $len => stopped_by,
                lateout("rax") left_bytes,
                clobber_abi("C"),
            );
        }
        Stand { dst, src, outcome: Outcome { left_bytes, stopped_by } }
    }};
}

/// # Safety
///
/// The routine's.
#[inline(always)]
pub(crate) unsafe fn call_copy(
    routine: CopyRoutine,
    dst: *mut u8,
    src: *const u8,
    len: usize,
) -> Stand {
    call!(routine, dst, src, len)
}

/// # Safety
///
/// The routine's.
#[inline(always)]
pub(crate) unsafe fn call_clear(
    routine: ClearRoutine,
    dst: *mut u8,
    pattern: u64,
    len: usize,
) -> Stand {
    call!(routine, dst, pattern, len)
}

/// Copies from the last byte to the first if the destination overlaps the source from above, else
/// from the first to the last; each byte is stored once. By general registers.
///
/// # Safety
///
/// `src` is valid for reads and `dst` for writes of `len` bytes.
pub(crate) unsafe fn walk(dst: *mut u8, src: *const u8, len: usize) {
    if dst.addr() > src.addr() {
        // SAFETY: the caller's promise. The walk reads a block before it overwrites it, and never
        // reads again behind itself.
        let outcome = unsafe { routine!(copy "copy_backward")(dst, src, len) };
        debug_assert_eq!(outcome, Outcome::DONE);
    } else {
        // SAFETY: as above; and what a fault leaves to be done again has not been overwritten.
        unsafe { run::copy(routine!(copy "copy_mov"), dst, src, len) }
    }
}

word_routines! {
    read_1 read_2 read_4 read_8 write_1 write_2 write_4 write_8
    swap_4 swap_8 compare_exchange_4 compare_exchange_8 string_end
}

const SSE: Features = Features::SSE;
const SSE2: Features = Features::SSE2;
const AVX: Features = Features::AVX;
const AVX512F: Features = Features::AVX512F;
const AVX512VL: Features = AVX512F.union(Features::AVX512VL);
const MMXEXT: Features = Features::MMX.union(Features::MMXEXT);

/// The registry's rows for x86-64. Unmeasured, the wider registers are preferred and the simpler
/// loop: pages in step won on one machine (Intel, 2 MiB of L2) and lost a fifth on another (AMD
/// Zen 4). `movdir64b`, `clzero`, MMX and the string instructions are for who asks or measures.
pub(crate) static ROWS: &[Variant] = &[
    ordered!(copy "rep_movsb", Implementation, General).once(Always),
    ordered!(copy "rep_movsd", Implementation, General).once(Always),
    ordered!(copy "rep_movsq", Implementation, General).once(Always),
    ordered!(copy "mov", Temporal, General).once(Always).preferred(1),
    ordered!(copy "sse2_once", Temporal, Vector).needs(SSE2).once(Always).preferred(2),
    ordered!(copy "sse2", Temporal, Vector).needs(SSE2).once(Pages).preferred(3),
    ordered!(copy "sse2_prefetchnta", Temporal, Vector).needs(SSE2).once(Pages).prefetches(Nta),
    ordered!(copy "avx", Temporal, Vector).needs(AVX).once(Pages).preferred(5),
    ordered!(copy "avx_prefetchnta", Temporal, Vector).needs(AVX).once(Pages).prefetches(Nta),
    ordered!(copy "avx512", Temporal, Vector).needs(AVX512VL).once(Pages).preferred(6),
    ordered!(copy "avx512_prefetchnta", Temporal, Vector).needs(AVX512VL).once(Pages).prefetches(Nta),
    nontemporal!(copy "movnti", General).needs(Features::MOVNTI).preferred(1),
    nontemporal!(copy "movnti_prefetchnta", General).needs(Features::MOVNTI).prefetches(Nta),
    nontemporal!(copy "mmx_movntq", Mmx).needs(MMXEXT),
    nontemporal!(copy "mmx_movntq_prefetchnta", Mmx).needs(MMXEXT).prefetches(Nta),
    nontemporal!(copy "movntps", Vector).needs(SSE).preferred(2),
    nontemporal!(copy "movntps_prefetchnta", Vector).needs(SSE).prefetches(Nta),
    nontemporal!(copy "movntdq", Vector).needs(SSE2).preferred(3),
    nontemporal!(copy "avx_nt", Vector).needs(AVX).preferred(5),
    nontemporal!(copy "avx_nt_prefetchnta", Vector).needs(AVX).prefetches(Nta),
    nontemporal!(copy "avx_nt_pages", Vector).needs(AVX).preferred(4),
    nontemporal!(copy "avx512_nt", Vector).needs(AVX512F).preferred(7),
    nontemporal!(copy "avx512_nt_prefetchnta", Vector).needs(AVX512F).prefetches(Nta),
    nontemporal!(copy "avx512_nt_pages", Vector).needs(AVX512F).preferred(6),
    nontemporal!(copy "movdir64b", General).needs(Features::MOVDIR64B),
    portable::COPY,
    ordered!(clear "rep_stosb", Implementation, General).once(Always),
    ordered!(clear "rep_stosd", Implementation, General).once(Always),
    ordered!(clear "rep_stosq", Implementation, General).once(Always),
    ordered!(clear "mov", Temporal, General).once(Always).preferred(1),
    ordered!(clear "sse2_once", Temporal, Vector).needs(SSE2).once(Always).preferred(2),
    ordered!(clear "sse2", Temporal, Vector).needs(SSE2).once(Pages).preferred(3),
    ordered!(clear "avx", Temporal, Vector).needs(AVX).once(Pages).preferred(5),
    ordered!(clear "avx512", Temporal, Vector).needs(AVX512VL).once(Pages).preferred(6),
    nontemporal!(clear "movnti", General).needs(Features::MOVNTI).preferred(1),
    nontemporal!(clear "mmx_movntq", Mmx).needs(MMXEXT),
    nontemporal!(clear "movntps", Vector).needs(SSE2).preferred(2),
    nontemporal!(clear "movntdq", Vector).needs(SSE2).preferred(3),
    nontemporal!(clear "avx_nt", Vector).needs(AVX).preferred(4),
    nontemporal!(clear "avx512_nt", Vector).needs(AVX512F).preferred(5),
    nontemporal!(clear "movdir64b", General).needs(Features::MOVDIR64B),
    nontemporal!(clear "clzero", General).needs(Features::CLZERO),
    portable::CLEAR,
];
