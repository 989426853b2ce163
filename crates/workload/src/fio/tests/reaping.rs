//! When does a job's thread take completions? What is compared with is fio 3.33 under `strace`: its calls in their order.

use super::*;
use std::collections::VecDeque;

/// What the thread does as letters: `r`, `w`, `t` and `f` are requests, a number is how many completions are taken, `.` a wait
/// for one that arrives. The drive completes in order.
fn calls(options: &str, length: usize) -> String {
    let mut job = job(options);
    let mut in_flight: VecDeque<Completion> = VecDeque::new();
    let mut arrived: VecDeque<Completion> = VecDeque::new();
    let mut later = VecDeque::new();
    let (mut calls, mut now_ps) = (String::new(), 0);
    while calls.len() < length {
        match job.next(now_ps) {
            Next::Submit(request) => {
                calls.push(match request.op {
                    Op::Read => 'r',
                    Op::Write => 'w',
                    Op::Trim => 't',
                    Op::Flush => 'f',
                });
                let completion = Completion {
                    tag: request.tag,
                    op: request.op,
                    status: Status::Success,
                    submitted_ps: now_ps,
                    completed_ps: now_ps,
                };
                in_flight.push_back(completion);
                later.push_back(job.takes_later(request.op));
            }
            Next::Reap(completions) => {
                calls.push_str(&completions.to_string());
                for completion in arrived.drain(..completions as usize) {
                    job.complete(&completion);
                }
            }
            Next::At(at_ps) => now_ps = at_ps,
            Next::Blocked => {
                calls.push('.');
                let completion = in_flight.pop_front().expect("blocked for ever");
                if later.pop_front().expect("one for each") {
                    arrived.push_back(completion);
                    job.arrived();
                } else {
                    job.complete(&completion);
                }
            }
            Next::Call { .. } => panic!("a fio job knows no byte window"),
            Next::Done => break,
        }
    }
    calls
}

#[test]
fn batches_are_taken_at_once() {
    let read = "rw=randread\niodepth=4\nnumber_ios=10\n";
    for (options, expected) in [
        ("iodepth_batch_complete_min=4", "rrrr....4rrrr....4rr..2"),
        // Once full, two of four, and what is left at the end.
        ("iodepth_batch_complete_min=2", "rrrr..2rr..2rr..2rr..2..2"),
        // Down to the mark, two by two.
        (
            "iodepth_batch_complete_min=2\niodepth_low=1",
            "rrrr..2..2rrrr..2..2rr..2",
        ),
        ("iodepth_batch=4", "rrrr.1r.1r.1r.1r.1r.1r.1...3"),
        // One after each request; with a largest number only once it is full.
        (
            "iodepth_batch_complete_min=0",
            "r.1r.1r.1r.1r.1r.1r.1r.1r.1r.1",
        ),
        (
            "iodepth_batch_complete_min=0\niodepth_batch_complete_max=4",
            "rrrr.1r.1r.1r.1r.1r.1r.1...3",
        ),
        // Of a full queue more than there is cannot be waited for.
        ("iodepth_batch_complete_min=9", "rrrr....4rrrr....4rr..2"),
        // Nothing waits for a batch before a pause.
        (
            "iodepth_batch_complete_min=4\nthinktime=1ms\nthinktime_blocks_type=issue\nthinktime_blocks=2",
            "rr.1.1rr.1.1rr.1.1rr.1.1rr.1.1",
        ),
    ] {
        for engine in ["", "ioengine=libaio\n", "ioengine=io_uring\n"] {
            let options = format!("{read}{engine}{options}");
            assert_eq!(calls(&options, 100), expected, "{options}");
        }
        // The nulls: an engine that waits, a depth of one, and another thread that takes them.
        let sync = calls(&format!("{read}ioengine=psync\n{options}"), 30);
        assert_eq!(sync, "r.".repeat(10), "{options}");
    }
    let one = calls("rw=randread\nnumber_ios=3\niodepth=4", 100);
    assert_eq!(one, "rrr...");
    let offload = format!("{read}iodepth_batch_complete_min=4\nio_submit_mode=offload");
    assert_eq!(calls(&offload, 100), "rrrr.r.r.r.r.r.r....");
}

#[test]
fn a_thread_in_a_flush_takes_nothing() {
    let write = "rw=randwrite\nnumber_ios=12\nfsync=2\n";
    // fio: in the steady state each write is followed by one completion taken, and after two of them comes the flush.
    let libaio = calls(&format!("{write}iodepth=4\nioengine=libaio"), 100);
    assert_eq!(libaio, "wwf...ww1f...w1w1f...w1w1f...w1w1f...w1w1..3");
    // The null: with io_uring a flush is one of those in flight, and all are taken as they arrive.
    let uring = calls(&format!("{write}iodepth=4\nioengine=io_uring"), 30);
    assert_eq!(uring, "wwfw.w.f.w.w.f.w.w.f.w.w.f.w.w");
    // What is issued is handed over first, and so many taken as are taken at once.
    let batch = "iodepth=4\niodepth_batch=4\niodepth_batch_complete_min=4\nioengine=libaio";
    let batch = calls(&format!("{write}{batch}"), 100);
    assert_eq!(batch, "ww..2f.ww..2f.ww..2f.ww..2f.ww..2f.ww..2");
}

#[test]
fn the_end_of_a_pass_waits_for_no_flush_of_its_own() {
    let options = "rw=write\nsize=16k\nend_fsync=1\niodepth=8\niodepth_batch=4\nloops=2";
    assert_eq!(calls(options, 100), "wwww....4f.wwww....4f.");
    let options =
        "rw=write\nsize=16k\nverify=md5\niodepth=4\niodepth_batch_complete_min=4\nioengine=libaio";
    assert_eq!(calls(options, 100), "wwww....4rrrr....4");
}
