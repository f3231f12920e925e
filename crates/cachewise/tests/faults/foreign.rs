//! Other people's handlers. What reaches them, and what becomes of the process, is compared with
//! the same in a process in which we were never installed: as if we were not there (case 21).

use crate::child::{End, forked, handle, mask_bits, scenario, shared};
use crate::stage::{Kind, PAGE, Stage, Tail, map, memory_file};
use cachewise::fallible::{self, try_copy};
use std::fs::File;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicUsize, Ordering::Relaxed};

const RECORDS: usize = 8;
const FIELDS: usize = 6;

/// What a handler was given, call by call.
struct Log {
    calls: AtomicUsize,
    records: [[AtomicI64; FIELDS]; RECORDS],
}

fn log() -> &'static Log {
    static LOG: OnceLock<&Log> = OnceLock::new();
    LOG.get_or_init(shared)
}

fn record(fields: [i64; FIELDS]) {
    let call = log().calls.fetch_add(1, Relaxed);
    if let Some(record) = log().records.get(call) {
        record.iter().zip(fields).for_each(|(to, field)| to.store(field, Relaxed));
    }
}

/// The page whose fault a handler mends, and the file for it.
static PLACE: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static FILE: OnceLock<File> = OnceLock::new();

/// What makes the instruction succeed: the file grows again, or the page gets its protection.
fn mend(signal: i32) {
    if signal == libc::SIGBUS {
        let file = FILE.get().expect("made before");
        file.set_len(PAGE as u64).expect("it can grow");
    } else {
        // SAFETY: a page of the tests' own mapping.
        unsafe { libc::mprotect(PLACE.load(Relaxed).cast(), PAGE, libc::PROT_READ) };
    }
}

extern "C" fn with_info(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel's pointer.
    let code = unsafe { (*info).si_code };
    // SAFETY: a fault has an address, another signal a sender and perhaps a value.
    let (address, pid, value) = unsafe {
        if code > 0 {
            ((*info).si_addr().addr(), 0, 0)
        } else {
            (0, (*info).si_pid(), (*info).si_value().sival_ptr.addr())
        }
    };
    // SAFETY: all zeroes are a valid value.
    let mut stack: libc::stack_t = unsafe { std::mem::zeroed() };
    // SAFETY: with no new stack the call only writes the present one.
    unsafe { libc::sigaltstack(std::ptr::null(), &mut stack) };
    assert!(!context.is_null(), "the context");
    let value = if code == libc::SI_QUEUE { value as i64 } else { 0 };
    record([
        i64::from(signal),
        i64::from(code),
        address as i64,
        // Whether we sent it, not who we are.
        // SAFETY: no memory is involved.
        i64::from(pid == unsafe { libc::getpid() }),
        value,
        mask_bits() as i64,
    ]);
    if code > 0 {
        mend(signal);
    }
}

extern "C" fn plain(signal: i32) {
    record([i64::from(signal), 0, 0, 0, 0, mask_bits() as i64]);
    mend(signal);
}

#[derive(Clone, Copy, Debug)]
struct Before {
    address: usize,
    flags: i32,
    masked: &'static [i32],
}

