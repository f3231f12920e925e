//! What can go wrong when a variant, a threshold or a profile is chosen, and what to do about it.
//!
//! Copying itself has no error here: lengths that disagree are the caller's bug, as in
//! `copy_from_slice`. Errors carry the rejected word in a fixed buffer, so that they need no
//! allocator and can be returned from a kernel.

use crate::cpu::Missing;
use crate::policy::Gate;
use crate::profile::{Difference, Problem};
use crate::slot::Slot;
use crate::variant::{self, Operation, Variant};
use core::fmt;

/// Why a variant, slot or threshold was refused. The message says what would be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// No variant of this operation has this name.
    UnknownVariant {
        /// The operation asked for.
        operation: Operation,
        /// The name that was given.
        name: Word,
    },
    /// The variant exists but cannot run here.
    Unavailable {
        /// The variant asked for.
        variant: &'static Variant,
        /// What it lacks.
        because: Unavailable,
    },
    /// The variant does the other operation.
    WrongOperation {
        /// The variant asked for.
        variant: &'static Variant,
        /// What the slot or caller does.
        wanted: Operation,
    },
    /// The slot promises to write each byte once, and this variant may write some twice.
    StoresTwice {
        /// The variant asked for.
        variant: &'static Variant,
        /// The slot with the promise.
        slot: Slot,
    },
    /// No slot has this name.
    UnknownSlot {
        /// The name that was given.
        name: Word,
    },
    /// An item of a list is not `slot=variant`.
    NotAnAssignment {
        /// The item that was given.
        item: Word,
    },
    /// A word in `CACHEWISE_DISABLE` names neither a variant nor a CPU feature.
    UnknownDisable {
        /// The word that was given.
        name: Word,
    },
    /// A threshold is neither a size nor `off` nor `always`.
    BadThreshold {
        /// The text that was given.
        text: Word,
    },
    /// No gate has this name.
    UnknownGate {
        /// The name that was given.
        name: Word,
    },
    /// A profile cannot be read.
    #[cfg(feature = "std")]
    ProfileUnreadable {
        /// The file.
        path: Word,
        /// What the system said.
        because: std::io::ErrorKind,
    },
    /// A line of a profile is wrong, or asks for what is not here.
    Profile {
        /// The line, from 1 on; 0 where no line is to blame.
        line: u32,
        /// What is wrong.
        because: Problem,
    },
    /// The profile was measured on another machine.
    AnotherMachine(Difference),
    /// An environment variable is not UTF-8.
    NotUnicode {
        /// The variable's name.
        variable: Word,
    },
}

/// Why a variant cannot run here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unavailable {
    /// The CPU or the operating system lacks a feature.
    Missing(Missing),
    /// Nobody has asked the CPU yet: see [`switch::detect`](crate::switch::detect).
    NotDetected,
    /// It uses registers that [`switch::detect`](crate::switch::detect) has not allowed.
    RegistersNotAllowed,
    /// `CACHEWISE_DISABLE` names the variant or a feature it needs.
    Disabled,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(missing) => missing.fmt(f),
            Self::NotDetected => {
                f.write_str("needs the CPU to be asked first: call switch::detect")
            }
            Self::RegistersNotAllowed => {
                f.write_str("uses registers that have not been allowed: see switch::detect")
            }
            Self::Disabled => f.write_str("is disabled by CACHEWISE_DISABLE"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::UnknownVariant { operation, name } => {
                write!(f, "no {operation} variant is named \"{name}\"; available: ")?;
                list(f, names(|v| v.operation() == operation))
            }
            Self::Unavailable { variant, because } => {
                write!(f, "variant \"{}\" {because}; available: ", variant.name())?;
                list(f, names(|v| v.operation() == variant.operation()))
            }
            Self::WrongOperation { variant, wanted } => {
                let (name, does) = (variant.name(), variant.operation());
                write!(f, "variant \"{name}\" does {does}, and {wanted} is wanted; available: ")?;
                list(f, names(|v| v.operation() == wanted))
            }
            Self::StoresTwice { variant, slot } => {
                let name = variant.name();
                write!(
                    f,
                    "variant \"{name}\" may store a byte twice, which {slot} promises not to; \
                     available: "
                )?;
                list(f, names(|v| slot.accepts(v)))
            }
            Self::UnknownSlot { name } => {
                write!(f, "no slot is named \"{name}\"; slots: ")?;
                list(f, Slot::ALL.iter().map(|s| s.name()))
            }
            Self::NotAnAssignment { item } => {
                write!(f, "\"{item}\" is not slot=variant; for example clear_page=rep_stosq")
            }
            Self::UnknownDisable { name } => {
                write!(
                    f,
                    "\"{name}\" is neither a variant nor a CPU feature; `cachewise list` shows both"
                )
            }
            Self::BadThreshold { text } => write!(
                f,
                "threshold \"{text}\" is not a size; write bytes, a number with K, M or G, \
                 \"off\" or \"always\""
            ),
            Self::UnknownGate { name } => {
                write!(f, "no threshold is named \"{name}\"; thresholds: ")?;
                list(f, Gate::ALL.iter().map(|g| g.name()))
            }
            #[cfg(feature = "std")]
            Self::ProfileUnreadable { path, because } => write!(
                f,
                "cannot read the profile \"{path}\": {because}; name a file that `cachewise tune \
                 -o FILE` wrote"
            ),
            Self::Profile { line: 0, because } => write!(f, "profile: {because}"),
            Self::Profile { line, because } => write!(f, "profile, line {line}: {because}"),
            Self::AnotherMachine(difference) => write!(
                f,
                "the profile was measured on another machine: {difference}; measure one here with \
                 `cachewise tune -o FILE`, or take it nevertheless: CACHEWISE_PROFILE=any:FILE, in \
                 code Accept::AnyMachine"
            ),
            Self::NotUnicode { variable } => {
                write!(f, "the environment variable {variable} is not valid UTF-8; correct it")
            }
        }
    }
}

impl core::error::Error for Error {}

fn names(keep: impl Fn(&Variant) -> bool) -> impl Iterator<Item = &'static str> {
    variant::all().iter().filter(move |v| v.unavailable().is_none() && keep(v)).map(|v| v.name())
}

pub(crate) fn list(
    f: &mut fmt::Formatter<'_>,
    words: impl Iterator<Item = &'static str>,
) -> fmt::Result {
    for (i, word) in words.enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        f.write_str(word)?;
    }
    Ok(())
}

/// A word from outside, kept for a message: at most 40 bytes, cut at a character.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word {
    bytes: [u8; Self::CAPACITY],
    len: u8,
    cut: bool,
}

impl Word {
    const CAPACITY: usize = 40;

    pub(crate) fn new(text: &str) -> Self {
        Self::of(text)
    }

    /// The word that a value writes.
    pub(crate) fn of(value: impl fmt::Display) -> Self {
        let mut word = Self { bytes: [0; Self::CAPACITY], len: 0, cut: false };
        // An error would mean that the value itself fails to write: what it wrote is kept.
        let _ = fmt::Write::write_fmt(&mut word, format_args!("{value}"));
        word
    }

    /// The word, without the part that was cut off.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or("")
    }
}

impl fmt::Write for Word {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let used = usize::from(self.len);
        let mut len = if self.cut { 0 } else { text.len().min(Self::CAPACITY - used) };
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        self.bytes[used..used + len].copy_from_slice(&text.as_bytes()[..len]);
        self.len += len as u8;
        self.cut |= len < text.len();
        Ok(())
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.as_str().escape_debug(), if self.cut { "…" } else { "" })
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}
