//! What is the user told? Messages name the option, what is allowed, what was found and where.

use super::*;

/// Message with place, and the hint: every error has one.
fn error(text: &str) -> (String, Option<String>) {
    match try_parse(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => {
            assert!(error.hint.is_some(), "no hint: {error}");
            (error.to_string(), error.hint)
        }
    }
}

/// The error of a job with these options; the first stands on line 2.
fn of(options: &str) -> String {
    error(&format!("[job]\n{options}")).0
}

const DIRECTIONS: &str = "read, write, trim, rw, trimwrite, randread, randwrite, randtrim, randrw or \
                          randtrimwrite";
const SIZE: &str = "a size such as `64k`, `10g` or `50%`";
const TIME: &str = "a time such as `10s` (units us, ms, s, m, h, d)";
const BLOCK: &str = "a multiple of 512 B between 512 and 1g";
const SPLIT: &str = "parts such as `4k/60:64k/40` that make up 100 %";
const ZONES: &str = "followed by zones such as `60/10:40/90` whose accesses make up 100 %";

/// Each option, and what its error says is allowed.
fn each_says(cases: &[(&str, &str)]) {
    for (option, allowed) in cases {
        let (key, value) = option.split_once('=').unwrap();
        let expected = format!("`{key}` must be {allowed}, found `{value}` (job.fio:2)");
        assert_eq!(of(option), expected);
    }
}

#[test]
fn values_of_direction_depth_and_block_size() {
    each_says(&[
        ("rw=sideways", DIRECTIONS),
        ("rw=", DIRECTIONS),
        ("rw=randread:0", "followed by a number of requests"),
        ("rw=read:100", "followed by a multiple of 512 B"),
        ("rw_sequencer=random", "`sequential` or `identical`"),
        ("rwmixread=101", "between 0 and 100"),
        ("rwmixwrite=-1", "between 0 and 100"),
        ("iodepth=0", "between 1 and 65535"),
        ("iodepth=65536", "between 1 and 65535"),
        ("iodepth=4x", "between 1 and 65535"),
        ("iodepth=18446744073709551616", "between 1 and 65535"),
        ("iodepth=NaN", "between 1 and 65535"),
        ("numjobs=0", "between 1 and 4096"),
        ("numjobs=4097", "between 1 and 4096"),
        ("bs=1000", BLOCK),
        ("bs=0", BLOCK),
        ("bs=2g", BLOCK),
        ("bs=4k,1000", BLOCK),
        ("bs=4q", BLOCK),
        (
            "bs=4k,4k,4k,4k",
            "at most three values: reads, writes, trims",
        ),
        ("blockalign=100", BLOCK),
        ("bsrange=4k", "a range such as `4k-64k`"),
        ("bsrange=64k-4k", "a range such as `4k-64k`"),
        ("bssplit=4k/50:8k/60", SPLIT),
        ("bssplit=4k/x", SPLIT),
        ("bssplit=4k/0", SPLIT),
    ]);
    let expected = "`iodepth` must be between 1 and 65535, found no value (job.fio:2)";
    assert_eq!(of("iodepth"), expected);
}

#[test]
fn values_of_amounts_and_times() {
    each_says(&[
        ("size=1.5g", SIZE),
        (
            "filesize=8m-4m",
            "a size such as `10g`, or a range such as `1g-10g`",
        ),
        ("size=-1", SIZE),
        ("size=101%", SIZE),
        ("size=99999999p", SIZE),
        ("size=1${SIZE", SIZE),
        ("io_size=much", SIZE),
        ("offset=", SIZE),
        ("number_ios=few", "a size such as `64k` or `10g`"),
        ("loops=-2", "between 0 and 4294967295"),
        ("runtime=60sec", TIME),
        ("runtime=1.5", TIME),
        ("runtime=1000d", "a time of at most 200 days"),
        ("ramp_time=soon", TIME),
        ("thinktime=x", TIME),
        ("thinktime_blocks=0", "between 1 and 4294967295"),
        ("thinktime_blocks_type=often", "`complete` or `issue`"),
        (
            "startdelay=9-5",
            "a time such as `10s`, or a range such as `5s-10s`",
        ),
        // It is a time, and was said to be none.
        ("startdelay=100000000", "a time of at most 200 days"),
        // Longer than any run: the run was refused, and not for `startdelay`.
        ("startdelay=201d", "a time of at most 200 days"),
        ("startdelay=5s-1000d", "a time of at most 200 days"),
        ("time_based=2", "0 or 1"),
        ("direct=yes", "0 or 1"),
        ("sync=maybe", "`none`, `sync` or `dsync`"),
        ("rate=fast", "bytes per second, such as `64k` or `10m`"),
        (
            "rate_iops=5g",
            "requests per second, such as `500` or `10k`",
        ),
        ("rate_process=even", "`linear` or `poisson`"),
    ]);
}

