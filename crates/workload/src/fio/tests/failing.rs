//! What does a job do about requests that fail?

use super::{MS, US, count, job, try_parse};
use crate::fio::errno;
use crate::{Counting, Job, Next};
use lodger_core::{Completion, Op, Request, Status};
use std::collections::VecDeque;

/// Runs a job to its end on a drive that answers the requests in order, each 100 us after the last, and as `answer` says.
fn run(job: &mut Job, answer: impl Fn(usize, &Request) -> Status) -> Vec<Request> {
    let (mut now_ps, mut log) = (0, Vec::new());
    let (mut in_flight, mut arrived) = (VecDeque::new(), VecDeque::new());
    loop {
        match job.next(now_ps) {
            Next::Submit(request) => {
                in_flight.push_back((log.len(), job.takes_later(request.op)));
                log.push(request);
                assert!(log.len() < 10_000, "it does not end");
            }
            Next::Reap(completions) => {
                for completion in arrived.drain(..completions as usize) {
                    job.complete(&completion);
                }
            }
            Next::At(at_ps) if in_flight.is_empty() => now_ps = at_ps,
            Next::At(_) | Next::Blocked => {
                now_ps += 100 * US;
                let (place, later) = in_flight.pop_front().expect("it waits for nothing");
                let request: Request = log[place];
                let completion = Completion {
                    tag: request.tag,
                    op: request.op,
                    status: answer(place, &request),
                    submitted_ps: now_ps - 100 * US,
                    completed_ps: now_ps,
                };
                if later {
                    arrived.push_back(completion);
                    job.arrived();
                } else {
                    job.complete(&completion);
                }
            }
            Next::Call { .. } => unreachable!("a fio job knows no byte window"),
            Next::Done => {
                assert!(in_flight.is_empty() && arrived.is_empty());
                return log;
            }
        }
    }
}

fn from(place: usize, status: Status) -> impl Fn(usize, &Request) -> Status {
    move |at, _| if at >= place { status } else { Status::Success }
}

#[test]
fn a_job_ends_at_its_first_error_and_what_is_in_flight_completes() {
    let write = "rw=randwrite\nbs=4k\nsize=1m\nnorandommap\n";
    // The eleventh fails: one at a time nothing follows, with eight in flight the seven behind it, and of those that are taken
    // by fours what was handed over before.
    for (options, requests) in [
        ("", 11),
        ("iodepth=8\nioengine=libaio", 18),
        (
            "iodepth=8\nioengine=libaio\niodepth_batch_complete_min=4",
            16,
        ),
        ("loops=4", 11),
        ("time_based\nruntime=1", 11),
        ("end_fsync=1", 11),
        ("verify=crc32c", 11),
        ("thinktime=1000", 11),
    ] {
        let mut job = job(&format!("{write}{options}"));
        let log = run(&mut job, from(10, Status::ReadOnly));
        assert_eq!(log.len(), requests, "{options}");
        assert_eq!(job.failure(), Some(Status::ReadOnly), "{options}");
    }
    // The null: on a drive that refuses nothing it is done after all of its bytes.
    let mut whole = job(write);
    assert_eq!(run(&mut whole, |_, _| Status::Success).len(), 256);
    assert_eq!(whole.failure(), None);
}

