//! The report for programs.

use crate::findings::Quantity;
use crate::infer::Verdict;
use crate::outcome::Outcome;
use crate::stats::Estimate;
use serde_json::{Map, Value, json};

/// A number as JSON has it: an open end is null.
fn number(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn estimate(value: Option<&Estimate>) -> Value {
    match value {
        None => Value::Null,
        Some(value) => json!({
            "estimate": number(value.estimate.round()),
            "low": number(value.low.round()),
            "high": number(value.high.round()),
        }),
    }
}

fn role(verdict: &Verdict) -> Value {
    let mut size = estimate(verdict.size_bytes.as_ref());
    if verdict.size_is_range && verdict.size_bytes.is_some() {
        // Known are the ends, and that it lies between.
        size["estimate"] = Value::Null;
    }
    json!({
        "tier": verdict.tier.name(),
        "confidence": number(verdict.confidence),
        "runs": verdict.runs,
        "runs_agree": verdict.agree,
        "size_bytes": size,
        "reach_bytes": estimate(verdict.reach_bytes.as_ref()),
        "unit_bytes": estimate(verdict.unit_bytes.as_ref()),
        "evidence": verdict.evidence,
    })
}

fn quantity(quantity: &Quantity) -> Value {
    json!({
        "estimate": number(quantity.value.estimate),
        "low": number(quantity.value.low),
        "high": number(quantity.value.high),
        "unit": quantity.unit,
        "confidence": number(quantity.confidence),
    })
}

/// The report. `raw` attaches every point measured.
#[must_use]
pub fn json(outcome: &Outcome, raw: bool) -> Value {
    let target = &outcome.target;
    let roles: Map<String, Value> = outcome
        .roles
        .iter()
        .map(|(name, verdict)| ((*name).to_owned(), role(verdict)))
        .collect();
    let quantities: Map<String, Value> = outcome
        .findings
        .quantities
        .iter()
        .map(|(name, value)| (name.clone(), quantity(value)))
        .collect();
    let skipped: Vec<Value> = outcome
        .skipped
        .iter()
        .map(|skipped| json!({"experiment": skipped.experiment, "reason": skipped.reason}))
        .collect();
    let mut report = json!({
        "target": target.name,
        "roles": roles,
        "quantities": quantities,
        "skipped": skipped,
        "partial": outcome.partial,
        "drive": {
            "model": target.model,
            "serial": target.serial,
            "firmware": target.firmware,
            "capacity_bytes": target.capacity_bytes,
            "hmb_granted_bytes": target.hmb.granted_bytes(),
        },
        "experiments": experiments(outcome),
        "replacement": outcome.findings.replacement_verdict,
        "notes": notes(outcome),
        "usage": {
            "reads": outcome.usage.reads,
            "read_bytes": outcome.usage.read_bytes,
            "writes": outcome.usage.writes,
            "written_bytes": outcome.usage.written_bytes,
            "flushes": outcome.usage.flushes,
            "seconds": number(outcome.elapsed.as_secs_f64()),
        },
    });
    if raw {
        let series: Map<String, Value> = outcome
            .raw
            .iter()
            .map(|(name, series)| {
                let points: Vec<Value> = series
                    .points
                    .iter()
                    .map(|(x, y)| json!([number(*x), number(*y)]))
                    .collect();
                let value = json!({"x": series.x, "y": series.y, "points": points});
                (name.clone(), value)
            })
            .collect();
        report["raw"] = Value::Object(series);
    }
    report
}

/// What each was expected to take, and took.
fn experiments(outcome: &Outcome) -> Vec<Value> {
    let each = outcome.expected.iter().map(|expected| {
        let spent = outcome.spent.get(expected.experiment);
        json!({
            "experiment": expected.experiment,
            "expected_seconds": number(expected.time.as_secs_f64().round()),
            "expected_read_bytes": expected.cost.read_bytes,
            "written_bytes_max": expected.cost.written_bytes,
            "seconds": spent.map(|spent| number(spent.time.as_secs_f64())),
            "read_bytes": spent.map(|spent| spent.read_bytes),
            "written_bytes": spent.map(|spent| spent.written_bytes),
        })
    });
    each.collect()
}

fn notes(outcome: &Outcome) -> Vec<&String> {
    let own = outcome.findings.notes.iter();
    outcome.target.notes.iter().chain(own).collect()
}
