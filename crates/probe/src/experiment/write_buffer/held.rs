//! What a buffer that is full holds: bytes acknowledged and not in flash, at moments of long bursts, and whether
//! other ways of looking bear it out.

use super::REST;
use crate::bench::{Bench, Stop};
use crate::experiment::burst::{FINEST, Kind, LAST, ahead_at, crest, standstill};
use crate::stats::{self, Estimate};

/// Points that lie as far apart as this share of their median tell nothing.
const WILD: f64 = 0.1;
/// Where it fills, it takes at least so much of what is acknowledged.
const FILLING: f64 = 0.25;
/// A point so far from the others is a stray. The drive does the same each time only where fewer than a third are.
const STRAY: f64 = 0.2;
/// What a burst was itself ahead by when a flush beside it had ended, as shares of the size: flash may just have taken
/// half of it at a time.
const OWN: (f64, f64) = (0.45, 1.15);
/// A burst that ends is ahead by this share of what the same bytes of one that goes on are, at least.
const ENDED: f64 = 0.75;
/// Drives whose bursts are emptied at rates as near as this are in one state.
const STEADY: f64 = 0.03;
/// Moments of long bursts at which what the buffer holds is looked for.
const POINTS: usize = 9;
/// The same where the drive is left alone for long before each burst.
const POINTS_RESTED: usize = 5;
/// Bursts with half as much in flight, and a share of what the buffer holds that they must be ahead by.
const VOTES: usize = 5;
const LESS: f64 = 0.9;

/// A burst that fills the buffer.
#[derive(Clone, Copy)]
pub(super) struct Long {
    pub(super) bytes: u64,
    /// Share of it after which it falls behind.
    pub(super) bend: f64,
    /// Rate at which flash takes its end, bytes/s.
    pub(super) drain: f64,
    /// What a page takes from the buffer into flash, ns.
    pub(super) page_ns: f64,
}

impl Long {
    /// Most that can be told from it: where it has gone on for no more than twice what the buffer holds, it
    /// may still be filling it.
    pub(super) fn most(self) -> f64 {
        0.45 * self.bytes as f64
    }

    /// Shares of the burst between which a moment is looked for: wide enough for the buffer to be emptied
    /// once, for flash may take all of it at a time; `along` from 0 to 1.
    pub(super) fn window(self, size: f64, along: f64) -> (f64, f64) {
        let size = size / self.bytes as f64;
        let full = self.bend * 1.1 + 0.05;
        let from = full.max(2.0 * size).min(0.85);
        let width = (1.2 * size).min(LAST - from);
        let from = from + along * (LAST - from - width);
        (from, from + width)
    }
}

/// What became of the search for what the buffer holds.
pub(super) enum Held {
    So(Estimate),
    /// The drive does not do the same each time. What it seems to be all the same, if anything.
    Moving(Option<Estimate>),
    /// It is not full.
    Not,
}

/// What the buffer holds.
pub(super) fn held(
    bench: &mut Bench<'_>,
    kind: Kind,
    long: Long,
    series: &str,
) -> Result<Held, Stop> {
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
    let near = stats::median(&sizes);
    let own_most = stats::quantile(&own, 0.9);
    if !own.is_empty() && !(OWN.0 * near..=OWN.1 * near + chunk).contains(&own_most) {
        return Ok(Held::Moving(None));
    }
    let looks = Looks {
        seen,
        steady,
        ended: rough,
        own,
    };
    conclude(bench, kind, long, looks)
}

/// What bursts were ahead of flash by.
struct Looks {
    /// Bytes acknowledged and bytes ahead at all moments.
    seen: Vec<(f64, f64)>,
    /// The latter in bursts that flash took at the rate of the first.
    steady: Vec<f64>,
    /// The same of a burst that ended.
    ended: f64,
    /// What each burst was itself ahead by when a flush beside it had ended.
    own: Vec<f64>,
}

impl Looks {
    /// An interval that has room for what other ways of looking say. Each errs to one side: a burst that ends is in
    /// flash earlier than the same bytes of one that goes on, and a flush beside writes waits for what dies that began
    /// earlier have not ended, while later ones have: 3 % more of 3 MiB, where flash takes 1.1 GB/s. A drive that does
    /// not do the same each time has each burst tell of itself alone.
    fn room(&self, found: Estimate, is_steady: bool) -> Estimate {
        let mut others = vec![self.ended];
        if !self.own.is_empty() {
            others.push(stats::quantile(&self.own, 0.9));
            if !is_steady {
                others.push(stats::median(&self.own));
            }
        }
        let low = others.iter().copied().fold(found.low, f64::min);
        let high = others.iter().copied().fold(found.high, f64::max);
        Estimate::new(found.estimate, low, high)
    }
}

/// The size.
fn conclude(bench: &mut Bench<'_>, kind: Kind, long: Long, mut looks: Looks) -> Result<Held, Stop> {
    let chunk = kind.chunk as f64;
    let steady = std::mem::take(&mut looks.steady);
    let (seen, rough) = (&looks.seen, looks.ended);
    let mut sizes: Vec<f64> = seen.iter().map(|(_, ahead)| *ahead).collect();
    // Bursts that the drive took at another rate found it in another state: its fast flash was used up, or
    // it collected garbage.
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
    // A burst that ends is ahead by no more than the same bytes of one that goes on, and by most of that.
    let agree = (ENDED * size - chunk..=(1.0 + STRAY) * size + chunk).contains(&rough);
    if half >= WILD * size || 3 * strays > sizes.len() || !agree {
        return Ok(Held::Moving(None));
    }
    if size > long.most() + chunk || !is_full(bench, kind, long, size)? {
        return Ok(Held::Not);
    }
    if !is_even(bench, kind, long, size)? {
        return Ok(Held::So(Estimate::at_least(size - half)));
    }
    let mut found = Estimate::new(size, size - half, size + half);
    if !bench.can_flush_amid() {
        // Nothing followed what was flushed, so that it was in flash earlier, at most by what a page takes: what is
        // on its way to the dies may be missing.
        found.high += long.drain * long.page_ns.max(0.0) * 1e-9;
    }
    let found = looks.room(found, is_steady);
    Ok(if is_steady {
        Held::So(found)
    } else {
        Held::Moving(Some(found))
    })
}

/// Whether a burst is ahead of flash by no more where it has come farthest than where it stands still. What a buffer
/// that is full holds is the same at any time; one that is emptied at times, and faster than it is filled, holds more
/// when that begins.
fn is_even(bench: &mut Bench<'_>, kind: Kind, long: Long, size: f64) -> Result<bool, Stop> {
    let kind = kind.dithered(bench);
    let done = kind.burst(bench, long.bytes)?;
    let moment = crest(kind, &done, long.window(size, 0.0).0, long.drain);
    let guess = Some((size, kind.chunk as f64));
    let (low, high) = ahead_at(bench, kind, &moment, guess, &mut Vec::new())?;
    Ok(f64::midpoint(low, high) <= (1.0 + WILD) * size + kind.chunk as f64)
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
    use super::super::IN_FLIGHT;
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
