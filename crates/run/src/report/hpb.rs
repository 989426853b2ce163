//! Map entries kept by the host: the object `hpb` and its lines of the text. Where Linux had a
//! counter of the same meaning (sysfs, `hpb_stats`), its name is used.

use super::number::grouped;
use lodger_core::observe::HpbCounters;
use serde_json::{Value, json};
use std::fmt::Write;

/// The object `hpb`; `null` for a drive without.
pub(super) fn json(hpb: &HpbCounters) -> Value {
    if !hpb.present {
        return Value::Null;
    }
    let [dirty, behind, forged] = hpb.refused;
    json!({
        // What the driver did: reads sent with and without an entry, groups asked for.
        "hit_cnt": hpb.hits,
        "miss_cnt": hpb.misses,
        "map_req_cnt": hpb.groups_fetched,
        "umap_req_cnt": hpb.unmaps,
        "pre_req_cnt": hpb.write_buffers,
        "evict_cnt": hpb.evictions,
        // What responses said: a message at all, and which.
        "rcmd_noti_cnt": hpb.entries_delivered + hpb.notices,
        "rcmd_active_cnt": if hpb.activations > 0 { hpb.activations } else { hpb.notices },
        "rcmd_inactive_cnt": hpb.inactivations,
        "entry_cnt": hpb.entries_delivered,
        // What the drive made of the entries.
        "used_cnt": hpb.used,
        "dirty_cnt": dirty,
        "behind_cnt": behind,
        "forged_cnt": forged,
    })
}

/// Lines of the text; none for a drive without.
pub(super) fn write_text(out: &mut String, hpb: &HpbCounters) -> std::fmt::Result {
    if !hpb.present {
        return Ok(());
    }
    let [dirty, behind, forged] = hpb.refused;
    writeln!(
        out,
        "  hpb          : reads with an entry={:.2}% ({}); not used: group changed={}, host \
         behind={}, forged={}",
        super::percent(hpb.hits, hpb.hits + hpb.misses),
        grouped(hpb.hits),
        grouped(dirty),
        grouped(behind),
        grouped(forged)
    )?;
    writeln!(
        out,
        "                 entries in responses={}, notices={}, groups fetched={}",
        grouped(hpb.entries_delivered),
        grouped(hpb.notices),
        grouped(hpb.groups_fetched)
    )
}
