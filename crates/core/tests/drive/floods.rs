//! Does anything starve while more reads wait than flash can keep up with? A thousand random reads in flight on two dies,
//! so that each has hundreds waiting at any instant, and beside them one writer that flushes after each write.
//!
//! Three things starved. Reads that came while a program was suspended kept it so for as long as they came: a flush took
//! 2.7 s on a 970-pro of two dies. Where a program was chosen before the one under way had ended, reads of the map never
//! had a turn between those of hosts: a read took 1.3 s on an a80, 30 ms in the mean. And pages of the map that reads
//! wait for counted as updates that new data must wait for: without host memory an rc100 never wrote anything.

use crate::common::drives::text;
use crate::common::{DRIVES, pages};
use lodger_core::rng::Rng;
use lodger_core::{Completion, DriveSpec, Host, Op, Precondition, Status};

const READS: u32 = 1024;
const LENGTH_PS: u64 = 1_000_000_000_000;
/// The die's own limit.
const READS_BEFORE_A_TURN: u64 = 8;

/// Longest and mean latency of the reads, longest of the flushes, and how many of these.
struct Seen {
    read_max_ps: u64,
    read_mean_ps: u64,
    flush_max_ps: u64,
    flushes: u32,
}

fn flooded(spec: &DriveSpec, hmb_bytes: u64) -> Seen {
    let mut host = Host::new(spec, Precondition::Sequential, hmb_bytes, 1);
    let mut rng = Rng::new(5);
    let mut page = || u64::from(rng.below(2 << 20));
    for _ in 0..READS {
        host.submit(pages(Op::Read, page(), 1));
    }
    let by_writer = |op, page| {
        let mut request = pages(op, page, u64::from(op == Op::Write));
        request.queue = 1;
        request
    };
    host.submit(by_writer(Op::Write, page()));
    let (mut reads, mut read_ps, mut flushes) = (0, 0, 0);
    let (mut read_max_ps, mut flush_max_ps) = (0, 0);
    let mut done: Vec<Completion> = Vec::new();
    while host.now_ps() < LENGTH_PS {
        host.advance_to_completion(u64::MAX, &mut done);
        for completion in done.drain(..) {
            assert_eq!(completion.status, Status::Success);
            let took_ps = completion.completed_ps - completion.submitted_ps;
            host.submit(match completion.op {
                Op::Read => {
                    (reads, read_ps) = (reads + 1, read_ps + took_ps);
                    read_max_ps = read_max_ps.max(took_ps);
                    pages(Op::Read, page(), 1)
                }
                Op::Write => by_writer(Op::Flush, 0),
                _ => {
                    flushes += 1;
                    flush_max_ps = flush_max_ps.max(took_ps);
                    by_writer(Op::Write, page())
                }
            });
        }
    }
    Seen {
        read_max_ps,
        read_mean_ps: read_ps / reads,
        flush_max_ps,
        flushes,
    }
}

/// How long one program operation may take while reads never cease: it is suspended as often as it may be, for as many reads
/// as may overtake, and as many come before it begins.
fn program_among_reads_ps(spec: &DriveSpec) -> u64 {
    let nand = &spec.nand;
    let slowest_ps = nand.read_ps.iter().max().expect("a page has a type");
    let reads_ps = READS_BEFORE_A_TURN * (slowest_ps + nand.command_ps);
    let suspended_ps = nand.suspend.as_ref().map_or(0, |suspend| {
        let each_ps = suspend.program_ps + suspend.resume_ps + reads_ps;
        u64::from(suspend.max_per_operation) * each_ps
    });
    nand.program_ps.iter().sum::<u64>() + suspended_ps + reads_ps
}

/// A flush waits for its data and may find pages of the map before it: at most three operations in turn. Reads wait for each
/// other, and for the map once.
#[test]
fn nothing_starves_while_reads_never_cease() {
    let mut wrong = Vec::new();
    let mut drives = 0;
    for (name, file) in DRIVES {
        let sets = [
            "nand.channels=2",
            "nand.dies_per_channel=1",
            "capacity=16GiB",
        ];
        let sets = sets.map(|set| set.split_once('=').expect("a key and a value"));
        // What is calibrated for its own shape of flash cannot have another.
        let Ok(parsed) = lodger_core::spec::parse(file, name, &sets, &text) else {
            continue;
        };
        let spec = parsed.spec;
        drives += 1;
        for hmb_bytes in [0, 128 << 20] {
            let seen = flooded(&spec, hmb_bytes);
            let of_flush_ps = seen.flush_max_ps as f64 / program_among_reads_ps(&spec) as f64;
            let of_read_ps = seen.read_max_ps as f64 / seen.read_mean_ps as f64;
            let line = format!(
                "{name}, {} MiB: {} flushes, the longest {of_flush_ps:.2} programs among reads; the longest read {of_read_ps:.2} means",
                hmb_bytes >> 20,
                seen.flushes
            );
            println!("{line}");
            if seen.flushes < 100 || of_flush_ps > 3.0 || of_read_ps > 4.0 {
                wrong.push(line);
            }
        }
    }
    assert!(drives > 10, "{drives} drives tried");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
