//! Do the rows of a timeline add up to what the run reports, whatever is run on which drive, and does watching
//! change nothing?

use lodger_core::Precondition;
use lodger_run::report::{self, Report};
use lodger_run::timeline::{Interval, Table, Values};
use lodger_run::{Drive, RunConfig, RunResult, Timeline, TraceOptions, WorkloadFile, run};
use lodger_workload::trace::Fit;
use serde_json::Value;
use std::path::Path;

const MS_PS: u64 = 1_000_000_000;

/// Several jobs at once, stages, ramps that end and one that does not, a delay, trims and flushes.
const JOBS: &str = "\
[global]
bs=4k
size=16m
iodepth=8
[mixed]
rw=randrw
number_ios=1500
fsync=50
[ramp]
rw=randwrite
numjobs=2
time_based
runtime=6ms
ramp_time=4ms
[ends-in-its-ramp]
stonewall
rw=randread
startdelay=5ms
number_ios=700
ramp_time=10s
[trims]
stonewall
rw=randtrim
number_ios=300
[synchronous]
stonewall
rw=randwrite
sync=1
number_ios=100
end_fsync=1
";

fn config(drive: &str) -> RunConfig {
    RunConfig {
        precondition: match drive {
            "tiny" => Precondition::Random,
            _ => Precondition::Sequential,
        },
        ..RunConfig::new(Drive::open(drive, &[]).expect("a drive of the collection"))
    }
}

fn watched(drive: &str, file: &WorkloadFile, interval: Interval) -> (Table, Value, RunResult) {
    let config = config(drive);
    let spec = config.spec();
    let (workload, _) = file.workload(spec, 3).expect("it fits the drive");
    let mut timeline = Timeline::new(interval, spec, spec.host.submit_ps);
    let result = run(&config, workload, &mut timeline).expect("it runs");
    let json = told(&config, &result);
    (timeline.finish(&result), json, result)
}

/// The report, without the only value that differs between equal runs.
fn told(config: &RunConfig, result: &RunResult) -> Value {
    let mut json = report::json_value(Report { config, result }, false);
    json["lodger"]["wall_s"] = Value::Null;
    json
}

fn whole(table: &Table, name: &str) -> Vec<Option<u64>> {
    let column = table.columns.iter().find(|column| column.name == name);
    match column.map(|column| &column.values) {
        Some(Values::Whole(values)) => values.clone(),
        _ => panic!("no column {name} of whole numbers"),
    }
}

fn sum(table: &Table, name: &str) -> u64 {
    whole(table, name).into_iter().flatten().sum()
}

/// What differs between the sums of the rows and the report's totals.
fn differences(table: &Table, json: &Value, result: &RunResult) -> Vec<String> {
    let mut all = Vec::new();
    let mut check = |name: &str, wanted: u64| {
        let found = sum(table, name);
        if found != wanted {
            all.push(format!("{name}: {found} in rows, {wanted} in all"));
        }
    };
    let jobs = json["jobs"].as_array().expect("jobs");
    let of_jobs = |direction: &str, key: &str| -> u64 {
        let values = jobs.iter().map(|job| &job[direction][key]);
        values.map(|value| value.as_u64().expect("a count")).sum()
    };
    for direction in ["read", "write", "trim", "sync"] {
        let ios = of_jobs(direction, "total_ios");
        check(&format!("{direction}_ios"), ios);
        if direction != "sync" {
            check(
                &format!("{direction}_bytes"),
                of_jobs(direction, "io_bytes"),
            );
        }
    }
    let lodger = &json["lodger"];
    let total = |pointer: &str| {
        lodger
            .pointer(pointer)
            .and_then(Value::as_u64)
            .expect("a total")
    };
    for tier in result.map_tiers.iter().map(|tier| tier.name()) {
        check(
            &format!("map_hits_{tier}"),
            total(&format!("/map/hits/{tier}")),
        );
    }
    if result.counters.hpb.present {
        check("map_hits_host", total("/map/hits/host"));
    }
    check("map_lookups", total("/map/lookups"));
    check("map_misses", total("/map/misses"));
    check("programmed_bytes", total("/nand/programmed_bytes"));
    check("flash_reads", total("/nand/reads"));
    check("flash_programs", total("/nand/programs"));
    check("flash_erases", total("/nand/erases"));
    check("hmb_read_bytes", total("/hmb/read_bytes"));
    check("host_written_bytes", result.counters.host_written_bytes);
    check("length_ns", result.simulated_ps / 1_000);
    all
}

/// Rows follow each other without a gap, all of the interval's length but the last.
fn check_form(table: &Table) {
    let (starts, lengths) = (whole(table, "start_ns"), whole(table, "length_ns"));
    for (at, start) in starts.iter().enumerate() {
        assert_eq!(*start, Some(at as u64 * table.interval_ps / 1_000));
        if at + 1 < starts.len() {
            assert_eq!(lengths[at], Some(table.interval_ps / 1_000));
        }
    }
}

