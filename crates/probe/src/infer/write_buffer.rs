//! Where writes wait for flash, if they do.

use super::rule::size_width;
use super::{
    Arms, INTERRUPTED, Role, Rule, Tier, UNSWITCHED, Verdict, arms, flash_seen, most, size_text,
};
use crate::findings::{Findings, WriteBufferArm};
use crate::stats::Estimate;
use crate::target::Description;
use statrs::distribution::{ContinuousCDF, Normal};

/// Flash in single-bit mode programs a page in 100 us to 400 us, with more bits a cell in 600 us and
/// more (Grupp et al., MICRO 2009, for two bits; one-shot programs of three take above 1 ms).
const SINGLE_BIT_NS_MAX: f64 = 500_000.0;
/// Less than the least of these: no flash was waited for.
const SINGLE_BIT_NS_MIN: f64 = 100_000.0;
/// Reads of new data faster than those of old by this factor come from faster flash.
const FASTER: f64 = 0.92;
/// A ratio of single writes beyond this, up or down, means that host memory is in their way: data that
/// crosses the link once more takes longer by a third and more.
const THROUGH: f64 = 1.1;
/// Within this, they take no notice of it. Updates of the map in host memory cost a few per cent.
const PAST: f64 = 1.07;

pub(super) fn verdict(findings: &Findings, about: &Description) -> Verdict {
    match arms(&findings.write_buffer, about) {
        Arms::Missing => Verdict::undecided(INTERRUPTED),
        Arms::DriveOnly(arm) => alone(findings, arm),
        Arms::Unswitched(arm) if arm.is_buffered() => alone(findings, arm).withdrawn(UNSWITCHED),
        Arms::Unswitched(arm) => alone(findings, arm),
        Arms::Both(on, off) => switched(findings, on, off),
    }
}

fn times(arm: &WriteBufferArm) -> String {
    format!(
        "a write takes {:.1} us, a flush after it {:.1} us and one with nothing to do {:.1} us",
        arm.write_ns / 1e3,
        arm.flush_dirty_ns / 1e3,
        arm.flush_clean_ns / 1e3
    )
}

fn ahead(size: Option<Estimate>) -> String {
    match size {
        None => "the size does not show: neither single writes nor bursts left much ahead of flash, or by far \
                 not the same each time"
            .to_owned(),
        Some(size) => {
            let more = if size.high.is_finite() { "" } else { "more than " };
            let text = size_text(size.estimate);
            format!("{more}{text} are acknowledged ahead of flash")
        }
    }
}

/// How far single looks bear out that writes are buffered, or that they are not.
fn buffered(arm: &WriteBufferArm) -> f64 {
    let share = arm.buffered_share();
    let share = if arm.is_buffered() {
        share
    } else {
        1.0 - share
    };
    most(share, arm.looks.writes.len() as f64)
}

/// Share of values that satisfy it.
fn share(values: &[f64], it: impl Fn(f64) -> bool) -> f64 {
    values.iter().filter(|value| it(**value)).count() as f64 / values.len().max(1) as f64
}

/// How sure it is that a ratio lies above a bound, its interval taken for that of a normal distribution.
fn above(ratio: &Estimate, bound: f64) -> f64 {
    let half = (ratio.estimate - ratio.low).max(1e-6);
    let spread = half / crate::stats::z();
    Normal::standard().cdf((ratio.estimate - bound) / spread)
}

/// The same below.
fn below(ratio: &Estimate, bound: f64) -> f64 {
    let mirrored = Estimate::new(-ratio.estimate, -ratio.high, -ratio.low);
    above(&mirrored, -bound)
}

/// What there is without host memory.
fn alone(findings: &Findings, arm: &WriteBufferArm) -> Verdict {
    if arm.is_buffered() {
        let text = format!("{}; {}", times(arm), ahead(arm.bytes));
        return Verdict::new(Tier::Device, Rule::Ahead, text)
            .size(arm.bytes)
            .borne_out(buffered(arm));
    }
    waits_for_flash(findings, arm)
}

