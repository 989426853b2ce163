//! Drives drawn at random, with what is planted in them. Shares no code with the prober.
//!
//! What is planted is what an outside observer could see at best, which is not always what the drive
//! file says. Beside each kind stands what counts as right.
//!
//! Beside a drive's inside, what lies around it is drawn: noise that wanders, work of the drive's own after
//! rest, a host that can turn host memory on and off and nothing else (`host.rs`).
//!
//! Not drawn, because commands and latencies cannot show it or the prober has no way to it: map entries
//! in the host's driver (HPB: the prober speaks no UFS), compressed maps (they have no fixed size), the
//! byte window, and data moved by the host's DMA engine.

pub mod calibration;
pub mod host;

use lodger_core::Precondition;
use lodger_core::rng::Rng;
use lodger_run::{Drive, HmbChoice, RunConfig};
use std::fmt::Write as _;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// Least host memory that a drive takes.
const HMB_MIN: u64 = 4 * MIB;
/// The same of a drive that asks for little.
const LITTLE: u64 = 256 * KIB;

/// Where a role was put, and how large it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Planted {
    /// As the report names it.
    pub tier: &'static str,
    /// Bytes, where the role has a size.
    pub bytes: Option<f64>,
}

impl Planted {
    fn new(tier: &'static str, bytes: u64) -> Self {
        Planted {
            tier,
            bytes: Some(bytes as f64),
        }
    }

    /// Where no size shows, or there is none.
    fn sizeless(tier: &'static str) -> Self {
        Planted { tier, bytes: None }
    }
}

/// A drive and what is in it.
#[derive(Clone, Debug)]
pub struct Subject {
    /// How to run it.
    pub config: RunConfig,
    /// Noise of its latencies, as a multiple of the default.
    pub noise: f64,
    /// What lies around it.
    pub around: host::Around,
    /// The role `map`.
    pub map: Planted,
    /// The role `read_cache`.
    pub read_cache: Planted,
    /// The role `write_buffer`.
    pub write_buffer: Planted,
    /// Its drive file.
    pub text: String,
}

struct Draw(Rng);

/// Drawn apart, so that what else a seed stands for stays the same.
struct Rare {
    /// Read times of page types, us; empty for one time of all.
    page_types: bool,
    /// Bytes of an entry in memory of the drive's own.
    entry: u64,
    /// The drive's flash has one bit a cell.
    single_bit: bool,
    /// Of the write buffer: small, huge, or neither.
    buffer: Option<u64>,
    /// Bytes of one program operation of a die.
    least: u64,
    /// Translation pages of a unit in host memory may be so many.
    unit_most: u64,
    /// What host memory takes to answer.
    far: Option<f64>,
    /// Host memory that the drive asks for where that is less than what its own memory may hold.
    little: Option<u64>,
    /// A read cache in SRAM, whatever memory there is.
    read_cache: Option<u64>,
    /// How room in the write buffer is given out.
    pacing: &'static str,
    draw: Draw,
}

fn rare(seed: u64) -> Rare {
    let mut draw = Draw(Rng::new(seed ^ 0xFA2_0FF));
    let mut tight = Draw(Rng::new(seed ^ 0x7167_4711));
    let little = tight
        .chance(12)
        .then(|| tight.size(LITTLE, HMB_MIN, 64 * KIB));
    Rare {
        little,
        read_cache: (little.is_some() && tight.chance(70) || tight.chance(8))
            .then(|| tight.size(64 * KIB, 4 * MIB, 4 * KIB)),
        pacing: tight.of(&["none", "drain"]),
        page_types: draw.chance(45),
        entry: draw.of(&[4, 4, 4, 4, 5, 6, 8]),
        single_bit: draw.chance(5),
        buffer: match draw.below(12) {
            0 => Some(draw.size(12 * KIB, 512 * KIB, 4 * KIB)),
            _ if tight.chance(15) => Some(tight.size(24 * KIB, MIB, 4 * KIB)),
            1 => Some(draw.size(64 * MIB, 800 * MIB, MIB)),
            _ => None,
        },
        least: 0,
        unit_most: draw.of(&[64, 64, 64, 512, 1024]),
        far: draw.chance(20).then(|| draw.us(2, 26)),
        draw,
    }
}

