//! What an emitted file says of bursts of writes at its head: how long those that were measured take from it, and
//! nothing of others.

use crate::experiment::burst::LAST_BURST;
use crate::experiment::write_buffer::IN_FLIGHT;
use crate::outcome::Outcome;
use crate::target::Io;
use std::fmt::Write as _;

const MIB: f64 = 1_048_576.0;
/// Bytes of a burst whose times are compared, besides all of it.
const COMPARED: [f64; 2] = [MIB, 16.0 * MIB];
/// Times further apart than this are not alike.
const ALIKE: f64 = 0.1;

/// Bursts whose times were not compared.
const OTHERS: &str = "\
# Requests of other sizes, fewer in flight, and longer bursts were not compared: what firmware, link and buffer have a
# share in differs with them, and they may take many times as long or as short.
";

/// A burst of writes into an empty buffer, as it was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Burst {
    /// Bytes of one write.
    pub write_bytes: u64,
    /// Writes in flight.
    pub queue_depth: u32,
    /// Bytes of all.
    pub bytes: u64,
    /// It was measured with host memory taken away.
    pub without_host_memory: bool,
    /// Bytes acknowledged, and when, ms.
    acknowledged: Vec<(f64, f64)>,
}

impl Burst {
    /// The last that was measured, in the state in which the drive was found, or with host memory.
    pub(super) fn of(outcome: &Outcome) -> Option<Self> {
        let mut states = ["as found", "on", "off"].into_iter();
        states.find_map(|state| Self::of_state(outcome, state))
    }

    /// The same in one state of host memory.
    pub(super) fn of_state(outcome: &Outcome, state: &str) -> Option<Self> {
        let series = outcome
            .raw
            .get(&format!("write burst, host memory {state}"))?;
        let series = &series.points;
        // Each burst begins with one write, and runs are noted one after the other.
        let begins = |i: &usize| *i == 0 || series[*i].1 < series[*i - 1].1;
        let last = &series[(0..series.len()).rev().find(begins)?..];
        let (write_bytes, bytes) = (last.first()?.1, last.last()?.1);
        (last.len() > 2).then(|| Burst {
            write_bytes: write_bytes as u64,
            queue_depth: (IN_FLIGHT / (write_bytes as u64).max(1)) as u32,
            bytes: bytes as u64,
            without_host_memory: state == "off",
            acknowledged: last.iter().map(|(ms, bytes)| (*bytes, *ms)).collect(),
        })
    }

    /// Its writes, in the middle of a drive, round and round the same stretch.
    #[must_use]
    pub fn writes(&self, capacity_bytes: u64) -> Vec<Io> {
        let whole = |bytes: u64| (bytes / self.write_bytes).max(1) * self.write_bytes;
        let (start, room) = (
            whole(capacity_bytes / 2),
            whole((capacity_bytes / 4).min(LAST_BURST)),
        );
        let all = self.bytes.div_ceil(self.write_bytes);
        let write =
            |i: u64| Io::write(start + i * self.write_bytes % room, self.write_bytes as u32);
        (0..all).map(write).collect()
    }

    /// When so many bytes were acknowledged, ms.
    fn at(&self, bytes: f64) -> f64 {
        let after = self.acknowledged.partition_point(|point| point.0 < bytes);
        let after = after.min(self.acknowledged.len() - 1);
        let (high, late) = self.acknowledged[after];
        let (low, early) = match after {
            0 => return late,
            after => self.acknowledged[after - 1],
        };
        early + (late - early) * ((bytes - low) / (high - low)).clamp(0.0, 1.0)
    }

    /// Bytes per second of the first of it, which no buffer holds up.
    pub(super) fn first_rate(&self) -> f64 {
        let (bytes, ms) = self.acknowledged[0];
        let most = MIB.min(self.bytes as f64);
        1e3 * (most - bytes) / (self.at(most) - ms).max(1e-6)
    }

    /// Bytes per second of its second half.
    pub(super) fn last_rate(&self) -> f64 {
        let all = self.bytes as f64;
        let (from, to) = (0.5 * all, 0.95 * all);
        1e3 * (to - from) / (self.at(to) - self.at(from)).max(1e-6)
    }

    /// Bytes by which it was ahead of the rate of its second half: what a buffer took at once, if that is what it was.
    pub(super) fn ahead(&self) -> f64 {
        let end = 0.95 * self.bytes as f64;
        end - self.last_rate() * self.at(end) * 1e-3
    }

    /// What is said of it and of the same burst from the file, of which each write's completion is known, sorted, ms.
    fn beside(&self, simulated: &[f64]) -> String {
        let state = if self.without_host_memory {
            ", without host memory"
        } else {
            ""
        };
        let mut text = format!(
            "\
# Writes of {} KiB, {} in flight{state}, into an empty buffer: how long they took on the drive probed, and how long they
# take from this file, as it was simulated when it was written:
",
            self.write_bytes >> 10,
            self.queue_depth
        );
        let all = self.bytes as f64;
        let mut is_off = false;
        for bytes in COMPARED
            .into_iter()
            .filter(|bytes| *bytes < all)
            .chain([all])
        {
            let writes = (bytes / self.write_bytes as f64).ceil() as usize;
            let Some(here) = writes.checked_sub(1).and_then(|i| simulated.get(i)) else {
                continue;
            };
            let there = self.at(bytes);
            let off = here / there - 1.0;
            is_off |= off.abs() > ALIKE;
            let mib = format!("{:.4}", bytes / MIB);
            let mib = mib.trim_end_matches('0').trim_end_matches('.');
            let percent = 100.0 * off;
            let _ = writeln!(
                text,
                "#   {mib} MiB: {there:.3} ms and {here:.3} ms ({percent:+.0} %)"
            );
        }
        if is_off {
            text += "\
# What explains the difference no experiment shows: cores, the way of data to flash, and the shares of the buffer at
# which writing back starts and stops are a choice.
";
        }
        text + OTHERS
    }
}

/// The same where nothing is compared.
const NOT_COMPARED: &str = "\
# How long bursts of writes take from this file was not compared with the drive: they may take many times as long
# or as short.
";

/// What the head says of bursts. `simulate` has the completions of a burst from the file, sorted, ms.
pub(super) fn told(outcome: &Outcome, simulate: impl FnOnce(&Burst) -> Option<Vec<f64>>) -> String {
    let burst = Burst::of(outcome);
    let told = burst.and_then(|burst| Some(burst.beside(&simulate(&burst)?)));
    told.unwrap_or_else(|| NOT_COMPARED.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_burst_is_what_was_measured_and_what_was_simulated() {
        let write = 32 << 10;
        let burst = Burst {
            write_bytes: write,
            queue_depth: 192,
            bytes: 64 * write,
            without_host_memory: false,
            // Every fourth write was noted: 0.1 ms each.
            acknowledged: (0..64)
                .step_by(3)
                .map(|i| (f64::from(i + 1) * write as f64, 0.1 * f64::from(i + 1)))
                .collect(),
        };
        assert!((burst.at(MIB) - 3.2).abs() < 1e-9, "{}", burst.at(MIB));
        let twice: Vec<f64> = (1..=64).map(|i| 0.2 * f64::from(i)).collect();
        let text = burst.beside(&twice);
        for part in [
            "  1 MiB: 3.200 ms and 6.400 ms (+100 %)",
            "  2 MiB",
            "were not compared",
            "explains",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let same: Vec<f64> = (1..=64).map(|i| 0.1 * f64::from(i)).collect();
        assert!(!burst.beside(&same).contains("explains"));
    }
}
