//! The log files that fio jobs ask for: `write_bw_log`, `write_iops_log` and `write_lat_log`, as fio writes them.
//!
//! A line is time since the job's start (ms), value, direction (0 read, 1 write, 2 trim), bytes, with `log_offset`
//! the offset, and priority. Values are KiB/s (kB/s of each request without `log_avg_msec`, as in fio), requests per
//! second (1 for each request) and ns. With `log_avg_msec` there is a line for each direction in which something
//! completed meanwhile, of no bytes; latencies as their mean. Windows of rates end at whole multiples of it, where fio
//! ends them when its thread for that wakes up.
//!
//! What is left of the last window: latencies have it, rates do not, as in fio. Each latency goes into its window as it
//! completes, and `finalize_logs` of `stat.c` writes the windows that are open at the end (`_add_stat_to_log`). Rates
//! are made by `__add_samples`, for which `helper_thread_main` calls `calc_log_samples`, and which returns early while
//! less than `bw_avg_time`, or `iops_avg_time`, has passed: at the end nothing stands in a window that could be written.
//! fio 3.42 with `log_avg_msec=400` for a second writes rates at 400 and 800 ms, latencies at 1000 ms too. Only where
//! that would leave no line at all, as in a job shorter than a window, which gets an empty file from fio, is there one
//! here.

use lodger_core::time::{MS, NS};
use lodger_core::{Completion, Op, Request, Status};
use lodger_workload::fio::Logs;
use std::io::{self, Write};

/// A file and its number of lines, or the name of one that could not be written, and why.
type Finished<W> = Result<(W, u64), (String, io::Error)>;

/// Lines of one file.
#[derive(Debug)]
struct Lines<W> {
    writer: W,
    /// Name of the file.
    name: String,
    failure: Option<io::Error>,
    count: u64,
    offsets: bool,
    priorities: bool,
}

impl<W: Write> Lines<W> {
    fn new(writer: W, name: String, logs: &Logs) -> Self {
        Lines {
            writer,
            name,
            failure: None,
            count: 0,
            offsets: logs.offsets,
            priorities: logs.priorities,
        }
    }

    fn add(&mut self, ms: u64, value: u64, direction: usize, bytes: u64, offset: u64) {
        if self.failure.is_some() {
            return;
        }
        let offset = match self.offsets {
            true => format!(", {offset}"),
            false => String::new(),
        };
        let priority = if self.priorities { "0x0000" } else { "0" };
        let line = writeln!(
            self.writer,
            "{ms}, {value}, {direction}, {bytes}{offset}, {priority}"
        );
        self.failure = line.err();
        self.count += 1;
    }

    fn finish(mut self) -> Finished<W> {
        let flushed = match self.failure {
            Some(error) => Err(error),
            None => self.writer.flush(),
        };
        match flushed {
            Err(error) => Err((self.name, error)),
            Ok(()) => Ok((self.writer, self.count)),
        }
    }
}

/// What was seen of one direction in a window.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    sum: u128,
    count: u64,
    /// Start of the window, ms.
    since_ms: u64,
}

/// A log of latencies.
#[derive(Debug)]
struct Latencies<W> {
    lines: Lines<W>,
    window_ms: u64,
    windows: [Window; 3],
}

impl<W: Write> Latencies<W> {
    fn add(&mut self, ms: u64, latency_ns: u64, direction: usize, request: &Request) {
        if self.window_ms == 0 {
            let (bytes, offset) = (request.length_bytes, request.offset_bytes);
            return self.lines.add(ms, latency_ns, direction, bytes, offset);
        }
        let window = &mut self.windows[direction];
        window.sum += u128::from(latency_ns);
        window.count += 1;
        if ms.saturating_sub(window.since_ms) >= self.window_ms {
            self.close(ms, direction);
            self.windows[direction].since_ms = ms - ms % self.window_ms;
        }
    }

    fn close(&mut self, ms: u64, direction: usize) {
        let window = &mut self.windows[direction];
        if window.count > 0 {
            let (count, half) = (u128::from(window.count), u128::from(window.count / 2));
            let mean = ((window.sum + half) / count) as u64;
            (window.sum, window.count) = (0, 0);
            self.lines.add(ms, mean, direction, 0, 0);
        }
    }

