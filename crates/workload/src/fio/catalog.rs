//! Every option fio knows, and what becomes of it here.

use super::ignored::IGNORED;
use super::logs;
use crate::WorkloadError;

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It shapes the workload.
    Honoured,
    /// It changes what fio's log files hold: with a log only these values are accepted, and without one it says nothing.
    OfLogs {
        /// Values that change nothing.
        neutral: &'static [&'static str],
    },
    /// Without it the result on a simulated drive is the same.
    Ignored {
        /// Why.
        why: &'static str,
    },
    /// It would change what the drive is asked. Allowed only with one of these values, which ask
    /// for nothing; the hint says what to do instead.
    Unsupported {
        /// Values that are accepted because they ask for nothing.
        neutral: &'static [&'static str],
        /// What to do instead.
        hint: &'static str,
    },
}

/// An option that fio knows, as the documentation shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownOption {
    /// Its name, as fio prints it.
    pub name: &'static str,
    /// Other names of it.
    pub aliases: Vec<&'static str>,
    /// What becomes of it.
    pub standing: Standing,
}

/// Every option fio knows, by name.
#[must_use]
pub fn known_options() -> Vec<KnownOption> {
    let honoured = HONOURED.iter().map(|name| (*name, honoured(name)));
    let ignored = ignored().map(|(name, why)| (name, Standing::Ignored { why }));
    let unsupported = UNSUPPORTED
        .iter()
        .map(|(name, neutral, hint)| (*name, Standing::Unsupported { neutral, hint }));
    let of = |name| {
        let aliases = ALIASES.iter().filter(move |(_, known)| *known == name);
        aliases.map(|(alias, _)| *alias).collect()
    };
    let all = honoured.chain(ignored).chain(unsupported);
    let mut options: Vec<KnownOption> = all
        .map(|(name, standing)| KnownOption {
            name,
            aliases: of(name),
            standing,
        })
        .collect();
    options.sort_by_key(|option| option.name);
    options
}

/// Ignored options and why they are.
fn ignored() -> impl Iterator<Item = (&'static str, &'static str)> {
    let groups = IGNORED.iter();
    groups.flat_map(|(why, names)| names.iter().map(move |name| (*name, *why)))
}

/// Names that mean the same option, and the one fio prints.
const ALIASES: &[(&str, &str)] = &[
    ("readwrite", "rw"),
    ("blocksize", "bs"),
    ("ba", "blockalign"),
    ("blocksize_range", "bsrange"),
    ("blocksize_unaligned", "bs_unaligned"),
    ("io_limit", "io_size"),
    ("fileoffset", "offset"),
    ("allrandrepeat", "randrepeat"),
    ("timeout", "runtime"),
    ("wait_for_previous", "stonewall"),
    ("iodepth_batch_submit", "iodepth_batch"),
    ("iodepth_batch_complete", "iodepth_batch_complete_min"),
    ("ratemin", "rate_min"),
    ("ratecycle", "rate_cycle"),
    ("nr_files", "nrfiles"),
    ("fill_fs", "fill_device"),
    ("ss", "steadystate"),
    ("ss_dur", "steadystate_duration"),
    ("ss_ramp", "steadystate_ramp_time"),
    ("disable_bw_measurement", "disable_bw"),
];

