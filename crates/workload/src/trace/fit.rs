//! Making a trace fit a drive: addresses that lie inside it and whole logical blocks.

use super::record::Packed;
use super::text::{bytes, grouped, plural};
use super::{Trace, has_address};
use crate::WorkloadError;
use lodger_core::Op;
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
    /// Reads and writes widened to whole blocks of 512 B.
    pub widened: u64,
    /// Trims narrowed to the whole blocks of 512 B inside them.
    pub narrowed: u64,
    /// Trims left out that have no whole block inside.
    pub emptied: u64,
    /// Requests given another address.
    pub moved: u64,
    /// Requests longer than the drive, shortened to it.
    pub shortened: u64,
    /// The same as sentences, empty if nothing was done.
    pub notes: Vec<String>,
}

impl FitReport {
    /// The request over whole blocks; none, if it is a trim of less than one.
    fn whole(&mut self, packed: Packed) -> Option<Packed> {
        let whole = whole_blocks(packed);
        let count = match (packed.op(), whole) {
            (_, None) => &mut self.emptied,
            (Op::Trim, _) => &mut self.narrowed,
            _ => &mut self.widened,
        };
        *count += u64::from(whole != Some(packed));
        whole
    }

    /// The request at another place, moved back where it would cross the drive's end.
    fn place(&mut self, packed: Packed, usable_bytes: u64, offset: u64) -> Packed {
        let length = packed.length_bytes().min(usable_bytes);
        self.shortened += u64::from(length < packed.length_bytes());
        let offset = offset.min(usable_bytes - length);
        self.moved += u64::from(offset != packed.offset_bytes);
        packed.moved(offset, length)
    }

    fn note_whole(&mut self) {
        if self.widened > 0 {
            self.notes.push(format!(
                "{} widened to whole blocks of 512 B",
                plural(self.widened, "request")
            ));
        }
        if self.narrowed > 0 {
            self.notes.push(format!(
                "{} narrowed to the whole blocks of 512 B inside",
                plural(self.narrowed, "trim")
            ));
        }
        if self.emptied > 0 {
            self.notes.push(format!(
                "{} of less than a whole block of 512 B left out",
                plural(self.emptied, "trim")
            ));
        }
    }

    fn note_shortened(&mut self) {
        if self.shortened > 0 {
            self.notes.push(format!(
                "{} longer than the drive shortened to it",
                plural(self.shortened, "request")
            ));
        }
    }

    fn note_wrapped(&mut self) {
        if self.moved > 0 {
            self.notes.push(format!(
                "{} beyond the drive wrapped around its end",
                plural(self.moved, "request")
            ));
        }
    }
}

impl Trace {
    /// Makes every request lie inside a drive of `drive_bytes` and cover whole blocks of 512 B.
    ///
    /// Reads and writes that begin or end inside a block are widened to it, as a host must, and trims are narrowed to the
    /// blocks inside them, as nothing beside them may be lost; both are counted. A trace that fits already is not moved, whatever `fit` says.
    ///
    /// # Errors
    /// With [`Fit::Error`], if a request ends beyond the drive; with any, if the drive is smaller
    /// than a block.
    pub fn fit(&mut self, drive_bytes: u64, fit: Fit) -> Result<FitReport, WorkloadError> {
        let usable_bytes = usable_bytes(drive_bytes)?;
        let mut report = FitReport::default();
        let mut end_bytes = 0;
        self.records.retain_mut(|packed| {
            if !has_address(packed.op()) {
                return true;
            }
            let Some(whole) = report.whole(*packed) else {
                return false;
            };
            *packed = whole;
            end_bytes = end_bytes.max(end(whole));
            true
        });
        report.note_whole();
        if end_bytes <= usable_bytes {
            return Ok(report);
        }
        match fit {
            Fit::Error => {
                let error = too_large("the trace", end_bytes, drive_bytes);
                return Err(match self.end_line {
                    Some(line) => error.at(&self.name, line),
                    None => error,
                });
            }
            Fit::Wrap => {
                let modulus = wrap_modulus(usable_bytes);
                self.place(usable_bytes, &mut report, |offset| offset % modulus);
                report.note_wrapped();
            }
            Fit::Scale => self.scale(end_bytes, usable_bytes, &mut report),
        }
        Ok(report)
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

    /// Gives every request the place `at` says.
    fn place(&mut self, usable_bytes: u64, report: &mut FitReport, at: impl Fn(u64) -> u64) {
        for packed in self.records.iter_mut().filter(|p| has_address(p.op())) {
            *packed = report.place(*packed, usable_bytes, at(packed.offset_bytes));
        }
        report.note_shortened();
    }
}

/// What makes requests fit one at a time, as far as that does not take the whole trace.
#[derive(Debug)]
pub(crate) struct Fitter {
    drive_bytes: u64,
    usable_bytes: u64,
    /// Addresses beyond the drive are taken modulo this; `None`: they are refused.
    modulus: Option<u64>,
    report: FitReport,
}

impl Fitter {
    pub(crate) fn new(drive_bytes: u64, fit: Fit) -> Result<Self, WorkloadError> {
        let usable_bytes = usable_bytes(drive_bytes)?;
        let modulus = wrap_modulus(usable_bytes);
        let modulus = match fit {
            Fit::Error => None,
            // Otherwise a trace that fits would be moved.
            Fit::Wrap if modulus == usable_bytes => Some(modulus),
            Fit::Wrap | Fit::Scale => {
                let how = if fit == Fit::Scale { "scale" } else { "wrap" };
                let message =
                    format!("`--fit {how}` needs the whole trace, which `--stream` does not keep");
                return Err(WorkloadError::new(message).hint("leave out one of them"));
            }
        };
        Ok(Self {
            drive_bytes,
            usable_bytes,
            modulus,
            report: FitReport::default(),
        })
    }

