//! What time it is for the host (Timestamp, Base 2.0 §5.27.1.11): milliseconds that go on with the drive's time.
//!
//! A host that sets it gives the drive a clock of its own. The drive's time is the one that the controller has: it does not
//! know the wall clock, and all else that it tells of time (power-on hours, seconds of heat) is in the drive's, too. It is counted
//! without a break, in states without I/O as well, so the Synch bit stays clear.

use lodger_wire::command::feature::Timestamp;
use lodger_wire::layout::Short;

const PS_PER_MS: u64 = 1_000_000_000;
/// Timestamp Origin, bits 3:1 of the attributes: a host has set it.
const SET_BY_HOST: u8 = 1 << 1;

/// Milliseconds, as of when they were known last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HostClock {
    since_ps: u64,
    /// What it was then; none: a reset has made it 0.
    set_ms: Option<u64>,
}

impl HostClock {
    /// A controller level reset, over which it is not kept: it is 0 then, and counts.
    pub(super) fn reset(now_ps: u64) -> Self {
        HostClock {
            since_ps: now_ps,
            set_ms: None,
        }
    }

    /// A host says what time it is, as data of Set Features. Attributes are for Get Features alone.
    pub(super) fn set(bytes: &[u8; 8], now_ps: u64) -> Self {
        HostClock {
            since_ps: now_ps,
            set_ms: Some(Timestamp::decode(bytes).ms.number()),
        }
    }

    /// Data of Get Features. Beyond 48 bits it begins at 0 again.
    pub(super) fn get(&self, now_ps: u64) -> [u8; 8] {
        let passed_ms = now_ps.saturating_sub(self.since_ps) / PS_PER_MS;
        let now_ms = self.set_ms.unwrap_or(0).wrapping_add(passed_ms);
        let timestamp = Timestamp {
            ms: Short::saturating(now_ms & Short::<6>::MAX),
            attributes: if self.set_ms.is_some() {
                SET_BY_HOST
            } else {
                0
            },
        };
        timestamp.encode()
    }
}
