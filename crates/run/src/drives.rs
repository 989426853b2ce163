//! Drives: those that come with Lodger, and drive files.
//!
//! Each drive of the collection is a file of the folder `drives/`, built in so that it is there from
//! anywhere.

use crate::error::Error;
use crate::files::Files;
use lodger_core::spec::{self, DriveSpec, ParsedDrive};
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
    ("aging-tlc", include_str!("../../../drives/aging-tlc.toml")),
    ("tiny", include_str!("../../../drives/tiny.toml")),
];

/// Names of the drives of the collection.
pub fn names() -> impl Iterator<Item = &'static str> {
    COLLECTION.iter().map(|(name, _)| *name)
}

/// The text of the collection's drive of that name.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    COLLECTION
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// A drive to run, with the name the user gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct Drive {
    /// Name in the collection, or the file.
    pub name: String,
    /// What the file says.
    pub parsed: ParsedDrive,
}

impl Drive {
    /// The drive called `name` in the collection, or the drive file of that name, with the values of
    /// `sets` (key and value, as `--set` takes them) in place of its own.
    ///
    /// # Errors
    /// If there is no such drive or file, or something is wrong with it or with `sets`.
    pub fn open(name: &str, sets: &[(&str, &str)]) -> Result<Self, Error> {
        Files::default().drive(name, sets)
    }

    /// The drive of a drive file's text. `name` is what messages and results call it.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn parse(name: &str, text: &str, sets: &[(&str, &str)]) -> Result<Self, Error> {
        Ok(Drive {
            name: name.to_owned(),
            parsed: Files::default().parse_drive(text, name, sets)?,
        })
    }

    /// What the drive is made of.
    #[must_use]
    pub fn spec(&self) -> &DriveSpec {
        &self.parsed.spec
    }
}

impl Files {
    /// As [`Drive::open`].
    ///
    /// # Errors
    /// If there is no such drive or file, or something is wrong with it or with `sets`.
    pub fn drive(self, name: &str, sets: &[(&str, &str)]) -> Result<Drive, Error> {
        let parsed = match text(name) {
            Some(text) => self.parse_drive(text, &format!("{name}.toml"), sets)?,
            None if looks_like_file(name) => {
                let text = self.text(Path::new(name), "drive file")?;
                self.parse_drive(&text, name, sets)?
            }
            None => return Err(unknown_drive(name)),
        };
        Ok(Drive {
            name: name.to_owned(),
            parsed,
        })
    }

    /// Reads the text of a drive file, which may extend drives of the collection, and other files by
    /// their path from its own folder. `file` is what messages call it, and where that folder is.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn parse_drive(
        self,
        text: &str,
        file: &str,
        sets: &[(&str, &str)],
    ) -> Result<ParsedDrive, Error> {
        let folder = RefCell::new(folder_of(Path::new(file)));
        let parsed = spec::parse(text, file, sets, &|name| {
            if let Some(text) = self::text(name) {
                return Some(text.to_owned());
            }
            if !name.ends_with(".toml") {
                return None;
            }
            let path = folder.borrow().join(name);
            let text = self.text(&path, "drive file").ok()?;
            *folder.borrow_mut() = folder_of(&path);
            Some(text)
        });
        Ok(parsed?)
    }
}

fn folder_of(file: &Path) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).to_owned()
}

fn looks_like_file(name: &str) -> bool {
    name.contains(['/', '\\']) || name.ends_with(".toml") || Path::new(name).exists()
}

fn unknown_drive(name: &str) -> Error {
    let shown = name.escape_debug().to_string();
    let error = Error::input(format!(
        "no drive is called `{shown}`, and no file is either"
    ));
    if name.contains(',') {
        return error.hint("one name for each `--drive`: `compare --drive A --drive B`; a sweep takes `--drive A,B`");
    }
    let lower = name.to_ascii_lowercase();
    let begun: Vec<_> = names()
        .filter(|known| lower.len() > 1 && known.starts_with(&lower))
        .collect();
    if !begun.is_empty() {
        return error.hint(format!(
            "did you mean `{}`? `lodger drives list` shows all",
            begun.join("` or `")
        ));
    }
    let nearest = names()
        .map(|known| (strsim::levenshtein(&lower, known), known))
        .min()
        .filter(|(edits, known)| *edits <= known.len() / 2);
    let all: Vec<_> = names().collect();
    match nearest {
        Some((_, known)) => error.hint(format!(
            "did you mean `{known}`? `lodger drives list` shows all"
        )),
        None => error.hint(format!("the drives are {}", all.join(", "))),
    }
}
