//! Statements of the prober that were false, each with the drive on which it made them, and with one on which the
//! same statement is right and must still be made.

mod probed;

use lodger_probe::stats::Estimate;
use lodger_probe::{Outcome, Tier};
use lodger_run::Drive;
use probed::{Set, fixture, of_collection};

/// The plain drive with some of its keys changed.
fn plain(set: Set<'_>) -> Drive {
    fixture(include_str!("fixtures/plain.toml"), set)
}

/// A probe of some experiments, of which each is done once; all of them if none is named.
fn probed(drive: Drive, experiments: &[&str], seed: u64) -> Outcome {
    probed::probed(drive, 1, experiments, seed)
}

fn number(outcome: &Outcome, name: &str) -> Option<Estimate> {
    outcome
        .findings
        .quantities
        .get(name)
        .map(|quantity| quantity.value)
}

/// Whether something is said of an experiment that was left out.
fn is_skipped(outcome: &Outcome, experiment: &str, reason: &str) -> bool {
    let mut skipped = outcome.skipped.iter();
    skipped.any(|skipped| skipped.experiment == experiment && skipped.reason.contains(reason))
}

/// Hits in host memory of pages of the fastest kind beside hits in the drive's own memory of pages of all kinds: host memory
/// was said to be 14 us faster than the drive's own.
#[test]
fn host_memory_is_not_faster_than_the_drives_own_where_pages_differ() {
    let set = [
        ("nand.cell", "tlc"),
        ("nand.read", "[\"45us\", \"60us\", \"90us\"]"),
    ];
    for seed in 0..3 {
        let outcome = probed(of_collection("rc100-240", &set), &["map-cache"], seed);
        if let (Some(own), Some(host)) = (number(&outcome, "hit_sram"), number(&outcome, "hit_hmb"))
        {
            assert!(host.high >= own.low, "{own:?} {host:?}");
        }
    }
}

/// The null: pages that take the same time. Host memory is some 0.5 us farther, and what is said allows for it.
#[test]
fn what_host_memory_takes_is_told_where_pages_are_alike() {
    for seed in 0..3 {
        let outcome = probed(plain(&[]), &["map-cache"], seed);
        let [own, host, miss] =
            ["hit_sram", "hit_hmb", "miss"].map(|name| number(&outcome, name).expect(name));
        assert!(
            (own.low..1.03 * own.high).contains(&host.estimate),
            "{own:?} {host:?}"
        );
        assert!(miss.low > 1.5 * host.high, "{host:?} {miss:?}");
    }
}

/// Blocks whose reads take 0.7 to 1.4 times as long: slow pages counted as misses, and of a plain LRU of translation pages
/// it was said that it replaces by segment, with 11 % of hits where five in six hit.
#[test]
fn slow_pages_are_no_segments_and_no_misses() {
    let keys =
        ["read", "program", "erase", "block", "die"].map(|of| format!("nand.variation.{of}"));
    let set = keys.each_ref().map(|key| (key.as_str(), "0.3"));
    for seed in 0..3 {
        let outcome = probed(plain(&set), &["map-cache", "replacement"], seed);
        assert_ne!(outcome.findings.replacement_verdict, Some("by segment"));
        if let Some(hits) = number(&outcome, "map_random_hit_ratio") {
            assert!(hits.high > 0.78, "{hits:?}");
        } else {
            let why = ["pages differ", "no edge of the map cache"];
            assert!(
                why.iter()
                    .any(|why| is_skipped(&outcome, "replacement", why)),
                "{:?}",
                outcome.skipped
            );
        }
    }
}

/// The null: the policy is told where pages are alike.
#[test]
fn the_policy_is_told_where_pages_are_alike() {
    for seed in 0..2 {
        let outcome = probed(
            of_collection("a80", &[]),
            &["map-cache", "replacement"],
            seed,
        );
        assert_eq!(outcome.findings.replacement_verdict, Some("lru"));
    }
}

/// The null of segments: units of 328 KiB of map, each of which gives way as one.
#[test]
fn segments_are_told_where_there_are_some() {
    for seed in 0..2 {
        let outcome = probed(
            of_collection("ex900", &[]),
            &["map-cache", "replacement"],
            seed,
        );
        assert_eq!(outcome.findings.replacement_verdict, Some("by segment"));
    }
}

