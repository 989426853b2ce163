//! Integrity of what leaves the drive: map entries in host memory (HMB) and in the host's hands
//! (HPB), where anybody can read them, change them and play old ones back.
//!
//! [`EntryCodec`] protects one entry (HPB: the host stores and returns entries one by one).
//! [`Epochs`] are what the drive keeps to tell a genuine entry of now from a genuine entry of
//! before. Host memory is read by cache lines and protected by lines: see [`super::host_memory`].

use crate::ids::{Lpn, Ppn};
use crate::rng::mix;
use crate::spec::Integrity;
use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher24;

/// Bytes of the longest encoded entry.
pub const ENTRY_BYTES_MAX: usize = 8;

/// An entry as it leaves the drive.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub struct EncodedEntry {
    bytes: [u8; ENTRY_BYTES_MAX],
    length: usize,
}

impl EncodedEntry {
    /// The bytes that leave the drive.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// What came back is not what the drive gave out for this address in this epoch.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an entry from outside the drive failed its check")]
pub struct Rejected;

/// Two independent SipHash-2-4 functions (Aumasson & Bernstein, INDOCRYPT 2012): one makes tags, one
/// makes key stream. Keys come from the drive's seed and never leave it.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub struct Keys {
    tag: SipHasher24,
    stream: SipHasher24,
    seed: u64,
}

impl Keys {
    /// The keys of a drive.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut last = seed;
        let mut next = || {
            last = mix(last);
            last
        };
        Keys {
            tag: SipHasher24::new_with_keys(next(), next()),
            stream: SipHasher24::new_with_keys(next(), next()),
            seed: next(),
        }
    }

    /// The keys after these. Whatever was made with the old ones is rejected from now on.
    #[must_use]
    pub fn rotated(&self) -> Self {
        Keys::new(self.seed)
    }

    /// Tag of a message.
    #[must_use]
    pub fn tag(&self, message: &[u8]) -> u64 {
        self.tag.hash(message)
    }

    /// Key stream that belongs to a message which is never used twice.
    #[must_use]
    pub fn stream(&self, message: &[u8]) -> u64 {
        self.stream.hash(message)
    }
}

/// Encodes single entries.
///
/// | mode | bytes | finds |
/// |---|---|---|
/// | `none` | 4 | nothing |
/// | `crc` | 8: entry, CRC-32 over address, epoch and entry | accidents: flipped bits, mixed-up addresses, stale entries. Anybody can make a valid one |
/// | `mac` | 8: encrypted entry, tag | forgeries too: a guess passes with probability 2^-32 |
///
/// `mac` is a synthetic-IV scheme (Rogaway & Shrimpton, EUROCRYPT 2006): the tag, made with one key
/// from address, epoch and entry, is also the nonce of the key stream, made with the other. Equal
/// entries for the same address in the same epoch look equal; nothing else shows.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub struct EntryCodec {
    integrity: Integrity,
    keys: Keys,
}

impl EntryCodec {
    /// The codec of a drive.
    #[must_use]
    pub fn new(integrity: Integrity, seed: u64) -> Self {
        EntryCodec {
            integrity,
            keys: Keys::new(seed),
        }
    }

    /// Bytes of an encoded entry.
    #[must_use]
    pub const fn entry_bytes(integrity: Integrity) -> usize {
        match integrity {
            Integrity::None => 4,
            Integrity::Crc | Integrity::Mac => 8,
        }
    }

    /// New keys: every entry given out so far is rejected from now on. Due when an epoch wraps
    /// ([`Epochs::advance`]).
    pub fn rotate_keys(&mut self) {
        self.keys = self.keys.rotated();
    }

    /// The entry of `lpn` as it leaves the drive.
    #[must_use]
    #[inline]
    pub fn encode(&self, lpn: Lpn, ppn: Ppn, epoch: u32) -> EncodedEntry {
        let (entry, check) = match self.integrity {
            Integrity::None => (ppn.0, 0),
            Integrity::Crc => (ppn.0, checksum(lpn, epoch, ppn.0)),
            Integrity::Mac => {
                let tag = self.tag(lpn, epoch, ppn.0);
                (ppn.0 ^ self.stream(lpn, epoch, tag), tag)
            }
        };
        let mut bytes = [0; ENTRY_BYTES_MAX];
        bytes[..4].copy_from_slice(&entry.to_le_bytes());
        bytes[4..].copy_from_slice(&check.to_le_bytes());
        EncodedEntry {
            bytes,
            length: Self::entry_bytes(self.integrity),
        }
    }

