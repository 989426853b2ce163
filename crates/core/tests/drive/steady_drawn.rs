//! Is a drive that nobody thought of silent in steady state? Geometries, times, policies and memories drawn at random within what
//! drives have; random writes on the full drive.
//!
//! `LODGER_CASES` drives are tried from `LODGER_SEED` on; each prints a line with what was drawn.

use crate::common::drives::text;
use crate::steady::{Arrival, Load, Seen, run};
use crate::steady_state::{SILENCE_PS, longest_operation_ps};
use lodger_core::DriveSpec;
use lodger_core::rng::Rng;
use lodger_core::spec::SLOT_BYTES;

/// Drives in the ordinary tests.
const CASES: u32 = 24;
const REQUESTS: u64 = 30_000;
const HMB_BYTES: u64 = 128 << 20;

pub type Sets = Vec<(&'static str, String)>;

fn one<'a>(rng: &mut Rng, of: &[&'a str]) -> &'a str {
    of[rng.below(of.len() as u32) as usize]
}

/// The shape of the flash and the capacity.
fn shape(rng: &mut Rng, sets: &mut Sets) {
    let bits = [1, 2, 3, 3, 4][rng.below(5) as usize];
    let cell = ["slc", "mlc", "tlc", "qlc"][bits as usize - 1];
    let (from_us, to_us) =
        [(200, 400), (600, 1_200), (1_000, 2_500), (2_000, 5_000)][bits as usize - 1];
    let program_us = from_us + rng.below(to_us - from_us);
    let one_shot = rng.below(4) != 0;
    let (channels, dies) = (1 + rng.below(4), 1 + rng.below(4));
    let planes = [1, 2, 2, 4][rng.below(4) as usize];
    let page_kib = [4, 8, 16, 16][rng.below(4) as usize];
    let word_lines = [2, 3, 4, 6, 8, 12, 16, 24, 32, 64][rng.below(10) as usize];
    let pages = bits * word_lines;
    let superblock_kib = channels * dies * planes * page_kib * pages;
    let superblocks = (60 + rng.below(240)).min((1 << 20) / superblock_kib);
    let mut put = |key, value: String| sets.push((key, value));
    put("nand.cell", cell.to_owned());
    put("nand.read", "60us".to_owned());
    put("nand.one_shot", one_shot.to_string());
    put("nand.program", format!("{program_us}us"));
    put("nand.erase", format!("{}ms", 2 + rng.below(9)));
    put("nand.channels", channels.to_string());
    put("nand.dies_per_channel", dies.to_string());
    put("nand.planes", planes.to_string());
    put("nand.page_size", format!("{page_kib}KiB"));
    put("nand.pages_per_block", pages.to_string());
    put("capacity", format!("{}KiB", superblock_kib * superblocks));
}

fn draw(rng: &mut Rng) -> Sets {
    let mut sets = Sets::new();
    shape(rng, &mut sets);
    let flags = &["true", "false"];
    for (key, of) in [
        (
            "ftl.overprovisioning",
            &["0.07", "0.1", "0.15", "0.28", "0.4"][..],
        ),
        (
            "ftl.gc_policy",
            &["greedy", "greedy", "cost-benefit", "d-choices", "fifo"],
        ),
        ("ftl.gc_own_stream", flags),
        ("ftl.hot_cold_streams", &["false", "false", "true"]),
        ("ftl.slc_superblocks", &["0", "0", "2", "4"]),
        ("nand.cache_program", flags),
        ("tier.sram.size", &["64MiB"]),
        ("role.map.size.sram", &["8KiB", "64KiB", "2MiB"]),
        (
            "role.write_buffer.size",
            &["512KiB", "1MiB", "4MiB", "16MiB"],
        ),
        (
            "role.write_buffer.acknowledge",
            &["buffered", "buffered", "buffered", "programmed"],
        ),
    ] {
        sets.push((key, one(rng, of).to_owned()));
    }
    sets
}

/// As they are given to the command.
pub fn shown(sets: &Sets) -> String {
    let sets: Vec<String> = sets
        .iter()
        .map(|(key, value)| format!("--set {key}={value}"))
        .collect();
    sets.join(" ")
}

fn build(sets: &Sets) -> Option<DriveSpec> {
    let sets: Vec<(&str, &str)> = sets
        .iter()
        .map(|(key, value)| (*key, value.as_str()))
        .collect();
    let file = text("tiny").expect("a drive of the collection");
    let parsed = lodger_core::spec::parse(&file, "drawn", &sets, &text);
    parsed.ok().map(|parsed| parsed.spec)
}

/// The next drive that can be, with what makes it.
pub fn drawn(rng: &mut Rng) -> (Sets, DriveSpec) {
    loop {
        let sets = draw(rng);
        if let Some(spec) = build(&sets) {
            return (sets, spec);
        }
    }
}

/// The longest silence that the drive's own operations explain: an erase or program, and what passes until it is new
/// data's turn again on a drive that hardly gets to it.
fn bound_ps(spec: &DriveSpec, seen: &Seen) -> u64 {
    let nand = &spec.nand;
    let program_slots = (nand.program_bytes() / SLOT_BYTES) as f64;
    let turn_ps = program_slots / seen.iops() * 1e12;
    SILENCE_PS + longest_operation_ps(spec) + turn_ps as u64
}

#[test]
fn no_drive_drawn_at_random_falls_silent() {
    let cases = u64::from(lodger_testing::cases(CASES));
    let first = lodger_testing::seed().unwrap_or(1);
    let mut wrong = Vec::new();
    for seed in first..first + cases {
        let mut rng = Rng::new(seed);
        let (sets, spec) = drawn(&mut rng);
        let depth = [1, 16, 64][rng.below(3) as usize];
        let load = Load {
            arrival: Arrival::Depth(depth),
            reads_percent: 0,
            requests: REQUESTS,
        };
        let mut seen = run(&spec, HMB_BYTES, load);
        let bound_ps = bound_ps(&spec, &seen);
        let (mean_ps, iops) = (seen.writes.mean_ps(), seen.iops());
        let p9999_ps = seen.writes.quantile_ps(0.9999) as f64;
        let (part, share) = seen.narrowest();
        let found = format!(
            "{seed}: silent {:.1} ms of {:.1}, p99.99 {:.1} times the mean of {:.2} ms, {depth} in flight, {iops:.0} writes/s, \
             {part} {:.0} %, amplification {:.2}: {}",
            seen.silence_ps as f64 / 1e9,
            bound_ps as f64 / 1e9,
            p9999_ps / mean_ps,
            mean_ps / 1e9,
            share * 100.0,
            seen.amplification,
            shown(&sets)
        );
        println!("{found}");
        if seen.silence_ps > bound_ps {
            wrong.push(found);
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {cases}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
