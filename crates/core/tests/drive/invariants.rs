//! What must hold for every drive and every load: determinism, independence of how time is advanced,
//! Little's law, conservation, and the number of events a request costs.

use crate::common::window::{pin, store};
use crate::common::{closed_loop, drive, pages, random_read_iops, settle};
use lodger_core::Host;
use lodger_core::ftl::State;
use lodger_core::rng::Rng;
use lodger_core::{Completion, EntryId, Op, Precondition, Request, WindowCall};
use proptest::prelude::*;

/// Requests with the instants they are submitted at, whatever the drive does.
fn timed_load(seed: u64, count: u32, span_pages: u32) -> Vec<(u64, Request)> {
    let mut rng = Rng::new(seed);
    let mut at_ps = 0;
    (0..count)
        .map(|tag| {
            at_ps += u64::from(rng.below(60_000_000));
            let op = match rng.below(10) {
                0..5 => Op::Read,
                5..9 => Op::Write,
                _ => Op::Flush,
            };
            let length = 1 + u64::from(rng.below(16));
            let mut request = pages(op, u64::from(rng.below(span_pages - 16)), length);
            request.tag = tag;
            request.queue = rng.below(4) as u16;
            (at_ps, request)
        })
        .collect()
}

/// Plays a load and lets `step` choose how far each `advance` goes at most.
fn play(load: &[(u64, Request)], mut step: impl FnMut() -> u64) -> (Vec<Completion>, String) {
    let spec = drive(
        "tiny",
        &[("capacity", "128MiB"), ("nand.pages_per_block", "24")],
    );
    let mut host = Host::new(&spec, Precondition::Random, 256 << 10, 3);
    let mut done = Vec::new();
    for &(at_ps, request) in load {
        while host.now_ps() < at_ps {
            let to_ps = at_ps.min(host.now_ps() + step());
            host.advance(to_ps, &mut done);
        }
        host.submit(request);
    }
    while host.next_time().is_some() {
        let to_ps = host.now_ps() + step();
        host.advance(to_ps, &mut done);
    }
    (done, format!("{:?}", host.counters()))
}

proptest! {
    #![proptest_config(lodger_testing::config(24))]
    #[test]
    fn the_result_does_not_depend_on_how_time_is_advanced(seed: u64) {
        let load = timed_load(seed, 600, 30_000);
        let coarse = play(&load, || u64::MAX / 4);
        let mut rng = Rng::new(seed);
        let fine = play(&load, || 1 + u64::from(rng.below(30_000_000)));
        prop_assert_eq!(&coarse, &fine);
        prop_assert_eq!(&coarse, &play(&load, || u64::MAX / 4), "same seed, same bytes");
        prop_assert_eq!(coarse.0.len(), 600);
    }
}

#[test]
fn stopping_at_completions_is_the_same_as_stopping_at_every_event() {
    let load = |by_event: bool| {
        let spec = drive("tiny", &[]);
        let mut host = Host::new(&spec, Precondition::Random, 256 << 10, 1);
        let mut rng = Rng::new(9);
        let mut next = || {
            let op = if rng.below(2) == 0 {
                Op::Read
            } else {
                Op::Write
            };
            pages(op, u64::from(rng.below(100_000)), 2)
        };
        (0..16).for_each(|_| host.submit(next()));
        let (mut done, mut all) = (Vec::new(), Vec::new());
        while all.len() < 20_000 {
            if by_event {
                let at = host.next_time().unwrap();
                host.advance(at, &mut done);
            } else {
                host.advance_to_completion(u64::MAX, &mut done);
            }
            for completion in done.drain(..) {
                all.push(completion);
                host.submit(next());
            }
        }
        all
    };
    assert!(load(true) == load(false));
}

