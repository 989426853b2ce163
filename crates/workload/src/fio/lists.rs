//! Options whose values are little languages: `bssplit`, `random_distribution`, `percentile_list`.

use super::ini::Setting;
use super::offsets::{Sizes, Spread, Zone};
use super::value;
use crate::WorkloadError;

/// fio's limit on the parts of a split.
const PARTS_MAX: usize = 64;
/// fio's limit on percentiles.
const PERCENTILES_MAX: usize = 20;

/// fio's defaults for zipf's theta and pareto's h.
const ZIPF_THETA: f64 = 1.1;
const PARETO_H: f64 = 0.2;

/// `bsrange=4k-64k` for one direction.
pub(super) fn range(s: &Setting, text: &str, kb_base: u64) -> Result<Sizes, WorkloadError> {
    let must = || s.must("a range such as `4k-64k`");
    let (low, high) = text.split_once('-').ok_or_else(must)?;
    let low = s.block_bytes(low, kb_base)?;
    let high = s.block_bytes(high, kb_base)?;
    match low.cmp(&high) {
        std::cmp::Ordering::Less => Ok(Sizes::Range(low, high)),
        std::cmp::Ordering::Equal => Ok(Sizes::Fixed(low)),
        std::cmp::Ordering::Greater => Err(must()),
    }
}

/// `bssplit=4k/10:64k/50:32k` for one direction. Parts without a share divide what is left.
pub(super) fn split(s: &Setting, text: &str, kb_base: u64) -> Result<Sizes, WorkloadError> {
    let must = || s.must("parts such as `4k/60:64k/40` that make up 100 %");
    let mut parts = Vec::new();
    for part in text.split(':') {
        if parts.len() == PARTS_MAX {
            return Err(s.must(&format!("at most {PARTS_MAX} parts")));
        }
        let (size, percent) = part.split_once('/').unwrap_or((part, ""));
        parts.push((
            percent_or_rest(percent).ok_or_else(must)?,
            s.block_bytes(size, kb_base)?,
        ));
    }
    let shares: Vec<_> = parts.iter().map(|part| part.0).collect();
    let shares = share_out(&shares).ok_or_else(must)?;
    let sizes = parts.into_iter().map(|part| part.1);
    let mut parts: Vec<(u32, u64)> = shares.into_iter().zip(sizes).collect();
    parts.retain(|part| part.0 > 0);
    if parts.is_empty() {
        return Err(must());
    }
    // Rarest first, as in fio: what is missing to 100 % goes to the last.
    parts.sort_by_key(|part| part.0);
    let mut sum = 0;
    for part in &mut parts {
        sum += part.0;
        part.0 = sum;
    }
    Ok(match parts[..] {
        [(_, size)] => Sizes::Fixed(size),
        _ => Sizes::Split(parts),
    })
}

/// A share in per cent, or `None` for one to be worked out.
fn percent_or_rest(text: &str) -> Option<Option<u32>> {
    match text.trim() {
        "" => Some(None),
        text => value::whole(text)
            .filter(|p| *p <= 100)
            .map(|p| Some(p as u32)),
    }
}

/// Divides what is missing to 100 among the shares not given.
fn share_out(shares: &[Option<u32>]) -> Option<Vec<u32>> {
    let given: u32 = shares.iter().flatten().sum();
    let missing = shares.iter().filter(|share| share.is_none()).count() as u32;
    let rest = 100u32.checked_sub(given)?;
    Some(
        shares
            .iter()
            .map(|share| share.unwrap_or_else(|| rest / missing))
            .collect(),
    )
}