/// Writes are acknowledged by flash: of which kind?
fn waits_for_flash(findings: &Findings, arm: &WriteBufferArm) -> Verdict {
    let text = format!("{}: writes wait for flash", times(arm));
    if !flash_seen(findings) && arm.write_ns < 1.5 * arm.old_read_ns {
        return Verdict::undecided(format!(
            "{}, no longer than a read, and nothing shows that there is flash",
            times(arm)
        ));
    }
    if arm.write_ns < SINGLE_BIT_NS_MIN {
        return Verdict::undecided(format!(
            "{}: nothing is left to do for a flush, yet no flash programs as fast",
            times(arm)
        ));
    }
    let reads = format!(
        "reads of what was just written take {:.1} us, of what was there before {:.1} us",
        arm.fresh_read_ns / 1e3,
        arm.old_read_ns / 1e3
    );
    let cliff = findings.cliff_bytes.map_or(String::new(), |cliff| {
        format!(
            "; the rate of writes falls after {}",
            size_text(cliff.estimate)
        )
    });
    let fast = arm.write_ns < SINGLE_BIT_NS_MAX;
    let looks = &arm.looks;
    let count = |values: &[f64]| values.len() as f64;
    let as_fast = share(&looks.writes, |ns| (ns < SINGLE_BIT_NS_MAX) == fast);
    let fit = buffered(arm).min(most(as_fast, count(&looks.writes)));
    let new = share(&looks.fresh, |ns| ns < FASTER * arm.old_read_ns);
    let fit_to_read = fit.min(most(new, count(&looks.fresh)));
    match (fast, arm.fresh_read_ns < FASTER * arm.old_read_ns) {
        (true, true) => Verdict::new(
            Tier::Slc,
            Rule::WaitsForFastToRead,
            format!("{text}, which is faster than flash with several bits a cell; {reads}{cliff}"),
        )
        .borne_out(fit_to_read),
        (true, false) if findings.cliff_bytes.is_some() => Verdict::new(
            Tier::Slc,
            Rule::WaitsForFast,
            format!("{text}, which is faster than flash with several bits a cell{cliff}"),
        )
        .borne_out(fit),
        (true, false) => Verdict::undecided(format!(
            "{text}, which is faster than flash with several bits a cell, yet {reads}: all of the flash may \
             have one bit a cell, or what is new be read no faster"
        )),
        (false, true) => Verdict::unclear(format!(
            "{text}, as slow as with several bits a cell, yet {reads}"
        )),
        (false, false) => {
            Verdict::new(Tier::None, Rule::Waits, format!("{text}; {reads}")).borne_out(fit)
        }
    }
}

/// Whether the data of writes goes through host memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Path {
    Through,
    Past,
    Unclear,
}

/// How far the ratios bear that out.
fn path_fit(findings: &Findings, path: Path) -> f64 {
    let mut ratios = findings.write_path.values();
    match path {
        Path::Through => ratios.next_back().map_or(1.0, |ratio| {
            above(ratio, THROUGH).max(below(ratio, 1.0 / THROUGH))
        }),
        Path::Past => ratios
            .map(|ratio| below(ratio, THROUGH).min(above(ratio, 1.0 / THROUGH)))
            .fold(1.0, f64::min),
        Path::Unclear => 1.0,
    }
}

fn path(findings: &Findings) -> Path {
    let beyond = |ratio: &Estimate| ratio.low > THROUGH || ratio.high < 1.0 / THROUGH;
    let within = |ratio: &Estimate| ratio.high < PAST && ratio.low > 1.0 / PAST;
    // A single page is short beside what else a command takes: larger writes must agree.
    match findings.write_path.last_key_value() {
        Some((_, ratio)) if beyond(ratio) => Path::Through,
        Some(_) if findings.write_path.values().all(within) => Path::Past,
        _ => Path::Unclear,
    }
}

