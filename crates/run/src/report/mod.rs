//! What a run found out, in fio's words and in Lodger's.

mod ageing;
mod busy;
pub mod compare;
mod drive;
pub(crate) mod forms;
mod hpb;
mod json;
pub(crate) mod latency;
pub(crate) mod number;
pub(crate) mod page;
mod steady;
mod terse;
mod text;
pub(crate) mod together;
mod trace;
mod wear;

pub(crate) use drive::programmed_bytes;
pub use drive::{counted, toml_value, waf};
pub use json::{json, json_value};
pub use page::{compare::page as comparison_page, page};
pub use terse::terse;
pub use text::text;
pub use trace::trace_json;

use crate::config::RunConfig;
use crate::runner::RunResult;
use crate::stats::{Direction, JobResult};
use latency::Latencies;
use lodger_core::observe::Histogram;
use lodger_core::time::{MS, S};
use lodger_workload::fio::errno;

/// fio's version whose layout and text are followed.
pub const FIO_VERSION: &str = "fio-3.33";

/// How long requests of a direction took when the trace was recorded, if it says.
fn recorded<'a>(job: &'a JobResult, name: &str) -> Option<&'a Histogram> {
    let all = job.trace.as_deref()?;
    let found = match name {
        "read" => &all.read,
        "write" => &all.write,
        _ => &all.trim,
    };
    (found.count() > 0).then_some(found)
}

/// The directions that fio reports one by one.
pub(crate) const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];
/// fio's name for flushes.
pub(crate) const SYNC: &str = "sync";
/// All that jobs ask for: the directions, and flushes.
pub(crate) const KINDS: [&str; 4] = [DIRECTIONS[0], DIRECTIONS[1], DIRECTIONS[2], SYNC];

/// A run to report on.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// What was run.
    pub config: &'a RunConfig,
    /// What came out.
    pub result: &'a RunResult,
}

/// One entry of fio's `jobs`: a job, or with `group_reporting` a group of jobs.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) job: JobResult,
    pub(crate) jobs: usize,
}

impl Direction {
    /// Requests per second of the time the job did this.
    pub(crate) fn ios_per_second(&self) -> f64 {
        per_second(self.ios, self.runtime_ps)
    }

    /// Bytes per second of the time the job did this.
    pub(crate) fn bytes_per_second(&self) -> f64 {
        per_second(self.bytes, self.runtime_ps)
    }
}

impl Entry {
    pub(crate) fn direction(&self, name: &str) -> &Direction {
        match name {
            "read" => &self.job.read,
            "write" => &self.job.write,
            SYNC => &self.job.sync,
            _ => &self.job.trim,
        }
    }

    /// Its latencies as fio tells them.
    pub(crate) fn latencies(&self, name: &str) -> Option<Latencies<'_>> {
        Latencies::of(name, self.direction(name), self.job.slat_ns)
    }

    /// Whether an option that says yes or no says yes; the job's own word counts before the global
    /// one.
    pub(crate) fn wants(&self, name: &str, otherwise: bool) -> bool {
        let of = |options: &[(String, String)]| {
            let found = options.iter().rev().find(|(key, _)| key == name);
            found.map(|(_, value)| value.trim() != "0")
        };
        of(&self.job.options)
            .or_else(|| of(&self.job.global_options))
            .unwrap_or(otherwise)
    }

    pub(crate) fn runtime_ms(&self) -> u64 {
        whole_ms(self.job.runtime_ps())
    }

    /// fio's `error`: 0, or the errno that Linux makes of the drive's answer.
    pub(crate) fn errno(&self) -> u32 {
        let sought = self.job.latency;
        // As fio has it: what ended the job, or else the first that it has survived.
        match self.job.failure.or(self.job.first_error) {
            // ETIMEDOUT, as fio has it, where not one request may miss `latency_target` and one at a time does.
            None if sought.is_some_and(|l| l.missed && l.percentile >= 100.0) => 110,
            None => 0,
            Some(status) => errno(status),
        }
    }

    /// How many requests failed and the errno of the first, which fio tells of jobs that are to go on after errors.
    pub(crate) fn survived(&self) -> Option<(u64, u32)> {
        let first = self.job.first_error.map_or(0, errno);
        (self.job.survives_errors).then_some((self.job.errors, first))
    }
}

pub(crate) fn per_second(n: u64, ps: u64) -> f64 {
    if ps == 0 {
        return 0.0;
    }
    n as f64 * S as f64 / ps as f64
}

