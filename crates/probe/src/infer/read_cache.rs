//! Where data that was read is kept, if anywhere.

use super::{Arms, INTERRUPTED, Rule, SAME, Tier, Verdict, arms, drifted, flash_seen};
use super::{held_text, size_text, told};
use crate::experiment::levels::Levels;
use crate::findings::{Findings, Held};
use crate::report::Figure;
use crate::role::{self, About};
use crate::stats::Estimate;
use crate::target::Description;
use std::collections::BTreeMap;

/// What the prober knows of it.
pub(crate) const ABOUT: About = About {
    name: "read_cache",
    title: "read cache",
    subject: "data that was read",
    experiments: &["read-cache"],
    is_read_only: true,
    rules: rules::ALL,
    // With this, 87 of 89.
    size_width: 1.1,
    verdict: |findings, about| verdict(findings, about),
    figures: &[
        Figure {
            marks: &["read_cache"],
            expects: "Speaks for a read cache where it is low up to the size, and for host memory where that is larger \
                  with it on.",
            ..Figure::of(
                "read cache",
                "Pages read again",
                "Pages near each other, read in turn: fast while all of them are kept.",
            )
        },
        Figure {
            apart: true,
            marks: &["read_again_knee_bytes"],
            expects: "Speaks against \"none\" where the second read is faster, and against a size where the curves meet \
                  elsewhere.",
            ..Figure::of(
                "read request",
                "Request size against latency: reads",
                "One request, read for the first time and again. Where the curves meet, it no longer fits \
             a read cache. The same knee with host memory off: the cache is not there.",
            )
        },
    ],
};

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The read cache, by state of host memory (`on`, `off`, `as found`).
    pub arms: BTreeMap<&'static str, ReadCacheArm>,
}

impl role::Finds for Found {
    fn is_seen(&self) -> bool {
        !self.arms.is_empty()
    }
}

/// The read cache in one state of host memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadCacheArm {
    /// A read again, and a first read.
    pub levels: Option<Levels>,
    /// Share of a read's time that a read again saves on average, of the same pages.
    pub saved: Estimate,
    /// Bytes held.
    pub bytes: Held,
}

impl ReadCacheArm {
    /// Something is saved by reading again, and of which pages is not known.
    pub(super) fn is_open(&self) -> bool {
        let is_saved = self.saved.high > SAVED || self.saved.low > SAVED_SURELY;
        self.bytes == Held::Nothing && self.levels.is_none() && is_saved
    }
}

/// The rules by which it is told where it lives.
pub mod rules {
    use crate::infer::rule::Rule;

    /// A read again takes as long as the first one.
    pub const NOT_READ_AGAIN: Rule = Rule::counted("NotReadAgain", 183, 183);
    /// So much is read again fast, whatever host memory there is.
    pub const READ_AGAIN: Rule = Rule::counted("ReadAgain", 295, 295);
    /// More is read again fast with host memory.
    pub const READ_AGAIN_WITH_HOST: Rule = Rule::counted("ReadAgainWithHost", 59, 60);

    pub(super) const ALL: &[Rule] = &[NOT_READ_AGAIN, READ_AGAIN, READ_AGAIN_WITH_HOST];
}

/// Caches of a few pages are told to a few pages, and nobody borrows memory for so little.
const FEW_BYTES: f64 = 65_536.0;
/// A read from memory saves more than half of a read's time: less than this was saved by nothing.
const SAVED: f64 = 0.1;
/// Unless it surely saves so much: firmware of half a millisecond hides what flash of 40 us takes.
const SAVED_SURELY: f64 = 0.03;
/// Memory that a drive reaches over a link and the work for it take no longer, ns, beside what the data takes on that link: 26 us
/// were met. Flash that is read in less hides a cache there.
const FAR_MEMORY_NS: f64 = 26_000.0;
/// A page crosses the slowest link of such drives, PCIe 1.0 with one lane (250 MB/s), in so long.
const CROSSING_NS: f64 = 16_400.0;
/// What is taken for granted in any case, however little a read takes besides its flash, ns.
const LEAST_FAR_NS: f64 = 20_000.0;
/// What is said beside a size.
const SIZE_SHOWS: &str = "";
const MAY_BE_LARGER: &str = "; the map ends there, so that the cache may be larger";
/// Reads that measure in each look.
const LOOKS: f64 = 240.0;

