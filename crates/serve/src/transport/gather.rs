//! Interrupts of a drive that answers at once.
//!
//! Each command of such a drive is complete before its host has submitted the next. A host with many of them under way
//! would be interrupted between any two and do little else, so its interrupts wait while it goes on submitting. A host
//! that takes each completion before it submits the next command never waits.

use std::time::{Duration, Instant};

/// Completions that a host has not taken and that make its interrupts wait.
const CROWD_MIN: u32 = 2;
/// And so many when it is interrupted, for those to come to wait, too: for fewer it does not pay.
const CROWD_STAYS: u32 = 4;
/// Commands are one after the other if no more time passes between them: an emulated guest takes 30 to 120 us.
const GAP_MAX: Duration = Duration::from_micros(250);
/// So many gaps without a completion: the host has submitted what it wanted to.
const QUIET_GAPS: u32 = 3;
/// So many gaps after the first completion a host hears of it, even if it goes on.
const GAPS_MAX: u32 = 16;
/// One part of so many of the mean gap is the last one.
const GAP_SHARE: u32 = 8;

/// What interrupts wait for.
#[derive(Debug)]
pub(super) struct Gather {
    /// Mean time between completions that follow each other.
    gap: Duration,
    /// Vectors whose hosts had several completions to take when they were interrupted last.
    crowded: u64,
    /// Completions so far, and when there was the last.
    completions: u64,
    last: Instant,
    /// Since when interrupts wait.
    since: Option<Instant>,
}

impl Gather {
    pub fn new(now: Instant) -> Self {
        Gather {
            gap: GAP_MAX / GAP_SHARE,
            crowded: 0,
            completions: 0,
            last: now,
            since: None,
        }
    }

    /// Whether some interrupt waits.
    pub fn is_waiting(&self) -> bool {
        self.since.is_some()
    }

    /// Which of the interrupts that are `due` wait for more. `crowded` says whose hosts have so many completions to take
    /// at least, `completions` is how many there were in all.
    pub fn waiting(
        &mut self,
        due: u64,
        crowded: impl Fn(u32) -> u64,
        completions: u64,
        now: impl FnOnce() -> Instant,
    ) -> u64 {
        self.crowded |= crowded(CROWD_MIN);
        let waiting = due & self.crowded;
        if waiting == 0 {
            self.since = None;
            return 0;
        }
        let now = now();
        let since = *self.since.get_or_insert(now);
        if completions != self.completions {
            let gap = now.saturating_duration_since(self.last);
            if gap <= GAP_MAX {
                self.gap = (self.gap * (GAP_SHARE - 1) + gap) / GAP_SHARE;
            }
            self.completions = completions;
            self.last = now;
        }
        let quiet = now.saturating_duration_since(self.last);
        let waited = now.saturating_duration_since(since);
        if quiet <= self.gap * QUIET_GAPS && waited <= self.gap * GAPS_MAX {
            return waiting;
        }
        self.since = None;
        self.crowded = (self.crowded & !waiting) | (waiting & crowded(CROWD_STAYS));
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a host has seen.
    #[derive(Debug, Default)]
    struct Seen {
        interrupts: u64,
        /// The longest time between a completion and its interrupt.
        longest_us: u64,
    }

    /// A host submits a command each `gap_us` while fewer than `depth` are under way, which the drive completes at once,
    /// and takes all completions `way_us` after an interrupt, which takes it as long again.
    fn run(depth: u64, gap_us: u64, way_us: u64, commands: u64) -> Seen {
        let start = Instant::now();
        let mut gather = Gather::new(start);
        let mut seen = Seen::default();
        let (mut submitted, mut taken, mut due_since_us) = (0, 0, None);
        let (mut free_us, mut takes_us) = (0, None);
        for now_us in 0.. {
            if takes_us == Some(now_us) {
                taken = submitted;
                takes_us = None;
                free_us = now_us + way_us;
            }
            if submitted < commands && submitted - taken < depth && now_us >= free_us {
                submitted += 1;
                free_us = now_us + gap_us;
                due_since_us.get_or_insert(now_us);
            }
            // Nobody is interrupted for what was taken.
            if submitted == taken {
                due_since_us = None;
            }
            let due = u64::from(due_since_us.is_some());
            let crowded = |least| u64::from(submitted - taken >= u64::from(least));
            let now = || start + Duration::from_micros(now_us);
            if due & !gather.waiting(due, crowded, submitted, now) != 0 {
                seen.interrupts += 1;
                let since_us = due_since_us.take().expect("it was due");
                seen.longest_us = seen.longest_us.max(now_us - since_us);
                takes_us.get_or_insert(now_us + way_us);
            }
            if taken == commands {
                break;
            }
        }
        assert!(!gather.is_waiting());
        seen
    }

    #[test]
    fn a_host_with_one_command_at_a_time_never_waits() {
        for (gap_us, way_us) in [(1, 1), (3, 10), (30, 60), (1000, 10)] {
            let seen = run(1, gap_us, way_us, 1000);
            assert_eq!((seen.interrupts, seen.longest_us), (1000, 0));
        }
    }

    /// A machine with hardware of its own for guests, and emulated ones.
    #[test]
    fn a_host_with_many_under_way_is_interrupted_for_several_at_once() {
        for (gap_us, way_us) in [(3, 10), (30, 40), (100, 130)] {
            let seen = run(32, gap_us, way_us, 3200);
            let at_most = 3200 / 8;
            assert!(seen.interrupts < at_most, "{gap_us} us: {seen:?}");
        }
    }

    #[test]
    fn a_host_is_interrupted_within_twenty_of_its_gaps() {
        for depth in [1, 2, 3, 7, 32, 1000] {
            for gap_us in [1, 3, 30, 100, 240, 300, 5000] {
                let seen = run(depth, gap_us, 20, 2000);
                // The gap is not known yet at first; then the interrupt itself is in it.
                let longest_us = 20 * (gap_us.min(250) + 40);
                assert!(
                    seen.longest_us <= longest_us,
                    "{depth}, {gap_us} us: {seen:?}"
                );
            }
        }
    }
}
