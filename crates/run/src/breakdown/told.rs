//! A breakdown as a table and as JSON.

use super::{Breakdown, PERCENTILES, Sum};
use crate::report::number::{duration_ns, grouped};
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
    for (name, direction) in DIRECTIONS.iter().zip(&breakdown.directions) {
        let all = direction.all();
        if all.requests > 0 {
            let near = PERCENTILES.map(|(_, percent)| direction.near(percent));
            write_table(&mut out, name, &all, &near).expect("writing to a string does not fail");
        }
    }
    out
}

fn write_table(out: &mut String, name: &str, all: &Sum, near: &[Sum]) -> std::fmt::Result {
    let requests = grouped(all.requests);
    writeln!(out, "\nWhere the time of {requests} {name} requests went:")?;
    write!(out, "  {:<14}{:>10}{:>8}", "part", "mean", "share")?;
    for (name, _) in PERCENTILES {
        write!(out, "{:>12}", format!("near {}", name.replace('_', ".")))?;
    }
    writeln!(out)?;
    for part in Part::ALL {
        let sums = [all].into_iter().chain(near);
        if sums.map(|sum| sum.parts_ps[part as usize]).sum::<u128>() == 0 {
            continue;
        }
        let share = 100.0 * all.mean_ns(part) / all.latency_ns();
        let mean = duration_ns(all.mean_ns(part));
        write!(
            out,
            "  {:<14}{mean:>10}{:>8}",
            part.name(),
            format!("{share:.1}%")
        )?;
        for sum in near {
            write!(out, "{:>12}", duration_ns(sum.mean_ns(part)))?;
        }
        writeln!(out)?;
    }
    let mean = duration_ns(all.latency_ns());
    write!(out, "  {:<14}{mean:>10}{:>8}", "latency", "100.0%")?;
    for sum in near {
        write!(out, "{:>12}", duration_ns(sum.latency_ns()))?;
    }
    writeln!(out)
}
