//! See `faults_fuzz.rs`.

use crate::common::{Handle, Rng, available, candidates, exclusive, is_small, title};
use crate::say;
use crate::stage::{AREA, Case, Kind, PAGE, PAGES, Stage, Tail};
use cachewise::fallible::{self, Chunks, Fault, Pair, user};
use cachewise::policy::{self, Gate, Threshold};
use cachewise::switch::{self, Slot};
use cachewise::variant::Variant;
use std::collections::BTreeMap;
use std::ops::ControlFlow::{Break, Continue};

const CASES: usize = 300_000;
const FEW_CASES: usize = 60_000;
/// A layout costs system calls, so it serves for some cases.
const CASES_PER_LAYOUT: usize = 64;

fn number(name: &str, default: usize) -> usize {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")),
        Err(_) => default,
    }
}

/// Mostly there; and a few pages of every kind.
fn layout(rng: &mut Rng) -> [Kind; PAGES] {
    let rare = [3, 6, 12, 40][rng.below(4)];
    std::array::from_fn(|_| {
        if rng.below(rare) == 0 { Kind::ALL[rng.below(Kind::ALL.len())] } else { Kind::ReadWrite }
    })
}

/// Short ones, around powers of two, pages, anything.
fn length(rng: &mut Rng) -> usize {
    match rng.below(5) {
        0 => rng.below(70),
        1 => (1 << (2 + rng.below(13))) + rng.below(5) - 2,
        2 => rng.below(1200),
        3 => PAGE * rng.below(6) + rng.below(70),
        _ => rng.below(AREA / 2),
    }
}

/// Anywhere, or with an edge of a page at a chosen byte of the range.
fn offset(rng: &mut Rng, len: usize) -> usize {
    let last = AREA - len;
    let anywhere = rng.below(last + 1);
    if rng.below(2) == 0 {
        return anywhere;
    }
    let edge = PAGE * rng.below(PAGES);
    edge.saturating_sub(rng.below(len + 2)).min(last)
}

struct Fuzz {
    stage: Stage,
    copies: Vec<&'static Variant>,
    clears: Vec<&'static Variant>,
    copy_slot: Vec<&'static Variant>,
    around_slot: Vec<&'static Variant>,
    /// How many cases there were of each kind, and how many of them had a fault.
    seen: BTreeMap<&'static str, (usize, usize)>,
}

