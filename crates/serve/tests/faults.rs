//! Do rules do to commands what they say, to those and no others, and is the drive as it was afterwards?

mod driver;
mod simulated;

use driver::mix::Mix;
use driver::{Driver, Port, number};
use lodger_serve::faults::Faults;
use lodger_wire::memory::Ram;
use lodger_wire::status::Status;
use simulated::{Simulated, ram, spec};

const WRITE: u8 = 1;
const READ: u8 = 2;

fn with<'a>(ram: &'a Ram, rules: &str) -> Driver<Simulated<'a>> {
    let mut driver = Simulated::driver(&spec(&[]), ram);
    let faults = Faults::parse(rules, 1).expect("rules");
    driver.port.controller.set_faults(faults);
    driver.enable();
    driver.create_queues(2);
    driver
}

/// How a command of a page ends.
fn run(driver: &mut Driver<Simulated<'_>>, queue: usize, opcode: u8, lba: u64) -> u16 {
    let entry = driver.entry(queue, opcode, lba, 8);
    match driver.run(queue, entry) {
        Ok(_) => 0,
        Err(status) => status.bits() & 0x7ff,
    }
}

#[test]
fn commands_fail_that_a_rule_names_and_no_others() {
    let ram = ram();
    let rules = "# the third read, and each second one after it, twice\n\
                 fail 0x281 opcode=read skip=2 every=2 times=2\n\
                 fail 0x2 queue=2 dword12=7/0xff lba=800-807   # Invalid Field\n";
    let mut driver = with(&ram, rules);
    let reads: Vec<u16> = (0..8).map(|_| run(&mut driver, 1, READ, 0)).collect();
    assert_eq!(reads, [0, 0, 0x281, 0, 0x281, 0, 0, 0]);
    assert_eq!(run(&mut driver, 1, WRITE, 800), 0, "another queue");
    assert_eq!(run(&mut driver, 2, WRITE, 808), 0, "another block");
    assert_eq!(run(&mut driver, 2, WRITE, 807), 2);
    let entry = driver.entry(2, WRITE, 800, 16);
    assert!(driver.run(2, entry).is_ok(), "another length");
    // What has failed has not entered the drive; the error log has it.
    assert_eq!(driver.port.controller.statistics().writes, 3);
    assert_eq!(driver.port.controller.look().faults, 3);
    assert_eq!(driver.port.controller.look().errors, 3);
    assert_eq!(driver.log(1, 64)[0], 3);
}

#[test]
fn a_delay_is_exact_and_others_overtake() {
    let took = |rules: &str| {
        let ram = ram();
        let mut driver = with(&ram, rules);
        let start_ps = driver.port.now_ps;
        assert_eq!(run(&mut driver, 1, READ, 0), 0);
        driver.port.now_ps - start_ps
    };
    let (plain, delayed) = (took(""), took("delay 3ms opcode=2"));
    assert_eq!(delayed, plain + 3_000_000_000);
    let ram = ram();
    let mut driver = with(&ram, "delay 1s opcode=write");
    let write = driver.entry(1, WRITE, 0, 8);
    driver.submit(1, write);
    assert_eq!(run(&mut driver, 2, READ, 64), 0);
    assert!(driver.reap(1).is_empty(), "it is held up");
    // A shutdown does not wait for it to pass: it is done then.
    let before_ps = driver.port.now_ps;
    driver.shutdown();
    assert!(driver.port.now_ps - before_ps < 500_000_000_000);
    assert_eq!(driver.reap(1).len(), 1);
}

