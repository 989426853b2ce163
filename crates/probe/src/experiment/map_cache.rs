//! Map cache: how many places can be read in turn before reads get slow?
//!
//! **Method.** Algorithm 3 of Kim & Kim (PLOS ONE 2020) asks how many sections can be read in turn, round
//! after round, before reads get slow: the caching units. Here places, one to each unit, are read once, and
//! then some of them again, from the youngest to the oldest: the age up to which they are fast counts the
//! units in one round instead of many (`walk.rs`). Where fast reads become fewer bit by bit, replacement is
//! at random, and the share of fast reads in rounds over more places than fit tells. What 2Q came to trust
//! before hides as much of the cache: host memory is given anew before each round, and other memory is read
//! by halves. The unit is the one size under which pairs of places within a unit come to hand together and
//! others do not (`unit.rs`); where none is, places are drawn together until the longest stretch in which
//! reads stay fast is found. All with host memory on and off, and with several amounts where the host can
//! give them. Where host memory reaches farther by less than a policy may differ from itself, both states are looked at
//! twice more, in turn (`repeated.rs`).
//!
//! **Mended.** The paper reads the same 512 B again, so a data cache may answer for the map cache;
//! here every visit reads another page of a place. The paper tries every hundredth number of sections; here
//! the edge is bracketed, then looked at ten times finer. It deallocates and writes the whole drive first;
//! this only reads, so the drive must hold data (reads of what was never written are answered without
//! flash, and look like hits). The paper's latency listing is copied from its algorithm 2 and is taken to
//! mean reads.
//!
//! **Cost.** Some four reads of 4 KiB for each unit and amount of host memory, 25 with random replacement,
//! and as much rest as large units are seen to need: 30 s to 2 min on most drives. Writes nothing.
//!
//! **Cannot tell** a cache of the map from a drive whose flash is faster near recent reads; nor a
//! unit smaller than 1 MiB of addresses.

use super::levels::Levels;
use super::own::{self, Own};
use super::samples::{self, FLAT_MAX, Samples};
use super::turns::{self, Settled};
use super::unit;
use super::walk::{self, Edge, Pace, Walk};
use super::{About, arms, enter, grants, knee};
use crate::bench::{Bench, Stop};
use crate::cost::{Cost, Scale};
use crate::findings::{Findings, Held};
use crate::infer::map::MapArm;
use crate::stats::{self, Estimate};
use crate::target::{HmbState, HmbSwitch};
use std::time::Duration;

mod busy;
mod latencies;
mod repeated;
mod seen;

use latencies::{Took, note_latencies, note_memories};

/// What is said before it starts.
pub const ABOUT: About = About {
    name: "map-cache",
    question: "how much of its address map does the drive keep at hand, and where?",
    method: "places are read once, and then again: how long ago may it have been? host memory on and off",
    limits: "reads of a drive that was never written look like hits",
    writes: false,
    cost,
};

/// Half of 250 drives drawn at random (seeds 72001 to 72150 and 73001 to 73100) took 57 s and 47,000 reads
/// with host memory of any amount, 30 s and 10,000 reads without; nearly all of the time is rest. How many
/// units there are is not known before: one drive in ten takes more than twice the time, and caches of
/// 100,000 units up to fifty times the reads.
fn cost(scale: &Scale) -> Cost {
    let amounts = if scale.has_sizes { 5 } else { 0 };
    let states = u64::from(scale.states);
    Cost::reads(10_000 * states + 5_400 * amounts, scale)
        .resting(Duration::from_secs(28 * states - amounts))
}

/// Pages of a section are drawn from its first MiB: surely within one caching unit.
const SECTION_BYTES: u64 = 1 << 20;
/// Name and axes of the reach by amount of host memory.
pub(super) const REACH_SERIES: (&str, &str, &str) = (
    "reach of host memory",
    "host memory given, bytes",
    "reach, bytes",
);
/// Most places that are read in turn.
const PLACES_MAX: u64 = 1 << 18;
/// Amounts nearer than this are the same.
pub(super) const SAME: f64 = 1.2;
/// Caches of fewer units are counted in two ways where they keep what they came to trust before.
const SMALL: f64 = 128.0;
/// Places visited before the unit is looked for: more than a small memory in front holds.
const UNIT_FROM: u64 = 512;
/// Share of misses at which a look counts as beyond ([`Levels::is_beyond`]).
const NOTICED: f64 = 0.03;
/// Reads that measure, at most, in one look.
const MEASURED: usize = 2000;
/// Time for the drive to complete large units in the background: to begin with, and for each place
/// that was visited, up to a limit.
const REST: Duration = Duration::from_millis(60);
const REST_PER_PLACE: Duration = Duration::from_millis(2);
const REST_MAX: Duration = Duration::from_secs(2);

