//! The public calls on ordinary memory, without any system call: what Miri can follow. It checks
//! what no other test can: that uninitialised bytes and pointers' provenance pass through, and that
//! no reference outlives its right.

use cachewise::bytes;
use cachewise::{Hints, Page, switch};
use std::mem::MaybeUninit;

#[test]
fn pointers_survive_a_copy() {
    for count in [1, 2, 3, 70] {
        let numbers: Vec<u32> = (0..count).collect();
        let from: Vec<&u32> = numbers.iter().collect();
        for nontemporal in [false, true] {
            let mut to = vec![MaybeUninit::<&u32>::uninit(); from.len()];
            let (dst, src) = (to.as_mut_ptr().cast(), from.as_ptr().cast());
            // SAFETY: two vectors of the same length.
            unsafe {
                if nontemporal {
                    bytes::copy_nontemporal_raw(dst, src, size_of_val(&from[..]));
                } else {
                    bytes::copy_raw(dst, src, size_of_val(&from[..]));
                }
            }
            for (pointer, number) in to.iter().zip(&numbers) {
                // SAFETY: all of it has just been copied.
                assert_eq!(unsafe { *pointer.assume_init() }, *number);
            }
        }
    }
}

#[test]
fn padding_and_uninitialised_bytes_pass_through() {
    let mut from = [MaybeUninit::<u8>::uninit(); 40];
    from[0].write(1);
    from[39].write(2);
    for len in [1, 3, 7, 12, 16, 17, 40] {
        let mut to = [MaybeUninit::<u8>::uninit(); 40];
        // SAFETY: both arrays are at least that long.
        unsafe { bytes::copy_raw(to.as_mut_ptr().cast(), from.as_ptr().cast(), len) };
        // SAFETY: the first byte was initialised in the source.
        assert_eq!(unsafe { to[0].assume_init() }, 1);
    }
}

#[test]
fn uninitialised_destinations_come_back_initialised() {
    for len in 0..40 {
        let src: Vec<u8> = (1..=len).collect();
        let mut dst = vec![MaybeUninit::uninit(); src.len()];
        assert_eq!(cachewise::copy(&mut dst[..], &src), src);
        let mut dst = vec![MaybeUninit::uninit(); src.len()];
        assert_eq!(cachewise::copy_nontemporal(&mut dst[..], &src), src);
        let mut dst = vec![MaybeUninit::uninit(); src.len()];
        assert_eq!(cachewise::copy_auto(&mut dst[..], &src, Hints::new()), src);
        let mut dst = vec![MaybeUninit::uninit(); src.len()];
        assert_eq!(cachewise::fill(&mut dst[..], 7), vec![7; src.len()]);
        let mut dst = vec![MaybeUninit::uninit(); src.len()];
        assert_eq!(cachewise::clear_nontemporal(&mut dst[..]), vec![0; src.len()]);
    }
    let mut page = MaybeUninit::<Page>::uninit();
    assert_eq!(cachewise::clear_page(&mut page).as_bytes(), &[0; 4096]);
}

#[test]
fn overlapping_ranges_move_both_ways() {
    for distance in [1, 8, 30] {
        let original: Vec<u8> = (0..100).collect();
        for (src, dst) in [(0, distance), (distance, 0)] {
            let mut bytes = original.clone();
            cachewise::copy_overlapping(&mut bytes, src..src + 60, dst);
            assert_eq!(bytes[dst..dst + 60], original[src..src + 60]);
            let mut bytes = original.clone();
            cachewise::copy_overlapping_nontemporal(&mut bytes, src..src + 60, dst);
            assert_eq!(bytes[dst..dst + 60], original[src..src + 60]);
        }
    }
}

#[test]
fn batches_and_lists_of_pairs() {
    let mut log = [0_u8; 60];
    let (first, rest) = log.split_at_mut(20);
    let (second, third) = rest.split_at_mut(20);
    cachewise::batch(|batch| {
        batch.copy(first, &[1; 20]);
        batch.clear(second);
    });
    cachewise::copy_vectored(&mut [(second, &[2; 20])]);
    cachewise::copy_vectored_nontemporal(&mut [(third, &[3; 20])]);
    assert_eq!((log[0], log[20], log[59]), (1, 2, 3));
}

#[test]
fn every_slot_says_why() {
    for slot in switch::Slot::ALL {
        assert!(switch::why(slot).to_string().starts_with(slot.name()));
    }
}
