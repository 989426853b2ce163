//! Host memory: how much a host gives the drive, and what became of it.

use crate::error::Error;
use crate::size;
use lodger_core::host::hmb::{self, HostPolicy};
use lodger_core::spec::{DriveSpec, Tier};
use serde::{Deserialize, Serialize};

/// How much host memory the host gives the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HmbChoice {
    /// What the drive prefers, negotiated as Linux does, which gives 128 MiB at most.
    #[default]
    Negotiated,
    /// None.
    Off,
    /// What the drive prefers, but no more than this (Linux: `max_host_mem_size_mb`).
    AtMost(u64),
    /// Exactly this much is offered, whatever the drive prefers.
    Exactly(u64),
}

/// Host memory asked for, given and used, bytes.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct HmbResult {
    /// What the drive prefers (HMPRE); 0 for a drive that wants none.
    pub requested_bytes: u64,
    /// What the host gave; of a recording, the most that it gave at once.
    pub granted_bytes: u64,
    /// What the drive can use of it after its own rounding.
    pub usable_bytes: u64,
    /// What roles had reserved of it at the end, filled or not.
    pub used_bytes: u64,
}

/// Whether any role of a drive lies in memory that a host grants.
pub(crate) fn is_used(spec: &DriveSpec) -> bool {
    let roles = &spec.roles;
    let map = roles.map.tiers.iter().map(|held| held.tier);
    let buffer = (roles.write_buffer.bytes > 0).then_some(roles.write_buffer.tier);
    let cache = roles.read_cache.as_ref().map(|cache| cache.tier);
    map.chain(buffer).chain(cache).any(Tier::is_granted)
}

impl HmbChoice {
    /// What `--hmb`, the host's cap, and `--hmb-offer`, an exact amount, say.
    ///
    /// # Errors
    /// If both are given, or one is neither a size nor a word it knows.
    pub fn parse(cap: Option<&str>, offer: Option<&str>) -> Result<Self, Error> {
        match (cap.map(str::trim), offer) {
            (Some(_), Some(_)) => Err(Error::input("`--hmb` and `--hmb-offer` exclude each other")
                .hint("`--hmb` is the most that the host gives; `--hmb-offer` is given whatever the drive asks for")),
            (None, Some(offer)) => match size::parse("--hmb-offer", offer, None)? {
                0 => Ok(HmbChoice::Off),
                bytes => Ok(HmbChoice::Exactly(bytes)),
            },
            (None | Some("default"), None) => Ok(HmbChoice::Negotiated),
            (Some("off"), None) => Ok(HmbChoice::Off),
            (Some(size), None) => match size::parse("--hmb", size, Some("`off` or `default`"))? {
                0 => Ok(HmbChoice::Off),
                bytes => Ok(HmbChoice::AtMost(bytes)),
            },
        }
    }

    /// What the host gives this drive, and a word about it if that is less than the drive needs.
    ///
    /// # Errors
    /// If more is offered than a host can give, or anything to a drive that has no use for it.
    pub fn negotiate(self, spec: &DriveSpec) -> Result<(HmbResult, Option<String>), Error> {
        let limit = hmb::DESCRIPTORS_MAX * hmb::CHUNK_BYTES_MAX;
        let Some(drive) = &spec.tiers.hmb else {
            return match self {
                HmbChoice::Exactly(1..) => {
                    let message = format!("`{}` has no use for host memory", spec.name);
                    let hint = "leave `--hmb-offer` out; \
                                `lodger drives list` shows which drives use host memory";
                    Err(Error::input(message).hint(hint))
                }
                _ => Ok((HmbResult::default(), None)),
            };
        };
        let policy = match self {
            HmbChoice::Negotiated => HostPolicy::linux(),
            HmbChoice::Off => HostPolicy::off(),
            HmbChoice::AtMost(bytes) => HostPolicy::capped(bytes),
            HmbChoice::Exactly(bytes) if bytes > limit => {
                let message = format!(
                    "`--hmb-offer` must be at most {}, found {}",
                    size::show(limit),
                    size::show_exact(bytes)
                );
                let hint = "a host gives no more than its memory: `--hmb-offer 64MiB`";
                return Err(Error::input(message).hint(hint));
            }
            HmbChoice::Exactly(bytes) => HostPolicy::offering(bytes),
        };
        let outcome = hmb::negotiate(drive, &policy);
        let result = HmbResult {
            requested_bytes: drive.preferred_bytes,
            granted_bytes: outcome.granted_bytes(),
            ..HmbResult::default()
        };
        let is_idle = result.granted_bytes > 0 && !is_used(spec);
        let idle = is_idle.then(|| {
            format!(
                "`{}` takes {} of host memory and keeps nothing there: none of its roles lies on `hmb`, and without \
                 (`--hmb off`) it is the same drive",
                spec.name,
                size::show(result.granted_bytes)
            )
        });
        Ok((result, outcome.warning().or(idle)))
    }
}
