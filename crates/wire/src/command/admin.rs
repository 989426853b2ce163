//! Commands of the admin queue (Base 2.0 §5).

use super::feature::SetFeatures;
use super::manage::{
    CreateCompletionQueue, CreateSubmissionQueue, FirmwareCommit, FirmwareDownload, FormatNvm,
    Sanitize,
};
use super::namespace::{NamespaceAttachment, NamespaceManagement};
use super::query::{GetFeatures, GetLogPage, Identify};
use super::{Parsed, Transfer, VendorCommand};
use crate::entry::SubmissionEntry;
use crate::ids::{CommandId, QueueId};
use crate::opcode::{AdminOpcode, is_vendor_admin};
use crate::status::Status;

/// A command of the admin queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // A command is looked at once, on the stack.
pub enum AdminCommand {
    /// Delete I/O Submission Queue, §5.7: its commands under way are ended first.
    DeleteSubmissionQueue(QueueId),
    /// Create I/O Submission Queue, §5.5.
    CreateSubmissionQueue(CreateSubmissionQueue),
    /// Get Log Page, §5.16.
    GetLogPage(GetLogPage),
    /// Delete I/O Completion Queue, §5.6: all submission queues that complete there are gone before.
    DeleteCompletionQueue(QueueId),
    /// Create I/O Completion Queue, §5.4.
    CreateCompletionQueue(CreateCompletionQueue),
    /// Identify, §5.17.
    Identify(Identify),
    /// Abort, §5.1: of that command of that queue. Dword 0 of the completion is 0 if it was, 1 if not.
    #[allow(missing_docs)]
    Abort { queue: QueueId, command: CommandId },
    /// Set Features, §5.27.
    SetFeatures(SetFeatures),
    /// Get Features, §5.15.
    GetFeatures(GetFeatures),
    /// Asynchronous Event Request, §5.2: completes when there is an event.
    AsyncEventRequest,
    /// Firmware Commit, §5.12.
    FirmwareCommit(FirmwareCommit),
    /// Firmware Image Download, §5.13.
    FirmwareDownload(FirmwareDownload),
    /// Device Self-test, §5.8: 1 short, 2 extended, Eh vendor's, Fh abort.
    DeviceSelfTest(u8),
    /// Namespace Management, §5.23.
    NamespaceManagement(NamespaceManagement),
    /// Namespace Attachment, §5.22.
    NamespaceAttachment(NamespaceAttachment),
    /// Keep Alive, §5.18.
    KeepAlive,
    /// Doorbell Buffer Config, §5.11; the data pointer's two entries are the pages
    /// ([`crate::queue::ShadowDoorbells`]).
    DoorbellBufferConfig,
    /// Format NVM, §5.14.
    FormatNvm(FormatNvm),
    /// Sanitize, §5.24.
    Sanitize(Sanitize),
    /// A vendor's.
    Vendor(VendorCommand),
}

impl AdminCommand {
    /// Whether a command is one of these; others end with [`Status::INVALID_OPCODE`]. OACS and the log of
    /// effects say the same.
    #[must_use]
    pub fn is_known(opcode: AdminOpcode) -> bool {
        !matches!(
            opcode,
            AdminOpcode::DirectiveSend
                | AdminOpcode::DirectiveReceive
                | AdminOpcode::VirtualizationManagement
                | AdminOpcode::MiSend
                | AdminOpcode::MiReceive
                | AdminOpcode::CapacityManagement
                | AdminOpcode::Lockdown
                | AdminOpcode::Fabrics
                | AdminOpcode::SecuritySend
                | AdminOpcode::SecurityReceive
                | AdminOpcode::GetLbaStatus
        )
    }

