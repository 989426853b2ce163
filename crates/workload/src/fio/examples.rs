//! What a user may write who has written something wrong: for each option a value that is right.

use super::catalog;

/// By the name that fio prints; in the order of the catalogue.
const EXAMPLES: &[(&str, &str)] = &[
    ("blockalign", "4k"),
    ("bs", "4k"),
    ("bs_is_seq_rand", "1"),
    ("bsrange", "4k-64k"),
    ("bssplit", "4k/60:64k/40"),
    ("buffered", "0"),
    ("clat_percentiles", "1"),
    ("continue_on_error", "all"),
    ("direct", "1"),
    ("disable_bw", "0"),
    ("disable_clat", "0"),
    ("disable_lat", "0"),
    ("disable_slat", "0"),
    ("do_verify", "1"),
    ("end_fsync", "1"),
    ("exit_what", "group"),
    ("fdatasync", "32"),
    ("filename", "/dev/nvme0n1"),
    ("filesize", "10g"),
    ("flow", "8"),
    ("flow_id", "1"),
    ("flow_sleep", "1000"),
    ("fsync", "32"),
    ("fsync_on_close", "1"),
    ("group_reporting", "1"),
    ("gtod_reduce", "0"),
    ("ignore_error", "ENODATA,EIO"),
    ("io_size", "20g"),
    ("io_submit_mode", "inline"),
    ("iodepth", "32"),
    ("iodepth_batch", "16"),
    ("iodepth_batch_complete_max", "16"),
    ("iodepth_batch_complete_min", "1"),
    ("iodepth_low", "16"),
    ("ioengine", "libaio"),
    ("kb_base", "1024"),
    ("lat_percentiles", "1"),
    ("latency_percentile", "99.9"),
    ("latency_run", "1"),
    ("latency_target", "500us"),
    ("latency_window", "5s"),
    ("log_avg_msec", "1000"),
    ("log_offset", "1"),
    ("log_prio", "1"),
    ("loops", "2"),
    ("name", "job"),
    ("new_group", "1"),
    ("norandommap", "1"),
    ("nrfiles", "4"),
    ("number_ios", "100k"),
    ("numjobs", "4"),
    ("offset", "1g"),
    ("offset_align", "4k"),
    ("offset_increment", "1g"),
    ("percentage_random", "50"),
    ("percentile_list", "50:99:99.9"),
    ("ramp_time", "5s"),
    ("random_distribution", "zipf:1.2"),
    ("random_generator", "lfsr"),
    ("randrepeat", "1"),
    ("randseed", "1"),
    ("rate", "10m"),
    ("rate_ignore_thinktime", "1"),
    ("rate_iops", "1000"),
    ("rate_process", "poisson"),
    ("read_iolog", "trace.log"),
    ("replay_align", "4096"),
    ("replay_no_stall", "1"),
    ("replay_scale", "4"),
    ("replay_time_scale", "100"),
    ("runtime", "30s"),
    ("rw", "randread"),
    ("rw_sequencer", "identical"),
    ("rwmixread", "70"),
    ("rwmixwrite", "30"),
    ("size", "10g"),
    ("slat_percentiles", "1"),
    ("startdelay", "10s"),
    ("steadystate", "iops:2%"),
    ("steadystate_duration", "30s"),
    ("steadystate_ramp_time", "5s"),
    ("stonewall", "1"),
    ("sync", "dsync"),
    ("thinktime", "100us"),
    ("thinktime_blocks", "4"),
    ("thinktime_blocks_type", "issue"),
    ("thinktime_iotime", "1s"),
    ("thinktime_spin", "10us"),
    ("time_based", "1"),
    ("verify", "crc32c"),
    ("verify_backlog", "1024"),
    ("verify_backlog_batch", "64"),
    ("verify_pattern", "0xdeadbeef"),
    ("wait_for", "job"),
    ("writefua", "1"),
    ("zonemode", "strided"),
    ("zonerange", "4m"),
    ("zonesize", "1m"),
    ("zoneskip", "1m"),
];

/// A value of that option which is right.
pub(super) fn example(key: &str) -> Option<&'static str> {
    let (name, _) = catalog::look_up(key)?;
    let found = EXAMPLES.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value)
}

/// What to do about a wrong value: the word that was meant, where `allowed` lists one that is near, or an example.
pub(super) fn hint(key: &str, value: &str, allowed: &str) -> Option<String> {
    let words = allowed.split([',', ' ', '`']).filter(|word| {
        // Of a list of words, and not of a sentence about them.
        word.len() > 1 && !["or", "and", "a"].contains(word)
    });
    let lists = allowed.contains('`') || allowed.contains(", ");
    let near = words
        .filter(|_| lists && value.len() > 2 && value.len() < 40)
        .map(|word| (strsim::osa_distance(value, word), word))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, word)| *distance <= word.len() / 4 && is_one_of(key, word));
    match near {
        Some((_, word)) => Some(format!("did you mean `{word}`?")),
        None => example(key).map(|value| format!("for example `{key}={value}`")),
    }
}

/// Whether the word alone is a value of the option: not so of `zipf` in "followed by a number, such as `zipf:1.2`".
fn is_one_of(key: &str, word: &str) -> bool {
    word.bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        && catalog::look_up(key).is_some_and(|(name, _)| WORDS.contains(&name))
}

/// Options whose values are words of a list.
const WORDS: &[&str] = &[
    "continue_on_error",
    "exit_what",
    "io_submit_mode",
    "random_distribution",
    "random_generator",
    "rate_process",
    "rw",
    "rw_sequencer",
    "sync",
    "thinktime_blocks_type",
    "zonemode",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_that_was_meant() {
        let of = |key, value, allowed| hint(key, value, allowed).unwrap();
        let list = "read, write, randread or randwrite";
        assert_eq!(of("rw", "randraed", list), "did you mean `randread`?");
        assert_eq!(of("readwrite", "wirte", list), "did you mean `write`?");
        assert_eq!(of("rw", "rnd", list), "for example `rw=randread`");
        let list = "`linear` or `poisson`";
        assert_eq!(
            of("rate_process", "poison", list),
            "did you mean `poisson`?"
        );
        let sentence = "a size such as `64k` or `10g`";
        assert_eq!(
            of("number_ios", "size", sentence),
            "for example `number_ios=100k`"
        );
    }
}
