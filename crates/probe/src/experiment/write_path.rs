//! Does written data go through host memory? Single writes, host memory on and off in turn.
//!
//! A buffer in host memory shows even where it never fills: every write crosses the link a second time
//! (or is moved by another engine than without it), which takes time in proportion to its bytes. Writes
//! to a drive at rest are compared, so neither the size of the buffer nor what else the drive does
//! matters. States alternate, and each round is compared with itself, so that slow changes of the drive
//! (garbage collection, heat) fall out. Writes that a small buffer has no room for wait for flash, in which the drive may be at
//! work for itself: they tell nothing.

use super::enter;
use crate::bench::{Bench, Stop};
use crate::findings::Findings;
use crate::infer::write_buffer::WriteBufferArm;
use crate::infer::write_buffer::path::WritePath;
use crate::stats;
use crate::target::{HmbState, Io};
use std::time::Duration;

/// Bytes of one write.
const WRITES: [u64; 3] = [4 << 10, 32 << 10, 128 << 10];
/// Times host memory is turned on and off, and at most, where what the largest writes take leaves open whether their data crosses
/// a fast link once more: the interval is half as wide then.
const ROUNDS: usize = 10;
const ROUNDS_MAX: usize = 40;
/// Writes of each size in each state of a round.
const EACH: u64 = 10;

/// Writes of one size.
#[derive(Clone, Default)]
struct Looks {
    /// What they take with host memory on, as a multiple of that with it off, by round.
    ratios: Vec<f64>,
    /// The longer of both, ns.
    longer_ns: Vec<f64>,
    /// With it off, ns.
    off_ns: Vec<f64>,
}

impl Looks {
    fn told(&self) -> WritePath {
        WritePath {
            ratio: stats::median_interval(&self.ratios),
            off_ns: stats::median(&self.off_ns),
        }
    }
}

/// Writes of some sizes, compared in rounds.
pub(super) struct Compared {
    writes: Vec<u64>,
    looks: Vec<Looks>,
    rounds: usize,
}

/// Compares them.
pub(super) fn run(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<Compared, Stop> {
    let most = u64::from(bench.description().transfer_bytes_max);
    let writes: Vec<u64> = WRITES.into_iter().filter(|bytes| *bytes <= most).collect();
    let mut compared = Compared {
        looks: vec![Looks::default(); writes.len()],
        writes,
        rounds: 0,
    };
    while compared.rounds < ROUNDS {
        compared.round(bench)?;
    }
    compared.note(bench, findings, 0);
    Ok(compared)
}

/// Further rounds, as long as the largest writes that tell something leave it open. Last of all, for what is written leaves its
/// traces on what bursts find.
pub(super) fn further(
    bench: &mut Bench<'_>,
    findings: &mut Findings,
    mut compared: Compared,
) -> Result<(), Stop> {
    let before = compared.rounds;
    while compared.rounds < ROUNDS_MAX && compared.is_open(findings) {
        compared.round(bench)?;
    }
    if compared.rounds > before {
        compared.note(bench, findings, before);
    }
    Ok(())
}

impl Compared {
    fn round(&mut self, bench: &mut Bench<'_>) -> Result<(), Stop> {
        let mut states = [HmbState::On, HmbState::Off];
        // Neither state always comes second.
        if !self.rounds.is_multiple_of(2) {
            states.reverse();
        }
        let first = single_writes(bench, states[0], &self.writes)?;
        let second = single_writes(bench, states[1], &self.writes)?;
        let (on, off) = if self.rounds.is_multiple_of(2) {
            (first, second)
        } else {
            (second, first)
        };
        for (looks, (on, off)) in self.looks.iter_mut().zip(on.into_iter().zip(off)) {
            looks.ratios.push(on / off);
            looks.longer_ns.push(on.max(off));
            looks.off_ns.push(off);
        }
        self.rounds += 1;
        Ok(())
    }

    /// Those that do not wait for flash.
    fn held(&self, findings: &Findings) -> impl Iterator<Item = (u64, &Looks)> + use<'_> {
        let latencies = self.looks.iter();
        let latencies: Vec<f64> = latencies
            .map(|looks| stats::median(&looks.longer_ns))
            .collect();
        let count = held(&self.writes, &latencies, waits_ns(findings));
        self.writes.iter().copied().zip(&self.looks).take(count)
    }

    fn is_open(&self, findings: &Findings) -> bool {
        let largest = self.held(findings).last();
        largest.is_some_and(|(bytes, looks)| looks.told().is_open(bytes))
    }

    /// Keeps what they tell, and of the rounds those from one on.
    fn note(&self, bench: &mut Bench<'_>, findings: &mut Findings, from: usize) {
        let mut told = Vec::new();
        for (bytes, looks) in self.held(findings) {
            let series = format!("write of {} KiB, on to off", bytes >> 10);
            for (round, ratio) in looks.ratios.iter().enumerate().skip(from) {
                let point = (round as f64, *ratio);
                bench.note(&series, "round", "ratio of latencies", point);
            }
            told.push((bytes, looks.told()));
        }
        findings.roles.write_buffer.write_path = told.into_iter().collect();
    }
}

/// What a write that waits for flash takes longer at least, ns.
fn waits_ns(findings: &Findings) -> f64 {
    let arms = findings.roles.write_buffer.arms.values();
    arms.map(WriteBufferArm::waits_ns)
        .fold(f64::INFINITY, f64::min)
}

/// How many of some sizes of writes, the smallest first, do not wait for flash: they take no longer than those before
/// lead to expect.
fn held(writes: &[u64], latencies_ns: &[f64], waits_ns: f64) -> usize {
    let steps = writes.windows(2).zip(latencies_ns.windows(2));
    let in_proportion = |(bytes, ns): &(&[u64], &[f64])| {
        let longer = bytes[1] as f64 / bytes[0] as f64;
        ns[1] <= longer * ns[0] + waits_ns
    };
    1 + steps.take_while(in_proportion).count()
}

/// Median latency of single writes to a drive at rest, by size, ns.
fn single_writes(bench: &mut Bench<'_>, state: HmbState, writes: &[u64]) -> Result<Vec<f64>, Stop> {
    enter(bench, Some(state))?;
    let mut medians = Vec::new();
    for bytes in writes {
        let start = bench.capacity() / 8 * 5 / bytes * bytes;
        let mut latencies = Vec::new();
        for i in 0..EACH {
            bench.flush()?;
            bench.idle(Duration::from_millis(1))?;
            let io = [Io::write(start + i * bytes, *bytes as u32)];
            latencies.push(bench.batch(&io, 1)?[0].latency_ns as f64);
        }
        medians.push(stats::median(&latencies));
    }
    bench.flush()?;
    Ok(medians)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seed 110035: writes of 128 KiB into a buffer of 48 KiB took 3.05 times as long with host memory, for the drive
    /// collected garbage then, and the buffer was said to be in host memory.
    #[test]
    fn writes_that_have_no_room_in_the_buffer_tell_no_path() {
        let in_time = [12e3, 20e3, 60e3];
        assert_eq!(held(&WRITES, &in_time, 400e3), 3);
        let waits = [12e3, 20e3, 1_100e3];
        assert_eq!(held(&WRITES, &waits, 400e3), 2);
    }
}
