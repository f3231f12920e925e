//! The registry: every implementation of every operation, described, listable, callable.
//!
//! One row is one way to copy or to clear by one instruction family. Tests, benches, the switch,
//! the model and the C door walk this one table; no other place lists names. A new variant is one
//! assembly instance and one row beside it, in the architecture's module.
//!
//! A row says what an implementation *is*. Whether it can run here is asked with
//! [`Variant::unavailable`]; [`Variant::copier`] and [`Variant::clearer`] turn an available row
//! into something that can be called.
//!
//! ```
//! use cachewise::variant::{self, Operation};
//!
//! let copier = variant::find(Operation::Copy, "portable")?.copier()?;
//! let mut dst = [0; 5];
//! copier.copy(&mut dst, b"hello");
//! assert_eq!(&dst, b"hello");
//! # Ok::<(), cachewise::Error>(())
//! ```

use crate::arch::{self, ClearRoutine, CopyRoutine};
use crate::cpu::Features;
use crate::destination::{Destination, check_lengths};
use crate::error::{Error, Unavailable, Word};
use crate::{available, run};
use core::fmt;

/// What an implementation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Copies bytes between ranges that do not overlap.
    Copy,
    /// Fills a range with one byte, usually zero.
    Clear,
}

/// How an implementation stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Store {
    /// Ordinary stores: the destination ends up in the cache.
    Temporal,
    /// Stores that go around the cache.
    NonTemporal,
    /// The CPU chooses, by size: the `rep` string instructions.
    Implementation,
}

/// The registers an implementation uses. A kernel that has not saved the vector registers may
/// only use [`RegisterClass::General`] (seeds rows M3, Y6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegisterClass {
    /// General registers only.
    General,
    /// MMX registers; the x87 state is clean again on return.
    Mmx,
    /// Vector registers.
    Vector,
}

/// Whether an implementation prefetches its source by software.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prefetch {
    /// It leaves prefetching to the hardware.
    None,
    /// `prefetchnta` ahead of the loads (seeds rows Y2, Y9).
    Nta,
    /// One `pld` per line of whole pages, two lines ahead (seeds row A1).
    Line,
}

/// When every destination byte is written exactly once (as long as no fault occurs).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoresOnce {
    /// At any length and alignment.
    Always,
    /// When the destination is page-aligned and the length a multiple of the page.
    Pages,
    /// Not promised.
    No,
}

/// One row of the registry. The `&'static` address of a row is its identity.
pub struct Variant {
    name: &'static str,
    store: Store,
    registers: RegisterClass,
    prefetch: Prefetch,
    stores_once: StoresOnce,
    recoverable: bool,
    needs: Features,
    preference: u8,
    code: Code,
}

/// The two entries of a routine: `fenced` is what a call by itself uses, `unfenced` leaves
/// non-temporal stores pending for the one fence at the end of a batch. They are the same routine
/// where the stores are ordinary ones.
#[derive(Clone, Copy)]
pub(crate) enum Code {
    Copy { fenced: CopyRoutine, unfenced: CopyRoutine },
    Clear { fenced: ClearRoutine, unfenced: ClearRoutine },
}

impl Variant {
    pub(crate) const fn copying(
        name: &'static str,
        store: Store,
        registers: RegisterClass,
        routine: CopyRoutine,
    ) -> Self {
        Self::new(name, store, registers, Code::Copy { fenced: routine, unfenced: routine })
    }

    pub(crate) const fn clearing(
        name: &'static str,
        store: Store,
        registers: RegisterClass,
        routine: ClearRoutine,
    ) -> Self {
        Self::new(name, store, registers, Code::Clear { fenced: routine, unfenced: routine })
    }

    pub(crate) const fn new(
        name: &'static str,
        store: Store,
        registers: RegisterClass,
        code: Code,
    ) -> Self {
        Self {
            name,
            store,
            registers,
            prefetch: Prefetch::None,
            stores_once: StoresOnce::No,
            recoverable: true,
            needs: Features::empty(),
            preference: 0,
            code,
        }
    }

    #[allow(dead_code, reason = "only rows with assembly need a feature")]
    pub(crate) const fn needs(mut self, features: Features) -> Self {
        self.needs = features;
        self
    }

    #[allow(dead_code, reason = "only rows with assembly say so")]
    pub(crate) const fn once(mut self, stores_once: StoresOnce) -> Self {
        self.stores_once = stores_once;
        self
    }

    #[allow(dead_code, reason = "only rows with assembly say so")]
    pub(crate) const fn prefetches(mut self, prefetch: Prefetch) -> Self {
        self.prefetch = prefetch;
        self
    }

    pub(crate) const fn unrecoverable(mut self) -> Self {
        self.recoverable = false;
        self
    }

    /// Among the available rows that suit a slot, the highest preference serves it until
    /// something measured or the user decides otherwise. 0: never chosen unasked.
    #[allow(dead_code, reason = "only rows with assembly say so")]
    pub(crate) const fn preferred(mut self, preference: u8) -> Self {
        self.preference = preference;
        self
    }

