//! Processes to die in.
//!
//! Signal handlers and deaths belong to a process, so each scenario has one: this test binary
//! again, with only the one test, and the environment saying that it is the child. Inside it,
//! `forked` makes cheaper ones.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses its own part of this"
)]

use crate::common::this_binary;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};

const ROLE: &str = "CACHEWISE_TEST_CHILD";

/// `scenario!(name, { in the child }, |ended| { in the parent });` is a test.
macro_rules! scenario {
    ($(#[$doc:meta])* $name:ident, $body:block, $check:expr) => {
        $(#[$doc])*
        #[test]
        fn $name() {
            let path = concat!(module_path!(), "::", stringify!($name));
            // Without the crate's name, as libtest has it.
            let path = path.split_once("::").map_or(path, |(_, path)| path);
            if $crate::child::is(path) {
                $crate::child::limit();
                $body
                // Not by way of libtest: other threads may still run.
                std::process::exit(0);
            }
            let check: fn($crate::child::Ended) = $check;
            check($crate::child::spawn(path));
        }
    };
    ($(#[$doc:meta])* $name:ident, $body:block) => {
        $crate::child::scenario!($(#[$doc])* $name, $body, |ended| ended.check_passed());
    };
}

pub(crate) use scenario;

pub struct Ended {
    pub status: ExitStatus,
    pub stderr: String,
}

impl Ended {
    #[track_caller]
    pub fn check_passed(self) {
        assert!(self.status.success(), "{}; its stderr:\n{}", self.status, self.stderr);
        // What could not be shown there must not go unseen here.
        for line in self.stderr.lines().filter(|line| line.starts_with("not demonstrated")) {
            crate::say!("{line}");
        }
    }

    #[track_caller]
    pub fn check_died_of(&self, signal: i32) {
        let Self { status, stderr } = self;
        assert_eq!(status.signal(), Some(signal), "{status}; its stderr:\n{stderr}");
    }
}

pub fn is(path: &str) -> bool {
    std::env::var(ROLE).is_ok_and(|role| role == path)
}

pub fn spawn(path: &str) -> Ended {
    let output = this_binary()
        .args(["--exact", path, "--nocapture", "--test-threads=1"])
        .env(ROLE, path)
        .stdin(Stdio::null())
        .output()
        .expect("this binary can be run again");
    Ended {
        status: output.status,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// No core files, and an end to what hangs.
pub fn limit() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid limit.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
    // SAFETY: no memory is involved.
    unsafe { libc::alarm(100) };
}

/// How a forked process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exit(i32),
    Signal(i32),
}

/// Runs `body` in a fork of this process; a panic is exit status 101.
pub fn forked(body: impl FnOnce() -> i32) -> End {
    let pid = fork(body);
    loop {
        if let Some(end) = ended(wait(pid)) {
            return end;
        }
    }
}

pub fn fork(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the children of these tests are made by threads that hold no lock, and leave by
    // `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        let body = std::panic::AssertUnwindSafe(body);
        let code = std::panic::catch_unwind(body).unwrap_or(101);
        // SAFETY: ends the process.
        unsafe { libc::_exit(code) }
    }
    pid
}

/// The status of the child's next change.
pub fn wait(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: `status` is valid.
    while unsafe { libc::waitpid(pid, &mut status, 0) } != pid {
        let error = std::io::Error::last_os_error();
        assert_eq!(error.raw_os_error(), Some(libc::EINTR), "waitpid: {error}");
    }
    status
}

pub fn ended(status: i32) -> Option<End> {
    if libc::WIFEXITED(status) {
        Some(End::Exit(libc::WEXITSTATUS(status)))
    } else if libc::WIFSIGNALED(status) {
        Some(End::Signal(libc::WTERMSIG(status)))
    } else {
        None
    }
}

/// Zeroed memory that a fork shares with its parent.
pub fn shared<T>() -> &'static T {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, never unmapped.
    let map =
        unsafe { libc::mmap(std::ptr::null_mut(), size_of::<T>(), protection, flags, -1, 0) };
    assert!(map != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
    // SAFETY: page-aligned and zeroed; `T`s of these tests are atomics.
    unsafe { &*map.cast() }
}

/// A handler with the flags and the mask, for the signal.
pub fn handle(signal: i32, address: usize, flags: i32, masked: &[i32]) -> libc::sigaction {
    // SAFETY: all zeroes are a valid value of both.
    let (mut action, mut old): (libc::sigaction, libc::sigaction) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    action.sa_sigaction = address;
    action.sa_flags = flags;
    for &signal in masked {
        // SAFETY: an initialised set and a valid signal.
        unsafe { libc::sigaddset(&mut action.sa_mask, signal) };
    }
    // SAFETY: valid values; the handlers of these tests have the signatures of their flags.
    let result = unsafe { libc::sigaction(signal, &action, &mut old) };
    assert_eq!(result, 0, "sigaction: {}", std::io::Error::last_os_error());
    old
}

/// The signals that this thread blocks, one bit each.
pub fn mask_bits() -> u64 {
    // SAFETY: all zeroes are a valid set.
    let mut mask: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: with no new set the call only writes the old one.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask) };
    // SAFETY: an initialised set and valid signals.
    (1..=64).filter(|&s| unsafe { libc::sigismember(&mask, s) } == 1).map(|s| 1 << (s - 1)).sum()
}
