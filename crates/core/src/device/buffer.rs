//! The write buffer at work: data on its way into it, out of it where it stands in host memory, and into its
//! log in power-protected memory, one batch at a time.

use super::Commands;
use super::board::Board;
use super::hmb_path::HmbPath;
use super::programs::{Fetched, Program, Programs};
use crate::controller::WriteBuffer;
use crate::engine::EventKind;
use crate::ftl::{Ftl, ProgramUnit};
use crate::ids::{BufferSlot, CommandId, Lpn, TransferId};
use crate::memory::{GRANTED, STAGING};
use crate::observe::Tracer;
use crate::slab::{Queue, Slab};
use crate::spec::{DriveSpec, SLOT_BYTES, Tier, TierSpecs};
use serde::{Deserialize, Serialize};

/// Write data on its way from the host's memory into slots of the buffer.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub(super) struct Transfer {
    pub command: CommandId,
    /// First slot; the others follow by [`WriteBuffer::chained`].
    pub first_slot: BufferSlot,
    pub bytes: u64,
    /// Grant of host memory it goes into; 0 while it goes into the drive.
    grant: u32,
    /// Pages that it changes in part have been read.
    merged: bool,
}

/// Write data on its way into host memory, by the grant it goes to.
#[derive(Clone, Serialize, Deserialize, Debug)]
struct Incoming {
    /// Number of the present grant, from 1.
    grant: u32,
    /// Transfers under way into the present grant.
    transfers: u32,
    /// Transfers under way into memory that was taken back since.
    stale: u32,
}

impl Default for Incoming {
    fn default() -> Self {
        Incoming {
            grant: 1,
            transfers: 0,
            stale: 0,
        }
    }
}

/// The write buffer, and what of it is under way.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Buffer {
    /// What it holds.
    pub slots: WriteBuffer,
    /// Memory it stands on at present.
    pub tier: Tier,
    /// Memory it stands on where there is any of that.
    home: Tier,
    /// Writes that wait for room.
    pub queue: Queue<CommandId>,
    transfers: Slab<Transfer, TransferId>,
    /// Reads that wait for the rest of a partly written page, by its slot.
    merge_readers: Vec<(BufferSlot, CommandId)>,
    /// Slots of the program operation being put together, with their pages; empty in between.
    #[serde(skip)]
    pub batch: Vec<(BufferSlot, Lpn)>,
    incoming: Incoming,
    /// Bytes on their way into the log.
    log_bytes: u64,
    /// Emptyings that are not done: of what stood in host memory, or before a shutdown.
    savings: u32,
}

impl Buffer {
    /// An empty one, without a place: [`Buffer::place`] is to follow.
    pub(super) fn new(spec: &DriveSpec) -> Self {
        let role = &spec.roles.write_buffer;
        Buffer {
            slots: WriteBuffer::new(role, 0),
            tier: role.tier,
            home: role.tier,
            queue: Queue::default(),
            transfers: Slab::default(),
            merge_readers: Vec::new(),
            batch: Vec::new(),
            incoming: Incoming::default(),
            log_bytes: 0,
            savings: 0,
        }
    }

    /// It gets `bytes` of its memory. Without any, the controller still stages the slots that it programs
    /// `at_once`. Returns the pages that it may put into host memory.
    pub(super) fn place(&mut self, spec: &DriveSpec, bytes: u64, at_once: u32) -> u32 {
        let mut role = spec.roles.write_buffer.clone();
        let (tier, slots) = match WriteBuffer::slots_of(bytes) {
            0 => {
                // What passes it does not wait there for more.
                (role.high_permille, role.low_permille) = (0, 0);
                (STAGING, at_once)
            }
            slots => (role.tier, slots),
        };
        self.tier = tier;
        self.slots.resize(&role, slots, at_once);
        if tier.is_granted() { slots } else { 0 }
    }

    /// Whether what it holds outlives a power cut.
    pub(super) fn survives_power_cut(&self, tiers: &TierSpecs) -> bool {
        tiers.survives_power_cut(self.tier)
    }

    /// The controller starts anew: nothing is under way any more.
    pub(super) fn drop_all(&mut self) {
        self.queue = Queue::default();
        self.transfers = Slab::default();
        self.merge_readers.clear();
        self.incoming = Incoming::default();
        self.savings = 0;
    }

    /// Data of a command is asked for, for slots chained from `first_slot` on.
    pub(super) fn begin(
        &mut self,
        command: CommandId,
        first_slot: BufferSlot,
        bytes: u64,
    ) -> TransferId {
        self.transfers.insert(Transfer {
            command,
            first_slot,
            bytes,
            grant: 0,
            merged: false,
        })
    }

    /// Data under way.
    #[inline]
    pub(super) fn transfer(&self, index: TransferId) -> Transfer {
        self.transfers[index]
    }

    /// Data is where the buffer stands; [`Buffer::landed`] is to follow once it is in its slots.
    #[inline]
    pub(super) fn end(&mut self, index: TransferId) -> Transfer {
        let transfer = self.transfers[index];
        self.transfers.remove(index);
        transfer
    }

    /// Whether a read has to wait for what the buffer does not hold yet: the rest of a partly written page.
    #[inline]
    pub(super) fn awaits_rest(&mut self, id: CommandId, slot: BufferSlot, sectors: u8) -> bool {
        let waits = self.slots.lacks(slot, sectors);
        if waits {
            self.merge_readers.push((slot, id));
        }
        waits
    }

    /// The next of those reads whose page is whole by now.
    pub(super) fn next_merged(&mut self) -> Option<(Lpn, CommandId)> {
        let slots = &self.slots;
        let mut readers = self.merge_readers.iter();
        let at = readers.position(|&(slot, _)| !slots.state(slot).is_partial())?;
        let (slot, id) = self.merge_readers.remove(at);
        Some((self.slots.lpn(slot), id))
    }