    fn finish(mut self, ms: u64) -> Finished<W> {
        for direction in 0..3 {
            self.close(ms, direction);
        }
        self.lines.finish()
    }
}

/// A log of rates.
#[derive(Debug)]
struct Rates<W> {
    lines: Lines<W>,
    window_ms: u64,
    /// What completed in each direction since `since_ms`.
    amounts: [u64; 3],
    since_ms: u64,
    /// What counts as one.
    unit: u64,
}

impl<W: Write> Rates<W> {
    /// One request: its rate by itself, and what it adds to a window.
    fn add(&mut self, ms: u64, [alone, amount]: [u64; 2], direction: usize, bytes: u64, at: u64) {
        if self.window_ms == 0 {
            return self.lines.add(ms, alone, direction, bytes, at);
        }
        self.move_on(ms);
        self.amounts[direction] += amount;
    }

    /// Closes windows that ended before `ms`.
    fn move_on(&mut self, ms: u64) {
        let whole = ms.saturating_sub(self.since_ms) / self.window_ms.max(1);
        if self.window_ms > 0 && whole > 0 {
            // All of it fell into the first: nothing completed since.
            self.close(self.since_ms + self.window_ms);
            self.since_ms += self.window_ms * whole;
        }
    }

    fn close(&mut self, ms: u64) {
        let spent_ms = u128::from((ms - self.since_ms).max(1));
        for (direction, amount) in std::mem::take(&mut self.amounts).into_iter().enumerate() {
            if amount > 0 {
                let rate = u128::from(amount) * 1000 / spent_ms / u128::from(self.unit);
                self.lines.add(ms, rate as u64, direction, 0, 0);
            }
        }
    }

    fn finish(mut self, ms: u64) -> Finished<W> {
        if self.lines.count == 0 {
            self.close(ms);
        }
        self.lines.finish()
    }
}

/// Logs of one job.
#[derive(Debug)]
struct JobLogs<W> {
    /// From here on requests count, ps.
    from_ps: u64,
    /// When the last one completed, ms after that.
    last_ms: u64,
    /// The engine hands requests over before it waits for them, so that there is a submission to see.
    submits: bool,
    bandwidth: Option<Rates<W>>,
    iops: Option<Rates<W>>,
    submission: Option<Latencies<W>>,
    completion: Option<Latencies<W>>,
    total: Option<Latencies<W>>,
}

/// Logs of all jobs of a workload.
#[derive(Debug)]
pub struct FioLogs<W> {
    jobs: Vec<Option<JobLogs<W>>>,
    submit_ps: u64,
    has_failed: bool,
}

impl<W: Write> FioLogs<W> {
    /// None at all.
    #[must_use]
    pub const fn none() -> Self {
        FioLogs {
            jobs: Vec::new(),
            submit_ps: 0,
            has_failed: false,
        }
    }

    /// Opens the files that jobs ask for, by `open`. `submit_ps`: what of a latency is the submission (`host.submit_ps`
    /// of the drive's spec).
    ///
    /// # Errors
    /// Those of `open`.
    pub fn create<'a, E>(
        jobs: impl IntoIterator<Item = Option<&'a Logs>>,
        submit_ps: u64,
        mut open: impl FnMut(&str) -> Result<W, E>,
    ) -> Result<Self, E> {
        let mut all = Vec::new();
        for logs in jobs {
            all.push(match logs {
                None => None,
                Some(logs) => Some(JobLogs::create(logs, &mut open)?),
            });
        }
        Ok(FioLogs {
            jobs: all,
            submit_ps,
            has_failed: false,
        })
    }

    /// Whether writing has failed: the run may as well stop.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// A job's stage begins; requests count that are submitted from `counted_from_ps` on.
    pub fn begins(&mut self, job: usize, counted_from_ps: u64) {
        if let Some(Some(logs)) = self.jobs.get_mut(job) {
            logs.from_ps = counted_from_ps;
        }
    }

    /// Adds what has completed.
    #[inline]
    pub fn add(&mut self, job: usize, request: &Request, completion: &Completion) {
        if let Some(Some(logs)) = self.jobs.get_mut(job) {
            logs.add(request, completion, self.submit_ps);
            self.has_failed |= logs.has_failed();
        }
    }

    /// The files, with everything handed on to them, and whether each job has written anything.
    ///
    /// # Errors
    /// If a line could not be written: the file's name, and why.
    pub fn finish(self) -> Result<(Vec<W>, Vec<bool>), (String, io::Error)> {
        let (mut files, mut written) = (Vec::new(), Vec::new());
        for logs in self.jobs {
            let Some(logs) = logs else {
                written.push(true);
                continue;
            };
            let (last_ms, mut lines) = (logs.last_ms, 0);
            let rates = [logs.bandwidth, logs.iops].into_iter().flatten();
            let latencies = [logs.submission, logs.completion, logs.total];
            let rates = rates.map(|log| log.finish(last_ms));
            let latencies = latencies.into_iter().flatten();
            for finished in rates.chain(latencies.map(|log| log.finish(last_ms))) {
                let (file, count) = finished?;
                lines += count;
                files.push(file);
            }
            written.push(lines > 0);
        }
        Ok((files, written))
    }
}

