//! Who takes part: the library's variants, the public call, libc, routines from other libraries.
//!
//! All are one trait object with one method, which is the only shape the timing loop knows. What a
//! contestant costs beyond its own work is then the same for each: one indirect call. The public
//! call is `#[inline(always)]` up to its small moves; they stand inside that method, so a caller
//! who inlines them saves the call that is counted here.
#![allow(unsafe_code, reason = "calls routines that work on raw memory")]

use crate::Error;
use crate::walk::ReadWalk;
use cachewise::variant::{self, Clearer, Copier, Operation, Variant};
use std::collections::HashMap;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::ffi::CStr;
use std::ffi::{c_int, c_void};
use std::sync::LazyLock;

/// libc's own `memcpy` or `memset`: always a contestant.
pub const LIBC: &str = "libc";
/// The library's plain call, through the switch.
pub const PUBLIC: &str = "public";
/// The library's `_nontemporal` call, through the switch.
pub const PUBLIC_NONTEMPORAL: &str = "public_nontemporal";
const READ_WALK: &str = "read_walk";

/// Which libc that is, where it tells: glibc does.
pub fn libc_version() -> Option<String> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: it takes nothing and changes nothing.
        let version = unsafe { libc::gnu_get_libc_version() };
        // SAFETY: gnu_get_libc_version(3): a NUL-terminated string, and a constant of libc's.
        let version = unsafe { CStr::from_ptr(version) };
        Some(format!("glibc {}", version.to_string_lossy()))
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}

/// One way to do an operation.
pub struct Contestant {
    name: String,
    operation: Operation,
    variant: Option<&'static Variant>,
    routine: Box<dyn Routine>,
}

/// The one shape that is timed.
pub(crate) trait Routine: Send + Sync {
    /// # Safety
    ///
    /// `dst` is valid for writes of `len` bytes; for a copy `src` is valid for reads of as many, and
    /// they do not overlap. A clear does not look at `src`.
    unsafe fn run(&self, dst: *mut u8, src: *const u8, len: usize);
}

impl Contestant {
    /// A row of the registry.
    ///
    /// # Errors
    ///
    /// If it cannot run here.
    pub fn variant(variant: &'static Variant) -> Result<Self, Error> {
        let routine: Box<dyn Routine> = match variant.operation() {
            Operation::Copy => Box::new(variant.copier()?),
            Operation::Clear => Box::new(variant.clearer()?),
        };
        let operation = variant.operation();
        Ok(Self { name: variant.name().to_owned(), operation, variant: Some(variant), routine })
    }

    /// A row that stores by ordinary stores, and the fence in which every `_nontemporal` call ends
    /// whatever serves it.
    ///
    /// # Errors
    ///
    /// If it cannot run here.
    pub fn fenced(variant: &'static Variant) -> Result<Self, Error> {
        let Self { operation, routine, .. } = Self::variant(variant)?;
        Ok(Self::fixed(operation, fenced_name(variant), Box::new(Fenced(routine))))
    }

    /// The contestant of this name: a variant, `libc`, `public` or `public_nontemporal`.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownContestant`], whose message lists the names that can be used here, or that
    /// the variant cannot run here.
    pub fn named(operation: Operation, name: &str) -> Result<Self, Error> {
        if let Some((_, make)) = FIXED.iter().find(|(fixed, _)| *fixed == name) {
            return Ok(Self::fixed(operation, name, make(operation)));
        }
        match variant::find(operation, name) {
            Ok(variant) => Self::variant(variant),
            Err(_) => Err(Error::UnknownContestant { operation, name: name.to_owned() }),
        }
    }

    /// libc's `memcpy` or `memset`.
    pub fn libc(operation: Operation) -> Self {
        Self::fixed(operation, LIBC, libc_routine(operation))
    }

