#![no_std]
//! cachewise

#[cfg(any(feature = "std", test))]
extern crate std;

pub mod cpu;
