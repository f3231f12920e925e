//! i686 and i586: the routines of x86-64 in the registers that a 32-bit CPU has.
//!
//! Half of this project's history is about such CPUs: `movntps` against `rep stosd` on a Pentium III
//! (seeds rows M1, M2), `movntq` on a K7 (M12), `movnti` from 32-bit registers on a Pentium 4 (Y6).
//! Nothing beyond a Pentium is taken for granted: each row says what it needs, and what serves by
//! default on a Pentium II are general registers. That holds for the fences too: `sfence` came
//! with SSE, so only the non-temporal routines, which need as much, execute it.
//!
//! - `frame.S`: entry, exit, an access with its row of the exception table, the short pieces;
//! - `copy.S`, `clear.S`: the loops and their instances;
//! - `word.S`: single objects that may not be there;
//! - `recover.S`: where a fault leads.
//!
//! The files are x86-64's in shape, and share no text with them: registers, widths and the calling
//! convention differ in every line. Of its instances those are left out that no 32-bit CPU has had
//! for its own (AVX-512, `movdir64b`, `clzero`), and the pages in step.
//!
//! Manuals: Intel SDM 325462, AMD APM 24592 and 24594; AMD 22466 on the K7's extensions to MMX;
//! System V ABI, Intel386 supplement.

#[cfg(all(feature = "std", target_os = "linux"))]
pub(crate) mod context;

use super::assembly::version;
use super::{Outcome, portable};
use crate::cpu::Features;
use crate::run;
use crate::variant::Prefetch::Nta;
use crate::variant::RegisterClass::{General, Mmx, Vector};
use crate::variant::Store::{Implementation, Temporal};
use crate::variant::StoresOnce::{Always, Pages};
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
    prefetch_bytes = const PREFETCH_BYTES,
    retry_bytes = const RETRY_BYTES,
    source = const Outcome::SOURCE,
    destination = const Outcome::DESTINATION,
    cause_shift = const Outcome::CAUSE_SHIFT,
    poison = const Outcome::POISON,
);

/// How far ahead the prefetching variants reach: the 2005 patch's distance (seeds row Y2).
const PREFETCH_BYTES: usize = 320;
/// No block is longer, so that a retry of so many bytes from a block's start passes its end.
const RETRY_BYTES: usize = 256;

/// The unit of a non-temporal store: one write-combining buffer of a Pentium 4 or a K7, two of a
/// Pentium III, whose lines have 32 bytes. Correctness does not depend on it.
pub(crate) const BLOCK_BYTES: usize = 64;

/// Makes this thread's non-temporal stores behave as if they were ordinary ones from here on.
///
/// A build for CPUs without SSE cannot know whether there is an `sfence`. A locked instruction
/// empties the write-combining buffers as well, on every CPU (Intel SDM volume 3, "Buffering of
/// Write Combining Memory Locations"; AMD APM volume 2, "Write-Combining Buffer Operations").
#[inline(always)]
pub(crate) fn fence() {
    #[cfg(target_feature = "sse")]
    // SAFETY: the build requires SSE of every CPU it runs on.
    unsafe {
        core::arch::x86::_mm_sfence();
    }
    #[cfg(not(target_feature = "sse"))]
    // SAFETY: leaves the stack's top as it is. It is more than the compiler knows of: no `nomem`.
    unsafe {
        core::arch::asm!("lock or dword ptr [esp], 0");
    }
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
        let outcome = Outcome::from_returned(unsafe { routine!(copy "copy_backward")(dst, src, len) });
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
const MMXEXT: Features = Features::MMX.union(Features::MMXEXT);

/// The registry's rows. Unmeasured, the wider registers are preferred and the simpler loop; MMX only
/// where nothing else goes around the cache, on a K7 (seeds row M12). The string instructions are
/// for who asks or measures.
pub(crate) static ROWS: &[Variant] = &[
    ordered!(copy "rep_movsb", Implementation, General).once(Always),
    ordered!(copy "rep_movsd", Implementation, General).once(Always),
    ordered!(copy "mov", Temporal, General).once(Always).preferred(1),
    ordered!(copy "sse2_once", Temporal, Vector).needs(SSE2).once(Always).preferred(2),
    ordered!(copy "sse2", Temporal, Vector).needs(SSE2).once(Pages).preferred(3),
    ordered!(copy "sse2_prefetchnta", Temporal, Vector).needs(SSE2).once(Pages).prefetches(Nta),
    ordered!(copy "avx", Temporal, Vector).needs(AVX).once(Pages).preferred(4),
    ordered!(copy "avx_prefetchnta", Temporal, Vector).needs(AVX).once(Pages).prefetches(Nta),
    nontemporal!(copy "movnti", General).needs(Features::MOVNTI).preferred(2),
    nontemporal!(copy "movnti_prefetchnta", General).needs(Features::MOVNTI).prefetches(Nta),
    nontemporal!(copy "mmx_movntq", Mmx).needs(MMXEXT).preferred(1),
    nontemporal!(copy "mmx_movntq_prefetchnta", Mmx).needs(MMXEXT).prefetches(Nta),
    nontemporal!(copy "movntps", Vector).needs(SSE).preferred(3),
    nontemporal!(copy "movntps_prefetchnta", Vector).needs(SSE).prefetches(Nta),
    nontemporal!(copy "movntdq", Vector).needs(SSE2).preferred(4),
    nontemporal!(copy "avx_nt", Vector).needs(AVX).preferred(5),
    nontemporal!(copy "avx_nt_prefetchnta", Vector).needs(AVX).prefetches(Nta),
    portable::COPY,
    ordered!(clear "rep_stosb", Implementation, General).once(Always),
    ordered!(clear "rep_stosd", Implementation, General).once(Always),
    ordered!(clear "mov", Temporal, General).once(Always).preferred(1),
    ordered!(clear "sse2_once", Temporal, Vector).needs(SSE2).once(Always).preferred(2),
    ordered!(clear "sse2", Temporal, Vector).needs(SSE2).once(Pages).preferred(3),
    ordered!(clear "avx", Temporal, Vector).needs(AVX).once(Pages).preferred(4),
    nontemporal!(clear "movnti", General).needs(Features::MOVNTI).preferred(2),
    nontemporal!(clear "mmx_movntq", Mmx).needs(MMXEXT).preferred(1),
    nontemporal!(clear "movntps", Vector).needs(SSE).preferred(3),
    nontemporal!(clear "movntdq", Vector).needs(SSE2).preferred(4),
    nontemporal!(clear "avx_nt", Vector).needs(AVX).preferred(5),
    portable::CLEAR,
];
