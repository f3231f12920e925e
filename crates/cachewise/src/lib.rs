//! Copies and clears memory without throwing your working set out of the cache.
#![no_std]

#[cfg(any(feature = "std", test))]
extern crate std;

mod arch;
mod batch;
pub mod bytes;
pub mod cpu;
#[cfg(feature = "std")]
mod env;
mod error;
pub mod page;
pub mod policy;
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
pub use page::{Page, clear_huge, clear_page, clear_pages, copy_page};
