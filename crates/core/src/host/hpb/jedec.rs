//! The host's driver for Host Performance Booster as Linux 5.15 to 6.5 had it (JESD220-3): regions of
//! sub-regions, fetched when the drive recommends it (device control) or when they are read often
//! (host control), and given up when there are too many or nobody reads them.
//!
//! Reads of one block bring an entry, as in version 1.0. With 2.0 larger ones have an entry for each
//! block sent ahead (HPB WRITE BUFFER with up to 255), as Linux did for a short time only. Not modelled
//! is the time of the command that tells the drive of a region given up.

use crate::controller::hpb::{HostEntry, NO_ENTRY};
use crate::ids::Lpn;
use crate::request::Op;
use crate::sparse::Sparse;
use crate::spec::HpbSpec;
use crate::spec::ufs::TRANSFER_REQUEST_SLOTS;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Reads of a sub-region after which the host wants it (`activation_thld`).
const ACTIVATION_READS: u32 = 8;
/// Reads a region needs to enter when another must go for it (`eviction_thld_enter`).
const ENTER_READS: u32 = ACTIVATION_READS << 5;
/// Reads a region may have at most to go for another (`eviction_thld_exit`).
const EXIT_READS: u32 = ACTIVATION_READS << 4;
/// Counters are halved this often when they are normalised (`normalization_factor`).
const NORMALIZATION_SHIFT: u32 = 1;
/// Without a read for so long a region's time has expired once (`read_timeout_ms`).
const READ_TIMEOUT_PS: u64 = 1_000 * 1_000_000_000;
/// So often may that happen before it is given up (`read_timeout_expiries`).
const READ_TIMEOUT_EXPIRIES: u32 = 100;
/// How often timeouts are looked at (`timeout_polling_interval_ms`).
const POLL_PS: u64 = 500 * 1_000_000_000;
/// Map requests under way at once in host control mode (`inflight_map_req`).
const MAP_REQUESTS_HOST: u32 = 1;
/// The same in device control mode, whose driver sets no bound: the queue has 32 tags (`TRANSFER_REQUEST_SLOTS`), of which one is
/// left to whoever else asks.
const MAP_REQUESTS_DEVICE: u32 = TRANSFER_REQUEST_SLOTS - 1;

#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default, PartialEq, Eq)]
enum RegionState {
    #[default]
    Inactive,
    Active,
    Pinned,
}

#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default)]
struct Region {
    state: RegionState,
    reads: u32,
    /// Without a read until then, its time has expired.
    deadline_ps: u64,
    expiries: u32,
}

#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default, PartialEq, Eq)]
enum SubState {
    #[default]
    Unused,
    Invalid,
    Issued,
    Valid,
}

#[derive(Clone, Serialize, Deserialize, Debug, Default)]
struct Sub {
    state: SubState,
    reads: u32,
    version: u32,
    entries: Box<[u64]>,
    /// Bit per page: written since.
    dirty: Box<[u64]>,
    /// Stands among those to be fetched.
    listed: bool,
}

/// The driver of JESD220-3.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct JedecDriver {
    host_control: bool,
    /// Pages of a read that may have entries; 1 in version 1.0.
    blocks_max: u32,
    sub_pages: u32,
    subs_per_region: u32,
    active_max: usize,
    region_count: u32,
    /// Those that are not as at the start.
    regions: Sparse<Region>,
    /// Bit per region: written since its sub-regions last came.
    #[serde(with = "crate::arrays::sparse")]
    dirty: Vec<u32>,
    sub_count: u32,
    /// Those that are not as at the start.
    subs: Sparse<Sub>,
    /// Active regions that are not pinned, the one activated longest ago first.
    lru: VecDeque<u32>,
    /// Sub-regions to be fetched.
    listed: VecDeque<u32>,
    in_flight: u32,
    next_poll_ps: u64,
    enabled: bool,
    pinned: u32,
    /// Sub-regions that should become active: by recommendation or by reads.
    pub activations: u64,
    /// Regions that should become inactive.
    pub inactivations: u64,
    /// HPB WRITE BUFFER commands that tell the drive of a region given up.
    pub unmap_requests: u64,
}

