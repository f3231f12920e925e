//! Single objects and strings that may not be there.

use crate::stage::{Area, Kind, NON_CANONICAL, PAGE, Stop, check_result};
use cachewise::fallible::{
    self, Cause, Exchange, Fault, Side, Word, try_compare_exchange, try_read, try_strnlen,
    try_swap, try_write,
};
use std::fmt::Debug;

fn area() -> Area {
    fallible::install().expect("the handlers can be installed");
    let mut area = Area::new();
    for (i, byte) in area.bytes_mut().iter_mut().enumerate() {
        *byte = i as u8 ^ 0x5a;
    }
    area
}

#[track_caller]
fn check_fault<T: Debug>(result: Result<T, Fault>, size: usize, side: Side, cause: Cause) {
    let stop = Stop { copied: 0, side, cause };
    check_result("word", size, Some(stop), result.map(|_| ()), &(size, side, cause));
}

fn reads_and_writes<W: Word + Debug + PartialEq>(first: W, second: W) {
    let size = size_of::<W>();
    let mut area = area();
    let before = area.bytes().to_vec();
    for kind in Kind::ALL {
        area.set(1, kind);
        // The last object before the page, the first and the last on it, the first behind it.
        for at in [PAGE - size, PAGE, 2 * PAGE - size, 2 * PAGE] {
            let object = area.at(at).cast::<W>();
            let on_page = at / PAGE == 1;
            let refused = |cause: Option<Cause>| cause.filter(|_| on_page);
            // SAFETY: the area's memory, where it exists.
            let (read, written) = unsafe { (try_read(object), try_write(object, first)) };
            match refused(kind.refuses_read()) {
                Some(cause) => check_fault(read, size, Side::Source, cause),
                None => {
                    // SAFETY: plain old data inside the area.
                    let expected = unsafe { before.as_ptr().add(at).cast::<W>().read_unaligned() };
                    assert_eq!(read, Ok(expected), "{size} bytes at {at}");
                }
            }
            match refused(kind.refuses_write()) {
                Some(cause) => check_fault(written, size, Side::Destination, cause),
                None => {
                    assert_eq!(written, Ok(()));
                    // SAFETY: as above.
                    unsafe {
                        assert_eq!(try_read(object), Ok(first));
                        assert_eq!(try_write(object, second), Ok(()));
                        assert_eq!(try_read(object), Ok(second));
                    }
                    area.bytes_mut()[at..at + size].copy_from_slice(&before[at..at + size]);
                }
            }
            assert!(area.bytes() == before, "{size} bytes at {at}: something else was written");
        }
    }
    // Refused before it is touched, there or not.
    for misaligned in 1..size {
        for base in [0, PAGE] {
            let object = area.at(base + misaligned).cast::<W>();
            // SAFETY: as above.
            let (read, written) = unsafe { (try_read(object), try_write(object, first)) };
            check_fault(read, size, Side::Source, Cause::Alignment);
            check_fault(written, size, Side::Destination, Cause::Alignment);
        }
    }
    assert!(area.bytes() == before, "{size} bytes: misaligned, and written all the same");
    for (wild, cause) in [(0_u64, Cause::Unmapped), (1 << 63, NON_CANONICAL)] {
        // 32 bits hold only the first.
        let Ok(wild) = usize::try_from(wild) else { continue };
        let wild = wild as *mut W;
        // SAFETY: nothing exists there.
        let (read, written) = unsafe { (try_read(wild), try_write(wild, first)) };
        check_fault(read, size, Side::Source, cause);
        check_fault(written, size, Side::Destination, cause);
    }
}

#[test]
fn read_and_write_of_every_size() {
    reads_and_writes(0x81_u8, 0x7e);
    reads_and_writes(0x8123_u16, 0x7edc);
    reads_and_writes(0x8123_4567_u32, 0x7edc_ba98);
    reads_and_writes(0x8123_4567_89ab_cdef_u64, 0x7edc_ba98_7654_3210);
}

