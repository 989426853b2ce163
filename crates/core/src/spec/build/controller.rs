//! The controller, and its memory for data read from flash.

use super::tier_there;
use crate::spec::error::SpecError;
use crate::spec::parse::Values;
use crate::spec::units::show_size;
use crate::spec::{ControllerSpec, ReadAheadSpec, ReadCacheSpec, SLOT_BYTES};

pub(super) fn controller(values: &Values) -> Result<ControllerSpec, SpecError> {
    Ok(ControllerSpec {
        cores: values.small("controller.cores"),
        read_ps: values.number("controller.read"),
        write_ps: values.number("controller.write"),
        next_slot_ps: values.number("controller.next_slot"),
        flush_ps: values.number("controller.flush"),
        trim_ps: values.number("controller.trim"),
        map_fill_ps: values.number("controller.map_fill"),
        command_slots: values.small("controller.command_slots"),
        arbitration_burst: values.small("controller.arbitration_burst"),
        transfer_bytes_max: transfer_bytes_max(values)?,
        namespaces_max: namespaces_max(values),
        read_ahead: read_ahead(values),
    })
}

/// Largest transfer of a command, as MDTS can say it (NVM Express Base 2.0, figure 275): memory pages of 4 KiB to
/// a power of two.
fn transfer_bytes_max(values: &Values) -> Result<Option<u64>, SpecError> {
    let path = "controller.max_transfer";
    if !values.has(path) {
        return Ok(None);
    }
    let bytes = values.number(path);
    if !bytes.is_power_of_two() {
        let must = "must be 4KiB times a power of two, as MDTS says it";
        return Err(values.contradiction(path, must));
    }
    Ok(Some(bytes))
}

fn namespaces_max(values: &Values) -> Option<u32> {
    let path = "controller.namespaces";
    values.has(path).then(|| values.small(path))
}

fn read_ahead(values: &Values) -> Option<ReadAheadSpec> {
    let window = "controller.read_ahead.window";
    values.has(window).then(|| ReadAheadSpec {
        window_slots: (values.number(window) / SLOT_BYTES) as u32,
        streams: values.small("controller.read_ahead.streams"),
        after: values.small("controller.read_ahead.after"),
    })
}

/// That what is read ahead has a place: the read cache, in memory of the drive, with room for all streams.
pub(super) fn read_ahead_has_a_place(
    values: &Values,
    controller: &ControllerSpec,
    cache: Option<&ReadCacheSpec>,
) -> Result<(), SpecError> {
    let Some(ahead) = &controller.read_ahead else {
        return Ok(());
    };
    let path = "controller.read_ahead.window";
    let Some(cache) = cache else {
        let must = "needs a read cache, which keeps what is read ahead (`role.read_cache.size`)";
        return Err(values.contradiction(path, must));
    };
    if cache.tier.is_granted() {
        let must = "needs a read cache in memory of the drive (`role.read_cache.tier`)";
        return Err(values.contradiction(path, must));
    }
    let all = u64::from(ahead.window_slots) * u64::from(ahead.streams) * SLOT_BYTES;
    if all > cache.bytes {
        let must = format!(
            "must fit `role.read_cache.size` ({}) for each of `controller.read_ahead.streams` ({})",
            show_size(cache.bytes),
            ahead.streams
        );
        return Err(values.contradiction(path, &must));
    }
    Ok(())
}

pub(super) fn read_cache(values: &Values) -> Result<Option<ReadCacheSpec>, SpecError> {
    let bytes = match values.has("role.read_cache.size") {
        true => values.number("role.read_cache.size"),
        false => 0,
    };
    if bytes == 0 {
        return Ok(None);
    }
    if bytes < SLOT_BYTES {
        let must = "must be 0 or at least 4KiB";
        return Err(values.contradiction("role.read_cache.size", must));
    }
    let tier = values.choice("role.read_cache.tier");
    tier_there(values, "role.read_cache.tier", tier)?;
    let replacement = values.choice("role.read_cache.replacement");
    Ok(Some(ReadCacheSpec {
        tier,
        bytes,
        replacement,
        whole_commands: values.flag("role.read_cache.whole_commands"),
    }))
}
