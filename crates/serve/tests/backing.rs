//! Does a drive in a file come back with what was flushed, and as it was if it was switched off, whatever ends the
//! process or the machine? In simulated time, on a file in memory that loses what was not synced.

mod driver;
mod kept;
mod lives;
mod simulated;

use driver::{Driver, Port, number};
use kept::{Asked, Naive, SimDisk, ZEROS, block_bytes};
use lives::*;
use lodger_core::DriveSpec;
use lodger_core::rng::Rng;
use lodger_core::time::RUN_PS_MAX;
use lodger_serve::backing::{Backing, BackingError};
use lodger_wire::entry::SubmissionEntry;
use lodger_wire::memory::{GuestMemory, Ram};
use lodger_wire::status::Status;
use lodger_wire::{CommandId, NamespaceId};
use simulated::{Simulated, ram};
use std::sync::Arc;

#[test]
fn what_was_flushed_outlives_the_process_and_the_machine() {
    let mut lost = 0;
    for seed in 0..u64::from(lodger_testing::cases(8)) {
        let disk = Arc::new(SimDisk::default());
        let sets: &[(&str, &str)] = match seed % 4 {
            0 => &[("nand.one_shot", "false")],
            1 => &[("ftl.slc_superblocks", "3")],
            2 => &[("role.write_buffer.acknowledge", "programmed")],
            _ => &[("ftl.hot_cold_streams", "true")],
        };
        let ends = [End::Killed, End::Crashed, End::Crashed, End::Off];
        lost += live(seed, &small(sets), &disk, 12, &ends).unwrap_or_else(|what| panic!("{what}"));
        assert!(disk.syncs() > 100, "{}", disk.syncs());
    }
    assert!(lost > 1000, "a flush would be for nothing: {lost}");
}

/// A naive drive that took two deallocations for one called a block safe that nobody had flushed, about once in sixteen
/// runs against a command that is killed.
#[test]
fn a_flush_makes_nothing_safe_that_came_after_it() {
    let mut naive = Naive::new(BLOCKS, 1);
    let (lba, blocks) = (8, 8);
    let deallocate = |version| Asked::Deallocate {
        lba,
        blocks,
        version,
    };
    let write = Asked::Write {
        lba,
        blocks,
        version: 2,
        fua: false,
    };
    naive.submit(&deallocate(1 | ZEROS));
    let flush = Asked::Flush((lba..lba + 8).map(|lba| (lba, 1 | ZEROS)).collect());
    naive.submit(&write);
    naive.submit(&deallocate(3 | ZEROS));
    naive.complete(&flush, &[]).expect("it reads nothing");
    let holds = |at: u64| block_bytes(at, if at / 8 == 1 { 2 } else { ZEROS });
    assert_eq!(naive.restart(holds), Ok(8), "the last one may be lost");
}

#[test]
fn a_disk_that_does_not_sync_is_found_out() {
    let found = (0..8).any(|seed| {
        let disk = Arc::new(SimDisk::default());
        let ram = ram();
        // A drive that was ready once.
        drop(start(&disk, &small(&[]), &ram));
        disk.lie();
        let live = || live(seed, &small(&[]), &disk, 6, &[End::Crashed]);
        let ended = std::panic::catch_unwind(live);
        ended.is_ok_and(|ended| ended.is_err_and(|what| what.contains("block")))
    });
    assert!(found, "the test sees nothing");
}

