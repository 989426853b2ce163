//! Does garbage collection cost what theory says? Steady state under uniform random writes against analytic
//! models, and the preconditioned state against really writing the drive.

use crate::common::{closed_loop, drive, pages};
use lodger_core::nand::Cause;
use lodger_core::observe::Counters;
use lodger_core::time::MS;
use lodger_core::{DriveSpec, Host, Op, Precondition};

/// Slots of a superblock of the test drive: one die, one plane, 33 pages of 16 KiB.
const BLOCK_SLOTS: f64 = 132.0;

/// A drive whose only write amplification is garbage collection: the map is in DRAM, one stream.
fn collecting_drive(policy: &str, spare: f64, own_stream: &str) -> DriveSpec {
    collecting_drive_of("512MiB", policy, spare, own_stream)
}

fn collecting_drive_of(capacity: &str, policy: &str, spare: f64, own_stream: &str) -> DriveSpec {
    let overprovisioning = (1.0 / (1.0 - spare) - 1.0).to_string();
    let (policy, choices) = policy.split_once(':').unwrap_or((policy, "10"));
    drive(
        "tiny",
        &[
            ("capacity", capacity),
            ("nand.channels", "1"),
            ("nand.dies_per_channel", "1"),
            ("nand.planes", "1"),
            ("nand.pages_per_block", "33"),
            ("nand.one_shot", "false"),
            ("nand.program", "[\"400us\", \"500us\", \"600us\"]"),
            ("ftl.slc_superblocks", "0"),
            ("ftl.overprovisioning", &overprovisioning),
            ("ftl.gc_policy", policy),
            ("ftl.gc_choices", choices),
            ("ftl.gc_own_stream", own_stream),
            ("ftl.wear_dynamic", "false"),
            ("tier.dram.size", "8MiB"),
            ("role.map.tiers", "[\"dram\"]"),
            ("role.write_buffer.size", "64KiB"),
        ],
    )
}

fn random_writes(host: &mut Host, count: u64) {
    let slots = host.drive.ftl().user_slots();
    closed_loop(host, 8, count, |rng| {
        pages(Op::Write, u64::from(rng.below(slots)), 1)
    });
}

/// Write amplification of the next `count` random writes.
fn amplification(host: &mut Host, count: u64) -> f64 {
    let before = host.counters();
    random_writes(host, count);
    written_over_host(&host.counters(), &before)
}

/// Slots programmed over those of them that hold new data.
fn written_over_host(after: &Counters, before: &Counters) -> f64 {
    let total = |c: &Counters| c.programmed_slots_by_cause.iter().sum::<u64>() + c.padded_slots;
    let host = after.programmed_slots_by_cause[0] - before.programmed_slots_by_cause[0];
    (total(after) - total(before)) as f64 / host as f64
}

/// The branch of Lambert's W above -1, for arguments in (-1/e, 0).
fn lambert_w(x: f64) -> f64 {
    let mut w: f64 = -0.5;
    for _ in 0..200 {
        let error = w * w.exp() - x;
        w = (w - error / (w.exp() * (w + 1.0))).max(-0.999_999);
    }
    w
}

/// Desnoyers, SYSTOR 2012, "Analytic modeling of SSD write performance", LRU (first in, first
/// out) garbage collection: the victim's valid share u solves u = exp(-a (1 - u)), a = physical / user.
fn fifo_model(spare: f64) -> f64 {
    let a = 1.0 / (1.0 - spare);
    let u = -lambert_w(-a * (-a).exp()) / a;
    1.0 / (1.0 - u)
}

/// The same, greedy garbage collection of blocks of n pages:
/// X0 = 1/2 - (n / a) W(-(1 + 1/2n) a exp(-(1 + 1/2n) a)), A = n / (n - (X0 - 1)).
fn greedy_model(spare: f64, n: f64) -> f64 {
    let a = 1.0 / (1.0 - spare);
    let k = (1.0 + 0.5 / n) * a;
    let x0 = 0.5 - n / a * lambert_w(-k * (-k).exp());
    n / (n - (x0 - 1.0))
}

#[test]
fn uniform_random_writes_cost_what_desnoyers_predicts() {
    for spare in [0.07, 0.15, 0.28] {
        for (policy, own_stream) in [("greedy", "false"), ("greedy", "true"), ("fifo", "false")] {
            let spec = collecting_drive(policy, spare, own_stream);
            let real_spare = spec.layout().spare_factor();
            let mut host = Host::new(&spec, Precondition::Random, 0, 1);
            let slots = u64::from(host.drive.ftl().user_slots());
            random_writes(&mut host, slots / 2);
            let measured = amplification(&mut host, 2 * slots);
            let model = match policy {
                "fifo" => fifo_model(real_spare),
                _ => greedy_model(real_spare, BLOCK_SLOTS),
            };
            println!(
                "{policy} own={own_stream} spare {real_spare:.3}: {measured:.3}, model {model:.3}"
            );
            let difference = (measured / model - 1.0).abs();
            assert!(
                difference < 0.05,
                "{policy}: {measured:.3} against {model:.3}"
            );
        }
    }
}

