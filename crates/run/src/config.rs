//! The one place where a simulated drive is made.

use crate::drives::Drive;
use crate::error::Error;
use crate::hmb::{HmbChoice, HmbResult};
use lodger_core::device::{Contents, Modelled, NoContents};
use lodger_core::observe::{Tracer, Untraced};
use lodger_core::spec::DriveSpec;
use lodger_core::{Host, Precondition};

/// Events without any completion while requests are in flight after which the drive counts as
/// stuck. The longest wait that is none, a write behind garbage collection, is a hundred times shorter.
pub(crate) const STUCK_AFTER: u64 = 50_000_000;

/// Everything about a run but the workload.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// The drive.
    pub drive: Drive,
    /// Host memory.
    pub hmb: HmbChoice,
    /// What was written before.
    pub precondition: Precondition,
    /// Seed of everything drawn at random in the drive; the workload has been given its own.
    pub seed: u64,
}

impl RunConfig {
    /// The drive as it comes: host memory as Linux gives it, written once in order, seed 0.
    #[must_use]
    pub fn new(drive: Drive) -> Self {
        Self {
            drive,
            hmb: HmbChoice::Negotiated,
            precondition: Precondition::Sequential,
            seed: 0,
        }
    }

    /// What the drive is made of.
    #[must_use]
    pub fn spec(&self) -> &DriveSpec {
        self.drive.spec()
    }
}

/// A drive without contents, and the host that uses it.
pub(crate) type Traced<T> = Host<NoContents, Modelled, T>;

/// A drive as it starts.
pub(crate) struct Made<C: Contents, T = Untraced> {
    pub(crate) host: Host<C, Modelled, T>,
    /// Host memory asked for and given; none of it is used yet.
    pub(crate) hmb: HmbResult,
    /// Why less host memory was given than the drive needs, if so.
    pub(crate) warning: Option<String>,
}

/// Makes the drive of a configuration.
///
/// # Errors
/// If the choice of host memory does not go with the drive.
pub(crate) fn make<C: Contents>(config: &RunConfig, contents: C) -> Result<Made<C>, Error> {
    make_traced(config, contents, Untraced)
}

/// The same, with someone who is told of each step.
///
/// # Errors
/// As [`make`].
pub(crate) fn make_traced<C: Contents, T: Tracer>(
    config: &RunConfig,
    contents: C,
    tracer: T,
) -> Result<Made<C, T>, Error> {
    let spec = config.spec();
    let (mut hmb, warning) = config.hmb.negotiate(spec)?;
    let (granted_bytes, seed) = (hmb.granted_bytes, config.seed);
    let parts = (contents, Modelled, tracer);
    let host = Host::with_tracer(spec, config.precondition, granted_bytes, seed, parts);
    hmb.usable_bytes = host.drive.hmb_usable_bytes();
    Ok(Made { host, hmb, warning })
}