/// Does it.
pub fn run(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Stop> {
    let (mut walk, mut flat) = (None, None);
    for (name, state) in arms(bench) {
        enter(bench, state)?;
        let known = findings
            .roles
            .map
            .arms
            .get("on")
            .and_then(|arm: &MapArm| arm.levels);
        let renewed = state.filter(|state| *state == HmbState::On);
        // Kinds of misses and hits in host memory are told apart by what there is without host memory.
        let kinds = if renewed.is_some() {
            Kinds::Later
        } else {
            Kinds::Now
        };
        let series = format!("map cache, host memory {name}");
        let before = Before {
            levels: known,
            kinds,
            own: None,
        };
        let (arm, took) = measure(bench, before, renewed, &series)?;
        note_latencies(findings, name, &took);
        findings.roles.map.arms.insert(name, arm);
        if name == "on" {
            (walk, flat) = (took.walk, took.flat);
        }
    }
    // What a miss takes may show only without host memory.
    let known = findings
        .roles
        .map
        .arms
        .get("off")
        .and_then(|arm| arm.levels);
    let is_open =
        |on: &MapArm| on.levels.is_none() && (known.is_some() || on.missed.high >= FLAT_MAX);
    if findings.roles.map.arms.get("on").is_some_and(is_open) {
        enter(bench, Some(HmbState::On))?;
        let series = "map cache, host memory on again";
        let before = Before {
            levels: known,
            kinds: Kinds::Now,
            own: findings.roles.map.arms.get("off").and_then(Own::of),
        };
        let (arm, took) = measure(bench, before, Some(HmbState::On), series)?;
        note_latencies(findings, "on", &took);
        findings.roles.map.arms.insert("on", arm);
        (walk, flat) = (took.walk, took.flat);
    }
    note_memories(findings, flat);
    note_states(bench, findings);
    repeated::run(bench, findings)?;
    grants::run(bench, findings, walk)?;
    busy::note(bench, findings)
}

/// Reach without host memory and with what the host gives by itself.
fn note_states(bench: &mut Bench<'_>, findings: &mut Findings) {
    let given = bench.description().hmb.granted_bytes().unwrap_or(0);
    let reach = |name: &str| match findings.roles.map.arms.get(name)?.reach_bytes {
        Held::Nothing => Some(0.0),
        Held::UpTo(reach) => Some(reach.estimate),
        Held::Everything(_) => None,
    };
    let (Some(on), Some(off)) = (reach("on"), reach("off")) else {
        return;
    };
    for (bytes, reach) in [(0, off), (given, on)] {
        let point = (bytes as f64, reach);
        bench.note(REACH_SERIES.0, REACH_SERIES.1, REACH_SERIES.2, point);
    }
    let note =
        "host memory can only be turned on and off from here: its reach is known for two amounts";
    let on_off = matches!(bench.description().hmb, HmbSwitch::OnOff { .. });
    if on_off && !findings.notes.iter().any(|said| said == note) {
        findings.notes.push(note.to_owned());
    }
}

/// A page of a section that has not been read before, as far as that can be avoided.
/// Sections of a MiB or more start at a whole MiB, so that they lie within one caching unit.
pub(super) fn fresh_page(bench: &mut Bench<'_>, start: u64, room: u64) -> u64 {
    let start = if room >= SECTION_BYTES {
        start / SECTION_BYTES * SECTION_BYTES
    } else {
        start
    };
    walk::page_of(bench, start, room.min(SECTION_BYTES))
}

/// One round over places `spacing` bytes apart, in the order given; a measuring one stops when it
/// knows enough, and the next one goes on from there: what is read twice as often as the rest would
/// get a second chance (CLOCK). Then a rest, so that what was missed does not hold up what is asked
/// next.
fn round(
    bench: &mut Bench<'_>,
    order: &mut [u64],
    spacing: u64,
    measuring: bool,
) -> Result<Vec<f64>, Stop> {
    let places = order.len();
    let wanted = if measuring {
        MEASURED.min((2 * places).max(240))
    } else {
        places
    };
    let mut offsets = Vec::with_capacity(wanted);
    for place in order.iter().cycle().take(wanted) {
        offsets.push(fresh_page(bench, place * spacing, spacing));
    }
    let mut latencies = Vec::with_capacity(wanted);
    bench.read_pages(offsets, 1, &mut latencies)?;
    order.rotate_left(wanted % places);
    let rest = REST_PER_PLACE.saturating_mul(wanted.min(10_000) as u32);
    bench.idle((REST + rest).min(REST_MAX))?;
    Ok(latencies)
}

/// Reads places in turn until the drive has settled.
fn look(
    bench: &mut Bench<'_>,
    levels: &Levels,
    places: u64,
    spacing: u64,
    shuffled: bool,
) -> Result<Settled, Stop> {
    let mut order = turns::spread(places);
    turns::settled(bench, levels, |bench, measuring| {
        if shuffled {
            bench.shuffle(&mut order);
        }
        round(bench, &mut order, spacing, measuring)
    })
}

/// What is known of a cache before its units are counted: how to walk over them, and between which
/// ages what was visited leaves it.
struct Survey {
    walk: Walk,
    /// Bytes of a unit; none where no size explains what is seen.
    unit: Option<u64>,
    low: u64,
    high: Option<u64>,
}

/// A bracket of the units, their size, and the rest that they need.
fn survey(
    bench: &mut Bench<'_>,
    levels: &Levels,
    renewed: Option<HmbState>,
) -> Result<Survey, Stop> {
    let mut walk = Walk::new(bench, SECTION_BYTES, Pace::UNKNOWN);
    let most = UNIT_FROM.min(walk.places);
    let (mut low, mut high) = walk.bracket(bench, levels, (4, most))?;
    let pool = match levels.pages_below_ns {
        Some(below_ns) => Some(samples::pool(bench, below_ns)?),
        None => None,
    };
    if let (Some(_), Some(high)) = (&pool, high) {
        // Units of these pages are at hand.
        walk.ahead(bench, 2 * high, levels)?;
        walk.push_kept(bench, levels)?;
    }
    // What is at hand by now must not answer for its neighbours.
    walk::renew(bench, renewed)?;
    let unit = unit::find(bench, levels, low, walk.pace, pool.as_deref())?;
    if let Some(bytes) = unit {
        let fit = walk.fit;
        walk = Walk::new(bench, bytes, Pace::UNKNOWN);
        walk.fit = fit;
        walk.pace = walk.learned_pace(bench, levels)?;
    }
    if high.is_none() {
        let most = walk.places.min(PLACES_MAX);
        (low, high) = walk.bracket(bench, levels, (most.min(2 * UNIT_FROM), most))?;
    }
    Ok(Survey {
        walk,
        unit,
        low,
        high,
    })
}

/// Units held, looked for between two ages, and whether the cache replaces at random.
pub(super) fn count_units(
    bench: &mut Bench<'_>,
    levels: &Levels,
    walk: &mut Walk,
    (low, high): (u64, u64),
    series: &str,
) -> Result<(Held, bool), Stop> {
    walk.seen.clear();
    let edge = walk.edge(bench, levels, (low, high))?;
    for (age, latency) in &walk.seen {
        let point = (*age as f64, latency / 1e3);
        bench.note(series, "places read since", "read latency, us", point);
    }
    let all = Held::Everything(walk.places as f64);
    let (held, found) = match edge {
        Edge::Beyond => return Ok((all, false)),
        Edge::Blind => {
            walk.is_blind = true;
            return Ok((Held::Nothing, false));
        }
        Edge::At(units) if units.estimate < 1.0 => return Ok((Held::Nothing, false)),
        Edge::At(units) => (units.estimate, Some(units)),
        // The share that hits is told by rounds over the pages that tell: the drive's own memory may hold as many.
        Edge::Gradual(half)
            if walk.apart(levels).is_some()
                && !own::is_beyond(walk.own, half / std::f64::consts::LN_2) =>
        {
            walk.is_blind = true;
            return Ok((Held::Nothing, false));
        }
        Edge::Gradual(half) => (half / std::f64::consts::LN_2, None),
    };
    // What 2Q came to trust before stays, and hides as much of the cache.
    let mut by_halves = None;
    if walk.renewed.is_none() {
        let from = (held / 2.0) as u64;
        if held < SMALL {
            by_halves = walk.by_halves(bench, levels, from.max(2))?;
        } else if walk.takes_back(bench, levels, held)? {
            let units = walk.by_halves(bench, levels, from)?;
            return Ok((units.map_or(all, Held::UpTo), false));
        }
    }
    if let Some(units) = found {
        let more = by_halves.filter(|more| more.estimate > 1.1 * units.high);
        return Ok((Held::UpTo(more.unwrap_or(units)), false));
    }
    let random = walk.random_capacity(bench, levels, held)?;
    Ok(match (random, by_halves) {
        // Random replacement loses some long before the edge.
        (Some(units), Some(halves)) if halves.estimate > 0.85 * units.estimate => {
            (Held::UpTo(halves), false)
        }
        (Some(units), _) => (Held::UpTo(units), true),
        (None, Some(halves)) => (Held::UpTo(halves), false),
        // Neither: an edge that is not sharp.
        (None, None) => {
            let units = Estimate::new(held, 0.6 * held, 1.4 * held);
            (Held::UpTo(units), false)
        }
    })
}

fn held(low: u64, high: Option<u64>, most: u64) -> Held {
    match high {
        None => Held::Everything(most as f64),
        Some(_) if low <= 1 => Held::Nothing,
        Some(high) => {
            // The last that fits is the best guess; the interval is the bracket and a little for a
            // knee that is not sharp.
            let slack = 0.01 * low as f64;
            Held::UpTo(Estimate::new(
                low as f64,
                low as f64 - slack,
                (high - 1) as f64 + slack,
            ))
        }
    }
}

/// How long a stretch can be read at random, places at most half a unit apart; looked for from `from`
/// bytes on.
fn find_reach(
    bench: &mut Bench<'_>,
    levels: &Levels,
    units: f64,
    from: f64,
    random: bool,
    series: &str,
) -> Result<Held, Stop> {
    let page = bench.page();
    let places = ((2.0 * units) as u64).clamp(512, 2 * PLACES_MAX);
    let most = bench.capacity() / page / places;
    if most == 0 {
        return Ok(Held::Everything(bench.capacity() as f64));
    }
    let from = (from as u64 / places / page).clamp(1, most);
    let (low, high) = knee(from, most, 0.006, |spacing| {
        let seen = look(bench, levels, places, spacing * page, true)?;
        let span = (places * spacing * page) as f64;
        let point = (span, seen.latency_ns / 1e3);
        bench.note(
            series,
            "stretch read at random, bytes",
            "read latency, us",
            point,
        );
        Ok(seen.beyond)
    })?;
    let scale = (places * page) as f64;
    let high = match (held(low, high, most), high) {
        (Held::UpTo(_), Some(high)) => high,
        (Held::Everything(_), _) => return Ok(Held::Everything(bench.capacity() as f64)),
        (held, _) => return Ok(held),
    };
    // Beyond the reach, random reads miss more and more often, or all at once (large units). In the
    // first case the share of misses that is noticed lies beyond the reach by as much.
    let beyond = (high * 5 / 4).min(most);
    let mut seen = look(bench, levels, places, beyond * page, true)?;
    if random && beyond > high {
        // Whatever gives way, random reads hit in proportion once the past is forgotten.
        for _ in 0..4 {
            seen = look(bench, levels, places, beyond * page, true)?;
        }
        let span = beyond as f64 * scale;
        let hits = (1.0 - seen.share) * span;
        return Ok(Held::UpTo(Estimate::new(
            hits,
            hits - 0.03 * span,
            hits + 0.03 * span,
        )));
    }
    let late = if seen.share < 0.4 { NOTICED } else { 0.0 };
    let (low, high) = (low as f64, high as f64);
    let estimate = Estimate::new(
        f64::midpoint(low, high) / (1.0 + late),
        0.985 * low / (1.0 + 1.5 * late),
        1.005 * high / (1.0 + 0.5 * late),
    );
    Ok(Held::UpTo(estimate.scaled(scale)))
}

/// What is known before the map cache is looked at in a state of host memory.
struct Before {
    /// Levels of another state, for where this one shows none.
    levels: Option<Levels>,
    kinds: Kinds,
    own: Option<Own>,
}

/// When pages of one kind are looked for, where pages of several kinds hide a second level.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kinds {
    Now,
    Later,
}