impl<W: Write> JobLogs<W> {
    fn create<E>(logs: &Logs, open: &mut impl FnMut(&str) -> Result<W, E>) -> Result<Self, E> {
        let mut file = |name: &Option<String>, kind: &str| match name {
            None => Ok(None),
            Some(name) => {
                let name = format!("{name}_{kind}.{}.log", logs.number);
                let writer = open(&name)?;
                Ok(Some(Lines::new(writer, name, logs)))
            }
        };
        let window_ms = logs.window_ms;
        let rates = |lines, unit| Rates {
            lines,
            window_ms,
            amounts: [0; 3],
            since_ms: 0,
            unit,
        };
        let latencies = |lines| Latencies {
            lines,
            window_ms,
            windows: [Window::default(); 3],
        };
        Ok(JobLogs {
            from_ps: 0,
            last_ms: 0,
            submits: !logs.waits,
            bandwidth: file(&logs.bandwidth, "bw")?.map(|lines| rates(lines, 1024)),
            iops: file(&logs.iops, "iops")?.map(|lines| rates(lines, 1)),
            submission: file(&logs.latency, "slat")?.map(latencies),
            completion: file(&logs.latency, "clat")?.map(latencies),
            total: file(&logs.latency, "lat")?.map(latencies),
        })
    }

    fn add(&mut self, request: &Request, completion: &Completion, submit_ps: u64) {
        let direction = match completion.op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Trim => 2,
            // fio logs none.
            Op::Flush => return,
        };
        if completion.submitted_ps < self.from_ps || completion.status != Status::Success {
            return;
        }
        let ms = (completion.completed_ps - self.from_ps) / MS;
        self.last_ms = ms;
        let total_ps = completion.completed_ps - completion.submitted_ps;
        let completion_ns = total_ps.saturating_sub(submit_ps) / NS;
        if let Some(log) = &mut self.completion {
            log.add(ms, completion_ns, direction, request);
        }
        if let Some(log) = &mut self.total {
            log.add(ms, total_ps / NS, direction, request);
        }
        if let (Some(log), true) = (&mut self.submission, self.submits) {
            log.add(ms, submit_ps / NS, direction, request);
        }
        let (bytes, offset) = (request.length_bytes, request.offset_bytes);
        if let Some(log) = &mut self.bandwidth {
            let rate = u128::from(bytes) * 1_000_000 / u128::from(completion_ns.max(1));
            log.add(ms, [rate as u64, bytes], direction, bytes, offset);
        }
        if let Some(log) = &mut self.iops {
            log.add(ms, [1, 1], direction, bytes, offset);
        }
    }

    fn has_failed(&self) -> bool {
        let rates = [&self.bandwidth, &self.iops].into_iter().flatten();
        let latencies = [&self.submission, &self.completion, &self.total];
        let mut latencies = latencies.into_iter().flatten();
        rates
            .map(|log| &log.lines)
            .any(|lines| lines.failure.is_some())
            || latencies.any(|log| log.lines.failure.is_some())
    }
}
