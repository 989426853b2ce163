//! Is a request one, however often the host had to take it back, and in however many parts it ended?

use super::stream::assert_same;
use super::*;
use crate::trace::{Fit, Mode};
use proptest::prelude::*;

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

fn times_us(trace: &Trace) -> Vec<u64> {
    trace.records().map(|r| r.time_ps / 1_000_000).collect()
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
    assert_eq!(times_us(&trace), [0, 55]);
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

/// What is told of a file: its requests, their latencies, and notes of repeated issues.
fn told(text: &str) -> (Vec<Record>, String, Vec<String>) {
    let (trace, description) = read_with(text, &with(Some('D')));
    let is_of_repeats = |note: &String| note.contains("repeated");
    let notes = description.notes.into_iter().filter(is_of_repeats);
    let latencies = format!("{:?}", trace.recorded());
    (trace.records().collect(), latencies, notes.collect())
}

/// What is told of a file of `lines` in order must be told of it when `behind` stand behind all others.
fn same_out_of_order(lines: &[String], behind: &[usize]) {
    let is_behind = |at: &usize| behind.contains(at);
    let others = (0..lines.len()).filter(|at| !is_behind(at));
    let moved: String = others
        .chain(behind.iter().copied())
        .map(|at| &*lines[at])
        .collect();
    assert_eq!(told(&moved), told(&lines.concat()), "{moved}");
}

#[test]
fn a_requeued_request_is_one_where_another_line_is_out_of_order() {
    let cpu_0 = blkparse(5, "D", "W", "16 + 8")
        + &blkparse(6, "R", "W", "16 + 8")
        + &blkparse(60, "D", "W", "24 + 8");
    let cpu_1 = blkparse(50, "D", "W", "16 + 8") + &blkparse(105, "C", "W", "16 + 8");
    let (trace, description) = read_with(&(cpu_0 + &cpu_1), &with(Some('D')));
    assert_eq!(times_us(&trace), [0, 55]);
    assert_eq!(recorded(&trace), [(0, 0), (1, 100)]);
    assert!(noted(&description, &["1 repeated issue "]));
}

#[test]
fn issues_once_more_beside_queued_requests_are_counted_once_where_a_line_is_out_of_order() {
    let text = [
        blkparse(0, "Q", "W", "16 + 8"),
        blkparse(5, "D", "W", "16 + 8"),
        blkparse(6, "R", "W", "16 + 8"),
        blkparse(50, "D", "W", "16 + 8"),
        blkparse(105, "C", "W", "16 + 8"),
        blkparse(1, "Q", "R", "32 + 8"),
        blkparse(2, "D", "R", "32 + 8"),
    ]
    .concat();
    for action in [None, Some('Q')] {
        let (trace, description) = read_with(&text, &with(action));
        assert_eq!(times_us(&trace), [0, 1], "{action:?}");
        assert_eq!(recorded(&trace), [(0, 0), (1, 100)], "{action:?}");
        assert!(noted(&description, &["1 repeated issue "]), "{description}");
    }
}

#[test]
fn a_requeue_in_the_moment_of_its_issue_is_of_it_whatever_the_order() {
    let lines = [
        blkparse(0, "D", "R", "64 + 8"),
        blkparse(5, "D", "W", "16 + 8"),
        blkparse(5, "R", "W", "16 + 8"),
        blkparse(5, "D", "W", "16 + 8"),
        blkparse(9, "R", "W", "16 + 8"),
        blkparse(50, "D", "W", "16 + 8"),
        // Done as it is issued.
        blkparse(60, "D", "R", "80 + 8"),
        blkparse(60, "C", "R", "80 + 8"),
        blkparse(105, "C", "W", "16 + 8"),
        blkparse(105, "D", "W", "16 + 8"),
        blkparse(120, "C", "W", "16 + 8"),
    ];
    let (trace, _) = read_with(&lines.concat(), &with(Some('D')));
    assert_eq!(times_us(&trace), [0, 5, 60, 105]);
    assert_eq!(recorded(&trace), [(1, 0), (2, 100)]);
    same_out_of_order(&lines, &[0]);
    same_out_of_order(&lines, &[5, 8]);
}

/// What looked like an issue of the same once more is another's once all is known.
#[test]
fn what_was_put_together_in_order_is_put_together_anew() {
    let lines = [
        blkparse(5, "D", "W", "16 + 8"),
        blkparse(6, "R", "W", "16 + 8"),
        blkparse(8, "D", "W", "16 + 8"),
        blkparse(20, "C", "W", "16 + 8"),
        blkparse(50, "D", "W", "16 + 8"),
        blkparse(90, "C", "W", "16 + 8"),
        // In parts, of which one is taken back.
        blkparse(100, "D", "R", "16 + 8"),
        blkparse(110, "C", "R", "16 + 2"),
        blkparse(120, "R", "R", "18 + 6"),
        blkparse(130, "D", "R", "18 + 6"),
        blkparse(150, "C", "R", "18 + 6"),
        // Flushes have no latency, but are requests.
        blkparse(200, "D", "FF", "0 + 0"),
        blkparse(210, "R", "FF", "0 + 0"),
        blkparse(220, "D", "FF", "0 + 0"),
        blkparse(230, "C", "FF", "0 + 0"),
        blkparse(300, "D", "FWS", "32 + 8"),
        blkparse(310, "R", "FWS", "32 + 8"),
        blkparse(320, "D", "FWS", "32 + 8"),
        blkparse(330, "C", "FWS", "32 + 8"),
    ];
    let (trace, _) = read_with(&lines.concat(), &with(Some('D')));
    assert_eq!(times_us(&trace), [0, 45, 95, 195, 295, 295]);
    assert_eq!(recorded(&trace), [(1, 50), (3, 40)]);
    for one in 1..lines.len() {
        same_out_of_order(&lines, &[one]);
        for other in one + 1..lines.len() {
            same_out_of_order(&lines, &[one, other]);
        }
    }
}

#[test]
fn a_request_of_another_kind_or_length_at_the_place_of_a_requeue_is_not_dropped() {
    for (other, place) in [("W", "2048 + 8"), ("R", "2048 + 16")] {
        let text = [
            ftrace(0, "issue", "R", "2048 + 8"),
            // Never begun.
            ftrace(5, "requeue", other, place),
            ftrace(10, "issue", other, place),
            ftrace(20, "complete", "R", "2048 + 8"),
            ftrace(40, "complete", other, place),
        ]
        .concat();
        let (trace, description) = read_well(&text);
        assert_eq!(times_us(&trace), [0, 10], "{place}");
        assert!(!noted(&description, &["repeated"]));
        if other == "W" {
            assert_eq!(recorded(&trace), [(1, 20), (1, 30)]);
        }
        same_as_streamed(&text, &Options::default());
    }
    // What is issued again is no shorter.
    let shorter = [
        ftrace(0, "issue", "W", "2048 + 8"),
        ftrace(5, "requeue", "W", "2048 + 8"),
        ftrace(10, "issue", "W", "2048 + 4"),
    ]
    .concat();
    assert_eq!(read_well(&shorter).0.len(), 2);
    same_as_streamed(&shorter, &Options::default());
}

#[test]
fn the_flush_before_a_requeued_write_is_one_as_the_write_is() {
    let issue = |us: u64, place: &str| ftrace(us, "issue", "FWS", place);
    let text = [
        issue(0, "2048 + 8"),
        ftrace(1, "requeue", "FWS", "2048 + 8"),
        issue(2, "2048 + 8"),
        ftrace(9, "complete", "FWS", "2048 + 8"),
        issue(10, "2048 + 8"),
        ftrace(11, "requeue", "FWS", "2048 + 8"),
        // It has grown.
        issue(12, "2048 + 16"),
        ftrace(19, "complete", "FWS", "2048 + 16"),
    ]
    .concat();
    let wanted = [
        record(0, Op::Flush, 0, 0),
        record(0, Op::Write, 1 << 20, 4096),
        record(10_000_000, Op::Flush, 0, 0),
        record(10_000_000, Op::Write, 1 << 20, 4096),
        record(12_000_000, Op::Write, (1 << 20) + 4096, 4096),
    ];
    let (trace, description) = read_well(&text);
    assert_eq!(trace.records().collect::<Vec<_>>(), wanted);
    assert_eq!(description.requests, 5);
    assert_eq!(description.devices[0].requests, 5);
    same_as_streamed(&text, &Options::default());
    // What had no flush before it has one now: another request.
    let text = text.replacen("FWS 4096", "WS 4096", 1);
    let (trace, _) = read_well(&text);
    let flushes = trace.records().filter(|r| r.op == Op::Flush).count();
    assert_eq!((trace.len(), flushes), (6, 2));
    same_as_streamed(&text, &Options::default());
}

#[test]
fn what_is_issued_after_events_were_lost_is_another_request() {
    let text = [
        ftrace(0, "issue", "W", "16 + 8"),
        ftrace(1, "requeue", "W", "16 + 8"),
        "CPU:3 [LOST 42 EVENTS]\n".to_owned(),
        ftrace(900_000, "issue", "W", "16 + 8"),
        ftrace(900_100, "complete", "W", "16 + 8"),
    ]
    .concat();
    let (trace, description) = read_well(&text);
    assert_eq!(times_us(&trace), [0, 900_000]);
    assert_eq!(recorded(&trace), [(0, 0), (1, 100)]);
    assert!(!noted(&description, &["repeated"]));
    same_as_streamed(&text, &Options::default());
    let behind = ftrace(500, "issue", "R", "64 + 8");
    assert_eq!(
        times_us(&read_well(&(text.clone() + &behind)).0),
        [0, 500, 900_000]
    );
    // Where it stands in its own CPU's file counts.
    let lost = "CPU:3 [LOST 42 EVENTS]\n";
    let behind = text.replace(lost, "") + &behind + lost;
    assert_eq!(times_us(&read_well(&behind).0), [0, 500, 900_000]);
}

/// Lines of requests that are issued, taken back, grow, and end in parts, with the CPU of each.
fn random_lines(steps: &[(u64, u64, usize, bool, u8)]) -> Vec<(usize, String)> {
    // What of each is under way, where it begins, and whether it was taken back.
    let mut all = std::collections::HashMap::new();
    let mut now_us = 1;
    // The first names the device.
    let mut lines = vec![(0, blkparse(1, "D", "FF", "0 + 0"))];
    for &(sector, wait_us, cpu, reads, choice) in steps {
        now_us += wait_us;
        let kind = if reads { "R" } else { "FWS" };
        let state = all
            .entry((sector, reads))
            .or_insert((0, sector * 100, false));
        let (left, first, is_taken_back) = *state;
        let (action, sectors) = match (left, is_taken_back, choice) {
            (0, _, 0) => ("R", 8),
            (0, ..) => {
                *state = (8, sector * 100, false);
                ("D", 8)
            }
            (left, true, _) => {
                let left = left + 8 * u64::from(choice == 0);
                *state = (left, first, false);
                ("D", left)
            }
            (left, false, 0) => {
                *state = (left, first, true);
                ("R", left)
            }
            (left, false, 1) if left > 2 => {
                *state = (left - 2, first + 2, false);
                ("C", 2)
            }
            (left, ..) => {
                *state = (0, first, false);
                ("C", left)
            }
        };
        let place = if left == 0 { sector * 100 } else { first };
        lines.push((
            cpu,
            blkparse(now_us, action, kind, &format!("{place} + {sectors}")),
        ));
    }
    lines
}

proptest! {
    #![proptest_config(lodger_testing::config(256))]

    #[test]
    fn requeues_in_files_of_cpus_are_those_of_one_file_in_order(
        steps in prop::collection::vec((0_u64..3, 1_u64..50, 0_usize..3, any::<bool>(), 0_u8..4), 0..80),
    ) {
        let lines = random_lines(&steps);
        let in_order: String = lines.iter().map(|(_, line)| &**line).collect();
        let of_cpu = |cpu| lines.iter().filter(move |(of, _)| *of == cpu);
        let files: String = (0..3).flat_map(of_cpu).map(|(_, line)| &**line).collect();
        prop_assert_eq!(told(&files), told(&in_order));
        same_as_streamed(&in_order, &with(Some('D')));
    }
}
