//! The host's drivers for Host Performance Booster at work: entries go along with reads and come back
//! with responses, groups are fetched when nothing else is asked.

pub mod jedec;
pub mod paper;

use super::Host;
use crate::controller::HostMemory;
use crate::controller::hpb::{HostEntry, Message};
use crate::device::{Alarm, Contents, Device};
use crate::engine::INDEX_MAX;
use crate::ids::{CommandId, Lpn};
use crate::observe::{HpbCounters, Tracer};
use crate::request::{Op, Status};
use crate::spec::{DriveSpec, HpbProtocol, HpbSpec, SLOT_BYTES};
use jedec::JedecDriver;
use paper::PaperDriver;
use serde::{Deserialize, Serialize};

/// Whose protocol is spoken.
#[derive(Clone, Serialize, Deserialize, Debug)]
enum Driver {
    Paper(PaperDriver),
    Jedec(JedecDriver),
}

/// The driver, and what is under way for it.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct HpbHost {
    driver: Driver,
    spec: HpbSpec,
    /// Number of the current idle period.
    idle_period: u32,
    /// When its memory changes next: it gives some back to the kernel, or gets it back.
    change_ps: Option<u64>,
    /// Group of the READ BUFFER under way that the load at boot waits for.
    loading: Option<u32>,
    counters: HpbCounters,
    /// Entries of a read of several pages, reused.
    ahead: Vec<HostEntry>,
}

impl HpbHost {
    pub(super) fn new(drive: &DriveSpec, user_slots: u32, seed: u64) -> Option<Box<Self>> {
        let spec = drive.hpb.as_ref()?;
        let driver = match spec.protocol {
            HpbProtocol::Paper => Driver::Paper(PaperDriver::new(spec, user_slots, seed)),
            HpbProtocol::Jedec => Driver::Jedec(JedecDriver::new(spec, user_slots)),
        };
        Some(Box::new(HpbHost {
            driver,
            spec: spec.clone(),
            idle_period: 0,
            change_ps: spec.give_back.as_ref().map(|given| given.at_ps),
            loading: None,
            counters: HpbCounters::default(),
            ahead: Vec::new(),
        }))
    }

    /// Adds what the host's side counts.
    pub(super) fn count(&self, counters: &mut HpbCounters) {
        counters.hits = self.counters.hits;
        counters.misses = self.counters.misses;
        counters.groups_fetched = self.counters.groups_fetched;
        counters.write_buffers = self.counters.write_buffers;
        match &self.driver {
            Driver::Paper(driver) => counters.evictions = driver.evictions,
            Driver::Jedec(driver) => {
                counters.activations = driver.activations;
                counters.inactivations = driver.inactivations;
                counters.unmaps = driver.unmap_requests;
            }
        }
    }

    fn is_enabled(&self) -> bool {
        match &self.driver {
            Driver::Paper(driver) => driver.is_enabled(),
            Driver::Jedec(driver) => driver.is_enabled(),
        }
    }

    fn set_enabled(&mut self, enabled: bool) {
        match &mut self.driver {
            Driver::Paper(driver) => driver.set_enabled(enabled),
            Driver::Jedec(driver) => driver.set_enabled(enabled),
        }
    }

    /// The entry to send with a request; with JEDEC's 2.0 those to send ahead of a read of several
    /// pages go to `ahead`.
    fn entry_for<C: Contents, M: HostMemory, T: Tracer>(
        &mut self,
        drive: &Device<C, M, T>,
        op: Op,
        (first, count): (Lpn, u32),
    ) -> Option<HostEntry> {
        match &mut self.driver {
            Driver::Paper(driver) if op == Op::Read => {
                let boot = |lpn| drive.hpb_entry_at_boot(lpn);
                driver.entry(first, count, drive.hpb_shows_place(), boot)
            }
            Driver::Paper(_) => None,
            Driver::Jedec(driver) => {
                let entry = driver.on_request(op, first, count, drive.now_ps());
                if op == Op::Read && count > 1 {
                    driver.entries(first, count, &mut self.ahead);
                }
                entry
            }
        }
    }
}

