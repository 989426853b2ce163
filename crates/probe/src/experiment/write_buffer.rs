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
//! found it in different states (single-bit flash was used up, or it collected garbage): then the drive is left
//! alone for some seconds before each burst, once, and bursts at other rates do not count.
//! A burst that bends long before a tenth of it is shortened: bursts differ by more the longer they are.
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
//! fills. Then only its existence and its tier are told. Nor where a flush waits for no flash, because memory that
//! survives a power cut keeps what is written.

mod held;

use super::burst::{Kind, LAST, LAST_BURST, ahead_at, standstill};
use super::{About, arms, buffer_ends, enter, write_path};
use crate::bench::{Bench, Stop};
use crate::cost::{Cost, Scale};
use crate::findings::Findings;
use crate::infer::write_buffer::WriteBufferArm;
use crate::stats::{self, Estimate};
use held::{Held, Long, held};
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
pub(crate) const IN_FLIGHT: u64 = 6 << 20;
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
/// A rate below this share of the first one means that the buffer is full.
const FULL: f64 = 0.9;

/// A burst that bends at this share of it is long enough.
const WELL_BENT: f64 = 0.1;

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
    let compared = if bench.can_switch_hmb() {
        Some(write_path::run(bench, findings)?)
    } else {
        None
    };
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
        // The size rests on flushes that tell what has arrived in flash; the rates do not.
        arm.bytes = arm.bytes.filter(|_| arm.flush_reaches_flash());
    }
    match compared {
        Some(compared) => write_path::further(bench, findings, compared),
        None => Ok(()),
    }
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

/// A long burst, and what the buffer holds if that fills it.
fn attempt(
    bench: &mut Bench<'_>,
    kind: Kind,
    bytes: u64,
    search: &Search<'_>,
) -> Result<(Vec<f64>, Held), Stop> {
    let Search { first, room, .. } = *search;
    let mut bytes = bytes;
    let mut done = kind.burst(bench, bytes)?;
    if let Some((shorter, of_shorter)) = shortened(bench, kind, bytes, &done, first)? {
        (bytes, done) = (shorter, of_shorter);
    }
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

/// A burst that is no longer than shows the bend well, in place of one that is by far too long for it, as where
/// single-bit flash was used up only after bursts had become long. Bursts are compared with each other, and what one
/// percent of their rate is worth grows with their length: of 512 MiB more than the buffer that is looked for. None
/// where the shorter one is taken at another rate: then it found flash in another state.
fn shortened(
    bench: &mut Bench<'_>,
    kind: Kind,
    bytes: u64,
    done: &[f64],
    first: f64,
) -> Result<Option<(u64, Vec<f64>)>, Stop> {
    let drain = kind.rate(done, 0.5, LAST);
    let bent_at = kind.bend(done, first) * bytes as f64;
    let needed = ((bent_at / WELL_BENT) as u64)
        .next_power_of_two()
        .max(FIRST_BURST);
    if drain >= FULL * first || 2 * needed >= bytes {
        return Ok(None);
    }
    let shorter = kind.burst(bench, needed)?;
    let is_alike = (kind.rate(&shorter, 0.5, LAST) / drain - 1.0).abs() < 1.0 - FULL;
    Ok((is_alike && kind.bend(&shorter, first) < 2.0 * WELL_BENT).then_some((needed, shorter)))
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
