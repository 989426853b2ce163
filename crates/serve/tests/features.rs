//! Do features keep what they are to keep, and do power states take the time they say? In simulated time.

mod driver;
mod simulated;

use driver::{Driver, HMB_AT, Port, number};
use lodger_core::Precondition;
use lodger_serve::controller::Settings;
use lodger_wire::entry::SubmissionEntry;
use lodger_wire::memory::{GuestMemory, Ram};
use lodger_wire::registers::offset;
use lodger_wire::status::Status;
use lodger_wire::{CommandId, NamespaceId};
use simulated::{Simulated, ram, spec};

const SET: u8 = 9;
const GET: u8 = 0xa;
const SAVE: u32 = 1 << 31;
const SAVED: u32 = 2 << 8;
const THRESHOLD: u32 = 4;
const POWER: u32 = 2;
const TRANSITIONS: u32 = 0xc;
const PS_PER_MS: u64 = 1_000_000_000;

fn get(driver: &mut Driver<Simulated<'_>>, feature: u32) -> u32 {
    driver.admin(GET, 0, &[feature]).expect("Get Features")
}

fn read_takes_ps(driver: &mut Driver<Simulated<'_>>) -> u64 {
    let from_ps = driver.port.now_ps;
    let entry = driver.entry(1, 2, 0, 8);
    driver.run(1, entry).expect("a read");
    driver.port.now_ps - from_ps
}

/// `nvme set-feature -f 9 -v 0x10001`.
#[test]
fn a_vector_that_is_not_to_wait_does_not_until_a_reset() {
    const VECTOR: u32 = 9;
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    let never = |driver: &Driver<Simulated<'_>>| !driver.port.controller.vectors_that_may_wait();
    assert_eq!(never(&driver), 0);
    for vector in [1, 63] {
        let dword = 1 << 16 | vector;
        driver.admin(SET, 0, &[VECTOR, dword]).expect("a vector");
    }
    assert_eq!(never(&driver), 1 << 63 | 1 << 1);
    driver.admin(SET, 0, &[VECTOR, 63]).expect("it may again");
    assert_eq!(never(&driver), 1 << 1);
    driver.enable();
    assert_eq!(never(&driver), 0);
}

#[test]
fn what_is_saved_outlasts_a_reset_and_nothing_else_does() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    assert_eq!(
        get(&mut driver, SAVED | THRESHOLD),
        343,
        "nothing was saved"
    );
    assert_eq!(get(&mut driver, 3 << 8 | THRESHOLD), 0b101);
    assert_eq!(get(&mut driver, 3 << 8 | 7), 0b100, "Number of Queues");
    driver
        .admin(SET, 0, &[SAVE | THRESHOLD, 350])
        .expect("saved");
    driver.admin(SET, 0, &[THRESHOLD, 340]).expect("not saved");
    driver
        .admin(SET, 0, &[SAVE | 6, 0])
        .expect("no write cache");
    assert_eq!(get(&mut driver, THRESHOLD), 340);
    assert_eq!(get(&mut driver, SAVED | THRESHOLD), 350);
    assert_eq!(get(&mut driver, 1 << 8 | THRESHOLD), 343);
    driver.enable();
    assert_eq!(get(&mut driver, THRESHOLD), 350);
    assert_eq!(get(&mut driver, 6), 0);
    for not_saveable in [7, 0xd, 0x81] {
        let ended = driver.admin(SET, 0, &[SAVE | not_saveable, 1]);
        assert!(ended.is_err_and(|status| status.is(Status::FEATURE_NOT_SAVEABLE)));
    }
}