#[test]
fn requests_in_flight_are_throughput_times_latency() {
    for (name, depth) in [("970-pro", 8), ("rc100-480", 32), ("tiny", 16)] {
        let spec = drive(name, &[]);
        let mut host = Host::new(&spec, Precondition::Sequential, 256 << 20, 1);
        random_read_iops(&mut host, depth, 64 << 20, 1_000);
        let mut done = Vec::new();
        let (mut latency_ps, mut completed) = (0u128, 0u64);
        let mut rng = Rng::new(1);
        let mut read = || pages(Op::Read, u64::from(rng.below(16_000)), 1);
        settle(&mut host);
        let start = host.now_ps();
        (0..depth).for_each(|_| host.submit(read()));
        while completed < 30_000 {
            host.advance_to_completion(u64::MAX, &mut done);
            for completion in done.drain(..) {
                latency_ps += u128::from(completion.completed_ps - completion.submitted_ps);
                completed += 1;
                host.submit(read());
            }
        }
        let in_flight = latency_ps as f64 / (host.now_ps() - start) as f64;
        let error = (in_flight / f64::from(depth) - 1.0).abs();
        assert!(
            error < 0.005,
            "{name}: {in_flight:.3} in flight at depth {depth}"
        );
    }
}

#[test]
fn the_speed_guard_events_per_request() {
    // Exact: a change here is a change of the simulator's speed, to be made knowingly.
    let spec = drive("970-pro", &[]);
    let per_request = |precondition, count: u64, next: &mut dyn FnMut(&mut Rng) -> Request| {
        let mut host = Host::new(&spec, precondition, 0, 1);
        closed_loop(&mut host, 1, count, next);
        settle(&mut host);
        host.events() as f64 / count as f64
    };
    // Fetched, Processed, ArrayDone, DataReady, Completed.
    let read = per_request(Precondition::Sequential, 1000, &mut |rng| {
        pages(Op::Read, u64::from(rng.below(1 << 20)), 1)
    });
    assert_eq!(read, 5.0);
    // Four flash reads of 32 KiB: two events each.
    let mut at = 0;
    let sequential = per_request(Precondition::Sequential, 1000, &mut |_| {
        at += 32;
        pages(Op::Read, at - 32, 32)
    });
    assert_eq!(sequential, 3.0 + 2.0 * 4.0);
    // Fetched, Processed, DataArrived, DataStored (DRAM), Completed; and every eighth write a
    // program operation: a load per plane and the program itself.
    let planes = f64::from(spec.nand.planes);
    let write = per_request(Precondition::None, 800, &mut |rng| {
        pages(Op::Write, u64::from(rng.below(1 << 30)) % 100_000_000, 1)
    });
    let unit = f64::from(drive("970-pro", &[]).nand.planes * spec.nand.page_bytes / 4096);
    assert!(
        (write - (5.0 + (planes + 1.0) / unit)).abs() < 0.01,
        "{write}"
    );
}

