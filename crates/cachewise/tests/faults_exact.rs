//! Copies and clears that meet a fault: exact to the byte, in every variant, wherever the edge is
//! (cases 16 to 20, 23, 24).

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
fn faults_exact() {}

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
    calls "faults/calls.rs"
    edges "faults/edges.rs"
    words "faults/words.rs"
}
