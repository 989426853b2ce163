//! From findings to verdicts: which role lives on which tier. Every verdict names its evidence, and
//! "undecided" is one.

use crate::findings::{Findings, Held, MapArm, ReadCacheArm, WriteBufferArm};
use crate::stats::Estimate;
use crate::target::{Description, HmbSwitch};
use std::collections::BTreeMap;

/// Where a role lives, as far as can be told from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Host memory the drive was given.
    Hmb,
    /// Memory on the drive.
    Device,
    /// Flash in single-bit mode.
    Slc,
    /// There is no such thing.
    None,
    /// It cannot be told.
    Undecided,
}

impl Tier {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Tier::Hmb => "hmb",
            Tier::Device => "device",
            Tier::Slc => "slc",
            Tier::None => "none",
            Tier::Undecided => "undecided",
        }
    }
}

/// What is concluded about a role.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Where it lives.
    pub tier: Tier,
    /// How sure that is.
    pub confidence: f64,
    /// Memory it takes, bytes.
    pub size_bytes: Option<Estimate>,
    /// What it keeps at once: for the map, bytes of addresses of one caching unit.
    pub unit_bytes: Option<Estimate>,
    /// Why.
    pub evidence: String,
}

impl Verdict {
    fn new(tier: Tier, confidence: f64, evidence: impl Into<String>) -> Self {
        Verdict {
            tier,
            confidence,
            size_bytes: None,
            unit_bytes: None,
            evidence: evidence.into(),
        }
    }

    fn undecided(evidence: impl Into<String>) -> Self {
        Self::new(Tier::Undecided, 0.0, evidence)
    }

    fn size(mut self, size: Option<Estimate>) -> Self {
        self.size_bytes = size;
        self
    }
}

/// What an entry of the map takes at least: 4 bytes for 4 KiB (Kim & Kim 2020; Jeong et al. 2017).
const MAP_SHARE: f64 = 1.0 / 1024.0;
/// Amounts nearer than this are the same.
const SAME: f64 = 1.2;

/// Verdicts on all roles, by name.
#[must_use]
pub fn verdicts(findings: &mut Findings, about: &Description) -> BTreeMap<&'static str, Verdict> {
    let mut verdicts = BTreeMap::new();
    if !findings.map.is_empty() {
        verdicts.insert("map", map(findings, about));
    }
    if !findings.read_cache.is_empty() {
        verdicts.insert("read_cache", read_cache(findings, about));
    }
    if !findings.write_buffer.is_empty() {
        verdicts.insert("write_buffer", write_buffer(findings, about));
    }
    verdicts
}

/// How a pair of states differs, or what there is without a switch.
enum Arms<'a, T> {
    Both(&'a T, &'a T),
    /// The drive uses no host memory: what there is, is on the drive.
    DriveOnly(&'a T),
    /// Host memory may be in use and cannot be turned off.
    Unswitched(&'a T),
    Missing,
}

fn arms<'a, T>(found: &'a BTreeMap<&'static str, T>, about: &Description) -> Arms<'a, T> {
    match (found.get("on"), found.get("off"), found.get("as found")) {
        (Some(on), Some(off), _) => Arms::Both(on, off),
        (_, _, Some(arm)) if about.hmb == HmbSwitch::NotUsed => Arms::DriveOnly(arm),
        (_, _, Some(arm)) => Arms::Unswitched(arm),
        _ => Arms::Missing,
    }
}

const UNSWITCHED: &str = "host memory cannot be turned off from here, so on the drive and in host \
                          memory look alike";
const INTERRUPTED: &str = "only one state of host memory was measured";

fn size_text(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.4} {}", units[unit]).replace(".0000", "")
}

fn held_text(held: &Held) -> String {
    match held {
        Held::Nothing => "nothing".to_owned(),
        Held::UpTo(estimate) => size_text(estimate.estimate),
        Held::Everything(_) => "everything that was tried".to_owned(),
    }
}

/// There are marks of flash behind the addresses: without them, flat latency proves nothing.
fn flash_seen(findings: &Findings) -> bool {
    findings.collisions == Some(true)
}

