//! Where data that was read is kept, if anywhere.

use super::{Arms, INTERRUPTED, Rule, SAME, Tier, UNSWITCHED, Verdict, arms, drifted, flash_seen};
use super::{held_text, size_text};
use crate::findings::{Findings, Held, ReadCacheArm};
use crate::target::Description;

pub(super) fn verdict(findings: &Findings, about: &Description) -> Verdict {
    if let Some(reason) = drifted(findings) {
        return Verdict::unclear(reason);
    }
    let flash = flash_seen(findings);
    let alone = |arm: &ReadCacheArm, tier: Tier, rule: Rule| match arm.bytes {
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
            Verdict::new(tier, rule, text).size(Some(size))
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
            } else if with > without && with.is_finite() {
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
