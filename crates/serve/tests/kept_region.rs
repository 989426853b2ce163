//! A byte window whose drive is in a file, over the socket: mapped by a client as the server is killed, and as a persistent
//! memory region.
#![cfg(target_os = "linux")]

mod attached;
mod driver;
mod kept;
mod lives;
mod process;
mod simulated;

use attached::Attached;
use driver::{Driver, MEMORY_BYTES, Port};
use kept::SimDisk;
use lives::{start, with_window};
use lodger_core::rng::Rng;
use lodger_guest_ram::Mapping;
use lodger_wire::command::window::opcode;
use lodger_wire::memory::{GuestMemory, Ram};
use lodger_wire::registers::offset;
use simulated::Simulated;
use std::path::Path;
use std::sync::Arc;

const PAGE: u64 = 4096;

#[test]
fn a_server_until_it_is_killed() {
    process::serve(|_| with_window(&[]), 1.0);
}

fn mapped(driver: &Driver<Attached>) -> Mapping {
    let region = driver.port.client.region(4).expect("BAR 4");
    let shared = region.file_offset.as_ref().expect("a file");
    let area = region.sparse_areas[0];
    Mapping::new(shared.file(), area.offset, area.size, true).expect("it can be mapped")
}

fn loaded(window: &Mapping, at: u64) -> u64 {
    let mut bytes = [0; 8];
    window.read(at, &mut bytes).expect("a load");
    u64::from_le_bytes(bytes)
}

/// Two files beside the socket, that of the window for its owner alone.
fn check_files(folder: &Path) {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("a file").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["drive", "flash", "flash.window"]);
    let mode = std::fs::metadata(folder.join("flash.window")).expect("a file");
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&mode) & 0o777, 0o600);
}

