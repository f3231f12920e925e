//! The verdict in plain words: who wins, by how much at the ends, and how well that is known.
//!
//! What was measured are shares; a break-even between two of them is interpolated. It is told as a
//! figure only where its interval leaves something of the axis, and else by the shares beside it.

use super::rows::{name, source};
use crate::commands::cell::{bystander, percent, soil, used};
use crate::record::{Column, Grouped, Value, data, shown};
use crate::size::Size;
use cachewise_measure::map::{BreakEven, Cell, Crossing, Duel, Finding, Share, Side, Victim};

/// One size from one source, used in one way.
pub(crate) struct Verdict {
    like: Cell,
    pub(crate) text: String,
}

impl Verdict {
    /// What it is about.
    pub(crate) fn what(&self) -> String {
        format!("{}, {}", soil(&self.like), used(self.like.use_kind))
    }
}

/// Of an axis so long, an interval says nothing.
const WIDE: f64 = 0.5;
/// Between nothing and so little nobody asks for a figure.
const NEXT_TO_NOTHING: f64 = 0.01;

/// What a line amounts to.
pub(super) fn clause(line: &BreakEven) -> String {
    let (known, unknown): (Vec<&Point>, Vec<&Point>) =
        line.points.iter().partition(|(_, duel)| duel.side() != Side::Unclear);
    let says = match line.finding() {
        Finding::Always(side) if !unknown.is_empty() => {
            let says = wins(side, "wins");
            format!("{says} wherever the noise lets one tell, at {}", shares(&known))
        }
        Finding::Always(side) if known.len() == 1 => wins(side, "wins"),
        Finding::Always(side) => wins(side, "always wins"),
        Finding::NeverWorse(side) => format!("{} wins or makes no difference", name(side)),
        Finding::Until(first, crossing, beyond) => until(line, &known, first, crossing, beyond),
        Finding::Mixed => "to and fro: no simple rule".into(),
        Finding::Unclear => return "too noisy to tell".into(),
    };
    let noise = match line.finding() {
        Finding::Always(_) => String::new(),
        _ if unknown.is_empty() => String::new(),
        _ => format!(", too noisy to tell at {}", shares(&unknown)),
    };
    format!("{says}{noise}{}", ends(&known))
}

type Point = (Share, Duel);

fn wins(side: Side, wins: &str) -> String {
    match side {
        Side::Neither => "no difference".into(),
        side => format!("{} {wins}", name(side)),
    }
}

fn share(point: &Point) -> String {
    percent(point.0.as_f64())
}

fn shares(points: &[&Point]) -> String {
    points.iter().map(|point| share(point)).collect::<Vec<_>>().join(", ")
}

/// One side, or none, until a share, then another one, or none.
fn until(
    line: &BreakEven,
    known: &[&Point],
    first: Side,
    crossing: Crossing,
    beyond: Side,
) -> String {
    let used = used(line.line.use_kind);
    let (before, then) = (wins(first, "wins"), wins(beyond, "wins"));
    // The measured shares on either side of it.
    let last = known.iter().rfind(|(_, duel)| duel.side() == first);
    let next = known
        .iter()
        .find(|(share, duel)| duel.side() == beyond && last.is_none_or(|(last, _)| share > last));
    let least = known.iter().map(|(share, _)| share.as_f64()).find(|&share| share > 0.0);
    let below_least = least.is_some_and(|l| l <= NEXT_TO_NOTHING && crossing.share < l);
    let axis = line.points.last().map_or(0.0, |(share, _)| share.as_f64());
    let is_wide = crossing.high - crossing.low > WIDE * axis;
    match (last, next) {
        (Some((Share::NONE, _)), Some((next, _))) if next.as_f64() <= NEXT_TO_NOTHING => {
            format!("{before} only if nothing of it is {used}, else {then}")
        }
        (Some(last), Some(next)) if is_wide || below_least => {
            let reach = if last.0 == Share::NONE { "at" } else { "up to" };
            let (last, next) = (share(last), share(next));
            format!(
                "{before} {reach} {last}; from somewhere between {last} and {next} {used} on {then}"
            )
        }
        _ => {
            let Crossing { share, low, high } = crossing;
            let (share, low, high) = (percent(share), percent(low), percent(high));
            format!("{before} until {share} ({low} to {high}) of it is {used}, then {then}")
        }
    }
}