#[test]
fn a_state_without_io_is_left_for_a_command_that_waits_for_it() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    let identity = driver.port.controller.identity_mut();
    identity.assign("PSD1.EXLAT=7000").expect("7 ms");
    driver.enable();
    driver.create_queues(1);
    let awake_ps = read_takes_ps(&mut driver);
    driver.admin(SET, 0, &[POWER, 1]).expect("state 1");
    assert_eq!(get(&mut driver, POWER), 1, "admin commands do not wake it");
    assert_eq!(read_takes_ps(&mut driver), 7 * PS_PER_MS + awake_ps);
    assert_eq!(get(&mut driver, POWER), 0, "back in state 0");
    assert_eq!(read_takes_ps(&mut driver), awake_ps);
    let ended = driver.admin(SET, 0, &[POWER, 2]);
    assert!(ended.is_err_and(|status| status.is(Status::INVALID_FIELD)));
    driver.admin(SET, 0, &[POWER, 1]).expect("state 1");
    driver.enable();
    assert_eq!(get(&mut driver, POWER), 0, "a reset wakes it");
}

/// Sets a table in which state 0 goes to another after some time.
fn set_table(driver: &mut Driver<Simulated<'_>>, state: u64, idle_ms: u64) -> Result<u32, Status> {
    let mut table = [0; 256];
    table[..8].copy_from_slice(&(state << 3 | idle_ms << 8).to_le_bytes());
    // Where admin commands have their data.
    driver.port.memory().write(0x4000, &table).unwrap();
    driver.admin(SET, 0, &[TRANSITIONS, 1])
}

#[test]
fn an_idle_drive_rests_as_the_hosts_table_says() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    let identity = driver.port.controller.identity_mut();
    identity.assign("PSD1.EXLAT=3000").expect("3 ms");
    driver.enable();
    driver.create_queues(1);
    let awake_ps = read_takes_ps(&mut driver);
    for (state, idle_ms) in [(0, 100), (2, 100), (31, 1)] {
        let ended = set_table(&mut driver, state, idle_ms);
        assert!(ended.is_err_and(|status| status.is(Status::INVALID_FIELD)));
    }
    set_table(&mut driver, 1, 100).expect("a table");
    read_takes_ps(&mut driver);
    let idle_ps = driver.port.now_ps;
    driver
        .port
        .controller
        .poll(idle_ps + 100 * PS_PER_MS - 1_000_000);
    assert_eq!(get(&mut driver, POWER), 0, "not yet");
    driver.port.now_ps = idle_ps + 100 * PS_PER_MS;
    driver.port.controller.poll(driver.port.now_ps);
    assert_eq!(get(&mut driver, POWER), 1, "after 100 ms");
    driver.port.now_ps += 500 * PS_PER_MS;
    driver
        .admin(SET, 0, &[POWER, 0])
        .expect("awake, for 100 ms more");
    assert_eq!(get(&mut driver, POWER), 0);
    driver.port.now_ps += 101 * PS_PER_MS;
    driver.port.controller.poll(driver.port.now_ps);
    assert_eq!(read_takes_ps(&mut driver), 3 * PS_PER_MS + awake_ps);
}

/// The drive's accesses to host memory so far, bytes.
fn touched(driver: &Driver<Simulated<'_>>) -> u64 {
    let look = driver.port.controller.look();
    look.hmb_read_bytes + look.hmb_written_bytes
}

/// A drive asked to rest in the middle of writes, with host memory granted by the flags of Set Features.
fn resting<'a>(ram: &'a Ram, flags: u32) -> Driver<Simulated<'a>> {
    let spec = spec(&[
        ("role.write_buffer.tier", "hmb"),
        ("tier.hmb.preferred", "1MiB"),
        ("tier.hmb.integrity", "mac"),
    ]);
    let mut driver = Simulated::driver(&spec, ram);
    driver.enable();
    driver.create_queues(1);
    driver
        .grant_host_memory_with(1 << 20, flags)
        .expect("host memory");
    for lba in 0..20 {
        let entry = driver.entry(1, 1, lba * 8, 8);
        driver.submit(1, entry);
    }
    driver.port.controller.poll(driver.port.now_ps);
    driver.admin(SET, 0, &[POWER, 1]).expect("state 1");
    driver
}

