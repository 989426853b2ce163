//! Flush: what does it cost when something waits to be written, and when nothing does?
//!
//! **Method.** One page is written and flushed, then flushed again; both times are taken, the drive
//! being at rest before. A flush that takes longer after a write shows that writes are acknowledged
//! before they are in flash. With host memory on and off.
//! Then pages that were read before are written, flushed and read again: where the second reads are
//! faster, new data lies in faster flash than old.
//!
//! **Cost.** 96 writes of 4 KiB, 65 flushes and 129 reads for each state of host memory; about 2 s.
//! Destroys data.
//!
//! **Cannot tell** a drive that writes through from one whose buffer survives a power cut.

use super::{About, arms, enter};
use crate::bench::{Bench, Stop};
use crate::cost::{Cost, Scale};
use crate::findings::Findings;
use crate::infer::write_buffer::{WriteBufferArm, WriteLooks};
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
    cost,
};

fn cost(scale: &Scale) -> Cost {
    let rounds = u64::from(scale.states * 32);
    // A flush with something to do takes some 2 ms.
    let rest = Duration::from_millis(13) * rounds as u32;
    let fresh = u64::from(scale.states) * FRESH;
    Cost::reads(2 * fresh, scale)
        .resting(rest)
        .writing((rounds + fresh) * scale.page_bytes)
}

/// Does it.
pub fn run(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Stop> {
    bench.needs_writing()?;
    for (arm, (name, state)) in arms(bench).into_iter().enumerate() {
        enter(bench, state)?;
        let page = bench.page();
        let start = bench.capacity() / 2 / page * page;
        // New places in every run as well.
        let place = (bench.run() - 1) * 2 + arm;
        let (old, fresh) = reads_of_new_data(bench, place as u64)?;
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
            old_read_ns: stats::median(&old),
            fresh_read_ns: stats::median(&fresh),
            bytes: None,
            fill_rate: 0.0,
            drain_rate: 0.0,
            looks: WriteLooks {
                writes: writes.clone(),
                dirty: dirty.clone(),
                clean: clean.clone(),
                old,
                fresh,
            },
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
        findings.roles.write_buffer.arms.insert(name, arm);
    }
    Ok(())
}

/// Pages that are read, written, and read again.
const FRESH: u64 = 64;

/// Reads of pages as they were found, and of the same once they are new, ns. Each arm has its own stretch,
/// so that its pages are as they were found.
fn reads_of_new_data(bench: &mut Bench<'_>, place: u64) -> Result<(Vec<f64>, Vec<f64>), Stop> {
    let page = bench.page();
    let stretch = 2 * FRESH * page;
    let room = bench.capacity().saturating_sub(stretch);
    let start = (bench.capacity() / 4 * 3 + 4 * place * stretch).min(room) / page * page;
    let mut order: Vec<u64> = (0..FRESH).map(|i| start + 2 * i * page).collect();
    bench.shuffle(&mut order);
    let (mut ignored, mut old, mut fresh) = (Vec::new(), Vec::new(), Vec::new());
    bench.read_pages([start + page], 1, &mut ignored)?;
    bench.idle(Duration::from_millis(5))?;
    bench.read_pages(order.iter().copied(), 1, &mut old)?;
    let ios: Vec<Io> = order.iter().map(|at| Io::write(*at, page as u32)).collect();
    bench.batch(&ios, 1)?;
    bench.flush()?;
    // Long enough for what a flush leaves behind, too short for a drive to move the data on.
    bench.idle(Duration::from_millis(5))?;
    bench.read_pages([start + page], 1, &mut ignored)?;
    bench.read_pages(order.iter().copied(), 1, &mut fresh)?;
    Ok((old, fresh))
}
