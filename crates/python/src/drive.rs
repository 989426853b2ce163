//! `lodger.Drive`.

use crate::errors::{OrRaise, unexpected};
use lodger_core::spec::ParsedDrive;
use lodger_run::{Error, Files, drives as collection};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Values as text, as `--set` takes them.
type Sets = BTreeMap<String, String>;
/// Arguments that had another name.
const RENAMED: [(&str, &str); 1] = [("set", "`set` is called `changes` now")];
/// Values as Python has them.
type Given<'py> = BTreeMap<String, Bound<'py, PyAny>>;

/// A Python value as it is written in a drive file, strings without their quotes.
fn as_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.is_instance_of::<PyBool>() {
        return Ok(value.str()?.to_string().to_lowercase());
    }
    if let Ok(list) = value.extract::<Vec<Bound<'_, PyAny>>>()
        && !value.is_instance_of::<PyString>()
    {
        let items = list.iter().map(|item| {
            let quoted = item.is_instance_of::<PyString>();
            let text = as_text(item)?;
            Ok(if quoted { format!("{text:?}") } else { text })
        });
        return Ok(format!(
            "[{}]",
            items.collect::<PyResult<Vec<_>>>()?.join(", ")
        ));
    }
    Ok(value.str()?.to_string())
}

fn as_texts(given: Option<Given<'_>>) -> PyResult<Sets> {
    let pairs = given.into_iter().flatten();
    pairs
        .map(|(key, value)| Ok((key, as_text(&value)?)))
        .collect()
}

/// A value of a drive and where it comes from.
#[pyclass(frozen, get_all, module = "lodger")]
#[derive(Clone, Debug)]
pub struct Value {
    /// Its key in a drive file, such as `nand.read`.
    key: String,
    /// The value with its unit, as `lodger drives show` prints it.
    text: String,
    /// measured, datasheet, paper, fitted, assumed, default, derived, unstated or command line.
    kind: &'static str,
    /// The document, measurement or reason behind it.
    source: String,
    /// The figures or statements it was chosen to meet, as studies name them.
    fitted_to: Vec<String>,
}

#[pymethods]
impl Value {
    fn __repr__(&self) -> String {
        format!(
            "Value({} = {}, {}: {})",
            self.key, self.text, self.kind, self.source
        )
    }
}

/// A drive: of the collection, from a file, or from text; with changed values.
///
/// `Drive(name, changes=None)` is the drive of that name (see `drives()`), or the drive file; `changes`
/// are values to change: `{"nand.read": "60us", "nand.channels": 8}`.
#[pyclass(module = "lodger")]
#[derive(Clone, Debug)]
pub struct Drive {
    name: String,
    /// As messages name it.
    file: String,
    text: String,
    sets: Sets,
    pub parsed: ParsedDrive,
}

impl Drive {
    fn new(py: Python<'_>, name: String, file: String, text: String, sets: Sets) -> PyResult<Self> {
        let parsed = parse(&text, &file, &sets).or_raise(py)?;
        Ok(Self {
            name,
            file,
            text,
            sets,
            parsed,
        })
    }

    /// What the run loop is given.
    pub fn to_run(&self) -> lodger_run::Drive {
        lodger_run::Drive {
            name: self.name.clone(),
            parsed: self.parsed.clone(),
        }
    }
}

fn parse(text: &str, file: &str, sets: &Sets) -> Result<ParsedDrive, Error> {
    let sets: Vec<_> = sets
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    Files::default().parse_drive(text, file, &sets)
}

#[pymethods]
impl Drive {
    #[new]
    #[pyo3(signature = (name, *, changes = None, **others), text_signature = "(name, *, changes=None)")]
    fn py_new(
        py: Python<'_>,
        name: PathBuf,
        changes: Option<Given<'_>>,
        others: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        unexpected(others, &RENAMED)?;
        let shown = name.display().to_string();
        if let Some(text) = collection::text(&shown) {
            let file = format!("{shown}.toml");
            return Self::new(py, shown, file, text.to_owned(), as_texts(changes)?);
        }
        if !name.exists() {
            // For its message: neither a drive of the collection nor a file.
            lodger_run::Drive::open(&shown, &[]).or_raise(py)?;
        }
        Self::from_file(py, name, changes, None)
    }

    /// The drive of a drive file.
    #[staticmethod]
    #[pyo3(signature = (path, *, changes = None, **others), text_signature = "(path, *, changes=None)")]
    fn from_file(
        py: Python<'_>,
        path: PathBuf,
        changes: Option<Given<'_>>,
        others: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        unexpected(others, &RENAMED)?;
        let text = Files::default().text(&path, "drive file").or_raise(py)?;
        let name = path.display().to_string();
        Self::new(py, name.clone(), name, text, as_texts(changes)?)
    }

