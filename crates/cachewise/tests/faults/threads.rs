//! Where and when a fault may come: in a handler, on the alternate stack, after fork, in many
//! threads, while others take memory away, while signals arrive.

use crate::child::{End, forked, handle, scenario};
use crate::common::{Handle, Rng, available, title};
use crate::say;
use crate::stage::{Case, Kind, PAGE, PAGES, Pages, Stage, Tail};
use cachewise::fallible::{self, Cause, Side, try_copy};
use cachewise::variant::Variant;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// For what depends on how two threads meet: mostly it takes milliseconds.
const LONGEST: Duration = Duration::from_secs(2);

fn recoverable() -> impl Iterator<Item = &'static Variant> {
    available().filter(|v| v.recoverable())
}

/// A copy that fails at `at` of `len`, by the slot's variant.
fn check_fault(stage: &mut Stage, at: usize, len: usize) {
    let case = Case { dst: 3, src: 8 * PAGE - at, len };
    stage.copy("try_copy", case, Tail::Unspecified, |dst, src, len| {
        // SAFETY: what exists is the stage's.
        unsafe { try_copy(dst, src, len) }
    });
}

fn stage_with_edge() -> Stage {
    let mut stage = Stage::new();
    stage.src.set(8, Kind::NoAccess);
    stage
}

/// What the handler below copies from, and how often it got the right answer.
static BAD: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static RIGHT: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn copies_from_what_is_not_there(_: i32) {
    let mut dst = [0_u8; 300];
    let edge = BAD.load(Relaxed);
    // SAFETY: `dst` is ours.
    let result = unsafe { try_copy(dst.as_mut_ptr(), edge.wrapping_sub(123), dst.len()) };
    CALLS.fetch_add(1, Relaxed);
    let right = result.is_err_and(|fault| {
        fault.copied_bytes() == 123 && fault.cause() == Cause::Protection
    });
    RIGHT.fetch_add(usize::from(right), Relaxed);
}

scenario!(
    /// A handler that interrupts copies, also those that are just being recovered, and has faults
    /// of its own.
    inside_a_signal_handler,
    {
        fallible::install().expect("the handlers can be installed");
        let mut stage = stage_with_edge();
        BAD.store(stage.src.at(8 * PAGE), Relaxed);
        let address = copies_from_what_is_not_there as *const () as usize;
        handle(libc::SIGUSR1, address, 0, &[]);
        // SAFETY: no memory is involved.
        unsafe { libc::raise(libc::SIGUSR1) };
        assert_eq!(RIGHT.load(Relaxed), 1);
        // SAFETY: as above.
        let this = unsafe { libc::pthread_self() };
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    // SAFETY: the thread outlives this scope.
                    unsafe { libc::pthread_kill(this, libc::SIGUSR1) };
                    thread::sleep(Duration::from_micros(20));
                }
            });
            let begin = Instant::now();
            let mut at = 0;
            while CALLS.load(Relaxed) < 2000 && begin.elapsed() < LONGEST {
                at = (at + 37) % 1100;
                check_fault(&mut stage, at, at + 900);
            }
            over.store(true, Relaxed);
        });
        let calls = CALLS.load(Relaxed);
        assert!(calls > 1, "the handler ran only before: the machine is too busy");
        assert_eq!(RIGHT.load(Relaxed), calls);
    }
);

extern "C" fn count(_: i32) {
    CALLS.fetch_add(1, Relaxed);
}

scenario!(
    /// Sent signals that arrive inside a copy are the previous handler's, all of them, and the copy
    /// is complete (case 20).
    a_segv_sent_during_copies_goes_to_the_previous_handler,
    {
        handle(libc::SIGSEGV, count as *const () as usize, 0, &[]);
        handle(libc::SIGBUS, count as *const () as usize, 0, &[]);
        fallible::install().expect("the handlers can be installed");
        let mut stage = Stage::new();
        // SAFETY: no memory is involved.
        let this = unsafe { libc::pthread_self() };
        let (over, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    // One at a time: signals of one number are not queued.
                    let before = CALLS.load(Relaxed);
                    let signal = [libc::SIGSEGV, libc::SIGBUS][before % 2];
                    // SAFETY: the thread outlives this scope.
                    unsafe { libc::pthread_kill(this, signal) };
                    sent.fetch_add(1, Relaxed);
                    while CALLS.load(Relaxed) == before {
                        thread::yield_now();
                    }
                }
            });
            for variant in recoverable() {
                let case = Case { dst: 5, src: 9, len: (PAGES - 1) * PAGE };
                let enough = CALLS.load(Relaxed) + 10;
                let begin = Instant::now();
                while CALLS.load(Relaxed) < enough && begin.elapsed() < LONGEST {
                    match Handle::of(variant) {
                        Handle::Copy(copier) => stage.copy(
                            &title(variant),
                            case,
                            Tail::Unspecified,
                            // SAFETY: all of it is there.
                            |dst, src, len| unsafe { copier.try_copy_raw(dst, src, len) },
                        ),
                        Handle::Clear(clearer) => {
                            stage.fill(&title(variant), (case.dst, case.len), 0, |dst, len| {
                                // SAFETY: as above.
                                unsafe { clearer.try_fill_raw(dst, 0, len) }
                            });
                        }
                    }
                }
            }
            over.store(true, Relaxed);
        });
        let (sent, calls) = (sent.load(Relaxed), CALLS.load(Relaxed));
        assert_eq!(sent, calls, "signals sent and handled");
        let enough = 10 * recoverable().count();
        assert!(calls >= enough, "{calls} signals, wanted {enough}: the machine is too busy");
    }
);

