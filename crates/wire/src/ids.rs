//! Numbers that must not be mistaken for each other.

macro_rules! ids {
    ($($(#[$about:meta])* $name:ident($number:ty);)*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $number);

        impl std::fmt::Display for $name {
            fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(to)
            }
        }
    )*};
}

ids! {
    /// Identifier of a submission or completion queue; 0 is the admin queue (Base 2.0 §3.3.1).
    QueueId(u16);
    /// What a host names a command by while it is outstanding in its queue (Base 2.0 §3.3.3.1).
    CommandId(u16);
    /// Identifier of a namespace (Base 2.0 §3.2.1).
    NamespaceId(u32);
    /// Identifier of a controller of a subsystem (Base 2.0 §3.1.1, field CNTLID).
    ControllerId(u16);
    /// A logical block's address (NVM Command Set 1.0 §2.1).
    Lba(u64);
}

impl QueueId {
    /// The admin submission and completion queue.
    pub const ADMIN: QueueId = QueueId(0);
}

impl NamespaceId {
    /// No namespace.
    pub const NONE: NamespaceId = NamespaceId(0);
    /// All namespaces that the controller has (the broadcast value).
    pub const ALL: NamespaceId = NamespaceId(u32::MAX);

    /// Whether it can be that of one namespace.
    #[must_use]
    pub fn is_one(self) -> bool {
        self != Self::NONE && self.0 < 0xffff_ffff
    }
}

/// Size of memory pages, a power of two from 4 KiB to 128 MiB (Base 2.0 §3.1.3.5, field CC.MPS).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageSize(u8);

impl PageSize {
    /// 4 KiB, what nearly every host uses.
    pub const MIN: PageSize = PageSize(0);

    /// From the field's value: the size is 2 to the power of 12 + `mps`.
    #[must_use]
    pub const fn from_mps(mps: u8) -> Option<Self> {
        if mps <= 15 { Some(PageSize(mps)) } else { None }
    }

    /// The field's value.
    #[must_use]
    pub const fn mps(self) -> u8 {
        self.0
    }

    /// Bytes of a page.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        1 << (12 + self.0)
    }

    /// Where in its page an address lies, bytes.
    #[must_use]
    pub const fn offset(self, address: u64) -> u64 {
        address & (self.bytes() - 1)
    }

    /// Whether an address is that of a page.
    #[must_use]
    pub const fn is_aligned(self, address: u64) -> bool {
        self.offset(address) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_4_kib_to_128_mib() {
        assert_eq!(PageSize::MIN.bytes(), 4096);
        assert_eq!(PageSize::from_mps(15).map(PageSize::bytes), Some(128 << 20));
        assert_eq!(PageSize::from_mps(16), None);
        assert_eq!(PageSize::MIN.offset(0x1_2345), 0x345);
        assert!(PageSize::MIN.is_aligned(0x2000));
    }

    #[test]
    fn neither_none_nor_all_is_a_namespace() {
        assert!(!NamespaceId::NONE.is_one());
        assert!(!NamespaceId::ALL.is_one());
        assert!(NamespaceId(1).is_one());
    }
}
