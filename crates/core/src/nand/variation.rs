//! Scatter: how much longer or shorter than the mean an operation takes, by where it takes place.
//!
//! Word lines, blocks and dies are not alike, and the time of an operation follows from the place alone: it is
//! the same each time. It is worked out from the address by a hash and kept nowhere, so that memory does
//! not grow with what is touched. Deviates of pages, blocks and dies add up, each near a normal distribution.

use super::operation::{FlashOp, OpKind};
use crate::rng::mix;
use crate::spec::VariationSpec;
use serde::{Deserialize, Serialize};

/// Mean of the sum of eight random bytes, and its standard deviation: sqrt(8 (256^2 - 1) / 12).
const SUM_MEAN: i64 = 1020;
const SUM_DEVIATION: i64 = 209;

/// Millionths.
const WHOLE: i64 = 1_000_000;
/// However far deviates add up, an operation takes a tenth of its time.
const LEAST: i64 = WHOLE / 10;

/// What an address is an address of.
#[derive(Clone, Copy)]
enum Level {
    Die,
    Block,
    Read,
    Program,
    Erase,
}

/// Times of one drive's flash: another seed is another drive.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Variation {
    spec: VariationSpec,
    seed: u64,
}

impl Variation {
    pub(super) fn new(spec: VariationSpec, seed: u64) -> Self {
        Variation { spec, seed }
    }

    /// What an operation that takes `array_ps` in the mean takes where it takes place.
    pub(super) fn array_ps(&self, op: &FlashOp, array_ps: u64) -> u64 {
        let die = u64::from(op.die.0);
        let block = die << 32 | u64::from(op.superblock.0);
        let page = u64::from(op.ppn.0);
        let own = match op.kind {
            OpKind::Read => self.deviation(Level::Read, page, self.spec.read_ppm),
            OpKind::Program => self.deviation(Level::Program, page, self.spec.program_ppm),
            OpKind::Erase => self.deviation(Level::Erase, block, self.spec.erase_ppm),
        };
        let share = WHOLE
            + own
            + self.deviation(Level::Block, block, self.spec.block_ppm)
            + self.deviation(Level::Die, die, self.spec.die_ppm);
        // A second at most (spec), and a share of six at most: 6e18.
        array_ps * share.max(LEAST) as u64 / WHOLE as u64
    }

    fn deviation(&self, level: Level, address: u64, ppm: u32) -> i64 {
        if ppm == 0 {
            return 0;
        }
        let bytes = mix(self.seed ^ mix(address ^ (level as u64) << 60)).to_le_bytes();
        let sum: i64 = bytes.iter().map(|&byte| i64::from(byte)).sum();
        i64::from(ppm) * (sum - SUM_MEAN) / SUM_DEVIATION
    }
}
