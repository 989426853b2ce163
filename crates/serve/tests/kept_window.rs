//! A byte window whose drive is in a file: what is pinned and what was stored outlives whatever ends the server, beside a
//! naive model of window and blocks.
#![cfg(target_os = "linux")]

mod driver;
mod kept;
mod lives;
mod simulated;

use driver::{Driver, MEMORY_BYTES, Port};
use kept::SimDisk;
use lives::{End, open, start, with_window};
use lodger_core::DriveSpec;
use lodger_core::rng::Rng;
use lodger_serve::backing::BackingError;
use lodger_wire::command::window::{EntryInfo, opcode};
use lodger_wire::memory::{GuestMemory, Ram};
use lodger_wire::status::Status;
use simulated::Simulated;
use std::sync::Arc;

const PAGE: u64 = 4096;
const SECTORS: u64 = 8;
/// Pages that the window has, and those of the drive that are used.
const SLOTS: u64 = 16;
const PAGES: u64 = 40;
const ENTRIES: u32 = 4;

/// A sector of a version; 0: zeros.
fn sector(version: u32) -> [u8; 512] {
    let mut bytes = [0; 512];
    for (at, word) in bytes.chunks_exact_mut(4).enumerate() {
        let word_of = version.wrapping_mul(0x9e37_79b9) ^ (at as u32) << 24;
        let value = if version == 0 { 0 } else { word_of };
        word.copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

/// What a sector may hold if the server ends now, the newest last.
type May = Vec<u32>;

/// How sure it is that an entry is pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pinned {
    No,
    Yes,
    /// A pin of it has not ended.
    Pinning,
    /// A flush of it has not ended.
    Flushing,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    pinned: Pinned,
    slot: u64,
    page: u64,
    pages: u64,
}

impl Entry {
    fn is_in_the_way(&self, other: &Entry) -> bool {
        let meet = |a: u64, b: u64| a < b + other.pages && b < a + self.pages;
        self.pinned != Pinned::No && (meet(self.slot, other.slot) || meet(self.page, other.page))
    }

    fn covers(&self, page: u64) -> bool {
        self.pinned != Pinned::No && (self.page..self.page + self.pages).contains(&page)
    }

    /// Sectors of the window, each with that of the drive it stands for.
    fn sectors(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (window, drive) = (self.slot * SECTORS, self.page * SECTORS);
        (0..self.pages * SECTORS).map(move |at| ((window + at) as usize, (drive + at) as usize))
    }
}

struct Naive {
    rng: Rng,
    version: u32,
    window: Vec<May>,
    blocks: Vec<May>,
    entries: [Entry; ENTRIES as usize],
    /// The write buffer is power-protected: what has ended is safe.
    is_protected: bool,
}

fn newest(may: &May) -> u32 {
    *may.last().expect("it holds something")
}

impl Naive {
    fn new(seed: u64, is_protected: bool) -> Self {
        let none = Entry {
            pinned: Pinned::No,
            slot: 0,
            page: 0,
            pages: 0,
        };
        Naive {
            rng: Rng::new(seed),
            version: 0,
            window: vec![vec![0]; (SLOTS * SECTORS) as usize],
            blocks: vec![vec![0]; (PAGES * SECTORS) as usize],
            entries: [none; ENTRIES as usize],
            is_protected,
        }
    }

    fn pinned(&mut self) -> Option<u32> {
        let all = 0..ENTRIES;
        let pinned: Vec<u32> = all
            .filter(|id| self.entries[*id as usize].pinned == Pinned::Yes)
            .collect();
        (!pinned.is_empty()).then(|| pinned[self.rng.below(pinned.len() as u32) as usize])
    }
}

/// What a host asks for.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Pin(u32, Entry),
    Flush(u32),
    Sync(u32),
    Write { page: u64, version: u32 },
    FlushBlocks,
}

type Host<'a> = Driver<Simulated<'a>>;

