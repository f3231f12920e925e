//! The public calls: what each adds to a variant, whatever variant serves its slot.

use crate::common::{candidates, exclusive};
use crate::say;
use crate::stage::{AREA, Case, Kind, PAGE, PAGES, Stage, Stop, Tail, check_result};
use cachewise::fallible::{self, Cause, Chunks, Fault, Pair, Side, user};
use cachewise::policy::{self, Gate, Threshold};
use cachewise::switch::{self, Slot};
use std::ops::ControlFlow::{Break, Continue};

const EDGE_PAGE: usize = PAGES / 2;
const EDGE: usize = AREA / 2;

type Copy = unsafe fn(*mut u8, *const u8, usize) -> Result<(), Fault>;
type Fill = unsafe fn(*mut u8, u8, usize) -> Result<(), Fault>;

const COPIES: [(&str, Copy, Tail); 4] = [
    ("try_copy", fallible::try_copy, Tail::Unspecified),
    ("try_copy_nontemporal", fallible::try_copy_nontemporal, Tail::Unspecified),
    ("try_copy_zeroing", fallible::try_copy_zeroing, Tail::Zeroed),
    ("try_copy_nontemporal_zeroing", fallible::try_copy_nontemporal_zeroing, Tail::Zeroed),
];

fn stage() -> Stage {
    fallible::install().expect("the handlers can be installed");
    Stage::new()
}

/// Where the fault is and how long the copy: heads, loops, tails, and both sides of thresholds.
fn places() -> impl Iterator<Item = (usize, usize)> {
    [0, 1, 15, 63, 64, 65, 300, 511, 1000, 4095, 4096, 9000]
        .into_iter()
        .flat_map(|at| [1, 17, 500, 6000].map(|more| (at, at + more)))
}

#[test]
fn copies_by_every_variant_that_may_serve_their_slot() {
    let _alone = exclusive();
    let mut stage = stage();
    for slot in [Slot::Copy, Slot::CopyNontemporal] {
        for variant in candidates(slot) {
            switch::set(slot, variant).expect("the slot accepts it");
            for threshold in [Threshold::Off, Threshold::Bytes(500), Threshold::Always] {
                policy::set_threshold(Gate::CopyNontemporal, threshold);
                for (at, len) in places() {
                    for (in_src, in_dst) in [(true, false), (false, true), (true, true)] {
                        let kind = |edged| if edged { Kind::NoAccess } else { Kind::ReadWrite };
                        stage.src.set(EDGE_PAGE, kind(in_src));
                        stage.dst.set(EDGE_PAGE, kind(in_dst));
                        // A page that is there only for reading ends the zeroes.
                        stage.dst.set(EDGE_PAGE + 2, Kind::ReadOnly);
                        let place = |edged| if edged { EDGE - at } else { EDGE + PAGE + at % 64 };
                        let case = Case { dst: place(in_dst), src: place(in_src), len };
                        for (name, call, tail) in COPIES {
                            let subject = format!("{name} by {}", variant.name());
                            // SAFETY: what exists of both areas is the stage's.
                            let call = |dst, src, len| unsafe { call(dst, src, len) };
                            stage.copy(&subject, case, tail, call);
                        }
                    }
                }
            }
        }
    }
    stage.check_source();
}

#[test]
fn fills_by_every_variant_that_may_serve_their_slot() {
    let _alone = exclusive();
    let mut stage = stage();
    stage.dst.set(EDGE_PAGE, Kind::BeyondEnd);
    for slot in [Slot::Clear, Slot::ClearNontemporal] {
        for variant in candidates(slot) {
            switch::set(slot, variant).expect("the slot accepts it");
            for threshold in [Threshold::Off, Threshold::Always] {
                policy::set_threshold(Gate::ClearNontemporal, threshold);
                for (at, len) in places() {
                    let fills: [(_, Fill); 2] = [
                        ("try_fill", fallible::try_fill),
                        ("try_fill_nontemporal", fallible::try_fill_nontemporal),
                    ];
                    for (name, call) in fills {
                        for value in [0, 0xa5] {
                            let subject = format!("{name} by {}", variant.name());
                            stage.fill(&subject, (EDGE - at, len), value, |dst, len| {
                                // SAFETY: what exists of the area is the stage's.
                                unsafe { call(dst, value, len) }
                            });
                        }
                    }
                    stage.fill("try_clear", (EDGE - at, len), 0, |dst, len| {
                        // SAFETY: as above.
                        unsafe { fallible::try_clear(dst, len) }
                    });
                    stage.fill("try_clear_nontemporal", (EDGE - at, len), 0, |dst, len| {
                        // SAFETY: as above.
                        unsafe { fallible::try_clear_nontemporal(dst, len) }
                    });
                }
            }
        }
    }
}