/// A page that cannot be read any more is answered with an error. It ended the probe as "the device has gone".
#[test]
fn a_page_that_cannot_be_read_is_no_drive_that_has_gone() {
    let set = [
        ("nand.ageing.endurance", "3000"),
        ("nand.ageing.erased", "1500"),
        ("nand.ageing.age_days", "365"),
        ("nand.ageing.correctable", "0.01"),
        ("nand.ageing.retries", "1"),
        ("nand.ageing.retry_gain", "0.8"),
        ("nand.ageing.errors.base", "0.006"),
        ("nand.ageing.errors.spread", "0.3"),
        ("nand.ageing.decode", "20us"),
    ];
    for seed in 0..2 {
        let outcome = probed(plain(&set), &[], seed);
        let said = outcome.skipped.iter().map(|skipped| &skipped.reason);
        let failed: Vec<_> = said.filter(|reason| reason.contains("failed")).collect();
        assert!(
            !failed.is_empty(),
            "no page was lost: {:?}",
            outcome.skipped
        );
        assert!(
            failed.iter().all(|reason| !reason.contains("gone")),
            "{failed:?}"
        );
    }
}

/// A log in power-protected memory: a flush only copies there (1.3 us), and when its end was taken for that of the program
/// operations, buffers of 1 and 1.5 MiB were given 382 KiB to 7.8 MiB.
#[test]
fn a_flush_that_ends_in_a_log_tells_no_size_of_a_write_buffer() {
    let logs = [("1MiB", "8MiB"), ("1.5MiB", "256KiB"), ("1.5MiB", "64MiB")];
    for ((size, log), seed) in logs.into_iter().zip([0, 4, 5]) {
        let set = [
            ("tier.pm.size", "64MiB"),
            ("role.write_buffer.size", size),
            ("role.write_buffer.log", "pm"),
            ("role.write_buffer.log_size", log),
        ];
        let outcome = probed(plain(&set), &["flush", "write-buffer"], seed);
        let verdict = &outcome.roles["write_buffer"];
        assert_eq!(verdict.tier, Tier::Device, "{}", verdict.evidence);
        assert_eq!(verdict.size_bytes, None, "{}", verdict.evidence);
        assert!(
            verdict.evidence.contains("waits for less"),
            "{}",
            verdict.evidence
        );
    }
}

/// The null: the size is told where a flush waits for flash.
#[test]
fn a_flush_that_waits_for_flash_tells_the_size_of_a_write_buffer() {
    for seed in 0..2 {
        let outcome = probed(plain(&[]), &["flush", "write-buffer"], seed);
        let size = outcome.roles["write_buffer"].size_bytes.expect("a size");
        assert!(
            (size.low..size.high).contains(&(1.5 * f64::from(1 << 20))),
            "{size:?}"
        );
    }
}

/// Numbers that pairs of reads tell.
const OF_PAIRS: [&str; 4] = ["parallel_units", "stripe", "round", "flash_page"];

/// Nothing is said of dies, and a note names the reason.
fn dies_are_left_open(set: Set<'_>, experiments: &[&str], reason: &str) {
    for seed in 0..3 {
        let outcome = probed(plain(set), experiments, seed);
        for name in OF_PAIRS {
            assert_eq!(number(&outcome, name), None, "{name}, seed {seed}");
        }
        let mut notes = outcome.findings.notes.iter();
        assert!(
            notes.any(|note| note.contains(reason)),
            "{:?}",
            outcome.findings.notes
        );
    }
}

/// One translation page at hand: the entry of one page pushes out the other's, so that pairs miss unless they share it. Of
/// eight dies 62 to 77 were told.
#[test]
fn pairs_that_push_out_each_others_map_entries_tell_no_dies() {
    let set = [
        ("role.map.tiers", "[\"sram\"]"),
        ("role.map.size.sram", "4KiB"),
        ("role.read_cache.tier", "hmb"),
        ("role.read_cache.size", "2MiB"),
    ];
    dies_are_left_open(&set, &["parallelism"], "do not stay at hand together");
}

/// Units of 4 GiB and 1 GiB of addresses, completed in the background while pairs were timed: 2.1 dies, or a stripe of
/// 286 KiB where 96 are true.
#[test]
fn reads_of_the_drives_own_tell_no_dies() {
    for unit in ["4MiB", "1MiB"] {
        let set = [
            ("role.map.unit.sram", "4KiB"),
            ("role.map.unit.hmb", unit),
            ("role.map.background_reads", "1"),
        ];
        dies_are_left_open(&set, &["parallelism"], "one after the other are late");
    }
}

