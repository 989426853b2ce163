//! Which job starts and ends when? What is compared with is fio 3.33 on a block device: its jobs sleep 10 ms after each
//! request (`thinktime`), so that the numbers of requests tell the times.

use lodger_core::time::MS;
use lodger_run::{Drive, RunConfig, RunResult, run};
use lodger_workload::fio;

const GLOBAL: &str = "[global]\nbs=4k\nrw=read\nthinktime=10000\nsize=4m\n";

fn simulate(text: &str) -> RunResult {
    let config = RunConfig::new(Drive::open("tiny", &[]).unwrap());
    let context = fio::Context {
        file_name: "job.fio",
        env: &|_| None,
        include: &|_| Err(std::io::ErrorKind::NotFound.into()),
        drive_bytes: config.drive.parsed.spec.capacity_bytes,
        seed: 1,
    };
    let workload = fio::parse(&format!("{GLOBAL}{text}"), &context).unwrap();
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