impl Draw {
    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.0.below(list.len() as u32) as usize]
    }

    fn below(&mut self, n: u32) -> u32 {
        self.0.below(n)
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.0.below(100) < percent
    }

    /// Evenly on a logarithmic scale, a multiple of `step`.
    fn size(&mut self, from: u64, to: u64, step: u64) -> u64 {
        let share = f64::from(self.0.below(1 << 20)) / f64::from(1 << 20);
        let value = from as f64 * (to as f64 / from as f64).powf(share);
        (value as u64 / step * step).max(step)
    }

    fn us(&mut self, from: u32, to: u32) -> f64 {
        f64::from(from * 10 + self.0.below((to - from) * 10)) / 10.0
    }
}

/// How the memory given is used.
struct Memory {
    /// Host memory the drive asks for; 0 for none.
    preferred: u64,
    /// Least that it takes.
    least: u64,
    /// What it makes of what Linux gives.
    usable: u64,
    rounds: bool,
}

fn host_memory(draw: &mut Draw, little: Option<u64>) -> Memory {
    if draw.chance(30) {
        return Memory {
            preferred: 0,
            least: 0,
            usable: 0,
            rounds: false,
        };
    }
    let drawn = draw.size(8 * MIB, 200 * MIB, MIB);
    let preferred = little.unwrap_or(drawn);
    let granted = preferred.min(128 * MIB);
    let rounds = draw.chance(25);
    Memory {
        preferred,
        least: if little.is_some() { LITTLE } else { HMB_MIN },
        usable: if rounds {
            1 << granted.ilog2()
        } else {
            granted
        },
        rounds,
    }
}

/// Draws a drive.
pub fn subject(seed: u64) -> Subject {
    let mut draw = Draw(Rng::new(seed ^ 0x5EED_B11D));
    let mut rare = rare(seed);
    let capacity = draw.size(60 * GIB, 2000 * GIB, GIB);
    let host = host_memory(&mut draw, rare.little);
    let mut text = format!(
        "name = \"drawn {seed}\"\ncapacity = \"{}GiB\"\n",
        capacity / GIB
    );
    let _ = writeln!(
        text,
        "[link]\npcie = \"{}\"",
        draw.of(&["3.0 x2", "3.0 x4", "4.0 x4"])
    );
    if let Some(us) = rare.far {
        let _ = writeln!(text, "host_memory = \"{us}us\"");
    }
    controller(&mut draw, &mut text);
    let steady = draw.chance(25);
    let slc = flash(&mut draw, &mut rare, &mut text, steady);
    let dram = if draw.chance(35) {
        draw.size(128 * MIB, 2 * GIB, MIB)
    } else {
        0
    };
    let mut roles = String::new();
    let mut left = host.usable;
    let read_cache = read_cache(&mut draw, &rare, &mut roles, dram, &mut left);
    let write_buffer = write_buffer(&mut draw, &rare, &mut roles, dram, slc, &mut left);
    let integrity = draw.of(&["none", "none", "none", "crc", "mac"]);
    let (map, map_text, sram_map) = map(&mut draw, &rare, capacity, dram, left, integrity);
    let sram = 16 * MIB + sram_map;
    let _ = writeln!(text, "[tier.sram]\nsize = \"{sram}B\"");
    if dram > 0 {
        let _ = writeln!(text, "[tier.dram]\nsize = \"{dram}B\"");
    }
    if host.preferred > 0 {
        let rounding = if host.rounds { "power-of-two" } else { "none" };
        let _ = writeln!(
            text,
            "[tier.hmb]\npreferred = \"{}B\"\nmin = \"{}B\"\nrounding = \"{rounding}\"\n\
             integrity = \"{integrity}\"",
            host.preferred, host.least
        );
    }
    if roles.contains("\"pm\"") {
        text += "[tier.pm]\nsize = \"64MiB\"\n";
    }
    text += &map_text;
    text += &roles;
    let noise = f64::from(5 + draw.below(16)) / 10.0;
    let precondition = if steady {
        Precondition::Random
    } else {
        Precondition::Sequential
    };
    let config = config(&text, precondition, seed);
    Subject {
        config,
        noise,
        around: host::Around::draw(&mut rare.draw),
        map,
        read_cache,
        write_buffer,
        text,
    }
}

fn controller(draw: &mut Draw, text: &mut String) {
    let _ = writeln!(
        text,
        "[controller]\ncores = {}\nread = \"{}us\"\nwrite = \"{}us\"\nnext_slot = \"{}ns\"",
        1 + draw.below(4),
        draw.us(4, 13),
        draw.us(5, 12),
        100 + draw.below(250)
    );
}

