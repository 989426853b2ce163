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
//!
//! Once the size is known roughly, those bursts go on behind the `w` bytes, and the flush goes beside the writes
//! that follow: dies that load the next page while they program one share their buses among all that waits, so
//! that the end of a burst arrives earlier than the same bytes of one that goes on (4.5 % of the 3 MiB of a BG4
//! were missing). Where a target has no flush beside writes, the interval says so much more may be held.
//!
//! Flash takes data by steps, all dies at a time at worst, and the buffer is filled up again between two
//! of them: `A(T)` just after a step is too small by what is still on its way. So a moment `t` is chosen
//! at which the long burst stands still, and the longest `w` that is in flash by then is looked for by
//! halving. The first write of each long burst has another length, so that what has come of a write that
//! is not acknowledged yet is half a write on average. Long bursts that flash takes at different rates
//! found it in different states (single-bit flash was used up, or it cleaned): then the drive is left
//! alone for some seconds before each burst, once, and bursts at other rates do not count.
//! What comes out is the size only if the buffer was full: no more at later moments than at earlier ones,
//! less than half of what was acknowledged, and as much with half as many bytes in flight. Where a link
//! that is shared by filling and emptying holds writes up, what is on its way through the buffer goes with
//! what is in flight.
//!
//! Flash that takes data nearly as fast as it comes makes a bend that lies far in a long burst: `B` bytes, filled at
//! the rate `f` and emptied at `d`, are full after `B f / (f - d)`. It is looked for by two straight lines. What is
//! ahead of flash must have grown until then, or something else made the bend.
//!
//! Where writes of 32 KiB do not fill the buffer (the drive is busier with each command than with
//! its data), writes of 64 KiB may. Buffers that are smaller than a few writes, or larger than the longest
//! burst, are bounded (`buffer_ends.rs`). Where nothing fills it, single writes still tell whether their data
//! goes through host memory (`write_path.rs`).
//!
//! **Mended.** In the paper's listing, line 3 says `S_CACHE` for `S_BUFFER` and its offset is not
//! aligned. It compares a write to a full buffer with one after a flush and takes the bend for the
//! size, which is right only if nothing is written back meanwhile.
//! Earlier versions took `A(T)` at any `T` and the upper quarter of 15 pairs: 5 to 10 % too little where
//! dies work in step, as with watermarks. They told a full buffer by a pause in the middle of a burst,
//! which a shared link catches up with too.
//!
//! **Cost.** 10 MiB to 6 GiB written for each state of host memory, more for large buffers.
//! Destroys data.
//!
//! **Cannot tell** the size when flash takes data as fast as the link brings it: the buffer never
//! fills. Then only its existence and its tier are told.

use super::burst::{FINEST, Kind, LAST_BURST, ahead_at, standstill};
use super::{About, arms, buffer_ends, enter, write_path};
use crate::bench::{Bench, Stop};
use crate::cost::{Cost, Scale};
use crate::findings::Findings;
use crate::infer::write_buffer::WriteBufferArm;
use crate::stats::{self, Estimate};
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

/// 15 s of rest before each of up to five parts; bursts of doubling length. Of 12 drives drawn
/// at random those whose buffer never fills wrote most: 33 GiB in one state of host memory. Half of the drives
/// have some 40 bursts with a long rest in each state, the others none: a quarter of that is about right
/// for both.
fn cost(scale: &Scale) -> Cost {
    let parts = 2 * scale.states + (scale.states - 1);
    let longest = LAST_BURST.min(scale.capacity_bytes / 8);
    Cost::default()
        .resting(RECOVERY * parts + LONG_REST * (10 * scale.states))
        .writing(u64::from(scale.states) * (80 * longest + (64 << 20)))
}

