//! Every public call, under each of its slots forced to each variant that the slot accepts, around
//! every threshold, against the oracle.
//!
//! The calls share little code with the handles that `shapes` tests: small moves in the caller's
//! own code, the way below the threshold, the parts a hint makes of one copy, the fence.

mod common;

use cachewise::page::{self, Page};
use cachewise::policy::{self, Gate, Threshold};
use cachewise::switch::{self, Slot};
use cachewise::{Hints, bytes};
use common::oracle::Wrong;
use common::{Arena, Rng, Shape, candidates, exclusive, is_small};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

const PAGE_BYTES: usize = 4096;

/// A call on bytes, and the gate it passes if it passes one.
struct Call<Run> {
    name: &'static str,
    slots: &'static [Slot],
    gate: Option<Gate>,
    run: Run,
}

type CopyCall = Call<fn(&mut [u8], &[u8])>;
type FillCall = Call<fn(&mut [u8], u8)>;

const ORDINARY_COPY: &[Slot] = &[Slot::Copy];
const AROUND_COPY: &[Slot] = &[Slot::CopyNontemporal];
const AUTO_COPY: &[Slot] = &[Slot::Copy, Slot::CopyNontemporal];
const ORDINARY_CLEAR: &[Slot] = &[Slot::Clear];
const AROUND_CLEAR: &[Slot] = &[Slot::ClearNontemporal];
const AUTO_CLEAR: &[Slot] = &[Slot::Clear, Slot::ClearNontemporal];

/// A table of calls; `|dst, src|` are slices of equal length.
macro_rules! copies {
    ($($slots:ident $gate:expr, $name:literal: |$dst:ident, $src:ident| $run:expr;)*) => {
        &[$(Call { name: $name, slots: $slots, gate: $gate, run: |$dst, $src| { $run; } }),*]
    };
}

/// A raw form, on the slices' pointers.
macro_rules! raw {
    ($dst:ident, $src:ident, $path:path $(, $hints:expr)?) => {
        // SAFETY: the pointers and the length are those of two slices that don't overlap.
        unsafe { $path($dst.as_mut_ptr(), $src.as_ptr(), $src.len() $(, $hints)?) }
    };
}

