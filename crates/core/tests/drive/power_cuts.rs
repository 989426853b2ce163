//! Does data survive? Every drive of the collection under random reads, writes, trims and flushes,
//! with power cut (or the host crashing) at random instants, several times in a row. After each cut
//! every sector must hold what a host may rely on: what was flushed or written with FUA or
//! acknowledged by a protected buffer, or something newer; never something older, never garbage.
//!
//! Ten thousand cuts are part of the ordinary tests. A longer soak:
//! `LODGER_CASES=1000000 cargo test --release -p lodger-core --test drive power_cuts:: -- --nocapture`

mod ageing;

use crate::common::contents::Media;
use crate::common::drives::LOG;
use crate::common::durable::Model;
use crate::common::{DRIVES, VARIANTS};
use lodger_core::Host;
use lodger_core::device::{Recovery, Rest};
use lodger_core::ids::Lpn;
use lodger_core::rng::Rng;
use lodger_core::spec::Tier;
use lodger_core::{Completion, DriveSpec, Op, Precondition, Request, Status};
use std::collections::HashMap;

/// Scaled down so that a cut takes a millisecond, with roles and tiers as they are. A key that a
/// drive does not have, or a value it cannot take, is left alone.
const SMALL: [(&str, &str); 14] = [
    // Every cut costs the open superblocks what was under way: with blocks of a few word lines many
    // cuts in a row would use up the spare.
    ("nand.pages_per_block", "24"),
    ("nand.channels", "2"),
    ("nand.dies_per_channel", "2"),
    ("ftl.slc_superblocks", "0"),
    ("ftl.overprovisioning", "0.6"),
    ("capacity", "24MiB"),
    ("role.write_buffer.size", "256KiB"),
    ("role.read_cache.size", "32KiB"),
    ("role.map.size.sram", "4KiB"),
    ("role.map.unit", "4KiB"),
    ("role.map.unit.sram", "4KiB"),
    ("role.map.size.sram", "8KiB"),
    ("tier.hmb.min", "4KiB"),
    ("tier.hmb.preferred", "300KiB"),
];

fn parse(text: &str, name: &str, sets: &[(&str, &str)]) -> Option<DriveSpec> {
    let find = |wanted: &str| {
        let drive = DRIVES.iter().find(|(name, _)| *name == wanted);
        drive.map(|(_, text)| (*text).to_owned())
    };
    let parsed = lodger_core::spec::parse(text, name, sets, &find);
    parsed.ok().map(|parsed| parsed.spec)
}

fn small(name: &str, variant: &[(&'static str, &'static str)]) -> DriveSpec {
    let (_, text) = DRIVES.iter().find(|drive| drive.0 == name).unwrap();
    let whole = parse(text, name, &[]).expect("a drive of the collection");
    let mut sets: Vec<(&str, &str)> = Vec::new();
    let slc = [("ftl.slc_superblocks", "3")];
    let slc = if whole.ftl.slc_superblocks > 0 {
        &slc[..]
    } else {
        &[]
    };
    for &set in SMALL.iter().chain(slc).chain(variant) {
        sets.push(set);
        if parse(text, name, &sets).is_none() {
            sets.pop();
        }
    }
    let spec = parse(text, name, &sets).expect("scaled down");
    assert!(spec.capacity_bytes <= 64 << 20, "{name} is not small");
    spec
}

struct Run {
    name: String,
    host: Host<Media>,
    model: Model,
    rng: Rng,
    open: HashMap<u32, Request>,
    next_tag: u32,
    hmb_bytes: u64,
    seen: Totals,
    /// Only writes and flushes, all to the same few pages.
    overwrites: bool,
}

/// What happened in all cuts.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    cuts: u64,
    crashes: u64,
    torn_slots: u64,
    unprogrammed_slots: u64,
    backed_up_slots: u64,
    erased_again: u64,
    stale_pages: u64,
    buffer_slots: u64,
    entries: u64,
    longest_ps: u64,
    reclaim_ps: u64,
    lost_acknowledged: u64,
}

