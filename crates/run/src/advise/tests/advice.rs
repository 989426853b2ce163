//! Is the advice right, and does it say what the user must know?

use super::*;
use crate::ErrorKind;
use crate::advise::Slo;
use crate::advise::search::Found;
use crate::workload_file::WorkloadFile;

/// Uniform reads over three quarters of the tiny drive: more memory is always better.
const UNIFORM: &str = "rw=randread\nsize=384m\niodepth=4\nnumber_ios=8000";

/// The smallest size that meets the goal, by trying every one.
fn by_force(config: &RunConfig, options: &str, goal: Goal) -> Option<u64> {
    let place = Place::of(&config.drive.parsed.spec).unwrap();
    let reference = run(config, job(config, options), place.preferred_bytes());
    let mut grants = place.grants(0, place.preferred_bytes());
    grants.insert(0, 0);
    grants.into_iter().find(|grant| {
        let run = run(config, job(config, options), *grant);
        goal.is_met(&run, &reference)
    })
}

#[test]
fn the_answer_is_what_trying_every_size_gives() {
    let config = config("tiny", &[]);
    let goals = [
        Goal::Within(0.02),
        Goal::Within(0.05),
        Goal::Within(0.12),
        Goal::Within(0.3),
        Goal::Within(0.9),
        Goal::Slo(Slo::Mean(140_000)),
        Goal::Slo(Slo::Percentile(50.0, 150_000)),
    ];
    for goal in goals {
        let expected = by_force(&config, UNIFORM, goal);
        let advice = advice(&config, UNIFORM, goal);
        let found = match advice.found {
            Found::Off => Some(0),
            Found::Size { enough_bytes, .. } => Some(enough_bytes),
            Found::Nothing { .. } => None,
        };
        assert_eq!(found, expected, "{goal:?}\n{}", advice.text());
        // Two more are another seed's, and two those right above a promise.
        assert!(advice.simulations <= 16, "{}", advice.simulations);
    }
}

#[test]
fn the_size_below_the_answer_is_not_enough() {
    let goal = Goal::Within(0.1);
    let advice = advice(&config("tiny", &[]), UNIFORM, goal);
    let Found::Size {
        enough_bytes,
        below_bytes,
    } = advice.found
    else {
        panic!("{:?}", advice.found);
    };
    assert_eq!(enough_bytes - below_bytes, advice.place.step_bytes);
    let met = |bytes| goal.is_met(advice.run(bytes).unwrap(), &advice.reference);
    assert!(met(enough_bytes) && !met(below_bytes));
    let text = advice.text();
    let first = text.lines().next().unwrap();
    assert!(first.starts_with(&format!(
        "Enough: {} KiB (within 10 % of 256 KiB: ",
        enough_bytes / KIB
    )));
    assert!(advice.is_yes());
}

#[test]
fn a_promise_that_no_size_keeps_names_the_best_and_fails() {
    let goal = Goal::Slo(Slo::Percentile(99.0, 1_000));
    let advice = advice(&config("tiny", &[]), UNIFORM, goal);
    assert!(matches!(advice.found, Found::Nothing { .. }));
    let text = advice.text();
    assert!(
        text.starts_with(
            "Not enough at any size simulated, up to what the drive asks for: p99 at most 1.00 us is met by none, the best"
        ),
        "{text}"
    );
    assert!(!advice.is_yes());
    let json = advice.json();
    assert_eq!(json["answer"]["met"], false);
    assert!(json["answer"]["enough_bytes"].is_null());
    assert!(json["answer"]["best_bytes"].is_u64());
}

