//! Writing a trace in another format, and saying what that loses.

use super::fit::whole_blocks;
use super::format::{self, Format};
use super::record::Packed;
use super::text::{duration, plural};
use super::{Record, Trace, has_address};
use crate::WorkloadError;
use lodger_core::Op;
use std::io::Write;

/// What a format could not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Requests written.
    pub written: u64,
    /// Flushes left out.
    pub flushes: u64,
    /// Trims left out.
    pub trims: u64,
    /// Writes written without their FUA.
    pub fua: u64,
    /// Reads and writes widened to whole sectors.
    pub widened: u64,
    /// Trims narrowed to the whole sectors inside them.
    pub narrowed: u64,
    /// Trims left out that have no whole sector inside.
    pub emptied: u64,
    /// Requests whose time was rounded down to the format's resolution.
    pub rounded: u64,
    /// Recorded latencies that were not written: formats with a column for them get 0.
    pub latencies: u64,
    /// The same as sentences, empty if nothing was lost.
    pub notes: Vec<String>,
}

/// Writes `trace` as `to`. Times are written relative to the first request (after a fixed date
/// where the format counts from one), response times as 0, one device.
///
/// # Errors
/// If writing fails, or the format can hold none of the requests.
pub fn convert(trace: &Trace, to: Format, out: &mut dyn Write) -> Result<Losses, WorkloadError> {
    let mut losses = Losses::default();
    let failed =
        |error: std::io::Error| WorkloadError::new(format!("cannot write the trace: {error}"));
    format::write_head(to, out).map_err(failed)?;
    let mut last_ps = 0;
    for &packed in &trace.records {
        let Some(record) = held(packed, to, &mut losses) else {
            continue;
        };
        losses.written += 1;
        format::write_request(to, out, &record, losses.written).map_err(failed)?;
        last_ps = record.time_ps;
    }
    format::write_tail(to, out, last_ps).map_err(failed)?;
    if losses.written == 0 {
        let title = to.title();
        let message = format!("{title} can hold none of the trace's requests");
        return Err(WorkloadError::new(message).hint("`--to csv` holds everything"));
    }
    let recorded = trace.recorded();
    losses.latencies = recorded.map_or(0, |all| {
        [&all.read, &all.write, &all.trim]
            .map(lodger_core::Histogram::count)
            .iter()
            .sum()
    });
    losses.note(to);
    Ok(losses)
}

/// The request as the format can hold it, or `None`; losses are counted.
fn held(packed: Packed, to: Format, losses: &mut Losses) -> Option<Record> {
    let holds = to.holds();
    match packed.op() {
        Op::Flush if !holds.flush => {
            losses.flushes += 1;
            return None;
        }
        Op::Trim if !holds.trim => {
            losses.trims += 1;
            return None;
        }
        _ => {}
    }
    let mut record = packed.record();
    if has_address(record.op)
        && (!record.offset_bytes.is_multiple_of(holds.offset_unit_bytes)
            || !record.length_bytes.is_multiple_of(holds.length_unit_bytes))
    {
        let Some(whole) = whole_blocks(packed) else {
            losses.emptied += 1;
            return None;
        };
        match record.op {
            Op::Trim => losses.narrowed += 1,
            _ => losses.widened += 1,
        }
        record = whole.record();
    }
    if record.fua && !holds.fua {
        losses.fua += 1;
        record.fua = false;
    }
    losses.rounded += u64::from(!record.time_ps.is_multiple_of(holds.time_resolution_ps));
    Some(record)
}

impl Losses {
    fn note(&mut self, to: Format) {
        let title = to.title();
        let resolution = duration(to.holds().time_resolution_ps);
        let said = [
            (
                self.flushes,
                "flush request",
                "left out: the format has none".to_owned(),
            ),
            (
                self.trims,
                "trim request",
                "left out: the format has none".to_owned(),
            ),
            (self.fua, "FUA write", "written as ordinary ones".to_owned()),
            (
                self.widened,
                "request",
                "widened to whole sectors of 512 B".to_owned(),
            ),
            (
                self.narrowed,
                "trim",
                "narrowed to the whole sectors of 512 B inside".to_owned(),
            ),
            (
                self.emptied,
                "trim",
                "of less than a whole sector of 512 B left out".to_owned(),
            ),
            (
                self.rounded,
                "time",
                format!("rounded down to {resolution}"),
            ),
            (
                self.latencies,
                "recorded response time",
                "left out: requests are written without how long they took".to_owned(),
            ),
        ];
        for (n, noun, what) in said {
            if n > 0 {
                self.notes
                    .push(format!("{title}: {} {what}", plural(n, noun)));
            }
        }
    }
}
