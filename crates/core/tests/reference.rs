//! Does the drive return what was written? The model under long random sequences of reads, writes,
//! trims, flushes and host-memory grants and withdrawals, against a naive drive: a list of who
//! wrote each sector, no caching, no cleaning.

mod common;

use common::naive::{Naive, Tags};
use common::{drive, settle};
use lodger_core::Host;
use lodger_core::rng::Rng;
use lodger_core::{Completion, DriveSpec, Op, Precondition, Request, Status};
use proptest::prelude::*;
use std::collections::HashMap;

/// One kind of drive out of many small ones.
fn small_drive(shape: u32) -> DriveSpec {
    let bit =
        |n: u32, yes: &'static str, no: &'static str| if shape >> n & 1 != 0 { yes } else { no };
    let data_roles: &[(&str, &str)] = match shape >> 7 & 3 {
        0 => &[
            ("role.write_buffer.tier", "hmb"),
            ("role.write_buffer.size", "128KiB"),
        ],
        1 if shape >> 4 & 1 != 0 => &[("role.write_buffer.tier", "slc")],
        1 => &[],
        2 => &[("role.write_buffer.acknowledge", "programmed")],
        _ => &[
            ("role.write_buffer.tier", "hmb"),
            ("role.write_buffer.size", "96KiB"),
            ("role.write_buffer.high", "1.0"),
            ("role.write_buffer.low", "0.5"),
            ("role.read_cache.tier", "hmb"),
            ("role.read_cache.size", "24KiB"),
            ("host.dma.rate", "4.8GB/s"),
        ],
    };
    let replacement =
        ["lru", "fifo", "clock", "2q", "random", "arc", "s3-fifo"][(shape >> 9) as usize % 7];
    let mut sets = vec![
        ("capacity", "64MiB"),
        ("nand.pages_per_block", bit(0, "12", "24")),
        ("nand.one_shot", bit(1, "true", "false")),
        ("ftl.gc_own_stream", bit(2, "true", "false")),
        ("ftl.hot_cold_streams", bit(3, "true", "false")),
        ("ftl.slc_superblocks", bit(4, "3", "0")),
        ("nand.cache_read", bit(5, "true", "false")),
        ("role.map.exclusive", bit(6, "true", "false")),
        ("role.map.size.sram", "8KiB"),
        ("role.map.replacement", replacement),
        ("tier.hmb.preferred", "160KiB"),
        ("tier.hmb.min", "8KiB"),
    ];
    sets.extend(data_roles);
    // Not beside `slc` and `programmed`, which need none.
    if matches!(shape >> 7 & 3, 0 | 3) && shape >> 6 & 1 != 0 {
        sets.push(("tier.pm.size", "64KiB"));
        sets.push(("role.write_buffer.log", "pm"));
    }
    drive("tiny", &sets)
}

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
    let spec = small_drive(shape);
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
