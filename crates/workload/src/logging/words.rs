//! What is wrong in a TOML file, in words of its keys and values: the parser speaks of fields, variants and machine types.

use crate::WorkloadError;
use crate::near::nearest;

/// The parser's message about a line of the file as people would say it.
pub(super) fn error(message: &str, line: &str) -> WorkloadError {
    let key = line.split_once('=').map_or("value", |(key, _)| key.trim());
    variant(message, key)
        .or_else(|| field(message))
        .or_else(|| missing(message))
        .or_else(|| number(message, key))
        .unwrap_or_else(|| WorkloadError::new(message.to_owned()))
}

fn variant(message: &str, key: &str) -> Option<WorkloadError> {
    let (found, expected) = message
        .strip_prefix("unknown variant ")?
        .split_once(", expected ")?;
    let words = named(expected);
    let error = WorkloadError::new(format!("`{key}` must be {}, found {found}", one_of(&words)));
    Some(
        match nearest(found.trim_matches('`'), words.iter().copied()) {
            Some(word) => error.hint(format!("did you mean `{word}`?")),
            None => error,
        },
    )
}

fn field(message: &str) -> Option<WorkloadError> {
    let (found, expected) = message
        .strip_prefix("unknown field ")?
        .split_once(", expected ")?;
    let words = named(expected);
    let found = found.trim_matches('`');
    let error = WorkloadError::new(format!("unknown key `{found}`"));
    Some(error.hint(match nearest(found, words.iter().copied()) {
        Some(word) => format!("did you mean `{word}`?"),
        None if words == ["logging"] => {
            "a model has all in `[logging]`, and names a file of captured distributions there: `captured = \"FILE\"`".to_owned()
        }
        None => format!("keys are {}", one_of(&words)),
    }))
}

fn missing(message: &str) -> Option<WorkloadError> {
    let key = message.strip_prefix("missing field ")?;
    let error = WorkloadError::new(format!("{key} is missing"));
    Some(error.hint(
        "docs/concepts/logging.md shows a whole model, and a whole file of captured distributions",
    ))
}

fn number(message: &str, key: &str) -> Option<WorkloadError> {
    let (found, expected) = (message.strip_prefix("invalid type: "))
        .or_else(|| message.strip_prefix("invalid value: "))?
        .split_once(", expected ")?;
    let allowed = match expected {
        "u32" => "a whole number from 0 to 4294967295",
        "u64" => "a whole number from 0 on",
        "f64" => "a number",
        "a tuple of size 2" => "a list of `[bytes, weight]`, both whole numbers",
        "a string" => "a word in quotes",
        _ => return None,
    };
    // Of "floating point `1.5`" the value says it alone.
    let value = found.find(['`', '"']).map_or(found, |at| &found[at..]);
    Some(WorkloadError::new(format!(
        "`{key}` must be {allowed}, found {value}"
    )))
}

/// What stands in backquotes.
fn named(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
