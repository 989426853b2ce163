//! Does the description of a trace count right?

use super::*;
use crate::trace::info::info;

#[test]
fn every_figure_of_a_small_trace() {
    const US: u64 = 1_000_000;
    let mut records = vec![
        record(0, Op::Write, 0, 4096),
        record(10 * US, Op::Write, 4096, 4096),
        record(20 * US, Op::Read, 512, 512),
        record(30 * US, Op::Read, 1 << 20, 8192),
        record(40 * US, Op::Read, 1024, 512),
        record(50 * US, Op::Flush, 0, 0),
        record(60 * US, Op::Trim, 1 << 21, 1 << 20),
        record(1000 * US, Op::Read, (1 << 20) + 8192, 8192),
    ];
    records[1].fua = true;
    let info = info(&Trace::from_records("t", records));
    assert_eq!(info.requests, 8);
    assert_eq!((info.read.requests, info.read.bytes), (4, 17408));
    assert_eq!((info.write.requests, info.write.bytes), (2, 8192));
    assert_eq!(
        (info.trim.requests, info.flushes, info.fua_writes),
        (1, 1, 1)
    );
    // 1024 goes on from 512; the last read goes on from the one at 1 MiB, two reads before.
    assert_eq!(info.read.sequential_share, 0.5);
    assert_eq!(info.write.sequential_share, 0.5);
    assert_eq!(info.unaligned_4k_share, 2.0 / 6.0);
    assert_eq!(info.unaligned_512_share, 0.0);
    assert_eq!((info.first_byte, info.end_byte), (0, 3 << 20));
    // Two pages at 0, two and two at 1 MiB; the trim touches none.
    assert_eq!(info.footprint_bytes, 6 * 4096);
    let sizes: Vec<_> = info
        .sizes
        .iter()
        .map(|s| (s.length_bytes, s.reads, s.writes))
        .collect();
    assert_eq!(sizes, [(512, 2, 0), (4096, 0, 2), (8192, 2, 0)]);
    assert_eq!(info.duration_ps, 1000 * US);
    assert_eq!(info.mean_rate_per_s, 7000.0);
    assert_eq!(
        (info.peak_rate_per_s, info.peak_window_ps),
        (7000.0, 1_000_000_000)
    );
    let gaps = info.interarrival;
    assert_eq!(
        (gaps.min_ps, gaps.p50_ps, gaps.p90_ps),
        (10 * US, 10 * US, 940 * US)
    );
    assert_eq!(
        (gaps.p10_ps, gaps.p99_ps, gaps.max_ps),
        (10 * US, 940 * US, 940 * US)
    );
}

#[test]
fn text_for_a_terminal() {
    let text = "time_us,op,offset_bytes,length_bytes\n0,W,0,4096\n100,R,8192,512\n200,F,0,0\n";
    let shown = info(&read_well(text).0).to_string();
    assert_eq!(
        shown,
        "t.trace: 3 requests
  read                      1   33.3 %       512 B  mean     512 B  sequential   0.0 %
  write                     1   33.3 %       4 KiB  mean     4 KiB  sequential   0.0 %
  flush                     1   33.3 %
addresses: 0 to 8,704, a span of 8.5 KiB
footprint: 8 KiB in distinct 4 KiB pages
alignment: 50.0 % of reads and writes not to 4 KiB, 0.0 % of requests not to 512 B
time: 200 us, mean 10,000 requests/s, 3,000 requests/s in the busiest millisecond
between requests: min 100 us, 10 % 100 us, 50 % 100 us, 90 % 100 us, 99 % 100 us, max 100 us
sizes:                 reads          writes
         512 B             1               0
         4 KiB             0               1
"
    );
}

#[test]
fn one_request_and_none_divide_by_nothing() {
    let one = info(&Trace::from_records("t", [record(0, Op::Flush, 0, 0)]));
    assert_eq!((one.requests, one.mean_rate_per_s), (1, 0.0));
    assert_eq!(info(&Trace::from_records("t", [])).requests, 0);
}
