//! Is what was written read back the same, within what the format can hold?

use super::*;
use crate::trace::Format;
use crate::trace::convert::convert;
use proptest::prelude::*;

const DAY_PS: u64 = 86_400_000_000_000_000;

fn any_record() -> impl Strategy<Value = Record> {
    let op = prop_oneof![
        4 => Just(Op::Read),
        4 => Just(Op::Write),
        1 => Just(Op::Flush),
        1 => Just(Op::Trim)
    ];
    let offset = prop_oneof![0u64..1 << 20, 0u64..1 << 50];
    (0..30 * DAY_PS, op, any::<bool>(), offset, 1u64..1 << 24).prop_map(
        |(time_ps, op, fua, offset, length)| {
            let flush = op == Op::Flush;
            Record {
                time_ps,
                op,
                fua: fua && op == Op::Write,
                offset_bytes: if flush { 0 } else { offset },
                length_bytes: if flush { 0 } else { length },
            }
        },
    )
}

/// What is left of a trace in a format: said a second time, as plainly as possible.
fn degraded(trace: &Trace, to: Format) -> Vec<Record> {
    let (flush, trim, fua) = match to {
        Format::Csv | Format::Blkparse | Format::Ftrace => (true, true, true),
        Format::FioIolog => (true, true, false),
        Format::CloudPhysics => (true, false, false),
        _ => (false, false, false),
    };
    let sectors = matches!(
        to,
        Format::Blkparse | Format::Ftrace | Format::Mqsim | Format::Tencent | Format::Fiu
    );
    let tick_ps = match to {
        Format::Csv => 1,
        Format::Blkparse | Format::Systor | Format::Mqsim | Format::Spc | Format::Fiu => 1_000,
        Format::Msr => 100_000,
        Format::Tencent => 1_000_000_000_000,
        _ => 1_000_000,
    };
    let mut out = Vec::new();
    for mut record in trace.records() {
        if record.op == Op::Flush && !flush || record.op == Op::Trim && !trim {
            continue;
        }
        record.fua &= fua;
        // These count addresses in sectors but lengths in bytes.
        let both = matches!(to, Format::CloudPhysics | Format::Spc | Format::Biosnoop);
        if record.op == Op::Trim && sectors {
            // Nothing beside it may be trimmed.
            let end = record.end_bytes() / 512 * 512;
            record.offset_bytes = record.offset_bytes.div_ceil(512) * 512;
            if end <= record.offset_bytes {
                continue;
            }
            record.length_bytes = end - record.offset_bytes;
        } else if sectors || both && record.offset_bytes % 512 != 0 {
            let end = record.end_bytes().div_ceil(512) * 512;
            record.offset_bytes = record.offset_bytes / 512 * 512;
            record.length_bytes = end - record.offset_bytes;
        }
        record.time_ps = record.time_ps / tick_ps * tick_ps;
        out.push(record);
    }
    let first_ps = out.first().map_or(0, |record| record.time_ps);
    for record in &mut out {
        record.time_ps -= first_ps;
    }
    out
}