pub(super) fn verdict(findings: &Findings, about: &Description) -> Verdict {
    if let Some(reason) = drifted(findings) {
        return Verdict::unclear(reason);
    }
    let flash = flash_seen(findings);
    let alone = |arm: &ReadCacheArm, tier: Tier, rule: Rule| match arm.bytes {
        Held::Nothing if arm.is_open() => Verdict::unclear(format!(
            "a read again saves {:.0} % of the time on average, and which reads were fast cannot be told",
            100.0 * arm.saved.estimate
        )),
        Held::Nothing if flash => not_read_again(findings),
        Held::Nothing => Verdict::undecided(
            "a read again takes as long as the first time, but nothing shows that the first comes \
             from flash",
        ),
        Held::Everything(_) => Verdict::undecided(
            "everything that was tried is read again fast: memory, or never written",
        ),
        Held::UpTo(size) => {
            let mut text = format!("up to {} are read again fast", size_text(size.estimate));
            let fit = arm.levels.map_or(1.0, |levels| told(&levels, LOOKS));
            let ends_with_map = map_ends_at(findings, size.estimate);
            text += [SIZE_SHOWS, MAY_BE_LARGER][usize::from(ends_with_map)];
            Verdict::new(tier, rule, text)
                .size((!ends_with_map).then_some(size))
                .borne_out(fit)
        }
    };
    match arms(&findings.roles.read_cache.arms, about) {
        Arms::Missing => Verdict::undecided(INTERRUPTED),
        Arms::DriveOnly(arm) => alone(arm, Tier::Device, rules::READ_AGAIN),
        Arms::Unswitched(arm, open) => {
            let verdict = alone(arm, Tier::Device, rules::READ_AGAIN);
            if matches!(arm.bytes, Held::UpTo(_)) {
                return verdict.withdrawn(open);
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
                alone(on, Tier::Device, rules::READ_AGAIN)
            } else if with > without + FEW_BYTES && with.is_finite() {
                match explained_by_map(findings, without) {
                    Some(why) => Verdict::undecided(why),
                    None => alone(on, Tier::Hmb, rules::READ_AGAIN_WITH_HOST),
                }
            } else {
                Verdict::unclear("")
            };
            verdict.evidence = format!("{both}; {}", verdict.evidence)
                .trim_end_matches("; ")
                .to_owned();
            verdict
        }
    }
}

/// Nothing is saved by reading the same page again, and there is flash.
fn not_read_again(findings: &Findings) -> Verdict {
    let text = "a read again takes as long as the first time";
    match flash_ns(findings).zip(far_memory_ns(findings)) {
        Some((flash, far)) if flash < far => Verdict::undecided(format!(
            "{text}, but the flash is read in {:.1} us, as fast as memory that is far away, which may take {:.1} us to hand \
             over a page",
            flash / 1e3,
            far / 1e3
        )),
        _ => Verdict::new(Tier::None, rules::NOT_READ_AGAIN, text),
    }
}

/// What a read of flash takes: no more than a map miss adds, nor than the second of two reads of one die waits.
fn flash_ns(findings: &Findings) -> Option<f64> {
    let arms = findings.roles.map.arms.values();
    let added = arms.filter_map(|arm| arm.levels.map(|levels| levels.slow_ns - levels.fast_ns));
    added.chain(findings.flash_wait_ns).reduce(f64::min)
}

/// What a page from host memory takes at most. Its data crosses the link, as that of every read does: no faster than pages
/// come when many are read at once. And a command comes from host memory, and its data goes there: both together take no
/// longer than all that a read takes besides its flash.
fn far_memory_ns(findings: &Findings) -> Option<f64> {
    let flash = flash_ns(findings)?;
    let most = findings.quantities.get("random_read_most");
    let crossing = most.map_or(CROSSING_NS, |rate| 1e9 / rate.value.estimate.max(1e-9));
    let near = findings.roles.map.arms.values().map(|arm| arm.near_ns);
    let besides = near.reduce(f64::max).map_or(f64::MAX, |near| near - flash);
    let most = FAR_MEMORY_NS + crossing.min(CROSSING_NS);
    Some(most.min(besides).max(LEAST_FAR_NS))
}

/// Whether the map reaches about as far, in any state of host memory: a page that the drive keeps is read as
/// slowly as any other where its map entry is not at hand.
fn map_ends_at(findings: &Findings, bytes: f64) -> bool {
    let mut arms = findings.roles.map.arms.values();
    arms.any(|arm| {
        let reach = arm.reach_bytes.amount();
        bytes < SAME * reach && reach < SAME * bytes
    })
}

/// Why more may be read again fast with host memory although none of it is kept there.
fn explained_by_map(findings: &Findings, without: f64) -> Option<String> {
    if !findings.roles.map.arms.contains_key("off") {
        let why = "the map, which may end there without host memory, was not looked at";
        return Some(why.to_owned());
    }
    map_ends_at(findings, without).then(|| {
        format!(
            "without host memory the map ends at {}, too, and pages kept beyond that would wait for their \
             entries, wherever they are kept",
            size_text(without)
        )
    })
}