/// The map cache as host memory is now.
fn measure(
    bench: &mut Bench<'_>,
    before: Before,
    renewed: Option<HmbState>,
    series: &str,
) -> Result<(MapArm, Took), Stop> {
    let mut samples = Samples::take(bench)?;
    let near_ns = stats::median(&samples.near);
    let mut took = Took {
        near: stats::median_interval(&samples.near),
        flat: None,
        far: None,
        walk: None,
    };
    let (levels, missed) = told_apart(bench, &mut samples, before.levels, before.kinds)?;
    let one_level = MapArm {
        levels: None,
        near_ns,
        near_mean_ns: samples.near_mean(),
        missed,
        units: Held::Everything(1.0),
        unit_is_told: false,
        reach_bytes: Held::Everything(bench.capacity() as f64),
        hit_ns: stats::median(&samples.far),
        slow_again_ns: None,
    };
    let Some(mut levels) = levels else {
        took.flat = (missed.high < FLAT_MAX).then(|| stats::median_interval(&samples.far));
        return Ok((one_level, took));
    };
    // What was asked for far and wide may still be on its way.
    bench.idle(REST_MAX)?;
    if renewed.is_some() {
        levels = samples::above_a_third(bench, levels)?;
    }
    let Survey {
        mut walk,
        unit,
        low,
        high,
    } = survey(bench, &levels, renewed)?;
    (walk.renewed, walk.own) = (renewed, before.own);
    if walk.is_blind || levels.pages_below_ns.is_some() && unit.is_none() {
        return Ok((one_level, took));
    }
    let range = high.map_or((low / 2, low), |high| (low / 2, high * 11 / 10 + 1));
    let (units, reach_bytes) = held_units(bench, &levels, &mut walk, (unit, range), series)?;
    if walk.is_blind {
        return Ok((one_level, took));
    }
    let hits = seen::far_hits(&walk, &levels).unwrap_or_else(|| samples.near.clone());
    let arm = MapArm {
        levels: Some(levels),
        units,
        unit_is_told: unit.is_some(),
        reach_bytes,
        hit_ns: stats::median(&hits),
        slow_again_ns: seen::slow_again(&walk, &levels),
        ..one_level
    };
    let misses = seen::misses(&walk, &samples, &levels);
    if !misses.is_empty() {
        took.far = Some((
            stats::median_interval(&hits),
            stats::median_interval(&misses),
        ));
    }
    took.walk = Some(walk).filter(|_| unit.is_some());
    Ok((arm, took))
}

