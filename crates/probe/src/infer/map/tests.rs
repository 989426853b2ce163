//! What sizes are told from, each defect by the seed that showed it.

use super::grants::bytes_per_entry;
use super::taken::by_one_amount;
use super::*;

const MIB: f64 = 1_048_576.0;
const GIB: f64 = 1024.0 * MIB;

fn on_off(reach: f64, granted: f64) -> Verdict {
    let verdict = Verdict::new(Tier::Hmb, rules::FARTHER, "");
    let reach = Estimate::new(reach, reach, reach);
    by_one_amount(&mut Findings::default(), granted, (reach, 0.0), verdict)
}

/// Seed 95002: 32 MiB of 46 MiB given served the map, and the size was said to be 46 MiB.
#[test]
fn what_was_offered_is_no_size_where_only_one_amount_was() {
    let verdict = on_off(31.875 * GIB, 46.0 * MIB);
    let size = verdict.size_bytes.expect("a size");
    assert!(verdict.size_is_range, "{verdict:?}");
    assert!(
        size.low < 31.875 * MIB && size.high == 46.0 * MIB,
        "{size:?}"
    );
    // All of it serves the map: that is a number.
    assert!(!on_off(45.9 * GIB, 46.0 * MIB).size_is_range);
}

#[test]
fn an_entry_takes_no_more_than_eight_bytes_of_what_was_offered() {
    let verdict = on_off(12.7 * GIB, 34.0 * MIB);
    let size = verdict.size_bytes.expect("a size");
    assert!(size.high < 26.0 * MIB && size.low > 12.0 * MIB, "{size:?}");
}

/// Seed 95007: 23 MiB were said to hold entries of 1022 GiB.
#[test]
fn a_reach_beyond_what_entries_of_four_bytes_allow_leaves_the_size_open_below() {
    let verdict = on_off(1022.0 * GIB, 23.0 * MIB);
    assert_eq!(verdict.size_bytes.map(|size| size.low), Some(0.0));
    assert!(verdict.size_is_range, "{verdict:?}");
}

fn with_amounts(reaches: &[(u64, f64)]) -> Findings {
    let held = |gib: f64| Held::UpTo(Estimate::new(gib * GIB, gib * GIB, gib * GIB));
    let mut findings = Findings::default();
    findings.roles.map.reach_of_grant = reaches
        .iter()
        .map(|(mib, gib)| (mib << 20, held(*gib)))
        .collect();
    findings
}

/// Seed 90059: 11 MiB serve the write buffer, and small amounts reach what the drive's own memory reaches.
#[test]
fn small_amounts_that_serve_something_else_are_not_rounded_down() {
    let reaches = [
        (28, 15.99),
        (24, 13.39),
        (16, 4.26),
        (12, 0.95),
        (8, 1.03),
        (4, 0.58),
    ];
    let mut findings = with_amounts(&reaches);
    bytes_per_entry(&mut findings, 28.0 * MIB);
    assert!(!findings.roles.map.rounds_down);
    let reaches = [
        (112, 40.18),
        (98, 40.2),
        (64, 40.2),
        (48, 8.2),
        (32, 8.3),
        (16, 5.8),
    ];
    let mut findings = with_amounts(&reaches);
    bytes_per_entry(&mut findings, 112.0 * MIB);
    assert!(findings.roles.map.rounds_down);
}

/// Seed 98173: 8 and 16 MiB seemed to reach as far as each other, which no line explains.
#[test]
fn amounts_that_reach_beyond_proportion_tell_no_entry() {
    let reaches = [(37, 15.67), (32, 15.67), (16, 11.42), (8, 11.42)];
    assert_eq!(
        bytes_per_entry(&mut with_amounts(&reaches), 37.0 * MIB),
        None
    );
}

/// A drive by hand whose link, PCIe 1.0 x2, is held up by the units that it sends to host memory: 8 MiB serve the write buffer, and
/// "6.27 B an entry, 64 MiB" were said of 5.33 B and 56 MiB.
#[test]
fn an_entry_that_the_largest_amount_has_no_room_for_is_none() {
    let reaches = [
        (64, 50.47),
        (56, 35.87),
        (48, 30.63),
        (32, 26.51),
        (16, 4.78),
    ];
    let mut findings = with_amounts(&reaches);
    // What the drive's own memory adds, and with it the doubt whether small amounts reach too far.
    let own = MapArm {
        levels: None,
        near_ns: 0.0,
        near_mean_ns: 0.0,
        missed: Estimate::new(0.0, 0.0, 0.0),
        units: Held::Everything(0.0),
        unit_is_told: true,
        reach_bytes: Held::UpTo(Estimate::new(GIB, GIB, GIB)),
        hit_ns: 0.0,
        slow_again_ns: None,
    };
    findings.roles.map.arms.insert("off", own);
    assert_eq!(bytes_per_entry(&mut findings, 64.0 * MIB), None);
}

