//! Do changed pages of the map come from where they stand? Those that only host memory held were programmed
//! without ever having crossed the link, which then took twice what it can.

use crate::common::{closed_loop, drive, pages, settle};
use lodger_core::rng::Rng;
use lodger_core::{Host, Op, Precondition};

const PAGES: u32 = 100_000;

/// Pages of the map programmed, bytes read from host memory, and both for a second run of writes.
fn written_back(sets: &[(&str, &str)], hmb_bytes: u64) -> (u64, u64) {
    let mut all = vec![("tier.hmb.min", "\"64KiB\""), ("capacity", "\"512MiB\"")];
    all.extend_from_slice(sets);
    let spec = drive("tiny", &all);
    let mut host = Host::new(&spec, Precondition::Sequential, hmb_bytes, 1);
    closed_loop(&mut host, 16, 4000, |rng: &mut Rng| {
        pages(Op::Write, u64::from(rng.below(PAGES)), 1)
    });
    settle(&mut host);
    let counters = host.counters();
    (
        counters.map.dirty_writebacks,
        counters.hmb_read_bytes / 4096,
    )
}

#[test]
fn changed_pages_that_only_host_memory_holds_cross_the_link() {
    let in_host = [("role.map.tiers", "[\"hmb\"]")];
    let (programmed, read) = written_back(&in_host, 64 << 10);
    println!("{programmed} pages programmed, {read} read from host memory");
    // A few have been read and wait to be written.
    assert!(programmed > 500, "{programmed}");
    assert!((programmed..=programmed + 32).contains(&read), "{read}");
    // Exclusive: what is changed moves between the two, and leaves from host memory; beside such pages, others are written from the
    // drive's own, which crosses nothing: a third of them, as measured. Before, none crossed.
    let exclusive = [
        ("role.map.exclusive", "true"),
        ("role.map.size.sram", "\"32KiB\""),
    ];
    let (programmed, read) = written_back(&exclusive, 64 << 10);
    assert!(
        programmed > 500 && read > programmed / 2,
        "{programmed} {read}"
    );
}

#[test]
fn changed_pages_that_the_drives_own_memory_holds_do_not() {
    let (programmed, read) = written_back(&[("role.map.tiers", "[\"hmb\"]")], 0);
    assert!(programmed > 500 && read == 0, "{programmed} {read}");
    let (programmed, read) = written_back(&[("role.map.tiers", "[\"sram\"]")], 64 << 10);
    assert!(programmed > 500 && read == 0, "{programmed} {read}");
}

/// Parts of the map that `looked` reads of 20 found nowhere, where they waited to be written, and how many were written, after a
/// write to each of `changed` of them. The drive's own memory holds 8.
fn waiting(changed: u64, looked: u64) -> (u64, u64, u64) {
    const PART: u64 = 1024;
    let sets = [
        ("role.map.tiers", "[\"sram\"]"),
        ("role.map.size.sram", "\"32KiB\""),
    ];
    let mut host = Host::new(&drive("tiny", &sets), Precondition::Sequential, 0, 1);
    let mut part = 0;
    closed_loop(&mut host, 1, changed, |_: &mut Rng| {
        part += 1;
        pages(Op::Write, (part - 1) * PART, 1)
    });
    // Entries change as the data is programmed.
    host.submit(pages(Op::Flush, 0, 1));
    settle(&mut host);
    closed_loop(&mut host, 1, looked, |rng: &mut Rng| {
        let at = u64::from(rng.below(20)) * PART + u64::from(rng.below(1024));
        pages(Op::Read, at, 1)
    });
    let map = host.counters().map;
    let hits: u64 = map.hits.iter().sum();
    assert_eq!(hits + map.misses, map.lookups);
    assert!(map.waiting_hits <= hits);
    (map.misses, map.waiting_hits, map.dirty_writebacks)
}

/// Changed parts waited until they filled a program operation of 24, and answered meanwhile: beside 8 that the drive holds, 12 more
/// of 20 were at hand for ever.
#[test]
fn what_waits_to_be_written_is_no_second_cache() {
    let (unchanged, none_waits, none_written) = waiting(0, 2000);
    assert!(unchanged > 1000 && none_waits == 0 && none_written == 0);
    let (missed, found_waiting, written) = waiting(20, 2000);
    println!("{missed} missed ({unchanged} unchanged), {found_waiting} waited, {written} written");
    // Two may wait: a quarter of 8.
    assert!(missed > unchanged * 4 / 5, "{missed} of {unchanged}");
    assert!(found_waiting < 2000 * 3 / 20, "{found_waiting}");
    // Each was changed once, and is written once: those that still stood in the cache went with those that had left.
    assert!((18..=20).contains(&written), "{written}");
}

#[test]
fn a_changed_page_that_has_left_host_memory_is_not_changed_there() {
    let sets = [
        ("role.map.tiers", "[\"hmb\"]"),
        ("tier.hmb.min", "\"64KiB\""),
    ];
    let mut host = Host::new(&drive("tiny", &sets), Precondition::Sequential, 64 << 10, 1);
    let mut write = |parts: std::ops::Range<u64>| {
        let before = host.counters().hmb_written_bytes;
        for part in parts {
            host.submit(pages(Op::Write, part * 1024, 1));
            settle(&mut host);
        }
        host.submit(pages(Op::Flush, 0, 1));
        settle(&mut host);
        host.counters().hmb_written_bytes - before
    };
    // Host memory holds 16 parts of the map: of 20 the first four have left.
    write(0..20);
    assert_eq!(write(0..1), 0);
    // The null: one that stands there.
    assert!(write(19..20) > 0);
}
