//! What the rules of `architecture.rs` need: the repository's files.

mod drive;
mod style;
mod walk;

use std::path::{Path, PathBuf};
use std::process::Command;

pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest
        .join("../..")
        .canonicalize()
        .expect("the repository's root")
}

pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Files under a folder, without those that builds and tools leave behind.
pub fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let left_behind = ["target", "out", "node_modules", "__pycache__"].contains(&&*name);
        if path.is_dir() && !left_behind && !name.starts_with('.') {
            walk(&path, files);
        } else if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
}

/// Files of the repository: what git tracks, or all there are where git is not at hand.
pub fn repository_files() -> Vec<PathBuf> {
    let root = root();
    let listed = Command::new("git")
        .arg("-C")
        .arg(&root)
        .args(["ls-files", "-z"])
        .output();
    if let Ok(listed) = listed
        && listed.status.success()
        && !listed.stdout.is_empty()
    {
        let names = String::from_utf8_lossy(&listed.stdout).into_owned();
        let files = names.split('\0').filter(|name| !name.is_empty());
        return files
            .map(|name| root.join(name))
            .filter(|path| path.is_file())
            .collect();
    }
    let mut files = Vec::new();
    walk(&root, &mut files);
    files
}

pub fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension()
        .is_some_and(|found| extensions.iter().any(|wanted| found == *wanted))
}

pub fn shown(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string()
}

pub fn none(broken: &[String], rule: &str) {
    assert!(broken.is_empty(), "{rule}:\n  {}", broken.join("\n  "));
}
