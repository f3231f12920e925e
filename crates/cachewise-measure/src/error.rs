//! Why there is no figure. Errors are values: a case that failed stands beside those that did not.

use crate::case::Case;
use crate::contestant;
use cachewise::variant::Operation;
use std::fmt;

/// Why something could not be measured.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A variant does not exist or cannot run here.
    Library(cachewise::Error),
    /// Neither a variant nor one of the fixed contestants has this name.
    UnknownContestant {
        /// The operation asked for.
        operation: Operation,
        /// The name that was given.
        name: String,
    },
    /// The memory for a case is more than is free.
    MemoryShort {
        /// What the case needs.
        needed_bytes: u64,
        /// What may be used.
        available_bytes: u64,
    },
    /// The system refused a mapping.
    Map {
        /// Its length.
        len_bytes: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// The system gave no huge pages.
    HugePages,
    /// A bystander needs a core of its own.
    CoresShort {
        /// How many cores the case takes.
        needed: usize,
        /// How many there are.
        available: usize,
    },
    /// Memory did not read back what was written to it.
    Memory,
    /// A routine left wrong bytes behind.
    WrongResult {
        /// Whose.
        contestant: String,
        /// In which case.
        case: Case,
        /// The first wrong byte, counted from the start of the destination.
        at_byte: isize,
    },
    /// `LIB.so:SYMBOL` has another form.
    PeerForm {
        /// What was given instead.
        given: String,
    },
    /// A shared library or its symbol could not be loaded.
    Peer {
        /// What was asked for.
        given: String,
        /// What the loader said.
        source: libloading::Error,
    },
    /// A process that was to measure under another setting could not.
    Child(std::io::Error),
    /// A thread of the measurement ended early.
    Thread,
    /// The user wants no more.
    Stopped,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library(error) => error.fmt(f),
            Self::UnknownContestant { operation, name } => {
                let available = contestant::names(*operation).join(", ");
                write!(f, "no {operation} variant is named \"{name}\"; available: {available}")
            }
            Self::MemoryShort { needed_bytes, available_bytes } => write!(
                f,
                "needs {} MiB of memory where {} MiB may be used; ask for a smaller size or fewer \
                 threads",
                needed_bytes >> 20,
                available_bytes >> 20
            ),
            Self::Map { len_bytes, source } => {
                write!(f, "cannot map {len_bytes} bytes: {source}; ask for a smaller size")
            }
            Self::HugePages => f.write_str(
                "the system gave no 2 MiB pages; allow them: \
                 echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root)",
            ),
            Self::CoresShort { needed, available } => write!(
                f,
                "needs {needed} cores where there are {available}; ask for fewer threads or for a \
                 bystander on the same core"
            ),
            Self::Memory => f.write_str(
                "memory did not read back what was written to it; test the machine's memory",
            ),
            Self::WrongResult { contestant, case, at_byte } => {
                write!(f, "{contestant} did {case} wrongly, first at byte {at_byte}; not timed")
            }
            Self::PeerForm { given } => {
                write!(f, "peer \"{given}\" is not LIB.so:SYMBOL; for example libfoo.so:memcpy")
            }
            Self::Peer { given, source } => write!(
                f,
                "cannot load peer \"{given}\": {source}; give a path with a slash, or a library \
                 that the loader finds"
            ),
            Self::Child(source) => write!(
                f,
                "a process under another setting gave no times: {source}; see what it said above"
            ),
            Self::Thread => f.write_str("a measuring thread ended early; run it again"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for Error {}

impl From<cachewise::Error> for Error {
    fn from(error: cachewise::Error) -> Self {
        Self::Library(error)
    }
}
