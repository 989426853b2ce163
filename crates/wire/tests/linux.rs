//! Can a whole controller stand on this crate alone? A host does what Linux's driver does, step by step, against a
//! small one; and then things that no driver should do.

mod tiny;

use lodger_wire::entry::{CompletionEntry, Outcome, SubmissionEntry};
use lodger_wire::hmb::HmbDescriptor;
use lodger_wire::memory::GuestMemory;
use lodger_wire::registers::offset;
use lodger_wire::status::Status;
use lodger_wire::{CommandId, NamespaceId, QueueId};
use proptest::prelude::*;
use tiny::Tiny;

const PAGE: u64 = 0x1000;
/// Where each queue's rings are: submission, completion.
const RINGS: [(u64, u64); 2] = [(0x1000, 0x2000), (0x3000, 0x4000)];
const ENTRIES: u32 = 8;
const DATA: u64 = 0x10_000;
const SHADOWS: u64 = 0x5000;

/// A driver that waits for each command.
struct Driver {
    tiny: Tiny,
    /// Next tail, next head and phase of each queue.
    queues: [(u32, u32, bool); 2],
    uses_shadows: bool,
    register_writes: u32,
}

impl Driver {
    fn start() -> Self {
        let mut driver = Driver {
            tiny: Tiny::new(0x40_000),
            queues: [(0, 0, true); 2],
            uses_shadows: false,
            register_writes: 0,
        };
        driver.enable();
        driver
    }

    fn write32(&mut self, at: u64, value: u32) {
        self.register_writes += 1;
        self.tiny.write(at, &value.to_le_bytes());
    }

