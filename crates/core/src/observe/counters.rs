//! What the drive counts while it works.

use serde::{Deserialize, Serialize};

/// Most tiers a role can be placed on.
pub const TIERS_MAX: usize = 4;
/// Number of causes of flash operations ([`crate::nand::Cause`]).
pub const CAUSES: usize = 6;

/// Look-ups of the address map.
#[derive(Clone, Serialize, Deserialize, Debug, Default, PartialEq, Eq)]
pub struct MapCounters {
    /// Look-ups by host commands, one per command and translation page.
    pub lookups: u64,
    /// Hits by tier, in the role's order.
    pub hits: [u64; TIERS_MAX],
    /// Of these, found in pages that had changed, had given way, and waited to be written.
    #[serde(default)]
    pub waiting_hits: u64,
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

impl MapCounters {
    /// A look-up has been answered by that memory.
    #[inline]
    pub fn hit(&mut self, place: usize, is_waiting: bool) {
        self.hits[place] += 1;
        self.waiting_hits += u64::from(is_waiting);
    }
}

/// The byte window.
#[derive(Clone, Serialize, Deserialize, Debug, Default, PartialEq, Eq)]
pub struct WindowCounters {
    /// Entries pinned (BA_PIN).
    pub pins: u64,
    /// Entries flushed (BA_FLUSH).
    pub flushes: u64,
    /// Stores made durable (BA_SYNC).
    pub syncs: u64,
    /// Copies to host memory (BA_READ_DMA).
    pub read_dmas: u64,
    /// Look-ups of entries (BA_GET_ENTRY_INFO).
    pub infos: u64,
    /// Calls that store to the window.
    pub stores: u64,
    /// Calls that load from the window.
    pub loads: u64,
    /// Bytes read from flash by pins.
    pub pinned_bytes: u64,
    /// Bytes written to flash by flushes.
    pub flushed_bytes: u64,
    /// Bytes copied to host memory by the read-DMA engine.
    pub read_dma_bytes: u64,
    /// Bytes stored.
    pub stored_bytes: u64,
    /// Bytes loaded.
    pub loaded_bytes: u64,
    /// Packets that carried stores; lines written back, where the window is memory of the host.
    pub store_tlps: u64,
    /// Bytes stored in those packets.
    pub store_tlp_bytes: u64,
    /// Reads by CPUs: loads of up to 8 bytes, and the reads that confirm a sync; lines fetched, where the window is
    /// memory of the host.
    pub load_tlps: u64,
    /// Packets that arrived where nothing is pinned any more: stores that were not synced in time.
    pub stray_tlps: u64,
    /// Block commands refused because their range is pinned.
    pub gated: u64,
    /// Block commands that waited because their range is pinned.
    pub held: u64,
    /// Calls that failed.
    pub rejected: u64,
    /// Bytes stored and lost in CPUs and on the link when power failed.
    pub lost_bytes: u64,
}

impl WindowCounters {
    /// Adds what the host's CPUs have counted.
    pub fn add_host(&mut self, host: &WindowCounters) {
        self.stores += host.stores;
        self.stored_bytes += host.stored_bytes;
        self.loads += host.loads;
        self.loaded_bytes += host.loaded_bytes;
        self.syncs += host.syncs;
        self.rejected += host.rejected;
        self.lost_bytes += host.lost_bytes;
    }
}

/// Map entries kept by the host (Host Performance Booster).
#[derive(Clone, Serialize, Deserialize, Debug, Default, PartialEq, Eq)]
pub struct HpbCounters {
    /// The drive and the host's driver can do it.
    pub present: bool,
    /// Reads that the driver sent with an entry.
    pub hits: u64,
    /// Reads that it sent without one.
    pub misses: u64,
    /// Look-ups of the map that the entry of the host answered.
    pub used: u64,
    /// Entries not used: group changed, host behind, forged.
    pub refused: [u64; 3],
    /// Entries that responses carried.
    pub entries_delivered: u64,
    /// Responses that named a group to be fetched.
    pub notices: u64,
    /// Groups that the host fetched.
    pub groups_fetched: u64,
    /// Groups that gave way in the host's memory.
    pub evictions: u64,
    /// JEDEC: sub-regions that the driver was to fetch, by recommendation or by its own count.
    pub activations: u64,
    /// JEDEC: regions that it was to give up.
    pub inactivations: u64,
    /// JEDEC: regions given up that it told the drive of.
    pub unmaps: u64,
    /// HPB WRITE BUFFER commands that brought the entries of a read (JEDEC 2.0).
    pub write_buffers: u64,
}

/// Flash that fails, where it ages.
#[derive(Clone, Serialize, Deserialize, Debug, Default, PartialEq, Eq)]
pub struct AgeingCounters {
    /// The drive's flash ages.
    pub present: bool,
    /// Reads done again because the decoder did not correct what they brought, soft reads included.
    pub retries: u64,
    /// Reads decoded, or not, from soft reads.
    pub soft_reads: u64,
    /// Reads that could not be decoded at all.
    pub uncorrectable: u64,
    /// Program operations that have failed: what they carried was programmed again elsewhere.
    pub program_failures: u64,
    /// Erases of a superblock's block on a die that have failed.
    pub erase_failures: u64,
    /// Bad blocks that spare ones have taken the place of.
    pub replaced_blocks: u64,
    /// Superblocks given up for want of spare blocks.
    pub retired_superblocks: u64,
    /// Superblocks written anew because reads of them had become hard.
    pub refreshes: u64,
    /// Writes and trims refused because the drive has come to the end of its life.
    pub refused: u64,
    /// Erases of a block in the mean, those before the run included: of now, not counted.
    pub mean_erases: u64,
    /// Spare blocks of all dies that are left: of now, too.
    pub spare_blocks: u64,
}

impl AgeingCounters {
    /// An operation of the array has failed.
    pub fn count_failure(&mut self, is_erase: bool) {
        match is_erase {
            true => self.erase_failures += 1,
            false => self.program_failures += 1,
        }
    }
}

/// Everything the drive counts.
#[derive(Clone, Serialize, Deserialize, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Commands submitted.
    pub requests: u64,
    /// Commands completed.
    pub completions: u64,
    /// Bytes asked for by reads.
    pub host_read_bytes: u64,
    /// Bytes brought by writes, and by flushes of the byte window.
    pub host_written_bytes: u64,
    /// Of these, before data first had to be moved to make room: by garbage collection, or out of the single-bit cache.
    #[serde(default)]
    pub written_into_room_bytes: u64,
    /// Look-ups of the address map.
    pub map: MapCounters,
    /// The byte window.
    pub window: WindowCounters,
    /// Map entries kept by the host.
    pub hpb: HpbCounters,
    /// Slots looked up in the read cache.
    pub read_cache_lookups: u64,
    /// Slots found in the read cache.
    pub read_cache_hits: u64,
    /// Pages of the read cache in host memory that failed their check and were read from flash.
    pub read_cache_rejected: u64,
    /// Slots read from flash into the read cache before they were asked for.
    pub read_ahead_slots: u64,
    /// Slots that were asked for while they were on their way.
    pub read_ahead_joined_slots: u64,
    /// Slots that entered the write buffer.
    pub buffer_writes: u64,
    /// Slots that overwrote one still in the write buffer and so never reached flash.
    pub buffer_absorbed: u64,
    /// Slots read from the write buffer.
    pub buffer_read_hits: u64,
    /// Flushes that the write buffer was emptied for, writes with FUA, and losses of its memory.
    pub buffer_drains: u64,
    /// Slots copied into the write buffer's log.
    pub buffer_logged: u64,
    /// Pages of the write buffer in host memory that failed their check: their data is lost.
    pub buffer_rejected: u64,
    /// Most slots in the write buffer at once.
    pub buffer_high_water_slots: u64,
    /// Reads asked of the flash, by cause: those of a page in its die's register, too; tries done again not.
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
    /// Copies made by the host's DMA engine for the drive.
    pub host_dma_copies: u64,
    /// Bytes of these copies.
    pub host_dma_bytes: u64,
    /// Reads of the engine's status register.
    pub host_dma_polls: u64,
    /// Bytes sent to the host, all kinds.
    pub link_to_host_bytes: u64,
    /// Bytes taken from the host, all kinds.
    pub link_from_host_bytes: u64,
    /// Times that the drive gave host memory up because a write did not reach it.
    pub hmb_given_up: u64,
    /// Flash that fails.
    #[serde(default)]
    pub ageing: AgeingCounters,
}
