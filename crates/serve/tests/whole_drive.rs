//! What does a format, or a sanitize, do to the drive, to commands under way, and to a host that looks? In simulated
//! time.

mod driver;
mod simulated;

use driver::mix::Mix;
use driver::{Driver, Port, is};
use lodger_wire::entry::SubmissionEntry;
use lodger_wire::memory::GuestMemory;
use lodger_wire::status::Status;
use lodger_wire::{CommandId, NamespaceId};
use simulated::{Simulated, ram, spec};

const FORMAT: u8 = 0x80;
const SANITIZE: u8 = 0x84;
const READ: u8 = 2;
const WRITE: u8 = 1;
/// Blocks of 512 bytes that the drive has.
const BLOCKS: u64 = 1 << 20;
const BLOCK_ERASE: u32 = 2;
const CRYPTO_ERASE: u32 = 4;

/// What a command without data asks of the whole drive; not waited for.
fn ask(driver: &mut Driver<Simulated<'_>>, opcode: u8, namespace: u32, dword10: u32) -> u16 {
    let command = driver.free_command(0);
    let entry = SubmissionEntry::new(opcode, CommandId(command), NamespaceId(namespace));
    driver.submit(0, entry.with_dword(10, dword10));
    command
}

fn write(driver: &mut Driver<Simulated<'_>>, lba: u64) -> Result<u32, Status> {
    let entry = driver.entry(1, WRITE, lba, 8);
    let buffer = driver.io[0].buffer(entry.command().0);
    driver.port.memory().write(buffer, &[0xa5; 4096]).unwrap();
    driver.run(1, entry)
}

/// The first 512 bytes of a block, as a read of so many blocks brings them.
fn read(driver: &mut Driver<Simulated<'_>>, lba: u64, blocks: u32) -> Result<[u8; 512], Status> {
    let entry = driver.entry(1, READ, lba, blocks);
    let buffer = driver.io[0].buffer(entry.command().0);
    driver.run(1, entry)?;
    let mut bytes = [0; 512];
    driver.port.memory().read(buffer, &mut bytes).unwrap();
    Ok(bytes)
}

fn blocks(driver: &mut Driver<Simulated<'_>>) -> (u64, u8) {
    let page = driver.identify(0, 1);
    let size = page[..8].try_into().expect("8 bytes");
    (u64::from_le_bytes(size), page[26])
}

/// State of the last sanitize, with bit 8: nothing was written since.
fn sanitized(driver: &mut Driver<Simulated<'_>>) -> (u16, u16) {
    let page = driver.log(0x81, 512);
    let number = |at: usize| u16::from_le_bytes([page[at], page[at + 1]]);
    (number(2), number(0))
}

#[test]
fn a_format_changes_the_size_of_blocks_and_leaves_no_data() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    driver.create_queues(1);
    assert_eq!(blocks(&mut driver), (BLOCKS, 0));
    write(&mut driver, 80).expect("512 bytes a block");
    driver.admin(FORMAT, 1, &[1]).expect("a format to 4 KiB");
    assert_eq!(blocks(&mut driver), (BLOCKS / 8, 1));
    assert_eq!(read(&mut driver, 10, 1), Ok([0; 512]));
    assert!(is(
        &read(&mut driver, BLOCKS / 8, 1),
        Status::LBA_OUT_OF_RANGE
    ));
    let entry = driver.entry(1, WRITE, 20, 8).with_dword(12, 0);
    let buffer = driver.io[0].buffer(entry.command().0);
    ram.write(buffer, &[7; 4096]).unwrap();
    driver.run(1, entry).expect("a block of 4 KiB");
    assert_eq!(read(&mut driver, 20, 1), Ok([7; 512]));
    driver
        .admin(FORMAT, u32::MAX, &[0])
        .expect("a format of all namespaces, to 512 bytes");
    assert_eq!(blocks(&mut driver), (BLOCKS, 0));
    assert_eq!(read(&mut driver, 160, 8), Ok([0; 512]));
    let mut mix = Mix::new(8 << 10, 1);
    mix.run(&mut driver, 500, 16);
    mix.check_all(&mut driver);
}

