//! Host Performance Booster in the drive: which of the map entries outside are still true.
//!
//! The paper (Jeong et al., HotStorage 2017) keeps one dirty bit for each group of 4096 pages, set
//! when any entry of the group changes and cleared when the host gets the latest entries, be it the
//! whole group (READ BUFFER) or one entry in a response. Taken literally this returns wrong data:
//! after one of two changed entries was delivered the other is stale in a "clean" group; a response
//! the host never saw cleans the group as well; and a read that left the host before the delivery
//! arrives after it, with the old entry. Checking which logical page the flash page says it holds
//! does not help: an overwritten page still says so until it is erased.
//!
//! What is kept here instead, for each group:
//!
//! - how many of its entries changed and have not been handed out: the group is clean when none has;
//! - a version, which every hand-out advances by one. A delivered entry names the version before and
//!   after it, the host applies it only on top of that version, and every read says which version
//!   its entry comes from. An entry is used only if its group is clean *and* the host has had
//!   everything handed out for the group. A lost, late or doubled response can so cost speed only.
//!
//! With integrity (`crc`, `mac`) the version is the epoch the entries are bound to, so the host
//! cannot claim one it does not have. Single entries are not delivered then: the other entries of
//! the group, bound to the epoch before, would have to be rejected anyway. A change costs a READ
//! BUFFER of its group.

use super::cache::{Cache, Direct, Inserted};
use super::integrity::{EntryCodec, Epochs};
use crate::ids::{Lpn, Ppn};
use crate::sparse::Sparse;
use crate::spec::{HpbProtocol, HpbSpec, Integrity, Replacement};
use crate::table::Table;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Entry of a page without data.
pub const NO_ENTRY: u64 = u64::MAX;

/// A changed page whose new data is not in flash yet: there is no entry to hand out.
const PENDING: u32 = 0;
/// A changed page whose new entry can be handed out.
const READY: u32 = 1;

/// What the drive knows of a group.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default)]
struct Group {
    /// Pages of the group that have changed and were not handed out since.
    stale: u32,
    /// More changed than could be remembered: only a READ BUFFER makes it clean.
    refetch: bool,
    /// A notice about it waits to be sent.
    noticed: bool,
    /// The host was given its entries (JEDEC).
    handed_out: bool,
    /// Map misses since it was last recommended (JEDEC).
    misses: u16,
}

/// What a response says about entries.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default, PartialEq, Eq)]
pub enum Message {
    /// The response says nothing about entries.
    #[default]
    None,
    /// The latest entry of a page.
    Entry {
        /// Logical page that the entry is of.
        lpn: Lpn,
        /// Physical page it lies in; `None`: it has no data.
        ppn: Option<Ppn>,
        /// Version that the host's entries of the group must have for the entry to count.
        before: u32,
        /// Version of the group once the entry is applied.
        version: u32,
    },
    /// JEDEC: a sub-region that should be fetched and a region that should be given up.
    Recommendation {
        /// Sub-region to fetch.
        activate: Option<u32>,
        /// Region to give up.
        inactivate: Option<u32>,
    },
    /// A group's entries should be fetched anew by those who do not have this version of it.
    Dirty {
        /// Group that has changed.
        group: u32,
        /// Its version; `None`: whatever the host has is not enough.
        version: Option<u32>,
    },
}

/// An entry as it comes with a read: up to eight bytes, and the version of its group that the host
/// has.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostEntry {
    /// The entry's bytes, as the drive gave them out, the first one lowest.
    pub bytes: u64,
    /// Version of its group.
    pub version: u32,
}

/// Why an entry that came with a read was not used.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its group has changed.
    Dirty,
    /// The host has not had everything handed out for the group.
    Behind,
    /// It is not what the drive handed out, or names no page of the flash.
    Forged,
}

/// The drive's side of the protocol.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct HpbDevice {
    group_pages: u32,
    group_count: u32,
    /// Those that are not as all others.
    groups: Sparse<Group>,
    /// All others.
    untouched: Group,
    epochs: Epochs,
    codec: EntryCodec,
    integrity: Integrity,
    /// Stale pages: PENDING or READY.
    pages: Table,
    pages_max: usize,
    /// Pages in READY, oldest first; ones that left that state meanwhile stand here still.
    ready: VecDeque<u32>,
    /// Groups to tell the host of.
    notices: VecDeque<u32>,
    physical_slots: u32,
    /// JEDEC's protocol: what it takes to recommend.
    jedec: Option<Jedec>,
}

