//! Requests that are longer than a command may be: Linux splits them at `max_sectors_kb`, which is no more than the
//! drive's MDTS, and the request is done when the last of its parts is. Without either limit they are split where a
//! command of the model ends.

use crate::device::{SECTOR_BYTES, TRANSFER_BYTES_MAX};
use crate::ids::{CommandId, Maybe};
use crate::request::{Op, Request, Status};
use crate::slab::Slab;
use serde::{Deserialize, Serialize};

/// Longest request that is split: the longest `bs`. What is longer makes no sense, and as many parts.
const REQUEST_BYTES_MAX: u64 = 1 << 30;

/// A request of which parts are under way.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct Whole {
    parts_left: u32,
    /// That of the first part that failed.
    status: Status,
}

/// Requests of which parts are under way.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Splits {
    /// Longest part.
    part_bytes_max: u64,
    wholes: Slab<Whole>,
    /// What each command in flight is a part of, by its number.
    whole_of: Vec<Maybe<u32>>,
}

impl Splits {
    /// Of requests longer than that; `None`: than a command can be.
    pub(super) fn new(part_bytes_max: Option<u64>) -> Self {
        Splits {
            part_bytes_max: part_bytes_max.unwrap_or(TRANSFER_BYTES_MAX),
            wholes: Slab::default(),
            whole_of: Vec::new(),
        }
    }

    /// Whether a request has to be split. What no drive would accept anyway is sent as it is.
    #[inline]
    pub(super) fn needed(&self, request: &Request) -> bool {
        request.length_bytes > self.part_bytes_max && is_sound(request)
    }

    /// A request is about to be submitted in parts.
    pub(super) fn begin(&mut self, request: &Request) -> u32 {
        let parts_left = request.length_bytes.div_ceil(self.part_bytes_max) as u32;
        self.wholes.insert(Whole {
            parts_left,
            status: Status::Success,
        })
    }

    /// The parts of a request, in order.
    pub(super) fn parts(&self, request: Request) -> impl Iterator<Item = Request> + use<> {
        let most = self.part_bytes_max;
        (0..request.length_bytes.div_ceil(most)).map(move |number| Request {
            offset_bytes: request.offset_bytes + number * most,
            length_bytes: most.min(request.length_bytes - number * most),
            ..request
        })
    }

    /// A command that has been submitted is a part of a request.
    pub(super) fn submitted(&mut self, command: CommandId, whole: u32) {
        if command.index() >= self.whole_of.len() {
            self.whole_of.resize(command.index() + 1, Maybe::NONE);
        }
        self.whole_of[command.index()] = whole.into();
    }

    /// A command is over. How its request ended, if that is over, too.
    #[inline]
    pub(super) fn completed(&mut self, command: CommandId, status: Status) -> Option<Status> {
        let whole = self.whole_of.get_mut(command.index());
        match whole.and_then(Maybe::take) {
            Some(whole) => self.part_completed(whole, status),
            None => Some(status),
        }
    }

    fn part_completed(&mut self, index: u32, status: Status) -> Option<Status> {
        let whole = &mut self.wholes[index];
        whole.parts_left -= 1;
        if whole.status == Status::Success {
            whole.status = status;
        }
        let done = (whole.parts_left == 0).then_some(whole.status);
        if done.is_some() {
            self.wholes.remove(index);
        }
        done
    }

    /// Power is gone, and the host with it.
    pub(super) fn forget_all(&mut self) {
        self.wholes = Slab::default();
        self.whole_of.clear();
    }
}

/// Whether a request is one that drives could accept, if they took so much at once.
fn is_sound(request: &Request) -> bool {
    matches!(request.op, Op::Read | Op::Write)
        && request.length_bytes <= REQUEST_BYTES_MAX
        && request.length_bytes.is_multiple_of(SECTOR_BYTES)
        && request
            .offset_bytes
            .checked_add(request.length_bytes)
            .is_some()
}
