//! Two reports side by side: two drives, or one before and after a firmware update.

use crate::args::PlainFormat;
use crate::error::Error;
use crate::inputs;
use lodger_probe::Tier;
use lodger_run::size;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// The comparison as text or JSON.
pub(super) fn run(a: &Path, b: &Path, format: PlainFormat) -> Result<String, Error> {
    Ok(shown(&read(a)?, &read(b)?, format))
}

fn shown(a: &Value, b: &Value, format: PlainFormat) -> String {
    let differences = json!({
        "targets": [a["target"], b["target"]],
        "roles": compared(&a["roles"], &b["roles"], role),
        "quantities": compared(&a["quantities"], &b["quantities"], quantity),
    });
    match format {
        PlainFormat::Json => format!("{differences:#}\n"),
        PlainFormat::Normal => text(&differences),
    }
}

fn read(path: &Path) -> Result<Value, Error> {
    let text = inputs::files().text(path, "report")?;
    let shown = path.display();
    let report: Value = serde_json::from_str(&text)
        .map_err(|error| Error::input(format!("`{shown}` is not JSON: {error}")))?;
    if report["roles"].is_object() && report["quantities"].is_object() {
        return match impossible(&report) {
            None => Ok(report),
            Some(what) => Err(Error::input(format!("`{shown}`: {what}")).hint(
                "no probe writes that: probe the drive again with `--output-format json --output FILE`",
            )),
        };
    }
    Err(
        Error::input(format!("`{shown}` is no report of `lodger probe`"))
            .hint("`lodger probe TARGET --output-format json --output FILE` writes one"),
    )
}

/// More than any number of a report is, up or down.
const NUMBER_MAX: f64 = 1e18;

/// What of a report cannot be: its key, its value and what would be allowed.
fn impossible(report: &Value) -> Option<String> {
    let roles = report["roles"].as_object()?;
    let of_roles = roles.iter().find_map(|(name, role)| {
        let name = harmless(name);
        let tier = &role["tier"];
        if !Tier::ALL.iter().any(|known| tier == known.name()) {
            let known = Tier::ALL.map(Tier::name).join(", ");
            return Some(format!(
                "`roles.{name}.tier` is {}, which is none of {known}",
                harmless(&tier.to_string())
            ));
        }
        let sizes = ["size_bytes", "reach_bytes", "unit_bytes"].into_iter();
        let mut sizes = sizes.map(|of| (format!("roles.{name}.{of}"), &role[of]));
        let key = format!("roles.{name}.confidence");
        outside(&key, &role["confidence"], (0.0, 1.0))
            .or_else(|| sizes.find_map(|(key, value)| bounds(&key, value, true)))
    });
    let mut quantities = report["quantities"].as_object()?.iter();
    of_roles.or_else(|| {
        quantities.find_map(|(name, value)| {
            let is_bytes = value["unit"] == "bytes";
            bounds(&format!("quantities.{}", harmless(name)), value, is_bytes)
        })
    })
}

/// That a number is there and outside what is allowed, or that something else is.
fn outside(key: &str, value: &Value, (least, most): (f64, f64)) -> Option<String> {
    let is_allowed = value.is_null() || value.as_f64().is_some_and(|n| (least..=most).contains(&n));
    let shown = harmless(&value.to_string());
    (!is_allowed).then(|| format!("`{key}` is {shown}, not within {least:e} to {most:e}"))
}

/// What of an interval cannot be. That of what is near 0 may begin below it, and end there if it is a difference.
fn bounds(key: &str, value: &Value, is_bytes: bool) -> Option<String> {
    let ends = ["estimate", "low", "high"].into_iter();
    let wrong = ends.filter_map(|end| {
        let least = match is_bytes && end != "low" {
            true => 0.0,
            false => -NUMBER_MAX,
        };
        outside(&format!("{key}.{end}"), &value[end], (least, NUMBER_MAX))
    });
    wrong.chain(crossed(key, value)).next()
}

/// What rounding makes of a number, as a share of it.
const ROUNDED: f64 = 1e-9;

