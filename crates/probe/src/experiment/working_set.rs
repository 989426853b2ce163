//! Working set: how fast are random reads over more and more of the drive?
//!
//! **Method.** Random 4 KiB reads, 32 in flight, over the first 64 MiB, 128 MiB ... of the drive,
//! host memory on and off. The curve reviewers draw.
//! **Cost.** 20,000 reads for each span; 10 s on a drive. Writes nothing.
//! **Cannot tell** more than map-cache does; it shows what the findings mean for a workload.

use super::{About, arms, enter};
use crate::bench::{Bench, Stop};
use crate::cost::{Cost, Scale};
use crate::findings::Findings;
use crate::target::Io;

/// What is said before it starts.
pub const ABOUT: About = About {
    name: "working-set",
    question: "how fast are random reads over more and more of the drive?",
    method: "random reads, 32 in flight, over growing spans, host memory on and off",
    limits: "shows, does not explain",
    writes: false,
    cost,
};

/// Spans that double from 64 MiB, with 32 reads in flight, of which a small drive serves 8 at a time.
fn cost(scale: &Scale) -> Cost {
    let spans = u64::from((scale.mib() >> 6).max(1).ilog2()) + 2;
    let reads = u64::from(scale.states) * spans * (READS as u64 + scale.mib().min(20_000) / 4);
    Cost {
        reads_in_turn: reads / 8,
        ..Cost::reads(reads, scale)
    }
}
/// Reads in flight.
pub(crate) const IN_FLIGHT: u32 = 32;

const READS: usize = 6_000;

/// Does it.
pub fn run(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Stop> {
    for (name, state) in arms(bench) {
        enter(bench, state)?;
        let mut spans = Vec::new();
        let page = bench.page();
        let mut span = (64u64 << 20).min(bench.capacity());
        loop {
            let pages = span / page;
            let mut ios: Vec<Io> = Vec::new();
            // Once over every MiB, so that what can be at hand is.
            let warm = (span >> 20).min(20_000);
            for i in 0..warm {
                ios.push(Io::read(span / warm * i / page * page, page as u32));
            }
            bench.batch(&ios, IN_FLIGHT)?;
            ios.clear();
            for _ in 0..READS {
                ios.push(Io::read(bench.below(pages) * page, page as u32));
            }
            let samples = bench.batch(&ios, IN_FLIGHT)?;
            let end = samples.iter().map(|s| s.completed_ns()).max().unwrap_or(1);
            let mean = samples.iter().map(|s| s.latency_ns as f64).sum::<f64>() / READS as f64;
            let rate = READS as f64 / (end.max(1) as f64 * 1e-9);
            let series = format!("working set, host memory {name}");
            bench.note(&series, "span, bytes", "reads/s", (span as f64, rate));
            let series = format!("working set latency, host memory {name}");
            bench.note(
                &series,
                "span, bytes",
                "read latency, us",
                (span as f64, mean / 1e3),
            );
            spans.push((span as f64, mean));
            if span == bench.capacity() {
                break;
            }
            span = (span * 2).min(bench.capacity());
        }
        findings.spans.insert(name, spans);
    }
    Ok(())
}
