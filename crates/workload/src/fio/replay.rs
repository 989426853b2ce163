//! fio's `read_iolog`: a job that asks for what a log says.

use super::Context;
use super::ini::{Section, Setting};
use super::options::Options;
use crate::trace::{self, Fit, Format, Replay, Trace};
use crate::{Source, WorkloadError};

/// What a job section says about it.
#[derive(Clone, Debug, Default)]
pub(super) struct ReplayOptions {
    pub(super) file: Option<String>,
    no_stall: bool,
    /// 0 for none of these.
    scale: u64,
    align: u64,
    time_percent: u64,
}

/// fio's limit on `replay_time_scale`, also of our `replay_scale`.
const SCALE_MAX: u64 = 1 << 20;

/// Options that pace, repeat or check what is generated; fio applies some of them to replays, too. What says how
/// generated requests look (`rw`, `bs`, `size` and their like) is passed over, as by fio.
const NOT_WITH: &[&str] = &[
    "end_fsync",
    "fdatasync",
    "flow",
    "fsync",
    "fsync_on_close",
    "number_ios",
    "offset",
    "offset_increment",
    "ramp_time",
    "rate",
    "rate_iops",
    "runtime",
    "startdelay",
    "sync",
    "thinktime",
    "time_based",
    "verify",
    "writefua",
];

impl ReplayOptions {
    /// Takes an option, if it is one of these.
    pub(super) fn apply(&mut self, name: &str, s: &Setting) -> Result<bool, WorkloadError> {
        match name {
            "read_iolog" => {
                let file = s.text();
                if file.is_empty() || file.contains(':') {
                    return Err(s.must("the name of one log, without `:`"));
                }
                self.file = Some(file.to_owned());
            }
            "replay_no_stall" => self.no_stall = s.flag()?,
            "replay_scale" => self.scale = s.whole(1..=SCALE_MAX)?,
            "replay_align" => {
                self.align = s.whole(0..=1 << 40)?;
                if self.align != 0 && !self.align.is_power_of_two() {
                    return Err(s.must("a power of 2"));
                }
            }
            "replay_time_scale" => self.time_percent = s.whole(1..=SCALE_MAX)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The requests of the job's log, and how many there are.
pub(super) fn source(
    file: &str,
    section: &Section,
    options: &Options,
    context: &Context<'_>,
    depth: u32,
) -> Result<(Source, u64), WorkloadError> {
    let place = options.places.get("read_iolog").unwrap_or(&section.place);
    let at = |error: WorkloadError| match error.place {
        Some(_) => error,
        None => error.at(&place.file, place.line),
    };
    if let Some(name) = NOT_WITH
        .iter()
        .find(|name| options.places.contains_key(*name))
    {
        let message = format!("`{name}` is not supported with `read_iolog`");
        return Err(at(WorkloadError::new(message).hint("leave one of them out")));
    }
    let text = (context.include)(file).map_err(|error| {
        let error = WorkloadError::new(format!("cannot read `{file}`: {error}"));
        at(error.hint(
            "`read_iolog` names a log of fio's `write_iolog`, seen from the current directory",
        ))
    })?;
    let read = trace::Options {
        format: Some(Format::FioIolog),
        // As with `replay_redirect`: there is one drive.
        device: trace::DeviceChoice::All,
        ..trace::Options::default()
    };
    let (trace, _) = trace::load(text.as_bytes(), file, &read).map_err(at)?;
    let trace = changed(&trace, &options.replay, context.drive_bytes).map_err(at)?;
    let count = trace.len() as u64;
    let replay = Replay::bounded(trace, !options.replay.no_stall, depth);
    Ok((Source::Trace(Box::new(replay)), count))
}

/// Offsets and times as the job wants them.
fn changed(
    trace: &Trace,
    options: &ReplayOptions,
    drive_bytes: u64,
) -> Result<Trace, WorkloadError> {
    let records = trace.records().map(|mut record| {
        record.offset_bytes /= options.scale.max(1);
        if options.align > 0 {
            record.offset_bytes -= record.offset_bytes % options.align;
        }
        if options.time_percent > 0 {
            let time_ps = u128::from(record.time_ps) * 100 / u128::from(options.time_percent);
            record.time_ps = u64::try_from(time_ps).unwrap_or(u64::MAX);
        }
        record
    });
    let mut changed = Trace::from_records(trace.name(), records);
    changed.fit(drive_bytes, Fit::Error).map_err(|error| {
        error.hint("add `replay_scale`, or give the log itself: `lodger simulate LOG --fit wrap`")
    })?;
    Ok(changed)
}
