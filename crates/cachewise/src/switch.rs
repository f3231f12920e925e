//! The switch: which variant serves each slot, changed at run time without a restart.
//!
//! Clearing and copying are chosen apart, and so are pages and bytes, temporal and non-temporal:
//! what is best for one says nothing about another (seeds rows M10, F7). A call through a slot
//! costs one relaxed load of a `&'static Variant`.
//!
//! Who decides, the later over the earlier:
//!
//! 1. *Default*: the preferred variant among those that can run. With feature `std` the CPU is
//!    asked on the first call through any slot. Without `std` it is not asked until [`detect`] is
//!    called: until then only general registers and the features the build requires are used, so
//!    that a kernel can copy before it has set up its vector unit (seeds row M4).
//! 2. *Profile*: what was measured on this machine ([`profile`](crate::profile)).
//! 3. *Environment*, when [`init`](crate::init) is called (feature `std`).
//! 4. *Api*: [`set`].

pub use crate::slot::Slot;

use crate::arch::{self, Outcome, Returned};
use crate::available::{self, Disabled};
use crate::cpu::{Cpu, Geometry, Reader};
use crate::error::Error;
use crate::variant::{self, Operation, RegisterClass, Store, StoresOnce, Variant};
use core::fmt;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering::Relaxed};

/// Who chose the variant or threshold in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DecidedBy {
    /// The library: the preferred variant among the available ones.
    Default,
    /// The size of this machine's caches.
    CacheGeometry,
    /// A [`Profile`](crate::profile::Profile) that was measured on this machine.
    Profile,
    /// An environment variable, read by [`init`](crate::init).
    Environment,
    /// A call.
    Api,
}

impl DecidedBy {
    pub(crate) fn from_u8(value: u8) -> Self {
        [Self::Default, Self::CacheGeometry, Self::Profile, Self::Environment]
            .into_iter()
            .find(|by| *by as u8 == value)
            .unwrap_or(Self::Api)
    }
}

impl DecidedBy {
    /// Whether a profile may not change what this one decided.
    pub(crate) fn outranks_profile(self) -> bool {
        self as u8 > Self::Profile as u8
    }
}

impl fmt::Display for DecidedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Default => "default",
            Self::CacheGeometry => "cache geometry",
            Self::Profile => "profile",
            Self::Environment => "environment",
            Self::Api => "api",
        })
    }
}

/// Which variant serves a slot, and who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Why {
    /// The slot asked about.
    pub slot: Slot,
    /// The variant that serves it.
    pub variant: &'static Variant,
    /// Who chose it.
    pub decided_by: DecidedBy,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={} (by {})", self.slot, self.variant.name(), self.decided_by)
    }
}

/// A slot's state. What is looked up in the registry is looked up when the slot is set, not when
/// it is used.
struct Cell {
    variant: AtomicPtr<Variant>,
    /// The variant's sibling that prefetches its source, or the variant where it has none.
    source_nontemporal: AtomicPtr<Variant>,
    /// What serves a `_nontemporal` slot below its threshold: ordinary stores, each byte once.
    below_threshold: AtomicPtr<Variant>,
    decided_by: AtomicU8,
}

impl Cell {
    const fn undecided(row: &'static Variant) -> Self {
        let row = ptr::from_ref(row).cast_mut();
        Self {
            variant: AtomicPtr::new(row),
            source_nontemporal: AtomicPtr::new(row),
            below_threshold: AtomicPtr::new(row),
            decided_by: AtomicU8::new(DecidedBy::Default as u8),
        }
    }

    // Relaxed suffices everywhere: rows are immutable statics, so a stale one is still a valid
    // one, and nothing else is published with it.
    #[inline(always)]
    fn load(from: &AtomicPtr<Variant>) -> &'static Variant {
        // SAFETY: a cell is only ever given addresses of `&'static Variant`s.
        unsafe { &*from.load(Relaxed) }
    }

    fn store(&self, slot: Slot, variant: &'static Variant, decided_by: DecidedBy) {
        let cell = |row: &'static Variant| ptr::from_ref(row).cast_mut();
        self.below_threshold.store(cell(below_threshold(slot)), Relaxed);
        self.source_nontemporal.store(cell(with_source_prefetch(variant)), Relaxed);
        self.variant.store(cell(variant), Relaxed);
        self.decided_by.store(decided_by as u8, Relaxed);
    }

    /// Stores the library's choice unless somebody else has decided meanwhile.
    fn store_if_undecided(&self, slot: Slot) {
        let undecided = ptr::from_ref(&UNDECIDED[slot as usize]).cast_mut();
        let variant = preferred(slot);
        for (cell, row) in [
            (&self.below_threshold, below_threshold(slot)),
            (&self.source_nontemporal, with_source_prefetch(variant)),
            (&self.variant, variant),
        ] {
            let row = ptr::from_ref(row).cast_mut();
            // An error means that another thread has set it: its word stands.
            let _ = cell.compare_exchange(undecided, row, Relaxed, Relaxed);
        }
    }
}

