//! Where writes wait for flash, if they do.

pub(crate) mod path;

use super::{Arms, INTERRUPTED, Tier, Verdict, arms, flash_seen, most, size_text};
use crate::findings::Findings;
use crate::report::Figure;
use crate::role::{self, About};
use crate::stats::{self, Estimate};
use crate::target::Description;
use path::{Path, WritePath, path, path_fit};
use std::collections::BTreeMap;

/// What the prober knows of it.
pub(crate) const ABOUT: About = About {
    name: "write_buffer",
    title: "write buffer",
    subject: "data to be written",
    experiments: &["flush", "write-buffer"],
    is_read_only: false,
    rules: rules::ALL,
    // With this, 91 of 95. Some find single-bit flash used up, and no width covers them.
    size_width: 2.65,
    verdict: |findings, about| verdict(findings, about),
    figures: &[
        Figure {
            dots: true,
            expects: "Points on one level speak for a size; points that rise with what was acknowledged, against it.",
            ..Figure::of(
                "bytes ahead",
                "Bytes ahead of flash",
                "What was acknowledged and had not arrived in flash, by how much was acknowledged: the size of \
             the write buffer.",
            )
        },
        Figure {
            expects: "A bend speaks for a buffer that was full from there on; without one no size can be told.",
            ..Figure::of(
                "write burst",
                "A long burst of writes",
                "Bytes acknowledged by time: first at the rate of the link, then at that of flash.",
            )
        },
        Figure {
            expects: "A jump speaks for a buffer that holds no more than the write before it.",
            ..Figure::of(
                "single writes",
                "Single writes of growing size",
                "Each to a drive at rest. Where they jump, they no longer fit the write buffer.",
            )
        },
        Figure {
            apart: true,
            marks: &["write_knee_bytes"],
            expects: "A knee elsewhere than at the size speaks against it.",
            ..Figure::of(
                "write request",
                "Request size against latency: writes",
                "One request written to a rested drive. Where it jumps, it no longer fits the write buffer.",
            )
        },
    ],
};

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The write buffer, by state of host memory (`on`, `off`, `as found`).
    pub arms: BTreeMap<&'static str, WriteBufferArm>,
    /// Single writes with host memory on and off, by their bytes.
    pub write_path: BTreeMap<u64, WritePath>,
}

impl role::Finds for Found {
    fn is_seen(&self) -> bool {
        !self.arms.is_empty()
    }
}

/// The write buffer in one state of host memory.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteBufferArm {
    /// Median write of a page to a drive at rest, ns.
    pub write_ns: f64,
    /// Median flush after one page was written, ns.
    pub flush_dirty_ns: f64,
    /// Median flush with nothing to do, ns.
    pub flush_clean_ns: f64,
    /// Median read of a page as it was found, ns.
    pub old_read_ns: f64,
    /// Median read of a page just written and flushed, ns.
    pub fresh_read_ns: f64,
    /// Bytes held, if the buffer could be filled faster than it empties.
    pub bytes: Option<Estimate>,
    /// Rate before the buffer is full, bytes/s.
    pub fill_rate: f64,
    /// Rate once it is, bytes/s.
    pub drain_rate: f64,
    /// Single looks that the medians are of.
    pub looks: WriteLooks,
}

/// Latencies, ns: what tells how far this drive bears a verdict on its write buffer out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteLooks {
    /// Writes of a page to a drive at rest.
    pub writes: Vec<f64>,
    /// Flushes after each of them.
    pub dirty: Vec<f64>,
    /// Flushes right after those, with nothing to do.
    pub clean: Vec<f64>,
    /// Reads of pages as they were found.
    pub old: Vec<f64>,
    /// Reads of the same once they were written and flushed.
    pub fresh: Vec<f64>,
}

/// Spread of the logarithm of alike commands from which on no size is told by how long single ones take. Fitted: a quiet
/// machine has 0.03, sizes were right with 0.6 and 0.9, and some false with 1.2 and more (8 KiB for 16 MiB, 99.6 % sure).
const NOISE_MAX: f64 = 0.8;

