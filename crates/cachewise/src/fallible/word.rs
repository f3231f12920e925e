//! Single objects that may not be there: read, write, exchange, and the length of a string.
//!
//! Each is one access of its own size, so a concurrent writer is seen before or after, never torn.
//! The object has to be aligned for that; one that isn't is refused before it is touched.

use super::{Fault, Side};
use crate::arch::{self, Accessed, Outcome, word};

/// What one access can read and write: `u8`, `u16`, `u32`, `u64`.
pub trait Word: private::Sealed + Copy {}
/// What can be exchanged: `u32`, `u64`.
pub trait Exchange: Word + private::Exchange {}

mod private {
    use crate::arch::Accessed;

    pub(super) type Routine = unsafe extern "C" fn(*mut u8, u64, u64) -> Accessed;

    #[allow(private_interfaces, reason = "sealed")]
    pub trait Sealed: Copy {
        const READ: Routine;
        const WRITE: Routine;
        fn widen(self) -> u64;
        fn narrow(wide: u64) -> Self;
    }

    #[allow(private_interfaces, reason = "sealed")]
    pub trait Exchange: Sealed {
        const SWAP: Routine;
        const COMPARE_EXCHANGE: Routine;
    }
}

macro_rules! words {
    ($($type:ty: $read:ident $write:ident;)*) => {$(
        #[allow(private_interfaces, reason = "sealed")]
        impl private::Sealed for $type {
            const READ: private::Routine = word::$read;
            const WRITE: private::Routine = word::$write;
            fn widen(self) -> u64 {
                u64::from(self)
            }
            fn narrow(wide: u64) -> Self {
                wide as Self
            }
        }
        impl Word for $type {}
    )*};
}
words! {
    u8: read_1 write_1;
    u16: read_2 write_2;
    u32: read_4 write_4;
    u64: read_8 write_8;
}

macro_rules! exchanges {
    ($($type:ty: $swap:ident $compare_exchange:ident;)*) => {$(
        #[allow(private_interfaces, reason = "sealed")]
        impl private::Exchange for $type {
            const SWAP: private::Routine = word::$swap;
            const COMPARE_EXCHANGE: private::Routine = word::$compare_exchange;
        }
        impl Exchange for $type {}
    )*};
}
exchanges! {
    u32: swap_4 compare_exchange_4;
    u64: swap_8 compare_exchange_8;
}

/// # Safety
///
/// The routine's, but that the object may not be there.
unsafe fn access<W: Word>(
    routine: private::Routine,
    object: *mut W,
    first: u64,
    second: u64,
    side: Side,
) -> Result<W, Fault> {
    // To its size, which for a `u64` can be more than the language asks for (i686: 4 bytes).
    if object.addr() % size_of::<W>() != 0 {
        return Err(Fault::misaligned(size_of::<W>(), side));
    }
    // SAFETY: the caller's promise.
    let Accessed { value, stopped_by } = unsafe { routine(object.cast(), first, second) };
    if stopped_by == Outcome::NOTHING {
        return Ok(W::narrow(value));
    }
    let outcome = Outcome { left_bytes: size_of::<W>(), stopped_by };
    Err(Fault::new(size_of::<W>(), outcome).on_side(side))
}

/// Reads the object at `src` in one access.
///
/// # Errors
///
/// It isn't there or isn't aligned; the side is the source.
///
/// # Safety
///
/// If it is there, it may be read.
pub unsafe fn try_read<W: Word>(src: *const W) -> Result<W, Fault> {
    // SAFETY: the caller's promise; the routine only reads.
    unsafe { access(W::READ, src.cast_mut(), 0, 0, Side::Source) }
}

/// Writes `value` to the object at `dst` in one access.
///
/// # Errors
///
/// It isn't there, can't be written or isn't aligned; the side is the destination. Then nothing
/// was written.
///
/// # Safety
///
/// If it is there, it may be written.
pub unsafe fn try_write<W: Word>(dst: *mut W, value: W) -> Result<(), Fault> {
    // SAFETY: the caller's promise.
    unsafe { access(W::WRITE, dst, value.widen(), 0, Side::Destination) }.map(|_| ())
}

/// Exchanges the object at `object` for `value` atomically, and returns what was there. Sequentially
/// consistent.
///
/// # Errors
///
/// As [`try_write`].
///
/// # Safety
///
/// If it is there, it may be read and written.
pub unsafe fn try_swap<W: Exchange>(object: *mut W, value: W) -> Result<W, Fault> {
    // SAFETY: the caller's promise.
    unsafe { access(W::SWAP, object, value.widen(), 0, Side::Destination) }
}

/// Exchanges the object at `object` for `new` if it is `expected`, atomically, and returns what was
/// there: the exchange has happened if that is `expected`. Sequentially consistent.
///
/// # Errors
///
/// As [`try_write`]: it is written in either case, so a read-only object is a fault.
///
/// # Safety
///
/// If it is there, it may be read and written.
pub unsafe fn try_compare_exchange<W: Exchange>(
    object: *mut W,
    expected: W,
    new: W,
) -> Result<W, Fault> {
    let (expected, new) = (expected.widen(), new.widen());
    // SAFETY: the caller's promise.
    unsafe { access(W::COMPARE_EXCHANGE, object, expected, new, Side::Destination) }
}

/// The length of the string at `string` without its zero, or `max_bytes` if none is among the first
/// `max_bytes`. No byte beyond the zero is touched.
///
/// # Errors
///
/// A byte before the zero isn't there; the fault's copied bytes are those before it.
///
/// # Safety
///
/// What is there may be read.
pub unsafe fn try_strnlen(string: *const u8, max_bytes: usize) -> Result<usize, Fault> {
    // SAFETY: the caller's promise; the routine only reads.
    let accessed = unsafe { word::string_end(string.cast_mut(), 0, max_bytes as u64) };
    let outcome =
        arch::Outcome { left_bytes: accessed.value as usize, stopped_by: accessed.stopped_by };
    if outcome.stopped_by == Outcome::NOTHING {
        Ok(max_bytes - outcome.left_bytes)
    } else {
        Err(Fault::new(max_bytes, outcome))
    }
}
