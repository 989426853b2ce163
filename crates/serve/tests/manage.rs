//! Can a host make, delete, attach and detach namespaces, and is what one has held never to be seen in another? In simulated time.
//! The swarm (`tests/swarm`) does the same at random, beside a naive model.

mod driver;
mod kept;
mod simulated;

use driver::filled::{ask, held, write};
use driver::{Driver, Port, number};
use kept::SimDisk;
use lodger_core::DriveSpec;
use lodger_serve::backing::Backing;
use lodger_serve::controller::identity::Unservable;
use lodger_serve::controller::{Controller, Division, Settings};
use lodger_wire::entry::SubmissionEntry;
use lodger_wire::memory::{GuestMemory, Ram};
use lodger_wire::status::Status;
use lodger_wire::{CommandId, NamespaceId};
use simulated::{Simulated, ram, spec};
use std::sync::Arc;

const WRITE: u8 = 1;
const READ: u8 = 2;
const IDENTIFY: u8 = 6;
const MANAGE: u8 = 0xd;
const ATTACH: u8 = 0x15;
const FORMAT: u8 = 0x80;
const ALL: u32 = u32::MAX;
const MIB: u64 = 1 << 20;
/// Where the data of admin commands lies.
const DATA_AT: u64 = 0x4000;
/// Namespaces that the drive can have.
const MOST: u32 = 4;

type Guest<'a> = Driver<Simulated<'a>>;

/// A drive of 512 MiB.
fn managed() -> DriveSpec {
    spec(&[("controller.namespaces", "4")])
}

fn start<'a>(spec: &DriveSpec, sizes_bytes: &[u64], ram: &'a Ram) -> Guest<'a> {
    let settings = Settings {
        namespaces_bytes: sizes_bytes.to_vec(),
        ..Settings::default()
    };
    let mut driver = Simulated::driver_of(spec, &settings, ram);
    driver.enable();
    driver.create_queues(1);
    driver
}

/// An admin command whose data comes from the host.
fn told(
    driver: &mut Guest<'_>,
    opcode: u8,
    id: u32,
    dword10: u32,
    data: &[u8],
) -> Result<u32, Status> {
    let mut page = [0; 4096];
    page[..data.len()].copy_from_slice(data);
    driver.port.memory().write(DATA_AT, &page).unwrap();
    driver.admin(opcode, id, &[dword10])
}

/// What a host says of a namespace of that many blocks, of 512 bytes (format 0) or 4096 (1).
fn wanted(blocks: u64, format: u8) -> Vec<u8> {
    let mut data = [blocks.to_le_bytes(), blocks.to_le_bytes()].concat();
    data.resize(31, 0);
    data[26] = format;
    data
}

fn create(driver: &mut Guest<'_>, bytes: u64) -> Result<u32, Status> {
    told(driver, MANAGE, 0, 0, &wanted(bytes / 512, 0))
}

fn delete(driver: &mut Guest<'_>, id: u32) -> Result<u32, Status> {
    driver.admin(MANAGE, id, &[1])
}

/// To or from controller 0.
fn attach(driver: &mut Guest<'_>, id: u32, is_to_be: bool) -> Result<u32, Status> {
    told(driver, ATTACH, id, u32::from(!is_to_be), &[1, 0, 0, 0])
}

fn is<T: std::fmt::Debug>(ended: Result<T, Status>, status: Status) {
    assert!(driver::is(&ended, status), "{ended:?}, not {status:?}");
}

fn ids(driver: &mut Guest<'_>, cns: u32) -> Vec<u64> {
    let list = driver.identify(cns, 0);
    let all = (0..8).map(|at| number(&list, 4 * at, 4));
    all.take_while(|id| *id != 0).collect()
}

/// UNVMCAP, MiB.
fn left_mib(driver: &mut Guest<'_>) -> u64 {
    number(&driver.identify(1, 0), 296, 8) / MIB
}

