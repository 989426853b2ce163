//! Is what makes a run's figures mean something else said, and only then?

mod jobs;

use lodger_core::Precondition;
use lodger_run::{Drive, RunConfig, run};

/// Warnings of a job of 4 KiB requests on a drive that was written at random.
fn warnings(drive: &str, sets: &[(&str, &str)], options: &str) -> Vec<String> {
    let mut config = RunConfig::new(Drive::open(drive, sets).expect("a drive"));
    config.precondition = Precondition::Random;
    let text = format!("[job]\nbs=4k\nnorandommap\n{options}\n");
    let workload = jobs::parse(&text, &config);
    run(&config, workload, &mut ()).expect("a run").warnings
}

fn tells(warnings: &[String], of: &str) -> bool {
    warnings.iter().any(|warning| warning.contains(of))
}

#[test]
fn writes_into_the_room_at_first_are_no_steady_state_even_when_more_came_after_them() {
    let into_room = |count: u32, ramp: &str| {
        let options = format!("rw=randwrite\niodepth=8\nnumber_ios={count}\n{ramp}");
        tells(
            &warnings("tiny", &[], &options),
            "leaves empty, before anything had to be collected",
        )
    };
    // `tiny` has room for some 12 MB before it collects.
    for count in [500, 4000, 20_000] {
        assert!(into_room(count, ""), "{count}");
    }
    // The nulls: what was written later outweighs it, or is all that counts.
    assert!(!into_room(120_000, ""));
    assert!(!into_room(40_000, "ramp_time=2"));
}

#[test]
fn a_steady_state_behind_a_single_bit_cache_is_one() {
    let sets = [("ftl.slc_superblocks", "4"), ("capacity", "\"480MiB\"")];
    let into_cache = |options: &str| {
        let options = format!("rw=randwrite\niodepth=8\n{options}");
        tells(&warnings("tiny", &sets, &options), "the single-bit cache")
    };
    assert!(into_cache("number_ios=300"));
    assert!(!into_cache("number_ios=60000\nramp_time=3"));
}

#[test]
fn what_answers_beside_the_map_cache_is_told_where_it_is_much() {
    let told = |map_bytes: &str, reads: u32| {
        let sets = [
            ("tier.sram.size", "\"2MiB\""),
            ("role.map.size.sram", map_bytes),
            ("role.map.tiers", "[\"sram\"]"),
        ];
        let options = format!("rw=randrw\nrwmixread={reads}\niodepth=32\nnumber_ios=20000");
        tells(
            &warnings("tiny", &sets, &options),
            "beside what `role.map.size` says",
        )
    };
    // So many writes that programs of the map fall behind.
    assert!(told("\"32KiB\"", 50));
    // The nulls: few change, and the quarter of it that may wait is no second cache; or all of the map is held.
    assert!(!told("\"32KiB\"", 99));
    assert!(!told("\"512KiB\"", 50));
}

#[test]
fn a_percentage_of_spare_is_not_a_share() {
    let told = |share: &str| {
        let sets = [("ftl.overprovisioning", share)];
        tells(
            &warnings("tiny", &sets, "rw=read\nnumber_ios=10"),
            "% of the capacity to spare",
        )
    };
    assert!(told("7"));
    assert!(!told("0.4"));
}

#[test]
fn host_memory_that_no_role_lies_in_is_named() {
    let told = |tiers: &str| {
        let sets = [("role.map.tiers", tiers)];
        tells(
            &warnings("tiny", &sets, "number_ios=10"),
            "keeps nothing there",
        )
    };
    assert!(told("[\"sram\"]"));
    // The null: what it takes is of use.
    assert!(!told("[\"sram\", \"hmb\"]"));
}
