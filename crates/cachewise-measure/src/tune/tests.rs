//! The fit on cells whose times are made up: what is right is known.

use super::score::{loss, saving};
use super::*;
use crate::Temperature;
use crate::case::Page;
use crate::contestant::fenced_name;
use crate::map::{Cell, Outcome, Share, Status, Times, UseKind, Victim};
use crate::stats::Samples;
use cachewise::policy::Threshold;
use cachewise::variant::{self, Operation, Store, Variant};

const LAST_LEVEL_BYTES: usize = 8 << 20;
const SIZES: [usize; 6] = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

fn setting() -> Setting {
    Setting { default: default(), last_level_bytes: LAST_LEVEL_BYTES, page_bytes: 4096, seed: 1 }
}

fn field(operation: Operation) -> Vec<&'static Variant> {
    variant::all()
        .iter()
        .filter(|v| v.operation() == operation && v.unavailable().is_none())
        .collect()
}

/// The first two variants of a kind of store that a slot accepts, if there are two.
fn two(slot: Slot, nontemporal: bool) -> Option<(&'static Variant, &'static Variant)> {
    let rows = field(slot.operation());
    let mut suits = rows
        .into_iter()
        .filter(|v| slot.accepts(v) && (v.store() == Store::NonTemporal) == nontemporal);
    Some((suits.next()?, suits.next()?))
}

/// Made of the registry, so that nothing depends on which variants this CPU prefers.
fn default() -> Policy {
    let first = |slot: Slot, nontemporal| {
        let rows = field(slot.operation());
        let of_kind = |v: &&&'static Variant| (v.store() == Store::NonTemporal) == nontemporal;
        let mut suits = rows.iter().filter(|v| slot.accepts(v));
        let any = suits.clone().next();
        suits.find(of_kind).or(any).copied().unwrap()
    };
    Policy {
        variants: Slot::ALL.map(|slot| first(slot, slot.is_nontemporal())),
        below: Slot::ALL.map(|slot| first(slot, false)),
        thresholds: Gate::ALL.map(|_| Threshold::Bytes(4096)),
    }
}

fn cell(operation: Operation, size_bytes: usize, used: Share) -> Cell {
    Cell {
        operation,
        size_bytes,
        source: Temperature::Cold,
        page: Page::Base,
        threads: 1,
        used,
        use_kind: UseKind::Read,
        delay_bytes: 0,
        victim: Victim::NONE,
    }
}

/// Both intents at all sizes.
fn grid(operation: Operation) -> Vec<Cell> {
    let both = |size| [Share::ALL, Share::NONE].map(|used| cell(operation, size, used));
    SIZES.into_iter().flat_map(both).collect()
}

/// A cell in which a contender takes `ns(name, its kind of store)`, each sample at most `noise` (a
/// share) off, beside a bystander of `victim_ns`.
fn measured(
    cell: Cell,
    noise: f64,
    victim_ns: f64,
    ns: impl Fn(&str, Option<Store>) -> f64,
) -> Measured {
    let mut rng = Rng::new(cell.size_bytes as u64 + 7);
    let mut samples = |mean: f64| {
        let mut sample = || mean * (1.0 + noise * (rng.below(2001) as f64 / 1000.0 - 1.0));
        Samples::new((0..4).map(|_| (0..6).map(|_| sample()).collect()).collect())
    };
    let rows = field(cell.operation);
    let stores = rows
        .iter()
        .flat_map(|row| [(row.name(), Some(row.store())), (fenced_name(row), Some(row.store()))]);
    let outcomes = [("libc", None)].into_iter().chain(stores).map(|(name, store)| {
        let own = ns(name, store);
        let times = Times {
            op: samples(own),
            whole: samples(own + victim_ns),
            victim: samples(victim_ns),
            victim_baseline: samples(victim_ns),
            use_baseline: samples(0.0),
            delay: samples(0.0),
            delay_baseline: samples(0.0),
            used: samples(0.0),
            misses: Default::default(),
        };
        Outcome { variant: name.to_owned(), status: Status::Ok, because: None, times }
    });
    Measured { cell, outcomes: outcomes.collect() }
}

fn refs(cells: &[Measured]) -> Vec<&Measured> {
    cells.iter().collect()
}

