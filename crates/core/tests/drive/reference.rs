//! Does the drive return what was written? The model under long random sequences of reads, writes,
//! trims, flushes and host-memory grants and withdrawals, against a naive drive: a list of who
//! wrote each sector, no caching, no garbage collection.

use crate::common::contents::Tags;
use crate::common::naive::Naive;
use crate::common::{settle, small};
use lodger_core::Host;
use lodger_core::rng::Rng;
use lodger_core::{Completion, Op, Precondition, Request, Status};
use proptest::prelude::*;
use std::collections::HashMap;

struct Run {
    host: Host<Tags>,
    naive: Naive,
    open: HashMap<u32, Request>,
    next_tag: u32,
}

impl Run {
    fn submit(&mut self, mut request: Request) {
        request.tag = self.next_tag;
        self.next_tag += 1;
        self.naive.submit(&request);
        self.open.insert(request.tag, request);
        self.host.submit(request);
    }

    fn complete(&mut self, done: &[Completion]) {
        for completion in done {
            let request = self
                .open
                .remove(&completion.tag)
                .expect("completes exactly once");
            assert_eq!(completion.status, Status::Success);
            self.naive.complete(&request);
        }
    }
}

fn random_request(rng: &mut Rng, sectors: u64) -> Request {
    // A small hot area makes overwrites, merges and races likely.
    let hot = rng.below(2) == 0;
    let span = if hot { 256 } else { sectors };
    let offset = u64::from(rng.below(span as u32 - 1));
    let length = match rng.below(4) {
        0 => 1 + u64::from(rng.below(12)),
        1 => 8,
        2 => 64,
        _ => 8 * (1 + u64::from(rng.below(40))),
    };
    let aligned = rng.below(3) != 0;
    let offset = if aligned { offset / 8 * 8 } else { offset };
    let op = match rng.below(100) {
        0..45 => Op::Write,
        45..88 => Op::Read,
        88..96 => Op::Trim,
        _ => Op::Flush,
    };
    Request {
        tag: 0,
        queue: rng.below(3) as u16,
        op,
        fua: op == Op::Write && rng.below(8) == 0,
        offset_bytes: offset * 512,
        length_bytes: if op == Op::Flush {
            0
        } else {
            length.min(sectors - offset) * 512
        },
    }
}

fn run(shape: u32, seed: u64, requests: u32) {
    let spec = small::of_any_kind(shape);
    let mut rng = Rng::new(seed);
    let precondition = match rng.below(3) {
        0 => Precondition::None,
        1 => Precondition::Sequential,
        _ => Precondition::Random,
    };
    let host = Host::with_contents(&spec, precondition, 24 << 10, seed, Tags::default());
    let mut run = Run {
        host,
        naive: Naive::default(),
        open: HashMap::new(),
        next_tag: 1,
    };
    let sectors = spec.capacity_bytes / 512;
    let mut done = Vec::new();
    for step in 0..requests {
        run.submit(random_request(&mut rng, sectors));
        if rng.below(200) == 0 {
            run.host
                .set_hmb([0, 4 << 10, 24 << 10, 140 << 10, 160 << 10][rng.below(5) as usize]);
        }
        while run.open.len() > rng.below(24) as usize {
            let Some(at) = run.host.next_time() else {
                panic!(
                    "stuck at step {step}: {}\n{:?}",
                    run.host.drive.debug_state(),
                    run.open
                )
            };
            run.host.advance(at, &mut done);
            run.complete(&done);
            done.clear();
        }
    }
    let rest = settle(&mut run.host);
    run.complete(&rest);
    assert!(
        run.open.is_empty(),
        "every request completes: {:?}",
        run.open
    );
    assert_eq!(run.host.in_flight(), 0);
    run.host.drive.ftl().check();
    for (tag, sector, value) in run.host.drive.contents.sectors_seen() {
        assert!(
            run.naive.allows(tag, sector, value),
            "read {tag} of sector {sector} returned {value}: {:?}",
            run.naive.wrote.get(&sector)
        );
    }
}

proptest! {
    #![proptest_config(lodger_testing::config(48))]
    #[test]
    fn every_read_returns_what_a_naive_drive_would(shape in 0u32..(5 << 9), seed: u64) {
        run(shape, seed, 4_000);
    }
}

#[test]
fn long_sequences_on_one_drive_of_each_kind() {
    for shape in (0..(5 << 9)).step_by(317) {
        run(shape, u64::from(shape), 20_000);
    }
}
