//! What other experiments say against a verdict on the map. A verdict that one of them contradicts is none.

use crate::findings::{Findings, MapArm};

/// Means further apart than this are not alike.
const ALIKE: f64 = 1.2;
/// The same of means with many reads in flight, where reads get in each other's way.
const ALIKE_DEEP: f64 = 1.3;
/// Spans from here on: no read cache has a part in them, and all dies are at work.
const SPAN_MIN: f64 = (1u64 << 30) as f64;

/// What speaks against "reads are as fast everywhere".
pub(super) fn against_flat(findings: &Findings, arm: &MapArm) -> Option<String> {
    let random = findings.quantities.get("random_read_qd1");
    if let Some(rate) = random.map(|random| random.value.estimate) {
        let (all, near) = (1e9 / rate.max(1e-9), arm.near_mean_ns);
        if all > ALIKE * near {
            return Some(format!(
                "random reads over the whole drive take {:.1} us on average, one at a time, and reads near \
                 each other {:.1} us (queue-depth)",
                all / 1e3,
                near / 1e3
            ));
        }
    }
    findings.spans.iter().find_map(|(state, spans)| {
        let mut wide = spans.iter().filter(|span| span.0 >= SPAN_MIN);
        let first = wide.next()?;
        let last = wide.next_back()?;
        (last.1 > ALIKE_DEEP * first.1).then(|| {
            let [from, to] = [first.0, last.0].map(super::size_text);
            format!(
                "random reads over {to} take {:.2} times as long as over {from}, host memory {state} \
                 (working-set)",
                last.1 / first.1
            )
        })
    })
}

/// What speaks against "host memory makes no difference".
pub(super) fn against_no_difference(findings: &Findings) -> Option<String> {
    let (on, off) = (findings.spans.get("on")?, findings.spans.get("off")?);
    let both = on.iter().zip(off).filter(|(on, _)| on.0 >= SPAN_MIN);
    let apart: Vec<(f64, f64)> = both
        .map(|(on, off)| (on.0, off.1 / on.1))
        .filter(|(_, ratio)| *ratio > ALIKE_DEEP)
        .collect();
    let (span, ratio) = apart.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (apart.len() >= 2).then(|| {
        format!(
            "random reads over {} take {ratio:.2} times as long with host memory off as with it on \
             (working-set)",
            super::size_text(*span)
        )
    })
}
