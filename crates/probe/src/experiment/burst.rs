//! Bursts of writes into an empty buffer: when each is done, when all of it is in flash, and what lies between
//! the two at one moment.

use crate::bench::{Bench, Stop};
use crate::stats;
use crate::target::Io;
use std::time::Duration;

/// Longest burst, bytes.
pub(crate) const LAST_BURST: u64 = 512 << 20;
/// What the host's noise may move the last completion before a standstill by, ns.
const SETTLED_NS: f64 = 30_000.0;
/// How finely what is ahead of flash is looked for, as a share of it.
pub(super) const FINEST: f64 = 1.0 / 256.0;
/// Not to the very end of a burst: the last write is the one that the host held up longest.
pub(super) const LAST: f64 = 0.95;
/// The second part of a burst is slower than the first by so much, and two parts leave less than this share
/// of what one leaves.
const SLOWER: f64 = 0.985;
const EXPLAINED: f64 = 0.3;
/// Beyond what the buffer holds, so many times that is written behind a flush.
const BEHIND_FLUSH: f64 = 1.25;
/// A burst that has taken so many times as long as at its first rate has fallen behind.
const BEHIND: f64 = 1.15;

/// Bursts of one kind.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    /// Bytes of one write.
    pub(super) chunk: u64,
    /// Bytes of the first one.
    pub(super) first: u64,
    /// Bytes in flight.
    pub(super) in_flight: u64,
    /// Time the drive is left alone before each burst.
    pub(super) rest: Duration,
}

impl Kind {
    fn writes(self, bench: &Bench<'_>, bytes: u64) -> Vec<Io> {
        // In the middle of the drive, round and round the same stretch: its map entries are at hand.
        let room = (bench.capacity() / 4).min(LAST_BURST) / self.chunk * self.chunk;
        let start = bench.capacity() / 2 / self.chunk * self.chunk;
        let mut writes = Vec::new();
        let (mut at, mut length) = (0, self.first);
        while at < bytes {
            length = length.min(bytes - at);
            writes.push(Io::write(start + at % room, length as u32));
            (at, length) = (at + length, self.chunk);
        }
        writes
    }

    /// Empties the buffer.
    fn rest(self, bench: &mut Bench<'_>) -> Result<(), Stop> {
        bench.flush()?;
        bench.idle(self.rest)
    }

    fn depth(self) -> u32 {
        (self.in_flight / self.chunk) as u32
    }

    /// Completion times of a burst into an empty buffer, sorted, ns.
    pub(super) fn burst(self, bench: &mut Bench<'_>, bytes: u64) -> Result<Vec<f64>, Stop> {
        self.rest(bench)?;
        self.run(bench, bytes)
    }

    fn run(self, bench: &mut Bench<'_>, bytes: u64) -> Result<Vec<f64>, Stop> {
        let ios = self.writes(bench, bytes);
        let samples = bench.batch(&ios, self.depth())?;
        let mut done: Vec<f64> = samples.iter().map(|s| s.completed_ns() as f64).collect();
        done.sort_unstable_by(f64::total_cmp);
        Ok(done)
    }

    /// When a burst into an empty buffer is in flash, ns from its start. The flush begins when the
    /// target's clock says that all of it is done: the last completion is the one that the host held
    /// up longest, which is none of the drive's doing.
    pub(super) fn in_flash(self, bench: &mut Bench<'_>, bytes: u64) -> Result<f64, Stop> {
        Ok(self.burst_in_flash(bench, bytes)?.1)
    }

    /// The same after completion times as of [`Kind::burst`].
    pub(super) fn burst_in_flash(
        self,
        bench: &mut Bench<'_>,
        bytes: u64,
    ) -> Result<(Vec<f64>, f64), Stop> {
        self.rest(bench)?;
        let started = bench.now();
        let done = self.run(bench, bytes)?;
        let flush_from = bench.now().saturating_sub(started);
        Ok((done, flush_from.as_nanos() as f64 + bench.flush()?))
    }

