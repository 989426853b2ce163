//! Flushes of a drive that loses nothing: they end in the host.
//!
//! A drive without a volatile write cache says so (NVM Express Base 2.0, Identify Controller, VWC bit 0 clear). Linux then
//! hands it no flush (`Documentation/block/writeback_cache_control.rst`): who asks for one waits for the way to where that is
//! found, and for no interrupt.

use lodger_core::observe::{Part, PartsPs};
use lodger_core::request::Status;
use lodger_core::spec::DriveSpec;
use lodger_core::{Completion, Op};
use std::collections::VecDeque;

/// Flushes on their way through the host.
#[derive(Debug)]
pub(super) struct HostFlushes {
    /// The drive has no use for any.
    is_on: bool,
    /// What the host takes to submit one.
    submit_ps: u64,
    /// All take the same time: the first to come is the first to end.
    under_way: VecDeque<Completion>,
}

impl HostFlushes {
    pub(super) fn new(spec: &DriveSpec) -> Self {
        HostFlushes {
            is_on: !spec.has_volatile_cache(),
            submit_ps: spec.host.submit_ps,
            under_way: VecDeque::new(),
        }
    }

    /// Whether the host keeps flushes to itself.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// A flush begins.
    pub(super) fn begin(&mut self, tag: u32, now_ps: u64) {
        self.under_way.push_back(Completion {
            tag,
            op: Op::Flush,
            status: Status::Success,
            submitted_ps: now_ps,
            completed_ps: now_ps + self.submit_ps,
        });
    }

    /// When the next one ends.
    #[inline]
    pub(super) fn next_ps(&self) -> u64 {
        let next = self.under_way.front();
        next.map_or(u64::MAX, |flush| flush.completed_ps)
    }

    /// The next one that has ended by now.
    #[inline]
    pub(super) fn pop(&mut self, now_ps: u64) -> Option<Completion> {
        match self.next_ps() <= now_ps {
            true => self.under_way.pop_front(),
            false => None,
        }
    }

    /// Where the time of one went.
    pub(super) fn parts_ps(&self) -> PartsPs {
        let mut parts_ps = PartsPs::default();
        parts_ps[Part::Submission as usize] = self.submit_ps;
        parts_ps
    }
}
