//! What happens to the user's files? Inputs are never overwritten, outputs keep what they are, and what is
//! waited for can be stopped.
use crate::common::{Outcome, Sandbox, repository};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Stdio;
use std::time::Duration;

const JOB: &str = "[job]\nrw=randread\nbs=4k\nsize=1m\n";

#[test]
fn an_output_that_is_also_an_input_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", format!("{JOB}include common.inc\n"));
    sandbox.file("common.inc", "iodepth=2\n");
    sandbox.file("mine.toml", "extends = \"base.toml\"\n");
    sandbox.file("base.toml", "extends = \"tiny\"\n");
    sandbox.file(
        "trace.csv",
        "time_us,op,offset_bytes,length_bytes,flags\n0,R,0,4096,\n",
    );
    std::os::unix::fs::symlink("job.fio", sandbox.dir.join("link.fio")).unwrap();
    fs::hard_link(sandbox.dir.join("job.fio"), sandbox.dir.join("other.fio")).unwrap();
    let before: Vec<_> = sandbox.files();
    for output in [
        "job.fio",
        "common.inc",
        "mine.toml",
        "base.toml",
        "link.fio",
        "other.fio",
    ] {
        for command in ["simulate", "compare"] {
            let mut args = vec![
                command,
                "job.fio",
                "--drive",
                "mine.toml",
                "--output",
                output,
            ];
            if command == "compare" {
                args.extend(["--hmb", "off,default"]);
            }
            refused(&sandbox, &args, "this command reads it");
        }
    }
    assert_eq!(sandbox.files(), before, "nothing is left behind");
    assert_eq!(
        fs::read_to_string(sandbox.dir.join("common.inc")).unwrap(),
        "iodepth=2\n"
    );
}

#[test]
fn no_other_command_and_no_other_output_overwrites_its_input() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOB);
    sandbox.file(
        "trace.csv",
        "time_us,op,offset_bytes,length_bytes,flags\n0,R,0,4096,\n",
    );
    let before = sandbox.files();
    refused(
        &sandbox,
        &[
            "advise",
            "trace.csv",
            "--drive",
            "tiny",
            "--output",
            "./trace.csv",
        ],
        "this command reads it",
    );
    refused(
        &sandbox,
        &[
            "trace",
            "convert",
            "trace.csv",
            "--to",
            "csv",
            "--output",
            "trace.csv",
        ],
        "this command reads it",
    );
    refused(
        &sandbox,
        &[
            "simulate",
            "job.fio",
            "--drive",
            "tiny",
            "--latency-log",
            "job.fio",
        ],
        "this command reads it",
    );
    for other in ["new", "./new"] {
        refused(
            &sandbox,
            &[
                "simulate",
                "job.fio",
                "--drive",
                "tiny",
                "--output",
                "new",
                "--latency-log",
                other,
            ],
            "this command writes it already",
        );
    }
    assert_eq!(sandbox.files(), before, "nothing is left behind");
}

fn refused(sandbox: &Sandbox, args: &[&str], why: &str) {
    let outcome = sandbox.run(args);
    assert_eq!(outcome.code, Some(2), "{args:?}\n{}", outcome.stderr);
    assert!(outcome.stderr.contains(why), "{args:?}\n{}", outcome.stderr);
}

#[test]
fn an_output_keeps_its_permissions_and_its_other_names() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOB);
    let private = sandbox.file("private.txt", "old");
    fs::set_permissions(&private, fs::Permissions::from_mode(0o600)).unwrap();
    let named = sandbox.file("named.txt", "old and longer than nothing");
    let other = sandbox.dir.join("other.txt");
    fs::hard_link(&named, &other).unwrap();
    for output in ["private.txt", "named.txt", "new.txt"] {
        sandbox.ok(&["simulate", "job.fio", "--drive", "tiny", "--output", output]);
        let text = fs::read_to_string(sandbox.dir.join(output)).unwrap();
        assert!(text.starts_with("job: (g=0)"), "{output}: {text}");
    }
    assert_eq!(fs::metadata(&private).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::read(&named).unwrap(), fs::read(&other).unwrap());
    assert_eq!(fs::metadata(&other).unwrap().nlink(), 2);
    let names = [
        "job.fio",
        "named.txt",
        "new.txt",
        "other.txt",
        "private.txt",
    ];
    assert_eq!(sandbox.files(), names, "no temporary file is left");
}

#[test]
fn a_link_to_nowhere_is_not_replaced() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOB);
    std::os::unix::fs::symlink("nowhere", sandbox.dir.join("link")).unwrap();
    refused(
        &sandbox,
        &["simulate", "job.fio", "--drive", "tiny", "--output", "link"],
        "it is a link to a file that is not there",
    );
    assert!(sandbox.dir.join("link").is_symlink());
}