impl JedecDriver {
    /// A driver that has fetched nothing yet; the pinned regions come first.
    #[must_use]
    pub fn new(spec: &HpbSpec, user_slots: u32) -> Self {
        let subs_per_region = spec.region_pages / spec.group_pages;
        let region_count = user_slots.div_ceil(spec.region_pages);
        let active = (spec.host_groups / subs_per_region).max(1);
        let mut driver = JedecDriver {
            host_control: spec.host_control,
            blocks_max: spec.blocks_max,
            sub_pages: spec.group_pages,
            subs_per_region,
            active_max: active.saturating_sub(spec.pinned_regions) as usize,
            region_count,
            regions: Sparse::default(),
            dirty: vec![0; region_count.div_ceil(32) as usize],
            sub_count: user_slots.div_ceil(spec.group_pages),
            subs: Sparse::default(),
            lru: VecDeque::new(),
            listed: VecDeque::new(),
            in_flight: 0,
            next_poll_ps: 0,
            enabled: true,
            pinned: spec.pinned_regions.min(active),
            activations: 0,
            inactivations: 0,
            unmap_requests: 0,
        };
        driver.pin();
        driver
    }

    fn pin(&mut self) {
        for region in 0..self.pinned.min(self.region_count) {
            self.region_mut(region).state = RegionState::Pinned;
            for sub in self.subs_of(region) {
                self.list(sub);
            }
        }
    }

    fn region_state(&self, number: u32) -> Region {
        self.regions.get(number).copied().unwrap_or_default()
    }

    fn region_mut(&mut self, number: u32) -> &mut Region {
        self.regions.touch(number, Region::default)
    }

    fn sub_state(&self, number: u32) -> SubState {
        self.subs
            .get(number)
            .map_or(SubState::default(), |sub| sub.state)
    }

    fn sub_mut(&mut self, number: u32) -> &mut Sub {
        self.subs.touch(number, Sub::default)
    }

    fn is_dirty(&self, region: u32) -> bool {
        self.dirty[region as usize / 32] >> (region % 32) & 1 != 0
    }

    fn region(&self, sub: u32) -> u32 {
        sub / self.subs_per_region
    }

    fn subs_of(&self, region: u32) -> std::ops::Range<u32> {
        let first = region * self.subs_per_region;
        first..(first + self.subs_per_region).min(self.sub_count)
    }

    fn list(&mut self, sub: u32) {
        let found = self.sub_mut(sub);
        if !found.listed {
            found.listed = true;
            self.listed.push_back(sub);
        }
    }

    /// A request goes to the drive. Returns the entry to send with it.
    pub fn on_request(&mut self, op: Op, lpn: Lpn, count: u32, now_ps: u64) -> Option<HostEntry> {
        if !self.enabled || op == Op::Flush {
            return None;
        }
        self.poll(now_ps);
        if op != Op::Read {
            self.set_dirty(lpn.0, lpn.0 + count);
            return None;
        }
        if count > self.blocks_max {
            return None;
        }
        if self.host_control {
            for sub in lpn.0 / self.sub_pages..=(lpn.0 + count - 1) / self.sub_pages {
                self.count_read(sub, now_ps);
            }
        }
        if count > 1 {
            return None;
        }
        self.entry(lpn)
    }

    /// The entries to send ahead of a read of several pages: all of them or none.
    pub fn entries(&self, lpn: Lpn, count: u32, into: &mut Vec<HostEntry>) {
        into.clear();
        if !self.enabled || count > self.blocks_max {
            return;
        }
        for page in lpn.0..lpn.0 + count {
            let Some(entry) = self.entry(Lpn(page)) else {
                into.clear();
                return;
            };
            into.push(entry);
        }
    }

    /// What the driver holds of a page, if it takes it for good.
    fn entry(&self, lpn: Lpn) -> Option<HostEntry> {
        let found = self.subs.get(lpn.0 / self.sub_pages)?;
        let at = (lpn.0 % self.sub_pages) as usize;
        let is_dirty = || found.dirty[at / 64] >> (at % 64) & 1 != 0;
        if found.state != SubState::Valid || is_dirty() || found.entries[at] == NO_ENTRY {
            return None;
        }
        Some(HostEntry {
            bytes: found.entries[at],
            version: found.version,
        })
    }

