//! What holds a job back besides its queue depth: rates and think time.
//!
//! As in fio, a job that waits first lets everything in flight complete
//! (`io_submit_mode=offload` does not). Unlike fio, that wait is not added to the pause.

use super::distribution::unit;
use super::offsets::{Direction, READ, WRITE};
use super::power;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// Picoseconds in a second.
const S: u128 = 1_000_000_000_000;

/// A target rate in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rate {
    /// As fast as the queue depth allows.
    Unlimited,
    /// Evenly spaced: request n is due when the bytes before it have taken their time.
    BytesPerSecond(u64),
    /// Exponential gaps with this mean, in picoseconds (fio's `rate_process=poisson`).
    Poisson(u64),
}

/// Why a job is not as fast as it could be; validated by the caller.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    pub(super) rates: [Rate; 3],
    /// Let everything complete before waiting (fio's `io_submit_mode=inline`).
    pub(super) quiesce: bool,
    pub(super) think_ps: u64,
    /// Think after this many requests; `None` where only `think_every_ps` counts.
    pub(super) think_blocks: Option<u64>,
    /// Count requests when issued rather than when completed.
    pub(super) think_by_issue: bool,
    /// Think after this much time without thinking (fio's `thinktime_iotime`), 0 for never.
    pub(super) think_every_ps: u64,
    /// What a pause made late is not caught up with.
    pub(super) rate_ignores_think: bool,
    pub(super) seed: u64,
}

/// Whether the job may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// In this direction.
    Go(Direction),
    /// Not before this instant.
    At(u64),
    /// Not before everything has completed.
    Quiesce,
}

/// State of a job's rates and think time.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    pace: Pace,
    rng: Xoshiro256PlusPlus,
    start_ps: u64,
    issued_bytes: [u64; 3],
    /// When the next request of a direction is due.
    due_ps: [u64; 3],
    /// How far thinking has moved the schedule.
    shift_ps: [u64; 3],
    /// Chosen, but not due.
    waiting: Option<Direction>,
    issued: u64,
    completed: u64,
    thought_at_blocks: u64,
    thought_at_ps: u64,
    thinking: Thinking,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thinking {
    No,
    /// A request was issued since the last look.
    Ask,
    Quiesce,
    Until(u64),
}

impl Pacer {
    pub(super) fn new(pace: Pace) -> Self {
        Self {
            rng: Xoshiro256PlusPlus::seed_from_u64(pace.seed),
            pace,
            start_ps: 0,
            issued_bytes: [0; 3],
            due_ps: [0; 3],
            shift_ps: [0; 3],
            waiting: None,
            issued: 0,
            completed: 0,
            thought_at_blocks: 0,
            thought_at_ps: 0,
            thinking: Thinking::No,
        }
    }

    pub(super) fn start(&mut self, now_ps: u64) {
        self.start_ps = now_ps;
        self.due_ps = [now_ps; 3];
        // fio counts from before a pause, and from the start as if one had been there.
        self.thought_at_ps = now_ps.saturating_add(self.pace.think_ps);
    }

    /// Bytes that count against the rate of the requests to come: what is read back.
    pub(super) fn read_back(&mut self, bytes: u64) {
        let issued = &mut self.issued_bytes[READ];
        *issued = issued.saturating_add(bytes);
    }

    pub(super) fn completed(&mut self) {
        self.completed += 1;
    }

    /// Whether thinking holds the job back; asked before anything else is decided.
    pub(super) fn think(&mut self, now_ps: u64, in_flight: u32) -> Option<Gate> {
        if self.thinking == Thinking::Ask {
            self.thinking = if self.is_time_to_think(now_ps) {
                Thinking::Quiesce
            } else {
                Thinking::No
            };
        }
        if self.thinking == Thinking::Quiesce {
            if in_flight > 0 {
                return Some(Gate::Quiesce);
            }
            self.thinking = Thinking::Until(now_ps.saturating_add(self.pace.think_ps));
        }
        if let Thinking::Until(until_ps) = self.thinking {
            if now_ps < until_ps {
                return Some(Gate::At(until_ps));
            }
            self.thinking = Thinking::No;
            self.thought_at_ps = now_ps;
            if self.pace.rate_ignores_think {
                // What is due by now is due now, and what follows at the rate from here on.
                for (due_ps, shift_ps) in self.due_ps.iter_mut().zip(&mut self.shift_ps) {
                    let late_ps = now_ps.saturating_sub(*due_ps);
                    *due_ps += late_ps;
                    *shift_ps = shift_ps.saturating_add(late_ps);
                }
            }
        }
        None
    }

    fn is_time_to_think(&mut self, now_ps: u64) -> bool {
        let blocks = if self.pace.think_by_issue {
            self.issued
        } else {
            self.completed
        };
        let every_ps = self.pace.think_every_ps;
        let by_time = every_ps > 0 && now_ps.saturating_sub(self.thought_at_ps) >= every_ps;
        let by_blocks =
            (self.pace.think_blocks).is_some_and(|n| blocks >= self.thought_at_blocks + n);
        if by_time || by_blocks {
            self.thought_at_blocks = blocks;
        }
        by_time || by_blocks
    }

    /// The direction chosen earlier that is still waiting for its turn.
    pub(super) fn waiting(&self) -> Option<Direction> {
        self.waiting
    }

    /// Whether a request in `chosen` direction is due. `mixed`: the other of read and write would
    /// do as well, as in fio.
    pub(super) fn gate(
        &mut self,
        chosen: Direction,
        mixed: bool,
        now_ps: u64,
        in_flight: u32,
    ) -> Gate {
        let mut direction = chosen;
        if self.due_ps[direction] > now_ps && self.waiting.is_none() && mixed {
            let other = if direction == READ { WRITE } else { READ };
            if self.due_ps[other] < self.due_ps[direction] {
                direction = other;
            }
        }
        if self.due_ps[direction] <= now_ps {
            self.waiting = None;
            return Gate::Go(direction);
        }
        self.waiting = Some(direction);
        if self.pace.quiesce && in_flight > 0 {
            Gate::Quiesce
        } else {
            Gate::At(self.due_ps[direction])
        }
    }

    /// A request was issued: when is the next one due?
    pub(super) fn issued(&mut self, direction: Direction, bytes: u64) {
        self.issued += 1;
        if self.pace.think_ps > 0 {
            self.thinking = Thinking::Ask;
        }
        let due_ps = &mut self.due_ps[direction];
        match self.pace.rates[direction] {
            Rate::Unlimited => {}
            Rate::BytesPerSecond(rate) => {
                let issued = &mut self.issued_bytes[direction];
                *issued = issued.saturating_add(bytes);
                let elapsed = u128::from(*issued) * S / u128::from(rate);
                let elapsed = u64::try_from(elapsed).unwrap_or(u64::MAX);
                let begin_ps = self.start_ps.saturating_add(self.shift_ps[direction]);
                *due_ps = begin_ps.saturating_add(elapsed);
            }
            Rate::Poisson(mean_ps) => {
                let gap = mean_ps as f64 * -power::ln(1.0 - unit(&mut self.rng));
                *due_ps = due_ps.saturating_add(gap as u64);
            }
        }
    }
}
