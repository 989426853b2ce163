//! fio's `flow`: jobs that share a `flow_id` do work in proportion to their weights.

use super::ini::Setting;
use crate::WorkloadError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a job section says about it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlowOptions {
    pub(super) weight: u64,
    pub(super) id: u64,
    pub(super) sleep_ps: u64,
}

/// fio's limit on both.
const MAX: u64 = 1000;
/// Picoseconds in a microsecond.
const US: u64 = 1_000_000;

impl FlowOptions {
    /// Takes an option, if it is one of these.
    pub(super) fn apply(&mut self, name: &str, s: &Setting) -> Result<bool, WorkloadError> {
        match name {
            "flow" => self.weight = s.whole(0..=MAX)?,
            "flow_id" => self.id = s.whole(0..=u64::from(u32::MAX))?,
            // A bare number, and not a time with a unit: fio has it so.
            "flow_sleep" => self.sleep_ps = s.whole(0..=u64::from(u32::MAX))? * US,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// What jobs of one `flow_id` share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    issued: AtomicU64,
    weights: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It may have to wait for others.
    Ask,
    /// A request counts that is yet to be issued.
    Holds,
    /// It waits for what is in flight, then sleeps.
    Quiesce,
    Until(u64),
}

/// What a job does whose share is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// It waits for a request of its own or of another job.
    Blocked,
    At(u64),
}

/// One job's part in a flow. Jobs of a run are asked one after the other, so the counters are exact; they are
/// atomic only because a workload may move to another thread.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    shared: Arc<Shared>,
    id: u64,
    weight: u64,
    issued: u64,
    sleep_ps: u64,
    state: State,
    joined: bool,
}

impl Flow {
    pub(super) fn new(shared: &Arc<Shared>, options: FlowOptions) -> Self {
        Self {
            shared: Arc::clone(shared),
            id: options.id,
            weight: options.weight,
            issued: 0,
            sleep_ps: options.sleep_ps,
            state: State::Ask,
            joined: false,
        }
    }

    /// Which jobs it shares with.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// The job starts: from now on its weight counts.
    pub(super) fn join(&mut self) {
        if !self.joined {
            self.joined = true;
            self.shared.weights.fetch_add(self.weight, Relaxed);
        }
    }

    /// The job is done: as in fio, neither its weight nor its requests count any more.
    pub(super) fn leave(&mut self) {
        if self.joined {
            self.joined = false;
            self.shared.weights.fetch_sub(self.weight, Relaxed);
            self.shared.issued.fetch_sub(self.issued, Relaxed);
        }
    }

    /// Whether the job has to wait, as in fio, before it decides what to issue. With `flow_sleep` it waits for what is in
    /// flight and sleeps.
    pub(super) fn held(&mut self, now_ps: u64, in_flight: u32) -> Option<Held> {
        if self.state == State::Quiesce {
            if in_flight > 0 {
                return Some(Held::Blocked);
            }
            self.state = State::Until(now_ps.saturating_add(self.sleep_ps));
        }
        if let State::Until(until_ps) = self.state {
            if now_ps < until_ps {
                return Some(Held::At(until_ps));
            }
            self.state = State::Ask;
        }
        if self.state == State::Holds || self.takes() {
            self.state = State::Holds;
            return None;
        }
        if self.sleep_ps == 0 {
            return Some(Held::Blocked);
        }
        self.state = State::Quiesce;
        self.held(now_ps, in_flight)
    }

    /// A request was issued.
    pub(super) fn issued(&mut self) {
        self.state = State::Ask;
    }

    /// Whether the job may issue a request, which counts at once: its share of the requests is not above its share of
    /// the weights.
    fn takes(&mut self) -> bool {
        let (issued, weights) = (
            self.shared.issued.load(Relaxed),
            self.shared.weights.load(Relaxed),
        );
        // fio counts the requests of all from 1, not from 0.
        let mine = u128::from(self.issued) * u128::from(weights);
        if mine > u128::from(self.weight) * (u128::from(issued) + 1) {
            return false;
        }
        self.issued += 1;
        self.shared.issued.fetch_add(1, Relaxed);
        true
    }
}
