//! Flash that ages: what came of it.

use super::number::grouped;
use lodger_core::observe::AgeingCounters;
use serde_json::{Value, json};
use std::fmt::Write;

pub(super) fn json(ageing: &AgeingCounters) -> Value {
    json!({
        "retries": ageing.retries,
        "soft_reads": ageing.soft_reads,
        "uncorrectable": ageing.uncorrectable,
        "program_failures": ageing.program_failures,
        "erase_failures": ageing.erase_failures,
        "replaced_blocks": ageing.replaced_blocks,
        "retired_superblocks": ageing.retired_superblocks,
        "refreshes": ageing.refreshes,
        "refused": ageing.refused,
        "mean_erases": ageing.mean_erases,
        "spare_blocks": ageing.spare_blocks,
    })
}

pub(super) fn write_text(out: &mut String, ageing: &AgeingCounters) -> std::fmt::Result {
    writeln!(
        out,
        "     ageing    : retries={}, soft reads={}, uncorrectable={}, refreshes={}; mean erases={}",
        grouped(ageing.retries),
        grouped(ageing.soft_reads),
        grouped(ageing.uncorrectable),
        grouped(ageing.refreshes),
        grouped(ageing.mean_erases)
    )?;
    writeln!(
        out,
        "     failures  : programs={}, erases={}; blocks replaced={} ({} spare left), superblocks retired={}, writes \
         refused={}",
        grouped(ageing.program_failures),
        grouped(ageing.erase_failures),
        grouped(ageing.replaced_blocks),
        grouped(ageing.spare_blocks),
        grouped(ageing.retired_superblocks),
        grouped(ageing.refused)
    )
}
