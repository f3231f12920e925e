//! Rust's side of an architecture's assembly, where no store needs a fence: the routines by name,
//! the exception table, the calls. Included by the architecture's module, whose `global_asm!` uses
//! the same names.

use super::super::{ClearRoutine, CopyRoutine, Outcome};
use crate::fallible::extable::Row;
use crate::run::Stand;

/// A part of the crate's version as the number that the assembly's names carry.
pub(super) const fn version(digits: &str) -> u32 {
    let (mut number, mut i) = (0, 0);
    while i < digits.len() {
        number = number * 10 + (digits.as_bytes()[i] - b'0') as u32;
        i += 1;
    }
    number
}

/// An assembly routine, by its name without the version.
macro_rules! routine {
    (copy $($name:tt)*) => { routine!(($($name)*) (dst: *mut u8, src: *const u8, len: usize)) };
    (clear $($name:tt)*) => { routine!(($($name)*) (dst: *mut u8, pattern: u64, len: usize)) };
    (word $name:expr) => {
        routine!(($name) (object: *mut u8, first: u64, second: u64)
            -> $crate::arch::Accessed)
    };
    (($($name:tt)*) ($($args:tt)*)) => { routine!(($($name)*) ($($args)*) -> $crate::arch::Outcome) };
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

/// A registry row by the name of its routine.
macro_rules! row {
    (copy $name:literal, $store:expr, $registers:expr) => {
        Variant::copying($name, $store, $registers, routine!(copy "copy_", $name))
    };
    (clear $name:literal, $store:expr, $registers:expr) => {
        Variant::clearing($name, $store, $registers, routine!(clear "clear_", $name))
    };
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
    /// As in [`Outcome`].
    pub(crate) stopped_by: usize,
}

/// The routines of `word.S`.
pub(crate) mod word {
    use super::Accessed;

    /// An access to an object at `object`; what `first` and `second` are, the routine says.
    type WordRoutine = unsafe extern "C" fn(object: *mut u8, first: u64, second: u64) -> Accessed;

    macro_rules! word_routines {
        ($($name:ident)*) => {$(
            #[allow(non_upper_case_globals, reason = "named as the routine is")]
            pub(crate) const $name: WordRoutine = routine!(word stringify!($name));
        )*};
    }
    word_routines! {
        read_1 read_2 read_4 read_8 write_1 write_2 write_4 write_8
        swap_4 swap_8 compare_exchange_4 compare_exchange_8 string_end
    }
}

/// # Safety
///
/// The routine's.
#[inline(always)]
pub(crate) unsafe fn call_copy(
    routine: CopyRoutine,
    dst: *mut u8,
    src: *const u8,
    len: usize,
) -> Stand {
    // SAFETY: the caller's promise.
    let outcome = unsafe { routine(dst, src, len) };
    let done = len - outcome.left_bytes;
    Stand { dst: dst.wrapping_add(done), src: src.wrapping_add(done), outcome }
}

/// # Safety
///
/// The routine's.
#[inline(always)]
pub(crate) unsafe fn call_clear(
    routine: ClearRoutine,
    dst: *mut u8,
    pattern: u64,
    len: usize,
) -> Stand {
    // SAFETY: the caller's promise.
    let outcome = unsafe { routine(dst, pattern, len) };
    let done = len - outcome.left_bytes;
    Stand { dst: dst.wrapping_add(done), src: core::ptr::null(), outcome }
}

/// Copies from the last byte to the first if the destination overlaps the source from above, else
/// from the first to the last, by the routine `forward`, which reads each block before it overwrites
/// it and never reads again behind itself; each byte is stored once.
///
/// # Safety
///
/// `src` is valid for reads and `dst` for writes of `len` bytes.
#[inline(always)]
pub(super) unsafe fn walk_by(forward: CopyRoutine, dst: *mut u8, src: *const u8, len: usize) {
    let backward: CopyRoutine = routine!(copy "copy_backward");
    let routine = if dst.addr() > src.addr() { backward } else { forward };
    // SAFETY: the caller's promise.
    let outcome = unsafe { routine(dst, src, len) };
    debug_assert_eq!(outcome, Outcome::DONE);
}
