//! A trim comes while a write of the same pages is on its way, and then power is cut. What the write
//! was acknowledged for is there, or the trim is; never what was there before both.

use crate::common::contents::Media;
use crate::common::{drive, pages};
use lodger_core::Host;
use lodger_core::device::Source;
use lodger_core::ids::Lpn;
use lodger_core::{DriveSpec, Op, Precondition, Request};

const PAGE: u32 = 263;

struct Run {
    host: Host<Media>,
    done: Vec<u32>,
}

impl Run {
    fn new(spec: &DriveSpec) -> Self {
        let contents = Media::default();
        let host = Host::with_contents(spec, Precondition::None, 0, 1, contents);
        let done = Vec::new();
        Run { host, done }
    }

    fn submit(&mut self, tag: u32, mut request: Request) {
        request.tag = tag;
        self.host.submit(request);
    }

    fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            let at = self.host.next_time().unwrap_or_else(|| panic!("{what}"));
            let mut done = Vec::new();
            self.host.advance(at, &mut done);
            self.done.extend(done.iter().map(|done| done.tag));
        }
    }

    fn is_done(&self, tag: u32) -> bool {
        self.done.contains(&tag)
    }

    /// Who wrote the page, as it is after a power cut.
    fn after_cut(&mut self) -> u32 {
        self.host.power_cut();
        let held = self
            .host
            .drive
            .contents
            .at(self.host.drive.source(Lpn(PAGE)));
        assert_eq!(held, [held[0]; 8]);
        held[0]
    }
}

#[test]
fn a_write_acknowledged_by_flash_is_not_undone_by_a_trim_under_way_and_a_cut() {
    let spec = drive(
        "tiny",
        &[
            ("role.write_buffer.acknowledge", "programmed"),
            ("ftl.slc_superblocks", "0"),
        ],
    );
    let mut run = Run::new(&spec);
    run.submit(1, pages(Op::Write, u64::from(PAGE), 1));
    run.until("the first write ends", |run| run.is_done(1));
    // All dies are busy: the write waits in the buffer.
    run.submit(2, pages(Op::Write, 1024, 4 * 24));
    run.submit(3, pages(Op::Write, u64::from(PAGE), 1));
    run.until("its data arrives", |run| {
        matches!(run.host.drive.source(Lpn(PAGE)), Source::Buffer(_))
    });
    run.submit(4, pages(Op::Trim, u64::from(PAGE), 1));
    run.until("it is trimmed", |run| run.is_done(4));
    assert!(!run.is_done(3), "the trim came while the write waited");
    run.until("the write is acknowledged", |run| run.is_done(3));
    let found = run.after_cut();
    assert!(found == 3 || found == 0, "what write {found} wrote is back");
}

#[test]
fn recovery_finds_promised_data_of_pages_that_were_trimmed_before_they_had_an_entry() {
    let spec = drive(
        "tiny",
        &[
            ("ftl.slc_superblocks", "0"),
            ("tier.pm.size", "96KiB"),
            ("role.write_buffer.log", "pm"),
        ],
    );
    let mut run = Run::new(&spec);
    // In the log, and so promised, but not in flash: no map entry yet.
    run.submit(1, pages(Op::Write, u64::from(PAGE) - 7, 8));
    run.until("it is buffered", |run| run.is_done(1));
    run.submit(2, pages(Op::Flush, 0, 0));
    run.until("it is logged", |run| run.is_done(2));
    run.submit(3, pages(Op::Trim, u64::from(PAGE) - 7, 8));
    run.until("it is trimmed", |run| run.is_done(3));
    // Fills up the program operation: what was promised goes to flash, already void.
    run.submit(4, pages(Op::Write, 1024, 16));
    run.until("both are in flash", |run| {
        run.host.next_time().is_none() && run.is_done(4)
    });
    assert!(run.host.drive.ftl().locate(Lpn(1024)).is_some());
    let found = run.after_cut();
    assert!(found == 1 || found == 0, "what write {found} wrote is back");
    run.host.drive.ftl().check();
}
