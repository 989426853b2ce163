//! Defects of the size of a map that drives drawn at random have shown, each with the drive that showed it.
//! Latencies differ from page to page here, and so does what a miss adds.

use crate::common::probed;
use lodger_core::Precondition;
use lodger_probe::{Tier, Verdict};
use lodger_run::Drive;

fn map_of(text: &str, precondition: Precondition, seed: u64) -> Verdict {
    let drive = Drive::parse("drawn", text, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
    map_of_drive(drive, precondition, seed)
}

fn map_of_drive(drive: Drive, precondition: Precondition, seed: u64) -> Verdict {
    let outcome = probed(drive, precondition, (&["map-cache"], false), seed);
    outcome.roles["map"].clone()
}

/// Right, or open, is the tier; the size covers the truth, and is no wider than entries of 4 to 8 B make it.
fn is_right_or_open(verdict: &Verdict, tier: Tier, bytes: f64) {
    if verdict.tier == Tier::Undecided {
        return;
    }
    assert_eq!(verdict.tier, tier, "{}", verdict.evidence);
    let Some(size) = verdict.size_bytes else {
        return;
    };
    assert!(size.low <= bytes && bytes <= size.high, "{verdict:?}");
    assert!(size.high < 2.3 * size.low, "{verdict:?}");
}

/// Seed 95007: pages that were just picked are in the read cache, no look told anything, and "none was slow"
/// became "the whole map is at hand".
#[test]
fn a_walk_without_a_single_look_does_not_show_the_whole_map_at_hand() {
    let verdict = map_of(
        include_str!("blind/map_95007.toml"),
        Precondition::Sequential,
        95007,
    );
    is_right_or_open(&verdict, Tier::Hmb, 16_776_167.424);
    let reach = verdict.reach_bytes.map(|reach| reach.estimate);
    assert!(reach.is_none_or(|bytes| bytes < 16e9), "{reach:?}");
}

/// Seed 95056: a page in the read cache takes as long as its translation page, which is as long as a page of the
/// fastest kind one time in four: a map of 21 units that replaces by use was given 56, "at random".
#[test]
fn a_page_in_the_read_cache_does_not_answer_for_its_map_entry() {
    let verdict = map_of(
        include_str!("blind/map_95056.toml"),
        Precondition::Sequential,
        95056,
    );
    is_right_or_open(&verdict, Tier::Device, 1_376_256.0);
    assert_eq!(verdict.tier, Tier::Device, "{}", verdict.evidence);
    let reach = verdict.reach_bytes.expect("a reach");
    let truth = 21.0 * f64::from(32 << 20);
    assert!((reach.estimate / truth - 1.0).abs() < 0.05, "{reach:?}");
}

/// Seed 95028: such misses were taken for hits in far host memory, and the threshold moved above them.
#[test]
fn fast_misses_are_not_taken_for_hits_in_far_host_memory() {
    let verdict = map_of(
        include_str!("blind/map_95028.toml"),
        Precondition::Random,
        95028,
    );
    is_right_or_open(&verdict, Tier::Hmb, 16_692_480.0);
    let reach = verdict.reach_bytes.map(|reach| reach.estimate);
    assert!(reach.is_none_or(|bytes| bytes < 16e9), "{reach:?}");
}

/// The drive's own memory holds 320 units of 4 MiB, host memory 96 of 256 MiB: as one page stood for each of those, it was
/// found again in the drive's own memory, and 320 units of 256 MiB were told, 99.5 % sure.
#[test]
fn a_page_in_the_drives_own_small_units_does_not_answer_for_host_memory() {
    let set = [
        ("role.map.unit.sram", "4KiB"),
        ("nand.read", "[\"95us\", \"130us\", \"165us\"]"),
    ];
    let drive = Drive::open("bg4", &set).expect("a drive");
    for seed in [7, 8, 9] {
        let verdict = map_of_drive(drive.clone(), Precondition::Sequential, seed);
        assert_eq!(verdict.tier, Tier::Hmb, "{}", verdict.evidence);
        let reach = verdict.reach_bytes.expect("a reach");
        let truth = 24.0 * f64::from(1 << 30);
        assert!((reach.estimate / truth - 1.0).abs() < 0.05, "{reach:?}");
    }
}