/// What the drive keeps for JEDEC's protocol. When to recommend what is left to the maker; here a
/// sub-region is recommended after some map misses in it, and the region used least recently makes
/// room.
#[derive(Clone, Serialize, Deserialize, Debug)]
struct Jedec {
    host_control: bool,
    groups_per_region: u32,
    misses_max: u32,
    /// Regions recommended (device control).
    active: Cache<Direct>,
    recommendations: VecDeque<(u32, Option<u32>)>,
}

impl Jedec {
    fn new(spec: &HpbSpec, groups: u32, seed: u64) -> Self {
        let groups_per_region = spec.region_pages / spec.group_pages;
        let regions = groups.div_ceil(groups_per_region);
        let active = (spec.host_groups / groups_per_region).max(1);
        let active = active.saturating_sub(spec.pinned_regions);
        Jedec {
            host_control: spec.host_control,
            groups_per_region,
            misses_max: spec.recommend_misses,
            active: Cache::new(Direct::new(regions), active, Replacement::Lru, seed),
            recommendations: VecDeque::new(),
        }
    }

    /// Recommends a sub-region (device control); returns the region that should make room.
    fn recommend(&mut self, group: u32) -> Option<u32> {
        let region = group / self.groups_per_region;
        let mut gone = None;
        if !self.active.touch(region)
            && let Inserted::Evicted(victim) = self.active.insert(region, false)
        {
            gone = Some(victim);
        }
        self.recommendations.push_back((group, gone));
        gone
    }
}

impl HpbDevice {
    /// Nothing is stale. `physical_slots`: one past the last physical page.
    #[must_use]
    pub fn new(spec: &HpbSpec, user_slots: u32, physical_slots: u32, seed: u64) -> Self {
        let groups = user_slots.div_ceil(spec.group_pages);
        HpbDevice {
            group_pages: spec.group_pages,
            group_count: groups,
            groups: Sparse::default(),
            untouched: Group::default(),
            epochs: Epochs::new(groups, spec.epoch_bits),
            codec: EntryCodec::new(spec.integrity, seed),
            integrity: spec.integrity,
            pages: Table::with_capacity(64),
            pages_max: spec.stale_pages as usize,
            ready: VecDeque::new(),
            notices: VecDeque::new(),
            physical_slots,
            jedec: (spec.protocol == HpbProtocol::Jedec).then(|| Jedec::new(spec, groups, seed)),
        }
    }

    #[inline]
    fn group_state(&self, number: u32) -> Group {
        assert!(number < self.group_count, "a group of this drive");
        self.groups.get(number).copied().unwrap_or(self.untouched)
    }

    #[inline]
    fn group_mut(&mut self, number: u32) -> &mut Group {
        assert!(number < self.group_count, "a group of this drive");
        let untouched = self.untouched;
        self.groups.touch(number, || untouched)
    }

    /// A look-up in this group missed the map: maybe the host should have the group.
    pub fn missed(&mut self, number: u32) {
        let Some((host_control, misses_max)) = self
            .jedec
            .as_ref()
            .map(|jedec| (jedec.host_control, jedec.misses_max))
        else {
            return;
        };
        // What the host has is worth having again once a sixteenth of it has changed.
        let group_pages = self.group_pages;
        let group = self.group_mut(number);
        if group.handed_out && !group.refetch && group.stale * 16 < group_pages {
            return;
        }
        group.misses = group.misses.saturating_add(1);
        if host_control || u32::from(group.misses) < misses_max {
            return;
        }
        group.misses = 0;
        let Some(jedec) = &mut self.jedec else { return };
        let Some(gone) = jedec.recommend(number) else {
            return;
        };
        let first = gone * jedec.groups_per_region;
        for number in first..(first + jedec.groups_per_region).min(self.group_count) {
            if let Some(group) = self.groups.get_mut(number) {
                group.handed_out = false;
            }
        }
    }

    /// Group of a page.
    #[inline]
    #[must_use]
    pub fn group(&self, lpn: Lpn) -> u32 {
        lpn.0 / self.group_pages
    }

    /// Version of a group.
    #[must_use]
    pub fn version(&self, group: u32) -> u32 {
        self.epochs.get(group)
    }

