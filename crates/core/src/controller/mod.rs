//! The controller: firmware cores, and the roles (map cache, read cache, write buffer) with the
//! memories they stand on.

pub mod cache;
mod cores;
mod map_role;
mod read_cache;
mod write_buffer;

pub use cores::Cores;
pub use map_role::{Fill, Found, MapRole};
pub use read_cache::ReadCache;
pub use write_buffer::{Landing, SlotState, WriteBuffer};