#[test]
fn a_drive_that_rests_keeps_off_restricted_host_memory() {
    // Enabled, and with HMNARE: bit 3 says in Get Features that it is not touched now.
    for (flags, says, is_touched) in [(0b001, 0b0001, true), (0b101, 0b1101, false)] {
        let ram = ram();
        let mut driver = resting(&ram, flags);
        let before = touched(&driver);
        assert_eq!(get(&mut driver, 0xd), says);
        driver.port.now_ps += 10_000 * PS_PER_MS;
        driver.port.controller.poll(driver.port.now_ps);
        assert_eq!(get(&mut driver, POWER), 1, "no command has come");
        assert_eq!(touched(&driver) > before, is_touched, "flags {flags:#b}");
        driver
            .take_host_memory_back()
            .expect("what is there is saved");
        let is_awake = get(&mut driver, POWER) == 0;
        assert_eq!(
            is_awake, !is_touched,
            "to save it, a restricted drive wakes"
        );
    }
}

#[test]
fn a_drive_that_waits_for_rest_is_reset_like_any() {
    let ram = ram();
    let mut driver = resting(&ram, 0b101);
    let write = driver.entry(1, 1, 0, 8);
    driver.submit(1, write);
    driver.port.controller.poll(driver.port.now_ps);
    let command = CommandId(driver.free_command(0));
    let ask = SubmissionEntry::new(SET, command, NamespaceId(0)).with_dword(10, POWER);
    driver.submit(0, ask.with_dword(11, 1));
    driver.port.controller.poll(driver.port.now_ps);
    assert!(driver.reap(0).is_empty(), "the write is under way");
    driver.enable();
    assert_eq!(get(&mut driver, POWER), 0);
    assert_eq!(get(&mut driver, 0xd), 0);
}

/// Number of Queues could be set while there were queues, and queues be made beyond what was granted.
#[test]
fn there_are_as_many_queues_as_were_granted_and_that_is_settled_before() {
    let ram = ram();
    let mut driver = Simulated::driver(&spec(&[]), &ram);
    driver.enable();
    let queue = |driver: &mut Driver<Simulated<'_>>, opcode, id: u32, second| {
        let at = HMB_AT + u64::from(id) * 0x2000 + u64::from(opcode == 1) * 0x1000;
        driver.create(opcode, at, &[15 << 16 | id, second])
    };
    let beyond = Err(Status::QUEUE_ID_INVALID.with_more());
    assert_eq!(driver.admin(9, 0, &[7, 1]), Ok(1), "two and one");
    assert_eq!(queue(&mut driver, 5, 2, 1), beyond);
    assert_eq!(queue(&mut driver, 5, 1, 1), Ok(0));
    assert_eq!(queue(&mut driver, 1, 3, 1 << 16 | 1), beyond);
    assert_eq!(queue(&mut driver, 1, 2, 1 << 16 | 1), Ok(0));
    let late = driver.admin(9, 0, &[7, 0x1_0001]);
    assert_eq!(late, Err(Status::COMMAND_SEQUENCE_ERROR.with_more()));
    assert_eq!(get(&mut driver, 7), 1);
    // Who does not ask may have all there can be.
    driver.enable();
    assert_eq!(queue(&mut driver, 5, 64, 1), beyond);
    assert_eq!(queue(&mut driver, 5, 63, 1), Ok(0));
    assert_eq!(queue(&mut driver, 1, 63, 63 << 16 | 1), Ok(0));
}

const EVENTS: u32 = 0xb;
/// Over and under, by the composite sensor.
const UNDER: u32 = 1 << 20;

/// Critical Warning and composite temperature of the health page.
fn warns_at(driver: &mut Driver<Simulated<'_>>) -> (u8, u64) {
    let page = driver.log(2, 512);
    (page[0], number(&page, 1, 2))
}

