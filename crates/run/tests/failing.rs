//! What becomes of jobs on a drive that takes no more writes, or has lost data: do they end as fio's do, and what is said of it?

mod jobs;

use lodger_core::{Completion, Op, Precondition, Request, Status};
use lodger_run::report::{self, Report};
use lodger_run::{Drive, LatencyLog, Observer, RunConfig, RunResult, run};

/// A drive that is worn out after some tens of MiB: half of its blocks have had a program that failed after five erases.
const SHORT_LIFE: [(&str, &str); 8] = [
    ("capacity", "16MiB"),
    ("nand.pages_per_block", "12"),
    ("ftl.slc_superblocks", "0"),
    ("ftl.overprovisioning", "0.35"),
    ("tier.sram.size", "2MiB"),
    ("nand.ageing.endurance", "5"),
    ("nand.ageing.spare_blocks", "1"),
    ("nand.ageing.program_failures", "0.5"),
];

const WRITES: &str = "rw=randwrite\nbs=4k\nnorandommap\nio_size=128m\n";

/// Every completion, and fio's log of them.
struct Watch {
    seen: Vec<(usize, Op, Status)>,
    log: LatencyLog<Vec<u8>>,
}

impl Observer for Watch {
    fn completed(&mut self, job: usize, request: &Request, completion: &Completion) {
        self.seen.push((job, completion.op, completion.status));
        self.log.add(request, completion);
    }
}

fn simulate(sets: &[(&str, &str)], precondition: Precondition, text: &str) -> (RunResult, Watch) {
    let mut config = RunConfig::new(Drive::open("tiny", sets).expect("a drive"));
    config.precondition = precondition;
    let mut watch = Watch {
        seen: Vec::new(),
        log: LatencyLog::new(Vec::new(), config.drive.parsed.spec.host.submit_ps),
    };
    let workload = jobs::parse(text, &config);
    let result = run(&config, workload, &mut watch).expect("a run");
    (result, watch)
}

fn json(sets: &[(&str, &str)], result: &RunResult) -> serde_json::Value {
    let config = RunConfig::new(Drive::open("tiny", sets).expect("a drive"));
    report::json_value(
        Report {
            config: &config,
            result,
        },
        false,
    )
}

#[test]
fn a_job_ends_where_its_drive_does_and_others_go_on() {
    let text = format!(
        "[global]\nbs=4k\n[w]\n{WRITES}iodepth=8\nioengine=libaio\nend_fsync=1\n\
         [r]\nrw=randread\nsize=4m\nthinktime=2000\n[after]\nstonewall\nrw=read\nsize=1m\n"
    );
    let (result, watch) = simulate(&SHORT_LIFE, Precondition::Sequential, &text);
    let [w, r, after] = &result.jobs[..] else {
        panic!("three jobs");
    };
    assert_eq!(w.failure, Some(Status::ReadOnly));
    assert!(w.write.bytes > 8 << 20 && w.write.bytes < 128 << 20);
    let of_w = watch.seen.iter().filter(|seen| seen.0 == 0);
    let first = of_w.clone().position(|seen| seen.2 != Status::Success);
    let behind = of_w.count() - first.expect("a write that is refused");
    assert!(behind <= 8, "{behind} completions from the first error on");
    assert!((1..=8).contains(&w.errors), "{}", w.errors);
    // Reads go on, beside it and after it.
    assert_eq!((r.failure, r.read.ios), (None, 1024));
    assert!(r.end_ps > w.end_ps, "it ended beside the other");
    assert_eq!((after.failure, after.read.ios), (None, 256));
    let report = json(&SHORT_LIFE, &result);
    let job = |place: usize, key: &str| report["jobs"][place][key].clone();
    assert_eq!((job(0, "error"), job(1, "error")), (5.into(), 0.into()));
    assert!(job(0, "total_err").is_null());
    let warning = "job `w` ended there, as fio's jobs do: with `continue_on_error=all` it goes on";
    assert!(
        result.warnings.iter().any(|text| text.contains(warning)),
        "{:?}",
        result.warnings
    );
}

#[test]
fn a_job_that_is_to_go_on_does_and_the_log_has_what_was_done() {
    let text = format!("[w]\n{WRITES}continue_on_error=write\n");
    let (result, watch) = simulate(&SHORT_LIFE, Precondition::None, &text);
    let job = &result.jobs[0];
    assert_eq!(job.failure, None);
    assert_eq!(job.write.ios + job.errors, 32_768);
    assert!(job.errors > 1000);
    let report = json(&SHORT_LIFE, &result);
    let told = &report["jobs"][0];
    assert_eq!(told["error"], 5);
    assert_eq!(told["total_err"], job.errors);
    assert_eq!(told["first_error"], 5);
    let (log, heard) = watch.log.finish().expect("a log in memory");
    let lines = log.iter().filter(|byte| **byte == b'\n').count() as u64;
    assert_eq!((lines, heard), (job.write.ios, 32_768));
}

#[test]
fn others_end_with_a_job_that_fails_if_they_are_to() {
    let run = |options: &str, writes: &str| {
        let text =
            format!("[w]\n{writes}{options}\n[r]\nrw=randread\nbs=4k\nsize=4m\nthinktime=2000\n");
        let (result, _) = simulate(&SHORT_LIFE, Precondition::Sequential, &text);
        assert_eq!(result.jobs[1].errors, 0);
        result.jobs[1].read.ios
    };
    assert_eq!(run("", WRITES), 1024);
    assert!(run("exitall_on_error", WRITES) < 1024);
    // The nulls: a job that does not fail, or survives, ends none.
    let few = "rw=randwrite\nbs=4k\nsize=1m\n";
    assert_eq!(run("exitall_on_error", few), 1024);
    assert_eq!(run("exitall_on_error\ncontinue_on_error=all", WRITES), 1024);
}

#[test]
fn a_job_that_fails_in_its_ramp_says_so() {
    let text = format!("[w]\n{WRITES}iodepth=8\nioengine=libaio\nramp_time=60\n");
    let (result, _) = simulate(&SHORT_LIFE, Precondition::None, &text);
    let job = &result.jobs[0];
    assert_eq!(job.failure, Some(Status::ReadOnly));
    assert!(job.errors > 0 && job.write.ios > 0);
    assert_eq!(json(&SHORT_LIFE, &result)["jobs"][0]["error"], 5);
}

#[test]
fn reads_of_lost_data_end_a_job() {
    // So many errors that nothing decodes most pages.
    let lost = [
        ("ftl.slc_superblocks", "0"),
        ("nand.ageing.endurance", "3000"),
        ("nand.ageing.erased", "3000"),
        ("nand.ageing.age_days", "36500"),
        ("nand.ageing.errors.base", "0.1"),
        ("nand.ageing.correctable", "0.01"),
    ];
    let reads = |options: &str| {
        let text = format!("[r]\nrw=randread\nbs=4k\nsize=4m\n{options}");
        let (result, _) = simulate(&lost, Precondition::Random, &text);
        let told = json(&lost, &result)["jobs"][0]["error"].clone();
        (result.jobs[0].completed, told)
    };
    // ENODATA, which `continue_on_error` alone does not survive in fio.
    assert_eq!(reads(""), (1, 61.into()));
    assert_eq!(reads("continue_on_error=all"), (1, 61.into()));
    assert_eq!(reads("ignore_error=ENODATA"), (1024, 61.into()));
}
