//! Does a drive come back from what was kept of its flash, and of what firmware keeps beside, as the one that was
//! switched off and on? And is what it cannot have left refused?

use crate::common::contents::Media;
use crate::common::{VARIANTS, drive, pages, settle, small};
use lodger_core::ftl::{Contradiction, Found, LAST_FOR_NEW_DATA, Oob, Owner, Stream, Trim};
use lodger_core::ids::{Lpn, TranslationPage};
use lodger_core::rng::Rng;
use lodger_core::{Completion, DriveSpec, Host, Op, Precondition, Status};

const HMB_BYTES: u64 = 256 << 10;

fn new(spec: &DriveSpec) -> Host<Media> {
    Host::with_contents(spec, Precondition::None, 0, 5, Media::default())
}

/// A stretch of a workload, seeded.
fn stretch(host: &mut Host<Media>, seed: u64) -> Vec<Completion> {
    let mut rng = Rng::new(seed);
    let slots = host.drive.ftl().user_slots().min(6_000);
    let mut done = Vec::new();
    host.set_hmb(HMB_BYTES);
    for tag in 1..1_200 {
        let op = [Op::Read, Op::Write, Op::Write, Op::Trim, Op::Flush][rng.below(5) as usize];
        let (first, count) = (rng.below(slots - 40), 1 + rng.below(40));
        let mut request = pages(op, u64::from(first), u64::from(count));
        request.tag = tag;
        host.submit(request);
        while host.in_flight() > 8 {
            host.advance_to_completion(u64::MAX, &mut done);
        }
    }
    done.extend(settle(host));
    done
}

#[test]
fn a_drive_that_was_shut_down_and_kept_goes_on_as_if_it_had_been_switched_off_and_on() {
    let tiny = VARIANTS.iter().filter(|(name, _)| *name == "tiny");
    let tiny = tiny.map(|(name, keys)| (format!("{keys:?}"), drive(name, keys)));
    let small = (0..lodger_testing::cases(16)).map(|shape| {
        let shape = shape.wrapping_mul(0x9e37_79b9) >> 16;
        (format!("shape {shape}"), small::of_any_kind(shape))
    });
    // What hosts with entries of their own have counted is theirs, and none of those drives can be kept.
    let kept = tiny.chain(small).filter(|(_, spec)| spec.hpb.is_none());
    for (name, spec) in kept {
        let mut host = new(&spec);
        for life in 0..2 {
            stretch(&mut host, life);
            host.shutdown();
            settle(&mut host);
            let rest = host.drive.rest();
            let state = postcard::to_stdvec(&rest).expect("it can be saved");
            let rest = postcard::from_bytes(&state).expect("what was saved can be loaded");
            let mut other = new(&spec);
            other.drive.contents = host.drive.contents.clone().without_drive();
            let found = other.drive.contents.kept.found(&spec);
            let restored = other.drive.restore(&rest, found);
            assert_eq!(restored, Ok(()), "{name}");
            let recovery = host.power_cut();
            assert_eq!(other.power_cut(), recovery, "{name} {life}");
            assert_eq!(other.counters(), host.counters(), "{name}");
            for lpn in (0..6_000.min(host.drive.ftl().user_slots())).map(Lpn) {
                assert_eq!(other.drive.source(lpn), host.drive.source(lpn));
            }
            let went_on = stretch(&mut other, 10 + life);
            let expected = stretch(&mut host, 10 + life);
            assert!(went_on == expected, "{name} {life}");
            assert_eq!(other.counters(), host.counters(), "{name}");
        }
    }
}

fn used() -> (DriveSpec, Host<Media>) {
    let spec = drive("tiny", &[]);
    let mut host = new(&spec);
    stretch(&mut host, 1);
    (spec, host)
}