#[test]
fn values_of_distributions_and_the_rest() {
    each_says(&[
        ("io_submit_mode=later", "`inline` or `offload`"),
        ("percentage_random=120", "between 0 and 100"),
        (
            "random_distribution=flat",
            "random, zipf, pareto, normal, zoned or zoned_abs",
        ),
        (
            "random_distribution=zipf:1",
            "`zipf:theta` with a positive theta other than 1",
        ),
        (
            "random_distribution=zipf:NaN",
            "followed by a number, such as `zipf:1.2`",
        ),
        (
            "random_distribution=zipf:1.2:7",
            "centred between 0 and 1, such as `zipf:1.2:0.5`",
        ),
        (
            "random_distribution=pareto:1",
            "`pareto:h` with h above 0 and below 1",
        ),
        (
            "random_distribution=normal:100",
            "`normal:deviation` with a deviation from 0 to below 100",
        ),
        ("random_distribution=zoned", ZONES),
        ("random_distribution=zoned:50/10", ZONES),
        ("random_distribution=zoned_abs:100/x", ZONES),
        (
            "percentile_list=0:50",
            "up to 20 numbers above 0 and up to 100, such as `50:99:99.9`",
        ),
        ("kb_base=1", "1000 or 1024"),
    ]);
}

#[test]
fn a_length_that_looks_right_says_what_it_is() {
    for (value, found, meant) in [("4k", 4000, 4096), ("1k", 1000, 1024)] {
        let error = try_parse(&format!("[job]\nkb_base=1000\nbs={value}\n")).unwrap_err();
        let expected = format!(
            "`bs` must be a multiple of 512 B between 512 and 1g, found `{value}`, which is {found} B with `kb_base=1000` \
             (job.fio:3)"
        );
        assert_eq!(error.to_string(), expected);
        let hint = format!("for example `bs={meant}`");
        assert_eq!(error.hint, Some(hint), "{value}");
    }
    // The null: what is wrong by any measure.
    let error = try_parse("[job]\nkb_base=1000\nbs=100\n").unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("for example `bs=4k`"));
}

#[test]
fn aliases_are_named_as_typed() {
    let expected = "`blocksize` must be a multiple of 512 B between 512 and 1g, found `1` \
                    (job.fio:3)";
    assert_eq!(of("\nblocksize=1"), expected);
}

#[test]
fn unknown_options_come_with_the_nearest_known_one() {
    let (message, hint) = error("[global]\n\niodpeth=4");
    assert_eq!(message, "unknown option `iodpeth` (job.fio:3)");
    assert_eq!(hint.as_deref(), Some("did you mean `iodepth`?"));
    let (message, hint) = error("[a]\nnothing_like_it=4");
    assert_eq!(message, "unknown option `nothing_like_it` (job.fio:2)");
    let listed = "docs/reference/fio-options.md lists the options of jobs";
    assert_eq!(hint.as_deref(), Some(listed));
    let (message, hint) = error("[a]\nrandrepeats");
    assert_eq!(message, "unknown option `randrepeats` (job.fio:2)");
    assert_eq!(hint.as_deref(), Some("did you mean `randrepeat`?"));
}

/// A job in which that option is right.
fn right(name: &str, value: &str) -> String {
    let beside = match name {
        "zonesize" | "zonerange" | "zoneskip" => "\nzonemode=strided\nzonesize=1m\nsize=16m",
        "zonemode" => "\nzonesize=1m\nsize=16m",
        "latency_target" => "\nlatency_window=5s",
        "filesize" | "size" | "io_size" | "offset" | "offset_increment" => "\nsize=1m",
        "nrfiles" | "rate_process" => "\nsize=16m",
        _ => "",
    };
    // What the small drive of these tests cannot hold is as right, and shorter.
    let value = value
        .replace("10g", "10m")
        .replace("20g", "20m")
        .replace("1g", "1m");
    format!("[first]\nname=job\n[a]\n{name}={value}{beside}")
}

