//! Host Performance Booster at work, the drive's side: entries come along with reads and go back with
//! responses, groups are handed out when the host asks for them ([`crate::host::hpb`]).
//!
//! Independent of the link. Over UFS an entry takes the place of the upper half of a READ(16)'s LBA
//! field and what a response carries travels in its data segment. Over NVMe, where no standard says
//! how, the entry is assumed to fit reserved dwords of the command and the completion to grow.

use super::hpb_ahead::{Ahead, EACH};
use super::{Command, Contents, Device, HostMemory};
use crate::controller::Waiter;
use crate::controller::hpb::{HostEntry, HpbDevice, Message, NO_ENTRY};
use crate::ftl::{Ftl, TRANSLATION};
use crate::ids::{CommandId, Lpn, NONE, Ppn, TranslationPage};
use crate::request::{Op, Request, Status};
use crate::spec::{DriveSpec, HpbSpec, LinkProtocol, SLOT_BYTES};

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
#[derive(Clone, Debug, Default)]
pub(super) struct Extra {
    /// The entry that came with it.
    entry: Option<HostEntry>,
    /// Entries that came ahead of it, one for each page.
    pub ahead: Ahead,
    /// Bit i: its i-th translation page is not at hand, but the entry makes up for it.
    pub covered: u64,
    /// What its response says.
    message: Message,
    /// Group that it fetches, with its entries once they have been handed out.
    group: u32,
    group_entries: Option<(Box<[u64]>, u32)>,
}

/// What the host learns of a command about map entries.
#[derive(Clone, Debug, Default)]
pub struct HpbAnswer {
    /// The command was one of the host's driver, not a request.
    pub from_driver: bool,
    /// What the response says.
    pub message: Message,
    /// What a READ BUFFER brought: the group, its entries and its version.
    pub group: Option<(u32, Box<[u64]>, u32)>,
}

/// The drive's side of the protocol.
#[derive(Clone, Debug)]
pub(super) struct Hpb {
    pub device: HpbDevice,
    spec: HpbSpec,
    /// The host keeps entries.
    enabled: bool,
    pub extras: Vec<Extra>,
}

impl Hpb {
    pub(super) fn new(drive: &DriveSpec, ftl: &Ftl, seed: u64) -> Option<Box<Self>> {
        let spec = drive.hpb.as_ref()?;
        let geometry = ftl.geometry();
        let physical_slots = geometry.superblocks * geometry.superblock_slots;
        let user_slots = ftl.user_slots();
        Some(Box::new(Hpb {
            device: HpbDevice::new(spec, user_slots, physical_slots, seed),
            spec: spec.clone(),
            enabled: true,
            extras: Vec::new(),
        }))
    }

    /// Nothing belongs to the command yet.
    pub(super) fn begin(&mut self, command: u32) {
        let extra = self.extra(command);
        extra.entry = None;
        extra.covered = 0;
        extra.message = Message::None;
        extra.ahead.clear();
    }

    pub(super) fn extra(&mut self, command: u32) -> &mut Extra {
        let place = command as usize;
        if self.extras.len() <= place {
            self.extras.resize_with(place + 1, Extra::default);
        }
        &mut self.extras[place]
    }

    /// Pages of a group; none if there is no such group.
    fn pages(&self, group: u32, user_slots: u32) -> std::ops::Range<u32> {
        let first = group.saturating_mul(self.spec.group_pages).min(user_slots);
        first..first.saturating_add(self.spec.group_pages).min(user_slots)
    }
}

impl<C: Contents, M: HostMemory> Device<C, M> {
    /// The host sends an entry along with an enqueued read. Ignored without the feature.
    pub fn attach_entry(&mut self, read: CommandId, entry: HostEntry) {
        if let Some(hpb) = &mut self.hpb {
            hpb.extra(read.0).entry = Some(entry);
        }
    }

    /// The host writes a READ BUFFER of a group into queue 0; `None` without the feature, and where
    /// there is no such group.
    pub fn enqueue_read_buffer(&mut self, group: u32) -> Option<CommandId> {
        let pages = self.hpb.as_ref()?.pages(group, self.ftl.user_slots());
        if pages.is_empty() {
            return None;
        }
        let request = Request {
            tag: 0,
            queue: 0,
            op: Op::Read,
            fua: false,
            offset_bytes: u64::from(pages.start) * SLOT_BYTES,
            length_bytes: u64::from(pages.end - pages.start) * SLOT_BYTES,
        };
        let mut command = Command::new(request, Status::Success);
        command.from_driver = true;
        let id = self.insert(command);
        self.hpb.as_mut()?.extra(id.0).group = group;
        Some(id)
    }

