//! A host that changes what the drive keeps in its memory: flips bits, swaps lines, plays old ones
//! back, wipes everything, at any instant. With keyed tags no read may return a wrong byte, and
//! every forgery the drive comes across is rejected and counted; the same attacks on a drive without
//! protection succeed, or this test would show nothing.

use crate::common::contents::{Page as _, SectorTags, Tags, overlay};
use crate::common::hostile::{Attack, Hostile};
use crate::common::mixed::{Mixed, Program, overlap, overwrite, pages_of};
use crate::common::small::{PAGES, with_map_in_host_memory};
use crate::common::{drive, pages};
use lodger_core::Host;
use lodger_core::device::{HostMemory, Modelled};
use lodger_core::ids::Lpn;
use lodger_core::rng::Rng;
use lodger_core::{DriveSpec, Op, Precondition, Request, Status};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};

const LINE: usize = 64;

/// Sectors from before the test are told apart by where they lay.
const OLD: u32 = 1 << 31;

fn tags() -> Tags {
    Tags::with_flash(|ppn| [OLD | ppn.0; 8])
}

const ATTACKS: [Attack; 6] = [
    Attack::FlipBit,
    Attack::Swap,
    Attack::Replay,
    Attack::ReplayPages,
    Attack::ReplayAll,
    Attack::Wipe,
];

const MIXED: Mixed = Mixed {
    spans: &[128, 4 << 10, PAGES - 40],
    reads: 9,
    pages_max: 30,
};

struct Outcome {
    wrong: u64,
    checked: u64,
    forged_reads: u64,
    rejected: u64,
    given_up: u64,
}

struct Run {
    host: Host<Tags, Hostile>,
    rng: Rng,
    /// Sectors as they should be; pages in use by a request are left alone.
    expected: HashMap<u32, SectorTags>,
    initial: Vec<SectorTags>,
    open: BTreeMap<u32, Request>,
    reads: HashMap<u32, Request>,
    attacks: &'static [Attack],
    /// The host gives memory anew often.
    grants: bool,
    outcome: Outcome,
}

impl Run {
    fn new(spec: &DriveSpec, seed: u64, attacks: &'static [Attack]) -> Self {
        let mut rng = Rng::new(seed);
        let precondition = match rng.below(3) {
            0 => Precondition::None,
            1 => Precondition::Sequential,
            _ => Precondition::Random,
        };
        let (tags, memory) = (tags(), Hostile::default());
        let host = Host::with_memory(spec, precondition, 168 << 10, seed, tags, memory);
        let initial = (0..PAGES)
            .map(|lpn| match host.drive.ftl().locate(Lpn(lpn)) {
                Some(ppn) => [OLD | ppn.0; 8],
                None => SectorTags::unwritten(),
            })
            .collect();
        Run {
            host,
            rng,
            expected: HashMap::new(),
            initial,
            open: BTreeMap::new(),
            reads: HashMap::new(),
            attacks,
            grants: false,
            outcome: Outcome {
                wrong: 0,
                checked: 0,
                forged_reads: 0,
                rejected: 0,
                given_up: 0,
            },
        }
    }

    fn submit(&mut self, request: Request) {
        let overlaps = |other: &Request| overlap(&request, other);
        if request.op != Op::Flush && self.open.values().any(overlaps) {
            return;
        }
        match request.op {
            Op::Write | Op::Trim => {
                for lpn in pages_of(&request) {
                    let initial = &self.initial[lpn as usize];
                    let page = self.expected.entry(lpn).or_insert(*initial);
                    overwrite(page, &request, lpn);
                }
            }
            Op::Read => {
                self.reads.insert(request.tag, request);
            }
            _ => {}
        }
        self.open.insert(request.tag, request);
        self.host.submit(request);
    }

    /// One event; forged bytes that were met must have been noticed, and nothing else.
    fn step(&mut self, checked: bool) {
        let before = (
            self.host.drive.host_memory.memory.forged_reads.get(),
            self.host.counters().map.rejected_entries,
        );
        let at = self.host.next_time().expect("requests are in flight");
        let mut done = Vec::new();
        self.host.advance(at, &mut done);
        for completion in done {
            assert_eq!(completion.status, Status::Success);
            self.open.remove(&completion.tag).expect("completes once");
        }
        let forged = self.host.drive.host_memory.memory.forged_reads.get() - before.0;
        let rejected = self.host.counters().map.rejected_entries - before.1;
        if checked {
            assert_eq!(
                forged > 0,
                rejected > 0,
                "{forged} met, {rejected} rejected"
            );
        }
        for (tag, lpn, sectors, seen) in std::mem::take(&mut self.host.drive.contents.seen) {
            assert!(self.reads.contains_key(&tag));
            let initial = &self.initial[lpn as usize];
            let mut want = *self.expected.get(&lpn).unwrap_or(initial);
            overlay(&mut want, &seen, !sectors);
            self.outcome.wrong += u64::from(want != seen);
            self.outcome.checked += 1;
        }
    }

