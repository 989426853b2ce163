//! Is what `verify` reads back what fio reads back? Counts of fio 3.33 with libaio, `direct=1`,
//! `bs=4k`, `size=4m`, `iodepth=8`.

use super::*;

/// Reads, writes and flushes of a job.
fn counts(options: &str) -> (usize, usize, usize) {
    let mut job = job(&format!("bs=4k\nsize=4m\niodepth=8\n{options}"));
    let log = run_with(&mut job, 10 * US);
    let count = |op| log.iter().filter(|done| done.request.op == op).count();
    (count(Op::Read), count(Op::Write), count(Op::Flush))
}

#[test]
fn verify_reads_back_as_much_as_fio_does() {
    let cases = [
        ("rw=write\nverify=crc32c", 1024, 1024),
        ("rw=randwrite\nverify=crc32c", 1024, 1024),
        ("rw=write\nverify=crc32c\ndo_verify=0", 0, 1024),
        ("rw=write\nverify=0", 0, 1024),
        ("rw=write\nverify=crc32c\nloops=2", 2048, 2048),
        ("rw=read\nverify=crc32c", 1024, 0),
        // What is read back counts against `io_size` and `number_ios`, between passes.
        ("rw=write\nverify=crc32c\nio_size=10m", 2048, 2048),
        ("rw=write\nverify=crc32c\nnumber_ios=100", 100, 100),
        ("rw=write\nverify=crc32c\nnumber_ios=100\nloops=3", 300, 300),
        ("rw=write\nverify=crc32c\nruntime=1s", 1024, 1024),
        // The runtime ends before the pass: nothing is read back.
        ("rw=write\nverify=crc32c\nruntime=1s\nrate=2m", 0, 512),
    ];
    for (options, reads, writes) in cases {
        let (r, w, _) = counts(options);
        assert_eq!((r, w), (reads, writes), "{options}");
    }
}

#[test]
fn a_pattern_alone_asks_for_verification() {
    for (options, reads) in [
        ("verify_pattern=0xdeadbeef", 1024),
        ("verify=0\nverify_pattern=0xff", 0),
        ("verify_pattern=0xff\nverify=0", 0),
        ("verify_pattern=0xff\nverify=crc32c", 1024),
        ("verify_pattern=0xff\ndo_verify=0", 0),
    ] {
        assert_eq!(
            counts(&format!("rw=write\n{options}")).0,
            reads,
            "{options}"
        );
    }
    assert!(try_parse("[job]\nrw=write\nverify_pattern=\n").is_err());
}

#[test]
fn verification_never_flushes_and_by_time_needs_an_engine_that_queues() {
    let options = "rw=write\nverify=crc32c\ntime_based\nruntime=20ms";
    let (reads, writes, flushes) = counts(&format!("{options}\nioengine=libaio"));
    assert!(reads > 5 * 1024 && writes > reads, "{reads} {writes}");
    assert_eq!(flushes, 0);
    // 2,000 writes and no read in fio: such an engine counts no bytes, and the range begins again.
    for engine in ["ioengine=psync", "iodepth=1"] {
        let (reads, writes, flushes) = counts(&format!("{options}\n{engine}"));
        assert_eq!((reads, writes, flushes), (0, 2000, 0), "{engine}");
    }
    // Not by time, both read back.
    assert_eq!(
        counts("rw=write\nverify=crc32c\nioengine=psync"),
        (1024, 1024, 0)
    );
    // All loops are one pass, read back once (246 of 768), or three (471).
    let options = "rw=randwrite\nsize=1m\nnorandommap\nverify=crc32c\nloops=3";
    let (reads, writes, _) = counts(&format!("{options}\nioengine=psync"));
    assert!(writes == 768 && (225..256).contains(&reads), "{reads}");
    let (reads, writes, _) = counts(&format!("{options}\nioengine=libaio"));
    assert!(writes == 768 && (450..520).contains(&reads), "{reads}");
}

