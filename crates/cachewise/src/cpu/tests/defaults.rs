//! What serves by default on recorded CPUs that have less than this one, and that it serves.
//!
//! The routines run on the CPU at hand, which has what the recorded one had.

use super::dumps::{self, Dump};
use crate::cpu::{Cpu, Features, Native};
use crate::switch::{self, Slot};
use crate::variant::RegisterClass::{self, General, Mmx, Vector};
use crate::variant::Store::{NonTemporal, Temporal};
use crate::variant::{Store, Variant};
use std::eprintln;
use std::sync::{Mutex, PoisonError};
use std::vec;

/// Runs `check` for each slot as it is on the recorded CPU with no more than these registers.
fn on(dump: &Dump, registers: RegisterClass, check: impl Fn(Slot, &'static Variant)) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let recorded = Cpu::detect(&dump.replay()).usable;
    if !Cpu::detect(&Native).usable.contains(recorded) {
        eprintln!("cannot run here: this CPU lacks something of {}", dump.source);
        return;
    }
    switch::detect(&dump.replay(), registers);
    for slot in Slot::ALL {
        let variant = switch::get(slot);
        assert!(recorded.contains(variant.required_features()), "{slot}: {}", variant.name());
        check(slot, variant);
    }
    let (src, mut dst) = (vec![7; 100_000], vec![0; 100_000]);
    assert_eq!(crate::copy_nontemporal(&mut dst[..], &src), src);
    assert_eq!(crate::fill_nontemporal(&mut dst[..], 3), vec![3; 100_000]);
    assert_eq!(crate::copy(&mut dst[..], &src), src);
    assert_eq!(crate::clear(&mut dst[..]), vec![0; 100_000]);
    switch::detect(&Native, Vector);
}

#[track_caller]
fn is(slot: Slot, variant: &Variant, store: Store, registers: RegisterClass, needs: Features) {
    assert_eq!(
        (variant.store(), variant.registers(), variant.required_features()),
        (store, registers, needs),
        "{slot}"
    );
}

#[test]
fn of_a_pentium_ii_the_general_registers() {
    on(&dumps::PENTIUM_II, Vector, |slot, variant| {
        is(slot, variant, Temporal, General, Features::empty());
    });
}

#[test]
fn of_a_k7_movntq() {
    on(&dumps::ATHLON_K7, Vector, |slot, variant| {
        if slot.is_nontemporal() {
            is(slot, variant, NonTemporal, Mmx, Features::MMX.union(Features::MMXEXT));
        } else {
            is(slot, variant, Temporal, General, Features::empty());
        }
    });
}

#[test]
fn of_a_k7_whose_mmx_registers_are_not_saved_the_general_ones() {
    on(&dumps::ATHLON_K7, General, |slot, variant| {
        is(slot, variant, Temporal, General, Features::empty());
    });
}

#[test]
fn of_a_pentium_iii_movntps() {
    on(&dumps::PENTIUM_III, Vector, |slot, variant| {
        if slot.is_nontemporal() {
            is(slot, variant, NonTemporal, Vector, Features::SSE);
        } else {
            is(slot, variant, Temporal, General, Features::empty());
        }
    });
}

#[test]
fn of_a_pentium_4_what_came_with_sse2() {
    on(&dumps::PENTIUM_4, Vector, |slot, variant| {
        let store = if slot.is_nontemporal() { NonTemporal } else { Temporal };
        is(slot, variant, store, Vector, Features::SSE2);
    });
    on(&dumps::PENTIUM_4, General, |slot, variant| {
        if slot.is_nontemporal() {
            is(slot, variant, NonTemporal, General, Features::MOVNTI);
        } else {
            is(slot, variant, Temporal, General, Features::empty());
        }
    });
}
