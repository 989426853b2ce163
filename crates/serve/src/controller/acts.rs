//! What a user has done to the drive as a whole: it vanishes, loses power, hangs, is hot, takes no writes, or
//! does to the host's memory what it must not.
//!
//! Acts are planned for an instant of the drive's time, and done when it has come there. What happens to the drive meanwhile
//! ([`Event`]) only plans: nothing is taken away from under who reports it.

use super::Controller;
use super::io::Flights;
use super::time::earlier;
use super::wipe::SavedWipe;
use crate::faults::{Act, Due, Event, TouchWhere};
use lodger_core::device::DumpOutcome;
use lodger_wire::QueueId;
use lodger_wire::event::AsyncEvent;
use lodger_wire::log::CriticalWarning;
use lodger_wire::memory::GuestMemory;
use lodger_wire::status::Status;
use serde::Serialize;

/// Most acts that wait for their time; what comes then is left undone.
const PLANNED_MAX: usize = 1000;
const PS_PER_S: u64 = 1_000_000_000_000;

/// What is written where nothing is to be written: who finds it knows where it comes from.
pub const STRAY_BYTES: &[u8; 64] =
    b"lodger: a fault rule wrote this where the drive must not write. ";

/// Times that the drive was hot.
#[derive(Clone, Copy, Debug, Default)]
struct Heat {
    since_ps: Option<u64>,
    times: u32,
    total_ps: u64,
}

/// How a drive fares.
#[derive(Debug, Default)]
pub(super) struct Plight {
    /// What is to be done, and when.
    planned: Vec<(u64, Act)>,
    /// Acts that were done.
    done: u64,
    is_gone: bool,
    pub(super) is_stalled: bool,
    is_read_only: bool,
    /// Between two I/O commands, picoseconds; and when the next may enter.
    gap_ps: Option<u64>,
    next_entry_ps: u64,
    heat: Heat,
    /// Power was cut, and the drive is not there again; what it had been doing with all its data is to go on then.
    recovering: Option<SavedWipe>,
    was_programming: bool,
    /// The capacitors did not last for the byte window the last time that power was cut.
    has_lost_window: bool,
}

/// How a drive fares, for who looks.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PlightView {
    /// It is gone from its slot.
    pub gone: bool,
    /// Its firmware does nothing.
    pub stalled: bool,
    /// It takes no writes.
    pub read_only: bool,
    /// It is hot, and slow.
    pub throttled: bool,
    /// The file that keeps it takes nothing: writes fail, and flushes.
    pub cannot_store: bool,
    /// Of what was in the byte window at the last power cut, not all is back.
    pub lost_window: bool,
    /// Host memory that it was granted is not there.
    pub withdrawn: bool,
    /// Acts that were done.
    pub acts: u64,
    /// Acts that wait for their time.
    pub planned: usize,
}

impl Plight {
    /// When a command that is fetched now may enter the drive.
    pub(super) fn entry_ps(&mut self, queue: QueueId, now_ps: u64) -> u64 {
        let Some(gap_ps) = self.gap_ps.filter(|_| queue != QueueId::ADMIN) else {
            return now_ps;
        };
        let at_ps = self.next_entry_ps.max(now_ps);
        self.next_entry_ps = at_ps.saturating_add(gap_ps);
        at_ps
    }

    /// Whether something is on its way by itself.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.planned.is_empty() || self.is_recovering()
    }

    /// Whether it has to slow down for heat.
    pub(super) fn is_hot(&self) -> bool {
        self.heat.since_ps.is_some()
    }

    /// Power was cut, and the drive is not there again.
    pub(super) fn is_recovering(&self) -> bool {
        self.recovering.is_some()
    }

    fn next_planned_ps(&self) -> Option<u64> {
        self.planned.iter().map(|(at_ps, _)| *at_ps).min()
    }

    fn forget(&mut self, is_it: impl Fn(&Act) -> bool) {
        self.planned.retain(|(_, act)| !is_it(act));
    }

    /// The earliest act that is due.
    fn take_due(&mut self, now_ps: u64) -> Option<Act> {
        let due = self.planned.iter().enumerate();
        let due = due.filter(|(_, (at_ps, _))| *at_ps <= now_ps);
        let (first, _) = due.min_by_key(|(place, (at_ps, _))| (*at_ps, *place))?;
        Some(self.planned.remove(first).1)
    }

    fn hot_ps(&self, now_ps: u64) -> u64 {
        let since = self.heat.since_ps.map(|since_ps| now_ps - since_ps);
        self.heat.total_ps + since.unwrap_or(0)
    }

    fn cool(&mut self, now_ps: u64) {
        self.heat.total_ps = self.hot_ps(now_ps);
        self.heat.since_ps = None;
        self.gap_ps = None;
    }
}