fn handlers() -> Vec<(&'static str, Before)> {
    let with_info = with_info as *const () as usize;
    let plain = plain as *const () as usize;
    let before = |address, flags, masked| Before { address, flags, masked };
    const USERS: &[i32] = &[libc::SIGUSR1, libc::SIGUSR2];
    const ITSELF: &[i32] = &[libc::SIGSEGV, libc::SIGBUS];
    let (info, nodefer, reset) = (libc::SA_SIGINFO, libc::SA_NODEFER, libc::SA_RESETHAND);
    vec![
        ("SA_SIGINFO", before(with_info, info, &[])),
        ("one argument", before(plain, 0, &[])),
        ("SA_NODEFER", before(with_info, info | nodefer, &[])),
        ("one argument, SA_NODEFER", before(plain, nodefer, &[])),
        ("SA_NODEFER, itself masked", before(with_info, info | nodefer, ITSELF)),
        ("SA_RESETHAND", before(with_info, info | reset, &[])),
        ("one argument, SA_RESETHAND", before(plain, reset, &[])),
        ("sa_mask", before(with_info, info, USERS)),
        ("SA_ONSTACK", before(with_info, info | libc::SA_ONSTACK, USERS)),
        ("SA_RESTART", before(with_info, info | libc::SA_RESTART, USERS)),
        ("SIG_IGN", before(libc::SIG_IGN, 0, &[])),
        ("SIG_DFL", before(libc::SIG_DFL, 0, &[])),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// By an instruction of ours that is in no table.
    Fault,
    Kill,
    /// To this thread.
    Raise,
    /// With a value.
    Queue,
    /// The kernel's late report of poisoned memory that nobody has touched: positive as a fault's,
    /// and all the same sent.
    LatePoison,
}

/// Leaves the page so that a plain read of it raises the signal.
fn break_page(signal: i32) {
    if signal == libc::SIGBUS {
        FILE.get().expect("made before").set_len(0).expect("it can shrink");
    } else {
        // SAFETY: a page of the tests' own mapping.
        unsafe { libc::mprotect(PLACE.load(Relaxed).cast(), PAGE, libc::PROT_NONE) };
    }
}

fn cause(event: Event, signal: i32) {
    // SAFETY: sends this process, or this thread, a signal; no memory is involved.
    unsafe {
        match event {
            Event::Fault => {
                break_page(signal);
                PLACE.load(Relaxed).read_volatile();
            }
            Event::Kill => _ = libc::kill(libc::getpid(), signal),
            Event::Raise => _ = libc::raise(signal),
            Event::Queue => {
                let sival_ptr = std::ptr::without_provenance_mut(0x1234_5678);
                libc::sigqueue(libc::getpid(), signal, libc::sigval { sival_ptr });
            }
            Event::LatePoison => {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                (info.si_signo, info.si_code) = (libc::SIGBUS, libc::BUS_MCEERR_AO);
                let pid = libc::getpid();
                let sent =
                    libc::syscall(libc::SYS_rt_sigqueueinfo, pid, libc::SIGBUS, &raw const info);
                assert_eq!(sent, 0, "rt_sigqueueinfo: {}", std::io::Error::last_os_error());
            }
        }
    }
}

/// What was seen in a process of its own: how it ended, and each call of the handler.
fn observe(
    signal: i32,
    before: Before,
    events: &[Event],
    stage: Option<&mut Stage>,
) -> (End, Vec<Vec<i64>>) {
    let log = log();
    log.calls.store(0, Relaxed);
    // The one before may have died with the file shortened.
    FILE.get().expect("made before").set_len(PAGE as u64).expect("it can grow");
    let end = forked(|| {
        handle(signal, before.address, before.flags, before.masked);
        if stage.is_some() {
            fallible::install().expect("the handlers can be installed");
        }
        let mask = mask_bits();
        for &event in events {
            cause(event, signal);
            assert_eq!(mask_bits(), mask, "the mask after {event:?}");
        }
        if let Some(stage) = stage {
            // All that was not ours; what is still is.
            stage.src.set(8, if signal == libc::SIGBUS { Kind::BeyondEnd } else { Kind::NoAccess });
            let case = crate::stage::Case { dst: 9, src: 8 * PAGE - 99, len: 1000 };
            stage.copy("after the events", case, Tail::Unspecified, |dst, src, len| {
                // SAFETY: what exists is the stage's.
                unsafe { try_copy(dst, src, len) }
            });
            stage.all_there();
        }
        0
    });
    let calls = log.calls.load(Relaxed).min(RECORDS);
    let record = |fields: &[AtomicI64; FIELDS]| fields.iter().map(|f| f.load(Relaxed)).collect();
    (end, log.records[..calls].iter().map(record).collect())
}

scenario!(a_handler_before_us_is_called_as_if_we_were_not_there, {
    use Event::{Fault, Kill, LatePoison, Queue, Raise};
    FILE.set(memory_file(PAGE)).expect("set once");
    let file = FILE.get().expect("just set");
    PLACE.store(map(null_mut(), PAGE, libc::PROT_READ, file, 0), Relaxed);
    let mut stage = Stage::new();
    let mut compared = 0;
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        for (name, before) in handlers() {
            for events in [
                &[Fault][..],
                &[Fault, Fault],
                &[Kill],
                &[Kill, Kill],
                &[Raise, Fault],
                &[Queue],
                &[Fault, Queue, Fault, Raise],
                &[LatePoison],
                &[LatePoison, Fault],
            ] {
                if signal != libc::SIGBUS && events[0] == LatePoison {
                    continue;
                }
                let without = observe(signal, before, events, None);
                let with = observe(signal, before, events, Some(&mut stage));
                assert_eq!(with, without, "{name}, signal {signal}, {events:?}: with us (left)");
                compared += 1;
            }
        }
    }
    assert!(compared > 100);
    // The comparison has seen something: four calls, and both ways for a process to end.
    let (_, noted) = handlers()[0];
    let (end, calls) =
        observe(libc::SIGSEGV, noted, &[Fault, Queue, Fault, Raise], Some(&mut stage));
    assert_eq!((end, calls.len()), (End::Exit(0), 4));
    assert_eq!(calls[1][4], 0x1234_5678, "the value that came with the signal");
    let ignored = Before { address: libc::SIG_IGN, flags: 0, masked: &[] };
    let default = Before { address: libc::SIG_DFL, ..ignored };
    let stage = &mut stage;
    assert_eq!(observe(libc::SIGSEGV, ignored, &[Kill], Some(stage)).0, End::Exit(0));
    assert_eq!(
        observe(libc::SIGSEGV, default, &[Kill], Some(stage)).0,
        End::Signal(libc::SIGSEGV)
    );
    assert_eq!(
        observe(libc::SIGSEGV, ignored, &[Fault], Some(stage)).0,
        End::Signal(libc::SIGSEGV)
    );
});

