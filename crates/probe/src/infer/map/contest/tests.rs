//! What contests a verdict on the map, each by the drive that showed it.

use super::by_looks;
use crate::experiment::levels::Levels;
use crate::findings::{Findings, Held};
use crate::infer::map::Found;
use crate::infer::map::MapArm;
use crate::infer::read_cache::ReadCacheArm;
use crate::infer::{self, Tier, Verdict};
use crate::role::{self, Role};
use crate::stats::Estimate;
use crate::target::{Description, HmbSwitch, Transport};
use std::collections::BTreeMap;

const GIB: f64 = (1u64 << 30) as f64;

fn about(hmb: HmbSwitch) -> Description {
    Description {
        name: "drive".to_owned(),
        model: String::new(),
        serial: String::new(),
        firmware: String::new(),
        capacity_bytes: 512 << 30,
        block_bytes: 512,
        transfer_bytes_max: 1 << 20,
        transport: Transport::Direct,
        no_flush: None,
        no_deallocate: None,
        no_write: None,
        hmb,
        notes: Vec::new(),
    }
}

/// Reads as fast far as near, by pairs of reads.
const FLAT: MapArm = MapArm {
    levels: None,
    near_ns: 60_000.0,
    near_mean_ns: 60_000.0,
    missed: Estimate::new(0.0, -0.02, 0.02),
    units: Held::Everything(0.0),
    unit_is_told: true,
    reach_bytes: Held::Everything(512.0 * GIB),
    hit_ns: 60_000.0,
    slow_again_ns: None,
};

fn verdict(mut findings: Findings, hmb: HmbSwitch) -> Verdict {
    findings.collisions = Some(true);
    infer::verdict(Role::Map, &mut findings, &about(hmb)).expect("the map was looked at")
}

fn of_arms(arms: BTreeMap<&'static str, MapArm>) -> Findings {
    let map = Found {
        arms,
        ..Found::default()
    };
    let roles = role::Found {
        map,
        ..role::Found::default()
    };
    Findings {
        roles,
        ..Findings::default()
    }
}

fn without_host_memory() -> Findings {
    of_arms(BTreeMap::from([("as found", FLAT)]))
}

fn switched() -> Findings {
    of_arms(BTreeMap::from([("on", FLAT), ("off", FLAT)]))
}

const ON_OFF: HmbSwitch = HmbSwitch::OnOff {
    granted_bytes: 64 << 20,
};

#[test]
fn a_map_said_to_be_at_hand_is_contested_by_slower_random_reads() {
    let of_rate = |per_s: f64| {
        let mut findings = without_host_memory();
        let rate = Estimate::new(per_s, 0.95 * per_s, 1.05 * per_s);
        findings.quantity("random_read_qd1", "1/s", rate);
        verdict(findings, HmbSwitch::NotUsed)
    };
    assert_eq!(of_rate(1e9 / 62_000.0).tier, Tier::Device);
    let contested = of_rate(1e9 / 120_000.0);
    assert_eq!(contested.tier, Tier::Undecided, "{contested:?}");
    for part in ["contested", "120.0 us", "queue-depth"] {
        assert!(contested.evidence.contains(part), "{}", contested.evidence);
    }
}

#[test]
fn a_map_said_to_be_at_hand_is_contested_by_reads_that_slow_down_over_more_of_the_drive() {
    let of_last = |last_ns: f64| {
        let mut findings = without_host_memory();
        let spans = vec![(0.5 * GIB, 1e3), (GIB, 8e3), (64.0 * GIB, last_ns)];
        findings.spans.insert("as found", spans);
        verdict(findings, HmbSwitch::NotUsed)
    };
    // What lies below 1 GiB may be a read cache's doing.
    assert_eq!(of_last(8.5e3).tier, Tier::Device);
    let contested = of_last(16e3);
    assert_eq!(contested.tier, Tier::Undecided, "{contested:?}");
    assert!(
        contested.evidence.contains("2.00 times as long"),
        "{}",
        contested.evidence
    );
}

#[test]
fn no_difference_is_contested_by_working_sets_that_differ_with_host_memory() {
    let of_ratio = |ratio: f64| {
        let mut findings = switched();
        let spans = |factor: f64| vec![(2.0 * GIB, 8e3 * factor), (8.0 * GIB, 8e3 * factor)];
        findings.spans.insert("on", spans(1.0));
        findings.spans.insert("off", spans(ratio));
        verdict(findings, ON_OFF)
    };
    assert_eq!(of_ratio(1.05).tier, Tier::Device);
    let contested = of_ratio(1.8);
    assert_eq!(contested.tier, Tier::Undecided, "{contested:?}");
    assert!(
        contested.evidence.contains("working-set"),
        "{}",
        contested.evidence
    );
}

