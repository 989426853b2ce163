//! Where data that was read is kept, if anywhere.

use super::{Arms, INTERRUPTED, Rule, SAME, Tier, UNSWITCHED, Verdict, arms, drifted, flash_seen};
use super::{held_text, size_text, told};
use crate::findings::{Findings, Held, ReadCacheArm};
use crate::target::Description;

/// Caches of a few pages are told to a few pages, and nobody borrows memory for so little.
const FEW_BYTES: f64 = 65_536.0;
/// A read from memory saves more than half of a read's time: less than this was saved by nothing.
const SAVED: f64 = 0.1;
/// Reads that measure in each look.
const LOOKS: f64 = 240.0;

pub(super) fn verdict(findings: &Findings, about: &Description) -> Verdict {
    if let Some(reason) = drifted(findings) {
        return Verdict::unclear(reason);
    }
    let flash = flash_seen(findings);
    let alone = |arm: &ReadCacheArm, tier: Tier, rule: Rule| match arm.bytes {
        Held::Nothing if arm.levels.is_none() && arm.saved.high > SAVED => {
            Verdict::unclear(format!(
                "a read again saves {:.0} % of the time on average, and which reads were fast cannot be told",
                100.0 * arm.saved.estimate
            ))
        }
        Held::Nothing if flash => Verdict::new(
            Tier::None,
            Rule::NotReadAgain,
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
            let fit = arm.levels.map_or(1.0, |levels| told(&levels, LOOKS));
            Verdict::new(tier, rule, text)
                .size(Some(size))
                .borne_out(fit)
        }
    };
    match arms(&findings.read_cache, about) {
        Arms::Missing => Verdict::undecided(INTERRUPTED),
        Arms::DriveOnly(arm) => alone(arm, Tier::Device, Rule::ReadAgain),
        Arms::Unswitched(arm) => {
            let verdict = alone(arm, Tier::Device, Rule::ReadAgain);
            if matches!(arm.bytes, Held::UpTo(_)) {
                return verdict.withdrawn(UNSWITCHED);
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
                alone(on, Tier::Device, Rule::ReadAgain)
            } else if with > without + FEW_BYTES && with.is_finite() {
                alone(on, Tier::Hmb, Rule::ReadAgainWithHost)
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
