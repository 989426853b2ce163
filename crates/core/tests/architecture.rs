//! Does the code keep the rules of ARCHITECTURE.md? Who may use whom, what the model may not touch,
//! how entangled the drive is (`rules/drive.rs`), and how long files and functions may be
//! (`rules/style.rs`).

mod rules;
mod scan;

use rules::{has_extension, none, read, repository_files, root, shown, walk};
use scan::{code, exports, modules_named, named_under, without_tests, word_lines};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Crates, and which of ours each may use, all without `lodger-`; `lodger` is the command.
const CRATES: &[(&str, &[&str])] = &[
    ("core", &["prefetch"]),
    ("prefetch", &[]),
    ("workload", &["core"]),
    ("run", &["core", "workload", "page"]),
    ("page", &[]),
    ("wire", &[]),
    ("serve", &["core", "workload", "wire", "guest-ram"]),
    // A prober that could read the model would prove nothing.
    ("probe", &["page", "nvme-ioctl", "uring"]),
    ("nvme-ioctl", &[]),
    ("uring", &[]),
    ("guest-ram", &[]),
    ("window", &["guest-ram", "nvme-ioctl"]),
    ("window-c", &["window"]),
    ("window-preload", &["window"]),
    ("testing", &[]), // For tests alone.
    ("what-if", &["core", "workload", "run", "page"]),
    ("what-if-wasm", &["what-if"]),
    (
        "fuzz",
        &["lodger", "core", "workload", "run", "probe", "wire"],
    ),
    (
        "lodger",
        &["core", "workload", "run", "serve", "probe", "sim-target"],
    ),
    // The one place where prober and model meet.
    ("sim-target", &["core", "run", "probe"]),
    (
        "python",
        &[
            "lodger",
            "core",
            "workload",
            "run",
            "page",
            "probe",
            "sim-target",
        ],
    ),
];

/// The way of a request through the core: each folder sees only those after it.
const WAY: [&str; 5] = ["transport", "memory", "controller", "ftl", "nand"];
/// What stands beside the way: seen by all of it, sees none of it.
const BESIDE: [&str; 11] = [
    "arrays", "engine", "ids", "observe", "request", "rng", "slab", "sparse", "spec", "table",
    "time",
];

/// Parts of `std` by which the outside world, or chance, would come into the model. The standard
/// hash maps are among them because their order differs from run to run.
const STD_FORBIDDEN: [&str; 9] = [
    "env", "fs", "io", "net", "os", "process", "sync", "thread", "time",
];
/// Words that must not stand in the model's code.
const WORDS_FORBIDDEN: [&str; 14] = [
    "unsafe",
    "static",
    "thread_local",
    "dyn",
    "HashMap",
    "HashSet",
    "RandomState",
    "Instant",
    "SystemTime",
    "RefCell",
    "println",
    "eprintln",
    "print",
    "eprint",
];

// Crates.

/// Names of our crates that a manifest depends on, in any table of dependencies. `renamed` keys
/// (`package = "..."`) count by their package.
fn our_dependencies(manifest: &toml::Table, tests_too: bool) -> Vec<String> {
    let mut names = Vec::new();
    let mut tables = vec![manifest];
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        tables.extend(targets.values().filter_map(toml::Value::as_table));
    }
    for table in tables {
        for kind in ["dependencies", "build-dependencies", "dev-dependencies"] {
            if kind == "dev-dependencies" && !tests_too {
                continue;
            }
            let Some(dependencies) = table.get(kind).and_then(toml::Value::as_table) else {
                continue;
            };
            for (key, value) in dependencies {
                let package = value.get("package").and_then(toml::Value::as_str);
                let name = package.unwrap_or(key);
                if kind == "dev-dependencies" && name == "lodger-testing" {
                    continue;
                }
                if name == "lodger" || name.starts_with("lodger-") || name.starts_with("lodger_") {
                    names.push(name.replace('_', "-"));
                }
            }
        }
    }
    names
}

