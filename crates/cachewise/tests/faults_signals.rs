//! The signal handlers among others: what is ours is recovered, what isn't is as if we were not
//! there (cases 20, 21, 22, 29, 30).

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
fn faults_signals() {}

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
    infallible "faults/infallible.rs"
    foreign "faults/foreign.rs"
    threads "faults/threads.rs"
    state "faults/state.rs"
}

#[cfg(all(
    any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64", cachewise_armv7),
    target_os = "linux",
    feature = "std",
    not(miri),
    not(cachewise_portable)
))]
#[cfg_attr(target_arch = "x86_64", path = "common/probe.rs")]
#[cfg_attr(target_arch = "x86", path = "common/probe_x86.rs")]
#[cfg_attr(target_arch = "aarch64", path = "common/probe_aarch64.rs")]
#[cfg_attr(target_arch = "arm", path = "common/probe_arm.rs")]
mod probe;
