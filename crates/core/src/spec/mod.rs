//! The typed, validated description of a drive.
//!
//! A [`DriveSpec`] is what a drive file means once every unit is resolved: times in picoseconds,
//! sizes in bytes, rates in bytes per second. Limits are checked once, when the spec is built; the
//! model may assert them afterwards.
//!
//! [`parse()`] reads a drive file; [`reference()`] lists every key it may have; [`layout`] says how many
//! superblocks a drive has and what for.

use serde::{Deserialize, Serialize};

mod build;
mod document;
mod error;
mod flash;
mod integrity;
mod keys;
pub mod layout;
mod parse;
pub mod policies;
mod source;
pub(crate) mod ufs;
mod units;
mod unused;
mod value;
mod window;
mod words;

pub use error::{Place, Problem, SpecError};
pub use flash::{AgeingSpec, ErrorSpec, VariationSpec};
pub use integrity::{LINE_BYTES, VERSIONS_PER_LINE};
pub use keys::{KeyReference, reference, reference_markdown, words_markdown};
pub use layout::Layout;
pub(crate) use layout::{HOST_PROGRAMS_PER_DIE, MOVES_PROGRAMMED_PER_DIE, MOVES_STAGED_PER_DIE};
pub use parse::{ParsedDrive, ResolvedValue, parse};
pub use policies::{GcPolicy, Replacement};
pub use source::{Source, SourceKind};
pub use window::{CpuSpec, PowerSpec, WindowSpec};
pub use words::{Cell, Encoding, Gate, HpbProtocol, Integrity, Rounding, Tier, Word};

/// Size of the mapping unit, the "slot": one logical page of the address map (4 KiB).
pub const SLOT_BYTES: u64 = 4096;
/// Map entries in one translation page: 4 KiB of 4-byte entries, as kept in flash.
pub const ENTRIES_PER_TRANSLATION_PAGE: u64 = 1024;

/// Everything that a drive file says of a drive.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct DriveSpec {
    /// Name for people, e.g. `Toshiba RC100 480 GB`.
    pub name: String,
    /// User capacity, bytes; a multiple of 4 KiB.
    pub capacity_bytes: u64,
    /// The link between host and drive.
    pub link: LinkSpec,
    /// The host's own share of a request.
    pub host: HostSpec,
    /// Firmware cores and what commands cost on them.
    pub controller: ControllerSpec,
    /// The flash array.
    pub nand: NandSpec,
    /// Flash translation layer.
    pub ftl: FtlSpec,
    /// Memories that roles can be placed on.
    pub tiers: TierSpecs,
    /// What is kept where.
    pub roles: RoleSpecs,
    /// What feeds the drive's dump when power fails; `None`: enough, however much there is to save.
    pub power: Option<PowerSpec>,
    /// Map entries kept by the host's driver, if the drive knows how (Host Performance Booster).
    pub hpb: Option<HpbSpec>,
}

impl DriveSpec {
    /// Whether a power cut may cost what the drive has acknowledged (NVMe Identify Controller, VWC bit 0). A host flushes
    /// no other drive.
    #[must_use]
    pub fn has_volatile_cache(&self) -> bool {
        let buffer = &self.roles.write_buffer;
        let acknowledges_safe = buffer.acknowledges_programmed || buffer.tier.is_flash();
        !acknowledges_safe && !self.tiers.survives_power_cut(buffer.tier)
    }
}

/// How host and drive talk.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum LinkProtocol {
    /// NVMe over PCIe: the drive reads and writes host memory by itself.
    Pcie,
    /// UFS: the host sends commands, the drive asks for data to be written.
    Ufs,
}

/// The link. Both directions are separate resources of the same rate.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct LinkSpec {
    /// What is spoken over it.
    pub protocol: LinkProtocol,
    /// Rate of one direction on the wire after line coding, bytes per second
    /// (PCIe 3.0: 8 GT/s x 128/130 / 8 = 984.6 MB/s per lane).
    pub bytes_per_s: u64,
    /// Largest payload of one packet (MPS), bytes.
    pub max_payload_bytes: u32,
    /// Header, sequence number, LCRC and framing of one packet, bytes.
    pub packet_overhead_bytes: u32,
    /// Time of flight of one packet through PHYs, switches and root complex, one way.
    pub one_way_ps: u64,
    /// What the host's memory takes to answer a DMA read.
    pub host_memory_ps: u64,
    /// What the host's own traffic leaves of its memory's rate, bytes per second; `None`: more than the drive can ask for.
    pub host_memory_bytes_per_s: Option<u64>,
}

