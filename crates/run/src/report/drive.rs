//! What happened inside the drive: the object `lodger` of the JSON, and the end of the text.

use super::Report;
use super::busy;
use super::number::{count_of, grouped};
use super::together::Together;
use crate::hmb::HmbChoice;
use crate::runner::RunResult;
use crate::size;
use lodger_core::nand::Cause;
use lodger_core::observe::{Counters, WindowCounters};
use lodger_core::spec::{ParsedDrive, SLOT_BYTES, Tier};
use lodger_core::time::S;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Write amplification: bytes programmed into flash, whatever the cause and padding included, for
/// each byte that the host wrote; `None` where the host wrote nothing.
///
/// Data that still stands in the write buffer at the end counts as written but not as programmed,
/// so short runs may show less than 1.
#[must_use]
pub fn waf(counters: &Counters) -> Option<f64> {
    let host = counters.host_written_bytes;
    (host > 0).then(|| programmed_bytes(counters) as f64 / host as f64)
}

/// Bytes programmed into flash, whatever the cause, padding included.
pub(crate) fn programmed_bytes(counters: &Counters) -> u64 {
    let slots: u64 = counters.programmed_slots_by_cause.iter().sum();
    (slots + counters.padded_slots) * SLOT_BYTES
}

fn by_cause(counts: &[u64]) -> Map<String, Value> {
    let pairs = Cause::ALL.iter().zip(counts);
    pairs
        .map(|(cause, count)| (cause.name().to_owned(), json!(count)))
        .collect()
}

/// Every value by its dotted key, as a drive file has it.
fn spec(parsed: &ParsedDrive) -> Map<String, Value> {
    let values = parsed.values.iter();
    values
        .map(|value| (value.key.to_owned(), toml_value(&value.toml)))
        .collect()
}

/// A TOML literal as JSON: numbers, booleans, strings and lists of them look the same in both,
/// apart from `_` in numbers and literal strings, which drive files written by us do not have.
#[must_use]
pub fn toml_value(literal: &str) -> Value {
    serde_json::from_str(literal).unwrap_or_else(|_| json!(literal))
}

/// Memories that map entries are found in: those that a drive's map may have, and the host's own.
pub(crate) const MAP_MEMORIES: [Tier; 5] =
    [Tier::Sram, Tier::Dram, Tier::Hmb, Tier::HpbCache, Tier::Cxl];

/// Look-ups that each memory answered, of those that map entries of this run could be in: the drive's from the nearest,
/// then the host's.
pub(crate) fn map_hits(map_tiers: &[Tier], counters: &Counters) -> Vec<(Tier, u64)> {
    let tiers = map_tiers.iter().copied();
    let mut hits: Vec<(Tier, u64)> = tiers.zip(counters.map.hits).collect();
    if counters.hpb.present {
        hits.push((Tier::HpbCache, counters.hpb.used));
    }
    hits
}

/// Those of one memory; nothing where there is none of it.
pub(crate) fn map_hits_in(result: &RunResult, memory: Tier) -> Option<u64> {
    let all = map_hits(&result.map_tiers, &result.counters);
    let found = all.iter().find(|(tier, _)| *tier == memory);
    found.map(|(_, hits)| *hits)
}

