//! Do reads of several pages gain from map entries kept by the host? One entry helps those whose pages
//! lie side by side only; JEDEC's version 2.0 sends an entry for each page ahead of the read. Random
//! reads in chunks as in figure 9 of Jeong et al. (HotStorage 2017), on their drive.

use crate::common::{closed_loop, drive, latency, pages, settle};
use lodger_core::Host;
use lodger_core::observe::HpbCounters;
use lodger_core::{Op, Precondition};

const MIB: u64 = 1 << 20;

/// Chunks per second of random reads by 8 threads within 256 MiB of a drive written at random, all of
/// whose entries the host has; and what was counted meanwhile.
fn chunks(sets: &[(&str, &str)], pages_each: u64, requests: u64) -> (f64, HpbCounters) {
    let small = [("capacity", "2GiB"), ("role.map.size.sram", "16KiB")];
    let spec = drive("galaxy-s7", &[&small, sets].concat());
    let mut host = Host::new(&spec, Precondition::Random, 0, 1);
    let count = (256 * MIB / 4096 / pages_each) as u32;
    let mut read = |rng: &mut lodger_core::rng::Rng| {
        pages(
            Op::Read,
            u64::from(rng.below(count)) * pages_each,
            pages_each,
        )
    };
    // The first read has the driver fetch what is pinned.
    closed_loop(&mut host, 8, 16, &mut read);
    settle(&mut host);
    let before = host.counters().hpb;
    let seconds = closed_loop(&mut host, 8, requests, &mut read);
    let mut counted = host.counters().hpb;
    counted.used -= before.used;
    counted.hits -= before.hits;
    counted.write_buffers -= before.write_buffers;
    (requests as f64 / seconds, counted)
}

const JEDEC: [(&str, &str); 2] = [("hpb.protocol", "jedec"), ("hpb.pinned_regions", "16")];

#[test]
fn with_an_entry_for_each_page_chunks_gain_more_than_with_one() {
    for (kib, at_least) in [(4, 1.5), (8, 1.2), (16, 1.1), (32, 1.05), (64, 1.0)] {
        let each = kib / 4;
        let two = [&JEDEC[..], &[("hpb.version", "2.0")]].concat();
        let (off, _) = chunks(&[("hpb.enabled", "false")], each, 4_000);
        let (by_paper, _) = chunks(&[], each, 4_000);
        let (by_one, one) = chunks(&JEDEC, each, 4_000);
        let (by_each, counted) = chunks(&two, each, 4_000);
        let gain = |on: f64| 100.0 * (on / off - 1.0);
        println!(
            "{kib:3} KiB: off {off:6.0}/s; paper {:+5.1} %, jedec 1.0 {:+5.1} %, 2.0 {:+5.1} %; {} of {} reads by entries",
            gain(by_paper),
            gain(by_one),
            gain(by_each),
            counted.used,
            counted.hits,
        );
        assert!(by_each > at_least * off, "{kib} KiB");
        if each == 1 {
            assert_eq!(counted.write_buffers, 0, "one entry comes with the read");
            assert!((by_one / by_each - 1.0).abs() < 1e-9);
            continue;
        }
        assert_eq!(
            (one.hits, one.write_buffers),
            (0, 0),
            "version 1.0: one block"
        );
        assert_eq!(counted.write_buffers, 4_000);
        assert!(by_each > by_one && by_each > by_paper);
    }
}

#[test]
fn what_sending_entries_ahead_costs() {
    // A read of four pages on an idle drive, its map at hand or not, with entries sent or not.
    let time = |version: &'static str, blocks: &'static str, buffer: &'static str| {
        let sets = [
            ("capacity", "2GiB"),
            ("hpb.version", version),
            ("hpb.max_blocks", blocks),
            ("hpb.write_buffer", buffer),
        ];
        let spec = drive("galaxy-s7", &[&JEDEC, &sets[..]].concat());
        let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
        latency(&mut host, pages(Op::Read, 40_000, 1));
        settle(&mut host);
        let far = latency(&mut host, pages(Op::Read, 8, 4));
        settle(&mut host);
        let near = latency(&mut host, pages(Op::Read, 12, 4));
        (far, near, host.counters().hpb)
    };
    let (_, near, hpb) = time("1.0", "255", "5us");
    assert_eq!(hpb.write_buffers, 0);
    let (far_two, near_two, hpb) = time("2.0", "255", "5us");
    assert_eq!(hpb.write_buffers, 2);
    // Also where the map is at hand: 5 us of core, checks of four entries, and the link twice. The
    // second submission is over by then.
    let extra = near_two - near;
    println!("{} ps more for entries that are not needed", extra);
    assert!((7_000_000..10_000_000).contains(&extra), "{extra}");
    let (far_slow, _, _) = time("2.0", "255", "9us");
    assert_eq!(far_slow - far_two, 4_000_000);
    let (_, short, hpb) = time("2.0", "3", "5us");
    assert_eq!(
        (hpb.write_buffers, short),
        (0, near),
        "beyond `hpb.max_blocks`"
    );
}
