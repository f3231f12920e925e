//! The exception table through the linker: two versions of the crate in one program, fat link-time
//! optimisation, a shared library beside a program that has its own copy, a static library in a C
//! program that throws away what nobody uses. In each, a fault is recovered.

#[cfg(not(all(
    target_arch = "x86_64",
    target_os = "linux",
    feature = "std",
    not(miri),
    not(cachewise_portable)
)))]
#[test]
#[ignore = "needs x86-64 Linux, feature std and native code"]
fn faults_linked() {}

#[cfg(all(
    target_arch = "x86_64",
    target_os = "linux",
    feature = "std",
    not(miri),
    not(cachewise_portable)
))]
mod common;

#[cfg(all(
    target_arch = "x86_64",
    target_os = "linux",
    feature = "std",
    not(miri),
    not(cachewise_portable)
))]
#[path = "faults/linked.rs"]
mod linked;
