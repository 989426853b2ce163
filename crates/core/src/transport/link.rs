//! The link between host and drive: two directions, each first come, first served, but for what is short and waited for.
//! A completion goes between the packets of others' data, and a map entry that a command waits for has no more before it than
//! the drive has asked for ahead.
//!
//! PCIe: the drive reads commands and data from the host's memory (non-posted: it waits for the
//! answer) and writes data and completions there (posted: it does not).
//!
//! UFS: the host sends commands as UPIUs. The drive sends data as it comes; data to be written it
//! asks for by a "ready to transfer" UPIU (RTT), which takes as long as a non-posted read and
//! occupies the direction to the host for a UPIU (JESD220C, sections 10.7.1 to 10.7.4).
//!
//! The host's memory serves what it can (`host.memory.rate`, less what the host itself takes), first come, first served, and one
//! thing at a time for both directions. Data passes through it as it crosses the link, so that the slower of the two decides. Two
//! things that follow are small and left out: data that waits in memory leaves the link idle for others behind it, and single
//! accesses wait for those of the host (a line of 64 bytes takes 3 ns of a channel of DDR4-2400).

use crate::engine::{Now, Timeline};
use crate::spec::{LinkProtocol, LinkSpec};
use crate::time::transfer_ps;
use serde::{Deserialize, Serialize};

/// Bytes of a submission queue entry (NVM Express Base 2.0, section 3.3.3.1).
pub const SUBMISSION_ENTRY_BYTES: u64 = 64;
/// Bytes of a completion queue entry (NVM Express Base 2.0, section 3.3.3.2).
pub const COMPLETION_ENTRY_BYTES: u64 = 16;
/// What a drive may have asked for and not got: 32 reads, as many as tags of 5 bits tell apart, of 512 bytes, the default of the
/// largest (PCI Express Base 3.0, sections 2.2.6.2 and 7.8.4).
const ASKED_BYTES: u64 = 32 * 512;
/// Bytes of the header of every UFS message: 12 common ones and 20 by type. A command's CDB, a
/// response's residual count and what an RTT asks for all lie within (JESD220C, section 10.6.2;
/// `struct utp_upiu_req` of Linux agrees).
pub const UPIU_HEADER_BYTES: u64 = 32;

/// A page, a completion entry, a submission entry or map line, a message without data.
const USUAL_BYTES: [u64; 4] = [4096, 16, 64, 0];

/// One direction of the link.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default)]
struct Direction {
    all: Timeline,
    /// When the last of what went between others is through.
    between_ends_ps: u64,
}

impl Direction {
    #[inline]
    fn book(&mut self, now: Now, wire_ps: u64) -> u64 {
        self.all.book(now, wire_ps)
    }

    /// Books something short that waits for what is under way, no longer than `longest_ps`; the rest is later by it. Returns its end.
    #[inline]
    fn book_between(&mut self, now: Now, wire_ps: u64, longest_ps: u64) -> u64 {
        let begins_ps = self.all.free_at_ps().clamp(now.ps(), now.ps() + longest_ps);
        let in_turn_ps = self.all.book(now, wire_ps);
        self.between_ends_ps = self.between_ends_ps.max(begins_ps) + wire_ps;
        self.between_ends_ps.min(in_turn_ps)
    }

    fn drop_all(&mut self) {
        self.all.drop_all();
        self.between_ends_ps = 0;
    }
}

