//! A pair of queues of the host's, and the memory that commands have.

use crate::manage::{Change, Slot};
use crate::memory::{Access, PAGE, Page, Watched};
use crate::namespace::Span;
use lodger_wire::entry::{COMPLETION_BYTES, CompletionEntry, SubmissionEntry};
use std::collections::BTreeMap;

/// Entries of each queue; one less may be under way.
pub const ENTRIES: u16 = 16;

/// Where a pair of I/O queues is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    MakingCompletion,
    MakingSubmission,
    Live,
    DeletingSubmission,
    DeletingCompletion,
}

/// What a command is to do, with what is needed to judge how it ends.
#[derive(Clone, Debug)]
pub enum What {
    Read {
        look: u32,
    },
    Compare {
        look: u32,
        differs: bool,
    },
    Verify,
    Write {
        spans: Vec<Span>,
        version: u32,
        is_safe: bool,
    },
    Flush {
        submitted: u64,
        span: Span,
    },
    Wipe {
        version: u32,
        span: Span,
    },
    /// `was`: what the namespace was before.
    Manage {
        change: Change,
        namespace: u32,
        was: Slot,
    },
    /// Something that must succeed.
    Ask,
    Grant {
        pages: Vec<Page>,
    },
    /// What is granted already.
    GrantTwice,
    BadGrant,
    /// `is_ours`: something was granted.
    TakeBack {
        is_ours: bool,
    },
    /// The next step in the life of that queue.
    Life(u16),
    Shadows,
    WriteCache(bool),
    /// Whatever comes of it.
    Wild,
}

/// A command under way.
#[derive(Clone, Debug)]
pub struct Asked {
    pub what: What,
    pub buffer: Option<Buffer>,
    /// The namespaces that it is about, a bit each.
    pub namespaces: u32,
    /// Some of its memory was not mapped for a while.
    pub is_hurt: bool,
    /// The drive took no writes for a while, or was being formatted.
    pub was_read_only: bool,
    pub was_wiping: bool,
    pub was_aborted: bool,
    /// Its namespace was detached, or deleted.
    pub was_leaving: bool,
    /// Its queue was, with what had not begun (Delete I/O Submission Queue).
    pub was_deleted: bool,
}

impl Asked {
    pub fn new(what: What, buffer: Option<Buffer>) -> Self {
        Asked {
            what,
            buffer,
            namespaces: 0,
            is_hurt: false,
            was_read_only: false,
            was_wiping: false,
            was_aborted: false,
            was_leaving: false,
            was_deleted: false,
        }
    }
}

/// Memory of a command: pages anywhere, the data from a byte of the first on.
#[derive(Clone, Debug)]
pub struct Buffer {
    pub pages: Vec<Page>,
    pub list: Option<Page>,
    pub offset: usize,
    pub bytes: usize,
    pub access: Access,
}

/// What stands in a buffer before data comes: all around it, it must still stand there afterwards.
const BLANK: u8 = 0xa5;

impl Buffer {
    /// Takes pages of the pool, and grants them.
    pub fn take(
        pool: &mut Vec<Page>,
        memory: &Watched,
        (offset, bytes): (usize, usize),
        access: Access,
    ) -> Option<Self> {
        let count = (offset + bytes).div_ceil(PAGE);
        if pool.len() < count + 1 {
            return None;
        }
        let pages = pool.split_off(pool.len() - count);
        for page in &pages {
            memory.grant(*page, access);
            memory.poke(page.address(), &[BLANK; PAGE]);
        }
        let list = (count > 2).then(|| pool.pop().expect("there is one more"));
        if let Some(list) = list {
            memory.grant(list, Access::Read);
            for (at, page) in (0..).zip(&pages[1..]) {
                memory.poke(list.address() + 8 * at, &page.address().to_le_bytes());
            }
        }
        Some(Buffer {
            pages,
            list,
            offset,
            bytes,
            access,
        })
    }