impl Totals {
    fn add(&mut self, recovery: &Recovery) {
        self.torn_slots += recovery.torn_slots;
        self.unprogrammed_slots += recovery.unprogrammed_slots;
        self.backed_up_slots += recovery.backed_up_slots;
        self.erased_again += u64::from(recovery.erased_again);
        self.stale_pages += u64::from(recovery.stale_pages);
        self.buffer_slots += u64::from(recovery.buffer_slots);
        self.entries += recovery.entries;
        self.longest_ps = self.longest_ps.max(recovery.recovery_ps);
        self.reclaim_ps += recovery.reclaim_ps;
    }

    fn merge(&mut self, other: &Totals) {
        self.cuts += other.cuts;
        self.crashes += other.crashes;
        self.torn_slots += other.torn_slots;
        self.unprogrammed_slots += other.unprogrammed_slots;
        self.backed_up_slots += other.backed_up_slots;
        self.erased_again += other.erased_again;
        self.stale_pages += other.stale_pages;
        self.buffer_slots += other.buffer_slots;
        self.entries += other.entries;
        self.longest_ps = self.longest_ps.max(other.longest_ps);
        self.reclaim_ps += other.reclaim_ps;
        self.lost_acknowledged += other.lost_acknowledged;
    }
}

impl Run {
    fn new(name: String, spec: &DriveSpec, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let precondition = match rng.below(4) {
            0 => Precondition::None,
            1 => Precondition::Sequential,
            _ => Precondition::Random,
        };
        Run::preconditioned(name, spec, seed, precondition)
    }

    fn preconditioned(
        name: String,
        spec: &DriveSpec,
        seed: u64,
        precondition: Precondition,
    ) -> Self {
        let rng = Rng::new(seed);
        let hmb_bytes = spec.tiers.hmb.as_ref().map_or(0, |hmb| hmb.preferred_bytes);
        let media = Media::default();
        let host = Host::with_contents(spec, precondition, hmb_bytes, seed, media);
        let pages = (spec.capacity_bytes / 4096) as u32;
        Run {
            name,
            host,
            model: Model::new(pages),
            rng,
            open: HashMap::new(),
            next_tag: 1,
            hmb_bytes,
            seen: Totals::default(),
            overwrites: false,
        }
    }

    fn tier(&self) -> Tier {
        self.host.spec().roles.write_buffer.tier
    }

    /// Whether what is buffered survives a power cut.
    fn is_protected(&self) -> bool {
        self.host.spec().tiers.survives_power_cut(self.tier())
    }

    /// Whether what is acknowledged is in flash.
    fn unbuffered(&self) -> bool {
        let buffer = &self.host.spec().roles.write_buffer;
        buffer.acknowledges_programmed || buffer.tier == Tier::Slc
    }

    fn request(&mut self) -> Request {
        let hpb = self.host.spec().hpb.is_some();
        let rng = &mut self.rng;
        let sectors = u64::from(self.model.pages()) * 8;
        let hot = !hpb && rng.below(3) != 0;
        let span = if hot { 2048 } else { sectors };
        let length = match rng.below(4) {
            _ if hpb && rng.below(3) != 0 => 8,
            0 => 1 + u64::from(rng.below(12)),
            1 => 8,
            2 => 64,
            _ => 8 * (1 + u64::from(rng.below(24))),
        };
        let offset = u64::from(rng.below(span as u32 - 1));
        let aligned = rng.below(4) != 0;
        let offset = if aligned { offset / 8 * 8 } else { offset };
        let (offset, length) = if self.overwrites {
            (u64::from(rng.below(24)) * 64, 64)
        } else {
            (offset, length)
        };
        let op = match rng.below(100) {
            0..90 if self.overwrites => Op::Write,
            _ if self.overwrites => Op::Flush,
            // Entries that the host keeps come with reads.
            0..44 if hpb => Op::Read,
            0..62 => Op::Write,
            62..80 => Op::Read,
            80..90 => Op::Trim,
            _ => Op::Flush,
        };
        let tag = self.next_tag;
        self.next_tag += 1;
        let is_flush = op == Op::Flush;
        Request {
            tag,
            queue: rng.below(3) as u16,
            op,
            fua: op == Op::Write && rng.below(8) == 0,
            offset_bytes: offset * 512,
            length_bytes: if is_flush {
                0
            } else {
                length.min(sectors - offset) * 512
            },
        }
    }

    fn submit(&mut self) {
        let request = self.request();
        self.model.submit(&request);
        self.open.insert(request.tag, request);
        self.host.submit(request);
    }

