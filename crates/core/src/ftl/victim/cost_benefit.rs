//! Largest (1 - u) / 2u x age (Rosenblum and Ousterhout, SOSP 1991): room won for each page read and
//! written, weighed by how long it will stay.

use super::{Candidate, Choice};

pub(super) fn choose<C: Iterator<Item = Candidate>>(choice: Choice<C>) -> Option<Candidate> {
    let (usable, now) = (f64::from(choice.usable_slots), choice.now);
    let score = |candidate: &Candidate| {
        let share = f64::from(candidate.valid) / usable;
        (1.0 - share) / (2.0 * share + 1e-9) * (now - candidate.closed_at) as f64
    };
    // The older wins a draw, so that the order never depends on the numbers.
    choice.candidates.max_by(|a, b| {
        score(a)
            .total_cmp(&score(b))
            .then(b.closed_at.cmp(&a.closed_at))
    })
}
