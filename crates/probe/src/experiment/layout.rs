//! How addresses go round the dies, from how often two pages at a distance are on one die.
//!
//! Two pages `k` apart lie in one stripe of `s` pages with probability `1 - k / s`, so that the shares of
//! collisions fall in a triangle, and rise and fall again around each whole round of `r` pages. A round has
//! `n` stripes, one of each die. Round and `n` are those whose triangles fit best in least squares, with a
//! level for pairs that are held up by chance and one for collisions that do not show.

use super::parallelism::PAIRS;
use crate::stats::Estimate;

/// What addresses go round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Layout {
    /// Pages until the same die again.
    pub round: f64,
    /// Dies.
    pub units: Estimate,
    /// Whether what was seen is triangles, but for chance.
    pub is_clear: bool,
}

impl Layout {
    /// So many units that addresses go round page by page.
    pub(super) fn page_by_page(units: u64) -> Self {
        let units = units as f64;
        Layout {
            round: units,
            units: Estimate::new(units, units, units),
            is_clear: true,
        }
    }

    /// Pages that lie together on a die.
    pub(super) fn stripe(&self) -> Estimate {
        let units = self.units;
        Estimate::new(
            self.round / units.estimate,
            self.round / units.high,
            self.round / units.low,
        )
    }
}

/// Most dies that are looked for.
const UNITS_MAX: usize = 256;
/// Numbers of dies that the round is looked for with.
const COARSE: [usize; 14] = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192];
/// Pages beyond a round that must have been looked at.
const BEYOND: usize = 8;
/// Share of the variance that triangles must explain.
const EXPLAINED: f64 = 0.6;
/// Share of pairs that may be held up by something else than a die that they share.
const CHANCE: f64 = 0.15;
/// Squared errors beyond the least, in those of one share, at which a number of dies is ruled out: five
/// standard deviations, for errors of neighbouring distances go together.
const RULED_OUT: f64 = 25.0;

/// Share of pairs that are told wrongly at least, and squared errors, as a multiple of those by chance, beyond which what was seen is
/// no triangles: where pairs of some kinds of pages alone show, they fit numbers of dies that are a third too large.
const RARE: f64 = 0.02;
const MISFIT: f64 = 1.75;

/// Shares of collisions by the place in a round.
struct Folded {
    counts: Vec<f64>,
    sums: Vec<f64>,
    /// Sum of squares of all shares.
    squares: f64,
}

impl Folded {
    fn of(shares: &[f64], from: usize, round: usize) -> Self {
        let mut folded = Folded {
            counts: vec![0.0; round],
            sums: vec![0.0; round],
            squares: shares[from..].iter().map(|share| share * share).sum(),
        };
        for (i, share) in shares.iter().enumerate().skip(from) {
            let place = (i + 1) % round;
            folded.counts[place] += 1.0;
            folded.sums[place] += share;
        }
        folded
    }

    /// Squared errors that triangles of so many dies leave. Infinite where collisions would have to grow
    /// rarer towards a whole round.
    fn errors(&self, units: usize) -> f64 {
        self.fit(units).map_or(f64::INFINITY, |fit| fit.errors)
    }

    /// Height of a triangle at a place in the round: the share of pairs that far apart that share one of so many dies.
    fn height(&self, place: usize, units: usize) -> f64 {
        let round = self.counts.len();
        let stripe = round as f64 / units as f64;
        let distance = place.min(round - place) as f64;
        (1.0 - distance / stripe).max(0.0)
    }

