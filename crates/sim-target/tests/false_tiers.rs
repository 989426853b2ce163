//! Is a tier or a unit that was told with confidence, and was false, left open now? Each on the drive on which it was told, and
//! beside it one on which the same is right and must still be told.

mod probed;

use lodger_probe::{Tier, Verdict};
use lodger_run::Drive;
use probed::{fixture, of_collection, probed};

/// What the experiments of a role rest on.
const MAP: &[&str] = &["map-cache"];
const READ_CACHE: &[&str] = &["map-cache", "parallelism", "read-cache"];
const WRITES: &[&str] = &["parallelism", "flush"];

/// What a probe says of a role that does each of some experiments once.
fn verdict(drive: Drive, role: &str, experiments: &[&str], seed: u64) -> Verdict {
    let mut outcome = probed(drive, seed, experiments, seed);
    outcome.roles.remove(role).expect("it was looked for")
}

const CACHE_BESIDE_MAP: &str = include_str!("fixtures/cache_beside_map.toml");

/// Pages differ in latency, so that the same ones are read again and again, and 32 of them stay in a read cache in host memory,
/// which is not there while the levels of hits and misses are learned: "map: hmb", 0.996, of 16 units on the drive.
#[test]
fn pages_kept_in_host_memory_are_no_map_there() {
    for kib in ["64KiB", "128KiB", "192KiB"] {
        let set = [
            ("role.read_cache.size", kib),
            ("tier.hmb.preferred", "192KiB"),
        ];
        for seed in 1..4 {
            let drive = fixture(CACHE_BESIDE_MAP, &set);
            let found = verdict(drive, "map", MAP, seed);
            assert_ne!(found.tier, Tier::Hmb, "{kib}: {}", found.evidence);
        }
    }
}

/// The null: the map is in host memory, and such a cache beside it. Single runs find no unit by pages of one kind now and then.
#[test]
fn a_map_beside_pages_kept_in_host_memory_is_told() {
    let set = [
        ("tier.hmb.preferred", "512KiB"),
        ("role.map.tiers", "[\"sram\", \"hmb\"]"),
    ];
    let found = (1..5).map(|seed| verdict(fixture(CACHE_BESIDE_MAP, &set), "map", MAP, seed).tier);
    let found: Vec<Tier> = found.collect();
    let of = |tier: Tier| found.iter().filter(|found| **found == tier).count();
    assert!(of(Tier::Hmb) >= 2, "{found:?}");
    assert_eq!(of(Tier::Hmb) + of(Tier::Undecided), 4, "{found:?}");
}

const TWO_UNITS: &str = include_str!("fixtures/two_units.toml");

/// Of two units of the map that S3-FIFO replaces, now and then one state of host memory shows two and the other none, or an
/// edge that is not sharp: "map: hmb", 0.997.
#[test]
fn a_few_units_more_or_less_are_no_map_in_host_memory() {
    for seed in 0..40 {
        let found = verdict(fixture(TWO_UNITS, &[]), "map", MAP, seed);
        assert_ne!(found.tier, Tier::Hmb, "{seed}: {}", found.evidence);
    }
}

/// The null: sixteen units more.
#[test]
fn units_of_which_host_memory_holds_many_are_told() {
    let set = [
        ("role.map.tiers", "[\"sram\", \"hmb\"]"),
        ("tier.hmb.preferred", "2MiB"),
        ("role.map.replacement", "\"lru\""),
    ];
    for seed in 0..3 {
        let found = verdict(fixture(TWO_UNITS, &set), "map", MAP, seed);
        assert_eq!(found.tier, Tier::Hmb, "{}", found.evidence);
    }
}

