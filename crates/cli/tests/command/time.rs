//! Is what `lodger simulate` says of time in files that others can read, whole or not there?

use crate::common::{Sandbox, repository};

const JOB: &str = "[a]\nrw=randrw\nbs=4k\nsize=8m\niodepth=4\nnumber_ios=500\nfsync=40\n";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOB);
    sandbox
}

const SIMULATE: [&str; 4] = ["simulate", "job.fio", "--drive", "tiny"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SIMULATE, more].concat()
}

#[test]
fn a_timeline_says_the_same_in_each_form_and_changes_nothing() {
    let sandbox = sandbox();
    let read = |name: &str| std::fs::read(sandbox.dir.join(name)).unwrap();
    let plain = sandbox.ok(&SIMULATE).stdout;
    for name in ["t.csv", "t.jsonl", "t.parquet"] {
        let watched = sandbox.ok(&with(&["--timeline", name]));
        assert_eq!(watched.stdout, plain, "{name}");
        let first = read(name);
        sandbox.ok(&with(&["--timeline", name]));
        assert_eq!(read(name), first, "{name}");
    }
    let csv = String::from_utf8(read("t.csv")).unwrap();
    let lines = String::from_utf8(read("t.jsonl")).unwrap();
    let names: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert_eq!(csv.lines().count(), lines.lines().count() + 1);
    for (row, line) in csv.lines().skip(1).zip(lines.lines()) {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        for (name, cell) in names.iter().zip(row.split(',')) {
            let told = &object[*name];
            match cell {
                "" => assert!(told.is_null(), "{name}"),
                // The parser of JSON may be off by the last bit.
                _ => {
                    let (told, cell) = (told.as_f64().unwrap(), cell.parse::<f64>().unwrap());
                    assert!(
                        (told - cell).abs() <= told * 1e-14,
                        "{name}: {told}, {cell}"
                    );
                }
            }
        }
    }
    // Parquet's magic number stands at both ends; its names stand in its footer.
    let parquet = read("t.parquet");
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let page = std::fs::read_to_string(repository("docs/time.md")).unwrap();
    for name in names {
        let found = parquet
            .windows(name.len())
            .any(|part| part == name.as_bytes());
        assert!(found, "no `{name}` in the Parquet file");
        assert!(
            page.contains(&format!("`{name}`")),
            "docs/time.md lacks `{name}`"
        );
    }
}

#[test]
fn borrowed_single_bit_flash_is_seen_to_come_and_to_be_given_back_as_the_drive_fills() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "fill.fio",
        "[a]\nrw=write\nbs=128k\nsize=100%\niodepth=8\nloops=2\n",
    );
    let borrowed = |share: &str| {
        let set = format!("ftl.slc_dynamic={share}");
        sandbox.ok(&[
            "simulate",
            "fill.fio",
            "--drive",
            "tiny",
            "--precondition",
            "none",
            "--set",
            "ftl.slc_superblocks=0",
            "--set",
            &set,
            "--timeline",
            "t.csv",
        ]);
        let table = std::fs::read_to_string(sandbox.dir.join("t.csv")).unwrap();
        let mut lines = table
            .lines()
            .map(|line| line.split(',').collect::<Vec<_>>());
        let names = lines.next().unwrap();
        assert!(!names.contains(&"slc_fill"), "none stand apart");
        let at = names
            .iter()
            .position(|name| *name == "slc_borrowed_superblocks")?;
        Some(
            lines
                .map(|row| row[at].parse().unwrap())
                .collect::<Vec<u32>>(),
        )
    };
    let rows = borrowed("0.3").unwrap();
    let most = *rows.iter().max().unwrap();
    assert!(most > 4 && rows.last() == Some(&0), "{rows:?}");
    assert_eq!(borrowed("0"), None);
}

