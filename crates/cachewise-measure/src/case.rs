//! What is measured: one point of the scenario.

use crate::words::words;
use cachewise::variant::Operation;
use std::fmt;

/// Where the bytes are when the operation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Temperature {
    /// The same buffers again and again.
    Hot,
    /// Each piece is touched once per pass over a range larger than the last-level cache.
    Cold,
}

/// In which order a cold range's pieces are taken. A hot case has one piece, so no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// One after the other.
    Walk,
    /// In random order, each once per pass.
    Random,
}

/// Where a piece begins, counted from an aligned place: a page's start for pieces of a page or
/// more, a random line's for shorter ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Align {
    /// The destination's offset.
    pub dst_bytes: usize,
    /// The source's offset.
    pub src_bytes: usize,
}

/// The page size of the operation's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Page {
    /// The system's smallest page.
    #[default]
    Base,
    /// 2 MiB, by `madvise`.
    Huge,
}

/// One point of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    /// Copy or clear.
    pub operation: Operation,
    /// The length of one call.
    pub size_bytes: usize,
    /// Hot or cold.
    pub temperature: Temperature,
    /// The order of the pieces.
    pub pattern: Pattern,
    /// The alignment of both sides.
    pub align: Align,
    /// How many threads do it at once, each in a range of its own.
    pub threads: usize,
}

impl Case {
    /// Bytes per nanosecond, which is 10^9 bytes per second, of all threads together. A copy counts
    /// each byte once.
    pub fn gb_per_s(&self, ns_per_call: f64) -> f64 {
        (self.size_bytes * self.threads) as f64 / ns_per_call
    }

    /// How many ranges a call touches: a copy has a source.
    pub(crate) fn sides(&self) -> usize {
        match self.operation {
            Operation::Copy => 2,
            Operation::Clear => 1,
        }
    }
}

words! {
    Temperature: "temperature" { Hot => "hot", Cold => "cold" }
    Pattern: "pattern" { Walk => "walk", Random => "random" }
    Page: "page size" { Base => "4KiB", Huge => "2MiB" }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes, {}", self.operation, self.size_bytes, self.temperature)?;
        if self.temperature == Temperature::Cold {
            write!(f, " {}", self.pattern)?;
        }
        if self.align != Align::default() {
            write!(f, ", {} and {} bytes off", self.align.dst_bytes, self.align.src_bytes)?;
        }
        if self.threads != 1 {
            write!(f, ", {} threads", self.threads)?;
        }
        Ok(())
    }
}
