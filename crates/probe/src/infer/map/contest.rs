//! What other experiments say against a verdict on the map. A verdict that one of them contradicts is none.

use crate::findings::{Findings, Held};
use crate::infer::map::MapArm;
use crate::infer::{Tier, Verdict};
use crate::target::Description;

/// Of one look at the map: a page in each stretch that a translation page covers, where units are not known.
const PAGE_BYTES: f64 = 4096.0;
const TRANSLATED_BYTES: f64 = 4096.0 * 1024.0;
/// Means further apart than this are not alike.
const ALIKE: f64 = 1.2;
/// The same of means with many reads in flight, where reads get in each other's way.
const ALIKE_DEEP: f64 = 1.3;
/// Spans from here on: no read cache has a part in them, and all dies are at work.
const SPAN_MIN: f64 = (1u64 << 30) as f64;
/// Hits that take longer with host memory on than off by more than this come from there, or are no hits.
const HIT_SAME: f64 = 1.12;
/// Slow reads that wait for less than this share of what they wait for without host memory do not wait for flash.
const WAIT_SAME: f64 = 0.85;
/// Two counts of the same units differ by less than so many: an age ends one unit sooner or later in each state, and host memory
/// must add a whole one beyond that.
const MISCOUNTED: f64 = 3.0;
/// What waits for its entry for less than this may wait for host memory: memory as far away as any that was met, 26 us, takes
/// as much of a longer wait as does not pass for the whole.
const FAR_WAIT_NS: f64 = 32_000.0;

/// What speaks against "reads are as fast everywhere".
pub(super) fn against_flat(findings: &Findings, arm: &MapArm) -> Option<String> {
    let random = findings.quantities.get("random_read_qd1");
    if let Some(rate) = random.map(|random| random.value.estimate) {
        let (all, near) = (1e9 / rate.max(1e-9), arm.near_mean_ns);
        if all > ALIKE * near {
            return Some(format!(
                "random reads over the whole drive take {:.1} us on average, one at a time, and reads near \
                 each other {:.1} us (queue-depth)",
                all / 1e3,
                near / 1e3
            ));
        }
    }
    findings.spans.iter().find_map(|(state, spans)| {
        let mut wide = spans.iter().filter(|span| span.0 >= SPAN_MIN);
        let first = wide.next()?;
        let last = wide.next_back()?;
        (last.1 > ALIKE_DEEP * first.1).then(|| {
            let [from, to] = [first.0, last.0].map(crate::infer::size_text);
            format!(
                "random reads over {to} take {:.2} times as long as over {from}, host memory {state} \
                 (working-set)",
                last.1 / first.1
            )
        })
    })
}

/// What speaks against "farther with host memory" where the same page of each place was read again and again: a read
/// cache in host memory holds those very pages.
pub(super) fn against_farther(findings: &Findings, arms: (&MapArm, &MapArm)) -> Option<String> {
    against_unknown_cache(findings).or_else(|| against_known_cache(findings, arms))
}

/// What speaks against "farther with host memory" where it is farther by a few units: of two large units, one state counted
/// two and the other none, and an edge that is not sharp ended anywhere between two and six.
pub(super) fn by_few_units(on: &MapArm, off: &MapArm, capacity: f64) -> Option<String> {
    let bytes = |arm: &MapArm| super::unit_of(arm).map_or(0.0, |unit| unit.estimate);
    let unit = bytes(on).max(bytes(off));
    let least = match on.reach_bytes {
        Held::UpTo(reach) => reach.low,
        _ => capacity,
    };
    let most = match off.reach_bytes {
        Held::UpTo(reach) => reach.high,
        // Not even two of them.
        _ => unit,
    };
    let surely = least - most;
    (surely < MISCOUNTED * unit || surely <= 0.0).then(|| {
        let [unit, surely] = [unit, surely.max(0.0)].map(crate::infer::size_text);
        format!(
            "it is surely farther by {surely} only, and units of {unit} are counted to one of them in either state at best"
        )
    })
}

/// Reading a page again saves more with host memory on than off, and of how many pages is not known: noise hid it.
fn against_unknown_cache(findings: &Findings) -> Option<String> {
    let arms = &findings.roles.read_cache.arms;
    let (on, off) = (arms.get("on")?, arms.get("off")?);
    (on.is_open() && on.saved.low > off.saved.high).then(|| {
        format!(
            "reading a page again saves {:.0} % of the time with host memory on and {:.0} % with it off, and how many \
             pages are kept there could not be told, so that those read for that may have come from there (read-cache)",
            100.0 * on.saved.estimate,
            100.0 * off.saved.estimate.max(0.0)
        )
    })
}

