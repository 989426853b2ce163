//! The options of one job: fio's defaults, and what a setting changes.

mod values;

use super::Context;
use super::catalog::{self, Standing};
use super::failures::FailureOptions;
use super::flow::FlowOptions;
use super::ini::Setting;
use super::latency::LatencyOptions;
use super::logs::LogOptions;
use super::offsets::{Between, Direction, READ, Sizes, Spread, TRIM, WRITE};
use super::reaping::BatchOptions;
use super::replay::ReplayOptions;
use super::steady::SteadyOptions;
use super::value::{Extent, KB_BASE};
use super::zones::ZoneOptions;
use crate::{Ends, Place, WorkloadError};
use std::collections::BTreeMap;

/// Picoseconds in a second.
const S: u64 = 1_000_000_000_000;
/// Picoseconds in a microsecond.
const US: u64 = 1_000_000;

/// fio's default `percentile_list`.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// The kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    Trim,
    ReadWrite,
    TrimWrite,
}

/// A range of start delays; the same twice for a fixed one.
pub(super) type Delay = (u64, u64);

/// What a job section says, with `[global]` and fio's defaults below it.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) kb_base: u64,
    pub(super) name: Option<String>,
    pub(super) access: Access,
    pub(super) random: bool,
    /// `rw=randread:8`.
    pub(super) every: u32,
    /// `rw=read:4k`.
    pub(super) skip: i64,
    pub(super) between: Between,
    pub(super) read_percent: u32,
    pub(super) bs: [u64; 3],
    /// From `bsrange` or `bssplit`, which override `bs` wherever they stand, as in fio.
    pub(super) sizes: [Option<Sizes>; 3],
    pub(super) sizes_by_order: bool,
    pub(super) align: [Option<u64>; 3],
    pub(super) iodepth: u64,
    pub(super) iodepth_low: u64,
    pub(super) batches: BatchOptions,
    /// The engine named completes every request before it takes the next.
    pub(super) synchronous: bool,
    /// The engine's name, empty for none.
    pub(super) engine: String,
    pub(super) offload: bool,
    pub(super) numjobs: u64,
    pub(super) size: Option<Extent>,
    /// fio's `nrfiles`.
    pub(super) files: u64,
    pub(super) flow: FlowOptions,
    pub(super) zones: ZoneOptions,
    /// What is looked for while it runs: a rate that keeps still, the depth that keeps a latency.
    pub(super) sought: (SteadyOptions, LatencyOptions),
    pub(super) replay: ReplayOptions,
    /// Writes after which some are read back, and how many; 0 for never and for all.
    pub(super) backlog: (u64, u64),
    /// Smallest and largest size of the file, the same twice for a fixed one.
    pub(super) filesize: Option<(u64, u64)>,
    pub(super) offset: Extent,
    pub(super) offset_align: u64,
    pub(super) offset_increment: Extent,
    pub(super) io_size: Option<Extent>,
    pub(super) number_ios: u64,
    pub(super) loops: u64,
    pub(super) runtime_ps: u64,
    pub(super) time_based: bool,
    pub(super) ramp_ps: u64,
    pub(super) delay_ps: Delay,
    pub(super) spread: Spread,
    pub(super) norandommap: bool,
    /// Every block is drawn once, with or without a map.
    pub(super) lfsr: bool,
    pub(super) randseed: Option<u64>,
    pub(super) randrepeat: bool,
    pub(super) random_percent: [u32; 3],
    pub(super) rate: [u64; 3],
    pub(super) rate_iops: [u64; 3],
    pub(super) poisson: bool,
    pub(super) rate_ignores_think: bool,
    pub(super) think_ps: u64,
    pub(super) think_blocks: Option<u64>,
    pub(super) think_by_issue: bool,
    pub(super) think_every_ps: u64,
    /// `fsync` and `fdatasync`.
    pub(super) flush_every: [u32; 2],
    pub(super) flush_at_end: bool,
    pub(super) sync: bool,
    pub(super) writefua: bool,
    /// `None` where only `verify_pattern` may say.
    pub(super) verify: Option<bool>,
    pub(super) verify_pattern: bool,
    pub(super) do_verify: bool,
    pub(super) stonewall: bool,
    pub(super) wait_for: Option<String>,
    /// Whether others end with it, and which.
    pub(super) exit: (bool, Ends),
    pub(super) failures: FailureOptions,
    pub(super) groups: GroupOptions,
    pub(super) percentiles: Vec<f64>,
    pub(super) logs: LogOptions,
    /// Where each option was set last.
    pub(super) places: BTreeMap<&'static str, Place>,
}