    pub fn give_back(self, pool: &mut Vec<Page>, memory: &Watched) {
        for page in &self.pages {
            memory.revoke(*page, self.access);
            memory.set_mapped(*page, true);
        }
        if let Some(list) = self.list {
            memory.revoke(list, Access::Read);
            memory.set_mapped(list, true);
            pool.push(list);
        }
        pool.extend(self.pages);
    }

    pub fn prps(&self) -> (u64, u64) {
        let first = self.pages[0].address() + self.offset as u64;
        let second = match (self.list, self.pages.get(1)) {
            (Some(list), _) => list.address(),
            (None, Some(page)) => page.address(),
            (None, None) => 0,
        };
        (first, second)
    }

    fn whole(&self, memory: &Watched) -> Vec<u8> {
        let mut whole = vec![0; self.pages.len() * PAGE];
        for (page, part) in self.pages.iter().zip(whole.chunks_exact_mut(PAGE)) {
            memory.peek(page.address(), part);
        }
        whole
    }

    pub fn fill(&self, memory: &Watched, data: &[u8]) {
        let mut whole = self.whole(memory);
        whole[self.offset..self.offset + self.bytes].copy_from_slice(data);
        for (page, part) in self.pages.iter().zip(whole.chunks_exact(PAGE)) {
            memory.poke(page.address(), part);
        }
    }

    /// The data; or that something beside it was written.
    pub fn data(&self, memory: &Watched) -> Result<Vec<u8>, String> {
        let whole = self.whole(memory);
        let (before, rest) = whole.split_at(self.offset);
        let (data, after) = rest.split_at(self.bytes);
        match before.iter().chain(after).all(|byte| *byte == BLANK) {
            true => Ok(data.to_vec()),
            false => Err("memory beside the data of a command was written".to_owned()),
        }
    }
}

/// A submission queue and its completion queue.
#[derive(Debug)]
pub struct Queue {
    pub id: u16,
    pub life: Life,
    /// What is in its completion queue is of no interest.
    pub is_wild: bool,
    pub submission: Page,
    pub completion: Page,
    pub tail: u16,
    pub head: u16,
    phase: bool,
    next: u16,
    pub under_way: BTreeMap<u16, Asked>,
}

impl Queue {
    pub fn new(id: u16, first: Page, memory: &Watched) -> Self {
        let completion = Page(first.0 + 1);
        memory.poke(completion.address(), &[0; PAGE]);
        Queue {
            id,
            life: Life::MakingCompletion,
            is_wild: false,
            submission: first,
            completion,
            tail: 0,
            head: 0,
            phase: true,
            next: 0,
            under_way: BTreeMap::new(),
        }
    }

    pub fn has_room(&self) -> bool {
        self.under_way.len() + 1 < usize::from(ENTRIES)
    }

    /// A number that no command under way has.
    pub fn free_command(&mut self) -> u16 {
        loop {
            // Numbers of a wide range: they are the host's.
            self.next = self.next.wrapping_mul(5).wrapping_add(0x3039);
            if self.next != u16::MAX && !self.under_way.contains_key(&self.next) {
                return self.next;
            }
        }
    }

    /// Puts an entry into the submission queue.
    pub fn push(&mut self, memory: &Watched, entry: &SubmissionEntry) {
        let at = self.submission.address() + 64 * u64::from(self.tail);
        memory.poke(at, &entry.0);
        self.tail = (self.tail + 1) % ENTRIES;
    }

    /// The next completion, if one has come.
    pub fn pop(&mut self, memory: &Watched) -> Option<CompletionEntry> {
        let mut bytes = [0; COMPLETION_BYTES];
        let at = self.completion.address() + COMPLETION_BYTES as u64 * u64::from(self.head);
        memory.peek(at, &mut bytes);
        let (entry, phase) = CompletionEntry::decode(&bytes);
        if phase != self.phase {
            return None;
        }
        self.head = (self.head + 1) % ENTRIES;
        self.phase ^= self.head == 0;
        Some(entry)
    }
}
