//! Is a request one, however often the host had to take it back, and in however many parts it ended?

use super::stream::assert_same;
use super::*;
use crate::trace::{Fit, Mode};

/// An event of the kernel's at a microsecond: `issue`, `requeue`, `complete`.
fn ftrace(us: u64, event: &str, kind: &str, place: &str) -> String {
    let bytes = if event == "issue" { "4096 " } else { "" };
    format!(
        " k-1 [000] d..1. 5.{us:06}: block_rq_{event}: 8,0 {kind} {bytes}() {place} none,0,0 [k]\n"
    )
}

fn blkparse(us: u64, action: &str, kind: &str, place: &str) -> String {
    format!("  8,0    3        1     0.{us:06}000   697  {action}   {kind} {place} [k]\n")
}

fn with(action: Option<char>) -> Options {
    Options {
        action,
        ..Options::default()
    }
}

fn read_with(text: &str, options: &Options) -> (Trace, Description) {
    load(text.as_bytes(), "t", options).unwrap()
}

/// The latencies of reads and of writes: how many and the longest in microseconds.
fn recorded(trace: &Trace) -> [(u64, u64); 2] {
    let all = trace.recorded().expect("latencies are recorded");
    [&all.read, &all.write].map(|took| (took.count(), took.max_ns().div_ceil(1000)))
}

/// As it is read, what is kept must be what is kept of all.
fn same_as_streamed(text: &str, options: &Options) {
    assert_same(text, options, Fit::Error, Mode::Timed);
}

#[test]
fn a_requeued_request_is_one_and_took_from_its_first_issue_on() {
    let mut text = String::new();
    for request in 0..100 {
        let (at, place) = (request * 1000, format!("{} + 8", request * 8));
        for again in 0..3 {
            text += &ftrace(at + again * 50, "issue", "WS", &place);
            // Within the microsecond, too.
            let wait = if request % 2 == 0 { 1 } else { 0 };
            text += &ftrace(at + again * 50 + wait, "requeue", "WS", &place);
        }
        text += &ftrace(at + 150, "issue", "WS", &place);
        text += &ftrace(at + 400, "complete", "WS", &place);
    }
    let (trace, description) = read_well(&text);
    assert_eq!(trace.len(), 100);
    assert_eq!(description.requests, 100);
    assert_eq!(recorded(&trace), [(0, 0), (100, 400)]);
    assert!(noted(&description, &["300 repeated issues", "requeued"]));
    assert!(
        trace
            .records()
            .zip(0..)
            .all(|(r, i)| r.time_ps == i * 1_000_000_000)
    );
    same_as_streamed(&text, &Options::default());
}

#[test]
fn a_requeued_request_of_blkparse_is_one_whichever_action_is_taken() {
    let text = [
        blkparse(0, "Q", "W", "16 + 8"),
        blkparse(5, "D", "W", "16 + 8"),
        blkparse(6, "R", "W", "16 + 8"),
        blkparse(50, "D", "W", "16 + 8"),
        blkparse(105, "C", "W", "16 + 8"),
        blkparse(200, "Q", "R", "32 + 8"),
        blkparse(210, "D", "R", "32 + 8"),
        blkparse(230, "C", "R", "32 + 8"),
    ]
    .concat();
    for action in [None, Some('Q'), Some('D')] {
        let (trace, description) = read_with(&text, &with(action));
        assert_eq!(trace.len(), 2, "{action:?}");
        assert_eq!(recorded(&trace), [(1, 20), (1, 100)], "{action:?}");
        assert!(noted(&description, &["1 repeated issue "]), "{description}");
        if action.is_some() {
            same_as_streamed(&text, &with(action));
        }
    }
    // Issued over and over, it has no more of the bytes than what was queued.
    let again: String = (0..9)
        .map(|i| blkparse(6 + i, "R", "W", "16 + 8") + &blkparse(6 + i, "D", "W", "16 + 8"))
        .collect();
    let many = blkparse(0, "Q", "W", "16 + 8") + &blkparse(5, "D", "W", "16 + 8") + &again;
    let (trace, description) = read_well(&many);
    assert_eq!(trace.len(), 1);
    assert!(noted(&description, &["as `Q` (queued)"]), "{description}");
}

