//! Every option fio knows, and what becomes of it here.

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It shapes the workload.
    Honoured,
    /// It cannot matter to a simulated drive: host-side detail, data contents, logs, reporting.
    Silent,
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
    let honoured = HONOURED.iter().map(|name| (*name, Standing::Honoured));
    let silent = SILENT.iter().map(|name| (*name, Standing::Silent));
    let unsupported = UNSUPPORTED
        .iter()
        .map(|(name, neutral, hint)| (*name, Standing::Unsupported { neutral, hint }));
    let of = |name| {
        let aliases = ALIASES.iter().filter(move |(_, known)| *known == name);
        aliases.map(|(alias, _)| *alias).collect()
    };
    let all = honoured.chain(silent).chain(unsupported);
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
];

const HONOURED: &[&str] = &[
    "blockalign",
    "bs",
    "bs_is_seq_rand",
    "bsrange",
    "bssplit",
    "buffered",
    "direct",
    "end_fsync",
    "fdatasync",
    "fsync",
    "fsync_on_close",
    "group_reporting",
    "io_size",
    "io_submit_mode",
    "iodepth",
    "iodepth_batch_complete_max",
    "iodepth_batch_complete_min",
    "iodepth_low",
    "ioengine",
    "kb_base",
    "loops",
    "name",
    "new_group",
    "norandommap",
    "number_ios",
    "numjobs",
    "offset",
    "offset_align",
    "offset_increment",
    "percentage_random",
    "percentile_list",
    "ramp_time",
    "random_distribution",
    "randrepeat",
    "randseed",
    "rate",
    "rate_ignore_thinktime",
    "rate_iops",
    "rate_process",
    "runtime",
    "rw",
    "rw_sequencer",
    "rwmixread",
    "rwmixwrite",
    "size",
    "startdelay",
    "stonewall",
    "sync",
    "thinktime",
    "thinktime_blocks",
    "thinktime_blocks_type",
    "thinktime_iotime",
    "thinktime_spin",
    "time_based",
];

