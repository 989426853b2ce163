//! Do comparisons and advice say the same as table, Markdown, comma-separated values and page, whoever names the drives?

use crate::common::Sandbox;
use crate::time::attribute;
use serde_json::Value;

const JOB: &str = "[a]\nrw=randrw\nbs=4k\nsize=64m\niodepth=4\nnumber_ios=400\n";
/// A drive's file name that means something in every form.
const HOSTILE: &str = "<script>_a|b,\"c\".toml";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOB);
    sandbox.file("writes.fio", JOB.replace("randrw", "randwrite"));
    sandbox.file(HOSTILE, "extends = \"tiny\"\nname = \"<i>\"\n");
    sandbox
}

const TWO: [&str; 6] = ["compare", "job.fio", "--drive", "tiny", "--drive", HOSTILE];

fn in_form(sandbox: &Sandbox, args: &[&str], form: &str) -> String {
    sandbox
        .ok(&[args, &["--output-format", form]].concat())
        .stdout
}

/// Rows of comma-separated values (RFC 4180).
fn rows(csv: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let mut quoted = false;
    let mut letters = csv.trim_end().chars().peekable();
    while let Some(letter) = letters.next() {
        let row = rows.last_mut().unwrap();
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                row.last_mut().unwrap().extend(letters.next())
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\n' if !quoted => rows.push(vec![String::new()]),
            letter => row.last_mut().unwrap().push(letter),
        }
    }
    rows
}

/// The cell of a row whose column has that name.
fn cell<'a>(rows: &'a [Vec<String>], row: usize, name: &str) -> &'a str {
    let at = rows[0].iter().position(|other| other == name).unwrap();
    &rows[row][at]
}

#[test]
fn comma_separated_values_are_those_of_the_json() {
    let sandbox = sandbox();
    let csv = rows(&in_form(&sandbox, &TWO, "csv"));
    let json: Value = serde_json::from_str(&in_form(&sandbox, &TWO, "json")).unwrap();
    assert_eq!(
        csv.len(),
        5,
        "names, then two runs with reads and writes: {csv:?}"
    );
    assert!(csv.iter().all(|row| row.len() == csv[0].len()), "{csv:?}");
    for row in 1..5 {
        let run = &json["compare"][(row - 1) / 2];
        assert_eq!(cell(&csv, row, "drive"), run["drive"].as_str().unwrap());
        let direction = &run["result"]["jobs"][0][cell(&csv, row, "direction")];
        let number = |name: &str| cell(&csv, row, name).parse::<f64>().unwrap();
        for (name, told) in [
            ("ios", &direction["total_ios"]),
            ("iops", &direction["iops"]),
            ("clat_mean_ns", &direction["clat_ns"]["mean"]),
            (
                "clat_p99_ns",
                &direction["clat_ns"]["percentile"]["99.000000"],
            ),
            ("clat_max_ns", &direction["clat_ns"]["max"]),
            ("map_misses", &run["result"]["lodger"]["map"]["misses"]),
            (
                "map_hits_sram",
                &run["result"]["lodger"]["map"]["hits"]["sram"],
            ),
            (
                "hmb_used_bytes",
                &run["result"]["lodger"]["hmb"]["used_bytes"],
            ),
            ("waf", &run["result"]["lodger"]["waf"]),
        ] {
            let told = told.as_f64().unwrap();
            assert!(
                (number(name) - told).abs() <= told * 1e-14,
                "{name}: {told}"
            );
        }
    }
    let advise = ["advise", "job.fio", "--drive", "tiny"];
    let csv = rows(&in_form(&sandbox, &advise, "csv"));
    let json: Value = serde_json::from_str(&in_form(&sandbox, &advise, "json")).unwrap();
    let runs = json["runs"].as_array().unwrap();
    assert_eq!(csv.len(), runs.len() + 1);
    for (row, run) in (1..).zip(runs) {
        assert_eq!(cell(&csv, row, "hmb_bytes"), run["hmb_bytes"].to_string());
        assert_eq!(
            cell(&csv, row, "read_clat_p99_ns"),
            run["read"]["p99_ns"].to_string()
        );
        assert_eq!(cell(&csv, row, "remark"), run["remark"].as_str().unwrap());
    }
}

#[test]
fn a_run_without_requests_has_a_row_too() {
    let sandbox = Sandbox::new();
    // Its one request is over before counting begins.
    let job =
        "[a]\nrw=randread\nbs=4k\nsize=8m\nruntime=10us\ntime_based\nthinktime=1s\nramp_time=1ms\n";
    sandbox.file("none.fio", job);
    let args = [
        "compare",
        "none.fio",
        "--drive",
        "tiny",
        "--hmb",
        "off,default",
        "--report",
        "x.html",
    ];
    let csv = rows(&in_form(&sandbox, &args, "csv"));
    assert_eq!(csv.len(), 3, "{csv:?}");
    assert!(csv.iter().all(|row| row.len() == csv[0].len()), "{csv:?}");
    assert_eq!(cell(&csv, 2, "ios"), "");
    let page = std::fs::read_to_string(sandbox.dir.join("x.html")).unwrap();
    assert!(page.contains("there is nothing to compare"), "{page}");
}

