//! What is in a trace, and traces in other formats.

use crate::errors::{OrRaise, in_python};
use crate::supervise::supervise;
use crate::workload::Workload;
use lodger_run::{Error, WorkloadFile, report};
use lodger_workload::trace::convert::convert;
use lodger_workload::trace::format::Format;
use lodger_workload::trace::info::info;
use lodger_workload::trace::{Description, Trace};
use pyo3::prelude::*;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

fn trace(source: &WorkloadFile) -> Result<(&Trace, &Description), Error> {
    match source {
        WorkloadFile::Trace {
            trace, description, ..
        } => Ok((trace, description)),
        WorkloadFile::Fio { name, .. } | WorkloadFile::Logging { name, .. } => Err(Error::input(
            format!("`{}` is no trace", name.escape_debug()),
        )
        .hint("give a block trace, or `Workload.from_trace` its format")),
    }
}

/// What `lodger trace info` says, as JSON and as text.
#[pyfunction]
pub fn trace_info(py: Python<'_>, workload: &Workload) -> PyResult<(String, String)> {
    let source = workload.source();
    let told = supervise(py, None, None, |_| {
        let (trace, description) = trace(&source)?;
        let found = info(trace);
        let json = format!("{:#}\n", report::trace_json(&found, description));
        Ok::<_, Error>((json, format!("{description}\n{found}")))
    })?;
    told.or_raise(py)
}

/// Writes a trace to a file in another format; returns what was lost on the way.
#[pyfunction]
pub fn trace_convert(
    py: Python<'_>,
    workload: &Workload,
    to: &str,
    path: PathBuf,
) -> PyResult<Vec<String>> {
    let to: Format = to
        .parse()
        .map_err(|error| Error {
            message: format!("`to`: {error}"),
            ..Error::from(error)
        })
        .or_raise(py)?;
    let source = workload.source();
    let written = supervise(py, None, None, |_| {
        let (trace, _) = trace(&source)?;
        let failed = |error: std::io::Error| {
            let why = lodger_run::reason(&error);
            Error::input(format!("cannot write `{}`: {why}", path.display()))
        };
        let mut file = BufWriter::new(File::create(&path).map_err(failed)?);
        let losses = convert(trace, to, &mut file)?;
        file.flush().map_err(failed)?;
        Ok::<_, Error>(losses.notes.iter().map(|note| in_python(note)).collect())
    })?;
    written.or_raise(py)
}
