//! Does each role take its time from the memory it stands on, and does what stands there survive what that
//! memory survives?

use crate::common::{closed_loop, drive, latency, pages, settle};
use lodger_core::{DriveSpec, Host, Op, Precondition};

/// Four of these keys put the role under test on its memory.
fn tiny(sets: &[(&str, &str)]) -> DriveSpec {
    let mut all = vec![
        ("tier.dram.size", "16MiB"),
        ("tier.dram.access", "1us"),
        ("tier.dram.rate", "1GB/s"),
        ("tier.cxl.size", "16MiB"),
        ("tier.cxl.access", "3us"),
        ("tier.cxl.rate", "2GB/s"),
        ("tier.pm.size", "1MiB"),
        ("tier.pm.access", "5us"),
        ("tier.pm.rate", "4GB/s"),
    ];
    all.extend(sets);
    drive("tiny", &all)
}

/// Latency of a second read of a page, which the read cache answers.
fn cached_read_ps(spec: &DriveSpec) -> u64 {
    let mut host = Host::new(spec, Precondition::Sequential, 64 << 20, 1);
    latency(&mut host, pages(Op::Read, 5, 1));
    let ps = latency(&mut host, pages(Op::Read, 5, 1));
    assert_eq!(host.counters().read_cache_hits, 1);
    ps
}

/// A drive with DRAM charged DRAM for each page that came from any memory.
#[test]
fn a_cached_page_takes_the_time_of_the_memory_the_cache_is_on() {
    let at = |tier: &str| cached_read_ps(&tiny(&[("role.read_cache.tier", tier)]));
    // 10 ns in SRAM, which passes data on as it comes.
    let nowhere_ps = at("sram") - 10_000;
    assert_eq!(at("dram") - nowhere_ps, 1_000_000 + 4_096_000);
    assert_eq!(at("cxl") - nowhere_ps, 3_000_000 + 2_048_000);
}

#[test]
fn a_page_without_data_is_read_from_no_memory() {
    let read_ps = |sets: &[(&str, &str)]| {
        let mut host = Host::new(&tiny(sets), Precondition::None, 0, 1);
        latency(&mut host, pages(Op::Read, 5, 1))
    };
    let plain_ps = read_ps(&[]);
    assert_eq!(plain_ps, read_ps(&[("tier.dram.access", "100us")]));
    assert_eq!(plain_ps, read_ps(&[("tier.dram.rate", "1MB/s")]));
    assert_eq!(
        plain_ps,
        read_ps(&[
            ("role.write_buffer.tier", "pm"),
            ("tier.pm.access", "100us")
        ])
    );
}

#[test]
fn a_buffered_page_is_read_from_the_memory_of_the_buffer() {
    let read_ps = |tier: &str| {
        let spec = tiny(&[("role.write_buffer.tier", tier)]);
        let mut host = Host::new(&spec, Precondition::None, 0, 1);
        latency(&mut host, pages(Op::Write, 5, 1));
        let ps = latency(&mut host, pages(Op::Read, 5, 1));
        assert_eq!(host.counters().buffer_read_hits, 1);
        ps
    };
    let nowhere_ps = read_ps("sram") - 10_000;
    assert_eq!(read_ps("dram") - nowhere_ps, 1_000_000 + 4_096_000);
    assert_eq!(read_ps("pm") - nowhere_ps, 5_000_000 + 1_024_000);
    assert_eq!(read_ps("cxl") - nowhere_ps, 3_000_000 + 2_048_000);
}

/// Nothing read `tier.sram.rate`.
#[test]
fn sram_takes_no_more_than_its_rate() {
    let mb_s = |rate: &str| {
        let spec = tiny(&[
            ("role.read_cache.tier", "sram"),
            ("tier.sram.rate", rate),
            ("controller.cores", "8"),
        ]);
        let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
        closed_loop(&mut host, 8, 64, |rng| {
            pages(Op::Read, u64::from(rng.below(8)), 1)
        });
        let before_ps = host.now_ps();
        closed_loop(&mut host, 8, 2_000, |rng| {
            pages(Op::Read, u64::from(rng.below(8)), 1)
        });
        2_000.0 * 4096.0 / ((host.now_ps() - before_ps) as f64 / 1e6)
    };
    let (slow, fast) = (mb_s("50MB/s"), mb_s("8GB/s"));
    assert!((slow / 50.0 - 1.0).abs() < 0.02, "{slow} MB/s");
    assert!(fast > 10.0 * slow, "{fast} MB/s");
}

