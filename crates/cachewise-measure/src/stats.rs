//! Medians, intervals, paired ratios.
//!
//! Times of copies are skewed to the right and come in clusters: all samples of a batch share one
//! placement of memory. So the figure is the median, and its interval comes from a bootstrap in two
//! levels: batches are drawn with replacement, then samples within each (Davison and Hinkley,
//! "Bootstrap Methods and their Application", 3.8). Few batches drawn from themselves vary too little;
//! so the interval is widened as Student's t is against the normal distribution.
//! Rejected: mean and standard deviation (one interrupt moves them), the least of all samples (it
//! answers "at best" and hides the placement).

use crate::rng::Rng;

/// Share of the resamples that an interval covers.
pub const COVERAGE: f64 = 0.95;
const RESAMPLES: usize = 500;

/// Times of one contestant in one case, by batch; within a batch by round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    batches: Vec<Vec<f64>>,
}

/// A figure and the interval that covers [`COVERAGE`] of its resamples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The median.
    pub median: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

impl Samples {
    /// Samples by batch and round.
    pub fn new(batches: Vec<Vec<f64>>) -> Self {
        Self { batches }
    }

    pub(crate) fn push_batch(&mut self, batch: Vec<f64>) {
        self.batches.push(batch);
    }

    /// The samples by batch and round.
    pub fn batches(&self) -> &[Vec<f64>] {
        &self.batches
    }

    /// How many samples there are.
    pub fn count(&self) -> usize {
        self.batches.iter().map(Vec::len).sum()
    }

    /// The median, or `None` without samples.
    pub fn median(&self) -> Option<f64> {
        median(&mut self.batches.concat())
    }

    /// The median and its interval, or `None` without samples.
    pub fn estimate(&self, seed: u64) -> Option<Estimate> {
        let estimate = bootstrap(seed, self.median()?, |rng| self.resampled_median(rng))?;
        Some(estimate.widened(few_batches(&[self.filled()])))
    }

    /// `self / other` of two runs that had no rounds in common: the ratio of their medians, each
    /// resampled by itself.
    pub fn ratio_unpaired(&self, other: &Self, seed: u64) -> Option<Estimate> {
        let estimate = bootstrap(seed, self.median()? / other.median()?, |rng| {
            Some(self.resampled_median(rng)? / other.resampled_median(rng)?)
        })?;
        Some(estimate.widened(few_batches(&[self.filled().min(other.filled())])))
    }

    /// How many batches are not empty.
    fn filled(&self) -> usize {
        self.batches.iter().filter(|batch| !batch.is_empty()).count()
    }

    fn resampled_median(&self, rng: &mut Rng) -> Option<f64> {
        let drawn = draw(self.batches.len(), rng);
        self.median_of(&drawn, rng)
    }

    /// The median of samples drawn within these batches; those that are empty say nothing.
    fn median_of(&self, drawn: &[usize], rng: &mut Rng) -> Option<f64> {
        let mut resampled = Vec::with_capacity(self.count());
        for batch in drawn.iter().filter_map(|&index| self.batches.get(index)) {
            resampled.extend((0..batch.len()).map(|_| batch[rng.below(batch.len())]));
        }
        median(&mut resampled)
    }

    /// `self / other`, round by round: what both met in the same round cancels out.
    pub fn ratio(&self, other: &Self) -> Self {
        self.pair(other, |a, b| a / b)
    }

    /// Pairs the samples of the same batch and round; those without a partner are left out.
    pub(crate) fn pair(&self, other: &Self, combine: impl Fn(f64, f64) -> f64) -> Self {
        let batches = self.batches.iter().zip(&other.batches);
        let pairs = |(ours, theirs): (&Vec<f64>, &Vec<f64>)| {
            ours.iter().zip(theirs).map(|(&a, &b)| combine(a, b)).collect()
        };
        Self { batches: batches.map(pairs).collect() }
    }

    /// Every other sample, so that a choice made on one half is scored on the other. Batches begin
    /// in turn with the first and the second half: neither is empty where batches are short.
    pub fn half(&self, second: bool) -> Self {
        let every_other = |(index, batch): (usize, &Vec<f64>)| {
            let skip = (index + usize::from(second)) % 2;
            batch.iter().skip(skip).step_by(2).copied().collect()
        };
        Self { batches: self.batches.iter().enumerate().map(every_other).collect() }
    }
}