const COPIES: &[CopyCall] = copies! {
    ORDINARY_COPY None, "copy": |dst, src| cachewise::copy(dst, src);
    ORDINARY_COPY None, "copy_raw": |dst, src| raw!(dst, src, bytes::copy_raw);
    ORDINARY_COPY None, "copy_with": |dst, src| cachewise::copy_with(dst, src, Hints::new());
    ORDINARY_COPY None, "copy_with source": |dst, src|
        cachewise::copy_with(dst, src, Hints::new().source_nontemporal());
    ORDINARY_COPY None, "copy_with_raw": |dst, src|
        raw!(dst, src, bytes::copy_with_raw, Hints::new().source_nontemporal());
    ORDINARY_COPY None, "copy_overlapping_raw": |dst, src|
        raw!(dst, src, bytes::copy_overlapping_raw);
    ORDINARY_COPY None, "copy_vectored": |dst, src| in_pairs(dst, src, cachewise::copy_vectored);
    AROUND_COPY Some(Gate::CopyNontemporal), "copy_nontemporal": |dst, src|
        cachewise::copy_nontemporal(dst, src);
    AROUND_COPY Some(Gate::CopyNontemporal), "copy_nontemporal_raw": |dst, src|
        raw!(dst, src, bytes::copy_nontemporal_raw);
    AROUND_COPY Some(Gate::CopyNontemporal), "copy_nontemporal_with total": |dst, src|
        cachewise::copy_nontemporal_with(dst, src, Hints::new().total_bytes(1 << 30));
    AROUND_COPY Some(Gate::CopyNontemporal), "copy_nontemporal_with the largest total": |dst, src|
        cachewise::copy_nontemporal_with(dst, src, Hints::new().total_bytes(usize::MAX));
    AROUND_COPY Some(Gate::CopyNontemporal), "copy_nontemporal_with source": |dst, src|
        cachewise::copy_nontemporal_with(dst, src, Hints::new().source_nontemporal());
    AROUND_COPY Some(Gate::CopyNontemporal), "copy_nontemporal_with kept 1": |dst, src|
        cachewise::copy_nontemporal_with(dst, src, Hints::new().keep_first_bytes(1));
    AROUND_COPY Some(Gate::CopyNontemporal), "copy_nontemporal_with kept 100": |dst, src|
        cachewise::copy_nontemporal_with(dst, src, Hints::new().keep_first_bytes(100));
    AROUND_COPY Some(Gate::CopyNontemporal), "copy_nontemporal_with kept all": |dst, src|
        cachewise::copy_nontemporal_with(dst, src, Hints::new().keep_first_bytes(usize::MAX));
    AROUND_COPY Some(Gate::CopyNontemporal), "copy_nontemporal_with_raw all hints": |dst, src|
        raw!(dst, src, bytes::copy_nontemporal_with_raw,
            Hints::new().total_bytes(5000).keep_first_bytes(333).source_nontemporal());
    AROUND_COPY Some(Gate::CopyNontemporal), "copy_overlapping_nontemporal_raw": |dst, src|
        raw!(dst, src, bytes::copy_overlapping_nontemporal_raw);
    AROUND_COPY Some(Gate::CopyNontemporal), "batch copy": |dst, src|
        cachewise::batch(|batch| batch.copy(dst, src));
    AROUND_COPY Some(Gate::CopyNontemporal), "batch copy_raw in pieces": |dst, src|
        cachewise::batch(|batch| for (dst, src) in dst.chunks_mut(71).zip(src.chunks(71)) {
            raw!(dst, src, batch_copy_raw, batch)
        });
    AROUND_COPY Some(Gate::CopyNontemporal), "copy_vectored_nontemporal": |dst, src|
        in_pairs(dst, src, cachewise::copy_vectored_nontemporal);
    AUTO_COPY Some(Gate::CopyAuto), "copy_auto": |dst, src|
        cachewise::copy_auto(dst, src, Hints::new());
    AUTO_COPY Some(Gate::CopyAuto), "copy_auto total": |dst, src|
        cachewise::copy_auto(dst, src, Hints::new().total_bytes(usize::MAX));
    AUTO_COPY Some(Gate::CopyAuto), "copy_auto_raw all hints": |dst, src|
        raw!(dst, src, bytes::copy_auto_raw,
            Hints::new().total_bytes(700).keep_first_bytes(65).source_nontemporal());
};

/// # Safety
///
/// As `Batch::copy_raw`.
unsafe fn batch_copy_raw(dst: *mut u8, src: *const u8, len: usize, batch: &cachewise::Batch) {
    // SAFETY: the caller's promise.
    unsafe { batch.copy_raw(dst, src, len) }
}

type Vectored = fn(&mut [(&mut [u8], &[u8])]);
type Overlapping = fn(&mut [u8], std::ops::Range<usize>, usize);

/// Cuts one copy into three uneven pairs, one of which is empty.
fn in_pairs(dst: &mut [u8], src: &[u8], copy: Vectored) {
    let cut = src.len() / 3;
    let (first, last) = dst.split_at_mut(cut);
    copy(&mut [(first, &src[..cut]), (&mut [], &[]), (last, &src[cut..])]);
}

const FILLS: &[FillCall] = copies! {
    ORDINARY_CLEAR None, "fill": |dst, value| cachewise::fill(dst, value);
    ORDINARY_CLEAR None, "fill_raw": |dst, value|
        // SAFETY: the pointer and the length are those of a slice.
        unsafe { bytes::fill_raw(dst.as_mut_ptr(), value, dst.len()) };
    AROUND_CLEAR Some(Gate::ClearNontemporal), "fill_nontemporal": |dst, value|
        cachewise::fill_nontemporal(dst, value);
    AROUND_CLEAR Some(Gate::ClearNontemporal), "fill_nontemporal_raw": |dst, value|
        // SAFETY: as above.
        unsafe { bytes::fill_nontemporal_raw(dst.as_mut_ptr(), value, dst.len()) };
    AROUND_CLEAR Some(Gate::ClearNontemporal), "fill_nontemporal_with_raw": |dst, value|
        // SAFETY: as above.
        unsafe {
            let hints = Hints::new().total_bytes(1 << 20).keep_first_bytes(77);
            bytes::fill_nontemporal_with_raw(dst.as_mut_ptr(), value, dst.len(), hints)
        };
};

