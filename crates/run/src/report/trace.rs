//! What is in a trace, for programs.

use lodger_workload::trace::Description;
use lodger_workload::trace::info::{Info, LatencyInfo, OpInfo};
use serde_json::{Value, json};

/// The report as a JSON value.
#[must_use]
pub fn trace_json(info: &Info, description: &Description) -> Value {
    let op = |op: &OpInfo| {
        json!({
            "requests": op.requests,
            "bytes": op.bytes,
            "sequential_share": op.sequential_share,
        })
    };
    let sizes: Vec<Value> = info
        .sizes
        .iter()
        .map(|size| {
            json!({
                "length_bytes": size.length_bytes,
                "reads": size.reads,
                "writes": size.writes,
            })
        })
        .collect();
    let took = |took: &LatencyInfo| {
        json!({
            "requests": took.requests,
            "mean": took.mean_ns,
            "p50": took.p50_ns,
            "p99": took.p99_ns,
            "p99_9": took.p99_9_ns,
            "max": took.max_ns,
        })
    };
    let recorded = info.recorded.as_ref().map(|recorded| {
        json!({
            "read": took(&recorded.read),
            "write": took(&recorded.write),
        })
    });
    let gaps = &info.interarrival;
    json!({
        "name": info.name,
        "format": description.format.name(),
        "time_unit": description.time_unit.to_string(),
        "device": description.device,
        "notes": description.notes,
        "requests": info.requests,
        "read": op(&info.read),
        "write": op(&info.write),
        "trim": op(&info.trim),
        "flushes": info.flushes,
        "fua_writes": info.fua_writes,
        "unaligned_4k_share": info.unaligned_4k_share,
        "unaligned_512_share": info.unaligned_512_share,
        "sizes": sizes,
        "first_byte": info.first_byte,
        "end_byte": info.end_byte,
        "footprint_bytes": info.footprint_bytes,
        "footprint_is_lower_bound": info.footprint_is_lower_bound,
        "duration_ps": info.duration_ps,
        "mean_rate_per_s": info.mean_rate_per_s,
        "peak_rate_per_s": info.peak_rate_per_s,
        "peak_window_ps": info.peak_window_ps,
        "interarrival_ps": {
            "min": gaps.min_ps,
            "p10": gaps.p10_ps,
            "p50": gaps.p50_ps,
            "p90": gaps.p90_ps,
            "p99": gaps.p99_ps,
            "max": gaps.max_ps,
        },
        "recorded_ns": recorded,
    })
}
