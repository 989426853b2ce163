//! Does the curve say what the drive does?

use super::*;
use crate::advise::curve::Curve;
use crate::advise::stream::Method;
use proptest::prelude::*;

/// Differences between the curve and the drive's counters at these sizes, in points. The drive
/// works on one request at a time, so that none waits for another's page.
fn differences(config: &RunConfig, options: &str, grants: &[u64]) -> Vec<f64> {
    let method = Stream::method(&config.drive.parsed.spec);
    let direct = if method == Method::Direct {
        grants
    } else {
        &[]
    };
    let (learnt, place) = learnt(config, job(config, options), direct);
    let curve = Curve::new(learnt, &place, method, grants);
    let difference = |grant: &u64| {
        let run = run(config, job(config, options), *grant);
        (curve.hit_ratio(*grant) - run.lookups.hit_ratio().unwrap()) * 100.0
    };
    grants.iter().map(difference).collect()
}

const SIZES: [u64; 7] = [
    0,
    64 * KIB,
    96 * KIB,
    128 * KIB,
    256 * KIB,
    384 * KIB,
    512 * KIB,
];
const SKEWED: &str = "rw=randread\nrandom_distribution=zipf:1.1\nnumber_ios=20000";

#[test]
fn lru_is_within_a_point() {
    for difference in differences(&config("tiny", &[]), SKEWED, &SIZES) {
        assert!(difference.abs() < 1.0, "{difference}");
    }
}

#[test]
fn every_policy_is_what_the_drive_does() {
    for policy in ["fifo", "clock", "2q", "random", "arc", "s3-fifo"] {
        let quoted = format!("\"{policy}\"");
        // A read of what a data cache holds does not wait for its page, and the next may ask for that on its way: up to a point.
        let without_cache = ("role.read_cache.size", "\"0B\"");
        let policy_set = ("role.map.replacement", quoted.as_str());
        let config = config("tiny", &[policy_set, without_cache]);
        assert_eq!(Stream::method(&config.drive.parsed.spec), Method::Direct);
        for difference in differences(&config, SKEWED, &SIZES) {
            assert!(difference.abs() < 1e-9, "{policy}: {difference}");
        }
    }
}

#[test]
fn exclusive_memories_are_within_a_point() {
    let config = config("tiny", &[("role.map.exclusive", "true")]);
    for difference in differences(&config, SKEWED, &SIZES) {
        assert!(difference.abs() < 1.0, "{difference}");
    }
}

#[test]
fn writes_that_bring_pages_in_are_within_a_point() {
    // On a drive with larger caches than the tiny one: of changed pages that gave way, a few wait
    // to be written together, and are found there. To 8 units of cache that is a lot.
    let config = config("a80", &[("tier.hmb.min", "\"256KiB\"")]);
    let mixed = "rw=randrw\nrandom_distribution=zipf:0.9\nsize=16g\nnumber_ios=40000";
    let sizes = [MIB / 2, MIB, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB];
    for difference in differences(&config, mixed, &sizes) {
        assert!(difference.abs() < 1.0, "{difference}");
    }
}

#[test]
fn a_loop_of_one_page_more_than_fits_never_hits() {
    // 16 units in 64 KiB; one read in each of 17 or 16 translation pages, over and over.
    let config = config("tiny", &[("role.map.size.sram", "\"4KiB\"")]);
    let ratio = |pages: u64| {
        let step = 4 * MIB - 4 * KIB;
        let options = format!(
            "rw=read:{step}\nsize={}\nio_size=8m\nnumber_ios=2000",
            pages * 4 * MIB
        );
        let (learnt, place) = learnt(&config, job(&config, &options), &[]);
        Curve::new(learnt, &place, Method::StackDistances, &[]).hit_ratio(64 * KIB)
    };
    assert!(ratio(17) < 0.01, "{}", ratio(17));
    assert!(ratio(16) > 0.98, "{}", ratio(16));
}

#[test]
fn unwritten_pages_are_hits_without_host_memory() {
    let config = never_written(config("tiny", &[]));
    let (learnt, place) = learnt(&config, job(&config, SKEWED), &[]);
    assert_eq!(learnt.asked.absent, learnt.asked.lookups);
    let curve = Curve::new(learnt, &place, Method::StackDistances, &[]);
    assert_eq!((curve.hit_ratio(0), curve.useful_bytes), (1.0, 0));
}

proptest! {
    #![proptest_config(lodger_testing::config(24))]

    #[test]
    fn the_curve_rises_and_ends(
        skew in 0u32..15,
        reads in 0u32..=100,
        count in 1u32..3000,
    ) {
        let distribution = match skew {
            0 => "random".to_owned(),
            tenths => format!("zipf:{}.{}5", tenths / 10, tenths % 10),
        };
        let options = format!(
            "rw=randrw\nrwmixread={reads}\nrandom_distribution={distribution}\nnumber_ios={count}"
        );
        let config = config("tiny", &[]);
        let (learnt, place) = learnt(&config, job(&config, &options), &[]);
        let curve = Curve::new(learnt, &place, Method::StackDistances, &SIZES);
        let ratios: Vec<f64> = curve.points.iter().map(|p| p.hit_ratio).collect();
        prop_assert!(ratios.iter().all(|ratio| (0.0..=1.0).contains(ratio)));
        prop_assert!(ratios.windows(2).all(|pair| pair[0] <= pair[1]), "{ratios:?}");
        let all = curve.hit_ratio(curve.useful_bytes);
        prop_assert_eq!(all, curve.hit_ratio(place.largest_bytes()));
        prop_assert!(curve.knees.iter().all(|knee| *knee <= curve.useful_bytes));
    }
}