/// Twelve columns are wider than any terminal.
#[test]
fn many_runs_have_a_row_each_and_no_line_is_too_long() {
    let sandbox = sandbox();
    let few = sandbox.ok(&TWO).stdout;
    assert!(
        few.contains("\n  clat p99.9"),
        "few runs have a column each: {few}"
    );
    let hmb = "off,64KiB,96KiB,128KiB,192KiB,256KiB";
    let many = [&TWO[..], &["--hmb", hmb]].concat();
    let text = sandbox.ok(&many).stdout;
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let json: Value = serde_json::from_str(&in_form(&sandbox, &many, "json")).unwrap();
    let tables: Vec<&str> = text.split("\n\n").collect();
    assert_eq!(tables.len(), 3, "reads, writes, drive: {text}");
    for (table, says) in tables.iter().zip(["a read", "a write", "drive"]) {
        assert!(table.starts_with(&format!("{says}\n")), "{table}");
    }
    let runs: Vec<&str> = tables[0]
        .lines()
        .filter(|line| line.contains("B/s"))
        .collect();
    assert_eq!(runs.len(), 12, "{text}");
    for (line, run) in runs.iter().zip(json["compare"].as_array().unwrap()) {
        assert!(
            line.trim().starts_with(run["drive"].as_str().unwrap()),
            "{line}"
        );
        let iops = run["result"]["jobs"][0]["read"]["iops"].as_f64().unwrap();
        let cell = line.split(' ').find_map(|cell| cell.strip_suffix('k'));
        let shown: f64 = cell.expect("thousands").parse().expect("a number");
        assert!((shown - iops / 1e3).abs() <= 0.051, "{line}: {iops}");
    }
    // As Markdown, each row has as many cells as its head, whatever the drives are called.
    for args in [&TWO[..], &many] {
        let markdown = in_form(&sandbox, args, "markdown").replace("\\|", "");
        assert!(!markdown.contains("<script>") && markdown.contains("&lt;script&gt;\\_a"));
        for table in markdown.split("\n\n").filter(|part| part.starts_with('|')) {
            let cells = |line: &str| line.matches('|').count();
            let head = cells(table.lines().next().unwrap());
            assert!(table.lines().all(|line| cells(line) == head), "{table}");
        }
    }
}

/// What every page must be: whole, of text where names stand, and without anything from elsewhere.
fn is_a_page(page: &str) {
    for of_elsewhere in [" src=", " href=", "http", "@import", "url("] {
        assert!(!page.contains(of_elsewhere), "{of_elsewhere}");
    }
    assert_eq!(page.matches("<script>").count(), 1, "one script, our own");
    assert!(!page.contains("<i>"), "the drive's name is text");
    assert!(page.ends_with("</html>\n"));
    let (places, says) = (attribute(page, "data-places"), attribute(page, "data-says"));
    assert!(!places.is_empty());
    for (places, says) in places.iter().zip(says) {
        assert_eq!(places.split(' ').count(), says.split('|').count());
    }
}

#[test]
fn the_page_of_a_comparison_says_which_run_is_best_and_changes_nothing() {
    let sandbox = sandbox();
    let read = |name: &str| std::fs::read_to_string(sandbox.dir.join(name)).unwrap();
    let args = [&TWO[..], &["--hmb", "off,default"]].concat();
    let plain = sandbox.ok(&args).stdout;
    let with_page = sandbox.ok(&[&args[..], &["--report", "page.html"]].concat());
    assert_eq!(with_page.stdout, plain);
    let page = read("page.html");
    is_a_page(&page);
    let json: Value = serde_json::from_str(&in_form(&sandbox, &args, "json")).unwrap();
    let p99_9 = |run: &Value| {
        run["result"]["jobs"][0]["read"]["clat_ns"]["percentile"]["99.900000"].as_f64()
    };
    let runs = json["compare"].as_array().unwrap();
    let least = runs.iter().filter_map(p99_9).fold(f64::INFINITY, f64::min);
    let card = format!(
        "read latency, 99.9\u{a0}%</span><b>{:.1} us</b>",
        least / 1e3
    );
    assert!(page.contains(&card), "{card}");
    // A bar for each run and quantity, as long as its value.
    assert!(page.contains("tiny, no host memory</span><span class=\"track\">"));
    assert!(page.contains("<h2>The drives</h2>"));
    let summaries = page.matches("every value, and where it comes from").count();
    assert_eq!(summaries, 2, "each drive once");
    // Curves are those of the runs: another seed has others.
    sandbox.ok(&[&args[..], &["--report", "other.html", "--seed", "3"]].concat());
    assert_ne!(
        attribute(&page, "points"),
        attribute(&read("other.html"), "points")
    );
    // Without reads nothing is said of them.
    sandbox.ok(&[
        "compare",
        "writes.fio",
        "--drive",
        "tiny",
        "--drive",
        HOSTILE,
        "--report",
        "w.html",
    ]);
    let page = read("w.html");
    is_a_page(&page);
    assert!(page.contains("writes a second") && !page.contains("reads a second"));
}

