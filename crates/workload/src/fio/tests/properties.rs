//! What holds for any job file?

use super::*;
use proptest::prelude::*;

/// Runs a job for at most `limit` requests, completing in random order.
fn run_some(job: &mut Job, limit: usize, mut order: u64) -> Vec<Request> {
    let mut now_ps = 0;
    let mut in_flight: Vec<(Request, bool)> = Vec::new();
    let mut arrived = std::collections::VecDeque::new();
    let completion = |request: Request, completed_ps| Completion {
        tag: request.tag,
        op: request.op,
        status: Status::Success,
        submitted_ps: 0,
        completed_ps,
    };
    let mut log = Vec::new();
    for _ in 0..limit * 3 {
        let mut complete = false;
        match job.next(now_ps) {
            Next::Submit(request) => {
                in_flight.push((request, job.takes_later(request.op)));
                log.push(request);
                assert!(in_flight.len() + arrived.len() <= job.queue_depth as usize);
            }
            Next::Reap(completions) => {
                for request in arrived.drain(..completions as usize) {
                    job.complete(&completion(request, now_ps));
                }
            }
            Next::At(at_ps) => now_ps = at_ps.max(now_ps),
            Next::Call { .. } => panic!("a fio job knows no byte window"),
            Next::Blocked => {
                assert!(!in_flight.is_empty(), "blocked for ever");
                complete = true;
            }
            Next::Done => {
                assert!(in_flight.is_empty() && arrived.is_empty());
                return log;
            }
        }
        order = order
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        if !in_flight.is_empty() && (complete || order >> 62 == 0) {
            let (request, later) = in_flight.swap_remove((order >> 32) as usize % in_flight.len());
            now_ps += order >> 50;
            if later {
                arrived.push_back(request);
                job.arrived();
            } else {
                job.complete(&completion(request, now_ps));
            }
        }
        if log.len() >= limit {
            break;
        }
    }
    log
}

/// Values that mean something somewhere.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "7",
    "64k",
    "1m",
    "50%",
    "100%",
    "-1",
    "NaN",
    "inf",
    "1e308",
    "18446744073709551615",
    "18446744073709551616",
    "0xffffffffffffffff",
    "4k,8k,16k",
    "4k-64k",
    "4k/50:64k/50",
    "zipf:1.1",
    "pareto:0.3:0.5",
    "normal:20",
    "zoned:60/10:40/",
    "zoned_abs:50/64k:50/1m",
];

/// Options that take one.
const KEYS: &[&str] = &[
    "rw=randread:",
    "rw=read:-",
    "rw=rw:",
    "bs=",
    "blockalign=",
    "bsrange=",
    "bssplit=",
    "size=",
    "io_size=",
    "offset=",
    "offset_increment=",
    "number_ios=",
    "loops=",
    "iodepth=",
    "iodepth_low=",
    "iodepth_batch=",
    "iodepth_batch_complete_min=",
    "iodepth_batch_complete_max=",
    "numjobs=",
    "runtime=",
    "startdelay=",
    "ramp_time=",
    "thinktime=",
    "thinktime_blocks=",
    "rate=",
    "rate_iops=",
    "fsync=",
    "fdatasync=",
    "thinktime_iotime=",
    "percentage_random=",
    "random_distribution=",
    "percentile_list=",
    "randseed=",
    "rwmixread=",
];

/// Options that are whole by themselves.
const FLAGS: &[&str] = &[
    "rw=read",
    "rw=write",
    "rw=rw",
    "rw=randread",
    "rw=randwrite",
    "rw=randrw",
    "rw=randtrimwrite",
    "rw=trimwrite",
    "norandommap",
    "time_based\nruntime=1s",
    "bs_is_seq_rand=1",
    "rw_sequencer=identical",
    "rate_process=poisson",
    "io_submit_mode=offload",
    "rate_ignore_thinktime=1",
    "end_fsync=1",
    "randrepeat=0",
    "random_generator=lfsr",
    "verify=crc32c",
    "verify_pattern=7",
    "sync=1",
    "ioengine=psync",
    "ioengine=libaio",
];

