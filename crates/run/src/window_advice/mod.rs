//! Does a byte window pay for a database's commits, and from where on? What `lodger advise` tells of a model of database
//! logging on a drive that has one.
//!
//! The model runs by blocks and through the window: as captured, and over transactions of other sizes and other numbers of
//! clients. Between two sizes of which one pays and the other does not, more runs find the break-even.

mod page;
mod text;

use crate::Error;
use crate::advise::{Advised, Watch};
use crate::config::RunConfig;
use crate::drives::Drive;
use crate::logging::LoggingChoice;
use crate::runner::{self, Observer, Progress};
use crate::workload_file::WorkloadFile;
use lodger_workload::logging::{Commit, clients_text};
use rayon::prelude::*;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that transactions log: from a counter to a page with an image of each of its neighbours.
const SIZES: [u64; 6] = [64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10];
/// Clients.
const CLIENTS: [u32; 4] = [1, 4, 16, 64];
/// Transactions of a run: of LinkBench's a quarter commits, which leaves 5000 commits.
const TRANSACTIONS: u64 = 20_000;
/// It pays where so many more transactions a second are done: less is lost in what the model leaves out.
const PAYS: f64 = 1.05;
/// A break-even is closed in on until its ends are no further apart than this factor.
const CLOSE: f64 = 1.05;

/// One way of committing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side {
    /// Transactions a second.
    pub transactions_per_s: f64,
    /// Mean commit latency, nanoseconds.
    pub commit_mean_ns: f64,
    /// 99th percentile of the commit latency, nanoseconds.
    pub commit_p99_ns: u64,
}

/// Both ways.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// By blocks.
    pub block: Side,
    /// Through the byte window.
    pub ba: Side,
}

impl Pair {
    /// How many times as many transactions the window brings.
    #[must_use]
    pub fn factor(&self) -> f64 {
        self.ba.transactions_per_s / self.block.transactions_per_s.max(f64::MIN_POSITIVE)
    }

    fn pays(&self) -> bool {
        self.factor() >= PAYS
    }
}

/// Transactions of one size, by so many clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Clients.
    pub clients: u32,
    /// Bytes that a transaction logs.
    pub bytes: u64,
    /// What came of it.
    pub pair: Pair,
}

/// Sizes of transactions for which the window pays, of those that were looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// From this size on; `None`: the smallest pays.
    pub from_bytes: Option<u64>,
    /// Up to this size; `None`: the largest pays.
    pub to_bytes: Option<u64>,
}

/// Where the window pays, for a number of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakEven {
    /// Clients.
    pub clients: u32,
    /// Spans that pay, ascending; none: it pays nowhere.
    pub spans: Vec<Span>,
}

/// The advice, and all it rests on.
#[derive(Clone, Debug)]
pub struct WindowAdvice {
    drive: Drive,
    seed: u64,
    workload: String,
    own_clients: u32,
    own: Pair,
    points: Vec<Point>,
    break_even: Vec<BreakEven>,
}

/// Advises on the byte window of the drive of `config` for a model of database logging.
///
/// # Errors
/// If the drive has no byte window, the workload is no such model, or a run fails or is interrupted.
pub fn advise(
    config: &RunConfig,
    source: &WorkloadFile,
    watch: &Watch<'_>,
) -> Result<WindowAdvice, Error> {
    let (workload, _) = source.workload(config.spec(), config.seed)?;
    let Some(clients) = own_clients(&workload) else {
        return Err(Error::input(
            "advice on a byte window needs a model of database logging",
        ));
    };
    let description = format!(
        "database logging: {}, {}",
        workload.jobs[0].name,
        clients_text(clients)
    );
    let mut all_clients = CLIENTS.to_vec();
    all_clients.push(clients);
    all_clients.sort_unstable();
    all_clients.dedup();
    let runs = Runs {
        config,
        source,
        watch,
        done: AtomicU64::new(0),
        // The grid, the workload itself, and three more sizes for each number of clients, about.
        planned: 1 + (all_clients.len() * (SIZES.len() + 3)) as u64,
    };
    let mut wanted: Vec<(u32, Option<u64>)> = vec![(clients, None)];
    wanted.extend(
        all_clients
            .iter()
            .flat_map(|&clients| SIZES.map(|bytes| (clients, Some(bytes)))),
    );
    let pairs = runs.all(&wanted)?;
    let grid: Vec<Point> = points_of(&wanted, &pairs).collect();
    // Each number of clients for itself: none waits for what another's next size takes.
    let points: Vec<Vec<Point>> = all_clients
        .par_iter()
        .map(|&clients| {
            let mut own = grid.clone();
            own.retain(|point| point.clients == clients);
            close_in(&runs, &mut own).map(|()| own)
        })
        .collect::<Result<_, Error>>()?;
    Ok(WindowAdvice {
        drive: config.drive.clone(),
        seed: config.seed,
        workload: description,
        own_clients: clients,
        own: pairs[0],
        break_even: all_clients
            .iter()
            .zip(&points)
            .map(|(&clients, points)| BreakEven {
                clients,
                spans: spans(points.iter()),
            })
            .collect(),
        points: points.concat(),
    })
}

