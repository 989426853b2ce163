//! Where results go: standard output, or a file that appears whole or not at all.

use crate::error::Error;
use crate::interrupt;
use crate::used;
use lodger_run::reason;
use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Opens what is there for writing. A pipe's reader may be long in coming: the user can stop the wait.
fn open_present(
    target: &Path,
    append: bool,
    failed: impl Fn(&io::Error) -> Error,
) -> Result<File, Error> {
    let path = target.to_owned();
    let (send, opened) = std::sync::mpsc::sync_channel(1);
    let waiting = std::thread::Builder::new().spawn(move || {
        // Nobody listens any more where the wait was stopped.
        drop(send.send(OpenOptions::new().write(true).append(append).open(path)));
    });
    waiting.map_err(|error| failed(&error))?;
    loop {
        match opened.recv_timeout(interrupt::WAIT) {
            Ok(file) => return file.map_err(|error| failed(&error)),
            Err(_) => interrupt::check()?,
        }
    }
}

/// A file in the making, beside its final place. Dropped before [`OutputFile::commit`], it
/// leaves nothing.
#[derive(Debug)]
pub struct OutputFile {
    writer: Option<BufWriter<File>>,
    /// Name as the user gave it.
    shown: String,
    /// The final place; symbolic links are followed.
    target: PathBuf,
    /// `None` for what cannot be renamed over: devices, pipes, files without a name.
    temporary: Option<PathBuf>,
    /// The file has other names (hard links), which must go on naming it.
    in_place: bool,
}

impl OutputFile {
    /// Begins a file. An unwritable place is found out here, before any work is done.
    ///
    /// # Errors
    /// If `path` cannot be written, or is also read or written otherwise by this command.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let shown = path.display().to_string();
        if path == Path::new("-") {
            // Workloads are read from it: a file of that name is hardly what is meant.
            let message = "cannot write `-`: it is not the name of a file";
            return Err(Error::input(message)
                .hint("results go to standard output where `--output` is left out, and `/dev/stdout` names it; a file of that name is `./-`"));
        }
        let failed = |error: &io::Error| cannot_write(&shown, &reason(error));
        let mut has_name = true;
        let target = match std::fs::canonicalize(path) {
            Ok(target) => target,
            // `/dev/stdout` and what a shell puts for `>(command)` lead to pipes that have no name of their own, or to a file that
            // has lost its: what a rename would replace is the link.
            Err(_) if std::fs::metadata(path).is_ok() => {
                has_name = false;
                path.to_owned()
            }
            Err(_) if path.is_symlink() => {
                return Err(cannot_write(
                    &shown,
                    "it is a link to a file that is not there",
                ));
            }
            Err(_) => beside(path),
        };
        let present = match std::fs::metadata(&target) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(&error)),
        };
        if present.as_ref().is_some_and(Metadata::is_dir) {
            return Err(cannot_write(&shown, "it is a directory"));
        }
        used::refuse_input(&target, &shown)?;
        // Renaming would get around the permissions of a file that must not be overwritten.
        let is_file = present.as_ref().is_some_and(Metadata::is_file);
        let mut writable = None;
        if present.is_some() {
            // A file that has lost its name may hold what was written before.
            writable = Some(open_present(&target, is_file && !has_name, failed)?);
        }
        if let Some(file) = writable.filter(|_| !(is_file && has_name)) {
            return Ok(Self {
                writer: Some(BufWriter::new(file)),
                shown,
                target,
                temporary: None,
                in_place: false,
            });
        }
        let Some(name) = target.file_name() else {
            return Err(cannot_write(&shown, "it is not the name of a file"));
        };
        let (temporary, file) =
            temporary(&target, name, present.as_ref()).map_err(|error| failed(&error))?;
        interrupt::guard(&temporary);
        let output = Self {
            writer: Some(BufWriter::with_capacity(1 << 16, file)),
            shown,
            in_place: present.as_ref().is_some_and(has_other_names),
            target,
            temporary: Some(temporary),
        };
        used::begin_output(&output.target, &output.shown)?;
        Ok(output)
    }

    /// Its name as the user gave it.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Takes all of a text.
    ///
    /// # Errors
    /// If it could not be written.
    pub fn holding(mut self, text: &str) -> Result<Self, Error> {
        let written = self.write_all(text.as_bytes()).and_then(|()| self.flush());
        match written {
            Ok(()) => Ok(self),
            Err(error) => Err(cannot_write(&self.shown, &reason(&error))),
        }
    }

    /// Puts the finished file in its place.
    ///
    /// # Errors
    /// If something could not be written; then the place is as it was.
    pub fn commit(mut self) -> Result<(), Error> {
        let shown = self.shown.clone();
        let failed = |error: io::Error| cannot_write(&shown, &reason(&error));
        let mut written = None;
        if let Some(writer) = self.writer.take() {
            let file = writer.into_inner();
            written = Some(file.map_err(|error| failed(error.into_error()))?);
        }
        if let Some(temporary) = &self.temporary {
            // What is renamed before it is on the disk may be empty after a power cut.
            if let Some(file) = written {
                file.sync_all().map_err(failed)?;
            }
            // It may have become an input since.
            used::refuse_input(&self.target, &self.shown)?;
            if self.in_place {
                // A rename would part it from its other names.
                std::fs::copy(temporary, &self.target).map_err(failed)?;
                std::fs::remove_file(temporary).map_err(failed)?;
            } else {
                std::fs::rename(temporary, &self.target).map_err(failed)?;
            }
            interrupt::release(temporary);
            self.temporary = None;
        }
        Ok(())
    }
}

/// A new file's path with its folder as it really is.
fn beside(path: &Path) -> PathBuf {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = std::fs::canonicalize(folder.unwrap_or(Path::new(".")));
    match (folder, path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

/// A new file beside `target` with its permissions, which nobody can have prepared: the name is drawn at
/// random, and what is there already is left alone, links above all.
fn temporary(
    target: &Path,
    name: &OsStr,
    present: Option<&Metadata>,
) -> io::Result<(PathBuf, File)> {
    let mut tries = 0;
    loop {
        let random = RandomState::new().build_hasher().finish();
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{random:016x}.tmp"));
        let temporary = target.with_file_name(hidden);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if present.is_some() {
            // For its owner's eyes until it has its permissions.
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        tries += 1;
        match options.open(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < 10 => {}
            Err(error) => return Err(error),
            Ok(file) => {
                if let Some(present) = present {
                    like(&file, present)?;
                }
                return Ok((temporary, file));
            }
        }
    }
}

/// Gives a file another's owner, as far as that is allowed, and its permissions.
fn like(file: &File, other: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        // Only root may; without, the file is the user's own, as any new one.
        let _ = std::os::unix::fs::fchown(file, Some(other.uid()), Some(other.gid()));
    }
    file.set_permissions(other.permissions())
}

#[cfg(unix)]
fn has_other_names(file: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(file) > 1
}

#[cfg(not(unix))]
fn has_other_names(_: &Metadata) -> bool {
    false
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
        used::end_output(&self.target);
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

/// Standard output cannot be written.
#[must_use]
pub fn stdout_failed(error: &io::Error) -> Error {
    let message = format!("cannot write standard output: {}", reason(error));
    Error::input(message)
        .hint("make room where it leads, or have it lead elsewhere: `lodger ... > FILE`")
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
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(stdout_failed(&error)),
            _ => Ok(()),
        };
    };
    let shown = file.shown.clone();
    file.write_all(report.as_bytes())
        .map_err(|error| cannot_write(&shown, &reason(&error)))?;
    file.commit()
}