/// The object `lodger`.
pub(crate) fn json(report: Report<'_>) -> Value {
    let Report { config, result } = report;
    let counters = &result.counters;
    let link =
        busy::utilisation(result, "link_to_host").max(busy::utilisation(result, "link_from_host"));
    let (means, busiest) = busy::json(result);
    let mut json = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "seed": config.seed,
        "drive": config.drive.name,
        "precondition": format!("{:?}", config.precondition).to_lowercase(),
        "spec": spec(&config.drive.parsed),
        "simulated_s": result.simulated_ps as f64 / S as f64,
        "wall_s": result.wall_s,
        "events": result.events,
        "requests": result.requests,
        "together": Together::of(&result.jobs).json(),
        "map": map_json(&result.map_tiers, counters),
        "read_cache": read_cache_json(counters),
        "write_buffer": write_buffer_json(counters),
        "window": config.drive.parsed.spec.roles.window.as_ref().map(|_| window_json(counters)),
        "hpb": super::hpb::json(&counters.hpb),
        "logging": crate::logging::json(&result.jobs),
        "nand": nand_json(counters),
        "waf": waf(counters),
        "wear": super::wear::json(report),
        "unwritten_reads": counters.unwritten_slots,
        "hmb": {
            "requested_bytes": result.hmb.requested_bytes,
            "granted_bytes": result.hmb.granted_bytes,
            "usable_bytes": result.hmb.usable_bytes,
            "used_bytes": result.hmb.used_bytes,
            "read_bytes": counters.hmb_read_bytes,
            "written_bytes": counters.hmb_written_bytes,
            "dma_bytes": counters.host_dma_bytes,
            "dma_polls": counters.host_dma_polls,
        },
        "link": {
            "read_bytes": counters.link_to_host_bytes,
            "written_bytes": counters.link_from_host_bytes,
            "utilisation": link,
        },
        "busiest": busiest,
        "utilisation": means,
    });
    if result.measured_ps < result.simulated_ps {
        json["measured_s"] = json!(result.measured_ps as f64 / S as f64);
    }
    let beginnings = crate::course::json(&result.jobs);
    if !beginnings.is_empty() {
        json["beginnings"] = Value::Array(beginnings);
    }
    if result.interrupted {
        json["partial"] = json!(true);
    }
    if let Some(breakdown) = &result.breakdown {
        json["breakdown"] = crate::breakdown::json(breakdown);
    }
    json
}

/// What a drive has counted so far, as far as it can be told without a run: parts of the object
/// `lodger`.
#[must_use]
pub fn counted(map_tiers: &[Tier], counters: &Counters) -> Value {
    json!({
        "requests": counters.requests,
        "map": map_json(map_tiers, counters),
        "read_cache": read_cache_json(counters),
        "write_buffer": write_buffer_json(counters),
        "hpb": super::hpb::json(&counters.hpb),
        "nand": nand_json(counters),
        "waf": waf(counters),
        "unwritten_reads": counters.unwritten_slots,
        "hmb": {
            "read_bytes": counters.hmb_read_bytes,
            "written_bytes": counters.hmb_written_bytes,
        },
        "link": {
            "read_bytes": counters.link_to_host_bytes,
            "written_bytes": counters.link_from_host_bytes,
        },
    })
}

fn read_cache_json(counters: &Counters) -> Value {
    json!({
        "lookups": counters.read_cache_lookups,
        "hits": counters.read_cache_hits,
        "rejected": counters.read_cache_rejected,
    })
}

fn write_buffer_json(counters: &Counters) -> Value {
    json!({
        "writes": counters.buffer_writes,
        "absorbed": counters.buffer_absorbed,
        "read_hits": counters.buffer_read_hits,
        "drains": counters.buffer_drains,
        "logged": counters.buffer_logged,
        "rejected": counters.buffer_rejected,
        "high_water_bytes": counters.buffer_high_water_slots * SLOT_BYTES,
    })
}

fn map_json(tiers: &[Tier], counters: &Counters) -> Value {
    let map = &counters.map;
    let hits = map_hits(tiers, counters).into_iter();
    let hits: Map<_, _> = hits
        .map(|(tier, count)| (tier.name().to_owned(), json!(count)))
        .collect();
    json!({
        "lookups": map.lookups,
        "hits": hits,
        "waiting_hits": map.waiting_hits,
        "misses": map.misses,
        "shared_misses": map.shared_misses,
        "evictions": map.evictions.iter().sum::<u64>(),
        "dirty_writebacks": map.dirty_writebacks,
        "background_fills": map.background_fills,
        "rejected_entries": map.rejected_entries,
    })
}

