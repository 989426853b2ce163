//! A drive file from what was found, for the simulator.

use crate::findings::{Held, MapArm};
use crate::infer::Tier;
use crate::probe::Outcome;
use crate::target::HmbSwitch;
use std::fmt::Write as _;

const KIB: f64 = 1024.0;
/// Bus rate that is taken where none can be told, MT/s.
const CHANNEL_MT_S: f64 = 800.0;
/// What the host and the link add to a read, us: `host.submit`, `host.complete`, packets there and
/// back, as the simulator has them by default.
const AROUND_US: f64 = 5.9;

/// Keys with their values and where they come from.
#[derive(Default)]
struct Drive {
    text: String,
    sources: String,
}

impl Drive {
    fn section(&mut self, name: &str) {
        let _ = writeln!(self.text, "\n[{name}]");
    }

    fn key(&mut self, section: &str, key: &str, value: &str, kind: &str, from: &str) {
        let _ = writeln!(self.text, "{key} = {value}");
        let path = format!("{section}.{key}");
        self.source(path.trim_start_matches('.'), kind, from);
    }

    fn source(&mut self, path: &str, kind: &str, from: &str) {
        let _ = writeln!(
            self.sources,
            "\"{path}\" = {{ kind = \"{kind}\", from = \"{from}\" }}"
        );
    }
}

fn bytes(value: f64) -> String {
    format!("\"{:.0}B\"", value)
}

/// A size that is a multiple of `step`, one at least.
fn whole(value: f64, step: f64) -> f64 {
    ((value / step).round() * step).max(step)
}

/// The drive file, or why there is none.
///
/// # Errors
/// If too little was found.
pub fn drive(outcome: &Outcome) -> Result<String, String> {
    let near = outcome.findings.map.get("on");
    let near = near.or(outcome.findings.map.get("as found"));
    let Some(near) = near else {
        return Err("the map cache was not measured".to_owned());
    };
    let from = format!(
        "lodger probe of {}",
        outcome.target.name.replace(['"', '\\'], "")
    );
    let mut drive = Drive::default();
    let name = format!(
        "{} as probed",
        outcome.target.model.replace(['"', '\\'], "")
    );
    let _ = writeln!(
        drive.text,
        "# Written by `lodger probe --emit-drive`.\nname = \"{name}\""
    );
    let capacity = outcome.target.capacity_bytes / 4096 * 4096;
    drive.key("", "capacity", &bytes(capacity as f64), "measured", &from);
    timing(outcome, near, &mut drive, &from);
    memory(outcome, near, &mut drive, &from);
    Ok(format!("{}\n[sources]\n{}", drive.text, drive.sources))
}

fn quantity(outcome: &Outcome, name: &str) -> Option<f64> {
    let quantity = outcome.findings.quantities.get(name)?;
    Some(quantity.value.estimate)
}

fn timing(outcome: &Outcome, near: &MapArm, drive: &mut Drive, from: &str) {
    let fill = outcome
        .findings
        .write_buffer
        .values()
        .map(|arm| arm.fill_rate);
    let fill = fill.fold(0.0, f64::max);
    let rate = if fill > 1e8 { fill * 1.1 } else { 3.6e9 };
    drive.section("link");
    drive.key(
        "link",
        "pcie",
        "\"3.0 x4\"",
        "assumed",
        "the rate below counts",
    );
    let link = format!("\"{:.0}MB/s\"", rate / 1e6);
    drive.key(
        "link",
        "rate",
        &link,
        "measured",
        &format!("{from}: rate of write bursts"),
    );
    let transfer_us = 4608.0 / CHANNEL_MT_S + 2.3;
    let near_us = near.near_ns / 1e3;
    let flash_us = match near.levels {
        // A miss costs one more read of flash and a microsecond of firmware.
        Some(levels) => (levels.slow_ns - levels.fast_ns) / 1e3 - transfer_us - 1.0,
        None => 0.7 * near_us,
    };
    let flash_us = flash_us.clamp(1.0, (near_us - 1.0).max(1.0));
    let core_us = (near_us - flash_us - transfer_us - AROUND_US).max(0.5);
    drive.section("controller");
    let cores = quantity(outcome, "random_read_most")
        .map_or(1.0, |rate| (rate * core_us * 1e-6).ceil().clamp(1.0, 64.0));
    drive.key(
        "controller",
        "cores",
        &format!("{cores:.0}"),
        "fitted",
        from,
    );
    let core = format!("\"{core_us:.2}us\"");
    drive.key(
        "controller",
        "read",
        &core,
        "fitted",
        &format!("{from}: a read less flash"),
    );
    drive.key("controller", "write", &core, "assumed", "as a read");
    flash(outcome, flash_us, drive, from);
    drive.section("ftl");
    drive.key(
        "ftl",
        "overprovisioning",
        "0.07",
        "assumed",
        "the usual share",
    );
}

