//! The share of map look-ups that need no read from flash, against the size of host memory.

use super::parts::Group;
use super::place::Place;
use super::stream::{Asked, Hits, Learnt, Method};

/// Most points of a curve.
const POINTS_MAX: usize = 48;
/// Sizes simulated side by side where stack distances do not apply.
pub const DIRECT_MAX: usize = 24;

/// One size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Host memory granted, bytes; 0 for none.
    pub hmb_bytes: u64,
    /// Share of look-ups that need no read from flash.
    pub hit_ratio: f64,
}

/// Hit ratio by size.
#[derive(Clone, Debug)]
pub struct Curve {
    learnt: Learnt,
    place: Place,
    /// How it was computed.
    pub method: Method,
    /// Points worth showing, ascending; the first is without host memory.
    pub points: Vec<Point>,
    /// The smallest grant with all the hits there can be, bytes; 0 when host memory adds none.
    pub useful_bytes: u64,
    /// Where the curve bends most, ascending, bytes.
    pub knees: Vec<u64>,
}

impl Curve {
    /// The curve of what was learnt. `sizes` are among its points in any case.
    #[must_use]
    pub fn new(learnt: Learnt, place: &Place, method: Method, sizes: &[u64]) -> Self {
        let mut curve = Curve {
            learnt,
            place: place.clone(),
            method,
            points: Vec::new(),
            useful_bytes: 0,
            knees: Vec::new(),
        };
        curve.useful_bytes = curve.find_useful();
        let top = sizes.iter().copied().max().unwrap_or(0);
        let top = top.max(curve.useful_bytes).min(place.largest_bytes());
        let mut grants = match method {
            Method::StackDistances => thinned(place.grants(0, top), POINTS_MAX),
            Method::Direct => curve.simulated().collect(),
        };
        grants.extend(
            sizes
                .iter()
                .filter(|s| method == Method::StackDistances && **s <= top),
        );
        grants.extend([0, curve.useful_bytes]);
        grants.sort_unstable();
        grants.dedup();
        curve.points = grants.into_iter().map(|grant| curve.point(grant)).collect();
        curve.knees = curve.find_knees();
        curve
    }

    /// Share of look-ups that need no read from flash when so much is granted.
    #[must_use]
    pub fn hit_ratio(&self, hmb_bytes: u64) -> f64 {
        let Asked {
            lookups,
            absent,
            near,
            ..
        } = self.learnt.asked;
        let hits = match &self.learnt.hits {
            Hits::Every { histogram, .. } => {
                (absent + near) as f64 + histogram.hits(u64::from(self.place.units(hmb_bytes)))
            }
            Hits::At(sizes) => {
                // Between two sizes the smaller one speaks.
                let units = self.place.units(hmb_bytes);
                let at = sizes.partition_point(|(grant, _)| self.place.units(*grant) <= units);
                at.checked_sub(1).map_or(0.0, |at| sizes[at].1 as f64)
            }
        };
        if lookups == 0 {
            1.0
        } else {
            hits / lookups as f64
        }
    }

    /// What the workload asked.
    #[must_use]
    pub fn asked(&self) -> Asked {
        self.learnt.asked
    }

    /// Translation pages in use.
    #[must_use]
    pub fn touched_pages(&self) -> u64 {
        self.learnt.touched_pages
    }

    /// Those that reads look up, by the jobs that do, most first.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.learnt.groups
    }

    /// Share of the map's units that was followed; 1 when exact.
    #[must_use]
    pub fn sampled_share(&self) -> f64 {
        match &self.learnt.hits {
            Hits::Every { share, .. } => *share,
            Hits::At(_) => 1.0,
        }
    }

    fn point(&self, hmb_bytes: u64) -> Point {
        Point {
            hmb_bytes,
            hit_ratio: self.hit_ratio(hmb_bytes),
        }
    }

    fn simulated(&self) -> impl Iterator<Item = u64> + '_ {
        let sizes: &[(u64, u64)] = match &self.learnt.hits {
            Hits::Every { .. } => &[],
            Hits::At(sizes) => sizes,
        };
        sizes.iter().map(|(grant, _)| *grant)
    }

    fn find_useful(&self) -> u64 {
        match &self.learnt.hits {
            Hits::Every { histogram, .. } => match histogram.units_for_all() {
                0 => 0,
                units => self.place.grant_for(units),
            },
            Hits::At(sizes) => {
                let most = sizes.iter().map(|(_, hits)| *hits).max().unwrap_or(0);
                let first = sizes.iter().find(|(_, hits)| *hits == most);
                first.map_or(0, |(grant, _)| *grant)
            }
        }
    }

    /// The point farthest above the straight line from no host memory to all that is useful, and
    /// the one farthest above the rest of the curve from there on (Satopaa et al., ICDCSW 2011,
    /// "Kneedle", without its smoothing).
    fn find_knees(&self) -> Vec<u64> {
        // A bend of less is no reason to choose a size.
        const BEND_MIN: f64 = 0.05;
        let end = self
            .points
            .iter()
            .position(|p| p.hmb_bytes >= self.useful_bytes);
        let mut rest = &self.points[..=end.unwrap_or(self.points.len() - 1)];
        let mut knees = Vec::new();
        while knees.len() < 2 && rest.len() > 2 {
            let (first, last) = (rest[0], rest[rest.len() - 1]);
            let rise = last.hit_ratio - first.hit_ratio;
            let run = (last.hmb_bytes - first.hmb_bytes) as f64;
            let above = |p: &Point| {
                let line = rise * (p.hmb_bytes - first.hmb_bytes) as f64 / run;
                p.hit_ratio - first.hit_ratio - line
            };
            let farthest = (1..rest.len() - 1)
                .max_by(|a, b| above(&rest[*a]).total_cmp(&above(&rest[*b])))
                .expect("there are points in between");
            if above(&rest[farthest]) < BEND_MIN {
                break;
            }
            knees.push(rest[farthest].hmb_bytes);
            rest = &rest[farthest..];
        }
        knees
    }
}

