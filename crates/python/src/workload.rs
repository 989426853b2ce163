//! `lodger.Workload`.

use crate::columns;
use crate::drive::Drive;
use crate::errors::{OrRaise, unexpected};
use crate::supervise::supervise;
use lodger_core::Op;
use lodger_run::{Error, LoggingChoice, Replay, TraceOptions, WorkloadFile};
use lodger_workload::logging::Commit;
use lodger_workload::trace::{
    self, CLOSED_QUEUE_DEPTH, Description, DeviceChoice, Fit, Format, Mode, Record, TimeUnit, Trace,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

/// Longest request: far above what any drive takes, and what a trace can hold.
const LENGTH_BYTES_MAX: u64 = 1 << 40;

/// Arguments that had another name.
const RENAMED: [(&str, &str); 1] = [(
    "time_us",
    "`time_us` is `time_ns` now, in nanoseconds as all times",
)];

/// What is asked of a drive: a fio job file or a block trace, read but not yet fitted to a drive.
///
/// `Workload(path)` is the workload of a file; the format of a trace is recognised.
#[pyclass(frozen, module = "lodger")]
#[derive(Clone, Debug)]
pub struct Workload(Arc<WorkloadFile>);

impl Workload {
    /// What was read.
    pub fn source(&self) -> Arc<WorkloadFile> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl Workload {
    #[new]
    fn py_new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        open(py, path, TraceOptions::default())
    }

    /// The workload of a job file's text. `name` is what messages call it.
    #[staticmethod]
    #[pyo3(signature = (text, *, name = "job.fio"))]
    fn from_fio(text: String, name: &str) -> Self {
        restore_fio(name.to_owned(), text)
    }

    /// The workload of the text of a model of database logging. `name` is what messages call it.
    #[staticmethod]
    #[pyo3(signature = (text, *, name = "logging.toml"))]
    fn from_logging(text: String, name: &str) -> Self {
        Workload(Arc::new(WorkloadFile::logging(name, text)))
    }

    /// A model of database logging with another commit mode ("block", "ba" or "async") or number of
    /// clients than its file says.
    #[pyo3(signature = (*, commit = None, clients = None))]
    fn committing(
        &self,
        py: Python<'_>,
        commit: Option<&str>,
        clients: Option<u32>,
    ) -> PyResult<Self> {
        let commit = commit.map(str::parse).transpose();
        let commit = commit.map_err(Error::from).or_raise(py)?;
        let chosen = LoggingChoice { commit, clients };
        let source = WorkloadFile::clone(&self.0).choose(chosen).or_raise(py)?;
        Ok(Workload(Arc::new(source)))
    }

    /// A trace replayed in another way: "timed" or "closed", `iodepth` requests at a time of a closed
    /// replay, `fit` for addresses beyond the drive. What is not given stays.
    #[pyo3(signature = (*, replay = None, iodepth = None, fit = None))]
    fn replaying(
        &self,
        py: Python<'_>,
        replay: Option<&str>,
        iodepth: Option<u32>,
        fit: Option<&str>,
    ) -> PyResult<Self> {
        let replay = replay.map(self::replay).transpose().or_raise(py)?;
        let wanted = fit.map(str::parse).transpose().or_raise(py)?;
        let mut source = WorkloadFile::clone(&self.0);
        let WorkloadFile::Trace { fit, mode, .. } = &mut source else {
            let message = "`replay`, `iodepth` and `fit` are for traces";
            return Err(Error::input(message)).or_raise(py);
        };
        *fit = wanted.unwrap_or(*fit);
        let closed = match replay {
            Some(replay) => matches!(replay, Replay::Closed),
            None => matches!(mode, Mode::Closed { .. }),
        };
        *mode = match (closed, *mode, iodepth) {
            (false, _, None) => Mode::Timed,
            (false, _, Some(_)) => {
                let error = Error::input("`iodepth` needs `replay=closed`");
                return Err(error).or_raise(py);
            }
            (true, Mode::Closed { queue_depth }, None) => Mode::Closed { queue_depth },
            (true, _, depth) => Mode::Closed {
                queue_depth: depth.unwrap_or(CLOSED_QUEUE_DEPTH).max(1),
            },
        };
        Ok(Workload(Arc::new(source)))
    }

    /// A block trace.
    ///
    /// `replay` is "timed" (at the recorded instants) or "closed" (as fast as the drive takes the
    /// requests, `iodepth` at a time); `fit` says what to do about addresses beyond the drive:
    /// "error", "wrap" or "scale". The others are the options of the command.
    #[staticmethod]
    #[pyo3(signature = (path, *, format = None, replay = "timed", iodepth = None, fit = "error",
                        device = None, time_unit = None, action = None, skip_malformed = false))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn from_trace(
        py: Python<'_>,
        path: PathBuf,
        format: Option<&str>,
        replay: &str,
        iodepth: Option<u32>,
        fit: &str,
        device: Option<&str>,
        time_unit: Option<&str>,
        action: Option<char>,
        skip_malformed: bool,
    ) -> PyResult<Self> {
        let options = TraceOptions {
            replay: Some(self::replay(replay).or_raise(py)?),
            iodepth,
            fit: Some(fit.parse().or_raise(py)?),
            read: trace::Options {
                format: format.map(|word| word.parse().or_raise(py)).transpose()?,
                device: DeviceChoice::typed(device),
                time_unit: time_unit
                    .map(|word| word.parse().or_raise(py))
                    .transpose()?,
                action,
                skip_malformed,
                ..trace::Options::default()
            },
        };
        open(py, path, options)
    }

    /// A trace from arrays: times in nanoseconds from anywhere and in any order, operations as words
    /// ("read", "write", "trim", "flush") or numbers (0 to 3), places and lengths in bytes.
    ///
    /// All but `time_ns` may be one value for all requests.
    #[staticmethod]
    #[pyo3(
        signature = (*columns, time_ns = None, op = None, offset_bytes = None, length_bytes = None,
                     fua = None, name = "arrays", replay = "timed", iodepth = None, fit = "error",
                     **others),
        text_signature = "(*, time_ns, op, offset_bytes, length_bytes, fua=None, name=\"arrays\", \
                          replay=\"timed\", iodepth=None, fit=\"error\")"
    )]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn from_arrays(
        py: Python<'_>,
        columns: &Bound<'_, PyTuple>,
        time_ns: Option<&Bound<'_, PyAny>>,
        op: Option<&Bound<'_, PyAny>>,
        offset_bytes: Option<&Bound<'_, PyAny>>,
        length_bytes: Option<&Bound<'_, PyAny>>,
        fua: Option<&Bound<'_, PyAny>>,
        name: &str,
        replay: &str,
        iodepth: Option<u32>,
        fit: &str,
        others: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        unexpected(others, &RENAMED)?;
        // Without names, times in the microseconds of old would be taken for nanoseconds.
        let (true, Some(time_ns), Some(op), Some(offset_bytes), Some(length_bytes)) =
            (columns.is_empty(), time_ns, op, offset_bytes, length_bytes)
        else {
            return Err(PyTypeError::new_err(
                "`from_arrays` takes its columns by name: `time_ns`, `op`, `offset_bytes` and \
                 `length_bytes`",
            ));
        };
        let depth = match (self::replay(replay).or_raise(py)?, iodepth) {
            (Replay::Timed, None) => 0,
            (Replay::Closed, depth) => depth.unwrap_or(CLOSED_QUEUE_DEPTH).max(1),
            (Replay::Timed, Some(_)) => {
                let error = Error::input("`iodepth` needs `replay=\"closed\"`");
                return Err(error).or_raise(py);
            }
        };
        // NumPy's conversions, checked, are easier said in Python.
        let arguments = (time_ns, op, offset_bytes, length_bytes, fua);
        let columns = py
            .import("lodger._columns")?
            .call_method1("pack", arguments)?;
        restore_trace(py, name, columns.extract()?, fit, depth)
    }

    /// "fio", "logging" or "trace".
    #[getter]
    fn kind(&self) -> &'static str {
        match *self.0 {
            WorkloadFile::Fio { .. } => "fio",
            WorkloadFile::Logging { .. } => "logging",
            WorkloadFile::Trace { .. } => "trace",
        }
    }

    /// Its file, as it was named.
    #[getter]
    fn name(&self) -> &str {
        match &*self.0 {
            WorkloadFile::Fio { name, .. } | WorkloadFile::Logging { name, .. } => name,
            WorkloadFile::Trace { trace, .. } => trace.name(),
        }
    }

    /// The text of a job file.
    #[getter]
    fn text(&self) -> Option<&str> {
        match &*self.0 {
            WorkloadFile::Fio { text, .. } | WorkloadFile::Logging { text, .. } => Some(text),
            WorkloadFile::Trace { .. } => None,
        }
    }

    /// What a trace was taken for, and what had to be assumed or left out.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.notes()
    }

    /// Requests of a trace.
    #[getter]
    fn requests(&self) -> Option<usize> {
        match &*self.0 {
            WorkloadFile::Fio { .. } | WorkloadFile::Logging { .. } => None,
            WorkloadFile::Trace { trace, .. } => Some(trace.len()),
        }
    }

    /// Raises what `simulate` would raise about the workload on this drive; returns what had to be
    /// done to make it fit.
    #[pyo3(signature = (drive, *, seed = 0))]
    fn check(&self, py: Python<'_>, drive: &Drive, seed: u64) -> PyResult<Vec<String>> {
        let spec = &drive.parsed.spec;
        let made = py.detach(|| self.0.workload(spec, seed));
        Ok(made.or_raise(py)?.1)
    }

    fn __repr__(&self) -> String {
        let what = match &*self.0 {
            WorkloadFile::Fio { .. } => "fio job file".to_owned(),
            WorkloadFile::Logging { .. } => "model of database logging".to_owned(),
            WorkloadFile::Trace { description, .. } => description.summary.clone(),
        };
        format!("<lodger.Workload {}: {what}>", self.name())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let native = py.import("lodger._native")?;
        let reduced = match &*self.0 {
            WorkloadFile::Fio { name, text, .. } => {
                let restore = native.getattr("restore_fio")?;
                (restore, (name, text)).into_pyobject(py)?
            }
            WorkloadFile::Logging {
                name, text, choice, ..
            } => {
                let restore = native.getattr("restore_logging")?;
                let commit = choice.commit.map(Commit::name);
                (restore, (name, text, commit, choice.clients)).into_pyobject(py)?
            }
            WorkloadFile::Trace {
                trace, fit, mode, ..
            } => {
                let restore = native.getattr("restore_trace")?;
                let columns = trace_columns(py, trace)?;
                let arguments = (trace.name(), columns, fit_name(*fit), queue_depth(*mode));
                (restore, arguments).into_pyobject(py)?
            }
        };
        Ok(reduced.into_any())
    }
}

