//! The one place that reads the clock.
//!
//! `Instant` is the monotonic clock, on Linux a read of the time-stamp counter scaled in the vDSO:
//! 20 to 40 ns. Rejected: `rdtsc` itself, which saves half of that, needs its frequency measured
//! first and drifts from the other clocks on some virtual machines. Samples are long instead.

use std::time::{Duration, Instant};

/// The least a sample lasts: three orders of magnitude above the clock's own cost.
pub(crate) const SAMPLE_MIN: Duration = Duration::from_micros(50);
/// Longer ones only average over what the interval should show.
const SAMPLE_MAX: Duration = Duration::from_millis(4);

/// How long a sample lasts if so many share the time, a quarter of it being timed.
pub(crate) fn sample(time: Duration, samples: usize) -> Duration {
    (time / (4 * samples.max(1)) as u32).clamp(SAMPLE_MIN, SAMPLE_MAX)
}

pub(crate) fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

pub(crate) fn ns_each(total: Duration, times: usize) -> f64 {
    total.as_secs_f64() * 1e9 / times.max(1) as f64
}
