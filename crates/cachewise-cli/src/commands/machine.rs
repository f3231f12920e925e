//! `machine`: each fact with who says so, then the doubts, then the counters.

use super::{Done, End, report};
use crate::failure::Failure;
use crate::record::{Column, Grouped, Section, Value, data, shown};
use crate::voice::Voice;
use cachewise::cpu::{Cache, Doubt, FEATURES_SOURCE, Features, Geometry};
use cachewise_measure::counters::Counters;
use cachewise_measure::{Ladder, Machine};

pub(super) fn run(machine: &Machine, voice: &mut Voice) -> Result<Done, Failure> {
    voice.step(&"the latency of each level");
    let ladder = Ladder::measure(machine)?;
    let caches = machine.geometry.caches().map(|cache| Measured {
        cache: *cache,
        ns: ladder.rung(cache).map(|rung| rung.latency_ns),
    });
    let memory = Memory { machine: machine.clone(), ns: ladder.memory_ns() };
    let sections = vec![
        Section::object("cpu", CPU, machine),
        Section::list("caches", CACHES, caches),
        Section::object("lines", LINES, &machine.geometry),
        Section::object("memory", MEMORY, &memory),
        Section::list("doubts", DOUBTS, machine.geometry.doubts()),
        Section::object("counters", COUNTERS, &Counters::probe()),
    ];
    Ok(Done { report: report("machine", machine, sections), end: End::Complete })
}

const CPU: &[Column<Machine>] = &[
    shown("vendor", "vendor", |m| Value::text(m.cpu.vendor())),
    shown("brand", "brand", |m| Value::text(m.cpu.brand())),
    shown("family", "family", |m| Value::Count(m.cpu.family.into())),
    shown("model", "model", |m| Value::Count(m.cpu.model.into())),
    shown("stepping", "stepping", |m| Value::Count(m.cpu.stepping.into())),
    shown("hypervisor", "hypervisor", |m| Value::Flag(m.cpu.hypervisor)),
    shown("features", "features", |m| words(m.cpu.usable)),
    shown("not_enabled", "not enabled", |m| words(m.cpu.has.without(m.cpu.usable))),
    shown("source", "source", |_| Value::text(FEATURES_SOURCE)),
    shown("cpus", "cpus to use", |m| Value::Count(m.cpus as u64)),
    shown("cpus_source", "source", |_| Value::text("affinity mask and cgroup quota")),
];

fn words(features: Features) -> Value {
    Value::Words(features.iter().map(|one| one.name().to_owned()).collect())
}

struct Measured {
    cache: Cache,
    ns: Option<f64>,
}

const CACHES: &[Column<Measured>] = &[
    shown("level", "level", |row| Value::Count(row.cache.level.into())),
    shown("kind", "kind", |row| Value::text(row.cache.kind)),
    shown("size_bytes", "size", |row| Value::bytes(row.cache.size_bytes)),
    shown("line_bytes", "line", |row| Value::bytes(row.cache.line_bytes)),
    shown("shared_by", "shared by", |row| Value::Count(row.cache.shared_by.into())),
    shown("source", "source", |row| Value::text(row.cache.source)),
    shown("measured_ns", "load", |row| Value::or_missing(row.ns, Value::Ns)),
];

/// Over all CPUs, which may differ.
const LINES: &[Column<Geometry>] = &[
    shown("min_bytes", "shortest", |g| Value::bytes(g.line_min().value)),
    shown("min_source", "source", |g| Value::text(g.line_min().source)),
    shown("max_bytes", "longest", |g| Value::bytes(g.line_max().value)),
    shown("max_source", "source", |g| Value::text(g.line_max().source)),
    shown("dma_alignment_bytes", "align for dma", |g| Value::bytes(g.dma_alignment().value)),
    shown("dma_alignment_source", "source", |g| Value::text(g.dma_alignment().source)),
];

struct Memory {
    machine: Machine,
    ns: Option<f64>,
}

const MEMORY: &[Column<Memory>] = &[
    shown("total_bytes", "total", |m| Value::Bytes(m.machine.total_bytes)),
    shown("available_bytes", "available", |m| Value::Bytes(m.machine.available_bytes)),
    shown("source", "source", |_| Value::text("/proc/meminfo")),
    shown("page_bytes", "page", |m| Value::bytes(m.machine.page_bytes)),
    shown("page_source", "source", |_| Value::text("auxiliary vector")),
    shown("measured_ns", "load", |m| Value::or_missing(m.ns, Value::Ns)),
    data("range_bytes", |m| Value::bytes(m.machine.range(1).footprint_bytes)),
];

const DOUBTS: &[Column<Doubt>] = &[
    shown("id", "id", |doubt| Value::text(doubt.id())),
    shown("cause", "cause", |doubt| Value::text(doubt.cause())),
    shown("remedy", "remedy", |doubt| Value::text(doubt.remedy())),
];

const COUNTERS: &[Column<Counters>] = &[
    shown("available", "available", |c| Value::Flag(*c == Counters::Available)),
    shown("because", "because", |c| Value::text(c)),
    shown("remedy", "remedy", |c| Value::or_missing(c.remedy(), Value::text)),
];

impl Grouped for Measured {
    fn group(&self) -> String {
        "caches (a load is one of a dependent chain, measured)".into()
    }
}

impl Grouped for Doubt {
    fn group(&self) -> String {
        "doubts".into()
    }
}
