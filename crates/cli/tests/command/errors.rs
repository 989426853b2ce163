//! What a user is told of wrong input: exit status and stderr of every kind, pinned.

use crate::common::Sandbox;
use std::fmt::Write;

const JOB: &str = "[job]\nrw=randread\nbs=4k\nsize=1m\n";

/// Runs every case in one folder and writes down what was said.
fn transcript(sandbox: &Sandbox, cases: &[&[&str]]) -> String {
    let mut out = String::new();
    for args in cases {
        let outcome = sandbox.run(args);
        let code = outcome.code.unwrap();
        assert_ne!(code, 0, "{args:?} should fail\n{}", outcome.stdout);
        assert_eq!(outcome.stdout, "", "{args:?}: stdout is data");
        assert!(
            !outcome.stderr.contains("panicked"),
            "{args:?}\n{}",
            outcome.stderr
        );
        let line = args.join(" ").escape_debug().to_string();
        writeln!(out, "$ lodger {line}\nexit {code}\n{}", outcome.stderr).unwrap();
    }
    out
}

#[test]
fn wrong_use() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOB);
    let cases: &[&[&str]] = &[
        &["simulte", "job.fio"],
        &["drives", "tiny"],
        &["drives", "lst"],
        &["probe", "sim:tiny", "--confidence", "95"],
        &["simulate"],
        &["simulate", "job.fio"],
        &["simulate", "job.fio", "--drive", "tiny", "--hbm", "off"],
        &["compare", "job.fio", "--drive", "tiny", "--seeds", "3"],
        &["simulate", "job.fio", "--drive", "tiny", "--workers", "4"],
        &["drives", "list", "--nothing-like-it"],
        &[
            "simulate",
            "job.fio",
            "--drive",
            "tiny",
            "--precondition=Random",
        ],
        &["simulate", "job.fio", "--drive", "tiny", "--precondition"],
        &[
            "simulate",
            "job.fio",
            "--drive",
            "tiny",
            "--trace-events-limit",
            "4MiB",
        ],
        &["simulate", "job.fio", "--drive", "tiny", "--seed", "-1"],
        &[
            "simulate",
            "job.fio",
            "--drive",
            "tiny",
            "--seed",
            "18446744073709551616",
        ],
        &["simulate", "job.fio", "--drive", "tiny", "--seed", "NaN"],
        &[
            "simulate",
            "job.fio",
            "--drive",
            "tiny",
            "--precondition",
            "full",
        ],
        &[
            "simulate",
            "job.fio",
            "--drive",
            "tiny",
            "--output-format",
            "xml",
        ],
        &["simulate", "job.fio", "--drive", "tiny", "--drive", "bg4"],
        &[
            "simulate", "job.fio", "--drive", "tiny", "--replay", "closed",
        ],
        &["simulate", "job.fio", "--drive", "tiny", "--fit", "wrap"],
        &["simulate", "job.fio", "--drive", "tiny", "--iodepth", "4"],
        &["compare", "job.fio", "--drive", "tiny"],
        &["compare", "job.fio", "--drive", "tiny", "--hmb", "1e"],
        &["compare", "job.fio", "--hmb", "off,64MiB"],
        &["drives", "show"],
        &["trace", "convert", "job.fio"],
    ];
    insta::assert_snapshot!(transcript(&sandbox, cases));
}

/// A number below zero was once taken for an option of that name.
#[test]
fn what_is_below_zero_is_told_by_its_option_and_range() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOB);
    for (command, option) in [
        (
            "compare job.fio --drive tiny --hmb off,default",
            "--clients",
        ),
        ("simulate job.fio --drive tiny", "--iodepth"),
        ("probe sim:tiny", "--confidence"),
        ("probe sim:tiny", "--noise"),
        ("probe sim:tiny", "--budget"),
        ("serve --drive tiny --socket s", "--speed"),
        ("serve --drive tiny --socket s", "--block"),
    ] {
        let mut args: Vec<&str> = command.split(' ').collect();
        args.extend([option, "-1"]);
        let outcome = sandbox.run(&args);
        assert_eq!(outcome.code, Some(2), "{args:?}");
        let said = outcome.stderr;
        assert!(said.contains(&format!("error: `{option}`")), "{said}");
        assert!(said.contains("-1"), "{said}");
    }
}