impl WriteLooks {
    /// Spread of the logarithm of commands of one kind, of the kind that differs least: what differs for reasons of the
    /// drive's own does not in all of them.
    fn noise(&self) -> f64 {
        let spread = |all: &Vec<f64>| {
            let logarithms: Vec<f64> = all.iter().map(|ns| ns.max(1.0).ln()).collect();
            stats::spread(&logarithms)
        };
        let kinds = [&self.writes, &self.clean, &self.old];
        let least = kinds.into_iter().map(spread).fold(f64::INFINITY, f64::min);
        least.min(f64::MAX)
    }
}

/// Of some flushes, so many find a drive that collects no garbage.
const FREE: f64 = 0.1;
/// Share of what a flush waits for that a write which waits for flash takes longer at least.
const WAITS: f64 = 0.4;
const WAITS_MIN_NS: f64 = 30_000.0;
/// A flush that waits for less than this share of what the write before it did waits for none of that write: what a
/// write leaves to a flush takes as long as a program operation, and a write that leaves nothing has waited for that itself.
const LEFT_TO_FLUSH: f64 = 0.25;
/// Of the fastest program operation at least this share is left when the flush comes: it follows the write at once.
const PROGRAM_LEFT: f64 = 0.5;

impl WriteBufferArm {
    /// Whether writes are acknowledged before they are in flash.
    #[must_use]
    pub fn is_buffered(&self) -> bool {
        self.flush_works(self.flush_dirty_ns, self.flush_clean_ns) || self.is_fast(self.write_ns)
    }

    fn flush_works(&self, dirty_ns: f64, clean_ns: f64) -> bool {
        let (waits_ns, write_ns) = (dirty_ns - clean_ns, self.write_ns - self.flush_clean_ns);
        waits_ns > 20_000.0 && dirty_ns > 1.5 * clean_ns && waits_ns > LEFT_TO_FLUSH * write_ns
    }

    /// Whether a flush waits until data is in flash. Where memory that survives a power cut keeps what is written, it waits for a
    /// copy to there at most, and its end says nothing of flash.
    #[must_use]
    pub fn flush_reaches_flash(&self) -> bool {
        self.flush_dirty_ns - self.flush_clean_ns > PROGRAM_LEFT * SINGLE_BIT_NS_MIN
    }

    /// Faster than flash can even be read: programming is slower than that. Not where there was time to program, for worn flash
    /// is read slower than flash in single-bit mode programs.
    fn is_fast(&self, write_ns: f64) -> bool {
        let had_time = write_ns - self.flush_clean_ns > SINGLE_BIT_NS_MIN;
        write_ns < 0.7 * self.old_read_ns && !had_time
    }

    /// What a flush waits for where the drive has nothing to do for itself, ns.
    pub(crate) fn program_ns(&self) -> f64 {
        stats::quantile(&self.looks.dirty, FREE) - self.flush_clean_ns
    }

    /// What a write that waits for flash takes longer at least, ns.
    pub(crate) fn waits_ns(&self) -> f64 {
        (WAITS * self.program_ns()).max(WAITS_MIN_NS)
    }

    /// Share of single looks that say by themselves that writes are acknowledged before they are in flash.
    #[must_use]
    pub fn buffered_share(&self) -> f64 {
        let pairs = self.looks.dirty.iter().zip(&self.looks.clean);
        let flushes = pairs.filter(|(dirty, clean)| self.flush_works(**dirty, **clean));
        let writes = self.looks.writes.iter().filter(|ns| self.is_fast(**ns));
        let of = |count: usize, all: &[f64]| count as f64 / all.len().max(1) as f64;
        of(flushes.count(), &self.looks.dirty).max(of(writes.count(), &self.looks.writes))
    }
}

/// The rules by which it is told where it lives.
pub mod rules {
    use crate::infer::rule::Rule;