/// `iodepth_batch` is among them because filling a batch takes no simulated time.
const SILENT: &[&str] = &[
    "allow_file_create",
    "allow_mounted_write",
    "apptag",
    "apptag_mask",
    "block_error_percentiles",
    "brick",
    "buffer_compress_chunk",
    "buffer_compress_percentage",
    "buffer_pattern",
    "busy_poll",
    "bwavgtime",
    "cgroup",
    "cgroup_nodelete",
    "cgroup_weight",
    "clat_percentiles",
    "clientname",
    "clocksource",
    "clustername",
    "cmd_type",
    "cmdprio",
    "cmdprio_bssplit",
    "cmdprio_class",
    "cmdprio_hint",
    "cmdprio_percentage",
    "comm",
    "continue_on_error",
    "cpumask",
    "cpus_allowed",
    "cpus_allowed_policy",
    "create_fsync",
    "create_on_open",
    "create_serialize",
    "cuda_io",
    "dedupe_global",
    "dedupe_mode",
    "dedupe_percentage",
    "dedupe_working_set_percentage",
    "deferred_taskrun",
    "description",
    "directory",
    "disable_bw",
    "disable_bw_measurement",
    "disable_clat",
    "disable_lat",
    "disable_slat",
    "disk_util",
    "do_verify",
    "error_dump",
    "exec_postrun",
    "exec_prerun",
    "experimental_verify",
    "fadvise_hint",
    "fallocate",
    "filename",
    "filename_format",
    "filetype",
    "fixedbufs",
    "force_async",
    "gid",
    "gpu_dev_id",
    "gpu_dev_ids",
    "gtod_cpu",
    "gtod_reduce",
    "hipri",
    "hipri_percentage",
    "hugepage-size",
    "ignore_error",
    "invalidate",
    "iodepth_batch",
    "iomem",
    "iomem_align",
    "iopsavgtime",
    "ioscheduler",
    "job_start_clock_id",
    "lat_percentiles",
    "libaio_vectored",
    "libblkio_driver",
    "libblkio_force_enable_completion_eventfd",
    "libblkio_num_entries",
    "libblkio_path",
    "libblkio_pre_connect_props",
    "libblkio_pre_start_props",
    "libblkio_queue_size",
    "libblkio_vectored",
    "libblkio_wait_mode",
    "libblkio_write_zeroes_on_trim",
    "lockfile",
    "lockmem",
    "log_alternate_epoch",
    "log_alternate_epoch_clock_id",
    "log_avg_msec",
    "log_compression",
    "log_compression_cpus",
    "log_entries",
    "log_hist_coarseness",
    "log_hist_msec",
    "log_issue_time",
    "log_max_value",
    "log_offset",
    "log_prio",
    "log_store_compressed",
    "log_unix_epoch",
    "log_window_value",
    "md_per_io_size",
    "mem",
    "mem_align",
    "nfs_url",
    "nice",
    "nonvectored",
    "nowait",
    "null",
    "numa_cpu_nodes",
    "numa_mem_policy",
    "opendir",
    "openfiles",
    "overwrite",
    "per_job_logs",
    "pi_act",
    "pi_chk",
    "pool",
    "pre_read",
    "prio",
    "prioclass",
    "priohint",
    "random_generator",
    "rate_cycle",
    "rbdname",
    "readfua",
    "refill_buffers",
    "registerfiles",
    "scramble_buffers",
    "significant_figures",
    "skip_bad",
    "slat_percentiles",
    "softrandommap",
    "sqthread_poll",
    "sqthread_poll_cpu",
    "sqthread_poll_idle",
    "stats",
    "thread",
    "touch_objects",
    "trim_verify_zero",
    "uid",
    "uncached",
    "unified_rw_reporting",
    "unique_filename",
    "unit_base",
    "unlink",
    "unlink_each_loop",
    "uri",
    "userspace_reap",
    "verify",
    "verify_async",
    "verify_async_cpus",
    "verify_backlog",
    "verify_backlog_batch",
    "verify_dump",
    "verify_fatal",
    "verify_header_seed",
    "verify_interval",
    "verify_offset",
    "verify_pattern",
    "verify_pattern_interval",
    "verify_state_load",
    "verify_state_save",
    "verify_write_sequence",
    "verifysort",
    "verifysort_nr",
    "volume",
    "write_bw_log",
    "write_hint",
    "write_hist_log",
    "write_iolog",
    "write_iops_log",
    "write_lat_log",
    "writefua",
    "xnvme_admin",
    "xnvme_async",
    "xnvme_be",
    "xnvme_dev_nsid",
    "xnvme_dev_subnqn",
    "xnvme_iovec",
    "xnvme_mem",
    "xnvme_sync",
    "zero_buffers",
];

const ZONES: &str = "zoned namespaces and strided zones are not modelled; leave it out";
const REPLAY: &str = "give the trace itself as the workload: `lodger simulate TRACE`";
const LATENCY: &str = "run several depths and compare them instead";
const STOPS: &str = "runs end by `size`, `io_size`, `number_ios` or `runtime`; leave it out";
const ONE_DRIVE: &str = "a job addresses one range of one drive; use `offset` and `size`";
const PLACEMENT: &str = "data placement is not modelled; leave it out";
const PLAIN: &str = "only plain writes are modelled; leave it out";
const LEAVE_OUT: &str = "leave it out";

