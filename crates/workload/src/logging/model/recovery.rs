//! The log is read back, as a server does that starts again after a crash of its host.

use super::super::log::{HALVES, Log};
use super::super::{Commit, Settings};
use super::Model;
use crate::Next;
use lodger_core::{Op, Request, WindowCall};
use std::collections::VecDeque;

/// Read at once: `read_ahead_kb` of Linux is 128. Whoever takes no time over what it reads always waits for the next
/// piece, which is asked for as this one has come.
const READ_BYTES: u64 = 128 << 10;

/// Tag of its commands.
const RECOVERY: u32 = 2;

/// How the part of the log that stands in the byte window is read. All else is read by block commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
pub enum RecoveryPath {
    /// BA_READ_DMA, one call.
    #[serde(rename = "read-dma")]
    ReadDma,
    /// Loads of a CPU.
    #[serde(rename = "loads")]
    Loads,
    /// Block commands, once the entry is flushed.
    #[serde(rename = "blocks")]
    Blocks,
}

impl RecoveryPath {
    /// Name as in a workload file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RecoveryPath::ReadDma => "read-dma",
            RecoveryPath::Loads => "loads",
            RecoveryPath::Blocks => "blocks",
        }
    }
}

/// What reading the log back took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Bytes that were read.
    pub bytes: u64,
    /// The part of them that stood in the byte window.
    pub window_bytes: u64,
    /// From the first command to the end of the last, picoseconds.
    pub took_ps: u64,
}

/// One thing to do, and to have done, before the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    /// A command to the drive.
    Block(Request),
    /// A call of the byte window.
    Call(WindowCall),
}

/// What is left to do.
#[derive(Debug)]
pub(super) struct Recovery {
    steps: VecDeque<Read>,
    began_ps: u64,
    /// What will have been read.
    reads: Recovered,
}

impl Recovery {
    /// Everything that the log holds, oldest bytes first.
    fn new(log: &Log, settings: &Settings, path: RecoveryPath, now_ps: u64) -> Self {
        let mut recovery = Recovery {
            steps: VecDeque::new(),
            began_ps: now_ps,
            reads: Recovered::default(),
        };
        let block = settings.database.block_bytes();
        let head = log.head();
        if settings.commit != Commit::ByteAddressed {
            let end = head.next_multiple_of(block);
            let from = end.saturating_sub(settings.log_bytes);
            recovery.read_blocks(log, from..end);
            return recovery;
        }
        let segment = log.segment_of(head);
        let pinned_from = segment * settings.segment_bytes;
        let pinned_to = pinned_from + HALVES * settings.segment_bytes;
        // What is pinned has taken the place of what the log held there before.
        let from = pinned_to.saturating_sub(settings.log_bytes);
        recovery.read_blocks(log, from..pinned_from);
        recovery.read_window(log, path, pinned_from..head);
        recovery
    }

    fn read_blocks(&mut self, log: &Log, range: std::ops::Range<u64>) {
        let mut at = range.start;
        while at < range.end {
            let bytes = (range.end - at).min(READ_BYTES).min(log.in_one_piece(at));
            self.steps.push_back(Read::Block(Request {
                tag: RECOVERY,
                queue: 0,
                op: Op::Read,
                fua: false,
                offset_bytes: log.place(at),
                length_bytes: bytes,
            }));
            self.reads.bytes += bytes;
            at += bytes;
        }
    }

    /// The last segment, which is not full.
    fn read_window(&mut self, log: &Log, path: RecoveryPath, range: std::ops::Range<u64>) {
        let length_bytes = range.end - range.start;
        if length_bytes == 0 {
            return;
        }
        self.reads.window_bytes = length_bytes;
        let entry = Log::entry(log.segment_of(range.start));
        let call = match path {
            RecoveryPath::ReadDma => WindowCall::ReadDma {
                entry,
                offset_bytes: 0,
                length_bytes,
            },
            RecoveryPath::Loads => WindowCall::Load {
                window_offset_bytes: log.window_offset(range.start),
                length_bytes,
            },
            RecoveryPath::Blocks => WindowCall::Flush { entry },
        };
        self.steps.push_back(Read::Call(call));
        match path {
            RecoveryPath::Blocks => {
                // Blocks are 4 KiB, whatever the database's own pages are.
                let end = range.end.next_multiple_of(4096);
                self.read_blocks(log, range.start..end);
            }
            RecoveryPath::ReadDma | RecoveryPath::Loads => self.reads.bytes += length_bytes,
        }
    }
}

impl Model {
    /// Whether the clients are done, and the log is read back.
    #[must_use]
    pub fn is_recovering(&self) -> bool {
        self.recovery.is_some() && self.statistics.recovered.is_none()
    }

    /// All that was to be written has been.
    pub(super) fn recover(&mut self) -> Next {
        let Some(path) = self.settings.recovery else {
            return Next::Done;
        };
        if self.recovery.is_none() {
            let recovery = Recovery::new(&self.log, &self.settings, path, self.now_ps);
            self.recovery = Some(recovery);
            self.next_read();
        }
        match self.out.pop_front() {
            Some(next) => next,
            None if self.is_recovering() => Next::Blocked,
            None => Next::Done,
        }
    }

    pub(super) fn next_read(&mut self) {
        let Some(recovery) = &mut self.recovery else {
            return;
        };
        match recovery.steps.pop_front() {
            Some(Read::Block(request)) => self.out.push_back(Next::Submit(request)),
            Some(Read::Call(call)) => self.call_in_background(call),
            None => {
                self.statistics.recovered = Some(Recovered {
                    took_ps: self.now_ps - recovery.began_ps,
                    ..recovery.reads
                });
            }
        }
    }
}
