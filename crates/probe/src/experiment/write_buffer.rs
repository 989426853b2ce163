//! Write buffer: how many bytes are acknowledged before they are in flash?
//!
//! **Method.** After Algorithm 2 of Kim & Kim (PLOS ONE 2020). The drive is flushed and left alone,
//! so that the buffer is empty; then a long burst of writes is issued at once. Acknowledged bytes
//! `A(t)` rise at the rate of the link until the buffer is full and at the rate of the flash from
//! then on. Where the bend lies depends on both rates, not on the buffer alone, so it is not taken
//! for the size. Instead shorter bursts of `w` bytes, each ended by a flush that completes at `T`,
//! tell when `w` bytes have arrived in flash. At that instant the long burst had been acknowledged
//! up to `A(T)`: the buffer holds `A(T) - w`. No model of the drive is needed. With host memory on
//! and off.
//! Where writes of 32 KiB do not fill the buffer (the drive is busier with each command than with
//! its data), writes of 64 KiB may. Where nothing fills it, single writes still tell whether their data
//! goes through host memory (`write_path.rs`).
//!
//! **Mended.** In the paper's listing, line 3 says `S_CACHE` for `S_BUFFER` and its offset is not
//! aligned. It compares a write to a full buffer with one after a flush and takes the bend for the
//! size, which is right only if nothing is written back meanwhile.
//!
//! **Cost.** 10 MiB to 6 GiB written for each state of host memory, more for large buffers.
//! Destroys data.
//!
//! **Cannot tell** the size when flash takes data as fast as the link brings it: the buffer never
//! fills. Then only its existence and its tier are told.

use super::{About, arms, enter, write_path};
use crate::bench::{Bench, Stop};
use crate::cost::{Cost, Scale};
use crate::findings::Findings;
use crate::stats::{self, Estimate};
use crate::target::Io;
use std::time::Duration;

/// What is said before it starts.
pub const ABOUT: About = About {
    name: "write-buffer",
    question: "how much does the drive acknowledge before it is in flash, and where is it kept?",
    method: "bursts of writes into an empty buffer, and flushes that tell what has left it",
    limits: "no size where flash takes data as fast as the link brings it",
    writes: true,
    cost,
};

/// 15 s of rest before each of up to five parts; pairs of bursts of doubling length. Of 12 drives drawn
/// at random those whose buffer never fills wrote most: 33 GiB in one state of host memory.
fn cost(scale: &Scale) -> Cost {
    let parts = 2 * scale.states + (scale.states - 1);
    let longest = LAST_BURST.min(scale.capacity_bytes / 8);
    Cost::default()
        .resting(RECOVERY * parts + Duration::from_secs(4))
        .writing(u64::from(scale.states) * (80 * longest + (64 << 20)))
}

/// Bytes of one write: small ones tell the size most finely; where the drive's own work for each
/// command holds them up so that the buffer does not fill, larger ones may fill it.
const CHUNKS: [u64; 2] = [32 << 10, 64 << 10];
/// Bytes in flight.
const IN_FLIGHT: u64 = 6 << 20;
/// Time for fast flash to be emptied between states of host memory.
const RECOVERY: Duration = Duration::from_secs(15);
/// Burst lengths tried, bytes.
const FIRST_BURST: u64 = 4 << 20;
const LAST_BURST: u64 = 512 << 20;
/// Bursts that tell the first rate.
const FIRST_RATES: usize = 7;
/// Pairs of bursts that tell the size.
const POINTS: usize = 15;
/// Bursts with and without a pause.
const PAUSES: usize = 5;
/// A burst that has taken so many times as long as at its first rate has fallen behind.
const BEHIND: f64 = 1.15;
/// A rate below this share of the first one means that the buffer is full.
const FULL: f64 = 0.9;

