//! Does one kind of request make others wait for what is its own? Trims program nothing, and what they leave to be done has to be paid by those
//! who trim; a write with FUA waits for its own page, and not for all that was written before.

use crate::common::drives::drive;
use crate::common::{pages, settle};
use crate::steady::Latencies;
use lodger_core::rng::Rng;
use lodger_core::{Completion, DriveSpec, Host, Op, Precondition, Request};

/// What Linux gives at most by default.
const HMB_BYTES: u64 = 128 << 20;
const MS: f64 = 1e9;

/// Clients of each kind, requests of which are made from a page at random. Latencies of each kind.
fn run<const KINDS: usize>(
    spec: &DriveSpec,
    precondition: Precondition,
    length_ms: u64,
    clients: [(u32, &dyn Fn(u64) -> Request); KINDS],
) -> [Latencies; KINDS] {
    let preferred_bytes = spec.tiers.hmb.as_ref().map_or(0, |hmb| hmb.preferred_bytes);
    let hmb_bytes = HMB_BYTES.min(preferred_bytes);
    run_with(hmb_bytes, spec, precondition, length_ms, clients)
}

/// The same with so much host memory.
fn run_with<const KINDS: usize>(
    hmb_bytes: u64,
    spec: &DriveSpec,
    precondition: Precondition,
    length_ms: u64,
    clients: [(u32, &dyn Fn(u64) -> Request); KINDS],
) -> [Latencies; KINDS] {
    let mut host = Host::new(spec, precondition, hmb_bytes, 1);
    let mut rng = Rng::new(5);
    let mut next = |kind: usize| {
        let page = rng.next_u64() % (spec.capacity_bytes / 4096);
        let mut request = clients[kind].1(page);
        (request.tag, request.queue) = (kind as u32, kind as u16);
        request
    };
    for (kind, (count, _)) in clients.iter().enumerate() {
        (0..*count).for_each(|_| host.submit(next(kind)));
    }
    let mut seen = [(); KINDS].map(|()| Latencies::default());
    let mut done: Vec<Completion> = Vec::new();
    while host.now_ps() < length_ms * 1_000_000_000 {
        host.advance_to_completion(u64::MAX, &mut done);
        for completion in done.drain(..) {
            let kind = completion.tag as usize;
            seen[kind].add(completion.completed_ps - completion.submitted_ps);
            host.submit(next(kind));
        }
    }
    // What is still in flight has its end, too.
    let in_flight = host.in_flight();
    let last = settle(&mut host);
    assert_eq!(last.len(), in_flight);
    for completion in last {
        seen[completion.tag as usize].add(completion.completed_ps - completion.submitted_ps);
    }
    for (kind, seen) in seen.iter_mut().enumerate() {
        println!(
            "kind {kind}: {} of {:.2} ms, the longest {:.2}",
            seen.count(),
            seen.mean_ps() / MS,
            seen.longest_ps() as f64 / MS
        );
    }
    seen
}

fn read(page: u64) -> Request {
    pages(Op::Read, page, 1)
}

fn write(page: u64) -> Request {
    pages(Op::Write, page, 1)
}

fn trim(page: u64) -> Request {
    pages(Op::Trim, page, 1)
}

fn flush(_page: u64) -> Request {
    pages(Op::Flush, 0, 0)
}

fn forced(page: u64) -> Request {
    let mut request = write(page);
    request.fua = true;
    request
}

/// Pages of the map that one client had changed, with one trim in flight, took all room that garbage collection made: 4 who wrote beside it
/// waited for up to 431 and 2,473 ms, where they wait for 11 and 17 without it.
#[test]
fn one_who_trims_does_not_stop_those_who_write() {
    let one_die = [
        ("capacity", "16GiB"),
        ("nand.channels", "1"),
        ("nand.dies_per_channel", "1"),
    ];
    use Precondition::{Random, Sequential};
    for (keys, state) in [
        (&[("capacity", "40GiB")][..], Random),
        (&one_die, Random),
        (&one_die, Sequential),
    ] {
        let spec = drive("tiny", keys);
        let clients: [(u32, &dyn Fn(u64) -> Request); 2] = [(1, &trim), (4, &write)];
        let [mut trims, mut writes] = run(&spec, state, 4000, clients);
        assert!(writes.longest_ps() as f64 / MS < 60.0);
        // Nor the other way round.
        assert!(trims.longest_ps() as f64 / MS < 240.0);
    }
}

