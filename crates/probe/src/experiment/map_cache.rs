//! Map cache: how many places can be read in turn before reads get slow?
//!
//! **Method.** Algorithm 3 of Kim & Kim (PLOS ONE 2020), adapted. The drive is divided into `d`
//! sections and one page is read in each, round after round; while the map of all places fits the
//! cache, every read of the second round is fast. The largest `d` of which that is true counts the
//! caching units. Then the places are drawn together: the longest stretch in which reads stay fast
//! is the reach, and reach by units the unit. All with host memory on and off, and with several
//! amounts where the host can give them.
//!
//! **Mended.** The paper reads the same 512 B again, so a data cache may answer for the map cache;
//! here every round reads another page of each section. The paper tries every hundredth `d`; here the
//! knee is bracketed. It deallocates and writes the whole drive first; this only reads, so the drive
//! must hold data (reads of what was never written are answered without flash, and look like hits).
//! The paper's latency listing is copied from its algorithm 2 and is taken to mean reads.
//!
//! **Cost.** Some 100,000 to 1,000,000 reads of 4 KiB for each state of host memory: 10 s to 2 min on
//! a drive. Writes nothing.
//!
//! **Cannot tell** a cache of the map from a drive whose flash is faster near recent reads; nor a
//! unit smaller than 1 MiB of addresses.

use super::levels::Levels;
use super::turns::{self, Settled};
use super::{About, arms, enter, knee};
use crate::bench::{Bench, Stop};
use crate::cost::{Cost, Scale};
use crate::findings::{Findings, Held, MapArm};
use crate::stats::{self, Estimate};
use crate::target::{HmbState, HmbSwitch};
use std::time::Duration;

/// What is said before it starts.
pub const ABOUT: About = About {
    name: "map-cache",
    question: "how much of its address map does the drive keep at hand, and where?",
    method: "reads of d places in turn, host memory on and off; then the places are drawn together",
    limits: "reads of a drive that was never written look like hits",
    writes: false,
    cost,
};

/// Some 40 looks of at least two rounds in each state of host memory, and a dozen with each of up to six
/// amounts of it; nearly all of the time is rest. Drives whose cache has thousands of units take up to
/// ten times as long.
fn cost(scale: &Scale) -> Cost {
    let amounts = if scale.has_sizes { 6 } else { 0 };
    let rounds = 90 * scale.states + 24 * amounts;
    Cost::reads(u64::from(rounds) * 1_200, scale).resting(REST_MAX.mul_f64(0.6) * rounds)
}

/// Pages of a section are drawn from its first MiB: surely within one caching unit.
const SECTION_BYTES: u64 = 1 << 20;
/// Name and axes of the reach by amount of host memory.
const REACH_SERIES: (&str, &str, &str) = (
    "reach of host memory",
    "host memory given, bytes",
    "reach, bytes",
);
/// Most places that are read in turn.
const PLACES_MAX: u64 = 1 << 18;
/// Amounts nearer than this are the same.
const SAME: f64 = 1.2;
/// Places that the drive's own memory holds, as a share of the units in host memory: so few are at most
/// 10 % of those that a quarter of the host memory holds, and much the same with each amount.
const FEW: f64 = 0.025;
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
    let mut random = false;
    for (name, state) in arms(bench) {
        enter(bench, state)?;
        let known = findings.map.get("on").and_then(|arm: &MapArm| arm.levels);
        let (arm, took) = measure(bench, known, &format!("map cache, host memory {name}"))?;
        note_latencies(findings, name, &took);
        findings.map.insert(name, arm);
        random |= name == "on" && took.random;
    }
    // What a miss takes may show only without host memory.
    let known = findings.map.get("off").and_then(|arm| arm.levels);
    if known.is_some() && findings.map.get("on").is_some_and(|on| on.levels.is_none()) {
        enter(bench, Some(HmbState::On))?;
        let (arm, took) = measure(bench, known, "map cache, host memory on again")?;
        note_latencies(findings, "on", &took);
        findings.map.insert("on", arm);
        random = took.random;
    }
    note_memories(findings);
    note_states(bench, findings);
    grants(bench, findings, random)
}

/// What reads told beside the edges: latencies of single reads, ns, by where their map entry was.
struct Took {
    /// Nearest memory.
    near: Estimate,
    /// The largest memory, and flash; none if there is only one level.
    far: Option<(Estimate, Estimate)>,
    /// The largest memory replaces at random.
    random: bool,
}

fn note_latencies(findings: &mut Findings, name: &str, took: &Took) {
    let suffix = if name == "as found" { "" } else { name };
    let join = |base: &str| format!("{base}_{suffix}").trim_end_matches('_').to_owned();
    findings.quantity(&join("read_near"), "us", took.near.scaled(1e-3));
    if let Some((hit, miss)) = took.far {
        findings.quantity(&join("map_hit"), "us", hit.scaled(1e-3));
        findings.quantity(&join("map_miss"), "us", miss.scaled(1e-3));
    }
}

