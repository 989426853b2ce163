//! What is kept close, and where.

use super::bursts::Burst;
use super::{Drive, KIB, bytes, nearest_power, of_state, quantity, whole};
use crate::findings::Held;
use crate::infer::Tier;
use crate::infer::map::MapArm;
use crate::outcome::Outcome;
use crate::stats::Estimate;
use crate::target::HmbSwitch;

const PAGE: f64 = 4.0 * KIB;
/// A unit that is nearer to a power of two than this is taken for it: units are counted to some per cent,
/// and entries are found by shifting bits.
const POWER: f64 = 1.12;
/// A buffer of which nothing is known but that there is one.
const BUFFER_BYTES: f64 = 1024.0 * KIB;

/// Map bytes of one caching unit, a multiple of 4 KiB.
pub(super) fn unit(arm: &MapArm) -> f64 {
    let (Held::UpTo(units), Held::UpTo(reach)) = (arm.units, arm.reach_bytes) else {
        return PAGE;
    };
    let found = (reach.estimate / units.estimate / KIB).max(PAGE);
    let (power, off) = nearest_power(found / PAGE);
    if off < POWER {
        power * PAGE
    } else {
        whole(found, PAGE)
    }
}

/// What is known of host memory, bytes.
struct HostMemory {
    preferred: f64,
    min: f64,
    granted: f64,
}

impl HostMemory {
    fn of(outcome: &Outcome) -> Option<Self> {
        match outcome.target.hmb {
            HmbSwitch::Sizes {
                min_bytes,
                preferred_bytes,
                granted_bytes,
            } => Some(HostMemory {
                preferred: preferred_bytes as f64,
                min: min_bytes as f64,
                granted: granted_bytes as f64,
            }),
            HmbSwitch::OnOff { granted_bytes } if granted_bytes > 0 => {
                let granted = granted_bytes as f64;
                Some(HostMemory {
                    preferred: granted,
                    min: granted,
                    granted,
                })
            }
            _ => None,
        }
    }

    /// What the drive uses of it.
    fn used(&self, outcome: &Outcome) -> f64 {
        if outcome.findings.roles.map.rounds_down {
            self.granted.log2().floor().exp2()
        } else {
            self.granted
        }
    }
}

/// A role that holds data.
struct Data {
    tier: &'static str,
    bytes: f64,
    /// How its size is known.
    how: Option<&'static str>,
}

impl Data {
    fn is_in_host(&self) -> bool {
        self.tier == "hmb"
    }
}

fn tier_of(outcome: &Outcome, role: &str) -> Tier {
    let role = outcome.roles.get(role);
    role.map_or(Tier::Undecided, |role| role.tier)
}

fn size_of(outcome: &Outcome, role: &str) -> Option<Estimate> {
    outcome.roles.get(role)?.size_bytes
}

fn read_cache(outcome: &Outcome, host: Option<&HostMemory>) -> Option<Data> {
    let size = size_of(outcome, "read_cache")?;
    let in_host = tier_of(outcome, "read_cache") == Tier::Hmb && host.is_some();
    let size = whole(size.estimate, PAGE);
    Some(Data {
        tier: if in_host { "hmb" } else { "dram" },
        bytes: if in_host { size.min(room(host)) } else { size },
        how: Some("pages read again"),
    })
}

/// Host memory that roles may take: never more than the drive asks for.
fn room(host: Option<&HostMemory>) -> f64 {
    host.map_or(0.0, |host| (host.preferred / PAGE).floor() * PAGE)
}

fn write_buffer(outcome: &Outcome, host: Option<&HostMemory>, cache: Option<&Data>) -> Data {
    let tier = match tier_of(outcome, "write_buffer") {
        Tier::Hmb if host.is_some() => "hmb",
        Tier::Slc => "slc",
        Tier::Device if survives_power_loss(outcome) => "pm",
        _ => "dram",
    };
    let burst = size_of(outcome, "write_buffer");
    let states = if tier == "hmb" {
        ["on", "as found"]
    } else {
        ["off", "as found"]
    };
    let mut states = states.iter();
    let knee = states.find_map(|state| of_state(outcome, "write_knee_bytes", state));
    // One request shows the size to a page where flash takes nothing meanwhile, but not beyond some MiB.
    let finer = knee.filter(|knee| {
        burst.is_none_or(|burst| burst.low <= *knee && *knee <= burst.high) && tier != "slc"
    });
    let (size, how) = match (finer, burst) {
        (Some(knee), _) => (knee, Some("largest request written without waiting")),
        // Larger than that, and by how much does not show.
        (None, Some(burst)) if burst.high.is_infinite() => (burst.estimate, None),
        (None, Some(burst)) => (burst.estimate, Some("bytes ahead of flash")),
        (None, None) => {
            let ahead = Burst::of(outcome).filter(|_| tier != "slc");
            (
                ahead.map_or(0.0, |burst| burst.ahead()).max(BUFFER_BYTES),
                None,
            )
        }
    };
    let mut buffer = Data {
        tier,
        bytes: whole(size, PAGE),
        how,
    };
    if buffer.is_in_host() {
        let others = cache.filter(|cache| cache.is_in_host());
        let left = room(host) - others.map_or(0.0, |cache| cache.bytes);
        buffer.bytes = buffer.bytes.min(left.max(PAGE));
    }
    buffer
}

