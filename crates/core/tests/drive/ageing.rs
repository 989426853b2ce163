//! Does flash that ages do what the drive file says: reads are tried again, decoded from soft reads, lost; programs and
//! erases fail and blocks are replaced; data is written anew in time; and the drive comes to its end?

use crate::common::contents::Tags;
use crate::common::drives::text;
use crate::common::{closed_loop, drive, latency, pages, settle};
use lodger_core::device::Contents;
use lodger_core::rng::Rng;
use lodger_core::time::transfer_ps;
use lodger_core::{Completion, DriveSpec, Host, Op, Precondition, Status};

/// Tiny, without what blurs a single read: one time for all page types, no caches, the map at hand.
fn spec(sets: &[(&str, &str)]) -> DriveSpec {
    let plain = [
        ("nand.read", "60us"),
        ("role.read_cache.size", "0B"),
        ("role.map.tiers", "[\"sram\"]"),
        ("role.map.size.sram", "512KiB"),
        ("ftl.map_slc", "true"),
        ("ftl.slc_superblocks", "0"),
    ];
    drive("tiny", &[&plain, sets].concat())
}

/// Flash that has the errors of `base`, and a decoder that corrects a hundredth.
fn with_errors<'a>(base: &'a str, more: &[(&'a str, &'a str)]) -> DriveSpec {
    let ages = [
        ("nand.ageing.endurance", "3000"),
        ("nand.ageing.errors.base", base),
        ("nand.ageing.correctable", "0.01"),
        ("nand.ageing.decode", "4us"),
        ("nand.ageing.retries", "3"),
        ("nand.ageing.retry_gain", "0.5"),
    ];
    spec(&[&ages, more].concat())
}

/// What a read of 4 KiB takes whose map entry is at hand, and the host.
fn read(spec: &DriveSpec) -> (u64, Host<Tags>) {
    let seed = 1;
    let mut host = Host::with_contents(spec, Precondition::Sequential, 0, seed, Tags::default());
    latency(&mut host, pages(Op::Read, 0, 1));
    settle(&mut host);
    let read_ps = latency(&mut host, pages(Op::Read, 40, 1));
    settle(&mut host);
    (read_ps, host)
}

/// One more array read and what follows it.
fn try_ps(spec: &DriveSpec, array_reads: u64) -> u64 {
    let nand = &spec.nand;
    let slot_ps = transfer_ps(u64::from(nand.codeword_bytes), nand.channel_bytes_per_s);
    nand.command_ps + array_reads * nand.read_ps[0] + slot_ps + nand.ecc_ps
}

const DECODE_PS: u64 = 4_000_000;

#[test]
fn a_read_is_tried_until_the_decoder_corrects_it_and_takes_the_sum_of_its_tries() {
    let (plain_ps, _) = read(&spec(&[]));
    let takes = |base: &str, more: &[(&str, &str)], tries_ps: u64| {
        let (read_ps, host) = read(&with_errors(base, more));
        // Rates are whole numbers, rounded down.
        let off_ps = read_ps.abs_diff(plain_ps + tries_ps);
        assert!(off_ps <= 1, "{base} {more:?}: {off_ps}");
        host.counters().ageing
    };
    // Decoding takes longer where there is more to correct.
    assert_eq!(takes("0.0025", &[], DECODE_PS / 4).retries, 0);
    let one = try_ps(&spec(&[]), 1);
    // 0.016 is 0.008 after a retry; 0.07 takes three.
    assert_eq!(takes("0.016", &[], one + 2 * DECODE_PS).retries, 2);
    assert_eq!(takes("0.07", &[], 3 * one + 4 * DECODE_PS).retries, 6);
    // 0.16 is 0.02 after three: soft decoding does it, from five reads.
    let soft = [
        ("nand.ageing.soft_reads", "5"),
        ("nand.ageing.soft_correctable", "0.03"),
        ("nand.ageing.soft_decode", "90us"),
    ];
    let five = try_ps(&spec(&[]), 5);
    let tries_ps = 3 * one + 4 * DECODE_PS + five + 90_000_000;
    let counted = takes("0.16", &soft, tries_ps);
    assert_eq!((counted.retries, counted.soft_reads), (8, 2));
    assert_eq!(counted.uncorrectable, 0);
}

