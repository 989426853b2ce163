//! Is what the user is told true, does it name what is wrong first, and does it say what to do next?

use crate::common::Sandbox;
use flate2::{Compression, write::GzEncoder};
use std::io::Write;

const JOB: &str = "[job]\nrw=randread\nbs=4k\nsize=1m\n";

/// What is said of a command that must fail.
fn refused(sandbox: &Sandbox, line: &str) -> String {
    let args: Vec<&str> = line.split_whitespace().collect();
    let outcome = sandbox.run(&args);
    assert_eq!(outcome.code, Some(2), "{line}\n{}", outcome.stderr);
    assert_eq!(outcome.stdout, "", "{line}: stdout is data");
    outcome.stderr
}

/// The first line, and the hint.
fn parts(said: &str) -> (String, String) {
    let first = said.lines().next().unwrap_or_default().to_owned();
    let hint = said.lines().find_map(|line| line.strip_prefix("hint: "));
    (first, hint.unwrap_or_default().to_owned())
}

#[test]
fn a_wrong_way_to_commit_is_named_before_there_is_nothing_to_compare() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOB);
    let (first, hint) = parts(&refused(
        &sandbox,
        "compare job.fio --drive tiny --commit blok",
    ));
    assert_eq!(
        first,
        "error: `--commit` must be `block`, `ba` or `async`, found `blok`"
    );
    assert_eq!(hint, "did you mean `block`?");
    let (first, hint) = parts(&refused(
        &sandbox,
        "compare job.fio --drive tiny --commit block",
    ));
    assert_eq!(
        first,
        "error: `--commit` is for models of database logging, and `job.fio` is a fio job file"
    );
    assert!(hint.contains("leave it out"), "{hint}");
    let (first, _) = parts(&refused(
        &sandbox,
        "simulate job.fio --drive tiny --clients 4",
    ));
    assert!(
        first.starts_with("error: `--clients` is for models"),
        "{first}"
    );
}

/// A trace packed without compression, so that damage inside leaves a text that can be read.
fn packed_trace() -> Vec<u8> {
    let mut text = String::from("time_us,op,offset_bytes,length_bytes\n");
    for at in 0..5000u64 {
        text += &format!("{},R,{},4096\n", at * 10, at % 512 * 4096);
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::none());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

#[test]
fn a_damaged_packed_trace_is_not_told_as_one_with_wrong_columns() {
    let sandbox = Sandbox::new();
    let whole = packed_trace();
    // In a number of a line in the middle, and in the header.
    for at in [whole.len() / 2, 40] {
        let mut damaged = whole.clone();
        damaged[at..at + 12].fill(b'!');
        sandbox.file("t.csv.gz", &damaged);
        for line in [
            "trace info t.csv.gz",
            "simulate t.csv.gz --drive tiny",
            "trace info t.csv.gz --format csv",
            "trace info t.csv.gz --skip-malformed",
        ] {
            let (first, hint) = parts(&refused(&sandbox, line));
            assert_eq!(
                first, "error: cannot read `t.csv.gz`: what gzip packed is cut short or damaged",
                "{line}, at {at}"
            );
            assert!(hint.contains("copy or pack it again"), "{hint}");
        }
    }
    // A wrong line of a file that is whole is still that.
    sandbox.file(
        "t.csv",
        "time_us,op,offset_bytes,length_bytes\n0,R,x,4096\n",
    );
    let (first, _) = parts(&refused(&sandbox, "trace info t.csv"));
    assert!(first.ends_with("(t.csv:2)"), "{first}");
}

#[test]
fn quiet_commands_tell_no_notes() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "cut.csv",
        "time_us,op,offset_bytes,length_bytes\n0,R,0,4096\n5,R,4096,4096\n9,R,81",
    );
    sandbox.file("three.mqsim", "0 0 0 8 1\n100 0 8 8 1\n200 0 16 8 0\n");
    let mqsim = "three.mqsim --format mqsim";
    for line in [
        "trace info cut.csv",
        &format!("trace info {mqsim}"),
        &format!("trace convert {mqsim} --to fio-iolog --output out.log"),
        "simulate cut.csv --drive tiny",
        "advise cut.csv --drive rc100-240",
        "compare cut.csv --drive tiny --hmb off,1MiB",
    ] {
        let args: Vec<&str> = line.split_whitespace().collect();
        let loud = sandbox.run(&args);
        let all = format!("{}{}", loud.stdout, loud.stderr);
        assert!(all.contains("note: "), "{line}: {all}");
        let quiet = sandbox.run(&[&["--quiet"], &args[..]].concat());
        assert_eq!(quiet.code, loud.code);
        let all = format!("{}{}", quiet.stdout, quiet.stderr);
        assert!(!all.contains("note:"), "{line}: {all}");
        assert!(quiet.stdout.len() >= loud.stdout.len() / 2, "{line}");
    }
}

