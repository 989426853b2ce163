//! The controller: firmware cores, and the roles (map cache, read cache, write buffer) with the
//! memories they stand on.

pub mod cache;
mod cores;
mod crossings;
pub mod dump;
pub mod encoding;
mod host_data;
mod host_map;
pub mod host_memory;
pub mod hpb;
pub mod integrity;
mod lost;
mod map_role;
mod read_ahead;
mod read_cache;
mod window;
mod write_buffer;

pub use cores::Cores;
pub use crossings::Crossings;
pub use host_data::{HostData, PageBytes};
pub use host_map::{EPOCH_BITS, HostMap};
pub use host_memory::{Bytes, HostMemory, Lent, Modelled, OutOfReach};
pub use lost::Lost;
pub use map_role::{Fill, Found, MapRole, Moved, Waiter};
pub use read_ahead::ReadAhead;
pub use read_cache::ReadCache;
pub use window::{Entry, Verdict, Window};
pub use write_buffer::{Fate, Flusher, Landing, SlotState, WriteBuffer};
