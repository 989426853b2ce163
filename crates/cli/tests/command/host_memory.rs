//! Does host memory mean what people mean by it? The host's cap, an exact offer, and what is said of
//! memory that is not used.

use crate::common::{Sandbox, repository};
use serde_json::Value;

const JOB: &str = "[job]\nrw=randread\nbs=4k\nsize=64m\nnumber_ios=500\n";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOB);
    sandbox
}

/// Granted and usable bytes of a run.
fn granted(sandbox: &Sandbox, drive: &str, more: &[&str]) -> (u64, u64) {
    let base = [
        "simulate",
        "job.fio",
        "--drive",
        drive,
        "--output-format",
        "json",
    ];
    let outcome = sandbox.ok(&[&base, more].concat());
    let result: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let number = |key: &str| result["lodger"]["hmb"][key].as_u64().unwrap();
    (number("granted_bytes"), number("usable_bytes"))
}

#[test]
fn hmb_is_the_hosts_cap_and_no_drive_gets_more_than_it_asks_for() {
    let sandbox = sandbox();
    let mib = |n: u64| n << 20;
    // A BG4 asks for 61 MiB, of which it uses 32.
    assert_eq!(
        granted(&sandbox, "bg4", &["--hmb", "32MiB"]),
        (mib(32), mib(32))
    );
    for more in [
        &["--hmb", "128MiB"][..],
        &["--hmb", "8TiB"],
        &["--hmb", "default"],
        &[],
    ] {
        assert_eq!(
            granted(&sandbox, "bg4", more),
            (mib(61), mib(32)),
            "{more:?}"
        );
    }
    assert_eq!(
        granted(&sandbox, "bg4", &["--hmb-offer", "64MiB"]),
        (mib(64), mib(64))
    );
    assert_eq!(granted(&sandbox, "bg4", &["--hmb", "off"]), (0, 0));
    // An A80 asks for 480 MiB: Linux gives 128, and more when told to.
    assert_eq!(granted(&sandbox, "a80", &["--hmb", "default"]).0, mib(128));
    assert_eq!(granted(&sandbox, "a80", &["--hmb", "1GiB"]).0, mib(480));
}

#[test]
fn a_cap_and_an_offer_exclude_each_other_and_an_offer_is_a_size() {
    let sandbox = sandbox();
    let base = ["simulate", "job.fio", "--drive", "tiny"];
    for more in [
        &["--hmb", "64KiB", "--hmb-offer", "64KiB"][..],
        &["--hmb-offer", "default"],
        &["--hmb-offer", "8TiB"],
        &["--hmb", "on"],
    ] {
        let outcome = sandbox.run(&[&base, more].concat());
        assert_eq!(outcome.code, Some(2), "{more:?}\n{}", outcome.stdout);
        assert!(outcome.stderr.contains("--hmb"), "{}", outcome.stderr);
    }
}