#[test]
fn wrong_drive() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOB);
    sandbox.file("typo.toml", "extends = \"tiny\"\n[nand]\nchanels = 8\n");
    sandbox.file("unit.toml", "extends = \"tiny\"\n[nand]\nerase = 3\n");
    sandbox.file("broken.toml", "[nand\n");
    sandbox.file("circle.toml", "extends = \"nowhere\"\n");
    sandbox.file("latin.toml", b"name = \"\xe9\"\n");
    std::fs::create_dir(sandbox.dir.join("folder")).unwrap();
    let tiny = |more: &[&'static str]| -> Vec<&str> {
        [&["simulate", "job.fio", "--drive", "tiny"], more].concat()
    };
    let cases: Vec<Vec<&str>> = vec![
        vec!["simulate", "job.fio", "--drive", "rc100-48"],
        vec!["simulate", "job.fio", "--drive", "zzzzzzzzzzzzzzz"],
        vec!["simulate", "job.fio", "--drive", "tiny,bg4"],
        vec!["simulate", "job.fio", "--drive", ""],
        vec!["simulate", "job.fio", "--drive", "missing.toml"],
        vec!["simulate", "job.fio", "--drive", "folder"],
        vec!["drives", "check", "typo.toml"],
        vec!["drives", "check", "unit.toml"],
        vec!["drives", "check", "broken.toml"],
        vec!["drives", "check", "circle.toml"],
        vec!["drives", "check", "latin.toml"],
        vec!["drives", "check", "missing.toml"],
        vec!["drives", "show", "typo.toml"],
        tiny(&["--set", "nand.channels"]),
        tiny(&["--set", "=8"]),
        tiny(&["--set", "nand.chanels=8"]),
        tiny(&["--set", "nand.channels=0"]),
        tiny(&["--set", "nand.channels=-1"]),
        tiny(&["--set", "nand.channels=many"]),
        tiny(&["--set", "ftl.overprovisioning=nan"]),
        tiny(&["--set", "capacity=512"]),
        tiny(&["--set", "capacity=99999999999999999999GB"]),
        tiny(&["--hmb", "64"]),
        tiny(&["--hmb", "-64MiB"]),
        tiny(&["--hmb", "64 Mb"]),
        tiny(&["--hmb", "0.3B"]),
        tiny(&["--hmb", "on"]),
        tiny(&["--hmb", "18446744073709551616B"]),
        tiny(&["--hmb-offer", "8TiB"]),
        tiny(&["--hmb", "off", "--hmb-offer", "64KiB"]),
        vec![
            "simulate",
            "job.fio",
            "--drive",
            "970-pro",
            "--hmb-offer",
            "64MiB",
        ],
    ];
    let cases: Vec<&[&str]> = cases.iter().map(Vec::as_slice).collect();
    insta::assert_snapshot!(transcript(&sandbox, &cases));
}

