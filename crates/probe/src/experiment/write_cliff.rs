//! Write cliff: how much can be written at the fast rate, and does it come back?
//!
//! **Method.** Sequential writes of 128 KiB, 16 in flight, until the rate has fallen for good or the
//! allotted bytes are written. Change points of the logarithm of the rate over 16 MiB steps say where
//! it fell. Then the drive is left alone for a few seconds, and the rate of a further 64 MiB tells
//! whether the fast part has recovered.
//!
//! **Cost.** Up to 16 GiB, or an eighth of the drive, written once. Destroys data.
//!
//! **Cannot tell** flash in single-bit mode from any other fast flash, nor a cliff beyond what it
//! writes.

use super::{About, enter};
use crate::bench::{Bench, Stop};
use crate::cost::{Cost, Scale};
use crate::findings::Findings;
use crate::stats::{self, Estimate};
use crate::target::{HmbState, Io};
use std::time::Duration;

/// What is said before it starts.
pub const ABOUT: About = About {
    name: "write-cliff",
    question: "how much is written fast before the rate falls?",
    method: "sequential writes until the rate falls, then a rest, then more",
    limits: "a cliff beyond 16 GiB or an eighth of the drive is not seen",
    writes: true,
    cost,
};

/// Until the rate falls or the allotted bytes are written, and 64 MiB after the rest.
fn cost(scale: &Scale) -> Cost {
    let most = (16u64 << 30).min(scale.capacity_bytes / 8);
    Cost::default()
        .resting(Duration::from_secs(28))
        .writing(most + 4 * STEP)
}

const CHUNK: u64 = 128 << 10;
const STEP: u64 = 16 << 20;

/// Does it.
pub fn run(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Stop> {
    bench.needs_writing()?;
    if bench.can_switch_hmb() {
        enter(bench, Some(HmbState::On))?;
    }
    bench.idle(Duration::from_secs(8))?;
    let most = (16u64 << 30).min(bench.capacity() / 8) / STEP;
    let mut rates = Vec::new();
    let mut at = 0;
    while at < most {
        let rate = write_step(bench, at)?;
        rates.push(rate);
        let point = ((at * STEP) as f64, rate / 1e6);
        bench.note("write cliff", "bytes written", "rate, MB/s", point);
        at += 1;
        if fallen(&rates) {
            break;
        }
    }
    let logs: Vec<f64> = rates.iter().map(|rate| rate.ln()).collect();
    let points = stats::change_points(&logs, penalty(&logs));
    let level = |from: usize, to: usize| stats::median(&rates[from..to]);
    let fast = level(0, points.first().copied().unwrap_or(rates.len()));
    findings.quantity("write_rate_fast", "MB/s", around(fast / 1e6));
    let fall = points
        .iter()
        .copied()
        .find(|point| level(*point, rates.len()) < 0.75 * fast);
    if let Some(point) = fall {
        let step = STEP as f64;
        let bytes = Estimate::new(
            point as f64 * step,
            (point as f64 - 1.0) * step,
            (point as f64 + 1.0) * step,
        );
        findings.cliff_bytes = Some(bytes);
        findings.quantity("write_cliff", "bytes", bytes);
        let slow = level(point, rates.len());
        findings.quantity("write_rate_slow", "MB/s", around(slow / 1e6));
        bench.idle(Duration::from_secs(20))?;
        let mut again = Vec::new();
        for step in 0..4 {
            again.push(write_step(bench, at + step)?);
        }
        let recovered = (stats::median(&again) / fast).min(1.0);
        findings.quantity("write_rate_after_rest", "ratio", around(recovered));
    }
    Ok(())
}

fn around(value: f64) -> Estimate {
    Estimate::new(value, 0.95 * value, 1.05 * value)
}

fn write_step(bench: &mut Bench<'_>, step: u64) -> Result<f64, Stop> {
    let room = bench.capacity() / STEP * STEP;
    let start = step * STEP % room;
    let ios: Vec<Io> = (0..STEP / CHUNK)
        .map(|i| Io::write(start + i * CHUNK, CHUNK as u32))
        .collect();
    let samples = bench.batch(&ios, 16)?;
    let end = samples.iter().map(|s| s.completed_ns()).max().unwrap_or(1);
    Ok(STEP as f64 / (end.max(1) as f64 * 1e-9))
}

/// The last sixteen steps are all well below the first ones.
fn fallen(rates: &[f64]) -> bool {
    const LAST: usize = 16;
    if rates.len() < 2 * LAST {
        return false;
    }
    let fast = stats::median(&rates[..LAST.min(rates.len() / 2)]);
    let last = &rates[rates.len() - LAST..];
    stats::quantile(last, 0.8) < 0.7 * fast
}

/// A change must explain more than the noise of single steps does.
fn penalty(logs: &[f64]) -> f64 {
    let differences: Vec<f64> = logs.windows(2).map(|w| w[1] - w[0]).collect();
    let noise = stats::spread(&differences) / std::f64::consts::SQRT_2;
    (3.0 * noise * noise * (logs.len() as f64).ln()).max(0.02)
}
