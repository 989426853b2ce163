//! Write buffers that bursts do not measure: smaller than a few writes, or larger than the longest burst.
//!
//! A buffer that one write overflows makes that write wait for flash: single writes of growing size to a drive at
//! rest leave the line of the smaller ones. Of a buffer that the longest burst does not fill, flush
//! after shorter bursts tells how much of it was still ahead of flash: it is larger than that.

use super::burst::{Kind, LAST, standstill};
use super::knee;
use crate::bench::{Bench, Stop};
use crate::infer::write_buffer::WriteBufferArm;
use crate::stats::{self, Estimate};
use crate::target::Io;
use std::time::Duration;

/// Largest single write, pages.
const PAGES_MAX: u64 = 128;
/// Pages of the write that, beside one of a page, tells what each page takes.
const LINE_PAGES: u64 = 4;
/// Writes of each size.
const EACH: usize = 7;
/// Flash may take part of a write that takes longer to arrive than this share of what a flush waits for.
const ARRIVES: f64 = 0.6;
/// Share of the wait by which a write that overflows a buffer takes longer than the largest that does not.
const JUMPS: f64 = 0.5;
/// At its end a burst must be ahead of flash by so many times what it was at its middle: less, and flash keeps
/// up with it.
const GROWS: f64 = 1.1;
/// At its middle it must be ahead by this share of what it is at its end: half of that, found coarsely.
const SOME: f64 = 0.25;
/// A burst whose second part is slower than this share of its first has filled the buffer, or used fast flash up; of bursts
/// that find the drive in one state none is slower than that share of another.
const STRAIGHT: f64 = 0.97;
const ALIKE: f64 = 0.97;
/// So many times a bound is written behind a flush that tells whether a burst is ahead by as much.
const OWN_BEHIND: f64 = 2.0;
/// How finely a bound is looked for, as a share of it, and bursts that must agree on it: each writes much.
const COARSE: f64 = 0.2;
const VOTES: usize = 3;
/// The last writes of a burst may be those that the host held up.
const ALL_BUT_STRAYS: f64 = 0.98;
const REST: Duration = Duration::from_millis(10);

/// Size of a buffer that a single write overflows.
pub(super) fn smaller(
    bench: &mut Bench<'_>,
    arm: &WriteBufferArm,
    series: &str,
) -> Result<Option<Estimate>, Stop> {
    let page = bench.page();
    let flush_ns = arm.program_ns();
    let waits_ns = arm.waits_ns();
    let most = (u64::from(bench.description().transfer_bytes_max) / page).min(PAGES_MAX);
    if most <= LINE_PAGES {
        return Ok(None);
    }
    let one = write(bench, 1)?;
    let some = write(bench, LINE_PAGES)?;
    let per_page = if some > one + waits_ns {
        let (two, three) = (write(bench, 2)?, write(bench, 3)?);
        per_page_of_few(one, two, three)
    } else {
        (some - one).max(0.0) / (LINE_PAGES - 1) as f64
    };
    let (low, high) = knee(2, most, 0.0, |pages| {
        let latency = write(bench, pages)?;
        let point = ((pages * page) as f64, latency / 1e3);
        bench.note(series, "bytes of one write", "write latency, us", point);
        // A line of so few points is not exact.
        let line = one + 1.2 * per_page * (pages - 1) as f64;
        Ok(latency > line + waits_ns)
    })?;
    let Some(high) = high.filter(|high| per_page * *high as f64 <= ARRIVES * flush_ns) else {
        return Ok(None);
    };
    let low = low.max(1);
    // A line of two points leads astray far from them. What overflows a buffer waits all at once.
    let longer = 1.2 * per_page * (high - low) as f64 + JUMPS * waits_ns;
    if write(bench, high)? < write(bench, low)? + longer {
        return Ok(None);
    }
    let [low, high] = [low, high].map(|pages| (pages * page) as f64);
    Ok(Some(Estimate::new(low, low, high)))
}