/// The link between host and drive.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Link {
    spec: LinkSpec,
    to_host: Direction,
    from_host: Direction,
    /// The host's memory; only used where it has a rate.
    memory: Timeline,
    /// Times of the sizes that every request sends: the division is slow.
    usual: [(u64, u64); 4],
    /// From the submission of a command to its arrival, without and with a doorbell of its own.
    command_ps: [u64; 2],
    /// Time of the longest packet.
    packet_ps: u64,
    /// Time of all that may have been asked for and not come.
    asked_ps: u64,
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
            to_host: Direction::default(),
            from_host: Direction::default(),
            packet_ps: wire_ps(spec, u64::from(spec.max_payload_bytes)),
            asked_ps: wire_ps(spec, ASKED_BYTES),
            memory: Timeline::default(),
            usual: USUAL_BYTES.map(|bytes| (bytes, wire_ps(spec, bytes))),
            command_ps: [false, true].map(|doorbell| command_ps(spec, doorbell)),
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

    /// A command is submitted (PCIe: by a doorbell write) at `at_ps`, now or later; returns when it has arrived in the
    /// drive. `doorbell` is false where a command follows another without a doorbell of its own.
    ///
    /// The command's bytes count as traffic but are not booked on the link: at some tens of nanoseconds they
    /// never decide anything, and booking them would cost every request an event. The host's memory may be far slower, where
    /// it has a rate. What it serves later is booked there now, so that nothing waits for an entry that is not written yet.
    #[inline]
    pub fn command(&mut self, now: Now, at_ps: u64, doorbell: bool) -> u64 {
        let bytes = match self.spec.protocol {
            LinkProtocol::Pcie => SUBMISSION_ENTRY_BYTES,
            LinkProtocol::Ufs => UPIU_HEADER_BYTES,
        };
        self.from_host_bytes += bytes;
        let arrives_ps = at_ps + self.command_ps[usize::from(doorbell)];
        match self.spec.host_memory_bytes_per_s {
            None => arrives_ps,
            Some(_) => self.command_from_memory(now, bytes, arrives_ps),
        }
    }

    /// When a command has arrived where the host's memory has a rate: apart, as few drives have one and the requests of
    /// the others should not carry it.
    #[cold]
    fn command_from_memory(&mut self, now: Now, bytes: u64, arrives_ps: u64) -> u64 {
        let answer_ps = self.spec.host_memory_ps + self.spec.one_way_ps;
        arrives_ps.max(self.in_memory(now, bytes, 0) + answer_ps)
    }

    /// Completion entry or response UPIU with `extra_bytes` beyond the usual; returns when it has arrived. A completion entry
    /// goes behind the command's own data alone, which arrives at `data_end_ps`: of others' data it waits for the packet under
    /// way. Response UPIUs stay in order with all that was sent before.
    #[inline]
    pub fn respond(&mut self, now: Now, data_end_ps: u64, extra_bytes: u64) -> u64 {
        if self.keeps_order() {
            self.to_host_bytes += UPIU_HEADER_BYTES;
            return self.write(now, extra_bytes);
        }
        let bytes = COMPLETION_ENTRY_BYTES + extra_bytes;
        let wire_ps = self.wire_ps(bytes);
        self.to_host_bytes += bytes;
        let sent_ps = self.to_host.book_between(now, wire_ps, self.packet_ps);
        let alone_ps = self.in_memory(now, bytes, sent_ps) + self.spec.one_way_ps;
        alone_ps.max(data_end_ps + wire_ps)
    }

    /// Whether a response arrives after all that was sent before it.
    #[inline]
    #[must_use]
    pub fn keeps_order(&self) -> bool {
        self.spec.protocol == LinkProtocol::Ufs
    }

    /// Duration of [`Link::respond`] on an idle link.
    pub fn response_ps(&mut self, extra_bytes: u64) -> u64 {
        let bytes = match self.spec.protocol {
            LinkProtocol::Pcie => COMPLETION_ENTRY_BYTES + extra_bytes,
            LinkProtocol::Ufs => extra_bytes,
        };
        self.wire_ps(bytes) + self.spec.one_way_ps
    }

    /// Whether the host may reuse a command's slot only once it has seen the response (UFS: a
    /// transfer request's slot is free when its doorbell bit is cleared and the host has looked).
    #[inline]
    #[must_use]
    pub fn host_frees_slots(&self) -> bool {
        self.spec.protocol == LinkProtocol::Ufs
    }

    /// Data or a message to the host (PCIe: posted write); returns when it has arrived there.
    #[inline]
    pub fn write(&mut self, now: Now, bytes: u64) -> u64 {
        let wire_ps = self.wire_ps(bytes);
        self.to_host_bytes += bytes;
        let sent_ps = self.to_host.book(now, wire_ps);
        self.in_memory(now, bytes, sent_ps) + self.spec.one_way_ps
    }

    /// Data of the host's memory (PCIe: non-posted read; UFS: RTT and DATA OUT); returns when the
    /// last byte is in the drive.
    #[inline]
    pub fn read(&mut self, now: Now, bytes: u64) -> u64 {
        let wire_ps = self.wire_ps(bytes);
        self.from_host_bytes += bytes;
        if self.spec.protocol == LinkProtocol::Ufs {
            let asked_ps = self.wire_ps(0);
            let waits_ps = self.to_host.book(now, asked_ps) - now.ps();
            let sent_ps = self.from_host.book(now, wire_ps);
            return self.in_memory(now, bytes, sent_ps) + self.round_trip_ps() + waits_ps;
        }
        // The answers of all reads come one round trip later: booking the direction at the time of
        // asking keeps their order and their spacing.
        let sent_ps = self.from_host.book(now, wire_ps);
        self.in_memory(now, bytes, sent_ps) + self.round_trip_ps()
    }

    /// Like [`Link::read`], for a few bytes that a command waits for: they overtake the reads that have not been asked of
    /// the host yet, and wait for no more than may be asked for at once.
    #[inline]
    pub fn read_soon(&mut self, now: Now, bytes: u64) -> u64 {
        if self.spec.protocol == LinkProtocol::Ufs {
            return self.read(now, bytes);
        }
        let wire_ps = self.wire_ps(bytes);
        self.from_host_bytes += bytes;
        let asked_ps = self.asked_ps;
        let sent_ps = self.from_host.book_between(now, wire_ps, asked_ps);
        self.in_memory(now, bytes, sent_ps) + self.round_trip_ps()
    }

    /// When `bytes` have passed through the host's memory, too, which the link has moved by `sent_ps`.
    #[inline]
    fn in_memory(&mut self, now: Now, bytes: u64, sent_ps: u64) -> u64 {
        match self.spec.host_memory_bytes_per_s {
            None => sent_ps,
            Some(rate) => sent_ps.max(self.memory.book(now, transfer_ps(bytes, rate))),
        }
    }

    /// When the host's memory has done a copy of `bytes` that its own engine makes: it reads and writes them.
    #[must_use]
    pub fn copied_ps(&mut self, now: Now, bytes: u64) -> u64 {
        self.in_memory(now, 2 * bytes, now.ps())
    }

    /// Duration of a [`Link::read`] on an idle link, where the host's memory is no slower than the link.
    pub fn read_ps(&mut self, bytes: u64) -> u64 {
        let asked_ps = match self.spec.protocol {
            LinkProtocol::Pcie => 0,
            LinkProtocol::Ufs => self.wire_ps(0),
        };
        self.wire_ps(bytes) + self.round_trip_ps() + asked_ps
    }

    /// Posted write by the host to the drive's memory, or with no bytes a read of it; returns when the
    /// packet has arrived. All of them stay in order.
    #[inline]
    pub fn post(&mut self, now: Now, bytes: u64) -> u64 {
        let wire_ps = self.wire_ps(bytes);
        self.from_host_bytes += bytes;
        self.from_host.book(now, wire_ps) + self.spec.one_way_ps
    }

    /// From asking for host memory to the first byte's arrival.
    #[inline]
    #[must_use]
    pub fn round_trip_ps(&self) -> u64 {
        round_trip_ps(&self.spec)
    }

    /// Time of flight of one packet.
    #[inline]
    #[must_use]
    pub fn one_way_ps(&self) -> u64 {
        self.spec.one_way_ps
    }

    /// Power is gone: nothing is on the way.
    pub fn drop_all(&mut self) {
        self.to_host.drop_all();
        self.from_host.drop_all();
        self.memory.drop_all();
    }

    /// Time the host's memory was busy with what the drive does there, where it has a rate.
    #[must_use]
    pub fn memory_busy_ps(&self) -> Option<u64> {
        self.spec
            .host_memory_bytes_per_s
            .map(|_| self.memory.busy_ps())
    }

    /// Time both directions were busy: to the host, from the host.
    #[must_use]
    pub fn busy_ps(&self) -> (u64, u64) {
        (self.to_host.all.busy_ps(), self.from_host.all.busy_ps())
    }
}

