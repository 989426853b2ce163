//! Is the advice about all of the load, and about the load as it goes on?

use super::*;
use crate::advise::search::Found;

fn advice_on(config: &RunConfig, text: &str) -> Advice {
    let make = |_| Ok(jobs(config, text));
    let goal = Goal::Within(0.05);
    advise(config, &make, goal, &|_, _| ControlFlow::Continue(())).unwrap()
}

/// Writes all over an RC100 480 in bursts, which take 17 % longer without host memory.
const BURSTS: &str = "[global]\nbs=4k\nioengine=libaio\nnorandommap\n[w]\nrw=randwrite\noffset=1g\nsize=16g\niodepth=64\nrate_iops=62000\nrate_process=poisson\nnumber_ios=60000\nio_submit_mode=offload\n";

/// As soon as one request read, reads alone decided: of 60,000 writes that took many times as long without host memory, the advice was that none
/// is needed.
#[test]
fn few_reads_do_not_hide_what_happens_to_writes() {
    let config = never_written(config("rc100-480", &[]));
    let writes = advice_on(&config, BURSTS);
    let Found::Size { enough_bytes, .. } = writes.found else {
        panic!("{}", writes.text());
    };
    for reads in ["number_ios=1", "rate_iops=500\nnumber_ios=400"] {
        let read = format!("{BURSTS}[r]\nrw=randread\nsize=16m\n{reads}\n");
        let advice = advice_on(&config, &read);
        assert_eq!(
            advice.found.enough_bytes(),
            Some(enough_bytes),
            "{}",
            advice.text()
        );
        let text = advice.text();
        assert!(text.contains("of all requests"), "{text}");
        assert!(text.contains("mean of all"), "{text}");
        assert!(!text.contains("buys nothing"), "{text}");
    }
}

/// Where both lose nothing, nothing of it is shown.
#[test]
fn a_load_whose_reads_decide_shows_reads() {
    let mixed = "rw=randrw\nrwmixread=70\nsize=384m\niodepth=4\nnumber_ios=8000";
    let advice = advice(&config("tiny", &[]), mixed, Goal::Within(0.05));
    assert!(!advice.text().contains("mean of all"), "{}", advice.text());
}

/// What is written into a single-bit cache that is empty at first tells nothing of what comes after it: 16 MiB were enough of 60,000 writes, and 32
/// of 2 million.
#[test]
fn writes_that_fit_in_an_empty_cache_are_a_short_run() {
    let of = |precondition| {
        let config = RunConfig {
            precondition,
            ..config("rc100-480", &[])
        };
        let text = "[w]\nrw=randwrite\nbs=4k\nsize=20g\niodepth=8\nioengine=libaio\nnorandommap\nnumber_ios=30000\n";
        advice_on(&config, text).text()
    };
    let text = of(Precondition::Sequential);
    assert!(text.starts_with("Enough for so short a run"), "{text}");
    assert!(text.contains("went into the single-bit cache"), "{text}");
    // An empty drive is what was asked for.
    let text = of(Precondition::None);
    assert!(!text.contains("went into the single-bit cache"), "{text}");
}

/// A job that asks for the same parts of the map again and again hid that another asked for each of its own but once.
#[test]
fn a_job_that_is_warm_does_not_hide_one_that_is_cold() {
    let text = |cold: u32| {
        format!(
            "[global]\nbs=4k\nioengine=libaio\nnorandommap\n[hot]\nrw=randread\nsize=64m\niodepth=4\nnumber_ios=20000\n\
             [cold]\nrw=randread\noffset=128m\nsize=256m\nnumber_ios={cold}\n"
        )
    };
    let config = config("tiny", &[("role.map.size.sram", "16KiB")]);
    let short = advice_on(&config, &text(200)).text();
    assert!(short.starts_with("Enough for so short a run"), "{short}");
    assert!(short.contains("that job `cold` alone asks for"), "{short}");
    let long = advice_on(&config, &text(3000)).text();
    assert!(!long.contains("cold starts"), "{long}");
}
