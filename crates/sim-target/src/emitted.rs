//! A drive file from a probe, whose head is held against what was measured by simulating the file.

use crate::{Noise, SimTarget};
use lodger_probe::report::{self, Burst};
use lodger_probe::{Outcome, Target};
use lodger_run::{Drive, HmbChoice, RunConfig};
use std::time::Duration;

/// Time between a flush and a burst, as the prober leaves a drive alone.
const REST: Duration = Duration::from_millis(30);

/// The drive file of what was found, or why there is none.
///
/// # Errors
/// If too little was found.
pub fn drive_file(outcome: &Outcome) -> Result<String, String> {
    report::drive_compared(outcome, burst_ms)
}

/// When the writes of a burst into the empty buffer of a file's drive complete, sorted, ms; none where the file makes no
/// drive that takes them.
fn burst_ms(file: &str, burst: &Burst) -> Option<Vec<f64>> {
    let mut config = RunConfig::new(Drive::parse("the probed drive", file, &[]).ok()?);
    if burst.without_host_memory {
        config.hmb = HmbChoice::Off;
    }
    let mut target = SimTarget::open(&config, Noise::NONE, 1).ok()?;
    let writes = burst.writes(target.describe().capacity_bytes);
    let mut samples = Vec::new();
    // Once over the stretch, as the prober has been there before.
    for _ in 0..2 {
        target.flush().ok()?;
        target.idle(REST);
        target.run(&writes, burst.queue_depth, &mut samples).ok()?;
    }
    let done = samples
        .iter()
        .map(|sample| sample.completed_ns() as f64 / 1e6);
    let mut done: Vec<f64> = done.collect();
    done.sort_unstable_by(f64::total_cmp);
    Some(done)
}
