//! Ctrl-C, `kill` and a closed terminal: the first signal asks the work to stop, which then leaves
//! nothing half-written; a second one does not wait for it.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// SIGINT, as all systems number it.
const INTERRUPT: u8 = 2;

/// The first signal that came; 0 if none has.
static SIGNAL: AtomicU8 = AtomicU8::new(0);
/// Files to remove if the program ends without their owners.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn temporary() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Listens from now on. The end of the terminal stays ignored where `nohup` arranged that.
pub fn listen() {
    static ONCE: Once = Once::new();
    SIGNAL.store(0, Ordering::Relaxed);
    ONCE.call_once(hear);
}

#[cfg(unix)]
fn hear() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut heard = vec![SIGINT, SIGTERM];
    if ignored() >> (SIGHUP - 1) & 1 == 0 {
        heard.push(SIGHUP);
    }
    // Where that fails, signals do what they did before.
    if let Ok(mut signals) = signal_hook::iterator::Signals::new(heard) {
        std::thread::spawn(move || {
            for signal in signals.forever() {
                take(u8::try_from(signal).unwrap_or(INTERRUPT));
            }
        });
    }
}

/// Signals that this process ignores, the first one in the lowest bit; none where there is no `/proc`.
#[cfg(unix)]
fn ignored() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = text.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(not(unix))]
fn hear() {
    // Another handler that cannot be replaced stays.
    let _ = ctrlc::set_handler(|| take(INTERRUPT));
}

fn take(signal: u8) {
    let first = SIGNAL.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed);
    if first.is_ok() {
        return;
    }
    for path in temporary().drain(..) {
        let _ = std::fs::remove_file(path);
    }
    #[cfg(unix)]
    for switch in lodger_probe::target::hmb::restore_all() {
        // Nobody may be there to read it.
        let warning = format!("warning: `{}` is not as it was found\n", switch.display());
        let _ = io::Write::write_all(&mut io::stderr(), warning.as_bytes());
    }
    std::process::exit(exit_status().into());
}

/// Whether the user asked to stop.
#[must_use]
pub fn requested() -> bool {
    SIGNAL.load(Ordering::Relaxed) != 0
}

/// The status of a command that was stopped: 128 and the signal's number, as shells have it.
#[must_use]
pub fn exit_status() -> u8 {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => 128 + INTERRUPT,
        signal => 128 + signal,
    }
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
