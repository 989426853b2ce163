//! Calls of the byte window, written short.

use lodger_core::{EntryId, WindowCall};

/// Pins `length` bytes of the drive.
pub fn pin(entry: u32, window: u64, drive: u64, length: u64) -> WindowCall {
    WindowCall::Pin {
        entry: EntryId(entry),
        window_offset_bytes: window,
        drive_offset_bytes: drive,
        length_bytes: length,
    }
}

/// Stores `length` bytes.
pub fn store(offset: u64, length: u64) -> WindowCall {
    WindowCall::Store {
        window_offset_bytes: offset,
        length_bytes: length,
    }
}
