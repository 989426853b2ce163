//! How much host memory is enough for a workload on a drive: what `lodger advise` tells.
//!
//! 1. One run with the host memory the drive gets by default, the yardstick. Its requests, in the order of
//!    submission, also go to `stream`, which learns the hit ratio of every size from that single
//!    pass (`stack` distances; policies other than LRU are simulated at sizes chosen beforehand).
//! 2. Runs at the sizes that matter: none, those that hosts give, and the bends of the `curve`.
//! 3. The smallest size that meets the `goal`, by bisection on runs, guided by the curve
//!    (`search`).
//!
//! Sizes of equal effect share a run: below the drive's minimum, between powers of two where the
//! drive rounds, and above what the workload ever fills.

mod answer;
mod caveats;
mod curve;
mod forms;
mod goal;
mod json;
mod measure;
mod page;
mod parts;
mod place;
mod report;
mod search;
mod shadow;
mod stack;
mod stream;
mod sureness;
#[cfg(test)]
mod tests;
mod text;

pub use goal::{Goal, Slo, parse_within};
pub use measure::Watch;
pub(crate) use text::parse_time_ns;

use crate::Error;
use crate::config::RunConfig;
use crate::drives::Drive;
use crate::hmb::HmbChoice;
use crate::size;
use curve::Curve;
use lodger_core::Precondition;
use lodger_core::host::hmb::LINUX_CAP_BYTES;
use lodger_core::spec::{DriveSpec, Encoding, Tier};
use lodger_workload::{Source, Workload};
use measure::{Run, Tally};
use place::Place;
use search::{Found, Make, Runs};
use stream::{Method, Stream};
use sureness::Again;

const MIB: u64 = 1 << 20;

/// Sizes that hosts give, bytes.
const HOST_SIZES: [u64; 5] = [8 * MIB, 16 * MIB, 32 * MIB, 64 * MIB, 128 * MIB];
/// Sizes right above the answer that are looked at where they may be worse.
const NEXT_ONES: usize = 2;
/// Raspberry Pi OS gives so much, bytes.
const RASPBERRY_PI_BYTES: u64 = 32 * MIB;

/// The advice, and all it rests on.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The drive.
    drive: Drive,
    /// Seed of the runs.
    seed: u64,
    /// What was written before.
    precondition: Precondition,
    /// What the workload was taken for.
    workload: String,
    /// What was asked for.
    goal: Goal,
    /// What was found.
    found: Found,
    /// What another seed says of it, where it was close.
    again: Option<Again>,
    /// The run with what a host gives the drive by default.
    reference: Run,
    /// Hit ratio by size; `None` where the map is not kept in host memory.
    curve: Option<Curve>,
    /// Sizes worth a line, ascending, with the run that stands for each.
    rows: Vec<(u64, Run)>,
    /// Number of simulations made.
    simulations: usize,
    /// How the drive uses host memory.
    place: Place,
    /// The workload is a model of a database's log.
    is_logging: bool,
}

/// Advises on host memory for the drive of `config` (whose own choice of host memory is not used)
/// under the workload that `make` makes.
///
/// # Errors
/// If the drive has no use for host memory, or a run fails or is interrupted.
pub fn advise(
    config: &RunConfig,
    make: &Make<'_>,
    goal: Goal,
    watch: &Watch<'_>,
) -> Result<Advice, Error> {
    let place = place_of(&config.drive)?;
    let config = RunConfig {
        hmb: HmbChoice::Negotiated,
        ..config.clone()
    };
    let mut sizes = HOST_SIZES.to_vec();
    sizes.extend([place.preferred_bytes(), place.yardstick_bytes()]);

    let workload = make(config.seed)?;
    let description = workload.description.clone();
    let is_logging = (workload.jobs.iter()).any(|job| matches!(job.source, Source::Logging(_)));
    let stream = stream_of(&config, &place, &sizes, &workload);
    let tally = Tally::new(watch, 1 + sizes.len());
    // Without any host memory, always asked for, beside the one that decides which others are.
    let (first, none) = rayon::join(
        || measure::measure(&config, workload, place.yardstick_bytes(), stream, &tally),
        || measure::measure(&config, make(config.seed)?, 0, None, &tally),
    );
    let (reference, stream) = first?;
    reference.has_latencies()?;
    let curve =
        stream.map(|s| Curve::new(s.finish(), &place, Stream::method(config.spec()), &sizes));

    if let Some(curve) = &curve {
        sizes.extend(curve.knees.iter().copied());
        sizes.push(curve.useful_bytes);
    }
    sizes.push(0);
    arrange(&mut sizes);
    let mut runs = Runs::new(&config, make, &tally, &place, reference.clone());
    runs.add(none?.0);
    runs.simulate(&sizes)?;
    let found = search::smallest(
        &mut runs,
        &goal,
        curve.as_ref(),
        place.yardstick_bytes(),
        largest_advised(goal, &place),
    )?;
    sizes.extend(sizes_beside(found, goal, &place));
    arrange(&mut sizes);
    runs.simulate(&sizes)?;
    let yardstick = (place.yardstick_bytes(), &reference);
    let again = sureness::look_again(&config, make, &tally, goal, found, &runs, yardstick)?;
    let row = |size: u64| Some((size, runs.get(size)?.clone()));
    Ok(Advice {
        rows: sizes.into_iter().filter_map(row).collect(),
        simulations: runs.all().count() + again.as_ref().map_or(0, Again::count),
        drive: config.drive.clone(),
        seed: config.seed,
        precondition: config.precondition,
        workload: description,
        goal,
        found,
        again,
        reference,
        curve,
        place,
        is_logging,
    })
}

