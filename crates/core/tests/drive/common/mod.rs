//! The kit of the drive's tests: one kind of contents, one list of drives, one hostile host memory, naive
//! drives to compare with, and a closed loop.
#![allow(dead_code, unused_imports)]

pub mod contents;
pub mod drives;
pub mod durable;
pub mod hostile;
pub mod hpb;
pub mod kept;
pub mod mixed;
pub mod naive;
pub mod small;
pub mod window;

pub use drives::{DRIVES, VARIANTS, drive};
use lodger_core::Host;
use lodger_core::device::{Contents, HostMemory};
use lodger_core::rng::Rng;
use lodger_core::{Completion, Op, Request};

/// A request of 4 KiB pages.
pub fn pages(op: Op, lpn: u64, count: u64) -> Request {
    Request {
        tag: 0,
        queue: 0,
        op,
        fua: false,
        offset_bytes: lpn * 4096,
        length_bytes: count * 4096,
    }
}

/// Runs until the drive has nothing left to do; returns the completions.
pub fn settle<C: Contents, M: HostMemory>(host: &mut Host<C, M>) -> Vec<Completion> {
    let mut done = Vec::new();
    while let Some(at) = host.next_time() {
        host.advance(at, &mut done);
    }
    done
}

/// Latency of one request on an idle drive, picoseconds.
pub fn latency<C: Contents, M: HostMemory>(host: &mut Host<C, M>, request: Request) -> u64 {
    host.submit(request);
    let mut done = Vec::new();
    while done.is_empty() {
        let at = host.next_time().expect("every request completes");
        host.advance(at, &mut done);
    }
    done[0].completed_ps - done[0].submitted_ps
}

/// Keeps `depth` requests in flight until `count` have completed; returns the simulated seconds
/// from the first submission to the last completion.
pub fn closed_loop<C: Contents, M: HostMemory>(
    host: &mut Host<C, M>,
    depth: u32,
    count: u64,
    mut next: impl FnMut(&mut Rng) -> Request,
) -> f64 {
    // Another stream in every call: repeating one would not be random.
    let mut rng = Rng::new(host.now_ps() ^ 42);
    let start = host.now_ps();
    let mut issued = 0;
    let mut completed = 0;
    let mut done = Vec::new();
    while issued < count.min(u64::from(depth)) {
        host.submit(next(&mut rng));
        issued += 1;
    }
    while completed < count {
        host.advance_to_completion(u64::MAX, &mut done);
        assert!(
            !done.is_empty(),
            "the drive has stopped: {}",
            host.drive.debug_state()
        );
        for _ in done.drain(..) {
            completed += 1;
            if issued < count {
                host.submit(next(&mut rng));
                issued += 1;
            }
        }
    }
    (host.now_ps() - start) as f64 / 1e12
}

/// Random reads of 4 KiB within the first `span_bytes`; returns IOPS after a warm-up.
pub fn random_read_iops(host: &mut Host, depth: u32, span_bytes: u64, count: u64) -> f64 {
    let slots = (span_bytes / 4096) as u32;
    let mut read = |rng: &mut Rng| pages(Op::Read, u64::from(rng.below(slots)), 1);
    closed_loop(host, depth, count, &mut read);
    count as f64 / closed_loop(host, depth, count, &mut read)
}