impl Fuzz {
    fn one(&mut self, rng: &mut Rng) {
        let len = length(rng);
        let case = Case { dst: offset(rng, len), src: offset(rng, len), len };
        let value = [0, 0, rng.next() as u8][rng.below(3)];
        let stage = &mut self.stage;
        let faults = stage.predict_copy(case).is_some();
        let kind = match rng.below(14) {
            0..4 => {
                let variant = self.copies[rng.below(self.copies.len())];
                let Handle::Copy(copier) = Handle::of(variant) else { return };
                // SAFETY: here and below: what exists of both areas is the stage's, and they are
                // apart.
                let call = |dst, src, len| unsafe { copier.try_copy_raw(dst, src, len) };
                stage.copy(&title(variant), case, Tail::Unspecified, call);
                "variant copies"
            }
            4..6 => {
                let variant = self.clears[rng.below(self.clears.len())];
                let Handle::Clear(clearer) = Handle::of(variant) else { return };
                // SAFETY: as above.
                let call = |dst, len| unsafe { clearer.try_fill_raw(dst, value, len) };
                stage.fill(&title(variant), (case.dst, len), value, call);
                "variant fills"
            }
            6 => {
                type Copy = unsafe fn(*mut u8, *const u8, usize) -> Result<(), Fault>;
                let calls: [(Copy, Tail); 4] = [
                    (fallible::try_copy, Tail::Unspecified),
                    (fallible::try_copy_nontemporal, Tail::Unspecified),
                    (fallible::try_copy_zeroing, Tail::Zeroed),
                    (fallible::try_copy_nontemporal_zeroing, Tail::Zeroed),
                ];
                for (call, tail) in calls {
                    // SAFETY: as above.
                    stage.copy("public", case, tail, |d, s, l| unsafe { call(d, s, l) });
                }
                "public copies"
            }
            7 => {
                // SAFETY: as above.
                stage.fill("try_fill", (case.dst, len), value, |dst, len| unsafe {
                    fallible::try_fill(dst, value, len)
                });
                // SAFETY: as above.
                stage.fill("try_fill_nontemporal", (case.dst, len), value, |dst, len| unsafe {
                    fallible::try_fill_nontemporal(dst, value, len)
                });
                "public fills"
            }
            8 => {
                let chunks = Chunks { chunk_bytes: 1 + rng.below(2000) };
                stage.copy("try_copy_chunked", case, Tail::Unspecified, |dst, src, len| {
                    // SAFETY: as above.
                    unsafe { fallible::try_copy_chunked(dst, src, len, chunks, |_| Continue(())) }
                        .map(|done| assert_eq!(done, len))
                });
                "chunked copies"
            }
            9 => {
                stage.copy("try_copy_vectored", case, Tail::Unspecified, |dst, src, len| {
                    let parts = 1 + rng.below(4);
                    let mut pairs = Vec::new();
                    let mut at = 0;
                    for part in 0..parts {
                        let left = len - at;
                        let more = if part + 1 == parts { left } else { rng.below(left + 1) };
                        let (dst, src) = (dst.wrapping_add(at), src.wrapping_add(at));
                        pairs.push(Pair { dst, src, len_bytes: more });
                        at += more;
                    }
                    // SAFETY: as above.
                    let result = unsafe {
                        match parts % 2 {
                            0 => fallible::try_copy_vectored(&pairs),
                            _ => fallible::try_copy_vectored_nontemporal(&pairs),
                        }
                    };
                    result.map_err(|fault| {
                        let before: usize = pairs[..fault.pair].iter().map(|p| p.len_bytes).sum();
                        let copied = before + fault.fault.copied_bytes();
                        assert_eq!(fault.copied_bytes, copied);
                        // The same fault, seen from the whole.
                        // SAFETY: as above.
                        let whole = unsafe { fallible::try_copy(dst, src, len) };
                        let whole = whole.expect_err("a part of it has failed");
                        assert_eq!(whole.copied_bytes(), copied, "the parts and the whole");
                        whole
                    })
                });
                "vectored copies"
            }
            10 => {
                stage.copy("slow path", case, Tail::Unspecified, |dst, src, len| {
                    // SAFETY: as above.
                    unsafe { fallible::try_copy_with_slow_path(dst, src, len, |_| Break(())) }
                });
                "slow paths"
            }
            11 => {
                let stop = stage.predict_copy(case);
                stage.prepare_copy(case);
                let (dst, src) = (stage.dst.at(case.dst), stage.src.at(case.src));
                // SAFETY: as above.
                let left = unsafe { user::copy_from_user(dst, src, len) };
                assert_eq!(left, stop.map_or(0, |stop| len - stop.copied), "{case}");
                stage.check_copy("copy_from_user", case, Tail::Zeroed, stop);
                "user copies"
            }
            12 => {
                // Another variant and threshold from here on.
                let copies = self.copy_slot[rng.below(self.copy_slot.len())];
                switch::set(Slot::Copy, copies).expect("a candidate");
                let around = self.around_slot[rng.below(self.around_slot.len())];
                switch::set(Slot::CopyNontemporal, around).expect("a candidate");
                let threshold =
                    [Threshold::Off, Threshold::Always, Threshold::Bytes(rng.below(9000))];
                policy::set_threshold(Gate::CopyNontemporal, threshold[rng.below(3)]);
                policy::set_threshold(Gate::ClearNontemporal, threshold[rng.below(3)]);
                "switches"
            }
            _ => {
                let string = stage.src.at(case.src);
                let bytes = &stage.pattern()[case.src..case.src + len];
                let there = stage.src.refused_read(case.src..case.src + len);
                let end = there.map_or(len, |(at, _)| at);
                let zero = bytes[..end].iter().position(|&byte| byte == 0);
                // SAFETY: as above.
                let found = unsafe { fallible::try_strnlen(string, len) };
                match (zero, there) {
                    (Some(zero), _) => assert_eq!(found, Ok(zero), "{case}"),
                    (None, None) => assert_eq!(found, Ok(len), "{case}"),
                    (None, Some((at, cause))) => {
                        let fault = found.expect_err("it isn't there");
                        assert_eq!((fault.copied_bytes(), fault.cause()), (at, cause), "{case}");
                    }
                }
                "strings"
            }
        };
        let seen = self.seen.entry(kind).or_default();
        seen.0 += 1;
        seen.1 += usize::from(faults);
    }
}

#[test]
fn random_layouts_against_the_model() {
    let _alone = exclusive();
    fallible::install().expect("the handlers can be installed");
    let usual = if is_small() { FEW_CASES } else { CASES };
    let (cases, seed) = (number("CACHEWISE_FUZZ_CASES", usual), number("CACHEWISE_FUZZ_SEED", 1));
    let of = |copies: bool| {
        let recoverable = available().filter(|v| v.recoverable());
        recoverable.filter(|&v| matches!(Handle::of(v), Handle::Copy(_)) == copies).collect()
    };
    let mut fuzz = Fuzz {
        stage: Stage::new(),
        copies: of(true),
        clears: of(false),
        copy_slot: candidates(Slot::Copy).collect(),
        around_slot: candidates(Slot::CopyNontemporal).collect(),
        seen: BTreeMap::new(),
    };
    for round in 0..cases.div_ceil(CASES_PER_LAYOUT) {
        let seed = seed + round;
        let mut rng = Rng::new(seed as u64);
        let (dst, src) = (layout(&mut rng), layout(&mut rng));
        // A round is the same whatever came before it.
        [Slot::Copy, Slot::CopyNontemporal].into_iter().for_each(switch::reset);
        Gate::ALL.into_iter().for_each(policy::reset_threshold);
        fuzz.stage.dst.set_all(|page| dst[page]);
        fuzz.stage.src.set_all(|page| src[page]);
        let run = std::panic::AssertUnwindSafe(|| {
            (0..CASES_PER_LAYOUT).for_each(|_| fuzz.one(&mut rng));
            fuzz.stage.check_source();
        });
        if let Err(panic) = std::panic::catch_unwind(run) {
            say!("run again by CACHEWISE_FUZZ_SEED={seed} CACHEWISE_FUZZ_CASES={CASES_PER_LAYOUT}");
            say!("destination {dst:?}\nsource {src:?}");
            std::panic::resume_unwind(panic);
        }
    }
    let faults: usize = fuzz.seen.values().map(|&(_, faults)| faults).sum();
    say!("fuzz: {cases} cases from seed {seed}, {faults} with a fault; {:?}", fuzz.seen);
    assert!(faults > cases / 10, "hardly any faults");
}
