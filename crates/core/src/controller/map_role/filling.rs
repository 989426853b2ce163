//! Units that are being completed in the background, and which of them is read on next.

use crate::ids::{FillingId, Id, Maybe};
use crate::observe::TIERS_MAX;
use crate::slab::{Linked, Queue, Slab};
use crate::table::Table;
use serde::{Deserialize, Serialize};
use std::ops::Range;

#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct Unit {
    /// Unit and memory.
    key: u32,
    /// Its memory was taken away: it is completed no more, and stays until its reads have ended.
    is_given_up: bool,
    next_page: u32,
    end_page: u32,
    /// Reads under way.
    reads: u32,
    /// Units started before.
    order: u64,
    next: Maybe<FillingId>,
}

impl Linked<FillingId> for Unit {
    fn next(&self) -> Maybe<FillingId> {
        self.next
    }

    fn set_next(&mut self, next: Maybe<FillingId>) {
        self.next = next;
    }
}

/// All units being completed.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Filling {
    units: Slab<Unit, FillingId>,
    /// Those not given up, by key.
    place_of: Table,
    /// Units of each memory with pages that no read has been issued for, first come first.
    unread: [Queue<FillingId>; TIERS_MAX],
    /// Reads under way, by memory.
    reads: [u32; TIERS_MAX],
    /// The most of them in one memory.
    reads_max: u32,
    /// Bit a memory: none of its units is read on for now.
    held: u8,
    started: u64,
}

impl Filling {
    pub(super) fn new(reads_max: u32) -> Self {
        Filling {
            units: Slab::default(),
            place_of: Table::with_capacity(64),
            unread: [Queue::default(); TIERS_MAX],
            reads: [0; TIERS_MAX],
            reads_max,
            held: 0,
            started: 0,
        }
    }

    fn key(place: usize, unit: u32) -> u32 {
        const { assert!(TIERS_MAX == 4, "a memory takes two bits") }
        unit << 2 | place as u32
    }

    /// The memory of a unit.
    pub(super) fn memory_of(&self, unit: FillingId) -> usize {
        Self::place(self.units[unit].key)
    }

    /// The memory of a key.
    fn place(key: u32) -> usize {
        (key & 3) as usize
    }

    /// A unit of a memory is to be completed: these pages.
    pub(super) fn start(&mut self, place: usize, unit: u32, pages: Range<u32>) {
        let key = Self::key(place, unit);
        debug_assert!(self.place_of.get(key).is_none(), "completed once at a time");
        let index = self.units.insert(Unit {
            key,
            is_given_up: false,
            next_page: pages.start,
            end_page: pages.end,
            reads: 0,
            order: self.started,
            next: Maybe::NONE,
        });
        self.started += 1;
        self.place_of.insert(key, index.number());
        self.unread[place].push_back(&mut self.units, index);
    }

    /// The unit to read on for: first come, first served, within what each memory may have under way,
    /// so that neither the large units of one nor the many misses of another hold up the rest.
    #[inline]
    fn turn(&self) -> Option<FillingId> {
        // Asked at every step of a drive, of which most complete no units.
        if self.units.is_empty() {
            return None;
        }
        let is_held = |place: usize| self.held >> place & 1 != 0;
        let may_read =
            (0..TIERS_MAX).filter(|&place| self.reads[place] < self.reads_max && !is_held(place));
        let fronts = may_read.filter_map(|place| self.unread[place].front());
        fronts.min_by_key(|&index| self.units[index].order)
    }

    /// The memory of the unit whose turn it is.
    pub(super) fn next_memory(&self) -> Option<usize> {
        self.turn().map(|unit| self.memory_of(unit))
    }

    /// Units of a memory have no turn for now, or have again.
    pub(super) fn hold(&mut self, place: usize, held: bool) {
        self.held = self.held & !(1 << place) | u8::from(held) << place;
    }

    /// Pages of the unit whose turn it is that no read has been issued for.
    #[inline]
    pub(super) fn next(&self) -> Option<Range<u32>> {
        let unit = &self.units[self.turn()?];
        Some(unit.next_page..unit.end_page)
    }

    /// The next `pages` pages of the unit whose turn it is are being read. Returns the unit, for
    /// [`Filling::done`].
    pub(super) fn issued(&mut self, pages: u32) -> FillingId {
        let index = self.advance(pages);
        let unit = &mut self.units[index];
        unit.reads += 1;
        self.reads[Self::place(unit.key)] += 1;
        index
    }

    /// The next page of the unit whose turn it is needs no read. Returns memory and unit if it is
    /// complete with that.
    pub(super) fn skipped(&mut self) -> Option<(usize, u32)> {
        let index = self.advance(1);
        self.take_complete(index)
    }

    fn advance(&mut self, pages: u32) -> FillingId {
        let index = self.turn().expect("a unit was announced");
        let unit = &mut self.units[index];
        unit.next_page += pages;
        if unit.next_page == unit.end_page {
            let place = Self::place(unit.key);
            self.unread[place].pop_front(&mut self.units);
        }
        index
    }

    /// A read has ended. Returns memory and unit if it is complete with that.
    pub(super) fn done(&mut self, index: FillingId) -> Option<(usize, u32)> {
        let unit = &mut self.units[index];
        unit.reads -= 1;
        self.reads[Self::place(unit.key)] -= 1;
        if !unit.is_given_up {
            return self.take_complete(index);
        }
        if unit.reads == 0 {
            self.units.remove(index);
        }
        None
    }

