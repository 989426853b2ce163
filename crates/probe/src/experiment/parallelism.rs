//! Parallel units: which addresses get in each other's way?
//!
//! **Method.** Two pages are read at the same time, the second `k` pages after the first. If one die
//! must serve both, the pair takes longer than if two dies do. The distances at which pairs collide
//! show the stripe (bytes that lie together) and, where they return, the number of parallel units. How many
//! bytes one read of the flash fetches, `flash_page.rs` asks.
//!
//! **Cost.** 70,000 reads; 20 s, most of it rest. Writes nothing.
//!
//! **Cannot tell** the stripe of a drive that was written at random: neighbours in address are then no
//! neighbours in flash; the number of units still shows in how often any two pages collide. Shows dies
//! and planes only as far as addresses go round them in order.

use super::{About, enter, flash_page};
use crate::bench::{Bench, Stop};
use crate::cost::{Cost, Scale};
use crate::findings::Findings;
use crate::stats::{self, Estimate};
use crate::target::{HmbState, Io};
use std::time::Duration;

/// What is said before it starts.
pub const ABOUT: About = About {
    name: "parallelism",
    question: "how many units work in parallel, how are addresses spread over them, and what does one read fetch?",
    method: "pairs of reads at once, at growing distance: pairs that share a die take longer",
    limits: "no stripe and no flash page on a drive that was written at random",
    writes: false,
    cost,
};

/// Of most pairs both reads and two more that bring their map entries, and a rest of 1 ms.
fn cost(scale: &Scale) -> Cost {
    let pairs = 320 + 64 * 4 * PAIRS + (SCANNED - 64) * PAIRS;
    Cost::reads(4 * pairs + flash_page::READS, scale).resting(Duration::from_millis(pairs))
}

/// Longest distance tried, pages.
const DISTANCE_MAX: u64 = 4096;
/// Pairs at random distances where neighbours do not collide.
const SCATTERED: u64 = 2000;
/// Distances that are scanned one by one, pages.
const SCANNED: u64 = 1024;
/// Pairs at each distance.
const PAIRS: u64 = 12;

