//! Indices of a ring: one entry always stays free, so that full and empty differ (Base 2.0 §3.3.1).

use crate::registers::QueueMemory;

/// What a queue says of its ring: both kinds have it.
macro_rules! views {
    ($head:literal, $tail:literal, $used:literal) => {
        /// Entries it has.
        #[must_use]
        pub fn entries(&self) -> u32 {
            self.ring.memory.entries
        }

        #[doc = $head]
        #[must_use]
        pub fn head(&self) -> u16 {
            self.ring.head as u16
        }

        #[doc = $tail]
        #[must_use]
        pub fn tail(&self) -> u16 {
            self.ring.tail as u16
        }

        #[doc = $used]
        #[must_use]
        pub fn len(&self) -> u32 {
            self.ring.used()
        }

        /// Whether there is none.
        #[must_use]
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }
    };
}
pub(super) use views;

/// Why a doorbell's value cannot be. The host hears of it by an asynchronous event ("invalid doorbell write
/// value", §5.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DoorbellError {
    /// The ring has no such entry.
    #[error("the doorbell's value is beyond the queue's end")]
    OutOfRange,
    /// More entries than are free, or taken, since the last time.
    #[error("the doorbell's value overtakes the other end of the queue")]
    Overrun,
}

/// A ring in host memory, with its consumer's and its producer's index.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    pub memory: QueueMemory,
    pub entry_bytes: u64,
    pub head: u32,
    pub tail: u32,
}

impl Ring {
    /// # Panics
    /// If it has fewer than 2 entries or more than 65536, or does not end within all addresses: to be
    /// checked when a host asks for it.
    pub fn new(memory: QueueMemory, entry_bytes: usize) -> Self {
        let entry_bytes = entry_bytes as u64;
        assert!((2..=65536).contains(&memory.entries), "{memory:?}");
        let last = u64::from(memory.entries) * entry_bytes - 1;
        assert!(memory.address.checked_add(last).is_some(), "{memory:?}");
        Ring {
            memory,
            entry_bytes,
            head: 0,
            tail: 0,
        }
    }

    pub fn address(&self, index: u32) -> u64 {
        debug_assert!(index < self.memory.entries);
        self.memory.address + u64::from(index) * self.entry_bytes
    }

    pub fn after(&self, index: u32) -> u32 {
        (index + 1) % self.memory.entries
    }

    /// Entries from `from` up to `to`.
    fn distance(&self, from: u32, to: u32) -> u32 {
        (to + self.memory.entries - from) % self.memory.entries
    }

    /// Entries produced and not consumed.
    pub fn used(&self) -> u32 {
        self.distance(self.head, self.tail)
    }

    /// Entries that can be produced.
    pub fn free(&self) -> u32 {
        self.memory.entries - 1 - self.used()
    }

    fn advance(&self, from: u32, to: u32, most: u32) -> Result<u32, DoorbellError> {
        if to >= self.memory.entries {
            return Err(DoorbellError::OutOfRange);
        }
        let by = self.distance(from, to);
        if by > most {
            return Err(DoorbellError::Overrun);
        }
        Ok(by)
    }

    /// The producer's doorbell; how many entries there are more.
    pub fn set_tail(&mut self, tail: u32) -> Result<u32, DoorbellError> {
        let by = self.advance(self.tail, tail, self.free())?;
        self.tail = tail;
        Ok(by)
    }

    /// The consumer's doorbell; how many entries are free more.
    pub fn set_head(&mut self, head: u32) -> Result<u32, DoorbellError> {
        let by = self.advance(self.head, head, self.used())?;
        self.head = head;
        Ok(by)
    }
}