fn drifted(findings: &Findings) -> Option<String> {
    let drift = findings.drift?;
    let moved = !(0.8..=1.25).contains(&drift);
    moved.then(|| {
        format!("the drive's own latency changed by a factor of {drift:.2} while it was probed")
    })
}

fn map(findings: &mut Findings, about: &Description) -> Verdict {
    if let Some(reason) = drifted(findings) {
        return Verdict::undecided(reason);
    }
    let whole = about.capacity_bytes as f64 * MAP_SHARE;
    let flash = flash_seen(findings);
    let flat = |arm: &MapArm| arm.levels.is_none();
    match arms(&findings.map, about) {
        Arms::Missing => Verdict::undecided(INTERRUPTED),
        Arms::Both(on, off) => {
            let (on, off) = (*on, *off);
            map_switched(findings, about, &on, &off)
        }
        Arms::DriveOnly(arm) if flat(arm) && flash => Verdict::new(
            Tier::Device,
            0.95,
            format!(
                "reads all over the drive take {:.1} us, no longer than reads near each other, and \
                 the drive asks for no host memory",
                arm.near_ns / 1e3
            ),
        )
        .size(Some(Estimate::new(whole, whole, whole * 1.5))),
        Arms::DriveOnly(arm) | Arms::Unswitched(arm) if flat(arm) => Verdict::undecided(if flash {
            UNSWITCHED.to_owned()
        } else {
            "all reads take the same time, and nothing shows that there is flash behind them"
                .to_owned()
        }),
        Arms::DriveOnly(arm) => map_on_drive(arm, whole),
        Arms::Unswitched(arm) => Verdict::undecided(format!(
            "reads are fast over {}; {UNSWITCHED}",
            held_text(&arm.reach_bytes)
        )),
    }
}

fn unit_of(arm: &MapArm) -> Option<Estimate> {
    match (arm.units, arm.reach_bytes) {
        (Held::UpTo(units), Held::UpTo(reach)) if units.estimate >= 2.0 => Some(Estimate::new(
            reach.estimate / units.estimate,
            reach.low / units.high,
            reach.high / units.low,
        )),
        _ => None,
    }
}

fn map_on_drive(arm: &MapArm, whole: f64) -> Verdict {
    let seen = |what: &str| {
        let slow = arm.levels.map_or(0.0, |levels| levels.slow_ns);
        format!(
            "reads take {:.1} us while the map is at hand and {:.1} us when it is not; {what}",
            arm.near_ns / 1e3,
            slow / 1e3
        )
    };
    match arm.reach_bytes {
        Held::Nothing => Verdict::new(Tier::None, 0.9, seen("no two places stay at hand")),
        Held::Everything(_) => Verdict::new(
            Tier::Device,
            0.95,
            seen("after one round, all places are at hand"),
        )
        .size(Some(Estimate::new(whole, whole, whole * 1.5))),
        Held::UpTo(reach) => {
            let text = format!(
                "{} are at hand, whatever host memory there is; the size takes 4 B per 4 KiB",
                size_text(reach.estimate)
            );
            let mut verdict = Verdict::new(Tier::Device, 0.97, seen(&text));
            verdict.size_bytes = Some(reach.scaled(MAP_SHARE));
            verdict.unit_bytes = unit_of(arm);
            verdict
        }
    }
}

fn map_switched(
    findings: &mut Findings,
    about: &Description,
    on: &MapArm,
    off: &MapArm,
) -> Verdict {
    let whole = about.capacity_bytes as f64 * MAP_SHARE;
    let (with, without) = (on.reach_bytes.amount(), off.reach_bytes.amount());
    if on.levels.is_none() && off.levels.is_none() {
        return if flash_seen(findings) {
            let text = "reads all over the drive are as fast as reads near each other, host memory \
                        on or off";
            Verdict::new(Tier::Device, 0.9, text).size(Some(Estimate::new(
                whole,
                whole,
                whole * 1.5,
            )))
        } else {
            Verdict::undecided(
                "all reads take the same time, and nothing shows that there is flash",
            )
        };
    }
    let both = format!(
        "reads stay fast over {} with host memory on and over {} with it off",
        held_text(&on.reach_bytes),
        held_text(&off.reach_bytes)
    );
    if with == 0.0 && without == 0.0 {
        return Verdict::new(Tier::None, 0.9, both);
    }
    if with == without || (with < SAME * without && without < SAME * with) {
        let mut verdict = map_on_drive(off, whole);
        verdict.evidence = format!("{both}: no difference");
        return verdict;
    }
    if with < without {
        return Verdict::undecided(format!(
            "{both}: less with it than without is not understood"
        ));
    }
    let mut verdict = Verdict::new(
        Tier::Hmb,
        if with > 2.0 * without { 0.99 } else { 0.9 },
        both,
    );
    hmb_size(findings, about, on, off, &mut verdict);
    verdict
}