scenario!(
    /// The same with the default action before us.
    a_segv_sent_during_copies_is_the_end_by_default,
    {
        handle(libc::SIGSEGV, libc::SIG_DFL, 0, &[]);
        fallible::install().expect("the handlers can be installed");
        let mut stage = stage_with_edge();
        let pid = std::process::id();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            // SAFETY: no memory is involved.
            unsafe { libc::kill(pid as i32, libc::SIGSEGV) };
        });
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(10) {
            check_fault(&mut stage, 500, 1000);
        }
    },
    |ended| ended.check_died_of(libc::SIGSEGV)
);

/// Whether the handler below ran on the thread's alternate stack.
static ON_ALTERNATE: AtomicUsize = AtomicUsize::new(usize::MAX);

extern "C" fn where_am_i(signal: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: all zeroes are a valid value.
    let mut stack: libc::stack_t = unsafe { std::mem::zeroed() };
    // SAFETY: with no new stack the call only writes the present one.
    unsafe { libc::sigaltstack(null(), &mut stack) };
    let here = (&raw const stack).addr();
    let bounds = stack.ss_sp.addr()..stack.ss_sp.addr() + stack.ss_size;
    let on = stack.ss_flags & libc::SS_ONSTACK != 0 && bounds.contains(&here);
    ON_ALTERNATE.store(usize::from(on), Relaxed);
    assert_eq!(signal, libc::SIGSEGV);
}

scenario!(
    /// It is used where the thread has one, and not needed where it hasn't.
    the_alternate_stack_is_respected,
    {
        // A handler that did not ask for it: it runs where ours does.
        handle(libc::SIGSEGV, where_am_i as *const () as usize, libc::SA_SIGINFO, &[]);
        fallible::install().expect("the handlers can be installed");
        let check = |expected| {
            ON_ALTERNATE.store(usize::MAX, Relaxed);
            // SAFETY: no memory is involved.
            unsafe { libc::raise(libc::SIGSEGV) };
            assert_eq!(ON_ALTERNATE.load(Relaxed), expected, "on the alternate stack");
            check_fault(&mut stage_with_edge(), 77, 100);
        };
        // Rust gives its threads one.
        thread::spawn(move || {
            check(1);
            // SAFETY: all zeroes are a valid value.
            let mut none: libc::stack_t = unsafe { std::mem::zeroed() };
            none.ss_flags = libc::SS_DISABLE;
            // SAFETY: no handler runs.
            let result = unsafe { libc::sigaltstack(&none, null_mut()) };
            assert_eq!(result, 0, "sigaltstack: {}", std::io::Error::last_os_error());
            check(0);
        })
        .join()
        .expect("both stacks do");
    }
);

scenario!(
    /// With hardly any stack left a fault is recovered on the alternate one.
    a_fault_near_the_end_of_the_stack,
    {
        fallible::install().expect("the handlers can be installed");
        #[inline(never)]
        fn down(until: usize, edge: *mut u8) -> u8 {
            let mut frame = std::hint::black_box([0_u8; 256]);
            if frame.as_ptr().addr() > until {
                return down(until, edge).wrapping_add(std::hint::black_box(frame[7]));
            }
            // SAFETY: `frame` is ours.
            let fault = unsafe { try_copy(frame.as_mut_ptr(), edge.wrapping_sub(10), 200) };
            assert_eq!(fault.map_err(|fault| fault.copied_bytes()), Err(10));
            frame[7]
        }
        let stage = stage_with_edge();
        let edge = stage.src.at(8 * PAGE).expose_provenance();
        let thread = thread::Builder::new().stack_size(128 << 10).spawn(move || {
            // SAFETY: all zeroes are a valid value.
            let mut attributes: libc::pthread_attr_t = unsafe { std::mem::zeroed() };
            let (mut low, mut len) = (null_mut(), 0);
            // SAFETY: the pointers are valid, and the thread is this one.
            unsafe {
                libc::pthread_getattr_np(libc::pthread_self(), &mut attributes);
                libc::pthread_attr_getstack(&attributes, &mut low, &mut len);
            }
            // Less than a signal frame with the vector registers in it, enough for the copy.
            down(low.addr() + PAGE + 2500, std::ptr::with_exposed_provenance_mut(edge))
        });
        thread.expect("a thread").join().expect("it was recovered");
    }
);

