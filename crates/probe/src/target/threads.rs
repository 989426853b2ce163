//! Transfers from as many threads as are to be in flight.

use super::{Io, Sample, TargetError};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Alignment that every disk takes, bytes.
pub(super) const ALIGNMENT: usize = 4096;

/// Memory aligned for `O_DIRECT`, filled with bytes that no drive can compress.
#[derive(Debug, Clone)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

impl Buffer {
    fn new(length: usize, seed: u64) -> Self {
        let mut state = seed | 1;
        let bytes: Vec<u8> = (0..length + ALIGNMENT)
            .map(|_| {
                // xorshift64
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u8
            })
            .collect();
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        Buffer { bytes, start }
    }

    fn slice(&mut self, length: usize) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + length]
    }
}

/// Runs `ios` in order, `queue_depth` at a time, each with a buffer of its length; `buffers` are kept
/// from one batch to the next.
///
/// # Errors
/// The first that `transfer` gives; what was not issued until then is not.
pub(super) fn run(
    ios: &[Io],
    queue_depth: u32,
    buffers: &mut Vec<Buffer>,
    samples: &mut Vec<Sample>,
    transfer: impl Fn(&Io, &mut [u8]) -> Result<(), TargetError> + Sync,
) -> Result<(), TargetError> {
    samples.clear();
    samples.resize(ios.len(), Sample::default());
    let longest = ios.iter().map(|io| io.bytes as usize).max().unwrap_or(0);
    let workers = (queue_depth.max(1) as usize).min(ios.len()).max(1);
    if buffers.iter().any(|b| b.bytes.len() < longest + ALIGNMENT) {
        buffers.clear();
    }
    while buffers.len() < workers {
        let seed = 0x9E37_79B9 + buffers.len() as u64;
        buffers.push(Buffer::new(longest.max(ALIGNMENT), seed));
    }
    let began = Instant::now();
    if workers == 1 {
        for (io, sample) in ios.iter().zip(samples) {
            let issued = began.elapsed();
            transfer(io, buffers[0].slice(io.bytes as usize))?;
            *sample = timed(issued, began.elapsed());
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
                    if let Err(error) = transfer(io, buffer.slice(io.bytes as usize)) {
                        stop.store(true, Ordering::Relaxed);
                        if let Ok(mut failure) = failure.lock() {
                            failure.get_or_insert(error);
                        }
                        break;
                    }
                    own.push((at, timed(issued, began.elapsed())));
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

fn timed(issued: Duration, done: Duration) -> Sample {
    Sample {
        issued_ns: issued.as_nanos() as u64,
        latency_ns: (done - issued).as_nanos() as u64,
    }
}
