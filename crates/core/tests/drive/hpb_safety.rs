//! Is data read by an entry of the host ever stale or wrong? A million random operations with
//! garbage collection, wear levelling, buffered and partial writes, trims, flushes, responses that the host's
//! driver loses or sees late, and the driver switched off and on, against a naive drive.
//!
//! The drive really reads the flash page that the host names, so an entry wrongly taken for fresh
//! returns the data of another time or another page.

use crate::common::contents::Tags;
use crate::common::hpb::{Faults, Untrusted, User};
use crate::common::naive::Naive;
use crate::common::small::with_entries_in_the_host;
use lodger_core::Host;
use lodger_core::controller::hpb::HostEntry;
use lodger_core::ids::Lpn;
use lodger_core::observe::HpbCounters;
use lodger_core::rng::Rng;
use lodger_core::{Completion, DriveSpec, Op, Precondition, Request, Status};
use std::collections::HashMap;

struct Run<H> {
    host: H,
    naive: Naive,
    open: HashMap<u32, Request>,
    next_tag: u32,
}

impl<H: User> Run<H> {
    fn new(host: H) -> Self {
        Run {
            host,
            naive: Naive::default(),
            open: HashMap::new(),
            next_tag: 1,
        }
    }

    fn submit(&mut self, request: Request) {
        let request = self.begin(request);
        self.host.submit(request);
    }

    fn begin(&mut self, mut request: Request) -> Request {
        request.tag = self.next_tag;
        self.next_tag += 1;
        self.naive.submit(&request);
        self.open.insert(request.tag, request);
        request
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
                panic!("stuck: {}", self.host.drive().debug_state())
            };
            self.host.advance(at, done);
            self.complete(done);
        }
    }

    fn finish(mut self) -> HpbCounters {
        let mut rest = Vec::new();
        while let Some(at) = self.host.next_time() {
            self.host.advance(at, &mut rest);
        }
        self.complete(&mut rest);
        assert!(self.open.is_empty(), "every request completes");
        assert_eq!(self.host.drive().in_flight(), 0);
        self.host.drive().ftl().check();
        for (tag, sector, value) in self.host.drive().contents.sectors_seen() {
            assert!(
                self.naive.allows(tag, sector, value),
                "read {tag} of sector {sector} returned {value}: {:?}",
                self.naive.wrote.get(&sector)
            );
        }
        self.host.counters().hpb
    }
}