fn broken_dependencies(text: &str) -> Vec<String> {
    let manifest: toml::Table = text.parse().expect("a manifest is TOML");
    let name = manifest["package"]["name"]
        .as_str()
        .expect("a package has a name");
    let short = |name: &str| name.strip_prefix("lodger-").unwrap_or(name).to_owned();
    let Some((_, allowed)) = CRATES.iter().find(|(known, _)| *known == short(name)) else {
        return vec![format!("`{name}` has no place in the architecture")];
    };
    // Tests may use more than the crate itself, except where the point is not to know.
    let tests_too = name == "lodger-probe" || name == "lodger-core";
    our_dependencies(&manifest, tests_too)
        .into_iter()
        .filter(|used| !allowed.contains(&short(used).as_str()))
        .map(|used| format!("`{name}` must not use `{used}`"))
        .collect()
}

#[test]
fn crates_use_only_what_the_architecture_allows() {
    let mut broken = Vec::new();
    for path in repository_files() {
        if path.ends_with("Cargo.toml") && path.parent() != Some(root().as_path()) {
            broken.extend(broken_dependencies(&read(&path)));
        }
    }
    none(&broken, "crates use only those below them");
}

/// Crates that may have `unsafe` code, and in how many lines: to be read before it can be believed.
const UNSAFE: [(&str, usize); 7] = [
    ("guest-ram", 400),
    ("nvme-ioctl", 450),
    ("prefetch", 60),
    ("uring", 350),
    ("what-if-wasm", 60),
    ("window-c", 280),
    // A function for each of the C library's that changes a file or passes it on, nearly all of a line or two.
    ("window-preload", 600),
];

#[test]
fn unsafe_code_is_in_small_places() {
    let mut broken = Vec::new();
    let mut lines = [0; UNSAFE.len()];
    for path in repository_files() {
        let shown = shown(&path);
        let place = UNSAFE
            .iter()
            .position(|(folder, _)| shown.starts_with(&format!("crates/{folder}/")));
        if let Some(place) = place {
            if shown.starts_with(&format!("crates/{}/src", UNSAFE[place].0)) {
                lines[place] += read(&path).lines().count();
            }
        } else if shown.starts_with("crates/") && path.ends_with("Cargo.toml") {
            let manifest: toml::Table = read(&path).parse().expect("a manifest is TOML");
            let inherits = manifest
                .get("lints")
                .and_then(|lints| lints.get("workspace"));
            let forbids = inherits == Some(&toml::Value::Boolean(true));
            broken.extend((!forbids).then_some(shown));
        }
    }
    for ((folder, most), lines) in UNSAFE.iter().zip(lines) {
        assert!(lines > 0, "{folder} is where its code is looked for");
        broken.extend((lines > *most).then(|| format!("{folder}: {lines} lines")));
    }
    none(
        &broken,
        "seven crates have unsafe code, and little; the others inherit `forbid`",
    );
}

#[test]
fn a_forbidden_dependency_is_found() {
    let manifest = |name: &str, rest: &str| format!("[package]\nname = \"{name}\"\n{rest}");
    let broken = |name: &str, rest: &str| broken_dependencies(&manifest(name, rest));
    let core = "[dependencies]\nlodger-core.workspace = true";
    assert_eq!(broken("lodger-probe", core).len(), 1);
    assert_eq!(broken("lodger-workload", core), [""; 0]);
    assert_eq!(
        broken("lodger-probe", "[dev-dependencies]\nlodger_core = \"1\"").len(),
        1
    );
    let testing = "[dev-dependencies]\nlodger-testing.workspace = true";
    assert_eq!(broken("lodger-core", testing), [""; 0]);
    let testing = "[dependencies]\nlodger-testing.workspace = true";
    assert_eq!(
        broken("lodger-core", testing).len(),
        1,
        "not outside of tests"
    );
    let renamed = "[target.'cfg(unix)'.dependencies]\nx = { package = \"lodger-core\" }";
    assert_eq!(broken("lodger-wire", renamed).len(), 1);
    assert_eq!(
        broken("lodger-core", "[build-dependencies]\nlodger = \"1\"").len(),
        1
    );
    assert_eq!(broken("lodger-more", "").len(), 1);
}

// Folders of the core.

