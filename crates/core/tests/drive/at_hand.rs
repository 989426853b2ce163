//! What is in the write buffer or the read cache is found by its logical address. Does a read of it wait for the map?

use crate::common::drives::drive;
use crate::common::{pages, settle};
use lodger_core::rng::Rng;
use lodger_core::{Completion, DriveSpec, Host, Op, Precondition};

/// How long a read of a page takes.
fn read_ps(host: &mut Host, page: u64) -> u64 {
    host.submit(pages(Op::Read, page, 1));
    let done = settle(host);
    done[0].completed_ps - done[0].submitted_ps
}

/// A read of a page 10 s after it was written took 82 us on an rc100-480, 69 of them for the map, and moved nothing from flash.
#[test]
fn reads_of_buffered_pages_do_not_wait_for_the_map() {
    for (name, sets) in [
        ("rc100-480", &[][..]),
        ("bg4", &[]),
        ("tiny", &[]),
        ("ufs21-64", &[]),
        ("hong-hmb-buffer", &[]),
    ] {
        let spec: DriveSpec = drive(name, sets);
        let hmb_bytes = spec.tiers.hmb.as_ref().map_or(0, |hmb| hmb.preferred_bytes);
        let mut host = Host::new(&spec, Precondition::Sequential, hmb_bytes, 1);
        host.submit(pages(Op::Write, 1000, 1));
        settle(&mut host);
        let lookups = host.counters().map.lookups;
        let [buffered_ps, flash_ps] =
            [1000, 900_000 % (spec.capacity_bytes / 4096)].map(|page| read_ps(&mut host, page));
        println!("{name}: {buffered_ps} ps from the buffer, {flash_ps} from flash");
        assert_eq!(host.counters().buffer_read_hits, 1, "{name}");
        assert_eq!(
            host.counters().map.lookups,
            lookups + 1,
            "{name}: of flash alone"
        );
        assert!(buffered_ps < spec.nand.read_ps[0], "{name}: {buffered_ps}");
    }
}

/// A page leaves the buffer between the look at it and the read. It is looked up then: each read has found its page in the buffer, or a look at
/// the map. Pages are written in turn, and read once their write has ended and long before the next: none comes in between.
#[test]
fn what_leaves_the_buffer_before_it_is_read_is_looked_up() {
    const PAGES: u64 = 4000;
    let spec = drive("tiny", &[("role.read_cache.size", "0B")]);
    let mut host = Host::new(&spec, Precondition::Random, 0, 1);
    let (mut rng, mut written) = (Rng::new(5), 1000_u64);
    let mut next = |tag: u32| {
        let mut request = if tag.is_multiple_of(2) {
            let ago = 60 + u64::from(rng.below(200));
            pages(Op::Read, (written - ago) % PAGES, 1)
        } else {
            written += 1;
            pages(Op::Write, written % PAGES, 1)
        };
        request.tag = tag;
        request
    };
    (0..32).for_each(|tag| host.submit(next(tag)));
    let mut done: Vec<Completion> = Vec::new();
    let is_read = |completion: &Completion| completion.tag.is_multiple_of(2);
    let mut reads = 0;
    while reads < 40_000 {
        host.advance_to_completion(u64::MAX, &mut done);
        for completion in done.drain(..) {
            reads += u64::from(is_read(&completion));
            host.submit(next(completion.tag));
        }
    }
    reads += settle(&mut host)
        .iter()
        .filter(|done| is_read(done))
        .count() as u64;
    let counters = host.counters();
    let (looked_up, buffered) = (counters.map.lookups, counters.buffer_read_hits);
    println!("{reads} reads, {buffered} from the buffer, {looked_up} looked up");
    assert!(buffered > reads / 10 && looked_up > reads / 10);
    assert_eq!(buffered + looked_up, reads);
}