/// Bytes of one write: small ones tell the size most finely; where the drive's own work for each
/// command holds them up so that the buffer does not fill, larger ones may fill it.
const CHUNKS: [u64; 2] = [32 << 10, 64 << 10];
/// Bytes in flight.
const IN_FLIGHT: u64 = 6 << 20;
/// Time for fast flash to be emptied between states of host memory.
const RECOVERY: Duration = Duration::from_secs(15);
/// Length of the first burst, bytes; each is twice as long as the one before.
const FIRST_BURST: u64 = 4 << 20;
/// Shorter than this, what is left of a burst that fills the buffer in two fifths of it may be less than
/// all dies take at a time: 8 MiB, for 32 dies that program four planes of 16 KiB in four passes.
const SHORT: u64 = 64 << 20;
/// Bursts that tell the first rate.
const FIRST_RATES: usize = 7;
/// Time the drive is left alone before a burst.
const REST: Duration = Duration::from_millis(30);
/// The same where single-bit flash must be emptied before each: drives wait for some seconds of idleness.
const LONG_REST: Duration = Duration::from_secs(7);
/// Where it fills, it takes at least so much of what is acknowledged.
const FILLING: f64 = 0.25;
/// Points that lie as far apart as this share of their median tell nothing.
const WILD: f64 = 0.1;
/// A point so far from the others is a stray. The drive does the same each time only where fewer than a third are.
const STRAY: f64 = 0.2;
/// What a burst was itself ahead by when a flush beside it had ended, as shares of the size: flash may just have taken
/// half of it at a time.
const OWN: (f64, f64) = (0.45, 1.15);
/// Drives whose bursts are emptied at rates as near as this are in one state.
const STEADY: f64 = 0.03;
/// Moments of long bursts at which what the buffer holds is looked for.
const POINTS: usize = 9;
/// The same where the drive is left alone for long before each burst.
const POINTS_RESTED: usize = 5;
/// Not to the very end of a burst: the last write is the one that the host held up longest.
const LAST: f64 = 0.95;
/// Bursts with half as much in flight, and a share of what the buffer holds that they must be ahead by.
const VOTES: usize = 5;
const LESS: f64 = 0.75;
/// A rate below this share of the first one means that the buffer is full.
const FULL: f64 = 0.9;

/// At this share of the way to a slight bend what is ahead of flash must be below that share of what it is beyond it:
/// a buffer that fills steadily is at the first, and what is on its way comes on top.
const EARLY: f64 = 0.4;
const GROWN: f64 = 0.85;

