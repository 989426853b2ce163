//! Flash page: how many bytes does one read of the flash fetch?
//!
//! **Method.** Two neighbouring pages of 4 KiB are asked for with one command. Where both lie in what the
//! flash fetches at once, the command takes one array read; where a boundary lies between them and both
//! sides are on one die, it takes two, one after the other. Such commands step over a stretch of
//! addresses; the smallest distance at which slow ones follow each other again and again is the page.
//! Every other stretch begins 4 KiB later, for a step of 8 KiB goes past boundaries of the other parity.
//!
//! A command is set beside the slower of its two pages read alone before, so that pages that differ do not
//! count; or, where what was read is kept, beside the commands around it, with no page read twice. Then it goes
//! backwards and rests, for a drive may read ahead.
//!
//! What a second array read adds is known from pairs of reads, less what a page takes on the bus; firmware that takes them one after the
//! other hides a part of what the second waits. Where noise is not far below that, nothing is said: that no command is slow is no sign of
//! a large page then.
//!
//! **Cost.** 19,000 reads, part of `parallelism`. Writes nothing.
//!
//! **Cannot tell** a large page from several planes that are read together; nor boundaries within a stripe
//! where there are none: then the whole stripe is fetched at once. Nor pages of 4 KiB, nor any where the flash is
//! read in less time than the bus takes for 4 KiB, or than latencies spread by.

use crate::bench::{Bench, Stop};
use crate::stats::{self, Estimate};
use crate::target::Io;
use std::collections::BTreeMap;
use std::time::Duration;

/// Stretches of addresses.
const STRETCHES: u64 = 48;
/// Pages of a stretch: four of the largest pages there are, 256 KiB with all planes.
const STRETCH: u64 = 256;
/// Pages read twice to know whether they are kept, and what one takes.
const SINGLES: u64 = 64;
/// Reads altogether.
pub(super) const READS: u64 = STRETCHES * (1 + STRETCH + STRETCH / 2) + 3 * SINGLES;
/// Pages read again in less than this are kept, if a quarter of them is.
const KEPT: f64 = 0.75;
const KEPT_SHARE: f64 = 0.25;
/// Rest after a command of a drive that keeps what it read, and may read ahead.
const REST: Duration = Duration::from_micros(500);
/// Quantile of commands that is in the middle of those whose pages come in one read: up to a quarter go to two dies, more where
/// stripes are short, and up to a third are slow.
const JOINED: f64 = 0.42;
/// The same where stripes are of two pages: half of the commands go to two dies, on two buses, and say nothing of what one takes.
const JOINED_OF_TWO: f64 = 0.75;
/// Pages of a stripe that are no more than two, and that are one: then no command has two pages of one die.
const OF_TWO: f64 = 2.5;
const OF_ONE: f64 = 1.5;
/// Slow commands, as a share of what one boundary in each stripe makes, below which they are the host's doing.
const FEW: f64 = 0.3;
/// Distances of a kind that are no chance, and their share of all: distances of one and of two pages take
/// turns at worst, and a command that the host held up adds two of its own.
const SEEN: usize = 8;
const REGULAR: f64 = 0.33;
/// Share of distances that are whole pages, and slow commands beside as many as such pages make.
const WHOLE: f64 = 0.75;
const AS_MANY: std::ops::Range<f64> = 0.7..1.3;
/// Slow commands that a stretch without boundaries may have.
const STRAYS: usize = 2;
/// Commands before and after one that it is compared with.
const AROUND: usize = 16;
/// Share of what an array read adds by which slow ones are told, and standard deviations that it must be.
const SLOW: f64 = 0.5;
const DEVIATIONS: f64 = 2.5;
/// Width of the densest quarter of noise of one standard deviation.
const DENSEST: f64 = 0.64;

/// What commands of two pages took.
struct Seen {
    /// Longer than what each is set beside, ns, by stretch.
    longer: Vec<Vec<f64>>,
    /// Longer than one page takes, of those with no boundary, ns.
    second_ns: f64,
    /// How much longer than one page each takes, ns.
    more: Vec<f64>,
    /// What commands around are taken to take, by stretch, where that is what they are set beside.
    usual: Vec<f64>,
}

