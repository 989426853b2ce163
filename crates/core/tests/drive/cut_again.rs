//! Power is cut again before recovery has written the map. Does the second recovery still know which
//! of its pages in flash are old? What made them so (a record of a trim in memory, a program that was
//! torn) is not there any more to be seen.

use crate::common::contents::Media;
use crate::common::{drive, pages, settle};
use lodger_core::Host;
use lodger_core::rng::Rng;
use lodger_core::spec::{ENTRIES_PER_TRANSLATION_PAGE, SLOT_BYTES};
use lodger_core::{DriveSpec, Op, Precondition, Request};

/// Translation pages that are changed: many more than the cache takes.
const CHANGED: u64 = 40;

fn spec() -> DriveSpec {
    let small_map = [
        ("role.map.tiers", "[\"sram\"]"),
        ("role.map.size.sram", "16KiB"),
        ("ftl.slc_superblocks", "0"),
    ];
    drive("tiny", &small_map)
}

fn new(spec: &DriveSpec) -> Host<Media> {
    Host::with_contents(spec, Precondition::Sequential, 0, 1, Media::default())
}

/// The first logical page of each translation page that is changed.
fn requests(op: Op) -> impl Iterator<Item = Request> {
    let firsts = (0..CHANGED).map(|page| page * ENTRIES_PER_TRANSLATION_PAGE);
    firsts.map(move |lpn| pages(op, lpn, 1))
}

/// Each translation page that was changed is read, and says what is so.
fn follow_map(host: &mut Host<Media>) {
    for mut request in requests(Op::Read) {
        request.tag = 1;
        host.submit(request);
        settle(host);
    }
    assert!(host.drive.contents.map_pages_read > CHANGED / 2);
}

#[test]
fn a_page_of_the_map_made_old_by_a_lost_trim_is_found_again_after_a_second_cut() {
    let mut host = new(&spec());
    requests(Op::Trim).for_each(|trim| host.submit(trim));
    settle(&mut host);
    let first = host.power_cut();
    let second = host.power_cut();
    assert!(u64::from(first.stale_pages) > CHANGED / 2, "{first:?}");
    assert_eq!(first.stale_pages, second.stale_pages);
    follow_map(&mut host);
    // Once written they are old no longer.
    settle(&mut host);
    let third = host.power_cut();
    assert_eq!(third.stale_pages, 0);
    follow_map(&mut host);
}

#[test]
fn a_page_of_the_map_that_may_name_a_torn_program_is_found_again_after_a_second_cut() {
    let spec = spec();
    let mut stale = 0;
    for events in (0..400).step_by(4) {
        let mut host = new(&spec);
        requests(Op::Write).for_each(|write| host.submit(write));
        for _ in 0..events {
            let Some(at) = host.next_time() else { break };
            host.advance(at, &mut Vec::new());
        }
        let first = host.power_cut();
        let second = host.power_cut();
        assert!(second.stale_pages >= first.stale_pages, "{events} events");
        stale += second.stale_pages;
        follow_map(&mut host);
    }
    assert!(stale > 0);
}

#[test]
fn an_erase_that_was_cut_is_done_again_though_power_fails_again_while_flash_is_read() {
    let spec = spec();
    let slots = (spec.capacity_bytes / SLOT_BYTES) as u32;
    let mut rng = Rng::new(5);
    let mut host = Host::new(&spec, Precondition::Random, 0, 1);
    let mut cut = 0;
    while cut < 4 {
        for _ in 0..50 {
            if host.in_flight() < 16 {
                host.submit(pages(Op::Write, u64::from(rng.below(slots)), 1));
            }
            let next = host.next_time().expect("writes are under way");
            host.advance(next, &mut Vec::new());
        }
        let erased_again = host.clone().power_cut().erased_again;
        if erased_again == 0 {
            continue;
        }
        // A picosecond after power is back nothing has been read.
        let twice = host.power_cut_in_recovery(1);
        assert_eq!(twice.erased_again, erased_again);
        cut += 1;
        host.drive.ftl().check();
    }
}

/// What was trimmed has no newer copy anywhere: only that the superblock is known to be erased keeps it from coming back.
#[test]
fn what_lay_in_an_erased_superblock_from_the_start_does_not_come_back_after_two_cuts() {
    let spec = spec();
    let slots = spec.capacity_bytes / SLOT_BYTES;
    let kept = 20 * ENTRIES_PER_TRANSLATION_PAGE;
    let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
    for lpn in (kept..slots).step_by(ENTRIES_PER_TRANSLATION_PAGE as usize) {
        host.submit(pages(Op::Trim, lpn, ENTRIES_PER_TRANSLATION_PAGE));
    }
    settle(&mut host);
    let mut rng = Rng::new(5);
    let (mut cuts, mut erases) = (0, 0);
    while cuts < 40 {
        while host.in_flight() < 16 {
            host.submit(pages(Op::Write, u64::from(rng.below(kept as u32)), 1));
        }
        let next = host.next_time().expect("writes are under way");
        host.advance(next, &mut Vec::new());
        if host.counters().erases == erases {
            continue;
        }
        erases = host.counters().erases;
        let mut other = host.clone();
        // A picosecond after power is back nothing has been read.
        cuts += other.power_cut_in_recovery(1).erased_again;
        other.drive.ftl().check();
    }
}

/// Programs take long and dies are not equally busy, so that a translation page is at times in flash before the data
/// that one of its entries names.
#[test]
fn a_translation_page_that_overtook_the_data_it_names_is_found_old() {
    let spec = drive(
        "tiny",
        &[
            ("role.map.tiers", "[\"sram\"]"),
            ("role.map.size.sram", "16KiB"),
            ("ftl.slc_superblocks", "0"),
            ("nand.program", "3ms"),
        ],
    );
    let slots = (spec.capacity_bytes / SLOT_BYTES) as u32;
    let mut rng = Rng::new(5);
    let mut host = Host::with_contents(&spec, Precondition::Random, 0, 1, Media::default());
    for event in 1..=20_000 {
        while host.in_flight() < 64 {
            let op = if rng.below(4) == 0 {
                Op::Read
            } else {
                Op::Write
            };
            host.submit(pages(op, u64::from(rng.below(slots)), 1));
        }
        let next = host.next_time().expect("requests are under way");
        host.advance(next, &mut Vec::new());
        if event % 1000 == 0 {
            follow_all_of_the_map(host.clone(), slots);
        }
    }
}

/// After a power cut: each translation page is read, and says what is so.
fn follow_all_of_the_map(mut host: Host<Media>, slots: u32) {
    host.power_cut();
    for lpn in (0..u64::from(slots)).step_by(ENTRIES_PER_TRANSLATION_PAGE as usize) {
        host.submit(pages(Op::Read, lpn, 1));
        settle(&mut host);
    }
}
