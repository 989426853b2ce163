//! Does what a user does to the drive as a whole do that, at its time, and no more: power cuts, vanishing, hanging, heat,
//! read-only, host memory? And is the drive well afterwards?

mod driver;
mod simulated;

use driver::mix::Mix;
use driver::{Driver, HMB_AT, Port};
use lodger_serve::faults::{Faults, parse_act};
use lodger_wire::memory::{GuestMemory, Ram};
use lodger_wire::registers::offset;
use lodger_wire::status::Status;
use simulated::{Simulated, ram, spec};

const FLUSH: u8 = 0;
const WRITE: u8 = 1;
const READ: u8 = 2;
const HMB_BYTES: u64 = 256 << 10;
const MS: u64 = 1_000_000_000;
const GONE: u32 = u32::MAX;

type Drive<'a> = Driver<Simulated<'a>>;

fn with<'a>(ram: &'a Ram, rules: &str) -> Drive<'a> {
    let mut driver = Simulated::driver(&spec(&[("tier.hmb.integrity", "mac")]), ram);
    let faults = Faults::parse(rules, 1).expect("rules");
    driver.port.controller.set_faults(faults);
    driver.enable();
    driver.create_queues(2);
    driver
}

fn act(driver: &mut Drive<'_>, act: &str) {
    let due = parse_act(act).expect("an act");
    assert!(driver.port.controller.act(due));
    driver.port.wait();
}

/// How a command of a page ends, whose data is that byte.
fn run(driver: &mut Drive<'_>, opcode: u8, lba: u64, byte: u8) -> Result<(), Status> {
    let entry = driver.entry(1, opcode, lba, 8);
    let buffer = driver.io[0].buffer(entry.command().0);
    driver.port.memory().write(buffer, &[byte; 4096]).unwrap();
    driver.run(1, entry).map(|_| ())
}