fn against_known_cache(findings: &Findings, (on, off): (&MapArm, &MapArm)) -> Option<String> {
    let kept = |state: &str| {
        let arm = findings.roles.read_cache.arms.get(state)?;
        Some(arm.bytes.amount())
    };
    let pages = match on.units {
        Held::UpTo(units) => units.estimate,
        _ => on.reach_bytes.most() / TRANSLATED_BYTES,
    };
    let (with, without) = (kept("on")?, kept("off")?);
    // What the drive's own memory holds comes on top of what such a cache answers for.
    let own = match (off.units, off.reach_bytes) {
        (Held::UpTo(units), Held::UpTo(_)) => units.estimate.min(pages),
        _ => 0.0,
    };
    let read_bytes = (pages - own) * PAGE_BYTES;
    (read_bytes <= ALIKE * with && pages * PAGE_BYTES > without).then(|| {
        let [read, with] = [read_bytes, with].map(crate::infer::size_text);
        format!(
            "the pages read for what is beyond the drive's own memory, {read}, are no more than is read again fast with host memory on, {with}, \
             so that they may have come from there (read-cache)"
        )
    })
}

/// What speaks against "host memory makes no difference".
pub(super) fn against_no_difference(findings: &Findings) -> Option<String> {
    let (on, off) = (findings.spans.get("on")?, findings.spans.get("off")?);
    let both = on.iter().zip(off).filter(|(on, _)| on.0 >= SPAN_MIN);
    let apart: Vec<(f64, f64)> = both
        .map(|(on, off)| (on.0, off.1 / on.1))
        .filter(|(_, ratio)| *ratio > ALIKE_DEEP)
        .collect();
    let (span, ratio) = apart.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (apart.len() >= 2).then(|| {
        format!(
            "random reads over {} take {ratio:.2} times as long with host memory off as with it on \
             (working-set)",
            crate::infer::size_text(*span)
        )
    })
}

/// What reads wait for that find their entry neither in the drive's memory nor, if that is something else, in host memory, ns. What
/// was read before tells, or where too little of that was slow, what was not.
fn waits_ns(arm: &MapArm) -> Option<f64> {
    let first = arm.levels.map(|levels| levels.slow_ns);
    Some(arm.slow_again_ns.or(first)? - arm.hit_ns)
}

/// What latencies say against edges that lie where they lie without host memory: hits there may be as slow as what
/// counts as a miss.
pub(super) fn by_latency(on: &MapArm, off: &MapArm) -> Option<String> {
    let us = |ns: f64| ns / 1e3;
    if on.hit_ns > HIT_SAME * off.hit_ns {
        return Some(format!(
            "reads whose entry is at hand take {:.1} us with it on and {:.1} us with it off",
            us(on.hit_ns),
            us(off.hit_ns)
        ));
    }
    let (with, without) = (on.slow_again_ns? - on.hit_ns, waits_ns(off)?);
    (with < WAIT_SAME * without).then(|| {
        format!(
            "slow reads of what was read before wait {:.1} us for their entry with it on and {:.1} us with it off",
            us(with),
            us(without)
        )
    })
}

/// A command is fetched from host memory, and its answer goes there: what a read takes besides flash bounds how far that is.
/// Where it is more than a miss waits for, a hit there may take as long as flash, at any number of reads at once.
fn may_be_as_far_as_flash(off: &MapArm) -> Option<String> {
    let waits = waits_ns(off)?;
    // Its own data takes a read about as long as its translation page would.
    let besides = off.near_ns - waits;
    (besides > waits.max(FAR_WAIT_NS)).then(|| {
        format!(
            "reads take {:.1} us with their entry at hand, of which flash explains {:.1} us: host memory may be as far away as \
             the rest, and then a hit there takes as long as the {:.1} us that are waited for what is not at hand",
            off.near_ns / 1e3,
            waits / 1e3,
            waits / 1e3
        )
    })
}

