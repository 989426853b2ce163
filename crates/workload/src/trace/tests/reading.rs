//! Does each format's line mean what it should?

use super::*;

const US: u64 = 1_000_000;

#[test]
fn msr_times_are_ticks_of_100_ns() {
    let text =
        "128166372003061629,hm,1,Read,0,512,413\n128166372003061639,hm,1,Write,512,512,413\n";
    assert_eq!(
        records(text),
        [record(0, Op::Read, 0, 512), record(US, Op::Write, 512, 512)]
    );
}

#[test]
fn tencent_and_mqsim_code_read_and_write_oppositely() {
    assert_eq!(records("1538323200,0,8,0,1063\n")[0].op, Op::Read);
    assert_eq!(records("1538323200,0,8,1,1063\n")[0].op, Op::Write);
    assert_eq!(records("100 0 0 8 1\n")[0].op, Op::Read);
    assert_eq!(records("100 0 0 8 0\n")[0].op, Op::Write);
}

#[test]
fn systor_keeps_microseconds_of_unix_seconds() {
    let text = "1456095145.133076000,0.1,R,3,0,512\n1456095145.133077000,0.1,,3,0,512\n\
                1456095145.133079000,,W,3,0,512\n";
    let (trace, description) = read_well(text);
    let got: Vec<_> = trace.records().collect();
    assert_eq!(
        got,
        [
            record(0, Op::Read, 0, 512),
            record(3 * US, Op::Write, 0, 512)
        ]
    );
    assert!(noted(
        &description,
        &["1 request without a recorded response"]
    ));
}

#[test]
fn cloudphysics_takes_every_scsi_width_and_counts_the_rest() {
    let mut text = String::from("version,time,op,size,lbn\n");
    for (code, time) in ["28", "88", "a8", "08", "2a", "8a", "AA", "0a", "35", "42"]
        .iter()
        .zip(1..)
    {
        text += &format!("1,{time},{code},1024,4\n");
    }
    let (trace, description) = read_well(&text);
    let ops: Vec<_> = trace.records().map(|r| r.op).collect();
    assert_eq!(ops[..4], [Op::Read; 4]);
    assert_eq!(ops[4..8], [Op::Write; 4]);
    assert_eq!(ops[8..], [Op::Flush]);
    assert_eq!(
        trace.records().next().unwrap(),
        record(0, Op::Read, 2048, 1024)
    );
    assert!(noted(
        &description,
        &["1 command other than read, write, flush and trim"]
    ));
}

#[test]
fn plain_csv_knows_flush_discard_and_fua() {
    let text = "time_us,op,offset_bytes,length_bytes,flags\n10,W,8192,4096,FUA\n10.000001,f,,,\n\
                12,D,0,1048576,\n";
    let fua = Record {
        fua: true,
        ..record(0, Op::Write, 8192, 4096)
    };
    let flush = record(1, Op::Flush, 0, 0);
    let trim = record(2 * US, Op::Trim, 0, 1 << 20);
    // The flush's columns must be empty or numbers: they are ignored.
    assert_eq!(records(text), [fua, flush, trim]);
}

#[test]
fn blkparse_takes_queued_requests_where_there_are_any() {
    let line = |time: &str, action: &str, rest: &str| {
        format!("  8,0    1        1     {time}  4201  {action}   {rest} [fio]\n")
    };
    let issued = line("0.000002000", "D", "R 16 + 8");
    let queued = line("0.000001000", "Q", "R 16 + 8");
    let (trace, description) = read_well(&(issued.clone() + &queued + &issued));
    assert_eq!(trace.len(), 1);
    assert!(noted(
        &description,
        &["2 events of other actions", "as `Q` (queued)"]
    ));
    assert_eq!(records(&(issued.clone() + &issued)).len(), 2);
    // One stray line of `Q` does not stand for all that the drive was asked for.
    let many = issued.repeat(5);
    let (trace, description) = read_well(&(queued.clone() + &many));
    assert_eq!(trace.len(), 5);
    assert!(noted(
        &description,
        &["1 event of other actions", "as `D` (issued to the drive)"]
    ));
    // The null: `Q` that was split into many of `D` has all the bytes.
    let split = line("0.000001000", "Q", "R 16 + 40");
    assert_eq!(read_well(&(split + &many)).0.len(), 1);

    let options = Options {
        action: Some('D'),
        ..Options::default()
    };
    let text = queued + &issued + &issued;
    let (trace, _) = load(text.as_bytes(), "t", &options).unwrap();
    assert_eq!(trace.len(), 2);
}

