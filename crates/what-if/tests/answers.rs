//! Does an answer say what a run says, whatever is asked? In the page itself `scripts/what_if_test.py` asks that.

use lodger_run::report::{Report, json_value};
use lodger_run::{Drive, HmbChoice, RunConfig, WorkloadFile, run};
use lodger_what_if::answer;
use proptest::prelude::*;
use serde_json::{Value, json};

const JOB: &str = "[touch]\nrw=read:4092k\nbs=4k\nsize=4g\n[measure]\nstonewall\nrw=randrw\nrwmixread=70\nbs=4k\n\
                   size=4g\niodepth=8\nnumber_ios=2000";

fn answered(question: &Value) -> Value {
    serde_json::from_str(&answer(&question.to_string())).expect("an answer is JSON")
}

fn asked(seed: u64) -> Value {
    let setup = json!({"drive": "rc100-480", "sets": [["tier.hmb.integrity", "mac"]], "hmb": "16MiB", "seed": seed});
    json!({"ask": "run", "setup": setup, "job": JOB})
}

/// The report without the real time that it took.
fn without_clock(mut report: Value) -> Value {
    report["lodger"]["wall_s"] = Value::Null;
    report
}

#[test]
fn a_run_is_reported_as_lodger_simulate_does() {
    let mut config =
        RunConfig::new(Drive::open("rc100-480", &[("tier.hmb.integrity", "mac")]).unwrap());
    config.hmb = HmbChoice::AtMost(16 << 20);
    config.seed = 3;
    let (workload, _) = WorkloadFile::fio("-", JOB)
        .workload(config.spec(), 3)
        .unwrap();
    let result = run(&config, workload, &mut ()).unwrap();
    let report = Report {
        config: &config,
        result: &result,
    };
    // Through text as well: what reads it back rounds.
    let theirs: Value = serde_json::from_str(&json_value(report, false).to_string()).unwrap();
    let theirs = without_clock(theirs);
    let ours = |seed| without_clock(answered(&asked(seed))["report"].take());
    assert!(ours(3) == theirs, "{} is not {theirs}", ours(3));
    assert!(ours(4) != theirs, "null: another seed is another run");
}

#[test]
fn watching_changes_nothing_and_the_last_job_is_told_alone() {
    let plain = answered(&asked(1));
    let mut question = asked(1);
    question["breakdown"] = json!(true);
    question["timeline"] = json!(true);
    let mut watched = answered(&question);
    let report = watched["report"]["lodger"].as_object_mut().unwrap();
    let whole = report.remove("breakdown").unwrap();
    assert_eq!(
        without_clock(watched["report"].take()),
        without_clock(plain["report"].clone())
    );

    let reads = &plain["report"]["jobs"][1]["read"];
    let measured = &watched["measured"]["breakdown"]["read"]["mean"];
    assert_eq!(measured["requests"], reads["total_ios"]);
    let (parts_ns, latency_ns) = (
        measured["latency_ns"].as_f64(),
        reads["lat_ns"]["mean"].as_f64(),
    );
    let apart_ns = (parts_ns.unwrap() - latency_ns.unwrap()).abs();
    assert!(
        apart_ns < 1.5,
        "parts add up to {parts_ns:?}, the latency is {latency_ns:?}"
    );
    assert_ne!(
        whole["read"]["mean"]["requests"], measured["requests"],
        "null: the first job reads as well"
    );

    // One look-up for each page that was read, but for the few under way as the first job ended.
    let lookups = |map: &Value| map["lookups"].as_u64().unwrap();
    let all = lookups(&plain["report"]["lodger"]["map"]);
    let measured = lookups(&plain["measured"]["map"]);
    let touched = plain["report"]["jobs"][0]["read"]["total_ios"]
        .as_u64()
        .unwrap();
    assert!(
        all.abs_diff(measured + touched) <= 8,
        "{all} look-ups, {measured} of the last job, {touched} before"
    );
    let written = watched["over_time"]["write_ios"].as_array().unwrap().iter();
    let written: u64 = written.map(|ios| ios.as_u64().unwrap()).sum();
    assert_eq!(
        json!(written),
        plain["report"]["jobs"][1]["write"]["total_ios"]
    );
}

