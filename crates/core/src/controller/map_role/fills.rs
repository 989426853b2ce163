//! Pages that are asked for, from the first who asks to their arrival.

use super::queue::Update;
use super::{Fill, MapRole, Waiter, Waiting};
use crate::ids::{FlashOpId, Maybe, TranslationPage};

impl MapRole {
    /// Asks for a page on behalf of one who waits, or of entries that have changed. Returns true when this joined a read already
    /// asked for.
    pub fn fill(&mut self, page: TranslationPage, waiter: Option<Waiter>) -> bool {
        let known = self.fill_of.get(page.0);
        let fill = known.unwrap_or_else(|| self.ask(page));
        match waiter {
            Some(Waiter::Command(_)) => self.await_fill(fill),
            Some(Waiter::Merge(_)) if self.is_yet_to_be_read(fill) => {
                self.fill_queue.update(page, Update::Rest);
            }
            None if known.is_none() => self.fill_queue.update(page, Update::Change),
            Some(Waiter::Merge(_)) | None => {}
        }
        let asked = &mut self.fills[fill];
        match waiter {
            None => {
                let was_wanted = std::mem::replace(&mut asked.dirty, true);
                self.fills_for_updates += usize::from(!was_wanted);
            }
            Some(who) => {
                let next = asked.waiters;
                asked.waiters = self.waiters.insert(Waiting { who, next }).into();
            }
        }
        if known.is_none() {
            self.claim_units(page);
        }
        known.is_some()
    }

    fn ask(&mut self, page: TranslationPage) -> u32 {
        let fill = self.fills.insert(Fill {
            page,
            waiters: Maybe::NONE,
            is_awaited: false,
            dirty: false,
            issued: false,
            issued_for_update: false,
            update_read: Maybe::NONE,
        });
        self.fill_of.insert(page.0, fill);
        fill
    }

    /// Asks for a page on behalf of nobody, while it would not be one of many.
    pub fn fetch(&mut self, page: TranslationPage) {
        if self.fills.len() < self.spec.fills_in_flight as usize
            && self.fill_of.get(page.0).is_none()
        {
            self.ask(page);
            self.fill_queue.update(page, Update::Rest);
            self.claim_units(page);
        }
    }

    /// No read of it has begun, nor comes before updates as a command waits for it.
    fn is_yet_to_be_read(&self, fill: u32) -> bool {
        let asked = &self.fills[fill];
        !asked.issued && !asked.is_awaited
    }

    fn await_fill(&mut self, fill: u32) {
        if self.is_yet_to_be_read(fill) {
            self.fill_queue.await_page(self.fills[fill].page);
        }
        self.fills[fill].is_awaited = true;
    }

    /// A command waits for a page, too, if it was asked for. Returns the operation that reads it, as for updates alone.
    pub fn hurry(&mut self, page: TranslationPage) -> Option<FlashOpId> {
        let fill = self.fill_of.get(page.0)?;
        self.await_fill(fill);
        self.fills[fill].update_read.take()
    }

    /// Pages asked for and not yet here.
    #[must_use]
    pub fn fills(&self) -> usize {
        self.fills.len()
    }

    /// Those of them that updates wait for.
    #[must_use]
    pub fn fills_for_updates(&self) -> usize {
        self.fills_for_updates
    }

    /// Pages that may be read at once for those who wait.
    #[inline]
    #[must_use]
    pub fn fills_in_flight(&self) -> u32 {
        self.spec.fills_in_flight
    }

    /// Reads that may be under way at once to complete units of a memory.
    #[must_use]
    pub fn background_reads(&self) -> u32 {
        self.spec.background_reads
    }

    /// Whether [`MapRole::next_fill`] has one.
    #[inline]
    #[must_use]
    pub fn may_fill(&self) -> bool {
        self.fills_issued < self.spec.fills_in_flight && self.fill_queue.has_next()
    }

    /// The next page to read, if another may be read now, and whether a command waits for it.
    pub fn next_fill(&mut self) -> Option<(u32, TranslationPage, bool)> {
        if self.fills_issued >= self.spec.fills_in_flight {
            return None;
        }
        let (fills, fill_of) = (&self.fills, &self.fill_of);
        let page = self.fill_queue.next(|page| {
            let fill = fill_of.get(page.0);
            fill.is_some_and(|fill| !fills[fill].issued && !fills[fill].is_awaited)
        })?;
        let fill = fill_of
            .get(page.0)
            .expect("a page in the queue was asked for");
        self.fills_issued += 1;
        let asked = &mut self.fills[fill];
        asked.issued = true;
        asked.issued_for_update = !asked.is_awaited;
        self.fill_queue.updates_under_way += u32::from(asked.issued_for_update);
        Some((fill, page, !asked.issued_for_update))
    }

    /// A page that no command waits for is read by this operation.
    pub fn is_read_for_updates(&mut self, fill: u32, op: FlashOpId) {
        self.fills[fill].update_read = op.into();
    }

    /// Most pages that are read at once for updates alone.
    pub fn limit_fills_for_updates(&mut self, most: u32) {
        self.fill_queue.updates_at_once = most;
    }

    /// A page asked for has arrived. Those who wait are put into `waiting`, in the order in which they
    /// asked.
    pub fn filled(&mut self, fill: u32, waiting: &mut Vec<Waiter>) -> TranslationPage {
        let Fill {
            page,
            waiters,
            dirty,
            issued,
            issued_for_update,
            ..
        } = self.fills[fill];
        debug_assert!(issued);
        self.fill_queue.updates_under_way -= u32::from(issued_for_update);
        self.fills_issued -= 1;
        self.fills.remove(fill);
        self.fill_of.remove(page.0);
        let mut next = waiters;
        while let Some(at) = next.get() {
            let waiter = self.waiters[at];
            self.waiters.remove(at);
            waiting.push(waiter.who);
            next = waiter.next;
        }
        waiting.reverse();
        if dirty {
            self.fills_for_updates -= 1;
            self.mark(page);
        }
        self.arrive(page);
        page
    }
}
