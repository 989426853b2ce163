//! Parallel units: which addresses get in each other's way?
//!
//! **Method.** Two pages are read at the same time, the second `k` pages after the first. If one die
//! must serve both, the pair takes longer than if two dies do. The distances at which pairs collide
//! show the stripe (bytes that lie together) and, where they return, the number of parallel units. Two pages of 4 KiB in one
//! page of flash may be read at once and do not collide then: the units show in pairs farther apart (`apart.rs`). How many
//! bytes one read of the flash fetches, `flash_page.rs` asks. Before that, pages are brought to hand in the same way and
//! read one after the other (`alone.rs`): where these are late as well, or all pairs wait alike, pairs tell no dies.
//!
//! A drive may read ahead after one read (`ahead.rs`): then pages are brought to hand by what follows them.
//!
//! **Cost.** 80,000 reads; 20 s, most of it rest. Writes nothing.
//!
//! **Cannot tell** the stripe of a drive that was written at random: neighbours in address are then no
//! neighbours in flash; the number of units still shows in how often any two pages collide. Shows dies
//! and planes only as far as addresses go round them in order. Nor dies from channels where the flash is read in less time than the bus
//! takes for a page, nor how many there are where pairs of some kinds of pages alone show that they wait.

mod ahead;
mod alone;
mod apart;
mod bus;

use super::layout::{self, Layout};
use super::{About, enter, flash_page};
use crate::bench::{Bench, Stop};
use crate::cost::{Cost, Scale};
use crate::findings::Findings;
use crate::stats::{self, Estimate};
use crate::target::{HmbState, Io};
use alone::Alone;
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
    let pairs = 320
        + apart::PAIRS
        + 64 * 4 * PAIRS
        + (SCANNED - 64) * PAIRS
        + (2 + apart::AGAIN as u64) * alone::PAIRS;
    // Where pages differ, each is read alone as well.
    let others = flash_page::READS + bus::READS + ahead::READS;
    Cost::reads(5 * pairs + others, scale).resting(Duration::from_millis(pairs))
}

/// Pages to one that brings the map entry of another, and pages whose entries come together at least.
const BESIDE: u64 = 100;
const ENTRIES: u64 = 512;
/// Longest distance tried, pages.
const DISTANCE_MAX: u64 = 4096;
/// Distances that are scanned one by one, pages.
const SCANNED: u64 = 1024;
/// Pairs at each distance.
pub(super) const PAIRS: u64 = 12;
/// Single reads that tell whether pages differ, and by how much they must.
const SINGLES: u64 = 160;
const KINDS: f64 = 1.25;
/// A pair that takes less than this share of one of its pages was kept when that was read.
const KEPT: f64 = 0.75;
/// A number of flash pages in a stripe is meant if the measured one lies nearer to it than this, in pages and as a share: the
/// number of dies that fits best was met to be off by two of 32.
const UNMISTAKEN: f64 = 0.25;
const UNITS_OFF: f64 = 0.1;
/// Pages of the prober that one read of the flash may fetch: 256 KiB with all planes.
const FETCHED_MAX: usize = 64;
/// Most dies that addresses go round page by page.
const COMB_MAX: u64 = 64;

/// What is said where any two reads collide.
const ALL_WAIT: &str = "every two reads at once wait for each other alike, wherever they lie: there is one die, or all reads pass \
                        through something else one at a time, which hides how many there are";

/// What is said where much is read ahead.
const READS_AHEAD: &str =
    "the drive reads so much ahead after a single read that two reads at once tell nothing of dies";

/// What is said where a round shows, and not what it is made of.
const UNCLEAR: &str = "reads wait for each other at regular distances, but not as dies alone would have it: how many there are does \
                       not show";

/// What is said where channels look like dies.
const CHANNELS: &str = "two reads at once wait for each other no longer than a page takes on the bus: the flash is as fast as that, \
                        and whether they share a die or a channel does not show";

