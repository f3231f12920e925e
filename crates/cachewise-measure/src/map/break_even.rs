//! Who wins a cell, and up to which share of the result a non-temporal operation is a net gain.
//!
//! Two sides stand against each other in a cell: the best of what stores around the cache by its
//! row in the registry, and the best of all else, libc among it. Each side's best is picked on one
//! half of the samples and the two are compared on the other half (case 14).
//!
//! What is compared are whole steps: the difference, round by round. What it is compared *to* is what
//! the operation costs in all, the whole less what bystander, delay and use cost by themselves. As a
//! share of the whole, any difference would vanish beside a large enough bystander; so the answer
//! there is a figure or "too noisy to tell", and not "no difference".
//!
//! Cells that differ only in the share that is used make a line. Between two shares the logarithm
//! of the ratio is taken as a straight line; where it crosses 0 the sides break even, and where the
//! interval's ends cross is how well that is known.

use super::cell::{Cell, Measured, Outcome, Share, UseKind};
use crate::stats::Estimate;
use crate::verdict::{EFFECT_MIN, SCORED_MIN, is_a_difference};
use cachewise::variant::{self, Store};

/// Who wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The best non-temporal variant.
    NonTemporal,
    /// The best of the others.
    Temporal,
    /// Nobody, or by less than 2 %.
    Neither,
    /// Noise hides it.
    Unclear,
}

/// The two sides of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Duel {
    /// The best non-temporal variant.
    pub nontemporal: String,
    /// The best of the others: a variant, or `libc`.
    pub temporal: String,
    /// How many times more the operation costs in all with the temporal one.
    pub ratio: Estimate,
}

/// If a difference may be so large and yet is not clear of noise, nothing is known.
const UNCLEAR: f64 = 1.1;

impl Duel {
    /// Who wins.
    pub fn side(&self) -> Side {
        let Estimate { median, low, high } = self.ratio;
        match is_a_difference(&self.ratio) {
            true if median > 1.0 => Side::NonTemporal,
            true => Side::Temporal,
            false if high > UNCLEAR || low < 1.0 / UNCLEAR => Side::Unclear,
            false => Side::Neither,
        }
    }
}

/// A difference as a ratio: what the dearer one costs over what the cheaper one costs, which is the
/// better known of the two.
fn ratio(saved_ns: f64, nontemporal_ns: f64, temporal_ns: f64) -> f64 {
    match saved_ns {
        0.0.. => 1.0 + saved_ns / nontemporal_ns,
        _ => 1.0 / (1.0 - saved_ns / temporal_ns),
    }
}

/// A line of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakEven {
    /// What they have in common. Its share is the largest.
    pub line: Cell,
    /// By share, the smallest first; at least one.
    pub points: Vec<(Share, Duel)>,
    /// Where the side changes, if it changes once and away from the non-temporal one.
    pub until: Option<Crossing>,
}

/// A share of the result with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// The share.
    pub share: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// What a line amounts to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Finding {
    /// The same side at every share, or no difference at any.
    Always(Side),
    /// The side wins at some shares and makes no difference at the others, in no order.
    NeverWorse(Side),
    /// One side until a share, the other one, or none, from there on. The first may be none too.
    Until(Side, Crossing, Side),
    /// Temporal wins at a smaller share than non-temporal does.
    Mixed,
    /// Noise hides it at every share.
    Unclear,
}

impl BreakEven {
    /// What it amounts to.
    pub fn finding(&self) -> Finding {
        match (shape(&self.points), self.until) {
            (Shape::Falls(first, last), Some(crossing)) => Finding::Until(first, crossing, last),
            (Shape::Falls(side, _), None) | (Shape::Even(side), _) => Finding::Always(side),
            (Shape::Uneven(side), _) => Finding::NeverWorse(side),
            (Shape::Mixed, _) => Finding::Mixed,
            (Shape::Unclear, _) => Finding::Unclear,
        }
    }
}

/// In which order the sides win.
enum Shape {
    Even(Side),
    Uneven(Side),
    /// From a side to the other, or from or to none.
    Falls(Side, Side),
    Mixed,
    Unclear,
}

