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
    let message = in_python(&error.message);
    let made = py
        .import("lodger.errors")
        .and_then(|errors| errors.getattr(name))
        .and_then(|class| class.call1((message, error.hint, file, line.flatten())));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// A message of the library, which calls arguments as the command does: `--hmb-offer` is `hmb_offer` here.
fn in_python(message: &str) -> String {
    let mut parts = message.split("`--");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part
            .find(|c: char| !(c.is_ascii_lowercase() || c == '-'))
            .unwrap_or(part.len());
        out += &format!("`{}{}", part[..end].replace('-', "_"), &part[end..]);
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
