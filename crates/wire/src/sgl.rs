//! Scatter gather lists: data as blocks of any place and length (Base 2.0 §4.1.2).
//!
//! The command holds one descriptor: of the data, or of a segment of descriptors. A segment's last descriptor may
//! lead to the next segment, of the last segment it must not. Descriptors of length 0 are legal, so a list could
//! go round for ever: after [`DESCRIPTORS_MAX`] it is refused. A list longer than its data is legal (SGLS bit 18);
//! what is beyond is not looked at.

use crate::memory::GuestMemory;
use crate::status::Status;
use crate::transfer::Region;

/// Most descriptors of a command: eight times what 2 MiB in pages of 4 KiB need.
pub const DESCRIPTORS_MAX: u32 = 4096;
/// What Identify Controller says of this in SGLS: supported without alignment (bits 1:0 01b), bit buckets (16), and
/// lists longer than their data (18).
pub const SGLS: u32 = 1 | 1 << 16 | 1 << 18;

/// Bytes of a descriptor.
const BYTES: usize = 16;
/// Descriptors read from a segment at once.
const BUFFERED: usize = 32;

/// Pieces of data described by a scatter gather list.
#[derive(Debug)]
pub struct SglRegions<M> {
    memory: M,
    to_host: bool,
    /// Bytes of data not yet returned.
    left: u64,
    /// Descriptors that may still be looked at.
    budget: u32,
    has_failed: bool,
    segment: Segment,
    buffer: [u8; BUFFERED * BYTES],
    filled: usize,
    taken: usize,
}

/// What of a segment is not in the buffer yet.
#[derive(Clone, Copy, Debug)]
struct Segment {
    at: u64,
    descriptors: u32,
    /// Whether no segment follows it.
    is_last: bool,
}

/// A descriptor's type (§4.1.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    DataBlock,
    BitBucket,
    Segment,
    LastSegment,
}

#[derive(Clone, Copy, Debug)]
struct Descriptor {
    kind: Kind,
    address: u64,
    bytes: u32,
}

impl Descriptor {
    fn decode(from: &[u8; BYTES]) -> Result<Self, Status> {
        let [a, b, c, d, e, f, g, h, i, j, k, l, _, _, _, kind] = *from;
        // Subtype 0: an address. Others are offsets, of fabrics.
        let kind = match kind {
            0x00 => Kind::DataBlock,
            0x10 => Kind::BitBucket,
            0x20 => Kind::Segment,
            0x30 => Kind::LastSegment,
            _ => return Err(Status::SGL_TYPE_INVALID),
        };
        Ok(Descriptor {
            kind,
            address: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            bytes: u32::from_le_bytes([i, j, k, l]),
        })
    }
}

impl<M: GuestMemory> SglRegions<M> {
    /// Data of `bytes`, described by a command's descriptor, that goes to the host or from it.
    pub fn new(memory: M, first: [u8; BYTES], bytes: u64, to_host: bool) -> Self {
        let mut buffer = [0; BUFFERED * BYTES];
        buffer[..BYTES].copy_from_slice(&first);
        // The command is a segment of one descriptor, which another may follow.
        let segment = Segment {
            at: 0,
            descriptors: 0,
            is_last: false,
        };
        SglRegions {
            memory,
            to_host,
            left: bytes,
            budget: DESCRIPTORS_MAX,
            has_failed: false,
            segment,
            buffer,
            filled: 1,
            taken: 0,
        }
    }

    fn step(&mut self) -> Result<Region, Status> {
        loop {
            let descriptor = self.descriptor()?;
            match descriptor.kind {
                Kind::Segment | Kind::LastSegment => self.enter(descriptor)?,
                Kind::DataBlock if descriptor.bytes > 0 => {
                    let bytes = u64::from(descriptor.bytes).min(self.left);
                    if descriptor.address.checked_add(bytes - 1).is_none() {
                        return Err(Status::DATA_TRANSFER_ERROR);
                    }
                    return Ok(self.region(Some(descriptor.address), bytes));
                }
                // From the host, buckets hold nothing (§4.1.2.1).
                Kind::BitBucket if self.to_host && descriptor.bytes > 0 => {
                    return Ok(self.region(None, u64::from(descriptor.bytes).min(self.left)));
                }
                Kind::DataBlock | Kind::BitBucket => {}
            }
        }
    }

    fn region(&mut self, address: Option<u64>, bytes: u64) -> Region {
        self.left -= bytes;
        Region { address, bytes }
    }

    /// Whether the segment under way has no descriptor more.
    fn is_at_end(&self) -> bool {
        self.taken == self.filled && self.segment.descriptors == 0
    }

    fn descriptor(&mut self) -> Result<Descriptor, Status> {
        if self.is_at_end() {
            // The data is not covered, or its description has no end.
            let is_whole = self.segment.is_last || self.budget == DESCRIPTORS_MAX - 1;
            return Err(if is_whole {
                Status::SGL_DATA_LENGTH_INVALID
            } else {
                Status::SGL_SEGMENT_INVALID
            });
        }
        self.budget = self
            .budget
            .checked_sub(1)
            .ok_or(Status::SGL_COUNT_INVALID)?;
        if self.taken == self.filled {
            self.fill()?;
        }
        let at = self.taken * BYTES;
        self.taken += 1;
        let mut bytes = [0; BYTES];
        bytes.copy_from_slice(&self.buffer[at..at + BYTES]);
        Descriptor::decode(&bytes)
    }

    /// Goes on in the segment that a descriptor leads to.
    fn enter(&mut self, to: Descriptor) -> Result<(), Status> {
        if self.segment.is_last {
            return Err(Status::SGL_SEGMENT_INVALID);
        }
        if !self.is_at_end() {
            return Err(Status::SGL_COUNT_INVALID);
        }
        // Segments begin at multiples of 8 (§4.1.2).
        let is_whole = to.bytes > 0 && (to.bytes as usize).is_multiple_of(BYTES);
        if !is_whole || !to.address.is_multiple_of(8) {
            return Err(Status::SGL_SEGMENT_INVALID);
        }
        if to.address.checked_add(u64::from(to.bytes) - 1).is_none() {
            return Err(Status::DATA_TRANSFER_ERROR);
        }
        self.segment = Segment {
            at: to.address,
            descriptors: to.bytes / BYTES as u32,
            is_last: to.kind == Kind::LastSegment,
        };
        Ok(())
    }

    fn fill(&mut self) -> Result<(), Status> {
        let count = (self.segment.descriptors as usize).min(BUFFERED);
        let bytes = count * BYTES;
        self.memory
            .read(self.segment.at, &mut self.buffer[..bytes])?;
        self.segment.at = self.segment.at.wrapping_add(bytes as u64);
        self.segment.descriptors -= count as u32;
        (self.filled, self.taken) = (count, 0);
        Ok(())
    }
}

impl<M: GuestMemory> Iterator for SglRegions<M> {
    type Item = Result<Region, Status>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 || self.has_failed {
            return None;
        }
        let region = self.step();
        self.has_failed = region.is_err();
        Some(region)
    }
}