/// Memory that takes 60 us for a look-up, one at a time: 1.6 of eight dies were told. And one die, of which it was said that no
/// two reads get in each other's way.
#[test]
fn where_all_reads_wait_for_each_other_that_is_said() {
    dies_are_left_open(
        &[("tier.sram.access", "60us")],
        &["parallelism"],
        "wait for each other alike",
    );
    let one = [
        ("capacity", "8GiB"),
        ("nand.channels", "1"),
        ("nand.dies_per_channel", "1"),
        ("nand.planes", "1"),
        ("tier.hmb.preferred", "8MiB"),
        ("tier.hmb.min", "1MiB"),
    ];
    dies_are_left_open(&one, &["parallelism"], "wait for each other alike");
}

/// The null: dies are counted where nothing hides them, in order and page by page, few and many, behind large units that are
/// completed soon.
#[test]
fn dies_are_told_where_nothing_hides_them() {
    let dies = |drive: Drive, truth: f64| {
        let outcome = probed(drive, &["parallelism"], 0);
        let units = number(&outcome, "parallel_units").expect("a number of dies");
        assert!(
            (units.low..=units.high).contains(&truth),
            "{units:?} {truth}"
        );
    };
    dies(plain(&[]), 8.0);
    dies(
        plain(&[
            ("role.map.unit.sram", "4KiB"),
            ("role.map.unit.hmb", "512KiB"),
        ]),
        8.0,
    );
    dies(
        plain(&[("nand.channels", "2"), ("nand.dies_per_channel", "1")]),
        2.0,
    );
    for (name, truth) in [
        ("bg4", 32.0),
        ("970-pro", 16.0),
        ("tiny", 4.0),
        ("hong-hmb-buffer", 32.0),
    ] {
        dies(of_collection(name, &[]), truth);
    }
}

/// Where the bus of a channel takes half as long as the flash, four channels were told for 16 dies, with no other number in the
/// interval. The null is above: the same drive with its own bus, and others.
#[test]
fn channels_with_a_slow_bus_are_not_told_for_dies() {
    for seed in 0..3 {
        for (drive, truth) in [
            (of_collection("a80", &[("nand.channel_mt_s", "150")]), 16.0),
            (
                plain(&[("nand.channel_mt_s", "150"), ("nand.dies_per_channel", "3")]),
                12.0,
            ),
        ] {
            let outcome = probed(drive, &["parallelism"], seed);
            let units = number(&outcome, "parallel_units").expect("a number of dies");
            let is_true = (units.low..=units.high).contains(&truth);
            assert!(is_true, "seed {seed}: {units:?}, {truth}");
        }
    }
}

/// 30 to 31 and 33 to 35 of 32 dies were told by 6 seeds of 160, with a stripe of 3.1 or 2.8 flash pages.
#[test]
fn a_stripe_holds_whole_flash_pages() {
    for seed in 0..12 {
        let outcome = probed(of_collection("bg4", &[]), &["parallelism"], seed);
        let Some(units) = number(&outcome, "parallel_units") else {
            continue;
        };
        assert!(
            (units.low..=units.high).contains(&32.0),
            "seed {seed}: {units:?}"
        );
    }
}

/// Units of 512 MiB to 4 GiB of addresses that are completed in the background: 854 MiB, units of 80 MiB and host memory of
/// 2 MiB were told where 16 GiB, 2 GiB and 16 MiB are true, and by these experiments alone "device" was.
#[test]
fn units_that_are_still_completed_tell_no_size_of_a_map() {
    let units = [
        ("4MiB", "1"),
        ("2MiB", "1"),
        ("1MiB", "4"),
        ("512KiB", "4"),
        ("512KiB", "1"),
    ];
    for (unit, background) in units {
        let set = [
            ("role.map.unit.sram", "4KiB"),
            ("role.map.unit.hmb", unit),
            ("role.map.background_reads", background),
        ];
        for seed in 0..3 {
            let outcome = probed(plain(&set), &["map-cache", "replacement"], seed);
            let verdict = &outcome.roles["map"];
            assert_ne!(
                verdict.tier,
                Tier::Device,
                "{unit}, seed {seed}: {}",
                verdict.evidence
            );
            let told = [verdict.size_bytes, verdict.reach_bytes, verdict.unit_bytes];
            assert_eq!(told, [None; 3], "{unit}, seed {seed}: {}", verdict.evidence);
            assert_eq!(number(&outcome, "map_random_hit_ratio"), None);
            assert!(
                !outcome
                    .findings
                    .quantities
                    .keys()
                    .any(|name| name.starts_with("map_reach"))
            );
        }
    }
}

