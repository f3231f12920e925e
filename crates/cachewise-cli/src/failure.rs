//! How the command ends when it ends badly.

use cachewise_measure::Error;
use std::io;
use std::path::PathBuf;
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
    /// A file that was named cannot be read, used or written.
    File {
        path: PathBuf,
        because: String,
    },
    /// The files that were named do not go together.
    Files(String),
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

    /// A closed pipe and Ctrl-C are no news to whoever did it.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Self::Measure(Error::Stopped) => None,
            Self::Measure(error) => Some(error.to_string()),
            Self::Write(error) if error.kind() == io::ErrorKind::BrokenPipe => None,
            Self::Write(error) => Some(error.to_string()),
            Self::File { path, because } => Some(format!("{}: {because}", path.display())),
            Self::Files(because) => Some(because.clone()),
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