fn own_clients(workload: &lodger_workload::Workload) -> Option<u32> {
    workload.jobs.iter().find_map(|job| match &job.source {
        lodger_workload::Source::Logging(model) => Some(model.settings().clients),
        _ => None,
    })
}

/// Halves what lies between a size that pays and its neighbour that does not, until they are close: points of one number
/// of clients, to which those looked at are added.
fn close_in(runs: &Runs<'_>, points: &mut Vec<Point>) -> Result<(), Error> {
    loop {
        points.sort_by_key(|point| point.bytes);
        let wanted: Vec<(u32, Option<u64>)> = points
            .windows(2)
            .filter(|pair| {
                let apart = pair[1].bytes as f64 / pair[0].bytes as f64;
                pair[0].pair.pays() != pair[1].pair.pays() && apart > CLOSE
            })
            .map(|pair| {
                let middle = (pair[0].bytes as f64 * pair[1].bytes as f64).sqrt();
                (pair[0].clients, Some(middle.round() as u64))
            })
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        points.extend(points_of(&wanted, &runs.all(&wanted)?));
    }
}

/// What came of each size that was asked for.
fn points_of<'p>(
    wanted: &'p [(u32, Option<u64>)],
    pairs: &'p [Pair],
) -> impl Iterator<Item = Point> + 'p {
    let asked = wanted.iter().zip(pairs);
    asked.filter_map(|(&(clients, bytes), &pair)| {
        Some(Point {
            clients,
            bytes: bytes?,
            pair,
        })
    })
}

/// Spans that pay, of points in the order of their sizes.
fn spans<'p>(points: impl Iterator<Item = &'p Point>) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut open: Option<Span> = None;
    let mut before: Option<u64> = None;
    for point in points {
        match (&mut open, point.pair.pays()) {
            (None, true) => {
                open = Some(Span {
                    from_bytes: before.map(|_| point.bytes),
                    to_bytes: None,
                });
            }
            (Some(span), false) => {
                span.to_bytes = before;
                spans.extend(open.take());
            }
            _ => {}
        }
        before = Some(point.bytes);
    }
    spans.extend(open);
    spans
}

/// Runs of the model, told to who watches.
struct Runs<'a> {
    config: &'a RunConfig,
    source: &'a WorkloadFile,
    watch: &'a Watch<'a>,
    done: AtomicU64,
    planned: u64,
}

impl Runs<'_> {
    /// By blocks and through the window, of each number of clients and size; of several errors the first is told.
    fn all(&self, wanted: &[(u32, Option<u64>)]) -> Result<Vec<Pair>, Error> {
        wanted
            .par_iter()
            .map(|&(clients, bytes)| {
                // A break-even is closed in on pair by pair, which are two runs.
                let (block, ba) = rayon::join(
                    || self.one(Commit::Block, clients, bytes),
                    || self.one(Commit::ByteAddressed, clients, bytes),
                );
                self.done.fetch_add(1, Ordering::Relaxed);
                Ok(Pair {
                    block: block?,
                    ba: ba?,
                })
            })
            .collect()
    }

    fn one(&self, commit: Commit, clients: u32, bytes: Option<u64>) -> Result<Side, Error> {
        let source = self.source.clone().choose(LoggingChoice {
            commit: Some(commit),
            clients: Some(clients),
            transactions: Some(TRANSACTIONS),
            transaction_bytes: bytes,
        })?;
        let (workload, _) = source.workload(self.config.spec(), self.config.seed)?;
        let result = runner::run(self.config, workload, &mut Watched(self))?;
        if result.interrupted {
            return Err(Error::interrupted());
        }
        let logging = result.jobs.iter().find_map(|job| job.logging.as_ref());
        let logging =
            logging.ok_or_else(|| Error::failed("a model of database logging reports nothing"))?;
        Ok(Side {
            transactions_per_s: logging.statistics.transactions_per_s(),
            commit_mean_ns: logging.latency.mean_ns(),
            commit_p99_ns: logging.latency.percentile_ns(99.0),
        })
    }
}

