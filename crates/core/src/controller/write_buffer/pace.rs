//! Room given out at the pace at which it comes back.
//!
//! Flash gives room back a program operation at a time: with three bits a cell, 24 to 96 pages at once. A drive that
//! takes writes as long as there is room has nearly all of them wait for nothing and each 24th to 96th for a whole
//! operation. One that spreads the wait over all of them takes as many a second, and none waits long. Linux paces
//! those who dirty its page cache the same way (`balance_dirty_pages`: no delay up to a set point, more the nearer
//! the limit).
//!
//! A burst that the buffer can hold is not delayed: the pace is that of the writes before it, and counts only from
//! when they have run the buffer full, or have filled it anew.

use super::WriteBuffer;
use serde::{Deserialize, Serialize};

/// How many times as long as its room took to come back a write waits where all room is taken by data that waits for
/// flash: in between, writes come as fast as room does where that is five eighths, so that it runs neither full nor dry.
const FULL_TIMES: u128 = 4;

/// Eighths of the time that its room took to come back that a write waits at most, while the reserve is free.
const LONGEST_EIGHTHS: u128 = 10;

/// What a buffer holds, in slots.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// In use: on the way, waiting or being programmed.
    pub used: u32,
    /// Waiting in full program operations, for room: flash alone is what they wait for. Were others counted, a writer held back
    /// could be what they wait for, which would look as if flash were slow and hold it back ever longer. None while it is dies that have enough
    /// to program, as what they have been handed does not count either; nor in a buffer
    /// that is to fill before it is emptied (`role.write_buffer.high`): emptying it slows down by itself.
    pub waiting: u32,
    /// Free.
    pub free: u32,
}

impl Load {
    /// How much more waits than is free. What is being programmed does not count: a buffer that holds hardly more than
    /// all dies program at once is full when it works best.
    fn over(self) -> u32 {
        self.waiting.saturating_sub(self.free)
    }
}

/// How fast a buffer empties, and when it next gives room.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub struct Pace {
    /// Slots of the buffer.
    capacity: u32,
    /// Those of them that are to be free, three program operations of all dies: or it runs full whenever flash is busy otherwise for a while.
    reserve: u32,
    /// When it was last looked at, picoseconds, slots in use then, and whether more waited than was free.
    at_ps: u64,
    used: u32,
    was_over: bool,
    /// Slots that came back while more waited than was free, and for how long that was.
    freed: u64,
    over_ps: u64,
    /// When room was last taken.
    taken_ps: u64,
    /// No room before this time.
    next_ps: u64,
    /// All room was taken at once, since the last burst began: what comes now is more than the buffer can hold.
    ran_full: bool,
    /// An alarm is set for it.
    is_alarm_set: bool,
    /// What waits, waits for dies that have enough to program.
    waits_for_dies: bool,
}

impl Pace {
    /// That of a buffer of `capacity` slots, from which flash takes `at_once`.
    pub fn new(capacity: u32, at_once: u32) -> Self {
        Pace {
            capacity,
            reserve: 3 * at_once,
            ..Pace::default()
        }
    }

    /// The same, of which nothing is known yet.
    pub fn anew(&self) -> Self {
        Pace {
            capacity: self.capacity,
            reserve: self.reserve,
            ..Pace::default()
        }
    }

    /// Whether a write may take room now. Otherwise when, if no alarm is set for that yet.
    #[inline]
    pub fn admits(&mut self, now_ps: u64, load: Load) -> Result<(), Option<u64>> {
        self.look(now_ps, load);
        if now_ps >= self.next_ps || load.over() == 0 {
            return Ok(());
        }
        let had_alarm = std::mem::replace(&mut self.is_alarm_set, true);
        Err((!had_alarm).then_some(self.next_ps))
    }

    fn look(&mut self, now_ps: u64, load: Load) {
        if self.was_over {
            self.freed += u64::from(self.used.saturating_sub(load.used));
            self.over_ps += now_ps - self.at_ps;
        }
        // What counts is the last few times that the buffer was turned over.
        if self.freed > 4 * u64::from(self.capacity) {
            self.freed /= 2;
            self.over_ps /= 2;
        }
        self.remember(now_ps, load);
    }

    fn remember(&mut self, now_ps: u64, load: Load) {
        self.at_ps = now_ps;
        self.used = load.used;
        self.was_over = load.over() > 0;
    }

