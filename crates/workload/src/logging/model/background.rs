//! The background writer of asynchronous commits, and who waits for it.
//!
//! Nobody waits for the drive as long as what is not on it yet has room in memory. Beyond that a server's buffers
//! (PostgreSQL's `wal_buffers`) or the kernel (`dirty_ratio`) make those wait who log: in the long run no log grows
//! faster than its drive writes.

use super::super::Database;
use super::super::log::flush;
use super::{BACKGROUND, Model, Step};
use lodger_core::Op;

/// PostgreSQL's walwriter does not wait for its delay once this much is unwritten
/// (`wal_writer_flush_after`, 1 MB).
const WALWRITER_BYTES: u64 = 1 << 20;
/// The kernel begins to write at a half of what it lets be dirty: `dirty_background_ratio` is 10 where `dirty_ratio` is 20.
const BACKGROUND_PART: u64 = 2;

impl Model {
    /// Whether `bytes` more have room in memory beside what is not written yet, and in the log beside what is not durable:
    /// its next turn takes the place of the last. Alone anything has.
    fn has_room(&self, bytes: u64) -> bool {
        let (in_memory, exposed) = (self.log.in_memory(), self.log.exposed());
        let fits = in_memory + bytes <= self.settings.unwritten_bytes
            && exposed + bytes <= self.settings.log_bytes;
        exposed == 0 || fits
    }

    /// A client logs without a leader, and is acknowledged as soon as its records have room.
    pub(super) fn wait_for_room(&mut self, client: u32) {
        self.waiting.push_back(client);
        self.admit();
        if self.waiting.back() == Some(&client) {
            self.statistics.stalls += 1;
            self.clients[client as usize].slept = true;
        }
    }

    /// Acknowledges those who wait for room, in turn, as far as it goes.
    fn admit(&mut self) {
        while let Some(&client) = self.waiting.front() {
            let bytes = self.clients[client as usize].transaction.log_bytes;
            if !self.has_room(bytes) {
                self.write_in_background();
                return;
            }
            self.waiting.pop_front();
            self.append(bytes);
            self.end_transaction(client);
        }
    }

    /// Whether the group's records have room; if not, the leader waits, and all behind it.
    pub(super) fn group_has_room(&mut self, bytes: u64) -> bool {
        let has_room = self.has_room(bytes);
        if !has_room && !self.stalled {
            self.statistics.stalls += 1;
            self.clients[self.group[0] as usize].slept = true;
        }
        self.stalled = !has_room;
        if !has_room {
            self.write_in_background();
        }
        has_room
    }

    /// What was logged may be enough to be written before the background writer wakes.
    pub(super) fn on_appended(&mut self) {
        let most = &mut self.statistics.exposed_bytes_max;
        *most = self.log.exposed().max(*most);
        let half = self.settings.unwritten_bytes / BACKGROUND_PART;
        let enough = match self.settings.database {
            Database::PostgreSql => half.min(WALWRITER_BYTES),
            Database::RocksDb | Database::Redis => half,
        };
        if self.log.dirty() >= enough {
            self.write_in_background();
        }
    }

    /// All that is logged by now is written, batch by batch.
    pub(super) fn write_in_background(&mut self) {
        self.background_to = self.log.head();
        if !self.background_busy {
            self.write_batch();
        }
    }

    fn write_batch(&mut self) {
        let left = self.background_to - self.log.written();
        if left == 0 {
            return;
        }
        let bytes = left.min(self.settings.batch_bytes);
        self.background_busy = true;
        self.statistics.covered_bytes += bytes;
        let steps = &mut self.background_steps;
        self.statistics.written_bytes += self.log.write(BACKGROUND, bytes, steps);
        if self.settings.volatile_cache {
            steps.push_back(Step::Block(flush(BACKGROUND)));
        }
        self.begin_background_step();
    }

    fn begin_background_step(&mut self) {
        let step = *self
            .background_steps
            .front()
            .expect("there is something to write");
        self.begin_step(step);
    }

    /// The first of its steps is done: what was written needs no room any more.
    pub(super) fn on_background_step(&mut self) {
        let done = self.background_steps.pop_front();
        if let Some(Step::Block(request)) = done
            && request.op == Op::Write
        {
            let lasts = !self.settings.volatile_cache;
            self.log.land(request.length_bytes, lasts);
        }
        match self.background_steps.is_empty() {
            true => {
                self.background_busy = false;
                self.log.settle();
                self.write_batch();
            }
            false => self.begin_background_step(),
        }
        self.admit();
        if self.stalled {
            self.commit_group();
        }
        if self.clients_left == 0 {
            // What was logged while it wrote.
            self.write_in_background();
        }
    }
}
