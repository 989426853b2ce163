//! Translation pages on their way to host memory. Each has room in the drive until it has arrived, and there is room for few: without
//! a bound, flash brings them faster than a slow link takes them, and all that hosts read waits behind them.

use crate::engine::{Engine, EventKind, Now};
use crate::observe::Tracer;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Those that are sent for one reason: pages that somebody waits for do not wait behind those that complete units.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub(super) struct Outgoing {
    /// When each page, or what a read has brought, arrives, in order.
    arrival_ps: VecDeque<u64>,
    /// When an event tells that there is room.
    alarm_ps: Option<u64>,
}

impl Outgoing {
    /// So many more are sent, the last of which arrives then.
    pub fn add(&mut self, now: Now, pages: u32, arrival_ps: u64) {
        // Where hits alone exchange units, nobody asks for room.
        self.forget_arrived(now);
        let pages = std::iter::repeat_n(arrival_ps, pages as usize);
        self.arrival_ps.extend(pages);
    }

    /// Whether fewer than `most` are on their way. If not, [`EventKind::MapPagesSent`] comes when they are.
    #[inline]
    pub fn has_room(&mut self, engine: &mut Engine<impl Tracer>, most: u32) -> bool {
        self.arrival_ps.is_empty() || self.has_room_beside(engine, most)
    }

    fn has_room_beside(&mut self, engine: &mut Engine<impl Tracer>, most: u32) -> bool {
        self.forget_arrived(engine.now());
        let Some(over) = self.arrival_ps.len().checked_sub(most.max(1) as usize) else {
            return true;
        };
        if self.alarm_ps.is_none() {
            let at_ps = self.arrival_ps[over];
            self.alarm_ps = Some(at_ps);
            engine.schedule(at_ps, EventKind::MapPagesSent, 0);
        }
        false
    }

    fn forget_arrived(&mut self, now: Now) {
        let has_arrived = |arrival_ps: &u64| *arrival_ps <= now.ps();
        while self.arrival_ps.front().is_some_and(has_arrived) {
            self.arrival_ps.pop_front();
        }
    }

    /// An event has come. Returns whether it was of these, and there is room.
    pub fn on_sent(&mut self, now: Now) -> bool {
        let is_due = self.alarm_ps.is_some_and(|at_ps| at_ps <= now.ps());
        if is_due {
            self.alarm_ps = None;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Untraced;
    use crate::rng::Rng;

    /// Beside a list of when each page arrives: there is room exactly while fewer are on their way, and who has been told that there is none
    /// is told as soon as there is.
    #[test]
    fn whoever_finds_no_room_is_told_once_there_is() {
        const MOST: u32 = 4;
        let mut rng = Rng::new(11);
        let mut engine = Engine::new(Untraced);
        let (mut outgoing, mut naive) = (Outgoing::default(), Vec::new());
        let (mut free_ps, mut refused) = (0, 0);
        for step in 1..20_000 {
            let until_ps = step * 10;
            while let Some((now, kind, _)) = engine.pop(until_ps) {
                assert_eq!(kind, EventKind::MapPagesSent);
                assert!(outgoing.on_sent(now));
                let left = naive.iter().filter(|arrival_ps| **arrival_ps > now.ps());
                assert!(left.count() < MOST as usize);
            }
            engine.idle_until(until_ps);
            naive.retain(|arrival_ps| *arrival_ps > until_ps);
            let has_room = outgoing.has_room(&mut engine, MOST);
            assert_eq!(has_room, naive.len() < MOST as usize);
            refused += u32::from(!has_room);
            assert_eq!(engine.next_time_ps().is_some(), !has_room);
            if has_room && rng.below(2) == 0 {
                let pages = 1 + rng.below(3);
                free_ps = free_ps.max(until_ps) + 1 + u64::from(rng.below(60));
                outgoing.add(engine.now(), pages, free_ps);
                naive.extend(std::iter::repeat_n(free_ps, pages as usize));
            }
        }
        assert!(refused > 1_000);
    }

    /// Units that are exchanged with host memory at each hit are sent without anybody asking for room: what had arrived was kept for good.
    #[test]
    fn what_has_arrived_is_forgotten_though_nobody_asks_for_room() {
        let mut engine = Engine::new(Untraced);
        let mut outgoing = Outgoing::default();
        for step in 1..1_000 {
            engine.idle_until(step * 10);
            outgoing.add(engine.now(), 1, step * 10 + 25);
            assert!(outgoing.arrival_ps.len() <= 3);
        }
    }
}
