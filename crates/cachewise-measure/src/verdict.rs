//! Which implementation wins a slot, from what size, and whether that is more than noise.
//!
//! Given are the times of all contestants at several sizes. For each variant that the slot accepts,
//! and each size, the advantage of serving everything from that size on is the sum of the
//! logarithms of its ratios to libc; the largest sum wins. That choice sees one half of the samples
//! only. The ratio reported comes from the other half, so a choice made on luck is not rewarded
//! with the same luck (case 14, seeds row F3).

use crate::contestant::LIBC;
use crate::stats::{Estimate, Samples};
use cachewise::switch::Slot;
use cachewise::variant;

/// A difference below this is none, however sure.
pub const EFFECT_MIN: f64 = 0.02;

/// Fewer scored samples than this have an interval that is narrow by chance.
pub(crate) const SCORED_MIN: usize = 5;

/// One size's times.
#[derive(Clone, Debug)]
pub struct Point {
    /// The size.
    pub size_bytes: usize,
    /// By contestant.
    pub times: Vec<(String, Samples)>,
}

/// Who serves a slot best.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The slot.
    pub slot: Slot,
    /// The smallest measured size from which on the winner wins.
    pub from_bytes: usize,
    /// The winner: a variant, or `libc`.
    pub winner: String,
    /// Whom it is compared with: `libc`, or the best variant if libc wins.
    pub against: String,
    /// How many times faster the winner is, over all sizes from there on (geometric mean).
    pub ratio: Estimate,
}

impl Verdict {
    /// Whether the interval is clear of 1 and the effect worth a word.
    pub fn is_a_difference(&self) -> bool {
        is_a_difference(&self.ratio)
    }
}

/// Whether a ratio's interval is clear of 1, and the ratio itself by [`EFFECT_MIN`].
pub fn is_a_difference(ratio: &Estimate) -> bool {
    (ratio.low > 1.0 || ratio.high < 1.0) && ratio.median.ln().abs() >= EFFECT_MIN.ln_1p()
}

/// The verdict for a slot, or `None` if libc or every variant is missing from the times, or they
/// are too few to score.
pub fn decide(slot: Slot, points: &[Point], seed: u64) -> Option<Verdict> {
    let candidates: Vec<&str> = variant::all()
        .iter()
        .filter(|v| slot.accepts(v))
        .map(|v| v.name())
        .filter(|name| points.iter().all(|point| point.of(name).is_some()))
        .collect();
    decide_among(slot, &candidates, points, seed)
}

/// A variant serving all sizes from one on.
#[derive(Clone, Copy)]
struct Choice<'a> {
    name: &'a str,
    from: usize,
    advantage: f64,
}

fn decide_among(slot: Slot, candidates: &[&str], points: &[Point], seed: u64) -> Option<Verdict> {
    let training = |name| -> Option<Vec<f64>> {
        let log = |point: &Point| {
            let ratio = point.of(LIBC)?.half(false).ratio(&point.of(name)?.half(false));
            Some(ratio.estimate(seed)?.median.ln())
        };
        points.iter().map(log).collect()
    };
    let mut choices = Vec::new();
    for &name in candidates {
        let logs = training(name)?;
        let mut advantage = 0.0;
        for from in (0..points.len()).rev() {
            advantage += logs[from];
            choices.push(Choice { name, from, advantage });
        }
    }
    let best = best(choices.iter())?;
    let (winner, from, against) = if best.advantage > 0.0 {
        (best.name, best.from, LIBC)
    } else {
        // Nothing beats libc anywhere: it wins everywhere, over whoever comes nearest.
        (LIBC, 0, self::best(choices.iter().filter(|c| c.from == 0))?.name)
    };
    let scored =
        |point: &Point| Some(point.of(against)?.half(true).ratio(&point.of(winner)?.half(true)));
    let ratios: Vec<Samples> = points[from..].iter().map(scored).collect::<Option<_>>()?;
    if ratios.iter().any(|ratio| ratio.count() < SCORED_MIN) {
        return None;
    }
    let ratio = geometric_mean(&ratios, seed)?;
    let from_bytes = points[from].size_bytes;
    let (winner, against) = (winner.to_owned(), against.to_owned());
    Some(Verdict { slot, from_bytes, winner, against, ratio })
}

fn best<'a>(choices: impl Iterator<Item = &'a Choice<'a>>) -> Option<&'a Choice<'a>> {
    choices.max_by(|a, b| a.advantage.total_cmp(&b.advantage))
}

