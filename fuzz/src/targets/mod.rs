pub mod command;
pub mod drive;
pub mod fio;
pub mod guest;
pub mod logging;
pub mod nbd;
pub mod nvme;
pub mod seeds;
pub mod trace;

use lodger_core::{Completion, Op, Status};
use lodger_workload::{Next, Workload};
use std::collections::VecDeque;

/// Steps that a workload is followed for.
const STEPS: u32 = 1000;
/// What a request takes on a drive that does nothing.
const LATENCY_PS: u64 = 50_000_000;

/// Runs the first jobs on a drive that only answers, and checks that what they ask for is on the drive.
fn follow(workload: &mut Workload, drive_bytes: u64) {
    for job in workload.jobs.iter_mut().take(3) {
        let (mut now_ps, mut under_way) = (0u64, VecDeque::new());
        let mut arrived = VecDeque::new();
        for _ in 0..STEPS {
            let answer = match job.next(now_ps) {
                Next::Submit(request) => {
                    let end = request.offset_bytes.checked_add(request.length_bytes);
                    let is_inside = end.is_some_and(|end| end <= drive_bytes);
                    assert!(is_inside || request.op == Op::Flush, "{request:?}");
                    under_way.push_back((request, now_ps, job.takes_later(request.op)));
                    continue;
                }
                Next::Reap(completions) => {
                    for completion in arrived.drain(..completions as usize) {
                        job.complete(&completion);
                    }
                    continue;
                }
                Next::At(at_ps) if under_way.is_empty() => {
                    assert!(at_ps > now_ps, "it waits for what has been");
                    now_ps = at_ps;
                    continue;
                }
                // Calls of the byte window need a host.
                Next::Call { .. } | Next::Done => break,
                Next::At(_) | Next::Blocked => under_way.pop_front(),
            };
            let Some((request, submitted_ps, later)) = answer else {
                panic!("it waits for nothing");
            };
            now_ps = now_ps.max(submitted_ps + LATENCY_PS);
            let completion = Completion {
                tag: request.tag,
                op: request.op,
                status: Status::Success,
                submitted_ps,
                completed_ps: now_ps,
            };
            match later {
                true => {
                    arrived.push_back(completion);
                    job.arrived();
                }
                false => job.complete(&completion),
            }
        }
    }
}
