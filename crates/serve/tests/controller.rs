//! Does a controller with a simulated drive do what a driver needs of it? In simulated time, without sockets.

mod driver;
mod simulated;

use driver::mix::Mix;
use driver::{MEMORY_BYTES, PAGE, Port, SHADOWS_AT, number};
use lodger_serve::controller::identity::Unservable;
use lodger_serve::controller::{Controller, Settings};
use lodger_wire::entry::SubmissionEntry;
use lodger_wire::memory::GuestMemory;
use lodger_wire::status::Status;
use lodger_wire::{CommandId, NamespaceId};
use simulated::{Simulated, ram, spec};

const HMB_BYTES: u64 = 256 << 10;

#[test]
fn linux_finds_a_drive_that_asks_for_host_memory() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    let controller = driver.identify(1, 0);
    assert_eq!(&controller[24..44], b"Lodger Tiny teaching");
    assert_eq!(controller[272..276], 64u32.to_le_bytes(), "HMPRE: 256 KiB");
    assert_eq!(controller[276..280], 16u32.to_le_bytes(), "HMMIN: 64 KiB");
    let namespace = driver.identify(0, 1);
    assert_eq!(namespace[..8], (1u64 << 20).to_le_bytes(), "512 MiB");
    assert_eq!(driver.identify(2, 0)[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(driver.identify(3, 1)[..2], [1, 8]);
    for (cns, namespace) in [
        (5, 1),
        (6, 0),
        (7, 0),
        (8, 1),
        (0x10, 0),
        (0x13, 0),
        (0x1c, 0),
    ] {
        driver.identify(cns, namespace);
    }
    assert_eq!(
        driver.admin(6, 2, &[0]),
        Err(Status::INVALID_NAMESPACE.with_more())
    );
    assert_eq!(
        driver.admin(6, 0, &[0x42]),
        Err(Status::INVALID_FIELD.with_more())
    );
    assert_eq!(driver.log(2, 512)[1..3], 313u16.to_le_bytes());
    assert_eq!(driver.log(1, 64)[..8], 2u64.to_le_bytes(), "two errors");
    for page in [0, 3, 4, 5, 6, 0x12, 0x13, 0x81, 0xc0, 0xca] {
        driver.log(page, 512);
    }
    for feature in [
        1, 2, 4, 6, 7, 8, 9, 0xa, 0xb, 0xc, 0xd, 0xe, 0x10, 0x16, 0x81,
    ] {
        driver.admin(0xa, 0, &[feature]).expect("Get Features");
    }
    assert_eq!(driver.admin(0xa, 0, &[6]), Ok(1), "the write cache is on");
    // Of a namespace, which was not looked at.
    let of_none = Err(Status::INVALID_NAMESPACE.with_more());
    assert_eq!(driver.admin(0xa, 1, &[5]), Ok(0));
    for namespace in [0, 77, u32::MAX] {
        assert_eq!(driver.admin(0xa, namespace, &[5]), of_none);
    }
    assert_eq!(driver.admin(9, 0, &[5, 1]), of_none);
    assert_eq!(driver.admin(9, u32::MAX, &[5, 1]), Ok(0));
    // There was a timer of Keep Alive, and no Keep Alive.
    let none = Err(Status::INVALID_FIELD.with_more());
    assert_eq!(number(&driver.identify(1, 0), 320, 2), 0, "KAS");
    assert_eq!(driver.admin(9, 0, &[0xf, 1000]), none);
    assert_eq!(driver.admin(0xa, 0, &[0xf]), none);
    assert_eq!(driver.log(0x12, 512)[4 * 0xf..][..4], [0; 4]);
    assert_eq!(number(&driver.identify(1, 0), 328, 4) >> 30, 1, "NODMMAS");
    let unknown = driver.admin(0xc1, 0, &[]);
    assert_eq!(unknown, Err(Status::INVALID_OPCODE.with_more()));
}

#[test]
fn random_mixes_on_several_queues_read_what_was_written() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    driver.create_queues(4);
    let mut mix = Mix::new(8 << 10, 1);
    mix.run(&mut driver, 6000, 16);
    mix.check_all(&mut driver);
    let interrupts = driver.port.controller.take_interrupts(u64::MAX);
    assert_eq!(interrupts, 0b1_1111, "all five queues have interrupted");
    driver.delete_queues();
}