/// The points of which something is known.
fn clear(points: &[(Share, Duel)]) -> impl Iterator<Item = &(Share, Duel)> {
    points.iter().filter(|(_, duel)| duel.side() != Side::Unclear)
}

/// A share without a difference beside shares of both sides says nothing against either.
fn shape(points: &[(Share, Duel)]) -> Shape {
    let sides: Vec<Side> = clear(points).map(|(_, duel)| duel.side()).collect();
    if sides.is_empty() {
        return Shape::Unclear;
    }
    let first = |side| sides.iter().position(|other| *other == side);
    let last = |side| sides.iter().rposition(|other| *other == side);
    let ends = sides.len().saturating_sub(1);
    match (first(Side::NonTemporal).zip(last(Side::NonTemporal)), first(Side::Temporal)) {
        (None, None) => Shape::Even(Side::Neither),
        (Some((_, last)), Some(first)) if last < first => {
            Shape::Falls(Side::NonTemporal, Side::Temporal)
        }
        (Some(_), Some(_)) => Shape::Mixed,
        (Some((first, last)), None) => {
            let whole = sides[first..=last].iter().all(|side| *side == Side::NonTemporal);
            match (first, whole) {
                (0, true) if last == ends => Shape::Even(Side::NonTemporal),
                (0, true) => Shape::Falls(Side::NonTemporal, Side::Neither),
                _ => Shape::Uneven(Side::NonTemporal),
            }
        }
        (None, Some(first)) => {
            let whole = sides[first..].iter().all(|side| *side == Side::Temporal);
            match (first, whole) {
                (0, true) => Shape::Even(Side::Temporal),
                (_, true) => Shape::Falls(Side::Neither, Side::Temporal),
                _ => Shape::Uneven(Side::Temporal),
            }
        }
    }
}

/// Whether this contender stores around the cache by its row in the registry.
pub fn is_nontemporal(cell: &Cell, name: &str) -> bool {
    variant::find(cell.operation, name).is_ok_and(|row| row.store() == Store::NonTemporal)
}

/// The two sides of a cell, or `None` if one of them is missing or the samples are too few.
pub fn duel(measured: &Measured, seed: u64) -> Option<Duel> {
    let best = |nontemporal: bool| -> Option<&Outcome> {
        let whole = |outcome: &Outcome| outcome.times.whole.half(false).median();
        let side =
            measured.ok().filter(|o| is_nontemporal(&measured.cell, &o.variant) == nontemporal);
        let timed = side.filter_map(|outcome| Some((whole(outcome)?, outcome)));
        timed.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, outcome)| outcome)
    };
    let (nontemporal, temporal) = (best(true)?, best(false)?);
    let scored = |outcome: &Outcome| outcome.times.whole.half(true);
    let saved = scored(temporal).pair(&scored(nontemporal), |temporal, other| temporal - other);
    if saved.count() < SCORED_MIN {
        return None;
    }
    let Estimate { median, low, high } = saved.estimate(seed)?;
    let cost_ns = |outcome: &Outcome| outcome.times.cost_ns(measured.cell.victim.core);
    let (dear_ns, own_ns) = (cost_ns(temporal)?, cost_ns(nontemporal)?);
    let as_ratio = |saved_ns| ratio(saved_ns, own_ns, dear_ns);
    let mut ratio = Estimate { median: as_ratio(median), low: as_ratio(low), high: as_ratio(high) };
    // Nobody saves more than the other one costs. What looks so is noise, and as large the other way.
    if !(-own_ns..=dear_ns).contains(&median) {
        ratio.low = ratio.low.min(1.0 / ratio.high);
        ratio.high = ratio.high.max(1.0 / ratio.low);
    }
    let (nontemporal, temporal) = (nontemporal.variant.clone(), temporal.variant.clone());
    Some(Duel { nontemporal, temporal, ratio })
}