    fn set_dirty(&mut self, from: u32, to: u32) {
        for sub in from / self.sub_pages..=(to - 1) / self.sub_pages {
            let region = self.region(sub);
            if self.host_control {
                self.dirty[region as usize / 32] |= 1 << (region % 32);
            }
            let Some(found) = self.subs.get_mut(sub) else {
                continue;
            };
            let first = sub * self.sub_pages;
            if found.state == SubState::Valid {
                for page in from.max(first)..to.min(first + self.sub_pages) {
                    let at = (page - first) as usize;
                    found.dirty[at / 64] |= 1 << (at % 64);
                }
            }
            if self.host_control && found.reads > 0 {
                let reads = std::mem::take(&mut found.reads);
                let region = self.region_mut(region);
                region.reads = region.reads.saturating_sub(reads);
            }
        }
    }

    fn count_read(&mut self, sub: u32, now_ps: u64) {
        let number = self.region(sub);
        let found = self.sub_mut(sub);
        found.reads += 1;
        let sub_reads = found.reads;
        let region = self.region_mut(number);
        region.reads += 1;
        let reads = region.reads;
        if region.state == RegionState::Active {
            region.deadline_ps = now_ps + READ_TIMEOUT_PS;
            region.expiries = READ_TIMEOUT_EXPIRIES;
        }
        if sub_reads == ACTIVATION_READS {
            self.activations += 1;
            self.list(sub);
        }
        if reads > self.sub_pages {
            self.normalize();
        }
    }

    /// Keeps counters small; active regions that nobody reads become inactive.
    fn normalize(&mut self) {
        for (_, region) in self.regions.iter_mut() {
            region.reads = 0;
        }
        for (number, sub) in self.subs.iter_mut() {
            sub.reads >>= NORMALIZATION_SHIFT;
            if sub.reads > 0 {
                let region = self
                    .regions
                    .touch(number / self.subs_per_region, Region::default);
                region.reads += sub.reads;
            }
        }
        let active = |region: &Region| region.state == RegionState::Active && region.reads == 0;
        let regions = self.regions.iter();
        let unread: Vec<u32> = regions
            .filter_map(|(number, region)| active(region).then_some(number))
            .collect();
        for number in unread {
            self.inactivate(number);
        }
    }

    /// Timeouts, as if they had been looked at in time: nothing depends on them between requests.
    fn poll(&mut self, now_ps: u64) {
        if !self.host_control || now_ps < self.next_poll_ps {
            return;
        }
        let polls = (now_ps - self.next_poll_ps) / POLL_PS + 1;
        self.next_poll_ps += polls * POLL_PS;
        let mut at = 0;
        while at < self.lru.len() {
            let number = self.lru[at];
            let is_dirty = self.is_dirty(number);
            let region = self.region_mut(number);
            if now_ps > region.deadline_ps {
                let late = (now_ps - region.deadline_ps) / READ_TIMEOUT_PS + 1;
                let late = u32::try_from(late.min(polls)).unwrap_or(u32::MAX);
                region.expiries = region.expiries.saturating_sub(late);
                region.deadline_ps = now_ps + READ_TIMEOUT_PS;
                if (is_dirty || region.expiries == 0) && self.inactivate(number) {
                    continue;
                }
            }
            at += 1;
        }
    }

    /// A region is given up, unless one of its sub-regions is on its way.
    fn inactivate(&mut self, number: u32) -> bool {
        self.inactivations += 1;
        self.evict(number)
    }

    fn evict(&mut self, number: u32) -> bool {
        let subs = self.subs_of(number);
        let issued = |sub: u32| self.sub_state(sub) == SubState::Issued;
        if self.region_state(number).state != RegionState::Active || subs.clone().any(issued) {
            return false;
        }
        for sub in subs {
            if let Some(sub) = self.subs.get_mut(sub) {
                sub.state = SubState::Unused;
                sub.entries = Box::default();
            }
        }
        self.unmap_requests += u64::from(self.host_control);
        self.region_mut(number).state = RegionState::Inactive;
        self.lru.retain(|&region| region != number);
        true
    }