/// The core's source files with their module paths.
fn core_sources() -> Vec<(PathBuf, Vec<String>)> {
    let source = root().join("crates/core/src");
    let mut files = Vec::new();
    walk(&source, &mut files);
    let module = |path: &PathBuf| {
        let relative = path
            .strip_prefix(&source)
            .expect("below src")
            .with_extension("");
        let parts = relative
            .components()
            .map(|part| part.as_os_str().to_string_lossy().into_owned());
        parts
            .filter(|part| part != "mod" && part != "lib")
            .collect::<Vec<_>>()
    };
    let files = files
        .into_iter()
        .filter(|path| has_extension(path, &["rs"]));
    files.map(|path| (path.clone(), module(&path))).collect()
}

/// Whether code in the top-level module `from` may name the top-level module `to`.
fn may_name(from: &str, to: &str) -> bool {
    let place = |name: &str| WAY.iter().position(|folder| *folder == name);
    match (place(from), place(to)) {
        // The host stands at the end of the drive's link; nothing in the drive knows of it.
        _ if from == to || from == "host" => true,
        _ if to == "host" => false,
        _ if from == "device" => true,
        _ if to == "device" => false,
        (Some(from), Some(to)) => from < to,
        (Some(_), None) => BESIDE.contains(&to),
        (None, Some(_)) => false,
        // What is observed has a number of its kind; an observer needs no more.
        (None, None) if from == "observe" => to == "ids",
        (None, None) => BESIDE.contains(&from) && BESIDE.contains(&to),
    }
}

fn broken_paths(source: &str, module: &[&str], exports: &BTreeMap<String, String>) -> Vec<String> {
    let Some(from) = module.first() else {
        return Vec::new();
    };
    modules_named(&code(source), module, exports)
        .into_iter()
        .filter(|(_, to)| !may_name(from, to))
        .map(|(line, to)| {
            format!(
                "{}, line {line}: `{from}` must not name `{to}`",
                module.join("/")
            )
        })
        .collect()
}

#[test]
fn folders_of_the_core_see_only_those_below_them() {
    let exports = exports(&read(&root().join("crates/core/src/lib.rs")));
    assert_eq!(exports.get("Device").map(String::as_str), Some("device"));
    let mut broken = Vec::new();
    for (path, module) in core_sources() {
        let module: Vec<&str> = module.iter().map(String::as_str).collect();
        if let Some(top) = module.first() {
            let known = [&WAY[..], &BESIDE, &["host", "device"]].concat();
            assert!(known.contains(top), "`{top}` has no place");
        }
        broken.extend(broken_paths(&read(&path), &module, &exports));
    }
    none(&broken, "folders see only those below them");
}

#[test]
fn a_look_upwards_is_found() {
    let exports = exports("pub use device::Device;\npub use request::{Op, Request};");
    let broken = |module: &[&str], source: &str| broken_paths(source, module, &exports).len();
    assert_eq!(broken(&["nand", "array"], "use crate::ftl::Ftl;"), 1);
    assert_eq!(broken(&["ftl"], "use crate::nand::Array;"), 0);
    assert_eq!(
        broken(
            &["ftl"],
            "use crate::{nand::Array, controller::{Cache, X}, device};"
        ),
        2
    );
    assert_eq!(broken(&["ftl", "x"], "fn f(d: &crate::Device) {}"), 1);
    assert_eq!(broken(&["ftl", "x"], "use super::super::host::hmb;"), 1);
    assert_eq!(broken(&["ftl", "x"], "use super::host;"), 0);
    assert_eq!(broken(&["slab"], "mod tests { use super::*; }"), 0);
    assert_eq!(
        broken(&["slab"], "mod tests { use super::super::host; }"),
        1
    );
    assert_eq!(broken(&["ftl", "x"], "use crate::*;"), 1);
    assert_eq!(
        broken(
            &["ftl", "x"],
            "use crate::Op; // crate::device\n/* crate::host */"
        ),
        0
    );
    assert_eq!(broken(&["spec"], "use crate::nand::Geometry;"), 1);
    assert_eq!(broken(&["observe", "counters"], "use crate::time::S;"), 1);
    assert_eq!(broken(&["observe", "tracer"], "use crate::ids::DieId;"), 0);
    assert_eq!(broken(&["slab"], "use crate::engine::INDEX_MAX;"), 0);
    assert_eq!(broken(&["device", "read"], "use crate::{host, nand};"), 1);
}

