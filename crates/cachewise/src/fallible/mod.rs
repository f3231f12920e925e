//! Copies whose memory may not be there.
//!
//! A file truncated while it is mapped, guest memory that a balloon took away, a huge page that
//! can't be had, poisoned memory, a pointer from somebody else: here a fault in the middle is a
//! value, exact to the byte, instead of the end of the process. The routines are the very ones that
//! infallible copies run, at the same addresses; recovery costs nothing until a fault.
//!
//! In a process, [`install`] sets up the signal handlers once (feature `std`, Linux). A kernel asks
//! [`extable::fixup`] from its own exception handler. Without either a fault here is what it is
//! anywhere.
//!
//! What is promised after a fault:
//!
//! - *Exact*: the first [`Fault::copied_bytes`] of the destination are the source's, always.
//! - *Maximal*: not one byte more was possible, where [`Fault::is_maximal`] says so: for unmapped,
//!   protected and beyond-end-of-file pages that stay so; not for poison.
//! - The rest of the destination is unspecified, unless the function's name says `_zeroing`. Clears
//!   and fills have no such flavour: what fails them is the destination itself.
//! - A destination byte may have been written more than once.
//!
//! The memory is reached by pointers and assembly only: a reference to memory that others change or
//! take away is undefined behaviour in Rust, and so is `ptr::copy` on it. Objects of 1, 2 and
//! 4 bytes, and of 8 where a general register has as many, are not torn if they are aligned on both
//! sides. [`try_read`] and [`try_write`] don't tear 8 bytes anywhere.
//!
//! This module exists where the crate has assembly (a list is in the [crate's root](crate)). On other
//! systems only the infallible calls exist.
//!
//! ```
//! # #[cfg(all(feature = "std", target_os = "linux"))] {
//! use cachewise::fallible::{self, Cause, Side};
//!
//! fallible::install().expect("the signal handlers can be set");
//! let mut dst = [0_u8; 8];
//! // SAFETY: `dst` is ours; that the source may fault is what this call is for.
//! let fault = unsafe { fallible::try_copy(dst.as_mut_ptr(), core::ptr::null(), 8) }.unwrap_err();
//! assert_eq!((fault.copied_bytes(), fault.residue_bytes()), (0, 8));
//! assert_eq!((fault.side(), fault.cause()), (Side::Source, Cause::Unmapped));
//! # }
//! ```

mod attempt;
mod copy;
pub mod extable;
mod fault;
#[cfg(all(feature = "std", target_os = "linux"))]
mod signal;
pub mod user;
mod word;

pub use copy::{
    Chunks, Pair, VectoredFault, try_clear, try_clear_nontemporal, try_copy, try_copy_chunked,
    try_copy_nontemporal, try_copy_nontemporal_zeroing, try_copy_vectored, try_copy_vectored_nontemporal, try_copy_with_slow_path,
    try_copy_zeroing, try_fill, try_fill_nontemporal,
};
pub use fault::{Cause, Fault, Side};
#[cfg(all(feature = "std", target_os = "linux"))]
pub use signal::{Blocked, InstallError, Replaced, Token, install};
pub use word::{Exchange, Word, try_compare_exchange, try_read, try_strnlen, try_swap, try_write};