    /// The same for the first bytes of a longer burst, by a flush beside the writes that follow; of the burst alone
    /// where the target cannot do that. What follows holds up what went before on its way to the dies, so
    /// a burst that ends is in flash earlier than the same bytes of one that goes on. `seen` gets what that burst
    /// itself was ahead by when the flush had ended: no more than the buffer holds, and less where flash takes much at
    /// a time.
    pub(super) fn in_flash_amid(
        self,
        bench: &mut Bench<'_>,
        bytes: u64,
        more: u64,
        seen: &mut Vec<f64>,
    ) -> Result<f64, Stop> {
        self.rest(bench)?;
        let left_over = bytes % self.chunk;
        let first = if left_over == 0 {
            self.chunk
        } else {
            left_over
        };
        let after = 1 + (bytes.saturating_sub(first)) / self.chunk;
        let more = more.next_multiple_of(self.chunk);
        let kind = Kind { first, ..self };
        let ios = kind.writes(bench, bytes + more);
        match bench.batch_flushing(&ios, self.depth(), after as usize)? {
            Some((flushed_ns, done)) => {
                seen.push(kind.bytes(done) - bytes as f64);
                Ok(flushed_ns)
            }
            None => self.in_flash(bench, bytes),
        }
    }

    /// The same with a first write of another length, so that bursts do not all end a write at the same
    /// place in the buffer.
    pub(super) fn dithered(self, bench: &mut Bench<'_>) -> Self {
        let parts = (self.chunk / bench.page()).max(1);
        let first = (bench.page() * (1 + bench.below(parts))).min(self.chunk);
        Kind { first, ..self }
    }

    /// Bytes of the first so many writes of a burst.
    pub(super) fn bytes(self, writes: usize) -> f64 {
        self.first as f64 + (writes as f64 - 1.0) * self.chunk as f64
    }

    /// Bytes per second between two shares of a burst.
    pub(super) fn rate(self, done: &[f64], from: f64, to: f64) -> f64 {
        let at = |share: f64| ((done.len() - 1) as f64 * share) as usize;
        let (from, to) = (at(from), at(to).max(at(from) + 1).min(done.len() - 1));
        (to - from) as f64 * self.chunk as f64 / ((done[to] - done[from]) * 1e-9).max(1e-9)
    }

    /// Two rates, each for one part of a burst.
    pub(super) fn two_rates(self, done: &[f64]) -> Option<TwoRates> {
        let every = done.len().div_ceil(TWO_RATES_POINTS);
        let times: Vec<f64> = done.iter().copied().step_by(every).collect();
        let hinge = stats::hinge(&times)?;
        let bytes = (self.chunk * every as u64) as f64;
        let rate = |ns: f64| bytes / (ns * 1e-9).max(1e-9);
        Some(TwoRates {
            bend: hinge.at as f64 / times.len() as f64,
            fill: rate(hinge.before),
            drain: rate(hinge.after),
            left: hinge.left,
        })
    }

    /// Where the burst falls behind its first rate for good, as a share of it.
    pub(super) fn bend(self, done: &[f64], first_rate: f64) -> f64 {
        let per_chunk = self.chunk as f64 / first_rate * 1e9;
        let behind = |i: usize| done[i] - done[0] > BEHIND * per_chunk * i as f64;
        let point = (16..done.len()).find(|i| behind(*i));
        point.map_or(1.0, |i| i as f64 / done.len() as f64)
    }
}

/// Points of a burst to which two rates are fitted.
const TWO_RATES_POINTS: usize = 400;

/// A burst as two straight parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct TwoRates {
    /// Share of it after which the second begins.
    pub(super) bend: f64,
    /// Rates of the parts, bytes/s.
    pub(super) fill: f64,
    pub(super) drain: f64,
    /// What is left unexplained, as a share of what one straight line leaves.
    pub(super) left: f64,
}

