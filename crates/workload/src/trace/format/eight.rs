//! Eight bytes of a line at a time: digits, and where a byte stands. Reading is most of what a large trace takes.

/// The lowest bit of each byte.
const ONES: u64 = u64::from_le_bytes([1; 8]);
/// The highest bit of each byte.
const HIGH: u64 = ONES << 7;

/// A number of up to 64 bits from digits alone.
pub(crate) fn digits(field: &[u8]) -> Option<u64> {
    if field.is_empty() {
        return None;
    }
    let mut value = 0u64;
    let mut rest = field;
    // Eight digits more still fit.
    while value < 100_000_000_000
        && let Some((eight, more)) = rest.split_first_chunk()
    {
        value = value * 100_000_000 + number_of(*eight)?;
        rest = more;
    }
    for &byte in rest {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// The number that eight digits stand for.
fn number_of(digits: [u8; 8]) -> Option<u64> {
    // A digit is left as its value, anything else as more than 9. The first lies in the lowest byte.
    let values = u64::from_le_bytes(digits) ^ (ONES * u64::from(b'0'));
    // Values above 9 carry into the highest bit, or have it.
    if (values | values.wrapping_add(ONES * (0x7f - 9))) & HIGH != 0 {
        return None;
    }
    // Neighbours become one: ten times the first and the second, and so on with pairs and fours.
    let pairs = (values.wrapping_mul(10) + (values >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100) + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours.wrapping_mul(10_000) + (fours >> 32)) & 0xffff_ffff)
}

/// Where `byte` stands in a line, in order.
pub(crate) fn places(line: &[u8], byte: u8) -> Places<'_> {
    let mut places = Places {
        line,
        byte,
        next: 0,
        found: 0,
    };
    places.look_on();
    places
}

pub(crate) struct Places<'a> {
    line: &'a [u8],
    byte: u8,
    /// First byte that was not looked at.
    next: usize,
    /// The highest bit of each byte of the last eight that is one.
    found: u64,
}

impl Places<'_> {
    #[inline]
    fn look_on(&mut self) {
        while self.found == 0 && self.next < self.line.len() {
            let rest = &self.line[self.next..];
            let eight = rest.first_chunk().copied().unwrap_or_else(|| {
                // Filled up with what it is not.
                let mut eight = [!self.byte; 8];
                eight[..rest.len()].copy_from_slice(rest);
                eight
            });
            let zeros = u64::from_le_bytes(eight) ^ (ONES * u64::from(self.byte));
            // A byte of zero alone neither carries into its highest bit nor has it.
            self.found = !(((zeros & !HIGH) + !HIGH) | zeros) & HIGH;
            self.next += 8;
        }
    }
}

impl Iterator for Places<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.found == 0 {
            return None;
        }
        let at = self.next - 8 + self.found.trailing_zeros() as usize / 8;
        self.found &= self.found - 1;
        self.look_on();
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Digits mostly, and what stands beside them in the table of characters.
    fn nearly_digits() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![12 => b'0'..=b'9', 1 => any::<u8>(), 1 => b'/'..=b':'];
        prop::collection::vec(byte, 0..24)
    }

    proptest! {
        #![proptest_config(lodger_testing::config(2000))]

        #[test]
        fn digits_are_what_the_standard_library_reads(field in nearly_digits()) {
            let plain = !field.is_empty() && field.iter().all(u8::is_ascii_digit);
            let read = std::str::from_utf8(&field).ok().filter(|_| plain);
            prop_assert_eq!(digits(&field), read.and_then(|text| text.parse().ok()));
        }

        #[test]
        fn places_are_where_a_search_finds_them(
            line in prop::collection::vec(prop_oneof![b'+'..=b'.', any::<u8>()], 0..40),
            byte in prop_oneof![Just(b','), any::<u8>()],
        ) {
            let searched: Vec<usize> = (0..line.len()).filter(|&at| line[at] == byte).collect();
            prop_assert_eq!(places(&line, byte).collect::<Vec<_>>(), searched);
        }
    }

    #[test]
    fn the_largest_number_fits_and_one_more_does_not() {
        assert_eq!(digits(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(digits(b"18446744073709551616"), None);
        assert_eq!(
            digits(b"000000000000000000000000018446744073709551615"),
            Some(u64::MAX)
        );
        assert_eq!(digits(b"99999999999999999999"), None);
    }
}
