//! Infallible calls stay honest: a wild pointer is the end of the process, of the right signal at
//! the right address (case 29); an application's own pager mends the fault, and the call goes on
//! (case 30).

use crate::child::{End, ended, fork, forked, handle, scenario, shared, wait};
use crate::common::{Handle, available, candidates, exclusive, title};
use crate::stage::{Area, Case, Kind, NON_CANONICAL, PAGE, Stage, Tail};
use cachewise::policy::{self, Gate, Threshold};
use cachewise::switch::{self, Slot};
use cachewise::variant::Variant;
use cachewise::fallible::{self, Cause};
use cachewise::{bytes, page};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::Relaxed};

const EDGE: usize = 8 * PAGE;

#[derive(Default)]
struct Seen {
    faults: AtomicUsize,
    address: AtomicUsize,
    code: AtomicI32,
}

fn seen() -> &'static Seen {
    static SEEN: OnceLock<&Seen> = OnceLock::new();
    SEEN.get_or_init(shared)
}

/// An application's handler: notes where, and lets the process die of it.
extern "C" fn note_and_die(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let seen = seen();
    seen.faults.fetch_add(1, Relaxed);
    // SAFETY: the kernel's pointer; a fault's information has an address.
    let (address, code) = unsafe { ((*info).si_addr(), (*info).si_code) };
    seen.address.store(address.addr(), Relaxed);
    seen.code.store(code, Relaxed);
    // SAFETY: the default action; the instruction runs again.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Runs `call` in a fork with the application's handler before ours, and checks that it dies at
/// `address`: at that byte, or, where the access is not ours to shape, in its page.
#[track_caller]
fn check_dies(subject: &str, call: impl FnOnce(), address: usize, exact: bool, code: i32) {
    let seen = seen();
    seen.faults.store(0, Relaxed);
    let end = forked(|| {
        handle(libc::SIGSEGV, note_and_die as *const () as usize, libc::SA_SIGINFO, &[]);
        fallible::install().expect("the handlers can be installed");
        call();
        33
    });
    assert_eq!(end, End::Signal(libc::SIGSEGV), "{subject}: 33 is a call that came back");
    assert_eq!(seen.faults.load(Relaxed), 1, "{subject}: times the application was asked");
    assert_eq!(seen.code.load(Relaxed), code, "{subject}: si_code");
    let found = seen.address.load(Relaxed);
    let expected = if exact { address..address + 1 } else { address..address + PAGE };
    assert!(expected.contains(&found), "{subject}: si_addr is {found:#x}, must be {address:#x}");
}

const SEGV_MAPERR: i32 = 1;
const SEGV_ACCERR: i32 = 2;

/// # Safety
///
/// As the handle's calls.
unsafe fn run(handle: Handle, dst: *mut u8, src: *const u8, len: usize) {
    match handle {
        // SAFETY: the caller's promise.
        Handle::Copy(copier) => unsafe { copier.copy_raw(dst, src, len) },
        // SAFETY: the caller's promise.
        Handle::Clear(clearer) => unsafe { clearer.fill_raw(dst, 0, len) },
    }
}

scenario!(
    /// By every variant, at an edge in the middle of the range, at null, and at no address at all.
    a_wild_pointer_is_the_end_at_the_true_address,
    {
        let stage = &mut Stage::new();
        for variant in available() {
            let (handle, exact) = (Handle::of(variant), variant.recoverable());
            for in_src in [false, true] {
                if in_src && matches!(handle, Handle::Clear(_)) {
                    continue;
                }
                stage.all_there();
                let area: &mut Area = if in_src { &mut stage.src } else { &mut stage.dst };
                area.set(8, Kind::NoAccess);
                let edge = area.at(EDGE).addr();
                for (at, len) in [(0, 1), (3, 20), (99, 700), (5000, 17_000)] {
                    let place = |edged| if edged { EDGE - at } else { 9 * PAGE + 5 };
                    let (dst, src) = (stage.dst.at(place(!in_src)), stage.src.at(place(in_src)));
                    let subject = format!("{}, fault at {at} of {len}", title(variant));
                    // SAFETY: not kept, on purpose: the range has a hole.
                    let call = || unsafe { run(handle, dst, src, len) };
                    check_dies(&subject, call, edge, exact, SEGV_ACCERR);
                    if matches!(handle, Handle::Copy(_)) && exact {
                        let found = &stage.dst.bytes()[place(!in_src)..][..at];
                        let expected = &stage.pattern()[place(in_src)..][..at];
                        assert!(found == expected, "{subject}: what came before the fault");
                    }
                }
                if !exact {
                    // Plain Rust checks its pointers in a debug build.
                    continue;
                }
                let no_address = match NON_CANONICAL {
                    Cause::NonCanonical => libc::SI_KERNEL,
                    _ => SEGV_MAPERR,
                };
                for (wild, code) in [(0_u64, SEGV_MAPERR), (1 << 63, no_address)] {
                    // 32 bits hold only the first.
                    let Ok(wild) = usize::try_from(wild) else { continue };
                    let (dst, src) = (stage.dst.at(0), stage.src.at(0));
                    let wild = std::ptr::with_exposed_provenance_mut(wild);
                    let (dst, src) = if in_src { (dst, wild) } else { (wild, src) };
                    let subject = format!("{} at {wild:?}", title(variant));
                    // SAFETY: as above.
                    let call = || unsafe { run(handle, dst, src, 300) };
                    check_dies(&subject, call, 0, exact, code);
                }
            }
        }
    }
);

type Public = unsafe fn(*mut u8, *const u8, usize);

/// The calls below that do not have that shape.
macro_rules! public {
    ($($name:ident($($arg:ident),*) $call:expr;)*) => {$(
        /// # Safety
        ///
        /// As the call it makes.
        unsafe fn $name(dst: *mut u8, src: *const u8, len: usize) {
            #[allow(unused_variables, reason = "a clear has no source")]
            let ($($arg,)*) = (dst, src, len);
            // SAFETY: the caller's promise.
            unsafe { $call }
        }
    )*};
}

public! {
    copy_auto(dst, src, len) bytes::copy_auto_raw(dst, src, len, cachewise::Hints::new());
    batch_copy(dst, src, len) cachewise::batch(|batch| batch.copy_raw(dst, src, len));
    batch_clear(dst, src, len) cachewise::batch(|batch| batch.clear_raw(dst, len));
    clear(dst, src, len) bytes::clear_raw(dst, len);
    fill_nontemporal(dst, src, len) bytes::fill_nontemporal_raw(dst, 7, len);
    clear_page(dst, src, len) page::clear_page_raw(dst, len);
    clear_page_nontemporal(dst, src, len) page::clear_page_nontemporal_raw(dst, len);
}

const PUBLIC: [(&str, Public); 13] = [
    ("copy", bytes::copy_raw),
    ("copy_nontemporal", bytes::copy_nontemporal_raw),
    ("copy_auto", copy_auto),
    ("copy_overlapping", bytes::copy_overlapping_raw),
    ("copy_overlapping_nontemporal", bytes::copy_overlapping_nontemporal_raw),
    ("copy_page", page::copy_page_raw),
    ("copy_page_nontemporal", page::copy_page_nontemporal_raw),
    ("batch copy", batch_copy),
    ("batch clear", batch_clear),
    ("clear", clear),
    ("fill_nontemporal", fill_nontemporal),
    ("clear_page", clear_page),
    ("clear_page_nontemporal", clear_page_nontemporal),
];

scenario!(
    /// The public calls, around the cache and below the threshold.
    every_infallible_call_is_the_end,
    {
        let _alone = exclusive();
        let mut stage = Stage::new();
        stage.dst.set(8, Kind::NoAccess);
        let edge = stage.dst.at(EDGE).addr();
        for threshold in [Threshold::Off, Threshold::Always] {
            Gate::ALL.into_iter().for_each(|gate| policy::set_threshold(gate, threshold));
            for (name, call) in PUBLIC {
                let (dst, src) = (stage.dst.at(7 * PAGE), stage.src.at(0));
                // SAFETY: not kept, on purpose.
                let call = || unsafe { call(dst, src, 2 * PAGE) };
                check_dies(&format!("{name}, {threshold:?}"), call, edge, true, SEGV_ACCERR);
            }
        }
    }
);

scenario!(
    /// Ranges that overlap, nearer than a piece and farther.
    an_overlapping_copy_is_the_end,
    {
        let _alone = exclusive();
        let mut area = Area::new();
        area.set(8, Kind::NoAccess);
        let edge = area.at(EDGE).addr();
        for threshold in [Threshold::Off, Threshold::Always] {
            policy::set_threshold(Gate::CopyNontemporal, threshold);
            for distance in [8, 100, 1000] {
                for down in [true, false] {
                    let (low, high) = (area.at(EDGE - 3000), area.at(EDGE - 3000 + distance));
                    let (dst, src) = if down { (low, high) } else { (high, low) };
                    let subject = format!("{threshold:?}, distance {distance}, down {down}");
                    for (name, call) in [
                        ("copy_overlapping", bytes::copy_overlapping_raw as Public),
                        ("copy_overlapping_nontemporal", bytes::copy_overlapping_nontemporal_raw),
                    ] {
                        // SAFETY: not kept, on purpose.
                        let call = || unsafe { call(dst, src, 4000) };
                        // From the end down the first bad byte is another one of the same page.
                        let subject = format!("{name}, {subject}");
                        check_dies(&subject, call, edge, false, SEGV_ACCERR);
                    }
                }
            }
        }
    }
);

scenario!(
    /// With nobody before us (and with Rust's own handler): the cause that the kernel ends the
    /// process with is the plain access's, as a debugger sees it.
    without_a_handler_the_default_action_has_the_original_cause,
    {
        let mut stage = Stage::new();
        stage.dst.set(8, Kind::NoAccess);
        let edge = stage.dst.at(EDGE);
        for default in [true, false] {
            for variant in available().filter(|v| v.recoverable()) {
                let copy = Handle::of(variant);
                let (dst, src) = (edge.wrapping_sub(77), stage.src.at(3));
                let pid = fork(|| {
                    // SAFETY: the parent traces this process from here on.
                    unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
                    if default {
                        handle(libc::SIGSEGV, libc::SIG_DFL, 0, &[]);
                    }
                    fallible::install().expect("the handlers can be installed");
                    // SAFETY: not kept, on purpose.
                    unsafe { run(copy, dst, src, 500) };
                    33
                });
                let (mut last, mut stops) = ((0, 0), 0);
                let end = loop {
                    let status = wait(pid);
                    if let Some(end) = ended(status) {
                        break end;
                    }
                    // SAFETY: all zeroes are a valid value.
                    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
                    let none: *mut libc::c_void = null_mut();
                    // SAFETY: `info` is valid, and the child is stopped.
                    unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO, pid, none, &raw mut info) };
                    // SAFETY: a fault's information has an address.
                    last = (info.si_code, unsafe { info.si_addr() }.addr());
                    stops += 1;
                    // SAFETY: lets the stopped child have its signal.
                    unsafe {
                        libc::ptrace(libc::PTRACE_CONT, pid, none, libc::WSTOPSIG(status) as usize)
                    };
                };
                if stops == 0 {
                    eprintln!("not demonstrated here: the cause of death (no ptrace)");
                    std::process::exit(0);
                }
                assert_eq!(end, End::Signal(libc::SIGSEGV), "{}", title(variant));
                assert_eq!(last, (SEGV_ACCERR, edge.addr()), "{}: cause of death", title(variant));
            }
        }
    }
);

