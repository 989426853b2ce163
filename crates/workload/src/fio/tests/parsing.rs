//! Is a job file read as fio reads it?

use super::*;

fn names(workload: &Workload) -> Vec<&str> {
    workload.jobs.iter().map(|job| job.name.as_str()).collect()
}

#[test]
fn duplicate_sections_are_separate_jobs() {
    let workload = parsed("[a]\nrw=read\n[a]\nrw=write\n[b]\n");
    assert_eq!(names(&workload), ["a", "a", "b"]);
    assert_eq!(workload.description, "fio job file");
}

#[test]
fn globals_apply_to_the_jobs_after_them() {
    let workload =
        parsed("[a]\n[global]\niodepth=4\n[b]\n[global]\niodepth=8\n[c]\n[d]\niodepth=2");
    let depths: Vec<u32> = workload.jobs.iter().map(|job| job.queue_depth).collect();
    assert_eq!(depths, [1, 4, 8, 2]);
    let echo = |i: usize| workload.jobs[i].global_options.clone();
    assert_eq!(echo(0), []);
    assert_eq!(echo(1), [("iodepth".to_owned(), "4".to_owned())]);
    assert_eq!(echo(3), [("iodepth".to_owned(), "8".to_owned())]);
    assert_eq!(
        workload.jobs[3].options,
        [("iodepth".to_owned(), "2".to_owned())]
    );
}

#[test]
fn comments_blank_lines_and_spaces() {
    let workload = parsed(
        "; a comment\n# another\r\n\n  [ a job ]  ; why\n\tiodepth = 4 # four\r\nnumjobs=2;two\n",
    );
    assert_eq!(names(&workload), [" a job ", " a job "]);
    assert_eq!(workload.jobs[0].queue_depth, 4);
}

#[test]
fn options_are_echoed_under_fios_names_in_the_files_order() {
    let job = job("readwrite=randread\nblocksize=8K\nfilename=/dev/x\ngroup_reporting\nthread=1");
    let echo: Vec<(&str, &str)> = (job.options.iter())
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let expected = [
        ("rw", "randread"),
        ("bs", "8K"),
        ("filename", "/dev/x"),
        ("thread", "1"),
    ];
    assert_eq!(echo, expected);
    assert!(job.group_reporting);
}

#[test]
fn a_repeated_option_counts_once_and_the_last_wins() {
    let job = job("iodepth=4\nbs=8k\niodepth=2");
    assert_eq!(job.queue_depth, 2);
    let names: Vec<&str> = job.options.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["bs", "iodepth"]);
}

#[test]
fn groups_and_stages() {
    let workload = parsed(
        "[a]\nstonewall\n[b]\nnumjobs=2\n[c]\nstonewall\n[d]\nnew_group=1\n[e]\n\
         wait_for_previous\nnumjobs=2\n[f]\nstonewall=0",
    );
    let places: Vec<(&str, u32, u32)> = (workload.jobs.iter())
        .map(|job| (job.name.as_str(), job.group, job.stage))
        .collect();
    assert_eq!(
        places,
        [
            ("a", 0, 0),
            ("b", 0, 0),
            ("b", 0, 0),
            ("c", 1, 1),
            ("d", 2, 1),
            ("e", 3, 2),
            ("e", 3, 2),
            ("f", 3, 2),
        ]
    );
}

#[test]
fn a_stonewall_in_global_applies_to_every_job() {
    let workload = parsed("[global]\nstonewall\n[a]\n[b]\nnumjobs=2\n[c]");
    let stages: Vec<u32> = workload.jobs.iter().map(|job| job.stage).collect();
    assert_eq!(stages, [0, 1, 1, 2]);
}

#[test]
fn variables_come_from_the_environment() {
    let log = run(&mut job("size=${SIZE}"));
    assert_eq!(bytes(&log), 2 * MIB);
}

#[test]
fn what_was_run_is_told_with_the_values_of_its_variables() {
    let job = job("size=${SIZE}\nfilename=x${SIZE}");
    let told: Vec<&str> = job
        .options
        .iter()
        .map(|(_, value)| value.as_str())
        .collect();
    assert_eq!(told, ["2m", "x2m"]);
}

#[test]
fn a_variable_that_cannot_matter_may_be_unset() {
    let job = job("filename=${DEVICE}\nsize=4k");
    assert_eq!(job.options[0].1, "${DEVICE}");
}

