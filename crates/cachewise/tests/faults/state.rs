//! What is as before after a recovery: registers, modes, masks (case 22).

use crate::child::{handle, mask_bits, scenario};
use crate::common::{Handle, available, is_small, title};
use crate::probe::{Called, Probe, vector_bytes};
use crate::say;
use crate::stage::{Area, Kind, PAGE};
use cachewise::fallible::{self, Fault};
use cachewise::variant::{RegisterClass, Variant};
use std::arch::asm;
#[cfg(target_arch = "x86")]
use std::arch::x86::__cpuid_count;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__cpuid_count;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

thread_local! {
    static RESULT: Cell<Option<Result<(), Fault>>> = const { Cell::new(None) };
}

/// # Safety
///
/// As the handle's fallible calls; the value of a fill is the address of `second`.
unsafe extern "C" fn attempt(
    handle: *const Handle,
    dst: *mut u8,
    second: *const u8,
    len: usize,
) {
    // SAFETY: the caller's promise.
    let result = match unsafe { &*handle } {
        // SAFETY: the caller's promise.
        Handle::Copy(copier) => unsafe { copier.try_copy_raw(dst, second, len) },
        // SAFETY: the caller's promise.
        Handle::Clear(clearer) => unsafe {
            clearer.try_fill_raw(dst, second.addr() as u8, len)
        },
    };
    RESULT.set(Some(result));
}

fn recoverable() -> impl Iterator<Item = &'static Variant> {
    available().filter(|v| v.recoverable())
}

const PLACES: [usize; 14] =
    [0, 1, 7, 15, 40, 64, 100, 200, 333, 512, 700, 1023, 5000, 17_000];

/// Faults in the head, the loop, the last block and the tail, of the source and the destination.
fn each_fault(variant: &'static Variant, mut test: impl FnMut(*mut u8, *const u8, usize, usize)) {
    let (mut good, mut bad) = (Area::new(), Area::new());
    bad.set(8, Kind::NoAccess);
    let edge = bad.at(8 * PAGE);
    good.bytes_mut().fill(1);
    for at in PLACES {
        for more in [1, 16, 100, 600, 17_000] {
            let (here, len) = (edge.wrapping_sub(at), at + more);
            match Handle::of(variant) {
                Handle::Copy(_) => {
                    test(here, good.at(3), len, at);
                    test(good.at(64), here, len, at);
                }
                Handle::Clear(_) => {
                    test(here, std::ptr::null(), len, at);
                    test(here, std::ptr::without_provenance(0xa5), len, at);
                }
            }
        }
    }
}

fn probe_each(variant: &'static Variant, check: impl Fn(&Probe, &str)) {
    let handle = Handle::of(variant);
    each_fault(variant, |dst, second, len, at| {
        let mut probe = Probe::new(attempt as Called, &handle, dst, second, len);
        RESULT.set(None);
        probe.run();
        let subject = format!("{}, fault at {at} of {len}", title(variant));
        let fault = RESULT.take().expect("it was called").expect_err("the edge is in the range");
        assert_eq!(fault.copied_bytes(), at, "{subject}");
        check(&probe, &subject);
    });
}

#[test]
fn callee_saved_registers_and_modes_after_a_recovery() {
    fallible::install().expect("the handlers can be installed");
    recoverable().for_each(|variant| probe_each(variant, Probe::check_convention));
}

static PAGED_IN: AtomicUsize = AtomicUsize::new(0);

extern "C" fn pager(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    PAGED_IN.fetch_add(1, Relaxed);
    // SAFETY: the kernel's pointer; a fault's information has an address.
    let page = unsafe { (*info).si_addr() }.addr() / PAGE * PAGE;
    let both = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a page of the test's own mapping: nothing else faults in that process.
    unsafe { libc::mprotect(std::ptr::with_exposed_provenance_mut(page), 5 * PAGE, both) };
}