/// A write of 1 MiB into an idle drive's buffer in a memory of that rate, and one of 4 KiB right behind it.
fn write_ps(tier: &str, rate: &str) -> [u64; 2] {
    let spec = tiny(&[
        ("role.write_buffer.tier", tier),
        ("role.write_buffer.size", "4MiB"),
        ("tier.sram.size", "16MiB"),
        (&format!("tier.{tier}.rate"), rate),
    ]);
    let mut host = Host::new(&spec, Precondition::None, 0, 1);
    let large = pages(Op::Write, 256, 256);
    [large, pages(Op::Write, 5, 1)].map(|request| latency(&mut host, request))
}

/// All of a write was booked on the memory as its last byte came, and what came next waited for that: 131 us for 4 KiB on an rc100-480.
#[test]
fn what_comes_behind_a_large_write_does_not_wait_for_a_memory_that_keeps_up() {
    let [_, alone_ps] = write_ps("sram", "1000GB/s");
    assert_eq!(write_ps("sram", "8GB/s")[1], alone_ps);
    let moved_ps = 4096 * 1000 / 8;
    assert_eq!(write_ps("dram", "8GB/s")[1], alone_ps + moved_ps);
}

/// A write of 1 MiB went into DRAM once all of it was there: a 970-pro took 1.53 GB/s of them, one at a time.
#[test]
fn a_large_write_is_stored_while_it_comes() {
    let piece_ps = |bytes_per_s: u64| (32 << 10) * 1_000_000_000_000 / bytes_per_s;
    let [through_ps, _] = write_ps("sram", "1000GB/s");
    for gb_per_s in [8, 16] {
        let [stored_ps, _] = write_ps("dram", &format!("{gb_per_s}GB/s"));
        assert_eq!(stored_ps - through_ps, piece_ps(gb_per_s * 1_000_000_000));
    }
    // A memory slower than the link takes its time, from the first piece on; one that passes data on, from the first byte.
    let moved_ps = (1 << 20) * 10_000;
    for tier in ["sram", "dram"] {
        let [stored_ps, behind_ps] = write_ps(tier, "100MB/s");
        println!("{tier}: {stored_ps} ps, then {behind_ps}");
        assert!(stored_ps > moved_ps && stored_ps < moved_ps + through_ps);
        assert!(behind_ps < 4096 * 10_000 + through_ps);
    }
}

#[test]
fn a_map_over_cxl_costs_each_look_up_a_load_and_no_traffic_on_the_link() {
    let read = |tier: &str, access: &str| {
        let spec = tiny(&[
            ("role.map.tiers", &format!("[\"{tier}\"]")),
            ("tier.cxl.access", access),
            ("role.read_cache.tier", "sram"),
        ]);
        let mut host = Host::new(&spec, Precondition::Sequential, 64 << 20, 1);
        let ps = latency(&mut host, pages(Op::Read, 7_000, 1));
        assert_eq!(host.counters().hmb_read_bytes, 0);
        ps
    };
    let own_ps = read("dram", "3us");
    assert_eq!(read("cxl", "1us"), own_ps);
    assert_eq!(read("cxl", "3us") - own_ps, 2_000_000);
}

/// They once took none of it: drives that shared 1 kB/s looked up as many entries as ever.
#[test]
fn look_ups_take_no_more_than_the_rate_of_their_memory() {
    let reads_per_s = |sharers: &str| {
        let spec = tiny(&[
            ("role.map.tiers", "[\"cxl\"]"),
            ("tier.cxl.rate", "64MB/s"),
            ("tier.cxl.sharers", sharers),
        ]);
        let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
        let slots = host.drive.ftl().user_slots();
        closed_loop(&mut host, 16, 2_000, |rng| {
            pages(Op::Read, u64::from(rng.below(slots)), 1)
        });
        2_000.0 / (host.now_ps() as f64 / 1e12)
    };
    // A million lines a second are no limit, a thousand are.
    assert!(reads_per_s("1") > 10_000.0);
    let shared = reads_per_s("1000");
    assert!((shared / 1_000.0 - 1.0).abs() < 0.05, "{shared}");
}

#[test]
fn drives_that_share_cxl_memory_have_each_a_part_of_its_rate() {
    let at = |sharers: &str| {
        cached_read_ps(&tiny(&[
            ("role.read_cache.tier", "cxl"),
            ("tier.cxl.sharers", sharers),
        ]))
    };
    assert_eq!(at("4") - at("1"), 3 * 2_048_000);
}

#[test]
fn a_write_buffer_on_cxl_survives_a_power_cut_where_the_memory_does() {
    for (persistent, survives) in [("true", true), ("false", false)] {
        let spec = tiny(&[
            ("role.write_buffer.tier", "cxl"),
            ("tier.cxl.persistent", persistent),
        ]);
        let mut host = Host::new(&spec, Precondition::None, 0, 1);
        latency(&mut host, pages(Op::Write, 5, 1));
        host.power_cut();
        settle(&mut host);
        let is_there = !matches!(
            host.drive.source(lodger_core::ids::Lpn(5)),
            lodger_core::device::Source::Unwritten
        );
        assert_eq!(is_there, survives, "persistent = {persistent}");
    }
}