/// Their value is zero.
const CLEARS: &[FillCall] = copies! {
    ORDINARY_CLEAR None, "clear": |dst, _value| cachewise::clear(dst);
    ORDINARY_CLEAR None, "clear_raw": |dst, _value|
        // SAFETY: the pointer and the length are those of a slice.
        unsafe { bytes::clear_raw(dst.as_mut_ptr(), dst.len()) };
    AROUND_CLEAR Some(Gate::ClearNontemporal), "clear_nontemporal": |dst, _value|
        cachewise::clear_nontemporal(dst);
    AROUND_CLEAR Some(Gate::ClearNontemporal), "clear_nontemporal_raw": |dst, _value|
        // SAFETY: as above.
        unsafe { bytes::clear_nontemporal_raw(dst.as_mut_ptr(), dst.len()) };
    AROUND_CLEAR Some(Gate::ClearNontemporal), "batch clear": |dst, _value|
        cachewise::batch(|batch| batch.clear(dst));
    AROUND_CLEAR Some(Gate::ClearNontemporal), "batch clear_raw": |dst, _value|
        // SAFETY: as above; nothing looks at it before the batch has ended.
        cachewise::batch(|batch| unsafe { batch.clear_raw(dst.as_mut_ptr(), dst.len()) });
    AUTO_CLEAR Some(Gate::ClearAuto), "clear_auto": |dst, _value|
        cachewise::clear_auto(dst, Hints::new());
    AUTO_CLEAR Some(Gate::ClearAuto), "clear_auto kept": |dst, _value|
        cachewise::clear_auto(dst, Hints::new().keep_first_bytes(130).total_bytes(900));
    AUTO_CLEAR Some(Gate::ClearAuto), "clear_auto_raw": |dst, _value|
        // SAFETY: as above.
        unsafe { bytes::clear_auto_raw(dst.as_mut_ptr(), dst.len(), Hints::new()) };
};

/// States and sizes; the sizes are small so that lengths around them are cheap to try.
const THRESHOLDS: [Threshold; 5] = [
    Threshold::Off,
    Threshold::Always,
    Threshold::Bytes(1),
    Threshold::Bytes(100),
    Threshold::Bytes(700),
];

/// With every small length, since those take their own way through the public calls.
fn lengths(threshold: Option<Threshold>) -> Vec<usize> {
    let mut lengths: Vec<usize> = (0..=40).collect();
    lengths.extend([63, 64, 65, 99, 127, 128, 129, 256, 511, 512, 513, 1024, 4096, 4097, 9999]);
    if let Some(Threshold::Bytes(bytes)) = threshold {
        lengths.extend([bytes - 1, bytes, bytes + 1, 3 * bytes + 2]);
    }
    lengths
}

/// Calls under test with the variant and threshold in force, in words for a failure.
fn under_all_settings<Run>(
    call: &Call<Run>,
    mut test: impl FnMut(Option<Threshold>) -> Result<(), Wrong>,
) {
    let gates: Vec<Option<Threshold>> = match call.gate {
        None => vec![None],
        Some(_) => THRESHOLDS.map(Some).to_vec(),
    };
    for &slot in call.slots {
        let mut ran = 0;
        for variant in candidates(slot) {
            switch::set(slot, variant).expect("the slot accepts it");
            for &threshold in &gates {
                if let (Some(gate), Some(threshold)) = (call.gate, threshold) {
                    policy::set_threshold(gate, threshold);
                }
                if let Err(wrong) = test(threshold) {
                    panic!(
                        "{} with {}, threshold {threshold:?}: {wrong}",
                        call.name,
                        switch::why(slot)
                    );
                }
            }
            ran += 1;
        }
        assert!(ran > 0, "nothing can serve {slot} here");
        switch::reset(slot);
    }
}

fn positions(rng: &mut Rng, len: usize) -> Shape {
    Shape { dst: PAGE_BYTES + rng.below(64), src: PAGE_BYTES + rng.below(64), len }
}

