//! The drives that come with the program.
//!
//! Each is a file of the folder `drives/`, built into the binary so that it works from anywhere.

use crate::inputs;
use lodger_core::spec::{self, ParsedDrive, SpecError};
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// Names and texts, in the order in which they are listed.
const COLLECTION: &[(&str, &str)] = &[
    ("rc100-240", include_str!("../../../drives/rc100-240.toml")),
    ("rc100-480", include_str!("../../../drives/rc100-480.toml")),
    ("bg4", include_str!("../../../drives/bg4.toml")),
    ("a80", include_str!("../../../drives/a80.toml")),
    ("ex900", include_str!("../../../drives/ex900.toml")),
    ("m730", include_str!("../../../drives/m730.toml")),
    ("a1000", include_str!("../../../drives/a1000.toml")),
    (
        "wd-black-3d",
        include_str!("../../../drives/wd-black-3d.toml"),
    ),
    ("970-pro", include_str!("../../../drives/970-pro.toml")),
    ("cxl-512", include_str!("../../../drives/cxl-512.toml")),
    (
        "hong-bufferless",
        include_str!("../../../drives/hong-bufferless.toml"),
    ),
    (
        "hong-device-buffer",
        include_str!("../../../drives/hong-device-buffer.toml"),
    ),
    (
        "hong-hmb-buffer",
        include_str!("../../../drives/hong-hmb-buffer.toml"),
    ),
    ("pm963", include_str!("../../../drives/pm963.toml")),
    ("sz985", include_str!("../../../drives/sz985.toml")),
    ("2b-ssd", include_str!("../../../drives/2b-ssd.toml")),
    ("galaxy-s7", include_str!("../../../drives/galaxy-s7.toml")),
    ("ufs21-64", include_str!("../../../drives/ufs21-64.toml")),
    ("tiny", include_str!("../../../drives/tiny.toml")),
];

/// Names of all drives.
pub fn names() -> impl Iterator<Item = &'static str> {
    COLLECTION.iter().map(|(name, _)| *name)
}

/// The file of the drive of that name.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    COLLECTION
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// The drive of that name with `sets` applied; `None` if there is none of that name.
///
/// # Errors
/// What is wrong with `sets`.
pub fn load(name: &str, sets: &[(&str, &str)]) -> Option<Result<ParsedDrive, SpecError>> {
    text(name).map(|text| parse(text, &format!("{name}.toml"), sets))
}

/// Reads a drive file, which may extend drives of the collection, and other files by their path from its
/// own folder.
///
/// # Errors
/// The first thing that is wrong, with its place.
pub fn parse(text: &str, file: &str, sets: &[(&str, &str)]) -> Result<ParsedDrive, SpecError> {
    let folder = RefCell::new(folder_of(Path::new(file)));
    spec::parse(text, file, sets, &|name| {
        if let Some(text) = self::text(name) {
            return Some(text.to_owned());
        }
        if !name.ends_with(".toml") {
            return None;
        }
        let path = folder.borrow().join(name);
        let text = inputs::read_text(&path, "drive file").ok()?;
        *folder.borrow_mut() = folder_of(&path);
        Some(text)
    })
}

fn folder_of(file: &Path) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).to_owned()
}