/// What the workload may know of the core: what a request is, how long a second is, and how latencies are counted.
const REQUEST_TYPES: [&str; 12] = [
    "Histogram",
    "Op",
    "Purpose",
    "Request",
    "Completion",
    "Status",
    "EntryId",
    "WindowCall",
    "WindowReply",
    "WindowCompletion",
    "WindowError",
    "time",
];

/// A crate's folder, a crate that it may use for little, and for what.
const FOR_LITTLE: [(&str, &str, &[&str]); 2] = [
    ("crates/workload/", "lodger_core", &REQUEST_TYPES),
    // What is found out, is found out by the library: Python has the command itself for its users alone.
    ("crates/python/", "lodger", &["main_with_args"]),
];

#[test]
fn the_workload_knows_nothing_of_the_drive_and_python_little_of_the_command() {
    let mut broken = Vec::new();
    for path in repository_files() {
        let shown = shown(&path);
        for (folder, used, allowed) in FOR_LITTLE {
            if !shown.starts_with(folder) || !has_extension(&path, &["rs"]) {
                continue;
            }
            for (line, name) in named_under(&code(&read(&path)), used) {
                if !allowed.contains(&name.as_str()) {
                    broken.push(format!("{shown}:{line}: `{used}::{name}`"));
                }
            }
        }
    }
    none(&broken, "crates use of another what they may");
}

// What the model may not touch.

/// Tests inside the model's files may use what they like.
fn broken_purity(source: &str) -> Vec<String> {
    let code = without_tests(&code(source));
    let mut broken = Vec::new();
    for root in ["std", "core"] {
        for (line, name) in named_under(&code, root) {
            if STD_FORBIDDEN.contains(&name.as_str()) || name == "*" {
                broken.push(format!("line {line}: `{root}::{name}`"));
            }
        }
    }
    // `'static` is a lifetime, not a global.
    let code = code.replace("'static", "'_");
    for word in WORDS_FORBIDDEN {
        let lines = word_lines(&code, word).into_iter();
        broken.extend(lines.map(|line| format!("line {line}: `{word}`")));
    }
    broken
}

#[test]
fn the_model_has_no_outside_world_no_globals_and_no_dynamic_dispatch() {
    let mut broken = Vec::new();
    for (path, _) in core_sources() {
        let found = broken_purity(&read(&path));
        broken.extend(
            found
                .into_iter()
                .map(|what| format!("{}, {what}", shown(&path))),
        );
    }
    none(&broken, "the model computes, and nothing else");
}

#[test]
fn an_impure_line_is_found() {
    let broken = |source: &str| broken_purity(source).len();
    assert_eq!(broken("use std::fs;"), 1);
    assert_eq!(
        broken("use std::{cmp::Reverse, time::Duration, thread};"),
        2
    );
    assert_eq!(broken("let t = std::time::Instant::now();"), 2);
    assert_eq!(broken("fn f(x: &dyn Fn()) {}"), 1);
    assert_eq!(broken("fn f(x: Box<dyn Fn()>) {}"), 1);
    assert_eq!(broken("static mut COUNT: u32 = 0;"), 1);
    assert_eq!(broken("thread_local! { }"), 1);
    assert_eq!(broken("unsafe { }"), 1);
    assert_eq!(broken("use std::collections::HashMap;"), 1);
    assert_eq!(broken("use std as s;"), 1);
    assert_eq!(broken("#[cfg(test)]\nmod tests { use std::fs; }"), 0);
    assert_eq!(broken("#[cfg(test)]\nmod tests;\nuse std::fs;\n"), 1);
    assert_eq!(
        broken("/// unsafe dyn std::fs\nconst A: &'static str = \"static dyn\";"),
        0
    );
    assert_eq!(
        broken("let dynamic = r#\"std::fs \"unsafe\"\"#; let q = '\"'; // dyn"),
        0
    );
    assert_eq!(
        broken("fn a<'a>(x: &'a str) { let c = 'a'; let d = dyn_; }"),
        0
    );
}