/// A threshold that the host had set changed nothing: a drive was hot at 348 K, and else not.
#[test]
fn a_temperature_beyond_a_threshold_of_the_host_is_a_warning_and_an_event() {
    let ram = ram();
    let mut driver = Simulated::driver(&spec(&[]), &ram);
    driver.enable();
    let set = |driver: &mut Driver<Simulated<'_>>, feature, value| {
        driver
            .admin(SET, 0, &[feature, value])
            .expect("Set Features")
    };
    assert_eq!(warns_at(&mut driver), (0, 313));
    for (threshold, warning) in [(313, 2), (314, 0), (UNDER | 313, 2), (UNDER | 312, 0)] {
        set(&mut driver, THRESHOLD, threshold);
        assert_eq!(warns_at(&mut driver), (warning, 313), "{threshold:x}");
    }
    set(&mut driver, EVENTS, 2);
    let asks = CommandId(driver.free_command(0));
    driver.submit(0, SubmissionEntry::new(0xc, asks, NamespaceId::NONE));
    driver.port.wait();
    assert!(driver.reap(0).is_empty(), "it is between them");
    let sets = CommandId(driver.free_command(0));
    let entry = SubmissionEntry::new(SET, sets, NamespaceId::NONE).with_dword(10, THRESHOLD);
    driver.submit(0, entry.with_dword(11, 313));
    driver.port.wait();
    let told = driver.reap(0).into_iter().find(|(of, _)| *of == asks.0);
    assert_eq!(told.map(|(_, outcome)| outcome.result), Some(0x0002_0101));
    set(&mut driver, THRESHOLD, UNDER);
    // What throttles is 348 K warm, whatever the host thinks of it.
    let act = |driver: &mut Driver<Simulated<'_>>, act| {
        let due = lodger_serve::faults::parse_act(act).expect("an act");
        assert!(driver.port.controller.act(due));
        driver.port.wait();
    };
    for (threshold, warning) in [(349, 0), (348, 2), (15 << 16 | 349, 0)] {
        set(&mut driver, THRESHOLD, threshold);
        act(&mut driver, "throttle 1ms");
        assert_eq!(warns_at(&mut driver), (warning, 348), "{threshold:x}");
    }
}

#[test]
fn requests_for_events_do_not_stop_an_admin_queue_that_is_as_short_as_they_are_many() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    for (entries, requests) in [(2, 1), (2, 4), (4, 3), (4, 4), (32, 4)] {
        driver.enable_with(entries);
        let request = |id| SubmissionEntry::new(0xc, CommandId(id), NamespaceId::NONE);
        for id in 0..requests {
            driver.submit(0, request(100 + id));
            driver.port.wait();
        }
        driver.identify(1, 0);
        if requests == 4 {
            let fifth = driver.run(0, request(200));
            assert_eq!(fifth, Err(Status::ASYNC_EVENT_LIMIT_EXCEEDED.with_more()));
        }
        // A doorbell of no queue is an event; its completion finds room once the host makes some.
        driver.port.write(offset::DOORBELLS + 8 * 9, 0);
        let told = loop {
            if let Some(told) = driver.reap(0).pop() {
                break told;
            }
            assert!(driver.port.wait(), "an event, with {entries} entries");
        };
        assert_eq!((told.0, told.1.status), (100, Status::SUCCESS));
        if requests > 1 {
            // The second is aborted, if there is room for its completion beside that of Abort.
            let abort = SubmissionEntry::new(8, CommandId(300), NamespaceId::NONE);
            driver.submit(0, abort.with_dword(10, 101 << 16));
            let mut ended = Vec::new();
            while ended.last().is_none_or(|(command, _)| *command != 300) {
                assert!(driver.port.wait(), "{ended:?}");
                ended.extend(driver.reap(0));
            }
            let has_room = entries > 2;
            assert_eq!(ended.len(), 1 + usize::from(has_room));
            assert_eq!(ended[0].1.status == Status::SUCCESS, !has_room);
            assert_eq!(ended.last().unwrap().1.result, u64::from(!has_room));
        }
    }
}

