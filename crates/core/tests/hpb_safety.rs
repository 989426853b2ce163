//! Is data read by an entry of the host ever stale or wrong? A million random operations with
//! cleaning, wear levelling, buffered and partial writes, trims, flushes, responses that the host's
//! driver loses or sees late, and the driver switched off and on, against a naive drive.
//!
//! The drive really reads the flash page that the host names, so an entry wrongly taken for fresh
//! returns the data of another time or another page.

mod common;

use common::naive::{Naive, Tags};
use common::{drive, settle};
use lodger_core::Host;
use lodger_core::host::hpb::Tamper;
use lodger_core::host::hpb::paper::Faults;
use lodger_core::ids::Lpn;
use lodger_core::observe::HpbCounters;
use lodger_core::rng::Rng;
use lodger_core::{Completion, DriveSpec, Op, Precondition, Request, Status};
use std::collections::HashMap;

/// One kind of drive out of many small ones.
fn small_drive(shape: u32, integrity: &'static str, protocol: &'static str) -> DriveSpec {
    let (protocol, version) = protocol.split_once(' ').unwrap_or((protocol, "1.0"));
    let bit =
        |n: u32, yes: &'static str, no: &'static str| if shape >> n & 1 != 0 { yes } else { no };
    let sets = [
        ("capacity", "48MiB"),
        ("nand.pages_per_block", bit(0, "12", "24")),
        ("ftl.gc_own_stream", bit(1, "true", "false")),
        ("ftl.slc_superblocks", bit(2, "3", "0")),
        ("ftl.wear_static_threshold", bit(3, "2", "0")),
        ("ftl.overprovisioning", "0.35"),
        ("tier.sram.size", "2MiB"),
        ("role.map.size.sram", "8KiB"),
        ("role.write_buffer.size", bit(0, "256KiB", "512KiB")),
        ("hpb.enabled", "true"),
        ("hpb.group", bit(1, "256KiB", "1MiB")),
        (
            "hpb.host_cache",
            bit(
                4,
                if protocol == "paper" { "24KiB" } else { "8KiB" },
                "1MiB",
            ),
        ),
        ("hpb.stale_pages", bit(5, "4096", "24")),
        ("hpb.idle", "30us"),
        ("hpb.integrity", integrity),
        ("hpb.protocol", protocol),
        ("hpb.version", version),
        ("hpb.max_blocks", bit(2, "5", "255")),
        ("hpb.region", "1MiB"),
        ("hpb.control", bit(7, "host", "device")),
        ("hpb.pinned_regions", bit(3, "1", "0")),
        ("hpb.recommend_misses", "2"),
        (
            "hpb.boot",
            if shape.is_multiple_of(3) {
                "load"
            } else {
                "warm"
            },
        ),
    ];
    // UFS or PCIe: the protocol does not depend on the link.
    drive(bit(6, "galaxy-s7", "tiny"), &sets)
}

struct Run {
    host: Host<Tags>,
    naive: Naive,
    open: HashMap<u32, Request>,
    next_tag: u32,
}

impl Run {
    fn new(spec: &DriveSpec, precondition: Precondition, seed: u64) -> Self {
        Run {
            host: Host::with_contents(spec, precondition, 0, seed, Tags::default()),
            naive: Naive::default(),
            open: HashMap::new(),
            next_tag: 1,
        }
    }

    fn submit(&mut self, mut request: Request) {
        request.tag = self.next_tag;
        self.next_tag += 1;
        self.naive.submit(&request);
        self.open.insert(request.tag, request);
        self.host.submit(request);
    }

    fn complete(&mut self, done: &mut Vec<Completion>) {
        for completion in done.drain(..) {
            let request = self.open.remove(&completion.tag);
            let request = request.expect("completes exactly once");
            assert_eq!(completion.status, Status::Success);
            self.naive.complete(&request);
        }
    }

    /// Advances until at most `open` requests are under way.
    fn drain_to(&mut self, open: usize, done: &mut Vec<Completion>) {
        while self.open.len() > open {
            let Some(at) = self.host.next_time() else {
                panic!("stuck: {}", self.host.drive.debug_state())
            };
            self.host.advance(at, done);
            self.complete(done);
        }
    }

    fn finish(mut self) -> HpbCounters {
        let mut rest = settle(&mut self.host);
        self.complete(&mut rest);
        assert!(self.open.is_empty(), "every request completes");
        assert_eq!(self.host.in_flight(), 0);
        self.host.drive.ftl().check();
        for (tag, sector, value) in self.host.drive.contents.sectors_seen() {
            assert!(
                self.naive.allows(tag, sector, value),
                "read {tag} of sector {sector} returned {value}: {:?}",
                self.naive.wrote.get(&sector)
            );
        }
        self.host.counters().hpb
    }
}