/// Who meets at the first and at the last share of which something is known, and by how much the
/// temporal one costs more.
fn ends(known: &[&Point]) -> String {
    let (Some((first, duel)), Some((last, other))) = (known.first(), known.last()) else {
        return String::new();
    };
    let names = |duel: &Duel| format!("{} against {}", duel.nontemporal, duel.temporal);
    let ratio = |share: &Share, duel: &Duel| {
        format!("{:.2}x at {}", duel.ratio.median, percent(share.as_f64()))
    };
    let begin = format!("{}: {}", names(duel), ratio(first, duel));
    match (first == last, names(duel) == names(other)) {
        (true, _) => format!(" ({begin})"),
        (false, true) => format!(" ({begin}, {})", ratio(last, other)),
        (false, false) => format!(" ({begin}; {}: {})", names(other), ratio(last, other)),
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
    let or_more = |larger| if larger { " or more" } else { "" };
    let delayed = lines.iter().filter(like).filter(|line| line.line.victim == victim);
    let delayed = delayed.filter(|line| line.line.delay_bytes > delay_bytes);
    if let Some((line, larger)) = changes(plain, delayed, |line| line.line.delay_bytes) {
        let after = Size(line.line.delay_bytes);
        text += &format!("; if only after {after}{} of traffic: {}", or_more(larger), clause(line));
    }
    let beside = lines.iter().filter(like).filter(|line| line.line.delay_bytes == delay_bytes);
    let beside = beside.filter(|line| line.line.victim.bytes > victim.bytes);
    if let Some((line, larger)) = changes(plain, beside, |line| line.line.victim.bytes) {
        let victim = &line.line.victim;
        let how = bystander(victim).unwrap_or_default();
        let size = Size(victim.bytes);
        text +=
            &format!("; with a bystander of {size}{} ({how}): {}", or_more(larger), clause(line));
    }
    text
}

/// The line with the least of something from which on all of its kind come out alike, and otherwise
/// than the plain one; and whether there are larger ones.
fn changes<'a>(
    plain: &BreakEven,
    lines: impl Iterator<Item = &'a BreakEven>,
    amount: fn(&BreakEven) -> usize,
) -> Option<(&'a BreakEven, bool)> {
    let sides = |line: &BreakEven| match line.finding() {
        Finding::Always(side) | Finding::NeverWorse(side) => Some((side, side)),
        Finding::Until(first, _, last) => Some((first, last)),
        Finding::Mixed | Finding::Unclear => None,
    };
    let kind = |line: &BreakEven| Victim { bytes: 0, ..line.line.victim };
    let mut lines: Vec<&BreakEven> =
        lines.filter(|line| line.finding() != Finding::Unclear).collect();
    lines.sort_by_key(|line| amount(line));
    lines.iter().enumerate().find_map(|(index, line)| {
        let mut larger =
            lines[index + 1..].iter().filter(|other| kind(other) == kind(line)).peekable();
        let has_larger = larger.peek().is_some();
        let tells = sides(line).is_some() && sides(line) != sides(plain);
        (tells && larger.all(|other| sides(other) == sides(line))).then_some((*line, has_larger))
    })
}

pub(super) const VERDICTS: &[Column<Verdict>] = &[
    data("operation", |v| Value::text(v.like.operation)),
    data("size_bytes", |v| Value::bytes(v.like.size_bytes)),
    data("source", |v| source(&v.like)),
    data("use_kind", |v| Value::text(v.like.use_kind)),
    shown("what", "what", |v| Value::text(v.what())),
    shown("verdict", "verdict", |v| Value::text(&v.text)),
];

