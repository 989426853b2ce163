//! ARCHITECTURE.md walks through the code: what it names on the way is there.

use super::{none, read, root};
use crate::scan::{code, functions};
use std::collections::{BTreeMap, BTreeSet};

/// What is quoted in a text, in order.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Files that a text names, and the functions it names after each.
fn named(text: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut files: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut file = "";
    for name in quoted(text) {
        if name.contains('.') {
            file = name;
        } else if name.starts_with(|first: char| first.is_ascii_lowercase()) && !name.contains('/')
        {
            files.entry(file).or_default().insert(name);
        }
    }
    files
}

#[test]
fn what_the_walk_names_is_there() {
    let text = read(&root().join("ARCHITECTURE.md"));
    let (_, walk) = text.split_once("## A walk\n").expect("a walk");
    let (walk, _) = walk.split_once("\n## ").expect("an end of it");
    let mut broken = Vec::new();
    let mut steps = 0;
    for (file, wanted) in named(walk) {
        let source = read(&root().join("crates/core/src").join(file));
        let source = code(&source);
        let there: BTreeSet<String> = functions(&source).into_iter().map(|f| f.name).collect();
        steps += wanted.len();
        let missing = wanted.into_iter().filter(|name| !there.contains(*name));
        broken.extend(missing.map(|name| format!("{file}: `{name}`")));
    }
    none(&broken, "the walk of ARCHITECTURE.md names what is there");
    assert!(steps > 40, "{steps}");
}
