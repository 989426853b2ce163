//! Asynchronous events: what a drive tells without being asked (Base 2.0 §5.2.1). The host has sent requests ahead;
//! an event completes one, and its kind is masked until the page that explains it is read.

use crate::log::LogId;
use crate::queue::DoorbellError;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsyncEvent {
    /// A doorbell of a queue that there is not.
    InvalidDoorbell,
    /// A doorbell with a value that cannot be.
    InvalidDoorbellValue,
    /// The drive is broken for good.
    PersistentInternalError,
    /// Something failed inside, and is over.
    TransientInternalError,
    /// The media is worn or failing.
    Reliability,
    /// A temperature threshold was passed.
    Temperature,
    /// Spare blocks are below their threshold.
    Spare,
    /// Attributes of a namespace changed: size, format.
    NamespaceChanged,
    /// Firmware is about to be activated.
    FirmwareActivation,
    /// A sanitize is over.
    SanitizeDone,
}

impl AsyncEvent {
    /// Type (bits 2:0 of the dword) and information (15:8).
    fn code(self) -> (u8, u8) {
        match self {
            AsyncEvent::InvalidDoorbell => (0, 0),
            AsyncEvent::InvalidDoorbellValue => (0, 1),
            AsyncEvent::PersistentInternalError => (0, 3),
            AsyncEvent::TransientInternalError => (0, 4),
            AsyncEvent::Reliability => (1, 0),
            AsyncEvent::Temperature => (1, 1),
            AsyncEvent::Spare => (1, 2),
            AsyncEvent::NamespaceChanged => (2, 0),
            AsyncEvent::FirmwareActivation => (2, 1),
            AsyncEvent::SanitizeDone => (6, 1),
        }
    }

    /// Type of the event: those of one type are masked together until their page is read.
    #[must_use]
    pub fn kind(self) -> u8 {
        self.code().0
    }

    /// The page that explains it, and whose reading lifts the mask.
    #[must_use]
    pub fn page(self) -> LogId {
        match self {
            AsyncEvent::InvalidDoorbell
            | AsyncEvent::InvalidDoorbellValue
            | AsyncEvent::PersistentInternalError
            | AsyncEvent::TransientInternalError => LogId::Error,
            AsyncEvent::Reliability | AsyncEvent::Temperature | AsyncEvent::Spare => LogId::Health,
            AsyncEvent::NamespaceChanged => LogId::ChangedNamespaces,
            AsyncEvent::FirmwareActivation => LogId::FirmwareSlots,
            AsyncEvent::SanitizeDone => LogId::Sanitize,
        }
    }

    /// Dword 0 of the request's completion.
    #[must_use]
    pub fn result(self) -> u32 {
        let (kind, information) = self.code();
        u32::from_le_bytes([kind, information, self.page() as u8, 0])
    }
}

impl From<DoorbellError> for AsyncEvent {
    fn from(_: DoorbellError) -> AsyncEvent {
        AsyncEvent::InvalidDoorbellValue
    }
}
