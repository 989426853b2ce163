//! What an experiment will take, told before it starts.

use crate::target::Description;
use std::time::Duration;

/// Latency of a read before any was made: flash and controller of the drives of the collection, 60 to
/// 100 us (`lodger drives`).
const READ: Duration = Duration::from_micros(80);

/// What the cost of an experiment depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Size of the drive, bytes.
    pub capacity_bytes: u64,
    /// Size of the reads that measure, bytes.
    pub page_bytes: u64,
    /// States of host memory that are compared: two where it can be switched.
    pub states: u32,
    /// Any amount of host memory can be given.
    pub has_sizes: bool,
    /// One read, one at a time.
    pub read: Duration,
}

impl Scale {
    /// Of a drive whose latency is not known yet.
    #[must_use]
    pub fn of(drive: &Description) -> Self {
        Scale {
            capacity_bytes: drive.capacity_bytes,
            page_bytes: u64::from(drive.block_bytes).max(4096),
            states: if drive.hmb.can_switch() { 2 } else { 1 },
            has_sizes: matches!(drive.hmb, crate::HmbSwitch::Sizes { .. }),
            read: READ,
        }
    }

    /// MiB of addresses.
    #[must_use]
    pub fn mib(&self) -> u64 {
        self.capacity_bytes >> 20
    }
}

/// What an experiment takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Reads of a page that are waited for one after the other, about.
    pub reads_in_turn: u64,
    /// Bytes read, about.
    pub read_bytes: u64,
    /// Bytes written at most: more are refused.
    pub written_bytes: u64,
    /// Time in which the drive is left alone, about.
    pub rest: Duration,
}

/// Rate at which writes are expected to go, bytes/s: that of slow flash, in which long bursts end.
const WRITE_RATE: f64 = 3e8;
/// Share of what is written at most that is expected to be written: the longest bursts are needed for
/// the largest buffers only.
const WRITTEN_SHARE: f64 = 0.25;

impl Cost {
    /// Of reads of pages, all one after the other.
    #[must_use]
    pub fn reads(count: u64, scale: &Scale) -> Self {
        Cost {
            reads_in_turn: count,
            read_bytes: count * scale.page_bytes,
            ..Cost::default()
        }
    }

    /// The same with rest.
    #[must_use]
    pub fn resting(self, rest: Duration) -> Self {
        Cost {
            rest: self.rest + rest,
            ..self
        }
    }

    /// The same with bytes that are written at most.
    #[must_use]
    pub fn writing(self, written_bytes: u64) -> Self {
        Cost {
            written_bytes,
            ..self
        }
    }

    /// Time it is expected to take.
    #[must_use]
    pub fn time(&self, scale: &Scale) -> Duration {
        let reads = scale.read.as_secs_f64() * self.reads_in_turn as f64;
        let writes = WRITTEN_SHARE * self.written_bytes as f64 / WRITE_RATE;
        self.rest + Duration::from_secs_f64(reads + writes)
    }
}
