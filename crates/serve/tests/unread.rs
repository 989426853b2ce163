//! What does a host hear if the file that keeps a drive does not give its data back?

mod driver;
mod kept;
mod simulated;

use driver::Port;
use kept::{SimDisk, block_bytes};
use lodger_serve::backing::Backing;
use lodger_wire::memory::GuestMemory;
use lodger_wire::status::Status;
use simulated::{Simulated, ram, spec};
use std::sync::Arc;

/// Seed that [`Simulated`] gives its drives.
const SEED: u64 = 1;
const BLOCKS: u32 = 8;

#[test]
fn whatever_reads_hears_of_data_that_the_file_does_not_give_back_and_no_command_after_it() {
    let (disk, ram) = (Arc::new(SimDisk::default()), ram());
    let spec = spec(&[
        ("capacity", "24MiB"),
        ("nand.pages_per_block", "24"),
        ("ftl.overprovisioning", "0.5"),
    ]);
    let mut driver = Simulated::driver(&spec, &ram);
    let backing = Backing::on(Arc::clone(&disk) as _, &spec, SEED, false, &mut |_, _| {});
    let controller = &mut driver.port.controller;
    controller
        .keep_in(backing.expect("a backing"))
        .expect("the drive is in it");
    driver.port.now_ps = driver.port.controller.now_ps();
    driver.enable();
    driver.create_queues(1);
    let data: Vec<u8> = (0..u64::from(BLOCKS))
        .flat_map(|lba| block_bytes(lba, 1))
        .collect();
    let mut ask = |opcode: u8| {
        let entry = driver.entry(1, opcode, 0, BLOCKS);
        let buffer = driver.io[0].buffer(entry.command().0);
        driver.port.memory().write(buffer, &data).expect("memory");
        driver.run(1, entry).map(drop)
    };
    const FLUSH: u8 = 0;
    const WRITE: u8 = 1;
    const READ: u8 = 2;
    const COMPARE: u8 = 5;
    const VERIFY: u8 = 0xc;
    ask(WRITE).expect("it is written");
    ask(FLUSH).expect("it is in the file");
    let opcodes = [READ, COMPARE, VERIFY];
    for opcode in opcodes {
        ask(opcode).expect("it is there");
        disk.fail_reads(true);
        let unread = ask(opcode).expect_err("it cannot be read");
        assert!(
            unread.is(Status::UNRECOVERED_READ_ERROR),
            "{opcode:#x}: {unread:?}"
        );
        disk.fail_reads(false);
        ask(opcode).expect("it is there again");
    }
    // Media and Data Integrity Errors.
    assert_eq!(driver.log(2, 512)[160], opcodes.len() as u8);
}
