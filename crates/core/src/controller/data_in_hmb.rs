//! Pages of the read cache and the write buffer in host memory, as bytes.
//!
//! A page stands in a place of 4 KiB and is read and written whole. What the drive keeps of it is its
//! check, in its own memory: with `mac` a tag of 64 bits, with `crc` a CRC-32, a 512th or a 1024th of
//! the page (128 or 64 KiB for 64 MiB). The map (`map_in_hmb.rs`) keeps its tags in host memory, under
//! epochs in the drive, because a tag for each of its lines would be an eighth of what it protects. Of
//! pages the tags themselves are affordable, and then nothing else is needed: an old page is not the
//! one whose tag the drive has, so there is no counter, nothing that wraps, and not a byte more on the
//! link or in host memory.
//!
//! With `mac` the page is encrypted too, by the synthetic-IV scheme of single entries
//! ([`super::integrity::EntryCodec`]): the tag of place, address and page is the nonce of the key
//! stream. A guess passes with probability 2^-64. With `crc` anybody can make another page of the same
//! checksum.

use super::host_memory::{HostMemory, Lent};
use super::integrity::{Keys, Rejected};
use crate::ids::{BufferSlot, Lpn, Maybe};
use crate::spec::{Integrity, SLOT_BYTES};
use serde::{Deserialize, Serialize};

/// Bytes of a page.
pub type PageBytes = [u8; SLOT_BYTES as usize];

/// Where pages stand in host memory, and what the drive keeps to trust them.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct DataInHmb {
    integrity: Integrity,
    keys: Keys,
    /// Place of each slot of the write buffer; none: what it holds is in the drive.
    places: Vec<Maybe<u32>>,
    /// Places of the write buffer not in use.
    free: Vec<u32>,
    /// First byte of the read cache.
    cache_base: u64,
    /// Checks of the write buffer's places, then of the read cache's.
    buffer_checks: Vec<u64>,
    cache_checks: Vec<u64>,
}

impl DataInHmb {
    /// No host memory has been granted.
    #[must_use]
    pub fn new(integrity: Integrity, seed: u64) -> Self {
        DataInHmb {
            integrity,
            keys: Keys::new(seed),
            places: Vec::new(),
            free: Vec::new(),
            cache_base: 0,
            buffer_checks: Vec::new(),
            cache_checks: Vec::new(),
        }
    }

    /// Host memory from offset 0 now has room for `buffer_pages` of the write buffer, and from
    /// `cache_base` on for `cache_pages` of the read cache. What stood there is forgotten.
    pub fn lay_out(&mut self, buffer_pages: u32, cache_base: u64, cache_pages: u32) {
        self.places.clear();
        self.free = (0..buffer_pages).rev().collect();
        self.buffer_checks = vec![0; buffer_pages as usize];
        self.cache_base = cache_base;
        self.cache_checks = vec![0; cache_pages as usize];
    }