    // In host memory.

    /// Whether buffered data to be programmed stands in host memory.
    #[inline]
    pub(super) fn is_in_hmb(&self) -> bool {
        // While memory that was taken back is emptied, most of what is buffered still stands there.
        self.tier.is_granted() || (self.savings > 0 && self.home.is_granted())
    }

    /// Memory that it holds its data in.
    #[inline]
    pub(super) fn holds_in(&self) -> Tier {
        match self.is_in_hmb() {
            true => GRANTED,
            false => self.tier,
        }
    }

    /// Data goes into the buffer in host memory.
    pub(super) fn put_in_hmb(
        &mut self,
        board: &mut Board<impl Tracer>,
        path: &mut HmbPath,
        index: TransferId,
    ) {
        let at_ps = path.put(board, self.transfers[index].bytes);
        self.incoming.transfers += 1;
        self.transfers[index].grant = self.incoming.grant;
        board.engine.schedule(at_ps, EventKind::DataStored, index);
    }

    /// Data has landed. In host memory that was taken back meanwhile it must be saved like what stood there
    /// before.
    #[inline]
    pub(super) fn landed(&mut self, transfer: &Transfer) {
        if transfer.grant == 0 {
            return;
        }
        if transfer.grant == self.incoming.grant {
            self.incoming.transfers -= 1;
            return;
        }
        self.incoming.stale -= 1;
        if self.incoming.stale == 0 {
            self.save();
        }
    }

    /// Bytes of the pages that the buffer holds and that data changes in part: where a tag covers the whole
    /// page, the rest has to be read and checked first. 0 when there is nothing (more) to be read. The
    /// whole pages then go back.
    pub(super) fn take_held_bytes<P>(&mut self, index: TransferId, commands: &Commands<P>) -> u64 {
        let transfer = self.transfers[index];
        if transfer.merged {
            return 0;
        }
        let command = &commands[transfer.command];
        let mut next = Some(transfer.first_slot);
        let (mut held, mut part_bytes) = (0, 0);
        while let Some(slot) = next {
            let lpn = self.slots.lpn(slot);
            if command.sectors_in(lpn) != u8::MAX && self.slots.find(lpn).is_some() {
                held += SLOT_BYTES;
                part_bytes += command.bytes_in(lpn);
            }
            next = self.slots.chained(slot);
        }
        if held > 0 {
            self.transfers[index].merged = true;
            self.transfers[index].bytes += held - part_bytes;
        }
        held
    }

    /// Host memory is taken back or given anew: what the buffer holds there goes to flash, and so
    /// does what is on its way there once it has arrived.
    pub(super) fn give_up_hmb(&mut self, board: &mut Board<impl Tracer>) {
        if !self.tier.is_granted() {
            return;
        }
        self.incoming.grant += 1;
        self.incoming.stale += std::mem::take(&mut self.incoming.transfers);
        board.counters.buffer_drains += 1;
        self.save();
    }

    /// All it holds goes to flash.
    pub(super) fn save(&mut self) {
        if !self.slots.save() {
            self.savings += 1;
        }
    }

    /// One of those is done.
    pub(super) fn saved(&mut self) {
        self.savings -= 1;
    }

    /// Whether it is being saved, or data to be saved is on its way.
    pub(super) fn is_saving(&self) -> bool {
        self.savings + self.incoming.stale > 0
    }

    /// Whether a program operation whose slots are chained to it waits for data outside the drive's own
    /// buffer; `logged` of them are in the log.
    #[inline]
    pub(super) fn must_fetch(&self, logged: u32) -> bool {
        self.is_in_hmb() || (logged > 0 && self.home.is_granted())
    }

    /// Buffered data in host memory crosses the link before it can be programmed; `logged` of the
    /// slots are read from the log in the drive instead.
    pub(super) fn fetch(
        &mut self,
        (board, ftl): (&mut Board<impl Tracer>, &Ftl),
        path: &mut HmbPath,
        programs: &mut Programs,
        (unit, program): (ProgramUnit, Program),
        (filled, logged): (u32, u32),
    ) {
        let mut at_ps = board.engine.now().ps();
        if logged == 0 || (filled > logged && self.is_in_hmb()) {
            let bytes = u64::from(filled - logged) * SLOT_BYTES;
            at_ps = path.get(board, bytes);
        }
        if logged > 0 {
            let bytes = u64::from(logged) * SLOT_BYTES;
            at_ps = at_ps.max(board.protected_ps(bytes));
        }
        let fetched = Fetched {
            unit,
            program,
            filled,
        };
        programs.start_at(board, ftl, fetched, at_ps);
    }

    // The log: what a flush or FUA waits for goes there.

    /// `slots` slots are copied into the log, over the link first where the buffer stands in host memory.
    pub(super) fn log(&mut self, board: &mut Board<impl Tracer>, path: &mut HmbPath, slots: u32) {
        board.counters.buffer_logged += u64::from(slots);
        self.log_bytes = u64::from(slots) * SLOT_BYTES;
        let at_ps = if self.is_in_hmb() {
            path.get(board, self.log_bytes)
        } else {
            let now = board.engine.now();
            board.memories.load(self.tier, now, self.log_bytes)
        };
        board.engine.schedule(at_ps, EventKind::LogRead, 0);
    }

    /// They have been read.
    pub(super) fn on_log_read(&self, board: &mut Board<impl Tracer>) {
        let at_ps = board.protected_ps(self.log_bytes);
        board.engine.schedule(at_ps, EventKind::LogStored, 0);
    }
}