#[test]
fn a_drive_that_was_switched_off_is_as_it_was() {
    let (disk, spec) = (Arc::new(SimDisk::default()), small(&[]));
    let mut naive = Naive::new(BLOCKS, 4);
    let first_ram = ram();
    let (mut driver, back) = start(&disk, &spec, &first_ram);
    assert!(back.is_none());
    work(&mut driver, &mut naive, 4000).expect("it works");
    // A warning at 42 degrees, saved; and one at 43 degrees, not saved.
    let saved = 1 << 31 | 4;
    driver.admin(9, 0, &[saved, 315]).expect("a saved feature");
    driver.admin(9, 0, &[4, 316]).expect("a feature");
    driver.admin(0x84, 0, &[4]).expect("a crypto erase");
    while driver.log(0x81, 512)[2] & 7 == 2 {
        assert!(driver.port.wait());
    }
    let mut naive = Naive::new(BLOCKS, 5);
    work(&mut driver, &mut naive, 3000).expect("it works");
    while driver.port.wait() {} // What is being erased then is erased anew.
    driver.port.controller.switch_off().expect("it is written");
    let device = driver.port.controller.device();
    let counters = device.counters();
    let worn = |device: &lodger_core::Device<_, _>| -> Vec<u32> {
        let blocks = device.ftl().blocks.all().iter();
        blocks.map(|block| block.erases).collect()
    };
    let wear = worn(device);
    let statistics = driver.port.controller.statistics();
    drop(driver);
    assert!(wear.iter().sum::<u32>() > 20, "it is worn: {wear:?}");
    let ram = ram();
    let (mut driver, back) = start(&disk, &spec, &ram);
    assert!(back.is_some_and(|back| back.was_clean && back.torn_pages == 0));
    let device = driver.port.controller.device();
    assert_eq!(worn(device), wear);
    let now = device.counters();
    assert_eq!(now.programs_by_cause[0], counters.programs_by_cause[0]);
    assert_eq!(now.host_written_bytes, counters.host_written_bytes);
    assert!([0, 4].contains(&(now.erases - counters.erases)));
    assert_eq!(driver.admin(10, 0, &[4]), Ok(315));
    assert_eq!(driver.log(0x81, 512)[2] & 7, 1, "it was sanitized");
    let health = driver.log(2, 512);
    let number = |at: usize| u64::from_le_bytes(health[at..at + 8].try_into().expect("8 bytes"));
    let units = |bytes: u64| bytes.div_ceil(512_000);
    assert_eq!(number(48), units(statistics.written_bytes));
    assert_eq!(number(80), statistics.writes);
    assert_eq!(
        (number(112), number(144)),
        (2, 0),
        "power cycles, unsafe shutdowns"
    );
    let all = read_all(&mut driver);
    let holds = |lba: u64| {
        all[lba as usize * 512..][..512]
            .try_into()
            .expect("a block")
    };
    assert_eq!(naive.restart(holds), Ok(0), "nothing is lost");
    // Killed: it counts that.
    drop(driver);
    let third_ram = Ram::new(driver::MEMORY_BYTES as usize);
    let (mut driver, _) = start(&disk, &spec, &third_ram);
    let health = driver.log(2, 512);
    let unsafe_before = health[144];
    assert_eq!(health[112], 3);
    work(&mut driver, &mut naive, 300).expect("it works");
    drop(driver);
    let (mut driver, _) = start(&disk, &spec, &third_ram);
    let health = driver.log(2, 512);
    assert_eq!((health[112], health[144]), (4, unsafe_before + 1));
}

#[test]
fn a_host_that_shuts_down_leaves_a_drive_that_is_switched_off() {
    let (disk, spec) = (Arc::new(SimDisk::default()), small(&[]));
    let mut naive = Naive::new(BLOCKS, 6);
    let ram = ram();
    let (mut driver, _) = start(&disk, &spec, &ram);
    work(&mut driver, &mut naive, 500).expect("it works");
    driver.shutdown();
    drop(driver);
    disk.crash(&mut Rng::new(3));
    let (mut driver, back) = start(&disk, &spec, &ram);
    assert!(back.is_some_and(|back| back.was_clean));
    let all = read_all(&mut driver);
    let holds = |lba: u64| {
        all[lba as usize * 512..][..512]
            .try_into()
            .expect("a block")
    };
    naive.restart(holds).expect("what was written is there");
}

/// What it took after that, and lost, was not counted: the file said for some seconds that the drive was switched off.
#[test]
fn a_drive_that_is_switched_on_again_and_killed_was_not_switched_off() {
    for is_on in [false, true] {
        let (disk, spec) = (Arc::new(SimDisk::default()), small(&[]));
        let ram = ram();
        let (mut driver, _) = start(&disk, &spec, &ram);
        driver.shutdown();
        if is_on {
            driver.enable();
        }
        drop(driver);
        let (mut driver, back) = start(&disk, &spec, &ram);
        assert_eq!(back.map(|back| back.was_clean), Some(!is_on));
        let health = driver.log(2, 512);
        let counted = (health[112], health[144]);
        assert_eq!(counted, (2, is_on.into()), "power cycles, unsafe shutdowns");
    }
}

/// Its clock stood still for good.
#[test]
fn a_drive_whose_time_is_over_comes_back_with_its_data_and_a_new_clock() {
    let (disk, spec) = (Arc::new(SimDisk::default()), small(&[]));
    let mut naive = Naive::new(BLOCKS, 6);
    let ram = ram();
    let (mut driver, _) = start(&disk, &spec, &ram);
    work(&mut driver, &mut naive, 100).expect("it works");
    let controller = &mut driver.port.controller;
    controller.poll(RUN_PS_MAX);
    controller.switch_off().expect("it is written");
    drop(driver);
    let (mut driver, back) = start(&disk, &spec, &ram);
    assert!(back.is_some_and(|back| back.was_clean));
    assert!(driver.port.controller.now_ps() < RUN_PS_MAX / 1000);
    let all = read_all(&mut driver);
    let holds = |lba: u64| {
        all[lba as usize * 512..][..512]
            .try_into()
            .expect("a block")
    };
    assert_eq!(naive.restart(holds), Ok(0), "nothing is lost");
}

