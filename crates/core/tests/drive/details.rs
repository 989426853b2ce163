//! Details of timing and order that larger tests do not notice when they are wrong.

use crate::common::{closed_loop, drive, latency, pages, settle};
use lodger_core::Host;
use lodger_core::ids::Lpn;
use lodger_core::time::transfer_ps;
use lodger_core::transport::wire_ps;
use lodger_core::{DriveSpec, Op, Precondition};

const US: u64 = 1_000_000;

/// One die that may be suspended.
fn one_die(resume: &str, suspensions: &str) -> DriveSpec {
    let sets = [
        ("nand.suspend.resume", resume),
        ("nand.suspend.max_per_operation", suspensions),
        ("ftl.slc_superblocks", "0"),
        ("nand.channels", "1"),
        ("nand.dies_per_channel", "1"),
    ];
    drive("tiny", &sets)
}

/// Latencies of a forced write and of `reads` reads of the same die, 200 us apart, of which the first comes `first_us` after it.
/// From 300 us on the die programs; before, the data is on its way to it.
fn write_among_reads(spec: &DriveSpec, reads: u32, first_us: u64) -> (u64, Vec<u64>) {
    let mut host = Host::new(spec, Precondition::Sequential, 0, 1);
    // The map's page is at hand.
    latency(&mut host, pages(Op::Read, 0, 1));
    settle(&mut host);
    let mut write = pages(Op::Write, 30_000, 1);
    write.fua = true;
    write.tag = 1000;
    host.submit(write);
    let mut done = Vec::new();
    let start_ps = host.now_ps();
    for read in 0..reads {
        host.advance(
            start_ps + (first_us + 200 * u64::from(read)) * US,
            &mut done,
        );
        let mut request = pages(Op::Read, 100 + 40 * u64::from(read), 1);
        request.tag = read;
        host.submit(request);
    }
    done.extend(settle(&mut host));
    done.sort_by_key(|done| done.tag);
    let took = |at: usize| done[at].completed_ps - done[at].submitted_ps;
    let reads = reads as usize;
    (took(reads), (0..reads).map(took).collect())
}

#[test]
fn resuming_a_program_takes_its_time_once_for_each_suspension() {
    let took = |resume, reads| write_among_reads(&one_die(resume, "8"), reads, 300).0;
    for reads in [1, 2, 3] {
        let more_ps = took("105us", reads) - took("5us", reads);
        assert_eq!(more_ps, u64::from(reads) * 100 * US, "{reads} reads");
    }
}

#[test]
fn a_program_gives_way_as_often_as_it_may_and_no_more() {
    for limit in 1..4usize {
        let (_, reads) = write_among_reads(&one_die("5us", &limit.to_string()), 4, 300);
        let soon = reads.iter().take_while(|&&took_ps| took_ps < 150 * US);
        assert_eq!(soon.count(), limit, "{reads:?}");
        // The next one waits for the program, about a millisecond.
        assert!(reads[limit] > 300 * US, "{limit}: {reads:?}");
    }
}

/// It waited for the whole program, 1.7 ms, where one that came 200 us later was through in 0.1.
#[test]
fn a_read_that_comes_while_the_data_of_a_program_is_loaded_does_not_wait_for_the_program() {
    let took = |limit: &str, at_us| write_among_reads(&one_die("5us", limit), 1, at_us).1[0];
    for at_us in [20, 60, 100, 150, 200, 250] {
        // What is left of the loading, the suspension and the read itself.
        let limit_ps = (250u64.saturating_sub(at_us) + 150) * US;
        assert!(took("8", at_us) < limit_ps, "{at_us}: {}", took("8", at_us));
        // The null: a program that cannot be suspended.
        assert!(took("0", at_us) > 1200 * US, "{at_us}");
    }
}

#[test]
fn a_packet_that_is_not_full_still_has_its_header() {
    let link = &drive("tiny", &[]).link;
    for bytes in [1, 255, 256, 257, 512, 513, 4095, 4096, 4097] {
        let mut packets = 0;
        let mut left = bytes;
        while left > 0 {
            packets += 1;
            left -= left.min(u64::from(link.max_payload_bytes));
        }
        let all_bytes = bytes + packets * u64::from(link.packet_overhead_bytes);
        let expected_ps = transfer_ps(all_bytes, link.bytes_per_s);
        assert_eq!(wire_ps(link, bytes), expected_ps, "{bytes} bytes");
    }
}

#[test]
fn data_that_is_moved_keeps_its_place_in_the_order() {
    // Harmless if it did not: only current data is moved, and what comes after it, a write or a trim,
    // has a higher number than the move as well. But the number says when the data was written.
    let sets = [
        ("capacity", "64MiB"),
        ("nand.pages_per_block", "12"),
        ("ftl.slc_superblocks", "0"),
        ("ftl.overprovisioning", "0.3"),
    ];
    let spec = drive("tiny", &sets);
    let mut host = Host::new(&spec, Precondition::None, 0, 1);
    latency(&mut host, pages(Op::Write, 5, 1));
    latency(&mut host, pages(Op::Flush, 0, 0));
    let before = host.drive.ftl().locate(Lpn(5)).expect("was written");
    let written = host.drive.ftl().current(before).expect("is current");
    closed_loop(&mut host, 8, 60_000, |rng| {
        pages(Op::Write, 100 + u64::from(rng.below(16_000)), 1)
    });
    settle(&mut host);
    let after = host.drive.ftl().locate(Lpn(5)).expect("was moved");
    assert_ne!(before, after, "garbage collection has moved it");
    assert_eq!(host.drive.ftl().current(after), Some(written));
}

/// A live drive is served by a thread of its own.
#[test]
fn a_drive_can_be_handed_to_another_thread() {
    fn hand_over<T: Send + 'static>(thing: T) -> T {
        std::thread::spawn(move || thing).join().unwrap()
    }
    let host = Host::new(&drive("tiny", &[]), Precondition::Random, 1 << 20, 1);
    let mut host = hand_over(host);
    assert!(crate::common::latency(&mut host, crate::common::pages(Op::Read, 0, 1)) > 0);
}
