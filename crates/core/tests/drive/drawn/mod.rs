//! Drive files drawn at random over all keys, small enough that a power cut takes a millisecond.

use lodger_core::DriveSpec;
use lodger_core::rng::Rng;
use lodger_core::spec::KeyReference;
use std::collections::BTreeMap;
use std::sync::LazyLock;

const TIMES: &[&str] = &["0ns", "1ns", "100ns", "3us", "50us", "1ms"];
const RATES: &[&str] = &["1MB/s", "300MB/s", "3.2GB/s", "1000GB/s"];
const FLAGS: &[&str] = &["true", "false"];
const POLICIES: &[&str] = &["lru", "fifo", "clock", "2q", "random", "arc", "s3-fifo"];
const SIZES: &[&str] = &[
    "4KiB", "8KiB", "32KiB", "96KiB", "256KiB", "600KiB", "1MiB", "3MiB",
];
const READS: &[&str] = &["100ns", "3436421ps", "50us", "1ms"];
const PROGRAMS: &[&str] = &["1ns", "300us", "1.5ms", "20ms"];
const SPREADS: &[&str] = &["0", "0.05", "0.3"];
const RATES_OF_ERRORS: &[&str] = &["0", "0.0000001", "0.002", "0.009"];
const POWERS: &[&str] = &["0", "0.5", "2.05"];
const FAILURES: &[&str] = &["0", "0.001", "0.05", "0.5"];
const COUNTS: &[&str] = &["1", "2", "4", "64"];