/// The host's own share of a request, outside the drive.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct HostSpec {
    /// From the application's submission to the doorbell write.
    pub submit_ps: u64,
    /// From the completion entry's arrival in memory to the application (interrupt, driver).
    pub complete_ps: u64,
    /// Most data of one request to the drive, bytes; a longer read or write is split into several (Linux:
    /// `max_sectors_kb`). `None`: only what the drive takes limits it.
    pub request_bytes_max: Option<u64>,
    /// DMA engine of the host that the drive may use.
    pub dma: Option<HostDmaSpec>,
    /// What loads and stores to the drive's memory cost.
    pub cpu: CpuSpec,
}

/// A DMA engine in the host whose registers the drive was told with the feature that gave it host
/// memory (Hong, Han & Chung, ISOCC 2016).
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct HostDmaSpec {
    /// Rate of a copy within the host's memory, bytes per second.
    pub bytes_per_s: u64,
    /// Engine time of each copy before data moves.
    pub start_ps: u64,
    /// What the status register takes to answer.
    pub register_ps: u64,
    /// Pause of the drive from the answer of one status read to the next read.
    pub poll_ps: u64,
}

/// Firmware cores and what commands cost on them.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct ControllerSpec {
    /// Cores that share the commands.
    pub cores: u32,
    /// Core time of a read command's first 4 KiB.
    pub read_ps: u64,
    /// Core time of a write command's first 4 KiB.
    pub write_ps: u64,
    /// Core time of each further 4 KiB of a read or write.
    pub next_slot_ps: u64,
    /// Core time of a flush.
    pub flush_ps: u64,
    /// Core time of a deallocate.
    pub trim_ps: u64,
    /// Core time of starting one map fill (a map miss).
    pub map_fill_ps: u64,
    /// Commands the drive works on at once; further ones wait in their submission queues.
    pub command_slots: u32,
    /// Commands fetched from one submission queue before the next has its turn
    /// (NVMe arbitration burst, round robin).
    pub arbitration_burst: u32,
    /// Most data of one command, bytes (NVMe: MDTS); `None`: what the model can do.
    pub transfer_bytes_max: Option<u64>,
    /// Namespaces that hosts of a live drive can make; `None`: those it is made with stay.
    pub namespaces_max: Option<u32>,
    /// Data that the host is expected to ask for next is read ahead.
    pub read_ahead: Option<ReadAheadSpec>,
}

/// Reads in order, told apart by submission queue and followed by what comes next on flash, into the read cache.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct ReadAheadSpec {
    /// How far ahead of the last command of a stream, slots of 4 KiB.
    pub window_slots: u32,
    /// Streams followed at once.
    pub streams: u32,
    /// Commands in order, one after the other, that make a stream.
    pub after: u32,
}

impl ControllerSpec {
    /// Most data that one read or write of a host that limits itself to `request_bytes_max` moves.
    #[must_use]
    pub fn request_bytes_max(&self, host: &HostSpec) -> Option<u64> {
        let limits = [self.transfer_bytes_max, host.request_bytes_max];
        limits.into_iter().flatten().min()
    }
}

impl Cell {
    /// Bits per cell, and so pages per word line.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Cell::Slc => 1,
            Cell::Mlc => 2,
            Cell::Tlc => 3,
            Cell::Qlc => 4,
        }
    }
}