    /// The entries of pages of one group as they leave the drive; [`NO_ENTRY`] where no data is.
    pub fn encode_pages(
        &self,
        group: u32,
        pages: std::ops::Range<u32>,
        locate: impl Fn(Lpn) -> Option<Ppn>,
    ) -> Box<[u64]> {
        let epoch = self.epochs.get(group);
        let entry = |page| {
            let lpn = Lpn(page);
            locate(lpn).map_or(NO_ENTRY, |ppn| self.encode_in(lpn, ppn, epoch))
        };
        pages.map(entry).collect()
    }

    #[inline]
    fn encode_in(&self, lpn: Lpn, ppn: Ppn, epoch: u32) -> u64 {
        let entry = self.codec.encode(lpn, ppn, epoch);
        let mut bytes = [0; 8];
        bytes[..entry.bytes().len()].copy_from_slice(entry.bytes());
        u64::from_le_bytes(bytes)
    }

    /// The entry of a page as it was handed out at boot, where the drive was as preconditioned.
    #[must_use]
    pub fn encode_at_boot(&self, lpn: Lpn, ppn: Option<Ppn>) -> u64 {
        ppn.map_or(NO_ENTRY, |ppn| self.encode_in(lpn, ppn, 0))
    }

    /// Bytes of an entry.
    #[must_use]
    pub fn entry_bytes(&self) -> u64 {
        match &self.jedec {
            // JESD220-3: 8 bytes, whatever they mean.
            Some(_) => 8,
            None => EntryCodec::entry_bytes(self.integrity) as u64,
        }
    }

    /// Whether an entry shows where the page lies, so that the host can tell contiguous pages.
    #[must_use]
    pub fn shows_place(&self) -> bool {
        self.integrity == Integrity::None
    }

    /// The entry of a page changes, or will once its data is in flash.
    #[inline]
    pub fn changed(&mut self, lpn: Lpn) {
        let number = self.group(lpn);
        let known = self.pages.get(lpn.0).is_some();
        if !known {
            if self.group_state(number).refetch {
                return;
            }
            // Where single entries are refused, those of other pages stay good.
            let all_void = self.integrity != Integrity::None && self.jedec.is_none();
            if all_void || self.pages.len() >= self.pages_max {
                self.give_up(number);
                return;
            }
            self.group_mut(number).stale += 1;
        }
        self.pages.insert(lpn.0, PENDING);
    }

    /// Only a READ BUFFER makes this group clean again.
    fn give_up(&mut self, group: u32) {
        self.group_mut(group).refetch = true;
        self.notice(group);
    }

    /// The host is to hear that what it has of a group does not count. By JEDEC's protocol only where it may have anything,
    /// and chooses itself what to fetch: under device control map misses have a sub-region recommended, and nothing else.
    fn notice(&mut self, number: u32) {
        let host_chooses = self.jedec.as_ref().map(|jedec| jedec.host_control);
        let group = self.group_mut(number);
        let is_of_use = match host_chooses {
            None => true,
            Some(host_chooses) => host_chooses && group.handed_out && group.refetch,
        };
        if group.noticed || !is_of_use {
            return;
        }
        group.noticed = true;
        group.misses = 0;
        match &mut self.jedec {
            Some(jedec) => jedec.recommendations.push_back((number, None)),
            None => self.notices.push_back(number),
        }
    }

    /// A changed page's newest data is in flash (or gone): its entry can be handed out.
    #[inline]
    pub fn entry_is_stable(&mut self, lpn: Lpn) {
        if self.pages.get(lpn.0) == Some(PENDING) {
            self.pages.insert(lpn.0, READY);
            if self.jedec.is_none() {
                self.ready.push_back(lpn.0);
            }
        }
    }

