//! Single-stepped calls: each byte stored once where that is promised (case 8), nothing stored
//! beside, whether the call went around the cache as the threshold says, and the fence.

mod common;

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "x86"), target_os = "linux", not(miri))))]
#[test]
#[ignore = "needs x86 Linux: the single-step trap"]
fn once() {}

#[cfg(all(any(target_arch = "x86_64", target_arch = "x86"), target_os = "linux", not(miri)))]
#[path = "common/step.rs"]
#[allow(unreachable_pub, reason = "as in `common`")]
mod step;

#[cfg(all(any(target_arch = "x86_64", target_arch = "x86"), target_os = "linux", not(miri)))]
mod x86 {
    use super::common::memory::Guarded;
    use super::common::{Handle, Rng, candidates, exclusive, for_each_variant, title};
    use super::say;
    use super::step::{Steps, steps};
    use cachewise::page::{self, Page};
    use cachewise::policy::{self, Gate, Threshold};
    use cachewise::switch::{self, Slot};
    use cachewise::variant::{Store, StoresOnce, Variant};
    use cachewise::{Hints, bytes};
    use std::collections::HashSet;

    const PAGE_BYTES: usize = 4096;
    const MARGIN_BYTES: usize = 128;

    /// A destination to watch and a source to copy from.
    struct Stage {
        dst: Guarded,
        src: Guarded,
    }

    impl Stage {
        fn new() -> Self {
            let mut src = Guarded::new(16 * PAGE_BYTES);
            Rng::new(31).fill(&mut src);
            Self { dst: Guarded::new(16 * PAGE_BYTES), src }
        }

        fn copy(
            &mut self,
            (to, from, len): (usize, usize, usize),
            call: impl FnOnce(*mut u8, *const u8, usize),
        ) -> Steps {
            let at = PAGE_BYTES + to;
            let src = &self.src[PAGE_BYTES + from..][..len];
            let watched = at - MARGIN_BYTES..at + len + MARGIN_BYTES;
            steps(&mut self.dst, watched, at, src, |dst| call(dst, src.as_ptr(), len))
        }

        fn fill(
            &mut self,
            (to, len): (usize, usize),
            value: u8,
            call: impl FnOnce(*mut u8, usize),
        ) -> Steps {
            let at = PAGE_BYTES + to;
            let watched = at - MARGIN_BYTES..at + len + MARGIN_BYTES;
            steps(&mut self.dst, watched, at, &vec![value; len], |dst| call(dst, len))
        }

        fn variant(
            &mut self,
            v: &'static Variant,
            (to, from, len): (usize, usize, usize),
        ) -> Steps {
            match Handle::of(v) {
                Handle::Copy(copier) => self.copy((to, from, len), |dst, src, len| {
                    // SAFETY: the stage hands out ranges of its own memory.
                    unsafe { copier.copy_raw(dst, src, len) }
                }),
                Handle::Clear(clearer) => {
                    let value = if len % 3 == 0 { 0xa5 } else { 0 };
                    // SAFETY: as above.
                    self.fill((to, len), value, |dst, len| unsafe {
                        clearer.fill_raw(dst, value, len)
                    })
                }
            }
        }
    }

    /// The most often a byte of the range was stored; the margins must not be stored at all.
    #[track_caller]
    fn most_stores(steps: &Steps, subject: &str) -> u8 {
        let (before, rest) = steps.stores.split_at(MARGIN_BYTES);
        let (range, after) = rest.split_at(rest.len() - MARGIN_BYTES);
        assert!(before.iter().chain(after).all(|&n| n == 0), "{subject}: stored outside");
        assert!(range.iter().all(|&n| n > 0), "{subject}: a byte was not stored");
        range.iter().copied().max().unwrap_or(0)
    }

    #[track_caller]
    fn check_once(steps: &Steps, subject: &str) {
        let most = most_stores(steps, subject);
        let at = steps.stores.iter().position(|&n| n > 1).unwrap_or(0);
        let at = at as isize - MARGIN_BYTES as isize;
        assert!(most <= 1, "{subject}: byte {at} was stored {most} times");
    }

