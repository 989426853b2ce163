//! Are several namespaces of a drive apart, for whoever asks in a right or a wrong way? In simulated time. The swarm
//! (`tests/swarm`) does the same at random, beside a naive model.

mod driver;
mod kept;
mod simulated;

use driver::filled::{ask, held, write};
use driver::{Driver, Port, is, number};
use kept::SimDisk;
use lodger_core::DriveSpec;
use lodger_serve::backing::{Backing, BackingError};
use lodger_serve::controller::identity::Unservable;
use lodger_serve::controller::{Controller, Division, Settings};
use lodger_wire::memory::{GuestMemory, Ram};
use lodger_wire::status::Status;
use lodger_wire::{CommandId, NamespaceId};
use simulated::{Simulated, ram, spec};
use std::sync::Arc;

const FLUSH: u8 = 0;
const WRITE: u8 = 1;
const READ: u8 = 2;
const COMPARE: u8 = 5;
const WRITE_ZEROES: u8 = 8;
const DATASET_MANAGEMENT: u8 = 9;
const VERIFY: u8 = 0xc;
const IDENTIFY: u8 = 6;
const FORMAT: u8 = 0x80;
const SANITIZE: u8 = 0x84;
const ALL: u32 = u32::MAX;
const MIB: u64 = 1 << 20;
/// Of a drive with 512 MiB; 500 are in none.
const SIZES: [u64; 3] = [4 * MIB, MIB, 7 * MIB];
/// Blocks of 512 bytes of each.
const BLOCKS: [u64; 3] = [8 << 10, 2 << 10, 14 << 10];
/// Commands to blocks of one namespace.
const OF_BLOCKS: [u8; 6] = [
    READ,
    WRITE,
    COMPARE,
    WRITE_ZEROES,
    VERIFY,
    DATASET_MANAGEMENT,
];

type Guest<'a> = Driver<Simulated<'a>>;

fn settings(sizes_bytes: &[u64]) -> Settings {
    Settings {
        namespaces_bytes: sizes_bytes.to_vec(),
        ..Settings::default()
    }
}

fn start<'a>(spec: &DriveSpec, ram: &'a Ram) -> Guest<'a> {
    let mut driver = Simulated::driver_of(spec, &settings(&SIZES), ram);
    driver.enable();
    driver.create_queues(1);
    driver
}

#[test]
fn each_says_what_it_is() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = start(&spec, &ram);
    let controller = driver.identify(1, 0);
    assert_eq!(number(&controller, 516, 4), 3, "NN");
    assert_eq!(number(&controller, 540, 4), 3, "MNAN");
    assert_eq!(number(&controller, 280, 8), 512 * MIB, "TNVMCAP");
    assert_eq!(number(&controller, 296, 8), 500 * MIB, "UNVMCAP");
    assert_eq!(controller[524], 0b110, "FNA: an erase is of all, keys too");
    for cns in [2, 7, 0x10] {
        let list = driver.identify(cns, 0);
        let ids: Vec<u64> = (0..5).map(|at| number(&list, 4 * at, 4)).collect();
        assert_eq!(ids, [1, 2, 3, 0, 0], "CNS {cns:x}");
        assert_eq!(number(&driver.identify(cns, 1), 0, 4), 2, "above 1");
        assert_eq!(number(&driver.identify(cns, 3), 0, 4), 0, "above 3");
    }
    let mut names = Vec::new();
    for (id, blocks) in (1..).zip(BLOCKS) {
        for cns in [0, 0x11] {
            let page = driver.identify(cns, id);
            let sizes: Vec<u64> = (0..3).map(|at| number(&page, 8 * at, 8)).collect();
            assert_eq!(sizes, [blocks; 3], "NSZE, NCAP, NUSE of {id}");
            assert_eq!(number(&page, 48, 8), 512 * blocks, "NVMCAP");
        }
        let page = driver.identify(0, id);
        let named = driver.identify(3, id);
        assert_eq!(named[..2], [1, 8], "an EUI64");
        assert_eq!(named[4..12], page[120..128]);
        names.push(named[4..12].to_vec());
        assert_eq!(
            number(&driver.identify(0x12, id), 0, 2),
            1,
            "one controller"
        );
        driver.identify(5, id);
        driver.identify(8, id);
    }
    names.dedup();
    assert_eq!(names.len(), 3, "each has a name of its own");
    let common = driver.identify(0, ALL);
    assert_eq!(number(&common, 0, 8), 0, "sizes are not common");
    assert_eq!(common[25], 1, "formats are");
    for (cns, id) in [
        (0, 0),
        (0, 4),
        (3, 4),
        (3, ALL),
        (5, 4),
        (8, 0),
        (0x11, 4),
        (0x12, 4),
    ] {
        let ended = driver.admin(IDENTIFY, id, &[cns]);
        assert!(
            is(&ended, Status::INVALID_NAMESPACE),
            "{cns:x} {id}: {ended:?}"
        );
    }
}

