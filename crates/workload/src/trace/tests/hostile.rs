//! Does anything a file may hold make us panic, hang or guess?

use super::samples;
use super::*;
use crate::trace::info::info;
use crate::trace::{Fit, Format};
use proptest::prelude::*;

fn forced(text: &[u8], format: Format) -> Result<(Trace, Description), WorkloadError> {
    let options = Options {
        format: Some(format),
        ..Options::default()
    };
    load(text, "t.trace", &options)
}

#[test]
fn empty_files_say_so() {
    for text in ["", "\n\n", "# only\n# comments\n", "\u{feff}"] {
        let error = read(text).unwrap_err();
        assert!(error.message.contains("holds no request"), "{error}");
        for format in Format::ALL {
            assert!(forced(text.as_bytes(), format).is_err());
        }
    }
    for (format, text) in samples::ALL {
        let header = text.lines().next().unwrap();
        if format.may_have_header() && header.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let error = read(header).unwrap_err();
            assert!(error.message.contains("holds no read, write"), "{error}");
        }
    }
}

#[test]
fn a_trace_of_completions_only_is_told_what_to_record() {
    let text = "  8,0    1        4     0.000012345  1234  C  WS 2048 + 8 [0]\n\
                  8,0    1        5     0.000112345  1234  C  WS 2056 + 8 [0]\n";
    let error = read(text).unwrap_err();
    assert!(error.message.contains("holds no read, write"), "{error}");
    let hint = format!("{error:?}");
    assert!(
        hint.contains("2 completions of requests stand in it and no beginning"),
        "{hint}"
    );
}

#[test]
fn a_trace_of_one_long_line_is_not_called_empty() {
    for above in ["", "# comment\n"] {
        let text = format!("{above}{}", "1 0 0 8 0".repeat(40_000));
        let error = read(&text).unwrap_err();
        assert!(
            error.message.contains("may be at most 65536 bytes long"),
            "{error}"
        );
        let line = 1 + above.lines().count() as u64;
        assert_eq!(error.place.unwrap().line, line);
    }
}

#[test]
fn a_bad_line_names_its_place_its_column_and_the_way_out() {
    // The format is clear enough for the line to be blamed, not the file.
    let error = read("1,R,0,512,1000\n1,R,-5,512,1001\n1,R,0,512,1002\n").unwrap_err();
    assert_eq!(error.place.unwrap().line, 2);
    let good = "1,R,0,512,1000\n".repeat(100);
    for (bad, says) in [
        (
            "1,R,-5,512,1001",
            "`offset` must be a whole number below 2^64, found `-5`",
        ),
        ("1,R,NaN,512,1001", "found `NaN`"),
        (
            "1,R,0,512,nan",
            "`timestamp` must be a point in time in plain digits, such as `12.25`: no exponent, sign, word or unit, found `nan`",
        ),
        ("1,R,0,512,-1", "not negative, found `-1`"),
        ("1,R,0,512,1e9", "found `1e9`"),
        ("1,R,18446744073709551616,512,1", "below 2^64"),
        ("1,R,18446744073709551615,512,1001", "end below byte 2^64"),
        ("1,R,0,18446744073709551615,1001", "at most 2^60 bytes long"),
        ("1,X,0,512,1001", "`opcode` must be `R` or `W`, found `X`"),
        ("1,R,0,512", "must have 5 columns"),
        ("1,R,0,512,1001,1", "found 6"),
        ("1,R,0,512,99999999999999", "within 106 days"),
        ("\u{1b}[2J", "\\u{1b}[2J"),
    ] {
        let error = read(&format!("{good}{bad}\n{good}")).unwrap_err();
        assert!(error.message.contains(says), "{bad}: {error}");
        assert_eq!(error.place.as_ref().unwrap().line, 101);
        assert!(error.hint.unwrap().contains("--skip-malformed"));
        let options = Options {
            skip_malformed: true,
            ..Options::default()
        };
        let text = format!("{good}{bad}\n{good}");
        let (trace, description) = load(text.as_bytes(), "t", &options).unwrap();
        assert_eq!(trace.len(), 200);
        assert!(noted(&description, &["1 malformed line left out"]));
    }
    let (_, description) = read_well(&format!("{good}1,R,0,0,1001\n"));
    assert!(noted(&description, &["1 request of no bytes left out"]));
}

#[test]
fn a_file_cut_short_loses_its_last_line_only() {
    for (format, text) in samples::ALL {
        if matches!(format, Format::Blkparse) {
            continue; // Ends in a summary that is no request anyway.
        }
        // Cut inside the last request, before its last numbers.
        let body = text.trim_end();
        let body = body.strip_suffix("579 /dev/sdb close").unwrap_or(body);
        let body = body
            .strip_suffix("/dev/sdb close")
            .unwrap_or(body)
            .trim_end();
        let last = body.rfind('\n').unwrap();
        let cut = &text[..last + 1 + (body.len() - last) / 2];
        let Ok((trace, description)) = read(cut) else {
            panic!("{format}: {cut}");
        };
        // A cut line may still be a line (of fewer digits); it may never be an error.
        let told = noted(&description, &["cut short"]) || noted(&description, &["other kinds"]);
        assert!(trace.len() == 3 || (trace.len() == 2 && told), "{format}");
    }
}

