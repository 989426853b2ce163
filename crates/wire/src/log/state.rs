//! Pages of what goes on: firmware (LID 03h), namespaces that changed (04h), self-test (06h), sanitize (81h); Base
//! 2.0 §5.16.1.4, §5.16.1.5, §5.16.1.7, §5.16.1.25.

use crate::ids::NamespaceId;
use crate::layout::{Wire, layout};

layout! {
    /// Firmware Slot Information.
    pub struct FirmwareSlots: 512 {
        /// Slot that runs, bits 2:0; slot that will after the next reset, bits 6:4, 0 the same (AFI).
        0 => active: u8,
        /// Revisions in slots 1 to 7, ASCII filled up with spaces; 0: the slot is empty.
        8 => revisions: [[u8; 8]; 7],
    }
}

/// Changed Namespace List: those that changed since the page was read last, in rising order. If they are more than
/// 1024, one entry of FFFFFFFFh says so.
#[must_use]
pub fn changed_namespaces(changed: &[NamespaceId]) -> [u8; 4096] {
    let mut page = [0; 4096];
    if changed.len() > 1024 {
        u32::MAX.put(&mut page);
        return page;
    }
    for (to, namespace) in page.chunks_exact_mut(4).zip(changed) {
        namespace.0.put(to);
    }
    page
}

/// Device Self-test of a drive that has made none: 20 results that are no results.
#[must_use]
pub fn empty_self_test() -> [u8; 564] {
    let mut page = [0; 564];
    for result in page[4..].chunks_exact_mut(28) {
        // Fh: the entry is not used.
        result[0] = 0xf;
    }
    page
}

/// How far a sanitize is (SSTAT bits 2:0).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum SanitizeState {
    /// There was none.
    #[default]
    Never = 0,
    /// The last was successful.
    Done = 1,
    /// It goes on.
    UnderWay = 2,
    /// The last failed.
    Failed = 3,
    /// The last was successful, and blocks were deallocated although they were not to be.
    DoneAndDeallocated = 4,
}

layout! {
    /// Sanitize Status.
    pub struct SanitizeStatus: 512 {
        /// How much is done, of 65536 (SPROG); FFFFh if none goes on.
        0 => progress: u16,
        /// [`SanitizeState`], bits 2:0; passes of an overwrite done, 7:3; nothing written since, 8 (SSTAT).
        2 => status: u16,
        /// Dword 10 of the last command.
        4 => dword10: u32,
        /// Time an overwrite takes, s; FFFFFFFFh: not said.
        8 => overwrite_s: u32,
        /// Time a block erase takes, s.
        12 => block_erase_s: u32,
        /// Time a crypto erase takes, s.
        16 => crypto_erase_s: u32,
        /// The three again, without deallocation after it.
        20 => no_deallocate_s: [u32; 3],
    }
}

impl SanitizeStatus {
    /// Of a drive in this state, that says nothing of times.
    #[must_use]
    pub fn new(state: SanitizeState, progress: u16, nothing_written_since: bool) -> Self {
        SanitizeStatus {
            progress: if state == SanitizeState::UnderWay {
                progress
            } else {
                u16::MAX
            },
            status: state as u16 | u16::from(nothing_written_since) << 8,
            dword10: 0,
            overwrite_s: u32::MAX,
            block_erase_s: u32::MAX,
            crypto_erase_s: u32::MAX,
            no_deallocate_s: [u32::MAX; 3],
        }
    }
}