/// The flash array.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct NandSpec {
    /// Bits per cell.
    pub cell: Cell,
    /// Channels (independent buses).
    pub channels: u32,
    /// Dies on each channel.
    pub dies_per_channel: u32,
    /// Planes of a die; they work together (multi-plane) on the same page of the same block number.
    pub planes: u32,
    /// Blocks of a plane. Validation derives it from capacity and over-provisioning when the file
    /// does not give it.
    pub blocks_per_plane: u32,
    /// Pages of a block, all page types counted; a multiple of [`Cell::bits`].
    pub pages_per_block: u32,
    /// User bytes of a page; a multiple of 4 KiB.
    pub page_bytes: u32,
    /// Array read time by page type: lower, middle, upper, top, as many as [`Cell::bits`].
    pub read_ps: Vec<u64>,
    /// Array program time by page type; with [`NandSpec::one_shot`] the sum is what programming
    /// all pages of a word line together takes.
    pub program_ps: Vec<u64>,
    /// All pages of a word line are programmed by one operation.
    pub one_shot: bool,
    /// Block erase time.
    pub erase_ps: u64,
    /// Array read time of a block used in single-bit mode.
    pub slc_read_ps: u64,
    /// Array program time of a block used in single-bit mode.
    pub slc_program_ps: u64,
    /// Bus rate, bytes per second (an 8-bit bus: 533 MT/s is 533 MB/s).
    pub channel_bytes_per_s: u64,
    /// Bytes on the bus for each 4 KiB of user data (parity included).
    pub codeword_bytes: u32,
    /// Command and address cycles before an array operation.
    pub command_ps: u64,
    /// Decoding after the transfer.
    pub ecc_ps: u64,
    /// The die may start its next array read while the previous page's data still waits for, or is
    /// on, the bus (cache read).
    pub cache_read: bool,
    /// While a program runs, the die takes the data of the next one.
    pub cache_program: bool,
    /// Whether reads may interrupt programs and erases.
    pub suspend: Option<SuspendSpec>,
    /// How far array times scatter; `None`: not at all.
    pub variation: Option<VariationSpec>,
    /// How it ages; `None`: not at all.
    pub ageing: Option<AgeingSpec>,
}

/// Program and erase suspend.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct SuspendSpec {
    /// From the suspend command to the die being ready, during a program.
    pub program_ps: u64,
    /// From the suspend command to the die being ready, during an erase.
    pub erase_ps: u64,
    /// Added to the remaining time when the operation resumes.
    pub resume_ps: u64,
    /// Suspensions of one operation before it is left alone.
    pub max_per_operation: u32,
}

/// Flash translation layer.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct FtlSpec {
    /// Physical over user capacity, minus one. Validation turns it into `blocks_per_plane`.
    pub overprovisioning: f64,
    /// How a superblock is chosen for garbage collection.
    pub gc_policy: GcPolicy,
    /// Free superblocks at or below which garbage collection starts.
    pub gc_start_superblocks: u32,
    /// Free superblocks at or below which only garbage collection may write.
    pub gc_reserve_superblocks: u32,
    /// Relocated data goes to a stream of its own rather than beside new data.
    pub gc_own_stream: bool,
    /// Data expected to be overwritten soon (hot) and data expected to last (cold) go to streams of their
    /// own.
    pub hot_cold_streams: bool,
    /// Free superblock with the fewest erases is opened first (dynamic wear levelling); otherwise
    /// the one freed first.
    pub wear_dynamic: bool,
    /// Difference of erase counts that makes static wear levelling move cold data; 0 turns it off.
    pub wear_static_threshold: u32,
    /// Bytes that the host may write, as the maker rates the drive; 0: not known.
    pub rated_written_bytes: u64,
    /// Times that the flash may be programmed and erased, as its maker rates it; 0: not known.
    pub rated_cycles: u32,
    /// Translation pages are kept in single-bit mode and read as fast.
    pub map_slc: bool,
    /// Superblocks run in single-bit mode as a write cache; 0 for none.
    pub slc_superblocks: u32,
    /// Share of the flash that holds nothing which new data is written to in single-bit mode, in thousandths; 0: none.
    pub slc_dynamic_permille: u32,
    /// Idle time after which the single-bit cache is folded into ordinary blocks.
    pub slc_idle_ps: u64,
}

impl FtlSpec {
    /// Whether new data goes through flash in single-bit mode.
    #[inline]
    #[must_use]
    pub fn has_slc(&self) -> bool {
        self.slc_superblocks > 0 || self.slc_dynamic_permille > 0
    }
}

/// Memories that roles can be placed on.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct TierSpecs {
    /// Controller SRAM.
    pub sram: Option<MemorySpec>,
    /// DRAM on the drive.
    pub dram: Option<MemorySpec>,
    /// Host Memory Buffer. Its latency and bandwidth are the link's.
    pub hmb: Option<HmbSpec>,
    /// Power-protected memory on the drive.
    pub pm: Option<MemorySpec>,
    /// Memory attached to the host, reached by load and store.
    pub cxl: Option<CxlSpec>,
}