/// Each CPU has a file, and what one issues another may take back.
#[test]
fn a_requeued_request_is_one_where_files_of_cpus_stand_behind_one_another() {
    let cpu_0 = blkparse(5, "D", "W", "16 + 8")
        + &blkparse(50, "D", "W", "16 + 8")
        + &blkparse(60, "D", "W", "24 + 8");
    let cpu_1 = blkparse(6, "R", "W", "16 + 8") + &blkparse(105, "C", "W", "16 + 8");
    let (trace, description) = read_well(&(cpu_0 + &cpu_1));
    let times: Vec<_> = trace.records().map(|r| r.time_ps / 1_000_000).collect();
    assert_eq!(times, [0, 55]);
    assert_eq!(recorded(&trace), [(0, 0), (1, 100)]);
    assert!(noted(&description, &["1 repeated issue "]));
}

/// Some drivers take back what they have not begun, and a request that failed comes no more.
#[test]
fn what_was_not_issued_or_has_ended_was_not_requeued() {
    let text = [
        ftrace(0, "requeue", "WS", "16 + 8"),
        ftrace(10, "issue", "WS", "16 + 8"),
        ftrace(20, "complete", "WS", "16 + 8"),
        ftrace(30, "issue", "WS", "24 + 8"),
        ftrace(40, "requeue", "WS", "24 + 8"),
        ftrace(50, "complete", "WS", "24 + 8"),
        ftrace(60, "issue", "WS", "24 + 8"),
    ]
    .concat();
    let (trace, description) = read_well(&text);
    assert_eq!(trace.len(), 3);
    assert!(!noted(&description, &["repeated"]));
    same_as_streamed(&text, &Options::default());
}

#[test]
fn what_a_requeued_request_grew_by_is_taken_and_flushes_are_told_from_sector_0() {
    let text = [
        ftrace(0, "issue", "WS", "0 + 8"),
        ftrace(1, "issue", "FF", "18446744073709551615 + 0"),
        ftrace(2, "requeue", "FF", "18446744073709551615 + 0"),
        ftrace(3, "issue", "FF", "18446744073709551615 + 0"),
        ftrace(4, "complete", "FF", "18446744073709551615 + 0"),
        ftrace(5, "requeue", "WS", "0 + 8"),
        ftrace(6, "issue", "WS", "0 + 16"),
        ftrace(106, "complete", "WS", "0 + 16"),
    ]
    .concat();
    let (trace, _) = read_well(&text);
    let said: Vec<_> = trace.records().collect();
    let wanted = [
        record(0, Op::Write, 0, 4096),
        record(1_000_000, Op::Flush, 0, 0),
        record(6_000_000, Op::Write, 4096, 4096),
    ];
    assert_eq!(said, wanted);
    assert_eq!(recorded(&trace), [(0, 0), (1, 106)]);
    same_as_streamed(&text, &Options::default());
}

#[test]
fn a_request_that_ends_in_parts_took_until_the_last() {
    let text = [
        ftrace(0, "issue", "R", "16 + 8"),
        ftrace(100, "complete", "R", "16 + 4"),
        ftrace(200, "complete", "R", "20 + 4"),
        // The rest of it is given to the drive again.
        ftrace(300, "issue", "W", "16 + 8"),
        ftrace(310, "complete", "W", "16 + 2"),
        ftrace(320, "requeue", "W", "18 + 6"),
        ftrace(330, "issue", "W", "18 + 6"),
        ftrace(350, "complete", "W", "18 + 6"),
        // Of this one more is not known.
        ftrace(400, "issue", "W", "64 + 8"),
        ftrace(420, "complete", "W", "64 + 4"),
    ]
    .concat();
    let (trace, _) = read_well(&text);
    assert_eq!(trace.len(), 3);
    assert_eq!(recorded(&trace), [(1, 200), (2, 50)]);
    same_as_streamed(&text, &Options::default());
}

#[test]
fn the_default_action_named_loses_no_recorded_latency() {
    let event = |i: u64| {
        let place = format!("{} + 8", i * 1000);
        let one = |us, action| blkparse(i * 1000 + us, action, "R", &place);
        [(0, "Q"), (1, "G"), (2, "I"), (5, "D"), (105, "C")]
            .map(|(us, action)| one(us, action))
            .concat()
    };
    let text: String = (0..50).map(event).collect();
    let (by_default, said) = read_well(&text);
    let (named, said_of_named) = read_with(&text, &with(Some('Q')));
    assert_eq!(recorded(&named), [(50, 100), (0, 0)]);
    assert_eq!(recorded(&named), recorded(&by_default));
    assert_eq!(said_of_named.notes, said.notes);
    assert!(noted(&said, &["150 events of other actions"]));
    same_as_streamed(&text, &with(Some('Q')));
    // Another device's are not its own.
    let other = text.replace("  8,0 ", "  8,16 ").replace("  Q ", "  M ");
    let (named, _) = read_with(&(other + &text), &with(Some('Q')));
    assert_eq!(recorded(&named), [(50, 100), (0, 0)]);
}