    /// The drive recommends to fetch a sub-region, and to give up a region.
    pub fn on_recommendation(&mut self, activate: Option<u32>, inactivate: Option<u32>) {
        if !self.enabled {
            return;
        }
        if let Some(sub) = activate {
            let region = self.region(sub);
            let is_active = self.region_state(region).state == RegionState::Active;
            let ignored = !is_active || self.is_dirty(region);
            if !(self.host_control && ignored) {
                self.activations += 1;
                self.list(sub);
                let found = self.sub_mut(sub);
                if found.state == SubState::Valid {
                    found.state = SubState::Invalid;
                }
            }
        }
        // In host control mode the drive must not inactivate regions.
        if let (Some(region), false) = (inactivate, self.host_control) {
            self.inactivate(region);
        }
    }

    /// The next sub-region to be fetched now.
    pub fn next_fetch(&mut self, now_ps: u64) -> Option<u32> {
        let most = match self.host_control {
            true => MAP_REQUESTS_HOST,
            false => MAP_REQUESTS_DEVICE,
        };
        loop {
            if self.in_flight >= most {
                return None;
            }
            let sub = self.listed.pop_front()?;
            let found = self.sub_mut(sub);
            found.listed = false;
            if found.state == SubState::Issued {
                continue;
            }
            if self.add_region(self.region(sub), now_ps) {
                self.sub_mut(sub).state = SubState::Issued;
                self.in_flight += 1;
                return Some(sub);
            }
            // Later, when there may be room.
            self.list(sub);
            return None;
        }
    }

    fn add_region(&mut self, number: u32, now_ps: u64) -> bool {
        if self.region_state(number).state != RegionState::Inactive {
            if let Some(at) = self.lru.iter().position(|&region| region == number) {
                self.lru.remove(at);
                self.lru.push_back(number);
            }
            return true;
        }
        if self.lru.len() >= self.active_max {
            let reads = self.region_state(number).reads;
            if self.host_control && reads < ENTER_READS {
                return false;
            }
            let may_go = |region: &u32| {
                let cold = self.region_state(*region).reads <= EXIT_READS;
                let mut subs = self.subs_of(*region);
                (cold || !self.host_control)
                    && subs.all(|sub| self.sub_state(sub) != SubState::Issued)
            };
            let Some(victim) = self.lru.iter().copied().find(may_go) else {
                return false;
            };
            self.evict(victim);
        }
        if self.lru.len() >= self.active_max {
            return false;
        }
        let region = self.region_mut(number);
        region.state = RegionState::Active;
        region.deadline_ps = now_ps + READ_TIMEOUT_PS;
        region.expiries = READ_TIMEOUT_EXPIRIES;
        self.lru.push_back(number);
        true
    }

    /// A sub-region's entries have come.
    pub fn on_group(&mut self, sub: u32, entries: Box<[u64]>, version: u32) {
        self.in_flight -= 1;
        let (region, is_enabled) = (self.region(sub), self.enabled);
        let found = self.sub_mut(sub);
        if !is_enabled || found.state != SubState::Issued {
            found.state = SubState::Unused;
            return;
        }
        found.dirty = vec![0; entries.len().div_ceil(64)].into();
        found.entries = entries;
        found.version = version;
        found.state = SubState::Valid;
        self.dirty[region as usize / 32] &= !(1 << (region % 32));
    }

    /// The driver starts or stops using it. What it held is gone either way.
    pub fn set_enabled(&mut self, enabled: bool) {
        self.enabled = enabled;
        self.subs.clear();
        self.regions.clear();
        self.dirty = vec![0; self.dirty.len()];
        self.lru.clear();
        self.listed.clear();
        if enabled {
            self.pin();
        }
    }