#[test]
fn data_of_one_is_not_that_of_another() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = start(&spec, &ram);
    let ends = |id: u32| [0, BLOCKS[id as usize - 1] - 8];
    for id in 1..=3 {
        for lba in ends(id) {
            write(&mut driver, id, lba, 16 * id as u8 + u8::from(lba > 0));
        }
    }
    let all = |driver: &mut Guest<'_>| {
        let each = (1..=3).map(|id| ends(id).map(|lba| held(driver, id, lba)));
        each.collect::<Vec<_>>()
    };
    assert_eq!(all(&mut driver), [[16, 17], [32, 33], [48, 49]]);
    ask(&mut driver, (2, COMPARE), (0, 8), 32).expect("it is so");
    let ended = ask(&mut driver, (2, COMPARE), (0, 8), 16);
    assert!(is(&ended, Status::COMPARE_FAILURE));
    // All that the one in the middle has, and nothing beside it.
    let whole = (0, BLOCKS[1] as u32);
    ask(&mut driver, (2, DATASET_MANAGEMENT), whole, 0).expect("deallocated");
    assert_eq!(all(&mut driver), [[16, 17], [0, 0], [48, 49]]);
    write(&mut driver, 2, 0, 34);
    ask(&mut driver, (2, WRITE_ZEROES), (0, BLOCKS[1] as u32), 0).expect("zeroes");
    assert_eq!(all(&mut driver), [[16, 17], [0, 0], [48, 49]]);
    for opcode in OF_BLOCKS {
        let ended = ask(&mut driver, (2, opcode), (BLOCKS[1] - 7, 8), 1);
        assert!(
            is(&ended, Status::LBA_OUT_OF_RANGE),
            "{opcode:x}: {ended:?}"
        );
    }
    assert_eq!(all(&mut driver), [[16, 17], [0, 0], [48, 49]]);
}

#[test]
fn commands_to_none_or_to_all_end_as_they_should() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = start(&spec, &ram);
    for id in [0, 4, 1000, ALL] {
        for opcode in OF_BLOCKS.into_iter().chain([FLUSH]) {
            let ended = ask(&mut driver, (id, opcode), (0, 8), 1);
            match (opcode, id) {
                (FLUSH, ALL) => assert!(ended.is_ok(), "a flush of all"),
                _ => assert!(
                    is(&ended, Status::INVALID_NAMESPACE),
                    "{opcode:x} {id:x}: {ended:?}"
                ),
            }
        }
    }
    assert!(is(
        &driver.admin(FORMAT, 4, &[0]),
        Status::INVALID_NAMESPACE
    ));
    assert!(is(
        &driver.admin(FORMAT, 0, &[0]),
        Status::INVALID_NAMESPACE
    ));
    // Health is the controller's: LPA says that no namespace has its own.
    driver.admin(2, ALL, &[127 << 16 | 2]).expect("health");
    driver.admin(2, 0, &[127 << 16 | 2]).expect("health");
    let of_one = driver.admin(2, 2, &[127 << 16 | 2]);
    assert!(is(&of_one, Status::INVALID_FIELD), "{of_one:?}");
    let of_none = driver.admin(2, 4, &[127 << 16 | 2]);
    assert!(is(&of_none, Status::INVALID_NAMESPACE), "{of_none:?}");
}

#[test]
fn a_format_is_of_one_while_others_go_on() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = start(&spec, &ram);
    (1..=3).for_each(|id| write(&mut driver, id, 8, 16 * id as u8));
    // Under way in the namespace that is not formatted, while it is.
    let other = driver.entry(1, READ, 8, 8);
    driver.submit(1, other);
    let command = CommandId(driver.free_command(0));
    let entry = lodger_wire::entry::SubmissionEntry::new(FORMAT, command, NamespaceId(2));
    driver.submit(0, entry.with_dword(10, 1));
    let (mut done, mut refused) = (0, 0);
    while driver.reap(0).is_empty() {
        for id in [2, 1] {
            let mut entry = driver.entry(1, READ, 8, 8);
            entry.0[4] = id;
            driver.submit(1, entry);
        }
        while !driver.io[0].under_way.is_empty() {
            for (_, outcome) in driver.reap(1) {
                done += u32::from(outcome.status.is_success());
                refused += u32::from(outcome.status.is(Status::FORMAT_IN_PROGRESS));
            }
            assert!(driver.port.wait());
        }
    }
    assert!(
        done > refused && refused > 0,
        "{done} done, {refused} refused"
    );
    let formats = |driver: &mut Guest<'_>| [1, 2, 3].map(|id| driver.identify(0, id)[26]);
    assert_eq!(formats(&mut driver), [0, 1, 0]);
    assert_eq!(number(&driver.identify(0, 2), 0, 8), BLOCKS[1] / 8);
    assert_eq!((held(&mut driver, 1, 8), held(&mut driver, 3, 8)), (16, 48));
    assert_eq!(
        ask(&mut driver, (2, READ), (1, 1), 0).map(|bytes| bytes[0]),
        Ok(0)
    );
    // A write of 4 KiB, in blocks of 4 KiB.
    let mut entry = driver.entry(1, WRITE, 1, 8).with_dword(12, 0);
    entry.0[4] = 2;
    let buffer = driver.io[0].buffer(entry.command().0);
    ram.write(buffer, &[77; 4096]).unwrap();
    driver.run(1, entry).expect("a block");
    assert_eq!(
        ask(&mut driver, (2, READ), (1, 1), 0).map(|bytes| bytes[0]),
        Ok(77)
    );
    let past = ask(&mut driver, (2, READ), (BLOCKS[1] / 8, 1), 0);
    assert!(is(&past, Status::LBA_OUT_OF_RANGE));
    driver.admin(FORMAT, ALL, &[1]).expect("a format of all");
    assert_eq!(formats(&mut driver), [1, 1, 1]);
    assert_eq!(
        ask(&mut driver, (1, READ), (1, 1), 0).map(|bytes| bytes[0]),
        Ok(0)
    );
}