#[test]
fn copies() {
    let _alone = exclusive();
    let mut arena = Arena::new(6 * PAGE_BYTES);
    for call in COPIES {
        let mut rng = Rng::new(11);
        under_all_settings(call, |threshold| {
            lengths(threshold)
                .into_iter()
                .try_for_each(|len| arena.copy(positions(&mut rng, len), call.run))
        });
        arena.check_everywhere(call.name);
    }
}

#[test]
fn clears_and_fills() {
    let _alone = exclusive();
    let mut arena = Arena::new(6 * PAGE_BYTES);
    let all = [(CLEARS, &[0][..]), (FILLS, &[0, 0xff, 0xa5])];
    for (calls, values) in all {
        for call in calls {
            let mut rng = Rng::new(12);
            under_all_settings(call, |threshold| {
                lengths(threshold).into_iter().try_for_each(|len| {
                    let value = values[len % values.len()];
                    arena.clear(positions(&mut rng, len), value, |dst| (call.run)(dst, value))
                })
            });
            arena.check_everywhere(call.name);
        }
    }
}

/// The thresholds the library chooses by itself, met exactly.
#[test]
fn default_thresholds() {
    let _alone = exclusive();
    let mut arena = Arena::new(1 << 20);
    for call in COPIES {
        let Some(gate) = call.gate else { continue };
        let decided = policy::threshold(gate);
        let Threshold::Bytes(bytes) = decided.threshold else {
            panic!("{} has no size by default: {decided:?}", gate.name());
        };
        if bytes > arena.len_bytes() / 2 {
            // A gate of the cache's size: its neighbourhood is met with thresholds set low.
            continue;
        }
        for len in [bytes - 1, bytes, bytes + 1] {
            let shape = Shape { dst: PAGE_BYTES + 3, src: PAGE_BYTES + 5, len };
            arena.copy(shape, call.run).unwrap_or_else(|wrong| panic!("{}: {wrong}", call.name));
        }
    }
}

// ---- Pages. ----

/// The bytes as a page in place.
fn page_mut<const SIZE: usize>(bytes: &mut [u8]) -> &mut Page<SIZE> {
    assert_eq!((bytes.len(), bytes.as_ptr().addr() % PAGE_BYTES), (SIZE, 0));
    // SAFETY: a page is `SIZE` bytes aligned to 4096, as just checked.
    unsafe { &mut *bytes.as_mut_ptr().cast() }
}

fn pages_mut<const SIZE: usize>(bytes: &mut [u8]) -> &mut [Page<SIZE>] {
    assert_eq!((bytes.len() % SIZE, bytes.as_ptr().addr() % PAGE_BYTES), (0, 0));
    // SAFETY: pages are `SIZE` bytes aligned to 4096, as just checked.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len() / SIZE) }
}

fn page_ref<const SIZE: usize>(bytes: &[u8]) -> &Page<SIZE> {
    assert_eq!((bytes.len(), bytes.as_ptr().addr() % PAGE_BYTES), (SIZE, 0));
    // SAFETY: as in `page_mut`.
    unsafe { &*bytes.as_ptr().cast() }
}

const CLEAR_PAGE: &[Slot] = &[Slot::ClearPage];
const COPY_PAGE: &[Slot] = &[Slot::CopyPage];
const CLEAR_PAGE_AROUND: &[Slot] = &[Slot::ClearPageNontemporal];
const COPY_PAGE_AROUND: &[Slot] = &[Slot::CopyPageNontemporal];
const CLEAR_GATE: Option<Gate> = Some(Gate::ClearPageNontemporal);
const COPY_GATE: Option<Gate> = Some(Gate::CopyPageNontemporal);