/// Flash that answers as fast as host memory may hides a map there from single reads. Many reads at once tell.
pub(super) fn by_distance(findings: &Findings, off: &MapArm, verdict: Verdict) -> Verdict {
    let is_told = findings.spans.contains_key("on") && findings.spans.contains_key("off");
    if let Some(far) = may_be_as_far_as_flash(off).filter(|_| verdict.tier == Tier::Device) {
        return verdict.withdrawn(&far);
    }
    match waits_ns(off).filter(|ns| *ns < FAR_WAIT_NS && !is_told) {
        Some(ns) if verdict.tier == Tier::Device => verdict.withdrawn(&format!(
            "reads wait no longer than {:.1} us for what is not at hand, which host memory may take as well, and working \
             sets with it on and off were not compared (working-set)",
            ns / 1e3
        )),
        _ => verdict,
    }
}

/// Large units that are completed in the background are there in part for long: where they end is not told by what is fast,
/// and where host memory makes no difference to that, many reads at once must bear it out.
pub(super) fn by_background(findings: &Findings, mut verdict: Verdict) -> Verdict {
    let Some(shown) = findings
        .busy
        .as_ref()
        .filter(|_| verdict.tier != Tier::Undecided)
    else {
        return verdict;
    };
    let why = format!(
        "{shown}, so that the drive is busy with something of its own, as where it completes large units of its map in the \
         background"
    );
    (verdict.size_bytes, verdict.reach_bytes, verdict.unit_bytes) = (None, None, None);
    let is_switched = findings.roles.map.arms.contains_key("off");
    let is_told = ["on", "off"]
        .iter()
        .all(|state| findings.spans.contains_key(state));
    if verdict.tier == Tier::Device && is_switched && !is_told {
        return verdict.withdrawn(&format!(
            "{why}, and working sets with host memory on and off were not compared (working-set)"
        ));
    }
    verdict.evidence +=
        &format!("; {why}: how far it reaches, in what units and with how much does not show");
    verdict
}

/// Copies in host memory of what the drive's own memory holds add nothing to the reach: where what is given has no room
/// for much more, even as a power of two, "no difference" does not tell that none of it is used.
pub(super) fn by_copies(about: &Description, off: &MapArm, verdict: Verdict) -> Verdict {
    let (Held::UpTo(own), Some(granted)) = (off.reach_bytes, about.hmb.granted_bytes()) else {
        return verdict;
    };
    let used = (granted.max(1) as f64).log2().floor().exp2();
    if verdict.tier != Tier::Device || used > super::SAME * own.estimate * super::MAP_SHARE_MAX {
        return verdict;
    }
    verdict.withdrawn(&format!(
        "the drive's own memory answers, but {} of host memory may hold no more of the map than that does, and copies \
         there would not show",
        crate::infer::size_text(granted as f64)
    ))
}

/// What speaks for "no read waits for its entry, host memory on or off": all of them wait where nothing is at hand, the first of a
/// stretch as those after it.
pub(super) fn by_nearness(on: &MapArm, off: &MapArm) -> Option<String> {
    let (with, without) = (on.near_mean_ns, off.near_mean_ns);
    (without > ALIKE * with).then(|| {
        format!(
            "first reads of a stretch take no longer than reads of the same stretch after it, host memory on or off, yet these take \
             {:.1} us on average with it on and {:.1} us with it off: as where without it every read waits for the map",
            with / 1e3,
            without / 1e3
        )
    })
}

/// What further looks at the same states say of "farther with host memory": that it was so each time, or why it may be chance.
pub(super) fn by_looks(
    again: &[(Option<Held>, Option<Held>)],
    on: &MapArm,
    off: &MapArm,
) -> Result<String, String> {
    if again.is_empty() {
        return Ok(String::new());
    }
    let both = again.iter().map(|(on, off)| on.zip(*off));
    let Some(both) = both.collect::<Option<Vec<_>>>() else {
        return Err("a further look at both shows no edge".to_owned());
    };
    let first = (on.reach_bytes, off.reach_bytes);
    let (with, without): (Vec<Held>, Vec<Held>) = std::iter::once(first).chain(both).unzip();
    let least = with.iter().map(Held::most).fold(f64::INFINITY, f64::min);
    let most = without.iter().map(Held::most).fold(0.0, f64::max);
    let text = |all: &[Held]| {
        let all: Vec<String> = all.iter().map(crate::infer::held_text).collect();
        all.join(", ")
    };
    let looks = format!(
        "of {} looks at each, in turn, those with it on reach {} and those with it off {}",
        with.len(),
        text(&with),
        text(&without)
    );
    if least > super::SAME * most {
        return Ok(format!("; {looks}"));
    }
    Err(format!(
        "{looks}: the same state differs from one look to the next by as much"
    ))
}

#[cfg(test)]
mod tests;