/// That of an interval one part lies on the wrong side of another. Parts that are not there lie on no side.
fn crossed(key: &str, value: &Value) -> Option<String> {
    let sides = [
        ("low", "above", "high"),
        ("estimate", "below", "low"),
        ("estimate", "above", "high"),
    ];
    sides.into_iter().find_map(|(part, side, end)| {
        let (of, limit) = (value[part].as_f64()?, value[end].as_f64()?);
        // Ends are computed, and may be off by the last digit: 1 in an interval up to 0.9999999999999999.
        let slack = ROUNDED * limit.abs();
        let is_wrong = match side {
            "above" => of > limit + slack,
            _ => of < limit - slack,
        };
        is_wrong.then(|| format!("`{key}.{part}` is {of}, {side} its `{end}`, {limit}"))
    })
}

/// A name out of a report, which anyone may have written: what is no text is shown and not obeyed.
fn harmless(name: &str) -> String {
    let shown = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    name.chars().map(shown).collect()
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
    let name = |i: usize| harmless(targets[i].as_str().unwrap_or("?"));
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
            let name = harmless(name);
            let side = |side: &str| {
                let value = &entry[side];
                if kind == "quantities" {
                    return shown(value, &harmless(value["unit"].as_str().unwrap_or("")));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn report(key: &str, value: &Value) -> Value {
        let mut role = json!({
            "tier": "hmb", "confidence": 0.99, "size_bytes": {"estimate": null, "low": 1.0, "high": null},
        });
        match key.split_once('.') {
            Some((of, end)) => role[of][end] = value.clone(),
            None => role[key] = value.clone(),
        }
        json!({"roles": {"map": role}, "quantities": {"hit_less": {"low": -0.1, "high": 0.2, "unit": "us"}}})
    }

    /// They were taken for what a drive has. The null: `impossible` that finds nothing.
    #[test]
    fn numbers_that_cannot_be_are_refused_in_reports() {
        assert_eq!(impossible(&report("confidence", &json!(0.5))), None);
        for (key, value) in [
            ("size_bytes.estimate", json!(-1)),
            ("size_bytes.low", json!(-1e308)),
            ("size_bytes.high", json!("all")),
            ("confidence", json!(-1)),
            ("tier", json!("x")),
        ] {
            let found = impossible(&report(key, &value)).expect(key);
            for part in [format!("`roles.map.{key}`"), value.to_string()] {
                assert!(found.contains(&part), "{found}");
            }
        }
    }

    /// An estimate beside its own interval was compared without a word.
    #[test]
    fn an_estimate_beside_its_own_interval_is_refused() {
        for (estimate, end) in [(1.0, "below its `low`"), (9.0, "above its `high`")] {
            let value = json!({"estimate": estimate, "low": 2.0, "high": 8.0});
            let found = impossible(&report("size_bytes", &value)).expect(end);
            assert!(found.contains("`roles.map.size_bytes.estimate`"), "{found}");
            assert!(found.contains(end), "{found}");
        }
        for (low, high) in [
            (json!(2.0), json!(null)),
            (json!(1.0), json!(1.999_999_999_999_999_8)),
        ] {
            let value = json!({"estimate": 2.0, "low": low, "high": high});
            assert_eq!(impossible(&report("size_bytes", &value)), None);
        }
    }

    /// The target's name cleared the terminal.
    #[test]
    fn what_a_report_names_has_no_say_over_the_terminal() {
        let bad = "\u{1b}[2J\u{9b}x\n";
        let mut report = report("confidence", &json!(0.9));
        report["target"] = json!(bad);
        report["quantities"][bad] = json!({"estimate": 1.0, "low": 1.0, "high": 1.0, "unit": bad});
        let lines = shown(&report, &report, PlainFormat::Normal);
        assert!(
            lines.chars().all(|c| c == '\n' || !c.is_control()),
            "{lines:?}"
        );
        assert!(lines.contains("\\u{1b}[2J"), "{lines}");
        report["roles"][bad] = json!({"tier": bad});
        let found = impossible(&report).expect("no tier");
        assert!(!found.contains(char::is_control), "{found:?}");
    }
}