    fn go(mut self, requests: u32, checked: bool) -> Outcome {
        for tag in 1..=requests {
            let request = MIXED.request(tag, &mut self.rng);
            self.submit(request);
            if self.rng.below(16) == 0 {
                self.host.drive.host_memory.memory.remember();
            }
            if !self.attacks.is_empty() && self.rng.below(6) == 0 {
                let attack = self.attacks[self.rng.below(self.attacks.len() as u32) as usize];
                let memory = &mut self.host.drive.host_memory.memory;
                memory.attack(attack, LINE, &mut self.rng);
            }
            if self.rng.below(if self.grants { 30 } else { 300 }) == 0 {
                let kib = [0, 12, 24, 40, 140, 156, 168][self.rng.below(7) as usize];
                self.host.set_hmb(kib << 10);
            }
            while self.open.len() > self.rng.below(12) as usize {
                self.step(checked);
            }
        }
        while self.host.next_time().is_some() {
            self.step(checked);
        }
        assert!(self.open.is_empty(), "every request completes");
        self.host.drive.ftl().check();
        self.outcome.forged_reads = self.host.drive.host_memory.memory.forged_reads.get();
        self.outcome.rejected = self.host.counters().map.rejected_entries;
        self.outcome.given_up = self.host.counters().hmb_given_up;
        self.outcome
    }
}

fn run(integrity: &str, shape: u32, seed: u64, attacks: &'static [Attack]) -> Outcome {
    Run::new(&with_map_in_host_memory(integrity, shape), seed, attacks)
        .go(1_500, integrity == "mac")
}

proptest! {
    #![proptest_config(lodger_testing::config(32))]
    #[test]
    fn no_attack_on_tagged_entries_gives_a_wrong_byte(shape in 0u32..32, seed: u64) {
        let outcome = run("mac", shape, seed, &ATTACKS);
        prop_assert_eq!(outcome.wrong, 0);
        prop_assert!(outcome.checked > 0);
    }
}

#[test]
fn a_line_that_was_genuine_before_a_change_that_failed_is_not_accepted_after_it() {
    // An entry changed while its line was spoilt; then the line was put back as it had been.
    assert_eq!(run("mac", 24, 2_725_461_211_572_726_274, &ATTACKS).wrong, 0);
}

/// Nobody forges anything here, so that it must hold without protection, too.
#[test]
fn memory_out_of_reach_is_given_up_and_costs_no_wrong_byte() {
    for integrity in ["none", "crc", "mac"] {
        let (mut met, mut given_up) = (0, 0);
        for shape in 0..32 {
            let mut run = Run::new(
                &with_map_in_host_memory(integrity, shape),
                7,
                &[Attack::Unmap],
            );
            run.grants = true;
            let outcome = run.go(1_500, false);
            assert_eq!(outcome.wrong, 0, "{integrity} {shape}");
            met += outcome.forged_reads;
            given_up += outcome.given_up;
        }
        assert!(met > 0 && given_up > 0, "{integrity}: {met} {given_up}");
    }
}

#[test]
fn every_kind_of_attack_is_met_and_rejected() {
    for attack in &ATTACKS {
        let attacks: &'static [Attack] = std::slice::from_ref(attack);
        let (mut forged, mut rejected) = (0, 0);
        for shape in [0, 1, 2, 16] {
            let outcome = run("mac", shape, 7, attacks);
            assert_eq!(outcome.wrong, 0, "{attack:?} on a drive of shape {shape}");
            forged += outcome.forged_reads;
            rejected += outcome.rejected;
        }
        assert!(
            forged > 0 && rejected >= forged,
            "{attack:?}: {forged}, {rejected}"
        );
    }
}

#[test]
fn the_same_attacks_succeed_without_protection() {
    for attack in [Attack::FlipBit, Attack::Swap, Attack::ReplayPages] {
        let attacks: &'static [Attack] = match attack {
            Attack::FlipBit => &[Attack::FlipBit],
            Attack::Swap => &[Attack::Swap],
            _ => &[Attack::ReplayPages],
        };
        // A single flipped bit is rarely met before it is overwritten: as many tries as it takes.
        let harmful = (0..60).any(|seed| run("none", 0, seed, attacks).wrong > 0);
        assert!(harmful, "{attack:?} does no harm");
    }
}