fn window_json(counters: &Counters) -> Value {
    let window = &counters.window;
    json!({
        "pins": window.pins,
        "pinned_bytes": window.pinned_bytes,
        "flushes": window.flushes,
        "flushed_bytes": window.flushed_bytes,
        "syncs": window.syncs,
        "read_dmas": window.read_dmas,
        "read_dma_bytes": window.read_dma_bytes,
        "infos": window.infos,
        "stores": window.stores,
        "stored_bytes": window.stored_bytes,
        "loads": window.loads,
        "loaded_bytes": window.loaded_bytes,
        "store_tlps": window.store_tlps,
        "store_tlp_bytes": window.store_tlp_bytes,
        "load_tlps": window.load_tlps,
        "stray_tlps": window.stray_tlps,
        "gated": window.gated,
        "held": window.held,
        "rejected": window.rejected,
        "lost_bytes": window.lost_bytes,
    })
}

/// The byte window, if it was used.
fn write_window(out: &mut String, counters: &Counters) -> std::fmt::Result {
    let window = &counters.window;
    if *window == WindowCounters::default() {
        return Ok(());
    }
    writeln!(
        out,
        "  byte window  : pins={} ({}), flushes={} ({}), syncs={}; stored={} in {} packets, loaded={}, \
         copied={}; gated={}, held={}, rejected={}",
        grouped(window.pins),
        size::show(window.pinned_bytes),
        grouped(window.flushes),
        size::show(window.flushed_bytes),
        grouped(window.syncs),
        size::show(window.stored_bytes),
        grouped(window.store_tlps),
        size::show(window.loaded_bytes),
        size::show(window.read_dma_bytes),
        grouped(window.gated),
        grouped(window.held),
        grouped(window.rejected)
    )
}

fn nand_json(counters: &Counters) -> Value {
    let mut nand = json!({
        "reads": counters.reads_by_cause.iter().sum::<u64>(),
        "programs": counters.programs_by_cause.iter().sum::<u64>(),
        "erases": counters.erases,
        "reads_by_cause": by_cause(&counters.reads_by_cause),
        "programs_by_cause": by_cause(&counters.programs_by_cause),
        "programmed_bytes": programmed_bytes(counters),
        "padded_bytes": counters.padded_slots * SLOT_BYTES,
    });
    if counters.ageing.present {
        nand["ageing"] = super::ageing::json(&counters.ageing);
    }
    nand
}

/// The end of the text: what happened inside the drive.
pub(crate) fn text(report: Report<'_>) -> String {
    let mut out = String::new();
    write_text(&mut out, report).expect("writing to a string does not fail");
    out
}

fn write_host_memory(out: &mut String, report: Report<'_>) -> std::fmt::Result {
    let Report { config, result } = report;
    let counters = &result.counters;
    let hmb = &result.hmb;
    if hmb.requested_bytes > 0 {
        writeln!(
            out,
            "  host memory  : requested={}, granted={}, {}used={}; read={}, written={}",
            size::show(hmb.requested_bytes),
            size::show(hmb.granted_bytes),
            match hmb.usable_bytes {
                usable if usable < hmb.granted_bytes => {
                    format!("usable={}, ", size::show(usable))
                }
                _ => String::new(),
            },
            size::show(hmb.used_bytes),
            size::show(counters.hmb_read_bytes),
            size::show(counters.hmb_written_bytes)
        )?;
    } else if matches!(config.hmb, HmbChoice::AtMost(_)) {
        writeln!(out, "  host memory  : the drive asks for none")?;
    }
    Ok(())
}

