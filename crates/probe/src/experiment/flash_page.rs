//! Flash page: how many bytes does one read of the flash fetch?
//!
//! **Method.** Two neighbouring pages of 4 KiB are asked for with one command. Where both lie in what the
//! flash fetches at once, the command takes one array read; where a boundary lies between them and both
//! sides are on one die, it takes two, one after the other. Such commands step over a stretch of
//! addresses; the smallest distance at which slow ones follow each other again and again is the page.
//! Every other stretch begins 4 KiB later, for a step of 8 KiB goes past boundaries of the other parity. No
//! page is read twice, so that a read cache cannot answer.
//!
//! **Cost.** 6,000 reads, part of `parallelism`. Writes nothing.
//!
//! **Cannot tell** a large page from several planes that are read together; nor boundaries within a stripe
//! where there are none: then the whole stripe is fetched at once. Nor pages of 4 KiB.

use crate::bench::{Bench, Stop};
use crate::stats::{self, Estimate};
use crate::target::Io;
use std::collections::BTreeMap;
use std::time::Duration;

/// Stretches of addresses.
const STRETCHES: u64 = 48;
/// Pages of a stretch: four of the largest pages there are, 256 KiB with all planes.
const STRETCH: u64 = 256;
/// Reads altogether.
pub(super) const READS: u64 = STRETCHES * (1 + STRETCH / 2);
/// Slow commands, as a share of what one boundary in each stripe makes, below which they are the host's doing.
const FEW: f64 = 0.3;
/// Distances of a kind that are no chance, and their share of all: distances of one and of two pages take
/// turns at worst, and a command that the host held up adds two of its own.
const SEEN: usize = 8;
const REGULAR: f64 = 0.33;
/// Share of a command's time that an array read more adds at least; pages of another kind add less.
const ADDED: f64 = 0.3;
/// Slow commands that a stretch without boundaries may have.
const STRAYS: usize = 2;
/// Commands before and after one that it is compared with.
const AROUND: usize = 16;
/// Share of an array read by which slow ones are told.
const SLOW: f64 = 0.75;

/// Bytes of a flash page, on a drive whose dies hold `stripe` pages of the prober in a row; two reads of one
/// die take longer than of two by `wait_ns`.
pub(super) fn measure(
    bench: &mut Bench<'_>,
    wait_ns: f64,
    stripe: Estimate,
    room: u64,
) -> Result<Option<Estimate>, Stop> {
    let page = bench.page();
    let mut latencies = Vec::new();
    for i in 0..STRETCHES {
        let start = bench.below(room - STRETCH - 2) / 2 * 2 + i % 2;
        // A page not far brings the map entry.
        let mut ignored = Vec::new();
        bench.read_pages([start.saturating_sub(100) * page], 1, &mut ignored)?;
        bench.idle(Duration::from_millis(1))?;
        let ios: Vec<Io> = (start..start + STRETCH)
            .step_by(2)
            .map(|at| Io::read(at * page, 2 * page as u32))
            .collect();
        let samples = bench.batch(&ios, 1)?;
        latencies.extend(samples.iter().map(|s| s.latency_ns as f64));
    }
    let stretches: Vec<Vec<bool>> = latencies
        .chunks(STRETCH as usize / 2)
        .map(|stretch| slow(stretch, SLOW * wait_ns))
        .collect();
    let page = page as f64;
    Ok(pages_between(&stretches, stripe).map(|pages| pages.scaled(page)))
}

/// Which commands take longer than those around them by `wait_ns`. Not than all: pages that share cells differ
/// by a third and more, and those of a kind lie together.
fn slow(latencies: &[f64], wait_ns: f64) -> Vec<bool> {
    let around = |i: usize| {
        let from = i
            .saturating_sub(AROUND)
            .min(latencies.len().saturating_sub(2 * AROUND));
        &latencies[from..(from + 2 * AROUND).min(latencies.len())]
    };
    // Where pages are small all but a quarter of the commands meet a boundary.
    let usual = |i: usize| stats::quantile(around(i), 0.12);
    let is_slow = |i: usize| latencies[i] > usual(i) + wait_ns.max(ADDED * usual(i));
    (0..latencies.len()).map(is_slow).collect()
}

/// Pages from one boundary to the next, by which of the commands of two pages were slow.
fn pages_between(stretches: &[Vec<bool>], stripe: Estimate) -> Option<Estimate> {
    let commands: usize = stretches.iter().map(Vec::len).sum();
    let slow: usize = stretches.iter().flatten().filter(|slow| **slow).count();
    if (slow as f64) < FEW * commands as f64 / stripe.estimate {
        return Some(stripe);
    }
    // A stretch of the other parity meets no boundary. Where commands are slow in all, something else is it.
    let is_quiet = |stretch: &&Vec<bool>| stretch.iter().filter(|slow| **slow).count() <= STRAYS;
    if 4 * stretches.iter().filter(is_quiet).count() < stretches.len() {
        return None;
    }
    let mut distances: BTreeMap<usize, usize> = BTreeMap::new();
    for stretch in stretches {
        let at: Vec<usize> = (0..stretch.len()).filter(|i| stretch[*i]).collect();
        for pair in at.windows(2) {
            *distances.entry(2 * (pair[1] - pair[0])).or_default() += 1;
        }
    }
    // Between the last boundary of a stripe and the first of the next two dies meet: distances of two.
    let least = (REGULAR * distances.values().sum::<usize>() as f64).max(SEEN as f64);
    let found = distances.iter().find(|(_, times)| **times as f64 >= least);
    let distance = *found?.0 as f64;
    // Of two pages to a stripe only one boundary is slow: a whole stripe lies between.
    let are_two = distance > 0.75 * stripe.estimate;
    let pages = if are_two { distance / 2.0 } else { distance };
    Some(Estimate::new(pages, pages - 0.5, pages + 0.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slow commands where dies hold `stripe` pages in a row and read `page` of them at once.
    fn stretches(page: u64, stripe: u64) -> Vec<Vec<bool>> {
        let slow = |at: u64| (at + 1).is_multiple_of(page) && !(at + 1).is_multiple_of(stripe);
        (0..48u64)
            .map(|i| (i * 514 + i % 2..).step_by(2).take(128).map(slow).collect())
            .collect()
    }

    fn exactly(pages: u64) -> Estimate {
        Estimate::new(pages as f64, pages as f64, pages as f64)
    }

    #[test]
    fn pages_are_told_by_the_distance_of_slow_commands() {
        for (page, stripe) in [(4, 12), (8, 24), (16, 64), (2, 6), (8, 16)] {
            let found = pages_between(&stretches(page, stripe), exactly(stripe));
            assert_eq!(found.unwrap().estimate, page as f64, "{page} {stripe}");
        }
    }

    #[test]
    fn commands_that_are_slow_here_and_there_are_no_pages() {
        let scattered = |i: u64| (0..128).map(|at| (at * at + 7 * i) % 5 < 2).collect();
        let stretches: Vec<Vec<bool>> = (0..48).map(scattered).collect();
        assert_eq!(pages_between(&stretches, exactly(8)), None);
    }

    #[test]
    fn a_stripe_without_slow_commands_is_one_page() {
        let found = pages_between(&stretches(8, 8), exactly(8));
        assert_eq!(found, Some(exactly(8)));
    }
}