/// What a page more takes where four take longer than one by what flash takes: the buffer has overflown by then, or the link is slow.
/// The smaller of the two differences has no wait for flash in it, unless both have: then the line is too steep for a size to be told.
fn per_page_of_few(one: f64, two: f64, three: f64) -> f64 {
    (two - one).min(three - two).max(0.0)
}

/// Median latency of single writes of so many pages to a drive at rest, ns.
fn write(bench: &mut Bench<'_>, pages: u64) -> Result<f64, Stop> {
    let bytes = pages * bench.page();
    let start = bench.capacity() / 8 * 5 / bytes * bytes;
    let mut latencies = Vec::new();
    for i in 0..EACH as u64 {
        bench.flush()?;
        bench.idle(REST)?;
        let io = [Io::write(start + i * bytes, bytes as u32)];
        latencies.push(bench.batch(&io, 1)?[0].latency_ns as f64);
    }
    Ok(stats::median(&latencies))
}

/// What a buffer holds at least that a burst of so many bytes does not fill: what is ahead of flash at its
/// end, if that has grown all along. A buffer that is filled and emptied at steady rates is half as far ahead at half
/// of the burst: what does not grow is on its way through the drive, as in one whose flash keeps up, and what comes
/// all at once, from next to nothing, is flash that paused for itself.
pub(super) fn larger(
    bench: &mut Bench<'_>,
    kind: Kind,
    bytes: u64,
) -> Result<Option<Estimate>, Stop> {
    let mut bursts = Vec::new();
    for _ in 0..VOTES {
        bursts.push(kind.burst(bench, bytes)?);
    }
    if !are_alike(kind, &bursts) {
        return Ok(None);
    }
    let Some(late) = ahead_at_least(bench, kind, &mut bursts, (0.9, LAST))? else {
        return Ok(None);
    };
    let Some(early) = ahead_at_least(bench, kind, &mut bursts, (0.45, 0.5))? else {
        return Ok(None);
    };
    if late.0 <= GROWS * early.1 || early.1 <= SOME * late.0 {
        return Ok(None);
    }
    let least = ahead_by_itself(bench, kind, &bursts[0], late.0)? - apart(kind, &bursts);
    if !are_alike(kind, &bursts) {
        return Ok(None);
    }
    Ok((least > kind.chunk as f64).then(|| Estimate::at_least(least)))
}

/// Whether bursts do not fill the buffer, as a bound presupposes, and find the drive in one state: none falls behind
/// its own beginning, and all take as long.
fn are_alike(kind: Kind, bursts: &[Vec<f64>]) -> bool {
    let rates = |from, to| bursts.iter().map(move |done| kind.rate(done, from, to));
    let mut halves = rates(0.0, 0.5).zip(rates(0.5, LAST));
    let fastest = rates(0.0, LAST).fold(0.0, f64::max);
    halves.all(|(first, last)| last >= STRAIGHT * first)
        && rates(0.0, LAST).all(|rate| rate >= ALIKE * fastest)
}

/// Bytes by which bursts of one kind lie apart at most, at the same time. What is ahead of flash is told by the times of
/// different bursts, and no more finely than this.
fn apart(kind: Kind, bursts: &[Vec<f64>]) -> f64 {
    let mut most = 0.0f64;
    for i in 0..bursts.iter().map(Vec::len).max().unwrap_or(0) {
        // Those that were meant to be shorter end earlier, and their last writes may be those that the host held up.
        let at = bursts
            .iter()
            .filter(|done| i < (ALL_BUT_STRAYS * done.len() as f64) as usize)
            .map(|done| done[i]);
        let (first, last) = at.fold((f64::MAX, 0.0f64), |(first, last), at| {
            (first.min(at), last.max(at))
        });
        most = most.max(last - first);
    }
    bursts
        .iter()
        .map(|done| kind.rate(done, 0.0, LAST))
        .fold(0.0, f64::max)
        * most
        * 1e-9
}

