//! Is a file taken for what it is, and is the user told?

use super::samples;
use super::*;
use crate::trace::{Format, TimeUnit};
use lodger_core::time::{S, US};

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

/// Requests at these times.
fn cloudphysics(header: &str, times: impl IntoIterator<Item = u64>) -> String {
    let line = |(i, at): (u64, u64)| format!("1,{at},28,512,{i}\n");
    let lines: String = (0..).zip(times).map(line).collect();
    format!("{header}\n{lines}")
}

const CLOUDPHYSICS: &str = "version,time,op,size,lbn";

#[test]
fn cloudphysics_seconds_are_known_by_how_uneven_they_are() {
    // A quiet machine: a request in most seconds, a hundred in every twentieth.
    let times = (0..2000).flat_map(|second| {
        let requests = if second % 20 == 7 { 100 } else { 1 };
        std::iter::repeat_n(5_633_898 + second, requests)
    });
    let (trace, description) = read_well(&cloudphysics(CLOUDPHYSICS, times));
    assert_eq!(trace.duration_ps(), 1999 * S);
    let why = [
        "times read as s",
        "too dense",
        "up to 100 at once",
        "--time-unit us",
    ];
    assert!(noted(&description, &why), "{description}");
    assert!(noted(
        &description,
        &["all requests of a second arrive at once"]
    ));
    // A busy one: the beginning has few seconds.
    let busy = (0..2000).map(|i| i / 300);
    let (trace, _) = read_well(&cloudphysics(CLOUDPHYSICS, busy));
    assert_eq!(trace.duration_ps(), 6 * S);
    let sparse = (0..100).map(|i| 5_633_898 + i * 100);
    let (trace, description) = read_well(&cloudphysics(CLOUDPHYSICS, sparse));
    assert_eq!(trace.duration_ps(), 9_900 * US);
    assert!(noted(&description, &["times read as us", "--time-unit"]));
    assert_eq!(description.notes.len(), 1);
}

#[test]
fn cloudphysics_microseconds_of_fast_drives_are_no_seconds() {
    let all_at_once = |each: u64, every: u64| (0..9000).map(move |i| i / each * every);
    let cases: [(&str, Vec<u64>); 6] = [
        ("250,000 a second", (0..3000).map(|i| i * 4).collect()),
        ("3 million", (0..9000).map(|i| i / 3).collect()),
        ("10 million", all_at_once(10, 1).collect()),
        ("64 at once every 20 us", all_at_once(64, 20).collect()),
        ("64 in 4 us", (0..64).map(|i| 7 + i / 16).collect()),
        ("all at once", vec![5; 500]),
    ];
    for (what, times) in cases {
        let last = times[times.len() - 1] - times[0];
        let (trace, description) = read_well(&cloudphysics(CLOUDPHYSICS, times));
        assert_eq!(trace.duration_ps(), last * US, "{what}");
        let doubt = ["times read as us", "may be s", "--time-unit s`"];
        assert!(noted(&description, &doubt), "{what}: {description}");
    }
}

#[test]
fn cloudphysics_columns_may_name_the_unit_of_time() {
    let dense = || (0..2000).map(|i| i / 300);
    for (header, unit_ps) in [
        ("version,time_us,op,size,lbn", US),
        ("VERSION,Time_S,op,size,lbn", S),
    ] {
        for times in [dense().collect::<Vec<_>>(), (0..7).collect()] {
            let (trace, description) = read_well(&cloudphysics(header, times));
            assert_eq!(description.format, Format::CloudPhysics);
            assert_eq!(trace.duration_ps(), 6 * unit_ps, "{header}");
            assert!(!noted(&description, &["times read as"]));
        }
    }
}

/// Guessed wrongly, it is the guess that is told, and no good request is left out for it.
#[test]
fn a_guessed_unit_of_time_that_does_not_fit_is_blamed() {
    // More than is looked at.
    let crowded = (0..20_000).map(|i| i / 300);
    let text = cloudphysics(CLOUDPHYSICS, crowded.chain([20_000_000]));
    for skip_malformed in [false, true] {
        let mut options = Options {
            skip_malformed,
            ..Options::default()
        };
        let error = load(text.as_bytes(), "t", &options).err().unwrap();
        let says = ["106 days", "read as s, which the file does not say"];
        assert!(
            says.iter().all(|says| error.message.contains(says)),
            "{error}"
        );
        assert_eq!(error.place.unwrap().line, 20_002);
        assert!(error.hint.unwrap().contains("--time-unit us"));
        // The null.
        options.time_unit = Some(TimeUnit::Microseconds);
        assert_eq!(
            load(text.as_bytes(), "t", &options).unwrap().0.len(),
            20_001
        );
    }
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