fn round_trip_ps(spec: &LinkSpec) -> u64 {
    2 * spec.one_way_ps + spec.host_memory_ps
}

/// From a command's submission to its arrival, where the host's memory is no limit.
fn command_ps(spec: &LinkSpec, doorbell: bool) -> u64 {
    match spec.protocol {
        LinkProtocol::Pcie => {
            let flight_ps = if doorbell { spec.one_way_ps } else { 0 };
            flight_ps + round_trip_ps(spec) + wire_ps(spec, SUBMISSION_ENTRY_BYTES)
        }
        // The host's controller reads the request's descriptor and sends the UPIU.
        LinkProtocol::Ufs => spec.host_memory_ps + wire_ps(spec, 0) + spec.one_way_ps,
    }
}

/// Time `bytes` of payload occupy one direction of a link, overhead of packets (and of the message,
/// where there are messages) included.
#[must_use]
pub fn wire_ps(spec: &LinkSpec, bytes: u64) -> u64 {
    let bytes = match spec.protocol {
        LinkProtocol::Pcie => bytes,
        LinkProtocol::Ufs => bytes + UPIU_HEADER_BYTES,
    };
    let packets = bytes.div_ceil(u64::from(spec.max_payload_bytes)).max(1);
    let wire_bytes = bytes + packets * u64::from(spec.packet_overhead_bytes);
    transfer_ps(wire_bytes, spec.bytes_per_s)
}