/// Does it.
pub fn run(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Stop> {
    bench.needs_writing()?;
    if let Some(reason) = &bench.description().no_flush {
        return Err(Stop::Skip(reason.clone()));
    }
    if findings.roles.write_buffer.arms.is_empty() {
        super::flush::run(bench, findings)?;
    }
    if bench.can_switch_hmb() {
        write_path::run(bench, findings)?;
    }
    for (name, state) in arms(bench) {
        let arm = findings.roles.write_buffer.arms.get_mut(name);
        // What waits for flash has no size.
        let Some(arm) = arm.filter(|arm| arm.is_buffered()) else {
            continue;
        };
        enter(bench, state)?;
        bench.idle(RECOVERY)?;
        let series = format!("write burst, host memory {name}");
        (arm.bytes, arm.fill_rate, arm.drain_rate) = measure(bench, arm, &series)?;
    }
    Ok(())
}

type Found = (Option<Estimate>, f64, f64);

/// What bursts of one kind of write found.
struct Bursts {
    size: Option<Estimate>,
    /// First and last rate, bytes/s.
    first: f64,
    last: f64,
    /// The drive did not do the same each time.
    moving: bool,
}

/// Size and rates, by the smallest writes that fill the buffer; or bounds of a size that bursts do not show.
fn measure(bench: &mut Bench<'_>, arm: &WriteBufferArm, series: &str) -> Result<Found, Stop> {
    let mut bursts: Option<Bursts> = None;
    for chunk in CHUNKS {
        if chunk > u64::from(bench.description().transfer_bytes_max) {
            break;
        }
        let found = measure_by(bench, arm, chunk, series)?;
        if found.size.is_some() {
            return Ok((found.size, found.first, found.last));
        }
        let moving = found.moving || bursts.as_ref().is_some_and(|other| other.moving);
        bursts = Some(Bursts {
            moving,
            ..bursts.unwrap_or(found)
        });
    }
    let (first, last) = bursts
        .as_ref()
        .map_or((0.0, 0.0), |found| (found.first, found.last));
    let single = series.replace("write burst", "single writes");
    if let Some(size) = buffer_ends::smaller(bench, arm, &single)? {
        return Ok((Some(size), first, last));
    }
    // What was ahead in one burst tells nothing of another.
    if bursts.is_some_and(|found| found.moving) {
        return Ok((None, first, last));
    }
    let chunk = CHUNKS[1].min(u64::from(bench.description().transfer_bytes_max));
    let longest = LAST_BURST.min(bench.capacity() / 8);
    let size = buffer_ends::larger(bench, deep(chunk), longest)?;
    Ok((size, first, last))
}

/// Bursts that fill the buffer as fast as can be.
fn deep(chunk: u64) -> Kind {
    Kind {
        chunk,
        first: chunk,
        in_flight: IN_FLIGHT,
        rest: REST,
    }
}

/// Rate into an empty buffer, bytes/s.
fn first_rate(bench: &mut Bench<'_>, deep: Kind) -> Result<f64, Stop> {
    // Once over the stretch, so that what follows finds the same state.
    deep.burst(bench, FIRST_BURST)?;
    // One burst has but a few completions before a small buffer may be full: many bursts.
    let mut rates = Vec::new();
    for _ in 0..FIRST_RATES {
        let done = deep.burst(bench, FIRST_BURST)?;
        rates.push(deep.rate(&done, 0.0, 512.0 * 1024.0 / FIRST_BURST as f64));
    }
    Ok(stats::median(&rates))
}

fn measure_by(
    bench: &mut Bench<'_>,
    arm: &WriteBufferArm,
    chunk: u64,
    series: &str,
) -> Result<Bursts, Stop> {
    let deep = deep(chunk);
    let first = first_rate(bench, deep)?;
    let mut bytes = FIRST_BURST;
    let most = LAST_BURST.min(bench.capacity() / 8);
    let mut search = Search {
        first,
        room: 0.25,
        page_ns: arm.flush_dirty_ns - arm.flush_clean_ns,
        series: &series.replace("write burst", "bytes ahead"),
    };
    let rested = Kind {
        rest: LONG_REST,
        ..deep
    };
    // Bursts with long rests are tried once.
    let (mut may_rest, mut moving) = (true, false);
    loop {
        // Where flash may take as much at a time as what is left of the burst, a longer one is better.
        let short = bytes < SHORT && bytes * 2 <= most;
        search.room = if short { 0.25 } else { 0.4 };
        let (done, found) = attempt(bench, deep, bytes, &search)?;
        let last = deep.rate(&done, 0.5, LAST);
        let size = match found {
            Held::So(size) => Some(size),
            Held::Not => None,
            Held::Moving(rough) if may_rest => {
                may_rest = false;
                bench.idle(RECOVERY)?;
                match attempt(bench, rested, bytes, &search)?.1 {
                    Held::So(size) => Some(size),
                    Held::Moving(size) => {
                        moving = true;
                        rough.or(size)
                    }
                    Held::Not => None,
                }
            }
            Held::Moving(rough) => {
                moving = true;
                rough
            }
        };
        if size.is_some() || bytes * 2 > most {
            for (i, time) in done.iter().enumerate().step_by((done.len() / 400).max(1)) {
                let point = (time / 1e6, (i as f64 + 1.0) * chunk as f64);
                bench.note(series, "time, ms", "bytes acknowledged", point);
            }
            return Ok(Bursts {
                size,
                first,
                last,
                moving,
            });
        }
        bytes *= 2;
    }
}

/// What is known before a burst is looked at.
struct Search<'a> {
    /// Rate into an empty buffer, bytes/s.
    first: f64,
    /// Share of the burst in which it must be full.
    room: f64,
    /// What a page takes from the buffer into flash, ns.
    page_ns: f64,
    /// Name for the report.
    series: &'a str,
}