/// Plain Rust may serve a slot; a fallible call then takes a variant that can recover.
#[test]
fn a_slot_served_by_plain_rust_still_recovers() {
    let _alone = exclusive();
    let mut stage = stage();
    stage.src.set(EDGE_PAGE, Kind::NoAccess);
    let Some(plain) = candidates(Slot::Copy).find(|v| !v.recoverable()) else {
        say!("cannot run here: every variant of the copy slot is recoverable");
        return;
    };
    switch::set(Slot::Copy, plain).expect("the slot accepts it");
    for (name, call, tail) in COPIES {
        let case = Case { dst: 3, src: EDGE - 321, len: 5000 };
        // SAFETY: what exists of both areas is the stage's.
        stage.copy(name, case, tail, |dst, src, len| unsafe { call(dst, src, len) });
    }
}

#[test]
fn chunks_ask_between_and_report_the_whole() {
    let mut stage = stage();
    stage.src.set(EDGE_PAGE, Kind::BeyondEnd);
    for (at, len) in places() {
        for chunk_bytes in [0, 1, 64, 1000, 4096, 1 << 20] {
            let step = chunk_bytes.max(1);
            let case = Case { dst: 7, src: EDGE - at, len };
            let mut asked = Vec::new();
            stage.copy("try_copy_chunked", case, Tail::Unspecified, |dst, src, len| {
                let between = |done| {
                    asked.push(done);
                    Continue(())
                };
                let chunks = Chunks { chunk_bytes };
                // SAFETY: what exists of both areas is the stage's.
                unsafe { fallible::try_copy_chunked(dst, src, len, chunks, between) }
                    .map(|done| assert_eq!(done, len))
            });
            let expected: Vec<usize> = (1..=at / step).map(|i| i * step).collect();
            assert_eq!(asked, expected, "pieces of {chunk_bytes} up to the fault at {at}");
        }
    }
    let case = Case { dst: 0, src: 0, len: 1000 };
    stage.prepare_copy(case);
    let between = |done| if done >= 300 { Break(()) } else { Continue(()) };
    let (dst, src) = (stage.dst.at(0), stage.src.at(0));
    // SAFETY: as above.
    let done =
        unsafe { fallible::try_copy_chunked(dst, src, 1000, Chunks { chunk_bytes: 100 }, between) };
    assert_eq!(done, Ok(300));
    stage.check_copy("ended", Case { len: 300, ..case }, Tail::Unspecified, None);
}

