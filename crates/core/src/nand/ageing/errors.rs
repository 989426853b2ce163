//! Raw bit error rates in whole numbers: the same on every machine, which powers of floating-point numbers are not.

use crate::spec::AgeingSpec;
use serde::{Deserialize, Serialize};

/// A raw bit error rate, in parts of 2^40.
pub type ErrorRate = u64;

const RATE_BITS: u32 = 40;
/// Half of all bits are wrong: there is nothing left of the data.
const RATE_MAX: ErrorRate = 1 << (RATE_BITS - 1);
/// Logarithms, to base 2, and exponents are in parts of this.
const ONE: i64 = 1 << 16;
/// 2^(1/2), 2^(1/4) ... 2^(1/2^16), in parts of 2^32.
const ROOTS: [u64; 16] = [
    6_074_000_999,
    5_107_605_667,
    4_683_695_047,
    4_485_121_743,
    4_389_014_833,
    4_341_736_423,
    4_318_288_543,
    4_306_612_133,
    4_300_785_773,
    4_297_875_550,
    4_296_421_177,
    4_295_694_174,
    4_295_330_720,
    4_295_149_004,
    4_295_058_149,
    4_295_012_722,
];
const MS_PER_DAY: u64 = 86_400_000;

/// Logarithm of a number that is not 0, in parts of [`ONE`], rounded down.
fn log2(of: u64) -> i64 {
    let whole = of.ilog2();
    // The mantissa, in parts of 2^31: squared, its next bit says whether it passes 2.
    let mut mantissa = if whole >= 31 {
        of >> (whole - 31)
    } else {
        of << (31 - whole)
    };
    let mut fraction = 0;
    for _ in 0..16 {
        mantissa = (mantissa * mantissa) >> 31;
        let bit = mantissa >> 32;
        mantissa >>= bit;
        fraction = fraction << 1 | bit as i64;
    }
    i64::from(whole) * ONE + fraction
}

/// 2 to the power of `exponent` / [`ONE`], rounded down, at most [`RATE_MAX`].
fn exp2(exponent: i64) -> ErrorRate {
    let (whole, fraction) = (exponent >> 16, exponent & (ONE - 1));
    if whole >= i64::from(RATE_BITS) - 1 {
        return RATE_MAX;
    }
    if whole < 0 {
        return 0;
    }
    let mut mantissa = 1u64 << 32;
    for (bit, root) in (0..16).rev().zip(ROOTS) {
        if fraction >> bit & 1 != 0 {
            mantissa = ((u128::from(mantissa) * u128::from(root)) >> 32) as u64;
        }
    }
    (u128::from(mantissa) << whole >> 32) as u64
}

/// A factor of a power law: logarithm of it as a rate, and powers of erases and of something else.
#[derive(Clone, Copy, Serialize, Deserialize, Debug)]
struct Law {
    /// `None`: the factor is 0.
    log2: Option<i64>,
    erases_power: i64,
    other_power: i64,
}

impl Law {
    fn new(factor: f64, erases_power: f64, other_power: f64) -> Self {
        // Powers of two change no digit: 2^23 more than a rate has, so that small factors keep theirs.
        let scaled = (factor * (1u64 << 63) as f64) as u64;
        Law {
            log2: (scaled > 0).then(|| log2(scaled) - (63 - i64::from(RATE_BITS)) * ONE),
            erases_power: (erases_power * ONE as f64).round() as i64,
            other_power: (other_power * ONE as f64).round() as i64,
        }
    }

    /// `log2_erases`, `log2_other`: `None` for 0, whose powers are 0.
    fn rate(&self, log2_erases: Option<i64>, log2_other: Option<i64>) -> ErrorRate {
        let power = |log2: Option<i64>, power: i64| match (log2, power) {
            (_, 0) => Some(0),
            (Some(log2), power) => Some(((i128::from(log2) * i128::from(power)) >> 16) as i64),
            (None, _) => None,
        };
        let exponent = self.log2.and_then(|factor| {
            Some(
                factor
                    + power(log2_erases, self.erases_power)?
                    + power(log2_other, self.other_power)?,
            )
        });
        exponent.map_or(0, exp2)
    }
}

/// The law of raw bit errors, and what decoders make of it.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Rates {
    base: ErrorRate,
    wear: Law,
    retention: Law,
    disturb: Law,
    spread_ppm: u32,
    /// What the decoder corrects.
    pub correctable: ErrorRate,
    /// What soft decoding corrects.
    pub soft_correctable: ErrorRate,
    /// What is left by a retry, in parts of 2^16.
    left: u64,
    /// Reads that are one for each page of a superblock.
    pages: u64,
}

