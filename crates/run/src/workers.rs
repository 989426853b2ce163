//! How many runs go on at a time where many are made for one answer.

use crate::error::Error;
use std::num::NonZeroUsize;

/// Does `work`, whose runs go on `workers` at a time. Elsewhere they take all processors.
///
/// # Errors
/// If the system gives no threads.
pub fn with_workers<T: Send>(
    workers: NonZeroUsize,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Error> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(workers.get());
    let pool = pool.build().map_err(|error| {
        let message = format!("cannot begin {workers} threads: {error}");
        Error::failed(message).hint("allow fewer with `--workers`")
    })?;
    Ok(pool.install(work))
}
