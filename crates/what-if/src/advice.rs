//! How much host memory a trace needs.

use crate::question::{Advise, too_long, within_limits};
use lodger_run::advise::{Advised, Goal, advise};
use lodger_run::{Error, ErrorKind, WorkloadFile};
use lodger_workload::trace::{self, Fit, Mode};
use serde_json::{Value, json};

/// Longest trace, bytes: a run a second, and there are several.
const TRACE_BYTES_MAX: usize = 8 << 20;

/// # Errors
/// If the trace cannot be read, or the drive has no use for host memory.
pub(crate) fn answer(question: &Advise) -> Result<Value, Error> {
    let length = question.trace.len();
    if length > TRACE_BYTES_MAX {
        let most = TRACE_BYTES_MAX >> 20;
        let message = format!("the trace is longer than {most} MiB: too long for a page");
        return Err(Error::input(message).hint("`lodger advise FILE --drive NAME` takes any"));
    }
    let config = question.setup.config()?;
    let options = trace::Options::default();
    let (trace, description) = trace::load(question.trace.as_bytes(), &question.name, &options)?;
    let source = WorkloadFile::Trace {
        trace,
        description,
        // What lies beyond the drive comes from a larger one: the page has no place for options.
        fit: Fit::Wrap,
        mode: Mode::Timed,
    };
    let mut notes = source.notes();
    let spec = config.spec();
    notes.extend(source.workload(spec, config.seed)?.1);
    let make = |seed| Ok(source.workload(spec, seed)?.0);
    let advice = advise(&config, &make, Goal::default(), &|progress, _| {
        within_limits(progress)
    });
    let advice = advice.map_err(|error| match error.kind {
        ErrorKind::Interrupted => too_long(),
        _ => error,
    })?;
    Ok(json!({"advice": advice.json(), "notes": notes}))
}
