//! When does a job ask for what?

use super::*;

fn timed(options: &str, latency_ps: u64) -> Vec<Done> {
    run_with(&mut job(options), latency_ps)
}

fn starts(log: &[Done]) -> Vec<u64> {
    log.iter().map(|done| done.submitted_ps).collect()
}

#[test]
fn the_queue_is_kept_full() {
    let log = timed("rw=randread\nsize=256k\niodepth=4", 100 * US);
    assert_eq!(
        starts(&log)[..8],
        [0, 0, 0, 0, 100 * US, 100 * US, 100 * US, 100 * US]
    );
}

#[test]
fn a_synchronous_engine_has_depth_one() {
    for (engine, depth) in [
        ("psync", 1),
        ("pvsync2", 1),
        ("mmap", 1),
        ("libaio", 8),
        ("io_uring", 8),
        ("null", 8),
        ("external:/x/y.so", 8),
    ] {
        let job = job(&format!("ioengine={engine}\niodepth=8"));
        assert_eq!(job.queue_depth, depth, "{engine}");
    }
    assert_eq!(job("iodepth=8").queue_depth, 8);
    assert_eq!(job("").queue_depth, 1);
}

#[test]
fn a_full_queue_drains_to_its_mark() {
    let mut job = job("rw=randread\nsize=64k\niodepth=4\niodepth_low=1");
    let tag = |next| match next {
        Next::Submit(request) => request.tag,
        other => panic!("{other:?}"),
    };
    let tags: Vec<u32> = (0..4).map(|_| tag(job.next(0))).collect();
    assert_eq!(job.next(0), Next::Blocked);
    for (i, tag) in tags.into_iter().enumerate() {
        job.complete(&Completion {
            tag,
            op: Op::Read,
            status: Status::Success,
            submitted_ps: 0,
            completed_ps: 1,
        });
        if i < 2 {
            assert_eq!(job.next(1), Next::Blocked);
        } else {
            assert!(matches!(job.next(1), Next::Submit(_)));
            break;
        }
    }
}

#[test]
fn runtime_stops_the_issue_and_drains() {
    let log = timed("rw=randread\niodepth=4\nruntime=1ms", 300 * US);
    assert_eq!(log.len(), 16);
    assert!(log.iter().all(|done| done.submitted_ps < MS));
    assert!(log.iter().any(|done| done.completed_ps > MS));
    // One picosecond decides.
    let before = timed("rw=read\ntime_based\nruntime=1ms", MS);
    assert_eq!(before.len(), 1);
    let after = timed("rw=read\ntime_based\nruntime=1ms", MS - 1);
    assert_eq!(after.len(), 2);
}

#[test]
fn runtime_without_time_based_ends_with_the_range() {
    assert_eq!(timed("rw=read\nsize=64k\nruntime=1s", US).len(), 16);
    assert_eq!(
        timed("rw=read\nsize=64k\nruntime=1s\ntime_based", MS).len(),
        1000
    );
}

#[test]
fn the_ramp_comes_before_the_runtime_and_the_delay_before_both() {
    let mut job = job("rw=read\ntime_based\nruntime=10ms\nramp_time=5ms\nstartdelay=3ms");
    assert_eq!(job.ramp_ps, 8 * MS);
    let log = run_with(&mut job, MS);
    assert_eq!(log[0].submitted_ps, 3 * MS);
    assert_eq!(log.len(), 15);
}

/// fio: 1000 reads from the end of the ramp on, or twice as many in two loops; and 300 where the ramp has that many.
#[test]
fn a_number_of_requests_counts_from_the_end_of_the_ramp() {
    for (options, in_ramp, after) in [
        ("number_ios=1000", 500, 1000),
        ("number_ios=700\nloops=2", 500, 1400),
        ("number_ios=1000\nstartdelay=1", 500, 1000),
        ("number_ios=300", 300, 0),
        // The null: bytes count from the start.
        ("size=4m", 500, 524),
    ] {
        let mut job = job(&format!("rw=read\nrate_iops=500\nramp_time=1\n{options}"));
        assert_eq!(job.requests_expected.is_some(), after == 524, "{options}");
        let ramp_ps = job.ramp_ps.max(S);
        let log = run_with(&mut job, US);
        let counted = starts(&log)
            .iter()
            .filter(|at_ps| **at_ps >= ramp_ps)
            .count();
        assert_eq!(
            (log.len() - counted, counted),
            (in_ramp, after),
            "{options}"
        );
    }
}