impl Rates {
    pub fn new(spec: &AgeingSpec) -> Self {
        let rate = |share: f64| (share * (1u64 << RATE_BITS) as f64) as ErrorRate;
        let errors = &spec.errors;
        Rates {
            base: rate(errors.base),
            wear: Law::new(errors.wear, errors.wear_power, 0.0),
            retention: Law::new(
                errors.retention,
                errors.retention_wear_power,
                errors.retention_power,
            ),
            disturb: Law::new(
                errors.disturb,
                errors.disturb_wear_power,
                errors.disturb_power,
            ),
            spread_ppm: (errors.spread * 1e6).round() as u32,
            correctable: rate(spec.correctable),
            soft_correctable: rate(spec.soft_correctable),
            left: (spec.retry_gain * 65_536.0).round() as u64,
            pages: u64::from(spec.pages_per_superblock),
        }
    }

    /// The mean error rate of a superblock after so many erases, with data of that age and so many reads.
    pub fn of(&self, erases: u64, age_ms: u64, reads: u32) -> ErrorRate {
        let log = |of: u64| (of > 0).then(|| log2(of));
        let (erases, days) = (log(erases), log(age_ms).map(|log| log - log2(MS_PER_DAY)));
        let reads = log(u64::from(reads)).map(|log| log - log2(self.pages.max(1)));
        let sum = self.base
            + self.wear.rate(erases, None)
            + self.retention.rate(erases, days)
            + self.disturb.rate(erases, reads);
        sum.min(RATE_MAX)
    }

    /// That of one of its pages, which `lot` is of.
    pub fn of_page(&self, mean: ErrorRate, lot: u64) -> ErrorRate {
        let share = 1_000_000 + deviation(lot, i64::from(self.spread_ppm));
        let rate = u128::from(mean) * share.max(100_000) as u128 / 1_000_000;
        (rate as u64).min(RATE_MAX)
    }

    /// What a read with references that fit better has left of it.
    pub fn after_retry(&self, errors: ErrorRate) -> ErrorRate {
        (errors * self.left) >> 16
    }

    /// What of `most_ps` decoding takes: iterations grow with the errors, and are most where it just succeeds.
    pub fn decode_ps(&self, most_ps: u64, errors: ErrorRate) -> u64 {
        (u128::from(most_ps) * u128::from(errors) / u128::from(self.correctable.max(1))) as u64
    }
}

/// What `lot` comes to of a distribution near a normal one, with that standard deviation: the sum of eight
/// random bytes has a mean of 1020 and a deviation of sqrt(8 (256^2 - 1) / 12) = 209.
pub(super) fn deviation(lot: u64, of: i64) -> i64 {
    let sum: i64 = lot.to_le_bytes().iter().map(|&byte| i64::from(byte)).sum();
    of * (sum - 1020) / 209
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::ErrorSpec;

    /// 72-layer TLC of Kim, Choi & Min, FAST 2019.
    fn spec() -> AgeingSpec {
        AgeingSpec {
            errors: ErrorSpec {
                base: 1.48e-3,
                wear: 3.90e-10,
                wear_power: 2.05,
                retention: 6.28e-5,
                retention_wear_power: 0.14,
                retention_power: 0.54,
                disturb: 3.73e-9,
                disturb_wear_power: 0.33,
                disturb_power: 1.71,
                spread: 0.0,
            },
            pages_per_superblock: 768,
            ..AgeingSpec::none()
        }
    }

    #[test]
    fn rates_are_those_of_floating_point_numbers() {
        let spec = spec();
        let rates = Rates::new(&spec);
        let errors = spec.errors;
        for erases in [0u64, 1, 7, 300, 2_999, 70_000] {
            for age_ms in [0u64, 1, 86_400_000, 365 * 86_400_000] {
                for reads in [0u32, 1, 5_000, 4_000_000] {
                    let (c, days) = (erases as f64, age_ms as f64 / 86_400_000.0);
                    let each = f64::from(reads) / 768.0;
                    let expected = errors.base
                        + errors.wear * c.powf(errors.wear_power)
                        + errors.retention
                            * c.powf(errors.retention_wear_power)
                            * days.powf(errors.retention_power)
                        + errors.disturb
                            * c.powf(errors.disturb_wear_power)
                            * each.powf(errors.disturb_power);
                    let rate = rates.of(erases, age_ms, reads) as f64 / (1u64 << 40) as f64;
                    let expected = expected.min(0.5);
                    assert!(
                        (rate / expected - 1.0).abs() < 1e-3,
                        "{erases} {age_ms} {reads}: {rate} {expected}"
                    );
                }
            }
        }
    }
}