scenario!(after_fork, {
    fallible::install().expect("the handlers can be installed");
    for _ in 0..20 {
        let end = forked(|| {
            let mut stage = stage_with_edge();
            (0..1000).for_each(|at| check_fault(&mut stage, at, at + 100));
            // A fork of the fork.
            let end = forked(|| {
                check_fault(&mut stage, 5, 10);
                7
            });
            assert_eq!(end, End::Exit(7));
            0
        });
        assert_eq!(end, End::Exit(0));
    }
    check_fault(&mut stage_with_edge(), 5, 10);
});

scenario!(eight_threads_at_once, {
    const THREADS: usize = 8;
    let start = std::sync::Barrier::new(THREADS);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let start = &start;
            scope.spawn(move || {
                let mut stage = stage_with_edge();
                start.wait();
                // Also the installation, by all of them at once.
                fallible::install().expect("the handlers can be installed");
                for i in 0..4000 {
                    let at = (i * 13 + thread) % 1100;
                    check_fault(&mut stage, at, at + 1 + i % 700);
                }
            });
        }
    });
});

/// Takes pages away and gives them back, until told to stop.
fn flip(pages: &Pages, over: &AtomicBool, unmap: bool) {
    let mut rng = Rng::new(9);
    while !over.load(Relaxed) {
        let page = 1 + rng.below(5);
        match (unmap, rng.below(2) == 0) {
            (true, true) => pages.unmap(page),
            (true, false) => pages.map(page),
            (false, allowed) => pages.allow(page, allowed),
        }
    }
    for page in 0..PAGES {
        pages.map(page);
    }
}

scenario!(
    /// Memory comes and goes while it is copied: what is called copied is right, and by every
    /// variant both answers are seen.
    memory_that_others_take_away_and_give_back,
    {
        fallible::install().expect("the handlers can be installed");
        let mut short = Vec::new();
        for unmap in [false, true] {
            for variant in recoverable() {
                let mut stage = Stage::new();
                let Handle::Copy(copier) = Handle::of(variant) else { continue };
                for in_src in [true, false] {
                    let over = AtomicBool::new(false);
                    let (mut complete, mut partly) = (0, 0);
                    let pages = if in_src { stage.src.pages() } else { stage.dst.pages() };
                    thread::scope(|scope| {
                        scope.spawn(|| flip(&pages, &over, unmap));
                        let begin = Instant::now();
                        while (complete < 50 || partly < 50) && begin.elapsed() < LONGEST {
                            let case = Case { dst: 100, src: 33, len: 6 * PAGE + 500 };
                            stage.prepare_copy(case);
                            let (dst, src) = (stage.dst.at(case.dst), stage.src.at(case.src));
                            // SAFETY: what exists is the stage's.
                            let result = unsafe { copier.try_copy_raw(dst, src, case.len) };
                            let copied = match result {
                                Ok(()) => {
                                    complete += 1;
                                    case.len
                                }
                                Err(fault) => {
                                    partly += 1;
                                    let side =
                                        if in_src { Side::Source } else { Side::Destination };
                                    assert_eq!(fault.side(), side, "{}", title(variant));
                                    assert!(fault.residue_bytes() > 0);
                                    fault.copied_bytes()
                                }
                            };
                            let found = &stage.dst.bytes()[case.dst..case.dst + copied];
                            let expected = &stage.pattern()[case.src..case.src + copied];
                            assert!(found == expected, "{}: {copied} bytes", title(variant));
                        }
                        over.store(true, Relaxed);
                    });
                    if complete == 0 || partly == 0 {
                        short.push((title(variant), unmap, in_src, complete, partly));
                    }
                }
                stage.check_source();
            }
        }
        if !short.is_empty() {
            eprintln!("not demonstrated here: both answers by {short:?} (complete, partly)");
        }
    }
);

#[test]
fn what_is_tested_by_whom() {
    let count = recoverable().count();
    say!("signals: {count} recoverable variants");
    assert!(count > 0);
}
