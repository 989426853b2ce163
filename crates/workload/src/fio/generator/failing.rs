//! Requests that fail, and the end of the job at the first that it does not survive.

use super::{Generator, Phase};
use lodger_core::{Completion, Op, Status};

impl Generator {
    /// A request has failed. As in fio, a job that is not to go on submits nothing more, neither to flush what it has written
    /// nor to read it back; what is in flight completes.
    #[cold]
    pub(super) fn failed(&mut self, completion: &Completion) {
        if completion.op == Op::Write {
            self.flushes.write_failed();
        }
        if self.plan.survived.has(completion.op, completion.status) {
            return;
        }
        self.failure.get_or_insert(completion.status);
        self.left.stop();
        self.left.end();
        if self.phase == Phase::Running {
            self.phase = Phase::Draining;
        }
    }

    /// What the drive said to the request that ended the job.
    #[must_use]
    pub fn failure(&self) -> Option<Status> {
        self.failure
    }

    /// Whether it was asked to go on after errors of some kind.
    #[must_use]
    pub fn survives_errors(&self) -> bool {
        self.plan.survived.asked
    }
}
