//! What does it cost that the host's driver loads the map at boot?

use crate::common::{closed_loop, drive, latency, pages, settle};
use lodger_core::{DriveSpec, Host, Op, Precondition};

pub const GROUPS: u64 = 64;

/// A Galaxy S7 of 1 GiB: 64 groups of 16 MiB.
pub fn phone(sets: &[(&str, &str)]) -> DriveSpec {
    let small = [("capacity", "1GiB"), ("nand.pages_per_block", "96")];
    drive("galaxy-s7", &[&small, sets].concat())
}

pub fn host(sets: &[(&str, &str)]) -> Host {
    Host::new(&phone(sets), Precondition::Sequential, 0, 1)
}

const LOAD: (&str, &str) = ("hpb.boot", "load");

#[test]
fn a_load_takes_a_read_buffer_for_each_group_one_after_another() {
    let mut idle = host(&[LOAD]);
    settle(&mut idle);
    let counters = idle.counters();
    assert_eq!(counters.hpb.groups_fetched, GROUPS);
    assert_eq!(counters.completions, 0, "none of the host's own requests");
    let entries_bytes = GROUPS * 4096 * 4;
    assert!(counters.link_to_host_bytes > entries_bytes);
    // The translation pages of a preconditioned drive are in flash, four to a group.
    let map_reads = counters.reads_by_cause[1];
    assert_eq!(map_reads, 4 * GROUPS);
    // Not less than core and link take for it, and no more than with reads of the map one by one.
    let spec = idle.spec().clone();
    let core_ps = spec.hpb.as_ref().unwrap().read_buffer_ps + 4 * spec.controller.map_fill_ps;
    let link_ps = lodger_core::transport::wire_ps(&spec.link, 4096 * 4);
    let least_ps = GROUPS * (core_ps + link_ps);
    let read_ps = spec.nand.read_ps.iter().max().unwrap();
    let most_ps = least_ps + GROUPS * (4 * read_ps + 200_000_000);
    let took_ps = idle.now_ps();
    assert!((least_ps..most_ps).contains(&took_ps), "{took_ps}");
    // And then every entry is there.
    let used = counters.hpb.used;
    for group in (0..GROUPS).rev() {
        latency(&mut idle, pages(Op::Read, group * 4096 + 77, 1));
    }
    let counters = idle.counters();
    assert_eq!((counters.hpb.hits, counters.hpb.misses), (GROUPS, 0));
    assert!(counters.hpb.used > used);
    let warm = host(&[]);
    assert_eq!(warm.next_time(), None, "warm: nothing to be done");
}

#[test]
fn a_load_goes_on_beside_requests_and_slows_them_while_it_lasts() {
    let random = |host: &mut Host, count| {
        closed_loop(host, 8, count, |rng| {
            pages(Op::Read, u64::from(rng.below(GROUPS as u32 * 4096)), 1)
        })
    };
    let mut loading = host(&[LOAD]);
    let first = random(&mut loading, 400);
    let fetched = loading.counters().hpb.groups_fetched;
    assert!(
        fetched > 1 && fetched < GROUPS,
        "{fetched}: never idle, and yet"
    );
    random(&mut loading, 20_000);
    assert_eq!(loading.counters().hpb.groups_fetched, GROUPS);
    let then = random(&mut loading, 400);
    let mut warm = host(&[]);
    let never = random(&mut warm, 400);
    assert!(first > 1.2 * never, "{first} {never}");
    assert!(then < 1.05 * never, "{then} {never}");
}

#[test]
fn a_small_memory_is_loaded_as_far_as_it_goes_and_again_after_a_power_cut() {
    let mut small = host(&[LOAD, ("hpb.host_cache", "160KiB")]);
    settle(&mut small);
    assert_eq!(small.counters().hpb.groups_fetched, 10);
    assert_eq!(small.counters().hpb.evictions, 0);
    small.power_cut();
    settle(&mut small);
    assert_eq!(small.counters().hpb.groups_fetched, 20);
    latency(&mut small, pages(Op::Read, 9 * 4096, 1));
    assert_eq!(small.counters().hpb.hits, 1);
}

#[test]
fn jedecs_pinned_regions_are_fetched_from_the_start_on_only_if_loaded() {
    let jedec = [("hpb.protocol", "jedec"), ("hpb.pinned_regions", "5")];
    let mut loads = host(&[&jedec[..], &[LOAD]].concat());
    settle(&mut loads);
    assert_eq!(loads.counters().hpb.groups_fetched, 5);
    assert!(loads.now_ps() > 0);
    let mut waits = host(&jedec);
    settle(&mut waits);
    assert_eq!(
        (waits.counters().hpb.groups_fetched, waits.now_ps()),
        (0, 0)
    );
    latency(&mut waits, pages(Op::Read, 0, 1));
    settle(&mut waits);
    assert_eq!(waits.counters().hpb.groups_fetched, 5);
}