    /// The drive of a drive file's text. `name` is what messages and results call it.
    #[staticmethod]
    #[pyo3(
        signature = (text, *, name = "drive.toml", changes = None, **others),
        text_signature = "(text, *, name=\"drive.toml\", changes=None)"
    )]
    fn from_toml(
        py: Python<'_>,
        text: String,
        name: &str,
        changes: Option<Given<'_>>,
        others: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        unexpected(others, &RENAMED)?;
        let changes = as_texts(changes)?;
        Self::new(py, name.to_owned(), name.to_owned(), text, changes)
    }

    /// Changes a value, such as "nand.read" to "60us". A wrong one changes nothing.
    fn set(&mut self, py: Python<'_>, key: String, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut sets = self.sets.clone();
        sets.insert(key, as_text(value)?);
        self.parsed = parse(&self.text, &self.file, &sets).or_raise(py)?;
        self.sets = sets;
        Ok(())
    }

    /// Change several values at once: they need to fit together only in the end. Wrong ones change
    /// nothing.
    #[pyo3(signature = (changes = None, **others), text_signature = "($self, changes)")]
    fn update(
        &mut self,
        py: Python<'_>,
        changes: Option<Given<'_>>,
        others: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        unexpected(others, &RENAMED)?;
        let Some(changes) = changes else {
            return Err(PyTypeError::new_err("`update` needs `changes`"));
        };
        let mut sets = self.sets.clone();
        sets.extend(as_texts(Some(changes))?);
        self.parsed = parse(&self.text, &self.file, &sets).or_raise(py)?;
        self.sets = sets;
        Ok(())
    }

    /// A drive that can be changed on its own.
    fn copy(&self) -> Self {
        self.clone()
    }

    /// Its name in the collection, or its file.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// What its maker calls it.
    #[getter]
    fn model(&self) -> &str {
        &self.parsed.spec.name
    }

    /// Bytes the host can use.
    #[getter]
    fn capacity_bytes(&self) -> u64 {
        self.parsed.spec.capacity_bytes
    }

    /// Host memory it would like (HMPRE), bytes; 0 if it has no use for any.
    #[getter]
    fn hmb_preferred_bytes(&self) -> u64 {
        let hmb = &self.parsed.spec.tiers.hmb;
        hmb.as_ref().map_or(0, |hmb| hmb.preferred_bytes)
    }

    /// Host memory below which it goes without (HMMIN), bytes.
    #[getter]
    fn hmb_min_bytes(&self) -> u64 {
        let hmb = &self.parsed.spec.tiers.hmb;
        hmb.as_ref().map_or(0, |hmb| hmb.min_bytes)
    }

    /// Values that are not the file's own.
    #[getter]
    fn changed(&self) -> Sets {
        self.sets.clone()
    }

    /// Every value of the drive by its key, with its source.
    #[getter]
    fn values(&self) -> BTreeMap<&'static str, Value> {
        let values = self.parsed.values.iter().map(|value| {
            let shown = Value {
                key: value.key.to_owned(),
                text: value.text.clone(),
                kind: value.source.kind.name(),
                source: value.source.from.clone(),
                fitted_to: value.source.to.clone(),
            };
            (value.key, shown)
        });
        values.collect()
    }

    /// A drive file that means the same.
    fn to_toml(&self) -> String {
        self.parsed.to_toml()
    }

    fn __repr__(&self) -> String {
        let sets: Vec<_> = self
            .sets
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let sets = if sets.is_empty() {
            String::new()
        } else {
            format!(" with {}", sets.join(", "))
        };
        format!(
            "<lodger.Drive {}: {}{sets}>",
            self.name, self.parsed.spec.name
        )
    }

    fn __copy__(&self) -> Self {
        self.clone()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, RestoreDrive)> {
        let restore = py.import("lodger._native")?.getattr("restore_drive")?;
        let parts = (
            self.name.clone(),
            self.file.clone(),
            self.text.clone(),
            self.sets.clone(),
        );
        Ok((restore, parts))
    }
}

type RestoreDrive = (String, String, String, Sets);

/// For `pickle`.
#[pyfunction]
pub fn restore_drive(
    py: Python<'_>,
    name: String,
    file: String,
    text: String,
    sets: Sets,
) -> PyResult<Drive> {
    Drive::new(py, name, file, text, sets)
}

/// Names of the drives that come with the program.
#[pyfunction]
pub fn drives() -> Vec<&'static str> {
    collection::names().collect()
}
