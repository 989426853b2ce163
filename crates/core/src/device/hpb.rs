//! Host Performance Booster at work, the drive's side: entries come along with reads and go back with
//! responses, groups are handed out when the host asks for them ([`crate::host::hpb`]).
//!
//! Independent of the link. Over UFS an entry takes the place of the upper half of a READ(16)'s LBA
//! field and what a response carries travels in its data segment. Over NVMe, where no standard says
//! how, the entry is assumed to fit reserved dwords of the command and the completion to grow.

mod ahead;

use super::board::Board;
use super::command::{Command, ToldByHost};
use crate::controller::WriteBuffer;
use crate::controller::hpb::{HostEntry, HpbDevice, Message, Refusal};
use crate::ftl::{Ftl, Owned};
use crate::ids::{CommandId, Lpn, Ppn, TranslationPage};
use crate::observe::Tracer;
use crate::request::{Op, Request};
use crate::spec::{DriveSpec, HpbSpec, LinkProtocol, SLOT_BYTES};
use ahead::PrefetchedEntries;
use serde::{Deserialize, Serialize};

/// What a response grows by when it says something about entries. UFS: two bytes of length and 18 of
/// sense data, as in JESD220-3 (the paper gives no number). NVMe: assumed, a completion entry of
/// twice the size.
const fn message_bytes(protocol: LinkProtocol) -> u64 {
    match protocol {
        LinkProtocol::Ufs => 20,
        LinkProtocol::Pcie => 16,
    }
}

/// What a READ BUFFER brings besides the entries: the version of the group.
const GROUP_HEADER_BYTES: u64 = 4;

/// What belongs to a command, beside the command.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
struct CommandState {
    /// The entry that came with it.
    entry: Option<HostEntry>,
    /// Entries that came ahead of it, one for each page.
    ahead: PrefetchedEntries,
    /// Bit i: its i-th translation page is not at hand, but the entry makes up for it.
    covered: u64,
    /// What its response says.
    message: Message,
    /// Group that it fetches, with its entries once they have been handed out.
    group: u32,
    group_entries: Option<(Box<[u64]>, u32)>,
}

/// What the host learns of a command about map entries.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub struct HpbAnswer {
    /// The command was one of the host's driver, not a request.
    pub hpb_command: bool,
    /// What the response says.
    pub message: Message,
    /// What a READ BUFFER brought: the group, its entries and its version.
    pub group: Option<(u32, Box<[u64]>, u32)>,
}

/// The drive's side of the protocol.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Hpb {
    device: HpbDevice,
    spec: HpbSpec,
    protocol: LinkProtocol,
    /// The host keeps entries.
    enabled: bool,
    /// When the host will have heard all that it was sent so far.
    all_heard_ps: u64,
    states: Vec<CommandState>,
}

impl Hpb {
    pub(super) fn new(drive: &DriveSpec, ftl: &Ftl, seed: u64) -> Option<Box<Self>> {
        let spec = drive.hpb.as_ref()?;
        Some(Box::new(Hpb {
            device: HpbDevice::new(spec, ftl.user_slots(), physical_slots(ftl), seed),
            spec: spec.clone(),
            protocol: drive.link.protocol,
            enabled: true,
            all_heard_ps: 0,
            states: Vec::new(),
        }))
    }

    /// The host begins to keep map entries, or stops; whatever it has is void.
    pub(super) fn set_enabled(&mut self, enabled: bool) {
        self.enabled = enabled;
        self.device.void_all();
    }

    /// The drive has started anew: whatever the host keeps is void, under keys of its own. Entries
    /// of pages that the buffer still holds change once these are in flash.
    pub(super) fn restart(&mut self, ftl: &Ftl, seed: u64, buffered: &[Lpn]) {
        self.device = HpbDevice::new(&self.spec, ftl.user_slots(), physical_slots(ftl), seed);
        self.states.fill_with(CommandState::default);
        self.all_heard_ps = 0;
        self.device.void_all();
        for &lpn in buffered {
            self.device.changed(lpn);
        }
    }

    /// Nothing belongs to the command yet.
    #[inline]
    pub(super) fn begin(&mut self, command: CommandId) {
        let place = command.index();
        if self.states.len() <= place {
            self.states.resize_with(place + 1, CommandState::default);
        }
        let state = &mut self.states[place];
        state.entry = None;
        state.covered = 0;
        state.message = Message::None;
        state.ahead.clear();
    }

    /// What belongs to a command that has begun.
    #[inline]
    fn state(&mut self, command: CommandId) -> &mut CommandState {
        &mut self.states[command.index()]
    }