/// Superblocks that data fills in steady state: all but those that the pacer keeps as room (`ftl/pacing.rs`: a share
/// 1 - u of one, beyond `gc_start` + 2) and those that the map's valid pages take.
fn filled_superblocks(spec: &DriveSpec, amplification: f64) -> f64 {
    let layout = spec.layout();
    let new_share = 1.0 / amplification;
    let under_way = layout.superblocks_under_way as f64;
    let kept = f64::from(spec.ftl.gc_start_superblocks) + under_way + 2.0 + new_share;
    let map = layout.translation_pages as f64 / BLOCK_SLOTS;
    layout.superblocks() as f64 - kept - map
}

/// A drive of 44 superblocks came to 2.98, and the formula to 3.71, with the spare factor of the layout.
#[test]
fn small_drives_cost_what_theory_says_of_the_superblocks_that_data_fills() {
    for capacity in ["16MiB", "32MiB", "128MiB"] {
        for own_stream in ["false", "true"] {
            let spec = collecting_drive_of(capacity, "greedy", 0.13, own_stream);
            let mut host = Host::new(&spec, Precondition::Random, 0, 1);
            let slots = u64::from(host.drive.ftl().user_slots());
            random_writes(&mut host, 4 * slots);
            let measured = amplification(&mut host, (8 * slots).max(100_000));
            let layout = spec.layout();
            let by_layout = greedy_model(layout.spare_factor(), BLOCK_SLOTS);
            let filled = filled_superblocks(&spec, measured);
            let spare = 1.0 - layout.user_slots as f64 / (filled * BLOCK_SLOTS);
            let model = greedy_model(spare, BLOCK_SLOTS);
            println!(
                "{} superblocks, own={own_stream}: {measured:.3}, model {model:.3} for the {filled:.1} that data \
                 fills, {by_layout:.3} for the layout's {}",
                layout.superblocks(),
                layout.data_superblocks
            );
            let difference = (measured / model - 1.0).abs();
            assert!(difference < 0.015, "{measured:.3} against {model:.3}");
        }
    }
}

#[test]
fn more_choices_come_closer_to_greedy_and_cost_benefit_is_no_worse_than_fifo() {
    let cost = |policy: &str| {
        let spec = collecting_drive(policy, 0.15, "false");
        let mut host = Host::new(&spec, Precondition::Random, 0, 1);
        let slots = u64::from(host.drive.ftl().user_slots());
        random_writes(&mut host, slots);
        amplification(&mut host, 2 * slots)
    };
    let (two, sixteen, greedy) = (cost("d-choices:2"), cost("d-choices:16"), cost("greedy"));
    assert!(two > sixteen * 1.05, "{two:.3} {sixteen:.3}");
    assert!(
        (sixteen / greedy - 1.0).abs() < 0.06,
        "{sixteen:.3} {greedy:.3}"
    );
    assert!(cost("cost-benefit") < cost("fifo") * 1.02);
}

#[test]
fn a_preconditioned_drive_is_in_the_steady_state_of_one_really_written() {
    let spec = collecting_drive("greedy", 0.15, "true");
    let mut formula = Host::new(&spec, Precondition::Random, 0, 1);
    let slots = u64::from(formula.drive.ftl().user_slots());
    let mut written = Host::new(&spec, Precondition::None, 0, 1);
    let mut at = 0;
    closed_loop(&mut written, 8, slots / 32, |_| {
        at += 1;
        pages(Op::Write, (at - 1) * 32, 32)
    });
    random_writes(&mut written, 4 * slots);
    // A fifth of a drive write is too little to reach the steady state from anywhere else.
    let from_formula = amplification(&mut formula, slots / 5);
    let from_writing = amplification(&mut written, slots / 5);
    println!("formula {from_formula:.3} written {from_writing:.3}");
    assert!((from_formula / from_writing - 1.0).abs() < 0.05);
    let sequential = Host::new(&spec, Precondition::Sequential, 0, 1);
    sequential.drive.ftl().check();
    formula.drive.ftl().check();
}

