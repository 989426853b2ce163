//! What do small reads in order cost, several in flight? They lie side by side in flash pages, so that they wait for each other on one die
//! where reads at random spread over all. Each had an array read of its own: a bg4 gave 36 k reads a second, 16 in flight,
//! where it gives 175 k at random. No real drive is slower in order.

use crate::common::drives::{DRIVES, drive};
use crate::common::{closed_loop, latency, pages, settle};
use lodger_core::rng::Rng;
use lodger_core::time::transfer_ps;
use lodger_core::{Completion, DriveSpec, Host, Op, Precondition};

/// Reads a second of `length` pages each, in order or at random, in a span whose map is at hand.
fn rate(spec: &DriveSpec, depth: u32, length: u64, in_order: bool) -> f64 {
    const SPAN: u64 = 4096;
    let mut host = Host::new(spec, Precondition::Sequential, 128 << 20, 1);
    for page in (0..SPAN).step_by(256) {
        latency(&mut host, pages(Op::Read, page, 1));
    }
    let mut rng = Rng::new(5);
    let (mut at, count) = (0, 6000);
    let seconds = closed_loop(&mut host, depth, count, |_| {
        at = match in_order {
            true => (at + length) % SPAN,
            false => rng.next_u64() % (SPAN / length) * length,
        };
        pages(Op::Read, at, length)
    });
    count as f64 / seconds
}

/// As many in flight as one or two pages of all planes hold keep one or two dies busy, and their buses: up to a third is lost to that.
#[test]
fn small_reads_in_order_are_as_fast_as_at_random() {
    let mut wrong = Vec::new();
    for (name, _) in DRIVES {
        // Cached data would be found in order, and not at random.
        let spec = drive(
            name,
            &[("role.read_cache.size", "0B"), ("hpb.enabled", "false")],
        );
        for (depth, length) in [(2, 1), (4, 1), (16, 1), (64, 1), (8, 2)] {
            let [in_order, random] = [true, false].map(|how| rate(&spec, depth, length, how));
            let ratio = in_order / random;
            println!("{name}, {depth} of {length} pages: {ratio:.2}");
            if ratio < 0.66 {
                wrong.push(format!("{name}, {depth} of {length} pages: {ratio:.2}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// One die of one plane whose page register is held until the data has left it; nothing else takes time in turn.
fn one_die(more: &[(&str, &str)]) -> DriveSpec {
    let sets = [
        ("nand.dies_per_channel", "1"),
        ("nand.planes", "1"),
        ("nand.channels", "1"),
        ("capacity", "64MiB"),
        ("nand.read", "60us"),
        ("nand.cache_read", "false"),
        ("role.read_cache.size", "0B"),
        ("role.map.tiers", "[\"sram\"]"),
        ("role.map.size.sram", "512KiB"),
        ("controller.cores", "8"),
        ("ftl.slc_superblocks", "0"),
    ];
    drive("tiny", &[&sets, more].concat())
}

/// When reads of these pages that are submitted at once are done, in this order, less what the first takes, in picoseconds.
fn after_the_first(spec: &DriveSpec, lpns: &[u64]) -> Vec<u64> {
    let mut host = Host::new(spec, Precondition::Sequential, 0, 1);
    latency(&mut host, pages(Op::Read, 4000, 1));
    settle(&mut host);
    for (tag, &lpn) in lpns.iter().enumerate() {
        let mut request = pages(Op::Read, lpn, 1);
        request.tag = tag as u32;
        host.submit(request);
    }
    let mut done: Vec<Completion> = settle(&mut host);
    done.sort_by_key(|completion| completion.tag);
    let first_ps = done[0].completed_ps;
    let each = done.iter().map(|completion| completion.completed_ps);
    each.map(|ps| ps.wrapping_sub(first_ps)).skip(1).collect()
}

/// What a read holds a die of [`one_die`] for, with and without the array.
fn held_ps(spec: &DriveSpec) -> (u64, u64) {
    let nand = &spec.nand;
    let slot_ps = transfer_ps(u64::from(nand.codeword_bytes), nand.channel_bytes_per_s);
    let joined_ps = nand.command_ps + slot_ps;
    (joined_ps + nand.read_ps[0], joined_ps)
}

/// Pages 0 to 3 lie in one flash page, 4 in the next.
#[test]
fn a_read_of_the_page_in_the_register_takes_a_command_and_its_transfer() {
    let spec = one_die(&[]);
    let (read_ps, joined_ps) = held_ps(&spec);
    assert_eq!(after_the_first(&spec, &[0, 1]), [joined_ps]);
    assert_eq!(after_the_first(&spec, &[0, 4]), [read_ps]);
    // What came between has taken the register.
    assert_eq!(after_the_first(&spec, &[0, 4, 1]), [read_ps, 2 * read_ps]);
    assert_eq!(
        after_the_first(&spec, &[3, 2, 0, 5]),
        [joined_ps, 2 * joined_ps, 2 * joined_ps + read_ps]
    );
}

/// The register holds nothing for who comes once the data has left: the next request of a host that waits for each.
#[test]
fn a_page_is_read_again_once_its_data_has_left_the_die() {
    let mut host = Host::new(&one_die(&[]), Precondition::Sequential, 0, 1);
    latency(&mut host, pages(Op::Read, 4000, 1));
    let [first, second] = [0, 1].map(|lpn| latency(&mut host, pages(Op::Read, lpn, 1)));
    assert_eq!(first, second);
}

/// A read that is tried again reads the array with shifted references, whatever the register holds.
#[test]
fn tries_of_a_read_are_array_reads() {
    let spec = one_die(&[
        ("nand.ecc", "1ns"),
        ("nand.ageing.endurance", "3000"),
        ("nand.ageing.errors.base", "0.07"),
        ("nand.ageing.correctable", "0.01"),
        ("nand.ageing.decode", "1ns"),
        ("nand.ageing.retries", "3"),
        ("nand.ageing.retry_gain", "0.5"),
    ]);
    let (read_ps, _) = held_ps(&spec);
    let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
    let before_ps = host.now_ps();
    host.submit(pages(Op::Read, 0, 1));
    host.submit(pages(Op::Read, 1, 1));
    let done = settle(&mut host);
    let last_ps = done.iter().map(|completion| completion.completed_ps).max();
    let tries_ps = last_ps.unwrap() - before_ps;
    // Of four tries each, the second read joins the first try alone.
    assert_eq!(host.counters().ageing.retries, 6);
    assert!(tries_ps >= 7 * read_ps, "{tries_ps} of {read_ps}");
}