#[test]
fn every_drive_runs_with_its_map_in_each_place_that_is_offered() {
    let about = answered(&json!({"ask": "about"}));
    let mut places = 0;
    for drive in about["drives"].as_array().unwrap() {
        let as_built = json!({"sets": []});
        for place in drive["places"]
            .as_array()
            .unwrap()
            .iter()
            .chain([&as_built])
        {
            let setup = json!({"drive": drive["name"], "sets": place["sets"], "hmb": "64MiB"});
            let job = "[a]\nrw=randread\nbs=4k\nsize=100%\nnumber_ios=100";
            let answer = answered(&json!({"ask": "run", "setup": setup, "job": job}));
            assert_eq!(answer["error"], Value::Null, "{} {place}", drive["name"]);
            let told = answer["report"]["lodger"]["spec"].to_string();
            let kept_there = place["map"].as_str().is_none_or(|tier| told.contains(tier));
            assert!(kept_there, "{} {place}", drive["name"]);
            places += 1;
        }
    }
    assert!(
        places > 40,
        "null: {places} combinations of drive and place"
    );
}

#[test]
fn what_cannot_be_answered_gets_an_error() {
    let run = |drive: &str, job: &str| {
        json!({"ask": "run", "setup": {"drive": drive}, "job": job}).to_string()
    };
    let questions = [
        ("".to_owned(), "not understood"),
        ("[".repeat(10_000), "not understood"),
        (json!({"ask": "money"}).to_string(), "unknown variant `money`"),
        (json!({"ask": "run", "job": ""}).to_string(), "missing field `setup`"),
        (run("rc100", ""), "no drive is called `rc100`"),
        (run("/etc/passwd", ""), "a page reads no files"),
        (run("tiny", "[a]\ninclude /etc/passwd"), "a page reads no files"),
        (run("tiny", "[a]\nrw=randread\nsize=1m\ntime_based\nruntime=30d\niodepth=32"), "too long for a page"),
        (run("tiny", "[a]\nnumjobs=4000000000\nsize=1m"), "numjobs"),
        (run("tiny", "[a]\niodepth=4000000000\nsize=1m"), "iodepth"),
        (json!({"ask": "draw", "title": "", "says": "", "axes": ["a", "b"]}).to_string(), "no axis is called `a`"),
        (json!({"ask": "advise", "setup": {"drive": "bg4"}, "name": "a", "trace": "\u{0}"}).to_string(), "a"),
        (json!({"ask": "advise", "setup": {"drive": "bg4"}, "name": "a", "trace": "1".repeat(9 << 20)}).to_string(), "longer than 8 MiB"),
    ];
    for (question, expected) in questions {
        let question: String = question;
        let shown: String = question.chars().take(100).collect();
        let answer: Value = serde_json::from_str(&answer(&question)).unwrap();
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(error.contains(expected), "{shown}: {answer}");
    }
}

proptest! {
    #![proptest_config(lodger_testing::config(64))]

    #[test]
    fn any_trace_and_any_picture_is_answered(
        trace in "(time_us,op,offset_bytes,length_bytes,flags\n)?([0-9]{0,20},[RWFDx]?,-?[0-9]{0,20},[0-9]{0,20},?\n?){0,8}|.{0,80}",
        points in prop::collection::vec((prop::num::f64::ANY, prop::num::f64::ANY), 0..6),
        share in prop::num::f64::ANY,
    ) {
        let advise = json!({"ask": "advise", "setup": {"drive": "tiny"}, "name": "t", "trace": trace});
        let answer = answered(&advise);
        prop_assert!(answer["error"].is_string() || answer["advice"].is_object(), "{answer}");
        // A number that JSON cannot say is null there, and a question that is not understood.
        let axes = ["time, s", "requests a second"];
        let curve = json!({"ask": "draw", "title": "<t>", "says": "", "axes": axes, "lines": [{"name": "<n>", "points": points}]});
        let bars = json!({"ask": "draw", "title": "<t>", "says": "",
            "bars": [{"name": "<x>", "value": "", "parts": [["<p>", share]]}]});
        for picture in [curve, bars] {
            let answer = answered(&picture);
            let html = answer["html"].as_str().unwrap_or_default();
            prop_assert!(answer["error"].is_string() || answer["html"].is_string(), "{answer}");
            prop_assert!(!["<t>", "<n>", "<x>", "<p>"].iter().any(|tag| html.contains(tag)), "{html}");
        }
    }
}