/// Writes pages of which `hot_share` in ten lie in a tenth of the drive; returns their amplification.
fn write_skewed(host: &mut Host, hot_share: u32, count: u64) -> f64 {
    let slots = host.drive.ftl().user_slots();
    let before = host.counters();
    closed_loop(host, 8, count, |rng| {
        let hot = slots / 10;
        let page = match rng.below(10) < hot_share {
            true => rng.below(hot),
            false => hot + rng.below(slots - hot),
        };
        pages(Op::Write, u64::from(page), 1)
    });
    written_over_host(&host.counters(), &before)
}

/// Write amplification of writes of which `hot_share` in ten go to a tenth of the pages.
fn skewed_amplification(policy: &str, own_stream: &str, parted: bool, hot_share: u32) -> f64 {
    let mut spec = collecting_drive(policy, 0.15, own_stream);
    spec.ftl.hot_cold_streams = parted;
    let mut host = Host::new(&spec, Precondition::Random, 0, 1);
    let slots = host.drive.ftl().user_slots();
    write_skewed(&mut host, hot_share, 5 * u64::from(slots));
    write_skewed(&mut host, hot_share, 3 * u64::from(slots))
}

/// First in, first out with hot and cold data in one stream. A page is written anew when the host writes it, at a
/// rate of p / f of its class (a share p of writes goes to a share f of pages), or when the ring of superblocks has come
/// round after time T: so e^-y of its lives end there, y = (p / f) a / A in a ring of a = physical / user pages, and
/// A = 1 + sum of p e^-y / (1 - e^-y). For one class it is [`fifo_model`].
fn fifo_hot_cold_model(spare: f64, classes: &[(f64, f64)]) -> f64 {
    let a = 1.0 / (1.0 - spare);
    let mut amplification = 1.0;
    for _ in 0..10_000 {
        let moved = |&(writes, share): &(f64, f64)| {
            let y = writes / share * a / amplification;
            writes * (-y).exp() / (1.0 - (-y).exp())
        };
        amplification = 1.0 + classes.iter().map(moved).sum::<f64>();
    }
    amplification
}

/// The least that greedy garbage collection of two pools can cost, each with its own share of the spare (Desnoyers, section 5).
fn best_pools_model(spare: f64, [hot, cold]: [(f64, f64); 2]) -> f64 {
    let extra = 1.0 / (1.0 - spare) - 1.0;
    let cost = |(writes, share): (f64, f64), extra: f64| {
        writes * greedy_model(extra / (share + extra), BLOCK_SLOTS)
    };
    let splits = (1..100).map(|part| f64::from(part) / 100.0 * extra);
    let all = splits.map(|part| cost(hot, part) + cost(cold, extra - part));
    all.fold(f64::INFINITY, f64::min)
}

#[test]
fn hot_and_cold_data_cost_what_theory_says() {
    let one = fifo_hot_cold_model(0.15, &[(1.0, 1.0)]);
    assert!((one / fifo_model(0.15) - 1.0).abs() < 1e-6, "{one}");
    let spare = collecting_drive("fifo", 0.15, "false")
        .layout()
        .spare_factor();
    for hot_share in [5, 7, 9] {
        let hot = f64::from(hot_share) / 10.0;
        let classes = [(hot, 0.1), (1.0 - hot, 0.9)];
        let fifo = fifo_hot_cold_model(spare, &classes);
        let measured = skewed_amplification("fifo", "false", false, hot_share);
        println!("{hot:.1} to a tenth, first in, first out: {measured:.3}, model {fifo:.3}");
        assert!((measured / fifo - 1.0).abs() < 0.05);
        let least = best_pools_model(spare, classes);
        let parted = skewed_amplification("greedy", "false", true, hot_share);
        println!("  parted, greedy: {parted:.3}, at best {least:.3}");
        assert!(parted > 0.97 * least && parted < fifo);
    }
}

/// On a full drive, where no address is written for the first time. Without parting (the null) both are
/// the same.
#[test]
fn hot_and_cold_streams_save_writes_on_a_full_drive() {
    for (policy, own_stream, least) in [
        ("cost-benefit", "true", 0.03),
        ("cost-benefit", "false", 0.4),
        ("fifo", "false", 0.25),
        ("greedy", "false", 0.1),
    ] {
        let together = skewed_amplification(policy, own_stream, false, 9);
        let parted = skewed_amplification(policy, own_stream, true, 9);
        println!("{policy}, own stream {own_stream}: together {together:.3}, parted {parted:.3}");
        assert!(
            parted < together * (1.0 - least),
            "{policy}, own stream {own_stream}: {parted:.3} against {together:.3}"
        );
    }
    // Where all pages are alike there is nothing to part, and no harm in trying.
    let together = skewed_amplification("cost-benefit", "true", false, 1);
    let parted = skewed_amplification("cost-benefit", "true", true, 1);
    println!("uniform: together {together:.3}, parted {parted:.3}");
    assert!(
        (parted / together - 1.0).abs() < 0.03,
        "{parted:.3} {together:.3}"
    );
}