fn ask<C: Contents>(host: &mut Host<C>, op: Op, lpn: u64, count: u64) -> Status {
    host.submit(pages(op, lpn, count));
    let done: Vec<Completion> = settle(host);
    assert_eq!(done.len(), 1);
    done[0].status
}

#[test]
fn what_cannot_be_decoded_is_an_error_of_the_command_until_it_is_written_again() {
    let (_, mut host) = read(&with_errors("0.16", &[]));
    assert_eq!(host.counters().ageing.uncorrectable, 2);
    assert_eq!(ask(&mut host, Op::Read, 40, 1), Status::MediaError);
    host.drive.contents.seen.clear();
    // Marked: neither a part nor its neighbours that come with it are handed out.
    assert_eq!(ask(&mut host, Op::Read, 40, 4), Status::MediaError);
    assert!(
        host.drive
            .contents
            .seen
            .iter()
            .all(|&(_, lpn, ..)| lpn != 40)
    );
    assert_eq!(ask(&mut host, Op::Write, 40, 1), Status::Success);
    assert_eq!(ask(&mut host, Op::Read, 40, 1), Status::Success);
    assert_eq!(ask(&mut host, Op::Trim, 40, 1), Status::Success);
    assert_eq!(ask(&mut host, Op::Read, 40, 1), Status::Success);
}

/// So many writes at random, 32 KiB each; returns how many were refused.
fn write_at_random(host: &mut Host<Tags>, seed: u64, writes: u32) -> u32 {
    let mut rng = Rng::new(seed);
    let slots = host.drive.ftl().user_slots() - 8;
    let mut done: Vec<Completion> = Vec::new();
    let mut refused = 0;
    let mut count = |done: &mut Vec<Completion>| {
        for done in done.drain(..) {
            let known = [Status::Success, Status::ReadOnly];
            assert!(known.contains(&done.status));
            refused += u32::from(done.status == Status::ReadOnly);
        }
    };
    for tag in 0..writes {
        let mut request = pages(Op::Write, u64::from(rng.below(slots)), 8);
        request.tag = tag + 1;
        host.submit(request);
        while host.in_flight() > 16 {
            host.advance_to_completion(u64::MAX, &mut done);
        }
        count(&mut done);
    }
    count(&mut settle(host));
    refused
}

fn failing(share: &'static str, spares: &'static str) -> DriveSpec {
    spec(&[
        ("capacity", "64MiB"),
        ("nand.pages_per_block", "12"),
        ("ftl.overprovisioning", "0.5"),
        ("nand.ageing.endurance", "20"),
        ("nand.ageing.spare_blocks", spares),
        ("nand.ageing.program_failures", share),
        ("nand.ageing.erase_failures", share),
    ])
}

#[test]
fn blocks_that_fail_are_replaced_as_long_as_there_are_spare_ones() {
    let spec = failing("0.05", "200");
    let mut host = Host::with_contents(&spec, Precondition::Random, 0, 1, Tags::default());
    let before = host.drive.flash_age().expect("it ages").spare_blocks;
    assert_eq!(write_at_random(&mut host, 1, 60_000), 0);
    let (counted, wear) = (
        host.counters().ageing,
        host.drive.flash_age().expect("it ages"),
    );
    println!("{counted:?} {wear:?}");
    assert!(counted.program_failures > 20 && counted.erase_failures > 20);
    assert_eq!(counted.retired_superblocks, 0);
    // What is left out of a block that has failed was counted as programmed there.
    let modes: u64 = (host.drive.wear().iter().map(|mode| mode.programmed_slots)).sum();
    let counters = host.counters();
    let causes: u64 = counters.programmed_slots_by_cause.iter().sum();
    assert_eq!(modes, causes + counters.padded_slots);
    assert_eq!(
        u64::from(before - wear.spare_blocks),
        counted.replaced_blocks
    );
    host.drive.ftl().check();
    // What has failed is what the hazard comes to over the erases of each block: a cube of what was used of the rated
    // endurance.
    let hazards = |erases: u32| {
        (1..=erases)
            .map(|c| 3.0 * f64::from(c).powi(2))
            .sum::<f64>()
    };
    let blocks = host.drive.ftl().blocks.all().iter();
    let erased: f64 = blocks.map(|block| hazards(block.erases)).sum();
    let expected = 0.05 * erased / 20f64.powi(3) * f64::from(host.drive.geometry().dies);
    let failed = counted.erase_failures as f64;
    // Some sixty: three standard deviations.
    assert!((failed / expected - 1.0).abs() < 0.4, "{failed} {expected}");
}

