//! A small NVMe driver that does what Linux's does: reset, enable, identify, host memory, queues, shadow
//! doorbells, commands with PRP lists. It reaches its controller through a [`Port`].
#![allow(dead_code)]

pub mod filled;
pub mod mix;

use lodger_wire::entry::{COMPLETION_BYTES, CompletionEntry, Outcome, SubmissionEntry};
use lodger_wire::memory::GuestMemory;
use lodger_wire::queue::needs_event;
use lodger_wire::registers::offset;
use lodger_wire::status::Status;
use lodger_wire::{CommandId, NamespaceId};
use std::collections::HashSet;

pub const PAGE: u64 = 4096;
/// Entries of an I/O queue; at most one less is under way.
pub const ENTRIES: u32 = 64;
/// Bytes of the buffer that each command of a queue has.
pub const BUFFER_BYTES: u64 = 64 << 10;
/// Where host memory that is granted begins; it is in pieces, with gaps.
pub const HMB_AT: u64 = 48 << 20;
/// Memory that a driver needs.
pub const MEMORY_BYTES: u64 = 64 << 20;

/// The way to a controller, and the driver's memory.
pub trait Port {
    type Memory: GuestMemory;
    fn memory(&self) -> &Self::Memory;
    fn read(&mut self, at: u64) -> u32;
    fn write(&mut self, at: u64, value: u32);
    /// Some time passes; `false` once it has been too much.
    fn wait(&mut self) -> bool;
}

/// A pair of queues.
#[derive(Debug)]
pub struct Pair {
    pub id: u16,
    submissions: u64,
    completions: u64,
    entries: u32,
    tail: u32,
    head: u32,
    phase: bool,
    pub under_way: HashSet<u16>,
    next: u16,
    buffers: u64,
}

impl Pair {
    fn new<M: GuestMemory>(id: u16, at: u64, entries: u32, memory: &M) -> Self {
        let pair = Pair {
            id,
            submissions: at,
            completions: at + PAGE,
            entries,
            tail: 0,
            head: 0,
            phase: true,
            under_way: HashSet::new(),
            next: 0,
            buffers: at + 4 * PAGE,
        };
        memory.write(pair.completions, &[0; PAGE as usize]).unwrap();
        pair
    }

    /// Bytes from one pair to the next.
    const STRIDE: u64 = 4 * PAGE + ENTRIES as u64 * (BUFFER_BYTES + PAGE);

    /// Where a command's data lies.
    pub fn buffer(&self, command: u16) -> u64 {
        self.buffers + u64::from(command) * (BUFFER_BYTES + PAGE)
    }

    pub fn has_room(&self) -> bool {
        self.under_way.len() + 1 < self.entries as usize
    }
}

/// Whether a command has ended with this status.
pub fn is<T>(ended: &Result<T, Status>, status: Status) -> bool {
    ended.as_ref().is_err_and(|ended| ended.is(status))
}

