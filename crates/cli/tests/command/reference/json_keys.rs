//! The keys of `--output-format json`: found in real results, explained here. A key without an
//! explanation, or an explanation without a key, is an error.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Keys of the object `lodger`, and what they mean.
const MEANINGS: &[(&str, &str)] = &[
    ("version", "Lodger's version"),
    ("seed", "`--seed`"),
    ("drive", "The drive as it was named"),
    ("precondition", "`--precondition`"),
    (
        "spec.<key>",
        "Every value of the drive, by its [key](drive-file.md)",
    ),
    (
        "simulated_s",
        "Simulated time from the start of the run to its end, seconds: what comes before the first request (`startdelay`) and after the last completion (`runtime`) is in it",
    ),
    (
        "measured_s",
        "The part of it that all of the drive's numbers are of, where something is left out: without the time in which every job that ran was in its `ramp_time` or in the delay before it. States (`wear.modes.<mode>.erases`, `histogram` and `cycles`, `hmb.used_bytes`, high waters) and `requests` are of all",
    ),
    (
        "wall_s",
        "Real time the simulation took, seconds; the only value that differs between equal runs",
    ),
    ("events", "Events worked off"),
    ("requests", "Requests completed, those of the ramp included"),
    (
        "together.<direction>.iops",
        "Requests a second of all jobs together, `all` or by direction: from the first that counts to the end of the last; those of stages that follow each other (`stonewall`) over all their time",
    ),
    ("together.<direction>.bw_bytes", "Bytes a second, likewise"),
    (
        "map.lookups",
        "Look-ups of the address map: one per read command, as the drive gets it (the host splits requests by `host.max_request`), and 4 MiB of addresses it touches; writes and trims find what they replace without one",
    ),
    ("map.hits.<tier>", "Look-ups answered by this memory"),
    (
        "map.waiting_hits",
        "Of the nearest memory's, found in changed parts of the map that had given way and waited to be written",
    ),
    (
        "map.misses",
        "Look-ups that waited for a translation page from flash",
    ),
    (
        "map.shared_misses",
        "Misses that joined a read already under way",
    ),
    (
        "map.evictions",
        "Units that gave way, all memories together",
    ),
    (
        "map.dirty_writebacks",
        "Translation pages written back to flash",
    ),
    (
        "map.background_fills",
        "Translation pages read to complete units larger than the page asked for",
    ),
    (
        "map.rejected_entries",
        "Entries in host memory that failed their check",
    ),
    (
        "read_cache.lookups",
        "Pages of 4 KiB looked up in the read cache",
    ),
    ("read_cache.hits", "Pages found there"),
    (
        "read_cache.rejected",
        "Pages in host memory that failed their check and were read from flash",
    ),
    (
        "write_buffer.writes",
        "Pages of 4 KiB that entered the write buffer",
    ),
    (
        "write_buffer.absorbed",
        "Pages that overwrote one still in the buffer, and so never reached flash",
    ),
    ("write_buffer.read_hits", "Pages read from the buffer"),
    (
        "write_buffer.drains",
        "Flushes that it was emptied for, writes with FUA, and losses of its memory",
    ),
    (
        "write_buffer.logged",
        "Pages copied into its log for a flush or FUA",
    ),
    (
        "write_buffer.rejected",
        "Pages in host memory that failed their check: lost, and reported",
    ),
    ("write_buffer.high_water_bytes", "Most bytes in it at once"),
    ("window", "Byte window; `null` for a drive without one"),
    ("window.pins", "Ranges pinned (BA_PIN)"),
    ("window.pinned_bytes", "Bytes that pins read from the drive"),
    ("window.flushes", "Ranges flushed (BA_FLUSH)"),
    (
        "window.flushed_bytes",
        "Bytes that flushes wrote to the drive",
    ),
    ("window.syncs", "Stores made durable (BA_SYNC)"),
    ("window.read_dmas", "Copies to host memory (BA_READ_DMA)"),
    ("window.read_dma_bytes", "Bytes in them"),
    ("window.infos", "Look-ups of entries (BA_GET_ENTRY_INFO)"),
    ("window.stores", "Store calls"),
    ("window.stored_bytes", "Bytes stored"),
    ("window.loads", "Load calls"),
    ("window.loaded_bytes", "Bytes loaded"),
    (
        "window.store_tlps",
        "Packets that carried stores over the link",
    ),
    ("window.store_tlp_bytes", "Bytes in them"),
    (
        "window.load_tlps",
        "Reads by CPUs: loads of up to 8 bytes, and the reads that confirm a sync",
    ),
    (
        "window.stray_tlps",
        "Packets that arrived where nothing was pinned any more",
    ),
    (
        "window.gated",
        "Block commands refused because their range was pinned",
    ),
    (
        "window.held",
        "Block commands that waited because their range was pinned",
    ),
    ("window.rejected", "Calls that failed"),
    (
        "window.lost_bytes",
        "Bytes stored and lost on the way when power failed",
    ),
    (
        "hpb",
        "Host Performance Booster ([what is counted](../concepts/hpb.md#what-is-counted)); `null` for a drive without it",
    ),
    (
        "logging",
        "Database logging ([what is counted](../concepts/logging.md#what-comes-out)); `null` for other workloads",
    ),
    (
        "nand.reads",
        "Reads that were asked of the flash. One of a page that is in its die's register still takes no array time and counts, too; tries done again are in `nand.ageing.retries` instead",
    ),
    ("nand.programs", "Program operations"),
    ("nand.erases", "Erase operations, one per die"),
    ("nand.reads_by_cause.<cause>", "`nand.reads` by cause"),
    (
        "nand.programs_by_cause.<cause>",
        "Program operations by cause",
    ),
    (
        "nand.programmed_bytes",
        "Bytes programmed, all causes, padding included",
    ),
    (
        "nand.padded_bytes",
        "Programmed without data, to fill a program operation",
    ),
    (
        "nand.ageing.<count>",
        "Flash that ages ([what is counted](../concepts/aging.md#what-is-counted)); only of drives with `[nand.ageing]`",
    ),
    (
        "waf",
        "Write amplification: bytes programmed over bytes the host wrote, less than 1 where data still stands in the buffer; `null` without writes",
    ),
    (
        "wear.programmed_bytes_by_cause.<cause>",
        "Bytes programmed by cause, and `padding`: what the flash wears for",
    ),
    (
        "wear.system_area_bytes",
        "Of these, records of trims and their padding: they go beside the superblocks, and are in no mode's bytes and no lifetime",
    ),
    (
        "wear.modes.<mode>.superblocks",
        "Superblocks that run in mode `ordinary`, and in mode `single_bit` where there are some",
    ),
    ("wear.modes.<mode>.superblock_bytes", "Bytes that one holds"),
    (
        "wear.modes.<mode>.programmed_bytes",
        "Bytes programmed there, padding included",
    ),
    (
        "wear.modes.<mode>.cycles",
        "How often each cell was programmed since the run began, ramps included, as a mean: each time costs it an erase, now or later",
    ),
    (
        "wear.modes.<mode>.erases.<of>",
        "Erases of a superblock since the run began: `min`, `max`, `mean`, `stddev`",
    ),
    (
        "wear.modes.<mode>.histogram",
        "Of them, at most 16 equal steps: erased `least` to `most` times, how many `superblocks`; empty steps are left out",
    ),
    (
        "wear.lifetime.written_bytes_per_day",
        "What the host would write in a day of this load; `null` where nothing was programmed",
    ),
    (
        "wear.lifetime.rated_written_bytes",
        "`ftl.rated_written` of the drive; `null` where none is known",
    ),
    (
        "wear.lifetime.rated_written_days",
        "Days of this load until that is written",
    ),
    (
        "wear.lifetime.rated_cycles",
        "`ftl.rated_cycles` of the drive; `null` where none is known",
    ),
    (
        "wear.lifetime.rated_cycles_days",
        "Days of this load until cells in ordinary mode were programmed so often",
    ),
    (
        "wear.lifetime.days_per_1000_cycles",
        "Days of this load until cells in ordinary mode were programmed 1000 times",
    ),
    (
        "wear.lifetime.single_bit_days_per_1000_cycles",
        "The same of cells in single-bit mode",
    ),
    (
        "unwritten_reads",
        "Pages read that hold no data, answered without flash: a warning sign",
    ),
    ("hmb.requested_bytes", "Host memory the drive asks for"),
    (
        "hmb.granted_bytes",
        "What the host gave; of a recording, the most that it gave at once",
    ),
    (
        "hmb.usable_bytes",
        "What the drive can use of it after its rounding",
    ),
    (
        "hmb.used_bytes",
        "What roles had reserved of it at the end, filled or not: a unit of the map counts from the time its place is taken",
    ),
    (
        "hmb.read_bytes",
        "Bytes read from it, by the drive or, `hmb.dma_bytes` of both, by the host's own engine for it",
    ),
    ("hmb.written_bytes", "Bytes written to it, likewise"),
    (
        "hmb.dma_bytes",
        "Bytes the host's DMA engine copied between it and the commands' pages",
    ),
    (
        "hmb.dma_polls",
        "Reads of that engine's status register by the drive",
    ),
    (
        "link.read_bytes",
        "Bytes over the link to the host, all kinds",
    ),
    (
        "link.written_bytes",
        "Bytes over the link from the host, all kinds",
    ),
    (
        "link.utilisation",
        "Share of the time that the busier direction was in use",
    ),
    (
        "utilisation.<resource>",
        "Share of the time a kind of resource was busy, mean of its instances",
    ),
    (
        "busiest.<resource>.index",
        "Of a kind of which there are several, the one that was busiest, counted from 0: `die` 5 of four channels \
         stands on channel 1",
    ),
    (
        "busiest.<resource>.utilisation",
        "Share of the time that one was busy: near 1 it limits the drive, whatever the mean of its kind is",
    ),
    (
        "breakdown.<direction>.<of>.requests",
        "With `--breakdown`, by `read`, `write`, `trim` and `sync`: how many requests `mean` speaks of (all that count), \
         or `p50`, `p99`, `p99_9` (those whose latency is near it)",
    ),
    (
        "breakdown.<direction>.<of>.latency_ns",
        "Their mean latency, from submission to completion, ns",
    ),
    (
        "breakdown.<direction>.<of>.parts_ns.<part>",
        "Their mean time in each [part](../time.md#where-the-time-went), ns; the parts add up to the latency",
    ),
];

