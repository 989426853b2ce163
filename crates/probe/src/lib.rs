//! What is inside this drive, and what does it do with host memory? Found out from outside.
//!
//! [`probe()`] runs the [`experiment`]s on a [`Target`] and concludes, with the evidence, which role
//! lives on which tier. It knows nothing of the device model: a prober that could read the model
//! would prove nothing.

mod again;
pub mod bench;
pub mod cost;
mod course;
pub mod experiment;
pub mod findings;
pub mod infer;
mod probe;
pub mod replicate;
pub mod report;
#[cfg(target_os = "linux")]
pub mod safety;
pub mod stats;
pub mod target;

pub use infer::{Role, Rule, Tier, Verdict};
pub use probe::{
    Expected, Options, Outcome, Progress, Skipped, Spent, expected, plan, probe, probe_and_keep,
};
pub use target::{
    Description, HmbState, HmbSwitch, Io, NEEDS_CONSENT, Op, Sample, Target, TargetError, Transport,
};
