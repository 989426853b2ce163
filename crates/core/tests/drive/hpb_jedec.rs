//! What has a drive recommend a sub-region by JEDEC's protocol? Map misses, as many as `hpb.recommend_misses` says.

use crate::common::drives::{drive, text};
use crate::common::{closed_loop, latency, pages};
use crate::hpb_boot::{GROUPS, host};
use lodger_core::rng::Rng;
use lodger_core::spec::parse;
use lodger_core::{Host, Op, Precondition, Request};

const JEDEC: (&str, &str) = ("hpb.protocol", "jedec");

fn at_random(op: Op) -> impl Fn(&mut Rng) -> Request {
    move |rng| pages(op, u64::from(rng.below(GROUPS as u32 * 4096)), 1)
}

fn fetched(sets: &[(&str, &str)], op: Op) -> (u64, Host) {
    let mut host = host(&[&[JEDEC], sets].concat());
    closed_loop(&mut host, 8, 20_000, at_random(op));
    (host.counters().hpb.groups_fetched, host)
}

#[test]
fn writes_and_trims_alone_have_nothing_recommended() {
    for control in ["device", "host"] {
        let control = ("hpb.control", control);
        for op in [Op::Write, Op::Trim] {
            assert_eq!(fetched(&[control], op).0, 0, "{control:?} {op:?}");
        }
        // The null: reads, which miss the map.
        assert!(fetched(&[control], Op::Read).0 >= GROUPS, "{control:?}");
    }
}

#[test]
fn what_writes_have_made_useless_is_recommended_again_once_reads_miss_the_map() {
    let (before, mut host) = fetched(&[], Op::Read);
    closed_loop(&mut host, 8, 20_000, at_random(Op::Write));
    let written = host.counters().hpb.groups_fetched;
    assert_eq!(written, before);
    closed_loop(&mut host, 8, 20_000, at_random(Op::Read));
    assert!(host.counters().hpb.groups_fetched > written);
}

#[test]
fn as_many_misses_as_the_drive_file_says_have_a_sub_region_recommended() {
    let never = ("hpb.recommend_misses", "65535");
    assert_eq!(fetched(&[never], Op::Read).0, 0);
    let rarely = ("hpb.recommend_misses", "200");
    let (some, _) = fetched(&[rarely], Op::Read);
    let (many, _) = fetched(&[], Op::Read);
    assert!(some > 0 && some < many, "{some} {many}");
}

/// More were taken, and only as many as there was room for were kept.
#[test]
fn regions_that_are_always_kept_must_have_room() {
    let error = |pinned: &str| {
        // Of 1 GiB there are 64 regions of a group; 160 KiB are the entries of 5.
        let sets = [
            ("capacity", "1GiB"),
            ("nand.pages_per_block", "96"),
            JEDEC,
            ("hpb.host_cache", "160KiB"),
            ("hpb.pinned_regions", pinned),
        ];
        let text = text("galaxy-s7").unwrap();
        parse(&text, "phone.toml", &sets, &|_: &str| None)
            .err()
            .map(|error| error.to_string())
    };
    assert_eq!(error("5"), None);
    assert_eq!(
        error("6").unwrap(),
        "`hpb.pinned_regions` must be at most the 5 regions whose entries `hpb.host_cache` (160KiB) holds, found `6` (--set)"
    );
    assert_eq!(
        error("65").unwrap(),
        "`hpb.pinned_regions` must be at most the 64 regions of the drive, found `65` (--set)"
    );
}

/// All READ BUFFERs of a boot were sent at once, and the first reads waited behind them: 57 us for each region that is always kept.
#[test]
fn reads_beside_the_load_of_regions_that_are_always_kept_wait_for_a_queue_at_most() {
    let longest_ps = |pinned: &str, control: &str| {
        let sets = [
            JEDEC,
            ("hpb.host_cache", "256MiB"),
            ("hpb.pinned_regions", pinned),
            ("hpb.control", control),
        ];
        let mut host = Host::new(&drive("ufs21-64", &sets), Precondition::Sequential, 0, 1);
        let mut rng = Rng::new(1);
        let read = |_| {
            let page = u64::from(rng.below(1 << 20));
            latency(&mut host, pages(Op::Read, page, 1))
        };
        (0..1000).map(read).max().expect("there are some")
    };
    for control in ["device", "host"] {
        let [few, many] = ["33", "600"].map(|pinned| longest_ps(pinned, control));
        println!("{control}: {few} ps beside 33 regions, {many} beside 600");
        assert!(many < few + few / 4, "{control}");
    }
}
