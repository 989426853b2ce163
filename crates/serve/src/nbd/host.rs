//! A host for clients that have none: memory, and a driver that does with the controller what Linux's does. It
//! enables it, grants host memory as Linux would, and has a pair of queues for each client.

use crate::controller::{Controller, IO_QUEUES_MAX};
use crate::server::ServeError;
use lodger_core::host::hmb::Chunk;
use lodger_wire::entry::{COMPLETION_BYTES, CompletionEntry, Outcome, SUBMISSION_BYTES};
use lodger_wire::entry::{Fuse, SubmissionEntry};
use lodger_wire::hmb::HmbRequest;
use lodger_wire::memory::{GuestMemory, MemoryError};
use lodger_wire::registers::offset;
use lodger_wire::{CommandId, NamespaceId};
use std::cell::RefCell;
use std::rc::Rc;

/// Entries of a queue; one less can be under way.
pub const ENTRIES: u16 = 256;
/// Bytes of a memory page.
const PAGE: u64 = 4096;
/// Bytes of a queue of submissions, and of one of completions.
const SUBMISSIONS_BYTES: u64 = ENTRIES as u64 * SUBMISSION_BYTES as u64;
const COMPLETIONS_BYTES: u64 = ENTRIES as u64 * COMPLETION_BYTES as u64;
const PAIR_BYTES: u64 = SUBMISSIONS_BYTES + COMPLETIONS_BYTES;
/// Each piece of memory begins at a multiple of this.
const PIECE_BYTES: u64 = 1 << 32;
/// CC: entries of 64 and 16 bytes, enabled.
const ENABLED: u32 = 4 << 20 | 6 << 16 | 1;
/// Create I/O queue: interrupts, contiguous.
const COMPLETION_QUEUE: u32 = 3;
const SUBMISSION_QUEUE: u32 = 1;
/// Set Features, and its code for host memory.
const SET_FEATURES: u8 = 9;
const HOST_MEMORY: u32 = 0xd;
const CREATE_COMPLETIONS: u8 = 5;
const CREATE_SUBMISSIONS: u8 = 1;

/// Pieces of memory, each at an address of its own.
#[derive(Debug, Default)]
struct Pieces {
    /// Empty where there is none.
    pieces: Vec<Vec<u8>>,
    free: Vec<usize>,
}

/// The host's memory.
#[derive(Clone, Debug, Default)]
pub struct HostRam(Rc<RefCell<Pieces>>);

impl HostRam {
    /// A piece that holds these bytes, and its address.
    pub fn put(&self, bytes: Vec<u8>) -> u64 {
        let mut all = self.0.borrow_mut();
        let index = all.free.pop().unwrap_or_else(|| {
            all.pieces.push(Vec::new());
            all.pieces.len() - 1
        });
        all.pieces[index] = bytes;
        (index as u64 + 1) * PIECE_BYTES
    }

    /// The bytes of a piece, which is gone then.
    pub fn take(&self, address: u64) -> Vec<u8> {
        let mut all = self.0.borrow_mut();
        let index = (address / PIECE_BYTES) as usize - 1;
        all.free.push(index);
        std::mem::take(&mut all.pieces[index])
    }

    /// Does something with `length` bytes.
    pub fn with<R>(
        &self,
        address: u64,
        length: usize,
        act: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R, MemoryError> {
        let mut all = self.0.borrow_mut();
        let piece = usize::try_from(address / PIECE_BYTES).ok();
        let piece = piece.and_then(|piece| all.pieces.get_mut(piece.checked_sub(1)?));
        let start = (address % PIECE_BYTES) as usize;
        let part = piece.and_then(|piece| piece.get_mut(start..start.checked_add(length)?));
        let length = length as u64;
        part.map(act).ok_or(MemoryError { address, length })
    }
}

impl GuestMemory for HostRam {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        self.with(address, into.len(), |part| into.copy_from_slice(part))
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        self.with(address, from.len(), |part| part.copy_from_slice(from))
    }

