//! A drive file's text to a [`DriveSpec`] and the list of its values with their sources.

use super::build;
use super::document::{self, Entries};
use super::error::{Place, Problem, SpecError};
use super::keys::{self, Absent, KEYS, Key};
use super::source::{Source, SourceKind};
use super::unused;
use super::value::{Item, Value};
use super::words::Words;
use super::{DriveSpec, Tier};
use std::collections::BTreeMap;

/// A drive file, understood.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedDrive {
    /// What the values describe.
    pub spec: DriveSpec,
    /// Every value by its dotted key, defaults and derived ones included, in the order of
    /// [`super::reference`].
    pub values: Vec<ResolvedValue>,
}

/// One value as it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedValue {
    /// Dotted key, such as `nand.read`.
    pub key: &'static str,
    /// The value with its unit, as a person reads it.
    pub text: String,
    /// The value as TOML.
    pub toml: String,
    /// Whether it is a quantity, and so in need of a source.
    pub numeric: bool,
    /// Where it comes from.
    pub source: Source,
}

impl ParsedDrive {
    /// Sources by dotted key.
    #[must_use]
    pub fn sources(&self) -> BTreeMap<&'static str, &Source> {
        self.values
            .iter()
            .map(|value| (value.key, &value.source))
            .collect()
    }

    /// A drive file without `extends` that means the same drive. Stated sources are kept; defaults,
    /// which need none, are comments.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        let mut sources = String::from("\n[sources]\n");
        for key in KEYS {
            let Some(value) = self.written(key.path) else {
                continue;
            };
            if value.source.kind == SourceKind::Default {
                out += "# ";
            }
            out += &format!("{} = {}\n", key.path, value.toml);
            // A value that was fitted stays so, also where it was given again without a source.
            let kind = match SourceKind::stated(value.source.kind.name()) {
                None if !value.source.to.is_empty() => Some(SourceKind::Fitted),
                stated => stated,
            };
            if let Some(kind) = kind {
                let from = toml::Value::String(value.source.from.clone());
                let kind = kind.name();
                let to = match &value.source.to[..] {
                    [] => String::new(),
                    to => format!(", to = {}", toml::Value::from(to.to_vec())),
                };
                sources += &format!(
                    "\"{}\" = {{ kind = \"{kind}\", from = {from}{to} }}\n",
                    key.path
                );
            }
        }
        out + &sources
    }

    /// The value to be written for a key.
    ///
    /// TOML has no place for a value beside its own sub-keys (`role.map.unit.hmb`): such a value is
    /// written as the sub-keys that are missing.
    fn written(&self, path: &str) -> Option<&ResolvedValue> {
        let stated = |path: &str| {
            let found = self.values.iter().find(|value| value.key == path);
            found.filter(|value| value.source.kind != SourceKind::Derived)
        };
        let has_below = |path: &str| {
            let below = |v: &&ResolvedValue| is_below(v.key, path) && stated(v.key).is_some();
            self.values.iter().any(|value| below(&value))
        };
        if has_below(path) {
            return None;
        }
        let map = &self.spec.roles.map.tiers;
        let stands = |memory: Tier| map.iter().any(|part| part.tier == memory);
        let above = path
            .rsplit_once('.')
            .map(|(above, _)| above)
            .filter(|above| has_below(above))
            // Of a memory that the map does not stand on nothing may be said.
            .filter(|_| unused::memory_of(path).is_none_or(stands));
        stated(path).or_else(|| stated(above?))
    }
}

fn is_below(path: &str, parent: &str) -> bool {
    path.strip_prefix(parent)
        .is_some_and(|rest| rest.starts_with('.'))
}

