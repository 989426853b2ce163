//! How flash differs from place to place.

use crate::spec::VariationSpec;
use crate::spec::parse::Values;

/// A share in millionths.
fn millionths(values: &Values, path: &str) -> u32 {
    (values.ratio(path) * 1e6).round() as u32
}

pub(super) fn variation(values: &Values) -> Option<VariationSpec> {
    let share = |of: &str| millionths(values, &format!("nand.variation.{of}"));
    values.has("nand.variation.read").then(|| VariationSpec {
        read_ppm: share("read"),
        program_ppm: share("program"),
        erase_ppm: share("erase"),
        block_ppm: share("block"),
        die_ppm: share("die"),
    })
}