/// Sizes that belong beside what was found.
fn sizes_beside(found: Found, goal: Goal, place: &Place) -> Vec<u64> {
    match found {
        Found::Size {
            enough_bytes,
            below_bytes,
        } => {
            let mut beside = vec![enough_bytes, below_bytes];
            if matches!(goal, Goal::Slo(Slo::Percentile(..))) {
                // Of percentiles the next size may break what this one keeps.
                let above = place.grants(enough_bytes, largest_advised(goal, place));
                beside.extend(above.into_iter().take(NEXT_ONES));
            }
            beside
        }
        // Whether the least that the drive takes is worse than none.
        Found::Off if matches!(goal, Goal::Within(_)) => vec![place.min_bytes()],
        // Whether a promise that is kept without any is kept with some; those that were tried in vain.
        Found::Off | Found::Nothing { .. } => search::between(place, largest_advised(goal, place)),
    }
}

/// Ascending, each once.
fn arrange(sizes: &mut Vec<u64>) {
    sizes.sort_unstable();
    sizes.dedup();
}

/// What sees the requests pass by, where the map is kept in host memory.
fn stream_of(
    config: &RunConfig,
    place: &Place,
    sizes: &[u64],
    workload: &Workload,
) -> Option<Stream> {
    place.map.as_ref()?;
    let spec = config.spec();
    if spec.hpb.is_some() {
        // What comes with its entry asks no memory of the drive: the requests alone do not tell which.
        return None;
    }
    let requests = workload.jobs.iter().map(|job| job.requests_expected).sum();
    let grants = direct_grants(spec, place, sizes);
    let stream = Stream::new(spec, place, config.precondition, &grants, config.seed);
    Some(stream.expecting(requests))
}

/// How the drive uses host memory, if advice on that can be given.
fn place_of(drive: &Drive) -> Result<Place, Error> {
    let spec = &drive.parsed.spec;
    let place = Place::of(spec).ok_or_else(|| no_host_memory(drive))?;
    let mut tiers = spec.roles.map.tiers.iter();
    if tiers.any(|tier| tier.encoding != Encoding::Flat) {
        return Err(compressed_map(drive));
    }
    Ok(place)
}

/// The most that is advised, bytes: latency that is promised may be bought by raising the host's cap.
fn largest_advised(goal: Goal, place: &Place) -> u64 {
    match goal {
        Goal::Slo(_) => place.preferred_bytes(),
        Goal::Within(_) => place.yardstick_bytes(),
    }
}

/// How many pages a memory holds then depends on what is in them: no size can be told from a stream.
fn compressed_map(drive: &Drive) -> Error {
    Error::input(format!(
        "`{}` keeps its map compressed, and advice needs pages of one size",
        drive.name
    ))
    .hint("say --set role.map.encoding=flat, or compare sizes: lodger compare --hmb off,8MiB,32MiB")
}