/// A regime of `make bench`: drive, what it holds, reads in 100 requests, pages of a request, and of the span (0: all; 1:
/// in sequence), events a request.
type Regime = (&'static str, Precondition, u32, u64, u64, f64);

#[test]
fn the_speed_guard_of_each_regime() {
    // To a thousandth, as above; 20,000 requests, 32 in flight, from the first on.
    use Precondition::{None as Empty, Random, Sequential};
    let regimes: [(&str, Regime); 9] = [
        ("map hit", ("970-pro", Sequential, 100, 1, 0, 5.0)),
        (
            "map miss",
            ("rc100-480", Sequential, 100, 1, 6 << 20, 6.555),
        ),
        ("beyond reach", ("rc100-480", Sequential, 100, 1, 0, 7.499)),
        ("mixed", ("rc100-480", Random, 70, 1, 0, 7.384)),
        ("steady writes", ("rc100-480", Random, 0, 1, 0, 8.193)),
        (
            "sequential reads",
            ("970-pro", Sequential, 100, 32, 1, 11.012),
        ),
        ("sequential writes", ("970-pro", Empty, 0, 32, 1, 18.704)),
        ("HPB", ("ufs21-64", Sequential, 100, 1, 1 << 20, 5.0)),
        ("trace", ("970-pro", Sequential, 75, 1, 4 << 20, 5.287)),
    ];
    let mut wrong = Vec::new();
    let mut check = |regime: &str, found: f64, expected: f64| {
        if (found - expected).abs() >= 0.001 {
            wrong.push(format!("{regime}: {found}"));
        }
    };
    for (regime, (name, precondition, reads, length, span, expected)) in regimes {
        let sets: &[(&str, &str)] = match name {
            "970-pro" => &[("capacity", "64GiB")],
            _ => &[],
        };
        let spec = drive(name, sets);
        let mut host = Host::new(&spec, precondition, 64 << 20, 1);
        let all = spec.capacity_bytes / 4096 - length;
        let mut rng = Rng::new(7);
        let mut at = 0;
        closed_loop(&mut host, 32, 20_000, |_| {
            let page = match span {
                0 => rng.next_u64() % all,
                1 => {
                    at += length;
                    at
                }
                span => rng.next_u64() % span,
            };
            let is_read = reads == 100 || (reads > 0 && rng.below(100) < reads);
            pages(if is_read { Op::Read } else { Op::Write }, page, length)
        });
        check(regime, host.events() as f64 / 20_000.0, expected);
    }
    // A CPU that stores into a combining buffer and syncs: 96 bytes, as a record of a log.
    check("window", window_events_per_call(), 4.0);
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Events of a store into the byte window and the sync that follows it, half each.
fn window_events_per_call() -> f64 {
    const LENGTH: u64 = 96;
    const ROUNDS: u64 = 10_000;
    let mut host = Host::new(&drive("2b-ssd", &[]), Precondition::Sequential, 0, 1);
    let (mut done, mut requests) = (Vec::new(), Vec::new());
    let mut call = |host: &mut Host, call| {
        host.call(0, call);
        while done.is_empty() {
            host.advance_to_completion(u64::MAX, &mut requests);
            host.take_window_completions(&mut done);
        }
        assert!(done.drain(..).all(|done| done.result.is_ok()));
    };
    call(&mut host, pin(0, 0, 0, 1 << 20));
    let before = host.events();
    for round in 0..ROUNDS {
        call(&mut host, store(round * LENGTH, LENGTH));
        call(&mut host, WindowCall::Sync { entry: EntryId(0) });
    }
    (host.events() - before) as f64 / (2 * ROUNDS) as f64
}

#[test]
fn host_memory_taken_back_in_full_flight_is_given_up_in_order() {
    let spec = drive("tiny", &[("role.map.size.sram", "8KiB")]);
    let mut host = Host::new(&spec, Precondition::Random, 256 << 10, 1);
    let mut rng = Rng::new(2);
    for round in 0..20 {
        for _ in 0..200 {
            let op = if rng.below(3) == 0 {
                Op::Read
            } else {
                Op::Write
            };
            host.submit(pages(op, u64::from(rng.below(131_000)), 1));
        }
        let mut done = Vec::new();
        host.advance(host.now_ps() + 2_000_000_000, &mut done);
        host.set_hmb(if round % 2 == 0 { 0 } else { 256 << 10 });
        while host.hmb_is_being_saved() {
            let at = host.next_time().expect("saving what stood there goes on");
            host.advance(at, &mut done);
        }
        if round % 2 == 0 {
            assert_eq!(host.drive.hmb_map_bytes(), 0);
            assert_eq!(host.drive.hmb_usable_bytes(), 0);
        }
        settle(&mut host);
        host.drive.ftl().check();
    }
    let counters = host.counters();
    assert_eq!(counters.requests, counters.completions);
    assert!(
        counters.map.dirty_writebacks > 0,
        "changed pages were saved"
    );
}

#[test]
fn a_read_cache_in_the_drive_survives_host_memory_being_taken_back() {
    let mut host = Host::new(&drive("tiny", &[]), Precondition::Sequential, 256 << 10, 1);
    host.submit(pages(Op::Read, 7, 1));
    settle(&mut host);
    host.set_hmb(0);
    host.submit(pages(Op::Read, 7, 1));
    settle(&mut host);
    assert_eq!(host.counters().read_cache_hits, 1);
}

#[test]
fn static_wear_levelling_keeps_erase_counts_together() {
    let spread = |threshold: &str| {
        let spec = drive(
            "tiny",
            &[
                ("capacity", "96MiB"),
                ("nand.pages_per_block", "24"),
                ("ftl.slc_superblocks", "0"),
                ("ftl.wear_static_threshold", threshold),
            ],
        );
        let mut host = Host::new(&spec, Precondition::Sequential, 256 << 10, 1);
        // A tenth of the addresses takes all writes: nine tenths lie still.
        closed_loop(&mut host, 16, 600_000, |rng| {
            pages(Op::Write, u64::from(rng.below(2_400)), 1)
        });
        // The open superblock of the map, which hardly changes here, is nobody's victim.
        let blocks = host.drive.ftl().blocks.all().iter();
        let erases = blocks
            .filter(|block| block.state != State::Open)
            .map(|block| block.erases);
        let (least, most) = (erases.clone().min().unwrap(), erases.max().unwrap());
        host.drive.ftl().check();
        most - least
    };
    let (without, with) = (spread("0"), spread("20"));
    assert!(with <= 25, "{with} erases apart");
    assert!(without > 2 * with, "{without} without, {with} with");
}

/// Rewriting a fragmented drive in order changes a map page for nearly every page that garbage collection moves.
/// Written back into the superblock that it had opened from its reserve, they once left it none.
#[test]
fn the_maps_own_pages_do_not_use_up_the_reserve_of_garbage_collection() {
    for (capacity, pages_per_block, overprovisioning) in [
        ("8GiB", "12", "0.07"),
        ("32GiB", "12", "0.1"),
        ("32GiB", "24", "0.1"),
    ] {
        let spec = drive(
            "tiny",
            &[
                ("capacity", capacity),
                ("nand.pages_per_block", pages_per_block),
                ("ftl.overprovisioning", overprovisioning),
                ("ftl.slc_superblocks", "0"),
                ("role.map.size.sram", "8KiB"),
            ],
        );
        let mut host = Host::new(&spec, Precondition::Random, 0, 1);
        let mut at = 0;
        closed_loop(&mut host, 16, 1_000, |_| {
            at += 32;
            pages(Op::Write, at - 32, 32)
        });
        host.drive.ftl().check();
    }
}

/// With few of its pages at hand the map has one of its pages written for nearly each page that garbage collection
/// moves. A victim that is not the emptiest then takes more room than it gives: the drive once stopped.
#[test]
fn whatever_victims_a_policy_prefers_a_drive_in_need_cleans_what_gives_room() {
    for policy in ["fifo", "cost-benefit", "d-choices"] {
        let spec = drive(
            "tiny",
            &[
                ("capacity", "8GiB"),
                ("nand.pages_per_block", "12"),
                ("ftl.overprovisioning", "0.11"),
                ("ftl.gc_policy", policy),
                ("ftl.slc_superblocks", "0"),
                ("role.map.size.sram", "64KiB"),
            ],
        );
        let mut host = Host::new(&spec, Precondition::Random, 0, 1);
        let mut rng = Rng::new(1);
        closed_loop(&mut host, 4, 8_000, |_| {
            pages(Op::Write, u64::from(rng.below(1 << 21)), 1)
        });
        host.drive.ftl().check();
    }
}

#[test]
fn the_single_bit_cache_takes_writes_fast_until_it_is_full_and_folds_when_idle() {
    let spec = drive("tiny", &[]);
    let cache_bytes = u64::from(spec.ftl.slc_superblocks) * (12 << 20) / 3;
    let mut host = Host::new(&spec, Precondition::None, 0, 1);
    let mut at = 0;
    let mut rate = |host: &mut Host, bytes: u64| {
        let count = bytes >> 17;
        let seconds = closed_loop(host, 8, count, |_| {
            at += 32;
            pages(Op::Write, at - 32, 32)
        });
        bytes as f64 / seconds / 1e6
    };
    let fast = rate(&mut host, cache_bytes - (1 << 20));
    let slow = rate(&mut host, 32 << 20);
    assert!(
        fast > 1.5 * slow,
        "{fast:.0} MB/s in the cache, {slow:.0} MB/s behind it"
    );
    // Two seconds of idleness fold the cache: it is fast again.
    let mut done = Vec::new();
    host.advance(host.now_ps() + 2_000_000_000_000, &mut done);
    let again = rate(&mut host, cache_bytes - (2 << 20));
    assert!(
        again > 0.8 * fast && again > 1.3 * slow,
        "{again:.0} MB/s after folding, {fast:.0} before"
    );
    host.drive.ftl().check();
}
