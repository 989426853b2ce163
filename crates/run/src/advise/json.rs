//! The advice for programs. Sizes in bytes, times in nanoseconds, shares from 0 to 1.

use super::curve::Curve;
use super::goal::{Goal, Slo};
use super::measure::{Latency, Run};
use super::search::Found;
use super::stream::Method;
use super::{Advice, HOST_SIZES, answer, report};
use serde_json::{Value, json};

pub(super) fn value(advice: &Advice) -> Value {
    let curve = advice.curve.as_ref();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "seed": advice.seed,
        "drive": {
            "name": advice.drive.name,
            "model": advice.drive.parsed.spec.name,
            "preferred_bytes": advice.place.preferred_bytes(),
            "min_bytes": advice.place.min_bytes(),
            "power_of_two": advice.place.rounds(),
        },
        "workload": workload(advice),
        "goal": goal(advice.goal),
        "answer": found(advice),
        "curve": curve.map(|curve| self::curve(advice, curve)),
        "runs": advice.rows.iter().map(|row| run(advice, row)).collect::<Vec<_>>(),
        "losses": losses(advice),
        "simulations": advice.simulations,
        "notes": report::notes(advice),
    })
}

fn workload(advice: &Advice) -> Value {
    let run = &advice.reference;
    let asked = advice.curve.as_ref().map(Curve::asked);
    json!({
        "description": advice.workload,
        "reads": run.read.count,
        "writes": run.write.count,
        "open_loop": advice.is_open_loop(),
        "unwritten_share": run.unwritten_bytes as f64 / run.read_bytes.max(1) as f64,
        "map_lookups": asked.map(|asked| asked.lookups),
        "map_lookups_unwritten": asked.map(|asked| asked.absent),
        "map_pages": advice.curve.as_ref().map(Curve::touched_pages),
    })
}

fn goal(goal: Goal) -> Value {
    match goal {
        Goal::Within(share) => json!({"kind": "within", "share": share}),
        Goal::Slo(Slo::Percentile(percent, limit_ns)) => {
            json!({"kind": "percentile", "percent": percent, "limit_ns": limit_ns})
        }
        Goal::Slo(Slo::Mean(limit_ns)) => json!({"kind": "mean", "limit_ns": limit_ns}),
        Goal::Slo(Slo::Iops(limit)) => json!({"kind": "iops", "limit": limit}),
    }
}

fn found(advice: &Advice) -> Value {
    let (enough_bytes, below_bytes, best_bytes) = match advice.found {
        Found::Off => (Some(0), None, None),
        Found::Size {
            enough_bytes,
            below_bytes,
        } => (Some(enough_bytes), Some(below_bytes), None),
        Found::Nothing { best_bytes } => (None, None, Some(best_bytes)),
    };
    json!({
        "met": enough_bytes.is_some(),
        "enough_bytes": enough_bytes,
        "not_enough_bytes": below_bytes,
        "best_bytes": best_bytes,
        "text": answer::answer(advice),
    })
}

fn curve(advice: &Advice, curve: &Curve) -> Value {
    let points = curve.points.iter().map(|point| {
        json!({
            "hmb_bytes": point.hmb_bytes,
            "units": advice.place.units(point.hmb_bytes),
            "hit_ratio": point.hit_ratio,
        })
    });
    let map = advice.place.map.as_ref();
    json!({
        "method": match curve.method {
            Method::StackDistances => "stack_distances",
            Method::Direct => "direct",
        },
        "sampled_share": curve.sampled_share(),
        "unit_bytes": map.map(lodger_core::spec::MapTierSpec::unit_bytes),
        "useful_bytes": curve.useful_bytes,
        "knees_bytes": curve.knees,
        "points": points.collect::<Vec<_>>(),
    })
}

fn latency(latency: &Latency) -> Value {
    json!({
        "requests": latency.count,
        "mean_ns": latency.mean_ns,
        "p50_ns": latency.p50_ns,
        "p99_ns": latency.p99_ns,
        "p99_9_ns": latency.p99_9_ns,
    })
}

fn run(advice: &Advice, (bytes, run): &(u64, Run)) -> Value {
    json!({
        "hmb_bytes": bytes,
        "granted_bytes": advice.place.granted_bytes(*bytes),
        "usable_bytes": advice.place.usable_bytes(*bytes),
        // Sizes of equal effect share a run.
        "simulated_at_bytes": run.hmb_bytes,
        "hit_ratio": run.lookups.hit_ratio(),
        "hit_ratio_own_memory": run.lookups.share(run.lookups.near),
        "joined_ratio": run.lookups.share(run.lookups.joined),
        "curve_hit_ratio": advice.curve.as_ref().filter(|_| run.lookups.all > 0)
            .map(|curve| curve.hit_ratio(*bytes)),
        "iops": run.iops,
        "transactions_per_second": run.transactions_per_second,
        "commit": (run.commit.count > 0).then(|| latency(&run.commit)),
        "read": latency(&run.read),
        "write": latency(&run.write),
        "remark": report::remark(advice, *bytes),
    })
}

fn losses(advice: &Advice) -> Value {
    let sizes = HOST_SIZES.iter().filter_map(|bytes| {
        let loss = advice.loss(advice.run(*bytes)?);
        Some(json!({
            "hmb_bytes": bytes,
            "iops_lost": loss.rate,
            "mean_added": loss.mean,
            "p99_added": loss.p99,
        }))
    });
    json!({
        "against_bytes": advice.place.yardstick_bytes(),
        "sizes": sizes.collect::<Vec<_>>(),
    })
}