    fn take_complete(&mut self, index: FillingId) -> Option<(usize, u32)> {
        let unit = self.units[index];
        if unit.next_page < unit.end_page || unit.reads > 0 {
            return None;
        }
        self.place_of.remove(unit.key);
        self.units.remove(index);
        Some((Self::place(unit.key), unit.key >> 2))
    }

    /// A memory is taken away: none of its units is completed. Reads under way still end.
    pub(super) fn give_up(&mut self, place: usize) {
        self.unread[place] = Queue::default();
        for (key, index) in self.place_of.iter().collect::<Vec<_>>() {
            if Self::place(key) != place {
                continue;
            }
            let index = FillingId(index);
            self.place_of.remove(key);
            match self.units[index].reads {
                0 => self.units.remove(index),
                _ => self.units[index].is_given_up = true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::collections::VecDeque;

    /// The same by search through a list.
    struct Naive {
        /// Key, pages not asked for, and the reads under way of each: numbered, as a unit may be given up and start anew.
        units: VecDeque<(u32, Range<u32>, Vec<u32>)>,
        reads: [u32; TIERS_MAX],
        reads_max: u32,
        held: [bool; TIERS_MAX],
        issued: u32,
    }

    impl Naive {
        fn turn(&self) -> Option<usize> {
            self.units.iter().position(|(key, pages, _)| {
                let place = Filling::place(*key);
                !pages.is_empty() && self.reads[place] < self.reads_max && !self.held[place]
            })
        }

        /// Takes out what is complete.
        fn complete(&mut self) -> Vec<u32> {
            let complete =
                |unit: &(u32, Range<u32>, Vec<u32>)| unit.1.is_empty() && unit.2.is_empty();
            let found = self.units.iter().filter(|unit| complete(unit));
            let keys = found.map(|unit| unit.0).collect();
            self.units.retain(|unit| !complete(unit));
            keys
        }
    }

    #[test]
    fn a_read_for_what_was_given_up_does_not_complete_what_was_started_anew() {
        let mut filling = Filling::new(4);
        filling.start(0, 5, 40..41);
        let old = filling.issued(1);
        filling.give_up(0);
        filling.start(0, 5, 40..41);
        let new = filling.issued(1);
        assert_eq!(filling.done(old), None);
        assert_eq!(filling.done(new), Some((0, 5)));
        assert!(filling.units.is_empty());
    }

    #[test]
    fn units_are_read_and_completed_as_by_search_through_all() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let reads_max = 1 + rng.below(4);
            let mut filling = Filling::new(reads_max);
            let mut naive = Naive {
                units: VecDeque::new(),
                reads: [0; TIERS_MAX],
                reads_max,
                held: [false; TIERS_MAX],
                issued: 0,
            };
            let mut under_way = Vec::new();
            for _ in 0..400 {
                step(&mut rng, &mut filling, &mut naive, &mut under_way);
                let turn = naive.turn().map(|at| naive.units[at].1.clone());
                assert_eq!(filling.next(), turn, "seed {seed}");
            }
        }
    }

    /// A read under way: its number, its unit's key, and what [`Filling::issued`] called it.
    type Read = (u32, u32, FillingId);

    fn step(rng: &mut Rng, filling: &mut Filling, naive: &mut Naive, under_way: &mut Vec<Read>) {
        let place = rng.below(3) as usize;
        if rng.below(8) == 0 {
            naive.held[place] = rng.below(3) == 0;
            filling.hold(place, naive.held[place]);
        }
        match rng.below(100) {
            0..30 => {
                let unit = rng.below(40);
                let key = Filling::key(place, unit);
                if naive.units.iter().all(|known| known.0 != key) {
                    let pages = unit * 8..unit * 8 + 1 + rng.below(8);
                    filling.start(place, unit, pages.clone());
                    naive.units.push_back((key, pages, Vec::new()));
                }
            }
            30..60 => {
                let Some(at) = naive.turn() else { return };
                let (key, pages, reads) = &mut naive.units[at];
                let count = 1 + rng.below(pages.end - pages.start);
                pages.start += count;
                naive.issued += 1;
                reads.push(naive.issued);
                naive.reads[Filling::place(*key)] += 1;
                under_way.push((naive.issued, *key, filling.issued(count)));
            }
            60..70 => {
                let Some(at) = naive.turn() else { return };
                naive.units[at].1.start += 1;
                let complete = naive.complete();
                let skipped = filling.skipped();
                let skipped = skipped.map(|(place, unit)| Filling::key(place, unit));
                assert_eq!(skipped.into_iter().collect::<Vec<_>>(), complete);
            }
            70..99 if !under_way.is_empty() => {
                let at = rng.below(under_way.len() as u32) as usize;
                let (read, key, id) = under_way.swap_remove(at);
                naive.reads[Filling::place(key)] -= 1;
                let reads = naive.units.iter_mut().map(|unit| &mut unit.2);
                reads.for_each(|reads| reads.retain(|&known| known != read));
                let complete = naive.complete();
                let done = filling.done(id);
                let done = done.map(|(place, unit)| Filling::key(place, unit));
                assert_eq!(done.into_iter().collect::<Vec<_>>(), complete);
            }
            99 => {
                filling.give_up(place);
                naive.units.retain(|unit| Filling::place(unit.0) != place);
            }
            _ => {}
        }
    }
}