    fn fit(&self, units: usize) -> Option<Fit> {
        let (mut n, mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (place, (count, sum)) in self.counts.iter().zip(&self.sums).enumerate() {
            let height = self.height(place, units);
            n += count;
            x += count * height;
            y += sum;
            xx += count * height * height;
            xy += sum * height;
        }
        let (spread, common) = (xx - x * x / n, xy - x * y / n);
        let slope = common / spread;
        (spread > 0.0 && common > 0.0).then(|| Fit {
            level: (y - slope * x) / n,
            slope,
            errors: (self.squares - y * y / n - common * common / spread).max(0.0),
        })
    }

    /// Squared errors beside those that shares of `pairs` pairs have by chance where triangles of so many dies are the truth.
    fn misfit(&self, units: usize, pairs: f64) -> f64 {
        let Some(fit) = self.fit(units) else {
            return f64::INFINITY;
        };
        let by_chance = self.counts.iter().enumerate().map(|(place, count)| {
            let share = fit.level + fit.slope * self.height(place, units);
            let share = share.clamp(RARE, 1.0 - RARE);
            count * share * (1.0 - share) / pairs
        });
        fit.errors / by_chance.sum::<f64>()
    }
}

/// Triangles that fit best.
struct Fit {
    level: f64,
    slope: f64,
    errors: f64,
}

/// The layout, if a whole round shows in the shares of collisions at distances of 1, 2, 3, ... pages. The first `from` of them
/// tell nothing: such pages may lie in one page of flash, which is read once.
pub(super) fn of(shares: &[f64], from: usize) -> Option<Layout> {
    let longest = shares.len().checked_sub(BEYOND)?;
    let least =
        |best: (f64, usize), found: (f64, usize)| if found.0 < best.0 { found } else { best };
    let coarse = (4..=longest).map(|round| {
        let folded = Folded::of(shares, from, round);
        let errors = COARSE
            .iter()
            .filter(|n| 2 * **n <= round)
            .map(|n| folded.errors(*n));
        (errors.fold(f64::INFINITY, f64::min), round)
    });
    let (_, near) = coarse.fold((f64::INFINITY, 0), least);
    let rounds = near.saturating_sub(3).max(4)..=(near + 3).min(longest);
    let fine = rounds.map(|round| {
        let folded = Folded::of(shares, from, round);
        let errors = (2..=UNITS_MAX.min(round / 2)).map(|n| folded.errors(n));
        (errors.fold(f64::INFINITY, f64::min), round)
    });
    let (errors, round) = fine.fold((f64::INFINITY, 0), least);
    let told = &shares[from..];
    let mean = told.iter().sum::<f64>() / told.len() as f64;
    let variance: f64 = told.iter().map(|share| (share - mean).powi(2)).sum();
    if errors > (1.0 - EXPLAINED) * variance || !peaks_at(shares, from, round) {
        return None;
    }
    let folded = Folded::of(shares, from, round);
    // A little for rounding, where triangles fit exactly.
    let allowed = errors * (1.0 + RULED_OUT / told.len() as f64) + 1e-9;
    let tried = (2..=UNITS_MAX.min(round / 2)).filter(|n| is_whole(round, *n));
    let tried = tried.map(|n| (folded.errors(n), n));
    let fitting: Vec<(f64, usize)> = tried.filter(|(errors, _)| *errors <= allowed).collect();
    let best_of = |some: &[(f64, usize)]| some.iter().min_by(|a, b| a.0.total_cmp(&b.0)).copied();
    let whole: Vec<(f64, usize)> = fitting
        .iter()
        .copied()
        .filter(|(_, n)| round % n == 0)
        .collect();
    let best = best_of(&whole).or(best_of(&fitting))?.1;
    let (pages, round) = (round, (round as f64 / best as f64).round() * best as f64);
    let (fewest, most) = (fitting.first()?.1, fitting.last()?.1);
    // A round is told by its far side as well.
    if pages + pages / (2 * best) > shares.len() {
        return None;
    }
    // Any two pages share one of n dies once in n times. Where far more collide, something else holds pairs up.
    if mean > CHANCE + 1.0 / best as f64 {
        return None;
    }
    Some(Layout {
        round,
        is_clear: folded.misfit(best, PAIRS as f64) <= MISFIT,
        units: Estimate::new(best as f64, fewest as f64, most as f64),
    })
}

/// Whether so many dies hold whole pages of a round, which may be off by one: pages of flash are not split, and triangles of 23 and 25
/// dies fit nearly as well as those of 24.
fn is_whole(round: usize, units: usize) -> bool {
    let beyond = round % units;
    beyond.min(units - beyond) <= 1
}

/// Whether collisions return after a round: most pairs at that distance are on one die.
fn peaks_at(shares: &[f64], from: usize, round: usize) -> bool {
    let after = (from + 2).div_ceil(round).max(1) * round;
    let around = shares.get(after - 2..=after).unwrap_or_default();
    around.iter().sum::<f64>() > 1.5
}

/// Pages of a stripe by the first triangle alone, which is twice as wide as its area.
pub(super) fn first_triangle(shares: &[f64]) -> Option<Estimate> {
    let quiet = |from: &usize| {
        shares[*from..(from + 4).min(shares.len())]
            .iter()
            .sum::<f64>()
            < 0.3
    };
    let end = (0..shares.len().saturating_sub(4)).find(quiet)?;
    if end == 0 {
        return None;
    }
    let stripe = 2.0 * shares[..end].iter().sum::<f64>() + 1.0;
    Some(Estimate::new(stripe, 0.85 * stripe, 1.15 * stripe))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    /// Shares of collisions, `seen` of which show, beside `chance` of others.
    fn shares(stripe: f64, units: f64, seen: f64, chance: f64) -> Vec<f64> {
        let round = stripe * units;
        let share = |k: u32| {
            let distance = (f64::from(k) + round / 2.0).rem_euclid(round) - round / 2.0;
            chance + (seen - chance) * (1.0 - distance.abs() / stripe).max(0.0)
        };
        (1..=1024).map(share).collect()
    }

    proptest! {
        #![proptest_config(lodger_testing::config(24))]
        #[test]
        fn round_and_dies_are_found(
            stripe in 4..32u32,
            units in 2..33u32,
            seen in 0.8..1.0f64,
            chance in 0.0..0.05f64,
        ) {
            let shares = shares(f64::from(stripe), f64::from(units), seen, chance);
            let found = of(&shares, 0);
            if stripe * units > 1000 {
                return Ok(());
            }
            let found = found.unwrap();
            prop_assert_eq!(found.round, f64::from(stripe * units));
            prop_assert_eq!(found.units.estimate, f64::from(units));
        }
    }

    proptest! {
        #![proptest_config(lodger_testing::config(24))]
        /// Pages of one flash page do not collide. Where their distances count (the null) the round is missed, or the dies are.
        #[test]
        fn round_and_dies_are_found_where_a_page_is_read_once(
            page in 4..33u32,
            pages in 1..4u32,
            units in 2..33u32,
            seen in 0.85..1.0f64,
        ) {
            let stripe = page * pages;
            let mut shares = shares(f64::from(stripe), f64::from(units), seen, 0.0);
            for (k, share) in (1..page).zip(&mut shares) {
                *share = (*share - (1.0 - f64::from(k) / f64::from(page))).max(0.0);
            }
            if stripe * units > 900 {
                return Ok(());
            }
            let found = of(&shares, 64).unwrap();
            prop_assert_eq!(found.round, f64::from(stripe * units));
            prop_assert_eq!(found.units.estimate, f64::from(units));
        }
    }

    /// Shares of 12 pairs at each distance in rounds of 384 pages, drawn where `seen` says how many collide.
    fn drawn(seen: impl Fn(f64) -> f64, seed: u64) -> Vec<f64> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut share = |k: u64| {
            let collide = seen((k % 384).min(384 - k % 384) as f64);
            let chance = |_: &u64| ((rng.next_u64() >> 11) as f64) < collide * (1u64 << 53) as f64;
            (0..PAIRS).filter(chance).count() as f64 / PAIRS as f64
        };
        (1..=1024).map(&mut share).collect()
    }