    /// A routine with `memcpy`'s or `memset`'s signature, by the operation, from a shared library:
    /// `LIB.so:SYMBOL`.
    ///
    /// # Errors
    ///
    /// If it is written otherwise, or the loader does not find it.
    pub fn peer(operation: Operation, given: &str) -> Result<Self, Error> {
        let (library, symbol) = given
            .rsplit_once(':')
            .filter(|(library, symbol)| !library.is_empty() && !symbol.is_empty())
            .ok_or_else(|| Error::PeerForm { given: given.to_owned() })?;
        let failed = |source| Error::Peer { given: given.to_owned(), source };
        // SAFETY: the library's initialisers run. That they may is what naming it asks for.
        let library = unsafe { libloading::Library::new(library) }.map_err(failed)?;
        // It stays loaded as long as the process: the routine may have started threads.
        let library: &'static libloading::Library = Box::leak(Box::new(library));
        let routine: Box<dyn Routine> = match operation {
            Operation::Copy => {
                // SAFETY: the user says that the symbol has memcpy's signature; nothing can check.
                let memcpy = unsafe { library.get::<Memcpy>(symbol) }.map_err(failed)?;
                Box::new(LikeMemcpy(*memcpy))
            }
            Operation::Clear => {
                // SAFETY: the user says that the symbol has memset's signature; nothing can check.
                let memset = unsafe { library.get::<Memset>(symbol) }.map_err(failed)?;
                Box::new(LikeMemset(*memset))
            }
        };
        Ok(Self::fixed(operation, given, routine))
    }

    /// They read the destination and do nothing else: a limit, no rivals.
    pub(crate) fn read_walks() -> impl Iterator<Item = Self> {
        let make = |walk| Self::fixed(Operation::Clear, READ_WALK, Box::new(walk));
        ReadWalk::all().map(make)
    }

    /// Whether it leaves the destination as it was.
    pub(crate) fn only_reads(&self) -> bool {
        self.name == READ_WALK
    }

    #[cfg(test)]
    pub(crate) fn of_routine(operation: Operation, routine: Box<dyn Routine>) -> Self {
        Self::fixed(operation, "test", routine)
    }

    fn fixed(operation: Operation, name: &str, routine: Box<dyn Routine>) -> Self {
        Self { name: name.to_owned(), operation, variant: None, routine }
    }

    /// All that can run here: libc, the public calls, every available variant.
    pub fn field(operation: Operation) -> Vec<Self> {
        let fixed = FIXED.iter().map(|(name, make)| Self::fixed(operation, name, make(operation)));
        let variants = variant::all().iter().filter(|v| v.operation() == operation);
        fixed.chain(variants.filter_map(|v| Self::variant(v).ok())).collect()
    }

    /// The name: the variant's, `libc`, `public`, `public_nontemporal`, or the peer as given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it does.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Its row, if it is one of the registry.
    pub fn registry_row(&self) -> Option<&'static Variant> {
        self.variant
    }

    pub(crate) fn routine(&self) -> &dyn Routine {
        self.routine.as_ref()
    }
}

/// What a row is called with the fence of a `_nontemporal` call.
pub(crate) fn fenced_name(variant: &'static Variant) -> &'static str {
    static NAMES: LazyLock<HashMap<&'static str, String>> = LazyLock::new(|| {
        variant::all().iter().map(|row| (row.name(), format!("{}+fence", row.name()))).collect()
    });
    NAMES.get(variant.name()).map_or(variant.name(), String::as_str)
}

type Make = fn(Operation) -> Box<dyn Routine>;

/// Not in the registry, yet always there.
static FIXED: [(&str, Make); 3] = [
    (LIBC, libc_routine),
    (PUBLIC, |operation| match operation {
        Operation::Copy => Box::new(PublicCopy),
        Operation::Clear => Box::new(PublicClear),
    }),
    (PUBLIC_NONTEMPORAL, |operation| match operation {
        Operation::Copy => Box::new(PublicCopyNontemporal),
        Operation::Clear => Box::new(PublicClearNontemporal),
    }),
];

