//! Pages that are asked for, from the first who asks to their arrival.

use super::queue::{FillQueue, Update};
use super::{MapRole, Waiter};
use crate::ids::{FlashOpId, Maybe, TranslationPage};
use crate::slab::Slab;
use crate::table::Table;
use serde::{Deserialize, Serialize};

/// Why an entry changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The host has written or trimmed the page: it comes back to those near it.
    Write,
    /// The page was moved, and is not used for that.
    Move,
}

/// Who asks for a page.
#[derive(Clone, Copy, Debug)]
pub enum Asker {
    /// One who waits.
    Waits(Waiter),
    /// An entry that has changed.
    Change(Change),
}

/// A translation page that is being read for commands or updates.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct Fill {
    /// Page that is read.
    page: TranslationPage,
    /// First of those who wait.
    waiters: Maybe<u32>,
    /// A command is among them: not updates alone.
    is_awaited: bool,
    /// An entry of it changed while it was on the way.
    dirty: bool,
    /// Its read has been issued.
    issued: bool,
    /// No command waited for it then.
    issued_for_update: bool,
    /// The operation that reads it, while no command waits.
    update_read: Maybe<FlashOpId>,
    /// Who asked for it is one for whom other units give way.
    evicts: bool,
}

#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct Waiting {
    who: Waiter,
    next: Maybe<u32>,
}

/// What was asked for and is not here yet, and who waits for it.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Fills {
    fills: Slab<Fill>,
    /// By translation page.
    of_page: Table,
    waiters: Slab<Waiting>,
    queue: FillQueue,
    /// Those of which an entry has changed.
    for_updates: usize,
    /// Being read, and how many may be.
    issued: u32,
    issued_max: u32,
}

impl Fills {
    pub(super) fn new(issued_max: u32) -> Self {
        Fills {
            fills: Slab::default(),
            of_page: Table::with_capacity(64),
            waiters: Slab::default(),
            queue: FillQueue::default(),
            for_updates: 0,
            issued: 0,
            issued_max,
        }
    }

    pub(super) fn has(&self, page: TranslationPage) -> bool {
        self.of_page.get(page.0).is_some()
    }

    /// Whether an entry of a page has changed while it is on the way.
    pub(super) fn changes(&self, page: TranslationPage) -> bool {
        let fill = self.of_page.get(page.0);
        fill.is_some_and(|fill| self.fills[fill].dirty)
    }

    pub(super) fn page_of(&self, fill: u32) -> TranslationPage {
        self.fills[fill].page
    }

    fn begin(&mut self, page: TranslationPage) -> u32 {
        let fill = self.fills.insert(Fill {
            page,
            waiters: Maybe::NONE,
            is_awaited: false,
            dirty: false,
            issued: false,
            issued_for_update: false,
            update_read: Maybe::NONE,
            evicts: false,
        });
        self.of_page.insert(page.0, fill);
        fill
    }

    /// Asks for a page on behalf of one who waits, or of entries that have changed. Returns true when this joined a read already
    /// asked for.
    fn ask(&mut self, page: TranslationPage, waiter: Option<Waiter>) -> bool {
        let known = self.of_page.get(page.0);
        let fill = known.unwrap_or_else(|| self.begin(page));
        match waiter {
            Some(Waiter::Command(_)) => self.await_fill(fill),
            Some(Waiter::Merge(_)) if self.is_yet_to_be_read(fill) => {
                self.queue.update(page, Update::Rest);
            }
            None if known.is_none() => self.queue.update(page, Update::Change),
            Some(Waiter::Merge(_)) | None => {}
        }
        let asked = &mut self.fills[fill];
        match waiter {
            None => {
                let was_wanted = std::mem::replace(&mut asked.dirty, true);
                self.for_updates += usize::from(!was_wanted);
            }
            Some(who) => {
                let next = asked.waiters;
                asked.waiters = self.waiters.insert(Waiting { who, next }).into();
            }
        }
        known.is_some()
    }

    /// Asks for a page on behalf of nobody, while it would not be one of many.
    fn fetch(&mut self, page: TranslationPage) {
        if self.fills.len() < self.issued_max as usize && !self.has(page) {
            self.begin(page);
            self.queue.update(page, Update::Rest);
        }
    }

    /// Whether a page is on its way, and is the first time asked for by one for whom other units give way.
    fn begins_to_evict(&mut self, page: TranslationPage) -> bool {
        let fill = self.of_page.get(page.0);
        fill.is_some_and(|fill| !std::mem::replace(&mut self.fills[fill].evicts, true))
    }

    /// No read of it has begun, nor comes before updates as a command waits for it.
    fn is_yet_to_be_read(&self, fill: u32) -> bool {
        let asked = &self.fills[fill];
        !asked.issued && !asked.is_awaited
    }

