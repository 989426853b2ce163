//! Host Performance Booster at work: entries go along with reads and come back with responses,
//! groups are fetched when nothing else is asked.
//!
//! Independent of the link. Over UFS an entry takes the place of the upper half of a READ(16)'s LBA
//! field and what a response carries travels in its data segment. Over NVMe, where no standard says
//! how, the entry is assumed to fit reserved dwords of the command and the completion to grow.

use super::hpb_ahead::{Ahead, EACH};
use super::{Command, Contents, Device, HostMemory};
use crate::controller::hpb::{HostEntry, HpbDevice, Message};
use crate::engine::{EventKind, INDEX_MAX};
use crate::ftl::{Ftl, TRANSLATION};
use crate::host::hpb::{Faults, HpbDriver, NO_ENTRY};
use crate::host::hpb_jedec::JedecDriver;
use crate::ids::{Lpn, NONE, Ppn, TranslationPage};
use crate::request::{Op, Request, Status};
use crate::slab::Slab;
use crate::spec::{DriveSpec, HpbProtocol, HpbSpec, LinkProtocol, SLOT_BYTES};

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
#[derive(Debug, Default)]
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

/// A change to the entry of the next read, for tests: what a hostile host would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tamper {
    /// Flips these bits.
    Flip(u64),
    /// Puts another entry in its place; the version of the group is the latest one.
    Replace(u64),
    /// Sends this entry and claims this version, whatever the driver would send.
    Send(HostEntry),
}

/// Both sides of the protocol.
#[derive(Debug)]
pub(super) struct Hpb {
    driver: HpbDriver,
    /// Stands in for the driver where JEDEC's protocol is spoken.
    jedec: Option<JedecDriver>,
    pub device: HpbDevice,
    spec: HpbSpec,
    pub extras: Vec<Extra>,
    /// Number of the current idle period.
    idle_period: u32,
    tamper: Option<Tamper>,
    /// Group of the READ BUFFER under way that the load at boot waits for.
    loading: Option<u32>,
}

impl Hpb {
    pub(super) fn new(drive: &DriveSpec, ftl: &Ftl, seed: u64) -> Option<Box<Self>> {
        let spec = drive.hpb.as_ref()?;
        let geometry = ftl.geometry();
        let physical_slots = geometry.superblocks * geometry.superblock_slots;
        let user_slots = ftl.user_slots();
        Some(Box::new(Hpb {
            driver: HpbDriver::new(spec, user_slots, seed),
            jedec: (spec.protocol == HpbProtocol::Jedec)
                .then(|| JedecDriver::new(spec, user_slots)),
            device: HpbDevice::new(spec, user_slots, physical_slots, seed),
            spec: spec.clone(),
            extras: Vec::new(),
            idle_period: 0,
            tamper: None,
            loading: None,
        }))
    }