const SECRET: &[u8; 32] = b"nobody else must ever read this.";

/// Writes a secret in many places, old and new, flushed.
fn write_secrets(driver: &mut Driver<Simulated<'_>>) {
    for round in 0..3 {
        for lba in (0..4000).step_by(8) {
            let entry = driver.entry(1, 1, lba, 8);
            let buffer = driver.io[0].buffer(entry.command().0);
            let data = SECRET.repeat(128);
            driver.port.memory().write(buffer, &data).expect("memory");
            driver.run(1, entry).expect("a write");
        }
        assert!(round < 3);
    }
    let flush = driver.entry(1, 0, 0, 0);
    driver.run(1, flush).expect("a flush");
}

#[test]
fn what_is_sanitized_or_formatted_stands_nowhere_in_the_file_even_if_it_was_interrupted() {
    let spec = small(&[]);
    // Sanitize by erasing blocks or keys; format with user data or keys erased.
    for (opcode, dword10) in [(0x84, 2), (0x84, 4), (0x80, 1 << 9), (0x80, 2 << 9)] {
        for waits in [None, Some(0), Some(1), Some(3), Some(12)] {
            let disk = Arc::new(SimDisk::default());
            let ram = ram();
            let (mut driver, _) = start(&disk, &spec, &ram);
            write_secrets(&mut driver);
            assert!(disk.has(SECRET), "it is in the file");
            let command = CommandId(driver.free_command(0));
            let entry = SubmissionEntry::new(opcode, command, NamespaceId(1));
            driver.submit(0, entry.with_dword(10, dword10));
            let mut is_heard = false;
            while waits.is_none() && !is_heard {
                assert!(driver.port.wait());
                is_heard = !driver.reap(0).is_empty();
            }
            if let Some(waits) = waits {
                for _ in 0..=waits {
                    driver.port.wait();
                    is_heard |= !driver.reap(0).is_empty();
                }
                drop(driver);
                disk.crash(&mut Rng::new(waits));
                (driver, _) = start(&disk, &spec, &ram);
            }
            // A sanitize that was told of, or began, goes on; a format that was not may not have begun.
            let goes_on = |driver: &mut Driver<Simulated<'_>>| {
                let entry = driver.entry(1, 2, 0, 8);
                driver.run(1, entry).is_err()
            };
            while goes_on(&mut driver) {
                assert!(driver.port.wait());
            }
            let sanitized = driver.log(0x81, 512)[2] & 7;
            let is_erased = waits.is_none() || is_heard || sanitized == 1;
            let what = format!("{opcode:x} {dword10:x} after {waits:?}");
            assert!(!(is_erased && disk.has(SECRET)), "{what}");
            let all = read_all(&mut driver);
            let is_there = all.windows(32).any(|window| window == SECRET);
            assert!(!(is_erased && is_there), "{what}");
        }
    }
}

