//! What a job has still to do: bytes, requests, passes over its range, and time.

use super::super::plan::Plan;

/// What is left of a job.
#[derive(Clone, Debug)]
pub(super) struct Left {
    pass_bytes: u64,
    total_bytes: u64,
    requests: u64,
    passes: u64,
    /// From here on requests count anew: the end of the ramp, where their number is what ends the job.
    count_anew_ps: u64,
    deadline_ps: u64,
    /// This pass had no range left to go on with.
    was_exhausted: bool,
    issued_in_pass: u64,
    read_back_bytes: u64,
    /// No further pass: out of time, or another says so.
    has_ended: bool,
}

impl Left {
    pub fn new(plan: &Plan) -> Self {
        Left {
            pass_bytes: plan.pass_bytes,
            total_bytes: plan.limit_bytes.saturating_mul(plan.loops),
            requests: plan.requests_max,
            passes: plan.loops,
            count_anew_ps: u64::MAX,
            deadline_ps: u64::MAX,
            was_exhausted: false,
            issued_in_pass: 0,
            read_back_bytes: 0,
            has_ended: false,
        }
    }

    /// The job starts proper.
    pub fn start(&mut self, plan: &Plan, start_ps: u64) {
        let ramped_ps = start_ps.saturating_add(plan.ramp_ps);
        if let Some(runtime_ps) = plan.runtime_ps {
            self.deadline_ps = ramped_ps.saturating_add(runtime_ps);
        }
        if plan.counts_after_ramp() {
            self.count_anew_ps = ramped_ps;
        }
    }

    #[inline]
    pub fn deadline_ps(&self) -> u64 {
        self.deadline_ps
    }

    /// As if the runtime were over.
    pub fn stop(&mut self) {
        self.deadline_ps = 0;
    }

    /// No further pass.
    pub fn end(&mut self) {
        self.has_ended = true;
    }

    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether the runtime is over, which ends the job.
    #[inline]
    pub fn is_over(&mut self, now_ps: u64) -> bool {
        let is_over = now_ps >= self.deadline_ps;
        self.has_ended |= is_over;
        is_over
    }

    /// Whether nothing more is to be issued in this pass.
    #[inline]
    pub fn ends_pass(&self) -> bool {
        self.pass_bytes == 0 || self.total_bytes == 0 || self.requests == 0
    }

    /// At the end of the ramp.
    pub fn count_anew(&mut self, now_ps: u64, requests_max: u64) {
        if now_ps >= self.count_anew_ps {
            (self.requests, self.count_anew_ps) = (requests_max, u64::MAX);
        }
    }

    pub fn exhausted(&mut self) {
        self.was_exhausted = true;
    }

    #[inline]
    pub fn issued(&mut self) {
        self.issued_in_pass += 1;
    }

    /// A request counts. By time, a pass ends only to be read back.
    #[inline]
    pub fn take(&mut self, bytes: u64, time_based: bool, reads_back: bool) {
        if !time_based || reads_back {
            self.pass_bytes = self.pass_bytes.saturating_sub(bytes);
        }
        if !time_based {
            self.total_bytes = self.total_bytes.saturating_sub(bytes);
        }
        self.requests -= 1;
    }

    /// What was written is read back.
    pub fn read_back(&mut self, bytes: u64, time_based: bool) {
        if !time_based {
            self.read_back_bytes = self.read_back_bytes.saturating_add(bytes);
        }
        self.requests = self.requests.saturating_sub(1);
    }

    /// Begins another pass if there is one: fio's `keep_running`.
    pub fn begin_pass(&mut self, plan: &Plan) -> bool {
        if self.total_bytes == 0 || self.requests == 0 || self.issued_in_pass == 0 {
            return false;
        }
        self.passes = self.passes.saturating_sub(1);
        if self.passes == 0 {
            let all_bytes = plan.limit_bytes.saturating_mul(plan.loops);
            let issued_bytes = all_bytes - self.total_bytes + self.read_back_bytes;
            let missing = plan.limit_bytes.saturating_sub(issued_bytes);
            let largest = (0..3).filter(|&d| plan.layout.active[d]);
            let largest = largest.map(|d| plan.layout.sizes[d].max()).max();
            if missing < largest.unwrap_or(0).max(1) || (self.was_exhausted && !plan.has_io_size) {
                return false;
            }
            self.passes = 1;
        }
        self.pass_bytes = plan.pass_bytes;
        self.was_exhausted = false;
        self.issued_in_pass = 0;
        true
    }
}