fn open(py: Python<'_>, path: PathBuf, options: TraceOptions) -> PyResult<Workload> {
    let source = supervise(py, None, None, |_| WorkloadFile::open(&path, &options))?;
    Ok(Workload(Arc::new(source.or_raise(py)?)))
}

fn replay(word: &str) -> Result<Replay, Error> {
    match word {
        "timed" => Ok(Replay::Timed),
        "closed" => Ok(Replay::Closed),
        _ => Err(Error::input(format!(
            "`replay` must be `timed` or `closed`, found `{}`",
            word.escape_debug()
        ))),
    }
}

fn fit_name(fit: Fit) -> &'static str {
    match fit {
        Fit::Error => "error",
        Fit::Wrap => "wrap",
        Fit::Scale => "scale",
    }
}

/// 0 for a timed replay.
fn queue_depth(mode: Mode) -> u32 {
    match mode {
        Mode::Timed => 0,
        Mode::Closed { queue_depth } => queue_depth,
    }
}

/// Time (ps), operation, offset, length and force unit access of every request, as bytes.
type Columns<'a> = (
    Cow<'a, [u8]>,
    Cow<'a, [u8]>,
    Cow<'a, [u8]>,
    Cow<'a, [u8]>,
    Cow<'a, [u8]>,
);