/// Option, the values under which it asks for nothing, hint.
const UNSUPPORTED: &[(&str, &[&str], &str)] = &[
    ("atomic", &["0"], LEAVE_OUT),
    (
        "bs_unaligned",
        &["0"],
        "requests are multiples of 512 B; leave it out",
    ),
    ("create_only", &["0"], LEAVE_OUT),
    ("dataplacement", &["none"], PLACEMENT),
    ("dp_scheme", &[], PLACEMENT),
    ("end_syncfs", &["0"], "use `end_fsync`"),
    ("exit_what", &["group"], STOPS),
    ("exitall", &["0"], STOPS),
    ("exitall_on_error", &["0"], STOPS),
    ("fdp", &["0"], PLACEMENT),
    ("file_append", &["0"], "use `offset`"),
    ("file_service_type", &["roundrobin"], ONE_DRIVE),
    ("filesize", &[], ONE_DRIVE),
    (
        "fill_device",
        &["0"],
        "without `size` a job covers the drive; leave it out",
    ),
    ("flow", &["0"], LEAVE_OUT),
    ("flow_id", &["0"], LEAVE_OUT),
    ("flow_sleep", &["0"], LEAVE_OUT),
    ("flow_watermark", &[], LEAVE_OUT),
    ("ignore_zone_limits", &["0"], ZONES),
    ("job_max_open_zones", &["0"], ZONES),
    ("latency_percentile", &[], LATENCY),
    ("latency_run", &["0"], LATENCY),
    ("latency_target", &["0"], LATENCY),
    ("latency_window", &["0"], LATENCY),
    ("max_latency", &["0"], STOPS),
    ("max_open_zones", &["0"], ZONES),
    ("merge_blktrace_file", &[], REPLAY),
    ("merge_blktrace_iters", &[], REPLAY),
    ("merge_blktrace_scalars", &[], REPLAY),
    ("nrfiles", &["1"], ONE_DRIVE),
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
    ("read_iolog", &[], REPLAY),
    ("read_iolog_chunked", &["0"], REPLAY),
    ("recover_zbd_write_error", &["0"], ZONES),
    ("replay_align", &["0"], REPLAY),
    ("replay_no_stall", &["0"], REPLAY),
    ("replay_redirect", &[], REPLAY),
    ("replay_scale", &["1"], REPLAY),
    ("replay_skip", &[], REPLAY),
    ("replay_time_scale", &["100"], REPLAY),
    ("serialize_overlap", &["0"], LEAVE_OUT),
    ("spr_cs", &["0"], LEAVE_OUT),
    ("spr_num_regions", &[], LEAVE_OUT),
    ("spr_op", &[], LEAVE_OUT),
    ("sprandom", &["0"], "use `rw=randwrite`"),
    ("steadystate", &[], STOPS),
    ("steadystate_check_interval", &[], STOPS),
    ("steadystate_duration", &["0"], STOPS),
    ("steadystate_ramp_time", &["0"], STOPS),
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
    (
        "wait_for",
        &[],
        "use `stonewall`, which waits for every job before it",
    ),
    ("write_barrier", &["0"], "use `fsync`"),
    ("sg_write_mode", &["write"], PLAIN),
    ("write_mode", &["write"], PLAIN),
    ("write_zone_remainder", &["0"], ZONES),
    ("zone_reset_frequency", &[], ZONES),
    ("zone_reset_threshold", &[], ZONES),
    ("zonecapacity", &["0"], ZONES),
    ("zonemode", &["none"], ZONES),
    ("zonerange", &["0"], ZONES),
    ("zonesize", &["0"], ZONES),
    ("zoneskip", &["0"], ZONES),
];

/// The option's name as fio prints it, and its standing; `None` if there is no such option.
pub(super) fn look_up(key: &str) -> Option<(&'static str, Standing)> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == key);
    let key = alias.map_or(key, |(_, name)| name);
    if let Some(name) = HONOURED.iter().find(|name| **name == key) {
        return Some((name, Standing::Honoured));
    }
    if let Some(name) = SILENT.iter().find(|name| **name == key) {
        return Some((name, Standing::Silent));
    }
    let (name, neutral, hint) = UNSUPPORTED.iter().find(|(name, ..)| *name == key)?;
    Some((name, Standing::Unsupported { neutral, hint }))
}

/// The known option most like `key`, if any is like it at all.
pub(super) fn nearest(key: &str) -> Option<&'static str> {
    // Longer than any option by more than the tolerance.
    if key.len() > 40 {
        return None;
    }
    let aliases = ALIASES.iter().map(|(alias, _)| *alias);
    let known = HONOURED.iter().copied().chain(aliases);
    let known = known.chain(SILENT.iter().copied());
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
        let mut names: Vec<&str> = HONOURED.iter().chain(SILENT).copied().collect();
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
