//! What the experiments found, before anything is concluded from it.

use crate::experiment::levels::Levels;
use crate::infer::Role;
use crate::stats::Estimate;
use std::collections::BTreeMap;

/// How much of something is held, as a scan found it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Held {
    /// Nothing is: every look is slow.
    Nothing,
    /// So much.
    UpTo(Estimate),
    /// At least so much: nothing was ever slow.
    Everything(f64),
}

impl Held {
    /// As a number to compare: 0 for nothing, infinite for everything.
    #[must_use]
    pub fn amount(&self) -> f64 {
        match self {
            Held::Nothing => 0.0,
            Held::UpTo(estimate) => estimate.estimate,
            Held::Everything(_) => f64::INFINITY,
        }
    }
}

/// The map cache in one state of host memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MapArm {
    /// Latency of a read whose entry is at hand and of one whose is not; none if there is only one
    /// level.
    pub levels: Option<Levels>,
    /// The level that there is in any case, ns.
    pub near_ns: f64,
    /// The same as a mean, to compare with means of other experiments.
    pub near_mean_ns: f64,
    /// Share of reads far from each other that may have waited for their map entry, by how much longer they
    /// took on average than reads near each other.
    pub missed: Estimate,
    /// Caching units held.
    pub units: Held,
    /// Addresses covered, bytes.
    pub reach_bytes: Held,
    /// Median read whose entry comes from the largest memory, ns.
    pub hit_ns: f64,
}

/// The read cache in one state of host memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadCacheArm {
    /// A read again, and a first read.
    pub levels: Option<Levels>,
    /// Share of a read's time that a read again saves on average, of the same pages.
    pub saved: Estimate,
    /// Bytes held.
    pub bytes: Held,
}

/// The write buffer in one state of host memory.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteBufferArm {
    /// Median write of a page to a drive at rest, ns.
    pub write_ns: f64,
    /// Median flush after one page was written, ns.
    pub flush_dirty_ns: f64,
    /// Median flush with nothing to do, ns.
    pub flush_clean_ns: f64,
    /// Median read of a page as it was found, ns.
    pub old_read_ns: f64,
    /// Median read of a page just written and flushed, ns.
    pub fresh_read_ns: f64,
    /// Bytes held, if the buffer could be filled faster than it empties.
    pub bytes: Option<Estimate>,
    /// Rate before the buffer is full, bytes/s.
    pub fill_rate: f64,
    /// Rate once it is, bytes/s.
    pub drain_rate: f64,
    /// Single looks that the medians are of.
    pub looks: WriteLooks,
}

/// Latencies, ns: what tells how far this drive bears a verdict on its write buffer out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteLooks {
    /// Writes of a page to a drive at rest.
    pub writes: Vec<f64>,
    /// Flushes after each of them.
    pub dirty: Vec<f64>,
    /// Flushes right after those, with nothing to do.
    pub clean: Vec<f64>,
    /// Reads of pages just written and flushed.
    pub fresh: Vec<f64>,
}

impl WriteBufferArm {
    /// Whether writes are acknowledged before they are in flash.
    #[must_use]
    pub fn is_buffered(&self) -> bool {
        self.flush_works(self.flush_dirty_ns, self.flush_clean_ns) || self.is_fast(self.write_ns)
    }

    fn flush_works(&self, dirty_ns: f64, clean_ns: f64) -> bool {
        dirty_ns > clean_ns + 20_000.0 && dirty_ns > 1.5 * clean_ns
    }

    /// Faster than flash can even be read: programming is slower than that.
    fn is_fast(&self, write_ns: f64) -> bool {
        write_ns < 0.7 * self.old_read_ns
    }

    /// Share of single looks that say by themselves that writes are acknowledged before they are in flash.
    #[must_use]
    pub fn buffered_share(&self) -> f64 {
        let pairs = self.looks.dirty.iter().zip(&self.looks.clean);
        let flushes = pairs.filter(|(dirty, clean)| self.flush_works(**dirty, **clean));
        let writes = self.looks.writes.iter().filter(|ns| self.is_fast(**ns));
        let of = |count: usize, all: &[f64]| count as f64 / all.len().max(1) as f64;
        of(flushes.count(), &self.looks.dirty).max(of(writes.count(), &self.looks.writes))
    }
}

/// A number with its interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// The number.
    pub value: Estimate,
    /// Its unit.
    pub unit: &'static str,
    /// How sure it is that the interval covers the truth.
    pub confidence: f64,
}

