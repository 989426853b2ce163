//! Who a physical page belongs to, in the 32 bits that out-of-band data has for it.

use crate::ids::{Lpn, TranslationPage};
use serde::{Deserialize, Serialize};

/// Packed: a logical page, a translation page or nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner(u32);

/// Unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owned {
    /// Data of a logical page.
    Data(Lpn),
    /// A page of the address map.
    Map(TranslationPage),
}

/// Bit of translation pages: a drive has at most 2^31 pages, 8 TiB (`capacity` in `spec/keys/table.rs`).
const MAP: u32 = 1 << 31;

impl Owner {
    /// Nobody: the page holds nothing, or nothing that can be read.
    pub const PADDING: Owner = Owner(u32::MAX);

    /// A logical page.
    #[inline]
    #[must_use]
    pub const fn data(lpn: Lpn) -> Self {
        Owner(lpn.0)
    }

    /// A translation page.
    #[inline]
    #[must_use]
    pub const fn map(page: TranslationPage) -> Self {
        Owner(page.0 | MAP)
    }

    /// As it is written beside a page.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Who was written beside a page.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Owner(bits)
    }

    /// Whether it is nobody.
    #[inline]
    #[must_use]
    pub fn is_padding(self) -> bool {
        self == Self::PADDING
    }

    /// Who it is; `None` for nobody.
    #[inline]
    #[must_use]
    pub fn get(self) -> Option<Owned> {
        match self.0 {
            _ if self.is_padding() => None,
            lpn if lpn & MAP == 0 => Some(Owned::Data(Lpn(lpn))),
            page => Some(Owned::Map(TranslationPage(page & !MAP))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_packed_is_unpacked() {
        for number in [0, 1, 77, MAP - 2] {
            let page = TranslationPage(number);
            assert_eq!(
                Owner::data(Lpn(number)).get(),
                Some(Owned::Data(Lpn(number)))
            );
            assert_eq!(Owner::map(page).get(), Some(Owned::Map(page)));
        }
        assert_eq!(Owner::PADDING.get(), None);
    }
}