/// It said for ever what a host had set, and 0 before.
#[test]
fn a_timestamp_goes_on_with_the_drives_time() {
    const TIMESTAMP: u32 = 0xe;
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    let get = |driver: &mut Driver<Simulated<'_>>, select: u32| {
        driver
            .admin(GET, 0, &[select | TIMESTAMP])
            .expect("Get Features");
        let bytes = driver.scratch();
        (number(&bytes, 0, 6), bytes[6])
    };
    let pass = |driver: &mut Driver<Simulated<'_>>, ms: u64| {
        driver.port.now_ps += ms * PS_PER_MS;
        driver.port.controller.poll(driver.port.now_ps);
    };
    let set = |driver: &mut Driver<Simulated<'_>>, ms: u64| {
        // The attributes are the drive's to say.
        let bytes = (ms | 0xff << 48).to_le_bytes();
        driver.port.memory().write(0x4000, &bytes).unwrap();
        driver.admin(SET, 0, &[TIMESTAMP]).expect("Set Features");
    };
    pass(&mut driver, 1500);
    assert_eq!(get(&mut driver, 0), (1500, 0), "since power on");
    set(&mut driver, 1_700_000_000_000);
    assert_eq!(get(&mut driver, 0), (1_700_000_000_000, 2), "by the host");
    pass(&mut driver, 2345);
    assert_eq!(get(&mut driver, 0), (1_700_000_002_345, 2));
    assert_eq!(get(&mut driver, 1 << 8), (0, 0), "at first");
    set(&mut driver, (1 << 48) - 1);
    pass(&mut driver, 3);
    assert_eq!(get(&mut driver, 0), (2, 2), "48 bits");
    driver.enable();
    pass(&mut driver, 7);
    assert_eq!(get(&mut driver, 0), (7, 0), "since the reset");
}

/// Values that mean nothing, or nothing here, were taken, and given back.
#[test]
fn what_is_reserved_or_not_there_is_refused() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    let refused = Err(Status::INVALID_FIELD.with_more());
    // Non-operational power state permissive mode, which CTRATT has not.
    assert_eq!(driver.admin(SET, 0, &[0x11, 1]), refused);
    assert_eq!(driver.admin(SET, 0, &[0x11, 0]), Ok(0));
    for (feature, dword11) in [
        (9, 64),
        (9, 0xffff),
        (THRESHOLD, 2 << 20),
        (THRESHOLD, 3 << 20),
        (THRESHOLD, 9 << 16),
        (THRESHOLD, 15 << 16),
    ] {
        assert_eq!(driver.admin(GET, 0, &[feature, dword11]), refused);
    }
    assert_eq!(driver.admin(GET, 0, &[9, 63]), Ok(63));
    // A threshold says which it is, before it is set and after.
    for (which, kelvin) in [(0, 343), (UNDER, 0), (1 << 16, 343), (UNDER | 2 << 16, 0)] {
        let before = driver.admin(GET, 0, &[THRESHOLD, which]);
        assert_eq!(before, Ok(which | kelvin));
        driver
            .admin(SET, 0, &[THRESHOLD, which | 300])
            .expect("a threshold");
        let after = driver.admin(GET, 0, &[THRESHOLD, which]);
        assert_eq!(after, Ok(which | 300));
    }
    // Bits of events that there are not ask for nothing.
    driver.admin(SET, 0, &[EVENTS, u32::MAX]).expect("events");
    assert_eq!(get(&mut driver, EVENTS), 0x33f);
    // Each byte of Host Behavior Support is 0 or 1.
    for (at, value, ends) in [
        (0, 1, Ok(0)),
        (0, 2, refused),
        (1, 2, refused),
        (2, 255, refused),
    ] {
        let mut bytes = [0; 512];
        bytes[at] = value;
        driver.port.memory().write(0x4000, &bytes).unwrap();
        assert_eq!(driver.admin(SET, 0, &[0x16]), ends, "{value} at {at}");
    }
}

/// A request for an event, which waits.
fn ask(driver: &mut Driver<Simulated<'_>>) {
    let asks = CommandId(driver.free_command(0));
    driver.submit(0, SubmissionEntry::new(0xc, asks, NamespaceId::NONE));
    driver.port.wait();
}

/// Sets a feature, and returns what a request for an event that waits has heard by then.
fn hears(driver: &mut Driver<Simulated<'_>>, feature: u32, value: u32) -> Option<u64> {
    let sets = CommandId(driver.free_command(0));
    let entry = SubmissionEntry::new(SET, sets, NamespaceId::NONE).with_dword(10, feature);
    driver.submit(0, entry.with_dword(11, value));
    let mut ended = Vec::new();
    for _ in 0..10 {
        driver.port.wait();
        ended.extend(driver.reap(0));
    }
    assert!(ended.iter().any(|(command, _)| *command == sets.0));
    let mut events = ended.into_iter().filter(|(of, _)| *of != sets.0);
    events.next().map(|(_, outcome)| outcome.result)
}

