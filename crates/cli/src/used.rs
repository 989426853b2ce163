//! Files that a command reads and writes, so that none is both.

use crate::error::Error;
use crate::output::cannot_write;
#[cfg(target_os = "linux")]
use lodger_serve::backing::MAGIC;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
#[cfg(target_os = "linux")]
use std::{fs::File, io::Read};

#[derive(Debug, Default)]
struct Used {
    /// Device and number of files read; of devices, their kind and number.
    inputs: Vec<(u64, u64)>,
    /// Files being written.
    outputs: Vec<PathBuf>,
}

static USED: Mutex<Used> = Mutex::new(Used {
    inputs: Vec::new(),
    outputs: Vec::new(),
});

fn with<T>(act: impl FnOnce(&mut Used) -> T) -> T {
    act(&mut USED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A command begins: nothing is used.
pub(crate) fn forget() {
    with(|used| *used = Used::default());
}

/// This file is read.
pub(crate) fn input(file: &Metadata) {
    if file.is_file() {
        target(file);
    }
}

/// This file or device is probed.
pub(crate) fn target(file: &Metadata) {
    if let Some(id) = id(file) {
        with(|used| {
            if !used.inputs.contains(&id) {
                used.inputs.push(id);
            }
        });
    }
}

/// That `target` is not also read, and keeps no drive.
pub(crate) fn refuse_input(target: &Path, shown: &str) -> Result<(), Error> {
    let id = std::fs::metadata(target).ok().and_then(|file| id(&file));
    let is_input = id.is_some_and(|id| with(|used| used.inputs.contains(&id)));
    if is_input {
        let error = cannot_write(shown, "this command reads it");
        return Err(error.hint("name another file: writing would destroy the input"));
    }
    if keeps_drive(target) {
        let error = cannot_write(shown, "it keeps a live drive and its data (`--backing`)");
        return Err(error.hint("name another file, or remove this one first"));
    }
    Ok(())
}

/// Whether it is a file of `lodger serve --backing`, which there is on Linux alone, or that of its byte window.
#[cfg(target_os = "linux")]
fn keeps_drive(target: &Path) -> bool {
    let drive = target
        .to_str()
        .and_then(|path| path.strip_suffix(".window"));
    is_drive(target) || drive.is_some_and(|drive| is_drive(Path::new(drive)))
}

#[cfg(target_os = "linux")]
fn is_drive(target: &Path) -> bool {
    let is_file = std::fs::metadata(target).is_ok_and(|file| file.is_file());
    let mut head = [0; MAGIC.len()];
    let mut read = || File::open(target)?.read_exact(&mut head);
    is_file && read().is_ok() && head == *MAGIC
}

#[cfg(not(target_os = "linux"))]
fn keeps_drive(_: &Path) -> bool {
    false
}

/// `target` is written from now on.
pub(crate) fn begin_output(target: &Path, shown: &str) -> Result<(), Error> {
    with(|used| {
        if used.outputs.iter().any(|other| other == target) {
            return Err(cannot_write(shown, "this command writes it already")
                .hint("give each output a file of its own"));
        }
        used.outputs.push(target.to_owned());
        Ok(())
    })
}

/// It is done.
pub(crate) fn end_output(target: &Path) {
    with(|used| {
        if let Some(at) = used.outputs.iter().rposition(|other| other == target) {
            used.outputs.remove(at);
        }
    });
}

#[cfg(unix)]
fn id(file: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let kind = file.file_type();
    // A device may have several nodes.
    if kind.is_block_device() || kind.is_char_device() {
        return Some((u64::MAX - u64::from(kind.is_block_device()), file.rdev()));
    }
    Some((file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn id(_: &Metadata) -> Option<(u64, u64)> {
    None
}
