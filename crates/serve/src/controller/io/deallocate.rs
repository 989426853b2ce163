//! What is deallocated: by Dataset Management (NVM Command Set 1.0 §3.2.3), by Write Zeroes (§3.2.8), and all of a namespace.
//!
//! The drive goes through the pages of a trim in one go, as long as they take this machine: half a minute for what a single
//! command may name. So it is handed pieces, few at a time, between which registers are answered and other commands done.
//! Who waits for one of them goes on in turn.

use super::Flights;
use crate::controller::Controller;
use crate::controller::io::{Kind, PAGE_BYTES};
use lodger_core::{Op, Precondition, Status as DriveStatus};
use lodger_wire::QueueId;
use lodger_wire::command::{DatasetManagement, DsmRange, IoCommand, Parsed, WriteZeroes};
use lodger_wire::memory::GuestMemory;
use lodger_wire::status::Status;
use std::collections::VecDeque;

/// Pages in the drive's hands at once, and those after which others are looked after: some milliseconds of this machine's where
/// each has bytes.
pub const PAGES_AT_ONCE: u64 = 1 << 16;
/// What a piece takes beside its pages counts as so many.
const PIECE: u64 = 64;

/// First byte and end.
type Place = (u64, u64);

/// What of a command's blocks is not in the drive's hands yet.
#[derive(Debug)]
struct Waiting {
    tag: u32,
    queue: QueueId,
    place: Place,
}

/// What is being deallocated.
#[derive(Debug, Default)]
pub(super) struct Deallocations {
    waiting: VecDeque<Waiting>,
    /// Pages in the drive's hands, as [`weight`] counts them.
    under_way: u64,
    /// And those that it is done with, since power came.
    done: u64,
}

fn weight(bytes: u64) -> u64 {
    bytes / PAGE_BYTES + PIECE
}

/// The whole pages of a range of bytes. What is no whole page keeps its data.
fn whole_pages((start, length): (u64, u64)) -> Option<Place> {
    let first = start.next_multiple_of(PAGE_BYTES);
    let end = (start + length) / PAGE_BYTES * PAGE_BYTES;
    (first < end).then_some((first, end))
}

/// The same bytes, each once: ranges of a command may overlap.
fn union(mut places: Vec<Place>) -> Vec<Place> {
    places.sort_unstable();
    let mut all: Vec<Place> = Vec::with_capacity(places.len());
    for (first, end) in places {
        match all.last_mut() {
            Some(last) if first <= last.1 => last.1 = last.1.max(end),
            _ => all.push((first, end)),
        }
    }
    all
}

impl Deallocations {
    /// The next piece, if the drive can be handed one, and whether it is the last of its place. `undivided`: bytes of a
    /// place that is taken as a whole.
    fn next(&mut self, undivided: Option<u64>) -> Option<(Waiting, bool)> {
        let (first, end) = self.waiting.front()?.place;
        let most = match undivided == Some(end - first) {
            true => end - first,
            false => PAGES_AT_ONCE * PAGE_BYTES,
        };
        let stop = end.min(first + most);
        let under_way = self.under_way + weight(stop - first);
        if self.under_way > 0 && under_way > PAGES_AT_ONCE + PIECE {
            return None;
        }
        self.under_way = under_way;
        let mut piece = self.waiting.pop_front()?;
        let (tag, queue) = (piece.tag, piece.queue);
        piece.place.1 = stop;
        if stop < end {
            let place = (stop, end);
            self.waiting.push_back(Waiting { tag, queue, place });
        }
        Some((piece, stop == end))
    }

    fn ended(&mut self, bytes: u64) {
        self.under_way = self.under_way.saturating_sub(weight(bytes));
        self.done += weight(bytes);
    }
}

impl Flights {
    /// A reset: what hosts have asked for and the drive has not begun is not begun any more.
    pub(super) fn drop_deallocations(&mut self) {
        let mut waiting = std::mem::take(&mut self.deallocations.waiting);
        waiting.retain(|waiting| {
            let flight = &mut self.flights[waiting.tag as usize];
            if flight.kind == Kind::Wipe {
                return true;
            }
            flight.then_flush = false;
            flight.parts -= 1;
            if flight.parts == 0 {
                self.land(waiting.tag);
            }
            false
        });
        self.deallocations.waiting = waiting;
    }
}