/// Memory attached to the host that the drive reaches over CXL.mem.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct CxlSpec {
    /// The drive's part of it: size, latency of a load over the fabric, and rate with no other drive
    /// at work.
    pub memory: MemorySpec,
    /// Drives that share its rate and keep it as busy as this one.
    pub sharers: u32,
    /// Its contents are there when power comes back.
    pub persistent: bool,
}

/// A memory inside the drive.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct MemorySpec {
    /// Size, bytes.
    pub bytes: u64,
    /// Latency of one access.
    pub access_ps: u64,
    /// Bandwidth, bytes per second.
    pub bytes_per_s: u64,
}

/// What a drive asks of the host's memory (NVMe Identify Controller HMPRE, HMMIN, HMMINDS, HMMAXD).
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct HmbSpec {
    /// Preferred size (HMPRE), bytes.
    pub preferred_bytes: u64,
    /// Minimum size (HMMIN), bytes; the drive makes no use of less.
    pub min_bytes: u64,
    /// Smallest useful descriptor (HMMINDS), bytes; 0 for no limit.
    pub min_descriptor_bytes: u64,
    /// Most descriptors (HMMAXD); 0 for no limit.
    pub max_descriptors: u32,
    /// How much of what is granted the drive can use.
    pub rounding: Rounding,
    /// The firmware core waits for each look-up in host memory instead of turning to other work.
    pub stalls_core: bool,
    /// How map entries and pages of data there are protected.
    pub integrity: Integrity,
    /// Time of checking an entry, and from the last byte of a page to the verdict on it.
    pub check_ps: u64,
    /// Rate at which pages of data are checked, encrypted and decrypted.
    pub check_bytes_per_s: u64,
    /// A look-up waits for the check; otherwise it runs while the flash read does, and only an
    /// entry that fails costs time.
    pub check_in_path: bool,
}

/// Host Performance Booster: the host's driver keeps map entries in its own memory (tier `host`) and
/// sends them along with reads.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct HpbSpec {
    /// Protocol that host and drive speak about map entries.
    pub protocol: HpbProtocol,
    /// Logical pages of a group: what one dirty bit stands for and one READ BUFFER brings.
    pub group_pages: u32,
    /// Logical pages of a region: what is activated and given up as one (JEDEC). A group is a
    /// sub-region.
    pub region_pages: u32,
    /// The host decides what is active; otherwise the drive recommends it (JEDEC).
    pub host_control: bool,
    /// Regions, from the first, that are always active (JEDEC).
    pub pinned_regions: u32,
    /// Map misses in a sub-region after which the drive recommends it (JEDEC).
    pub recommend_misses: u32,
    /// Pages of a read that may have entries (JEDEC): more than one from version 2.0.
    pub blocks_max: u32,
    /// Core time of an HPB WRITE BUFFER command (JEDEC 2.0).
    pub write_buffer_ps: u64,
    /// Entries the host keeps at most, in groups.
    pub host_groups: u32,
    /// What of it goes back to the kernel while the host runs.
    pub give_back: Option<GiveBack>,
    /// Which group gives way when the host's memory is full.
    pub replacement: Replacement,
    /// What the host loads at boot is fetched from the start of a run on, beside its requests; otherwise
    /// it is there.
    pub loads_at_boot: bool,
    /// How long nothing must have been asked before the host fetches a group.
    pub idle_ps: u64,
    /// Core time of checking the entry that came with a read.
    pub check_ps: u64,
    /// Core time of a READ BUFFER command, map reads not counted.
    pub read_buffer_ps: u64,
    /// Pages whose entries changed and are not with the host that the drive can remember one by
    /// one; beyond that their whole group must be fetched anew.
    pub stale_pages: u32,
    /// How entries are protected while they are with the host.
    pub integrity: Integrity,
    /// Bits of a group's epoch: after so many hand-outs that they are all used the keys change. No drive
    /// file sets it.
    pub epoch_bits: u32,
}

