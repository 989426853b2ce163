//! Is a file taken for what it is, and is the user told?

use super::samples;
use super::*;
use crate::trace::Format;

#[test]
fn every_sample_is_recognised_and_says_the_same_three_requests() {
    for (format, text) in samples::ALL {
        let (trace, description) = read_well(text);
        assert_eq!(description.format, format, "{text}");
        assert_eq!(description.requests, 3);
        let said: Vec<_> = trace
            .records()
            .map(|r| (r.op, r.offset_bytes, r.length_bytes))
            .collect();
        let same = [
            (Op::Read, 8192, 4096),
            (Op::Write, 0, 512),
            (Op::Read, 4096, 512),
        ];
        assert_eq!(said, same, "{format}");
        assert!(trace.records().next().unwrap().time_ps == 0);
    }
}

#[test]
fn recognition_needs_neither_header_nor_final_newline_and_accepts_dos_lines() {
    for (format, text) in samples::ALL {
        let unterminated = text.trim_end();
        assert_eq!(read_well(unterminated).1.format, format);
        let dos = text.replace('\n', "\r\n");
        let (trace, description) = read_well(&dos);
        assert_eq!((description.format, trace.len()), (format, 3));
        if matches!(format, Format::Systor | Format::CloudPhysics) {
            let (_, headless) = text.split_once('\n').unwrap();
            assert_eq!(read_well(headless).1.format, format);
        }
    }
}

#[test]
fn headers_are_known_in_any_case_and_with_quotes() {
    for format in [Format::Msr, Format::Alibaba, Format::Tencent] {
        let (_, body) = samples::ALL.iter().find(|(f, _)| *f == format).unwrap();
        let header = format.columns().to_uppercase().replace(',', "\",\"");
        let (trace, description) = read_well(&format!("\"{header}\"\n{body}"));
        assert_eq!((description.format, trace.len()), (format, 3));
        // A header we have never seen: the columns below it still tell.
        let (trace, description) = read_well(&format!("a,b,c\n{body}"));
        assert_eq!((description.format, trace.len()), (format, 3));
    }
}

#[test]
fn the_summary_states_format_units_and_coding() {
    let (_, description) = read_well("4851300 1 16 8 1\n4864300 7 0 1 0\n");
    assert_eq!(
        description.summary,
        "MQSim ASCII (recognised by its columns): time in ns, addresses in sectors of 512 B, \
         0 write, 1 read; 2 requests"
    );
    assert!(noted(
        &description,
        &["unit of time", "ns assumed", "--time-unit"]
    ));
    assert!(noted(
        &description,
        &["0 write, 1 read", "Tencent", "opposite"]
    ));
    let (_, description) = read_well("419,R,8192,4096,1577808144360767\n");
    assert_eq!(
        description.summary,
        "Alibaba block trace (recognised by its columns): time in us, addresses in bytes, \
         `R` read, `W` write; 1 request of `419`"
    );
}

#[test]
fn columns_that_two_formats_could_share_are_said_to() {
    let (_, description) = read_well("1538323200,16,8,0,1\n1538323200,0,1,1,0\n");
    assert_eq!(description.format, Format::Tencent);
    assert!(noted(
        &description,
        &["could also be", "MQSim", "--format mqsim"]
    ));
}

#[test]
fn decimals_in_mqsim_times_are_disksims_milliseconds() {
    let (trace, description) = read_well("0.5 0 0 8 1\n1.25 0 8 8 1\n");
    assert_eq!(description.format, Format::Mqsim);
    assert_eq!(trace.duration_ps(), 750_000_000);
    assert!(noted(&description, &["ms assumed"]));
}

#[test]
fn cloudphysics_times_too_dense_for_microseconds_are_seconds() {
    let text = |gap: u64| -> String {
        let line = |i: u64| format!("1,{},28,512,{i}\n", 5_633_898 + i * gap / 4);
        "version,time,op,size,lbn\n".to_owned() + &(0..100).map(line).collect::<String>()
    };
    let (trace, description) = read_well(&text(1));
    assert_eq!(trace.duration_ps(), 24_000_000_000_000);
    assert!(noted(&description, &["times read as s", "too dense"]));
    assert!(noted(
        &description,
        &["all requests of a second arrive at once"]
    ));
    let (trace, description) = read_well(&text(400));
    assert_eq!(trace.duration_ps(), 9_900_000_000);
    assert!(noted(&description, &["times read as us", "--time-unit"]));
    assert_eq!(description.notes.len(), 1);
}

#[test]
fn an_ftrace_that_begins_with_other_events_is_recognised() {
    let mut text = String::new();
    for i in 0..500 {
        text += &format!("  fio-1 [000] ..... 1.{i:06}: block_plug: [fio]\n");
    }
    text += "  fio-1 [000] ..... 2.000000: block_rq_issue: 8,0 R 512 () 0 + 1 [fio]\n";
    let (trace, description) = read_well(&text);
    assert_eq!((description.format, trace.len()), (Format::Ftrace, 1));
    assert!(noted(&description, &["500 lines of other kinds"]));
}

#[test]
fn what_is_not_recognised_says_what_would_be() {
    let error = read("# a comment\n\nhello world\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the trace's format is not recognised; the first line is `hello world` (t.trace:3)"
    );
    let hint = error.hint.unwrap();
    for format in Format::ALL {
        assert!(hint.contains(format.name()));
    }
    assert!(hint.contains("time_us,op,offset_bytes,length_bytes"));
}

#[test]
fn files_that_are_no_text_say_what_to_do() {
    let cases: [(&[u8], &str, &str); 3] = [
        (b"\x17\x08\x44tracing", "trace-cmd", "trace-cmd report"),
        (b"\xff\xfea\0b\0", "UTF-16", "iconv"),
        (b"abc\0def", "binary", "write other ones as CSV"),
    ];
    for (bytes, what, hint) in cases {
        for format in [None, Some(Format::Msr)] {
            let options = Options {
                format,
                ..Options::default()
            };
            let error = load(bytes, "x", &options).unwrap_err();
            assert!(error.message.contains(what), "{}", error.message);
            assert!(error.hint.unwrap().contains(hint));
        }
    }
}

#[test]
fn names_of_formats_round_trip() {
    for format in Format::ALL {
        assert_eq!(format.name().parse(), Ok(format));
    }
    assert!("MSR".parse::<Format>().is_ok());
    assert!(
        "nonsense"
            .parse::<Format>()
            .unwrap_err()
            .hint
            .unwrap()
            .contains("msr")
    );
}
