//! fio's skewed random distributions, as fio defines them.
//!
//! The formulas are those of fio's `lib/zipf.c` and `lib/gauss.c`; the stream of uniform numbers is
//! not fio's, so single offsets differ and distributions do not. As in fio, zipf, pareto and normal
//! hash the rank to spread hot blocks over the range, then add an offset: two ranks may fall on the
//! same block, so the tail is a little flatter than the pure law.

use super::power;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

/// fio's `GOLDEN_RATIO_64`.
const GOLDEN_RATIO: u64 = 0x61C8_8646_80B5_83EB;
/// fio sums at most this many terms of zeta.
const ZETA_TERMS_MAX: u64 = 10_000_000;

/// A uniform number in `[0, 1)` with 53 random bits.
#[inline]
pub(super) fn unit(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A uniform whole number below `bound` (Lemire's multiplication; the bias is below 2^-10 of one
/// part for any drive that exists).
#[inline]
pub(super) fn below(rng: &mut Xoshiro256PlusPlus, bound: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// Remainders by a divisor known beforehand, exact (Lemire, Kaser and Kurz, "Faster remainder by
/// direct computation", 2019): three multiplications instead of a division.
#[derive(Clone, Copy, Debug)]
struct Remainder {
    divisor: u64,
    /// `2^128 / divisor`, rounded up.
    inverse: u128,
}

impl Remainder {
    fn new(divisor: u64) -> Self {
        Self {
            divisor,
            inverse: (u128::MAX / u128::from(divisor)).wrapping_add(1),
        }
    }

    #[inline]
    fn of(self, number: u64) -> u64 {
        let fraction = self.inverse.wrapping_mul(u128::from(number));
        let low = u128::from(fraction as u64) * u128::from(self.divisor);
        let high = (fraction >> 64) * u128::from(self.divisor);
        ((high + (low >> 64)) >> 64) as u64
    }
}

/// Scatters ranks over the range, as fio does.
#[derive(Clone, Copy, Debug)]
struct Scatter {
    shift: u64,
    blocks: Remainder,
}

impl Scatter {
    #[inline]
    fn place(self, rank: u64) -> u64 {
        let hash = rank.wrapping_mul(GOLDEN_RATIO);
        self.blocks.of(hash.wrapping_add(self.shift))
    }
}

/// `zipf:theta[:center]`: rank r is drawn with probability proportional to `1 / r^theta`.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    blocks: u64,
    alpha: f64,
    eta: f64,
    zeta: f64,
    second: f64,
    scatter: Scatter,
}

impl Zipf {
    /// Over `blocks` blocks, `theta` positive and not 1. `center` puts rank 0's hash at that
    /// fraction of the range; otherwise the place is random.
    pub(super) fn new(
        blocks: u64,
        theta: f64,
        center: Option<f64>,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Self {
        let zeta = zeta(blocks.min(ZETA_TERMS_MAX), theta);
        let second = 1.0 + power::pow(0.5, theta);
        Self {
            blocks,
            alpha: 1.0 / (1.0 - theta),
            eta: (1.0 - power::pow(2.0 / blocks as f64, 1.0 - theta)) / (1.0 - second / zeta),
            zeta,
            second,
            scatter: scatter(blocks, center, rng),
        }
    }

    /// The next block.
    #[inline]
    pub(super) fn next(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        self.scatter.place(self.rank(unit(rng)))
    }

    #[inline]
    fn rank(&self, uniform: f64) -> u64 {
        let z = uniform * self.zeta;
        if z < 1.0 {
            0
        } else if z < self.second {
            1
        } else {
            let x = (self.eta * uniform - self.eta + 1.0).max(f64::MIN_POSITIVE);
            (self.blocks as f64 * power::pow(x, self.alpha)) as u64
        }
    }
}

/// `pareto:h[:center]`: a share `h` of the blocks receives a share `1 - h` of the accesses.
#[derive(Clone, Debug)]
pub(super) struct Pareto {
    blocks: u64,
    exponent: f64,
    scatter: Scatter,
}

impl Pareto {
    /// Over `blocks` blocks, `h` between 0 and 1.
    pub(super) fn new(
        blocks: u64,
        h: f64,
        center: Option<f64>,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Self {
        Self {
            blocks,
            exponent: power::ln(h) / power::ln(1.0 - h),
            scatter: scatter(blocks, center, rng),
        }
    }

    /// The next block.
    #[inline]
    pub(super) fn next(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        self.scatter.place(self.rank(unit(rng)))
    }

    #[inline]
    fn rank(&self, uniform: f64) -> u64 {
        let uniform = uniform.max(f64::MIN_POSITIVE);
        ((self.blocks - 1) as f64 * power::pow(uniform, self.exponent)) as u64
    }
}

/// `normal:deviation[:center]`: the mean of twelve uniform draws (standard deviation: a twelfth of
/// the range), moved by a uniform amount within `deviation` per cent of the range.
#[derive(Clone, Debug)]
pub(super) struct Normal {
    blocks: u64,
    deviation: u64,
    scatter: Scatter,
}

impl Normal {
    /// Over `blocks` blocks; `deviation` in per cent.
    pub(super) fn new(blocks: u64, deviation: f64, center: Option<f64>) -> Self {
        let offset = center.map_or(0, |c| (blocks as f64 * (c - 0.5)) as i64);
        Self {
            blocks,
            deviation: ((blocks as f64 * deviation / 100.0).ceil() as u64).min(blocks / 2),
            scatter: Scatter {
                shift: offset.rem_euclid(blocks as i64) as u64,
                blocks: Remainder::new(blocks),
            },
        }
    }

    /// The next block.
    pub(super) fn next(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        self.scatter.place(self.rank(rng))
    }

    fn rank(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        let sum: u64 = (0..12).map(|_| below(rng, self.blocks + 1)).sum();
        let mut rank = sum.div_ceil(12) as i64;
        if self.deviation > 0 {
            let mut moved = below(rng, self.deviation) as i64 - (self.deviation / 2) as i64;
            while moved != 0 && !(0..self.blocks as i64).contains(&(rank + moved)) {
                moved /= 2;
            }
            rank += moved;
        }
        rank as u64
    }
}

fn scatter(blocks: u64, center: Option<f64>, rng: &mut Xoshiro256PlusPlus) -> Scatter {
    let shift = match center {
        Some(center) => (blocks as f64 * center) as u64 % blocks,
        None => rng.next_u64() % blocks,
    };
    Scatter {
        shift,
        blocks: Remainder::new(blocks),
    }
}

/// The sum of `1 / i^theta` for i from 1 to `terms`: the first thousand one by one, the rest by the
/// Euler-Maclaurin formula, whose own error is below 1e-12 from there on.
fn zeta(terms: u64, theta: f64) -> f64 {
    const DIRECT: u64 = 1000;
    let term = |i: f64| power::pow(i, -theta);
    let mut sum: f64 = (1..=terms.min(DIRECT)).map(|i| term(i as f64)).sum();
    if terms > DIRECT {
        let (a, b) = (DIRECT as f64, terms as f64);
        let integral = (power::pow(b, 1.0 - theta) - power::pow(a, 1.0 - theta)) / (1.0 - theta);
        let slopes = theta * (term(a) / a - term(b) / b);
        sum += integral + (term(b) - term(a)) / 2.0 + slopes / 12.0;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_xoshiro::rand_core::SeedableRng;

    fn rng() -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(7)
    }

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn remainders_are_exact(number in any::<u64>(), divisor in 1u64.., small in 1u64..9) {
            for divisor in [divisor, small, divisor >> 40 | 1, u64::MAX] {
                prop_assert_eq!(Remainder::new(divisor).of(number), number % divisor);
            }
        }
    }

    #[test]
    fn zeta_agrees_with_the_plain_sum() {
        for theta in [0.2, 0.9, 0.999, 1.1, 1.4, 3.0] {
            for terms in [1, 2, 999, 1000, 1001, 5000, 200_000] {
                let naive: f64 = (1..=terms).map(|i| f64::from(i).powf(-theta)).sum();
                let ours = zeta(u64::from(terms as u32), theta);
                assert!((ours / naive - 1.0).abs() < 1e-8, "{theta} {terms}");
            }
        }
    }

    /// Share of the draws that fall on ranks below `top`.
    fn share(draws: u32, top: u64, mut rank: impl FnMut(f64) -> u64) -> f64 {
        let mut rng = rng();
        let hits = (0..draws).filter(|_| rank(unit(&mut rng)) < top).count();
        hits as f64 / f64::from(draws)
    }

    #[test]
    fn zipf_is_as_skewed_as_the_law_says() {
        for theta in [0.5, 0.9, 1.1, 1.4] {
            let blocks = 100_000;
            let zipf = Zipf::new(blocks, theta, None, &mut rng());
            for top in [1, 2, 10, 1000, 10_000] {
                let law = zeta(top, theta) / zeta(blocks, theta);
                let seen = share(200_000, top, |uniform| zipf.rank(uniform));
                // fio's formula is exact for the first two ranks and approximates the others.
                let slack = if top <= 2 { 0.01 } else { 0.12 };
                assert!(
                    (seen - law).abs() < slack * law + 0.001,
                    "theta {theta}, top {top}: {seen}, not {law}"
                );
            }
        }
    }

    #[test]
    fn pareto_obeys_its_share() {
        for h in [0.1, 0.2, 0.4] {
            let blocks = 1000;
            let pareto = Pareto::new(blocks, h, None, &mut rng());
            let top = (blocks as f64 * h) as u64;
            let seen = share(200_000, top, |uniform| pareto.rank(uniform));
            assert!((seen - (1.0 - h)).abs() < 0.01, "{h}: {seen}");
        }
    }

    #[test]
    fn normal_has_its_mean_in_the_middle_and_a_deviation_of_a_twelfth() {
        let (blocks, draws) = (1u64 << 20, 100_000);
        let normal = Normal::new(blocks, 0.0, None);
        let mut rng = rng();
        let ranks: Vec<f64> = (0..draws).map(|_| normal.rank(&mut rng) as f64).collect();
        let mean = ranks.iter().sum::<f64>() / f64::from(draws);
        let variance = ranks.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / f64::from(draws);
        assert!((mean / blocks as f64 - 0.5).abs() < 0.002, "{mean}");
        assert!((variance.sqrt() / blocks as f64 * 12.0 - 1.0).abs() < 0.02);
    }

    #[test]
    fn hostile_parameters_stay_in_range() {
        let mut rng = rng();
        for blocks in [1, 2, 3, 1 << 40, 1 << 54] {
            for theta in [1e-9, 0.999_999_999, 1.000_000_001, 30.0, 1e6] {
                let zipf = Zipf::new(blocks, theta, Some(1.0), &mut rng);
                assert!((0..100).all(|_| zipf.next(&mut rng) < blocks));
            }
            for h in [1e-300, 0.5, 1.0 - 1e-16] {
                let pareto = Pareto::new(blocks, h, None, &mut rng);
                assert!((0..100).all(|_| pareto.next(&mut rng) < blocks));
            }
            for deviation in [0.0, 1e-9, 50.0, 99.9] {
                for center in [None, Some(0.0), Some(1.0)] {
                    let normal = Normal::new(blocks, deviation, center);
                    assert!((0..100).all(|_| normal.next(&mut rng) < blocks));
                }
            }
        }
    }
}
