//! Does advice say how far it can be relied on?

use super::*;
use crate::advise::Slo;
use crate::advise::search::Found;

/// One job, whose requests the seed makes, too.
fn seeded(config: &RunConfig, options: &str, goal: Goal) -> Advice {
    let text = format!("[job]\nioengine=libaio\nbs=4k\nnorandommap\n{options}");
    let make = |seed| {
        let context = fio::Context {
            file_name: "job.fio",
            env: &|_| None,
            include: &|_| Err(std::io::Error::other("none")),
            drive_bytes: config.drive.parsed.spec.capacity_bytes,
            seed,
        };
        Ok(fio::parse(&text, &context).unwrap())
    };
    advise(config, &make, goal, &|_, _| ControlFlow::Continue(())).unwrap()
}

/// "p99 at most 200 us" was judged by the slowest of 30 reads.
#[test]
fn a_promise_that_few_requests_decide_says_so() {
    let config = config("tiny", &[]);
    let text = |percent: f64, count: u32| {
        let options = format!("rw=randread\nsize=16m\nnumber_ios={count}");
        let goal = Goal::Slo(Slo::Percentile(percent, 1_000_000));
        advice(&config, &options, goal).text()
    };
    for (percent, count, says) in [
        (99.0, 30, "p99 of 30 reads rests on the slowest alone"),
        (99.0, 999, "p99 of 999 reads rests on the slowest 9"),
        (99.9, 2000, "p99.9 of 2,000 reads rests on the slowest 2"),
        (100.0, 2000, "p100 of 2,000 reads is the slowest of them"),
    ] {
        let text = text(percent, count);
        assert!(text.contains(says), "{text}");
    }
    assert!(text(99.0, 30).contains("to 1,000 reads or more"));
    // The nulls: ten are beyond it.
    assert!(!text(99.0, 1000).contains("rests on"));
    assert!(!text(50.0, 30).contains("rests on"));
}

/// One read in fifty goes where the drive's own memory does not reach: nothing to a mean.
#[test]
fn a_tail_that_the_mean_hides_is_told() {
    let of = |count: u32, size: &str| {
        let options = format!(
            "rw=randread\nsize={size}\nrandom_distribution=zoned:98/10:2/90\nnumber_ios={count}"
        );
        advice(&config("tiny", &[]), &options, Goal::default())
    };
    let many = of(20_000, "200m");
    assert_eq!(many.found, Found::Off);
    let text = many.text();
    let says = "the answer is about means: without host memory p99 is ";
    assert!(text.contains(says), "{text}");
    assert!(text.contains("  p99.9  "), "{text}");
    assert!(many.json()["runs"][0]["read"]["p99_9_ns"].is_u64());
    assert!(!text.contains("buys nothing"), "{text}");
    // The nulls: too few to say, and all within the drive's own memory.
    let fewest = of(999, "200m").text();
    assert!(!fewest.contains("the answer is about means"), "{fewest}");
    let few = of(9_999, "200m");
    assert!(!few.text().contains("p99.9"), "{}", few.text());
    assert!(few.json()["runs"][0]["read"]["p99_9_ns"].is_null());
    let near = of(20_000, "30m").text();
    assert!(!near.contains("the answer is about means"), "{near}");
}

/// What a run of 2,000 requests loses, it loses with one seed.
#[test]
fn an_answer_that_another_seed_turns_round_says_so() {
    let options = "rw=randread\nsize=384m\niodepth=4\nnumber_ios=2000";
    let mut turned = 0;
    for seed in 1..=4 {
        let mut config = config("tiny", &[]);
        config.seed = seed;
        let clear = seeded(&config, options, Goal::Within(0.9));
        assert!(clear.again.is_none() && !clear.text().contains("another seed"));
        let loss = clear.run(0).unwrap().longer_than(&clear.reference);
        let close = seeded(&config, options, Goal::Within(loss + 0.0005));
        assert_eq!(close.found, Found::Off);
        let text = close.text();
        let is_turned = text.contains("another seed says otherwise: without host memory");
        assert_eq!(
            text.starts_with("Enough with this seed: "),
            is_turned,
            "{text}"
        );
        assert!(
            is_turned || text.contains("another seed may say otherwise"),
            "{text}"
        );
        turned += usize::from(is_turned);
    }
    assert!((1..4).contains(&turned), "{turned}");
}

#[test]
fn sizes_that_were_not_simulated_are_no_proof() {
    let never = Goal::Slo(Slo::Percentile(99.0, 1_000));
    let options = "rw=randread\nsize=384m\niodepth=4\nnumber_ios=4000";
    let text = |name: &str| advice(&config(name, &[]), options, never).text();
    let tiny = text("tiny");
    assert!(
        tiny.contains("between those of the table were not simulated"),
        "{tiny}"
    );
    // The null: of an RC100's three sizes all are.
    let rc100 = text("rc100-480");
    assert!(!rc100.contains("were not simulated"), "{rc100}");
}

/// 16 MiB kept a promise on p99.9 that 17 and 19 broke, and nothing was said.
#[test]
fn the_sizes_right_above_a_promise_are_looked_at() {
    let options = "rw=randread\nsize=384m\niodepth=4\nnumber_ios=8000";
    let config = config("tiny", &[]);
    let above = |goal: Goal| {
        let advice = advice(&config, options, goal);
        let enough_bytes = advice.found.enough_bytes().unwrap();
        assert!((1..256 * KIB).contains(&enough_bytes), "{}", advice.text());
        let rows = advice.rows.iter().map(|row| row.0);
        rows.filter(|bytes| {
            (1..=2 * advice.place.step_bytes).contains(&bytes.wrapping_sub(enough_bytes))
        })
        .count()
    };
    let p50 = Goal::Slo(Slo::Percentile(50.0, 150_000));
    assert_eq!([above(p50), above(Goal::Within(0.1))], [2, 0]);
}

/// "More is not better here: ... with 16 MiB", of which a drive that needs 32 has nothing.
#[test]
fn an_amount_below_the_minimum_is_none() {
    let sets = [
        ("tier.hmb.preferred", "\"16MiB\""),
        ("tier.hmb.min", "\"16MiB\""),
        ("role.map.tiers", "[\"sram\"]"),
        ("role.write_buffer.tier", "\"hmb\""),
        ("role.write_buffer.size", "\"192KiB\""),
    ];
    let options = "rw=randwrite\nsize=500m\niodepth=4\nruntime=2\ntime_based";
    let advice = advice(&config("tiny", &sets), options, Goal::default());
    assert!(advice.run(8 * MIB).is_some());
    let text = advice.text();
    let note = text
        .lines()
        .find(|line| line.contains("more is not better here"));
    assert!(
        note.is_some_and(|note| note.contains(" without host memory, ")),
        "{text}"
    );
}