/// `waits`: it does not pin where a flush that has not ended may still need the window's pages.
fn choose(naive: &mut Naive, waits: bool) -> Option<Asked> {
    match naive.rng.below(10) {
        0..=2 => {
            let id = naive.rng.below(ENTRIES);
            let pages = 1 + u64::from(naive.rng.below(4));
            let entry = Entry {
                pinned: Pinned::Pinning,
                slot: u64::from(naive.rng.below((SLOTS - pages) as u32)),
                page: u64::from(naive.rng.below((PAGES - pages) as u32)),
                pages,
            };
            let mut others = naive.entries.iter();
            let is_leaving = |other: &Entry| {
                let is_elsewhere = (other.page..other.page + other.pages).end <= entry.page
                    || entry.page + entry.pages <= other.page;
                !waits && other.pinned == Pinned::Flushing && is_elsewhere
            };
            let is_free = naive.entries[id as usize].pinned == Pinned::No
                && !others.any(|other| other.is_in_the_way(&entry) && !is_leaving(other));
            is_free.then_some(Asked::Pin(id, entry))
        }
        3..=4 => naive.pinned().map(Asked::Flush),
        5..=6 => naive.pinned().map(Asked::Sync),
        7..=8 => {
            let page = u64::from(naive.rng.below(PAGES as u32));
            naive.version += 1;
            let version = naive.version;
            let is_pinned = naive.entries.iter().any(|entry| entry.covers(page));
            (!is_pinned).then_some(Asked::Write { page, version })
        }
        _ => Some(Asked::FlushBlocks),
    }
}

/// From now on it may have happened.
fn submit(host: &mut Host<'_>, naive: &mut Naive, asked: Asked) -> u16 {
    let entry = match asked {
        Asked::Pin(id, pin) => {
            let (lba, pages) = (pin.page as u32 * 8, pin.pages as u32);
            naive.entries[id as usize] = pin;
            host.window_call(
                opcode::PIN,
                [0, 0, lba, 0, pin.slot as u32, pages << 8 | id],
            )
        }
        Asked::Flush(id) => {
            naive.entries[id as usize].pinned = Pinned::Flushing;
            host.window_call(opcode::FLUSH, [0, 0, 0, 0, 0, id])
        }
        Asked::Sync(id) => host.window_call(opcode::SYNC, [0, 0, 0, 0, 0, id]),
        Asked::Write { page, version } => {
            let entry = host.entry(1, 1, page * 8, 8);
            let data = sector(version).repeat(SECTORS as usize);
            let buffer = host.io[0].buffer(entry.command().0);
            host.port.memory().write(buffer, &data).expect("memory");
            for block in page * SECTORS..(page + 1) * SECTORS {
                naive.blocks[block as usize].push(version);
            }
            entry
        }
        Asked::FlushBlocks => host.entry(1, 0, 0, 0),
    };
    host.submit(1, entry);
    entry.command().0
}

/// It has ended well.
fn complete(naive: &mut Naive, asked: Asked) {
    match asked {
        Asked::Pin(id, pin) => {
            naive.entries[id as usize].pinned = Pinned::Yes;
            for (window, block) in pin.sectors() {
                naive.window[window] = vec![newest(&naive.blocks[block])];
            }
        }
        Asked::Flush(id) => {
            let entry = naive.entries[id as usize];
            naive.entries[id as usize].pinned = Pinned::No;
            for (window, block) in entry.sectors() {
                naive.blocks[block] = vec![newest(&naive.window[window])];
            }
        }
        Asked::Sync(id) => {
            for (window, _) in naive.entries[id as usize].sectors() {
                naive.window[window] = vec![newest(&naive.window[window])];
            }
        }
        Asked::Write { page, version } if naive.is_protected => {
            for block in page * SECTORS..(page + 1) * SECTORS {
                naive.blocks[block as usize] = vec![version];
            }
        }
        Asked::Write { .. } => {}
        Asked::FlushBlocks => {
            for block in &mut naive.blocks {
                *block = vec![newest(block)];
            }
        }
    }
}

/// Whoever has mapped the window stores something in it.
fn store(host: &mut Host<'_>, naive: &mut Naive) {
    let Some(id) = naive.pinned() else { return };
    let entry = naive.entries[id as usize];
    for _ in 0..=naive.rng.below(6) {
        let at = u64::from(naive.rng.below((entry.pages * SECTORS) as u32)) + entry.slot * SECTORS;
        naive.version += 1;
        let window = host.port.controller.window_mut().expect("a window");
        window.write(at * 512, &sector(naive.version));
        naive.window[at as usize].push(naive.version);
    }
}

