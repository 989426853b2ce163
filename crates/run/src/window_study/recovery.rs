//! What a power failure leaves of the byte window: cuts at many instants, capacitors of any size.

use super::{ENTRY, Figures, pin, store};
use crate::config::{self, RunConfig};
use crate::error::Error;
use crate::hmb::HmbChoice;
use crate::refused;
use lodger_core::controller::dump::{Dump, shortfall};
use lodger_core::device::{Contents, DumpOutcome, Source};
use lodger_core::ftl::Owned;
use lodger_core::ids::{BufferSlot, Lpn, Ppn};
use lodger_core::memory::WindowInCut;
use lodger_core::rng::Rng;
use lodger_core::spec::{SLOT_BYTES, WindowSpec};
use lodger_core::{EntryId, Host, WindowCall};
use std::collections::HashMap;

const LINE_BYTES: usize = 64;

/// For every byte of the window, the tag of the call that stored it. Nothing else is followed.
struct Marks {
    window: Vec<u32>,
    packets: HashMap<u32, [u32; LINE_BYTES]>,
}

fn bytes_of(mask: u64) -> impl Iterator<Item = usize> {
    (0..LINE_BYTES).filter(move |byte| mask >> byte & 1 != 0)
}

impl Contents for Marks {
    type Payload = ();

    fn payload(_: u32) {}
    fn arrive(&mut self, (): &mut (), _: Lpn, _: BufferSlot, _: u8) {}
    fn merge(&mut self, _: Lpn, _: BufferSlot, _: Source, _: u8) {}
    fn absorb(&mut self, _: BufferSlot, _: BufferSlot, _: u8) {}
    fn program(&mut self, _: BufferSlot, _: Ppn) {}
    fn relocate(&mut self, _: Owned, _: Ppn, _: Ppn) {}
    fn read(&mut self, (): &mut (), _: Lpn, _: Source, _: u8) {}
    fn combine(&mut self, tag: u32, packet: u32, _: u32, mask: u64) {
        let held = self.packets.entry(packet).or_insert([0; LINE_BYTES]);
        bytes_of(mask).for_each(|byte| held[byte] = tag);
    }
    fn deliver(&mut self, packet: u32, line: u32, mask: u64) {
        let Some(held) = self.packets.get(&packet) else {
            return;
        };
        let start = line as usize * LINE_BYTES;
        bytes_of(mask).for_each(|byte| self.window[start + byte] = held[byte]);
    }
    fn lose(&mut self, offset_bytes: u64, length_bytes: u64) {
        self.window[offset_bytes as usize..][..length_bytes as usize].fill(0);
    }
}

fn window(config: &RunConfig) -> Result<&WindowSpec, Error> {
    let spec = &config.drive.parsed.spec;
    let window = spec.roles.window.as_ref();
    window.ok_or_else(|| {
        Error::input(format!("`{}` has no byte window", spec.name))
            .hint("`--drive 2b-ssd` has one; so does a drive file with `[role.window]`")
    })
}

fn host(config: &RunConfig, window: &WindowSpec) -> Result<Host<Marks>, Error> {
    let marks = Marks {
        window: vec![0; window.bytes as usize],
        packets: HashMap::new(),
    };
    let config = RunConfig {
        hmb: HmbChoice::Off,
        ..config.clone()
    };
    Ok(config::make(&config, marks)?.host)
}

fn call(host: &mut Host<Marks>, tag: u32, call: WindowCall) -> Result<(), Error> {
    host.call(tag, call);
    let mut done = Vec::new();
    while done.is_empty() {
        host.advance_to_completion(u64::MAX, &mut Vec::new());
        host.take_window_completions(&mut done);
    }
    match done[0].result {
        Ok(_) => Ok(()),
        Err(error) => Err(refused::call(call, error, host.spec())),
    }
}

