//! How many runs go on at a time where many are made for one answer.

use crate::error::Error;
use rayon::ThreadPoolBuilder;
use std::num::NonZeroUsize;

/// No answer has more runs that could go on at a time: threads beyond would only look for work.
const MOST: usize = 64;

/// Does `work`, whose runs go on `workers` at a time, or fewer where the system gives no more threads. Elsewhere they take
/// all processors.
///
/// # Errors
/// If there is no thread to do it on, which the present one is where it does no such work already.
pub fn with_workers<T: Send>(
    workers: NonZeroUsize,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Error> {
    let mut count = workers.get().min(MOST);
    while count > 1 {
        if let Ok(pool) = ThreadPoolBuilder::new().num_threads(count).build() {
            return Ok(pool.install(work));
        }
        count /= 2;
    }
    let alone = ThreadPoolBuilder::new().num_threads(1);
    let pool = alone.use_current_thread().build();
    let pool = pool.map_err(|error| Error::failed(format!("cannot begin to work: {error}")))?;
    Ok(pool.install(work))
}
