//! Newtypes for every index, so that one cannot be taken for another.

use serde::{Deserialize, Serialize};

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

/// "No such thing" in columns of raw indices.
pub const NONE: u32 = u32::MAX;
