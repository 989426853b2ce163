//! Do contents hear of physical pages that nobody reads any more, so that they need not keep more than the drive
//! holds? (That nothing is read there is what every test with contents looks for: to theirs such a page is lost.)

use crate::common::contents::Tags;
use crate::common::small::of_any_kind;
use crate::common::{closed_loop, pages};
use lodger_core::ids::{Lpn, Ppn};
use lodger_core::rng::Rng;
use lodger_core::{Host, Op, Precondition};
use std::collections::BTreeSet;

/// Logical pages that are written again and again.
const SPAN: u32 = 2_000;

#[test]
fn contents_keep_what_is_current_and_nothing_else() {
    for shape in [0, 2, 0x15, 0x8c, 0x1c2, 0x1ff, 0xb7a] {
        let spec = of_any_kind(shape);
        let granted = 1 << 20;
        let contents = Tags::default();
        let mut host = Host::with_contents(&spec, Precondition::None, granted, 1, contents);
        let mut rng = Rng::new(shape.into());
        let mut next = 0;
        closed_loop(&mut host, 8, 12_000, |_| {
            next += 1;
            let lpn = u64::from(rng.below(SPAN));
            let mut request = match rng.below(8) {
                0 => pages(Op::Trim, lpn, 1 + u64::from(rng.below(30))),
                1 => pages(Op::Flush, 0, 0),
                _ => pages(Op::Write, lpn, 1 + u64::from(rng.below(4))),
            };
            request.tag = next;
            request
        });
        host.shutdown();
        let (drive, ftl) = (&host.drive, host.drive.ftl());
        let current = |ppn| ftl.current_owner(ppn).is_some();
        let stale = drive.contents.programmed().filter(|ppn| !current(*ppn));
        // Of what was moved recovery may take either copy: the first waits for its superblock's erase, which follows.
        let superblocks = stale.map(|ppn: Ppn| ftl.geometry().superblock(ppn));
        let superblocks: BTreeSet<_> = superblocks.collect();
        assert!(superblocks.len() <= 2, "{shape:#x}: {superblocks:?}");
        let lpns = (0..ftl.user_slots()).map(Lpn);
        let held = lpns.filter_map(|lpn| ftl.locate(lpn)).count();
        assert!(held > 500, "{held}");
        assert!(
            drive.contents.discarded > 10 * held as u64,
            "{shape:#x}: {} of {held}",
            drive.contents.discarded
        );
    }
}
