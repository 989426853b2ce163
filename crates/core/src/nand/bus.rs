//! The bus of a channel, on which its dies take turns.
//!
//! Dies serve what a host waits for first, and a bus that took all transfers as they come would undo that: of eight dies that
//! fold, each has a page on its way, and a ninth page, which a host waits for, would have a ninth of the bus. Writes of 20 MB/s
//! to a channel with eight dies waited for 66 ms because of that, and to one with two dies for 2.

use crate::engine::{Now, Timeline};
use serde::{Deserialize, Serialize};

/// Dies of a channel that are loaded with programs of moved data at once. A page register is taken for as long as its loading takes: a die that is
/// loaded beside fifteen others keeps the host from its die for fifteen times as long, and is ready no sooner.
pub const LOADS_OF_MOVES: u32 = 2;

/// When a bus is free.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default)]
pub struct Bus {
    all: Timeline,
    /// When the last that went ahead is through.
    ahead_ends_ps: u64,
    /// Dies that are being loaded with programs of moved data.
    pub loads_of_moves: u32,
}

impl Bus {
    /// Takes the bus for data that is moved, once all that came before it is through; returns the end.
    #[inline]
    pub fn book(&mut self, now: Now, duration_ps: u64) -> u64 {
        self.all.book(now, duration_ps)
    }

    /// Takes it for data that somebody waits for: in turn with what is moved, of which one transfer, no longer than `longest_ps`,
    /// comes before it. Those that wait are not put off by it, those that come later are: the bus gives more for as long, by what a transfer
    /// of each die amounts to at most. Without any that are moved, first come is first served.
    #[inline]
    pub fn book_ahead(&mut self, now: Now, duration_ps: u64, longest_ps: u64) -> u64 {
        let turn_ps = self.ahead_ends_ps.max(now.ps()) + longest_ps;
        let begins_ps = self.all.free_at_ps().clamp(now.ps(), turn_ps);
        self.all.book(now, duration_ps);
        self.ahead_ends_ps = begins_ps + duration_ps;
        self.ahead_ends_ps
    }

    /// When the last that went ahead is through.
    #[inline]
    #[must_use]
    pub fn ahead_ends_ps(&self) -> u64 {
        self.ahead_ends_ps
    }

    /// Nothing that was booked takes place any more.
    pub fn drop_all(&mut self) {
        self.all.drop_all();
        self.ahead_ends_ps = 0;
        self.loads_of_moves = 0;
    }

    /// Time booked so far.
    #[must_use]
    pub fn busy_ps(&self) -> u64 {
        self.all.busy_ps()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use proptest::prelude::*;

    const LONGEST_PS: u64 = 100;

    /// Transfers of lengths up to the longest, at times; whether somebody waits for each.
    fn transfers() -> impl Strategy<Value = Vec<(u64, u64, bool)>> {
        prop::collection::vec((0_u64..150, 1..=LONGEST_PS, any::<bool>()), 1..200)
    }

    fn at(now_ps: u64) -> Now {
        let mut engine = Engine::default();
        engine.idle_until(now_ps);
        engine.now()
    }

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        /// The naive models: a queue of all for what is moved; for the rest a queue in which each has one of the longest before it.
        #[test]
        fn what_is_waited_for_has_one_transfer_before_it_and_what_is_moved_has_all(transfers in transfers()) {
            let mut bus = Bus::default();
            let (mut now_ps, mut all_ps, mut ahead_ps) = (0_u64, 0_u64, 0_u64);
            for (gap, length, ahead) in transfers {
                now_ps += gap;
                let in_turn_ps = all_ps.max(now_ps) + length;
                let end_ps = if ahead {
                    let end_ps = bus.book_ahead(at(now_ps), length, LONGEST_PS);
                    prop_assert!(end_ps <= ahead_ps.max(now_ps) + LONGEST_PS + length);
                    prop_assert!(end_ps >= ahead_ps.max(now_ps) + length, "they do not overtake each other");
                    ahead_ps = end_ps;
                    end_ps
                } else {
                    let end_ps = bus.book(at(now_ps), length);
                    prop_assert_eq!(end_ps, in_turn_ps);
                    end_ps
                };
                prop_assert!(end_ps <= in_turn_ps);
                all_ps = in_turn_ps;
            }
        }

        /// As every drive does that moves nothing.
        #[test]
        fn without_moves_first_come_is_first_served(transfers in transfers()) {
            let (mut bus, mut timeline) = (Bus::default(), Timeline::default());
            let mut now_ps = 0;
            for (gap, length, _) in transfers {
                now_ps += gap;
                let now = at(now_ps);
                prop_assert_eq!(bus.book_ahead(now, length, LONGEST_PS), timeline.book(now, length));
            }
        }
    }
}