    /// Pages of a group; none if there is no such group.
    fn pages(&self, group: u32, user_slots: u32) -> std::ops::Range<u32> {
        let first = group.saturating_mul(self.spec.group_pages).min(user_slots);
        first..first.saturating_add(self.spec.group_pages).min(user_slots)
    }

    // What the host does.

    /// The host sends an entry along with a read.
    pub(super) fn attach(&mut self, read: CommandId, entry: HostEntry) {
        self.state(read).entry = Some(entry);
    }

    /// The read that a READ BUFFER of a group stands for; `None` if there is no such group.
    pub(super) fn group_request(&self, group: u32, user_slots: u32) -> Option<Request> {
        let pages = self.pages(group, user_slots);
        (!pages.is_empty()).then(|| Request {
            tag: 0,
            queue: 0,
            op: Op::Read,
            fua: false,
            offset_bytes: u64::from(pages.start) * SLOT_BYTES,
            length_bytes: u64::from(pages.end - pages.start) * SLOT_BYTES,
        })
    }

    /// The command is a READ BUFFER of a group.
    pub(super) fn begin_group(&mut self, command: CommandId, group: u32) {
        self.state(command).group = group;
    }

    /// What the host learns of a command when it has its response.
    pub(super) fn take_answer(&mut self, id: CommandId, command: &Command) -> HpbAnswer {
        let state = self.state(id);
        state.entry = None;
        state.ahead.clear();
        let group = state.group;
        let entries = state.group_entries.take();
        HpbAnswer {
            hpb_command: command.hpb_command,
            message: std::mem::take(&mut state.message),
            group: entries.map(|(entries, version)| (group, entries, version)),
        }
    }

    /// The entry that a page had when the drive was first switched on.
    pub(super) fn entry_at_boot(&self, lpn: Lpn, ftl: &Ftl) -> u64 {
        self.device.encode_at_boot(lpn, ftl.initial(lpn))
    }

    /// Whether an entry shows its place.
    pub(super) fn shows_place(&self) -> bool {
        self.device.shows_place()
    }

    // What the drive does with what came along.

    /// Core time of looking at what came with a read; 0 if nothing did.
    #[inline]
    pub(super) fn check_ps(&self, id: CommandId) -> u64 {
        self.states.get(id.index()).map_or(0, |state| {
            let entries = usize::from(state.entry.is_some()) + state.ahead.len();
            entries as u64 * self.spec.check_ps
        })
    }

    /// Whether what came with a read makes up for a translation page that is not at hand. Else the map was missed.
    #[inline]
    pub(super) fn covers(
        &mut self,
        board: &mut Board<impl Tracer>,
        id: CommandId,
        command: &mut Command,
        page: TranslationPage,
    ) -> bool {
        let covers = self.makes_up_for(board, id, command, page);
        if !covers {
            let group = self.device.group(Lpn(command.first_lpn()));
            self.device.missed(group);
        }
        covers
    }

    #[inline]
    fn makes_up_for(
        &mut self,
        board: &mut Board<impl Tracer>,
        id: CommandId,
        command: &mut Command,
        page: TranslationPage,
    ) -> bool {
        if self.state(id).ahead.len() > 0 {
            return self.ahead_covers(board, id, command, page);
        }
        let bit = page.0 - command.translation_pages().0;
        if command.told_by_host != ToldByHost::Nothing {
            self.state(id).covered |= 1 << bit;
            board.counters.hpb.used += 1;
            return true;
        }
        let Some(entry) = self.state(id).entry else {
            return false;
        };
        let first = command.first_lpn();
        let pages = command.end_lpn() - first;
        match self.device.check(Lpn(first), pages, entry) {
            Ok(ppn) => {
                self.state(id).covered = 1 << bit;
                command.told_by_host = ToldByHost::First(ppn);
                board.counters.hpb.used += 1;
                true
            }
            Err(refusal) => {
                self.state(id).entry = None;
                refuse(board, refusal);
                false
            }
        }
    }

    /// The read starts: the group may have changed since the entry was checked.
    pub(super) fn confirm(
        &mut self,
        board: &mut Board<impl Tracer>,
        id: CommandId,
        command: &mut Command,
    ) {
        if command.told_by_host == ToldByHost::Each {
            self.confirm_ahead(board, id, command);
            return;
        }
        let first = command.first_lpn();
        let pages = command.end_lpn() - first;
        let state = self.state(id);
        let (covered, entry) = (state.covered, state.entry.unwrap_or_default());
        if let Err(refusal) = self.device.check(Lpn(first), pages, entry) {
            command.told_by_host = ToldByHost::Nothing;
            command.missed |= covered;
            let pages = u64::from(covered.count_ones());
            board.counters.hpb.used -= pages;
            board.counters.map.misses += pages;
            refuse(board, refusal);
        }
    }

