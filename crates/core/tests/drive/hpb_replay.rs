//! A host that plays back map entries it was once given. Pages are overwritten, moved by garbage collection,
//! their old places erased and used again; groups become clean with new entries; power fails;
//! epochs wrap. Whatever the host then brings that is not the entry of now must be refused and
//! counted, and the read return what was written last.
//!
//! The drive really reads the flash page that an entry names (see `hpb_safety.rs`). That the
//! attack works is shown where entries carry no tag: there it returns old data.

use crate::common::hpb::{Untrusted, User};
use crate::common::naive::Naive;
use crate::common::pages;
use crate::common::small::with_few_changes_remembered;
use lodger_core::controller::hpb::HostEntry;
use lodger_core::controller::integrity::EntryCodec;
use lodger_core::device::Source;
use lodger_core::ftl::Owned;
use lodger_core::ids::{Lpn, Ppn};
use lodger_core::rng::Rng;
use lodger_core::spec::Integrity;
use lodger_core::{Completion, DriveSpec, Op, Precondition, Request, Status};
use std::collections::HashMap;

/// Pages of the drive: 12 translation pages, two of which its own memory holds.
const PAGES: u32 = 12_288;
const GROUP_PAGES: u32 = 256;

/// An entry that the host was given, and where the page lay then.
#[derive(Clone, Copy)]
struct Saved {
    page: u32,
    bytes: u64,
    ppn: Ppn,
}

/// What became of the entries played back.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    /// Reads sent with an entry that is not the one of now.
    sent: u64,
    /// The drive's own memory had the map entry: it did not look at the host's.
    not_needed: u64,
    /// Refused and counted; of these, because they failed their check.
    refused: u64,
    forged: u64,
    /// Used.
    used: u64,
    /// The place it names holds the data of another page now.
    place_reused: u64,
}

struct Attacker {
    host: Untrusted,
    naive: Naive,
    open: HashMap<u32, Request>,
    next_tag: u32,
    rng: Rng,
    saved: Vec<Saved>,
    outcome: Outcome,
    done: Vec<Completion>,
}

impl Attacker {
    fn new(integrity: &'static str, seed: u64) -> Self {
        Attacker::on(&with_few_changes_remembered(integrity), seed)
    }

    fn on(spec: &DriveSpec, seed: u64) -> Self {
        Attacker {
            host: Untrusted::hearing_all(spec, Precondition::Random, seed),
            naive: Naive::default(),
            open: HashMap::new(),
            next_tag: 1,
            rng: Rng::new(seed),
            saved: Vec::new(),
            outcome: Outcome::default(),
            done: Vec::new(),
        }
    }

    fn submit(&mut self, request: Request) -> u32 {
        let request = self.begin(request);
        self.host.submit(request);
        request.tag
    }

    fn begin(&mut self, mut request: Request) -> Request {
        request.tag = self.next_tag;
        self.next_tag += 1;
        self.naive.submit(&request);
        self.open.insert(request.tag, request);
        request
    }

    fn complete(&mut self) {
        for completion in self.done.drain(..) {
            let request = self.open.remove(&completion.tag);
            let request = request.expect("completes exactly once");
            assert_eq!(completion.status, Status::Success);
            self.naive.complete(&request);
        }
    }

    fn drain_while(&mut self, under_way: impl Fn(&HashMap<u32, Request>) -> bool) {
        while under_way(&self.open) {
            let at = self.host.next_time().expect("every request completes");
            self.host.advance(at, &mut self.done);
            self.complete();
        }
    }

    fn ask(&mut self, request: Request) {
        let tag = self.submit(request);
        self.drain_while(|open| open.contains_key(&tag));
    }

    /// Nothing is asked for a while: groups are fetched, changed parts of the map written.
    fn idle(&mut self) {
        self.drain_while(|open| !open.is_empty());
        let to_ps = self.host.now_ps() + 20_000_000_000;
        self.host.advance(to_ps, &mut self.done);
        self.complete();
    }

    fn end_reads(&mut self) {
        self.drain_while(|open| open.values().any(|request| request.op == Op::Read));
    }

    fn flush(&mut self) {
        let mut flush = pages(Op::Flush, 0, 1);
        flush.length_bytes = 0;
        self.ask(flush);
    }

    fn any_page(&mut self) -> u32 {
        self.rng.below(PAGES - 64)
    }

    /// The host notes the entries of some pages.
    fn save(&mut self, count: u32) {
        for _ in 0..count {
            let page = self.any_page();
            let entry = self.host.entry(Lpn(page), 1);
            if let (Some(entry), Source::Flash(ppn)) = (entry, self.host.drive.source(Lpn(page))) {
                let bytes = entry.bytes;
                self.saved.push(Saved { page, bytes, ppn });
            }
        }
    }