/// It was "a link to a file that is not there".
#[test]
fn a_pipe_without_a_name_is_written() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOB);
    let args = [
        "simulate",
        "job.fio",
        "--drive",
        "tiny",
        "--output",
        "/dev/stdout",
    ];
    let outcome = sandbox.ok(&args);
    assert!(outcome.stdout.contains("read: IOPS="), "{}", outcome.stdout);
}

/// `--output /dev/stdout` put a file in the place of the link: from then on all that the machine wrote to `/dev/stdout` went there.
#[test]
fn a_link_to_a_file_that_has_lost_its_name_stays_a_link() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOB);
    let link = sandbox.dir.join("link");
    std::os::unix::fs::symlink("/proc/self/fd/1", &link).unwrap();
    let lost = sandbox.dir.join("lost");
    let mut options = std::fs::File::options();
    let mut file = options
        .read(true)
        .write(true)
        .create_new(true)
        .open(&lost)
        .unwrap();
    std::fs::remove_file(&lost).unwrap();
    let before = "before\n".repeat(1000);
    std::io::Write::write_all(&mut file, before.as_bytes()).unwrap();
    let mut command =
        sandbox.command(&["simulate", "job.fio", "--drive", "tiny", "--output", "link"]);
    command.stdout(file.try_clone().unwrap());
    assert!(command.status().unwrap().success());
    assert!(link.is_symlink());
    let mut text = String::new();
    std::io::Seek::rewind(&mut file).unwrap();
    std::io::Read::read_to_string(&mut file, &mut text).unwrap();
    let report = text.strip_prefix(&before).expect("what stood there stays");
    assert!(report.contains("read: IOPS="), "{text}");
}

#[test]
fn byte_order_marks_are_understood_or_named() {
    let sandbox = Sandbox::new();
    let marked = |text: &str| [b"\xef\xbb\xbf", text.as_bytes()].concat();
    sandbox.file("job.fio", marked(JOB));
    sandbox.file("drive.toml", marked("extends = \"tiny\"\n"));
    sandbox.file(
        "trace.csv",
        marked("time_us,op,offset_bytes,length_bytes,flags\n0,R,0,4096,\n"),
    );
    sandbox.ok(&["simulate", "job.fio", "--drive", "drive.toml"]);
    sandbox.ok(&["simulate", "trace.csv", "--drive", "tiny"]);
    let wide: Vec<u8> = format!("\u{feff}{JOB}")
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    sandbox.file("wide.fio", wide);
    refused(
        &sandbox,
        &["simulate", "wide.fio", "--drive", "tiny"],
        "byte order mark of UTF-16",
    );
}

#[test]
fn a_drive_file_extends_others_from_its_own_folder() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.dir.join("drives/bases")).unwrap();
    sandbox.file("drives/mine.toml", "extends = \"bases/middle.toml\"\n");
    sandbox.file(
        "drives/bases/middle.toml",
        "extends = \"base.toml\"\n[nand]\nchannels = 2\n",
    );
    sandbox.file(
        "drives/bases/base.toml",
        "extends = \"tiny\"\nname = \"Base\"\n",
    );
    let shown = sandbox.ok(&["drives", "show", "drives/mine.toml"]).stdout;
    assert!(
        shown
            .lines()
            .any(|line| line.starts_with("nand.channels") && line.contains(" 2 "))
    );
    sandbox.file("circle.toml", "extends = \"circle.toml\"\n");
    let outcome = sandbox.run(&["drives", "check", "circle.toml"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("circle"), "{}", outcome.stderr);
    sandbox.file("typo.toml", "extends = \"bsae.toml\"\n");
    let outcome = sandbox.run(&["drives", "check", "typo.toml"]);
    assert!(
        outcome.stderr.contains("(typo.toml:1)"),
        "{}",
        outcome.stderr
    );
    sandbox.file("wrong.toml", "extends = \"wrongbase.toml\"\n");
    sandbox.file(
        "wrongbase.toml",
        "extends = \"tiny\"\n[nand]\nchanels = 2\n",
    );
    let outcome = sandbox.run(&["drives", "check", "wrong.toml"]);
    assert!(
        outcome.stderr.contains("(wrongbase.toml:3)"),
        "{}",
        outcome.stderr
    );
}

/// Only runs said so: who checks, asks for advice or serves the drive has to know before.
#[test]
fn a_drive_whose_capacitors_do_not_last_for_its_window_is_told_by_check_and_advice() {
    let sandbox = Sandbox::new();
    for (volts, is_told) in [("6.0", true), ("12.0", false)] {
        sandbox.file(
            "volts.toml",
            format!("extends = \"2b-ssd\"\n[power]\nrail_v = {volts}\n"),
        );
        let check = sandbox.ok(&["drives", "check", "volts.toml"]).stdout;
        assert!(check.starts_with("volts.toml: ok"), "{check}");
        assert_eq!(
            check.contains("may lose what was synced"),
            is_told,
            "{check}"
        );
        let logging = repository("workloads/logging/linkbench.toml");
        let logging = logging.to_str().unwrap();
        // Whether it pays is another matter.
        let advice = sandbox
            .run(&["advise", logging, "--drive", "volts.toml"])
            .stderr;
        assert_eq!(
            advice.contains("may lose what was synced"),
            is_told,
            "{advice}"
        );
    }
}