/// What the map takes of host memory, and how.
fn hmb_size(
    findings: &mut Findings,
    about: &Description,
    on: &MapArm,
    off: &MapArm,
    verdict: &mut Verdict,
) {
    let granted = about.hmb.granted_bytes().unwrap_or(0) as f64;
    let whole = about.capacity_bytes as f64 * MAP_SHARE;
    let Held::UpTo(reach) = on.reach_bytes else {
        verdict.size_bytes = Some(Estimate::new(whole, whole.min(granted), granted.max(whole)));
        return;
    };
    findings.quantity("map_reach_on", "bytes", reach);
    // The unit of host memory's own cache shows only where that one counts more units.
    if on.units.amount() > SAME * off.units.amount() {
        verdict.unit_bytes = unit_of(on);
    }
    let Some((entry, text)) = bytes_per_entry(findings, granted) else {
        verdict.evidence += "; what an entry takes there cannot be told";
        return;
    };
    if let Some(value) = entry {
        findings.quantity("map_bytes_per_entry", "bytes", value);
    }
    let entry_width = entry.map_or(0.0, |value| value.high / value.estimate - 1.0);
    let entry = entry.map_or(4.0, |value| value.estimate);
    let size = reach.scaled(entry / 4096.0);
    if granted > 1.15 * size.high {
        let used = format!(
            "; of {} given, {} are used",
            size_text(granted),
            size_text(size.estimate)
        );
        verdict.evidence += &used;
    }
    verdict.evidence += &format!("; {text}");
    verdict.size_bytes = Some(Estimate::new(
        size.estimate.min(granted.max(1.0)),
        (size.low * (1.0 - entry_width)).min(0.97 * granted),
        size.high * (1.0 + entry_width),
    ));
}

/// What an entry takes of host memory, from the reach of several amounts of it; `Some(None)` where
/// only one could be given, `None` where they contradict each other.
fn bytes_per_entry(findings: &mut Findings, granted: f64) -> Option<(Option<Estimate>, String)> {
    let reach = |held: &Held| match held {
        Held::UpTo(reach) => Some(reach.estimate / 4096.0),
        _ => None,
    };
    let grants = findings.reach_of_grant.iter();
    let mut points: Vec<(f64, f64)> = grants
        .filter_map(|(bytes, held)| Some((*bytes as f64, reach(held)?)))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    if points.len() < 2 {
        return Some((None, "taking 4 B an entry".to_owned()));
    }
    let power = |bytes: f64| (bytes as u64).is_power_of_two();
    // Amounts between powers of two that reach no farther than the power below them: rounded down.
    let rounded = points
        .iter()
        .filter(|(bytes, _)| !power(*bytes))
        .any(|(bytes, reach)| {
            let below = points
                .iter()
                .rfind(|(other, _)| power(*other) && other < bytes);
            below.is_some_and(|(other, least)| *bytes > 1.1 * other && *reach < 1.03 * least)
        });
    findings.rounds_down = rounded;
    if rounded {
        points.retain(|(bytes, _)| power(*bytes));
    }
    let per_byte = crate::stats::slope(&points);
    let tried = findings.reach_of_grant.len();
    let widest = points.last()?.0 / points.first()?.0;
    if points.len() < 2 || per_byte <= 0.0 || widest < 1.2 {
        return None;
    }
    let entry = 1.0 / per_byte;
    if !(2.0..=64.0).contains(&entry) {
        return None;
    }
    let width = 0.015 * widest / (widest - 1.0) + 0.01;
    let value = Estimate::new(entry, entry * (1.0 - width), entry * (1.0 + width));
    let how = if rounded { "powers of two of " } else { "" };
    let kept = points.last()?.0 - points.last()?.1 * entry;
    let mut text = format!("{entry:.2} B an entry, by {tried} amounts of {how}host memory");
    if kept > 0.05 * granted {
        text += &format!("; {} of it serve something else", size_text(kept));
    }
    Some((Some(value), text))
}

