//! Does written data go through host memory? Single writes, host memory on and off in turn.
//!
//! A buffer in host memory shows even where it never fills: every write crosses the link a second time
//! (or is moved by another engine than without it), which takes time in proportion to its bytes. Writes
//! to a drive at rest are compared, so neither the size of the buffer nor what else the drive does
//! matters. States alternate, and each round is compared with itself, so that slow changes of the drive
//! (cleaning, heat) fall out.

use super::enter;
use crate::bench::{Bench, Stop};
use crate::findings::Findings;
use crate::stats;
use crate::target::{HmbState, Io};
use std::time::Duration;

/// Bytes of one write.
const WRITES: [u64; 3] = [4 << 10, 32 << 10, 128 << 10];
/// Times host memory is turned on and off.
const ROUNDS: usize = 10;
/// Writes of each size in each state of a round.
const EACH: u64 = 10;

/// Compares them.
pub(super) fn run(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Stop> {
    let most = u64::from(bench.description().transfer_bytes_max);
    let writes: Vec<u64> = WRITES.into_iter().filter(|bytes| *bytes <= most).collect();
    let mut ratios = vec![Vec::new(); writes.len()];
    for round in 0..ROUNDS {
        let mut states = [HmbState::On, HmbState::Off];
        // Neither state always comes second.
        if round % 2 == 1 {
            states.reverse();
        }
        let first = single_writes(bench, states[0], &writes)?;
        let second = single_writes(bench, states[1], &writes)?;
        let (on, off) = if round % 2 == 0 {
            (first, second)
        } else {
            (second, first)
        };
        for (ratios, (on, off)) in ratios.iter_mut().zip(on.into_iter().zip(off)) {
            ratios.push(on / off);
        }
    }
    for (bytes, ratios) in writes.into_iter().zip(ratios) {
        let series = format!("write of {} KiB, on to off", bytes >> 10);
        for (round, ratio) in ratios.iter().enumerate() {
            bench.note(
                &series,
                "round",
                "ratio of latencies",
                (round as f64, *ratio),
            );
        }
        let interval = stats::median_interval(&ratios);
        findings
            .roles
            .write_buffer
            .write_path
            .insert(bytes, interval);
    }
    Ok(())
}

/// Median latency of single writes to a drive at rest, by size, ns.
fn single_writes(bench: &mut Bench<'_>, state: HmbState, writes: &[u64]) -> Result<Vec<f64>, Stop> {
    enter(bench, Some(state))?;
    let mut medians = Vec::new();
    for bytes in writes {
        let start = bench.capacity() / 8 * 5 / bytes * bytes;
        let mut latencies = Vec::new();
        for i in 0..EACH {
            bench.flush()?;
            bench.idle(Duration::from_millis(1))?;
            let io = [Io::write(start + i * bytes, *bytes as u32)];
            latencies.push(bench.batch(&io, 1)?[0].latency_ns as f64);
        }
        medians.push(stats::median(&latencies));
    }
    bench.flush()?;
    Ok(medians)
}