/// Objects whose keys are names rather than fields.
const NAMED: &[(&str, &str)] = &[
    ("spec", "<key>"),
    ("together", "<direction>"),
    ("map.hits", "<tier>"),
    ("nand.reads_by_cause", "<cause>"),
    ("nand.programs_by_cause", "<cause>"),
    ("utilisation", "<resource>"),
    ("busiest", "<resource>"),
    ("wear.programmed_bytes_by_cause", "<cause>"),
    ("wear.modes", "<mode>"),
    ("wear.modes.<mode>.erases", "<of>"),
    ("breakdown", "<direction>"),
    ("breakdown.<direction>", "<of>"),
    ("breakdown.<direction>.<of>.parts_ns", "<part>"),
    ("nand.ageing", "<count>"),
    ("clat_ns.percentile", "<percentile>"),
    ("clat_ns.bins", "<ns>"),
    ("lat_ns.bins", "<ns>"),
    ("lat_ns.percentile", "<percentile>"),
];

fn paths(value: &Value, prefix: &str, found: &mut Vec<String>) {
    let Value::Object(fields) = value else {
        if !found.iter().any(|known| known == prefix) {
            found.push(prefix.to_owned());
        }
        return;
    };
    let named = NAMED
        .iter()
        .find(|(path, _)| *path == prefix)
        .map(|(_, name)| *name);
    for (key, value) in fields {
        let key = named.unwrap_or(key);
        let path = if prefix.is_empty() {
            key.to_owned()
        } else {
            format!("{prefix}.{key}")
        };
        // A list among the values of a drive is a value.
        paths(
            if named == Some("<key>") {
                &Value::Null
            } else {
                value
            },
            &path,
            found,
        );
    }
}