fn read_cache(findings: &Findings, about: &Description) -> Verdict {
    if let Some(reason) = drifted(findings) {
        return Verdict::undecided(reason);
    }
    let flash = flash_seen(findings);
    let alone = |arm: &ReadCacheArm, device: Tier| match arm.bytes {
        Held::Nothing if flash => Verdict::new(
            Tier::None,
            0.95,
            "a read again takes as long as the first time",
        ),
        Held::Nothing => Verdict::undecided(
            "a read again takes as long as the first time, but nothing shows that the first comes \
             from flash",
        ),
        Held::Everything(_) => Verdict::undecided(
            "everything that was tried is read again fast: memory, or never written",
        ),
        Held::UpTo(size) => {
            let text = format!("up to {} are read again fast", size_text(size.estimate));
            Verdict::new(device, 0.97, text).size(Some(size))
        }
    };
    match arms(&findings.read_cache, about) {
        Arms::Missing => Verdict::undecided(INTERRUPTED),
        Arms::DriveOnly(arm) => alone(arm, Tier::Device),
        Arms::Unswitched(arm) => {
            let mut verdict = alone(arm, Tier::Undecided);
            if verdict.tier == Tier::Undecided && matches!(arm.bytes, Held::UpTo(_)) {
                verdict.evidence += &format!("; {UNSWITCHED}");
                verdict.confidence = 0.0;
            }
            verdict
        }
        Arms::Both(on, off) => {
            let (with, without) = (on.bytes.amount(), off.bytes.amount());
            let both = format!(
                "read again fast: {} with host memory on, {} with it off",
                held_text(&on.bytes),
                held_text(&off.bytes)
            );
            let same = with == without || (with < SAME * without && without < SAME * with);
            let mut verdict = if same {
                alone(on, Tier::Device)
            } else if with > without && with.is_finite() {
                alone(on, Tier::Hmb)
            } else {
                Verdict::undecided("")
            };
            verdict.evidence = format!("{both}; {}", verdict.evidence)
                .trim_end_matches("; ")
                .to_owned();
            verdict
        }
    }
}

/// Whether writes are acknowledged before they are in flash.
fn is_buffered(arm: &WriteBufferArm, read_ns: f64) -> bool {
    let flush_works = arm.flush_dirty_ns > arm.flush_clean_ns + 20_000.0
        && arm.flush_dirty_ns > 1.5 * arm.flush_clean_ns;
    // Faster than flash can even be read: programming is slower than that.
    flush_works || arm.write_ns < 0.7 * read_ns
}

fn write_buffer(findings: &Findings, about: &Description) -> Verdict {
    let read_ns = findings.map.values().map(|arm| arm.near_ns);
    let read_ns = read_ns.fold(f64::INFINITY, f64::min);
    let read_ns = if read_ns.is_finite() { read_ns } else { 0.0 };
    let evidence = |arm: &WriteBufferArm| {
        format!(
            "a write takes {:.1} us, a flush after it {:.1} us and one with nothing to do {:.1} us",
            arm.write_ns / 1e3,
            arm.flush_dirty_ns / 1e3,
            arm.flush_clean_ns / 1e3
        )
    };
    let size = |arm: &WriteBufferArm| match arm.bytes {
        Some(size) => format!(
            "; {} are acknowledged ahead of flash",
            size_text(size.estimate)
        ),
        None => "; flash keeps up with the link, so the size does not show".to_owned(),
    };
    let alone = |arm: &WriteBufferArm| {
        if is_buffered(arm, read_ns) {
            let text = evidence(arm) + &size(arm);
            return Verdict::new(Tier::Device, 0.95, text).size(arm.bytes);
        }
        match findings.cliff_bytes {
            Some(cliff) => Verdict::new(
                Tier::Slc,
                0.85,
                format!(
                    "{}: writes wait for flash, which is fast for the first {}",
                    evidence(arm),
                    size_text(cliff.estimate)
                ),
            ),
            None => Verdict::new(Tier::None, 0.85, evidence(arm) + ": writes wait for flash"),
        }
    };
    match arms(&findings.write_buffer, about) {
        Arms::Missing => Verdict::undecided(INTERRUPTED),
        Arms::DriveOnly(arm) => alone(arm),
        Arms::Unswitched(arm) if is_buffered(arm, read_ns) => {
            let mut verdict = alone(arm);
            verdict.tier = Tier::Undecided;
            verdict.confidence = 0.0;
            verdict.evidence += &format!("; {UNSWITCHED}");
            verdict
        }
        Arms::Unswitched(arm) => alone(arm),
        Arms::Both(on, off) => write_buffer_switched(
            on,
            off,
            &findings.write_curve_again,
            read_ns,
            &evidence,
            &alone,
        ),
    }
}

