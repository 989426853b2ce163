//! A host that changes the pages of data that the drive keeps in its memory: read cache and write
//! buffer, bytes and all. With keyed tags, is a wrong byte ever returned, and is every forgery counted?
//! Beside the drive runs a naive one: a list of who wrote each sector. The same attacks without
//! protection succeed, or this would show nothing. (The map's entries in host memory:
//! `hostile_host.rs`. Who is told of lost data: `lost_data.rs`.)

use crate::common::contents::{PAGE, Pages, SECTOR, SectorBytes, SectorTags, sector_bytes};
use crate::common::hostile::{Attack, Attacked, Hostile, attacked};
use crate::common::mixed::{Mixed, Program, overlap, overwrite, pages_of};
use crate::common::pages;
use crate::common::small::{PAGES, with_data_in_host_memory};
use lodger_core::Host;
use lodger_core::device::{Contents, HostMemory, Modelled};
use lodger_core::rng::Rng;
use lodger_core::{Completion, DriveSpec, Op, Precondition, Request, Status};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const ATTACKS: [Attack; 6] = [
    Attack::FlipBit,
    Attack::Swap,
    Attack::Replay,
    Attack::ReplayAll,
    Attack::Wipe,
    Attack::SameChecksum,
];

const MIXED: Mixed = Mixed {
    spans: &[48, 48, 512, PAGES - 40],
    reads: 11,
    pages_max: 12,
};

fn rejected<C: Contents, M: HostMemory>(host: &Host<C, M>) -> u64 {
    let counters = host.counters();
    counters.read_cache_rejected + counters.buffer_rejected
}

#[derive(Debug, Default)]
struct Outcome {
    wrong: u64,
    checked: u64,
    forged_reads: u64,
    cache_rejected: u64,
    buffer_rejected: u64,
    failed_reads: u64,
    failed_writes: u64,
    failed_flushes: u64,
    given_up: u64,
}

struct Run {
    host: Attacked,
    rng: Rng,
    /// Who wrote each sector last; pages in use by a request are left alone.
    expected: BTreeMap<u32, SectorTags>,
    open: BTreeMap<u32, Request>,
    /// Sectors that reads under way have got.
    got: BTreeMap<u32, u64>,
    /// Pages that a read could not have, and nobody has written since.
    gone: BTreeSet<u32>,
    attacks: &'static [Attack],
    /// The host gives memory anew often.
    grants: bool,
    outcome: Outcome,
    tag: u32,
}

impl Run {
    fn new(spec: &DriveSpec, seed: u64, attacks: &'static [Attack]) -> Self {
        Run {
            host: attacked(spec, seed),
            rng: Rng::new(seed),
            expected: BTreeMap::new(),
            open: BTreeMap::new(),
            got: BTreeMap::new(),
            gone: BTreeSet::new(),
            attacks,
            grants: false,
            outcome: Outcome::default(),
            tag: 0,
        }
    }

    fn request(&mut self) -> Request {
        let mut request = MIXED.request(self.tag, &mut self.rng);
        request.fua = request.op == Op::Write && self.rng.below(8) == 0;
        request
    }

    fn submit(&mut self, request: Request) {
        let overlaps = |other: &Request| overlap(&request, other);
        if request.op != Op::Flush && self.open.values().any(overlaps) {
            return;
        }
        if matches!(request.op, Op::Write | Op::Trim) {
            for lpn in pages_of(&request) {
                self.gone.remove(&lpn);
                overwrite(self.expected.entry(lpn).or_default(), &request, lpn);
            }
        }
        self.open.insert(request.tag, request);
        self.host.submit(request);
    }

    /// One event; pages that were forged must have been noticed, each once, and nothing else.
    fn step(&mut self, tagged: bool) {
        let forged = self.host.drive.host_memory.memory.forged_reads.get();
        let before = rejected(&self.host);
        let at = self.host.next_time().expect("requests are in flight");
        let mut done = Vec::new();
        self.host.advance(at, &mut done);
        let forged = self.host.drive.host_memory.memory.forged_reads.get() - forged;
        if tagged {
            assert_eq!(forged, rejected(&self.host) - before);
        }
        for (tag, lpn, sectors, page) in std::mem::take(&mut self.host.drive.contents.seen) {
            let wrote = self.expected.get(&lpn).copied().unwrap_or_default();
            for sector in (0..8u32).filter(|sector| sectors >> sector & 1 != 0) {
                let bytes = &page[sector as usize * SECTOR..][..SECTOR];
                let right = bytes == sector_bytes(wrote[sector as usize], lpn, sector);
                self.outcome.wrong += u64::from(!right);
                self.outcome.checked += 1;
            }
            *self.got.entry(tag).or_default() += u64::from(sectors.count_ones());
        }
        for completion in done {
            self.complete(completion);
        }
    }

