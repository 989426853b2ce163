//! How many requests does a job issue? The numbers are those of fio 3.33 on a 1 MiB file.

use super::*;

/// `(reads, writes, trims)` on a 1 MiB drive.
fn counts(options: &str) -> (usize, usize, usize) {
    let text = format!("[job]\n{options}\n");
    let mut workload = parse_with(&text, MIB, 1, &|_| None, &|_| {
        Err(io::ErrorKind::NotFound.into())
    })
    .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let job = &mut workload.jobs[0];
    let expected = job.requests_expected;
    let log: Vec<Request> = run_with(job, US).iter().map(|d| d.request).collect();
    check(&log, MIB);
    if let Some(expected) = expected {
        assert_eq!(log.len() as u64, expected, "requests expected of {options}");
    }
    (
        count(&log, Op::Read),
        count(&log, Op::Write),
        count(&log, Op::Trim),
    )
}

#[test]
fn as_many_as_fio() {
    for (options, expected) in [
        ("", (256, 0, 0)),
        ("rw=read\nsize=512k\nloops=3", (384, 0, 0)),
        ("rw=read\nsize=512k\nloops=3\nio_size=1m", (384, 0, 0)),
        ("rw=write\nsize=512k\nloops=3\nio_size=1m", (0, 384, 0)),
        ("rw=write\nsize=512k\nloops=3\nio_size=256k", (0, 192, 0)),
        ("rw=randwrite\nsize=512k\nloops=3\nio_size=1m", (0, 384, 0)),
        ("rw=randread\nsize=512k\nloops=3\nio_size=1m", (384, 0, 0)),
        (
            "rw=randread\nsize=512k\nloops=3\nio_size=1m\nnorandommap",
            (768, 0, 0),
        ),
        ("rw=randread\nsize=512k\nio_size=1300k", (325, 0, 0)),
        ("rw=randread\nsize=512k\nnumber_ios=7", (7, 0, 0)),
        ("rw=read\nsize=10k\nloops=2", (5, 0, 0)),
        ("rw=randread\nsize=10k\nloops=2", (4, 0, 0)),
        ("rw=read\nsize=10k\noffset=4k", (3, 0, 0)),
        ("rw=write\nsize=64k\nnumber_ios=5\nloops=2", (0, 10, 0)),
        ("rw=write\nsize=64k\nnumber_ios=50", (0, 16, 0)),
        ("rw=read:4k\nsize=64k", (8, 0, 0)),
        ("rw=read:-8k\nsize=64k", (16, 0, 0)),
        ("rw=write:4k\nsize=64k\nloops=2", (0, 16, 0)),
        ("rw=write\nsize=50%", (0, 128, 0)),
        ("rw=write\nsize=50%\noffset=75%", (0, 64, 0)),
        ("rw=write\noffset=75%", (0, 64, 0)),
        ("rw=write\nsize=50%\nio_size=50%", (0, 64, 0)),
        ("rw=write\nsize=512k\nio_size=50%", (0, 64, 0)),
        ("rw=read\nsize=64k\noffset=10%", (16, 0, 0)),
        ("rw=randread\nbs=8k\nba=4k\nsize=64k", (8, 0, 0)),
        ("rw=randread\nbs=4k\nba=8k\nsize=64k", (16, 0, 0)),
        (
            "rw=randread\nrandom_distribution=zipf:1.2\nsize=64k",
            (16, 0, 0),
        ),
        (
            "rw=randread\nrandom_distribution=zoned:50/10:30/20:20/70\nsize=64k",
            (16, 0, 0),
        ),
        ("rw=trimwrite\nsize=64k", (0, 16, 16)),
        ("rw=randtrimwrite\nsize=64k", (0, 16, 16)),
        ("rw=trim\nsize=64k\nbs=4k,4k,16k", (0, 0, 4)),
        ("rw=randtrim\nsize=64k", (0, 0, 16)),
        ("rw=write\nsize=512k\nbs=4k,64k", (0, 8, 0)),
        ("rw=write\nsize=512k\nbs=64k,", (0, 128, 0)),
    ] {
        assert_eq!(counts(options), expected, "{options}");
    }
}

