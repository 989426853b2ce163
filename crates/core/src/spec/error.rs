//! What is wrong with a drive file, where, and what to do next.

use std::fmt;

/// What kind of thing is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The text is not TOML.
    Syntax,
    /// A key that no drive has.
    UnknownKey,
    /// A key that this drive needs and does not give.
    Missing,
    /// A value of the wrong type, or without its unit.
    Type,
    /// A value outside what is allowed.
    Range,
    /// Values that exclude each other.
    Contradiction,
    /// The drive named by `extends` cannot be had.
    Extends,
    /// An entry of `[sources]` that says nothing usable.
    Source,
}

/// Where a value was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as the caller named it, or `--set`.
    pub file: String,
    /// Line, counted from 1, where one is known.
    pub line: Option<u32>,
}

impl Place {
    pub(super) fn file(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.file),
            None => f.write_str(&self.file),
        }
    }
}

/// An error in a drive file: one line of message with its place, and a hint to be shown apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({place})")]
pub struct SpecError {
    /// What kind of thing is wrong.
    pub problem: Problem,
    /// What is wrong, what was found and what is allowed, without the place.
    pub message: String,
    /// File and line, or option, where it is wrong.
    pub place: Place,
    /// What to do next.
    pub hint: Option<String>,
}

impl SpecError {
    /// Every error says what to do next: no hint fits all.
    pub(super) fn new(
        problem: Problem,
        place: &Place,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            problem,
            message: message.into(),
            place: place.clone(),
            hint: Some(hint.into()),
        }
    }
}

/// A value as a message quotes it: one short line, control characters made visible.
pub(super) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    let line: String = text
        .chars()
        .take(LONGEST)
        .flat_map(char::escape_debug)
        .collect();
    // `escape_debug` also escapes quotes, which are harmless here and hard to read.
    let line = line.replace("\\\"", "\"").replace("\\'", "'");
    if text.chars().nth(LONGEST).is_some() {
        format!("{line}...")
    } else {
        line
    }
}
