//! Does the prober find, from outside, what the drive files say is inside? The drives of the study and
//! others of the collection, blind: the prober gets commands and latencies, nothing else.

use lodger::probe_target::{Noise, SimTarget};
use lodger_probe::{Options, Outcome, Tier, probe};
use lodger_run::{Drive, RunConfig};
use std::time::Duration;

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;

/// What tells which role lives where.
const ROLES: [&str; 5] = [
    "map-cache",
    "read-cache",
    "parallelism",
    "flush",
    "write-buffer",
];

fn probed(drive: &str, experiments: &[&str], may_write: bool) -> Outcome {
    probed_with(drive, experiments, may_write, 7)
}

fn probed_with(drive: &str, experiments: &[&str], may_write: bool, seed: u64) -> Outcome {
    probed_by(drive, experiments, may_write, (seed, seed + 4))
}

/// Noise of the target by one seed, what the prober draws by another.
fn probed_by(
    drive: &str,
    experiments: &[&str],
    may_write: bool,
    (noise_seed, seed): (u64, u64),
) -> Outcome {
    let drive = Drive::open(drive, &[]).expect("a drive of the collection");
    let mut target =
        SimTarget::open(&RunConfig::new(drive), Noise::default(), noise_seed).expect("it opens");
    let options = Options {
        experiments: experiments.iter().map(|name| (*name).to_owned()).collect(),
        budget: Duration::from_secs(1 << 20),
        may_write,
        seed,
        confidence: 0.95,
    };
    probe(&mut target, &options, &mut |_| true)
}

/// Drives whose write buffer is looked for by several seeds.
const SEVERAL_SEEDS: [&str; 3] = ["a80", "ex900", "m730"];

/// Tier and size (bytes, if the drive's shows) of each role.
type Planted = (Tier, Option<f64>);

fn check(drive: &str, map: Planted, read_cache: Planted, write_buffer: Planted) {
    let outcome = probed(drive, &ROLES, true);
    assert!(!outcome.partial, "{drive}: {:?}", outcome.skipped);
    let planted = [
        ("map", map),
        ("read_cache", read_cache),
        ("write_buffer", write_buffer),
    ];
    for (role, (tier, bytes)) in planted {
        let verdict = &outcome.roles[role];
        assert_eq!(verdict.tier, tier, "{drive} {role}: {}", verdict.evidence);
        let Some(bytes) = bytes else {
            continue;
        };
        let found = verdict.size_bytes;
        // One seed may show none; how many do is counted below.
        if role == "write_buffer" && SEVERAL_SEEDS.contains(&drive) && found.is_none() {
            continue;
        }
        let found =
            found.unwrap_or_else(|| panic!("{drive} {role}: no size: {}", verdict.evidence));
        let error = found.estimate / bytes - 1.0;
        assert!(error.abs() < 0.05, "{drive} {role}: {found:?} for {bytes}");
        assert!(
            found.low <= bytes && bytes <= found.high,
            "{drive} {role}: {found:?} does not cover {bytes}"
        );
    }
}

#[test]
fn drive_a_of_the_study() {
    check(
        "a80",
        (Tier::Hmb, Some(128.0 * MIB)),
        (Tier::Device, Some(32.0 * KIB)),
        (Tier::Device, Some(964.0 * KIB)),
    );
}

#[test]
fn drive_b_of_the_study() {
    check(
        "ex900",
        (Tier::Hmb, Some(64.0 * MIB)),
        (Tier::Device, Some(768.0 * KIB)),
        (Tier::Device, Some(2.0 * MIB)),
    );
}

#[test]
fn drive_c_of_the_study() {
    check(
        "m730",
        (Tier::Hmb, Some(128.0 * MIB)),
        (Tier::Device, Some(512.0 * KIB)),
        (Tier::Device, Some(2.0 * MIB)),
    );
}

/// Looks for the size of the write buffer by each of some seeds, as `lodger probe --experiment write-buffer --seed N`
/// does. Nothing that is said may be false: an interval covers the size, and of "more than" it is more; and so many
/// seeds find a size.
fn told_by_most(drive: &str, bytes: f64, seeds: std::ops::RangeInclusive<u64>, least: usize) {
    let mut sized = 0;
    for seed in seeds {
        let outcome = probed_by(drive, &["write-buffer"], true, (seed, seed));
        let verdict = &outcome.roles["write_buffer"];
        let Some(found) = verdict.size_bytes else {
            continue;
        };
        let of = format!("{drive}, seed {seed}: {found:?} for {bytes}");
        assert!(found.low <= bytes && bytes <= found.high, "{of}");
        if found.high.is_finite() {
            assert!((found.estimate / bytes - 1.0).abs() < 0.05, "{of}");
            sized += 1;
        } else {
            assert!(found.estimate <= bytes, "{of}");
        }
    }
    assert!(sized >= least, "{drive}: {sized} sizes, not {least}");
}

