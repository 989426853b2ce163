//! The controller: firmware cores, and the roles (map cache, read cache, write buffer) with the
//! memories they stand on.

pub mod cache;
mod cores;
mod data_in_hmb;
pub mod dump;
pub mod encoding;
pub mod host_memory;
pub mod hpb;
pub mod integrity;
mod lost;
mod map_in_hmb;
mod map_role;
mod migrations;
mod read_ahead;
mod read_cache;
mod window;
mod write_buffer;

pub use cores::Cores;
pub use data_in_hmb::{DataInHmb, PageBytes};
pub use host_memory::{Bytes, HostMemory, Lent, Modelled, OutOfReach};
pub use lost::Lost;
pub use map_in_hmb::{EPOCH_BITS, MapInHmb};
pub use map_role::{Asker, Change, Lookup, MapRole, Moved, Waiter};
pub use migrations::TierMigrations;
pub use read_ahead::ReadAhead;
pub use read_cache::ReadCache;
pub use window::{Entry, Verdict, Window};
pub use write_buffer::{Fate, Flusher, Landing, Rest, SlotState, Wanted, WriteBuffer};