/// Where the pager's pages are, and how many it made present.
static FIRST: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);
static PAGED_IN: AtomicUsize = AtomicUsize::new(0);

/// An application's own pager. A page is present from the first touch on.
extern "C" fn pager(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel's pointer; a fault's information has an address.
    let address = unsafe { (*info).si_addr() }.addr();
    if !(FIRST.load(Relaxed)..END.load(Relaxed)).contains(&address) {
        // SAFETY: the default action.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    PAGED_IN.fetch_add(1, Relaxed);
    let page = address / PAGE * PAGE;
    let both = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a page of the tests' own mapping.
    unsafe { libc::mprotect(std::ptr::with_exposed_provenance_mut(page), PAGE, both) };
}

fn set_pager() {
    handle(libc::SIGSEGV, pager as *const () as usize, libc::SA_SIGINFO, &[]);
}

/// Every variant over pages that the application makes present one by one.
fn check_pager(expected_chain: bool) {
    let mut stage = Stage::new();
    // All pages but those of one area that stay: the pager's range covers both.
    let (low, high) = {
        let (a, b) = (stage.dst.at(0).addr(), stage.src.at(0).addr());
        (a.min(b), a.max(b) + 16 * PAGE)
    };
    FIRST.store(low, Relaxed);
    END.store(high, Relaxed);
    let check = |stage: &mut Stage, variant: &'static Variant| {
        for (in_src, in_dst) in [(true, false), (false, true), (true, true)] {
            let kind = |hidden| if hidden { Kind::NoAccess } else { Kind::ReadWrite };
            let case = Case { dst: PAGE + 100, src: PAGE + 9, len: 12 * PAGE };
            for hide in [false, true] {
                // The pager changes the protection behind the area's back: set it twice.
                stage.src.set_all(|_| kind(hide && in_src));
                stage.dst.set_all(|_| kind(hide && in_dst));
            }
            PAGED_IN.store(0, Relaxed);
            let subject = title(variant);
            let (dst, src) = (stage.dst.at(case.dst), stage.src.at(case.src));
            match Handle::of(variant) {
                Handle::Copy(_) => {
                    stage.prepare_copy(case);
                    // SAFETY: the ranges are there once the pager has been asked.
                    unsafe { run(Handle::of(variant), dst, src, case.len) };
                    stage.check_copy(&subject, case, Tail::Unspecified, None);
                }
                Handle::Clear(_) => {
                    stage.dst.bytes_mut().fill(0x77);
                    // SAFETY: as above.
                    unsafe { run(Handle::of(variant), dst, src, case.len) };
                    let found = &stage.dst.bytes()[case.dst..case.dst + case.len];
                    assert!(found.iter().all(|&byte| byte == 0), "{subject}");
                }
            }
            let sides = usize::from(in_dst)
                + usize::from(in_src && matches!(Handle::of(variant), Handle::Copy(_)));
            let paged_in = PAGED_IN.load(Relaxed);
            assert_eq!(paged_in, 13 * sides, "{subject}: each page is asked for once");
        }
    };
    for variant in available() {
        check(&mut stage, variant);
    }
    // Ours still works, if the pager is not in front of it.
    if expected_chain {
        stage.all_there();
        stage.src.set(0, Kind::Unmapped);
        FIRST.store(0, Relaxed);
        END.store(0, Relaxed);
        let case = Case { dst: 0, src: 0, len: 100 };
        stage.copy("with a pager before us", case, Tail::Unspecified, |dst, src, len| {
            // SAFETY: what exists is the stage's.
            unsafe { fallible::try_copy(dst, src, len) }
        });
    }
}

