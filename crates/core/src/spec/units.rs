//! Quantities with units, as text: sizes, times, rates. All arithmetic is exact.
//!
//! `"1.72ms"` is 1 720 000 000 ps, not the nearest double; what does not come out whole in the
//! base unit (bytes, picoseconds, bytes per second, transfers per second) is refused.

/// A unit's name and how many base units it is.
type Unit = (&'static str, u64);

const SIZES: &[Unit] = &[
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("KB", 1_000),
    ("B", 1),
];

const TIMES: &[Unit] = &[
    ("s", 1_000_000_000_000),
    ("ms", 1_000_000_000),
    ("us", 1_000_000),
    ("µs", 1_000_000),
    // With the Greek letter, as keyboards have it, in place of the micro sign.
    ("\u{3bc}s", 1_000_000),
    ("ns", 1_000),
    ("ps", 1),
];

const RATES: &[Unit] = &[
    ("GB/s", 1_000_000_000),
    ("MB/s", 1_000_000),
    ("kB/s", 1_000),
    ("KB/s", 1_000),
    ("B/s", 1),
    ("GiB/s", 1 << 30),
    ("MiB/s", 1 << 20),
    ("KiB/s", 1 << 10),
];

const TRANSFERS: &[Unit] = &[
    ("GT/s", 1_000_000_000),
    ("MT/s", 1_000_000),
    ("kT/s", 1_000),
    ("T/s", 1),
];

/// Why a quantity could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitError {
    /// Not a number with one of the units.
    Form,
    /// The number is negative.
    Negative,
    /// Above 2^64 - 1 base units.
    TooLarge,
    /// Not a whole number of base units.
    Fraction,
}

/// Bytes in e.g. `480GB` (decimal) or `38MiB` (binary).
pub(super) fn size(text: &str) -> Result<u64, UnitError> {
    quantity(text, SIZES)
}

/// Picoseconds in e.g. `58us`.
pub(super) fn time(text: &str) -> Result<u64, UnitError> {
    quantity(text, TIMES)
}

/// Bytes per second in e.g. `3.2GB/s`.
pub(super) fn rate(text: &str) -> Result<u64, UnitError> {
    quantity(text, RATES)
}

/// Transfers per second in e.g. `533MT/s`.
pub(super) fn transfers(text: &str) -> Result<u64, UnitError> {
    quantity(text, TRANSFERS)
}

fn quantity(text: &str, units: &[Unit]) -> Result<u64, UnitError> {
    let text = text.trim();
    let unit_at = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
        .ok_or(UnitError::Form)?;
    let (number, unit) = text.split_at(unit_at);
    let unit = unit.trim_start();
    let (_, base) = units
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or(UnitError::Form)?;
    decimal(number.trim_end(), *base)
}

/// `number` x `scale`, exactly.
pub(super) fn decimal(number: &str, scale: u64) -> Result<u64, UnitError> {
    let (negative, number) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return Err(UnitError::Form);
    }
    if negative {
        return Err(UnitError::Negative);
    }
    let whole: u128 = whole.parse().map_err(|_| UnitError::TooLarge)?;
    let fraction = fraction.trim_end_matches('0');
    // 12 decimals of the largest unit (1 s) are one picosecond; more cannot come out whole
    // except for binary sizes, where 12 are plenty.
    if fraction.len() > 12 {
        return Err(UnitError::Fraction);
    }
    let power = 10u128.pow(fraction.len() as u32);
    let part: u128 = if fraction.is_empty() {
        0
    } else {
        fraction.parse().unwrap_or(0)
    };
    let part = part * u128::from(scale);
    if !part.is_multiple_of(power) {
        return Err(UnitError::Fraction);
    }
    let total = whole
        .checked_mul(u128::from(scale))
        .and_then(|w| w.checked_add(part / power))
        .ok_or(UnitError::TooLarge)?;
    u64::try_from(total).map_err(|_| UnitError::TooLarge)
}

/// Bytes as the shortest exact text, e.g. `480GB`, `38MiB`.
pub(super) fn show_size(bytes: u64) -> String {
    SIZES
        .iter()
        .filter(|(name, base)| *name != "KB" && bytes >= *base && bytes.is_multiple_of(*base))
        .map(|(name, base)| format!("{}{name}", bytes / base))
        .min_by_key(String::len)
        .unwrap_or_else(|| format!("{bytes}B"))
}

/// Picoseconds in the largest unit that needs at most three decimals, e.g. `1.72ms`.
pub(super) fn show_time(ps: u64) -> String {
    if ps == 0 {
        "0ns".to_owned()
    } else {
        shown(ps, TIMES, "ps")
    }
}

/// Bytes per second, e.g. `3.2GB/s`.
pub(super) fn show_rate(bytes_per_s: u64) -> String {
    shown(bytes_per_s, &RATES[..4], "B/s")
}

/// Transfers per second in millions, without unit, e.g. `533`.
pub(super) fn show_transfers(per_s: u64) -> String {
    with_decimals(per_s, 1_000_000)
}

fn shown(value: u64, units: &[Unit], base_name: &str) -> String {
    units
        .iter()
        .find(|(name, base)| {
            name.is_ascii()
                && value >= *base
                && (u128::from(value) * 1000).is_multiple_of(u128::from(*base))
        })
        .map_or_else(
            || format!("{value}{base_name}"),
            |(name, base)| format!("{}{name}", with_decimals(value, *base)),
        )
}

