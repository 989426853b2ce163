//! Two reports side by side: two drives, or one before and after a firmware update.

use crate::args::PlainFormat;
use crate::error::Error;
use crate::inputs;
use lodger_run::size;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// The comparison as text or JSON.
pub(super) fn run(a: &Path, b: &Path, format: PlainFormat) -> Result<String, Error> {
    let (a, b) = (read(a)?, read(b)?);
    let differences = json!({
        "targets": [a["target"], b["target"]],
        "roles": compared(&a["roles"], &b["roles"], role),
        "quantities": compared(&a["quantities"], &b["quantities"], quantity),
    });
    Ok(match format {
        PlainFormat::Json => format!("{differences:#}\n"),
        PlainFormat::Normal => text(&differences),
    })
}

fn read(path: &Path) -> Result<Value, Error> {
    let text = inputs::files().text(path, "report")?;
    let shown = path.display();
    let report: Value = serde_json::from_str(&text)
        .map_err(|error| Error::input(format!("`{shown}` is not JSON: {error}")))?;
    if report["roles"].is_object() && report["quantities"].is_object() {
        return Ok(report);
    }
    Err(
        Error::input(format!("`{shown}` is no report of `lodger probe`"))
            .hint("`lodger probe TARGET --output-format json --output FILE` writes one"),
    )
}

/// Every name of either, what both say of it, and whether that differs.
fn compared(a: &Value, b: &Value, differ: fn(&Value, &Value) -> bool) -> Value {
    let names = |value: &Value| -> Vec<String> {
        let object = value.as_object();
        object.map_or(Vec::new(), |object| object.keys().cloned().collect())
    };
    let all: BTreeSet<String> = names(a).into_iter().chain(names(b)).collect();
    let entries = all.into_iter().map(|name| {
        let entry = json!({
            "a": a[&name],
            "b": b[&name],
            "differs": differ(&a[&name], &b[&name]),
        });
        (name, entry)
    });
    Value::Object(entries.collect())
}

fn role(a: &Value, b: &Value) -> bool {
    a["tier"] != b["tier"] || quantity(&a["size_bytes"], &b["size_bytes"])
}

/// Intervals that have nothing in common differ; so does what only one of the two has.
fn quantity(a: &Value, b: &Value) -> bool {
    let bounds = |value: &Value| {
        let low = value["low"].as_f64()?;
        Some((low, value["high"].as_f64().unwrap_or(f64::INFINITY)))
    };
    match (bounds(a), bounds(b)) {
        (Some((a_low, a_high)), Some((b_low, b_high))) => a_low > b_high || b_low > a_high,
        (None, None) => false,
        _ => true,
    }
}

fn text(differences: &Value) -> String {
    let targets = &differences["targets"];
    let name = |i: usize| targets[i].as_str().unwrap_or("?").to_owned();
    let mut out = format!("{:<28}{:<30}{}\n", "", name(0), name(1));
    // As the reports themselves have it.
    let amount = |number: f64, unit: &str| match unit {
        "B" | "bytes" if number >= 1024.0 => size::show(number.round() as u64),
        _ if number.abs() >= 1e5 => format!("{number:.4e} {unit}"),
        _ => format!("{number:.2} {unit}"),
    };
    let shown = |value: &Value, unit: &str| match value["estimate"].as_f64() {
        None => match (value["low"].as_f64(), value["high"].as_f64()) {
            (Some(low), Some(high)) => {
                format!("{} to {}", amount(low, unit), amount(high, unit))
            }
            _ => "-".to_owned(),
        },
        Some(number) => amount(number, unit),
    };
    for kind in ["roles", "quantities"] {
        let Some(entries) = differences[kind].as_object() else {
            continue;
        };
        for (name, entry) in entries {
            let side = |side: &str| {
                let value = &entry[side];
                if kind == "quantities" {
                    return shown(value, value["unit"].as_str().unwrap_or(""));
                }
                let tier = value["tier"].as_str().unwrap_or("-");
                format!("{tier}, {}", shown(&value["size_bytes"], "B"))
            };
            let mark = if entry["differs"] == true { "* " } else { "  " };
            let line = format!("{mark}{name:<26}{:<30}{}", side("a"), side("b"));
            out += line.trim_end();
            out.push('\n');
        }
    }
    out + "\n* differs: another tier, or intervals that have nothing in common\n"
}
