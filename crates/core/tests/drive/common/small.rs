//! Small drives of many kinds. Each bit of a shape decides something.

use super::drives::drive;
use lodger_core::DriveSpec;

/// A choice by each bit of a shape.
fn choice(shape: u32) -> impl Fn(u32, &'static str, &'static str) -> &'static str {
    move |bit, yes, no| if shape >> bit & 1 != 0 { yes } else { no }
}

/// Pages of the drives of 64 MiB.
pub const PAGES: u32 = 16 << 10;

/// Drives with different flash, write buffers, logs and caches.
pub fn of_any_kind(shape: u32) -> DriveSpec {
    let bit = choice(shape);
    let data_roles: &[(&str, &str)] = match shape >> 7 & 3 {
        0 => &[
            ("role.write_buffer.tier", "hmb"),
            ("role.write_buffer.size", "128KiB"),
        ],
        1 if shape >> 4 & 1 != 0 => &[("role.write_buffer.tier", "slc")],
        1 => &[],
        2 => &[("role.write_buffer.acknowledge", "programmed")],
        _ => &[
            ("role.write_buffer.tier", "hmb"),
            ("role.write_buffer.size", "96KiB"),
            ("role.write_buffer.high", "1.0"),
            ("role.write_buffer.low", "0.5"),
            ("role.read_cache.tier", "hmb"),
            ("role.read_cache.size", "24KiB"),
            ("host.dma.rate", "4.8GB/s"),
        ],
    };
    let replacement =
        ["lru", "fifo", "clock", "2q", "random", "arc", "s3-fifo"][(shape >> 9) as usize % 7];
    let mut sets = vec![
        ("capacity", "64MiB"),
        ("nand.pages_per_block", bit(0, "12", "24")),
        ("nand.one_shot", bit(1, "true", "false")),
        ("ftl.gc_own_stream", bit(2, "true", "false")),
        ("ftl.hot_cold_streams", bit(3, "true", "false")),
        ("ftl.slc_superblocks", bit(4, "3", "0")),
        ("nand.cache_read", bit(5, "true", "false")),
        ("role.map.exclusive", bit(6, "true", "false")),
        ("role.map.size.sram", "8KiB"),
        ("role.map.replacement", replacement),
        ("tier.hmb.preferred", "160KiB"),
        ("tier.hmb.min", "8KiB"),
    ];
    sets.extend(data_roles);
    // Not beside `slc` and `programmed`, which need none.
    if matches!(shape >> 7 & 3, 0 | 3) && shape >> 6 & 1 != 0 {
        sets.push(("tier.pm.size", "64KiB"));
        sets.push(("role.write_buffer.log", "pm"));
    }
    drive("tiny", &sets)
}

/// Small drives whose map (16 pages) outgrows its memories: one page in SRAM, up to ten in host
/// memory, beside a write buffer on some.
pub fn with_map_in_host_memory(integrity: &str, shape: u32) -> DriveSpec {
    let bit = choice(shape);
    let exclusive = shape & 1 != 0;
    let large_units = !exclusive && shape >> 1 & 1 != 0;
    let sets = [
        ("capacity", "64MiB"),
        ("nand.pages_per_block", "24"),
        ("role.map.exclusive", bit(0, "true", "false")),
        (
            "role.map.unit.hmb",
            if large_units { "8KiB" } else { "4KiB" },
        ),
        ("tier.hmb.check_in_path", bit(2, "true", "false")),
        ("tier.hmb.stalls_core", bit(3, "true", "false")),
        ("role.write_buffer.tier", bit(4, "hmb", "sram")),
        ("role.write_buffer.size", "128KiB"),
        ("role.map.size.sram", "4KiB"),
        ("tier.hmb.preferred", bit(4, "168KiB", "40KiB")),
        ("tier.hmb.min", "12KiB"),
        ("tier.hmb.integrity", integrity),
    ];
    drive("tiny", &sets)
}