    fn status(&self) -> u32 {
        let mut bytes = [0; 4];
        self.tiny.registers.read(offset::CSTS, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    fn enable(&mut self) {
        for (submission, completion) in RINGS {
            self.tiny
                .memory
                .write(submission, &[0; PAGE as usize])
                .unwrap();
            self.tiny
                .memory
                .write(completion, &[0; PAGE as usize])
                .unwrap();
        }
        self.queues = [(0, 0, true); 2];
        self.uses_shadows = false;
        self.write32(offset::AQA, (ENTRIES - 1) << 16 | (ENTRIES - 1));
        self.tiny.write(offset::ASQ, &RINGS[0].0.to_le_bytes());
        self.tiny.write(offset::ACQ, &RINGS[0].1.to_le_bytes());
        self.write32(offset::CC, 4 << 20 | 6 << 16 | 1);
        assert_eq!(self.status(), 1);
    }

    fn ring(&mut self, queue: usize, is_head: u32, value: u32) {
        let index = 2 * queue as u32 + is_head;
        if self.uses_shadows && queue > 0 {
            let at = SHADOWS + 4 * u64::from(index);
            self.tiny.memory.store_u32(at, value).unwrap();
            self.tiny.poll();
        } else {
            self.write32(offset::DOORBELLS + 4 * u64::from(index), value);
        }
    }

    fn send(&mut self, queue: usize, entry: &SubmissionEntry) {
        let (tail, ..) = self.queues[queue];
        let at = RINGS[queue].0 + 64 * u64::from(tail);
        self.tiny.memory.write(at, &entry.0).unwrap();
        self.queues[queue].0 = (tail + 1) % ENTRIES;
        self.ring(queue, 0, self.queues[queue].0);
    }

    fn completion(&mut self, queue: usize) -> Option<CompletionEntry> {
        let (_, head, phase) = self.queues[queue];
        let mut bytes = [0; 16];
        let at = RINGS[queue].1 + 16 * u64::from(head);
        self.tiny.memory.read(at, &mut bytes).unwrap();
        let (entry, is_new) = CompletionEntry::decode(&bytes);
        if is_new != phase {
            return None;
        }
        let head = (head + 1) % ENTRIES;
        (self.queues[queue].1, self.queues[queue].2) = (head, phase ^ (head == 0));
        self.ring(queue, 1, head);
        Some(entry)
    }

    fn run(&mut self, queue: usize, entry: &SubmissionEntry) -> Outcome {
        self.send(queue, entry);
        let completion = self.completion(queue).expect("it answers at once");
        assert_eq!(completion.command, entry.command());
        assert_eq!(completion.submission_queue, QueueId(queue as u16));
        assert_eq!(u32::from(completion.submission_head), self.queues[queue].0);
        completion.outcome
    }

    fn admin(&mut self, opcode: u8, dwords: &[(usize, u32)], prp1: u64) -> Outcome {
        let entry = SubmissionEntry::new(opcode, CommandId(7), NamespaceId(1)).with_prp(prp1, 0);
        let set = |entry: SubmissionEntry, (index, value): &(usize, u32)| {
            entry.with_dword(*index, *value)
        };
        let entry = dwords.iter().fold(entry, set);
        self.run(0, &entry)
    }

    fn create_queues(&mut self) {
        let number = self.admin(0x09, &[(10, 7), (11, 0x0001_0001)], 0);
        assert_eq!(number.result, 0x0003_0003, "as many as it has");
        let size = (ENTRIES - 1) << 16 | 1;
        let created = self.admin(0x05, &[(10, size), (11, 1 << 16 | 3)], RINGS[1].1);
        assert_eq!(created, Outcome::SUCCESS);
        let created = self.admin(0x01, &[(10, size), (11, 1 << 16 | 1)], RINGS[1].0);
        assert_eq!(created, Outcome::SUCCESS);
    }

    /// Reads, or writes, blocks with 4 KiB and more in a list of pages.
    fn access(&mut self, opcode: u8, block: u32, blocks: u32) -> Outcome {
        let list = 0x8000;
        let pages = (512 * blocks).div_ceil(4096);
        for page in 1..u64::from(pages) {
            let address = DATA + page * PAGE;
            let at = list + 8 * (page - 1);
            self.tiny.memory.write(at, &address.to_le_bytes()).unwrap();
        }
        let prp2 = if pages > 2 { list } else { DATA + PAGE };
        let entry = SubmissionEntry::new(opcode, CommandId(9), NamespaceId(1))
            .with_prp(DATA, prp2)
            .with_dword(10, block)
            .with_dword(12, blocks - 1);
        self.run(1, &entry)
    }
}

#[test]
fn a_drive_is_found_asked_and_used() {
    let mut driver = Driver::start();
    assert_eq!(driver.admin(0x06, &[(10, 1)], DATA), Outcome::SUCCESS);
    assert_eq!(driver.tiny.memory.load_u32(DATA + 272), Ok(64), "HMPRE");
    assert_eq!(driver.admin(0x06, &[(10, 0)], DATA), Outcome::SUCCESS);
    assert_eq!(driver.tiny.memory.load_u32(DATA), Ok(256), "NSZE");
    driver.create_queues();
    driver.tiny.interrupts = 0;
    let data: Vec<u8> = (0..16 * 512u32).map(|at| (at / 3) as u8).collect();
    driver.tiny.memory.write(DATA, &data).unwrap();
    assert_eq!(driver.access(1, 40, 16), Outcome::SUCCESS);
    assert_eq!(driver.tiny.interrupts, 2, "its own vector");
    driver.tiny.memory.write(DATA, &[0; 16 * 512]).unwrap();
    assert_eq!(driver.access(2, 40, 16), Outcome::SUCCESS);
    let mut read = vec![0; data.len()];
    driver.tiny.memory.read(DATA, &mut read).unwrap();
    assert_eq!(read, data);
    assert_eq!(driver.access(5, 40, 16), Outcome::SUCCESS);
    assert_eq!(driver.access(5, 41, 16).status, Status::COMPARE_FAILURE);
    assert_eq!(driver.access(2, 250, 7).status, Status::LBA_OUT_OF_RANGE);
    // More rounds of the rings than one.
    for round in 0..40 {
        assert_eq!(driver.access(2, round, 24), Outcome::SUCCESS);
    }
}

#[test]
fn host_memory_is_granted_taken_and_gone_after_a_reset() {
    let mut driver = Driver::start();
    let list = 0x9000;
    for index in 0..4u64 {
        let entry = HmbDescriptor {
            address: 0x20_000 + index * 0x4000,
            pages: 4,
        };
        let at = list + 16 * index;
        driver.tiny.memory.write(at, &entry.encode()).unwrap();
    }
    let grant = |flags| [(10, 0xd), (11, flags), (12, 16), (13, list as u32), (15, 4)];
    assert_eq!(driver.admin(0x09, &grant(1), 0), Outcome::SUCCESS);
    assert_eq!(driver.tiny.host_ranges.len(), 4);
    let twice = driver.admin(0x09, &grant(1), 0);
    assert_eq!(twice.status, Status::COMMAND_SEQUENCE_ERROR);
    assert_eq!(driver.admin(0x0a, &[(10, 0xd)], DATA).result, 1);
    assert_eq!(driver.tiny.memory.load_u32(DATA), Ok(16));
    assert_eq!(driver.admin(0x09, &[(10, 0xd)], 0), Outcome::SUCCESS);
    assert!(driver.tiny.host_ranges.is_empty());
    assert_eq!(driver.admin(0x09, &grant(3), 0), Outcome::SUCCESS);
    driver.write32(offset::CC, 0);
    assert!(driver.tiny.host_ranges.is_empty(), "gone with the reset");
    driver.enable();
    assert_eq!(driver.admin(0x09, &grant(3), 0), Outcome::SUCCESS);
}

#[test]
fn shadow_doorbells_need_no_register_and_do_not_outlive_a_reset() {
    let mut driver = Driver::start();
    driver.create_queues();
    let config = SubmissionEntry::new(0x7c, CommandId(1), NamespaceId::NONE)
        .with_prp(SHADOWS, SHADOWS + PAGE);
    assert_eq!(driver.run(0, &config), Outcome::SUCCESS);
    driver.uses_shadows = true;
    let writes = driver.register_writes;
    for block in 0..50 {
        assert_eq!(driver.access(2, block, 8), Outcome::SUCCESS);
    }
    assert_eq!(driver.register_writes, writes);
    driver.write32(offset::CC, 0);
    driver.enable();
    driver.create_queues();
    // The old page still holds old indices: no one may look at them.
    driver.tiny.poll();
    assert_eq!(driver.access(2, 0, 8), Outcome::SUCCESS);
}

#[test]
fn events_are_told_when_they_were_asked_for() {
    let mut driver = Driver::start();
    driver.send(
        0,
        &SubmissionEntry::new(0x0c, CommandId(3), NamespaceId::NONE),
    );
    assert_eq!(driver.completion(0), None, "nothing has happened");
    driver.write32(offset::DOORBELLS + 8 * 3, 1);
    let event = driver.completion(0).expect("a doorbell of no queue");
    assert_eq!(
        (event.command, event.outcome.result),
        (CommandId(3), 0x01_0000)
    );
    driver.send(
        0,
        &SubmissionEntry::new(0x0c, CommandId(4), NamespaceId::NONE),
    );
    driver.write32(offset::DOORBELLS, 99);
    let event = driver.completion(0).expect("a value beyond the end");
    assert_eq!(event.outcome.result, 0x01_0100);
}

#[test]
fn queues_are_deleted_in_their_order() {
    let mut driver = Driver::start();
    driver.create_queues();
    let early = driver.admin(0x04, &[(10, 1)], 0);
    assert_eq!(early.status, Status::QUEUE_DELETION_INVALID);
    assert_eq!(driver.admin(0x00, &[(10, 1)], 0), Outcome::SUCCESS);
    assert_eq!(driver.admin(0x04, &[(10, 1)], 0), Outcome::SUCCESS);
    let again = driver.admin(0x04, &[(10, 1)], 0);
    assert_eq!(again.status, Status::QUEUE_ID_INVALID);
    assert_eq!(
        driver.admin(0x00, &[(10, 0)], 0).status,
        Status::QUEUE_ID_INVALID
    );
    driver.queues[1] = (0, 0, true);
    driver
        .tiny
        .memory
        .write(RINGS[1].1, &[0; PAGE as usize])
        .unwrap();
    driver.create_queues();
    assert_eq!(driver.access(2, 0, 8), Outcome::SUCCESS);
}

proptest! {
    #![proptest_config(lodger_testing::config(300))]

    /// Any entries in a driver's queues: each is completed, and the next good command works.
    #[test]
    fn hostile_commands_end_and_good_ones_go_on(
        entries in prop::collection::vec((0..2usize, any::<[u8; 32]>(), any::<[u8; 32]>(), 0..0x85u8), 1..40),
    ) {
        let mut driver = Driver::start();
        driver.create_queues();
        for (queue, low, high, opcode) in entries {
            let mut entry = SubmissionEntry([0; 64]);
            entry.0[..32].copy_from_slice(&low);
            entry.0[32..].copy_from_slice(&high);
            entry.0[0] = opcode;
            // Event requests end later; queues that are gone, and doorbells in memory, are other tests' matter.
            if queue == 0 && [0, 4, 0xc, 0x7c].contains(&opcode) {
                continue;
            }
            // Data that reaches into the rings would be the host's own fault.
            let entry = entry.with_prp(DATA | u64::from(low[9]), DATA + PAGE + u64::from(high[9] & 1));
            driver.run(queue, &entry);
        }
        prop_assert_eq!(driver.admin(0x06, &[(10, 1)], DATA), Outcome::SUCCESS);
        prop_assert_eq!(driver.access(2, 0, 8), Outcome::SUCCESS);
    }
}
