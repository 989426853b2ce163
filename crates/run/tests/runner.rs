//! The run loop: order of stages, accounting, samples, ramp, interruption.

mod jobs;

use lodger_core::time::{MS, S, US};
use lodger_core::{Completion, Request};
use lodger_run::{Drive, Observer, Progress, RunConfig, RunResult, run};
use lodger_workload::Workload;
use std::ops::ControlFlow;

fn config() -> RunConfig {
    RunConfig::new(Drive::open("tiny", &[]).unwrap())
}

fn workload(text: &str) -> Workload {
    jobs::parse(text, &config())
}

fn simulate(text: &str) -> RunResult {
    run(&config(), workload(text), &mut ()).unwrap()
}

/// Follows every request.
#[derive(Default)]
struct Follow {
    /// Instant, job, and whether it is a completion.
    seen: Vec<(u64, usize, bool)>,
    in_flight: Vec<(usize, Request)>,
}

impl Observer for Follow {
    fn submitted(&mut self, now_ps: u64, job: usize, request: &Request) {
        self.seen.push((now_ps, job, false));
        self.in_flight.push((job, *request));
    }

    fn completed(&mut self, job: usize, request: &Request, completion: &Completion) {
        self.seen.push((completion.completed_ps, job, true));
        assert_eq!((request.tag, request.op), (completion.tag, completion.op));
        let same = |entry: &(usize, Request)| *entry == (job, *request);
        let place = self
            .in_flight
            .iter()
            .position(same)
            .expect("nobody asked for it");
        self.in_flight.swap_remove(place);
    }
}

#[test]
fn every_request_comes_back_to_its_job() {
    let text = "[a]\nrw=randrw\nbs=4k\nsize=16m\niodepth=8\nnumjobs=8\nnumber_ios=300\n\
                [b]\nrw=write\nbs=64k\nsize=4m\nfsync=3\nrate_iops=9000\n\
                [c]\nrw=trim\nbs=128k\nsize=8m\nthinktime=50us\n";
    let mut follow = Follow::default();
    let result = run(&config(), workload(text), &mut follow).unwrap();
    assert!(follow.in_flight.is_empty());
    for job in &result.jobs {
        assert_eq!(job.submitted, job.completed, "{}", job.name);
        let ios = job.read.ios + job.write.ios + job.trim.ios + job.sync.ios;
        assert_eq!(ios, job.completed, "{}", job.name);
        assert_eq!(job.depth_levels.iter().sum::<u64>(), job.submitted);
    }
    assert_eq!(result.jobs[0].completed, 300);
    assert_eq!(result.requests, follow.seen.len() as u64 / 2);
    assert_eq!(result.counters.requests, result.requests);
    assert!(
        follow.seen.is_sorted_by_key(|seen| seen.0),
        "time runs forward"
    );
}

#[test]
fn a_stage_starts_when_the_one_before_is_done() {
    let text = "[global]\nrw=randread\nbs=4k\nsize=4m\nnumber_ios=50\niodepth=4\n\
                [a]\n[b]\nnumjobs=2\n[c]\nstonewall\n[d]\nstonewall\nstartdelay=1ms\n";
    let mut follow = Follow::default();
    let result = run(&config(), workload(text), &mut follow).unwrap();
    let span = |jobs: &[usize]| {
        let times: Vec<u64> = follow
            .seen
            .iter()
            .filter(|seen| jobs.contains(&seen.1))
            .map(|seen| seen.0)
            .collect();
        (times[0], times[times.len() - 1])
    };
    let (first, second, third) = (span(&[0, 1, 2]), span(&[3]), span(&[4]));
    assert_eq!(first.0, 0);
    assert_eq!(second.0, first.1);
    assert_eq!(third.0, second.1 + MS);
    assert_eq!(result.jobs[4].start_ps, third.0);
    assert_eq!(result.simulated_ps, third.1);
}

#[test]
fn littles_law_holds() {
    let result = simulate("[a]\nrw=randread\nbs=4k\nsize=64m\niodepth=16\nnumber_ios=20000\n");
    let job = &result.jobs[0];
    let clat = job.read.clat().unwrap();
    let latency_s = (clat.mean_ns() + job.slat_ns as f64) / 1e9;
    let rate = job.read.ios as f64 * S as f64 / job.runtime_ps() as f64;
    let in_flight = latency_s * rate;
    assert!((in_flight - 16.0).abs() < 0.05, "{in_flight}");
    assert_eq!(result.busy_ps, result.simulated_ps);
}