/// What is said where they may, and nothing tells what the bus takes.
const UNKNOWN_BUS: &str = "two reads at once wait for each other no longer than a page may take on a slow bus, and what it takes on this one \
                           does not show: nor does whether they share a die or a channel";

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
    let ahead = ahead::pages(bench, room)?;
    if ahead > ahead::FARTHEST {
        findings.notes.push(READS_AHEAD.to_owned());
        return Ok(());
    }
    let mut kind = Pairs::of(bench, room, ahead)?;
    let (mut near, mut far) = near_and_far(bench, kind, room)?;
    // Pages that are kept once read tell nothing when they are read again: then only whether any collide.
    let are_kept = near.len() < 32 || far.len() < 128;
    if are_kept {
        kind = Pairs::Plain { ahead };
        (near, far) = near_and_far(bench, kind, room)?;
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
    let collide = slow > 1.15 * fast && share(&near) >= share(&far) + 0.25;
    if are_kept {
        if collide || apart::are_late(bench, room)? {
            findings.collisions = Some(true);
        }
        findings.notes.push(
            "pages differ in latency and are kept once read: how many dies there are does not show"
                .to_owned(),
        );
        return Ok(());
    }
    let alone = Alone::measured(bench, kind, (room, DISTANCE_MAX))?;
    if tell_no_dies(&alone, findings, &far) {
        return Ok(());
    }
    if !collide {
        // Pages that are read ahead hide teeth.
        let units = match kind.hidden() {
            0 => comb(bench, kind, threshold, room)?,
            _ => None,
        };
        return match units {
            Some(units) => told_by_comb(bench, findings, (kind, room), (units, fast)),
            None => apart::measure(bench, findings, (kind, room), &alone),
        };
    }
    told_by_neighbours(bench, findings, (kind, room), (fast, &near))
}

/// Pages go round the dies one by one, or round their channels: every `units` they meet.
fn told_by_comb(
    bench: &mut Bench<'_>,
    findings: &mut Findings,
    (kind, room): (Pairs, u64),
    (units, fast): (u64, f64),
) -> Result<(), Stop> {
    let turns = Layout::page_by_page(units);
    let rounds = bus::rounds_of_dies(bench, (kind, room), turns, fast)?;
    // Of pages that all lie on different dies none tells what the bus takes.
    if rounds.may_be_channels(None, kind.unit_ns()) {
        findings.collisions = Some(true);
        findings.notes.push(UNKNOWN_BUS.to_owned());
        return Ok(());
    }
    let dies = (units * rounds.of_dies as u64) as f64;
    note_comb(findings, dies, bench.page() as f64);
    Ok(())
}

/// Neighbours collide: `fast` is what pairs are told by that do not wait, `near` what those are told by.
fn told_by_neighbours(
    bench: &mut Bench<'_>,
    findings: &mut Findings,
    (kind, room): (Pairs, u64),
    (fast, near): (f64, &[f64]),
) -> Result<(), Stop> {
    let slow = stats::median(near);
    let threshold = (fast * slow).sqrt();
    findings.collisions = Some(true);
    // Neighbours in one page of flash wait for the bus alone.
    findings.flash_wait_ns = Some((stats::quantile(near, 0.9) - fast) * kind.unit_ns());
    let shares = collisions(bench, kind, threshold, room)?;
    // Neighbours may lie in one page of flash.
    let hidden = kind.hidden() as usize;
    let layout = layout::of(&shares, FETCHED_MAX).or_else(|| layout::of(&shares, hidden));
    let first = (hidden == 0).then(|| layout::first_triangle(&shares));
    let stripe = layout.map(|layout| layout.stripe());
    let Some(stripe) = stripe.or(first.flatten()) else {
        return Ok(());
    };
    note(
        bench,
        findings,
        (kind, room),
        Told {
            layout,
            stripe,
            fast,
            wait_ns: (stats::quantile(near, 0.9) - fast) * kind.unit_ns(),
        },
    )
}

/// Whether pairs tell nothing of dies, as the same reads one after the other show; says why.
fn tell_no_dies(alone: &Alone, findings: &mut Findings, far: &[f64]) -> bool {
    if let Some(why) = alone.against_pairs() {
        findings.notes.push(why);
        return true;
    }
    // Of two dies half of them would not. Neighbours in one page of flash may not wait even on one die.
    let all_wait = alone.all_wait(far);
    if all_wait {
        // A link or a server does that as well: no sign of flash.
        findings.collisions = Some(false);
        findings.notes.push(ALL_WAIT.to_owned());
    }
    all_wait
}

