//! Looks every second at the rates of jobs that end once those keep still.

use super::{Observer, Runner};
use crate::steady::SteadyResult;
use lodger_core::observe::Tracer;
use lodger_core::time::S;
use lodger_workload::Job;

/// Jobs that are looked at together.
#[derive(Debug)]
struct Watched {
    jobs: Vec<usize>,
    found: SteadyResult,
    start_ps: u64,
    /// When to look again; never before the first of the jobs has begun.
    next_ps: u64,
    /// Requests and bytes up to the last look.
    before: (u64, u64),
}

/// All of them.
#[derive(Debug)]
pub(super) struct SteadyStates {
    watched: Vec<Watched>,
    next_ps: u64,
}

impl SteadyStates {
    pub(super) fn new(jobs: &[Job]) -> Self {
        let mut watched: Vec<Watched> = Vec::new();
        for (index, job) in jobs.iter().enumerate() {
            let Some(wanted) = job.steady else {
                continue;
            };
            let together = watched.last_mut().filter(|last| {
                let first = &jobs[last.jobs[0]];
                job.group_reporting && first.group_reporting && first.group == job.group
            });
            match together {
                Some(last) => last.jobs.push(index),
                None => watched.push(Watched {
                    jobs: vec![index],
                    found: SteadyResult::new(wanted),
                    start_ps: 0,
                    next_ps: u64::MAX,
                    before: (0, 0),
                }),
            }
        }
        Self {
            watched,
            next_ps: u64::MAX,
        }
    }

    /// When to look next.
    #[inline]
    pub(super) fn next_ps(&self) -> u64 {
        self.next_ps
    }

    /// A job begins.
    pub(super) fn begin(&mut self, index: usize, now_ps: u64) {
        for watched in &mut self.watched {
            if watched.next_ps == u64::MAX
                && watched.jobs.contains(&index)
                && !watched.found.attained
            {
                watched.start_ps = now_ps;
                watched.next_ps = now_ps.saturating_add(S);
            }
        }
        self.plan();
    }

    fn plan(&mut self) {
        let next = self.watched.iter().map(|watched| watched.next_ps).min();
        self.next_ps = next.unwrap_or(u64::MAX);
    }

    /// What was found, with the job that it stands beside.
    pub(super) fn found(&mut self) -> impl Iterator<Item = (usize, SteadyResult)> {
        let all = std::mem::take(&mut self.watched).into_iter();
        all.map(|watched| (watched.jobs[0], watched.found))
    }
}

impl<O: Observer, T: Tracer> Runner<'_, O, T> {
    /// Looks at the rates of the second that has passed, and ends jobs.
    #[cold]
    pub(super) fn look_at_rates(&mut self) {
        let now_ps = self.host.now_ps();
        let mut steady = Vec::new();
        for watched in &mut self.steady.watched {
            if now_ps < watched.next_ps {
                continue;
            }
            let jobs = || watched.jobs.iter().map(|job| &self.results[*job]);
            let directions = || jobs().flat_map(|job| [&job.read, &job.write, &job.trim]);
            let ios: u64 = directions().map(|direction| direction.ios).sum();
            let bytes: u64 = directions().map(|direction| direction.bytes).sum();
            // A job that forgets its ramp counts anew.
            let since = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
            let (ios_before, bytes_before) = std::mem::replace(&mut watched.before, (ios, bytes));
            watched.next_ps = now_ps.saturating_add(S);
            // As in fio, the first second counted is the one after the ramp.
            let ramp_ps = match watched.found.wanted.ramp_ps {
                0 => 0,
                ramp_ps => ramp_ps.saturating_add(S),
            };
            if now_ps - watched.start_ps >= ramp_ps
                && watched
                    .found
                    .add(since(ios, ios_before), since(bytes, bytes_before))
            {
                steady.extend_from_slice(&watched.jobs);
                watched.next_ps = u64::MAX;
            }
        }
        self.steady.plan();
        for index in steady {
            self.end_job(index);
        }
    }
}