/// Reads a drive file.
///
/// `file` names it in messages; `sets` are `(dotted key, value)` pairs that override it; `extends`
/// gives the text of a drive of the collection by its name.
///
/// # Errors
/// The first thing that is wrong, with its place: syntax, unknown keys, values of the wrong type or
/// outside their range, missing ones, contradictions.
pub fn parse(
    text: &str,
    file: &str,
    sets: &[(&str, &str)],
    extends: &(impl Fn(&str) -> Option<String> + ?Sized),
) -> Result<ParsedDrive, SpecError> {
    let entries = document::read(text, file, sets, extends)?;
    let mut values = Values::resolve(entries, file)?;
    unused::refuse(&mut values)?;
    let spec = build::drive(&mut values)?;
    let values = KEYS
        .iter()
        .filter_map(|key| values.map.get(key.path).map(|r| (key, r)));
    let values = values.map(|(key, resolved)| ResolvedValue {
        key: key.path,
        text: resolved.value.show(key.kind),
        toml: resolved.value.literal(key.kind),
        numeric: key.kind.is_numeric(),
        source: resolved.source.clone(),
    });
    Ok(ParsedDrive {
        spec,
        values: values.collect(),
    })
}

/// A typed value with its place and source.
#[derive(Clone, Debug)]
pub(super) struct Resolved {
    pub value: Value,
    pub place: Place,
    pub source: Source,
    /// Which layer gives it ([`document::Entry`]); none for defaults and what follows from others.
    pub layer: Option<usize>,
}

impl Resolved {
    fn default_of(key: &Key, text: &str, file: &Place) -> Result<Self, SpecError> {
        Ok(Resolved {
            value: Value::read(key, &Item::from_argument(text), file)?,
            place: file.clone(),
            source: Source::default(),
            layer: None,
        })
    }
}

/// All values that hold: given ones and defaults.
pub(super) struct Values {
    map: BTreeMap<&'static str, Resolved>,
    /// For what is not given anywhere.
    file: Place,
}

impl Values {
    fn resolve(entries: Entries, file: &str) -> Result<Self, SpecError> {
        let file = Place::file(file);
        let mut map = BTreeMap::new();
        for key in KEYS {
            if let Some(entry) = entries.given.get(key.path) {
                let value = Value::read(key, &entry.item, &entry.place)?;
                let (place, source) = (entry.place.clone(), entry.source.clone());
                map.insert(
                    key.path,
                    Resolved {
                        value,
                        place,
                        source,
                        layer: Some(entry.layer),
                    },
                );
            }
        }
        for key in KEYS {
            let table = keys::optional_table(key.path);
            let absent = table.is_some_and(|t| !entries.tables.contains(t));
            if map.contains_key(key.path) || absent {
                continue;
            }
            match key.absent {
                Absent::Required
                    if key.path == "link.pcie"
                        && (map.contains_key("link.rate") || map.contains_key("link.ufs")) => {}
                Absent::Required => return Err(missing(key, table, &file)),
                Absent::From(_) => {}
                Absent::Is(text) => {
                    map.insert(key.path, Resolved::default_of(key, text, &file)?);
                }
            }
        }
        Ok(Self { map, file })
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.map.contains_key(path)
    }

    pub(super) fn get(&self, path: &str) -> Option<&Value> {
        self.map.get(path).map(|resolved| &resolved.value)
    }

    /// A number, in the key's base unit.
    ///
    /// # Panics
    /// Like the accessors below if the key has no value of that type: the table of keys says that
    /// it has, and a test reads every key of it.
    pub(super) fn number(&self, path: &str) -> u64 {
        match self.get(path) {
            Some(Value::Number(n)) => *n,
            other => unreachable!("`{path}` is a number, not {other:?}"),
        }
    }

    /// A number whose range ends below 2^32.
    pub(super) fn small(&self, path: &str) -> u32 {
        u32::try_from(self.number(path)).expect("the key's range ends below 2^32")
    }

    pub(super) fn ratio(&self, path: &str) -> f64 {
        match self.get(path) {
            Some(Value::Ratio(ratio)) => *ratio,
            other => unreachable!("`{path}` is a ratio, not {other:?}"),
        }
    }