/// All lines of these cells, in the order in which their first cells come. A cell whose result is
/// not used begins every line that has all else in common with it.
pub fn break_even(cells: &[Measured], seed: u64) -> Vec<BreakEven> {
    let duels: Vec<(Cell, Duel)> =
        cells.iter().filter_map(|measured| Some((measured.cell, duel(measured, seed)?))).collect();
    let mut lines: Vec<Cell> = Vec::new();
    for line in duels.iter().filter(|(cell, _)| cell.used != Share::NONE).map(|(c, _)| line(c)) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    // A line of one point: cells of which no use was measured.
    for (cell, _) in duels.iter().filter(|(cell, _)| cell.used == Share::NONE) {
        if !lines.iter().any(|line| begins(cell, line)) {
            lines.push(line(cell));
        }
    }
    lines.iter().map(|line| of_line(line, &duels)).collect()
}

/// The cell without its share.
fn line(cell: &Cell) -> Cell {
    Cell { used: Share::ALL, ..*cell }
}

fn begins(unused: &Cell, line: &Cell) -> bool {
    let as_unused = Cell { used: Share::NONE, use_kind: UseKind::Read, ..*line };
    *unused == as_unused
}

fn of_line(line: &Cell, duels: &[(Cell, Duel)]) -> BreakEven {
    let of_line = |(cell, _): &&(Cell, Duel)| self::line(cell) == *line || begins(cell, line);
    let mut points: Vec<(Share, Duel)> =
        duels.iter().filter(of_line).map(|(cell, duel)| (cell.used, duel.clone())).collect();
    points.sort_by_key(|(share, _)| *share);
    points.dedup_by_key(|(share, _)| *share);
    let used = points.last().map_or(Share::ALL, |(share, _)| *share);
    let until = crossing(&points);
    BreakEven { line: Cell { used, ..*line }, points, until }
}

fn crossing(points: &[(Share, Duel)]) -> Option<Crossing> {
    // From a win to a loss they break even at 0; where one end is no difference, at the smallest
    // effect that would be one.
    let least = EFFECT_MIN.ln_1p();
    let level = match shape(points) {
        Shape::Falls(Side::NonTemporal, Side::Temporal) => 0.0,
        Shape::Falls(_, Side::Temporal) => -least,
        Shape::Falls(..) => least,
        _ => return None,
    };
    let at = |end: fn(&Estimate) -> f64| {
        let log = |(share, duel): &(Share, Duel)| (share.as_f64(), end(&duel.ratio).ln() - level);
        let logs: Vec<(f64, f64)> = clear(points).map(log).collect();
        falls_below_zero(&logs)
    };
    Some(Crossing { share: at(|r| r.median), low: at(|r| r.low), high: at(|r| r.high) })
}

