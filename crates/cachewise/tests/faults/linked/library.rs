//! A shared and a static library with a copy of the crate.

/// Returns the bytes not copied, or `usize::MAX`.
///
/// # Safety
///
/// As `cachewise::fallible::try_copy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn library_attempt(dst: *mut u8, src: *const u8, len: usize) -> usize {
    if cachewise::fallible::install().is_err() {
        return usize::MAX;
    }
    // SAFETY: the caller's promise.
    unsafe { cachewise::fallible::user::copy_from_user(dst, src, len) }
}