#[test]
fn a_host_divides_the_drive_anew() {
    let (ram, spec) = (ram(), managed());
    let mut driver = start(&spec, &[], &ram);
    let controller = driver.identify(1, 0);
    assert_eq!(number(&controller, 256, 2) >> 3 & 1, 1, "OACS");
    assert_eq!(number(&controller, 516, 4), u64::from(MOST), "NN");
    assert_eq!((ids(&mut driver, 2), left_mib(&mut driver)), (vec![1], 0));
    is(
        create(&mut driver, MIB),
        Status::NAMESPACE_CAPACITY_INSUFFICIENT,
    );
    delete(&mut driver, 1).expect("it is deleted");
    assert_eq!(
        (ids(&mut driver, 0x10), left_mib(&mut driver)),
        (vec![], 512)
    );
    assert_eq!(create(&mut driver, 100 * MIB), Ok(1));
    assert_eq!(create(&mut driver, 10 * MIB), Ok(2));
    assert_eq!(left_mib(&mut driver), 402);
    // They are there, and of no use yet.
    assert_eq!(
        (ids(&mut driver, 0x10), ids(&mut driver, 2)),
        (vec![1, 2], vec![])
    );
    assert_eq!(driver.identify(0, 2), [0; 4096], "not active");
    assert_eq!(number(&driver.identify(0x11, 2), 0, 8), 20 << 10, "NSZE");
    assert_eq!(driver.identify(0x11, 3), [0; 4096], "not there");
    is(
        driver.admin(IDENTIFY, 5, &[0x11]),
        Status::INVALID_NAMESPACE,
    );
    is(
        ask(&mut driver, (2, READ), (0, 8), 0),
        Status::INVALID_FIELD,
    );
    assert_eq!(number(&driver.identify(0x12, 2), 0, 2), 0, "no controller");
    attach(&mut driver, 2, true).expect("attached");
    assert_eq!(ids(&mut driver, 2), [2]);
    assert_eq!(number(&driver.identify(0x12, 2), 0, 4), 1, "controller 0");
    write(&mut driver, 2, (20 << 10) - 8, 7);
    is(
        ask(&mut driver, (2, READ), (20 << 10, 1), 0),
        Status::LBA_OUT_OF_RANGE,
    );
    attach(&mut driver, 2, false).expect("detached");
    is(
        ask(&mut driver, (2, READ), (0, 8), 0),
        Status::INVALID_FIELD,
    );
    attach(&mut driver, 2, true).expect("attached");
    assert_eq!(held(&mut driver, 2, (20 << 10) - 8), 7, "it was kept");
    // Each has a name of its own, be it made in the place of another.
    let name = |driver: &mut Guest<'_>, id| driver.identify(0x11, id)[120..128].to_vec();
    let old = name(&mut driver, 1);
    delete(&mut driver, 1).expect("deleted");
    assert_eq!(create(&mut driver, 100 * MIB), Ok(1));
    assert_ne!(name(&mut driver, 1), old);
    delete(&mut driver, ALL).expect("all are deleted");
    assert_eq!(
        (ids(&mut driver, 0x10), left_mib(&mut driver)),
        (vec![], 512)
    );
    delete(&mut driver, ALL).expect("nothing is left to do");
}

#[test]
fn nothing_that_another_held_is_in_a_new_namespace() {
    let (ram, spec) = (ram(), managed());
    let mut driver = start(&spec, &[8 * MIB, 8 * MIB], &ram);
    let blocks = 8 * MIB / 512;
    let ends = [0, 4096, blocks - 8];
    for lba in ends {
        write(&mut driver, 1, lba, 11);
        write(&mut driver, 2, lba, 22);
    }
    ask(&mut driver, (2, 0), (0, 0), 0).expect("a flush");
    // Under way as its namespace is deleted: it comes to its end before.
    let entry = driver.entry(1, WRITE, 64, 8);
    let mut entry = entry;
    entry.0[4] = 2;
    let buffer = driver.io[0].buffer(entry.command().0);
    ram.write(buffer, &[33; 4096]).unwrap();
    driver.submit(1, entry);
    delete(&mut driver, 2).expect("deleted");
    while driver.reap(1).is_empty() {
        assert!(driver.port.wait());
    }
    assert_eq!(create(&mut driver, 8 * MIB), Ok(2));
    attach(&mut driver, 2, true).expect("attached");
    for lba in (0..blocks).step_by(64) {
        let bytes = ask(&mut driver, (2, READ), (lba, 64), 0xee).expect("a read");
        assert!(
            bytes.iter().all(|byte| *byte == 0),
            "block {lba} is not empty"
        );
    }
    assert_eq!(ends.map(|lba| held(&mut driver, 1, lba)), [11; 3]);
    // The null: what is not deleted is still there, and what is written to the new one is not in the old one's place alone.
    write(&mut driver, 2, 64, 44);
    assert_eq!(held(&mut driver, 2, 64), 44);
    attach(&mut driver, 2, false).expect("detached");
    attach(&mut driver, 2, true).expect("attached");
    assert_eq!(
        held(&mut driver, 2, 64),
        44,
        "detaching alone deletes nothing"
    );
}

/// What is changed of a namespace that can be made, and what follows.
type Rule<'a> = (&'a dyn Fn(&mut [u8]), Status);

