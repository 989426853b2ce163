//! Tests of job files as a whole: what is asked of the drive for a given text.

mod amounts;
mod errors;
mod failing;
mod order;
mod parsing;
mod properties;
mod reaping;
mod replay;
mod timing;
mod verify;

use super::{Context, parse};
use crate::{Job, Next, Workload, WorkloadError};
use lodger_core::{Completion, Op, Request, Status};
use std::io;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const US: u64 = 1_000_000;
const MS: u64 = 1_000_000_000;
const S: u64 = 1_000_000_000_000;
/// Drive that the tests' jobs run on.
const DRIVE: u64 = 64 * MIB;

fn parse_with(
    text: &str,
    drive_bytes: u64,
    seed: u64,
    env: &dyn Fn(&str) -> Option<String>,
    include: &dyn Fn(&str) -> io::Result<String>,
) -> Result<Workload, WorkloadError> {
    let context = Context {
        file_name: "job.fio",
        env,
        include,
        drive_bytes,
        seed,
    };
    parse(text, &context)
}

fn try_parse(text: &str) -> Result<Workload, WorkloadError> {
    let env = |name: &str| (name == "SIZE").then(|| "2m".to_owned());
    let include = |name: &str| match name {
        "common.inc" | "jobs/beside.inc" => Ok("bs=8k\niodepth=4\n".to_owned()),
        "loop.inc" => Ok("include loop.inc\n".to_owned()),
        "section.inc" => Ok("[job]\n".to_owned()),
        "typo.inc" => Ok("# a comment\niodpeth=4\n".to_owned()),
        _ => Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
    };
    parse_with(text, DRIVE, 1, &env, &include)
}

fn parsed(text: &str) -> Workload {
    try_parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The only job of a file that has just the section `[job]` with these options.
fn job(options: &str) -> Job {
    let mut workload = parsed(&format!("[job]\n{options}\n"));
    assert_eq!(workload.jobs.len(), 1);
    workload.jobs.remove(0)
}

/// One request with the instants of submission and completion.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Done {
    request: Request,
    submitted_ps: u64,
    completed_ps: u64,
}

fn completion(done: &Done) -> Completion {
    Completion {
        tag: done.request.tag,
        op: done.request.op,
        status: Status::Success,
        submitted_ps: done.submitted_ps,
        completed_ps: done.completed_ps,
    }
}

/// Runs a job to its end against a drive that takes the same time for everything.
fn run_with(job: &mut Job, latency_ps: u64) -> Vec<Done> {
    let mut now_ps = 0;
    let mut log: Vec<Done> = Vec::new();
    let mut in_flight: std::collections::VecDeque<(usize, bool)> = Default::default();
    let mut arrived: std::collections::VecDeque<usize> = Default::default();
    let complete_first =
        |now_ps: &mut u64,
         job: &mut Job,
         log: &[Done],
         queue: &mut std::collections::VecDeque<(usize, bool)>,
         arrived: &mut std::collections::VecDeque<usize>| {
            let (first, later) = queue.pop_front().expect("blocked with nothing in flight");
            *now_ps = log[first].completed_ps;
            if later {
                arrived.push_back(first);
                job.arrived();
            } else {
                job.complete(&completion(&log[first]));
            }
        };
    loop {
        match job.next(now_ps) {
            Next::Submit(request) => {
                let mut known = in_flight.iter().map(|&(i, _)| i).chain(arrived.clone());
                assert!(
                    known.all(|i| log[i].request.tag != request.tag),
                    "a tag in flight was reused"
                );
                // Replays number their requests through.
                let numbered = matches!(job.source, crate::Source::Trace(_));
                assert!(numbered || request.tag < job.queue_depth);
                in_flight.push_back((log.len(), job.takes_later(request.op)));
                assert!(in_flight.len() + arrived.len() <= job.queue_depth as usize);
                log.push(Done {
                    request,
                    submitted_ps: now_ps,
                    completed_ps: now_ps + latency_ps,
                });
                assert!(log.len() < 5_000_000, "does not end");
            }
            Next::Reap(completions) => {
                for index in arrived.drain(..completions as usize) {
                    log[index].completed_ps = now_ps;
                    job.complete(&completion(&log[index]));
                }
            }
            Next::At(at_ps) => {
                assert!(at_ps > now_ps, "asked to wait for the past");
                match in_flight.front() {
                    Some(&(first, _)) if log[first].completed_ps <= at_ps => {
                        complete_first(&mut now_ps, job, &log, &mut in_flight, &mut arrived);
                    }
                    _ => now_ps = at_ps,
                }
            }
            Next::Call { .. } => panic!("a fio job knows no byte window"),
            Next::Blocked => {
                complete_first(&mut now_ps, job, &log, &mut in_flight, &mut arrived);
            }
            Next::Done => {
                assert!(
                    in_flight.is_empty() && arrived.is_empty(),
                    "done with requests in flight"
                );
                assert_eq!(job.next(now_ps), Next::Done);
                return log;
            }
        }
    }
}

/// Runs a job to its end, every request taking 100 us, and checks what holds for any job.
fn run(job: &mut Job) -> Vec<Request> {
    let expected = job.requests_expected;
    let log: Vec<Request> = run_with(job, 100 * US).iter().map(|d| d.request).collect();
    check(&log, DRIVE);
    if let Some(expected) = expected {
        assert_eq!(log.len() as u64, expected, "requests expected");
    }
    log
}

/// The drive's own rules for a request.
fn check(log: &[Request], drive_bytes: u64) {
    for request in log {
        if request.op == Op::Flush {
            assert_eq!((request.offset_bytes, request.length_bytes), (0, 0));
            continue;
        }
        assert!(request.length_bytes > 0, "{request:?}");
        assert!(request.offset_bytes % 512 == 0 && request.length_bytes % 512 == 0);
        assert!(
            request.offset_bytes + request.length_bytes <= drive_bytes,
            "{request:?}"
        );
    }
}

fn count(log: &[Request], op: Op) -> usize {
    log.iter().filter(|request| request.op == op).count()
}

fn bytes(log: &[Request]) -> u64 {
    log.iter().map(|request| request.length_bytes).sum()
}

fn offsets(log: &[Request]) -> Vec<u64> {
    log.iter().map(|request| request.offset_bytes).collect()
}