#[test]
fn a_format_that_cannot_be_says_why_and_changes_nothing() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    driver.create_queues(1);
    write(&mut driver, 0).expect("data");
    let mut refused = |namespace, dword10, status| {
        let ended = driver.admin(FORMAT, namespace, &[dword10]);
        assert!(is(&ended, status), "{dword10:x}: {ended:?}");
    };
    refused(1, 2, Status::FORMAT_INVALID);
    refused(1, 1 << 5, Status::FORMAT_INVALID);
    refused(1, 1 << 4, Status::FORMAT_INVALID);
    refused(1, 3 << 9, Status::INVALID_FIELD);
    refused(2, 0, Status::INVALID_NAMESPACE);
    assert_eq!(read(&mut driver, 0, 8), Ok([0xa5; 512]));
}

#[test]
fn a_format_waits_for_commands_under_way_and_refuses_others() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    driver.create_queues(1);
    let mut numbers = Vec::new();
    for index in 0..8 {
        let entry = driver.entry(1, WRITE, 8 * index, 8);
        numbers.push(entry.command().0);
        driver.submit(1, entry);
    }
    driver.port.controller.poll(0);
    let format = ask(&mut driver, FORMAT, 1, 1);
    let late = driver.entry(1, READ, 0, 8);
    driver.submit(1, late);
    let again = ask(&mut driver, FORMAT, 1, 0);
    let (mut of_io, mut of_admin) = (Vec::new(), Vec::new());
    while of_admin.len() < 2 {
        of_io.extend(driver.reap(1));
        of_admin.extend(driver.reap(0));
        assert!(driver.port.wait(), "{of_io:?} {of_admin:?}");
    }
    of_io.extend(driver.reap(1));
    assert_eq!(of_io.len(), 9);
    for (command, outcome) in of_io {
        let expected = match command == late.command().0 {
            true => Status::FORMAT_IN_PROGRESS,
            false => Status::SUCCESS,
        };
        assert!(outcome.status.is(expected), "{command}: {outcome:?}");
    }
    for (command, outcome) in of_admin {
        match command == again {
            true => assert!(outcome.status.is(Status::FORMAT_IN_PROGRESS)),
            false => assert!(command == format && outcome.status.is_success()),
        }
    }
}

#[test]
fn erased_data_is_in_no_memory_of_the_drive() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    driver.create_queues(2);
    let erase_all_ps = {
        let device = driver.port.controller.device();
        u64::from(device.geometry().superblocks) * device.spec().nand.erase_ps
    };
    for (erase, least_ps) in [(1, erase_all_ps), (2, 0)] {
        let mut mix = Mix::new(8 << 10, erase);
        mix.run(&mut driver, 300, 16);
        mix.finish(&mut driver);
        write(&mut driver, 0).expect("data");
        let entry = driver.entry(1, 0, 0, 0);
        driver.run(1, entry).expect("a flush");
        let held = |driver: &Driver<Simulated<'_>>| {
            let device = driver.port.controller.device();
            device.contents.pages_in_flash()
        };
        assert!(held(&driver) > 0);
        let from_ps = driver.port.now_ps;
        let dword10 = (erase as u32) << 9;
        driver.admin(FORMAT, 1, &[dword10]).expect("an erase");
        assert_eq!(held(&driver), 0);
        assert!(driver.port.now_ps - from_ps >= least_ps);
        assert_eq!(read(&mut driver, 0, 8), Ok([0; 512]));
    }
}

