//! Is a single-bit cache of dynamic size as large as the fill of the drive lets it be, and does it give everything back?

use crate::common::{closed_loop, drive, pages, settle};
use lodger_core::ftl::{State, Stream};
use lodger_core::nand::CellMode;
use lodger_core::rng::Rng;
use lodger_core::{DriveSpec, Host, Op, Precondition};
use proptest::prelude::*;

/// Slots of a program of one die, so that writes in order fill superblocks without padding.
const CHUNK: u64 = 24;

fn spec(share: &str, more: &[(&'static str, &'static str)]) -> DriveSpec {
    let mut sets = vec![
        ("ftl.slc_superblocks", "0"),
        ("ftl.slc_idle", "0ns"),
        ("tier.sram.size", "8MiB"),
        ("role.map.size.sram", "512KiB"),
        // Superblocks of 1 MiB, the map in one and a half of them.
        ("nand.pages_per_block", "12"),
        ("capacity", "128MiB"),
        ("ftl.slc_dynamic", share),
    ];
    sets.extend_from_slice(more);
    drive("tiny", &sets)
}

fn empty(spec: &DriveSpec) -> Host {
    Host::new(spec, Precondition::None, 0, 3)
}

/// Writes pages `from..to` in order, 8 requests in flight; returns bytes a second.
fn write(host: &mut Host, from: u64, to: u64) -> f64 {
    let chunks = (to - from) / CHUNK;
    let mut next = from;
    let seconds = closed_loop(host, 8, chunks, |_| {
        next += CHUNK;
        pages(Op::Write, next - CHUNK, CHUNK)
    });
    (chunks * CHUNK * 4096) as f64 / seconds
}

fn borrowed(host: &Host) -> u32 {
    let blocks = host.drive.ftl().blocks.all().iter();
    let counted = blocks.filter(|block| block.mode.is_slc()).count() as u32;
    assert_eq!(counted, host.drive.ftl().blocks.borrowed());
    counted
}

/// Superblocks that garbage collection keeps, with what it has under way where blocks are short.
fn kept(spec: &DriveSpec) -> u32 {
    spec.ftl.gc_start_superblocks + spec.layout().superblocks_under_way as u32 + 4
}

/// As many as the share allows, one after the other, of a drive that opens nothing else meanwhile.
fn naive(free: u32, kept: u32, permille: u32) -> u32 {
    (0..)
        .find(|&taken| {
            let left = free - taken;
            left <= kept || 1000 * (taken + 1) > (free - kept) * permille
        })
        .unwrap()
}

/// What single-bit mode and other host data have opened, and what is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    free: u32,
    borrowed: u32,
    erases: u64,
    host: usize,
}

fn count(host: &Host) -> Count {
    let blocks = &host.drive.ftl().blocks;
    let of_host = blocks
        .all()
        .iter()
        .filter(|block| block.state != State::Free && block.stream == Stream::Host);
    Count {
        free: blocks.free_count(CellMode::Native),
        borrowed: borrowed(host),
        erases: host.counters().erases,
        host: of_host.count(),
    }
}

proptest! {
    #![proptest_config(lodger_testing::config(12))]

    /// Chunk by chunk, whatever the drive holds: single-bit mode takes a superblock where the naive rule lets it, and
    /// other flash is opened only where that does not.
    #[test]
    fn superblocks_are_borrowed_as_the_naive_rule_says(seed in any::<u64>(), permille in 0u32..=1000) {
        let share = format!("{}", f64::from(permille) / 1000.0);
        let spec = spec(share.leak(), &[]);
        let mut host = empty(&spec);
        let chunks = u64::from(host.drive.ftl().user_slots()) / CHUNK;
        let kept = kept(&spec);
        let mut rng = Rng::new(seed);
        let mut next = 0;
        let mut both = [0, 0];
        for _ in 0..chunks * 5 / 4 {
            let before = count(&host);
            let old = next > 0 && (next == chunks || rng.below(4) == 0);
            let chunk = if old { u64::from(rng.below(next as u32)) } else { next };
            next += u64::from(!old);
            host.submit(pages(Op::Write, chunk * CHUNK, CHUNK));
            settle(&mut host);
            let after = count(&host);
            if after.erases != before.erases {
                // What was free in between is not known.
                continue;
            }
            let all = i64::from(before.free + before.borrowed) - i64::from(kept);
            let wanted = i64::from(before.borrowed + 1);
            let may = before.free > kept && 1000 * wanted <= all * i64::from(permille);
            if after.borrowed > before.borrowed {
                prop_assert!(may, "{before:?} {after:?}");
                both[0] += 1;
            } else if after.host > before.host {
                // Unless the map has opened one in between.
                let moved = before.free - after.free;
                prop_assert!(!may || moved > 1, "{before:?} {after:?}");
                both[1] += 1;
            }
        }
        prop_assert!(both[1] > 0 && (both[0] > 0 || permille < 30), "{both:?}");
        host.drive.ftl().check();
    }
}