/// The size, where it is the same with host memory on and off.
fn overlap(on: &WriteBufferArm, off: &WriteBufferArm) -> Option<Estimate> {
    // As wide as intervals of one run must be to cover.
    let width = size_width(Role::WriteBuffer);
    match (on.bytes, off.bytes) {
        (Some(with), Some(without)) if with.wider(width).overlaps(&without.wider(width)) => {
            Some(Estimate::new(
                f64::midpoint(with.estimate, without.estimate),
                with.low.min(without.low),
                with.high.max(without.high),
            ))
        }
        _ => None,
    }
}

/// What is acknowledged ahead of flash: the size, or one of each state.
fn held_by(on: &WriteBufferArm, off: &WriteBufferArm, size: Option<Estimate>) -> String {
    match (on.bytes, off.bytes) {
        (Some(with), Some(without)) if size.is_none() => format!(
            "{} are acknowledged ahead of flash with host memory on, {} with it off",
            size_text(with.estimate),
            size_text(without.estimate)
        ),
        _ => ahead(size),
    }
}

fn switched(findings: &Findings, on: &WriteBufferArm, off: &WriteBufferArm) -> Verdict {
    let both = |text: &str| {
        format!(
            "{text}; with host memory on {}; off {}",
            times(on),
            times(off)
        )
    };
    match (on.is_buffered(), off.is_buffered()) {
        (true, false) => {
            let text = both("writes wait for flash only without host memory");
            return Verdict::new(Tier::Hmb, Rule::AheadOnlyWithHost, text)
                .size(on.bytes)
                .borne_out(buffered(on).min(buffered(off)));
        }
        (false, false) => return waits_for_flash(findings, on),
        (false, true) => {
            return Verdict::unclear(both("buffered only without host memory: not understood"));
        }
        (true, true) => {}
    }
    let ratio = findings.write_path.last_key_value();
    let ratio = ratio.map_or(String::new(), |(bytes, ratio)| {
        format!(
            "a write of {} takes {:.2} times as long with host memory on as with it off ({:.2} to {:.2})",
            size_text(*bytes as f64),
            ratio.estimate,
            ratio.low,
            ratio.high
        )
    });
    let overlap = overlap(on, off);
    let grows = on.bytes.is_some_and(|with| {
        off.bytes
            .is_some_and(|without| with.estimate > 1.3 * without.estimate)
    });
    let path = path(findings);
    let verdict = match path {
        Path::Through => {
            let text = format!(
                "{}; {}; {ratio}",
                ahead(on.bytes),
                both("its data is there")
            );
            Verdict::new(Tier::Hmb, Rule::ThroughHost, text).size(on.bytes)
        }
        Path::Past if grows => Verdict::unclear(format!(
            "more is acknowledged ahead of flash with host memory on than with it off, yet {ratio}"
        )),
        Path::Past => {
            // One of the two may not show: what there is, host memory has no part in.
            let size = overlap.or(on.bytes.xor(off.bytes));
            let held = held_by(on, off, size);
            let text = format!("{held}; {}", both(&ratio));
            Verdict::new(Tier::Device, Rule::PastHost, text).size(size)
        }
        Path::Unclear if grows => {
            let text = format!("{}; {}", ahead(on.bytes), both("less is without it"));
            Verdict::new(Tier::Hmb, Rule::MoreAheadWithHost, text).size(on.bytes)
        }
        Path::Unclear if overlap.is_some() => {
            let text = format!("{}; {}", ahead(overlap), both("as much is without it"));
            Verdict::new(Tier::Device, Rule::AheadAlike, text).size(overlap)
        }
        Path::Unclear => Verdict::unclear(both(&format!("the size does not show, and {ratio}"))),
    };
    let fit = buffered(on).min(buffered(off));
    verdict.borne_out(fit.min(path_fit(findings, path)))
}