impl<C: Contents, M: HostMemory, T: Tracer> Host<C, M, T> {
    /// The driver adds what it has to a command. Returns true when that takes another command ahead.
    pub(super) fn attach_entries(&mut self, command: CommandId) -> bool {
        let change_ps = self.hpb.as_ref().and_then(|hpb| hpb.change_ps);
        if change_ps.is_some_and(|at_ps| at_ps <= self.drive.now_ps()) {
            self.change_hpb_memory();
        }
        let Some(hpb) = &mut self.hpb else {
            return false;
        };
        let (request, status) = self.drive.outcome(command);
        let is_read = request.op == Op::Read;
        let mut entry = None;
        hpb.ahead.clear();
        if status == Status::Success {
            let first = request.offset_bytes / SLOT_BYTES;
            let end = (request.offset_bytes + request.length_bytes).div_ceil(SLOT_BYTES);
            let pages = (Lpn(first as u32), (end - first) as u32);
            entry = hpb.entry_for(&self.drive, request.op, pages);
            if is_read {
                match entry.is_some() || !hpb.ahead.is_empty() {
                    true => hpb.counters.hits += 1,
                    false => hpb.counters.misses += 1,
                }
            }
        }
        if let Some(entry) = entry {
            self.drive.attach_entry(command, entry);
        }
        let ahead = !hpb.ahead.is_empty();
        if ahead && let Some(first) = self.drive.enqueue_write_buffer(command, &hpb.ahead) {
            hpb.counters.write_buffers += 1;
            let doorbell_ps = self.drive.now_ps() + self.submit_ps;
            self.drive.ring(first, doorbell_ps);
        }
        self.run_map_requests();
        ahead
    }

    /// The kernel wants memory back, or has some to give, since the last request. Looked at here, not by an event of its own:
    /// until the next request nobody can tell.
    #[cold]
    fn change_hpb_memory(&mut self) {
        let now_ps = self.drive.now_ps();
        while let Some(hpb) = &mut self.hpb
            && let Some(given) = &hpb.spec.give_back
            && let Some(change_ps) = hpb.change_ps
            && change_ps <= now_ps
        {
            let is_given = change_ps == given.at_ps;
            let groups = match is_given {
                true => given.host_groups,
                false => hpb.spec.host_groups,
            };
            hpb.change_ps = given.until_ps.filter(|_| is_given);
            self.set_hpb_groups(groups);
        }
    }

    /// JEDEC's driver fetches what it wants at once.
    fn run_map_requests(&mut self) {
        loop {
            let now_ps = self.drive.now_ps();
            let Some(hpb) = &mut self.hpb else { return };
            let Driver::Jedec(driver) = &mut hpb.driver else {
                return;
            };
            let Some(sub) = driver.next_fetch(now_ps) else {
                return;
            };
            self.fetch_group(sub);
        }
    }

    /// The host has a response. Returns true when it was that of a command of the driver.
    pub(super) fn learn_entries(&mut self, command: CommandId) -> bool {
        let Some(hpb) = &mut self.hpb else {
            return false;
        };
        let answer = self.drive.hpb_answer(command);
        let mut loaded = false;
        if let Some((group, entries, version)) = answer.group {
            loaded = hpb.loading == Some(group);
            match &mut hpb.driver {
                Driver::Paper(driver) => driver.on_group(group, entries, version),
                Driver::Jedec(driver) => driver.on_group(group, entries, version),
            }
        }
        match (&mut hpb.driver, answer.message) {
            (
                Driver::Jedec(driver),
                Message::Recommendation {
                    activate,
                    inactivate,
                },
            ) => driver.on_recommendation(activate, inactivate),
            (Driver::Jedec(_), _) | (Driver::Paper(_), Message::None) => {}
            (Driver::Paper(driver), message) => {
                driver.on_message(message, |lpn| self.drive.hpb_entry_at_boot(lpn));
            }
        }
        self.run_map_requests();
        if loaded {
            self.load_next();
        }
        answer.hpb_command
    }

    /// Nothing may be asked for a while, apart from `ending` commands that are just ending: then the
    /// host fetches what it lacks. After one group it goes on to the next at once.
    pub(super) fn note_idle(&mut self, fetched: bool, ending: usize) {
        let Some(hpb) = &mut self.hpb else { return };
        hpb.idle_period = (hpb.idle_period + 1) & INDEX_MAX;
        let Driver::Paper(driver) = &hpb.driver else {
            return;
        };
        if !driver.wants() || self.drive.in_flight() > ending {
            return;
        }
        if fetched {
            self.fetch_wanted();
            return;
        }
        let at_ps = self.drive.now_ps() + hpb.spec.idle_ps;
        self.drive.wake_at(at_ps, Alarm::Idle, hpb.idle_period);
    }

