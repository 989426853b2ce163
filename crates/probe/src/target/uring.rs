//! Transfers through io_uring: one thread, many in flight, and no waiting without end.

use super::{Io, Op, Sample, TargetError};
use lodger_uring::{DEPTH_MAX, Ring};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// When a device is given up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Longest time in which something is in flight and nothing completes.
    pub stall: Duration,
    /// How long cancelled transfers are waited for.
    pub grace: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            // Longer than Linux itself tries: 30 s, an abort, 30 s more and a reset for NVMe
            // (nvme_core.io_timeout), 30 s and five retries for SCSI.
            stall: Duration::from_secs(240),
            grace: Duration::from_secs(5),
        }
    }
}

/// A file behind a ring.
#[allow(missing_debug_implementations)]
pub(super) struct Queue {
    ring: Ring,
    /// What slots are used for: the transfer's index, and when it was issued.
    slots: Vec<(usize, Duration)>,
    free: Vec<usize>,
    in_flight: usize,
    pub patience: Patience,
}

impl Queue {
    /// Sets it up; the file is shared.
    ///
    /// # Errors
    /// If the kernel has no io_uring, or forbids it.
    pub(super) fn new(file: &File) -> io::Result<Self> {
        let mut ring = Ring::new(file.as_fd())?;
        // Nothing is queued: whether this call is allowed, too.
        ring.enter(false)?;
        Ok(Queue {
            ring,
            slots: Vec::new(),
            free: Vec::new(),
            in_flight: 0,
            patience: Patience::default(),
        })
    }

    /// Runs `ios` in order, `queue_depth` at a time, unless `stopped`. `judge` is told how each has
    /// ended (bytes moved, or the error; what a read brought) and what that means.
    ///
    /// # Errors
    /// The first of `judge`; what was not issued until then is not. If it is stopped, or nothing
    /// completes any more, after which the queue is of no use.
    pub(super) fn run(
        &mut self,
        ios: &[Io],
        queue_depth: u32,
        samples: &mut Vec<Sample>,
        stopped: fn() -> bool,
        mut judge: impl FnMut(usize, io::Result<usize>, &[u8]) -> Result<(), TargetError>,
    ) -> Result<(), TargetError> {
        if self.in_flight > 0 {
            return Err(no_answer("in an earlier run"));
        }
        samples.clear();
        samples.resize(ios.len(), Sample::default());
        self.make_room(ios, queue_depth);
        let began = Instant::now();
        let (mut left, mut last) = (ios.iter().enumerate(), Duration::ZERO);
        let mut result = Ok(());
        while left.len() + self.in_flight > 0 {
            if stopped() {
                self.take_back();
                return Err(TargetError::Interrupted);
            }
            // One at a time: each is timed from its own call.
            if !self.ring.has_queued()
                && let Some(slot) = self.free.pop_if(|_| left.len() > 0)
                && let Some((index, io)) = left.next()
            {
                self.in_flight += 1;
                self.slots[slot] = (index, began.elapsed());
                let queued = match io.op {
                    Op::Read => self.ring.read(slot, io.offset, io.bytes),
                    Op::Write => self.ring.write(slot, io.offset, io.bytes),
                };
                queued.map_err(system)?;
            }
            let all_issued = left.len() == 0 || self.free.is_empty();
            self.ring.enter(all_issued).map_err(system)?;
            while let Some((slot, moved)) = self.ring.reap() {
                last = began.elapsed();
                let (index, issued) = self.slots[slot];
                self.in_flight -= 1;
                self.free.push(slot);
                samples[index] = Sample::between(issued, last);
                let moved = moved.map(|bytes| bytes as usize);
                let incoming = self.ring.incoming(slot);
                let came = incoming.len().min(*moved.as_ref().unwrap_or(&0));
                let judged = judge(index, moved, &incoming[..came]);
                if judged.is_err() && result.is_ok() {
                    result = judged;
                    left = [].iter().enumerate();
                }
            }
            if self.in_flight > 0 && began.elapsed() - last > self.patience.stall {
                self.take_back();
                let stall = format!("for {} s", self.patience.stall.as_secs_f32());
                return Err(no_answer(&stall));
            }
        }
        result
    }

    fn make_room(&mut self, ios: &[Io], queue_depth: u32) {
        let longest = |op| {
            let these = ios.iter().filter(|io| io.op == op);
            these.map(|io| io.bytes as usize).max().unwrap_or(0)
        };
        let slots = ios.len().min(queue_depth.max(1) as usize).min(DEPTH_MAX);
        self.ring
            .make_room(slots, longest(Op::Read), longest(Op::Write));
        self.slots.resize(slots, (0, Duration::ZERO));
        self.free = (0..slots).rev().collect();
    }

    /// Cancels what is in flight and waits for its end, but not forever.
    fn take_back(&mut self) {
        let began = Instant::now();
        let mut busy: Vec<usize> = (0..self.slots.len())
            .filter(|slot| !self.free.contains(slot))
            .collect();
        while self.in_flight > 0 && began.elapsed() < self.patience.grace {
            if !self.ring.has_queued()
                && let Some(slot) = busy.pop()
                && self.ring.cancel(slot).is_err()
            {
                return;
            }
            if self.ring.enter(busy.is_empty()).is_err() {
                return;
            }
            while self.ring.reap().is_some() {
                self.in_flight -= 1;
            }
        }
    }
}

fn no_answer(when: &str) -> TargetError {
    TargetError::Gone(format!("it has not answered {when}"))
}

fn system(error: io::Error) -> TargetError {
    TargetError::Gone(format!("io_uring: {}", super::file::reason(&error)))
}

#[cfg(test)]
mod tests;