#[test]
fn an_empty_drive_has_the_naive_drives_cache() {
    for (share, permille) in [("0", 0), ("0.1", 100), ("0.5", 500), ("1", 1000)] {
        let spec = spec(share, &[]);
        let mut host = empty(&spec);
        let free = host.drive.ftl().blocks.free_count(CellMode::Native);
        // Nothing but such superblocks is opened until they are full.
        let expected = naive(free, kept(&spec), permille);
        let per_superblock = u64::from(host.drive.geometry().usable_slots(CellMode::Slc));
        let slots = (u64::from(expected) * per_superblock).max(CHUNK);
        write(&mut host, 0, (slots / CHUNK) * CHUNK);
        let taken = borrowed(&host);
        assert!(
            (expected.saturating_sub(2)..=expected).contains(&taken),
            "{share}: {taken} of {expected}"
        );
        write(
            &mut host,
            slots / CHUNK * CHUNK,
            slots / CHUNK * CHUNK + 200 * CHUNK,
        );
        assert!(borrowed(&host) <= expected, "{share}: no more than that");
    }
}

/// Fast while the cache takes it, then at the rate of the flash, then at what is left beside folding.
#[test]
fn a_drive_that_is_filled_has_three_rates() {
    let spec = spec("0.5", &[("role.write_buffer.size", "1536KiB")]);
    let mut host = empty(&spec);
    let slots = u64::from(host.drive.ftl().user_slots());
    let part = slots / 50 / CHUNK * CHUNK;
    let mut most = 0;
    let rates: Vec<f64> = (0..50)
        .map(|n| {
            let rate = write(&mut host, n * part, (n + 1) * part) / 1e6;
            most = borrowed(&host).max(most);
            rate
        })
        .collect();
    println!("MB/s by fiftieths: {rates:.0?}");
    let [cached, direct, folding] = [rates[3], rates[16], rates[47]];
    assert!(cached > 1.3 * direct, "{cached} and {direct} MB/s");
    assert!(direct > 1.3 * folding, "{direct} and {folding} MB/s");
    // Everything has a place, and single-bit mode has given back what was needed for it.
    settle(&mut host);
    host.drive.ftl().check();
    let left = borrowed(&host);
    println!("{most} superblocks in single-bit mode, {left} left");
    assert!(2 * left < most, "{left} of {most}");
}

#[test]
fn idle_time_empties_the_cache() {
    let spec = spec("0.8", &[("ftl.slc_idle", "10ms")]);
    let mut host = empty(&spec);
    write(&mut host, 0, 6000 / CHUNK * CHUNK);
    assert!(borrowed(&host) > 10);
    settle(&mut host);
    // What stays is the one that is open.
    assert!(borrowed(&host) <= 1, "{}", borrowed(&host));
    let fold = host.counters().programs_by_cause[4];
    assert!(fold > 0, "by folding");
    host.drive.ftl().check();
}