impl Run<Untrusted> {
    /// A request with this entry instead of the driver's.
    fn submit_with(&mut self, request: Request, entry: Option<HostEntry>) {
        let request = self.begin(request);
        self.host.submit_with(request, entry);
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

/// Bit of a shape: the host's memory for entries changes.
const RESIZES: u32 = 1 << 8;

fn run(shape: u32, integrity: &'static str, protocol: &'static str, requests: u32) -> HpbCounters {
    let spec = with_entries_in_the_host(shape, integrity, protocol);
    let mut rng = Rng::new(u64::from(shape));
    let resizes = shape & RESIZES != 0;
    let precondition = match rng.below(3) {
        0 => Precondition::None,
        1 => Precondition::Sequential,
        _ => Precondition::Random,
    };
    let seed = u64::from(shape);
    if shape >> 7 & 1 != 0 {
        let faults = Faults::new(rng.below(200), rng.below(200), seed);
        if protocol == "paper" {
            let host = Untrusted::new(&spec, precondition, seed, faults);
            return play(Run::new(host), &spec, &mut rng, (requests, resizes));
        }
    }
    let host = Host::with_contents(&spec, precondition, 0, seed, Tags::default());
    play(Run::new(host), &spec, &mut rng, (requests, resizes))
}

fn play<H: User>(
    mut run: Run<H>,
    spec: &DriveSpec,
    rng: &mut Rng,
    (requests, resizes): (u32, bool),
) -> HpbCounters {
    let sectors = spec.capacity_bytes / 512;
    let mut done = Vec::new();
    for step in 0..requests {
        // Groups get dirty in one phase and are read in the next.
        let write_percent = if step / 256 % 2 == 0 { 40 } else { 2 };
        run.submit(random_request(rng, sectors, write_percent));
        let open = rng.below(24) as usize;
        run.drain_to(open, &mut done);
        match rng.below(4000) {
            0 => run.host.set_hpb_enabled(false),
            1..8 => run.host.set_hpb_enabled(true),
            80..100 if resizes => run.host.set_hpb_groups(1 + rng.below(12)),
            8..80 => {
                // Some idle time: groups are fetched.
                run.drain_to(0, &mut done);
                // Seldom so long that regions which nobody reads are given up.
                let seconds = if rng.below(8) == 0 { 150 } else { 0 };
                let to_ps = run.host.drive().now_ps() + seconds * 1_000_000_000_000 + 3_000_000_000;
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
fn the_same_while_the_host_gives_memory_back_and_takes_more() {
    let mut all = HpbCounters::default();
    for shape in 0..10 {
        add(
            &mut all,
            &run((shape * 13 % 256) | RESIZES, "none", "paper", 20_000),
        );
    }
    assert!(all.used > 150 && all.evictions > 5_000, "{all:?}");
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
        add(&mut all, &run(shape * 53 % 256, "none", "jedec", 10_000));
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
        let shape = shape * 53 % 256;
        add(&mut all, &run(shape, "none", "jedec 2.0", 10_000));
    }
    println!("{all:?}");
    assert!(all.write_buffers > 1_000 && all.used > 600, "{all:?}");
    assert!(all.refused[0] > 50, "{all:?}");
}

#[test]
fn entries_that_were_changed_are_refused_and_data_stays_right() {
    for integrity in ["crc", "mac"] {
        let spec = with_entries_in_the_host(0b110_0010, integrity, "paper");
        let mut run = Run::new(Untrusted::hearing_all(&spec, Precondition::Sequential, 5));
        let mut rng = Rng::new(3);
        let mut done = Vec::new();
        let mut tampered = 0;
        for step in 0..2_000u32 {
            let page = rng.below(10_000);
            let entry = run.host.entry(Lpn(page), 1).expect("the host has all");
            // Another page's genuine entry, or flipped bits.
            let bytes = if step % 2 == 0 {
                entry.bytes ^ 1 << rng.below(64)
            } else {
                let other = run.host.entry(Lpn(page ^ 1), 1).unwrap();
                assert_ne!(other.bytes, entry.bytes);
                other.bytes
            };
            let before = run.host.counters();
            let read = crate::common::pages(Op::Read, u64::from(page), 1);
            run.submit_with(read, Some(HostEntry { bytes, ..entry }));
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
        let spec = with_entries_in_the_host(0b110_0010, integrity, "paper");
        let mut run = Run::new(Untrusted::hearing_all(&spec, Precondition::Sequential, 6));
        let mut rng = Rng::new(4);
        let mut done = Vec::new();
        let mut refused = 0;
        let mut ask = |run: &mut Run<Untrusted>, op: Op, page: u32, entry: Option<HostEntry>| {
            let mut request = crate::common::pages(op, u64::from(page), 1);
            if op == Op::Flush {
                request.length_bytes = 0;
            }
            run.submit_with(request, entry);
            run.drain_to(0, &mut done);
            let to_ps = run.host.drive().now_ps() + 20_000_000_000;
            run.host.advance(to_ps, &mut done);
            run.complete(&mut done);
        };
        for _ in 0..800 {
            let page = rng.below(10_000);
            let far = |n: u32| (page + 3000 + 1024 * n) % 12_000;
            let old = run.host.entry(Lpn(page), 1);
            ask(&mut run, Op::Write, page, None);
            ask(&mut run, Op::Flush, 0, None);
            // The host has the new entry now; spoilt ones make the drive's own cache hold other pages.
            for n in 0..4 {
                let mut entry = run.host.entry(Lpn(far(n)), 1);
                entry.iter_mut().for_each(|entry| entry.bytes ^= 1);
                ask(&mut run, Op::Read, far(n), entry);
            }
            let (Some(old), Some(new)) = (old, run.host.entry(Lpn(page), 1)) else {
                continue;
            };
            assert_ne!(old.bytes, new.bytes);
            let before = run.host.counters().hpb;
            let bytes = old.bytes;
            ask(&mut run, Op::Read, page, Some(HostEntry { bytes, ..new }));
            let after = run.host.counters().hpb;
            assert_eq!(after.used, before.used, "never used");
            refused += after.refused[2] - before.refused[2];
        }
        // The drive's own memory, where changed parts of the map wait to be written, answers the rest.
        assert!(refused > 30, "{integrity}: {refused}");
        run.finish();
    }
}
