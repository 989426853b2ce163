//! What lies where in the file.
//!
//! ```text
//! header        4 KiB     whose file it is
//! marker        4 KiB     up to where it is synced, and whether the drive was switched off properly; behind that, how
//!                         far lists are known to be synced
//! rest, twice             what the drive keeps beside flash, in turns; at the end of the second one what the file had,
//!                         and before that 32 bytes a superblock: what of it is known to be synced
//! wear                    8 bytes a superblock: times it was erased
//! trims, twice            16 bytes a record, in turns
//! spare                   32 bytes a page: what lies in flash beside its data
//! data                    4 KiB a page
//! protected, twice        pages that a power-protected buffer, or its log, holds, in turns; only of drives with one
//! window                  the bytes of the byte window; only of drives with one, and in a file of its own
//! ```
//!
//! All of it is little endian. The file is sparse: what was never written takes no room.

use super::inventory::Inventory;
use super::protected::ENTRY;
use lodger_core::DriveSpec;
use lodger_core::device::Spare;
use lodger_core::ftl::{Oob, Owner, Stream, Trim};
use lodger_core::ids::Ppn;
use lodger_core::nand::Geometry;

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Bytes of what lies beside a page.
pub const SPARE: u64 = 32;
/// Bytes of a superblock's wear.
pub const WEAR: u64 = 8;
/// Bytes of a record of a trim.
pub const TRIM: u64 = 16;
/// Bytes of a note of what is known to be synced: they divide a sector.
pub const NOTE: u64 = 32;
/// Where the marker is.
pub const MARKER_AT: u64 = PAGE;
const REST_AT: u64 = 2 * PAGE;
/// Room for what is kept beside: far more than any drive needs.
pub const REST_BYTES_MAX: u64 = 256 << 20;
const ALIGNMENT: u64 = 1 << 20;
/// Protected pages beyond four times what buffer or log hold.
const ENTRIES_FEW: u64 = 1024;

/// Where everything is.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub superblocks: u32,
    pub superblock_slots: u32,
    wear_at: u64,
    trims_at: u64,
    trims_bytes: u64,
    spare_at: u64,
    data_at: u64,
    protected_at: u64,
    protected_bytes: u64,
    window_at: u64,
    pub end: u64,
}

impl Layout {
    pub fn new(spec: &DriveSpec) -> Self {
        let geometry = Geometry::new(&spec.nand);
        let (superblocks, superblock_slots) = (geometry.superblocks, geometry.superblock_slots);
        let slots = u64::from(superblocks) * u64::from(superblock_slots);
        let wear_at = REST_AT + 2 * REST_BYTES_MAX;
        let trims_at = wear_at + (u64::from(superblocks) * WEAR).next_multiple_of(PAGE);
        // A list is written anew when half of it may be needless; at most one for each page is needed.
        let trims = 2 * (spec.capacity_bytes / PAGE) + (1 << 20);
        let trims_bytes = (PAGE + trims * TRIM).next_multiple_of(PAGE);
        let spare_at = trims_at + 2 * trims_bytes;
        let data_at = (spare_at + slots * SPARE).next_multiple_of(ALIGNMENT);
        let protected_at = data_at + slots * PAGE;
        let buffer = &spec.roles.write_buffer;
        let holds_bytes = match spec.tiers.survives_power_cut(buffer.tier) {
            true => buffer.bytes,
            false => buffer.log_bytes,
        };
        let protected_bytes = match holds_bytes {
            0 => 0,
            // A list is written anew when three quarters of it are needless.
            bytes => PAGE + (4 * bytes / PAGE + ENTRIES_FEW) * ENTRY,
        };
        let protected_bytes = protected_bytes.next_multiple_of(PAGE);
        let window_at = protected_at + 2 * protected_bytes;
        let window = spec.roles.window.as_ref();
        Layout {
            superblocks,
            superblock_slots,
            wear_at,
            trims_at,
            trims_bytes,
            spare_at,
            data_at,
            protected_at,
            protected_bytes,
            window_at,
            end: window_at + window.map_or(0, |window| window.bytes),
        }
    }

    /// Where the byte window is, and how long; `None`: the drive has none.
    pub fn window(&self) -> Option<(u64, u64)> {
        let bytes = self.end - self.window_at;
        (bytes > 0).then_some((self.window_at, bytes))
    }

    pub fn rest(which: bool) -> u64 {
        REST_AT + u64::from(which) * REST_BYTES_MAX
    }

    /// What the file had ([`super::inventory`]).
    pub fn inventory(&self) -> u64 {
        self.wear_at - Inventory::bytes(self.superblocks)
    }

