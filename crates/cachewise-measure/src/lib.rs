//! The scales: scenarios, timing, statistics, peers. It measures and prints nothing.
//!
//! A [`Case`] says what is done: an operation at a size, hot or cold, in which order, from which
//! alignment, by how many threads. [`Contestant`]s are the ways to do it: the library's variants,
//! the public call, libc's routine, a routine from any shared library. [`measure`] runs all of
//! them side by side and gives back their [`Samples`]; the rest interprets those: [`stats`]
//! (medians, intervals, paired ratios), [`Ladder`] (which level of the hierarchy was really hit),
//! [`Limits`] (what the machine can do at best), [`verdict`] (who wins, from what size), [`compare`]
//! (what changed between two runs).
//!
//! How a figure comes about, and what biases it:
//!
//! - Memory is mapped anew for every batch, written, and read back before anything is timed: the
//!   placement of pages is a source of variance, a first touch is the kernel's cost, and a source
//!   never written would be the one shared page of zeros (case 12).
//! - Each contestant's result is checked, byte for byte, before it is timed. A wrong result is an
//!   error, not a figure.
//! - In every round all contestants run once, in freshly shuffled order, so that drift meets all of
//!   them; a ratio is taken within rounds (case 14).
//! - Before each sample its contestant runs untimed until the caches hold what *it* leaves there.
//!   Otherwise the write-backs of an ordinary copy would be paid by whoever comes next.
//! - All are called alike, through one method of one trait object, so the call costs all the same.
//!   The public call's inlined small path stands inside that method and is counted as a caller
//!   would see it, plus the call.
#![deny(unsafe_code)]

mod arena;
mod case;
mod clock;
mod companion;
pub mod compare;
pub mod contestant;
mod cores;
pub mod counters;
mod error;
mod ladder;
mod limits;
mod lines;
mod machine;
pub mod map;
#[allow(unsafe_code, reason = "maps memory and hands out its bytes")]
mod memory;
mod rng;
mod rounds;
mod runner;
pub mod stats;
pub mod tune;
pub mod verdict;
mod walk;
mod words;

pub use case::{Align, Case, Page, Pattern, Temperature};
pub use contestant::Contestant;
pub use error::Error;
pub use ladder::{Ladder, Located, Rung};
pub use limits::Limits;
pub use machine::{Machine, Range};
pub use runner::{Effort, Measured, Stop, measure};
pub use stats::Samples;
