//! Tells the crate whether an Arm target is ARMv7 or later with the A profile's instructions on
//! Linux: `arm` alone may be an ARMv5 or a microcontroller, and the compiler does not say which.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(cachewise_armv7)");
    let target = std::env::var("TARGET").unwrap_or_default();
    let version = ["armv7-", "thumbv7neon-"].iter().any(|prefix| target.starts_with(prefix));
    if version && target.contains("-linux-") {
        println!("cargo::rustc-cfg=cachewise_armv7");
    }
}
