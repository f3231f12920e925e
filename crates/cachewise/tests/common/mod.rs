//! What the tests share: the runner over the registry, guarded memory, the one oracle.
//!
//! No test names a variant. The runner walks `variant::all()`, so a new row is tested by being
//! there, and tests that want a kind of variant ask for its properties. What cannot run on this
//! machine is printed once with its reason, past libtest's capture: a check that didn't happen must
//! not look like one that passed.

#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "each test binary uses its own part of this"
)]

pub mod memory;
pub mod oracle;
pub mod rng;

pub use oracle::{Arena, Shape};
pub use rng::Rng;

use cachewise::policy::{self, Gate};
use cachewise::switch::{self, Slot};
use cachewise::variant::{self, Clearer, Copier, Operation, RegisterClass, Variant};
use std::ffi::OsString;
use std::io::Write as _;
use std::process::Command;
use std::sync::{LazyLock, Mutex, MutexGuard, Once, PoisonError};

/// Prints although the test passes: libtest captures only what goes through `print!`.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => { $crate::common::say_line(format_args!($($words)*)) };
}

pub fn say_line(line: std::fmt::Arguments<'_>) {
    // A closed stderr is no reason to fail a test.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Whether only a part of the cases shall run, `CACHEWISE_TEST_BUDGET=small`: where an emulator takes
/// its time. Every variant, every offset in a block and both sides stay; lengths and alignments are
/// sampled.
pub fn is_small() -> bool {
    static SMALL: LazyLock<bool> =
        LazyLock::new(|| std::env::var("CACHEWISE_TEST_BUDGET").is_ok_and(|word| word == "small"));
    *SMALL
}

/// This test binary, to be run again: by the words of `CACHEWISE_TEST_RUNNER`, an emulator and its
/// arguments, where the system itself cannot start it.
pub fn this_binary() -> Command {
    let this = std::env::current_exe().expect("this binary's path").into_os_string();
    let runner = std::env::var("CACHEWISE_TEST_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace().map(OsString::from).chain([this]);
    let mut command = Command::new(words.next().expect("at least this binary"));
    command.args(words);
    command
}

/// Runs `test` for each row that is `wanted` and can run here; returns how many that were.
///
/// # Panics
///
/// If nothing ran.
pub fn for_each_variant(
    wanted: impl Fn(&Variant) -> bool,
    mut test: impl FnMut(&'static Variant),
) -> usize {
    list_unavailable_once();
    let mut ran = 0;
    for variant in available().filter(|v| wanted(v)) {
        test(variant);
        ran += 1;
    }
    assert!(ran > 0, "no variant of the wanted kind can run here: nothing was tested");
    ran
}

pub fn available() -> impl Iterator<Item = &'static Variant> {
    detect_once();
    variant::all().iter().filter(|v| v.unavailable().is_none())
}

/// Without feature `std` nobody asks the CPU unless told to, as a kernel would here.
fn detect_once() {
    static DETECTED: Once = Once::new();
    if cfg!(not(feature = "std")) {
        DETECTED.call_once(|| switch::detect(&cachewise::cpu::Native, RegisterClass::Vector));
    }
}

fn list_unavailable_once() {
    detect_once();
    static LISTED: Once = Once::new();
    LISTED.call_once(|| {
        for variant in variant::all() {
            if let Some(because) = variant.unavailable() {
                say!("cannot run here: {} {because}", title(variant));
            }
        }
    });
}

/// `copy movnti`: unique in the registry.
pub fn title(variant: &Variant) -> String {
    format!("{} {}", variant.operation(), variant.name())
}

/// A variant ready to be called.
#[derive(Clone, Copy)]
pub enum Handle {
    Copy(Copier),
    Clear(Clearer),
}

impl Handle {
    pub fn of(variant: &'static Variant) -> Self {
        match variant.operation() {
            Operation::Copy => Self::Copy(variant.copier().expect("it copies and can run here")),
            Operation::Clear => Self::Clear(variant.clearer().expect("it clears and can run here")),
        }
    }
}

/// Alone in using the process's slots and thresholds, which are back at their defaults afterwards.
pub struct Exclusive(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

pub fn exclusive() -> Exclusive {
    detect_once();
    static ALONE: Mutex<()> = Mutex::new(());
    // A test that failed while holding it has reset everything in its drop.
    let guard = Exclusive(ALONE.lock().unwrap_or_else(PoisonError::into_inner));
    reset_all();
    guard
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        reset_all();
    }
}

fn reset_all() {
    Slot::ALL.into_iter().for_each(switch::reset);
    Gate::ALL.into_iter().for_each(policy::reset_threshold);
}

/// The rows that may serve the slot and can run here.
pub fn candidates(slot: Slot) -> impl Iterator<Item = &'static Variant> {
    list_unavailable_once();
    available().filter(move |v| slot.accepts(v))
}