/// Whether an emitted drive file says that the unit of host memory's map, and the number of dies, were measured.
fn sources(outcome: &Outcome) -> [bool; 2] {
    let text = lodger_sim_target::drive_file(outcome).expect("a drive file");
    let unit = "\"role.map.unit.hmb\" = { kind = \"measured\"";
    [unit, "their product was measured"].map(|source| text.contains(source))
}

/// Neither is written to a drive file as measured; the null: both are where they are.
#[test]
fn what_a_busy_drive_shows_is_not_emitted_as_measured() {
    let set = [
        ("role.map.unit.sram", "4KiB"),
        ("role.map.unit.hmb", "4MiB"),
    ];
    assert_eq!(sources(&probed(plain(&set), &[], 0)), [false, false]);
    assert_eq!(sources(&probed(plain(&[]), &[], 0)), [true, true]);
}

/// The null: units of 256 MiB that are completed in time.
#[test]
fn units_that_are_completed_in_time_tell_the_size_of_a_map() {
    for name in ["bg4", "rc100-240"] {
        for seed in 0..2 {
            let outcome = probed(of_collection(name, &[]), &["map-cache"], seed);
            let verdict = &outcome.roles["map"];
            let [reach, unit] =
                [verdict.reach_bytes, verdict.unit_bytes].map(|of| of.expect("told"));
            assert!(
                (reach.low..=reach.high).contains(&(24.0 * f64::from(1 << 30))),
                "{reach:?}"
            );
            assert!(
                (unit.low..=unit.high).contains(&(256.0 * f64::from(1 << 20))),
                "{unit:?}"
            );
        }
    }
}

/// Host memory so far away that a hit there takes as long as a translation page in flash: "no difference", and "device".
#[test]
fn host_memory_as_far_as_flash_is_not_ruled_out() {
    let far: [Set<'_>; 2] = [
        &[("link.host_memory", "100us"), ("link.one_way", "20us")],
        &[
            ("link.host_memory", "90us"),
            ("nand.channels", "8"),
            ("nand.dies_per_channel", "4"),
        ],
    ];
    for set in far {
        for seed in 0..2 {
            let outcome = probed(
                plain(set),
                &["map-cache", "parallelism", "working-set"],
                seed,
            );
            let verdict = &outcome.roles["map"];
            assert_ne!(
                verdict.tier,
                Tier::Device,
                "seed {seed}: {}",
                verdict.evidence
            );
        }
    }
}

/// The null: a map in the drive's own memory, of which host memory holds nothing. Host memory is near.
#[test]
fn a_map_on_the_drive_is_told_where_host_memory_is_near() {
    let set = [
        ("role.map.tiers", "[\"sram\"]"),
        ("role.read_cache.tier", "hmb"),
        ("role.read_cache.size", "12MiB"),
    ];
    for seed in 0..2 {
        let outcome = probed(plain(&set), &["map-cache", "working-set"], seed);
        let verdict = &outcome.roles["map"];
        assert_eq!(verdict.tier, Tier::Device, "{}", verdict.evidence);
    }
}

/// Where firmware takes half a millisecond, a page that is kept saves less than a tenth of a read: "read again as long as the
/// first time", 99.7 % sure, and so no read cache.
#[test]
fn a_read_cache_behind_slow_firmware_is_not_ruled_out() {
    let text = include_str!("fixtures/slow_firmware.toml");
    let tier = |size, seed| {
        let drive = Drive::parse("slow", text, &[("role.read_cache.size", size)]).unwrap();
        let outcome = probed(drive, &["map-cache", "read-cache"], seed);
        outcome.roles["read_cache"].tier
    };
    for seed in 0..4 {
        assert_ne!(tier("64KiB", seed), Tier::None, "seed {seed}");
        // The null: without one it is said that there is none.
        assert_eq!(tier("0B", seed), Tier::None, "seed {seed}");
    }
}