    /// Where it is noted what of superblocks is known to be synced ([`super::ledger`]), and how long that is.
    pub fn notes_of_superblocks(&self) -> (u64, u64) {
        let bytes = u64::from(self.superblocks) * NOTE;
        let end = self.inventory() / PAGE * PAGE;
        ((end - bytes) / PAGE * PAGE, bytes)
    }

    pub fn note_of_superblock(&self, superblock: u32) -> u64 {
        self.notes_of_superblocks().0 + u64::from(superblock) * NOTE
    }

    /// Where it is noted how far a list is known to be synced: in the marker's page, which is written with each sync anyway.
    pub fn note_of_list(list: u64) -> u64 {
        MARKER_AT + (1 + list) * NOTE
    }

    pub fn wear(&self, superblock: u32) -> u64 {
        self.wear_at + u64::from(superblock) * WEAR
    }

    pub fn trims(&self, which: bool) -> u64 {
        self.trims_at + u64::from(which) * self.trims_bytes
    }

    /// Records that there is room for.
    pub fn trims_max(&self) -> u64 {
        (self.trims_bytes - PAGE) / TRIM
    }

    pub fn spare(&self, ppn: Ppn) -> u64 {
        self.spare_at + u64::from(ppn.0) * SPARE
    }

    pub fn data(&self, ppn: Ppn) -> u64 {
        self.data_at + u64::from(ppn.0) * PAGE
    }

    pub fn first(&self, superblock: u32) -> Ppn {
        Ppn(superblock * self.superblock_slots)
    }

    pub fn all_data(&self) -> (u64, u64) {
        (self.data_at, self.protected_at - self.data_at)
    }

    pub fn protected(&self, which: bool) -> u64 {
        self.protected_at + u64::from(which) * self.protected_bytes
    }

    /// Pages that there is room for in a list of those that are protected.
    pub fn protected_max(&self) -> u64 {
        self.protected_bytes.saturating_sub(PAGE) / ENTRY
    }

    pub fn all_protected(&self) -> (u64, u64) {
        (self.protected_at, 2 * self.protected_bytes)
    }
}

/// What the file says of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub spare: Spare,
    pub stream: Stream,
    /// Sequence number of the program operation.
    pub unit: u32,
    pub settled_to: u32,
    /// Check of the data.
    pub data: u32,
    /// Syncs before it was written.
    pub epoch: u32,
}

/// So that nothing but zeros is what zeros say.
const SIGN: u16 = 0x4c64;

fn checked(bytes: &[u8], place: u64) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(bytes);
    hasher.update(&place.to_le_bytes());
    hasher.finalize()
}

/// The numbers of 4 bytes that something consists of.
fn words<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let (chunks, _) = bytes.as_chunks();
    std::array::from_fn(|at| chunks.get(at).map_or(0, |word| u32::from_le_bytes(*word)))
}

fn bytes_of<const B: usize>(words: &[u32]) -> [u8; B] {
    let mut bytes = [0; B];
    let (chunks, _) = bytes.as_chunks_mut();
    for (chunk, word) in chunks.iter_mut().zip(words) {
        *chunk = word.to_le_bytes();
    }
    bytes
}

impl Record {
    pub fn encode(&self, ppn: Ppn) -> [u8; SPARE as usize] {
        let signs = u32::from(SIGN) << 16 | u32::from(self.spare.lost) << 8 | self.stream as u32;
        let oob = self.spare.oob;
        let (owner, sequence) = (oob.owner.bits(), oob.sequence);
        let mut words = [
            owner,
            sequence,
            self.unit,
            self.settled_to,
            self.data,
            self.epoch,
            signs,
            0,
        ];
        let bytes: [u8; SPARE as usize] = bytes_of(&words);
        words[7] = checked(&bytes[..28], ppn.0.into());
        bytes_of(&words)
    }

    /// `Ok(None)`: nothing was written there.
    ///
    /// # Errors
    /// What is there is damaged.
    pub fn decode(bytes: &[u8], ppn: Ppn) -> Result<Option<Self>, ()> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let [owner, sequence, unit, settled_to, data, epoch, signs, check] = words(bytes);
        let stream = Stream::ALL.get((signs & 0xff) as usize).ok_or(())?;
        if checked(&bytes[..28], ppn.0.into()) != check || signs >> 16 != u32::from(SIGN) {
            return Err(());
        }
        let owner = Owner::from_bits(owner);
        Ok(Some(Record {
            spare: Spare {
                oob: Oob { owner, sequence },
                lost: (signs >> 8) as u8,
            },
            stream: *stream,
            unit,
            settled_to,
            data,
            epoch,
        }))
    }
}

