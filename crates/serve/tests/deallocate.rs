//! Is the drive there for others while a host deallocates as much as a command may? In simulated time.

mod driver;
mod simulated;

use driver::{Driver, Port};
use lodger_wire::entry::SubmissionEntry;
use lodger_wire::memory::GuestMemory;
use lodger_wire::registers::offset;
use lodger_wire::status::Status;
use lodger_wire::{CommandId, NamespaceId};
use simulated::{Simulated, ram, spec};

/// 4 GiB.
const PAGES: u64 = 1 << 20;
/// What the drive goes through in one go, 256 MiB, with what is counted for the pieces.
const AT_ONCE: u64 = (1 << 16) + 64;
const PS_PER_MS: u64 = 1_000_000_000;

/// Dataset Management of 256 ranges, each of all there is but for its own number of blocks at either end.
fn of_all_256_times(driver: &mut Driver<Simulated<'_>>) -> SubmissionEntry {
    let entry = driver.entry(1, 9, 0, 8);
    let buffer = driver.io[0].buffer(entry.command().0);
    for range in 0..256_u64 {
        let (first, blocks) = (range, (PAGES * 8 - 2 * range) as u32);
        let mut bytes = [0; 16];
        bytes[4..8].copy_from_slice(&blocks.to_le_bytes());
        bytes[8..].copy_from_slice(&first.to_le_bytes());
        let at = buffer + 16 * range;
        driver.port.memory().write(at, &bytes).unwrap();
    }
    entry
        .with_dword(10, 255)
        .with_dword(11, 4)
        .with_dword(12, 0)
}

/// A drive whose queue has that many of them; without its host's having looked.
fn busy(driver: &mut Driver<Simulated<'_>>, commands: usize) {
    driver.enable();
    driver.create_queues(1);
    for _ in 0..commands {
        let entry = of_all_256_times(driver);
        driver.submit(1, entry);
    }
}

#[test]
fn what_is_deallocated_between_two_polls_is_bounded_however_much_is_asked_for() {
    let (ram, spec) = (ram(), spec(&[("capacity", "4GiB")]));
    let mut driver = Simulated::driver(&spec, &ram);
    busy(&mut driver, 20);
    let (mut polls, mut done) = (0, 0);
    while done < 20 {
        let port = &mut driver.port;
        let before = port.controller.deallocated_pages();
        port.now_ps += PS_PER_MS;
        port.controller.poll(port.now_ps);
        let pages = port.controller.deallocated_pages() - before;
        assert!(pages <= AT_ONCE, "{pages} pages in one poll");
        for (_, outcome) in driver.reap(1) {
            assert_eq!(outcome.status, Status::SUCCESS);
            done += 1;
        }
        polls += 1;
        assert!(polls < 1000, "{done} of 20 are done");
    }
    // Each command has gone through all pages, and once.
    let pages = driver.port.controller.deallocated_pages();
    assert!(
        (20 * PAGES..20 * (PAGES + 17 * 64)).contains(&pages),
        "{pages}"
    );
}

#[test]
fn who_does_not_wait_for_the_drive_looks_up_between_pieces() {
    let (ram, spec) = (ram(), spec(&[("capacity", "4GiB")]));
    let mut driver = Simulated::driver(&spec, &ram);
    busy(&mut driver, 20);
    let controller = &mut driver.port.controller;
    controller.poll(driver.port.now_ps);
    while controller.is_waited_for() {
        let before = controller.deallocated_pages();
        let Some(next_ps) = controller.run_to_answers(256) else {
            break;
        };
        controller.poll(next_ps);
        let pages = controller.deallocated_pages() - before;
        assert!(
            pages <= 2 * AT_ONCE,
            "{pages} pages before others are looked at"
        );
    }
    assert_eq!(driver.reap(1).len(), 20);
}

#[test]
fn a_reset_ends_what_is_being_deallocated() {
    let (ram, spec) = (ram(), spec(&[("capacity", "4GiB")]));
    let mut driver = Simulated::driver(&spec, &ram);
    busy(&mut driver, 20);
    let port = &mut driver.port;
    for _ in 0..4 {
        port.now_ps += PS_PER_MS;
        port.controller.poll(port.now_ps);
    }
    port.write(offset::CC, 0);
    port.controller.poll(port.now_ps);
    let before = port.controller.deallocated_pages();
    for _ in 0..4 {
        port.now_ps += PS_PER_MS;
        port.controller.poll(port.now_ps);
    }
    assert_eq!(port.read(offset::CSTS) & 1, 0, "CSTS.RDY");
    // The piece that was under way, at most.
    assert!(port.controller.deallocated_pages() <= before + AT_ONCE);
    // And the drive is as good as ever.
    busy(&mut driver, 1);
    while driver.reap(1).is_empty() {
        assert!(driver.port.wait(), "the command is done");
    }
}

#[test]
fn write_zeroes_and_others_are_done_beside_what_takes_long() {
    let (ram, spec) = (ram(), spec(&[("capacity", "4GiB")]));
    let mut driver = Simulated::driver(&spec, &ram);
    busy(&mut driver, 20);
    // 32 MiB less a block at either end, and a read.
    let zeroes = SubmissionEntry::new(8, CommandId(40), NamespaceId(1));
    driver.submit(1, zeroes.with_dword(10, 1).with_dword(12, 65_534 - 1));
    let read = driver.entry(1, 2, 0, 8);
    let read_is = read.command().0;
    driver.submit(1, read);
    let mut order = Vec::new();
    while order.len() < 22 {
        assert!(driver.port.wait(), "{order:?}");
        order.extend(driver.reap(1).into_iter().map(|(command, _)| command));
    }
    assert_eq!(order[0], read_is, "{order:?}");
    assert_eq!(order[1], 40, "{order:?}");
}