    /// The drive has started anew: what it gave is void, and what was on its way will not come.
    pub fn restart(&mut self) {
        self.set_enabled(self.enabled);
        self.in_flight = 0;
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
    use crate::spec::HpbProtocol;

    const MS: u64 = 1_000_000_000;

    fn driver(host_control: bool, active: u32) -> JedecDriver {
        let spec = spec(|spec| {
            spec.protocol = HpbProtocol::Jedec;
            spec.group_pages = 128;
            spec.region_pages = 256;
            spec.host_groups = active * 2;
            spec.host_control = host_control;
        });
        JedecDriver::new(&spec, 4096)
    }

    fn fill(driver: &mut JedecDriver, sub: u32) {
        let entries = (0..128).map(|page| u64::from(sub) * 1000 + page).collect();
        driver.on_group(sub, entries, 7);
    }

    fn read(driver: &mut JedecDriver, page: u32, times: u32) -> Option<u64> {
        let mut last = None;
        for _ in 0..times {
            last = driver.on_request(Op::Read, Lpn(page), 1, 0);
        }
        last.map(|entry| entry.bytes)
    }

    #[test]
    fn host_control_fetches_a_sub_region_at_its_eighth_read() {
        let mut driver = driver(true, 2);
        read(&mut driver, 5, ACTIVATION_READS - 1);
        assert_eq!(driver.next_fetch(0), None);
        read(&mut driver, 5, 1);
        assert_eq!(driver.next_fetch(0), Some(0));
        fill(&mut driver, 0);
        assert_eq!(read(&mut driver, 5, 1), Some(5));
        assert_eq!(driver.on_request(Op::Read, Lpn(5), 2, 0), None, "one block");
        driver.on_request(Op::Write, Lpn(5), 1, 0);
        assert_eq!(read(&mut driver, 5, 1), None, "written since");
        assert_eq!(read(&mut driver, 6, 1), Some(6));
    }

    #[test]
    fn host_control_gives_a_region_up_only_for_a_much_hotter_one() {
        let mut driver = driver(true, 1);
        read(&mut driver, 0, ACTIVATION_READS);
        assert_eq!(driver.next_fetch(0), Some(0));
        fill(&mut driver, 0);
        // Below one normalisation (128 reads of a region), so that the counters stay as they are.
        read(&mut driver, 256, 100);
        assert_eq!(driver.next_fetch(0), None, "fewer than {ENTER_READS} reads");
        assert_eq!(driver.lru, [0]);
        driver.region_mut(1).reads = ENTER_READS;
        assert_eq!(driver.next_fetch(0), Some(2));
        assert_eq!((driver.lru.front(), driver.unmap_requests), (Some(&1), 1));
    }

    #[test]
    fn a_region_that_nobody_reads_is_given_up_when_its_time_has_expired_often_enough() {
        let mut driver = driver(true, 2);
        read(&mut driver, 0, ACTIVATION_READS);
        driver.next_fetch(0);
        fill(&mut driver, 0);
        for second in 0..u64::from(READ_TIMEOUT_EXPIRIES) {
            assert_eq!(driver.lru.len(), 1, "after {second} s");
            driver.on_request(Op::Read, Lpn(3000), 1, (second * 1_500 + 1_100) * MS);
        }
        assert!(driver.lru.is_empty());
    }

    #[test]
    fn a_restart_of_the_drive_voids_what_came_and_what_was_on_its_way() {
        let mut driver = driver(true, 2);
        read(&mut driver, 5, ACTIVATION_READS);
        assert_eq!(driver.next_fetch(0), Some(0));
        fill(&mut driver, 0);
        read(&mut driver, 300, ACTIVATION_READS);
        assert_eq!(driver.next_fetch(0), Some(2));
        driver.restart();
        assert_eq!(read(&mut driver, 5, ACTIVATION_READS), None);
        assert_eq!(
            driver.next_fetch(0),
            Some(0),
            "nothing is under way any more"
        );
    }

    #[test]
    fn device_control_obeys_recommendations() {
        let mut driver = driver(false, 1);
        read(&mut driver, 5, 100);
        assert_eq!(driver.next_fetch(0), None);
        driver.on_recommendation(Some(0), None);
        assert_eq!(driver.next_fetch(0), Some(0));
        fill(&mut driver, 0);
        assert_eq!(read(&mut driver, 5, 1), Some(5));
        driver.on_recommendation(Some(4), Some(0));
        assert_eq!(driver.next_fetch(0), Some(4));
        assert_eq!(read(&mut driver, 5, 1), None, "given up");
        assert_eq!(driver.unmap_requests, 0, "the drive knows");
    }
}
