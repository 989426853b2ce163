//! `lodger probe` as a user meets it: reports, refusals, the drive file it writes.

use crate::common::Sandbox;
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn the_report_is_text_json_and_a_page() {
    let sandbox = Sandbox::new();
    let args = [
        "probe",
        "sim:tiny",
        "--experiment",
        "map-cache",
        "--experiment",
        "read-cache",
        "--experiment",
        "parallelism",
        "--report",
        "page.html",
    ];
    let text = sandbox.ok(&args).stdout;
    assert!(text.contains("address map"), "{text}");
    let page = std::fs::read_to_string(sandbox.dir.join("page.html")).unwrap();
    for part in [
        "<svg",
        "address map",
        "host memory off",
        "How it was measured",
        "download=\"probe.json\"",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("http"), "the page needs nothing else");
    // Every picture can be asked for its values and has curves that can be hidden, as on other pages.
    let count = |part: &str| page.matches(part).count();
    assert!(count("<svg") > 3, "{page}");
    assert_eq!(count("<figure>"), count("<svg"), "{page}");
    assert_eq!(count("class=\"tip\""), count("<svg"), "{page}");
    let report = json(
        &sandbox
            .ok(&[&args[..8], &["--output-format", "json"]].concat())
            .stdout,
    );
    for key in ["target", "roles", "quantities", "skipped", "partial"] {
        assert!(!report[key].is_null(), "{key}");
    }
    assert_eq!(report["roles"]["map"]["tier"], "hmb");
    assert_eq!(report["partial"], false);
}

/// It was on whenever the prober turned it on, whatever the host was to give.
#[test]
fn a_drive_that_is_given_no_host_memory_is_probed_without() {
    let sandbox = Sandbox::new();
    let off = sandbox.ok(&[
        "probe",
        "sim:tiny",
        "--hmb",
        "off",
        "--experiment",
        "map-cache",
        "--experiment",
        "parallelism",
        "--output-format",
        "json",
    ]);
    let report = json(&off.stdout);
    assert_eq!(report["roles"]["map"]["tier"], "undecided");
    let series = report["raw"].to_string();
    assert!(series.contains("host memory as found"), "{series}");
    assert!(!series.contains("host memory on"), "{series}");
    assert!(
        off.stderr.contains("the drive gets no host memory"),
        "{}",
        off.stderr
    );
}

#[test]
fn what_is_probed_is_never_overwritten_by_the_report_of_it() {
    let sandbox = Sandbox::new();
    let image = sandbox.file("image", vec![7; 2 << 20]);
    std::fs::hard_link(&image, sandbox.dir.join("other-name")).unwrap();
    for option in ["--output", "--report", "--emit-drive"] {
        for place in ["image", "./image", "other-name"] {
            let outcome = sandbox.run(&[
                "probe",
                "image",
                "--experiment",
                "read-ahead",
                option,
                place,
            ]);
            assert_eq!(
                outcome.code,
                Some(2),
                "{option} {place}: {}",
                outcome.stderr
            );
            let said = format!("error: cannot write `{place}`: this command reads it");
            assert!(outcome.stderr.contains(&said), "{}", outcome.stderr);
        }
    }
    assert!(std::fs::read(&image).unwrap() == vec![7; 2 << 20]);
}

/// The page took the place of the report, or the drive file that of both, and the probe ended well.
#[test]
fn each_output_of_a_probe_has_a_file_of_its_own() {
    let sandbox = Sandbox::new();
    let probe = ["probe", "sim:tiny", "--experiment", "queue-depth"];
    for places in [
        ["--output", "x", "--report", "./x"],
        ["--output", "x", "--emit-drive", "x"],
        ["--report", "x", "--emit-drive", "x"],
    ] {
        let outcome = sandbox.run(&[&probe[..], &places].concat());
        assert_eq!(outcome.code, Some(2), "{places:?}: {}", outcome.stderr);
        let said = outcome.stderr;
        assert!(said.contains("this command writes it already"), "{said}");
        // Before anything is measured.
        assert!(!said.contains("on a real drive"), "{said}");
        assert_eq!(sandbox.files(), Vec::<String>::new(), "{places:?}");
    }
    // The null.
    let apart = ["--output", "x", "--report", "y"];
    sandbox.ok(&[&probe[..], &apart].concat());
}