#[test]
fn a_breakdown_is_an_object_more_and_a_table_more() {
    let sandbox = sandbox();
    let json = |more: &[&str]| {
        let out = sandbox.ok(&with(&[&["--output-format", "json"], more].concat()));
        let mut json: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
        json["lodger"]["wall_s"] = serde_json::Value::Null;
        json
    };
    let plain = json(&[]);
    let mut told = json(&["--breakdown", "--timeline", "t.csv"]);
    let breakdown = told["lodger"].as_object_mut().unwrap().remove("breakdown");
    assert_eq!(told, plain);
    let breakdown = breakdown.unwrap();
    for (direction, ios) in [("read", "total_ios"), ("write", "total_ios")] {
        let sums = &breakdown[direction];
        assert_eq!(sums["mean"]["requests"], plain["jobs"][0][direction][ios]);
        for sum in sums.as_object().unwrap().values() {
            let parts = sum["parts_ns"].as_object().unwrap().values();
            let parts: f64 = parts.map(|ns| ns.as_f64().unwrap()).sum();
            let latency = sum["latency_ns"].as_f64().unwrap();
            assert!(
                (parts - latency).abs() < 1e-6 * latency,
                "{parts}, {latency}"
            );
        }
    }
    let page = std::fs::read_to_string(repository("docs/time.md")).unwrap();
    for part in lodger_core::observe::Part::ALL {
        let line = format!("| `{}` | {} |", part.name(), part.about());
        assert!(page.contains(&line), "docs/time.md lacks {line}");
    }
    let text = sandbox.ok(&SIMULATE).stdout;
    let with_table = sandbox.ok(&with(&["--breakdown"])).stdout;
    let (before, table) = with_table.split_once("\nWhere the time of").unwrap();
    let (table, after) = table.split_once("\nDrive tiny").unwrap();
    assert_eq!(format!("{before}\nDrive tiny{after}"), text);
    assert!(table.contains("die_wait") && table.contains("near p99.9"));
}

/// A protobuf message's fields: number, and its value or its bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    let varint = |bytes: &mut &[u8]| {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
        }
        unreachable!("a varint ends")
    };
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = varint(&mut bytes);
        let mut inner: &[u8] = &[];
        match key & 7 {
            0 => {}
            2 => (inner, bytes) = bytes.split_at(value as usize),
            kind => panic!("wire type {kind}"),
        }
        all.push((key >> 3, value, inner));
    }
    all
}

/// Of each track: its slices that have begun and not ended, and how many there were. Times never go back on a track
/// of requests.
fn slices(trace: &[u8]) -> std::collections::BTreeMap<u64, (i64, u64)> {
    let mut tracks = std::collections::BTreeMap::new();
    for (field, _, packet) in fields(trace) {
        assert_eq!(field, 1, "a trace is packets");
        let packet = fields(packet);
        let Some((_, _, event)) = packet.iter().find(|field| field.0 == 11) else {
            assert!(
                packet.iter().any(|field| field.0 == 60),
                "an event or a track"
            );
            continue;
        };
        assert!(
            packet.iter().any(|field| field.0 == 8),
            "an event has a time"
        );
        let event = fields(event);
        let number = |of: u64| event.iter().find(|field| field.0 == of).unwrap().1;
        let (open, all) = tracks.entry(number(11)).or_insert((0, 0));
        match number(9) {
            1 => (*open, *all) = (*open + 1, *all + 1),
            2 => *open -= 1,
            other => panic!("event type {other}"),
        }
    }
    tracks
}

#[test]
fn a_trace_has_its_limit_and_whole_slices() {
    let sandbox = sandbox();
    sandbox.file(
        "job.fio",
        "[a]\nrw=randrw\nbs=8k\niodepth=16\nio_size=200m\nnorandommap\n",
    );
    let plain = sandbox.ok(&SIMULATE).stdout;
    let args = [
        "--trace-events",
        "run.pftrace",
        "--trace-events-limit",
        "200KiB",
    ];
    let traced = sandbox.ok(&with(&args));
    assert_eq!(traced.stdout, plain);
    let trace = std::fs::read(sandbox.dir.join("run.pftrace")).unwrap();
    assert!(
        (80 << 10..=200 << 10).contains(&trace.len()),
        "{}",
        trace.len()
    );
    let tracks = slices(&trace);
    for (kind, least) in [(1, 300), (2, 100), (3, 50), (4, 5)] {
        let of = tracks.iter().filter(|(track, _)| **track >> 32 == kind);
        let all: u64 = of.map(|(_, (_, all))| all).sum();
        assert!(all > least, "kind {kind}: {all} slices");
    }
    assert!(tracks.values().all(|(open, _)| *open == 0));
    // Said: how much of the run it is.
    assert!(
        traced.stderr.contains("flash operations"),
        "{}",
        traced.stderr
    );
    sandbox.ok(&with(&args));
    assert_eq!(
        std::fs::read(sandbox.dir.join("run.pftrace")).unwrap(),
        trace
    );
    for (limit, says) in [
        ("1KiB", "from 64 KiB to 4 GiB"),
        ("5GiB", "from 64 KiB"),
        ("x", "a size"),
    ] {
        let refused = sandbox.run(&with(&[
            "--trace-events",
            "x.pftrace",
            "--trace-events-limit",
            limit,
        ]));
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains(says), "{}", refused.stderr);
    }
    let refused = sandbox.run(&with(&["--trace-events", "job.fio"]));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert_eq!(sandbox.files(), ["job.fio", "run.pftrace"]);
}

