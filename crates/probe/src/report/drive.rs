//! A drive file from what was found, for the simulator. It knows the keys of a drive file and what they
//! mean (`docs/reference/drive-file.md`), and nothing else of the simulator.

mod bursts;
mod costs;
mod flash;
mod memory;

use crate::outcome::Outcome;
use crate::stats::Estimate;
pub use bursts::Burst;
use std::fmt::Write as _;

const KIB: f64 = 1024.0;

/// What a probe cannot see, and so cannot hand on.
const HEAD: &str = "\
# Written by `lodger probe --emit-drive`. Only sums show from outside, so their parts are a choice: a read
# is host, link, firmware and flash; channels and dies have a product; what host and link take beyond the
# times below is in the firmware's. Not carried over, as no experiment shows it: latencies that differ
# by page (lower and upper), the firmware waiting for host memory, over-provisioning and how garbage is
# collected, shares of the write buffer at which writing back starts and stops, suspended programs and erases,
# how single-bit flash is emptied, protection of what is in host memory, compressed maps, and what single-bit
# flash still holds when a burst begins.
";

/// Keys with their values and where they come from.
#[derive(Default)]
struct Drive {
    text: String,
    sources: String,
    /// "lodger probe of TARGET", as a source has it.
    from: String,
}

impl Drive {
    fn section(&mut self, name: &str) {
        let _ = writeln!(self.text, "\n[{name}]");
    }

    fn key(&mut self, section: &str, key: &str, value: &str, kind: &str, from: &str) {
        let _ = writeln!(self.text, "{key} = {value}");
        let path = format!("{section}.{key}");
        self.source(path.trim_start_matches('.'), kind, from);
    }

    fn measured(&mut self, section: &str, key: &str, value: &str, how: &str) {
        let from = format!("{}: {how}", self.from);
        self.key(section, key, value, "measured", &from);
    }

    fn assumed(&mut self, section: &str, key: &str, value: &str, why: &str) {
        self.key(section, key, value, "assumed", why);
    }

    fn source(&mut self, path: &str, kind: &str, from: &str) {
        let _ = writeln!(
            self.sources,
            "\"{path}\" = {{ kind = \"{kind}\", from = \"{from}\" }}"
        );
    }
}

fn bytes(value: f64) -> String {
    format!("\"{value:.0}B\"")
}

fn micros(value: f64) -> String {
    format!("\"{:.0}ns\"", value * 1e3)
}

/// A size that is a multiple of `step`, one at least.
fn whole(value: f64, step: f64) -> f64 {
    ((value / step).round() * step).max(step)
}

/// The power of two that is nearest by ratio, and that ratio.
fn nearest_power(value: f64) -> (f64, f64) {
    let power = value.log2().round().exp2();
    (power, (value / power).max(power / value))
}

fn quantity(outcome: &Outcome, name: &str) -> Option<Estimate> {
    let quantity = outcome.findings.quantities.get(name)?;
    Some(quantity.value)
}

/// A number of a state of host memory: `as found` has no suffix.
fn of_state(outcome: &Outcome, name: &str, state: &str) -> Option<f64> {
    let found = match state {
        "as found" => quantity(outcome, name),
        state => quantity(outcome, &format!("{name}_{state}")),
    };
    found.map(|value| value.estimate)
}

/// The drive file, or why there is none. Its head says nothing of how long bursts of writes take.
///
/// # Errors
/// If too little was found.
pub fn drive(outcome: &Outcome) -> Result<String, String> {
    drive_compared(outcome, |_, _| None)
}

/// The same, with what its head says of bursts held against the burst that was measured: `simulate` has a file and that
/// burst, and gives when each of its writes completes on a simulated drive of that file, sorted, ms since the first.
///
/// # Errors
/// If too little was found.
pub fn drive_compared(
    outcome: &Outcome,
    simulate: impl FnOnce(&str, &Burst) -> Option<Vec<f64>>,
) -> Result<String, String> {
    let file = keys(outcome)?;
    let bursts = bursts::told(outcome, |burst| simulate(&file, burst));
    Ok(format!("{HEAD}{bursts}{file}"))
}

/// All of it but the head.
fn keys(outcome: &Outcome) -> Result<String, String> {
    let map = &outcome.findings.roles.map.arms;
    let near_state = ["on", "as found"]
        .into_iter()
        .find(|state| map.contains_key(state))
        .ok_or("the map cache was not measured")?;
    let plain = |text: &str| text.replace(['"', '\\'], "");
    let mut drive = Drive {
        from: format!("lodger probe of {}", plain(&outcome.target.name)),
        ..Drive::default()
    };
    if let Some(why) = outcome.target.transport.hides() {
        let _ = writeln!(drive.text, "# This need not be like any drive: {why}.");
    }
    let _ = writeln!(
        drive.text,
        "name = \"{} as probed\"",
        plain(&outcome.target.model)
    );
    let capacity = outcome.target.capacity_bytes / 4096 * 4096;
    let says = "what the drive says";
    drive.measured("", "capacity", &bytes(capacity as f64), says);
    let writes = costs::Writes::of(outcome);
    let flash = flash::Flash::of(outcome, &writes);
    let reads = costs::Reads::of(outcome, near_state, &writes, flash.units);
    writes.link(&mut drive);
    costs::controller(&reads, &writes, &mut drive);
    flash.emit(outcome, &reads, &mut drive);
    memory::emit(outcome, &map[near_state], reads.fills, &mut drive);
    Ok(format!("{}\n[sources]\n{}", drive.text, drive.sources))
}