#[test]
fn what_erases_erases_all_namespaces() {
    let (ram, spec) = (ram(), spec(&[]));
    for (opcode, namespace, dword10) in [(FORMAT, 3, 1 << 9), (FORMAT, 1, 2 << 9), (SANITIZE, 0, 2)]
    {
        let mut driver = start(&spec, &ram);
        (1..=3).for_each(|id| write(&mut driver, id, 8, 16 * id as u8));
        driver.admin(opcode, namespace, &[dword10]).expect("erased");
        while opcode == SANITIZE && driver.log(0x81, 512)[2] & 7 == 2 {
            assert!(driver.port.wait());
        }
        let left = [1, 2, 3].map(|id| held(&mut driver, id, 8));
        assert_eq!(left, [0; 3], "{opcode:x} of {namespace}");
    }
}

#[test]
fn a_drive_in_a_file_comes_back_with_its_namespaces() {
    let (ram, spec) = (ram(), spec(&[]));
    let disk = Arc::new(SimDisk::default());
    let open = || Backing::on(Arc::clone(&disk) as _, &spec, 1, false, &mut |_, _| {});
    let began = |backing| {
        let mut driver = Simulated::driver_of(&spec, &settings(&SIZES), &ram);
        driver.port.controller.keep_in(backing).expect("the drive");
        driver.port.now_ps = driver.port.controller.now_ps();
        driver.enable();
        driver.create_queues(1);
        driver
    };
    let mut driver = began(open().expect("a new file"));
    driver.admin(FORMAT, 2, &[1]).expect("a format");
    write(&mut driver, 1, 8, 16);
    write(&mut driver, 3, 8, 48);
    ask(&mut driver, (ALL, FLUSH), (0, 0), 0).expect("a flush");
    drop(driver);
    let backing = open().expect("it is there");
    let found = Division::found(&backing).expect("of this version");
    let found = found.expect("a drive");
    assert_eq!(found.namespaces_bytes, SIZES);
    assert_eq!(found.block_bytes, [512, 4096, 512]);
    let mut driver = began(backing);
    let formats = [1, 2, 3].map(|id| driver.identify(0, id)[26]);
    assert_eq!(formats, [0, 1, 0]);
    assert_eq!((held(&mut driver, 1, 8), held(&mut driver, 3, 8)), (16, 48));
    drop(driver);
    for other in [&[][..], &[4 * MIB][..], &[4 * MIB, MIB, 8 * MIB]] {
        let mut driver = Simulated::driver_of(&spec, &settings(other), &ram);
        let kept = driver.port.controller.keep_in(open().expect("it is there"));
        assert!(
            matches!(kept, Err(BackingError::OtherDrive(_))),
            "{other:?}"
        );
    }
}

#[test]
fn a_drive_that_cannot_be_divided_so_says_why() {
    let (ram, spec) = (ram(), spec(&[]));
    let why = |sizes: &[u64]| Controller::new(&spec, &settings(sizes), &ram).err();
    assert_eq!(why(&[512 * MIB]), None);
    assert_eq!(why(&[511 * MIB, MIB]), None);
    assert_eq!(why(&[MIB, 0]), Some(Unservable::NamespaceSize(0)));
    assert_eq!(why(&[MIB, 512]), Some(Unservable::NamespaceSize(512)));
    assert_eq!(why(&[512]), Some(Unservable::NamespaceSize(512)));
    let (bytes, left) = (2 * MIB, MIB);
    let too_large = Some(Unservable::NamespaceTooLarge { bytes, left });
    assert_eq!(why(&[511 * MIB, 2 * MIB]), too_large);
    assert!(why(&[u64::MAX - 4095, MIB]).is_some());
    assert_eq!(why(&[MIB; 128]), None);
    assert_eq!(
        why(&[MIB; 129]),
        Some(Unservable::TooManyNamespaces {
            found: 129,
            most: 128
        })
    );
}
