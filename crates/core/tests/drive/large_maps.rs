//! Does new data go on where the map takes many superblocks, each of which comes to be collected in its turn?

use crate::common::{closed_loop, drive, pages, settle};
use crate::steady::{Arrival, Load, run};
use lodger_core::nand::Cause;
use lodger_core::time::MS;
use lodger_core::{Host, Op, Precondition};

/// Values of a drive file in place of its own.
type Sets<'a> = &'a [(&'a str, &'a str)];

/// A victim of data had a page of the map written for each that was moved, which took more room than it gave, and new data waited
/// until several victims of the map had given it back: 284, 291, 422, 408 and 118 ms. No drive of the collection has more than two
/// superblocks of map.
#[test]
fn new_data_does_not_wait_until_a_large_map_gives_back_what_moves_took() {
    let two_dies = ("nand.dies_per_channel", "1");
    let short_blocks = [("ftl.slc_superblocks", "0"), ("nand.pages_per_block", "96")];
    let cases: [(&str, Sets<'_>, u32); 5] = [
        ("tiny", &[two_dies, ("capacity", "40GiB")], 16),
        ("tiny", &[two_dies, ("capacity", "40GiB")], 1),
        ("tiny", &[two_dies, ("capacity", "100GiB")], 16),
        (
            "tiny",
            &[two_dies, ("nand.channels", "1"), ("capacity", "20GiB")],
            16,
        ),
        ("rc100-240", &short_blocks, 16),
    ];
    for (name, sets, depth) in cases {
        let spec = drive(name, sets);
        let load = Load {
            requests: 15_000,
            reads_percent: 0,
            arrival: Arrival::Depth(depth),
        };
        let seen = run(&spec, 0, load);
        let silence_ms = seen.silence_ps / MS;
        println!(
            "{name} {sets:?}, {depth} in flight: {silence_ms} ms, {:.0} a second",
            seen.iops()
        );
        assert!(
            silence_ms <= 25,
            "{name} {sets:?}: silent for {silence_ms} ms"
        );
    }
}

/// A drive that had been written at random, and of which the map takes more than four superblocks, had no room beside that: it collected
/// for minutes although nobody wrote, 98 GiB of it on a 970-pro of 4 TiB. And 8 KiB written made it program 467 MiB.
#[test]
fn a_drive_that_is_only_read_collects_nothing() {
    for (name, capacity) in [
        ("rc100-480", "2TiB"),
        ("970-pro", "4TiB"),
        ("tiny", "100GiB"),
    ] {
        let spec = drive(
            name,
            &[("capacity", capacity), ("nand.dies_per_channel", "1")],
        );
        let mut host = Host::new(&spec, Precondition::Random, 0, 1);
        let pages_in_all = spec.capacity_bytes / 4096;
        closed_loop(&mut host, 16, 3_000, |rng| {
            pages(Op::Read, rng.next_u64() % pages_in_all, 1)
        });
        host.submit(pages(Op::Write, 77, 1));
        settle(&mut host);
        let counters = host.counters();
        assert_eq!(
            counters.programmed_slots_by_cause[Cause::Gc as usize],
            0,
            "{name}"
        );
    }
}
