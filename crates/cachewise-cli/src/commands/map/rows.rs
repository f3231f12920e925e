//! The columns of `map`'s lists.

use super::words;
use crate::commands::cell::{bystander, percent, soil, used_when};
use crate::record::{Column, Grouped, Value, data, identifying, only_shown, shown};
use crate::size::Size;
use cachewise::variant::Operation;
use cachewise_measure::contestant::LIBC;
use cachewise_measure::map::{
    BreakEven, Cell, Core, Crossing, Duel, Figures, Finding, Measured, Misses, Outcome, Share,
    Side, Status, Times,
};
use cachewise_measure::stats::{Estimate, Samples};

/// One contender in one cell.
pub(crate) struct Row {
    pub(super) cell: Cell,
    pub(super) variant: String,
    pub(super) status: Status,
    pub(super) because: Option<String>,
    figures: Option<Figures>,
    /// libc's whole over this one's.
    ratio: Option<Estimate>,
    times: Times,
}

impl Row {
    /// All of a cell, the fastest whole first.
    pub(super) fn all(measured: &Measured, seed: u64) -> Vec<Self> {
        let cell = measured.cell;
        let libc = measured.of(LIBC);
        let row = |outcome: &Outcome| {
            let Outcome { variant, status, because, times } = outcome.clone();
            let ratio = libc.and_then(|libc| libc.times.whole.ratio(&times.whole).estimate(seed));
            let figures = times.figures(cell.victim.core, seed);
            Self { cell, variant, status, because, figures, ratio, times }
        };
        let mut rows: Vec<Self> = measured.outcomes.iter().map(row).collect();
        let whole = |row: &Self| row.figures.map_or(f64::INFINITY, |f| f.whole.median);
        rows.sort_by(|a, b| whole(a).total_cmp(&whole(b)));
        rows
    }

    fn ns(&self, part: fn(&Figures) -> f64) -> Value {
        Value::or_missing(self.figures.as_ref().map(part), Value::Ns)
    }

    /// A part that the cell doesn't have takes no place in a table.
    fn ns_if(&self, has: bool, part: fn(&Figures) -> f64) -> Value {
        if has { self.ns(part) } else { Value::Missing }
    }

    fn ratio(&self, end: fn(Estimate) -> f64) -> Value {
        Value::or_missing(self.ratio.map(end), Value::Ratio)
    }

    /// Of the last-level cache per step; missing where there are no counters, since then all are 0.
    fn misses(&self, part: fn(&Misses) -> &Samples) -> Value {
        let Misses { op, used, victim } = &self.times.misses;
        let counted =
            [op, used, victim].into_iter().any(|s| s.batches().concat().iter().any(|&n| n > 0.0));
        let misses = part(&self.times.misses).median().filter(|_| counted);
        Value::or_missing(misses, |misses| Value::Count(misses.round() as u64))
    }

    fn misses_samples(&self, part: fn(&Misses) -> &Samples) -> Value {
        match self.misses(part) {
            Value::Missing => Value::Missing,
            _ => Value::Samples(part(&self.times.misses).batches().to_vec()),
        }
    }

    fn samples(&self, part: fn(&Times) -> &Samples) -> Value {
        match self.status {
            Status::Ok => Value::Samples(part(&self.times).batches().to_vec()),
            _ => Value::Missing,
        }
    }
}

pub(crate) const CELLS: &[Column<Row>] = &[
    identifying(data("operation", |r| Value::text(r.cell.operation))),
    identifying(data("size_bytes", |r| Value::bytes(r.cell.size_bytes))),
    identifying(data("use_share", |r| Value::Share(r.cell.used.as_f64()))),
    only_shown("used", |r| match r.cell.used {
        Share::NONE => Value::Missing,
        share => Value::text(percent(share.as_f64())),
    }),
    identifying(data("use_kind", |r| Value::text(r.cell.use_kind))),
    identifying(data("delay_bytes", |r| Value::bytes(r.cell.delay_bytes))),
    identifying(data("victim_bytes", |r| Value::bytes(r.cell.victim.bytes))),
    only_shown("victim", |r| match r.cell.victim.bytes {
        0 => Value::Missing,
        bytes => Value::bytes(bytes),
    }),
    identifying(data("victim_walk", |r| Value::text(r.cell.victim.walk))),
    identifying(data("victim_core", |r| Value::text(r.cell.victim.core))),
    identifying(data("retouch", |r| Value::Count(r.cell.victim.retouch.into()))),
    identifying(data("source", |r| source(&r.cell))),
    identifying(data("page", |r| Value::text(r.cell.page))),
    identifying(data("threads", |r| Value::Count(r.cell.threads as u64))),
    identifying(shown("variant", "variant", |r| Value::text(&r.variant))),
    shown("op_ns", "op", |r| r.ns(|f| f.op_ns)),
    data("delay_ns", |r| r.ns(|f| f.delay_ns)),
    data("delay_baseline_ns", |r| r.ns(|f| f.delay_baseline_ns)),
    data("use_ns", |r| r.ns(|f| f.use_ns)),
    only_shown("use", |r| r.ns_if(r.cell.used != Share::NONE, |f| f.use_ns)),
    data("use_baseline_ns", |r| r.ns(|f| f.use_baseline_ns)),
    data("victim_ns", |r| r.ns(|f| f.victim_ns)),
    data("victim_baseline_ns", |r| r.ns(|f| f.victim_baseline_ns)),
    data("victim_excess_ns", |r| r.ns(|f| f.victim_excess_ns)),
    only_shown("lost", |r| r.ns_if(r.cell.victim.bytes > 0, |f| f.victim_excess_ns)),
    shown("whole_ns", "whole", |r| r.ns(|f| f.whole.median)),
    data("whole_low_ns", |r| r.ns(|f| f.whole.low)),
    data("whole_high_ns", |r| r.ns(|f| f.whole.high)),
    shown("unattributed_ns", "rest", |r| r.ns(|f| f.unattributed_ns)),
    data("op_misses", |r| r.misses(|m| &m.op)),
    data("use_misses", |r| r.misses(|m| &m.used)),
    data("victim_misses", |r| r.misses(|m| &m.victim)),
    data("against", |_| Value::text(LIBC)),
    data("ratio", |r| r.ratio(|e| e.median)),
    only_shown("libc", |r| match r.status {
        Status::Ok => r.ratio(|e| e.median),
        status => Value::text(status),
    }),
    data("ratio_low", |r| r.ratio(|e| e.low)),
    data("ratio_high", |r| r.ratio(|e| e.high)),
    data("status", |r| Value::text(r.status)),
    data("because", |r| Value::or_missing(r.because.as_ref(), Value::text)),
    data("samples", |r| Value::Count(r.times.whole.count() as u64)),
    data("samples_ns", |r| r.samples(|t| &t.whole)),
    data("op_samples_ns", |r| r.samples(|t| &t.op)),
    data("delay_samples_ns", |r| r.samples(|t| &t.delay)),
    data("delay_baseline_samples_ns", |r| r.samples(|t| &t.delay_baseline)),
    data("use_samples_ns", |r| r.samples(|t| &t.used)),
    data("use_baseline_samples_ns", |r| r.samples(|t| &t.use_baseline)),
    data("victim_samples_ns", |r| r.samples(|t| &t.victim)),
    data("victim_baseline_samples_ns", |r| r.samples(|t| &t.victim_baseline)),
    data("op_misses_samples", |r| r.misses_samples(|m| &m.op)),
    data("use_misses_samples", |r| r.misses_samples(|m| &m.used)),
    data("victim_misses_samples", |r| r.misses_samples(|m| &m.victim)),
];