    fn load_u32(&self, address: u64) -> Result<u32, MemoryError> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn store_u32(&self, address: u64, value: u32) -> Result<(), MemoryError> {
        self.write(address, &value.to_le_bytes())
    }
}

/// A pair of queues.
#[derive(Debug)]
struct Pair {
    submissions: u64,
    tail: u16,
    /// The tail as the controller has been told it.
    rung: u16,
    head: u16,
    phase: bool,
    free: Vec<u16>,
}

/// The driver.
#[derive(Debug)]
pub struct Host {
    memory: HostRam,
    /// The first is the admin queue's.
    pairs: Vec<Pair>,
}

fn refused(what: &str) -> impl Fn(String) -> ServeError {
    move |why| ServeError::Start(format!("{what}: {why}"))
}

impl Host {
    /// One with so many I/O queues, that has done nothing yet.
    pub fn new(memory: HostRam, queues: u16) -> Self {
        let queues = u64::from(queues.min(IO_QUEUES_MAX)) + 1;
        let base = memory.put(vec![0; (queues * PAIR_BYTES) as usize]);
        let pair = |index| Pair {
            submissions: base + index * PAIR_BYTES,
            tail: 0,
            rung: 0,
            head: 0,
            phase: true,
            free: (0..ENTRIES - 1).rev().collect(),
        };
        Host {
            memory,
            pairs: (0..queues).map(pair).collect(),
        }
    }

    /// What a driver does first. Admin commands take the drive no time, so time stands still meanwhile.
    ///
    /// # Errors
    /// If the controller refuses.
    pub fn start(
        &mut self,
        controller: &mut Controller<HostRam>,
        granted: &[Chunk],
    ) -> Result<(), ServeError> {
        let mut write = |at, value: u32| controller.register_write(at, &value.to_le_bytes());
        let admin = self.pairs[0].submissions;
        write(
            offset::AQA,
            u32::from(ENTRIES - 1) << 16 | u32::from(ENTRIES - 1),
        );
        for (at, value) in [
            (offset::ASQ, admin),
            (offset::ACQ, admin + SUBMISSIONS_BYTES),
        ] {
            write(at, value as u32);
            write(at + 4, (value >> 32) as u32);
        }
        write(offset::CC, ENABLED);
        let now_ps = controller.now_ps();
        controller.poll(now_ps);
        if !granted.is_empty() {
            self.grant(controller, granted)
                .map_err(refused("host memory"))?;
        }
        for queue in 1..self.pairs.len() {
            self.create(controller, queue as u16)
                .map_err(refused("queues"))?;
        }
        Ok(())
    }

    fn grant(
        &mut self,
        controller: &mut Controller<HostRam>,
        granted: &[Chunk],
    ) -> Result<(), String> {
        let bytes: u64 = granted.iter().map(|chunk| chunk.bytes).sum();
        let mut at = self.memory.put(vec![0; bytes as usize]);
        let mut list = Vec::new();
        for chunk in granted {
            list.extend_from_slice(&at.to_le_bytes());
            list.extend_from_slice(&((chunk.bytes / PAGE) as u32).to_le_bytes());
            list.extend_from_slice(&[0; 4]);
            at += chunk.bytes;
        }
        let request = HmbRequest {
            enable: true,
            size_pages: (bytes / PAGE) as u32,
            list_address: self.memory.put(list),
            descriptors: granted.len() as u32,
            ..HmbRequest::default()
        };
        let mut entry = SubmissionEntry::new(SET_FEATURES, CommandId(0), NamespaceId::NONE)
            .with_dword(10, HOST_MEMORY);
        for (index, dword) in request.encode().into_iter().enumerate() {
            entry = entry.with_dword(11 + index, dword);
        }
        self.admin(controller, entry)
    }