/// How often a number of a second run lies within the intervals of both: 1936 of 2182 numbers of 100
/// drives drawn at random, written to between the runs (as in `infer/rule.rs`, of the 300 drives every third;
/// without numbers that fewer than 30 have).
const REPEATED: f64 = 0.89;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Map cache, by state of host memory (`on`, `off`, `as found`).
    pub map: BTreeMap<&'static str, MapArm>,
    /// Reach for each amount of host memory given, bytes.
    pub reach_of_grant: Vec<(u64, Held)>,
    /// The drive uses the largest power of two of what it is given.
    pub rounds_down: bool,
    /// Read cache, by state of host memory.
    pub read_cache: BTreeMap<&'static str, ReadCacheArm>,
    /// Write buffer, by state of host memory.
    pub write_buffer: BTreeMap<&'static str, WriteBufferArm>,
    /// Latency of a single write with host memory on, as a multiple of that with it off, by its bytes.
    pub write_path: BTreeMap<u64, Estimate>,
    /// Shares of hits of a cyclic and of a random scan a fifth beyond the cache.
    pub replacement: Option<(f64, f64)>,
    /// What the cache replaces by, as far as that can be told.
    pub replacement_verdict: Option<&'static str>,
    /// Bytes written at the fast rate before the rate fell for good.
    pub cliff_bytes: Option<Estimate>,
    /// Two reads of one die take longer than two of different dies: the marks of flash.
    pub collisions: Option<bool>,
    /// Median page read, random and sequential, ns.
    pub read_ahead: Option<(f64, f64)>,
    /// Mean latency of random reads over a span of so many bytes, ns, by state of host memory.
    pub spans: BTreeMap<&'static str, Vec<(f64, f64)>>,
    /// Everything with a number.
    pub quantities: BTreeMap<String, Quantity>,
    /// How far the reference latency moved, as a ratio of last to first.
    pub drift: Option<f64>,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

impl Findings {
    /// What another run for a role starts from: what others found and it builds on, but none of its own.
    #[must_use]
    pub fn without(&self, role: Role) -> Self {
        let mut rest = Findings {
            quantities: BTreeMap::new(),
            notes: Vec::new(),
            drift: None,
            ..self.clone()
        };
        rest.take(role, &Findings::default());
        rest
    }

    /// Takes over what another run found for a role, numbers excepted.
    pub fn take(&mut self, role: Role, other: &Findings) {
        match role {
            Role::Map => {
                self.map.clone_from(&other.map);
                self.reach_of_grant.clone_from(&other.reach_of_grant);
                self.rounds_down = other.rounds_down;
            }
            Role::ReadCache => self.read_cache.clone_from(&other.read_cache),
            Role::WriteBuffer => {
                self.write_buffer.clone_from(&other.write_buffer);
                self.write_path.clone_from(&other.write_path);
            }
        }
    }

    /// Leaves what was timed, and gives up what it would mean for a drive's inside: sizes, counts, shares,
    /// and which reads found their map entry at hand.
    pub fn give_up_inside(&mut self) {
        let timed = |name: &str, unit: &str| {
            let inside = ["map_", "hit_", "miss"];
            ["us", "1/s", "MB/s"].contains(&unit) && !inside.iter().any(|of| name.starts_with(of))
        };
        self.quantities
            .retain(|name, quantity| timed(name, quantity.unit));
        self.replacement_verdict = None;
    }

    /// Keeps a number.
    pub fn quantity(&mut self, name: &str, unit: &'static str, value: Estimate) {
        let quantity = Quantity {
            value,
            unit,
            confidence: REPEATED,
        };
        self.quantities.insert(name.to_owned(), quantity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_need_not_be_a_drive_has_times_and_rates_but_no_inside() {
        let mut findings = Findings {
            replacement_verdict: Some("LRU"),
            ..Findings::default()
        };
        for (name, unit) in [
            ("read_near", "us"),
            ("random_read_qd1", "1/s"),
            ("write_rate_fast", "MB/s"),
            ("map_hit", "us"),
            ("hit_hmb", "us"),
            ("miss", "us"),
            ("parallel_units", "count"),
            ("stripe", "bytes"),
            ("map_reach_64MiB", "bytes"),
            ("map_cyclic_hit_ratio", "ratio"),
        ] {
            findings.quantity(name, unit, Estimate::new(1.0, 1.0, 1.0));
        }
        findings.give_up_inside();
        let left: Vec<&String> = findings.quantities.keys().collect();
        assert_eq!(left, ["random_read_qd1", "read_near", "write_rate_fast"]);
        assert_eq!(findings.replacement_verdict, None);
    }
}