#[test]
fn writes_without_a_map_are_read_back_once_each() {
    // fio: 1024 writes, 639 reads; 2560 and 939.
    let (reads, writes, _) = counts("rw=randwrite\nverify=crc32c\nnorandommap");
    assert_eq!(writes, 1024);
    assert!((610..685).contains(&reads), "{reads}");
    let (reads, writes, _) = counts("rw=randwrite\nverify=crc32c\nnorandommap\nio_size=10m");
    assert_eq!(writes, 2560);
    assert!((905..965).contains(&reads), "{reads}");
    // A mix reads besides: 496 and 528 to 528 there.
    let (reads, writes, _) = counts("rw=randrw\nverify=crc32c");
    assert_eq!(reads, 1024, "{writes} writes");
}

#[test]
fn by_time_each_pass_is_read_back_and_then_the_next_begins() {
    // 10 us each, 8 at a time: a pass of 1024 and its reading take 2.56 ms.
    let (reads, writes, _) = counts("rw=write\nverify=crc32c\ntime_based\nruntime=20ms");
    assert!(writes > 5 * 1024 && reads >= 5 * 1024, "{reads} {writes}");
    assert!(
        reads <= writes && writes - reads <= 1024 + 8,
        "{reads} {writes}"
    );
}

#[test]
fn order_and_flush_of_reading_back_are_fios() {
    let offsets = |options: &str, op| -> Vec<u64> {
        let mut job = job(&format!("bs=4k\nsize=64k\noffset=1m\n{options}"));
        let log = run_with(&mut job, 10 * US);
        let of = log.iter().filter(|done| done.request.op == op);
        of.map(|done| done.request.offset_bytes).collect()
    };
    // With a map in the order of writing, otherwise by address.
    let options = "rw=randwrite\nverify=md5";
    assert_eq!(offsets(options, Op::Read), offsets(options, Op::Write));
    let options = "rw=randwrite\nverify=md5\nnorandommap";
    let mut written = offsets(options, Op::Write);
    written.sort_unstable();
    written.dedup();
    assert_eq!(offsets(options, Op::Read), written);
    // No flush stands between: fio has closed the file, and syncs only open ones.
    let mut job = job("bs=4k\nsize=64k\nrw=write\nverify=md5");
    let log = run_with(&mut job, 10 * US);
    let ops: Vec<Op> = log.iter().map(|done| done.request.op).collect();
    assert!(ops[..16].iter().all(|op| *op == Op::Write));
    assert!(ops[16..].iter().all(|op| *op == Op::Read));
    assert_eq!(ops.len(), 32);
}

#[test]
fn sync_and_writefua_force_writes() {
    let fua = |options: &str| -> (usize, usize) {
        let mut job = job(&format!("bs=4k\nsize=64k\nrw=write\n{options}"));
        let log = run_with(&mut job, 10 * US);
        let forced = log.iter().filter(|done| done.request.fua).count();
        let flushes = log
            .iter()
            .filter(|done| done.request.op == Op::Flush)
            .count();
        (forced, flushes)
    };
    assert_eq!(fua("sync=0"), (0, 0));
    assert_eq!(fua("sync=1\niodepth=4"), (16, 0));
    assert_eq!(fua("ioengine=libaio\nsync=dsync"), (16, 0));
    // Linux flushes after a write with O_SYNC that is waited for, before the call returns.
    assert_eq!(fua("sync=1"), (16, 16));
    assert_eq!(fua("ioengine=psync\nsync=1"), (16, 16));
    assert_eq!(fua("ioengine=psync\nsync=1\nfsync=4"), (16, 19));
    assert_eq!(fua("writefua=1"), (16, 0));
    assert_eq!(fua("ioengine=io_uring_cmd\nwritefua=1"), (16, 0));
}

