//! The table of keys.

use super::Absent::{From, Is, Required};
use super::{Absent, Key, Kind};

const NS: u64 = 1_000;
const US: u64 = 1_000_000;
const MS: u64 = 1_000_000_000;
const S: u64 = 1_000_000_000_000;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;

const fn size(min: u64, max: u64, multiple: u64) -> Kind {
    Kind::Size { min, max, multiple }
}
const fn time(min: u64, max: u64) -> Kind {
    Kind::Time { min, max }
}
const fn count(min: u64, max: u64) -> Kind {
    Kind::Count { min, max }
}
const fn key(path: &'static str, kind: Kind, absent: Absent, meaning: &'static str) -> Key {
    Key {
        path,
        kind,
        absent,
        meaning,
    }
}

const MEMORY_RATE: Kind = Kind::Rate {
    min: 1_000_000,
    max: 1_000_000_000_000,
};
const ENTRY: Kind = Kind::Ratio {
    min: 1.0,
    max: 64.0,
};
const UNIT: Kind = size(4 * KIB, 64 * MIB, 4 * KIB);
const REPLACEMENTS: Kind = Kind::Choice(&["lru", "fifo", "clock", "2q", "random"]);
const DATA_TIERS: Kind = Kind::Choice(&["sram", "dram", "hmb"]);