#[test]
fn included_files_add_options_to_the_section() {
    let workload = parsed("[global]\ninclude common.inc\n[a]\n[b]\niodepth=2");
    assert_eq!(workload.jobs[0].queue_depth, 4);
    assert_eq!(workload.jobs[1].queue_depth, 2);
    let context = Context {
        file_name: "jobs/job.fio",
        env: &|_| None,
        include: &|name| match name {
            "jobs/beside.inc" => Ok("iodepth=9".to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        },
        drive_bytes: DRIVE,
        seed: 0,
    };
    let workload = parse("[a]\ninclude beside.inc", &context).unwrap();
    assert_eq!(workload.jobs[0].queue_depth, 9);
}

#[test]
fn units() {
    for (options, length) in [
        ("bs=4k", 4 * KIB),
        ("bs=4K", 4 * KIB),
        ("bs=4kb", 4 * KIB),
        ("bs=4KiB", 4 * KIB),
        ("bs=0x2000", 8 * KIB),
        ("bs=512", 512),
        ("bs=1m", MIB),
        ("kb_base=1000\nbs=4KiB", 4 * KIB),
        ("bs=512k\nkb_base=1000", 512_000),
    ] {
        let log = run(&mut job(&format!("{options}\nnumber_ios=1")));
        assert_eq!(log[0].length_bytes, length, "{options}");
    }
}

#[test]
fn sizes_per_direction() {
    // As fio: what no comma announces is like the one before; what a comma leaves out stays.
    for (bs, expected) in [
        ("8k", [8, 8, 8]),
        ("8k,16k", [8, 16, 16]),
        ("8k,16k,32k", [8, 16, 32]),
        ("8k,", [8, 4, 4]),
        (",8k", [4, 8, 8]),
        (",8k,", [4, 8, 4]),
        ("8k,,16k", [8, 4, 16]),
    ] {
        for (rw, expected) in ["read", "write", "trim"].iter().zip(expected) {
            let log = run(&mut job(&format!("rw={rw}\nbs={bs}\nnumber_ios=1")));
            assert_eq!(log[0].length_bytes, expected * KIB, "{bs} {rw}");
        }
    }
}

#[test]
fn ranges_and_splits_override_a_block_size() {
    for option in ["bsrange=16k-16k", "bssplit=16k/100", "bssplit=16k"] {
        let log = run(&mut job(&format!("{option}\nbs=8k\nnumber_ios=1")));
        assert_eq!(log[0].length_bytes, 16 * KIB, "{option}");
    }
}

#[test]
fn percentiles() {
    let default = [
        1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9,
        99.95, 99.99,
    ];
    assert_eq!(job("").percentiles, default);
    assert_eq!(
        job("percentile_list=99.9:50:99").percentiles,
        [50.0, 99.0, 99.9]
    );
}

#[test]
fn options_that_cannot_matter_are_accepted() {
    let options = "ioengine=io_uring\nfilename=/dev/nvme0n1\ndirectory=/mnt\ndirect=1\nbuffered=0\n\
        name=reader\ndescription=what for\nverify=crc32c\ndo_verify=0\ncpus_allowed=0-3\nthread\n\
        invalidate=1\nfallocate=none\nrefill_buffers\nbuffer_compress_percentage=50\nprio=3\n\
        log_avg_msec=100\ngtod_reduce=1\nhipri\n\
        registerfiles\nfixedbufs=1\nsqthread_poll=1\niodepth_batch=16\niodepth_batch_submit=8\n\
        random_generator=lfsr\nclat_percentiles=1\nlat_percentiles=1\nunlink=1\ncreate_fsync=0\n\
        zonemode=none\nnrfiles=1\nserialize_overlap=0\nopenfiles=1\nmem=mmaphuge\nsize=4k";
    let job = job(options);
    assert_eq!(job.name, "reader");
    assert_eq!(job.requests_expected, Some(1));
}

#[test]
fn files_of_the_repository_parse() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/jobs");
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "fio") {
            let text = std::fs::read_to_string(&path).unwrap();
            let env = |_: &str| Some("1g".to_owned());
            let include = |name: &str| std::fs::read_to_string(name);
            let result = parse_with(&text, 480_000_000_000, 1, &env, &include);
            assert!(result.is_ok(), "{}: {:?}", path.display(), result.err());
        }
    }
}
