//! PCIe link: two directions, each first come, first served; posted writes need no answer,
//! non-posted reads wait for one.

use crate::engine::{Now, Timeline};
use crate::spec::LinkSpec;
use crate::time::transfer_ps;

/// A page, a completion entry, a submission entry or map line.
const USUAL_BYTES: [u64; 3] = [4096, 16, 64];

/// The link between host and drive.
#[derive(Debug)]
pub struct Link {
    spec: LinkSpec,
    to_host: Timeline,
    from_host: Timeline,
    /// Times of the sizes that every request sends: the division is slow.
    usual: [(u64, u64); 3],
    /// The last other size asked for and its time.
    last: (u64, u64),
    /// Payload bytes sent to the host.
    pub to_host_bytes: u64,
    /// Payload bytes taken from the host.
    pub from_host_bytes: u64,
}

impl Link {
    /// An idle link.
    #[must_use]
    pub fn new(spec: &LinkSpec) -> Self {
        Link {
            spec: spec.clone(),
            to_host: Timeline::default(),
            from_host: Timeline::default(),
            usual: USUAL_BYTES.map(|bytes| (bytes, wire_ps(spec, bytes))),
            last: (0, wire_ps(spec, 0)),
            to_host_bytes: 0,
            from_host_bytes: 0,
        }
    }

    /// Time `bytes` of payload occupy one direction, packet overhead included.
    #[inline]
    pub fn wire_ps(&mut self, bytes: u64) -> u64 {
        if let Some(usual) = self.usual.iter().find(|usual| usual.0 == bytes) {
            return usual.1;
        }
        if self.last.0 != bytes {
            self.last = (bytes, wire_ps(&self.spec, bytes));
        }
        self.last.1
    }

    /// Posted write to the host's memory; returns when it has arrived there.
    #[inline]
    pub fn write(&mut self, now: Now, bytes: u64) -> u64 {
        let wire_ps = self.wire_ps(bytes);
        self.to_host_bytes += bytes;
        self.to_host.book(now, wire_ps) + self.spec.one_way_ps
    }

    /// Non-posted read of the host's memory; returns when the last byte is in the drive.
    #[inline]
    pub fn read(&mut self, now: Now, bytes: u64) -> u64 {
        let wire_ps = self.wire_ps(bytes);
        self.from_host_bytes += bytes;
        // The answers of all reads come one round trip later: booking the direction at the time of
        // asking keeps their order and their spacing.
        self.from_host.book(now, wire_ps) + self.round_trip_ps()
    }

    /// From asking for host memory to the first byte's arrival.
    #[inline]
    #[must_use]
    pub fn round_trip_ps(&self) -> u64 {
        2 * self.spec.one_way_ps + self.spec.host_memory_ps
    }

    /// Time of flight of one packet.
    #[inline]
    #[must_use]
    pub fn one_way_ps(&self) -> u64 {
        self.spec.one_way_ps
    }

    /// Time both directions were busy: to the host, from the host.
    #[must_use]
    pub fn busy_ps(&self) -> (u64, u64) {
        (self.to_host.busy_ps(), self.from_host.busy_ps())
    }
}

/// Time `bytes` of payload occupy one direction of a link, packet overhead included.
#[must_use]
pub fn wire_ps(spec: &LinkSpec, bytes: u64) -> u64 {
    let packets = bytes.div_ceil(u64::from(spec.max_payload_bytes)).max(1);
    let wire_bytes = bytes + packets * u64::from(spec.packet_overhead_bytes);
    transfer_ps(wire_bytes, spec.bytes_per_s)
}