#[test]
fn every_option_that_can_be_wrong_has_an_example_that_is_right() {
    use crate::fio::{Standing, known_options};
    for option in known_options() {
        // Of these any value is taken, or none is needed.
        let free = [
            "exitall",
            "exitall_on_error",
            "write_bw_log",
            "write_iops_log",
            "write_lat_log",
        ];
        let of_logs = option.name.starts_with("log_") || option.name == "per_job_logs";
        let is_taken = matches!(
            option.standing,
            Standing::Honoured | Standing::OfLogs { .. }
        );
        if !is_taken || free.contains(&option.name) {
            continue;
        }
        let Some(value) = crate::fio::examples::example(option.name) else {
            assert!(of_logs, "`{}` has no example", option.name);
            continue;
        };
        if option.name == "read_iolog" || option.name.starts_with("replay_") {
            continue;
        }
        let job = right(option.name, value);
        if let Err(error) = try_parse(&job) {
            panic!("{job}\n{error}");
        }
    }
}

#[test]
fn unsupported_options_say_so() {
    for option in [
        "zone_reset_frequency=0.1",
        "max_latency=1ms",
        "trim_percentage=5",
        "serialize_overlap=1",
        "bs_unaligned",
        "rate_min=1m",
    ] {
        let key = option.split('=').next().unwrap();
        let (message, hint) = error(&format!("[a]\n{option}"));
        let expected = format!("`{key}` is not supported and would change the result (job.fio:2)");
        assert_eq!(message, expected);
        assert!(hint.is_some());
    }
    // Whether `iodepth` counts depends on it.
    let expected = "`ioengine=psyncc` is no engine of fio's (job.fio:2)";
    assert_eq!(of("ioengine=psyncc"), expected);
    for engine in [
        "io_uring",
        "pvsync2",
        "external:/x.so",
        "libcufile",
        "cpp_null",
    ] {
        parsed(&format!("[a]\nrw=read\nbs=4k\nsize=1m\nioengine={engine}"));
    }
    let expected = "`ioengine=falloc` does no block I/O (job.fio:2)";
    assert_eq!(of("ioengine=falloc"), expected);
    let expected = "`ioengine=cpuio` does no block I/O (job.fio:2)";
    assert_eq!(of("ioengine=cpuio"), expected);
}

#[test]
fn contradictions() {
    for (options, expected) in [
        (
            "bs=4k\nlatency_target=1ms",
            "`latency_target` needs a `latency_window` (job.fio:3)",
        ),
        (
            "zonemode=zbd",
            "`zonemode=zbd` is not supported (job.fio:2)",
        ),
        (
            "zonemode=strided",
            "`zonemode=strided` needs a `zonesize` (job.fio:2)",
        ),
        (
            "zonesize=1m",
            "sizes of zones need `zonemode=strided` (job.fio:2)",
        ),
        (
            "zonesize=1m\nzonemode=strided\nrw=randread",
            "`zonemode=strided` is for plain `rw=read`, `rw=write` and `rw=trim` of one file (job.fio:3)",
        ),
        (
            "nrfiles=4\noffset=1m",
            "`offset` is not supported with several files (`nrfiles`) (job.fio:3)",
        ),
        (
            "rate=1m\nrate_iops=5",
            "`rate` and `rate_iops` exclude each other (job.fio:3)",
        ),
        (
            "random_distribution=zoned:50/60:50/50",
            "the zones of `random_distribution` are larger than 100 % (job.fio:2)",
        ),
        (
            "size=1m\nrandom_distribution=zoned_abs:50/1m:50/1m",
            "the zones of `random_distribution` exceed the job's 1048576 B (job.fio:3)",
        ),
    ] {
        assert_eq!(of(options), expected);
    }
}

