//! Powers and logarithms that give the same bits on every machine.
//!
//! `f64::powf` calls the platform's maths library, whose last bit differs between systems; a
//! workload must not. These use only `+ - * /`, which IEEE 754 defines exactly, and are faster than
//! the library because a relative error of 1e-11 is plenty to choose a block.

const LN_2: f64 = std::f64::consts::LN_2;
const LOG_2_E: f64 = std::f64::consts::LOG2_E;
const STEPS: usize = 128;
const ROUND: f64 = 1.5 * (1u64 << 52) as f64;

/// `(1 / c, log2(c))` for the centre `c` of each of 128 equal parts of 1..2.
static LOG_TABLE: [(f64, f64); STEPS] = log_table();
/// `2^(i / 128)`.
static EXP_TABLE: [f64; STEPS] = exp_table();

const fn log_table() -> [(f64, f64); STEPS] {
    let mut table = [(0.0, 0.0); STEPS];
    let mut i = 0;
    while i < STEPS {
        let centre = 1.0 + (i as f64 + 0.5) / STEPS as f64;
        // ln(c) = 2 atanh((c - 1) / (c + 1)); the argument is below 1/3, so 20 terms are exact.
        let z = (centre - 1.0) / (centre + 1.0);
        let mut term = z;
        let mut sum = 0.0;
        let mut k = 0;
        while k < 20 {
            sum += term / (2 * k + 1) as f64;
            term *= z * z;
            k += 1;
        }
        table[i] = (1.0 / centre, 2.0 * sum / LN_2);
        i += 1;
    }
    table
}

const fn exp_table() -> [f64; STEPS] {
    let mut table = [0.0; STEPS];
    let mut i = 0;
    while i < STEPS {
        let x = i as f64 / STEPS as f64 * LN_2;
        let mut term = 1.0;
        let mut sum = 0.0;
        let mut k = 1;
        while k < 25 {
            sum += term;
            term *= x / k as f64;
            k += 1;
        }
        table[i] = sum;
        i += 1;
    }
    table
}

/// Base-2 logarithm of a positive, finite, normal number.
#[inline]
pub(super) fn log2(x: f64) -> f64 {
    debug_assert!(x.is_normal() && x > 0.0);
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    let (inverse, log) = LOG_TABLE[(bits >> 45) as usize & (STEPS - 1)];
    // |r| is at most 1/256, so the next term, r^5 / 5, is below 2e-13. Grouped so that the halves
    // are computed side by side: this chain is what a draw takes.
    let r = mantissa * inverse - 1.0;
    let series =
        r * ((LOG_2_E - r * (LOG_2_E / 2.0)) + r * r * (LOG_2_E / 3.0 - r * (LOG_2_E / 4.0)));
    exponent as f64 + (log + series)
}

/// Two to the power of `y`; 0 below the smallest normal number, infinity above the largest.
#[inline]
pub(super) fn exp2(y: f64) -> f64 {
    if y < -1022.0 {
        return 0.0;
    }
    if y >= 1023.5 {
        return f64::INFINITY;
    }
    // Adding 1.5 * 2^52 rounds to a whole number of 128ths and leaves it in the low bits.
    let shifted = y * STEPS as f64 + ROUND;
    let steps = shifted.to_bits();
    // |f| is at most ln(2)/256, so the next term, f^4 / 24, is below 3e-12.
    let f = (y - (shifted - ROUND) / STEPS as f64) * LN_2;
    let series = (1.0 + f) + f * f * (0.5 + f * (1.0 / 6.0));
    let scale = f64::from_bits(((steps >> 7).wrapping_add(1023)) << 52);
    EXP_TABLE[steps as usize & (STEPS - 1)] * series * scale
}

/// `x` to the power of `y`, for positive, finite, normal `x`.
#[inline]
pub(super) fn pow(x: f64, y: f64) -> f64 {
    exp2(y * log2(x))
}

/// Natural logarithm of a positive, finite, normal number.
pub(super) fn ln(x: f64) -> f64 {
    log2(x) * LN_2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exact_where_the_answer_is_exact() {
        assert_eq!(exp2(0.0), 1.0);
        assert_eq!(exp2(10.0), 1024.0);
        assert_eq!(exp2(-1022.0), f64::MIN_POSITIVE);
        assert_eq!(exp2(-1e9), 0.0);
        assert_eq!(exp2(1e9), f64::INFINITY);
        assert_eq!(exp2(f64::NEG_INFINITY), 0.0);
        assert!(ln(1.0).abs() < 1e-12);
    }

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn agrees_with_the_platform(x in 1e-15f64..1e15, y in -15f64..15.0) {
            let (ours, theirs) = (pow(x, y), x.powf(y));
            prop_assert!((ours / theirs - 1.0).abs() < 5e-11, "{ours} {theirs}");
            prop_assert!((log2(x) - x.log2()).abs() < 4e-13);
        }
    }
}