/// Pages that garbage collection moves for each that the host writes, nine tenths of them to a tenth of the drive, by a host that leaves
/// time for folding: bursts of 256 KiB, ten a second.
fn moved_in_bursts(slc_superblocks: &str, own_stream: &str) -> f64 {
    let mut spec = collecting_drive("greedy", 0.15, own_stream);
    spec.ftl.slc_superblocks = slc_superblocks.parse().expect("a number");
    let mut host = Host::new(&spec, Precondition::Random, 0, 1);
    let bursts = host.drive.ftl().user_slots() / 64;
    let mut moved_of = |bursts: u32| {
        let before = host.counters();
        for _ in 0..bursts {
            write_skewed(&mut host, 9, 64);
            let until_ps = host.now_ps() + 100 * MS;
            host.advance(until_ps, &mut Vec::new());
        }
        let (after, [gc, new]) = (
            host.counters(),
            [Cause::Gc, Cause::Host].map(|c| c as usize),
        );
        let slots = |cause: usize| {
            let slots = |counters: &Counters| counters.programmed_slots_by_cause[cause];
            (slots(&after) - slots(&before)) as f64
        };
        slots(gc) / slots(new)
    };
    moved_of(4 * bursts);
    moved_of(2 * bursts)
}

/// What came out of the cache lay beside what had been collected, whatever `ftl.gc_own_stream` said: the null is `false`.
#[test]
fn what_is_folded_does_not_lie_beside_what_was_collected() {
    let [without, with, mixed] = [("0", "true"), ("4", "true"), ("4", "false")]
        .map(|(slc_superblocks, own_stream)| moved_in_bursts(slc_superblocks, own_stream));
    println!("moved: {without:.3} without a cache, {with:.3} with it, {mixed:.3} in one stream");
    assert!((with / without - 1.0).abs() < 0.1, "{with:.3} {without:.3}");
    assert!(mixed > 1.15 * with, "{mixed:.3} {with:.3}");
}

/// Write amplification of `tiny` without single-bit flash, where of ten writes `hot_share` go to a tenth of the pages: the mean
/// of three seeds, which differ by one or two per cent.
fn tiny_amplification(sets: &[(&str, &str)], hot_share: u32) -> f64 {
    let plain = [("ftl.slc_superblocks", "0")];
    let spec = drive("tiny", &[&plain, sets].concat());
    let of_seed = |seed| {
        let mut host = Host::new(&spec, Precondition::Random, 256 << 10, seed);
        let slots = host.drive.ftl().user_slots();
        write_skewed(&mut host, hot_share, u64::from(slots));
        let amplification = write_skewed(&mut host, hot_share, 2 * u64::from(slots));
        println!("  {hot_share} of ten, seed {seed}: {amplification:.3}");
        amplification
    };
    (1..=3).map(of_seed).sum::<f64>() / 3.0
}

/// Uniform random writes have no hot and no cold data: a stream for each gains nothing. What it gains on a small drive comes
/// from its superblock, which is more flash, and is gone where the flash is given.
#[test]
fn hot_and_cold_streams_gain_nothing_where_there_is_no_hot_data_and_no_more_flash() {
    let uniform = 1;
    let amplification = |sets: &[(&str, &str)], hot_share: u32| {
        ["false", "true"].map(|parted| {
            let sets = [sets, &[("ftl.hot_cold_streams", parted)]].concat();
            tiny_amplification(&sets, hot_share)
        })
    };
    let pinned = [("nand.blocks_per_plane", "60")];
    let [one, parted] = amplification(&pinned, uniform);
    let [hot_one, hot_parted] = amplification(&pinned, 9);
    let [free_one, free_parted] = amplification(&[], uniform);
    println!(
        "flash given: uniform {one:.3}, parted {parted:.3}; nine tenths to a tenth {hot_one:.3}, {hot_parted:.3}"
    );
    println!("flash by the drive's keys: uniform {free_one:.3}, parted {free_parted:.3}");
    assert!((parted / one - 1.0).abs() < 0.02, "{one} {parted}");
    assert!(hot_parted < 0.98 * hot_one, "{hot_one} {hot_parted}");
    assert!(free_parted < 0.95 * free_one, "{free_one} {free_parted}");
}
