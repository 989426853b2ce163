//! What is wrong with a workload, where, and what to do about it.

use std::fmt;

/// A line of a workload file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// File name as the user gave it.
    pub file: String,
    /// Line number, counted from 1; 0 where there are no lines: on a command line.
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// A workload that cannot be run as written.
///
/// Displays as `message (file:line)`, or `message` alone where no line is to blame; the hint is
/// for the caller to print on a line of its own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", match place { Some(place) => format!(" ({place})"), None => String::new() })]
pub struct WorkloadError {
    /// What is wrong and what is allowed; no trailing full stop.
    pub message: String,
    /// Which line says so.
    pub place: Option<Place>,
    /// What to do next.
    pub hint: Option<String>,
}

impl WorkloadError {
    /// An error that no line in particular is to blame for.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            place: None,
            hint: None,
        }
    }

    /// The same error, blamed on a line (counted from 1) of a file.
    #[must_use]
    pub fn at(mut self, file: impl Into<String>, line: u64) -> Self {
        self.place = Some(Place {
            file: file.into(),
            line,
        });
        self
    }

    /// The same error with advice on what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_follows_the_message() {
        let error = WorkloadError::new("`iodepth` must be between 1 and 65535, found `0`");
        assert_eq!(
            error.to_string(),
            "`iodepth` must be between 1 and 65535, found `0`"
        );
        assert_eq!(
            error.at("job.fio", 4).to_string(),
            "`iodepth` must be between 1 and 65535, found `0` (job.fio:4)"
        );
    }
}
