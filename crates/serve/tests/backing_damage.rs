//! Is a file of which a part is damaged or missing refused, or else as it was? Beside the data of a drive, whose own pages say what
//! was written there.

mod driver;
mod kept;
mod lives;
mod simulated;

use kept::{Naive, SimDisk};
use lives::*;
use lodger_core::DriveSpec;
use lodger_core::rng::Rng;
use lodger_serve::backing::disk::Disk;
use simulated::{Simulated, ram};
use std::sync::Arc;

/// All that the drive in a file holds, unless it is refused.
fn read_unless_refused(disk: &Arc<SimDisk>, spec: &DriveSpec) -> Option<Vec<u8>> {
    let ram = ram();
    let mut driver = Simulated::driver(spec, &ram);
    let backing = open(disk, spec).ok()?;
    driver.port.controller.keep_in(backing).ok()?;
    driver.port.now_ps = driver.port.controller.now_ps();
    driver.enable();
    driver.create_queues(2);
    Some(read_all(&mut driver))
}

/// A drive without data keeps features, namespaces and counters all the same: it came up as a new one.
#[test]
fn a_drive_that_was_switched_off_without_data_and_lost_the_rest_is_refused() {
    let (disk, spec, ram) = (Arc::new(SimDisk::default()), small(&[]), ram());
    let (mut driver, _) = start(&disk, &spec, &ram);
    driver.port.controller.switch_off().expect("it is written");
    drop(driver);
    assert!(read_unless_refused(&Arc::new(disk.copy()), &spec).is_some());
    // All but its first page and the marker.
    for page in disk.pages().into_iter().filter(|page| *page > 1) {
        disk.lose(page * 4096, 4096);
    }
    assert!(read_unless_refused(&disk, &spec).is_none());
}

#[test]
fn damage_to_what_is_kept_beside_the_data_is_refused_or_changes_nothing() {
    let (disk, spec) = (Arc::new(SimDisk::default()), small(&[]));
    let ram = ram();
    let (mut driver, _) = start(&disk, &spec, &ram);
    let mut naive = Naive::new(BLOCKS, 2);
    work(&mut driver, &mut naive, 2000).expect("it works");
    driver.port.controller.switch_off().expect("it is written");
    drop(driver);
    let (mut driver, _) = start(&Arc::new(disk.copy()), &spec, &ram);
    let whole = read_all(&mut driver);
    drop(driver);
    // Data itself is the last part: what was written there is what is read.
    let pages = spec.nand.blocks_per_plane as u64 * 24 * 4 * 2;
    let data_at = disk.pages().into_iter().find(|page| page * 4096 >= 1 << 29);
    assert!(data_at.is_some() && pages > 0);
    let beside: Vec<u64> = disk
        .pages()
        .into_iter()
        .filter(|page| !disk.is_data(*page))
        .collect();
    let mut rng = Rng::new(9);
    let (mut refused, mut same) = (0, 0);
    for _ in 0..lodger_testing::cases(24) {
        let damaged = Arc::new(disk.copy());
        let page = beside[rng.below(beside.len() as u32) as usize];
        damaged.flip(page * 4096 + u64::from(rng.below(4096)), rng.below(8) as u8);
        match read_unless_refused(&damaged, &spec) {
            None => refused += 1,
            Some(read) => {
                assert!(read == whole, "page {page} of the file");
                same += 1;
            }
        }
    }
    println!("{refused} refused, {same} the same");
    assert!(refused > 3);
}

/// Sectors of what is kept beside the data are lost from a file, one at a time: how often it was refused. Else it is the same.
fn lose_sectors(disk: &SimDisk, spec: &DriveSpec, pages: &[u64]) -> u32 {
    let ram = ram();
    let whole = read_all(&mut start(&Arc::new(disk.copy()), spec, &ram).0);
    let (mut rng, mut refused) = (Rng::new(9), 0);
    for _ in 0..lodger_testing::cases(24) {
        let page = pages[rng.below(pages.len() as u32) as usize];
        let damaged = Arc::new(disk.copy());
        damaged.lose(page * 4096 + u64::from(rng.below(8)) * 512, 512);
        match read_unless_refused(&damaged, spec) {
            None => refused += 1,
            Some(read) => assert!(read == whole, "page {page} of the file"),
        }
    }
    refused
}

