//! What a fault was: how far the copy got, which side failed, and why.

use crate::arch::Outcome;
use core::fmt;

/// Which of the two ranges failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The range that is read.
    Source,
    /// The range that is written.
    Destination,
}

/// Why, as far as the handler was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// The handler does not say (a kernel's need not).
    Unknown,
    /// Nothing is mapped there.
    Unmapped,
    /// The mapping does not allow the access.
    Protection,
    /// A memory protection key does not allow the access.
    ProtectionKey,
    /// Beyond the end of the mapped file, or no page could be had (a huge-page pool is empty).
    BeyondEndOfFile,
    /// The hardware reports the memory as corrupt.
    Poison,
    /// The access is not aligned where it has to be.
    Alignment,
    /// The pointer is not an address at all: its upper bits are no sign extension.
    NonCanonical,
}

impl Cause {
    /// The order is that of the numbers in which the handler writes them.
    const ALL: [Self; 8] = [
        Self::Unknown,
        Self::Unmapped,
        Self::Protection,
        Self::ProtectionKey,
        Self::BeyondEndOfFile,
        Self::Alignment,
        Self::Poison,
        Self::NonCanonical,
    ];

    fn from_number(number: usize) -> Self {
        Self::ALL.get(number).copied().unwrap_or(Self::Unknown)
    }

    #[cfg(all(feature = "std", target_os = "linux"))]
    pub(super) fn number(self) -> usize {
        Self::ALL.iter().position(|&cause| cause == self).unwrap_or(0)
    }
}

const _: () = assert!(matches!(Cause::ALL[Outcome::POISON], Cause::Poison));

/// A copy, clear or access that met a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Fault {
    copied_bytes: usize,
    residue_bytes: usize,
    side: Side,
    cause: Cause,
}

impl Fault {
    pub(super) fn new(len_bytes: usize, outcome: Outcome) -> Self {
        const SIDE: usize = (1 << Outcome::CAUSE_SHIFT) - 1;
        Self {
            copied_bytes: len_bytes - outcome.left_bytes,
            residue_bytes: outcome.left_bytes,
            side: match outcome.stopped_by & SIDE {
                Outcome::SOURCE => Side::Source,
                _ => Side::Destination,
            },
            cause: Cause::from_number(outcome.stopped_by >> Outcome::CAUSE_SHIFT),
        }
    }

    pub(super) fn on_side(self, side: Side) -> Self {
        Self { side, ..self }
    }

    pub(super) fn misaligned(len_bytes: usize, side: Side) -> Self {
        let cause = Cause::Alignment;
        Self { copied_bytes: 0, residue_bytes: len_bytes, side, cause }
    }

    /// The same fault seen from a longer transfer, `before` bytes of which were done earlier and
    /// `after` would have followed.
    pub(super) fn within(self, before: usize, after: usize) -> Self {
        Self {
            copied_bytes: before + self.copied_bytes,
            residue_bytes: self.residue_bytes + after,
            ..self
        }
    }

    /// How many bytes from the start are complete.
    pub fn copied_bytes(&self) -> usize {
        self.copied_bytes
    }

    /// How many bytes are not: the length less [`Self::copied_bytes`], as Linux's user-copy
    /// functions return it.
    pub fn residue_bytes(&self) -> usize {
        self.residue_bytes
    }

    /// Which range the byte at [`Self::copied_bytes`] could not be reached in.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Why.
    pub fn cause(&self) -> Cause {
        self.cause
    }

    /// Whether not one byte more could have been copied, if the memory stayed as it was.
    pub fn is_maximal(&self) -> bool {
        self.cause != Cause::Poison
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unknown => "cannot be reached",
            Self::Unmapped => "is not mapped",
            Self::Protection => "is protected",
            Self::ProtectionKey => "is protected by a key",
            Self::BeyondEndOfFile => "is beyond the end of its file, or no page can be had",
            Self::Poison => "is corrupt",
            Self::Alignment => "is not aligned",
            Self::NonCanonical => "is no address",
        })
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Source => "source",
            Self::Destination => "destination",
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { copied_bytes, residue_bytes, side, cause } = self;
        let len_bytes = copied_bytes + residue_bytes;
        write!(f, "{copied_bytes} of {len_bytes} bytes done: the {side} {cause} there")
    }
}

impl core::error::Error for Fault {}