/// The byte that a page holds.
fn byte_at(driver: &mut Drive<'_>, lba: u64) -> u8 {
    let entry = driver.entry(1, READ, lba, 8);
    let buffer = driver.io[0].buffer(entry.command().0);
    driver.run(1, entry).expect("a read");
    let mut bytes = [0; 4096];
    driver.port.memory().read(buffer, &mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a whole page");
    bytes[0]
}

fn again(driver: &mut Drive<'_>) {
    driver.enable();
    driver.create_queues(2);
}

#[test]
fn a_power_cut_loses_what_was_not_flushed_and_nothing_else() {
    for cut in [true, false] {
        let ram = ram();
        let mut driver = with(&ram, "");
        run(&mut driver, WRITE, 0, 1).expect("a write");
        run(&mut driver, FLUSH, 0, 0).expect("a flush");
        run(&mut driver, WRITE, 0, 2).expect("a write");
        let before_ps = driver.port.controller.now_ps();
        if cut {
            act(&mut driver, "power-cut");
            let csts = driver.port.read(offset::CSTS);
            assert_eq!(csts, 0, "as after power on");
        }
        again(&mut driver);
        let passed_ps = driver.port.controller.now_ps() - before_ps;
        assert_eq!(passed_ps > 0, cut, "it is ready once it has recovered");
        assert_eq!(byte_at(&mut driver, 0), if cut { 1 } else { 2 });
        let health = driver.log(2, 512);
        assert_eq!(health[112], if cut { 2 } else { 1 }, "power cycles");
        assert_eq!(health[144], u8::from(cut), "unsafe shutdowns");
        run(&mut driver, WRITE, 0, 0).expect("zeros, as at first");
        let mut mix = Mix::new(1 << 16, 3);
        mix.run(&mut driver, 500, 16);
        mix.finish(&mut driver);
        mix.check_all(&mut driver);
    }
}

#[test]
fn power_fails_in_the_middle_of_a_program_operation() {
    let ram = ram();
    let mut driver = with(&ram, "power-cut on=program skip=2");
    let mut flushed = [0; 64];
    let mut written = flushed;
    let mut cut_at = None;
    for round in 0..64u64 {
        let slot = (round % 64) as usize;
        written[slot] = 1 + round as u8;
        let write = driver.entry(1, WRITE, slot as u64 * 8, 8);
        let buffer = driver.io[0].buffer(write.command().0);
        let data = [written[slot]; 4096];
        driver.port.memory().write(buffer, &data).unwrap();
        driver.submit(1, write);
        let flush = driver.entry(1, FLUSH, 0, 0);
        driver.submit(1, flush);
        let mut ended = 0;
        while ended < 2 && driver.port.controller.plight().acts == 0 {
            ended += driver.reap(1).len();
            assert!(driver.port.wait());
        }
        if driver.port.controller.plight().acts > 0 {
            cut_at = Some(round);
            break;
        }
        flushed = written;
    }
    let round = cut_at.expect("power was cut");
    assert!(round >= 2, "the third time that flash programs: {round}");
    again(&mut driver);
    for slot in 0..64 {
        let holds = byte_at(&mut driver, slot as u64 * 8);
        let was = (flushed[slot], written[slot]);
        assert!(holds == was.0 || holds == was.1, "{slot}: {holds} {was:?}");
    }
    assert_eq!(
        byte_at(&mut driver, round * 8),
        0,
        "torn, as it was not flushed"
    );
}

#[test]
fn a_drive_that_vanishes_is_ones_and_comes_back_with_its_data() {
    let ram = ram();
    let mut driver = with(&ram, "");
    let mut mix = Mix::new(1 << 16, 7);
    driver.grant_host_memory(HMB_BYTES, false).expect("a grant");
    mix.run(&mut driver, 500, 16);
    mix.finish(&mut driver);
    run(&mut driver, FLUSH, 0, 0).expect("a flush");
    let start_ps = driver.port.now_ps;
    let lent = driver.host_memory(HMB_BYTES);
    act(&mut driver, "vanish 5ms");
    for at in [offset::CAP, offset::CC, offset::CSTS] {
        assert_eq!(driver.port.read(at), GONE);
    }
    driver.port.write(offset::CC, 4 << 20 | 6 << 16 | 1);
    assert!(driver.port.controller.plight().gone);
    while driver.port.read(offset::CSTS) == GONE {
        assert!(driver.port.wait());
    }
    assert!(driver.port.now_ps >= start_ps + 5 * MS);
    assert_eq!(driver.port.read(offset::CC), 0, "as after power on");
    assert!(
        driver.host_memory(HMB_BYTES) == lent,
        "touched while it was away"
    );
    again(&mut driver);
    mix.check_all(&mut driver);
    // For good, until it is told to come back.
    act(&mut driver, "vanish");
    driver.port.now_ps += 1000 * MS;
    driver.port.wait();
    assert_eq!(driver.port.read(offset::CSTS), GONE);
    act(&mut driver, "return");
    again(&mut driver);
    mix.check_all(&mut driver);
}

#[test]
fn a_drive_that_vanishes_with_a_write_under_way_reads_the_host_no_more() {
    let ram = ram();
    let mut driver = with(&ram, "");
    run(&mut driver, WRITE, 0, 1).expect("a write");
    run(&mut driver, FLUSH, 0, 0).expect("a flush");
    let write = driver.entry(1, WRITE, 0, 8);
    let buffer = driver.io[0].buffer(write.command().0);
    ram.write(buffer, &[2; 4096]).unwrap();
    driver.submit(1, write);
    let now_ps = driver.port.now_ps;
    driver.port.controller.poll(now_ps);
    assert!(driver.port.controller.is_waited_for(), "it is under way");
    act(&mut driver, "vanish 5ms");
    // The host has its memory back.
    ram.write(buffer, &[3; 4096]).unwrap();
    while driver.port.read(offset::CSTS) == GONE {
        assert!(driver.port.wait());
    }
    again(&mut driver);
    let holds = byte_at(&mut driver, 0);
    assert!(matches!(holds, 1 | 2), "{holds}");
}

#[test]
fn a_stall_holds_everything_up_for_its_time() {
    let took = |stall: bool| {
        let ram = ram();
        let mut driver = with(
            &ram,
            if stall {
                "stall 9ms opcode=read skip=1"
            } else {
                ""
            },
        );
        run(&mut driver, READ, 0, 0).expect("a read");
        let start_ps = driver.port.now_ps;
        run(&mut driver, READ, 0, 0).expect("a read");
        driver.port.now_ps - start_ps
    };
    let (plain_ps, stalled_ps) = (took(false), took(true));
    assert_eq!(stalled_ps, plain_ps + 9 * MS);
    let ram = ram();
    let mut driver = with(&ram, "");
    act(&mut driver, "stall");
    driver.port.write(offset::CC, 0);
    for _ in 0..100 {
        driver.port.wait();
    }
    assert_eq!(driver.port.read(offset::CSTS) & 1, 1, "no reset ends");
    act(&mut driver, "resume");
    again(&mut driver);
    run(&mut driver, READ, 0, 0).expect("a read");
}

#[test]
fn a_read_only_drive_says_so_and_keeps_what_it_has() {
    let ram = ram();
    let mut driver = with(&ram, "");
    run(&mut driver, WRITE, 0, 5).expect("a write");
    assert_eq!(driver.log(2, 512)[0], 0);
    act(&mut driver, "read-only");
    for opcode in [WRITE, 8] {
        let ended = run(&mut driver, opcode, 0, 6);
        assert!(ended.is_err_and(|status| status.is(Status::WRITE_FAULT)));
    }
    let format = driver.admin(0x80, 1, &[0]);
    assert!(format.is_err_and(|status| status.is(Status::WRITE_FAULT)));
    assert_eq!(driver.log(2, 512)[0], 1 << 3, "the health page warns");
    assert_eq!(byte_at(&mut driver, 0), 5);
    act(&mut driver, "writable");
    run(&mut driver, WRITE, 0, 6).expect("a write");
    assert_eq!(driver.log(2, 512)[0], 0);
}

#[test]
fn a_hot_drive_takes_commands_one_after_the_other() {
    let ram = ram();
    let mut driver = with(&ram, "");
    let took = |driver: &mut Drive<'_>| {
        let start_ps = driver.port.now_ps;
        for lba in 0..20 {
            let entry = driver.entry(1, READ, lba * 8, 8);
            driver.submit(1, entry);
        }
        let mut ended = 0;
        loop {
            ended += driver.reap(1).len();
            if ended == 20 {
                return driver.port.now_ps - start_ps;
            }
            assert!(driver.port.wait());
        }
    };
    assert!(took(&mut driver) < 10 * MS);
    act(&mut driver, "throttle 1ms");
    let slow_ps = took(&mut driver);
    assert!((19 * MS..21 * MS).contains(&slow_ps), "{slow_ps}");
    let health = driver.log(2, 512);
    assert_eq!(health[0], 1 << 1, "it warns");
    assert!(u16::from_le_bytes([health[1], health[2]]) > 343);
    assert_eq!(health[220], 1, "one time");
    act(&mut driver, "cool");
    driver.port.now_ps += 100 * MS;
    assert!(took(&mut driver) < 10 * MS);
    assert_eq!(driver.log(2, 512)[0], 0);
}