#[test]
fn host_memory_holds_the_map_while_granted_and_is_not_touched_after() {
    let (ram, spec) = (ram(), spec(&[("tier.hmb.integrity", "mac")]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    driver.create_queues(2);
    driver
        .grant_host_memory(HMB_BYTES, false)
        .expect("host memory");
    let again = driver.grant_host_memory(HMB_BYTES, false);
    assert_eq!(again, Err(Status::COMMAND_SEQUENCE_ERROR.with_more()));
    let blocks = 1 << 19; // 256 MiB, more than the map in the drive reaches.
    let mut mix = Mix::new(blocks, 2);
    mix.run(&mut driver, 3000, 16);
    let memory = driver.host_memory(HMB_BYTES);
    let (lent, gaps): (Vec<_>, Vec<_>) = memory
        .chunks(32 << 10)
        .enumerate()
        .partition(|(n, _)| n % 2 == 0);
    let used = lent
        .iter()
        .filter(|(_, piece)| piece.iter().any(|byte| *byte != 0))
        .count();
    assert!(used >= 4, "{used} of {} pieces hold something", lent.len());
    assert!(
        gaps.iter()
            .all(|(_, gap)| gap.iter().all(|byte| *byte == 0))
    );
    assert_eq!(driver.admin(0xa, 0, &[0xd]), Ok(1));
    // With commands under way it is taken back.
    driver.take_host_memory_back().expect("host memory back");
    let after = driver.host_memory(HMB_BYTES);
    mix.run(&mut driver, 2000, 16);
    assert!(
        driver.host_memory(HMB_BYTES) == after,
        "touched after it was taken back"
    );
    let held = driver
        .port
        .controller
        .device()
        .host_memory
        .memory
        .failures();
    assert_eq!(held, 0);
    driver
        .grant_host_memory(HMB_BYTES, true)
        .expect("host memory again");
    mix.run(&mut driver, 1000, 16);
    mix.check_all(&mut driver);
}

#[test]
fn what_a_guest_does_to_host_memory_harms_no_byte() {
    let (ram, spec) = (ram(), spec(&[("tier.hmb.integrity", "mac")]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    driver.create_queues(2);
    driver
        .grant_host_memory(HMB_BYTES, false)
        .expect("host memory");
    let mut mix = Mix::new(1 << 19, 3);
    let mut rng = lodger_core::rng::Rng::new(7);
    for _ in 0..40 {
        mix.run(&mut driver, 50, 16);
        for _ in 0..200 {
            let at = driver::HMB_AT + u64::from(rng.below(2 * HMB_BYTES as u32));
            ram.write(at, &[rng.next_u64() as u8]).unwrap();
        }
    }
    mix.check_all(&mut driver);
    let counters = driver.port.controller.device().counters();
    assert!(counters.map.rejected_entries > 0, "forgeries were met");
}

#[test]
fn a_reset_under_load_loses_nothing_and_completes_nothing_old() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    let mut mix = Mix::new(8 << 10, 4);
    for round in 0..12 {
        driver.enable();
        driver.create_queues(3);
        if round % 2 == 0 {
            driver.use_shadows();
        }
        if round % 3 == 0 {
            driver
                .grant_host_memory(HMB_BYTES, false)
                .expect("host memory");
        }
        mix.run(&mut driver, 300, 24);
        driver.disable();
        // The queues' memory is the driver's again: whatever is written there now, nobody expected.
        let zeros = vec![0; 1 << 20];
        ram.write(1 << 20, &zeros).unwrap();
        let before = driver.port.controller.statistics().completions;
        for _ in 0..100 {
            driver.port.wait();
        }
        assert_eq!(driver.port.controller.statistics().completions, before);
        let mut after = zeros.clone();
        ram.read(1 << 20, &mut after).unwrap();
        assert!(after == zeros);
        mix.reset();
    }
    assert!(driver.port.controller.statistics().abandoned > 0);
    driver.enable();
    driver.create_queues(1);
    mix.check_all(&mut driver);
}

#[test]
fn shadow_doorbells_need_no_register() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    driver.create_queues(2);
    driver.use_shadows();
    let mut mix = Mix::new(4 << 10, 5);
    mix.run(&mut driver, 2000, 16);
    mix.check_all(&mut driver);
    assert!(driver.port.controller.may_sleep(), "nothing is left to see");
}

#[test]
fn a_shutdown_saves_everything_and_the_drive_comes_back() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    let mut mix = Mix::new(8 << 10, 6);
    for _ in 0..3 {
        driver.enable();
        driver.create_queues(2);
        driver
            .grant_host_memory(HMB_BYTES, false)
            .expect("host memory");
        mix.run(&mut driver, 500, 8);
        mix.finish(&mut driver);
        driver.shutdown();
        let memory = driver.host_memory(HMB_BYTES);
        for _ in 0..1000 {
            driver.port.wait();
        }
        assert!(
            driver.host_memory(HMB_BYTES) == memory,
            "touched after the shutdown"
        );
    }
    driver.enable();
    driver.create_queues(1);
    mix.check_all(&mut driver);
    assert_eq!(driver.port.controller.statistics().shutdowns, 3);
}

#[test]
fn commands_that_cannot_reach_their_data_say_so() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    driver.create_queues(1);
    for opcode in [1, 2, 5] {
        let entry = driver.entry(1, opcode, 0, 8).with_prp(MEMORY_BYTES, 0);
        let ended = driver.run(1, entry);
        assert!(
            ended.is_err_and(|status| status.is(Status::DATA_TRANSFER_ERROR)),
            "{ended:?}"
        );
        let entry = driver.entry(1, opcode, 0, 16).with_prp(0x2000, 0x2001);
        assert!(
            driver.run(1, entry).is_err(),
            "a PRP entry that is not a page"
        );
        let entry = driver.entry(1, opcode, 1 << 20, 1);
        let ended = driver.run(1, entry);
        assert!(
            ended.is_err_and(|status| status.is(Status::LBA_OUT_OF_RANGE)),
            "{ended:?}"
        );
        let entry = driver.entry(1, opcode, 0, 8).with_dword(12, 0xffff);
        assert!(driver.run(1, entry).is_err(), "more than MDTS");
    }
    let entry = driver.entry(1, 0x7f, 0, 1);
    assert!(driver.run(1, entry).is_err());
}

