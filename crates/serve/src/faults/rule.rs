//! A rule: what it does, and when its turn is.

use super::{Act, Due, Event, Fault};
use lodger_core::rng::Rng;
use lodger_wire::QueueId;
use lodger_wire::entry::SubmissionEntry;

/// A dword of the command, under a mask.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits {
    pub dword: usize,
    pub value: u32,
    pub mask: u32,
}

/// Which queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queues {
    Io,
    One(u16),
}

/// What a rule is looked at for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Commands as they are fetched.
    Command,
    On(Event),
    /// The drive's time; once.
    At(u64),
}

/// What a rule does.
#[derive(Clone, Debug)]
pub(super) enum Deed {
    ToCommand(Fault),
    ToDrive(Act),
}

/// How things stand with the drive.
#[derive(Clone, Copy, Debug, Default)]
pub struct Situation {
    /// Its time, picoseconds.
    pub now_ps: u64,
    /// Bytes that hosts have written.
    pub written_bytes: u64,
    /// Commands in the drive.
    pub depth: u64,
    /// Host memory granted, bytes.
    pub granted_bytes: u64,
    /// Pieces that it is in.
    pub pieces: u64,
}

/// What has to hold of the drive.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needs {
    pub written_bytes: u64,
    pub depth: u64,
    pub granted_bytes: u64,
    pub nothing_granted: bool,
    pub pieces: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub id: u32,
    pub text: String,
    pub deed: Deed,
    pub when: When,
    pub queues: Queues,
    pub opcode: Option<u8>,
    /// First and last block that a command may begin at.
    pub blocks: Option<(u64, u64)>,
    pub bits: Vec<Bits>,
    pub needs: Needs,
    /// Matches that are let pass at first, then each how-manieth counts, and how many do.
    pub skip: u64,
    pub every: u64,
    pub times: u64,
    /// Of 2 to the power of 32, how many.
    pub chance: Option<u32>,
    pub from_ps: u64,
    pub until_ps: u64,
    /// How much later the deed is done.
    pub after_ps: u64,
    pub seen: u64,
    pub done: u64,
    /// Its time has been.
    pub is_over: bool,
}

/// A rule as it can be seen from outside.
#[derive(Clone, Copy, Debug)]
pub struct RuleView<'a> {
    /// Its number.
    pub id: u32,
    /// As it was written.
    pub text: &'a str,
    /// How often its conditions held.
    pub seen: u64,
    /// How often it did something.
    pub done: u64,
}

impl Rule {
    pub(super) fn view(&self) -> RuleView<'_> {
        RuleView {
            id: self.id,
            text: &self.text,
            seen: self.seen,
            done: self.done,
        }
    }

    pub(super) fn act(&self) -> Option<&Act> {
        match &self.deed {
            Deed::ToDrive(act) => Some(act),
            Deed::ToCommand(_) => None,
        }
    }

    pub(super) fn is_spent(&self) -> bool {
        self.is_over || self.done >= self.times
    }

    pub(super) fn matches(&self, entry: &SubmissionEntry, queue: QueueId) -> bool {
        let block = u64::from(entry.dword(11)) << 32 | u64::from(entry.dword(10));
        let is_here = match self.queues {
            Queues::Io => queue != QueueId::ADMIN,
            Queues::One(one) => queue.0 == one,
        };
        is_here
            && self.opcode.is_none_or(|opcode| entry.opcode() == opcode)
            && self
                .blocks
                .is_none_or(|(first, last)| (first..=last).contains(&block))
            && self
                .bits
                .iter()
                .all(|bits| entry.dword(bits.dword) & bits.mask == bits.value)
    }

    fn is_met(&self, now: &Situation) -> bool {
        let needs = &self.needs;
        (self.from_ps..self.until_ps).contains(&now.now_ps)
            && now.written_bytes >= needs.written_bytes
            && now.depth >= needs.depth
            && now.granted_bytes >= needs.granted_bytes
            && now.pieces >= needs.pieces
            && !(needs.nothing_granted && now.granted_bytes > 0)
    }

    /// Whether it is its turn, with something that it is looked at for.
    pub(super) fn applies(&mut self, now: &Situation, rng: &mut Rng) -> bool {
        if !self.is_met(now) || self.done >= self.times {
            return false;
        }
        self.seen += 1;
        let turn = self.seen > self.skip && (self.seen - self.skip - 1).is_multiple_of(self.every);
        let is_drawn = turn
            && self
                .chance
                .is_none_or(|chance| rng.below(u32::MAX) < chance);
        self.done += u64::from(is_drawn);
        is_drawn
    }

    /// What it does goes where such things go.
    pub(super) fn give(&self, fault: &mut Option<Fault>, due: &mut Vec<Due>) {
        match &self.deed {
            Deed::ToCommand(what) => *fault = Some(what.clone()),
            Deed::ToDrive(act) => due.push((self.after_ps, act.clone())),
        }
    }
}