/// Acts that found nothing to do anything to were said to be done, and counted.
#[test]
fn an_act_that_finds_nothing_is_refused_and_not_counted() {
    let ram = ram();
    let mut driver = with(&ram, "");
    let nothing = [
        "touch former",
        "touch inside",
        "touch beside",
        "corrupt 8",
        "withdraw",
        "return",
        "resume",
        "writable",
        "cool",
    ];
    let told = |driver: &mut Drive<'_>, line: &str| {
        let controller = &mut driver.port.controller;
        let answer = lodger_serve::control::answer(line.as_bytes(), controller, 1, true);
        driver.port.wait();
        answer
    };
    for what in nothing {
        let answer = told(&mut driver, &format!("do {what}"));
        assert!(answer.contains("would do nothing"), "{what}: {answer}");
        act(&mut driver, what);
    }
    assert_eq!(driver.port.controller.plight().acts, 0);
    driver.grant_host_memory(HMB_BYTES, false).expect("a grant");
    for what in ["stall", "read-only", "throttle 1ms"]
        .into_iter()
        .chain(nothing)
    {
        if !what.starts_with("return") {
            let answer = told(&mut driver, &format!("do {what}"));
            assert!(answer.contains("\"ok\":true"), "{what}: {answer}");
        }
    }
    assert_eq!(driver.port.controller.plight().acts, 11);
}

