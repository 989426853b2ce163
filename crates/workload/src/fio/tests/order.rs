//! Where do requests lie, how long are they, and in which order?

use super::*;
use std::collections::BTreeMap;

#[test]
fn sequential_covers_the_range_in_order() {
    let log = run(&mut job("rw=read\nbs=128k\noffset=1m\nsize=2m"));
    let expected: Vec<u64> = (0..16).map(|i| MIB + i * 128 * KIB).collect();
    assert_eq!(offsets(&log), expected);
}

#[test]
fn sequential_mix_keeps_a_position_for_each_direction() {
    let log = run(&mut job("rw=rw\nsize=1m"));
    for op in [Op::Read, Op::Write] {
        let own = log.iter().filter(|r| r.op == op).map(|r| r.offset_bytes);
        assert!(
            own.enumerate()
                .all(|(i, offset)| offset == i as u64 * 4 * KIB)
        );
    }
}

#[test]
fn holes_and_backwards() {
    let log = run(&mut job("rw=read:12k\nsize=64k"));
    assert_eq!(offsets(&log), [0, 16 * KIB, 32 * KIB, 48 * KIB]);
    let log = run(&mut job("rw=read:-8k\nsize=16k"));
    assert_eq!(offsets(&log), [0, 8 * KIB, 4 * KIB, 0]);
}

/// Offsets in KiB of a job on a drive of 1 MiB, as those of fio 3.33 on such a file.
fn on_one_mib(options: &str) -> Vec<u64> {
    let include = |_: &str| Err(io::ErrorKind::NotFound.into());
    let text = format!("[job]\n{options}\n");
    let mut workload = parse_with(&text, MIB, 1, &|_| None, &include).unwrap();
    let log = run_with(&mut workload.jobs[0], US);
    log.iter()
        .map(|done| done.request.offset_bytes / KIB)
        .collect()
}

#[test]
fn holes_go_back_to_the_start_at_the_end_of_the_drive_as_in_fio() {
    for (options, count, first, last) in [
        ("rw=write:12k", 256, [0, 16, 32], [992, 1008]),
        ("rw=read:8k", 86, [0, 12, 24], [1008, 1020]),
        ("rw=read:12k\nio_size=2m", 512, [0, 16, 32], [992, 1008]),
        ("rw=write:12k\nloops=2", 512, [0, 16, 32], [992, 1008]),
        ("rw=read:-8k", 256, [0, 1016, 1012], [4, 0]),
        // Within the drive a pass ends at the end of its range.
        ("rw=write:12k\nsize=512k", 32, [0, 16, 32], [480, 496]),
        (
            "rw=write:4k\noffset=512k",
            64,
            [512, 520, 528],
            [1008, 1016],
        ),
        // fio goes back to the offset as counted from the offset.
        (
            "rw=read:1020k\noffset=256k",
            192,
            [256, 512, 512],
            [512, 512],
        ),
        ("rw=read:-8k\noffset=256k", 192, [760, 756, 752], [764, 760]),
        (
            "rw=read:-8k\noffset=512k",
            128,
            [512, 1016, 1012],
            [516, 512],
        ),
    ] {
        let offsets = on_one_mib(options);
        assert_eq!(offsets.len(), count, "{options}");
        assert_eq!(offsets[..3], first, "{options}");
        assert_eq!(offsets[count - 2..], last, "{options}");
    }
}

#[test]
fn requests_of_several_lengths_fill_the_gaps_of_the_random_map() {
    for (options, counts) in [
        // fio 3.33 with eight seeds: 758 to 897, 656 to 718, 1401 to 1502. Without the map half as many.
        ("bssplit=4k/50:64k/50", 730..930),
        ("bsrange=4k-64k", 640..740),
        ("bssplit=4k/30:8k/30:32k/40", 1360..1540),
    ] {
        let mut job = job(&format!("rw=randwrite\nsize=16m\noffset=1m\n{options}"));
        let log = run(&mut job);
        assert!(counts.contains(&log.len()), "{options}: {}", log.len());
        let mut blocks: Vec<u64> = (log.iter())
            .flat_map(|r| (r.offset_bytes..r.offset_bytes + r.length_bytes).step_by(4096))
            .collect();
        blocks.sort_unstable();
        let every: Vec<u64> = (MIB..17 * MIB).step_by(4096).collect();
        assert_eq!(blocks, every, "{options}: every block once");
    }
    // 43 there, and never the last 4 KiB, which are no block of 12 KiB.
    let log = run(&mut job("rw=randread\nbsrange=12k-48k\nsize=1m"));
    assert_eq!(bytes(&log), 1_044_480);
    assert!((36..50).contains(&log.len()), "{}", log.len());
}

