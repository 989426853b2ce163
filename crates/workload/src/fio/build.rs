//! From a job's options to its clones: everything is resolved and checked here, so that the
//! generator may assume it.

mod range;

use super::Context;
use super::distribution::below;
use super::expected::requests_expected;
use super::flow::{Flow, Shared};
use super::generator::Generator;
use super::ini::Section;
use super::notes;
use super::offsets::{Layout, READ, Sizes, Spread, TRIM, Visits, WRITE};
use super::options::{Access, Options};
use super::pacing::{Pace, Rate};
use super::plan::{Choice, Plan};
use super::reaping::Reaping;
use super::replay;
use super::value::Extent;
use crate::{Job, Source, WorkloadError};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;

/// fio's default `randseed`.
const RANDSEED: u64 = 0x89;
/// Picoseconds in a second.
const S: u128 = 1_000_000_000_000;

/// Numbers jobs, groups and stages through the file.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    jobs: u64,
    group: u32,
    stage: u32,
    /// What the jobs of each `flow_id` share.
    flows: BTreeMap<u64, Arc<Shared>>,
}

/// Builds all clones of one job section.
pub(super) fn clones(
    section: &Section,
    options: &Options,
    numbering: &mut Numbering,
    context: &Context<'_>,
) -> Result<Vec<Job>, WorkloadError> {
    if numbering.jobs > 0 {
        numbering.stage += u32::from(options.stonewall);
        numbering.group += u32::from(options.stonewall || options.groups.begins);
    }
    let builder = Builder {
        section,
        options,
        context,
    };
    builder.check()?;
    let mut jobs = Vec::new();
    for clone in 0..options.numjobs {
        numbering.jobs += 1;
        if numbering.jobs > super::JOBS_MAX as u64 {
            let message = format!("more than {} jobs", super::JOBS_MAX);
            let error = builder.error(&["numjobs"], message);
            return Err(error.hint("give a smaller `numjobs`: all jobs of the file count"));
        }
        let made = match &options.replay.file {
            Some(file) => builder.replayed(file)?,
            None => builder.generated(clone, numbering)?,
        };
        let name = options.name.as_ref().unwrap_or(&section.name);
        jobs.push(Job {
            logs: options.logs.of_job(name, numbering.jobs, options.waits()),
            recorded: None,
            name: name.clone(),
            group: numbering.group,
            stage: numbering.stage,
            after: Vec::new(),
            ends: None,
            ends_in_error: None,
            steady: options.sought.0.steady(),
            group_reporting: options.groups.reported,
            options: Vec::new(),
            global_options: Vec::new(),
            percentiles: options.percentiles.clone(),
            queue_depth: made.depth,
            ramp_ps: made.ramp_ps,
            requests_expected: made.requests_expected,
            note: made.note,
            source: made.source,
        });
    }
    Ok(jobs)
}

/// What a clone asks for.
struct Made {
    depth: u32,
    ramp_ps: u64,
    requests_expected: Option<u64>,
    note: Option<String>,
    source: Source,
}

struct Builder<'a> {
    section: &'a Section,
    options: &'a Options,
    context: &'a Context<'a>,
}