/// `value` / `base` as a decimal number; `base` is a power of ten.
fn with_decimals(value: u64, base: u64) -> String {
    let (whole, rest) = (value / base, value % base);
    if rest == 0 {
        return whole.to_string();
    }
    let digits = base.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

/// A PCIe link such as `3.0 x2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pcie {
    /// PCIe generation, 1 to 5.
    pub generation: u32,
    /// 1, 2, 4, 8 or 16.
    pub lanes: u32,
}

impl Pcie {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (generation, lanes) = text.trim().split_once(" x")?;
        let generation = match generation.trim() {
            "1.0" => 1,
            "2.0" => 2,
            "3.0" => 3,
            "4.0" => 4,
            "5.0" => 5,
            _ => return None,
        };
        let lanes = match lanes {
            "1" => 1,
            "2" => 2,
            "4" => 4,
            "8" => 8,
            "16" => 16,
            _ => return None,
        };
        Some(Self { generation, lanes })
    }

    /// Bytes per second of one direction after line coding.
    ///
    /// PCI Express Base 5.0, 4.2: 2.5 and 5 GT/s code 8 bits in 10, 8 GT/s and above 128 in 130.
    pub(super) fn bytes_per_s(self) -> u64 {
        // Bits per second of all lanes on the wire; below 2^39, so that nothing below overflows.
        let bits = match self.generation {
            1 => 2_500_000_000,
            2 => 5_000_000_000,
            generation => 8_000_000_000 << (generation - 3),
        } * u64::from(self.lanes);
        if self.generation < 3 {
            bits / 10
        } else {
            bits * 128 / 130 / 8
        }
    }

    pub(super) fn show(self) -> String {
        format!("{}.0 x{}", self.generation, self.lanes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_decimal_or_binary_by_name() {
        assert_eq!(size("480GB"), Ok(480_000_000_000));
        assert_eq!(size("38MiB"), Ok(38 << 20));
        assert_eq!(size("1.5KiB"), Ok(1536));
        assert_eq!(size("512 B"), Ok(512));
        assert_eq!(time("58us"), Ok(58_000_000));
        assert_eq!(time("58µs"), Ok(58_000_000));
        assert_eq!(time("58\u{3bc}s"), Ok(58_000_000));
        assert_eq!(time("1.72ms"), Ok(1_720_000_000));
        assert_eq!(rate("3.91GB/s"), Ok(3_910_000_000));
        assert_eq!(transfers("533MT/s"), Ok(533_000_000));
        assert_eq!(transfers("1.2GT/s"), Ok(1_200_000_000));
    }

    #[test]
    fn what_is_not_a_quantity_is_refused() {
        for text in [
            "", "GB", "480", "480 gb", "4 8GB", "0x10GB", "1e3GB", "nanGB", "1.GB", ".5GB",
        ] {
            assert_eq!(size(text), Err(UnitError::Form), "{text}");
        }
        assert_eq!(size("-1GB"), Err(UnitError::Negative));
        assert_eq!(size("1.0005kB"), Err(UnitError::Fraction));
        assert_eq!(size("18446744073709551616B"), Err(UnitError::TooLarge));
        assert_eq!(size("18446744073709551615B"), Ok(u64::MAX));
        assert_eq!(
            size(&format!("{}B", "9".repeat(80))),
            Err(UnitError::TooLarge)
        );
        assert_eq!(time("0.5ps"), Err(UnitError::Fraction));
    }

    #[test]
    fn shown_text_reads_back() {
        for bytes in [
            0,
            1,
            512,
            4096,
            964_000,
            38 << 20,
            480_000_000_000,
            480_103_981_056,
            u64::MAX,
        ] {
            assert_eq!(size(&show_size(bytes)), Ok(bytes));
        }
        for ps in [
            0,
            1,
            999,
            1_000,
            58_000_000,
            1_720_000_000,
            1_234_567_891,
            u64::MAX,
        ] {
            assert_eq!(time(&show_time(ps)), Ok(ps), "{}", show_time(ps));
        }
        assert_eq!(show_size(480_000_000_000), "480GB");
        assert_eq!(show_size(38 << 20), "38MiB");
        assert_eq!(show_time(1_720_000_000), "1.72ms");
        assert_eq!(show_time(500_000), "500ns");
        assert_eq!(show_rate(3_910_000_000), "3.91GB/s");
        assert_eq!(show_transfers(533_000_000), "533");
        assert_eq!(show_transfers(1_066_670_000), "1066.67");
    }

    #[test]
    fn pcie_rates_are_those_after_line_coding() {
        let rate = |text| Pcie::parse(text).map(Pcie::bytes_per_s);
        assert_eq!(rate("1.0 x1"), Some(250_000_000));
        assert_eq!(rate("2.0 x4"), Some(2_000_000_000));
        assert_eq!(rate("3.0 x1"), Some(984_615_384));
        assert_eq!(rate("3.0 x2"), Some(1_969_230_769));
        assert_eq!(rate("4.0 x4"), Some(7_876_923_076));
        assert_eq!(rate("5.0 x16"), Some(63_015_384_615));
        for text in [
            "3.1 x2", "6.0 x4", "3.0 x3", "3.0x2", "x2", "3.0 x", "3.0 x 2",
        ] {
            assert_eq!(rate(text), None, "{text}");
        }
    }
}
