//! Drives at the limits of size: what is done once for a whole drive must not go through it in a way
//! that takes minutes or gigabytes.

use crate::common::{drive, latency, pages};
use lodger_core::Host;
use lodger_core::device::Source;
use lodger_core::ids::Lpn;
use lodger_core::{Op, Precondition, Request};
use std::time::{Duration, Instant};

/// On any machine that runs the tests; what was quadratic, or went page by page, took minutes.
const SOON: Duration = Duration::from_secs(20);

fn whole_drive(capacity_bytes: u64) -> Request {
    Request {
        length_bytes: capacity_bytes,
        ..pages(Op::Trim, 0, 1)
    }
}

#[test]
fn many_small_superblocks_are_preconditioned_and_opened_soon() {
    let sets = [
        ("capacity", "32GiB"),
        ("nand.pages_per_block", "12"),
        ("nand.page_size", "4KiB"),
        ("nand.planes", "1"),
        ("nand.channels", "1"),
        ("nand.dies_per_channel", "1"),
        ("ftl.slc_superblocks", "0"),
        ("ftl.overprovisioning", "0.15"),
    ];
    let spec = drive("tiny", &sets);
    let start = Instant::now();
    let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
    assert!(host.drive.geometry().superblocks > 700_000);
    latency(&mut host, pages(Op::Read, 1_000_000, 1));
    let mut host = Host::new(&spec, Precondition::None, 0, 1);
    for at in 0..2_000 {
        latency(&mut host, pages(Op::Write, at * 24, 24));
    }
    let took = start.elapsed();
    assert!(took < SOON, "{took:?}");
}

#[test]
fn a_trim_of_eight_tebibytes_takes_no_more_time_than_its_map_pages() {
    let spec = drive(
        "tiny",
        &[("capacity", "8TiB"), ("ftl.overprovisioning", "0.1")],
    );
    let ends = [0, 1 << 20, (1 << 31) - 1];
    for precondition in [
        Precondition::None,
        Precondition::Sequential,
        Precondition::Random,
    ] {
        let start = Instant::now();
        let mut host = Host::new(&spec, precondition, 0, 1);
        latency(&mut host, pages(Op::Write, 4_000_000, 8));
        latency(&mut host, whole_drive(spec.capacity_bytes));
        for lpn in ends {
            assert_eq!(host.drive.source(Lpn(lpn)), Source::Unwritten);
        }
        let valid: u64 = host
            .drive
            .ftl()
            .blocks
            .all()
            .iter()
            .map(|b| u64::from(b.valid))
            .sum();
        // The page of the map that was just written to stays.
        assert!(valid <= 1, "{precondition:?}: {valid} pages are left");
        let took = start.elapsed();
        assert!(took < SOON, "{precondition:?}: {took:?}");
        println!("{precondition:?}: {took:?}");
    }
}

/// 134 million groups: drive and driver once kept something of each, 5 to 10 GB.
#[test]
fn map_entries_kept_by_the_host_of_eight_tebibytes_take_no_more_memory_than_what_is_touched() {
    let small = [
        ("capacity", "8TiB"),
        ("hpb.enabled", "true"),
        ("hpb.group", "64KiB"),
    ];
    let jedec = [("hpb.protocol", "jedec"), ("hpb.region", "64KiB")];
    let by_host = [&jedec[..], &[("hpb.control", "host")]].concat();
    let boot = [("hpb.boot", "load")];
    for sets in [&[], &boot[..], &jedec[..], &by_host] {
        let start = Instant::now();
        let spec = drive("galaxy-s7", &[&small, sets].concat());
        let mut host = Host::new(&spec, Precondition::Random, 0, 1);
        let page = |at: u64| at * 7_919 % (spec.capacity_bytes / 4096 - 4);
        for round in 0..3 {
            for at in 0..300 {
                let op = [Op::Read, Op::Write][at as usize % 2];
                latency(&mut host, pages(op, page(at * 7_000_003), 4));
                latency(&mut host, pages(Op::Read, page(at), 1));
            }
            match round {
                0 => _ = host.power_cut(),
                _ => [false, true]
                    .into_iter()
                    .for_each(|on| host.set_hpb_enabled(on)),
            }
        }
        let state = postcard::to_stdvec(&host).expect("a drive can be saved");
        let (took, mib) = (start.elapsed(), state.len() >> 20);
        println!("{sets:?}: {took:?}, {mib} MiB saved");
        assert!(took < SOON && mib < 32, "{sets:?}: {took:?}, {mib} MiB");
    }
}

#[test]
fn superblocks_too_many_or_too_short_are_refused() {
    let text = crate::common::drives::text("tiny").expect("it is there");
    let refused = |sets: &[(&str, &str)], wanted: &str| {
        let parsed = lodger_core::spec::parse(&text, "tiny", sets, &|_: &str| None);
        let message = parsed.expect_err("is refused").to_string();
        assert!(message.contains(wanted), "{message}");
    };
    let short = [
        ("nand.pages_per_block", "3"),
        ("nand.channels", "1"),
        ("nand.dies_per_channel", "3"),
    ];
    refused(
        &short,
        "`nand.pages_per_block` must make superblocks of at least 4 program operations of 96KiB \
         (here 3)",
    );
    refused(
        &[("nand.pages_per_block", "3")],
        "`nand.pages_per_block` must be at least 6 for tlc cells: with one word line to a block each power \
         cut costs a superblock, found `3`",
    );
    let many = [("capacity", "8TiB"), ("nand.pages_per_block", "6")];
    refused(
        &many,
        "`capacity` must not need more than 1048576 superblocks",
    );
}

#[test]
fn a_spare_that_garbage_collection_cannot_win_back_is_refused() {
    // With these a drive moved data for ever and answered nothing, or stood still.
    let text = crate::common::drives::text("tiny").expect("it is there");
    let short = [
        ("nand.pages_per_block", "9"),
        ("nand.page_size", "4KiB"),
        ("ftl.slc_superblocks", "0"),
    ];
    for (spare, is_enough) in [
        ("0.02", false),
        ("0.03", false),
        ("0.043", false),
        ("0.0435", true),
    ] {
        let sets = [&short[..], &[("ftl.overprovisioning", spare)]].concat();
        let parsed = lodger_core::spec::parse(&text, "tiny", &sets, &|_: &str| None);
        match parsed {
            Ok(_) => assert!(is_enough, "{spare}"),
            Err(error) => {
                assert!(!is_enough, "{error}");
                let wanted = "`ftl.overprovisioning` must be at least 0.0435 with superblocks of 288KiB and \
                              program operations of 24KiB";
                assert!(error.to_string().contains(wanted), "{error}");
            }
        }
    }
}
