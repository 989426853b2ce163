//! From text to flat entries: TOML, `extends`, `--set`, `[sources]`.

use super::error::{Place, Problem, SpecError, quoted};
use super::keys::{self, KEYS, Key};
use super::source::{Source, SourceKind};
use super::value::{Item, Raw, Value};
use std::collections::{BTreeMap, BTreeSet};
use toml::de::{DeTable, DeValue};

/// Longest chain of `extends`.
const EXTENDS_DEPTH: usize = 8;
/// Longest drive file, bytes. The largest of the collection is 10 KiB.
const TEXT_BYTES: usize = 1 << 20;

/// What to do about a wrong entry of `[sources]`.
const OF_SOURCES: &str = "such as `\"nand.read\" = { kind = \"datasheet\", from = \"...\" }`, for a key that this \
     file sets";

/// What follows from another key, which is one of those. An earlier layer's value goes when a later one gives that key alone:
/// who says `link.pcie` of a drive whose file says `link.rate` wants the rate of that link.
const FOLLOWING: [(&str, [&str; 2]); 1] = [("link.rate", ["link.pcie", "link.ufs"])];

fn follows(path: &str) -> bool {
    FOLLOWING.iter().any(|(following, _)| *following == path)
}

/// A given value with where it stands and where it comes from.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub item: Item,
    pub place: Place,
    pub source: Source,
    /// Which layer gives it: files before those that extend them, and `--set` last.
    pub layer: usize,
}

/// What a drive file, the drives it extends and `--set` give together.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    pub given: BTreeMap<&'static str, Entry>,
    /// Optional tables that are there, even when empty.
    pub tables: BTreeSet<&'static str>,
    /// Files so far.
    layers: usize,
}

impl Entries {
    /// A later layer's value wins, also over earlier values of the key's sub-keys
    /// (`role.map.unit` over `role.map.unit.hmb`) and of what follows from it.
    fn give(&mut self, key: &'static Key, entry: Entry) {
        let covered = |path: &str| {
            path.strip_prefix(key.path)
                .is_some_and(|rest| rest.starts_with('.'))
                || FOLLOWING
                    .iter()
                    .any(|(it, of)| *it == path && of.contains(&key.path))
        };
        self.given.retain(|path, _| !covered(path));
        if let Some(table) = keys::optional_table(key.path) {
            self.tables.insert(table);
        }
        self.given.insert(key.path, entry);
    }

    fn add(&mut self, layer: Layer) {
        self.tables.extend(layer.tables);
        // In order of length, so that a layer's own sub-keys survive their key, and what follows last.
        let mut entries = layer.entries;
        entries.sort_by_key(|(key, _)| (follows(key.path), key.path.len()));
        for (key, entry) in &mut entries {
            entry.layer = self.layers;
            self.keep_fits(key, entry);
        }
        self.layers += 1;
        for (key, entry) in entries {
            self.give(key, entry);
        }
    }

