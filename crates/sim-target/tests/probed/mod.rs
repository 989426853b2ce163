//! A probe of a simulated drive in which some experiments are done once each.

use lodger_core::Precondition;
use lodger_probe::{Options, Outcome, probe};
use lodger_run::{Drive, HmbChoice, RunConfig};
use lodger_sim_target::{Noise, SimTarget};
use std::time::Duration;

pub type Set<'a> = &'a [(&'a str, &'a str)];

pub fn fixture(text: &str, set: Set<'_>) -> Drive {
    Drive::parse("fixture", text, set).unwrap_or_else(|e| panic!("{e}"))
}

pub fn of_collection(name: &str, set: Set<'_>) -> Drive {
    Drive::open(name, set).unwrap_or_else(|e| panic!("{e}"))
}

/// All experiments if none is named. `drive_seed`: which one of its kind the drive is.
pub fn probed(drive: Drive, drive_seed: u64, experiments: &[&str], seed: u64) -> Outcome {
    probed_amid(Noise::default(), drive, drive_seed, experiments, seed)
}

/// The same with noise of one's choice.
pub fn probed_amid(
    noise: Noise,
    drive: Drive,
    drive_seed: u64,
    experiments: &[&str],
    seed: u64,
) -> Outcome {
    let config = RunConfig {
        drive,
        hmb: HmbChoice::Negotiated,
        precondition: Precondition::Sequential,
        seed: drive_seed,
    };
    let mut target = SimTarget::open(&config, noise, seed).expect("it opens");
    let options = Options {
        experiments: experiments.iter().map(|&name| name.to_owned()).collect(),
        budget: Duration::from_secs(1 << 20),
        may_write: true,
        seed,
        confidence: 0.0,
    };
    probe(&mut target, &options, &mut |_| true)
}