#[test]
fn vectored_stops_at_the_pair_that_fails() {
    let _alone = exclusive();
    let mut stage = stage();
    stage.src.set(EDGE_PAGE, Kind::Unmapped);
    stage.dst.set(EDGE_PAGE, Kind::ReadOnly);
    let good = [(10, 20, 0), (100, 5000, 333), (PAGE, PAGE, 4096)];
    let bad = [
        (Case { dst: 3 * PAGE, src: EDGE - 100, len: 700 }, 100, Side::Source, Cause::Unmapped),
        (Case { dst: EDGE - 99, src: 0, len: 700 }, 99, Side::Destination, Cause::Protection),
    ];
    for variant in candidates(Slot::CopyNontemporal) {
        switch::set(Slot::CopyNontemporal, variant).expect("the slot accepts it");
        for threshold in [Threshold::Off, Threshold::Always] {
            policy::set_threshold(Gate::CopyNontemporal, threshold);
            for ((case, copied, side, cause), (name, vectored)) in
                bad.into_iter().flat_map(|bad| VECTORED.map(|vectored| (bad, vectored)))
            {
                stage.dst.bytes_mut().fill(0x55);
                let mut pairs = good.map(|(dst, src, len)| Case { dst, src, len }).to_vec();
                pairs.push(case);
                pairs.push(Case { dst: 0, src: 0, len: 1 });
                let pairs: Vec<Pair> = pairs
                    .iter()
                    .map(|c| Pair {
                        dst: stage.dst.at(c.dst),
                        src: stage.src.at(c.src),
                        len_bytes: c.len,
                    })
                    .collect();
                // SAFETY: what exists of both areas is the stage's.
                let fault =
                    unsafe { vectored(&pairs) }.expect_err("the fourth pair can't be copied");
                let subject = format!("{name}, non-temporal by {}", variant.name());
                assert_eq!((fault.pair, fault.copied_bytes), (3, 4429 + copied), "{subject}");
                let stop = Stop { copied, side, cause };
                check_result(&subject, case.len, Some(stop), Err(fault.fault), &case);
                for (dst, src, len) in good {
                    let case = Case { dst, src, len };
                    let found = &stage.dst.bytes()[dst..dst + len];
                    assert!(found == &stage.pattern()[src..src + len], "{subject}: {case}");
                }
                assert_eq!(stage.dst.bytes()[0], 0x55, "{subject}: the pair behind the fault");
                // SAFETY: as above.
                let result = unsafe { vectored(&pairs[..3]) };
                assert_eq!(result, Ok(()), "{subject}");
            }
        }
    }
    for (name, vectored) in VECTORED {
        // SAFETY: nothing is copied.
        assert_eq!(unsafe { vectored(&[]) }, Ok(()), "{name}");
    }
}

type Vectored = unsafe fn(&[Pair]) -> Result<(), fallible::VectoredFault>;
const VECTORED: [(&str, Vectored); 2] = [
    ("try_copy_vectored", fallible::try_copy_vectored),
    ("try_copy_vectored_nontemporal", fallible::try_copy_vectored_nontemporal),
];

/// The write path of 2005: in-atomic; if bytes are left, make them present and go on.
#[test]
fn the_slow_path_mends_and_goes_on() {
    let mut stage = stage();
    for hidden in [&[2][..], &[2, 3, 4], &[1, 3, 5, 7]] {
        for (in_src, in_dst) in [(true, false), (false, true), (true, true)] {
            stage.all_there();
            for &page in hidden {
                if in_src {
                    stage.src.set(page, Kind::NoAccess);
                }
                if in_dst {
                    stage.dst.set(page, Kind::NoAccess);
                }
            }
            let case = Case { dst: 300, src: 77, len: 8 * PAGE };
            stage.prepare_copy(case);
            let (dst, src) = (stage.dst.at(case.dst), stage.src.at(case.src));
            let mut faults = 0;
            let make_present = |fault: &Fault| {
                assert_eq!(fault.copied_bytes() + fault.residue_bytes(), case.len, "{fault}");
                let (area, first) = match fault.side() {
                    Side::Source => (&mut stage.src, case.src),
                    Side::Destination => (&mut stage.dst, case.dst),
                };
                area.set((first + fault.copied_bytes()) / PAGE, Kind::ReadWrite);
                faults += 1;
                Continue(())
            };
            // SAFETY: what exists of both areas is the stage's.
            let result =
                unsafe { fallible::try_copy_with_slow_path(dst, src, case.len, make_present) };
            assert_eq!(result, Ok(()));
            let sides = usize::from(in_src) + usize::from(in_dst);
            assert_eq!(faults, hidden.len() * sides, "each page is asked for once");
            stage.check_copy("slow path", case, Tail::Unspecified, None);
        }
    }
}

#[test]
fn the_slow_path_ends_with_what_cannot_be_mended() {
    let mut stage = stage();
    stage.src.set(EDGE_PAGE, Kind::Unmapped);
    let case = Case { dst: 0, src: EDGE - 5000, len: 9000 };
    // Gives up, or says "mended" although nothing was.
    for (answer, asked) in [(Break(()), 1), (Continue(()), 1)] {
        let mut calls = 0;
        stage.copy("slow path", case, Tail::Unspecified, |dst, src, len| {
            // SAFETY: what exists of both areas is the stage's.
            unsafe {
                fallible::try_copy_with_slow_path(dst, src, len, |_| {
                    calls += 1;
                    answer
                })
            }
        });
        assert_eq!(calls, asked);
    }
}