impl Builder<'_> {
    /// An error blamed on the first of these options that was given, or on the section.
    fn error(&self, blame: &[&str], message: impl Into<String>) -> WorkloadError {
        let place = blame.iter().find_map(|name| self.options.places.get(name));
        let place = place.unwrap_or(&self.section.place);
        WorkloadError::new(message).at(&place.file, place.line)
    }

    fn depth(&self) -> u32 {
        match self.options.waits() {
            true => 1,
            false => self.options.iodepth as u32,
        }
    }

    fn replayed(&self, file: &str) -> Result<Made, WorkloadError> {
        let depth = self.depth();
        let (source, requests) =
            replay::source(file, self.section, self.options, self.context, depth)?;
        Ok(Made {
            depth,
            ramp_ps: 0,
            requests_expected: Some(requests),
            note: None,
            source,
        })
    }

    fn generated(&self, clone: u64, numbering: &mut Numbering) -> Result<Made, WorkloadError> {
        let plan = self.plan(clone, numbering.jobs)?;
        let requests_expected = requests_expected(&plan);
        let name = self.options.name.as_ref().unwrap_or(&self.section.name);
        let note = notes::note(self.options, name, &plan.layout, self.context.drive_bytes);
        let (depth, ramp_ps) = match plan.ramp_ps {
            0 => (plan.depth, 0),
            ramp_ps => (plan.depth, plan.delay_ps.saturating_add(ramp_ps)),
        };
        let mut generator = Generator::new(plan);
        let flow = self.options.flow;
        if flow.weight > 0 {
            let shared = numbering.flows.entry(flow.id).or_default();
            generator.set_flow(Flow::new(shared, flow));
        }
        Ok(Made {
            depth,
            ramp_ps,
            requests_expected,
            note,
            source: Source::Fio(Box::new(generator)),
        })
    }

    /// Options that contradict each other.
    fn check(&self) -> Result<(), WorkloadError> {
        let o = self.options;
        if o.sought.1.goal().is_some_and(|goal| goal.window_ps == 0) {
            return Err(self
                .error(
                    &["latency_target"],
                    "`latency_target` needs a `latency_window`",
                )
                .hint("add `latency_window=5s`: depths are judged after so much time"));
        }
        if o.rate.iter().any(|r| *r > 0) && o.rate_iops.iter().any(|r| *r > 0) {
            let message = "`rate` and `rate_iops` exclude each other";
            let error = self.error(&["rate_iops"], message);
            return Err(error.hint("leave one of them out"));
        }
        if o.writefua && !matches!(o.engine.as_str(), "" | "sg" | "io_uring_cmd") {
            let message = format!("`writefua` is not for `ioengine={}`", o.engine);
            let error = self.error(&["writefua"], message);
            return Err(error.hint("use `sync=1`, or `ioengine=io_uring_cmd`"));
        }
        self.check_zones_and_files()?;
        if let Some(name) = o.logs.obstacle() {
            let message = format!("`{name}` is not supported with log files");
            let hint = "leave it out, or `write_bw_log`, `write_iops_log` and `write_lat_log`";
            return Err(self.error(&[name], message).hint(hint));
        }
        if let Spread::ZonedPercent(zones) = &o.spread
            && zones
                .iter()
                .any(|zones| zones.iter().map(|zone| zone.1).sum::<u64>() > 100)
        {
            let message = "the zones of `random_distribution` are larger than 100 %";
            let error = self.error(&["random_distribution"], message);
            return Err(error.hint(
                "behind each `/` stands a zone's share of the range, such as `60/10:40/90`",
            ));
        }
        Ok(())
    }

    /// What goes with `nrfiles` and `zonemode=strided`.
    fn check_zones_and_files(&self) -> Result<(), WorkloadError> {
        let o = self.options;
        if let Some((name, message)) = o.zones.contradiction() {
            let hint = match o.zones.strided {
                true => "add `zonesize=1m`: after so much the job goes on in the next zone",
                false => "add `zonemode=strided`, or leave it out",
            };
            return Err(self.error(&[name], message).hint(hint));
        }
        let directions = o.active().into_iter().filter(|active| *active).count();
        if o.zones.strided && (o.random || o.skip != 0 || directions > 1 || self.files() > 1) {
            let message =
                "`zonemode=strided` is for plain `rw=read`, `rw=write` and `rw=trim` of one file";
            let error = self.error(&["zonemode"], message);
            return Err(error.hint("leave `zonemode` out; `rw=read:64k` leaves holes, too"));
        }
        if self.files() == 1 {
            return Ok(());
        }
        let others = [
            ("offset", o.offset != Extent::Bytes(0)),
            ("offset_increment", o.offset_increment != Extent::Bytes(0)),
            (
                "filesize",
                o.filesize.is_some_and(|(low, high)| low != high),
            ),
            ("rw", o.skip != 0 || o.access == Access::TrimWrite),
        ];
        let other = others.into_iter().find(|(_, set)| *set);
        other.map_or(Ok(()), |(name, _)| {
            let message = format!("`{name}` is not supported with several files (`nrfiles`)");
            let error = self.error(&[name, "nrfiles"], message);
            Err(error.hint("use a job for each file, with `offset` and `size`"))
        })
    }

    /// With a name there is one file, as in fio.
    fn files(&self) -> u64 {
        match self.options.places.contains_key("filename") {
            true => 1,
            false => self.options.files,
        }
    }

    fn plan(&self, clone: u64, number: u64) -> Result<Plan, WorkloadError> {
        let o = self.options;
        let mut rng = self.rng(number);
        let seed = rng.next_u64();
        let file_bytes = self.file_bytes(&mut rng)?;
        let (layout, bytes) = self.layout(clone, file_bytes, seed)?;
        let waits = o.waits();
        let depth = self.depth();
        let low = match o.iodepth_low as u32 {
            0 => depth,
            low => low.min(depth),
        };
        let writes = o.writes();
        let io_size = self.io_size();
        let limit_bytes = match io_size {
            None => bytes,
            Some(Extent::Bytes(bytes)) => bytes,
            Some(Extent::Percent(percent)) => percent_of(layout.span, percent),
        };
        let (delay_low, delay_high) = o.delay_ps;
        Ok(Plan {
            queue: clone as u16,
            depth,
            refill_at: (depth - 1).min(low),
            reaping: Reaping::of(o, depth, low),
            choice: match o.access {
                Access::Read => Choice::Always(READ),
                Access::Write => Choice::Always(WRITE),
                Access::Trim => Choice::Always(TRIM),
                Access::ReadWrite => Choice::Mix {
                    read_percent: o.read_percent,
                },
                Access::TrimWrite if layout.active[WRITE] => Choice::TrimAndWrite,
                Access::TrimWrite => Choice::TrimThenWrite,
            },
            fua: o.sync || o.writefua,
            flush_every: if writes { o.flush_every } else { [0; 2] },
            flush_holds: o.flush_holds(),
            // What Linux does for `O_SYNC` after each write that is waited for.
            write_flushes: o.sync && waits,
            flush_at_end: writes && o.flush_at_end,
            survived: o.failures.survived(),
            verify: (writes && o.verifies() && o.do_verify)
                .then_some(layout.visits != Visits::Any && !o.lfsr),
            pass_bytes: self.pass_bytes(&layout, bytes, limit_bytes),
            limit_bytes,
            has_io_size: io_size.is_some(),
            loops: o.loops,
            requests_max: match o.number_ios {
                0 => u64::MAX,
                // As in fio, which looks at the time only.
                _ if o.time_based && o.runtime_ps > 0 => u64::MAX,
                n => n.saturating_mul(o.loops),
            },
            // Without a runtime it means nothing, as in fio.
            time_based: o.time_based && o.runtime_ps > 0,
            repeat: o.randrepeat && o.randseed.is_none(),
            delay_ps: delay_low + below(&mut rng, delay_high - delay_low + 1),
            ramp_ps: o.ramp_ps,
            runtime_ps: (o.runtime_ps > 0).then_some(o.runtime_ps),
            backlog: (o.backlog.0, o.batch()),
            latency: o.sought.1.goal(),
            pace: self.pace(&layout, rng.next_u64()),
            seed: rng.next_u64(),
            layout,
        })
    }

    /// As in fio, where `filesize` says how large the file is and `size` in bytes how much of it is read or written, a share says
    /// nothing.
    fn io_size(&self) -> Option<Extent> {
        let o = self.options;
        let in_file = o.filesize.is_some() && matches!(o.size, Some(Extent::Bytes(_)));
        (o.io_size).filter(|io_size| !in_file || matches!(io_size, Extent::Bytes(_)))
    }

    /// Jobs draw independent streams. With `randrepeat=0` fio draws a fresh seed for every run;
    /// here a run is always repeatable, and the stream differs from that of `randrepeat=1`.
    fn rng(&self, number: u64) -> Xoshiro256PlusPlus {
        let o = self.options;
        let fresh = !o.randrepeat && o.randseed.is_none();
        let parts = [
            self.context.seed,
            o.randseed.unwrap_or(RANDSEED),
            number,
            u64::from(fresh),
        ];
        let mut seed = 0u64;
        for part in parts {
            seed = (seed ^ part)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .rotate_left(29);
        }
        Xoshiro256PlusPlus::seed_from_u64(seed)
    }

    /// Where and how long requests are, and the bytes of a pass.
    fn layout(
        &self,
        clone: u64,
        file_bytes: u64,
        seed: u64,
    ) -> Result<(Layout, u64), WorkloadError> {
        let o = self.options;
        let active = match o.access {
            // The write repeats the range of the trim. Not so in order with other lengths.
            Access::TrimWrite => [
                false,
                !o.random && o.sizes_of(WRITE) != o.sizes_of(TRIM),
                true,
            ],
            _ => o.active(),
        };
        let mut sizes: [Sizes; 3] = std::array::from_fn(|d| o.sizes_of(d));
        let shortest: [u64; 3] = std::array::from_fn(|d| sizes[d].min());
        let align: [u64; 3] = std::array::from_fn(|d| match o.align[d] {
            Some(align) if o.random => align,
            _ => shortest[d],
        });
        // fio's lengths for sequential and random requests stand where reads and writes do.
        let by_order = o.sizes_by_order;
        if by_order && !o.random {
            sizes = std::array::from_fn(|_| sizes[READ].clone());
        }
        let class = |d: usize| if by_order { WRITE } else { d };
        let min = |d: usize| sizes[class(d)].min();
        let drawn = || (0..3).filter(|&d| active[d]);
        let smallest = drawn().map(min).min().unwrap_or(512);
        let largest = drawn().map(|d| min(d).max(align[d])).max().unwrap_or(512);
        let (base, span, bytes) = self.range(clone, file_bytes, smallest, largest)?;
        let drive_bytes = self.context.drive_bytes;
        if let Spread::ZonedBytes(zones) = &o.spread
            && drawn().any(|d| {
                zones[d].iter().map(|zone| u128::from(zone.1)).sum::<u128>() > u128::from(span)
            })
        {
            let message = format!("the zones of `random_distribution` exceed the job's {span} B");
            let error = self.error(&["random_distribution"], message);
            return Err(error.hint("give smaller zones, or a larger `size`"));
        }
        let mut lengths = drawn().map(|d| sizes[class(d)].fixed());
        let one_length = lengths.next().flatten();
        let one_length = one_length.filter(|_| lengths.all(|length| length == one_length));
        let layout = Layout {
            base,
            span,
            room: drive_bytes - base,
            random: o.random,
            sizes,
            align,
            sizes_by_order: by_order && o.random,
            visits: self.visits(span, shortest, align, one_length)?,
            shortest,
            spread: o.spread.clone(),
            every: o.every,
            between: o.between,
            skip: o.skip,
            random_percent: o.random_percent,
            active,
            files: self.files(),
            strides: o.zones.strides(),
            seed,
        };
        Ok((layout, bytes))
    }

    /// fio's own `norandommap`, which other options set.
    fn norandommap(&self, shortest: [u64; 3], align: [u64; 3]) -> bool {
        let o = self.options;
        o.norandommap || o.spread != Spread::Uniform || align != shortest
    }

    /// How a pass visits every block once. `one_length`: of all requests, if they have the same.
    fn visits(
        &self,
        span: u64,
        shortest: [u64; 3],
        align: [u64; 3],
        one_length: Option<u64>,
    ) -> Result<Visits, WorkloadError> {
        let grain = shortest.into_iter().min().unwrap_or(512);
        let lfsr = self.options.lfsr && self.options.spread == Spread::Uniform;
        if !self.options.random || (!lfsr && self.norandommap(shortest, align)) {
            return Ok(Visits::Any);
        }
        if one_length == Some(grain) && align == shortest {
            return Ok(Visits::Once);
        }
        if lfsr {
            return Ok(Visits::Starts { grain });
        }
        if span / grain > MAP_BLOCKS_MAX {
            let message = format!(
                "requests of several lengths on {span} B need too large a map of what was visited"
            );
            let error = self.error(&["bssplit", "bsrange", "bs", "size"], message);
            return Err(error.hint("add `norandommap`, or use a smaller `size`"));
        }
        Ok(Visits::Cut { grain })
    }

    /// Bytes after which a pass over the range ends.
    fn pass_bytes(&self, layout: &Layout, bytes: u64, limit_bytes: u64) -> u64 {
        let o = self.options;
        if o.waits() {
            // fio counts only what it has queued and not yet completed: such a pass ends with the range.
            u64::MAX
        } else if o.writes() && layout.random && self.norandommap(layout.shortest, layout.align) {
            bytes.max(limit_bytes)
        } else {
            bytes
        }
    }

    fn pace(&self, layout: &Layout, seed: u64) -> Option<Pace> {
        let o = self.options;
        let rates = std::array::from_fn(|d| {
            let bytes = u128::from(layout.shortest[d]);
            match (o.rate[d], o.rate_iops[d]) {
                (0, 0) => Rate::Unlimited,
                (0, iops) if o.poisson => Rate::Poisson((S / u128::from(iops)) as u64),
                // As fio says: of lengths that differ, the shortest is the measure.
                (0, iops) => Rate::BytesPerSecond(iops.saturating_mul(layout.shortest[d])),
                (rate, _) if o.poisson => {
                    let mean_ps = bytes * S / u128::from(rate);
                    Rate::Poisson(u64::try_from(mean_ps).unwrap_or(u64::MAX))
                }
                (rate, _) => Rate::BytesPerSecond(rate),
            }
        });
        let paced = o.think_ps > 0 || rates.iter().any(|rate| *rate != Rate::Unlimited);
        paced.then_some(Pace {
            rates,
            quiesce: !o.offload,
            think_ps: o.think_ps,
            think_blocks: match (o.think_blocks, o.think_every_ps) {
                (None, 0) => Some(1),
                (blocks, _) => blocks,
            },
            think_by_issue: o.think_by_issue,
            think_every_ps: o.think_every_ps,
            rate_ignores_think: o.rate_ignores_think,
            seed,
        })
    }
}

/// Half a gigabyte of bits.
const MAP_BLOCKS_MAX: u64 = 1 << 32;

pub(super) fn percent_of(bytes: u64, percent: u64) -> u64 {
    (u128::from(bytes) * u128::from(percent) / 100) as u64
}
