//! Puts a program's logs on a drive's byte window: `LD_PRELOAD=liblodger_window_preload.so`. Files whose names end as
//! `LODGER_WINDOW_LOGS` says (`-wal:.aof`: SQLite's write-ahead log, Redis's append-only file) are written as ever, but a sync of
//! them is one of the window, in which all that was written since stands ([`lodger_window::logs`]). `LODGER_WINDOW` is the
//! window, `LODGER_WINDOW_PIN` the blocks that are pinned for it. Without `LODGER_WINDOW` nothing is changed.
//!
//! The functions here have the names of the C library's, and make the system calls themselves. What is not one of such
//! files goes straight on: a look at one byte is all it costs.
//!
//! What a log does not have must not be taken for safe, and what is no longer so must not come back from a log. So all that
//! changes such a file, or passes it on, is here: what is written one by one is taken down ([`data`]), other ways leave the
//! next sync to the file; duplicates, children and new names are followed ([`files`]).
#![cfg(target_os = "linux")]
#![allow(clippy::missing_safety_doc)] // They are the C library's, with its demands.
#![allow(missing_docs)]

/// Another name of the C library's for a function: that of programs built for large files.
macro_rules! also_as {
    ($name:ident = $of:ident($($argument:ident: $type:ty),*) -> $done:ty) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $done {
            // SAFETY: as that function.
            unsafe { $of($($argument),*) }
        }
    };
}

pub mod data;
pub mod files;

use libc::c_int;
use lodger_window::logs::{Logs, Settings};
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// Descriptors that can have a log; those above have none.
const DESCRIPTORS: usize = 4096;
/// Those that have one.
static HAS_LOG: [AtomicBool; DESCRIPTORS] = [const { AtomicBool::new(false) }; DESCRIPTORS];
/// The window; `None` in it: nothing is changed.
static LOGS: OnceLock<Option<Mutex<Logs>>> = OnceLock::new();
/// The process that opened it. A child has its memory, but must not touch what is still its parent's.
static OWNER: AtomicI32 = AtomicI32::new(0);

fn settings() -> Option<Settings> {
    let place = std::env::var("LODGER_WINDOW").ok()?;
    let pin = std::env::var("LODGER_WINDOW_PIN").ok();
    let settings = Settings::new(&place, pin.as_deref());
    settings
        .map_err(|what| say(&format!("LODGER_WINDOW_PIN: {what}")))
        .ok()
}

fn say(what: &str) {
    let line = format!("lodger window: {what}; logs are synced as ever\n");
    let _ = rustix::io::write(rustix::stdio::stderr(), line.as_bytes());
}

/// As the program starts: what the last one has left in the window is done to its files, before anybody reads them.
extern "C" fn begin() {
    let Some(settings) = settings() else {
        return;
    };
    if let Err(error) = Logs::open(&settings)
        && error.kind() != io::ErrorKind::WouldBlock
    {
        say(&error.to_string());
    }
    // SAFETY: the function lives as long as the program.
    if unsafe { libc::pthread_atfork(Some(settle), None, None) } != 0 {
        say("children of this program are not seen");
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

/// Whether this process has the window, and not the one that it is a child of.
fn is_ours() -> bool {
    // Not of `std`: a child that shares our memory must get its own number.
    OWNER.load(Ordering::Acquire) == rustix::process::getpid().as_raw_nonzero().get()
}

fn open_logs() -> Option<Mutex<Logs>> {
    let opened = Logs::open(&settings()?).map_err(|error| say(&error.to_string()));
    let own = rustix::process::getpid().as_raw_nonzero().get();
    OWNER.store(own, Ordering::Release);
    opened.ok().map(Mutex::new)
}

fn locked(logs: &'static Mutex<Logs>) -> MutexGuard<'static, Logs> {
    logs.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The logs, which are opened if they were not.
fn logs() -> Option<MutexGuard<'static, Logs>> {
    let logs = LOGS.get_or_init(open_logs).as_ref()?;
    is_ours().then(|| locked(logs))
}

/// The logs, if there are some.
fn opened_logs() -> Option<MutexGuard<'static, Logs>> {
    let logs = LOGS.get()?.as_ref()?;
    is_ours().then(|| locked(logs))
}

/// Before the program parts in two, or names change: what comes after is not undone by what was before.
extern "C" fn settle() {
    if let Some(mut logs) = opened_logs()
        && let Err(error) = logs.settle(borrowed)
    {
        say(&error.to_string());
    }
}

fn has_log(fd: RawFd) -> bool {
    let place = usize::try_from(fd).ok().and_then(|fd| HAS_LOG.get(fd));
    place.is_some_and(|has_log| has_log.load(Ordering::Acquire)) && is_ours()
}

fn set_has_log(fd: RawFd, has: bool) {
    if let Some(place) = usize::try_from(fd).ok().and_then(|fd| HAS_LOG.get(fd)) {
        place.store(has, Ordering::Release);
    }
}

/// A descriptor of the program's, for as long as a call of it lasts.
fn borrowed<'a>(fd: RawFd) -> BorrowedFd<'a> {
    // SAFETY: it is open, as a log was made for it and it was not closed since; the program is in a call about it.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

fn failed(error: &io::Error) -> c_int {
    // SAFETY: the address of this thread's own number.
    unsafe { *libc::__errno_location() = error.raw_os_error().unwrap_or(libc::EIO) };
    -1
}
