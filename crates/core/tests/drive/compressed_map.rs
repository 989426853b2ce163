//! Maps kept as runs or as learned segments: how far a memory reaches when pages are compressed, and
//! what random overwrites make of it. Every size is held against the map it stands for.

use crate::common::{closed_loop, drive, latency, pages, settle};
use lodger_core::Host;
use lodger_core::rng::Rng;
use lodger_core::transport::wire_ps;
use lodger_core::{DriveSpec, Op, Precondition};
use proptest::prelude::*;

/// Translation pages of `tiny`.
const PAGES: u32 = 128;
const USER_PAGES: u32 = PAGES << 10;

fn tiny(encoding: &str, more: &[(&str, &str)]) -> DriveSpec {
    let mut sets = vec![
        ("role.map.encoding", encoding),
        ("role.map.tiers", "sram"),
        ("role.map.size.sram", "32KiB"),
    ];
    sets.extend(more);
    drive("tiny", &sets)
}

/// Share of random reads over the whole drive that find their entry, in percent, and the pages held.
fn hits(host: &mut Host) -> (u64, u32) {
    let mut read = |rng: &mut Rng| pages(Op::Read, u64::from(rng.below(USER_PAGES)), 1);
    closed_loop(host, 8, 3_000, &mut read);
    let before = host.counters().map;
    closed_loop(host, 8, 3_000, &mut read);
    let after = host.counters().map;
    let percent = (after.hits[0] - before.hits[0]) * 100 / (after.lookups - before.lookups);
    (percent, host.drive.compressed_map_use()[0].1)
}

#[test]
fn a_drive_written_in_order_fits_whole_and_one_written_at_random_does_not_compress() {
    for (encoding, page_bytes) in [("runs", 16), ("learned", 40)] {
        let spec = tiny(encoding, &[]);
        let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
        assert_eq!(hits(&mut host), (100, PAGES), "{encoding}");
        let (_, _, used, _) = host.drive.compressed_map_use()[0];
        // Where a page of the map straddles two superblocks it is a run or a segment more.
        let least = u64::from(PAGES) * page_bytes;
        assert!(
            (least..least + 64 * 8).contains(&used),
            "{encoding}: {used}"
        );
        // At random: 7 pages of 4 KiB and their headers; flat, there would be 8 of 128.
        let mut host = Host::new(&spec, Precondition::Random, 0, 1);
        let (percent, held) = hits(&mut host);
        assert_eq!(held, 7, "{encoding}");
        assert!((3..=8).contains(&percent), "{encoding}: {percent} %");
    }
}

/// Pages held after `overwrites` random overwrites of a drive written in order.
fn held_after(encoding: &str, overwrites: u64) -> u32 {
    let spec = tiny(encoding, &[]);
    let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
    closed_loop(&mut host, 8, overwrites, |rng| {
        pages(Op::Write, u64::from(rng.below(USER_PAGES)), 1)
    });
    settle(&mut host);
    let (_, held) = hits(&mut host);
    host.drive.check_map();
    held
}

#[test]
fn random_overwrites_break_runs_sooner_than_segments() {
    // 4 % of the drive: 41 entries a page. Runs: 1 + 2 x 41 records; segments: 4 + 41.
    let overwrites = u64::from(USER_PAGES) / 25;
    let (runs, learned) = (
        held_after("runs", overwrites),
        held_after("learned", overwrites),
    );
    let expected = |records: u64| 32 * 1024 / (8 + 8 * records);
    for (held, records) in [(runs, 1 + 2 * 41), (learned, 4 + 41)] {
        let expected = expected(records) as f64;
        let error = (f64::from(held) / expected - 1.0).abs();
        assert!(error < 0.1, "{held} pages, {expected} expected");
    }
    // Half of the drive: runs are flat, segments nearly so.
    assert_eq!(held_after("runs", u64::from(USER_PAGES) / 2), 7);
}

