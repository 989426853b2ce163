//! How many requests a job issues, as far as that can be told beforehand: for progress.

use super::offsets::{Visits, WRITE};
use super::plan::{Choice, Plan};

/// How many requests a job issues, where its options alone decide it.
pub(super) fn requests_expected(plan: &Plan) -> Option<u64> {
    let layout = &plan.layout;
    let mut active = (0..3).filter(|&d| layout.active[d]);
    let bytes = layout.sizes[active.next()?].fixed()?;
    let plain = plan.runtime_ps.is_none()
        && !layout.sizes_by_order
        && !plan.flush_at_end
        && plan.verify.is_none()
        && active.all(|d| layout.sizes[d].fixed() == Some(bytes))
        && !plan.write_flushes
        && (plan.flush_every == [0; 2] || plan.choice == Choice::Always(WRITE))
        && (layout.skip == 0 || layout.random)
        && layout.files == 1
        && layout.strides.is_none()
        && plan.backlog == (0, 0)
        && plan.latency.is_none()
        && !plan.counts_after_ramp()
        // Two positions move through the range: which one ends the pass is chance.
        && (!matches!(plan.choice, Choice::Mix { .. }) || layout.random)
        && !matches!(layout.visits, Visits::Cut { .. })
        // A sequential run may reach the end of the range, which ends the pass.
        && (!layout.random || (layout.every == 1 && layout.random_percent == [100; 3]));
    if !plain {
        return None;
    }
    let mut per_pass = plan.pass_bytes.div_ceil(bytes);
    if layout.visits == Visits::Once {
        per_pass = per_pass.min(layout.span / bytes);
    } else if !layout.random {
        let last_start = (layout.span - 1).min(layout.room - bytes);
        per_pass = per_pass.min(last_start / bytes + 1);
    }
    let mut passes = plan.loops;
    if plan.has_io_size && plan.limit_bytes >= bytes {
        let needed = (plan.limit_bytes - bytes) / per_pass.saturating_mul(bytes) + 1;
        passes = passes.max(needed);
    }
    let all_bytes = plan.limit_bytes.saturating_mul(plan.loops);
    let requests = per_pass
        .saturating_mul(passes)
        .min(all_bytes.div_ceil(bytes))
        .min(plan.requests_max);
    match (plan.choice, plan.flush_every) {
        (Choice::TrimThenWrite, _) => Some(requests.saturating_mul(2)),
        (Choice::TrimAndWrite, _) => None,
        (_, [0, 0]) => Some(requests),
        // Between passes it depends on what ends them.
        _ if passes > 1 || requests > per_pass => None,
        (_, [0, every] | [every, 0]) => {
            // A flush due after the last write is not issued if the bytes are what ends the job.
            let all = requests.saturating_mul(bytes) >= all_bytes || requests == plan.requests_max;
            all.then(|| requests + (requests - 1) / u64::from(every))
        }
        _ => None,
    }
}