    /// Nothing of a trim that has no whole block inside.
    #[inline]
    pub(crate) fn fit(&mut self, packed: Packed) -> Result<Option<Packed>, WorkloadError> {
        if !has_address(packed.op()) {
            return Ok(Some(packed));
        }
        let Some(packed) = self.report.whole(packed) else {
            return Ok(None);
        };
        if end(packed) <= self.usable_bytes {
            return Ok(Some(packed));
        }
        let Some(modulus) = self.modulus else {
            // How far the rest of it reaches, and so its scale, is not known yet.
            return Err(too_large("this request", end(packed), self.drive_bytes).hint(
                "take a larger drive (`lodger trace info` says how far the trace reaches), or `--fit wrap` (addresses \
                 modulo the drive)",
            ));
        };
        let offset = packed.offset_bytes % modulus;
        Ok(Some(self.report.place(packed, self.usable_bytes, offset)))
    }

    pub(crate) fn finish(mut self) -> FitReport {
        self.report.note_whole();
        self.report.note_shortened();
        self.report.note_wrapped();
        self.report
    }
}

/// What of a drive consists of whole blocks.
fn usable_bytes(drive_bytes: u64) -> Result<u64, WorkloadError> {
    match drive_bytes - drive_bytes % BLOCK_BYTES {
        0 => Err(WorkloadError::new(format!(
            "a drive must have {BLOCK_BYTES} bytes at least, found {drive_bytes}"
        ))),
        usable_bytes => Ok(usable_bytes),
    }
}

fn wrap_modulus(usable_bytes: u64) -> u64 {
    match usable_bytes - usable_bytes % WRAP_ALIGN_BYTES {
        0 => usable_bytes,
        aligned => aligned,
    }
}

fn too_large(what: &str, end_bytes: u64, drive_bytes: u64) -> WorkloadError {
    WorkloadError::new(format!(
        "{what} reaches byte {} ({}), the drive ends at {} ({})",
        grouped(end_bytes),
        bytes(end_bytes),
        grouped(drive_bytes),
        bytes(drive_bytes)
    ))
    .hint(format!(
        "take a drive of {} bytes or more, or `--fit wrap` (addresses modulo the drive) or \
         `--fit scale` (the traced volume compressed to the drive)",
        grouped(end_bytes)
    ))
}

fn end(packed: Packed) -> u64 {
    packed.offset_bytes.saturating_add(packed.length_bytes())
}

/// The same request over whole blocks, which of a trim are those inside it: a host that asks for one names whole blocks,
/// and what stands beside it must not be trimmed. None, if there are none.
pub(crate) fn whole_blocks(packed: Packed) -> Option<Packed> {
    if packed.op() == Op::Trim {
        let first = packed.offset_bytes.checked_next_multiple_of(BLOCK_BYTES)?;
        let end = end(packed) / BLOCK_BYTES * BLOCK_BYTES;
        let length = end.checked_sub(first).filter(|&length| length > 0)?;
        return Some(packed.moved(first, length));
    }
    let first = packed.offset_bytes - packed.offset_bytes % BLOCK_BYTES;
    let last_block = u64::MAX - (BLOCK_BYTES - 1);
    let end = end(packed).checked_next_multiple_of(BLOCK_BYTES);
    Some(packed.moved(first, end.unwrap_or(last_block) - first))
}