const HONOURED: &[&str] = &[
    "blockalign",
    "bs",
    "bs_is_seq_rand",
    "bsrange",
    "bssplit",
    "buffered",
    "clat_percentiles",
    "continue_on_error",
    "direct",
    "disable_bw",
    "disable_clat",
    "disable_lat",
    "disable_slat",
    "do_verify",
    "end_fsync",
    "exit_what",
    "exitall",
    "exitall_on_error",
    "fdatasync",
    "filename",
    "filesize",
    "flow",
    "flow_id",
    "flow_sleep",
    "fsync",
    "fsync_on_close",
    "group_reporting",
    "gtod_reduce",
    "ignore_error",
    "io_size",
    "io_submit_mode",
    "iodepth",
    "iodepth_batch",
    "iodepth_batch_complete_max",
    "iodepth_batch_complete_min",
    "iodepth_low",
    "ioengine",
    "kb_base",
    "lat_percentiles",
    "latency_percentile",
    "latency_run",
    "latency_target",
    "latency_window",
    "log_alternate_epoch",
    "log_avg_msec",
    "log_issue_time",
    "log_max_value",
    "log_offset",
    "log_prio",
    "log_store_compressed",
    "log_unix_epoch",
    "log_window_value",
    "loops",
    "name",
    "new_group",
    "norandommap",
    "nrfiles",
    "number_ios",
    "numjobs",
    "offset",
    "offset_align",
    "offset_increment",
    "per_job_logs",
    "percentage_random",
    "percentile_list",
    "ramp_time",
    "random_distribution",
    "random_generator",
    "randrepeat",
    "randseed",
    "rate",
    "rate_ignore_thinktime",
    "rate_iops",
    "rate_process",
    "runtime",
    "read_iolog",
    "replay_align",
    "replay_no_stall",
    "replay_scale",
    "replay_time_scale",
    "rw",
    "rw_sequencer",
    "rwmixread",
    "rwmixwrite",
    "size",
    "slat_percentiles",
    "startdelay",
    "steadystate",
    "steadystate_duration",
    "steadystate_ramp_time",
    "stonewall",
    "sync",
    "thinktime",
    "thinktime_blocks",
    "thinktime_blocks_type",
    "thinktime_iotime",
    "thinktime_spin",
    "time_based",
    "verify",
    "verify_backlog",
    "verify_backlog_batch",
    "verify_pattern",
    "wait_for",
    "write_bw_log",
    "write_iops_log",
    "write_lat_log",
    "writefua",
    "zonemode",
    "zonerange",
    "zonesize",
    "zoneskip",
];

const ZONES: &str = "zoned namespaces are not modelled; leave it out";
const REPLAY: &str = "give the trace itself as the workload: `lodger simulate TRACE`";
const STOPS: &str = "runs end by `size`, `io_size`, `number_ios` or `runtime`; leave it out";
const ONE_DRIVE: &str = "a job addresses one range of one drive; use `offset` and `size`";
const PLACEMENT: &str = "data placement is not modelled; leave it out";
const PLAIN: &str = "only plain writes are modelled; leave it out";
const LOG: &str =
    "`--latency-log FILE` writes every completion as `write_lat_log` does; leave it out";
const BACKLOG: &str = "`verify` reads everything back at the end of each pass; leave it out";
const SAMPLES: &str = "rates are sampled every 500 ms, fio's default; leave it out";
const REPORT: &str = "the report has every job and direction by itself; leave it out";
const LEAVE_OUT: &str = "leave it out";