fn random_request(rng: &mut Rng, sectors: u64, write_percent: u32) -> Request {
    // A small hot area makes overwrites, and reads of what has just changed, likely.
    let span = if rng.below(2) == 0 { 1024 } else { sectors };
    let mut offset = u64::from(rng.below(span as u32 - 64));
    let mut length = match rng.below(6) {
        0 => 1 + u64::from(rng.below(12)),
        1 => 8 * (1 + u64::from(rng.below(8))),
        _ => 8,
    };
    if rng.below(4) != 0 {
        offset = offset / 8 * 8;
        length = length.next_multiple_of(8);
    }
    let op = match rng.below(100) {
        dice if dice < write_percent => Op::Write,
        95..98 => Op::Trim,
        98.. => Op::Flush,
        _ => Op::Read,
    };
    Request {
        tag: 0,
        queue: 0,
        op,
        fua: op == Op::Write && rng.below(16) == 0,
        offset_bytes: offset * 512,
        length_bytes: if op == Op::Flush { 0 } else { length * 512 },
    }
}

fn run(shape: u32, integrity: &'static str, protocol: &'static str, requests: u32) -> HpbCounters {
    let spec = small_drive(shape, integrity, protocol);
    let mut rng = Rng::new(u64::from(shape));
    let precondition = match rng.below(3) {
        0 => Precondition::None,
        1 => Precondition::Sequential,
        _ => Precondition::Random,
    };
    let mut run = Run::new(&spec, precondition, u64::from(shape));
    if shape >> 7 & 1 != 0 {
        let faults = Faults::new(rng.below(200), rng.below(200), u64::from(shape));
        run.host.set_hpb_faults(Some(faults));
    }
    let sectors = spec.capacity_bytes / 512;
    let mut done = Vec::new();
    for step in 0..requests {
        // Groups get dirty in one phase and are read in the next.
        let write_percent = if step / 256 % 2 == 0 { 40 } else { 2 };
        run.submit(random_request(&mut rng, sectors, write_percent));
        let open = rng.below(24) as usize;
        run.drain_to(open, &mut done);
        match rng.below(4000) {
            0 => run.host.set_hpb_enabled(false),
            1..8 => run.host.set_hpb_enabled(true),
            8..80 => {
                // Some idle time: groups are fetched.
                run.drain_to(0, &mut done);
                // Seldom so long that regions which nobody reads are given up.
                let seconds = if rng.below(8) == 0 { 150 } else { 0 };
                let to_ps = run.host.now_ps() + seconds * 1_000_000_000_000 + 3_000_000_000;
                run.host.advance(to_ps, &mut done);
                run.complete(&mut done);
            }
            _ => {}
        }
    }
    run.finish()
}

fn add(all: &mut HpbCounters, one: &HpbCounters) {
    all.used += one.used;
    all.entries_delivered += one.entries_delivered;
    all.groups_fetched += one.groups_fetched;
    all.notices += one.notices;
    all.evictions += one.evictions;
    all.activations += one.activations;
    all.inactivations += one.inactivations;
    all.unmaps += one.unmaps;
    all.write_buffers += one.write_buffers;
    for (all, one) in all.refused.iter_mut().zip(one.refused) {
        *all += one;
    }
}

#[test]
fn a_million_operations_return_no_stale_or_wrong_byte() {
    let mut all = HpbCounters::default();
    for shape in 0..40 {
        add(&mut all, &run(shape * 13 % 256, "none", "paper", 20_000));
    }
    // Nothing was tested that did not happen: each bound is about half of what was seen.
    assert!(all.used > 12_000, "{all:?}");
    assert!(all.refused[0] > 4_000 && all.refused[1] > 150, "{all:?}");
    assert!(
        all.entries_delivered > 10_000 && all.notices > 1_000,
        "{all:?}"
    );
    assert!(all.groups_fetched > 1_000 && all.evictions > 100, "{all:?}");
    assert_eq!(all.refused[2], 0, "nobody forged anything");
}

#[test]
fn the_same_with_entries_that_are_checked() {
    let mut all = HpbCounters::default();
    for shape in 0..10 {
        let integrity = ["crc", "mac"][shape as usize % 2];
        add(&mut all, &run(shape * 29 % 256, integrity, "paper", 20_000));
    }
    assert!(all.used > 1_000 && all.groups_fetched > 500, "{all:?}");
    assert_eq!(all.entries_delivered, 0, "whole groups only");
}