    /// All tails and heads, a few blocks, steps of several pages.
    fn shapes() -> Vec<(usize, usize, usize)> {
        let mut rng = Rng::new(32);
        let mut any = |len| (rng.below(64), rng.below(64), len);
        let mut shapes: Vec<_> = (0..=140).map(&mut any).collect();
        shapes.extend([191, 192, 193, 255, 257, 511, 512, 700, 1023].map(&mut any));
        shapes.extend((0..64).step_by(7).map(|to| (to, 3, 200)));
        shapes.extend([(0, 0, 4096), (0, 0, 1024), (32, 5, 4000)]);
        shapes
    }

    /// Several pages: their cost is in the steps of an 8-byte loop, so there are few; and none of the
    /// still shorter loops of i686, where no variant copies several pages in step.
    const LONG: &[(usize, usize, usize)] = if cfg!(target_arch = "x86_64") {
        &[(0, 0, 4 * 4096), (40, 9, 5 * 4096 + 77)]
    } else {
        &[]
    };

    /// Whether there is anything to check; says so if not.
    fn is_plain_rust() -> bool {
        let plain = !super::common::available().any(Variant::recoverable);
        if plain {
            say!("cannot run here: this build is plain Rust, which promises no single stores");
        }
        plain
    }

    #[test]
    fn variants_that_promise_it_store_once_at_any_shape() {
        if is_plain_rust() {
            return;
        }
        let mut stage = Stage::new();
        for_each_variant(
            |v| v.stores_once() == StoresOnce::Always,
            |variant| {
                let long: &[_] = if variant.store() == Store::Implementation { &[] } else { LONG };
                for shape in shapes().into_iter().chain(long.iter().copied()) {
                    let steps = stage.variant(variant, shape);
                    check_once(&steps, &format!("{} {shape:?}", title(variant)));
                }
            },
        );
    }

    #[test]
    fn variants_that_promise_it_store_once_on_whole_pages() {
        let mut stage = Stage::new();
        let pages = |v: &Variant| v.stores_once() == StoresOnce::Pages;
        if !super::common::available().any(pages) {
            say!("cannot run here: no variant promises pages only");
            return;
        }
        for_each_variant(pages, |variant| {
            for shape in [(0, 0, 4096), (0, 64, 4096), (4096, 1, 8192), (0, 0, 16384)] {
                let steps = stage.variant(variant, shape);
                check_once(&steps, &format!("{} {shape:?}", title(variant)));
            }
        });
    }

    /// The control: those that don't promise it are caught storing twice, so the test can fail.
    #[test]
    fn variants_without_the_promise_are_caught_storing_twice() {
        let mut stage = Stage::new();
        let mut caught = 0;
        for_each_variant(
            |v| v.stores_once() != StoresOnce::Always,
            |variant| {
                let twice = shapes().into_iter().find(|&shape| {
                    let steps = stage.variant(variant, shape);
                    most_stores(&steps, &title(variant)) > 1
                });
                match twice {
                    Some(_) => caught += 1,
                    None => say!("not seen to store twice: {}", title(variant)),
                }
            },
        );
        assert!(caught > 0, "no variant was caught, so the test proves nothing");
    }

    /// A handle's call is fenced if its stores need it, and not if they don't.
    #[test]
    fn handles_fence_exactly_what_needs_it() {
        let mut stage = Stage::new();
        for_each_variant(
            |_| true,
            |variant| {
                for shape in shapes().into_iter().step_by(5) {
                    let steps = stage.variant(variant, shape);
                    let subject = format!("{} {shape:?}", title(variant));
                    assert!(!steps.has_pending_store(), "{subject}: no fence after the stores");
                    let around = variant.store() == Store::NonTemporal;
                    // Plain Rust calls the platform's `memcpy`, whose fences are its own affair.
                    if variant.recoverable() {
                        assert_eq!(steps.has_fence(), around, "{subject}: fence");
                        assert!(around || !steps.has_nontemporal_store(), "{subject}");
                    }
                }
            },
        );
    }