fn pages_of<const SIZE: usize>() {
    let copies: &[CopyCall] = copies! {
        COPY_PAGE None, "copy_page": |dst, src| {
            let copied = page::copy_page(page_mut::<SIZE>(dst), page_ref(src));
            assert_eq!(copied.as_bytes()[..], *src)
        };
        COPY_PAGE None, "copy_page_raw": |dst, src| raw!(dst, src, page::copy_page_raw);
        COPY_PAGE_AROUND COPY_GATE, "copy_page_nontemporal": |dst, src| {
            let copied = page::copy_page_nontemporal(page_mut::<SIZE>(dst), page_ref(src));
            assert_eq!(copied.as_bytes()[..], *src)
        };
        COPY_PAGE_AROUND COPY_GATE, "copy_page_nontemporal_raw": |dst, src|
            raw!(dst, src, page::copy_page_nontemporal_raw);
    };
    let clears: &[FillCall] = copies! {
        CLEAR_PAGE None, "clear_page": |dst, _value|
            assert_eq!(page::clear_page(page_mut::<SIZE>(dst)).as_bytes()[SIZE - 1], 0);
        CLEAR_PAGE None, "clear_pages of one": |dst, _value|
            page::clear_pages(pages_mut::<SIZE>(dst));
        CLEAR_PAGE None, "clear_page_raw": |dst, _value|
            // SAFETY: a whole page of ours.
            unsafe { page::clear_page_raw(dst.as_mut_ptr(), dst.len()) };
        CLEAR_PAGE_AROUND CLEAR_GATE, "clear_page_nontemporal": |dst, _value|
            assert_eq!(page::clear_page_nontemporal(page_mut::<SIZE>(dst)).as_bytes()[0], 0);
        CLEAR_PAGE_AROUND CLEAR_GATE, "clear_page_nontemporal_raw": |dst, _value|
            // SAFETY: a whole page of ours.
            unsafe { page::clear_page_nontemporal_raw(dst.as_mut_ptr(), dst.len()) };
    };
    let mut arena = Arena::new(2 * PAGE_BYTES + SIZE);
    let shape = Shape { dst: PAGE_BYTES, src: 2 * PAGE_BYTES, len: SIZE };
    for call in copies {
        under_all_settings(call, |_| arena.copy(shape, call.run));
    }
    for call in clears {
        under_all_settings(call, |_| arena.clear(shape, 0, |dst| (call.run)(dst, 0)));
    }
    arena.check_everywhere("pages");
}

#[test]
fn pages_of_4_kib() {
    let _alone = exclusive();
    pages_of::<4096>();
}

#[test]
fn pages_of_16_kib() {
    let _alone = exclusive();
    pages_of::<16384>();
}

#[test]
fn pages_of_64_kib() {
    let _alone = exclusive();
    pages_of::<65536>();
}

#[test]
fn many_pages() {
    let _alone = exclusive();
    let calls: &[FillCall] = copies! {
        CLEAR_PAGE None, "clear_pages": |dst, _value| page::clear_pages(pages_mut::<4096>(dst));
        CLEAR_PAGE_AROUND CLEAR_GATE, "clear_pages_nontemporal": |dst, _value|
            page::clear_pages_nontemporal(pages_mut::<4096>(dst));
        CLEAR_PAGE_AROUND CLEAR_GATE, "clear_pages_nontemporal, 16 KiB": |dst, _value|
            page::clear_pages_nontemporal(pages_mut::<16384>(dst));
    };
    let mut arena = Arena::new(12 * PAGE_BYTES);
    for call in calls {
        let step = if call.name.contains("16 KiB") { 4 } else { 1 };
        under_all_settings(call, |_| {
            (0..=8).step_by(step).try_for_each(|pages| {
                let shape = Shape { dst: PAGE_BYTES, src: 0, len: pages * PAGE_BYTES };
                arena.clear(shape, 0, |dst| (call.run)(dst, 0))
            })
        });
    }
    arena.check_everywhere("many pages");
}

#[test]
fn huge_pages_with_each_page_hot() {
    let _alone = exclusive();
    const PAGES: usize = 9;
    let mut arena = Arena::new((PAGES + 2) * PAGE_BYTES);
    for hot in 0..PAGES {
        for slots in [CLEAR_PAGE, CLEAR_PAGE_AROUND] {
            let call = Call { name: "clear_huge", slots, gate: CLEAR_GATE, run: () };
            let shape = Shape { dst: PAGE_BYTES, src: 0, len: PAGES * PAGE_BYTES };
            under_all_settings(&call, |_| {
                arena.clear(shape, 0, |dst| page::clear_huge(pages_mut::<4096>(dst), hot))
            });
        }
    }
    arena.check_everywhere("clear_huge");
}

