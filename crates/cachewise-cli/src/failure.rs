//! How the command ends when it ends badly.

use cachewise_measure::Error;
use std::fmt;
use std::io;
use std::process::ExitCode;

/// 0 is done, and so is a reader who has seen enough. 1 is kept for a negative verdict that was
/// asked for.
pub(crate) const NEGATIVE: u8 = 1;
pub(crate) const USAGE_OR_RUN: u8 = 2;
const UNSUPPORTED: u8 = 3;
pub(crate) const INTERRUPTED: u8 = 130;

#[derive(Debug)]
pub(crate) enum Failure {
    Measure(Error),
    Write(io::Error),
    /// An earlier result cannot be used; the text says why and what to do.
    Input(String),
}

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        let code = match self {
            Self::Measure(Error::Library(cachewise::Error::Unavailable { .. })) => UNSUPPORTED,
            Self::Measure(Error::Stopped) => INTERRUPTED,
            Self::Write(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            _ => USAGE_OR_RUN,
        };
        code.into()
    }

    /// A closed pipe and a signal are no news to whoever did it.
    pub(crate) fn message(&self) -> Option<&dyn fmt::Display> {
        match self {
            Self::Measure(Error::Stopped) => None,
            Self::Measure(error) => Some(error),
            Self::Input(text) => Some(text),
            Self::Write(error) if error.kind() == io::ErrorKind::BrokenPipe => None,
            Self::Write(error) => Some(error),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Measure(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}