/// Fails where the times of long bursts are compared more finely than such bursts lie apart: seed 5 said "more than 4.74 MiB".
/// Its flash in single-bit mode takes what the link brings, and does not run out any more where a stretch smaller than that is
/// written over and over, since its last pages are folded, too: a size need not show. Seven of these nine found one while
/// it ran out.
#[test]
fn the_write_buffer_of_drive_a_is_told_falsely_by_no_seed() {
    told_by_most("a80", 964.0 * KIB, 4..=12, 0);
}

/// Fails where a bound with host memory on hides a size that was found with it off, or the reverse: seeds 8 and 12 gave a
/// bound then.
#[test]
fn the_write_buffer_of_drive_b_is_told_by_all_seeds() {
    told_by_most("ex900", 2.0 * MIB, 1..=12, 12);
}

/// Fails where bursts stay as long as they were when single-bit flash ran out: seed 8 had no size then.
#[test]
fn the_write_buffer_of_drive_c_is_told_by_most_seeds_and_falsely_by_none() {
    told_by_most("m730", 2.0 * MIB, 7..=8, 2);
}

/// It uses 32 of the 38 MiB it is given. Its flash in single-bit mode takes what two lanes bring, so
/// the 1.5 MiB of the RC100's write buffer do not show.
#[test]
fn a_drive_that_rounds_its_host_memory_down() {
    check(
        "rc100-480",
        (Tier::Hmb, Some(32.0 * MIB)),
        (Tier::None, None),
        (Tier::Device, None),
    );
    check(
        "bg4",
        (Tier::Hmb, Some(32.0 * MIB)),
        (Tier::None, None),
        (Tier::Device, Some(3.0 * MIB)),
    );
}

#[test]
fn a_drive_with_the_whole_map_in_its_own_memory() {
    check(
        "970-pro",
        (Tier::Device, Some(512_110_190_592.0 / 1024.0)),
        (Tier::None, None),
        (Tier::Device, Some(16.0 * MIB)),
    );
}

/// The tier of a buffer of 64 MiB shows in bursts that a host holds up now and then.
#[test]
fn a_write_buffer_in_host_memory_is_seen_whatever_the_noise_does() {
    for seed in 2..=3 {
        let outcome = probed_with("hong-hmb-buffer", &["write-buffer"], true, seed);
        let verdict = &outcome.roles["write_buffer"];
        assert_eq!(verdict.tier, Tier::Hmb, "seed {seed}: {}", verdict.evidence);
        let size = verdict.size_bytes.expect("a size").estimate;
        assert!(
            (size / (64.0 * MIB) - 1.0).abs() < 0.05,
            "seed {seed}: {size}"
        );
    }
}

#[test]
fn nothing_is_written_without_consent() {
    let outcome = probed(
        "rc100-480",
        &["queue-depth", "flush", "write-buffer", "write-cliff"],
        false,
    );
    assert_eq!(outcome.usage.writes, 0);
    let skipped: Vec<&str> = outcome.skipped.iter().map(|s| s.experiment).collect();
    assert_eq!(skipped, ["flush", "write-buffer", "write-cliff"]);
    assert!(
        outcome
            .skipped
            .iter()
            .all(|s| s.reason.contains("--destroy-data"))
    );
}

fn with_budget(drive: &str, seconds: f64) -> Outcome {
    let drive = Drive::open(drive, &[]).unwrap();
    let mut target = SimTarget::open(&RunConfig::new(drive), Noise::default(), 1).unwrap();
    let options = Options {
        experiments: Vec::new(),
        budget: Duration::from_secs_f64(seconds),
        may_write: true,
        seed: 0,
        confidence: 0.95,
    };
    probe(&mut target, &options, &mut |_| true)
}

#[test]
fn a_budget_of_seconds_gives_the_cheap_verdicts_and_names_the_rest() {
    let outcome = with_budget("rc100-480", 8.0);
    assert!(outcome.partial);
    assert!(outcome.elapsed <= Duration::from_secs(8));
    let done: Vec<&str> = outcome.spent.keys().copied().collect();
    for cheap in ["queue-depth", "read-ahead", "read-cache"] {
        assert!(done.contains(&cheap), "{cheap}: {:?}", outcome.skipped);
    }
    assert!(outcome.roles.contains_key("read_cache"));
    let map = outcome.skipped.iter().find(|s| s.experiment == "map-cache");
    let reason = &map.expect("too long for this budget").reason;
    assert!(reason.contains("it takes about 55 s"), "{reason}");
    let json = lodger_probe::report::json(&outcome, false);
    assert_eq!(json["partial"], true);
    assert_eq!(json["experiments"][0]["experiment"], "map-cache");
    assert_eq!(json["experiments"][0]["seconds"], serde_json::Value::Null);
}

#[test]
fn what_verdicts_rest_on_gets_the_budget_first() {
    // Enough for all that a write buffer is told by, and little else.
    let outcome = with_budget("970-pro", 60.0);
    let done: Vec<&str> = outcome.spent.keys().copied().collect();
    for deciding in ["parallelism", "flush", "write-buffer"] {
        assert!(done.contains(&deciding), "{:?}", outcome.skipped);
    }
    let kept = outcome
        .skipped
        .iter()
        .any(|s| s.reason.contains("kept for"));
    assert!(kept, "{:?}", outcome.skipped);
}
