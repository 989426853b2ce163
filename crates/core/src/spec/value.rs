//! One value of a drive file: from TOML or command-line text to a checked, typed value.

use super::error::{Place, Problem, SpecError, quoted};
use super::keys::{self, Key, Kind};
use super::units::{self, Pcie, UnitError};
use toml::de::DeValue;

/// A value as given, before its key says what it should be.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub raw: Raw,
    /// As the user wrote it, for messages.
    pub shown: String,
}

#[derive(Clone, Debug)]
pub(super) enum Raw {
    Text(String),
    /// `None` for what does not fit 128 bits.
    Integer(Option<i128>),
    Float(f64),
    Flag(bool),
    List(Vec<Item>),
    /// Dates and whatever else TOML has.
    Other,
}

impl Item {
    /// A value of a parsed document; `shown` is its source text.
    pub(super) fn from_toml(value: &DeValue<'_>, text: &str, span: std::ops::Range<usize>) -> Self {
        let shown = text.get(span).unwrap_or_default().trim().to_owned();
        let raw = match value {
            DeValue::String(text) => Raw::Text(text.to_string()),
            DeValue::Integer(number) => {
                Raw::Integer(i128::from_str_radix(number.as_str(), number.radix()).ok())
            }
            DeValue::Float(number) => Raw::Float(number.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(flag) => Raw::Flag(*flag),
            DeValue::Array(items) => Raw::List(
                items
                    .iter()
                    .map(|i| Self::from_toml(i.get_ref(), text, i.span()))
                    .collect(),
            ),
            DeValue::Datetime(_) | DeValue::Table(_) => Raw::Other,
        };
        Self { raw, shown }
    }

    /// A value from the command line or the table of defaults: TOML where it is TOML, otherwise
    /// the text itself, so that quotes are not needed.
    pub(super) fn from_argument(text: &str) -> Self {
        let shown = text.to_owned();
        let raw = match DeValue::parse(text) {
            Ok(value) => Self::from_toml(value.get_ref(), text, value.span()).raw,
            Err(_) => Raw::Text(text.to_owned()),
        };
        Self { raw, shown }
    }
}

/// A checked value. What the numbers count is said by the key's [`Kind`].
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Number(u64),
    Ratio(f64),
    Flag(bool),
    Text(String),
    Word(&'static str),
    Words(Vec<&'static str>),
    Times(Vec<u64>),
    Pcie(Pcie),
}

impl Value {
    /// Reads `item` as a value of `key`.
    pub(super) fn read(key: &Key, item: &Item, place: &Place) -> Result<Self, SpecError> {
        let form = || wrong(key, item, place, Problem::Type, &key.kind.form());
        match (key.kind, &item.raw) {
            (Kind::Text, _) => name(item, place).map(Value::Text).ok_or_else(form),
            (Kind::Flag, Raw::Flag(flag)) => Ok(Value::Flag(*flag)),
            (Kind::Choice(words), raw) => {
                // `2q` and the like are no TOML: on the command line they come as they are.
                let given = if let Raw::Text(text) = raw {
                    text
                } else {
                    &item.shown
                };
                let word = words.iter().find(|word| *word == given);
                word.map(|word| Value::Word(word)).ok_or_else(form)
            }
            (Kind::Words(words), Raw::Text(text)) => {
                let given: Vec<&str> = text.split(',').map(str::trim).collect();
                words_of(key, words, &given, item, place)
            }
            (Kind::Words(words), Raw::List(items)) => {
                let text = |item: &Item| match &item.raw {
                    Raw::Text(text) => text.clone(),
                    _ => String::new(),
                };
                let given: Vec<String> = items.iter().map(text).collect();
                let given: Vec<&str> = given.iter().map(String::as_str).collect();
                words_of(key, words, &given, item, place)
            }
            (Kind::PageTimes { .. }, Raw::List(items)) if !(1..=4).contains(&items.len()) => {
                Err(form())
            }
            (Kind::PageTimes { .. }, Raw::List(items)) => {
                let times = items.iter().map(|item| number(key, item, place));
                times.collect::<Result<_, _>>().map(Value::Times)
            }
            // As `drives show` prints it: times without quotes are no TOML.
            (Kind::PageTimes { .. }, Raw::Text(text))
                if place.line.is_none() && text.starts_with('[') && text.ends_with(']') =>
            {
                let part = |text: &str| Item {
                    raw: Raw::Text(text.trim().to_owned()),
                    shown: text.trim().to_owned(),
                };
                let items = text[1..text.len() - 1].split(',').map(part).collect();
                let raw = Raw::List(items);
                let shown = item.shown.clone();
                Value::read(key, &Item { raw, shown }, place)
            }
            (Kind::PageTimes { .. }, _) => Ok(Value::Times(vec![number(key, item, place)?])),
            (Kind::Pcie, Raw::Text(text)) => Pcie::parse(text).map(Value::Pcie).ok_or_else(form),
            (Kind::Ratio { min, max }, raw) => match ratio(raw) {
                Some(value) if value >= min && value <= max => Ok(Value::Ratio(value)),
                Some(_) => Err(wrong(key, item, place, Problem::Range, &key.kind.range())),
                None => Err(form()),
            },
            (Kind::Flag | Kind::Words(_) | Kind::Pcie, _) => Err(form()),
            _ => number(key, item, place).map(Value::Number),
        }
    }

    /// The value as `lodger drives show` prints it; [`Value::read`] reads it back.
    pub(super) fn show(&self, kind: Kind) -> String {
        match self {
            Value::Number(n) => show_number(*n, kind),
            Value::Ratio(ratio) => ratio.to_string(),
            Value::Flag(flag) => flag.to_string(),
            Value::Text(text) => text.clone(),
            Value::Word(word) => (*word).to_owned(),
            Value::Words(words) => words.join(", "),
            Value::Times(times) => {
                let shown: Vec<_> = times.iter().map(|t| units::show_time(*t)).collect();
                if let [one] = &shown[..] {
                    one.clone()
                } else {
                    format!("[{}]", shown.join(", "))
                }
            }
            Value::Pcie(pcie) => pcie.show(),
        }
    }

    /// The value as TOML.
    pub(super) fn literal(&self, kind: Kind) -> String {
        let quote = |text: String| toml::Value::String(text).to_string();
        let list = |items: Vec<String>| format!("[{}]", items.join(", "));
        match (self, kind) {
            (Value::Number(n), Kind::Count { .. } | Kind::Transfers { .. }) => {
                show_number(*n, kind)
            }
            (Value::Ratio(_) | Value::Flag(_), _) => self.show(kind),
            (Value::Words(words), _) => {
                list(words.iter().map(|w| quote((*w).to_owned())).collect())
            }
            (Value::Times(times), _) if times.len() > 1 => {
                list(times.iter().map(|t| quote(units::show_time(*t))).collect())
            }
            _ => quote(self.show(kind)),
        }
    }
}

/// A name: short and printable.
fn name(item: &Item, place: &Place) -> Option<String> {
    let text = match &item.raw {
        Raw::Text(text) => text,
        // A number or flag given for a name on the command line is meant as text.
        _ if place.line.is_none() => &item.shown,
        _ => return None,
    };
    let fits = (1..=100).contains(&text.chars().count());
    (fits && !text.chars().any(char::is_control)).then(|| text.clone())
}

fn ratio(raw: &Raw) -> Option<f64> {
    match raw {
        Raw::Float(value) => Some(*value),
        // Beyond 2^53, where this loses digits, no range reaches.
        Raw::Integer(value) => Some(value.map_or(f64::INFINITY, |v| v as f64)),
        _ => None,
    }
}

fn show_number(n: u64, kind: Kind) -> String {
    match kind {
        Kind::Size { .. } => units::show_size(n),
        Kind::Time { .. } => units::show_time(n),
        Kind::Rate { .. } => units::show_rate(n),
        Kind::Transfers { .. } => units::show_transfers(n),
        _ => n.to_string(),
    }
}

fn wrong(key: &Key, item: &Item, place: &Place, problem: Problem, must_be: &str) -> SpecError {
    let message = format!(
        "`{}` must be {must_be}, found `{}`",
        key.path,
        quoted(&item.shown)
    );
    SpecError::new(problem, place, message, about(key, item))
}

/// The word that was meant, or what the key stands for and where there is a value to look at.
fn about(key: &Key, item: &Item) -> String {
    let (Kind::Choice(words) | Kind::Words(words)) = key.kind else {
        return keys::hint(key);
    };
    let given = match &item.raw {
        Raw::Text(text) => text,
        _ => &item.shown,
    };
    let near = |word: &&&str| strsim::levenshtein(given, word) <= (word.len() / 3).max(1);
    match words.iter().find(near) {
        Some(word) => format!("did you mean `{word}`?"),
        None => keys::hint(key),
    }
}

fn words_of(
    key: &Key,
    words: &'static [&'static str],
    given: &[&str],
    item: &Item,
    place: &Place,
) -> Result<Value, SpecError> {
    let mut found = Vec::new();
    for word in given {
        match words.iter().find(|w| *w == word) {
            Some(w) if found.contains(w) => {
                let must_be = "a list with each word once";
                return Err(wrong(key, item, place, Problem::Contradiction, must_be));
            }
            Some(w) => found.push(*w),
            None => return Err(wrong(key, item, place, Problem::Type, &key.kind.form())),
        }
    }
    if found.is_empty() {
        return Err(wrong(
            key,
            item,
            place,
            Problem::Range,
            "a list with at least one word",
        ));
    }
    Ok(Value::Words(found))
}

/// Reads a size, time, rate, transfer rate or count and checks its range.
fn number(key: &Key, item: &Item, place: &Place) -> Result<u64, SpecError> {
    let kind = key.kind;
    let (min, max) = match kind {
        Kind::Size { min, max, .. }
        | Kind::Time { min, max }
        | Kind::PageTimes { min, max }
        | Kind::Rate { min, max }
        | Kind::Transfers { min, max }
        | Kind::Count { min, max } => (min, max),
        _ => (0, u64::MAX),
    };
    let read = match (kind, &item.raw) {
        (Kind::Size { .. }, Raw::Text(text)) => units::size(text),
        (Kind::Time { .. } | Kind::PageTimes { .. }, Raw::Text(text)) => units::time(text),
        (Kind::Rate { .. }, Raw::Text(text)) => units::rate(text),
        (Kind::Transfers { .. }, Raw::Text(text)) => units::transfers(text),
        (Kind::Transfers { .. }, Raw::Float(value)) if !value.is_finite() => {
            Err(UnitError::TooLarge)
        }
        (Kind::Transfers { .. }, Raw::Integer(_) | Raw::Float(_)) => {
            units::decimal(&item.shown.replace('_', ""), 1_000_000)
        }
        (Kind::Count { .. }, Raw::Integer(value)) => match value {
            Some(value) if *value < 0 => Err(UnitError::Negative),
            Some(value) => u64::try_from(*value).map_err(|_| UnitError::TooLarge),
            None => Err(UnitError::TooLarge),
        },
        _ => Err(UnitError::Form),
    };
    let (problem, must_be) = match read {
        Ok(value) if value < min || value > max => (Problem::Range, kind.range()),
        Ok(value) => match kind {
            Kind::Size { multiple, .. } if !value.is_multiple_of(multiple) => (
                Problem::Range,
                format!("a multiple of {}", units::show_size(multiple)),
            ),
            _ => return Ok(value),
        },
        Err(UnitError::Form) => (Problem::Type, kind.form()),
        Err(UnitError::Negative | UnitError::TooLarge) => (Problem::Range, kind.range()),
        Err(UnitError::Fraction) => (Problem::Range, whole(kind).to_owned()),
    };
    Err(wrong(key, item, place, problem, &must_be))
}

fn whole(kind: Kind) -> &'static str {
    match kind {
        Kind::Size { .. } => "a whole number of bytes",
        Kind::Time { .. } | Kind::PageTimes { .. } => "a whole number of picoseconds",
        Kind::Rate { .. } => "a whole number of bytes per second",
        _ => "a whole number of transfers per second",
    }
}
