//! Events in total order, and resources that serve first come, first served.

mod heap;

use crate::ids::Id;
use crate::observe::{Tracer, Untraced};
use heap::Heap;
use serde::{Deserialize, Serialize};

/// The current instant. Only the engine makes one, so that a [`Timeline`] cannot be booked ahead of
/// time: booking whole requests at issue is wrong by half at high queue depth.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now(u64);

impl Now {
    /// Picoseconds since the start.
    #[inline]
    #[must_use]
    pub const fn ps(self) -> u64 {
        self.0
    }
}

/// What happens at an event. The variants are the moments of a request's way, host to flash.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EventKind {
    /// A submission queue entry has been fetched. Index: command.
    Fetched,
    /// The firmware has taken the command apart. Index: command.
    Processed,
    /// What a read must know before it starts has come back from host memory: a map entry, or that
    /// what stood there is of no use. Index: command.
    ReadInformed,
    /// The entries of an HPB WRITE BUFFER have arrived in the drive. Index: command.
    HpbEntriesArrived,
    /// A part of a read that needs no flash is ready to be sent. Index: command.
    PartReady,
    /// Write data has arrived in the drive. Index: transfer.
    DataArrived,
    /// Write data has reached its buffer in host memory. Index: transfer.
    DataStored,
    /// An array operation (read, program, erase) has ended. Index: flash operation.
    ArrayDone,
    /// A piece of program data has reached the die. Index: flash operation.
    DataLoaded,
    /// Buffered data in host memory has come back to be programmed. Index: fetch.
    WriteBackArrived,
    /// A batch for the write buffer's log has been read from the buffer. No index.
    LogRead,
    /// A batch is in the write buffer's log. No index.
    LogStored,
    /// Data of a flash read has passed bus and decoder. Index: flash operation.
    DataReady,
    /// A die whose bus transfer had to end first can take its next operation. Index: die.
    DieFree,
    /// A suspended program or erase has given way. Index: die.
    Suspended,
    /// Nothing has been asked for a while. Index: idle period.
    Idle,
    /// After a restart: the flash has been read. No index.
    Scanned,
    /// A write that was held back may have room in the buffer. No index.
    Paced,
    /// Translation pages have arrived in host memory: there is room for more. No index.
    MapPagesSent,
    /// A call of the byte window, or a CPU's read of it, goes on in the drive. Index: call.
    Window,
    /// An alarm of the host's: its completion handler has run. Index: command.
    HostHandled,
    /// An alarm of the host's: one of its CPUs goes on. Index: call.
    HostCall,
    /// An alarm of the host's: it has asked nothing for a while. Index: idle period.
    HostIdle,
}

impl EventKind {
    /// By number; the places no kind has are never read, but spare the look-up its bounds check.
    const ALL: [EventKind; 1 << KIND_BITS] = {
        let mut all = [EventKind::Idle; 1 << KIND_BITS];
        let mut at = 0;
        while at < EventKind::KINDS.len() {
            assert!(
                EventKind::KINDS[at] as usize == at,
                "in the order of their numbers"
            );
            all[at] = EventKind::KINDS[at];
            at += 1;
        }
        all
    };

    const KINDS: [EventKind; 23] = [
        EventKind::Fetched,
        EventKind::Processed,
        EventKind::ReadInformed,
        EventKind::HpbEntriesArrived,
        EventKind::PartReady,
        EventKind::DataArrived,
        EventKind::DataStored,
        EventKind::ArrayDone,
        EventKind::DataLoaded,
        EventKind::WriteBackArrived,
        EventKind::LogRead,
        EventKind::LogStored,
        EventKind::DataReady,
        EventKind::DieFree,
        EventKind::Suspended,
        EventKind::Idle,
        EventKind::Scanned,
        EventKind::Paced,
        EventKind::MapPagesSent,
        EventKind::Window,
        EventKind::HostHandled,
        EventKind::HostCall,
        EventKind::HostIdle,
    ];
}

const INDEX_BITS: u32 = 24;
const KIND_BITS: u32 = 5;
const LOW_BITS: u32 = INDEX_BITS + KIND_BITS;

/// Largest index an event can carry, and so the limit on commands and flash operations at once.
pub const INDEX_MAX: u32 = (1 << INDEX_BITS) - 1;

