//! `lodger.Workload`.

use crate::arguments::{Given, PATH, SEED, TEXT, Takes};
use crate::columns;
use crate::drive::Drive;
use crate::errors::{OrRaise, in_python};
use crate::supervise::supervise;
use lodger_core::Op;
use lodger_run::{Error, LoggingChoice, Replay, TraceOptions, WorkloadFile};
use lodger_workload::logging::Commit;
use lodger_workload::trace::{
    self, CLOSED_QUEUE_DEPTH, Description, DeviceChoice, Fit, Format, Mode, Record, TimeUnit, Trace,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::borrow::Cow;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

/// Longest request: far above what any drive takes, and what a trace can hold.
const LENGTH_BYTES_MAX: u64 = 1 << 40;

const NEW: Takes = Takes {
    function: "Workload",
    places: &["path"],
    needed: 1,
    names: &[],
    renamed: &[],
};
const FROM_FIO: Takes = Takes {
    function: "Workload.from_fio",
    places: &["text"],
    names: &["name"],
    ..NEW
};
const FROM_LOGGING: Takes = Takes {
    function: "Workload.from_logging",
    ..FROM_FIO
};
const COMMITTING: Takes = Takes {
    function: "Workload.committing",
    places: &[],
    needed: 0,
    names: &["commit", "clients"],
    renamed: &[],
};
const REPLAYING: Takes = Takes {
    function: "Workload.replaying",
    names: &["replay", "iodepth", "fit"],
    ..COMMITTING
};
const FROM_TRACE: Takes = Takes {
    function: "Workload.from_trace",
    names: &[
        "format",
        "replay",
        "iodepth",
        "fit",
        "device",
        "time_unit",
        "action",
        "skip_malformed",
    ],
    ..NEW
};
const FROM_ARRAYS: Takes = Takes {
    function: "Workload.from_arrays",
    names: &[
        "time_ns",
        "op",
        "offset_bytes",
        "length_bytes",
        "fua",
        "name",
        "replay",
        "iodepth",
        "fit",
    ],
    renamed: &[(
        "time_us",
        "`time_us` is `time_ns` now, in nanoseconds as all times",
    )],
    ..COMMITTING
};
const CHECK: Takes = Takes {
    function: "Workload.check",
    places: &["drive"],
    names: &["seed"],
    ..NEW
};

/// What messages say of arguments that several functions have.
const DEPTH: &str = "a whole number from 1 to 4294967295";
const REPLAYS: &str = "`timed` or `closed`";
const FITS: &str = "`error`, `wrap` or `scale`";

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

    fn chosen(&self, py: Python<'_>, commit: Option<&str>, clients: Option<u32>) -> PyResult<Self> {
        let commit = commit.map(str::parse).transpose();
        let commit = commit.map_err(Error::from).or_raise(py)?;
        // What is not given stays, as with `replaying`.
        let before = match &*self.0 {
            WorkloadFile::Logging { choice, .. } => *choice,
            WorkloadFile::Fio { .. } | WorkloadFile::Trace { .. } => LoggingChoice::default(),
        };
        let chosen = LoggingChoice {
            commit: commit.or(before.commit),
            clients: clients.or(before.clients),
            ..before
        };
        let source = WorkloadFile::clone(&self.0).choose(chosen).or_raise(py)?;
        Ok(Workload(Arc::new(source)))
    }
}

#[pymethods]
impl Workload {
    #[new]
    #[pyo3(signature = (*args, **named), text_signature = "(path)")]
    fn py_new(args: &Bound<'_, PyTuple>, named: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let given = NEW.bind(args, named)?;
        open(
            given.py(),
            given.one("path", PATH)?,
            TraceOptions::default(),
        )
    }

    /// The workload of a job file's text. `name` is what messages call it.
    #[staticmethod]
    #[pyo3(signature = (*args, **named), text_signature = "(text, *, name=\"job.fio\")")]
    fn from_fio(args: &Bound<'_, PyTuple>, named: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let given = FROM_FIO.bind(args, named)?;
        let name: Option<String> = given.some("name", TEXT)?;
        let name = name.unwrap_or_else(|| "job.fio".to_owned());
        Ok(restore_fio(name, given.one("text", TEXT)?))
    }

    /// The workload of the text of a model of database logging. `name` is what messages call it.
    #[staticmethod]
    #[pyo3(signature = (*args, **named), text_signature = "(text, *, name=\"logging.toml\")")]
    fn from_logging(
        args: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let given = FROM_LOGGING.bind(args, named)?;
        let name: Option<String> = given.some("name", TEXT)?;
        let name = name.as_deref().unwrap_or("logging.toml");
        let text: String = given.one("text", TEXT)?;
        Ok(Workload(Arc::new(WorkloadFile::logging(name, text))))
    }

    /// A model of database logging with another commit mode ("block", "ba" or "async") or number of
    /// clients than its file says. What is not given stays.
    #[pyo3(signature = (*args, **named), text_signature = "($self, *, commit=None, clients=None)")]
    fn committing(
        &self,
        args: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let given = COMMITTING.bind(args, named)?;
        let commit: Option<String> = given.some("commit", "`block`, `ba` or `async`")?;
        let clients = given.some("clients", "a whole number from 1 to 100000")?;
        self.chosen(given.py(), commit.as_deref(), clients)
    }