#[test]
fn a_shown_drive_passes_its_check_with_its_sources() {
    let sandbox = Sandbox::new();
    for name in ["tiny", "bg4", "galaxy-s7", "hong-hmb-buffer", "2b-ssd"] {
        let own = repository(&format!("drives/{name}.toml"));
        let own = sandbox
            .ok(&["drives", "check", own.to_str().unwrap()])
            .stdout;
        let text = sandbox
            .ok(&["drives", "show", name, "--output-format", "toml"])
            .stdout;
        sandbox.file("shown.toml", text);
        let shown = sandbox.ok(&["drives", "check", "shown.toml"]).stdout;
        // What has no source in the collection has none here, and nothing else.
        let sources = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(sources(&shown), sources(&own), "{name}");
    }
}

#[test]
fn a_rate_that_takes_years_is_the_users_and_not_a_stuck_drive() {
    let sandbox = Sandbox::new();
    sandbox.file("slow.fio", "[a]\nrw=write\nrate=1\nbs=8m\n");
    let outcome = sandbox.run(&["simulate", "slow.fio", "--drive", "tiny"]);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("200 days"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("stuck"), "{}", outcome.stderr);
}

#[test]
fn a_wait_for_a_pipe_or_a_silent_stdin_can_be_interrupted() {
    let sandbox = Sandbox::new();
    let made = std::process::Command::new("mkfifo")
        .arg(sandbox.dir.join("pipe"))
        .status();
    assert!(made.unwrap().success());
    sandbox.file("job.fio", format!("{JOB}include pipe\n"));
    sandbox.file("plain.fio", JOB);
    let results = [
        "simulate",
        "plain.fio",
        "--drive",
        "tiny",
        "--output",
        "pipe",
    ];
    let log = [
        "simulate",
        "plain.fio",
        "--drive",
        "tiny",
        "--latency-log",
        "pipe",
    ];
    let workloads = ["job.fio", "pipe", "-"];
    let read = workloads.map(|workload| vec!["simulate", workload, "--drive", "tiny"]);
    for args in read.into_iter().chain([results.to_vec(), log.to_vec()]) {
        let mut command = sandbox.command(&args);
        let workload = args.join(" ");
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let silent = child.stdin.take();
        std::thread::sleep(Duration::from_millis(300));
        assert!(child.try_wait().unwrap().is_none(), "{workload}: it waits");
        let outcome = Outcome::interrupted(child);
        drop(silent);
        assert_eq!(outcome.code, Some(130), "{workload}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains("interrupted"),
            "{workload}: {}",
            outcome.stderr
        );
    }
}

/// As of `cat | lodger simulate -`, where Ctrl-C ends both.
#[test]
fn a_signal_that_comes_with_the_end_of_stdin_is_a_signal() {
    let sandbox = Sandbox::new();
    for _ in 0..12 {
        let mut command = sandbox.command(&["simulate", "-", "--drive", "tiny"]);
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        drop(child.stdin.take());
        let outcome = Outcome::of(child.wait_with_output().unwrap());
        assert_eq!(outcome.code, Some(130), "{}", outcome.stderr);
    }
}

/// As of a trace that is still being taken; a file whose name is `-` is not what `-` means.
#[test]
fn what_a_silent_pipe_has_brought_is_reported_at_ctrl_c() {
    let sandbox = Sandbox::new();
    sandbox.file("-", "no trace\n");
    let line = |at: u64| format!("{},R,{},4096\n", at * 1000, at * 7919 % 5000 * 4096);
    let mut text = "time_us,op,offset_bytes,length_bytes\n".to_owned();
    text.extend((0..20_000).map(line));
    let args = ["simulate", "-", "--drive", "tiny", "--stream"];
    let json = ["--output-format", "json", "--output", "o.json"];
    let mut command = sandbox.command(&[&args[..], &json].concat());
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    // By then it has worked all of it off, and waits; where it has not, that is reported.
    std::thread::sleep(Duration::from_millis(1500));
    let outcome = Outcome::interrupted(child);
    drop(stdin);
    assert_eq!(outcome.code, Some(130), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("interrupted"), "{}", outcome.stderr);
    let report = std::fs::read_to_string(sandbox.dir.join("o.json")).expect("a report");
    let requests = report
        .lines()
        .find_map(|line| line.trim().strip_prefix("\"requests\": "));
    let requests = requests.and_then(|count| count.trim_end_matches(',').parse::<u32>().ok());
    // The last may have been under way: when the next one comes, nobody knew.
    assert!(requests.is_some_and(|count| count > 19_000), "{report}");
}
