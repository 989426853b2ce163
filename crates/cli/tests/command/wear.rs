//! Is what reports say of wear what was programmed?

use crate::common::Sandbox;
use serde_json::Value;

/// What the JSON of a simulation says of Lodger's own.
fn told(sandbox: &Sandbox, drive: &str, rest: &[&str]) -> Value {
    let head = ["simulate", "--output-format", "json", "--drive", drive];
    let args: Vec<&str> = head.iter().chain(rest).copied().collect();
    let mut json: Value = serde_json::from_str(&sandbox.ok(&args).stdout).unwrap();
    json["lodger"].take()
}

#[test]
fn records_of_trims_are_told_beside_the_wear_of_superblocks() {
    let sandbox = Sandbox::new();
    sandbox.file("t.fio", "[t]\nrw=trimwrite\nbs=16k\nsize=8m\nsync=1\n");
    let ran = sandbox.ok(&[
        "simulate",
        "t.fio",
        "--drive",
        "tiny",
        "--precondition",
        "none",
        "--output-format",
        "json",
    ]);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let wear = &json["lodger"]["wear"];
    let beside = wear["system_area_bytes"].as_u64().unwrap();
    // Each trim must be safe before the write with FUA behind it: a record, and a program operation of this drive, for each.
    let trims = json["jobs"][0]["trim"]["total_ios"].as_u64().unwrap();
    assert_eq!(beside, trims * (32 << 10));
    let text = sandbox
        .ok(&[
            "simulate",
            "t.fio",
            "--drive",
            "tiny",
            "--precondition",
            "none",
        ])
        .stdout;
    assert!(
        text.contains("records of trims, beside the superblocks"),
        "{text}"
    );
    sandbox.file("w.fio", "[t]\nrw=write\nbs=16k\nsize=8m\nfsync=1\n");
    let ran = sandbox.ok(&[
        "simulate",
        "w.fio",
        "--drive",
        "tiny",
        "--output-format",
        "json",
    ]);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["lodger"]["wear"]["system_area_bytes"], 0);
}

/// Bytes programmed in single-bit mode were divided by the superblocks that are in it at the end: "24 times" of what was written
/// once, and ordinary cells had none of it.
#[test]
fn wear_counts_each_cell_once_where_superblocks_change_their_mode() {
    let sandbox = Sandbox::new();
    let lodger = told(
        &sandbox,
        "tiny",
        &[
            "--precondition=none",
            "--set=ftl.slc_superblocks=0",
            "--set=ftl.slc_dynamic=0.5",
            "--name=w",
            "--rw=write",
            "--bs=128k",
            "--iodepth=4",
            "--size=128m",
            "--name=z",
            "--rw=randread",
            "--bs=4k",
            "--number_ios=10",
            "--startdelay=8s",
        ],
    );
    let wear = &lodger["wear"];
    let mode = |name: &str, key: &str| wear["modes"][name][key].as_f64().unwrap();
    let superblocks: f64 = ["ordinary", "single_bit"]
        .map(|name| mode(name, "superblocks"))
        .iter()
        .sum();
    let programmed: f64 = ["ordinary", "single_bit"]
        .map(|name| mode(name, "programmed_bytes") / mode(name, "superblock_bytes"))
        .iter()
        .sum();
    let cycles = mode("ordinary", "cycles");
    assert!((cycles - programmed / superblocks).abs() < 1e-9, "{cycles}");
    assert!(cycles < 1.0, "128 MiB on a drive of 512: {cycles}");
    assert_eq!(mode("single_bit", "cycles"), cycles);
    assert!(wear["lifetime"]["single_bit_days_per_1000_cycles"].is_null());
}

/// What had been given room and still waited for its data from host memory counted as programmed.
#[test]
fn wear_counts_what_was_programmed_and_not_what_is_to_be() {
    let sandbox = Sandbox::new();
    let lodger = told(
        &sandbox,
        "hong-hmb-buffer",
        &[
            "--name=j",
            "--rw=write",
            "--bs=4k",
            "--iodepth=4",
            "--number_ios=17000",
        ],
    );
    let programmed = lodger["nand"]["programmed_bytes"].as_u64().unwrap();
    assert_eq!(
        lodger["wear"]["modes"]["ordinary"]["programmed_bytes"],
        programmed
    );
    assert_eq!(lodger["wear"]["system_area_bytes"], 0);
}
