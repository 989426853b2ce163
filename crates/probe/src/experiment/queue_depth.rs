//! Queue depth: how do random reads scale?
//!
//! **Method.** Random 4 KiB reads over the whole drive with 1, 2, 4 ... 128 in flight.
//! **Cost.** 20,000 reads; 1 s to 2 s. Writes nothing.
//! **Cannot tell** why it stops scaling: flash, controller, link and host all may be the limit.

use super::{About, enter};
use crate::bench::{Bench, Stop};
use crate::cost::{Cost, Scale};
use crate::findings::Findings;
use crate::stats::Estimate;
use crate::target::{HmbState, Io};

/// What is said before it starts.
pub const ABOUT: About = About {
    name: "queue-depth",
    question: "how do random reads scale with the number in flight?",
    method: "random reads over the whole drive with 1 to 128 in flight",
    limits: "not why the scaling ends",
    writes: false,
    cost,
};

/// 18,000 reads with 1 to 128 in flight: those with few take the time.
fn cost(scale: &Scale) -> Cost {
    Cost {
        reads_in_turn: 4_000,
        ..Cost::reads(18_200, scale)
    }
}

/// Does it.
pub fn run(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Stop> {
    if bench.can_switch_hmb() {
        enter(bench, Some(HmbState::On))?;
    }
    let page = bench.page();
    let pages = bench.capacity() / page;
    let mut best = 0.0f64;
    for depth in [1u32, 2, 4, 8, 16, 32, 64, 128] {
        let count = 1000 + 40 * depth;
        let ios: Vec<Io> = (0..count)
            .map(|_| Io::read(bench.below(pages) * page, page as u32))
            .collect();
        let samples = bench.batch(&ios, depth)?;
        let end = samples.iter().map(|s| s.completed_ns()).max().unwrap_or(1);
        let rate = f64::from(count) / (end.max(1) as f64 * 1e-9);
        let point = (f64::from(depth), rate);
        bench.note("queue depth", "reads in flight", "reads/s", point);
        if [1, 32].contains(&depth) {
            let value = Estimate::new(rate, 0.95 * rate, 1.05 * rate);
            findings.quantity(&format!("random_read_qd{depth}"), "1/s", value);
        }
        best = best.max(rate);
    }
    let value = Estimate::new(best, 0.95 * best, 1.05 * best);
    findings.quantity("random_read_most", "1/s", value);
    Ok(())
}