/// The names of everything that [`Contestant::named`] gives out here.
pub(crate) fn names(operation: Operation) -> Vec<&'static str> {
    let variants = variant::all().iter();
    let available = variants.filter(|v| v.operation() == operation && v.unavailable().is_none());
    FIXED.iter().map(|(name, _)| *name).chain(available.map(Variant::name)).collect()
}

/// # Safety
///
/// As memcpy(3).
type Memcpy = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;
/// # Safety
///
/// As memset(3).
type Memset = unsafe extern "C" fn(*mut c_void, c_int, usize) -> *mut c_void;

fn libc_routine(operation: Operation) -> Box<dyn Routine> {
    match operation {
        Operation::Copy => Box::new(LikeMemcpy(libc::memcpy)),
        Operation::Clear => Box::new(LikeMemset(libc::memset)),
    }
}

struct Fenced(Box<dyn Routine>);
struct LikeMemcpy(Memcpy);
struct LikeMemset(Memset);
struct PublicCopy;
struct PublicClear;
struct PublicCopyNontemporal;
struct PublicClearNontemporal;

/// A routine is a type and one call.
macro_rules! routines {
    ($($type:ty: |$this:ident, $dst:ident, $src:ident, $len:ident| $call:expr;)*) => {$(
        impl Routine for $type {
            unsafe fn run(&self, $dst: *mut u8, $src: *const u8, $len: usize) {
                let $this = self;
                // SAFETY: the caller's promises are those of the routine called.
                unsafe { $call }
            }
        }
    )*};
}

routines! {
    Copier: |this, dst, src, len| this.copy_raw(dst, src, len);
    Clearer: |this, dst, _src, len| this.clear_raw(dst, len);
    // An empty batch is a fence.
    Fenced: |this, dst, src, len| {
        this.0.run(dst, src, len);
        cachewise::batch(|_| ());
    };
    LikeMemcpy: |this, dst, src, len| { (this.0)(dst.cast(), src.cast(), len); };
    LikeMemset: |this, dst, _src, len| { (this.0)(dst.cast(), 0, len); };
    PublicCopy: |_this, dst, src, len| cachewise::bytes::copy_raw(dst, src, len);
    PublicClear: |_this, dst, _src, len| cachewise::bytes::clear_raw(dst, len);
    PublicCopyNontemporal: |_this, dst, src, len|
        cachewise::bytes::copy_nontemporal_raw(dst, src, len);
    PublicClearNontemporal: |_this, dst, _src, len|
        cachewise::bytes::clear_nontemporal_raw(dst, len);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_answered_with_the_right_ones() {
        for operation in [Operation::Copy, Operation::Clear] {
            let error = Contestant::named(operation, "mowntps").err().unwrap().to_string();
            for contestant in Contestant::field(operation) {
                assert!(error.contains(contestant.name()), "{error}");
            }
        }
    }

    #[test]
    fn everyone_in_the_field_is_found_by_name_again() {
        for contestant in Contestant::field(Operation::Copy) {
            let found = Contestant::named(Operation::Copy, contestant.name()).unwrap();
            assert_eq!(found.name(), contestant.name());
        }
    }

    #[test]
    fn peers_are_loaded_by_library_and_symbol() {
        let peer = Contestant::peer(Operation::Copy, "libc.so.6:memcpy").unwrap();
        let (src, mut dst) = ([7_u8; 100], [0_u8; 100]);
        // SAFETY: two arrays of 100 bytes.
        unsafe { peer.routine().run(dst.as_mut_ptr(), src.as_ptr(), 100) };
        assert_eq!(dst, src);

        for form in ["libc.so.6", ":memcpy", "libc.so.6:"] {
            let error = Contestant::peer(Operation::Copy, form);
            assert!(matches!(error, Err(Error::PeerForm { .. })), "{form}");
        }
        let missing = Contestant::peer(Operation::Copy, "libc.so.6:no_such_symbol");
        assert!(matches!(missing, Err(Error::Peer { .. })));
    }
}
