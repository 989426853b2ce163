//! Where a job's range lies on the drive, and how long it is.

use super::{Builder, percent_of};
use crate::WorkloadError;
use crate::fio::distribution::below;
use crate::fio::value::Extent;
use rand_xoshiro::Xoshiro256PlusPlus;

const FIT: &str = "use a smaller `size` or `offset`, give them in per cent of the drive, such as \
                   `size=50%`, or choose a larger drive; `--fit` applies to traces only";

impl Builder<'_> {
    /// Where the file ends: the drive's end, or where `filesize` says, as in fio, which makes nothing of a range that has
    /// the drive's size in it.
    pub(super) fn file_bytes(&self, rng: &mut Xoshiro256PlusPlus) -> Result<u64, WorkloadError> {
        let drive_bytes = self.context.drive_bytes;
        let Some((low, high)) = self.options.filesize else {
            return Ok(drive_bytes);
        };
        let all = |bytes: u64| bytes.saturating_mul(self.files());
        let (low, high) = (all(low), all(high));
        if low > drive_bytes {
            let message =
                format!("`filesize` is at least {low} B, but the drive has only {drive_bytes} B");
            return Err(self.error(&["filesize"], message).hint(FIT));
        }
        if high >= drive_bytes {
            return Ok(drive_bytes);
        }
        let drawn = match high - low {
            0 => low,
            more => low + below(rng, more + 1),
        };
        Ok(drawn - drawn % 512)
    }

    /// First byte of a clone's range, and how far clones are apart.
    fn base(&self, clone: u64, smallest: u64) -> (u128, u64) {
        let o = self.options;
        let drive_bytes = self.context.drive_bytes;
        let (mut base, percent) = match o.offset {
            Extent::Bytes(bytes) => (u128::from(bytes), false),
            Extent::Percent(percent) => (u128::from(percent_of(drive_bytes, percent)), true),
        };
        let (increment, increment_percent) = match o.offset_increment {
            Extent::Bytes(bytes) => (bytes, false),
            Extent::Percent(percent) => (percent_of(drive_bytes, percent), true),
        };
        base += u128::from(increment) * u128::from(clone);
        if percent || increment_percent {
            let align = match o.offset_align {
                0 => smallest,
                align => align,
            };
            base = base.next_multiple_of(u128::from(align));
        }
        (base, increment)
    }

    /// First byte and length of a clone's range, and how much of it a pass covers: without `filesize` all of it.
    pub(super) fn range(
        &self,
        clone: u64,
        file_bytes: u64,
        smallest: u64,
        largest: u64,
    ) -> Result<(u64, u64, u64), WorkloadError> {
        let o = self.options;
        let drive_bytes = self.context.drive_bytes;
        let (base, increment) = self.base(clone, smallest);
        let moved: &[&str] = match (clone, increment) {
            (0, _) | (_, 0) => &["offset"],
            _ => &["offset_increment", "offset"],
        };
        if base % 512 != 0 {
            let message = format!("the job must begin at a multiple of 512 B, not at {base} B");
            let hint = "the drive's sectors have 512 B: `offset=4k`";
            return Err(self.error(moved, message).hint(hint));
        }
        let (end_bytes, what) = match file_bytes == drive_bytes {
            true => (drive_bytes, "drive"),
            false => (file_bytes, "file, by `filesize`,"),
        };
        if base >= u128::from(end_bytes) {
            let message =
                format!("the job begins at {base} B, but the {what} has only {end_bytes} B");
            return Err(self.error(moved, message).hint(FIT));
        }
        let base = base as u64;
        let room = end_bytes - base;
        let span = match o.size {
            // With `filesize`, `size` says how much, and not where.
            Some(Extent::Bytes(_)) if o.filesize.is_some() => room,
            None => room,
            Some(Extent::Bytes(bytes)) => bytes,
            Some(Extent::Percent(percent)) => {
                let bytes = percent_of(end_bytes, percent).min(room);
                bytes - bytes % smallest
            }
        };
        let bytes = match o.size {
            Some(Extent::Bytes(bytes)) => bytes.min(span),
            _ => span,
        };
        if span > room {
            let end = u128::from(base) + u128::from(span);
            let message =
                format!("the job ends at {end} B, but the drive has only {drive_bytes} B");
            let blame = ["size", "offset_increment", "offset"];
            return Err(self.error(&blame, message).hint(FIT));
        }
        if (span / self.files()).min(bytes) < largest {
            let message =
                format!("the job's range of {bytes} B is smaller than one block of {largest} B");
            let error = self.error(&["size", "filesize", "offset"], message);
            return Err(error.hint("give a larger `size`, or a smaller `bs`"));
        }
        Ok((base, span, bytes))
    }
}