/// What each key is drawn from, apart from the shape of the flash and what follows from it.
const VALUES: &[(&str, &[&str])] = &[
    ("link.pcie", &["1.0 x1", "3.0 x2", "4.0 x4", "5.0 x16"]),
    ("link.ufs", &["HS-G1 x1", "HS-G3 x2"]),
    ("link.rate", &["1MB/s", "500MB/s", "256GB/s"]),
    ("link.max_payload", &["128B", "256B", "4KiB"]),
    ("link.packet_overhead", &["0B", "24B", "64B"]),
    ("link.one_way", &["0ns", "200ns", "30us"]),
    ("link.host_memory", &["0ns", "500ns", "30us"]),
    ("host.submit", &["0ns", "1us", "1ms"]),
    ("host.complete", &["0ns", "2us", "1ms"]),
    ("host.memory.rate", RATES),
    ("host.memory.load", &["0", "0.5", "0.99"]),
    ("host.max_request", &["4KiB", "12KiB", "64KiB", "2MiB"]),
    ("host.dma.rate", RATES),
    ("host.dma.start", TIMES),
    ("host.dma.register", &["0ns", "500ns", "50us"]),
    ("host.dma.poll", TIMES),
    ("host.cpu.wc_buffers", &["0", "10", "64"]),
    ("host.cpu.cache", &["64B", "1KiB", "32MiB"]),
    ("host.cpu.store", &["0ns", "1ns", "1us"]),
    ("host.cpu.load", &["0ns", "1ns", "1us"]),
    ("host.cpu.flush_line", &["0ns", "5ns"]),
    ("host.cpu.fence", &["0ns", "20ns"]),
    ("host.cpu.call", TIMES),
    ("controller.cores", COUNTS),
    ("controller.read", TIMES),
    ("controller.write", TIMES),
    ("controller.next_slot", &["0ns", "100ns"]),
    ("controller.flush", TIMES),
    ("controller.trim", TIMES),
    ("controller.map_fill", TIMES),
    ("controller.command_slots", &["1", "2", "4", "256"]),
    ("controller.arbitration_burst", &["1", "8"]),
    ("controller.max_transfer", &["4KiB", "16KiB", "1MiB"]),
    ("controller.read_ahead.window", &["4KiB", "16KiB", "24KiB"]),
    ("controller.read_ahead.streams", &["1", "2"]),
    ("controller.read_ahead.after", &["1", "2"]),
    ("nand.read", READS),
    ("nand.program", PROGRAMS),
    ("nand.one_shot", FLAGS),
    ("nand.erase", &["1us", "5ms", "100ms"]),
    ("nand.slc_read", READS),
    ("nand.slc_program", PROGRAMS),
    ("nand.channel_mt_s", &["40", "533", "4800"]),
    ("nand.codeword", &["4096B", "4608B", "8192B"]),
    ("nand.command", &["0ns", "300ns"]),
    ("nand.ecc", &["0ns", "2us"]),
    ("nand.cache_read", FLAGS),
    ("nand.cache_program", FLAGS),
    ("nand.suspend.program", TIMES),
    ("nand.suspend.erase", TIMES),
    ("nand.suspend.resume", TIMES),
    ("nand.suspend.max_per_operation", &["0", "1", "8", "1000"]),
    ("nand.variation.read", SPREADS),
    ("nand.variation.program", SPREADS),
    ("nand.variation.erase", SPREADS),
    ("nand.variation.block", SPREADS),
    ("nand.variation.die", SPREADS),
    ("nand.ageing.endurance", &["3", "40", "3000"]),
    ("nand.ageing.erased", &["0", "5", "3000"]),
    ("nand.ageing.age_days", &["0", "0.5", "400"]),
    ("nand.ageing.acceleration", &["1", "3", "1000000"]),
    ("nand.ageing.errors.base", RATES_OF_ERRORS),
    ("nand.ageing.errors.wear", RATES_OF_ERRORS),
    ("nand.ageing.errors.wear_power", POWERS),
    ("nand.ageing.errors.retention", RATES_OF_ERRORS),
    ("nand.ageing.errors.retention_wear_power", POWERS),
    ("nand.ageing.errors.retention_power", POWERS),
    ("nand.ageing.errors.disturb", RATES_OF_ERRORS),
    ("nand.ageing.errors.disturb_wear_power", POWERS),
    ("nand.ageing.errors.disturb_power", POWERS),
    ("nand.ageing.errors.spread", SPREADS),
    ("nand.ageing.correctable", &["0", "0.004", "0.01", "0.5"]),
    ("nand.ageing.decode", TIMES),
    ("nand.ageing.retries", &["0", "1", "3", "60"]),
    ("nand.ageing.retry_gain", &["0.5", "0.9", "1"]),
    ("nand.ageing.soft_reads", &["0", "1", "16"]),
    ("nand.ageing.soft_correctable", &["0.004", "0.012", "0.5"]),
    ("nand.ageing.soft_decode", TIMES),
    ("nand.ageing.refresh", &["0", "1", "3"]),
    ("nand.ageing.spare_blocks", &["0", "1", "8", "500"]),
    ("nand.ageing.factory_bad", &["0", "0.01", "0.2"]),
    ("nand.ageing.program_failures", FAILURES),
    ("nand.ageing.erase_failures", FAILURES),
    ("ftl.overprovisioning", &["0.07", "0.2", "0.6", "1.5"]),
    (
        "ftl.gc_policy",
        &["greedy", "fifo", "cost-benefit", "d-choices"],
    ),
    ("ftl.gc_choices", COUNTS),
    ("ftl.gc_start_superblocks", &["3", "4", "6"]),
    ("ftl.gc_reserve_superblocks", &["2", "3", "5"]),
    ("ftl.gc_own_stream", FLAGS),
    ("ftl.hot_cold_streams", FLAGS),
    ("ftl.wear_dynamic", FLAGS),
    ("ftl.wear_static_threshold", &["0", "2", "4"]),
    ("ftl.rated_written", &["0B", "1GiB"]),
    ("ftl.rated_cycles", &["0", "3000"]),
    ("ftl.map_slc", FLAGS),
    ("ftl.slc_superblocks", &["0", "1", "2", "3", "5"]),
    ("ftl.slc_dynamic", &["0", "0.3", "1"]),
    ("ftl.slc_idle", &["0ns", "10us", "100ms"]),
    ("tier.sram.size", SIZES),
    ("tier.sram.access", TIMES),
    ("tier.sram.rate", RATES),
    ("tier.dram.size", SIZES),
    ("tier.dram.access", TIMES),
    ("tier.dram.rate", RATES),
    ("tier.hmb.preferred", SIZES),
    ("tier.hmb.min", SIZES),
    ("tier.hmb.min_descriptor", &["0B", "4KiB"]),
    ("tier.hmb.max_descriptors", &["0", "8"]),
    ("tier.hmb.rounding", &["none", "power-of-two"]),
    ("tier.hmb.stalls_core", FLAGS),
    ("tier.hmb.integrity", &["none", "crc", "mac"]),
    ("tier.hmb.check", TIMES),
    ("tier.hmb.check_rate", RATES),
    ("tier.hmb.check_in_path", FLAGS),
    ("tier.pm.size", SIZES),
    ("tier.pm.access", TIMES),
    ("tier.pm.rate", RATES),
    ("tier.cxl.size", SIZES),
    ("tier.cxl.access", TIMES),
    ("tier.cxl.rate", RATES),
    ("tier.cxl.sharers", &["1", "3", "1024"]),
    ("tier.cxl.persistent", FLAGS),
    (
        "role.map.tiers",
        &[
            "sram",
            "dram",
            "hmb",
            "sram, hmb",
            "sram, dram",
            "hmb, sram, dram",
            "dram, hmb",
            "cxl",
            "sram, cxl",
        ],
    ),
    ("role.map.size.sram", SIZES),
    ("role.map.size.dram", SIZES),
    ("role.map.size.cxl", SIZES),
    ("role.map.unit", &["4KiB", "8KiB", "12KiB", "64KiB"]),
    ("role.map.unit.sram", &["4KiB", "12KiB"]),
    ("role.map.unit.dram", &["4KiB", "12KiB"]),
    ("role.map.unit.cxl", &["4KiB", "12KiB"]),
    ("role.map.unit.hmb", &["4KiB", "12KiB"]),
    ("role.map.bytes_per_page", &["1", "4", "5.5", "8"]),
    ("role.map.bytes_per_page.sram", &["3.2", "4", "64"]),
    ("role.map.bytes_per_page.dram", &["3.2", "4", "64"]),
    ("role.map.bytes_per_page.cxl", &["3.2", "4", "64"]),
    ("role.map.bytes_per_page.hmb", &["3.2", "4", "64"]),
    ("role.map.encoding", &["flat", "runs", "learned"]),
    ("role.map.encoding.sram", &["flat", "runs", "learned"]),
    ("role.map.encoding.dram", &["flat", "runs", "learned"]),
    ("role.map.encoding.cxl", &["flat", "runs", "learned"]),
    ("role.map.encoding.hmb", &["flat", "runs", "learned"]),
    ("role.map.replacement", POLICIES),
    ("role.map.exclusive", FLAGS),
    ("role.map.fills_in_flight", COUNTS),
    ("role.map.background_reads", &["0", "1", "4"]),
    ("role.read_cache.tier", &["sram", "dram", "hmb", "cxl"]),
    ("role.read_cache.size", &["0B", "4KiB", "32KiB", "256KiB"]),
    ("role.read_cache.replacement", POLICIES),
    ("role.read_cache.whole_commands", FLAGS),
    (
        "role.write_buffer.tier",
        &["sram", "dram", "hmb", "slc", "pm", "cxl"],
    ),
    ("role.write_buffer.size", SIZES),
    ("role.write_buffer.high", &["0", "0.5", "0.75", "1"]),
    ("role.write_buffer.low", &["0", "0.25", "0.5"]),
    ("role.write_buffer.acknowledge", &["buffered", "programmed"]),
    ("role.write_buffer.pacing", &["none", "drain"]),
    ("role.write_buffer.log", &["none", "pm"]),
    (
        "role.write_buffer.log_size",
        &["4KiB", "20KiB", "96KiB", "1MiB"],
    ),
    ("role.window.tier", &["pm", "cxl"]),
    ("role.window.size", &["4KiB", "64KiB"]),
    ("role.window.entries", &["1", "8"]),
    ("role.window.gate", &["refuse", "hold"]),
    ("role.window.call", TIMES),
    ("role.window.page", TIMES),
    ("role.window.read_dma", TIMES),
    ("power.capacitors", COUNTS),
    ("power.capacitance_uf", &["0.1", "270"]),
    ("power.rail_v", &["12", "35"]),
    ("power.cutoff_v", &["0", "5"]),
    ("power.efficiency", &["0.5", "1"]),
    ("power.draw_w", &["0.5", "6"]),
    ("power.detect", &["0ns", "10us"]),
    ("hpb.enabled", FLAGS),
    ("hpb.protocol", &["paper", "jedec"]),
    ("hpb.group", &["64KiB", "1MiB"]),
    ("hpb.region", &["64KiB", "1MiB", "2MiB"]),
    ("hpb.control", &["device", "host"]),
    ("hpb.version", &["1.0", "2.0"]),
    ("hpb.max_blocks", &["1", "8", "255"]),
    ("hpb.write_buffer", TIMES),
    ("hpb.pinned_regions", &["0", "1", "6"]),
    ("hpb.recommend_misses", &["1", "4"]),
    ("hpb.host_cache", SIZES),
    ("hpb.give_back", &["0B", "4KiB", "1MiB"]),
    ("hpb.give_back_at", TIMES),
    ("hpb.give_back_for", TIMES),
    ("hpb.replacement", POLICIES),
    ("hpb.boot", &["warm", "load"]),
    ("hpb.idle", &["0ns", "1us", "1ms"]),
    ("hpb.check", TIMES),
    ("hpb.read_buffer", TIMES),
    ("hpb.stale_pages", &["1", "4", "4096"]),
    ("hpb.integrity", &["none", "crc", "mac"]),
    ("controller.namespaces", &["1", "128"]),
];