#[test]
fn what_is_not_served_is_an_invalid_opcode_whatever_it_says() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    // Firmware, self-tests (of a kind that there is not, and of one that there is), a timer kept from running out.
    for (opcode, first) in [
        (0x10, 0),
        (0x11, 0),
        (0x14, 0),
        (0x14, 1),
        (0x18, 0),
        (0xc1, 0),
    ] {
        let ended = driver.admin(opcode, 0, &[first]);
        assert!(
            ended.is_err_and(|status| status.is(Status::INVALID_OPCODE)),
            "{opcode:x}: {ended:?}"
        );
    }
}

#[test]
fn a_command_moves_no_more_than_the_drive_file_says() {
    let ram = ram();
    for (sets, mdts, most_blocks) in [
        (&[][..], 7, 1024),
        (&[("controller.max_transfer", "8KiB")], 1, 16),
        (&[("controller.max_transfer", "2MiB")], 9, 4096),
    ] {
        let mut driver = Simulated::driver(&spec(sets), &ram);
        driver.enable();
        driver.create_queues(1);
        assert_eq!(driver.identify(1, 0)[77], mdts, "{sets:?}");
        let entry = driver.entry(1, 2, 0, most_blocks + 1);
        let ended = driver.run(1, entry.with_prp(MEMORY_BYTES, 0));
        let too_much = ended.is_err_and(|status| status.is(Status::INVALID_FIELD));
        assert!(too_much, "{sets:?}");
        // So much is not refused for its length.
        let entry = driver.entry(1, 2, 0, most_blocks);
        let ended = driver.run(1, entry.with_prp(MEMORY_BYTES, 0));
        let no_memory = ended.is_err_and(|status| status.is(Status::DATA_TRANSFER_ERROR));
        assert!(no_memory, "{sets:?}");
    }
}

