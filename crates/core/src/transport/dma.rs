//! The host's DMA engine, started and polled by the drive.
//!
//! Hong, Han & Chung (ISOCC 2016, section III): with the feature that gives the drive host memory
//! the host also names the registers of one of its DMA controllers. The drive then has data copied
//! between a command's pages and its own host memory without any of it crossing the link: it writes
//! the registers (posted), and reads the status register (non-posted) until the copy is done.

use crate::engine::Now;
use crate::spec::HostDmaSpec;
use crate::time::transfer_ps;
use serde::{Deserialize, Serialize};

/// Bytes of registers written for each page of a copy: two addresses, length, control and link to
/// the next descriptor. `assumed`: the paper names no controller.
pub const DESCRIPTOR_BYTES: u64 = 32;
/// Bytes of the status register.
pub const STATUS_BYTES: u64 = 4;

/// One engine; copies are done in the order in which they are started.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct HostDma {
    spec: HostDmaSpec,
    one_way_ps: u64,
    free_at_ps: u64,
    /// When the last status read so far looks at the register.
    looks_at_ps: u64,
    busy_ps: u64,
    /// Copies that were started.
    pub copies: u64,
    /// Bytes of those copies.
    pub bytes: u64,
    /// Reads of the status register.
    pub polls: u64,
}

impl HostDma {
    /// An idle engine behind a link with that time of flight.
    #[must_use]
    pub fn new(spec: &HostDmaSpec, one_way_ps: u64) -> Self {
        HostDma {
            spec: spec.clone(),
            one_way_ps,
            free_at_ps: 0,
            looks_at_ps: 0,
            busy_ps: 0,
            copies: 0,
            bytes: 0,
            polls: 0,
        }
    }

    /// Starts a copy whose register writes arrive at `started_ps`, and which the host's memory has done by `memory_ps` at
    /// the earliest; returns when the drive knows that it is done.
    ///
    /// The engine is no [`crate::engine::Timeline`], because it is booked for `started_ps` rather
    /// than for now. That is exact: the drive is its only customer, and posted writes arrive in the
    /// order in which they were sent.
    pub fn copy(&mut self, now: Now, started_ps: u64, bytes: u64, memory_ps: u64) -> u64 {
        debug_assert!(started_ps >= now.ps());
        let duration_ps = self.spec.start_ps + transfer_ps(bytes, self.spec.bytes_per_s);
        let end_ps = (self.free_at_ps.max(started_ps) + duration_ps).max(memory_ps);
        self.free_at_ps = end_ps;
        self.busy_ps += duration_ps;
        self.copies += 1;
        self.bytes += bytes;
        self.first_look_after(started_ps, end_ps) + self.answer_ps()
    }

    /// The drive has one poll loop, which runs while a copy is under way: the first status read
    /// follows the register writes, each further one the answer of the one before. Returns the first
    /// look at the register that sees everything up to `end_ps` done.
    fn first_look_after(&mut self, started_ps: u64, end_ps: u64) -> u64 {
        let running = started_ps < self.looks_at_ps + self.answer_ps() + self.one_way_ps;
        if !running || self.polls == 0 {
            self.looks_at_ps = started_ps;
            self.polls += 1;
        }
        let missing_ps = end_ps.saturating_sub(self.looks_at_ps);
        let looks = missing_ps.div_ceil(self.period_ps());
        self.polls += looks;
        self.looks_at_ps += looks * self.period_ps();
        self.looks_at_ps
    }

    /// From a look at the register to its value in the drive.
    fn answer_ps(&self) -> u64 {
        self.spec.register_ps + self.one_way_ps
    }

    /// From one look at the register to the next; never 0.
    fn period_ps(&self) -> u64 {
        (self.answer_ps() + self.spec.poll_ps + self.one_way_ps).max(1)
    }

    /// The host is gone: nothing is being copied.
    pub fn drop_all(&mut self) {
        self.free_at_ps = 0;
        self.looks_at_ps = 0;
    }

    /// Time the engine was at work.
    #[must_use]
    pub fn busy_ps(&self) -> u64 {
        self.busy_ps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::rng::Rng;
    use crate::time::NS;

    fn spec(poll_ps: u64) -> HostDmaSpec {
        HostDmaSpec {
            bytes_per_s: 4_000_000_000,
            start_ps: 0,
            register_ps: 500 * NS,
            poll_ps,
        }
    }

    fn now() -> Now {
        Engine::default().now()
    }

    #[test]
    fn a_copy_is_seen_by_the_first_status_read_that_looks_after_its_end() {
        // 4000 bytes take 1 us; looks at 0 and every 900 ns; the answer takes 700 ns.
        let mut dma = HostDma::new(&spec(0), 200 * NS);
        assert_eq!(dma.copy(now(), 0, 4000, 0), (1800 + 700) * NS);
        assert_eq!(dma.polls, 3);
    }

    #[test]
    fn a_copy_that_ends_when_the_register_is_read_is_seen_at_once() {
        let mut dma = HostDma::new(&spec(100 * NS), 200 * NS);
        assert_eq!(dma.copy(now(), 0, 4000, 0), (1000 + 700) * NS);
        assert_eq!(dma.polls, 2);
    }

    #[test]
    fn copies_queue_and_share_one_poll_loop() {
        let mut dma = HostDma::new(&spec(0), 200 * NS);
        dma.copy(now(), 0, 4000, 0);
        assert_eq!(dma.copy(now(), 10, 4000, 0), (2700 + 700) * NS);
        assert_eq!(dma.polls, 4, "looks at 0, 900, 1800 and 2700 ns");
        assert_eq!(dma.busy_ps(), 2000 * NS);
    }

    /// Beside the closed form a loop that polls.
    #[test]
    fn the_poll_loop_agrees_with_one_that_asks_again_and_again() {
        let mut rng = Rng::new(5);
        for _ in 0..200 {
            let spec = spec(u64::from(rng.below(2_000_000)));
            let mut dma = HostDma::new(&spec, 150 * NS);
            let (mut started_ps, mut free_ps, mut polls) = (0, 0, 0);
            let mut next_issue_ps: Option<u64> = None;
            let mut idle_from_ps = 0;
            for _ in 0..50 {
                started_ps += u64::from(rng.below(3_000_000));
                let bytes = 1 + u64::from(rng.below(8000));
                free_ps = started_ps.max(free_ps) + transfer_ps(bytes, spec.bytes_per_s);
                // Register writes leave one flight before they arrive.
                let sent_ps = started_ps.saturating_sub(150 * NS);
                let mut look_ps = match next_issue_ps {
                    Some(look_ps) if sent_ps < idle_from_ps => look_ps,
                    _ => {
                        polls += 1;
                        started_ps
                    }
                };
                while look_ps < free_ps {
                    look_ps += 2 * 150 * NS + spec.register_ps + spec.poll_ps;
                    polls += 1;
                }
                next_issue_ps = Some(look_ps);
                idle_from_ps = look_ps + 150 * NS + spec.register_ps;
                let seen_ps = dma.copy(now(), started_ps, bytes, 0);
                assert_eq!(seen_ps, idle_from_ps);
                assert_eq!(dma.polls, polls);
            }
        }
    }
}