impl Grouped for Verdict {
    fn group(&self) -> String {
        "which side wins the whole step, by how much of the result is used (1.41x: with the temporal \
         one the operation costs so many times as much, in all)"
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewise::variant::Operation;
    use cachewise_measure::map::{Core, UseKind, Walk};
    use cachewise_measure::stats::Estimate;
    use cachewise_measure::{Page, Temperature};

    const PLAIN: Cell = Cell {
        operation: Operation::Copy,
        size_bytes: 65536,
        source: Temperature::Cold,
        page: Page::Base,
        threads: 1,
        used: Share::ALL,
        use_kind: UseKind::Read,
        delay_bytes: 0,
        victim: Victim::NONE,
    };
    const NOISE: f64 = f64::NAN;

    /// At these shares these ratios, each known to a percent.
    fn line_in(cell: Cell, points: &[(f64, f64)]) -> BreakEven {
        let point = |&(share, median): &(f64, f64)| {
            let ratio = match median.is_nan() {
                true => Estimate { median: 1.0, low: 0.5, high: 2.0 },
                false => Estimate { median, low: median * 0.99, high: median * 1.01 },
            };
            let (nontemporal, temporal) = ("nt".to_owned(), "libc".to_owned());
            (Share::new(share).unwrap(), Duel { nontemporal, temporal, ratio })
        };
        BreakEven { line: cell, points: points.iter().map(point).collect(), until: None }
    }

    fn line(points: &[(f64, f64)]) -> BreakEven {
        line_in(PLAIN, points)
    }

    fn crossed(points: &[(f64, f64)], share: f64, low: f64, high: f64) -> BreakEven {
        BreakEven { until: Some(Crossing { share, low, high }), ..line(points) }
    }

    #[test]
    fn a_line_without_a_change_names_who_meets_and_by_how_much() {
        for (points, says) in [
            (
                &[(0.0, 1.41), (1.0, 1.2)][..],
                "non-temporal always wins (nt against libc: 1.41x at 0 %, 1.20x at 100 %)",
            ),
            (
                &[(0.0, 0.5), (1.0, 0.25)],
                "temporal always wins (nt against libc: 0.50x at 0 %, 0.25x at 100 %)",
            ),
            (
                &[(0.0, 1.0), (1.0, 1.01)],
                "no difference (nt against libc: 1.00x at 0 %, 1.01x at 100 %)",
            ),
            // One share is not always.
            (&[(0.0, 1.5)], "non-temporal wins (nt against libc: 1.50x at 0 %)"),
            (
                &[(0.0, 1.0), (0.25, 1.5), (1.0, 1.0)],
                "non-temporal wins or makes no difference (nt against libc: 1.00x at 0 %, 1.00x at \
                 100 %)",
            ),
            (
                &[(0.0, 0.5), (1.0, 2.0)],
                "to and fro: no simple rule (nt against libc: 0.50x at 0 %, 2.00x at 100 %)",
            ),
        ] {
            assert_eq!(clause(&line(points)), says);
        }
    }

    #[test]
    fn where_the_ends_are_other_pairs_both_are_named() {
        let mut line = line(&[(0.0, 1.5), (1.0, 1.2)]);
        line.points[1].1.temporal = "mov".into();
        assert_eq!(
            clause(&line),
            "non-temporal always wins (nt against libc: 1.50x at 0 %; nt against mov: 1.20x at 100 %)"
        );
    }

    #[test]
    fn noise_at_some_shares_is_no_always() {
        for (points, says) in [
            (
                &[(0.0, NOISE), (0.002, 0.9), (0.25, 0.8), (1.0, 0.7)][..],
                "temporal wins wherever the noise lets one tell, at 0.2 %, 25 %, 100 % (nt against \
                 libc: 0.90x at 0.2 %, 0.70x at 100 %)",
            ),
            (
                &[(0.0, 1.0), (1.0, NOISE)],
                "no difference wherever the noise lets one tell, at 0 % (nt against libc: 1.00x at \
                 0 %)",
            ),
            (&[(0.0, NOISE), (1.0, NOISE)], "too noisy to tell"),
        ] {
            assert_eq!(clause(&line(points)), says);
        }
        let points = [(0.0, 1.5), (0.25, 0.8), (1.0, NOISE)];
        assert_eq!(
            clause(&crossed(&points, 0.14, 0.13, 0.15)),
            "non-temporal wins until 14 % (13 % to 15 %) of it is read, then temporal wins, too \
             noisy to tell at 100 % (nt against libc: 1.50x at 0 %, 0.80x at 25 %)"
        );
    }

    #[test]
    fn a_break_even_is_a_figure_only_where_one_is_known() {
        let start = |line: &BreakEven| clause(line).split(" (nt").next().unwrap().to_owned();
        let falls = [(0.0, 1.41), (0.25, 0.9), (1.0, 0.52)];
        for (line, says) in [
            (
                crossed(&falls, 0.14, 0.07, 0.19),
                "non-temporal wins until 14 % (7.0 % to 19 %) of it is read, then temporal wins",
            ),
            // To 2 % of a difference.
            (
                crossed(&[(0.0, 1.5), (1.0, 1.0)], 0.9, 0.8, 1.0),
                "non-temporal wins until 90 % (80 % to 100 %) of it is read, then no difference",
            ),
            (
                crossed(&[(0.0, 1.0), (1.0, 0.5)], 0.1, 0.05, 0.2),
                "no difference until 10 % (5.0 % to 20 %) of it is read, then temporal wins",
            ),
            // Below the least share there is.
            (
                crossed(&[(0.0, 1.5), (0.002, 0.9), (1.0, 0.5)], 0.001, 0.001, 0.001),
                "non-temporal wins only if nothing of it is read, else temporal wins",
            ),
            (
                crossed(&[(0.0, 1.0), (0.002, 0.9), (1.0, 0.5)], 0.001, 0.0, 0.001),
                "no difference only if nothing of it is read, else temporal wins",
            ),
            // There it makes no difference, which is not a loss.
            (
                crossed(&[(0.0, 1.5), (0.002, 0.99), (0.25, 0.5)], 0.001, 0.001, 0.1),
                "non-temporal wins at 0 %; from somewhere between 0 % and 25 % read on temporal wins",
            ),
            // An interval as wide as the axis.
            (
                crossed(&[(0.0, 1.5), (0.002, 1.4), (0.25, 0.9), (1.0, 0.5)], 0.2, 0.1, 0.7),
                "non-temporal wins up to 0.2 %; from somewhere between 0.2 % and 25 % read on \
                 temporal wins",
            ),
        ] {
            assert_eq!(start(&line), says);
        }
        let written = Cell { use_kind: UseKind::Write, ..PLAIN };
        let line = BreakEven { line: written, ..crossed(&falls, 0.14, 0.07, 0.19) };
        assert!(start(&line).contains("of it is written"));
    }

    /// What is added to the plain line's words.
    fn added(plain: &[(f64, f64)], others: &[BreakEven]) -> String {
        let mut lines = vec![line(plain)];
        lines.extend_from_slice(others);
        let verdicts = verdicts(&lines);
        assert_eq!(verdicts.len(), 1);
        let text = verdicts[0].text.strip_prefix(&clause(&lines[0])).unwrap();
        text.split(" (nt").next().unwrap().to_owned()
    }

    const TEMPORAL: [(f64, f64); 2] = [(0.0, 0.5), (1.0, 0.5)];
    const NONTEMPORAL: [(f64, f64); 2] = [(0.0, 2.0), (1.0, 2.0)];
    const NOISY: [(f64, f64); 2] = [(0.0, NOISE), (1.0, NOISE)];

    fn delayed(delay_bytes: usize, points: &[(f64, f64)]) -> BreakEven {
        line_in(Cell { delay_bytes, ..PLAIN }, points)
    }

    fn beside(bytes: usize, walk: Walk, core: Core, points: &[(f64, f64)]) -> BreakEven {
        let victim = Victim { bytes, walk, core, retouch: 1 };
        line_in(Cell { victim, ..PLAIN }, points)
    }

    #[test]
    fn a_delay_is_quoted_from_where_on_it_changes_the_outcome() {
        let kib = |kib: usize, points: &[(f64, f64)]| delayed(kib << 10, points);
        let all = [kib(32, &TEMPORAL), kib(1024, &NONTEMPORAL), kib(4096, &NONTEMPORAL)];
        let says = "; if only after 1 MiB or more of traffic: non-temporal always wins";
        assert_eq!(added(&TEMPORAL, &all), says);
        // Noise says nothing against it.
        let noisy = [kib(1024, &NONTEMPORAL), kib(2048, &NOISY), kib(4096, &NONTEMPORAL)];
        assert_eq!(added(&TEMPORAL, &noisy), says);
        let last = [kib(32, &TEMPORAL), kib(1024, &NONTEMPORAL)];
        let says = "; if only after 1 MiB of traffic: non-temporal always wins";
        assert_eq!(added(&TEMPORAL, &last), says);
    }

    #[test]
    fn an_outlier_is_not_quoted() {
        let kib = |kib: usize, points: &[(f64, f64)]| delayed(kib << 10, points);
        let back = [kib(32, &NONTEMPORAL), kib(1024, &TEMPORAL)];
        assert_eq!(added(&TEMPORAL, &back), "");
        let mixed = [kib(32, &NONTEMPORAL), kib(1024, &[(0.0, 0.5), (1.0, 2.0)])];
        assert_eq!(added(&TEMPORAL, &mixed), "");
        assert_eq!(added(&TEMPORAL, &[kib(32, &NOISY)]), "");
    }

    #[test]
    fn bystanders_are_compared_with_those_that_walk_like_them_on_the_same_core() {
        use Core::{Other, Same};
        use Walk::{Dependent, Independent};
        let all = [
            beside(16384, Independent, Same, &TEMPORAL),
            beside(16384, Dependent, Same, &TEMPORAL),
            beside(1 << 20, Dependent, Same, &NONTEMPORAL),
            beside(2 << 20, Independent, Same, &TEMPORAL),
            beside(4 << 20, Dependent, Same, &NONTEMPORAL),
            beside(4 << 20, Dependent, Other, &TEMPORAL),
        ];
        assert_eq!(
            added(&TEMPORAL, &all),
            "; with a bystander of 1 MiB or more (dependent loads, same core): non-temporal always \
             wins"
        );
        let other = [beside(4096, Independent, Other, &NONTEMPORAL), delayed(64, &NONTEMPORAL)];
        assert_eq!(
            added(&TEMPORAL, &other[..1]),
            "; with a bystander of 4 KiB (independent loads, other core): non-temporal always wins"
        );
        // Both, the delay first.
        let mut lines = vec![line(&TEMPORAL)];
        lines.extend(other);
        let text = &verdicts(&lines)[0].text;
        let (delay, victim) = (text.find("; if only after 64 B"), text.find("; with a bystander"));
        assert!(delay.unwrap() < victim.unwrap(), "{text}");
    }
}
