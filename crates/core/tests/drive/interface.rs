//! The drive without a host of ours, as a live one uses it: doorbells in, completions out, host memory
//! exchanged and a shutdown asked for while commands are under way. Does every command end exactly once,
//! and is what a host may say at the wrong time answered instead of believed?

use crate::common::contents::Tags;
use crate::common::{drive, pages};
use lodger_core::controller::hpb::HostEntry;
use lodger_core::device::{Bytes, Device, Modelled, News, NoContents, Recovery, Sent};
use lodger_core::ids::{CommandId, Lpn};
use lodger_core::rng::Rng;
use lodger_core::{EntryId, Op, Precondition, Status, WindowCall, WindowError};
use std::collections::HashSet;

const GRANT: u64 = 168 << 10;
/// What commands bring beside their tag.
const BROUGHT: u32 = 100_000;

struct Live {
    drive: Device<NoContents, Bytes>,
    open: HashSet<CommandId>,
    news: Vec<News>,
}

impl Live {
    fn new() -> Self {
        // Map and write buffer lie in host memory.
        let sets = [
            ("capacity", "64MiB"),
            ("nand.pages_per_block", "24"),
            ("role.map.size.sram", "4KiB"),
            ("role.write_buffer.tier", "hmb"),
            ("role.write_buffer.size", "128KiB"),
            ("tier.hmb.preferred", "168KiB"),
            ("tier.hmb.min", "12KiB"),
            ("tier.hmb.integrity", "mac"),
        ];
        let spec = drive("tiny", &sets);
        let (random, memory) = (Precondition::Random, Bytes::default());
        Live {
            drive: Device::with_memory(&spec, random, GRANT, 3, NoContents, memory),
            open: HashSet::new(),
            news: Vec::new(),
        }
    }

    fn submit(&mut self, op: Op, lpn: u64) {
        let command = self.drive.enqueue(pages(op, lpn, 1));
        assert!(
            self.open.insert(command),
            "a number in flight is given twice"
        );
        self.drive.ring(command, self.drive.now_ps());
    }

    fn power_cut(&mut self) -> Recovery {
        self.open.clear();
        self.drive.begin_power_cut();
        assert_eq!(self.drive.recovery(), None, "not before it is over");
        while self.drive.run(u64::MAX) != Some(News::Recovered) {}
        self.drive.recovery().expect("it has come back").clone()
    }

    /// Up to the next thing that concerns the host; completions are taken as they arrive.
    fn step(&mut self) -> bool {
        let Some(news) = self.drive.run(u64::MAX) else {
            return false;
        };
        self.news.push(news);
        let mut sent: Vec<Sent> = Vec::new();
        self.drive.take_sent(&mut sent);
        for Sent {
            command,
            arrives_ps,
        } in sent
        {
            assert!(arrives_ps >= self.drive.now_ps());
            assert!(self.open.remove(&command), "completes once");
            let (_, status) = self.drive.consume(command, self.drive.now_ps());
            assert_eq!(status, Status::Success);
        }
        true
    }

    fn times(&self, news: News) -> usize {
        self.news.iter().filter(|known| **known == news).count()
    }
}

#[test]
fn host_memory_is_exchanged_under_load_and_said_to_be_free_once_each_time() {
    let mut live = Live::new();
    let mut rng = Rng::new(9);
    for n in 0..3_000 {
        let op = [Op::Read, Op::Write][rng.below(2) as usize];
        live.submit(op, u64::from(rng.below(15_000)));
        if n % 100 == 50 {
            let grant = [0, GRANT / 2, GRANT][rng.below(3) as usize];
            let said = live.times(News::HmbReturned);
            let old = live.drive.replace_hmb(grant, Bytes::default());
            assert_eq!(old.0.len(), 0, "the drive has let go of all of it");
            while live.times(News::HmbReturned) == said {
                assert!(live.step(), "the host hears of it");
            }
            assert!(!live.drive.hmb_is_being_saved());
        }
        while live.open.len() > rng.below(16) as usize {
            assert!(live.step());
        }
    }
    while live.step() {}
    assert!(live.open.is_empty());
    assert_eq!(live.times(News::HmbReturned), 30);
    live.drive.ftl().check();
}

#[test]
fn a_shutdown_waits_for_commands_in_flight_and_then_leaves_nothing_to_scan() {
    let mut live = Live::new();
    for lpn in 0..64 {
        live.submit(Op::Write, lpn * 200);
    }
    live.drive.begin_shutdown();
    while live.times(News::ShutDown) == 0 {
        assert!(live.step(), "it ends");
    }
    assert!(live.open.is_empty(), "commands complete before it is done");
    let recovery = live.power_cut();
    assert_eq!((recovery.stale_pages, recovery.buffer_slots), (0, 0));
    assert_eq!(recovery.torn_slots + recovery.unprogrammed_slots, 0);
    // Commands are taken again after the next start.
    live.submit(Op::Read, 200);
    while live.step() {}
    assert!(live.open.is_empty());
}