#[test]
fn a_mix_moves_as_many_bytes_as_fio() {
    for (options, blocks) in [
        ("rw=randrw\nsize=512k\nio_size=1300k", 325),
        ("rw=rw\nsize=512k\nio_size=1300k", 325),
        ("rw=rw\nsize=512k\nloops=2", 256),
        ("rw=randrw\nsize=512k\nrwmixread=90", 128),
    ] {
        let (reads, writes, _) = counts(options);
        assert_eq!(reads + writes, blocks, "{options}");
        assert!(reads > 0 && writes > 0);
    }
}

#[test]
fn what_ends_a_pass_depends_on_the_engine_as_in_fio() {
    // fio counts the bytes of a pass only where requests are queued.
    let options = "rw=randread\nsize=512k\nloops=3\nio_size=1m\nnorandommap";
    assert_eq!(counts(&format!("{options}\nioengine=psync")), (768, 0, 0));
    assert_eq!(counts(&format!("{options}\nioengine=libaio")), (384, 0, 0));
}

/// Writes and flushes.
fn flushes(options: &str) -> (usize, usize) {
    let log = run(&mut job(options));
    (count(&log, Op::Write), count(&log, Op::Flush))
}

#[test]
fn flushes_follow_every_nth_write() {
    for (options, psync, libaio) in [
        // The flush due after the last write is not issued.
        ("fsync=4", 3, 3),
        ("fdatasync=4", 3, 3),
        ("fsync=4\nfdatasync=2", 7, 7),
        ("fsync=4\nfdatasync=6", 4, 4),
        ("fsync=5", 3, 3),
        // Between passes it is: at the end where only the end of the range ends a pass, else at the start of the next.
        ("fsync=4\nloops=2", 7, 7),
        ("fsync=4\nloops=3", 11, 11),
        ("fsync=8\nend_fsync=1\nloops=2", 4, 4),
        ("fsync_on_close=1", 1, 1),
    ] {
        for (engine, expected) in [("", psync), ("psync", psync), ("libaio", libaio)] {
            let options = match engine {
                "" => format!("rw=write\nsize=64k\n{options}"),
                _ => format!("rw=write\nsize=64k\nioengine={engine}\n{options}"),
            };
            assert_eq!(flushes(&options).1, expected, "{options}");
        }
    }
    assert_eq!(flushes("rw=write\nsize=96k\nfsync=4\nfdatasync=6"), (24, 7));
    // Not all of the bytes fit: the pass ends for lack of an offset, and the flush comes first.
    assert_eq!(flushes("rw=randwrite\nsize=10k\nfsync=1"), (2, 2));
    assert_eq!(flushes("rw=read\nsize=64k\nfsync=1\nend_fsync=1"), (0, 0));
    // What is trimmed before it is written again is no write.
    for rw in ["trimwrite", "randtrimwrite"] {
        let of = |fsync: u32| flushes(&format!("rw={rw}\nsize=64k\nfsync={fsync}"));
        assert_eq!((of(0), of(1), of(4)), ((16, 0), (16, 15), (16, 3)), "{rw}");
    }
    // With lengths of their own both come to the end of the range.
    let (writes, found) = flushes("rw=trimwrite\nbs=4k,4k,8k\nsize=64k\nfsync=1");
    assert_eq!((writes, 0), flushes("rw=trimwrite\nbs=4k,4k,8k\nsize=64k"));
    assert!(writes - found <= 1, "{writes} {found}");
    let log = run(&mut job("rw=write\nsize=32k\nfsync=2\niodepth=8"));
    let ops: Vec<Op> = log.iter().map(|request| request.op).collect();
    assert_eq!(ops[..4], [Op::Write, Op::Write, Op::Flush, Op::Write]);
}

#[test]
fn libaio_waits_for_a_flush_and_io_uring_does_not() {
    let starts = |engine: &str| -> Vec<u64> {
        let options = format!("rw=write\nsize=16k\nfsync=2\niodepth=8\nioengine={engine}");
        let log = run_with(&mut job(&options), 10 * US);
        log.iter().map(|done| done.submitted_ps / US).collect()
    };
    assert_eq!(starts("libaio"), [0, 0, 0, 10, 10]);
    assert_eq!(starts("io_uring"), [0; 5]);
}

