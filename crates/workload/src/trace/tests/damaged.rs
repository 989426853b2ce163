//! Is a request lost without a word where a line is damaged?

use super::*;
use crate::trace::Format;

fn with(format: Format, action: Option<char>) -> Options {
    Options {
        format: Some(format),
        action,
        ..Options::default()
    }
}

#[test]
fn a_file_cut_inside_its_last_number_says_so_in_every_format() {
    let whole = "time_us,op,offset_bytes,length_bytes\n0,R,0,4096\n10,R,4096,131072\n";
    let told = ["does not end", "last number may be"];
    assert!(!noted(&read_well(whole).1, &told));
    let (cut, description) = read_well(&whole[..whole.len() - 2]);
    assert_eq!(cut.records().last().unwrap().length_bytes, 13107);
    assert!(noted(&description, &["line 3 does not end"]));
    for (format, text) in samples::ALL {
        let (trace, description) = read_well(text);
        assert!(!noted(&description, &told), "{format}");
        // A log's last line is no request, nor is blkparse's summary.
        let end = match format {
            Format::FioIolog => text.trim_end().rfind('\n').unwrap(),
            Format::Blkparse => text.find("\nCPU1").unwrap(),
            _ => text.trim_end().len(),
        };
        let (cut, description) = read_well(&text[..end]);
        assert_eq!(cut.len(), trace.len(), "{format}");
        let notes = description.notes.iter();
        let says = notes.filter(|note| told.iter().all(|words| note.contains(words)));
        assert_eq!(says.count(), 1, "{format}: {description}");
    }
    // The end of a log holds nothing that could be cut.
    let log = "fio version 3 iolog\n1 /f read 0 512\n2 /f close";
    assert!(!noted(&read_well(log).1, &told));
}

const FTRACE: &str =
    "  k-1  [000] d..1.   100.000300: block_rq_issue: 8,0 WS 131072 () 5376 + 256 none,0,0 [k]";
const BLKPARSE: &str = "  8,0    3        4      0.000300000  1003  Q   WS 5376 + 256 [k]";

/// Every line that one byte of this one was damaged in.
fn damages(line: &str) -> Vec<String> {
    let mut out = Vec::new();
    for at in 0..line.len() {
        for put in ["", "x", ","] {
            out.push(format!("{}{put}{}", &line[..at], &line[at + 1..]));
        }
    }
    out
}

#[test]
fn a_damaged_line_of_what_is_read_is_malformed_and_not_of_another_kind() {
    for (format, line, action) in [
        (Format::Ftrace, FTRACE, None),
        (Format::Blkparse, BLKPARSE, None),
        (Format::Blkparse, BLKPARSE, Some('Q')),
    ] {
        for damaged in damages(line) {
            let text = format!("{line}\n{damaged}\n{line}\n");
            let Ok((trace, description)) = load(text.as_bytes(), "t", &with(format, action)) else {
                continue;
            };
            // Of two devices one is taken, and said to be.
            let told = noted(&description, &["the file holds 2 devices"]);
            assert!(trace.len() == 3 || told, "{damaged}: {description}");
        }
    }
}

#[test]
fn a_decimal_comma_in_the_time_is_an_error_with_its_place() {
    for (format, line) in [(Format::Ftrace, FTRACE), (Format::Blkparse, BLKPARSE)] {
        let text = format!("{line}\n{}\n", line.replace(".000", ",000"));
        let mut options = with(format, None);
        let error = load(text.as_bytes(), "t", &options).unwrap_err();
        assert_eq!(error.place.unwrap().line, 2);
        assert!(
            error.message.contains(format.columns()),
            "{}",
            error.message
        );
        options.skip_malformed = true;
        let (trace, description) = load(text.as_bytes(), "t", &options).unwrap();
        assert_eq!(trace.len(), 1);
        assert!(noted(&description, &["1 malformed line left out"]));
    }
}

/// What is no event that is read stays that.
#[test]
fn lines_of_other_kinds_are_not_called_damaged() {
    for line in [
        "CPU1 (8,0):",
        " Reads Queued:           2,        4KiB\t Writes Queued:           0,        0KiB",
        "Throughput (R/W): 0KiB/s / 0KiB/s",
        "Events (8,0): 12 entries",
        "  8,0    1        0     0.000000000     0  m   N cfq1234 + 8",
        "  8,0    1        0     0.000000000     0 UT   N [k] 1",
        "  8,0    x        1     0.000000001  1003  G   WS 5376 + 256 [k]",
    ] {
        let (trace, _) = read_well(&format!("{BLKPARSE}\n{line}\n"));
        assert_eq!(trace.len(), 1, "{line}");
    }
    for line in [
        " block_rq_issue:-5 [001] .... 19654.923900: block_plug: [block_rq_issue:]",
        " fio-1 [000] .... 1.000000: block_rq_insert: 8,0 R 0 () 16 + 8 [fio]",
        " fio-1 [000] .... 1,000000: block_plug: [fio]",
        "cpus=4",
    ] {
        let (trace, _) = read_well(&format!("{FTRACE}\n{line}\n"));
        assert_eq!(trace.len(), 1, "{line}");
    }
}