/// Which jobs are told of together.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupOptions {
    /// The job begins another group (`new_group`).
    pub begins: bool,
    /// A group is reported as one (`group_reporting`).
    pub reported: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kb_base: KB_BASE,
            name: None,
            access: Access::Read,
            random: false,
            every: 1,
            skip: 0,
            between: Between::Sequential,
            read_percent: 50,
            bs: [4096; 3],
            sizes: [None, None, None],
            sizes_by_order: false,
            align: [None; 3],
            iodepth: 1,
            iodepth_low: 0,
            batches: BatchOptions::default(),
            synchronous: false,
            engine: String::new(),
            offload: false,
            numjobs: 1,
            size: None,
            files: 1,
            flow: FlowOptions::default(),
            zones: ZoneOptions::default(),
            sought: Default::default(),
            replay: ReplayOptions::default(),
            backlog: (0, 0),
            filesize: None,
            offset: Extent::Bytes(0),
            offset_align: 0,
            offset_increment: Extent::Bytes(0),
            io_size: None,
            number_ios: 0,
            loops: 1,
            runtime_ps: 0,
            time_based: false,
            ramp_ps: 0,
            delay_ps: (0, 0),
            spread: Spread::Uniform,
            norandommap: false,
            lfsr: false,
            randseed: None,
            randrepeat: true,
            random_percent: [100; 3],
            rate: [0; 3],
            rate_iops: [0; 3],
            poisson: false,
            rate_ignores_think: false,
            think_ps: 0,
            think_blocks: None,
            think_by_issue: false,
            think_every_ps: 0,
            flush_every: [0; 2],
            flush_at_end: false,
            sync: false,
            writefua: false,
            verify: None,
            verify_pattern: false,
            do_verify: true,
            stonewall: false,
            wait_for: None,
            exit: (false, Ends::Group),
            failures: FailureOptions::default(),
            groups: GroupOptions::default(),
            percentiles: PERCENTILES.to_vec(),
            logs: LogOptions::default(),
            places: BTreeMap::new(),
        }
    }
}

/// Which drive a job names does not matter, but that it names one. Variables stay as they are.
fn one_file(setting: &Setting) -> Result<(), WorkloadError> {
    // A colon in a name is `\:`.
    if !setting.text().replace("\\:", "").contains(':') {
        return Ok(());
    }
    let error = setting.error(format!("`{}` names several files or drives", setting.key));
    Err(error.hint("a job addresses one range of one drive; name one"))
}

impl Options {
    /// Applies a section's settings in order. Returns `(name, value)` as fio echoes them.
    pub(super) fn apply_all(
        &mut self,
        settings: &[Setting],
        context: &Context<'_>,
    ) -> Result<Vec<(String, String)>, WorkloadError> {
        // The unit of every other number depends on it, so fio reads it first.
        for setting in settings.iter().filter(|setting| setting.key == "kb_base") {
            self.kb_base = match setting.text() {
                "1000" => 1000,
                "1024" => 1024,
                _ => return Err(setting.must("1000 or 1024")),
            };
        }
        let mut echo: Vec<(String, String)> = Vec::new();
        for setting in settings {
            let name = self.apply(setting, context)?;
            echo.retain(|(old, _)| old != name);
            // fio does not echo options without a value.
            if setting.value.is_some() {
                // With what `${NAME}` stood for, as fio has it; nobody misses a name in an option that is passed over.
                let mut filled_in = setting.clone();
                let shown = filled_in.expand(context).map_or(setting, |()| &filled_in);
                echo.push((name.to_owned(), shown.text().to_owned()));
            }
        }
        Ok(echo)
    }