    /// What the driver counts by itself: groups given up, activations, inactivations, unmaps.
    pub(super) fn driver_counts(&self) -> [u64; 4] {
        match &self.jedec {
            Some(d) => [0, d.activations, d.inactivations, d.unmap_requests],
            None => [self.driver.evictions, 0, 0, 0],
        }
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

    fn is_enabled(&self) -> bool {
        match &self.jedec {
            Some(driver) => driver.is_enabled(),
            None => self.driver.is_enabled(),
        }
    }

    /// The entry that the driver sends with a read.
    fn entry(&mut self, command: &Command, ftl: &Ftl) -> Option<HostEntry> {
        let first = command.first_lpn();
        let Hpb { driver, device, .. } = self;
        let boot = |lpn| device.encode_at_boot(lpn, ftl.initial(lpn));
        let count = command.end_lpn() - first;
        driver.entry(Lpn(first), count, device.shows_place(), boot)
    }
}

impl<C: Contents, M: HostMemory> Device<C, M> {
    /// The driver adds what it has to a command. Returns true when that takes another command ahead.
    pub(super) fn attach_host_entry(&mut self, id: u32) -> bool {
        let Some(hpb) = &mut self.hpb else {
            return false;
        };
        let command = self.commands[id];
        hpb.begin(id);
        let mut entry = None;
        let is_read = command.request.op == Op::Read;
        if command.status == Status::Success && (is_read || hpb.jedec.is_some()) {
            let now_ps = self.engine.now().ps();
            entry = match &mut hpb.jedec {
                Some(driver) => {
                    let first = command.first_lpn();
                    let count = command.end_lpn() - first;
                    let entry = driver.on_request(command.request.op, Lpn(first), count, now_ps);
                    if is_read && count > 1 {
                        let entries = &mut hpb.extras[id as usize].ahead.entries;
                        driver.entries(Lpn(first), count, entries);
                    }
                    entry
                }
                None => hpb.entry(&command, &self.ftl),
            };
        }
        if command.status == Status::Success && is_read {
            let counters = &mut self.counters.hpb;
            match entry.or(hpb.extras[id as usize].ahead.entries.first().copied()) {
                Some(_) => counters.hits += 1,
                None => counters.misses += 1,
            }
        }
        let tamper = hpb.tamper.take();
        let extra = hpb.extra(id);
        extra.entry = entry;
        let first = extra.entry.as_mut().or(extra.ahead.entries.first_mut());
        match (first, tamper) {
            (Some(entry), Some(Tamper::Flip(bits))) => entry.bytes ^= bits,
            (Some(entry), Some(Tamper::Replace(bytes))) => entry.bytes = bytes,
            (Some(entry), Some(Tamper::Send(other))) if is_read => *entry = other,
            (None, Some(Tamper::Send(other))) if is_read => extra.entry = Some(other),
            _ => {}
        }
        let ahead = !extra.ahead.entries.is_empty();
        if ahead {
            self.send_entries_ahead(id);
        }
        self.run_map_requests();
        ahead
    }

