//! Memory as direct transfers need it.

/// Alignment that every disk takes, bytes.
pub const ALIGNMENT: usize = 4096;
/// Size of a huge page, bytes (x86-64, and arm64 with pages of 4 KiB).
const HUGE: usize = 2 << 20;
/// Transfers longer than that want memory in one piece: Linux cuts them where it lies in more pages than
/// `max_segments` of the disk's queue allows, 127 or more for NVMe and 128 for most others.
const SCATTERED: usize = 256 << 10;

/// Memory aligned for `O_DIRECT`, filled with bytes that no drive can compress. It stays where it
/// is as long as it lives.
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    /// Allocates and fills.
    #[must_use]
    pub fn new(length: usize, seed: u64) -> Self {
        // Any odd number: the state must not be 0.
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let (alignment, room) = if length > SCATTERED {
            (HUGE, length.next_multiple_of(HUGE))
        } else {
            (ALIGNMENT, length)
        };
        let mut bytes = vec![0; room + alignment];
        let start = bytes.as_ptr().align_offset(alignment);
        if alignment == HUGE {
            let place = bytes[start..].as_mut_ptr().cast();
            // SAFETY: whole pages within `bytes`, of which the advice changes nothing; without huge pages
            // it fails, and transfers are cut.
            unsafe { libc::madvise(place, room, libc::MADV_HUGEPAGE) };
        }
        for byte in &mut bytes[start..start + length] {
            // xorshift64
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = (state >> 32) as u8;
        }
        Buffer {
            bytes,
            start,
            length,
        }
    }

    /// Bytes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them.
    pub fn all(&mut self) -> &mut [u8] {
        let end = self.start + self.len();
        &mut self.bytes[self.start..end]
    }

    /// Makes it at least so long, which loses what it held; whether it was too short.
    pub fn grow(&mut self, length: usize, seed: u64) -> bool {
        let is_short = self.len() < length;
        if is_short {
            *self = Buffer::new(length, seed);
        }
        is_short
    }

    /// Where it begins; no reference to the bytes is made.
    pub(crate) fn pointer(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr().wrapping_add(self.start)
    }
}