/// `random_distribution=...`.
pub(super) fn spread(s: &Setting, kb_base: u64) -> Result<Spread, WorkloadError> {
    let (kind, rest) = match s.text().split_once(':') {
        Some((kind, rest)) => (kind, Some(rest)),
        None => (s.text(), None),
    };
    match kind {
        "random" if rest.is_none() => Ok(Spread::Uniform),
        "zipf" => {
            let (theta, center) = parameters(s, rest, ZIPF_THETA)?;
            if theta <= 0.0 || theta == 1.0 {
                return Err(s.must("`zipf:theta` with a positive theta other than 1"));
            }
            Ok(Spread::Zipf { theta, center })
        }
        "pareto" => {
            let (h, center) = parameters(s, rest, PARETO_H)?;
            if h <= 0.0 || h >= 1.0 {
                return Err(s.must("`pareto:h` with h above 0 and below 1"));
            }
            Ok(Spread::Pareto { h, center })
        }
        "normal" => {
            let (deviation, center) = parameters(s, rest, 0.0)?;
            if !(0.0..100.0).contains(&deviation) {
                return Err(s.must("`normal:deviation` with a deviation from 0 to below 100"));
            }
            Ok(Spread::Normal { deviation, center })
        }
        "zoned" => zones(s, rest, |text| {
            percent_or_rest(text).map(|percent| percent.map(u64::from))
        })
        .map(Spread::ZonedPercent),
        "zoned_abs" => {
            zones(s, rest, |text| value::bytes(text, kb_base).map(Some)).map(Spread::ZonedBytes)
        }
        _ => Err(s.must("random, zipf, pareto, normal, zoned or zoned_abs")),
    }
}

/// The number after the colon, and the centre after the next.
fn parameters(
    s: &Setting,
    text: Option<&str>,
    default: f64,
) -> Result<(f64, Option<f64>), WorkloadError> {
    let Some(text) = text else {
        return Ok((default, None));
    };
    let (first, center) = match text.split_once(':') {
        Some((first, center)) => (first, Some(center)),
        None => (text, None),
    };
    let first = value::float(first);
    let first = first.ok_or_else(|| s.must("followed by a number, such as `zipf:1.2`"))?;
    let center = center.map(|text| {
        let center = value::float(text).filter(|c| (0.0..=1.0).contains(c));
        center.ok_or_else(|| s.must("centred between 0 and 1, such as `zipf:1.2:0.5`"))
    });
    Ok((first, center.transpose()?))
}

/// `access/size:access/size:...`, per direction. Sizes left out divide what is left.
fn zones(
    s: &Setting,
    text: Option<&str>,
    size: impl Fn(&str) -> Option<Option<u64>>,
) -> Result<[Vec<Zone>; 3], WorkloadError> {
    let must = || s.must("followed by zones such as `60/10:40/90` whose accesses make up 100 %");
    let text = text.ok_or_else(must)?;
    let mut result: [Vec<Zone>; 3] = Default::default();
    let mut given = 0;
    for (direction, text) in text.split(',').enumerate() {
        if direction >= 3 {
            return Err(s.must("at most three values: reads, writes, trims"));
        }
        let mut zones = Vec::new();
        for zone in text.split(':') {
            let (access, bytes) = zone.split_once('/').unwrap_or((zone, ""));
            let access = value::whole(access)
                .filter(|a| *a <= 100)
                .ok_or_else(must)?;
            zones.push((access as u32, size(bytes).ok_or_else(must)?));
        }
        if zones.len() > PARTS_MAX * 4 || zones.iter().map(|zone| zone.0).sum::<u32>() != 100 {
            return Err(must());
        }
        let missing = zones.iter().filter(|zone| zone.1.is_none()).count() as u64;
        let sum = zones
            .iter()
            .filter_map(|zone| zone.1)
            .try_fold(0u64, u64::checked_add);
        let rest = 100u64.saturating_sub(sum.ok_or_else(must)?);
        let whole = |zone: &(u32, Option<u64>)| (zone.0, zone.1.unwrap_or_else(|| rest / missing));
        result[direction] = zones.iter().map(whole).collect();
        given = direction;
    }
    let last = result[given].clone();
    result[given..].fill(last);
    Ok(result)
}

/// `percentile_list=50:99:99.9`, sorted.
pub(super) fn percentiles(s: &Setting) -> Result<Vec<f64>, WorkloadError> {
    let percentile = |text: &str| value::float(text).filter(|p| *p > 0.0 && *p <= 100.0);
    let list: Option<Vec<f64>> = s.text().split(':').map(percentile).collect();
    let list = list.filter(|list| list.len() <= PERCENTILES_MAX);
    let mut list = list.ok_or_else(|| {
        s.must(&format!(
            "up to {PERCENTILES_MAX} numbers above 0 and up to 100, such as `50:99:99.9`"
        ))
    })?;
    list.sort_by(f64::total_cmp);
    list.dedup();
    Ok(list)
}
