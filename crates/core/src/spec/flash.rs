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
