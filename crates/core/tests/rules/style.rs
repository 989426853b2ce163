//! How long files and functions may be, and that the repository works anywhere.

use super::{has_extension, none, read, repository_files, shown};
use crate::scan::{Function, code, functions};

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;

#[test]
fn files_are_short_enough_to_read() {
    let mut broken = Vec::new();
    for path in repository_files() {
        if has_extension(&path, &["rs", "py", "sh"]) {
            let lines = read(&path).lines().count();
            if lines > FILE_LINES_MAX {
                broken.push(format!("{}: {lines} lines", shown(&path)));
            }
        }
    }
    none(
        &broken,
        &format!("files have at most {FILE_LINES_MAX} lines"),
    );
}

#[test]
fn functions_are_short_enough_to_read() {
    let mut broken = Vec::new();
    for path in repository_files() {
        if !has_extension(&path, &["rs"]) {
            continue;
        }
        for Function { name, line, lines } in functions(&code(&read(&path))) {
            // The one match on events may be longer.
            let is_the_match = name == "handle" && shown(&path) == "crates/core/src/device/mod.rs";
            if lines > FUNCTION_LINES_MAX && !is_the_match {
                broken.push(format!("{}:{line}: `{name}`, {lines} lines", shown(&path)));
            }
        }
    }
    none(
        &broken,
        &format!("functions have at most {FUNCTION_LINES_MAX} lines"),
    );
}

#[test]
fn a_long_function_is_found() {
    let source = "trait T { fn a(x: [u8; 3]); }\nfn b() {\n  let s = \"}\"; // }\n  if x { }\n}\nfn c() { fn d() {\n} }";
    let found = functions(&code(source));
    let found: Vec<_> = found
        .iter()
        .map(|f| (f.name.as_str(), f.line, f.lines))
        .collect();
    assert_eq!(found, [("b", 2, 4), ("c", 6, 2), ("d", 6, 2)]);
}

/// Paths of the machines we work on, and hosts that a build must not depend on. Put together here,
/// so that this file does not hold them itself.
fn places_forbidden() -> Vec<String> {
    let hosts = ["static.crates", "index.crates"].map(|host| format!("{host}.io"));
    let mut places = vec![
        ["files.python", "hosted"].concat(),
        ["pypi.org/", "simple"].concat(),
        ["registry.npm", "js"].concat(),
        ["deb.debian", ".org"].concat(),
        ["/tmp/bash", "_jobs"].concat(),
        ["/tmp/", "target-"].concat(),
    ];
    places.extend(hosts);
    places.extend(["work", "farm", "root", "home", "Users"].map(|top| format!("/{top}/")));
    places
}

/// Places in a text that only exist on one machine. An address such as `example.org/home/x` and a
/// relative path such as `../sub/x` are none.
fn broken_places(text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    for place in places_forbidden() {
        for (at, _) in text.match_indices(&place) {
            let before = text[..at].chars().next_back();
            let inside = before.is_some_and(|c| c.is_alphanumeric() || "._-~$}/*".contains(c));
            if !(place.starts_with('/') && inside) {
                let line = text[..at].matches('\n').count() + 1;
                broken.push(format!("line {line}: `{place}`"));
            }
        }
    }
    broken
}

#[test]
fn no_file_names_a_place_of_one_machine() {
    let mut broken = Vec::new();
    for path in repository_files() {
        // Lock files name registries, by their nature; traces and pictures are data.
        if has_extension(&path, &["lock"]) {
            continue;
        }
        let Ok(text) = String::from_utf8(std::fs::read(&path).unwrap_or_default()) else {
            continue;
        };
        let found = broken_places(&text);
        broken.extend(
            found
                .into_iter()
                .map(|what| format!("{}, {what}", shown(&path))),
        );
    }
    none(&broken, "the repository works anywhere");
}

#[test]
fn a_place_of_one_machine_is_found() {
    let host = ["static.crates", ".io"].concat();
    let own = ["/wo", "rk/main/x"].concat();
    let person = ["/ho", "me/someone/x"].concat();
    assert_eq!(broken_places(&format!("see {own}")).len(), 1);
    assert_eq!(broken_places(&format!("cd {person} # {own}")).len(), 2);
    assert_eq!(broken_places(&format!("https://{host}/x")).len(), 1);
    assert_eq!(
        broken_places(&format!("https://example.org{person} ..{own}")).len(),
        0
    );
}