/// Seed 90079: pages of the fastest kind have two levels, and no scan met the slow one.
#[test]
fn slow_reads_that_no_scan_meets_show_no_map_on_the_drive() {
    let levels = Levels {
        fast_ns: 60_000.0,
        slow_ns: 120_000.0,
        least_slow_ns: 120_000.0,
        threshold_ns: 85_000.0,
        false_slow: 0.0,
        false_fast: 0.0,
        pages_below_ns: Some(67_000.0),
        kept_pages: 0,
    };
    let arm = MapArm {
        levels: Some(levels),
        missed: Estimate::new(0.5, 0.4, 0.6),
        ..FLAT
    };
    let findings = of_arms(BTreeMap::from([("on", arm), ("off", arm)]));
    let found = verdict(findings, ON_OFF);
    assert_eq!(found.tier, Tier::Undecided, "{found:?}");
}

/// Seeds 80035 and 80039: pages differ in latency there, and "all reads take the same time" was said.
#[test]
fn that_nothing_shows_flash_is_not_said_to_be_equal_latency() {
    let mut findings = without_host_memory();
    let found = infer::verdict(Role::Map, &mut findings, &about(HmbSwitch::NotUsed)).unwrap();
    assert_eq!(found.tier, Tier::Undecided);
    assert!(!found.evidence.contains("same time"), "{}", found.evidence);
    assert!(
        found.evidence.contains("near each other"),
        "{}",
        found.evidence
    );
}

/// Seed 98042: hits in far host memory take as long as the fastest misses, so that edges are those of the drive's
/// own memory in either state, and "host memory makes no difference" was said.
#[test]
fn slower_hits_with_host_memory_on_are_a_difference() {
    assert_eq!(of_edges(86_000.0, 162_000.0).tier, Tier::Device);
    let found = of_edges(109_000.0, 162_000.0);
    assert_eq!(found.tier, Tier::Undecided, "{found:?}");
    assert!(found.evidence.contains("109.0 us"), "{}", found.evidence);
}

/// Seed 300053: hits in far host memory were as slow as misses may be, so that edges were those of the drive's own
/// memory in either state, and "host memory makes no difference" was said, 99 % sure.
#[test]
fn misses_that_wait_less_with_host_memory_on_are_a_difference() {
    assert_eq!(of_edges(84_000.0, 155_000.0).tier, Tier::Device);
    let found = of_edges(84_000.0, 128_000.0);
    assert_eq!(found.tier, Tier::Undecided, "{found:?}");
    assert!(found.evidence.contains("44.0 us"), "{}", found.evidence);
}

/// An edge at 32 units, with what single reads took: at hand, not at hand, read again and fast, read again and slow.
fn of_levels(fast_ns: f64, slow_ns: f64, hit_ns: f64, slow_again_ns: Option<f64>) -> MapArm {
    MapArm {
        levels: Some(Levels {
            fast_ns,
            slow_ns,
            least_slow_ns: slow_ns,
            threshold_ns: (fast_ns * slow_ns).sqrt(),
            false_slow: 0.0,
            false_fast: 0.0,
            pages_below_ns: None,
            kept_pages: 0,
        }),
        reach_bytes: Held::UpTo(Estimate::new(GIB, GIB, GIB)),
        units: Held::UpTo(Estimate::new(32.0, 32.0, 32.0)),
        hit_ns,
        slow_again_ns,
        ..FLAT
    }
}

/// A map in host memory 25 us away, latencies that go up and down together by 10 %: host memory's hits took 146 us, beyond
/// what counts as a miss, and "no difference" was 98.6 % sure, for of the few slow reads without host memory no median was taken.
#[test]
fn slow_reads_are_compared_with_first_reads_where_few_were_slow_again() {
    let off = of_levels(101_120.0, 171_497.0, 111_694.0, None);
    let found = |on: MapArm| verdict(of_arms(BTreeMap::from([("on", on), ("off", off)])), ON_OFF);
    let far = found(of_levels(103_770.0, 179_671.0, 119_977.0, Some(149_931.0)));
    assert_eq!(far.tier, Tier::Undecided, "{far:?}");
    assert!(far.evidence.contains("30.0 us"), "{}", far.evidence);
    // As slow as without: nothing else is waited for.
    let same = found(of_levels(103_770.0, 179_671.0, 119_977.0, Some(178_900.0)));
    assert_eq!(same.tier, Tier::Device, "{same:?}");
}

/// Host memory 26 us away, translation pages in flash that is read in 25 us: "device", 98.9 % sure, by `map-cache` alone.
#[test]
fn flash_as_near_as_host_memory_may_be_shows_no_map_on_the_drive() {
    let arm = |slow_ns| of_levels(90_000.0, slow_ns, 90_000.0, Some(slow_ns));
    let found = |slow_ns: f64, spans: bool| {
        let mut findings = of_arms(BTreeMap::from([
            ("on", arm(slow_ns)),
            ("off", arm(slow_ns)),
        ]));
        for state in ["on", "off"].into_iter().filter(|_| spans) {
            let alike = vec![(2.0 * GIB, 8e3), (8.0 * GIB, 8e3)];
            findings.spans.insert(state, alike);
        }
        verdict(findings, ON_OFF)
    };
    let near = found(118_000.0, false);
    assert_eq!(near.tier, Tier::Undecided, "{near:?}");
    assert!(near.evidence.contains("working-set"), "{}", near.evidence);
    assert_eq!(found(118_000.0, true).tier, Tier::Device);
    assert_eq!(found(150_000.0, false).tier, Tier::Device);
}

