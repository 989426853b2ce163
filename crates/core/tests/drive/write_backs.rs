//! Do changed pages of the map come from where they stand? Those that only host memory held were programmed
//! without ever having crossed the link, which then took twice what it can.

use crate::common::{closed_loop, drive, pages, settle};
use lodger_core::rng::Rng;
use lodger_core::{Host, Op, Precondition};

const PAGES: u32 = 100_000;

/// Pages of the map programmed, bytes read from host memory, and both for a second run of writes.
fn written_back(sets: &[(&str, &str)], hmb_bytes: u64) -> (u64, u64) {
    let mut all = vec![("tier.hmb.min", "\"64KiB\""), ("capacity", "\"512MiB\"")];
    all.extend_from_slice(sets);
    let spec = drive("tiny", &all);
    let mut host = Host::new(&spec, Precondition::Sequential, hmb_bytes, 1);
    closed_loop(&mut host, 16, 4000, |rng: &mut Rng| {
        pages(Op::Write, u64::from(rng.below(PAGES)), 1)
    });
    settle(&mut host);
    let counters = host.counters();
    (
        counters.map.dirty_writebacks,
        counters.hmb_read_bytes / 4096,
    )
}

#[test]
fn changed_pages_that_only_host_memory_holds_cross_the_link() {
    let in_host = [("role.map.tiers", "[\"hmb\"]")];
    let (programmed, read) = written_back(&in_host, 64 << 10);
    println!("{programmed} pages programmed, {read} read from host memory");
    // A few have been read and wait until they fill a program operation.
    assert!(programmed > 500, "{programmed}");
    assert!((programmed..=programmed + 32).contains(&read), "{read}");
    // Exclusive: what is changed moves between the two, and leaves from host memory.
    let exclusive = [
        ("role.map.exclusive", "true"),
        ("role.map.size.sram", "\"32KiB\""),
    ];
    let (programmed, read) = written_back(&exclusive, 64 << 10);
    assert!(
        programmed > 500 && read >= programmed,
        "{programmed} {read}"
    );
}

#[test]
fn changed_pages_that_the_drives_own_memory_holds_do_not() {
    let (programmed, read) = written_back(&[("role.map.tiers", "[\"hmb\"]")], 0);
    assert!(programmed > 500 && read == 0, "{programmed} {read}");
    let (programmed, read) = written_back(&[("role.map.tiers", "[\"sram\"]")], 64 << 10);
    assert!(programmed > 500 && read == 0, "{programmed} {read}");
}
