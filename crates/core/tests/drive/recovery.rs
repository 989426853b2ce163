//! How long does it take to come back, and what must be looked at? Orderly shutdown, power cuts on
//! large drives.

use crate::common::{closed_loop, drive, pages, settle};
use lodger_core::Host;
use lodger_core::device::Source;
use lodger_core::ids::Lpn;
use lodger_core::nand::Cause;
use lodger_core::{Op, Precondition};

fn superblocks(host: &Host) -> u64 {
    u64::from(host.drive.geometry().superblocks)
}

#[test]
fn after_an_orderly_shutdown_nothing_is_lost_and_nothing_is_scanned() {
    let mut host = Host::new(&drive("tiny", &[]), Precondition::Random, 256 << 10, 1);
    for lpn in [7, 70_000, 131_071] {
        host.submit(pages(Op::Write, lpn, 1));
    }
    host.submit(pages(Op::Trim, 100, 50));
    let mut done = Vec::new();
    while host.in_flight() > 0 {
        host.advance_to_completion(u64::MAX, &mut done);
    }
    assert!(matches!(host.drive.source(Lpn(7)), Source::Buffer(_)));
    host.shutdown();
    let held: Vec<Source> = (0..131_072)
        .map(|lpn| host.drive.source(Lpn(lpn)))
        .collect();
    assert!(matches!(held[7], Source::Flash(_)));
    assert_eq!(held[100], Source::Unwritten);
    let recovery = host.power_cut();
    assert_eq!(
        recovery.scanned_pages,
        superblocks(&host),
        "a page each says what it is"
    );
    assert_eq!(recovery.torn_slots + recovery.unprogrammed_slots, 0);
    let after: Vec<Source> = (0..131_072)
        .map(|lpn| host.drive.source(Lpn(lpn)))
        .collect();
    assert!(held == after);
    host.drive.ftl().check();
}

/// Parts of the map that were written in the background counted as old when the superblock that their data lies in was programmed
/// once more. (Those of data that was moved, and whose old copy is not erased yet, do: the map may name either.)
#[test]
fn after_an_orderly_shutdown_no_part_of_the_map_is_old_where_nothing_was_moved() {
    let spec = drive("tiny", &[("ftl.slc_superblocks", "0")]);
    let stale = |shuts_down: bool| {
        let mut host = Host::new(&spec, Precondition::None, 64 << 10, 1);
        closed_loop(&mut host, 16, 20_000, |rng| {
            pages(Op::Write, u64::from(rng.below(131_072)), 1)
        });
        settle(&mut host);
        let written = host.counters().map.dirty_writebacks;
        assert!(written > 1000, "in the background: {written}");
        if shuts_down {
            host.shutdown();
        }
        host.power_cut().stale_pages
    };
    assert_eq!(stale(true), 0);
    // The null.
    assert!(stale(false) > 0);
}

#[test]
fn recovery_takes_longer_the_more_was_written_since_the_last_shutdown() {
    let spec = drive("tiny", &[]);
    let scanned = |writes: u64| {
        let mut host = Host::new(&spec, Precondition::Sequential, 256 << 10, 1);
        closed_loop(&mut host, 16, writes, |rng| {
            pages(Op::Write, u64::from(rng.below(131_072)), 1)
        });
        settle(&mut host);
        let before_ps = host.now_ps();
        let recovery = host.power_cut();
        // Two channels of two dies: the slowest page type, a codeword of each page over the bus.
        let nand = &spec.nand;
        let rounds = recovery.scanned_pages.div_ceil(4);
        let array_ps = rounds * (nand.command_ps + nand.read_ps[2]);
        assert_eq!(recovery.recovery_ps, array_ps + nand.ecc_ps);
        assert_eq!(
            host.now_ps() - before_ps,
            recovery.recovery_ps,
            "the clock has moved on"
        );
        println!("{writes} pages written to the teaching drive: {recovery:?}");
        recovery.scanned_pages
    };
    let (few, many) = (scanned(100), scanned(100_000));
    assert!(few < many, "{few}, {many}");
}

#[test]
fn a_drive_of_eight_terabytes_recovers_from_what_was_written_alone() {
    let spec = drive("970-pro", &[("capacity", "8TB")]);
    let mut host = Host::new(&spec, Precondition::Random, 0, 1);
    let span = (spec.capacity_bytes / 4096) as u32;
    closed_loop(&mut host, 32, 10_000, |rng| {
        pages(Op::Write, u64::from(rng.below(span)), 1)
    });
    let moved = host.counters().programmed_slots_by_cause[Cause::Gc as usize];
    let recovery = host.power_cut();
    assert!((5_000..=10_000 + moved).contains(&recovery.entries));
    println!("8 TB, 10,000 pages written: {recovery:?}");
    assert!(recovery.recovery_ps < 1_000_000_000_000, "{recovery:?}");
}

/// A drive that has come back did nothing it was not asked for before its first command: the first burst after a boot met a full
/// single-bit cache, and what had been trimmed was not erased, however long it had been on.
#[test]
fn a_drive_that_has_come_back_idles_as_any_other() {
    let spec = drive("tiny", &[("ftl.slc_idle", "100ms")]);
    let folded = |comes_back: fn(&mut Host), waits_ps: u64| {
        let mut host = Host::new(&spec, Precondition::None, 0, 1);
        let mut at = 0;
        closed_loop(&mut host, 8, 64, |_| {
            at += 32;
            pages(Op::Write, at - 32, 32)
        });
        let mut done = Vec::new();
        host.submit(pages(Op::Flush, 0, 0));
        host.advance_to_completion(u64::MAX, &mut done);
        comes_back(&mut host);
        host.advance(host.now_ps() + waits_ps, &mut done);
        host.counters().programs_by_cause[Cause::Fold as usize]
    };
    let second_ps = 1_000_000_000_000;
    let never_left = folded(|_| {}, second_ps);
    assert!(never_left > 0, "it folds");
    for comes_back in [
        |host: &mut Host| drop(host.power_cut()),
        |host: &mut Host| drop(host.host_crash()),
        |host: &mut Host| drop(host.power_cut_in_recovery(1_000_000)),
    ] {
        // What was under way is torn, so that it may be a few more or less.
        let came_back = folded(comes_back, second_ps);
        assert!(
            came_back.abs_diff(never_left) <= never_left / 10 + 1,
            "{came_back} for {never_left}"
        );
        // Not before its time.
        assert_eq!(folded(comes_back, second_ps / 20), 0);
    }
}