/// What is missing reads as zeros, as what was never written does: pages whose records were lost were taken for empty, and
/// a drive without its table came up as a new one.
#[test]
fn what_is_missing_beside_the_data_is_refused_or_changes_nothing() {
    let (disk, spec, ram) = (Arc::new(SimDisk::default()), small(&[]), ram());
    let (mut driver, _) = start(&disk, &spec, &ram);
    let mut naive = Naive::new(BLOCKS, 2);
    work(&mut driver, &mut naive, 2000).expect("it works");
    driver.port.controller.switch_off().expect("it is written");
    drop(driver);
    let pages = disk.pages().into_iter();
    let beside: Vec<u64> = pages.filter(|page| !disk.is_data(*page)).collect();
    assert!(lose_sectors(&disk, &spec, &beside) > 3);
    // Killed later on: of what was there before and stayed as it was the same holds.
    let later = Arc::new(disk.copy());
    let (mut driver, _) = start(&later, &spec, &ram);
    work(&mut driver, &mut naive, 100).expect("it works");
    drop(driver);
    let stayed = |page: &u64| {
        let (mut before, mut after) = ([0; 4096], [0; 4096]);
        disk.read(page * 4096, &mut before).expect("it can be read");
        later.read(page * 4096, &mut after).expect("it can be read");
        before == after
    };
    let beside: Vec<u64> = beside.into_iter().filter(stayed).collect();
    assert!(lose_sectors(&later, &spec, &beside) > 3);
}

/// A drive of these values that has worked, flushed, and whose process was killed then.
fn killed_after_a_flush(spec: &DriveSpec) -> Arc<SimDisk> {
    let (disk, ram) = (Arc::new(SimDisk::default()), ram());
    let (mut driver, _) = start(&disk, spec, &ram);
    let mut naive = Naive::new(BLOCKS, 2);
    for _ in 0..8 {
        work(&mut driver, &mut naive, 250).expect("it works");
        let flush = driver.entry(1, 0, 0, 0);
        driver.run(1, flush).expect("a flush");
    }
    disk
}

/// One flipped bit beside flushed pages passed for a page that was being written, and a lost sector of records, or of records
/// of trims, for the end of what was: both came up with older data. The null: nothing is noted as a sync ends.
#[test]
fn damage_beside_flushed_data_of_a_killed_drive_is_refused_or_changes_nothing() {
    let protected = [
        ("tier.pm.size", "1MiB"),
        ("role.write_buffer.tier", "pm"),
        ("role.write_buffer.size", "256KiB"),
    ];
    for sets in [&[][..], &protected] {
        let spec = small(sets);
        let disk = killed_after_a_flush(&spec);
        let ram = ram();
        let whole = read_all(&mut start(&Arc::new(disk.copy()), &spec, &ram).0);
        let pages = disk.pages().into_iter();
        let beside: Vec<u64> = pages.filter(|page| !disk.is_data(*page)).collect();
        let mut rng = Rng::new(9);
        let mut refused = 0;
        for case in 0..lodger_testing::cases(48) {
            let damaged = Arc::new(disk.copy());
            let page = beside[rng.below(beside.len() as u32) as usize];
            let at = page * 4096 + u64::from(rng.below(4096));
            match case % 3 {
                0 => damaged.flip(at, rng.below(8) as u8),
                1 => damaged.lose(at / 512 * 512, 512),
                _ => damaged.lose(page * 4096, 4096),
            }
            match read_unless_refused(&damaged, &spec) {
                None => refused += 1,
                Some(read) => assert!(read == whole, "case {case}, page {page} of the file"),
            }
        }
        println!("{refused} refused");
        assert!(refused > 12, "{sets:?}: {refused}");
    }
}

/// A file that an earlier version left has no inventory.
#[test]
fn a_file_without_an_inventory_is_read() {
    let (disk, spec, ram) = (Arc::new(SimDisk::default()), small(&[]), ram());
    let (mut driver, _) = start(&disk, &spec, &ram);
    work(&mut driver, &mut Naive::new(BLOCKS, 2), 300).expect("it works");
    driver.port.controller.switch_off().expect("it is written");
    let whole = read_all(&mut start(&Arc::new(disk.copy()), &spec, &ram).0);
    let at = (0..(513 << 8)).rev().find(|page| {
        let mut bytes = [0; 4096];
        disk.read(page * 4096, &mut bytes).expect("it can be read");
        bytes.windows(4).any(|word| word == b"nidL")
    });
    disk.lose(at.expect("an inventory") * 4096, 4096);
    assert!(read_all(&mut start(&disk, &spec, &ram).0) == whole);
}