#[test]
fn a_full_disk_fails_writes_and_flushes_and_nothing_else_and_they_go_on_when_there_is_room() {
    let (disk, spec) = (Arc::new(SimDisk::default()), small(&[]));
    let ram = ram();
    let (mut driver, _) = start(&disk, &spec, &ram);
    let write = |driver: &mut Driver<Simulated<'_>>, lba, version| {
        let asked = Asked::Write {
            lba,
            blocks: 64,
            version,
            fua: false,
        };
        let entry = entry_of(driver, 1, &asked);
        driver.run(1, entry)
    };
    for lba in (0..BLOCKS / 2).step_by(64) {
        write(&mut driver, lba, 1).expect("there is room");
    }
    disk.set_room(Some(20));
    let mut acknowledged = Vec::new();
    let mut failed = 0;
    for lba in (0..BLOCKS / 2).step_by(64) {
        match write(&mut driver, lba, 2) {
            Ok(_) => acknowledged.push(lba),
            Err(status) => {
                assert!(status.is(Status::WRITE_FAULT), "{status:?}");
                failed += 1;
            }
        }
    }
    assert!(!acknowledged.is_empty() && failed > 100, "{failed}");
    assert!(
        driver.port.controller.plight().cannot_store,
        "before any flush"
    );
    let flush = driver.entry(1, 0, 0, 0);
    let flushed = driver.run(1, flush);
    assert!(flushed.is_err_and(|status| status.is(Status::WRITE_FAULT)));
    // It is known of the flush, too, which was not counted, and of a drive that said that it was well.
    assert_eq!(number(&driver.log(1, 64), 0, 8), failed + 1);
    assert_eq!(driver.log(1, 64)[31], 0, "a flush");
    assert_eq!(driver.log(2, 512)[0], 1 << 2);
    assert!(driver.port.controller.plight().cannot_store);
    let check = |driver: &mut Driver<Simulated<'_>>, acknowledged: &[u64]| {
        let all = read_all(driver);
        for lba in 0..BLOCKS / 2 {
            let version = 1 + u32::from(acknowledged.contains(&(lba - lba % 64)));
            assert_eq!(all[lba as usize * 512..][..512], block_bytes(lba, version));
        }
    };
    check(&mut driver, &acknowledged);
    disk.set_room(None);
    write(&mut driver, BLOCKS / 2, 3).expect("there is room again");
    assert!(
        !driver.port.controller.plight().cannot_store,
        "before any flush"
    );
    let flush = driver.entry(1, 0, 0, 0);
    driver.run(1, flush).expect("what had to wait is there");
    assert!(!driver.port.controller.plight().cannot_store);
    assert_eq!(driver.log(2, 512)[0], 0);
    check(&mut driver, &acknowledged);
    drop(driver);
    disk.crash(&mut Rng::new(1));
    let (mut driver, _) = start(&disk, &spec, &ram);
    check(&mut driver, &acknowledged);
}

#[test]
fn after_a_sync_that_failed_nothing_is_said_to_be_safe() {
    let (disk, spec) = (Arc::new(SimDisk::default()), small(&[]));
    let ram = ram();
    let (mut driver, _) = start(&disk, &spec, &ram);
    let mut naive = Naive::new(BLOCKS, 2);
    work(&mut driver, &mut naive, 100).expect("it works");
    disk.fail_syncs(true);
    for _ in 0..2 {
        let flush = driver.entry(1, 0, 0, 0);
        let flushed = driver.run(1, flush);
        assert!(flushed.is_err_and(|status| status.is(Status::WRITE_FAULT)));
        // What the kernel could not write it may have forgotten.
        disk.fail_syncs(false);
    }
    read_all(&mut driver);
    assert!(driver.port.controller.switch_off().is_err());
}

#[test]
fn what_is_no_backing_of_this_drive_is_refused_and_left_as_it_was() {
    let (disk, spec) = (Arc::new(SimDisk::default()), small(&[]));
    let ram = ram();
    let (mut driver, _) = start(&disk, &spec, &ram);
    work(&mut driver, &mut Naive::new(BLOCKS, 2), 2000).expect("it works");
    driver.port.controller.switch_off().expect("it is written");
    drop(driver);
    let refused = |disk: &Arc<SimDisk>, spec: &DriveSpec, seed| {
        let before = disk.pages();
        let backing = Backing::on(Arc::clone(disk) as _, spec, seed, false, &mut |_, _| {});
        assert_eq!(disk.pages(), before, "it is as it was");
        backing.err()
    };
    let other = |name: &str, value: &str| small(&[(name, value)]);
    for spec in [
        other("capacity", "32MiB"),
        other("nand.pages_per_block", "48"),
        other("nand.read", "99us"),
        other("ftl.slc_superblocks", "3"),
        small(&[("role.write_buffer.log", "pm"), ("tier.pm.size", "1MiB")]),
    ] {
        let error = refused(&disk, &spec, SEED);
        assert!(
            matches!(error, Some(BackingError::OtherDrive(_))),
            "{error:?}"
        );
    }
    let error = refused(&disk, &spec, SEED + 1);
    assert!(
        matches!(error, Some(BackingError::OtherDrive(_))),
        "{error:?}"
    );
    let shorter = Arc::new(disk.copy());
    shorter.cut_off(40 << 20);
    let error = refused(&shorter, &spec, SEED);
    assert!(matches!(error, Some(BackingError::Damaged(_))), "{error:?}");
    // The first page alone was taken for a drive that was being made.
    for bytes in [512, 4096, 4097] {
        let shorter = Arc::new(disk.copy());
        shorter.cut_off(bytes);
        shorter.lose(bytes, 8 << 30);
        let error = refused(&shorter, &spec, SEED);
        assert!(matches!(error, Some(BackingError::Damaged(_))), "{error:?}");
    }
    let newer = Arc::new(disk.copy());
    newer.flip(24, 1);
    assert!(matches!(
        refused(&newer, &spec, SEED),
        Some(BackingError::Form(3))
    ));
    let foreign = Arc::new(disk.copy());
    foreign.flip(3, 1);
    assert!(matches!(
        refused(&foreign, &spec, SEED),
        Some(BackingError::Foreign)
    ));
}

