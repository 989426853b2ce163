//! Does a drive with a power-protected write buffer come back from its file with all that it has acknowledged, whatever ends
//! the process or the machine?

#[cfg(target_os = "linux")]
mod attached;
mod driver;
mod kept;
mod lives;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod sigkill;
mod simulated;

use driver::Driver;
use kept::{Asked, Naive, SimDisk};
use lives::{BLOCKS, End, entry_of, live_beside, read_all, small, start, work_on};
use lodger_core::DriveSpec;
use lodger_core::rng::Rng;
use simulated::{Simulated, ram};
use std::sync::Arc;

const PROTECTED: [(&str, &str); 2] = [("role.write_buffer.tier", "pm"), ("tier.pm.size", "1MiB")];

const PROGRAMMED: (&str, &str) = ("role.write_buffer.acknowledge", "programmed");

fn protected(sets: &[(&str, &str)]) -> DriveSpec {
    small(&[&PROTECTED, sets].concat())
}

fn naive(seed: u64) -> Naive {
    let mut naive = Naive::new(BLOCKS, seed);
    naive.is_protected = true;
    naive
}

#[test]
fn what_a_protected_buffer_has_acknowledged_outlives_the_process_and_the_machine() {
    for seed in 0..u64::from(lodger_testing::cases(6)) {
        let disk = Arc::new(SimDisk::default());
        let sets: &[(&str, &str)] = match seed % 3 {
            0 => &[("nand.one_shot", "false")],
            1 => &[("ftl.hot_cold_streams", "true")],
            _ => &[],
        };
        let ends = [End::Killed, End::Crashed, End::Killed, End::Off];
        let lived = live_beside(naive(seed), seed, &protected(sets), &disk, 8, &ends);
        lived.unwrap_or_else(|what| panic!("{what}"));
    }
}

/// The buffer is volatile, and flushes end when what it holds is in the log.
fn logged(sets: &[(&str, &str)]) -> DriveSpec {
    let log = [
        ("role.write_buffer.log", "pm"),
        ("role.write_buffer.log_size", "64KiB"),
        ("tier.pm.size", "1MiB"),
    ];
    small(&[&log, sets].concat())
}

#[test]
fn what_a_log_of_the_buffer_has_promised_outlives_the_process_and_the_machine() {
    for seed in 0..u64::from(lodger_testing::cases(12)) {
        let disk = Arc::new(SimDisk::default());
        let sets: &[(&str, &str)] = match seed % 4 {
            0 => &[("nand.one_shot", "false")],
            1 => &[("ftl.hot_cold_streams", "true")],
            2 => &[("role.write_buffer.log_size", "16KiB")],
            _ => &[],
        };
        let ends = [End::Killed, End::Crashed, End::Killed, End::Off];
        // Few pages, so that older versions go to flash while newer ones are copied.
        let naive = Naive::new(BLOCKS >> (4 * (seed & 1)), seed);
        let lived = live_beside(naive, seed, &logged(sets), &disk, 8, &ends);
        lived.unwrap_or_else(|what| panic!("{what}"));
    }
}

#[test]
fn what_ends_when_it_is_programmed_outlives_the_process_and_the_machine() {
    for seed in 0..u64::from(lodger_testing::cases(6)) {
        let (disk, spec) = (Arc::new(SimDisk::default()), small(&[PROGRAMMED]));
        let ends = [End::Killed, End::Crashed, End::Killed, End::Off];
        let lived = live_beside(naive(seed), seed, &spec, &disk, 8, &ends);
        lived.unwrap_or_else(|what| panic!("{what}"));
    }
}

/// How it is that no cache holds anything that may be lost.
#[derive(Clone, Copy, Debug)]
enum Without {
    /// The buffer is protected.
    Protected,
    /// Writes end when they are programmed.
    Programmed,
    /// The host has switched the cache off.
    SwitchedOff,
}

impl Without {
    const WAYS: [Without; 3] = [
        Without::Protected,
        Without::Programmed,
        Without::SwitchedOff,
    ];

    fn spec(self) -> DriveSpec {
        match self {
            Without::Protected => protected(&[]),
            Without::Programmed => small(&[PROGRAMMED]),
            Without::SwitchedOff => small(&[]),
        }
    }

    /// What the host of a drive that has started does about it.
    fn arrange(self, driver: &mut Driver<Simulated<'_>>) {
        if let Without::SwitchedOff = self {
            driver.admin(9, 0, &[6, 0]).expect("it is switched off");
        }
    }
}