    /// JEDEC's driver fetches what it wants at once.
    fn run_map_requests(&mut self) {
        loop {
            let now_ps = self.engine.now().ps();
            let Some(hpb) = &mut self.hpb else { return };
            let Some(sub) = hpb.jedec.as_mut().and_then(|d| d.next_fetch(now_ps)) else {
                return;
            };
            self.fetch_this_group(sub);
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
            let pages = hpb.driver.pages(group);
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
        if !hpb.is_enabled() {
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

    /// The host has a response. Returns true when it was that of a command
    /// of the driver.
    pub(super) fn host_hears_about_entries(&mut self, id: u32) -> bool {
        let Some(hpb) = &mut self.hpb else {
            return false;
        };
        let fetched = self.commands[id].from_driver;
        if fetched && let Some((entries, version)) = hpb.extra(id).group_entries.take() {
            let group = hpb.extra(id).group;
            match &mut hpb.jedec {
                Some(driver) => driver.on_group(group, entries, version),
                None => hpb.driver.on_group(group, entries, version),
            }
        }
        let extra = hpb.extra(id);
        extra.entry = None;
        extra.ahead.clear();
        let message = std::mem::take(&mut hpb.extra(id).message);
        let group = hpb.extra(id).group;
        let loaded = fetched && hpb.loading == Some(group);
        if let Some(driver) = &mut hpb.jedec {
            if let Message::Recommendation {
                activate,
                inactivate,
            } = message
            {
                driver.on_recommendation(activate, inactivate);
            }
            self.run_map_requests();
        } else if message != Message::None {
            let Hpb { driver, device, .. } = &mut **hpb;
            let ftl = &self.ftl;
            driver.on_message(message, |lpn| device.encode_at_boot(lpn, ftl.initial(lpn)));
        }
        if loaded {
            self.load_next();
        }
        fetched
    }

    /// Nothing may be asked for a while: then the host fetches what it lacks. After one group it
    /// goes on to the next at once.
    pub(super) fn note_hpb_idle(&mut self, fetched: bool) {
        let Some(hpb) = &mut self.hpb else { return };
        hpb.idle_period = (hpb.idle_period + 1) & INDEX_MAX;
        if !hpb.driver.wants() || !self.commands.is_empty() {
            return;
        }
        if fetched {
            self.fetch_group();
            return;
        }
        let at_ps = self.engine.now().ps() + hpb.spec.idle_ps;
        self.engine
            .schedule(at_ps, EventKind::HpbIdle, hpb.idle_period);
    }

    pub(super) fn on_hpb_idle(&mut self, period: u32) {
        let current = self.hpb.as_ref().map(|hpb| hpb.idle_period);
        if current == Some(period) && self.commands.is_empty() {
            self.fetch_group();
        }
    }

    /// The host begins to load at boot what it keeps, unless it has it already.
    pub(super) fn load_at_boot(&mut self) {
        let Some(hpb) = &self.hpb else { return };
        if !hpb.spec.loads_at_boot {
            return;
        }
        if hpb.jedec.is_some() {
            self.run_map_requests();
        } else if hpb.loading.is_none() {
            self.load_next();
        }
    }

    /// The load at boot goes on, whatever else is asked.
    fn load_next(&mut self) {
        let Some(hpb) = &mut self.hpb else { return };
        hpb.loading = hpb.driver.next_load();
        if let Some(group) = hpb.loading {
            self.fetch_this_group(group);
        }
    }

    /// The host sends a READ BUFFER.
    fn fetch_group(&mut self) {
        let Some(hpb) = &mut self.hpb else { return };
        if let Some(group) = hpb.driver.next_wanted() {
            self.fetch_this_group(group);
        }
    }

    fn fetch_this_group(&mut self, group: u32) {
        let Some(hpb) = &mut self.hpb else { return };
        let pages = hpb.driver.pages(group);
        let request = Request {
            tag: 0,
            queue: 0,
            op: Op::Read,
            fua: false,
            offset_bytes: u64::from(pages.start) * SLOT_BYTES,
            length_bytes: u64::from(pages.end - pages.start) * SLOT_BYTES,
        };
        let mut command = Command::new(request, Status::Success, self.engine.now().ps());
        command.from_driver = true;
        let id = Slab::insert(&mut self.commands, command);
        hpb.begin(id);
        hpb.extra(id).group = group;
        self.counters.hpb.groups_fetched += 1;
        self.ring(0, id, self.spec.host.submit_ps);
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
                self.map.fill(TranslationPage(page), Some(id));
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
        hpb.loading = None;
        match &mut hpb.jedec {
            Some(driver) => driver.restart(),
            None => hpb.driver.set_enabled(hpb.driver.is_enabled()),
        }
        hpb.device.void_all();
        for &lpn in buffered {
            hpb.device.changed(lpn);
        }
        self.load_at_boot();
        self.note_hpb_idle(false);
    }

    /// The host's driver starts or stops keeping map entries. It begins with none.
    pub fn set_hpb_enabled(&mut self, enabled: bool) {
        let Some(hpb) = &mut self.hpb else { return };
        if enabled != hpb.is_enabled() {
            match &mut hpb.jedec {
                Some(driver) => driver.set_enabled(enabled),
                None => hpb.driver.set_enabled(enabled),
            }
            hpb.device.void_all();
            self.load_at_boot();
            self.note_hpb_idle(false);
        }
    }

    /// Epochs of this many bits, all zero: for tests, at the start, so that they wrap.
    pub fn limit_hpb_epochs(&mut self, bits: u32) {
        if let Some(hpb) = &mut self.hpb {
            hpb.device.limit_epochs(bits);
        }
    }

    /// Messages to the host's driver get lost or come late from now on (tests).
    pub fn set_hpb_faults(&mut self, faults: Option<Faults>) {
        if let Some(hpb) = &mut self.hpb {
            hpb.driver.faults = faults;
        }
    }

    /// Changes the entry of the next read that carries one (tests).
    pub fn tamper_with_hpb(&mut self, tamper: Tamper) {
        if let Some(hpb) = &mut self.hpb {
            hpb.tamper = Some(tamper);
        }
    }

    /// The entry that the host would send with a read of this page; to be played back in tests.
    pub fn hpb_entry(&mut self, lpn: Lpn) -> Option<HostEntry> {
        let hpb = self.hpb.as_mut()?;
        let Hpb { driver, device, .. } = &mut **hpb;
        let ftl = &self.ftl;
        let boot = |lpn| device.encode_at_boot(lpn, ftl.initial(lpn));
        driver.entry(lpn, 1, device.shows_place(), boot)
    }
}