/// # Safety
///
/// As the handle's calls; the value of a fill is the address of `second`.
unsafe extern "C" fn infallible(
    handle: *const Handle,
    dst: *mut u8,
    second: *const u8,
    len: usize,
) {
    // SAFETY: the caller's promise.
    match unsafe { &*handle } {
        // SAFETY: the caller's promise.
        Handle::Copy(copier) => unsafe { copier.copy_raw(dst, second, len) },
        // SAFETY: the caller's promise.
        Handle::Clear(clearer) => unsafe { clearer.fill_raw(dst, second.addr() as u8, len) },
    }
}

scenario!(
    /// A kernel that hasn't saved them relies on it, most of all when something goes wrong. By
    /// infallible calls, which meet a pager: the compiler's own code is free to use the registers,
    /// and in a fallible call builds the answer with them.
    vector_registers_of_variants_without_vectors_after_a_recovery,
    {
        handle(libc::SIGSEGV, pager as *const () as usize, libc::SA_SIGINFO, &[]);
        fallible::install().expect("the handlers can be installed");
        say!("vector registers compared: {} bytes wide", vector_bytes());
        for variant in recoverable().filter(|v| v.registers() != RegisterClass::Vector) {
            let of = Handle::of(variant);
            let mut bad = Area::new();
            let mut good = Area::new();
            good.bytes_mut().fill(3);
            for (at, len) in PLACES.into_iter().flat_map(|at| [(at, at + 1), (at, at + 700)]) {
                for in_dst in [true, false] {
                    if !in_dst && matches!(of, Handle::Clear(_)) {
                        continue;
                    }
                    bad.set(8, Kind::ReadWrite);
                    bad.set(8, Kind::NoAccess);
                    PAGED_IN.store(0, Relaxed);
                    let (edge, other) = (bad.at(8 * PAGE - at), good.at(5));
                    let (dst, src) = if in_dst { (edge, other) } else { (other, edge) };
                    let mut probe = Probe::new(infallible as Called, &of, dst, src, len);
                    probe.run();
                    let subject = format!("{}, fault at {at} of {len}", title(variant));
                    assert_eq!(PAGED_IN.load(Relaxed), 1, "{subject}");
                    probe.check_vectors(&subject);
                    probe.check_convention(&subject);
                }
            }
        }
    }
);

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
/// Whether the upper halves of the first sixteen vector registers are in use (Intel SDM volume 1,
/// 13.6: XGETBV with ecx 1).
fn upper_halves_in_use() -> bool {
    let low: u32;
    // SAFETY: the caller has checked that the CPU has it; it changes eax and edx only.
    unsafe { asm!("xgetbv", in("ecx") 1, out("eax") low, out("edx") _) };
    low & 4 != 0
}

/// `vzeroupper` on the way of a fault as well: else the program's SSE code is slow from then on.
#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
#[test]
fn upper_halves_are_clean_after_a_recovery() {
    fallible::install().expect("the handlers can be installed");
    // SAFETY: the leaf exists where XSAVE does; else its values are zero.
    #[allow(unused_unsafe, reason = "safe from Rust 1.93 on")]
    let leaf = unsafe { __cpuid_count(13, 1) };
    let avx = std::arch::is_x86_feature_detected!("avx");
    if !avx || leaf.eax & 4 == 0 {
        say!("cannot run here: no AVX, or no XGETBV that tells what is in use");
        return;
    }
    // SAFETY: the CPU has AVX.
    let (clean, dirty) = unsafe {
        asm!("vzeroupper", out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _);
        let clean = upper_halves_in_use();
        asm!("vcmpps ymm0, ymm0, ymm0, 15", out("ymm0") _);
        let dirty = upper_halves_in_use();
        asm!("vzeroupper", out("xmm0") _);
        (clean, dirty)
    };
    if (clean, dirty) != (false, true) {
        say!("cannot run here: XGETBV says in use {clean} when clean, {dirty} when not");
        return;
    }
    for variant in recoverable() {
        let handle = Handle::of(variant);
        each_fault(variant, |dst, second, len, at| {
            // SAFETY: what exists is ours; the CPU has AVX.
            let in_use = unsafe {
                asm!("vzeroupper", out("xmm0") _);
                attempt(&handle, dst, second, len);
                upper_halves_in_use()
            };
            assert!(!in_use, "{}, fault at {at} of {len}", title(variant));
        });
    }
}