impl<M: GuestMemory + Clone> Controller<M> {
    /// How the drive fares.
    #[must_use]
    pub fn plight(&self) -> PlightView {
        let plight = &self.plight;
        PlightView {
            gone: plight.is_gone,
            stalled: plight.is_stalled,
            read_only: plight.is_read_only,
            throttled: plight.gap_ps.is_some(),
            cannot_store: self.cannot_store(),
            lost_window: plight.has_lost_window,
            withdrawn: self.device.host_memory.memory.is_withdrawn(),
            acts: plight.done,
            planned: plight.planned.len(),
        }
    }

    /// Whether it is gone from its slot: nothing that a host reads of it is anything but ones.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.plight.is_gone
    }

    /// Something is to be done to the drive, so much later than now; `false`: too much waits already.
    pub fn act(&mut self, due: Due) -> bool {
        let has_room = self.plight.planned.len() < PLANNED_MAX;
        self.plan(self.device.now_ps(), vec![due]);
        has_room
    }

    pub(super) fn plan(&mut self, now_ps: u64, due: Vec<Due>) {
        for (after_ps, act) in due {
            if self.plight.planned.len() < PLANNED_MAX {
                let at_ps = now_ps.saturating_add(after_ps);
                self.plight.planned.push((at_ps, act));
            }
        }
    }

    /// Something has happened to the drive that rules may wait for.
    pub(super) fn note_event(&mut self, event: Event) {
        if self.kept.rules.waits_for(event) {
            let now_ps = self.device.now_ps();
            let (now, mut due) = (self.situation(now_ps), Vec::new());
            self.kept.rules.note(event, &now, &mut due);
            self.plan(now_ps, due);
        }
    }

    /// When something is to be done to the drive.
    pub(super) fn next_act_ps(&self) -> Option<u64> {
        earlier(
            self.plight.next_planned_ps(),
            self.kept.rules.next_time_ps(),
        )
    }

    /// Takes the drive to each instant at which something is to be done to it, and does it.
    pub(super) fn act_until(&mut self, until_ps: u64) {
        loop {
            let next = self.next_act_ps();
            let Some(at_ps) = next.filter(|at_ps| *at_ps <= until_ps) else {
                return;
            };
            if !self.plight.is_stalled {
                let at_ps = at_ps.max(self.device.now_ps());
                self.run_device(at_ps);
                self.take_arrivals(at_ps);
            }
            let (now, mut due) = (self.situation(at_ps), Vec::new());
            self.kept.rules.look_at_clock(&now, &mut due);
            self.plan(at_ps, due);
            self.act_on_due(at_ps);
        }
    }

    pub(super) fn act_on_due(&mut self, now_ps: u64) {
        while let Some(act) = self.plight.take_due(now_ps) {
            if self.finds_nothing(&act).is_none() {
                self.plight.done += 1;
                self.perform(&act, now_ps);
            }
        }
    }

    /// Why an act would do nothing as things stand; what is planned may change them first.
    pub(crate) fn would_do_nothing(&self, act: &Act) -> Option<&'static str> {
        let is_as_it_will_be = self.plight.planned.is_empty();
        self.finds_nothing(act).filter(|_| is_as_it_will_be)
    }

    fn finds_nothing(&self, act: &Act) -> Option<&'static str> {
        let (plight, memory) = (&self.plight, &self.device.host_memory.memory);
        let (is_there, why) = match act {
            // After a reset the drive may still have it lent, but the host has it back.
            Act::Corrupt(_) => {
                let has_any =
                    self.hmb.feature.is_enabled() && memory.is_lent() && !memory.is_withdrawn();
                (has_any, "the drive has no host memory")
            }
            Act::Withdraw => {
                let has_any = memory.is_lent() && !memory.is_withdrawn();
                (has_any, "the drive has no host memory")
            }
            Act::Touch(TouchWhere::Inside | TouchWhere::Beside) => {
                (memory.is_lent(), "the drive has no host memory")
            }
            Act::Touch(TouchWhere::Former) => {
                let was_any = memory.former_address().is_some();
                (was_any, "the drive was never granted host memory")
            }
            Act::Return => (plight.is_gone, "the drive is not gone"),
            Act::Resume => (plight.is_stalled, "the drive is not stalled"),
            Act::Writable => (plight.is_read_only, "the drive is not read-only"),
            Act::Cool => (plight.is_hot(), "the drive is not hot"),
            Act::Vanish(_) | Act::PowerCut | Act::Stall(_) | Act::ReadOnly | Act::Throttle(_) => {
                (true, "")
            }
        };
        (!is_there).then_some(why)
    }

    fn perform(&mut self, act: &Act, now_ps: u64) {
        match act {
            Act::Vanish(for_ps) => {
                self.vanish();
                self.end_after(now_ps, *for_ps, Act::Return);
            }
            Act::Return => self.come_back(),
            Act::PowerCut => self.power_cut(now_ps),
            Act::Stall(for_ps) => {
                self.plight.is_stalled = true;
                self.end_after(now_ps, *for_ps, Act::Resume);
            }
            Act::Resume => {
                self.plight.is_stalled = false;
                self.plight.forget(|act| *act == Act::Resume);
            }
            Act::ReadOnly => {
                self.plight.is_read_only = true;
                self.warn(CriticalWarning::ReadOnly, AsyncEvent::Reliability);
            }
            Act::Writable => self.plight.is_read_only = false,
            Act::Throttle(gap_ps) => {
                self.plight.gap_ps = Some(*gap_ps);
                if self.plight.heat.since_ps.is_none() {
                    self.plight.heat.since_ps = Some(now_ps);
                    self.plight.heat.times += 1;
                }
                self.look_at_temperature();
            }
            Act::Cool => {
                self.plight.cool(now_ps);
                self.look_at_temperature();
            }
            Act::Corrupt(bits) => {
                let rng = &mut self.kept.rng;
                self.device.host_memory.memory.corrupt(*bits, rng);
            }
            Act::Withdraw => self.device.host_memory.memory.withdraw(),
            Act::Touch(place) => self.touch(*place),
        }
    }

    /// What was begun for a time ends by itself; what was to end before does not.
    fn end_after(&mut self, now_ps: u64, for_ps: Option<u64>, end: Act) {
        self.plight.forget(|act| *act == end);
        if let Some(for_ps) = for_ps {
            self.plan(now_ps, vec![(for_ps, end)]);
        }
    }

    /// A warning of the health page; the host is told if it has asked for that (Base 2.0 §5.27.1.8).
    pub(super) fn warn(&mut self, warning: CriticalWarning, event: AsyncEvent) {
        if self.features.warnings_asked_for() & warning as u8 != 0 {
            self.events.add(event);
        }
    }

    fn vanish(&mut self) {
        // What is not on the link reaches nothing over it.
        self.device.host_memory.memory.withdraw();
        self.stop();
        self.plight.is_gone = true;
        self.registers.function_reset();
        self.registers.vanish(true);
    }

    fn come_back(&mut self) {
        self.plight.forget(|act| *act == Act::Return);
        if std::mem::take(&mut self.plight.is_gone) {
            self.registers.function_reset();
        }
    }

    /// Power is gone and back: what is volatile is lost, and the drive finds the rest again.
    fn power_cut(&mut self, now_ps: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.power_cut(self.device.now_ps());
        }
        self.stop();
        self.transition.begin_reset();
        self.plight.is_stalled = false;
        self.plight.is_gone = false;
        self.plight.was_programming = false;
        self.plight.next_entry_ps = 0;
        self.plight
            .forget(|act| matches!(act, Act::Return | Act::Resume));
        // Commands are gone with power: nothing of them ends any more, not even for the drive itself.
        self.flights = Flights::default();
        self.arrivals.clear();
        self.device.begin_power_cut();
        self.window_lost_power();
        self.device.host_memory.memory.take_back();
        self.hmb.settles = false;
        self.power.stop(now_ps);
        self.registers.function_reset();
        let wipe = std::mem::take(&mut self.wipe).saved();
        // Power that fails again finds what it found the first time.
        self.plight.recovering.get_or_insert(wipe);
        self.keeping.power_cycles = self.keeping.power_cycles.max(1) + 1;
        self.keeping.unsafe_shutdowns += 1;
    }

    /// A drive that is to be switched off hangs no more, and comes back first.
    pub(super) fn end_plight(&mut self) {
        self.plight.is_stalled = false;
        while self.plight.is_recovering() {
            let Some(next_ps) = self.device.next_time() else {
                return;
            };
            self.run_device(next_ps);
        }
    }

    /// The drive is there again after a power cut.
    pub(super) fn recovered(&mut self) {
        if let Some(wipe) = self.plight.recovering.take() {
            self.restore_wipe(wipe);
            self.keep_rest(false);
            self.tell_of_window();
        }
    }

    /// Of a window that the capacitors did not last for, nobody but the drive knows what is gone.
    pub(super) fn tell_of_window(&mut self) {
        let outcome = self.device.recovery().map(|found| found.window.outcome);
        self.plight.has_lost_window = matches!(
            outcome,
            Some(DumpOutcome::Incomplete | DumpOutcome::TableLost)
        );
        if self.plight.has_lost_window {
            self.warn(CriticalWarning::Backup, AsyncEvent::Reliability);
        }
    }

    fn touch(&mut self, place: TouchWhere) {
        let memory = &self.device.host_memory.memory;
        let address = match place {
            TouchWhere::Inside => memory.first_address(),
            TouchWhere::Beside => memory.end_address(),
            TouchWhere::Former => memory.former_address(),
        };
        if let Some(address) = address {
            // Where there is no memory, nobody can be hurt.
            let _ = self.memory.write(address, STRAY_BYTES);
        }
    }

    /// Flash may have begun to program.
    pub(super) fn look_at_programs(&mut self) {
        let is_programming = self.device.is_programming();
        if is_programming && !self.plight.was_programming {
            self.note_event(Event::Program);
        }
        self.plight.was_programming = is_programming;
    }

    /// Whether the media takes writes.
    ///
    /// # Errors
    /// [`Status::WRITE_FAULT`] if it does not.
    pub(super) fn is_writable(&self) -> Result<(), Status> {
        match self.plight.is_read_only {
            true => Err(Status::WRITE_FAULT),
            false => Ok(()),
        }
    }

    /// Its client is gone, and with it the drive's power, as far as a drive that hangs or was away is concerned.
    pub fn client_gone(&mut self) {
        self.plight
            .forget(|act| matches!(act, Act::Return | Act::Resume));
        self.plight.is_stalled = false;
        self.plight.is_gone = false;
        self.function_reset();
    }

    /// What the health page says of it: warnings, times and seconds that it was slow.
    pub(super) fn health_of_plight(&self) -> PlightHealth {
        let plight = &self.plight;
        let hot_s = plight.hot_ps(self.device.now_ps()) / PS_PER_S;
        let read_only = u8::from(plight.is_read_only) * CriticalWarning::ReadOnly as u8;
        let backup = u8::from(plight.has_lost_window) * CriticalWarning::Backup as u8;
        PlightHealth {
            warnings: read_only | backup,
            throttles: plight.heat.times,
            hot_s: u32::try_from(hot_s).unwrap_or(u32::MAX),
        }
    }
}

/// What the health page says of how a drive fares.
pub(super) struct PlightHealth {
    pub warnings: u8,
    pub throttles: u32,
    pub hot_s: u32,
}
