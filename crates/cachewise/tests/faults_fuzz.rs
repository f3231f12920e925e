//! Random lengths, alignments and page layouts against the model of `faults/stage.rs`, for every
//! variant and the public calls.
//!
//! `CACHEWISE_FUZZ_CASES` is the number of cases, `CACHEWISE_FUZZ_SEED` where they start; a failure
//! names its seed.

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
fn faults_fuzz() {}

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
    stage "faults/stage.rs"
    fuzz "faults/fuzz.rs"
}
