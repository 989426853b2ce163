//! The controller in time: what it does as time passes, and when it has something to do.

use super::io::PAGES_AT_ONCE;
use super::{Arrived, Controller};
use crate::faults::Event;
use lodger_core::ids::CommandId;
use lodger_core::observe::Histogram;
use lodger_core::{Op, Status};
use lodger_wire::memory::GuestMemory;

/// Answers of a drive that nobody waits for, before the queues are looked at and hosts are told.
const ANSWERS_MAX: u32 = 8;

/// The earlier of two times, as far as there are any. Not the least of an array: what is stored into it half by half and
/// read as a whole holds the processor up, at every step of the drive.
pub(super) fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl<M: GuestMemory + Clone> Controller<M> {
    /// Time has come to `now_ps`, picoseconds since the start; a time that has passed already is now. Ends what
    /// is due, then looks at the queues. Returns whether there was anything to do.
    pub fn poll(&mut self, now_ps: u64) -> bool {
        if self.is_cut_off() {
            return false;
        }
        let before = self.statistics;
        let acts = self.plight().acts;
        self.act_until(now_ps);
        if self.plight.is_stalled {
            self.look_whether_busy(now_ps);
            return self.plight().acts != acts;
        }
        let now_ps = now_ps.max(self.device.now_ps());
        self.run_device(now_ps);
        self.take_arrivals(now_ps);
        if self.transition.is_shutting_down() {
            // The drive begins to save when the last command is gone.
            self.run_device(now_ps);
        }
        self.go_on_wiping();
        self.go_on_with_region();
        let passed = self.look_at_file();
        self.look_at_wear();
        self.end_waits();
        if self.registers.is_ready() && !self.transition.is_shutting_down() {
            self.look_at_shadows();
            self.go_on_with_held(now_ps);
            // Before commands take the room there is.
            self.tell_events();
            self.serve_queues();
            self.go_on_to_power();
            self.rest_when_idle();
            self.tell_events();
        }
        self.look_whether_busy(now_ps);
        let after = self.statistics;
        let acted = self.plight().acts != acts;
        acted
            || passed
            || before.commands != after.commands
            || before.completions != after.completions
    }

    /// Counts the time for which hosts have waited.
    fn look_whether_busy(&mut self, now_ps: u64) {
        let now_ps = now_ps.max(self.device.now_ps());
        self.statistics.busy_ps += self.busy.look(now_ps, self.queues.are_busy());
    }

    /// The function may access the host's memory, or may not (Bus Master Enable, PCI Express Base 5.0 §7.5.1.1.3).
    ///
    /// While it may not, time stands still for the drive: nothing is fetched, nothing ends, host memory is left alone, and
    /// doorbells are remembered. Only a reset and a shutdown go on, for which the memory is as if it were gone.
    pub fn set_bus_master(&mut self, is_master: bool) {
        self.may_access_host = is_master;
    }

    /// Whether it waits to be let at the host's memory.
    pub(super) fn is_cut_off(&self) -> bool {
        !self.may_access_host && self.registers.is_ready() && self.transition.is_over()
    }

    /// When there is something to do without the guest's doing; `None`: not before it does something.
    #[must_use]
    pub fn next_time_ps(&self) -> Option<u64> {
        if self.is_cut_off() {
            return None;
        }
        if self.plight.is_stalled {
            return self.next_act_ps();
        }
        let drive = earlier(self.device.next_time(), self.arrivals.next_time_ps());
        earlier(drive, self.next_of_others_ps())
    }

    /// When there is something to do that is neither the drive's nor a completion that arrives.
    fn next_of_others_ps(&self) -> Option<u64> {
        let commands = earlier(self.kept.next_time_ps(), self.wipe.next_time_ps());
        let acts = earlier(self.next_power_ps(), self.next_act_ps());
        earlier(earlier(commands, acts), self.next_of_region_ps())
    }

    /// For who does not wait for the drive: has it work until a few answers are given or something else is due, at most
    /// so many steps, without a look at the queues between them. Returns when to poll next.
    pub fn run_to_answers(&mut self, steps_max: u32) -> Option<u64> {
        if !self.answers_only() {
            return self.next_time_ps();
        }
        let before_ps = self.device.now_ps();
        let (mut answers, mut others_ps) = (0, self.next_of_others_ps());
        let pages_before = self.deallocated_pages();
        for _ in 0..steps_max {
            let arrival_ps = self.arrivals.next_time_ps();
            let Some(next_ps) = earlier(self.device.next_time(), arrival_ps) else {
                break;
            };
            if others_ps.is_some_and(|other_ps| other_ps <= next_ps) || answers == ANSWERS_MAX {
                break;
            }
            self.run_device_to(next_ps);
            if arrival_ps == Some(next_ps) {
                self.take_arrivals(next_ps);
                answers += 1;
                let pages = self.deallocated_pages().wrapping_sub(pages_before);
                let is_long = pages >= PAGES_AT_ONCE;
                if is_long || !self.is_waited_for() {
                    break;
                }
                // Between answers the drive is alone, and changes none of it.
                others_ps = self.next_of_others_ps();
            }
        }
        match self.device.now_ps() {
            now_ps if now_ps > before_ps => Some(now_ps),
            _ => self.next_time_ps(),
        }
    }

    /// Whether all that is waited for is answers of the drive to commands.
    fn answers_only(&self) -> bool {
        let is_at_work = self.registers.is_ready() && self.transition.is_over();
        let is_told_of_steps = self.is_cut_off()
            || self.plight.is_stalled
            || self.kept.rules.waits_for(Event::Program);
        is_at_work && !is_told_of_steps && !self.flights.is_empty()
    }

    /// How much later than the model says I/O commands completed, nanoseconds of the drive's time: who polls on
    /// time keeps it at 0.
    #[must_use]
    pub fn lateness(&self) -> &Histogram {
        &self.lateness
    }

    /// Now, picoseconds since the start, as of the last [`Controller::poll`].
    #[must_use]
    pub fn now_ps(&self) -> u64 {
        self.device.now_ps()
    }

    /// Whether a guest waits for something that takes the drive time; else what goes on is the drive's own
    /// affair.
    #[must_use]
    pub fn is_waited_for(&self) -> bool {
        !self.flights.is_empty()
            || self.wipe.is_under_way()
            || self.kept.is_holding()
            || self.power.is_waking()
            || self.power.is_going()
            || self.hmb.settles
            || !self.transition.is_over()
            || self.plight.is_waited_for()
            || self.registers.pmr_waits()
    }

    /// Whether something waits for the file that keeps the drive: nobody says when that is over.
    #[must_use]
    pub fn waits_for_file(&self) -> bool {
        self.keeping.is_waiting()
    }

    /// Completions whose entries arrive by now.
    pub(super) fn take_arrivals(&mut self, now_ps: u64) {
        while let Some((at_ps, what)) = self.arrivals.take(now_ps) {
            self.lateness.record((now_ps - at_ps) / 1000);
            let command = match what {
                Arrived::Completion(command) => command,
                Arrived::Answer(tag) => {
                    self.part_done(tag, Status::Success);
                    continue;
                }
            };
            let command = CommandId(command);
            let payload = std::mem::take(self.device.payload_mut(command));
            let (request, status) = self.device.consume(command, now_ps);
            if let Some(recorder) = &mut self.recorder {
                recorder.taken(now_ps, command, at_ps, status);
            }
            self.request_done(request.tag, status, payload);
            if request.op == Op::Trim {
                self.piece_deallocated(request.length_bytes);
            }
        }
    }
}
