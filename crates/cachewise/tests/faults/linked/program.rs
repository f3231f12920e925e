//! Two versions of the crate, and a shared library with a third copy: each recovers its own faults,
//! in any order of installation, and after the library has been closed.

use std::ffi::{CString, c_char, c_void};
use std::ptr::null_mut;

const PAGE: usize = 4096;

/// The end of memory that can be read.
fn edge() -> *mut u8 {
    let (both, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping.
    let first = unsafe { libc::mmap(null_mut(), 2 * PAGE, both, flags, -1, 0) };
    assert!(first != libc::MAP_FAILED);
    // SAFETY: inside it.
    let edge = unsafe { first.cast::<u8>().add(PAGE) };
    // SAFETY: our own page.
    unsafe { libc::mprotect(edge.cast(), PAGE, libc::PROT_NONE) };
    edge
}

macro_rules! check {
    ($version:ident, $edge:ident) => {
        for variant in $version::variant::all() {
            let Ok(copier) = variant.copier() else { continue };
            if !variant.recoverable() {
                continue;
            }
            for at in [0, 1, 100, 777] {
                let mut dst = [0_u8; 2000];
                // SAFETY: what exists is ours.
                let result = unsafe {
                    copier.try_copy_raw(dst.as_mut_ptr(), $edge.wrapping_sub(at), dst.len())
                };
                let found = result.map_err(|fault| fault.copied_bytes());
                assert_eq!(found, Err(at), "{} {}", stringify!($version), variant.name());
            }
        }
    };
}

type Attempt = unsafe extern "C" fn(*mut u8, *const u8, usize) -> usize;

fn main() {
    let edge = edge();
    let path = CString::new(std::env::args().nth(1).expect("the library's path")).unwrap();
    cachewise::fallible::install().unwrap();
    check!(cachewise, edge);
    other::fallible::install().unwrap();
    check!(cachewise, edge);
    check!(other, edge);

    // SAFETY: a valid string.
    let library = unsafe { libc::dlopen(path.as_ptr() as *const c_char, libc::RTLD_NOW) };
    assert!(!library.is_null(), "dlopen");
    // SAFETY: as above.
    let symbol: *mut c_void = unsafe { libc::dlsym(library, c"library_attempt".as_ptr()) };
    assert!(!symbol.is_null(), "dlsym");
    // SAFETY: the library's function has this signature.
    let attempt = unsafe { std::mem::transmute::<*mut c_void, Attempt>(symbol) };
    let mut dst = [0_u8; 2000];
    // SAFETY: what exists is ours.
    let left = unsafe { attempt(dst.as_mut_ptr(), edge.wrapping_sub(321), dst.len()) };
    assert_eq!(left, 2000 - 321, "the library's copy");
    check!(cachewise, edge);
    check!(other, edge);

    // It was linked with -z nodelete, so its handler stays.
    // SAFETY: nothing of it is called any more but its handler.
    unsafe { libc::dlclose(library) };
    check!(cachewise, edge);
    check!(other, edge);
    println!("all recovered");
}
