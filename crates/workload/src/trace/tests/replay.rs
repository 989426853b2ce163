//! Does a replay ask for the right requests at the right instants?

use super::*;
use crate::trace::{CLOSED_QUEUE_DEPTH, Mode};
use crate::{Job, Next};
use lodger_core::{Completion, Request, Status};

const TRACE: &str = "time_us,op,offset_bytes,length_bytes,flags\n5,W,0,4096,FUA\n5,R,8192,512,\n\
                     7,F,0,0,\n9,D,4096,4096,\n";

fn job(mode: Mode) -> Job {
    let mut workload = read_well(TRACE).0.into_workload(mode).unwrap();
    assert_eq!(workload.jobs.len(), 1);
    workload.jobs.remove(0)
}

fn submitted(next: Next) -> Request {
    match next {
        Next::Submit(request) => request,
        other => panic!("expected a request, found {other:?}"),
    }
}

pub(super) fn done(job: &mut Job, request: Request, now_ps: u64) {
    job.complete(&Completion {
        tag: request.tag,
        op: request.op,
        status: Status::Success,
        submitted_ps: 0,
        completed_ps: now_ps,
    });
}

#[test]
fn timed_requests_come_at_their_instants_after_the_start_however_many_are_in_flight() {
    const START: u64 = 1_000_000_000;
    const US: u64 = 1_000_000;
    let mut job = job(Mode::Timed);
    assert_eq!((job.queue_depth, job.requests_expected), (0, Some(4)));
    let write = submitted(job.next(START));
    assert_eq!(
        write,
        Request {
            tag: 0,
            queue: 0,
            op: Op::Write,
            fua: true,
            offset_bytes: 0,
            length_bytes: 4096
        }
    );
    let read = submitted(job.next(START));
    assert_eq!((read.tag, read.op, read.offset_bytes), (1, Op::Read, 8192));
    assert_eq!(job.next(START), Next::At(START + 2 * US));
    done(&mut job, read, START + US);
    assert_eq!(job.next(START + 2 * US - 1), Next::At(START + 2 * US));
    let flush = submitted(job.next(START + 2 * US));
    assert_eq!((flush.op, flush.length_bytes), (Op::Flush, 0));
    // A late question is answered at once: the instant has passed.
    let trim = submitted(job.next(START + 50 * US));
    assert_eq!(trim.op, Op::Trim);
    assert_eq!(job.next(START + 51 * US), Next::Blocked);
    for request in [write, flush, trim] {
        done(&mut job, request, START + 60 * US);
    }
    assert_eq!(job.next(START + 60 * US), Next::Done);
    assert_eq!(job.next(START + 60 * US), Next::Done);
}

#[test]
fn closed_requests_keep_the_queue_full_in_order_whatever_their_times() {
    let mut job = job(Mode::Closed { queue_depth: 2 });
    assert_eq!(job.queue_depth, 2);
    let write = submitted(job.next(0));
    let read = submitted(job.next(0));
    assert_eq!(job.next(0), Next::Blocked);
    done(&mut job, read, 10);
    // The flush does not wait for the write before it, and the trim not for the flush.
    assert_eq!(submitted(job.next(10)).op, Op::Flush);
    assert_eq!(job.next(10), Next::Blocked);
    done(&mut job, write, 20);
    let trim = submitted(job.next(20));
    assert_eq!((trim.tag, trim.op), (3, Op::Trim));
    assert_eq!(job.next(20), Next::Blocked);
    done(&mut job, trim, 30);
    assert_eq!(job.next(30), Next::Blocked);
    done(&mut job, trim, 30);
    assert_eq!(job.next(30), Next::Done);
}

#[test]
fn a_job_carries_the_files_stem_and_fios_percentiles() {
    let load = |name| load(TRACE.as_bytes(), name, &Options::default()).unwrap().0;
    for (file, stem) in [
        ("/a/b/web_0.csv", "web_0"),
        ("x", "x"),
        ("-", "trace"),
        ("", "trace"),
    ] {
        let workload = load(file).into_workload(Mode::Timed).unwrap();
        assert_eq!(workload.jobs[0].name, stem);
        assert_eq!(workload.jobs[0].percentiles.len(), 17);
        assert!(workload.jobs[0].percentiles.is_sorted());
        assert_eq!(workload.description, "Lodger CSV, 4 requests");
    }
    let error = load("x").into_workload(Mode::Closed { queue_depth: 0 });
    assert!(error.unwrap_err().message.contains("at least 1"));
    assert_eq!(CLOSED_QUEUE_DEPTH, 32);
}

#[test]
fn an_instant_beyond_the_end_of_time_does_not_wrap() {
    let trace = Trace::from_records(
        "t",
        [
            record(0, Op::Read, 0, 512),
            record(u64::MAX, Op::Read, 0, 512),
        ],
    );
    let mut job = trace.into_workload(Mode::Timed).unwrap().jobs.remove(0);
    submitted(job.next(1000));
    assert_eq!(job.next(1000), Next::At(u64::MAX));
}