#[test]
fn a_map_of_other_lengths_ends_the_pass_as_in_fio() {
    // Reads of 8 KiB in a map of 4 KiB: fio ends when it finds nothing free above in the range (1,485 of
    // 2,048 there). Which request that is, is chance.
    let log = run(&mut job("rw=randread\nbs=8k,4k\nsize=16m"));
    assert!(log.len() < 2048, "{}", log.len());
    let mut seen = offsets(&log);
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), log.len(), "none twice");
    let noted = |options: &str| {
        let text = format!("[j]\nrw=randread\nsize=16m\n{options}\n");
        let files = |_: &str| Err(io::ErrorKind::NotFound.into());
        let workload = parse_with(&text, DRIVE, 1, &|_| None, &files).unwrap();
        workload.jobs[0].note.clone()
    };
    let note = noted("bs=8k,4k").expect("who is not told takes it for all");
    assert!(
        note.contains("blocks of 4096 B") && note.contains("8192 B at least"),
        "{note}"
    );
    for whole in [
        "bs=8k",
        "bs=4k,8k",
        "bs=8k,4k\nnorandommap",
        "bssplit=4k/50:8k/50",
    ] {
        assert_eq!(noted(whole), None, "{whole}");
    }
    // Beyond that, too large a map is refused.
    let error = parse_with(
        "[job]\nrw=randread\nbssplit=512/50:1k/50\n",
        8 << 40,
        1,
        &|_| None,
        &|_| Err(io::ErrorKind::NotFound.into()),
    );
    let text = error.unwrap_err().to_string();
    assert!(text.contains("too large a map"), "{text}");
}

#[test]
fn a_sequential_run_out_of_the_range_ends_the_pass_as_in_fio() {
    // 238 of 1,024 in fio, on a larger file; when is chance.
    let ended = (1..20).filter(|seed| {
        let options = format!("rw=randread:8\nsize=4m\nrandseed={seed}");
        run(&mut job(&options)).len() < 1024
    });
    assert!(ended.count() > 8);
    // At the end of the drive it goes on at random.
    let log = run(&mut job("rw=randread:8"));
    assert_eq!(bytes(&log), DRIVE);
}

#[test]
fn the_random_map_visits_every_block_once_per_pass() {
    for size in ["4k", "8k", "12k", "1m", "1000k", "3m"] {
        for rw in ["randread", "randwrite", "randtrim", "randrw"] {
            let log = run(&mut job(&format!(
                "rw={rw}\noffset=1m\nsize={size}\nloops=2"
            )));
            let half = log.len() / 2;
            for pass in [&log[..half], &log[half..]] {
                let mut seen = offsets(pass);
                seen.sort_unstable();
                let expected: Vec<u64> = (0..half as u64).map(|i| MIB + i * 4 * KIB).collect();
                assert_eq!(seen, expected, "{rw} {size}");
            }
        }
    }
}

#[test]
fn loops_repeat_their_order_only_with_randrepeat() {
    for (option, same) in [("", true), ("randrepeat=0", false), ("randseed=5", false)] {
        let log = run(&mut job(&format!(
            "rw=randread\nsize=1m\nloops=2\n{option}"
        )));
        let offsets = offsets(&log);
        assert_eq!(offsets[..256] == offsets[256..], same, "{option}");
    }
}

/// Few sizes drawn once would be all that a job in order has, pass after pass.
#[test]
fn sizes_of_a_job_in_order_are_drawn_anew_in_each_pass() {
    let sizes = |options: &str| -> Vec<u64> {
        let log = run(&mut job(&format!("rw=write\nsize=1m\n{options}")));
        log.iter().map(|request| request.length_bytes).collect()
    };
    let mean = |sizes: &[u64]| sizes.iter().sum::<u64>() as f64 / sizes.len() as f64 / KIB as f64;
    for seed in 1..5 {
        let options = format!("bssplit=4k/50:64k/50\nrandseed={seed}\nallrandrepeat=1");
        let once = sizes(&options);
        let often = sizes(&format!("{options}\nio_size=16m"));
        assert!(
            (24.0..32.0).contains(&mean(&often)),
            "{seed}: {}",
            mean(&often)
        );
        assert_eq!(often[..once.len()], once);
        assert_ne!(often[once.len()..2 * once.len()], once);
    }
    // The null: what one pass has alone says little.
    let spread =
        (1..20).map(|seed| mean(&sizes(&format!("bssplit=4k/50:64k/50\nrandseed={seed}"))));
    assert!(spread.into_iter().any(|mean| !(24.0..32.0).contains(&mean)));
}

