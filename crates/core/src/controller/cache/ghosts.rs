//! Keys that are held no more, remembered because their coming back says something.

use super::frames::{Frames, ListId};
use crate::ids::Maybe;
use crate::table::Table;
use serde::{Deserialize, Serialize};

/// The last keys that were put in, as many as there are places. A key that comes back leaves its
/// place empty until its turn.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Ring {
    keys: Vec<Maybe<u32>>,
    at: usize,
    members: Table,
}

impl Ring {
    pub(super) fn new(places: u32) -> Self {
        Ring {
            keys: vec![Maybe::NONE; places as usize],
            at: 0,
            members: Table::with_capacity(places as usize),
        }
    }

    pub(super) fn remember(&mut self, key: u32) {
        if self.keys.is_empty() {
            return;
        }
        let old = std::mem::replace(&mut self.keys[self.at], key.into());
        if let Some(old) = old.get()
            && self.members.get(old) == Some(self.at as u32)
        {
            self.members.remove(old);
        }
        self.members.insert(key, self.at as u32);
        self.at = (self.at + 1) % self.keys.len();
    }

    /// Whether a key is remembered; it is not any more.
    pub(super) fn recall(&mut self, key: u32) -> bool {
        self.members.remove(key).is_some()
    }
}

/// Two lists of keys that left the frames' list of the same name, the last at the head.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Lists {
    places: Frames,
    members: Table,
}

impl Lists {
    pub(super) fn new(places: u32) -> Self {
        Lists {
            places: Frames::new(places),
            members: Table::with_capacity(places as usize),
        }
    }

    pub(super) fn len(&self, list: ListId) -> u32 {
        self.places.len(list)
    }

    /// Remembers a key that is not remembered yet. Without a place for it, the oldest goes.
    pub(super) fn remember(&mut self, key: u32, list: ListId) {
        let mut place = self.places.take_free();
        if place.is_none() {
            self.forget_oldest(list);
            place = self.places.take_free();
        }
        // None: the other list has all places.
        if let Some(at) = place {
            self.places[at].key = key;
            self.places.link(at, list);
            self.members.insert(key, at);
        }
    }

    pub(super) fn forget_oldest(&mut self, list: ListId) {
        if let Some(at) = self.places.tail(list) {
            self.members.remove(self.places[at].key);
            self.places.set_free(at);
        }
    }

    /// The list of a key that is remembered.
    pub(super) fn list(&self, key: u32) -> Option<ListId> {
        let at = self.members.get(key)?;
        let is_new = self.places[at].is_in(ListId::New);
        Some(if is_new { ListId::New } else { ListId::Main })
    }

    pub(super) fn forget(&mut self, key: u32) {
        if let Some(at) = self.members.remove(key) {
            self.places.set_free(at);
        }
    }
}