    /// A value that an earlier layer has given already, in whatever unit, is the one that was fitted there, whatever
    /// this layer says of its source. So is one of a sub-key that is given for all now, or the other way round.
    fn keep_fits(&self, key: &'static Key, entry: &mut Entry) {
        let is_part = |part: &str, whole: &str| {
            let rest = part.strip_prefix(whole);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let value = |path: &str, entry: &Entry| {
            let key = keys::find(path)?;
            Value::read(key, &entry.item, &entry.place).ok()
        };
        let mut own = None;
        for (path, earlier) in &self.given {
            if earlier.source.to.is_empty() || !(is_part(path, key.path) || is_part(key.path, path))
            {
                continue;
            }
            let own = own.get_or_insert_with(|| value(key.path, entry));
            if own.is_none() || *own != value(path, earlier) {
                continue;
            }
            for fit in &earlier.source.to {
                if !entry.source.to.contains(fit) {
                    entry.source.to.push(fit.clone());
                }
            }
        }
    }
}

/// Reads `text` and what it extends, then applies `sets`.
pub(super) fn read(
    text: &str,
    file: &str,
    sets: &[(&str, &str)],
    extends: &(impl Fn(&str) -> Option<String> + ?Sized),
) -> Result<Entries, SpecError> {
    let mut layers = vec![Layer::parse(text, file)?];
    let mut names = Vec::new();
    while let Some((name, place)) = layers[layers.len() - 1].extends.clone() {
        let fail = |message, hint| Err(SpecError::new(Problem::Extends, &place, message, hint));
        if names.contains(&name) {
            return fail(
                format!(
                    "`extends` must not lead in a circle, found `{}`",
                    quoted(&name)
                ),
                "one of them has to stand alone, with all keys of a drive",
            );
        }
        if layers.len() > EXTENDS_DEPTH {
            return fail(
                format!(
                    "`extends` must lead to a whole drive in at most {EXTENDS_DEPTH} steps, found `{}` after as many",
                    quoted(&name)
                ),
                "put some of these files together",
            );
        }
        let Some(base) = extends(&name) else {
            return fail(
                format!("`extends` names no known drive, found `{}`", quoted(&name)),
                "`lodger drives list` prints the known drives; a file of your own is named with \
                 its ending, such as `base.toml`, from the folder of the one that extends it",
            );
        };
        let file = match name.strip_suffix(".toml") {
            Some(_) => name.clone(),
            None => format!("{name}.toml"),
        };
        layers.push(Layer::parse(&base, &file)?);
        names.push(name);
    }
    let mut entries = Entries::default();
    for layer in layers.into_iter().rev() {
        entries.add(layer);
    }
    let mut sets = sets.to_vec();
    sets.sort_by_key(|(path, _)| follows(path.trim()));
    for (path, value) in sets {
        let place = Place::file("--set");
        let key = known(path.trim(), &place)?;
        let source = Source {
            kind: SourceKind::CommandLine,
            from: format!("--set {}={}", key.path, quoted(value)),
            to: Vec::new(),
        };
        let mut entry = Entry {
            item: Item::from_argument(value.trim()),
            place,
            source,
            layer: entries.layers,
        };
        entries.keep_fits(key, &mut entry);
        entries.give(key, entry);
    }
    Ok(entries)
}

/// What one file of a chain of `extends` sets.
#[derive(Debug, Default)]
struct Layer {
    entries: Vec<(&'static Key, Entry)>,
    tables: BTreeSet<&'static str>,
    extends: Option<(String, Place)>,
}

/// A value at the end of a dotted path; an empty table has none.
struct Leaf {
    path: String,
    item: Option<Item>,
    at: usize,
}

impl Layer {
    fn parse(text: &str, file: &str) -> Result<Self, SpecError> {
        let whole = Place::file(file);
        if text.len() > TEXT_BYTES {
            let message = format!("a drive file must not be longer than {TEXT_BYTES} bytes");
            let hint = "is it the right file?";
            return Err(SpecError::new(Problem::Syntax, &whole, message, hint));
        }
        let line_ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
        let at = |offset: usize| {
            let line = line_ends.partition_point(|&end| end < offset) + 1;
            Place {
                line: Some(line as u32),
                ..whole.clone()
            }
        };
        let table = DeTable::parse(text).map_err(|e| {
            let place = e
                .span()
                .map_or_else(|| whole.clone(), |span| at(span.start));
            let message = format!("not valid TOML: {}", e.message().replace('\n', "; "));
            SpecError::new(Problem::Syntax, &place, message, of_syntax(text, &place))
        })?;
        let mut leaves = Vec::new();
        let mut stated = Vec::new();
        for (key, value) in table.get_ref() {
            let name: &str = key.get_ref();
            let out = if name == "sources" {
                &mut stated
            } else {
                &mut leaves
            };
            flatten(
                name,
                key.span().start,
                value,
                text,
                out,
                usize::from(name == "sources"),
            );
        }
        leaves.sort_by_key(|leaf: &Leaf| leaf.at);
        let mut layer = Layer::default();
        for leaf in leaves {
            layer.leaf(leaf, &at)?;
        }
        stated.sort_by_key(|leaf| leaf.at);
        layer.sources(stated, file, &at)?;
        Ok(layer)
    }