#[test]
fn a_mixed_job_flushes_after_writes_alone() {
    let log = run(&mut job("rw=randrw\nsize=4m\nfsync=10"));
    let mut writes = 0;
    for pair in log.windows(2) {
        writes += usize::from(pair[0].op == Op::Write);
        let due = pair[0].op == Op::Write && writes % 10 == 0;
        assert_eq!(due, pair[1].op == Op::Flush);
    }
    assert!(writes > 400);
    assert_eq!(count(&log, Op::Flush), writes / 10);
}

#[test]
fn the_mix_is_as_asked() {
    for (option, percent) in [
        ("rwmixread=70", 70.0),
        ("rwmixwrite=90", 10.0),
        ("rwmixread=0", 0.0),
        ("rwmixread=100", 100.0),
        ("", 50.0),
    ] {
        let log = run(&mut job(&format!("rw=randrw\nio_size=100m\n{option}")));
        let share = count(&log, Op::Read) as f64 / log.len() as f64 * 100.0;
        assert!((share - percent).abs() < 1.0, "{option}: {share}");
    }
}

#[test]
fn sync_writes_are_fua_and_nothing_else_is() {
    for (option, fua) in [
        ("sync=1", true),
        ("sync=dsync", true),
        ("sync=sync", true),
        ("sync=none", false),
        ("sync=0", false),
    ] {
        let log = run(&mut job(&format!("rw=randrw\nsize=1m\nfsync=9\n{option}")));
        for request in log {
            assert_eq!(request.fua, fua && request.op == Op::Write);
        }
    }
}

/// Requests, different offsets, and how often the busiest offset is asked for, on a drive of 64 MiB in blocks of 64 KiB.
fn asked(options: &str) -> (usize, usize, usize) {
    let log = run(&mut job(&format!("bs=64k\niodepth=4\n{options}")));
    let mut times = std::collections::BTreeMap::new();
    for request in &log {
        *times.entry(request.offset_bytes).or_insert(0) += 1;
    }
    let most = times.values().copied().max().unwrap_or(0);
    (log.len(), times.len(), most)
}

#[test]
fn the_size_of_the_file_says_where_and_size_says_how_much() {
    // fio 3.33 on a block device of 64 MiB, its log of requests counted.
    for (options, psync, libaio) in [
        ("filesize=16m", (256, 256, 1), (256, 256, 1)),
        ("filesize=16m\nsize=8m", (128, 128, 1), (128, 128, 1)),
        ("filesize=16m\nsize=32m", (256, 256, 1), (256, 256, 1)),
        ("filesize=16m\nsize=50%", (128, 128, 1), (128, 128, 1)),
        ("filesize=16m\noffset=4m", (192, 192, 1), (192, 192, 1)),
        (
            "filesize=16m\noffset=4m\nsize=8m",
            (128, 128, 1),
            (128, 128, 1),
        ),
        (
            "filesize=16m\nsize=8m\nloops=3",
            (384, 256, 2),
            (384, 128, 3),
        ),
        (
            "filesize=16m\nsize=8m\nio_size=24m",
            (384, 256, 2),
            (384, 128, 3),
        ),
        (
            "filesize=16m\nsize=8m\nio_size=12m",
            (192, 192, 1),
            (192, 128, 2),
        ),
        (
            "filesize=16m\nsize=8m\nio_size=40m",
            (640, 256, 3),
            (640, 128, 5),
        ),
        // A share of nothing that fio says.
        (
            "filesize=16m\nsize=8m\nio_size=5%",
            (128, 128, 1),
            (128, 128, 1),
        ),
        (
            "filesize=16m\nsize=50%\nio_size=50%",
            (64, 64, 1),
            (64, 64, 1),
        ),
        ("fill_device=1", (1024, 1024, 1), (1024, 1024, 1)),
    ] {
        for rw in ["read", "randread", "randwrite"] {
            let options = format!("{options}\nrw={rw}");
            let of = |engine: &str| asked(&format!("{options}\nioengine={engine}"));
            assert_eq!(of("psync"), psync, "{options}, psync");
            assert_eq!(of("libaio"), libaio, "{options}, libaio");
        }
    }
}