#[test]
fn intents_are_what_a_caller_would_say() {
    let soon = |used, delay_bytes| {
        let cell = Cell { delay_bytes, ..cell(Operation::Copy, 4096, used) };
        Intent::of(&cell, LAST_LEVEL_BYTES)
    };
    assert_eq!(soon(Share::ALL, 0), Intent::Soon);
    assert_eq!(soon(Share::ALL, LAST_LEVEL_BYTES / 2), Intent::Soon);
    assert_eq!(soon(Share::ALL, LAST_LEVEL_BYTES), Intent::NotSoon);
    assert_eq!(soon(Share::NONE, 0), Intent::NotSoon);
    assert_eq!(soon(Share::WORD_PER_PAGE, 0), Intent::NotSoon);
}

#[test]
fn the_fastest_variant_is_found_for_its_slot_and_for_no_other() {
    let Some((default, better)) = two(Slot::Copy, false) else {
        eprintln!("cannot run here: only one variant can serve {}", Slot::Copy);
        return;
    };
    // Fast where the result is used, slow where it is not.
    let cells: Vec<Measured> = grid(Operation::Copy)
        .into_iter()
        .map(|cell| {
            let used = cell.used == Share::ALL;
            measured(cell, 0.01, 0.0, |name, _| match name == better.name() {
                true if used => 80.0,
                true => 300.0,
                false => 100.0,
            })
        })
        .collect();
    let fit = fit(&refs(&cells), &setting());
    assert_eq!(fit.policy.variant(Slot::Copy), better);
    let choice = fit.slots.iter().find(|choice| choice.slot == Slot::Copy).unwrap();
    assert_eq!((choice.variant, choice.default, choice.cells), (better, default, SIZES.len()));
    let Found::Better(saving) = choice.found else { panic!("{choice:?}") };
    // 20 of the best one's 80.
    assert!((saving.median - 0.25).abs() < 0.02, "{saving:?}");
    for choice in fit.slots.iter().filter(|choice| choice.slot.operation() == Operation::Clear) {
        assert_eq!((choice.found, choice.variant), (Found::Unmeasured, choice.default));
    }
    let nontemporal = fit.policy.variant(Slot::CopyNontemporal);
    assert_eq!(nontemporal, setting().default.variant(Slot::CopyNontemporal));
}

/// Non-temporal stores win from 64 KiB on where nobody uses the result, and never where somebody
/// does: the gate moves there. Of `_auto` nothing is known but the size, and never is best.
#[test]
fn thresholds_are_found_where_the_times_cross() {
    if two(Slot::CopyNontemporal, true).is_none() {
        eprintln!("cannot run here: no two variants store non-temporally");
        return;
    }
    let cells: Vec<Measured> = grid(Operation::Copy)
        .into_iter()
        .map(|cell| {
            let wins = cell.used == Share::NONE && cell.size_bytes >= 64 << 10;
            measured(cell, 0.01, 0.0, |_, store| match store == Some(Store::NonTemporal) {
                true if wins => 70.0,
                true => 200.0,
                false => 100.0,
            })
        })
        .collect();
    let fit = fit(&refs(&cells), &setting());
    assert_eq!(fit.policy.threshold(Gate::CopyNontemporal), Threshold::Bytes(64 << 10));
    assert_eq!(fit.policy.threshold(Gate::CopyPageNontemporal), Threshold::Bytes(64 << 10));
    let auto = fit.gates.iter().find(|choice| choice.gate == Gate::CopyAuto).unwrap();
    assert_eq!(auto.threshold, Threshold::Off);
    assert_eq!(auto.cells, SIZES.len());

    let profile = fit.profile("test", 3).unwrap();
    assert_eq!(profile.threshold(Gate::CopyNontemporal), Some(Threshold::Bytes(64 << 10)));
    assert_eq!(profile.threshold(Gate::ClearAuto), None, "nothing was measured for it");
    let then = policy_of(&profile, &setting().default).unwrap();
    let checked = check(&then, &fit, &refs(&cells), &setting());
    assert!(checked.iter().all(|line| line.standing == Standing::Same), "{checked:?}");

    // One step off is the same; three are not, and the cells can tell; where they cannot, they say
    // so.
    let gate = Gate::CopyNontemporal;
    let standing = |threshold, cells: &[Measured]| {
        let then = then.with_threshold(gate, threshold);
        let checked = check(&then, &fit, &refs(cells), &setting());
        checked
            .into_iter()
            .find(|line| (line.name, line.part) == (gate.name(), "threshold"))
            .unwrap()
            .standing
    };
    assert_eq!(standing(Threshold::Bytes(256 << 10), &cells), Standing::Same);
    assert!(matches!(standing(Threshold::Always, &cells), Standing::Differs(_)));
    let alike: Vec<Measured> = grid(Operation::Copy)
        .into_iter()
        .map(|cell| measured(cell, 0.2, 0.0, |_, _| 100.0))
        .collect();
    assert!(matches!(standing(Threshold::Always, &alike), Standing::CannotTell(_)));
}

