//! What files hold is changed, and synced.

use crate::{borrowed, failed, has_log, logs, opened_logs};
use libc::{c_char, c_int, c_uint, c_void, iovec, off_t, size_t, ssize_t};

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

also_as!(pwrite64 = pwrite(fd: c_int, from: *const c_void, bytes: size_t, at: off_t) -> ssize_t);

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

also_as!(ftruncate64 = ftruncate(fd: c_int, length: off_t) -> c_int);

/// By its name: which file it is nobody tells.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn truncate(path: *const c_char, length: off_t) -> c_int {
    let logs = opened_logs();
    // SAFETY: the caller's arguments.
    let done = unsafe { libc::syscall(libc::SYS_truncate, path, length) } as c_int;
    if let Some(mut logs) = logs {
        logs.all_unseen();
    }
    done
}

also_as!(truncate64 = truncate(path: *const c_char, length: off_t) -> c_int);

/// Does something that changes a file, and leaves the next sync to that: so rare in logs that it is not worth taking down.
fn unseen<T>(fd: c_int, change: impl FnOnce() -> T) -> T {
    if !has_log(fd) {
        return change();
    }
    let logs = opened_logs();
    let done = change();
    if let Some(mut logs) = logs {
        logs.unseen(fd);
    }
    done
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(fd: c_int, from: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the caller's arguments.
    unseen(fd, || unsafe {
        libc::syscall(libc::SYS_writev, fd, from, count) as ssize_t
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev(
    fd: c_int,
    from: *const iovec,
    count: c_int,
    at: off_t,
) -> ssize_t {
    // The kernel takes the place in two halves, of which 64-bit machines use the first.
    // SAFETY: the caller's arguments.
    unseen(fd, || unsafe {
        libc::syscall(libc::SYS_pwritev, fd, from, count, at, 0) as ssize_t
    })
}

also_as!(pwritev64 = pwritev(fd: c_int, from: *const iovec, count: c_int, at: off_t) -> ssize_t);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwritev2(
    fd: c_int,
    from: *const iovec,
    count: c_int,
    at: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's arguments.
    unseen(fd, || unsafe {
        libc::syscall(libc::SYS_pwritev2, fd, from, count, at, 0, flags) as ssize_t
    })
}

also_as!(pwritev64v2 = pwritev2(fd: c_int, from: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile(
    fd: c_int,
    from: c_int,
    at: *mut off_t,
    bytes: size_t,
) -> ssize_t {
    // SAFETY: the caller's arguments.
    unseen(fd, || unsafe {
        libc::syscall(libc::SYS_sendfile, fd, from, at, bytes) as ssize_t
    })
}

also_as!(sendfile64 = sendfile(fd: c_int, from: c_int, at: *mut off_t, bytes: size_t) -> ssize_t);

#[unsafe(no_mangle)]
pub unsafe extern "C" fn copy_file_range(
    from: c_int,
    from_at: *mut off_t,
    fd: c_int,
    at: *mut off_t,
    bytes: size_t,
    flags: c_uint,
) -> ssize_t {
    let call = libc::SYS_copy_file_range;
    // SAFETY: the caller's arguments.
    unseen(fd, || unsafe {
        libc::syscall(call, from, from_at, fd, at, bytes, flags) as ssize_t
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn splice(
    from: c_int,
    from_at: *mut off_t,
    fd: c_int,
    at: *mut off_t,
    bytes: size_t,
    flags: c_uint,
) -> ssize_t {
    // SAFETY: the caller's arguments.
    unseen(fd, || unsafe {
        libc::syscall(libc::SYS_splice, from, from_at, fd, at, bytes, flags) as ssize_t
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fallocate(fd: c_int, mode: c_int, at: off_t, bytes: off_t) -> c_int {
    // SAFETY: no memory is involved.
    unseen(fd, || unsafe {
        libc::syscall(libc::SYS_fallocate, fd, mode, at, bytes) as c_int
    })
}

also_as!(fallocate64 = fallocate(fd: c_int, mode: c_int, at: off_t, bytes: off_t) -> c_int);

/// What is written through a mapping nobody tells of.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    place: *mut c_void,
    bytes: size_t,
    may: c_int,
    flags: c_int,
    fd: c_int,
    at: off_t,
) -> *mut c_void {
    // Also one that may be read only: it may be made another later.
    if flags & libc::MAP_TYPE != libc::MAP_PRIVATE
        && has_log(fd)
        && let Some(mut logs) = opened_logs()
    {
        logs.unseen_for_good(fd);
    }
    // SAFETY: the caller's arguments.
    unsafe { libc::syscall(libc::SYS_mmap, place, bytes, may, flags, fd, at) as *mut c_void }
}

also_as!(mmap64 = mmap(place: *mut c_void, bytes: size_t, may: c_int, flags: c_int, fd: c_int, at: off_t) -> *mut c_void);

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