#[test]
fn blkparse_flushes_and_fua() {
    let line = |time: u32, rest: &str| {
        format!("  8,0    1        1     0.00000{time}000  4201  Q {rest} [fio]\n")
    };
    let text = line(0, "FWS 16 + 8")
        + &line(1, "WFS 24 + 8")
        + &line(2, "FWFSM 32 + 8")
        + &line(3, "FN")
        + &line(4, "FWS 0 + 0")
        + &line(5, "FF 18446744073709551615 + 0")
        + &line(6, "DS 40 + 8")
        + &line(7, "N 36 (a0 00)")
        + &line(8, "R 0 + 0");
    let (trace, description) = read_well(&text);
    let said: Vec<_> = trace
        .records()
        .map(|r| (r.time_ps / US, r.op, r.fua, r.offset_bytes))
        .collect();
    assert_eq!(
        said,
        [
            (0, Op::Flush, false, 0),
            (0, Op::Write, false, 8192),
            (1, Op::Write, true, 12288),
            (2, Op::Flush, false, 0),
            (2, Op::Write, true, 16384),
            (3, Op::Flush, false, 0),
            (4, Op::Flush, false, 0),
            (5, Op::Flush, false, 0),
            (6, Op::Trim, false, 20480),
        ]
    );
    assert!(noted(&description, &["1 command other than"]));
    assert!(noted(&description, &["1 request of no bytes"]));
}

#[test]
fn ftrace_lines_of_every_kernel_and_tool() {
    let text = "\
          <...>-1   [007] .... 19654.923315: block_bio_queue: 8,0 FWS 0 + 0 [rep]
 kworker/7:1H-250   [007] .... 19654.923352: block_rq_issue: 8,0 FF 0 () 18446744073709551615 + 0 [kworker/7:1H]
         <idle>-0   [007] ..s. 19654.923562: block_rq_complete: 8,0 FF () 18446744073709551615 + 0 [0]
        fio-2 (  2) [001] d..1 19654.923600: block_rq_issue: 8,0 W 0 () 16 + 8 [fio]
            fio-3   [001]      19654.923700: block_rq_issue:       8,0 WFSU 4096 () 24 + 8 none,0,0 |32| [fio]
             sg-4   [001] .... 19654.923800: block_rq_issue: 8,0 N 36 (12 00 00 00 24 00) 0 + 0 [sg]
         mkfs-4     [001] .... 19654.923850: block_rq_issue: 8,0 WZS 4096 () 0 + 8 [mkfs]
 block_rq_issue:-5  [001] .... 19654.923900: block_rq_issue: 8,0 DS 65536 () 128 + 128 [block_rq_issue:]
CPU:1 [LOST 42 EVENTS]
";
    let (trace, description) = read_well(text);
    let said: Vec<_> = trace
        .records()
        .map(|r| (r.op, r.fua, r.offset_bytes))
        .collect();
    assert_eq!(
        said,
        [
            (Op::Flush, false, 0),
            (Op::Write, false, 8192),
            (Op::Write, true, 12288),
            (Op::Trim, false, 65536)
        ]
    );
    assert_eq!(trace.duration_ps(), 548 * US);
    assert!(noted(&description, &["2 commands other than"]));
    assert!(noted(&description, &["1 gap", "lost events"]));
    assert!(noted(&description, &["1 event of other actions"]));
}

#[test]
fn an_ftrace_whose_buffer_was_overwritten_says_so() {
    let text = |counts: &str| {
        format!(
            "# tracer: nop\n#\n# entries-in-buffer/entries-written: {counts}   #P:4\n#\n \
             fio-1 [000] .... 1.000000: block_rq_issue: 8,0 R 0 () 16 + 8 [fio]\n"
        )
    };
    let (_, description) = read_well(&text("140080/250280"));
    assert!(noted(&description, &["overwrote 110,200 events"]));
    assert_eq!(read_well(&text("1/1")).1.notes, [""; 0]);
}