    fn leaf(&mut self, leaf: Leaf, at: &impl Fn(usize) -> Place) -> Result<(), SpecError> {
        let place = at(leaf.at);
        if leaf.path == "extends" {
            let Some(Item {
                raw: Raw::Text(name),
                ..
            }) = leaf.item
            else {
                let message = "`extends` must be the name of a drive";
                let hint = "such as `extends = \"tiny\"`; `lodger drives list` prints the names";
                return Err(SpecError::new(Problem::Type, &place, message, hint));
            };
            self.extends = Some((name, place));
            return Ok(());
        }
        let Some(item) = leaf.item else {
            if let Some(table) = keys::OPTIONAL_TABLES.iter().find(|t| **t == leaf.path) {
                self.tables.insert(table);
            } else if !is_table(&leaf.path) {
                known(&leaf.path, &place)?;
            }
            return Ok(());
        };
        let key = known(&leaf.path, &place)?;
        // `"nand.cell"` in quotes and `cell` under `[nand]` are different keys to TOML.
        if self.entries.iter().any(|(other, _)| other.path == key.path) {
            let message = format!("`{}` is given twice", key.path);
            let hint = "leave one of them out";
            return Err(SpecError::new(
                Problem::Contradiction,
                &place,
                message,
                hint,
            ));
        }
        let source = Source::unstated();
        self.entries.push((
            key,
            Entry {
                item,
                place,
                source,
                layer: 0,
            },
        ));
        Ok(())
    }