    /// Most of the pages noted are overwritten, and so much else that garbage collection runs.
    fn overwrite(&mut self) {
        let noted = self.saved.len().min(100);
        for at in self.saved.len() - noted..self.saved.len() {
            if self.rng.below(8) != 0 {
                let page = u64::from(self.saved[at].page);
                self.submit(pages(Op::Write, page, 1));
            }
        }
        for _ in 0..12 {
            let page = u64::from(self.any_page());
            self.submit(pages(Op::Write, page, 32));
        }
        self.drain_while(|open| !open.is_empty());
        self.flush();
    }

    /// Reads, honestly, until every group is clean and the host has its newest entries.
    fn refresh(&mut self) {
        for _ in 0..2 {
            for group in 0..PAGES / GROUP_PAGES {
                let page = u64::from(group * GROUP_PAGES + self.rng.below(GROUP_PAGES));
                self.ask(pages(Op::Read, page, 1));
            }
            self.idle();
        }
    }

    /// A read of `count` pages with this entry, while only writes are under way. Returns whether
    /// the drive used it.
    fn read_with(&mut self, page: u32, count: u32, entry: HostEntry) -> bool {
        self.end_reads();
        let before = self.host.counters();
        let read = self.begin(pages(Op::Read, u64::from(page), u64::from(count)));
        self.host.submit_with(read, Some(entry));
        self.drain_while(|open| open.contains_key(&read.tag));
        let after = self.host.counters();
        let refused = after.map.rejected_entries - before.map.rejected_entries;
        let reasons: u64 = (0..3)
            .map(|why| after.hpb.refused[why] - before.hpb.refused[why])
            .sum();
        assert_eq!(reasons, refused, "every refusal has its reason");
        let used = after.hpb.used > before.hpb.used;
        let own = |m: &lodger_core::observe::MapCounters| m.hits.iter().sum::<u64>();
        let looked_up = after.map.lookups - before.map.lookups;
        let not_needed = own(&after.map) - own(&before.map) == looked_up;
        let outcome = &mut self.outcome;
        outcome.sent += 1;
        outcome.refused += refused;
        outcome.forged += after.hpb.refused[2] - before.hpb.refused[2];
        outcome.used += u64::from(used);
        outcome.not_needed += u64::from(not_needed);
        let fates = refused + u64::from(used) + u64::from(not_needed);
        assert_eq!(fates, 1, "each entry has one fate");
        used
    }

    /// Plays an old entry back as if it were the newest. Only where the newest is used now, so that
    /// nothing but the entry itself can make the drive refuse it.
    fn play_back(&mut self, saved: Saved, bytes: impl Fn(Saved, HostEntry) -> u64) {
        let lpn = Lpn(saved.page);
        let Some(now) = self.host.entry(lpn, 1) else {
            return;
        };
        if saved.bytes == now.bytes {
            return;
        }
        let used = self.host.counters().hpb.used;
        self.ask(pages(Op::Read, u64::from(saved.page), 1));
        if self.host.counters().hpb.used == used {
            return;
        }
        let owner = self.host.drive.ftl().current_owner(saved.ppn);
        let reused = owner.is_some_and(|owner| owner != Owned::Data(Lpn(saved.page)));
        self.outcome.place_reused += u64::from(reused);
        let bytes = bytes(saved, now);
        let version = now.version;
        let forged = self.outcome.forged;
        let entry = HostEntry { bytes, version };
        let before = self.outcome;
        let dirty = |attacker: &Self| attacker.host.counters().hpb.refused[0];
        let dirty_before = dirty(self);
        if self.read_with(saved.page, 1, entry) {
            return;
        }
        // Garbage collection goes on meanwhile: it may have moved a page of the group, so that no entry
        // of it is good, or brought the drive's own map entry. Then nothing was tried.
        if dirty(self) > dirty_before || self.outcome.not_needed > before.not_needed {
            self.outcome = before;
            return;
        }
        assert_eq!(self.outcome.forged, forged + 1, "the check refused it");
    }

    fn play_back_some(&mut self, count: u32, bytes: impl Fn(Saved, HostEntry) -> u64) {
        for _ in 0..count {
            let at = self.rng.below(self.saved.len() as u32);
            self.play_back(self.saved[at as usize], &bytes);
        }
    }

    /// Reads that returned what no order of the requests allows.
    fn wrong_reads(&mut self) -> usize {
        while let Some(at) = self.host.next_time() {
            self.host.advance(at, &mut self.done);
        }
        self.complete();
        assert!(self.open.is_empty() && self.host.in_flight() == 0);
        self.host.drive.ftl().check();
        let seen = self.host.drive.contents.sectors_seen();
        seen.filter(|&(tag, sector, value)| !self.naive.allows(tag, sector, value))
            .count()
    }
}