#[test]
fn what_a_host_says_to_a_drive_without_the_feature_is_answered() {
    let mut live = Live::new();
    let read = live.drive.enqueue(pages(Op::Read, 5, 1));
    let entry = HostEntry::default();
    live.drive.attach_entry(read, entry);
    assert_eq!(live.drive.enqueue_write_buffer(read, &[entry]), None);
    assert_eq!(live.drive.enqueue_read_buffer(0), None);
    live.drive.set_hpb_enabled(true);
    let info = WindowCall::EntryInfo { entry: EntryId(1) };
    let refused = live.drive.ring_window(0, (), info, 0);
    assert_eq!(refused, Err(WindowError::NoWindow));
    let refused = live.drive.read_window(0, (), 0, 8);
    assert_eq!(refused, Err(WindowError::NoWindow));
    assert!(live.drive.pinned_range(0, 8).is_err());
}

#[test]
fn a_host_cannot_name_groups_or_pages_that_do_not_exist() {
    let spec = drive("galaxy-s7", &[("hpb.enabled", "true")]);
    let mut drive = Device::new(&spec, Precondition::Sequential, 0, 1);
    assert_eq!(drive.enqueue_read_buffer(u32::MAX), None);
    let pages_of_drive = spec.capacity_bytes / 4096;
    let beyond = drive.enqueue(pages(Op::Read, pages_of_drive, 1));
    assert_eq!(drive.outcome(beyond).1, Status::OutOfRange);
    assert_eq!(drive.enqueue_write_buffer(beyond, &[]), None);
    let read = drive.enqueue(pages(Op::Read, 0, 4));
    let entries = [HostEntry::default(); 3];
    assert_eq!(drive.enqueue_write_buffer(read, &entries), None, "too few");
}

#[test]
fn what_the_drive_has_not_begun_can_be_aborted_and_the_rest_ends_by_itself() {
    // Few commands at once, and a buffer that six of them fill.
    let sets = [
        ("controller.command_slots", "6"),
        ("role.write_buffer.size", "96KiB"),
    ];
    let spec = drive("tiny", &sets);
    let contents = (Tags::default(), Modelled);
    let mut drive = Device::with_memory(&spec, Precondition::None, 0, 3, contents.0, contents.1);
    let mut rng = Rng::new(11);
    let mut open: Vec<(CommandId, bool)> = Vec::new();
    let mut ended = [0; 2];
    let mut written = Vec::new();
    for tag in 1..=6_000u32 {
        // Each write has pages of its own.
        let lpn = u64::from(tag) * 4;
        let mut request = match rng.below(4) {
            0 => pages(Op::Read, u64::from(rng.below(tag)) * 4, 4),
            1 if tag % 50 == 0 => pages(Op::Flush, 0, 0),
            _ => pages(Op::Write, lpn, 4),
        };
        request.tag = tag;
        let command = drive.enqueue(request);
        // What it brings is its own, whatever its tag, and stays so to its completion.
        *drive.payload_mut(command) = BROUGHT + tag;
        drive.ring(command, drive.now_ps());
        open.push((command, false));
        let place = rng.below(open.len() as u32) as usize;
        if rng.below(3) == 0 && !open[place].1 {
            open[place].1 = drive.abort(open[place].0);
            assert!(!drive.abort(open[place].0), "it waits no more");
        }
        let most = if tag == 6_000 { 0 } else { 40 };
        while open.len() > most {
            assert!(drive.run(u64::MAX).is_some(), "{}", drive.debug_state());
            let mut sent = Vec::new();
            drive.take_sent(&mut sent);
            for sent in sent {
                let place = open.iter().position(|(id, _)| *id == sent.command);
                let (_, aborted) = open.swap_remove(place.expect("it completes once"));
                let brought = std::mem::take(drive.payload_mut(sent.command));
                let (request, status) = drive.consume(sent.command, drive.now_ps());
                assert_eq!(status == Status::Aborted, aborted, "{request:?}");
                assert_eq!(brought, BROUGHT + request.tag);
                ended[usize::from(aborted)] += 1;
                if request.op == Op::Write {
                    written.push((request.offset_bytes / 4096, request.tag, aborted));
                }
            }
        }
    }
    let [done, aborted] = ended;
    assert!(done > 3_000 && aborted > 500, "{ended:?}");
    for (lpn, tag, aborted) in written {
        let held = drive.contents.at(drive.source(Lpn(lpn as u32)));
        assert_eq!(held, [if aborted { 0 } else { BROUGHT + tag }; 8]);
    }
    assert_eq!(drive.in_flight(), 0);
}