#[test]
fn wrong_job_file() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.dir.join("folder.fio")).unwrap();
    for (name, text) in [
        ("empty.fio", ""),
        ("nothing.fio", "# only a comment\n"),
        ("global.fio", "[global]\nbs=4k\n"),
        ("typo.fio", "[a]\nrw=randread\nioddepth=4\n"),
        ("zero.fio", "[a]\nrw=randread\nbs=0\n"),
        ("nosize.fio", "[a]\nrw=randread\nsize=0\niodepth=0\n"),
        ("large.fio", "[a]\nrw=randread\nsize=1g\n"),
        ("unit.fio", "[a]\nrw=randread\nbs=4parsecs\n"),
        (
            "overflow.fio",
            "[a]\nrw=randread\nsize=99999999999999999999\n",
        ),
        (
            "contradiction.fio",
            "[a]\nrw=randread\nrate=1m\nrate_iops=10\n",
        ),
        ("promise.fio", "[a]\nrw=randread\nlatency_target=1ms\n"),
        ("include.fio", "[a]\ninclude missing.fio\nrw=read\n"),
        ("iolog.fio", "[a]\nread_iolog=missing.log\n"),
        ("unaligned.fio", "[a]\nrw=randread\nbs=1000\nsize=1m\n"),
        (
            "late.fio",
            "[a]\nrw=randread\nbs=4k\nsize=1m\nstartdelay=300d\n",
        ),
        ("stray.fio", "rw=read\n[a]\n"),
    ] {
        sandbox.file(name, text);
    }
    sandbox.file("binary.fio", [0x7f, b'E', b'L', b'F', 0, 0xff, 0xfe]);
    let names = [
        "missing.fio",
        "folder.fio",
        "empty.fio",
        "nothing.fio",
        "global.fio",
        "typo.fio",
        "zero.fio",
        "nosize.fio",
        "large.fio",
        "unit.fio",
        "overflow.fio",
        "contradiction.fio",
        "promise.fio",
        "include.fio",
        "iolog.fio",
        "unaligned.fio",
        "late.fio",
        "stray.fio",
        "binary.fio",
    ];
    let cases: Vec<Vec<&str>> = names
        .iter()
        .map(|name| vec!["simulate", name, "--drive", "tiny"])
        .collect();
    let cases: Vec<&[&str]> = cases.iter().map(Vec::as_slice).collect();
    insta::assert_snapshot!(transcript(&sandbox, &cases));
}

#[test]
fn wrong_trace() {
    let sandbox = Sandbox::new();
    let csv = "time_us,op,offset_bytes,length_bytes\n";
    sandbox.file(
        "beyond.csv",
        format!("{csv}0,R,0,4096\n10,R,536870912,4096\n"),
    );
    sandbox.file(
        "broken.csv",
        format!("{csv}0,R,0,4096\n10,R,banana,4096\n20,R,0,4096\n"),
    );
    sandbox.file("zero.csv", format!("{csv}0,R,0,0\n"));
    sandbox.file(
        "huge.csv",
        format!("{csv}0,R,0,18446744073709551616\n5,R,0,512\n"),
    );
    sandbox.file("negative.csv", format!("{csv}0,R,-4096,4096\n5,R,0,512\n"));
    sandbox.file("nan.csv", format!("{csv}NaN,R,0,4096\n5,R,0,512\n"));
    sandbox.file("header.csv", csv);
    sandbox.file(
        "years.csv",
        format!("{csv}0,R,0,4096\n99999999999999,R,0,4096\n"),
    );
    sandbox.file("prose.txt", "It was a dark and stormy night.\n");
    sandbox.file("trace.csv.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
    sandbox.file("binary.trace", [0u8; 4096]);
    sandbox.file("empty.trace", "");
    sandbox.file("good.csv", format!("{csv}0,R,0,4096\n"));
    sandbox.file("job.fio", JOB);
    let simulate = |more: &[&'static str]| -> Vec<&str> {
        [&["simulate"], more, &["--drive", "tiny"]].concat()
    };
    let cases: Vec<Vec<&str>> = vec![
        simulate(&["beyond.csv"]),
        simulate(&["broken.csv"]),
        simulate(&["zero.csv"]),
        simulate(&["huge.csv"]),
        simulate(&["negative.csv"]),
        simulate(&["nan.csv"]),
        simulate(&["header.csv"]),
        simulate(&["years.csv"]),
        simulate(&["prose.txt"]),
        simulate(&["trace.csv.gz"]),
        simulate(&["binary.trace"]),
        simulate(&["empty.trace"]),
        simulate(&["-"]),
        simulate(&["good.csv", "--format", "msrr"]),
        simulate(&["good.csv", "--format", "msr"]),
        simulate(&["good.csv", "--device", "sda"]),
        simulate(&["good.csv", "--time-unit", "fortnight"]),
        simulate(&["good.csv", "--action", "Q"]),
        simulate(&["good.csv", "--iodepth", "8"]),
        simulate(&["good.csv", "--replay", "closed", "--iodepth", "0"]),
        vec!["trace", "info", "missing.csv"],
        vec!["trace", "info", "job.fio"],
        vec!["trace", "convert", "good.csv", "--to", "vhs"],
        vec![
            "trace",
            "convert",
            "good.csv",
            "--to",
            "csv",
            "--output",
            "no/such/place.csv",
        ],
    ];
    let cases: Vec<&[&str]> = cases.iter().map(Vec::as_slice).collect();
    insta::assert_snapshot!(transcript(&sandbox, &cases));
}

#[test]
fn wrong_wish_for_advice() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOB);
    let tiny = |more: &[&'static str]| -> Vec<&str> {
        [&["advise", "job.fio", "--drive", "tiny"], more].concat()
    };
    let cases: Vec<Vec<&str>> = vec![
        tiny(&["--slo", "200us"]),
        tiny(&["--slo", "p99=200"]),
        tiny(&["--slo", "p99=-1us"]),
        tiny(&["--slo", "p101=1ms"]),
        tiny(&["--slo", "p99=NaNus"]),
        tiny(&["--slo", "luck=1ms"]),
        tiny(&["--within", "-5%"]),
        tiny(&["--within", "100%"]),
        tiny(&["--within", "nan"]),
        tiny(&["--within", "5%", "--slo", "p99=1ms"]),
        tiny(&["--hmb", "off"]),
        vec!["advise", "job.fio", "--drive", "970-pro"],
    ];
    let cases: Vec<&[&str]> = cases.iter().map(Vec::as_slice).collect();
    insta::assert_snapshot!(transcript(&sandbox, &cases));
}

