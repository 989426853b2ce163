//! What each option's value does to a job.

use super::{Access, Options, S, US};
use crate::fio::ini::Setting;
use crate::fio::offsets::Between;
use crate::fio::value::{self, Extent};
use crate::fio::{JOBS_MAX, lists};
use crate::near::nearest;
use crate::{Ends, WorkloadError};

/// Engines that complete every request before they take the next.
const SYNCHRONOUS: &[&str] = &[
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "mmap",
    "splice",
    "libpmem",
    "dev-dax",
    "pmemblk",
    "mtd",
    "libzbc",
    "libhdfs",
    "gfapi",
    "ime_psync",
    "ime_psyncv",
];
/// Engines with which `iodepth` requests are in flight. A device has no use for what tells them apart.
const ASYNCHRONOUS: &[&str] = &[
    "libaio",
    "io_uring",
    "io_uring_cmd",
    "posixaio",
    "solarisaio",
    "windowsaio",
    "guasi",
    "sg",
    "nbd",
    "rbd",
    "rados",
    "xnvme",
    "spdk",
    "libblkio",
    "ime_aio",
    "gfapi_async",
    "libiscsi",
    "libcufile",
    "cpp_null",
    "nfs",
    "dfs",
    "external",
    "null",
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
    "e4defrag",
    "falloc",
    "librpma_apm_client",
    "librpma_apm_server",
    "librpma_gpspm_client",
    "librpma_gpspm_server",
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

/// fio's `filesize`: one, or a range of which each file has one; 0 is none.
fn file_size(s: &Setting, kb_base: u64) -> Result<Option<(u64, u64)>, WorkloadError> {
    let (low, high) = s.text().split_once('-').unwrap_or((s.text(), s.text()));
    let sizes = value::bytes(low, kb_base).zip(value::bytes(high, kb_base));
    match sizes {
        Some((0, 0)) => Ok(None),
        Some((low, high)) if 0 < low && low <= high => Ok(Some((low, high))),
        _ => Err(s.must("a size such as `10g`, or a range such as `1g-10g`")),
    }
}

fn waitee(s: &Setting) -> Result<String, WorkloadError> {
    match s.text() {
        "" => Err(s.must("the name of a job")),
        name => Ok(name.to_owned()),
    }
}

impl Options {
    /// Direction and block sizes.
    pub(super) fn apply_pattern(&mut self, name: &str, s: &Setting) -> Result<bool, WorkloadError> {
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
    pub(super) fn apply_amount(&mut self, name: &str, s: &Setting) -> Result<bool, WorkloadError> {
        let some = |extent| match extent {
            // As in fio, 0 is the same as not given.
            Extent::Bytes(0) => None,
            extent => Some(extent),
        };
        match name {
            "size" => self.size = some(s.extent(self.kb_base)?),
            "nrfiles" => self.files = s.whole(1..=65_536)?,
            "filesize" => self.filesize = file_size(s, self.kb_base)?,
            "io_size" => self.io_size = some(s.extent(self.kb_base)?),
            "offset" => self.offset = s.extent(self.kb_base)?,
            "offset_increment" => self.offset_increment = s.extent(self.kb_base)?,
            "offset_align" => self.offset_align = s.block_bytes(s.text(), self.kb_base)?,
            "number_ios" => self.number_ios = s.bytes(self.kb_base)?,
            "loops" => self.loops = s.whole(0..=u64::from(u32::MAX))?.max(1),
            "numjobs" => self.numjobs = s.whole(1..=JOBS_MAX as u64)?,
            "iodepth" => self.iodepth = s.whole(1..=65535)?,
            "iodepth_low" => self.iodepth_low = s.whole(0..=65535)?,
            "iodepth_batch_complete_min" => self.batches.least = s.whole(0..=65535)?,
            "iodepth_batch_complete_max" => self.batches.most = s.whole(0..=65535)?,
            "iodepth_batch" => self.batches.submit = s.whole(0..=65535)?,
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
                if !self.synchronous && !ASYNCHRONOUS.contains(&engine) {
                    let error = s.error(format!("`{}={engine}` is no engine of fio's", s.key));
                    let all = SYNCHRONOUS.iter().chain(ASYNCHRONOUS).copied();
                    return Err(error.hint(match nearest(engine, all) {
                        Some(known) => format!("did you mean `{known}`?"),
                        None => "with `psync` one request is in flight, with `libaio` as many as `iodepth` says".to_owned(),
                    }));
                }
                engine.clone_into(&mut self.engine);
            }
            "fsync" => self.flush_every[0] = s.whole(0..=u64::from(u32::MAX))? as u32,
            "fdatasync" => self.flush_every[1] = s.whole(0..=u64::from(u32::MAX))? as u32,
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
    pub(super) fn apply_order(&mut self, name: &str, s: &Setting) -> Result<bool, WorkloadError> {
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
                    let percent = value::percent(t);
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
    pub(super) fn apply_time(&mut self, name: &str, s: &Setting) -> Result<bool, WorkloadError> {
        match name {
            "runtime" => self.runtime_ps = s.time_ps(S)?,
            "time_based" => self.time_based = s.flag()?,
            "ramp_time" => self.ramp_ps = s.time_ps(S)?,
            "startdelay" => {
                let (low, high) = s.text().split_once('-').unwrap_or((s.text(), s.text()));
                let is_too_long = [low, high].iter().any(|text| value::is_too_long(text, S));
                let must = || match is_too_long {
                    true => s.must(value::TIME_MAX),
                    false => s.must("a time such as `10s`, or a range such as `5s-10s`"),
                };
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
    pub(super) fn apply_rest(&mut self, name: &str, s: &Setting) -> Result<bool, WorkloadError> {
        match name {
            "name" => self.name = Some(s.text().to_owned()),
            "stonewall" => self.stonewall = s.flag()?,
            "wait_for" => self.wait_for = Some(waitee(s)?),
            // Its value, if it has one, is not looked at.
            "exitall" => self.exit.0 = true,
            "exit_what" => {
                self.exit.1 = match s.text() {
                    "group" => Ends::Group,
                    "stonewall" => Ends::Running,
                    "all" => Ends::All,
                    _ => return Err(s.must("`group`, `stonewall` or `all`")),
                }
            }
            "new_group" => self.groups.begins = s.flag()?,
            "group_reporting" => self.groups.reported = s.flag()?,
            "percentile_list" => self.percentiles = lists::percentiles(s)?,
            "writefua" => self.writefua = s.flag()?,
            "do_verify" => self.do_verify = s.flag()?,
            "verify_backlog" => self.backlog.0 = s.whole(0..=u64::from(u32::MAX))?,
            "verify_backlog_batch" => self.backlog.1 = s.whole(0..=u64::from(u32::MAX))?,
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
}
