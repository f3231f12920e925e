//! Truncated files, holes, huge pages that can't be had.

use crate::child::{End, ended, fork, scenario, wait};
use crate::common::{Handle, Rng, available, for_each_variant, title};
use crate::say;
use crate::stage::{PAGE, Stop, check_result, map};
use cachewise::fallible::{self, Cause, Side, try_copy};
use cachewise::variant::Variant;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::ptr::null_mut;

const BOTH: i32 = libc::PROT_READ | libc::PROT_WRITE;

fn unmap(first: *mut u8, len: usize) {
    // SAFETY: the tests' own mapping, which nobody borrows.
    unsafe { libc::munmap(first.cast(), len) };
}

/// A file on disk, nameless from the start.
fn file_on_disk() -> File {
    let name = format!("cachewise-test-{}-{:?}", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(name);
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true).open(&path);
    let file = file.expect("a file in the directory for temporary files");
    std::fs::remove_file(path).expect("it was just made");
    file
}

scenario!(
    /// Another process truncates the file while it is copied (case 16). The page that the new end
    /// is in is still there; what was copied before the end moved is the old contents.
    a_file_truncated_by_another_process,
    {
        const LEN: usize = 6 << 20;
        fallible::install().expect("the handlers can be installed");
        let mut rng = Rng::new(16);
        let mut pattern = vec![0; LEN];
        rng.fill(&mut pattern);
        // No byte is zero: zero is what the end of the last page becomes.
        pattern.iter_mut().for_each(|byte| *byte |= 1);
        let file = file_on_disk();
        let mut dst = vec![0_u8; LEN];
        let (mut midway, mut rounds) = (0, 0);
        for variant in available().filter(|v| v.recoverable()) {
            let Handle::Copy(copier) = Handle::of(variant) else { continue };
            for _ in 0..2 {
                file.write_all_at(&pattern, 0).expect("the disk has room");
                let src = map(null_mut(), LEN, libc::PROT_READ, &file, 0);
                let (len, delay) = (rng.below(LEN), rng.below(800) as u32);
                let fd = file.as_raw_fd();
                let pid = fork(|| {
                    // SAFETY: no memory is involved.
                    unsafe { libc::usleep(delay) };
                    // SAFETY: as above.
                    unsafe { libc::ftruncate(fd, len as libc::off_t) }
                });
                let fault = loop {
                    // SAFETY: `dst` is ours, `src` a mapping whose file is about to shrink.
                    let result = unsafe { copier.try_copy_raw(dst.as_mut_ptr(), src, LEN) };
                    match result {
                        Ok(()) => assert!(dst == pattern, "{}: complete", title(variant)),
                        Err(fault) => break fault,
                    }
                };
                assert_eq!(ended(wait(pid)), Some(End::Exit(0)), "it could truncate");
                let (end, copied) = (len.next_multiple_of(PAGE), fault.copied_bytes());
                let subject = format!("{}, truncated to {len}, {fault}", title(variant));
                assert_eq!(fault.side(), Side::Source, "{subject}");
                assert_eq!(fault.cause(), Cause::BeyondEndOfFile, "{subject}");
                assert!(copied >= end, "{subject}: the page with the end is there");
                midway += usize::from(copied > end);
                rounds += 1;
                let wrong = (0..copied).find(|&i| {
                    let zeroed = (len..end).contains(&i) && dst[i] == 0;
                    dst[i] != pattern[i] && !zeroed
                });
                assert_eq!(wrong, None, "{subject}: wrong byte in the prefix");
                // From now on exactly.
                // SAFETY: as above.
                let result = unsafe { copier.try_copy_raw(dst.as_mut_ptr(), src, LEN) };
                let stop =
                    Stop { copied: end, side: Side::Source, cause: Cause::BeyondEndOfFile };
                check_result(&subject, LEN, Some(stop), result, &"again");
                assert!(dst[..len] == pattern[..len], "{subject}: again");
                unmap(src, LEN);
            }
        }
        if midway == 0 {
            eprintln!("not demonstrated here: truncation behind the copy, in {rounds} rounds");
        }
    }
);

#[test]
fn a_hole_in_a_file_is_zeroes() {
    fallible::install().expect("the handlers can be installed");
    let file = file_on_disk();
    let len = 64 * PAGE;
    file.set_len(len as u64).expect("it can grow");
    file.write_all_at(b"end", len as u64 - 3).expect("it can be written");
    let src = map(null_mut(), len, libc::PROT_READ, &file, 0);
    let mut dst = vec![7_u8; len];
    // SAFETY: `dst` is ours and the mapping there.
    assert_eq!(unsafe { try_copy(dst.as_mut_ptr(), src, len) }, Ok(()));
    assert!(dst[..len - 3].iter().all(|&byte| byte == 0) && dst.ends_with(b"end"));
    unmap(src, len);
}