#[test]
fn without_spare_blocks_superblocks_are_retired_until_the_drive_takes_no_more_writes() {
    let spec = failing("0.05", "1");
    let mut host = Host::with_contents(&spec, Precondition::Random, 0, 1, Tags::default());
    let mut refused = 0;
    for round in 0..40 {
        refused += write_at_random(&mut host, round, 8_000);
        if refused > 0 {
            break;
        }
    }
    let counted = host.counters().ageing;
    println!("{refused} {counted:?}");
    assert!(counted.retired_superblocks > 3);
    assert!(refused > 0 && u64::from(refused) == counted.refused);
    host.drive.ftl().check();
    // What it holds can be read, through a power cut, too.
    host.power_cut();
    for lpn in (0..host.drive.ftl().user_slots()).step_by(8) {
        assert_eq!(ask(&mut host, Op::Read, u64::from(lpn), 8), Status::Success);
    }
    assert_eq!(ask(&mut host, Op::Write, 0, 1), Status::ReadOnly);
    assert_eq!(ask(&mut host, Op::Trim, 0, 1), Status::ReadOnly);
    assert_eq!(ask(&mut host, Op::Flush, 0, 0), Status::Success);
}

/// A small drive with blocks of two word lines, and failures as often as `sets` say.
fn worn_out(sets: &[(&'static str, &'static str)]) -> DriveSpec {
    crate::drawn::build(&worn_out_keys(sets).collect()).expect("a valid drive")
}

fn worn_out_keys(
    sets: &[(&'static str, &'static str)],
) -> impl Iterator<Item = (&'static str, String)> {
    let shape = [
        ("name", "Worn out"),
        ("capacity", "1MiB"),
        ("link.pcie", "3.0 x2"),
        ("controller.read", "3us"),
        ("controller.write", "50us"),
        ("nand.cell", "tlc"),
        ("nand.channels", "1"),
        ("nand.dies_per_channel", "2"),
        ("nand.planes", "2"),
        ("nand.pages_per_block", "6"),
        ("nand.page_size", "4KiB"),
        ("nand.blocks_per_plane", "216"),
        ("nand.channel_mt_s", "4800"),
        ("nand.read", "50us"),
        ("nand.program", "300us"),
        ("ftl.overprovisioning", "0.6"),
        ("role.map.tiers", "dram"),
        ("role.write_buffer.size", "1MiB"),
        ("tier.dram.size", "96KiB"),
        ("tier.sram.size", "3MiB"),
        ("nand.ageing.endurance", "40"),
        ("nand.ageing.erased", "3000"),
    ];
    let keys = shape.into_iter().chain(sets.iter().copied());
    keys.map(|(key, value)| (key, value.to_owned()))
}

/// Found by `swarm::` (LODGER_SEED=8): with 75 times the wear it is rated for each erase failed, and superblocks were retired
/// down to the last free one while a victim waited to be moved. Nothing was answered any more.
#[test]
fn a_drive_whose_erases_keep_failing_comes_to_its_end_and_does_not_stop() {
    for (key, share) in [
        ("nand.ageing.erase_failures", "0.05"),
        ("nand.ageing.erase_failures", "0.001"),
        ("nand.ageing.program_failures", "0.05"),
        ("nand.ageing.program_failures", "0.001"),
        ("nand.ageing.program_failures", "0.0001"),
    ] {
        for hot_cold in ["false", "true"] {
            let sets = [(key, share), ("ftl.hot_cold_streams", hot_cold)];
            let (spec, mut rng) = (worn_out(&sets), Rng::new(8));
            let mut host = Host::with_contents(&spec, Precondition::Random, 0, 8, Tags::default());
            let mut done: Vec<Completion> = Vec::new();
            let mut tag = 0;
            while !done.iter().any(|done| done.status == Status::ReadOnly) {
                assert!(tag < 100_000, "{sets:?}: {:?}", host.counters().ageing);
                done.clear();
                tag += 1;
                let count = 1 + rng.below(8);
                let mut request = pages(Op::Write, u64::from(rng.below(248)), u64::from(count));
                request.tag = tag;
                host.submit(request);
                while host.in_flight() >= 4 {
                    let next = host.next_time();
                    let state = || host.drive.debug_state();
                    let at = next.unwrap_or_else(|| panic!("{sets:?} stops: {}", state()));
                    host.advance(at, &mut done);
                }
            }
            println!("{sets:?} after {tag} writes: {:?}", host.counters().ageing);
            settle(&mut host);
            assert_eq!(host.in_flight(), 0, "{sets:?} stops");
            assert_eq!(ask(&mut host, Op::Flush, 0, 0), Status::Success);
            for lpn in 0..256 {
                assert_eq!(ask(&mut host, Op::Read, lpn, 1), Status::Success);
            }
            host.drive.ftl().check();
        }
    }
}

