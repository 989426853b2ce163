//! The frames of a cache, and two lists through them. What a list means is its policy's affair.

use crate::ids::{Maybe, NONE};
use serde::{Deserialize, Serialize};

/// One of the two lists.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListId {
    /// The only list of most policies. Policies that keep new keys apart have those in it that were used
    /// again.
    Main = 0,
    /// Keys that were not used again since they came, where a policy keeps them apart.
    New = 1,
}

/// A frame in no list is free, pinned or on its way from one list to another.
const NO_LIST: u8 = 2;

#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub(super) struct Frame {
    /// [`NONE`] where it holds nothing, as in the table of keys.
    pub(super) key: u32,
    previous: Maybe<u32>,
    next: Maybe<u32>,
    list: u8,
    /// Uses that the policy remembers.
    pub(super) uses: u8,
    pub(super) pinned: bool,
    /// The list that its key had left before it came back, if the policy remembers; `Main` of one that a nearer memory gave back.
    pub(super) left: Option<ListId>,
}

impl Frame {
    /// Stands in this list.
    #[inline]
    pub(super) fn is_in(&self, list: ListId) -> bool {
        self.list == list as u8
    }
}

#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct List {
    head: Maybe<u32>,
    tail: Maybe<u32>,
    len: u32,
}

/// All frames that have been in use, and the lists.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Frames {
    frames: Vec<Frame>,
    free: Vec<u32>,
    lists: [List; 2],
    capacity: u32,
}

impl Frames {
    pub(super) fn new(capacity: u32) -> Self {
        let empty = List {
            head: Maybe::NONE,
            tail: Maybe::NONE,
            len: 0,
        };
        Frames {
            frames: Vec::new(),
            free: Vec::new(),
            lists: [empty; 2],
            capacity,
        }
    }

    /// Frames at most.
    #[inline]
    pub(super) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Frames in use.
    #[inline]
    pub(super) fn used(&self) -> u32 {
        (self.frames.len() - self.free.len()) as u32
    }

    /// Frames that have ever been in use.
    #[inline]
    pub(super) fn ever_used(&self) -> u32 {
        self.frames.len() as u32
    }

    /// A frame that holds nothing, if there is one.
    #[inline]
    pub(super) fn take_free(&mut self) -> Option<u32> {
        if let Some(at) = self.free.pop() {
            return Some(at);
        }
        (self.ever_used() < self.capacity).then(|| {
            self.frames.push(Frame {
                key: NONE,
                previous: Maybe::NONE,
                next: Maybe::NONE,
                list: NO_LIST,
                uses: 0,
                pinned: false,
                left: None,
            });
            self.ever_used() - 1
        })
    }

    /// A frame holds nothing any more.
    pub(super) fn set_free(&mut self, at: u32) {
        self.unlink(at);
        let frame = &mut self.frames[at as usize];
        frame.key = NONE;
        frame.pinned = false;
        self.free.push(at);
    }

    /// Every key held.
    pub(super) fn keys(&self) -> impl Iterator<Item = u32> + '_ {
        let keys = self.frames.iter().map(|frame| frame.key);
        keys.filter(|&key| key != NONE)
    }

    /// No frame stands in a list.
    #[inline]
    pub(super) fn all_pinned(&self) -> bool {
        self.lists[0].len + self.lists[1].len == 0
    }

    /// Frames in a list.
    #[inline]
    pub(super) fn len(&self, list: ListId) -> u32 {
        self.lists[list as usize].len
    }

    /// The last frame of a list.
    #[inline]
    pub(super) fn tail(&self, list: ListId) -> Option<u32> {
        self.lists[list as usize].tail.get()
    }

    /// Puts a frame at the head of a list, wherever it stands now.
    #[inline]
    pub(super) fn move_to_head(&mut self, at: u32, list: ListId) {
        if self.lists[list as usize].head != at.into() {
            self.unlink(at);
            self.link(at, list);
        }
    }

    /// Puts a frame that stands in no list at the head of one.
    #[inline]
    pub(super) fn link(&mut self, at: u32, list: ListId) {
        let head = self.lists[list as usize].head;
        let frame = &mut self.frames[at as usize];
        debug_assert!(frame.list == NO_LIST);
        frame.list = list as u8;
        frame.previous = Maybe::NONE;
        frame.next = head;
        match head.get() {
            None => self.lists[list as usize].tail = at.into(),
            Some(head) => self.frames[head as usize].previous = at.into(),
        }
        self.lists[list as usize].head = at.into();
        self.lists[list as usize].len += 1;
    }

    /// Takes a frame out of its list, if it stands in one.
    #[inline]
    pub(super) fn unlink(&mut self, at: u32) {
        let Frame {
            previous,
            next,
            list,
            ..
        } = self.frames[at as usize];
        if list == NO_LIST {
            return;
        }
        let ends = &mut self.lists[list as usize];
        ends.len -= 1;
        match previous.get() {
            None => ends.head = next,
            Some(previous) => self.frames[previous as usize].next = next,
        }
        match next.get() {
            None => ends.tail = previous,
            Some(next) => self.frames[next as usize].previous = previous,
        }
        self.frames[at as usize].list = NO_LIST;
    }
}

impl std::ops::Index<u32> for Frames {
    type Output = Frame;
    #[inline]
    fn index(&self, at: u32) -> &Frame {
        &self.frames[at as usize]
    }
}

impl std::ops::IndexMut<u32> for Frames {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut Frame {
        &mut self.frames[at as usize]
    }
}
