//! Puts a program's logs on a drive's byte window: `LD_PRELOAD=liblodger_window_preload.so`. Files whose names end as
//! `LODGER_WINDOW_LOGS` says (`-wal:.aof`: SQLite's write-ahead log, Redis's append-only file) are written as ever, but a sync of
//! them is one of the window, in which all that was written since stands ([`lodger_window::logs`]). `LODGER_WINDOW` is the
//! window, `LODGER_WINDOW_PIN` the blocks that are pinned for it. Without `LODGER_WINDOW` nothing is changed.
//!
//! The functions here have the names of the C library's, and make the system calls themselves. What is not one of such
//! files goes straight on: a look at one byte is all it costs.
#![cfg(target_os = "linux")]
#![allow(clippy::missing_safety_doc)] // They are the C library's, with its demands.
#![allow(missing_docs)]

use libc::{c_char, c_int, c_void, mode_t, off_t, size_t, ssize_t};
use lodger_window::logs::{Logs, Settings};
use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// Descriptors that can have a log; those above have none.
const DESCRIPTORS: usize = 4096;
/// Those that have one.
static HAS_LOG: [AtomicBool; DESCRIPTORS] = [const { AtomicBool::new(false) }; DESCRIPTORS];
/// The window; `None` in it: nothing is changed.
static LOGS: OnceLock<Option<Mutex<Logs>>> = OnceLock::new();

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
    if let Some(settings) = settings()
        && let Err(error) = Logs::open(&settings)
        && error.kind() != io::ErrorKind::WouldBlock
    {
        say(&error.to_string());
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

fn logs() -> Option<MutexGuard<'static, Logs>> {
    let open = || {
        let opened = Logs::open(&settings()?).map_err(|error| say(&error.to_string()));
        opened.ok().map(Mutex::new)
    };
    let logs = LOGS.get_or_init(open).as_ref()?;
    Some(
        logs.lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner),
    )
}

fn is_log(path: &[u8]) -> bool {
    let Ok(place) = std::env::var("LODGER_WINDOW_LOGS")
        .or_else(|_| std::env::var("LODGER_WINDOW").map(|_| "-wal:.aof".to_owned()))
    else {
        return false;
    };
    place
        .split(':')
        .any(|end| !end.is_empty() && path.ends_with(end.as_bytes()))
}

fn has_log(fd: RawFd) -> bool {
    let place = usize::try_from(fd).ok().and_then(|fd| HAS_LOG.get(fd));
    place.is_some_and(|has_log| has_log.load(Ordering::Acquire))
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

unsafe fn open_at(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller's arguments, as it gave them to the C library.
    let fd = unsafe { libc::syscall(libc::SYS_openat, folder, path, flags, mode) } as c_int;
    if fd < 0 || fd as usize >= DESCRIPTORS {
        return fd;
    }
    // SAFETY: the kernel has just read it.
    let name = unsafe { CStr::from_ptr(path) }.to_bytes();
    let is_written = flags & libc::O_ACCMODE != libc::O_RDONLY;
    if is_written && is_log(name) {
        let link = rustix::fs::readlink(format!("/proc/self/fd/{fd}"), Vec::new());
        if let (Ok(link), Some(mut logs)) = (link, logs()) {
            let path = Path::new(OsStr::from_bytes(link.as_bytes()));
            match logs.opened(borrowed(fd), fd, path) {
                Ok(has) => set_has_log(fd, has),
                Err(error) => say(&error.to_string()),
            }
        }
    }
    fd
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller's arguments. Without O_CREAT the kernel does not look at the mode.
    unsafe { open_at(libc::AT_FDCWD, path, flags, mode) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: as `open`.
    unsafe { open_at(libc::AT_FDCWD, path, flags, mode) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    // SAFETY: as `open`.
    unsafe { open_at(folder, path, flags, mode) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat64(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    // SAFETY: as `open`.
    unsafe { open_at(folder, path, flags, mode) }
}

/// Takes down what was written, with the lock held since before it was: changes stand in the log as they came to the file.
unsafe fn wrote(
    fd: c_int,
    write: impl FnOnce() -> ssize_t,
    at: impl FnOnce(ssize_t) -> off_t,
    from: *const c_void,
) -> ssize_t {
    let Some(mut logs) = has_log(fd).then(logs).flatten() else {
        return write();
    };
    let count = write();
    let place = at(count);
    if count > 0 && place >= 0 {
        // SAFETY: so many bytes of it the kernel has just read.
        let data = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), count as usize) };
        logs.changed(fd, place as u64, Some(data));
    }
    count
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, from: *const c_void, bytes: size_t) -> ssize_t {
    // SAFETY: the caller's arguments.
    let write = || unsafe { libc::syscall(libc::SYS_write, fd, from, bytes) } as ssize_t;
    // Where the write has ended, whether it was an append or not.
    // SAFETY: no memory is involved.
    let at = |count| unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) - count as off_t };
    // SAFETY: `from` has `bytes` bytes.
    unsafe { wrote(fd, write, at, from) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite(
    fd: c_int,
    from: *const c_void,
    bytes: size_t,
    at: off_t,
) -> ssize_t {
    // SAFETY: the caller's arguments.
    let write = || unsafe { libc::syscall(libc::SYS_pwrite64, fd, from, bytes, at) } as ssize_t;
    // SAFETY: `from` has `bytes` bytes.
    unsafe { wrote(fd, write, |_| at, from) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(
    fd: c_int,
    from: *const c_void,
    bytes: size_t,
    at: off_t,
) -> ssize_t {
    // SAFETY: as `pwrite`.
    unsafe { pwrite(fd, from, bytes, at) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftruncate(fd: c_int, length: off_t) -> c_int {
    let logs = has_log(fd).then(logs).flatten();
    // SAFETY: no memory is involved.
    let done = unsafe { libc::syscall(libc::SYS_ftruncate, fd, length) } as c_int;
    if let Some(mut logs) = logs.filter(|_| done == 0) {
        logs.changed(fd, length as u64, None);
    }
    done
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftruncate64(fd: c_int, length: off_t) -> c_int {
    // SAFETY: as `ftruncate`.
    unsafe { ftruncate(fd, length) }
}

fn sync(fd: c_int, number: libc::c_long) -> c_int {
    let Some(mut logs) = has_log(fd).then(logs).flatten() else {
        // SAFETY: no memory is involved.
        return unsafe { libc::syscall(number, fd) } as c_int;
    };
    match logs.sync(borrowed(fd), fd) {
        Ok(()) => 0,
        Err(error) => failed(&error),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn fdatasync(fd: c_int) -> c_int {
    sync(fd, libc::SYS_fdatasync)
}

#[unsafe(no_mangle)]
pub extern "C" fn fsync(fd: c_int) -> c_int {
    sync(fd, libc::SYS_fsync)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    if has_log(fd) {
        set_has_log(fd, false);
        if let Some(mut logs) = logs()
            && let Err(error) = logs.closed(borrowed(fd), fd)
        {
            say(&error.to_string());
        }
    }
    // SAFETY: no memory is involved; whose the descriptor is, the caller knows.
    unsafe { libc::syscall(libc::SYS_close, fd) as c_int }
}