/// What one read of the flash fetches.
pub(super) struct Fetched {
    /// Bytes, where that shows.
    pub page: Option<Estimate>,
    /// What a page takes, and a second page of the same read more, ns: above all its time on the bus.
    pub single_ns: f64,
    second_ns: f64,
    /// The same where stripes are short; nothing where that does not show.
    short_ns: Option<f64>,
}

impl Fetched {
    /// What a page takes on the bus at most, ns, where that shows; `later_ns` later come two that do not wait.
    pub fn bus_ns(&self, stripe: f64, later_ns: f64) -> Option<f64> {
        match stripe {
            // What the firmware takes for a second command is no part of one command of two pages.
            ..OF_TWO => self.short_ns,
            _ => Some(self.second_ns - later_ns),
        }
    }
}

/// Bytes of a flash page, on a drive whose dies hold `stripe` pages of the prober in a row; `waited_ns` says by what a single page takes
/// for how long the second of two reads of one die is served that it does not take by itself.
pub(super) fn measure(
    bench: &mut Bench<'_>,
    waited_ns: impl Fn(f64) -> f64,
    stripe: Estimate,
    room: u64,
) -> Result<Fetched, Stop> {
    let (is_kept, single_ns) = single(bench, room)?;
    let seen = if is_kept {
        beside_others(bench, single_ns, room)?
    } else {
        beside_alone(bench, room)?
    };
    let stretches = slow(&seen, waited_ns(single_ns));
    let pages = stretches.and_then(|stretches| pages_between(&stretches, stripe));
    let page = bench.page() as f64;
    Ok(Fetched {
        page: pages.map(|pages| pages.scaled(page)),
        single_ns,
        second_ns: seen.second_ns,
        short_ns: (stripe.estimate > OF_ONE).then(|| stats::quantile(&seen.more, JOINED_OF_TWO)),
    })
}

/// Whether pages are kept once read, and what one takes, ns.
fn single(bench: &mut Bench<'_>, room: u64) -> Result<(bool, f64), Stop> {
    let page = bench.page();
    let (mut first, mut again) = (Vec::new(), Vec::new());
    for _ in 0..SINGLES {
        let at = bench.below(room);
        bench.read_pages(
            [super::parallelism::beside(at, at) * page],
            1,
            &mut Vec::new(),
        )?;
        bench.idle(Duration::from_millis(1))?;
        bench.read_pages([at * page], 1, &mut first)?;
        bench.read_pages([at * page], 1, &mut again)?;
    }
    let kept = first.iter().zip(&again).filter(|(a, b)| **b < KEPT * **a);
    let is_kept = kept.count() as f64 > KEPT_SHARE * SINGLES as f64;
    // Flash that is fast beside the firmware saves less than that, but all of them.
    let is_quick = stats::quantile(&again, 0.75) < stats::quantile(&first, 0.25);
    Ok((is_kept || is_quick, stats::median(&first)))
}

/// Where stretch `i` begins, its map entry at hand.
fn begin(bench: &mut Bench<'_>, i: u64, room: u64) -> Result<u64, Stop> {
    let start = bench.below(room - STRETCH - 2) / 2 * 2 + i % 2;
    // A page not far brings the map entry.
    let page = bench.page();
    bench.read_pages([start.saturating_sub(100) * page], 1, &mut Vec::new())?;
    bench.idle(Duration::from_millis(1))?;
    Ok(start)
}

/// Commands beside the same pages alone.
fn beside_alone(bench: &mut Bench<'_>, room: u64) -> Result<Seen, Stop> {
    let page = bench.page();
    let (mut longer, mut more) = (Vec::new(), Vec::new());
    for i in 0..STRETCHES {
        let start = begin(bench, i, room)?;
        let mut alone = Vec::new();
        bench.read_pages((start..start + STRETCH).map(|at| at * page), 1, &mut alone)?;
        let command = |at: u64| Io::read(at * page, 2 * page as u32);
        let ios: Vec<Io> = (start..start + STRETCH).step_by(2).map(command).collect();
        let samples = bench.batch(&ios, 1)?;
        let both = samples.iter().map(|s| s.latency_ns as f64);
        // The slower of two is slow by noise as well.
        let mean = alone.chunks(2).map(|two| (two[0] + two[1]) / 2.0);
        more.extend(both.clone().zip(mean).map(|(both, one)| both - one));
        let slower = alone.chunks(2).map(|two| two[0].max(two[1]));
        longer.push(both.zip(slower).map(|(both, one)| both - one).collect());
    }
    let second_ns = stats::quantile(&more, JOINED);
    Ok(Seen {
        more,
        ..less_usual(longer, second_ns)
    })
}

