//! Does read-ahead do what it says, no more than that, and nothing where it is off?

use crate::common::{closed_loop, drive, latency, pages, settle};
use lodger_core::time::transfer_ps;
use lodger_core::{DriveSpec, Host, Op, Precondition, Request};

const WINDOW_SLOTS: u64 = 64;

/// A drive with a read cache of 1 MiB in SRAM, without anything that a long run would wait for.
fn spec(ahead: bool) -> DriveSpec {
    let mut sets = vec![
        ("tier.sram.size", "8MiB"),
        ("role.map.size.sram", "512KiB"),
        ("role.read_cache.size", "1MiB"),
    ];
    if ahead {
        sets.push(("controller.read_ahead.window", "256KiB"));
        sets.push(("controller.read_ahead.streams", "4"));
    }
    drive("tiny", &sets)
}

fn host(ahead: bool) -> Host {
    let mut host = Host::new(&spec(ahead), Precondition::Sequential, 0, 1);
    // The whole map at hand.
    let translation_pages = u64::from(host.drive.ftl().user_slots() / 1024);
    for page in 0..translation_pages {
        latency(&mut host, pages(Op::Read, page * 1024 + 900, 1));
    }
    settle(&mut host);
    host
}

fn in_order(first: u64, slots: u64) -> impl FnMut() -> Request {
    let mut next = first;
    move || {
        next += slots;
        pages(Op::Read, next - slots, slots)
    }
}

#[test]
fn a_stream_at_depth_one_comes_from_the_cache() {
    let run = |ahead| {
        let mut host = host(ahead);
        let mut next = in_order(0, 4);
        let seconds = closed_loop(&mut host, 1, 400, |_| next());
        (400.0 * 4.0 / seconds, host.counters())
    };
    let ((without, off), (with, on)) = (run(false), run(true));
    println!("{:.0} and {:.0} pages/s at depth 1", without, with);
    assert_eq!(off.read_ahead_slots + off.read_ahead_joined_slots, 0);
    assert!(with > 2.5 * without, "{with} of {without} pages/s");
    // Each page is read once, ahead, but for the first two commands and what the end of the run left.
    let ahead = on.read_ahead_slots;
    assert!((1592..1592 + WINDOW_SLOTS).contains(&ahead), "{ahead}");
}

#[test]
fn a_page_that_is_at_hand_takes_the_time_of_the_cache_to_the_picosecond() {
    let mut host = host(true);
    for n in 0..4 {
        latency(&mut host, pages(Op::Read, n * 4, 4));
        settle(&mut host);
    }
    let hits = host.counters().read_cache_hits;
    let ahead = latency(&mut host, pages(Op::Read, 16, 4));
    assert_eq!(host.counters().read_cache_hits, hits + 4);
    settle(&mut host);
    assert_eq!(ahead, latency(&mut host, pages(Op::Read, 16, 4)), "again");
}

#[test]
fn a_page_on_its_way_is_not_read_again_and_waited_for_no_longer_than_a_read_takes() {
    let mut host = host(true);
    let spec = host.spec().clone();
    let reads = |host: &Host| host.counters().reads_by_cause.iter().sum::<u64>();
    latency(&mut host, pages(Op::Read, 0, 8));
    latency(&mut host, pages(Op::Read, 8, 8));
    let before = reads(&host);
    // Sixteen pages, two groups of eight, are on their way now, and these are some of them.
    let joined = latency(&mut host, pages(Op::Read, 16, 8));
    let counters = host.counters();
    assert_eq!(counters.read_ahead_joined_slots, 8);
    assert!(reads(&host) <= before + 2, "what the third has read ahead");
    let mut alone = Host::new(&spec, Precondition::Sequential, 0, 1);
    latency(&mut alone, pages(Op::Read, 900, 1));
    let slot_ps = transfer_ps(
        u64::from(spec.nand.codeword_bytes),
        spec.nand.channel_bytes_per_s,
    );
    let alone_ps = latency(&mut alone, pages(Op::Read, 16, 8));
    assert!(
        joined < alone_ps - 8 * slot_ps,
        "{joined} of {alone_ps} ps: most of the read is over"
    );
}

#[test]
fn what_is_no_stream_is_not_read_ahead() {
    let mut random = host(true);
    closed_loop(&mut random, 8, 2_000, |rng| {
        pages(Op::Read, u64::from(rng.below(100_000)), 1)
    });
    // Two of two thousand random reads may follow each other.
    let ahead = random.counters().read_ahead_slots;
    assert!(ahead <= 4, "{ahead} pages");
    // One after the other on two queues in turn: neither queue has a stream.
    let mut queues = host(true);
    for n in 0..64u64 {
        let request = Request {
            queue: (n % 2) as u16,
            ..pages(Op::Read, n * 4, 4)
        };
        latency(&mut queues, request);
    }
    assert_eq!(queues.counters().read_ahead_slots, 0);
}

#[test]
fn streams_side_by_side_are_followed_up_to_their_number() {
    let ahead = |streams: u64| {
        let mut host = host(true);
        for n in 0..40 {
            for stream in 0..streams {
                latency(&mut host, pages(Op::Read, stream * 8192 + n * 4, 4));
            }
        }
        host.counters().read_ahead_slots
    };
    assert!(ahead(4) >= 4 * 38 * 4);
    assert_eq!(ahead(5), 0, "each forgotten before it goes on");
}

#[test]
fn no_more_is_read_ahead_than_a_stream_has_come() {
    let mut host = host(true);
    latency(&mut host, pages(Op::Read, 0, 1));
    latency(&mut host, pages(Op::Read, 1, 1));
    settle(&mut host);
    assert_eq!(host.counters().read_ahead_slots, 2);
}

#[test]
fn what_is_overwritten_while_it_is_read_ahead_is_not_kept() {
    let mut host = host(true);
    for n in 0..4 {
        latency(&mut host, pages(Op::Read, n * 4, 4));
    }
    let ahead = host.counters().read_ahead_slots;
    latency(&mut host, pages(Op::Write, 16, 4));
    latency(&mut host, pages(Op::Flush, 0, 0));
    settle(&mut host);
    let hits = host.counters().read_cache_hits;
    latency(&mut host, pages(Op::Read, 16, 4));
    assert!(ahead >= 8);
    assert_eq!(host.counters().read_cache_hits, hits, "from flash");
}
