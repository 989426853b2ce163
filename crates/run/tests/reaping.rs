//! When does a request end? As fio's thread takes its completion: with others in batches, and not while it waits in a flush.
//!
//! fio 3.33 with libaio on a file: a batch of 16 has one completion time, and rate x latency is 14.1 to 15.6 of 16 in batches and
//! beside flushes.

mod jobs;

use lodger_core::observe::{Histogram, Part, PartsPs};
use lodger_core::{Completion, Op, Request};
use lodger_run::report::{Report, json_value, text};
use lodger_run::{Drive, Observer, Recorder, RunConfig, RunResult, run, run_traced};

fn config() -> RunConfig {
    RunConfig::new(Drive::open("970-pro", &[]).expect("it is built in"))
}

fn watched<O: Observer>(options: &str, observer: &mut O) -> RunResult {
    let config = config();
    let text = format!("[job]\nbs=4k\nsize=64m\niodepth=16\nnumber_ios=2000\n{options}\n");
    run(&config, jobs::parse(&text, &config), observer).expect("it runs")
}

fn simulate(options: &str) -> RunResult {
    watched(options, &mut ())
}

/// Requests in flight, by their rate and what latency is reported for them.
fn in_flight(result: &RunResult) -> f64 {
    let job = &result.jobs[0];
    let each = [&job.read, &job.write].map(|direction| {
        let clat_ns = direction.clat().map_or(0.0, Histogram::mean_ns);
        direction.ios as f64 * (clat_ns + job.slat_ns as f64) * 1e3 / job.runtime_ps() as f64
    });
    each.iter().sum()
}

/// Shares of the depth levels, and how many were handed over and taken at once, per cent.
fn shares(result: &RunResult) -> [Vec<u64>; 3] {
    let job = &result.jobs[0];
    let ios = job.read.ios + job.write.ios;
    let of = |counts: [u64; 7], all: u64| counts.iter().map(|n| n * 100 / all).collect();
    [
        of(job.depth_levels, ios),
        of(job.handed_over, job.handed_over.iter().sum()),
        of(job.taken, job.taken.iter().sum()),
    ]
}

/// When each request was seen to end.
#[derive(Default)]
struct Ends(Vec<u64>);

impl Observer for Ends {
    fn completed(&mut self, _: usize, _: &Request, completion: &Completion) {
        self.0.push(completion.completed_ps);
    }
}

const BATCHES: &str = "rw=randread\niodepth_batch=16\niodepth_batch_complete_min=16";

#[test]
fn a_batch_that_is_taken_at_once_ends_at_once() {
    for engine in ["", "ioengine=libaio\n", "ioengine=io_uring\n"] {
        let mut ends = Ends::default();
        let result = watched(&format!("{engine}{BATCHES}"), &mut ends);
        for batch in ends.0.chunks(16) {
            assert!(batch.iter().all(|end_ps| *end_ps == batch[0]));
        }
        let depth = in_flight(&result);
        assert!((15.4..=16.0).contains(&depth), "{engine}: {depth}");
        assert_eq!(result.jobs[0].read.ios, 2000);
    }
    // The null: one by one.
    let mut ends = Ends::default();
    watched("rw=randread", &mut ends);
    let (first, last) = (ends.0[0], ends.0[15]);
    assert!(first < last);
}

#[test]
fn beside_flushes_of_libaio_writes_end_late() {
    for flush in ["fsync=4", "fdatasync=4", "fsync=1"] {
        let options = format!("rw=randwrite\n{flush}\nioengine=");
        let result = simulate(&format!("{options}libaio"));
        let depth = in_flight(&result);
        assert!((14.0..=16.0).contains(&depth), "{flush}: {depth}");
        // fio: 16 at 122.6 %, as flushes count among the levels and not among the requests.
        let [levels, ..] = shares(&result);
        assert!(levels[4] >= 120, "{levels:?}");
        // The null: io_uring sends flushes as it sends writes.
        let depth = in_flight(&simulate(&format!("{options}io_uring")));
        assert!(depth < 8.0, "{flush}: {depth}");
    }
    // No flush and no batch: as ever.
    let [plain, libaio] = ["", "ioengine=libaio"].map(|engine| {
        let mut ends = Ends::default();
        watched(&format!("rw=randwrite\nfsync=0\n{engine}"), &mut ends);
        ends.0
    });
    assert_eq!(plain, libaio);
}

