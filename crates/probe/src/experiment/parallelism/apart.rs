//! Dies by pairs far from each other, where neighbours do not collide: two pages of 4 KiB in one page of flash are read at once,
//! or the drive was written in another order.
//!
//! Any two pages far from each other share one of `n` dies once in `n` times, and take up to twice as long, which no outlier of the host does so
//! regularly. Where addresses go round the dies in order, these pairs return at whole rounds.

use super::alone::Alone;
use super::bus::SLOW_BUS_NS;
use super::{
    DISTANCE_MAX, FETCHED_MAX, Pairs, Told, UNKNOWN_BUS, beside, collisions, layout, note,
};
use crate::bench::{Bench, Stop};
use crate::findings::Findings;
use crate::stats::{self, Estimate};
use std::time::Duration;

/// Pairs at random distances.
pub(super) const PAIRS: u64 = 2000;
/// Single reads that tell what pairs take by chance.
const SINGLES: u64 = 400;
/// Longer than most by this, or than the slowest page by the next, and up to the last is late.
const LATE: f64 = 1.25;
const LATER: f64 = 1.1;
const BEYOND: f64 = 2.1;
/// How often more are read one after the other, to know what share of them is late.
pub(super) const AGAIN: usize = 3;
/// The gap before late ones is so wide, and pairs in it as a share of the late ones are no more than this.
const GAP: f64 = 1.04;
const TAIL: f64 = 0.2;
/// Two reads at once meet a drive at work for itself so many times as often as one.
const BOTH: f64 = 2.0;
/// Least share of pairs that is no chance.
const REGULAR: f64 = 0.01;

/// What is said where too few pairs wait for dies alone.
const MOSTLY_BUSY: &str = "reads are late one after the other nearly as often as two at once: how many of these share a die does not \
                           show";

/// Does it; `alone`: what the same reads take one after the other.
pub(super) fn measure(
    bench: &mut Bench<'_>,
    findings: &mut Findings,
    (kind, room): (Pairs, u64),
    alone: &Alone,
) -> Result<(), Stop> {
    let times = pairs(bench, kind, room)?;
    let by_chance = match kind {
        Pairs::Plain { .. } => by_chance(bench, room)?,
        Pairs::BesideAlone { .. } => alone.times().to_vec(),
    };
    // Of two dies, half of the pairs share one.
    let [most, most_by_chance] = [&times, &by_chance].map(|times| stats::quantile(times, 0.25));
    let late = Late::of(&times, most, LATE);
    let chance = Late::of(&by_chance, most_by_chance, LATE).twice;
    let collide = late.are_regular(chance);
    findings.collisions = Some(collide);
    if !collide {
        findings.notes.push(
            "no two reads get in each other's way: no sign of flash dies behind the addresses"
                .to_owned(),
        );
        return Ok(());
    }
    let slow = late.median;
    let wait_ns = (slow - most) * kind.unit_ns();
    findings.flash_wait_ns = Some(wait_ns);
    let shares = collisions(bench, kind, (most * slow).sqrt(), room)?;
    if let Some(layout) = layout::of(&shares, FETCHED_MAX) {
        let told = Told {
            layout: Some(layout),
            stripe: layout.stripe(),
            fast: most,
            wait_ns,
        };
        return note(bench, findings, (kind, room), told);
    }
    if late.are_a_tail((&times, most), (&by_chance, most_by_chance)) {
        findings.notes.push(
            "many pairs of reads take a little longer than most: what they wait for takes so little that the share of them that \
             share a die does not show"
                .to_owned(),
        );
        return Ok(());
    }
    if wait_ns < SLOW_BUS_NS {
        findings.notes.push(UNKNOWN_BUS.to_owned());
        return Ok(());
    }
    let hits = (late.twice * times.len() as f64).round() as usize;
    let busy = late_alone(bench, (kind, room), alone)?;
    let Some(units) = units(stats::share(hits, times.len()), busy) else {
        findings.notes.push(MOSTLY_BUSY.to_owned());
        return Ok(());
    };
    findings.quantity("parallel_units", "count", units);
    findings.notes.push(
        "neighbours in address lie on different dies more often than not: pages are small, or the drive was \
         written in another order"
            .to_owned(),
    );
    Ok(())
}

/// Share of the same reads that are late one after the other: a drive may be at work for itself, as where it completes units of its map,
/// and keep dies busy that way.
fn late_alone(
    bench: &mut Bench<'_>,
    (kind, room): (Pairs, u64),
    alone: &Alone,
) -> Result<Estimate, Stop> {
    let mut times = alone.times().to_vec();
    for _ in 0..AGAIN {
        times.extend_from_slice(Alone::measured(bench, kind, (room, DISTANCE_MAX))?.times());
    }
    let most = stats::quantile(&times, 0.25);
    let late = times.iter().filter(|time| **time > LATE * most).count();
    Ok(stats::share(late, times.len()))
}

