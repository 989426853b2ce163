//! The byte window's calls ([`lodger_wire::command::window`]): what each asks of the drive, and how it ends.
//!
//! The model has the table, the gate and the time; [`crate::window::WindowBytes`] has the bytes.

use super::Controller;
use crate::contents::Pages;
use crate::payload::Payload;
use crate::window::WindowBytes;
use lodger_core::{EntryId, EntryInfo, EntryState, WindowCall, WindowError, WindowReply};
use lodger_wire::command::window::{self, WindowCommand, status};
use lodger_wire::command::{Parsed, VendorCommand};
use lodger_wire::lba::BlockSize;
use lodger_wire::memory::GuestMemory;
use lodger_wire::status::Status;

/// A call under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    command: WindowCommand,
    /// Of the namespace whose blocks it is about.
    block: BlockSize,
    /// How the drive has answered it.
    pub(super) result: Result<WindowReply, WindowError>,
}

/// What a call ends with that the drive has refused.
fn status_of(error: WindowError, command: &WindowCommand) -> Status {
    match error {
        WindowError::NoWindow => Status::INVALID_OPCODE,
        WindowError::BadEntry
        | WindowError::ZeroLength
        | WindowError::Unaligned
        | WindowError::OutOfWindow
        | WindowError::OutOfEntry => Status::INVALID_FIELD,
        WindowError::OutOfRange => Status::LBA_OUT_OF_RANGE,
        WindowError::InUse => status::IN_USE,
        WindowError::NotPinned => status::NOT_PINNED,
        WindowError::WindowOverlap => status::WINDOW_OVERLAP,
        WindowError::RangeOverlap => status::BLOCKS_OVERLAP,
        WindowError::TableFull => status::TABLE_FULL,
        WindowError::Busy => status::BUSY,
        WindowError::MediaError if matches!(command, WindowCommand::Flush { .. }) => {
            Status::WRITE_FAULT
        }
        WindowError::MediaError => Status::UNRECOVERED_READ_ERROR,
        WindowError::PowerFailed => Status::ABORTED_POWER_LOSS,
    }
}

fn encoded(info: &EntryInfo, block: BlockSize) -> [u8; window::EntryInfo::BYTES] {
    window::EntryInfo {
        entry: info.entry.0 as u8,
        state: match info.state {
            EntryState::Pinning => 1,
            EntryState::Pinned => 2,
            EntryState::Flushing => 3,
        },
        start: info.drive_offset_bytes / block.bytes(),
        blocks: info.length_bytes / block.bytes(),
        window_offset_bytes: info.window_offset_bytes,
        length_bytes: info.length_bytes,
    }
    .encode()
}

impl Call {
    /// Whether it changes what is pinned.
    pub(super) fn pins_or_flushes(&self) -> bool {
        let command = self.command;
        matches!(command, WindowCommand::Pin(_) | WindowCommand::Flush { .. })
    }

    /// The call is done: data goes to the host.
    pub(super) fn end(
        &self,
        memory: &impl GuestMemory,
        contents: &mut Pages,
        payload: &mut Payload,
    ) -> Result<(), Status> {
        let reply = self
            .result
            .map_err(|error| status_of(error, &self.command))?;
        match (self.command, reply) {
            (WindowCommand::Pin(_), _) => match contents.window.take_unread() {
                true => Err(Status::UNRECOVERED_READ_ERROR),
                false => Ok(()),
            },
            (WindowCommand::Sync { .. }, _) => {
                contents.is_in_use();
                Ok(())
            }
            (WindowCommand::GetEntryInfo { bytes, .. }, WindowReply::Entry(info)) => {
                let all = encoded(&info, self.block);
                payload.add_copy(&all[..all.len().min(bytes as usize)]);
                Ok(payload.deliver_copy(memory)?)
            }
            (WindowCommand::ReadDma { .. }, _) => Ok(payload.deliver_copy(memory)?),
            _ => Ok(()),
        }
    }
}

