//! Where a command's data lies in host memory, piece by piece, whichever way the host describes it.

use crate::ids::PageSize;
use crate::memory::GuestMemory;
use crate::prp::PrpRegions;
use crate::sgl::SglRegions;
use crate::status::Status;

/// A command's data pointer (DPTR, Base 2.0 §3.3.3.1), not yet followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPointer {
    /// Physical region pages (§4.1.1).
    Prp {
        /// The first page.
        prp1: u64,
        /// The second page, or a list of all but the first.
        prp2: u64,
    },
    /// A scatter gather list's first descriptor (§4.1.2).
    Sgl([u8; 16]),
}

/// A piece of a command's data: contiguous, not empty, and within all addresses. Whether memory is there shows
/// when it is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First byte; `None`: data for the host that it does not want (a bit bucket).
    pub address: Option<u64>,
    /// Length, bytes.
    pub bytes: u64,
}

/// Pieces of a command's data, in order; together as long as the data. After an error there are no more.
///
/// Lists are read as the walk goes on, into a buffer that is part of it: nothing is allocated. A list is read once,
/// so that a guest that changes it meanwhile gains nothing.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // Lives on the stack, for one walk.
pub enum Regions<M> {
    /// By pages.
    Prp(PrpRegions<M>),
    /// By descriptors.
    Sgl(SglRegions<M>),
}

impl<M: GuestMemory> Iterator for Regions<M> {
    type Item = Result<Region, Status>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Regions::Prp(regions) => regions.next(),
            Regions::Sgl(regions) => regions.next(),
        }
    }
}

impl DataPointer {
    /// The pieces of `bytes` of data that go from the host, or to it.
    pub fn regions<M: GuestMemory>(
        &self,
        memory: M,
        page: PageSize,
        bytes: u64,
        to_host: bool,
    ) -> Regions<M> {
        match self {
            DataPointer::Prp { prp1, prp2 } => {
                Regions::Prp(PrpRegions::new(memory, page, *prp1, *prp2, bytes))
            }
            DataPointer::Sgl(first) => {
                Regions::Sgl(SglRegions::new(memory, *first, bytes, to_host))
            }
        }
    }

    /// Fills `into` from the host.
    ///
    /// # Errors
    /// Those of the list, or [`Status::DATA_TRANSFER_ERROR`].
    pub fn read(
        &self,
        memory: &impl GuestMemory,
        page: PageSize,
        into: &mut [u8],
    ) -> Result<(), Status> {
        let mut rest = into;
        for region in self.regions(memory, page, rest.len() as u64, false) {
            let region = region?;
            let (part, after) = rest.split_at_mut(region.bytes as usize);
            if let Some(address) = region.address {
                memory.read(address, part)?;
            }
            rest = after;
        }
        Ok(())
    }

    /// Hands `from` to the host.
    ///
    /// # Errors
    /// Those of the list, or [`Status::DATA_TRANSFER_ERROR`]; part may then have been written.
    pub fn write(
        &self,
        memory: &impl GuestMemory,
        page: PageSize,
        from: &[u8],
    ) -> Result<(), Status> {
        self.write_padded(memory, page, from, from.len() as u64)
    }

    /// Hands `bytes` to the host: those of `from`, and then zeros if it is shorter.
    ///
    /// # Errors
    /// As [`DataPointer::write`].
    pub fn write_padded(
        &self,
        memory: &impl GuestMemory,
        page: PageSize,
        from: &[u8],
        bytes: u64,
    ) -> Result<(), Status> {
        let mut rest = from;
        for region in self.regions(memory, page, bytes, true) {
            let Region { address, bytes } = region?;
            let given = bytes.min(rest.len() as u64);
            let (part, after) = rest.split_at(given as usize);
            rest = after;
            if let Some(address) = address {
                memory.write(address, part)?;
                if given < bytes {
                    fill_with_zeros(memory, address + given, bytes - given)?;
                }
            }
        }
        Ok(())
    }
}

fn fill_with_zeros(memory: &impl GuestMemory, at: u64, bytes: u64) -> Result<(), Status> {
    const ZEROS: [u8; 4096] = [0; 4096];
    let mut done = 0;
    while done < bytes {
        let part = (bytes - done).min(ZEROS.len() as u64);
        memory.write(at + done, &ZEROS[..part as usize])?;
        done += part;
    }
    Ok(())
}