    /// The name, unique within its operation: `movnti`, `rep_stosq`, `avx512_nt`.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What it does.
    pub const fn operation(&self) -> Operation {
        match self.code {
            Code::Copy { .. } => Operation::Copy,
            Code::Clear { .. } => Operation::Clear,
        }
    }

    /// How it stores.
    pub const fn store(&self) -> Store {
        self.store
    }

    /// The registers it uses.
    pub const fn registers(&self) -> RegisterClass {
        self.registers
    }

    /// Whether it prefetches.
    pub const fn prefetch(&self) -> Prefetch {
        self.prefetch
    }

    /// When it writes each destination byte exactly once.
    pub const fn stores_once(&self) -> StoresOnce {
        self.stores_once
    }

    /// Whether each of its accesses has an exception-table entry.
    pub const fn recoverable(&self) -> bool {
        self.recoverable
    }

    /// The CPU features it needs.
    pub const fn required_features(&self) -> Features {
        self.needs
    }

    pub(crate) const fn preference(&self) -> u8 {
        self.preference
    }

    /// The routine and its entry without the final fence.
    ///
    /// # Safety
    ///
    /// The variant copies: a slot that copies holds no other.
    #[inline(always)]
    pub(crate) unsafe fn copy_code(&self) -> (CopyRoutine, CopyRoutine) {
        match self.code {
            Code::Copy { fenced, unfenced } => (fenced, unfenced),
            // SAFETY: the caller's promise.
            Code::Clear { .. } => unsafe { core::hint::unreachable_unchecked() },
        }
    }

    /// The routine and its entry without the final fence.
    ///
    /// # Safety
    ///
    /// The variant clears: a slot that clears holds no other.
    #[inline(always)]
    pub(crate) unsafe fn clear_code(&self) -> (ClearRoutine, ClearRoutine) {
        match self.code {
            Code::Clear { fenced, unfenced } => (fenced, unfenced),
            // SAFETY: the caller's promise.
            Code::Copy { .. } => unsafe { core::hint::unreachable_unchecked() },
        }
    }

    /// # Safety
    ///
    /// The variant copies and can run here; the ranges are valid for `len` bytes and do not
    /// overlap.
    #[inline(always)]
    pub(crate) unsafe fn run_copy(&self, dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: the caller's promises.
        unsafe { run::copy(self.copy_code().0, dst, src, len) }
    }

    /// [`Self::run_copy`] that leaves non-temporal stores pending.
    ///
    /// # Safety
    ///
    /// As there, and the caller fences before anything touches the destination.
    #[inline(always)]
    pub(crate) unsafe fn run_copy_unfenced(&self, dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: the caller's promises.
        unsafe { run::copy(self.copy_code().1, dst, src, len) }
    }

    /// # Safety
    ///
    /// The variant clears and can run here; the range is valid for writes of `len` bytes.
    #[inline(always)]
    pub(crate) unsafe fn run_fill(&self, dst: *mut u8, value: u8, len: usize) {
        // SAFETY: the caller's promises.
        unsafe { run::clear(self.clear_code().0, dst, value, len) }
    }

    /// [`Self::run_fill`] that leaves non-temporal stores pending.
    ///
    /// # Safety
    ///
    /// As there, and the caller fences before anything touches the destination.
    #[inline(always)]
    pub(crate) unsafe fn run_fill_unfenced(&self, dst: *mut u8, value: u8, len: usize) {
        // SAFETY: the caller's promises.
        unsafe { run::clear(self.clear_code().1, dst, value, len) }
    }

    /// Why it cannot run here, or `None` if it can. Asks the CPU and the operating system.
    pub fn unavailable(&'static self) -> Option<Unavailable> {
        available::unavailable(self)
    }

    /// A handle that copies by this variant.
    ///
    /// # Errors
    ///
    /// [`Error::WrongOperation`] if it clears, [`Error::Unavailable`] if it cannot run here.
    pub fn copier(&'static self) -> Result<Copier, Error> {
        match self.code {
            Code::Copy { .. } => self.available().map(|()| Copier { variant: self }),
            Code::Clear { .. } => {
                Err(Error::WrongOperation { variant: self, wanted: Operation::Copy })
            }
        }
    }

    /// A handle that clears and fills by this variant.
    ///
    /// # Errors
    ///
    /// [`Error::WrongOperation`] if it copies, [`Error::Unavailable`] if it cannot run here.
    pub fn clearer(&'static self) -> Result<Clearer, Error> {
        match self.code {
            Code::Clear { .. } => self.available().map(|()| Clearer { variant: self }),
            Code::Copy { .. } => {
                Err(Error::WrongOperation { variant: self, wanted: Operation::Clear })
            }
        }
    }

    fn available(&'static self) -> Result<(), Error> {
        match self.unavailable() {
            None => Ok(()),
            Some(because) => Err(Error::Unavailable { variant: self, because }),
        }
    }
}

