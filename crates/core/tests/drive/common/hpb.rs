//! A host that keeps map entries as the paper's driver does, and is not to be trusted: it may send other
//! entries than the driver's, and messages to the driver get lost or come late. It stands at the drive's
//! link as [`Host`] does.

use super::contents::Tags;
use lodger_core::controller::hpb::{HostEntry, Message};
use lodger_core::device::{Alarm, Device, Modelled, News, Recovery};
use lodger_core::host::hpb::paper::PaperDriver;
use lodger_core::ids::{CommandId, Lpn};
use lodger_core::observe::Counters;
use lodger_core::rng::Rng;
use lodger_core::{Completion, DriveSpec, Host, Op, Precondition, Request};

/// A host with a drive, whichever it is.
pub trait User {
    fn drive(&self) -> &Device<Tags>;
    fn submit(&mut self, request: Request);
    fn next_time(&self) -> Option<u64>;
    fn advance(&mut self, to_ps: u64, completions: &mut Vec<Completion>);
    fn set_hpb_enabled(&mut self, enabled: bool);
    /// A host that has memory of its own for entries keeps so many groups at most.
    fn set_hpb_groups(&mut self, _groups: u32) {}
    fn counters(&self) -> Counters;
}

impl User for Host<Tags> {
    fn drive(&self) -> &Device<Tags> {
        &self.drive
    }
    fn submit(&mut self, request: Request) {
        Host::submit(self, request);
    }
    fn next_time(&self) -> Option<u64> {
        Host::next_time(self)
    }
    fn advance(&mut self, to_ps: u64, completions: &mut Vec<Completion>) {
        Host::advance(self, to_ps, completions);
    }
    fn set_hpb_enabled(&mut self, enabled: bool) {
        Host::set_hpb_enabled(self, enabled);
    }
    fn set_hpb_groups(&mut self, groups: u32) {
        Host::set_hpb_groups(self, groups);
    }
    fn counters(&self) -> Counters {
        Host::counters(self)
    }
}

/// What becomes of messages to the driver.
pub struct Faults {
    /// Of a thousand messages, how many are lost, and how many come late and out of order.
    pub lost_permille: u32,
    pub late_permille: u32,
    late: Vec<Message>,
    rng: Rng,
}

impl Faults {
    pub fn new(lost_permille: u32, late_permille: u32, seed: u64) -> Self {
        Faults {
            lost_permille,
            late_permille,
            late: Vec::new(),
            rng: Rng::new(seed),
        }
    }

    /// What of a message arrives now, and which late one does.
    fn pass(&mut self, message: Message) -> [Option<Message>; 2] {
        let mut now = None;
        match self.rng.below(1000) {
            fate if fate < self.lost_permille => {}
            fate if fate < self.lost_permille + self.late_permille => self.late.push(message),
            _ => now = Some(message),
        }
        let count = self.late.len() as u32;
        let overdue = (count > 0 && self.rng.below(4) == 0)
            .then(|| self.late.swap_remove(self.rng.below(count) as usize));
        [now, overdue]
    }
}

/// The host.
pub struct Untrusted {
    pub drive: Device<Tags>,
    driver: PaperDriver,
    faults: Faults,
    submit_ps: u64,
    complete_ps: u64,
    idle_ps: u64,
    loads_at_boot: bool,
    idle_period: u32,
    /// Group that the load at boot waits for.
    loading: Option<u32>,
    groups_fetched: u64,
    submitted_ps: Vec<u64>,
    completions: Vec<Completion>,
}

impl Untrusted {
    pub fn new(spec: &DriveSpec, precondition: Precondition, seed: u64, faults: Faults) -> Self {
        let hpb = spec.hpb.as_ref().expect("a drive with HPB");
        let drive = Device::with_memory(spec, precondition, 0, seed, Tags::default(), Modelled);
        let mut host = Untrusted {
            driver: PaperDriver::new(hpb, drive.ftl().user_slots(), seed),
            drive,
            faults,
            submit_ps: spec.host.submit_ps,
            complete_ps: spec.host.complete_ps,
            idle_ps: hpb.idle_ps,
            loads_at_boot: hpb.loads_at_boot,
            idle_period: 0,
            loading: None,
            groups_fetched: 0,
            submitted_ps: Vec::new(),
            completions: Vec::new(),
        };
        host.load_at_boot();
        host
    }

    /// One whose driver hears everything at once.
    pub fn hearing_all(spec: &DriveSpec, precondition: Precondition, seed: u64) -> Self {
        Untrusted::new(spec, precondition, seed, Faults::new(0, 0, 0))
    }

    /// The entry that the driver has for a read.
    pub fn entry(&mut self, lpn: Lpn, count: u32) -> Option<HostEntry> {
        let drive = &self.drive;
        let boot = |lpn| drive.hpb_entry_at_boot(lpn);
        self.driver.entry(lpn, count, drive.hpb_shows_place(), boot)
    }