#[test]
fn time_based_passes_differ_in_order_and_cover_the_range() {
    let mut job = job("rw=randread\nsize=64k\ntime_based\nruntime=10ms");
    let log: Vec<Request> = run_with(&mut job, 100 * US)
        .iter()
        .map(|d| d.request)
        .collect();
    assert_eq!(log.len(), 100);
    let passes: Vec<Vec<u64>> = log.chunks(16).map(offsets).collect();
    assert_ne!(passes[0], passes[1]);
    for mut pass in passes.into_iter().filter(|pass| pass.len() == 16) {
        pass.sort_unstable();
        pass.dedup();
        assert_eq!(pass.len(), 16);
    }
}

#[test]
fn without_a_map_blocks_repeat_and_are_uniform() {
    let log = run(&mut job("rw=randread\nnorandommap\nsize=64k\nio_size=64m"));
    let mut counts = BTreeMap::new();
    for request in &log {
        *counts.entry(request.offset_bytes).or_insert(0u32) += 1;
    }
    assert_eq!(counts.len(), 16);
    for count in counts.values() {
        assert!((900..1150).contains(count), "{count}");
    }
}

#[test]
fn the_same_seed_gives_the_same_requests() {
    let text = "[a]\nrw=randrw\nbssplit=4k/50:8k/50\nnumjobs=2\nsize=4m\nrate_iops=9000\n\
                rate_process=poisson";
    let run = |seed| {
        let none = |_: &str| None;
        let include = |_: &str| Err(io::ErrorKind::NotFound.into());
        let mut workload = parse_with(text, DRIVE, seed, &none, &include).unwrap();
        let runs = workload.jobs.iter_mut().map(|job| run_with(job, 50 * US));
        runs.collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    let clones = run(1);
    assert_ne!(clones[0], clones[1], "clones draw their own streams");
}

/// The stream itself: results must not change from one release, or machine, to the next.
#[test]
fn the_stream_is_pinned() {
    let first = |options: &str| {
        let log = run(&mut job(&format!(
            "rw=randread\nsize=32m\nnumber_ios=5\n{options}"
        )));
        log.iter()
            .map(|r| r.offset_bytes / 4096)
            .collect::<Vec<_>>()
    };
    let streams = [
        first(""),
        first("norandommap"),
        first("random_distribution=zipf:1.1"),
        first("random_distribution=pareto:0.2"),
        first("random_distribution=normal:10"),
        first("random_distribution=zoned:90/10:10/90"),
    ];
    assert_eq!(streams, PINNED);
}

const PINNED: [[u64; 5]; 6] = [
    [734, 5668, 4399, 6267, 3729],
    [2496, 76, 5071, 1856, 3473],
    [1202, 3035, 3208, 2037, 127],
    [1202, 5021, 1202, 866, 910],
    [7925, 2624, 686, 5355, 2449],
    [7, 185, 753, 713, 467],
];

#[test]
fn zipf_spreads_its_hot_blocks_and_prefers_few() {
    let log = run(&mut job(
        "rw=randread\nrandom_distribution=zipf:1.2\nio_size=400m",
    ));
    let mut counts = BTreeMap::new();
    for request in &log {
        *counts.entry(request.offset_bytes).or_insert(0u32) += 1;
    }
    let mut hottest: Vec<(u32, u64)> = counts.iter().map(|(o, c)| (*c, *o)).collect();
    hottest.sort_unstable_by(|a, b| b.cmp(a));
    // Ranks 1 and 2 of 16384 blocks: 1 / zeta and 2^-1.2 / zeta.
    let zeta: f64 = (1..=16384).map(|i| f64::from(i).powf(-1.2)).sum();
    for (rank, (count, _)) in (1..=2).zip(&hottest) {
        let law = f64::from(rank).powf(-1.2) / zeta;
        let seen = f64::from(*count) / log.len() as f64;
        assert!((seen / law - 1.0).abs() < 0.05, "{rank}: {seen} {law}");
    }
    let places: Vec<u64> = hottest[..50].iter().map(|h| h.1 * 4 / DRIVE).collect();
    assert!(
        (0..4).all(|quarter| places.contains(&quarter)),
        "{places:?}"
    );
}

#[test]
fn zones_receive_their_share() {
    for (distribution, edge) in [
        ("zoned:80/10:20/90", DRIVE / 10),
        ("zoned:80/10:20/", DRIVE / 10),
        ("zoned_abs:80/1m:20/3m", MIB),
    ] {
        let log = run(&mut job(&format!(
            "rw=randwrite\nrandom_distribution={distribution}\nio_size=200m"
        )));
        let hot = log.iter().filter(|r| r.offset_bytes < edge).count();
        let share = hot as f64 / log.len() as f64;
        assert!((share - 0.8).abs() < 0.01, "{distribution}: {share}");
        if distribution.starts_with("zoned_abs") {
            assert!(log.iter().all(|r| r.offset_bytes < 4 * MIB));
        }
    }
}

#[test]
fn zones_may_differ_by_direction() {
    let log = run(&mut job(
        "rw=randrw\nrandom_distribution=zoned:100/50,100/25\nio_size=40m",
    ));
    let furthest = |op| {
        log.iter()
            .filter(|r| r.op == op)
            .map(|r| r.offset_bytes)
            .max()
    };
    assert!(furthest(Op::Read) < Some(DRIVE / 2) && furthest(Op::Read) > Some(DRIVE / 4));
    assert!(furthest(Op::Write) < Some(DRIVE / 4));
}

#[test]
fn splits_have_their_shares() {
    let log = run(&mut job(
        "rw=randread\nbssplit=4k/10:64k/50:32k/40\nnorandommap\nio_size=500m",
    ));
    for (length, percent) in [(4, 10.0), (64, 50.0), (32, 40.0)] {
        let seen = log
            .iter()
            .filter(|r| r.length_bytes == length * KIB)
            .count();
        let seen = seen as f64 / log.len() as f64 * 100.0;
        assert!((seen - percent).abs() < 1.0, "{length}: {seen}");
    }
    let log = run(&mut job("rw=read\nbssplit=4k/:8k/"));
    let small = log.iter().filter(|r| r.length_bytes == 4 * KIB).count();
    assert!((small as f64 / log.len() as f64 - 0.5).abs() < 0.03);
}

#[test]
fn splits_may_differ_by_direction() {
    let log = run(&mut job(
        "rw=randrw\nbssplit=4k/50:8k/50,16k/50:32k/50\nio_size=10m",
    ));
    for request in log {
        let small = request.length_bytes <= 8 * KIB;
        assert_eq!(small, request.op == Op::Read);
    }
}

#[test]
fn ranges_are_uniform_multiples_of_their_lower_end() {
    let log = run(&mut job(
        "rw=randread\nbsrange=4k-16k\nnorandommap\nio_size=100m",
    ));
    for length in [4, 8, 12, 16] {
        let seen = log
            .iter()
            .filter(|r| r.length_bytes == length * KIB)
            .count();
        let seen = seen as f64 / log.len() as f64;
        assert!((seen - 0.25).abs() < 0.02, "{length}: {seen}");
    }
    let log = run(&mut job("rw=write\nbsrange=4k-64k\nsize=1m"));
    assert_eq!(bytes(&log), MIB, "the last request is cut to fit");
}

#[test]
fn lengths_by_order_rather_than_direction() {
    let log = run(&mut job(
        "rw=randread\npercentage_random=50\nbs=64k,4k\nbs_is_seq_rand=1\nnorandommap\nio_size=100m",
    ));
    let random = log.iter().filter(|r| r.length_bytes == 4 * KIB).count();
    assert!((random as f64 / log.len() as f64 - 0.5).abs() < 0.05);
}

#[test]
fn partly_random_jobs_go_on_where_they_were() {
    let followed = |log: &[Request]| {
        let follows =
            |pair: &&[Request]| pair[1].offset_bytes == pair[0].offset_bytes + pair[0].length_bytes;
        log.windows(2).filter(follows).count() as f64 / log.len() as f64
    };
    for (options, share) in [
        ("percentage_random=100", 0.0),
        ("percentage_random=25", 0.75),
        ("percentage_random=0", 1.0),
    ] {
        let log = run(&mut job(&format!("rw=randread\nnorandommap\n{options}")));
        assert!((followed(&log) - share).abs() < 0.03, "{options}");
    }
    let log = run(&mut job("rw=randread:8\nnorandommap"));
    assert!((followed(&log) - 7.0 / 8.0).abs() < 0.01);
    let log = run(&mut job(
        "rw=randread:4\nrw_sequencer=identical\nnorandommap",
    ));
    let same = log
        .windows(2)
        .filter(|p| p[0].offset_bytes == p[1].offset_bytes);
    assert!((same.count() as f64 / log.len() as f64 - 0.75).abs() < 0.01);
}

#[test]
fn trims_come_before_writes_of_the_same_range() {
    for options in ["rw=trimwrite\nbs=16k", "rw=randtrimwrite\nbs=4k,4k,16k"] {
        let log = run(&mut job(&format!("{options}\nsize=1m")));
        for pair in log.chunks(2) {
            assert_eq!((pair[0].op, pair[1].op), (Op::Trim, Op::Write));
            assert_eq!(pair[0].offset_bytes, pair[1].offset_bytes);
            assert_eq!(pair[0].length_bytes, 16 * KIB);
            assert_eq!(pair[1].length_bytes, 16 * KIB);
        }
    }
}

/// fio 3.33: trim 0 16k, write 0 4k, trim 16k 16k, write 4k, 8k, 12k, 16k, trim 32k 16k ...: 256 and 65.
#[test]
fn in_order_writes_of_another_length_follow_the_trims() {
    let log = run(&mut job("rw=trimwrite\nbs=4k,4k,16k\nsize=1m"));
    let begin: Vec<(Op, u64, u64)> = (log.iter().take(8))
        .map(|r| (r.op, r.offset_bytes / KIB, r.length_bytes / KIB))
        .collect();
    let (t, w) = (Op::Trim, Op::Write);
    let expected = [
        (t, 0, 16),
        (w, 0, 4),
        (t, 16, 16),
        (w, 4, 4),
        (w, 8, 4),
        (w, 12, 4),
        (w, 16, 4),
        (t, 32, 16),
    ];
    assert_eq!(begin, expected);
    assert_eq!(count(&log, Op::Write), 253, "no trim fits behind the range");
}

/// fio's `lfsr` draws every block once whatever `norandommap` says, and cuts nothing.
#[test]
fn lfsr_needs_no_map() {
    let options = "rw=randwrite\nnorandommap\nrandom_generator=lfsr\nsize=1m";
    let log = run(&mut job(options));
    let mut seen = offsets(&log);
    seen.sort_unstable();
    seen.dedup();
    assert_eq!((log.len(), seen.len()), (256, 256));
    // 112 there, of all lengths, and more bytes than the range only by the last.
    let log = run(&mut job(&format!("{options}\nbssplit=4k/50:16k/50")));
    let mut seen = offsets(&log);
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), log.len());
    assert!(bytes(&log) >= MIB && bytes(&log) < MIB + 16 * KIB);
    assert!((85..125).contains(&log.len()), "{}", log.len());
    // It has no map that would keep the order of writing: read back by address.
    let log = run(&mut job(
        "rw=randwrite\nrandom_generator=lfsr\nsize=64k\nverify=crc32c",
    ));
    assert!(offsets(&log[16..]).is_sorted());
}

#[test]
fn clones_have_their_own_queue_and_range() {
    let mut workload =
        parsed("[a]\nnumjobs=3\nsize=1m\noffset=1m\noffset_increment=2m\n[b]\nsize=4k");
    let starts: Vec<(u16, u64)> = workload
        .jobs
        .iter_mut()
        .map(|job| run(job)[0])
        .map(|request| (request.queue, request.offset_bytes))
        .collect();
    assert_eq!(starts, [(0, MIB), (1, 3 * MIB), (2, 5 * MIB), (0, 0)]);
}

#[test]
fn blockalign_turns_the_map_off_and_sets_the_grain() {
    let log = run(&mut job("rw=randread\nbs=4k\nblockalign=64k\nio_size=16m"));
    assert!(log.iter().all(|r| r.offset_bytes % (64 * KIB) == 0));
    let log = run(&mut job("rw=randread\nbs=16k\nblockalign=512\nio_size=16m"));
    assert!(log.iter().any(|r| r.offset_bytes % 4096 == 512));
}
