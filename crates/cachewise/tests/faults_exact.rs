//! Copies and clears that meet a fault: exact to the byte, in every variant, wherever the edge is
//! (cases 16 to 20, 23, 24).

mod common;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri), not(cachewise_portable))))]
#[test]
#[ignore = "needs x86-64 Linux and native code"]
fn faults_exact() {}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri), not(cachewise_portable)))]
#[path = "faults/stage.rs"]
mod stage;

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri), not(cachewise_portable)))]
#[path = "faults/calls.rs"]
mod calls;

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri), not(cachewise_portable)))]
#[path = "faults/edges.rs"]
mod edges;

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri), not(cachewise_portable)))]
#[path = "faults/words.rs"]
mod words;
