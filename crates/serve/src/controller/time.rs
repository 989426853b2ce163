//! The controller in time: what it does as time passes, and when it has something to do.

use super::{Arrived, Controller};
use lodger_core::Status;
use lodger_core::ids::CommandId;
use lodger_core::observe::Histogram;
use lodger_wire::memory::GuestMemory;
use std::cmp::Reverse;

impl<M: GuestMemory + Clone> Controller<M> {
    /// Time has come to `now_ps`, picoseconds since the start; a time that has passed already is now. Ends what
    /// is due, then looks at the queues. Returns whether there was anything to do.
    pub fn poll(&mut self, now_ps: u64) -> bool {
        let before = self.statistics;
        let acts = self.plight().acts;
        self.act_until(now_ps);
        if self.plight.is_stalled {
            return self.plight().acts != acts;
        }
        let now_ps = now_ps.max(self.device.now_ps());
        self.run_device(now_ps);
        self.take_arrivals(now_ps);
        if self.is_shutting_down {
            // The drive begins to save when the last command is gone.
            self.run_device(now_ps);
        }
        self.go_on_wiping();
        let passed = self.look_at_file();
        self.end_waits();
        if self.registers.is_ready() && !self.is_shutting_down {
            self.look_at_shadows();
            self.go_on_with_held(now_ps);
            self.serve_queues();
            self.go_on_to_power();
            self.rest_when_idle();
            self.tell_events();
        }
        let after = self.statistics;
        let acted = self.plight().acts != acts;
        acted
            || passed
            || before.commands != after.commands
            || before.completions != after.completions
    }

    /// When there is something to do without the guest's doing; `None`: not before it does something.
    #[must_use]
    pub fn next_time_ps(&self) -> Option<u64> {
        if self.plight.is_stalled {
            return self.next_act_ps();
        }
        let arrival = self.arrivals.peek().map(|Reverse((at_ps, ..))| *at_ps);
        let own = [
            self.wipe.next_time_ps(),
            self.next_power_ps(),
            self.next_act_ps(),
        ];
        let drive = [self.device.next_time(), arrival, self.kept.next_time_ps()];
        let times = drive.into_iter().chain(own);
        times.flatten().min()
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
            || self.hmb_settles
            || self.is_resetting
            || self.is_shutting_down
            || self.plight.is_waited_for()
    }

    /// Whether something waits for the file that keeps the drive: nobody says when that is over.
    #[must_use]
    pub fn waits_for_file(&self) -> bool {
        self.keeping.is_waiting()
    }

    /// Completions whose entries arrive by now.
    pub(super) fn take_arrivals(&mut self, now_ps: u64) {
        while let Some(Reverse((at_ps, _, what))) = self.arrivals.peek().copied()
            && at_ps <= now_ps
        {
            self.arrivals.pop();
            self.lateness.record((now_ps - at_ps) / 1000);
            let command = match what {
                Arrived::Completion(command) => command,
                Arrived::Answer(tag) => {
                    self.part_done(tag, Status::Success);
                    continue;
                }
            };
            let (request, status) = self.device.consume(CommandId(command), now_ps);
            if let Some(recorder) = &mut self.recorder {
                recorder.taken(now_ps, CommandId(command), at_ps, status);
            }
            self.part_done(request.tag, status);
        }
    }
}