/// A real result.
fn result(drive: &str) -> Value {
    let job = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fio/randrw.fio");
    result_of(&[&job.to_string_lossy(), "--drive", drive])
}

fn result_of(args: &[&str]) -> Value {
    let args = ["lodger", "simulate"].iter().chain(args);
    let args = args.chain(&["--output-format", "json+", "--breakdown"]);
    let args = args.map(|arg| (*arg).to_owned());
    let (mut out, mut talk) = (Vec::new(), Vec::new());
    let status = lodger::main_with_args(args, &mut out, &mut talk);
    assert_eq!(status, 0, "{}", String::from_utf8_lossy(&talk));
    serde_json::from_slice(&out).expect("a result is JSON")
}

/// What only some runs have: here, one with a ramp.
fn add_of_ramps(ours: &mut Vec<String>) {
    let job = "--name=j --rw=randread --size=1m --time_based --runtime=2ms --ramp_time=1ms";
    let args: Vec<&str> = "--drive tiny".split(' ').chain(job.split(' ')).collect();
    let result = result_of(&args);
    assert!(result["lodger"]["measured_s"].is_number());
    let place = ours.iter().position(|key| key == "simulated_s");
    let place = place.expect("every run has the key") + 1;
    ours.insert(place, "measured_s".to_owned());
}

