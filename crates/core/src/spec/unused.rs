//! Keys that can do nothing beside the others of a drive. Where they are given they are refused, so that nobody takes them
//! for the cause of what a drive does. Where a later layer has switched off what an earlier one gave, they are forgotten.

use super::error::SpecError;
use super::keys::{self, Key};
use super::parse::Values;
use super::value::Value;

/// Keys that need another one to have a value.
struct Rule {
    keys: &'static [&'static str],
    /// The key that switches them on.
    switch: &'static str,
    /// The word of it that does.
    on: &'static str,
}

const RULES: [Rule; 4] = [
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
    },
    Rule {
        keys: &["hpb.max_blocks", "hpb.write_buffer"],
        switch: "hpb.version",
        on: "2.0",
    },
    // There the drive says how many regions may be active (JESD220-3), and the driver has memory for those.
    Rule {
        keys: &["hpb.give_back", "hpb.give_back_at", "hpb.give_back_for"],
        switch: "hpb.protocol",
        on: "paper",
    },
    Rule {
        keys: &["role.write_buffer.log_size"],
        switch: "role.write_buffer.log",
        on: "pm",
    },
];

/// What the map has of its own on each memory.
const OF_MEMORIES: [&str; 4] = [
    "role.map.size.",
    "role.map.unit.",
    "role.map.bytes_per_page.",
    "role.map.encoding.",
];

/// The key that a drive has if it has the memory that `path` is about.
pub(super) fn memory_of(path: &str) -> Option<&'static str> {
    let name = OF_MEMORIES.iter().find_map(|of| path.strip_prefix(of))?;
    match name {
        "sram" => Some("tier.sram.size"),
        "dram" => Some("tier.dram.size"),
        "cxl" => Some("tier.cxl.size"),
        "hmb" => Some("tier.hmb.preferred"),
        _ => None,
    }
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
        let Some(memory) = memory_of(key.path) else {
            continue;
        };
        if values.layer(key.path).is_some() && !values.has(memory) {
            let table = memory.rsplit_once('.').map_or(memory, |(table, _)| table);
            let must = format!("needs a table `[{table}]`, which this drive does not have");
            return Err(values.contradiction(key.path, &must));
        }
    }
    Ok(())
}

fn refuse_one(values: &mut Values, key: &'static Key, rule: &Rule) -> Result<(), SpecError> {
    let Some(given) = values.layer(key.path) else {
        return Ok(());
    };
    if values.layer(rule.switch).is_some_and(|off| off > given) {
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