    /// Slots of the write buffer whose page stands in host memory.
    pub fn buffered(&self) -> impl Iterator<Item = BufferSlot> + '_ {
        let places = (0u32..).zip(&self.places);
        places
            .filter(|(_, place)| place.is_some())
            .map(|(slot, _)| BufferSlot(slot))
    }

    /// Whether a slot's page stands in host memory.
    #[must_use]
    pub fn holds(&self, slot: BufferSlot) -> bool {
        self.place(slot).is_some()
    }

    fn place(&self, slot: BufferSlot) -> Option<u32> {
        self.places.get(slot.index())?.get()
    }

    /// Puts a slot's page into host memory, if there is room and it can be reached; otherwise it stays in the
    /// drive.
    pub fn put_buffered<M: HostMemory>(
        &mut self,
        memory: &mut Lent<M>,
        slot: BufferSlot,
        lpn: Lpn,
        page: PageBytes,
    ) {
        if self.places.len() <= slot.index() {
            self.places.resize(slot.index() + 1, Maybe::NONE);
        }
        let known = self.places[slot.index()].get();
        let Some(place) = known.or_else(|| self.free.pop()) else {
            return;
        };
        self.places[slot.index()] = place.into();
        let at = u64::from(place) * SLOT_BYTES;
        self.buffer_checks[place as usize] = self.encode(memory, at, lpn, page);
        if memory.has_failed() {
            self.release(slot);
        }
    }

    /// The page of a slot that stands in host memory, as the host hands it back.
    ///
    /// # Errors
    /// [`Rejected`] when it is not what was put there, as far as the mode can tell.
    pub fn get_buffered<M: HostMemory>(
        &self,
        memory: &Lent<M>,
        slot: BufferSlot,
        lpn: Lpn,
    ) -> Result<PageBytes, Rejected> {
        let place = self.place(slot).expect("the page stands in host memory");
        let at = u64::from(place) * SLOT_BYTES;
        self.decode(memory, at, lpn, self.buffer_checks[place as usize])
    }

    /// A slot's page does not stand in host memory any more.
    pub fn release(&mut self, slot: BufferSlot) {
        let place = self.places.get_mut(slot.index());
        if let Some(place) = place.and_then(Maybe::take) {
            self.free.push(place);
        }
    }

    /// Puts a page into a frame of the read cache.
    pub fn put_cached<M: HostMemory>(
        &mut self,
        memory: &mut Lent<M>,
        frame: u32,
        lpn: Lpn,
        page: PageBytes,
    ) {
        let at = self.cache_base + u64::from(frame) * SLOT_BYTES;
        self.cache_checks[frame as usize] = self.encode(memory, at, lpn, page);
    }

    /// The page in a frame of the read cache, as the host hands it back.
    ///
    /// # Errors
    /// [`Rejected`] when it is not what was put there, as far as the mode can tell.
    pub fn get_cached<M: HostMemory>(
        &self,
        memory: &Lent<M>,
        frame: u32,
        lpn: Lpn,
    ) -> Result<PageBytes, Rejected> {
        let at = self.cache_base + u64::from(frame) * SLOT_BYTES;
        self.decode(memory, at, lpn, self.cache_checks[frame as usize])
    }

    /// Writes a page at offset `at`; returns its check.
    fn encode<M: HostMemory>(
        &self,
        memory: &mut Lent<M>,
        at: u64,
        lpn: Lpn,
        mut page: PageBytes,
    ) -> u64 {
        let check = self.check(at, lpn, &page);
        self.crypt(at, lpn, check, &mut page);
        memory.write(at, &page);
        check
    }

    fn decode<M: HostMemory>(
        &self,
        memory: &Lent<M>,
        at: u64,
        lpn: Lpn,
        check: u64,
    ) -> Result<PageBytes, Rejected> {
        let mut page = [0; SLOT_BYTES as usize];
        memory.read(at, &mut page)?;
        self.crypt(at, lpn, check, &mut page);
        match self.check(at, lpn, &page) == check {
            true => Ok(page),
            false => Err(Rejected),
        }
    }

    fn check(&self, at: u64, lpn: Lpn, page: &PageBytes) -> u64 {
        match self.integrity {
            Integrity::None => 0,
            Integrity::Crc => {
                let mut crc = crc32fast::Hasher::new();
                crc.update(&lpn.0.to_le_bytes());
                crc.update(page);
                u64::from(crc.finalize())
            }
            Integrity::Mac => {
                let mut message = [0; SLOT_BYTES as usize + 12];
                message[..8].copy_from_slice(&at.to_le_bytes());
                message[8..12].copy_from_slice(&lpn.0.to_le_bytes());
                message[12..].copy_from_slice(page);
                self.keys.tag(&message)
            }
        }
    }

    /// Encrypts or decrypts a page; only with `mac`.
    fn crypt(&self, at: u64, lpn: Lpn, tag: u64, page: &mut PageBytes) {
        if self.integrity != Integrity::Mac {
            return;
        }
        let mut nonce = [0; 24];
        nonce[..8].copy_from_slice(&at.to_le_bytes());
        nonce[8..12].copy_from_slice(&lpn.0.to_le_bytes());
        nonce[12..20].copy_from_slice(&tag.to_le_bytes());
        for (block, bytes) in (0u32..).zip(page.chunks_exact_mut(8)) {
            nonce[20..].copy_from_slice(&block.to_le_bytes());
            let stream = self.keys.stream(&nonce).to_le_bytes();
            for (byte, key) in bytes.iter_mut().zip(stream) {
                *byte ^= key;
            }
        }
    }
}