/// Option, the values under which it asks for nothing, hint.
const UNSUPPORTED: &[(&str, &[&str], &str)] = &[
    ("atomic", &["0"], LEAVE_OUT),
    ("bwavgtime", &["500"], SAMPLES),
    ("exec_prerun", &[], "run the command before `lodger`"),
    ("experimental_verify", &["0"], BACKLOG),
    ("iopsavgtime", &["500"], SAMPLES),
    (
        "libblkio_write_zeroes_on_trim",
        &["0"],
        "only deallocation is modelled; leave it out",
    ),
    ("opendir", &[], ONE_DRIVE),
    (
        "pre_read",
        &["0"],
        "add a job with `rw=read` and `stonewall`",
    ),
    (
        "readfua",
        &["0"],
        "reads that make the drive write what it holds first are not modelled; leave it out",
    ),
    ("stats", &["1"], REPORT),
    ("unified_rw_reporting", &["0", "none"], REPORT),
    ("verify_state_load", &["0"], LEAVE_OUT),
    ("write_hist_log", &[], LOG),
    ("write_iolog", &[], LOG),
    (
        "bs_unaligned",
        &["0"],
        "requests are multiples of 512 B; leave it out",
    ),
    ("create_only", &["0"], LEAVE_OUT),
    ("dataplacement", &["none"], PLACEMENT),
    ("dp_scheme", &[], PLACEMENT),
    ("end_syncfs", &["0"], "use `end_fsync`"),
    ("fdp", &["0"], PLACEMENT),
    ("file_append", &["0"], "use `offset`"),
    ("file_service_type", &["roundrobin"], ONE_DRIVE),
    ("flow_watermark", &[], LEAVE_OUT),
    ("ignore_zone_limits", &["0"], ZONES),
    ("job_max_open_zones", &["0"], ZONES),
    (
        "lockfile",
        &["none"],
        "jobs do not wait for each other's requests; leave it out",
    ),
    ("max_latency", &["0"], STOPS),
    ("max_open_zones", &["0"], ZONES),
    ("merge_blktrace_file", &[], REPLAY),
    ("merge_blktrace_iters", &[], REPLAY),
    ("merge_blktrace_scalars", &[], REPLAY),
    (
        "num_range",
        &["1"],
        "trims have one range each; leave it out",
    ),
    ("plid_select", &[], PLACEMENT),
    ("plids", &[], PLACEMENT),
    ("profile", &[], "write the jobs out"),
    ("ramp_size", &[], "use `ramp_time`"),
    ("random_sequence_stride", &["0"], LEAVE_OUT),
    ("rate_iops_min", &["0"], STOPS),
    ("rate_min", &["0"], STOPS),
    ("read_beyond_wp", &["0"], ZONES),
    ("recover_zbd_write_error", &["0"], ZONES),
    ("replay_skip", &[], REPLAY),
    ("serialize_overlap", &["0"], LEAVE_OUT),
    ("spr_cs", &["0"], LEAVE_OUT),
    ("spr_num_regions", &[], LEAVE_OUT),
    ("spr_op", &[], LEAVE_OUT),
    ("sprandom", &["0"], "use `rw=randwrite`"),
    (
        "steadystate_check_interval",
        &["1000"],
        "rates are looked at every second; leave it out",
    ),
    ("sync_file_range", &[], "use `fsync` or `fdatasync`"),
    ("thinkcycles", &["0"], "use `thinktime`"),
    (
        "trim_backlog",
        &["0"],
        "use `rw=trimwrite` or a trimming job",
    ),
    (
        "trim_backlog_batch",
        &["0"],
        "use `rw=trimwrite` or a trimming job",
    ),
    (
        "trim_percentage",
        &["0"],
        "use `rw=trimwrite` or a trimming job",
    ),
    ("verify_only", &["0"], "use `rw=read`"),
    ("verify_policy", &["completed"], LEAVE_OUT),
    ("write_barrier", &["0"], "use `fsync`"),
    ("sg_write_mode", &["write"], PLAIN),
    ("write_mode", &["write"], PLAIN),
    ("write_zone_remainder", &["0"], ZONES),
    ("zone_reset_frequency", &[], ZONES),
    ("zone_reset_threshold", &[], ZONES),
    ("zonecapacity", &["0"], ZONES),
];

/// Standing of an option that is honoured.
fn honoured(name: &str) -> Standing {
    let of_logs = logs::DETAILS.iter().find(|(detail, _)| *detail == name);
    of_logs.map_or(Standing::Honoured, |(_, neutral)| Standing::OfLogs {
        neutral,
    })
}

/// The option's name as fio prints it, and its standing; `None` if there is no such option.
pub(super) fn look_up(key: &str) -> Option<(&'static str, Standing)> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == key);
    let key = alias.map_or(key, |(_, name)| name);
    if let Some(name) = HONOURED.iter().find(|name| **name == key) {
        return Some((name, honoured(name)));
    }
    if let Some((name, why)) = ignored().find(|(name, _)| *name == key) {
        return Some((name, Standing::Ignored { why }));
    }
    let (name, neutral, hint) = UNSUPPORTED.iter().find(|(name, ..)| *name == key)?;
    Some((name, Standing::Unsupported { neutral, hint }))
}