/// A thousand pages of the map that trims had changed waited to be read, and each had another written, whatever flash can write: a drive of one
/// slow die took 12,000 trims in 40 ms and then none for 1.1 s, over and over.
#[test]
fn trims_come_at_the_pace_at_which_flash_takes_what_they_change() {
    let slow = [
        ("capacity", "16GiB"),
        ("nand.channels", "1"),
        ("nand.dies_per_channel", "1"),
        ("nand.planes", "1"),
        ("nand.one_shot", "false"),
        ("nand.program", "4ms"),
        ("role.map.fills_in_flight", "64"),
        ("ftl.slc_superblocks", "0"),
    ];
    let spec = drive("tiny", &slow);
    let clients: [(u32, &dyn Fn(u64) -> Request); 1] = [(64, &trim)];
    let [mut trims] = run(&spec, Precondition::Sequential, 4000, clients);
    assert!(trims.longest_ps() as f64 / MS < 200.0);
}

/// Where memory holds the whole map, no page of it is written for a trim: it has nothing to wait for. It took turns with the data that waits for
/// room, 1.2 ms on average and up to 9.4, on a drive whose writes took 37 us.
#[test]
fn a_trim_waits_for_no_room_where_memory_holds_the_whole_map() {
    let keys = [
        ("tier.sram.size", "8MiB"),
        ("role.map.size.sram", "2MiB"),
        ("ftl.slc_superblocks", "0"),
    ];
    let clients: [(u32, &dyn Fn(u64) -> Request); 2] = [(8, &trim), (8, &write)];
    let spec = drive("tiny", &keys);
    let [mut trims, mut writes] = run(&spec, Precondition::Random, 2000, clients);
    assert!(trims.mean_ps() / MS < 0.2);
    assert!((trims.longest_ps() as f64) / MS < 8.0);
    assert!((writes.longest_ps() as f64) / MS < 40.0);
}

/// Pages of the map on their way to host memory piled up before a slow link, as flash brings them faster than it takes them: beside 32 trims
/// in flight single reads waited behind 40 MB of them, for 170 ms, and nobody slowed down who had them read.
#[test]
fn a_read_does_not_wait_behind_all_pages_of_the_map_that_others_have_had_read() {
    let many = |page| {
        let mut request = trim(page / 16 * 16);
        request.length_bytes = 16 * 4096;
        request
    };
    let slow = ("link.pcie", "1.0 x1");
    // What gives way in one memory goes to the other.
    let exclusive = [slow, ("role.map.exclusive", "true")];
    for (name, keys) in [
        ("a80", &[slow][..]),
        ("a80", &exclusive),
        ("rc100-240", &[("link.rate", "40MB/s")]),
    ] {
        let spec = drive(name, keys);
        let clients: [(u32, &dyn Fn(u64) -> Request); 2] = [(1, &read), (32, &many)];
        let [mut reads, _] = run(&spec, Precondition::Random, 1000, clients);
        assert!((reads.longest_ps() as f64) / MS < 6.0, "{name}");
    }
}

/// A read beyond the reach of host memory has a whole unit read and sent there. The next read waited behind all of that, where the link is
/// slow: 1.05 ms, for 0.17 without host memory.
#[test]
fn host_memory_does_not_make_single_reads_beyond_its_reach_slow() {
    for pcie in ["1.0 x1", "2.0 x1", "3.0 x2"] {
        let spec = drive("rc100-240", &[("link.pcie", pcie)]);
        let clients: [(u32, &dyn Fn(u64) -> Request); 1] = [(1, &read)];
        let [with] = run(&spec, Precondition::Random, 500, clients);
        let [without] = run_with(0, &spec, Precondition::Random, 500, clients);
        assert!(with.mean_ps() < 1.8 * without.mean_ps(), "{pcie}");
    }
}

/// With as many trims in flight as the controller keeps commands, a reader beside them had a place only when one of them was done: 4.2 ms for
/// each read, where it is 0.3 with one trim fewer.
#[test]
fn trims_that_wait_for_the_map_keep_no_command_from_its_place() {
    let spec = drive("rc100-480", &[]);
    let slots = spec.controller.command_slots;
    let [fewer, as_many] = [slots - 1, slots].map(|trims| {
        let clients: [(u32, &dyn Fn(u64) -> Request); 2] = [(1, &read), (trims, &trim)];
        let [mut reads, _] = run(&spec, Precondition::Sequential, 300, clients);
        (reads.mean_ps(), reads.longest_ps())
    });
    assert!(
        as_many.0 < 1.2 * fewer.0,
        "{as_many:?} ps, {fewer:?} with one less"
    );
    assert!(
        as_many.1 < 2 * fewer.1,
        "{as_many:?} ps, {fewer:?} with one less"
    );
}

