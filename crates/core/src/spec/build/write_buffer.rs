//! Role `write_buffer`.

use super::super::error::SpecError;
use super::super::parse::Values;
use super::super::units::show_size;
use super::super::words::{Acknowledge, Log, Pacing};
use super::super::{NandSpec, SLOT_BYTES, Tier, TierSpecs, WriteBufferSpec};
use super::{share_left, tier_there};

pub(super) fn build(
    values: &Values,
    nand: &NandSpec,
    tiers: &TierSpecs,
) -> Result<WriteBufferSpec, SpecError> {
    let tier: Tier = values.choice("role.write_buffer.tier");
    tier_there(values, "role.write_buffer.tier", tier)?;
    let bytes = values.number("role.write_buffer.size");
    let least = nand.program_bytes();
    if bytes < least {
        let must = format!(
            "must hold a program operation of one die ({})",
            show_size(least)
        );
        return Err(values.contradiction("role.write_buffer.size", &must));
    }
    let permille = |path: &str| (values.ratio(path) * 1000.0).round() as u32;
    let high_permille = permille("role.write_buffer.high");
    let low_permille = permille("role.write_buffer.low");
    if low_permille > high_permille {
        let high = values.shown("role.write_buffer.high");
        let must = format!("must not be above `role.write_buffer.high` ({high})");
        return Err(values.contradiction("role.write_buffer.low", &must));
    }
    let log_bytes = log(values, tiers, tier)?;
    Ok(WriteBufferSpec {
        tier,
        bytes,
        high_permille,
        low_permille,
        acknowledges_programmed: acknowledges_programmed(values),
        paces: match values.choice("role.write_buffer.pacing") {
            Pacing::None => false,
            Pacing::Drain => true,
        },
        log_bytes,
    })
}

fn acknowledges_programmed(values: &Values) -> bool {
    match values.choice("role.write_buffer.acknowledge") {
        Acknowledge::Buffered => false,
        Acknowledge::Programmed => true,
    }
}

/// Bytes of the log; 0 without one.
fn log(values: &Values, tiers: &TierSpecs, tier: Tier) -> Result<u64, SpecError> {
    const LOG: &str = "role.write_buffer.log";
    match values.choice(LOG) {
        Log::None => return Ok(0),
        Log::Pm => {}
    }
    tier_there(values, LOG, Tier::Pm)?;
    let persistent = tiers.cxl.as_ref().is_some_and(|cxl| cxl.persistent);
    let volatile = match tier {
        Tier::Sram | Tier::Dram | Tier::Hmb => true,
        Tier::Cxl => !persistent,
        Tier::Pm | Tier::Slc | Tier::HpbCache => false,
    };
    if !volatile || acknowledges_programmed(values) {
        let must = "needs a buffer in volatile memory that acknowledges what is not in flash";
        return Err(values.contradiction(LOG, must));
    }
    let size = "role.write_buffer.log_size";
    if values.has(size) {
        return Ok(values.number(size) / SLOT_BYTES * SLOT_BYTES);
    }
    if values.tiers("role.map.tiers").contains(&Tier::Pm) {
        let must =
            "needs `role.write_buffer.log_size`: the map takes what other roles leave of `pm`";
        return Err(values.contradiction(LOG, must));
    }
    let left = share_left(values, tiers, Tier::Pm)? / SLOT_BYTES * SLOT_BYTES;
    if left == 0 {
        return Err(
            values.contradiction(LOG, "needs 4KiB of `tier.pm.size` that no other role takes")
        );
    }
    Ok(left)
}
