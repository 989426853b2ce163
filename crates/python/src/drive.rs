//! `lodger.Drive`.

use crate::arguments::{CHANGES, PATH, TEXT, Takes};
use crate::errors::OrRaise;
use lodger_core::spec::ParsedDrive;
use lodger_run::{Error, Files, drives as collection};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Values as text, as `--set` takes them.
type Sets = BTreeMap<String, String>;
/// Arguments that had another name.
const RENAMED: &[(&str, &str)] = &[("set", "`set` is called `changes` now")];
const NEW: Takes = Takes {
    function: "Drive",
    places: &["name"],
    needed: 1,
    names: &["changes"],
    renamed: RENAMED,
};
const FROM_FILE: Takes = Takes {
    function: "Drive.from_file",
    places: &["path"],
    ..NEW
};
const FROM_TOML: Takes = Takes {
    function: "Drive.from_toml",
    places: &["text"],
    names: &["name", "changes"],
    ..NEW
};
const SET: Takes = Takes {
    function: "Drive.set",
    places: &["key", "value"],
    needed: 2,
    names: &[],
    renamed: &[],
};
const UPDATE: Takes = Takes {
    function: "Drive.update",
    places: &["changes"],
    names: &[],
    ..NEW
};
/// Values as Python has them.
type Given<'py> = BTreeMap<String, Bound<'py, PyAny>>;

/// A Python value as it is written in a drive file, strings without their quotes.
fn as_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    // Also NumPy's, which is no instance of Python's.
    if let Ok(truth) = value.extract::<bool>() {
        return Ok(truth.to_string());
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

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py()
            .import("lodger._html")?
            .call_method1("value", (slf,))
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

    fn of_file(py: Python<'_>, path: PathBuf, changes: Option<Given<'_>>) -> PyResult<Self> {
        let text = Files::default().text(&path, "drive file").or_raise(py)?;
        let name = path.display().to_string();
        Self::new(py, name.clone(), name, text, as_texts(changes)?)
    }

    fn change(&mut self, py: Python<'_>, changes: Sets) -> PyResult<()> {
        let mut sets = self.sets.clone();
        sets.extend(changes);
        self.parsed = parse(&self.text, &self.file, &sets).or_raise(py)?;
        self.sets = sets;
        Ok(())
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
    #[pyo3(signature = (*args, **named), text_signature = "(name, *, changes=None)")]
    fn py_new(args: &Bound<'_, PyTuple>, named: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let given = NEW.bind(args, named)?;
        let py = given.py();
        let name: PathBuf = given.one("name", "a drive's name or a drive file")?;
        let changes = given.some("changes", CHANGES)?;
        let shown = name.display().to_string();
        if let Some(text) = collection::text(&shown) {
            let file = format!("{shown}.toml");
            return Self::new(py, shown, file, text.to_owned(), as_texts(changes)?);
        }
        if !name.exists() {
            // For its message: neither a drive of the collection nor a file.
            lodger_run::Drive::open(&shown, &[]).or_raise(py)?;
        }
        Self::of_file(py, name, changes)
    }

    /// The drive of a drive file.
    #[staticmethod]
    #[pyo3(signature = (*args, **named), text_signature = "(path, *, changes=None)")]
    fn from_file(args: &Bound<'_, PyTuple>, named: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let given = FROM_FILE.bind(args, named)?;
        let changes = given.some("changes", CHANGES)?;
        Self::of_file(given.py(), given.one("path", PATH)?, changes)
    }

    /// The drive of a drive file's text. `name` is what messages and results call it.
    #[staticmethod]
    #[pyo3(
        signature = (*args, **named),
        text_signature = "(text, *, name=\"drive.toml\", changes=None)"
    )]
    fn from_toml(args: &Bound<'_, PyTuple>, named: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let given = FROM_TOML.bind(args, named)?;
        let name: Option<String> = given.some("name", TEXT)?;
        let name = name.unwrap_or_else(|| "drive.toml".to_owned());
        let changes = as_texts(given.some("changes", CHANGES)?)?;
        Self::new(
            given.py(),
            name.clone(),
            name,
            given.one("text", TEXT)?,
            changes,
        )
    }

    /// Changes a value, such as "nand.read" to "60us". A wrong one changes nothing.
    #[pyo3(signature = (*args, **named), text_signature = "($self, key, value)")]
    fn set(
        &mut self,
        args: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let given = SET.bind(args, named)?;
        let key: String = given.one("key", "a key of drive files, such as `nand.read`")?;
        let value: Bound<'_, PyAny> =
            given.one("value", "text, a number, a boolean or a list of them")?;
        self.change(given.py(), [(key, as_text(&value)?)].into())
    }

    /// Change several values at once: they need to fit together only in the end. Wrong ones change
    /// nothing.
    #[pyo3(signature = (*args, **named), text_signature = "($self, changes)")]
    fn update(
        &mut self,
        args: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let given = UPDATE.bind(args, named)?;
        let changes = given.one("changes", CHANGES)?;
        self.change(given.py(), as_texts(Some(changes))?)
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

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py()
            .import("lodger._html")?
            .call_method1("drive", (slf,))
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