/// What has ended is safe then. Of Dataset Management and Write Zeroes the record was in the drive's memory alone, and the page
/// was there again.
#[test]
fn a_deallocation_that_has_ended_without_a_volatile_cache_outlives_the_machine() {
    const DEALLOCATE: u8 = 9;
    const WRITE_ZEROES: u8 = 8;
    for seed in 0..16 {
        for (way, opcode) in Without::WAYS
            .map(|way| [DEALLOCATE, WRITE_ZEROES].map(|op| (way, op)))
            .concat()
        {
            let (disk, ram) = (Arc::new(SimDisk::default()), ram());
            let spec = way.spec();
            let (mut driver, _) = start(&disk, &spec, &ram);
            way.arrange(&mut driver);
            let (lba, blocks, fua) = (8, 8, false);
            let write = Asked::Write {
                lba,
                blocks,
                version: 1,
                fua,
            };
            let entry = entry_of(&mut driver, 1, &write);
            driver.run(1, entry).expect("it ends well");
            let deallocate = Asked::Deallocate {
                lba,
                blocks,
                version: 2,
            };
            let entry = match opcode {
                DEALLOCATE => entry_of(&mut driver, 1, &deallocate),
                _ => driver.entry(1, WRITE_ZEROES, lba, blocks),
            };
            driver.run(1, entry).expect("it ends well");
            drop(driver);
            disk.crash(&mut Rng::new(seed));
            let (mut driver, _) = start(&disk, &spec, &ram);
            let is_there = read_all(&mut driver).iter().any(|byte| *byte != 0);
            assert!(
                !is_there,
                "{way:?}, opcode {opcode}, seed {seed}: it is there again"
            );
        }
    }
}

/// Zeros in a part of a page are written, with or without whole pages beside them that are deallocated: they are safe, too,
/// and what lay around them stays.
#[test]
fn zeros_that_have_ended_without_a_volatile_cache_outlive_the_machine() {
    const WRITE_ZEROES: u8 = 8;
    const WRITTEN: u32 = 32;
    for way in Without::WAYS {
        let spec = way.spec();
        // Inside a page, to its end, over an edge between two, whole ones with a part before, behind, and both.
        for (lba, blocks) in [(9, 3), (12, 4), (12, 8), (7, 9), (8, 9), (3, 26)] {
            for seed in 0..2 {
                let (disk, ram) = (Arc::new(SimDisk::default()), ram());
                let (mut driver, _) = start(&disk, &spec, &ram);
                way.arrange(&mut driver);
                let write = Asked::Write {
                    lba: 0,
                    blocks: WRITTEN,
                    version: 1,
                    fua: false,
                };
                let entry = entry_of(&mut driver, 1, &write);
                driver.run(1, entry).expect("it ends well");
                let before = read_all(&mut driver);
                let entry = driver.entry(1, WRITE_ZEROES, lba, blocks);
                driver.run(1, entry).expect("it ends well");
                drop(driver);
                disk.crash(&mut Rng::new(seed));
                let (mut driver, _) = start(&disk, &spec, &ram);
                let mut expected = before;
                let size = expected.len() / BLOCKS as usize;
                let zeros = lba as usize * size..(lba as usize + blocks as usize) * size;
                assert!(expected[zeros.clone()].iter().any(|byte| *byte != 0));
                expected[zeros].fill(0);
                assert!(
                    read_all(&mut driver) == expected,
                    "{way:?}, blocks {lba} and {blocks} from there, seed {seed}"
                );
            }
        }
    }
}

/// The nulls: a buffer that is not protected has acknowledged what is lost with it, and a file that does not sync loses with the
/// machine what it was told to keep.
#[test]
fn a_buffer_that_loses_its_pages_and_a_disk_that_does_not_sync_are_found_out() {
    let found = |spec: &DriveSpec, lies: bool, end: End| {
        (0..8).any(|seed| {
            let disk = Arc::new(SimDisk::default());
            let ram = ram();
            drop(start(&disk, spec, &ram));
            if lies {
                disk.lie();
            }
            let live = || live_beside(naive(seed), seed, spec, &disk, 6, &[end]);
            let ended = std::panic::catch_unwind(live);
            ended.is_ok_and(|ended| ended.is_err_and(|what| what.contains("block")))
        })
    };
    assert!(found(&small(&[]), false, End::Killed), "a volatile buffer");
    assert!(found(&protected(&[]), true, End::Crashed), "no sync");
}

#[test]
fn what_the_buffer_held_is_in_it_again_and_a_drive_that_was_switched_off_has_nothing_to_put_back() {
    let (disk, spec, ram) = (Arc::new(SimDisk::default()), protected(&[]), ram());
    let mut naive = naive(5);
    let (mut driver, _) = start(&disk, &spec, &ram);
    work_on(&mut driver, &mut naive, 50, u32::MAX).expect("it works");
    drop(driver);
    let (driver, back) = start(&disk, &spec, &ram);
    let held = back.expect("it was there").recovery.buffer_slots;
    assert!(held > 0, "something was in the buffer");
    // Killed again before anybody has come, it finds as much.
    drop(driver);
    let (mut driver, back) = start(&disk, &spec, &ram);
    assert!(back.expect("it was there").recovery.buffer_slots > 0);
    driver.port.controller.switch_off().expect("it is written");
    drop(driver);
    let (_, back) = start(&disk, &spec, &ram);
    let back = back.expect("it was there");
    assert_eq!((back.was_clean, back.recovery.buffer_slots), (true, 0));
}
