//! Copies and clears memory without throwing your working set out of the cache.
//!
//! An ordinary copy draws its destination into the cache. If nobody on this CPU looks at it soon
//! (a buffer for DMA, a page cache, another process's memory), that was for nothing, and
//! what the program was working on has been evicted for it. Non-temporal stores go around the
//! cache instead. They win the microbenchmark, and the later use and the bystanders pay or gain;
//! which, differs from machine to machine. So here are all the ways the CPU has, each callable,
//! each replaceable at run time, and temporal by default.
//!
//! # Copy what is not used soon
//!
//! ```
//! let record = vec![7_u8; 1 << 20];
//! let mut outgoing = vec![0_u8; 1 << 20];
//! cachewise::copy_nontemporal(&mut outgoing[..], &record);
//! assert_eq!(outgoing, record);
//! ```
//!
//! On return the bytes behave as if written by ordinary stores of this thread: the call has fenced,
//! at every length. What *is* used soon, [`copy`] copies as the platform's `memcpy` would.
//!
//! # Clear pages
//!
//! ```
//! use cachewise::{Page, clear_huge};
//!
//! let mut pages = vec![Page::<4096>::zeroed(); 512];
//! // The fault was on page 17: that one is cleared last and stays in the cache.
//! clear_huge(&mut pages, 17);
//! ```
//!
//! # Choose the implementation
//!
//! ```
//! use cachewise::switch::{self, Slot};
//!
//! # #[cfg(feature = "std")]
//! cachewise::init()?; // CACHEWISE_FORCE, _DISABLE, _NT_THRESHOLD, _PROFILE
//! if let Err(error) = switch::set_by_name(Slot::ClearPage, "rep_stosq") {
//!     println!("{error}"); // Not on this CPU; the message lists what is.
//! }
//! println!("{}", switch::why(Slot::ClearPage)); // clear_page=rep_stosq (by api)
//! # Ok::<(), cachewise::Error>(())
//! ```
//!
//! # Call one implementation
//!
//! ```
//! use cachewise::variant::{self, Operation};
//!
//! for variant in variant::all().iter().filter(|v| v.operation() == Operation::Clear) {
//!     match variant.clearer() {
//!         Ok(clearer) => assert_eq!(clearer.fill(&mut [0; 100], 9), [9; 100]),
//!         Err(why) => println!("{why}"),
//!     }
//! }
//! ```
//!
//! # Map
//!
//! - [`bytes`], [`page`], [`batch()`]: what is called. Safe functions on slices, the same on
//!   pointers as `_raw`.
//! - `fallible`: copies whose memory may not be there, exact to the byte (where there is assembly).
//! - [`policy`]: from what size a call goes around the cache. [`switch`]: which variant serves it.
//! - [`profile`]: both as `cachewise tune` measured them, from a file.
//! - [`variant`]: the registry of all implementations. [`cpu`]: what this machine has.
//!
//! # Systems
//!
//! There is assembly for x86-64, i686 and i586 (from a Pentium on: nothing beyond is taken for
//! granted), AArch64 and ARMv7, with ELF and the System V or Arm conventions. Plain Rust serves on
//! all others.
//!
//! # Features
//!
//! `std` (default): the CPU is asked on the first call, [`init`] reads the environment, cache sizes
//! are also taken from sysfs. Without it the crate is `no_std`, allocates nothing, and uses general
//! registers only until [`switch::detect`] allows more.
//!
//! Under Miri, and with `RUSTFLAGS="--cfg cachewise_portable"` for the sanitizers, which can't see
//! into assembly, plain Rust serves every slot.
#![no_std]
#![deny(unsafe_op_in_unsafe_fn)]

#[cfg(any(feature = "std", test))]
extern crate std;

#[macro_use]
mod arch;
mod batch;
pub mod bytes;
pub mod cpu;
mod destination;
#[cfg(feature = "std")]
mod env;
mod error;
if_assembly! {
    {
        pub mod fallible;
    } else {
    }
}
pub mod page;
pub mod policy;
pub mod profile;
mod run;
pub mod switch;
pub mod variant;

pub use batch::{Batch, batch, copy_vectored, copy_vectored_nontemporal};
pub use bytes::{
    Hints, clear, clear_auto, clear_nontemporal, copy, copy_auto, copy_nontemporal,
    copy_nontemporal_with, copy_overlapping, copy_overlapping_nontemporal, copy_with, fill,
    fill_nontemporal,
};
#[cfg(feature = "std")]
pub use env::init;
pub use error::{Error, Unavailable, Word};
pub use page::{
    Page, clear_huge, clear_page, clear_page_nontemporal, clear_pages, clear_pages_nontemporal,
    copy_page, copy_page_nontemporal,
};