/// The last pages of a superblock that fill no program operation waited for company that did not come, and a cache of one
/// superblock was none from the second burst on.
#[test]
fn what_fills_no_program_operation_is_folded_too() {
    let bursts = |more: &[(&'static str, &'static str)]| -> Vec<f64> {
        let sets = [
            &[
                ("ftl.slc_idle", "100ms"),
                ("nand.pages_per_block", "96"),
                ("capacity", "1GiB"),
            ],
            more,
        ]
        .concat();
        let mut host = empty(&spec("0", &sets));
        let burst = |host: &mut Host, at: u64| {
            let mut next = at;
            let seconds = closed_loop(host, 4, 64, |_| {
                next += 16;
                pages(Op::Write, next - 16, 16)
            });
            settle(host);
            let until_ps = host.now_ps() + 2_000_000_000_000;
            host.advance(until_ps, &mut Vec::new());
            1024.0 * 4096.0 / seconds
        };
        (0..5).map(|i| burst(&mut host, 4096 * i)).collect()
    };
    // 1024 pages in single-bit mode, of which program operations of 24 leave 16.
    for more in [
        &[("ftl.slc_superblocks", "1")][..],
        &[("ftl.slc_dynamic", "0.15"), ("ftl.overprovisioning", "0.2")],
    ] {
        let rates = bursts(more);
        for rate in &rates[1..] {
            assert!(rate > &(0.95 * rates[0]), "{more:?} {rates:.3?}");
        }
    }
    // Without the cache bursts are slower: it is what makes them fast.
    let without = bursts(&[]);
    assert!(
        without[0] < 0.7 * bursts(&[("ftl.slc_superblocks", "1")])[4],
        "{without:.3?}"
    );
}

/// On a full drive little is borrowed, and garbage collection costs what it costs without.
#[test]
fn a_full_drive_writes_as_much_as_without_the_cache() {
    let amplification = |share| {
        let mut host = Host::new(&spec(share, &[]), Precondition::Random, 0, 3);
        let slots = host.drive.ftl().user_slots();
        let mut run = |count| {
            closed_loop(&mut host, 32, count, |rng| {
                pages(Op::Write, u64::from(rng.below(slots)), 1)
            })
        };
        run(60_000);
        let before = host.counters();
        let mut run = |count| {
            closed_loop(&mut host, 32, count, |rng| {
                pages(Op::Write, u64::from(rng.below(slots)), 1)
            })
        };
        run(100_000);
        let after = host.counters();
        let moved: u64 = [2, 4]
            .map(|cause| {
                after.programmed_slots_by_cause[cause] - before.programmed_slots_by_cause[cause]
            })
            .iter()
            .sum();
        1.0 + moved as f64 / 100_000.0
    };
    let (without, with) = (amplification("0"), amplification("1"));
    println!("write amplification of data {without:.3}, with the cache {with:.3}");
    assert!((with / without - 1.0).abs() < 0.03);
}

/// A part of the cache that stands apart was folded as soon as it was full, though most of the flash held nothing: a burst
/// ran at half the rate that it has without such a part.
#[test]
fn a_part_that_stands_apart_makes_no_burst_slower() {
    let rate = |apart: &'static str| {
        let spec = spec("0.8", &[("ftl.slc_superblocks", apart)]);
        let chunks = u64::from(empty(&spec).drive.ftl().user_slots()) / CHUNK;
        // A fifth of the drive: less than the cache that four fifths of its flash give.
        write(&mut empty(&spec), 0, chunks / 5 * CHUNK)
    };
    let alone = rate("0");
    for apart in ["1", "4", "16"] {
        let with = rate(apart);
        assert!(with > 0.95 * alone, "{apart}: {with:.3e} of {alone:.3e}");
    }
}

/// Superblocks that a trim had left without any data were erased only where room was short, so that the cache stayed what it was
/// on a full drive, for good.
#[test]
fn after_a_trim_and_idle_time_the_cache_is_as_large_as_on_an_empty_drive() {
    let spec = spec("0.8", &[("ftl.slc_idle", "100ms")]);
    let slots = u64::from(empty(&spec).drive.ftl().user_slots());
    let burst = |host: &mut Host| write(host, 0, slots / CHUNK / 5 * CHUNK);
    let expected = burst(&mut empty(&spec));
    for precondition in [Precondition::Sequential, Precondition::Random] {
        let mut host = Host::new(&spec, precondition, 0, 3);
        host.submit(pages(Op::Trim, 0, slots));
        settle(&mut host);
        // An erase takes 5 ms, one after the other.
        let blocks = host.drive.ftl().blocks.all().len() as u64;
        let until_ps = host.now_ps() + 200_000_000_000 + blocks * 6_000_000_000;
        host.advance(until_ps, &mut Vec::new());
        let rate = burst(&mut host);
        assert!(rate > 0.95 * expected, "{rate:.3e} of {expected:.3e}");
        host.drive.ftl().check();
    }
}
