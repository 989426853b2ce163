//! Do comparisons and pages tell of flushes, which are often the longest of all, as they tell of reads and writes?

use crate::common::Sandbox;
use crate::time::attribute;
use serde_json::Value;

const FLUSHED: &str = "[a]\nrw=randwrite\nbs=4k\nfsync=1\nsize=16m\nnumber_ios=200\n";
/// Their flushes differ many times, their writes hardly.
const TWO: [&str; 6] = [
    "compare", "job.fio", "--drive", "970-pro", "--drive", "pm963",
];

fn sandbox(job: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", job);
    sandbox
}

fn with<'a>(args: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [args, more].concat()
}

fn json(sandbox: &Sandbox, args: &[&str]) -> Value {
    let text = sandbox.ok(&with(args, &["--output-format", "json"])).stdout;
    serde_json::from_str(&text).unwrap()
}

fn page(sandbox: &Sandbox, args: &[&str]) -> String {
    sandbox.ok(&with(args, &["--report", "page.html"]));
    std::fs::read_to_string(sandbox.dir.join("page.html")).unwrap()
}

/// As the reports write it.
fn duration(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.1} us", ns / 1e3),
        ns => format!("{:.2} ms", ns / 1e6),
    }
}

/// Cells of a row below a heading.
fn row(text: &str, heading: &str, name: &str) -> Vec<String> {
    let mut below = text.lines().skip_while(|line| *line != heading).skip(1);
    let row = below.find(|line| line.trim_start().starts_with(name));
    let cells = row.unwrap_or_else(|| panic!("{heading}, {name}: {text}"));
    let cells = cells.trim_start().strip_prefix(name).unwrap().split("  ");
    let cells = cells.map(str::trim).filter(|cell| !cell.is_empty());
    cells.map(str::to_owned).collect()
}

#[test]
fn drives_whose_flushes_differ_do_not_look_equal() {
    let sandbox = sandbox(FLUSHED);
    let json = json(&sandbox, &TWO);
    let runs = json["compare"].as_array().unwrap();
    let of = |which: &str, key: &str| -> Vec<f64> {
        let jobs = runs.iter().map(|run| &run["result"]["jobs"][0]);
        jobs.map(|job| job["sync"][which][key].as_f64().unwrap())
            .collect()
    };
    let means = of("lat_ns", "mean");
    assert!(means[0] > 5.0 * means[1], "{means:?}");
    let text = sandbox.ok(&TWO).stdout;
    let shown = |of: Vec<f64>| of.into_iter().map(duration).collect::<Vec<_>>();
    for (name, key) in [("lat mean", "mean"), ("lat max", "max")] {
        assert_eq!(row(&text, "a sync", name), shown(of("lat_ns", key)));
    }
    assert!(text.contains("\na write\n") && !text.contains("\na read\n"));

    let csv = sandbox.ok(&with(&TWO, &["--output-format", "csv"])).stdout;
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|other| *other == name).unwrap();
    let syncs = rows.iter().filter(|row| row[column("direction")] == "sync");
    let syncs: Vec<_> = syncs.collect();
    assert_eq!(syncs.len(), 2, "{csv}");
    for (row, run) in syncs.iter().zip(runs) {
        assert_eq!(row.len(), rows[0].len());
        let job = &run["result"]["jobs"][0];
        let cell = |name: &str| row[column(name)].parse::<f64>().unwrap();
        assert_eq!(Some(cell("ios")), job["sync"]["total_ios"].as_f64());
        // fio's `lat` has what the host takes to submit, too.
        let submit = job["write"]["slat_ns"]["max"].as_f64().unwrap();
        let longest = job["sync"]["lat_ns"]["max"].as_f64().unwrap();
        assert_eq!(cell("clat_max_ns"), longest - submit);
        // In the time of the writes; after the last of them there is none.
        let of_writes = |key: &str| job["write"][key].as_f64().unwrap();
        let share = cell("ios") / of_writes("total_ios");
        assert!((0.99..1.0).contains(&share), "{share}");
        let rate = of_writes("iops") * share;
        assert!((cell("iops") / rate - 1.0).abs() < 1e-9);
        assert_eq!(row[column("bw_bytes")], "");
    }
}

#[test]
fn the_page_of_a_comparison_says_whose_flushes_are_shorter() {
    let sandbox = sandbox(FLUSHED);
    let json = json(&sandbox, &TWO);
    let page = page(&sandbox, &TWO);
    let runs = json["compare"].as_array().unwrap();
    let longest = runs
        .iter()
        .map(|run| &run["result"]["jobs"][0]["sync"]["lat_ns"]["max"]);
    let least = longest
        .filter_map(Value::as_f64)
        .fold(f64::INFINITY, f64::min);
    let card = format!(
        "least sync latency, longest</span><b>{}</b>",
        duration(least)
    );
    assert!(page.contains(&card), "{card}");
    for title in [
        "Sync latency by rank",
        "Syncs over time",
        "Sync latency over time",
    ] {
        assert!(page.contains(&format!("<figcaption>{title}")), "{title}");
    }
    // A job without flushes has none of it.
    sandbox.file("job.fio", FLUSHED.replace("fsync=1\n", ""));
    let without = self::page(&sandbox, &TWO);
    assert!(!without.contains("sync latency") && !without.contains("Sync latency"));
    let text = sandbox.ok(&TWO).stdout;
    assert!(!text.contains(" sync"), "{text}");
}

#[test]
fn the_page_of_a_run_has_its_flushes_among_cards_and_curves() {
    const RUN: [&str; 4] = ["simulate", "job.fio", "--drive", "970-pro"];
    let sandbox = sandbox(FLUSHED);
    let job = &json(&sandbox, &RUN)["jobs"][0];
    let page = page(&sandbox, &RUN);
    let sync = &job["sync"]["lat_ns"];
    let mean = duration(sync["mean"].as_f64().unwrap());
    let max_ns = sync["max"].as_f64().unwrap();
    let card = format!("sync latency, mean</span><b>{mean}</b>");
    assert!(page.contains(&card), "{card}");
    assert!(page.contains(&format!(", longest {}", duration(max_ns))));
    assert!(page.contains("<figcaption>Sync latency over time"));
    // Rate over time and latency by rank, beside the writes.
    let names = attribute(&page, "data-name");
    for name in ["writes", "syncs"] {
        assert_eq!(names.iter().filter(|other| **other == name).count(), 2);
    }
}

/// Of every direction, as the longest is looked at first.
#[test]
fn a_comparison_says_how_long_the_longest_request_took() {
    let job = "[a]\nrw=randrw\nbs=4k\nsize=16m\niodepth=4\nnumber_ios=300\n[t]\nrw=randtrim\nbs=4k\nsize=16m\nnumber_ios=50\n";
    let sandbox = sandbox(job);
    let json = json(&sandbox, &TWO);
    let text = sandbox.ok(&TWO).stdout;
    let page = page(&sandbox, &TWO);
    for (job, direction) in [(0, "read"), (0, "write"), (1, "trim")] {
        let runs = json["compare"].as_array().unwrap().iter();
        let clat = runs.map(|run| &run["result"]["jobs"][job][direction]["clat_ns"]["max"]);
        let shown: Vec<String> = clat.map(|ns| duration(ns.as_f64().unwrap())).collect();
        let heading = format!("{} {direction}", ["a", "t"][job]);
        assert_eq!(row(&text, &heading, "clat max"), shown);
        let column = format!(
            "{}{} latency, longest",
            direction[..1].to_uppercase(),
            &direction[1..]
        );
        assert!(
            page.contains(&format!("<th class=\"r\">{column}")),
            "{column}"
        );
    }
}