    fn complete(&mut self, completion: Completion) {
        let request = self.open.remove(&completion.tag).expect("completes once");
        let got = self.got.remove(&completion.tag).unwrap_or(0);
        let failed = match completion.status {
            Status::Success => false,
            Status::MediaError => true,
            other => panic!("{other:?}"),
        };
        match request.op {
            Op::Read => {
                assert_eq!(failed, got != request.length_bytes / 512);
                self.outcome.failed_reads += u64::from(failed);
                let pages = pages_of(&request);
                // Parts of a page may have been written since it was lost.
                let whole = request.length_bytes.is_multiple_of(4096);
                for lpn in pages.clone() {
                    let stays = !whole || failed || !self.gone.contains(&lpn);
                    assert!(stays, "page {lpn} has come back");
                }
                if failed && whole && pages.len() == 1 {
                    self.gone.insert(pages.start);
                }
            }
            Op::Write => self.outcome.failed_writes += u64::from(failed),
            Op::Flush => self.outcome.failed_flushes += u64::from(failed),
            Op::Trim => assert!(!failed),
        }
    }

    fn go(mut self, requests: u32, tagged: bool) -> Outcome {
        for tag in 1..=requests {
            self.tag = tag;
            let request = self.request();
            self.submit(request);
            if self.rng.below(8) == 0 {
                self.host.drive.host_memory.memory.remember();
            }
            if !self.attacks.is_empty() && self.rng.below(12) == 0 {
                let attack = self.attacks[self.rng.below(self.attacks.len() as u32) as usize];
                let memory = &mut self.host.drive.host_memory.memory;
                memory.attack(attack, PAGE, &mut self.rng);
            }
            if self.rng.below(if self.grants { 20 } else { 200 }) == 0 {
                let kib = [0, 8, 64, 132, 192][self.rng.below(5) as usize];
                self.host.set_hmb(kib << 10);
            }
            while self.open.len() > self.rng.below(10) as usize {
                self.step(tagged);
            }
        }
        self.heal(tagged);
        self.outcome.forged_reads = self.host.drive.host_memory.memory.forged_reads.get();
        let counters = self.host.counters();
        self.outcome.cache_rejected = counters.read_cache_rejected;
        self.outcome.buffer_rejected = counters.buffer_rejected;
        self.outcome.given_up = counters.hmb_given_up;
        self.outcome
    }

    fn drain(&mut self, tagged: bool) {
        while self.host.next_time().is_some() {
            self.step(tagged);
        }
        assert!(self.open.is_empty(), "every request completes");
        self.host.drive.ftl().check();
    }

    fn ask(&mut self, op: Op, lpn: u64, count: u64, tagged: bool) {
        self.tag += 1;
        let mut request = pages(op, lpn, count);
        request.tag = self.tag;
        if op == Op::Flush {
            request.length_bytes = 0;
        }
        self.submit(request);
        self.drain(tagged);
    }

    /// The host gives its memory up and stops attacking: what is lost stays so until it is written,
    /// and then all is well.
    fn heal(&mut self, tagged: bool) {
        self.drain(tagged);
        self.host.set_hmb(0);
        self.ask(Op::Flush, 0, 0, tagged);
        let written: Vec<u32> = self.expected.keys().copied().collect();
        let before = self.outcome.failed_reads;
        for &lpn in &written {
            self.ask(Op::Read, u64::from(lpn), 1, tagged);
        }
        let lost = self.outcome.failed_reads - before;
        assert!(lost <= self.host.counters().buffer_rejected);
        let gone: Vec<u32> = self.gone.iter().copied().collect();
        for lpn in gone {
            let op = [Op::Write, Op::Trim][lpn as usize % 2];
            self.ask(op, u64::from(lpn), 1, tagged);
        }
        let flushes = self.outcome.failed_flushes;
        self.ask(Op::Flush, 0, 0, tagged);
        assert_eq!(self.outcome.failed_flushes, flushes);
        let failed = self.outcome.failed_reads;
        for &lpn in &written {
            self.ask(Op::Read, u64::from(lpn), 1, tagged);
        }
        assert_eq!(self.outcome.failed_reads, failed, "everything can be read");
    }
}

fn run(integrity: &str, shape: u32, seed: u64, attacks: &'static [Attack]) -> Outcome {
    Run::new(&with_data_in_host_memory(integrity, shape), seed, attacks).go(500, integrity == "mac")
}

proptest! {
    #![proptest_config(lodger_testing::config(12))]
    #[test]
    fn no_attack_on_tagged_pages_gives_a_wrong_byte(shape in 0u32..16, seed: u64) {
        let outcome = run("mac", shape, seed, &ATTACKS);
        prop_assert_eq!(outcome.wrong, 0);
        prop_assert_eq!(outcome.forged_reads, outcome.cache_rejected + outcome.buffer_rejected);
        prop_assert!(outcome.checked > 0);
    }
}

