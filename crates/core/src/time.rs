//! Simulated time: integer picoseconds, and rates that are rounded once.
//!
//! A `u64` of picoseconds lasts 213 days of simulated time.

/// Picoseconds in one nanosecond.
pub const NS: u64 = 1_000;
/// Picoseconds in one microsecond.
pub const US: u64 = 1_000_000;
/// Picoseconds in one millisecond.
pub const MS: u64 = 1_000_000_000;
/// Picoseconds in one second.
pub const S: u64 = 1_000_000_000_000;

/// No run lasts longer: 200 days, so that what is booked beyond its end is still below the end of a `u64`.
pub const RUN_PS_MAX: u64 = 200 * 24 * 3600 * S;

/// Time to move `bytes` at `bytes_per_s`, rounded up once to whole picoseconds.
///
/// # Panics
/// If the rate is zero: a spec with a zero rate never passes validation.
#[must_use]
pub const fn transfer_ps(bytes: u64, bytes_per_s: u64) -> u64 {
    assert!(bytes_per_s > 0);
    if bytes <= u64::MAX / S {
        // Short division, as for all but the largest transfers.
        return (bytes * S).div_ceil(bytes_per_s);
    }
    let numerator = bytes as u128 * S as u128;
    numerator.div_ceil(bytes_per_s as u128) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_above_1000_mt_s_takes_time() {
        // MQSim's bus rounds to whole nanoseconds per two bytes: above 1000 MT/s a transfer is free.
        let at = |mt_s: u64| transfer_ps(8192, mt_s * 1_000_000);
        assert_eq!(at(40), 204_800_000);
        assert_eq!(at(1000), 8_192_000);
        assert_eq!(at(1200), 6_826_667);
        assert_eq!(at(4800), 1_706_667);
    }

    #[test]
    fn short_and_long_division_agree() {
        let longest = u64::MAX / S;
        for bytes in [0, 1, 4096, longest - 1, longest, longest + 1, 1 << 40] {
            for rate in [1, 3, 999_999_937, 3_200_000_000, u64::MAX] {
                let exact = (u128::from(bytes) * u128::from(S)).div_ceil(u128::from(rate));
                assert_eq!(transfer_ps(bytes, rate), exact as u64, "{bytes} at {rate}");
            }
        }
    }
}