/// Keys drawn together: the shape of the flash.
const SHAPE: [&str; 9] = [
    "name",
    "capacity",
    "nand.cell",
    "nand.channels",
    "nand.dies_per_channel",
    "nand.planes",
    "nand.blocks_per_plane",
    "nand.pages_per_block",
    "nand.page_size",
];

/// Keys that every drive has.
const ALWAYS: [&str; 10] = [
    "link.pcie",
    "controller.read",
    "controller.write",
    "nand.read",
    "nand.program",
    "nand.channel_mt_s",
    "tier.sram.size",
    "role.map.tiers",
    "role.write_buffer.size",
    "ftl.overprovisioning",
];

/// Tables that a drive may do without, and the keys they cannot do without.
const TABLES: [(&str, &[&str]); 12] = [
    ("host.dma.", &["host.dma.rate"]),
    ("controller.read_ahead.", &["controller.read_ahead.window"]),
    ("nand.suspend.", &["nand.suspend.program"]),
    ("nand.variation.", &["nand.variation.read"]),
    ("nand.ageing.", &["nand.ageing.endurance"]),
    ("tier.dram.", &["tier.dram.size"]),
    ("tier.hmb.", &["tier.hmb.preferred", "tier.hmb.min"]),
    ("tier.pm.", &["tier.pm.size"]),
    ("tier.cxl.", &["tier.cxl.size"]),
    ("role.read_cache.", &["role.read_cache.size"]),
    (
        "role.window.",
        &[
            "role.window.size",
            "role.window.page",
            "role.window.read_dma",
        ],
    ),
    ("hpb.", &["hpb.enabled"]),
];