/// All rows, in a fixed order, available or not.
pub fn all() -> &'static [Variant] {
    arch::ROWS
}

/// The row of this operation with this name.
///
/// # Errors
///
/// [`Error::UnknownVariant`], whose message lists the names that can be used here.
pub fn find(operation: Operation, name: &str) -> Result<&'static Variant, Error> {
    all()
        .iter()
        .find(|v| v.operation() == operation && v.name == name)
        .ok_or_else(|| Error::UnknownVariant { operation, name: Word::new(name) })
}

/// A variant that copies and is known to run here.
///
/// Shapes: any length from 0, any alignment of both sides, ranges that do not overlap, nothing
/// outside them touched. On return the bytes behave as if written by ordinary stores of this
/// thread, whatever the kind of store.
#[derive(Clone, Copy)]
pub struct Copier {
    variant: &'static Variant,
}

impl Copier {
    /// The row this handle calls.
    pub fn variant(&self) -> &'static Variant {
        self.variant
    }

    /// Copies all of `src` to `dst` and gives `dst` back, initialised.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    #[track_caller]
    pub fn copy<'a, D: Destination + ?Sized>(&self, dst: &'a mut D, src: &[u8]) -> &'a mut [u8] {
        check_lengths(dst.len_bytes(), src.len());
        // SAFETY: both ranges come from references, of equal length, one of them exclusive.
        unsafe { self.copy_raw(dst.as_mut_ptr(), src.as_ptr(), src.len()) };
        // SAFETY: all bytes of `dst` have just been written.
        unsafe { dst.assume_init_bytes() }
    }

    /// Copies `len_bytes` from `src` to `dst`.
    ///
    /// # Safety
    ///
    /// - `src` is valid for reads and `dst` for writes of `len_bytes`.
    /// - The two ranges do not overlap.
    #[inline]
    pub unsafe fn copy_raw(&self, dst: *mut u8, src: *const u8, len_bytes: usize) {
        // SAFETY: the caller's promises; that the variant copies and can run here was checked when
        // this handle was made.
        unsafe { self.variant.run_copy(dst, src, len_bytes) }
    }
}

/// A variant that clears and fills and is known to run here. Shapes as for [`Copier`].
#[derive(Clone, Copy)]
pub struct Clearer {
    variant: &'static Variant,
}

impl Clearer {
    /// The row this handle calls.
    pub fn variant(&self) -> &'static Variant {
        self.variant
    }

    /// Writes zero to all of `dst` and gives it back, initialised.
    pub fn clear<'a, D: Destination + ?Sized>(&self, dst: &'a mut D) -> &'a mut [u8] {
        self.fill(dst, 0)
    }

    /// Writes `value` to every byte of `dst` and gives it back, initialised.
    ///
    /// An instruction that can only write zero (`clzero`) is replaced by its general-register
    /// neighbour of the same store kind for any other value.
    pub fn fill<'a, D: Destination + ?Sized>(&self, dst: &'a mut D, value: u8) -> &'a mut [u8] {
        // SAFETY: the range comes from an exclusive reference.
        unsafe { self.fill_raw(dst.as_mut_ptr(), value, dst.len_bytes()) };
        // SAFETY: all bytes of `dst` have just been written.
        unsafe { dst.assume_init_bytes() }
    }

    /// Writes zero to `len_bytes` at `dst`.
    ///
    /// # Safety
    ///
    /// `dst` is valid for writes of `len_bytes`.
    #[inline]
    pub unsafe fn clear_raw(&self, dst: *mut u8, len_bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.fill_raw(dst, 0, len_bytes) }
    }

    /// Writes `value` to each of `len_bytes` at `dst`.
    ///
    /// # Safety
    ///
    /// `dst` is valid for writes of `len_bytes`.
    #[inline]
    pub unsafe fn fill_raw(&self, dst: *mut u8, value: u8, len_bytes: usize) {
        // SAFETY: the caller's promise; that the variant clears and can run here was checked when
        // this handle was made.
        unsafe { self.variant.run_fill(dst, value, len_bytes) }
    }
}

impl PartialEq for Variant {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }
}

impl Eq for Variant {}

impl fmt::Debug for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operation(), self.name)
    }
}

impl fmt::Debug for Copier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.variant.fmt(f)
    }
}

impl fmt::Debug for Clearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.variant.fmt(f)
    }
}

macro_rules! display_words {
    ($($type:ident { $($value:ident => $word:literal),* $(,)? })*) => {$(
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $(Self::$value => $word),* })
            }
        }
    )*};
}

display_words! {
    Operation { Copy => "copy", Clear => "clear" }
    Store { Temporal => "temporal", NonTemporal => "non-temporal", Implementation => "implementation" }
    RegisterClass { General => "general", Mmx => "mmx", Vector => "vector" }
    Prefetch { None => "none", Nta => "nta", Line => "line" }
    StoresOnce { Always => "always", Pages => "pages", No => "no" }
}
