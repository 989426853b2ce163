//! Runs of one command, as many at a time as there are processors. Who waits for them hears of them in their order,
//! whichever ends first.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Which runs are still wanted: those before the first that failed.
#[derive(Debug)]
pub struct Wanted(AtomicUsize);

impl Wanted {
    /// All of `count`.
    #[must_use]
    pub fn all(count: usize) -> Self {
        Wanted(AtomicUsize::new(count))
    }

    /// Whether anybody wants to know how run `index` ends.
    #[must_use]
    pub fn is(&self, index: usize) -> bool {
        index < self.0.load(Ordering::Relaxed)
    }

    /// Run `index` has failed. Those before it go on, so that which failure is told does not depend on which came first.
    fn failed(&self, index: usize) {
        self.0.fetch_min(index, Ordering::Relaxed);
    }
}

/// Does `work` for 0 to `count`, beginning in this order, `workers` at a time, and hands each result to `take` in this
/// order, as soon as those before it are there. Where the system gives fewer threads, fewer are done at a time.
///
/// # Errors
/// The first in this order; `take` has had all before it then, and none after it.
pub fn each<T: Send, E: Send>(
    count: usize,
    workers: NonZeroUsize,
    work: impl Fn(usize, &Wanted) -> Result<T, E> + Sync,
    mut take: impl FnMut(T),
) -> Result<(), E> {
    let wanted = &Wanted::all(count);
    let (next, work) = (&AtomicUsize::new(0), &work);
    let (send, ended) = mpsc::channel();
    let made = thread::scope(|scope| {
        let mut made = 0;
        for _ in 0..workers.get().min(count) {
            let send = send.clone();
            let worker = thread::Builder::new().spawn_scoped(scope, move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if !wanted.is(index) {
                        return;
                    }
                    let result = work(index, wanted);
                    if result.is_err() {
                        wanted.failed(index);
                    }
                    // Nobody listens after an error.
                    if send.send((index, result)).is_err() {
                        return;
                    }
                }
            });
            if worker.is_err() {
                break;
            }
            made += 1;
        }
        drop(send);
        let mut waiting: Vec<Option<Result<T, E>>> = (0..count).map(|_| None).collect();
        let mut taken = 0;
        for (index, result) in ended {
            waiting[index] = Some(result);
            while let Some(result) = waiting.get_mut(taken).and_then(Option::take) {
                take(result?);
                taken += 1;
            }
        }
        Ok(made)
    })?;
    if made == 0 {
        (0..count).try_for_each(|index| work(index, wanted).map(&mut take))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Barrier, Mutex};
    use std::time::{Duration, Instant};

    fn workers(count: usize) -> NonZeroUsize {
        NonZeroUsize::new(count).unwrap()
    }

    /// Waits for `is`, not for ever.
    fn soon(is: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !is() {
            assert!(Instant::now() < end, "waited in vain");
            thread::yield_now();
        }
    }

    #[test]
    fn results_are_taken_in_order_whichever_ends_first() {
        // Each but the last of three waits for the one after it.
        let ended = [const { AtomicUsize::new(0) }; 3];
        let mut taken = Vec::new();
        let done = each(
            3,
            workers(3),
            |index, _| {
                if let Some(next) = ended.get(index + 1) {
                    soon(|| next.load(Ordering::Acquire) == 1);
                }
                ended[index].store(1, Ordering::Release);
                Ok::<_, ()>(index)
            },
            |index| taken.push(index),
        );
        assert_eq!((done, taken), (Ok(()), vec![0, 1, 2]));
    }

    #[test]
    fn as_many_as_are_allowed_go_on_at_a_time() {
        for count in [1, 2, 5] {
            let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            // Nobody gets past it before all are there.
            let all = Barrier::new(count);
            let done = each(
                count * 3,
                workers(count),
                |_, _| {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    all.wait();
                    now.fetch_sub(1, Ordering::SeqCst);
                    Ok::<_, ()>(())
                },
                |()| {},
            );
            assert_eq!((done, most.into_inner()), (Ok(()), count));
        }
    }

    /// The second of five fails at once and the first later: the first's failure is told, the others are not waited for.
    #[test]
    fn the_first_failure_in_order_is_told_and_those_after_it_end() {
        let begun = Mutex::new(Vec::new());
        let mut taken = Vec::new();
        let done = each(
            6,
            workers(4),
            |index, wanted| {
                begun.lock().unwrap().push(index);
                match index {
                    0 => Ok(0),
                    1 => {
                        soon(|| !wanted.is(2));
                        Err(1)
                    }
                    2 => {
                        soon(|| begun.lock().unwrap().contains(&3));
                        Err(2)
                    }
                    // It would go on for ever.
                    _ => {
                        soon(|| !wanted.is(index));
                        Ok(index)
                    }
                }
            },
            |index| taken.push(index),
        );
        assert_eq!((done, taken), (Err(1), vec![0]));
    }

    #[test]
    fn of_nothing_nothing_is_done() {
        let done = each(0, workers(8), |_, _| Err::<(), _>("done"), |()| {});
        assert_eq!(done, Ok(()));
    }
}
