//! What the architectures with assembly share: how a routine is named, the exception table that the
//! routines fill, and the shapes of their rows in the registry.
//!
//! Symbols and sections carry the version of the crate: two versions can live in one program.

use crate::fallible::extable::Row;

/// The number that stands for a part of the version in the assembly's names.
pub(crate) const fn version(digits: &str) -> u32 {
    let (mut number, mut i) = (0, 0);
    while i < digits.len() {
        number = number * 10 + (digits.as_bytes()[i] - b'0') as u32;
        i += 1;
    }
    number
}

unsafe extern "C" {
    // The linker defines these two around the section of that name.
    #[link_name = concat!(
        "__start_cachewise_ex_",
        env!("CARGO_PKG_VERSION_MAJOR"), "_",
        env!("CARGO_PKG_VERSION_MINOR"), "_",
        env!("CARGO_PKG_VERSION_PATCH")
    )]
    static FIRST_ROW: Row;
    #[link_name = concat!(
        "__stop_cachewise_ex_",
        env!("CARGO_PKG_VERSION_MAJOR"), "_",
        env!("CARGO_PKG_VERSION_MINOR"), "_",
        env!("CARGO_PKG_VERSION_PATCH")
    )]
    static AFTER_LAST_ROW: Row;
}

/// The exception table, sorted by the address of the instruction.
pub(crate) fn exception_table() -> &'static [Row] {
    let (first, end) = (&raw const FIRST_ROW, &raw const AFTER_LAST_ROW);
    let count = (end.addr() - first.addr()) / size_of::<Row>();
    // SAFETY: the section holds nothing but rows, and is never written.
    unsafe { core::slice::from_raw_parts(first, count) }
}

/// What an access to one object came to.
#[repr(C)]
pub(crate) struct Accessed {
    /// What was there before.
    pub(crate) value: u64,
    /// As in [`Outcome`](super::Outcome).
    pub(crate) stopped_by: usize,
}

/// An access to an object at `object`; what `first` and `second` are, the routine says.
pub(crate) type WordRoutine =
    unsafe extern "C" fn(object: *mut u8, first: u64, second: u64) -> Accessed;

/// An assembly routine, by its name without the version.
macro_rules! routine {
    (copy $($name:tt)*) => {
        routine!(($($name)*) (dst: *mut u8, src: *const u8, len: usize) -> crate::arch::Returned)
    };
    (clear $($name:tt)*) => {
        routine!(($($name)*) (dst: *mut u8, pattern: u64, len: usize) -> crate::arch::Returned)
    };
    (word $name:expr) => {
        routine!(($name) (object: *mut u8, first: u64, second: u64) -> crate::arch::Accessed)
    };
    (($($name:tt)*) ($($args:tt)*) -> $result:ty) => {{
        unsafe extern "C" {
            #[link_name = concat!(
                "cachewise_",
                env!("CARGO_PKG_VERSION_MAJOR"), "_",
                env!("CARGO_PKG_VERSION_MINOR"), "_",
                env!("CARGO_PKG_VERSION_PATCH"), "_",
                $($name)*
            )]
            fn routine($($args)*) -> $result;
        }
        routine
    }};
}

/// The module `word` with these routines.
macro_rules! word_routines {
    ($($name:ident)*) => {
        /// The routines of `word.S`.
        pub(crate) mod word {
            use crate::arch::WordRoutine;
            $(#[allow(non_upper_case_globals, reason = "named as the routine is")]
            pub(crate) const $name: WordRoutine = routine!(word stringify!($name));)*
        }
    };
}

/// A row whose stores need no fence.
macro_rules! ordered {
    (copy $name:literal, $store:expr, $registers:expr) => {
        Variant::copying($name, $store, $registers, routine!(copy "copy_", $name))
    };
    (clear $name:literal, $store:expr, $registers:expr) => {
        Variant::clearing($name, $store, $registers, routine!(clear "clear_", $name))
    };
}

/// A non-temporal row: each byte stored once, with and without the fence.
#[allow(unused_macros, reason = "no store of an Arm CPU needs a fence")]
macro_rules! nontemporal {
    (copy $name:literal, $registers:expr) => {
        nontemporal!(Copy, copy, "copy_", $name, $registers)
    };
    (clear $name:literal, $registers:expr) => {
        nontemporal!(Clear, clear, "clear_", $name, $registers)
    };
    ($code:ident, $operation:ident, $prefix:literal, $name:literal, $registers:expr) => {
        Variant::new(
            $name,
            $crate::variant::Store::NonTemporal,
            $registers,
            $crate::variant::Code::$code {
                fenced: routine!($operation $prefix, $name),
                unfenced: routine!($operation $prefix, $name, "_unfenced"),
            },
        )
        .once($crate::variant::StoresOnce::Always)
    };
}