#[test]
fn what_would_change_the_result_is_refused_by_name() {
    for option in [
        "readfua=1",
        "verify_only=1",
        "verify_state_load=1",
        "experimental_verify=1",
        "write_hist_log=x",
        "write_iolog=x",
        "filename=/dev/a:/dev/b",
        "pre_read=1",
        "stats=0",
        "unified_rw_reporting=1",
        "bwavgtime=100",
        "ioengine=libaio\nwritefua=1",
        "verify=crc33",
        "lockfile=exclusive",
        "random_generator=x",
        "verify=",
    ] {
        let Err(error) = try_parse(&format!("[job]\nrw=write\nsize=1m\n{option}\n")) else {
            panic!("{option} is accepted");
        };
        let key = option.lines().last().unwrap().split('=').next().unwrap();
        let text = error.to_string();
        assert!(text.contains(&format!("`{key}`")), "{text}");
        assert!(text.contains("(job.fio:"), "{text}");
    }
    for option in [
        "verify_backlog=0",
        "filename=/dev/nvme0n1",
        "filename=a\\:b",
        "stats=1",
    ] {
        try_parse(&format!("[job]\nrw=write\nsize=1m\n{option}\n")).unwrap();
    }
}

/// Requests in order, `w` or `r` and the block.
fn order(options: &str) -> String {
    let log = run(&mut job(&format!(
        "bs=64k\nsize=1m\nverify=crc32c\n{options}"
    )));
    let named = log.iter().map(|request| {
        let letter = if request.op == Op::Write { 'w' } else { 'r' };
        format!("{letter}{}", request.offset_bytes / (64 * KIB))
    });
    named.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_backlog_is_read_back_as_by_fio() {
    // fio 3.33, by its log of requests.
    let every_4 = "w0 w1 w2 w3 r0 r1 r2 r3 w4 w5 w6 w7 r4 r5 r6 r7 \
                   w8 w9 w10 w11 r8 r9 r10 r11 w12 w13 w14 w15 r12 r13 r14 r15";
    assert_eq!(order("rw=write\nverify_backlog=4\nioengine=psync"), every_4);
    let two_of_4 = "w0 w1 w2 w3 r0 r1 w4 w5 r2 r3 w6 w7 r4 r5 w8 w9 r6 r7 \
                    w10 w11 r8 r9 w12 w13 r10 r11 w14 w15 r12 r13 r14 r15";
    let options = "rw=write\nverify_backlog=4\nverify_backlog_batch=2\nioengine=psync";
    assert_eq!(order(options), two_of_4);
    let every_5 = "w0 w1 w2 w3 w4 r0 r1 r2 r3 r4 w5 w6 w7 w8 w9 r5 r6 r7 r8 r9 \
                   w10 w11 w12 w13 w14 r10 r11 r12 r13 r14 w15 r15";
    let options = "rw=write\nverify_backlog=5\nloops=2\nioengine=psync";
    assert_eq!(order(options), format!("{every_5} {every_5}"));
    // Each write is read back at once, in whatever order they are.
    let log = order("rw=randwrite\nverify_backlog=1\nioengine=psync");
    let words: Vec<&str> = log.split(' ').collect();
    assert_eq!(words.len(), 32);
    assert!(
        words
            .chunks(2)
            .all(|pair| pair[0].replace('w', "r") == pair[1])
    );
}

#[test]
fn a_block_in_flight_is_not_read_back() {
    // fio 3.33 with libaio and four in flight: 16 writes, 16 reads, each after its write.
    let mut job = job(
        "bs=64k\nsize=1m\nverify=crc32c\nrw=randwrite\nverify_backlog=1\nioengine=libaio\niodepth=4",
    );
    let log = run_with(&mut job, 100 * US);
    assert_eq!(log.len(), 32);
    for read in log.iter().filter(|done| done.request.op == Op::Read) {
        let same = |done: &&Done| {
            done.request.op == Op::Write && done.request.offset_bytes == read.request.offset_bytes
        };
        let write = log.iter().find(same).unwrap();
        assert!(write.completed_ps <= read.submitted_ps);
    }
}
