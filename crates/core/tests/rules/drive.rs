//! How entangled the drive is. Its `impl` is spread over files that call each other through `self`, which
//! no import shows. The limits below are what was counted when they were last lowered: they may only fall.

use super::{none, read, root, shown, walk};
use crate::scan::{Function, code, functions, impls, struct_fields, without_tests, word_places};
use std::collections::{BTreeMap, BTreeSet};

/// Files with an `impl` of the drive.
const FILES_MAX: usize = 10;
/// Fields of the drive.
const FIELDS_MAX: usize = 21;
/// Calls through `self` of a method in another file.
const CALLS_MAX: usize = 88;
/// Pairs of files with such calls, and those of them that call each other.
const PAIRS_MAX: usize = 23;
const MUTUAL_PAIRS_MAX: usize = 7;

/// What is counted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tangle {
    files: usize,
    calls: usize,
    pairs: usize,
    mutual_pairs: usize,
}

/// The code of all `impl` blocks of `of` in a file, one after the other.
fn bodies(source: &str, of: &str) -> String {
    impls(&without_tests(&code(source)), of).concat()
}

fn tangle(files: &[(String, String)], of: &str) -> Tangle {
    let bodies: Vec<(&str, String)> = files
        .iter()
        .map(|(file, source)| (file.as_str(), bodies(source, of)))
        .filter(|(_, body)| !body.is_empty())
        .collect();
    let mut home = BTreeMap::new();
    for (file, body) in &bodies {
        for Function { name, .. } in functions(body) {
            home.insert(name, *file);
        }
    }
    let mut calls = 0;
    let mut pairs = BTreeSet::new();
    for (file, body) in &bodies {
        for at in word_places(body, "self") {
            // `self` and the dot may stand on two lines.
            let Some(rest) = body[at + 4..].trim_start().strip_prefix('.') else {
                continue;
            };
            let length = rest
                .bytes()
                .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_');
            let length = length.count();
            let is_call = rest[length..].starts_with(['(', ':']);
            match home.get(&rest[..length]) {
                Some(other) if is_call && other != file => {
                    calls += 1;
                    pairs.insert((*file, *other));
                }
                _ => {}
            }
        }
    }
    let mutual = pairs
        .iter()
        .filter(|(a, b)| a < b && pairs.contains(&(*b, *a)));
    Tangle {
        files: bodies.len(),
        calls,
        pairs: pairs.len() - mutual.clone().count(),
        mutual_pairs: mutual.count(),
    }
}

#[test]
fn the_drive_is_not_more_entangled_than_it_was() {
    let mut paths = Vec::new();
    walk(&root().join("crates/core/src"), &mut paths);
    let files: Vec<(String, String)> = paths.iter().map(|path| (shown(path), read(path))).collect();
    let found = tangle(&files, "Device");
    let device = read(&root().join("crates/core/src/device/mod.rs"));
    let fields = struct_fields(&code(&device), "Device").expect("it is there");
    println!("{found:?}, {fields} fields");
    assert!(found.files > 0 && fields > 0);
    let counts = [
        ("files with an `impl` of the drive", found.files, FILES_MAX),
        ("fields of the drive", fields, FIELDS_MAX),
        (
            "calls from file to file through `self`",
            found.calls,
            CALLS_MAX,
        ),
        ("pairs of files with such calls", found.pairs, PAIRS_MAX),
        (
            "pairs that call each other",
            found.mutual_pairs,
            MUTUAL_PAIRS_MAX,
        ),
    ];
    let broken: Vec<String> = counts
        .iter()
        .filter(|(_, found, most)| found > most)
        .map(|(what, found, most)| format!("{found} {what}, where there were {most}"))
        .collect();
    none(&broken, "what is entangled may only become less");
}

#[test]
fn a_call_from_file_to_file_is_found() {
    let file = |name: &str, body: &str| {
        let source = format!(
            "impl<C: Contents> Device<C, M> {{ {body} }} impl Other {{ fn x(&self) {{}} }}"
        );
        (name.to_owned(), source)
    };
    let files = [
        file(
            "a",
            "fn a(&self) { self.b(); self\n.b(); self.a(); self.b; }",
        ),
        file("b", "fn b(&self) { self.a(); self.x(); /* self.c() */ }"),
        file("c", "fn c<T>(&self) { self.b(); self.c::<u8>(); }"),
        (
            "d".to_owned(),
            "impl Other { fn d(&self) { self.a(); } }".to_owned(),
        ),
        (
            "e".to_owned(),
            "#[cfg(test)]\nmod tests { impl Device<C, M> { fn e(&self) { self.a(); } } }"
                .to_owned(),
        ),
    ];
    let found = tangle(&files, "Device");
    let expected = Tangle {
        files: 3,
        calls: 4,
        pairs: 2,
        mutual_pairs: 1,
    };
    assert_eq!(found, expected);
    let source =
        "pub struct Device<C = X, M = Y> { pub a: u8, b: Vec<(u8, u16)>, c: Box<[u8; 3]> }";
    assert_eq!(struct_fields(source, "Device"), Some(3));
    assert_eq!(struct_fields(source, "Other"), None);
}
