//! What does a flush cost on a drive that loses nothing? What it costs the host: Linux hands it none.

mod jobs;

use lodger_run::{Drive, RunConfig, RunResult, run};

fn simulate(drive: &str, sets: &[(&str, &str)], options: &str) -> RunResult {
    let config = RunConfig::new(Drive::open(drive, sets).expect("a drive"));
    let text = format!("[job]\nbs=4k\nrw=randwrite\nsize=1g\nnumber_ios=500\n{options}\n");
    let workload = jobs::parse(&text, &config);
    run(&config, workload, &mut ()).expect("a run")
}

#[test]
fn flushes_of_a_drive_that_loses_nothing_end_in_the_host() {
    for drive in ["sz985", "pm963", "2b-ssd", "hong-bufferless"] {
        let result = simulate(drive, &[], "fsync=1");
        let sync = &result.jobs[0].sync;
        // Not after the very last write.
        assert_eq!(sync.ios, 499, "{drive}");
        let latency = sync.clat().expect("flushes");
        let spread_ns = (latency.min_ns(), latency.max_ns());
        // Submission, which is all there is, is no part of it, as of other requests.
        assert_eq!(spread_ns, (0, 0), "{drive}");
        let without = simulate(drive, &[], "");
        // The drive hears of none.
        assert_eq!(result.counters.completions, without.counters.completions);
        // Of a synchronous writer it hears of no flush either.
        let own = simulate(drive, &[], "ioengine=psync\nsync=1");
        assert_eq!(own.counters.completions, 500, "{drive}");
    }
    // The null: buffers that lose what they hold.
    for (drive, sets) in [
        ("970-pro", &[][..]),
        ("sz985", &[("role.write_buffer.tier", "dram")][..]),
    ] {
        let result = simulate(drive, sets, "fsync=1");
        assert_eq!(result.counters.completions, 999, "{drive}");
        assert!(
            result.jobs[0].sync.clat().expect("flushes").min_ns() > 100_000,
            "{drive}"
        );
    }
}
