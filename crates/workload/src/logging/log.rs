//! The log as a row of bytes, and what makes them durable.

use super::Settings;
use lodger_core::{EntryId, Op, Request, WindowCall};
use std::collections::VecDeque;

/// Longest write: what Linux lets through at once, `max_sectors_kb` of 1280 KiB rounded down.
const WRITE_BYTES_MAX: u64 = 1 << 20;

/// Halves of the byte window: one is filled while the other is flushed and pinned anew.
pub const HALVES: u64 = 2;

/// One thing that must be done, and have been done, before the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A command to the drive.
    Block(Request),
    /// A store of bytes of the log from this position on.
    Store {
        /// Position in the log.
        from: u64,
        /// How many, all in one segment.
        bytes: u64,
    },
    /// BA_SYNC of a segment.
    Sync {
        /// Number of the segment.
        segment: u64,
    },
    /// The segment is full: it goes to its place in the log.
    Retire {
        /// Number of the segment.
        segment: u64,
    },
}

/// Position after position; the drive holds the last `size` of them.
#[derive(Debug)]
pub struct Log {
    offset: u64,
    size: u64,
    block: u64,
    segment: u64,
    /// Bytes logged so far.
    head: u64,
    /// Bytes handed to the drive so far.
    written: u64,
    /// Bytes that the background writer has written so far.
    landed: u64,
    /// And those that a flush has followed, where the drive needs one.
    durable: u64,
}

impl Log {
    pub fn new(settings: &Settings) -> Self {
        Self {
            offset: settings.log_offset_bytes,
            size: settings.log_bytes,
            block: settings.database.block_bytes(),
            segment: settings.segment_bytes,
            head: 0,
            written: 0,
            landed: 0,
            durable: 0,
        }
    }

    pub fn append(&mut self, bytes: u64) {
        self.head += bytes;
    }

    /// Bytes handed to the drive so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Bytes logged and not yet handed to the drive.
    pub fn dirty(&self) -> u64 {
        self.head - self.written
    }

    /// Bytes logged that memory must hold: not written yet, or on their way.
    pub fn in_memory(&self) -> u64 {
        self.head - self.landed
    }

    /// Bytes logged that a crash would take.
    pub fn exposed(&self) -> u64 {
        self.head - self.durable
    }

    /// The background writer's oldest command under way has written `bytes`, whole blocks. `lasts`: on a drive that loses
    /// nothing.
    pub fn land(&mut self, bytes: u64, lasts: bool) {
        let end = self.landed / self.block * self.block + bytes;
        self.landed = end.min(self.written);
        if lasts {
            self.durable = self.landed;
        }
    }

    /// All that was written is durable.
    pub fn settle(&mut self) {
        assert_eq!(
            self.landed, self.written,
            "the last command has been answered"
        );
        self.durable = self.written;
    }

    /// Writes whole blocks with what is new in them, those filled in part included, of `dirty_max` bytes of the log
    /// at most. Returns how many bytes the blocks are.
    pub fn write(&mut self, tag: u32, dirty_max: u64, steps: &mut VecDeque<Step>) -> u64 {
        if self.dirty() == 0 {
            return 0;
        }
        let from = self.written / self.block * self.block;
        self.written += self.dirty().min(dirty_max);
        let to = self.written.next_multiple_of(self.block);
        let mut at = from;
        while at < to {
            let place = at % self.size;
            let bytes = (to - at).min(WRITE_BYTES_MAX).min(self.size - place);
            steps.push_back(Step::Block(write(tag, self.offset + place, bytes)));
            at += bytes;
        }
        to - from
    }

    /// Stores and syncs what is new, segment by segment.
    pub fn store(&mut self, steps: &mut VecDeque<Step>) {
        while self.written < self.head {
            let segment = self.written / self.segment;
            let end = (segment + 1) * self.segment;
            let bytes = self.head.min(end) - self.written;
            steps.push_back(Step::Store {
                from: self.written,
                bytes,
            });
            steps.push_back(Step::Sync { segment });
            self.written += bytes;
            if self.written == end {
                steps.push_back(Step::Retire { segment });
            }
        }
    }

    /// Entry of the byte window in which a segment is pinned.
    pub fn entry(segment: u64) -> EntryId {
        EntryId((segment % HALVES) as u32)
    }

    /// Pins a segment to its half of the window.
    pub fn pin(&self, segment: u64) -> WindowCall {
        WindowCall::Pin {
            entry: Self::entry(segment),
            window_offset_bytes: segment % HALVES * self.segment,
            drive_offset_bytes: self.offset + segment * self.segment % self.size,
            length_bytes: self.segment,
        }
    }

    /// Where a position stands in the window.
    pub fn window_offset(&self, position: u64) -> u64 {
        position / self.segment % HALVES * self.segment + position % self.segment
    }

    /// Where a position stands on the drive.
    pub fn place(&self, position: u64) -> u64 {
        self.offset + position % self.size
    }

    /// How many bytes from a position on stand there in one piece.
    pub fn in_one_piece(&self, position: u64) -> u64 {
        self.size - position % self.size
    }

    /// Bytes logged so far.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Segment of a position.
    pub fn segment_of(&self, position: u64) -> u64 {
        position / self.segment
    }
}

/// The file system's journal: written in order, over and over.
#[derive(Debug)]
pub struct JournalArea {
    offset: u64,
    size: u64,
    at: u64,
}

impl JournalArea {
    pub fn new(settings: &Settings) -> Self {
        Self {
            offset: settings.journal_offset_bytes,
            size: settings.journal_bytes,
            at: 0,
        }
    }

    /// The journal's blocks, and behind them its commit record, which must not be there before them:
    /// a drive that may lose data flushes in between, and writes the record through (jbd2).
    pub fn commit(
        &mut self,
        blocks: u64,
        record: u64,
        volatile_cache: bool,
        tag: u32,
        steps: &mut VecDeque<Step>,
    ) {
        if self.at + blocks + record > self.size {
            self.at = 0;
        }
        if blocks > 0 {
            steps.push_back(Step::Block(write(tag, self.offset + self.at, blocks)));
            self.at += blocks;
        }
        if volatile_cache {
            steps.push_back(Step::Block(flush(tag)));
        }
        if record > 0 {
            let request = write(tag, self.offset + self.at, record);
            let fua = volatile_cache;
            steps.push_back(Step::Block(Request { fua, ..request }));
            self.at += record;
        }
    }
}

fn write(tag: u32, offset_bytes: u64, length_bytes: u64) -> Request {
    Request {
        tag,
        queue: 0,
        op: Op::Write,
        fua: false,
        offset_bytes,
        length_bytes,
    }
}

/// NVMe Flush.
pub fn flush(tag: u32) -> Request {
    Request {
        op: Op::Flush,
        ..write(tag, 0, 0)
    }
}