/// Takes off what commands with no boundary take longer: half of the stretches have none.
fn less_usual(mut longer: Vec<Vec<f64>>, second_ns: f64) -> Seen {
    let usual_ns = stats::quantile(&longer.concat(), 0.25);
    for ns in longer.iter_mut().flatten() {
        *ns -= usual_ns;
    }
    Seen {
        longer,
        second_ns,
        more: Vec::new(),
        usual: Vec::new(),
    }
}

/// Commands beside those around them; not beside all: pages that share cells differ, and those of a kind lie together.
fn beside_others(bench: &mut Bench<'_>, single_ns: f64, room: u64) -> Result<Seen, Stop> {
    let page = bench.page();
    let (mut longer, mut usual_ns, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..STRETCHES {
        let start = begin(bench, i, room)?;
        let mut latencies = Vec::new();
        for at in (0..STRETCH / 2).rev().map(|two| start + 2 * two) {
            let samples = bench.batch(&[Io::read(at * page, 2 * page as u32)], 1)?;
            latencies.extend(samples.iter().map(|s| s.latency_ns as f64));
            bench.idle(REST)?;
        }
        latencies.reverse();
        let usual: Vec<f64> = (0..latencies.len()).map(|i| usual(&latencies, i)).collect();
        usual_ns.push(stats::median(&usual));
        all.extend(&latencies);
        let longer_than = latencies.iter().zip(&usual).map(|(ns, usual)| ns - usual);
        longer.push(longer_than.collect());
    }
    let second_ns = stats::quantile(&all, JOINED) - single_ns;
    let seen = less_usual(longer, second_ns);
    Ok(Seen {
        usual: usual_ns,
        more: all.iter().map(|ns| ns - single_ns).collect(),
        ..seen
    })
}

/// What commands around one take that meet no boundary. Where pages are small all but a quarter of them do.
fn usual(latencies: &[f64], i: usize) -> f64 {
    let from = i
        .saturating_sub(AROUND)
        .min(latencies.len().saturating_sub(2 * AROUND));
    let around = &latencies[from..(from + 2 * AROUND).min(latencies.len())];
    stats::quantile(around, 0.12)
}

/// Which commands take an array read longer than what they are set beside; nothing where that would not show.
fn slow(seen: &Seen, wait_ns: f64) -> Option<Vec<Vec<bool>>> {
    let deviation = deviation(&seen.longer.concat());
    let least = SLOW * (wait_ns - seen.second_ns.max(0.0));
    // Where every command of a stretch meets a boundary none is slower than those around it: pages of 4 KiB.
    let fastest = stats::quantile(&seen.usual, 0.1);
    let all_slow = seen.usual.iter().filter(|ns| **ns > fastest + least);
    let some_are_all_slow = 4 * all_slow.count() > seen.usual.len();
    (least > DEVIATIONS * deviation && least > 0.0 && !some_are_all_slow).then(|| {
        let is_slow = |ns: &f64| *ns > least;
        let stretches = seen.longer.iter();
        stretches
            .map(|stretch| stretch.iter().map(is_slow).collect())
            .collect()
    })
}

/// Standard deviation of commands that are not slow, of which there are at least half: their densest quarter has 0.64 of it if
/// none is slow, and twice as much if half are.
fn deviation(longer: &[f64]) -> f64 {
    let mut sorted = longer.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let ends = sorted.iter().zip(sorted.iter().skip(sorted.len() / 4));
    let densest = ends
        .map(|(low, high)| high - low)
        .fold(f64::INFINITY, f64::min);
    densest / DENSEST
}

/// Pages from one boundary to the next, by which of the commands of two pages were slow.
fn pages_between(stretches: &[Vec<bool>], stripe: Estimate) -> Option<Estimate> {
    let commands: usize = stretches.iter().map(Vec::len).sum();
    let slow: usize = stretches.iter().flatten().filter(|slow| **slow).count();
    if (slow as f64) < FEW * commands as f64 / stripe.estimate {
        return Some(stripe);
    }
    // A stretch of the other parity meets no boundary. Where commands are slow in all, something else is it.
    let slow_of = |stretch: &[bool]| stretch.iter().filter(|slow| **slow).count();
    let is_loud = |stretch: &&Vec<bool>| slow_of(stretch) > STRAYS;
    let loud: Vec<&Vec<bool>> = stretches.iter().filter(is_loud).collect();
    if 4 * (stretches.len() - loud.len()) < stretches.len() {
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
    let all = distances.values().sum::<usize>() as f64;
    let least = (REGULAR * all).max(SEEN as f64);
    let found = distances.iter().find(|(_, times)| **times as f64 >= least);
    let distance = *found?.0;
    // Of two pages to a stripe only one boundary is slow: a whole stripe lies between.
    let are_two = distance as f64 > 0.75 * stripe.estimate;
    let pages = distance as f64 / if are_two { 2.0 } else { 1.0 };
    let whole = distances
        .iter()
        .filter(|(found, _)| found.is_multiple_of(distance));
    let whole = whole.map(|(_, times)| times).sum::<usize>() as f64;
    let expected = 2.0 * (1.0 / pages - 1.0 / stripe.estimate);
    let commands: usize = loud.iter().map(|stretch| stretch.len()).sum();
    let times = slow as f64 / (expected * commands as f64);
    // A page of another kind is slow for a while, and never again for long.
    let is_regular = whole > WHOLE * all && AS_MANY.contains(&times);
    is_regular.then(|| Estimate::new(pages, pages - 0.5, pages + 0.5))
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

    /// Pages of two kinds that are not programmed at once follow each other by stripes of all dies: where the slower kind begins,
    /// commands are slow for a while, and 8 KiB was told for 64.
    #[test]
    fn pages_of_another_kind_are_no_boundaries() {
        let kinds = |i: u64| {
            (0..128)
                .map(|at| (at + 29 * i) % 128 < 10 * (i % 2))
                .collect()
        };
        let stretches: Vec<Vec<bool>> = (0..48).map(kinds).collect();
        assert_eq!(pages_between(&stretches, exactly(16)), None);
    }

    #[test]
    fn a_stripe_without_slow_commands_is_one_page() {
        let found = pages_between(&stretches(8, 8), exactly(8));
        assert_eq!(found, Some(exactly(8)));
    }

    /// Commands where pages are 8 of 24 in a stripe: an array read more, amid noise.
    fn seen(array_ns: f64, noise_ns: f64) -> Seen {
        let spread = |at: usize| ((at * 7919 % 101) as f64 / 50.0 - 1.0) * noise_ns;
        let longer = |(at, slow): (usize, bool)| spread(at) + if slow { array_ns } else { 0.0 };
        let of = |stretch: Vec<bool>| stretch.into_iter().enumerate().map(longer).collect();
        let longer = stretches(8, 24).into_iter().map(of).collect();
        less_usual(longer, 8e3)
    }

    /// Flash of 20 us behind a bus of 8: the page was told as the whole stripe, for no command took three quarters of 28 us longer.
    #[test]
    fn boundaries_show_where_the_bus_takes_a_part_of_what_pairs_wait() {
        let stretches = slow(&seen(20e3, 3e3), 28e3).unwrap();
        let found = pages_between(&stretches, exactly(24));
        assert_eq!(found.unwrap().estimate, 8.0);
    }

    /// Every command of every other stretch meets a boundary, and none was slower than those around it: 8 KiB were told for 4.
    #[test]
    fn pages_of_which_every_command_meets_two_are_left_open() {
        let quiet = seen(0.0, 3e3);
        let usual = (0..48).map(|i| if i % 2 == 0 { 60e3 } else { 110e3 });
        let seen = Seen {
            usual: usual.collect(),
            ..quiet
        };
        assert_eq!(slow(&seen, 58e3), None);
    }

    #[test]
    fn boundaries_that_noise_would_hide_are_left_open() {
        assert_eq!(slow(&seen(20e3, 12e3), 28e3), None);
        assert_eq!(slow(&seen(2e3, 1e3), 9e3), None);
    }
}