#[test]
fn a_range_of_delays_is_drawn_for_each_clone() {
    let mut workload = parsed("[a]\nnumjobs=8\nsize=4k\nstartdelay=5ms-10ms");
    let mut delays: Vec<u64> = (workload.jobs.iter_mut())
        .map(|job| run_with(job, US)[0].submitted_ps)
        .collect();
    assert!(delays.iter().all(|d| (5 * MS..=10 * MS).contains(d)));
    delays.sort_unstable();
    delays.dedup();
    assert!(delays.len() > 6);
}

#[test]
fn rates_space_requests_evenly() {
    for options in ["rate_iops=1000", "rate=4096k", "rate=4m,1m"] {
        let log = timed(&format!("rw=randread\nsize=64k\n{options}"), 100 * US);
        let gap = log[1].submitted_ps;
        assert!(
            (gap as i64 - MS as i64).unsigned_abs() < 30 * US,
            "{options} {gap}"
        );
        for (i, done) in log.iter().enumerate() {
            assert!(
                done.submitted_ps.abs_diff(i as u64 * gap) <= i as u64,
                "{options}"
            );
        }
    }
}

#[test]
fn a_slow_drive_catches_up_with_the_rate() {
    // Inline submission lets the request before complete; then the schedule is behind.
    let log = timed(
        "rw=randread\nsize=64k\nrate_iops=1000\niodepth=8",
        2500 * US,
    );
    let starts = starts(&log);
    assert_eq!(starts[..3], [0, 2500 * US, 2500 * US]);
    // Offloaded submission does not wait.
    let log = timed(
        "rw=randread\nsize=64k\nrate_iops=1000\niodepth=8\nio_submit_mode=offload",
        2500 * US,
    );
    assert!(
        log.iter()
            .enumerate()
            .all(|(i, d)| d.submitted_ps == i as u64 * MS)
    );
}

#[test]
fn a_mix_with_one_rate_limited_goes_on_in_the_other() {
    let log = timed("rw=randrw\nruntime=1s\ntime_based\nrate_iops=,100", MS);
    let writes = log.iter().filter(|d| d.request.op == Op::Write).count();
    assert!((95..=101).contains(&writes), "{writes}");
    assert_eq!(log.len(), 1000);
}

#[test]
fn poisson_gaps_are_exponential() {
    let log = timed(
        "rw=randread\nio_size=80m\nrate_iops=1000\nrate_process=poisson\niodepth=64\n\
         io_submit_mode=offload",
        US,
    );
    let gaps: Vec<f64> = starts(&log)
        .windows(2)
        .map(|p| (p[1] - p[0]) as f64 / MS as f64)
        .collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    assert!((mean - 1.0).abs() < 0.03, "{mean}");
    let long = gaps.iter().filter(|gap| **gap > 2.0).count() as f64 / gaps.len() as f64;
    assert!((long - (-2f64).exp()).abs() < 0.01, "{long}");
}

#[test]
fn thinking_comes_after_every_block() {
    let log = timed("rw=read\nsize=16k\nthinktime=500", 100 * US);
    assert_eq!(starts(&log), [0, 600 * US, 1200 * US, 1800 * US]);
    let log = timed(
        "rw=read\nsize=16k\nthinktime=1ms\nthinktime_blocks=2",
        100 * US,
    );
    assert_eq!(starts(&log), [0, 100 * US, 1200 * US, 1300 * US]);
    let log = timed(
        "rw=read\nsize=16k\niodepth=4\nthinktime=1ms\nthinktime_blocks=2\n\
         thinktime_blocks_type=issue",
        100 * US,
    );
    assert_eq!(starts(&log), [0, 0, 1100 * US, 1100 * US]);
}

#[test]
fn thinking_by_time() {
    // As in fio, the first pause comes as late as if one had been before the start.
    let options = "rw=read\nthinktime=1ms\nthinktime_iotime=300us";
    let log = starts(&timed(&format!("{options}\nsize=80k"), 100 * US));
    let paused: Vec<u64> = (log.windows(2))
        .filter(|pair| pair[1] - pair[0] > 100 * US)
        .map(|pair| pair[0])
        .collect();
    assert_eq!(paused, [1200 * US, 2500 * US, 3800 * US]);
    assert_eq!(
        timed(&format!("{options}\nsize=24k"), 100 * US)[5].submitted_ps,
        500 * US
    );
}