/// Does it.
pub fn run(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Stop> {
    bench.needs_writing()?;
    if let Some(reason) = &bench.description().no_flush {
        return Err(Stop::Skip(reason.clone()));
    }
    if findings.write_buffer.is_empty() {
        super::flush::run(bench, findings)?;
    }
    if bench.can_switch_hmb() {
        write_path::run(bench, findings)?;
    }
    for (name, state) in arms(bench) {
        enter(bench, state)?;
        bench.idle(RECOVERY)?;
        let found = measure(bench, &format!("write burst, host memory {name}"))?;
        if let Some(arm) = findings.write_buffer.get_mut(name) {
            (arm.bytes, arm.fill_rate, arm.drain_rate) = found;
        }
    }
    Ok(())
}

/// Bursts of one kind.
#[derive(Clone, Copy)]
struct Kind {
    /// Bytes of one write.
    chunk: u64,
    /// Bytes in flight.
    in_flight: u64,
}

impl Kind {
    fn writes(self, bench: &Bench<'_>, bytes: u64) -> Vec<Io> {
        // In the middle of the drive, round and round the same stretch: its map entries are at hand.
        let room = (bench.capacity() / 4).min(LAST_BURST) / self.chunk;
        let start = bench.capacity() / 2 / self.chunk * self.chunk;
        (0..bytes / self.chunk)
            .map(|i| Io::write(start + i % room * self.chunk, self.chunk as u32))
            .collect()
    }

    fn depth(self) -> u32 {
        (self.in_flight / self.chunk) as u32
    }

    /// Completion times of a burst into an empty buffer, sorted, ns.
    fn burst(self, bench: &mut Bench<'_>, bytes: u64) -> Result<Vec<f64>, Stop> {
        rest(bench)?;
        let ios = self.writes(bench, bytes);
        let samples = bench.batch(&ios, self.depth())?;
        let mut done: Vec<f64> = samples.iter().map(|s| s.completed_ns() as f64).collect();
        done.sort_unstable_by(f64::total_cmp);
        Ok(done)
    }

    /// When a burst into an empty buffer is in flash, ns from its start. The flush begins when the
    /// target's clock says that all of it is done: the last completion is the one that the host held
    /// up longest, which is none of the drive's doing.
    fn in_flash(self, bench: &mut Bench<'_>, bytes: u64) -> Result<f64, Stop> {
        rest(bench)?;
        let ios = self.writes(bench, bytes);
        let started = bench.now();
        bench.batch(&ios, self.depth())?;
        let flush_from = bench.now().saturating_sub(started);
        Ok(flush_from.as_nanos() as f64 + bench.flush()?)
    }

    /// How long a burst into an empty buffer takes with a pause after three fifths of it.
    fn in_two(self, bench: &mut Bench<'_>, bytes: u64, pause: Duration) -> Result<Duration, Stop> {
        rest(bench)?;
        let ios = self.writes(bench, bytes);
        let (first, second) = ios.split_at(ios.len() * 3 / 5);
        let started = bench.now();
        bench.batch(first, self.depth())?;
        bench.idle(pause)?;
        bench.batch(second, self.depth())?;
        Ok(bench.now().saturating_sub(started))
    }

    /// Bytes per second between two shares of a burst.
    fn rate(self, done: &[f64], from: f64, to: f64) -> f64 {
        let at = |share: f64| ((done.len() - 1) as f64 * share) as usize;
        let (from, to) = (at(from), at(to).max(at(from) + 1).min(done.len() - 1));
        (to - from) as f64 * self.chunk as f64 / ((done[to] - done[from]) * 1e-9).max(1e-9)
    }

    /// Where the burst falls behind its first rate for good, as a share of it.
    fn bend(self, done: &[f64], first_rate: f64) -> f64 {
        let per_chunk = self.chunk as f64 / first_rate * 1e9;
        let behind = |i: usize| done[i] - done[0] > BEHIND * per_chunk * i as f64;
        let point = (16..done.len()).find(|i| behind(*i));
        point.map_or(1.0, |i| i as f64 / done.len() as f64)
    }
}

/// Empties the buffer.
fn rest(bench: &mut Bench<'_>) -> Result<(), Stop> {
    bench.flush()?;
    bench.idle(Duration::from_millis(30))
}

type Found = (Option<Estimate>, f64, f64);

/// Size and rates, by the smallest writes that fill the buffer.
fn measure(bench: &mut Bench<'_>, series: &str) -> Result<Found, Stop> {
    let mut best = None;
    for chunk in CHUNKS {
        if chunk > u64::from(bench.description().transfer_bytes_max) {
            break;
        }
        let found = measure_by(bench, chunk, series)?;
        if found.0.is_some() {
            return Ok(found);
        }
        best = best.or(Some(found));
    }
    Ok(best.unwrap_or((None, 0.0, 0.0)))
}

fn measure_by(bench: &mut Bench<'_>, chunk: u64, series: &str) -> Result<Found, Stop> {
    let deep = Kind {
        chunk,
        in_flight: IN_FLIGHT,
    };
    // Once over the stretch, so that what follows finds the same state.
    deep.burst(bench, FIRST_BURST)?;
    // One burst has but a few completions before a small buffer may be full: many bursts.
    let mut rates = Vec::new();
    for _ in 0..FIRST_RATES {
        let done = deep.burst(bench, FIRST_BURST)?;
        rates.push(deep.rate(&done, 0.0, 512.0 * 1024.0 / FIRST_BURST as f64));
    }
    let first = stats::median(&rates);
    let mut bytes = FIRST_BURST;
    let most = LAST_BURST.min(bench.capacity() / 8);
    let ahead = series.replace("write burst", "bytes ahead");
    loop {
        let done = deep.burst(bench, bytes)?;
        // Not to the very end: the last of all is the one that the host held up longest.
        let last = deep.rate(&done, 0.5, 0.95);
        let mut size = None;
        // Full well before the middle, so that the second half is all drain.
        let bend = deep.bend(&done, first);
        if last < FULL * first && bend < 0.4 {
            let from = (bend * 1.1 + 0.05) * bytes as f64;
            size = held(bench, deep, bytes, from, POINTS, &ahead)?;
        }
        if let Some(found) = size {
            let explains = explains_the_bend(found.estimate, bend * bytes as f64, first, last);
            if !explains || !is_flash_bound(bench, deep, bytes, found.estimate, last)? {
                size = None;
            }
        }
        if size.is_some() || bytes * 2 > most {
            for (i, time) in done.iter().enumerate().step_by((done.len() / 400).max(1)) {
                let point = (time / 1e6, (i as f64 + 1.0) * chunk as f64);
                bench.note(series, "time, ms", "bytes acknowledged", point);
            }
            return Ok((size, first, last));
        }
        bytes *= 2;
    }
}

/// Whether a buffer of `size` bytes makes a burst fall behind where this one does, after `behind_at` bytes,
/// within a factor of three: where flash is hardly slower than the link, the bend is seen but roughly. A
/// buffer that is full after `n` bytes has taken `n (1 - last / first)` more than it gave. Bursts also slow
/// down because fast flash is used up or cleaning begins: much later than what a buffer that never fills
/// seems to hold.
fn explains_the_bend(size: f64, behind_at: f64, first: f64, last: f64) -> bool {
    let slower = first / last;
    if slower <= BEHIND {
        return false;
    }
    // Behind by `BEHIND` only some time after it was full.
    let full_at = behind_at * (slower - BEHIND) / (slower - 1.0);
    let held = full_at * (1.0 - 1.0 / slower);
    (1.0 / 3.0..=3.0).contains(&(size / held))
}

/// Whether flash is what holds a long burst up, so that the buffer is full. Then a pause in the middle is
/// caught up with: flash goes on meanwhile, and what it makes room for is filled faster than it empties.
/// Where something else holds writes up, such as a link shared by filling and emptying, a pause is lost.
fn is_flash_bound(
    bench: &mut Bench<'_>,
    kind: Kind,
    bytes: u64,
    size: f64,
    rate: f64,
) -> Result<bool, Stop> {
    // Short enough for the buffer not to run empty, and to be caught up with in what is left of the
    // burst at a rate that is a tenth higher.
    let pause = Duration::from_secs_f64((0.4 * size).min(0.04 * bytes as f64) / rate.max(1.0));
    let mut lost = Vec::new();
    for _ in 0..PAUSES {
        let without = kind.in_two(bench, bytes, Duration::ZERO)?;
        let with = kind.in_two(bench, bytes, pause)?;
        lost.push((with.as_secs_f64() - without.as_secs_f64()) / pause.as_secs_f64());
    }
    Ok(stats::median(&lost) < 0.5)
}

/// What the buffer holds: bytes acknowledged when `w` bytes have arrived in flash, less `w`.
fn held(
    bench: &mut Bench<'_>,
    kind: Kind,
    bytes: u64,
    from: f64,
    points: usize,
    series: &str,
) -> Result<Option<Estimate>, Stop> {
    let mut sizes = Vec::new();
    let to = 0.75 * bytes as f64;
    let chunk = kind.chunk as f64;
    for i in 0..points {
        let step = i as f64 / (points - 1) as f64;
        let written = ((from + (to - from).max(0.0) * step) as u64).next_multiple_of(kind.chunk);
        let end = kind.in_flash(bench, written)?;
        let long = kind.burst(bench, bytes)?;
        if end < long[long.len() - 1] {
            let acknowledged = long.partition_point(|time| *time <= end) as f64 * chunk;
            let ahead = acknowledged - written as f64;
            let point = (written as f64, ahead);
            bench.note(series, "bytes in flash", "bytes ahead of flash", point);
            sizes.push(ahead);
        }
    }
    if sizes.len() < points / 2 {
        return Ok(None);
    }
    // A buffer that is not full yet goes on filling: then this is no size, and a longer burst may be.
    let third = sizes.len() / 3;
    let (early, late) = (&sizes[..third], &sizes[sizes.len() - third..]);
    if stats::median(late) > 1.06 * stats::median(early) + chunk {
        return Ok(None);
    }
    // Cleaning that starts in one burst of a pair and not in the other puts the point anywhere.
    let (low, high) = stats::shortest_half(&sizes);
    let core: Vec<f64> = sizes
        .iter()
        .copied()
        .filter(|size| (low - 1.5 * chunk..=high + 1.5 * chunk).contains(size))
        .collect();
    // What is on its way into the buffer is in it and not acknowledged: how much, changes with the
    // steps of the flash, so the upper quarter is nearer the truth than the middle.
    let size = stats::quantile(&core, 0.75);
    let error = 1.25 * stats::spread(&sizes) / (sizes.len() as f64).sqrt();
    let half = (2.0 * error).max(2.0 * chunk);
    if half >= 0.5 * size {
        return Ok(None);
    }
    // Not acknowledged, yet in the buffer: half a write that is partly there, half a step of the
    // count, and what is on its way over the link.
    let high = (size + half + 3.0 * chunk).max(1.05 * size);
    Ok(Some(Estimate::new(size + chunk, size - half, high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_does_not_explain_where_the_burst_falls_behind_is_none() {
        // 8 MiB fill at 1000 and empty at 500 MB/s: full after 16 MiB; 15 % behind after n with
        // 16 + 2 (n - 16) = 1.15 n.
        let mib = f64::from(1 << 20);
        let behind_at = 16.0 / 0.85 * mib;
        assert!(explains_the_bend(8.0 * mib, behind_at, 1e9, 5e8));
        assert!(!explains_the_bend(0.4 * mib, behind_at, 1e9, 5e8));
        assert!(!explains_the_bend(30.0 * mib, behind_at, 1e9, 5e8));
    }
}