/// A record of a trim, in a list of that generation.
pub fn encode_trim(trim: &Trim, generation: u32) -> [u8; TRIM as usize] {
    let mut words = [trim.from, trim.end, trim.sequence, 0];
    let bytes: [u8; TRIM as usize] = bytes_of(&words);
    words[3] = checked(&bytes[..12], generation.into());
    bytes_of(&words)
}

pub fn decode_trim(bytes: &[u8], generation: u32) -> Option<Trim> {
    let [from, end, sequence, check] = words(bytes);
    let trim = Trim {
        from,
        end,
        sequence,
    };
    (checked(&bytes[..12], generation.into()) == check).then_some(trim)
}

/// A number and some bits, with a check.
pub fn encode_number(number: u32, place: u64) -> [u8; WEAR as usize] {
    bytes_of(&[number, checked(&number.to_le_bytes(), place)])
}

/// Zeros are 0.
///
/// # Errors
/// What is there is damaged.
pub fn decode_number(bytes: &[u8], place: u64) -> Result<u32, ()> {
    let [number, check] = words(bytes);
    let is_good = number == 0 && check == 0 || checked(&number.to_le_bytes(), place) == check;
    is_good.then_some(number).ok_or(())
}

/// Some numbers, with a check of them and of their place.
pub fn encode_words(words: [u32; 4], place: u64) -> [u8; SPARE as usize] {
    let [a, b, c, d] = words;
    let mut all = [a, b, c, d, 0, 0, 0, 0];
    let bytes: [u8; SPARE as usize] = bytes_of(&all);
    all[7] = checked(&bytes[..28], place);
    bytes_of(&all)
}

/// `None`: they are not there, or not whole.
pub fn decode_words(bytes: &[u8], place: u64) -> Option<[u32; 4]> {
    let [a, b, c, d, .., check] = words::<8>(bytes);
    (checked(&bytes[..28], place) == check).then_some([a, b, c, d])
}

/// Up to where the file is synced, and whether the drive was switched off properly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marker {
    pub epoch: u32,
    pub is_clean: bool,
}

impl Marker {
    pub const BYTES: usize = 12;

    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut words = [self.epoch, self.is_clean.into(), 0];
        let bytes: [u8; Self::BYTES] = bytes_of(&words);
        words[2] = checked(&bytes[..8], MARKER_AT);
        bytes_of(&words)
    }

    /// One that is not there, or torn, says that nothing is certain.
    pub fn decode(bytes: &[u8]) -> Self {
        let [epoch, is_clean, check] = words(bytes);
        match checked(&bytes[..8], MARKER_AT) == check {
            true => Marker {
                epoch,
                is_clean: is_clean == 1,
            },
            false => Marker::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodger_core::ids::Lpn;

    #[test]
    fn records_say_what_was_written_at_their_place_alone_and_damage_is_seen() {
        let record = Record {
            spare: Spare {
                oob: Oob {
                    owner: Owner::data(Lpn(77)),
                    sequence: 9,
                },
                lost: 3,
            },
            stream: Stream::Gc,
            unit: 12,
            settled_to: 8,
            data: 0xdead_beef,
            epoch: 4,
        };
        let bytes = record.encode(Ppn(5));
        assert_eq!(Record::decode(&bytes, Ppn(5)), Ok(Some(record)));
        assert_eq!(Record::decode(&bytes, Ppn(6)), Err(()));
        assert_eq!(Record::decode(&[0; 32], Ppn(5)), Ok(None));
        for bit in 0..256 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Record::decode(&damaged, Ppn(5)), Err(()), "bit {bit}");
        }
        let trim = Trim {
            from: 1,
            end: 9,
            sequence: 7,
        };
        let bytes = encode_trim(&trim, 2);
        assert_eq!(decode_trim(&bytes, 2), Some(trim));
        assert_eq!(decode_trim(&bytes, 3), None);
        assert_eq!(decode_trim(&[0; 16], 1), None);
        let marker = Marker {
            epoch: 3,
            is_clean: true,
        };
        assert_eq!(Marker::decode(&marker.encode()), marker);
        assert_eq!(Marker::decode(&[0; 12]), Marker::default());
        assert_eq!(decode_number(&encode_number(8, 40), 40), Ok(8));
        assert_eq!(decode_number(&encode_number(8, 40), 48), Err(()));
        assert_eq!(decode_number(&[0; 8], 40), Ok(0));
    }
}
