//! Which translation page is read next: those that a command waits for and those that are read for what was written, alone, take
//! turns. The latter are *updates*: entries that have changed, and partly written pages of which the rest is to be found.
//!
//! A host's read waits for one update at most before it is its turn. In one queue it would wait behind all that writes and trims have
//! changed, long after they were acknowledged: at 16 updates for each read in flight, for milliseconds; behind the 700 pages of 512 B
//! each that a BG4 buffers, for 18 ms. The other way round, updates have every second turn, so that readers that miss the map
//! without end do not stop those who write.

use crate::ids::TranslationPage;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What a page is read for that no command waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Update {
    /// The rest of a page that was written in part. It takes turns with changes: of these a thousand may wait, of data that is moved, and
    /// new data would wait behind all of them.
    Rest = 0,
    /// Entries of the page have changed.
    Change = 1,
}

/// Pages that are to be read, in a queue for those who wait and two for updates.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub(super) struct FillQueue {
    awaited: VecDeque<TranslationPage>,
    /// For the rest of what was written in part, and for entries that have changed. They may name pages that have been read meanwhile, as
    /// somebody came to wait for them: whoever takes one looks.
    updates: [VecDeque<TranslationPage>; 2],
    /// The last turn was that of a command.
    owes_update: bool,
    /// The last turn of an update was that of a rest.
    owes_change: bool,
    /// Pages that are being read for updates alone, and how many may be: a command that comes to wait for one waits behind the others on
    /// its die.
    pub(super) updates_under_way: u32,
    pub(super) updates_at_once: u32,
}

impl FillQueue {
    /// A command waits for a page.
    #[inline]
    pub(super) fn await_page(&mut self, page: TranslationPage) {
        self.awaited.push_back(page);
    }

    /// Updates alone wait for a page.
    #[inline]
    pub(super) fn update(&mut self, page: TranslationPage, of: Update) {
        self.updates[of as usize].push_back(page);
    }

    /// Whether [`FillQueue::next`] may have one.
    #[inline]
    pub(super) fn has_next(&self) -> bool {
        let has_update = self.updates.iter().any(|queue| !queue.is_empty());
        !self.awaited.is_empty() || (has_update && self.may_update())
    }

    #[inline]
    fn may_update(&self) -> bool {
        self.updates_under_way < self.updates_at_once
    }

    /// The next page to be read. `is_due` tells of one that updates wait for whether it still is.
    #[inline]
    pub(super) fn next(
        &mut self,
        is_due: impl Fn(TranslationPage) -> bool,
    ) -> Option<TranslationPage> {
        for queue in &mut self.updates {
            while queue.front().is_some_and(|&page| !is_due(page)) {
                queue.pop_front();
            }
        }
        let [has_rest, has_change] = [0, 1].map(|of: usize| !self.updates[of].is_empty());
        let has_update = (has_rest || has_change) && self.may_update();
        let is_update = has_update && (self.owes_update || self.awaited.is_empty());
        self.owes_update = !is_update && has_update;
        if !is_update {
            return self.awaited.pop_front();
        }
        let of = match has_change && (self.owes_change || !has_rest) {
            true => Update::Change,
            false => Update::Rest,
        };
        self.owes_change = of == Update::Rest;
        self.updates[of as usize].pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> FillQueue {
        FillQueue {
            updates_at_once: 1,
            ..FillQueue::default()
        }
    }

    /// A reader came behind all that a burst of trims had changed: 96 pages of the map on an RC100.
    #[test]
    fn one_who_waits_comes_after_one_update_at_most() {
        let mut queue = queue();
        (0..96).for_each(|page| queue.update(TranslationPage(page), Update::Change));
        for page in 1000..1010 {
            queue.await_page(TranslationPage(page));
            let turns: Vec<_> = (0..2).filter_map(|_| queue.next(|_| true)).collect();
            assert!(turns.contains(&TranslationPage(page)), "{turns:?}");
        }
    }

    #[test]
    fn updates_have_every_second_turn_beside_those_who_wait_without_end() {
        let mut queue = queue();
        (0..100).for_each(|page| queue.update(TranslationPage(page), Update::Change));
        (1000..2000).for_each(|page| queue.await_page(TranslationPage(page)));
        let turns: Vec<_> = (0..200).filter_map(|_| queue.next(|_| true)).collect();
        assert_eq!(turns.iter().filter(|page| page.0 < 1000).count(), 100);
        let pairs = turns.chunks(2);
        assert!(
            pairs
                .into_iter()
                .all(|pair| pair[0].0 >= 1000 && pair[1].0 < 1000)
        );
    }

    /// The null: both in one queue, as they were.
    #[test]
    fn the_rest_of_what_was_written_comes_after_one_change_at_most() {
        let mut queue = queue();
        (0..1000).for_each(|page| queue.update(TranslationPage(page), Update::Change));
        (1000..1010).for_each(|page| queue.update(TranslationPage(page), Update::Rest));
        let turns: Vec<_> = (0..20).filter_map(|_| queue.next(|_| true)).collect();
        assert_eq!(turns.iter().filter(|page| page.0 >= 1000).count(), 10);
        // And changes go on without them.
        assert_eq!(queue.next(|_| true), Some(TranslationPage(10)));
    }

    #[test]
    fn what_was_read_for_one_who_came_to_wait_is_not_read_again() {
        let mut queue = queue();
        (0..4).for_each(|page| queue.update(TranslationPage(page), Update::Change));
        let left: Vec<_> = std::iter::from_fn(|| queue.next(|page| page.0 % 2 == 1))
            .map(|page| page.0)
            .collect();
        assert_eq!(left, [1, 3]);
        assert!(!queue.has_next());
    }
}