    fn apply(
        &mut self,
        setting: &Setting,
        context: &Context<'_>,
    ) -> Result<&'static str, WorkloadError> {
        let key = setting.key.as_str();
        let Some((name, standing)) = catalog::look_up(key) else {
            if let Some(error) = catalog::of_the_program(key) {
                let place = Some(&setting.place).filter(|place| place.line > 0);
                return Err(match place {
                    Some(place) => error.at(&place.file, place.line),
                    None => error,
                });
            }
            let error = setting.error(format!("unknown option `{key}`"));
            return Err(match catalog::nearest(key) {
                Some(nearest) => error.hint(format!("did you mean `{nearest}`?")),
                None => error.hint("docs/reference/fio-options.md lists the options of jobs"),
            });
        };
        if matches!(standing, Standing::Ignored { .. }) {
            return Ok(name);
        }
        if name == "filename" {
            one_file(setting)?;
            self.places.insert(name, setting.place.clone());
            return Ok(name);
        }
        let mut setting = setting.clone();
        setting.expand(context)?;
        if let Standing::Unsupported { neutral, hint } = standing {
            if neutral.contains(&setting.text()) {
                return Ok(name);
            }
            let message = format!("`{key}` is not supported and would change the result");
            return Err(setting.error(message).hint(hint));
        }
        self.places.insert(name, setting.place.clone());
        let known = self.apply_pattern(name, &setting)?
            || self.apply_amount(name, &setting)?
            || self.apply_order(name, &setting)?
            || self.apply_time(name, &setting)?
            || self.logs.apply(name, &setting)?
            || self.failures.apply(name, &setting)?
            || self.flow.apply(name, &setting)?
            || self.sought.0.apply(name, &setting)?
            || self.sought.1.apply(name, &setting)?
            || self.replay.apply(name, &setting)?
            || self.zones.apply(name, &setting, self.kb_base)?
            || self.apply_rest(name, &setting)?;
        debug_assert!(known, "{name} is honoured by nobody");
        Ok(name)
    }

    /// Whether each request is completed before the next is taken. Without a name, fio's engine is `psync`;
    /// who asks for more depth than that has means another.
    pub(super) fn waits(&self) -> bool {
        self.synchronous || (self.engine.is_empty() && self.iodepth == 1)
    }

    /// Whether the job's thread waits in a flush, as it does with libaio.
    pub(super) fn flush_holds(&self) -> bool {
        self.engine == "libaio"
    }

    /// How long requests of a direction are.
    pub(super) fn sizes_of(&self, direction: Direction) -> Sizes {
        let sizes = self.sizes[direction].clone();
        sizes.unwrap_or(Sizes::Fixed(self.bs[direction]))
    }

    /// Whether it writes at all.
    pub(super) fn writes(&self) -> bool {
        matches!(
            self.access,
            Access::Write | Access::ReadWrite | Access::TrimWrite
        )
    }

    /// As in fio, a pattern alone asks for verification, too.
    pub(super) fn verifies(&self) -> bool {
        self.verify.unwrap_or(self.verify_pattern)
    }

    /// How many blocks of a backlog are read back at once.
    pub(super) fn batch(&self) -> u64 {
        match self.backlog {
            (every, 0) => every,
            (_, batch) => batch,
        }
    }

    /// Directions in use: reads, writes, trims.
    pub(super) fn active(&self) -> [bool; 3] {
        let mut active = [false; 3];
        match self.access {
            Access::Read => active[READ] = true,
            Access::Write => active[WRITE] = true,
            Access::Trim => active[TRIM] = true,
            Access::ReadWrite => {
                active[READ] = self.read_percent > 0;
                active[WRITE] = self.read_percent < 100;
            }
            Access::TrimWrite => (active[WRITE], active[TRIM]) = (true, true),
        }
        active
    }
}
