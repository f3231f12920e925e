//! Memory that the hardware reports as corrupt.
//!
//! A page is broken by madvise(2) where the kernel can (it takes the page out of service), and
//! always by pretence: the page cannot be touched, and a handler in front of ours makes of each
//! fault on it the signal that the kernel would have sent. What our handler makes of every code at
//! every instruction is tested beside it.

use crate::child::{End, forked, handle, limit, scenario};
use crate::common::{Handle, available, title};
use crate::stage::PAGE;
use cachewise::fallible::{self, Cause, Side};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Whether a signal that is not ours is the end, with this status: the kernel tells a process at
/// once that it has broken its page.
static ARMED: AtomicBool = AtomicBool::new(false);
const REACHED: i32 = 44;

extern "C" fn the_application(_: i32) {
    if ARMED.load(Relaxed) {
        // SAFETY: ends the process.
        unsafe { libc::_exit(REACHED) }
    }
}

static PRETENDED: AtomicUsize = AtomicUsize::new(0);
static OURS: OnceLock<usize> = OnceLock::new();

extern "C" fn pretend(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel's pointer; a fault's information has an address.
    let address = unsafe { (*info).si_addr() }.addr();
    let page = PRETENDED.load(Relaxed);
    let mut reported = signal;
    if (page..page + PAGE).contains(&address) {
        reported = libc::SIGBUS;
        // SAFETY: the kernel's pointer, to a copy of its own.
        unsafe { ((*info).si_signo, (*info).si_code) = (reported, libc::BUS_MCEERR_AR) };
    }
    type WithInfo = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
    // SAFETY: ours was installed with SA_SIGINFO.
    let ours = unsafe { std::mem::transmute::<usize, WithInfo>(*OURS.get().expect("set before")) };
    ours(reported, info, context);
}