/// Found by `swarm::` (LODGER_SEED=20337): what was open for translation pages counted as room for data, and the last free
/// superblock was given up.
#[test]
fn room_that_the_map_has_open_does_not_keep_a_dying_drive_going() {
    let sets = [
        ("capacity", "3660KiB"),
        ("nand.channels", "2"),
        ("nand.dies_per_channel", "1"),
        ("nand.program", "1ns"),
        ("role.map.tiers", "hmb"),
        ("role.write_buffer.size", "8KiB"),
        ("tier.hmb.min", "256KiB"),
        ("tier.hmb.preferred", "1MiB"),
        ("nand.ageing.endurance", "3"),
        ("nand.ageing.acceleration", "1000000"),
        ("nand.ageing.erase_failures", "0.5"),
    ];
    let shape = worn_out_keys(&sets).filter(|(key, _)| *key != "nand.blocks_per_plane");
    let spec = crate::drawn::build(&shape.collect()).expect("a valid drive");
    for seed in [20337, 1, 2, 3] {
        let mut host =
            Host::with_contents(&spec, Precondition::Random, 1 << 20, seed, Tags::default());
        let mut rng = Rng::new(seed);
        for _ in 0..40 {
            host.submit(pages(Op::Write, u64::from(rng.below(800)), 33));
            settle(&mut host);
            assert_eq!(host.in_flight(), 0, "stops: {}", host.drive.debug_state());
        }
        assert!(host.drive.is_worn_out());
        host.drive.ftl().check();
    }
}

/// Has an `aging-tlc` changed by `keys` write a share of its pages until it has come to its end: so many pages at a time, at a multiple of them, so
/// many writes in flight. Returns how many there were, and superblocks retired.
fn live(
    keys: &[(&str, &str)],
    seed: u64,
    share: f64,
    (length, in_flight): (u64, usize),
) -> (u32, u64) {
    let file = include_str!("../../../../drives/aging-tlc.toml");
    let parsed = lodger_core::spec::parse(file, "aging-tlc", keys, &text);
    let spec = parsed.unwrap_or_else(|error| panic!("{error}")).spec;
    let mut host = Host::new(&spec, Precondition::Random, 0, seed);
    let mut rng = Rng::new(seed);
    let span = (spec.capacity_bytes as f64 / 4096.0 * share) as u64 - length;
    let (mut done, mut writes): (Vec<Completion>, u32) = (Vec::new(), 0);
    while !done.iter().any(|done| done.status == Status::ReadOnly) {
        assert!(writes < 2_000_000, "{:?}", host.counters().ageing);
        while host.in_flight() < in_flight {
            let at = rng.next_u64() % span / length * length;
            host.submit(pages(Op::Write, at, length));
            writes += 1;
        }
        let next = host.next_time();
        let state = || host.drive.debug_state();
        let at = next.unwrap_or_else(|| panic!("seed {seed} stops: {}", state()));
        done.clear();
        host.advance(at, &mut done);
    }
    settle(&mut host);
    assert_eq!(host.in_flight(), 0, "seed {seed} stops");
    host.drive.ftl().check();
    // A drive ends as blocks run short, and not as one fails at a bad moment: programs that failed where room was short just then
    // ended lives in which no spare block had been used.
    let age = host.drive.flash_age().expect("it ages");
    assert_eq!(age.spare_percent, 0, "seed {seed}: {age:?}");
    (writes, host.counters().ageing.retired_superblocks)
}