/// Cuts power at `cuts` instants, drawn at random, while a CPU stores `bytes` over bytes that are
/// durable, syncs, and stores on. Figures: `cuts`; `synced_lost_bytes`, durable bytes that were older
/// afterwards; `torn_lines`, whole lines of which only a part had arrived; `unsynced_kept_share`, of
/// the bytes not yet durable, those that were there all the same; `unrestored`, cuts after which the
/// window did not come back whole.
///
/// # Errors
/// If the drive has no window or `bytes` does not fit in half of it.
pub fn cuts(config: &RunConfig, bytes: u64, cuts: u32) -> Result<Figures, Error> {
    let window = window(config)?;
    let room = bytes.next_multiple_of(SLOT_BYTES);
    if bytes == 0 || room > window.bytes / 2 {
        let message = format!("sizes must lie between 1 and {} bytes", window.bytes / 2);
        return Err(Error::input(message));
    }
    let sync = WindowCall::Sync { entry: ENTRY };
    let mut rng = Rng::new(config.seed);
    // What it is to come back as: from flash, or because its memory does without power.
    let tiers = &config.drive.parsed.spec.tiers;
    let whole = match tiers.window_in_cut(window.tier) {
        WindowInCut::Kept => DumpOutcome::Kept,
        WindowInCut::Saved | WindowInCut::Gone => DumpOutcome::Restored,
    };
    // As long as all of it takes.
    let (mut span_ps, mut figures) = (0, [0u64; 5]);
    for cut in 0..=cuts {
        let mut host = host(config, window)?;
        call(&mut host, 0, pin(2 * room))?;
        call(&mut host, 1, store(0, 2 * room))?;
        call(&mut host, 1, sync)?;
        let start_ps = host.now_ps();
        host.call(2, store(0, bytes));
        host.call(2, sync);
        host.call(3, store(room, bytes));
        if cut == 0 {
            // The first time nothing is cut.
            while let Some(at_ps) = host.next_time() {
                host.advance(at_ps, &mut Vec::new());
            }
            span_ps = host.now_ps() - start_ps;
            continue;
        }
        let at_ps = start_ps + u64::from(rng.below(span_ps.min(1 << 31) as u32));
        host.advance(at_ps, &mut Vec::new());
        let mut done = Vec::new();
        host.take_window_completions(&mut done);
        let synced = done.len() > 1;
        let outcome = host.power_cut().window.outcome;
        figures[0] += u64::from(outcome != whole);
        let held = &host.drive.contents.window;
        let first = &held[..bytes as usize];
        let second = &held[room as usize..][..bytes as usize];
        if synced {
            figures[1] += first.iter().filter(|tag| **tag != 2).count() as u64;
        }
        let older = held[..2 * room as usize].iter().filter(|tag| **tag == 0);
        figures[1] += older.count() as u64;
        for (part, tag) in [(first, 2), (second, 3)] {
            let lines = part.chunks_exact(LINE_BYTES);
            let torn = lines.filter(|line| line.iter().any(|byte| *byte != line[0]));
            figures[2] += torn.count() as u64;
            if tag == 3 || !synced {
                figures[3] += part.iter().filter(|byte| **byte == tag).count() as u64;
                figures[4] += part.len() as u64;
            }
        }
    }
    Ok(vec![
        ("cuts", f64::from(cuts)),
        ("unrestored", figures[0] as f64),
        ("synced_lost_bytes", figures[1] as f64),
        ("torn_lines", figures[2] as f64),
        ("unsynced_kept_share", figures[3] as f64 / figures[4] as f64),
    ])
}

/// Fills the whole window with as many entries as there can be, syncs them and cuts power. Figures:
/// `needed_ms` and `needed_mj`, what a dump takes; `hold_up_ms` and `usable_mj`, what the capacitors
/// give; `saved_share`, of the dump's program operations; `entries` and `entries_back`;
/// `unnoticed`, entries that came back with other bytes, or did not come back and are not reported;
/// `warned`, whether the check at the start says so; `restore_ms`.
///
/// # Errors
/// If the drive has no window or says nothing of its capacitors.
pub fn energy(config: &RunConfig) -> Result<Figures, Error> {
    let window = window(config)?;
    let spec = &config.drive.parsed.spec;
    let Some(power) = &spec.power else {
        return Err(Error::input("the drive has no table `[power]`"));
    };
    let entries = u64::from(window.entries);
    let share = window.bytes / entries / SLOT_BYTES * SLOT_BYTES;
    if share == 0 {
        return Err(Error::input(
            "the window has less than 4 KiB for each entry",
        ));
    }
    let mut host = host(config, window)?;
    for entry in 0..window.entries {
        let offset = u64::from(entry) * share;
        let entry = EntryId(entry);
        let range = WindowCall::Pin {
            entry,
            window_offset_bytes: offset,
            drive_offset_bytes: offset,
            length_bytes: share,
        };
        call(&mut host, 0, range)?;
        call(&mut host, 1 + entry.0, store(offset, share))?;
        call(&mut host, 0, WindowCall::Sync { entry })?;
    }
    let recovery = host.power_cut().window;
    let back: Vec<u32> = host
        .drive
        .window_entries()
        .map(|entry| entry.entry.0)
        .collect();
    let unnoticed = (0..window.entries).filter(|entry| {
        let held = &host.drive.contents.window[(u64::from(*entry) * share) as usize..];
        let whole = held[..share as usize].iter().all(|tag| *tag == 1 + entry);
        let lost = recovery.lost_entries.iter();
        let reported = lost.filter(|lost| lost.entry.0 == *entry).count() == 1;
        back.contains(entry) != whole || reported == whole
    });
    let needed_ps = Dump::new(spec, entries * share / SLOT_BYTES).end_ps();
    let ms = |ps: u64| ps as f64 / 1e9;
    Ok(vec![
        ("needed_ms", ms(needed_ps)),
        ("needed_mj", ms(needed_ps) * power.draw_w),
        ("hold_up_ms", ms(power.hold_up_ps())),
        ("usable_mj", power.usable_j() * 1e3),
        (
            "saved_share",
            recovery.saved_programs as f64 / recovery.dump_programs as f64,
        ),
        ("entries", entries as f64),
        ("entries_back", back.len() as f64),
        ("unnoticed", unnoticed.count() as f64),
        ("warned", f64::from(u8::from(shortfall(spec).is_some()))),
        ("restore_ms", ms(recovery.restore_ps)),
    ])
}