/// The ends are always simulated; between them a percentile may be better than at both, and worse.
#[test]
fn a_promise_is_looked_at_between_the_ends() {
    let config = config("tiny", &[]);
    let promise =
        |options: &str, p99_ns| advice(&config, options, Goal::Slo(Slo::Percentile(99.0, p99_ns)));
    let p99_ns = |advice: &Advice, bytes: u64| advice.run(bytes).unwrap().percentile_ns(99.0);
    let ends_and_inside = |options: &str| {
        let all = promise(options, 1);
        let sizes = all.rows.iter().map(|row| row.0);
        let inside = sizes.filter(|bytes| (1..256 * KIB).contains(bytes));
        let inside: Vec<u64> = inside.map(|bytes| p99_ns(&all, bytes)).collect();
        println!("{} {} {inside:?}", p99_ns(&all, 0), p99_ns(&all, 256 * KIB));
        ([p99_ns(&all, 0), p99_ns(&all, 256 * KIB)], inside)
    };
    // Better between: it was said that no size would do.
    let writes = "rw=randwrite\niodepth=32\nnorandommap\nnumber_ios=20000";
    let (ends, inside) = ends_and_inside(writes);
    let (best, end) = (inside.iter().min().unwrap(), ends.iter().min().unwrap());
    assert!(best < end);
    assert!(promise(writes, (best + end) / 2).is_yes());
    // Worse between: "no host memory at all" is enough, and some is not.
    let regions = "rw=randread\niodepth=8\nnumber_ios=20000\nsize=100m\n[other]\nrw=randread\niodepth=8\nnumber_ios=20000\n\
                   size=100m\noffset=400m";
    let (ends, inside) = ends_and_inside(regions);
    let (worst, end) = (inside.iter().max().unwrap(), ends.iter().max().unwrap());
    assert!(worst > end);
    let advice = promise(regions, (worst + end) / 2);
    assert_eq!(advice.found, Found::Off);
    let text = advice.text();
    assert!(text.contains("would not be enough again"), "{text}");
}

#[test]
fn what_fits_the_drives_own_memory_needs_none() {
    // 16 MiB: four translation pages of the eight that the drive holds.
    let options = "rw=randread\nsize=16m\nnumber_ios=4000";
    let advice = advice(&config("tiny", &[]), options, Goal::default());
    assert_eq!(advice.found, Found::Off);
    let text = advice.text();
    assert!(text.starts_with("Enough: no host memory at all (within 5 % of 256 KiB: "));
    assert!(
        text.contains("the working set fits there, and host memory buys nothing"),
        "{text}"
    );
}

#[test]
fn writes_and_unwritten_reads_are_beyond_help() {
    let options = "rw=randrw\nrwmixread=60\nnumber_ios=4000";
    let config = never_written(config("tiny", &[]));
    let advice = advice(&config, options, Goal::default());
    let text = advice.text();
    assert!(
        text.contains("host memory cannot speed up: writes ("),
        "{text}"
    );
    assert!(text.contains("reads of what was never written ("), "{text}");
    let json = advice.json();
    assert!(json["workload"]["unwritten_share"].as_f64().unwrap() > 0.8);
}

#[test]
fn writes_alone_are_judged_by_their_own_latency() {
    let options = "rw=randwrite\nnumber_ios=2000";
    let advice = advice(&config("tiny", &[]), options, Goal::default());
    let text = advice.text();
    assert!(text.contains("latencies are those of writes"), "{text}");
    assert!(text.contains("nothing is read"), "{text}");
}

/// A log that flushes after every write asks for as many requests as it writes.
#[test]
fn flushes_are_no_requests_per_second() {
    let config = config("tiny", &[]);
    let rate = |options: &str| run(&config, job(&config, options), 0).iops;
    let flushed = rate("rw=write\nnumber_ios=500\nrate_iops=100\nfsync=1");
    assert!((flushed - 100.0).abs() < 2.0, "{flushed}");
    let plain = rate("rw=write\nnumber_ios=500\nrate_iops=100");
    assert!((plain - flushed).abs() < 2.0, "{plain}");
}

#[test]
fn sizes_of_equal_effect_share_a_run() {
    // Below the minimum as off; beyond the whole map, all is the same.
    let advice = advice(&config("tiny", &[]), UNIFORM, Goal::Within(0.5));
    let at = |bytes| advice.run(bytes).unwrap().hmb_bytes;
    assert_eq!(at(128 * MIB), at(8 * MIB));
    assert_eq!(at(0), 0);
    let rc100 = config("rc100-480", &[]);
    let options = "rw=randread\nsize=8g\nnumber_ios=2000";
    let advice = super::advice(&rc100, options, Goal::default());
    // The RC100 takes 10 MiB at least, and of 38 MiB uses 32.
    let at = |bytes| advice.run(bytes).unwrap().hmb_bytes;
    assert_eq!(at(8 * MIB), 0);
    assert_eq!(at(38 * MIB), at(32 * MIB));
    assert!(advice.text().contains("below the drive's minimum: as off"));
}

#[test]
fn data_kept_in_host_memory_is_advised_on_without_a_curve() {
    let sets = [
        ("role.map.tiers", "[\"sram\"]"),
        ("role.read_cache.tier", "\"hmb\""),
        ("role.read_cache.size", "\"256KiB\""),
    ];
    let options = "rw=randread\nsize=1m\nnumber_ios=4000";
    let advice = advice(&config("tiny", &sets), options, Goal::Within(0.1));
    assert!(advice.curve.is_none());
    assert!(advice.json()["curve"].is_null());
    assert!(
        matches!(advice.found, Found::Size { .. }),
        "{}",
        advice.text()
    );
}