/// Lines of the sources below a folder that name a memory, tests and comments aside.
fn naming_a_memory(folder: &std::path::Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            naming_a_memory(&path, found);
            continue;
        }
        if path.ends_with("tests.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            let names = line.split("Tier::").skip(1).any(|after| {
                let is_variant = after.starts_with(char::is_uppercase);
                is_variant && !after.starts_with("ALL") && !line.contains("Found::Tier::")
            });
            if names && !is_comment {
                found.push(format!(
                    "{}:{}: {}",
                    path.display(),
                    number + 1,
                    line.trim()
                ));
            }
        }
    }
}

/// What a memory is like stands in `memory/`: no other code of the model decides by its name.
#[test]
fn only_memory_and_the_description_of_drives_tell_memories_apart() {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(source).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("memory") && !path.ends_with("spec") {
            naming_a_memory(&path, &mut found);
        }
    }
    assert!(found.is_empty(), "memories named:\n{}", found.join("\n"));
}

/// What a write's data, on its way to the drive, costs a read whose map entry stands on `tiers`.
fn slowed_by_data_ps(tiers: &str, link: &str) -> u64 {
    let sets = [
        ("role.map.tiers", tiers),
        ("link.rate", link),
        ("tier.sram.rate", "1000GB/s"),
    ];
    let read = pages(Op::Read, 500, 1);
    let warm = || {
        let mut host = Host::new(
            &drive("rc100-480", &sets),
            Precondition::Sequential,
            38 << 20,
            1,
        );
        latency(&mut host, pages(Op::Read, 6, 1));
        settle(&mut host);
        host
    };
    let alone_ps = latency(&mut warm(), read);
    let mut host = warm();
    host.submit(pages(Op::Write, 1 << 20, 8));
    // Its command is there, and its data is asked for.
    let at_ps = host.now_ps() + 10_000_000;
    host.advance(at_ps, &mut Vec::new());
    host.submit(read);
    let done = settle(&mut host);
    let read = done
        .iter()
        .find(|done| done.op == Op::Read)
        .expect("it was read");
    (read.completed_ps - read.submitted_ps).saturating_sub(alone_ps)
}

/// Host memory is reached over one link: map entries that come from there wait behind the data of writes, which comes from there,
/// too, as far as it has been asked for: 16 KiB. Entries in the drive's own memory do not, and where the link takes no time, nobody does.
#[test]
fn look_ups_in_host_memory_wait_for_payload_on_the_link() {
    let slow = slowed_by_data_ps("[\"hmb\"]", "100MB/s");
    let own = slowed_by_data_ps("[\"sram\"]", "100MB/s");
    let quick = slowed_by_data_ps("[\"hmb\"]", "256GB/s");
    println!("{slow} {own} {quick}");
    // 16 KiB in packets of 256 + 24 bytes at 100 MB/s take 179 us, of 32 KiB that the write has; it waited for all of that once.
    assert!((175_000_000..185_000_000).contains(&slow), "{slow}");
    assert!(own < slow / 20, "{own}");
    assert!(quick < slow / 20, "{quick}");
}

/// A buffer that got less host memory than it stages without any was slower with it than without: at 64 KiB six times.
#[test]
fn more_host_memory_never_takes_a_buffer_away() {
    let spec = drive(
        "tiny",
        &[
            ("tier.hmb.preferred", "8MiB"),
            ("tier.hmb.min", "4KiB"),
            ("role.map.tiers", "sram"),
            ("role.write_buffer.tier", "hmb"),
            ("role.write_buffer.size", "1MiB"),
            ("ftl.slc_superblocks", "0"),
        ],
    );
    let rate = |granted: u64| {
        let mut host = Host::new(&spec, Precondition::None, granted, 1);
        let slots = host.drive.ftl().user_slots();
        let seconds = closed_loop(&mut host, 8, 8000, |rng| {
            pages(Op::Write, u64::from(rng.below(slots)), 1)
        });
        (8000.0 / seconds, host.drive.hmb_data_bytes())
    };
    let (without, none) = rate(0);
    assert_eq!(none, 0);
    for kib in [64, 256, 384] {
        assert_eq!(rate(kib << 10), (without, 0), "{kib} KiB");
    }
    let (with, bytes) = rate(1 << 20);
    assert_eq!(bytes, 1 << 20);
    assert!(with > 1.1 * without, "{with} {without}");
}