#[test]
fn the_page_of_advice_has_the_answer_first_and_marks_it() {
    let sandbox = sandbox();
    for (job, goal, code) in [("job.fio", "1%", 0), ("writes.fio", "5%", 0)] {
        let args = ["advise", job, "--drive", HOSTILE, "--within", goal];
        let plain = sandbox.run(&args);
        let with_page = sandbox.run(&[&args[..], &["--report", "page.html"]].concat());
        assert_eq!(
            (with_page.code, &with_page.stdout),
            (Some(code), &plain.stdout)
        );
        let page = std::fs::read_to_string(sandbox.dir.join("page.html")).unwrap();
        is_a_page(&page);
        let answer = plain.stdout.lines().next().unwrap();
        assert!(
            page.contains(&format!("</h1>\n<p><b>{answer}.</b></p>")),
            "{answer}"
        );
        for mark in ["class=\"found\"", "enough", "Linux by default"] {
            assert!(page.contains(mark), "{job}: {mark}");
        }
    }
    // A goal that nothing meets is status 1, and has its page all the same.
    let never = [
        "advise",
        "job.fio",
        "--drive",
        "tiny",
        "--slo",
        "p99=1ns",
        "--report",
        "never.html",
    ];
    assert_eq!(sandbox.run(&never).code, Some(1));
    let page = std::fs::read_to_string(sandbox.dir.join("never.html")).unwrap();
    assert!(page.contains("Not enough at any size") && page.contains("best, not enough"));
}

/// As with `--timeline`: the report is not in its place without the page.
#[cfg(unix)]
#[test]
fn a_page_that_cannot_be_written_is_said_before_anything_else() {
    let sandbox = sandbox();
    let refused = |command: &str, place: &str| {
        let outcome = sandbox.run(&[command, "job.fio", "--drive", "tiny", "--report", place]);
        assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
        assert_eq!(outcome.stdout, "", "{command} {place}");
        assert!(
            outcome.stderr.contains("cannot write"),
            "{}",
            outcome.stderr
        );
    };
    refused("advise", "none/page.html");
    refused("advise", "job.fio");
    refused("simulate", "none/page.html");
    if std::path::Path::new("/dev/full").exists() {
        refused("advise", "/dev/full");
    }
}

/// Cells of a row of the table for people, by its name.
fn told(text: &str, name: &str) -> Option<Vec<f64>> {
    let row = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(name))?;
    let cells = row
        .split("  ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty());
    let share = |cell: &str| {
        cell.strip_suffix(" %")
            .map_or(0.0, |share| share.parse().unwrap())
    };
    Some(cells.map(share).collect())
}

#[test]
fn map_hits_of_every_memory_are_told_and_add_up_with_the_misses() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "job.fio",
        "[a]\nrw=randread\nbs=4k\nsize=8m\nnumber_ios=2000\nnorandommap\n",
    );
    let mut met = std::collections::BTreeSet::new();
    for (drive, set) in [
        ("ufs21-64", &[][..]),
        ("cxl-512", &[]),
        ("rc100-480", &["--set", "hpb.enabled=true"]),
    ] {
        let drives = [
            "compare",
            "job.fio",
            "--drive",
            drive,
            "--hmb",
            "off,default",
            "--report",
            "x.html",
        ];
        let args = [&drives[..], set].concat();
        let text = sandbox.ok(&args).stdout;
        let page = std::fs::read_to_string(sandbox.dir.join("x.html")).unwrap();
        let csv = rows(&in_form(&sandbox, &args, "csv"));
        let json: Value = serde_json::from_str(&in_form(&sandbox, &args, "json")).unwrap();
        let mut sums = told(&text, "map misses").unwrap();
        for memory in ["sram", "dram", "hmb", "host", "cxl"] {
            let shares = told(&text, &format!("map hits in {memory}")).unwrap_or(vec![0.0; 2]);
            for run in 0..2 {
                sums[run] += shares[run];
                let map = &json["compare"][run]["result"]["lodger"]["map"];
                let hits = map["hits"][memory].as_u64();
                let name = format!("map_hits_{memory}");
                let cell = cell(&csv, run + 1, &name).parse().ok();
                assert_eq!(cell, hits, "{drive}: {name}");
                let share = 100.0 * hits.unwrap_or(0) as f64 / map["lookups"].as_f64().unwrap();
                assert!(
                    (share - shares[run]).abs() < 0.051,
                    "{drive}: {memory}\n{text}"
                );
                if hits.is_some_and(|hits| hits > 0) {
                    assert!(
                        page.contains(&format!("found in {memory}")),
                        "{drive}: {memory}"
                    );
                    met.insert(memory);
                }
            }
        }
        assert!(
            sums.iter().all(|sum| (sum - 100.0).abs() < 0.3),
            "{drive}: {sums:?}\n{text}"
        );
    }
    // What had no row is among them.
    assert!(met.contains("host") && met.contains("cxl"), "{met:?}");
}
