//! Properties over shapes and over sequences of switch operations, with counterexamples shrunk to
//! the shortest length, the smallest offset, the fewest operations.

mod common;

use cachewise::policy::{self, Gate, Threshold};
use cachewise::switch::{self, DecidedBy, Slot};
use cachewise::variant::{self, Variant};
use common::{Arena, Shape, available, candidates, exclusive, for_each_variant, title};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::RefCell;

const PAGE_BYTES: usize = 4096;

/// Lengths over all scales: mostly short, as most of the paths are.
fn length() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0..300_usize, 2 => 300..5000_usize, 1 => 5000..40_000_usize]
}

fn shape() -> impl Strategy<Value = Shape> {
    (length(), 0..PAGE_BYTES, 0..PAGE_BYTES).prop_map(|(len, dst, src)| Shape {
        dst: PAGE_BYTES + dst,
        src: PAGE_BYTES + src,
        len,
    })
}

#[test]
#[cfg_attr(miri, ignore = "takes hours under Miri")]
fn every_variant_at_any_shape() {
    let cases = 60 * available().count() as u32;
    let arena = RefCell::new(Arena::new(13 * PAGE_BYTES));
    // The registry is walked so that what cannot run here is told.
    let mut variants = Vec::new();
    for_each_variant(|_| true, |variant| variants.push(variant));
    let strategy = (0..variants.len(), shape(), any::<u8>());
    let result = TestRunner::new(ProptestConfig::with_cases(cases)).run(
        &strategy,
        |(index, shape, value)| {
            let variant = variants[index];
            let result = arena.borrow_mut().try_variant(variant, shape, value);
            result.map_err(|wrong| TestCaseError::fail(format!("{}: {wrong}", title(variant))))
        },
    );
    result.unwrap_or_else(|error| panic!("{error}"));
    arena.borrow().check_everywhere("some shape");
}

/// What a program can do to the switch, and copies between.
#[derive(Clone, Debug)]
enum Step {
    Set(usize, usize),
    SetUnknown(usize),
    Reset(usize),
    Threshold(usize, Option<Threshold>),
    Copy(Shape),
    Clear(Shape),
}

fn step() -> impl Strategy<Value = Step> {
    let threshold = prop_oneof![
        Just(None),
        Just(Some(Threshold::Off)),
        Just(Some(Threshold::Always)),
        (0..3000_usize).prop_map(|bytes| Some(Threshold::Bytes(bytes))),
    ];
    prop_oneof![
        4 => (0..Slot::ALL.len(), 0..variant::all().len()).prop_map(|(s, v)| Step::Set(s, v)),
        1 => (0..Slot::ALL.len()).prop_map(Step::SetUnknown),
        1 => (0..Slot::ALL.len()).prop_map(Step::Reset),
        2 => (0..Gate::ALL.len(), threshold).prop_map(|(g, t)| Step::Threshold(g, t)),
        2 => shape().prop_map(Step::Copy),
        2 => shape().prop_map(Step::Clear),
    ]
}

/// The model: who serves each slot, as a program would remember it.
#[derive(Clone)]
struct Model {
    serving: [(&'static Variant, DecidedBy); Slot::ALL.len()],
    thresholds: [(Threshold, DecidedBy); Gate::ALL.len()],
}

impl Model {
    fn now() -> Self {
        let serving =
            Slot::ALL.map(|slot| (switch::why(slot).variant, switch::why(slot).decided_by));
        let thresholds = Gate::ALL.map(|gate| {
            let decided = policy::threshold(gate);
            (decided.threshold, decided.decided_by)
        });
        Self { serving, thresholds }
    }
}

/// A threshold of 0 bytes is met by every length.
fn as_shown(threshold: Threshold) -> Threshold {
    if threshold == Threshold::Bytes(0) { Threshold::Always } else { threshold }
}

#[test]
#[cfg_attr(miri, ignore = "takes hours under Miri")]
fn the_switch_does_what_it_is_told() {
    let _alone = exclusive();
    let defaults = Model::now();
    let arena = RefCell::new(Arena::new(13 * PAGE_BYTES));
    let sequences = prop::collection::vec(step(), 1..30);
    let result = TestRunner::new(ProptestConfig::with_cases(400)).run(&sequences, |steps| {
        let mut arena = arena.borrow_mut();
        Slot::ALL.into_iter().for_each(switch::reset);
        Gate::ALL.into_iter().for_each(policy::reset_threshold);
        let mut model = defaults.clone();
        for step in steps {
            match step {
                Step::Set(slot, row) => {
                    let (at, slot, row) = (slot, Slot::ALL[slot], &variant::all()[row]);
                    let accepted = candidates(slot).any(|v| v == row);
                    prop_assert_eq!(switch::set(slot, row).is_ok(), accepted);
                    if accepted {
                        model.serving[at] = (row, DecidedBy::Api);
                    }
                }
                Step::SetUnknown(slot) => {
                    prop_assert!(switch::set_by_name(Slot::ALL[slot], "no_such_variant").is_err());
                }
                Step::Reset(slot) => {
                    switch::reset(Slot::ALL[slot]);
                    model.serving[slot] = defaults.serving[slot];
                }
                Step::Threshold(gate, Some(threshold)) => {
                    policy::set_threshold(Gate::ALL[gate], threshold);
                    model.thresholds[gate] = (as_shown(threshold), DecidedBy::Api);
                }
                Step::Threshold(gate, None) => {
                    policy::reset_threshold(Gate::ALL[gate]);
                    model.thresholds[gate] = defaults.thresholds[gate];
                }
                Step::Copy(shape) => {
                    let hints = cachewise::Hints::new().keep_first_bytes(shape.len / 4);
                    for copied in [
                        arena.copy(shape, |dst, src| _ = cachewise::copy(dst, src)),
                        arena.copy(shape, |dst, src| _ = cachewise::copy_nontemporal(dst, src)),
                        arena.copy(shape, |dst, src| _ = cachewise::copy_auto(dst, src, hints)),
                    ] {
                        copied.map_err(|wrong| TestCaseError::fail(wrong.to_string()))?;
                    }
                }
                Step::Clear(shape) => {
                    for cleared in [
                        arena.clear(shape, 0, |dst| _ = cachewise::clear(dst)),
                        arena.clear(shape, 0, |dst| _ = cachewise::clear_nontemporal(dst)),
                        arena.clear(shape, 7, |dst| _ = cachewise::fill_nontemporal(dst, 7)),
                    ] {
                        cleared.map_err(|wrong| TestCaseError::fail(wrong.to_string()))?;
                    }
                }
            }
            let now = Model::now();
            prop_assert_eq!(now.serving, model.serving);
            prop_assert_eq!(now.thresholds, model.thresholds);
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}
