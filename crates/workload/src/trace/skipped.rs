//! What of a file's lines was not taken, counted by why.

use super::format::field::Skip;
use super::text::plural;

/// Number of [`Skip`]s.
const SKIPS: usize = Skip::Expected as usize + 1;

/// How many lines gave no request, or not all of it.
#[derive(Debug, Default)]
pub(super) struct Skipped {
    counts: [u64; SKIPS],
    pub(super) malformed: u64,
}

impl Skipped {
    pub(super) fn add(&mut self, skip: Skip, lines: u64) {
        self.counts[skip as usize] += lines;
    }

    /// `action`: where the requests that are taken were recorded, if the format has a word for it.
    pub(super) fn note(&self, action: &str, notes: &mut Vec<String>) {
        let once = match action {
            "" => String::new(),
            action => format!(", as {action}"),
        };
        let others = format!("of other actions left out: each request is taken once{once}");
        let said = [
            (Skip::OtherKind, "line", "of other kinds passed over"),
            (Skip::OtherAction, "event", &others[..]),
            (
                Skip::OtherOperation,
                "command",
                "other than read, write, flush and trim left out",
            ),
            (
                Skip::NoResponse,
                "request",
                "without a recorded response left out",
            ),
            (Skip::ZeroLength, "request", "of no bytes left out"),
            (
                Skip::ImpossibleLatency,
                "recorded response time",
                "below zero or above 213 days left out: how long those requests took is not known",
            ),
            (
                Skip::Lost,
                "gap",
                "where the kernel lost events: its trace buffer was too small",
            ),
        ];
        for (skip, noun, what) in said {
            let n = self.counts[skip as usize];
            if n > 0 {
                notes.push(format!("{} {what}", plural(n, noun)));
            }
        }
        if self.malformed > 0 {
            notes.push(format!(
                "{} left out",
                plural(self.malformed, "malformed line")
            ));
        }
    }
}
