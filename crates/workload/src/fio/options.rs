//! The options of one job: fio's defaults, and what a setting changes.

use super::Context;
use super::catalog::{self, Standing};
use super::ini::Setting;
use super::lists;
use super::logs::LogOptions;
use super::offsets::{Between, Direction, READ, Sizes, Spread, TRIM, WRITE};
use super::value::{self, Extent, KB_BASE};
use crate::{Place, WorkloadError};
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
    pub(super) batch_complete_min: u64,
    /// The engine named completes every request before it takes the next.
    pub(super) synchronous: bool,
    /// The engine's name, empty for none.
    pub(super) engine: String,
    pub(super) offload: bool,
    pub(super) numjobs: u64,
    pub(super) size: Option<Extent>,
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
    pub(super) fsync: u32,
    pub(super) fdatasync: u32,
    pub(super) flush_at_end: bool,
    pub(super) sync: bool,
    pub(super) writefua: bool,
    /// `None` where only `verify_pattern` may say.
    pub(super) verify: Option<bool>,
    pub(super) verify_pattern: bool,
    pub(super) do_verify: bool,
    pub(super) stonewall: bool,
    pub(super) new_group: bool,
    pub(super) group_reporting: bool,
    pub(super) percentiles: Vec<f64>,
    pub(super) logs: LogOptions,
    /// Where each option was set last.
    pub(super) places: BTreeMap<&'static str, Place>,
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
            batch_complete_min: 1,
            synchronous: false,
            engine: String::new(),
            offload: false,
            numjobs: 1,
            size: None,
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
            fsync: 0,
            fdatasync: 0,
            flush_at_end: false,
            sync: false,
            writefua: false,
            verify: None,
            verify_pattern: false,
            do_verify: true,
            stonewall: false,
            new_group: false,
            group_reporting: false,
            percentiles: PERCENTILES.to_vec(),
            logs: LogOptions::default(),
            places: BTreeMap::new(),
        }
    }
}