    /// Goes on to the next event, or to an instant before it.
    fn step(&mut self, between: bool) {
        let Some(at) = self.host.next_time() else {
            assert!(
                self.open.is_empty(),
                "{}: stuck: {}\n{:?}",
                self.name,
                self.host.drive.debug_state(),
                self.open
            );
            return;
        };
        let now = self.host.now_ps();
        let to = if between && at > now + 1 {
            now + 1 + self.rng.below(((at - now - 1).min(1 << 30)) as u32) as u64
        } else {
            at
        };
        let mut done = Vec::new();
        self.host.advance(to, &mut done);
        self.check_reads();
        self.complete(&done);
    }

    fn complete(&mut self, done: &[Completion]) {
        for completion in done {
            let request = self.open.remove(&completion.tag).expect("completes once");
            if completion.status != Status::Success {
                let counted = self.host.counters().ageing;
                match completion.status {
                    Status::MediaError => assert!(counted.uncorrectable > 0, "{}", self.name),
                    Status::ReadOnly => assert!(counted.refused > 0, "{}", self.name),
                    status => panic!("{}: {status:?}", self.name),
                }
                let refused = completion.status == Status::ReadOnly;
                self.model.fail(&request, refused);
                continue;
            }
            let durable = match request.op {
                Op::Write => request.fua || self.unbuffered() || self.is_protected(),
                _ => self.is_protected(),
            };
            self.model.complete(&request, durable);
        }
    }

    fn check_reads(&mut self) {
        let mut reads = std::mem::take(&mut self.host.drive.contents.seen);
        for (tag, lpn, sectors, page) in reads.drain(..) {
            if let Err(what) = self.model.check_read(tag, lpn, sectors, &page) {
                panic!("{}: {what}", self.name);
            }
        }
        self.host.drive.contents.seen = reads;
    }

    /// Goes on until the drive has nothing left to do.
    fn settle(&mut self) {
        while self.host.next_time().is_some() {
            self.step(false);
        }
    }

    /// Lets the drive work for a while under load.
    fn work(&mut self, requests: u32) {
        for _ in 0..requests {
            self.submit();
            if self.rng.below(60) == 0 {
                let share = u64::from(self.rng.below(5));
                self.host.set_hmb(self.hmb_bytes * share / 4);
            }
            while self.open.len() > self.rng.below(24) as usize {
                self.step(false);
            }
        }
        for _ in 0..self.rng.below(40) {
            self.step(false);
        }
        if self.rng.below(3) == 0 {
            self.step(true);
        }
    }

    fn cut(&mut self) {
        let crash = self.rng.below(5) == 0;
        self.lose_power(crash);
    }

    fn lose_power(&mut self, crash: bool) {
        // What the drive's own memory has acknowledged outlives the host.
        let buffer_lives = crash && self.tier() != Tier::Hmb;
        let recovery = if crash {
            self.seen.crashes += 1;
            self.host.host_crash()
        } else {
            self.host.power_cut()
        };
        self.open.clear();
        self.host.drive.contents.seen.clear();
        self.seen.cuts += 1;
        self.seen.add(&recovery);
        let host = &self.host;
        let holds = |lpn| host.drive.contents.at(host.drive.source(Lpn(lpn)));
        let all = self.seen.cuts.is_multiple_of(32);
        match self.model.restart(holds, buffer_lives, all) {
            Ok(lost) => self.seen.lost_acknowledged += lost,
            Err(what) => panic!("{}, cut {}: {what}", self.name, self.seen.cuts),
        }
        if self.seen.cuts.is_multiple_of(32) {
            self.host.drive.ftl().check();
        }
        if self.rng.below(2) == 0 {
            self.host.set_hmb(self.hmb_bytes);
        }
    }

    /// The program that runs the drive is gone, and only what it kept of flash is left, for another that goes
    /// on from there.
    fn come_back(&mut self, rest: &Rest) {
        let spec = self.host.spec().clone();
        let gone = std::mem::take(&mut self.host.drive.contents);
        let found = gone.kept.found(&spec);
        let none = Precondition::None;
        self.host = Host::with_contents(&spec, none, 0, 1, gone.without_drive());
        let restored = self.host.drive.restore(rest, found);
        assert_eq!(restored, Ok(()), "{}", self.name);
        self.lose_power(false);
    }

