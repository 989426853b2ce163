//! Dies of a channel share its bus, and writes share the buffer with those before them. Does anyone wait for longer because there is more of
//! either?

use crate::common::drives::drive;
use crate::common::{pages, settle};
use crate::steady::Latencies;
use lodger_core::rng::Rng;
use lodger_core::{DriveSpec, Host, Op, Precondition, Request};

const MS: f64 = 1e9;
const S_PS: u64 = 1_000_000_000_000;
const PAGES: u64 = 16;

fn spec(keys: &[(&str, &str)]) -> DriveSpec {
    let common = [
        ("nand.planes", "2"),
        ("nand.pages_per_block", "96"),
        ("nand.page_size", "16KiB"),
        ("tier.sram.size", "96MiB"),
        ("role.map.size.sram", "4MiB"),
    ];
    drive("tiny", &[&common, keys].concat())
}

fn write(spec: &DriveSpec, rng: &mut Rng) -> Request {
    let page = rng.next_u64() % (spec.capacity_bytes / 4096 - PAGES);
    pages(Op::Write, page, PAGES)
}

/// Latencies of writes of 64 KiB that come at a rate, whatever the drive does.
fn at_a_rate(spec: &DriveSpec, each_ps: u64, length_ps: u64) -> Latencies {
    let mut host = Host::new(spec, Precondition::Random, 0, 1);
    let (mut rng, mut done, mut seen) = (Rng::new(3), Vec::new(), Latencies::default());
    for number in 1..=length_ps / each_ps {
        host.submit(write(spec, &mut rng));
        host.advance(number * each_ps, &mut done);
    }
    done.extend(settle(&mut host));
    for completion in done {
        seen.add(completion.completed_ps - completion.submitted_ps);
    }
    seen
}

/// Latencies of so many writes of 64 KiB at a time.
fn in_flight(spec: &DriveSpec, depth: u32, length_ps: u64) -> Latencies {
    let mut host = Host::new(spec, Precondition::Random, 0, 1);
    let (mut rng, mut done, mut seen) = (Rng::new(3), Vec::new(), Latencies::default());
    (0..depth).for_each(|_| host.submit(write(spec, &mut rng)));
    while host.now_ps() < length_ps {
        host.advance_to_completion(u64::MAX, &mut done);
        for completion in done.drain(..) {
            seen.add(completion.completed_ps - completion.submitted_ps);
            host.submit(write(spec, &mut rng));
        }
    }
    settle(&mut host);
    seen
}

/// Each die that folds or collects had a page on the bus and its register taken until it was loaded, and what the host wrote had its share of
/// both: 20 MB/s for 4 s waited for up to 2 ms with two dies on a channel, for 66 with eight and 169 with sixteen.
#[test]
fn more_dies_on_a_channel_do_not_make_writes_wait_behind_what_is_moved() {
    for (dies, capacity, cache) in [
        ("8", "1GiB", "2"),
        ("16", "2GiB", "2"),
        ("8", "1GiB", "0"),
        ("16", "2GiB", "0"),
    ] {
        let keys = [
            ("capacity", capacity),
            ("nand.planes", "4"),
            ("nand.channels", "1"),
            ("nand.dies_per_channel", dies),
            ("nand.program", "500us"),
            ("nand.channel_mt_s", "200"),
            ("nand.one_shot", "false"),
            ("ftl.overprovisioning", "0.28"),
            ("ftl.slc_superblocks", cache),
            ("role.write_buffer.size", "128KiB"),
        ];
        let mut seen = at_a_rate(&spec(&keys), S_PS / 300, 4 * S_PS);
        let longest_ms = seen.longest_ps() as f64 / MS;
        println!("{dies} dies, {cache}: {longest_ms:.2} ms");
        assert!(longest_ms < 8.0, "{dies} dies, {cache}: {longest_ms} ms");
    }
}

/// Where flash gets slower, as garbage is to be collected again, a buffer is fuller than its pace says. The larger it was, the longer writes were
/// given room at a quarter of the rate at which it came back: up to 46 ms in 64 MiB, where in 1 MiB none took more than 19.
#[test]
fn a_larger_buffer_does_not_make_the_longest_write_much_longer() {
    let longest_ps = |buffer: &str| {
        let keys = [
            ("capacity", "512MiB"),
            ("nand.channels", "2"),
            ("nand.dies_per_channel", "2"),
            ("nand.program", "1ms"),
            ("nand.one_shot", "true"),
            ("nand.erase", "5ms"),
            ("nand.channel_mt_s", "800"),
            ("ftl.overprovisioning", "0.12"),
            ("ftl.slc_superblocks", "0"),
            ("role.write_buffer.size", buffer),
        ];
        let mut seen = in_flight(&spec(&keys), 16, 5 * S_PS);
        let longest_ps = seen.longest_ps();
        println!("{buffer}: {:.2} ms", longest_ps as f64 / MS);
        longest_ps
    };
    let small_ps = longest_ps("1MiB");
    for buffer in ["4MiB", "16MiB", "64MiB"] {
        let large_ps = longest_ps(buffer);
        assert!(
            large_ps * 10 < small_ps * 17,
            "{buffer}: {large_ps} ps, {small_ps} in 1 MiB"
        );
    }
}