/// Time (64 bits), sequence (35), kind (5) and index (24) in one integer: total order, so that runs
/// are reproducible bit for bit. Thirty-five bits of sequence tell 34 thousand million events apart;
/// after that only events of the same picosecond could change places, and always in the same way.
#[derive(Clone, Serialize, Deserialize, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event(u128);

impl Event {
    #[inline]
    fn new(time_ps: u64, sequence: u64, kind: EventKind, index: u32) -> Self {
        debug_assert!(index <= INDEX_MAX);
        let low = (sequence << LOW_BITS) | (u64::from(kind as u8) << INDEX_BITS) | u64::from(index);
        Event((u128::from(time_ps) << 64) | u128::from(low))
    }

    #[inline]
    fn time_ps(self) -> u64 {
        (self.0 >> 64) as u64
    }

    #[inline]
    fn kind(self) -> EventKind {
        EventKind::ALL[(self.0 as u64 >> INDEX_BITS) as usize & ((1 << KIND_BITS) - 1)]
    }

    #[inline]
    fn index(self) -> u32 {
        self.0 as u32 & INDEX_MAX
    }
}

/// The event queue and the clock it drives; with it, who is told what happens when.
#[derive(Clone, Serialize, Deserialize)]
pub struct Engine<T = Untraced> {
    heap: Heap,
    now_ps: u64,
    sequence: u64,
    /// Told of each step, by those who know its time.
    pub tracer: T,
}

impl Default for Engine {
    fn default() -> Self {
        Engine::new(Untraced)
    }
}

impl<T: Tracer> Engine<T> {
    /// No events, at time 0.
    pub fn new(tracer: T) -> Self {
        Engine {
            heap: Heap::default(),
            now_ps: 0,
            sequence: 0,
            tracer,
        }
    }

    /// The current instant.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Now {
        Now(self.now_ps)
    }

    /// Events taken from the queue or still in it.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.sequence
    }

    /// Schedules an event; never in the past.
    #[inline]
    pub fn schedule(&mut self, at_ps: u64, kind: EventKind, index: impl Id) {
        debug_assert!(at_ps >= self.now_ps, "{kind:?} scheduled in the past");
        self.heap
            .push(Event::new(at_ps, self.sequence, kind, index.number()).0);
        self.sequence += 1;
    }

    /// When the next event is due.
    #[inline]
    #[must_use]
    pub fn next_time_ps(&self) -> Option<u64> {
        self.heap.peek().map(|event| Event(event).time_ps())
    }

    /// Takes the next event due at or before `until_ps` and moves the clock to it.
    #[inline]
    pub fn pop(&mut self, until_ps: u64) -> Option<(Now, EventKind, u32)> {
        let event = Event(self.heap.peek()?);
        if event.time_ps() > until_ps {
            return None;
        }
        self.heap.pop();
        self.now_ps = event.time_ps();
        Some((Now(self.now_ps), event.kind(), event.index()))
    }

    /// Nothing that was to happen happens; the clock stays.
    pub fn drop_all(&mut self) {
        self.heap = Heap::default();
    }

    /// Moves the clock forward when no event is left before `to_ps`.
    pub fn idle_until(&mut self, to_ps: u64) {
        debug_assert!(self.next_time_ps().is_none_or(|next| next > to_ps));
        self.now_ps = self.now_ps.max(to_ps);
    }
}

/// A resource that serves first come, first served: a link direction, a bus, a core.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default)]
pub struct Timeline {
    free_at_ps: u64,
    busy_ps: u64,
}

impl Timeline {
    /// Takes the resource for `duration_ps` from now or from when it is free; returns the end.
    #[inline]
    pub fn book(&mut self, now: Now, duration_ps: u64) -> u64 {
        self.book_from(now.0, duration_ps)
    }

    /// The same, not before an instant to come.
    #[inline]
    pub fn book_from(&mut self, from_ps: u64, duration_ps: u64) -> u64 {
        let start_ps = self.free_at_ps.max(from_ps);
        self.free_at_ps = start_ps + duration_ps;
        self.busy_ps += duration_ps;
        self.free_at_ps
    }

    /// Nothing that was booked takes place any more.
    pub fn drop_all(&mut self) {
        self.free_at_ps = 0;
    }

    /// When everything booked so far is done.
    #[inline]
    #[must_use]
    pub fn free_at_ps(&self) -> u64 {
        self.free_at_ps
    }

    /// Time booked so far.
    #[must_use]
    pub fn busy_ps(&self) -> u64 {
        self.busy_ps
    }
}

