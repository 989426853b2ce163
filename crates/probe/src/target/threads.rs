//! Transfers from as many threads as are to be in flight.

use super::{Io, Sample, TargetError};
use lodger_uring::Buffer;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// Runs `ios` in order, `queue_depth` at a time, each with a buffer of its length, unless `stopped`;
/// `buffers` are kept from one batch to the next.
///
/// # Errors
/// The first that `transfer` gives; what was not issued until then is not.
pub(super) fn run(
    ios: &[Io],
    queue_depth: u32,
    buffers: &mut Vec<Buffer>,
    samples: &mut Vec<Sample>,
    stopped: fn() -> bool,
    transfer: impl Fn(&Io, &mut [u8]) -> Result<(), TargetError> + Sync,
) -> Result<(), TargetError> {
    samples.clear();
    samples.resize(ios.len(), Sample::default());
    let longest = ios.iter().map(|io| io.bytes as usize).max().unwrap_or(0);
    let workers = (queue_depth.max(1) as usize).min(ios.len()).max(1);
    while buffers.len() < workers {
        buffers.push(Buffer::new(0, 0));
    }
    for (index, buffer) in buffers.iter_mut().enumerate() {
        buffer.grow(longest, index as u64);
    }
    let transfer = |io: &Io, buffer: &mut Buffer| {
        if stopped() {
            return Err(TargetError::Interrupted);
        }
        transfer(io, &mut buffer.all()[..io.bytes as usize])
    };
    let began = Instant::now();
    if workers == 1 {
        for (io, sample) in ios.iter().zip(samples) {
            let issued = began.elapsed();
            transfer(io, &mut buffers[0])?;
            *sample = Sample::between(issued, began.elapsed());
        }
        return Ok(());
    }
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let failure = Mutex::new(None);
    let done = Mutex::new(samples);
    std::thread::scope(|scope| {
        for buffer in buffers.iter_mut().take(workers) {
            scope.spawn(|| {
                let mut own = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(io) = ios.get(at) else { break };
                    let issued = began.elapsed();
                    if let Err(error) = transfer(io, buffer) {
                        stop.store(true, Ordering::Relaxed);
                        if let Ok(mut failure) = failure.lock() {
                            failure.get_or_insert(error);
                        }
                        break;
                    }
                    own.push((at, Sample::between(issued, began.elapsed())));
                }
                if let Ok(mut done) = done.lock() {
                    for (at, sample) in own {
                        done[at] = sample;
                    }
                }
            });
        }
    });
    match failure.into_inner() {
        Ok(Some(error)) => Err(error),
        _ => Ok(()),
    }
}