fn trace_columns<'py>(py: Python<'py>, trace: &Trace) -> PyResult<Bound<'py, PyTuple>> {
    let records = || trace.records();
    let number = |of: &dyn Fn(Record) -> u64| -> Vec<u8> {
        records()
            .flat_map(|record| of(record).to_ne_bytes())
            .collect()
    };
    let byte = |of: &dyn Fn(Record) -> u8| -> Vec<u8> { records().map(of).collect() };
    PyTuple::new(
        py,
        [
            PyBytes::new(py, &number(&|record| record.time_ps)),
            PyBytes::new(py, &byte(&|record| columns::op_number(record.op))),
            PyBytes::new(py, &number(&|record| record.offset_bytes)),
            PyBytes::new(py, &number(&|record| record.length_bytes)),
            PyBytes::new(py, &byte(&|record| u8::from(record.fua))),
        ],
    )
}

/// Requests in columns as a trace.
fn from_columns(name: &str, columns: &Columns<'_>) -> Result<Trace, Error> {
    let (time_ps, op, offset, length, fua) = columns;
    let count = op.len();
    let whole = [time_ps, offset, length]
        .iter()
        .all(|column| column.len() == 8 * count);
    if !whole || fua.len() != count {
        return Err(Error::input(
            "the columns of a trace must be of equal length",
        ));
    }
    if count == 0 {
        return Err(Error::input("a trace must have a request at least"));
    }
    let times = columns::to_u64(time_ps).zip(op.iter().zip(fua.iter()));
    let places = columns::to_u64(offset).zip(columns::to_u64(length));
    let mut records = Vec::with_capacity(count);
    for (index, ((time_ps, (&op, &fua)), (offset_bytes, length_bytes))) in
        times.zip(places).enumerate()
    {
        let Some(op) = columns::op_of(op) else {
            let message = format!("request {index}: `op` must be 0 to 3, found {op}");
            let hint = "0 read, 1 write, 2 trim, 3 flush, or these words";
            return Err(Error::input(message).hint(hint));
        };
        let flush = op == Op::Flush;
        if !flush && !(1..=LENGTH_BYTES_MAX).contains(&length_bytes) {
            let message = format!(
                "request {index}: `length_bytes` must be between 1 and 2^40, found {length_bytes}"
            );
            return Err(Error::input(message));
        }
        records.push(Record {
            time_ps,
            op,
            fua: fua != 0,
            offset_bytes: if flush { 0 } else { offset_bytes },
            length_bytes: if flush { 0 } else { length_bytes },
        });
    }
    Ok(Trace::from_records(name, records))
}