    /// The entry in `bytes`, if the drive gave it out for `lpn` in `epoch`.
    ///
    /// # Errors
    /// [`Rejected`] when it did not, as far as the mode can tell, or when the length is wrong.
    /// `none` takes everything: the caller must still check that the page exists.
    #[inline]
    pub fn decode(&self, lpn: Lpn, epoch: u32, bytes: &[u8]) -> Result<Ppn, Rejected> {
        if bytes.len() != Self::entry_bytes(self.integrity) {
            return Err(Rejected);
        }
        let word = |at: usize| {
            let word = bytes.get(at..at + 4)?;
            Some(u32::from_le_bytes(word.try_into().ok()?))
        };
        let entry = word(0).ok_or(Rejected)?;
        match (self.integrity, word(4)) {
            (Integrity::None, _) => Ok(Ppn(entry)),
            (Integrity::Crc, Some(check)) if check == checksum(lpn, epoch, entry) => Ok(Ppn(entry)),
            (Integrity::Mac, Some(tag)) => {
                let entry = entry ^ self.stream(lpn, epoch, tag);
                let genuine = self.tag(lpn, epoch, entry) == tag;
                genuine.then_some(Ppn(entry)).ok_or(Rejected)
            }
            _ => Err(Rejected),
        }
    }

    fn tag(&self, lpn: Lpn, epoch: u32, entry: u32) -> u32 {
        self.keys.tag(&message(lpn, epoch, entry)) as u32
    }

    fn stream(&self, lpn: Lpn, epoch: u32, tag: u32) -> u32 {
        self.keys.stream(&message(lpn, epoch, tag)) as u32
    }
}

fn message(lpn: Lpn, epoch: u32, last: u32) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&lpn.0.to_le_bytes());
    bytes[4..8].copy_from_slice(&epoch.to_le_bytes());
    bytes[8..].copy_from_slice(&last.to_le_bytes());
    bytes
}

fn checksum(lpn: Lpn, epoch: u32, entry: u32) -> u32 {
    crc32fast::hash(&message(lpn, epoch, entry))
}

/// An epoch for each group of entries (an HPB sub-region, a place for a translation page in host
/// memory), in the drive's own memory: `bits` for each group.
///
/// An entry is genuine only with the epoch its group has now. The drive advances the epoch when
/// entries of the group that are outside the drive stop being true, so that none of them passes
/// again, however the group goes on. Before a number comes up again, the keys must be rotated:
/// all groups then need new entries, once in 2^bits changes of one group.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Epochs {
    #[serde(with = "crate::arrays::sparse")]
    of: Vec<u32>,
    bits: u32,
}

impl Epochs {
    /// Epochs of `groups` groups, all zero.
    ///
    /// # Panics
    /// If `bits` is not 1 to 32.
    #[must_use]
    pub fn new(groups: u32, bits: u32) -> Self {
        assert!((1..=32).contains(&bits));
        Epochs {
            of: vec![0; groups as usize],
            bits,
        }
    }

    /// A group's epoch.
    #[inline]
    #[must_use]
    pub fn get(&self, group: u32) -> u32 {
        self.of[group as usize]
    }

    /// Entries given out for a group stop being genuine. Returns true when the epoch wrapped: the
    /// keys must be rotated and every group's entries given out anew.
    #[must_use]
    pub fn advance(&mut self, group: u32) -> bool {
        let epoch = &mut self.of[group as usize];
        *epoch = epoch.wrapping_add(1) & (u32::MAX >> (32 - self.bits));
        *epoch == 0
    }

