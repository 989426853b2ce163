//! How flash differs from place to place, and how it ages.

use crate::spec::error::SpecError;
use crate::spec::parse::Values;
use crate::spec::{AgeingSpec, ErrorSpec, NandSpec, VariationSpec};

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

/// How flash ages, if it does.
pub(super) fn ageing(values: &Values, nand: &NandSpec) -> Result<Option<AgeingSpec>, SpecError> {
    if !values.has("nand.ageing.endurance") {
        return Ok(None);
    }
    let ratio = |of: &str| values.ratio(&format!("nand.ageing.{of}"));
    let small = |of: &str| values.small(&format!("nand.ageing.{of}"));
    let number = |of: &str| values.number(&format!("nand.ageing.{of}"));
    let error = |of: &str| values.ratio(&format!("nand.ageing.errors.{of}"));
    let ageing = AgeingSpec {
        endurance: small("endurance"),
        erased: small("erased"),
        age_days: ratio("age_days"),
        acceleration: small("acceleration"),
        errors: ErrorSpec {
            base: error("base"),
            wear: error("wear"),
            wear_power: error("wear_power"),
            retention: error("retention"),
            retention_wear_power: error("retention_wear_power"),
            retention_power: error("retention_power"),
            disturb: error("disturb"),
            disturb_wear_power: error("disturb_wear_power"),
            disturb_power: error("disturb_power"),
            spread: error("spread"),
        },
        correctable: ratio("correctable"),
        decode_ps: number("decode"),
        retries: small("retries"),
        retry_gain: ratio("retry_gain"),
        soft_reads: small("soft_reads"),
        soft_correctable: ratio("soft_correctable"),
        soft_decode_ps: number("soft_decode"),
        refresh: small("refresh"),
        spare_blocks: small("spare_blocks"),
        factory_bad: ratio("factory_bad"),
        program_failures: ratio("program_failures"),
        erase_failures: ratio("erase_failures"),
        pages_per_superblock: nand.dies() * nand.planes * nand.pages_per_block,
    };
    if ageing.soft_reads > 0 && ageing.soft_correctable < ageing.correctable {
        let must = "must not be less than `nand.ageing.correctable`";
        return Err(values.contradiction("nand.ageing.soft_correctable", must));
    }
    Ok(Some(ageing))
}

/// That there are as many spare blocks as are bad from the start in the mean: nothing else stands in for them.
pub(super) fn bad_blocks_have_spares(
    values: &Values,
    ageing: &AgeingSpec,
    blocks_of_die: u64,
) -> Result<(), SpecError> {
    // A share with few digits is not off by as much: 0.07 of 100 blocks is 7 of them.
    const ROUNDING: f64 = 1e-6;
    let (blocks, spares) = (blocks_of_die as f64, f64::from(ageing.spare_blocks));
    let bad = ageing.factory_bad * blocks;
    if bad <= spares + ROUNDING {
        return Ok(());
    }
    let path = "nand.ageing.factory_bad";
    let must = format!(
        "must be at most {}: {} of the {blocks_of_die} blocks of a die is more than its \
         `nand.ageing.spare_blocks` ({spares})",
        // Rounded down: the number shown must be one that is few enough.
        (spares / blocks * 1e4).floor() / 1e4,
        ageing.factory_bad,
    );
    let mut error = values.contradiction(path, &must);
    error.hint = Some(format!(
        "`nand.ageing.spare_blocks` of {} or more stand in for them; or leave `nand.ageing.factory_bad` out, and no block is bad",
        (bad - ROUNDING).ceil()
    ));
    Err(error)
}
