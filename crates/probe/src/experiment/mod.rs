//! The experiments: one file each, with its method, what it costs, and what it can and cannot tell.

mod buffer_ends;
pub(crate) mod burst;
mod flash_page;
pub mod flush;
mod grants;
mod kept;
mod layout;
pub mod levels;
pub mod map_cache;
mod own;
pub mod parallelism;
pub mod queue_depth;
pub mod read_ahead;
pub mod read_cache;
pub mod replacement;
pub mod request_size;
mod rounds;
pub(crate) mod samples;
mod turnover;
mod turns;
mod unit;
mod walk;
pub mod working_set;
pub mod write_buffer;
pub mod write_cliff;
mod write_path;

pub(crate) use walk::page_of;

use crate::bench::{Bench, Stop};
use crate::cost::{Cost, Scale};
use crate::findings::Findings;
use crate::target::HmbState;

/// What is said about an experiment before it starts.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Name for `--experiment`.
    pub name: &'static str,
    /// What it answers.
    pub question: &'static str,
    /// How.
    pub method: &'static str,
    /// What it cannot tell.
    pub limits: &'static str,
    /// It writes.
    pub writes: bool,
    /// What it takes.
    pub cost: fn(&Scale) -> Cost,
}

/// Does one experiment.
pub type Run = fn(&mut Bench<'_>, &mut Findings) -> Result<(), Stop>;

impl About {
    /// Whether a verdict rests on it.
    #[must_use]
    pub fn decides(&self) -> bool {
        let mut roles = crate::role::Role::ALL.iter();
        // Without the marks of flash, equal latencies prove nothing.
        self.name == parallelism::ABOUT.name
            || roles.any(|role| role.experiments().contains(&self.name))
    }
}

/// All experiments in the order in which they are done: those that only read come first, and among
/// them and the others those that verdicts rest on.
pub const ALL: &[(About, Run)] = &[
    (map_cache::ABOUT, map_cache::run),
    (read_cache::ABOUT, read_cache::run),
    (parallelism::ABOUT, parallelism::run),
    (replacement::ABOUT, replacement::run),
    (queue_depth::ABOUT, queue_depth::run),
    (read_ahead::ABOUT, read_ahead::run),
    (working_set::ABOUT, working_set::run),
    (request_size::ABOUT, request_size::run),
    (flush::ABOUT, flush::run),
    (write_buffer::ABOUT, write_buffer::run),
    (request_size::ABOUT_WRITES, request_size::run_writes),
    (write_cliff::ABOUT, write_cliff::run),
];

/// The states of host memory to compare, with their names: on and off where it can be switched,
/// else the one there is.
pub(crate) fn arms(bench: &Bench<'_>) -> Vec<(&'static str, Option<HmbState>)> {
    if bench.can_switch_hmb() {
        vec![("on", Some(HmbState::On)), ("off", Some(HmbState::Off))]
    } else {
        vec![("as found", None)]
    }
}

/// Brings host memory into a state, and lets the drive come to rest.
pub(crate) fn enter(bench: &mut Bench<'_>, state: Option<HmbState>) -> Result<(), Stop> {
    if let Some(state) = state {
        bench.set_hmb(state)?;
        bench.idle(std::time::Duration::from_millis(50))?;
    }
    Ok(())
}

/// First value at which `beyond` says yes, as the last one that did not and the first one that did:
/// doubling from `from`, then halving the bracket until it is within `resolution` (a share).
/// `None` for the upper end if it never does up to `to`. `beyond` must be false below the knee and
/// true above it.
pub(crate) fn knee(
    from: u64,
    to: u64,
    resolution: f64,
    mut beyond: impl FnMut(u64) -> Result<bool, Stop>,
) -> Result<(u64, Option<u64>), Stop> {
    let mut low = 0;
    let mut at = from.max(1);
    let mut high = loop {
        if beyond(at)? {
            break at;
        }
        low = at;
        if at >= to {
            return Ok((low, None));
        }
        at = (at * 2).min(to);
    };
    while high - low > 1 && (high - low) as f64 > resolution * high as f64 {
        let middle = low + (high - low) / 2;
        if beyond(middle)? {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok((low, Some(high)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn the_knee_is_bracketed(threshold in 1..1_000_000u64, from in 1..64u64) {
            let found = knee(from, 4_000_000, 0.0, |at| Ok(at > threshold));
            prop_assert_eq!(found, Ok((threshold, Some(threshold + 1))));
        }
    }

    #[test]
    fn no_knee_is_said_to_be_none() {
        assert_eq!(knee(1, 100, 0.1, |_| Ok(false)), Ok((100, None)));
    }
}