    /// What the epochs take in the drive's own memory, bits.
    #[must_use]
    pub fn memory_bits(&self) -> u64 {
        self.of.len() as u64 * u64::from(self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CHECKED: [Integrity; 2] = [Integrity::Crc, Integrity::Mac];

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn what_was_given_out_comes_back(lpn: u32, ppn: u32, epoch: u32, seed: u64) {
            for integrity in [Integrity::None, Integrity::Crc, Integrity::Mac] {
                let codec = EntryCodec::new(integrity, seed);
                let entry = codec.encode(Lpn(lpn), Ppn(ppn), epoch);
                prop_assert_eq!(codec.decode(Lpn(lpn), epoch, entry.bytes()), Ok(Ppn(ppn)));
            }
        }

        /// A CRC finds any change of up to 32 bits in a row; anything else passes once in 2^32, as
        /// with the tag: one failure of this test in 250 000 runs.
        #[test]
        fn flipped_bits_are_rejected(lpn: u32, ppn: u32, epoch: u32, seed: u64, flips in 1u64..) {
            for integrity in CHECKED {
                let codec = EntryCodec::new(integrity, seed);
                let entry = codec.encode(Lpn(lpn), Ppn(ppn), epoch);
                for bit in 0..64 {
                    let mut bytes = entry.bytes().to_vec();
                    bytes[bit / 8] ^= 1 << (bit % 8);
                    prop_assert_eq!(codec.decode(Lpn(lpn), epoch, &bytes), Err(Rejected));
                }
                let word = u64::from_le_bytes(entry.bytes().try_into().unwrap()) ^ flips;
                prop_assert_eq!(codec.decode(Lpn(lpn), epoch, &word.to_le_bytes()), Err(Rejected));
            }
        }

        #[test]
        fn another_address_epoch_drive_or_length_is_rejected(
            lpn: u32, ppn: u32, epoch: u32, seed: u64, other in 1u32.., length in 0usize..8,
        ) {
            for integrity in CHECKED {
                let codec = EntryCodec::new(integrity, seed);
                let entry = codec.encode(Lpn(lpn), Ppn(ppn), epoch);
                let decode = |lpn, epoch, bytes| codec.decode(lpn, epoch, bytes);
                prop_assert_eq!(decode(Lpn(lpn ^ other), epoch, entry.bytes()), Err(Rejected));
                prop_assert_eq!(decode(Lpn(lpn), epoch ^ other, entry.bytes()), Err(Rejected));
                prop_assert_eq!(decode(Lpn(lpn), epoch, &entry.bytes()[..length]), Err(Rejected));
            }
            let mut codec = EntryCodec::new(Integrity::Mac, seed);
            let entry = codec.encode(Lpn(lpn), Ppn(ppn), epoch);
            let foreign = EntryCodec::new(Integrity::Mac, !seed);
            prop_assert_eq!(foreign.decode(Lpn(lpn), epoch, entry.bytes()), Err(Rejected));
            codec.rotate_keys();
            prop_assert_eq!(codec.decode(Lpn(lpn), epoch, entry.bytes()), Err(Rejected));
        }

        /// A group's life: entries change, the group becomes clean again with a new epoch. Every
        /// entry given out before is rejected, though it was genuine once.
        #[test]
        fn replay_is_rejected(seed: u64, ppns in prop::collection::vec(0u32..4, 1..40)) {
            let mut codec = EntryCodec::new(Integrity::Mac, seed);
            // Few bits, so that the epoch wraps.
            let mut epochs = Epochs::new(1, 3);
            let mut old = Vec::new();
            for ppn in ppns {
                let entry = codec.encode(Lpn(7), Ppn(ppn), epochs.get(0));
                prop_assert_eq!(codec.decode(Lpn(7), epochs.get(0), entry.bytes()), Ok(Ppn(ppn)));
                for played_back in &old {
                    let played_back: &EncodedEntry = played_back;
                    let found = codec.decode(Lpn(7), epochs.get(0), played_back.bytes());
                    prop_assert_eq!(found, Err(Rejected));
                }
                old.push(entry);
                if epochs.advance(0) {
                    codec.rotate_keys();
                }
            }
        }
    }

    #[test]
    fn without_integrity_a_forged_entry_passes() {
        let codec = EntryCodec::new(Integrity::None, 1);
        assert_eq!(codec.decode(Lpn(1), 0, &9u32.to_le_bytes()), Ok(Ppn(9)));
    }

    #[test]
    fn a_crc_can_be_forged_and_a_tag_cannot_be_made_by_guessing() {
        let crc = EntryCodec::new(Integrity::Crc, 1);
        let forged = EntryCodec::new(Integrity::Crc, 2).encode(Lpn(1), Ppn(9), 0);
        assert_eq!(crc.decode(Lpn(1), 0, forged.bytes()), Ok(Ppn(9)));
        let mac = EntryCodec::new(Integrity::Mac, 1);
        let mut rng = crate::rng::Rng::new(5);
        let passed = (0..1_000_000)
            .filter(|_| mac.decode(Lpn(1), 0, &rng.next_u64().to_le_bytes()).is_ok())
            .count();
        // Expected: 1e6 / 2^32, one in 4295 seeds; this seed is not among them.
        assert_eq!(passed, 0);
    }

    #[test]
    fn equal_entries_at_different_addresses_look_unrelated() {
        let codec = EntryCodec::new(Integrity::Mac, 1);
        let mut seen = std::collections::BTreeSet::new();
        for lpn in 0..1000 {
            let entry = codec.encode(Lpn(lpn), Ppn(42), 0);
            assert!(seen.insert(entry.bytes()[..4].to_vec()));
        }
        assert_eq!(Epochs::new(1000, 32).memory_bits(), 32_000);
    }
}
