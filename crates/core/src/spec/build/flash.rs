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
        pages_per_superblock: nand.dies() * nand.pages_per_block,
    };
    if ageing.soft_reads > 0 && ageing.soft_correctable < ageing.correctable {
        let must = "must not be less than `nand.ageing.correctable`";
        return Err(values.contradiction("nand.ageing.soft_correctable", must));
    }
    Ok(Some(ageing))
}