#[test]
fn rates_are_sampled_every_half_second() {
    let text = "[a]\nrw=randread\nbs=4k\nsize=64m\nrate_iops=1000\ntime_based\nruntime=2250ms\n";
    let job = &simulate(text).jobs[0];
    let iops = &job.read.iops;
    assert_eq!(iops.count, 4, "the last quarter of a second is no sample");
    assert!(
        (990..=1010).contains(&iops.min) && (990..=1010).contains(&iops.max),
        "{iops:?}"
    );
    assert!(
        (job.read.bw.mean - 4000.0).abs() < 40.0,
        "{:?}",
        job.read.bw
    );
}

#[test]
fn the_ramp_does_not_count() {
    let text = "[a]\nrw=randread\nbs=4k\nsize=64m\nrate_iops=1000\ntime_based\nruntime=1s\n\
                ramp_time=1s\nstartdelay=1s\n";
    let job = &simulate(text).jobs[0];
    assert_eq!(job.start_ps, 2 * S);
    assert!(job.submitted.abs_diff(2000) <= 2, "{}", job.submitted);
    assert!(job.read.ios.abs_diff(1000) <= 2, "{}", job.read.ios);
    assert!(job.runtime_ps().abs_diff(S) < 2 * MS);
}

/// fio: `write run=1024 msec, read run=4 msec` of `rate_iops=1000`, and bandwidths that follow from them.
#[test]
fn each_direction_has_its_own_runtime() {
    let text = "[a]\nrw=write\nbs=4k\nsize=4m\nrate_iops=1000\nverify=crc32c\n";
    let job = &simulate(text).jobs[0];
    assert_eq!((job.write.ios, job.read.ios, job.sync.ios), (1024, 1024, 0));
    let (read, write) = (job.read.runtime_ps, job.write.runtime_ps);
    assert!(write.abs_diff(1023 * MS) < MS, "{write}");
    assert!(read < 200 * MS && read > MS, "{read}");
    assert_eq!(read + write, job.runtime_ps());
    // A mix reads in both.
    let text = "[a]\nrw=randrw\nbs=4k\nsize=4m\nverify=crc32c\n";
    let job = &simulate(text).jobs[0];
    assert_eq!(job.read.runtime_ps, job.runtime_ps());
    assert!(job.write.runtime_ps < job.runtime_ps() * 3 / 4);
    // Nothing done took no time; a group has the longest of each direction.
    assert_eq!(job.trim.runtime_ps, 0);
    let text = "[a]\nrw=read\nbs=4k\nsize=1m\n[b]\nrw=write\nbs=4k\nsize=8m\n";
    let jobs = simulate(text).jobs;
    let mut both = jobs[0].clone();
    both.merge(&jobs[1]);
    assert_eq!(both.read.runtime_ps, jobs[0].runtime_ps());
    assert_eq!(both.write.runtime_ps, jobs[1].runtime_ps());
}

/// fio: `run=2001-2001msec` for one write of 8 MiB and the wait for the next, which never comes.
#[test]
fn a_wait_that_the_runtime_ends_belongs_to_the_run() {
    let job = &simulate("[a]\nrw=write\nrate=1\nbs=8m\nruntime=2\nsize=64m\n").jobs[0];
    assert_eq!((job.write.ios, job.write.runtime_ps), (1, 2 * S));
    let job = &simulate("[a]\nrw=read\nthinktime=10s\nbs=4k\nruntime=2\n").jobs[0];
    assert_eq!(job.read.ios, 1);
    assert!(
        job.runtime_ps().abs_diff(10 * S) < MS,
        "a pause goes on to its end"
    );
    // Without a runtime the job ends with its last request.
    let job = &simulate("[a]\nrw=read\nbs=4k\nsize=8k\nrate_iops=10\n").jobs[0];
    assert!(job.runtime_ps() < 101 * MS, "{}", job.runtime_ps());
}

#[test]
fn the_flush_at_the_end_takes_time_and_does_not_count() {
    let of = |options: &str| {
        let text = format!("[a]\nrw=write\nbs=4k\nsize=64k\n{options}\n");
        let result = run(&config(), workload(&text), &mut ()).unwrap();
        let job = result.jobs[0].clone();
        let levels: u64 = job.depth_levels.iter().sum();
        assert_eq!(levels, job.write.ios + job.sync.ios, "{options}");
        job
    };
    let (plain, ended, both) = (of(""), of("end_fsync=1"), of("fsync=4\nend_fsync=1"));
    assert_eq!(
        [plain.submitted, ended.submitted, both.submitted],
        [16, 17, 20]
    );
    assert_eq!([plain.sync.ios, ended.sync.ios, both.sync.ios], [0, 0, 3]);
    assert!(ended.sync.clat().is_none());
    assert!(ended.write.runtime_ps > plain.write.runtime_ps);
}