#[test]
fn what_a_drive_cannot_have_left_is_refused() {
    let (spec, host) = used();
    let rest = host.drive.rest();
    let good = host.drive.contents.kept.found(&spec);
    let restore = |found: Found| new(&spec).drive.restore(&rest, found);
    assert_eq!(restore(good.clone()), Ok(()));
    let at = good.superblocks.iter().position(|s| s.written.is_some());
    let at = at.expect("something is written");
    let number = at as u32;
    let changed = |change: &dyn Fn(&mut Found)| {
        let mut found = good.clone();
        change(&mut found);
        restore(found)
    };
    let written = |change: &dyn Fn(&mut lodger_core::ftl::Written)| {
        changed(&|found| {
            change(
                found.superblocks[at]
                    .written
                    .as_mut()
                    .expect("it is written"),
            )
        })
    };
    let wrong = Err(Contradiction::Superblock(number));
    let owned = |owner| Oob { owner, sequence: 1 };
    let user_slots = host.drive.ftl().user_slots();
    assert_eq!(
        written(&|w| w.oob[0] = owned(Owner::data(Lpn(user_slots)))),
        wrong
    );
    assert_eq!(
        written(&|w| w.oob[0] = owned(Owner::map(TranslationPage(1 << 20)))),
        wrong
    );
    assert_eq!(written(&|w| w.end = 0), wrong);
    assert_eq!(written(&|w| w.end += 1), wrong);
    assert_eq!(written(&|w| w.end = 1 << 30), wrong);
    assert_eq!(written(&|w| w.oob = Box::new([])), wrong);
    let slc = lodger_core::nand::Geometry::new(&spec.nand).superblocks - number
        <= spec.ftl.slc_superblocks;
    let other = if slc { Stream::Host } else { Stream::Slc };
    assert_eq!(written(&|w| w.stream = other), wrong);
    let lost_one = changed(&|found| drop(found.superblocks.pop()));
    assert!(matches!(lost_one, Err(Contradiction::Superblocks { .. })));
    for (from, end) in [(0, user_slots + 1), (7, 7), (9, 2)] {
        let trim = Trim {
            from,
            end,
            sequence: u32::MAX - 1,
        };
        let refused = changed(&|found| found.trims.push(trim));
        assert_eq!(refused, Err(Contradiction::Trim { from, end }));
    }
    let larger = drive("tiny", &[("capacity", "1GiB")]);
    let of_other = new(&larger).drive.rest();
    assert_eq!(
        new(&spec).drive.restore(&of_other, good.clone()),
        Err(Contradiction::Rest)
    );
}

#[test]
fn wear_and_counters_come_from_what_was_kept_beside_and_wear_from_flash_if_that_is_newer() {
    let (spec, mut host) = used();
    let old = host.drive.rest();
    let counted = host.counters();
    for seed in 0..40 {
        stretch(&mut host, seed);
    }
    assert!(host.counters().erases > counted.erases, "blocks were worn");
    let found = host.drive.contents.kept.found(&spec);
    let mut other = new(&spec);
    assert_eq!(other.drive.restore(&old, found), Ok(()));
    assert_eq!(other.counters(), counted);
    let worn = |host: &Host<Media>| -> Vec<u32> {
        let blocks = host.drive.ftl().blocks.all().iter();
        blocks.map(|block| block.erases).collect()
    };
    assert_eq!(worn(&other), worn(&host));
}

#[test]
fn a_drive_without_sequence_numbers_takes_no_data_and_reads_on() {
    let (spec, mut host) = used();
    host.shutdown();
    let rest = host.drive.rest();
    // As after 2^31 trims.
    let last = |sequence| Trim {
        from: 0,
        end: 1,
        sequence,
    };
    let restored = |sequence| {
        let mut other = new(&spec);
        other.drive.contents = host.drive.contents.clone().without_drive();
        let mut found = other.drive.contents.kept.found(&spec);
        found.trims.push(last(sequence));
        let restored = other.drive.restore(&rest, found);
        restored.map(|()| other)
    };
    let mut other = restored(LAST_FOR_NEW_DATA - 60).expect("it has some left");
    other.power_cut();
    let mut statuses = Vec::new();
    for tag in 1..=200 {
        for op in [Op::Write, Op::Trim, Op::Flush, Op::Read] {
            let mut request = pages(op, u64::from(tag), 4);
            request.tag = tag;
            other.submit(request);
        }
        statuses.extend(settle(&mut other).iter().map(|done| (done.op, done.status)));
    }
    let refused = statuses
        .iter()
        .filter(|(_, status)| *status == Status::ReadOnly);
    let refused: Vec<Op> = refused.map(|(op, _)| *op).collect();
    assert!(
        refused.len() > 100 && refused.len() < 400,
        "{}",
        refused.len()
    );
    assert!(refused.iter().all(|op| matches!(op, Op::Write | Op::Trim)));
    let at_the_end = &statuses[statuses.len() - 4..];
    let ended = |op, status| assert!(at_the_end.contains(&(op, status)), "{at_the_end:?}");
    ended(Op::Write, Status::ReadOnly);
    ended(Op::Trim, Status::ReadOnly);
    ended(Op::Flush, Status::Success);
    ended(Op::Read, Status::Success);
    // It goes on so after cuts, and can be shut down.
    other.power_cut();
    other.shutdown();
    let beyond = LAST_FOR_NEW_DATA + (1 << 27) + 1;
    assert_eq!(
        restored(beyond).err(),
        Some(Contradiction::Sequence(beyond))
    );
}
