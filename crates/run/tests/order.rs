//! Which job starts and ends when? What is compared with is fio 3.33 on a block device: its jobs sleep 10 ms after each
//! request (`thinktime`), so that the numbers of requests tell the times.

mod jobs;

use lodger_core::Precondition;
use lodger_core::time::MS;
use lodger_run::{Direction, Drive, RunConfig, RunResult, run};

const GLOBAL: &str = "[global]\nbs=4k\nrw=read\nthinktime=10000\nsize=4m\n";

fn simulate(text: &str) -> RunResult {
    let config = RunConfig::new(Drive::open("tiny", &[]).unwrap());
    let workload = jobs::parse(&format!("{GLOBAL}{text}"), &config);
    run(&config, workload, &mut ()).unwrap()
}

/// Requests of each job.
fn ios(text: &str) -> Vec<u64> {
    let result = simulate(text);
    result.jobs.iter().map(|job| job.read.ios).collect()
}

#[test]
fn a_job_waits_for_all_clones_of_another() {
    let text = "[w]\nnumjobs=2\nnumber_ios=10\n[r]\nwait_for=w\nnumber_ios=20\n\
                [x]\nnumber_ios=25\n[s]\nstonewall\nnumber_ios=5\nwait_for=w\n";
    let result = simulate(text);
    let [w, w2, r, x, s] = &result.jobs[..] else {
        panic!("five jobs");
    };
    assert_eq!(r.start_ps, w.end_ps.max(w2.end_ps));
    assert_eq!((w.start_ps, x.start_ps), (0, 0));
    // 10 and 20 requests with a pause after each, and 25 beside them.
    assert_eq!(r.end_ps / (10 * MS), 30);
    assert_eq!(x.end_ps / (10 * MS), 25);
    assert_eq!(s.start_ps, r.end_ps);
    let ios: Vec<u64> = result.jobs.iter().map(|job| job.read.ios).collect();
    assert_eq!(ios, [10, 10, 20, 25, 5]);
}

#[test]
fn jobs_end_with_one_of_their_group() {
    // fio: 10, 11 and 7 requests, and where the groups differ 10, 60 and 7. It looks once more before it stops.
    let after = "[after]\nstonewall\nnumber_ios=7\n";
    let short = "[short]\nnumber_ios=10\nexitall\n";
    let text = format!("{short}[long]\nnumber_ios=40\n{after}");
    assert_eq!(ios(&text), [10, 10, 7]);
    let text = format!("{short}[other]\nnew_group\nnumber_ios=60\n{after}");
    assert_eq!(ios(&text), [10, 60, 7]);
    // As in fio, whatever its value says, and one that waits ends before it starts.
    let text = "[short]\nnumber_ios=10\nexitall=0\n[late]\nstartdelay=1\n[next]\nwait_for=late\n";
    assert_eq!(ios(text), [10, 0, 0]);
}

/// Trims wait until the map has caught up. It was looked at after new data had had its turn, when it never had: 230 ms, beside
/// writes of 47 at most.
#[test]
fn trims_do_not_wait_for_what_comes_after_them() {
    let sets = [
        ("nand.channels", "2"),
        ("nand.dies_per_channel", "1"),
        ("nand.planes", "1"),
        ("nand.cell", "slc"),
        ("nand.pages_per_block", "64"),
        ("nand.program", "1500us"),
        ("nand.erase", "10ms"),
        ("nand.read", "60us"),
        ("ftl.overprovisioning", "0.12"),
        ("ftl.slc_superblocks", "0"),
        ("role.map.size.sram", "128KiB"),
    ];
    let mut config = RunConfig::new(Drive::open("tiny", &sets).expect("a drive"));
    config.precondition = Precondition::Random;
    let text = "[global]\nbs=4k\nnorandommap\ntime_based\nruntime=6\n[write]\nrw=randwrite\n[read]\nrw=randread\niodepth=8\n\
                [trim]\nrw=randtrim\nbs=1m\nrate_iops=500\n";
    let workload = jobs::parse(text, &config);
    let result = run(&config, workload, &mut ()).expect("a run");
    let longest_ms = |of: &Direction| of.clat().expect("requests").max_ns() as f64 / 1e6;
    let (write, trim) = (
        longest_ms(&result.jobs[0].write),
        longest_ms(&result.jobs[2].trim),
    );
    println!("longest write {write} ms, longest trim {trim} ms");
    assert!(trim < 180.0, "{trim} ms, a write {write} ms");
}

