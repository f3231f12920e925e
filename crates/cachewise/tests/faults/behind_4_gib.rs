//! A fault behind lengths that 32 bits can't count.

use crate::common::{Handle, Rng, available, for_each_variant, title};
use crate::say;
use crate::stage::{PAGE, Stop, check_result, map, memory_file};
use cachewise::fallible::{self, Cause, Side};
use cachewise::variant::Variant;
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::ptr::null_mut;

const BOTH: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// Of those that are alike in what they do, the first.
fn representatives() -> HashSet<*const Variant> {
    let mut kinds = HashSet::new();
    let kind = |v: &Variant| (v.operation(), v.store(), v.registers());
    let first = available().filter(|v| v.recoverable() && kinds.insert(kind(v)));
    first.map(std::ptr::from_ref).collect()
}

/// One small file, mapped again and again over more than 4 GiB, then a page that is not there.
#[test]
fn a_fault_behind_4_gib() {
    const SMALL: usize = 8 << 20;
    const AT: usize = (1 << 32) + 3 * PAGE + 1234;
    const BEHIND: usize = 100_000;
    const OFFSET: usize = PAGE + 77;
    fallible::install().expect("the handlers can be installed");
    let file = memory_file(SMALL);
    let mut pattern = vec![0; SMALL];
    Rng::new(6).fill(&mut pattern);
    file.write_all_at(&pattern, 0).expect("a file in memory can be written");
    let other = memory_file(SMALL);
    let reserve = |file: &File| {
        let (len, flags) = (
            AT + BEHIND + 2 * SMALL,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let first = unsafe { libc::mmap(null_mut(), len, libc::PROT_NONE, flags, -1, 0) };
        assert!(first != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
        let first: *mut u8 = first.cast();
        // Up to the edge, `AT` bytes before which the copy begins.
        let edge = (OFFSET + AT).next_multiple_of(PAGE);
        for at in (0..edge).step_by(SMALL) {
            map(first.wrapping_add(at), SMALL.min(edge - at), BOTH, file, 0);
        }
        (first, first.wrapping_add(edge - AT), len)
    };
    let ((src_map, src, src_len), (dst_map, dst, dst_len)) = (reserve(&file), reserve(&other));
    let len = AT + BEHIND;
    let chosen = representatives();
    let ran = for_each_variant(
        |v| chosen.contains(&std::ptr::from_ref(v)),
        |variant| {
            let subject = title(variant);
            // From the destination's file, as if it were new.
            other.write_all_at(&vec![0x11; SMALL], 0).expect("it can be written");
            match Handle::of(variant) {
                Handle::Copy(copier) => {
                    // SAFETY: both are our mappings, and apart.
                    let result = unsafe { copier.try_copy_raw(dst, src, len) };
                    let (side, cause) = (Side::Source, Cause::Protection);
                    let stop = Stop { copied: AT, side, cause };
                    check_result(&subject, len, Some(stop), result, &"behind 4 GiB");
                    // Source and destination lie alike, so their files must be.
                    let mut found = vec![0; SMALL];
                    other.read_exact_at(&mut found, 0).expect("it can be read");
                    assert!(found == pattern, "{subject}: the bytes copied");
                    // The same fault of the destination.
                    // SAFETY: as above.
                    let result = unsafe { copier.try_copy_raw(dst, src.wrapping_sub(PAGE), len) };
                    let stop = Stop { side: Side::Destination, ..stop };
                    check_result(&subject, len, Some(stop), result, &"behind 4 GiB");
                }
                Handle::Clear(clearer) => {
                    // SAFETY: as above.
                    let result = unsafe { clearer.try_fill_raw(dst, 0xa5, len) };
                    let (side, cause) = (Side::Destination, Cause::Protection);
                    let stop = Stop { copied: AT, side, cause };
                    check_result(&subject, len, Some(stop), result, &"behind 4 GiB");
                    let mut found = vec![0; SMALL];
                    other.read_exact_at(&mut found, 0).expect("it can be read");
                    assert!(found.iter().all(|&byte| byte == 0xa5), "{subject}: the bytes");
                }
            }
        },
    );
    say!("behind 4 GiB: {ran} kinds of variants");
    for (first, len) in [(src_map, src_len), (dst_map, dst_len)] {
        // SAFETY: the test's own mapping, which nobody borrows.
        unsafe { libc::munmap(first.cast(), len) };
    }
}
