//! Do array times scatter as the drive file says: by place alone, about the mean, as far as given, and not at all
//! where nothing is given?

use crate::common::{drive, latency, pages, settle};
use crate::steady::{self, Arrival, Load};
use lodger_core::rng::Rng;
use lodger_core::{DriveSpec, Host, Op, Precondition};

/// One read time, no caches and no second reader: what differs between reads is the flash alone.
fn spec(sets: &[(&str, &str)]) -> DriveSpec {
    let plain = [
        ("nand.read", "60us"),
        ("role.read_cache.size", "0B"),
        ("role.map.tiers", "[\"sram\"]"),
        ("role.map.size.sram", "512KiB"),
        ("ftl.map_slc", "true"),
    ];
    drive("tiny", &[&plain, sets].concat())
}

/// Latencies of single reads of 4 KiB spread over the drive, picoseconds; the map is at hand.
fn reads(spec: &DriveSpec, seed: u64, lpns: &[u64]) -> Vec<u64> {
    let mut host = Host::new(spec, Precondition::Sequential, 0, seed);
    let mut read = |lpn| {
        let read = latency(&mut host, pages(Op::Read, lpn, 1));
        settle(&mut host);
        read
    };
    for &lpn in lpns {
        read(lpn);
    }
    lpns.iter().map(|&lpn| read(lpn)).collect()
}

fn places(count: usize) -> Vec<u64> {
    let mut rng = Rng::new(8);
    (0..count)
        .map(|_| u64::from(rng.below(512 << 8) / 8 * 8))
        .collect()
}

fn mean_and_deviation(latencies: &[u64]) -> (f64, f64) {
    let count = latencies.len() as f64;
    let mean = latencies.iter().map(|&ps| ps as f64).sum::<f64>() / count;
    let squares = latencies.iter().map(|&ps| (ps as f64 - mean).powi(2));
    (mean, (squares.sum::<f64>() / (count - 1.0)).sqrt())
}

#[test]
fn reads_scatter_about_the_time_given_as_far_as_given() {
    let lpns = places(4_000);
    let (plain, none) = mean_and_deviation(&reads(&spec(&[]), 1, &lpns));
    assert!(none < 1.0, "{none}");
    let scattered = spec(&[
        ("nand.variation.read", "0.03"),
        ("nand.variation.block", "0.04"),
    ]);
    let (mean, deviation) = mean_and_deviation(&reads(&scattered, 1, &lpns));
    // 0.03 and 0.04 together are 0.05 of 60 us; 160 blocks only, so that their own mean is off by 0.3 %.
    assert!((mean / plain - 1.0).abs() < 0.01, "{mean} {plain}");
    assert!((deviation / 3e6 - 1.0).abs() < 0.1, "{deviation}");
}

#[test]
fn a_place_has_its_time_for_ever_and_another_seed_is_another_drive() {
    let lpns = places(200);
    let scattered = spec(&[("nand.variation.read", "0.05")]);
    let first = reads(&scattered, 1, &lpns);
    let backwards: Vec<u64> = lpns.iter().rev().copied().collect();
    let mut again = reads(&scattered, 1, &backwards);
    again.reverse();
    assert_eq!(first, again);
    let other = reads(&scattered, 2, &lpns);
    let same = first.iter().zip(&other).filter(|(a, b)| a == b).count();
    assert!(same < 20, "{same}");
}

#[test]
fn dies_differ_where_only_dies_are_said_to() {
    let lpns = places(400);
    let mut times = reads(&spec(&[("nand.variation.die", "0.1")]), 1, &lpns);
    times.sort_unstable();
    times.dedup();
    assert_eq!(times.len(), 4, "tiny has four dies");
}

#[test]
fn programs_and_erases_scatter_too_and_no_spread_is_no_table() {
    let written = |sets: &[(&str, &str)]| {
        let mut host = Host::new(&spec(sets), Precondition::Random, 0, 3);
        let mut rng = Rng::new(5);
        for tag in 0..6_000 {
            let mut request = pages(Op::Write, u64::from(rng.below(120_000)), 8);
            request.tag = tag;
            host.submit(request);
            while host.in_flight() > 16 {
                let at = host.next_time().expect("requests complete");
                host.advance(at, &mut Vec::new());
            }
        }
        settle(&mut host);
        assert!(host.counters().erases > 0);
        host.now_ps()
    };
    let plain = written(&[]);
    assert_eq!(written(&[("nand.variation.program", "0")]), plain);
    for key in ["nand.variation.program", "nand.variation.erase"] {
        assert_ne!(written(&[(key, "0.1")]), plain, "{key}");
    }
}

/// Moved data waited where the slowest die was, all that was under way, and no superblock was erased meanwhile: new data
/// stopped for 100 ms where dies differ by 5 %, and for 7 where they are alike.
#[test]
fn one_slow_die_does_not_stop_new_data() {
    let sets = |spread| {
        [
            ("capacity", "960MiB"),
            ("controller.read", "1us"),
            ("controller.write", "1us"),
            ("nand.cell", "qlc"),
            ("nand.channels", "8"),
            ("nand.dies_per_channel", "4"),
            ("nand.planes", "1"),
            ("nand.pages_per_block", "32"),
            ("nand.page_size", "4KiB"),
            ("nand.read", "50us"),
            ("nand.program", "3ms"),
            ("nand.one_shot", "false"),
            ("nand.variation.die", spread),
            ("ftl.overprovisioning", "0.5"),
            ("ftl.slc_superblocks", "0"),
            ("tier.dram.size", "16MiB"),
            ("role.map.tiers", "dram"),
            ("role.write_buffer.size", "1MiB"),
            ("tier.sram.size", "4MiB"),
        ]
    };
    let seen = |spread| {
        let load = Load {
            arrival: Arrival::Depth(32),
            reads_percent: 0,
            requests: 80_000,
        };
        steady::run(&drive("tiny", &sets(spread)), 0, load)
    };
    let (alike, mut apart) = (seen("0"), seen("0.05"));
    assert!(apart.silence_ps < 12_000_000_000, "{} ps", apart.silence_ps);
    let longest_ps = apart.writes.longest_ps();
    assert!(longest_ps < 20_000_000_000, "{longest_ps} ps");
    // The slowest of 32 dies is 9 % slower, and limits what all do together.
    let share = apart.iops() / alike.iops();
    assert!((0.85..0.97).contains(&share), "{share}");
}
