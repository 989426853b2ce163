//! Flush: what does it cost when something waits to be written, and when nothing does?
//!
//! **Method.** One page is written and flushed, then flushed again; both times are taken, the drive
//! being at rest before. A flush that takes longer after a write shows that writes are acknowledged
//! before they are in flash. With host memory on and off.
//!
//! **Cost.** 32 writes of 4 KiB and 64 flushes for each state of host memory; about 2 s. Destroys data.
//!
//! **Cannot tell** a drive that writes through from one whose buffer survives a power cut.

use super::{About, arms, enter};
use crate::bench::{Bench, Stop};
use crate::findings::{Findings, WriteBufferArm};
use crate::stats;
use crate::target::Io;
use std::time::Duration;

/// What is said before it starts.
pub const ABOUT: About = About {
    name: "flush",
    question: "are writes acknowledged before they are in flash, and what does a flush cost?",
    method: "write a page, flush, flush again, the drive at rest before",
    limits: "a buffer that survives a power cut looks like none, but for its speed",
    writes: true,
    read_bytes: 0,
    written_bytes: 1 << 20,
};

/// Does it.
pub fn run(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Stop> {
    bench.needs_writing()?;
    for (name, state) in arms(bench) {
        enter(bench, state)?;
        let page = bench.page();
        let start = bench.capacity() / 2 / page * page;
        let (mut writes, mut dirty, mut clean) = (Vec::new(), Vec::new(), Vec::new());
        bench.flush()?;
        for i in 0..32 {
            bench.idle(Duration::from_millis(10))?;
            let io = [Io::write(start + i * 16 * page, page as u32)];
            writes.push(bench.batch(&io, 1)?[0].latency_ns as f64);
            dirty.push(bench.flush()?);
            clean.push(bench.flush()?);
        }
        let arm = WriteBufferArm {
            write_ns: stats::median(&writes),
            flush_dirty_ns: stats::median(&dirty),
            flush_clean_ns: stats::median(&clean),
            bytes: None,
            curve: Vec::new(),
            fill_rate: 0.0,
            drain_rate: 0.0,
        };
        let suffix = if name == "as found" { "" } else { name };
        let join = |base: &str| format!("{base}_{suffix}").trim_end_matches('_').to_owned();
        for (base, values) in [
            ("write", writes),
            ("flush_dirty", dirty),
            ("flush_clean", clean),
        ] {
            let interval = stats::median_interval(&values).scaled(1e-3);
            findings.quantity(&join(base), "us", interval);
        }
        findings.write_buffer.insert(name, arm);
    }
    Ok(())
}