#[test]
fn a_job_goes_on_after_errors_that_it_is_to_survive() {
    let mix = "rw=rw\nbs=4k\nsize=1m\nnumber_ios=200\n";
    let only = |op: Op, status: Status| {
        move |_: usize, request: &Request| match request.op == op {
            true => status,
            false => Status::Success,
        }
    };
    let (lost, refused) = (Status::MediaError, Status::ReadOnly);
    for (options, op, status, goes_on) in [
        ("", Op::Read, refused, false),
        ("continue_on_error=none", Op::Write, refused, false),
        ("continue_on_error=verify", Op::Write, refused, false),
        ("continue_on_error=read", Op::Read, refused, true),
        ("continue_on_error=read", Op::Write, refused, false),
        ("continue_on_error=write", Op::Write, refused, true),
        ("continue_on_error=write", Op::Read, refused, false),
        ("continue_on_error=io", Op::Read, refused, true),
        ("continue_on_error=all", Op::Write, refused, true),
        ("continue_on_error=1", Op::Write, refused, true),
        ("continue_on_error=0", Op::Write, refused, false),
        // Linux makes ENODATA of lost data, which is not among those that fio goes on after unless it is told.
        ("continue_on_error=all", Op::Read, lost, false),
        ("ignore_error=ENODATA", Op::Read, lost, true),
        ("ignore_error=0x3d", Op::Read, lost, true),
        ("ignore_error=ENODATA", Op::Write, lost, false),
        ("ignore_error=,EIO:61", Op::Write, lost, true),
        ("ignore_error=ENODATA", Op::Read, refused, false),
        (
            "ignore_error=EIO\ncontinue_on_error=none",
            Op::Read,
            refused,
            false,
        ),
    ] {
        let mut job = job(&format!("{mix}{options}"));
        let log = run(&mut job, only(op, status));
        assert_eq!(
            log.len() == 200,
            goes_on,
            "{options}, {op:?}: {}",
            log.len()
        );
        assert_eq!(job.failure().is_none(), goes_on, "{options}, {op:?}");
    }
}

#[test]
fn flushes_fail_as_writes_do() {
    let failing = |_: usize, request: &Request| match request.op {
        Op::Flush => Status::MediaError,
        _ => Status::Success,
    };
    let write = "rw=write\nbs=4k\nsize=1m\n";
    for (options, writes) in [
        ("fsync=16", 16),
        ("fsync=16\nignore_error=,ENODATA", 256),
        // At the end nothing is left to be done; that it failed is known.
        ("end_fsync=1", 256),
    ] {
        let mut job = job(&format!("{write}{options}"));
        let log = run(&mut job, failing);
        assert_eq!(count(&log, Op::Write), writes, "{options}");
        let survives = options.contains("ignore");
        assert_eq!(job.failure().is_none(), survives, "{options}");
    }
}

#[test]
fn no_flush_ends_a_write_that_failed() {
    let mut job = job("rw=write\nbs=4k\nsize=64k\nsync=1\ncontinue_on_error=write");
    let log = run(&mut job, |_, request| match request.offset_bytes {
        8192 if request.op == Op::Write => Status::ReadOnly,
        _ => Status::Success,
    });
    assert_eq!((count(&log, Op::Write), count(&log, Op::Flush)), (16, 15));
    let refused = Completion {
        tag: 0,
        op: Op::Write,
        status: Status::ReadOnly,
        submitted_ps: 0,
        completed_ps: MS,
    };
    assert_eq!(job.counted(&refused), Counting::Yes);
    let written = Completion {
        status: Status::Success,
        ..refused
    };
    assert_eq!(job.counted(&written), Counting::Head);
}

#[test]
fn what_cannot_be_survived_is_said() {
    let message = |options: &str| {
        let error = try_parse(&format!("[job]\n{options}\n")).expect_err("no such error");
        error.to_string()
    };
    assert_eq!(
        message("continue_on_error=reads"),
        "`continue_on_error` must be `none`, `read`, `write`, `io`, `verify` or `all`, found `reads` (job.fio:2)"
    );
    for options in ["ENODAT", "0", "EIO,EIO,EIO,EIO", "", "5:"] {
        let message = message(&format!("ignore_error={options}"));
        assert!(
            message.contains("`ignore_error` must be errors of"),
            "{message}"
        );
    }
}

#[test]
fn numbers_are_those_of_linux() {
    let numbers = [
        (Status::Success, 0),
        (Status::ReadOnly, 5),
        (Status::InvalidField, 22),
        (Status::MediaError, 61),
    ];
    for (status, number) in numbers {
        assert_eq!(errno(status), number);
    }
}
