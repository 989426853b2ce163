//! What a run does over time: a row for each interval, from the start of the run to its end.
//!
//! A row holds the requests that completed in it and that count, as [`crate::JobResult`] counts them, and what
//! the drive counted meanwhile outside of ramps: rows add up to the totals of the run. An interval holds its start, not its end.

mod drawn;
mod row;
mod table;

pub use table::{Column, Table, Values};

use crate::advise::parse_time_ns;
use crate::error::Error;
use crate::runner::{DriveState, Observer, Ramp, RunResult};
use crate::stats::direction_of;
use lodger_core::observe::Histogram;
use lodger_core::time::{NS, S, US};
use lodger_core::{Completion, DriveSpec, Request, Status};
use row::{COMMITS_AT, COUNTED, Counts, KINDS, Requests, Row, State, counted};
use std::collections::BTreeMap;
use table::Has;

/// Most rows of an interval that was asked for, some 100 MB of memory; a run that goes on has intervals twice as long.
const ROWS_MAX: usize = 100_000;
/// Most rows of an interval that is chosen by itself; a fifth of them is left when it grows.
const CHOSEN_ROWS_MAX: usize = 1_000;
/// The interval a choice begins with; it becomes 2, 10, 20, 100 ... times as long.
const FIRST_PS: u64 = US;

/// How long the intervals are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interval {
    /// So long that there are 200 to 1000, or all microseconds of a shorter run.
    #[default]
    Chosen,
    /// Picoseconds.
    Exactly(u64),
}

impl std::str::FromStr for Interval {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self, Error> {
        let most_ns = 24 * 3600 * (S / NS);
        match parse_time_ns(word) {
            Some(ns) if (US / NS..=most_ns).contains(&ns) => Ok(Interval::Exactly(ns * NS)),
            _ => {
                let found = word.escape_debug();
                let message = format!(
                    "`--timeline-interval` must be a time from 1us to 86400s, found `{found}`"
                );
                Err(Error::input(message).hint(
                    "units are us, ms and s, such as `100ms`; without the option a fitting interval is chosen",
                ))
            }
        }
    }
}

/// Requests of the interval under way.
#[derive(Clone, Debug, Default)]
struct Open {
    bytes: [u64; KINDS],
    latencies: [Option<Box<Histogram>>; KINDS],
}

impl Open {
    fn add(&mut self, direction: usize, bytes: u64, clat_ns: u64) {
        self.bytes[direction] += bytes;
        self.latencies[direction]
            .get_or_insert_with(Box::default)
            .record(clat_ns);
    }

    fn close(&mut self) -> [Requests; KINDS] {
        let Open { bytes, latencies } = std::mem::take(self);
        std::array::from_fn(|at| match &latencies[at] {
            Some(latencies) => Requests::new(bytes[at], latencies),
            None => Requests::default(),
        })
    }
}

/// A job's requests of its ramp, which count only if the job ends before it does.
#[derive(Clone, Debug, Default)]
struct JobRamp {
    counted_from_ps: u64,
    open: Open,
    /// By number of the row.
    rows: BTreeMap<usize, [Requests; KINDS]>,
}

impl JobRamp {
    fn add(&mut self, row: usize, requests: &[Requests; KINDS]) {
        let ours = self.rows.entry(row).or_default();
        for (ours, theirs) in ours.iter_mut().zip(requests) {
            ours.merge(theirs);
        }
    }

    fn close(&mut self, row: usize) {
        if self.open.latencies.iter().any(Option::is_some) {
            let requests = self.open.close();
            self.add(row, &requests);
        }
    }
}

/// Watches a run, interval by interval.
#[derive(Clone, Debug)]
pub struct Timeline {
    asked: Interval,
    interval_ps: u64,
    /// The next factor of a chosen interval is 5, not 2.
    by_five: bool,
    submit_ps: u64,
    slc_superblocks: u32,
    slc_dynamic: bool,
    read_cache: bool,
    hpb: bool,
    ramps: Vec<JobRamp>,
    rows: Vec<Row>,
    /// The row under way.
    open: Open,
    start_ps: u64,
    /// What the drive had counted when it was looked at last.
    counted: [u64; COUNTED],
    /// What it has counted in the row under way up to then, and of that what a ramp of all jobs has.
    counts: Counts,
    /// Every job that runs is in its ramp.
    in_ramp: bool,
}

