//! Does a drive file written from a probe behave as the drive that was probed?

use lodger::probe_target::{Noise, SimTarget};
use lodger_probe::stats::Estimate;
use lodger_probe::{Io, Options, Outcome, Target, probe, report};
use lodger_run::{Drive, RunConfig};
use std::time::Duration;

/// What shows without writing, and what takes writes.
const READS: &[&str] = &[
    "map-cache",
    "read-cache",
    "parallelism",
    "queue-depth",
    "request-size",
];
const WRITES: &[&str] = &["flush", "write-buffer", "request-size-write", "write-cliff"];

/// What bursts rest on.
const WRITES_AND_UNITS: &[&str] = &[
    "map-cache",
    "parallelism",
    "flush",
    "write-buffer",
    "request-size-write",
    "write-cliff",
];

fn probed_by(name: &str, drive: Drive, experiments: &[&str], seed: u64) -> Outcome {
    let config = RunConfig::new(drive);
    let mut target = SimTarget::open(&config, Noise::default(), seed).expect("it opens");
    let options = Options {
        experiments: experiments.iter().map(|e| (*e).to_owned()).collect(),
        budget: Duration::from_secs(1 << 20),
        may_write: true,
        seed,
        confidence: 0.5,
    };
    let outcome = probe(&mut target, &options, &mut |_| true);
    assert!(!outcome.partial, "{name}: {:?}", outcome.skipped);
    outcome
}

/// Findings of reads, and of writes to another drive of the same make: bursts into a drive in which reads
/// have touched much take long to simulate.
fn probed(name: &str, drive: impl Fn() -> Drive, seed: u64) -> Outcome {
    let mut reads = probed_by(name, drive(), READS, seed);
    let writes = probed_by(name, drive(), WRITES, seed);
    reads.roles.extend(writes.roles);
    reads.raw.extend(writes.raw);
    let (of_reads, found) = (&mut reads.findings, writes.findings);
    of_reads.roles.write_buffer = found.roles.write_buffer;
    of_reads.cliff_bytes = found.cliff_bytes;
    of_reads.quantities.extend(found.quantities);
    reads
}

fn of_collection(name: &str) -> Drive {
    Drive::open(name, &[]).expect("a drive of the collection")
}

fn emitted(outcome: &Outcome) -> String {
    report::drive(outcome).expect("a drive file")
}