struct Watched<'a>(&'a Runs<'a>);

impl Observer for Watched<'_> {
    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        let done = self.0.done.load(Ordering::Relaxed) as f64 / self.0.planned as f64;
        (self.0.watch)(progress, done.min(1.0))
    }
}

impl Advised for WindowAdvice {
    fn text(&self) -> String {
        text::text(self)
    }

    fn markdown(&self) -> String {
        text::markdown(self)
    }

    fn csv(&self) -> String {
        text::csv(self)
    }

    fn page(&self, workload: &str) -> String {
        page::page(self, workload)
    }

    fn is_yes(&self) -> bool {
        self.own.pays()
    }

    fn json(&self) -> Value {
        let side = |side: &Side| {
            json!({
                "transactions_per_s": side.transactions_per_s,
                "commit_mean_ns": side.commit_mean_ns,
                "commit_p99_ns": side.commit_p99_ns,
            })
        };
        let pair = |clients: u32, bytes: Option<u64>, pair: &Pair| {
            json!({
                "clients": clients,
                "transaction_bytes": bytes,
                "block": side(&pair.block),
                "ba": side(&pair.ba),
                "factor": pair.factor(),
                "pays": pair.pays(),
            })
        };
        let points = self.points.iter();
        let points = points.map(|point| pair(point.clients, Some(point.bytes), &point.pair));
        let break_even = self.break_even.iter().map(|one| {
            let spans = one.spans.iter();
            let spans =
                spans.map(|span| json!({"from_bytes": span.from_bytes, "to_bytes": span.to_bytes}));
            json!({"clients": one.clients, "pays": spans.collect::<Vec<_>>()})
        });
        json!({
            "answer": text::answer(self),
            "drive": self.drive.name,
            "seed": self.seed,
            "workload": self.workload,
            "transactions_each": TRANSACTIONS,
            "pays_at_factor": PAYS,
            "as_captured": pair(self.own_clients, None, &self.own),
            "points": points.collect::<Vec<_>>(),
            "break_even": break_even.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(bytes: u64, factor: f64) -> Point {
        let side = |transactions_per_s| Side {
            transactions_per_s,
            commit_mean_ns: 0.0,
            commit_p99_ns: 0,
        };
        let pair = Pair {
            block: side(1000.0),
            ba: side(1000.0 * factor),
        };
        Point {
            clients: 1,
            bytes,
            pair,
        }
    }

    #[test]
    fn spans_begin_and_end_where_it_pays() {
        let of = |factors: &[f64]| {
            let sizes = [1, 2, 4, 8];
            let points: Vec<Point> = sizes
                .iter()
                .zip(factors)
                .map(|(&s, &f)| point(s, f))
                .collect();
            let spans = spans(points.iter()).into_iter();
            spans
                .map(|span| (span.from_bytes, span.to_bytes))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&[1.0, 1.049, 0.5, 1.0]), []);
        assert_eq!(of(&[2.0, 1.05, 1.1, 3.0]), [(None, None)]);
        assert_eq!(of(&[2.0, 2.0, 1.0, 1.0]), [(None, Some(2))]);
        assert_eq!(of(&[1.0, 2.0, 2.0, 1.0]), [(Some(2), Some(4))]);
        assert_eq!(
            of(&[2.0, 1.0, 1.0, 2.0]),
            [(None, Some(1)), (Some(8), None)]
        );
    }
}
