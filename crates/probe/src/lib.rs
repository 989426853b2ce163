//! What is inside this drive, and what does it do with host memory? Found out from outside.
//!
//! [`probe()`] runs the [`experiment`]s on a [`Target`] and concludes, with the evidence, which role
//! lives on which tier. It knows nothing of the device model: a prober that could read the model
//! would prove nothing.

mod again;
pub mod bench;
pub mod cost;
pub mod experiment;
pub mod findings;
pub mod infer;
pub mod outcome;
mod probe;
pub mod replicate;
pub mod report;
mod role;
#[cfg(target_os = "linux")]
pub mod safety;
mod schedule;
pub mod stats;
pub mod target;

pub use infer::{Rule, Tier, Verdict};
pub use outcome::{Expected, Outcome, Skipped, Spent};
pub use probe::{Options, Progress, expected, plan, probe, probe_and_keep};
pub use role::Role;
pub use target::{
    Description, HmbState, HmbSwitch, Io, NEEDS_CONSENT, Op, Sample, Target, TargetError, Transport,
};
