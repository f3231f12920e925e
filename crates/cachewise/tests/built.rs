//! Checks of the built code: what a test by running cannot show, because it would need every
//! path, every fault and every CPU.
//!
//! This test binary holds the library's routines as the linker has laid them out. They are found by
//! their symbols, decoded, and followed along every path, with the jumps that a fault makes (each
//! row of the exception table is one: from its access to its fix-up).

mod common;

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "x86"), target_os = "linux", not(miri))))]
#[test]
#[ignore = "needs an x86 ELF binary"]
fn built() {}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
#[path = "built/constant_sizes.rs"]
mod constant_sizes;
#[cfg(all(any(target_arch = "x86_64", target_arch = "x86"), target_os = "linux", not(miri)))]
#[path = "built/image.rs"]
mod image;
#[cfg(all(any(target_arch = "x86_64", target_arch = "x86"), target_os = "linux", not(miri)))]
#[path = "built/routines.rs"]
mod routines;
#[cfg(all(any(target_arch = "x86_64", target_arch = "x86"), target_os = "linux", not(miri)))]
#[path = "built/saved.rs"]
mod saved;
#[cfg(all(any(target_arch = "x86_64", target_arch = "x86"), target_os = "linux", not(miri)))]
#[path = "common/step.rs"]
#[allow(dead_code, unreachable_pub, reason = "used for what it knows of instructions")]
mod step;