#[test]
fn a_drive_without_host_memory_says_so() {
    let config = config("970-pro", &[]);
    let make = |_| Ok(job(&config, UNIFORM));
    let watch = |_, _: f64| ControlFlow::Continue(());
    let error = advise(&config, &make, Goal::default(), &watch).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Input);
    assert!(
        error.message.contains("`970-pro`") && error.message.contains("no use for host memory")
    );
    assert!(error.hint.unwrap().contains("lodger drives list"));
}

#[test]
fn an_interrupted_run_advises_nothing() {
    let config = config("tiny", &[]);
    let long = "rw=randread\nnumber_ios=200000";
    let make = |_| Ok(job(&config, long));
    let error = advise(&config, &make, Goal::default(), &|_, _| {
        ControlFlow::Break(())
    });
    assert_eq!(error.unwrap_err().kind, ErrorKind::Interrupted);
}

#[test]
fn the_same_question_has_the_same_answer_on_any_number_of_threads() {
    let config = config("tiny", &[]);
    let text = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| advice(&config, UNIFORM, Goal::Within(0.1)).text())
    };
    assert_eq!(text(1), text(4));
}

#[test]
fn the_json_has_answer_curve_runs_and_losses() {
    let advice = advice(&config("tiny", &[]), UNIFORM, Goal::Within(0.1));
    let json = advice.json();
    let enough = json["answer"]["enough_bytes"].as_u64().unwrap();
    assert_eq!(
        json["answer"]["text"],
        advice.text().lines().next().unwrap()
    );
    let points = json["curve"]["points"].as_array().unwrap();
    assert!(points.len() > 10 && points[0]["hmb_bytes"] == 0);
    let runs = json["runs"].as_array().unwrap();
    let run = runs.iter().find(|run| run["hmb_bytes"] == enough).unwrap();
    for key in ["hit_ratio", "curve_hit_ratio", "iops"] {
        assert!(run[key].as_f64().unwrap() > 0.0, "{key}");
    }
    assert!(run["read"]["p99_ns"].as_u64().unwrap() > 0);
    let sizes = json["losses"]["sizes"].as_array().unwrap();
    assert_eq!(sizes.len(), 5);
    assert_eq!(sizes[4]["hmb_bytes"], 128 * MIB);
    assert!(sizes[0]["iops_lost"].is_f64() && sizes[0]["p99_added"].is_f64());
}

#[test]
fn the_yardstick_is_what_linux_gives_by_default() {
    // An A80 asks for 480 MiB, and Linux gives 128.
    let advice = advice(
        &config("a80", &[]),
        "rw=randread\nsize=1g\nnumber_ios=200",
        Goal::default(),
    );
    assert_eq!(advice.reference.hmb_bytes, 128 * MIB);
    let text = advice.text();
    assert!(
        text.lines()
            .next()
            .unwrap()
            .contains("within 5 % of 128 MiB"),
        "{text}"
    );
    assert!(text.contains("changes are against 128 MiB"), "{text}");
    assert!(text.contains("480 MiB"), "{text}");
}

#[test]
fn advice_on_writes_does_not_contradict_its_table() {
    // A map kept in host memory alone: without it every update waits for flash.
    let sets = [("role.map.tiers", "[\"hmb\"]")];
    let advice = advice(
        &config("tiny", &sets),
        "rw=randwrite\nsize=384m\niodepth=4\nnumber_ios=4000",
        Goal::default(),
    );
    let text = advice.text();
    let off = advice.loss(advice.run(0).unwrap());
    assert!(off.rate > 0.05, "the case shows nothing: {off:?}\n{text}");
    assert!(!text.contains("cannot speed up"), "{text}");
    assert!(!text.contains("buys nothing"), "{text}");
    assert!(text.contains("host memory helps the writes"), "{text}");
    // No bars, and no ratios, of 0 look-ups.
    assert!(!text.contains("####"), "{text}");
    assert!(advice.run(0).unwrap().lookups.hit_ratio().is_none());
    assert!(advice.json()["runs"][0]["hit_ratio"].is_null());
}