#[test]
fn rows_add_up_to_the_totals() {
    for drive in [
        "tiny",
        "rc100-480",
        "970-pro",
        "2b-ssd",
        "ufs21-64",
        "hong-hmb-buffer",
    ] {
        let file = WorkloadFile::fio("jobs.fio", JOBS);
        let config = config(drive);
        let (workload, _) = file.workload(config.spec(), 3).expect("it fits");
        let unwatched = run(&config, workload, &mut ()).expect("it runs");
        let unwatched = told(&config, &unwatched);
        for interval in [
            Interval::Chosen,
            Interval::Exactly(MS_PS / 7 / 1_000 * 1_000),
            Interval::Exactly(3_600_000 * MS_PS),
        ] {
            let (table, json, result) = watched(drive, &file, interval);
            assert_eq!(json, unwatched, "{drive}: watching changes something");
            assert_eq!(
                differences(&table, &json, &result),
                [""; 0],
                "{drive}, {interval:?}"
            );
            check_form(&table);
            let (again, ..) = watched(drive, &file, interval);
            assert_eq!(again, table, "{drive}: not deterministic");
            match interval {
                Interval::Chosen => assert!((200..=1000).contains(&table.rows()), "{drive}"),
                Interval::Exactly(ps) => {
                    assert_eq!(
                        table.rows() as u64,
                        result.simulated_ps.div_ceil(ps),
                        "{drive}"
                    );
                }
            }
        }
    }
}

/// Ramps of all jobs at once: in one of several stages, one after another job, and one that a job ends before.
#[test]
fn what_the_drive_does_in_a_ramp_is_in_no_row() {
    let fio = |jobs: &str| {
        let text = format!(
            "[global]\nbs=4k\nsize=16m\nrw=randwrite\niodepth=8\ntime_based\nruntime=9ms\n{jobs}"
        );
        WorkloadFile::fio("ramps.fio", text)
    };
    let one = "[one]\nramp_time=20ms\n";
    for (jobs, ramps) in [
        (one, true),
        ("[first]\n[one]\nstonewall\nramp_time=20ms", true),
        ("[first]\nruntime=5ms\n[one]\nramp_time=20ms", true),
        ("[one]\nramp_time=20ms\n[two]\nramp_time=11ms", true),
        ("[one]\nramp_time=20ms\n[beside]\nruntime=40ms", false),
        ("[one]\nramp_time=20ms\ntime_based=0\nnumber_ios=10", false),
    ] {
        for interval in [
            Interval::Chosen,
            Interval::Exactly(MS_PS * 3),
            Interval::Exactly(3_600_000 * MS_PS),
        ] {
            let (table, json, result) = watched("tiny", &fio(jobs), interval);
            assert_eq!(differences(&table, &json, &result), [""; 0], "{jobs}");
            assert_eq!(result.measured_ps < result.simulated_ps, ramps, "{jobs}");
        }
    }
    // A row in the ramp has nothing of the drive's; the null: without a ramp it has.
    for (jobs, written) in [(one, false), ("[one]\nruntime=29ms", true)] {
        let (table, ..) = watched("tiny", &fio(jobs), Interval::Exactly(MS_PS));
        for column in [
            "write_ios",
            "host_written_bytes",
            "programmed_bytes",
            "flash_programs",
        ] {
            assert_eq!(
                whole(&table, column)[5] > Some(0),
                written,
                "{jobs}: {column}"
            );
            assert!(whole(&table, column)[25] > Some(0), "{jobs}: {column}");
        }
    }
}

/// The null: a row that is lost shows.
#[test]
fn a_row_that_is_missing_or_there_twice_is_noticed() {
    let file = WorkloadFile::fio("jobs.fio", JOBS);
    let (table, json, result) = watched("tiny", &file, Interval::Exactly(MS_PS));
    let busy = whole(&table, "read_ios")
        .iter()
        .position(|ios| *ios > Some(0));
    let busy = busy.expect("reads");
    let change = |act: &dyn Fn(&mut Vec<Option<u64>>)| {
        let mut changed = table.clone();
        for column in &mut changed.columns {
            if let Values::Whole(values) = &mut column.values {
                act(values);
            }
        }
        differences(&changed, &json, &result).len()
    };
    assert_eq!(change(&|_| {}), 0);
    assert!(
        change(&|values| values.retain({
            let mut at = 0;
            move |_| {
                at += 1;
                at != busy + 1
            }
        })) > 1
    );
    assert!(change(&|values| values.push(values[busy])) > 1);
}

