//! What can be seen of the drive: counters and histograms. Seen by all, depends on none.

mod counters;
mod histogram;

pub use counters::{CAUSES, Counters, HpbCounters, MapCounters, TIERS_MAX, WindowCounters};
pub use histogram::Histogram;