#[test]
fn a_grant_of_nothing_can_be_taken_back() {
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    // One descriptor, of no length.
    let grant = [0xd, 1, 8, 0xa000, 0, 1];
    driver.admin(9, 0, &grant).expect("nothing is granted");
    driver.take_host_memory_back().expect("and taken back");
}

#[test]
fn commands_that_the_drive_has_not_begun_are_aborted_on_demand_and_with_their_queue() {
    let (ram, spec) = (ram(), spec(&[("controller.command_slots", "4")]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    driver.create_queues(1);
    let submit = |driver: &mut driver::Driver<Simulated<'_>>| {
        let commands = (0..40).map(|at| {
            let entry = driver.entry(1, 1, 8 * at, 8);
            driver.submit(1, entry);
            entry.command().0
        });
        commands.collect::<Vec<u16>>()
    };
    let commands = submit(&mut driver);
    let (first, last) = (commands[0], commands[39]);
    assert!(driver.port.wait(), "all are fetched");
    for (command, not_aborted) in [(last, 0), (last, 1), (first, 1)] {
        let dword10 = 1 | u32::from(command) << 16;
        assert_eq!(driver.admin(8, 0, &[dword10]), Ok(not_aborted));
    }
    let mut ended = driver.reap(1);
    while ended.len() < 40 {
        assert!(driver.port.wait(), "{} have ended", ended.len());
        ended.extend(driver.reap(1));
    }
    for (command, outcome) in ended {
        let expected = match command == last {
            true => Status::ABORT_REQUESTED,
            false => Status::SUCCESS,
        };
        assert!(outcome.status.is(expected), "{command}: {outcome:?}");
    }
    submit(&mut driver);
    assert!(driver.port.wait(), "all are fetched");
    driver.admin(0, 0, &[1]).expect("the queue is deleted");
    let ended = driver.reap(1);
    let deleted = |(_, outcome): &&(u16, _)| {
        let outcome: &lodger_wire::entry::Outcome = outcome;
        outcome.status.is(Status::ABORTED_QUEUE_DELETED)
    };
    let aborted = ended.iter().filter(deleted).count();
    assert_eq!(ended.len(), 40);
    assert!((30..40).contains(&aborted), "{aborted}");
}

#[test]
fn a_map_that_host_memory_cannot_hold_as_bytes_is_refused_and_panics_nowhere() {
    let ram = ram();
    for sets in [
        [("role.map.encoding.hmb", "runs")],
        [("role.map.bytes_per_page.hmb", "3.5")],
    ] {
        let refused = Controller::new(&spec(&sets), &Settings::default(), &ram).err();
        assert!(
            matches!(refused, Some(Unservable::MapInHostMemory)),
            "{sets:?}"
        );
    }
}

/// What a guest would see of it is memory of its own, beside the drive.
#[test]
fn a_window_that_is_memory_of_the_host_is_refused() {
    let ram = ram();
    let window = [
        ("role.window.size", "64KiB"),
        ("role.window.page", "1us"),
        ("role.window.read_dma", "1us"),
        ("tier.pm.size", "1MiB"),
        ("tier.cxl.size", "1MiB"),
    ];
    let with = |tier: &'static str| {
        let sets = [&window[..], &[("role.window.tier", tier)]].concat();
        Controller::new(&spec(&sets), &Settings::default(), &ram).err()
    };
    assert_eq!(with("cxl"), Some(Unservable::WindowOfHost));
    assert_eq!(with("pm"), None);
}