/// So many units serve neighbouring pages in turn.
fn note_comb(findings: &mut Findings, units: f64, page_bytes: f64) {
    findings.collisions = Some(true);
    let units = Estimate::new(units, units, units);
    findings.quantity("parallel_units", "count", units);
    let stripe = Estimate::new(page_bytes, 0.0, page_bytes);
    findings.quantity("stripe", "bytes", stripe);
}

/// Share of reads that are late though their map entries were just brought, where it is more than chance: the drive reads for
/// itself meanwhile, as when it completes large units of its map.
pub(super) fn busy(bench: &mut Bench<'_>) -> Result<Option<f64>, Stop> {
    let room = (bench.capacity() / bench.page()).saturating_sub(2 * DISTANCE_MAX);
    if room == 0 {
        return Ok(None);
    }
    let kind = Pairs::of(bench, room, 0)?;
    Ok(Alone::measured(bench, kind, (room, DISTANCE_MAX))?.busy())
}

/// What pairs of neighbours are told by, and pairs far from each other.
fn near_and_far(
    bench: &mut Bench<'_>,
    kind: Pairs,
    room: u64,
) -> Result<(Vec<f64>, Vec<f64>), Stop> {
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for i in 0..64 {
        near.extend(kind.pair(bench, kind.hidden() + 1 + i % 4, room)?);
    }
    for _ in 0..256 {
        let k = 1 + bench.below(DISTANCE_MAX);
        far.extend(kind.pair(bench, k, room)?);
    }
    Ok((near, far))
}

/// What pairs have told, of layout and stripe in pages of the prober.
struct Told {
    layout: Option<Layout>,
    stripe: Estimate,
    /// What pairs are told by that do not wait, and how long others do.
    fast: f64,
    wait_ns: f64,
}

/// Keeps what was found, and how much one read fetches. A stripe holds whole flash pages, and a round whole stripes.
fn note(
    bench: &mut Bench<'_>,
    findings: &mut Findings,
    (kind, room): (Pairs, u64),
    told: Told,
) -> Result<(), Stop> {
    let page = bench.page() as f64;
    if told.layout.is_some_and(|layout| !layout.is_clear) {
        findings.notes.push(UNCLEAR.to_owned());
        return Ok(());
    }
    let rounds = match told.layout {
        Some(layout) => bus::rounds_of_dies(bench, (kind, room), layout, told.fast)?,
        None => bus::Rounds::UNKNOWN,
    };
    let wait = rounds.wait.map(|wait| wait * kind.unit_ns());
    let wait_ns = wait.unwrap_or(told.wait_ns);
    let waited_ns = |single_ns| wait_ns + kind.later_ns(told.fast, single_ns);
    let fetched = flash_page::measure(bench, waited_ns, told.stripe, room)?;
    let later_ns = kind.later_ns(told.fast, fetched.single_ns);
    let bus_ns = fetched.bus_ns(told.stripe.estimate, later_ns);
    if rounds.may_be_channels(bus_ns, kind.unit_ns()) {
        let why = bus_ns.map_or(UNKNOWN_BUS, |_| CHANNELS);
        findings.notes.push(why.to_owned());
        return Ok(());
    }
    let stripe = note_stripe(findings, page, told.stripe, fetched.page);
    let Some(layout) = told.layout else {
        return Ok(());
    };
    note_round(
        findings,
        rounds.of_dies as f64 * layout.round * page,
        stripe,
    );
    Ok(())
}

/// A value and as much below and above it, as a share.
fn within(value: f64, share: f64) -> Estimate {
    Estimate::new(value, value * (1.0 - share), value * (1.0 + share))
}