    /// What the host has learned about map entries with a command; to be asked once, when the host
    /// has its response.
    pub fn hpb_answer(&mut self, command: CommandId) -> HpbAnswer {
        let from_driver = self.commands[command.0].from_driver;
        let Some(hpb) = &mut self.hpb else {
            return HpbAnswer::default();
        };
        let extra = hpb.extra(command.0);
        extra.entry = None;
        extra.ahead.clear();
        let group = extra.group;
        HpbAnswer {
            from_driver,
            message: std::mem::take(&mut extra.message),
            group: extra
                .group_entries
                .take()
                .map(|(entries, version)| (group, entries, version)),
        }
    }

    /// The entry that a page had when the drive was first switched on: what a host has loaded then
    /// is this formula.
    #[must_use]
    pub fn hpb_entry_at_boot(&self, lpn: Lpn) -> u64 {
        self.hpb.as_ref().map_or(NO_ENTRY, |hpb| {
            hpb.device.encode_at_boot(lpn, self.ftl.initial(lpn))
        })
    }

    /// Whether an entry shows its place, so that a host can tell which pages lie side by side.
    #[must_use]
    pub fn hpb_shows_place(&self) -> bool {
        self.hpb
            .as_ref()
            .is_some_and(|hpb| hpb.device.shows_place())
    }

    /// The host begins to keep map entries, or stops; whatever it has is void.
    pub fn set_hpb_enabled(&mut self, enabled: bool) {
        if let Some(hpb) = &mut self.hpb {
            hpb.enabled = enabled;
            hpb.device.void_all();
        }
    }

    /// A look-up missed the map and no entry of the host made up for it.
    #[inline]
    pub(super) fn note_map_miss(&mut self, id: u32) {
        if let Some(hpb) = &mut self.hpb {
            let group = hpb.device.group(Lpn(self.commands[id].first_lpn()));
            hpb.device.missed(group);
        }
    }

    /// Whether the entry that came with a read makes up for a translation page that is not at hand.
    #[inline]
    pub(super) fn host_entry_covers(&mut self, id: u32, page: u32) -> bool {
        let Some(hpb) = &mut self.hpb else {
            return false;
        };
        if !hpb.extra(id).ahead.entries.is_empty() {
            return self.entries_cover(id, page);
        }
        let command = &self.commands[id];
        let bit = page - command.translation_pages().0;
        if command.host_ppn != NONE {
            hpb.extra(id).covered |= 1 << bit;
            self.counters.hpb.used += 1;
            return true;
        }
        let Some(entry) = hpb.extra(id).entry.take() else {
            return false;
        };
        let first = command.first_lpn();
        let checked = hpb
            .device
            .check(Lpn(first), command.end_lpn() - first, entry);
        match checked {
            Ok(ppn) => {
                hpb.extra(id).covered = 1 << bit;
                hpb.extra(id).entry = Some(entry);
                self.commands[id].host_ppn = ppn.0;
                self.counters.hpb.used += 1;
                true
            }
            Err(refusal) => {
                self.counters.map.rejected_entries += 1;
                self.counters.hpb.refused[refusal as usize] += 1;
                false
            }
        }
    }

    /// Core time of looking at the entry that comes with a read; 0 without one.
    #[inline]
    pub(super) fn host_entry_ps(&self, id: u32) -> u64 {
        let Some(hpb) = &self.hpb else { return 0 };
        match hpb.extras.get(id as usize) {
            Some(extra) => {
                let entries = usize::from(extra.entry.is_some()) + extra.ahead.entries.len();
                entries as u64 * hpb.spec.check_ps
            }
            None => 0,
        }
    }

    /// The read starts: the group may have changed since the entry was checked.
    pub(super) fn confirm_host_entry(&mut self, id: u32) {
        if self.commands[id].host_ppn == EACH {
            self.confirm_entries(id);
            return;
        }
        let Some(hpb) = &mut self.hpb else { return };
        let command = &self.commands[id];
        let (first, end) = (command.first_lpn(), command.end_lpn());
        let covered = hpb.extra(id).covered;
        let entry = hpb.extra(id).entry.unwrap_or_default();
        if let Err(refusal) = hpb.device.check(Lpn(first), end - first, entry) {
            self.commands[id].host_ppn = NONE;
            self.commands[id].missed |= covered;
            let pages = u64::from(covered.count_ones());
            self.counters.hpb.used -= pages;
            self.counters.map.misses += pages;
            self.counters.map.rejected_entries += 1;
            self.counters.hpb.refused[refusal as usize] += 1;
        }
    }

    /// The map entry of a page changes, or will once its data is in flash.
    #[inline]
    pub(super) fn entry_changes(&mut self, lpn: Lpn) {
        if let Some(hpb) = &mut self.hpb {
            hpb.device.changed(lpn);
        }
    }