    /// What a host asks for.
    ///
    /// # Errors
    /// The status that the command ends with, if it cannot be one of these.
    pub fn parse(entry: &SubmissionEntry) -> Result<Parsed<Self>, Status> {
        let data = entry.checked(true)?;
        let code = entry.opcode();
        let command = if is_vendor_admin(code) {
            AdminCommand::Vendor(VendorCommand { entry: *entry })
        } else {
            let opcode = AdminOpcode::from_code(code).filter(|opcode| Self::is_known(*opcode));
            Self::known(opcode.ok_or(Status::INVALID_OPCODE)?, entry)?
        };
        let namespace = entry.namespace();
        Ok(Parsed {
            command,
            namespace,
            data,
        })
    }

    fn known(opcode: AdminOpcode, entry: &SubmissionEntry) -> Result<Self, Status> {
        let first = entry.dword(10);
        let queue = QueueId(first as u16);
        Ok(match opcode {
            AdminOpcode::DeleteSubmissionQueue => AdminCommand::DeleteSubmissionQueue(queue),
            AdminOpcode::CreateSubmissionQueue => {
                AdminCommand::CreateSubmissionQueue(CreateSubmissionQueue::parse(entry))
            }
            AdminOpcode::GetLogPage => AdminCommand::GetLogPage(GetLogPage::parse(entry)?),
            AdminOpcode::DeleteCompletionQueue => AdminCommand::DeleteCompletionQueue(queue),
            AdminOpcode::CreateCompletionQueue => {
                AdminCommand::CreateCompletionQueue(CreateCompletionQueue::parse(entry))
            }
            AdminOpcode::Identify => AdminCommand::Identify(Identify::parse(entry)?),
            AdminOpcode::Abort => AdminCommand::Abort {
                queue,
                command: CommandId((first >> 16) as u16),
            },
            AdminOpcode::SetFeatures => AdminCommand::SetFeatures(SetFeatures::parse(entry)?),
            AdminOpcode::GetFeatures => AdminCommand::GetFeatures(GetFeatures::parse(entry)?),
            AdminOpcode::AsyncEventRequest => AdminCommand::AsyncEventRequest,
            AdminOpcode::FirmwareCommit => {
                AdminCommand::FirmwareCommit(FirmwareCommit::parse(entry)?)
            }
            AdminOpcode::FirmwareDownload => {
                AdminCommand::FirmwareDownload(FirmwareDownload::parse(entry))
            }
            AdminOpcode::DeviceSelfTest => match first as u8 & 15 {
                code @ (1 | 2 | 14 | 15) => AdminCommand::DeviceSelfTest(code),
                _ => return Err(Status::INVALID_FIELD),
            },
            AdminOpcode::NamespaceManagement => {
                AdminCommand::NamespaceManagement(NamespaceManagement::parse(entry)?)
            }
            AdminOpcode::NamespaceAttachment => {
                AdminCommand::NamespaceAttachment(NamespaceAttachment::parse(entry)?)
            }
            AdminOpcode::KeepAlive => AdminCommand::KeepAlive,
            AdminOpcode::DoorbellBufferConfig => AdminCommand::DoorbellBufferConfig,
            AdminOpcode::FormatNvm => AdminCommand::FormatNvm(FormatNvm::parse(entry)?),
            AdminOpcode::Sanitize => AdminCommand::Sanitize(Sanitize::parse(entry)?),
            _ => return Err(Status::INVALID_OPCODE),
        })
    }

    /// Data that the command moves; of vendors' commands, in their standard form.
    #[must_use]
    pub fn transfer(&self) -> Transfer {
        match self {
            AdminCommand::Identify(_) => Transfer::to_host(4096),
            AdminCommand::GetLogPage(get) => Transfer::to_host(get.bytes()),
            AdminCommand::GetFeatures(get) => get.transfer(),
            AdminCommand::SetFeatures(set) => set.transfer(),
            AdminCommand::FirmwareDownload(part) => Transfer::from_host(part.bytes()),
            AdminCommand::NamespaceManagement(management) => management.transfer(),
            AdminCommand::NamespaceAttachment(_) => NamespaceAttachment::transfer(),
            AdminCommand::Vendor(vendor) => Transfer {
                direction: vendor.direction(),
                bytes: vendor.standard_bytes(),
            },
            _ => Transfer::NONE,
        }
    }
}
