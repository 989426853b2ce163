//! Jobs as fio's users type them: on the command line, of several files, of one section. What is compared with is fio 3.33
//! with the same words.

use crate::common::Sandbox;
use serde_json::Value;

const FIRST: &str = "[global]\nbs=8k\nsize=64k\n[a]\nrw=read\n[c]\nrw=read\nnumber_ios=2\n";
const SECOND: &str = "[b]\nrw=write\nsize=32k\n[d]\nrw=read\nnumber_ios=1\nsize=32k\n";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.file("f1.fio", FIRST);
    sandbox.file("f3.fio", SECOND);
    sandbox
}

/// Of each job: name, group, reads and KiB read, writes and KiB written.
fn jobs(args: &str) -> Vec<(String, u64, [u64; 4])> {
    let line = format!("simulate --drive tiny --output-format json {args}");
    let args: Vec<&str> = line.split(' ').collect();
    let outcome = sandbox().run(&args);
    assert_eq!(outcome.code, Some(0), "{args:?}: {}", outcome.stderr);
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    let jobs = report["jobs"].as_array().unwrap().iter().map(|job| {
        let counts = [
            ("read", "total_ios"),
            ("read", "io_kbytes"),
            ("write", "total_ios"),
            ("write", "io_kbytes"),
        ];
        let counts = counts.map(|(direction, key)| number(&job[direction][key]));
        (
            job["jobname"].as_str().unwrap().to_owned(),
            number(&job["groupid"]),
            counts,
        )
    });
    jobs.collect()
}

/// Standard error of what is refused.
fn refused(args: &str) -> String {
    let line = format!("simulate --drive tiny {args}");
    let args: Vec<&str> = line.split(' ').collect();
    let outcome = sandbox().run(&args);
    assert_eq!(outcome.code, Some(2), "{args:?}: {}", outcome.stderr);
    outcome.stderr
}

fn job(name: &str, group: u64, counts: [u64; 4]) -> (String, u64, [u64; 4]) {
    (name.to_owned(), group, counts)
}

#[test]
fn files_run_one_after_the_other_each_with_its_own_globals() {
    let all = [
        job("a", 0, [8, 64, 0, 0]),
        job("c", 0, [2, 16, 0, 0]),
        job("b", 1, [0, 0, 8, 32]),
        job("d", 1, [1, 4, 0, 0]),
    ];
    assert_eq!(jobs("f1.fio f3.fio"), all);
    let groups: Vec<_> = jobs("f3.fio f1.fio")
        .into_iter()
        .map(|job| (job.0, job.1))
        .collect();
    let expected = [("b", 0), ("d", 0), ("a", 1), ("c", 1)];
    assert_eq!(
        groups,
        expected.map(|(name, group)| (name.to_owned(), group))
    );
}

#[test]
fn sections_are_chosen_by_name() {
    let a = job("a", 0, [8, 64, 0, 0]);
    assert_eq!(jobs("--section=a f1.fio"), std::slice::from_ref(&a));
    let c = job("c", 0, [2, 16, 0, 0]);
    assert_eq!(jobs("--section=a --section=c f1.fio"), [a.clone(), c]);
    // fio looks at the sections of the first file alone, and then runs all of the others.
    let d = job("d", 1, [1, 4, 0, 0]);
    assert_eq!(jobs("--section a --section d f1.fio f3.fio"), [a, d]);
    let error = refused("--section=zz f1.fio");
    assert_eq!(
        error,
        "error: there is no section `[zz]`\n\nhint: there are: a, c\n"
    );
}

#[test]
fn a_choice_of_sections_without_a_file_says_what_it_is_for() {
    let error = refused("--name=x --rw=read --size=64k --section=b");
    let expected = "error: there is no section `[b]`\n\nhint: `--section` chooses among the jobs of a job file, and \
                    none was given that has jobs\n";
    assert_eq!(error, expected);
}

#[test]
fn a_job_of_the_line_has_a_name() {
    let error = refused("--name= --rw=read --size=64k");
    assert!(
        error.starts_with("error: `--name` begins a job and needs its name\n"),
        "{error}"
    );
}

#[test]
fn jobs_stand_on_the_command_line() {
    let x = job("x", 0, [4, 64, 0, 0]);
    let typed = "--name=x --filename=/dev/loop0 --rw=read --size=64k --bs=16k";
    assert_eq!(jobs(typed), std::slice::from_ref(&x));
    let y = job("y", 0, [0, 0, 8, 32]);
    assert_eq!(
        jobs(&format!("{typed} --name=y --rw=write --size=32k")),
        [x.clone(), y]
    );
    let globals = "--name=global --size=64k --name=x --rw=read --name=y --rw=write --stonewall";
    let plain = job("x", 0, [16, 64, 0, 0]);
    assert_eq!(jobs(globals), [plain.clone(), job("y", 1, [0, 0, 16, 64])]);
    assert_eq!(jobs("--name=x --rw read --size 64k --direct 1"), [plain]);
    let q = job("q", 0, [64, 64, 0, 0]);
    assert_eq!(jobs("--rw=read --size=64k --name=q --bs=1k"), [q]);
}

