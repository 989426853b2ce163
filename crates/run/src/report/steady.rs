//! A steady state, found or not, as fio tells it.

use super::number::{bandwidth, short};
use crate::steady::SteadyResult;
use serde_json::{Value, json};

fn name(found: &SteadyResult) -> &'static str {
    match found.wanted.iops {
        true => "iops",
        false => "bw",
    }
}

fn unit(found: &SteadyResult) -> &'static str {
    match found.wanted.percent {
        true => "%",
        false => "",
    }
}

pub(super) fn text(found: &SteadyResult) -> String {
    let (iops, bw) = found.means();
    let attained = if found.attained { "yes" } else { "no" };
    let what = if found.wanted.slope {
        "slope"
    } else {
        "mean dev"
    };
    format!(
        "  steadystate  : attained={attained}, bw={}, iops={}, {} {what}={:.3}{}",
        bandwidth(bw as f64),
        short(iops as f64, 4, 1000, ""),
        name(found),
        finite(found.criterion),
        unit(found)
    )
}

/// Of rates that are all zero nothing is a share; no number there is no JSON.
fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}

pub(super) fn json(found: &SteadyResult) -> Value {
    let (wanted, unit) = (found.wanted, unit(found));
    let slope = if wanted.slope { "_slope" } else { "" };
    let (iops_mean, bw_mean) = found.means();
    // Seconds that never came are zeros in fio's lists.
    let seconds = |of: fn(&(u64, u64)) -> u64| -> Vec<u64> {
        let all = found.seconds.iter().map(of).chain(std::iter::repeat(0));
        all.take(wanted.duration_s as usize).collect()
    };
    json!({
        "ss": format!("{}{slope}:{:.6}{unit}", name(found), wanted.limit),
        "duration": wanted.duration_s,
        "attained": u8::from(found.attained),
        "criterion": format!("{:.6}{unit}", finite(found.criterion)),
        "max_deviation": finite(found.deviation),
        "slope": finite(found.slope),
        "data": {
            "bw_mean": bw_mean,
            "iops_mean": iops_mean,
            "iops": seconds(|second| second.0),
            "bw": seconds(|second| second.1),
        },
    })
}