    /// Writes are acknowledged ahead of flash, and there is no host memory.
    pub const AHEAD: Rule = Rule::counted("Ahead", 141, 141);
    /// Writes wait for flash that programs fast.
    pub const WAITS_FOR_FAST: Rule = Rule::counted("WaitsForFast", 0, 0);
    /// The same, and what was just written is read faster than what was there before.
    pub const WAITS_FOR_FAST_TO_READ: Rule = Rule::counted("WaitsForFastToRead", 77, 77);
    /// Writes wait for flash.
    pub const WAITS: Rule = Rule::counted("Waits", 34, 34);
    /// Writes wait for flash only without host memory.
    pub const AHEAD_ONLY_WITH_HOST: Rule = Rule::counted("AheadOnlyWithHost", 0, 0);
    /// More is acknowledged ahead of flash with host memory.
    pub const MORE_AHEAD_WITH_HOST: Rule = Rule::counted("MoreAheadWithHost", 1, 1);
    /// Single writes take another time with host memory, whatever the size.
    pub const THROUGH_HOST: Rule = Rule::counted("ThroughHost", 91, 91);
    /// As much ahead of flash with host memory as without.
    pub const AHEAD_ALIKE: Rule = Rule::counted("AheadAlike", 0, 0);
    /// Single writes take no notice of host memory.
    pub const PAST_HOST: Rule = Rule::counted("PastHost", 184, 184);

    pub(super) const ALL: &[Rule] = &[
        AHEAD,
        WAITS_FOR_FAST,
        WAITS_FOR_FAST_TO_READ,
        WAITS,
        AHEAD_ONLY_WITH_HOST,
        MORE_AHEAD_WITH_HOST,
        THROUGH_HOST,
        AHEAD_ALIKE,
        PAST_HOST,
    ];
}

/// Flash in single-bit mode programs a page in 100 us to 400 us, with more bits a cell in 600 us and
/// more (Grupp et al., MICRO 2009, for two bits; one-shot programs of three take above 1 ms).
const SINGLE_BIT_NS_MAX: f64 = 500_000.0;
/// Less than the least of these: no flash was waited for.
const SINGLE_BIT_NS_MIN: f64 = 100_000.0;
/// Flash with several bits a cell takes so long at least. What lies between the two may be either, with its way over the bus.
const SEVERAL_BITS_NS_MIN: f64 = 600_000.0;
/// Reads of new data faster than those of old by this factor come from faster flash.
const FASTER: f64 = 0.92;
/// Standard deviations by which new data is read faster that are no chance: one drive in a thousand.
const FASTER_SURELY: f64 = 3.0;
pub(super) fn verdict(findings: &Findings, about: &Description) -> Verdict {
    let verdict = told_by_arms(findings, about);
    let arms = findings.roles.write_buffer.arms.values();
    let noise = arms.map(|arm| arm.looks.noise()).fold(0.0, f64::max);
    if noise <= NOISE_MAX || verdict.size_bytes.is_none() {
        return verdict;
    }
    let evidence = format!(
        "{}; single writes, flushes and reads differ from one to the next by a factor of {:.1}: where a buffer ends does not \
         show by them",
        verdict.evidence,
        noise.exp()
    );
    Verdict {
        size_bytes: None,
        size_is_range: false,
        evidence,
        ..verdict
    }
}