/// Returns the stripe, in bytes.
fn note_stripe(
    findings: &mut Findings,
    page: f64,
    stripe: Estimate,
    flash_page: Option<Estimate>,
) -> Estimate {
    let mut stripe = stripe.scaled(page);
    if let Some(bytes) = flash_page {
        findings.quantity("flash_page", "bytes", bytes);
        let pages = stripe.estimate / bytes.estimate;
        let whole = pages.round() * bytes.estimate;
        let fits = (0.97 * stripe.low..=1.03 * stripe.high).contains(&whole);
        // Triangles of neighbouring numbers of dies fit nearly as well: one number of pages alone is near.
        let is_next = (pages - pages.round()).abs() < UNMISTAKEN
            && (pages / pages.round() - 1.0).abs() < UNITS_OFF;
        if pages.round() > 1.0 && (fits || is_next) {
            stripe = within(whole, 0.02);
        }
    }
    findings.quantity("stripe", "bytes", stripe);
    stripe
}

/// A round of so many bytes has a stripe of each die.
fn note_round(findings: &mut Findings, round: f64, stripe: Estimate) {
    findings.quantity("round", "bytes", within(round, 0.02));
    let units = (round / stripe.estimate).round();
    let (fewest, most) = (round / stripe.high, round / stripe.low);
    let units = Estimate::new(units, fewest.min(units), most.max(units));
    findings.quantity("parallel_units", "count", units);
}

/// How pairs are told from each other.
#[derive(Clone, Copy, Debug)]
enum Pairs {
    /// By their time, ns.
    Plain {
        /// Pages that the drive reads ahead of a single one.
        ahead: u64,
    },
    /// By how much longer they take than the slower of the two alone, as a share of the faster, and 1: pages of one cell differ by more than
    /// a second read adds.
    BesideAlone {
        /// What a page of the fastest kind takes, ns.
        fast_ns: f64,
    },
}

impl Pairs {
    fn of(bench: &mut Bench<'_>, room: u64, ahead: u64) -> Result<Self, Stop> {
        let page = bench.page();
        let mut singles = Vec::new();
        for _ in 0..SINGLES {
            let at = bench.below(room);
            bench.read_pages([beside(at, at) * page], 1, &mut Vec::new())?;
            bench.idle(Duration::from_millis(1))?;
            bench.read_pages([at * page], 1, &mut singles)?;
        }
        let (fast_ns, slow_ns) = (
            stats::quantile(&singles, 0.1),
            stats::quantile(&singles, 0.8),
        );
        Ok(if slow_ns > KINDS * fast_ns {
            Pairs::BesideAlone { fast_ns }
        } else {
            Pairs::Plain { ahead }
        })
    }

    /// What a pair is told by, at a random place. Nothing where a page was kept when it was read alone.
    fn pair(self, bench: &mut Bench<'_>, distance: u64, room: u64) -> Result<Option<f64>, Stop> {
        let page = bench.page();
        let first = bench.below(room);
        let both = [first, first + distance].map(|at| at * page);
        self.warm(bench, first, first + distance)?;
        if let Pairs::Plain { .. } = self {
            let samples = bench.batch(&both.map(|at| Io::read(at, page as u32)), 2)?;
            let end = samples.iter().map(|s| s.completed_ns()).max().unwrap_or(0);
            return Ok(Some(end as f64));
        }
        let mut alone = Vec::with_capacity(2);
        bench.read_pages(both, 1, &mut alone)?;
        let samples = bench.batch(&both.map(|at| Io::read(at, page as u32)), 2)?;
        let end = samples.iter().map(|s| s.completed_ns()).max().unwrap_or(0);
        let (slower, faster) = (alone[0].max(alone[1]), alone[0].min(alone[1]));
        // One that waits takes the other's array time longer, whichever comes first.
        let longer = 1.0 + (end as f64 - slower) / faster.max(1.0);
        Ok((end as f64 > KEPT * slower).then_some(longer))
    }

    /// Brings the map entries of both, and what is read ahead of them.
    fn warm(self, bench: &mut Bench<'_>, first: u64, second: u64) -> Result<(), Stop> {
        let page = bench.page();
        let ios = match self {
            Pairs::Plain { ahead } if ahead > 0 => {
                let follows = |at: u64| Io::read((at + 1) * page, (ahead * page) as u32);
                [first, second].map(follows)
            }
            // Pages not far from both.
            _ => [beside(first, second), beside(second, first)]
                .map(|at| Io::read(at * page, page as u32)),
        };
        bench.batch(&ios, 1)?;
        bench.idle(Duration::from_millis(1))
    }