    /// A write took `slots`; the buffer now holds `load`.
    #[inline]
    pub fn took(&mut self, now_ps: u64, slots: u32, load: Load) {
        self.remember(now_ps, load);
        self.next_ps = now_ps;
        let pause_ps = now_ps - std::mem::replace(&mut self.taken_ps, now_ps);
        if self.freed == 0 {
            return;
        }
        let back_ps_times_freed = |slots: u32| u128::from(self.over_ps) * u128::from(slots);
        // In that time the whole buffer could have emptied: what comes now is another burst.
        // Multiplied, because wide numbers are slow to divide.
        let freed = u128::from(self.freed);
        if u128::from(pause_ps) * freed > back_ps_times_freed(self.capacity) {
            self.freed = 0;
            self.over_ps = 0;
            self.ran_full = false;
            return;
        }
        self.ran_full |= load.free == 0;
        // A few program operations of all dies tell how fast it is.
        let enough = match self.ran_full {
            true => self.capacity.min(4 * self.reserve),
            false => self.capacity,
        };
        let over = load.over();
        if over == 0 || self.freed < u64::from(enough) {
            return;
        }
        let of = u128::from(load.waiting + load.free);
        let back_ps = back_ps_times_freed(slots) / freed;
        let by_share_ps = back_ps * FULL_TIMES * u128::from(over) / of;
        let by_reserve_ps = match self.reserve.saturating_sub(load.free) {
            0 => 0,
            lacking => back_ps * FULL_TIMES * u128::from(lacking) / u128::from(self.reserve),
        };
        let longest_ps = by_reserve_ps.max(back_ps * LONGEST_EIGHTHS / 8);
        self.next_ps = now_ps + by_share_ps.min(longest_ps) as u64;
    }

    /// The time that a write waited for has come.
    pub fn alarm(&mut self) {
        self.is_alarm_set = false;
    }
}

impl WriteBuffer {
    /// Whether a write may take room now. Otherwise when, if no alarm is set for that yet.
    #[inline]
    pub fn admits(&mut self, now_ps: u64) -> Result<(), Option<u64>> {
        let load = self.load();
        match &mut self.pace {
            Some(pace) => pace.admits(now_ps, load),
            None => Ok(()),
        }
    }

    /// A write took so many slots.
    #[inline]
    pub fn took(&mut self, now_ps: u64, slots: u32) {
        let load = self.load();
        if let Some(pace) = &mut self.pace {
            pace.took(now_ps, slots, load);
        }
    }

    /// What could be programmed now waits for dies that have enough to program, or not.
    #[inline]
    pub fn wait_for_dies(&mut self, waits: bool) {
        if let Some(pace) = &mut self.pace {
            pace.waits_for_dies = waits;
        }
    }

    fn waits_for_dies(&self) -> bool {
        self.pace.as_ref().is_some_and(|pace| pace.waits_for_dies)
    }

    fn load(&self) -> Load {
        // Mostly one of the two has not even one: that needs no division.
        let full = |slots: u32| match slots < self.unit_slots {
            true => 0,
            false => slots - slots % self.unit_slots.max(1),
        };
        Load {
            used: self.used,
            waiting: match self.high_slots == 0 && !self.waits_for_dies() {
                true => self.dirty_count.map(full).iter().sum(),
                false => 0,
            },
            free: self.capacity.saturating_sub(self.used),
        }
    }

    /// The time that a write waited for has come.
    pub fn alarm(&mut self) {
        if let Some(pace) = &mut self.pace {
            pace.alarm();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CAPACITY: u32 = 64;
    const SLOT_PS: u64 = 1_000;

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        /// Writes of all sizes at all times to a buffer from which flash takes 16 slots at once.
        #[test]
        fn no_write_is_held_back_beside_room_or_for_longer_than_its_room_takes_to_come_back(
            writes in prop::collection::vec((1_u32..=16, 0_u64..100), 1..400),
        ) {
            let mut pace = Pace::new(CAPACITY, 16);
            let (mut now_ps, mut used, mut flash_ps) = (0, 0_u32, 16 * SLOT_PS);
            for (slots, gap) in writes {
                now_ps += gap * SLOT_PS / 50;
                loop {
                    while flash_ps <= now_ps {
                        used -= if used >= 16 { 16 } else { 0 };
                        flash_ps += 16 * SLOT_PS;
                    }
                    let load = Load { used, waiting: used, free: CAPACITY - used };
                    let admitted = pace.admits(now_ps, load);
                    if load.waiting <= load.free {
                        prop_assert!(admitted.is_ok());
                    }
                    if admitted.is_ok() && slots <= load.free {
                        break;
                    }
                    now_ps += SLOT_PS;
                }
                used += slots;
                pace.took(now_ps, slots, Load { used, waiting: used, free: CAPACITY - used });
                // Twice for what comes back in lumps.
                let longest_ps = 2 * FULL_TIMES as u64 * u64::from(slots) * SLOT_PS;
                prop_assert!(pace.next_ps <= now_ps + longest_ps, "{} ps", pace.next_ps - now_ps);
            }
        }
    }
}