#[test]
fn a_column_says_what_became_of_memory_that_is_not_used() {
    let sandbox = sandbox();
    let table = |args: &[&str]| sandbox.ok(&[&["compare", "job.fio"], args].concat()).stdout;
    let line = |table: &str, name: &str| {
        let line = table
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        let line = line.unwrap_or_else(|| panic!("no {name} in\n{table}"));
        line.split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .skip(1)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let found = table(&[
        "--drive",
        "bg4",
        "--hmb",
        "off,8MiB,128MiB",
        "--hmb-offer",
        "64MiB",
    ]);
    assert_eq!(
        line(&found, "host gives"),
        ["none", "<= 8 MiB", "<= 128 MiB", "64 MiB"]
    );
    // 8 MiB are below what it needs.
    assert_eq!(
        line(&found, "host memory"),
        ["none", "too little", "61 MiB", "64 MiB"]
    );
    assert_eq!(line(&found, "usable"), ["-", "-", "32 MiB", "64 MiB"]);
    let found = table(&["--drive", "tiny", "--drive", "970-pro", "--hmb", "128MiB"]);
    assert_eq!(line(&found, "host memory"), ["256 KiB", "not asked for"]);
}

#[test]
fn a_drive_that_wants_none_says_so_when_it_is_offered_some() {
    let sandbox = sandbox();
    let base = ["simulate", "job.fio", "--drive", "970-pro"];
    let outcome = sandbox.ok(&[&base[..], &["--hmb", "64MiB"]].concat());
    assert!(
        outcome
            .stdout
            .contains("host memory  : the drive asks for none"),
        "{}",
        outcome.stdout
    );
    let outcome = sandbox.run(&[&base[..], &["--hmb-offer", "64MiB"]].concat());
    assert_eq!(outcome.code, Some(2));
    assert!(
        outcome.stderr.contains("no use for host memory"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_drive_or_an_amount_given_twice_is_said() {
    let sandbox = sandbox();
    for more in [
        &["--drive", "tiny", "--drive", "tiny"][..],
        &["--drive", "tiny", "--hmb", "off,64KiB,off"],
        &["--drive", "tiny", "--hmb-offer", "64KiB,64KiB"],
    ] {
        let outcome = sandbox.run(&[&["compare", "job.fio"], more].concat());
        assert_eq!(outcome.code, Some(2), "{}", outcome.stdout);
        assert!(outcome.stderr.contains("twice"), "{}", outcome.stderr);
    }
}

/// A database that is done soon.
fn short_logging() -> Sandbox {
    let text = std::fs::read_to_string(repository("workloads/logging/linkbench.toml")).unwrap();
    let short = |line: &str| match line.split_once(" = ") {
        Some(("transactions", _)) => "transactions = 4000".to_owned(),
        _ => line.to_owned(),
    };
    let text: Vec<String> = text.lines().map(short).collect();
    let sandbox = Sandbox::new();
    sandbox.file("log.toml", text.join("\n"));
    sandbox
}

#[test]
fn comparing_databases_shows_transactions_and_commit_latency() {
    let sandbox = short_logging();
    let table = sandbox.ok(&[
        "compare",
        "log.toml",
        "--drive",
        "2b-ssd",
        "--drive",
        "pm963",
        "--commit",
        "block",
        "--clients",
        "4",
    ]);
    for row in [
        "transactions/s",
        "commit mean",
        "commit p50",
        "commit p99",
        "commit p99.9",
    ] {
        assert!(table.stdout.contains(row), "no {row}\n{}", table.stdout);
    }
    let clients = table
        .stdout
        .lines()
        .find(|line| line.trim_start().starts_with("clients"))
        .unwrap();
    assert_eq!(
        clients.split_whitespace().collect::<Vec<_>>(),
        ["clients", "4", "4"]
    );
}

/// The values of a row of the table.
fn cells<'t>(table: &'t str, name: &str) -> Vec<&'t str> {
    let row = table
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(name));
    row.unwrap_or_else(|| panic!("no {name}\n{table}"))
        .split_whitespace()
        .collect()
}

/// Each way to commit is a run, and what it says is what `simulate` says.
#[test]
fn ways_to_commit_stand_side_by_side() {
    let sandbox = short_logging();
    let drive = ["log.toml", "--drive", "2b-ssd", "--clients", "1"];
    let three = [
        &["compare"],
        &drive[..],
        &["--commit", "block,ba,async", "--report", "page.html"],
    ]
    .concat();
    let table = sandbox.ok(&three).stdout;
    assert_eq!(cells(&table, "commit mode"), ["block", "ba", "async"]);
    let page = std::fs::read_to_string(sandbox.dir.join("page.html")).unwrap();
    assert!(page.contains("Commit latency over time"), "{page}");
    // What the log asks of the drive is no answer.
    assert!(page.contains("most transactions a second") && !page.contains("most writes a second"));
    let json = sandbox
        .ok(&[&three[..], &["--output-format", "json"]].concat())
        .stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    for (at, commit) in ["block", "ba", "async"].into_iter().enumerate() {
        assert!(page.contains(&format!("2b-ssd, commit {commit}")), "{page}");
        let alone = [
            &["simulate"],
            &drive[..],
            &["--commit", commit, "--output-format", "json"],
        ]
        .concat();
        let alone: serde_json::Value = serde_json::from_str(&sandbox.ok(&alone).stdout).unwrap();
        let of = |value: &serde_json::Value| value["lodger"]["logging"].clone();
        assert_eq!(of(&json["compare"][at]["result"]), of(&alone), "{commit}");
    }
    let one = [&["simulate"], &drive[..], &["--commit", "ba"]].concat();
    let text = sandbox.ok(&one).stdout;
    assert!(text.contains("commit ba, 1 client:"), "{text}");
    for wrong in [
        &["--commit", "ba,block,ba"][..],
        &["--commit", "ba,never"],
        &["--drive", "pm963", "--commit", "block,ba"],
    ] {
        let outcome =
            sandbox.run(&[&["compare"], &drive[..], wrong, &["--output", "none.txt"]].concat());
        assert_eq!(outcome.code, Some(2), "{wrong:?}\n{}", outcome.stdout);
        assert!(!sandbox.dir.join("none.txt").exists(), "{wrong:?}");
    }
}

/// The map of a phone's storage stands in host memory without any grant (HPB): that is no "no host memory".
#[test]
fn what_the_hosts_driver_keeps_is_host_memory() {
    let sandbox = sandbox();
    let half = ["--set", "hpb.host_cache=8MiB"];
    let run = |line: &[&str]| sandbox.ok(&[line, &half].concat()).stdout;
    let text = run(&["simulate", "job.fio", "--drive", "galaxy-s7"]);
    let first = "Starting 1 job on galaxy-s7, whose driver keeps up to 8 MiB of its map";
    assert!(text.contains(first), "{text}");
    let table = sandbox.ok(&[
        "compare",
        "job.fio",
        "--drive",
        "galaxy-s7",
        "--drive",
        "tiny",
        "--drive",
        "970-pro",
    ]);
    let row = |name: &str| -> Vec<&str> {
        let line = table.stdout.lines().find(|line| line.starts_with(name));
        line.unwrap_or_default()[name.len()..]
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .collect()
    };
    assert_eq!(row("host memory")[0], "with driver", "{}", table.stdout);
    assert_eq!(row("host memory")[2], "not asked for", "{}", table.stdout);
    assert_eq!(
        row("  driver keeps"),
        ["29.8 MiB", "-", "-"],
        "{}",
        table.stdout
    );
    sandbox.ok(&[
        "simulate",
        "job.fio",
        "--drive",
        "galaxy-s7",
        "--report",
        "x.html",
    ]);
    let page = std::fs::read_to_string(sandbox.dir.join("x.html")).unwrap();
    assert!(
        page.contains("the host's driver keeps up to 29.81 MiB of the map"),
        "{page}"
    );
    let refused = sandbox.run(&["advise", "job.fio", "--drive", "galaxy-s7"]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused
            .stderr
            .contains("are kept by the host's driver (HPB)"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("--set hpb.host_cache="),
        "{}",
        refused.stderr
    );
}

#[test]
fn drives_with_a_comma_between_are_told_apart() {
    let sandbox = sandbox();
    let refused = sandbox.run(&["compare", "job.fio", "--drive", "tiny,bg4,a80"]);
    assert_eq!(refused.code, Some(2));
    let hint = "--drive tiny --drive bg4 --drive a80";
    assert!(refused.stderr.contains(hint), "{}", refused.stderr);
}

/// HMMINDS was looked at only where the host could not allocate: a drive that wants 38 MiB in one piece got 16.
#[test]
fn a_drive_that_wants_longer_pieces_than_linux_has_gets_no_host_memory() {
    let sandbox = Sandbox::new();
    sandbox.file("j.fio", "[j]\nrw=randread\nsize=16m\nnumber_ios=10\n");
    let granted = |least: &str, given: &[&str]| {
        let set = format!("tier.hmb.min_descriptor={least}");
        let simulate = ["simulate", "j.fio", "--drive", "rc100-480", "--set", &set];
        let json = ["--output-format", "json"];
        let outcome = sandbox.ok(&[&simulate[..], &json, given].concat());
        let found: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
        let bytes = found["lodger"]["hmb"]["granted_bytes"].as_u64();
        (bytes.unwrap() >> 20, outcome.stderr)
    };
    for given in [&["--hmb", "16MiB"][..], &["--hmb-offer", "16MiB"], &[]] {
        for least in ["5MiB", "38MiB"] {
            let (mib, told) = granted(least, given);
            assert_eq!(mib, 0, "{least} {given:?}");
            assert!(told.contains("`tier.hmb.min_descriptor`"), "{told}");
        }
        let all = if given.is_empty() { 38 } else { 16 };
        assert_eq!(granted("0B", given).0, all);
        // The last piece of 38 MiB has 2, and is none.
        assert_eq!(granted("4MiB", given).0, all / 4 * 4);
    }
}
