//! The host's driver for Host Performance Booster: map entries in memory of its own (tier `host`),
//! sent along with reads (Jeong et al., HotStorage 2017, section 3).

use crate::controller::cache::{Cache, Direct, Inserted};
use crate::controller::hpb::{HostEntry, Message, NO_ENTRY};
use crate::ids::{Lpn, Ppn};
use crate::spec::{HpbSpec, Replacement};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What the host holds of a group.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
enum Entries {
    /// No entries: the group has not been fetched.
    #[default]
    Absent,
    /// What was loaded at boot, when every page lay where preconditioning put it. Kept as a formula.
    Boot,
    /// Entry by entry.
    Held(Box<[u64]>),
}

#[derive(Clone, Serialize, Deserialize, Debug, Default)]
struct Group {
    entries: Entries,
    version: u32,
    /// Something was missed: the entries are not used.
    broken: bool,
    /// Stands among those to be fetched.
    wanted: bool,
}

/// The driver of the paper.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct PaperDriver {
    group_pages: u32,
    user_slots: u32,
    groups: Vec<Group>,
    /// Which groups are held, where not all fit.
    cache: Option<Cache<Direct>>,
    /// Groups to be fetched once the drive is idle.
    wanted: VecDeque<u32>,
    /// Groups still to be loaded at boot.
    loading: std::ops::Range<u32>,
    /// Groups to load at boot; 0 if their entries are there when the drive first starts.
    boot_groups: u32,
    enabled: bool,
    replacement: Replacement,
    seed: u64,
    /// Groups that gave way.
    pub evictions: u64,
}

impl PaperDriver {
    /// A driver that has loaded at boot what fits into its memory, or is about to.
    #[must_use]
    pub fn new(spec: &HpbSpec, user_slots: u32, seed: u64) -> Self {
        let count = user_slots.div_ceil(spec.group_pages);
        let mut groups = Vec::new();
        groups.resize_with(count as usize, Group::default);
        let mut cache = (spec.host_groups < count)
            .then(|| Cache::new(Direct::new(count), spec.host_groups, spec.replacement, seed));
        let fitting = spec.host_groups.min(count);
        let (loaded, boot_groups) = match spec.loads_at_boot {
            true => (0, fitting),
            false => (fitting, 0),
        };
        for number in 0..loaded {
            groups[number as usize].entries = Entries::Boot;
            if let Some(cache) = &mut cache {
                cache.insert(number, false);
            }
        }
        PaperDriver {
            group_pages: spec.group_pages,
            user_slots,
            groups,
            cache,
            wanted: VecDeque::new(),
            loading: 0..boot_groups,
            boot_groups,
            enabled: true,
            replacement: spec.replacement,
            seed,
            evictions: 0,
        }
    }

    /// Group of a page.
    #[inline]
    #[must_use]
    pub fn group(&self, lpn: Lpn) -> u32 {
        lpn.0 / self.group_pages
    }

    /// Pages of a group.
    #[must_use]
    pub fn pages(&self, group: u32) -> std::ops::Range<u32> {
        let first = group * self.group_pages;
        first..(first + self.group_pages).min(self.user_slots)
    }

    /// The entry to send with a read of `count` pages from `lpn`; `None` when the host has none, or
    /// the pages do not lie side by side. `boot` is the entry that was loaded at boot; `shown` says
    /// whether an entry shows its place, without which nothing is known of neighbours.
    pub fn entry(
        &mut self,
        lpn: Lpn,
        count: u32,
        shown: bool,
        boot: impl Fn(Lpn) -> u64,
    ) -> Option<HostEntry> {
        let number = self.group(lpn);
        if !self.enabled {
            return None;
        }
        if let Some(cache) = &mut self.cache
            && !cache.touch(number)
        {
            self.want(number);
            return None;
        }
        let group = &self.groups[number as usize];
        let first_page = number * self.group_pages;
        let at = |page: u32| match &group.entries {
            Entries::Absent => NO_ENTRY,
            Entries::Boot => boot(Lpn(page)),
            Entries::Held(entries) => entries[(page - first_page) as usize],
        };
        let first = at(lpn.0);
        let within = self.group(Lpn(lpn.0 + count - 1)) == number;
        if group.broken || first == NO_ENTRY || !within || (count > 1 && !shown) {
            return None;
        }
        let together = (1..count).all(|n| at(lpn.0 + n) == first + u64::from(n));
        together.then_some(HostEntry {
            bytes: first,
            version: group.version,
        })
    }

    /// A response said something about entries.
    pub fn on_message(&mut self, message: Message, boot: impl Fn(Lpn) -> u64) {
        if !self.enabled {
            return;
        }
        match message {
            // The latter is another driver's.
            Message::None | Message::Recommendation { .. } => {}
            Message::Dirty { group, version } => {
                if version != Some(self.groups[group as usize].version) {
                    self.miss(group);
                }
            }
            Message::Entry {
                lpn,
                ppn,
                before,
                version,
            } => self.apply_entry(lpn, ppn, (before, version), &boot),
        }
    }

