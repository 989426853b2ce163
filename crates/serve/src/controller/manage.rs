//! Hosts make, delete, attach and detach namespaces (Base 2.0 §5.22, §5.23, §8.11). What they have is [`super::namespaces`];
//! deallocating what is deleted is [`super::wipe`].

use super::Controller;
use super::identity::CONTROLLER;
use lodger_wire::NamespaceId;
use lodger_wire::command::feature::{AsyncEvents, FeatureId};
use lodger_wire::command::{
    AdminCommand, NamespaceAttachment, NamespaceManagement, NewNamespace, Parsed,
};
use lodger_wire::entry::Outcome;
use lodger_wire::event::AsyncEvent;
use lodger_wire::identify::{PAGE_BYTES, lists};
use lodger_wire::memory::GuestMemory;
use lodger_wire::opcode::AdminOpcode;
use lodger_wire::queue::Permit;
use lodger_wire::status::Status;

impl<M: GuestMemory + Clone> Controller<M> {
    /// Namespace Management.
    pub(super) fn manage_namespace(
        &mut self,
        management: NamespaceManagement,
        parsed: &Parsed<AdminCommand>,
        permit: Permit,
    ) -> Result<(), (Permit, Status)> {
        if let Err(status) = self.can_change_namespaces() {
            return Err((permit, status));
        }
        match management {
            NamespaceManagement::Create { command_set } => {
                match self.create_namespace(command_set, parsed) {
                    Ok(id) => {
                        let command = (AdminOpcode::NamespaceManagement, NamespaceId::NONE);
                        self.namespaces_changed(command, permit, Outcome::with_result(id.0));
                        Ok(())
                    }
                    Err(status) => Err((permit, status)),
                }
            }
            NamespaceManagement::Delete => self.delete_namespace(parsed.namespace, permit),
        }
    }

    /// Whether nothing else goes on with all of a namespace, and the drive takes changes.
    fn can_change_namespaces(&mut self) -> Result<(), Status> {
        match self.wipe.is_busy() {
            Some(status) => Err(status),
            None => self.can_write(),
        }
    }

    fn create_namespace(
        &mut self,
        command_set: u8,
        parsed: &Parsed<AdminCommand>,
    ) -> Result<NamespaceId, Status> {
        if parsed.namespace != NamespaceId::NONE {
            // The drive chooses.
            return Err(Status::INVALID_FIELD);
        }
        if command_set != 0 {
            return Err(Status::IO_COMMAND_SET_UNSUPPORTED);
        }
        let mut bytes = [0; PAGE_BYTES];
        parsed.data.read(&self.memory, self.page, &mut bytes)?;
        let new = NewNamespace::decode(&bytes);
        self.identity.namespaces.create(&new)
    }

    fn delete_namespace(
        &mut self,
        namespace: NamespaceId,
        permit: Permit,
    ) -> Result<(), (Permit, Status)> {
        let namespaces = &self.identity.namespaces;
        let is_there = match namespace {
            NamespaceId::ALL => Ok(namespaces.iter().next().is_some()),
            one => namespaces.allocated(one).map(|one| one.is_some()),
        };
        match is_there {
            Ok(true) => self.begin_deletion(namespace, Some(permit)),
            // All of none.
            Ok(false) if namespace == NamespaceId::ALL => self.complete(permit, Outcome::SUCCESS),
            Ok(false) => return Err((permit, Status::INVALID_FIELD)),
            Err(status) => return Err((permit, status)),
        }
        Ok(())
    }

    /// What was being deleted is gone.
    pub(super) fn namespaces_are_gone(&mut self) {
        if self.identity.namespaces.remove_going() {
            self.tell_of_namespaces();
        }
        self.identity.namespaces_changed();
    }

    /// Namespace Attachment.
    pub(super) fn attach_namespace(
        &mut self,
        attachment: NamespaceAttachment,
        parsed: &Parsed<AdminCommand>,
        permit: Permit,
    ) -> Result<(), (Permit, Status)> {
        match self.change_attachment(attachment, parsed) {
            Ok(()) => {
                self.tell_of_namespaces();
                let command = (AdminOpcode::NamespaceAttachment, parsed.namespace);
                self.namespaces_changed(command, permit, Outcome::SUCCESS);
                Ok(())
            }
            Err(status) => Err((permit, status)),
        }
    }

    fn change_attachment(
        &mut self,
        attachment: NamespaceAttachment,
        parsed: &Parsed<AdminCommand>,
    ) -> Result<(), Status> {
        self.can_change_namespaces()?;
        let there = self.identity.namespaces.allocated(parsed.namespace)?;
        there.ok_or(Status::INVALID_FIELD)?;
        let mut list = [0; PAGE_BYTES];
        parsed.data.read(&self.memory, self.page, &mut list)?;
        // There is one controller, so a list of several names some that there are not, and a private namespace is private.
        if lists::listed_controllers(&list)?.any(|id| id != CONTROLLER) {
            return Err(Status::CONTROLLER_LIST_INVALID);
        }
        let is_to_be = attachment == NamespaceAttachment::Attach;
        self.identity.namespaces.attach(parsed.namespace, is_to_be)
    }

    /// A command that has changed which namespaces there are ends, once that outlasts power.
    fn namespaces_changed(
        &mut self,
        command: (AdminOpcode, NamespaceId),
        permit: Permit,
        outcome: Outcome,
    ) {
        self.identity.namespaces_changed();
        self.keep_rest(false);
        self.complete_admin_when_safe(command, permit, outcome);
    }

    /// The controller has others than before (Namespace Attribute Changed, §5.2.1), if the host wants to hear of it.
    fn tell_of_namespaces(&mut self) {
        let wanted = AsyncEvents(self.features.dword(FeatureId::AsyncEvents, 0));
        if wanted.namespaces_changed() {
            self.events.add(AsyncEvent::NamespaceChanged);
        }
    }
}
