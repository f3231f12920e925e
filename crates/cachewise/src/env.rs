//! The environment's word, read once by an explicit [`init`].
//!
//! | variable | meaning |
//! |---|---|
//! | `CACHEWISE_FORCE` | `slot=variant[,slot=variant…]`, for example `clear_page=rep_stosq,copy_nontemporal=movnti` |
//! | `CACHEWISE_DISABLE` | variants and CPU features not to use, for example `avx512f,clzero` |
//! | `CACHEWISE_NT_THRESHOLD` | from how many bytes `_nontemporal` and `_auto` calls go around the cache: a size, `off` or `always` |
//! | `CACHEWISE_PROFILE` | a file that `cachewise tune` wrote on this machine; `any:FILE` takes another machine's as well |
//!
//! What is forced and the threshold stand above the profile. All are ignored in a set-user-ID
//! program: whoever starts it must not choose its code paths.

use crate::arch;
use crate::cpu::Geometry;
use crate::error::{Error, Word};
use crate::policy::{self, Threshold};
use crate::profile::{Accept, Profile, Resolved};
use crate::switch::disabled::Disabled;
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
    let disable = variable("CACHEWISE_DISABLE")?.unwrap_or_default();
    let force = variable("CACHEWISE_FORCE")?.unwrap_or_default();
    let threshold = variable("CACHEWISE_NT_THRESHOLD")?;
    let threshold = threshold.map(|text| text.trim().parse::<Threshold>()).transpose()?;

    let plan = Plan::parse(&disable, &force)?;
    let profile = variable("CACHEWISE_PROFILE")?;
    let profile = profile.map(|file| measured(file.trim(), plan.disabled())).transpose()?;

    plan.apply();
    if cfg!(cachewise_armv7) {
        // Elsewhere no routine goes line by line.
        arch::LINE_BYTES.store(Geometry::system().line_min().value, Ordering::Relaxed);
    }
    if let Some(profile) = profile {
        profile.apply();
    }
    if let Some(threshold) = threshold {
        policy::set_all(threshold, switch::DecidedBy::Environment);
    }
    Ok(())
}

/// The prefix of a profile that need not be this machine's.
pub(crate) const ANY_MACHINE: &str = "any:";

fn measured(file: &str, disabled: Disabled) -> Result<Resolved, Error> {
    let (file, accept) = match file.strip_prefix(ANY_MACHINE) {
        Some(file) => (file, Accept::AnyMachine),
        None => (file, Accept::ThisMachine),
    };
    Profile::from_path(file.as_ref())?.resolve(accept, disabled)
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
