//! Data roles in host memory: over the link, or with the host's DMA engine, which moves data
//! between a command's pages and the drive's own host memory without the link.

use super::programs::{Fetched, Program};
use super::read::pieces;
use super::write::Transfer;
use super::{Contents, Device, HostMemory};
use crate::engine::EventKind;
use crate::ftl::Unit;
use crate::nand::Cause;
use crate::observe::Tracer;
use crate::spec::{DriveSpec, Integrity, SLOT_BYTES, Tier};
use crate::transport::dma::{DESCRIPTOR_BYTES, HostDma, STATUS_BYTES};
use serde::{Deserialize, Serialize};

/// The host's DMA engine, where the drive may use it: what it copies never passes the drive, which can
/// neither tag nor check it.
pub(super) fn host_dma(spec: &DriveSpec) -> Option<HostDma> {
    let unprotected = super::map::integrity(spec) == Integrity::None;
    let dma = spec.host.dma.as_ref().filter(|_| unprotected)?;
    Some(HostDma::new(dma, spec.link.one_way_ps))
}

/// Write data on its way into host memory, by the grant it goes to.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Incoming {
    /// Number of the present grant, from 1.
    grant: u32,
    /// Transfers under way into the present grant.
    transfers: u32,
    /// Transfers under way into memory that was taken back since.
    pub stale: u32,
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

impl<C: Contents, M: HostMemory, T: Tracer> Device<C, M, T> {
    /// Whether the host's DMA engine serves the role on `tier`.
    #[inline]
    pub(super) fn uses_host_dma(&self, tier: Tier) -> bool {
        tier.is_granted() && self.host_dma.is_some()
    }

    /// Has the host's engine copy `bytes` between a command's pages and the drive's host memory;
    /// returns when the drive knows that it is done.
    pub(super) fn copy_in_host(&mut self, bytes: u64) -> u64 {
        let now = self.board.engine.now();
        let registers = bytes.div_ceil(SLOT_BYTES) * DESCRIPTOR_BYTES;
        let started_ps = self.board.link.write(now, registers);
        let dma = self
            .host_dma
            .as_mut()
            .expect("only drives that may use the engine copy with it");
        let polls = dma.polls;
        let seen_ps = dma.copy(now, started_ps, bytes);
        // Four bytes a microsecond never decide anything on the link: counted, not booked.
        self.board.link.from_host_bytes += (dma.polls - polls) * STATUS_BYTES;
        seen_ps
    }

    /// Write data goes into the buffer in host memory, from where it is: in the drive, or with the
    /// host's engine still in the command's pages.
    pub(super) fn store_in_host(&mut self, transfer: u32) {
        let bytes = self.transfers[transfer].bytes;
        self.board.counters.hmb_written_bytes += bytes;
        let at_ps = if self.host_dma.is_some() {
            self.copy_in_host(bytes)
        } else {
            let at_ps = self.board.link.write(self.board.engine.now(), bytes);
            self.tagged_ps(at_ps, bytes)
        };
        self.incoming.transfers += 1;
        self.transfers[transfer].grant = self.incoming.grant;
        self.board
            .engine
            .schedule(at_ps, EventKind::DataStored, transfer);
    }

    /// Data of a write has reached host memory. In memory that was taken back meanwhile it must be
    /// saved like what stood there before.
    pub(super) fn on_stored_in_host(&mut self, transfer: &Transfer) {
        if transfer.grant == self.incoming.grant {
            self.incoming.transfers -= 1;
            return;
        }
        self.incoming.stale -= 1;
        if self.incoming.stale == 0 {
            self.save_buffer();
        }
    }

    /// Host memory is taken back or given anew: what the buffer holds there goes to flash, and so
    /// does what is on its way there once it has arrived.
    pub(super) fn give_up_buffer(&mut self) {
        self.incoming.grant += 1;
        self.incoming.stale += std::mem::take(&mut self.incoming.transfers);
        self.board.counters.buffer_drains += 1;
        self.save_buffer();
    }

    fn save_buffer(&mut self) {
        if !self.buffer.save() {
            self.background.saving_buffers += 1;
        }
    }

    /// Whether buffered data to be programmed stands in host memory.
    #[inline]
    pub(super) fn buffered_in_host(&self) -> bool {
        // While memory that was taken back is emptied, most of what is buffered still stands there.
        let saving = self.background.saving_buffers > 0;
        self.buffer_tier.is_granted() || (saving && self.buffers_in_host())
    }

    /// Whether the buffer stands in host memory where there is any.
    pub(super) fn buffers_in_host(&self) -> bool {
        self.spec.roles.write_buffer.tier.is_granted()
    }

    /// Buffered data in host memory crosses the link before it can be programmed; `logged` of the
    /// slots are read from the log in the drive instead.
    pub(super) fn fetch_write_back(
        &mut self,
        unit: Unit,
        program: Program,
        filled: u32,
        logged: u32,
    ) {
        let mut at_ps = self.board.engine.now().ps();
        if logged == 0 || (filled > logged && self.buffered_in_host()) {
            let bytes = u64::from(filled - logged) * SLOT_BYTES;
            self.board.counters.hmb_read_bytes += bytes;
            at_ps = self.board.link.read(self.board.engine.now(), bytes);
            at_ps = self.checked_ps(at_ps, bytes);
        }
        if logged > 0 {
            at_ps = at_ps.max(self.read_log_ps(logged));
        }
        let write_back = self.programs.fetch(Fetched {
            unit,
            program,
            filled,
        });
        self.board
            .engine
            .schedule(at_ps, EventKind::WriteBackArrived, write_back);
    }

    pub(super) fn on_write_back_arrived(&mut self, index: u32) {
        let Fetched {
            unit,
            program,
            filled,
        } = self.programs.fetched(index);
        self.programs.start(
            &mut self.board,
            &self.ftl,
            unit,
            program,
            (Cause::Host, filled),
        );
    }

    /// Cached or buffered data in host memory goes to a command's pages.
    pub(super) fn send_from_host(&mut self, id: u32, bytes: u64) {
        self.board.counters.hmb_read_bytes += bytes;
        if self.host_dma.is_some() {
            let at_ps = self.copy_in_host(bytes);
            self.commands[id].pending += 1;
            self.board.engine.schedule(at_ps, EventKind::PartReady, id);
            return;
        }
        self.commands[id].part_bytes += bytes;
        for bytes in pieces(bytes) {
            let at_ps = self.board.link.read(self.board.engine.now(), bytes);
            let at_ps = self.checked_ps(at_ps, bytes);
            self.commands[id].pending += 1;
            self.board.engine.schedule(at_ps, EventKind::PartReady, id);
        }
    }

    /// What the read cache in host memory keeps goes there over the link.
    pub(super) fn store_in_read_cache(&mut self, kept_bytes: u64) {
        if kept_bytes > 0 {
            self.board.counters.hmb_written_bytes += kept_bytes;
            let at_ps = self.board.link.write(self.board.engine.now(), kept_bytes);
            self.tagged_ps(at_ps, kept_bytes);
        }
    }

    /// Data from flash that the read cache in host memory keeps goes there over the link; with the
    /// host's engine the command's pages get it from there, so that it crosses the link once.
    pub(super) fn send_through_host(&mut self, id: u32, kept_bytes: u64, bytes: u64) {
        self.board.counters.hmb_written_bytes += kept_bytes;
        // The register writes follow the data on the link, and so do not overtake it.
        self.board
            .link
            .write(self.board.engine.now(), kept_bytes.max(bytes));
        let at_ps = self.copy_in_host(bytes);
        self.board.engine.schedule(at_ps, EventKind::PartReady, id);
    }
}