#[test]
fn manual_pages_make_their_folder() {
    let sandbox = Sandbox::new();
    sandbox.ok(&["man", "--out", "share/man/man1"]);
    assert!(sandbox.dir.join("share/man/man1/lodger.1").is_file());
    sandbox.file("file", "");
    let (first, _) = parts(&refused(&sandbox, "man --out file"));
    assert!(first.starts_with("error: `file` is no folder"), "{first}");
}

#[test]
fn numbers_of_options_are_refused_with_key_value_and_range() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOB);
    let whole = "must be a whole number from";
    for (line, expected) in [
        (
            "simulate job.fio --drive tiny --seed -1",
            format!("`--seed` {whole} 0 to 18446744073709551615, found `-1`"),
        ),
        (
            "simulate job.fio --drive tiny --seed=1e3",
            format!("`--seed` {whole} 0 to 18446744073709551615, found `1e3`"),
        ),
        (
            "advise job.fio --drive tiny --seed 18446744073709551616",
            format!("`--seed` {whole} 0 to 18446744073709551615, found `18446744073709551616`"),
        ),
        (
            "simulate t.csv --drive tiny --replay closed --iodepth many",
            format!("`--iodepth` {whole} 1 to 4294967295, found `many`"),
        ),
        (
            "simulate t.csv --drive tiny --replay closed --iodepth=-4",
            format!("`--iodepth` {whole} 1 to 4294967295, found `-4`"),
        ),
        (
            "simulate redis.toml --drive tiny --clients four",
            format!("`--clients` {whole} 1 to 100000, found `four`"),
        ),
        (
            "compare job.fio --drive tiny --hmb off,default --workers 0",
            format!("`--workers` {whole} 1 to 1024, found `0`"),
        ),
        (
            "advise job.fio --drive tiny --workers -2",
            format!("`--workers` {whole} 1 to 1024, found `-2`"),
        ),
        (
            "advise job.fio --drive tiny --workers 1025",
            format!("`--workers` {whole} 1 to 1024, found `1025`"),
        ),
        (
            "probe sim:tiny --noise loud",
            "`--noise` must be a number from 0 to 100, found `loud`".to_owned(),
        ),
    ] {
        let (first, hint) = parts(&refused(&sandbox, line));
        assert_eq!(first, format!("error: {expected}"));
        assert!(hint.starts_with("for example `--"), "{line}: {hint}");
    }
}

#[test]
fn options_of_fio_s_command_are_told_to_be_that() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOB);
    for (line, name) in [
        (
            "simulate --name=x --size=1m --eta=always --drive tiny",
            "eta",
        ),
        ("simulate job.fio --drive tiny --eta=never", "eta"),
        (
            "simulate job.fio --drive tiny --status-interval 1",
            "status-interval",
        ),
        (
            "simulate --name=x --size=1m --readonly --drive tiny",
            "readonly",
        ),
        ("simulate job.fio --client=host --drive tiny", "client"),
    ] {
        let (first, hint) = parts(&refused(&sandbox, line));
        assert_eq!(
            first,
            format!("error: `--{name}` is an option of the program fio, not of a job"),
            "{line}"
        );
        assert!(hint.contains("leave it out"), "{line}: {hint}");
    }
}