#[test]
fn a_command_that_waits_is_aborted_and_one_that_is_under_way_is_not() {
    let ram = ram();
    let mut driver = with(&ram, "delay 5s opcode=write times=2");
    let write = |driver: &mut Driver<Simulated<'_>>| {
        let entry = driver.entry(1, WRITE, 0, 8);
        let command = entry.command().0;
        driver.submit(1, entry);
        let now_ps = driver.port.now_ps;
        driver.port.controller.poll(now_ps);
        command
    };
    let abort = |driver: &mut Driver<Simulated<'_>>, command: u16| {
        driver.admin(8, 0, &[u32::from(command) << 16 | 1])
    };
    let (first, second) = (write(&mut driver), write(&mut driver));
    assert_eq!(abort(&mut driver, first), Ok(0));
    let ended = driver.reap(1);
    assert_eq!(ended.len(), 1, "the other still waits");
    assert_eq!(ended[0].0, first);
    assert!(ended[0].1.status.is(Status::ABORT_REQUESTED));
    assert_eq!(abort(&mut driver, first), Ok(1), "it is over");
    // The third is not held up: it is under way.
    let third = write(&mut driver);
    assert_eq!(abort(&mut driver, third), Ok(1));
    let mut ended = Vec::new();
    while ended.len() < 2 {
        ended.extend(driver.reap(1));
        assert!(driver.port.wait());
    }
    assert_eq!(
        ended
            .iter()
            .map(|(command, _)| *command)
            .collect::<Vec<_>>(),
        [third, second]
    );
    assert!(ended.iter().all(|(_, outcome)| outcome.status.is_success()));
    assert_eq!(
        driver.port.controller.statistics().writes,
        2,
        "nothing of the first was done"
    );
}

#[test]
fn what_is_dropped_is_gone_until_a_reset_and_nothing_else_is() {
    let ram = ram();
    let rules = "drop opcode=write times=1\ndelay 1h opcode=flush\n".replace("1h", "3600s");
    let mut driver = with(&ram, &rules);
    let (write, flush) = (driver.entry(1, WRITE, 0, 8), driver.entry(2, 0, 0, 0));
    driver.submit(1, write);
    driver.submit(2, flush);
    for lba in (0..800).step_by(8) {
        assert_eq!(
            run(&mut driver, 1 + usize::from(lba % 16 == 0), READ, lba),
            0
        );
    }
    driver.enable();
    driver.create_queues(3);
    let mut mix = Mix::new(1 << 16, 3);
    driver.port.controller.set_faults(Faults::default());
    mix.run(&mut driver, 500, 16);
    mix.finish(&mut driver);
    mix.check_all(&mut driver);
}

#[test]
fn admin_commands_are_meant_only_by_name_and_times_count_from_the_start() {
    let ram = ram();
    let mut driver = with(
        &ram,
        "fail 0x6 queue=admin opcode=0x02 until=10s\nfail 0x6 from=20s",
    );
    let failed = driver.admin(2, u32::MAX, &[127 << 16 | 1]);
    assert!(failed.is_err_and(|status| status.is(Status::INTERNAL_ERROR)));
    assert_eq!(run(&mut driver, 1, READ, 0), 0);
    driver.port.now_ps = 10_000_000_000_000;
    assert_eq!(driver.log(1, 64)[0], 1);
    driver.port.now_ps = 20_000_000_000_000;
    driver.port.wait();
    assert_eq!(run(&mut driver, 1, READ, 0), 6);
}

#[test]
fn chance_is_as_often_as_it_says_and_the_same_every_time() {
    let outcomes = || {
        let ram = ram();
        let mut driver = with(&ram, "fail 0x281 chance=25%");
        let mut run = || run(&mut driver, 1, READ, 0) != 0;
        (0..1000).map(|_| run()).collect::<Vec<bool>>()
    };
    let first = outcomes();
    let failed = first.iter().filter(|failed| **failed).count();
    assert!((190..310).contains(&failed), "{failed}");
    assert_eq!(first, outcomes());
}

/// The block was 0 in all entries of the error log.
#[test]
fn the_error_log_names_the_first_block_that_failed() {
    let ram = ram();
    let mut driver = with(&ram, "fail 0x281 opcode=read lba=1000-1007");
    let newest = |driver: &mut Driver<Simulated<'_>>| {
        let page = driver.log(1, 64);
        (number(&page, 16, 8), number(&page, 24, 4))
    };
    assert_eq!(run(&mut driver, 1, READ, 1004), 0x281);
    assert_eq!(newest(&mut driver), (1004, 1));
    let end = number(&driver.identify(0, 1), 0, 8);
    assert_eq!(run(&mut driver, 1, WRITE, end - 3), 0x80);
    assert_eq!(newest(&mut driver), (end, 1), "the first that is not there");
    assert_eq!(run(&mut driver, 1, READ, end + 9), 0x80);
    assert_eq!(newest(&mut driver), (end + 9, 1));
    assert!(driver.admin(2, 1, &[1]).is_err());
    assert_eq!(newest(&mut driver), (0, 1), "a command without blocks");
}
