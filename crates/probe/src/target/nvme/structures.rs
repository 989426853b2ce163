//! What NVMe structures mean, as far as a prober needs them. A drive's bytes are hostile: what
//! cannot be is an error, and nothing here panics. Offsets are those of the NVM Express Base and NVM
//! Command Set Specifications 2.0 (Identify Controller, Identify Namespace, Host Memory Buffer -
//! Attributes Data Structure).

/// Pages of host memory in HMPRE, HMMIN and (as Linux sets CC.MPS) HSIZE, bytes.
const PAGE_BYTES: u64 = 4096;

/// Why bytes cannot be believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Nonsense {
    /// Fewer bytes than the structure has.
    #[error("{what}: only {bytes} bytes came")]
    Truncated {
        /// The structure.
        what: &'static str,
        /// Bytes there are.
        bytes: usize,
    },
    /// A value that cannot be.
    #[error("{what} says {field} is {value}, which cannot be: {why}")]
    Impossible {
        /// The structure.
        what: &'static str,
        /// The field, as the standard calls it.
        field: &'static str,
        /// Its value.
        value: u64,
        /// What speaks against it.
        why: &'static str,
    },
}

/// A structure with its name.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'static str, &'a [u8]);

impl Bytes<'_> {
    fn at(&self, start: usize, length: usize) -> Result<&[u8], Nonsense> {
        let Bytes(what, bytes) = *self;
        let end = start.saturating_add(length);
        bytes.get(start..end).ok_or(Nonsense::Truncated {
            what,
            bytes: bytes.len(),
        })
    }

    /// A little-endian number of at most eight bytes.
    fn number(&self, start: usize, length: usize) -> Result<u64, Nonsense> {
        let bytes = self.at(start, length)?.iter().rev();
        Ok(bytes.fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    /// ASCII, padded with spaces; whatever is not printable is shown as `?`.
    fn text(&self, start: usize, length: usize) -> Result<String, Nonsense> {
        let bytes = self.at(start, length)?.iter();
        let text: String = bytes
            .map(|byte| match byte {
                b' '..=b'~' => char::from(*byte),
                0 => ' ',
                _ => '?',
            })
            .collect();
        Ok(text.trim().to_owned())
    }

    fn impossible(&self, field: &'static str, value: u64, why: &'static str) -> Nonsense {
        Nonsense::Impossible {
            what: self.0,
            field,
            value,
            why,
        }
    }
}

/// Of Identify Controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// SN.
    pub serial: String,
    /// MN.
    pub model: String,
    /// FR.
    pub firmware: String,
    /// MDTS in bytes, for pages of 4 KiB, the smallest there are; `None` if there is no limit.
    pub transfer_bytes_max: Option<u64>,
    /// HMPRE, bytes; 0 if it uses no host memory.
    pub hmb_preferred_bytes: u64,
    /// HMMIN, bytes.
    pub hmb_min_bytes: u64,
    /// ONCS bit 2: it knows Dataset Management.
    pub deallocates: bool,
    /// VWC bit 0: it has a volatile write cache.
    pub volatile_write_cache: bool,
}

impl Controller {
    /// Reads the structure.
    ///
    /// # Errors
    /// If it is too short, or HMMIN is more than HMPRE.
    pub fn parse(bytes: &[u8]) -> Result<Self, Nonsense> {
        let bytes = Bytes("Identify Controller", bytes);
        let hmb_preferred_bytes = bytes.number(272, 4)? * PAGE_BYTES;
        let hmb_min_bytes = bytes.number(276, 4)? * PAGE_BYTES;
        if hmb_min_bytes > hmb_preferred_bytes {
            let pages = hmb_min_bytes / PAGE_BYTES;
            return Err(bytes.impossible("HMMIN", pages, "it is more than HMPRE"));
        }
        let mdts = bytes.number(77, 1)? as u32;
        let transfer_bytes_max = match mdts {
            0 => None,
            // From here on there is no limit that matters, and the shift stays within 64 bits.
            32.. => None,
            _ => Some(PAGE_BYTES << mdts),
        };
        Ok(Controller {
            serial: bytes.text(4, 20)?,
            model: bytes.text(24, 40)?,
            firmware: bytes.text(64, 8)?,
            transfer_bytes_max,
            hmb_preferred_bytes,
            hmb_min_bytes,
            deallocates: bytes.number(520, 2)? >> 2 & 1 == 1,
            volatile_write_cache: bytes.number(525, 1)? & 1 == 1,
        })
    }
}

