//! A breakdown as a table and as JSON.

use super::{Breakdown, PERCENTILES, Sum};
use crate::report::number::{count_of, duration_ns};
use lodger_core::observe::Part;
use serde_json::{Map, Value, json};
use std::fmt::Write;

const DIRECTIONS: [&str; 4] = ["read", "write", "trim", "sync"];

fn sum_json(sum: &Sum) -> Value {
    let parts = Part::ALL.map(|part| (part.name().to_owned(), json!(sum.mean_ns(part))));
    json!({
        "requests": sum.requests,
        "latency_ns": sum.latency_ns(),
        "parts_ns": parts.into_iter().collect::<Map<_, _>>(),
    })
}

/// The object `lodger.breakdown`.
pub(crate) fn json(breakdown: &Breakdown) -> Value {
    let directions = DIRECTIONS.iter().zip(&breakdown.directions);
    let directions = directions.map(|(name, direction)| {
        let mut sums = Map::new();
        sums.insert("mean".to_owned(), sum_json(&direction.all()));
        for (name, percent) in PERCENTILES {
            sums.insert(name.to_owned(), sum_json(&direction.near(percent)));
        }
        ((*name).to_owned(), Value::Object(sums))
    });
    Value::Object(directions.collect())
}

/// A part of requests' time: mean, and means of the requests near each of the percentiles told.
pub(crate) struct PartRow {
    pub(crate) name: &'static str,
    /// Of the mean latency.
    pub(crate) share: f64,
    pub(crate) ns: [f64; 1 + PERCENTILES.len()],
}

/// Direction, requests, and the parts in which any time went, for each direction in which anything was asked.
pub(crate) fn rows(breakdown: &Breakdown) -> Vec<(&'static str, u64, Vec<PartRow>)> {
    let mut all = Vec::new();
    for (name, direction) in DIRECTIONS.iter().zip(&breakdown.directions) {
        let [p50, p99, p99_9] = PERCENTILES.map(|(_, percent)| direction.near(percent));
        let sums = [direction.all(), p50, p99, p99_9];
        if sums[0].requests == 0 {
            continue;
        }
        let rows = Part::ALL.into_iter().map(|part| PartRow {
            name: part.name(),
            share: sums[0].mean_ns(part) / sums[0].latency_ns(),
            ns: sums.each_ref().map(|sum| sum.mean_ns(part)),
        });
        let rows = rows.filter(|row| row.ns.iter().any(|ns| *ns > 0.0));
        all.push((*name, sums[0].requests, rows.collect()));
    }
    all
}

/// The tables, one for each direction in which anything was asked.
pub(crate) fn text(breakdown: &Breakdown) -> String {
    let mut out = String::new();
    for (name, requests, rows) in rows(breakdown) {
        write_table(&mut out, name, requests, &rows).expect("writing to a string does not fail");
    }
    out
}

fn write_table(out: &mut String, name: &str, requests: u64, rows: &[PartRow]) -> std::fmt::Result {
    let requests = count_of(requests, &format!("{name} request"));
    writeln!(out, "\nWhere the time of {requests} went:")?;
    write!(out, "  {:<14}{:>10}{:>8}", "part", "mean", "share")?;
    for (name, _) in PERCENTILES {
        write!(out, "{:>12}", format!("near {}", name.replace('_', ".")))?;
    }
    writeln!(out)?;
    let mut latency_ns = [0.0; 1 + PERCENTILES.len()];
    for row in rows {
        write_row(out, row)?;
        for (sum, ns) in latency_ns.iter_mut().zip(row.ns) {
            *sum += ns;
        }
    }
    let latency = PartRow {
        name: "latency",
        share: 1.0,
        ns: latency_ns,
    };
    write_row(out, &latency)
}

fn write_row(out: &mut String, row: &PartRow) -> std::fmt::Result {
    let [mean, near @ ..] = row.ns;
    let share = format!("{:.1}%", 100.0 * row.share);
    write!(out, "  {:<14}{:>10}{share:>8}", row.name, duration_ns(mean))?;
    for ns in near {
        write!(out, "{:>12}", duration_ns(ns))?;
    }
    writeln!(out)
}