#[test]
fn a_host_that_asks_hears_of_heat() {
    for asks in [true, false] {
        let ram = ram();
        let mut driver = with(&ram, "throttle 1us at=5ms");
        driver
            .admin(9, 0, &[0xb, if asks { 1 << 1 } else { 0 }])
            .expect("Asynchronous Event Configuration");
        let command = lodger_wire::CommandId(driver.free_command(0));
        let none = lodger_wire::NamespaceId::NONE;
        let entry = lodger_wire::entry::SubmissionEntry::new(0xc, command, none);
        driver.submit(0, entry);
        driver.port.wait();
        assert!(driver.reap(0).is_empty(), "before its time");
        driver.port.now_ps = 5 * MS;
        driver.port.wait();
        let told = driver.reap(0);
        assert_eq!(told.len(), usize::from(asks));
        assert!(
            told.iter()
                .all(|(_, outcome)| outcome.result as u32 & 0xffff == 0x101)
        );
    }
}

#[test]
fn host_memory_is_corrupted_withdrawn_and_no_byte_is_wrong() {
    for what in ["corrupt 4000", "withdraw"] {
        let ram = ram();
        let mut driver = with(&ram, "");
        driver.grant_host_memory(HMB_BYTES, false).expect("a grant");
        let mut mix = Mix::new(1 << 19, 11);
        mix.run(&mut driver, 2000, 16);
        let before = driver.host_memory(HMB_BYTES);
        act(&mut driver, what);
        assert_eq!(driver.host_memory(HMB_BYTES) != before, what != "withdraw");
        assert_eq!(
            driver.port.controller.plight().withdrawn,
            what == "withdraw"
        );
        mix.run(&mut driver, 2000, 16);
        mix.finish(&mut driver);
        let device = driver.port.controller.device();
        let failures = driver.port.controller.look().hmb_failures;
        let rejected = device.counters().map.rejected_entries;
        match what {
            "withdraw" => assert!(failures > 0),
            _ => assert!(rejected > 0),
        }
        mix.check_all(&mut driver);
        driver.take_host_memory_back().expect("back");
        driver.grant_host_memory(HMB_BYTES, false).expect("anew");
        assert!(!driver.port.controller.plight().withdrawn);
        mix.run(&mut driver, 500, 16);
        mix.check_all(&mut driver);
    }
}

#[test]
fn answers_are_changed_where_a_rule_says_and_commands_done_or_not() {
    let ram = ram();
    let rules = "answer 0x00030003 opcode=set-features dword10=9/0xff\n\
                 change 4 6c6f7374 opcode=identify dword10=1/0xff\n\
                 pretend opcode=write lba=64\n\
                 change 4090 ffffff opcode=read lba=72";
    let mut driver = with(&ram, rules);
    let vector = driver.admin(9, 0, &[9, 1]);
    assert_eq!(vector, Ok(0x3_0003), "another number");
    assert_eq!(&driver.identify(1, 0)[4..9], b"lostE", "the serial number");
    run(&mut driver, WRITE, 64, 9).expect("it says so");
    assert_eq!(byte_at(&mut driver, 64), 0, "and has not written");
    run(&mut driver, WRITE, 72, 9).expect("a write");
    let entry = driver.entry(1, READ, 72, 8);
    let buffer = driver.io[0].buffer(entry.command().0);
    driver.run(1, entry).expect("a read");
    let mut bytes = [0; 4097];
    driver.port.memory().read(buffer, &mut bytes).unwrap();
    assert_eq!(bytes[4088..4095], [9, 9, 255, 255, 255, 9, 9]);
    // A failure stays one.
    assert!(driver.admin(9, 0, &[9, 0xffff]).is_err());
}