/// What was there before the handler installed last.
static CHAINED_TO: OnceLock<libc::sigaction> = OnceLock::new();

extern "C" fn chaining(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    log().calls.fetch_add(1, Relaxed);
    let address = CHAINED_TO.get().expect("set before").sa_sigaction;
    type WithInfo = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
    // SAFETY: ours was installed with SA_SIGINFO.
    let previous = unsafe { std::mem::transmute::<usize, WithInfo>(address) };
    previous(signal, info, context);
}

scenario!(a_handler_after_us_that_chains_keeps_recovery, {
    let token = fallible::install().expect("the handlers can be installed");
    token.check().expect("nobody has come yet");
    let old = handle(libc::SIGSEGV, chaining as *const () as usize, libc::SA_SIGINFO, &[]);
    assert!(CHAINED_TO.set(old).is_ok());
    let mut stage = Stage::new();
    stage.src.set(8, Kind::NoAccess);
    let case = crate::stage::Case { dst: 0, src: 8 * PAGE - 200, len: 500 };
    stage.copy("behind a chain", case, Tail::Unspecified, |dst, src, len| {
        // SAFETY: what exists is the stage's.
        unsafe { try_copy(dst, src, len) }
    });
    assert!(log().calls.load(Relaxed) > 0, "the later handler was asked first");
    let replaced = token.check().expect_err("whether it chains can't be told");
    assert!(replaced.to_string().contains("SIGSEGV"), "{replaced}");
    // Installing again changes nothing: no loop of the two.
    fallible::install().expect("already installed");
    stage.copy("behind a chain", case, Tail::Unspecified, |dst, src, len| {
        // SAFETY: as above.
        unsafe { try_copy(dst, src, len) }
    });
});

scenario!(
    /// It takes all faults, ours too; `check` is there to find it.
    a_handler_after_us_that_does_not_chain_is_found,
    {
        let token = fallible::install().expect("the handlers can be installed");
        for signal in [libc::SIGSEGV, libc::SIGBUS] {
            token.check().expect("ours are in place");
            let old = handle(signal, libc::SIG_DFL, 0, &[]);
            let replaced = token.check().expect_err("ours is not in place");
            let name = if signal == libc::SIGBUS { "SIGBUS" } else { "SIGSEGV" };
            assert!(replaced.to_string().contains(name), "{replaced}");
            // SAFETY: what was there before.
            unsafe { libc::sigaction(signal, &old, null_mut()) };
        }
        token.check().expect("ours are back");
        handle(libc::SIGSEGV, libc::SIG_DFL, 0, &[]);
        let end = forked(|| {
            // SAFETY: `dst` is ours.
            let _ = unsafe { try_copy([0_u8; 8].as_mut_ptr(), std::ptr::null(), 8) };
            0
        });
        assert_eq!(end, End::Signal(libc::SIGSEGV), "it has replaced ours indeed");
    }
);

scenario!(check_thread_tells_whether_the_signals_are_blocked, {
    let token = fallible::install().expect("the handlers can be installed");
    token.check_thread().expect("nothing is blocked");
    for (signal, name) in [(libc::SIGSEGV, "SIGSEGV"), (libc::SIGBUS, "SIGBUS")] {
        // SAFETY: all zeroes are a valid set.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: a valid set and signal.
        unsafe { libc::sigaddset(&mut set, signal) };
        // SAFETY: as above.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, null_mut()) };
        let blocked = token.check_thread().expect_err("it is blocked");
        assert!(blocked.to_string().contains(name), "{blocked}");
        let inherited = std::thread::spawn(move || token.check_thread().is_err()).join();
        assert!(inherited.expect("it does not panic"), "a thread inherits the mask");
        // SAFETY: as above.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, null_mut()) };
        token.check_thread().expect("unblocked again");
    }
});

#[expect(unconditional_recursion, reason = "it is to overflow the stack")]
#[inline(never)]
fn overflow(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 64]);
    overflow(depth + 1) + frame[std::hint::black_box(3)]
}

scenario!(
    /// In a thread and in a copy of the words that it is known by.
    rust_still_says_that_the_stack_has_overflowed,
    {
        fallible::install().expect("the handlers can be installed");
        let thread = std::thread::Builder::new().name("deep".into()).stack_size(256 << 10);
        let thread = thread.spawn(|| overflow(0)).expect("a thread");
        let _ = thread.join();
    },
    |ended| {
        ended.check_died_of(libc::SIGABRT);
        assert!(ended.stderr.contains("has overflowed its stack"), "{}", ended.stderr);
        assert!(ended.stderr.contains("deep"), "it names the thread: {}", ended.stderr);
    }
);

scenario!(
    /// A segmentation fault of an ordinary Rust program, with Rust's own handler before ours.
    any_other_fault_of_a_rust_program_is_its_end,
    {
        fallible::install().expect("the handlers can be installed");
        // SAFETY: not kept, on purpose.
        unsafe { std::ptr::without_provenance_mut::<u8>(64).write_volatile(1) };
    },
    |ended| ended.check_died_of(libc::SIGSEGV)
);