/// All keys in the order in which they are shown.
#[rustfmt::skip]
pub(in crate::spec) const KEYS: &[Key] = &[
    key("name", Kind::Text, Required,
        "Name for people"),
    // The reverse map says in 31 bits which 4 KiB a slot holds: 8 TiB.
    key("capacity", size(MIB, 8 * TIB, 4 * KIB), Required,
        "User capacity"),
    // The link.
    key("link.pcie", Kind::Pcie, Required,
        "PCIe generation and width; the rate follows after line coding"),
    key("link.rate", Kind::Rate { min: 1_000_000, max: 256_000_000_000 }, From("the rate of `link.pcie`"),
        "Rate of one direction, in place of the one `link.pcie` gives"),
    key("link.max_payload", size(128, 4 * KIB, 128), Is("256B"),
        "Largest payload of one packet (MPS)"),
    key("link.packet_overhead", size(0, 64, 1), Is("24B"),
        "Framing, sequence number, header and LCRC of one packet"),
    key("link.one_way", time(0, 100 * US), Is("200ns"),
        "Time of flight of one packet, one way"),
    key("link.host_memory", time(0, 100 * US), Is("500ns"),
        "What the host's memory takes to answer a DMA read"),
    // The host's own share.
    key("host.submit", time(0, MS), Is("1us"),
        "From the application's submission to the doorbell write"),
    key("host.complete", time(0, MS), Is("2us"),
        "From the completion entry's arrival to the application"),
    // The controller.
    key("controller.cores", count(1, 64), Is("1"),
        "Firmware cores that share the commands"),
    key("controller.read", time(0, MS), Required,
        "Core time of a read command's first 4 KiB"),
    key("controller.write", time(0, MS), Required,
        "Core time of a write command's first 4 KiB"),
    key("controller.next_slot", time(0, MS), Is("100ns"),
        "Core time of each further 4 KiB"),
    key("controller.flush", time(0, 10 * MS), Is("5us"),
        "Core time of a flush"),
    key("controller.trim", time(0, 10 * MS), Is("5us"),
        "Core time of a deallocate"),
    key("controller.map_fill", time(0, MS), Is("1us"),
        "Core time of starting one map fill (a map miss)"),
    key("controller.command_slots", count(1, 65_536), Is("256"),
        "Commands the drive works on at once"),
    key("controller.arbitration_burst", count(1, 128), Is("8"),
        "Commands fetched from one submission queue before the next has its turn"),
    // The flash array.
    key("nand.cell", Kind::Choice(&["slc", "mlc", "tlc", "qlc"]), Required,
        "Bits per cell, by name"),
    key("nand.channels", count(1, 64), Required,
        "Channels (independent buses)"),
    key("nand.dies_per_channel", count(1, 64), Required,
        "Dies on each channel"),
    key("nand.planes", count(1, 8), Is("2"),
        "Planes of a die"),
    key("nand.blocks_per_plane", count(4, 1 << 20), From("`capacity`, `ftl.overprovisioning` and the superblocks kept aside"),
        "Blocks of a plane; one superblock is the block of one number on all dies and planes"),
    key("nand.pages_per_block", count(1, 16_384), Required,
        "Pages of a block, all page types counted; a multiple of the bits per cell"),
    key("nand.page_size", size(4 * KIB, 64 * KIB, 4 * KIB), Is("16KiB"),
        "User bytes of a page"),
    key("nand.read", Kind::PageTimes { min: 100 * NS, max: 10 * MS }, Required,
        "Array read time: one for all page types, or a list from lower to top page"),
    key("nand.program", Kind::PageTimes { min: NS, max: 100 * MS }, Required,
        "Array program time: a list by page type, or one time, which is a page's, or with `nand.one_shot` a whole word line's"),
    key("nand.one_shot", Kind::Flag, Is("false"),
        "All pages of a word line are programmed by one operation"),
    key("nand.erase", time(US, S), Is("5ms"),
        "Block erase time"),
    key("nand.slc_read", time(100 * NS, 10 * MS), Is("30us"),
        "Array read time in single-bit mode"),
    key("nand.slc_program", time(NS, 100 * MS), Is("300us"),
        "Array program time in single-bit mode"),
    key("nand.channel_mt_s", Kind::Transfers { min: 40_000_000, max: 4_800_000_000 }, Required,
        "Rate of a channel, one byte a transfer"),
    key("nand.codeword", size(4 * KIB, 8 * KIB, 1), Is("4608B"),
        "Bytes on the bus for each 4 KiB of user data, parity included"),
    key("nand.command", time(0, 100 * US), Is("300ns"),
        "Command and address cycles before an array operation"),
    key("nand.ecc", time(0, MS), Is("2us"),
        "Decoding after the transfer"),
    key("nand.cache_read", Kind::Flag, Is("true"),
        "The die reads the next page while the last one's data waits for, or is on, the bus"),
    key("nand.suspend.program", time(0, 10 * MS), Is("20us"),
        "From suspend to ready during a program"),
    key("nand.suspend.erase", time(0, 10 * MS), Is("50us"),
        "From suspend to ready during an erase"),
    key("nand.suspend.resume", time(0, 10 * MS), Is("5us"),
        "Added to the remaining time on resume"),
    key("nand.suspend.max_per_operation", count(0, 1_000), Is("8"),
        "Suspensions of one operation before it is left alone; 0 turns suspend off"),
    // The flash translation layer.
    key("ftl.overprovisioning", Kind::Ratio { min: 0.0, max: 16.0 }, Is("0.07"),
        "Physical over user capacity, minus one; map, free reserve and single-bit superblocks not counted"),
    key("ftl.gc_policy", Kind::Choice(&["greedy", "fifo", "cost-benefit", "d-choices"]), Is("greedy"),
        "How a superblock is chosen for cleaning"),
    key("ftl.gc_choices", count(1, 1_024), Is("10"),
        "Superblocks compared by `d-choices`"),
    key("ftl.gc_start_superblocks", count(3, 4_096), Is("4"),
        "Free superblocks at or below which cleaning starts"),
    key("ftl.gc_reserve_superblocks", count(2, 4_095), Is("2"),
        "Free superblocks at or below which only cleaning may write"),
    key("ftl.gc_own_stream", Kind::Flag, Is("true"),
        "Relocated data goes to a stream of its own"),
    key("ftl.hot_cold_streams", Kind::Flag, Is("false"),
        "Rewritten and first-written addresses go to two streams"),
    key("ftl.wear_dynamic", Kind::Flag, Is("true"),
        "The free superblock with the fewest erases is opened first"),
    key("ftl.wear_static_threshold", count(0, 1_000_000), Is("0"),
        "Difference of erase counts that moves cold data; 0 turns static wear levelling off"),
    key("ftl.slc_superblocks", count(0, 65_536), Is("0"),
        "Superblocks in single-bit mode as a write cache"),
    key("ftl.slc_idle", time(0, 3_600 * S), Is("1s"),
        "Idle time after which the single-bit cache is folded"),
    // Memories.
    key("tier.sram.size", size(KIB, 1 << 30, 1), Required,
        "Size of the controller's SRAM"),
    key("tier.sram.access", time(0, MS), Is("10ns"),
        "Latency of one access to it"),
    key("tier.sram.rate", MEMORY_RATE, Is("8GB/s"),
        "Its bandwidth"),
    key("tier.dram.size", size(KIB, TIB, 1), Required,
        "Size of the drive's own DRAM"),
    key("tier.dram.access", time(0, MS), Is("80ns"),
        "Latency of one access to it"),
    key("tier.dram.rate", MEMORY_RATE, Is("3.2GB/s"),
        "Its bandwidth"),
    key("tier.hmb.preferred", size(4 * KIB, 16 * TIB, 4 * KIB), Required,
        "Host memory the drive asks for (HMPRE)"),
    key("tier.hmb.min", size(4 * KIB, 16 * TIB, 4 * KIB), Required,
        "Least it can use (HMMIN)"),
    key("tier.hmb.min_descriptor", size(0, 16 * TIB, 4 * KIB), Is("0B"),
        "Smallest useful piece (HMMINDS); 0 for no limit"),
    key("tier.hmb.max_descriptors", count(0, 65_535), Is("0"),
        "Most pieces (HMMAXD); 0 for no limit"),
    key("tier.hmb.rounding", Kind::Choice(&["none", "power-of-two"]), Is("none"),
        "How much of the grant is used: everything, or the largest power of two that fits"),
    key("tier.hmb.stalls_core", Kind::Flag, Is("false"),
        "The firmware core waits for each look-up in host memory"),
    // Roles.
    key("role.map.tiers", Kind::Words(&["sram", "dram", "hmb"]), Required,
        "Memories that hold the map cache, nearest first"),
    key("role.map.size.sram", size(KIB, 1 << 30, 1), From("what other roles leave of it"),
        "Its share of the SRAM"),
    key("role.map.size.dram", size(KIB, TIB, 1), From("what other roles leave of it"),
        "Its share of the DRAM"),
    key("role.map.unit", UNIT, Is("4KiB"),
        "Caching unit on every tier, in map as kept in flash: 4 KiB are the entries of 4 MiB"),
    key("role.map.unit.sram", UNIT, From("`role.map.unit`"),
        "Caching unit in SRAM"),
    key("role.map.unit.dram", UNIT, From("`role.map.unit`"),
        "Caching unit in DRAM"),
    key("role.map.unit.hmb", UNIT, From("`role.map.unit`"),
        "Caching unit in host memory"),
    key("role.map.bytes_per_page", ENTRY, Is("4"),
        "Memory taken by the entry of a 4 KiB page, on every tier, bytes"),
    key("role.map.bytes_per_page.sram", ENTRY, From("`role.map.bytes_per_page`"),
        "The same in SRAM, bytes"),
    key("role.map.bytes_per_page.dram", ENTRY, From("`role.map.bytes_per_page`"),
        "The same in DRAM, bytes"),
    key("role.map.bytes_per_page.hmb", ENTRY, From("`role.map.bytes_per_page`"),
        "The same in host memory, bytes"),
    key("role.map.replacement", REPLACEMENTS, Is("lru"),
        "Which unit of a full cache gives way"),
    key("role.map.exclusive", Kind::Flag, Is("false"),
        "A unit is kept on one tier only"),
    key("role.map.fills_in_flight", count(1, 4_096), Is("64"),
        "Translation pages read at once for waiting requests; further misses wait"),
    key("role.map.background_reads", count(0, 4_096), Is("4"),
        "Flash reads in flight, for each tier, that complete units larger than the page a request waited for"),
    key("role.read_cache.tier", DATA_TIERS, Is("sram"),
        "Memory that holds data read before"),
    key("role.read_cache.size", size(0, TIB, 1), Required,
        "How much of it; 0 turns the read cache off"),
    key("role.read_cache.replacement", REPLACEMENTS, Is("lru"),
        "Which 4 KiB give way"),
    key("role.write_buffer.tier", Kind::Choice(&["sram", "dram", "hmb", "slc"]), Is("sram"),
        "Memory that holds data not yet in flash; with `slc` a write is done once it is in the single-bit cache"),
    key("role.write_buffer.size", size(4 * KIB, TIB, 1), Required,
        "How much of it; with `slc`, SRAM that data passes on its way"),
    key("role.write_buffer.high", Kind::Ratio { min: 0.0, max: 1.0 }, Is("0"),
        "Share of the buffer at which writing back starts; 0: as soon as a program operation is full"),
    key("role.write_buffer.low", Kind::Ratio { min: 0.0, max: 1.0 }, Is("0"),
        "Share of the buffer at which writing back stops"),
];