/// Seed 98024: 16 MiB serve other roles, and two amounts lie on a line whatever they reach. A drive that rounds 38 MiB
/// down to 32 and takes 16 at least shows no more of them.
#[test]
fn two_amounts_tell_an_entry_only_in_proportion() {
    let reaches = [(32, 10.52), (16, 0.78)];
    assert_eq!(
        bytes_per_entry(&mut with_amounts(&reaches), 36.0 * MIB),
        None
    );
    let reaches = [(32, 32.0), (16, 16.0)];
    let found = bytes_per_entry(&mut with_amounts(&reaches), 38.0 * MIB);
    let entry = found.and_then(|(entry, _)| entry).expect("an entry");
    assert!((entry.estimate - 4.0).abs() < 0.01, "{entry:?}");
}

/// Five units in host memory that give way at random: "71.73 bytes (4.00 to 71.73)", beside evidence that entries take 8 B at most.
#[test]
fn more_than_entries_are_known_to_take_is_no_number_of_bytes_an_entry() {
    let told = |reach: f64, granted: f64| {
        let mut findings = Findings::default();
        let verdict = Verdict::new(Tier::Hmb, rules::FARTHER, "");
        let reach = Estimate::new(reach, reach, reach);
        by_one_amount(&mut findings, granted, (reach, 0.0), verdict);
        let entry = findings.quantities.get("map_bytes_per_entry");
        entry.map(|entry| entry.value.estimate)
    };
    assert_eq!(told(171.0 * MIB, 3.0 * MIB), None);
    // The null: 6 B an entry.
    let six = told(8.0 * GIB, 12.0 * MIB).expect("a number");
    assert!((six - 6.0).abs() < 0.1, "{six}");
}

/// "bytes an entry do not show ...; that is more than the 8 B": nothing was named that could be more.
#[test]
fn what_is_more_than_entries_take_is_named() {
    for by_itself in [0.0, 160.0 * MIB] {
        let verdict = Verdict::new(Tier::Hmb, rules::FARTHER, "");
        let reach = Estimate::new(171.0 * MIB, 171.0 * MIB, 171.0 * MIB);
        let findings = &mut Findings::default();
        let verdict = by_one_amount(findings, 3.0 * MIB, (reach, by_itself), verdict);
        let said = "; 3 MiB are more than";
        assert!(verdict.evidence.contains(said), "{}", verdict.evidence);
    }
}

const COMPRESSED: &str = "compressed takes less";

/// A map that is compressed (`role.map.encoding = "learned"`) takes less than the 4 to 8 B an entry from which ranges are told, and
/// they were told without a word of that.
#[test]
fn that_a_compressed_map_takes_less_than_its_range_is_said() {
    let reach = Estimate::new(4.0 * GIB, 4.0 * GIB, 4.0 * GIB);
    let arm = MapArm {
        levels: None,
        near_ns: 60_000.0,
        near_mean_ns: 60_000.0,
        missed: Estimate::new(0.0, 0.0, 0.0),
        units: Held::UpTo(Estimate::new(64.0, 64.0, 64.0)),
        unit_is_told: true,
        reach_bytes: Held::UpTo(reach),
        hit_ns: 60_000.0,
        slow_again_ns: None,
    };
    let edges = [rules::EDGE, rules::EDGE_OF_KIND];
    let of_all = flat(rules::FLAT, String::new(), &[&arm], 512.0 * GIB);
    for verdict in [
        map_on_drive(&arm, 512.0 * GIB, edges),
        of_all,
        on_off(4.0 * GIB, 64.0 * MIB),
    ] {
        assert!(verdict.size_is_range, "{verdict:?}");
        assert!(
            verdict.evidence.contains(COMPRESSED),
            "{}",
            verdict.evidence
        );
    }
    // The null: what an entry takes was measured, by several amounts.
    let reaches = [(32, 32.0), (16, 16.0)];
    let found = bytes_per_entry(&mut with_amounts(&reaches), 32.0 * MIB);
    assert!(!found.expect("an entry").1.contains(COMPRESSED));
}
