//! When a job's thread takes completions that have arrived.
//!
//! Most threads wait for one completion and take it as it arrives. One that waits for several at once, or is held in a flush
//! of libaio, takes what has arrived when it looks, and fio stamps a completion then: the latencies it shows are those.

use super::options::Options;
use crate::Next;

/// What a job section says: fio's `iodepth_batch`, `iodepth_batch_complete_min` and `iodepth_batch_complete_max`.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchOptions {
    pub(super) submit: u64,
    pub(super) least: u64,
    pub(super) most: u64,
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self {
            submit: 1,
            least: 1,
            most: 0,
        }
    }
}

/// How many requests a job's thread hands over and takes at once; validated by the caller.
#[derive(Clone, Debug)]
pub(super) struct Reaping {
    depth: u32,
    /// Handed over at once: fio's `iodepth_batch`.
    batch: u32,
    /// Taken at once: fio's `iodepth_batch_complete_min` and `iodepth_batch_complete_max`.
    least: u32,
    most: u32,
    /// Once full, it takes until no more than so many are left: fio's `iodepth_low`.
    low: u32,
    /// It takes one after each request, full or not.
    polls: bool,
}

impl Reaping {
    /// Of a job with so many requests in flight; `None` where each completion is taken as it arrives.
    pub(super) fn of(o: &Options, depth: u32, low: u32) -> Option<Self> {
        let batch = match o.batches.submit as u32 {
            0 => depth,
            batch => batch.min(depth),
        };
        let (least, most) = (o.batches.least as u32, o.batches.most as u32);
        let held = o.flush_holds() && o.writes() && o.flush_every != [0; 2];
        let one_by_one = batch == 1 && least == 1 && most <= 1 && !held;
        // With `io_submit_mode=offload` another thread takes them.
        if depth == 1 || o.offload || one_by_one {
            return None;
        }
        Some(Self {
            depth,
            batch,
            least: least.max(1),
            most: most.max(least).max(1),
            low,
            // As fio 3.33 does, where the manual speaks of no wait at all.
            polls: least == 0 && most == 0,
        })
    }
}

/// How many requests were in flight, handed over and taken at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batches {
    /// Requests by those in flight as they were handed over: 1, 2-3, 4-7, ... 64 and more.
    pub levels: [u64; 7],
    /// Times that so many were handed over: 0, 1-4, 5-8, 9-16, 17-32, 33-64 and more.
    pub handed_over: [u64; 7],
    /// Times that so many were taken.
    pub taken: [u64; 7],
}

/// The place of so many in a list by how many there were at once.
fn place(at_once: u32) -> usize {
    match at_once {
        0 => 0,
        1..=4 => 1,
        5..=8 => 2,
        9..=16 => 3,
        17..=32 => 4,
        33..=64 => 5,
        _ => 6,
    }
}

/// The thread is in a call that waits for completions.
#[derive(Clone, Copy, Debug)]
struct Wait {
    least: u32,
    /// It takes on until no more than `low` are left.
    until_low: bool,
}

/// The thread of a job that takes completions when it looks.
#[derive(Clone, Debug)]
pub(super) struct Reaper {
    reaping: Reaping,
    /// Completions that it has not taken.
    arrived: u32,
    /// Issued and not handed over; and issued since a batch was full, as a wait that hands over what there is begins no new one.
    queued: u32,
    of_batch: u32,
    wait: Option<Wait>,
    /// A request was issued since the last look.
    has_issued: bool,
    batches: Batches,
}

impl Reaper {
    pub(super) fn new(reaping: Reaping) -> Self {
        Self {
            reaping,
            arrived: 0,
            queued: 0,
            of_batch: 0,
            wait: None,
            has_issued: false,
            batches: Batches::default(),
        }
    }

    pub(super) fn arrived(&mut self) {
        self.arrived += 1;
    }

    pub(super) fn issued(&mut self) {
        self.queued += 1;
        self.of_batch += 1;
        self.has_issued = true;
    }

    /// What was counted since this was asked last.
    pub(super) fn batches(&mut self) -> Batches {
        std::mem::take(&mut self.batches)
    }

    /// A flush begins that the thread waits in; it is among those in flight.
    pub(super) fn flushes(&mut self, in_flight: u32) {
        self.count_levels(in_flight, 1);
    }

    fn count_levels(&mut self, in_flight: u32, requests: u32) {
        self.batches.levels[in_flight.max(1).ilog2().min(6) as usize] += u64::from(requests);
    }

    fn hand_over(&mut self) {
        if self.queued > 0 {
            self.batches.handed_over[place(self.queued)] += 1;
            self.queued = 0;
        }
    }

    /// A batch is full, or nothing is to be kept back any longer.
    fn end_batch(&mut self, in_flight: u32) {
        self.count_levels(in_flight, self.of_batch);
        self.of_batch = 0;
        self.hand_over();
    }

    fn take(&mut self, completions: u32) -> Next {
        self.arrived -= completions;
        self.batches.taken[place(completions)] += 1;
        Next::Reap(completions)
    }

    /// What it does before it issues anything, if it does.
    pub(super) fn look(&mut self, in_flight: u32) -> Option<Next> {
        if self.of_batch >= self.reaping.batch {
            self.end_batch(in_flight);
        }
        let until_low = in_flight >= self.reaping.depth;
        let polls = std::mem::take(&mut self.has_issued) && self.reaping.polls && in_flight > 0;
        if self.wait.is_none() && (until_low || polls) {
            let least = self.reaping.least;
            self.wait = Some(Wait { least, until_low });
        }
        let Wait { least, until_low } = self.wait?;
        self.hand_over();
        let least = least.min(in_flight);
        if self.arrived < least {
            return Some(Next::Blocked);
        }
        let taken = self.arrived.min(self.reaping.most.max(least));
        if !until_low || in_flight - taken <= self.reaping.low {
            self.wait = None;
        }
        Some(self.take(taken))
    }

    /// What it does before a flush that it waits in: what is issued is handed over first, and then it takes what it takes at
    /// once.
    pub(super) fn look_before_flush(&mut self, in_flight: u32) -> Option<Next> {
        if self.queued == 0 {
            return None;
        }
        self.end_batch(in_flight);
        self.wait = Some(Wait {
            least: self.reaping.least,
            // The flush has its place already.
            until_low: in_flight + 1 >= self.reaping.depth,
        });
        self.look(in_flight)
    }

    /// What it does until nothing is in flight: takes what comes.
    pub(super) fn quiesce(&mut self, in_flight: u32) -> Next {
        self.end_batch(in_flight);
        match self.arrived.min(self.reaping.most) {
            0 => Next::Blocked,
            taken => self.take(taken),
        }
    }

    /// What it does at the end of a pass: waits for all in one call.
    pub(super) fn drain(&mut self, in_flight: u32) -> Next {
        self.hand_over();
        match self.arrived < in_flight {
            true => Next::Blocked,
            false => self.take(in_flight),
        }
    }
}
