//! One interval of a timeline.

use crate::report::programmed_bytes;
use lodger_core::observe::{Counters, Histogram, TIERS_MAX};
use lodger_core::time::S;

/// Directions, in the order of [`Row::requests`]; the last has a database's commits.
pub(super) const DIRECTIONS: [&str; KINDS] = ["read", "write", "trim", "sync", "commit"];
/// Number of [`DIRECTIONS`].
pub(super) const KINDS: usize = 5;
/// Place of commits.
pub(super) const COMMITS_AT: usize = 4;

/// What the drive counts that is told by interval: name of the column, and where it comes from.
type Count = (&'static str, fn(&Counters) -> u64);

/// Number of [`COUNTS`].
pub(super) const COUNTED: usize = 19;
/// Places of some of them.
pub(super) const HITS_AT: usize = 1;
pub(super) const HOST_HITS_AT: usize = HITS_AT + TIERS_MAX;
pub(super) const WRITTEN_AT: usize = 9;
pub(super) const PROGRAMMED_AT: usize = 10;

/// Hits stand in the order of the map role's memories; their columns are named after those.
pub(super) const COUNTS: [Count; COUNTED] = [
    ("map_lookups", |c| c.map.lookups),
    ("map_hits", |c| c.map.hits[0]),
    ("map_hits", |c| c.map.hits[1]),
    ("map_hits", |c| c.map.hits[2]),
    ("map_hits", |c| c.map.hits[3]),
    ("map_hits_host", |c| c.hpb.used),
    ("map_misses", |c| c.map.misses),
    ("read_cache_lookups", |c| c.read_cache_lookups),
    ("read_cache_hits", |c| c.read_cache_hits),
    ("host_written_bytes", |c| c.host_written_bytes),
    ("programmed_bytes", programmed_bytes),
    ("flash_reads", |c| c.reads_by_cause.iter().sum()),
    ("flash_programs", |c| c.programs_by_cause.iter().sum()),
    ("flash_erases", |c| c.erases),
    ("gc_moved_pages", |c| c.programmed_slots_by_cause[2]),
    ("wear_moved_pages", |c| c.programmed_slots_by_cause[3]),
    ("fold_moved_pages", |c| c.programmed_slots_by_cause[4]),
    ("hmb_read_bytes", |c| c.hmb_read_bytes),
    ("hmb_written_bytes", |c| c.hmb_written_bytes),
];

pub(super) fn counted(counters: &Counters) -> [u64; COUNTED] {
    COUNTS.map(|(_, of)| of(counters))
}

/// Requests of one direction in one interval.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    pub(super) ios: u64,
    pub(super) bytes: u64,
    min_ns: u64,
    pub(super) max_ns: u64,
    /// Latencies by fio's buckets: what one is reported as, and how many fell into it.
    bins: Vec<(u64, u64)>,
}

impl Requests {
    pub(super) fn new(bytes: u64, latencies: &Histogram) -> Self {
        Requests {
            ios: latencies.count(),
            bytes,
            min_ns: latencies.min_ns(),
            max_ns: latencies.max_ns(),
            bins: latencies.bins().collect(),
        }
    }

    pub(super) fn merge(&mut self, other: &Requests) {
        if other.ios == 0 {
            return;
        }
        self.min_ns = match self.ios {
            0 => other.min_ns,
            _ => self.min_ns.min(other.min_ns),
        };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.bins.extend_from_slice(&other.bins);
        self.bins.sort_unstable();
        self.bins.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            kept.1 += if same { later.1 } else { 0 };
            same
        });
    }

    /// As [`Histogram::percentile_ns`] of all of them; `None` where there are none.
    pub(super) fn percentile_ns(&self, percent: f64) -> Option<u64> {
        let wanted = percent / 100.0 * self.ios as f64;
        let mut sum = 0;
        let found = self.bins.iter().find(|(_, count)| {
            sum += count;
            sum as f64 >= wanted
        });
        found.map(|(ns, _)| (*ns).clamp(self.min_ns, self.max_ns))
    }
}

/// The drive at the end of an interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    pub(super) free_superblocks: u32,
    pub(super) slc_free_superblocks: u32,
    pub(super) slc_borrowed_superblocks: u32,
    pub(super) hmb_used_bytes: u64,
}

/// What the drive has counted in one interval, as [`COUNTS`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) all: [u64; COUNTED],
    /// Beside them, what counts only if a job ends in its ramp.
    pub(super) in_ramp: [u64; COUNTED],
}

impl Counts {
    /// Where is counted now.
    pub(super) fn of(&mut self, in_ramp: bool) -> &mut [u64; COUNTED] {
        match in_ramp {
            true => &mut self.in_ramp,
            false => &mut self.all,
        }
    }

    /// What was counted in the ramp counts like the rest.
    pub(super) fn ramp_counts(&mut self) {
        for (count, more) in self.all.iter_mut().zip(&mut self.in_ramp) {
            *count += std::mem::take(more);
        }
    }

    fn merge(&mut self, next: &Counts) {
        let ours = self.all.iter_mut().chain(&mut self.in_ramp);
        for (count, more) in ours.zip(next.all.iter().chain(&next.in_ramp)) {
            *count += more;
        }
    }
}

/// One interval.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) start_ps: u64,
    pub(super) length_ps: u64,
    pub(super) requests: [Requests; KINDS],
    /// What the drive has counted meanwhile.
    pub(super) counts: Counts,
    pub(super) state: State,
}

impl Row {
    /// Becomes one with the row after it.
    pub(super) fn merge(&mut self, next: &Row) {
        self.length_ps += next.length_ps;
        self.add(&next.requests);
        self.counts.merge(&next.counts);
        self.state = next.state;
    }

    pub(super) fn add(&mut self, requests: &[Requests; KINDS]) {
        for (ours, theirs) in self.requests.iter_mut().zip(requests) {
            ours.merge(theirs);
        }
    }

    /// `n` in this time, a second; 0 in no time.
    pub(super) fn per_second(&self, n: u64) -> f64 {
        match self.length_ps {
            0 => 0.0,
            length_ps => (u128::from(n) * u128::from(S)) as f64 / length_ps as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodger_core::rng::Rng;

    #[test]
    fn percentiles_of_merged_rows_are_those_of_all_requests() {
        let mut rng = Rng::new(7);
        let (mut all, mut merged) = (Histogram::default(), Requests::default());
        for part in 0..20 {
            let mut histogram = Histogram::default();
            for _ in 0..part * 13 {
                let ns = 50 + u64::from(rng.below(1 << (6 + part % 14)));
                histogram.record(ns);
                all.record(ns);
            }
            merged.merge(&Requests::new(part, &histogram));
        }
        assert_eq!((merged.ios, merged.bytes), (all.count(), 190));
        assert_eq!((merged.min_ns, merged.max_ns), (all.min_ns(), all.max_ns()));
        for percent in [1.0, 50.0, 90.0, 99.0, 99.9, 100.0] {
            assert_eq!(
                merged.percentile_ns(percent),
                Some(all.percentile_ns(percent))
            );
        }
        assert_eq!(Requests::default().percentile_ns(50.0), None);
    }
}