#[test]
fn wrong_options_of_a_command_line_s_job_say_what_to_do() {
    let sandbox = Sandbox::new();
    for (typed, first, hint) in [
        (
            "--rw=rnd",
            "`rw` must be read, write, trim, rw, trimwrite, randread, randwrite, randtrim, randrw or \
             randtrimwrite, found `rnd` (command line)",
            "for example `rw=randread`",
        ),
        (
            "--rw=randraed",
            "`rw` must be read, write, trim, rw, trimwrite, randread, randwrite, randtrim, randrw or \
             randtrimwrite, found `randraed` (command line)",
            "did you mean `randread`?",
        ),
        (
            "--bs=0",
            "`bs` must be a multiple of 512 B between 512 and 1g, found `0` (command line)",
            "for example `bs=4k`",
        ),
        (
            "--numjobs=70000",
            "`numjobs` must be between 1 and 4096, found `70000` (command line)",
            "for example `numjobs=4`",
        ),
    ] {
        let said = refused(
            &sandbox,
            &format!("simulate --drive tiny --name=x --size=1m {typed}"),
        );
        assert_eq!(
            parts(&said),
            (format!("error: {first}"), hint.to_owned()),
            "{typed}"
        );
    }
    sandbox.file("a.fio", "[a\nrw=read\n");
    let (first, hint) = parts(&refused(&sandbox, "simulate a.fio --drive tiny"));
    assert_eq!(
        first,
        "error: a section must end with `]`, found `[a` (a.fio:1)"
    );
    assert_eq!(hint, "write `[a]`");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_gets_a_hint_that_fits() {
    let sandbox = Sandbox::new();
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut command = sandbox.command(&["drives", "list"]);
    let outcome = command.stdout(full).output().unwrap();
    let said = String::from_utf8(outcome.stderr).unwrap();
    let (first, hint) = parts(&said);
    assert_eq!(
        first,
        "error: cannot write standard output: no space left on device"
    );
    assert_eq!(
        hint,
        "make room where it leads, or have it lead elsewhere: `lodger ... > FILE`"
    );
}

#[test]
fn sizes_of_a_trace_are_shown_one_way() {
    let sandbox = Sandbox::new();
    let mut text = String::from("time_us,op,offset_bytes,length_bytes\n");
    for (at, length) in [4096, 4100, 4608, 1_048_575, 1_048_576, 12_345_678]
        .iter()
        .enumerate()
    {
        text += &format!("{},W,0,{length}\n", at * 100);
    }
    sandbox.file("t.csv", &text);
    let told = sandbox.ok(&["trace", "info", "t.csv"]).stdout;
    let (_, rows) = told.split_once("sizes:").unwrap();
    let rows: Vec<&str> = rows.lines().skip(1).map(|line| line[..14].trim()).collect();
    assert_eq!(
        rows,
        [
            "4 KiB",
            "4,100 B",
            "4.5 KiB",
            "1,048,575 B",
            "1 MiB",
            "12,345,678 B"
        ]
    );
    assert!(
        !told.contains(".0 KiB") && !told.contains(".0 MiB"),
        "{told}"
    );
}

#[test]
fn what_others_call_something_is_told_to_be_called_here() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOB);
    for (line, hint) in [
        (
            "simulate job.fio --drive tiny --hmb 32M",
            "did you mean `32MiB`?",
        ),
        (
            "compare job.fio --drive bg4 --hmb off,32mib",
            "did you mean `32MiB`?",
        ),
        (
            "simulate job.fio --drive RC100",
            "did you mean `rc100-240` or `rc100-480`? `lodger drives list` shows all",
        ),
        (
            "simulate job.fio",
            "`lodger drives list` shows the drives there are",
        ),
        (
            "job.fio --drive tiny",
            "`lodger simulate job.fio --drive NAME` runs a workload",
        ),
        (
            "compare job.fio --drive bg4 --hmb 32MiB 128MiB",
            "several values stand between commas: `--hmb off,32MiB,128MiB`",
        ),
        (
            "advise job.fio --drive bg4 --hmb 32MiB",
            "`lodger advise` tries all amounts; `lodger compare --hmb off,32MiB,128MiB` sets those beside each other",
        ),
        (
            "simulate job.fio --drive bg4 --max_host_mem_size_mb=32",
            "what Linux calls `nvme.max_host_mem_size_mb=32` is `--hmb 32MiB` here",
        ),
        (
            "simulate job.fio --drive bg4 --set hmb=32MiB",
            "host memory is the host's: `--hmb 32MiB`; what the drive asks for is `tier.hmb.preferred`",
        ),
    ] {
        let (_, said) = parts(&refused(&sandbox, line));
        assert_eq!(said, hint, "{line}");
    }
}

