//! Putting requests in the order of time.

use super::record::Packed;
use super::text::{duration, plural};
use lodger_core::time::US;

/// Requests that stood behind a later one.
pub(super) struct Backwards {
    requests: u64,
    /// The longest way back.
    longest_ps: u64,
}

impl Backwards {
    pub(super) fn note(&self) -> Option<String> {
        let are = if self.requests == 1 { "is" } else { "are" };
        let sorted = format!(
            "{} {are} earlier than one before it in the file; sorted by time",
            plural(self.requests, "request")
        );
        // What comes after such a counter has begun anew is sorted before all else, with a gap of what is left of it.
        let wrap_ps = US << 32;
        let wrapped = (wrap_ps / 10 * 9..=wrap_ps).contains(&self.longest_ps);
        let hint = if wrapped {
            format!(
                "; one is {} earlier, nearly 2^32 us: if the times are a 32-bit counter that began anew, add 2^32 to those behind",
                duration(self.longest_ps)
            )
        } else {
            String::new()
        };
        (self.requests > 0).then(|| sorted + &hint)
    }
}

/// Sorts by time, equal times in the file's order, and makes times relative to the earliest.
pub(super) fn put_in_order(records: &mut [Packed]) -> Backwards {
    let mut latest_ps = 0;
    let mut backwards = Backwards {
        requests: 0,
        longest_ps: 0,
    };
    let mut first_ps = u64::MAX;
    for record in records.iter() {
        backwards.requests += u64::from(record.time_ps < latest_ps);
        let back_ps = latest_ps.saturating_sub(record.time_ps);
        backwards.longest_ps = backwards.longest_ps.max(back_ps);
        latest_ps = latest_ps.max(record.time_ps);
        first_ps = first_ps.min(record.time_ps);
    }
    if backwards.requests > 0 {
        records.sort_by_key(|record| record.time_ps);
    }
    for record in records.iter_mut() {
        record.time_ps -= first_ps;
    }
    backwards
}
