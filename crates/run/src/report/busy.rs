//! How busy the parts of a drive were: each kind by its mean, and the one of a kind that was busiest, which is what a
//! load that lies on one die waits for.

use crate::runner::{Busy, RunResult};
use serde_json::{Map, Value, json};
use std::fmt::{self, Write};

/// Busy for half of the time, and so much more than the mean of its kind: worth a line of the text, and a row of a
/// comparison.
const BUSY: f64 = 0.5;
const ABOVE_MEAN: f64 = 0.05;

/// Share of the simulated time of one kind of resource, mean of its instances.
pub(crate) fn utilisation(result: &RunResult, kind: &str) -> f64 {
    find(result, kind).map_or(0.0, |busy| busy.mean)
}

/// Share of the time of the busiest of a kind, and whether it was much busier than the others.
pub(crate) fn busiest(result: &RunResult, kind: &str) -> (f64, bool) {
    find(result, kind).map_or((0.0, false), |busy| (busy.most, stands_out(busy)))
}

fn find<'a>(result: &'a RunResult, kind: &str) -> Option<&'a Busy> {
    result.utilisation.iter().find(|busy| busy.kind == kind)
}

fn stands_out(busy: &Busy) -> bool {
    busy.most >= BUSY.max(busy.mean + ABOVE_MEAN)
}

/// The objects `utilisation` and `busiest`: of the latter only kinds of which there are several.
pub(super) fn json(result: &RunResult) -> (Value, Value) {
    let kinds = result.utilisation.iter();
    let means: Map<_, _> = kinds
        .clone()
        .map(|busy| (busy.kind.to_owned(), json!(busy.mean)))
        .collect();
    let several = kinds.filter(|busy| busy.number > 1);
    let busiest: Map<_, _> = several
        .map(|busy| {
            let which = json!({ "index": busy.busiest, "utilisation": busy.most });
            (busy.kind.to_owned(), which)
        })
        .collect();
    (means.into(), busiest.into())
}

pub(super) fn write_text(out: &mut String, result: &RunResult) -> fmt::Result {
    let kinds = result.utilisation.iter();
    let means: Vec<String> = kinds
        .clone()
        .map(|busy| format!("{}={:.1}%", busy.kind, 100.0 * busy.mean))
        .collect();
    writeln!(out, "  utilisation  : {}", means.join(", "))?;
    let alone: Vec<String> = kinds
        .filter(|busy| stands_out(busy))
        .map(|busy| {
            let Busy { kind, busiest, .. } = busy;
            format!("{kind} {busiest}={:.1}%", 100.0 * busy.most)
        })
        .collect();
    if alone.is_empty() {
        return Ok(());
    }
    writeln!(out, "     busiest   : {}", alone.join(", "))
}
