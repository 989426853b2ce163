//! fio's `verify_backlog`: what was written is read back while the job writes.

use super::read_back::Written;

/// What is known of writes that may be read back.
#[derive(Clone, Debug, Default)]
pub(super) struct Backlog {
    every: u64,
    batch: u64,
    /// Reads left of the batch under way.
    left: u64,
    /// Tag and offset of the writes in flight.
    in_flight: Vec<(u32, u64)>,
    /// The request that completed last was a read.
    read_last: bool,
}

impl Backlog {
    /// After `every` writes read back `batch`.
    pub(super) fn new((every, batch): (u64, u64)) -> Self {
        Self {
            every,
            batch,
            ..Self::default()
        }
    }

    pub(super) fn wrote(&mut self, tag: u32, offset: u64) {
        if self.every > 0 {
            self.in_flight.push((tag, offset));
        }
    }

    pub(super) fn completed(&mut self, tag: u32, was_read: bool) {
        if self.every > 0 {
            self.read_last = was_read;
            self.in_flight.retain(|(other, _)| *other != tag);
        }
    }

    /// A block to read now. As in fio a batch begins where the number of blocks to read back is a multiple of `every`, but
    /// not right after a read, and a block whose write is in flight is not read.
    pub(super) fn take(&mut self, written: &mut Written) -> Option<(u64, u64)> {
        let waiting = written.len() as u64;
        if self.every == 0 || waiting == 0 {
            return None;
        }
        if self.left == 0 {
            if !waiting.is_multiple_of(self.every) || self.read_last {
                return None;
            }
            self.left = self.batch;
        }
        let first = written.first()?;
        if self.in_flight.iter().any(|(_, offset)| *offset == first) {
            return None;
        }
        self.left -= 1;
        written.take()
    }
}
