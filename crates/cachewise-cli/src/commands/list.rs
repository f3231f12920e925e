//! `list`: which variant serves each slot, and all variants there are.

use super::{Done, End, report};
use crate::record::{Column, Grouped, Section, Value, data, only_shown, shown};
use cachewise::switch::{self, Slot, Why};
use cachewise::variant::{self, Variant};
use cachewise_measure::Machine;

pub(super) fn run(machine: &Machine) -> Done {
    let unavailable = variant::all().iter().filter(|v| v.unavailable().is_some());
    let sections = vec![
        Section::list("slots", SLOTS, Slot::ALL.map(switch::why)),
        Section::list("variants", VARIANTS, variant::all()).of_cases(),
        Section::list("", UNAVAILABLE, unavailable.map(Unavailable)),
    ];
    Done { report: report("list", machine, sections), end: End::Complete }
}

const SLOTS: &[Column<Why>] = &[
    shown("slot", "slot", |why| Value::text(why.slot)),
    shown("variant", "variant", |why| Value::text(why.variant.name())),
    shown("decided_by", "decided by", |why| Value::text(why.decided_by)),
];

const VARIANTS: &[Column<&'static Variant>] = &[
    shown("name", "variant", |v| Value::text(v.name())),
    data("operation", |v| Value::text(v.operation())),
    shown("store", "store", |v| Value::text(v.store())),
    shown("registers", "registers", |v| Value::text(v.registers())),
    data("prefetch", |v| Value::text(v.prefetch())),
    shown("stores_once", "once", |v| Value::text(v.stores_once())),
    data("needs", |v| {
        Value::Words(v.required_features().iter().map(|one| one.name().to_owned()).collect())
    }),
    shown("available", "available", |v| Value::Flag(v.unavailable().is_none())),
    data("unavailable_because", |v| Value::or_missing(v.unavailable(), Value::text)),
];

/// A row of the list of reasons.
struct Unavailable(&'static Variant);

const UNAVAILABLE: &[Column<Unavailable>] = &[
    only_shown("variant", |row| Value::text(row.0.name())),
    only_shown("operation", |row| Value::text(row.0.operation())),
    only_shown("reason", |row| Value::or_missing(row.0.unavailable(), Value::text)),
];

impl Grouped for Why {
    fn group(&self) -> String {
        "slots".into()
    }
}

impl Grouped for &'static Variant {
    fn group(&self) -> String {
        format!("variants that {}", self.operation())
    }
}

impl Grouped for Unavailable {
    fn group(&self) -> String {
        "not available here".into()
    }
}
