//! Ctrl-C: the first one asks the work to stop, which then leaves nothing half-written; a second
//! one does not wait for it.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Files to remove if the program ends without their owners.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn temporary() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Listens from now on. Another handler that cannot be replaced stays: then Ctrl-C does what it
/// did before.
pub fn listen() {
    INTERRUPTED.store(false, Ordering::Relaxed);
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            for path in temporary().drain(..) {
                let _ = std::fs::remove_file(path);
            }
            #[cfg(unix)]
            for switch in lodger_probe::target::hmb::restore_all() {
                eprintln!("warning: `{}` is not as it was found", switch.display());
            }
            std::process::exit(130);
        }
    });
}

/// Whether the user asked to stop.
#[must_use]
pub fn requested() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// The file is removed if the program is made to end.
pub fn guard(path: &Path) {
    temporary().push(path.to_owned());
}

/// The file is in its owner's care again.
pub fn release(path: &Path) {
    temporary().retain(|guarded| guarded != path);
}

/// A reader that fails once the user has asked to stop.
#[derive(Debug)]
pub struct Interruptible<R>(pub R);

impl<R: Read> Read for Interruptible<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if requested() {
            // Not `ErrorKind::Interrupted`, which readers take for "try again".
            return Err(io::Error::other("interrupted"));
        }
        self.0.read(buffer)
    }
}