#[test]
fn uninitialised_pages_come_back_as_pages() {
    let _alone = exclusive();
    let source = {
        let mut page = Page::<4096>::zeroed();
        Rng::new(13).fill(page.as_mut_bytes());
        page
    };
    let mut frame = Box::new(MaybeUninit::<Page>::uninit());
    assert_eq!(page::clear_page(&mut *frame).as_bytes(), &[0; 4096]);
    assert_eq!(page::copy_page(&mut *frame, &source).as_bytes(), source.as_bytes());
    assert_eq!(page::clear_page_nontemporal(&mut *frame).as_bytes(), &[0; 4096]);
    assert_eq!(page::copy_page_nontemporal(&mut *frame, &source).as_bytes(), source.as_bytes());
}

#[test]
fn uninitialised_bytes_come_back_as_bytes() {
    let _alone = exclusive();
    let mut source = [0; 3000];
    Rng::new(14).fill(&mut source);
    for len in [0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 100, 511, 512, 3000] {
        let fresh = || vec![MaybeUninit::<u8>::uninit(); len];
        let src = &source[..len];
        let hints = Hints::new().keep_first_bytes(5);
        assert_eq!(cachewise::copy(&mut fresh()[..], src), src);
        assert_eq!(cachewise::copy_with(&mut fresh()[..], src, hints), src);
        assert_eq!(cachewise::copy_nontemporal(&mut fresh()[..], src), src);
        assert_eq!(cachewise::copy_nontemporal_with(&mut fresh()[..], src, hints), src);
        assert_eq!(cachewise::copy_auto(&mut fresh()[..], src, hints), src);
        assert_eq!(cachewise::clear(&mut fresh()[..]), vec![0; len]);
        assert_eq!(cachewise::clear_nontemporal(&mut fresh()[..]), vec![0; len]);
        assert_eq!(cachewise::clear_auto(&mut fresh()[..], hints), vec![0; len]);
        assert_eq!(cachewise::fill(&mut fresh()[..], 6), vec![6; len]);
        assert_eq!(cachewise::fill_nontemporal(&mut fresh()[..], 6), vec![6; len]);
    }
}

// ---- Overlapping. ----

/// What must be there afterwards: through a copy of the source, so overlap cannot matter.
fn move_naively(bytes: &mut [u8], src: usize, dst: usize, len: usize) {
    let moved = bytes[src..src + len].to_vec();
    for (byte, moved) in bytes[dst..].iter_mut().zip(moved) {
        *byte = moved;
    }
}

#[test]
fn overlapping_at_every_distance() {
    let _alone = exclusive();
    let small = (0..=200).step_by(if is_small() { 9 } else { 1 });
    let large = [255, 256, 257, 511, 512, 513, 1000, 4095, 4096, 4097, 5000, 8192, 10_000];
    let distances: Vec<usize> = small.chain(large).collect();
    let lengths = [0, 1, 2, 15, 16, 17, 64, 100, 300, 1000, 4096, 9001];
    let start = 12_000;
    let mut original = vec![0; 34_000];
    Rng::new(15).fill(&mut original);
    let mut bytes = original.clone();
    let mut expected = original.clone();

    let mut check = |name: &str, call: Overlapping| {
        for &distance in &distances {
            for &len in &lengths {
                for (src, dst) in [(start, start + distance), (start + distance, start)] {
                    call(&mut bytes, src..src + len, dst);
                    move_naively(&mut expected, src, dst, len);
                    let at = (0..bytes.len()).find(|&i| bytes[i] != expected[i]);
                    assert_eq!(at, None, "{name} {src}..{} to {dst}", src + len);
                    // Back to the start, cheaply: only this much can have changed.
                    let touched = dst..dst + len;
                    bytes[touched.clone()].copy_from_slice(&original[touched.clone()]);
                    expected[touched.clone()].copy_from_slice(&original[touched]);
                }
            }
        }
    };

    for variant in candidates(Slot::Copy) {
        switch::set(Slot::Copy, variant).expect("the slot accepts it");
        check(variant.name(), cachewise::copy_overlapping);
    }
    for variant in candidates(Slot::CopyNontemporal) {
        switch::set(Slot::CopyNontemporal, variant).expect("the slot accepts it");
        for threshold in [Threshold::Off, Threshold::Bytes(128), Threshold::Always] {
            policy::set_threshold(Gate::CopyNontemporal, threshold);
            let name = format!("{}, threshold {threshold}", variant.name());
            check(&name, cachewise::copy_overlapping_nontemporal);
        }
    }
}