/// What only some drives have stands behind what all have.
fn add_of_some(ours: &mut Vec<String>) {
    for (drive, table, key, after) in [
        ("2b-ssd", "/window", "window", "window"),
        (
            "aging-tlc",
            "/nand/ageing",
            "nand.ageing",
            "nand.padded_bytes",
        ),
    ] {
        let mut more = Vec::new();
        let result = result(drive);
        let table = result["lodger"].pointer(table);
        paths(table.expect("the drive has it"), key, &mut more);
        let place = ours.iter().position(|key| key == after);
        let place = place.expect("every drive has the key") + 1;
        ours.splice(place..place, more);
    }
}

/// The page.
pub fn page() -> String {
    let result = result("tiny");
    let mut ours = Vec::new();
    paths(&result["lodger"], "", &mut ours);
    add_of_some(&mut ours);
    add_of_ramps(&mut ours);
    let explained: BTreeSet<&str> = MEANINGS.iter().map(|(key, _)| *key).collect();
    let found: BTreeSet<&str> = ours.iter().map(String::as_str).collect();
    let differing: Vec<_> = explained.symmetric_difference(&found).collect();
    assert!(
        differing.is_empty(),
        "keys without explanation, or the other way round: {differing:?}"
    );

    let mut out = String::from(
        "\
`--output-format json` is fio 3.33's own layout, so that scripts written for fio work unchanged;
`json+` adds the bins of every histogram. Both have one object more, `lodger`.

## `lodger`

| key | meaning |
|---|---|
",
    );
    for key in &ours {
        let meaning = MEANINGS.iter().find(|(known, _)| known == key);
        out += &format!(
            "| `{key}` | {} |\n",
            meaning.map_or("", |(_, meaning)| meaning)
        );
    }
    out += "\n## As in fio\n\nOf each entry of `jobs` (beside them, where a trace says how long its requests took when \
            it was recorded, `read`, `write` and `trim` have an object `recorded_ns` in the form of `clat_ns`; with `continue_on_error` or `ignore_error` there are fio's `total_err`, how many \
            requests failed, and `first_error`):\n\n";
    let mut job = Vec::new();
    let Value::Object(fields) = &result["jobs"][0] else {
        return out;
    };
    let flushed = result_of(&[
        "--drive",
        "tiny",
        "--name=j",
        "--rw=trimwrite",
        "--size=1m",
        "--fsync=1",
    ]);
    for (key, value) in fields {
        // What has no requests has no percentiles either.
        let value = match key.as_str() {
            "trim" | "sync" => &flushed["jobs"][0][key],
            _ => value,
        };
        match key.as_str() {
            "job options" => job.push("`job options`".to_owned()),
            _ if value.is_object() => {
                let mut below = Vec::new();
                paths(value, "", &mut below);
                let below: Vec<String> = below.iter().map(|path| format!("`{path}`")).collect();
                job.push(format!("`{key}`: {}", below.join(", ")));
            }
            _ => job.push(format!("`{key}`")),
        }
    }
    for line in job {
        out += &format!("- {line}\n");
    }
    out
}

#[test]
fn what_the_first_run_does_not_do_is_told_as_whole_as_what_it_does() {
    let page = page();
    for direction in ["read", "write", "trim", "sync"] {
        let start = format!("- `{direction}`: ");
        let line = page.lines().find(|line| line.starts_with(&start));
        let told = line.is_some_and(|line| line.contains("lat_ns.percentile.<percentile>`"));
        assert!(told, "{direction}: {line:?}");
    }
}