    /// A request with this entry along with it, whatever the driver has.
    pub fn submit_with(&mut self, request: Request, entry: Option<HostEntry>) {
        let now_ps = self.drive.now_ps();
        let command = self.drive.enqueue(request);
        let at = command.0 as usize;
        self.submitted_ps
            .resize(self.submitted_ps.len().max(at + 1), 0);
        self.submitted_ps[at] = now_ps;
        if let Some(entry) = entry {
            self.drive.attach_entry(command, entry);
        }
        self.drive.ring(command, now_ps + self.submit_ps);
    }

    pub fn now_ps(&self) -> u64 {
        self.drive.now_ps()
    }

    pub fn in_flight(&self) -> usize {
        self.drive.in_flight()
    }

    pub fn power_cut(&mut self) -> Recovery {
        self.completions.clear();
        self.drive.begin_power_cut();
        while self.drive.run(u64::MAX) != Some(News::Recovered) {}
        let recovery = self.drive.recovery().expect("it has come back").clone();
        self.loading = None;
        self.driver.set_enabled(self.driver.is_enabled());
        self.load_at_boot();
        self.note_idle(false, 0);
        recovery
    }

    fn on_handled(&mut self, command: CommandId) {
        let answer = self.drive.hpb_answer(command);
        let mut loaded = false;
        if let Some((group, entries, version)) = answer.group {
            loaded = self.loading == Some(group);
            self.driver.on_group(group, entries, version);
        }
        for message in self.faults.pass(answer.message).into_iter().flatten() {
            let drive = &self.drive;
            let boot = |lpn| drive.hpb_entry_at_boot(lpn);
            self.driver.on_message(message, boot);
        }
        if loaded {
            self.load_next();
        }
        self.note_idle(answer.hpb_command, 1);
        let now_ps = self.drive.now_ps();
        let (request, status) = self.drive.consume(command, now_ps + self.submit_ps);
        if !answer.hpb_command {
            self.completions.push(Completion {
                tag: request.tag,
                op: request.op,
                status,
                submitted_ps: self.submitted_ps[command.0 as usize],
                completed_ps: now_ps,
            });
        }
    }

    /// When nothing has been asked for a while, groups are fetched.
    fn note_idle(&mut self, fetched: bool, ending: usize) {
        self.idle_period = (self.idle_period + 1) % (1 << 16);
        if !self.driver.wants() || self.drive.in_flight() > ending {
            return;
        }
        if fetched {
            self.fetch_wanted();
            return;
        }
        let at_ps = self.drive.now_ps() + self.idle_ps;
        self.drive.wake_at(at_ps, Alarm::Idle, self.idle_period);
    }

    fn load_at_boot(&mut self) {
        if self.loads_at_boot && self.loading.is_none() {
            self.load_next();
        }
    }

    fn load_next(&mut self) {
        self.loading = self.driver.next_load();
        if let Some(group) = self.loading {
            self.fetch(group);
        }
    }

    fn fetch_wanted(&mut self) {
        if let Some(group) = self.driver.next_wanted() {
            self.fetch(group);
        }
    }

    fn fetch(&mut self, group: u32) {
        if let Some(command) = self.drive.enqueue_read_buffer(group) {
            self.groups_fetched += 1;
            let doorbell_ps = self.drive.now_ps() + self.submit_ps;
            self.drive.ring(command, doorbell_ps);
        }
    }
}

impl User for Untrusted {
    fn drive(&self) -> &Device<Tags> {
        &self.drive
    }

    fn submit(&mut self, request: Request) {
        let mut entry = None;
        if request.op == Op::Read {
            let first = request.offset_bytes / 4096;
            let end = (request.offset_bytes + request.length_bytes).div_ceil(4096);
            entry = self.entry(Lpn(first as u32), (end - first) as u32);
        }
        self.submit_with(request, entry);
    }

    fn next_time(&self) -> Option<u64> {
        self.drive.next_time()
    }

    fn advance(&mut self, to_ps: u64, completions: &mut Vec<Completion>) {
        while let Some(news) = self.drive.run(to_ps) {
            match news {
                News::Sent => self.drive.wake_for_sent(self.complete_ps),
                News::Alarm(Alarm::Handled, command) => self.on_handled(CommandId(command)),
                News::Alarm(Alarm::Idle, period)
                    if period == self.idle_period && self.in_flight() == 0 =>
                {
                    self.fetch_wanted();
                }
                _ => {}
            }
        }
        self.drive.idle_until(to_ps);
        completions.append(&mut self.completions);
    }

    fn set_hpb_enabled(&mut self, enabled: bool) {
        if enabled != self.driver.is_enabled() {
            self.driver.set_enabled(enabled);
            self.drive.set_hpb_enabled(enabled);
            self.load_at_boot();
            self.note_idle(false, 0);
        }
    }

    fn counters(&self) -> Counters {
        let mut counters = self.drive.counters();
        counters.hpb.groups_fetched = self.groups_fetched;
        counters.hpb.evictions = self.driver.evictions;
        counters
    }
}
