//! One point of the map, and what came of it.

use crate::case::{Page, Temperature};
use crate::stats::{Estimate, Samples};
use crate::words::words;
use cachewise::variant::Operation;

/// The unit that a share of the result is counted in: each so many bytes have their beginning used.
pub const USE_UNIT_BYTES: usize = 4096;

/// How much of the result is used afterwards: that share of the beginning of each
/// [`USE_UNIT_BYTES`], in whole words, at least one word unless the share is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share {
    per_mille: u16,
}

impl Share {
    /// Nobody looks at it.
    pub const NONE: Self = Self { per_mille: 0 };
    /// Two thousandths of 4096 bytes, in whole words, are 8 bytes.
    pub const WORD_PER_PAGE: Self = Self { per_mille: 2 };
    /// All of it.
    pub const ALL: Self = Self { per_mille: 1000 };

    /// To the nearest thousandth; `None` outside 0 to 1.
    pub fn new(share: f64) -> Option<Self> {
        let in_range = (0.0..=1.0).contains(&share);
        in_range.then(|| Self { per_mille: (share * 1000.0).round() as u16 })
    }

    /// Between 0 and 1.
    pub fn as_f64(self) -> f64 {
        f64::from(self.per_mille) / 1000.0
    }

    /// How much of a unit of `unit_bytes` is used.
    pub(crate) fn of_bytes(self, unit_bytes: usize) -> usize {
        const WORD_BYTES: usize = size_of::<u64>();
        let bytes = unit_bytes * usize::from(self.per_mille) / 1000 / WORD_BYTES * WORD_BYTES;
        let least = if self == Self::NONE { 0 } else { WORD_BYTES.min(unit_bytes) };
        if self == Self::ALL { unit_bytes } else { bytes.max(least) }
    }
}

/// A number from 0 to 1, or `word` for one word per page.
impl std::str::FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = match text {
            "word" => Some(Self::WORD_PER_PAGE),
            number => number.parse().ok().and_then(Self::new),
        };
        share.ok_or_else(|| {
            format!("\"{text}\" is no share; write a number from 0 to 1, or \"word\" per page")
        })
    }
}

/// How the result is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UseKind {
    /// Each word is loaded.
    Read,
    /// Each word is stored to by ordinary stores.
    Write,
}

/// In which way the bystander goes through its working set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Walk {
    /// Every line once in random order, each load's address from the load before: nothing hides a
    /// miss. An upper bound of what the bystander loses.
    Dependent,
    /// Every line once, one after the other, no load waiting for another: the prefetcher and the
    /// parallel misses hide what can be hidden. A lower bound.
    Independent,
}

/// Where the bystander runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Core {
    /// In turn with the operation, in the same thread.
    Same,
    /// At the same time, on another core.
    Other,
}

/// Who had a working set in the cache before the operation came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Victim {
    /// Its working set; 0 if there is none.
    pub bytes: usize,
    /// How it is gone through.
    pub walk: Walk,
    /// Where it runs.
    pub core: Core,
    /// How often it goes through its working set for each operation. On another core it goes
    /// through it all the time, and this is 0.
    pub retouch: u32,
}

impl Victim {
    /// Nobody.
    pub const NONE: Self = Self { bytes: 0, walk: Walk::Dependent, core: Core::Same, retouch: 0 };
}

/// One point of the map. A step of it is: the victim's walks, the operation, the delay's traffic,
/// the use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Copy or clear.
    pub operation: Operation,
    /// The length of one call.
    pub size_bytes: usize,
    /// Cold: each source is met once per pass over a range larger than the last-level cache. Hot:
    /// the same source again and again. Of no meaning, and `Cold`, for a clear.
    pub source: Temperature,
    /// Pages of destination and source.
    pub page: Page,
    /// Threads that do it at once, each with memory and a bystander of its own.
    pub threads: usize,
    /// How much of the result is used.
    pub used: Share,
    /// How it is used. Of no meaning, and `Read`, if nothing is.
    pub use_kind: UseKind,
    /// How many bytes are read between operation and use, or after the operation if nothing is used.
    pub delay_bytes: usize,
    /// The bystander.
    pub victim: Victim,
}

/// Why a contender has figures or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has.
    Ok,
    /// It cannot run here.
    Unsupported,
    /// The machine is too small for it.
    Skipped,
    /// Something is wrong.
    Error,
}

/// The times of a step, by batch and round, in nanoseconds.
///
/// The parts come from steps with time stamps between them, the whole from steps without. All of
/// one index (batch, round) were measured one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// The operation.
    pub op: Samples,
    /// The delay's traffic.
    pub delay: Samples,
    /// The same with the operation left out.
    pub delay_baseline: Samples,
    /// The use.
    pub used: Samples,
    /// The victim's walks.
    pub victim: Samples,
    /// The victim's walks in the same loop with the operation left out.
    pub victim_baseline: Samples,
    /// The use done again at once: what it costs when nothing has to be fetched from afar.
    pub use_baseline: Samples,
    /// The whole step.
    pub whole: Samples,
    /// Misses of the last-level cache in a step, where the CPU's counters can be read.
    pub misses: Misses,
}