fn no_host_memory(drive: &Drive) -> Error {
    let spec = &drive.parsed.spec;
    let map = &spec.roles.map;
    if let Some(hpb) = &spec.hpb {
        let message = format!(
            "`{}` ({}) asks for no memory to use as it likes: up to {} of its map are kept by the host's driver (HPB), and \
             what advice weighs are grants to NVMe drives",
            drive.name,
            spec.name,
            size::show(hpb.host_bytes())
        );
        let hint = "compare amounts by `lodger simulate --set hpb.host_cache=SIZE`: what the driver may keep";
        return Error::input(message).hint(hint);
    }
    let why = match map.tiers.last().map(|tier| tier.tier) {
        Some(Tier::Dram) => "it keeps its map in memory of its own",
        Some(Tier::Cxl) => "it keeps its map in memory over CXL, which nobody grants or takes back",
        _ => "it keeps nothing there",
    };
    Error::input(format!(
        "`{}` ({}) has no use for host memory: {why}",
        drive.name, spec.name
    ))
    .hint(
        "`lodger drives list` shows which drives use host memory; `lodger simulate` runs this one",
    )
}

/// Sizes to simulate side by side in the single pass, where stack distances do not apply.
fn direct_grants(spec: &DriveSpec, place: &Place, sizes: &[u64]) -> Vec<u64> {
    if Stream::method(spec) == Method::StackDistances {
        return Vec::new();
    }
    let top = place.preferred_bytes().max(LINUX_CAP_BYTES);
    let grid = place.grants(0, top.min(place.largest_bytes()));
    let mut grants = curve::thinned(grid, curve::DIRECT_MAX);
    grants.extend(sizes.iter().filter(|size| **size <= top));
    grants.push(0);
    grants.sort_unstable();
    // Sizes that hold the same number of units need no cache each.
    grants.dedup_by_key(|grant| place.units(*grant));
    grants
}

/// What an advice says, whatever it is about.
pub trait Advised {
    /// The report for people.
    fn text(&self) -> String;
    /// The report for programs.
    fn json(&self) -> serde_json::Value;
    /// The report as Markdown.
    fn markdown(&self) -> String;
    /// A row for each thing tried, as comma-separated values.
    fn csv(&self) -> String;
    /// The report as a page with curves; the workload is named as the user does.
    fn page(&self, workload: &str) -> String;
    /// Whether it is a yes: some size meets the goal, the window pays.
    fn is_yes(&self) -> bool;
}

impl Advised for Advice {
    fn text(&self) -> String {
        report::text(self)
    }

    fn json(&self) -> serde_json::Value {
        json::value(self)
    }

    fn markdown(&self) -> String {
        forms::markdown(self)
    }

    fn csv(&self) -> String {
        forms::csv(self)
    }

    fn page(&self, workload: &str) -> String {
        page::page(self, workload)
    }

    fn is_yes(&self) -> bool {
        !matches!(self.found, Found::Nothing { .. })
    }
}

impl Advice {
    /// The run that stands for a size.
    fn run(&self, hmb_bytes: u64) -> Option<&Run> {
        let row = self.rows.iter().find(|(size, _)| *size == hmb_bytes);
        row.map(|(_, run)| run)
    }

    /// What is lost at a size against the yardstick.
    fn loss(&self, run: &Run) -> Loss {
        let change = |now: f64, then: f64| if then > 0.0 { now / then - 1.0 } else { 0.0 };
        let reference = &self.reference;
        let p99 = |run: &Run| run.percentile_ns(99.0) as f64;
        Loss {
            rate: -change(run.rate(), reference.rate()),
            mean: change(run.mean_ns(), reference.mean_ns()),
            p99: change(p99(run), p99(reference)),
        }
    }

    /// Whether all requests together decide, where latencies of reads are shown: these are few, or do not miss the goal at some size where all do.
    fn all_decide(&self) -> bool {
        let Goal::Within(share) = self.goal else {
            return false;
        };
        if !self.reference.counts_alone() {
            return true;
        }
        let misses = |run: &Run| run.longer_than(&self.reference) > share;
        self.rows
            .iter()
            .any(|(_, run)| misses(run) && self.loss(run).mean <= share)
    }

    /// Requests come at instants of their own, so the rate is the workload's, not the drive's.
    fn is_open_loop(&self) -> bool {
        self.reference.queue_depth == 0 && !self.is_logging
    }
}

/// What a size costs against the host memory that the drive gets by default, as shares.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Loss {
    /// Fewer requests, or transactions, per second.
    rate: f64,
    /// Higher mean latency.
    mean: f64,
    /// Higher 99th percentile.
    p99: f64,
}