/// At most `count` of these sizes, roughly evenly spaced in ratio; first and last are kept.
#[must_use]
pub fn thinned(sizes: Vec<u64>, count: usize) -> Vec<u64> {
    let (Some(&first), Some(&last)) = (sizes.first(), sizes.last()) else {
        return sizes;
    };
    if sizes.len() <= count || count < 2 {
        return sizes;
    }
    let ratio = (last as f64 / first as f64).powf(1.0 / (count - 1) as f64);
    let mut kept = vec![first];
    for size in sizes {
        let next = first as f64 * ratio.powi(kept.len() as i32);
        // Steps may be coarser than the ratio at the lower end: then every one is kept.
        if size > kept[kept.len() - 1] && size as f64 >= next.min(last as f64) * 0.999_999 {
            kept.push(size);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Drive;
    use crate::advise::stack::Sampled;

    const MIB: u64 = 1 << 20;

    /// A curve on the A80, a unit of the map a translation page, from a stream of pages.
    fn curve(pages: impl Iterator<Item = u32>) -> Curve {
        let drive = Drive::open("a80", &[("tier.hmb.min", "\"1MiB\"")]).unwrap();
        let place = Place::of(drive.spec()).unwrap();
        let mut sampled = Sampled::new(usize::MAX);
        let mut lookups = 0;
        for page in pages {
            lookups += 1;
            sampled.touch(page, true);
        }
        let learnt = Learnt {
            asked: Asked {
                lookups,
                ..Asked::default()
            },
            touched_pages: sampled.keys(),
            groups: Vec::new(),
            hits: Hits::Every {
                share: 1.0,
                histogram: sampled.histogram(),
            },
        };
        Curve::new(learnt, &place, Method::StackDistances, &[])
    }

    #[test]
    fn a_loop_is_all_or_nothing() {
        let pages = 10 * 256;
        let curve = curve((0..pages * 20).map(|step| step % pages));
        assert_eq!(curve.useful_bytes, 10 * MIB);
        assert_eq!(curve.hit_ratio(9 * MIB), 0.0);
        assert_eq!(curve.hit_ratio(10 * MIB), 0.95);
        assert_eq!(curve.knees, [] as [u64; 0]);
    }

    #[test]
    fn a_small_and_a_large_loop_bend_twice() {
        // Two uses of 4 MiB of map for every use of the next page of 40 MiB.
        let steps = (0..400_000u32).map(|step| match step % 3 {
            0 => 1024 + (step / 3) % 10_240,
            part => ((step / 3) * 2 + part) % 1024,
        });
        let curve = curve(steps);
        let knee = curve.knees[0];
        assert!((4 * MIB..=7 * MIB).contains(&knee), "{knee}");
        assert!(curve.hit_ratio(knee) > 0.6 && curve.hit_ratio(2 * MIB) < 0.1);
        assert!(curve.useful_bytes > 40 * MIB);
    }

    #[test]
    fn nothing_used_twice_needs_nothing() {
        let curve = curve(0..1000);
        assert_eq!((curve.useful_bytes, curve.hit_ratio(64 * MIB)), (0, 0.0));
    }

    #[test]
    fn thinning_keeps_the_ends_and_the_count() {
        let sizes: Vec<u64> = (8..=480).collect();
        let kept = thinned(sizes.clone(), 24);
        assert!(kept.len() <= 24 && kept.len() > 12, "{kept:?}");
        assert_eq!((kept[0], kept[kept.len() - 1]), (8, 480));
        assert_eq!(thinned(sizes, 1000).len(), 473);
    }
}
