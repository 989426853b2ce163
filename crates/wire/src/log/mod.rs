//! Log pages: what a drive tells of its life (Base 2.0 §5.16.1).
//!
//! Each page is a structure that encodes to bytes; [`answer`] hands the part of it to the host that Get Log Page asks
//! for.

mod effects;
mod error;
mod health;
mod ocp;
mod state;
mod vendor;

pub use effects::{command_effects, feature_effects, management_effects, supported_pages};
pub use error::{ErrorEntry, error_page};
pub use health::{CriticalWarning, Health, data_units};
pub use ocp::{OCP_GUID, OcpHealth};
pub use state::{
    FirmwareSlots, SanitizeState, SanitizeStatus, changed_namespaces, empty_self_test,
};
pub use vendor::{Counter, counters, counters_page};

use crate::command::GetLogPage;
use crate::ids::PageSize;
use crate::memory::GuestMemory;
use crate::status::Status;
use crate::transfer::DataPointer;

/// Which page (LID).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LogId {
    /// Supported Log Pages, §5.16.1.1.
    SupportedPages = 0x00,
    /// Error Information, §5.16.1.2.
    Error = 0x01,
    /// SMART / Health Information, §5.16.1.3.
    Health = 0x02,
    /// Firmware Slot Information, §5.16.1.4.
    FirmwareSlots = 0x03,
    /// Changed Namespace List, §5.16.1.5.
    ChangedNamespaces = 0x04,
    /// Commands Supported and Effects, §5.16.1.6.
    CommandEffects = 0x05,
    /// Device Self-test, §5.16.1.7.
    SelfTest = 0x06,
    /// Feature Identifiers Supported and Effects, §5.16.1.18.
    FeatureEffects = 0x12,
    /// NVMe-MI Commands Supported and Effects, §5.16.1.19.
    ManagementEffects = 0x13,
    /// Sanitize Status, §5.16.1.25.
    Sanitize = 0x81,
    /// SMART / Health Information Extended of the OCP Datacenter NVMe SSD Specification.
    OcpHealth = 0xc0,
    /// The drive's own counters.
    Counters = 0xca,
}

impl LogId {
    /// Every one, in order.
    pub const ALL: [LogId; 12] = [
        LogId::SupportedPages,
        LogId::Error,
        LogId::Health,
        LogId::FirmwareSlots,
        LogId::ChangedNamespaces,
        LogId::CommandEffects,
        LogId::SelfTest,
        LogId::FeatureEffects,
        LogId::ManagementEffects,
        LogId::Sanitize,
        LogId::OcpHealth,
        LogId::Counters,
    ];

    /// From its code.
    ///
    /// # Errors
    /// [`Status::LOG_PAGE_INVALID`] if there is no such page.
    pub fn from_code(code: u8) -> Result<Self, Status> {
        let known = LogId::ALL.into_iter().find(|id| *id as u8 == code);
        known.ok_or(Status::LOG_PAGE_INVALID)
    }
}

/// Hands the host the part of a page that it asks for. What it wants beyond the page's end is 0 (the standard leaves
/// it undefined).
///
/// # Errors
/// [`Status::INVALID_FIELD`] if it begins beyond the end (§5.16); else those of the data pointer.
pub fn answer(
    page: &[u8],
    get: &GetLogPage,
    data: &DataPointer,
    memory: &impl GuestMemory,
    page_size: PageSize,
) -> Result<(), Status> {
    let from = usize::try_from(get.offset_bytes).ok();
    let rest = from.and_then(|from| page.get(from..));
    let rest = rest.ok_or(Status::INVALID_FIELD)?;
    data.write_padded(memory, page_size, rest, get.bytes())
}
