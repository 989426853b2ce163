//! Passes over the range: how a job starts, ends a pass, reads back what it has written, and begins another.

use super::{Generator, Pairs, Phase};
use crate::Next;
use lodger_core::Op;

impl Generator {
    #[cold]
    pub(super) fn end_pass(&mut self, now_ps: u64) -> Next {
        self.phase = Phase::Draining;
        self.next_outside(now_ps)
    }

    /// Everything but the issuing of requests.
    #[cold]
    pub(super) fn next_outside(&mut self, now_ps: u64) -> Next {
        if self.phase == Phase::New {
            self.start_ps = now_ps.saturating_add(self.plan.delay_ps);
            self.phase = Phase::Delayed;
        }
        if self.phase == Phase::Delayed {
            if now_ps < self.start_ps {
                return Next::At(self.start_ps);
            }
            self.start();
            return self.next(now_ps);
        }
        if self.phase == Phase::Done {
            return Next::Done;
        }
        if self.phase == Phase::Verifying
            && let Some(read) = self.read_back(now_ps)
        {
            return read;
        }
        if self.tags.in_flight() > 0 {
            return match &mut self.reaper {
                Some(reaper) => reaper.drain(self.tags.in_flight()),
                None => Next::Blocked,
            };
        }
        let flushes = self.plan.flush_at_end && self.failure.is_none();
        if self.phase == Phase::Draining && flushes && !self.flushes.was_last() {
            self.phase = Phase::Flushing;
            return Next::Submit(self.flush());
        }
        if matches!(self.phase, Phase::Draining | Phase::Flushing)
            && !self.left.has_ended()
            && self.has_written()
        {
            self.phase = Phase::Verifying;
            return self.next_outside(now_ps);
        }
        if self.left.has_ended() || !self.begin_pass() {
            return self.done();
        }
        self.phase = Phase::Running;
        self.next(now_ps)
    }

    fn has_written(&self) -> bool {
        let written = self.written.as_ref();
        written.is_some_and(|written| !written.is_empty())
    }

    /// The next block to read back; `None` when there is none left, or no time.
    fn read_back(&mut self, now_ps: u64) -> Option<Next> {
        if self.left.is_over(now_ps) {
            return None;
        }
        if let Some(next) = self.look() {
            return Some(next);
        }
        if self.tags.in_flight() >= self.plan.depth {
            return Some(Next::Blocked);
        }
        let (offset, length) = self.written.as_mut()?.take()?;
        Some(self.read_again(offset, length))
    }

    /// A read of what was written. fio counts it against `io_size` and `number_ios`, too.
    pub(super) fn read_again(&mut self, offset: u64, length: u64) -> Next {
        self.left.read_back(length, self.plan.time_based);
        if let Some(pacer) = &mut self.pacer {
            pacer.read_back(length);
        }
        if let Some(flow) = &mut self.flow {
            flow.issued();
        }
        Next::Submit(self.request(Op::Read, offset + self.plan.layout.base, length))
    }

    fn start(&mut self) {
        self.phase = Phase::Running;
        self.left.start(&self.plan, self.start_ps);
        if let Some(pacer) = &mut self.pacer {
            pacer.start(self.start_ps);
        }
        if let Some(flow) = &mut self.flow {
            flow.join();
        }
        if let Some(search) = &mut self.latency {
            search.start(self.start_ps);
        }
    }

    /// Begins another pass if there is one: fio's `keep_running`.
    fn begin_pass(&mut self) -> bool {
        if !self.left.begin_pass(&self.plan) {
            return false;
        }
        self.pairs = Pairs::default();
        self.flushes.begin_pass();
        self.offsets.restart(self.plan.repeat);
        true
    }
}