/// Writes of 16 KiB, 32 in flight, that a drive of failing programs takes until it has come to its end.
fn writes_of_a_life(seed: u64) -> u32 {
    let keys = [
        ("capacity", "256MiB"),
        ("nand.pages_per_block", "24"),
        ("nand.page_size", "4KiB"),
        ("nand.planes", "1"),
        ("ftl.overprovisioning", "0.07"),
        ("ftl.wear_static_threshold", "50"),
        ("nand.ageing.spare_blocks", "4"),
        ("nand.ageing.factory_bad", "0"),
        ("nand.ageing.acceleration", "1000"),
        ("nand.ageing.program_failures", "1"),
        ("role.map.size.dram", "128KiB"),
    ];
    live(&keys, seed, 0.3, (4, 32)).0
}

/// Without the superblocks that new data leaves alone where blocks fail, seeds 11, 20 and 21 ended with 30 to 35 of them.
#[test]
fn a_drive_gives_up_all_superblocks_that_it_can_do_without_before_it_ends() {
    let keys = [
        ("capacity", "256MiB"),
        ("nand.pages_per_block", "24"),
        ("nand.page_size", "4KiB"),
        ("nand.planes", "1"),
        ("ftl.overprovisioning", "0.07"),
        ("nand.ageing.spare_blocks", "4"),
        ("nand.ageing.endurance", "12"),
        ("nand.ageing.program_failures", "0.1"),
        ("nand.ageing.erase_failures", "0.1"),
    ];
    for seed in [2, 11, 20, 21] {
        let (writes, retired) = live(&keys, seed, 1.0, (1, 16));
        println!("seed {seed}: {writes} writes, {retired} superblocks retired");
        assert_eq!(retired, 36, "seed {seed}");
    }
}

/// Blocks were given up until one superblock's worth of room was left, and the map takes none of the reserve: where a superblock
/// that lay too still was being emptied just then, moves waited for the map and the map for room (seeds 20 and 41).
#[test]
fn a_dying_drive_that_evens_wear_keeps_the_room_that_its_map_waits_for() {
    let lives = (0..60).map(writes_of_a_life).sum::<u32>();
    println!("{} writes on average", lives / 60);
}

#[test]
fn data_that_is_read_again_and_again_is_written_anew_before_it_is_lost() {
    let reads = |refresh| {
        let spec = with_errors(
            "0.004",
            &[
                ("capacity", "64MiB"),
                ("nand.pages_per_block", "12"),
                ("ftl.overprovisioning", "0.5"),
                ("nand.ageing.errors.disturb", "0.00001"),
                ("nand.ageing.errors.disturb_power", "1"),
                ("nand.ageing.refresh", refresh),
            ],
        );
        let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
        // 96 pages a superblock: after 96 times 8000 senses, tries included, its errors pass eight times the limit.
        closed_loop(&mut host, 1, 600_000, |rng| {
            pages(Op::Read, u64::from(rng.below(100)), 1)
        });
        settle(&mut host);
        host.counters().ageing
    };
    let (never, in_time) = (reads("0"), reads("1"));
    println!("{never:?} {in_time:?}");
    assert!(never.refreshes == 0 && never.uncorrectable > 0);
    assert!(in_time.refreshes > 3 && in_time.uncorrectable == 0);
    assert!(in_time.retries < never.retries / 100);
}

/// Reads of so many pages in order until one is tried again, whose superblock is disturbed into errors by ten senses of each of its pages.
fn reads_until_disturbed(planes: &str, length: u64, more: &[(&str, &str)]) -> u64 {
    let disturbed = [
        ("nand.planes", planes),
        ("capacity", "64MiB"),
        ("nand.pages_per_block", "12"),
        ("ftl.overprovisioning", "0.5"),
        ("nand.ageing.errors.disturb", "0.00099"),
        ("nand.ageing.errors.disturb_power", "1"),
    ];
    let spec = with_errors("0.0001", &[&disturbed, more].concat());
    let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
    let mut reads = 0;
    let mut retries = 0;
    while host.counters().ageing.retries == retries {
        retries = host.counters().ageing.retries;
        let at = reads % (64 / length) * length;
        closed_loop(&mut host, 1, 1, |_| pages(Op::Read, at, length));
        reads += 1;
        assert!(reads < 100_000, "none of them was tried again");
    }
    reads
}

/// A read of 4 KiB senses a page of one plane; it was counted as one of all planes.
#[test]
fn reads_disturb_the_pages_that_they_sense_and_no_other_planes() {
    // Four dies with blocks of twelve pages; a plane's page has four slots.
    let pages_of_plane = 4 * 12;
    for (planes, count) in [("1", 1), ("2", 2), ("4", 4)] {
        let one = reads_until_disturbed(planes, 1, &[]);
        let all = reads_until_disturbed(planes, 4 * count, &[]);
        assert!(
            one.abs_diff(10 * pages_of_plane * count) <= 1,
            "{planes}: {one}"
        );
        assert!(all.abs_diff(10 * pages_of_plane) <= 1, "{planes}: {all}");
    }
}