/// Where a line through these points falls below zero first: at its start if it is below already,
/// at its end if it never is.
fn falls_below_zero(points: &[(f64, f64)]) -> f64 {
    let starts_below = points.first().is_some_and(|(_, y)| *y <= 0.0);
    if starts_below {
        return points[0].0;
    }
    let fall = points.windows(2).find(|pair| pair[1].1 <= 0.0);
    match fall {
        Some(pair) => {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            x0 + (x1 - x0) * y0 / (y0 - y1)
        }
        None => points.last().map_or(0.0, |(x, _)| *x),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::{Core, Status, Times, Victim, Walk};
    use super::*;
    use crate::case::{Page, Temperature};
    use crate::stats::Samples;
    use cachewise::variant::Operation;

    fn cell(share: f64) -> Cell {
        Cell {
            operation: Operation::Clear,
            size_bytes: 65536,
            source: Temperature::Cold,
            page: Page::Base,
            threads: 1,
            used: Share::new(share).unwrap(),
            use_kind: UseKind::Read,
            delay_bytes: 0,
            victim: Victim::NONE,
        }
    }

    fn nontemporal_name() -> &'static str {
        let rows = variant::all().iter();
        let mut rows = rows.filter(|v| v.operation() == Operation::Clear);
        rows.find(|v| v.store() == Store::NonTemporal).unwrap().name()
    }

    /// Three batches of an operation that takes so long, beside a bystander that takes as long as that
    /// without it, and each round so much longer.
    fn times(op_ns: f64, victim_ns: f64, noise_ns: &[f64]) -> Times {
        let samples = |ns: f64| Samples::new(vec![vec![ns; noise_ns.len()]; 3]);
        let whole = noise_ns.iter().map(|noise_ns| op_ns + victim_ns + noise_ns).collect();
        Times {
            op: samples(op_ns),
            victim_baseline: samples(victim_ns),
            delay_baseline: samples(0.0),
            use_baseline: samples(0.0),
            whole: Samples::new(vec![whole; 3]),
            ..Times::default()
        }
    }

    /// Whole times without noise.
    fn measured(cell: Cell, wholes: &[(&str, f64)]) -> Measured {
        let outcome = |&(name, ns): &(&str, f64)| {
            let times = times(ns, 0.0, &[0.0; 4]);
            Outcome { variant: name.to_owned(), status: Status::Ok, because: None, times }
        };
        Measured { cell, outcomes: wholes.iter().map(outcome).collect() }
    }

    fn line_of(wholes: &[(f64, f64, f64)]) -> Vec<Measured> {
        let cell_of = |&(share, libc, nt): &(f64, f64, f64)| {
            measured(cell(share), &[("libc", libc), (nontemporal_name(), nt)])
        };
        wholes.iter().map(cell_of).collect()
    }

    #[test]
    fn the_sides_break_even_where_the_line_crosses() {
        // Logs of the ratios: ln 2 and -ln 2, so half way.
        let lines = break_even(&line_of(&[(0.0, 200.0, 100.0), (1.0, 100.0, 200.0)]), 1);
        assert_eq!(lines.len(), 1);
        let Finding::Until(Side::NonTemporal, crossing, Side::Temporal) = lines[0].finding() else {
            panic!("{lines:?}");
        };
        assert!((crossing.share - 0.5).abs() < 1e-9);
        assert!((crossing.low, crossing.high) == (crossing.share, crossing.share));
    }

    #[test]
    fn always_is_always_and_an_effect_below_the_least_is_none() {
        let always = |wholes: &[(f64, f64, f64)]| break_even(&line_of(wholes), 1)[0].finding();
        let nontemporal = always(&[(0.0, 200.0, 100.0), (1.0, 110.0, 100.0)]);
        assert_eq!(nontemporal, Finding::Always(Side::NonTemporal));
        let temporal = always(&[(0.0, 100.0, 110.0), (0.25, 100.0, 120.0), (1.0, 100.0, 200.0)]);
        assert_eq!(temporal, Finding::Always(Side::Temporal));
        let neither = always(&[(0.0, 101.0, 100.0), (1.0, 100.0, 101.0)]);
        assert_eq!(neither, Finding::Always(Side::Neither));
        let mixed = always(&[(0.0, 100.0, 200.0), (1.0, 200.0, 100.0)]);
        assert_eq!(mixed, Finding::Mixed);
        let uneven = always(&[(0.0, 100.0, 200.0), (0.25, 100.0, 100.0), (1.0, 100.0, 200.0)]);
        assert_eq!(uneven, Finding::NeverWorse(Side::Temporal));
    }

    #[test]
    fn until_no_difference_is_where_the_least_effect_is_left() {
        let lines = break_even(&line_of(&[(0.0, 104.0, 100.0), (1.0, 100.0, 100.0)]), 1);
        let Finding::Until(Side::NonTemporal, crossing, Side::Neither) = lines[0].finding() else {
            panic!("{lines:?}");
        };
        assert!((crossing.share - (1.0 - 1.02_f64.ln() / 1.04_f64.ln())).abs() < 1e-9);
    }

    #[test]
    fn no_difference_beside_both_sides_says_nothing_against_either() {
        let wholes = [(0.0, 200.0, 100.0), (0.25, 100.0, 200.0), (1.0, 100.0, 100.0)];
        let line = &break_even(&line_of(&wholes), 1)[0];
        let Finding::Until(Side::NonTemporal, crossing, Side::Temporal) = line.finding() else {
            panic!("{line:?}");
        };
        assert!((crossing.share - 0.125).abs() < 1e-9);
    }

    #[test]
    fn what_is_not_used_begins_every_line_that_it_can() {
        let written = Cell { use_kind: UseKind::Write, delay_bytes: 32768, ..cell(1.0) };
        let victim = Victim { bytes: 4096, walk: Walk::Dependent, core: Core::Same, retouch: 1 };
        let beside = Cell { victim, ..cell(1.0) };
        let times = [("libc", 10.0), (nontemporal_name(), 20.0)];
        let idle = Cell { used: Share::NONE, use_kind: UseKind::Read, ..written };
        let cells = [cell(0.0), cell(1.0), written, beside, idle];
        let lines = break_even(&cells.map(|cell| measured(cell, &times)), 1);
        let points: Vec<usize> = lines.iter().map(|line| line.points.len()).collect();
        // The one with other traffic begins with the cell that has the same traffic.
        assert_eq!(points, [2, 2, 1]);
        assert_eq!(lines[1].points[0].0, Share::NONE);
        let without =
            break_even(&cells[..4].iter().map(|c| measured(*c, &times)).collect::<Vec<_>>(), 1);
        assert_eq!(without[1].points.len(), 1);
    }

    #[test]
    fn a_bystander_hides_no_difference_and_noise_is_not_called_none() {
        let cell = cell(0.0);
        let beside = |noise_ns: &[f64]| {
            let outcome = |(name, op_ns): (&str, f64)| Outcome {
                variant: name.to_owned(),
                status: Status::Ok,
                because: None,
                times: times(op_ns, 50_000.0, noise_ns),
            };
            let mut outcomes = [("libc", 500.0), (nontemporal_name(), 250.0)].map(outcome);
            // Not the same noise for both.
            for batch in [0, 2] {
                let mut batches = outcomes[0].times.whole.batches().to_vec();
                batches[batch].reverse();
                outcomes[0].times.whole = Samples::new(batches);
            }
            duel(&Measured { cell, outcomes: outcomes.into() }, 1).unwrap()
        };
        let quiet = beside(&[0.0; 4]);
        assert_eq!(quiet.side(), Side::NonTemporal);
        assert!((quiet.ratio.median - 2.0).abs() < 1e-9, "{quiet:?}");
        let loud = beside(&[0.0, 800.0, 100.0, 2000.0]);
        assert_eq!(loud.side(), Side::Unclear, "{loud:?}");
        // By chance all of one side's rounds were disturbed, by far more than it costs.
        let outcome = |(name, noise_ns): (&str, f64)| Outcome {
            variant: name.to_owned(),
            status: Status::Ok,
            because: None,
            times: times(500.0, 50_000.0, &[noise_ns; 4]),
        };
        let disturbed = |by: [f64; 2]| {
            let names = ["libc", nontemporal_name()];
            let outcomes = [0, 1].map(|side| outcome((names[side], by[side])));
            let mut measured = Measured { cell, outcomes: outcomes.into() };
            // The median of what it costs is right even so.
            for outcome in &mut measured.outcomes {
                outcome.times.victim_baseline =
                    outcome.times.whole.pair(&outcome.times.op, |w, o| w - o);
            }
            duel(&measured, 1).unwrap().side()
        };
        assert_eq!(disturbed([20_000.0, 0.0]), Side::Unclear);
        assert_eq!(disturbed([0.0, 20_000.0]), Side::Unclear);
        let line = break_even(&line_of(&[(0.0, 200.0, 100.0), (1.0, 100.0, 200.0)]), 1).remove(0);
        let only = |points: Vec<(Share, Duel)>| BreakEven { points, until: None, ..line.clone() };
        assert_eq!(only(vec![(Share::NONE, loud)]).finding(), Finding::Unclear);
    }

    #[test]
    fn a_side_that_is_missing_is_no_duel() {
        assert_eq!(duel(&measured(cell(0.0), &[("libc", 1.0)]), 1), None);
        let mut few = measured(cell(0.0), &[("libc", 1.0), (nontemporal_name(), 1.0)]);
        few.outcomes[0].times = times(1.0, 0.0, &[0.0; 2]);
        assert_eq!(duel(&few, 1), None);
    }

    #[test]
    fn a_side_sends_the_best_of_its_own() {
        let cell = cell(0.0);
        let all = [("libc", 30.0), ("portable", 20.0), (nontemporal_name(), 25.0)];
        let duel = duel(&measured(cell, &all), 1).unwrap();
        assert_eq!(
            (duel.temporal.as_str(), duel.nontemporal.as_str()),
            ("portable", nontemporal_name())
        );
        assert_eq!(duel.side(), Side::Temporal);
    }
}