fn from_text(text: &str) -> Drive {
    Drive::parse("emitted", text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn near(first: &Estimate, second: &Estimate, share: f64) -> bool {
    (second.estimate / first.estimate - 1.0).abs() <= share
}

/// Tiers are the same, sizes within 5 % or their intervals overlap, latencies within 10 %.
fn is_found_again(name: &str) {
    let first = probed(name, || of_collection(name), 1);
    let text = emitted(&first);
    let second = probed(name, || from_text(&text), 2);
    for (role, verdict) in &first.roles {
        let again = &second.roles[role];
        let place = format!("{name}, {role}: {}\n{}", verdict.evidence, again.evidence);
        assert_eq!(again.tier, verdict.tier, "{place}\n{text}");
        for (size, again) in [
            (verdict.size_bytes, again.size_bytes),
            (verdict.unit_bytes, again.unit_bytes),
        ] {
            let same = match (size, again) {
                (Some(size), Some(again)) => near(&size, &again, 0.05) || size.overlaps(&again),
                (size, again) => size.is_none() && again.is_none(),
            };
            assert!(same, "{place}\n{size:?} {again:?}\n{text}");
        }
    }
    let latencies = ["read_near", "map_hit", "map_miss", "write", "flush_clean"];
    let mut compared = 0;
    for (quantity, found) in &first.findings.quantities {
        let base = quantity.trim_end_matches("_on").trim_end_matches("_off");
        if latencies.contains(&base) {
            let again = &second.findings.quantities[quantity].value;
            let place = format!("{name}, {quantity}: {:?} {again:?}", found.value);
            assert!(near(&found.value, again, 0.1), "{place}\n{text}");
            compared += 1;
        }
    }
    assert!(compared >= 3, "{name}: only {compared} latencies");
}

#[test]
fn drives_with_their_map_in_host_memory_are_found_again_from_the_file_that_a_probe_wrote() {
    for name in ["a80", "rc100-480", "bg4"] {
        is_found_again(name);
    }
}

#[test]
fn drives_with_their_map_on_board_are_found_again_from_the_file_that_a_probe_wrote() {
    for name in ["hong-device-buffer", "970-pro"] {
        is_found_again(name);
    }
}

#[test]
#[ignore = "bursts through 64 MiB of host memory take half a minute to simulate"]
fn a_drive_with_its_buffer_in_host_memory_is_found_again_from_the_file_that_a_probe_wrote() {
    is_found_again("hong-hmb-buffer");
}

/// Bytes of bursts into an empty buffer.
const BURSTS: [u64; 5] = [1 << 20, 4 << 20, 16 << 20, 64 << 20, 512 << 20];

/// How long each takes, ms: writes of 32 KiB, 6 MiB in flight.
fn burst_ms(drive: Drive) -> Vec<f64> {
    let config = RunConfig::new(drive);
    let mut target = SimTarget::open(&config, Noise::default().times(0.0), 1).expect("it opens");
    let start = target.describe().capacity_bytes / 2;
    let chunk = 32 << 10;
    let burst = |bytes: &u64| {
        target.flush().expect("it flushes");
        target.idle(Duration::from_millis(200));
        let writes: Vec<Io> = (0..bytes / chunk)
            .map(|i| Io::write(start + i * chunk, chunk as u32))
            .collect();
        let from = target.now();
        target
            .run(&writes, 192, &mut Vec::new())
            .expect("it writes");
        (target.now() - from).as_secs_f64() * 1e3
    };
    BURSTS.iter().map(burst).collect()
}

/// The head once said of every drive that bursts take from two thirds of the time to two and a half times as long.
#[test]
fn bursts_take_as_long_from_an_emitted_file_as_its_head_says() {
    let measured = ["bg4", "ex900"].map(|name| (name, 0.9..=1.1));
    let not_measured = [("pm963", 0.9..=4.0)];
    for (name, allowed) in measured.into_iter().chain(not_measured) {
        let text = emitted(&probed_by(name, of_collection(name), WRITES_AND_UNITS, 1));
        let says = if *allowed.end() < 2.0 {
            "within a tenth"
        } else {
            "No burst of writes was measured"
        };
        assert!(text.contains(says), "{name}\n{text}");
        let (there, here) = (burst_ms(of_collection(name)), burst_ms(from_text(&text)));
        for (bytes, (there, here)) in BURSTS.iter().zip(there.iter().zip(&here)) {
            let place = format!("{name}, {bytes} bytes: {there} ms there, {here} ms here\n{text}");
            assert!(allowed.contains(&(here / there)), "{place}");
        }
    }
}

#[test]
fn every_key_of_an_emitted_file_says_where_it_comes_from() {
    let text = emitted(&probed("rc100-480", || of_collection("rc100-480"), 1));
    let (keys, sources) = text.split_once("\n[sources]\n").expect("sources");
    let mut section = String::new();
    let mut count = 0;
    for line in keys.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = format!("{}.", name.trim_end_matches(']'));
        } else if let Some((key, _)) = line.split_once(" = ")
            && !line.starts_with('#')
            && key != "name"
        {
            let path = format!("\"{section}{key}\" = ");
            let source = sources.lines().find_map(|line| line.strip_prefix(&path));
            let source = source.unwrap_or_else(|| panic!("{path} has no source"));
            let kinds = ["measured", "assumed"].map(|kind| format!("kind = \"{kind}\""));
            assert!(kinds.iter().any(|kind| source.contains(kind)), "{source}");
            count += 1;
        }
    }
    assert!(count > 25, "{text}");
}
