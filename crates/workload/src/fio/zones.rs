//! fio's `zonemode=strided`: part of a range, then a gap, then part of the next.

use super::ini::Setting;
use super::value;
use crate::WorkloadError;

/// What a job section says about it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ZoneOptions {
    pub(super) strided: bool,
    size: u64,
    range: u64,
    skip: u64,
}

/// Where strided requests lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strides {
    /// Bytes in a zone before the next one begins, and how many of the zone there are to go round in.
    pub(super) size: u64,
    pub(super) range: u64,
    /// From the start of a zone to that of the next.
    pub(super) step: u64,
}

impl ZoneOptions {
    /// Takes an option, if it is one of these.
    pub(super) fn apply(
        &mut self,
        name: &str,
        s: &Setting,
        kb_base: u64,
    ) -> Result<bool, WorkloadError> {
        let bytes = || {
            let bytes = value::bytes(s.text(), kb_base).filter(|n| n.is_multiple_of(512));
            bytes.ok_or_else(|| s.must("a multiple of 512 B"))
        };
        match name {
            "zonemode" => {
                self.strided = match s.text() {
                    "none" => false,
                    "strided" => true,
                    "zbd" => {
                        let error = s.error("`zonemode=zbd` is not supported");
                        return Err(error.hint("zoned namespaces are not modelled; leave it out"));
                    }
                    _ => return Err(s.must("`none`, `strided` or `zbd`")),
                }
            }
            "zonesize" => self.size = bytes()?,
            "zonerange" => self.range = bytes()?,
            "zoneskip" => self.skip = bytes()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Which option is missing, or has no meaning without another.
    pub(super) fn contradiction(&self) -> Option<(&'static str, &'static str)> {
        let zones = [
            ("zonesize", self.size),
            ("zonerange", self.range),
            ("zoneskip", self.skip),
        ];
        if self.strided {
            return (self.size == 0)
                .then_some(("zonemode", "`zonemode=strided` needs a `zonesize`"));
        }
        // fio refuses the first of these, and so do we the others, which it passes over.
        let (name, _) = zones.into_iter().find(|(_, bytes)| *bytes > 0)?;
        Some((name, "sizes of zones need `zonemode=strided`"))
    }

    pub(super) fn strides(&self) -> Option<Strides> {
        let range = if self.range > 0 {
            self.range
        } else {
            self.size
        };
        self.strided.then_some(Strides {
            size: self.size,
            range,
            step: range.saturating_add(self.skip),
        })
    }
}

/// The zone that requests go to, and how far they are.
#[derive(Clone, Debug, Default)]
pub(super) struct Stride {
    start: u64,
    used: u64,
    position: u64,
}

impl Stride {
    /// Where the next request begins; past the end at `room` zones begin anew, as in fio.
    pub(super) fn next(&mut self, strides: Strides, room: u64) -> u64 {
        if self.used >= strides.size {
            self.used = 0;
            self.start = self.start.saturating_add(strides.step);
            if self.start >= room {
                self.start = 0;
            }
            self.position = self.start;
        }
        if self.position >= self.start.saturating_add(strides.range) {
            self.position = self.start;
        }
        self.position
    }

    /// A request of so many bytes is issued there.
    pub(super) fn issued(&mut self, bytes: u64) {
        self.used += bytes;
        self.position += bytes;
    }
}
