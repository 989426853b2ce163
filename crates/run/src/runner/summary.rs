//! Sums over a run: what is known of it before, and what is said of it after.

use crate::config::{RunConfig, Traced};
use crate::report::number::count_of;
use crate::stats::JobResult;
use lodger_core::observe::{Counters, Tracer};
use lodger_core::{DriveSpec, Precondition};
use lodger_workload::Job;
use lodger_workload::fio::errno;
use std::collections::BTreeMap;

/// When the last job will have run its time: stages one after the other, each as long as its longest job.
pub(super) fn expected_ps(jobs: &[Job]) -> Option<u64> {
    let mut stages = BTreeMap::new();
    for job in jobs {
        let longest = stages.entry(job.stage).or_insert(0);
        *longest = job.runs_ps()?.max(*longest);
    }
    let all = stages.values();
    Some(all.fold(0, |sum: u64, stage| sum.saturating_add(*stage)))
}

/// Host memory in use: the data roles' shares, whose sizes are fixed, and the map's.
pub(crate) fn hmb_used_bytes<T: Tracer>(host: &Traced<T>) -> u64 {
    let drive = &host.drive;
    (drive.hmb_data_bytes() + drive.hmb_map_bytes()).min(drive.hmb_usable_bytes())
}

/// How much of the time the resources of one kind were busy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Busy {
    /// What they are: `die`, `channel`, `core`.
    pub kind: &'static str,
    /// How many there are.
    pub number: usize,
    /// Mean share of them all, 0 to 1.
    pub mean: f64,
    /// Share of the busiest, 0 to 1: what limits a drive whose load lies on one die, whatever the mean is.
    pub most: f64,
    /// Which that is, counted from 0.
    pub busiest: usize,
}

/// How long each resource has been busy: those of one kind beside each other, kinds as the drive lists them.
pub(crate) fn busy_ps<T: Tracer>(host: &Traced<T>) -> Vec<u64> {
    let kinds = host.drive.busy_ps().into_iter();
    kinds.flat_map(|(_, each)| each).collect()
}

/// How much of `measured_ps` each kind of resource was busy, where each resource was for `busy_ps`.
pub(crate) fn utilisation<T: Tracer>(
    host: &Traced<T>,
    busy_ps: &[u64],
    measured_ps: u64,
) -> Vec<Busy> {
    let mut left = busy_ps;
    let kinds = host.drive.busy_ps().into_iter();
    let kinds = kinds.map(|(kind, each)| {
        let (these, others) = left.split_at(each.len().min(left.len()));
        left = others;
        busy(kind, these, measured_ps)
    });
    kinds.collect()
}

fn busy(kind: &'static str, busy_ps: &[u64], measured_ps: u64) -> Busy {
    let number = busy_ps.len();
    // What is booked may end after the last completion.
    let share = |busy_ps: u64, of: usize| {
        let all = measured_ps.max(1) as f64 * of.max(1) as f64;
        (busy_ps as f64 / all).min(1.0)
    };
    let all: u64 = busy_ps.iter().sum();
    // The first of several that are as busy.
    let most = busy_ps.iter().copied().max().unwrap_or(0);
    Busy {
        kind,
        number,
        mean: share(all, number),
        most: share(most, 1),
        busiest: busy_ps.iter().position(|ps| *ps == most).unwrap_or(0),
    }
}

/// A word about jobs that no depth lets keep their latency.
pub(crate) fn too_slow(jobs: &[JobResult]) -> impl Iterator<Item = String> + '_ {
    let missed = jobs.iter().filter_map(|job| {
        let found = job.latency.filter(|found| found.missed)?;
        Some((job, found))
    });
    missed.map(|(job, found)| {
        let ended = if found.percentile < 100.0 {
            "kept no depth"
        } else {
            "ended early"
        };
        format!(
            "job `{}` {ended}: one request at a time misses its `latency_target` of {} ns, too",
            job.name, found.target_ns
        )
    })
}

/// Share of what was written from which on the room that it found is worth a word.
const INTO_ROOM_MIN: f64 = 0.05;

/// Share of the bytes written that found room from the start, before anything had to be collected for it.
pub(crate) fn share_into_room(counters: &Counters) -> f64 {
    counters.written_into_room_bytes as f64 / counters.host_written_bytes.max(1) as f64
}

/// A word about writes that met nothing of the steady state that `--precondition random` names.
pub(super) fn nothing_collected(config: &RunConfig, counters: &Counters) -> Option<String> {
    let written_bytes = counters.host_written_bytes;
    let is_written = written_bytes > counters.host_read_bytes / 10;
    let share = share_into_room(counters);
    if config.precondition != Precondition::Random || !is_written || share < INTO_ROOM_MIN {
        return None;
    }
    let room = match config.spec().ftl.slc_superblocks > 0 {
        true => "the single-bit cache, which",
        false => "the room that",
    };
    let what = match share < 1.0 {
        true => format!("{:.0} % of what was written went into", share * 100.0),
        false => "what was written fits in".to_owned(),
    };
    Some(format!(
        "{what} {room} `--precondition random` leaves empty, before anything had to be collected for it: these are not the \
         rates of the steady state; write more, and in a job file leave the beginning out with `ramp_time`"
    ))
}

/// A word about spare that was meant as a percentage.
pub(super) fn spare(spec: &DriveSpec) -> Option<String> {
    let share = spec.ftl.overprovisioning;
    (share >= 1.0).then(|| {
        format!(
            "`ftl.overprovisioning` is {share}, so there is {:.0} % of the capacity to spare; {share} % is {}",
            share * 100.0,
            share / 100.0
        )
    })
}

/// Share of the look-ups of the map from which on where they were answered is worth a word.
const HELD_BEYOND_MIN: f64 = 0.02;

/// A word about changed parts of the map that answer while they wait to be written, in memory that no size speaks of.
pub(super) fn held_beyond(counters: &Counters) -> Option<String> {
    let map = &counters.map;
    let share = map.waiting_hits as f64 / map.lookups.max(1) as f64;
    (share >= HELD_BEYOND_MIN).then(|| {
        format!(
            "{:.1} % of the look-ups of the map were answered by changed parts of it that had given way and waited to be written: \
             up to a quarter of the map cache, and what programs fall behind with, beside what `role.map.size` says",
            share * 100.0,
        )
    })
}

/// A word about requests that the drive refused.
pub(crate) fn refused(jobs: &[JobResult]) -> Option<String> {
    let errors: u64 = jobs.iter().map(|job| job.errors).sum();
    let status = jobs.iter().find_map(|job| job.first_error)?;
    let requests = count_of(errors, "request");
    let mut words =
        format!("the drive refused {requests} (the first: {status:?}): not in the statistics");
    let ended: Vec<&JobResult> = jobs.iter().filter(|job| job.failure.is_some()).collect();
    if let Some(first) = ended.first() {
        let names = match ended.len() {
            1 => format!("job `{}`", first.name),
            many => format!(
                "`{}` and {}",
                first.name,
                count_of(many as u64 - 1, "other job")
            ),
        };
        // fio's own list of errors to go on after has EIO and not ENODATA (`td_error.c`).
        let goes_on = match first.failure.map(errno) {
            Some(5) => "continue_on_error=all",
            Some(22) => "ignore_error=EINVAL,EINVAL",
            _ => "ignore_error=ENODATA,ENODATA",
        };
        words += &format!("; {names} ended there, as fio's jobs do: with `{goes_on}` it goes on");
    }
    Some(words)
}