impl TwoRates {
    /// The second part is slower, and that is no accident of the steps in which flash takes data.
    pub(super) fn is_bent(self) -> bool {
        self.drain < SLOWER * self.fill && self.left < EXPLAINED
    }
}

/// A moment of a long burst, such as one at which nothing moves.
pub(super) struct Moment {
    pub(super) at_ns: f64,
    pub(super) acknowledged: f64,
}

/// The longest time for which nothing is acknowledged, of those between two shares of a burst: the buffer
/// is full then, and nothing is on its way into it.
pub(super) fn standstill(kind: Kind, done: &[f64], (from, to): (f64, f64)) -> Moment {
    let index = |share: f64| ((share * done.len() as f64) as usize).clamp(1, done.len() - 2);
    let (from, to) = (index(from), index(to));
    let gap = |i: usize| done[i + 1] - done[i];
    let longest = (from..=to.max(from)).max_by(|a, b| gap(*a).total_cmp(&gap(*b)));
    let i = longest.unwrap_or(from);
    Moment {
        at_ns: done[i] + (0.25 * gap(i)).min(SETTLED_NS),
        acknowledged: kind.bytes(i + 1),
    }
}

/// The moment from a share of a burst on at which it is farthest ahead of flash that takes data at one rate, bytes/s.
pub(super) fn crest(kind: Kind, done: &[f64], from: f64, drain: f64) -> Moment {
    let last = (LAST * done.len() as f64) as usize;
    let from = ((from * done.len() as f64) as usize).min(last);
    let ahead = |i: usize| kind.bytes(i + 1) - drain * done[i] * 1e-9;
    let most = (from..=last.min(done.len() - 1)).max_by(|a, b| ahead(*a).total_cmp(&ahead(*b)));
    let i = most.unwrap_or(from);
    Moment {
        at_ns: done[i],
        acknowledged: kind.bytes(i + 1),
    }
}

/// What is acknowledged and not in flash at one moment of a long burst: bounds. Without a guess, `share` of it is
/// how finely it is looked for.
pub(super) fn ahead_at(
    bench: &mut Bench<'_>,
    kind: Kind,
    moment: &Moment,
    guess: Option<(f64, f64)>,
    seen: &mut Vec<f64>,
) -> Result<(f64, f64), Stop> {
    let page = bench.page() as f64;
    let all = (moment.acknowledged / page).floor();
    // In pages of the burst: so many are in flash by then, so many are not.
    let (mut low, mut high) = (0.0, all);
    let more = guess.map(|(size, half)| (BEHIND_FLUSH * (size + half)) as u64);
    let mut arrived = |pages: f64| -> Result<bool, Stop> {
        let bytes = (pages * page) as u64;
        let in_flash_ns = match more {
            Some(more) => kind.in_flash_amid(bench, bytes, more, seen)?,
            None => kind.in_flash(bench, bytes)?,
        };
        Ok(in_flash_ns <= moment.at_ns)
    };
    let mut finest = 1.0f64;
    if let Some((size, half)) = guess {
        finest = (size * FINEST / page).floor().max(1.0);
        let mut step = (half / page).ceil().max(1.0);
        let middle = ((moment.acknowledged - size) / page).round();
        let (mut from, mut to) = (middle - step, (middle + step).max(1.0));
        while from > 0.0 && !arrived(from)? {
            high = from;
            step *= 2.0;
            from -= step;
        }
        low = from.max(0.0);
        if high == all {
            while to < all && arrived(to)? {
                low = to;
                step *= 2.0;
                to += step;
            }
            high = to.min(all);
        }
    }
    while high - low > finest.max(FINEST * (all - high)) {
        let middle = f64::midpoint(low, high).floor();
        if arrived(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok((
        moment.acknowledged - high * page,
        moment.acknowledged - low * page,
    ))
}