fn option() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        22 => prop::sample::select(NUMBERS).prop_map(str::to_owned),
        1 => any::<u64>().prop_map(|n| n.to_string()),
        1 => (0u64..200).prop_map(|n| n.to_string()),
        1 => (1u64..200).prop_map(|n| format!("{}k", n * 4)),
        1 => "[0-9a-z:/,.%-]{0,12}",
    ];
    prop_oneof![
        3 => prop::sample::select(FLAGS).prop_map(str::to_owned),
        4 => (prop::sample::select(KEYS), number).prop_map(|(key, number)| format!("{key}{number}")),
    ]
}

proptest! {
    #![proptest_config(lodger_testing::config_without_file(256))]

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let _ = try_parse(&text);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let text = String::from_utf8_lossy(&bytes);
        let _ = try_parse(&format!("[a]\n{text}"));
    }

    #[test]
    fn arbitrary_lines_never_panic(
        lines in proptest::collection::vec("(include |\\[|\\[global\\]|[a-z_]{1,12}|bs|size)[=${}a-z0-9%:/,.-]{0,12}", 0..12),
    ) {
        let _ = try_parse(&format!("[a]\n{}", lines.join("\n")));
    }

    /// Any job that is accepted asks only for what the drive has, and never gets stuck.
    #[test]
    fn accepted_jobs_stay_inside_the_drive(
        options in proptest::collection::vec(option(), 1..9),
        drive_blocks in prop_oneof![1u64..4000, Just(8 << 31)],
        order in any::<u64>(),
    ) {
        let text = format!("[a]\n{}", options.join("\n"));
        let drive_bytes = drive_blocks * 512;
        let none = |_: &str| None;
        let include = |_: &str| Err(io::ErrorKind::NotFound.into());
        if let Ok(mut workload) = parse_with(&text, drive_bytes, order, &none, &include) {
            let mut again = parse_with(&text, drive_bytes, order, &none, &include).unwrap();
            for (job, again) in workload.jobs.iter_mut().zip(&mut again.jobs).take(3) {
                let log = run_some(job, 500, order);
                check(&log, drive_bytes);
                prop_assert_eq!(log, run_some(again, 500, order));
            }
        }
    }

    /// Whatever the queue depth and the order of completions, the map visits each block once, and
    /// the number of requests is the one announced.
    #[test]
    fn the_map_is_fair_at_any_depth(
        blocks in 1u64..600,
        tail in 0u64..8,
        depth in 1u32..40,
        loops in 1u64..4,
        order in any::<u64>(),
    ) {
        let size = blocks * 4096 + tail * 512;
        let mut job = job(&format!("rw=randwrite\niodepth={depth}\nloops={loops}\nsize={size}"));
        prop_assert_eq!(job.requests_expected, Some(blocks * loops));
        let log = run_some(&mut job, usize::MAX / 3, order);
        prop_assert_eq!(log.len() as u64, blocks * loops);
        for pass in log.chunks(blocks as usize) {
            let mut seen = offsets(pass);
            seen.sort_unstable();
            prop_assert!(seen.iter().enumerate().all(|(i, o)| *o == i as u64 * 4096));
        }
    }

    #[test]
    fn the_number_of_requests_is_as_announced(
        rw in prop_oneof![
            Just("read"), Just("write"), Just("randread"), Just("randwrite"), Just("randrw"),
            Just("trimwrite"), Just("randtrim"),
        ],
        map in any::<bool>(),
        blocks in 1u64..70,
        tail in 0u64..8,
        loops in 1u64..4,
        io_size in 0u64..200,
        number_ios in 0u64..200,
        fsync in 0u64..9,
        more in prop_oneof![
            Just(""), Just("ioengine=libaio"), Just("ioengine=psync\nsync=1"), Just("verify=md5"),
            Just("random_generator=lfsr"), Just("end_fsync=1"), Just("fdatasync=3"),
            Just("ioengine=libaio\niodepth=8\niodepth_batch=5\niodepth_batch_complete_min=3"),
        ],
    ) {
        let mut options = format!("rw={rw}\nsize={}\nloops={loops}", blocks * 4096 + tail * 512);
        options += &format!("\nio_size={}k\nnumber_ios={number_ios}\nfsync={fsync}", io_size * 2);
        options += "\n";
        options += more;
        if !map {
            options += "\nnorandommap";
        }
        let mut job = job(&options);
        let expected = job.requests_expected;
        let log = run_with(&mut job, US);
        if let Some(expected) = expected {
            prop_assert_eq!(log.len() as u64, expected, "{}", options);
        }
    }
}
