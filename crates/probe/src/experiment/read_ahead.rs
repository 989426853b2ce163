//! Read-ahead: are sequential reads faster than random ones, one at a time?
//!
//! **Method.** 1 MiB stretches are read page by page in order and in random order, one at a time,
//! at fresh places with the map entry at hand. A drive that reads ahead answers the ordered ones
//! from memory.
//! **Cost.** 4,096 reads; below 1 s. Writes nothing.
//! **Cannot tell** read-ahead from a flash page kept in its register, when both give the same speed.

use super::{About, enter};
use crate::bench::{Bench, Stop};
use crate::cost::{Cost, Scale};
use crate::findings::Findings;
use crate::stats;
use crate::target::HmbState;

/// What is said before it starts.
pub const ABOUT: About = About {
    name: "read-ahead",
    question: "does the drive read ahead of sequential reads?",
    method: "stretches of 1 MiB read page by page, in order and at random",
    limits: "read-ahead and a page register look alike",
    writes: false,
    cost,
};

fn cost(scale: &Scale) -> Cost {
    Cost::reads(16 * STRETCH / scale.page_bytes, scale)
}

const STRETCH: u64 = 1 << 20;

/// Does it.
pub fn run(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Stop> {
    if bench.can_switch_hmb() {
        enter(bench, Some(HmbState::On))?;
    }
    let page = bench.page();
    let stretches = (bench.capacity() / STRETCH).max(1);
    let pages = STRETCH.min(bench.capacity()) / page;
    let mut found = [Vec::new(), Vec::new()];
    for round in 0..16 {
        let start = bench.below(stretches) * STRETCH;
        let mut order: Vec<u64> = (0..pages).map(|i| start + i * page).collect();
        if round % 2 == 1 {
            bench.shuffle(&mut order);
        }
        let mut latencies = Vec::new();
        bench.read_pages(order, 1, &mut latencies)?;
        // The first ones bring the map entry.
        found[round % 2].extend_from_slice(&latencies[latencies.len() / 16..]);
    }
    let [ordered, random] = found;
    let (ordered_ns, random_ns) = (stats::median(&ordered), stats::median(&random));
    findings.read_ahead = Some((random_ns, ordered_ns));
    let speedup = stats::median_interval(&ordered).scaled(1e-3);
    findings.quantity("sequential_read_qd1", "us", speedup);
    Ok(())
}
