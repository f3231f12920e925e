#![no_std]
//! cachewise