#[test]
fn jobs_wait_for_jobs_before_them() {
    for (text, expected) in [
        (
            "[a]\nwait_for=b\n[b]",
            "`wait_for` names `b`, but no job before is called so (job.fio:2)",
        ),
        (
            "[a]\nwait_for=a",
            "`wait_for` names `a`, but no job before is called so (job.fio:2)",
        ),
        (
            "[a]\n[a]\n[b]\nwait_for=a",
            "`wait_for` names `a`, of which there are several (job.fio:4)",
        ),
        (
            "[a]\n[b]\nstartdelay=1\nwait_for=a",
            "`wait_for` and `startdelay` exclude each other (job.fio:4)",
        ),
        (
            "[a]\nwait_for=",
            "`wait_for` must be the name of a job, found `` (job.fio:2)",
        ),
        (
            "[a]\nss=iops:1%\nss_dur=5\n[b]\nss=bw:1%\nss_dur=5",
            "`steadystate` must be the same for all jobs of a group (job.fio:5)",
        ),
        (
            "[a]\nss=foo:3",
            "`ss` must be iops, iops_slope, bw or bw_slope and a limit, such as `iops:2%` or `bw:500`, \
             found `foo:3` (job.fio:2)",
        ),
        (
            "[a]\nss_dur=500ms",
            "`ss_dur` must be whole seconds between 2s and 1d, or 0, found `500ms` (job.fio:2)",
        ),
        (
            "[a]\nexit_what=some",
            "`exit_what` must be `group`, `stonewall` or `all`, found `some` (job.fio:2)",
        ),
    ] {
        assert_eq!(error(text).0, expected);
    }
}

#[test]
fn jobs_must_fit_the_drive() {
    for (options, expected) in [
        (
            "filesize=65m",
            "`filesize` is at least 68157440 B, but the drive has only 67108864 B (job.fio:2)",
        ),
        (
            "offset=8m\nfilesize=8m",
            "the job begins at 8388608 B, but the file, by `filesize`, has only 8388608 B (job.fio:2)",
        ),
        (
            "size=65m",
            "the job ends at 68157440 B, but the drive has only 67108864 B (job.fio:2)",
        ),
        (
            "offset=1m\nsize=64m",
            "the job ends at 68157440 B, but the drive has only 67108864 B (job.fio:3)",
        ),
        (
            "offset=64m",
            "the job begins at 67108864 B, but the drive has only 67108864 B (job.fio:2)",
        ),
        (
            "size=16m\nnumjobs=8\noffset_increment=16m",
            "the job begins at 67108864 B, but the drive has only 67108864 B (job.fio:4)",
        ),
        (
            "offset=18446744073709551615\nnumjobs=9\noffset_increment=1p",
            "the job must begin at a multiple of 512 B, not at 18446744073709551615 B (job.fio:2)",
        ),
        (
            "offset=100",
            "the job must begin at a multiple of 512 B, not at 100 B (job.fio:2)",
        ),
        (
            "bs=8k\nsize=4k",
            "the job's range of 4096 B is smaller than one block of 8192 B (job.fio:3)",
        ),
        (
            "offset=65532k\nbs=8k",
            "the job's range of 4096 B is smaller than one block of 8192 B (job.fio:2)",
        ),
    ] {
        assert_eq!(of(options), expected);
    }
    let (_, hint) = error("[a]\nsize=1t");
    assert!(hint.unwrap().contains("`--fit` applies to traces only"));
}

#[test]
fn the_form_of_the_file() {
    for (text, expected) in [
        ("", "`job.fio` defines no job"),
        ("[global]\nbs=4k", "`job.fio` defines no job"),
        (
            "bs=4k\n[a]",
            "option `bs=4k` stands before any section (job.fio:1)",
        ),
        (
            "[a\nbs=4k",
            "a section must end with `]`, found `[a` (job.fio:1)",
        ),
        ("[]", "a section must have a name (job.fio:1)"),
        (
            "[a]\nsize=${MISSING}",
            "`${MISSING}` is not set in the environment (job.fio:2)",
        ),
        (
            "[a]\ninclude nowhere.inc",
            "cannot read the included file `nowhere.inc`: no such file (job.fio:2)",
        ),
        (
            "[a]\ninclude loop.inc",
            "includes are nested more than 16 deep (loop.inc:1)",
        ),
        (
            "[a]\ninclude section.inc",
            "an included file must not begin a section (section.inc:1)",
        ),
        (
            "[a]\ninclude typo.inc",
            "unknown option `iodpeth` (typo.inc:2)",
        ),
        (
            "[a]\nnumjobs=4096\nsize=4k\n[b]\nsize=4k",
            "more than 4096 jobs (job.fio:4)",
        ),
        ("[a]\n=4", "unknown option `` (job.fio:2)"),
    ] {
        assert_eq!(error(text).0, expected);
    }
}
