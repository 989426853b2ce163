//! Does any client of a full drive starve beside others? Each keeps some requests of one kind in flight: reads, writes, small and large,
//! forced, flushed, trims. Drives and clients are drawn at random.
//!
//! Each bound is of the drive's own making (operations, what its buffer takes to drain at the rate seen): what is slow for its own sake passes,
//! and what forced writes wait for is no more than a buffer takes (`beside_others.rs` looks at those).
//!
//! `LODGER_CASES` drives are tried from `LODGER_SEED` on; each prints a line for each kind of client.

use crate::common::{pages, settle};
use crate::steady::Latencies;
use crate::steady_drawn::{drawn, shown};
use crate::steady_state::{SILENCE_PS, longest_operation_ps};
use lodger_core::nand::Cause;
use lodger_core::rng::Rng;
use lodger_core::{Completion, DriveSpec, Host, Op, Precondition, Request, Status};

const CASES: u32 = 24;
const LENGTH_PS: u64 = 2_000_000_000_000;
const HMB_BYTES: u64 = 128 << 20;
const PAGE_BYTES: u64 = 4096;

const KINDS: [&str; 10] = [
    "reads of 4 KiB",
    "reads of 128 KiB",
    "reads of 512 B",
    "writes of 4 KiB",
    "writes of 512 B to 3.5 KiB",
    "writes of 128 KiB",
    "forced writes of 512 B",
    "writes of 4 KiB and flushes",
    "trims of 256 KiB",
    "writes of 512 B to 16 pages",
];

struct Clients {
    rng: Rng,
    pages: u64,
    flushes_next: bool,
}

impl Clients {
    fn next(&mut self, kind: usize) -> Request {
        let length_bytes = [
            4096,
            128 << 10,
            512,
            4096,
            512 * (1 + u64::from(self.rng.below(7))),
            128 << 10,
            512,
            4096,
            256 << 10,
            512,
        ][kind];
        let room = if kind == 9 { 16 } else { self.pages - 64 };
        let mut request = pages(
            match kind {
                0..=2 => Op::Read,
                8 => Op::Trim,
                _ => Op::Write,
            },
            self.rng.next_u64() % room,
            1,
        );
        request.length_bytes = length_bytes;
        request.fua = kind == 6;
        request.tag = kind as u32;
        if kind == 7 {
            self.flushes_next = !self.flushes_next;
            if self.flushes_next {
                request.op = Op::Flush;
            }
        }
        request
    }
}

/// Latencies of each kind, and pages a second that went from the write buffer to flash.
fn run(spec: &DriveSpec, counts: &[u32; KINDS.len()], seed: u64) -> (Vec<Latencies>, f64) {
    let mut host = Host::new(spec, Precondition::Random, HMB_BYTES, 1);
    let mut clients = Clients {
        rng: Rng::new(seed),
        pages: spec.capacity_bytes / PAGE_BYTES,
        flushes_next: false,
    };
    for (kind, &count) in counts.iter().enumerate() {
        (0..count).for_each(|_| host.submit(clients.next(kind)));
    }
    let mut seen = vec![Latencies::default(); KINDS.len()];
    let mut done: Vec<Completion> = Vec::new();
    // No client may have been drawn.
    while host.in_flight() > 0 && host.now_ps() < LENGTH_PS {
        host.advance_to_completion(u64::MAX, &mut done);
        for completion in done.drain(..) {
            assert_eq!(completion.status, Status::Success);
            let kind = completion.tag as usize;
            seen[kind].add(completion.completed_ps - completion.submitted_ps);
            host.submit(clients.next(kind));
        }
    }
    // What is still in flight has its end, too.
    let in_flight = host.in_flight();
    let last = settle(&mut host);
    assert_eq!(last.len(), in_flight);
    for completion in last {
        seen[completion.tag as usize].add(completion.completed_ps - completion.submitted_ps);
    }
    let programmed = host.counters().programmed_slots_by_cause[Cause::Host as usize];
    (seen, programmed as f64 / (LENGTH_PS as f64 / 1e12))
}

/// The longest that a request may take. All of them pass some operations of the flash, between which reads have eight turns; reads besides
/// what other reads take. Writes, and trims, whose records are programmed in turn with them, may have to wait until all of the buffer, and
/// all that is asked for at once, has gone to flash, for what came meanwhile, and for the pages of records before theirs.
fn bound_ps(spec: &DriveSpec, reads_mean_ps: Option<f64>, in_flight: u64, pages_per_s: f64) -> f64 {
    let pages = spec.roles.write_buffer.bytes / PAGE_BYTES + in_flight;
    let drain_ps = match in_flight {
        0 => 0.0,
        _ => pages as f64 / pages_per_s * 1e12,
    };
    let operations_ps = (3 * SILENCE_PS + longest_operation_ps(spec)) as f64;
    operations_ps + reads_mean_ps.map_or(4.0 * drain_ps, |mean_ps| 8.0 * mean_ps)
}

#[test]
fn no_client_starves_beside_others() {
    let cases = u64::from(lodger_testing::cases(CASES));
    let first = lodger_testing::seed().unwrap_or(1);
    let mut wrong = Vec::new();
    for seed in first..first + cases {
        let mut rng = Rng::new(seed);
        let (sets, spec) = drawn(&mut rng);
        let counts = KINDS.map(|_| [0, 0, 0, 1, 4, 16][rng.below(6) as usize]);
        // Pages that writes ask for at once.
        let in_flight = (3..KINDS.len()).filter(|&kind| kind != 8);
        let in_flight =
            in_flight.map(|kind| u64::from(counts[kind]) * if kind == 5 { 32 } else { 1 });
        let in_flight = in_flight.sum();
        let (mut seen, pages_per_s) = run(&spec, &counts, seed);
        println!(
            "{seed}: {pages_per_s:.0} pages/s to flash, {}",
            shown(&sets)
        );
        for (kind, seen) in seen.iter_mut().enumerate() {
            if counts[kind] == 0 {
                continue;
            }
            let mean_ps = seen.mean_ps();
            let longest_ps = match seen.count() {
                0 => LENGTH_PS,
                _ => seen.longest_ps(),
            };
            let reads_mean_ps = (kind <= 2).then_some(mean_ps);
            let bound_ps = bound_ps(&spec, reads_mean_ps, in_flight, pages_per_s);
            let found = format!(
                "{seed}: {} clients, {}: {} of {:.2} ms, the longest {:.2} of {:.2}",
                counts[kind],
                KINDS[kind],
                seen.count(),
                mean_ps / 1e9,
                longest_ps as f64 / 1e9,
                bound_ps / 1e9
            );
            println!("{found}");
            if longest_ps as f64 > bound_ps {
                wrong.push(found);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