impl Timeline {
    /// Watches from now on. `submit_ps`: what of a latency is the submission (`host.submit_ps` of the
    /// drive's spec), which fio's completion latency leaves out.
    #[must_use]
    pub fn new(interval: Interval, spec: &DriveSpec, submit_ps: u64) -> Self {
        let interval_ps = match interval {
            Interval::Chosen => FIRST_PS,
            Interval::Exactly(ps) => ps,
        };
        Timeline {
            asked: interval,
            interval_ps,
            by_five: false,
            submit_ps,
            slc_superblocks: spec.ftl.slc_superblocks,
            slc_dynamic: spec.ftl.slc_dynamic_permille > 0,
            read_cache: spec.roles.read_cache.is_some(),
            hpb: false,
            ramps: Vec::new(),
            rows: Vec::new(),
            open: Open::default(),
            start_ps: 0,
            counted: [0; COUNTED],
            counts: Counts::default(),
            in_ramp: false,
        }
    }

    /// The last instant of the row under way.
    fn last_ps(&self) -> u64 {
        self.start_ps + (self.interval_ps - 1)
    }

    /// What the row under way has come to.
    fn take_row(&mut self, length_ps: u64, drive: &DriveState) -> Row {
        self.count(drive);
        self.hpb |= drive.counters.hpb.present;
        Row {
            start_ps: self.start_ps,
            length_ps,
            requests: self.open.close(),
            counts: std::mem::take(&mut self.counts),
            state: State {
                free_superblocks: drive.free_superblocks,
                slc_free_superblocks: drive.slc_free_superblocks,
                slc_borrowed_superblocks: drive.slc_borrowed_superblocks,
                hmb_used_bytes: drive.hmb_used_bytes,
            },
        }
    }

    /// A hit on an entry of the host's is counted when it is looked up, and taken back when the entry turns out to be
    /// stale: from the rows that counted it.
    fn take_back(&mut self, now: u64, before: u64) {
        let mut too_many = before.saturating_sub(now);
        let rows = self.rows.iter_mut().rev().map(|row| &mut row.counts);
        for counts in std::iter::once(&mut self.counts).chain(rows) {
            if too_many == 0 {
                return;
            }
            let hits = &mut counts.of(self.in_ramp)[row::HOST_HITS_AT];
            let taken = too_many.min(*hits);
            *hits -= taken;
            too_many -= taken;
        }
    }

    /// What the drive has counted since it was looked at last.
    fn count(&mut self, drive: &DriveState) {
        let now = counted(&drive.counters);
        let before = std::mem::replace(&mut self.counted, now);
        self.take_back(now[row::HOST_HITS_AT], before[row::HOST_HITS_AT]);
        let counts = self.counts.of(self.in_ramp);
        for (at, count) in counts.iter_mut().enumerate() {
            *count += now[at].saturating_sub(before[at]);
        }
    }

    /// The row under way is over.
    fn close(&mut self, length_ps: u64, drive: &DriveState) {
        let row = self.take_row(length_ps, drive);
        for ramp in &mut self.ramps {
            ramp.close(self.rows.len());
        }
        self.rows.push(row);
        self.start_ps += length_ps;
        if self.asked == Interval::Chosen && self.rows.len() == CHOSEN_ROWS_MAX {
            self.coarsen(if self.by_five { 5 } else { 2 });
            self.by_five = !self.by_five;
        }
    }

    /// There is room for one more row.
    fn make_room(&mut self) {
        if self.rows.len() == ROWS_MAX {
            self.coarsen(2);
        }
    }

