//! Errors as the exceptions of `lodger.errors`.

use lodger_run::{Error, ErrorKind};
use pyo3::prelude::*;

/// The exception that stands for `error`.
pub fn exception(py: Python<'_>, error: Error) -> PyErr {
    let name = match error.kind {
        ErrorKind::Input => "InputError",
        ErrorKind::Failed => "SimulationError",
        ErrorKind::Interrupted => "StoppedError",
    };
    let (file, line) = error.place.unzip();
    let file = file.map(|file| {
        if file == "--set" {
            "changes".to_owned()
        } else {
            file
        }
    });
    let message = in_python(&error.message);
    let hint = error.hint.as_deref().map(in_python);
    let made = py
        .import("lodger.errors")
        .and_then(|errors| errors.getattr(name))
        .and_then(|class| class.call1((message, hint, file, line.flatten())));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// What the library says, which calls arguments as the command does: `--hmb-offer` is `hmb_offer` here, `--fit wrap` is
/// `fit="wrap"`, and values changed by `--set` are `changes`.
pub fn in_python(text: &str) -> String {
    let text = text.replace("(--set)", "(changes)");
    let mut parts = text.split("`--");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_name = |c: char| c.is_ascii_lowercase() || c == '-';
        let (name, rest) = part.split_at(part.find(|c| !is_name(c)).unwrap_or(part.len()));
        let name = name.replace('-', "_");
        let value = rest.strip_prefix(' ').and_then(|rest| rest.split_once('`'));
        out += &match value {
            // A number, or a word that stands for what is to be put there.
            Some((value, rest))
                if value
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'Z')) =>
            {
                format!("`{name}={value}`{rest}")
            }
            Some((value, rest)) if !value.contains(' ') => format!("`{name}=\"{value}\"`{rest}"),
            _ => format!("`{name}{rest}"),
        };
    }
    out
}

/// `?` for results of the other crates.
pub trait OrRaise<T> {
    /// The value, or the exception to raise.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T, E: Into<Error>> OrRaise<T> for Result<T, E> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| exception(py, error.into()))
    }
}
