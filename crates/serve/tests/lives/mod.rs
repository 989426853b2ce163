//! Lives of a drive in a file, one after the other, each ended by something.
#![allow(dead_code)]

use super::driver::{Driver, Port};
use super::kept::{Asked, Naive, SimDisk, block_bytes};
use super::simulated::{Simulated, ram, spec};
use lodger_core::DriveSpec;
use lodger_core::rng::Rng;
use lodger_serve::backing::{Backing, BackingError};
use lodger_serve::controller::ComeBack;
use lodger_wire::entry::SubmissionEntry;
use lodger_wire::memory::{GuestMemory, Ram};
use std::collections::HashMap;
use std::sync::Arc;

/// Blocks of 512 bytes that the drive has: few, so that they are collected.
pub const BLOCKS: u64 = 24 << 11;
/// Seed that [`Simulated`] gives its drives.
pub const SEED: u64 = 1;
pub const DEPTH: usize = 12;

pub fn small(sets: &[(&str, &str)]) -> DriveSpec {
    let small = [
        ("capacity", "24MiB"),
        ("nand.pages_per_block", "24"),
        ("ftl.slc_superblocks", "0"),
        ("ftl.overprovisioning", "0.5"),
        ("role.write_buffer.size", "256KiB"),
        ("role.map.size.sram", "8KiB"),
    ];
    spec(&[&small, sets].concat())
}

/// A small drive with a byte window of 16 pages.
pub fn with_window(sets: &[(&str, &str)]) -> DriveSpec {
    let window = [
        ("tier.pm.size", "1MiB"),
        ("role.window.size", "64KiB"),
        ("role.window.entries", "4"),
        ("role.window.call", "5us"),
        ("role.window.page", "1us"),
        ("role.window.read_dma", "40us"),
    ];
    small(&[&window, sets].concat())
}

pub fn open(disk: &Arc<SimDisk>, spec: &DriveSpec) -> Result<Backing, BackingError> {
    Backing::on(Arc::clone(disk) as _, spec, SEED, false, &mut |_, _| {})
}

/// A drive in a file, with queues.
pub fn start<'a>(
    disk: &Arc<SimDisk>,
    spec: &DriveSpec,
    ram: &'a Ram,
) -> (Driver<Simulated<'a>>, Option<ComeBack>) {
    let mut driver = Simulated::driver(spec, ram);
    let backing = open(disk, spec).expect("a backing");
    let controller = &mut driver.port.controller;
    let back = controller.keep_in(backing).expect("the drive is in it");
    driver.port.now_ps = driver.port.controller.now_ps();
    driver.enable();
    driver.create_queues(2);
    (driver, back)
}

pub fn entry_of(driver: &mut Driver<impl Port>, queue: usize, asked: &Asked) -> SubmissionEntry {
    let (opcode, lba, blocks) = match asked {
        Asked::Flush(_) => (0, 0, 0),
        Asked::Write { lba, blocks, .. } => (1, *lba, *blocks),
        Asked::Read { lba, blocks } => (2, *lba, *blocks),
        Asked::Deallocate { lba, blocks, .. } => (9, *lba, *blocks),
    };
    let mut entry = driver.entry(queue, opcode, lba, blocks);
    let buffer = driver.io[queue - 1].buffer(entry.command().0);
    let data = match asked {
        Asked::Write { version, fua, .. } => {
            entry = entry.with_dword(12, entry.dword(12) | u32::from(*fua) << 30);
            let blocks = lba..lba + u64::from(blocks);
            blocks.flat_map(|lba| block_bytes(lba, *version)).collect()
        }
        Asked::Deallocate { .. } => {
            entry = entry.with_dword(10, 0).with_dword(11, 4).with_dword(12, 0);
            [&[0; 4][..], &blocks.to_le_bytes(), &lba.to_le_bytes()].concat()
        }
        _ => Vec::new(),
    };
    driver.port.memory().write(buffer, &data).expect("memory");
    entry
}

/// Works for so many commands, all of which end.
pub fn work(
    driver: &mut Driver<impl Port>,
    naive: &mut Naive,
    commands: u32,
) -> Result<(), String> {
    work_on(driver, naive, commands, u32::MAX)?;
    Ok(())
}

/// Commands under way, by queue and number.
pub type UnderWay = HashMap<(usize, u16), Asked>;

