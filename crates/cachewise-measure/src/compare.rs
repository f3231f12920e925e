//! One case in two runs: is the second one faster or slower, by more than noise.
//!
//! The runs shared no rounds, so nothing cancels out: the interval is that of a ratio of two
//! medians, each resampled by itself. It knows what varied within each run, not what changed between
//! the two (another kernel, a warmer room, other guests on the host). Where a result was stored
//! without its samples, the ends of the two intervals are divided crosswise, which is wider than
//! need be, never narrower.
//!
//! Of a hundred equal cases, each judged at 95 %, five would change by chance, and a gate would
//! hardly ever be open. So where many are judged, their intervals are [widened](Comparison::among)
//! until all of them together hold at 95 % (Bonferroni's correction). Rejected: a limit on the share
//! of false alarms (Benjamini and Hochberg), which has no interval to show for a case.

use crate::stats::{COVERAGE, Estimate, Samples};
use crate::verdict::{SCORED_MIN, is_a_difference};

/// One side: the times of a case in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    /// The median that was stored.
    pub median_ns: f64,
    /// Its interval, if that was stored.
    pub interval_ns: Option<(f64, f64)>,
    /// The samples, if they were stored.
    pub samples: Samples,
}

/// What an interval was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The samples of both sides.
    Samples,
    /// The intervals of both sides.
    Intervals,
    /// Nothing: a side has its median alone, or too few samples to tell chance from change.
    Nothing,
}

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The second run is faster.
    Better,
    /// The second run is slower.
    Worse,
    /// Neither is sure, or it is too little to matter.
    None,
}

/// The outcome for one case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// How many times faster the second run is: the first one's time over the second one's.
    pub ratio: f64,
    /// The interval of the ratio.
    pub interval: Option<(f64, f64)>,
    /// What it was made from.
    pub basis: Basis,
}

impl Comparison {
    /// Compares two runs of a case.
    pub fn new(first: &Timed, second: &Timed, seed: u64) -> Self {
        let (a, b) = (&first.samples, &second.samples);
        if let Some(estimate) = a.ratio_unpaired(b, seed) {
            let Estimate { median: ratio, low, high } = estimate;
            return if a.count().min(b.count()) < SCORED_MIN {
                Self { ratio, interval: None, basis: Basis::Nothing }
            } else {
                Self { ratio, interval: Some((low, high)), basis: Basis::Samples }
            };
        }
        let ratio = first.median_ns / second.median_ns;
        match (first.interval_ns, second.interval_ns) {
            (Some((low_a, high_a)), Some((low_b, high_b))) => {
                let interval = Some((low_a / high_b, high_a / low_b));
                Self { ratio, interval, basis: Basis::Intervals }
            }
            _ => Self { ratio, interval: None, basis: Basis::Nothing },
        }
    }

    /// The same as one of so many that are judged: the chance that any of their intervals misses is
    /// that of a single one alone.
    pub fn among(self, judged: usize) -> Self {
        let beyond = (1.0 - COVERAGE) / 2.0;
        let times = normal_quantile(beyond / judged.max(1) as f64) / normal_quantile(beyond);
        let widened = |(low, high)| {
            let Estimate { low, high, .. } =
                Estimate { median: self.ratio, low, high }.widened(times);
            (low, high)
        };
        Self { interval: self.interval.map(widened), ..self }
    }

    /// What changed, or `None` without an interval: a lone figure decides nothing.
    pub fn change(&self) -> Option<Change> {
        let (low, high) = self.interval?;
        Some(match is_a_difference(&Estimate { median: self.ratio, low, high }) {
            false => Change::None,
            true if self.ratio > 1.0 => Change::Better,
            true => Change::Worse,
        })
    }

    /// Whether the second run takes longer by more than this share, with the whole interval.
    pub fn is_worse_by(&self, share: f64) -> bool {
        self.change() == Some(Change::Worse)
            && self.interval.is_some_and(|(_, high)| high < 1.0 / (1.0 + share))
    }
}

