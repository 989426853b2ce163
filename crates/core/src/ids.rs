//! Newtypes for every index, so that one cannot be taken for another.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::marker::PhantomData;

/// What numbers the places of a [`Slab`](crate::slab::Slab).
pub trait Id: Copy + PartialEq {
    /// The index with that number.
    fn new(number: u32) -> Self;
    /// Its number.
    fn number(self) -> u32;
}

impl Id for u32 {
    #[inline(always)]
    fn new(number: u32) -> Self {
        number
    }
    #[inline(always)]
    fn number(self) -> u32 {
        self
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// As an index into a column.
            #[inline]
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl Id for $name {
            #[inline(always)]
            fn new(number: u32) -> Self {
                $name(number)
            }
            #[inline(always)]
            fn number(self) -> u32 {
                self.0
            }
        }
    };
}

id!(
    /// Logical page number: which 4 KiB of the drive's address space.
    Lpn
);
id!(
    /// Physical page number: which 4 KiB slot of the flash array, in allocation order
    /// (superblock, then program unit, then die, then page, plane and slot).
    Ppn
);
id!(
    /// Translation page: which 4 KiB of the address map (1024 entries).
    TranslationPage
);
id!(
    /// One flash die.
    DieId
);
id!(
    /// The blocks of one number across all dies and planes, opened and erased together.
    Superblock
);
id!(
    /// A command inside the drive.
    CommandId
);
id!(
    /// An operation of the flash array.
    FlashOpId
);
id!(
    /// A slot of the write buffer.
    BufferSlot
);
id!(
    /// A program operation that the array was handed.
    ProgramId
);
id!(
    /// A program operation whose data comes from host memory first.
    FetchId
);
id!(
    /// Data of a write on its way into the write buffer.
    TransferId
);
id!(
    /// A unit of the map that is being completed in the background.
    FillingId
);
id!(
    /// A call of the byte window, or a CPU's read of it, as the drive works on it.
    WindowCallId
);

/// An index, or none, in four bytes: `Option` would take eight. No index has the number that stands for none.
#[derive(Clone, Serialize, Deserialize, Copy, PartialEq, Eq)]
#[serde(transparent)]
pub struct Maybe<I>(u32, #[serde(skip)] PhantomData<I>);

impl<I> Maybe<I> {
    /// No such thing.
    pub const NONE: Self = Maybe(NONE, PhantomData);

    /// Whether there is one.
    #[inline(always)]
    #[must_use]
    pub fn is_some(self) -> bool {
        self.0 != NONE
    }

    /// Whether there is none.
    #[inline(always)]
    #[must_use]
    pub fn is_none(self) -> bool {
        self.0 == NONE
    }
}

impl<I: Id> Maybe<I> {
    /// As an `Option`.
    #[inline(always)]
    #[must_use]
    pub fn get(self) -> Option<I> {
        self.is_some().then(|| I::new(self.0))
    }

    /// Leaves none, and returns what was there.
    #[inline(always)]
    pub fn take(&mut self) -> Option<I> {
        std::mem::take(self).get()
    }
}

impl<I> Default for Maybe<I> {
    #[inline(always)]
    fn default() -> Self {
        Maybe::NONE
    }
}

impl<I: Id> From<I> for Maybe<I> {
    #[inline(always)]
    fn from(index: I) -> Self {
        debug_assert!(index.number() != NONE, "the number that stands for none");
        Maybe(index.number(), PhantomData)
    }
}

impl<I: Id> From<Option<I>> for Maybe<I> {
    #[inline(always)]
    fn from(index: Option<I>) -> Self {
        index.map_or(Maybe::NONE, Maybe::from)
    }
}

impl<I: Id + fmt::Debug> fmt::Debug for Maybe<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// What stands for none in a [`Maybe`], in entries of the map as bytes, and where a raw number is a key: of a hash table and of
/// what a cache holds. Elsewhere an index that may be none is a [`Maybe`].
pub const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_or_none_takes_four_bytes_and_comes_back_as_it_was() {
        assert_eq!(size_of::<Maybe<BufferSlot>>(), 4);
        for number in [0, 1, crate::engine::INDEX_MAX, u32::MAX - 1] {
            let slot = BufferSlot(number);
            let maybe = Maybe::from(slot);
            assert!(maybe.is_some() && !maybe.is_none());
            assert_eq!((maybe.get(), Maybe::from(Some(slot))), (Some(slot), maybe));
            assert_eq!(format!("{maybe:?}"), format!("{:?}", Some(slot)));
        }
        let none = Maybe::<BufferSlot>::default();
        assert!(none.is_none() && !none.is_some());
        assert_eq!((none.get(), Maybe::from(None)), (None, none));
        assert_eq!(format!("{none:?}"), "None");
    }

    #[test]
    fn what_is_taken_leaves_none() {
        let mut maybe = Maybe::from(FlashOpId(3));
        assert_eq!(maybe.take(), Some(FlashOpId(3)));
        assert_eq!((maybe, maybe.take()), (Maybe::NONE, None));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "the number that stands for none")]
    fn the_number_that_stands_for_none_is_no_index() {
        let _ = Maybe::from(Lpn(u32::MAX));
    }
}
