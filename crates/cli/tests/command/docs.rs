//! Is the documentation true? `docs/reference` is what the code says, the commands shown in the
//! documentation print what is shown below them, and links lead somewhere.
//!
//! `make docs` (the variable `UPDATE_REFERENCE`) writes what these tests would compare.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest
        .join("../..")
        .canonicalize()
        .expect("the repository's root")
}

fn updating() -> bool {
    std::env::var_os("UPDATE_REFERENCE").is_some()
}

/// Compares a file with what it should be, or makes it so.
fn check(path: &Path, wanted: &str) {
    let found = std::fs::read_to_string(path).unwrap_or_default();
    if found == wanted {
        return;
    }
    if updating() {
        std::fs::write(path, wanted).expect("the documentation can be written");
        return;
    }
    let differs = |(found, wanted): &(&str, &str)| found != wanted;
    let difference = found.lines().zip(wanted.lines()).find(differs);
    panic!(
        "{} is out of date (`make docs` writes it); found and wanted first differ at {difference:?}",
        path.display()
    );
}

#[test]
fn the_reference_is_what_the_code_says() {
    let folder = root().join("docs/reference");
    for (name, text) in crate::reference::pages() {
        check(&folder.join(name), &text);
    }
}

/// Pages with commands in them.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    for folder in ["docs", "docs/concepts", "docs/tasks", "docs/validation"] {
        let entries = std::fs::read_dir(root().join(folder)).expect("the folder of documentation");
        let files = entries.flatten().map(|entry| entry.path());
        pages.extend(files.filter(|path| path.extension().is_some_and(|e| e == "md")));
    }
    pages.sort();
    pages
}

/// An empty folder to run commands in, with the repository's own files at hand.
fn working_folder(page: &Path) -> PathBuf {
    let stem = page
        .file_stem()
        .expect("a page has a name")
        .to_string_lossy()
        .into_owned();
    let folder = std::env::temp_dir().join(format!("lodger-docs-{}-{stem}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    for name in ["examples", "workloads", "drives"] {
        #[cfg(unix)]
        std::os::unix::fs::symlink(root().join(name), folder.join(name)).expect("a link");
    }
    folder
}

/// What a command prints, both streams as a terminal would show them.
fn output(command: &str, folder: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_lodger"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = vec![program.parent().expect("a folder").to_path_buf()];
    folders.extend(std::env::split_paths(&path));
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!("{{ {command}\n}} 2>&1"))
        .current_dir(folder)
        .env("PATH", std::env::join_paths(folders).expect("a path"))
        .env("NO_COLOR", "1")
        .output()
        .expect("a shell");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // Line ends are easier to keep than blanks nobody sees.
    let lines = text.lines().map(|line| format!("{}\n", line.trim_end()));
    lines.collect()
}

/// The page with the output of its commands as it is now. Commands stand in `console` blocks after
/// `$ `, one a line; what follows a command is its whole output.
fn with_output(text: &str, folder: &Path) -> String {
    let mut out = String::new();
    let mut inside = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside && line.trim() == "```console";
        } else if inside {
            let Some(command) = line.strip_prefix("$ ") else {
                continue;
            };
            out += &format!("{line}\n{}", output(command, folder));
            continue;
        }
        out += line;
        out.push('\n');
    }
    out
}

#[cfg(unix)]
#[test]
fn commands_print_what_the_documentation_shows() {
    let mut commands = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        if !text.contains("```console") {
            continue;
        }
        let folder = working_folder(&page);
        check(&page, &with_output(&text, &folder));
        let _ = std::fs::remove_dir_all(&folder);
        commands += text.matches("\n$ ").count();
    }
    assert!(
        commands > 10,
        "the documentation shows commands: {commands} found"
    );
}

/// Commands of a page that stand in `sh` blocks, one a line.
fn typed(text: &str) -> Vec<&str> {
    let blocks = text.split("\n```sh\n").skip(1);
    let blocks = blocks.map(|block| block.split("\n```").next().unwrap_or(block));
    blocks.flat_map(str::lines).collect()
}

/// Whether a command needs no more than the program and a clone: no package, virtual machine or drive of the user's.
fn is_by_itself(command: &str) -> bool {
    let others = [
        "make ",
        "pip ",
        "python ",
        "lodger serve ",
        "lodger ctl ",
        "lodger sweep ",
        "lodger probe /dev/",
    ];
    !others.iter().any(|other| command.starts_with(other))
}

#[cfg(unix)]
#[test]
fn the_commands_of_each_path_run() {
    let page = root().join("docs/paths.md");
    let text = std::fs::read_to_string(&page).expect("a page");
    let folder = working_folder(&page);
    let ran = typed(&text)
        .into_iter()
        .filter(|command| is_by_itself(command));
    let mut commands = 0;
    for command in ran {
        let said = output(&format!("{command} || echo FAILED: $?"), &folder);
        assert!(!said.contains("FAILED: "), "{command}\n{said}");
        commands += 1;
    }
    let _ = std::fs::remove_dir_all(&folder);
    assert!(commands > 15, "the page has commands: {commands} found");
}

#[test]
fn a_wrong_output_is_found() {
    let page = "text\n```console\n$ echo right\nwrong\n$ true\nextra\n```\n$ echo not a command\n";
    let wanted = "text\n```console\n$ echo right\nright\n$ true\n```\n$ echo not a command\n";
    assert_eq!(with_output(page, &std::env::temp_dir()), wanted);
}

/// Targets of the links of a page that are files.
fn links(text: &str) -> Vec<String> {
    let parts = text.split("](").skip(1);
    let targets = parts.filter_map(|part| part.split_once(')').map(|(target, _)| target));
    targets
        .filter(|target| !target.contains("://") && !target.starts_with('#'))
        .map(|target| target.split('#').next().unwrap_or(target).to_owned())
        .collect()
}

#[test]
fn links_lead_somewhere() {
    let mut all = pages();
    for name in [
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "workloads/README.md",
    ] {
        all.push(root().join(name));
    }
    let mut broken = Vec::new();
    for page in all {
        let text = std::fs::read_to_string(&page).expect("a page");
        let folder = page.parent().expect("a page stands in a folder");
        for target in links(&text) {
            if !folder.join(&target).exists() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(
        broken.is_empty(),
        "links that lead nowhere:\n  {}",
        broken.join("\n  ")
    );
    assert_eq!(
        links("[a](b.md#c) [d](https://e) ![f](g.svg)"),
        ["b.md", "g.svg"]
    );
}
