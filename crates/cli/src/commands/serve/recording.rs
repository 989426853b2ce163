//! The file that a recording goes to.

use crate::terminal::{self, Kind};
use lodger_serve::backing::disk::lock;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Says as it happens, not as the server ends, that the recording ends here: the drive goes on without it.
#[derive(Debug)]
pub(super) struct Recording {
    file: File,
    shown: String,
    has_failed: bool,
}

/// Begins it, unless another server is writing to it.
pub(super) fn open(path: &Path) -> io::Result<Recording> {
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    // What was there is not gone before it is known that nobody needs it. Pipes and devices have nothing of that.
    if file.metadata()?.is_file() {
        match lock(&file) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => return Err(error),
            // Where files cannot be locked, nobody knows.
            Ok(()) | Err(_) => file.set_len(0)?,
        }
    }
    Ok(Recording {
        file,
        shown: path.display().to_string(),
        has_failed: false,
    })
}

impl Recording {
    fn look<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &done
            && error.kind() != ErrorKind::Interrupted
            && !std::mem::replace(&mut self.has_failed, true)
        {
            let text = format!(
                "the recording in `{}` ends here: {error}; the drive goes on without it",
                self.shown
            );
            terminal::say(&mut io::stderr(), Kind::Warning, &text);
        }
        done
    }
}

impl Write for Recording {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.file.write(bytes);
        self.look(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.file.flush();
        self.look(done)
    }
}