#[test]
fn a_timeline_that_cannot_be_is_refused_and_leaves_nothing() {
    let sandbox = sandbox();
    let refused = |more: &[&str], says: &str| {
        let outcome = sandbox.run(&with(more));
        assert_eq!(outcome.code, Some(2), "{more:?}\n{}", outcome.stderr);
        assert!(outcome.stderr.contains(says), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("hint: "), "{}", outcome.stderr);
        assert_eq!(outcome.stdout, "");
    };
    refused(&["--timeline", "t.txt"], "`.csv`, `.parquet` or `.jsonl`");
    refused(&["--timeline", "none/t.csv"], "cannot write `none/t.csv`");
    let twice = ["--timeline", "t.csv", "--output", "t.csv"];
    refused(&twice, "this command writes it already");
    for interval in ["1ns", "-1s", "x", "1000000s"] {
        let args = ["--timeline", "t.csv", "--timeline-interval", interval];
        refused(&args, "from 1us to 86400s");
    }
    assert_eq!(sandbox.files(), ["job.fio"]);
}

#[test]
fn a_timeline_with_more_rows_than_it_may_have_is_written_and_says_so() {
    let sandbox = sandbox();
    let slow = "[a]\nrw=read\nbs=4k\nsize=8m\nthinktime=1s\nnumber_ios=2\n";
    sandbox.file("job.fio", slow);
    let plain = sandbox.ok(&SIMULATE).stdout;
    let fine = [
        "--timeline",
        "t.csv",
        "--timeline-interval",
        "1us",
        "--quiet",
    ];
    let out = sandbox.ok(&with(&fine));
    assert_eq!(out.stdout, plain);
    let says = "warning: intervals of the timeline are 32 us, not 1 us";
    assert!(out.stderr.contains(says), "{}", out.stderr);
    let csv = std::fs::read_to_string(sandbox.dir.join("t.csv")).unwrap();
    assert!((50_000..=100_000).contains(&csv.lines().skip(1).count()));
}

#[cfg(unix)]
#[test]
fn a_timeline_takes_the_place_of_no_input_and_a_full_disk_is_said() {
    use std::os::unix::fs::symlink;
    let sandbox = sandbox();
    symlink(sandbox.dir.join("job.fio"), sandbox.dir.join("job.csv")).unwrap();
    let refused = sandbox.run(&with(&["--timeline", "job.csv"]));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("this command reads it"));
    let kept = std::fs::read_to_string(sandbox.dir.join("job.fio")).unwrap();
    assert_eq!(kept, JOB);
    if !std::path::Path::new("/dev/full").exists() {
        return;
    }
    for name in ["full.csv", "full.jsonl", "full.parquet"] {
        symlink("/dev/full", sandbox.dir.join(name)).unwrap();
        let full = sandbox.run(&with(&["--timeline", name]));
        assert_eq!(full.code, Some(2), "{}", full.stderr);
        assert!(
            full.stderr.contains("no room") || full.stderr.contains("space"),
            "{}",
            full.stderr
        );
        assert_eq!(
            full.stdout, "",
            "the report is not in its place without the timeline"
        );
    }
}

/// Values of an attribute, in order.
pub(crate) fn attribute<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let parts = page
        .split(&format!(" {name}=\""))
        .skip(1)
        .collect::<Vec<_>>();
    let ends = parts.iter().map(|part| part.find('"').unwrap());
    parts
        .iter()
        .zip(ends)
        .map(|(part, end)| &part[..end])
        .collect()
}

#[test]
fn a_page_says_what_the_report_says_needs_nothing_else_and_changes_nothing() {
    let sandbox = sandbox();
    sandbox.file("<i>&.fio", JOB);
    let plain = sandbox.ok(&SIMULATE).stdout;
    assert_eq!(sandbox.ok(&with(&["--report", "page.html"])).stdout, plain);
    let page = std::fs::read_to_string(sandbox.dir.join("page.html")).unwrap();
    let json = sandbox.ok(&with(&["--output-format", "json"])).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    for direction in ["read", "write"] {
        let iops = json["jobs"][0][direction]["iops"].as_f64().unwrap();
        let iops = format!("<b>{}</b>", grouped(iops.round() as u64));
        assert!(page.contains(&iops), "{direction}: {iops}");
    }
    // Another seed has other curves.
    sandbox.ok(&with(&["--report", "other.html", "--seed", "3"]));
    let other = std::fs::read_to_string(sandbox.dir.join("other.html")).unwrap();
    assert_ne!(attribute(&page, "points"), attribute(&other, "points"));
    for of_elsewhere in [" src=", " href=", "http", "@import", "url("] {
        assert!(!page.contains(of_elsewhere), "{of_elsewhere}");
    }
    let (places, says) = (
        attribute(&page, "data-places"),
        attribute(&page, "data-says"),
    );
    assert!(places.len() >= 6, "{}", places.len());
    for (places, says) in places.iter().zip(says) {
        assert_eq!(places.split(' ').count(), says.split('|').count());
    }
    let named = [
        "simulate", "<i>&.fio", "--drive", "tiny", "--report", "x.html",
    ];
    sandbox.ok(&named);
    let page = std::fs::read_to_string(sandbox.dir.join("x.html")).unwrap();
    assert!(page.contains("<h1>&lt;i&gt;&amp;.fio on") && !page.contains("<i>&"));
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<&str> = groups
        .map(|group| std::str::from_utf8(group).unwrap())
        .collect();
    groups.join(",")
}