#[test]
fn rules_wait_for_times_depths_sizes_and_grants() {
    let gone = |rules: &str, does: &dyn Fn(&mut Drive<'_>)| {
        let ram = ram();
        let mut driver = with(&ram, rules);
        does(&mut driver);
        driver.port.controller.poll(driver.port.now_ps);
        driver.port.read(offset::CSTS) == GONE
    };
    let at = |ms: u64| {
        move |driver: &mut Drive<'_>| {
            driver.port.now_ps = ms * MS;
            driver.port.controller.poll(driver.port.now_ps);
        }
    };
    assert!(!gone("vanish at=50ms", &at(49)));
    assert!(gone("vanish at=50ms", &at(50)));
    assert!(!gone("vanish at=50ms granted=64KiB", &at(60)));
    let write = |pages: u64| {
        move |driver: &mut Drive<'_>| {
            for page in 0..pages {
                let entry = driver.entry(1, WRITE, page * 8, 8);
                driver.submit(1, entry);
                while driver.reap(1).is_empty() {
                    driver.port.wait();
                    if driver.port.read(offset::CSTS) == GONE {
                        return;
                    }
                }
            }
        }
    };
    // The rule looks as the command after those comes.
    assert!(!gone("vanish written=16KiB", &write(4)));
    assert!(gone("vanish written=16KiB", &write(5)));
    let grant = |driver: &mut Drive<'_>| {
        driver.grant_host_memory(HMB_BYTES, false).expect("a grant");
    };
    assert!(gone("vanish on=grant granted=256KiB pieces=8", &grant));
    assert!(!gone("vanish on=grant granted=257KiB", &grant));
    assert!(!gone("vanish on=grant pieces=9", &grant));
    assert!(!gone("vanish on=take-back", &grant));
    let back = |driver: &mut Drive<'_>| {
        driver.grant_host_memory(HMB_BYTES, false).expect("a grant");
        driver.take_host_memory_back().expect("back");
    };
    assert!(gone("vanish on=take-back granted=none", &back));
    let touch = |place: &str| {
        let ram = ram();
        let mut driver = with(&ram, "");
        driver.grant_host_memory(HMB_BYTES, false).expect("a grant");
        act(&mut driver, &format!("touch {place}"));
        let mut bytes = [0; 6];
        let beside = HMB_AT + 7 * (64 << 10) + (32 << 10);
        [HMB_AT, beside].map(|at| {
            driver.port.memory().read(at, &mut bytes).unwrap();
            &bytes == b"lodger"
        })
    };
    assert_eq!(touch("inside"), [true, false]);
    assert_eq!(touch("former"), [true, false]);
    assert_eq!(touch("beside"), [false, true]);
}

/// Who does not wait for the drive has it run ahead: not past what is to happen at a time, nor past the program operation
/// that a rule waits for.
#[test]
fn a_drive_that_runs_to_its_answers_stops_for_acts() {
    let under_way = |driver: &mut Drive<'_>, opcode| {
        let entry = driver.entry(1, opcode, 0, 8);
        driver.submit(1, entry);
        driver.port.controller.poll(driver.port.now_ps);
        assert!(driver.port.controller.is_waited_for(), "it is under way");
    };
    let ram = ram();
    let mut driver = with(&ram, "vanish at=50ms");
    run(&mut driver, WRITE, 0, 1).expect("a write");
    run(&mut driver, FLUSH, 0, 0).expect("a flush");
    // A read of flash takes longer than what is left.
    driver.port.now_ps = 50 * MS - 5_000_000;
    driver.port.controller.poll(driver.port.now_ps);
    under_way(&mut driver, READ);
    while driver.port.now_ps < 50 * MS {
        let next_ps = driver.port.controller.run_to_answers(1000);
        driver.port.now_ps = next_ps.expect("something is due");
        driver.port.controller.poll(driver.port.now_ps);
    }
    assert_eq!(driver.port.now_ps, 50 * MS);
    assert_eq!(driver.port.read(offset::CSTS), GONE);
    assert!(driver.reap(1).is_empty(), "no answer");

    let mut driver = with(&ram, "power-cut on=program");
    under_way(&mut driver, WRITE);
    let before_ps = driver.port.controller.now_ps();
    driver.port.controller.run_to_answers(1000);
    assert_eq!(driver.port.controller.now_ps(), before_ps, "step by step");
}
