//! fio job files: parser and generator.

use crate::Next;
use lodger_core::Completion;

/// State machine of one fio job.
#[derive(Debug)]
pub struct Generator {}

impl Generator {
    /// What the job wants to do at `now_ps`.
    pub fn next(&mut self, _now_ps: u64) -> Next {
        Next::Done
    }

    /// One of the job's requests has completed.
    pub fn complete(&mut self, _completion: &Completion) {}
}