#[test]
fn every_kind_of_attack_on_either_role_is_met_and_counted() {
    for attack in &ATTACKS {
        let attacks: &'static [Attack] = std::slice::from_ref(attack);
        let (mut cached, mut buffered, mut failed) = (0, 0, 0);
        for seed in 0..lodger_testing::cases(24) {
            let outcome = run("mac", seed, u64::from(seed), attacks);
            assert_eq!(outcome.wrong, 0, "{attack:?} {seed}");
            cached += outcome.cache_rejected;
            buffered += outcome.buffer_rejected;
            failed += outcome.failed_reads;
            let told = outcome.failed_reads + outcome.failed_flushes + outcome.failed_writes;
            assert!(told > 0 || outcome.buffer_rejected == 0, "{outcome:?}");
        }
        let met = cached > 0 && buffered > 0 && failed > 0;
        assert!(met, "{attack:?}: {cached} {buffered} {failed}");
    }
}

/// Nobody forges anything here, so that it must hold without protection, too.
#[test]
fn memory_out_of_reach_is_given_up_and_costs_no_wrong_byte() {
    for integrity in ["none", "crc", "mac"] {
        let (mut given_up, mut failed) = (0, 0);
        for shape in 0..lodger_testing::cases(16) {
            let mut run = Run::new(
                &with_data_in_host_memory(integrity, shape),
                7,
                &[Attack::Unmap],
            );
            run.grants = true;
            let outcome = run.go(500, true);
            assert_eq!(outcome.wrong, 0, "{integrity} {shape}");
            given_up += outcome.given_up;
            failed += outcome.failed_reads + outcome.failed_flushes + outcome.failed_writes;
        }
        assert!(
            given_up > 0 && failed > 0,
            "{integrity}: {given_up} {failed}"
        );
    }
}

#[test]
fn the_same_attacks_succeed_without_protection() {
    for attack in &ATTACKS {
        let attacks: &'static [Attack] = std::slice::from_ref(attack);
        let outcomes = (0..6).map(|seed| run("none", seed, u64::from(seed), attacks));
        let (mut wrong, mut noticed) = (0, 0);
        for outcome in outcomes {
            wrong += outcome.wrong;
            noticed += outcome.cache_rejected + outcome.buffer_rejected;
        }
        assert!(wrong > 0 && noticed == 0, "{attack:?}: {wrong} {noticed}");
    }
}

#[test]
fn a_checksum_on_the_drive_finds_what_is_not_made_to_fit_it() {
    const NOT_MADE_TO_FIT: [Attack; 4] =
        [Attack::FlipBit, Attack::Swap, Attack::Replay, Attack::Wipe];
    let outcomes = (0..8).map(|seed| run("crc", seed, u64::from(seed), &NOT_MADE_TO_FIT));
    let (mut wrong, mut noticed) = (0, 0);
    for outcome in outcomes {
        wrong += outcome.wrong;
        noticed += outcome.cache_rejected + outcome.buffer_rejected;
    }
    assert!(wrong == 0 && noticed > 0, "{wrong} {noticed}");
    let forged = (0..4).map(|seed| run("crc", seed, u64::from(seed), &[Attack::SameChecksum]));
    assert!(forged.map(|outcome| outcome.wrong).sum::<u64>() > 0);
}

#[test]
fn an_honest_host_is_never_suspected() {
    for integrity in ["none", "crc", "mac"] {
        for shape in (0..16).step_by(3) {
            let outcome = run(integrity, shape, u64::from(shape), &[]);
            let failed = outcome.failed_reads + outcome.failed_writes + outcome.failed_flushes;
            let noticed = outcome.cache_rejected + outcome.buffer_rejected;
            assert_eq!(
                (outcome.wrong, failed, noticed),
                (0, 0, 0),
                "{integrity} {shape}"
            );
        }
    }
}

/// Where the host is honest, bytes and no bytes are the same drive.
#[test]
fn modelled_memory_takes_exactly_as_long_as_bytes() {
    const PROGRAM: Program = Program {
        requests: 1_000,
        draw: |rng| {
            let op = [Op::Read, Op::Write][rng.below(2) as usize];
            let mut request = pages(op, u64::from(rng.below(100)), 2);
            if rng.below(4) == 0 {
                request.length_bytes = 512;
            }
            request
        },
        gap_ps: 60_000_000,
        change_every: 400,
        hmb_bytes: [192 << 10, 140 << 10],
    };
    fn play<M: HostMemory>(spec: &DriveSpec, memory: M) -> (Vec<(u32, u64)>, String) {
        let contents = Pages::<SectorBytes>::empty();
        let host = Host::with_memory(spec, Precondition::None, 192 << 10, 3, contents, memory);
        PROGRAM.play(host)
    }
    for integrity in ["none", "crc", "mac"] {
        for shape in 0..16 {
            let spec = with_data_in_host_memory(integrity, shape);
            let modelled = play(&spec, Modelled);
            let bytes = play(&spec, Hostile::default());
            assert!(modelled == bytes, "{integrity} {shape}");
        }
    }
}
