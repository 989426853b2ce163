//! What can be seen of the drive: counters and histograms. Seen by all, depends on none.

mod counters;
mod histogram;

pub use counters::{CAUSES, Counters, MapCounters, TIERS_MAX};
pub use histogram::Histogram;