/// fio: `runtime=1 thinktime=3s` runs 3001 ms, four requests with `thinktime=300ms` take 1201.
#[test]
fn thinking_comes_after_the_last_request_too_and_outlasts_the_runtime() {
    for (options, end_ps) in [
        ("size=64m\nthinktime=3s\nruntime=1", 3 * S),
        ("size=16k\nthinktime=300ms", 1200 * MS),
    ] {
        let mut job = job(&format!("rw=read\n{options}"));
        let mut now_ps = 0;
        let ended_ps = loop {
            match job.next(now_ps) {
                Next::Submit(request) => job.complete(&Completion {
                    tag: request.tag,
                    op: request.op,
                    status: Status::Success,
                    submitted_ps: now_ps,
                    completed_ps: now_ps,
                }),
                Next::At(at_ps) => now_ps = at_ps,
                Next::Done => break now_ps,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(ended_ps, end_ps, "{options}");
    }
}

#[test]
fn the_shortest_length_measures_requests_per_second() {
    // fio: 24 in each two seconds, 126 in one, 200 in one.
    for (options, expected) in [
        (
            "size=64m\nbssplit=4k/50:64k/50\nrate_iops=100\nruntime=20",
            195..280,
        ),
        (
            "size=64m\nbsrange=4k-16k\nrate_iops=300\nruntime=1",
            115..136,
        ),
        ("size=64m\nbs=16k\nrate_iops=200\nruntime=1", 200..201),
    ] {
        let log = timed(&format!("rw=randread\n{options}"), US);
        assert!(expected.contains(&log.len()), "{options}: {}", log.len());
    }
}

#[test]
fn by_time_the_number_of_requests_does_not_count() {
    let log = timed(
        "rw=write\nsize=1m\ntime_based\nruntime=1\nrate_iops=500\nnumber_ios=100",
        US,
    );
    assert_eq!(log.len(), 500);
}

#[test]
fn what_is_read_back_counts_against_the_rate() {
    // fio: 513 reads and 501 writes, which without it are 884 and 500.
    let options = "rw=randrw\nsize=1m\ntime_based\nruntime=1\nrate_iops=500,500\nverify=crc32c";
    let log = timed(&format!("{options}\nioengine=libaio"), US);
    let reads = log.iter().filter(|d| d.request.op == Op::Read).count();
    assert!((490..530).contains(&reads), "{reads}");
}

#[test]
fn the_rate_may_ignore_thinking() {
    let options = "rw=read\nsize=64k\nrate_iops=1000\nthinktime=10ms\nthinktime_blocks=4";
    let counted = starts(&timed(options, 100 * US));
    let ignored = starts(&timed(
        &format!("{options}\nrate_ignore_thinktime=1"),
        100 * US,
    ));
    // Counted: behind by the pause, so the next requests follow at once.
    assert_eq!(counted[5] - counted[4], 100 * US);
    // Ignored: the rate goes on from the end of the pause.
    assert_eq!(ignored[5] - ignored[4], MS);
    assert_eq!(ignored[4], counted[4]);
    // A pause longer than the rate's interval leaves nothing to wait for: 974 requests in fio 3.41, with the option and
    // without. The null: a pause that is shorter takes no part of the rate.
    for (think, expected) in [("2ms", 970..980), ("500us", 1990..2010)] {
        for option in ["", "rate_ignore_thinktime=1"] {
            let options = "rw=read\nsize=64m\ntime_based\nruntime=2\nrate_iops=1000";
            let options = format!("{options}\nthinktime={think}\n{option}");
            let count = timed(&options, 55 * US).len();
            assert!(expected.contains(&count), "{think} {option}: {count}");
        }
    }
}

#[test]
fn a_wait_never_outlasts_the_runtime() {
    for options in ["rate_iops=1", "thinktime=10s"] {
        let log = timed(&format!("rw=read\ntime_based\nruntime=5ms\n{options}"), US);
        assert_eq!(log.len(), 1, "{options}");
    }
}
