//! Block traces: recognition, reading, conversion and replay.

use crate::Next;
use lodger_core::Completion;

/// State machine of one replayed trace.
#[derive(Debug)]
pub struct Replay {}

impl Replay {
    /// What the replay wants to do at `now_ps`.
    pub fn next(&mut self, _now_ps: u64) -> Next {
        Next::Done
    }

    /// One of the replay's requests has completed.
    pub fn complete(&mut self, _completion: &Completion) {}
}