/// A flush after a write waits for nothing.
fn survives_power_loss(outcome: &Outcome) -> bool {
    let mut arms = outcome.findings.roles.write_buffer.arms.values();
    !outcome.findings.roles.write_buffer.arms.is_empty()
        && arms.all(|arm| arm.flush_dirty_ns < 1.2 * arm.flush_clean_ns)
}

pub(super) fn emit(outcome: &Outcome, near: &MapArm, fills: Option<f64>, drive: &mut Drive) {
    let capacity = outcome.target.capacity_bytes as f64;
    let own = outcome.findings.roles.map.arms.get("off").unwrap_or(near);
    let own_map = match own.reach_bytes {
        Held::Everything(_) => whole(capacity / KIB, PAGE),
        ref held => whole(held.amount() / KIB, unit(own)),
    };
    let host = HostMemory::of(outcome);
    let cache = read_cache(outcome, host.as_ref());
    let buffer = write_buffer(outcome, host.as_ref(), cache.as_ref());
    let on_drive = |role: &Data| match role.tier {
        "dram" => role.bytes,
        _ => 0.0,
    };
    let dram = own_map + cache.as_ref().map_or(0.0, on_drive) + on_drive(&buffer);
    drive.section("tier.dram");
    let size = bytes(dram.max(KIB));
    let which =
        "what the roles below take; SRAM, DRAM and power-protected memory look alike from outside";
    drive.assumed("tier.dram", "size", &size, which);
    let why = "its time is counted with the firmware's";
    drive.assumed("tier.dram", "access", "\"0ns\"", why);
    drive.assumed("tier.dram", "rate", "\"1000GB/s\"", why);
    if buffer.tier == "pm" {
        drive.section("tier.pm");
        let how = "a flush waits for nothing";
        drive.measured("tier.pm", "size", &bytes(buffer.bytes), how);
        drive.assumed("tier.pm", "access", "\"0ns\"", why);
        drive.assumed("tier.pm", "rate", "\"1000GB/s\"", why);
    }
    if buffer.tier == "slc" {
        drive.section("tier.sram");
        let way = "data on its way to single-bit flash passes some memory, which does not show";
        drive.assumed("tier.sram", "size", &bytes(buffer.bytes), way);
    }
    if let Some(host) = &host {
        host_memory(outcome, host, drive);
    }
    let data = [cache.as_ref(), Some(&buffer)];
    let data = data.into_iter().flatten().filter(|role| role.is_in_host());
    let data: f64 = data.map(|role| role.bytes).sum();
    let host = host.filter(|_| tier_of(outcome, "map") == Tier::Hmb);
    let for_map = host.map(|host| host.used(outcome) - data);
    map(outcome, own, near, own_map, for_map, drive);
    if let Some(fills) = fills {
        let how = "rate of many reads, times what a miss adds";
        drive.measured("role.map", "fills_in_flight", &format!("{fills:.0}"), how);
    }
    data_roles(outcome, cache.as_ref(), &buffer, drive);
}

/// What the drive asks of the host.
fn host_memory(outcome: &Outcome, host: &HostMemory, drive: &mut Drive) {
    drive.section("tier.hmb");
    let says = "what the drive says";
    drive.measured("tier.hmb", "preferred", &bytes(host.preferred), says);
    drive.measured("tier.hmb", "min", &bytes(host.min), says);
    if outcome.findings.roles.map.rounds_down {
        let how = "reach of several amounts";
        drive.measured("tier.hmb", "rounding", "\"power-of-two\"", how);
    }
}

/// What an entry takes in host memory: what the reach says, if all that is left for the map serves it and
/// the slope of several amounts allows that; otherwise that slope.
fn entry_bytes(outcome: &Outcome, near: &MapArm, for_map: f64) -> Option<f64> {
    let slope = quantity(outcome, "map_bytes_per_entry")?;
    let Held::UpTo(reach) = near.reach_bytes else {
        return Some(slope.estimate);
    };
    let all = for_map * PAGE / reach.estimate;
    let allowed = (slope.low..=slope.high).contains(&all);
    let entry = if allowed { all } else { slope.estimate };
    Some(entry.clamp(1.0, 64.0))
}