/// It was taken without a word, as if the drive had been given it.
#[test]
fn that_a_drive_takes_no_host_memory_is_said_where_some_is_offered() {
    let sandbox = Sandbox::new();
    let said = |drive: &str, amount: &str| {
        let args = [
            "probe",
            drive,
            "--hmb",
            amount,
            "--experiment",
            "flush",
            "-q",
        ];
        sandbox.ok(&args).stderr
    };
    for drive in ["sim:ufs21-64", "sim:970-pro"] {
        let warning = "warning: `--hmb` does nothing: the drive asks for no host memory";
        assert_eq!(said(drive, "64MiB").trim_end(), warning);
        // The nulls: nothing is given, and a drive that takes some.
        assert_eq!(said(drive, "off"), "");
    }
    assert_eq!(said("sim:tiny", "256KiB"), "");
}

#[test]
fn a_drive_file_from_a_probe_gives_the_same_findings() {
    let sandbox = Sandbox::new();
    let probe = |target: &str, more: &[&str]| {
        let mut args = vec!["probe", target, "--destroy-data", "--output-format", "json"];
        for name in [
            "map-cache",
            "read-cache",
            "parallelism",
            "flush",
            "write-buffer",
        ] {
            args.extend(["--experiment", name]);
        }
        args.extend(more);
        sandbox.ok(&args).stdout
    };
    let first = probe("sim:rc100-480", &["--emit-drive", "probed.toml"]);
    let second = probe("sim:probed.toml", &[]);
    sandbox.file("a.json", &first);
    sandbox.file("b.json", &second);
    let (first, second) = (json(&first), json(&second));
    for role in ["map", "read_cache", "write_buffer"] {
        let (a, b) = (&first["roles"][role], &second["roles"][role]);
        assert_eq!(a["tier"], b["tier"], "{role}: {b}");
        let (a, b) = (&a["size_bytes"], &b["size_bytes"]);
        let end = |size: &Value, end: &str| size[end].as_f64();
        let Some((a, seen)) = end(a, "estimate").zip(end(b, "estimate")) else {
            continue;
        };
        // Without an upper end it is "more than".
        match end(b, "high") {
            Some(_) => assert!((a / seen - 1.0).abs() < 0.1, "{role}: {a} and {seen}"),
            None => assert!(seen < 1.1 * a, "{role}: {a} and more than {seen}"),
        }
    }
    let compared = sandbox
        .ok(&["probe", "--compare", "a.json", "b.json"])
        .stdout;
    assert!(compared.contains("sim:probed.toml"), "{compared}");
    // Bytes were 3.3554e7 B.
    assert!(compared.contains("hmb, 32 MiB"), "{compared}");
    assert!(
        compared.contains("  map "),
        "the map does not differ: {compared}"
    );
}

/// They were taken, and did nothing: who gave `--hmb off` believed that the drive had no host memory.
#[test]
fn what_makes_a_simulated_drive_is_refused_for_one_that_is_there() {
    let sandbox = Sandbox::new();
    sandbox.file("disk.img", vec![7u8; 1 << 20]);
    for option in [
        ["--hmb", "off"],
        ["--hmb-offer", "64MiB"],
        ["--set", "capacity=1MiB"],
        ["--noise", "2"],
        ["--precondition", "random"],
    ] {
        for target in ["disk.img", "nbd:unix:/nowhere"] {
            let outcome = sandbox.run(&[&["probe", target], &option[..]].concat());
            assert_eq!(outcome.code, Some(2), "{option:?} {target}");
            let told = format!("`{}` is for simulated drives", option[0]);
            assert!(outcome.stderr.contains(&told), "{}", outcome.stderr);
        }
    }
}