/// Until a slot is decided it holds a row whose routine decides all slots and then does the call.
macro_rules! undecided {
    ($($index:literal $make:ident $first:ident),* $(,)?) => {
        static UNDECIDED: [Variant; Slot::ALL.len()] = [$(
            Variant::$make("undecided", Store::Temporal, RegisterClass::General, $first::<$index>)
        ),*];
        static CELLS: [Cell; Slot::ALL.len()] = [$(Cell::undecided(&UNDECIDED[$index])),*];
    };
}

undecided! {
    0 clearing first_clear, 1 copying first_copy, 2 clearing first_clear, 3 copying first_copy,
    4 clearing first_clear, 5 copying first_copy, 6 clearing first_clear, 7 copying first_copy,
}

unsafe extern "C" fn first_copy<const SLOT: usize>(
    dst: *mut u8,
    src: *const u8,
    len: usize,
) -> Returned {
    // SAFETY: the decided variant does this slot's operation and can run here; the rest are the
    // caller's promises.
    unsafe { get(Slot::ALL[SLOT]).run_copy(dst, src, len) };
    Outcome::DONE.returned()
}

unsafe extern "C" fn first_clear<const SLOT: usize>(
    dst: *mut u8,
    pattern: u64,
    len: usize,
) -> Returned {
    // SAFETY: the decided variant does this slot's operation and can run here; the rest are the
    // caller's promises.
    unsafe { get(Slot::ALL[SLOT]).run_fill(dst, pattern as u8, len) };
    Outcome::DONE.returned()
}

#[inline(always)]
fn cell(slot: Slot) -> &'static Cell {
    &CELLS[slot as usize]
}

/// What serves the slot right now: for calls. It may be the row that decides.
#[inline(always)]
pub(crate) fn serving(slot: Slot) -> &'static Variant {
    Cell::load(&cell(slot).variant)
}

/// The same for callers that don't want the source drawn in deeper than needed.
#[inline]
pub(crate) fn serving_source_nontemporal(slot: Slot) -> &'static Variant {
    Cell::load(&cell(slot).source_nontemporal)
}

/// What serves a `_nontemporal` slot below its threshold.
#[inline(always)]
pub(crate) fn serving_below_threshold(slot: Slot) -> &'static Variant {
    Cell::load(&cell(slot).below_threshold)
}

/// The variant that serves the slot. Decides first, if nobody has.
pub fn get(slot: Slot) -> &'static Variant {
    if ptr::eq(serving(slot), &UNDECIDED[slot as usize]) {
        Slot::ALL.into_iter().for_each(|slot| cell(slot).store_if_undecided(slot));
    }
    serving(slot)
}

/// Which variant serves the slot, and who decided.
pub fn why(slot: Slot) -> Why {
    let variant = get(slot);
    let decided_by = DecidedBy::from_u8(cell(slot).decided_by.load(Relaxed));
    Why { slot, variant, decided_by }
}

/// Lets `variant` serve the slot from now on, in all threads. Calls under way finish as they were.
///
/// ```
/// use cachewise::switch::{self, Slot};
/// use cachewise::variant;
///
/// let slot = Slot::ClearPage;
/// let variant = variant::all().iter().find(|v| slot.accepts(v) && v.unavailable().is_none());
/// switch::set(slot, variant.expect("every build has one"))?;
/// assert_eq!(switch::why(slot).decided_by.to_string(), "api");
/// switch::reset(slot);
/// # Ok::<(), cachewise::Error>(())
/// ```
///
/// # Errors
///
/// The slot stays as it is, and the message lists what would be accepted, if the variant does the
/// other operation, breaks the slot's promise, or cannot run here.
pub fn set(slot: Slot, variant: &'static Variant) -> Result<(), Error> {
    check(slot, variant, Disabled::load())?;
    cell(slot).store(slot, variant, DecidedBy::Api);
    Ok(())
}

/// [`set`] by the variant's name.
///
/// # Errors
///
/// As [`set`], and [`Error::UnknownVariant`].
pub fn set_by_name(slot: Slot, name: &str) -> Result<(), Error> {
    set(slot, variant::find(slot.operation(), name)?)
}

/// Gives the slot back to the library's own choice.
pub fn reset(slot: Slot) {
    cell(slot).store(slot, preferred(slot), DecidedBy::Default);
}

/// What serves the slot's calls below its threshold, for a `_nontemporal` slot: the preferred
/// variant that stores ordinarily and each byte once.
pub fn get_below_threshold(slot: Slot) -> &'static Variant {
    get(slot);
    serving_below_threshold(slot)
}