fn told_by_arms(findings: &Findings, about: &Description) -> Verdict {
    match arms(&findings.roles.write_buffer.arms, about) {
        Arms::Missing => Verdict::undecided(INTERRUPTED),
        Arms::DriveOnly(arm) => alone(findings, arm),
        Arms::Unswitched(arm, open) if arm.is_buffered() => alone(findings, arm).withdrawn(open),
        Arms::Unswitched(arm, _) => alone(findings, arm),
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

fn ahead(arm: &WriteBufferArm, size: Option<Estimate>) -> String {
    match size {
        None if !arm.flush_reaches_flash() => {
            "the size does not show: a flush after a write waits for less than flash takes to program, as where memory \
             that survives a power cut keeps what is written, so that when data is in flash is not seen"
                .to_owned()
        }
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

/// What there is without host memory.
fn alone(findings: &Findings, arm: &WriteBufferArm) -> Verdict {
    if arm.is_buffered() {
        let text = format!("{}; {}", times(arm), ahead(arm, arm.bytes));
        return Verdict::new(Tier::Device, rules::AHEAD, text)
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
            rules::WAITS_FOR_FAST_TO_READ,
            format!("{text}, which is faster than flash with several bits a cell; {reads}{cliff}"),
        )
        .borne_out(fit_to_read),
        (true, false) if findings.cliff_bytes.is_some() => Verdict::new(
            Tier::Slc,
            rules::WAITS_FOR_FAST,
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
        // Firmware and link may take most of a read, and flash that is read faster save little of it.
        (false, false) if is_read_faster(looks) => Verdict::unclear(format!(
            "{text}, as slow as with several bits a cell, yet {reads}, which is no chance: faster flash, beside slow firmware or \
             a slow link"
        )),
        (false, false) if arm.write_ns - arm.flush_clean_ns < SEVERAL_BITS_NS_MIN => {
            Verdict::undecided(format!(
                "{text}, longer than flash in single-bit mode takes and less than flash with several bits a cell: with its way \
                 over a slow bus, it may be either; {reads}"
            ))
        }
        (false, false) => {
            Verdict::new(Tier::None, rules::WAITS, format!("{text}; {reads}")).borne_out(fit)
        }
    }
}

/// Whether new data is read faster than old beyond chance, by however little.
fn is_read_faster(looks: &WriteLooks) -> bool {
    stats::rank_z(&looks.old, &looks.fresh) > FASTER_SURELY
}

/// The size, where it is the same with host memory on and off. A bound that agrees with a size adds nothing to it, and of
/// two bounds the lower is the one that holds for both.
fn overlap(on: &WriteBufferArm, off: &WriteBufferArm) -> Option<Estimate> {
    // As wide as intervals of one run must be to cover.
    let width = ABOUT.size_width;
    match (on.bytes, off.bytes) {
        (Some(with), Some(without)) if with.wider(width).overlaps(&without.wider(width)) => {
            Some(match (with.high.is_finite(), without.high.is_finite()) {
                (true, false) => with,
                (false, true) => without,
                (false, false) => Estimate::at_least(with.low.min(without.low)),
                (true, true) => Estimate::new(
                    f64::midpoint(with.estimate, without.estimate),
                    with.low.min(without.low),
                    with.high.max(without.high),
                ),
            })
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
        _ => ahead(on, size),
    }
}

/// What the largest writes take with host memory on.
fn ratio_text(findings: &Findings) -> String {
    let largest = findings.roles.write_buffer.write_path.last_key_value();
    largest.map_or(String::new(), |(bytes, WritePath { ratio, .. })| {
        format!(
            "a write of {} takes {:.2} times as long with host memory on as with it off ({:.2} to {:.2})",
            size_text(*bytes as f64),
            ratio.estimate,
            ratio.low,
            ratio.high
        )
    })
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
            return Verdict::new(Tier::Hmb, rules::AHEAD_ONLY_WITH_HOST, text)
                .size(on.bytes)
                .borne_out(buffered(on).min(buffered(off)));
        }
        (false, false) => return waits_for_flash(findings, on),
        (false, true) => {
            return Verdict::unclear(both("buffered only without host memory: not understood"));
        }
        (true, true) => {}
    }
    let ratio = ratio_text(findings);
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
                ahead(on, on.bytes),
                both("its data is there")
            );
            Verdict::new(Tier::Hmb, rules::THROUGH_HOST, text).size(on.bytes)
        }
        Path::Past if grows => Verdict::unclear(format!(
            "more is acknowledged ahead of flash with host memory on than with it off, yet {ratio}"
        )),
        Path::Past => {
            // One of the two may not show: what there is, host memory has no part in.
            let size = overlap.or(on.bytes.xor(off.bytes));
            let held = held_by(on, off, size);
            let text = format!("{held}; {}", both(&ratio));
            Verdict::new(Tier::Device, rules::PAST_HOST, text).size(size)
        }
        // Another run would cost much and find the same.
        Path::Slightly if !grows => Verdict::undecided(format!(
            "{}, which is no chance: a second way over a fast link takes no more than that, and nor do changes of a map that \
             is there",
            both(&ratio)
        )),
        Path::Unclear | Path::Slightly if grows => {
            let text = format!("{}; {}", ahead(on, on.bytes), both("less is without it"));
            Verdict::new(Tier::Hmb, rules::MORE_AHEAD_WITH_HOST, text).size(on.bytes)
        }
        Path::Unclear if overlap.is_some() => {
            let text = format!("{}; {}", ahead(on, overlap), both("as much is without it"));
            Verdict::new(Tier::Device, rules::AHEAD_ALIKE, text).size(overlap)
        }
        Path::Unclear | Path::Slightly => {
            Verdict::unclear(both(&format!("the size does not show, and {ratio}")))
        }
    };
    let fit = buffered(on).min(buffered(off));
    verdict.borne_out(fit.min(path_fit(findings, path)))
}

#[cfg(test)]
mod tests;