/// How a drive of that text is run.
pub fn config(text: &str, precondition: Precondition, seed: u64) -> RunConfig {
    let name = format!("drawn-{seed}");
    let drive = Drive::parse(&name, text, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
    RunConfig {
        drive,
        hmb: HmbChoice::Negotiated,
        precondition,
        seed,
    }
}

/// Returns the superblocks in single-bit mode. A few of them run out while the prober writes; many of
/// them take all it writes, so that a drive in the steady state of random writes collects nothing. Half of
/// the drives in that state have none and pay for every write by garbage collection
/// (`drives_in_the_steady_state_clean_while_they_are_probed`).
fn flash(draw: &mut Draw, rare: &mut Rare, text: &mut String, steady: bool) -> u32 {
    let (mut cell, mut bits, mut pages, mut program) = draw.of(&[
        ("mlc", 2, 512, "900us"),
        ("tlc", 3, 768, "1.7ms"),
        ("tlc", 3, 1152, "1.1ms"),
        ("qlc", 4, 1024, "6ms"),
    ]);
    if rare.single_bit {
        (cell, bits, pages, program) = ("slc", 1, 512, "150us");
    }
    let (channels, per_channel) = (draw.of(&[2, 4, 8]), draw.of(&[1, 2, 4]));
    let (planes, page_kib) = (draw.of(&[1, 2, 4]), draw.of(&[8, 16]));
    let read = page_times(draw.us(35, 90), bits, rare);
    let one_shot = draw.chance(70) && bits > 1;
    // A buffer that holds less than that is no drive's.
    let written_at_once = if one_shot { u64::from(bits) } else { 1 };
    rare.least = planes * page_kib * KIB * written_at_once;
    let _ = writeln!(
        text,
        "[nand]\ncell = \"{cell}\"\nchannels = {channels}\ndies_per_channel = {per_channel}\nplanes = {planes}\n\
         page_size = \"{page_kib}KiB\"\npages_per_block = {pages}\nread = {read}\nprogram = \"{program}\"\n\
         one_shot = {one_shot}\nerase = \"5ms\"\nslc_read = \"{}us\"\nslc_program = \"{}us\"\n\
         channel_mt_s = {}",
        draw.us(18, 34),
        120 + draw.below(240),
        400 + draw.below(1200),
    );
    let without = if steady { 10 } else { 6 };
    let slc = match draw.below(20) {
        _ if bits == 1 => 0,
        share if share < without => 0,
        share if share < without + 5 => 2 + draw.below(6),
        _ => 16 + draw.below(32),
    };
    let _ = writeln!(
        text,
        "[ftl]\noverprovisioning = 0.{:02}\nslc_superblocks = {slc}\nslc_idle = \"{}ms\"\n\
         gc_policy = \"{}\"",
        7 + draw.below(20),
        draw.of(&[300, 1000, 1000, 5000]),
        draw.of(&["greedy", "greedy", "cost-benefit", "d-choices"]),
    );
    slc
}

/// Read times of a drive file: one, or one for each page of a cell, the slowest up to 3.5 times the fastest.
fn page_times(first: f64, bits: u32, rare: &mut Rare) -> String {
    if !rare.page_types || bits == 1 {
        return format!("\"{first}us\"");
    }
    let most = f64::from(rare.draw.us(12, 35) as u32) / 10.0;
    let times = (0..bits).map(|bit| {
        let share = f64::from(bit) / f64::from(bits - 1);
        format!("\"{:.1}us\"", first * most.powf(share))
    });
    format!("[{}]", times.collect::<Vec<_>>().join(", "))
}

fn read_cache(
    draw: &mut Draw,
    rare: &Rare,
    text: &mut String,
    dram: u64,
    hmb: &mut u64,
) -> Planted {
    let (tier, bytes, planted) = match (draw.below(10), rare.read_cache) {
        (_, Some(bytes)) => ("sram", bytes, "device"),
        (0..4, _) => return Planted::sizeless("none"),
        (4..6, _) if dram > 0 => ("dram", draw.size(MIB, 48 * MIB, 4 * KIB), "device"),
        (6..8, _) if *hmb >= 8 * MIB => ("hmb", draw.size(256 * KIB, *hmb / 4, 4 * KIB), "hmb"),
        _ => ("sram", draw.size(16 * KIB, 4 * MIB, 4 * KIB), "device"),
    };
    if tier == "hmb" {
        *hmb -= bytes;
    }
    let replacement = draw.of(&["lru", "fifo", "clock", "random", "2q"]);
    let _ = writeln!(
        text,
        "[role.read_cache]\ntier = \"{tier}\"\nsize = \"{bytes}B\"\nreplacement = \"{replacement}\""
    );
    Planted::new(planted, bytes)
}

/// Right is, beside the tier that is named in the file:
/// - `slc` for writes that wait for flash in single-bit mode, whether because the buffer is there or
///   because writes are acknowledged by flash and the drive has such flash: from outside it is one;
/// - `none` for writes that wait for flash in multi-bit mode, whatever memory they pass on their way;
/// - `device` for power-protected memory. Flushes do not wait for flash, so no size shows.
fn write_buffer(
    draw: &mut Draw,
    rare: &Rare,
    text: &mut String,
    dram: u64,
    slc: u32,
    hmb: &mut u64,
) -> Planted {
    let waiting = if slc > 0 { "slc" } else { "none" };
    let (tier, mut bytes, planted) = match draw.below(20) {
        0..2 if slc > 0 => ("slc", draw.size(768 * KIB, 8 * MIB, 4 * KIB), waiting),
        2..5 if dram > 0 => ("dram", draw.size(768 * KIB, 8 * MIB, 4 * KIB), waiting),
        0..5 => ("sram", draw.size(768 * KIB, 8 * MIB, 4 * KIB), waiting),
        5 => ("pm", draw.size(4 * MIB, 64 * MIB, 4 * KIB), "device"),
        6..10 if dram > 0 => ("dram", draw.size(4 * MIB, 64 * MIB, 4 * KIB), "device"),
        10..17 if *hmb >= 16 * MIB => ("hmb", draw.size(8 * MIB, *hmb / 2, 4 * KIB), "hmb"),
        _ => ("sram", draw.size(768 * KIB, 8 * MIB, 4 * KIB), "device"),
    };
    if tier == "hmb" {
        *hmb -= bytes;
    }
    if let (Some(other), "sram" | "dram") = (rare.buffer, tier)
        && (other < MIB || dram > 2 * other && tier == "dram")
    {
        bytes = other.max(rare.least);
    }
    let _ = writeln!(
        text,
        "[role.write_buffer]\ntier = \"{tier}\"\nsize = \"{bytes}B\"\npacing = \"{}\"",
        rare.pacing
    );
    if planted == waiting {
        if tier != "slc" {
            let _ = writeln!(text, "acknowledge = \"programmed\"");
        }
        return Planted::sizeless(waiting);
    }
    if draw.chance(20) {
        let _ = writeln!(text, "high = 0.8\nlow = 0.5");
    }
    if tier == "pm" {
        return Planted::sizeless(planted);
    }
    Planted::new(planted, bytes)
}

/// Bytes that a translation page takes in host memory (docs/concepts/integrity.md): lines of 64 bytes,
/// of which a checksum takes 4 and a keyed tag 8; with tags, a line of versions for each 83.
fn page_taken(per_entry: f64, integrity: &str) -> f64 {
    let data = (1024.0 * per_entry).ceil();
    match integrity {
        "crc" => (data / 60.0).ceil() * 64.0,
        "mac" => {
            let lines = (data / 56.0).ceil();
            (lines + (lines / 83.0).ceil()) * 64.0
        }
        _ => 1024.0 * per_entry,
    }
}

/// Unit of the map in host memory in bytes of map, bytes an entry without checks, and what the map takes
/// there of `hmb` bytes, where the whole map has `whole`.
fn map_in_host(
    draw: &mut Draw,
    hmb: u64,
    whole: u64,
    exclusive: bool,
    integrity: &str,
    unit_most: u64,
) -> (u64, f64, f64) {
    // At least 24 units, so that one more or less is within what is asked for.
    let most = (hmb / 30 / (4 * KIB)).clamp(1, unit_most);
    let mut unit = if exclusive {
        4 * KIB
    } else {
        draw.size(4 * KIB, most * 4 * KIB, 4 * KIB)
    };
    let per_entry = f64::from(draw.of(&[4000u32, 4000, 4500, 5333, 6000])) / 1000.0;
    // Whole units only.
    let page_taken = page_taken(per_entry, integrity);
    // One must fit the least host memory that the drive takes, or it is no valid drive (seed 97114).
    let least = if hmb < HMB_MIN { LITTLE } else { HMB_MIN };
    unit = unit.min((least as f64 / page_taken) as u64 * 4 * KIB);
    let unit_taken = (unit / (4 * KIB)) as f64 * page_taken;
    let taken = (hmb as f64 / unit_taken).floor() * unit_taken;
    let all = whole as f64 / (4 * KIB) as f64 * page_taken;
    (unit, per_entry, taken.min(all))
}

/// What of a memory takes units, which are as large as `unit` where an entry takes 4 B.
fn whole_units(bytes: u64, unit: u64, entry: u64) -> u64 {
    let unit = unit / 4 * entry;
    bytes / unit * unit
}

/// Unit and size of what SRAM holds of the map.
fn sram_map(draw: &mut Draw, rare: &Rare, exclusive: bool, hmb: u64) -> (u64, u64) {
    let unit = if exclusive {
        4 * KIB
    } else {
        draw.of(&[4, 4, 16, 32]) * KIB
    };
    let size = draw.size(unit * 8, unit * 64, unit);
    if rare.little.is_some() && hmb > 0 {
        // A map in little host memory has less on the drive, and one unit at least.
        return (4 * KIB, (hmb / 64 / KIB * KIB).max(rare.entry * KIB));
    }
    (unit, size)
}

/// Planted, the lines of the file, and the share of the SRAM.
///
/// Right is the largest memory and what the map takes of it, checks included. Where tiers are exclusive,
/// what the others hold comes on top: memory on the drive adds up, since it is one tier from outside;
/// SRAM before host memory does not.
fn map(
    draw: &mut Draw,
    rare: &Rare,
    capacity: u64,
    dram: u64,
    hmb: u64,
    integrity: &str,
) -> (Planted, String, u64) {
    let whole = capacity / 1024;
    let replacement = draw.of(&["lru", "lru", "lru", "fifo", "clock", "random", "2q"]);
    // Exclusive tiers pass units on as they are: single pages on each.
    let exclusive = draw.chance(20);
    let own = rare.entry;
    let (sram_unit, sram) = sram_map(draw, rare, exclusive, hmb);
    let mut text = String::from("[role.map]\n");
    let mut tiers = vec!["sram"];
    let mut units = format!("sram = \"{sram_unit}B\"");
    let mut sizes = format!("sram = \"{sram}B\"");
    // All of the map in DRAM, with such entries.
    let all = whole / 4 * own;
    let mut entry = format!("sram = {own}");
    let mut sram_taken = sram;
    let planted = if dram > 2 * all && draw.chance(60) {
        tiers = vec!["dram"];
        units = String::from("dram = \"4KiB\"");
        sizes = format!("dram = \"{all}B\"");
        entry = format!("dram = {own}");
        sram_taken = 0;
        Planted::new("device", all)
    } else if hmb >= rare.little.map_or(HMB_MIN, |_| LITTLE) && hmb > 8 * sram {
        let (unit, per_entry, taken) =
            map_in_host(draw, hmb, whole, exclusive, integrity, rare.unit_most);
        tiers.push("hmb");
        let _ = write!(units, ", hmb = \"{unit}B\"");
        let _ = write!(entry, ", hmb = {per_entry}");
        Planted {
            tier: "hmb",
            bytes: Some(taken),
        }
    } else if dram > 0 {
        let share = draw.size(4 * MIB, (whole / 2).min(dram / 2).max(5 * MIB), 4 * KIB);
        tiers.push("dram");
        let _ = write!(units, ", dram = \"4KiB\"");
        let _ = write!(sizes, ", dram = \"{share}B\"");
        let _ = write!(entry, ", dram = {own}");
        let on_top = if exclusive {
            whole_units(sram, sram_unit, own)
        } else {
            0
        };
        let taken = whole_units(share, 4 * KIB, own) + on_top;
        Planted::new("device", taken.min(all))
    } else {
        Planted::new("device", whole_units(sram, sram_unit, own))
    };
    let tiers: Vec<String> = tiers.iter().map(|tier| format!("\"{tier}\"")).collect();
    let _ = writeln!(
        text,
        "tiers = [{}]\nsize = {{ {sizes} }}\nunit = {{ {units} }}\nbytes_per_page = {{ {entry} }}\n\
         replacement = \"{replacement}\"\nexclusive = {exclusive}\nfills_in_flight = {}\n\
         background_reads = {}",
        tiers.join(", "),
        4 + draw.below(28),
        1 + draw.below(4)
    );
    (planted, text, sram_taken)
}
