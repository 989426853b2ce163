//! What the prober told falsely on a machine that does other things meanwhile, and told with confidence: each on the drive and
//! the seed of the noise on which it did, and beside it the same drive on a quiet machine, of which it must still be told.

// Of what files of tests share, some is the others'.
#[allow(dead_code)]
mod probed;

use lodger_probe::stats::Estimate;
use lodger_probe::{Outcome, Tier};
use lodger_sim_target::Noise;
use probed::{of_collection, probed_amid};

const MIB: f64 = (1u64 << 20) as f64;

fn probed(name: &str, experiments: &[&str], times: f64, seed: u64) -> Outcome {
    let noise = Noise::default().times(times);
    probed_amid(noise, of_collection(name, &[]), 1, experiments, seed)
}

fn covers(found: Option<Estimate>, truth: f64) -> bool {
    found.is_some_and(|found| found.low <= truth && truth <= found.high)
}

/// Drives whose pages are alike, taken for such with pages of several kinds: hits were counted as misses, for those of which
/// their share was taken had been picked for being fast. 188 MiB at hand for 256, 12.7 GiB for 63.7, 94 for 128. The null: what
/// pages took when they were picked, in place of what they take again (`at_hand_again`).
#[test]
fn a_reach_amid_noise_is_true_or_left_open() {
    let (tiny, ex900, m730) = (("tiny", 256.0), ("ex900", 65_272.0), ("m730", 131_072.0));
    let met = [
        (tiny, 6.0, 0),
        (tiny, 6.0, 1),
        (tiny, 6.0, 2),
        (tiny, 6.0, 3),
        (tiny, 5.0, 0),
        (ex900, 6.0, 1),
        (m730, 6.0, 2),
    ];
    let mut told = 0;
    for ((name, reach), times, seed) in met {
        let outcome = probed(name, &["map-cache"], times, seed);
        let map = &outcome.roles["map"];
        let found = map.reach_bytes;
        assert!(
            found.is_none() || covers(found, reach * MIB),
            "{name} {times} {seed}: {found:?} {}",
            map.evidence
        );
        let is_right = matches!(map.tier, Tier::Hmb | Tier::Undecided);
        assert!(is_right, "{name} {times} {seed}: {}", map.evidence);
        told += usize::from(found.is_some());
    }
    // Leaving all of them open would be no art.
    assert!(told >= 3, "{told}");
}

/// The null of leaving open: a quiet machine, and one with three times its noise.
#[test]
fn a_reach_amid_little_noise_is_told() {
    for times in [1.0, 3.0] {
        let outcome = probed("tiny", &["map-cache"], times, 1);
        let map = &outcome.roles["map"];
        assert!(covers(map.reach_bytes, 256.0 * MIB), "{map:?}");
        assert!(covers(map.size_bytes, 0.25 * MIB), "{map:?}");
    }
}

/// 16 MiB were 8 KiB, 99.6 % sure: single writes scattered by more than their sizes make them differ. The null: `NOISE_MAX` of
/// the write buffer beyond 3.
#[test]
fn a_write_buffer_is_not_measured_where_single_writes_scatter_by_more_than_their_size_makes() {
    for seed in [3, 4] {
        let outcome = probed("970-pro", &["flush", "write-buffer"], 60.0, seed);
        let found = &outcome.roles["write_buffer"];
        let truth = 16.0 * MIB;
        assert!(
            found.size_bytes.is_none() || covers(found.size_bytes, truth),
            "{seed}: {found:?}"
        );
    }
}

/// The null of leaving it open.
#[test]
fn a_write_buffer_is_measured_on_a_quiet_machine() {
    let outcome = probed("970-pro", &["flush", "write-buffer"], 1.0, 4);
    let found = &outcome.roles["write_buffer"];
    assert!(covers(found.size_bytes, 16.0 * MIB), "{found:?}");
}