#[test]
fn the_flush_of_a_synchronous_write_is_part_of_it() {
    let mut follow = Follow::default();
    let text = "[a]\nrw=write\nbs=4k\nsize=64k\nioengine=psync\nsync=1\n";
    let result = run(&config(), workload(text), &mut follow).unwrap();
    assert!(follow.in_flight.is_empty());
    let job = &result.jobs[0];
    assert_eq!((job.write.ios, job.sync.ios, job.submitted), (16, 0, 32));
    // One at a time, without a pause: the writes' latencies are the run's time.
    let clat = job.write.clat().unwrap();
    let sum_ns = (clat.mean_ns() + job.slat_ns as f64) * 16.0;
    let run_ns = job.runtime_ps() as f64 / 1e3;
    assert!((sum_ns - run_ns).abs() < 100.0, "{sum_ns} {run_ns}");
}

/// fio: 256 requests in 256 ms.
#[test]
fn a_job_that_ends_in_its_ramp_is_counted_whole() {
    let job = &simulate("[a]\nrw=read\nbs=4k\nsize=1m\nrate_iops=1000\nramp_time=5\n").jobs[0];
    assert_eq!((job.read.ios, job.start_ps), (256, 0));
    assert!(job.runtime_ps().abs_diff(255 * MS) < MS);
    let text = "[a]\nrw=read\nbs=4k\nsize=4m\nrate_iops=1000\nramp_time=500ms\n";
    let job = &simulate(text).jobs[0];
    assert!(job.read.ios.abs_diff(523) < 2, "{}", job.read.ios);
    assert!(job.read.runtime_ps.abs_diff(523 * MS) < 2 * MS);
}

#[test]
fn an_idle_job_wakes_at_its_instant() {
    let text = "[a]\nrw=read\nbs=4k\nsize=16k\nthinktime=10ms\n";
    let result = simulate(text);
    assert_eq!(result.jobs[0].read.ios, 4);
    // One after every request, the last among them, as in fio.
    assert!(result.simulated_ps > 40 * MS && result.simulated_ps < 40 * MS + 4 * MS);
    assert!(result.busy_ps < 4 * MS && result.busy_ps > 40 * US);
}

/// Stops at the first opportunity.
struct Stop;

impl Observer for Stop {
    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        assert!(progress.simulated_ps > 0);
        ControlFlow::Break(())
    }
}

/// Counts how often it is asked.
struct Asked(u64);

impl Observer for Asked {
    fn progress(&mut self, _: Progress) -> ControlFlow<()> {
        self.0 += 1;
        ControlFlow::Continue(())
    }
}

#[test]
fn a_run_of_few_long_requests_can_be_stopped_as_soon_as_one_of_many() {
    let long = "[a]\nrw=randwrite\nbs=2m\nsize=512m\niodepth=8\nloops=6\n";
    let mut asked = Asked(0);
    let result = run(&config(), workload(long), &mut asked).unwrap();
    let (requests, events) = (result.requests, result.events);
    assert!(requests < 2000 && events > 1 << 19, "{requests}, {events}");
    assert!(
        asked.0 >= result.events >> 18,
        "{} of {}",
        asked.0,
        result.events
    );
}

#[test]
fn a_run_can_be_stopped() {
    let endless = "[a]\nrw=randread\nbs=4k\nsize=64m\ntime_based\nruntime=1d\niodepth=8\n";
    let result = run(&config(), workload(endless), &mut Stop).unwrap();
    assert!(result.interrupted);
    assert!(result.requests > 0 && result.simulated_ps < S);
}

#[test]
fn many_jobs_share_the_drive() {
    let text = "[a]\nrw=randread\nbs=4k\nsize=64m\nnumjobs=500\nnumber_ios=20\n";
    let result = simulate(text);
    assert_eq!(result.requests, 10_000);
    let mut one = simulate("[a]\nrw=randread\nbs=4k\nsize=64m\nnumber_ios=20\n");
    assert!(result.simulated_ps > 10 * one.simulated_ps);
    one.jobs.clear();
}
