//! What moves between the drive's own memory and the host's.

use serde::{Deserialize, Serialize};

/// Pages of the map on the link.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierMigrations {
    /// Evicted from nearer memory.
    pub to_host: u32,
    /// Taken back because they were used, or because they differ from flash and gave way.
    pub from_host: u32,
    /// Bytes of compressed pages evicted from nearer memory.
    pub to_host_bytes: u64,
    /// Bytes of compressed pages taken back.
    pub from_host_bytes: u64,
}