/// Three pages, the middle one broken; or why not. Installs the handlers.
fn broken(pretended: bool) -> Result<*mut u8, String> {
    handle(libc::SIGBUS, the_application as *const () as usize, 0, &[]);
    fallible::install().expect("the handlers can be installed");
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping.
    let first = unsafe { libc::mmap(null_mut(), 3 * PAGE, protection, flags, -1, 0) };
    assert!(first != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
    let first: *mut u8 = first.cast();
    for i in 0..3 * PAGE {
        // SAFETY: inside the mapping.
        unsafe { first.add(i).write_volatile(i as u8 | 1) };
    }
    let page = first.wrapping_add(PAGE);
    if pretended {
        // SAFETY: a page of ours.
        unsafe { libc::mprotect(page.cast(), PAGE, libc::PROT_NONE) };
        PRETENDED.store(page.addr(), Relaxed);
        let old = handle(libc::SIGSEGV, pretend as *const () as usize, libc::SA_SIGINFO, &[]);
        assert!(OURS.set(old.sa_sigaction).is_ok());
    } else {
        // SAFETY: the page is ours; its contents are lost on purpose.
        let result = unsafe { libc::madvise(page.cast(), PAGE, libc::MADV_HWPOISON) };
        if result != 0 {
            return Err(std::io::Error::last_os_error().to_string());
        }
    }
    ARMED.store(true, Relaxed);
    Ok(first)
}

/// Copied is right; that it is all that was possible is not said. Both sides, every variant.
fn check_fallible(first: *mut u8) {
        let edge = first.wrapping_add(PAGE);
        let mut other = vec![0_u8; 3 * PAGE];
        for variant in available().filter(|v| v.recoverable()) {
            for at in [0, 1, 7, 64, 100, 500, 1000, 4000] {
                let len = at + 1000;
                let here = edge.wrapping_sub(at);
                for side in [Side::Source, Side::Destination] {
                    other.fill(0xee);
                    let there = other.as_mut_ptr();
                    // SAFETY: what is not broken is ours.
                    let result = unsafe {
                        match (Handle::of(variant), side) {
                            (Handle::Copy(copier), Side::Source) => {
                                copier.try_copy_raw(there, here, len)
                            }
                            (Handle::Copy(copier), Side::Destination) => {
                                copier.try_copy_raw(here, there, len)
                            }
                            (Handle::Clear(_), Side::Source) => continue,
                            (Handle::Clear(clearer), _) => clearer.try_fill_raw(here, 0xee, len),
                        }
                    };
                    let subject = format!("{}, {side} broken at {at}", title(variant));
                    let fault = result.expect_err("a page is broken");
                    assert_eq!(fault.cause(), Cause::Poison, "{subject}: {fault}");
                    assert!(!fault.is_maximal(), "{subject}: {fault}");
                    assert!(fault.copied_bytes() <= at, "{subject}: {fault}");
                    assert_eq!(fault.copied_bytes() + fault.residue_bytes(), len, "{subject}");
                    for (i, &byte) in other[..fault.copied_bytes()].iter().enumerate() {
                        // SAFETY: before the broken page.
                        let in_page = unsafe { here.add(i).read_volatile() };
                        assert_eq!(in_page, byte, "{subject}: byte {i}");
                    }
                    // It is not touched again to find out which side it was: where the handler
                    // isn't told either, a copy says the source.
                    let copies = matches!(Handle::of(variant), Handle::Copy(_));
                    if cfg!(target_arch = "x86_64") || !copies || side == Side::Source {
                        assert_eq!(fault.side(), side, "{subject}: {fault}");
                    }
                    // As it was, for the next.
                    for i in 0..PAGE {
                        // SAFETY: before the broken page.
                        unsafe { first.add(i).write_volatile(i as u8 | 1) };
                    }
                }
            }
        }
        // SAFETY: an object on the broken page.
        let fault = unsafe { fallible::try_read(edge.cast::<u64>()) }.expect_err("it is broken");
        assert_eq!((fault.cause(), fault.side()), (Cause::Poison, Side::Source));
        // SAFETY: as above.
        let fault = unsafe { fallible::try_strnlen(edge.wrapping_sub(50), 100) };
        let fault = fault.expect_err("it is broken");
        assert_eq!((fault.cause(), fault.copied_bytes()), (Cause::Poison, 50));
}

/// Infallible calls must not go round in circles before the broken page: they reach the
/// application, as a plain access would (case 29).
fn check_infallible(first: *mut u8) {
        let mut other = vec![0_u8; 3 * PAGE];
        for variant in available().filter(|v| v.recoverable()) {
            let places = [0, 5, 100, 500, 1000].into_iter();
            for (at, in_src) in places.flat_map(|at| [(at, true), (at, false)]) {
                let (here, there) = (first.wrapping_add(PAGE - at), other.as_mut_ptr());
                let end = forked(|| {
                    limit();
                    // SAFETY: no memory is involved.
                    unsafe { libc::alarm(2) };
                    let (dst, src) = if in_src { (there, here) } else { (here, there) };
                    // SAFETY: not kept, on purpose.
                    unsafe {
                        match Handle::of(variant) {
                            Handle::Copy(copier) => copier.copy_raw(dst, src, at + 1000),
                            Handle::Clear(clearer) => clearer.fill_raw(here, 0, at + 1000),
                        }
                    }
                    33
                });
                let subject = format!("{}, {at} before it, source {in_src}", title(variant));
                assert_eq!(end, End::Exit(REACHED), "{subject}: signal 14 is for ever");
            }
        }
}

fn really(check: fn(*mut u8)) {
    match broken(false) {
        Ok(first) => check(first),
        Err(why) => eprintln!("not demonstrated here: really poisoned memory (madvise: {why})"),
    }
}

fn by_pretence(check: fn(*mut u8)) {
    check(broken(true).expect("a page that can't be touched"));
}

scenario!(broken_memory_is_an_answer, { really(check_fallible) });
scenario!(pretended_broken_memory_is_an_answer, { by_pretence(check_fallible) });
scenario!(an_infallible_call_ends_at_broken_memory, { really(check_infallible) });
scenario!(an_infallible_call_ends_at_pretended_broken_memory, { by_pretence(check_infallible) });
