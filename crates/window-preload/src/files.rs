//! Files are opened, passed on, renamed and closed.

use crate::{DESCRIPTORS, borrowed, has_log, logs, opened_logs, say, set_has_log, settle};
use libc::{c_char, c_int, c_long, c_uint, c_void, mode_t};
use lodger_window::logs;
use std::ffi::{CStr, OsStr};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

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

unsafe fn open_at(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller's arguments, as it gave them to the C library.
    let fd = unsafe { libc::syscall(libc::SYS_openat, folder, path, flags, mode) } as c_int;
    if fd < 0 || fd as usize >= DESCRIPTORS {
        return fd;
    }
    // SAFETY: the kernel has just read it.
    let name = unsafe { CStr::from_ptr(path) }.to_bytes();
    let is_written = flags & libc::O_ACCMODE != libc::O_RDONLY;
    if is_written
        && is_log(name)
        && let (Ok(path), Some(mut logs)) = (logs::path_of(fd), logs())
    {
        match logs.opened(borrowed(fd), fd, Path::new(OsStr::from_bytes(&path))) {
            Ok(has) => set_has_log(fd, has),
            Err(error) => say(&error.to_string()),
        }
        // Its log, if it has one already, does not know that it was cut.
        if flags & libc::O_TRUNC != 0 {
            logs.unseen(fd);
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

also_as!(openat = open_at(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int);

also_as!(openat64 = open_at(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int);

/// A descriptor is about to be closed, or to be that of another file.
fn closing(fd: RawFd) {
    if has_log(fd) {
        set_has_log(fd, false);
        if let Some(mut logs) = opened_logs()
            && let Err(error) = logs.closed(borrowed(fd), fd)
        {
            say(&error.to_string());
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    closing(fd);
    // SAFETY: no memory is involved; whose the descriptor is, the caller knows.
    unsafe { libc::syscall(libc::SYS_close, fd) as c_int }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    if flags & libc::CLOSE_RANGE_CLOEXEC as c_int == 0 {
        (first..=last.min(DESCRIPTORS as c_uint)).for_each(|fd| closing(fd as c_int));
    }
    // SAFETY: as `close`.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) as c_int }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn closefrom(first: c_int) {
    // SAFETY: as `close`.
    unsafe { close_range(first.max(0) as c_uint, c_uint::MAX, 0) };
}

/// A descriptor is open as another, too, if it is.
fn duplicated(fd: c_int, as_well: c_int) -> c_int {
    if as_well >= 0
        && as_well != fd
        && has_log(fd)
        && let Some(mut logs) = opened_logs()
    {
        match as_well as usize {
            ..DESCRIPTORS => {
                logs.duplicated(fd, as_well);
                set_has_log(as_well, true);
            }
            // What is written through it is not seen.
            _ => logs.unseen_for_good(fd),
        }
    }
    as_well
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup(fd: c_int) -> c_int {
    // SAFETY: no memory is involved.
    duplicated(fd, unsafe { libc::syscall(libc::SYS_dup, fd) } as c_int)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup2(fd: c_int, as_well: c_int) -> c_int {
    if fd == as_well {
        // Which tells whether it is open.
        // SAFETY: no memory is involved.
        let flags = unsafe { libc::syscall(libc::SYS_fcntl, fd, libc::F_GETFD) };
        return if flags < 0 { -1 } else { fd };
    }
    // SAFETY: as `dup`.
    unsafe { dup3(fd, as_well, 0) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup3(fd: c_int, as_well: c_int, flags: c_int) -> c_int {
    if fd != as_well {
        closing(as_well);
    }
    // SAFETY: as `dup`.
    let done = unsafe { libc::syscall(libc::SYS_dup3, fd, as_well, flags) } as c_int;
    duplicated(fd, done)
}

/// A function of the C library's own, under a name that is ours.
fn next(cache: &OnceLock<usize>, name: &CStr) -> *const c_void {
    // SAFETY: the name ends with a zero.
    let find = || unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } as usize;
    *cache.get_or_init(find) as *const c_void
}

type Fcntl = unsafe extern "C" fn(c_int, c_int, ...) -> c_int;
static FCNTL: OnceLock<usize> = OnceLock::new();

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl(fd: c_int, what: c_int, more: c_long) -> c_int {
    // SAFETY: the C library's function of that name has this form.
    let real = unsafe { std::mem::transmute::<*const c_void, Fcntl>(next(&FCNTL, c"fcntl64")) };
    // SAFETY: the caller's arguments; what it left out is not looked at.
    let done = unsafe { real(fd, what, more) };
    match what {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => duplicated(fd, done),
        _ => done,
    }
}

also_as!(fcntl64 = fcntl(fd: c_int, what: c_int, more: c_long) -> c_int);

type Fdopen = unsafe extern "C" fn(c_int, *const c_char) -> *mut c_void;
static FDOPEN: OnceLock<usize> = OnceLock::new();

/// Streams write, and close, by themselves: such a file has no log any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdopen(fd: c_int, mode: *const c_char) -> *mut c_void {
    closing(fd);
    // SAFETY: the C library's function of that name has this form.
    let real = unsafe { std::mem::transmute::<*const c_void, Fdopen>(next(&FDOPEN, c"fdopen")) };
    // SAFETY: the caller's arguments.
    unsafe { real(fd, mode) }
}

unsafe fn rename_at(
    (from_folder, from): (c_int, *const c_char),
    (to_folder, to): (c_int, *const c_char),
    flags: c_uint,
) -> c_int {
    settle();
    let call = libc::SYS_renameat2;
    // SAFETY: the caller's arguments.
    let done = unsafe { libc::syscall(call, from_folder, from, to_folder, to, flags) } as c_int;
    if done == 0
        && let Some(mut logs) = opened_logs()
        && let Err(error) = logs.renamed(borrowed)
    {
        say(&error.to_string());
    }
    done
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe { rename_at((libc::AT_FDCWD, from), (libc::AT_FDCWD, to), 0) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn renameat(
    from_folder: c_int,
    from: *const c_char,
    to_folder: c_int,
    to: *const c_char,
) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe { rename_at((from_folder, from), (to_folder, to), 0) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn renameat2(
    from_folder: c_int,
    from: *const c_char,
    to_folder: c_int,
    to: *const c_char,
    flags: c_uint,
) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe { rename_at((from_folder, from), (to_folder, to), flags) }
}
