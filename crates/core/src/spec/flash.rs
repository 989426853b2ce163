//! How flash differs from place to place.

use serde::{Deserialize, Serialize};

/// Scatter of array times: standard deviations, in millionths of the time.
#[derive(Clone, Copy, Serialize, Deserialize, Debug, PartialEq, Eq)]
pub struct VariationSpec {
    /// Of a page's read around those of its block.
    pub read_ppm: u32,
    /// Of a program operation around those of its block.
    pub program_ppm: u32,
    /// Of a block's erase.
    pub erase_ppm: u32,
    /// Of all operations of a block around those of its die.
    pub block_ppm: u32,
    /// Of all operations of a die.
    pub die_ppm: u32,
}

/// How flash ages.
#[derive(Clone, Copy, Serialize, Deserialize, Debug, PartialEq)]
pub struct AgeingSpec {
    /// Erases that a block is rated for.
    pub endurance: u32,
    /// Erases of each block before the run.
    pub erased: u32,
    /// Age of the data that is there from the start, days.
    pub age_days: f64,
    /// What each erase, and each second, counts for.
    pub acceleration: u32,
    /// Raw bit errors.
    pub errors: ErrorSpec,
    /// Raw bit error rate up to which the decoder corrects.
    pub correctable: f64,
    /// What decoding takes at that rate, beside `nand.ecc`.
    pub decode_ps: u64,
    /// Read retries before soft decoding.
    pub retries: u32,
    /// Share of the errors that a retry leaves.
    pub retry_gain: f64,
    /// Array reads of a soft read; 0: there is none.
    pub soft_reads: u32,
    /// Raw bit error rate up to which soft decoding corrects.
    pub soft_correctable: f64,
    /// What soft decoding takes, beside `nand.ecc`.
    pub soft_decode_ps: u64,
    /// Tries from which what was read is written anew; 0: never.
    pub refresh: u32,
    /// Spare blocks of each die.
    pub spare_blocks: u32,
    /// Share of a die's blocks that is bad from the start.
    pub factory_bad: f64,
    /// Share of blocks whose program has failed by the rated endurance.
    pub program_failures: f64,
    /// Share of blocks whose erase has failed by then.
    pub erase_failures: f64,
    /// Pages of a superblock, each plane's for itself.
    pub pages_per_superblock: u32,
}

/// Raw bit error rate: `base + wear c^wear_power + retention c^retention_wear_power d^retention_power + disturb
/// c^disturb_wear_power r^disturb_power` after c erases, d days and r reads for each page of the block.
#[derive(Clone, Copy, Serialize, Deserialize, Debug, PartialEq)]
pub struct ErrorSpec {
    /// Of new flash.
    pub base: f64,
    /// Factor of wear.
    pub wear: f64,
    /// Power of the erases there.
    pub wear_power: f64,
    /// Factor of retention.
    pub retention: f64,
    /// Power of the erases there.
    pub retention_wear_power: f64,
    /// Power of the days there.
    pub retention_power: f64,
    /// Factor of read disturb.
    pub disturb: f64,
    /// Power of the erases there.
    pub disturb_wear_power: f64,
    /// Power of the reads there.
    pub disturb_power: f64,
    /// Standard deviation between pages, as a share of the rate.
    pub spread: f64,
}

#[cfg(test)]
impl AgeingSpec {
    /// Flash that does not age.
    pub(crate) fn none() -> Self {
        let none = ErrorSpec {
            base: 0.0,
            wear: 0.0,
            wear_power: 0.0,
            retention: 0.0,
            retention_wear_power: 0.0,
            retention_power: 0.0,
            disturb: 0.0,
            disturb_wear_power: 0.0,
            disturb_power: 0.0,
            spread: 0.0,
        };
        AgeingSpec {
            endurance: 1,
            erased: 0,
            age_days: 0.0,
            acceleration: 1,
            errors: none,
            correctable: 0.5,
            decode_ps: 0,
            retries: 0,
            retry_gain: 1.0,
            soft_reads: 0,
            soft_correctable: 0.0,
            soft_decode_ps: 0,
            refresh: 0,
            spare_blocks: 0,
            factory_bad: 0.0,
            program_failures: 0.0,
            erase_failures: 0.0,
            pages_per_superblock: 1,
        }
    }
}
