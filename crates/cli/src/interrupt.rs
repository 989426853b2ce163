//! Ctrl-C, `kill` and a closed terminal: the first signal asks the work to stop, which then leaves
//! nothing half-written; a second one does not wait for it.

use crate::error::Error;
#[cfg(unix)]
use crate::terminal::Kind;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

/// SIGINT, as all systems number it.
const INTERRUPT: u8 = 2;

/// The first signal that came; 0 if none has.
static SIGNAL: AtomicU8 = AtomicU8::new(0);
/// The last signal, set as it arrives: the thread that hears signals comes later than what they end, a pipe's other side for
/// one, whose end of file is then no empty input.
static ARRIVED: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);
/// Somebody serves until stopped, and has stopped: what fails after that is not because of the signal.
static FOLLOWED: AtomicBool = AtomicBool::new(false);
/// How long to wait for input before looking whether the user has had enough.
pub const WAIT: Duration = Duration::from_millis(50);
/// Files to remove if the program ends without their owners.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn temporary() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Listens from now on. The end of the terminal stays ignored where `nohup` arranged that.
pub fn listen() {
    static ONCE: Once = Once::new();
    SIGNAL.store(0, Ordering::Relaxed);
    ARRIVED.store(0, Ordering::Relaxed);
    FOLLOWED.store(false, Ordering::Relaxed);
    ONCE.call_once(hear);
}

#[cfg(unix)]
fn hear() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    // A file that may not grow (`ulimit -f`) is an error of the write then, as a full disk is, and not the end of the process.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    let mut heard = vec![SIGINT, SIGTERM];
    if ignored() >> (SIGHUP - 1) & 1 == 0 {
        heard.push(SIGHUP);
    }
    for signal in &heard {
        // Where that fails, it is known a little later.
        let _ = signal_hook::flag::register_usize(*signal, ARRIVED.clone(), *signal as usize);
    }
    // Where that fails, signals do what they did before.
    if let Ok(mut signals) = signal_hook::iterator::Signals::new(heard) {
        let listening = std::thread::Builder::new().spawn(move || {
            for signal in signals.forever() {
                take(u8::try_from(signal).unwrap_or(INTERRUPT));
            }
        });
        // The first signal is known without it; only, a second one ends nothing sooner.
        drop(listening);
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
    end();
}

/// Ends the program at once, with nothing half-written left.
fn end() -> ! {
    for path in temporary().drain(..) {
        let _ = std::fs::remove_file(path);
    }
    #[cfg(unix)]
    for switch in lodger_probe::target::hmb::restore_all() {
        // Nobody may be there to read it.
        let warning = format!(
            "{} `{}` is not as it was found\n",
            Kind::Warning.label(),
            switch.display()
        );
        let _ = io::Write::write_all(&mut io::stderr(), warning.as_bytes());
    }
    std::process::exit(exit_status().into());
}

/// Whether the user asked to stop.
#[must_use]
pub fn requested() -> bool {
    SIGNAL.load(Ordering::Relaxed) != 0 || ARRIVED.load(Ordering::Relaxed) != 0
}

/// What was asked for is done, as far as it goes without the user's signal: errors from now on are the command's own.
pub fn follow() {
    FOLLOWED.store(true, Ordering::Relaxed);
}

/// Whether an error now comes of the user's signal.
#[must_use]
pub fn explains_errors() -> bool {
    requested() && !FOLLOWED.load(Ordering::Relaxed)
}

/// Nothing, unless the user asked to stop.
///
/// # Errors
/// If the user asked to stop.
pub fn check() -> Result<(), Error> {
    if requested() {
        return Err(Error::interrupted());
    }
    Ok(())
}

/// The status of a command that was stopped: 128 and the signal's number, as shells have it.
#[must_use]
pub fn exit_status() -> u8 {
    let arrived = || u8::try_from(ARRIVED.load(Ordering::Relaxed)).unwrap_or(0);
    match SIGNAL.load(Ordering::Relaxed) {
        0 if arrived() == 0 => 128 + INTERRUPT,
        0 => 128 + arrived(),
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

/// Opens and reads in a thread of its own what may let a reader wait for ever, a pipe or a terminal: the
/// user can stop the wait.
pub fn patient<R: Read>(open: impl FnOnce() -> io::Result<R> + Send + 'static) -> Patient {
    let (send, chunks) = std::sync::mpsc::sync_channel(4);
    let reading = std::thread::Builder::new().spawn(move || {
        let mut reader = match open() {
            Ok(reader) => reader,
            Err(error) => return drop(send.send(Err(error))),
        };
        loop {
            let mut chunk = vec![0; 1 << 16];
            let read = reader.read(&mut chunk).map(|length| {
                chunk.truncate(length);
                chunk
            });
            let ended = !matches!(&read, Ok(chunk) if !chunk.is_empty());
            // Nobody listens any more, or nothing more is to be said.
            if send.send(read).is_err() || ended {
                return;
            }
        }
    });
    Patient {
        chunks,
        rest: io::Cursor::new(Vec::new()),
        failed: reading.err(),
    }
}

/// What [`patient`] reads.
#[derive(Debug)]
pub struct Patient {
    chunks: Receiver<io::Result<Vec<u8>>>,
    rest: io::Cursor<Vec<u8>>,
    /// Why nobody reads: else the end of what was read would look like that of the input.
    failed: Option<io::Error>,
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        loop {
            let length = self.rest.read(buffer)?;
            if length > 0 || buffer.is_empty() {
                return Ok(length);
            }
            match self.chunks.recv_timeout(WAIT) {
                Ok(chunk) => {
                    let chunk = chunk?;
                    if chunk.is_empty() {
                        return Ok(0);
                    }
                    self.rest = io::Cursor::new(chunk);
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) if requested() => {
                    return Err(io::Error::other("interrupted"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
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