/// Does it.
pub fn run(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Stop> {
    if bench.can_switch_hmb() {
        enter(bench, Some(HmbState::On))?;
    }
    let page = bench.page();
    let room = (bench.capacity() / page).saturating_sub(2 * DISTANCE_MAX);
    if room == 0 {
        return Err(Stop::Skip("the drive is too small".to_owned()));
    }
    let mut near = Vec::new();
    for i in 0..64 {
        near.push(pair(bench, 1 + i % 4, room)?);
    }
    let mut far = Vec::new();
    for _ in 0..256 {
        let k = 1 + bench.below(DISTANCE_MAX);
        far.push(pair(bench, k, room)?);
    }
    // At least half of the distant pairs lie on two units; neighbours share one.
    let fast = stats::quantile(&far, 0.45).min(stats::median(&near));
    let slow = stats::median(&near);
    let threshold = (fast * slow).sqrt();
    let share = |times: &[f64]| {
        let slow = times.iter().filter(|time| **time > threshold);
        slow.count() as f64 / times.len() as f64
    };
    // Latencies that spread widely by themselves do so for distant pairs as well.
    if slow <= 1.15 * fast || share(&near) < share(&far) + 0.25 {
        return scattered(bench, findings, room);
    }
    findings.collisions = Some(true);
    let Some((stripe, round)) = period(bench, threshold, room)? else {
        return Ok(());
    };
    let stripe = within(stripe, 0.15);
    let flash_page = flash_page::measure(bench, slow - fast, stripe, room)?;
    note(findings, page as f64, stripe, round, flash_page);
    Ok(())
}

fn within(value: f64, share: f64) -> Estimate {
    Estimate::new(value, value * (1.0 - share), value * (1.0 + share))
}

/// Keeps what was found, of stripe and round in pages of the prober. A stripe holds whole flash pages, and a
/// round whole stripes.
fn note(
    findings: &mut Findings,
    page: f64,
    stripe: Estimate,
    round: Option<f64>,
    flash_page: Option<Estimate>,
) {
    let mut stripe = stripe.scaled(page);
    if let Some(bytes) = flash_page {
        findings.quantity("flash_page", "bytes", bytes);
        let pages = (stripe.estimate / bytes.estimate).round();
        let whole = pages * bytes.estimate;
        if pages > 1.0 && (stripe.low..=stripe.high).contains(&whole) {
            stripe = within(whole, 0.02);
        }
    }
    findings.quantity("stripe", "bytes", stripe);
    let Some(round) = round.map(|round| round * page) else {
        return;
    };
    findings.quantity("round", "bytes", within(round, 0.03));
    let units = (round / stripe.estimate).round();
    let share = (stripe.high / stripe.estimate - 1.0).max(0.03);
    findings.quantity("parallel_units", "count", within(units, share));
}

/// Neighbours do not collide: the drive was written at random, or there are no dies. Any two pages
/// then share one of `n` dies once in `n` times, and take up to twice as long, which no outlier of
/// the host does so regularly.
fn scattered(bench: &mut Bench<'_>, findings: &mut Findings, room: u64) -> Result<(), Stop> {
    let mut times = Vec::new();
    for _ in 0..SCATTERED {
        let distance = 1 + bench.below(DISTANCE_MAX);
        times.push(pair(bench, distance, room)?);
    }
    let (twice, beyond) = late(&times);
    let chance = late(&by_chance(bench, room)?).0;
    let regular = twice > 0.01 + 2.0 * chance;
    let collide = regular && twice > 3.0 * beyond;
    findings.collisions = Some(collide);
    let hits = (twice * SCATTERED as f64) as usize;
    let share = stats::share(hits, SCATTERED as usize);
    if collide {
        let units = Estimate::new(1.0 / share.estimate, 1.0 / share.high, 1.0 / share.low);
        findings.quantity("parallel_units", "count", units);
        findings.notes.push(
            "neighbours in address are no neighbours in flash: the drive was written at random"
                .to_owned(),
        );
    } else {
        findings.notes.push(
            "no two reads get in each other's way: no sign of flash dies behind the addresses"
                .to_owned(),
        );
    }
    Ok(())
}

/// Shares of pairs that take up to twice as long as most, and longer than that.
fn late(times: &[f64]) -> (f64, f64) {
    let most = stats::quantile(times, 0.45);
    let share = |from: f64, to: f64| {
        let inside = times
            .iter()
            .filter(|time| (from * most..to * most).contains(time));
        inside.count() as f64 / times.len().max(1) as f64
    };
    (share(1.25, 2.1), share(2.1, f64::INFINITY))
}

/// Times of pairs as they would be if two reads had nothing to do with each other and only spread
/// as single reads do.
fn by_chance(bench: &mut Bench<'_>, room: u64) -> Result<Vec<f64>, Stop> {
    let page = bench.page();
    let mut singles = Vec::new();
    for _ in 0..400 {
        let at = bench.below(room);
        let mut ignored = Vec::new();
        bench.read_pages([at.saturating_sub(100) * page], 1, &mut ignored)?;
        bench.idle(Duration::from_millis(1))?;
        bench.read_pages([at * page], 1, &mut singles)?;
    }
    let mut pairs = Vec::new();
    for _ in 0..2000 {
        let a = singles[bench.below(400) as usize];
        pairs.push(a.max(singles[bench.below(400) as usize]));
    }
    Ok(pairs)
}

/// Time of a pair of reads, ns, at a random place.
fn pair(bench: &mut Bench<'_>, distance: u64, room: u64) -> Result<f64, Stop> {
    let page = bench.page();
    let first = bench.below(room);
    let second = first + distance;
    // Pages not far from both bring their map entries.
    let mut ignored = Vec::new();
    let warm = [first.saturating_sub(100), second + 100].map(|at| at * page);
    bench.read_pages(warm, 1, &mut ignored)?;
    bench.idle(Duration::from_millis(1))?;
    let ios = [first, second].map(|at| Io::read(at * page, page as u32));
    let samples = bench.batch(&ios, 2)?;
    let end = samples.iter().map(|s| s.completed_ns()).max().unwrap_or(0);
    Ok(end as f64)
}

/// Stripe and round in pages. Two pages `k` apart share a stripe of `s` pages with probability `1 - k / s`:
/// the shares of collisions fall in a triangle, and rise and fall again around every whole round.
fn period(
    bench: &mut Bench<'_>,
    threshold: f64,
    room: u64,
) -> Result<Option<(f64, Option<f64>)>, Stop> {
    let mut shares = Vec::new();
    for k in 1..=SCANNED {
        // The width of the first triangle is a sum: it needs more pairs.
        let pairs = if k <= 64 { 4 * PAIRS } else { PAIRS };
        let mut hits = 0;
        for _ in 0..pairs {
            hits += u64::from(pair(bench, k, room)? > threshold);
        }
        let share = hits as f64 / pairs as f64;
        bench.note(
            "pairs of reads",
            "distance, pages",
            "share that collides",
            (k as f64, share),
        );
        shares.push(share);
    }
    Ok(triangles(&shares))
}

/// Width of the first triangle, and where the next one peaks, in pages.
fn triangles(shares: &[f64]) -> Option<(f64, Option<f64>)> {
    let quiet = |from: usize| {
        shares[from..(from + 4).min(shares.len())]
            .iter()
            .sum::<f64>()
            < 0.3
    };
    let end = (0..shares.len().saturating_sub(4)).find(|i| quiet(*i))?;
    let stripe = 2.0 * shares[..end].iter().sum::<f64>() + 1.0;
    let next = (end..shares.len()).find(|i| shares[*i] > 0.5)?;
    let from = next.saturating_sub(stripe as usize);
    let to = (next + 2 * stripe as usize).min(shares.len());
    let weight: f64 = shares[from..to].iter().sum();
    let moment: f64 = (from..to).map(|i| shares[i] * (i + 1) as f64).sum();
    let whole = to < shares.len();
    Some((stripe, whole.then_some(moment / weight)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triangles_give_stripe_and_round() {
        let (stripe, round) = (24.0f64, 384.0f64);
        let shares: Vec<f64> = (1..=800)
            .map(|k| {
                let distance = (f64::from(k) + round / 2.0).rem_euclid(round) - round / 2.0;
                (1.0 - distance.abs() / stripe).max(0.0)
            })
            .collect();
        let (found, again) = triangles(&shares).unwrap();
        assert!((found - stripe).abs() < 1.0, "{found}");
        assert!((again.unwrap() - round).abs() < 1.0, "{again:?}");
    }

    #[test]
    fn no_collisions_give_nothing() {
        assert_eq!(triangles(&[0.0; 100]), None);
    }
}