impl Grouped for Row {
    fn group(&self) -> String {
        // Cells that differ in the share only stand together.
        let like = Cell { used: Share::ALL, ..self.cell };
        let mut text = format!("{}; {}", soil(&like), used_when(&like));
        if let Some(how) = bystander(&like.victim) {
            text += &format!("; bystander: {how}");
        }
        text
    }

    fn only_data(&self) -> bool {
        self.status == Status::Unsupported
    }
}

/// A clear has none.
pub(super) fn source(cell: &Cell) -> Value {
    match cell.operation {
        Operation::Copy => Value::text(cell.source),
        Operation::Clear => Value::Missing,
    }
}

fn victim(cell: &Cell) -> String {
    if cell.victim.bytes == 0 {
        return "-".into();
    }
    let core = if cell.victim.core == Core::Other { ", other core" } else { "" };
    let walk = cell.victim.walk.to_string();
    format!("{} {}.{core}", Size(cell.victim.bytes).short(), &walk[..3])
}

impl Grouped for BreakEven {
    fn group(&self) -> String {
        format!("break-even, {}", soil(&self.line))
    }
}

fn until(line: &BreakEven) -> Option<Crossing> {
    match line.finding() {
        Finding::Until(_, crossing, _) => Some(crossing),
        _ => None,
    }
}

pub(super) fn name(side: Side) -> &'static str {
    match side {
        Side::NonTemporal => "non-temporal",
        Side::Temporal => "temporal",
        Side::Neither => "no difference",
        Side::Unclear => "too noisy to tell",
    }
}

fn winner(point: &(Share, Duel)) -> Value {
    Value::text(name(point.1.side()))
}

fn each(line: &BreakEven, value: fn(&(Share, Duel)) -> Value) -> Value {
    Value::List(line.points.iter().map(value).collect())
}

pub(super) const BREAK_EVEN: &[Column<BreakEven>] = &[
    data("operation", |l| Value::text(l.line.operation)),
    data("size_bytes", |l| Value::bytes(l.line.size_bytes)),
    data("use_kind", |l| Value::text(l.line.use_kind)),
    only_shown("used by", |l| Value::text(l.line.use_kind)),
    shown("delay_bytes", "after", |l| Value::bytes(l.line.delay_bytes)),
    data("victim_bytes", |l| Value::bytes(l.line.victim.bytes)),
    only_shown("victim", |l| Value::text(victim(&l.line))),
    data("victim_walk", |l| Value::text(l.line.victim.walk)),
    data("victim_core", |l| Value::text(l.line.victim.core)),
    data("retouch", |l| Value::Count(l.line.victim.retouch.into())),
    data("source", |l| source(&l.line)),
    data("page", |l| Value::text(l.line.page)),
    data("threads", |l| Value::Count(l.line.threads as u64)),
    data("until_share", |l| Value::or_missing(until(l), |c| Value::Share(c.share))),
    data("until_share_low", |l| Value::or_missing(until(l), |c| Value::Share(c.low))),
    data("until_share_high", |l| Value::or_missing(until(l), |c| Value::Share(c.high))),
    data("wins_before", |l| Value::or_missing(l.points.first(), winner)),
    data("wins_beyond", |l| Value::or_missing(l.points.last(), winner)),
    shown("verdict", "verdict", |l| Value::text(words::clause(l))),
    data("shares", |l| each(l, |(share, _)| Value::Share(share.as_f64()))),
    data("winners", |l| each(l, winner)),
    data("nontemporal", |l| each(l, |(_, duel)| Value::text(&duel.nontemporal))),
    data("temporal", |l| each(l, |(_, duel)| Value::text(&duel.temporal))),
    data("ratios", |l| each(l, |(_, duel)| Value::Ratio(duel.ratio.median))),
];