/// The sum of the medians of several series with its interval. The batches of one ground are the same,
/// so what a batch did to one series it did to all of that ground: a batch is drawn for all of them.
/// Different grounds are separate measurements, and what they vary by is added as independent.
pub(crate) fn sum_of_medians(grounds: &[Vec<Samples>], seed: u64) -> Option<Estimate> {
    let of_ground = |series: &Vec<Samples>| {
        let batches = series.iter().map(|samples| samples.batches.len()).max()?;
        let medians: Option<Vec<f64>> = series.iter().map(Samples::median).collect();
        bootstrap(seed, medians?.iter().sum(), |rng| {
            let drawn = draw(batches, rng);
            series.iter().map(|samples| samples.median_of(&drawn, rng)).sum()
        })
    };
    let estimates: Vec<Estimate> = grounds.iter().map(of_ground).collect::<Option<_>>()?;
    let filled = |series: &Vec<Samples>| series.iter().map(Samples::filled).min().unwrap_or(0);
    let batches: Vec<usize> = grounds.iter().map(filled).collect();
    if estimates.is_empty() {
        return None;
    }
    let median = estimates.iter().map(|e| e.median).sum::<f64>();
    let spread = |end: fn(&Estimate) -> f64| {
        let squares = estimates.iter().map(|e| (end(e) - e.median).powi(2));
        squares.sum::<f64>().sqrt() * few_batches(&batches)
    };
    Some(Estimate { median, low: median - spread(|e| e.low), high: median + spread(|e| e.high) })
}

/// So many batches, with replacement.
fn draw(batches: usize, rng: &mut Rng) -> Vec<usize> {
    (0..batches).map(|_| rng.below(batches)).collect()
}