fn work(host: &mut Host<'_>, naive: &mut Naive, steps: u32) {
    for _ in 0..steps {
        store(host, naive);
        let Some(asked) = choose(naive, true) else {
            continue;
        };
        let command = submit(host, naive, asked);
        let outcome = loop {
            if let Some((ended, outcome)) = host.reap(1).pop() {
                assert_eq!(ended, command);
                break outcome;
            }
            assert!(host.port.wait(), "stuck: {asked:?}");
        };
        assert!(outcome.status.is_success(), "{asked:?}: {outcome:?}");
        complete(naive, asked);
    }
    // Some that nobody hears the end of, one of each entry at most: their host is gone with the server.
    for _ in 0..naive.rng.below(8) {
        if let Some(asked) = choose(naive, false) {
            submit(host, naive, asked);
        }
        for _ in 0..naive.rng.below(40) {
            host.port.wait();
        }
    }
}

/// What the drive says of an entry.
fn info(host: &mut Host<'_>, id: u32) -> Option<EntryInfo> {
    let entry = host.window_call(opcode::GET_ENTRY_INFO, [16, 0, 0, 0, 0, id]);
    let buffer = host.io[0].buffer(entry.command().0);
    host.run(1, entry).ok()?;
    let mut bytes = [0; EntryInfo::BYTES];
    host.port.memory().read(buffer, &mut bytes).expect("memory");
    Some(EntryInfo::decode(&bytes))
}

fn one_of(may: &mut May, bytes: &[u8], what: &str) -> Result<(), String> {
    let held = may.iter().rev().find(|version| bytes == sector(**version));
    let Some(version) = held.copied() else {
        let near = u32::from_le_bytes(bytes[..4].try_into().expect("4 bytes"));
        return Err(format!("{what} holds {near:#x}, and may hold {may:?}"));
    };
    *may = vec![version];
    Ok(())
}

/// The drive is back: what is there is what may be.
fn check(host: &mut Host<'_>, naive: &mut Naive, end: End) -> Result<(), String> {
    let found: Vec<Option<EntryInfo>> = (0..ENTRIES).map(|id| info(host, id)).collect();
    // What took the place of those in the window came after them.
    for (entry, found) in naive.entries.into_iter().zip(&found) {
        if entry.pinned == Pinned::Flushing && found.is_none() {
            for (window, block) in entry.sectors() {
                naive.blocks[block] = naive.window[window].clone();
            }
        }
    }
    for (id, found) in found.into_iter().enumerate() {
        let entry = naive.entries[id];
        match (&found, entry.pinned) {
            (None, Pinned::Yes) => return Err(format!("entry {id} is not pinned")),
            (Some(_), Pinned::No) => return Err(format!("entry {id} is pinned")),
            _ => {}
        }
        let is_pinned = found.is_some();
        if let Some(info) = found {
            let place = (info.start / 8, info.window_offset_bytes / PAGE, info.state);
            assert_eq!(place, (entry.page, entry.slot, 2), "entry {id}");
            for (window, block) in entry.sectors() {
                let mut may = match entry.pinned {
                    Pinned::Pinning => naive.blocks[block].clone(),
                    _ if end == End::Killed => vec![newest(&naive.window[window])],
                    _ => naive.window[window].clone(),
                };
                let mut bytes = [0; 512];
                let held = host.port.controller.window_mut().expect("a window");
                held.read(window as u64 * 512, &mut bytes);
                one_of(&mut may, &bytes, &format!("sector {window} of the window"))?;
                naive.window[window] = may;
            }
        }
        naive.entries[id].pinned = if is_pinned { Pinned::Yes } else { Pinned::No };
    }
    check_others(host, naive)
}

/// Of the window what is not pinned is gone, and the blocks are what they may be.
fn check_others(host: &mut Host<'_>, naive: &mut Naive) -> Result<(), String> {
    let mut unpinned = vec![true; (SLOTS * SECTORS) as usize];
    for entry in naive
        .entries
        .iter()
        .filter(|entry| entry.pinned == Pinned::Yes)
    {
        entry
            .sectors()
            .for_each(|(window, _)| unpinned[window] = false);
    }
    for window in (0..SLOTS * SECTORS).filter(|window| unpinned[*window as usize]) {
        let mut bytes = [1; 512];
        let held = host.port.controller.window_mut().expect("a window");
        held.read(window * 512, &mut bytes);
        if bytes != [0; 512] {
            return Err(format!(
                "sector {window} of the window outlives power without a pin"
            ));
        }
    }
    for page in 0..PAGES {
        if naive.entries.iter().any(|entry| entry.covers(page)) {
            continue;
        }
        let entry = host.entry(1, 2, page * 8, 8);
        let buffer = host.io[0].buffer(entry.command().0);
        host.run(1, entry).expect("a read");
        let mut bytes = [0; PAGE as usize];
        host.port.memory().read(buffer, &mut bytes).expect("memory");
        for (at, bytes) in (page * SECTORS..).zip(bytes.chunks_exact(512)) {
            let may = &mut naive.blocks[at as usize];
            one_of(may, bytes, &format!("sector {at} of the drive"))?;
        }
    }
    Ok(())
}