    /// A trace replayed in another way: "timed" or "closed", `iodepth` requests at a time of a closed
    /// replay, `fit` for addresses beyond the drive. What is not given stays.
    #[pyo3(
        signature = (*args, **named),
        text_signature = "($self, *, replay=None, iodepth=None, fit=None)"
    )]
    fn replaying(
        &self,
        args: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let given = REPLAYING.bind(args, named)?;
        let py = given.py();
        let replay: Option<String> = given.some("replay", REPLAYS)?;
        let replay = replay
            .as_deref()
            .map(self::replay)
            .transpose()
            .or_raise(py)?;
        let wanted: Option<String> = given.some("fit", FITS)?;
        let wanted = wanted.map(|word| word.parse()).transpose().or_raise(py)?;
        let iodepth = depth(&given)?;
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
                queue_depth: depth.unwrap_or(CLOSED_QUEUE_DEPTH),
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
    #[pyo3(
        signature = (*args, **named),
        text_signature = "(path, *, format=None, replay=\"timed\", iodepth=None, fit=\"error\", \
                          device=None, time_unit=None, action=None, skip_malformed=False)"
    )]
    fn from_trace(args: &Bound<'_, PyTuple>, named: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let given = FROM_TRACE.bind(args, named)?;
        let py = given.py();
        let text = |name: &str, allowed: &str| given.some::<String>(name, allowed);
        let replay = text("replay", REPLAYS)?;
        let fit = text("fit", FITS)?;
        let format = text("format", "the name of a format, such as `csv`")?;
        let device = text("device", "the name of a device, or `all`")?;
        let time_unit = text("time_unit", "a unit of time, such as `us`")?;
        let skip = given.some("skip_malformed", "True or False")?;
        let options = TraceOptions {
            replay: Some(self::replay(replay.as_deref().unwrap_or("timed")).or_raise(py)?),
            iodepth: depth(&given)?,
            fit: Some(fit.as_deref().unwrap_or("error").parse().or_raise(py)?),
            read: trace::Options {
                format: format.map(|word| word.parse().or_raise(py)).transpose()?,
                device: DeviceChoice::typed(device.as_deref()),
                time_unit: time_unit
                    .map(|word| word.parse().or_raise(py))
                    .transpose()?,
                action: given.some("action", "a letter: `Q` (queued) or `D` (issued)")?,
                skip_malformed: skip.unwrap_or(false),
                ..trace::Options::default()
            },
        };
        open(py, given.one("path", PATH)?, options)
    }

    /// A trace from arrays: times in nanoseconds from anywhere and in any order, operations as words
    /// ("read", "write", "trim", "flush") or numbers (0 to 3), places and lengths in bytes.
    ///
    /// All but `time_ns` may be one value for all requests.
    #[staticmethod]
    #[pyo3(
        signature = (*args, **named),
        text_signature = "(*, time_ns, op, offset_bytes, length_bytes, fua=None, name=\"arrays\", \
                          replay=\"timed\", iodepth=None, fit=\"error\")"
    )]
    fn from_arrays(args: &Bound<'_, PyTuple>, named: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let given = FROM_ARRAYS.bind(args, named)?;
        let py = given.py();
        let column = |name: &str| given.one::<Bound<'_, PyAny>>(name, "a column of the requests");
        // NumPy's conversions, checked, are easier said in Python.
        let arguments = (
            column("time_ns")?,
            column("op")?,
            column("offset_bytes")?,
            column("length_bytes")?,
            given.any("fua"),
        );
        let replay: Option<String> = given.some("replay", REPLAYS)?;
        let replay = self::replay(replay.as_deref().unwrap_or("timed")).or_raise(py)?;
        let depth = match (replay, depth(&given)?) {
            (Replay::Timed, None) => 0,
            (Replay::Closed, depth) => depth.unwrap_or(CLOSED_QUEUE_DEPTH),
            (Replay::Timed, Some(_)) => {
                let error = Error::input("`iodepth` needs `replay=\"closed\"`");
                return Err(error).or_raise(py);
            }
        };
        let fit: Option<String> = given.some("fit", FITS)?;
        let name: Option<String> = given.some("name", TEXT)?;
        let columns = py
            .import("lodger._columns")?
            .call_method1("pack", arguments)?;
        let (name, fit) = (name.as_deref(), fit.as_deref());
        let (name, fit) = (name.unwrap_or("arrays"), fit.unwrap_or("error"));
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
        self.0.notes().iter().map(|note| in_python(note)).collect()
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
    #[pyo3(signature = (*args, **named), text_signature = "($self, drive, *, seed=0)")]
    fn check(
        &self,
        args: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<String>> {
        let given = CHECK.bind(args, named)?;
        let drive: Bound<'_, PyAny> = given.one("drive", "a drive")?;
        let drive: PyRef<'_, Drive> = match drive.extract() {
            Ok(drive) => drive,
            Err(_) => return Err(given.wrong("drive", &drive, "a `lodger.Drive`")),
        };
        let seed = given.some("seed", SEED)?.unwrap_or(0);
        let spec = &drive.parsed.spec;
        let made = given.py().detach(|| self.0.workload(spec, seed));
        Ok(made.or_raise(given.py())?.1)
    }

    fn __repr__(&self) -> String {
        let what = match &*self.0 {
            WorkloadFile::Fio { .. } => "fio job file".to_owned(),
            WorkloadFile::Logging { .. } => "model of database logging".to_owned(),
            WorkloadFile::Trace { description, .. } => description.summary.clone(),
        };
        format!("<lodger.Workload {}: {what}>", self.name())
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let html = slf.py().import("lodger._html")?;
        html.call_method1("workload", (slf,))
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

/// Requests at a time.
fn depth(given: &Given<'_>) -> PyResult<Option<u32>> {
    let depth: Option<NonZeroU32> = given.some("iodepth", DEPTH)?;
    Ok(depth.map(NonZeroU32::get))
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
    let made = Workload(Arc::new(WorkloadFile::logging(name, text)));
    made.chosen(py, commit, clients)
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
