//! Requests, flash operations and garbage collection as slices over time, for Perfetto.
//!
//! Of each kind every n-th is kept, from the first to the last; n doubles whenever what is kept becomes too
//! much. So a file has its limit whatever the run is, and shows all of it evenly.

mod perfetto;

use lodger_core::ids::{CommandId, Superblock};
use lodger_core::observe::{OpInfo, Part, RequestInfo};
use lodger_core::time::NS;
use perfetto::Packets;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// Bytes of the smallest limit: some hundred slices.
pub const LIMIT_BYTES_MIN: u64 = 64 << 10;
/// Largest limit: all of it stands in memory.
pub const LIMIT_BYTES_MAX: u64 = 4 << 30;

/// Tracks: a kind in the upper half, a number in the lower. Numbers of kinds are tracks, too, above those.
const REQUESTS: u64 = 1 << 32;
const DIES: u64 = 2 << 32;
const BUSES: u64 = 3 << 32;
const COLLECTIONS: u64 = 4 << 32;
/// Names of the kinds, and of their tracks.
const KINDS: [(u64, &str, &str); 4] = [
    (REQUESTS, "requests", "slot"),
    (DIES, "flash dies", "die"),
    (BUSES, "flash buses", "bus"),
    (COLLECTIONS, "garbage collection", "victim"),
];

/// Every n-th of a kind, encoded.
#[derive(Clone, Debug)]
struct Thinned {
    every: u64,
    seen: u64,
    bytes: u64,
    limit_bytes: u64,
    /// Its number, its bytes, and the tracks it is on.
    kept: Vec<(u64, Vec<u8>, [u64; 2])>,
}

impl Thinned {
    fn new(limit_bytes: u64) -> Self {
        Thinned {
            every: 1,
            seen: 0,
            bytes: 0,
            limit_bytes,
            kept: Vec::new(),
        }
    }

    fn add(&mut self, tracks: [u64; 2], encode: impl FnOnce(&mut Packets)) {
        let number = self.seen;
        self.seen += 1;
        if !number.is_multiple_of(self.every) {
            return;
        }
        let mut packets = Packets::default();
        encode(&mut packets);
        let bytes = packets.bytes().to_vec();
        self.bytes += bytes.len() as u64;
        self.kept.push((number, bytes, tracks));
        while self.bytes > self.limit_bytes && !self.kept.is_empty() {
            self.thin();
        }
    }

    fn thin(&mut self) {
        self.every *= 2;
        let every = self.every;
        // The first is kept as long as there is another.
        let only = self.kept.len() == 1;
        self.kept
            .retain(|(number, ..)| !only && number.is_multiple_of(every));
        self.bytes = self
            .kept
            .iter()
            .map(|(_, bytes, _)| bytes.len() as u64)
            .sum();
    }
}

/// A superblock being emptied.
#[derive(Clone, Copy, Debug)]
struct Victim {
    cause: &'static str,
    valid: u32,
    start_ps: u64,
    /// Its track: no other is under way there.
    lane: u64,
}

/// When an operation of the flash did what, picoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpTimes {
    /// In the array.
    pub(crate) array_ps: (u64, u64),
    /// On the bus, of reads.
    pub(crate) bus_ps: Option<(u64, u64)>,
    pub(crate) suspended_ps: u64,
}

/// What is kept of a run.
#[derive(Clone, Debug)]
pub struct TraceEvents {
    limit_bytes: u64,
    requests: Thinned,
    ops: Thinned,
    collections: Thinned,
    victims: BTreeMap<Superblock, Victim>,
}

/// How much of a run is in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Bytes of the trace.
    pub bytes: u64,
    /// Of requests, flash operations and collected superblocks: how many are there, and how many there were.
    pub kinds: [(u64, u64); 3],
}

impl TraceEvents {
    /// Nothing yet; no more than `limit_bytes` will be written.
    #[must_use]
    pub fn new(limit_bytes: u64) -> Self {
        // Half for requests, a quarter for operations, an eighth for collections; tracks take the rest.
        TraceEvents {
            limit_bytes,
            requests: Thinned::new(limit_bytes / 2),
            ops: Thinned::new(limit_bytes / 4),
            collections: Thinned::new(limit_bytes / 8),
            victims: BTreeMap::new(),
        }
    }