proptest! {
    #![proptest_config(lodger_testing::config(24))]
    /// Whatever is written, trimmed, collected, granted and taken: the size of every page held is
    /// that of its entries now, and all of them fit.
    #[test]
    fn sizes_follow_the_map(seed: u64, shape in 0u32..32) {
        let bit = |n: u32, yes: &'static str, no: &'static str| if shape >> n & 1 != 0 { yes } else { no };
        let sets = [
            ("capacity", "64MiB"),
            ("nand.pages_per_block", "24"),
            ("role.map.tiers", "[\"sram\", \"hmb\"]"),
            ("role.map.exclusive", bit(0, "true", "false")),
            ("role.map.encoding", bit(1, "runs", "learned")),
            ("role.map.encoding.sram", if shape >> 2 & 1 != 0 { "flat" } else { bit(1, "runs", "learned") }),
            ("role.map.replacement", ["lru", "2q", "random", "clock"][(shape >> 3) as usize]),
            ("tier.hmb.integrity", bit(0, "none", "mac")),
            ("role.map.size.sram", "9KiB"),
            ("tier.hmb.preferred", "32KiB"),
            ("tier.hmb.min", "8KiB"),
        ];
        let spec = drive("tiny", &sets);
        let mut rng = Rng::new(seed);
        let precondition = [Precondition::None, Precondition::Sequential, Precondition::Random];
        let precondition = precondition[rng.below(3) as usize];
        let mut host = Host::new(&spec, precondition, 32 << 10, seed);
        let mut done = Vec::new();
        for _ in 0..800 {
            let op = [Op::Read, Op::Read, Op::Write, Op::Write, Op::Trim][rng.below(5) as usize];
            let length = [1, 4, 40, 1500][rng.below(4) as usize];
            let length = if op == Op::Trim { length } else { length.min(40) };
            let lpn = u64::from(rng.below(16_384 - length as u32));
            host.submit(pages(op, lpn, length));
            if rng.below(100) == 0 {
                host.set_hmb([0, 8 << 10, 16 << 10, 32 << 10][rng.below(4) as usize]);
            }
            let to_ps = host.now_ps() + u64::from(rng.below(200_000_000));
            host.advance(to_ps, &mut done);
            if rng.below(20) == 0 {
                host.drive.check_map();
            }
        }
        settle(&mut host);
        host.drive.check_map();
        host.drive.ftl().check();
        prop_assert_eq!(host.in_flight(), 0);
    }
}

/// Latency and host memory traffic of a read whose entry is in host memory, after `overwrites`
/// scattered overwrites in its translation page.
fn look_up(encoding: &str, overwrites: u64) -> (u64, u64, DriveSpec) {
    let sets = [
        ("role.map.tiers", "[\"sram\", \"hmb\"]"),
        ("role.map.size.sram", "4KiB"),
        ("role.map.encoding.hmb", encoding),
        ("role.read_cache.size", "0B"),
    ];
    let spec = tiny("flat", &sets);
    let mut host = Host::new(&spec, Precondition::Sequential, 256 << 10, 1);
    latency(&mut host, pages(Op::Read, 0, 1));
    (0..overwrites).for_each(|at| host.submit(pages(Op::Write, 2 * at, 1)));
    host.submit(pages(Op::Flush, 0, 1));
    settle(&mut host);
    host.drive.check_map();
    // The next page takes its place in SRAM.
    latency(&mut host, pages(Op::Read, 1024, 1));
    let before = host.counters();
    let took = latency(&mut host, pages(Op::Read, 1023, 1));
    let after = host.counters();
    assert_eq!(after.map.hits[1] - before.map.hits[1], 1);
    (took, after.hmb_read_bytes - before.hmb_read_bytes, spec)
}

#[test]
fn a_compressed_page_in_host_memory_is_read_as_a_whole() {
    let (flat_ps, bytes, spec) = look_up("flat", 20);
    assert_eq!(bytes, 64);
    assert_eq!(look_up("runs", 0).1, 64, "one run fits a line");
    // 20 overwritten pages lie side by side in flash but not in the map: 20 runs and the 20 that
    // are left between and after them, and a header, in lines.
    let (runs_ps, bytes, _) = look_up("runs", 20);
    assert_eq!(bytes, u64::next_multiple_of(40 * 8 + 8, 64));
    let longer_ps = wire_ps(&spec.link, bytes) - wire_ps(&spec.link, 64);
    assert_eq!(runs_ps, flat_ps + longer_ps);
}

#[test]
fn a_compressed_map_lives_beside_a_flat_one_of_larger_units() {
    // Sizes were looked for in the flat memory by page, where it knows units of three.
    let sets = [
        ("role.map.encoding.sram", "runs"),
        ("role.map.unit.hmb", "12KiB"),
    ];
    let spec = drive("tiny", &sets);
    let mut host = Host::new(&spec, Precondition::Random, 256 << 10, 1);
    closed_loop(&mut host, 8, 4_000, |rng| {
        let op = [Op::Read, Op::Write][rng.below(2) as usize];
        pages(op, u64::from(rng.below(USER_PAGES)), 1)
    });
    settle(&mut host);
    host.drive.check_map();
}

#[test]
fn what_an_exclusive_map_uses_stays_in_a_compressed_memory_that_holds_all() {
    for encoding in ["runs", "learned"] {
        let sets = [
            ("role.map.tiers", "sram, dram"),
            ("role.map.exclusive", "true"),
            ("role.map.size.sram", "8KiB"),
            ("tier.dram.size", "8MiB"),
            ("role.map.encoding.dram", encoding),
        ];
        let mut host = Host::new(&drive("tiny", &sets), Precondition::Random, 0, 1);
        hits(&mut host);
        // What is near is measured when it is written, and so has a size.
        closed_loop(&mut host, 8, 2_000, |rng| {
            pages(Op::Write, u64::from(rng.below(USER_PAGES)), 1)
        });
        hits(&mut host);
        host.drive.check_map();
        let counters = host.counters();
        assert_eq!(counters.map.misses, 0, "{encoding}");
        assert!(counters.map.hits[0] > 0, "{encoding}: what is used is near");
    }
}