fn map(
    outcome: &Outcome,
    own: &MapArm,
    near: &MapArm,
    own_bytes: f64,
    for_map: Option<f64>,
    drive: &mut Drive,
) {
    let section = "role.map";
    drive.section(section);
    let tiers = if for_map.is_some() {
        "[\"dram\", \"hmb\"]"
    } else {
        "[\"dram\"]"
    };
    if tier_of(outcome, "map") == Tier::Undecided {
        let why = "undecided: what is written here was chosen";
        drive.assumed(section, "tiers", tiers, why);
        drive.assumed(section, "size.dram", &bytes(own_bytes), why);
        drive.assumed(section, "unit.dram", &bytes(unit(own)), why);
    } else {
        let why = "reach with and without host memory tells whether host memory is used; that the drive's own is \
                   DRAM is a choice";
        drive.assumed(section, "tiers", tiers, why);
        let how = "reach, with 4 B an entry: 4 to 8 B are usual";
        drive.measured(section, "size.dram", &bytes(own_bytes), how);
        drive.measured(section, "unit.dram", &bytes(unit(own)), "reach by units");
    }
    if let Some(for_map) = for_map {
        let size = bytes(unit(near));
        match &outcome.findings.busy {
            None => drive.measured(section, "unit.hmb", &size, "reach by units"),
            Some(why) => drive.assumed(
                section,
                "unit.hmb",
                &size,
                &format!("nothing better was seen: {why}"),
            ),
        }
        let plain = "the plain map";
        drive.assumed(section, "bytes_per_page.dram", "4", plain);
        match entry_bytes(outcome, near, for_map) {
            Some(entry) => {
                let entry = format!("{entry:.3}");
                let how = "reach by amount of host memory";
                drive.measured(section, "bytes_per_page.hmb", &entry, how);
            }
            None => drive.assumed(section, "bytes_per_page.hmb", "4", plain),
        }
    }
    if unit(own) > PAGE || for_map.is_some() && unit(near) > PAGE {
        // More would hold up what is asked next, which a miss with large units does not show.
        let why = "the rest of a unit comes without holding up reads";
        drive.assumed(section, "background_reads", "1", why);
    }
    let found = outcome.findings.replacement_verdict;
    let found = found.filter(|found| ["lru", "fifo", "clock", "random"].contains(found));
    match found {
        Some(found) => {
            let how = "what gave way";
            drive.measured(section, "replacement", &format!("\"{found}\""), how);
        }
        None => drive.assumed(section, "replacement", "\"lru\"", "the usual one"),
    }
}

fn data_roles(outcome: &Outcome, cache: Option<&Data>, buffer: &Data, drive: &mut Drive) {
    if let Some(cache) = cache {
        role("role.read_cache", cache, drive);
        let overlaps = |knee: Estimate| {
            size_of(outcome, "read_cache").is_some_and(|size| size.overlaps(&knee))
        };
        let names = ["_on", "_off", ""].map(|suffix| format!("read_again_knee_bytes{suffix}"));
        let whole = names
            .iter()
            .filter_map(|name| quantity(outcome, name))
            .any(overlaps);
        if whole {
            let how = "a request that fits in part is served as slowly as a new one";
            drive.measured("role.read_cache", "whole_commands", "true", how);
        }
    }
    role("role.write_buffer", buffer, drive);
    if tier_of(outcome, "write_buffer") == Tier::None {
        let how = "writes wait for flash";
        drive.measured("role.write_buffer", "acknowledge", "\"programmed\"", how);
    }
}

fn role(section: &str, data: &Data, drive: &mut Drive) {
    drive.section(section);
    let tier = format!("\"{}\"", data.tier);
    match data.tier {
        "hmb" => drive.measured(section, "tier", &tier, "host memory on and off"),
        "slc" => drive.measured(section, "tier", &tier, "writes wait for fast flash"),
        "pm" => {
            let how = "a flush waits for nothing: protected memory, or a flush that does nothing";
            drive.assumed(section, "tier", &tier, how);
        }
        _ => {
            let why = "memory on the drive; which one does not show";
            drive.assumed(section, "tier", &tier, why);
        }
    }
    match data.how {
        Some(how) => drive.measured(section, "size", &bytes(data.bytes), how),
        None => {
            let why = "its size does not show; what a burst was ahead of the rate of its end, and 1 MiB at least";
            drive.assumed(section, "size", &bytes(data.bytes), why);
        }
    }
}
