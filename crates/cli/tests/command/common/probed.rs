//! Simulated drives, probed without the command.

use lodger::probe_target::{Noise, SimTarget};
use lodger_core::Precondition;
use lodger_probe::{Options, Outcome, probe};
use lodger_run::{Drive, HmbChoice, RunConfig};
use std::time::Duration;

/// Some experiments, of which each is done once, amid the default noise.
pub fn probed(
    drive: Drive,
    precondition: Precondition,
    (experiments, may_write): (&[&str], bool),
    seed: u64,
) -> Outcome {
    let config = RunConfig {
        drive,
        hmb: HmbChoice::Negotiated,
        precondition,
        seed,
    };
    let mut target = SimTarget::open(&config, Noise::default(), seed).expect("it opens");
    let options = Options {
        experiments: experiments.iter().map(|&name| name.to_owned()).collect(),
        budget: Duration::from_secs(1 << 20),
        may_write,
        seed,
        confidence: 0.0,
    };
    probe(&mut target, &options, &mut |_| true)
}
