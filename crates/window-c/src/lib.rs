//! The functions of `include/lodger_window.h`, which says what they do: each is a method of [`lodger_window::Window`] with
//! pointers for references and a negative errno for an error.
#![cfg(target_os = "linux")]
#![allow(clippy::missing_safety_doc)] // The header has it: pointers are valid, and lengths are theirs.
#![allow(missing_docs)]

use lodger_window::{Pin, Window};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;

/// Numbers of Linux's `errno.h`.
const EINVAL: c_int = 22;
const EIO: c_int = 5;

fn number(result: io::Result<()>) -> c_int {
    let Err(error) = result else { return 0 };
    -match (error.raw_os_error(), error.kind()) {
        (Some(number), _) => number,
        (None, io::ErrorKind::NotFound) => 2,
        (None, io::ErrorKind::AlreadyExists) => 17,
        (None, io::ErrorKind::ResourceBusy) => 16,
        (None, io::ErrorKind::InvalidInput) => EINVAL,
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
