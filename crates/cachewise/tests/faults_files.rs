//! Faults that come from files and pages: truncated while copied, beyond 4 GiB, no huge page to be
//! had, poisoned (cases 6, 16, 17, 20).

mod common;

#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64", cachewise_armv7),
    target_os = "linux",
    feature = "std",
    not(miri),
    not(cachewise_portable)
)))]
#[test]
#[ignore = "needs Linux, feature std and an architecture with assembly"]
fn faults_files() {}

macro_rules! modules {
    ($($name:ident $path:literal)*) => {$(
        #[cfg(all(
            any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64", cachewise_armv7),
            target_os = "linux",
            feature = "std",
            not(miri),
            not(cachewise_portable)
        ))]
        #[path = $path]
        mod $name;
    )*};
}

modules! {
    child "faults/child.rs"
    stage "faults/stage.rs"
    files "faults/files.rs"
    poison "faults/poison.rs"
}

#[cfg(all(
    target_arch = "x86_64",
    target_os = "linux",
    feature = "std",
    not(miri),
    not(cachewise_portable)
))]
#[path = "faults/behind_4_gib.rs"]
mod behind_4_gib;

#[cfg(not(target_pointer_width = "64"))]
#[test]
#[ignore = "cannot run here: 32 bits count no length of 4 GiB"]
fn a_fault_behind_4_gib() {}