/// A burst that fills the buffer.
#[derive(Clone, Copy)]
struct Long {
    bytes: u64,
    /// Share of it after which it falls behind.
    bend: f64,
    /// Rate at which flash takes its end, bytes/s.
    drain: f64,
    /// What a page takes from the buffer into flash, ns.
    page_ns: f64,
}

impl Long {
    /// Most that can be told from it: where it has gone on for no more than twice what the buffer holds, it
    /// may still be filling it.
    fn most(self) -> f64 {
        0.45 * self.bytes as f64
    }

    /// Shares of the burst between which a moment is looked for: wide enough for the buffer to be emptied
    /// once, for flash may take all of it at a time; `along` from 0 to 1.
    fn window(self, size: f64, along: f64) -> (f64, f64) {
        let size = size / self.bytes as f64;
        let full = self.bend * 1.1 + 0.05;
        let from = full.max(2.0 * size).min(0.85);
        let width = (1.2 * size).min(LAST - from);
        let from = from + along * (LAST - from - width);
        (from, from + width)
    }
}

/// What became of the search for what the buffer holds.
enum Held {
    So(Estimate),
    /// The drive does not do the same each time. What it seems to be all the same, if anything.
    Moving(Option<Estimate>),
    /// It is not full.
    Not,
}

/// A long burst, and what the buffer holds if that fills it.
fn attempt(
    bench: &mut Bench<'_>,
    kind: Kind,
    bytes: u64,
    search: &Search<'_>,
) -> Result<(Vec<f64>, Held), Stop> {
    let Search { first, room, .. } = *search;
    let done = kind.burst(bench, bytes)?;
    let drain = kind.rate(&done, 0.5, LAST);
    let mut bend = kind.bend(&done, first);
    let mut is_slight = false;
    // Full well before the middle, so that the second half is all drain.
    if drain >= FULL * first || bend >= room {
        // Where flash takes data nearly as fast as it comes, a long burst is needed, and shows a bend all the same.
        let parts = kind.two_rates(&done).filter(|_| bytes >= SHORT);
        let Some(parts) = parts.filter(|parts| parts.is_bent() && parts.bend < room) else {
            return Ok((done, Held::Not));
        };
        bend = parts.bend;
        is_slight = true;
    }
    let long = Long {
        bytes,
        bend,
        drain,
        page_ns: search.page_ns,
    };
    let held = held(bench, kind, long, search.series)?;
    if is_slight
        && let Held::So(size) | Held::Moving(Some(size)) = held
        && !has_filled(bench, kind, long, &done, size.estimate)?
    {
        return Ok((done, Held::Not));
    }
    Ok((done, held))
}

/// Whether what is ahead of flash grew before a slight bend. A buffer fills until then; what is on its way through
/// one that flash empties as fast as it is filled does not grow, and something else bent the burst: map entries that
/// come to be sent over the link as well slow it by 3 %.
fn has_filled(
    bench: &mut Bench<'_>,
    kind: Kind,
    long: Long,
    done: &[f64],
    size: f64,
) -> Result<bool, Stop> {
    let window = (0.3 * long.bend, EARLY * long.bend);
    let moment = standstill(kind, done, window);
    let guess = Some((size, kind.chunk as f64));
    let (low, high) = ahead_at(bench, kind, &moment, guess, &mut Vec::new())?;
    Ok(f64::midpoint(low, high) < GROWN * size)
}