/// Memory beyond what the drive asks for (128 MiB for a BG4 that asks for 61) made writes 6 % faster, under a table
/// that said so.
#[test]
fn advice_does_not_say_that_nothing_helps_where_more_than_was_asked_for_does() {
    let options = "rw=randwrite\nbs=4k\nsize=100%\nio_size=64m\niodepth=16";
    let advice = advice(&config("bg4", &[]), options, Goal::default());
    let text = advice.text();
    let most = advice.loss(advice.run(128 * MIB).unwrap());
    assert!(
        most.rate < -0.05,
        "the case shows nothing: {most:?}\n{text}"
    );
    assert!(!text.contains("cannot speed up"), "{text}");
}

/// Advice asked for all of the host memory, as single writes took longer without, where commits took none longer and
/// transactions were as many.
#[test]
fn a_database_is_judged_by_its_commits() {
    let config = config("hong-hmb-buffer", &[]);
    let model = include_str!("../../../../../workloads/logging/linkbench.toml");
    let model = model.replace("transactions = 1000000", "transactions = 20000");
    let model = WorkloadFile::logging("linkbench.toml", model);
    let make = |_| Ok(model.workload(&config.drive.parsed.spec, 1)?.0);
    let watch = |_, _| ControlFlow::Continue(());
    let advice = advise(&config, &make, Goal::default(), &watch).unwrap();
    let (off, most) = (advice.run(0).unwrap(), &advice.reference);
    assert!(
        off.write.mean_ns > 1.05 * most.write.mean_ns,
        "single writes alone say otherwise"
    );
    assert!(off.transactions_per_second >= most.transactions_per_second);
    assert!(off.commit.count > 0);
    let text = advice.text();
    assert_eq!(advice.found, Found::Off, "{text}");
    for part in ["transactions/s", "latencies are those of commits"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("IOPS"), "{text}");
}

#[test]
fn a_job_that_loses_among_others_is_named() {
    // Of all look-ups nearly none are of the job that needs the memory.
    let rare = |size: &str| {
        format!(
            "[global]\nioengine=libaio\nbs=4k\nrw=randread\nruntime=3\ntime_based\nnorandommap\n\
             [hot]\nsize=16m\n[cold]\noffset=32m\nsize={size}\nrate_iops=30\n"
        )
    };
    let config = config("tiny", &[]);
    let advice = |size: &str| {
        let (text, watch) = (rare(size), |_, _: f64| ControlFlow::Continue(()));
        let make = |_| Ok(jobs(&config, &text));
        advise(&config, &make, Goal::default(), &watch).unwrap()
    };
    let (cold, warm) = (advice("80m"), advice("8m"));
    let advice = cold;
    assert_eq!(advice.found, Found::Off);
    let text = advice.text();
    assert!(text.contains("a request of job `cold` takes"), "{text}");
    assert!(!text.contains("buys nothing"), "{text}");
    // The null: within what the drive's own memory reaches nobody loses.
    let text = warm.text();
    assert!(!text.contains("a request of job"), "{text}");
    assert!(text.contains("buys nothing"), "{text}");
}

#[test]
fn a_run_that_is_over_before_memory_is_filled_is_called_short() {
    // 50 parts of the map, of which the drive's own memory holds 8.
    let told = |count: u32, size: &str| {
        let options = format!("rw=randread\nsize={size}\nnumber_ios={count}");
        let text = advice(&config("tiny", &[]), &options, Goal::default()).text();
        let is_told = text.contains("short runs are cold starts");
        assert_eq!(
            is_told,
            text.starts_with("Enough for so short a run"),
            "{text}"
        );
        is_told
    };
    assert!(told(100, "200m"));
    // The nulls: the same for longer, and what the drive's own memory holds.
    assert!(!told(1000, "200m"));
    assert!(!told(20, "4m"));
}

#[test]
fn what_is_programmed_for_writes_is_told_where_latencies_hide_it() {
    let told = |size: &str| {
        let options = format!("rw=randwrite\nsize={size}\nrate_iops=500\nnumber_ios=3000");
        let advice = advice(&config("tiny", &[]), &options, Goal::default());
        let without = advice.run(0).and_then(|run| run.waf).expect("writes");
        let with_all = advice.reference.waf.expect("writes");
        let text = advice.text();
        (
            without / with_all,
            text.contains("latencies do not show what is programmed"),
        )
    };
    let (more, is_told) = told("400m");
    assert!(more > 1.2 && is_told, "{more}");
    // The null: the map of what is written fits the drive's own memory.
    let (more, is_told) = told("16m");
    assert!(more < 1.05 && !is_told, "{more}");
}