#[test]
fn noise_changes_nothing() {
    for seed in 0..10 {
        let cells: Vec<Measured> = [Operation::Clear, Operation::Copy]
            .into_iter()
            .flat_map(grid)
            .map(|cell| measured(cell, 0.1, 0.0, |_, _| 100.0 + seed as f64))
            .collect();
        let fit = fit(&refs(&cells), &Setting { seed, ..setting() });
        assert_eq!(fit.policy, setting().default, "{:?} {:?}", fit.slots, fit.gates);
        let profile = fit.profile("test", seed).unwrap();
        assert!(Slot::ALL.iter().all(|slot| profile.variant(*slot).is_none()));
    }
}

#[test]
fn a_sure_but_tiny_effect_changes_nothing() {
    let slot = Slot::Copy;
    let default = setting().default.variant(slot).name();
    let cells: Vec<Measured> = grid(Operation::Copy)
        .into_iter()
        .map(|cell| measured(cell, 0.0, 0.0, |name, _| if name == default { 101.0 } else { 100.0 }))
        .collect();
    let fit = fit(&refs(&cells), &setting());
    assert_eq!(fit.policy.variant(slot), setting().default.variant(slot));
}

#[test]
fn too_few_samples_decide_nothing() {
    let mut cells: Vec<Measured> = grid(Operation::Copy)
        .into_iter()
        .map(|cell| measured(cell, 0.0, 0.0, |name, _| name.len() as f64 * 100.0))
        .collect();
    for outcome in cells.iter_mut().flat_map(|cell| &mut cell.outcomes) {
        let few = |samples: &Samples| Samples::new(vec![samples.batches()[0][..1].to_vec(); 3]);
        outcome.times.whole = few(&outcome.times.whole);
        outcome.times.op = few(&outcome.times.op);
    }
    assert_eq!(fit(&refs(&cells), &setting()).policy, setting().default);
    assert_eq!(fit(&[], &setting()).policy, setting().default);
}

/// The same excess beside a bystander that takes a hundred times as long.
#[test]
fn a_big_bystander_hides_no_regret() {
    let cell = cell(Operation::Copy, 4096, Share::NONE);
    let with = |victim_ns| {
        measured(cell, 0.0, victim_ns, |name, _| if name == "libc" { 150.0 } else { 100.0 })
    };
    for victim_ns in [0.0, 10_000.0] {
        let cells = [with(victim_ns)];
        let libc = score::regret(&[(&cells[0], "libc")]).unwrap();
        assert!((libc.worst - 0.5).abs() < 1e-6, "{libc:?}");
        let ones = vec![1.0; cells.len()];
        assert!((loss(&refs(&cells), &ones, |_| "libc").unwrap() - 0.5).abs() < 1e-6);
        let saving =
            saving(&refs(&cells), &ones, |_| "libc", |_| field(Operation::Copy)[0].name(), 1);
        assert!((saving.unwrap().median - 0.5).abs() < 1e-6);
    }
}