    fn apply_entry(
        &mut self,
        lpn: Lpn,
        ppn: Option<Ppn>,
        (before, version): (u32, u32),
        boot: &impl Fn(Lpn) -> u64,
    ) {
        let number = self.group(lpn);
        let pages = self.pages(number);
        let group = &mut self.groups[number as usize];
        if matches!(group.entries, Entries::Absent) || group.broken {
            return;
        }
        if group.version != before {
            self.miss(number);
            return;
        }
        if matches!(group.entries, Entries::Boot) {
            let all = pages.clone().map(|page| boot(Lpn(page)));
            group.entries = Entries::Held(all.collect());
        }
        group.version = version;
        if let Entries::Held(entries) = &mut group.entries {
            let entry = ppn.map_or(NO_ENTRY, |ppn| u64::from(ppn.0));
            entries[(lpn.0 - pages.start) as usize] = entry;
        }
    }

    /// Something about a group was missed: its entries are useless until it is fetched.
    fn miss(&mut self, number: u32) {
        let group = &mut self.groups[number as usize];
        if matches!(group.entries, Entries::Absent) {
            return;
        }
        group.broken = true;
        self.want(number);
    }

    fn want(&mut self, number: u32) {
        let group = &mut self.groups[number as usize];
        if !group.wanted {
            group.wanted = true;
            self.wanted.push_back(number);
        }
    }

    /// Whether there is something to fetch.
    #[inline]
    #[must_use]
    pub fn wants(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// The next group to be fetched.
    pub fn next_wanted(&mut self) -> Option<u32> {
        loop {
            let number = self.wanted.pop_front()?;
            self.groups[number as usize].wanted = false;
            // Loaded at boot meanwhile.
            if !self.has(number) {
                return Some(number);
            }
        }
    }

    /// Whether a group's entries are there and of use.
    fn has(&self, number: u32) -> bool {
        let group = &self.groups[number as usize];
        !group.broken && !matches!(group.entries, Entries::Absent)
    }

    /// The next group to be loaded at boot. What came in another way is left out, and a full memory
    /// ends it.
    pub fn next_load(&mut self) -> Option<u32> {
        let full = |cache: &Cache<Direct>| cache.len() >= cache.capacity();
        if !self.enabled || self.cache.as_ref().is_some_and(full) {
            return None;
        }
        loop {
            let number = self.loading.next()?;
            if !self.has(number) {
                return Some(number);
            }
        }
    }

    /// A group's entries have come.
    pub fn on_group(&mut self, number: u32, entries: Box<[u64]>, version: u32) {
        if !self.enabled {
            return;
        }
        if let Some(cache) = &mut self.cache
            && !cache.contains(number)
        {
            match cache.insert(number, false) {
                Inserted::Evicted(gone) => {
                    self.evictions += 1;
                    Self::gave_way(&mut self.groups, gone);
                }
                Inserted::Free => {}
                Inserted::Full => return,
            }
        }
        let group = &mut self.groups[number as usize];
        group.entries = Entries::Held(entries);
        group.version = version;
        group.broken = false;
    }

    /// The driver has memory for so many groups from now on: some was given back to the kernel, in the order in which
    /// groups give way, or it was given more.
    pub fn resize(&mut self, host_groups: u32) {
        let count = self.groups.len() as u32;
        if let Some(cache) = &mut self.cache {
            while cache.len() > host_groups
                && let Some(gone) = cache.evict()
            {
                Self::gave_way(&mut self.groups, gone);
                self.evictions += 1;
            }
        }
        let held: Vec<u32> = match &self.cache {
            Some(cache) => cache.keys().collect(),
            None => (0..count).filter(|&number| self.holds(number)).collect(),
        };
        let index = Direct::new(count);
        self.cache = (host_groups < count)
            .then(|| Cache::new(index, host_groups, self.replacement, self.seed));
        match &mut self.cache {
            Some(cache) => {
                for number in held {
                    if cache.len() < host_groups {
                        cache.insert(number, false);
                    } else {
                        Self::gave_way(&mut self.groups, number);
                        self.evictions += 1;
                    }
                }
            }
            // What is missing nobody would ask for.
            None => (0..count)
                .filter(|&number| !self.has(number))
                .collect::<Vec<u32>>()
                .into_iter()
                .for_each(|number| self.want(number)),
        }
    }

    /// A group's entries are given up.
    fn gave_way(groups: &mut [Group], gone: u32) {
        groups[gone as usize] = Group {
            wanted: groups[gone as usize].wanted,
            ..Group::default()
        };
    }

    /// Whether a group's entries take memory.
    fn holds(&self, number: u32) -> bool {
        !matches!(self.groups[number as usize].entries, Entries::Absent)
    }

    /// The driver starts or stops using it. What it held is gone either way.
    pub fn set_enabled(&mut self, enabled: bool) {
        self.enabled = enabled;
        self.loading = 0..self.boot_groups;
        for number in 0..self.groups.len() as u32 {
            let group = &mut self.groups[number as usize];
            group.entries = Entries::Absent;
            group.broken = false;
        }
        if let Some(cache) = &mut self.cache {
            let held: Vec<u32> = cache.keys().collect();
            held.into_iter().for_each(|group| cache.remove(group));
        } else if enabled && self.boot_groups == 0 {
            (0..self.groups.len() as u32).for_each(|group| self.want(group));
        }
    }

    /// Whether the driver uses it.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }
}