#[test]
fn a_page_takes_the_place_of_no_input_and_is_whole_or_not_there() {
    let sandbox = sandbox();
    let outcome = sandbox.run(&with(&["--report", "job.fio"]));
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("this command reads it"),
        "{}",
        outcome.stderr
    );
    let outcome = sandbox.run(&with(&["--report", "/dev/full"]));
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    let outcome = sandbox.run(&with(&["--report", "p.html", "--output", "p.html"]));
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(!sandbox.dir.join("p.html").exists());
}

/// `1 requests` and the like, in the text and on the page.
#[test]
fn a_single_request_is_no_requests() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "one.fio",
        "[a]\nrw=randread\nbs=4k\nsize=1m\nnumber_ios=1\n",
    );
    let args = ["simulate", "one.fio", "--drive", "tiny", "--breakdown"];
    let text = sandbox.ok(&args).stdout;
    sandbox.ok(&[&args[..], &["--report", "page.html"]].concat());
    let page = std::fs::read_to_string(sandbox.dir.join("page.html")).unwrap();
    for told in [&text, &page] {
        assert!(
            told.contains(" 1 request,") || told.contains(">1 request in "),
            "{told}"
        );
        assert!(told.contains("1 read request"), "{told}");
        for line in told.lines() {
            let many = line.match_indices("requests").map(|(at, _)| &line[..at]);
            let is_one = |before: &str| before.ends_with(" 1 ") || before.ends_with(" 1 read ");
            assert!(
                !many
                    .clone()
                    .any(|before| is_one(&format!(" {before}").replace('>', " "))),
                "{line}"
            );
        }
    }
}

/// A hundred trims, one after the other, at an even rate: a curve of rows that hold none or one of them goes to and fro between
/// none and a million a second. `--timeline` has these rows, as it says.
#[test]
fn curves_of_few_requests_tell_of_the_drive_and_not_of_the_interval() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "trims.fio",
        "[a]\nrw=randtrim\nbs=4k\nsize=1m\nnumber_ios=100\n",
    );
    let args = [
        "simulate",
        "trims.fio",
        "--drive",
        "970-pro",
        "--output-format",
        "json",
    ];
    let json = sandbox.ok(&[&args[..], &["--report", "p.html", "--timeline", "t.csv"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let rate = json["jobs"][0]["trim"]["iops"].as_f64().unwrap();
    let page = std::fs::read_to_string(sandbox.dir.join("p.html")).unwrap();
    let (_, figure) = page.split_once("<figcaption>Requests over time").unwrap();
    let figure = figure.split("</figure>").next().unwrap();
    let said = attribute(figure, "data-says");
    assert_eq!(said.len(), 1, "{said:?}");
    let rates = said[0].split('|').map(|point| {
        let (rate, _) = point.split_once(" at ").unwrap();
        let (number, unit) = match rate.strip_suffix('k') {
            Some(number) => (number, 1e3),
            None => (rate, 1.0),
        };
        number.parse::<f64>().unwrap() * unit
    });
    let rates: Vec<f64> = rates.collect();
    assert!((3..20).contains(&rates.len()), "{rates:?}");
    for at in &rates {
        assert!((at / rate - 1.0).abs() < 0.15, "{rates:?}, {rate} in all");
    }
    let rows = std::fs::read_to_string(sandbox.dir.join("t.csv")).unwrap();
    assert!(rows.lines().count() > 200, "{rows}");
    // Less than 2 ms: its axis has a unit that tells its ticks apart.
    let axis: Vec<&str> = figure.split("text-anchor=\"middle\">").skip(1).collect();
    let axis = axis.iter().map(|text| text.split('<').next().unwrap());
    let mut axis: Vec<&str> = axis.collect();
    let title = axis.pop();
    assert!(
        ["time, µs", "time, ms"].map(Some).contains(&title),
        "{title:?}"
    );
    axis.dedup();
    assert!(
        axis.len() > 2 && axis.iter().all(|tick| tick.len() < 5),
        "{axis:?}"
    );
}
