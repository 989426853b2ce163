//! Do the pages of health say what hosts and the drive did?

mod driver;
mod kept;
mod lives;
mod simulated;

use driver::{Driver, number};
use kept::SimDisk;
use lives::*;
use lodger_serve::faults::{Faults, parse_act};
use lodger_wire::memory::Ram;
use simulated::{Simulated, ram, spec};
use std::sync::Arc;

const FLUSH: u8 = 0;
const READ: u8 = 2;
const MINUTE: u64 = 60_000_000_000_000;
const HEALTH: u32 = 2;

type Drive<'a> = Driver<Simulated<'a>>;

fn with<'a>(ram: &'a Ram, sets: &[(&str, &str)], rules: &str) -> Drive<'a> {
    let mut driver = Simulated::driver(&spec(sets), ram);
    let faults = Faults::parse(rules, 1).expect("rules");
    driver.port.controller.set_faults(faults);
    driver.enable();
    driver.create_queues(1);
    driver
}

/// A command of the only queue, of that many blocks.
fn run(driver: &mut Drive<'_>, opcode: u8, lba: u64, blocks: u32) {
    let entry = driver.entry(1, opcode, lba, blocks);
    driver.run(1, entry).expect("it ends well");
}

fn busy_minutes(driver: &mut Drive<'_>) -> u64 {
    number(&driver.log(HEALTH, 512), 96, 16)
}

/// A drive that nobody asks anything.
fn rest(driver: &mut Drive<'_>, minutes: u64) {
    driver.port.now_ps += minutes * MINUTE;
    driver.port.controller.poll(driver.port.now_ps);
}

/// It was 0 whatever a drive had done.
#[test]
fn the_controller_is_busy_as_long_as_a_command_waits() {
    let ram = ram();
    let mut driver = with(&ram, &[], "delay 2h opcode=read times=1");
    rest(&mut driver, 90);
    assert_eq!(
        busy_minutes(&mut driver),
        0,
        "nobody has asked for anything"
    );
    run(&mut driver, READ, 0, 8);
    assert_eq!(busy_minutes(&mut driver), 120);
    rest(&mut driver, 90);
    run(&mut driver, READ, 0, 8);
    assert_eq!(busy_minutes(&mut driver), 120, "what rests is not busy");
}

#[test]
fn a_command_that_a_drive_that_hangs_does_not_fetch_keeps_it_busy() {
    let ram = ram();
    let mut driver = with(&ram, &[], "");
    let stall = parse_act("stall 3h").expect("an act");
    assert!(driver.port.controller.act(stall));
    rest(&mut driver, 60);
    run(&mut driver, READ, 0, 8);
    let minutes = busy_minutes(&mut driver);
    assert_eq!(minutes, 120, "not what had passed before it came");
}

#[test]
fn the_time_that_a_drive_was_busy_outlives_the_process() {
    let (disk, spec) = (Arc::new(SimDisk::default()), small(&[]));
    for starts in 1..=3 {
        let ram = ram();
        let (mut driver, _) = start(&disk, &spec, &ram);
        let faults = Faults::parse("delay 7min opcode=flush times=1", 1).expect("rules");
        driver.port.controller.set_faults(faults);
        run(&mut driver, FLUSH, 0, 0);
        assert_eq!(busy_minutes(&mut driver), 7 * starts);
        driver.port.controller.switch_off().expect("it is written");
    }
}