proptest! {
    #![proptest_config(lodger_testing::config(256))]

    #[test]
    fn what_is_written_is_read_back(
        records in prop::collection::vec(any_record(), 1..40),
        format in prop::sample::select(Format::ALL.to_vec()),
    ) {
        let trace = Trace::from_records("t", records);
        let expected = degraded(&trace, format);
        let mut text = Vec::new();
        match convert(&trace, format, &mut text) {
            Err(_) => prop_assert!(expected.is_empty()),
            Ok(losses) => {
                prop_assert_eq!(losses.written, expected.len() as u64);
                let options = Options { format: Some(format), ..Options::default() };
                let (back, _) = load(&text[..], "t", &options).unwrap();
                prop_assert_eq!(back.records().collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn what_is_written_is_recognised(
        mut records in prop::collection::vec(any_record(), 1..200),
        format in prop::sample::select(Format::ALL.to_vec()),
    ) {
        // Without any request that moves data even a person could not tell some formats.
        records.push(record(0, Op::Read, 8192, 4096));
        // SCSI moves whole blocks, by which CloudPhysics is told from Tencent; all others by
        // their shape alone.
        let mut trace = Trace::from_records("t", records);
        trace.fit(u64::MAX, crate::trace::Fit::Error).unwrap();
        let mut text = Vec::new();
        convert(&trace, format, &mut text).unwrap();
        let (_, description) = load(&text[..], "t", &Options::default()).unwrap();
        prop_assert_eq!(description.format, format);
    }
}

#[test]
fn a_trim_is_written_no_longer_than_it_is() {
    let trims = [(1, 8190), (700, 100)].map(|(at, length)| record(0, Op::Trim, at, length));
    let trace = Trace::from_records("t", trims);
    let mut text = Vec::new();
    let losses = convert(&trace, Format::Blkparse, &mut text).unwrap();
    assert!(String::from_utf8(text).unwrap().contains(" D 1 + 14 "));
    assert_eq!((losses.narrowed, losses.emptied, losses.widened), (1, 1, 0));
    assert_eq!(losses.written, 1);
    assert!(
        losses.notes[0].contains("1 trim narrowed"),
        "{:?}",
        losses.notes
    );
    assert!(losses.notes[1].contains("1 trim of less than a whole sector"));
}

/// However dense, the unit of time is in the file.
#[test]
fn what_is_written_as_cloudphysics_is_read_in_its_unit_of_time() {
    let dense = (0..2000).map(|i| record(i / 300 * 1_000_000, Op::Read, i * 4096, 4096));
    let trace = Trace::from_records("t", dense);
    let mut text = Vec::new();
    let losses = convert(&trace, Format::CloudPhysics, &mut text).unwrap();
    assert_eq!(losses.notes, [""; 0]);
    let (back, description) = load(&text[..], "t", &Options::default()).unwrap();
    assert_eq!(description.format, Format::CloudPhysics);
    assert!(back.records().eq(trace.records()));
}

#[test]
fn losses_are_counted_and_told() {
    let fua = Record {
        fua: true,
        ..record(1, Op::Write, 100, 512)
    };
    let trace = Trace::from_records(
        "t",
        [
            record(0, Op::Flush, 0, 0),
            fua,
            record(2, Op::Trim, 0, 512),
            record(3, Op::Flush, 0, 0),
        ],
    );
    let mut text = Vec::new();
    let losses = convert(&trace, Format::Tencent, &mut text).unwrap();
    assert_eq!(text, b"1577836800,0,2,1,0\n");
    assert_eq!(
        losses.notes,
        [
            "Tencent CBS trace: 2 flush requests left out: the format has none",
            "Tencent CBS trace: 1 trim request left out: the format has none",
            "Tencent CBS trace: 1 FUA write written as ordinary ones",
            "Tencent CBS trace: 1 request widened to whole sectors of 512 B",
            "Tencent CBS trace: 1 time rounded down to 1 s",
        ]
    );
    let losses = convert(&trace, Format::Csv, &mut Vec::new()).unwrap();
    assert_eq!((losses.written, losses.notes.len()), (4, 0));
    let flushes = Trace::from_records("t", [record(0, Op::Flush, 0, 0)]);
    let error = convert(&flushes, Format::Msr, &mut Vec::new()).unwrap_err();
    assert!(error.message.contains("none of the trace's requests"));
}

#[test]
fn each_format_as_it_is_written() {
    let fua = Record {
        fua: true,
        ..record(1_500_000, Op::Write, 4096, 512)
    };
    let trace = Trace::from_records("t", [record(0, Op::Read, 8192, 4096), fua]);
    let written = |format| {
        let mut text = Vec::new();
        convert(&trace, format, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    };
    let csv = "time_us,op,offset_bytes,length_bytes,flags\n0,R,8192,4096,\n1.5,W,4096,512,FUA\n";
    assert_eq!(written(Format::Csv), csv);
    assert_eq!(
        written(Format::Msr),
        "132223104000000000,lodger,0,Read,8192,4096,0\n132223104000000015,lodger,0,Write,4096,512,0\n"
    );
    assert_eq!(written(Format::Mqsim), "0 0 16 8 1\n1500 0 8 1 0\n");
    assert_eq!(
        written(Format::FioIolog),
        "fio version 3 iolog\n0 lodger add\n0 lodger open\n0 lodger read 8192 4096\n\
         1 lodger write 4096 512\n1 lodger close\n"
    );
    assert_eq!(
        written(Format::Blkparse),
        "  8,0    0        1     0.000000000     0  Q   R 16 + 8 [lodger]\n\
         \u{20} 8,0    0        2     0.000001500     0  Q  WF 8 + 1 [lodger]\n"
    );
}

#[test]
fn a_full_disk_is_reported() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("no space left on device"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let trace = Trace::from_records("t", [record(0, Op::Read, 0, 512)]);
    let error = convert(&trace, Format::Csv, &mut Full).unwrap_err();
    assert!(error.message.contains("no space left"));
}