/// A host that asked too late, or anew after a reset, heard nothing of what held already.
#[test]
fn what_holds_as_the_host_begins_to_ask_for_it_is_an_event() {
    let (hot, reliability) = (Some(0x0002_0101), Some(0x0002_0001));
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    ask(&mut driver);
    assert_eq!(hears(&mut driver, THRESHOLD, 300), None, "not asked for");
    assert_eq!(hears(&mut driver, EVENTS, 0x3d), None, "of other warnings");
    assert_eq!(hears(&mut driver, EVENTS, 2), hot);
    driver.log(2, 512);
    ask(&mut driver);
    assert_eq!(hears(&mut driver, EVENTS, 3), None, "it was asked for");
    let due = lodger_serve::faults::parse_act("read-only").expect("an act");
    assert!(driver.port.controller.act(due));
    driver.port.wait();
    assert_eq!(hears(&mut driver, EVENTS, 0xa), reliability);
    // A reset takes away what was asked for, and it is asked for anew.
    driver.enable();
    ask(&mut driver);
    assert_eq!(hears(&mut driver, THRESHOLD, 300), None);
    assert_eq!(hears(&mut driver, EVENTS, 8), reliability);
    driver.log(2, 512);
    driver
        .admin(SET, 0, &[SAVE | EVENTS, 8])
        .expect("asked for after resets, too");
    driver.enable();
    ask(&mut driver);
    driver.port.wait();
    let told = driver.reap(0).pop().map(|(_, outcome)| outcome.result);
    assert_eq!(told, reliability);
}

/// A host that had asked before heard nothing: neither as spare blocks ran short, nor at the end of the drive's life.
#[test]
fn a_host_hears_that_spare_runs_short_and_that_the_drive_takes_no_more_writes() {
    let keys = [
        ("capacity", "256MiB"),
        ("nand.pages_per_block", "24"),
        ("nand.page_size", "4KiB"),
        ("nand.planes", "1"),
        ("ftl.overprovisioning", "0.07"),
        ("nand.ageing.spare_blocks", "4"),
        ("nand.ageing.factory_bad", "0"),
        ("nand.ageing.acceleration", "1000"),
        ("nand.ageing.program_failures", "1"),
    ];
    let file = include_str!("../../../drives/aging-tlc.toml");
    let base = include_str!("../../../drives/a1000.toml");
    let base = |name: &str| (name == "a1000").then(|| base.to_owned());
    let parsed = lodger_core::spec::parse(file, "aging-tlc.toml", &keys, &base);
    let (ram, spec) = (ram(), parsed.expect("a drive").spec);
    let settings = Settings {
        precondition: Precondition::Random,
        ..Settings::default()
    };
    let mut driver = Simulated::driver_of(&spec, &settings, &ram);
    driver.enable();
    driver.admin(SET, 0, &[EVENTS, 0x3f]).expect("asked for");
    driver.create_queues(1);
    ask(&mut driver);
    ask(&mut driver);
    let (mut heard, mut writes) = (Vec::new(), 0);
    let ended = loop {
        let entry = driver.entry(1, 1, writes * 37 % 4800 * 32, 32);
        let ended = driver.run(1, entry);
        for (_, event) in driver.reap(0) {
            let health = driver.log(2, 512);
            println!("write {writes}: {:x}, {} % spare", event.result, health[3]);
            heard.push((event.result, health[0]));
        }
        if ended.is_err() || writes == 20_000 {
            break ended;
        }
        writes += 1;
    };
    println!("{writes} writes, {ended:?}");
    let spare = (0x0002_0201, 1);
    let end_of_life = (0x0002_0001, 9);
    assert_eq!(heard, [spare, end_of_life]);
}
