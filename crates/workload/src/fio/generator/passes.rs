//! Passes over the range: how a job starts, ends a pass, reads back what it has written, and begins another.

use super::{Generator, Phase};
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
        if self.in_flight > 0 {
            return match &mut self.reaper {
                Some(reaper) => reaper.drain(self.in_flight),
                None => Next::Blocked,
            };
        }
        if self.phase == Phase::Draining && self.plan.flush_at_end && !self.flushed_last {
            self.phase = Phase::Flushing;
            return Next::Submit(self.flush());
        }
        if matches!(self.phase, Phase::Draining | Phase::Flushing)
            && !self.finished
            && self.has_written()
        {
            self.phase = Phase::Verifying;
            return self.next_outside(now_ps);
        }
        if self.finished || !self.begin_pass() {
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
        if now_ps >= self.deadline_ps {
            self.finished = true;
            return None;
        }
        if let Some(next) = self.look() {
            return Some(next);
        }
        if self.in_flight >= self.plan.depth {
            return Some(Next::Blocked);
        }
        let (offset, length) = self.written.as_mut()?.take()?;
        Some(self.read_again(offset, length))
    }

    /// A read of what was written. fio counts it against `io_size` and `number_ios`, too.
    pub(super) fn read_again(&mut self, offset: u64, length: u64) -> Next {
        if !self.plan.time_based {
            self.verified_bytes = self.verified_bytes.saturating_add(length);
        }
        self.requests_left = self.requests_left.saturating_sub(1);
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
        if let Some(runtime_ps) = self.plan.runtime_ps {
            let after_ramp_ps = self.start_ps.saturating_add(self.plan.ramp_ps);
            self.deadline_ps = after_ramp_ps.saturating_add(runtime_ps);
        }
        if self.plan.counts_after_ramp() {
            self.count_anew_ps = self.start_ps.saturating_add(self.plan.ramp_ps);
        }
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
        let plan = &self.plan;
        if self.total_left_bytes == 0 || self.requests_left == 0 || self.issued_in_pass == 0 {
            return false;
        }
        self.passes_left = self.passes_left.saturating_sub(1);
        if self.passes_left == 0 {
            let all_bytes = plan.limit_bytes.saturating_mul(plan.loops);
            let issued_bytes = all_bytes - self.total_left_bytes + self.verified_bytes;
            let missing = plan.limit_bytes.saturating_sub(issued_bytes);
            let largest = (0..3).filter(|&d| plan.layout.active[d]);
            let largest = largest.map(|d| plan.layout.sizes[d].max()).max();
            if missing < largest.unwrap_or(0).max(1)
                || (self.pass_was_exhausted && !plan.has_io_size)
            {
                return false;
            }
            self.passes_left = 1;
        }
        self.pass_left_bytes = plan.pass_bytes;
        self.pass_was_exhausted = false;
        self.issued_in_pass = 0;
        self.trimmed = None;
        self.starts = [None; 2];
        self.flushed_last = false;
        self.offsets.restart(plan.repeat);
        true
    }
}