/// The pool of huge pages is empty and the mapping has reserved none (case 17).
#[test]
fn a_huge_page_that_cannot_be_had() {
    const HUGE: usize = 2 << 20;
    fallible::install().expect("the handlers can be installed");
    let free = std::fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    if free.as_deref().ok().map(str::trim) != Some("0") {
        say!("not demonstrated here: a huge page that can't be had; free pages: {free:?}");
        return;
    }
    // Ordinary pages up to a boundary, and a huge one behind it.
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping.
    let first = unsafe { libc::mmap(null_mut(), 3 * HUGE, BOTH, flags, -1, 0) };
    assert!(first != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
    let first: *mut u8 = first.cast();
    let edge = first.wrapping_add(HUGE + first.wrapping_add(HUGE).align_offset(HUGE));
    let huge = flags | libc::MAP_HUGETLB | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: replaces a part of our own mapping.
    let map = unsafe { libc::mmap(edge.cast(), HUGE, BOTH, huge, -1, 0) };
    if map == libc::MAP_FAILED {
        let error = std::io::Error::last_os_error();
        say!("not demonstrated here: a huge page that can't be had; mmap: {error}");
        unmap(first, 3 * HUGE);
        return;
    }
    let src = vec![5_u8; 10_000];
    for_each_variant(Variant::recoverable, |variant| {
        for at in [0, 1, 63, 500, 4097] {
            let dst = edge.wrapping_sub(at);
            // SAFETY: what can be had of the destination is ours.
            let result = unsafe {
                match Handle::of(variant) {
                    Handle::Copy(copier) => copier.try_copy_raw(dst, src.as_ptr(), src.len()),
                    Handle::Clear(clearer) => clearer.try_fill_raw(dst, 0, src.len()),
                }
            };
            let (side, cause) = (Side::Destination, Cause::BeyondEndOfFile);
            let stop = Stop { copied: at, side, cause };
            check_result(&title(variant), src.len(), Some(stop), result, &at);
        }
    });
    unmap(first, 3 * HUGE);
}

/// A page whose key the thread has locked: another cause, found as exactly.
#[test]
fn a_page_behind_a_protection_key() {
    // From pkey_alloc(2); not in the libc crate for every C library.
    const DISABLE_ACCESS: usize = 1;
    const DISABLE_WRITE: usize = 2;
    fallible::install().expect("the handlers can be installed");
    let mut other = vec![3_u8; 2 * PAGE];
    for rights in [DISABLE_ACCESS, DISABLE_WRITE] {
        // SAFETY: no memory is involved.
        let key = unsafe { libc::syscall(libc::SYS_pkey_alloc, 0, rights) };
        if key < 0 {
            let error = std::io::Error::last_os_error();
            say!("cannot run here: protection keys; pkey_alloc: {error}");
            return;
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping.
        let first = unsafe { libc::mmap(null_mut(), 2 * PAGE, BOTH, flags, -1, 0) };
        assert!(first != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
        let edge = first.cast::<u8>().wrapping_add(PAGE);
        // SAFETY: a page of our own.
        let result = unsafe { libc::syscall(libc::SYS_pkey_mprotect, edge, PAGE, BOTH, key) };
        assert_eq!(result, 0, "pkey_mprotect: {}", std::io::Error::last_os_error());
        for_each_variant(Variant::recoverable, |variant| {
            for at in [0, 9, 300] {
                let (here, there, len) = (edge.wrapping_sub(at), other.as_mut_ptr(), at + 500);
                let stop = |side| Some(Stop { copied: at, side, cause: Cause::ProtectionKey });
                let subject = title(variant);
                match Handle::of(variant) {
                    Handle::Copy(copier) => {
                        // SAFETY: what may be touched is ours.
                        let read = unsafe { copier.try_copy_raw(there, here, len) };
                        let readable = rights == DISABLE_WRITE;
                        let stop_read = stop(Side::Source).filter(|_| !readable);
                        check_result(&subject, len, stop_read, read, &at);
                        // SAFETY: as above.
                        let write = unsafe { copier.try_copy_raw(here, there, len) };
                        check_result(&subject, len, stop(Side::Destination), write, &at);
                    }
                    Handle::Clear(clearer) => {
                        // SAFETY: as above.
                        let write = unsafe { clearer.try_fill_raw(here, 0, len) };
                        check_result(&subject, len, stop(Side::Destination), write, &at);
                    }
                }
            }
        });
        unmap(first.cast(), 2 * PAGE);
        // SAFETY: no memory is behind the key any more.
        unsafe { libc::syscall(libc::SYS_pkey_free, key) };
    }
}

/// The example of the documentation, by cargo, which has just built it or does so.
#[test]
fn the_example_lives() {
    let output = std::process::Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--offline", "--example", "truncated"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo can be run");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    assert!(out.contains("the source is beyond the end of its file"), "{out}");
    let end = "from now on to byte 20000768, the end of its page\nand lives\n";
    assert!(out.ends_with(end), "{out}");
}