/// Sizes are separate measurements, so their intervals are combined as independent ones: by the
/// root of the sum of squares of the distances, in logarithms.
pub(crate) fn geometric_mean(ratios: &[Samples], seed: u64) -> Option<Estimate> {
    let estimates: Vec<Estimate> =
        ratios.iter().map(|ratio| ratio.estimate(seed)).collect::<Option<_>>()?;
    let count = estimates.len() as f64;
    let mean = estimates.iter().map(|e| e.median.ln()).sum::<f64>() / count;
    let spread = |end: fn(&Estimate) -> f64| {
        let squares = estimates.iter().map(|e| (end(e) / e.median).ln().powi(2));
        squares.sum::<f64>().sqrt() / count
    };
    Some(Estimate {
        median: mean.exp(),
        low: (mean - spread(|e| e.low)).exp(),
        high: (mean + spread(|e| e.high)).exp(),
    })
}

impl Point {
    fn of(&self, name: &str) -> Option<&Samples> {
        self.times.iter().find(|(known, _)| known == name).map(|(_, samples)| samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Times around the given means, each at most `noise` (a share) off.
    fn point(size_bytes: usize, noise: f64, means: &[(&str, f64)]) -> Point {
        let mut rng = Rng::new(size_bytes as u64);
        let mut near = |mean: f64| {
            let mut sample = || mean * (1.0 + noise * (rng.below(2001) as f64 / 1000.0 - 1.0));
            Samples::new((0..6).map(|_| (0..6).map(|_| sample()).collect()).collect())
        };
        let times = means.iter().map(|&(name, mean)| (name.to_owned(), near(mean))).collect();
        Point { size_bytes, times }
    }

    #[test]
    fn a_winner_wins_from_the_size_where_it_begins_to() {
        let points = [
            point(64, 0.01, &[("libc", 10.0), ("a", 20.0), ("b", 11.0)]),
            point(4096, 0.01, &[("libc", 100.0), ("a", 50.0), ("b", 90.0)]),
            point(65536, 0.01, &[("libc", 1000.0), ("a", 500.0), ("b", 900.0)]),
        ];
        let verdict = decide_among(Slot::CopyNontemporal, &["a", "b"], &points, 1).unwrap();
        assert_eq!((verdict.winner.as_str(), verdict.from_bytes), ("a", 4096));
        assert!((verdict.ratio.median - 2.0).abs() < 0.05, "{verdict:?}");
        assert!(verdict.is_a_difference());
    }

    #[test]
    fn libc_wins_where_nothing_beats_it() {
        let points = [point(64, 0.01, &[("libc", 10.0), ("a", 20.0), ("b", 15.0)])];
        let verdict = decide_among(Slot::Copy, &["a", "b"], &points, 1).unwrap();
        assert_eq!((verdict.winner.as_str(), verdict.against.as_str()), ("libc", "b"));
        assert!((verdict.ratio.median - 1.5).abs() < 0.05);
    }

    #[test]
    fn noise_is_no_difference() {
        // The same mean thrice: whoever was chosen on one half is found out on the other.
        let names = [("libc", 100.0), ("a", 100.0), ("b", 100.0)];
        let points = [point(64, 0.2, &names), point(4096, 0.2, &names)];
        let verdict = decide_among(Slot::Copy, &["a", "b"], &points, 1).unwrap();
        assert!(!verdict.is_a_difference(), "{verdict:?}");
    }

    #[test]
    fn a_sure_but_tiny_effect_is_no_difference() {
        let points = [point(64, 0.0, &[("libc", 101.0), ("a", 100.0)])];
        let verdict = decide_among(Slot::Copy, &["a"], &points, 1).unwrap();
        assert!(verdict.ratio.low > 1.0 && !verdict.is_a_difference());
    }

    #[test]
    fn without_times_there_is_no_verdict() {
        assert_eq!(decide_among(Slot::Copy, &[], &[], 1), None);
        assert_eq!(decide_among(Slot::Copy, &["a"], &[point(64, 0.0, &[("a", 1.0)])], 1), None);
        let few = |ns| Samples::new(vec![vec![ns]; 8]);
        let times = vec![("libc".into(), few(9.0)), ("a".into(), few(3.0))];
        let points = [Point { size_bytes: 64, times }];
        assert_eq!(decide_among(Slot::Copy, &["a"], &points, 1), None);
    }

    #[test]
    fn candidates_are_what_the_slot_accepts() {
        let names: Vec<(&str, f64)> =
            variant::all().iter().map(|v| (v.name(), 1.0)).chain([("libc", 10.0)]).collect();
        let points = [point(64, 0.0, &names)];
        for slot in Slot::ALL {
            let verdict = decide(slot, &points, 1).unwrap();
            let row = variant::find(slot.operation(), &verdict.winner).unwrap();
            assert!(slot.accepts(row), "{verdict:?}");
        }
    }
}