/// The depth that keeps a latency keeps the one that is reported.
#[test]
fn the_depth_that_is_looked_for_keeps_the_latency_that_is_seen() {
    let sought = "rw=randwrite\nnorandommap\nfsync=4\nlatency_target=500us\nlatency_window=50ms\nlatency_percentile=90\n\
                  time_based\nruntime=5\n";
    let found = |engine: &str| {
        let result = simulate(&format!("{sought}ioengine={engine}"));
        let clat = result.jobs[0].write.clat().expect("writes");
        let kept = clat.percentile_ns(90.0) <= 500_000;
        (result.jobs[0].latency.expect("it was sought").depth, kept)
    };
    // Beside flushes of 240 us each, one after every fourth write, twice four writes wait for two of them.
    let (depth, kept) = found("libaio");
    assert!((8..=9).contains(&depth) && kept, "{depth}");
    assert_eq!(found("io_uring"), (16, true));
}

#[test]
fn batches_in_a_ramp_do_not_count() {
    let ramped = simulate(&format!("{BATCHES}\nramp_time=10ms"));
    let whole = simulate(BATCHES);
    let sums = |result: &RunResult| {
        let job = &result.jobs[0];
        [job.handed_over, job.taken, job.depth_levels].map(|counts| counts.iter().sum::<u64>())
    };
    // Of those that count, which are as many; the first may have been handed over in the ramp.
    assert_eq!(sums(&whole), [125, 125, 2000]);
    let [handed_over, taken, levels] = sums(&ramped);
    assert!((125..=126).contains(&handed_over) && (125..=126).contains(&taken));
    assert!((2000..=2016).contains(&levels), "{levels}");
}

#[test]
fn what_is_handed_over_and_taken_at_once_is_counted() {
    // As fio 3.33 counts on a file, shares of 1 % and less apart.
    for (options, expected) in [
        (
            "iodepth_batch=8\niodepth_batch_complete_min=8",
            [(4, 99), (2, 100), (2, 100)],
        ),
        (
            "iodepth_batch=16\niodepth_batch_complete_min=16",
            [(4, 100), (3, 100), (3, 100)],
        ),
        (
            "iodepth_batch_complete_min=16",
            [(3, 50), (1, 100), (3, 100)],
        ),
        ("iodepth_batch=8", [(4, 98), (1, 99), (1, 99)]),
        (
            "iodepth_batch_complete_min=0",
            [(0, 100), (1, 100), (1, 100)],
        ),
        (
            "iodepth=32\niodepth_low=1\niodepth_batch=32\niodepth_batch_complete_min=32",
            [(5, 99), (4, 98), (4, 98)],
        ),
        (
            "iodepth=32\niodepth_low=1\niodepth_batch=8",
            [(4, 51), (2, 79), (1, 99)],
        ),
        ("", [(4, 99), (1, 100), (1, 100)]),
    ] {
        let result = simulate(&format!("rw=randread\nioengine=io_uring\n{options}"));
        let shares = shares(&result);
        for (shares, (place, share)) in shares.iter().zip(expected) {
            assert!(
                shares[place].abs_diff(share) <= 1,
                "{options}: {shares:?}, {share} at {place}"
            );
        }
    }
    let config = config();
    let result = simulate(BATCHES);
    let report = Report {
        config: &config,
        result: &result,
    };
    let json = json_value(report, false);
    assert_eq!(json["jobs"][0]["iodepth_submit"]["16"], 100.0);
    assert_eq!(json["jobs"][0]["iodepth_complete"]["16"], 100.0);
    assert_eq!(json["jobs"][0]["iodepth_level"]["16"], 100.0);
    assert!(text(report).contains("     complete  : 0=0.0%, 4=0.0%, 8=0.0%, 16=100.0%, 32=0.0%"));
    assert!(text(report).contains("     submit    : 0=0.0%, 4=0.0%, 8=0.0%, 16=100.0%, 32=0.0%"));
}

/// Sums of the parts of all requests.
struct Parts(PartsPs, u64);

impl Observer for Parts {
    fn went(&mut self, _: usize, _: &Request, completion: &Completion, parts_ps: &PartsPs) {
        if completion.op == Op::Flush {
            return;
        }
        for (sum, part) in self.0.iter_mut().zip(parts_ps) {
            *sum += part;
        }
        self.1 += completion.completed_ps - completion.submitted_ps;
    }
}

#[test]
fn the_wait_until_it_is_taken_is_the_hosts_part_of_a_request() {
    for options in [BATCHES, "rw=randwrite\nfsync=4\nioengine=libaio"] {
        let config = config();
        let text = format!("[job]\nbs=4k\nsize=64m\niodepth=16\nnumber_ios=500\n{options}\n");
        let mut parts = Parts(PartsPs::default(), 0);
        let workload = jobs::parse(&text, &config);
        run_traced(&config, workload, &mut parts, Recorder::default()).expect("it runs");
        let Parts(parts_ps, all_ps) = parts;
        assert_eq!(parts_ps.iter().sum::<u64>(), all_ps, "{options}");
        let completion_ps = parts_ps[Part::Completion as usize];
        assert!(
            completion_ps > all_ps / 10,
            "{options}: {completion_ps} of {all_ps}"
        );
    }
}