/// Units held, and the addresses they cover.
fn held_units(
    bench: &mut Bench<'_>,
    levels: &Levels,
    walk: &mut Walk,
    (unit, range): (Option<u64>, (u64, u64)),
    series: &str,
) -> Result<(Held, Held), Stop> {
    let everything = bench.capacity() as f64;
    let (units, random) = count_units(bench, levels, walk, range, series)?;
    let reach_bytes = match (units, unit) {
        (Held::UpTo(count), Some(unit)) => Held::UpTo(count.scaled(unit as f64)),
        (Held::UpTo(count), None) => {
            let series = series.replace("map cache", "reach");
            let from = count.estimate * SECTION_BYTES as f64;
            find_reach(bench, levels, count.estimate, from, random, &series)?
        }
        (Held::Nothing, _) => Held::Nothing,
        (Held::Everything(_), _) => Held::Everything(everything),
    };
    Ok((units, reach_bytes))
}

/// The levels, if there are two, and what share of reads may have missed.
fn told_apart(
    bench: &mut Bench<'_>,
    samples: &mut Samples,
    known: Option<Levels>,
    kinds: Kinds,
) -> Result<(Option<Levels>, Estimate), Stop> {
    if let Some(levels) = samples.levels() {
        return Ok((Some(levels), samples.missed()));
    }
    if let Some(known) = known {
        return Ok((samples::carried_over(bench, known)?, samples.missed()));
    }
    // One level, or several kinds of pages that hide the other.
    let missed = samples.settled(bench)?;
    let levels = if missed.high >= FLAT_MAX && kinds == Kinds::Now {
        samples::by_kind(bench, samples)?
    } else {
        None
    };
    Ok((levels, missed))
}