/// What a read takes, one at a time, when its entry is in the drive's memory, in host memory, and in
/// flash: where host memory reaches farther.
fn note_memories(findings: &mut Findings) {
    let reach = |name: &str| findings.map.get(name).map(|arm| arm.reach_bytes.amount());
    let (Some(on), Some(off)) = (reach("on"), reach("off")) else {
        return;
    };
    if on < SAME * off || on == off {
        return;
    }
    for (name, of) in [
        ("hit_sram", "read_near_on"),
        ("hit_hmb", "map_hit_on"),
        ("miss", "map_miss_on"),
    ] {
        // Without a second level with it on, what a miss takes shows with it off.
        let found = findings.quantities.get(of);
        let found = found.or(findings.quantities.get(&of.replace("_on", "_off")));
        if let Some(value) = found.map(|quantity| quantity.value) {
            findings.quantity(name, "us", value);
        }
    }
}

/// Reach without host memory and with what the host gives by itself.
fn note_states(bench: &mut Bench<'_>, findings: &mut Findings) {
    let given = bench.description().hmb.granted_bytes().unwrap_or(0);
    let reach = |name: &str| match findings.map.get(name)?.reach_bytes {
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
    let page = bench.page();
    let pages = (room.min(SECTION_BYTES) / page).max(1);
    let start = if room >= SECTION_BYTES {
        start / SECTION_BYTES * SECTION_BYTES
    } else {
        start
    };
    let last = bench.capacity() / page - 1;
    (start / page + bench.below(pages)).min(last) * page
}

/// Latency of reads whose entry is surely at hand, and of reads far from everything read lately.
fn sample_levels(bench: &mut Bench<'_>) -> Result<(Vec<f64>, Vec<f64>), Stop> {
    let sections = (bench.capacity() / SECTION_BYTES).max(1);
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for _ in 0..12 {
        let start = bench.below(sections) * SECTION_BYTES;
        let mut first = Vec::new();
        let at = fresh_page(bench, start, SECTION_BYTES);
        bench.read_pages([at], 1, &mut first)?;
        bench.idle(Duration::from_millis(5))?;
        for _ in 0..32 {
            let at = fresh_page(bench, start, SECTION_BYTES);
            bench.read_pages([at], 1, &mut near)?;
        }
    }
    for _ in 0..384 {
        let start = bench.below(sections) * SECTION_BYTES;
        let at = fresh_page(bench, start, SECTION_BYTES);
        bench.read_pages([at], 1, &mut far)?;
    }
    Ok((near, far))
}

/// The levels, if there are two. Reads from far may partly hit (a large cache, a small drive), so
/// the slow level is the upper of two groups.
fn levels(near: &[f64], far: &[f64]) -> Option<Levels> {
    let middle = stats::median(near);
    let beyond = stats::quantile(near, 0.98).max(1.12 * middle);
    let slow: Vec<f64> = far.iter().copied().filter(|v| *v > beyond).collect();
    // A few outliers are no level.
    if slow.len() * 20 < far.len() {
        return None;
    }
    Levels::of(near, &slow)
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

/// How many places far from each other can be read in turn, and whether the cache replaces at
/// random.
fn count_units(
    bench: &mut Bench<'_>,
    levels: &Levels,
    from: u64,
    resolution: f64,
    series: &str,
) -> Result<(Held, bool), Stop> {
    let capacity = bench.capacity();
    let most = (capacity / SECTION_BYTES).clamp(1, PLACES_MAX);
    let (low, high) = knee(from.min(most), most, resolution, |places| {
        let seen = look(bench, levels, places, capacity / places, false)?;
        let point = (places as f64, seen.latency_ns / 1e3);
        bench.note(series, "places read in turn", "read latency, us", point);
        let name = format!("{series}: misses");
        bench.note(
            &name,
            "places read in turn",
            "share of misses",
            (places as f64, seen.share),
        );
        Ok(seen.beyond)
    })?;
    let found = held(low, high, most);
    let (Held::UpTo(_), Some(high)) = (found, high) else {
        return Ok((found, false));
    };
    // Not far beyond the edge, or places come to share units.
    let places = high * 5 / 4;
    if places < 24 || places > most {
        return Ok((found, false));
    }
    let seen = look(bench, levels, places, capacity / places, false)?;
    if !seen.looks_random() {
        return Ok((found, false));
    }
    let mut order = turns::spread(places);
    let capacity = turns::random_capacity(bench, levels, places, |bench, measuring| {
        round(bench, &mut order, capacity / places, measuring)
    })?;
    // What all fitted is held; less would be another reason for hits.
    let capacity = capacity.filter(|held| held.high > low as f64);
    Ok((capacity.map_or(found, Held::UpTo), capacity.is_some()))
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

/// The map cache as host memory is now.
fn measure(
    bench: &mut Bench<'_>,
    known: Option<Levels>,
    series: &str,
) -> Result<(MapArm, Took), Stop> {
    let (near, far) = sample_levels(bench)?;
    let near_ns = stats::median(&near);
    let mut took = Took {
        near: stats::median_interval(&near),
        far: None,
        random: false,
    };
    let everything = bench.capacity() as f64;
    let Some(levels) = levels(&near, &far).or(known) else {
        let arm = MapArm {
            levels: None,
            near_ns,
            units: Held::Everything(1.0),
            reach_bytes: Held::Everything(everything),
            hit_ns: stats::median(&far),
        };
        return Ok((arm, took));
    };
    let mut hits = near;
    // What was asked for far and wide may still be on its way.
    bench.idle(REST_MAX)?;
    let (units, random) = count_units(bench, &levels, 4, 0.003, series)?;
    took.random = random;
    let mut arm = MapArm {
        levels: Some(levels),
        near_ns,
        units,
        reach_bytes: Held::Nothing,
        hit_ns: near_ns,
    };
    match units {
        Held::Nothing => {}
        Held::Everything(_) => arm.reach_bytes = Held::Everything(everything),
        Held::UpTo(count) => {
            let places = ((0.85 * count.estimate) as u64).max(1);
            let spacing = bench.capacity() / places;
            arm.hit_ns = look(bench, &levels, places, spacing, false)?.latency_ns;
            hits = round(bench, &mut turns::spread(places), spacing, true)?;
            let series = series.replace("map cache", "reach");
            let from = count.estimate * SECTION_BYTES as f64;
            arm.reach_bytes = find_reach(bench, &levels, count.estimate, from, random, &series)?;
        }
    }
    hits.retain(|ns| *ns <= levels.threshold_ns);
    let misses: Vec<f64> = far
        .into_iter()
        .filter(|ns| *ns > levels.threshold_ns)
        .collect();
    if !hits.is_empty() && !misses.is_empty() {
        took.far = Some((
            stats::median_interval(&hits),
            stats::median_interval(&misses),
        ));
    }
    Ok((arm, took))
}

/// Keeps what an amount of host memory reaches.
fn note_reach(findings: &mut Findings, given: u64, reach: Estimate) {
    let name = if given.is_multiple_of(1 << 20) {
        format!("map_reach_{}MiB", given >> 20)
    } else {
        format!("map_reach_{}KiB", given >> 10)
    };
    findings.quantity(&name, "bytes", reach);
    findings.reach_of_grant.push((given, Held::UpTo(reach)));
}

/// Reach with several amounts of host memory: what one byte of it reaches.
///
/// The drive's own memory holds some of the places read in turn, now more, now fewer, by what it was
/// asked before, and each counts as much as a unit in host memory. In a stretch it holds only what it
/// reaches by itself. So the stretch is measured, unless those places are few ([`FEW`]) or replacement
/// is at random: then units are counted, for random reads of a stretch tell less.
fn grants(bench: &mut Bench<'_>, findings: &mut Findings, random: bool) -> Result<(), Stop> {
    let HmbSwitch::Sizes {
        granted_bytes,
        min_bytes,
        ..
    } = bench.description().hmb
    else {
        return Ok(());
    };
    let (Some(on), Some(off)) = (findings.map.get("on"), findings.map.get("off")) else {
        return Ok(());
    };
    let (Held::UpTo(units), Held::UpTo(reach)) = (on.units, on.reach_bytes) else {
        return Ok(());
    };
    let by_itself = off.reach_bytes.amount();
    let unit_bytes = reach.estimate / units.estimate;
    let counted = random || off.units.amount() < FEW * units.estimate;
    let Some(levels) = on.levels else {
        return Ok(());
    };
    if reach.estimate < SAME * by_itself {
        return Ok(());
    }
    note_reach(findings, granted_bytes, reach);
    let power = 1u64 << granted_bytes.max(1).ilog2();
    // Powers of two for drives that use no other amounts; the rest for those that keep other things
    // there as well, so that the first bytes reach nothing.
    let mut sizes = vec![power, power / 2, power / 4];
    sizes.extend((4..8).map(|eighths| granted_bytes * eighths / 8));
    sizes.retain(|bytes| *bytes >= min_bytes.max(4096) && *bytes < granted_bytes);
    sizes.sort_unstable();
    sizes.dedup();
    for bytes in sizes {
        let bytes = bytes / 4096 * 4096;
        enter(bench, Some(HmbState::Bytes(bytes)))?;
        // A little below what proportion leads to expect.
        let share = bytes as f64 / granted_bytes as f64;
        let state = format!("host memory {} KiB", bytes >> 10);
        let from = 0.45 * share;
        let units = units.estimate;
        let found = if counted {
            let from = ((from * units) as u64).max(2);
            let series = format!("map cache, {state}");
            match count_units(bench, &levels, from, 0.002, &series)?.0 {
                Held::UpTo(count) => Held::UpTo(count.scaled(unit_bytes)),
                found => found,
            }
        } else {
            let from = from * reach.estimate;
            let series = format!("reach, {state}");
            find_reach(bench, &levels, share * units, from, false, &series)?
        };
        if let Held::UpTo(found) = found
            && found.estimate > SAME * by_itself
        {
            let point = (bytes as f64, found.estimate);
            bench.note(REACH_SERIES.0, REACH_SERIES.1, REACH_SERIES.2, point);
            note_reach(findings, bytes, found);
        }
    }
    enter(bench, Some(HmbState::On))
}
