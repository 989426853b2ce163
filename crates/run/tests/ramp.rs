//! Are the drive's numbers those of the time that counts, where jobs have a ramp?

use lodger_core::Precondition;
use lodger_core::observe::Counters;
use lodger_core::time::MS;
use lodger_run::report::{Report, json_value, waf};
use lodger_run::{Drive, DriveState, Observer, RunConfig, RunResult, WorkloadFile, run};
use serde_json::Value;

fn config() -> RunConfig {
    RunConfig {
        precondition: Precondition::Random,
        ..RunConfig::new(Drive::open("tiny", &[]).expect("it is built in"))
    }
}

fn watched<O: Observer>(jobs: &str, observer: &mut O) -> RunResult {
    let config = config();
    let text = format!(
        "[global]\nrw=randwrite\nbs=4k\nsize=100%\nnorandommap\niodepth=16\ntime_based\nruntime=1s\n{jobs}"
    );
    let file = WorkloadFile::fio("ramp.fio", text);
    let (workload, _) = file.workload(config.spec(), 1).expect("it fits the drive");
    run(&config, workload, observer).expect("it runs")
}

fn simulate(jobs: &str) -> RunResult {
    watched(jobs, &mut ())
}

fn lodger(result: &RunResult) -> Value {
    let config = config();
    let config = &config;
    json_value(Report { config, result }, false)["lodger"].take()
}

/// Looks at the drive at one instant.
struct Look {
    at_ps: u64,
    seen: Option<Counters>,
}

impl Observer for Look {
    fn next_look_ps(&self) -> u64 {
        match self.seen {
            None => self.at_ps,
            Some(_) => u64::MAX,
        }
    }

    fn look(&mut self, drive: &DriveState) {
        if drive.now_ps >= self.at_ps && self.seen.is_none() {
            self.seen = Some(drive.counters.clone());
        }
    }
}

#[test]
fn a_ramp_leaves_out_what_the_drive_did_in_it_and_nothing_else() {
    let ramped = simulate("[j]\nramp_time=2s");
    // The same requests without a ramp.
    let at_ps = 2000 * MS - 1;
    let mut look = Look { at_ps, seen: None };
    let whole = watched("[j]\nruntime=3s", &mut look);
    let before = look.seen.expect("it was looked at");
    assert_eq!(ramped.simulated_ps, whole.simulated_ps);
    assert_eq!(ramped.measured_ps, whole.simulated_ps - at_ps);
    let (counted, all) = (&ramped.counters, &whole.counters);
    let pairs = [
        (counted.requests, all.requests, before.requests),
        (
            counted.host_written_bytes,
            all.host_written_bytes,
            before.host_written_bytes,
        ),
        (
            counted.map.evictions[0],
            all.map.evictions[0],
            before.map.evictions[0],
        ),
        (
            counted.programs_by_cause[0],
            all.programs_by_cause[0],
            before.programs_by_cause[0],
        ),
        (
            counted.programmed_slots_by_cause[2],
            all.programmed_slots_by_cause[2],
            before.programmed_slots_by_cause[2],
        ),
        (counted.padded_slots, all.padded_slots, before.padded_slots),
        (counted.erases, all.erases, before.erases),
        (
            counted.link_from_host_bytes,
            all.link_from_host_bytes,
            before.link_from_host_bytes,
        ),
    ];
    for (at, (counted, all, before)) in pairs.into_iter().enumerate() {
        assert_eq!(counted, all - before, "number {at}");
    }
    // How things are at the end is as it is.
    assert_eq!(counted.buffer_high_water_slots, all.buffer_high_water_slots);
    assert_eq!(ramped.wear, whole.wear);
    // The null: the drive settles in the ramp, so that the whole run's amplification is another.
    let [ramped, whole] = [counted, all].map(|counters| waf(counters).expect("writes"));
    assert!(ramped > whole + 0.2, "{ramped} {whole}");
}