/// The same edge with host memory on and off, with what hits and slow reads take with it on.
fn of_edges(hit_ns: f64, slow_again_ns: f64) -> Verdict {
    let arm = |hit_ns: f64, slow_again_ns: f64| MapArm {
        levels: Some(Levels {
            fast_ns: 84_000.0,
            slow_ns: 162_000.0,
            least_slow_ns: 131_000.0,
            threshold_ns: 112_000.0,
            false_slow: 0.0,
            false_fast: 0.0,
            pages_below_ns: Some(96_000.0),
            kept_pages: 0,
        }),
        reach_bytes: Held::UpTo(Estimate::new(64e6, 60e6, 68e6)),
        units: Held::UpTo(Estimate::new(16.0, 15.0, 17.0)),
        hit_ns,
        slow_again_ns: Some(slow_again_ns),
        ..FLAT
    };
    let (on, off) = (arm(hit_ns, slow_again_ns), arm(84_000.0, 162_000.0));
    verdict(of_arms(BTreeMap::from([("on", on), ("off", off)])), ON_OFF)
}

/// A guest on a busy machine, with a read cache of 256 KiB in host memory and a map that is not there: noise hid which
/// reads came from the cache, and the pages that are read again and again for the map did come from it.
#[test]
fn a_map_in_host_memory_is_contested_by_a_read_cache_of_unknown_size_there() {
    let of_saved = |on: f64, off: f64| {
        let arm = |units: f64| MapArm {
            levels: Some(Levels {
                fast_ns: 990_000.0,
                slow_ns: 1_700_000.0,
                least_slow_ns: 1_600_000.0,
                threshold_ns: 1_300_000.0,
                false_slow: 0.05,
                false_fast: 0.0,
                pages_below_ns: Some(1_000_000.0),
                kept_pages: 0,
            }),
            units: Held::UpTo(Estimate::new(units, units - 1.0, units + 1.0)),
            reach_bytes: Held::UpTo(Estimate::new(units * 4.19e6, units * 4.1e6, units * 4.3e6)),
            ..FLAT
        };
        let mut findings = of_arms(BTreeMap::from([("on", arm(40.0)), ("off", arm(8.0))]));
        for (state, saved) in [("on", on), ("off", off)] {
            let cache = ReadCacheArm {
                levels: None,
                saved: Estimate::new(saved, saved - 0.05, saved + 0.05),
                bytes: Held::Nothing,
            };
            findings.roles.read_cache.arms.insert(state, cache);
        }
        verdict(findings, ON_OFF)
    };
    let contested = of_saved(0.71, 0.0);
    assert_eq!(contested.tier, Tier::Undecided, "{contested:?}");
    assert!(
        contested.evidence.contains("saves 71 %"),
        "{}",
        contested.evidence
    );
    // Nothing is kept, or by the drive itself in either state: no explanation.
    assert_eq!(of_saved(0.0, 0.0).tier, Tier::Hmb);
    assert_eq!(of_saved(0.71, 0.71).tier, Tier::Hmb);
}

#[test]
fn a_contested_verdict_is_shown_as_such_and_has_no_size() {
    let mut findings = without_host_memory();
    findings.quantity("random_read_qd1", "1/s", Estimate::new(5e3, 5e3, 5e3));
    let contested = verdict(findings, HmbSwitch::NotUsed);
    assert_eq!((contested.size_bytes, contested.rule), (None, None));
    // Another run may settle it.
    assert!(contested.is_passing);
}

/// A further look that showed no edge was left out, and the first one stood as if nobody had looked again.
#[test]
fn farther_with_host_memory_must_hold_each_time_that_both_are_looked_at() {
    let of = |mib: f64| {
        let bytes = mib * 1024.0 * 1024.0;
        Held::UpTo(Estimate::new(bytes, bytes, bytes))
    };
    let arm = |mib: f64| MapArm {
        reach_bytes: of(mib),
        ..FLAT
    };
    let (on, off) = (arm(200.0), arm(100.0));
    let looks = |again: &[(Option<Held>, Option<Held>)]| by_looks(again, &on, &off);
    assert_eq!(looks(&[]), Ok(String::new()));
    let alike = (Some(of(205.0)), Some(of(98.0)));
    let text = looks(&[alike, alike]).expect("it reaches farther each time");
    assert!(text.contains("of 3 looks at each"), "{text}");
    for other in [
        (Some(of(100.0)), Some(of(200.0))),
        (None, Some(of(98.0))),
        (Some(of(205.0)), None),
    ] {
        assert!(looks(&[alike, other]).is_err(), "{other:?}");
    }
}