fn live(seed: u64, spec: &DriveSpec, disk: &Arc<SimDisk>, ends: &[End]) -> Result<(), String> {
    let is_protected = spec.tiers.survives_power_cut(spec.roles.write_buffer.tier);
    let mut naive = Naive::new(seed, is_protected);
    let mut rng = Rng::new(seed ^ 5);
    let mut end = End::Off;
    for life in 0..12 {
        let ram = Ram::new(MEMORY_BYTES as usize);
        let (mut host, _) = start(disk, spec, &ram);
        check(&mut host, &mut naive, end)
            .map_err(|what| format!("seed {seed}, life {life}, {end:?}: {what}"))?;
        work(&mut host, &mut naive, 10 + rng.below(60));
        end = ends[rng.below(ends.len() as u32) as usize];
        if end == End::Off {
            host.port.controller.switch_off().expect("it is written");
        }
        drop(host);
        if end != End::Killed {
            disk.crash(&mut rng);
        }
    }
    Ok(())
}

const ALL: [End; 3] = [End::Killed, End::Crashed, End::Off];

fn drives() -> [DriveSpec; 2] {
    let protected = [
        ("role.write_buffer.tier", "pm"),
        ("role.write_buffer.size", "256KiB"),
    ];
    [with_window(&[]), with_window(&protected)]
}

#[test]
fn what_is_pinned_and_stored_outlives_the_server_and_what_was_synced_the_machine() {
    for spec in &drives() {
        for seed in 0..u64::from(lodger_testing::cases(24)) {
            let disk = Arc::new(SimDisk::default());
            live(seed, spec, &disk, &ALL).unwrap_or_else(|what| panic!("{what}"));
        }
    }
}

/// The null of the above: where syncs do nothing, the machine's end must show.
#[test]
fn a_disk_that_does_not_sync_is_found_out() {
    let spec = with_window(&[]);
    let found = (0..24).any(|seed| {
        let disk = Arc::new(SimDisk::default());
        let lived = std::panic::catch_unwind(|| {
            disk.lie();
            live(seed, &spec, &disk, &[End::Crashed])
        });
        !matches!(lived, Ok(Ok(())))
    });
    assert!(found);
}

#[test]
fn a_pin_that_a_full_disk_refuses_has_its_bytes_all_the_same() {
    let (disk, spec) = (Arc::new(SimDisk::default()), with_window(&[]));
    let ram = Ram::new(MEMORY_BYTES as usize);
    let (mut host, _) = start(&disk, &spec, &ram);
    let mut naive = Naive::new(1, false);
    let write = Asked::Write {
        page: 3,
        version: 7,
    };
    submit(&mut host, &mut naive, write);
    while host.reap(1).is_empty() {
        assert!(host.port.wait());
    }
    disk.set_room(Some(0));
    let pin = host.window_call(opcode::PIN, [0, 0, 3 * 8, 0, 2, 1 << 8]);
    let refused = host.run(1, pin).expect_err("nothing can be written");
    assert!(refused.is(Status::WRITE_FAULT), "{refused:?}");
    // A host that hears of a pin stores there: it hears nothing of one that the file does not have.
    assert!(info(&mut host, 0).is_none());
    let mut bytes = [0; 512];
    let window = host.port.controller.window_mut().expect("a window");
    window.read(2 * PAGE, &mut bytes);
    assert_eq!(bytes, sector(7));
    disk.set_room(None);
    // The drive has it pinned, and a flush has what is there.
    let flush = host.window_call(opcode::FLUSH, [0; 6]);
    host.run(1, flush).expect("there is room again");
    let entry = host.entry(1, 2, 3 * 8, 8);
    let buffer = host.io[0].buffer(entry.command().0);
    host.run(1, entry).expect("a read");
    host.port.memory().read(buffer, &mut bytes).expect("memory");
    assert_eq!(bytes, sector(7));
}