/// "Within 45 %" took 77 % longer: the rate was what was allowed to fall, and the time its inverse.
#[test]
fn within_is_so_much_longer_and_so_much_less_and_no_more() {
    for share in [0.02, 0.05, 0.2, 0.45, 0.9] {
        let advice = advice(&config("tiny", &[]), UNIFORM, Goal::Within(share));
        let enough_bytes = advice.found.enough_bytes().unwrap();
        let found = advice.run(enough_bytes).unwrap();
        let longer = found.mean_ns() / advice.reference.mean_ns() - 1.0;
        assert!(longer <= share, "{share}: {longer}");
        let fewer = 1.0 - found.iops / advice.reference.iops;
        assert!(fewer <= share, "{share}: {fewer}");
    }
}

/// What comes with an entry from the host's driver (HPB) is a hit like any other, and nothing the curve could tell.
#[test]
fn what_the_hosts_driver_answers_is_no_miss() {
    let hpb = [("hpb.enabled", "true")];
    let options = "rw=randread\nsize=64m\niodepth=4\nnumber_ios=4000";
    let with = advice(&config("rc100-240", &hpb), options, Goal::default());
    assert_eq!(
        with.reference.lookups.host, 4000,
        "{:?}",
        with.reference.lookups
    );
    assert_eq!(with.reference.lookups.hit_ratio(), Some(1.0));
    let text = with.text();
    assert!(
        text.contains("223.6 MiB of the map (`hpb.host_cache`), and 100.0 % of the look-ups"),
        "{text}"
    );
    assert!(!text.contains("than the curve"), "{text}");
    // A part of it: the rest asks the drive's memories.
    let small = [("hpb.enabled", "true"), ("hpb.host_cache", "32KiB")];
    let part = advice(&config("rc100-240", &small), options, Goal::default());
    let lookups = part.reference.lookups;
    assert!(
        lookups.host > 0 && lookups.near + lookups.hmb > 0,
        "{lookups:?}"
    );
    assert_eq!(
        lookups.all,
        lookups.host + lookups.near + lookups.hmb + lookups.joined + lookups.missed
    );
    // The null.
    let without = advice(&config("rc100-240", &[]), options, Goal::default());
    assert!(without.curve.is_some() && without.reference.lookups.host == 0);
}

#[test]
fn memory_that_makes_a_drive_slower_is_not_within_anything() {
    // The buffer in host memory has the data cross the link three times.
    let sets = [
        ("role.write_buffer.tier", "\"hmb\""),
        ("role.write_buffer.size", "\"192KiB\""),
    ];
    let config = config("tiny", &sets);
    let options = "rw=randwrite\nsize=500m\niodepth=4\nruntime=2\ntime_based";
    let text = advice(&config, options, Goal::default()).text();
    assert!(text.contains("more is not better here"), "{text}");
    // Nothing between is worse than both ends: a part of the buffer that is less than what is staged is not taken.
    assert!(!text.contains("more is not always better here"), "{text}");
    // A promise that is kept without any, and not with all of it.
    let text = advice(&config, options, Goal::Slo(Slo::Iops(13_200.0))).text();
    assert!(text.starts_with("Enough: no host memory at all"), "{text}");
    assert!(
        text.contains("more is not always better here:")
            && text.contains("256 KiB would not be enough again"),
        "{text}"
    );
}

/// Where the curve has many sizes some are left out of the chart: a size that a row of the table speaks of was one of them.
#[test]
fn the_chart_has_a_bar_for_each_size_that_was_simulated_on_the_curve() {
    let sets = [
        ("tier.hmb.min", "\"12KiB\""),
        ("tier.hmb.preferred", "\"100KiB\""),
    ];
    let options = "rw=randread\nsize=200m\niodepth=4\nnorandommap\nnumber_ios=20000";
    let advice = advice(&config("tiny", &sets), options, Goal::Within(0.05));
    let text = advice.text();
    let bars: Vec<&str> = text.lines().filter(|line| line.ends_with('|')).collect();
    let curve = advice.curve.as_ref().expect("a curve");
    let end = curve.points.iter().find(|point| point.hit_ratio > 0.99);
    let end = end.expect("an end of the curve").hmb_bytes;
    for (bytes, _) in advice.rows.iter().filter(|(bytes, _)| *bytes <= end) {
        let shown = match bytes {
            0 => "off".to_owned(),
            bytes => crate::size::show(*bytes),
        };
        let has_bar = bars.iter().any(|bar| bar.contains(&format!(" {shown} ")));
        assert!(has_bar, "{shown}: {bars:#?}");
    }
}