/// Units of 4 MiB were said to be of 0.5 to 1.2 MiB, with an interval of 6 %: of places a MiB apart most lie in units that
/// others brought, where what was read last is not what stays.
#[test]
fn places_in_units_that_others_brought_are_no_units() {
    for policy in ["random", "s3-fifo", "2q"] {
        for seed in 1..4 {
            let policy = format!("\"{policy}\"");
            let drive = of_collection("tiny", &[("role.map.replacement", &policy)]);
            let found = verdict(drive, "map", MAP, seed);
            let is_true = |unit: f64| (unit / 4_194_304.0 - 1.0).abs() < 0.05;
            assert!(
                found.unit_bytes.is_none_or(|unit| is_true(unit.estimate)),
                "{policy}: {:?}",
                found.unit_bytes
            );
        }
    }
}

/// The null: policies under which pairs of places show the unit.
#[test]
fn the_unit_is_told_where_pairs_show_it() {
    for policy in ["lru", "fifo", "clock"] {
        let policy = format!("\"{policy}\"");
        let drive = of_collection("tiny", &[("role.map.replacement", &policy)]);
        let unit = verdict(drive, "map", MAP, 1).unit_bytes.expect("a unit");
        assert!((unit.estimate / 4_194_304.0 - 1.0).abs() < 0.01, "{unit:?}");
    }
}

const AS_FAR_AS_FLASH: &str = include_str!("fixtures/cache_as_far_as_flash.toml");

/// A page of host memory is fetched in 20 us and crosses a slow link once more, in as much: as long as flash of 15 us, its way
/// over the channel and the work take. "read cache: none", 0.997.
#[test]
fn a_read_cache_as_far_as_flash_is_not_said_to_be_none() {
    for seed in 1..5 {
        let found = verdict(
            fixture(AS_FAR_AS_FLASH, &[]),
            "read_cache",
            READ_CACHE,
            seed,
        );
        assert_ne!(found.tier, Tier::None, "{}", found.evidence);
    }
}

/// The null: there is none, and flash takes longer than that.
#[test]
fn no_read_cache_is_told_where_flash_is_slower_than_host_memory() {
    let text = AS_FAR_AS_FLASH.replace("[role.read_cache]\ntier = \"hmb\"\nsize = \"64KiB\"\n", "");
    let set = [
        ("nand.read", "80us"),
        ("link.pcie", "3.0 x2"),
        ("link.host_memory", "500ns"),
    ];
    for seed in 1..4 {
        let found = verdict(fixture(&text, &set), "read_cache", READ_CACHE, seed);
        assert_eq!(found.tier, Tier::None, "{}", found.evidence);
    }
}

const SINGLE_BIT: &str = include_str!("fixtures/single_bit_behind_slow_bus.toml");

/// Flash in single-bit mode acknowledges after 300 us and a long way over the bus, and saves 5 us of a read's 110: "write
/// buffer: none", 0.986.
#[test]
fn single_bit_flash_behind_a_slow_bus_is_not_said_to_be_none() {
    for seed in 1..4 {
        let found = verdict(fixture(SINGLE_BIT, &[]), "write_buffer", WRITES, seed);
        assert_ne!(found.tier, Tier::None, "{}", found.evidence);
    }
}

/// The null: there is no flash in single-bit mode.
#[test]
fn no_write_buffer_is_told_where_flash_with_several_bits_acknowledges() {
    let set = [("ftl.slc_superblocks", "0")];
    for seed in 1..4 {
        let found = verdict(fixture(SINGLE_BIT, &set), "write_buffer", WRITES, seed);
        assert_eq!(found.tier, Tier::None, "{}", found.evidence);
    }
}

const WRITE_BUFFER: &[&str] = &["parallelism", "flush", "write-buffer"];

/// A second way over a link of 16 GB/s takes 2 us of the 42 that a write of 128 KiB takes, 1.05 times as long: "device", 0.997.
#[test]
fn a_write_buffer_in_host_memory_behind_a_fast_link_is_not_told_as_the_drives() {
    let fast: &[(&str, &str)] = &[("link.pcie", "5.0 x4")];
    let slow_firmware: &[(&str, &str)] = &[("link.pcie", "4.0 x8"), ("controller.write", "20us")];
    for set in [fast, slow_firmware] {
        for seed in 0..3 {
            let set = [set, &[("role.write_buffer.tier", "hmb")]].concat();
            let drive = of_collection("rc100-480", &set);
            let found = verdict(drive, "write_buffer", WRITE_BUFFER, seed);
            assert_ne!(found.tier, Tier::Device, "{}", found.evidence);
        }
    }
}

