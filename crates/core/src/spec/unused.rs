//! Keys that can do nothing beside the others of a drive. Where they are given they are refused, so that nobody takes them
//! for the cause of what a drive does. Where a later layer has switched off what an earlier one gave, they are forgotten.

use super::Tier;
use super::build::tier_there;
use super::error::SpecError;
use super::keys::{self, Key};
use super::parse::Values;
use super::value::Value;

/// The memories that the map stands on.
const MAP: &str = "role.map.tiers";

/// Keys that need another one to have a value.
struct Rule {
    keys: &'static [&'static str],
    /// The key that switches them on.
    switch: &'static str,
    /// The word of it that does.
    on: &'static str,
    /// The keys are those of a table, which is not there without them.
    is_table: bool,
}

const RULES: [Rule; 7] = [
    Rule {
        keys: &[
            "hpb.region",
            "hpb.control",
            "hpb.version",
            "hpb.max_blocks",
            "hpb.write_buffer",
            "hpb.pinned_regions",
            "hpb.recommend_misses",
        ],
        switch: "hpb.protocol",
        on: "jedec",
        is_table: false,
    },
    Rule {
        keys: &["hpb.max_blocks", "hpb.write_buffer"],
        switch: "hpb.version",
        on: "2.0",
        is_table: false,
    },
    // There the drive says how many regions may be active (JESD220-3), and the driver has memory for those.
    Rule {
        keys: &["hpb.give_back", "hpb.give_back_at", "hpb.give_back_for"],
        switch: "hpb.protocol",
        on: "paper",
        is_table: false,
    },
    // JEDEC's entries have 8 bytes with a code or without, and go stale one by one: of a host that forges none, as the
    // simulated one, a code changes nothing.
    Rule {
        keys: &["hpb.integrity"],
        switch: "hpb.protocol",
        on: "paper",
        is_table: false,
    },
    Rule {
        keys: &["role.write_buffer.log_size"],
        switch: "role.write_buffer.log",
        on: "pm",
        is_table: false,
    },
    Rule {
        keys: &["host.cpu.cache"],
        switch: "role.window.tier",
        on: "cxl",
        is_table: false,
    },
    // Capacitors feed the dump of a window that stands behind the link.
    Rule {
        keys: &[
            "power.capacitors",
            "power.capacitance_uf",
            "power.rail_v",
            "power.cutoff_v",
            "power.efficiency",
            "power.draw_w",
            "power.detect",
        ],
        switch: "role.window.tier",
        on: "pm",
        is_table: true,
    },
];

/// What the map has of its own on each memory.
const OF_MEMORIES: [&str; 4] = [
    "role.map.size.",
    "role.map.unit.",
    "role.map.bytes_per_page.",
    "role.map.encoding.",
];

/// The memory of which `path` says what the map has there.
pub(super) fn memory_of(path: &str) -> Option<Tier> {
    let name = OF_MEMORIES.iter().find_map(|of| path.strip_prefix(of))?;
    Tier::from_word(name)
}

/// Refuses what can do nothing, and forgets what a later layer has switched off.
pub(super) fn refuse(values: &mut Values) -> Result<(), SpecError> {
    for rule in &RULES {
        if !values.has(rule.switch) || values.word(rule.switch) == rule.on {
            continue;
        }
        for key in rule.keys.iter().filter_map(|path| keys::find(path)) {
            refuse_one(values, key, rule)?;
        }
    }
    for key in keys::KEYS {
        if let Some(memory) = memory_of(key.path) {
            refuse_without_map(values, key, memory)?;
        }
    }
    Ok(())
}

/// What the map has of its own on a memory that it does not stand on, or that the drive lacks.
fn refuse_without_map(
    values: &mut Values,
    key: &'static Key,
    memory: Tier,
) -> Result<(), SpecError> {
    let stands = values.tiers(MAP).contains(&memory);
    let Some(given) = values.layer(key.path).filter(|_| !stands) else {
        return Ok(());
    };
    if values.layer(MAP).is_some_and(|elsewhere| elsewhere > given) {
        return values.forget(key);
    }
    tier_there(values, key.path, memory)?;
    let must = format!("does nothing unless `{MAP}` names \"{}\"", memory.name());
    Err(values.contradiction(key.path, &must))
}

fn refuse_one(values: &mut Values, key: &'static Key, rule: &Rule) -> Result<(), SpecError> {
    let off = values.layer(rule.switch);
    let given = values.layer(key.path);
    if rule.is_table && off > given {
        values.drop(key);
        return Ok(());
    }
    let Some(given) = given else {
        return Ok(());
    };
    if off.is_some_and(|off| off > given) {
        return values.forget(key);
    }
    let unless = format!("unless `{}` is \"{}\"", rule.switch, rule.on);
    let must = match values.default_of(key)? {
        default if default.as_ref() == values.get(key.path) => return Ok(()),
        Some(Value::Number(0)) => format!("must be 0 {unless}"),
        Some(default) => format!("must be {} {unless}", default.literal(key.kind)),
        None => format!("must be left out {unless}"),
    };
    Err(values.contradiction(key.path, &must))
}