/// A number within what the controller returns; the lowest byte is the first.
pub fn number(page: &[u8], at: usize, bytes: usize) -> u64 {
    let digits = page[at..at + bytes].iter().rev();
    digits.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

pub struct Driver<P: Port> {
    pub port: P,
    pub admin: Pair,
    pub io: Vec<Pair>,
    shadows: Option<(u64, u64)>,
    shadows_on: bool,
}

const ADMIN_AT: u64 = 0x1_0000;
const SCRATCH_AT: u64 = 0x4000;
pub const SHADOWS_AT: u64 = 0x8000;
const LIST_AT: u64 = 0xa000;
const IO_AT: u64 = 1 << 20;

impl<P: Port> Driver<P> {
    pub fn new(port: P) -> Self {
        let admin = Pair::new(0, ADMIN_AT, 32, port.memory());
        Driver {
            port,
            admin,
            io: Vec::new(),
            shadows: None,
            shadows_on: false,
        }
    }

    fn wait_ready(&mut self, ready: u32) {
        while self.port.read(offset::CSTS) & 1 != ready {
            assert!(self.port.wait(), "CSTS.RDY does not become {ready}");
        }
    }

    pub fn disable(&mut self) {
        self.port.write(offset::CC, 0);
        self.wait_ready(0);
    }

    pub fn enable(&mut self) {
        self.enable_with(32);
    }

    /// With admin queues of so many entries.
    pub fn enable_with(&mut self, entries: u32) {
        self.disable();
        self.admin = Pair::new(0, ADMIN_AT, entries, self.port.memory());
        self.io.clear();
        (self.shadows, self.shadows_on) = (None, false);
        self.port
            .write(offset::AQA, (entries - 1) << 16 | (entries - 1));
        for (at, value) in [(offset::ASQ, ADMIN_AT), (offset::ACQ, ADMIN_AT + PAGE)] {
            self.port.write(at, value as u32);
            self.port.write(at + 4, (value >> 32) as u32);
        }
        self.port.write(offset::CC, 4 << 20 | 6 << 16 | 1);
        self.wait_ready(1);
    }

    pub fn shutdown(&mut self) {
        self.port.write(offset::CC, 4 << 20 | 6 << 16 | 1 << 14 | 1);
        while self.port.read(offset::CSTS) >> 2 & 3 != 2 {
            assert!(self.port.wait(), "CSTS.SHST does not become 2");
        }
    }

    fn pair(&mut self, queue: usize) -> &mut Pair {
        match queue {
            0 => &mut self.admin,
            _ => &mut self.io[queue - 1],
        }
    }

    fn ring(&mut self, queue: u16, is_head: bool, value: u32, old: u32) {
        let index = 2 * u64::from(queue) + u64::from(is_head);
        if let (Some((doorbells, events)), true) = (self.shadows, self.shadows_on && queue > 0) {
            let memory = self.port.memory();
            memory.store_u32(doorbells + 4 * index, value).unwrap();
            std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
            let event = memory.load_u32(events + 4 * index).unwrap() as u16;
            if !needs_event(event, value as u16, old as u16) {
                return;
            }
        }
        self.port.write(offset::DOORBELLS + 4 * index, value);
    }

    /// A command that no other under way has the number of. Queue 0 is the admin queue.
    pub fn free_command(&mut self, queue: usize) -> u16 {
        let pair = self.pair(queue);
        loop {
            pair.next = (pair.next + 1) % pair.entries as u16;
            if !pair.under_way.contains(&pair.next) {
                return pair.next;
            }
        }
    }

    pub fn submit(&mut self, queue: usize, entry: SubmissionEntry) {
        let pair = self.pair(queue);
        assert!(pair.under_way.insert(entry.command().0));
        let (id, at, old) = (
            pair.id,
            pair.submissions + 64 * u64::from(pair.tail),
            pair.tail,
        );
        pair.tail = (pair.tail + 1) % pair.entries;
        let tail = pair.tail;
        self.port.memory().write(at, &entry.0).unwrap();
        self.ring(id, false, tail, old);
    }

    /// Completions that have come.
    pub fn reap(&mut self, queue: usize) -> Vec<(u16, Outcome)> {
        let mut done = Vec::new();
        loop {
            let pair = match queue {
                0 => &mut self.admin,
                _ => &mut self.io[queue - 1],
            };
            let at = pair.completions + COMPLETION_BYTES as u64 * u64::from(pair.head);
            let last = self.port.memory().load_u32(at + 12).unwrap();
            if (last >> 16 & 1 == 1) != pair.phase {
                break;
            }
            let mut bytes = [0; COMPLETION_BYTES];
            self.port.memory().read(at, &mut bytes).unwrap();
            let (entry, _) = CompletionEntry::decode(&bytes);
            assert!(
                pair.under_way.remove(&entry.command.0),
                "a completion of no command"
            );
            assert_eq!(entry.submission_queue.0, pair.id);
            let old = pair.head;
            pair.head = (pair.head + 1) % pair.entries;
            pair.phase ^= pair.head == 0;
            let (id, head) = (pair.id, pair.head);
            self.ring(id, true, head, old);
            done.push((entry.command.0, entry.outcome));
        }
        done
    }

    /// Does one command and waits for it.
    pub fn run(&mut self, queue: usize, entry: SubmissionEntry) -> Result<u32, Status> {
        let command = entry.command().0;
        self.submit(queue, entry);
        loop {
            if let Some((done, outcome)) = self.reap(queue).pop() {
                assert_eq!(done, command, "nothing else is under way");
                return match outcome.status.is_success() {
                    true => Ok(outcome.result as u32),
                    false => Err(outcome.status),
                };
            }
            assert!(self.port.wait(), "command {entry:?} does not complete");
        }
    }

    /// An admin command with dwords from 10 on, and a page for its data.
    pub fn admin(&mut self, opcode: u8, namespace: u32, dwords: &[u32]) -> Result<u32, Status> {
        let command = CommandId(self.free_command(0));
        let mut entry = SubmissionEntry::new(opcode, command, NamespaceId(namespace));
        for (index, dword) in dwords.iter().enumerate() {
            entry = entry.with_dword(10 + index, *dword);
        }
        self.run(0, entry.with_prp(SCRATCH_AT, SCRATCH_AT + PAGE))
    }

    /// What an admin command has returned.
    pub fn scratch(&self) -> Vec<u8> {
        let mut bytes = vec![0; PAGE as usize];
        self.port.memory().read(SCRATCH_AT, &mut bytes).unwrap();
        bytes
    }

    pub fn identify(&mut self, cns: u32, namespace: u32) -> Vec<u8> {
        self.admin(6, namespace, &[cns]).expect("Identify");
        self.scratch()
    }

    pub fn log(&mut self, page: u32, bytes: u32) -> Vec<u8> {
        let first = (bytes / 4 - 1) << 16 | page;
        self.admin(2, u32::MAX, &[first]).expect("Get Log Page");
        self.scratch()[..bytes as usize].to_vec()
    }

    pub fn create_queues(&mut self, count: u16) {
        let granted = self.admin(9, 0, &[7, u32::from(count - 1) * 0x1_0001]);
        assert_eq!(granted, Ok(u32::from(count - 1) * 0x1_0001));
        self.create_granted_queues(count);
    }

    /// Without asking how many there may be, which the drive would have to keep.
    pub fn create_granted_queues(&mut self, count: u16) {
        for id in 1..=count {
            let at = IO_AT + u64::from(id - 1) * Pair::STRIDE;
            assert!(at + Pair::STRIDE <= HMB_AT, "the driver's memory");
            let pair = Pair::new(id, at, ENTRIES, self.port.memory());
            let size = (ENTRIES - 1) << 16 | u32::from(id);
            let vector = u32::from(id) << 16;
            self.create(5, pair.completions, &[size, vector | 3])
                .expect("completion queue");
            let queue = u32::from(id) << 16 | 1;
            self.create(1, pair.submissions, &[size, queue])
                .expect("submission queue");
            self.io.push(pair);
        }
    }

    /// A queue in memory from there on.
    pub fn create(&mut self, opcode: u8, at: u64, dwords: &[u32; 2]) -> Result<u32, Status> {
        let command = CommandId(self.free_command(0));
        let entry = SubmissionEntry::new(opcode, command, NamespaceId::NONE)
            .with_dword(10, dwords[0])
            .with_dword(11, dwords[1])
            .with_prp(at, 0);
        self.run(0, entry)
    }

    pub fn delete_queues(&mut self) {
        for id in 1..=self.io.len() as u32 {
            self.admin(0, 0, &[id]).expect("delete submission queue");
            self.admin(4, 0, &[id]).expect("delete completion queue");
        }
        self.io.clear();
    }

    pub fn use_shadows(&mut self) {
        let zeros = [0; 2 * PAGE as usize];
        self.port.memory().write(SHADOWS_AT, &zeros).unwrap();
        self.shadows = Some((SHADOWS_AT, SHADOWS_AT + PAGE));
        let command = CommandId(self.free_command(0));
        let entry = SubmissionEntry::new(0x7c, command, NamespaceId::NONE);
        self.run(0, entry.with_prp(SHADOWS_AT, SHADOWS_AT + PAGE))
            .expect("shadow doorbells");
        self.shadows_on = true;
    }

    /// Grants host memory in pieces of 32 KiB, every other one. `again`: the same memory as before.
    pub fn grant_host_memory(&mut self, bytes: u64, again: bool) -> Result<u32, Status> {
        self.grant_host_memory_with(bytes, 1 | u32::from(again) << 1)
    }

    /// With the flags of dword 11.
    pub fn grant_host_memory_with(&mut self, bytes: u64, flags: u32) -> Result<u32, Status> {
        let pieces = bytes.div_ceil(32 << 10);
        for piece in 0..pieces {
            let mut descriptor = [0; 16];
            let address = HMB_AT + piece * (64 << 10);
            descriptor[..8].copy_from_slice(&address.to_le_bytes());
            descriptor[8] = 8;
            self.port
                .memory()
                .write(LIST_AT + 16 * piece, &descriptor)
                .unwrap();
        }
        let size = (pieces * 8) as u32;
        self.admin(9, 0, &[0xd, flags, size, LIST_AT as u32, 0, pieces as u32])
    }

    pub fn take_host_memory_back(&mut self) -> Result<u32, Status> {
        self.admin(9, 0, &[0xd, 0])
    }

    /// The bytes of all that host memory may be granted in.
    pub fn host_memory(&self, bytes: u64) -> Vec<u8> {
        let mut all = vec![0; 2 * bytes as usize];
        self.port.memory().read(HMB_AT, &mut all).unwrap();
        all
    }

    /// A call of the byte window on the first queue, with a page for its data.
    pub fn window_call(&mut self, opcode: u8, dwords: [u32; 6]) -> SubmissionEntry {
        let command = self.free_command(1);
        let buffer = self.io[0].buffer(command);
        let mut entry = SubmissionEntry::new(opcode, CommandId(command), NamespaceId(1));
        for (at, dword) in dwords.into_iter().enumerate() {
            entry = entry.with_dword(10 + at, dword);
        }
        entry.with_prp(buffer, buffer + PAGE)
    }

    /// A data command, with PRP entries for its buffer.
    pub fn entry(&mut self, queue: usize, opcode: u8, lba: u64, blocks: u32) -> SubmissionEntry {
        let command = self.free_command(queue);
        let buffer = self.io[queue - 1].buffer(command);
        let bytes = u64::from(blocks) * 512;
        let mut second = 0;
        if bytes > 2 * PAGE {
            second = buffer + BUFFER_BYTES;
            for page in 1..bytes.div_ceil(PAGE) {
                let address = (buffer + page * PAGE).to_le_bytes();
                self.port
                    .memory()
                    .write(second + 8 * (page - 1), &address)
                    .unwrap();
            }
        } else if bytes > PAGE {
            second = buffer + PAGE;
        }
        SubmissionEntry::new(opcode, CommandId(command), NamespaceId(1))
            .with_dword(10, lba as u32)
            .with_dword(11, (lba >> 32) as u32)
            .with_dword(12, blocks.saturating_sub(1))
            .with_prp(buffer, second)
    }
}