/// A variant for each slot, or none.
pub(crate) type Choices = [Option<&'static Variant>; Slot::ALL.len()];

/// Lets the variants, which have been [checked](check), serve wherever neither the environment nor
/// a call has decided; a slot without one goes back to the library's own choice there.
pub(crate) fn set_by_profile(choices: &Choices) {
    for (slot, choice) in Slot::ALL.into_iter().zip(choices) {
        if DecidedBy::from_u8(cell(slot).decided_by.load(Relaxed)).outranks_profile() {
            continue;
        }
        match choice {
            Some(variant) => cell(slot).store(slot, variant, DecidedBy::Profile),
            None => reset(slot),
        }
    }
}

pub(crate) fn check(
    slot: Slot,
    variant: &'static Variant,
    disabled: Disabled,
) -> Result<(), Error> {
    if variant.operation() != slot.operation() {
        Err(Error::WrongOperation { variant, wanted: slot.operation() })
    } else if !slot.keeps_promise(variant) {
        Err(Error::StoresTwice { variant, slot })
    } else if let Some(because) = available::unavailable_under(variant, disabled) {
        Err(Error::Unavailable { variant, because })
    } else {
        Ok(())
    }
}

/// Tells the library what it may use: the features that `reader` reports and the operating system
/// supports, and no registers beyond `registers`. Slots that nobody else has decided are chosen
/// anew.
///
/// For kernels, whose vector registers belong to user space until saved; with feature `std` it
/// happens by itself on the first call, with all registers.
pub fn detect(reader: &impl Reader, registers: RegisterClass) {
    available::permit(Cpu::detect(reader).usable, registers);
    arch::LINE_BYTES.store(Geometry::detect(reader).line_min().value, Relaxed);
    for slot in Slot::ALL {
        if cell(slot).decided_by.load(Relaxed) == DecidedBy::Default as u8 {
            reset(slot);
        }
    }
}

/// The library's own choice: of the rows that suit the slot and can run, one of the slot's kind of
/// store, and of those the highest preference.
fn preferred(slot: Slot) -> &'static Variant {
    let of_its_kind = |v: &Variant| (v.store() == Store::NonTemporal) == slot.is_nontemporal();
    best(slot, of_its_kind).or_else(|| best(slot, |_| true)).unwrap_or(portable(slot))
}

fn below_threshold(slot: Slot) -> &'static Variant {
    let ordinary =
        |v: &Variant| v.store() != Store::NonTemporal && v.stores_once() == StoresOnce::Always;
    best(slot, ordinary).unwrap_or(portable(slot))
}

pub(crate) fn best(slot: Slot, suits: impl Fn(&Variant) -> bool) -> Option<&'static Variant> {
    variant::all()
        .iter()
        .filter(|v| slot.accepts(v) && suits(v) && v.unavailable().is_none())
        .max_by_key(|v| v.preference())
}

fn portable(slot: Slot) -> &'static Variant {
    match slot.operation() {
        Operation::Copy => &arch::PORTABLE_COPY,
        Operation::Clear => &arch::PORTABLE_CLEAR,
    }
}

/// The row that differs from this one only in prefetching its source, or this one.
fn with_source_prefetch(variant: &'static Variant) -> &'static Variant {
    variant::all()
        .iter()
        .find(|v| {
            v.operation() == variant.operation()
                && v.name().strip_suffix("_prefetchnta") == Some(variant.name())
                && v.unavailable().is_none()
        })
        .unwrap_or(variant)
}

/// What the environment wants of the switch: checked as a whole before anything is applied.
#[cfg(feature = "std")]
pub(crate) struct Plan {
    disabled: Disabled,
    forced: Choices,
}

#[cfg(feature = "std")]
impl Plan {
    pub(crate) fn parse(disable: &str, force: &str) -> Result<Self, Error> {
        let disabled = Disabled::parse(items(disable))?;
        let mut forced = [None; Slot::ALL.len()];
        for item in items(force) {
            let (slot, name) = item
                .split_once('=')
                .ok_or_else(|| Error::NotAnAssignment { item: crate::error::Word::new(item) })?;
            let slot = Slot::from_name(slot.trim())?;
            let variant = variant::find(slot.operation(), name.trim())?;
            check(slot, variant, disabled)?;
            forced[slot as usize] = Some(variant);
        }
        Ok(Self { disabled, forced })
    }

    pub(crate) fn disabled(&self) -> Disabled {
        self.disabled
    }

    pub(crate) fn apply(&self) {
        self.disabled.apply();
        for slot in Slot::ALL {
            match self.forced[slot as usize] {
                Some(variant) => cell(slot).store(slot, variant, DecidedBy::Environment),
                None => reset(slot),
            }
        }
    }
}

#[cfg(feature = "std")]
fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty())
}
