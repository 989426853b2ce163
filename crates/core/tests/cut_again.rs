//! Power is cut again before recovery has written the map. Does the second recovery still know which
//! of its pages in flash are old? What made them so (a record of a trim in memory, a program that was
//! torn) is not there any more to be seen.

mod common;
mod media;

use common::{drive, pages, settle};
use lodger_core::device::Device;
use lodger_core::spec::ENTRIES_PER_TRANSLATION_PAGE;
use lodger_core::{DriveSpec, Op, Precondition, Request};
use media::Media;

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

fn new(spec: &DriveSpec) -> Device<Media> {
    Device::with_contents(spec, Precondition::Sequential, 0, 1, Media::new(spec))
}

/// The first logical page of each translation page that is changed.
fn requests(op: Op) -> impl Iterator<Item = Request> {
    let firsts = (0..CHANGED).map(|page| page * ENTRIES_PER_TRANSLATION_PAGE);
    firsts.map(move |lpn| pages(op, lpn, 1))
}

/// Each translation page that was changed is read, and says what is so.
fn follow_map(device: &mut Device<Media>) {
    for mut request in requests(Op::Read) {
        request.tag = 1;
        device.submit(request);
        settle(device);
    }
    assert!(device.contents.map_pages_read > CHANGED / 2);
}

#[test]
fn a_page_of_the_map_made_old_by_a_lost_trim_is_found_again_after_a_second_cut() {
    let mut device = new(&spec());
    requests(Op::Trim).for_each(|trim| device.submit(trim));
    settle(&mut device);
    let first = device.power_cut();
    let second = device.power_cut();
    assert!(u64::from(first.stale_pages) > CHANGED / 2, "{first:?}");
    assert_eq!(first.stale_pages, second.stale_pages);
    follow_map(&mut device);
    // Once written they are old no longer.
    settle(&mut device);
    let third = device.power_cut();
    assert_eq!(third.stale_pages, 0);
    follow_map(&mut device);
}

#[test]
fn a_page_of_the_map_that_may_name_a_torn_program_is_found_again_after_a_second_cut() {
    let spec = spec();
    let mut stale = 0;
    for events in (0..400).step_by(4) {
        let mut device = new(&spec);
        requests(Op::Write).for_each(|write| device.submit(write));
        for _ in 0..events {
            let Some(at) = device.next_time() else { break };
            device.advance(at, &mut Vec::new());
        }
        let first = device.power_cut();
        let second = device.power_cut();
        assert!(second.stale_pages >= first.stale_pages, "{events} events");
        stale += second.stale_pages;
        follow_map(&mut device);
    }
    assert!(stale > 0);
}