    type CopyCall = (&'static str, Slot, Gate, fn(*mut u8, *const u8, usize));
    type FillCall = (&'static str, Slot, Gate, fn(*mut u8, usize));

    // SAFETY (of all of them): the stage hands out ranges of its own memory.
    const COPIES: [CopyCall; 5] = [
        ("copy_nontemporal", Slot::CopyNontemporal, Gate::CopyNontemporal, |dst, src, len| {
            // SAFETY: as above.
            unsafe { bytes::copy_nontemporal_raw(dst, src, len) }
        }),
        ("copy_nontemporal_with", Slot::CopyNontemporal, Gate::CopyNontemporal, |dst, src, len| {
            let hints = Hints::new().keep_first_bytes(21).source_nontemporal();
            // SAFETY: as above.
            unsafe { bytes::copy_nontemporal_with_raw(dst, src, len, hints) }
        }),
        ("overlapping", Slot::CopyNontemporal, Gate::CopyNontemporal, |dst, src, len| {
            // SAFETY: as above.
            unsafe { bytes::copy_overlapping_nontemporal_raw(dst, src, len) }
        }),
        ("batch", Slot::CopyNontemporal, Gate::CopyNontemporal, |dst, src, len| {
            // SAFETY: as above; the destination is looked at after the batch.
            cachewise::batch(|batch| unsafe { batch.copy_raw(dst, src, len) })
        }),
        ("copy_vectored_nontemporal", Slot::CopyNontemporal, Gate::CopyNontemporal, vectored),
    ];

    fn vectored(dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: as in `COPIES`.
        let dst = unsafe { std::slice::from_raw_parts_mut(dst, len) };
        // SAFETY: as in `COPIES`.
        let src = unsafe { std::slice::from_raw_parts(src, len) };
        cachewise::copy_vectored_nontemporal(&mut [(dst, src)]);
    }

    const FILLS: [FillCall; 2] = [
        ("clear_nontemporal", Slot::ClearNontemporal, Gate::ClearNontemporal, |dst, len| {
            // SAFETY: as in `COPIES`.
            unsafe { bytes::clear_nontemporal_raw(dst, len) }
        }),
        ("batch clear", Slot::ClearNontemporal, Gate::ClearNontemporal, |dst, len| {
            // SAFETY: as in `COPIES`; the destination is looked at after the batch.
            cachewise::batch(|batch| unsafe { batch.clear_raw(dst, len) })
        }),
    ];

    /// What a `_nontemporal` call promises at every length: once, fenced (case 3), and around the
    /// cache from the threshold on, not below.
    fn check_public(steps: &Steps, subject: &str, around: Option<bool>) {
        check_once(steps, subject);
        assert!(steps.has_fence(), "{subject}: no fence");
        assert!(!steps.has_pending_store(), "{subject}: a store after the last fence");
        if let Some(around) = around {
            assert_eq!(steps.has_nontemporal_store(), around, "{subject}: around the cache");
        }
    }

    /// What is below the threshold doesn't depend on the slot's variant: `Off` is for the first.
    fn thresholds(variant: usize) -> impl Iterator<Item = Threshold> {
        let all = [Threshold::Always, Threshold::Bytes(300), Threshold::Off];
        all.into_iter().take(if variant == 0 { 3 } else { 2 })
    }

    const LENGTHS: [usize; 15] = [0, 1, 2, 3, 4, 7, 8, 9, 63, 64, 130, 299, 300, 301, 500];

    /// Whether the call goes around, if that shows: a whole line must be left after the first
    /// partial one.
    fn goes_around(variant: &Variant, threshold: Threshold, len: usize) -> Option<bool> {
        let reached = match threshold {
            Threshold::Off => false,
            Threshold::Bytes(bytes) => len >= bytes,
            Threshold::Always => true,
        };
        if variant.store() != Store::NonTemporal || !reached {
            return Some(false);
        }
        (len >= 200).then_some(true)
    }

    fn warm_up() {
        // The first calls ask the CPU: thousands of instructions that are not the call's.
        Slot::ALL.into_iter().for_each(|slot| _ = switch::why(slot));
        Gate::ALL.into_iter().for_each(|gate| _ = policy::threshold(gate));
    }

    #[test]
    fn nontemporal_calls_store_once_and_fence_below_and_above_the_threshold() {
        let _alone = exclusive();
        if is_plain_rust() {
            return;
        }
        let mut stage = Stage::new();
        for (name, slot, gate, call) in COPIES {
            for (i, variant) in candidates(slot).enumerate() {
                switch::set(slot, variant).expect("the slot accepts it");
                for threshold in thresholds(i) {
                    policy::set_threshold(gate, threshold);
                    warm_up();
                    for len in LENGTHS {
                        let steps = stage.copy((len % 64, 11, len), call);
                        let subject = format!("{name} {variant:?} {threshold:?} {len}");
                        let around = goes_around(variant, threshold, len);
                        check_public(&steps, &subject, around);
                    }
                }
            }
        }
        for (name, slot, gate, call) in FILLS {
            for (i, variant) in candidates(slot).enumerate() {
                switch::set(slot, variant).expect("the slot accepts it");
                for threshold in thresholds(i) {
                    policy::set_threshold(gate, threshold);
                    warm_up();
                    for len in LENGTHS {
                        let steps = stage.fill((len % 64, len), 0, call);
                        let subject = format!("{name} {variant:?} {threshold:?} {len}");
                        let around = goes_around(variant, threshold, len);
                        check_public(&steps, &subject, around);
                    }
                }
            }
        }
    }

    /// Overlapping ranges at each distance, both ways: what is copied in parts stores once, too.
    #[test]
    fn overlapping_calls_store_once() {
        let _alone = exclusive();
        if is_plain_rust() {
            return;
        }
        let mut memory = Guarded::new(4 * PAGE_BYTES);
        let middle = 2 * PAGE_BYTES;
        let mut check = |slot: &Variant, threshold, distance: isize, len: usize| {
            let nothing = middle..middle;
            let steps = steps(&mut memory, nothing, middle, &[], |dst| {
                // SAFETY: both ranges are inside the memory.
                unsafe {
                    bytes::copy_overlapping_nontemporal_raw(dst, dst.offset(distance), len);
                }
            });
            let subject = format!("{slot:?}, distance {distance}, {len} bytes, {threshold}");
            let counts = steps.stores_by_operands(&memory);
            for (i, count) in counts.into_iter().enumerate() {
                let expected = u32::from((middle..middle + len).contains(&i));
                let at = i as isize - middle as isize;
                assert_eq!(count, expected, "{subject}: stores of byte {at}");
            }
            assert!(steps.has_fence() && !steps.has_pending_store(), "{subject}: fence");
        };
        // Which registers store makes the difference; each step costs microseconds.
        let mut kinds = HashSet::new();
        let around = candidates(Slot::CopyNontemporal).filter(|v| v.store() == Store::NonTemporal);
        for variant in around.filter(|v| kinds.insert(v.registers())) {
            switch::set(Slot::CopyNontemporal, variant).expect("the slot accepts it");
            for threshold in [Threshold::Off, Threshold::Bytes(100), Threshold::Always] {
                policy::set_threshold(Gate::CopyNontemporal, threshold);
                warm_up();
                for distance in [0, 1, 7, 8, 33, 64, 100, 128, 200, 1000] {
                    for len in [1, 4, 50, 130, 500] {
                        check(variant, threshold, distance, len);
                        check(variant, threshold, -distance, len);
                    }
                }
            }
        }
    }

    type ClearPages = unsafe fn(*mut u8, usize);
    type CopyPages = unsafe fn(*mut u8, *const u8, usize);

    #[test]
    fn page_calls_store_once() {
        let _alone = exclusive();
        if is_plain_rust() {
            return;
        }
        let mut stage = Stage::new();
        let clears: [(Slot, ClearPages); 2] = [
            (Slot::ClearPage, page::clear_page_raw),
            (Slot::ClearPageNontemporal, page::clear_page_nontemporal_raw),
        ];
        let copies: [(Slot, CopyPages); 2] = [
            (Slot::CopyPage, page::copy_page_raw),
            (Slot::CopyPageNontemporal, page::copy_page_nontemporal_raw),
        ];
        let check = |steps: &Steps, slot: Slot, variant: &Variant| {
            let subject = format!("{slot} by {variant:?}");
            check_once(steps, &subject);
            if slot.is_nontemporal() {
                assert!(steps.has_fence() && !steps.has_pending_store(), "{subject}: fence");
            }
        };
        for (slot, call) in clears {
            for variant in candidates(slot) {
                switch::set(slot, variant).expect("the slot accepts it");
                warm_up();
                // SAFETY: whole pages of the stage.
                let steps = stage.fill((0, PAGE_BYTES), 0, |dst, len| unsafe { call(dst, len) });
                check(&steps, slot, variant);
            }
        }
        for (slot, call) in copies {
            for variant in candidates(slot) {
                switch::set(slot, variant).expect("the slot accepts it");
                warm_up();
                // SAFETY: whole pages of the stage.
                let steps =
                    stage.copy((0, 0, PAGE_BYTES), |dst, src, len| unsafe { call(dst, src, len) });
                check(&steps, slot, variant);
            }
        }
    }

    #[test]
    fn the_hot_page_is_cleared_last_and_by_ordinary_stores() {
        let _alone = exclusive();
        if is_plain_rust() {
            return;
        }
        policy::set_threshold(Gate::ClearPageNontemporal, Threshold::Always);
        warm_up();
        const PAGES: usize = 5;
        let mut stage = Stage::new();
        for hot in 0..PAGES {
            let steps = stage.fill((0, PAGES * PAGE_BYTES), 0, |dst, len| {
                // SAFETY: whole pages of the stage, aligned as it is.
                let pages =
                    unsafe { std::slice::from_raw_parts_mut(dst.cast::<Page>(), len / PAGE_BYTES) };
                page::clear_huge(pages, hot);
            });
            assert!(!steps.has_pending_store(), "hot {hot}: fence");
            let stored = &steps.last_store[MARGIN_BYTES..][..PAGES * PAGE_BYTES];
            let (hot_page, others): (Vec<_>, Vec<_>) =
                stored.iter().enumerate().partition(|(i, _)| i / PAGE_BYTES == hot);
            let first_hot = hot_page.iter().map(|&(_, &at)| at).min().expect("a page has bytes");
            let last_other = others.iter().map(|&(_, &at)| at).max().expect("and so have others");
            assert!(last_other < first_hot, "hot {hot} was not last");
            let by = steps.instructions().skip(first_hot as usize - 1);
            let around = by.filter(|i| super::step::is_nontemporal_store(i.mnemonic())).count();
            assert_eq!(around, 0, "the hot page went around the cache");
        }
    }

    /// A plain call must not pay for a fence, whatever serves it.
    #[test]
    fn plain_calls_do_not_fence() {
        let _alone = exclusive();
        let mut stage = Stage::new();
        let ordinary = |v: &&Variant| v.store() != Store::NonTemporal;
        for variant in candidates(Slot::Copy).filter(ordinary) {
            switch::set(Slot::Copy, variant).expect("the slot accepts it");
            warm_up();
            for len in LENGTHS {
                let steps = stage.copy((3, 5, len), |dst, src, len| {
                    // SAFETY: as in `COPIES`.
                    unsafe { bytes::copy_raw(dst, src, len) }
                });
                assert!(!steps.has_fence(), "copy by {variant:?}, {len} bytes");
            }
        }
    }
}