/// What is pinned next goes where the flushed pages were, whose flush nobody has waited for.
#[test]
fn a_flush_that_a_reset_has_orphaned_loses_nothing_to_the_next_pin() {
    let spec = with_window(&[]);
    for seed in 0..lodger_testing::cases(24) {
        let (disk, mut rng) = (Arc::new(SimDisk::default()), Rng::new(seed.into()));
        let ram = Ram::new(MEMORY_BYTES as usize);
        let (mut host, _) = start(&disk, &spec, &ram);
        let pin = |host: &mut Host<'_>, id: u32, page: u32| {
            let entry = host.window_call(opcode::PIN, [0, 0, page * 8, 0, 2, 1 << 8 | id]);
            host.run(1, entry).expect("pinned");
        };
        pin(&mut host, 0, 3);
        let window = host.port.controller.window_mut().expect("a window");
        window.write(2 * PAGE, &sector(7).repeat(8));
        let sync = host.window_call(opcode::SYNC, [0; 6]);
        host.run(1, sync).expect("it is safe");
        let flush = host.window_call(opcode::FLUSH, [0; 6]);
        host.submit(1, flush);
        host.port.wait();
        host.enable();
        host.create_granted_queues(1);
        while info(&mut host, 0).is_some() {
            assert!(host.port.wait(), "it is flushed some time");
        }
        let entry = host.window_call(opcode::PIN, [0, 0, 9 * 8, 0, 2, 1 << 8 | 1]);
        host.submit(1, entry);
        let mut held = sector(7);
        while held != sector(0) {
            assert!(host.port.wait(), "it is pinned some time");
            let window = host.port.controller.window_mut().expect("a window");
            window.read(2 * PAGE, &mut held);
        }
        drop(host);
        disk.crash(&mut rng);
        let (mut host, _) = start(&disk, &spec, &ram);
        let mut bytes = vec![0; PAGE as usize];
        if info(&mut host, 0).is_some() {
            let window = host.port.controller.window_mut().expect("a window");
            window.read(2 * PAGE, &mut bytes);
        } else {
            let entry = host.entry(1, 2, 3 * 8, 8);
            let buffer = host.io[0].buffer(entry.command().0);
            host.run(1, entry).expect("a read");
            host.port.memory().read(buffer, &mut bytes).expect("memory");
        }
        assert!(bytes == sector(7).repeat(8), "seed {seed}: what was synced");
    }
}

/// A drive that is switched off properly needs none.
#[test]
fn what_the_capacitors_do_not_last_for_is_zeros_and_not_pinned_and_the_file_says_so() {
    let spec = with_window(&[
        ("power.capacitors", "1"),
        ("power.capacitance_uf", "3"),
        ("power.rail_v", "12"),
        ("power.cutoff_v", "5"),
        ("power.draw_w", "6"),
    ]);
    for end in [End::Killed, End::Off] {
        let disk = Arc::new(SimDisk::default());
        let ram = Ram::new(MEMORY_BYTES as usize);
        let (mut host, _) = start(&disk, &spec, &ram);
        let pin = host.window_call(opcode::PIN, [0, 0, 3 * 8, 0, 2, 1 << 8]);
        host.run(1, pin).expect("pinned");
        let window = host.port.controller.window_mut().expect("a window");
        window.write(2 * PAGE, &sector(7));
        assert!(disk.has(&sector(7)));
        if end == End::Off {
            host.port.controller.switch_off().expect("it is written");
        }
        drop(host);
        let (mut host, back) = start(&disk, &spec, &ram);
        let lost = back.expect("it was there").recovery.window.lost_entries;
        if end == End::Off {
            assert!(lost.is_empty() && info(&mut host, 0).is_some());
            assert!(disk.has(&sector(7)));
            continue;
        }
        assert_eq!((lost.len(), lost[0].length_bytes), (1, PAGE), "{end:?}");
        assert!(info(&mut host, 0).is_none() && !disk.has(&sector(7)));
        // It is lost once.
        drop(host);
        let (_, back) = start(&disk, &spec, &ram);
        assert!(back.expect("there").recovery.window.lost_entries.is_empty());
    }
}

#[test]
fn a_table_of_another_drive_is_refused() {
    let (disk, spec) = (Arc::new(SimDisk::default()), with_window(&[]));
    let ram = Ram::new(MEMORY_BYTES as usize);
    drop(start(&disk, &spec, &ram));
    let smaller = with_window(&[("role.window.size", "32KiB")]);
    let refused = open(&disk, &smaller).err();
    assert!(
        matches!(refused, Some(BackingError::OtherDrive(_))),
        "{refused:?}"
    );
}