#[test]
fn regret_of_the_best_is_none_and_of_others_what_they_cost() {
    let cells: Vec<Measured> = (1..=20)
        .map(|i| {
            let cell = cell(Operation::Copy, i * 4096, Share::NONE);
            measured(cell, 0.0, 0.0, move |name, _| match name {
                "libc" => 100.0 + i as f64,
                _ => 100.0,
            })
        })
        .collect();
    let served = |name| cells.iter().map(|cell| (cell, name)).collect::<Vec<_>>();
    let best = score::regret(&served(field(Operation::Copy)[0].name())).unwrap();
    assert_eq!((best.cells, best.median, best.worst), (20, 0.0, 0.0));
    let libc = score::regret(&served("libc")).unwrap();
    assert!((libc.median - 0.105).abs() < 1e-6 && (libc.p95 - 0.19).abs() < 1e-6, "{libc:?}");
    assert!((libc.worst - 0.2).abs() < 1e-6);
    assert_eq!(libc.worst_cell.size_bytes, 20 * 4096);
    assert_eq!(score::regret(&served("nobody")), None);
}

/// One cell in which everything is noise says that the other variant is far better; in the others it
/// is worse.
#[test]
fn a_noisy_cell_does_not_outvote_the_others() {
    let Some((default, other)) = two(Slot::Copy, false) else {
        eprintln!("cannot run here: only one variant can serve {}", Slot::Copy);
        return;
    };
    let mut cells: Vec<Measured> = grid(Operation::Copy)
        .into_iter()
        .map(|cell| {
            measured(cell, 0.01, 0.0, |name, _| if name == default.name() { 75.0 } else { 100.0 })
        })
        .collect();
    cells[0] = measured(cells[0].cell, 0.9, 0.0, |name, _| match name == other.name() {
        true => 100.0,
        false => 300.0,
    });
    assert!(!score::is_clear(&cells[0]) && score::is_clear(&cells[1]));
    let fit = fit(&refs(&cells), &setting());
    assert_eq!(fit.policy.variant(Slot::Copy), default);
    let served: Vec<_> = cells.iter().map(|cell| (cell, "libc")).collect();
    assert_eq!(score::regret(&served).unwrap().cells, cells.len() - 1);
}

/// The excess of whoever was best by luck is noise about zero, not the luck.
#[test]
fn regret_does_not_reward_luck() {
    let cells: Vec<Measured> = SIZES
        .into_iter()
        .map(|size| measured(cell(Operation::Copy, size, Share::NONE), 0.1, 0.0, |_, _| 100.0))
        .collect();
    let served: Vec<_> = cells.iter().map(|cell| (cell, "libc")).collect();
    assert!(score::regret(&served).unwrap().median < 0.05);
}

#[test]
fn held_out_cells_are_a_third_and_never_fitted() {
    let cells: Vec<Cell> = [Operation::Clear, Operation::Copy].into_iter().flat_map(grid).collect();
    let (fitted, held_out) = split(&cells, &setting());
    assert_eq!((fitted.len(), held_out.len()), (16, 8));
    for intent in [Intent::Soon, Intent::NotSoon] {
        let of = |cells: &[Cell]| cells.iter().filter(|c| setting().intent(c) == intent).count();
        assert_eq!((of(&fitted), of(&held_out)), (8, 4));
    }
    assert!(held_out.iter().all(|cell| !fitted.contains(cell)));
    assert_eq!(split(&cells, &setting()), (fitted, held_out), "the same seed, the same cells");
}

/// What is not used soon and not large is done by ordinary stores, and pays the fence of the call.
#[test]
fn ordinary_stores_in_a_nontemporal_call_are_fenced() {
    let policy = default();
    let small = cell(Operation::Copy, 64, Share::NONE);
    let below = policy.below[Slot::CopyNontemporal as usize];
    for call in [Call::Bytes, Call::Advised] {
        assert_eq!(policy.serves(call, Intent::NotSoon, &small), fenced_name(below));
        assert_eq!(policy.serves(call, Intent::Soon, &small), policy.variant(Slot::Copy).name());
    }
    let field = screen(&Machine::detect(), Operation::Copy, &[], 1, 1, &crate::Stop::new(false));
    let field = field.unwrap();
    assert!(field.iter().any(|who| {
        who.name() == fenced_name(cachewise::switch::get_below_threshold(Slot::CopyNontemporal))
    }));
}