/// Each try senses the cells, as the first does.
#[test]
fn reads_that_are_tried_again_disturb_for_each_try() {
    // Until the first try fails, then each read has one more, until what ten more senses add takes a third.
    let spec = |disturb| {
        let more = [
            ("capacity", "64MiB"),
            ("nand.pages_per_block", "12"),
            ("ftl.overprovisioning", "0.5"),
            ("nand.ageing.errors.disturb", disturb),
            ("nand.ageing.errors.disturb_power", "1"),
        ];
        let mut host = Host::new(&with_errors("0.012", &more), Precondition::Sequential, 0, 1);
        closed_loop(&mut host, 1, 960, |rng| {
            pages(Op::Read, u64::from(rng.below(100)), 1)
        });
        host.counters().ageing.retries
    };
    // Two planes: 96 pages. Of 0.012 one try more leaves 0.006; of 0.020 it takes two: 0.008 more is 8 senses of each page, which
    // two a read are after 384 reads.
    assert_eq!(spec("0"), 960);
    let retries = spec("0.001");
    let second = 960 - 384;
    assert!(retries.abs_diff(960 + second) < 20, "{retries}");
}

/// Flash that holds data has been erased before: a drive that was never used had data that did not age at all.
#[test]
fn data_on_a_new_drive_ages_as_on_one_that_was_erased_once() {
    let retries = |erased| {
        let old = [
            ("nand.ageing.erased", erased),
            ("nand.ageing.age_days", "3650"),
            ("nand.ageing.errors.retention", "0.001"),
            ("nand.ageing.errors.retention_wear_power", "0.2"),
            ("nand.ageing.errors.retention_power", "0.5"),
        ];
        let (_, host) = read(&with_errors("0.0001", &old));
        host.counters().ageing.retries
    };
    assert!(retries("1") > 0);
    assert_eq!(retries("0"), retries("1"));
}

#[test]
fn a_table_without_errors_and_failures_changes_nothing() {
    let run = |sets: &[(&str, &str)]| {
        let mut host =
            Host::with_contents(&spec(sets), Precondition::Random, 0, 1, Tags::default());
        write_at_random(&mut host, 4, 3_000);
        let mut counters = host.counters();
        counters.ageing = Default::default();
        (counters, host.now_ps())
    };
    assert_eq!(run(&[("nand.ageing.endurance", "1")]), run(&[]));
}

/// A superblock that is retired is room that is gone at once. New data had one program operation in 256 until as much was back, whatever its victims
/// gave meanwhile: three dies were silent for up to 147 ms.
#[test]
fn a_superblock_that_is_retired_does_not_stop_new_data() {
    let keys = [
        ("nand.channels", "1"),
        ("nand.dies_per_channel", "3"),
        ("nand.pages_per_block", "24"),
        ("capacity", "256MiB"),
        ("ftl.overprovisioning", "0.2"),
        ("nand.ageing.endurance", "20"),
        ("nand.ageing.spare_blocks", "4"),
        ("nand.ageing.program_failures", "0.02"),
    ];
    let mut host = Host::new(&drive("galaxy-s7", &keys), Precondition::None, 0, 1);
    let mut rng = Rng::new(1);
    let (mut longest_ps, mut done) = (0, Vec::new());
    let mut rounds = 0;
    while rounds < 120_000 && host.counters().ageing.refused == 0 {
        rounds += 1;
        for _ in 0..16 {
            latency(&mut host, pages(Op::Write, u64::from(rng.below(51_200)), 1));
        }
        done.clear();
        host.submit(pages(Op::Flush, 0, 0));
        host.advance_to_completion(u64::MAX, &mut done);
        longest_ps = longest_ps.max(done[0].completed_ps - done[0].submitted_ps);
    }
    let retired = host.counters().ageing.retired_superblocks;
    println!(
        "{retired} retired, the longest flush {:.1} ms",
        longest_ps as f64 / 1e9
    );
    assert!(retired >= 10, "{retired}");
    assert!(longest_ps < 20_000_000_000, "{longest_ps}");
}
