//! The drive's own random numbers: xoshiro256++ seeded by SplitMix64 (Blackman & Vigna, 2018),
//! written out so that a result never changes with a library's version.

use serde::{Deserialize, Serialize};

/// Pseudo-random generator.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Rng([u64; 4]);

/// One step of SplitMix64: a good mix of all 64 bits.
#[inline]
#[must_use]
pub const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Rng {
    /// A generator; the same seed gives the same numbers for ever.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let a = mix(seed);
        let b = mix(a);
        let c = mix(b);
        Rng([a, b, c, mix(c)])
    }

    /// Sixty-four random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number below `bound` (bias below 2^-32 for bounds of 32 bits).
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_pinned() {
        let mut rng = Rng::new(1);
        let first = [rng.next_u64(), rng.next_u64()];
        let mut again = Rng::new(1);
        assert_eq!(first, [again.next_u64(), again.next_u64()]);
        assert!((0..1000).all(|_| rng.below(7) < 7));
    }
}