    fn await_fill(&mut self, fill: u32) {
        if self.is_yet_to_be_read(fill) {
            self.queue.await_page(self.fills[fill].page);
        }
        self.fills[fill].is_awaited = true;
    }

    fn hurry(&mut self, page: TranslationPage) -> Option<FlashOpId> {
        let fill = self.of_page.get(page.0)?;
        self.await_fill(fill);
        self.fills[fill].update_read.take()
    }

    fn next(&mut self) -> Option<(u32, TranslationPage, bool)> {
        if self.issued >= self.issued_max {
            return None;
        }
        let (fills, of_page) = (&self.fills, &self.of_page);
        let page = self.queue.next(|page| {
            let fill = of_page.get(page.0);
            fill.is_some_and(|fill| !fills[fill].issued && !fills[fill].is_awaited)
        })?;
        let fill = of_page
            .get(page.0)
            .expect("a page in the queue was asked for");
        self.issued += 1;
        let asked = &mut self.fills[fill];
        asked.issued = true;
        asked.issued_for_update = !asked.is_awaited;
        self.queue.updates_under_way += u32::from(asked.issued_for_update);
        Some((fill, page, !asked.issued_for_update))
    }

    /// A page has arrived. Those who wait are put into `waiting`, in the order in which they asked. Returns the page, and whether an entry of
    /// it has changed meanwhile.
    fn end(&mut self, fill: u32, waiting: &mut Vec<Waiter>) -> (TranslationPage, bool) {
        let Fill {
            page,
            waiters,
            dirty,
            issued,
            issued_for_update,
            ..
        } = self.fills[fill];
        debug_assert!(issued);
        self.queue.updates_under_way -= u32::from(issued_for_update);
        self.issued -= 1;
        self.for_updates -= usize::from(dirty);
        self.fills.remove(fill);
        self.of_page.remove(page.0);
        let mut next = waiters;
        while let Some(at) = next.get() {
            let waiter = self.waiters[at];
            self.waiters.remove(at);
            waiting.push(waiter.who);
            next = waiter.next;
        }
        waiting.reverse();
        (page, dirty)
    }
}

impl MapRole {
    /// Asks for a page on behalf of one who waits, or of entries that have changed. Returns true when this joined a read already
    /// asked for.
    ///
    /// Units of several pages make room for it. For what garbage collection moves they take only room that is free: nobody is to use that
    /// soon, and each page of it would push out a whole unit that the host does use.
    pub fn fill(&mut self, page: TranslationPage, asker: Asker) -> bool {
        let (waiter, evicts) = match asker {
            Asker::Waits(waiter) => (Some(waiter), true),
            Asker::Change(change) => (None, change == Change::Write),
        };
        let has_joined = self.fills.ask(page, waiter);
        let is_first = match evicts {
            true => self.fills.begins_to_evict(page),
            false => !has_joined,
        };
        if is_first {
            self.claim_units(page, evicts);
        }
        has_joined
    }

    /// Asks for a page on behalf of nobody, while it would not be one of many.
    pub fn fetch(&mut self, page: TranslationPage) {
        self.fills.fetch(page);
        if self.fills.begins_to_evict(page) {
            self.claim_units(page, true);
        }
    }

    /// A command waits for a page, too, if it was asked for. Returns the operation that reads it, as for updates alone.
    pub fn hurry(&mut self, page: TranslationPage) -> Option<FlashOpId> {
        self.fills.hurry(page)
    }

    /// Pages asked for and not yet here.
    #[must_use]
    pub fn fills(&self) -> usize {
        self.fills.fills.len()
    }

    /// Those of them that updates wait for.
    #[must_use]
    pub fn fills_for_updates(&self) -> usize {
        self.fills.for_updates
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
        self.fills.issued < self.fills.issued_max && self.fills.queue.has_next()
    }

    /// The next page to read, if another may be read now, and whether a command waits for it.
    pub fn next_fill(&mut self) -> Option<(u32, TranslationPage, bool)> {
        self.fills.next()
    }

    /// A page that no command waits for is read by this operation.
    pub fn is_read_for_updates(&mut self, fill: u32, op: FlashOpId) {
        self.fills.fills[fill].update_read = op.into();
    }

    /// Most pages that are read at once for updates alone.
    pub fn limit_fills_for_updates(&mut self, most: u32) {
        self.fills.queue.updates_at_once = most;
    }

    /// A page asked for has arrived. Those who wait are put into `waiting`, in the order in which they
    /// asked.
    pub fn filled(&mut self, fill: u32, waiting: &mut Vec<Waiter>) -> TranslationPage {
        let (page, has_changed) = self.fills.end(fill, waiting);
        if has_changed {
            self.mark(page);
        }
        self.arrive(page);
        page
    }
}