    /// Puts the `[sources]` of a file to its values.
    fn sources(
        &mut self,
        stated: Vec<Leaf>,
        file: &str,
        at: &impl Fn(usize) -> Place,
    ) -> Result<(), SpecError> {
        let mut sources: BTreeMap<String, Source> = BTreeMap::new();
        for leaf in stated {
            if leaf.path == "sources" && leaf.item.is_none() {
                continue;
            }
            let place = at(leaf.at);
            let fail =
                |message: String| Err(SpecError::new(Problem::Source, &place, message, OF_SOURCES));
            let Some((path, kind, from, to)) = leaf.item.as_ref().and_then(stated_source) else {
                let form = "{ kind = \"...\", from = \"...\" }";
                return fail(format!("every entry of `[sources]` must be `{form}`"));
            };
            let Some(kind) = SourceKind::stated(kind) else {
                let kind = quoted(kind);
                let words = SourceKind::STATED.map(|kind| format!("`{}`", kind.name()));
                let words = words.join(", ");
                return fail(format!(
                    "`kind` of `{path}` must be one of {words}, found `{kind}`"
                ));
            };
            if from.trim().is_empty() {
                return fail(format!("`from` of `{path}` must name a source or a reason"));
            }
            let key = known(path, &place)?;
            let source = Source {
                kind,
                from: from.to_owned(),
                to,
            };
            if !self.entries.iter().any(|(k, _)| k.path == key.path) {
                return fail(format!(
                    "`[sources]` names `{path}`, which {file} does not set"
                ));
            }
            sources.insert(key.path.to_owned(), source);
        }
        for (key, entry) in &mut self.entries {
            if let Some(source) = sources.remove(key.path) {
                entry.source = source;
            }
        }
        Ok(())
    }
}

/// The parts of a `[sources]` entry, which [`flatten`] hands over as a list `[key, kind, from, to]`.
fn stated_source(item: &Item) -> Option<(&str, &str, &str, Vec<String>)> {
    let Raw::List(parts) = &item.raw else {
        return None;
    };
    let [path, kind, from, to] = &parts[..] else {
        return None;
    };
    let (Raw::Text(path), Raw::Text(kind), Raw::Text(from), Raw::List(to)) =
        (&path.raw, &kind.raw, &from.raw, &to.raw)
    else {
        return None;
    };
    let claim = |item: &Item| match &item.raw {
        Raw::Text(text) if !text.trim().is_empty() => Some(text.clone()),
        _ => None,
    };
    let to: Option<Vec<String>> = to.iter().map(claim).collect();
    Some((path, kind, from, to?))
}

/// Collects the values below `value`. Inside `[sources]` a table with `kind` ends a path.
fn flatten(
    path: &str,
    at: usize,
    value: &toml::Spanned<DeValue<'_>>,
    text: &str,
    out: &mut Vec<Leaf>,
    sources: usize,
) {
    let leaf = |item| Leaf {
        path: path.to_owned(),
        item,
        at,
    };
    let DeValue::Table(table) = value.get_ref() else {
        out.push(leaf(Some(Item::from_toml(
            value.get_ref(),
            text,
            value.span(),
        ))));
        return;
    };
    if table.is_empty() {
        out.push(leaf(None));
    }
    if sources > 0 && (table.contains_key("kind") || table.contains_key("from")) {
        let part = |raw| Item {
            raw,
            shown: String::new(),
        };
        let get = |name: &str| match table.get(name) {
            Some(value) => Item::from_toml(value.get_ref(), text, value.span()),
            None if name == "to" => part(Raw::List(Vec::new())),
            None => part(Raw::Other),
        };
        let name = path.strip_prefix("sources.").unwrap_or(path).to_owned();
        let mut parts = vec![part(Raw::Text(name)), get("kind"), get("from"), get("to")];
        let unknown = |key: &str| !["kind", "from", "to"].contains(&key);
        let unknown = table.iter().filter(|(key, _)| unknown(key.get_ref()));
        parts.extend(unknown.map(|_| part(Raw::Other)));
        out.push(leaf(Some(part(Raw::List(parts)))));
        return;
    }
    for (key, value) in table {
        flatten(
            &format!("{path}.{}", key.get_ref()),
            key.span().start,
            value,
            text,
            out,
            sources,
        );
    }
}

fn is_table(path: &str) -> bool {
    path == "sources"
        || KEYS.iter().any(|k| {
            k.path
                .strip_prefix(path)
                .is_some_and(|r| r.starts_with('.'))
        })
}

/// The key of that path, or an error with the nearest one.
fn known(path: &str, place: &Place) -> Result<&'static Key, SpecError> {
    if let Some(key) = keys::find(path) {
        return Ok(key);
    }
    let shown = quoted(path);
    if is_table(path) {
        let message = format!("`{shown}` must be a table");
        return Err(SpecError::new(
            Problem::Type,
            place,
            message,
            of_table(path),
        ));
    }
    let hint = match nearest(path) {
        _ if path == "hmb" || path == "hmb_offer" => {
            "host memory is the host's: `--hmb 32MiB`; what the drive asks for is `tier.hmb.preferred`".to_owned()
        }
        Some(key) => format!("did you mean `{key}`?"),
        None => "`lodger drives show tiny` prints every key".to_owned(),
    };
    let message = format!("unknown key `{shown}`");
    Err(SpecError::new(Problem::UnknownKey, place, message, hint))
}

/// What the values of a table look like.
fn of_table(path: &str) -> String {
    let below = |key: &&Key| {
        let rest = key.path.strip_prefix(path);
        rest.is_some_and(|rest| rest.starts_with('.'))
    };
    match KEYS.iter().find(below) {
        Some(key) => format!("its values have keys of their own, such as `{}`", key.path),
        None => OF_SOURCES.to_owned(),
    }
}

/// The line that is no TOML, and where to see what is.
fn of_syntax(text: &str, place: &Place) -> String {
    let show = "`lodger drives show tiny --output-format toml` prints a drive file";
    let number = place.line.unwrap_or_default();
    let line = text.lines().nth((number as usize).saturating_sub(1));
    match line.map(str::trim).filter(|line| !line.is_empty()) {
        Some(line) => format!("line {number} is `{}`; {show}", quoted(line)),
        None => show.to_owned(),
    }
}

/// The key with the fewest edits to `path`, if they are few.
fn nearest(path: &str) -> Option<&'static str> {
    if path.len() > 100 {
        return None;
    }
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    KEYS.iter()
        .map(|key| {
            // A right name in the wrong table is one mistake, however long the table's name.
            let misplaced = if last(path) == last(key.path) {
                2
            } else {
                usize::MAX
            };
            let edits = strsim::levenshtein(path, key.path);
            (edits.min(misplaced), key.path)
        })
        .min_by_key(|(edits, _)| *edits)
        .filter(|(edits, key)| *edits <= (key.len() / 3).max(2))
        .map(|(_, key)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_found() {
        assert_eq!(nearest("nand.chanels"), Some("nand.channels"));
        assert_eq!(nearest("hmb.preferred"), Some("tier.hmb.preferred"));
        assert_eq!(nearest("colour"), None);
    }
}
