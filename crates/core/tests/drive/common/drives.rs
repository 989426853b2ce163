//! The drives of all tests: those of the collection whose flash does not age (`ageing` has that), variants of them, and
//! small ones.

use lodger_core::DriveSpec;

/// Files of the collection, read at compile time.
macro_rules! collection {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../../../drives/", $name, ".toml")))),*]
    };
}

/// The drive files.
pub const DRIVES: [(&str, &str); 19] = collection![
    "rc100-240"
    "rc100-480"
    "bg4"
    "a80"
    "ex900"
    "m730"
    "a1000"
    "wd-black-3d"
    "970-pro"
    "cxl-512"
    "hong-bufferless"
    "hong-device-buffer"
    "hong-hmb-buffer"
    "pm963"
    "sz985"
    "2b-ssd"
    "galaxy-s7"
    "ufs21-64"
    "tiny"
];

/// The text of a drive of the collection.
pub fn text(wanted: &str) -> Option<String> {
    let drive = DRIVES.iter().find(|(name, _)| *name == wanted);
    drive.map(|(_, text)| (*text).to_owned())
}

/// A drive of the collection with some keys set.
pub fn drive(name: &str, sets: &[(&str, &str)]) -> DriveSpec {
    let file = text(name).expect("a drive of the collection");
    match lodger_core::spec::parse(&file, name, sets, &text) {
        Ok(parsed) => parsed.spec,
        Err(error) => panic!("{error}"),
    }
}

/// A log in power-protected memory of 96 KiB, which a flush often fills.
pub const LOG: [(&str, &str); 2] = [("tier.pm.size", "96KiB"), ("role.write_buffer.log", "pm")];

/// Drives with something changed: what no drive of the collection has, or not in all combinations.
pub const VARIANTS: [(&str, &[(&str, &str)]); 21] = [
    ("tiny", &[("role.write_buffer.tier", "slc")]),
    (
        "tiny",
        &[("tier.pm.size", "1MiB"), ("role.write_buffer.tier", "pm")],
    ),
    (
        "tiny",
        &[
            ("tier.hmb.preferred", "600KiB"),
            ("role.write_buffer.tier", "hmb"),
            ("role.write_buffer.high", "0.75"),
            ("role.write_buffer.low", "0.25"),
        ],
    ),
    ("tiny", &[("nand.one_shot", "false")]),
    (
        "tiny",
        &[
            ("nand.one_shot", "false"),
            ("ftl.slc_superblocks", "0"),
            ("ftl.gc_own_stream", "false"),
        ],
    ),
    (
        "tiny",
        &[
            ("ftl.hot_cold_streams", "true"),
            ("ftl.slc_superblocks", "0"),
        ],
    ),
    (
        "tiny",
        &[
            ("ftl.gc_policy", "cost-benefit"),
            ("role.map.exclusive", "true"),
        ],
    ),
    (
        "tiny",
        &[
            ("ftl.wear_static_threshold", "4"),
            ("ftl.slc_superblocks", "0"),
        ],
    ),
    (
        "galaxy-s7",
        &[
            ("hpb.enabled", "true"),
            ("hpb.group", "1MiB"),
            ("hpb.idle", "1us"),
        ],
    ),
    (
        "galaxy-s7",
        &[
            ("hpb.enabled", "true"),
            ("hpb.protocol", "jedec"),
            ("hpb.group", "1MiB"),
            ("hpb.region", "2MiB"),
            ("hpb.recommend_misses", "1"),
        ],
    ),
    (
        "galaxy-s7",
        &[
            ("hpb.enabled", "true"),
            ("hpb.protocol", "jedec"),
            ("hpb.group", "1MiB"),
            ("hpb.region", "2MiB"),
            ("hpb.control", "host"),
            ("hpb.pinned_regions", "6"),
        ],
    ),
    (
        "tiny",
        &[
            ("hpb.enabled", "true"),
            ("hpb.protocol", "jedec"),
            ("hpb.group", "1MiB"),
            ("hpb.region", "2MiB"),
            ("hpb.recommend_misses", "1"),
        ],
    ),
    // A log behind a buffer in host memory, in the drive's own, and with two queues.
    ("hong-hmb-buffer", &LOG),
    (
        "tiny",
        &[
            ("tier.hmb.preferred", "600KiB"),
            ("role.write_buffer.tier", "hmb"),
            LOG[0],
            LOG[1],
        ],
    ),
    (
        "tiny",
        &[
            ("role.write_buffer.high", "0.75"),
            ("role.write_buffer.low", "0.25"),
            LOG[0],
            LOG[1],
        ],
    ),
    (
        "tiny",
        &[
            ("ftl.hot_cold_streams", "true"),
            ("ftl.slc_superblocks", "0"),
            ("tier.pm.size", "1MiB"),
            LOG[1],
        ],
    ),
    (
        "tiny",
        &[
            ("tier.cxl.size", "1MiB"),
            ("tier.cxl.persistent", "true"),
            ("role.write_buffer.tier", "cxl"),
        ],
    ),
    (
        "tiny",
        &[
            ("tier.cxl.size", "1MiB"),
            ("role.map.tiers", "[\"sram\", \"cxl\"]"),
            ("role.map.size.cxl", "64KiB"),
            ("role.write_buffer.tier", "cxl"),
            ("role.write_buffer.size", "256KiB"),
        ],
    ),
    (
        "tiny",
        &[
            ("role.read_cache.size", "256KiB"),
            ("controller.read_ahead.window", "64KiB"),
            ("controller.read_ahead.streams", "4"),
            ("controller.read_ahead.after", "1"),
            ("host.max_request", "12KiB"),
        ],
    ),
    (
        "tiny",
        &[("ftl.slc_superblocks", "0"), ("ftl.slc_dynamic", "0.6")],
    ),
    (
        "tiny",
        &[
            ("ftl.slc_superblocks", "1"),
            ("ftl.slc_dynamic", "1"),
            ("ftl.slc_idle", "1ms"),
            ("ftl.gc_policy", "fifo"),
        ],
    ),
];
