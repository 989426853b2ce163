//! Calls of the byte window, written short.

use lodger_core::device::Contents;
use lodger_core::{EntryId, Host, WindowCall, WindowCompletion};

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

/// Loads `length` bytes.
pub fn load(offset: u64, length: u64) -> WindowCall {
    WindowCall::Load {
        window_offset_bytes: offset,
        length_bytes: length,
    }
}

/// Has the drive copy `length` bytes of an entry to host memory.
pub fn read_dma(entry: u32, offset: u64, length: u64) -> WindowCall {
    WindowCall::ReadDma {
        entry: EntryId(entry),
        offset_bytes: offset,
        length_bytes: length,
    }
}

/// Runs until the call that was made is done.
pub fn wait<C: Contents>(host: &mut Host<C>) -> WindowCompletion {
    let (mut done, mut requests) = (Vec::new(), Vec::new());
    while done.is_empty() {
        host.advance_to_completion(u64::MAX, &mut requests);
        host.take_window_completions(&mut done);
    }
    assert_eq!(done.len(), 1);
    done[0]
}

/// Makes a call and waits for it.
pub fn call<C: Contents>(host: &mut Host<C>, call: WindowCall) -> WindowCompletion {
    host.call(0, call);
    wait(host)
}

/// A call that must succeed; its latency.
pub fn took<C: Contents>(host: &mut Host<C>, what: WindowCall) -> u64 {
    let done = call(host, what);
    assert!(done.result.is_ok(), "{what:?}: {:?}", done.result);
    done.completed_ps - done.submitted_ps
}