#[test]
fn a_checksum_finds_accidents_but_not_what_was_genuine_once() {
    // Not swaps: two of them bring a line back that was genuine before.
    const ACCIDENTS: [Attack; 2] = [Attack::FlipBit, Attack::Wipe];
    let mut rejected = 0;
    for seed in 0..u64::from(lodger_testing::cases(8)) {
        let outcome = run("crc", seed as u32, seed, &ACCIDENTS);
        assert_eq!(outcome.wrong, 0, "{seed}: {} rejected", outcome.rejected);
        rejected += outcome.rejected;
    }
    assert!(rejected > 0);
    let replayed = (0..6).map(|seed| run("crc", 0, seed, &[Attack::ReplayPages]).wrong);
    assert!(replayed.sum::<u64>() > 0);
}

#[test]
fn an_honest_host_is_never_suspected() {
    for integrity in ["none", "crc", "mac"] {
        for shape in 0..32 {
            let outcome = run(integrity, shape, u64::from(shape), &[]);
            assert_eq!(
                (outcome.wrong, outcome.rejected),
                (0, 0),
                "{integrity} {shape}"
            );
        }
    }
}

/// Where the host is honest, bytes and no bytes are the same drive.
#[test]
fn modelled_memory_takes_exactly_as_long_as_bytes() {
    const PROGRAM: Program = Program {
        requests: 3_000,
        draw: |rng| {
            let op = [Op::Read, Op::Write][rng.below(2) as usize];
            pages(op, u64::from(rng.below(PAGES - 4)), 2)
        },
        gap_ps: 100_000_000,
        change_every: 700,
        hmb_bytes: [168 << 10, 140 << 10],
    };
    fn play<M: HostMemory>(spec: &DriveSpec, memory: M) -> (Vec<(u32, u64)>, String) {
        let host = Host::with_memory(spec, Precondition::Random, 168 << 10, 3, tags(), memory);
        PROGRAM.play(host)
    }
    for integrity in ["none", "crc", "mac"] {
        for shape in [0, 1, 2, 4, 8, 16] {
            let spec = with_map_in_host_memory(integrity, shape);
            let modelled = play(&spec, Modelled);
            assert!(
                modelled == play(&spec, Hostile::default()),
                "{integrity} {shape}"
            );
        }
    }
}

/// Latency of a read whose entry is in host memory; `forge`: after the host has wiped it.
fn look_up_ps(sets: &[(&str, &str)], forge: bool) -> (u64, DriveSpec) {
    let mut all = vec![
        ("role.map.size.sram", "4KiB"),
        ("role.write_buffer.tier", "sram"),
    ];
    all.extend(sets);
    let spec = drive("tiny", &all);
    let (tags, memory) = (tags(), Hostile::default());
    let mut host = Host::with_memory(&spec, Precondition::Sequential, 256 << 10, 1, tags, memory);
    // The second takes the first one's place in SRAM.
    crate::common::latency(&mut host, pages(Op::Read, 0, 1));
    crate::common::latency(&mut host, pages(Op::Read, 1024, 1));
    if forge {
        host.drive.host_memory.memory.shown.fill(0);
    }
    let took = crate::common::latency(&mut host, pages(Op::Read, 900, 1));
    let rejected = host.counters().map.rejected_entries;
    assert_eq!(
        (host.counters().map.hits[1], rejected),
        (1, u64::from(forge))
    );
    (took, spec)
}

#[test]
fn protection_costs_lines_and_only_in_the_path_its_check() {
    use lodger_core::transport::wire_ps;
    const CHECK_PS: u64 = 52_000;
    let mac = ("tier.hmb.integrity", "mac");
    let (none, spec) = look_up_ps(&[], false);
    assert_eq!(look_up_ps(&[("tier.hmb.integrity", "crc")], false).0, none);
    let line_ps = wire_ps(&spec.link, 128) - wire_ps(&spec.link, 64);
    assert_eq!(look_up_ps(&[mac], false).0, none + line_ps);
    let in_path = ("tier.hmb.check_in_path", "true");
    assert_eq!(
        look_up_ps(&[mac, in_path], false).0,
        none + line_ps + CHECK_PS
    );
    // One that fails costs the check, the core's time, and a flash read of its translation page.
    let nand = &spec.nand;
    let bus_ps = u64::from(nand.codeword_bytes) * 1_000_000_000_000;
    let read_ps = |page_type: usize| {
        let bus_ps = bus_ps.div_ceil(nand.channel_bytes_per_s);
        nand.command_ps + nand.read_ps[page_type] + bus_ps + nand.ecc_ps
    };
    let fallback = look_up_ps(&[mac], true).0 - none - line_ps - CHECK_PS;
    let fallback = fallback - spec.controller.map_fill_ps;
    assert!(
        (0..3).any(|page_type| fallback == read_ps(page_type)),
        "{fallback}"
    );
}
