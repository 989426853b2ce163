//! Latencies of a direction as fio tells them: completion latencies of reads, writes and trims; of flushes those from
//! submission on (`lat`), which are the only ones that its text and its JSON have.

use super::SYNC;
use crate::stats::Direction;
use lodger_core::observe::Histogram;

/// Latencies of one direction that has requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latencies<'a> {
    completion: &'a Histogram,
    more_ns: u64,
}

impl<'a> Latencies<'a> {
    /// Of a direction by that name, of jobs whose submission takes so long; nothing where it has no requests.
    pub(crate) fn of(name: &str, direction: &'a Direction, slat_ns: u64) -> Option<Self> {
        let completion = direction.clat().filter(|clat| clat.count() > 0)?;
        let more_ns = more_ns(name, slat_ns);
        Some(Self {
            completion,
            more_ns,
        })
    }

    /// Of what is no request of fio's, such as commits: as they are.
    pub(crate) fn plain(completion: &'a Histogram) -> Option<Self> {
        (completion.count() > 0).then_some(Self {
            completion,
            more_ns: 0,
        })
    }

    pub(crate) fn count(self) -> u64 {
        self.completion.count()
    }

    pub(crate) fn mean_ns(self) -> f64 {
        self.completion.mean_ns() + self.more_ns as f64
    }

    pub(crate) fn percentile_ns(self, percent: f64) -> u64 {
        self.completion.percentile_ns(percent) + self.more_ns
    }

    pub(crate) fn max_ns(self) -> u64 {
        self.completion.max_ns() + self.more_ns
    }
}

/// fio's name for the latencies of a direction.
pub(crate) fn kind(name: &str) -> &'static str {
    match name {
        SYNC => "lat",
        _ => "clat",
    }
}

/// What a direction's latency as it is told is longer than its completion latency.
pub(crate) fn more_ns(name: &str, slat_ns: u64) -> u64 {
    match name {
        SYNC => slat_ns,
        _ => 0,
    }
}
