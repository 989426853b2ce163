//! Making a trace fit a drive: addresses that lie inside it and whole logical blocks.

use super::record::Packed;
use super::text::{bytes, grouped, plural};
use super::{Trace, has_address};
use crate::WorkloadError;
use std::str::FromStr;

/// Smallest logical block: a drive accepts nothing finer.
const BLOCK_BYTES: u64 = 512;

/// Addresses are wrapped at a multiple of this, so that requests aligned to a drive's mapping unit
/// stay aligned.
const WRAP_ALIGN_BYTES: u64 = 4096;

/// What to do about addresses beyond the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fit {
    /// Refuse, and say what would help.
    #[default]
    Error,
    /// Address modulo the drive's size. Keeps requests' distances, but makes distant parts of the
    /// traced volume share the same place.
    Wrap,
    /// The traced volume is compressed: its regions (1 MiB, on small drives less) are spread
    /// evenly over the drive. Keeps hot and cold areas and sequences within a region; regions that
    /// fall together share a place.
    Scale,
}

impl FromStr for Fit {
    type Err = WorkloadError;

    fn from_str(word: &str) -> Result<Self, WorkloadError> {
        match word {
            "error" => Ok(Self::Error),
            "wrap" => Ok(Self::Wrap),
            "scale" => Ok(Self::Scale),
            _ => Err(WorkloadError::new(format!(
                "`--fit` must be `error`, `wrap` or `scale`, found `{word}`"
            ))),
        }
    }
}

/// What was done to make a trace fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FitReport {
    /// Requests widened to whole blocks of 512 B.
    pub widened: u64,
    /// Requests given another address.
    pub moved: u64,
    /// Requests longer than the drive, shortened to it.
    pub shortened: u64,
    /// The same as sentences, empty if nothing was done.
    pub notes: Vec<String>,
}

impl Trace {
    /// Makes every request lie inside a drive of `drive_bytes` and cover whole blocks of 512 B.
    ///
    /// Requests that begin or end inside a block are widened to it, as a host must; this is
    /// counted. A trace that fits already is not moved, whatever `fit` says.
    ///
    /// # Errors
    /// With [`Fit::Error`], if a request ends beyond the drive; with any, if the drive is smaller
    /// than a block.
    pub fn fit(&mut self, drive_bytes: u64, fit: Fit) -> Result<FitReport, WorkloadError> {
        let usable_bytes = drive_bytes - drive_bytes % BLOCK_BYTES;
        if usable_bytes == 0 {
            return Err(WorkloadError::new(format!(
                "a drive must have {BLOCK_BYTES} bytes at least, found {drive_bytes}"
            )));
        }
        let mut report = FitReport::default();
        let mut end_bytes = 0;
        for packed in self.records.iter_mut().filter(|p| has_address(p.op())) {
            let whole = widened(*packed);
            report.widened += u64::from(whole != *packed);
            *packed = whole;
            end_bytes = end_bytes.max(end(whole));
        }
        if report.widened > 0 {
            report.notes.push(format!(
                "{} widened to whole blocks of 512 B",
                plural(report.widened, "request")
            ));
        }
        if end_bytes <= usable_bytes {
            return Ok(report);
        }
        match fit {
            Fit::Error => return Err(self.too_large(end_bytes, drive_bytes)),
            Fit::Wrap => self.wrap(usable_bytes, &mut report),
            Fit::Scale => self.scale(end_bytes, usable_bytes, &mut report),
        }
        Ok(report)
    }

    fn too_large(&self, end_bytes: u64, drive_bytes: u64) -> WorkloadError {
        let error = WorkloadError::new(format!(
            "the trace reaches byte {} ({}), the drive ends at {} ({})",
            grouped(end_bytes),
            bytes(end_bytes),
            grouped(drive_bytes),
            bytes(drive_bytes)
        ))
        .hint(format!(
            "take a drive of {} bytes or more, or `--fit wrap` (addresses modulo the drive) or \
             `--fit scale` (the traced volume compressed to the drive)",
            grouped(end_bytes)
        ));
        match self.end_line {
            Some(line) => error.at(&self.name, line),
            None => error,
        }
    }

    fn wrap(&mut self, usable_bytes: u64, report: &mut FitReport) {
        let modulus = match usable_bytes - usable_bytes % WRAP_ALIGN_BYTES {
            0 => usable_bytes,
            aligned => aligned,
        };
        self.place(usable_bytes, report, |offset| offset % modulus);
        report.notes.push(format!(
            "{} beyond the drive wrapped around its end",
            plural(report.moved, "request")
        ));
    }

    fn scale(&mut self, end_bytes: u64, usable_bytes: u64, report: &mut FitReport) {
        // A region must be small against the drive, or everything would fall on a few places.
        const REGION_MAX_BYTES: u64 = 1 << 20;
        let mut region_bytes = REGION_MAX_BYTES;
        while region_bytes > BLOCK_BYTES && usable_bytes / region_bytes < 1024 {
            region_bytes /= 2;
        }
        let to = u128::from(usable_bytes / region_bytes);
        let from = u128::from(end_bytes.div_ceil(region_bytes));
        self.place(usable_bytes, report, |offset| {
            let region = u128::from(offset / region_bytes) * to / from;
            region as u64 * region_bytes + offset % region_bytes
        });
        report.notes.push(format!(
            "addresses scaled from {} to {} in regions of {}",
            bytes(end_bytes),
            bytes(usable_bytes),
            bytes(region_bytes)
        ));
    }

    /// Gives every request the place `at` says, moved back where it would cross the drive's end.
    fn place(&mut self, usable_bytes: u64, report: &mut FitReport, at: impl Fn(u64) -> u64) {
        for packed in self.records.iter_mut().filter(|p| has_address(p.op())) {
            let length = packed.length_bytes().min(usable_bytes);
            report.shortened += u64::from(length < packed.length_bytes());
            let offset = at(packed.offset_bytes).min(usable_bytes - length);
            report.moved += u64::from(offset != packed.offset_bytes);
            *packed = packed.moved(offset, length);
        }
        if report.shortened > 0 {
            report.notes.push(format!(
                "{} longer than the drive shortened to it",
                plural(report.shortened, "request")
            ));
        }
    }
}

fn end(packed: Packed) -> u64 {
    packed.offset_bytes.saturating_add(packed.length_bytes())
}

/// The same request over whole blocks.
pub(crate) fn widened(packed: Packed) -> Packed {
    let first = packed.offset_bytes - packed.offset_bytes % BLOCK_BYTES;
    let last_block = u64::MAX - (BLOCK_BYTES - 1);
    let end = end(packed).checked_next_multiple_of(BLOCK_BYTES);
    packed.moved(first, end.unwrap_or(last_block) - first)
}
