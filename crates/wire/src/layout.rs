//! Structures of fixed size: each field stands beside its offset, and encoding, decoding and the table
//! of offsets follow from that one place. All numbers are little-endian.

/// A value with a little-endian form of fixed length.
pub trait Wire: Sized {
    /// Length, bytes.
    const BYTES: usize;

    /// Takes the value from the first [`Wire::BYTES`] of `from`.
    ///
    /// # Panics
    /// If there are fewer: lengths of structures are the program's, not a guest's.
    fn get(from: &[u8]) -> Self;

    /// Puts the value into the first [`Wire::BYTES`] of `to`.
    ///
    /// # Panics
    /// If there are fewer.
    fn put(&self, to: &mut [u8]);
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Wire for $number {
            const BYTES: usize = size_of::<$number>();

            fn get(from: &[u8]) -> Self {
                let mut bytes = [0; size_of::<$number>()];
                bytes.copy_from_slice(&from[..Self::BYTES]);
                <$number>::from_le_bytes(bytes)
            }

            fn put(&self, to: &mut [u8]) {
                to[..Self::BYTES].copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, u128);

impl<T: Wire, const N: usize> Wire for [T; N] {
    const BYTES: usize = T::BYTES * N;

    fn get(from: &[u8]) -> Self {
        std::array::from_fn(|index| T::get(&from[index * T::BYTES..]))
    }

    fn put(&self, to: &mut [u8]) {
        for (index, item) in self.iter().enumerate() {
            item.put(&mut to[index * T::BYTES..]);
        }
    }
}

/// A number of `BYTES` bytes, which no integer of Rust has: 6 and 7 occur.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Short<const BYTES: usize>(u64);

impl<const N: usize> Short<N> {
    /// Largest that fits.
    pub const MAX: u64 = u64::MAX >> (64 - 8 * N as u32);

    /// The number, or the largest that fits: counters stand still at their end.
    #[must_use]
    pub const fn saturating(number: u64) -> Self {
        Short(if number > Self::MAX {
            Self::MAX
        } else {
            number
        })
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl<const N: usize> Wire for Short<N> {
    const BYTES: usize = N;

    fn get(from: &[u8]) -> Self {
        let mut bytes = [0; 8];
        bytes[..N].copy_from_slice(&from[..N]);
        Short(u64::from_le_bytes(bytes))
    }

    fn put(&self, to: &mut [u8]) {
        to[..N].copy_from_slice(&self.0.to_le_bytes()[..N]);
    }
}

/// Where a field lies in its structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the field.
    pub name: &'static str,
    /// First byte.
    pub offset: usize,
    /// Length, bytes.
    pub bytes: usize,
}

/// Whether fields follow each other and end within the structure.
pub(crate) const fn in_order(places: &[Place], bytes: usize) -> bool {
    let (mut index, mut end) = (0, 0);
    while index < places.len() {
        if places[index].offset < end {
            return false;
        }
        end = places[index].offset + places[index].bytes;
        index += 1;
    }
    end <= bytes
}

/// Defines a structure: `OFFSET => field: type`. Bytes that no field has are reserved, encoded as 0 and
/// not looked at.
macro_rules! layout {
    (
        $(#[$about:meta])*
        $vis:vis struct $name:ident: $bytes:literal {
            $($(#[$field_about:meta])* $offset:literal => $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis struct $name {
            $($(#[$field_about])* pub $field: $type,)*
        }

        impl $name {
            /// Length of the structure, bytes.
            pub const BYTES: usize = $bytes;
            /// Where each field lies, in order.
            pub const PLACES: &'static [$crate::layout::Place] = &[$($crate::layout::Place {
                name: stringify!($field),
                offset: $offset,
                bytes: <$type as $crate::layout::Wire>::BYTES,
            },)*];

            /// The structure as bytes.
            #[must_use]
            pub fn encode(&self) -> [u8; $bytes] {
                let mut to = [0; $bytes];
                $($crate::layout::Wire::put(&self.$field, &mut to[$offset..]);)*
                to
            }

            /// The structure from bytes. Every byte string is one.
            #[must_use]
            pub fn decode(from: &[u8; $bytes]) -> Self {
                Self { $($field: $crate::layout::Wire::get(&from[$offset..]),)* }
            }
        }

        impl Default for $name {
            /// All zero.
            fn default() -> Self {
                Self::decode(&[0; $bytes])
            }
        }

        impl $crate::layout::Wire for $name {
            const BYTES: usize = $bytes;

            fn get(from: &[u8]) -> Self {
                let mut bytes = [0; $bytes];
                bytes.copy_from_slice(&from[..$bytes]);
                Self::decode(&bytes)
            }

            fn put(&self, to: &mut [u8]) {
                to[..$bytes].copy_from_slice(&self.encode());
            }
        }

        const _: () = assert!($crate::layout::in_order($name::PLACES, $bytes));
    };
}
pub(crate) use layout;

/// Bits `low..low + width` of a number.
#[must_use]
pub(crate) const fn bits(number: u64, low: u32, width: u32) -> u64 {
    (number >> low) & (u64::MAX >> (64 - width))
}

/// One bit of a number.
#[must_use]
pub(crate) const fn bit(number: u64, at: u32) -> bool {
    number >> at & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    layout! {
        /// An example.
        pub struct Example: 16 {
            /// One.
            1 => one: u16,
            /// Six bytes.
            4 => six: Short<6>,
            /// Two of a kind.
            12 => pair: [u16; 2],
        }
    }

    #[test]
    fn fields_lie_where_they_are_said_to() {
        let pair = [0x0807, 0x0a09];
        let six = Short::saturating(0x0605_0403_0201);
        let example = Example {
            one: 0xbbaa,
            six,
            pair,
        };
        let bytes = example.encode();
        assert_eq!(
            bytes,
            [0, 0xaa, 0xbb, 0, 1, 2, 3, 4, 5, 6, 0, 0, 7, 8, 9, 10]
        );
        assert_eq!(Example::decode(&bytes), example);
        assert_eq!(Example::PLACES[1].bytes, 6);
        assert!(!in_order(Example::PLACES, Example::BYTES - 1));
    }

    #[test]
    fn counters_of_six_bytes_stand_still_at_their_end() {
        assert_eq!(Short::<6>::MAX, 0xffff_ffff_ffff);
        assert_eq!(Short::<6>::saturating(u64::MAX).number(), 0xffff_ffff_ffff);
        assert_eq!(Short::<7>::saturating(5).number(), 5);
    }
}
