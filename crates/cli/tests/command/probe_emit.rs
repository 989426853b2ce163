//! Does a drive file written from a probe behave as the drive that was probed?

use lodger::probe_target::{Noise, SimTarget, drive_file};
use lodger_core::Precondition;
use lodger_probe::stats::Estimate;
use lodger_probe::{Io, Options, Outcome, Target, probe};
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
    let precondition = RunConfig::new(drive.clone()).precondition;
    probed_on(name, drive, precondition, (experiments, seed))
}

fn probed_on(
    name: &str,
    drive: Drive,
    precondition: Precondition,
    (experiments, seed): (&[&str], u64),
) -> Outcome {
    let mut config = RunConfig::new(drive);
    config.precondition = precondition;
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
    drive_file(outcome).expect("a drive file")
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

/// When the writes of a burst of so many bytes complete, in turn, ms: the second of two, after a flush each.
fn completions_ms(drive: Drive, write: u64, depth: u32, bytes: u64) -> Vec<f64> {
    let mut target = SimTarget::open(&RunConfig::new(drive), Noise::NONE, 1).expect("it opens");
    let capacity = target.describe().capacity_bytes;
    let room = (capacity / 4).min(512 << 20) / write * write;
    let start = capacity / 2 / write * write;
    let writes: Vec<Io> = (0..bytes.div_ceil(write))
        .map(|i| Io::write(start + i * write % room, write as u32))
        .collect();
    let mut samples = Vec::new();
    for _ in 0..2 {
        target.flush().expect("it flushes");
        target.idle(Duration::from_millis(30));
        target.run(&writes, depth, &mut samples).expect("it writes");
    }
    let done = samples
        .iter()
        .map(|sample| sample.completed_ns() as f64 / 1e6);
    let mut done: Vec<f64> = done.collect();
    done.sort_unstable_by(f64::total_cmp);
    done
}

/// What the head says of bursts is so, on the drive that was probed and from the file.
fn head_holds(name: &str, drive: impl Fn() -> Drive, text: &str) {
    let head = text.split("\nname = ").next().unwrap();
    assert!(!head.contains("within a"), "{name}\n{head}");
    assert!(head.contains("were not compared"), "{name}\n{head}");
    let numbers = |line: &str| -> Vec<f64> {
        let words = line
            .split([' ', '(', ')'])
            .filter_map(|word| word.parse().ok());
        words.collect()
    };
    let writes = head.lines().find(|line| line.starts_with("# Writes of"));
    let [kib, depth] = numbers(writes.unwrap_or_else(|| panic!("{name}\n{text}")))[..2] else {
        panic!("{name}\n{head}")
    };
    let said: Vec<Vec<f64>> = head
        .lines()
        .filter(|line| line.starts_with("#   "))
        .map(numbers)
        .collect();
    let write = kib as u64 * 1024;
    let bytes = |mib: f64| (mib * f64::from(1 << 20)) as u64;
    let all = bytes(said.last().unwrap_or_else(|| panic!("{name}\n{head}"))[0]);
    let there = completions_ms(drive(), write, depth as u32, all);
    let here = completions_ms(from_text(text), write, depth as u32, all);
    for line in &said {
        let at = bytes(line[0]).div_ceil(write) as usize - 1;
        // A drive that writes back by steps stands still in between, now a little earlier and now later.
        let steps = if at + 1 == there.len() { 0.1 } else { 0.3 };
        for (said, found, share) in [(line[1], there[at], steps), (line[2], here[at], 0.01)] {
            let place = format!("{name}, {line:?}: {said} said, {found} found\n{head}");
            assert!((said / found - 1.0).abs() < share, "{place}");
        }
    }
}

/// Heads said of these that bursts take as long within a tenth, and they took from half to eight times as long: firmware
/// that several cores share, slow firmware behind a fast link, writing back that starts at a full buffer.
#[test]
fn what_an_emitted_file_says_of_bursts_is_so_for_drives_whose_bursts_it_does_not_explain() {
    let common = "[tier.dram]\nsize = \"32MiB\"\n[role.map]\ntiers = [\"dram\"]\nunit = \"4KiB\"\n[role.write_buffer]\n\
                  tier = \"sram\"\n";
    let drives = [
        (
            "four cores, host memory 25 us away, writing back between 0.9 and 0.5",
            "capacity = \"16GiB\"\nlink = { pcie = \"4.0 x4\", host_memory = \"25us\" }\n\
             controller = { cores = 4, read = \"40us\", write = \"3us\" }\n\
             [nand]\ncell = \"mlc\"\nchannels = 4\ndies_per_channel = 1\nplanes = 4\npages_per_block = 256\npage_size = \"8KiB\"\n\
             read = \"60us\"\nprogram = \"300us\"\none_shot = false\nchannel_mt_s = 2400\n[tier.sram]\nsize = \"10MiB\"\n",
            "size = \"8MiB\"\nhigh = 0.9\nlow = 0.5\n",
        ),
        (
            "one core that takes 40 us a write",
            "capacity = \"16GiB\"\nlink = { pcie = \"3.0 x4\", host_memory = \"25us\" }\n\
             controller = { cores = 1, read = \"1us\", write = \"40us\" }\n\
             [nand]\ncell = \"slc\"\nchannels = 2\ndies_per_channel = 4\nplanes = 6\npages_per_block = 128\npage_size = \"32KiB\"\n\
             read = \"2.5us\"\nprogram = \"50us\"\none_shot = false\nchannel_mt_s = 1200\n[tier.sram]\nsize = \"4MiB\"\n",
            "size = \"3MiB\"\n",
        ),
        (
            "four bits a cell, page by page, writing back from a full buffer",
            "capacity = \"16GiB\"\nlink = { pcie = \"3.0 x2\" }\ncontroller = { cores = 2, read = \"6us\", write = \"3us\" }\n\
             [nand]\ncell = \"qlc\"\nchannels = 4\ndies_per_channel = 1\nplanes = 1\npages_per_block = 512\npage_size = \"32KiB\"\n\
             read = \"60us\"\nprogram = \"500us\"\none_shot = false\nchannel_mt_s = 533\n[tier.sram]\nsize = \"4MiB\"\n",
            "size = \"1MiB\"\nhigh = 1.0\nlow = 0.5\n",
        ),
    ];
    for (name, file, buffer) in drives {
        let drive = || from_text(&format!("name = \"p\"\n{file}{common}{buffer}"));
        let experiments = &["map-cache", "parallelism", "flush", "write-buffer"];
        let text = emitted(&probed_by(name, drive(), experiments, 5));
        println!("{name}\n{}", text.split("\nname = ").next().unwrap());
        head_holds(name, drive, &text);
    }
}

/// The head once said of every drive that bursts take from two thirds of the time to two and a half times as long.
#[test]
fn bursts_take_as_long_from_an_emitted_file_as_its_head_says() {
    let measured = ["bg4", "ex900"].map(|name| (name, 0.9..=1.1));
    let not_measured = [("pm963", 0.9..=4.0)];
    for (name, allowed) in measured.into_iter().chain(not_measured) {
        let text = emitted(&probed_by(name, of_collection(name), WRITES_AND_UNITS, 1));
        head_holds(name, || of_collection(name), &text);
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

/// Reads a second of a GiB that is at hand, so many in flight.
fn reads_a_second(drive: Drive, depth: u32) -> f64 {
    let mut config = RunConfig::new(drive);
    config.precondition = Precondition::Sequential;
    let mut target = SimTarget::open(&config, Noise::NONE, 1).expect("it opens");
    let (mut seconds, mut count) = (0.0, 0);
    for round in 0..2_u64 {
        // Each page once, in an order that is none.
        let reads: Vec<Io> = (0..40_000_u64)
            .map(|i| Io::read((i * 100_003 + round) % (1 << 18) * 4096, 4096))
            .collect();
        let from = target.now();
        target
            .run(&reads, depth, &mut Vec::new())
            .expect("it reads");
        (seconds, count) = ((target.now() - from).as_secs_f64(), reads.len());
    }
    count as f64 / seconds
}

/// Pages of three kinds: what a miss of the fastest kind took beyond a read of any kind stood for flash, the rest for firmware,
/// 43 us of it "measured" where it was 5, and 32 reads in flight were a third as many as on the drive.
#[test]
fn flash_whose_pages_differ_is_not_taken_for_slow_firmware() {
    let of_kinds = || {
        let set = [
            ("capacity", "256GB"),
            ("nand.read", "[\"38us\", \"71us\", \"133us\"]"),
            ("tier.hmb.preferred", "40MiB"),
            ("tier.hmb.rounding", "none"),
            ("role.map.bytes_per_page", "4"),
            ("role.map.unit.sram", "4KiB"),
            ("role.map.unit.hmb", "4KiB"),
        ];
        Drive::open("bg4", &set).expect("a drive")
    };
    let experiments = ["map-cache", "parallelism", "queue-depth", "working-set"];
    let outcome = probed_on(
        "bg4 of kinds",
        of_kinds(),
        Precondition::Sequential,
        (&experiments, 7),
    );
    let text = emitted(&outcome);
    for key in ["controller.read", "controller.cores", "nand.read"] {
        let says = format!("\"{key}\" = {{ kind = \"assumed\"");
        assert!(text.contains(&says), "{key}\n{text}");
    }
    for (depth, off_max) in [(1, 0.2), (32, 0.4)] {
        let there = reads_a_second(of_kinds(), depth);
        let here = reads_a_second(from_text(&text), depth);
        assert!(
            (here / there - 1.0).abs() < off_max,
            "{depth} in flight: {there} {here}\n{text}"
        );
    }
}