#[test]
fn a_file_is_read_to_the_end_and_says_what_hides_the_drive() {
    let sandbox = Sandbox::new();
    sandbox.file("disk.img", vec![7u8; 24 << 20]);
    let report = sandbox.ok(&[
        "probe",
        "disk.img",
        "--experiment",
        "read-cache",
        "--experiment",
        "queue-depth",
        "--experiment",
        "flush",
        "--output-format",
        "json",
    ]);
    // What it takes is said before, all in all and one by one, and nothing of writes.
    for said in ["writes nothing", "\n  read-cache", "\n  queue-depth"] {
        assert!(report.stderr.contains(said), "{}", report.stderr);
    }
    for not_said in ["0 B", "\n  flush"] {
        assert!(!report.stderr.contains(not_said), "{}", report.stderr);
    }
    let report = json(&report.stdout);
    assert_eq!(report["partial"], false, "{report}");
    assert_eq!(report["roles"]["read_cache"]["tier"], "undecided");
    assert!(
        report["notes"][0].as_str().unwrap().contains("file"),
        "{report}"
    );
    assert_eq!(report["usage"]["writes"], 0);
    assert_eq!(report["skipped"][0]["experiment"], "flush");
}

#[test]
fn data_is_not_destroyed_without_the_right_serial_number() {
    let sandbox = Sandbox::new();
    sandbox.file("disk.img", vec![7u8; 8 << 20]);
    for args in [
        &["probe", "disk.img", "--destroy-data"][..],
        &["probe", "disk.img", "--destroy-data", "--yes", "other"][..],
    ] {
        let refused = sandbox.run(args);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(
            refused.stderr.contains("is not the serial number"),
            "{}",
            refused.stderr
        );
        // The wear is known before consent is asked for.
        let wear = refused
            .stderr
            .lines()
            .find(|line| line.starts_with("  write-buffer"));
        assert!(
            wear.is_some_and(|line| line.contains("MiB at most")),
            "{}",
            refused.stderr
        );
    }
    let image = std::fs::read(sandbox.dir.join("disk.img")).unwrap();
    assert!(image.iter().all(|byte| *byte == 7), "nothing was written");
    sandbox.ok(&[
        "probe",
        "disk.img",
        "--destroy-data",
        "--yes",
        "disk.img",
        "--experiment",
        "flush",
    ]);
    let image = std::fs::read(sandbox.dir.join("disk.img")).unwrap();
    assert!(
        image.iter().any(|byte| *byte != 7),
        "with consent it is written"
    );
}

#[test]
fn wrong_use_is_told_with_what_is_allowed() {
    let sandbox = Sandbox::new();
    for (args, said) in [
        (
            &["probe", "sim:tiny", "--experiment", "magic"][..],
            "no experiment is called `magic`",
        ),
        (
            &["probe", "sim:tiny", "--budget", "soon"][..],
            "must be a time with its unit",
        ),
        (&["probe", "nothing-here"][..], "cannot open `nothing-here`"),
        (
            &["probe", "sim:nothing"][..],
            "no drive is called `nothing`",
        ),
        (&["probe", "sim:tiny", "--noise", "1000"][..], "--noise"),
        (
            &["probe", "sim:tiny", "--confidence", "95"][..],
            "must be between 0.5 and 0.999, found 95",
        ),
    ] {
        let outcome = sandbox.run(args);
        assert_eq!(outcome.code, Some(2), "{args:?}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains(said),
            "{args:?}: {}",
            outcome.stderr
        );
    }
}

/// The path is looked up again after consent, as the file has to be opened anew.
#[cfg(target_os = "linux")]
#[test]
fn what_was_moved_into_the_place_of_what_was_agreed_to_is_not_written() {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::unix::fs::symlink;
    let sandbox = Sandbox::new();
    let names = ["a.img", "b.img"];
    for name in names {
        sandbox.file(name, vec![7u8; 8 << 20]);
    }
    let link = sandbox.dir.join("drive");
    symlink("a.img", &link).unwrap();
    let args = ["probe", "drive", "--destroy-data", "--experiment", "flush"];
    let mut command = sandbox.command(&args);
    let command = command.stdin(std::process::Stdio::piped());
    let command = command.stdout(std::process::Stdio::null());
    let mut child = command
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("All data will be lost on") {
        line.clear();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "it asks");
    }
    assert!(
        line.contains("serial `a.img`"),
        "the file, not the link to it: {line}"
    );
    std::fs::remove_file(&link).unwrap();
    symlink("b.img", &link).unwrap();
    child.stdin.take().unwrap().write_all(b"a.img\n").unwrap();
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2), "{said}");
    assert!(said.contains("no more what was agreed to"), "{said}");
    for name in names {
        let image = std::fs::read(sandbox.dir.join(name)).unwrap();
        assert!(image.iter().all(|byte| *byte == 7), "{name} was written");
    }
}