/// The flash array: what a miss costs, how many units there are, how fast they take data.
fn flash(outcome: &Outcome, flash_us: f64, drive: &mut Drive, from: &str) {
    drive.section("nand");
    let units = quantity(outcome, "parallel_units")
        .unwrap_or(16.0)
        .round()
        .clamp(1.0, 1024.0);
    let channels = [8.0, 4.0, 2.0]
        .into_iter()
        .find(|c| units % c == 0.0 && units >= 2.0 * c);
    let channels = channels.unwrap_or(1.0).max((units / 64.0).ceil());
    let dies = (units / channels).round().max(1.0);
    drive.key("nand", "cell", "\"tlc\"", "assumed", "the usual one");
    let assumed = "their product was measured";
    drive.key(
        "nand",
        "channels",
        &format!("{channels:.0}"),
        "assumed",
        assumed,
    );
    drive.key(
        "nand",
        "dies_per_channel",
        &format!("{dies:.0}"),
        "assumed",
        assumed,
    );
    drive.key("nand", "planes", "2", "assumed", "not seen from outside");
    drive.key(
        "nand",
        "pages_per_block",
        "768",
        "assumed",
        "not seen from outside",
    );
    drive.key("nand", "page_size", "\"16KiB\"", "assumed", "the usual one");
    speeds(outcome, units, flash_us, drive, from);
}

/// How long the flash takes to be read and programmed.
fn speeds(outcome: &Outcome, units: f64, flash_us: f64, drive: &mut Drive, from: &str) {
    let read = format!("\"{flash_us:.2}us\"");
    drive.key(
        "nand",
        "read",
        &read,
        "measured",
        &format!("{from}: what a map miss adds"),
    );
    let drain = outcome
        .findings
        .write_buffer
        .values()
        .map(|arm| arm.drain_rate);
    let drain = drain.fold(0.0, f64::max);
    // One operation programs two planes of three pages of 16 KiB.
    let program_us = if drain > 1e6 {
        (units * 96.0 * KIB / drain * 1e6).clamp(10.0, 50_000.0)
    } else {
        1700.0
    };
    let program = format!("\"{program_us:.1}us\"");
    drive.key(
        "nand",
        "program",
        &program,
        "fitted",
        &format!("{from}: rate of a full buffer"),
    );
    drive.key("nand", "one_shot", "true", "assumed", "the usual way");
    let rate = format!("{CHANNEL_MT_S:.0}");
    drive.key(
        "nand",
        "channel_mt_s",
        &rate,
        "assumed",
        "not seen from outside",
    );
}

fn reach(held: &Held) -> f64 {
    match held {
        Held::UpTo(estimate) => estimate.estimate,
        _ => 0.0,
    }
}

/// Map bytes of one caching unit, a multiple of 4 KiB.
fn unit(arm: &MapArm) -> f64 {
    match (arm.units, arm.reach_bytes) {
        (Held::UpTo(units), Held::UpTo(reach)) => {
            whole(reach.estimate / units.estimate / KIB, 4.0 * KIB)
        }
        _ => 4.0 * KIB,
    }
}

/// What the drive asks of the host, if that is known; whether there is any.
fn host_memory(outcome: &Outcome, drive: &mut Drive, from: &str) -> bool {
    let hmb = match outcome.target.hmb {
        HmbSwitch::Sizes {
            min_bytes,
            preferred_bytes,
            ..
        } => Some((preferred_bytes, min_bytes)),
        HmbSwitch::OnOff { granted_bytes } if granted_bytes > 0 => {
            Some((granted_bytes, granted_bytes))
        }
        _ => None,
    };
    if let Some((preferred, min)) = hmb {
        drive.section("tier.hmb");
        let says = format!("{from}: what the drive says");
        drive.key(
            "tier.hmb",
            "preferred",
            &bytes(preferred as f64),
            "measured",
            &says,
        );
        drive.key("tier.hmb", "min", &bytes(min as f64), "measured", &says);
        if outcome.findings.rounds_down {
            let _ = writeln!(drive.text, "rounding = \"power-of-two\"");
        }
    }
    hmb.is_some()
}