    /// A request is over; `slices` say which part of it began when.
    pub(crate) fn request(
        &mut self,
        command: CommandId,
        info: &RequestInfo,
        start_ps: u64,
        slices: &[(Part, u64)],
        end_ps: u64,
    ) {
        let track = REQUESTS | u64::from(command.0);
        self.requests.add([track; 2], |packets| {
            let notes = [
                ("offset_bytes", info.offset_bytes),
                ("length_bytes", info.length_bytes),
                ("latency_ps", end_ps - start_ps),
            ];
            packets.begin(start_ps / NS, track, ("request", info.op), &notes);
            for (at, (part, from_ps)) in slices.iter().enumerate() {
                let to_ps = slices.get(at + 1).map_or(end_ps, |next| next.1);
                packets.begin(from_ps / NS, track, ("part", part.name()), &[]);
                packets.end(to_ps / NS, track);
            }
            packets.end(end_ps / NS, track);
        });
    }

    /// A flash operation is over.
    pub(crate) fn op(&mut self, info: &OpInfo, times: &OpTimes) {
        let die = DIES | u64::from(info.die.0);
        let bus = times.bus_ps.map(|_| BUSES | u64::from(info.channel));
        self.ops.add([die, bus.unwrap_or(die)], |packets| {
            let name = format!("{} {}", info.cause, info.kind);
            let notes = [
                ("superblock", u64::from(info.superblock.0)),
                ("suspended_ps", times.suspended_ps),
            ];
            let notes = &notes[..if times.suspended_ps > 0 { 2 } else { 1 }];
            packets.begin(times.array_ps.0 / NS, die, ("flash", &name), notes);
            packets.end(times.array_ps.1 / NS, die);
            if let (Some(bus), Some((from_ps, to_ps))) = (bus, times.bus_ps) {
                packets.begin(from_ps / NS, bus, ("flash", &name), &[]);
                packets.end(to_ps / NS, bus);
            }
        });
    }

    /// A superblock is to be emptied.
    pub(crate) fn victim(
        &mut self,
        superblock: Superblock,
        cause: &'static str,
        valid: u32,
        at_ps: u64,
    ) {
        let taken: BTreeSet<u64> = self.victims.values().map(|victim| victim.lane).collect();
        let lane = (0..).find(|lane| !taken.contains(lane)).unwrap_or(0);
        let victim = Victim {
            cause,
            valid,
            start_ps: at_ps,
            lane,
        };
        self.victims.insert(superblock, victim);
    }

    /// A superblock is erased.
    pub(crate) fn erased(&mut self, superblock: Superblock, at_ps: u64) {
        let Some(victim) = self.victims.remove(&superblock) else {
            return;
        };
        let track = COLLECTIONS | victim.lane;
        self.collections.add([track; 2], |packets| {
            let notes = [
                ("superblock", u64::from(superblock.0)),
                ("valid_pages", u64::from(victim.valid)),
            ];
            let what = ("gc", victim.cause);
            packets.begin(victim.start_ps / NS, track, what, &notes);
            packets.end(at_ps / NS, track);
        });
    }

    /// Names of the tracks that something is on.
    fn tracks(&self) -> Packets {
        let kinds = [&self.requests, &self.ops, &self.collections];
        let kept = kinds.into_iter().flat_map(|kind| &kind.kept);
        let used: BTreeSet<u64> = kept.flat_map(|(_, _, tracks)| tracks).copied().collect();
        let mut packets = Packets::default();
        for (kind, name, each) in KINDS {
            let parent = kind | u64::from(u32::MAX);
            packets.track(parent, None, name);
            for track in used.range(kind..parent) {
                packets.track(*track, Some(parent), &format!("{each} {}", track - kind));
            }
        }
        packets
    }

    /// Writes the trace.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(mut self, to: &mut impl Write) -> io::Result<Kept> {
        let mut tracks = self.tracks();
        let size = |events: &Self, tracks: &Packets| {
            let kinds = [&events.requests, &events.ops, &events.collections];
            kinds.map(|kind| kind.bytes).iter().sum::<u64>() + tracks.bytes().len() as u64
        };
        // Many commands at once have many tracks.
        while size(&self, &tracks) > self.limit_bytes && !self.requests.kept.is_empty() {
            self.requests.thin();
            tracks = self.tracks();
        }
        let bytes = size(&self, &tracks);
        to.write_all(tracks.bytes())?;
        let kinds = [self.requests, self.ops, self.collections];
        for kind in &kinds {
            for (_, bytes, _) in &kind.kept {
                to.write_all(bytes)?;
            }
        }
        let kinds = kinds.map(|kind| (kind.kept.len() as u64, kind.seen));
        Ok(Kept { bytes, kinds })
    }
}
