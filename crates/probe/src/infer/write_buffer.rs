//! Where writes wait for flash, if they do.

use super::{Arms, INTERRUPTED, Rule, Tier, UNSWITCHED, Verdict, arms, size_text};
use crate::findings::{Findings, WriteBufferArm};
use crate::stats::Estimate;
use crate::target::Description;

/// Whether writes are acknowledged before they are in flash.
fn is_buffered(arm: &WriteBufferArm, read_ns: f64) -> bool {
    let flush_works = arm.flush_dirty_ns > arm.flush_clean_ns + 20_000.0
        && arm.flush_dirty_ns > 1.5 * arm.flush_clean_ns;
    // Faster than flash can even be read: programming is slower than that.
    flush_works || arm.write_ns < 0.7 * read_ns
}

pub(super) fn verdict(findings: &Findings, about: &Description) -> Verdict {
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
            return Verdict::new(Tier::Device, Rule::Ahead, text).size(arm.bytes);
        }
        match findings.cliff_bytes {
            Some(cliff) => Verdict::new(
                Tier::Slc,
                Rule::WaitsForFast,
                format!(
                    "{}: writes wait for flash, which is fast for the first {}",
                    evidence(arm),
                    size_text(cliff.estimate)
                ),
            ),
            None => Verdict::new(
                Tier::None,
                Rule::Waits,
                evidence(arm) + ": writes wait for flash",
            ),
        }
    };
    match arms(&findings.write_buffer, about) {
        Arms::Missing => Verdict::undecided(INTERRUPTED),
        Arms::DriveOnly(arm) => alone(arm),
        Arms::Unswitched(arm) if is_buffered(arm, read_ns) => alone(arm).withdrawn(UNSWITCHED),
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
            return Verdict::new(Tier::Hmb, Rule::AheadOnlyWithHost, text).size(on.bytes);
        }
        (false, false) => return alone(on),
        (false, true) => {
            return Verdict::unclear(both("buffered only without host memory: not understood"));
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
        _ if unsteady > 1.1 => Verdict::unclear(both(
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
            Verdict::new(Tier::Hmb, Rule::MoreAheadWithHost, text).size(Some(with))
        }
        (None, _) => {
            let text = format!(
                "bursts of writes take another course with host memory on, twice, than with it off \
                 (by a factor of {first:.2}); the size does not show"
            );
            Verdict::new(Tier::Hmb, Rule::OtherWithHost, text)
        }
        _ => Verdict::unclear(both(
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
    let rule = if size.is_some() {
        Rule::AheadAlike
    } else {
        Rule::AlikeWithoutSize
    };
    Verdict::new(Tier::Device, rule, format!("{text}; {evidence}")).size(size)
}
