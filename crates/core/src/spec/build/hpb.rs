//! Host Performance Booster.

use crate::spec::error::SpecError;
use crate::spec::parse::Values;
use crate::spec::units::show_size;
use crate::spec::value::Value;
use crate::spec::words::{HpbBoot, HpbControl, HpbVersion};
use crate::spec::{GiveBack, HpbProtocol, HpbSpec, SLOT_BYTES};

/// So many that an epoch comes up again only after 2^32 hand-outs of one group.
const HPB_EPOCH_BITS: u32 = u32::BITS;

pub(super) fn hpb(values: &mut Values, capacity_bytes: u64) -> Result<Option<HpbSpec>, SpecError> {
    if !values.has("hpb.enabled") {
        return Ok(None);
    }
    let integrity = values.choice("hpb.integrity");
    let protocol = values.choice("hpb.protocol");
    let entry_bytes = HpbSpec::entry_bytes(protocol, integrity);
    let group_pages = values.number("hpb.group") / SLOT_BYTES;
    let groups = (capacity_bytes / SLOT_BYTES).div_ceil(group_pages);
    let group_bytes = group_pages * entry_bytes;
    if !values.has("hpb.host_cache") {
        values.derive("hpb.host_cache", Value::Number(groups * group_bytes));
    }
    let host_groups = values.number("hpb.host_cache") / group_bytes;
    if host_groups == 0 {
        let must = format!("must hold one group ({})", show_size(group_bytes));
        return Err(values.contradiction("hpb.host_cache", &must));
    }
    let region_pages = values.number("hpb.region") / SLOT_BYTES;
    let is_jedec = protocol == HpbProtocol::Jedec;
    if is_jedec && !region_pages.is_multiple_of(group_pages) {
        let group = show_size(group_pages * SLOT_BYTES);
        let must = format!("must be a multiple of `hpb.group` ({group})");
        return Err(values.contradiction("hpb.region", &must));
    }
    let blocks_max = match values.choice("hpb.version") {
        HpbVersion::One => 1,
        HpbVersion::Two => values.small("hpb.max_blocks"),
    };
    let pinned_regions = values.small("hpb.pinned_regions");
    if is_jedec {
        let region_groups = region_pages / group_pages;
        pinned_fit(
            values,
            u64::from(pinned_regions),
            (host_groups, groups),
            region_groups,
        )?;
    }
    let give_back = give_back(values, group_bytes, groups)?;
    if !values.flag("hpb.enabled") {
        return Ok(None);
    }
    Ok(Some(HpbSpec {
        protocol,
        group_pages: group_pages as u32,
        region_pages: region_pages as u32,
        host_control: match values.choice("hpb.control") {
            HpbControl::Device => false,
            HpbControl::Host => true,
        },
        pinned_regions,
        blocks_max,
        write_buffer_ps: values.number("hpb.write_buffer"),
        recommend_misses: values.small("hpb.recommend_misses"),
        host_groups: host_groups.min(groups) as u32,
        give_back,
        replacement: values.choice("hpb.replacement"),
        loads_at_boot: match values.choice("hpb.boot") {
            HpbBoot::Warm => false,
            HpbBoot::Load => true,
        },
        idle_ps: values.number("hpb.idle"),
        check_ps: values.number("hpb.check"),
        read_buffer_ps: values.number("hpb.read_buffer"),
        stale_pages: values.small("hpb.stale_pages"),
        integrity,
        epoch_bits: HPB_EPOCH_BITS,
    }))
}

/// Regions that the host always keeps must be there, and have room in its memory.
fn pinned_fit(
    values: &Values,
    pinned: u64,
    (host_groups, groups): (u64, u64),
    region_groups: u64,
) -> Result<(), SpecError> {
    let have_room = (host_groups / region_groups).max(1);
    let regions = groups.div_ceil(region_groups);
    let must = match (pinned > regions, pinned > have_room) {
        (true, _) => format!("must be at most the {regions} regions of the drive"),
        (_, true) => {
            let cache = show_size(values.number("hpb.host_cache"));
            format!(
                "must be at most the {have_room} regions whose entries `hpb.host_cache` ({cache}) holds"
            )
        }
        _ => return Ok(()),
    };
    Err(values.contradiction("hpb.pinned_regions", &must))
}

/// What of the host's memory its kernel gets while it runs.
fn give_back(
    values: &Values,
    group_bytes: u64,
    groups: u64,
) -> Result<Option<GiveBack>, SpecError> {
    let given_bytes = values.number("hpb.give_back");
    if given_bytes == 0 {
        return Ok(None);
    }
    let kept_bytes = values.number("hpb.host_cache").saturating_sub(given_bytes);
    let host_groups = (kept_bytes / group_bytes).min(groups) as u32;
    if host_groups == 0 {
        let group = show_size(group_bytes);
        let must = format!("must leave one group ({group}) of `hpb.host_cache`");
        return Err(values.contradiction("hpb.give_back", &must));
    }
    let at_ps = values.number("hpb.give_back_at");
    let for_ps = values.number("hpb.give_back_for");
    Ok(Some(GiveBack {
        host_groups,
        at_ps,
        until_ps: (for_ps > 0).then(|| at_ps + for_ps),
    }))
}
