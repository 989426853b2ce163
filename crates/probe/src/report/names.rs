//! What the numbers of a report mean.

/// Beginnings of names, the first that fits counts, and what they stand for.
const MEANINGS: &[(&str, &str)] = &[
    ("read_near", "a read near others, its map entry at hand"),
    (
        "map_hit",
        "a read whose entry is in the largest memory of the map",
    ),
    ("map_miss", "a read whose entry comes from flash"),
    (
        "hit_sram",
        "a read whose entry is in the drive's own memory",
    ),
    ("hit_hmb", "a read whose entry is in host memory"),
    ("miss", "a read whose entry comes from flash"),
    (
        "map_reach",
        "addresses whose entries are at hand, with that much host memory",
    ),
    (
        "map_bytes_per_entry",
        "host memory that the entry of a page of 4 KiB takes",
    ),
    (
        "map_cyclic",
        "share of hits, read in turn over a fifth more than fits",
    ),
    (
        "map_random",
        "share of hits, read at random over a fifth more than fits",
    ),
    (
        "map_left",
        "share of places still at hand after others were read",
    ),
    (
        "parallel_units",
        "dies or planes that work at the same time",
    ),
    ("stripe", "addresses that lie together on one of them"),
    ("round", "addresses until the same one again"),
    ("flash_page", "bytes that one read of the flash fetches"),
    (
        "random_read_qd",
        "random reads over the whole drive, so many in flight",
    ),
    ("random_read_most", "the most of them at any depth"),
    ("sequential_read", "reads in order, one at a time"),
    (
        "read_again_knee",
        "largest request that is read again without flash",
    ),
    (
        "write_knee",
        "largest request that is written without waiting for flash",
    ),
    ("write_cliff", "bytes written before the rate fell for good"),
    ("write_rate_fast", "rate of writes before that"),
    ("write_rate_slow", "rate of writes after it"),
    (
        "write_rate_after_rest",
        "rate after some rest, as a share of the first",
    ),
    ("flush_dirty", "a flush after one page was written"),
    ("flush_clean", "a flush with nothing to do"),
    ("write", "a write of a page to a drive at rest"),
];

/// What a number of that name is; with host memory on, off, or as it was found.
pub(super) fn meaning(name: &str) -> String {
    let known = MEANINGS.iter().find(|known| name.starts_with(known.0));
    let state = if name.ends_with("_on") {
        ", host memory on"
    } else if name.ends_with("_off") {
        ", host memory off"
    } else {
        ""
    };
    known.map_or(String::new(), |known| format!("{}{state}", known.1))
}