impl<M: GuestMemory + Clone> Controller<M> {
    /// Whole pages are deallocated, and read as zeros then; what is left at both ends is written.
    pub(super) fn write_zeroes(
        &mut self,
        tag: u32,
        queue: QueueId,
        parsed: &Parsed<IoCommand>,
        zeroes: &WriteZeroes,
    ) -> Result<(), Status> {
        let (start, length) = self.namespace_of(parsed)?.place(zeroes.access.range())?;
        let end = start + length;
        self.can_write()?;
        let fua = zeroes.access.force_unit_access || !self.features.write_cache;
        self.wipe.note_write();
        self.flights.flights[tag as usize].kind = Kind::Write;
        let Some((whole_start, whole_end)) = whole_pages((start, length)) else {
            self.ends_when_safe(tag, fua);
            self.part(tag, queue, Op::Write, fua, (start, length));
            return Ok(());
        };
        self.deallocates_when_safe(tag, fua);
        self.deallocate(tag, queue, vec![(whole_start, whole_end)]);
        if start < whole_start {
            self.part(tag, queue, Op::Write, fua, (start, whole_start - start));
        }
        if whole_end < end {
            self.part(tag, queue, Op::Write, fua, (whole_end, end - whole_end));
        }
        Ok(())
    }

    pub(super) fn manage(
        &mut self,
        tag: u32,
        queue: QueueId,
        parsed: &Parsed<IoCommand>,
        dsm: &DatasetManagement,
    ) -> Result<(), Status> {
        let mut bytes = [0; 256 * DsmRange::BYTES];
        let bytes = &mut bytes[..dsm.ranges() * DsmRange::BYTES];
        parsed.data.read(&self.memory, self.page, bytes)?;
        let (ranges, _) = bytes.as_chunks();
        let mut places = Vec::with_capacity(ranges.len());
        for range in ranges {
            let range = DsmRange::decode(range).range();
            let range = self.namespace_of(parsed)?.place(range)?;
            places.extend((range.1 > 0).then_some(range));
        }
        if !dsm.deallocate {
            return Ok(());
        }
        self.can_write()?;
        self.deallocates_when_safe(tag, false);
        let pages = places.iter().copied().filter_map(whole_pages);
        let pages = union(pages.collect());
        match places.first() {
            // Nothing changes, which takes the drive its time.
            Some((start, length)) if pages.is_empty() => {
                self.deallocate(tag, queue, vec![(*start, start + length)]);
            }
            _ => self.deallocate(tag, queue, pages),
        }
        Ok(())
    }

    /// Places, each first byte and end, are deallocated as a part of a command.
    pub(in crate::controller) fn deallocate(
        &mut self,
        tag: u32,
        queue: QueueId,
        places: Vec<Place>,
    ) {
        // Each place is a part more until the last piece of it is sent.
        self.flights.flights[tag as usize].parts += places.len() as u32;
        let waiting = places
            .into_iter()
            .map(|place| Waiting { tag, queue, place });
        self.flights.deallocations.waiting.extend(waiting);
        self.go_on_deallocating();
    }

    fn go_on_deallocating(&mut self) {
        // What lies from the start where a formula says is not gone through page by page if all of it goes at once.
        let is_filled = self.precondition != Precondition::None;
        let undivided = is_filled.then_some(self.device.spec().capacity_bytes);
        while let Some((piece, is_last)) = self.flights.deallocations.next(undivided) {
            let (first, end) = piece.place;
            let range = (first, end - first);
            self.part(piece.tag, piece.queue, Op::Trim, false, range);
            if is_last {
                self.part_done(piece.tag, DriveStatus::Success);
            }
        }
    }

    /// The drive has gone through a piece.
    pub(in crate::controller) fn piece_deallocated(&mut self, bytes: u64) {
        self.flights.deallocations.ended(bytes);
        self.go_on_deallocating();
    }

    /// Pages that it has gone through to deallocate them since power came, and a few for each piece of them: whoever has others
    /// to look after does so before there are [`PAGES_AT_ONCE`] more.
    #[must_use]
    pub fn deallocated_pages(&self) -> u64 {
        self.flights.deallocations.done
    }
}