/// As much of a bound as each of some bursts says by itself: acknowledged when a flush beside it had ended. Bursts that
/// are compared with each other differ by what flash did for itself meanwhile, and in 5 ms of that it takes more than
/// many a buffer holds. Where there is no flush beside writes, the bound stands.
fn ahead_by_itself(
    bench: &mut Bench<'_>,
    kind: Kind,
    burst: &[f64],
    least: f64,
) -> Result<f64, Stop> {
    let page = bench.page();
    let bytes = (LAST * kind.bytes(burst.len()) - least) as u64 / page * page;
    let mut own = Vec::new();
    for _ in 0..VOTES {
        kind.in_flash_amid(
            bench,
            bytes.max(page),
            (OWN_BEHIND * least) as u64,
            &mut own,
        )?;
        if !bench.can_flush_amid() {
            break;
        }
    }
    Ok(own.into_iter().fold(least, f64::min))
}

/// Bytes that are ahead of flash at one moment of bursts: a bound that all of them keep to, and one that one of
/// them does not. None where there is no such bound: then one burst differs from the next by as much.
fn ahead_at_least(
    bench: &mut Bench<'_>,
    kind: Kind,
    bursts: &mut Vec<Vec<f64>>,
    window: (f64, f64),
) -> Result<Option<(f64, f64)>, Stop> {
    let moment = standstill(kind, &bursts[0], window);
    let writes = ((moment.acknowledged - kind.first as f64) / kind.chunk as f64) as usize;
    let latest_ns = bursts
        .iter()
        .filter_map(|done| done.get(writes))
        .fold(moment.at_ns, |latest, at| latest.max(*at));
    let page = bench.page();
    let (mut least, mut most) = (0.0, moment.acknowledged);
    while most - least > COARSE * most && most > kind.chunk as f64 {
        let middle = f64::midpoint(least, most);
        let bytes = ((moment.acknowledged - middle) as u64 / page * page).max(page);
        if is_late(bench, kind, bytes, latest_ns, bursts)? {
            least = middle;
        } else {
            most = middle;
        }
    }
    Ok((least > kind.chunk as f64).then_some((least, most)))
}

/// Whether so many bytes are not in flash at a time, however often that is tried. A burst that is acknowledged more
/// slowly than those before finds the drive in another state, with its fast flash used up, or erasing once more: by so
/// much its data comes later, too. Each burst joins those that are compared.
fn is_late(
    bench: &mut Bench<'_>,
    kind: Kind,
    bytes: u64,
    at_ns: f64,
    bursts: &mut Vec<Vec<f64>>,
) -> Result<bool, Stop> {
    let writes = (bytes as f64 * ALL_BUT_STRAYS / kind.chunk as f64) as usize;
    let of_bursts = bursts.iter().filter_map(|done| done.get(writes));
    let slowest_ns = of_bursts.fold(0.0, |slowest: f64, at| slowest.max(*at));
    for _ in 0..VOTES {
        let (done, in_flash_ns) = kind.burst_in_flash(bench, bytes)?;
        let behind_ns = done
            .get(writes)
            .map_or(0.0, |at| (at - slowest_ns).max(0.0));
        bursts.push(done);
        if in_flash_ns - behind_ns <= at_ns {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::per_page_of_few;

    /// At 100 MB/s four pages take as much longer than one as a program: "8 KiB" of a buffer of 33 MiB.
    #[test]
    fn a_slow_link_is_a_line_and_no_small_buffer() {
        assert!((per_page_of_few(62.5, 110.0, 153.1) - 45.0).abs() < 3.0);
        // Buffers of one page and of two.
        assert_eq!(per_page_of_few(20.0, 223.0, 226.0), 3.0);
        assert_eq!(per_page_of_few(20.0, 23.0, 226.0), 3.0);
    }
}