#[test]
fn a_trace_in_an_archive_or_cut_in_an_event_is_told_as_that() {
    let sandbox = Sandbox::new();
    sandbox.file("t.zip", b"PK\x03\x04\0\0\0\0");
    let (first, hint) = parts(&refused(&sandbox, "trace info t.zip"));
    assert!(first.contains("is a zip archive"), "{first}");
    assert_eq!(hint, "try `unzip -p FILE | lodger ... -`");
    // Two events of blktrace, the last of which lacks its end.
    let event = |sector: u64| {
        let mut event = Vec::new();
        event.extend(0x6561_7407u32.to_le_bytes());
        event.extend(1u32.to_le_bytes());
        event.extend((sector * 1000).to_le_bytes());
        event.extend(sector.to_le_bytes());
        event.extend(4096u32.to_le_bytes());
        event.extend((1u32 << 16 | 1).to_le_bytes());
        event.extend([0; 16]);
        event
    };
    let mut all = [event(0), event(8)].concat();
    all.truncate(70);
    sandbox.file("sda.blktrace.0", all);
    let told = sandbox.ok(&["trace", "info", "sda.blktrace.0"]).stdout;
    let says = "note: the file was cut short: its last event has 22 of 48 bytes; left out\n";
    assert!(told.contains(says), "{told}");
}

#[test]
fn a_load_of_trims_is_no_load_to_advise_on() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "trims.fio",
        "[t]\nrw=randtrim\nbs=4k\nsize=4m\nnumber_ios=30\n",
    );
    let (first, _) = parts(&refused(
        &sandbox,
        "advise trims.fio --drive tiny --slo mean=1ns",
    ));
    assert!(
        first.contains("reads and writes, and this workload has neither"),
        "{first}"
    );
}

#[test]
fn options_of_other_commands_and_of_nobody_are_not_told_to_be_values() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOB);
    let said = refused(&sandbox, "simulate job.fio --drive tiny --foo");
    assert!(!said.contains("fio-option"), "{said}");
    for option in ["--clients", "--commit"] {
        let (_, hint) = parts(&refused(
            &sandbox,
            &format!("advise job.fio --drive tiny {option} 4"),
        ));
        assert!(hint.contains("`lodger advise` "), "{hint}");
    }
}

#[test]
fn recorded_latencies_that_a_conversion_leaves_out_are_told() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "msr.csv",
        "128166372003061629,web,0,Read,136937472,4096,32968\n128166372003061729,web,0,Write,0,512,90\n",
    );
    let outcome = sandbox.run(&["trace", "convert", "msr.csv", "--to", "msr"]);
    assert_eq!(outcome.code, Some(0));
    assert!(
        outcome
            .stderr
            .contains("2 recorded response times left out"),
        "{}",
        outcome.stderr
    );
    sandbox.file(
        "plain.csv",
        "time_us,op,offset_bytes,length_bytes\n0,R,0,4096\n9,W,0,4096\n",
    );
    let outcome = sandbox.run(&["trace", "convert", "plain.csv", "--to", "msr"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(
        !outcome.stderr.contains("response time"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn several_depths_and_two_goals_are_told_what_takes_them() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOB);
    let (_, hint) = parts(&refused(
        &sandbox,
        "simulate job.fio --drive tiny --iodepth 32,64",
    ));
    assert!(hint.contains("lodger sweep --vary iodepth=32,64"), "{hint}");
    let (first, hint) = parts(&refused(
        &sandbox,
        "advise job.fio --drive bg4 --slo p99=2ms --within 5%",
    ));
    assert!(
        first.contains("`--slo` and `--within` are two goals"),
        "{first}"
    );
    assert!(hint.contains("leave one of them out"), "{hint}");
}

#[test]
fn help_has_help_of_its_own() {
    let sandbox = Sandbox::new();
    let help = sandbox.run(&["help", "help"]);
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    assert!(
        help.stdout.contains("Usage: lodger help"),
        "{}",
        help.stdout
    );
}