/// What the buffer holds.
fn held(bench: &mut Bench<'_>, kind: Kind, long: Long, series: &str) -> Result<Held, Stop> {
    let chunk = kind.chunk as f64;
    let points = if kind.rest > REST {
        POINTS_RESTED
    } else {
        POINTS
    };
    let mut sizes: Vec<f64> = Vec::new();
    let (mut guess, mut rough, mut own) = (None, 0.0, Vec::new());
    let mut seen = Vec::new();
    let mut steady: Vec<f64> = Vec::new();
    for i in 0..=points {
        let kind = kind.dithered(bench);
        let done = kind.burst(bench, long.bytes)?;
        let is_steady = (kind.rate(&done, 0.5, LAST) / long.drain - 1.0).abs() <= STEADY;
        let window = match guess {
            None => (0.8, LAST),
            Some((size, _)) => long.window(size, (i - 1) as f64 / (points - 1) as f64),
        };
        let moment = standstill(kind, &done, window);
        let (low, high) = ahead_at(bench, kind, &moment, guess, &mut own)?;
        let size = f64::midpoint(low, high);
        if guess.is_some() {
            let point = (moment.acknowledged, size);
            bench.note(series, "bytes acknowledged", "bytes ahead of flash", point);
            seen.push(point);
            sizes.push(size);
            if is_steady {
                steady.push(size);
            }
        } else if size > long.most() + chunk {
            return Ok(if is_steady {
                Held::Not
            } else {
                Held::Moving(None)
            });
        } else {
            rough = size;
        }
        let near = if sizes.is_empty() {
            size
        } else {
            stats::median(&sizes)
        };
        let apart = apart(&sizes);
        if sizes.len() >= POINTS / 2 && apart > WILD * near {
            return Ok(Held::Moving(None));
        }
        guess = Some((near, (2.0 * apart).max(chunk)));
    }
    // A burst that says by itself what it was ahead by found the drive in no other state.
    let own = stats::quantile(&own, 0.9);
    let near = stats::median(&sizes);
    if own > 0.0 && !(OWN.0 * near..=OWN.1 * near + kind.chunk as f64).contains(&own) {
        return Ok(Held::Moving(None));
    }
    conclude(bench, kind, long, rough, &seen, steady)
}

/// The size, from bytes acknowledged and bytes ahead of flash at all moments, and the latter at those of
/// bursts that flash took at the rate of the first. `rough` is what one burst that ended was ahead by.
fn conclude(
    bench: &mut Bench<'_>,
    kind: Kind,
    long: Long,
    rough: f64,
    seen: &[(f64, f64)],
    steady: Vec<f64>,
) -> Result<Held, Stop> {
    let chunk = kind.chunk as f64;
    let mut sizes: Vec<f64> = seen.iter().map(|(_, ahead)| *ahead).collect();
    // Bursts that the drive took at another rate found it in another state: its fast flash was used up, or
    // it cleaned.
    let is_steady = 3 * steady.len() >= 2 * sizes.len() || kind.rest > REST && steady.len() >= 3;
    if is_steady {
        sizes = steady;
    }
    // A buffer that is not full yet goes on filling: then this is no size, and a longer burst may be.
    let third = sizes.len() / 3;
    let (early, late) = (&sizes[..third], &sizes[sizes.len() - third..]);
    let grows = stats::median(late) > 1.06 * stats::median(early) + chunk;
    if grows || stats::slope(seen) > FILLING {
        return Ok(Held::Not);
    }
    let (low, high) = stats::shortest_half(&sizes);
    let core: Vec<f64> = sizes
        .iter()
        .copied()
        .filter(|size| (low - 0.5 * chunk..=high + 0.5 * chunk).contains(size))
        .collect();
    // Half a write on average is there and not acknowledged, for the rest of it is not.
    let size = core.iter().sum::<f64>() / core.len() as f64 + 0.5 * chunk;
    let error = 2.0 * apart(&sizes) / (core.len() as f64).sqrt();
    let half = error + 0.5 * chunk + FINEST * size;
    let stray = |other: &&f64| (**other / size - 1.0).abs() > STRAY;
    let strays = sizes.iter().chain([&rough]).filter(stray).count();
    // A burst that ends is ahead by no more than the same bytes of one that goes on, and by half of that at least.
    let agree = (0.5 * size..=(1.0 + STRAY) * size + chunk).contains(&rough);
    if half >= WILD * size || 3 * strays > sizes.len() || !agree {
        return Ok(Held::Moving(None));
    }
    if size > long.most() + chunk || !is_full(bench, kind, long, size)? {
        return Ok(Held::Not);
    }
    let mut found = Estimate::new(size, size - half, size + half);
    if !bench.can_flush_amid() {
        // Nothing followed what was flushed, so that it was in flash earlier, at most by what a page takes: what is
        // on its way to the dies may be missing.
        found.high += long.drain * long.page_ns.max(0.0) * 1e-9;
    } else if (rough / size - 1.0).abs() > WILD {
        // What a flush waits for may differ while writes go on: it is at least what it is of a burst that ends.
        found.low = found.low.min(rough);
        found.high = found.high.max(rough);
    }
    Ok(if is_steady {
        Held::So(found)
    } else {
        Held::Moving(Some(found))
    })
}