type UserCopy = unsafe fn(*mut u8, *const u8, usize) -> usize;

#[test]
fn the_user_calls_keep_linuxs_conventions() {
    let mut stage = stage();
    let copies: [(&str, UserCopy, Tail); 5] = [
        ("copy_from_user", user::copy_from_user, Tail::Zeroed),
        ("copy_from_user_nontemporal", user::copy_from_user_nontemporal, Tail::Zeroed),
        ("copy_from_user_inatomic", user::copy_from_user_inatomic, Tail::Unspecified),
        (
            "copy_from_user_inatomic_nontemporal",
            user::copy_from_user_inatomic_nontemporal,
            Tail::Unspecified,
        ),
        ("copy_to_user", user::copy_to_user, Tail::Unspecified),
    ];
    for (in_src, in_dst) in [(false, false), (true, false), (false, true)] {
        let kind = |edged| if edged { Kind::NoAccess } else { Kind::ReadWrite };
        stage.src.set(EDGE_PAGE, kind(in_src));
        stage.dst.set(EDGE_PAGE, kind(in_dst));
        for (at, len) in places() {
            let place = |edged| if edged { EDGE - at } else { EDGE + PAGE };
            let case = Case { dst: place(in_dst), src: place(in_src), len };
            let stop = stage.predict_copy(case);
            for (name, call, tail) in copies {
                stage.prepare_copy(case);
                // SAFETY: what exists of both areas is the stage's.
                let left = unsafe { call(stage.dst.at(case.dst), stage.src.at(case.src), len) };
                assert_eq!(left, stop.map_or(0, |stop| len - stop.copied), "{name}: {case}");
                stage.check_copy(name, case, tail, stop);
            }
            // SAFETY: as above.
            let left = unsafe { user::clear_user(stage.dst.at(case.dst), len) };
            let stop = stage.predict_fill(case.dst, len);
            assert_eq!(left, stop.map_or(0, |stop| len - stop.copied), "clear_user: {case}");
        }
    }
    stage.all_there();
    stage.dst.set(1, Kind::ReadOnly);
    stage.dst.set(2, Kind::NoAccess);
    let (there, read_only, gone) =
        (stage.dst.at(0).cast::<u32>(), stage.dst.at(PAGE).cast::<u32>(), stage.dst.at(2 * PAGE));
    // SAFETY: the stage's memory, where it exists.
    unsafe {
        assert_eq!(user::put_user(0x1234_5678_u32, there), Ok(()));
        assert_eq!(user::get_user(there), Ok(0x1234_5678));
        assert_eq!(user::put_user(1_u32, read_only), Err(user::Efault));
        assert!(user::get_user(read_only).is_ok());
        assert_eq!(user::get_user(gone), Err(user::Efault));
        assert_eq!(user::get_user(there.wrapping_byte_add(1)), Err(user::Efault), "misaligned");
    }
    let bytes = stage.dst.bytes_mut();
    bytes[..2 * PAGE].fill(b'x');
    bytes[10] = 0;
    let string = stage.dst.at(0);
    let unended = stage.dst.at(2 * PAGE - 5);
    // SAFETY: as above.
    unsafe {
        assert_eq!(user::strnlen_user(string, 100), 11, "with its zero");
        assert_eq!(user::strnlen_user(string, 10), 11, "more than the limit: longer");
        assert_eq!(user::strnlen_user(string, 11), 11);
        assert_eq!(user::strnlen_user(unended, 5), 6, "no zero up to the limit");
        assert_eq!(user::strnlen_user(unended, 6), 0, "not there");
    }
}

#[test]
fn a_fault_says_what_happened() {
    let mut stage = stage();
    stage.src.set(EDGE_PAGE, Kind::NoAccess);
    // SAFETY: what exists of both areas is the stage's.
    let result = unsafe { fallible::try_copy(stage.dst.at(0), stage.src.at(EDGE - 3), 10) };
    let fault = result.expect_err("the fourth byte can't be read");
    assert_eq!(fault.to_string(), "3 of 10 bytes done: the source is protected there");
}