/// As a user would check it: one run as long as the ramp, and one as long as ramp and runtime.
#[test]
fn the_write_amplification_is_that_of_two_runs_difference() {
    let [ramp, whole, ramped] =
        ["runtime=2s", "runtime=3s", "ramp_time=2s"].map(|time| simulate(&format!("[j]\n{time}")));
    let programmed = |result: &RunResult| {
        let bytes = lodger(result)["nand"]["programmed_bytes"].as_u64();
        bytes.expect("a number") as f64
    };
    let written = |result: &RunResult| result.counters.host_written_bytes as f64;
    let expected = (programmed(&whole) - programmed(&ramp)) / (written(&whole) - written(&ramp));
    let found = waf(&ramped.counters).expect("writes");
    assert!((found / expected - 1.0).abs() < 0.01, "{found} {expected}");
    // What the flash wears for, what its cells say and how long it lasts are of the same time.
    let json = lodger(&ramped);
    let wear = &json["wear"];
    let causes = wear["programmed_bytes_by_cause"]
        .as_object()
        .expect("causes");
    let causes: u64 = causes.values().filter_map(Value::as_u64).sum();
    let modes = wear["modes"].as_object().expect("modes").values();
    let modes: u64 = modes
        .filter_map(|mode| mode["programmed_bytes"].as_u64())
        .sum();
    assert_eq!(Some(causes - modes), wear["system_area_bytes"].as_u64());
    let days = |result: &RunResult| {
        let json = lodger(result);
        let days = json["wear"]["lifetime"]["days_per_1000_cycles"].as_f64();
        days.expect("it wears")
    };
    let expected = 1.0 / (3.0 / days(&whole) - 2.0 / days(&ramp));
    let found = days(&ramped);
    assert!((found / expected - 1.0).abs() < 0.01, "{found} {expected}");
    let share = |result: &RunResult| {
        let kinds = &result.utilisation;
        let dies = kinds.iter().find(|busy| busy.kind == "die");
        dies.expect("dies").mean
    };
    let expected = (3.0 * share(&whole) - 2.0 * share(&ramp)).min(1.0);
    assert!(
        (share(&ramped) - expected).abs() < 0.01,
        "{} {expected}",
        share(&ramped)
    );
    assert!((json["measured_s"].as_f64().expect("a time") - 1.0).abs() < 0.01);
    assert_eq!(lodger(&whole).get("measured_s"), None);
}

#[test]
fn only_time_in_which_every_job_is_in_its_ramp_is_left_out() {
    for (jobs, skipped_ms) in [
        ("[a]\nramp_time=200ms\n[b]\nramp_time=300ms", 200),
        ("[a]\nramp_time=200ms\n[b]", 0),
        ("[a]\nramp_time=200ms\n[b]\nstartdelay=150ms", 150),
        ("[a]\nstartdelay=100ms\nramp_time=200ms", 300),
        ("[a]\nstartdelay=100ms", 0),
        ("[a]\nruntime=100ms\n[b]\nstonewall\nramp_time=200ms", 200),
        ("[a]\nramp_time=100ms\n[b]\nstonewall\nramp_time=200ms", 300),
        ("[a]\nramp_time=200ms\ntime_based=0\nnumber_ios=50", 0),
    ] {
        let result = simulate(jobs);
        let skipped_ps = result.simulated_ps - result.measured_ps;
        assert!(
            skipped_ps.abs_diff(skipped_ms * MS) < MS / 10,
            "{jobs}: {skipped_ps}"
        );
        let counted: u64 = result.jobs.iter().map(|job| job.write.ios).sum();
        assert!(result.counters.completions >= counted, "{jobs}");
    }
}

#[test]
fn a_run_that_begins_otherwise_than_it_goes_on_says_so_and_one_with_a_ramp_does_not() {
    let told = |jobs: &str| {
        let result = simulate(jobs);
        let text = result.warnings.join("; ");
        (
            text.contains("otherwise than they go on"),
            lodger(&result)["beginnings"].clone(),
        )
    };
    // The first writes meet no garbage collection.
    let (is_said, json) = told("[j]");
    assert!(is_said);
    assert_eq!(
        (&json[0]["jobname"], &json[0]["direction"]),
        (&"j".into(), &"write".into())
    );
    let ns = |key: &str| json[0][key].as_f64().unwrap();
    assert!(ns("later_clat_ns") > 2.0 * ns("first_clat_ns"), "{json}");
    let (is_said, json) = told("[j]\nramp_time=1s");
    assert!(!is_said && json.is_null(), "{json}");
}