/// Takes what has come to its end.
pub fn take(
    driver: &mut Driver<impl Port>,
    naive: &mut Naive,
    under_way: &mut UnderWay,
) -> Result<(), String> {
    for queue in 1..=2 {
        for (command, outcome) in driver.reap(queue) {
            let asked = under_way.remove(&(queue, command)).expect("asked for");
            assert!(outcome.status.is_success(), "{asked:?}: {outcome:?}");
            let mut read = vec![0; 64 << 10];
            if let Asked::Read { blocks, .. } = &asked {
                read.truncate(*blocks as usize * 512);
                let buffer = driver.io[queue - 1].buffer(command);
                let memory = driver.port.memory();
                memory.read(buffer, &mut read).expect("memory");
            }
            naive.complete(&asked, &read)?;
        }
    }
    Ok(())
}

/// Works for so many commands, and then on for a while; what is under way then stays so, and is returned.
pub fn work_on(
    driver: &mut Driver<impl Port>,
    naive: &mut Naive,
    commands: u32,
    mut rest: u32,
) -> Result<UnderWay, String> {
    let mut under_way = UnderWay::new();
    let mut left = commands;
    loop {
        while left > 0 && under_way.len() < DEPTH {
            left -= 1;
            let Some(asked) = naive.choose() else {
                continue;
            };
            let queue = 1 + naive.rng.below(2) as usize;
            let entry = entry_of(driver, queue, &asked);
            naive.submit(&asked);
            under_way.insert((queue, entry.command().0), asked);
            driver.submit(queue, entry);
        }
        take(driver, naive, &mut under_way)?;
        if left == 0 {
            rest = rest.saturating_sub(1);
            if rest == 0 || under_way.is_empty() {
                return Ok(under_way);
            }
        }
        assert!(driver.port.wait(), "stuck");
    }
}

pub fn read_all(driver: &mut Driver<impl Port>) -> Vec<u8> {
    let mut all = Vec::new();
    for lba in (0..BLOCKS).step_by(128) {
        let entry = driver.entry(1, 2, lba, 128);
        let buffer = driver.io[0].buffer(entry.command().0);
        driver.run(1, entry).expect("it can be read");
        let mut part = vec![0; 64 << 10];
        driver
            .port
            .memory()
            .read(buffer, &mut part)
            .expect("memory");
        all.extend(part);
    }
    all
}

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The process is killed: what it has written is there.
    Killed,
    /// The machine stops.
    Crashed,
    /// The drive is switched off.
    Off,
}

/// Several lives of a drive, one after the other. Returns how many blocks were lost, as they may be.
pub fn live(
    seed: u64,
    spec: &DriveSpec,
    disk: &Arc<SimDisk>,
    lives: u32,
    ends: &[End],
) -> Result<u64, String> {
    live_beside(Naive::new(BLOCKS, seed), seed, spec, disk, lives, ends)
}

/// The same, beside that naive drive.
pub fn live_beside(
    mut naive: Naive,
    seed: u64,
    spec: &DriveSpec,
    disk: &Arc<SimDisk>,
    lives: u32,
    ends: &[End],
) -> Result<u64, String> {
    let mut rng = Rng::new(seed ^ 77);
    let mut lost = 0;
    let mut end = End::Off;
    for life in 0..=lives {
        let ram = ram();
        let (mut driver, back) = start(disk, spec, &ram);
        if let Some(back) = back {
            if life > 0 {
                assert_eq!(back.was_clean, end == End::Off, "{end:?}");
            }
            let all = read_all(&mut driver);
            let holds = |lba: u64| {
                all[lba as usize * 512..][..512]
                    .try_into()
                    .expect("a block")
            };
            let gone = naive.restart(holds);
            lost += gone.map_err(|what| format!("seed {seed}, life {life}, {end:?}: {what}"))?;
            driver.port.controller.device().ftl().check();
        }
        let (commands, rest) = (20 + rng.below(400), rng.below(60));
        work_on(&mut driver, &mut naive, commands, rest)?;
        end = ends[rng.below(ends.len() as u32) as usize];
        if end == End::Off {
            driver.port.controller.switch_off().expect("it is written");
        }
        drop(driver);
        if end != End::Killed {
            // Nothing that was switched off is lost by it.
            disk.crash(&mut rng);
        }
    }
    Ok(lost)
}
