//! What the drive's own memory holds of the map, where host memory is looked at.

use super::map_cache::SAME;
use crate::findings::Held;
use crate::infer::map::MapArm;

/// Units of the map that the drive holds in its own memory, and addresses of one, bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Own {
    pub units: f64,
    pub bytes: u64,
}

impl Own {
    /// As seen without host memory.
    pub fn of(off: &MapArm) -> Option<Self> {
        match (off.units, off.reach_bytes) {
            (Held::UpTo(units), Held::UpTo(reach)) => Some(Own {
                units: units.high,
                bytes: (reach.estimate / units.estimate) as u64,
            }),
            _ => None,
        }
    }
}

/// Whether so many units are more than the drive's own memory holds.
pub(super) fn is_beyond(own: Option<Own>, units: f64) -> bool {
    own.is_none_or(|own| units > SAME * own.units)
}
