//! Is nothing allocated on the way of a command, from the doorbell to its completion?
//!
//! The only test of its file, as others beside it would allocate meanwhile.

use cap::Cap;
use lodger_wire::command::{AdminCommand, IoCommand};
use lodger_wire::entry::{Outcome, SubmissionEntry};
use lodger_wire::lba::BlockSize;
use lodger_wire::memory::{GuestMemory, Ram};
use lodger_wire::queue::{CompletionQueue, Fetch, Posted, Priority, SubmissionQueue};
use lodger_wire::registers::{Capabilities, Effect, QueueMemory, Registers, offset};
use lodger_wire::{CommandId, NamespaceId, PageSize, QueueId};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// A read of 256 KiB, by a list of pages; or by a segment of two descriptors.
fn read(id: u16, by_descriptors: bool) -> SubmissionEntry {
    let mut entry = SubmissionEntry::new(2, CommandId(id), NamespaceId(1)).with_dword(12, 511);
    if by_descriptors {
        entry = entry.with_prp(0x7000, 0x3000_0000_0000_0020);
        entry.0[1] = 0x40;
        return entry;
    }
    entry.with_prp(0x10_000, 0x6000)
}

/// Bytes allocated while so many commands are served.
fn allocated_by(
    commands: u16,
    memory: &Ram,
    registers: &mut Registers,
    (submission, completion): (&mut SubmissionQueue, &mut CompletionQueue),
    data: &[u8],
) -> usize {
    let before = ALLOCATOR.total_allocated();
    for round in 0..commands {
        let tail = u64::from(round % 8);
        memory
            .write(0x1000 + 64 * tail, &read(round, round % 2 == 1).0)
            .unwrap();
        let next = (u32::from(round) + 1) % 8;
        let effect = registers.write(offset::DOORBELLS + 8, &next.to_le_bytes());
        let Effect::Doorbell(doorbell) = effect else {
            panic!("a doorbell");
        };
        submission.set_tail(doorbell.value.into()).unwrap();
        let Ok(Fetch::Command(entry, permit)) = submission.fetch(completion, memory) else {
            panic!("a command");
        };
        assert!(AdminCommand::parse(&entry).is_err() || round % 2 == 0);
        let parsed = IoCommand::parse(&entry).unwrap();
        let transfer = parsed.command.transfer(BlockSize::B512);
        let part = &data[..transfer.bytes as usize];
        parsed.data.write(memory, PageSize::MIN, part).unwrap();
        let posted = completion.complete(permit, Outcome::SUCCESS, submission.head(), memory);
        assert_eq!(posted, Ok(Posted::Entry));
        completion.set_head(next).unwrap();
    }
    ALLOCATOR.total_allocated() - before
}

#[test]
fn nothing_is_allocated_on_the_way_of_a_command() {
    let memory = Ram::new(0x10_0000);
    for page in 0..64u64 {
        let address = 0x20_000 + page * 4096;
        memory
            .write(0x6000 + 8 * page, &address.to_le_bytes())
            .unwrap();
    }
    for (at, address) in [(0x7000, 0x20_000u64), (0x7010, 0x40_000)] {
        memory.write(at, &address.to_le_bytes()).unwrap();
        memory.write(at + 8, &(128u64 << 10).to_le_bytes()).unwrap();
    }
    let mut registers = Registers::new(Capabilities::default());
    registers.write(offset::AQA, &0x0001_0001u32.to_le_bytes());
    registers.write(offset::CC, &1u32.to_le_bytes());
    registers.ready();
    let at = |address| QueueMemory {
        address,
        entries: 8,
    };
    let id = QueueId(1);
    let mut submission = SubmissionQueue::new(id, at(0x1000), id, Priority::Urgent);
    let mut completion = CompletionQueue::new(id, at(0x2000), Some(1), 0);
    let data = vec![7; 256 << 10];

    let mut least = usize::MAX;
    for _ in 0..5 {
        let queues = (&mut submission, &mut completion);
        least = least.min(allocated_by(1000, &memory, &mut registers, queues, &data));
    }
    // What runs the tests has a thread of its own, which may allocate meanwhile; not each time.
    assert_eq!(least, 0);
    // The counter counts.
    let before = ALLOCATOR.total_allocated();
    drop(std::hint::black_box(vec![0u8; 100]));
    assert!(ALLOCATOR.total_allocated() >= before + 100);
}