    #[cold]
    pub(super) fn on_idle(&mut self, period: u32) {
        let current = self.hpb.as_ref().map(|hpb| hpb.idle_period);
        if current == Some(period) && self.drive.in_flight() == 0 {
            self.fetch_wanted();
        }
    }

    /// The host begins to load at boot what it keeps, unless it has it already.
    pub(super) fn load_at_boot(&mut self) {
        let Some(hpb) = &self.hpb else { return };
        if !hpb.spec.loads_at_boot {
            return;
        }
        match hpb.driver {
            Driver::Jedec(_) => self.run_map_requests(),
            Driver::Paper(_) if hpb.loading.is_none() => self.load_next(),
            Driver::Paper(_) => {}
        }
    }

    /// The load at boot goes on, whatever else is asked.
    fn load_next(&mut self) {
        let Some(hpb) = &mut self.hpb else { return };
        if let Driver::Paper(driver) = &mut hpb.driver {
            hpb.loading = driver.next_load();
            if let Some(group) = hpb.loading {
                self.fetch_group(group);
            }
        }
    }

    fn fetch_wanted(&mut self) {
        let Some(hpb) = &mut self.hpb else { return };
        if let Driver::Paper(driver) = &mut hpb.driver
            && let Some(group) = driver.next_wanted()
        {
            self.fetch_group(group);
        }
    }

    /// The host sends a READ BUFFER.
    fn fetch_group(&mut self, group: u32) {
        let Some(hpb) = &mut self.hpb else { return };
        if let Some(command) = self.drive.enqueue_read_buffer(group) {
            hpb.counters.groups_fetched += 1;
            let doorbell_ps = self.drive.now_ps() + self.submit_ps;
            self.drive.ring(command, doorbell_ps);
        }
    }

    /// The drive has started anew: what the driver holds is void.
    pub(super) fn restart_driver(&mut self) {
        let Some(hpb) = &mut self.hpb else { return };
        hpb.loading = None;
        match &mut hpb.driver {
            Driver::Jedec(driver) => driver.restart(),
            Driver::Paper(driver) => driver.set_enabled(driver.is_enabled()),
        }
        self.load_at_boot();
        self.note_idle(false, 0);
    }

    /// The host keeps so many groups of entries at most from now on: it gives memory back to its kernel at run time, or takes
    /// more. What gives way is not told to the drive, as with any other group. Returns false where that
    /// cannot be: without the feature, and with JEDEC's protocol, where the drive says how much there is.
    pub fn set_hpb_groups(&mut self, groups: u32) -> bool {
        let Some(hpb) = &mut self.hpb else {
            return false;
        };
        let Driver::Paper(driver) = &mut hpb.driver else {
            return false;
        };
        driver.resize(groups.max(1));
        self.note_idle(false, 0);
        true
    }

    /// The driver starts or stops keeping map entries. It begins with none.
    pub fn set_hpb_enabled(&mut self, enabled: bool) {
        let Some(hpb) = &mut self.hpb else { return };
        if enabled != hpb.is_enabled() {
            hpb.set_enabled(enabled);
            self.drive.set_hpb_enabled(enabled);
            self.load_at_boot();
            self.note_idle(false, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Integrity, Replacement};

    /// What drivers are tested with, apart from what `change` says.
    pub(super) fn spec(change: impl FnOnce(&mut HpbSpec)) -> HpbSpec {
        let mut spec = HpbSpec {
            protocol: HpbProtocol::Paper,
            group_pages: 16,
            region_pages: 16,
            host_groups: 1,
            give_back: None,
            host_control: false,
            pinned_regions: 0,
            recommend_misses: 1,
            blocks_max: 1,
            write_buffer_ps: 0,
            replacement: Replacement::Lru,
            loads_at_boot: false,
            idle_ps: 0,
            check_ps: 0,
            read_buffer_ps: 0,
            stale_pages: 64,
            integrity: Integrity::None,
            epoch_bits: 32,
        };
        change(&mut spec);
        spec
    }
}