fn write_buffer_switched(
    on: &WriteBufferArm,
    off: &WriteBufferArm,
    again: &[f64],
    read_ns: f64,
    evidence: &dyn Fn(&WriteBufferArm) -> String,
    alone: &dyn Fn(&WriteBufferArm) -> Verdict,
) -> Verdict {
    let both = |text: &str| {
        format!(
            "{text}; with host memory on {}; off {}",
            evidence(on),
            evidence(off)
        )
    };
    match (is_buffered(on, read_ns), is_buffered(off, read_ns)) {
        (true, false) => {
            let text = both("writes wait for flash only without host memory");
            return Verdict::new(Tier::Hmb, 0.95, text).size(on.bytes);
        }
        (false, false) => return alone(on),
        (false, true) => {
            return Verdict::undecided(both("buffered only without host memory: not understood"));
        }
        (true, true) => {}
    }
    let apart = |a: &[f64], b: &[f64]| {
        let ratios = a.iter().zip(b).map(|(a, b)| (a / b).ln().abs());
        ratios.fold(0.0, f64::max).exp()
    };
    let (first, second) = (apart(&on.curve, &off.curve), apart(again, &off.curve));
    let unsteady = apart(&on.curve, again);
    if first.min(second) < 1.1 || on.curve.is_empty() {
        return alike(
            on,
            off,
            both("bursts of writes run alike, host memory on or off"),
        );
    }
    match (on.bytes, off.bytes) {
        (Some(with), Some(without)) if with.overlaps(&without) => alike(
            on,
            off,
            both("as much is acknowledged ahead of flash with host memory on as with it off"),
        ),
        _ if unsteady > 1.1 => Verdict::undecided(both(
            "bursts of writes differ even with host memory on twice",
        )),
        (Some(with), without) if with.estimate > 1.3 * without.map_or(0.0, |w| w.estimate) => {
            let without = without.map_or("an amount that does not show".to_owned(), |without| {
                size_text(without.estimate)
            });
            let text = format!(
                "{} are acknowledged ahead of flash with host memory on, {without} with it off",
                size_text(with.estimate),
            );
            Verdict::new(Tier::Hmb, 0.97, text).size(Some(with))
        }
        (None, _) => {
            let text = format!(
                "bursts of writes take another course with host memory on, twice, than with it off \
                 (by a factor of {first:.2}); the size does not show"
            );
            Verdict::new(Tier::Hmb, 0.85, text)
        }
        _ => Verdict::undecided(both(
            "bursts of writes differ in a way that is not understood",
        )),
    }
}

/// A buffer that host memory makes no difference to.
fn alike(on: &WriteBufferArm, off: &WriteBufferArm, evidence: String) -> Verdict {
    let size = match (on.bytes, off.bytes) {
        (Some(a), Some(b)) if a.overlaps(&b) => Some(Estimate::new(
            f64::midpoint(a.estimate, b.estimate),
            a.low.min(b.low),
            a.high.max(b.high),
        )),
        (Some(size), None) | (None, Some(size)) => Some(size),
        _ => None,
    };
    let text = size.map_or(
        "flash keeps up with the link, so the size does not show".to_owned(),
        |size| {
            format!(
                "{} are acknowledged ahead of flash",
                size_text(size.estimate)
            )
        },
    );
    Verdict::new(Tier::Device, 0.95, format!("{text}; {evidence}")).size(size)
}