#[test]
fn a_write_whose_data_cannot_be_had_leaves_what_was_there() {
    const NOWHERE: u64 = MEMORY_BYTES;
    const BLOCKS: u64 = 16;
    let (ram, spec) = (ram(), spec(&[]));
    let mut driver = Simulated::driver(&spec, &ram);
    driver.enable();
    driver.create_queues(1);
    let buffer = driver.io[0].buffer(0);
    let write = |driver: &mut driver::Driver<_>, lba: u64, blocks: u32, prp: (u64, u64)| {
        let entry = driver.entry(1, 1, lba, blocks).with_prp(prp.0, prp.1);
        driver.run(1, entry)
    };
    let read = |driver: &mut driver::Driver<Simulated>| {
        let entry = driver.entry(1, 2, 0, BLOCKS as u32);
        driver
            .run(1, entry.with_prp(buffer, buffer + 4096))
            .expect("it can be read");
        let mut bytes = vec![0; BLOCKS as usize * 512];
        driver
            .port
            .memory()
            .read(buffer, &mut bytes)
            .expect("memory");
        bytes
    };
    let memory = driver.port.memory();
    memory.write(buffer, &[0x11; 8192]).expect("memory");
    write(&mut driver, 0, 16, (buffer, buffer + 4096)).expect("it is written");
    for is_flushed in [false, true] {
        if is_flushed {
            let flush = driver.entry(1, 0, 0, 1);
            driver.run(1, flush).expect("Flush");
        }
        driver
            .port
            .memory()
            .write(buffer, &[0x22; 8192])
            .expect("memory");
        // A block, a page, and two pages of which one could be had.
        for (lba, blocks, prp) in [
            (3, 1, (NOWHERE, 0)),
            (0, 8, (NOWHERE, 0)),
            (0, 16, (buffer, NOWHERE)),
            (0, 16, (NOWHERE, buffer)),
        ] {
            let failed = write(&mut driver, lba, blocks, prp).expect_err("data from nowhere");
            assert!(failed.is(Status::DATA_TRANSFER_ERROR), "{failed}");
            assert_eq!(read(&mut driver), [0x11; 8192], "{lba}, {blocks}");
            driver
                .port
                .memory()
                .write(buffer, &[0x22; 8192])
                .expect("memory");
        }
    }
}

/// The host was told to look into the error log, and nothing was there.
#[test]
fn a_doorbell_of_no_queue_is_in_the_error_log() {
    let ram = ram();
    let mut driver = Simulated::driver(&spec(&[]), &ram);
    driver.enable();
    driver.port.write(0x1000 + 2 * 5 * 4, 1);
    driver.port.wait();
    let page = driver.log(1, 64);
    assert_eq!(number(&page, 0, 8), 1);
    assert_eq!(
        number(&page, 8, 4),
        0xffff_ffff,
        "of no queue and no command"
    );
    assert_eq!(
        number(&page, 12, 2) >> 1 & 0x7ff,
        0x101,
        "Invalid Queue Identifier"
    );
}

/// The drive looked at it over and over, and never slept.
#[test]
fn a_doorbell_in_memory_that_cannot_be_is_told_once_and_lets_the_drive_sleep() {
    for at in [8, 12] {
        let ram = ram();
        let mut driver = Simulated::driver(&spec(&[]), &ram);
        driver.enable();
        driver.create_queues(1);
        driver.use_shadows();
        let entry = driver.entry(1, 2, 0, 8);
        driver.run(1, entry).expect("a read");
        let request = SubmissionEntry::new(0xc, CommandId(99), NamespaceId::NONE);
        driver.submit(0, request);
        driver.port.wait();
        let value = ram.load_u32(SHADOWS_AT + at).expect("a doorbell");
        ram.store_u32(SHADOWS_AT + at, u32::MAX).expect("memory");
        for _ in 0..100 {
            driver.port.wait();
        }
        assert!(driver.port.controller.may_sleep(), "at {at}");
        let event = ram.load_u32(SHADOWS_AT + PAGE + at);
        if at == 8 {
            assert_eq!(event, Ok(value), "the next step is to be rung for");
        }
        let told = driver.reap(0).pop().expect("an event");
        assert_eq!((told.0, told.1.result), (99, 0x0001_0100));
        let page = driver.log(1, 128);
        assert_eq!(number(&page, 0, 8), 1);
        assert_eq!(number(&page, 64, 8), 0, "once");
        assert_eq!(number(&page, 12, 2) >> 1 & 0x7ff, 2, "Invalid Field");
        ram.store_u32(SHADOWS_AT + at, value).expect("memory");
        let entry = driver.entry(1, 2, 0, 8);
        driver.run(1, entry).expect("the queue is as it was");
    }
}