    /// Intervals become longer; the number of rows is a multiple of the factor.
    fn coarsen(&mut self, factor: usize) {
        self.interval_ps *= factor as u64;
        self.rows = merged(&self.rows, factor);
        for ramp in &mut self.ramps {
            for (at, requests) in std::mem::take(&mut ramp.rows) {
                ramp.add(at / factor, &requests);
            }
        }
    }

    /// The rows, of a run that came to this.
    #[must_use]
    pub fn finish(mut self, result: &RunResult) -> Table {
        for (ramp, job) in std::mem::take(&mut self.ramps).iter().zip(&result.jobs) {
            // As in fio, a job that ends before its ramp is counted whole.
            if job.start_ps < ramp.counted_from_ps {
                for (at, requests) in &ramp.rows {
                    self.rows[*at].add(requests);
                }
            }
        }
        let has = Has {
            map_tiers: result.map_tiers.clone(),
            hpb: self.hpb,
            read_cache: self.read_cache,
            slc_superblocks: self.slc_superblocks,
            slc_dynamic: self.slc_dynamic,
            database: result.jobs.iter().any(|job| job.logging.is_some()),
        };
        let mut table = Table::new(&self.rows, (self.asked, self.interval_ps), &has);
        table.drawn = self.drawn(&has);
        table
    }
}

/// Each `factor` rows become one.
fn merged(rows: &[Row], factor: usize) -> Vec<Row> {
    let chunks = rows.chunks(factor);
    let each = chunks.map(|chunk| {
        let mut row = chunk[0].clone();
        for next in &chunk[1..] {
            row.merge(next);
        }
        row
    });
    each.collect()
}

impl Observer for Timeline {
    fn begins(&mut self, job: usize, counted_from_ps: u64) {
        if self.ramps.len() <= job {
            self.ramps.resize_with(job + 1, JobRamp::default);
        }
        self.ramps[job].counted_from_ps = counted_from_ps;
    }

    fn counts(&mut self, job: usize, request: &Request, completion: &Completion) {
        if completion.status != Status::Success {
            return;
        }
        let direction = direction_of(completion.op);
        let latency_ps = completion.completed_ps - completion.submitted_ps;
        let clat_ns = latency_ps.saturating_sub(self.submit_ps) / NS;
        let ramp = &mut self.ramps[job];
        let open = match completion.submitted_ps < ramp.counted_from_ps {
            true => &mut ramp.open,
            false => &mut self.open,
        };
        open.add(direction, request.length_bytes, clat_ns);
    }

    fn committed(&mut self, _now_ps: u64, latency_ns: u64) {
        self.open.add(COMMITS_AT, 0, latency_ns);
    }

    fn ramp(&mut self, ramp: Ramp, drive: &DriveState) {
        self.count(drive);
        self.in_ramp = ramp == Ramp::Begins;
        let rows = self.rows.iter_mut().map(|row| &mut row.counts);
        for counts in rows.chain([&mut self.counts]) {
            match ramp {
                Ramp::Begins => {}
                Ramp::Ends => counts.in_ramp = [0; COUNTED],
                Ramp::Counts => counts.ramp_counts(),
            }
        }
    }

    #[inline]
    fn next_look_ps(&self) -> u64 {
        self.last_ps()
    }

    fn look(&mut self, drive: &DriveState) {
        if drive.now_ps < self.last_ps() {
            return;
        }
        self.make_room();
        // What would have been a row more may be the first half of a longer one.
        if drive.now_ps >= self.last_ps() {
            self.close(self.interval_ps, drive);
        }
    }

    fn ended(&mut self, drive: &DriveState) {
        let length_ps = drive.now_ps.saturating_sub(self.start_ps);
        if length_ps > 0 || self.rows.is_empty() {
            self.make_room();
            return self.close(length_ps, drive);
        }
        // What happens at the last instant alone belongs to the interval before it.
        let row = self.take_row(0, drive);
        let last = self.rows.len() - 1;
        for ramp in &mut self.ramps {
            ramp.close(last);
        }
        self.rows[last].merge(&row);
    }
}
