//! What the map takes of host memory.

use super::{
    COMPRESSED, MAP_SHARE, MAP_SHARE_MAX, MapArm, SAME, grants, told_unit, unit_of, with_slack,
};
use crate::findings::{Findings, Held};
use crate::infer::{Verdict, size_text};
use crate::stats::Estimate;
use crate::target::{Description, HmbSwitch};

/// The same for each page of 4 KiB.
const ENTRY_BYTES: f64 = 4.0;
/// More of the reach than this share may be the drive's own memory's: then nothing is told of host memory's entries.
const OWN_SHARE: f64 = 0.25;
/// Entries of 4 B that would take more than so many times what was given are no such entries.
const TOO_MUCH: f64 = 1.05;

/// What the map takes of host memory, and how.
pub(super) fn hmb_size(
    findings: &mut Findings,
    about: &Description,
    (on, off): (&MapArm, &MapArm),
    mut verdict: Verdict,
) -> Verdict {
    let granted = about.hmb.granted_bytes().unwrap_or(0) as f64;
    let whole = about.capacity_bytes as f64 * MAP_SHARE;
    let Held::UpTo(reach) = on.reach_bytes else {
        let entry = grants::bytes_per_entry(findings, granted).and_then(|(entry, _)| entry);
        let Some(entry) = entry.filter(|_| matches!(about.hmb, HmbSwitch::Sizes { .. })) else {
            verdict.evidence += COMPRESSED;
            return verdict.between(at_most(granted, whole));
        };
        findings.quantity("map_bytes_per_entry", "bytes", entry);
        let size = entry.scaled(whole / 4.0);
        let most = granted.max(size.low);
        verdict.evidence += &format!("; {:.2} B an entry, by smaller amounts", entry.estimate);
        verdict.size_bytes = Some(Estimate::new(
            size.estimate.min(most),
            size.low,
            size.high.min(most),
        ));
        return verdict;
    };
    findings.quantity("map_reach_on", "bytes", reach);
    let by_itself = off.reach_bytes.amount();
    // The unit of host memory's own cache shows only where that one counts more units.
    if on.units.amount() > SAME * off.units.amount() {
        verdict.unit_bytes = told_unit(on);
    }
    if matches!(about.hmb, HmbSwitch::OnOff { .. }) && granted > 0.0 {
        return by_one_amount(findings, granted, (reach, by_itself), verdict);
    }
    let (entry, text) = match grants::bytes_per_entry(findings, granted) {
        Some((Some(entry), text)) => (entry, text),
        Some((None, _)) => return by_one_amount(findings, granted, (reach, by_itself), verdict),
        None => {
            findings.roles.map.is_off_line = true;
            verdict.evidence += "; what several amounts of it reach does not lie on a line";
            return by_one_amount(findings, granted, (reach, by_itself), verdict);
        }
    };
    verdict.evidence += &format!("; {text}");
    by_line(findings, granted, (on, reach, by_itself), entry, verdict)
}

/// What an entry takes is known, by what several amounts reach.
fn by_line(
    findings: &mut Findings,
    granted: f64,
    (on, reach, by_itself): (&MapArm, Estimate, f64),
    entry: Estimate,
    mut verdict: Verdict,
) -> Verdict {
    // What no host memory would reach by that line is held by the drive's own memory, which passes units on
    // to host memory instead of holding copies.
    let own = grants::own_share(findings, entry, by_itself);
    let reach = Estimate::new(
        reach.estimate - own,
        reach.low - own,
        reach.high - own / 2.0,
    );
    findings.quantity("map_bytes_per_entry", "bytes", entry);
    let (entry_width, entry) = (entry.high / entry.estimate - 1.0, entry.estimate);
    let size = reach.scaled(entry / 4096.0);
    // Units are whole: of what is meant for them, less than one may be left.
    let rest = unit_of(on).map_or(0.0, |unit| unit.estimate * entry / 4096.0);
    if granted > 1.15 * size.high {
        let used = format!(
            "; of {} given, {} are used",
            size_text(granted),
            size_text(size.estimate)
        );
        verdict.evidence += &used;
    }
    let low = size.low * (1.0 - entry_width);
    verdict.size_bytes = Some(Estimate::new(
        size.estimate,
        // What is beyond what was given by less than this is all of it.
        if low > TOO_MUCH * granted {
            low
        } else {
            low.min(0.97 * granted)
        },
        size.high * (1.0 + entry_width) + rest,
    ));
    verdict
}

/// Where host memory is only turned on and off: an entry takes no more than what is given for each page
/// reached, if all of it is used for the map, and no less than 4 B, as far as the map is not compressed.
pub(super) fn by_one_amount(
    findings: &mut Findings,
    granted: f64,
    (reach, by_itself): (Estimate, f64),
    mut verdict: Verdict,
) -> Verdict {
    // What the drive's own memory holds may come on top.
    let least = MAP_SHARE * (with_slack(reach).low - by_itself.min(reach.low / 2.0));
    // What entries take at most for what is reached.
    let most = MAP_SHARE_MAX * with_slack(reach).high;
    let is_beyond = most < 0.97 * granted && least <= TOO_MUCH * granted;
    verdict.evidence += &match entry_by_one_amount(granted, reach, by_itself) {
        // A number that no entry takes is none.
        Ok(_) if is_beyond => String::new(),
        Ok(entry) => {
            findings.quantity("map_bytes_per_entry", "bytes", entry);
            format!(
                "; {:.2} B an entry if all of {} given serve the map, and less if not: how much of it is used \
                 does not show by one amount",
                entry.estimate,
                size_text(granted)
            )
        }
        Err(why) => format!("; bytes an entry do not show: {why}"),
    };
    if is_beyond {
        verdict.evidence += &format!(
            "; {} are more than the {} that entries of 8 B take, the most that is known, for what is reached, so that not all of it \
             serves the map",
            size_text(granted),
            size_text(most)
        );
    }
    verdict.evidence += COMPRESSED;
    if is_beyond {
        return verdict.between(Estimate::new(most, least, most));
    }
    verdict.between(at_most(granted, least))
}

/// What an entry takes if all of what is given serves the map, or why that is not known.
fn entry_by_one_amount(granted: f64, reach: Estimate, by_itself: f64) -> Result<Estimate, String> {
    if by_itself > OWN_SHARE * reach.estimate {
        return Err(format!(
            "without host memory {} are at hand, and how much of that comes on top of what host memory holds \
             is not known",
            size_text(by_itself)
        ));
    }
    let most = |reach: f64| granted * 4096.0 / reach.max(1.0);
    if most(reach.low - by_itself) * TOO_MUCH < ENTRY_BYTES {
        return Err(format!(
            "{:.2} B would be left for each if all of {} given serve the map, and entries of a page's address \
             take 4 B at least: it is compressed, or the reach is less than it seems",
            most(reach.estimate),
            size_text(granted)
        ));
    }
    let entry = most(reach.estimate).max(ENTRY_BYTES * reach.low / reach.estimate);
    Ok(Estimate::new(
        entry,
        most(reach.high).min(ENTRY_BYTES * reach.low / reach.estimate),
        most(reach.low - by_itself).max(entry),
    ))
}

/// No more than what is given, and no less than entries of 4 B take, unless that would be more.
fn at_most(granted: f64, least: f64) -> Estimate {
    let low = if least > TOO_MUCH * granted {
        0.0
    } else {
        least.min(0.97 * granted)
    };
    Estimate::new(granted, low, granted)
}