const POWER: [&str; 5] = [
    "power.capacitors",
    "power.capacitance_uf",
    "power.rail_v",
    "power.cutoff_v",
    "power.draw_w",
];

/// The keys of a drive file and their values.
pub type Keys = BTreeMap<&'static str, String>;

/// A drive, if the keys go together.
pub fn build(keys: &Keys) -> Result<DriveSpec, String> {
    let parsed = lodger_core::spec::parse(&text(keys), "drawn", &[], &|_: &str| None);
    match parsed {
        Ok(parsed) => Ok(parsed.spec),
        Err(error) => Err(error.to_string()),
    }
}

/// As a drive file.
pub fn text(keys: &Keys) -> String {
    static REFERENCE: LazyLock<Vec<KeyReference>> = LazyLock::new(lodger_core::spec::reference);
    let mut out = String::new();
    let mut sources = String::from("[sources]\n");
    for (key, value) in keys {
        let known = REFERENCE.iter().find(|row| row.key == *key);
        let unit = known.expect("a key of drive files").unit;
        let value = match unit {
            "flag" | "number" | "MT/s" => value.clone(),
            "list of words" => format!("[{}]", quoted_list(value)),
            _ => format!("\"{value}\""),
        };
        out += &format!("{key} = {value}\n");
        if !matches!(unit, "flag" | "word" | "text" | "list of words") {
            sources += &format!("\"{key}\" = {{ kind = \"assumed\", from = \"drawn\" }}\n");
        }
    }
    out + &sources
}

fn quoted_list(words: &str) -> String {
    let words = words.split(", ").map(|word| format!("\"{word}\""));
    words.collect::<Vec<_>>().join(", ")
}

fn one<'a>(rng: &mut Rng, of: &[&'a str]) -> &'a str {
    of[rng.below(of.len() as u32) as usize]
}

fn values(key: &str) -> &'static [&'static str] {
    let found = VALUES.iter().find(|(known, _)| *known == key);
    found.expect("a key that is drawn").1
}

