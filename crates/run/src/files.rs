//! How drives and workloads are read from files.

use crate::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Longest job or drive file: far beyond any real one, and a wrong file is not read for minutes.
const TEXT_BYTES_MAX: u64 = 16 << 20;
/// What is looked at to tell a job file from a trace.
const HEAD_BYTES: usize = 64 << 10;
/// Editors on Windows begin UTF-8 with it.
const BOM: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Opens the file of a path; `-` is standard input.
type Open = fn(&Path) -> io::Result<Box<dyn Read>>;

/// Reads drives and workloads, and the files that these name in turn.
///
/// `Files::default()` opens files as they are. A program that has to know what was read, or to stop a
/// reader that waits for a pipe, brings its own way to open them.
#[derive(Clone, Copy, Debug)]
pub struct Files {
    open: Open,
}

impl Default for Files {
    fn default() -> Self {
        Files::opened_by(plainly)
    }
}

fn plainly(path: &Path) -> io::Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    Ok(Box::new(File::open(path)?))
}

impl Files {
    /// Files are opened by `open`, which is asked for `-` where standard input is meant.
    #[must_use]
    pub fn opened_by(open: fn(&Path) -> io::Result<Box<dyn Read>>) -> Self {
        Files { open }
    }

    /// The whole of a text file. `what` is what messages call it, such as "drive file".
    ///
    /// # Errors
    /// If it cannot be read, is too long, or is not UTF-8.
    pub fn text(self, path: &Path, what: &str) -> Result<String, Error> {
        let mut file = self.open(path, what)?;
        text_of(&mut file, &path.display().to_string(), what)
    }

    /// As [`Files::text`], for a reader that says itself which file it could not read.
    pub(crate) fn text_within(self, path: &Path, what: &str) -> io::Result<String> {
        let said = format!("cannot read the {what} `{}`: ", path.display());
        let text = self.text(path, what);
        text.map_err(|Error { message, .. }| {
            io::Error::other(message.strip_prefix(&said).unwrap_or(&message).to_owned())
        })
    }

    /// Opens a file for reading; a directory is an error here, not at the first read.
    fn open(self, path: &Path, what: &str) -> Result<Box<dyn Read>, Error> {
        let shown = path.display();
        let failed = |error: io::Error| {
            let hint = match error.kind() {
                io::ErrorKind::NotFound => {
                    "check the name; a relative one starts at the current directory"
                }
                _ => "check the file and its permissions",
            };
            let reason = reason(&error);
            Error::input(format!("cannot read the {what} `{shown}`: {reason}")).hint(hint)
        };
        if std::fs::metadata(path).map_err(failed)?.is_dir() {
            let message = format!("cannot read the {what} `{shown}`: it is a directory");
            return Err(Error::input(message).hint("name a file in it"));
        }
        (self.open)(path).map_err(failed)
    }

    /// A reader of the whole file and a copy of its beginning; `-` is standard input.
    pub(crate) fn head(
        self,
        path: &Path,
        what: &str,
    ) -> Result<(Box<dyn BufRead>, Vec<u8>), Error> {
        let unreadable = |error: io::Error| {
            let message = format!("cannot read `{}`: {}", path.display(), reason(&error));
            Error::input(message)
        };
        let mut file: Box<dyn Read> = if path == Path::new("-") {
            (self.open)(path).map_err(unreadable)?
        } else {
            self.open(path, what)?
        };
        let mut head = Vec::new();
        let head_max = HEAD_BYTES as u64;
        (&mut file)
            .take(head_max)
            .read_to_end(&mut head)
            .map_err(unreadable)?;
        if head.starts_with(&BOM) {
            head.drain(..BOM.len());
        }
        refuse_utf16(&head, &path.display().to_string(), what)?;
        if head.is_empty() {
            let message = format!("the {what} `{}` is empty", path.display());
            return Err(Error::input(message).hint("give a fio job file or a block trace"));
        }
        let rest = BufReader::with_capacity(1 << 18, file);
        Ok((Box::new(io::Cursor::new(head.clone()).chain(rest)), head))
    }
}

/// What the system says, without its number.
#[must_use]
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => "unknown reason".to_owned(),
    }
}

/// All that a reader gives, as text.
pub(crate) fn text_of(reader: &mut dyn Read, name: &str, what: &str) -> Result<String, Error> {
    let mut bytes: Vec<u8> = Vec::new();
    reader
        .take(TEXT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| {
            Error::input(format!(
                "cannot read the {what} `{name}`: {}",
                reason(&error)
            ))
        })?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        let message = format!(
            "`{name}` is longer than {} MiB: no {what}",
            TEXT_BYTES_MAX >> 20
        );
        return Err(Error::input(message).hint("a trace must not be called `.fio`"));
    }
    if bytes.starts_with(&BOM) {
        bytes.drain(..BOM.len());
    }
    refuse_utf16(&bytes, name, what)?;
    String::from_utf8(bytes).map_err(|error| {
        let bytes = error.as_bytes();
        let good = error.utf8_error().valid_up_to();
        let line = bytes[..good].iter().filter(|byte| **byte == b'\n').count() + 1;
        Error::input(format!("the {what} is not UTF-8 text ({name}:{line})"))
            .hint("is it the right file?")
    })
}

fn refuse_utf16(bytes: &[u8], name: &str, what: &str) -> Result<(), Error> {
    if !bytes.starts_with(&[0xff, 0xfe]) && !bytes.starts_with(&[0xfe, 0xff]) {
        return Ok(());
    }
    let message = format!("the {what} `{name}` begins with the byte order mark of UTF-16");
    Err(Error::input(message).hint("save it as UTF-8"))
}
