//! Errors as the exceptions of `lodger.errors`.

use lodger_run::{Error, ErrorKind};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The exception that stands for `error`.
pub fn exception(py: Python<'_>, error: Error) -> PyErr {
    let name = match error.kind {
        ErrorKind::Input => "InputError",
        ErrorKind::Failed => "SimulationError",
        ErrorKind::Interrupted => "StoppedError",
    };
    let (file, line) = error.place.unzip();
    let made = py
        .import("lodger.errors")
        .and_then(|errors| errors.getattr(name))
        .and_then(|class| class.call1((error.message, error.hint, file, line.flatten())));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
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

/// Refuses arguments that there are not; for those that had another name, with what to say of it.
pub fn unexpected(
    others: Option<&Bound<'_, PyDict>>,
    renamed: &[(&str, &'static str)],
) -> PyResult<()> {
    let Some(name) = others.and_then(|others| others.keys().iter().next()) else {
        return Ok(());
    };
    let name: String = name.extract()?;
    let known = renamed.iter().find(|(old, _)| *old == name);
    Err(match known {
        Some((_, now)) => PyTypeError::new_err(*now),
        None => PyTypeError::new_err(format!("got an unexpected keyword argument '{name}'")),
    })
}