/// Every option that fio knows, under all its names.
#[pyfunction]
pub fn fio_options() -> Vec<&'static str> {
    let options = lodger_workload::fio::known_options();
    let named = options
        .into_iter()
        .flat_map(|option| std::iter::once(option.name).chain(option.aliases));
    named.collect()
}

/// A job file: from text, and for `pickle`.
#[pyfunction]
pub fn restore_fio(name: String, text: String) -> Workload {
    Workload(Arc::new(WorkloadFile::fio(name, text)))
}

/// A model of database logging: for `pickle`.
#[pyfunction]
#[pyo3(signature = (name, text, commit, clients))]
pub fn restore_logging(
    py: Python<'_>,
    name: &str,
    text: String,
    commit: Option<&str>,
    clients: Option<u32>,
) -> PyResult<Workload> {
    Workload::from_logging(text, name).committing(py, commit, clients)
}

/// A trace from columns: for arrays, and for `pickle`. A queue depth of 0 means timed.
#[pyfunction]
pub fn restore_trace(
    py: Python<'_>,
    name: &str,
    columns: Columns<'_>,
    fit: &str,
    queue_depth: u32,
) -> PyResult<Workload> {
    let trace = py.detach(|| from_columns(name, &columns)).or_raise(py)?;
    let requests = trace.len() as u64;
    let description = Description {
        format: Format::Csv,
        time_unit: TimeUnit::Picoseconds,
        summary: format!("{requests} requests from arrays"),
        device: None,
        devices: Vec::new(),
        requests,
        notes: Vec::new(),
    };
    let mode = match queue_depth {
        0 => Mode::Timed,
        queue_depth => Mode::Closed { queue_depth },
    };
    Ok(Workload(Arc::new(WorkloadFile::Trace {
        trace,
        description,
        fit: fit.parse().or_raise(py)?,
        mode,
    })))
}
