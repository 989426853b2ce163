//! One request of a trace, and how it is kept.

use lodger_core::Op;

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was issued, in picoseconds after the earliest request of the trace.
    pub time_ps: u64,
    /// What it asks for.
    pub op: Op,
    /// Force Unit Access. Only writes have it: of another request it is dropped when it is kept.
    pub fua: bool,
    /// First byte; 0 for a flush.
    pub offset_bytes: u64,
    /// Number of bytes; 0 for a flush only.
    pub length_bytes: u64,
}

impl Record {
    /// A flush.
    pub(crate) fn flush(time_ps: u64) -> Self {
        Self {
            time_ps,
            op: Op::Flush,
            fua: false,
            offset_bytes: 0,
            length_bytes: 0,
        }
    }

    /// First byte after the request.
    #[must_use]
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes.saturating_add(self.length_bytes)
    }
}

/// Longest request that can be kept. The length shares its word with the operation; far below
/// that, so that widening a request to whole blocks cannot overflow it.
pub(crate) const LENGTH_MAX_BYTES: u64 = 1 << 60;

/// A [`Record`] in 24 bytes, so that replay reads one stream of memory in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    pub(crate) time_ps: u64,
    pub(crate) offset_bytes: u64,
    /// Length above, then one bit of FUA, then two bits of operation.
    meta: u64,
}

impl Packed {
    pub(crate) fn new(record: Record) -> Self {
        assert!(record.length_bytes <= LENGTH_MAX_BYTES);
        let fua = record.fua && record.op == Op::Write;
        let op = match record.op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Flush => 2,
            Op::Trim => 3,
        };
        Self {
            time_ps: record.time_ps,
            offset_bytes: record.offset_bytes,
            meta: record.length_bytes << 3 | u64::from(fua) << 2 | op,
        }
    }

    #[inline]
    pub(crate) fn op(self) -> Op {
        match self.meta & 3 {
            0 => Op::Read,
            1 => Op::Write,
            2 => Op::Flush,
            _ => Op::Trim,
        }
    }

    #[inline]
    pub(crate) fn fua(self) -> bool {
        self.meta & 4 != 0
    }

    #[inline]
    pub(crate) fn length_bytes(self) -> u64 {
        self.meta >> 3
    }

    /// The same request at another time.
    pub(crate) fn at(self, time_ps: u64) -> Self {
        Self { time_ps, ..self }
    }

    /// The same request elsewhere.
    pub(crate) fn moved(self, offset_bytes: u64, length_bytes: u64) -> Self {
        Self {
            offset_bytes,
            meta: length_bytes << 3 | self.meta & 7,
            ..self
        }
    }

    #[inline]
    pub(crate) fn record(self) -> Record {
        Record {
            time_ps: self.time_ps,
            op: self.op(),
            fua: self.fua(),
            offset_bytes: self.offset_bytes,
            length_bytes: self.length_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_takes_24_bytes_and_comes_back_unchanged_but_for_fua_of_what_is_no_write() {
        assert_eq!(size_of::<Packed>(), 24);
        for op in [Op::Read, Op::Write, Op::Flush, Op::Trim] {
            for fua in [false, true] {
                for length_bytes in [0, 512, LENGTH_MAX_BYTES] {
                    let record = Record {
                        time_ps: u64::MAX,
                        op,
                        fua,
                        offset_bytes: u64::MAX - 511,
                        length_bytes,
                    };
                    let kept = Record {
                        fua: fua && op == Op::Write,
                        ..record
                    };
                    assert_eq!(Packed::new(record).record(), kept);
                }
            }
        }
    }
}