#[test]
fn a_line_without_end_is_refused_without_reading_it_all() {
    struct Endless;
    impl std::io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            buffer.fill(b'1');
            Ok(buffer.len())
        }
    }
    let options = Options {
        format: Some(Format::Msr),
        ..Options::default()
    };
    let error = load(std::io::BufReader::new(Endless), "t", &options).unwrap_err();
    assert!(
        error.message.contains("at most 65536 bytes long"),
        "{error}"
    );
    assert!(load(std::io::BufReader::new(Endless), "t", &Options::default()).is_err());
}

#[test]
fn a_failing_reader_is_reported() {
    struct Failing;
    impl std::io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is on fire"))
        }
    }
    let reader = std::io::BufReader::new(Failing);
    let error = load(reader, "t", &Options::default()).unwrap_err();
    assert!(error.message.contains("the disk is on fire"));
}

#[test]
fn more_devices_than_can_be_told_apart_are_refused() {
    let text: String = (0..70_000).map(|i| format!("{i},R,0,512,1000\n")).collect();
    let error = read(&text).unwrap_err();
    assert!(error.message.contains("at most 65535 devices"), "{error}");
    assert_eq!(error.place.unwrap().line, 65_536);
}

/// Everything that may be done with whatever was read.
fn exercise(text: &[u8], options: &Options) {
    let Ok((mut trace, description)) = load(text, "t", options) else {
        return;
    };
    assert_eq!(description.requests, trace.len() as u64);
    assert!(trace.records().is_sorted_by_key(|record| record.time_ps));
    let _ = (info(&trace).to_string(), description.to_string());
    for to in Format::ALL {
        let _ = crate::trace::convert::convert(&trace, to, &mut std::io::sink());
    }
    let _ = trace.clone().fit(1 << 20, Fit::Error);
    let _ = trace.clone().fit(1 << 20, Fit::Scale);
    trace.fit(1 << 20, Fit::Wrap).unwrap();
    assert!(trace.end_bytes() <= 1 << 20);
}

fn any_format() -> impl Strategy<Value = Format> {
    prop::sample::select(Format::ALL.to_vec())
}

/// Lines made of pieces that mean something to one format or another.
fn plausible_text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "0",
        "1",
        "8,0",
        "R",
        "W",
        "Read",
        "Write",
        "FWFS",
        "FF",
        "N",
        "D",
        "Q",
        "+",
        ",",
        ",,",
        " ",
        "  ",
        "\n",
        "\n",
        "\r\n",
        "1456095145.133076000",
        "128166372003061629",
        "28",
        "2a",
        "4096",
        "18446744073709551615",
        "-1",
        "NaN",
        "1e9",
        "0.",
        ".5",
        "block_rq_issue:",
        ": block_",
        "1.0: block_rq_issue: 8,0 ",
        "1.0: block_rq_requeue: 8,0 ",
        "1.1: block_rq_complete: 8,0 ",
        "R 16 + 8\n",
        "W 18 + 2\n",
        "8,0 1 1 0.5 1 D ",
        "8,0 1 1 0.4 1 R ",
        "8,0 1 1 0.6 1 C ",
        "[fio]",
        "()",
        "fio version 3 iolog\n",
        "fio version 2 iolog\n",
        "/dev/sdb read ",
        "wait ",
        "sync ",
        "time_us,op,offset_bytes,length_bytes\n",
        "hm,1,",
        "# ",
        "\u{feff}",
        "\u{0}",
        "\"",
        "1152921504606846976",
        "[LOST 1 EVENTS]",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(lodger_testing::config(256))]

    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        format in prop::option::of(any_format()),
        skip_malformed: bool,
    ) {
        exercise(&bytes, &Options { format, skip_malformed, ..Options::default() });
    }

    #[test]
    fn plausible_pieces_never_panic(
        text in plausible_text(),
        format in prop::option::of(any_format()),
        skip_malformed: bool,
    ) {
        exercise(text.as_bytes(), &Options { format, skip_malformed, ..Options::default() });
    }

    #[test]
    fn damaged_samples_never_panic(
        sample in 0..samples::ALL.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        forced: bool,
        skip_malformed: bool,
    ) {
        let (format, text) = samples::ALL[sample];
        let mut bytes = text.as_bytes().to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let format = forced.then_some(format);
        exercise(&bytes, &Options { format, skip_malformed, ..Options::default() });
    }
}
