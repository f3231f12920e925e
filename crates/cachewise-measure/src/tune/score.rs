//! How much one rule costs more than another, over cells: with an interval, for decisions; and
//! against the best in each cell, for the regret.
//!
//! All of it is relative to the *operation-related* time of the cell's best contender: the whole
//! less what the bystander, the delay and the use cost by themselves. Relative to the whole, a big
//! enough bystander would make any policy look good.
//!
//! Cells are not measured equally well: next to a bystander of 10 µs, an operation of 100 ns
//! drowns in the bystander's noise. So a cell whose noise is a quarter of the operation-related
//! time or more counts less, by the inverse square, and the regret leaves it out. Noise is a cell's,
//! not a contender's, so no rule gains by it.
//!
//! A choice is made on one half of the samples and scored on the other, so that luck which made a
//! contender look good does not also make it score well (case 14).

use crate::map::{Cell, Measured, Soil};
use crate::stats::{self, Estimate, Samples};
use crate::verdict::{EFFECT_MIN, SCORED_MIN};

/// Which half of a cell's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Choosing,
    Scoring,
}

impl Half {
    fn of(self, samples: &Samples) -> Samples {
        samples.half(self == Self::Scoring)
    }
}

/// The whole time of a contender in a cell, by the median of a half.
fn whole_ns(cell: &Measured, variant: &str, half: Half) -> Option<f64> {
    half.of(&cell.of(variant)?.times.whole).median()
}

/// The contender whose whole is the shortest on the choosing half.
fn best(cell: &Measured) -> Option<&str> {
    best_but(cell, None)
}

/// The best of all but one.
fn best_but<'a>(cell: &'a Measured, but: Option<&str>) -> Option<&'a str> {
    let others = cell.ok().filter(|outcome| Some(outcome.variant.as_str()) != but);
    let timed =
        others.filter_map(|o| Some((&o.variant, whole_ns(cell, &o.variant, Half::Choosing)?)));
    timed.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(variant, _)| variant.as_str())
}

/// What a cell's differences are relative to.
fn scale_ns(cell: &Measured) -> Option<f64> {
    cell.of(best(cell)?)?.times.cost_ns(cell.cell.victim.core)
}

/// Half of the interval of a difference that no rule decides, relative to the scale: between the two
/// best contenders. It is paired, as all differences are, so that what drifts for both is no noise.
fn noise(cell: &Measured) -> Option<f64> {
    let best = best(cell)?;
    let next = &cell.of(best_but(cell, Some(best))?)?.times.whole;
    let difference = cell.of(best)?.times.whole.pair(next, |best, next| best - next);
    let difference = difference.estimate(SEED)?;
    Some((difference.high - difference.low) / 2.0 / scale_ns(cell)?)
}

/// Any will do: the noise is no figure that is shown.
const SEED: u64 = 0;

/// Below this cells count alike, since a decision is about all of them and not about the one that
/// was measured best; from this on a cell counts less, and says nothing of a rule's regret.
const NOISE_MAX: f64 = 0.25;

/// How much a cell counts.
fn weight(cell: &Measured) -> Option<f64> {
    Some(noise(cell)?.max(NOISE_MAX).powi(-2))
}

/// The weights of cells, which don't depend on the rule.
pub(super) fn weights(cells: &[&Measured]) -> Vec<f64> {
    cells.iter().map(|cell| weight(cell).unwrap_or(0.0)).collect()
}

/// The mean, over the cells, of how much longer `variant_of` takes than the best, on the choosing
/// half: what a fit makes small. `None` if a cell lacks the variant.
pub(super) fn loss<'a>(
    cells: &[&Measured],
    weights: &[f64],
    variant_of: impl Fn(&Cell) -> &'a str,
) -> Option<f64> {
    let mut sum = 0.0;
    for (cell, weight) in cells.iter().zip(weights) {
        let ours = whole_ns(cell, variant_of(&cell.cell), Half::Choosing)?;
        let least = whole_ns(cell, best(cell)?, Half::Choosing)?;
        sum += weight * (ours - least) / scale_ns(cell)?;
    }
    let total: f64 = weights.iter().sum();
    (total > 0.0).then(|| sum / total)
}