    /// Pairs nearer than this tell nothing, in pages: what is read ahead of the first is at hand, and what is read ahead of that.
    fn hidden(self) -> u64 {
        match self {
            Pairs::Plain { ahead } => 2 * ahead,
            Pairs::BesideAlone { .. } => 0,
        }
    }

    /// How often two pages are read one after the other to know what a pair would be told by, and that.
    fn rounds(self) -> usize {
        match self {
            Pairs::Plain { .. } => 1,
            Pairs::BesideAlone { .. } => 2,
        }
    }

    fn told_by_rounds(self, rounds: &[Vec<f64>; 2]) -> Option<f64> {
        let slower = |round: &[f64]| round.iter().copied().fold(0.0, f64::max);
        let first = slower(&rounds[0]);
        if let Pairs::Plain { .. } = self {
            return Some(first);
        }
        let again = slower(&rounds[1]);
        let faster = rounds[0].iter().copied().fold(first, f64::min);
        (again > KEPT * first).then_some(1.0 + (again - first) / faster.max(1.0))
    }

    /// How much later than a single read a pair ends that is told by `fast` and does not wait, ns: the firmware takes one after the other.
    fn later_ns(self, fast: f64, single_ns: f64) -> f64 {
        let later = match self {
            Pairs::Plain { .. } => fast - single_ns,
            Pairs::BesideAlone { fast_ns } => (fast - 1.0) * fast_ns,
        };
        later.max(0.0)
    }

    /// What a difference of 1 is in ns.
    fn unit_ns(self) -> f64 {
        match self {
            Pairs::Plain { .. } => 1.0,
            Pairs::BesideAlone { fast_ns } => fast_ns,
        }
    }
}

/// Dies that addresses go round page by page: the first distance at which all pairs share one, if they do at
/// twice that as well and at none between.
fn comb(
    bench: &mut Bench<'_>,
    kind: Pairs,
    threshold: f64,
    room: u64,
) -> Result<Option<u64>, Stop> {
    let mut shares = Vec::new();
    for k in 1..=2 * COMB_MAX {
        let mut seen = Vec::new();
        for _ in 0..PAIRS {
            seen.extend(kind.pair(bench, k, room)?);
        }
        let hits = seen.iter().filter(|time| **time > threshold).count();
        shares.push(hits as f64 / seen.len().max(1) as f64);
        let first = shares.iter().position(|share| *share > 0.75);
        // Between the teeth few share a die.
        let quiet = |until: usize| shares[..until].iter().all(|share| *share < 0.35);
        match first {
            Some(0) => return Ok(None),
            Some(at) if !quiet(at) => return Ok(None),
            Some(at) if shares.len() == 2 * (at + 1) => {
                let between = shares[at + 1..2 * at + 1].iter().all(|share| *share < 0.35);
                let again = shares[2 * at + 1] > 0.75;
                return Ok((between && again).then_some(at as u64 + 1));
            }
            None if shares.len() as u64 > COMB_MAX => return Ok(None),
            _ => {}
        }
    }
    Ok(None)
}

/// A page not far from `at`, other than `other`, that brings the same map entry: entries come in aligned stretches
/// of some MiB, so it lies towards the middle of one.
pub(super) fn beside(at: u64, other: u64) -> u64 {
    let to = |far: u64| {
        if at % ENTRIES < ENTRIES / 2 {
            at + far
        } else {
            at - far
        }
    };
    if to(BESIDE) == other {
        to(BESIDE / 2)
    } else {
        to(BESIDE)
    }
}

/// Share of pairs that collide, at each distance from 1 page on.
fn collisions(
    bench: &mut Bench<'_>,
    kind: Pairs,
    threshold: f64,
    room: u64,
) -> Result<Vec<f64>, Stop> {
    let mut shares = Vec::new();
    for k in 1..=SCANNED {
        // The first triangle alone shows where there is no second: it needs more pairs.
        let pairs = if k <= 64 { 4 * PAIRS } else { PAIRS };
        let mut hits = 0;
        for _ in 0..pairs {
            let time = kind.pair(bench, k, room)?;
            hits += u64::from(time.is_some_and(|time| time > threshold));
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
    Ok(shares)
}