/// The null: the same link, and the buffer in memory of the drive's own.
#[test]
fn a_write_buffer_on_the_drive_is_told_behind_a_fast_link() {
    for seed in 0..4 {
        let drive = of_collection("rc100-480", &[("link.pcie", "5.0 x4")]);
        let found = verdict(drive, "write_buffer", WRITE_BUFFER, seed);
        assert_eq!(found.tier, Tier::Device, "{}", found.evidence);
    }
}

const ACKNOWLEDGED_BY_FLASH: (&str, &str) = ("role.write_buffer.acknowledge", "programmed");

/// Worn flash is read slower than single-bit flash programs, and of writes that took 327 us where reads take 460 it was said that
/// memory which survives a power cut takes them: "device", 0.997.
#[test]
fn writes_that_may_wait_for_fast_flash_are_no_memory_because_old_data_is_read_slowly() {
    for read in ["460us", "500us"] {
        for seed in 0..2 {
            let set = [ACKNOWLEDGED_BY_FLASH, ("nand.read", read)];
            let drive = of_collection("rc100-480", &set);
            let found = verdict(drive, "write_buffer", WRITE_BUFFER, seed);
            assert_ne!(found.tier, Tier::Device, "{read}: {}", found.evidence);
        }
    }
    let all_single_bit = [
        ACKNOWLEDGED_BY_FLASH,
        ("nand.cell", "slc"),
        ("nand.program", "600us"),
        ("nand.read", "700us"),
    ];
    let drive = of_collection("tiny", &all_single_bit);
    let found = verdict(drive, "write_buffer", WRITE_BUFFER, 0);
    assert_ne!(found.tier, Tier::Device, "{}", found.evidence);
}

/// The null: memory that survives a power cut, before flash that is read as slowly. No flash programs as fast as it takes writes.
#[test]
fn protected_memory_is_told_before_flash_that_is_read_slowly() {
    for seed in 0..2 {
        let set = [
            ("tier.pm.size", "64MiB"),
            ("role.write_buffer.log", "pm"),
            ("role.write_buffer.log_size", "8MiB"),
            ("nand.read", "460us"),
        ];
        let drive = fixture(include_str!("fixtures/plain.toml"), &set);
        let found = verdict(drive, "write_buffer", WRITE_BUFFER, seed);
        assert_eq!(found.tier, Tier::Device, "{}", found.evidence);
    }
}

/// ARC gives what is read once more room or less from one time to the next, and the two states of host memory were looked at once
/// each: "hmb", 0.997, of a map that is in the drive's own memory alone.
#[test]
fn what_a_policy_makes_of_the_same_memory_from_time_to_time_is_no_host_memory() {
    let set = [
        ("capacity", "3000MiB"),
        ("role.map.tiers", "[\"sram\", \"dram\"]"),
        ("tier.sram.size", "4MiB"),
        ("tier.dram.size", "4MiB"),
        ("role.map.size.sram", "600KiB"),
        ("role.map.size.dram", "900KiB"),
        ("role.map.replacement", "arc"),
        ("tier.hmb.preferred", "8MiB"),
        ("tier.hmb.min", "8MiB"),
        ("role.write_buffer.tier", "hmb"),
        ("role.write_buffer.size", "4MiB"),
        ("role.read_cache.size", "0B"),
    ];
    for seed in [0, 2, 13] {
        let found = verdict(of_collection("tiny", &set), "map", MAP, seed);
        assert_ne!(found.tier, Tier::Hmb, "seed {seed}: {}", found.evidence);
    }
}