#[test]
fn what_cannot_be_made_ends_with_the_reason() {
    let (ram, spec) = (ram(), managed());
    let mut driver = start(&spec, &[4 * MIB, MIB], &ram);
    let make = |driver: &mut Guest<'_>, change: &dyn Fn(&mut [u8])| {
        let mut data = wanted(2048, 0);
        data.resize(128, 0);
        change(&mut data);
        told(driver, MANAGE, 0, 0, &data)
    };
    let rules: [Rule<'_>; 11] = [
        (&|data| data[26] = 2, Status::FORMAT_INVALID),
        (&|data| data[26] = 1 << 5, Status::FORMAT_INVALID),
        (&|data| data[26] = 1 << 4, Status::FORMAT_INVALID),
        (&|data| data[29] = 1, Status::FORMAT_INVALID),
        (&|data| data[..16].fill(0), Status::INVALID_FIELD),
        (&|data| data[8] = 1, Status::INVALID_FIELD),
        (&|data| data[9] = 1, Status::THIN_PROVISIONING_UNSUPPORTED),
        (
            &|data| data[..16].fill(0xff),
            Status::NAMESPACE_CAPACITY_INSUFFICIENT,
        ),
        (&|data| data[92] = 1, Status::INVALID_FIELD),
        (&|data| data[100] = 1, Status::INVALID_FIELD),
        (&|data| data[102] = 1, Status::INVALID_FIELD),
    ];
    for (change, status) in rules {
        is(make(&mut driver, change), status);
    }
}

#[test]
fn commands_to_what_is_not_there_end_with_the_reason() {
    let (ram, spec) = (ram(), managed());
    let mut driver = start(&spec, &[4 * MIB, MIB], &ram);
    let data = wanted(2048, 0);
    is(
        told(&mut driver, MANAGE, 1, 0, &data),
        Status::INVALID_FIELD,
    );
    is(
        told(&mut driver, MANAGE, 0, 2, &data),
        Status::INVALID_FIELD,
    );
    is(
        told(&mut driver, ATTACH, 2, 2, &[1, 0]),
        Status::INVALID_FIELD,
    );
    driver.port.memory().write(DATA_AT, &data).unwrap();
    let zoned = driver.admin(MANAGE, 0, &[0, 2 << 24]);
    is(zoned, Status::IO_COMMAND_SET_UNSUPPORTED);
    for (id, status) in [
        (0, Status::INVALID_NAMESPACE),
        (3, Status::INVALID_FIELD),
        (5, Status::INVALID_NAMESPACE),
    ] {
        is(delete(&mut driver, id), status);
        is(attach(&mut driver, id, true), status);
        is(attach(&mut driver, id, false), status);
    }
    is(attach(&mut driver, ALL, true), Status::INVALID_NAMESPACE);
    is(
        attach(&mut driver, 2, true),
        Status::NAMESPACE_ALREADY_ATTACHED,
    );
    attach(&mut driver, 2, false).expect("detached");
    is(
        attach(&mut driver, 2, false),
        Status::NAMESPACE_NOT_ATTACHED,
    );
    let lists: [&[u8]; 5] = [
        &[0; 4],
        &[1, 0, 1, 0],
        &[2, 0, 0, 0, 1, 0],
        &[2, 0, 0, 0, 0, 0],
        &[0xff; 4096],
    ];
    for list in lists {
        is(
            told(&mut driver, ATTACH, 2, 0, list),
            Status::CONTROLLER_LIST_INVALID,
        );
    }
    assert_eq!(
        (create(&mut driver, MIB), create(&mut driver, MIB)),
        (Ok(3), Ok(4))
    );
    is(create(&mut driver, MIB), Status::NAMESPACE_ID_UNAVAILABLE);
}

