//! What the drive did in the time that counts.
//!
//! A job's requests do not count in its ramp, so what the drive does for them does not either: time in which every job
//! that runs is in its ramp, or in the delay before it, is left out of the drive's numbers. As in fio, a job that ends
//! in its ramp counts whole, and so does the drive's time then.

use super::difference::Counted;
use super::{DriveState, Observer, Runner, order, summary};
use lodger_core::ftl::Wear;
use lodger_core::observe::{Counters, Tracer};

/// How much was programmed in one mode.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Worn {
    /// Slots, padding included.
    pub programmed_slots: u64,
    /// How often each cell was, as a mean.
    pub cycles: f64,
}

impl Worn {
    pub(crate) fn of(wear: &Wear) -> Self {
        Self {
            programmed_slots: wear.programmed_slots,
            cycles: wear.cycles,
        }
    }
}

/// A ramp of all jobs that run, as an observer hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ramp {
    /// What the drive counts from now on may not count.
    Begins,
    /// It does not, up to here.
    Ends,
    /// It does: a job has ended in its ramp.
    Counts,
}

/// Where the drive stands: all that its numbers are made of.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    pub(super) ps: u64,
    /// With a request in flight.
    pub(super) in_flight_ps: u64,
    pub(super) counters: Counters,
    pub(super) worn: [Worn; 2],
    /// How long each resource was busy.
    pub(super) busy_ps: Vec<u64>,
}

impl Totals {
    fn each(
        &mut self,
        part: &Totals,
        change: impl Fn(&mut u64, &u64),
        cycles: impl Fn(f64, f64) -> f64,
    ) {
        change(&mut self.ps, &part.ps);
        change(&mut self.in_flight_ps, &part.in_flight_ps);
        for (all, part) in self.worn.iter_mut().zip(&part.worn) {
            change(&mut all.programmed_slots, &part.programmed_slots);
            all.cycles = cycles(all.cycles, part.cycles);
        }
        self.busy_ps
            .resize(self.busy_ps.len().max(part.busy_ps.len()), 0);
        for (all, part) in self.busy_ps.iter_mut().zip(&part.busy_ps) {
            change(all, part);
        }
    }

    fn take(&mut self, part: &Totals) {
        self.each(part, u64::take, |all, part| (all - part).max(0.0));
        self.counters.take(&part.counters);
    }

    fn put(&mut self, part: &Totals) {
        self.each(part, u64::put, |all, part| all + part);
        self.counters.put(&part.counters);
    }
}

/// What does not count.
#[derive(Debug)]
pub(super) struct Measured {
    skipped: Totals,
    /// Since where it may not count.
    since: Option<Box<Totals>>,
    /// The last instant of that.
    until_ps: u64,
}

impl Measured {
    pub(super) fn new() -> Self {
        Self {
            skipped: Totals::default(),
            since: None,
            until_ps: u64::MAX,
        }
    }

    /// When it must be looked at the drive.
    #[inline]
    pub(super) fn next_ps(&self) -> u64 {
        self.until_ps
    }
}

impl<O: Observer, T: Tracer> Runner<'_, O, T> {
    pub(super) fn totals(&self) -> Totals {
        let now_ps = self.host.now_ps();
        let in_flight = self.free.len() < self.in_flight.len();
        let since_ps = if in_flight {
            now_ps - self.busy_since_ps
        } else {
            0
        };
        Totals {
            ps: now_ps,
            in_flight_ps: self.busy_ps + since_ps,
            counters: self.host.counters(),
            worn: self.host.drive.wear().each_ref().map(Worn::of),
            busy_ps: summary::busy_ps(&self.host),
        }
    }

    /// What counts, of a run that is over.
    pub(super) fn measured(&mut self) -> Totals {
        // A run that was interrupted in its ramp tells of that.
        self.tell_ramp(Ramp::Counts);
        let mut totals = self.totals();
        totals.take(&self.measured.skipped);
        totals
    }

    /// Jobs have begun or ended.
    pub(super) fn look_for_ramp(&mut self) {
        let now_ps = self.host.now_ps();
        let running =
            (0..self.jobs.len()).filter(|job| self.order.stands(*job) == order::Standing::Running);
        let (mut ramps, mut until_ps) = (false, u64::MAX);
        for job in running {
            ramps |= self.results[job].has_ramp();
            until_ps = until_ps.min(self.results[job].counted_from_ps());
        }
        if !ramps || until_ps <= now_ps {
            return self.tell_ramp(Ramp::Ends);
        }
        if self.measured.since.is_none() {
            self.measured.since = Some(Box::new(self.totals()));
            self.observer
                .ramp(Ramp::Begins, &DriveState::of(&self.host));
        }
        // A request of that instant counts, so everything before has happened.
        self.measured.until_ps = until_ps - 1;
    }

    /// What was left out up to now stays so, or counts.
    #[cold]
    pub(super) fn tell_ramp(&mut self, ramp: Ramp) {
        let Some(since) = self.measured.since.take() else {
            return;
        };
        self.measured.until_ps = u64::MAX;
        if ramp == Ramp::Ends {
            let mut part = self.totals();
            part.take(&since);
            self.measured.skipped.put(&part);
        }
        self.observer.ramp(ramp, &DriveState::of(&self.host));
    }
}
