//! Figures of the prober that others' drives showed to be false with intervals that said otherwise, each with such drives: they must be
//! right, or left open.

use crate::common;
use lodger_core::Precondition;
use lodger_probe::Outcome;
use lodger_run::Drive;

/// A drive of the collection with some of its text changed, and what is in it.
struct Changed {
    extends: &'static str,
    text: &'static str,
    dies: f64,
    /// Bytes that one read of the flash fetches, and that lie together on a die.
    page: f64,
    stripe: f64,
}

const KIB: f64 = 1024.0;

fn probed(changed: &Changed, precondition: Precondition, seed: u64) -> Outcome {
    probed_by(changed, precondition, &["parallelism"], seed)
}

fn probed_by(
    changed: &Changed,
    precondition: Precondition,
    experiments: &[&str],
    seed: u64,
) -> Outcome {
    let (extends, text) = (changed.extends, changed.text);
    let text = format!("name = \"changed\"\nextends = \"{extends}\"\n{text}");
    let drive = Drive::parse("changed", &text, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
    common::probed(drive, precondition, (experiments, true), seed)
}

/// Whether a figure was told; then it is right.
fn is_told(outcome: &Outcome, name: &str, truth: f64) -> bool {
    let value = outcome.findings.quantities.get(name).map(|q| q.value);
    let covers = value.is_none_or(|value| value.low <= truth && truth <= value.high);
    assert!(covers, "{name}: {value:?} for {truth}");
    value.is_some()
}

/// How often dies and pages were told, with seeds from 1.
fn told(changed: &Changed, seeds: u64) -> (usize, usize) {
    let mut told = (0, 0);
    for seed in 1..=seeds {
        let outcome = probed(changed, Precondition::Sequential, seed);
        told.0 += usize::from(is_told(&outcome, "parallel_units", changed.dies));
        told.1 += usize::from(is_told(&outcome, "flash_page", changed.page));
        is_told(&outcome, "stripe", changed.stripe);
    }
    told
}

/// Dies are right, or a note says why they are left open.
fn dies_told_or_noted(outcome: &Outcome, dies: f64) {
    let is_told = is_told(outcome, "parallel_units", dies);
    assert!(
        is_told || !outcome.findings.notes.is_empty(),
        "nothing is said"
    );
}

/// The same of drives by so many seeds; what is told of pages and stripes is right.
fn told_or_noted(changed: &Changed, seeds: u64) {
    for seed in 1..=seeds {
        let outcome = probed(changed, Precondition::Sequential, seed);
        dies_told_or_noted(&outcome, changed.dies);
        is_told(&outcome, "flash_page", changed.page);
        is_told(&outcome, "stripe", changed.stripe);
    }
}

/// A second array read of 20 us takes less longer than a share of a whole command, and of what pairs wait for, of which the bus takes a
/// part: no boundary showed, and 96 KiB were told for 32.
#[test]
fn a_page_of_flash_that_is_as_fast_as_the_firmware_is_not_taken_for_the_whole_stripe() {
    let fast = Changed {
        extends: "a80",
        text: "[nand]\nread = \"20us\"\n",
        dies: 16.0,
        page: 32.0 * KIB,
        stripe: 96.0 * KIB,
    };
    assert!(told(&fast, 4).0 >= 3);
}

/// Pages of another kind follow each other over all dies: commands are slow for a while where they begin.
#[test]
fn pages_of_two_kinds_that_are_not_programmed_at_once_are_not_told_as_8_kib() {
    let kinds = Changed {
        extends: "970-pro",
        text: "[nand]\nchannels = 4\ndies_per_channel = 2\nplanes = 4\npage_size = \"16KiB\"\none_shot = false\n\
               read = [\"45us\", \"85us\"]\n",
        dies: 8.0,
        page: 64.0 * KIB,
        stripe: 64.0 * KIB,
    };
    assert!(told(&kinds, 4).1 >= 3);
}

/// What is read ahead keeps the next die busy, or is at hand already: 11 dies for 12, and half a page.
#[test]
fn dies_and_pages_are_told_where_the_drive_reads_ahead_after_one_read() {
    let ahead = Changed {
        extends: "970-pro",
        text: "[controller.read_ahead]\nwindow = \"64KiB\"\nstreams = 4\nafter = 1\n[role.read_cache]\ntier = \"sram\"\n\
               size = \"1MiB\"\n[tier.sram]\nsize = \"16MiB\"\n[nand]\nchannels = 6\ndies_per_channel = 2\nplanes = 2\n\
               page_size = \"16KiB\"\none_shot = false\nread = \"44us\"\n",
        dies: 12.0,
        page: 32.0 * KIB,
        stripe: 32.0 * KIB,
    };
    assert!(told(&ahead, 4).0 >= 3);
}

/// Of pairs that wait for a few us only the slowest count as late: 16 to 67 dies were told for 2 to 8.
#[test]
fn few_dies_whose_waits_hide_in_noise_are_not_told_as_many() {
    let few = |text, dies| Changed {
        extends: "970-pro",
        text,
        dies,
        page: 32.0 * KIB,
        stripe: 64.0 * KIB,
    };
    for few in [
        few(
            "[nand]\nchannels = 2\ndies_per_channel = 1\nplanes = 2\npage_size = \"16KiB\"\none_shot = true\n\
             read = [\"4.7us\", \"6.6us\"]\n",
            2.0,
        ),
        few(
            "[nand]\nchannels = 4\ndies_per_channel = 2\nplanes = 2\npage_size = \"16KiB\"\none_shot = true\n\
             read = [\"7.6us\", \"12.2us\"]\n",
            8.0,
        ),
    ] {
        told_or_noted(&few, 4);
    }
}

/// Two reads of a channel wait for its bus as long as two reads of a die: 4 channels were told for 16 dies.
#[test]
fn channels_are_not_told_for_dies_where_flash_is_faster_than_the_bus() {
    let slow_bus = Changed {
        extends: "970-pro",
        text: "[nand]\nchannels = 4\ndies_per_channel = 4\nplanes = 4\npage_size = \"16KiB\"\none_shot = true\nread = \"6us\"\n\
               channel_mt_s = 400\n",
        dies: 16.0,
        page: 64.0 * KIB,
        stripe: 128.0 * KIB,
    };
    told_or_noted(&slow_bus, 4);
}

/// Of pages of 4 and 8 KiB no command, or half of them, has two on one bus: 4 and 8 channels were told for 16 dies.
#[test]
fn channels_are_not_told_for_dies_where_pages_of_flash_are_small() {
    let small = |extends, text, page| Changed {
        extends,
        text,
        dies: 16.0,
        page,
        stripe: page,
    };
    for small in [
        small(
            "bg4",
            "[nand]\nchannels = 4\ndies_per_channel = 4\nplanes = 1\npage_size = \"8KiB\"\none_shot = false\nread = \"3us\"\n\
             cell = \"mlc\"\n",
            8.0 * KIB,
        ),
        small(
            "970-pro",
            "[nand]\nchannels = 4\ndies_per_channel = 4\nplanes = 1\npage_size = \"4KiB\"\none_shot = false\nread = \"25us\"\n\
             cell = \"mlc\"\nchannel_mt_s = 150\n",
            4.0 * KIB,
        ),
    ] {
        told_or_noted(&small, 4);
    }
}

/// As many reads were late one after the other as two at once: 952 and 690 dies were told for 6.
#[test]
fn dies_are_left_open_where_pairs_wait_for_the_map_alone() {
    let busy = Changed {
        extends: "rc100-240",
        text: "[nand]\nchannels = 3\ndies_per_channel = 2\nplanes = 2\npage_size = \"16KiB\"\none_shot = true\nread = \"3us\"\n\
               cell = \"mlc\"\n",
        dies: 6.0,
        page: 32.0 * KIB,
        stripe: 64.0 * KIB,
    };
    for seed in [581, 2] {
        let outcome = probed(&busy, Precondition::Random, seed);
        dies_told_or_noted(&outcome, busy.dies);
    }
}

/// The drive completes units of its map while pairs are read, and what waits for that was counted as sharing a die: 10.9 to 13.8 dies,
/// with intervals of which most missed 16.
#[test]
fn dies_of_a_drive_in_the_steady_state_of_random_writes_lie_in_the_interval() {
    let steady = Changed {
        extends: "rc100-480",
        text: "",
        dies: 16.0,
        page: 32.0 * KIB,
        stripe: 96.0 * KIB,
    };
    for seed in 1..=4 {
        let outcome = probed(&steady, Precondition::Random, seed);
        assert!(is_told(&outcome, "parallel_units", steady.dies), "{seed}");
    }
}

/// Four pages take as much longer than one as a program does, for the link is slow: "8 KiB".
#[test]
fn a_buffer_behind_a_link_slower_than_flash_is_not_told_as_a_few_pages() {
    let slow_link = Changed {
        extends: "970-pro",
        text: "[link]\nrate = \"100MB/s\"\n[role.write_buffer]\nsize = \"33MiB\"\n",
        dies: 16.0,
        page: 32.0 * KIB,
        stripe: 32.0 * KIB,
    };
    for seed in 1..=4 {
        let experiments = ["flush", "write-buffer"];
        let outcome = probed_by(&slow_link, Precondition::Sequential, &experiments, seed);
        let size = outcome.roles["write_buffer"].size_bytes;
        assert!(
            size.is_none_or(|size| size.high >= 33.0 * KIB * KIB),
            "{seed}: {size:?}"
        );
    }
}