    fn go(&mut self, cuts: u64) {
        while self.seen.cuts < cuts {
            match self.rng.below(8) {
                // Again at once, or while the drive still cleans up behind the last cut.
                0 => {}
                1 => (0..self.rng.below(30)).for_each(|_| self.step(false)),
                2 => {
                    self.work(30);
                    while self.host.next_time().is_some() {
                        self.step(false);
                    }
                }
                _ => {
                    let requests = 1 + self.rng.below(48);
                    self.work(requests);
                }
            }
            self.cut();
        }
        while self.host.next_time().is_some() {
            self.step(false);
        }
        self.host.drive.ftl().check();
    }
}

fn run_all(cuts: u64) -> Totals {
    let mut runs: Vec<(String, DriveSpec)> = DRIVES
        .iter()
        .map(|(name, _)| ((*name).to_owned(), small(name, &[])))
        .collect();
    for (number, (name, variant)) in VARIANTS.iter().enumerate() {
        runs.push((format!("{name}, variant {number}"), small(name, variant)));
    }
    // Several short lives each, so that every kind of start is among them.
    let lives = (cuts / 2000).clamp(4, 64);
    let each = cuts.div_ceil(runs.len() as u64 * lives);
    let mut totals = Totals::default();
    for (name, spec) in &runs {
        for life in 0..lives {
            let mut run = Run::new(format!("{name}, life {life}"), spec, life * 977 + 5);
            run.go(each);
            totals.merge(&run.seen);
        }
    }
    totals
}

#[test]
fn nothing_flushed_is_lost_in_ten_thousand_power_cuts() {
    let wanted = u64::from(lodger_testing::cases(10_000));
    let totals = run_all(wanted);
    println!("{totals:?}");
    assert!(totals.cuts >= wanted);
    // The cuts have hit everything there is to hit.
    assert!(totals.crashes > wanted / 10);
    assert!(totals.torn_slots > wanted);
    assert!(totals.unprogrammed_slots > wanted);
    assert!(totals.backed_up_slots > wanted / 50);
    assert!(totals.erased_again > wanted / 50);
    assert!(totals.stale_pages > wanted);
    assert!(totals.buffer_slots > wanted / 10);
    assert!(
        totals.lost_acknowledged > wanted,
        "a flush would be for nothing"
    );
}

#[test]
fn a_drive_comes_back_from_what_was_kept_of_its_flash_alone() {
    let lives = u64::from(lodger_testing::cases(10_000)) / 2500;
    let mut totals = Totals::default();
    let drives = DRIVES.iter().map(|(name, _)| (*name, [].as_slice()));
    for (name, variant) in drives.chain(VARIANTS) {
        let spec = small(name, variant);
        let buffer = &spec.roles.write_buffer;
        if spec.tiers.survives_power_cut(buffer.tier) || buffer.log_bytes > 0 {
            // What protected memory holds is not in flash.
            continue;
        }
        for life in 0..lives {
            let title = format!("{name} {variant:?}, life {life}");
            let mut run = Run::preconditioned(title, &spec, life, Precondition::None);
            let mut saved = run.host.drive.rest();
            while run.seen.cuts < 24 {
                for _ in 0..run.rng.below(4) {
                    let requests = 1 + run.rng.below(100);
                    run.work(requests);
                    if run.rng.below(4) == 0 {
                        saved = run.host.drive.rest();
                    }
                }
                run.come_back(&saved);
                saved = run.host.drive.rest();
                run.host.drive.ftl().check();
            }
            run.work(200);
            run.settle();
            totals.merge(&run.seen);
        }
    }
    println!("{totals:?}");
    assert!(totals.entries > 10_000 && totals.stale_pages > 1_000);
    assert!(totals.lost_acknowledged > 1_000);
}

#[test]
fn what_a_log_holds_outlives_cuts() {
    // Few pages, overwritten and flushed: logged versions beside newer ones, and full logs.
    let hmb = [
        ("tier.hmb.preferred", "600KiB"),
        ("role.write_buffer.tier", "hmb"),
    ];
    for (seed, sets) in [&hmb[..], &[], &[("ftl.hot_cold_streams", "true")]]
        .iter()
        .enumerate()
        .flat_map(|(at, sets)| (0..4).map(move |seed| (at as u64 * 8 + seed, sets)))
    {
        let variant: Vec<_> = sets.iter().chain(&LOG).copied().collect();
        let spec = small("tiny", &variant);
        assert!(spec.roles.write_buffer.log_bytes > 0);
        let mut run = Run::new(format!("log, seed {seed}"), &spec, seed);
        run.overwrites = seed % 2 == 0;
        while run.seen.cuts < 60 {
            run.work(60);
            run.cut();
        }
        assert!(run.host.counters().buffer_logged > 1000, "the log was used");
        assert!(run.seen.buffer_slots > 100, "slots were restored");
    }
}

