//! Where results go: standard output, or a file that appears whole or not at all.

use crate::error::Error;
use crate::inputs::reason;
use crate::interrupt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file in the making, beside its final place. Dropped before [`OutputFile::commit`], it
/// leaves nothing.
#[derive(Debug)]
pub struct OutputFile {
    writer: Option<BufWriter<File>>,
    /// Name as the user gave it.
    shown: String,
    /// The final place; symbolic links are followed.
    target: PathBuf,
    /// `None` for what cannot be renamed over: devices, pipes.
    temporary: Option<PathBuf>,
}

impl OutputFile {
    /// Begins a file. An unwritable place is found out here, before any work is done.
    ///
    /// # Errors
    /// If `path` cannot be written.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let shown = path.display().to_string();
        let failed = |error: &io::Error| cannot_write(&shown, &reason(error));
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let present = match std::fs::metadata(&target) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(&error)),
        };
        if present.as_ref().is_some_and(std::fs::Metadata::is_dir) {
            return Err(cannot_write(&shown, "it is a directory"));
        }
        // Renaming would get around the permissions of a file that must not be overwritten.
        let mut writable = None;
        if present.is_some() {
            let file = OpenOptions::new().write(true).open(&target);
            writable = Some(file.map_err(|error| failed(&error))?);
        }
        if let (Some(file), Some(false)) = (writable, present.map(|p| p.is_file())) {
            return Ok(Self {
                writer: Some(BufWriter::new(file)),
                shown,
                target,
                temporary: None,
            });
        }
        let Some(name) = target.file_name() else {
            return Err(cannot_write(&shown, "it is not the name of a file"));
        };
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.tmp", std::process::id()));
        let temporary = target.with_file_name(hidden);
        let file = File::create(&temporary).map_err(|error| failed(&error))?;
        interrupt::guard(&temporary);
        Ok(Self {
            writer: Some(BufWriter::with_capacity(1 << 16, file)),
            shown,
            target,
            temporary: Some(temporary),
        })
    }

    /// Puts the finished file in its place.
    ///
    /// # Errors
    /// If something could not be written; then the place is as it was.
    pub fn commit(mut self) -> Result<(), Error> {
        let failed = |error: io::Error| cannot_write(&self.shown, &reason(&error));
        if let Some(writer) = self.writer.take() {
            writer
                .into_inner()
                .map_err(|error| failed(error.into_error()))?;
        }
        if let Some(temporary) = &self.temporary {
            std::fs::rename(temporary, &self.target).map_err(failed)?;
            interrupt::release(temporary);
            self.temporary = None;
        }
        Ok(())
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.writer {
            Some(writer) => writer.write(bytes),
            None => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // The writer is dropped first, so that nothing is flushed into a removed file.
            self.writer = None;
            let _ = std::fs::remove_file(temporary);
            interrupt::release(temporary);
        }
    }
}

/// The file cannot be written.
#[must_use]
pub fn cannot_write(shown: &str, why: &str) -> Error {
    Error::input(format!("cannot write `{shown}`: {why}"))
        .hint("name a file in a directory that exists, may be written and has room")
}

/// Begins the file that `--output` names, if it names one.
///
/// # Errors
/// If it cannot be written.
pub fn begin(path: Option<&Path>) -> Result<Option<OutputFile>, Error> {
    path.map(OutputFile::create).transpose()
}

/// Writes a finished report to `file`, or to standard output.
///
/// # Errors
/// If it cannot be written. A reader that has gone away is none.
pub fn finish(file: Option<OutputFile>, stdout: &mut dyn Write, report: &str) -> Result<(), Error> {
    let Some(mut file) = file else {
        let written = stdout
            .write_all(report.as_bytes())
            .and_then(|()| stdout.flush());
        return match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(cannot_write("standard output", &reason(&error)))
            }
            _ => Ok(()),
        };
    };
    let shown = file.shown.clone();
    file.write_all(report.as_bytes())
        .map_err(|error| cannot_write(&shown, &reason(&error)))?;
    file.commit()
}