impl<M: GuestMemory + Clone> Controller<M> {
    /// A vendor's command: one of the window's, on drives that have one.
    pub(super) fn window_call(
        &mut self,
        tag: u32,
        parsed: &Parsed<lodger_wire::command::IoCommand>,
        vendor: &VendorCommand,
    ) -> Result<Call, Status> {
        if !self.device.has_window() {
            return Err(Status::INVALID_OPCODE);
        }
        let command = WindowCommand::parse(&vendor.entry)?;
        let block = self.identity.namespaces.get(parsed.namespace)?.block;
        let mut payload = Payload::default();
        let call = match command {
            WindowCommand::Pin(pin) => {
                // Drives with a window have one namespace, from the drive's beginning on.
                let at = pin.start.0.checked_mul(block.bytes());
                WindowCall::Pin {
                    entry: EntryId(pin.entry.into()),
                    window_offset_bytes: pin.window_offset_bytes,
                    drive_offset_bytes: at.ok_or(Status::LBA_OUT_OF_RANGE)?,
                    length_bytes: pin.length_bytes,
                }
            }
            WindowCommand::Flush { entry } => {
                self.can_write()?;
                self.wipe.note_write();
                WindowCall::Flush {
                    entry: EntryId(entry.into()),
                }
            }
            WindowCommand::Sync { entry } => WindowCall::Sync {
                entry: EntryId(entry.into()),
            },
            WindowCommand::GetEntryInfo { entry, bytes } => {
                payload = self.copy_to(parsed, bytes)?;
                WindowCall::EntryInfo {
                    entry: EntryId(entry.into()),
                }
            }
            WindowCommand::ReadDma {
                entry,
                offset_bytes,
                length_bytes,
            } => {
                payload = self.copy_to(parsed, length_bytes)?;
                WindowCall::ReadDma {
                    entry: EntryId(entry.into()),
                    offset_bytes,
                    length_bytes,
                }
            }
        };
        let now_ps = self.device.now_ps();
        let rung = self.device.ring_window(tag, payload, call, now_ps);
        rung.map_err(|error| status_of(error, &command))?;
        if let Some(recorder) = &mut self.recorder {
            recorder.window_call(now_ps);
        }
        let result = Ok(WindowReply::Done);
        Ok(Call {
            command,
            block,
            result,
        })
    }

    fn copy_to(
        &mut self,
        parsed: &Parsed<lodger_wire::command::IoCommand>,
        bytes: u64,
    ) -> Result<Payload, Status> {
        let spare = &mut self.flights.spare;
        Payload::of_guest(
            &self.memory,
            (0, bytes),
            &parsed.data,
            self.page,
            true,
            spare,
        )
    }

    /// The drive has sent answers: they are there later.
    pub(super) fn hear_window(&mut self) {
        if !self.device.has_window_sent() {
            return;
        }
        let answers: Vec<_> = self.device.take_window_sent().collect();
        let mut has_changed = false;
        for (answer, payload) in answers {
            has_changed |= self.flights.answered(&answer, payload);
            let answered = super::Arrived::Answer(answer.cookie);
            self.arrivals.push(answer.arrives_ps, answered);
        }
        if has_changed {
            // Before anything is written that relies on it.
            self.keep_rest(false);
        }
    }

    /// Ranges of the window that are pinned: offset and length, bytes.
    pub(super) fn pinned_ranges(&self) -> Vec<(u64, u64)> {
        let entries = self.device.window_entries();
        entries
            .map(|entry| (entry.window_offset_bytes, entry.length_bytes))
            .collect()
    }

    /// Whether blocks are pinned or about to be: all data can then not be erased.
    ///
    /// # Errors
    /// [`Status::ACCESS_DENIED`] if so, as for any other command to such blocks.
    pub(super) fn has_nothing_pinned(&self) -> Result<(), Status> {
        let is_pinned = self.device.window_entries().next().is_some();
        match is_pinned || self.flights.has_call() {
            true => Err(Status::ACCESS_DENIED),
            false => Ok(()),
        }
    }

    /// The bytes of the byte window, with all that is to be there by now; `None`: the drive has no window.
    pub fn window_mut(&mut self) -> Option<&mut WindowBytes> {
        let has_window = self.device.has_window();
        has_window.then(|| self.device.contents.window_now())
    }

    /// The window's bytes are in that memory from now on; what outlasts power comes along.
    pub fn window_lies_in(&mut self, memory: Box<dyn GuestMemory>) {
        let ranges = self.kept_ranges();
        let window = &mut self.device.contents.window;
        window.lie_in(memory, ranges.into_iter());
    }

    /// Where the drive is in a file: its window is in another file from now on, to be mapped, with what outlasts power.
    ///
    /// # Errors
    /// If it cannot be; then it is where it was.
    pub fn renew_window_file(&mut self) -> std::io::Result<Option<std::fs::File>> {
        let ranges = self.kept_ranges();
        match self.device.contents.backing() {
            Some(backing) => backing.renew_window(&ranges),
            None => Ok(None),
        }
    }
}