/// `_auto` serves what is used soon, from its threshold on around the cache.
#[test]
fn a_well_advised_caller_lets_the_size_decide_only_where_the_result_is_used() {
    let policy = default().with_threshold(Gate::CopyAuto, Threshold::Bytes(1 << 20));
    let large = cell(Operation::Copy, 1 << 20, Share::ALL);
    let nontemporal = policy.serves(Call::Bytes, Intent::NotSoon, &large);
    assert_eq!(policy.serves(Call::Advised, Intent::Soon, &large), nontemporal);
    assert_eq!(policy.serves(Call::Bytes, Intent::Soon, &large), policy.variant(Slot::Copy).name());
    let all: Vec<Measured> = grid(Operation::Copy)
        .into_iter()
        .map(|cell| measured(cell, 0.0, 0.0, |name, _| if name == "libc" { 150.0 } else { 100.0 }))
        .collect();
    let (_, held_out) = split(&grid(Operation::Copy), &setting());
    let tuned = tune(&all, &held_out, &setting(), LAST_LEVEL_BYTES);
    assert_eq!(tuned.held_out, held_out.len());
    let same_as = |name| tuned.rivals.iter().find(|r| r.name == name).unwrap().same_as;
    // No size lies between nothing and 256 bytes, or beyond six megabytes.
    assert!(same_as("non-temporal from 256 B").is_some());
    assert!(same_as("non-temporal from 3/4 LLC").is_some());
    assert_eq!(same_as("always libc"), None);
}

#[test]
fn rivals_go_by_size_alone() {
    let default = default();
    let around = |name: &str| {
        let row = variant::find(Operation::Copy, name).unwrap();
        row.store() == Store::NonTemporal
    };
    if !around(default.variant(Slot::CopyNontemporal).name()) {
        eprintln!("cannot run here: nothing stores non-temporally");
        return;
    }
    let serves = |name: &str, size| {
        let (_, rival) = Rival::all(8 << 20).into_iter().find(|(n, _)| *n == name).unwrap();
        around(rival.serves(&default, &cell(Operation::Copy, size, Share::ALL)))
    };
    assert!(!serves("always temporal", 1 << 30) && serves("always non-temporal", 1));
    assert!(!serves("non-temporal from 256 B", 255) && serves("non-temporal from 256 B", 256));
    assert!(!serves("non-temporal from 3/4 LLC", (6 << 20) - 1));
    assert!(serves("non-temporal from 3/4 LLC", 6 << 20));
}

#[test]
fn the_plan_has_every_slot_and_needs_no_more_sources_than_there_are() {
    let machine = Machine::detect();
    for quick in [false, true] {
        let plan = Plan::new(&[], quick);
        assert_eq!(plan.to_string().parse(), Ok(plan.clone()));
        let cells = plan.cells(&machine);
        let backwards: Vec<Cell> = cells.iter().rev().copied().collect();
        assert_eq!(Plan::of(&backwards, &machine), Some(plan));
        assert_eq!(Plan::of(&backwards[1..], &machine), None);
        let distinct: std::collections::HashSet<Cell> = cells.iter().copied().collect();
        assert_eq!(distinct.len(), cells.len());
        for operation in [Operation::Clear, Operation::Copy] {
            for intent in [Intent::Soon, Intent::NotSoon] {
                let last_level_bytes = machine.last_level_bytes();
                let is = |c: &Cell| Intent::of(c, last_level_bytes) == intent;
                let of = |c: &&Cell| c.operation == operation && is(c);
                assert!(cells.iter().filter(of).count() >= 6, "{operation} {intent:?}");
            }
        }
        let soils: Vec<_> = cells.chunk_by(|a, b| a.soil() == b.soil()).collect();
        let distinct: std::collections::HashSet<_> = cells.iter().map(Cell::soil).collect();
        assert_eq!(soils.len(), distinct.len(), "cells on the same ground are neighbours");
    }
    let cells = Plan::new(&[512], true).cells(&machine);
    assert!(cells.iter().all(|cell| cell.size_bytes == 512));
    for wrong in ["", "quick", "slow 512", "quick 0", "quick  512", "full 1K"] {
        assert!(wrong.parse::<Plan>().is_err(), "{wrong}");
    }
}

#[test]
fn days_are_dates() {
    for (days, text) in
        [(0, "1970-01-01"), (59, "1970-03-01"), (11016, "2000-02-29"), (20787, "2026-11-30")]
    {
        assert_eq!(date(days), text);
    }
}