fn as_it_was(saved: Saved, _: HostEntry) -> u64 {
    saved.bytes
}

fn rounds(attacker: &mut Attacker, count: u32, bytes: impl Fn(Saved, HostEntry) -> u64) {
    for _ in 0..count {
        attacker.save(100);
        attacker.overwrite();
        attacker.refresh();
        attacker.play_back_some(120, &bytes);
    }
}

#[test]
fn with_a_tag_every_entry_played_back_is_refused_and_the_newest_data_returned() {
    let mut attacker = Attacker::new("mac", 1);
    rounds(&mut attacker, 33, as_it_was);
    let outcome = &attacker.outcome;
    eprintln!("mac: {outcome:?}");
    assert!(outcome.sent > 1_500, "{outcome:?}");
    assert!(outcome.place_reused > 300, "{outcome:?}");
    assert_eq!(outcome.refused, outcome.sent);
    assert_eq!(outcome.forged, outcome.sent);
    assert_eq!(attacker.wrong_reads(), 0);
}

#[test]
fn without_a_tag_an_entry_played_back_returns_old_data() {
    let mut attacker = Attacker::new("none", 1);
    rounds(&mut attacker, 10, as_it_was);
    let outcome = &attacker.outcome;
    eprintln!("none: {outcome:?}");
    assert!(outcome.sent > 400, "{outcome:?}");
    assert_eq!((outcome.used, outcome.refused), (outcome.sent, 0));
    let wrong = attacker.wrong_reads();
    eprintln!("none: {wrong} sectors wrong");
    assert!(wrong > 8 * 200, "{wrong}");
}

#[test]
fn a_checksum_stops_an_old_entry_but_not_a_host_that_makes_it_anew() {
    let mut attacker = Attacker::new("crc", 1);
    rounds(&mut attacker, 5, as_it_was);
    assert!(attacker.outcome.sent > 200, "{:?}", attacker.outcome);
    assert_eq!(
        attacker.outcome.forged, attacker.outcome.sent,
        "the epoch is in it"
    );
    eprintln!("crc as it was: {:?}", attacker.outcome);
    attacker.outcome = Outcome::default();
    let anyone = EntryCodec::new(Integrity::Crc, 99);
    rounds(&mut attacker, 5, |saved, now| {
        let old = Ppn(saved.bytes as u32);
        let made = anyone.encode(Lpn(saved.page), old, now.version);
        u64::from_le_bytes(made.bytes().try_into().expect("eight bytes"))
    });
    eprintln!("crc made anew: {:?}", attacker.outcome);
    assert!(attacker.outcome.sent > 200, "{:?}", attacker.outcome);
    assert_eq!(attacker.outcome.used, attacker.outcome.sent);
    assert!(attacker.wrong_reads() > 8 * 100);
}

#[test]
fn entries_of_before_a_power_cut_are_refused() {
    let mut attacker = Attacker::new("mac", 2);
    for _ in 0..12 {
        attacker.save(100);
        attacker.overwrite();
        attacker.idle();
        // Everything asked has ended and is in flash.
        attacker.host.power_cut();
        attacker.refresh();
        // Also of pages that lie where they lay.
        attacker.play_back_some(120, as_it_was);
    }
    eprintln!("power cuts: {:?}", attacker.outcome);
    assert!(attacker.outcome.sent > 700, "{:?}", attacker.outcome);
    assert_eq!(attacker.outcome.forged, attacker.outcome.sent);
    assert_eq!(attacker.wrong_reads(), 0);
}

/// Found here: keys drawn from the number of programs so far were the same after two power
/// cuts with nothing programmed between.
#[test]
fn two_starts_with_nothing_written_between_have_different_keys() {
    let mut attacker = Attacker::new("mac", 3);
    for _ in 0..5 {
        attacker.idle();
        attacker.host.power_cut();
        attacker.idle();
        attacker.play_back_some_if_any(120);
        attacker.save(100);
    }
    eprintln!("idle power cuts: {:?}", attacker.outcome);
    assert!(attacker.outcome.sent > 200, "{:?}", attacker.outcome);
    assert_eq!(attacker.outcome.forged, attacker.outcome.sent);
    assert_eq!(attacker.wrong_reads(), 0);
}

