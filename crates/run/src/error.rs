//! What went wrong, for the user: what, where, what is allowed, what to do next.

use lodger_core::spec::SpecError;
use lodger_workload::WorkloadError;
use std::fmt;

/// Who has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Wrong use or input: the user.
    Input,
    /// A check or a verdict failed, or the simulator did.
    Failed,
    /// The user stopped it.
    Interrupted,
}

/// An error as the user sees it. Displays as its message alone; the hint is for a line of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What is wrong, where, and what is allowed; no trailing full stop.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
    /// Who has to act.
    pub kind: ErrorKind,
    /// The file and line to blame, where one is known; the message names it already.
    pub place: Option<(String, Option<u64>)>,
}

impl Error {
    /// Wrong use or input.
    pub fn input(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            kind: ErrorKind::Input,
            place: None,
        }
    }

    /// A check, a verdict or the simulator failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Failed,
            ..Self::input(message)
        }
    }

    /// The user stopped it.
    #[must_use]
    pub fn interrupted() -> Self {
        Self {
            kind: ErrorKind::Interrupted,
            ..Self::input("interrupted; nothing was written")
        }
    }

    /// The same with advice on what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<WorkloadError> for Error {
    fn from(error: WorkloadError) -> Self {
        Self {
            message: error.to_string(),
            hint: error.hint,
            kind: ErrorKind::Input,
            place: error
                .place
                .map(|place| (place.file, Some(place.line).filter(|line| *line > 0))),
        }
    }
}

impl From<SpecError> for Error {
    fn from(error: SpecError) -> Self {
        Self {
            message: error.to_string(),
            hint: error.hint,
            kind: ErrorKind::Input,
            place: Some((error.place.file, error.place.line.map(u64::from))),
        }
    }
}