/// Trims were done long before their records were in flash, and a flush waited for all of them: 2.7 s.
#[test]
fn a_flush_waits_for_no_more_trims_than_two_pages_of_records_hold() {
    let keys = [
        ("nand.page_size", "4KiB"),
        ("nand.planes", "1"),
        ("tier.sram.size", "4MiB"),
        ("role.map.size.sram", "2MiB"),
    ];
    let spec = drive("tiny", &keys);
    let many = |page| {
        let mut request = trim(page % (spec.capacity_bytes / 4096 - 64));
        request.length_bytes = 64 * 4096;
        request
    };
    let clients: [(u32, &dyn Fn(u64) -> Request); 3] = [(16, &many), (4, &write), (1, &flush)];
    let [_, _, mut flushes] = run(&spec, Precondition::Random, 2000, clients);
    assert!(flushes.longest_ps() as f64 / MS < 60.0);
}

/// A write with FUA went to flash after all that was in the buffer before it, and took as long as a flush: 48 ms on an A1000 beside 32 who
/// write, for up to 197, 4.4 on a 970 PRO, for up to 49. Those beside it lose nothing.
#[test]
fn a_write_with_fua_does_not_wait_for_all_that_was_written_before() {
    for (name, mean_ms, most_ms) in [("a1000", 8.0, 30.0), ("970-pro", 2.0, 15.0)] {
        let spec = drive(name, &[("ftl.slc_superblocks", "0")]);
        let alone: [(u32, &dyn Fn(u64) -> Request); 2] = [(32, &write), (1, &write)];
        let beside: [(u32, &dyn Fn(u64) -> Request); 2] = [(32, &write), (1, &forced)];
        let [mut plain, _] = run(&spec, Precondition::Random, 1000, alone);
        let [mut others, mut forced] = run(&spec, Precondition::Random, 1000, beside);
        assert!(forced.mean_ps() / MS < mean_ms, "{name}");
        assert!((forced.longest_ps() as f64) / MS < most_ms, "{name}");
        assert!(others.mean_ps() < 1.1 * plain.mean_ps(), "{name}");
        assert!(others.longest_ps() < 3 * plain.longest_ps(), "{name}");
    }
}

/// All that a buffer of many MiB held was handed to the dies at once, in an order that nothing changes any more: a write with FUA waited up to
/// 131 ms behind 64 MiB.
#[test]
fn a_write_with_fua_does_not_wait_for_all_that_a_large_buffer_was_to_program() {
    let slow = [
        ("tier.sram.size", "20MiB"),
        ("role.write_buffer.size", "16MiB"),
        ("nand.program", "2ms"),
    ];
    for (name, keys, most_ms) in [("hong-device-buffer", &[][..], 20.0), ("tiny", &slow, 60.0)] {
        let spec = drive(name, keys);
        let clients: [(u32, &dyn Fn(u64) -> Request); 2] = [(32, &write), (1, &forced)];
        let [_, mut forced] = run(&spec, Precondition::Random, 3000, clients);
        assert!((forced.longest_ps() as f64) / MS < most_ms, "{name}");
    }
}

/// Forced writes that never end do not keep what is flushed beside them from flash: they take turns, in each program operation, and across
/// those of a page each.
#[test]
fn a_flush_comes_to_its_end_beside_forced_writes_without_end() {
    let of_a_page = [
        ("nand.page_size", "4KiB"),
        ("nand.planes", "1"),
        ("nand.one_shot", "false"),
        ("ftl.slc_superblocks", "0"),
    ];
    // Of those of a page each 640 a second: a flush takes up to 1.9 s there, and took 5.6 where turns began anew with each.
    for (shape, most_ms) in [(&[][..], 300.0), (&of_a_page, 3000.0)] {
        let buffer = [
            ("tier.sram.size", "16MiB"),
            ("role.write_buffer.size", "8MiB"),
        ];
        let spec = drive("tiny", &[&buffer, shape].concat());
        let clients: [(u32, &dyn Fn(u64) -> Request); 3] =
            [(512, &forced), (16, &write), (1, &flush)];
        let [forced, others, mut flushes] = run(&spec, Precondition::Random, 4000, clients);
        let (forced, others) = (forced.count(), others.count());
        assert!(others * 2 > forced, "{others} beside {forced}");
        assert!(flushes.longest_ps() as f64 / MS < most_ms);
    }
}