/// A database's log and block traces, beside fio's jobs.
#[test]
fn logging_and_traces_add_up_too() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let scaled = TraceOptions {
        fit: Some(Fit::Scale),
        ..TraceOptions::default()
    };
    for (name, drive) in [
        ("workloads/logging/redis.toml", "2b-ssd"),
        ("workloads/git.ftrace", "rc100-480"),
        ("examples/two-tables.csv", "tiny"),
    ] {
        let path = root.join(name);
        let file = if name.ends_with("toml") {
            let text = std::fs::read_to_string(&path).expect("a workload file");
            let shorter = text.lines().map(|line| match line.split_once(" = ") {
                Some(("transactions", _)) => "transactions = 4000",
                _ => line,
            });
            WorkloadFile::logging(name, shorter.collect::<Vec<_>>().join("\n"))
        } else {
            WorkloadFile::open(&path, &scaled).expect("it can be read")
        };
        let (table, json, result) = watched(drive, &file, Interval::Chosen);
        assert_eq!(differences(&table, &json, &result), [""; 0], "{name}");
        assert!(
            sum(&table, "write_ios") + sum(&table, "read_ios") > 0,
            "{name}"
        );
        check_form(&table);
    }
}

#[test]
fn silence_shows_as_rows_of_zeros() {
    let job = "[j]\nrw=randread\nbs=4k\nsize=16m\nnumber_ios=4\nthinktime=10ms";
    let file = WorkloadFile::fio("slow.fio", job);
    let (table, ..) = watched("tiny", &file, Interval::Exactly(MS_PS));
    let ios = whole(&table, "read_ios");
    assert!(ios.len() > 30 && ios.iter().all(Option::is_some));
    assert_eq!(ios.iter().filter(|ios| **ios > Some(0)).count(), 4);
    let p99 = whole(&table, "read_clat_p99_ns");
    for (ios, p99) in ios.iter().zip(p99) {
        assert_eq!(*ios == Some(0), p99.is_none(), "no request has no latency");
    }
}

#[test]
fn short_and_empty_runs_have_the_rows_they_have() {
    for (job, rows, ios) in [
        ("number_ios=1", 1, 1),
        ("number_ios=1\nstartdelay=5", 6, 1),
        ("runtime=1ms\ntime_based\nrate_iops=1\nthinktime=1", 1, 1),
    ] {
        let job = format!("[j]\nrw=randread\nbs=4k\nsize=16m\n{job}");
        let file = WorkloadFile::fio("short.fio", &job);
        let (table, json, result) = watched("tiny", &file, Interval::Exactly(1000 * MS_PS));
        assert_eq!(
            (table.rows(), sum(&table, "read_ios")),
            (rows, ios),
            "{job}"
        );
        assert_eq!(differences(&table, &json, &result), [""; 0], "{job}");
    }
    let (table, ..) = watched(
        "tiny",
        &WorkloadFile::fio(
            "none.fio",
            "[j]\nrw=read\nbs=4k\nsize=4k\nstartdelay=1\nruntime=1us",
        ),
        Interval::Chosen,
    );
    assert!(table.rows() >= 1);
}

#[test]
fn a_timeline_that_is_full_goes_on_with_intervals_twice_as_long() {
    // The ramp ends the run before it does: its rows move with the others.
    for more in ["", "ramp_time=10s\n"] {
        let job = "[j]\nrw=randread\nbs=4k\nsize=16m\nthinktime=900us\nnumber_ios=";
        let file = |reads: u32| WorkloadFile::fio("long.fio", format!("{job}{reads}\n{more}"));
        let us = |n: u64| Interval::Exactly(n * 1_000_000);
        let (fits, ..) = watched("tiny", &file(95), us(1));
        assert!(
            fits.rows() > 80_000 && fits.rows() <= 100_000,
            "{}",
            fits.rows()
        );
        assert_eq!((fits.interval_ps, fits.warning()), (1_000_000, None));
        let (table, json, result) = watched("tiny", &file(160), us(1));
        assert_eq!(table.interval_ps, 2_000_000);
        let warning = table.warning().expect("it is said");
        assert_eq!(
            warning,
            "intervals of the timeline are 2 us, not 1 us: with these it would have more than 100000 rows"
        );
        assert_eq!(differences(&table, &json, &result), [""; 0]);
        // The same as if they had been asked for.
        let (asked, ..) = watched("tiny", &file(160), us(2));
        assert_eq!(table.columns, asked.columns);
    }
}

#[test]
fn rows_are_bounded() {
    let job = "[j]\nrw=randread\nbs=4k\nsize=16m\nnumber_ios=4\nthinktime=10s";
    let file = WorkloadFile::fio("long.fio", job);
    let (table, ..) = watched("tiny", &file, Interval::Exactly(1_000_000));
    assert!(
        (50_000..=100_000).contains(&table.rows()),
        "{}",
        table.rows()
    );
    assert_eq!(table.interval_ps, 512_000_000);
    let (table, ..) = watched("tiny", &file, Interval::Chosen);
    assert!((200..=1000).contains(&table.rows()), "{}", table.rows());
    for wrong in [
        "1ns", "999ns", "0s", "100", "-1s", "2000000s", "", "1\u{1b}s",
    ] {
        let error = wrong.parse::<Interval>().expect_err(wrong);
        assert!(
            error.message.contains("from 1us to 86400s"),
            "{}",
            error.message
        );
    }
    assert_eq!(
        "100ms".parse::<Interval>().unwrap(),
        Interval::Exactly(100 * MS_PS)
    );
}
