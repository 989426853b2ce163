//! Admin commands.

use super::Controller;
use super::logs::is_served;
use lodger_wire::PageSize;
use lodger_wire::command::{AdminCommand, Parsed};
use lodger_wire::entry::{Outcome, SubmissionEntry};
use lodger_wire::memory::GuestMemory;
use lodger_wire::queue::{Permit, ShadowDoorbells};
use lodger_wire::status::Status;
use lodger_wire::transfer::DataPointer;

impl<M: GuestMemory + Clone> Controller<M> {
    /// A command of the admin queue.
    pub(super) fn admin(&mut self, entry: &SubmissionEntry, permit: Permit) {
        let ended = match self.parse_admin(entry) {
            Err(status) => Err((permit, status)),
            Ok(parsed) => self.take_admin(&parsed, entry, permit),
        };
        if let Err((permit, status)) = ended {
            self.refuse(entry, permit, status);
        }
    }

    fn parse_admin(&self, entry: &SubmissionEntry) -> Result<Parsed<AdminCommand>, Status> {
        if !is_served(entry.opcode(), self.identity.namespaces.are_managed()) {
            return Err(Status::INVALID_OPCODE);
        }
        let parsed = AdminCommand::parse(entry)?;
        let transfer = parsed.command.transfer();
        transfer.within(self.identity.mdts, PageSize::MIN.bytes())?;
        Ok(parsed)
    }

    /// Commands that may have to wait; the others are done.
    fn take_admin(
        &mut self,
        parsed: &Parsed<AdminCommand>,
        entry: &SubmissionEntry,
        permit: Permit,
    ) -> Result<(), (Permit, Status)> {
        match &parsed.command {
            AdminCommand::AsyncEventRequest => self.request_event(permit),
            AdminCommand::FormatNvm(format) => self.format(format, parsed.namespace, permit),
            AdminCommand::NamespaceManagement(management) => {
                self.manage_namespace(*management, parsed, permit)
            }
            AdminCommand::NamespaceAttachment(attachment) => {
                self.attach_namespace(*attachment, parsed, permit)
            }
            AdminCommand::SetFeatures(set) => self.set_features(set, parsed, permit),
            AdminCommand::DeleteSubmissionQueue(queue) => {
                self.delete_submission_queue(*queue, permit)
            }
            AdminCommand::Sanitize(sanitize) => match self.sanitize(sanitize, entry.dword(10)) {
                Ok(()) => {
                    self.keep_rest(false);
                    self.complete_when_safe(*entry, permit, Outcome::SUCCESS);
                    Ok(())
                }
                Err(status) => Err((permit, status)),
            },
            _ => match self.do_admin(parsed) {
                Ok(outcome) => {
                    self.complete(permit, outcome);
                    Ok(())
                }
                Err(status) => Err((permit, status)),
            },
        }
    }

    fn do_admin(&mut self, parsed: &Parsed<AdminCommand>) -> Result<Outcome, Status> {
        match &parsed.command {
            AdminCommand::Identify(identify) => {
                let page = self.identity.answer(identify, parsed.namespace)?;
                parsed.data.write(&self.memory, self.page, &page)?;
            }
            AdminCommand::GetLogPage(get) => {
                self.is_of_controller(parsed.namespace)?;
                self.get_log_page(get, &parsed.data)?;
            }
            AdminCommand::GetFeatures(get) => return self.get_features(get, parsed),
            AdminCommand::CreateCompletionQueue(create) => self.create_completion_queue(create)?,
            AdminCommand::CreateSubmissionQueue(create) => self.create_submission_queue(create)?,
            AdminCommand::DeleteCompletionQueue(queue) => self.delete_completion_queue(*queue)?,
            AdminCommand::Abort { queue, command } => return Ok(self.abort(*queue, *command)),
            AdminCommand::DoorbellBufferConfig => {
                let DataPointer::Prp { prp1, prp2 } = parsed.data else {
                    return Err(Status::INVALID_FIELD);
                };
                let stride_bytes = self.registers.capabilities().doorbell_stride_bytes();
                let shadows = ShadowDoorbells::new(prp1, prp2, self.page, stride_bytes)?;
                self.queues.set_shadows(shadows, &self.memory);
            }
            AdminCommand::AsyncEventRequest
            | AdminCommand::SetFeatures(_)
            | AdminCommand::DeleteSubmissionQueue(_)
            | AdminCommand::FormatNvm(_)
            | AdminCommand::NamespaceManagement(_)
            | AdminCommand::NamespaceAttachment(_)
            | AdminCommand::Sanitize(_)
            | AdminCommand::FirmwareCommit(_)
            | AdminCommand::FirmwareDownload(_)
            | AdminCommand::DeviceSelfTest(_)
            | AdminCommand::KeepAlive
            | AdminCommand::Vendor(_) => return Err(Status::INVALID_OPCODE),
        }
        Ok(Outcome::SUCCESS)
    }
}