#[test]
fn wrong_output() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOB);
    std::fs::create_dir(sandbox.dir.join("folder")).unwrap();
    let tiny = |more: &[&'static str]| -> Vec<&str> {
        [&["simulate", "job.fio", "--drive", "tiny"], more].concat()
    };
    let cases: Vec<Vec<&str>> = vec![
        tiny(&["--output", "no/such/place.json"]),
        tiny(&["--output", "folder"]),
        tiny(&["--output", "job.fio/report"]),
        tiny(&["--latency-log", "no/such/place.log"]),
        tiny(&["--output", "-"]),
        tiny(&["--latency-log", "-"]),
        tiny(&["--output", "/dev/full"]),
        tiny(&["--output", "good.json", "--latency-log", "/dev/full"]),
    ];
    let cases: Vec<&[&str]> = cases.iter().map(Vec::as_slice).collect();
    insta::assert_snapshot!(transcript(&sandbox, &cases));
    assert_eq!(
        sandbox.files(),
        ["folder", "job.fio"],
        "nothing is left behind"
    );
}

/// What is wrong is told by its own name: the file's kind, the value as it was given, the drive of several.
#[test]
fn wrong_things_by_their_names() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOB);
    sandbox.file("log.toml", "[logging]\n");
    sandbox.file("large.fio", "[a]\nrw=randread\nsize=1g\nnumber_ios=10\n");
    sandbox.file("wrong.fio", "[a]\nrw=randred\n");
    let tiny = ["--drive", "tiny"];
    let both = ["--drive", "bg4", "--drive", "tiny"];
    let limit = ["--trace-events", "out.pf", "--trace-events-limit"];
    let cases: Vec<Vec<&str>> = vec![
        [&["simulate", "log.toml", "--stream"], &tiny[..]].concat(),
        [&["simulate", "job.fio"], &tiny[..], &limit, &["4097MiB"]].concat(),
        [
            &["simulate", "job.fio"],
            &tiny[..],
            &["--hmb-offer", "4097GiB"],
        ]
        .concat(),
        [&["compare", "large.fio"], &both[..]].concat(),
        // The first refuses, and the last would not.
        [&["compare", "large.fio"], &tiny[..], &["--drive", "bg4"]].concat(),
        // No drive would take it.
        [&["compare", "wrong.fio"], &both[..]].concat(),
        [&["simulate", "--replay", "closed", "--name=j"], &tiny[..]].concat(),
    ];
    let cases: Vec<&[&str]> = cases.iter().map(Vec::as_slice).collect();
    insta::assert_snapshot!(transcript(&sandbox, &cases));
}