    pub(super) fn flag(&self, path: &str) -> bool {
        match self.get(path) {
            Some(Value::Flag(flag)) => *flag,
            other => unreachable!("`{path}` is a flag, not {other:?}"),
        }
    }

    pub(super) fn word(&self, path: &str) -> &'static str {
        match self.get(path) {
            Some(Value::Word(word)) => word,
            other => unreachable!("`{path}` is a word, not {other:?}"),
        }
    }

    /// What the word of a key stands for.
    pub(super) fn choice<T: Words>(&self, path: &str) -> T {
        let word = self.word(path);
        T::of(word).unwrap_or_else(|| unreachable!("`{path}` allows no `{word}`"))
    }

    pub(super) fn tiers(&self, path: &str) -> Vec<Tier> {
        match self.get(path) {
            Some(Value::Words(words)) => words
                .iter()
                .map(|word| Tier::from_word(word).expect("a tier"))
                .collect(),
            other => unreachable!("`{path}` is a list, not {other:?}"),
        }
    }

    /// A value that follows from others, for `lodger drives show`.
    pub(super) fn derive(&mut self, path: &'static str, value: Value) {
        let key = keys::find(path).expect("a derived value has a key");
        let Absent::From(from) = key.absent else {
            unreachable!("`{path}` has a default of its own");
        };
        let (place, source) = (self.file.clone(), Source::derived(from));
        self.map.insert(
            key.path,
            Resolved {
                value,
                place,
                source,
                layer: None,
            },
        );
    }

    /// The layer that gives a value, if one does.
    pub(super) fn layer(&self, path: &str) -> Option<usize> {
        self.map.get(path)?.layer
    }

    /// What holds of a key that nobody gives.
    pub(super) fn default_of(&self, key: &Key) -> Result<Option<Value>, SpecError> {
        match key.absent {
            Absent::Is(text) => {
                Resolved::default_of(key, text, &self.file).map(|it| Some(it.value))
            }
            Absent::Required | Absent::From(_) => Ok(None),
        }
    }

    /// As if nobody gave the key.
    pub(super) fn forget(&mut self, key: &'static Key) -> Result<(), SpecError> {
        self.map.remove(key.path);
        if let Absent::Is(text) = key.absent {
            let value = Resolved::default_of(key, text, &self.file)?;
            self.map.insert(key.path, value);
        }
        Ok(())
    }

    /// As if the key's table were not there.
    pub(super) fn drop(&mut self, key: &'static Key) {
        self.map.remove(key.path);
    }

    /// How the value of `path` reads in a message.
    pub(super) fn shown(&self, path: &str) -> String {
        match (self.get(path), keys::find(path)) {
            (Some(value), Some(key)) => value.show(key.kind),
            _ => String::new(),
        }
    }

    /// An error about the value of `path` in the light of others: "`path` {must}, found ...".
    pub(super) fn contradiction(&self, path: &str, must: &str) -> SpecError {
        let place = self
            .map
            .get(path)
            .map_or(&self.file, |resolved| &resolved.place);
        let message = if self.has(path) {
            format!("`{path}` {must}, found `{}`", self.shown(path))
        } else {
            format!("`{path}` {must}")
        };
        let hint = match keys::find(path) {
            Some(key) => keys::hint(key),
            None => format!("`lodger drives show tiny` prints the `{path}` of a small drive"),
        };
        SpecError::new(Problem::Contradiction, place, message, hint)
    }
}

fn missing(key: &Key, table: Option<&str>, file: &Place) -> SpecError {
    let message = match table {
        Some(table) => format!("`{}` is required with `[{table}]`", key.path),
        None => format!("`{}` is required", key.path),
    };
    let hint = "`lodger drives show tiny --output-format toml` prints a small drive to start from";
    SpecError::new(Problem::Missing, file, message, hint)
}