#[test]
fn a_superblock_is_not_erased_before_what_superseded_its_data_is_in_flash() {
    // Everything in a superblock superseded, its erase begun, and power cut before the program that
    // superseded the last of it has ended: flushed data was gone. Superblocks of a few program
    // operations, overwritten again and again, make it likely.
    let variant = [
        ("ftl.slc_superblocks", "0"),
        ("nand.pages_per_block", "6"),
        ("role.map.size.sram", "32KiB"),
    ];
    let spec = small("tiny", &variant);
    for seed in 0..10 {
        let mut run = Run::new(format!("overwrites, seed {seed}"), &spec, seed);
        run.overwrites = true;
        while run.seen.cuts < 150 {
            run.work(150);
            run.cut();
        }
        assert!(run.seen.erased_again > 15, "erases were interrupted");
    }
}

/// Drives whose superblocks are a few program operations long, and what else is changed on them.
const SHORT_BLOCKS: [(&str, &[(&str, &str)]); 8] = [
    ("galaxy-s7", &[("hpb.group", "1MiB")]),
    (
        "galaxy-s7",
        &[
            ("hpb.protocol", "jedec"),
            ("hpb.group", "1MiB"),
            ("hpb.region", "2MiB"),
        ],
    ),
    ("galaxy-s7", &[("ftl.gc_policy", "fifo")]),
    (
        "galaxy-s7",
        &[
            ("ftl.gc_own_stream", "false"),
            ("ftl.gc_policy", "cost-benefit"),
        ],
    ),
    ("tiny", &[("nand.pages_per_block", "6")]),
    ("tiny", &[("nand.one_shot", "false")]),
    ("970-pro", &[]),
    ("bg4", &[]),
];

#[test]
fn a_drive_goes_on_after_many_cuts_in_a_row() {
    // Each cut costs the open superblocks what was under way: cut in the middle of garbage collection again
    // and again, the free ones were used up and the drive stopped for good.
    let lives = u64::from(lodger_testing::cases(10_000)) / 1600;
    let mut reclaimed = 0;
    for (name, variant) in SHORT_BLOCKS {
        let short = [&[("nand.pages_per_block", "12")], variant].concat();
        let spec = small(name, &short);
        for life in 0..lives {
            let title = format!("{name} {variant:?}, life {life}");
            let mut run = Run::new(title, &spec, life);
            run.work(3000);
            while run.seen.cuts < 200 {
                // Lives differ in what gets done between cuts: from nothing to some garbage collection.
                let busy = life as u32 % 6;
                (0..run.rng.below(1 + 4 * busy)).for_each(|_| run.submit());
                (0..run.rng.below(1 + 10 * busy)).for_each(|_| run.step(false));
                run.cut();
            }
            reclaimed += u64::from(run.seen.reclaim_ps > 0);
            run.work(2000);
            run.settle();
            assert!(run.open.is_empty(), "{}: requests left", run.name);
            run.host.drive.ftl().check();
        }
    }
    assert!(reclaimed > 0, "no recovery had to collect garbage");
    println!("{reclaimed} drives had to collect garbage during recovery");
}

#[test]
fn entries_kept_by_the_host_do_not_outlive_a_power_cut() {
    for (name, variant) in VARIANTS {
        let spec = small(name, variant);
        if spec.hpb.is_none() {
            continue;
        }
        let mut run = Run::new(format!("{name} {variant:?}"), &spec, 3);
        while run.seen.cuts < 60 {
            run.work(150);
            // Idle: the host fetches what it lacks.
            run.settle();
            run.work(150);
            run.cut();
        }
        let used = run.host.counters().hpb.used;
        println!("{}: {used} reads by entries of the host", run.name);
        assert!(used > 60, "{}: entries were used", run.name);
    }
}