/// Standard deviation of normal data of which half or less are strays, on whichever side.
fn apart(sizes: &[f64]) -> f64 {
    let (low, high) = stats::shortest_half(sizes);
    (high - low) / (2.0 * 0.6745)
}

/// Whether what a burst is ahead of flash by is all that the buffer holds: then it does not depend on how
/// much is in flight. Where something else holds writes up, such as a link shared by filling and emptying,
/// what is on its way through the buffer grows with what is in flight.
fn is_full(bench: &mut Bench<'_>, kind: Kind, long: Long, size: f64) -> Result<bool, Stop> {
    let mut less = 0;
    for i in 0..VOTES {
        let kind = Kind {
            in_flight: kind.in_flight / 2,
            ..kind.dithered(bench)
        };
        let done = kind.burst(bench, long.bytes)?;
        let moment = standstill(
            kind,
            &done,
            long.window(size, i as f64 / (VOTES - 1) as f64),
        );
        let page = bench.page();
        let written = (moment.acknowledged - LESS * size) as u64 / page * page;
        less += usize::from(kind.in_flash(bench, written.max(page))? <= moment.at_ns);
    }
    Ok(2 * less < VOTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind {
        chunk: 32 << 10,
        first: 4 << 10,
        in_flight: IN_FLIGHT,
        rest: REST,
    };

    #[test]
    fn a_burst_stands_still_where_nothing_is_acknowledged_for_longest() {
        // A write each microsecond, and a millisecond of nothing after each 40.
        let done: Vec<f64> = (0..400u32)
            .map(|i| f64::from(i) * 1e3 + f64::from(i / 40) * 1e6)
            .collect();
        let found = standstill(KIND, &done, (0.48, 0.56));
        assert_eq!(found.acknowledged, KIND.bytes(200));
        assert!(done[199] < found.at_ns && found.at_ns < done[200]);
    }

    #[test]
    fn moments_are_looked_for_where_the_buffer_is_full_and_a_flash_step_has_room() {
        let long = Long {
            bytes: 32 << 20,
            bend: 0.2,
            drain: 1e8,
            page_ns: 1e6,
        };
        for along in [0.0, 0.5, 1.0] {
            let (from, to) = long.window(6e6, along);
            assert!(from >= 0.27 - 1e-9 && from * f64::from(32 << 20) >= 2.0 * 6e6 - 1.0);
            assert!(to <= LAST + 1e-9 && (to - from) * f64::from(32 << 20) >= 6e6);
        }
    }

    #[test]
    fn strays_on_one_side_do_not_move_how_far_sizes_lie_apart() {
        let good = [1.0, 1.01, 0.99, 1.0, 1.02];
        let strayed = [1.0, 1.01, 0.99, 1.0, 1.02, 7.0, 8.0, 9.0];
        assert!(apart(&good) < 0.02 && apart(&strayed) < 0.03);
    }
}