#[derive(Debug, PartialEq, Eq)]
struct State {
    mask: u64,
    alternate: (usize, i32, usize),
    modes: Modes,
}

/// MXCSR; the x87's control, status and tag word; the flags that are modes: direction, alignment
/// check and trap.
#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
type Modes = (u32, [u32; 3], usize);

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
fn modes() -> Modes {
    let (mut mxcsr, mut x87) = (0_u32, [0_u32; 7]);
    let flags: usize;
    // SAFETY: stores to the operands; `fnstenv` masks the exceptions, so the control word is loaded
    // again.
    unsafe {
        asm!("stmxcsr [{}]", in(reg) &mut mxcsr);
        asm!("fnstenv [{0}]", "fldenv [{0}]", in(reg) &mut x87);
        #[cfg(target_arch = "x86_64")]
        asm!("pushfq", "pop {}", out(reg) flags);
        #[cfg(target_arch = "x86")]
        asm!("pushfd", "pop {}", out(reg) flags);
    }
    let kept = flags & (1 << 10 | 1 << 18 | 1 << 8);
    (mxcsr, [x87[0] & 0xffff, x87[1] & 0xffff, x87[2] & 0xffff], kept)
}

/// FPCR.
#[cfg(target_arch = "aarch64")]
type Modes = u64;

#[cfg(target_arch = "aarch64")]
fn modes() -> Modes {
    let fpcr;
    // SAFETY: reads a register.
    unsafe { asm!("mrs {}, fpcr", out(reg) fpcr) };
    fpcr
}

/// FPSCR without its status; CPSR's IT bits, endianness and state.
#[cfg(target_arch = "arm")]
type Modes = [u32; 2];

#[cfg(target_arch = "arm")]
fn modes() -> Modes {
    let (fpscr, cpsr): (u32, u32);
    // SAFETY: reads two registers.
    unsafe { asm!("vmrs {}, fpscr", "mrs {}, cpsr", out(reg) fpscr, out(reg) cpsr) };
    [fpscr & 0x07ff_9f00, cpsr & 0x0600_fe20]
}

fn state() -> State {
    // SAFETY: all zeroes are a valid value.
    let mut stack: libc::stack_t = unsafe { std::mem::zeroed() };
    // SAFETY: with no new stack the call only writes the present one.
    unsafe { libc::sigaltstack(std::ptr::null(), &mut stack) };
    State {
        mask: mask_bits(),
        alternate: (stack.ss_sp.addr(), stack.ss_flags, stack.ss_size),
        modes: modes(),
    }
}

const RECOVERIES: usize = 100_000;

scenario!(
    /// By all variants in turn.
    a_hundred_thousand_recoveries_leave_the_thread_as_it_was,
    {
        fallible::install().expect("the handlers can be installed");
        let mut bad = Area::new();
        bad.set(8, Kind::NoAccess);
        let edge = bad.at(8 * PAGE);
        let mut other = vec![0_u8; 1000];
        let before = state();
        let mut done = 0;
        while done < if is_small() { RECOVERIES / 10 } else { RECOVERIES } {
            for variant in recoverable() {
                // SAFETY: what exists is ours.
                let result = unsafe {
                    match Handle::of(variant) {
                        Handle::Copy(copier) => {
                            copier.try_copy_raw(other.as_mut_ptr(), edge.wrapping_sub(200), 900)
                        }
                        Handle::Clear(clearer) => {
                            clearer.try_fill_raw(edge.wrapping_sub(200), 0, 900)
                        }
                    }
                };
                assert_eq!(result.map_err(|fault| fault.copied_bytes()), Err(200));
                done += 1;
            }
        }
        assert_eq!(state(), before, "after {done} recoveries");
    }
);
