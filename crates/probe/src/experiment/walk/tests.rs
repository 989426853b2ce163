//! Walks over a drive of which all is known: a map of so many units of 4 MiB that replaces by use.

use super::*;
use crate::target::{Description, HmbSwitch, Io, Sample, Target, TargetError, Transport};

const UNIT: u64 = 4 << 20;
const HIT_NS: u64 = 80_000;
const MISS_NS: u64 = 148_000;

struct Fake {
    description: Description,
    /// Units at hand, the one used last at the end.
    held: Vec<u64>,
    most: usize,
    now: Duration,
}

impl Fake {
    fn new(most: usize) -> Self {
        Fake {
            description: Description {
                name: "fake".to_owned(),
                model: String::new(),
                serial: String::new(),
                firmware: String::new(),
                capacity_bytes: 64 << 30,
                block_bytes: 512,
                transfer_bytes_max: 1 << 20,
                transport: Transport::Direct,
                no_flush: None,
                no_deallocate: None,
                no_write: None,
                hmb: HmbSwitch::NotUsed,
                notes: Vec::new(),
            },
            held: Vec::new(),
            most,
            now: Duration::ZERO,
        }
    }

    fn read_ns(&mut self, io: &Io) -> u64 {
        let unit = io.offset / UNIT;
        let found = self.held.iter().position(|held| *held == unit);
        if let Some(at) = found {
            self.held.remove(at);
        } else if self.held.len() == self.most {
            self.held.remove(0);
        }
        self.held.push(unit);
        if found.is_some() { HIT_NS } else { MISS_NS }
    }
}

impl Target for Fake {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn run(&mut self, ios: &[Io], _: u32, samples: &mut Vec<Sample>) -> Result<(), TargetError> {
        samples.clear();
        for io in ios {
            let latency_ns = self.read_ns(io);
            self.now += Duration::from_nanos(latency_ns);
            samples.push(Sample {
                issued_ns: 0,
                latency_ns,
            });
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<u64, TargetError> {
        Ok(0)
    }

    fn deallocate(&mut self, _: u64, _: u64) -> Result<u64, TargetError> {
        Ok(0)
    }

    fn idle(&mut self, time: Duration) {
        self.now += time;
    }

    fn set_hmb(&mut self, _: HmbState) -> Result<(), TargetError> {
        Ok(())
    }

    fn now(&self) -> Duration {
        self.now
    }
}

const LEVELS: Levels = Levels {
    fast_ns: 80_000.0,
    slow_ns: 148_000.0,
    least_slow_ns: 148_000.0,
    threshold_ns: 109_000.0,
    false_slow: 0.0,
    false_fast: 0.0,
    pages_below_ns: None,
    kept_pages: 0,
};

/// The edge of a map of so many units, looked for between two ages.
fn edge(units: usize, range: (u64, u64), levels: &Levels) -> Edge {
    let mut fake = Fake::new(units);
    let mut watch = |_| true;
    let mut bench = Bench::new(&mut fake, Duration::MAX, false, 1, &mut watch);
    let mut walk = Walk::new(&mut bench, UNIT, Pace::UNKNOWN);
    walk.edge(&mut bench, levels, range).expect("it goes on")
}

#[test]
fn an_edge_within_the_range_is_found() {
    let Edge::At(units) = edge(700, (300, 1100), &LEVELS) else {
        panic!("none");
    };
    assert!((units.estimate - 700.0).abs() < 3.0, "{units:?}");
}

/// Seed 97110: two reads that a host held up made it look for 3250 units between 1 and 5, and what six tries did not
/// find was "the whole map".
#[test]
fn an_edge_far_beyond_the_range_is_not_said_to_be_nowhere() {
    match edge(3250, (1, 5), &LEVELS) {
        Edge::At(units) => assert!((units.estimate - 3250.0).abs() < 30.0, "{units:?}"),
        other => assert_eq!(other, Edge::Blind),
    }
}

/// Seed 95007: all pages that would tell are kept by a read cache.
#[test]
fn a_walk_without_a_look_shows_nothing() {
    let of_kind = Levels {
        fast_ns: 200_000.0,
        pages_below_ns: Some(100_000.0),
        ..LEVELS
    };
    assert_eq!(edge(700, (1, 36), &of_kind), Edge::Blind);
}

#[test]
fn a_map_that_is_all_at_hand_has_no_edge() {
    assert_eq!(edge(1 << 20, (4000, 16_384), &LEVELS), Edge::Beyond);
}
