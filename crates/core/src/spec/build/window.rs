//! The byte window and what saves it.

use super::super::error::SpecError;
use super::super::parse::Values;
use super::super::{CpuSpec, PowerSpec, WindowSpec};
use super::tier_there;

pub(super) fn cpu(values: &Values) -> CpuSpec {
    CpuSpec {
        wc_buffers: values.small("host.cpu.wc_buffers"),
        cache_bytes: values.number("host.cpu.cache"),
        store_ps: values.number("host.cpu.store"),
        load_ps: values.number("host.cpu.load"),
        flush_line_ps: values.number("host.cpu.flush_line"),
        fence_ps: values.number("host.cpu.fence"),
        call_ps: values.number("host.cpu.call"),
    }
}

pub(super) fn window(values: &Values) -> Result<Option<WindowSpec>, SpecError> {
    if !values.has("role.window.size") {
        return Ok(None);
    }
    if values.has("link.ufs") {
        let must = "needs `link.pcie`: over UFS no CPU stores to a drive's memory";
        return Err(values.contradiction("role.window.size", must));
    }
    let tier = values.choice("role.window.tier");
    tier_there(values, "role.window.tier", tier)?;
    Ok(Some(WindowSpec {
        tier,
        bytes: values.number("role.window.size"),
        entries: values.small("role.window.entries"),
        gate: values.choice("role.window.gate"),
        call_ps: values.number("role.window.call"),
        page_ps: values.number("role.window.page"),
        read_dma_ps: values.number("role.window.read_dma"),
    }))
}

pub(super) fn power(values: &Values) -> Result<Option<PowerSpec>, SpecError> {
    if !values.has("power.capacitors") {
        return Ok(None);
    }
    let power = PowerSpec {
        capacitors: values.small("power.capacitors"),
        capacitance_uf: values.ratio("power.capacitance_uf"),
        rail_v: values.ratio("power.rail_v"),
        cutoff_v: values.ratio("power.cutoff_v"),
        efficiency: values.ratio("power.efficiency"),
        draw_w: values.ratio("power.draw_w"),
        detect_ps: values.number("power.detect"),
    };
    if power.cutoff_v >= power.rail_v {
        let must = format!("must be below `power.rail_v` ({})", power.rail_v);
        return Err(values.contradiction("power.cutoff_v", &must));
    }
    Ok(Some(power))
}
