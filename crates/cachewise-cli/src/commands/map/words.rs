//! The verdict in plain words.

use super::rows::percent;
use crate::commands::survey::soil;
use crate::record::{Column, Grouped, Value, data, shown};
use crate::size::Size;
use cachewise_measure::map::{BreakEven, Cell, Crossing, Finding, Side, UseKind, Victim};

/// One size from one source, used in one way.
pub(crate) struct Verdict {
    like: Cell,
    pub(crate) text: String,
}

impl Verdict {
    /// What it is about.
    pub(crate) fn what(&self) -> String {
        let used = if self.like.use_kind == UseKind::Read { "read" } else { "written" };
        format!("{}, {used}", soil(&self.like))
    }
}

/// What a line amounts to.
pub(super) fn clause(line: &BreakEven) -> String {
    let used = match line.line.use_kind {
        UseKind::Read => "read",
        UseKind::Write => "written",
    };
    let at = |crossing: Crossing| {
        let Crossing { share, low, high } = crossing;
        format!("{} ({} to {})", percent(share), percent(low), percent(high))
    };
    match line.finding() {
        Finding::Always(Side::Neither) => "no difference".into(),
        Finding::Always(side) => format!("{} always wins", name(side)),
        Finding::NeverWorse(side) => format!("{} wins or makes no difference", name(side)),
        Finding::Until(Side::NonTemporal, crossing, beyond) => {
            let then =
                if beyond == Side::Temporal { "then temporal" } else { "then no difference" };
            format!("non-temporal wins until {} of it is {used}, {then}", at(crossing))
        }
        Finding::Until(_, crossing, _) => {
            format!("no difference until {} of it is {used}, then temporal wins", at(crossing))
        }
        Finding::Mixed => "to and fro: no simple rule".into(),
        Finding::Unclear => "too noisy to tell".into(),
    }
}

fn name(side: Side) -> &'static str {
    match side {
        Side::NonTemporal => "non-temporal",
        Side::Temporal => "temporal",
        Side::Neither | Side::Unclear => "nobody",
    }
}

/// One sentence per size, source and kind of use: without a bystander, then what a delay and what a
/// bystander change.
pub(crate) fn verdicts(lines: &[BreakEven]) -> Vec<Verdict> {
    let key = |line: &BreakEven| (line.line.soil(), line.line.use_kind);
    let mut plainest: Vec<&BreakEven> = Vec::new();
    for line in lines {
        let extras = |line: &BreakEven| (line.line.victim.bytes, line.line.delay_bytes);
        match plainest.iter_mut().find(|known| key(known) == key(line)) {
            Some(known) if extras(line) < extras(known) => *known = line,
            Some(_) => {}
            None => plainest.push(line),
        }
    }
    let verdict = |line: &BreakEven| Verdict { like: line.line, text: sentence(line, lines) };
    plainest.into_iter().map(verdict).collect()
}

fn sentence(plain: &BreakEven, lines: &[BreakEven]) -> String {
    let like = |line: &&BreakEven| {
        line.line.soil() == plain.line.soil() && line.line.use_kind == plain.line.use_kind
    };
    let mut text = clause(plain);
    let Cell { victim, delay_bytes, .. } = plain.line;
    let delayed = lines.iter().filter(like).filter(|line| line.line.victim == victim);
    let delayed = delayed.filter(|line| line.line.delay_bytes > delay_bytes);
    if let Some(line) = changes(plain, delayed, |line| line.line.delay_bytes) {
        let after = Size(line.line.delay_bytes);
        text += &format!("; if only after {after} of traffic: {}", clause(line));
    }
    let beside = lines.iter().filter(like).filter(|line| line.line.delay_bytes == delay_bytes);
    let beside = beside.filter(|line| line.line.victim.bytes > victim.bytes);
    if let Some(line) = changes(plain, beside, |line| line.line.victim.bytes) {
        let Victim { bytes, walk, core, .. } = line.line.victim;
        let bystander = format!("a bystander of {} ({walk} loads, {core} core)", Size(bytes));
        text += &format!("; with {bystander}: {}", clause(line));
    }
    text
}

/// The line with the least of something that comes out otherwise.
fn changes<'a>(
    plain: &BreakEven,
    lines: impl Iterator<Item = &'a BreakEven>,
    least: fn(&BreakEven) -> usize,
) -> Option<&'a BreakEven> {
    let sides = |line: &BreakEven| match line.finding() {
        Finding::Always(side) | Finding::NeverWorse(side) => Some((side, side)),
        Finding::Until(first, _, last) => Some((first, last)),
        Finding::Mixed | Finding::Unclear => None,
    };
    let other = lines.filter(|line| sides(line).is_some() && sides(line) != sides(plain));
    other.min_by_key(|line| least(line))
}

pub(super) const VERDICTS: &[Column<Verdict>] = &[
    data("operation", |v| Value::text(v.like.operation)),
    data("size_bytes", |v| Value::bytes(v.like.size_bytes)),
    data("source", |v| Value::text(v.like.source)),
    data("use_kind", |v| Value::text(v.like.use_kind)),
    shown("what", "what", |v| Value::text(v.what())),
    shown("verdict", "verdict", |v| Value::text(&v.text)),
];

impl Grouped for Verdict {
    fn group(&self) -> String {
        "which side wins the whole step, by how much of the result is used".into()
    }
}
