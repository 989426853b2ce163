//! Drives drawn at random, with what is planted in them. Shares no code with the prober.

use lodger::drives;
use lodger::run::{Drive, HmbChoice, RunConfig};
use lodger_core::Precondition;
use lodger_core::rng::Rng;
use std::fmt::Write as _;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

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

    fn none() -> Self {
        Planted {
            tier: "none",
            bytes: None,
        }
    }
}

/// A drive and what is in it.
#[derive(Clone, Debug)]
pub struct Subject {
    /// How to run it.
    pub config: RunConfig,
    /// Noise of its latencies, as a multiple of the default.
    pub noise: f64,
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
    /// What it makes of what Linux gives.
    usable: u64,
    rounds: bool,
}

fn host_memory(draw: &mut Draw) -> Memory {
    if draw.chance(30) {
        return Memory {
            preferred: 0,
            usable: 0,
            rounds: false,
        };
    }
    let preferred = draw.size(8 * MIB, 200 * MIB, MIB);
    let granted = preferred.min(128 * MIB);
    let rounds = draw.chance(25);
    Memory {
        preferred,
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
    let capacity = draw.size(60 * GIB, 2000 * GIB, GIB);
    let host = host_memory(&mut draw);
    let mut text = format!(
        "name = \"drawn {seed}\"\ncapacity = \"{}GiB\"\n",
        capacity / GIB
    );
    let _ = writeln!(
        text,
        "[link]\npcie = \"{}\"",
        draw.of(&["3.0 x2", "3.0 x4", "4.0 x4"])
    );
    let _ = writeln!(
        text,
        "[controller]\ncores = {}\nread = \"{}us\"\nwrite = \"{}us\"\nnext_slot = \"{}ns\"",
        1 + draw.below(4),
        draw.us(4, 13),
        draw.us(5, 12),
        100 + draw.below(250)
    );
    flash(&mut draw, &mut text);
    let dram = if draw.chance(35) {
        draw.size(128 * MIB, 2 * GIB, MIB)
    } else {
        0
    };
    let mut roles = String::new();
    let mut left = host.usable;
    let read_cache = read_cache(&mut draw, &mut roles, dram, &mut left);
    let write_buffer = write_buffer(&mut draw, &mut roles, dram, &mut left);
    let (map, map_text, sram_map) = map(&mut draw, capacity, dram, left);
    let sram = 16 * MIB + sram_map;
    let _ = writeln!(text, "[tier.sram]\nsize = \"{sram}B\"");
    if dram > 0 {
        let _ = writeln!(text, "[tier.dram]\nsize = \"{dram}B\"");
    }
    if host.preferred > 0 {
        let rounding = if host.rounds { "power-of-two" } else { "none" };
        let _ = writeln!(
            text,
            "[tier.hmb]\npreferred = \"{}B\"\nmin = \"{}B\"\nrounding = \"{rounding}\"",
            host.preferred,
            4 * MIB
        );
    }
    text += &map_text;
    text += &roles;
    let noise = f64::from(5 + draw.below(16)) / 10.0;
    let config = config(&mut draw, &text, seed);
    Subject {
        config,
        noise,
        map,
        read_cache,
        write_buffer,
        text,
    }
}

fn config(draw: &mut Draw, text: &str, seed: u64) -> RunConfig {
    let precondition = if draw.chance(20) {
        Precondition::Random
    } else {
        Precondition::Sequential
    };
    let parsed = drives::parse(text, "drawn", &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let drive = Drive {
        name: format!("drawn-{seed}"),
        parsed,
    };
    RunConfig {
        drive,
        hmb: HmbChoice::Negotiated,
        precondition,
        seed,
    }
}

fn flash(draw: &mut Draw, text: &mut String) {
    let (cell, pages, program) = draw.of(&[
        ("mlc", 512, "900us"),
        ("tlc", 768, "1.7ms"),
        ("tlc", 1152, "1.1ms"),
        ("qlc", 1024, "6ms"),
    ]);
    let (channels, per_channel) = (draw.of(&[2, 4, 8]), draw.of(&[1, 2, 4]));
    let _ = writeln!(
        text,
        "[nand]\ncell = \"{cell}\"\nchannels = {channels}\ndies_per_channel = {per_channel}\nplanes = {}\n\
         page_size = \"{}KiB\"\npages_per_block = {pages}\nread = \"{}us\"\nprogram = \"{program}\"\n\
         one_shot = {}\nerase = \"5ms\"\nslc_read = \"{}us\"\nslc_program = \"{}us\"\n\
         channel_mt_s = {}",
        draw.of(&[1, 2, 4]),
        draw.of(&[8, 16]),
        draw.us(35, 90),
        draw.chance(70),
        draw.us(18, 34),
        120 + draw.below(240),
        400 + draw.below(1200),
    );
    let slc = if draw.chance(65) {
        16 + draw.below(32)
    } else {
        0
    };
    let _ = writeln!(
        text,
        "[ftl]\noverprovisioning = 0.{:02}\nslc_superblocks = {slc}",
        7 + draw.below(20)
    );
}

fn read_cache(draw: &mut Draw, text: &mut String, dram: u64, hmb: &mut u64) -> Planted {
    let (tier, bytes, planted) = match draw.below(10) {
        0..4 => return Planted::none(),
        4..6 if dram > 0 => ("dram", draw.size(MIB, 48 * MIB, 4 * KIB), "device"),
        6..8 if *hmb >= 8 * MIB => ("hmb", draw.size(256 * KIB, *hmb / 4, 4 * KIB), "hmb"),
        _ => ("sram", draw.size(16 * KIB, 4 * MIB, 4 * KIB), "device"),
    };
    if tier == "hmb" {
        *hmb -= bytes;
    }
    let replacement = draw.of(&["lru", "fifo", "clock", "random"]);
    let _ = writeln!(
        text,
        "[role.read_cache]\ntier = \"{tier}\"\nsize = \"{bytes}B\"\nreplacement = \"{replacement}\""
    );
    Planted::new(planted, bytes)
}

fn write_buffer(draw: &mut Draw, text: &mut String, dram: u64, hmb: &mut u64) -> Planted {
    let (tier, bytes, planted) = match draw.below(10) {
        0..3 if dram > 0 => ("dram", draw.size(4 * MIB, 64 * MIB, 4 * KIB), "device"),
        3..6 if *hmb >= 16 * MIB => ("hmb", draw.size(8 * MIB, *hmb / 2, 4 * KIB), "hmb"),
        _ => ("sram", draw.size(768 * KIB, 8 * MIB, 4 * KIB), "device"),
    };
    if tier == "hmb" {
        *hmb -= bytes;
    }
    let _ = writeln!(
        text,
        "[role.write_buffer]\ntier = \"{tier}\"\nsize = \"{bytes}B\""
    );
    if draw.chance(20) {
        let _ = writeln!(text, "high = 0.8\nlow = 0.5");
    }
    Planted::new(planted, bytes)
}

/// Planted, the lines of the file, and the share of the SRAM.
fn map(draw: &mut Draw, capacity: u64, dram: u64, hmb: u64) -> (Planted, String, u64) {
    let whole = capacity / 1024;
    let replacement = draw.of(&["lru", "lru", "lru", "fifo", "clock", "random"]);
    let sram_unit = draw.of(&[4, 4, 16, 32]) * KIB;
    let sram = draw.size(sram_unit * 8, sram_unit * 64, sram_unit);
    let mut text = String::from("[role.map]\n");
    let mut tiers = vec!["sram"];
    let mut units = format!("sram = \"{}B\"", sram_unit);
    let mut sizes = format!("sram = \"{sram}B\"");
    let mut entry = String::from("sram = 4");
    let planted = if dram > 2 * whole && draw.chance(60) {
        tiers = vec!["dram"];
        units = String::from("dram = \"4KiB\"");
        sizes = format!("dram = \"{whole}B\"");
        entry = String::from("dram = 4");
        Planted::new("device", whole)
    } else if hmb >= 4 * MIB && hmb > 8 * sram {
        // At least 24 units, so that one more or less is within what is asked for.
        let most = (hmb / 24 / (4 * KIB)).clamp(1, 64);
        let unit = draw.size(4 * KIB, most * 4 * KIB, 4 * KIB);
        let per_entry = f64::from(draw.of(&[4000u32, 4000, 4500, 5333, 6000])) / 1000.0;
        tiers.push("hmb");
        let _ = write!(units, ", hmb = \"{unit}B\"");
        let _ = write!(entry, ", hmb = {per_entry}");
        // Whole units only.
        let unit_taken = unit as f64 / 4.0 * per_entry;
        let taken = (hmb as f64 / unit_taken).floor() * unit_taken;
        let all = whole as f64 / 4.0 * per_entry;
        Planted {
            tier: "hmb",
            bytes: Some(taken.min(all)),
        }
    } else if dram > 0 {
        let share = draw.size(4 * MIB, (whole / 2).min(dram / 2).max(5 * MIB), 4 * KIB);
        tiers.push("dram");
        let _ = write!(units, ", dram = \"4KiB\"");
        let _ = write!(sizes, ", dram = \"{share}B\"");
        let _ = write!(entry, ", dram = 4");
        Planted::new("device", share)
    } else {
        Planted::new("device", sram)
    };
    let tiers: Vec<String> = tiers.iter().map(|tier| format!("\"{tier}\"")).collect();
    let _ = writeln!(
        text,
        "tiers = [{}]\nsize = {{ {sizes} }}\nunit = {{ {units} }}\nbytes_per_page = {{ {entry} }}\n\
         replacement = \"{replacement}\"\nfills_in_flight = {}\nbackground_reads = {}",
        tiers.join(", "),
        4 + draw.below(28),
        1 + draw.below(4)
    );
    (
        planted,
        text,
        if planted.tier == "device" && tiers.len() == 1 && tiers[0] == "\"dram\"" {
            0
        } else {
            sram
        },
    )
}