#[test]
fn what_holds_for_all_jobs_holds_for_those_of_files() {
    let one = [job("a", 0, [1, 8, 0, 0]), job("c", 0, [2, 16, 0, 0])];
    assert_eq!(jobs("--number_ios=1 f1.fio"), one);
    assert_eq!(jobs("--name=global --number_ios=1 f1.fio"), one);
    let mut with_job = vec![job("q", 0, [1, 4, 0, 0])];
    with_job.extend(one);
    assert_eq!(
        jobs("--number_ios=1 --name=q --rw=read --size=64k f1.fio"),
        with_job
    );
    // A job of the line comes first, wherever it stands, and the file's say what they say.
    let found = jobs("f1.fio --bs=4k --name=x --rw=read --size=64k");
    assert_eq!(found[0], job("x", 0, [16, 64, 0, 0]));
    assert_eq!(found[1], job("a", 0, [8, 64, 0, 0]));
}

#[test]
fn what_is_wrong_with_a_job_of_the_line_is_said() {
    let error = refused("--name=x --iodpeth=4");
    let expected =
        "error: unknown option `iodpeth` (command line)\n\nhint: did you mean `iodepth`?\n";
    assert_eq!(error, expected);
    let error = refused("--rw=read");
    assert_eq!(
        error,
        "error: `command line` defines no job\n\nhint: begin a job with `--name=JOB`\n"
    );
    let error = refused("--name=x --rw=read --replay closed");
    assert!(
        error.starts_with("error: `--replay` is for traces, and the command line has fio jobs\n"),
        "{error}"
    );
}

#[test]
fn other_workloads_stand_alone() {
    let sandbox = sandbox();
    sandbox.file(
        "t.csv",
        "time_us,op,offset_bytes,length_bytes,flags\n0,R,0,4096,\n",
    );
    for more in ["f1.fio", "--name=x", "--section=a"] {
        let outcome = sandbox.run(&["simulate", "--drive", "tiny", "t.csv", more]);
        assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
        assert!(
            outcome
                .stderr
                .contains("are for fio job files: a trace is none"),
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn terse_lines_have_fio_s_columns() {
    let sandbox = sandbox();
    let typed = "simulate --drive tiny --name=a --rw=randrw --bs=4k --size=4m --name=b --rw=read --size=1m \
                 --clat_percentiles=0 --description=hello --stonewall";
    let of = |format: &str| {
        let mut args: Vec<&str> = typed.split_whitespace().collect();
        args.extend(["--output-format", format]);
        let outcome = sandbox.run(&args);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        outcome.stdout
    };
    let (terse, json) = (of("terse"), of("json"));
    let report: Value = serde_json::from_str(&json).unwrap();
    let lines: Vec<Vec<&str>> = terse
        .lines()
        .map(|line| line.split(';').collect())
        .collect();
    // fio 3.33 has 130 values in version 3, and one more where a job is described.
    assert_eq!(lines.iter().map(Vec::len).collect::<Vec<_>>(), [130, 131]);
    assert_eq!(lines[0][..5], ["3", "fio-3.33", "a", "0", "0"]);
    assert_eq!(
        (lines[1][2], lines[1][3], lines[1][130]),
        ("b", "1", "hello")
    );
    for (line, job) in lines.iter().zip(report["jobs"].as_array().unwrap()) {
        for (first, name) in [(5, "read"), (46, "write")] {
            let direction = &job[name];
            let whole = |value: &Value| value.as_f64().unwrap().trunc().to_string();
            let us = |value: &Value| (value.as_f64().unwrap() / 1000.0).trunc().to_string();
            let expected = ["io_kbytes", "bw", "iops", "runtime"].map(|key| whole(&direction[key]));
            assert_eq!(line[first..first + 4], expected, "{name}");
            assert_eq!(line[first + 8], us(&direction["clat_ns"]["min"]), "{name}");
            assert_eq!(line[first + 33], us(&direction["lat_ns"]["max"]), "{name}");
            let median = match direction["clat_ns"].get("percentile") {
                Some(list) => format!("50.000000%={}", us(&list["50.000000"])),
                None => "0%=0".to_owned(),
            };
            assert_eq!(line[first + 18], median, "{name}");
        }
        assert_eq!(line[121], "tiny");
    }
}

/// Before the first `--name` it was taken for that of a replay, and refused beside jobs.
#[test]
fn a_depth_given_before_the_first_name_is_of_all_jobs() {
    let sandbox = Sandbox::new();
    let job = [
        "--name=j",
        "--rw=randread",
        "--size=16m",
        "--number_ios=64",
        "--ioengine=libaio",
    ];
    let of = |depth: &[&str], after: &[&str]| {
        let args = [&["simulate", "--drive", "tiny"], depth, &job, after].concat();
        // The first line has the options as they were given.
        let told = sandbox.ok(&args).stdout;
        told.lines().skip(1).collect::<Vec<_>>().join("\n")
    };
    let before = of(&["--iodepth=8"], &[]);
    assert_eq!(before, of(&[], &["--iodepth=8"]));
    assert_ne!(before, of(&[], &[]), "it holds");
    // A job's own wins.
    assert_eq!(before, of(&["--iodepth=4"], &["--iodepth=8"]));
}
