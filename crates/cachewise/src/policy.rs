//! From what size on a call goes around the cache, and who says so.
//!
//! Each `_nontemporal` slot has a threshold of its own, and so have `copy_auto` and `clear_auto`.
//! Below it a call takes the temporal path: a line written in part by non-temporal stores costs
//! hundreds of cycles, and a short copy has hardly a whole line.
//!
//! - `_nontemporal`: the caller has already said that the bytes are not used soon, so only the cost
//!   of the call itself counts. Default [`NONTEMPORAL_DEFAULT_LINES`] lines, 4 KiB where a line is
//!   64 bytes. The 2005 patch started at 512 bytes and ended at 64 (seeds rows Y2, Y12); measured
//!   on a Zen 4 in a walk through memory, a fenced copy of 512 bytes takes 2.6 times as long as
//!   libc's, and from 1 to 4 KiB on it wins; the fence alone waits some 90 ns for the first line.
//! - `_auto`: nothing is known of the later use, so the cache decides: three quarters of this
//!   CPU's share of the last level, beyond which a copy would push out its own beginning. Where the
//!   share is not known, [`AUTO_DEFAULT_BYTES`]. A measured profile has the size from which on going
//!   around is a gain even for what is used at once.
//!
//! "Off" and "always" are states of their own, not very large or small numbers.

use crate::arch;
use crate::error::{Error, Word};
use crate::switch::{self, DecidedBy, Slot};
use crate::variant::Variant;
use core::fmt;
use core::str::FromStr;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

/// See the [module](self).
pub const NONTEMPORAL_DEFAULT_LINES: usize = 64;
/// See the [module](self). 1 MiB: the order of a private L2, the least that any CPU in service
/// has before its memory.
pub const AUTO_DEFAULT_BYTES: usize = 1 << 20;

/// From what size on a call goes around the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// Never.
    Off,
    /// From this many bytes on.
    Bytes(usize),
    /// At every size.
    Always,
}

/// A threshold and who decided it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The threshold in force.
    pub threshold: Threshold,
    /// Who decided it.
    pub decided_by: DecidedBy,
}

/// What has a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Gate {
    /// `clear_page_nontemporal` and its kin.
    ClearPageNontemporal,
    /// `copy_page_nontemporal`.
    CopyPageNontemporal,
    /// `clear_nontemporal`, `fill_nontemporal`.
    ClearNontemporal,
    /// `copy_nontemporal` and its kin.
    CopyNontemporal,
    /// `clear_auto`.
    ClearAuto,
    /// `copy_auto`.
    CopyAuto,
}

impl Gate {
    /// All gates, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::ClearPageNontemporal,
        Self::CopyPageNontemporal,
        Self::ClearNontemporal,
        Self::CopyNontemporal,
        Self::ClearAuto,
        Self::CopyAuto,
    ];

    /// The name: that of the slot, or `clear_auto`, `copy_auto`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClearPageNontemporal => Slot::ClearPageNontemporal.name(),
            Self::CopyPageNontemporal => Slot::CopyPageNontemporal.name(),
            Self::ClearNontemporal => Slot::ClearNontemporal.name(),
            Self::CopyNontemporal => Slot::CopyNontemporal.name(),
            Self::ClearAuto => "clear_auto",
            Self::CopyAuto => "copy_auto",
        }
    }

    /// The gate with this name.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGate`], whose message lists the gates.
    pub fn from_name(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|gate| gate.name() == name)
            .ok_or_else(|| Error::UnknownGate { name: Word::new(name) })
    }

    /// Whether it is one of the `_auto` calls, of which nothing is known but the size.
    pub const fn is_auto(self) -> bool {
        matches!(self, Self::ClearAuto | Self::CopyAuto)
    }
}

/// Two states have a number of their own here so that the test on the way through is one compare:
/// no length is `usize::MAX`, and every length is at least 0.
static BYTES: [AtomicUsize; Gate::ALL.len()] =
    [const { AtomicUsize::new(UNDECIDED) }; Gate::ALL.len()];
static DECIDED_BY: [AtomicU8; Gate::ALL.len()] =
    [const { AtomicU8::new(DecidedBy::Default as u8) }; Gate::ALL.len()];
const OFF: usize = usize::MAX;
/// Not a length either: objects are at most `isize::MAX` bytes.
const UNDECIDED: usize = usize::MAX - 1;
const ALWAYS: usize = 0;

/// Whether a call of `len_bytes` goes around the cache.
#[inline(always)]
pub(crate) fn goes_around(gate: Gate, len_bytes: usize) -> bool {
    let bytes = BYTES[gate as usize].load(Relaxed);
    len_bytes >= if bytes == UNDECIDED { decide(gate) } else { bytes }
}

/// What serves a `_nontemporal` slot for a transfer of this length.
#[inline(always)]
pub(crate) fn serving(slot: Slot, gate: Gate, total_bytes: usize) -> &'static Variant {
    if goes_around(gate, total_bytes) {
        switch::serving(slot)
    } else {
        switch::serving_below_threshold(slot)
    }
}

