//! What the drive counts while it works.

/// Most tiers a role can be placed on.
pub const TIERS_MAX: usize = 4;
/// Number of causes of flash operations ([`crate::nand::Cause`]).
pub const CAUSES: usize = 6;

/// Look-ups of the address map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapCounters {
    /// Look-ups by host commands, one per command and translation page.
    pub lookups: u64,
    /// Hits by tier, in the role's order.
    pub hits: [u64; TIERS_MAX],
    /// Look-ups that had to wait for a translation page from flash.
    pub misses: u64,
    /// Misses that joined a read already under way for another request.
    pub shared_misses: u64,
    /// Units that gave way, by tier.
    pub evictions: [u64; TIERS_MAX],
    /// Translation pages written back to flash.
    pub dirty_writebacks: u64,
    /// Translation pages read to complete units larger than the page a request waited for.
    pub background_fills: u64,
    /// Entries in host memory that failed their check.
    pub rejected_entries: u64,
}

/// Everything the drive counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Commands submitted.
    pub requests: u64,
    /// Commands completed.
    pub completions: u64,
    /// Bytes asked for by reads.
    pub host_read_bytes: u64,
    /// Bytes brought by writes.
    pub host_written_bytes: u64,
    /// Look-ups of the address map.
    pub map: MapCounters,
    /// Slots looked up in the read cache.
    pub read_cache_lookups: u64,
    /// Slots found in the read cache.
    pub read_cache_hits: u64,
    /// Slots that entered the write buffer.
    pub buffer_writes: u64,
    /// Slots that overwrote one still in the write buffer and so never reached flash.
    pub buffer_absorbed: u64,
    /// Slots read from the write buffer.
    pub buffer_read_hits: u64,
    /// Times the write buffer was emptied for a flush, FUA or loss of its memory.
    pub buffer_drains: u64,
    /// Most slots in the write buffer at once.
    pub buffer_high_water_slots: u64,
    /// Array reads by cause.
    pub reads_by_cause: [u64; CAUSES],
    /// Slots programmed by cause.
    pub programmed_slots_by_cause: [u64; CAUSES],
    /// Program operations by cause.
    pub programs_by_cause: [u64; CAUSES],
    /// Slots programmed without data, to fill a program operation.
    pub padded_slots: u64,
    /// Erase operations (one per die).
    pub erases: u64,
    /// Slots read that hold no data, answered without flash.
    pub unwritten_slots: u64,
    /// Bytes of the map or of buffers read from host memory.
    pub hmb_read_bytes: u64,
    /// Bytes of the map or of buffers written to host memory.
    pub hmb_written_bytes: u64,
    /// Bytes sent to the host, all kinds.
    pub link_to_host_bytes: u64,
    /// Bytes taken from the host, all kinds.
    pub link_from_host_bytes: u64,
}
