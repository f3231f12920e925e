//! The environment's word, read once by an explicit [`init`].
//!
//! | variable | meaning |
//! |---|---|
//! | `CACHEWISE_FORCE` | `slot=variant[,slot=variant…]`, for example `clear_page=rep_stosq,copy_nontemporal=movnti` |
//! | `CACHEWISE_DISABLE` | variants and CPU features not to use, for example `avx512f,clzero` |
//! | `CACHEWISE_NT_THRESHOLD` | from how many bytes `_nontemporal` and `_auto` calls go around the cache: a size, `off` or `always` |
//!
//! They are ignored in a set-user-ID program: whoever starts it must not choose its code paths.

use crate::arch;
use crate::cpu::Geometry;
use crate::error::{Error, Word};
use crate::policy::{self, Threshold};
use crate::switch::{self, Plan};
use core::sync::atomic::Ordering;
use std::env::VarError;
use std::string::String;

/// Reads the environment and applies it.
///
/// Call it once, before the program has threads that copy. Without it the environment is ignored.
///
/// # Errors
///
/// The first word that is wrong, with the right ones. Then nothing has been changed.
pub fn init() -> Result<(), Error> {
    if is_secure_execution() {
        return Ok(());
    }
    if variable("CACHEWISE_PROFILE")?.is_some() {
        return Err(Error::ProfileUnsupported);
    }
    let disable = variable("CACHEWISE_DISABLE")?.unwrap_or_default();
    let force = variable("CACHEWISE_FORCE")?.unwrap_or_default();
    let threshold = variable("CACHEWISE_NT_THRESHOLD")?;
    let threshold = threshold.map(|text| text.trim().parse::<Threshold>()).transpose()?;

    Plan::parse(&disable, &force)?.apply();
    if cfg!(cachewise_armv7) {
        // Elsewhere no routine goes line by line.
        arch::LINE_BYTES.store(Geometry::system().line_min().value, Ordering::Relaxed);
    }
    if let Some(threshold) = threshold {
        policy::set_all(threshold, switch::DecidedBy::Environment);
    }
    Ok(())
}

fn variable(name: &str) -> Result<Option<String>, Error> {
    match std::env::var(name) {
        Ok(value) if value.trim().is_empty() => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(Error::NotUnicode { variable: Word::new(name) }),
    }
}

/// Whether the program runs with more rights than its caller (getauxval(3), `AT_SECURE`).
#[cfg(all(target_os = "linux", not(miri)))]
fn is_secure_execution() -> bool {
    const AT_SECURE: core::ffi::c_ulong = 23;
    unsafe extern "C" {
        safe fn getauxval(kind: core::ffi::c_ulong) -> core::ffi::c_ulong;
    }
    getauxval(AT_SECURE) != 0
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn is_secure_execution() -> bool {
    false
}