// ---- Wrong arguments. ----

/// `call` must panic and leave `dst` as it is.
fn refuses(arena: &mut Arena, name: &str, call: impl FnOnce(&mut [u8])) {
    let shape = Shape { dst: PAGE_BYTES, src: 0, len: 2 * PAGE_BYTES };
    let result = arena.untouched(shape, |dst| {
        let panicked = catch_unwind(AssertUnwindSafe(|| call(dst))).is_err();
        assert!(panicked, "{name} accepted wrong arguments");
    });
    result.unwrap_or_else(|wrong| panic!("{name} wrote before it panicked: {wrong}"));
}

#[test]
fn lengths_that_differ_are_refused_before_anything_is_written() {
    let _alone = exclusive();
    let arena = &mut Arena::new(4 * PAGE_BYTES);
    let long = [1_u8; 3 * PAGE_BYTES];
    for src in [&long[..], &long[..1000], &long[..2 * PAGE_BYTES - 1], &[]] {
        refuses(arena, "copy", |dst| _ = cachewise::copy(dst, src));
        refuses(arena, "copy_with", |dst| {
            cachewise::copy_with(dst, src, Hints::new().source_nontemporal());
        });
        refuses(arena, "copy_nontemporal", |dst| _ = cachewise::copy_nontemporal(dst, src));
        refuses(arena, "copy_nontemporal_with", |dst| {
            cachewise::copy_nontemporal_with(dst, src, Hints::new().keep_first_bytes(10));
        });
        refuses(arena, "copy_auto", |dst| _ = cachewise::copy_auto(dst, src, Hints::new()));
        refuses(arena, "batch", |dst| cachewise::batch(|batch| batch.copy(dst, src)));
        let vectored: [Vectored; 2] =
            [cachewise::copy_vectored, cachewise::copy_vectored_nontemporal];
        for copy in vectored {
            refuses(arena, "copy_vectored", |dst| {
                let (first, second) = dst.split_at_mut(PAGE_BYTES);
                copy(&mut [(first, &long[..PAGE_BYTES]), (second, src)]);
            });
        }
        for variant in common::available() {
            if let Ok(copier) = variant.copier() {
                refuses(arena, variant.name(), |dst| _ = copier.copy(dst, src));
            }
        }
    }
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "what is refused")]
fn ranges_outside_the_slice_are_refused_before_anything_is_written() {
    let _alone = exclusive();
    let arena = &mut Arena::new(4 * PAGE_BYTES);
    let calls: [Overlapping; 2] =
        [cachewise::copy_overlapping, cachewise::copy_overlapping_nontemporal];
    for call in calls {
        let end = 2 * PAGE_BYTES;
        refuses(arena, "source beyond", |dst| call(dst, 0..end + 1, 0));
        refuses(arena, "source backwards", |dst| call(dst, 9..3, 0));
        refuses(arena, "source at the top", |dst| call(dst, usize::MAX - 1..usize::MAX, 0));
        refuses(arena, "destination beyond", |dst| call(dst, 0..100, end - 99));
        refuses(arena, "destination at the top", |dst| call(dst, 0..100, usize::MAX));
    }
    for hot in [2, 3, usize::MAX] {
        refuses(arena, "clear_huge", |dst| page::clear_huge(pages_mut::<4096>(dst), hot));
    }
    refuses(arena, "clear_huge of nothing", |dst| {
        page::clear_huge(pages_mut::<4096>(&mut dst[..0]), 0)
    });
}

/// The fence of a batch belongs to its scope, so its copies hold although the closure unwinds.
#[test]
fn a_batch_that_unwinds_has_copied() {
    let _alone = exclusive();
    policy::set_threshold(Gate::CopyNontemporal, Threshold::Always);
    let (src, mut dst) = ([7; 1000], [0; 1000]);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        cachewise::batch(|batch| {
            batch.copy(&mut dst, &src);
            panic!("on purpose");
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(dst, src);
}

#[test]
fn a_batch_gives_back_what_its_closure_returns() {
    let mut dst = [1; 64];
    let returned = cachewise::batch(|batch| {
        batch.clear(&mut dst);
        42
    });
    assert_eq!((returned, dst), (42, [0; 64]));
}