/// What is free is of use in one piece only, the smallest that is large enough; and blocks that fill no page of the drive take the rest
/// of the page with them.
#[test]
fn a_namespace_is_made_where_it_fits() {
    let (ram, spec) = (ram(), managed());
    let mut driver = start(&spec, &[100 * MIB, 200 * MIB, 100 * MIB, 112 * MIB], &ram);
    delete(&mut driver, 1).expect("deleted");
    delete(&mut driver, 3).expect("deleted");
    assert_eq!(left_mib(&mut driver), 200);
    is(
        create(&mut driver, 101 * MIB),
        Status::NAMESPACE_CAPACITY_INSUFFICIENT,
    );
    assert_eq!(create(&mut driver, 60 * MIB), Ok(1));
    assert_eq!(create(&mut driver, 100 * MIB), Ok(3));
    assert_eq!(left_mib(&mut driver), 40);
    delete(&mut driver, 1).expect("deleted");
    assert_eq!(told(&mut driver, MANAGE, 0, 0, &wanted(9, 0)), Ok(1));
    let page = driver.identify(0x11, 1);
    assert_eq!(
        (number(&page, 0, 8), number(&page, 48, 8)),
        (9, 8192),
        "NSZE, NVMCAP"
    );
    attach(&mut driver, 1, true).expect("attached");
    is(
        ask(&mut driver, (1, READ), (8, 2), 0),
        Status::LBA_OUT_OF_RANGE,
    );
    delete(&mut driver, 1).expect("deleted");
    // Blocks of 4 KiB, and shared, as far as one controller goes.
    let mut data = wanted(256, 1);
    data[30] = 0xff;
    is(
        told(&mut driver, MANAGE, 0, 0, &data),
        Status::INVALID_FIELD,
    );
    data[30] = 1;
    assert_eq!(told(&mut driver, MANAGE, 0, 0, &data), Ok(1));
    let page = driver.identify(0x11, 1);
    assert_eq!((page[26], page[30], number(&page, 48, 8)), (1, 1, MIB));
}

#[test]
fn the_host_hears_that_namespaces_have_changed_if_it_wants_to() {
    let (ram, spec) = (ram(), managed());
    let mut driver = start(&spec, &[4 * MIB, MIB, MIB], &ram);
    let wait_for_event = |driver: &mut Guest<'_>| {
        let command = CommandId(driver.free_command(0));
        driver.submit(0, SubmissionEntry::new(0xc, command, NamespaceId::NONE));
        command.0
    };
    // The null: nobody has asked for such events.
    let command = wait_for_event(&mut driver);
    told(&mut driver, 0x15, 2, 1, &[1, 0, 0, 0]).expect("detached");
    assert!(driver.reap(0).is_empty(), "no event");
    assert!(driver.admin.under_way.contains(&command));
    assert_eq!(
        ids_of(&driver.log(4, 4096)),
        [2],
        "the list says so all the same"
    );
    assert!(ids_of(&driver.log(4, 4096)).is_empty(), "it was read");
    driver
        .admin(9, 0, &[0xb, 1 << 8])
        .expect("the event is wanted");
    let mut heard = Vec::new();
    for (opcode, id, select) in [(0x15, 2, 0), (MANAGE, 3, 1)] {
        let command = CommandId(driver.free_command(0));
        let entry = SubmissionEntry::new(opcode, command, NamespaceId(id));
        driver.port.memory().write(DATA_AT, &[1, 0, 0, 0]).unwrap();
        driver.submit(0, entry.with_dword(10, select).with_prp(DATA_AT, 0));
        let mut left = 2;
        while left > 0 {
            for (command, outcome) in driver.reap(0) {
                assert!(outcome.status.is_success());
                heard.extend((command != driver_command(&entry)).then_some(outcome.result as u32));
                left -= 1;
            }
            assert!(driver.port.wait(), "an event and a completion");
        }
        wait_for_event(&mut driver);
        let list = driver.log(4, 4096);
        assert_eq!(ids_of(&list), [u64::from(id)]);
    }
    // Notice, Namespace Attribute Changed, page 04h.
    assert_eq!(heard, [0x0004_0002; 2]);
}

fn driver_command(entry: &SubmissionEntry) -> u16 {
    entry.command().0
}

fn ids_of(list: &[u8]) -> Vec<u64> {
    let all = (0..8).map(|at| number(list, 4 * at, 4));
    all.take_while(|id| *id != 0).collect()
}

#[test]
fn a_format_of_all_spares_what_is_detached_and_what_erases_does_not() {
    let (ram, spec) = (ram(), managed());
    for erases in [0, 1] {
        let mut driver = start(&spec, &[4 * MIB, MIB, MIB], &ram);
        (1..=3).for_each(|id| write(&mut driver, id, 8, 16 * id as u8));
        attach(&mut driver, 2, false).expect("detached");
        driver.admin(FORMAT, ALL, &[erases << 9]).expect("a format");
        is(driver.admin(FORMAT, 2, &[0]), Status::INVALID_FIELD);
        attach(&mut driver, 2, true).expect("attached");
        let left = [1, 2, 3].map(|id| held(&mut driver, id, 8));
        assert_eq!(left, [0, if erases == 0 { 32 } else { 0 }, 0]);
    }
}

