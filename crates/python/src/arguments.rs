//! Arguments from Python: bound to their names and converted by us, so that what is wrong with them is said
//! as everything else is, with the key, the value and what is allowed. The words are in `lodger._check`.

use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// The exception that `lodger._check` makes.
fn exception<'py>(
    py: Python<'py>,
    name: &str,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) -> PyErr {
    let made = py
        .import("lodger._check")
        .and_then(|check| check.call_method1(name, arguments));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// What a function takes.
pub struct Takes {
    /// Its name, as messages have it.
    pub function: &'static str,
    /// Arguments that may be given by their place.
    pub places: &'static [&'static str],
    /// So many of them must be given.
    pub needed: usize,
    /// Arguments that are given by name alone.
    pub names: &'static [&'static str],
    /// Arguments that had another name, and what to say of them.
    pub renamed: &'static [(&'static str, &'static str)],
}

/// What it was given.
pub struct Given<'py> {
    py: Python<'py>,
    values: Vec<(&'static str, Bound<'py, PyAny>)>,
}

impl Takes {
    /// Values by name.
    pub fn bind<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Given<'py>> {
        let py = args.py();
        if args.len() > self.places.len() {
            let arguments = (
                self.function,
                self.places.to_vec(),
                self.names.to_vec(),
                args.len(),
            );
            return Err(exception(py, "too_many", arguments));
        }
        let places = self.places.iter().copied();
        let mut values: Vec<_> = places.clone().zip(args.iter()).collect();
        for (key, value) in named.into_iter().flatten() {
            let key: String = key.extract()?;
            let known = places.clone().chain(self.names.iter().copied());
            let Some(name) = known.clone().find(|name| *name == key) else {
                let renamed = self.renamed.iter().find(|(old, _)| *old == key);
                let now = renamed.map(|(_, now)| *now);
                let known: Vec<&str> = known.collect();
                return Err(exception(py, "unknown", (self.function, key, known, now)));
            };
            if values.iter().any(|(there, _)| *there == name) {
                return Err(exception(py, "twice", (self.function, name)));
            }
            values.push((name, value));
        }
        let needed = self.places[..self.needed].iter();
        for name in needed {
            if !values.iter().any(|(there, _)| there == name) {
                return Err(exception(py, "missing", (self.function, *name)));
            }
        }
        Ok(Given { py, values })
    }
}

impl<'py> Given<'py> {
    /// The interpreter.
    pub fn py(&self) -> Python<'py> {
        self.py
    }

    /// What was given under a name, as it is; nothing for `None`.
    pub fn any(&self, name: &str) -> Option<&Bound<'py, PyAny>> {
        let found = self.values.iter().find(|(there, _)| *there == name);
        found
            .map(|(_, value)| value)
            .filter(|value| !value.is_none())
    }

    /// What was given under a name; nothing where nothing or `None` was. `allowed` says what it must be.
    pub fn some<T: FromPyObjectOwned<'py>>(
        &self,
        name: &str,
        allowed: &str,
    ) -> PyResult<Option<T>> {
        self.any(name)
            .map(|value| {
                value
                    .extract()
                    .map_err(|_| self.wrong(name, value, allowed))
            })
            .transpose()
    }

    /// The same where there is no doing without.
    pub fn one<T: FromPyObjectOwned<'py>>(&self, name: &str, allowed: &str) -> PyResult<T> {
        self.some(name, allowed)?
            .ok_or_else(|| self.wrong(name, self.py.None().bind(self.py), allowed))
    }

    /// What is raised of a value that it cannot be.
    pub fn wrong(&self, name: &str, value: &Bound<'py, PyAny>, allowed: &str) -> PyErr {
        exception(self.py, "wrong", (name, value, allowed))
    }
}

/// What messages say of frequent kinds.
pub const TEXT: &str = "text";
/// Of a file.
pub const PATH: &str = "a path";
/// Of changes to a drive.
pub const CHANGES: &str = "a mapping of keys to values, such as {\"nand.read\": \"60us\"}";
/// Of a seed.
pub const SEED: &str = "a whole number from 0 to 2**64 - 1";
