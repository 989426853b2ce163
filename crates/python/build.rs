//! The folder `studies/` as Rust, and what maturin would say to the linker, for a plain
//! `cargo build`.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    // Elsewhere symbols of a shared library may stay undefined; macOS wants to be told.
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "macos") {
        println!("cargo:rustc-cdylib-link-arg=-undefined");
        println!("cargo:rustc-cdylib-link-arg=dynamic_lookup");
    }
    let manifest = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let folder = Path::new(&manifest).join("../../studies");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("studies.rs"), table(&folder)).expect("OUT_DIR can be written");
    println!("cargo:rerun-if-changed={}", folder.display());
    println!("cargo:rerun-if-changed=build.rs");
}

/// Names and texts of the study files of a folder.
fn table(folder: &Path) -> String {
    let entries = fs::read_dir(folder).expect("the folder `studies`");
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    let mut rust = String::from("const STUDIES: &[(&str, &str)] = &[\n");
    for file in files {
        let file = file.canonicalize().expect("it was just listed");
        let name = file.file_stem().expect("it ends in `.toml`");
        let _ = writeln!(
            rust,
            "    ({:?}, include_str!({file:?})),",
            name.to_string_lossy()
        );
    }
    rust + "];\n"
}
