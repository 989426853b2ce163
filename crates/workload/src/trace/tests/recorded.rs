//! How long did requests take when they were recorded?

use super::{noted, read, read_well, samples};
use crate::trace::{Format, Trace, info};
use proptest::prelude::*;

/// Latencies of reads and of writes: how many, the longest in nanoseconds.
fn recorded(trace: &Trace) -> [(u64, u64); 2] {
    let all = trace.recorded().expect("latencies are recorded");
    [&all.read, &all.write].map(|took| (took.count(), took.max_ns()))
}

#[test]
fn response_times_are_taken_from_their_columns() {
    let (msr, _) = read_well(
        "128166372003061629,hm,1,Read,8192,4096,41286\n128166372016382155,hm,1,Write,0,512,0\n\
         128166372026382245,hm,1,Read,4096,512,50000000000\n",
    );
    // Ticks of 100 ns; 0 says that it is not known; an hour and more is kept.
    assert_eq!(recorded(&msr), [(2, 5_000_000_000_000), (0, 0)]);
    let (systor, _) = read_well(
        "Timestamp,Response,IOType,LUN,Offset,Size\n1456095145.133076000,0.000806000,R,0,8192,4096\n\
         1456095145.134076000,,W,0,0,512\n1456095145.233076000,0.000000000,R,0,4096,512\n",
    );
    assert_eq!(recorded(&systor), [(1, 806_000), (0, 0)]);
    let (biosnoop, _) = read_well(
        "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n\
         0.000740    fio            1950   sda     R 16         4096      0.74\n\
         0.001350    my fio 1       12     sda     W 0          512       0.61\n",
    );
    assert_eq!(recorded(&biosnoop), [(1, 740_000), (1, 610_000)]);
}

#[test]
fn response_times_that_cannot_be_are_told_or_refused() {
    let line = |took: &str| format!("128166372003061629,hm,1,Read,8192,4096,{took}\n");
    let odd = ["-7", "18446744073709551615", "18446744073709551609"].map(line);
    let (trace, description) = read_well(&(line("1000") + &line("0") + &line("") + &odd.concat()));
    assert_eq!(trace.len(), 6);
    assert_eq!(recorded(&trace), [(1, 100_000), (0, 0)]);
    assert!(
        noted(&description, &["3 recorded response times", "not known"]),
        "{description}"
    );
    let error = read(&(line("1000") + &line("abc"))).unwrap_err();
    assert!(error.message.contains("`ResponseTime`"), "{error}");
    assert_eq!(error.place.unwrap().line, 2);
    let (_, description) = read_well(&(line("1000") + &line("0")));
    assert!(!noted(&description, &["response time"]));
}

#[test]
fn what_was_issued_and_completed_is_matched_by_device_and_sector() {
    let line = |us: u64, event: &str, device: &str, kind: &str, sector: u64| {
        let bytes = if event == "issue" { "4096 " } else { "" };
        format!(
            "fio-789 [000] ..... 4455.{us:06}: block_rq_{event}: {device} {kind} {bytes}() {sector} + 8 none,0,0 [fio]\n"
        )
    };
    let (trace, _) = read_well(
        &[
            // Completed without having been seen to begin.
            line(1, "complete", "259,0", "R", 8),
            line(10, "issue", "259,0", "R", 16),
            line(20, "issue", "259,0", "W", 24),
            // The same sector of another drive.
            line(30, "issue", "259,1", "R", 16),
            line(35, "complete", "259,1", "R", 16),
            line(60, "complete", "259,0", "W", 24),
            line(110, "complete", "259,0", "R", 16),
            // Taken back and given to the drive again.
            line(200, "issue", "259,0", "R", 32),
            line(250, "issue", "259,0", "R", 32),
            line(300, "complete", "259,0", "R", 32),
            // Never completed.
            line(400, "issue", "259,0", "R", 40),
        ]
        .concat(),
    );
    assert_eq!(recorded(&trace), [(2, 100_000), (1, 40_000)]);
}

#[test]
fn blkparse_says_how_long_the_drive_took_whichever_action_is_taken() {
    // Merged: two requests of the host, one of the drive.
    let (trace, _) = read_well(
        "  8,0    1        1     0.000000412  4201  Q   R 16 + 8 [fio]\n\
         \u{20} 8,0    1        2     0.000000500  4201  Q   R 24 + 8 [fio]\n\
         \u{20} 8,0    1        3     0.000003000  4201  D   R 16 + 16 [fio]\n\
         \u{20} 8,0    1        4     0.000090000     0  C   R 16 + 16 [0]\n",
    );
    assert_eq!(trace.len(), 2);
    assert_eq!(recorded(&trace), [(1, 87_000), (0, 0)]);
}

#[test]
fn formats_without_latencies_have_none() {
    let with = [
        Format::Msr,
        Format::Systor,
        Format::Biosnoop,
        Format::Blkparse,
        Format::Ftrace,
    ];
    for (format, text) in samples::ALL {
        let (trace, _) = read_well(text);
        if !with.contains(&format) {
            assert!(trace.recorded().is_none(), "{format}");
            assert!(info::info(&trace).recorded.is_none());
        }
    }
}

proptest! {
    #![proptest_config(lodger_testing::config(256))]

    /// `cat DEVICE.blktrace.*`: a file for each CPU, one behind the other; the drive ends a request on another CPU than
    /// it was issued on.
    #[test]
    fn files_of_several_cpus_one_behind_the_other_tell_what_one_in_order_does(
        steps in prop::collection::vec((0_u64..5, 1_u64..50, 0_usize..3, any::<bool>()), 0..80),
    ) {
        let mut files = vec![Vec::new(); 3];
        let mut in_order = Vec::new();
        let mut under_way: Vec<u64> = Vec::new();
        let mut now_us = 0;
        // The first names the device.
        let first = (9, 0, 0, true);
        for (sector, wait_us, cpu, reads) in std::iter::once(first).chain(steps) {
            now_us += wait_us;
            let kind = if reads { "R" } else { "W" };
            let place = under_way.iter().position(|busy| *busy == sector);
            let action = match place.map(|place| under_way.swap_remove(place)) {
                Some(_) => "C",
                None => {
                    under_way.push(sector);
                    "D"
                }
            };
            let line =
                format!("  8,0 {cpu} 1 0.{now_us:06}000 1 {action} {kind} {sector} + 8 [fio]\n");
            files[cpu].push(line.clone());
            in_order.push(line);
        }
        let behind = read_well(&files.concat().concat()).0;
        let told = |trace: &Trace| format!("{:?}", trace.recorded());
        prop_assert_eq!(told(&behind), told(&read_well(&in_order.concat()).0));
    }
}
