//! The functions of `include/lodger_window.h`, which says what they do: each is a method of [`lodger_window::Window`] with
//! pointers for references and a negative errno for an error.
#![cfg(target_os = "linux")]
#![allow(clippy::missing_safety_doc)] // The header has it: pointers are valid, and lengths are theirs.
#![allow(missing_docs)]

use lodger_window::{Extent, Pin, Window};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

/// Numbers of Linux's `errno.h`.
const EINVAL: c_int = 22;
const EIO: c_int = 5;

thread_local! {
    /// What went wrong last, in words.
    static WORDS: RefCell<CString> = RefCell::default();
}

fn number(result: io::Result<()>) -> c_int {
    let Err(error) = result else { return 0 };
    WORDS.set(CString::new(error.to_string()).unwrap_or_default());
    -match (error.raw_os_error(), error.kind()) {
        (Some(number), _) => number,
        (None, io::ErrorKind::NotFound) => 2,
        (None, io::ErrorKind::AlreadyExists) => 17,
        (None, io::ErrorKind::ResourceBusy) => 16,
        (None, io::ErrorKind::InvalidInput) => EINVAL,
        (None, io::ErrorKind::PermissionDenied) => 13,
        (None, io::ErrorKind::Unsupported) => 95,
        (None, io::ErrorKind::StaleNetworkFileHandle) => 116,
        _ => EIO,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn lodger_window_open(
    place: *const c_char,
    window: *mut *mut Window,
) -> c_int {
    if place.is_null() || window.is_null() {
        return -EINVAL;
    }
    // SAFETY: it is not null, and the caller's text ends with a 0.
    let Ok(place) = unsafe { CStr::from_ptr(place) }.to_str() else {
        return -EINVAL;
    };
    match Window::open(place) {
        Ok(opened) => {
            // SAFETY: it is not null, and the caller's to be written.
            unsafe { *window = Box::into_raw(Box::new(opened)) };
            0
        }
        Err(error) => number(Err(error)),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn lodger_window_close(window: *mut Window) {
    if !window.is_null() {
        // SAFETY: it comes from `lodger_window_open`, and is not used any more.
        drop(unsafe { Box::from_raw(window) });
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn lodger_window_bytes(window: *const Window) -> u64 {
    // SAFETY: it is null, or comes from `lodger_window_open`.
    unsafe { window.as_ref() }.map_or(0, Window::bytes)
}

/// A window's method, or `EINVAL` for none.
unsafe fn with(window: *mut Window, method: impl FnOnce(&mut Window) -> io::Result<()>) -> c_int {
    // SAFETY: it is null, or comes from `lodger_window_open`, and one thread at a time uses it.
    match unsafe { window.as_mut() } {
        Some(window) => number(method(window)),
        None => -EINVAL,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn lodger_window_pin(
    window: *mut Window,
    entry: u8,
    lba: u64,
    at: u64,
    bytes: u64,
) -> c_int {
    // SAFETY: as the header asks.
    unsafe { with(window, |window| window.pin(entry, Pin { lba, at, bytes })) }
}

/// A file of the caller's, which stays the caller's.
unsafe fn file_of(fd: c_int) -> io::Result<File> {
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(9)); // EBADF
    }
    // SAFETY: it is not negative, and as the header asks a descriptor that stays open as long as this call lasts; it is only
    // duplicated, which fails if it is none.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    Ok(File::from(fd.try_clone_to_owned()?))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn lodger_window_pin_file(
    window: *mut Window,
    entry: u8,
    fd: c_int,
    from: u64,
    at: u64,
    bytes: u64,
) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(window, |window| {
            let range = range(from, bytes)?;
            window.pin_file(entry, &file_of(fd)?, range, at).map(drop)
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn lodger_window_resume_file(
    window: *mut Window,
    entry: u8,
    fd: c_int,
    from: u64,
) -> c_int {
    // SAFETY: as the header asks.
    unsafe {
        with(window, |window| {
            window.resume_file(entry, &file_of(fd)?, from).map(drop)
        })
    }
}

/// As the header has it.
#[repr(C)]
pub struct CExtent {
    from: u64,
    lba: u64,
    bytes: u64,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn lodger_window_extents(
    window: *mut Window,
    fd: c_int,
    from: u64,
    bytes: u64,
    extents: *mut CExtent,
    count: *mut usize,
) -> c_int {
    if extents.is_null() || count.is_null() {
        return number(Err(io::ErrorKind::InvalidInput.into()));
    }
    let found = |window: &mut Window| {
        // SAFETY: as the header asks.
        let file = unsafe { file_of(fd)? };
        let found = window.extents(&file, range(from, bytes)?)?;
        // SAFETY: neither is null; as the header asks both are the caller's, and so many extents can be written. They may
        // hold nothing yet, so that no reference is made to them.
        unsafe {
            for (place, Extent { from, lba, bytes }) in found.iter().take(*count).enumerate() {
                let (from, lba, bytes) = (*from, *lba, *bytes);
                extents.add(place).write(CExtent { from, lba, bytes });
            }
            *count = found.len();
        }
        Ok(())
    };
    // SAFETY: as the header asks.
    unsafe { with(window, found) }
}

fn range(from: u64, bytes: u64) -> io::Result<std::ops::Range<u64>> {
    let end = from.checked_add(bytes);
    let end =
        end.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the range has no end"))?;
    Ok(from..end)
}

#[unsafe(no_mangle)]
pub extern "C" fn lodger_window_error() -> *const c_char {
    WORDS.with_borrow(|words| words.as_ptr())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn lodger_window_sync(window: *mut Window, entry: u8) -> c_int {
    // SAFETY: as the header asks.
    unsafe { with(window, |window| window.sync(entry)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn lodger_window_flush(window: *mut Window, entry: u8) -> c_int {
    // SAFETY: as the header asks.
    unsafe { with(window, |window| window.flush(entry)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn lodger_window_read_dma(
    window: *const Window,
    entry: u8,
    at: u64,
    into: *mut c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: as the header asks: so many bytes are the caller's, to be written.
    unsafe {
        reading(window, into, bytes, |window, into| {
            window.read_dma(entry, at, into)
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn lodger_window_store(
    window: *mut Window,
    at: u64,
    from: *const c_void,
    bytes: usize,
) -> c_int {
    if from.is_null() {
        return -EINVAL;
    }
    // SAFETY: so many bytes are the caller's, and nobody writes them meanwhile.
    let from = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) };
    // SAFETY: as the header asks.
    unsafe { with(window, |window| window.store(at, from)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn lodger_window_load(
    window: *const Window,
    at: u64,
    into: *mut c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: as the header asks: so many bytes are the caller's, to be written.
    unsafe { reading(window, into, bytes, |window, into| window.load(at, into)) }
}

unsafe fn reading(
    window: *const Window,
    into: *mut c_void,
    bytes: usize,
    method: impl FnOnce(&Window, &mut [u8]) -> io::Result<()>,
) -> c_int {
    // SAFETY: it is null, or comes from `lodger_window_open`.
    let Some(window) = (unsafe { window.as_ref() }).filter(|_| !into.is_null()) else {
        return -EINVAL;
    };
    // SAFETY: so many bytes are the caller's, and nobody else's meanwhile.
    let into = unsafe { std::slice::from_raw_parts_mut(into.cast::<u8>(), bytes) };
    number(method(window, into))
}