/// What a kill leaves of a file in the middle of a write of a drive that starts, after so many others.
fn killed_while_starting(disk: &SimDisk, spec: &DriveSpec, after: u64) -> Arc<SimDisk> {
    let (cut, ram) = (Arc::new(disk.copy()), ram());
    cut.cut_off_write(after);
    let mut driver = Simulated::driver(spec, &ram);
    if let Ok(backing) = open(&cut, spec) {
        let _ = driver.port.controller.keep_in(backing);
    }
    // As it is now: the copy has room, and nothing is cut off.
    Arc::new(cut.copy())
}

/// What the drive keeps beside its flash is written as it comes back, and the process was killed meanwhile: the drive was refused
/// for ever, as a file that was left properly and is damaged.
#[test]
fn a_kill_in_the_middle_of_any_write_after_a_proper_end_leaves_the_drive() {
    let (disk, spec) = (Arc::new(SimDisk::default()), small(&[]));
    let ram = ram();
    let (mut driver, _) = start(&disk, &spec, &ram);
    let mut naive = Naive::new(BLOCKS, 3);
    work(&mut driver, &mut naive, 300).expect("it works");
    driver.port.controller.switch_off().expect("it is written");
    let whole = {
        drop(driver);
        read_all(&mut start(&Arc::new(disk.copy()), &spec, &ram).0)
    };
    for after in 0..12 {
        let left = killed_while_starting(&disk, &spec, after);
        let (mut driver, _) = start(&left, &spec, &ram);
        assert!(
            read_all(&mut driver) == whole,
            "cut off after {after} writes"
        );
    }
}

/// What lay in the file was counted as a killed drive started, and the count held though none of it was synced yet: the drive was
/// refused for ever where the machine stopped then.
#[test]
fn a_machine_that_stops_while_a_killed_drive_starts_leaves_the_drive() {
    let spec = small(&[]);
    let ram = ram();
    for seed in 0..u64::from(lodger_testing::cases(24)) {
        let disk = Arc::new(SimDisk::default());
        let (mut driver, _) = start(&disk, &spec, &ram);
        let mut naive = Naive::new(BLOCKS, seed);
        work(&mut driver, &mut naive, 200).expect("it works");
        // Nothing is programmed after the second flush, nor for what comes then.
        for _ in 0..2 {
            let flush = driver.entry(1, 0, 0, 0);
            driver.run(1, flush).expect("it is written");
            for _ in 0..200 {
                driver.port.wait();
            }
        }
        for version in 1..8 {
            let asked = Asked::Deallocate {
                lba: u64::from(naive.rng.below(BLOCKS as u32 / 64)) * 64,
                blocks: 64,
                version: version | ZEROS,
            };
            let entry = entry_of(&mut driver, 1, &asked);
            driver.run(1, entry).expect("it is taken");
        }
        // Their records are written, and it is killed before they are synced.
        disk.fail_syncs(true);
        let flush = driver.entry(1, 0, 0, 0);
        let _ = driver.run(1, flush);
        drop(driver);
        disk.fail_syncs(false);
        for crash in 0..6 {
            let left = Arc::new(disk.copy());
            left.fail_syncs(true);
            assert!(open(&left, &spec).is_err(), "it cannot be synced");
            left.fail_syncs(false);
            left.crash(&mut Rng::new(seed * 6 + crash));
            let found = open(&left, &spec).map(drop);
            assert!(found.is_ok(), "seed {seed}, crash {crash}: {found:?}");
        }
    }
}

/// The first record of what is kept beside the flash was cut off, with none before it to go back to: the drive was refused
/// for ever. (Where flash holds data such a file is refused still, as `backing_damage.rs` wants.)
#[test]
fn a_kill_in_the_middle_of_any_write_of_a_new_drive_leaves_an_empty_one() {
    let spec = small(&[]);
    let ram = ram();
    for after in 0..12 {
        let left = killed_while_starting(&SimDisk::default(), &spec, after);
        let (mut driver, _) = start(&left, &spec, &ram);
        let empty = read_all(&mut driver);
        assert!(empty.iter().all(|byte| *byte == 0), "after {after} writes");
        let mut naive = Naive::new(BLOCKS, 3);
        work(&mut driver, &mut naive, 300).expect("it works");
        driver.port.controller.switch_off().expect("it is written");
        drop(driver);
        start(&left, &spec, &ram);
    }
}
