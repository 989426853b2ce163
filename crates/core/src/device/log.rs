//! The write buffer's log in power-protected memory: what a flush or FUA waits for goes there, over
//! the link first where the buffer stands in host memory. One batch is under way at a time.

use super::{Contents, Device, HostMemory};
use crate::engine::EventKind;
use crate::observe::Tracer;
use crate::spec::SLOT_BYTES;

impl<C: Contents, M: HostMemory, T: Tracer> Device<C, M, T> {
    /// Starts to copy slots into the log.
    pub(super) fn pump_log(&mut self) {
        let slots = self.buffer.start_log();
        if slots == 0 {
            return;
        }
        if Self::PAGES_IN_HOST {
            for at in 0..slots as usize {
                let slot = self.buffer.log_batch(at);
                self.take_buffered(slot);
                self.report_lost(slot);
            }
        }
        self.board.counters.buffer_logged += u64::from(slots);
        self.log_bytes = u64::from(slots) * SLOT_BYTES;
        let now = self.board.engine.now();
        let at_ps = if self.buffered_in_host() {
            self.board.counters.hmb_read_bytes += self.log_bytes;
            let at_ps = self.board.link.read(now, self.log_bytes);
            self.checked_ps(at_ps, self.log_bytes)
        } else {
            self.board
                .memories
                .store(self.buffer_tier, now, self.log_bytes)
        };
        self.board.engine.schedule(at_ps, EventKind::LogRead, 0);
    }

    pub(super) fn on_log_read(&mut self) {
        let at_ps = self.pm_ps(self.log_bytes);
        self.board.engine.schedule(at_ps, EventKind::LogStored, 0);
    }

    pub(super) fn on_log_stored(&mut self) {
        let mut done = std::mem::take(&mut self.scratch);
        self.buffer.logged(&mut done);
        self.go_on(done);
        self.pump();
    }

    /// When `slots` slots have been read from the log.
    pub(super) fn read_log_ps(&mut self, slots: u32) -> u64 {
        self.pm_ps(u64::from(slots) * SLOT_BYTES)
    }
}