scenario!(a_pager_installed_before_us_mends_and_the_copy_goes_on, {
    set_pager();
    let token = fallible::install().expect("the handlers can be installed");
    check_pager(true);
    token.check().expect("ours is still in place");
});

scenario!(a_pager_installed_after_us_mends_and_the_copy_goes_on, {
    let token = fallible::install().expect("the handlers can be installed");
    set_pager();
    check_pager(false);
    token.check().expect_err("the pager is in our place");
});

scenario!(
    /// The slots, their first call included, which decides them.
    a_pager_and_the_public_calls,
    {
        let _alone = exclusive();
        set_pager();
        fallible::install().expect("the handlers can be installed");
        let mut stage = Stage::new();
        FIRST.store(stage.dst.at(0).addr().min(stage.src.at(0).addr()), Relaxed);
        END.store(usize::MAX, Relaxed);
        let case = Case { dst: 0, src: 1, len: 15 * PAGE };
        for variant in candidates(Slot::CopyNontemporal) {
            switch::set(Slot::CopyNontemporal, variant).expect("the slot accepts it");
            for threshold in [Threshold::Off, Threshold::Always] {
                policy::set_threshold(Gate::CopyNontemporal, threshold);
                stage.all_there();
                stage.dst.set_all(|_| Kind::NoAccess);
                stage.prepare_copy(case);
                // SAFETY: the ranges are there once the pager has been asked.
                unsafe {
                    bytes::copy_nontemporal_raw(stage.dst.at(0), stage.src.at(1), case.len);
                }
                stage.check_copy(variant.name(), case, Tail::Unspecified, None);
            }
        }
        // Overlapping, near, upwards and downwards.
        for (dst, src) in [(0, 40), (40, 0)] {
            stage.all_there();
            let before = stage.src.bytes().to_vec();
            stage.src.set_all(|_| Kind::NoAccess);
            let len = 10 * PAGE;
            let (to, from) = (stage.src.at(dst), stage.src.at(src));
            // SAFETY: as above.
            unsafe { bytes::copy_overlapping_nontemporal_raw(to, from, len) };
            let found = &stage.src.bytes()[dst..dst + len];
            assert!(found == &before[src..src + len], "overlapping, from {src} to {dst}");
            stage.src.set_all(|_| Kind::ReadWrite);
        }
    }
);