#[test]
fn a_drive_in_a_file_comes_back_as_hosts_have_divided_it() {
    let (ram, spec) = (ram(), managed());
    let disk = Arc::new(SimDisk::default());
    let open = || Backing::on(Arc::clone(&disk) as _, &spec, 1, false, &mut |_, _| {});
    let began = |sizes: &[u64]| {
        let settings = Settings {
            namespaces_bytes: sizes.to_vec(),
            ..Settings::default()
        };
        let mut driver = Simulated::driver_of(&spec, &settings, &ram);
        let backing = open().expect("a file");
        driver.port.controller.keep_in(backing).expect("the drive");
        driver.port.now_ps = driver.port.controller.now_ps();
        driver.enable();
        driver.create_queues(1);
        driver
    };
    let mut driver = began(&[4 * MIB, MIB, MIB]);
    write(&mut driver, 2, 8, 22);
    write(&mut driver, 1, 8, 11);
    ask(&mut driver, (1, 0), (0, 0), 0).expect("a flush");
    delete(&mut driver, 2).expect("deleted");
    assert_eq!(create(&mut driver, 6 * MIB), Ok(2));
    assert_eq!(create(&mut driver, MIB), Ok(4));
    attach(&mut driver, 4, true).expect("attached");
    attach(&mut driver, 3, false).expect("detached");
    let pages = |driver: &mut Guest<'_>| [1, 2, 3, 4].map(|id| driver.identify(0x11, id));
    let before = pages(&mut driver);
    // Killed as soon as the host has heard of it.
    drop(driver);
    let found = Division::found(&open().expect("it is there")).expect("of this version");
    let found = found.expect("a drive");
    assert!(found.by_hosts);
    assert_eq!(found.namespaces_bytes, [4, 6, 1, 1].map(|mib| mib * MIB));
    // However it was divided at first.
    let mut driver = began(&[]);
    assert!(pages(&mut driver) == before);
    assert_eq!(
        (ids(&mut driver, 0x10), ids(&mut driver, 2)),
        (vec![1, 2, 3, 4], vec![1, 4])
    );
    // In the place of the second.
    assert_eq!((held(&mut driver, 1, 8), held(&mut driver, 4, 8)), (11, 0));
    // A deletion that nobody heard the end of goes on.
    let command = CommandId(driver.free_command(0));
    let entry = SubmissionEntry::new(MANAGE, command, NamespaceId(1));
    driver.submit(0, entry.with_dword(10, 1));
    driver.port.controller.poll(driver.port.now_ps);
    drop(driver);
    let mut driver = began(&[]);
    while ids(&mut driver, 0x10).contains(&1) {
        is(
            ask(&mut driver, (1, READ), (8, 8), 0),
            Status::INVALID_FIELD,
        );
        is(create(&mut driver, MIB), Status::COMMAND_INTERRUPTED);
        assert!(driver.port.wait());
    }
    delete(&mut driver, ALL).expect("deleted");
    drop(driver);
    let mut driver = began(&[]);
    assert!(ids(&mut driver, 0x10).is_empty(), "a drive may have none");
    assert_eq!(create(&mut driver, MIB), Ok(1));
    attach(&mut driver, 1, true).expect("attached");
    assert_eq!(held(&mut driver, 1, 8), 0);
}

#[test]
fn drives_that_do_not_say_how_many_they_can_have_keep_those_they_are_made_with() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = start(&spec, &[4 * MIB, MIB], &ram);
    assert_eq!(number(&driver.identify(1, 0), 256, 2) >> 3 & 1, 0, "OACS");
    is(create(&mut driver, MIB), Status::INVALID_OPCODE);
    is(delete(&mut driver, 1), Status::INVALID_OPCODE);
    is(attach(&mut driver, 1, false), Status::INVALID_OPCODE);
    let effects = driver.log(5, 4096);
    assert_eq!(
        (number(&effects, 4 * 0xd, 4), number(&effects, 4 * 0x15, 4)),
        (0, 0)
    );
    let mut driver = start(&managed(), &[4 * MIB, MIB], &ram);
    let effects = driver.log(5, 4096);
    // Supported; which namespaces there are changes (NIC), on which hosts look again.
    // Its scope is the subsystem.
    assert_eq!(number(&effects, 4 * 0x15, 4), 1 | 1 << 3 | 1 << 25);
    let settings = Settings {
        namespaces_bytes: vec![MIB; 5],
        ..Settings::default()
    };
    let too_many = Controller::new(&managed(), &settings, &ram).err();
    assert_eq!(
        too_many,
        Some(Unservable::TooManyNamespaces { found: 5, most: 4 })
    );
}