/// Small drives with 32 pages of write buffer and 16 of read cache in host memory, their map in the
/// drive.
pub fn with_data_in_host_memory(integrity: &str, shape: u32) -> DriveSpec {
    let bit = choice(shape);
    let mut sets = vec![
        ("capacity", "64MiB"),
        ("nand.pages_per_block", "24"),
        ("role.map.tiers", "sram"),
        ("role.write_buffer.tier", "hmb"),
        ("role.write_buffer.size", "128KiB"),
        ("role.write_buffer.high", bit(0, "0.75", "0")),
        ("role.write_buffer.low", bit(0, "0.25", "0")),
        ("role.read_cache.tier", "hmb"),
        ("role.read_cache.size", "64KiB"),
        ("role.read_cache.whole_commands", bit(1, "true", "false")),
        ("tier.hmb.preferred", "192KiB"),
        ("tier.hmb.min", "4KiB"),
        ("tier.hmb.integrity", integrity),
    ];
    match shape >> 2 & 3 {
        1 => sets.extend([("tier.pm.size", "24KiB"), ("role.write_buffer.log", "pm")]),
        2 => sets.push(("role.write_buffer.acknowledge", "programmed")),
        3 => sets.push(("host.dma.rate", "4GB/s")),
        _ => {}
    }
    drive("tiny", &sets)
}

/// Drives whose map entries the host keeps (HPB), of all kinds.
pub fn with_entries_in_the_host(
    shape: u32,
    integrity: &'static str,
    protocol: &'static str,
) -> DriveSpec {
    let (protocol, version) = protocol.split_once(' ').unwrap_or((protocol, "1.0"));
    let bit = choice(shape);
    let mut sets = vec![
        ("capacity", "48MiB"),
        ("nand.pages_per_block", bit(0, "12", "24")),
        ("ftl.gc_own_stream", bit(1, "true", "false")),
        ("ftl.slc_superblocks", bit(2, "3", "0")),
        ("ftl.wear_static_threshold", bit(3, "2", "0")),
        ("ftl.overprovisioning", "0.35"),
        ("tier.sram.size", "2MiB"),
        ("role.map.size.sram", "8KiB"),
        ("role.write_buffer.size", bit(0, "256KiB", "512KiB")),
        ("hpb.enabled", "true"),
        ("hpb.group", bit(1, "256KiB", "1MiB")),
        (
            "hpb.host_cache",
            bit(
                4,
                if protocol == "paper" { "24KiB" } else { "8KiB" },
                "1MiB",
            ),
        ),
        ("hpb.stale_pages", bit(5, "4096", "24")),
        ("hpb.idle", "30us"),
        ("hpb.protocol", protocol),
        (
            "hpb.boot",
            if shape.is_multiple_of(3) {
                "load"
            } else {
                "warm"
            },
        ),
    ];
    if protocol == "paper" {
        sets.push(("hpb.integrity", integrity));
    } else {
        sets.extend([
            ("hpb.version", version),
            ("hpb.region", "1MiB"),
            ("hpb.control", bit(7, "host", "device")),
            ("hpb.pinned_regions", bit(3, "1", "0")),
            ("hpb.recommend_misses", "2"),
        ]);
    }
    if version == "2.0" {
        sets.push(("hpb.max_blocks", bit(2, "5", "255")));
    }
    // UFS or PCIe: the protocol does not depend on the link.
    drive(bit(6, "galaxy-s7", "tiny"), &sets)
}

/// A drive whose map entries the host keeps, of 12 translation pages, two of which its own memory holds.
pub fn with_few_changes_remembered(integrity: &'static str) -> DriveSpec {
    let sets = [
        ("capacity", "48MiB"),
        ("nand.pages_per_block", "12"),
        ("ftl.slc_superblocks", "0"),
        ("ftl.overprovisioning", "0.35"),
        ("tier.sram.size", "2MiB"),
        ("role.map.size.sram", "8KiB"),
        ("role.write_buffer.size", "256KiB"),
        ("hpb.enabled", "true"),
        ("hpb.group", "1MiB"),
        ("hpb.idle", "30us"),
        // So few that changed groups are fetched as a whole in every mode.
        ("hpb.stale_pages", "8"),
        ("hpb.integrity", integrity),
    ];
    drive("galaxy-s7", &sets)
}
