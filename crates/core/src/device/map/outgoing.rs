//! Translation pages on their way to host memory. Each stands in the drive until the link has taken it, so that there is room for few: without
//! a bound, flash brings them faster than a slow link takes them, and all that hosts read waits behind them.

use crate::engine::{Engine, EventKind};
use crate::observe::Tracer;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub(super) struct Outgoing {
    /// When each has left, in order.
    left_ps: VecDeque<u64>,
    /// An event tells when there is room.
    is_awaited: bool,
}

impl Outgoing {
    /// The link takes so many pages, the last of them until `left_ps`.
    pub fn add(&mut self, pages: u32, left_ps: u64) {
        let pages = std::iter::repeat_n(left_ps, pages as usize);
        self.left_ps.extend(pages);
    }

    /// Whether fewer than `most` are on their way. If not, [`EventKind::MapPagesSent`] comes when they are.
    #[inline]
    pub fn has_room(&mut self, engine: &mut Engine<impl Tracer>, most: u32) -> bool {
        self.left_ps.is_empty() || self.has_room_beside(engine, most)
    }

    fn has_room_beside(&mut self, engine: &mut Engine<impl Tracer>, most: u32) -> bool {
        let now_ps = engine.now().ps();
        while self
            .left_ps
            .front()
            .is_some_and(|left_ps| *left_ps <= now_ps)
        {
            self.left_ps.pop_front();
        }
        let Some(over) = self.left_ps.len().checked_sub(most.max(1) as usize) else {
            return true;
        };
        if !std::mem::replace(&mut self.is_awaited, true) {
            engine.schedule(self.left_ps[over], EventKind::MapPagesSent, 0);
        }
        false
    }

    /// There is room for those who have asked.
    pub fn on_sent(&mut self) {
        self.is_awaited = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Untraced;
    use crate::rng::Rng;

    /// Beside a list of when each page leaves: there is room exactly while fewer are on their way, and who has been told that there is none
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
                outgoing.on_sent();
                let left = naive.iter().filter(|left_ps| **left_ps > now.ps());
                assert!(left.count() < MOST as usize);
            }
            engine.idle_until(until_ps);
            naive.retain(|left_ps| *left_ps > until_ps);
            let has_room = outgoing.has_room(&mut engine, MOST);
            assert_eq!(has_room, naive.len() < MOST as usize);
            refused += u32::from(!has_room);
            assert_eq!(engine.next_time_ps().is_some(), !has_room);
            if has_room && rng.below(2) == 0 {
                let pages = 1 + rng.below(3);
                free_ps = free_ps.max(until_ps) + 1 + u64::from(rng.below(60));
                outgoing.add(pages, free_ps);
                naive.extend(std::iter::repeat_n(free_ps, pages as usize));
            }
        }
        assert!(refused > 1_000);
    }
}