/// Of Identify Namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// NSZE, bytes.
    pub capacity_bytes: u64,
    /// Data of a block in the format in use, bytes.
    pub block_bytes: u32,
    /// Metadata of a block in the format in use, bytes.
    pub metadata_bytes: u32,
}

impl Namespace {
    /// Reads the structure.
    ///
    /// # Errors
    /// If it is too short, the namespace is not there, or its format or size cannot be.
    pub fn parse(bytes: &[u8]) -> Result<Self, Nonsense> {
        let bytes = Bytes("Identify Namespace", bytes);
        let blocks = bytes.number(0, 8)?;
        if blocks == 0 {
            return Err(bytes.impossible("NSZE", 0, "there is no such namespace"));
        }
        let capacity = bytes.number(8, 8)?;
        if capacity > blocks {
            return Err(bytes.impossible("NCAP", capacity, "it is more than NSZE"));
        }
        let last = bytes.number(25, 1)?;
        if last > 63 {
            return Err(bytes.impossible("NLBAF", last, "there are 64 formats at most"));
        }
        // Bits 3:0, and above them bits 6:5.
        let flbas = bytes.number(26, 1)?;
        let format = flbas & 0xf | (flbas >> 5 & 3) << 4;
        if format > last {
            return Err(bytes.impossible("FLBAS", flbas, "there is no such format"));
        }
        let format = bytes.number(128 + 4 * format as usize, 4)?;
        let shift = format >> 16 & 0xff;
        if !(9..=16).contains(&shift) {
            return Err(bytes.impossible("LBADS", shift, "blocks have 512 B to 64 KiB"));
        }
        let sum = blocks.checked_mul(1 << shift);
        let Some(capacity_bytes) = sum.filter(|sum| i64::try_from(*sum).is_ok()) else {
            return Err(bytes.impossible("NSZE", blocks, "so many bytes cannot be addressed"));
        };
        Ok(Namespace {
            capacity_bytes,
            block_bytes: 1 << shift,
            metadata_bytes: (format & 0xffff) as u32,
        })
    }
}

/// Of Get Features 0Dh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostMemory {
    /// EHM: the drive may use it.
    pub enabled: bool,
    /// HSIZE, bytes; meaningful only when enabled.
    pub granted_bytes: u64,
}

impl HostMemory {
    /// Reads dword 0 of the completion and the attributes, for a controller that asks for
    /// `preferred_bytes`.
    ///
    /// # Errors
    /// If they are too short, or it has none, or more than it asked for, while enabled.
    pub fn parse(result: u32, bytes: &[u8], preferred_bytes: u64) -> Result<Self, Nonsense> {
        let bytes = Bytes("Get Features, host memory buffer,", bytes);
        let pages = bytes.number(0, 4)?;
        let enabled = result & 1 == 1;
        let granted_bytes = pages * PAGE_BYTES;
        if enabled && pages == 0 {
            return Err(bytes.impossible("HSIZE", pages, "it is enabled"));
        }
        if enabled && granted_bytes > preferred_bytes {
            return Err(bytes.impossible("HSIZE", pages, "it is more than HMPRE"));
        }
        Ok(HostMemory {
            enabled,
            granted_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        /// Any bytes, of any length: a value within its bounds, or an error.
        #[test]
        fn no_bytes_make_it_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..700),
            shift in 0u8..20,
            result: u32,
            preferred_bytes: u64,
        ) {
            let _ = HostMemory::parse(result, &bytes, preferred_bytes);
            if let Ok(controller) = Controller::parse(&bytes) {
                prop_assert!(controller.hmb_min_bytes <= controller.hmb_preferred_bytes);
            }
            let _ = Namespace::parse(&bytes);
            // Near what is sane, so that the later checks are reached, too.
            if bytes.len() > 400 {
                bytes[5..16].fill(0);
                (bytes[25], bytes[26]) = (bytes[25] % 70, bytes[26] % 8);
                for format in 0..64 {
                    bytes[128 + 4 * format + 2] = shift;
                }
                if let Ok(namespace) = Namespace::parse(&bytes) {
                    prop_assert!(namespace.block_bytes.is_power_of_two());
                    prop_assert!(namespace.capacity_bytes <= i64::MAX as u64);
                    let block_bytes = u64::from(namespace.block_bytes);
                    prop_assert!(namespace.capacity_bytes.is_multiple_of(block_bytes));
                }
            }
        }
    }
}
