//! Memory as direct transfers need it.

/// Alignment that every disk takes, bytes.
pub const ALIGNMENT: usize = 4096;

/// Memory aligned for `O_DIRECT`, filled with bytes that no drive can compress. It stays where it
/// is as long as it lives.
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

impl Buffer {
    /// Allocates and fills.
    #[must_use]
    pub fn new(length: usize, seed: u64) -> Self {
        // Any odd number: the state must not be 0.
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let bytes: Vec<u8> = (0..length + ALIGNMENT)
            .map(|_| {
                // xorshift64
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u8
            })
            .collect();
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        Buffer { bytes, start }
    }

    /// Bytes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() - ALIGNMENT
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