/// Dies, where `late` of pairs wait for each other or for what else keeps dies `busy`. Two reads at once meet that up to twice as often
/// as one after the other, for the drive has had no rest between. Nothing where that may be all of it.
fn units(late: Estimate, busy: Estimate) -> Option<Estimate> {
    let most_busy = BOTH * busy.high;
    (late.low > most_busy).then(|| {
        let one = 1.0 / (late.estimate - busy.estimate);
        let most = 1.0 / (late.low - most_busy);
        Estimate::new(one, 1.0 / late.high, most.max(one))
    })
}

/// Whether more pairs than chance explains take longer than the slowest page: where pages differ and are kept once read.
pub(super) fn are_late(bench: &mut Bench<'_>, room: u64) -> Result<bool, Stop> {
    let times = pairs(bench, Pairs::Plain { ahead: 0 }, room)?;
    let chance = by_chance(bench, room)?;
    let slowest = stats::quantile(&chance, 0.98);
    let [late, chance] = [&times, &chance].map(|times| Late::of(times, slowest, LATER));
    Ok(late.are_regular(chance.twice))
}

/// What pairs at random distances are told by.
fn pairs(bench: &mut Bench<'_>, kind: Pairs, room: u64) -> Result<Vec<f64>, Stop> {
    let mut times = Vec::new();
    for _ in 0..PAIRS {
        let distance = 1 + bench.below(DISTANCE_MAX);
        times.extend(kind.pair(bench, distance, room)?);
    }
    Ok(times)
}

/// Pairs that take longer than others.
struct Late {
    /// Share of those that take up to twice as long, as two reads of one die do, and what they are told by in the middle.
    twice: f64,
    median: f64,
    /// Share of those that take even longer.
    beyond: f64,
}

impl Late {
    /// Of pairs that mostly take `most`, later than that by a factor of `from`.
    fn of(times: &[f64], most: f64, from: f64) -> Self {
        let within = |from: f64, to: f64| {
            let is_within = move |time: &f64| (from * most..to * most).contains(time);
            times
                .iter()
                .copied()
                .filter(is_within)
                .collect::<Vec<f64>>()
        };
        let (twice, beyond) = (within(from, BEYOND), within(BEYOND, f64::INFINITY));
        let share = |some: &[f64]| some.len() as f64 / times.len().max(1) as f64;
        Late {
            twice: share(&twice),
            median: stats::median(&twice),
            beyond: share(&beyond),
        }
    }

    /// Whether they are only the slowest of those that wait: no gap lies before them, beyond what chance fills of it. Each with what
    /// most take.
    fn are_a_tail(&self, times: (&[f64], f64), by_chance: (&[f64], f64)) -> bool {
        let in_gap = |(times, most): (&[f64], f64)| {
            let gap = LATE * most / GAP..LATE * most * GAP;
            let inside = times.iter().filter(|time| gap.contains(time)).count();
            inside as f64 / times.len().max(1) as f64
        };
        in_gap(times) - in_gap(by_chance) > TAIL * self.twice
    }

    /// Whether they are more than chance makes late, and not what holds the host up.
    fn are_regular(&self, chance: f64) -> bool {
        self.twice > REGULAR + 2.0 * chance && self.twice > 3.0 * self.beyond
    }
}

/// Times of pairs as they would be if two reads had nothing to do with each other and only spread
/// as single reads do.
fn by_chance(bench: &mut Bench<'_>, room: u64) -> Result<Vec<f64>, Stop> {
    let page = bench.page();
    let mut singles = Vec::new();
    for _ in 0..SINGLES {
        let at = bench.below(room);
        let mut ignored = Vec::new();
        bench.read_pages([beside(at, at) * page], 1, &mut ignored)?;
        bench.idle(Duration::from_millis(1))?;
        bench.read_pages([at * page], 1, &mut singles)?;
    }
    let mut pairs = Vec::new();
    for _ in 0..PAIRS {
        let a = singles[bench.below(SINGLES) as usize];
        pairs.push(a.max(singles[bench.below(SINGLES) as usize]));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::units;
    use crate::stats;

    /// As met on a drive of 16 dies in the steady state of random writes, which completes its map meanwhile: "10.9, 9.5 to 12.5".
    #[test]
    fn reads_that_the_drive_keeps_waiting_are_not_counted_as_those_that_share_a_die() {
        let found = units(stats::share(188, 2000), stats::share(6, 1024)).unwrap();
        assert!(found.low <= 16.0 && 16.0 <= found.high, "{found:?}");
        // At rest the interval is as narrow as pairs make it.
        let quiet = units(stats::share(125, 2000), stats::share(0, 1024)).unwrap();
        assert!(quiet.estimate == 16.0 && quiet.high < 24.0, "{quiet:?}");
        // "952, 62 to 1454" was told of 6 dies where flash takes 3 us.
        assert_eq!(units(stats::share(21, 2000), stats::share(22, 1024)), None);
    }
}