    // What changes, and what the host hears of it.

    /// The map entry of a page changes, or will once its data is in flash.
    #[inline]
    pub(super) fn changes(&mut self, lpn: Lpn) {
        self.device.changed(lpn);
    }

    /// A page has lost its data.
    #[inline]
    pub(super) fn is_gone(&mut self, lpn: Lpn) {
        self.device.changed(lpn);
        self.device.entry_is_stable(lpn);
    }

    /// A program operation has ended: the entries of what is current in it can be handed out.
    pub(super) fn programmed(&mut self, ftl: &Ftl, buffer: &WriteBuffer, unit: Ppn) {
        let mode = ftl.blocks.mode_of(unit);
        for offset in 0..ftl.geometry().unit_slots(mode) {
            if let Some(Owned::Data(lpn)) = ftl.current_owner(Ppn(unit.0 + offset))
                && buffer.find(lpn).is_none()
            {
                self.device.entry_is_stable(lpn);
            }
        }
    }

    /// What a response carries beyond the usual, bytes; a READ BUFFER's data is sent first.
    pub(super) fn respond(
        &mut self,
        board: &mut Board<impl Tracer>,
        ftl: &Ftl,
        id: CommandId,
        command: &mut Command,
    ) -> u64 {
        if command.hpb_command && !self.state(id).ahead.is_write_buffer() {
            let bytes = self.hand_out(ftl, id);
            command.data_end_ps = board.link.write(board.engine.now(), bytes);
        }
        if !self.enabled || self.would_overtake(board, command) {
            return 0;
        }
        let message = self.device.next_message(|lpn| ftl.locate(lpn));
        match message {
            Message::None => return 0,
            Message::Entry { .. } => board.counters.hpb.entries_delivered += 1,
            Message::Dirty { .. } | Message::Recommendation { .. } => {
                board.counters.hpb.notices += 1;
            }
        }
        self.state(id).message = message;
        message_bytes(self.protocol)
    }

    /// Whether what a response says would be heard before what was said earlier. It would mean nothing then, as an entry stands
    /// on the version before it. Responses without data pass others' data, those with it do not: another one says it, in order.
    fn would_overtake(&self, board: &Board<impl Tracer>, command: &Command) -> bool {
        let earliest_ps = board.engine.now().ps().max(command.data_end_ps);
        !board.link.keeps_order() && earliest_ps < self.all_heard_ps
    }

    /// The response to a command arrives at `arrives_ps`.
    #[inline]
    pub(super) fn responded(&mut self, id: CommandId, arrives_ps: u64) {
        let state = self.state(id);
        if state.message != Message::None || state.group_entries.is_some() {
            self.all_heard_ps = self.all_heard_ps.max(arrives_ps);
        }
    }

    /// The entries of the group that a READ BUFFER asks for; returns how many bytes that is.
    fn hand_out(&mut self, ftl: &Ftl, id: CommandId) -> u64 {
        let group = self.state(id).group;
        let pages = self.pages(group, ftl.user_slots());
        let version = self.device.hand_out(group, pages.clone());
        let entries = self
            .device
            .encode_pages(group, pages, |lpn| ftl.locate(lpn));
        let bytes = entries.len() as u64 * self.device.entry_bytes() + GROUP_HEADER_BYTES;
        self.state(id).group_entries = Some((entries, version));
        bytes
    }

    /// Core time of a READ BUFFER or an HPB WRITE BUFFER, and whether it is the former, which needs
    /// translation pages.
    pub(super) fn driver_command_ps(&mut self, id: CommandId) -> (u64, bool) {
        match self.state(id).ahead.is_write_buffer() {
            true => (self.spec.write_buffer_ps, false),
            false => (self.spec.read_buffer_ps, true),
        }
    }
}

fn physical_slots(ftl: &Ftl) -> u32 {
    let geometry = ftl.geometry();
    geometry.superblocks * geometry.superblock_slots
}

/// Counts what came along and was not used.
fn refuse(board: &mut Board<impl Tracer>, refusal: Refusal) {
    board.counters.map.rejected_entries += 1;
    board.counters.hpb.refused[refusal as usize] += 1;
}
