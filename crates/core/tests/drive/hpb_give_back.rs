//! What is lost while the kernel has memory back that the host's driver kept map entries in?

use crate::common::{closed_loop, pages, settle};
use crate::hpb_boot::{GROUPS, host, phone};
use lodger_core::spec::parse;
use lodger_core::{Host, Op, Precondition};

fn read_at_random(host: &mut Host, count: u64) {
    closed_loop(host, 1, count, |rng| {
        pages(Op::Read, u64::from(rng.below(GROUPS as u32 * 4096)), 1)
    });
}

/// The share of reads with an entry while `run` reads.
fn hits_of(host: &mut Host, run: impl FnOnce(&mut Host)) -> f64 {
    let before = host.counters();
    run(host);
    let after = host.counters();
    let reads = after.completions - before.completions;
    (after.hpb.hits - before.hpb.hits) as f64 / reads as f64
}

/// The kernel wants half of the memory back, and gives it again later.
#[test]
fn memory_given_back_costs_its_share_of_hits_until_it_comes_back() {
    let mut host = host(&[]);
    let hits = |host: &mut Host| hits_of(host, |host| read_at_random(host, 4_000));
    assert_eq!(hits(&mut host), 1.0);
    assert!(host.set_hpb_groups(GROUPS as u32 / 2));
    assert_eq!(host.counters().hpb.evictions, GROUPS / 2);
    let half = hits(&mut host);
    assert!((0.45..0.55).contains(&half), "{half}");
    assert!(host.set_hpb_groups(GROUPS as u32));
    settle(&mut host);
    assert_eq!(hits(&mut host), 1.0, "fetched when nothing else was asked");
    // With JEDEC's protocol the drive says how many regions there are.
    let spec = phone(&[("hpb.protocol", "jedec")]);
    let mut jedec = Host::new(&spec, Precondition::Sequential, 0, 1);
    assert!(!jedec.set_hpb_groups(1));
}

/// As a drive file has it: half of the memory is with the kernel from 0.1 to 0.3 s.
#[test]
fn a_run_gives_memory_back_when_its_drive_file_says_so() {
    const MS: u64 = 1_000_000_000;
    let half = ("hpb.give_back", "512KiB");
    let at = ("hpb.give_back_at", "100ms");
    let hits = |host: &mut Host, until_ps: u64| {
        hits_of(host, |host| {
            while host.now_ps() < until_ps {
                read_at_random(host, 100);
            }
        })
    };
    let mut host = self::host(&[half, at, ("hpb.give_back_for", "200ms")]);
    assert_eq!(hits(&mut host, 90 * MS), 1.0, "not yet");
    hits(&mut host, 110 * MS);
    let given = hits(&mut host, 290 * MS);
    assert!((0.45..0.55).contains(&given), "{given}");
    hits(&mut host, 310 * MS);
    settle(&mut host);
    assert_eq!(hits(&mut host, 400 * MS), 1.0, "it has it again");
    // The null: for good.
    let mut host = self::host(&[half, at]);
    hits(&mut host, 310 * MS);
    settle(&mut host);
    let given = hits(&mut host, 400 * MS);
    assert!((0.4..0.6).contains(&given), "{given}");
}

#[test]
fn host_memory_that_cannot_be_given_back_says_why() {
    const S7: &str = include_str!("../../../../drives/galaxy-s7.toml");
    let told = |sets: &[(&str, &str)]| {
        parse(S7, "galaxy-s7.toml", sets, &|_| None)
            .unwrap_err()
            .to_string()
    };
    let all = told(&[("hpb.host_cache", "1MiB"), ("hpb.give_back", "1MiB")]);
    assert!(
        all.contains("`hpb.give_back` must leave one group (16KiB) of `hpb.host_cache`"),
        "{all}"
    );
    let jedec = told(&[("hpb.protocol", "jedec"), ("hpb.give_back", "1MiB")]);
    assert!(
        jedec.contains("`hpb.give_back` must be 0 unless `hpb.protocol` is \"paper\""),
        "{jedec}"
    );
    let late = told(&[("hpb.give_back_at", "7200s")]);
    assert!(
        late.contains("`hpb.give_back_at` must be between 0"),
        "{late}"
    );
}