    /// As met where a word line has two kinds of pages and flash is fast: fewer and fewer pairs show towards the end of a stripe, and 16
    /// dies were told for 12, of exactly so many.
    #[test]
    fn pairs_of_which_some_kinds_alone_show_are_no_triangles() {
        const MET: [f64; 9] = [0.98, 0.9, 0.8, 0.68, 0.53, 0.38, 0.24, 0.12, 0.02];
        let met = |distance: f64| {
            let at = distance / 4.0;
            let from = at as usize;
            let part = at - at.floor();
            let of = |i: usize| MET.get(i).copied().unwrap_or(0.0);
            of(from) * (1.0 - part) + of(from + 1) * part
        };
        for seed in 0..8 {
            let found = of(&drawn(met, seed), 64);
            let is_true = |units: Estimate| units.low <= 12.0 && 12.0 <= units.high;
            assert!(
                found.is_none_or(|found| !found.is_clear || is_true(found.units)),
                "{seed}: {found:?}"
            );
            let found = of(&drawn(|distance| 1.0 - distance / 32.0, seed), 64).unwrap();
            assert!(found.is_clear && found.units.estimate == 12.0, "{found:?}");
        }
    }

    /// 256 pages go round 16 dies, and noise makes the triangles of 17 fit a little better.
    #[test]
    fn dies_hold_whole_pages() {
        assert!(is_whole(256, 16) && !is_whole(192, 25) && !is_whole(256, 18));
        // A round that is told one page too short.
        assert!(is_whole(383, 12));
    }

    #[test]
    fn two_dies_leave_no_distance_without_collisions() {
        let found = of(&shares(12.0, 2.0, 1.0, 0.0), 0).unwrap();
        assert_eq!((found.round, found.units.estimate), (24.0, 2.0));
    }

    #[test]
    fn a_round_longer_than_what_was_looked_at_is_left_open() {
        let shares = shares(24.0, 64.0, 1.0, 0.0);
        assert_eq!(of(&shares, 0), None);
        let stripe = first_triangle(&shares).unwrap();
        assert!((stripe.estimate - 24.0).abs() < 1.0, "{stripe:?}");
    }

    #[test]
    fn no_collisions_give_nothing() {
        assert_eq!(of(&[0.0; 100], 0), None);
        assert_eq!(first_triangle(&[0.0; 100]), None);
    }
}