#[test]
fn the_same_by_the_protocol_of_jedec() {
    let mut all = HpbCounters::default();
    for shape in 0..10 {
        let integrity = ["none", "mac"][shape as usize % 2];
        add(&mut all, &run(shape * 53 % 256, integrity, "jedec", 10_000));
    }
    assert!(all.used > 300 && all.groups_fetched > 100, "{all:?}");
    assert!(all.refused[0] > 50, "{all:?}");
    assert!(
        all.activations > 100 && all.inactivations > 0 && all.unmaps > 0,
        "{all:?}"
    );
}

#[test]
fn the_same_with_entries_sent_ahead_of_larger_reads() {
    let mut all = HpbCounters::default();
    for shape in 0..12 {
        let integrity = ["none", "mac"][shape as usize % 2];
        let shape = shape * 53 % 256;
        add(&mut all, &run(shape, integrity, "jedec 2.0", 10_000));
    }
    println!("{all:?}");
    assert!(all.write_buffers > 1_000 && all.used > 600, "{all:?}");
    assert!(all.refused[0] > 50, "{all:?}");
}

#[test]
fn entries_that_were_changed_are_refused_and_data_stays_right() {
    for integrity in ["crc", "mac"] {
        let spec = small_drive(0b110_0010, integrity, "paper");
        let mut run = Run::new(&spec, Precondition::Sequential, 5);
        let mut rng = Rng::new(3);
        let mut done = Vec::new();
        let mut tampered = 0;
        for step in 0..2_000u32 {
            let page = rng.below(10_000);
            let entry = run.host.hpb_entry(Lpn(page)).expect("the host has all");
            // Another page's genuine entry, or flipped bits.
            let tamper = if step % 2 == 0 {
                Tamper::Flip(1 << rng.below(64))
            } else {
                let other = run.host.hpb_entry(Lpn(page ^ 1)).unwrap();
                assert_ne!(other.bytes, entry.bytes);
                Tamper::Replace(other.bytes)
            };
            run.host.tamper_with_hpb(tamper);
            let before = run.host.counters();
            run.submit(common::pages(Op::Read, u64::from(page), 1));
            run.drain_to(0, &mut done);
            let after = run.host.counters();
            assert_eq!(after.hpb.used, before.hpb.used, "never used");
            tampered += after.hpb.refused[2] - before.hpb.refused[2];
        }
        assert!(tampered > 1_000, "the drive's own cache answered the rest");
        run.finish();
    }
}

#[test]
fn an_old_genuine_entry_played_back_is_refused_and_data_stays_right() {
    for integrity in ["crc", "mac"] {
        let spec = small_drive(0b110_0010, integrity, "paper");
        let mut run = Run::new(&spec, Precondition::Sequential, 6);
        let mut rng = Rng::new(4);
        let mut done = Vec::new();
        let mut refused = 0;
        let mut ask = |run: &mut Run, op: Op, page: u32| {
            let mut request = common::pages(op, u64::from(page), 1);
            if op == Op::Flush {
                request.length_bytes = 0;
            }
            run.submit(request);
            run.drain_to(0, &mut done);
            let to_ps = run.host.now_ps() + 20_000_000_000;
            run.host.advance(to_ps, &mut done);
            run.complete(&mut done);
        };
        for _ in 0..800 {
            let page = rng.below(10_000);
            let far = |n: u32| (page + 3000 + 1024 * n) % 12_000;
            let old = run.host.hpb_entry(Lpn(page));
            ask(&mut run, Op::Write, page);
            ask(&mut run, Op::Flush, 0);
            // The host has the new entry now; spoilt ones make the drive's own cache hold other pages.
            for n in 0..4 {
                run.host.tamper_with_hpb(Tamper::Flip(1));
                ask(&mut run, Op::Read, far(n));
            }
            let (Some(old), Some(new)) = (old, run.host.hpb_entry(Lpn(page))) else {
                continue;
            };
            assert_ne!(old.bytes, new.bytes);
            run.host.tamper_with_hpb(Tamper::Replace(old.bytes));
            let before = run.host.counters().hpb;
            ask(&mut run, Op::Read, page);
            let after = run.host.counters().hpb;
            assert_eq!(after.used, before.used, "never used");
            refused += after.refused[2] - before.refused[2];
        }
        // The drive's own memory, where changed parts of the map wait to be written, answers the rest.
        assert!(refused > 30, "{integrity}: {refused}");
        run.finish();
    }
}
