//! Everything that one job does, as the generator takes it.

use super::failures::Survived;
use super::latency::LatencyGoal;
use super::offsets::{Direction, Layout};
use super::pacing::Pace;
use super::reaping::Reaping;

/// How a job chooses between reading, writing and trimming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Always(Direction),
    /// Reads with this per cent, writes otherwise, drawn afresh for every request.
    Mix {
        read_percent: u32,
    },
    /// Trims a range, then writes it.
    TrimThenWrite,
    /// Trims and writes in order, each with lengths of its own: a write after a trim until both have begun at
    /// the same place.
    TrimAndWrite,
}

/// Everything that one job does; validated by the caller.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) queue: u16,
    pub(super) depth: u32,
    /// Once full, the queue is filled again when this many are in flight, or fewer.
    pub(super) refill_at: u32,
    /// Where completions are not taken one by one as they arrive.
    pub(super) reaping: Option<Reaping>,
    pub(super) choice: Choice,
    pub(super) layout: Layout,
    /// Writes are FUA.
    pub(super) fua: bool,
    /// Flush after this many writes, 0 for never: fio's `fsync` and `fdatasync`.
    pub(super) flush_every: [u32; 2],
    /// Nothing is submitted while a flush is under way: libaio waits in the call.
    pub(super) flush_holds: bool,
    /// Every write ends with a flush that belongs to it.
    pub(super) write_flushes: bool,
    /// Flush at the end of every pass.
    pub(super) flush_at_end: bool,
    /// Errors after which the job goes on.
    pub(super) survived: Survived,
    /// Read back what a pass has written at its end, and whether no pass writes a block twice.
    pub(super) verify: Option<bool>,
    /// Bytes in a pass over the range.
    pub(super) pass_bytes: u64,
    /// fio's `size` or `io_size`.
    pub(super) limit_bytes: u64,
    /// Whether `io_size` was given: passes are repeated until it is reached.
    pub(super) has_io_size: bool,
    pub(super) loops: u64,
    /// Requests over all loops, `u64::MAX` for no limit.
    pub(super) requests_max: u64,
    /// Runs until `runtime_ps` whatever the bytes.
    pub(super) time_based: bool,
    /// Every pass draws the same order (fio's `randrepeat`).
    pub(super) repeat: bool,
    pub(super) delay_ps: u64,
    pub(super) ramp_ps: u64,
    /// After the ramp; `None` for no limit.
    pub(super) runtime_ps: Option<u64>,
    pub(super) pace: Option<Pace>,
    /// The depth is searched for that keeps this latency.
    pub(super) latency: Option<LatencyGoal>,
    /// After how many writes some are read back, and how many.
    pub(super) backlog: (u64, u64),
    pub(super) seed: u64,
}

impl Plan {
    /// Whether a number of requests ends the job that counts from the end of its ramp, as in fio. Where so many are issued in
    /// the ramp it ends there.
    pub(super) fn counts_after_ramp(&self) -> bool {
        self.ramp_ps > 0 && self.requests_max < u64::MAX
    }
}