#[test]
fn all_jobs_end_with_one() {
    for (what, expected) in [("stonewall", [10, 10, 7]), ("all", [10, 10, 0])] {
        let text = format!(
            "[short]\nnumber_ios=10\nexitall\nexit_what={what}\n\
             [other]\nnew_group\nnumber_ios=60\n[after]\nstonewall\nnumber_ios=7\n"
        );
        assert_eq!(ios(&text), expected, "{what}");
    }
}

#[test]
fn jobs_of_a_flow_keep_their_proportions() {
    let global = "[global]\nbs=4k\nsize=16m\nrw=randread\ntime_based\nruntime=1\nnorandommap\n";
    let shares = |text: &str| {
        let result = simulate(&format!("{global}thinktime=0\n{text}"));
        let ios: Vec<u64> = result.jobs.iter().map(|job| job.read.ios).collect();
        ios
    };
    // fio: 8357 and 1045 requests in a second with psync, 13673 and 1710 with libaio and pauses.
    for rest in ["", "ioengine=libaio\niodepth=16\nflow_sleep=1000\n"] {
        let ios = shares(&format!("{rest}[a]\nflow=8\n{rest}[b]\nflow=1\n{rest}"));
        assert!(ios[1] > 100 && ios[0].abs_diff(8 * ios[1]) <= 16, "{ios:?}");
    }
    // fio: 1839, 1227, 1227, and 9626 of a job with a flow of its own.
    let ios = shares("[a]\nflow=3\n[b]\nflow=2\nnumjobs=2\n[c]\nflow=1\nflow_id=1\n");
    assert_eq!(ios[1], ios[2]);
    assert!((2 * ios[0]).abs_diff(3 * ios[1]) <= 6, "{ios:?}");
    assert!(ios[3] > ios[1], "{ios:?}");
    // One that is done holds up nobody.
    let ios = shares("[a]\nflow=3\ntime_based=0\nsize=4m\n[b]\nflow=1\ntime_based=0\nsize=4m\n");
    assert_eq!(ios[..], [1024, 1024]);
}

#[test]
fn a_job_ends_when_its_rate_keeps_still() {
    // fio: 100 requests in each of three seconds, then it ends.
    let paced = "thinktime=0\ntime_based\nruntime=9\nrate_iops=100\n";
    let result = simulate(&format!("{paced}[a]\nss=iops:50%\nss_dur=3\n{paced}"));
    let job = &result.jobs[0];
    let found = job.steady.as_ref().unwrap();
    assert!(found.attained && job.end_ps / MS == 3000, "{}", job.end_ps);
    assert_eq!(found.seconds, [(100, 409_600); 3]);
    // After a ramp of two seconds the third is not looked at, as in fio; the other job goes on.
    let text = format!(
        "[a]\nss=bw_slope:1\nss_dur=3\nss_ramp=2\n{paced}[b]\nnew_group\nss=iops:1\nss_dur=20\n{paced}"
    );
    let result = simulate(&text);
    let ends_ms: Vec<u64> = result.jobs.iter().map(|job| job.end_ps / MS).collect();
    assert_eq!(ends_ms, [5000, 9000]);
    assert!(!result.jobs[1].steady.as_ref().unwrap().attained);
    // A group that is reported as one is looked at as one.
    let text = format!("[a]\nnumjobs=2\ngroup_reporting\nss=iops_slope:10%\nss_dur=2\n{paced}");
    let result = simulate(&text);
    assert_eq!(result.jobs[0].steady.as_ref().unwrap().seconds[0].0, 200);
    assert!(result.jobs.iter().all(|job| job.end_ps / MS == 2000));
    // Without a duration nothing is looked for.
    assert!(
        simulate(&format!("[a]\nss=iops:1%\nnumber_ios=3\n{paced}")).jobs[0]
            .steady
            .is_none()
    );
}