/// Options of the program fio and not of jobs, by `fio --help`; what to do without them.
const PROGRAM: &[(&str, &[&str])] = &[
    (
        "progress shows by itself where there is a terminal: leave it out",
        &["eta", "eta-interval", "eta-newline", "status-interval"],
    ),
    (
        "`--output-format` and `--output` say how and where the report is written: leave it out",
        &["append-terse", "bandwidth-log", "minimal", "terse-version"],
    ),
    (
        "the simulation runs in this process: leave it out",
        &["client", "daemonize", "remote-config", "server"],
    ),
    (
        "the simulated drive is asked the same without it: leave it out",
        &[
            "alloc-size",
            "aux-path",
            "cmdhelp",
            "cpuclock-test",
            "crctest",
            "debug",
            "dedupe",
            "enghelp",
            "idle-prof",
            "inflate-log",
            "max-jobs",
            "merge-blktrace-only",
            "parse-only",
            "readonly",
            "showcmd",
            "trigger",
            "trigger-file",
            "trigger-remote",
            "trigger-timeout",
            "warnings-fatal",
        ],
    ),
];

/// The error that `key` is an option of the program fio and not of a job, if it is one.
#[must_use]
pub fn of_the_program(key: &str) -> Option<WorkloadError> {
    let (hint, _) = PROGRAM.iter().find(|(_, names)| names.contains(&key))?;
    let message = format!("`--{key}` is an option of the program fio, not of a job");
    Some(WorkloadError::new(message).hint(*hint))
}

/// Whether fio knows an option of this name.
#[must_use]
pub fn is_known(key: &str) -> bool {
    look_up(key).is_some()
}

/// Options that stand alone on fio's command line (`--time_based`, and not `--time_based 1`); after all others without `=`
/// their value follows. By `fio --cmdhelp`.
const ALONE: &[&str] = &[
    "bs_unaligned",
    "exitall",
    "exitall_on_error",
    "group_reporting",
    "new_group",
    "norandommap",
    "refill_buffers",
    "stonewall",
    "thread",
    "time_based",
    "verify_only",
    "zero_buffers",
];

/// Whether the next word of a command line is not the value of this option.
#[must_use]
pub fn takes_no_value(key: &str) -> bool {
    look_up(key).is_some_and(|(name, _)| ALONE.contains(&name))
}

/// The known option most like `key`, if any is like it at all.
pub(super) fn nearest(key: &str) -> Option<&'static str> {
    // Longer than any option by more than the tolerance.
    if key.len() > 40 {
        return None;
    }
    let aliases = ALIASES.iter().map(|(alias, _)| *alias);
    let known = HONOURED.iter().copied().chain(aliases);
    let known = known.chain(ignored().map(|(name, _)| name));
    let known = known.chain(UNSUPPORTED.iter().map(|(name, ..)| *name));
    let (distance, name) = known
        .map(|name| (strsim::osa_distance(key, name), name))
        .min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + key.len() / 4).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_has_one_standing() {
        let mut names: Vec<&str> = HONOURED.to_vec();
        names.extend(ignored().map(|(name, _)| name));
        names.extend(UNSUPPORTED.iter().map(|(name, ..)| *name));
        names.extend(ALIASES.iter().map(|(alias, _)| *alias));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for (_, name) in ALIASES {
            assert!(look_up(name).is_some(), "{name}");
        }
    }

    #[test]
    fn nearest_name() {
        assert_eq!(nearest("iodpeth"), Some("iodepth"));
        assert_eq!(nearest("blocksiz"), Some("blocksize"));
        assert_eq!(nearest("rwmixreads"), Some("rwmixread"));
        assert_eq!(nearest("quite_something_else"), None);
        assert_eq!(nearest(""), None);
        assert_eq!(nearest(&"x".repeat(100_000)), None);
    }
}