/// Memory that the host's driver gives back to its kernel while it runs (the paper's protocol).
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct GiveBack {
    /// Groups that the driver still has room for.
    pub host_groups: u32,
    /// When it gives it back, from the start of a run.
    pub at_ps: u64,
    /// When it has it again; never, if there is none.
    pub until_ps: Option<u64>,
}

impl HpbSpec {
    /// Bytes of a map entry as the host keeps it: as `EntryCodec::entry_bytes`, which is no business of this layer.
    pub(super) fn entry_bytes(protocol: HpbProtocol, integrity: Integrity) -> u64 {
        match (protocol, integrity) {
            (HpbProtocol::Paper, Integrity::None) => 4,
            _ => 8,
        }
    }

    /// Bytes of map entries that the host's driver keeps at most.
    #[must_use]
    pub fn host_bytes(&self) -> u64 {
        let entry_bytes = Self::entry_bytes(self.protocol, self.integrity);
        u64::from(self.host_groups) * u64::from(self.group_pages) * entry_bytes
    }
}

/// What is kept where.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct RoleSpecs {
    /// Cache of the address map.
    pub map: MapRoleSpec,
    /// Cache of data read from flash.
    pub read_cache: Option<ReadCacheSpec>,
    /// Data acknowledged before it is in flash.
    pub write_buffer: WriteBufferSpec,
    /// Memory of the drive that the host reaches by loads and stores.
    pub window: Option<WindowSpec>,
}

/// What precedes a translation page that may be compressed: its number, the count of runs or segments,
/// its form.
pub const ENCODING_HEADER_BYTES: u64 = 8;

/// Cache of the address map.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct MapRoleSpec {
    /// Where, nearest first.
    pub tiers: Vec<MapTierSpec>,
    /// Which unit gives way.
    pub replacement: Replacement,
    /// A unit is kept on one tier only (what one tier evicts moves to the next); otherwise every
    /// tier holds its own copy.
    pub exclusive: bool,
    /// Translation pages that requests wait for and that are being read at the same time; further
    /// misses wait.
    pub fills_in_flight: u32,
    /// Flash reads in flight, for each tier, that complete units larger than the page a request
    /// waited for.
    pub background_reads: u32,
}

/// The map cache's share of one tier.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct MapTierSpec {
    /// Memory that it is placed on.
    pub tier: Tier,
    /// How much of it, bytes; for `hmb` whatever is granted and usable.
    pub bytes: u64,
    /// Caching unit in translation pages (4 KiB of map in flash, 4 MiB of addresses).
    pub unit_translation_pages: u32,
    /// Memory taken by one map entry, in thousandths of a byte (4000, or more with tag and check).
    pub entry_millibytes: u32,
    /// How lines of entries are protected, on top of that.
    pub integrity: Integrity,
    /// Whether translation pages are compressed there, and how. Compressed, a unit is one page.
    pub encoding: Encoding,
}

/// Cache of data read from flash, in slots of 4 KiB.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct ReadCacheSpec {
    /// Memory that it is placed on.
    pub tier: Tier,
    /// How much of it, bytes.
    pub bytes: u64,
    /// Which slot gives way.
    pub replacement: Replacement,
    /// Only a command whose data is all there is served from it.
    pub whole_commands: bool,
}

/// Data acknowledged before it is in flash, in slots of 4 KiB.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct WriteBufferSpec {
    /// Which memory. On [`Tier::Slc`] nothing volatile is acknowledged: a write is done once it is in
    /// the single-bit cache, and `bytes` of SRAM are what it passes on its way. On [`Tier::Pm`]
    /// what is acknowledged survives: flush and FUA wait for nothing.
    pub tier: Tier,
    /// How much of it, bytes.
    pub bytes: u64,
    /// Share of the buffer, in thousandths, at which writing back starts; 0 writes back as soon as
    /// a whole program operation is full.
    pub high_permille: u32,
    /// Share of the buffer, in thousandths, at which writing back stops.
    pub low_permille: u32,
    /// A write is done once it is in flash, not before.
    pub acknowledges_programmed: bool,
    /// Room is given out at the pace at which it comes back.
    pub paces: bool,
    /// Log in power-protected memory that flush and FUA wait for instead of flash, bytes; 0: none.
    pub log_bytes: u64,
}