    /// What the next response says. `locate` is the drive's own map.
    pub fn next_message(&mut self, locate: impl Fn(Lpn) -> Option<Ppn>) -> Message {
        if let Some(jedec) = &mut self.jedec {
            let next = jedec.recommendations.pop_front();
            return next.map_or(Message::None, |(group, inactivate)| {
                if let Some(group) = self.groups.get_mut(group) {
                    group.noticed = false;
                }
                Message::Recommendation {
                    activate: Some(group),
                    inactivate,
                }
            });
        }
        while let Some(page) = self.ready.pop_front() {
            if self.pages.get(page) != Some(READY) {
                continue;
            }
            let lpn = Lpn(page);
            let number = self.group(lpn);
            self.forget(lpn);
            if self.group_state(number).refetch {
                // The READ BUFFER to come will bring it.
                continue;
            }
            let before = self.epochs.get(number);
            self.advance(number);
            return Message::Entry {
                lpn,
                ppn: locate(lpn),
                before,
                version: self.epochs.get(number),
            };
        }
        let Some(group) = self.notices.pop_front() else {
            return Message::None;
        };
        let state = self.group_mut(group);
        state.noticed = false;
        let known = !state.refetch;
        Message::Dirty {
            group,
            version: known.then(|| self.epochs.get(group)),
        }
    }

    fn forget(&mut self, lpn: Lpn) {
        let group = self.group(lpn);
        if self.pages.remove(lpn.0).is_some() {
            self.group_mut(group).stale -= 1;
        }
    }

    /// Everything handed out for a group so far is void.
    fn advance(&mut self, group: u32) {
        if self.epochs.advance(group) {
            // Once in 2^32 hand-outs of one group: all entries are void.
            self.codec.rotate_keys();
            self.void_all();
        }
    }

    /// The host has nothing any more, or nothing that counts: every group must be fetched.
    pub fn void_all(&mut self) {
        self.ready.clear();
        self.pages = Table::with_capacity(64);
        let touched = self.groups.iter_mut().map(|(_, group)| group);
        for group in touched.chain([&mut self.untouched]) {
            group.stale = 0;
            group.handed_out = false;
            group.refetch = true;
        }
    }

    /// The host fetches a group: the entries of this instant are handed out. Pages whose new data is
    /// not in flash yet stay stale.
    pub fn hand_out(&mut self, group: u32, pages: std::ops::Range<u32>) -> u32 {
        let mut left = self.group_state(group).stale;
        for page in pages {
            if left == 0 {
                break;
            }
            match self.pages.get(page) {
                Some(READY) => self.forget(Lpn(page)),
                Some(_) => {}
                None => continue,
            }
            left -= 1;
        }
        self.advance(group);
        let state = self.group_mut(group);
        state.refetch = false;
        state.handed_out = true;
        self.epochs.get(group)
    }

    /// Checks the entry that came with a read of `count` pages from `lpn`.
    ///
    /// # Errors
    /// Why the drive must use its own map.
    pub fn check(&mut self, lpn: Lpn, count: u32, entry: HostEntry) -> Result<Ppn, Refusal> {
        let number = self.group(lpn);
        let group = self.group_state(number);
        let stale = match &self.jedec {
            // The host knows of its own writes, and the drive refuses page by page.
            Some(_) => (lpn.0..lpn.0 + count).any(|page| self.pages.get(page).is_some()),
            None => group.stale > 0,
        };
        let is_across = count > 1 && self.group(Lpn(lpn.0 + count - 1)) != number;
        if stale || group.refetch || is_across {
            if group.refetch {
                self.notice(number);
            }
            return Err(Refusal::Dirty);
        }
        let version = self.epochs.get(number);
        if entry.version != version {
            // The host may have missed the last hand-out; if it has not, it ignores the notice.
            self.notice(number);
            return Err(Refusal::Behind);
        }
        // A tag vouches for the place of its own page, not of those after it.
        if count > 1 && !self.shows_place() {
            return Err(Refusal::Forged);
        }
        let bytes = entry.bytes.to_le_bytes();
        let length = EntryCodec::entry_bytes(self.integrity);
        let decoded = self.codec.decode(lpn, version, &bytes[..length]);
        let Ok(ppn) = decoded else {
            return Err(Refusal::Forged);
        };
        let is_place = ppn.0.checked_add(count);
        if is_place.is_none_or(|end| end > self.physical_slots) {
            return Err(Refusal::Forged);
        }
        Ok(ppn)
    }

    /// Pages known to be stale.
    #[must_use]
    pub fn stale_pages(&self) -> usize {
        self.pages.len()
    }

    /// Whether the host's entries of a group can be used at all now.
    #[must_use]
    pub fn is_clean(&self, group: u32) -> bool {
        let group = self.group_state(group);
        group.stale == 0 && !group.refetch
    }
}