/// An epoch that wraps comes up again: new keys must void everything of its first time.
#[test]
fn entries_of_before_an_epoch_wrapped_are_refused() {
    let mut spec = with_few_changes_remembered("mac");
    // Handed out 8 times, a group's epoch is as at boot.
    spec.hpb.as_mut().expect("it has HPB").epoch_bits = 3;
    let mut attacker = Attacker::on(&spec, 4);
    rounds(&mut attacker, 24, as_it_was);
    eprintln!("wrapping epochs: {:?}", attacker.outcome);
    let groups = u64::from(PAGES / GROUP_PAGES);
    let fetched = attacker.host.counters().hpb.groups_fetched;
    assert!(fetched > 8 * groups, "at least one wrapped: {fetched}");
    assert!(attacker.outcome.sent > 300, "{:?}", attacker.outcome);
    assert_eq!(attacker.outcome.forged, attacker.outcome.sent);
    assert_eq!(attacker.wrong_reads(), 0);
}

/// An entry with a tag says nothing of the pages after its own.
#[test]
fn an_entry_of_one_page_is_refused_in_a_read_of_several() {
    for integrity in ["crc", "mac"] {
        let mut attacker = Attacker::new(integrity, 5);
        rounds(&mut attacker, 2, as_it_was);
        // The driver fetches what has changed.
        attacker.idle();
        attacker.outcome = Outcome::default();
        for _ in 0..900 {
            let page = attacker.any_page();
            if let Some(entry) = attacker.host.entry(Lpn(page), 1) {
                let count = 2 + attacker.rng.below(7);
                assert!(!attacker.read_with(page, count, entry));
            }
        }
        assert!(attacker.outcome.refused > 150, "{:?}", attacker.outcome);
        assert_eq!(attacker.wrong_reads(), 0);
    }
}

/// Flips, swaps, entries played back, wrong versions, more pages than the entry is for: in any
/// order, while writes, trims and garbage collection go on.
#[test]
fn a_hostile_host_gets_no_wrong_byte_and_each_forgery_is_counted() {
    let mut attacker = Attacker::new("mac", 6);
    let mut kinds = [0u64; 5];
    for step in 0..30_000u32 {
        if step % 600 == 599 {
            attacker.flush();
            attacker.refresh();
        }
        if step % 40 == 0 {
            attacker.save(10);
        }
        let page = attacker.any_page();
        match attacker.rng.below(100) {
            0..20 => {
                let count = u64::from(1 + attacker.rng.below(8));
                let op = if attacker.rng.below(10) == 0 {
                    Op::Trim
                } else {
                    Op::Write
                };
                // Few groups, so that others stay clean.
                let page = u64::from(page % (8 * GROUP_PAGES));
                attacker.submit(pages(op, page, count));
                continue;
            }
            20..40 => {
                attacker.submit(pages(Op::Read, u64::from(page), 1));
                continue;
            }
            _ => {}
        }
        let kind = attacker.rng.below(5);
        let Some((page, count, forgery)) = attacker.forge(kind, page) else {
            continue;
        };
        kinds[kind as usize] += 1;
        assert!(!attacker.read_with(page, count, forgery), "{kind} was used");
    }
    let outcome = &attacker.outcome;
    eprintln!("hostile: {outcome:?} {kinds:?}");
    assert!(kinds.iter().all(|&sent| sent > 800), "{kinds:?}");
    assert_eq!(outcome.refused + outcome.not_needed, outcome.sent);
    assert!(outcome.forged > 2_000, "{outcome:?}");
    assert_eq!(attacker.wrong_reads(), 0);
}

impl Attacker {
    /// One forgery: the page and number of pages to read, and what to send.
    fn forge(&mut self, kind: u32, page: u32) -> Option<(u32, u32, HostEntry)> {
        // What responses still bring would change what the host has.
        self.end_reads();
        let now = self.host.entry(Lpn(page), 1)?;
        let send = |bytes, version| HostEntry { bytes, version };
        match kind {
            0 => {
                let bits = self.rng.next_u64() & self.rng.next_u64() | 1 << self.rng.below(64);
                Some((page, 1, send(now.bytes ^ bits, now.version)))
            }
            1 => {
                let other = self.any_page();
                let other = self.host.entry(Lpn(other), 1)?;
                (other.bytes != now.bytes).then_some((page, 1, send(other.bytes, now.version)))
            }
            2 => {
                let at = self.rng.below(self.saved.len() as u32);
                let Saved { page, bytes, .. } = self.saved[at as usize];
                let now = self.host.entry(Lpn(page), 1)?;
                (bytes != now.bytes).then_some((page, 1, send(bytes, now.version)))
            }
            3 => {
                let version = now.version.wrapping_add(1 + self.rng.below(3));
                Some((page, 1, send(now.bytes, version)))
            }
            _ => Some((page, 2 + self.rng.below(7), send(now.bytes, now.version))),
        }
    }

    fn play_back_some_if_any(&mut self, count: u32) {
        if !self.saved.is_empty() {
            self.play_back_some(count, as_it_was);
        }
    }
}
