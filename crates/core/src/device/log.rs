//! The write buffer's log in power-protected memory: what a flush or FUA waits for goes there, over
//! the link first where the buffer stands in host memory. One batch is under way at a time.

use super::{Contents, Device, HostMemory};
use crate::engine::{EventKind, INDEX_MAX};
use crate::spec::SLOT_BYTES;

/// In place of a write-back: the batch has been read from the buffer.
const READ: u32 = INDEX_MAX;
/// In place of a write-back: the batch is in the log.
const STORED: u32 = INDEX_MAX - 1;

impl<C: Contents, M: HostMemory> Device<C, M> {
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
        self.counters.buffer_logged += u64::from(slots);
        self.log_bytes = u64::from(slots) * SLOT_BYTES;
        let now = self.engine.now();
        let at_ps = if self.buffered_in_host() {
            self.counters.hmb_read_bytes += self.log_bytes;
            let at_ps = self.link.read(now, self.log_bytes);
            self.checked_ps(at_ps, self.log_bytes)
        } else {
            self.memories.store(self.buffer_tier, now, self.log_bytes)
        };
        self.engine
            .schedule(at_ps, EventKind::WriteBackArrived, READ);
    }

    /// Whether the event was one of the log's.
    #[inline]
    pub(super) fn on_log_event(&mut self, index: u32) -> bool {
        match index {
            READ => {
                let at_ps = self.pm_ps(self.log_bytes);
                self.engine
                    .schedule(at_ps, EventKind::WriteBackArrived, STORED);
            }
            STORED => {
                let mut done = std::mem::take(&mut self.scratch);
                self.buffer.logged(&mut done);
                self.go_on(done);
                self.pump();
            }
            _ => return false,
        }
        true
    }

    /// When `slots` slots have been read from the log.
    pub(super) fn read_log_ps(&mut self, slots: u32) -> u64 {
        self.pm_ps(u64::from(slots) * SLOT_BYTES)
    }
}