/// What ftrace and perf write beside events: who was on the way to them.
#[test]
fn stack_traces_and_traced_functions_that_name_an_event_are_not_damaged() {
    let ftrace = "# tracer: function\n#\n# trigger info: stacktrace:unlimited [active]\n";
    let perf = "# ========\n# cmdline : /usr/bin/perf record -g -C 0,1 -e block:block_rq_issue sleep 1\n\
                # event : name = block:block_rq_issue, , id = { 1, 2 }, type = 2\n# block_rq_issue 8,0 16 + 8\n";
    let lines = [
        " => __traceiter_block_rq_issue",
        " => trace_event_raw_event_block_rq_issue <ffffffff8153c0b2>",
        "=> __traceiter_block_bio_queue (ffffffff8153c0b2)",
        "\tffffffff8153c0b2 __traceiter_block_rq_issue+0x52 ([kernel.kallsyms])",
        "\tffffffff8153c0b2 perf_trace_block_rq_issue+0x52 ([kernel.kallsyms])",
        "\tffffffffc0a01234 bpf_prog_6deef7357e7b4530_block_rq_issue+0x12 (bpf_prog)",
        "  k-1 [000] d..1. 100.000300: __traceiter_block_rq_issue <-blk_mq_start_request",
        "  k-1 [000] d..1. 100.000300: perf_trace_block_rq_issue <-__traceiter_block_rq_issue",
        "  <...>-9 [000] d..1. 100.000300: __traceiter_block_rq_issue(rq=0xffff) <-blk_mq_start_request",
        "  k-1 [000] d..1. 100.000300: block_rq_issue1: (__traceiter_block_rq_issue+0x0/0x60)",
        "  k-1 [000] d..1. 100.000300: kernel_stack: <stack trace > => __traceiter_block_rq_issue",
        "  block_rq_issue-5 [000] d..1. 100.000300: __traceiter_block_plug <-blk_mq_plug",
        "  block_rq_issue: a task-5 [000] d..1. 100.000300: sched_waking: comm=block_rq_issue pid=5",
        "[block:block_rq_issue] function scsi_trace_parse_cdb not defined",
        "  0)   0.123 us    |  __traceiter_block_rq_issue();",
    ];
    let file = |head: &str, event: &str| {
        let mut text = head.to_owned();
        for line in lines {
            text += &format!("{event}\n{line}\n => blk_mq_start_request\n\n");
        }
        text
    };
    let perf_event = "k 1 [000] 100.000300: block:block_rq_issue: 8,0 WS 131072 () 5376 + 256 [k]";
    for (head, event) in [(ftrace, FTRACE), (perf, perf_event)] {
        let (trace, _) = read_well(&file(head, event));
        assert_eq!(trace.len(), lines.len());
    }
}

#[test]
fn two_records_on_one_line_are_an_error_and_none_is_dropped() {
    let fiu = "89966104000000000 4892 sys 904265560 8 W 6 0 531e";
    let biosnoop = "0.000740 fio 1950 sda R 16 4096 0.74";
    let iolog = "0 /dev/sda write 0 131072";
    let spc = "0,303567,3584,w,0.026214";
    let header = "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)\n";
    for (format, line, head) in [
        (Format::Blkparse, BLKPARSE, ""),
        (Format::Ftrace, FTRACE, ""),
        (Format::Fiu, fiu, ""),
        (Format::Biosnoop, biosnoop, header),
        (Format::FioIolog, iolog, "fio version 3 iolog\n"),
        (Format::Spc, spc, ""),
    ] {
        for between in ["", " "] {
            // Where a number runs into the next one, or a bracket into it.
            let joined = format!("{line}{between}{line}");
            let text = format!("{head}{line}\n{joined}\n{line}\n");
            let read = load(text.as_bytes(), "t", &with(format, None));
            let error = read.err().unwrap_or_else(|| panic!("{format}: {joined}"));
            assert_eq!(error.place.unwrap().line, 2 + head.lines().count() as u64);
            let one = format!("{head}{line}\n{line}\n");
            assert_eq!(
                load(one.as_bytes(), "t", &with(format, None))
                    .unwrap()
                    .0
                    .len(),
                2
            );
        }
    }
    let error = read(&format!("{BLKPARSE}\n{BLKPARSE}{BLKPARSE}\n")).unwrap_err();
    assert!(error.message.contains("one record"), "{error}");
}

#[test]
fn carriage_returns_alone_end_no_lines() {
    for (format, text) in samples::ALL {
        let old = text.replace('\n', "\r");
        for options in [Options::default(), with(format, None)] {
            let error = load(old.as_bytes(), "t", &options).unwrap_err();
            assert!(error.message.contains("carriage returns alone"), "{error}");
            assert!(error.hint.unwrap().contains("tr "));
        }
        // Some lines of them.
        let mixed = format!("{text}{}\n", text.trim_end().replace('\n', "\r"));
        let error = load(mixed.as_bytes(), "t", &with(format, None)).unwrap_err();
        assert!(
            error.message.contains("carriage return"),
            "{format}: {error}"
        );
    }
}