/// What a value of the normal distribution exceeds with this probability, which is at most a half:
/// Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.2.23, off by less than 4.5e-4.
fn normal_quantile(beyond: f64) -> f64 {
    let t = (-2.0 * beyond.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - above / below
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Six batches of six samples, spread by so many percent to either side.
    fn sampled(median_ns: f64, percent: f64) -> Timed {
        let sample =
            |index: usize| median_ns * (1.0 + percent / 100.0 * (index as f64 / 2.5 - 1.0));
        let batch: Vec<f64> = (0..6).map(sample).collect();
        Timed { median_ns, interval_ns: None, samples: Samples::new(vec![batch; 6]) }
    }

    fn stored(median_ns: f64, interval_ns: Option<(f64, f64)>) -> Timed {
        Timed { median_ns, interval_ns, samples: Samples::default() }
    }

    #[test]
    fn half_the_time_is_twice_as_fast() {
        let comparison = Comparison::new(&sampled(200.0, 1.0), &sampled(100.0, 1.0), 1);
        assert!((comparison.ratio - 2.0).abs() < 1e-9);
        assert_eq!((comparison.basis, comparison.change()), (Basis::Samples, Some(Change::Better)));
    }

    #[test]
    fn noise_and_tiny_effects_are_no_difference() {
        for (first, second) in [(100.0, 103.0), (103.0, 100.0)] {
            let noisy = Comparison::new(&sampled(first, 20.0), &sampled(second, 20.0), 1);
            assert_eq!(noisy.change(), Some(Change::None), "{noisy:?}");
        }
        let tiny = Comparison::new(&sampled(100.0, 0.0), &sampled(101.0, 0.0), 1);
        assert!(tiny.interval.unwrap().1 < 1.0);
        assert_eq!(tiny.change(), Some(Change::None));
    }

    #[test]
    fn worse_by_more_than_asked_needs_the_whole_interval() {
        let sure = Comparison::new(&sampled(100.0, 0.1), &sampled(110.0, 0.1), 1);
        assert!(sure.is_worse_by(0.03) && !sure.is_worse_by(0.12));
        let unsure = Comparison::new(&sampled(100.0, 9.0), &sampled(110.0, 9.0), 1);
        assert_eq!(unsure.change(), Some(Change::Worse), "{unsure:?}");
        assert!(!unsure.is_worse_by(0.095), "{unsure:?}");
        let better = Comparison::new(&sampled(110.0, 0.1), &sampled(100.0, 0.1), 1);
        assert!(!better.is_worse_by(0.0));
    }

    #[test]
    fn intervals_are_divided_crosswise() {
        let comparison =
            Comparison::new(&stored(10.0, Some((8.0, 12.0))), &stored(5.0, Some((4.0, 6.0))), 1);
        assert_eq!((comparison.ratio, comparison.basis), (2.0, Basis::Intervals));
        assert_eq!(comparison.interval, Some((8.0 / 6.0, 3.0)));
    }

    #[test]
    fn a_lone_median_and_a_handful_of_samples_decide_nothing() {
        let lone = Comparison::new(&stored(10.0, None), &stored(5.0, Some((4.0, 6.0))), 1);
        let few = |ns| Timed { samples: Samples::new(vec![vec![ns]; 4]), ..stored(ns, None) };
        for comparison in [lone, Comparison::new(&few(10.0), &few(5.0), 1)] {
            assert_eq!((comparison.ratio, comparison.change()), (2.0, None));
            assert!(!comparison.is_worse_by(0.0));
        }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (beyond, quantile) in [
            (0.5, 0.0),
            (0.1, 1.281_55),
            (0.025, 1.959_96),
            (0.005, 2.575_83),
            (0.0005, 3.290_53),
            (1e-6, 4.753_42),
        ] {
            assert!((normal_quantile(beyond) - quantile).abs() < 4.5e-4, "{beyond}");
        }
    }

    #[test]
    fn one_alone_stays_as_it_is_and_one_of_many_reaches_farther() {
        let alone = Comparison::new(&sampled(100.0, 9.0), &sampled(110.0, 9.0), 1);
        let (low, high) = alone.interval.unwrap();
        let (same_low, same_high) = alone.among(1).interval.unwrap();
        assert!((same_low - low).abs() < 1e-12 && (same_high - high).abs() < 1e-12);
        let (wide_low, wide_high) = alone.among(100).interval.unwrap();
        assert!(0.0 < wide_low && wide_low < low && high < wide_high, "{alone:?}");
        let lone = Comparison { interval: None, ..alone };
        assert_eq!(lone.among(100), lone);
    }

    /// Two runs of the same 134 cases, with noise within the batches and between them: hardly a
    /// family has a case that changed, though without the correction most have.
    #[test]
    fn of_many_equal_cases_none_changes() {
        const CASES: usize = 134;
        let mut rng = Rng::new(7);
        let mut bell = |width: f64| {
            let sum: f64 = (0..6).map(|_| rng.below(1001) as f64 / 1000.0 - 0.5).sum();
            sum * 2.0_f64.sqrt() * width
        };
        for (batches, rounds) in [(12, 3), (6, 5), (3, 10)] {
            let mut timed = || {
                let batch = |_| {
                    let placement = bell(8.0);
                    (0..rounds).map(|_| 100.0 + placement + bell(4.0)).collect()
                };
                let samples = Samples::new((0..batches).map(batch).collect());
                Timed { median_ns: 100.0, interval_ns: None, samples }
            };
            let mut families = |among: usize| {
                let changed = (0..10).map(|seed| {
                    let changed = (0..CASES)
                        .map(|_| Comparison::new(&timed(), &timed(), seed).among(among).change());
                    changed.filter(|change| *change != Some(Change::None)).count()
                });
                changed.collect::<Vec<usize>>()
            };
            let (alone, corrected) = (families(1), families(CASES));
            assert!(corrected.iter().filter(|&&changed| changed > 0).count() <= 1, "{corrected:?}");
            assert!(alone.iter().sum::<usize>() > 5, "{alone:?}");
        }
    }
}