    /// A page has lost its data.
    #[inline]
    pub(super) fn entry_is_gone(&mut self, lpn: Lpn) {
        if let Some(hpb) = &mut self.hpb {
            hpb.device.changed(lpn);
            hpb.device.settled(lpn);
        }
    }

    /// A program operation has ended: the entries of what is current in it can be handed out.
    pub(super) fn entries_settle(&mut self, unit: Ppn) {
        let Some(hpb) = &mut self.hpb else { return };
        let slc = self.ftl.blocks.is_slc(unit);
        for offset in 0..self.ftl.geometry().unit_slots(slc) {
            let owner = self.ftl.current_owner(Ppn(unit.0 + offset));
            if let Some(page) = owner.filter(|owner| owner & TRANSLATION == 0)
                && self.buffer.find(Lpn(page)).is_none()
            {
                hpb.device.settled(Lpn(page));
            }
        }
    }

    /// What a response carries beyond the usual, bytes; a READ BUFFER's data is sent first.
    pub(super) fn answer_about_entries(&mut self, id: u32) -> u64 {
        let Some(hpb) = &mut self.hpb else { return 0 };
        if self.commands[id].from_driver && !hpb.extra(id).ahead.is_write_buffer() {
            let group = hpb.extra(id).group;
            let pages = hpb.pages(group, self.ftl.user_slots());
            let version = hpb.device.hand_out(group, pages.clone());
            let entries: Box<[u64]> = pages
                .map(|page| match self.ftl.locate(Lpn(page)) {
                    Some(ppn) => hpb.device.encode(Lpn(page), ppn),
                    None => NO_ENTRY,
                })
                .collect();
            let bytes = entries.len() as u64 * hpb.device.entry_bytes() + GROUP_HEADER_BYTES;
            hpb.extra(id).group_entries = Some((entries, version));
            self.commands[id].data_end_ps = self.link.write(self.engine.now(), bytes);
        }
        if !hpb.enabled {
            return 0;
        }
        let ftl = &self.ftl;
        let message = hpb.device.next_message(|lpn| ftl.locate(lpn));
        hpb.extra(id).message = message;
        match message {
            Message::None => return 0,
            Message::Entry { .. } => self.counters.hpb.entries_delivered += 1,
            Message::Dirty { .. } | Message::Recommendation { .. } => {
                self.counters.hpb.notices += 1;
            }
        }
        message_bytes(self.spec.link.protocol)
    }

    /// Core time of an HPB WRITE BUFFER; or that of a READ BUFFER, and which of its translation pages must be read first.
    pub(super) fn group_core_ps(&mut self, id: u32) -> u64 {
        if let Some(hpb) = &mut self.hpb
            && hpb.extra(id).ahead.is_write_buffer()
        {
            return hpb.spec.write_buffer_ps;
        }
        let (first, last) = self.commands[id].translation_pages();
        let read_buffer_ps = self.hpb.as_ref().map_or(0, |hpb| hpb.spec.read_buffer_ps);
        let mut core_ps = read_buffer_ps;
        for page in first..=last {
            if self.look_up_map(TranslationPage(page)) == crate::controller::Found::Nowhere {
                self.commands[id].missed |= 1 << (page - first);
                core_ps += self.spec.controller.map_fill_ps;
            }
        }
        core_ps
    }

    /// The translation pages of a group are read as far as they are not at hand.
    pub(super) fn start_group_read(&mut self, id: u32) {
        if self.take_entries(id) {
            return;
        }
        self.commands[id].pending = 1;
        let missed = self.commands[id].missed;
        let (first, last) = self.commands[id].translation_pages();
        for page in first..=last {
            if missed >> (page - first) & 1 != 0 {
                self.commands[id].pending += 1;
                self.map
                    .fill(TranslationPage(page), Some(Waiter::Command(id)));
            }
        }
        if missed != 0 {
            self.pump_map();
        }
        self.settle_one(id);
    }

    /// The drive has started anew: whatever the host keeps is void, under keys of its own. Entries
    /// of pages that the buffer still holds change once these are in flash.
    pub(super) fn restart_hpb(&mut self, buffered: &[Lpn]) {
        let seed = self.new_key_seed();
        let Some(hpb) = &mut self.hpb else { return };
        let geometry = self.ftl.geometry();
        let physical_slots = geometry.superblocks * geometry.superblock_slots;
        hpb.device = HpbDevice::new(&hpb.spec, self.ftl.user_slots(), physical_slots, seed);
        hpb.extras.clear();
        hpb.device.void_all();
        for &lpn in buffered {
            hpb.device.changed(lpn);
        }
    }
}