#[test]
fn ftrace_without_issue_events_falls_back_on_queued_bios() {
    let text = "# tracer: nop\n fio-1 [000] .... 1.000000: block_bio_queue: 8,0 FW 16 + 8 [fio]\n";
    let ops: Vec<_> = records(text).iter().map(|r| r.op).collect();
    assert_eq!(ops, [Op::Flush, Op::Write]);
}

#[test]
fn ftrace_clocks_that_are_no_seconds_are_refused() {
    let text =
        "# tracer: nop\n fio-1 [000] .... 123456789: block_rq_issue: 8,0 R 0 () 16 + 8 [fio]\n";
    let error = read(text).unwrap_err();
    assert!(error.message.contains("trace clock"), "{error}");
    assert_eq!(error.place.unwrap().line, 2);
}

#[test]
fn iolog_3_as_fio_writes_it() {
    let text = "fio version 3 iolog\n22 /f add\n162 /f open\n169 /f read 61440 4096\n\
                397 /f trim 0 4096\n447 /f sync 0 0\n450 /f datasync\n579 /f close\n";
    let got = records(text);
    assert_eq!(
        got,
        [
            record(0, Op::Read, 61440, 4096),
            record(228 * US, Op::Trim, 0, 4096),
            record(278 * US, Op::Flush, 0, 0),
            record(281 * US, Op::Flush, 0, 0)
        ]
    );
    let error = read("fio version 3 iolog\n10 /f wait 10 0\n").unwrap_err();
    assert!(error.message.contains("not allowed"));
}

#[test]
fn iolog_2_waits_add_up_as_documented() {
    let text = "fio version 2 iolog\n/f add\n/f open\n/f read 0 512\n/f wait 100\n/f wait 50 0\n\
                /f write 0 512\n/f wait 10\n/f sync 0 0\n/f close\n";
    let times: Vec<_> = records(text).iter().map(|r| r.time_ps / US).collect();
    assert_eq!(times, [0, 150, 160]);
    let error = read("fio version 1 iolog\n/f read 0 512\n").unwrap_err();
    assert!(error.message.contains("version 2 or 3"), "{error}");
}

#[test]
fn time_going_backwards_is_sorted_stably_and_counted() {
    let text = "100 0 8 8 1\n50 0 16 8 1\n100 0 24 8 1\n70 0 32 8 1\n";
    let (trace, description) = read_well(text);
    let order: Vec<_> = trace
        .records()
        .map(|r| (r.time_ps, r.offset_bytes / 4096))
        .collect();
    assert_eq!(order, [(0, 2), (20_000, 4), (50_000, 1), (50_000, 3)]);
    assert!(noted(
        &description,
        &["2 requests are earlier", "sorted by time"]
    ));
}

#[test]
fn a_counter_of_32_bits_that_began_anew_is_named() {
    let text = |first: u64| {
        format!("time_us,op,offset_bytes,length_bytes\n{first},R,0,4096\n5,W,4096,4096\n")
    };
    let wrapped = ["sorted by time", "4295 s earlier", "32-bit counter"];
    assert!(noted(&read_well(&text(4_294_967_290)).1, &wrapped));
    for first in [3_000_000_000, 5_000_000_000] {
        let (_, description) = read_well(&text(first));
        assert!(noted(&description, &["sorted by time"]));
        assert!(!noted(&description, &["32-bit"]));
    }
}

#[test]
fn headers_repeated_by_cat_are_passed_over() {
    let file = "version,time,op,size,lbn\n1,1,28,512,0\n";
    assert_eq!(records(&file.repeat(3)).len(), 3);
}

#[test]
fn pass_through_commands_that_move_data_are_left_out() {
    // As `blkparse` prints them: bytes instead of sectors.
    let (trace, description) = read_well(
        "  8,0    1        1     0.000000412  4201  Q   R 36 (12 01 80 00 24 00 ..) [smartd]\n\
         \u{20} 8,0    1        2     0.000001502  4201  Q   R 8704 [fio]\n\
         \u{20} 8,0    1        3     0.000002011  4201  Q   R 16 + 8 [fio]\n",
    );
    assert_eq!(trace.len(), 1);
    assert!(noted(&description, &["2 commands", "left out"]));
}