fn memory(outcome: &Outcome, near: &MapArm, drive: &mut Drive, from: &str) {
    let capacity = outcome.target.capacity_bytes as f64;
    let map = outcome.roles.get("map").map(|role| role.tier);
    let own = outcome.findings.map.get("off").unwrap_or(near);
    let own_map = match own.reach_bytes {
        Held::Everything(_) => capacity / KIB,
        ref held => whole(reach(held) / KIB, unit(own)),
    };
    let size = |role: &str| outcome.roles.get(role).and_then(|role| role.size_bytes);
    let buffer = size("write_buffer").map_or(1048576.0, |size| whole(size.estimate, 4.0 * KIB));
    let cache = size("read_cache").map(|size| whole(size.estimate, 4.0 * KIB));
    let sram = own_map + buffer + cache.unwrap_or(0.0);
    drive.section("tier.dram");
    let from_roles = "the roles below";
    drive.key("tier.dram", "size", &bytes(sram), "fitted", from_roles);
    let hmb = host_memory(outcome, drive, from);
    drive.section("role.map");
    let in_host = map == Some(Tier::Hmb) && hmb;
    let tiers = if in_host {
        "[\"dram\", \"hmb\"]"
    } else {
        "[\"dram\"]"
    };
    let _ = writeln!(drive.text, "tiers = {tiers}");
    let _ = writeln!(drive.text, "size = {{ dram = {} }}", bytes(own_map));
    drive.source("role.map.size.dram", "measured", &format!("{from}: reach"));
    let mut units = format!("dram = {}", bytes(unit(own)));
    drive.source("role.map.unit.dram", "measured", from);
    if in_host {
        let _ = write!(units, ", hmb = {}", bytes(unit(near)));
        drive.source("role.map.unit.hmb", "measured", from);
    }
    let _ = writeln!(drive.text, "unit = {{ {units} }}");
    if let Some(entry) = quantity(outcome, "map_bytes_per_entry").filter(|_| in_host) {
        let _ = writeln!(
            drive.text,
            "bytes_per_page = {{ dram = 4, hmb = {entry:.3} }}"
        );
        drive.source("role.map.bytes_per_page.dram", "assumed", "the plain map");
        drive.source("role.map.bytes_per_page.hmb", "measured", from);
    }
    let policy = outcome.findings.replacement_verdict;
    let policy = policy.filter(|found| ["lru", "fifo", "clock", "random"].contains(found));
    let (kind, how) = if policy.is_some() {
        ("measured", from)
    } else {
        ("assumed", "the usual one")
    };
    drive.source("role.map.replacement", kind, how);
    let policy = policy.unwrap_or("lru");
    let _ = writeln!(drive.text, "replacement = \"{policy}\"");
    data_roles(outcome, drive, cache, buffer, from);
}

fn data_roles(outcome: &Outcome, drive: &mut Drive, cache: Option<f64>, buffer: f64, from: &str) {
    let tier = |role: &str| match outcome.roles.get(role).map(|role| role.tier) {
        Some(Tier::Hmb) => "\"hmb\"",
        _ => "\"dram\"",
    };
    let measured = |role: &str| {
        let size = outcome.roles.get(role).and_then(|role| role.size_bytes);
        match size {
            Some(_) => ("measured", from),
            None => ("assumed", "its size does not show from outside"),
        }
    };
    if let Some(cache) = cache {
        drive.section("role.read_cache");
        let _ = writeln!(drive.text, "tier = {}", tier("read_cache"));
        let (kind, from) = measured("read_cache");
        drive.key("role.read_cache", "size", &bytes(cache), kind, from);
    }
    drive.section("role.write_buffer");
    let _ = writeln!(drive.text, "tier = {}", tier("write_buffer"));
    let (kind, from) = measured("write_buffer");
    drive.key("role.write_buffer", "size", &bytes(buffer), kind, from);
}