/// The mean, over the cells in which they differ, of what `to` saves of `from`'s time, on the
/// scoring half. `None` where they never differ, or where there are too few samples to say.
///
/// Cells on the same ground were measured in the same memory, so their batches are resampled together;
/// those of different grounds are separate measurements, and their intervals are combined as
/// independent ones.
pub(super) fn saving<'a>(
    cells: &[&Measured],
    weights: &[f64],
    from: impl Fn(&Cell) -> &'a str,
    to: impl Fn(&Cell) -> &'a str,
    seed: u64,
) -> Option<Estimate> {
    let (mut grounds, mut total): (Vec<(Soil, Vec<Samples>)>, f64) = (Vec::new(), 0.0);
    for (cell, &weight) in cells.iter().zip(weights) {
        let (from, to) = (from(&cell.cell), to(&cell.cell));
        if from == to || weight <= 0.0 {
            continue;
        }
        let scale = scale_ns(cell)?;
        let whole = |variant| Some(Half::Scoring.of(&cell.of(variant)?.times.whole));
        let saved = whole(from)?.pair(&whole(to)?, |from, to| (from - to) / scale * weight);
        if saved.count() < SCORED_MIN {
            return None;
        }
        total += weight;
        match grounds.iter_mut().find(|(soil, _)| *soil == cell.cell.soil()) {
            Some((_, all)) => all.push(saved),
            None => grounds.push((cell.cell.soil(), vec![saved])),
        }
    }
    if total <= 0.0 {
        return None;
    }
    let grounds: Vec<Vec<Samples>> = grounds.into_iter().map(|(_, saved)| saved).collect();
    let Estimate { median, low, high } = stats::sum_of_medians(&grounds, seed)?;
    Some(Estimate { median: median / total, low: low / total, high: high / total })
}

/// Whether a saving is one: its interval clear of nothing, and worth a word.
pub(super) fn is_a_gain(saving: &Estimate) -> bool {
    saving.low > 0.0 && saving.median >= EFFECT_MIN
}

/// Whether it is a difference in either direction.
pub(super) fn is_a_difference(saving: &Estimate) -> bool {
    (saving.low > 0.0 || saving.high < 0.0) && saving.median.abs() >= EFFECT_MIN
}

/// What a policy costs over the best in each cell, as a share of the operation-related time.
#[derive(Clone, Debug, PartialEq)]
pub struct Regret {
    /// Cells it was scored on.
    pub cells: usize,
    /// Half of the cells cost no more.
    pub median: f64,
    /// 19 of 20 cells cost no more.
    pub p95: f64,
    /// The worst cell.
    pub worst: f64,
    /// Which one that is.
    pub worst_cell: Cell,
}

/// Whether a cell is measured well enough to say something of a rule's regret.
pub(super) fn is_clear(cell: &Measured) -> bool {
    noise(cell).is_some_and(|noise| noise < NOISE_MAX)
}

/// The regret over all clear cells in which the rule's contender was measured; `None` if that is
/// none.
pub(super) fn regret(cells: &[(&Measured, &str)]) -> Option<Regret> {
    let mut excesses: Vec<(f64, Cell)> = cells
        .iter()
        .filter(|(cell, _)| is_clear(cell))
        .filter_map(|(cell, variant)| Some((excess(cell, variant)?, cell.cell)))
        .collect();
    excesses.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let mut values: Vec<f64> = excesses.iter().map(|(excess, _)| *excess).collect();
    let (worst, worst_cell) = *excesses.last()?;
    Some(Regret {
        cells: values.len(),
        p95: stats::quantile(&values, 0.95)?,
        median: stats::median(&mut values)?,
        worst,
        worst_cell,
    })
}

/// How much longer it takes than the contender that was best on the other half. If that one was
/// best by luck only, it is none.
fn excess(cell: &Measured, variant: &str) -> Option<f64> {
    let best = best(cell)?;
    if best == variant {
        return Some(0.0);
    }
    let whole = |variant| Some(Half::Scoring.of(&cell.of(variant)?.times.whole));
    let excess = whole(variant)?.pair(&whole(best)?, |ours, best| ours - best).median()?;
    Some((excess / scale_ns(cell)?).max(0.0))
}