    fn create(&mut self, controller: &mut Controller<HostRam>, queue: u16) -> Result<(), String> {
        let submissions = self.pairs[usize::from(queue)].submissions;
        let size = u32::from(ENTRIES - 1) << 16 | u32::from(queue);
        let both = [
            (
                CREATE_COMPLETIONS,
                COMPLETION_QUEUE,
                submissions + SUBMISSIONS_BYTES,
            ),
            (CREATE_SUBMISSIONS, SUBMISSION_QUEUE, submissions),
        ];
        for (opcode, flags, at) in both {
            let entry = SubmissionEntry::new(opcode, CommandId(0), NamespaceId::NONE)
                .with_dword(10, size)
                .with_dword(11, u32::from(queue) << 16 | flags)
                .with_prp(at, 0);
            self.admin(controller, entry)?;
        }
        Ok(())
    }

    /// An admin command that is done at once.
    fn admin(
        &mut self,
        controller: &mut Controller<HostRam>,
        entry: SubmissionEntry,
    ) -> Result<(), String> {
        self.submit(0, entry).ok_or("no room")?;
        self.ring(controller);
        let now_ps = controller.now_ps();
        controller.poll(now_ps);
        match self.next_done(0) {
            Some((_, outcome)) if outcome.status.is_success() => {
                self.acknowledge(controller, 0);
                Ok(())
            }
            Some((_, outcome)) => Err(outcome.status.to_string()),
            None => Err("no answer".to_owned()),
        }
    }

    /// Whether a queue takes another command.
    #[must_use]
    pub fn has_room(&self, queue: u16) -> bool {
        !self.pairs[usize::from(queue)].free.is_empty()
    }

    /// Writes a command into a queue and returns the number that it got; `None` if there is no room. The
    /// controller sees it after [`Host::ring`].
    pub fn submit(&mut self, queue: u16, mut entry: SubmissionEntry) -> Option<u16> {
        debug_assert_eq!(entry.fuse(), Ok(Fuse::None));
        let pair = &mut self.pairs[usize::from(queue)];
        let command = pair.free.pop()?;
        entry.0[2..4].copy_from_slice(&command.to_le_bytes());
        let at = pair.submissions + u64::from(pair.tail) * SUBMISSION_BYTES as u64;
        let written = self.memory.write(at, &entry.0);
        debug_assert!(written.is_ok(), "the queue is there");
        pair.tail = (pair.tail + 1) % ENTRIES;
        Some(command)
    }

    /// Rings the doorbells of all queues with new commands.
    pub fn ring(&mut self, controller: &mut Controller<HostRam>) {
        for (index, pair) in self.pairs.iter_mut().enumerate() {
            if pair.rung != pair.tail {
                pair.rung = pair.tail;
                let at = offset::DOORBELLS + 8 * index as u64;
                controller.register_write(at, &u32::from(pair.tail).to_le_bytes());
            }
        }
    }

    /// The next command of a queue that has ended, and how.
    pub fn next_done(&mut self, queue: u16) -> Option<(u16, Outcome)> {
        let pair = &mut self.pairs[usize::from(queue)];
        let at =
            pair.submissions + SUBMISSIONS_BYTES + u64::from(pair.head) * COMPLETION_BYTES as u64;
        let mut bytes = [0; COMPLETION_BYTES];
        self.memory.read(at, &mut bytes).ok()?;
        let (entry, phase) = CompletionEntry::decode(&bytes);
        if phase != pair.phase {
            return None;
        }
        pair.head = (pair.head + 1) % ENTRIES;
        pair.phase ^= pair.head == 0;
        pair.free.push(entry.command.0);
        Some((entry.command.0, entry.outcome))
    }

    /// Tells the controller which completions of a queue were seen.
    pub fn acknowledge(&mut self, controller: &mut Controller<HostRam>, queue: u16) {
        let head = u32::from(self.pairs[usize::from(queue)].head);
        let at = offset::DOORBELLS + 8 * u64::from(queue) + 4;
        controller.register_write(at, &head.to_le_bytes());
    }
}