fn write_text(out: &mut String, report: Report<'_>) -> std::fmt::Result {
    let Report { config, result } = report;
    let counters = &result.counters;
    for logging in result.jobs.iter().filter_map(|job| job.logging.as_ref()) {
        out.push_str(&logging.text());
    }
    let name = &config.drive.parsed.spec.name;
    if let Some(breakdown) = &result.breakdown {
        out.push_str(&crate::breakdown::text(breakdown));
    }
    writeln!(out, "\nDrive {} ({name}):", config.drive.name)?;
    write_map(out, result)?;
    super::hpb::write_text(out, &counters.hpb)?;
    write_host_memory(out, report)?;
    if counters.read_cache_lookups > 0 {
        let (hits, all) = (counters.read_cache_hits, counters.read_cache_lookups);
        writeln!(
            out,
            "  read cache   : lookups={}, hits={:.2}%",
            grouped(all),
            super::percent(hits, all)
        )?;
    }
    if counters.read_ahead_slots > 0 {
        writeln!(
            out,
            "  read ahead   : pages={}, asked for on their way={}",
            grouped(counters.read_ahead_slots),
            grouped(counters.read_ahead_joined_slots)
        )?;
    }
    if counters.buffer_writes > 0 {
        writeln!(
            out,
            "  write buffer : writes={}, absorbed={}, read hits={}, drains={}, high water={}",
            size::show(counters.buffer_writes * SLOT_BYTES),
            size::show(counters.buffer_absorbed * SLOT_BYTES),
            size::show(counters.buffer_read_hits * SLOT_BYTES),
            grouped(counters.buffer_drains),
            size::show(counters.buffer_high_water_slots * SLOT_BYTES)
        )?;
    }
    write_window(out, counters)?;
    write_flash(out, counters)?;
    super::wear::write_text(out, report)?;
    if counters.unwritten_slots > 0 {
        writeln!(
            out,
            "  never written: {} of the data read was never written and came without flash reads",
            size::show(counters.unwritten_slots * SLOT_BYTES)
        )?;
    }
    busy::write_text(out, result)?;
    write_simulated(out, result)
}

/// How long it took, and what of that the numbers are of.
fn write_simulated(out: &mut String, result: &RunResult) -> std::fmt::Result {
    write!(
        out,
        "  simulated    : {:.6} s, {}, {}",
        result.simulated_ps as f64 / S as f64,
        count_of(result.requests, "request"),
        count_of(result.events, "event")
    )?;
    if result.measured_ps < result.simulated_ps {
        let measured_s = result.measured_ps as f64 / S as f64;
        write!(
            out,
            "; the drive's numbers are those of {measured_s:.6} s without ramps"
        )?;
    }
    writeln!(out)
}

fn write_flash(out: &mut String, counters: &Counters) -> std::fmt::Result {
    write_operations(out, "flash reads  ", &counters.reads_by_cause)?;
    write_operations(out, "programs     ", &counters.programs_by_cause)?;
    writeln!(out, "     erases    : {}", grouped(counters.erases))?;
    if counters.ageing.present {
        super::ageing::write_text(out, &counters.ageing)?;
    }
    if let Some(waf) = waf(counters) {
        writeln!(
            out,
            "  write amplification: {waf:.3} (programmed {}, of which padding {}; host wrote {})",
            size::show(programmed_bytes(counters)),
            size::show(counters.padded_slots * SLOT_BYTES),
            size::show(counters.host_written_bytes)
        )?;
    }
    Ok(())
}

fn write_map(out: &mut String, result: &RunResult) -> std::fmt::Result {
    let map = &result.counters.map;
    if map.lookups == 0 {
        return writeln!(out, "  map          : lookups=0");
    }
    write!(
        out,
        "  map          : lookups={}, hits:",
        grouped(map.lookups)
    )?;
    for (tier, count) in map_hits(&result.map_tiers, &result.counters) {
        let share = super::percent(count, map.lookups);
        write!(out, " {}={share:.2}%,", tier.name())?;
    }
    writeln!(
        out,
        " misses={:.2}% ({}, {} joined a read under way)",
        super::percent(map.misses, map.lookups),
        grouped(map.misses),
        grouped(map.shared_misses)
    )
}

/// Operations in all and by cause; causes without any are left out.
fn write_operations(out: &mut String, name: &str, counts: &[u64]) -> std::fmt::Result {
    let all: u64 = counts.iter().sum();
    write!(out, "  {name}: {}", grouped(all))?;
    let causes: Vec<String> = Cause::ALL
        .iter()
        .zip(counts)
        .filter(|(_, count)| **count > 0)
        .map(|(cause, count)| format!("{}={}", cause.name(), grouped(*count)))
        .collect();
    if causes.is_empty() {
        writeln!(out)
    } else {
        writeln!(out, " ({})", causes.join(", "))
    }
}