#[cold]
fn decide(gate: Gate) -> usize {
    let (bytes, decided_by) = if gate.is_auto() { auto_bytes() } else { nontemporal_bytes() };
    if BYTES[gate as usize].compare_exchange(UNDECIDED, bytes, Relaxed, Relaxed).is_ok() {
        DECIDED_BY[gate as usize].store(decided_by as u8, Relaxed);
    }
    BYTES[gate as usize].load(Relaxed)
}

fn nontemporal_bytes() -> (usize, DecidedBy) {
    (NONTEMPORAL_DEFAULT_LINES * arch::BLOCK_BYTES, DecidedBy::Default)
}

/// Three quarters of the last level's share, as the module says.
fn auto_bytes() -> (usize, DecidedBy) {
    #[cfg(all(feature = "std", not(miri)))]
    {
        let share = crate::cpu::Geometry::system().last_level_bytes_per_cpu();
        if share.source != crate::cpu::Source::Default {
            return (share.value / 4 * 3, DecidedBy::CacheGeometry);
        }
    }
    (AUTO_DEFAULT_BYTES, DecidedBy::Default)
}

/// The threshold in force, and who decided it.
pub fn threshold(gate: Gate) -> Decided {
    let bytes = match BYTES[gate as usize].load(Relaxed) {
        UNDECIDED => decide(gate),
        bytes => bytes,
    };
    let threshold = match bytes {
        OFF => Threshold::Off,
        ALWAYS => Threshold::Always,
        bytes => Threshold::Bytes(bytes),
    };
    let decided_by = DecidedBy::from_u8(DECIDED_BY[gate as usize].load(Relaxed));
    Decided { threshold, decided_by }
}

/// Sets the threshold of one gate from now on, in all threads.
pub fn set_threshold(gate: Gate, threshold: Threshold) {
    store(gate, threshold, DecidedBy::Api);
}

/// Gives the threshold back to the library's own choice.
pub fn reset_threshold(gate: Gate) {
    BYTES[gate as usize].store(UNDECIDED, Relaxed);
    DECIDED_BY[gate as usize].store(DecidedBy::Default as u8, Relaxed);
}

/// A threshold for each gate, or none.
pub(crate) type Thresholds = [Option<Threshold>; Gate::ALL.len()];

/// Sets the thresholds wherever neither the environment nor a call has decided; a gate without one
/// goes back to the library's own choice there.
pub(crate) fn set_by_profile(thresholds: &Thresholds) {
    for (gate, threshold) in Gate::ALL.into_iter().zip(thresholds) {
        if DecidedBy::from_u8(DECIDED_BY[gate as usize].load(Relaxed)).outranks_profile() {
            continue;
        }
        match threshold {
            Some(threshold) => store(gate, *threshold, DecidedBy::Profile),
            None => reset_threshold(gate),
        }
    }
}

#[cfg(feature = "std")]
pub(crate) fn set_all(threshold: Threshold, decided_by: DecidedBy) {
    for gate in Gate::ALL {
        store(gate, threshold, decided_by);
    }
}

fn store(gate: Gate, threshold: Threshold, decided_by: DecidedBy) {
    let bytes = match threshold {
        Threshold::Off => OFF,
        Threshold::Always => ALWAYS,
        // Sizes beyond any object mean the same as the largest one.
        Threshold::Bytes(bytes) => bytes.min(LONGEST_BYTES),
    };
    BYTES[gate as usize].store(bytes, Relaxed);
    DECIDED_BY[gate as usize].store(decided_by as u8, Relaxed);
}

/// The longest object there can be; what a larger `total` is taken for.
pub(crate) const LONGEST_BYTES: usize = isize::MAX as usize;

/// Bytes, or a number with K, M or G (optionally followed by `B` or `iB`, all binary), `off`,
/// `always`.
impl FromStr for Threshold {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = || Error::BadThreshold { text: Word::new(text) };
        if text.eq_ignore_ascii_case("off") {
            return Ok(Self::Off);
        }
        if text.eq_ignore_ascii_case("always") {
            return Ok(Self::Always);
        }
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let shift = match unit.trim_start() {
            "" | "B" => 0,
            "K" | "KB" | "KiB" | "k" => 10,
            "M" | "MB" | "MiB" | "m" => 20,
            "G" | "GB" | "GiB" | "g" => 30,
            _ => return Err(bad()),
        };
        let number: usize = number.parse().map_err(|_| bad())?;
        let bytes = number.checked_mul(1 << shift).filter(|&b| b <= LONGEST_BYTES);
        Ok(Self::Bytes(bytes.ok_or_else(bad)?))
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Always => f.write_str("always"),
            Self::Bytes(bytes) => write!(f, "{bytes} B"),
        }
    }
}