/// Whole milliseconds as fio counts them; what took any time took one.
pub(crate) fn whole_ms(ps: u64) -> u64 {
    match ps {
        0 => 0,
        _ => (ps / MS + u64::from(ps % MS >= MS / 2)).max(1),
    }
}

/// The entries: consecutive jobs of a group with `group_reporting` become one.
pub(crate) fn entries(jobs: &[JobResult]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for job in jobs {
        match entries.last_mut() {
            Some(entry) if job.group_reporting && entry.job.group == job.group => {
                entry.job.merge(job);
                entry.jobs += 1;
            }
            _ => entries.push(Entry {
                job: job.clone(),
                jobs: 1,
            }),
        }
    }
    entries
}

/// One direction of a group of jobs, for fio's `Run status` and its shares of the whole.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GroupDirection {
    pub(crate) bytes: u64,
    pub(crate) min_bw: f64,
    pub(crate) max_bw: f64,
    pub(crate) min_run_ms: u64,
    pub(crate) max_run_ms: u64,
    max_run_ps: u64,
}

impl GroupDirection {
    pub(crate) fn of(entries: &[Entry], group: u32, name: &str) -> Self {
        let mut sum = GroupDirection::default();
        for entry in entries.iter().filter(|entry| entry.job.group == group) {
            let direction = entry.direction(name);
            if direction.ios == 0 {
                continue;
            }
            let bw = direction.bytes_per_second();
            let run_ms = whole_ms(direction.runtime_ps);
            if sum.max_run_ms == 0 {
                sum.min_bw = bw;
                sum.min_run_ms = run_ms;
            }
            sum.bytes += direction.bytes;
            sum.min_bw = sum.min_bw.min(bw);
            sum.max_bw = sum.max_bw.max(bw);
            sum.min_run_ms = sum.min_run_ms.min(run_ms);
            sum.max_run_ms = sum.max_run_ms.max(run_ms);
            sum.max_run_ps = sum.max_run_ps.max(direction.runtime_ps);
        }
        sum
    }

    /// Bytes per second of all together.
    pub(crate) fn bw(&self) -> f64 {
        per_second(self.bytes, self.max_run_ps)
    }
}

/// fio's distribution of latencies over fixed ranges, in per cent of all requests: below 1 us,
/// below 1 ms, and the rest. From the histogram's buckets, so a request within 1 % of a limit may
/// count on its other side.
pub(crate) struct Ranges {
    pub(crate) ns: [f64; 10],
    pub(crate) us: [f64; 10],
    pub(crate) ms: [f64; 12],
}

/// Upper limits of the ranges; of milliseconds there are two more.
pub(crate) const RANGE_LIMITS: [u64; 11] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000];

impl Ranges {
    pub(crate) fn of(entry: &Entry) -> Self {
        let mut counts = ([0u64; 10], [0u64; 10], [0u64; 12]);
        let mut all = 0;
        let range = |value: u64| RANGE_LIMITS.partition_point(|limit| *limit <= value);
        for name in DIRECTIONS {
            let Some(clat) = entry.direction(name).clat() else {
                continue;
            };
            all += clat.count();
            for (ns, count) in clat.bins() {
                match ns {
                    0..1_000 => counts.0[range(ns)] += count,
                    1_000..1_000_000 => counts.1[range(ns / 1_000)] += count,
                    _ => counts.2[range(ns / 1_000_000)] += count,
                }
            }
        }
        let share = |count: u64| percent(count, all);
        Self {
            ns: counts.0.map(share),
            us: counts.1.map(share),
            ms: counts.2.map(share),
        }
    }
}

pub(crate) fn percent(part: u64, all: u64) -> f64 {
    if all == 0 {
        return 0.0;
    }
    100.0 * part as f64 / all as f64
}

/// Shares of fio's depth levels. Flushes count as submissions but not as requests, as in fio, so
/// the shares may add up to more than 100.
pub(crate) fn depth_shares(entry: &Entry) -> [f64; 7] {
    let ios: u64 = DIRECTIONS
        .iter()
        .map(|name| entry.direction(name).ios)
        .sum();
    entry.job.depth_levels.map(|level| percent(level, ios))
}

/// Shares of how many requests were handed over, and completions taken, at once.
pub(crate) fn batch_shares(entry: &Entry) -> [[f64; 7]; 2] {
    [entry.job.handed_over, entry.job.taken].map(|counts| {
        let all = counts.iter().sum();
        counts.map(|count| percent(count, all))
    })
}
