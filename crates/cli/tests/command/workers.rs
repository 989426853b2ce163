//! Does anything that a command says depend on how many of its runs go on at a time?

use crate::common::{Outcome, Sandbox};

/// Of 800 MiB, which `tiny` does not have: it is told what becomes of them.
fn wide_trace() -> String {
    let request = |number: u64| {
        let offset_bytes = number * 7_919 % 200_000 * 4096;
        let op = if number.is_multiple_of(3) { 'W' } else { 'R' };
        format!("{},{op},{offset_bytes},4096\n", number * 20)
    };
    let requests: String = (0..3000).map(request).collect();
    format!("time_us,op,offset_bytes,length_bytes\n{requests}")
}

/// Drives with different amounts of work, the slowest of which is not the last.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.file("wide.csv", wide_trace());
    sandbox.file("small.toml", "extends = \"tiny\"\ncapacity = \"256MiB\"\n");
    sandbox
}

fn with_workers(sandbox: &Sandbox, args: &[&str], workers: &str) -> Outcome {
    sandbox.run(&[args, &["--workers", workers]].concat())
}

/// Without how long it took.
fn timeless(report: &str) -> String {
    let lines = report.lines().filter(|line| !line.contains("\"wall_s\""));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_comparison_says_the_same_however_many_runs_go_on_at_a_time() {
    let sandbox = sandbox();
    let args = [
        "compare",
        "wide.csv",
        "--fit",
        "wrap",
        "--drive",
        "tiny",
        "--drive",
        "bg4",
        "--drive",
        "small.toml",
        "--hmb",
        "off,64KiB",
        "--report",
        "page.html",
    ];
    let page = || std::fs::read_to_string(sandbox.dir.join("page.html")).unwrap();
    for form in ["normal", "json", "markdown", "csv"] {
        let args = [&args[..], &["--output-format", form]].concat();
        let alone = with_workers(&sandbox, &args, "1");
        assert_eq!(alone.code, Some(0), "{}", alone.stderr);
        let alone_page = page();
        assert!(alone.stderr.matches("note: small.toml").count() >= 2);
        for workers in ["2", "5", "64"] {
            let together = with_workers(&sandbox, &args, workers);
            assert_eq!(together.code, Some(0), "{}", together.stderr);
            assert!(
                timeless(&together.stdout) == timeless(&alone.stdout),
                "{form}, {workers}"
            );
            assert_eq!(together.stderr, alone.stderr, "{form}, {workers}");
            assert!(page() == alone_page, "{form}, {workers}");
        }
    }
}

#[test]
fn of_several_runs_that_fail_the_first_is_told() {
    let sandbox = sandbox();
    let drives = ["bg4", "tiny", "small.toml"].map(|drive| ["--drive", drive]);
    let args = [&["compare", "wide.csv"], drives.as_flattened()].concat();
    let alone = with_workers(&sandbox, &args, "1");
    assert_eq!(alone.code, Some(2), "{}", alone.stderr);
    for _ in 0..10 {
        let together = with_workers(&sandbox, &args, "3");
        assert_eq!((together.code, &together.stderr), (Some(2), &alone.stderr));
    }
}

#[test]
fn advice_is_the_same_however_many_runs_go_on_at_a_time() {
    let sandbox = sandbox();
    let job = "[a]\nrw=randread\nbs=4k\nsize=64m\nnumber_ios=2000\n";
    sandbox.file("job.fio", job);
    for form in ["normal", "json"] {
        let args = [
            "advise",
            "job.fio",
            "--drive",
            "rc100-240",
            "--output-format",
            form,
        ];
        let alone = with_workers(&sandbox, &args, "1");
        assert!(alone.stdout.len() > 100, "{}", alone.stderr);
        let together = with_workers(&sandbox, &args, "7");
        assert_eq!((together.code, together.stdout), (alone.code, alone.stdout));
    }
}

/// What had to be done to a workload is told of a run that fails, too.
#[test]
fn a_run_that_fails_is_told_with_its_notes() {
    let sandbox = Sandbox::new();
    let job = "[a]\nrw=randread\nbs=4k\nsize=64m\nnumber_ios=100\nwrite_lat_log=x\n";
    sandbox.file("job.fio", job);
    let drives = ["tiny", "aging-tlc"].map(|drive| ["--drive", drive]);
    let more = ["--hmb-offer", "64KiB"];
    let args = [&["compare", "job.fio"], drives.as_flattened(), &more].concat();
    for workers in ["1", "2"] {
        let said = with_workers(&sandbox, &args, workers).stderr;
        let note = said.find("note: aging-tlc with `--hmb-offer 64KiB`: the log files");
        let error = said.find("error: ");
        assert!(note.is_some() && error > note, "{said}");
    }
}

/// The system refuses threads, as their stacks do not fit.
#[cfg(target_os = "linux")]
fn without_threads(sandbox: &Sandbox, args: &[&str]) -> Outcome {
    let mut command = sandbox.command(args);
    command.env("RUST_MIN_STACK", (1u64 << 46).to_string());
    Outcome::of(command.output().unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn without_threads_all_runs_are_made_one_after_the_other() {
    let sandbox = Sandbox::new();
    let job = "[a]\nrw=randread\nbs=4k\nsize=64m\nnumber_ios=100\n";
    sandbox.file("job.fio", job);
    for line in [
        "compare job.fio --drive tiny --hmb off,64KiB,128KiB",
        "advise job.fio --drive rc100-240",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        for workers in ["1", "2", "64"] {
            let args = [&args[..], &["--workers", workers]].concat();
            let threads = sandbox.run(&args);
            let none = without_threads(&sandbox, &args);
            assert_eq!(none.stderr, threads.stderr, "{line} --workers {workers}");
            assert!(none.stdout == threads.stdout && none.code == threads.code);
        }
    }
    // Nobody reads a pipe then, which is no empty input.
    let none = without_threads(&sandbox, &["simulate", "-", "--drive", "tiny"]);
    assert_eq!(none.code, Some(2), "{}", none.stderr);
    assert!(none.stderr.contains("cannot read `-`"), "{}", none.stderr);
}

/// Ctrl-C ends all of them, and leaves nothing.
#[cfg(unix)]
#[test]
fn all_runs_end_when_one_is_stopped() {
    use std::process::Stdio;
    let sandbox = Sandbox::new();
    let job = "[a]\nrw=randread\nbs=4k\niodepth=8\ntime_based\nruntime=1d\n";
    sandbox.file("long.fio", job);
    let args = "compare long.fio --drive tiny --hmb off,64KiB,1MiB --workers 3 --output none.txt";
    let args: Vec<&str> = args.split(' ').collect();
    let mut command = sandbox.command(&args);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The work has begun once the output has.
    let started = std::time::Instant::now();
    while sandbox.files().len() < 2 {
        assert!(started.elapsed().as_secs() < 20, "it never begins");
        std::thread::yield_now();
    }
    let outcome = Outcome::interrupted(child);
    assert_eq!(outcome.code, Some(130), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("interrupted"), "{}", outcome.stderr);
    assert_eq!(sandbox.files(), ["long.fio"]);
}
