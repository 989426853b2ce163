//! The host's driver for Host Performance Booster: map entries in memory of its own (tier `host`),
//! sent along with reads (Jeong et al., HotStorage 2017, section 3).

use crate::controller::cache::{Cache, Direct, Inserted};
use crate::controller::hpb::{HostEntry, Message, NO_ENTRY};
use crate::ids::{Lpn, Ppn};
use crate::sparse::Sparse;
use crate::spec::{HpbSpec, Replacement};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

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
    /// Stands by itself among those to be fetched.
    wanted: bool,
}

/// What is to be fetched next.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
enum Wanted {
    Group(u32),
    /// The next of the range of groups that ends before this one.
    Range(u32),
}

/// The driver of the paper.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct PaperDriver {
    group_pages: u32,
    user_slots: u32,
    count: u32,
    /// Those that are not as they were at boot.
    groups: Sparse<Group>,
    /// Of all others, those below have what was loaded at boot.
    booted: u32,
    /// Which groups are held, where not all fit.
    cache: Option<Cache<Direct>>,
    /// Groups to be fetched once the drive is idle.
    wanted: VecDeque<Wanted>,
    /// Ranges of them, starts by end; a group stands in none or one, or by itself.
    ranges: BTreeMap<u32, u32>,
    /// Groups still to be loaded at boot.
    loading: Range<u32>,
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
        let mut cache = (spec.host_groups < count)
            .then(|| Cache::new(Direct::new(count), spec.host_groups, spec.replacement, seed));
        let fitting = spec.host_groups.min(count);
        let (loaded, boot_groups) = match spec.loads_at_boot {
            true => (0, fitting),
            false => (fitting, 0),
        };
        if let Some(cache) = &mut cache {
            (0..loaded).for_each(|number| _ = cache.insert(number, false));
        }
        PaperDriver {
            group_pages: spec.group_pages,
            user_slots,
            count,
            groups: Sparse::default(),
            booted: loaded,
            cache,
            wanted: VecDeque::new(),
            ranges: BTreeMap::new(),
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

    /// A group as it was at boot.
    fn untouched(booted: u32, number: u32) -> Group {
        Group {
            entries: match number < booted {
                true => Entries::Boot,
                false => Entries::Absent,
            },
            ..Group::default()
        }
    }

    fn group_mut(&mut self, number: u32) -> &mut Group {
        let booted = self.booted;
        self.groups
            .touch(number, || Self::untouched(booted, number))
    }

    fn version(&self, number: u32) -> u32 {
        self.groups.get(number).map_or(0, |group| group.version)
    }

    /// Pages of a group.
    #[must_use]
    pub fn pages(&self, group: u32) -> Range<u32> {
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
        let untouched = Self::untouched(self.booted, number);
        let group = self.groups.get(number).unwrap_or(&untouched);
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
                if version != Some(self.version(group)) {
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
        if !self.has(number) {
            return;
        }
        let pages = self.pages(number);
        let group = self.group_mut(number);
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
        if self.holds(number) {
            self.group_mut(number).broken = true;
            self.want(number);
        }
    }

    fn want(&mut self, number: u32) {
        // Look-ups come here.
        let range = self.ranges.range(number + 1..).next();
        if range.is_some_and(|(_, &start)| start <= number) {
            return;
        }
        let group = self.group_mut(number);
        if !group.wanted {
            group.wanted = true;
            self.wanted.push_back(Wanted::Group(number));
        }
    }

    /// What is of no use is wanted, all of it, the lowest first. Ranges take no memory for each group.
    fn want_all(&mut self) {
        let mut first_untouched = 0;
        for number in self.groups.numbers() {
            self.want_range(first_untouched.max(self.booted)..number);
            first_untouched = number + 1;
            if !self.has(number) {
                self.want(number);
            }
        }
        self.want_range(first_untouched.max(self.booted)..self.count);
    }

    /// A range of groups that nobody has touched is wanted, apart from ranges that are already.
    fn want_range(&mut self, mut range: Range<u32>) {
        while range.start < range.end {
            let taken = self.ranges.range(range.start + 1..).next();
            let taken = taken.map_or(range.end..range.end, |(&end, &start)| start..end);
            let free = range.start..taken.start.min(range.end);
            if !free.is_empty() {
                self.wanted.push_back(Wanted::Range(free.end));
                self.ranges.insert(free.end, free.start);
            }
            range.start = taken.end;
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
            let number = match *self.wanted.front()? {
                Wanted::Group(number) => {
                    self.wanted.pop_front();
                    self.group_mut(number).wanted = false;
                    number
                }
                Wanted::Range(end) => {
                    let start = self.ranges.get_mut(&end).expect("what is wanted");
                    let number = *start;
                    *start += 1;
                    if *start == end {
                        self.ranges.remove(&end);
                        self.wanted.pop_front();
                    }
                    number
                }
            };
            // Loaded at boot meanwhile.
            if !self.has(number) {
                return Some(number);
            }
        }
    }

    /// Whether a group's entries are there and of use.
    fn has(&self, number: u32) -> bool {
        self.holds(number) && self.groups.get(number).is_none_or(|group| !group.broken)
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
                Inserted::Evicted(gone) => self.gave_way(gone),
                Inserted::Free => {}
                Inserted::Full => return,
            }
        }
        let group = self.group_mut(number);
        group.entries = Entries::Held(entries);
        group.version = version;
        group.broken = false;
    }

    /// The driver has memory for so many groups from now on: some was given back to the kernel, in the order in which
    /// groups give way, or it was given more.
    pub fn resize(&mut self, host_groups: u32) {
        let count = self.count;
        while let Some(cache) = &mut self.cache
            && cache.len() > host_groups
            && let Some(gone) = cache.evict()
        {
            self.gave_way(gone);
        }
        let index = Direct::new(count);
        let mut cache = (host_groups < count)
            .then(|| Cache::new(index, host_groups, self.replacement, self.seed));
        match (&mut cache, &self.cache) {
            // What is missing nobody would ask for.
            (None, _) => self.want_all(),
            (Some(cache), Some(before)) => {
                before
                    .keys()
                    .for_each(|number| _ = cache.insert(number, false));
            }
            (Some(cache), None) => {
                let mut held = (0..count).filter(|&number| self.holds(number));
                let fitting = held.by_ref().take(host_groups as usize);
                fitting.for_each(|number| _ = cache.insert(number, false));
                if let Some(first) = held.next() {
                    self.give_way_from(first);
                }
            }
        }
        self.cache = cache;
    }

    /// The entries of a group, and of all after it, are given up.
    fn give_way_from(&mut self, first: u32) {
        let touched = self.groups.numbers();
        let touched = &touched[touched.partition_point(|&number| number < first)..];
        let of_boot = touched.partition_point(|&number| number < self.booted);
        let untouched = self.booted.saturating_sub(first) - of_boot as u32;
        self.evictions += u64::from(untouched);
        self.booted = self.booted.min(first);
        for &number in touched {
            if self.holds(number) {
                self.gave_way(number);
            }
        }
    }

    /// A group's entries are given up.
    fn gave_way(&mut self, gone: u32) {
        let group = self.group_mut(gone);
        *group = Group {
            wanted: group.wanted,
            ..Group::default()
        };
        self.evictions += 1;
    }

    /// Whether a group's entries take memory.
    fn holds(&self, number: u32) -> bool {
        match self.groups.get(number) {
            Some(group) => !matches!(group.entries, Entries::Absent),
            None => number < self.booted,
        }
    }

    /// The driver starts or stops using it. What it held is gone either way.
    pub fn set_enabled(&mut self, enabled: bool) {
        self.enabled = enabled;
        self.loading = 0..self.boot_groups;
        self.booted = 0;
        for (_, group) in self.groups.iter_mut() {
            group.entries = Entries::Absent;
            group.broken = false;
        }
        if let Some(cache) = &mut self.cache {
            let held: Vec<u32> = cache.keys().collect();
            held.into_iter().for_each(|group| cache.remove(group));
        } else if enabled && self.boot_groups == 0 {
            self.want_all();
        }
    }

    /// Whether the driver uses it.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::hpb::tests::spec;
    use proptest::prelude::*;

    const GROUPS: u32 = 24;

    fn driver() -> PaperDriver {
        let spec = spec(|spec| spec.host_groups = GROUPS);
        PaperDriver::new(&spec, GROUPS * 16, 1)
    }

    /// One place for each group, and one queue.
    #[derive(Default)]
    struct Naive {
        held: Vec<bool>,
        broken: Vec<bool>,
        wanted: VecDeque<u32>,
    }

    impl Naive {
        fn has(&self, number: u32) -> bool {
            self.held[number as usize] && !self.broken[number as usize]
        }

        fn want(&mut self, number: u32) {
            if !self.wanted.contains(&number) {
                self.wanted.push_back(number);
            }
        }

        fn want_all(&mut self) {
            let lacking: Vec<u32> = (0..GROUPS).filter(|&number| !self.has(number)).collect();
            lacking.into_iter().for_each(|number| self.want(number));
        }

        fn next_wanted(&mut self) -> Option<u32> {
            loop {
                let number = self.wanted.pop_front()?;
                if !self.has(number) {
                    return Some(number);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn ranges_and_formulas_do_what_a_place_for_each_group_does(
            steps in prop::collection::vec((0u32..12, 0..GROUPS), 0..120),
            left in 1..GROUPS,
        ) {
            let mut driver = driver();
            let mut naive = Naive {
                held: vec![true; GROUPS as usize],
                broken: vec![false; GROUPS as usize],
                wanted: VecDeque::new(),
            };
            for (step, number) in steps {
                match step {
                    0 => {
                        driver.set_enabled(false);
                        driver.set_enabled(true);
                        naive.held.fill(false);
                        naive.broken.fill(false);
                        naive.want_all();
                    }
                    1 => {
                        driver.resize(GROUPS);
                        naive.want_all();
                    }
                    2..6 => {
                        let message = Message::Dirty { group: number, version: None };
                        driver.on_message(message, |_| 0);
                        if naive.held[number as usize] {
                            naive.broken[number as usize] = true;
                            naive.want(number);
                        }
                    }
                    _ => {
                        let next = driver.next_wanted();
                        prop_assert_eq!(next, naive.next_wanted());
                        // Some responses are lost.
                        if let Some(next) = next.filter(|_| step > 6) {
                            driver.on_group(next, vec![0; 16].into(), 1);
                            naive.held[next as usize] = true;
                            naive.broken[next as usize] = false;
                        }
                    }
                }
            }
            for number in 0..GROUPS {
                prop_assert_eq!(driver.has(number), naive.has(number));
            }
            driver.resize(left);
            let mut held = 0;
            for number in 0..GROUPS {
                held += u32::from(naive.held[number as usize]);
                let stays = naive.held[number as usize] && held <= left;
                prop_assert_eq!(driver.holds(number), stays);
            }
            prop_assert_eq!(driver.evictions, u64::from(held.saturating_sub(left)));
        }
    }
}