fn exchanges<W: Exchange + Debug + PartialEq>(old: W, new: W, other: W) {
    let size = size_of::<W>();
    let mut area = area();
    let before = area.bytes().to_vec();
    let object = area.at(PAGE - size).cast::<W>();
    // SAFETY: the area's memory, where it exists.
    unsafe {
        assert_eq!(try_write(object, old), Ok(()));
        assert_eq!(try_swap(object, new), Ok(old));
        assert_eq!(try_read(object), Ok(new));
        assert_eq!(try_compare_exchange(object, old, other), Ok(new), "not as expected");
        assert_eq!(try_read(object), Ok(new), "so left alone");
        assert_eq!(try_compare_exchange(object, new, other), Ok(new));
        assert_eq!(try_read(object), Ok(other));
    }
    area.bytes_mut()[PAGE - size..PAGE].copy_from_slice(&before[PAGE - size..PAGE]);
    for kind in Kind::ALL {
        let Some(cause) = kind.refuses_write() else { continue };
        area.set(1, kind);
        let object = area.at(PAGE).cast::<W>();
        // SAFETY: as above.
        let (swap, exchange) =
            unsafe { (try_swap(object, new), try_compare_exchange(object, old, new)) };
        check_fault(swap, size, Side::Destination, cause);
        check_fault(exchange, size, Side::Destination, cause);
    }
    for misaligned in 1..size {
        let object = area.at(misaligned).cast::<W>();
        // SAFETY: as above.
        let (swap, exchange) =
            unsafe { (try_swap(object, new), try_compare_exchange(object, old, new)) };
        check_fault(swap, size, Side::Destination, Cause::Alignment);
        check_fault(exchange, size, Side::Destination, Cause::Alignment);
    }
    assert!(area.bytes() == before, "{size} bytes: something else was written");
}

#[test]
fn exchange_of_every_size() {
    exchanges(0x8000_0001_u32, 0xffff_fffe, 3);
    exchanges(0x8000_0000_0000_0001_u64, 0xffff_ffff_0000_0000, 3);
}

/// Four threads count by compare-exchange: none may be lost.
#[test]
fn exchanges_are_atomic() {
    const THREADS: u64 = 4;
    const EACH: u64 = 5_000;
    let mut area = area();
    area.bytes_mut().fill(0);
    let counter = area.at(64).expose_provenance();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let object = std::ptr::with_exposed_provenance_mut::<u64>(counter);
                for _ in 0..EACH {
                    // SAFETY: the area's memory, touched only by single accesses.
                    let mut seen = unsafe { try_read(object) }.expect("it is there");
                    loop {
                        // SAFETY: as above.
                        let found = unsafe { try_compare_exchange(object, seen, seen + 1) };
                        match found.expect("it is there") {
                            found if found == seen => break,
                            found => seen = found,
                        }
                    }
                }
            });
        }
    });
    assert_eq!(area.bytes()[64..72], (THREADS * EACH).to_ne_bytes());
}

#[test]
fn strings_up_to_the_edge() {
    let mut area = area();
    area.bytes_mut().fill(b'a');
    area.set(1, Kind::BeyondEnd);
    for len in (0..=130).chain([1000, PAGE - 1]) {
        // Its zero is the last byte that is there: one look further would be seen.
        let string = area.at(PAGE - 1 - len);
        area.bytes_mut()[PAGE - 1] = 0;
        for max in [len, len + 1, len + 2, usize::MAX] {
            // SAFETY: the area's memory, where it exists.
            assert_eq!(unsafe { try_strnlen(string, max) }, Ok(len), "at most {max}");
        }
        if len > 0 {
            // SAFETY: as above.
            assert_eq!(unsafe { try_strnlen(string, len - 1) }, Ok(len - 1));
        }
        area.bytes_mut()[PAGE - 1] = b'a';
        // SAFETY: as above.
        assert_eq!(unsafe { try_strnlen(string, len + 1) }, Ok(len + 1), "no zero, not beyond");
        for max in [len + 2, usize::MAX] {
            // SAFETY: as above.
            let fault = unsafe { try_strnlen(string, max) };
            let stop = Stop { copied: len + 1, side: Side::Source, cause: Cause::BeyondEndOfFile };
            check_result("try_strnlen", max, Some(stop), fault.map(|_| ()), &len);
        }
    }
    // SAFETY: nothing is looked at.
    assert_eq!(unsafe { try_strnlen(std::ptr::null(), 0) }, Ok(0));
}