/// Something of which only so many may be under way: how much of it was.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default)]
pub struct Occupancy {
    inside: u32,
    since_ps: u64,
    busy_ps: u64,
}

impl Occupancy {
    /// One more is under way.
    #[inline]
    pub fn enter(&mut self, now: Now) {
        self.busy_ps = self.busy_ps(now);
        self.since_ps = now.0;
        self.inside += 1;
    }

    /// One has ended.
    #[inline]
    pub fn leave(&mut self, now: Now) {
        self.busy_ps = self.busy_ps(now);
        self.since_ps = now.0;
        self.inside -= 1;
    }

    /// All have ended.
    pub fn drop_all(&mut self, now: Now) {
        self.busy_ps = self.busy_ps(now);
        self.since_ps = now.0;
        self.inside = 0;
    }

    /// Time that each was under way, added up.
    #[inline]
    #[must_use]
    pub fn busy_ps(&self, now: Now) -> u64 {
        self.busy_ps + u64::from(self.inside) * (now.0 - self.since_ps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        /// The long way: a list of all that is to come, searched for the earliest; of one instant, for what was
        /// scheduled first. What is handed on without entering the heap comes in the same order.
        #[test]
        fn events_come_as_from_a_list_that_is_searched(seed: u64) {
            let mut rng = Rng::new(seed);
            let mut engine = Engine::default();
            let mut list: Vec<(u64, u32)> = Vec::new();
            let mut scheduled = 0;
            for _ in 0..500 {
                // As handlers do: mostly one event, which may be due at once or with others.
                for _ in 0..[1, 1, 1, 1, 0, 2, 3][rng.below(7) as usize] {
                    let delay_ps = [0, rng.below(4), rng.below(1000)][rng.below(3) as usize];
                    let at_ps = engine.now().ps() + u64::from(delay_ps);
                    engine.schedule(at_ps, EventKind::ALL[scheduled as usize % 22], scheduled);
                    list.push((at_ps, scheduled));
                    scheduled += 1;
                }
                let earliest = list.iter().min().copied();
                prop_assert_eq!(engine.next_time_ps(), earliest.map(|(at_ps, _)| at_ps));
                let until_ps = match rng.below(4) {
                    0 => engine.now().ps() + u64::from(rng.below(20)),
                    _ => u64::MAX,
                };
                let expected = earliest.filter(|&(at_ps, _)| at_ps <= until_ps);
                list.retain(|&event| Some(event) != expected);
                let found = engine.pop(until_ps);
                prop_assert_eq!(found.map(|(now, _, index)| (now.ps(), index)), expected);
                if let Some((_, kind, index)) = found {
                    prop_assert_eq!(kind, EventKind::ALL[index as usize % 22]);
                }
            }
            prop_assert_eq!(engine.events(), u64::from(scheduled));
        }
    }

    #[test]
    fn events_of_one_instant_come_in_the_order_they_were_scheduled() {
        let mut engine = Engine::default();
        engine.schedule(7, EventKind::HostHandled, 1);
        engine.schedule(5, EventKind::DieFree, INDEX_MAX);
        engine.schedule(7, EventKind::Fetched, 2);
        let mut order = Vec::new();
        while let Some((now, kind, index)) = engine.pop(u64::MAX) {
            order.push((now.ps(), kind, index));
        }
        assert_eq!(
            order,
            [
                (5, EventKind::DieFree, INDEX_MAX),
                (7, EventKind::HostHandled, 1),
                (7, EventKind::Fetched, 2),
            ]
        );
    }

    #[test]
    fn every_kind_survives_packing() {
        for kind in EventKind::ALL {
            assert_eq!(Event::new(u64::MAX, 3, kind, 9).kind(), kind);
        }
    }

    #[test]
    fn an_event_due_at_the_limit_is_taken_and_one_after_it_is_not() {
        let mut engine = Engine::default();
        engine.schedule(10, EventKind::Idle, 0);
        assert!(engine.pop(9).is_none());
        assert!(engine.pop(10).is_some());
    }

    #[test]
    fn a_timeline_serves_in_turn_and_counts_its_work() {
        let mut bus = Timeline::default();
        assert_eq!(bus.book(Now(100), 50), 150);
        assert_eq!(bus.book(Now(120), 50), 200);
        assert_eq!(bus.book(Now(500), 1), 501);
        assert_eq!(bus.busy_ps(), 101);
    }
}