#[test]
fn a_sanitize_goes_on_behind_the_hosts_back_and_tells_when_it_is_over() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    driver.create_queues(1);
    assert_eq!(sanitized(&mut driver), (0, u16::MAX), "never");
    for (action, resets) in [
        (BLOCK_ERASE, false),
        (BLOCK_ERASE, true),
        (CRYPTO_ERASE, false),
    ] {
        write(&mut driver, 0).expect("data");
        // No other command is waited for with it, but those that end before.
        let request = (action == BLOCK_ERASE && !resets).then(|| ask(&mut driver, 0xc, 0, 0));
        driver.admin(SANITIZE, 0, &[action]).expect("it begins");
        if action == BLOCK_ERASE {
            let (state, progress) = sanitized(&mut driver);
            assert_eq!((state, progress < u16::MAX), (2, true), "under way");
            let ended = read(&mut driver, 0, 8).map(|_| 0);
            assert!(is(&ended, Status::SANITIZE_IN_PROGRESS));
            let ended = driver.admin(SANITIZE, 0, &[action]);
            assert!(is(&ended, Status::SANITIZE_IN_PROGRESS));
            let ended = driver.admin(FORMAT, 1, &[0]);
            assert!(is(&ended, Status::SANITIZE_IN_PROGRESS));
        }
        if resets {
            driver.enable();
            driver.create_queues(1);
            assert_eq!(sanitized(&mut driver).0, 2, "a reset does not end it");
        }
        if let Some(request) = request {
            let told = loop {
                if let Some(told) = driver.reap(0).pop() {
                    break told;
                }
                assert!(driver.port.wait(), "nobody is told");
            };
            assert_eq!((told.0, told.1.result as u32), (request, 0x0081_0106));
        }
        while sanitized(&mut driver).0 == 2 {
            assert!(driver.port.wait());
        }
        assert_eq!(sanitized(&mut driver), (0x101, u16::MAX), "done");
        assert_eq!(read(&mut driver, 0, 8), Ok([0; 512]));
        let device = driver.port.controller.device();
        assert_eq!(device.contents.pages_in_flash(), 0);
        write(&mut driver, 0).expect("data again");
        assert_eq!(sanitized(&mut driver).0, 1, "and something was written");
    }
}

#[test]
fn a_sanitize_that_is_not_on_offer_is_refused() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    // Overwrite; without deallocation; nothing that there is.
    for dword10 in [3, BLOCK_ERASE | 1 << 9, 0] {
        let ended = driver.admin(SANITIZE, 0, &[dword10]);
        assert!(is(&ended, Status::INVALID_FIELD), "{dword10:x}: {ended:?}");
    }
    driver.admin(SANITIZE, 0, &[1]).expect("nothing has failed");
    assert_eq!(sanitized(&mut driver).0, 0);
}

#[test]
fn a_reset_takes_a_formats_command_away_and_the_drive_is_whole() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    for waits in 0..40 {
        driver.enable();
        driver.create_queues(1);
        while is(&write(&mut driver, 0), Status::FORMAT_IN_PROGRESS) {
            assert!(driver.port.wait(), "the last format does not end");
        }
        ask(&mut driver, FORMAT, 1, 1 << 9);
        for _ in 0..waits {
            driver.port.wait();
        }
        driver.disable();
    }
    driver.enable();
    driver.create_queues(1);
    driver.admin(FORMAT, 1, &[0]).ok();
    while driver.admin(FORMAT, 1, &[0]).is_err() {
        assert!(driver.port.wait());
    }
    let mut mix = Mix::new(8 << 10, 1);
    mix.run(&mut driver, 300, 16);
    mix.check_all(&mut driver);
}

#[test]
fn memory_follows_what_the_drive_holds_and_not_what_it_held() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    driver.create_queues(1);
    for _ in 0..300 {
        write(&mut driver, 0).expect("the same blocks again");
        let entry = driver.entry(1, 0, 0, 0);
        driver.run(1, entry).expect("a flush");
    }
    let device = driver.port.controller.device();
    assert!(device.contents.pages_in_flash() <= 2);
    assert!(device.counters().programs_by_cause[0] >= 300);
}
