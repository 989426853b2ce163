//! A host with its drive can be copied in the middle of everything, by a clone or by a saved state that is loaded,
//! and both go on: does each branch do what the one drive would have done, and does neither see what happens to the
//! other?

use crate::common::{DRIVES, VARIANTS, drive, pages};
use lodger_core::rng::Rng;
use lodger_core::{Completion, Host, Op, Precondition};

/// At one of them most parts of a drive are at rest: what is left out of a state would not be missed.
const INSTANTS: u64 = 8;

/// A stretch of a workload, seeded: requests, pauses, a loss of host memory.
fn stretch(host: &mut Host, seed: u64) -> (Vec<Completion>, String) {
    let mut rng = Rng::new(seed);
    let slots = host.drive.ftl().user_slots().min(40_000);
    let mut done = Vec::new();
    for tag in 0..200 {
        let op = [Op::Read, Op::Write, Op::Write, Op::Trim, Op::Flush][rng.below(5) as usize];
        let mut request = pages(
            op,
            u64::from(rng.below(slots - 8)),
            1 + u64::from(rng.below(6)),
        );
        request.tag = tag;
        host.submit(request);
        if rng.below(3) == 0 {
            let to_ps = host.now_ps() + u64::from(rng.below(300)) * 1_000_000;
            host.advance(to_ps, &mut done);
        }
        if rng.below(90) == 0 {
            host.set_hmb(u64::from(rng.below(3)) << 24);
        }
        if rng.below(150) == 0 {
            host.power_cut();
        }
    }
    let text = format!("{:?} {}", host.counters(), host.now_ps());
    (done, text)
}

#[test]
fn a_branch_does_what_the_drive_would_have_done_and_leaves_it_alone() {
    let drives = DRIVES.iter().map(|(name, _)| (*name, [].as_slice()));
    let variants = VARIANTS.iter().map(|(name, keys)| (*name, *keys));
    for (name, keys) in drives.chain(variants) {
        let spec = drive(name, keys);
        let mut host = Host::new(&spec, Precondition::Random, 32 << 20, 5);
        for instant in 0..INSTANTS {
            // Commands are under way, blocks half written, alarms set.
            stretch(&mut host, 10 + instant);
            let (mut branch, mut other) = (host.clone(), host.clone());
            let state = postcard::to_stdvec(&host).expect("a drive can be saved");
            let mut loaded: Host =
                postcard::from_bytes(&state).expect("what was saved can be loaded");
            let elsewhere = stretch(&mut other, 2);
            let there = stretch(&mut branch, 3);
            let here = stretch(&mut host, 3);
            assert_eq!(there, here, "{name} {keys:?}");
            assert_eq!(stretch(&mut loaded, 3), here, "{name} {keys:?}, loaded");
            assert_ne!(elsewhere, here, "{name} {keys:?}");
        }
    }
}