fn shape(rng: &mut Rng, keys: &mut Keys) {
    let cells = ["slc", "mlc", "tlc", "qlc"];
    let (bits, counts, superblock_kib) = loop {
        let bits = 1 + rng.below(4);
        let counts = [
            1 + rng.below(3),
            1 + rng.below(3),
            [1, 2, 2, 4, 8][rng.below(5) as usize],
            [4, 4, 8, 16, 64][rng.below(5) as usize],
            bits * [2, 2, 2, 3, 4, 8, 16][rng.below(7) as usize],
        ];
        let superblock_kib: u32 = counts.iter().product();
        if superblock_kib <= 2048 {
            break (bits, counts, superblock_kib);
        }
    };
    let [channels, dies, planes, page_kib, pages] = counts;
    let capacity_kib = superblock_kib * (2 + rng.below(40)) + 4 * rng.below(8);
    let capacity_kib = capacity_kib.clamp(1024, 16 << 10);
    let mut put = |key, value: String| keys.insert(key, value);
    put("name", "Drawn".to_owned());
    put("nand.cell", cells[bits as usize - 1].to_owned());
    put("nand.channels", channels.to_string());
    put("nand.dies_per_channel", dies.to_string());
    put("nand.planes", planes.to_string());
    put("nand.page_size", format!("{page_kib}KiB"));
    put("nand.pages_per_block", pages.to_string());
    put("capacity", format!("{capacity_kib}KiB"));
    if rng.below(8) == 0 {
        put("nand.blocks_per_plane", (20 + rng.below(200)).to_string());
    }
}

/// Draws until the keys go together.
pub fn draw(rng: &mut Rng) -> (Keys, DriveSpec) {
    loop {
        let mut keys = Keys::new();
        shape(rng, &mut keys);
        let there: Vec<bool> = TABLES.iter().map(|_| rng.below(3) == 0).collect();
        let has_power = rng.below(8) == 0;
        // Some drives differ from the defaults in a few keys, others in nearly all.
        let density = 1 + rng.below(6);
        for (key, of) in VALUES {
            let table = TABLES.iter().position(|(table, _)| key.starts_with(table));
            let (allowed, needed) = match table {
                Some(at) => (there[at], TABLES[at].1.contains(key)),
                None if key.starts_with("power.") => (has_power, POWER.contains(key)),
                None => (true, ALWAYS.contains(key)),
            };
            if allowed && (needed || rng.below(8) < density) {
                keys.insert(key, one(rng, of).to_owned());
            }
        }
        // One table says either what holds everywhere, or what holds on each memory.
        for whole in ["unit", "bytes_per_page", "encoding"] {
            let whole = format!("role.map.{whole}");
            if rng.below(2) == 0 {
                keys.remove(whole.as_str());
            } else {
                keys.retain(|key, _| *key == whole || !key.starts_with(&whole));
            }
        }
        for memory in ["dram", "hmb", "cxl"] {
            let (table, own) = (format!("tier.{memory}."), format!(".{memory}"));
            if !keys.keys().any(|key| key.starts_with(&table)) {
                keys.retain(|key, _| !key.starts_with("role.map.") || !key.ends_with(&own));
            }
        }
        if rng.below(3) != 0 {
            keys.remove("link.ufs");
        }
        for _ in 0..80 {
            match build(&keys) {
                Ok(spec) => {
                    let flash = spec.layout().superblocks() * spec.layout().slots_per_superblock;
                    if flash <= 64 << 8 {
                        return (keys, spec);
                    }
                    break;
                }
                Err(error) if !mend(rng, &mut keys, &error) => break,
                Err(_) => {}
            }
        }
    }
}

/// Draws the key anew that a message names first, or leaves it out. Returns false where it names none
/// that was given.
fn mend(rng: &mut Rng, keys: &mut Keys, error: &str) -> bool {
    let named = error.split('`').nth(1).unwrap_or_default();
    let Some((&key, _)) = keys.iter().find(|(key, _)| **key == named) else {
        return false;
    };
    if SHAPE.contains(&key) {
        shape(rng, keys);
        return true;
    }
    let needed = ALWAYS.contains(&key) || TABLES.iter().any(|(_, needed)| needed.contains(&key));
    let needed = needed || POWER.contains(&key);
    if needed || rng.below(2) == 0 {
        keys.insert(key, one(rng, values(key)).to_owned());
    } else {
        keys.remove(key);
    }
    true
}

/// Whether the drive can do without a key.
pub fn is_optional(key: &str) -> bool {
    !SHAPE.contains(&key)
        && !ALWAYS.contains(&key)
        && !POWER.contains(&key)
        && !TABLES.iter().any(|(_, needed)| needed.contains(&key))
}

/// Keys of drive files that are never drawn, and keys drawn that there are not.
pub fn missing() -> Vec<String> {
    let reference = lodger_core::spec::reference();
    let drawn = || VALUES.iter().map(|(key, _)| *key).chain(SHAPE);
    let known = |key: &str| reference.iter().any(|row| row.key == key);
    let forgotten = reference
        .iter()
        .map(|row| row.key)
        .filter(|key| !drawn().any(|k| k == *key));
    let unknown = drawn().filter(|key| !known(key));
    forgotten.chain(unknown).map(str::to_owned).collect()
}
