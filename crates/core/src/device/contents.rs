//! What the drive's sectors hold. The model moves data; what the data is, is a parameter: nothing
//! (fast), version tags or bytes (tests).

use super::spare::{Programmed, Spare};
use crate::controller::PageBytes;
use crate::ftl::{Owned, Trim};
use crate::ids::{BufferSlot, Lpn, Ppn};
use crate::spec::{ENTRIES_PER_TRANSLATION_PAGE, SLOT_BYTES};
use serde::{Deserialize, Serialize};

/// Where a page's data is taken from.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A slot of the write buffer.
    Buffer(BufferSlot),
    /// A physical page of the flash.
    Flash(Ppn),
    /// The page was never written, or trimmed.
    Unwritten,
}

/// Physical pages of a translation page's entries; `u32::MAX`: no data.
pub type MapEntries = [u32; ENTRIES_PER_TRANSLATION_PAGE as usize];

/// Follows the data through the drive.
pub trait Contents {
    /// Whether pages have bytes, which then really stand in host memory that is kept as bytes, where the
    /// host can change them. Contents without follow what the drive does only inside it.
    const HAS_BYTES: bool = false;

    /// Whether they want to hear of physical pages that nothing can be read from any more ([`Contents::discard`]).
    const HEARS_OF_DEAD: bool = false;

    /// Whether what translation pages say in flash is followed, too.
    const FOLLOWS_MAP: bool = false;

    /// What a request brings, and what is read for it: data, or where the host has it. The drive keeps it with
    /// the request, from its submission to its completion.
    type Payload: Clone + Default;

    /// The payload of a request, or of a call of the byte window, of which its host says no more than its tag.
    fn payload(tag: u32) -> Self::Payload;

    /// A command brings sectors of a page into a buffer slot. `sectors`: bit per 512 B.
    fn arrive(&mut self, payload: &mut Self::Payload, lpn: Lpn, slot: BufferSlot, sectors: u8);
    /// The sectors of `slot` that the host did not write are taken from `source`, where `lpn` is.
    fn merge(&mut self, lpn: Lpn, slot: BufferSlot, source: Source, written: u8);
    /// Sectors that arrived in `from` overwrite those of `to`.
    fn absorb(&mut self, from: BufferSlot, to: BufferSlot, sectors: u8);
    /// A buffer slot is programmed.
    fn program(&mut self, from: BufferSlot, to: Ppn);
    /// A physical page is copied; `owner`: what it holds.
    fn relocate(&mut self, owner: Owned, from: Ppn, to: Ppn);
    /// What a physical page holds was superseded or trimmed, and that has got to flash: not even a power cut
    /// brings it back, and nothing is read there before it has been erased and programmed. Pages that become so
    /// by an erase, and those of drives that lose power meanwhile, are not named.
    #[inline]
    fn discard(&mut self, _ppn: Ppn) {}
    /// Slots from `first` on are erased: nothing can be read there until they are programmed.
    #[inline]
    fn erase(&mut self, _first: Ppn, _slots: u32) {}
    /// Power failed before or while slots from `first` on were programmed: nothing can be read.
    #[inline]
    fn tear(&mut self, _first: Ppn, _slots: u32) {}
    /// A command reads sectors of a page.
    fn read(&mut self, payload: &mut Self::Payload, lpn: Lpn, source: Source, sectors: u8);

    // What lies beside the data: only for contents that keep it.

    /// Whether what lies in flash beside the data is kept, too, so that a drive can come back from it
    /// ([`super::Device::restore`]).
    #[inline]
    fn keeps_spare(&self) -> bool {
        false
    }
    /// A program operation has ended, which [`Contents::program`], [`Contents::relocate`] and
    /// [`Contents::write_map_page`] began: what each of its slots says.
    fn programmed(&mut self, _unit: &Programmed, _spare: impl Iterator<Item = Spare>) {}
    /// Records of trims that flash holds now: all that are needed, oldest first. Those with a higher sequence
    /// number than all that were told before are new.
    fn record_trims(&mut self, _trims: &[Trim]) {}

    /// A page has landed in a slot of a buffer that outlasts a loss of power, or is copied from its slot to a log that
    /// does. Program operations with a higher number than `sequence` carry it, or what is newer.
    fn protect(&mut self, _lpn: Lpn, _slot: BufferSlot, _sequence: u32) {}

    // Translation pages: only for contents that follow the map.

    /// A translation page that says this is programmed.
    fn write_map_page(&mut self, _to: Ppn, _entries: &MapEntries) {}
    /// A translation page that the drive has no newer entries of is read. `entries`: those of now;
    /// `initial`: those of the start, which a page that was never written says.
    fn read_map_page(&mut self, _from: Ppn, _entries: &MapEntries, _initial: &MapEntries) {}

    // Pages in host memory: only for contents that have bytes.

    /// The bytes of a page inside the drive.
    fn page(&self, _lpn: Lpn, _source: Source) -> PageBytes {
        [0; SLOT_BYTES as usize]
    }
    /// A buffer slot's page has come back from host memory and holds this now.
    fn set_buffered(&mut self, _slot: BufferSlot, _page: &PageBytes) {}
    /// A command reads sectors of a page that comes from host memory.
    fn read_bytes(&mut self, _: &mut Self::Payload, _lpn: Lpn, _page: &PageBytes, _sectors: u8) {}

    // The byte window. Contents that do not follow it may leave these as they are.

    /// A store puts bytes of a line into a packet that a CPU is combining. `mask`: bit per byte.
    fn combine(&mut self, _tag: u32, _packet: u32, _line: u32, _mask: u64) {}
    /// Bytes of a packet arrive in their line of the window.
    fn deliver(&mut self, _packet: u32, _line: u32, _mask: u64) {}
    /// A load, or a copy by the drive, takes bytes from the window.
    fn load(&mut self, _: &mut Self::Payload, _offset_bytes: u64, _length_bytes: u64) {}
    /// The same load finds newer bytes of a line in a packet that is not in the window yet: in a CPU's cache, or on
    /// its way. Later packets are newer.
    fn load_held(&mut self, _: &mut Self::Payload, _packet: u32, _line: u32, _mask: u64) {}
    /// A page of the window is filled from the drive.
    fn pin(&mut self, _window_slot: u32, _lpn: Lpn, _source: Source) {}
    /// A page of the window is written: it enters a buffer slot.
    fn unpin(&mut self, _window_slot: u32, _slot: BufferSlot) {}
    /// Bytes of the window are lost: power failed, and they could not be saved.
    fn lose(&mut self, _offset_bytes: u64, _length_bytes: u64) {}
}

/// No contents: timing only.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default)]
pub struct NoContents;

impl Contents for NoContents {
    type Payload = ();

    #[inline]
    fn payload(_: u32) {}
    #[inline]
    fn arrive(&mut self, (): &mut (), _: Lpn, _: BufferSlot, _: u8) {}
    #[inline]
    fn merge(&mut self, _: Lpn, _: BufferSlot, _: Source, _: u8) {}
    #[inline]
    fn absorb(&mut self, _: BufferSlot, _: BufferSlot, _: u8) {}
    #[inline]
    fn program(&mut self, _: BufferSlot, _: Ppn) {}
    #[inline]
    fn relocate(&mut self, _: Owned, _: Ppn, _: Ppn) {}
    #[inline]
    fn read(&mut self, (): &mut (), _: Lpn, _: Source, _: u8) {}
}