const FEW_UNITS_AT_RANDOM: &[(&str, &str)] = &[
    ("tier.dram.size", "4MiB"),
    ("role.map.size.dram", "320KiB"),
    ("role.map.unit", "16KiB"),
    ("role.map.replacement", "random"),
    ("role.write_buffer.tier", "hmb"),
    ("role.write_buffer.size", "3000KiB"),
    ("tier.hmb.preferred", "3000KiB"),
    ("tier.hmb.min", "3000KiB"),
    ("role.read_cache.size", "0B"),
];

/// Twenty units that are replaced at random, of 32: a round now and then met none that had gone. "hmb", 0.997, and it reached up to
/// 568 MiB of a drive of 512.
#[test]
fn units_that_are_replaced_at_random_are_no_host_memory_by_chance() {
    let set = [FEW_UNITS_AT_RANDOM, &[("role.map.tiers", "[\"dram\"]")]].concat();
    for seed in [9, 10] {
        let found = verdict(of_collection("tiny", &set), "map", MAP, seed);
        assert_ne!(found.tier, Tier::Hmb, "seed {seed}: {}", found.evidence);
    }
}

/// The null of both: host memory that reaches twice as far as the drive's own is told, and no farther than there are addresses.
#[test]
fn host_memory_that_reaches_twice_as_far_is_told() {
    let sizes = [
        ("role.map.tiers", "[\"sram\", \"hmb\"]"),
        ("tier.sram.size", "1MiB"),
        ("role.map.size.sram", "128KiB"),
        ("tier.hmb.preferred", "256KiB"),
        ("tier.hmb.min", "256KiB"),
        ("role.read_cache.size", "0B"),
    ];
    for seed in 0..4 {
        let drive = of_collection("tiny", &sizes);
        let found = verdict(drive, "map", MAP, seed);
        assert_eq!(found.tier, Tier::Hmb, "seed {seed}: {}", found.evidence);
        let reach = found.reach_bytes.expect("a reach");
        assert!(reach.high <= f64::from(512 << 20), "{reach:?}");
    }
}

const FLAT: &[&str] = &["map-cache", "parallelism"];

/// A map of eight large units that is in host memory alone: without it every read waits, the first of a stretch and those after it
/// alike, and that these do not differ was taken for all of it being at hand: "device", 0.95.
#[test]
fn reads_that_all_wait_without_host_memory_show_no_map_on_the_drive() {
    let set = [
        ("role.map.tiers", "[\"hmb\"]"),
        ("tier.hmb.preferred", "564KiB"),
        ("tier.hmb.min", "140KiB"),
        ("role.map.unit", "64KiB"),
        ("role.read_cache.size", "0B"),
        ("nand.read", "[\"50us\", \"75us\", \"100us\"]"),
    ];
    for seed in 0..4 {
        let found = verdict(of_collection("tiny", &set), "map", FLAT, seed);
        assert_ne!(found.tier, Tier::Device, "seed {seed}: {}", found.evidence);
    }
}

/// The null: all of the map in memory of the drive's own, and the same pages.
#[test]
fn a_map_on_the_drive_is_told_where_pages_differ() {
    let set = [
        ("role.map.tiers", "[\"dram\"]"),
        ("tier.dram.size", "4MiB"),
        ("role.map.size.dram", "1MiB"),
        ("tier.hmb.preferred", "564KiB"),
        ("tier.hmb.min", "140KiB"),
        ("role.write_buffer.tier", "hmb"),
        ("role.write_buffer.size", "512KiB"),
        ("role.read_cache.size", "0B"),
        ("nand.read", "[\"50us\", \"75us\", \"100us\"]"),
    ];
    for seed in 0..3 {
        let found = verdict(of_collection("tiny", &set), "map", FLAT, seed);
        assert_eq!(found.tier, Tier::Device, "seed {seed}: {}", found.evidence);
    }
}