/// Offsets in blocks.
fn blocks(options: &str, bytes: u64) -> Vec<u64> {
    let log = run(&mut job(options));
    log.iter()
        .map(|request| request.offset_bytes / bytes)
        .collect()
}

/// Blocks from `first` on, four to each zone.
fn zones(firsts: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let zone = |first| first..first + 4;
    firsts.into_iter().flat_map(zone).collect()
}

#[test]
fn strided_zones_lie_where_fio_has_them() {
    // fio 3.33 on a block device of 64 MiB, by its log of offsets in blocks of 256 KiB.
    let of = |rest: &str| {
        blocks(
            &format!("rw=read\nbs=256k\nzonemode=strided\nzonesize=1m\n{rest}"),
            256 * KIB,
        )
    };
    let round: Vec<u64> = (0..8).map(|zone| zone * 32).collect();
    for engine in ["psync", "libaio\niodepth=2"] {
        let found = of(&format!("zoneskip=7m\nioengine={engine}"));
        assert_eq!(found.len(), 256);
        assert_eq!(
            found,
            zones(round.iter().copied().cycle().take(64)),
            "{engine}"
        );
    }
    let found = of("zonerange=2m\nzoneskip=6m\nsize=32m\nioengine=psync");
    assert_eq!(found, zones(round.iter().copied().cycle().take(32)));
    // A zone is gone round in as long as it takes.
    let found = of("zonesize=2m\nzonerange=1m\nzoneskip=7m\nsize=8m\noffset=4m");
    assert_eq!(found, zones([16, 16, 48, 48, 80, 80, 112, 112]));
    let five = [0, 32, 64, 96, 128];
    let found = of("zoneskip=7m\nsize=5m\nloops=2\nioengine=libaio\niodepth=2");
    assert_eq!(found, zones(five.into_iter().chain(five)));
    let found = of("zoneskip=7m\nsize=5m\nloops=2\nioengine=psync");
    assert_eq!(found, zones(round.iter().copied().cycle().take(10)));
}

#[test]
fn files_have_their_turns() {
    // fio 3.33 with four files of 256 KiB: block 0 of each, then block 1; of three files of a third, five blocks each.
    let of = |rest: &str| blocks(&format!("bs=64k\n{rest}"), 64 * KIB);
    let turns = |files: u64, share: u64| -> Vec<u64> {
        let turn = |block| (0..files).map(move |file| file * share + block);
        (0..share).flat_map(turn).collect()
    };
    assert_eq!(of("size=1m\nnrfiles=4"), turns(4, 4));
    assert_eq!(of("filesize=256k\nnr_files=4"), turns(4, 4));
    assert_eq!(of("filesize=256k\nnrfiles=4\nsize=512k"), turns(4, 4)[..8]);
    assert_eq!(of("size=1m\nnrfiles=3"), turns(3, 5));
    let mut random = of("size=1m\nnrfiles=4\nrw=randread");
    let files: Vec<u64> = random.iter().map(|block| block / 4).collect();
    assert_eq!(files, [0, 1, 2, 3].repeat(4));
    random.sort_unstable();
    assert_eq!(random, (0..16).collect::<Vec<u64>>());
    // With a name there is one file.
    assert_eq!(
        of("size=1m\nnrfiles=4\nfilename=/dev/x"),
        (0..16).collect::<Vec<u64>>()
    );
    // By time each begins anew.
    let asked = of("size=1m\nnrfiles=4\ntime_based\nruntime=10ms");
    assert_eq!(asked[..32], [turns(4, 4), turns(4, 4)].concat());
}

#[test]
fn a_file_of_a_range_of_sizes_has_one_of_them() {
    let blocks: Vec<usize> = (0..20)
        .map(|seed| {
            let text = "[job]\nbs=64k\nfilesize=4m-16m";
            let no_file = |_: &str| Err(io::ErrorKind::NotFound.into());
            let mut workload = parse_with(text, DRIVE, seed, &|_| None, &no_file).unwrap();
            run(&mut workload.jobs[0]).len()
        })
        .collect();
    assert!(blocks.iter().all(|blocks| (64..=256).contains(blocks)));
    assert!(blocks.iter().any(|n| *n != blocks[0]));
    // As in fio, one with the drive's size in it is that.
    assert_eq!(asked("filesize=4m-100m").0, 1024);
}
