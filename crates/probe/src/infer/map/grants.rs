//! What host memory holds of the map, from the reach of several amounts of it.

use super::unit_of;
use crate::findings::{Findings, Held};
use crate::infer::size_text;
use crate::stats::Estimate;
use std::ops::RangeInclusive;

/// What a reach may lie off the line through those of several amounts, as a share of the largest.
const OFF_LINE: f64 = 0.12;
/// How far two amounts may be from proportion.
const PROPORTION: f64 = 1.15;
/// Bytes of an entry, protection included: what is beyond is no such entry.
const ENTRY_BYTES: RangeInclusive<f64> = 2.0..=9.5;

/// Bytes of addresses that the drive's own memory adds to the reach of host memory: where the line through
/// the reach of several amounts begins, and no more than it reaches by itself.
pub(super) fn own_share(findings: &Findings, entry: Estimate, by_itself: f64) -> f64 {
    let power = |bytes: u64| bytes.is_power_of_two();
    let begins = findings
        .roles
        .map
        .reach_of_grant
        .iter()
        .filter_map(|(bytes, held)| {
            let used = !findings.roles.map.rounds_down || power(*bytes);
            let reached = *bytes as f64 / entry.estimate * 4096.0;
            used.then(|| held.amount() - reached)
        });
    let begins = crate::stats::median(&begins.collect::<Vec<f64>>());
    begins.clamp(0.0, by_itself)
}

/// Whether amounts between powers of two reach no farther than the power below them.
fn is_rounded_down(points: &[(f64, f64)]) -> bool {
    let power = |bytes: f64| (bytes as u64).is_power_of_two();
    let between = points.iter().filter(|(bytes, _)| !power(*bytes));
    let farther = between.filter_map(|(bytes, reach)| {
        let mut below = points.iter().rev();
        let (other, least) = below.find(|(other, _)| power(*other) && other < bytes)?;
        (*bytes > 1.1 * other).then_some(*reach >= 1.03 * least)
    });
    let farther: Vec<bool> = farther.collect();
    // Not any of them: where other roles take the first of it, small amounts reach nothing (seed 90059).
    2 * farther.iter().filter(|farther| !**farther).count() > farther.len()
}

/// Whether reaches of several amounts lie on a line.
fn is_line(points: &[(f64, f64)]) -> bool {
    let slope = crate::stats::slope(points);
    let begins: Vec<f64> = points.iter().map(|(x, y)| y - slope * x).collect();
    let begin = crate::stats::median(&begins);
    let most = points.last().map_or(0.0, |point| point.1);
    let is_near = |from: &f64| (from - begin).abs() <= OFF_LINE * most;
    begins.iter().all(is_near)
}

/// Whether two amounts reach in proportion: then nothing is a third one.
fn is_proportion(points: &[(f64, f64)]) -> bool {
    let [small, large] = points else { return false };
    let ratio = (large.1 / small.1) / (large.0 / small.0);
    (1.0 / PROPORTION..PROPORTION).contains(&ratio)
}

/// The most that one amount by itself says of an entry. It must leave room for what the largest reaches.
fn most_by_one(points: &[(f64, f64)]) -> Option<f64> {
    let entry = points.iter().map(|(b, r)| b / r).fold(0.0, f64::max);
    let (most, farthest) = *points.last()?;
    (farthest * entry <= PROPORTION * most).then_some(entry)
}

/// What an entry takes of host memory, from the reach of several amounts of it; `Some(None)` where
/// only one could be given, `None` where they contradict each other.
pub(super) fn bytes_per_entry(
    findings: &mut Findings,
    granted: f64,
) -> Option<(Option<Estimate>, String)> {
    let map = &mut findings.roles.map;
    let reach = |held: &Held| match held {
        Held::UpTo(reach) => Some(reach.estimate / 4096.0),
        _ => None,
    };
    // How far off the reach of one amount may be, as a share: half of the interval.
    let unit = map.arms.get("on").and_then(unit_of);
    let unit = unit.map_or(0.0, |unit| unit.estimate);
    // Units are whole: up to one of them more would nearly have fit.
    let off = |held: &Held| match held {
        Held::UpTo(reach) => (reach.high - reach.low + unit) / 2.0 / reach.estimate,
        _ => 0.0,
    };
    let grants = map.reach_of_grant.iter();
    let offs: Vec<f64> = grants.clone().map(|(_, held)| off(held)).collect();
    let off = crate::stats::median(&offs);
    let mut points: Vec<(f64, f64)> = grants
        .filter_map(|(bytes, held)| Some((*bytes as f64, reach(held)?)))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    if points.len() < 2 {
        return Some((None, "taking 4 B an entry".to_owned()));
    }
    let power = |bytes: f64| (bytes as u64).is_power_of_two();
    let rounded = is_rounded_down(&points);
    map.rounds_down = rounded;
    if rounded {
        points.retain(|(bytes, _)| power(*bytes));
    }
    // Small amounts may serve other roles alone.
    while points.len() >= 3 && !is_line(&points) {
        points.remove(0);
    }
    let per_byte = crate::stats::slope(&points);
    let tried = map.reach_of_grant.len();
    let widest = points.last()?.0 / points.first()?.0;
    if !(points.len() >= 3 || is_proportion(&points)) || per_byte <= 0.0 || widest < 1.2 {
        return None;
    }
    let mut entry = 1.0 / per_byte;
    // Proportion would mean that so much less than nothing serves something else: small amounts reach too
    // far. The drive's own cache adds to them now and then, never to less than they hold.
    let own = map.arms.get("off").map(|arm| arm.reach_bytes);
    let own = own.as_ref().and_then(reach).unwrap_or(0.0);
    let (most, farthest) = *points.last()?;
    let kept = most - farthest * entry;
    if kept < -OFF_LINE * most - 1.5 * own * entry {
        return None;
    }
    if kept < -0.05 * granted - 1.5 * own * entry {
        entry = most_by_one(&points)?;
    }
    if !ENTRY_BYTES.contains(&entry) {
        return None;
    }
    let width = std::f64::consts::SQRT_2 * off * widest / (widest - 1.0) + 0.01;
    let value = Estimate::new(entry, entry * (1.0 - width), entry * (1.0 + width));
    let how = if rounded { "powers of two of " } else { "" };
    let kept = points.last()?.0 - points.last()?.1 * entry;
    let mut text = format!("{entry:.2} B an entry, by {tried} amounts of {how}host memory");
    if kept > 0.05 * granted {
        text += &format!("; {} of it serve something else", size_text(kept));
    }
    Some((Some(value), text))
}