/// How many times farther than its resamples an interval has to reach, by the batches of each of the
/// separate measurements that it is made of: Student's t at [`COVERAGE`] against the normal
/// distribution's, with as many degrees of freedom as they have together, and the spread of a few
/// values about their own centre against that about the true one. A single batch says nothing of
/// other placements, and nothing can be made of that.
fn few_batches(batches: &[usize]) -> f64 {
    /// From one degree of freedom on.
    const STUDENT: [f64; 10] =
        [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    const NORMAL: f64 = 1.960;
    let all: usize = batches.iter().sum();
    let degrees = all.saturating_sub(batches.len());
    if degrees == 0 {
        return 1.0;
    }
    // Beyond the table by the first term of the expansion in their reciprocal.
    let beyond = NORMAL + 2.4 / degrees as f64;
    let student = STUDENT.get(degrees - 1).copied().unwrap_or(beyond);
    student / NORMAL * (all as f64 / degrees as f64).sqrt()
}

impl Estimate {
    /// The interval so many times as wide: in logarithms, so that a time or a ratio stays one, and as
    /// it is where differences are, which may be negative.
    pub(crate) fn widened(self, times: f64) -> Self {
        let Self { median, low, high } = self;
        if low > 0.0 {
            let end = |end: f64| median * (end / median).powf(times);
            Self { median, low: end(low), high: end(high) }
        } else {
            let end = |end: f64| median + (end - median) * times;
            Self { median, low: end(low), high: end(high) }
        }
    }
}

/// A figure with the interval of what it would have been on other draws.
fn bootstrap(seed: u64, median: f64, draw: impl Fn(&mut Rng) -> Option<f64>) -> Option<Estimate> {
    let mut rng = Rng::new(seed);
    let mut drawn: Vec<f64> = (0..RESAMPLES).filter_map(|_| draw(&mut rng)).collect();
    drawn.sort_by(f64::total_cmp);
    let beyond = (1.0 - COVERAGE) / 2.0;
    let low = quantile(&drawn, beyond)?.min(median);
    let high = quantile(&drawn, 1.0 - beyond)?.max(median);
    Some(Estimate { median, low, high })
}

/// The middle value, or the mean of the two middle ones. Reorders the values.
pub fn median(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().max_by(f64::total_cmp);
    match lower {
        Some(lower) if even => Some((lower + upper) / 2.0),
        _ => Some(upper),
    }
}

/// The nearest rank of sorted values.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((share * last as f64).round() as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(batches: &[&[f64]]) -> Samples {
        Samples::new(batches.iter().map(|b| b.to_vec()).collect())
    }

    #[test]
    fn median_of_none_odd_and_even() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [5.0]), Some(5.0));
        assert_eq!(median(&mut [9.0, 1.0, 4.0]), Some(4.0));
        assert_eq!(median(&mut [9.0, 1.0, 4.0, 2.0]), Some(3.0));
    }

    #[test]
    fn interval_of_a_constant_is_a_point() {
        let estimate = samples(&[&[3.0; 4], &[3.0; 4]]).estimate(1);
        assert_eq!(estimate, Some(Estimate { median: 3.0, low: 3.0, high: 3.0 }));
    }

    #[test]
    fn interval_surrounds_the_median_and_repeats_with_its_seed() {
        let mut rng = Rng::new(11);
        let noise = (0..6).map(|_| (0..8).map(|_| 100.0 + rng.below(20) as f64).collect());
        let samples = Samples::new(noise.collect());
        let estimate = samples.estimate(5).unwrap();
        assert!(estimate.low < estimate.median && estimate.median < estimate.high);
        assert_eq!(samples.estimate(5), Some(estimate));
    }

    /// Samples within a batch agree and batches do not: an interval that pooled them all would be
    /// far too narrow.
    #[test]
    fn interval_is_as_wide_as_the_batches_differ() {
        let estimate = samples(&[&[10.0; 20], &[20.0; 20], &[11.0; 20]]).estimate(1).unwrap();
        assert!(estimate.low < 10.0 && estimate.high > 20.0, "{estimate:?}");
    }

    /// The interval covers the true median about as often as it says, whether the samples differ
    /// within the batches or between them, and also of times, which are positive.
    #[test]
    fn coverage_is_near_what_is_claimed() {
        let mut rng = Rng::new(42);
        for (batches, rounds, between) in
            [(8, 8, 0), (6, 2, 0), (6, 2, 300), (3, 4, 0), (3, 4, 300)]
        {
            let runs = 300;
            let covered = (0..runs).filter(|&seed| {
                let mut bell = |width: usize| {
                    (0..4).map(|_| rng.below(width + 1_usize) as f64).sum::<f64>() / 4.0
                };
                let batch = |_| {
                    let own = bell(2 * between) - between as f64;
                    (0..rounds).map(|_| 1000.0 + own + bell(1000) - 500.0).collect()
                };
                let estimate =
                    Samples::new((0..batches).map(batch).collect()).estimate(seed).unwrap();
                (estimate.low..=estimate.high).contains(&1000.0)
            });
            let share = covered.count() as f64 / runs as f64;
            assert!(share >= 0.93, "{batches} batches of {rounds}, {between} between: {share}");
        }
    }

    /// What a batch did to both does not cancel out by there being two; what a round did does.
    #[test]
    fn a_sum_of_medians_draws_batches_for_all_of_its_series() {
        let mut rng = Rng::new(5);
        let common: Vec<f64> = (0..6).map(|_| rng.below(100) as f64).collect();
        let series = |batches: &[f64]| {
            Samples::new(batches.iter().map(|&batch| vec![100.0 + batch; 5]).collect())
        };
        let one = series(&common).estimate(1).unwrap();
        let both = sum_of_medians(&[vec![series(&common), series(&common)]], 1).unwrap();
        assert!((both.median - 2.0 * one.median).abs() < 1e-9);
        assert!((both.high - both.low) > 1.9 * (one.high - one.low), "{both:?} {one:?}");
        // Of two grounds they would have been independent.
        let apart = [vec![series(&common)], vec![series(&common)]];
        let apart = sum_of_medians(&apart, 1).unwrap();
        assert!((apart.high - apart.low) < 1.5 * (one.high - one.low), "{apart:?} {one:?}");
        assert_eq!(sum_of_medians(&[], 1), None);
        assert_eq!(sum_of_medians(&[vec![series(&common), samples(&[])]], 1), None);
    }

    #[test]
    fn a_widened_interval_of_a_time_is_positive_and_of_a_difference_straight() {
        let time = Estimate { median: 10.0, low: 5.0, high: 20.0 }.widened(2.0);
        assert!((time.low - 2.5).abs() < 1e-9 && (time.high - 40.0).abs() < 1e-9, "{time:?}");
        let difference = Estimate { median: 1.0, low: -1.0, high: 2.0 }.widened(2.0);
        assert_eq!(difference, Estimate { median: 1.0, low: -3.0, high: 3.0 });
        assert!(few_batches(&[3]) > few_batches(&[6]) && few_batches(&[6]) > few_batches(&[20]));
        assert!(few_batches(&[1000]) < 1.01 && few_batches(&[6, 6, 6]) < few_batches(&[6]));
    }

    #[test]
    fn ratio_cancels_what_a_round_did_to_both() {
        let ours = samples(&[&[1.0, 10.0], &[3.0, 7.0]]);
        let theirs = samples(&[&[2.0, 20.0], &[6.0, 14.0]]);
        let ratio = theirs.ratio(&ours).estimate(1).unwrap();
        assert_eq!(ratio, Estimate { median: 2.0, low: 2.0, high: 2.0 });
    }

    #[test]
    fn ratio_leaves_out_samples_without_a_partner() {
        let ratio = samples(&[&[2.0, 4.0, 6.0], &[8.0]]).ratio(&samples(&[&[1.0, 2.0]]));
        assert_eq!(ratio, samples(&[&[2.0, 2.0]]));
    }

    #[test]
    fn unpaired_ratio_is_of_medians_and_needs_no_common_rounds() {
        let ours = samples(&[&[2.0, 4.0, 6.0], &[4.0]]);
        let theirs = samples(&[&[2.0; 9]]);
        let ratio = ours.ratio_unpaired(&theirs, 1).unwrap();
        assert_eq!(ratio.median, 2.0);
        assert!((1.0..2.0).contains(&ratio.low) && (2.0..=3.0).contains(&ratio.high), "{ratio:?}");
        assert_eq!(ours.ratio_unpaired(&samples(&[&[]]), 1), None);
        assert_eq!(samples(&[]).ratio_unpaired(&theirs, 1), None);
    }

    #[test]
    fn halves_are_disjoint_and_complete() {
        let all = samples(&[&[1.0, 2.0, 3.0], &[4.0]]);
        assert_eq!(all.half(false), samples(&[&[1.0, 3.0], &[]]));
        assert_eq!(all.half(true), samples(&[&[2.0], &[4.0]]));
        assert_eq!(samples(&[&[], &[]]).estimate(1), None);
    }
}