/// Engines that complete every request before they take the next.
const SYNCHRONOUS: &[&str] = &[
    "sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice",
];
/// Values of `verify`. What is compared does not matter: the data on a simulated drive is right.
const VERIFY: &[&str] = &[
    "0",
    "md5",
    "crc64",
    "crc32",
    "crc32c-intel",
    "crc32c",
    "crc16",
    "crc7",
    "sha1",
    "sha256",
    "sha512",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "xxhash",
    "meta",
    "pattern",
    "pattern_hdr",
    "null",
];
/// Engines that do something else than block I/O.
const NOT_BLOCK: &[&str] = &[
    "cpuio",
    "dircreate",
    "dirdelete",
    "dirstat",
    "exec",
    "filecreate",
    "filedelete",
    "filestat",
    "fileoperations",
    "http",
    "net",
    "netsplice",
    "noop",
    "rdma",
    "ftruncate",
];

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
                echo.push((name.to_owned(), setting.text().to_owned()));
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
            let error = setting.error(format!("unknown option `{key}`"));
            return Err(match catalog::nearest(key) {
                Some(nearest) => error.hint(format!("did you mean `{nearest}`?")),
                None => error,
            });
        };
        if matches!(standing, Standing::Ignored { .. }) {
            return Ok(name);
        }
        if name == "filename" {
            one_file(setting)?;
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
            || self.apply_rest(name, &setting)?;
        debug_assert!(known, "{name} is honoured by nobody");
        Ok(name)
    }

    /// Direction and block sizes.
    fn apply_pattern(&mut self, name: &str, s: &Setting) -> Result<bool, WorkloadError> {
        let kb_base = self.kb_base;
        match name {
            "rw" => self.set_rw(s)?,
            "rw_sequencer" => {
                self.between = match s.text() {
                    "sequential" => Between::Sequential,
                    "identical" => Between::Identical,
                    _ => return Err(s.must("`sequential` or `identical`")),
                }
            }
            "rwmixread" => self.read_percent = s.whole(0..=100)? as u32,
            "rwmixwrite" => self.read_percent = 100 - s.whole(0..=100)? as u32,
            "bs" => self.bs = s.per_direction(self.bs, |t| s.block_bytes(t, kb_base))?,
            "blockalign" => {
                self.align =
                    s.per_direction(self.align, |t| s.block_bytes(t, kb_base).map(Some))?;
            }
            "bsrange" => {
                let range = |t: &str| lists::range(s, t, kb_base).map(Some);
                self.sizes = s.per_direction(self.sizes.clone(), range)?;
            }
            "bssplit" => {
                let split = |t: &str| lists::split(s, t, kb_base).map(Some);
                self.sizes = s.per_direction(self.sizes.clone(), split)?;
            }
            "bs_is_seq_rand" => self.sizes_by_order = s.flag()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_rw(&mut self, s: &Setting) -> Result<(), WorkloadError> {
        let (kind, postfix) = match s.text().split_once(':') {
            Some((kind, postfix)) => (kind, Some(postfix)),
            None => (s.text(), None),
        };
        (self.random, self.access) = match kind {
            "read" => (false, Access::Read),
            "write" => (false, Access::Write),
            "trim" => (false, Access::Trim),
            "rw" | "readwrite" => (false, Access::ReadWrite),
            "trimwrite" => (false, Access::TrimWrite),
            "randread" => (true, Access::Read),
            "randwrite" => (true, Access::Write),
            "randtrim" => (true, Access::Trim),
            "randrw" => (true, Access::ReadWrite),
            "randtrimwrite" => (true, Access::TrimWrite),
            _ => {
                return Err(s.must(
                    "read, write, trim, rw, trimwrite, randread, randwrite, randtrim, randrw or \
                     randtrimwrite",
                ));
            }
        };
        (self.every, self.skip) = (1, 0);
        let Some(postfix) = postfix else {
            return Ok(());
        };
        if self.random {
            let every = value::bytes(postfix, self.kb_base).and_then(|n| u32::try_from(n).ok());
            let every = every.filter(|n| *n > 0);
            self.every = every.ok_or_else(|| s.must("followed by a number of requests"))?;
            return Ok(());
        }
        let (negative, digits) = match postfix.trim().strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, postfix),
        };
        let skip = value::bytes(digits, self.kb_base).and_then(|n| i64::try_from(n).ok());
        let skip = skip.filter(|n| n % 512 == 0);
        let skip = skip.ok_or_else(|| s.must("followed by a multiple of 512 B"))?;
        self.skip = if negative { -skip } else { skip };
        Ok(())
    }

    /// How much, and where.
    fn apply_amount(&mut self, name: &str, s: &Setting) -> Result<bool, WorkloadError> {
        let some = |extent| match extent {
            // As in fio, 0 is the same as not given.
            Extent::Bytes(0) => None,
            extent => Some(extent),
        };
        match name {
            "size" => self.size = some(s.extent(self.kb_base)?),
            "io_size" => self.io_size = some(s.extent(self.kb_base)?),
            "offset" => self.offset = s.extent(self.kb_base)?,
            "offset_increment" => self.offset_increment = s.extent(self.kb_base)?,
            "offset_align" => self.offset_align = s.block_bytes(s.text(), self.kb_base)?,
            "number_ios" => self.number_ios = s.bytes(self.kb_base)?,
            "loops" => self.loops = s.whole(0..=u64::from(u32::MAX))?.max(1),
            "numjobs" => self.numjobs = s.whole(1..=super::JOBS_MAX as u64)?,
            "iodepth" => self.iodepth = s.whole(1..=65535)?,
            "iodepth_low" => self.iodepth_low = s.whole(0..=65535)?,
            "iodepth_batch_complete_min" => self.batch_complete_min = s.whole(0..=65535)?,
            // The largest number reaped at once: reaping takes no simulated time.
            "iodepth_batch_complete_max" => {
                s.whole(0..=65535)?;
            }
            "io_submit_mode" => {
                self.offload = match s.text() {
                    "inline" => false,
                    "offload" => true,
                    _ => return Err(s.must("`inline` or `offload`")),
                }
            }
            "ioengine" => {
                let engine = s.text().split(':').next().unwrap_or("");
                if NOT_BLOCK.contains(&engine) {
                    let error = s.error(format!("`{}={engine}` does no block I/O", s.key));
                    return Err(error.hint("leave the job out"));
                }
                self.synchronous = SYNCHRONOUS.contains(&engine);
                engine.clone_into(&mut self.engine);
            }
            "fsync" => self.fsync = s.whole(0..=u64::from(u32::MAX))? as u32,
            "fdatasync" => self.fdatasync = s.whole(0..=u64::from(u32::MAX))? as u32,
            "end_fsync" | "fsync_on_close" => self.flush_at_end = s.flag()?,
            "sync" => {
                self.sync = match s.text() {
                    "0" | "none" => false,
                    "" | "1" | "sync" | "dsync" => true,
                    _ => return Err(s.must("`none`, `sync` or `dsync`")),
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Random order.
    fn apply_order(&mut self, name: &str, s: &Setting) -> Result<bool, WorkloadError> {
        match name {
            "random_distribution" => self.spread = lists::spread(s, self.kb_base)?,
            "norandommap" => self.norandommap = s.flag()?,
            "random_generator" => {
                self.lfsr = match s.text() {
                    "tausworthe" | "tausworthe64" => false,
                    "lfsr" => true,
                    _ => return Err(s.must("`tausworthe`, `tausworthe64` or `lfsr`")),
                }
            }
            "randseed" => self.randseed = Some(s.bytes(self.kb_base)?),
            "randrepeat" => self.randrepeat = s.flag()?,
            "percentage_random" => {
                let percent = |t: &str| {
                    let percent = value::whole(t).filter(|p| *p <= 100);
                    let percent = percent.ok_or_else(|| s.must("between 0 and 100"));
                    percent.map(|p| p as u32)
                };
                self.random_percent = s.per_direction(self.random_percent, percent)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Times and rates.
    fn apply_time(&mut self, name: &str, s: &Setting) -> Result<bool, WorkloadError> {
        match name {
            "runtime" => self.runtime_ps = s.time_ps(S)?,
            "time_based" => self.time_based = s.flag()?,
            "ramp_time" => self.ramp_ps = s.time_ps(S)?,
            "startdelay" => {
                let must = || s.must("a time such as `10s`, or a range such as `5s-10s`");
                let (low, high) = s.text().split_once('-').unwrap_or((s.text(), s.text()));
                let low = value::time_ps(low, S).ok_or_else(must)?;
                let high = value::time_ps(high, S).ok_or_else(must)?;
                if low > high {
                    return Err(must());
                }
                self.delay_ps = (low, high);
            }
            "thinktime" => self.think_ps = s.time_ps(US)?,
            // Spinning or sleeping is the same to the drive.
            "thinktime_spin" => {
                s.time_ps(US)?;
            }
            "thinktime_blocks" => self.think_blocks = Some(s.whole(1..=u64::from(u32::MAX))?),
            "thinktime_blocks_type" => {
                self.think_by_issue = match s.text() {
                    "complete" => false,
                    "issue" => true,
                    _ => return Err(s.must("`complete` or `issue`")),
                }
            }
            "thinktime_iotime" => self.think_every_ps = s.time_ps(S)?,
            "rate" => {
                let kb_base = self.kb_base;
                let rate = |t: &str| {
                    let rate = value::bytes(t, kb_base);
                    rate.ok_or_else(|| s.must("bytes per second, such as `64k` or `10m`"))
                };
                self.rate = s.per_direction(self.rate, rate)?;
            }
            "rate_iops" => {
                let kb_base = self.kb_base;
                let rate = |t: &str| {
                    let rate = value::bytes(t, kb_base).filter(|r| *r <= u64::from(u32::MAX));
                    rate.ok_or_else(|| s.must("requests per second, such as `500` or `10k`"))
                };
                self.rate_iops = s.per_direction(self.rate_iops, rate)?;
            }
            "rate_process" => {
                self.poisson = match s.text() {
                    "linear" => false,
                    "poisson" => true,
                    _ => return Err(s.must("`linear` or `poisson`")),
                }
            }
            "rate_ignore_thinktime" => self.rate_ignores_think = s.flag()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Groups and reports.
    fn apply_rest(&mut self, name: &str, s: &Setting) -> Result<bool, WorkloadError> {
        match name {
            "name" => self.name = Some(s.text().to_owned()),
            "stonewall" => self.stonewall = s.flag()?,
            "new_group" => self.new_group = s.flag()?,
            "group_reporting" => self.group_reporting = s.flag()?,
            "percentile_list" => self.percentiles = lists::percentiles(s)?,
            "writefua" => self.writefua = s.flag()?,
            "do_verify" => self.do_verify = s.flag()?,
            "verify" => {
                if !VERIFY.contains(&s.text()) {
                    return Err(s.must("a way to verify that fio knows, such as `crc32c`"));
                }
                self.verify = Some(s.text() != "0");
            }
            "verify_pattern" => {
                if s.text().is_empty() {
                    return Err(s.must("a number, a string in quotes or `%o`"));
                }
                self.verify_pattern = true;
            }
            // Nothing caches in front of a simulated drive: all I/O is direct. The report looks at
            // the others itself.
            "direct" | "buffered" | "clat_percentiles" | "lat_percentiles" | "slat_percentiles" => {
                s.flag()?;
            }
            // Read before all others.
            "kb_base" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether each request is completed before the next is taken. Without a name, fio's engine is `psync`;
    /// who asks for more depth than that has means another.
    pub(super) fn waits(&self) -> bool {
        self.synchronous || (self.engine.is_empty() && self.iodepth == 1)
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