/// Misses per step, by part; zero where nothing can be counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Misses {
    /// In the operation.
    pub op: Samples,
    /// In the use.
    pub used: Samples,
    /// In the victim's walks, if they are in turn with the operation.
    pub victim: Samples,
}

/// One contender in one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// A variant's name, or `libc`.
    pub variant: String,
    /// Whether there are figures.
    pub status: Status,
    /// Why not.
    pub because: Option<String>,
    /// Empty unless the status is [`Status::Ok`].
    pub times: Times,
}

/// A cell and all its contenders; libc is always the first of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The cell.
    pub cell: Cell,
    /// The contenders.
    pub outcomes: Vec<Outcome>,
}

/// The figures of an outcome, as they are shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// The operation.
    pub op_ns: f64,
    /// The delay's traffic.
    pub delay_ns: f64,
    /// The same without the operation.
    pub delay_baseline_ns: f64,
    /// The use.
    pub use_ns: f64,
    /// The use at its cheapest.
    pub use_baseline_ns: f64,
    /// The victim's walks.
    pub victim_ns: f64,
    /// The same without the operation.
    pub victim_baseline_ns: f64,
    /// What the victim lost: the median over rounds of the difference.
    pub victim_excess_ns: f64,
    /// The whole step, with its interval.
    pub whole: Estimate,
    /// The whole less its parts.
    pub unattributed_ns: f64,
}

impl Times {
    /// The figures, or `None` without samples.
    ///
    /// Where the victim runs in turn with the operation, its walks are a part of the whole; where it
    /// runs on another core, only what it lost is.
    pub fn figures(&self, core: Core, seed: u64) -> Option<Figures> {
        let median = |samples: &Samples| samples.median().unwrap_or(0.0);
        let victim_excess_ns = median(&self.victim_excess());
        let whole = self.whole.estimate(seed)?;
        let (op_ns, delay_ns, use_ns) = (median(&self.op), median(&self.delay), median(&self.used));
        let victim_ns = median(&self.victim);
        let bystander_ns = match core {
            Core::Same => victim_ns,
            Core::Other => victim_excess_ns,
        };
        let parts_ns = bystander_ns + op_ns + delay_ns + use_ns;
        Some(Figures {
            op_ns,
            delay_ns,
            delay_baseline_ns: median(&self.delay_baseline),
            use_ns,
            use_baseline_ns: median(&self.use_baseline),
            victim_ns,
            victim_baseline_ns: median(&self.victim_baseline),
            victim_excess_ns,
            whole,
            unattributed_ns: whole.median - parts_ns,
        })
    }

    /// Whether each part has as many samples, batch by batch, as the whole.
    pub fn is_complete(&self) -> bool {
        let Self { op, delay, delay_baseline, used, use_baseline, .. } = self;
        let Self { victim, victim_baseline, whole, .. } = self;
        let rounds = |part: &Samples| part.batches().iter().map(Vec::len).collect::<Vec<_>>();
        let parts = [op, delay, delay_baseline, used, use_baseline, victim, victim_baseline];
        whole.count() > 0 && parts.into_iter().all(|part| rounds(part) == rounds(whole))
    }

    /// What the victim lost, round by round.
    pub fn victim_excess(&self) -> Samples {
        self.victim.pair(&self.victim_baseline, |with, without| with - without)
    }

    /// What of the whole is due to the operation, round by round: the whole less what the victim, the
    /// delay and the use cost by themselves.
    pub fn operation_related(&self, core: Core) -> Samples {
        let less =
            |whole: Samples, other: &Samples| whole.pair(other, |whole, other| whole - other);
        // On another core the victim's own walks are no part of the whole.
        let own = match core {
            Core::Same => less(self.whole.clone(), &self.victim_baseline),
            Core::Other => {
                less(self.whole.clone(), &self.whole.pair(&self.victim_baseline, |_, _| 0.0))
            }
        };
        less(less(own, &self.use_baseline), &self.delay_baseline)
    }

    /// What the operation costs in all: what differences are relative to, so that a large bystander
    /// cannot hide them. The baselines are noisy, and what is left may be next to nothing; half of
    /// the operation's own time is the least that makes sense.
    pub fn cost_ns(&self, core: Core) -> Option<f64> {
        let related = self.operation_related(core).median()?;
        Some(related.max(self.op.median()? / 2.0).max(1.0))
    }
}

impl Measured {
    /// The outcomes that have figures.
    pub fn ok(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().filter(|outcome| outcome.status == Status::Ok)
    }

    /// How many samples each contender has, if any has.
    pub fn samples(&self) -> Option<usize> {
        self.ok().map(|outcome| outcome.times.whole.count()).min()
    }

    /// The outcome of this contender, if it has figures.
    pub fn of(&self, variant: &str) -> Option<&Outcome> {
        self.ok().find(|outcome| outcome.variant == variant)
    }
}

words! {
    UseKind: "kind of use" { Read => "read", Write => "write" }
    Walk: "walk" { Dependent => "dependent", Independent => "independent" }
    Core: "core" { Same => "same", Other => "other" }
    Status: "status" {
        Ok => "ok", Unsupported => "unsupported", Skipped => "skipped", Error => "error"
    }
}