/// Somebody stores, as fast as it goes and without a call, until the server is killed and a little longer.
#[test]
fn what_was_stored_as_the_server_was_killed_is_there_and_what_was_stored_after_is_not() {
    let folder = std::env::temp_dir().join(format!("lodger-window-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let start = || process::start("a_server_until_it_is_killed", &folder, "window");
    let (mut child, mut driver) = start();
    let pin = |driver: &mut Driver<Attached>| {
        let entry = driver.window_call(opcode::PIN, [0, 0, 5 * 8, 0, 2, 1 << 8]);
        driver.run(1, entry).expect("pinned");
    };
    pin(&mut driver);
    let mut old = mapped(&driver);
    let mut stored = 0u64;
    for _ in 0..4 {
        for _ in 0..1000 {
            stored += 1;
            let store = |at| old.write(at, &stored.to_le_bytes()).expect("a store");
            store(2 * PAGE + 8 * (stored % 512));
            store(9 * PAGE);
        }
        driver.port.is_gone = true;
        drop(child);
        (child, driver) = start();
        let window = mapped(&driver);
        assert_eq!(loaded(&window, 2 * PAGE + 8 * (stored % 512)), stored);
        assert_eq!(loaded(&window, 9 * PAGE), 0, "nothing is pinned there");
        old.write(2 * PAGE + 8 * (stored % 512), &[9; 8])
            .expect("a store");
        assert_eq!(loaded(&window, 2 * PAGE + 8 * (stored % 512)), stored);
        old = window;
    }
    // The next client of the same server finds it as well, and it becomes blocks.
    drop(driver);
    let mut driver = Driver::new(Attached::new(&folder.join("drive")));
    driver.enable();
    driver.create_queues(1);
    let window = mapped(&driver);
    old.write(2 * PAGE, &[9; 8])
        .expect("a store of who is gone");
    let held: Vec<u64> = (0..512)
        .map(|at| loaded(&window, 2 * PAGE + 8 * at))
        .collect();
    assert!(
        held.iter()
            .all(|value| (stored - 511..=stored).contains(value))
    );
    let flush = driver.window_call(opcode::FLUSH, [0; 6]);
    driver.run(1, flush).expect("flushed");
    let entry = driver.entry(1, 2, 5 * 8, 8);
    let buffer = driver.io[0].buffer(entry.command().0);
    driver.run(1, entry).expect("a read");
    let mut bytes = [0; PAGE as usize];
    driver
        .port
        .memory()
        .read(buffer, &mut bytes)
        .expect("memory");
    assert_eq!(
        bytes[..],
        held.iter()
            .flat_map(|value| value.to_le_bytes())
            .collect::<Vec<u8>>()
    );
    check_files(&folder);
    drop((driver, child));
    std::fs::remove_dir_all(&folder).expect("it is gone");
}

type Host<'a> = Driver<Simulated<'a>>;

/// PMRSTS, when the region is ready.
fn enable_region(host: &mut Host<'_>) -> u32 {
    host.port.write(offset::PMRCTL, 1);
    loop {
        let status = host.port.read(offset::PMRSTS);
        if status >> 8 & 1 == 0 {
            return status;
        }
        assert!(host.port.wait(), "the region does not become ready");
    }
}

fn store(host: &mut Host<'_>, at: u64, byte: u8) {
    let window = host.port.controller.window_mut().expect("a window");
    window.write(at, &[byte; 512]);
}

fn held(host: &mut Host<'_>, at: u64) -> u8 {
    let mut bytes = [0; 512];
    let window = host.port.controller.window_mut().expect("a window");
    window.read(at, &mut bytes);
    bytes[511]
}

#[test]
fn a_region_that_was_enabled_once_outlives_the_server_and_what_a_status_read_found_the_machine() {
    let spec = with_window(&[]);
    let mut lost = 0;
    for seed in 0..16 {
        let (disk, mut rng) = (Arc::new(SimDisk::default()), Rng::new(seed));
        let ram = Ram::new(MEMORY_BYTES as usize);
        let (mut host, _) = start(&disk, &spec, &ram);
        assert_eq!(enable_region(&mut host), 0);
        store(&mut host, 3 * PAGE, 5);
        drop(host);
        // Killed: there without a call, and from now on also while it is not enabled.
        let (mut host, _) = start(&disk, &spec, &ram);
        assert_eq!(held(&mut host, 3 * PAGE), 5);
        assert_eq!(enable_region(&mut host), 0);
        store(&mut host, 3 * PAGE, 6);
        host.port.read(offset::PMRSTS);
        store(&mut host, 5 * PAGE, 7);
        drop(host);
        disk.crash(&mut rng);
        let (mut host, _) = start(&disk, &spec, &ram);
        assert_eq!(held(&mut host, 3 * PAGE), 6, "seed {seed}");
        lost += u32::from(held(&mut host, 5 * PAGE) != 7);
    }
    // The null: without that read the machine may take it along.
    assert!(lost > 0);
}

#[test]
fn a_region_on_a_disk_that_fails_is_not_ready_or_says_that_it_is_not_to_be_relied_on() {
    let (disk, spec) = (Arc::new(SimDisk::default()), with_window(&[]));
    let ram = Ram::new(MEMORY_BYTES as usize);
    let (mut host, _) = start(&disk, &spec, &ram);
    assert_eq!(enable_region(&mut host), 0);
    store(&mut host, 0, 1);
    disk.fail_syncs(true);
    assert_eq!(host.port.read(offset::PMRSTS) >> 9 & 7, 3, "unreliable");
}

#[test]
fn a_sanitized_region_is_gone_from_the_file() {
    let (disk, spec) = (Arc::new(SimDisk::default()), with_window(&[]));
    let ram = Ram::new(MEMORY_BYTES as usize);
    let (mut host, _) = start(&disk, &spec, &ram);
    enable_region(&mut host);
    store(&mut host, 2 * PAGE, 0xa7);
    host.port.write(offset::PMRCTL, 0);
    assert!(disk.has(&[0xa7; 512]));
    host.admin(0x84, 0, &[2]).expect("a block erase");
    while host.log(0x81, 16)[2] & 7 == 2 {
        assert!(host.port.wait(), "it ends some time");
    }
    assert_eq!(host.log(0x81, 16)[2] & 7, 1, "sanitized");
    assert!(!disk.has(&[0xa7; 512]));
    drop(host);
    let (mut host, _) = start(&disk, &spec, &ram);
    assert_eq!(held(&mut host, 2 * PAGE), 0);
}
