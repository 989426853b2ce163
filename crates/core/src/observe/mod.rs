//! What can be seen of the drive: counters and histograms. Seen by all, depends on none.

mod counters;
mod histogram;
mod tracer;

pub use counters::{
    AgeingCounters, CAUSES, Counters, HpbCounters, MapCounters, TIERS_MAX, WindowCounters,
};
pub use histogram::Histogram;
pub use tracer::{OpInfo, OpStep, PARTS, Part, PartsPs, RequestInfo, Tracer, Untraced};
