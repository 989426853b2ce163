//! Option values: numbers, sizes, times and lists as fio writes them.
//!
//! Stricter than fio where fio reads something nobody meant: it takes `iodepth=4x` for 4,
//! `runtime=60sec` for 60 us and `size=1.5g` for one byte; here these are errors.

use super::examples;
use super::ini::Setting;
use crate::WorkloadError;
use lodger_core::time::RUN_PS_MAX;
use std::ops::RangeInclusive;

/// A size given absolutely or as a share of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Bytes(u64),
    Percent(u64),
}

/// The default of fio's `kb_base`.
pub(super) const KB_BASE: u64 = 1024;

/// Splits leading decimal digits, or `0x` and hexadecimal ones, from what follows them.
fn number_and_suffix(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let hex = text.strip_prefix("0x").or(text.strip_prefix("0X"));
    let (digits, radix) = hex.map_or((text, 10), |hex| (hex, 16));
    let end = digits
        .find(|c: char| !c.is_digit(radix))
        .unwrap_or(digits.len());
    let number = u64::from_str_radix(&digits[..end], radix).ok()?;
    Some((number, digits[end..].trim()))
}

/// A whole number without a unit.
pub(super) fn whole(text: &str) -> Option<u64> {
    number_and_suffix(text).and_then(|(n, suffix)| suffix.is_empty().then_some(n))
}

/// A share of 100, with or without its sign.
pub(super) fn percent(text: &str) -> Option<u64> {
    whole(text.strip_suffix('%').unwrap_or(text)).filter(|percent| *percent <= 100)
}

/// A number of bytes. `k`, `kb` and `kib` are all 1024 unless `kb_base` is 1000, where only `kib`
/// is.
///
/// fio itself reads `kib` as 1000 while `kb_base` is 1024, for the sake of old job files. A job
/// file that says `KiB` means it, so that is not imitated.
pub(super) fn bytes(text: &str, kb_base: u64) -> Option<u64> {
    let (number, suffix) = number_and_suffix(text)?;
    let suffix = suffix.to_ascii_lowercase();
    let (unit, base) = match suffix.strip_suffix("ib") {
        Some(unit) if !unit.is_empty() => (unit, 1024),
        _ => (suffix.strip_suffix('b').unwrap_or(&suffix), kb_base),
    };
    let power = ["", "k", "m", "g", "t", "p"]
        .iter()
        .position(|u| *u == unit)?;
    base.checked_pow(power as u32)
        .and_then(|scale| number.checked_mul(scale))
}

/// A time in picoseconds; a number without a unit is in `default` units (picoseconds each).
pub(super) fn time_ps(text: &str, default: u64) -> Option<u64> {
    let (number, unit) = number_and_unit_ps(text, default)?;
    (number.checked_mul(unit)).filter(|time_ps| *time_ps <= RUN_PS_MAX)
}

/// Whether it is a time, and longer than a run may last.
pub(super) fn is_too_long(text: &str, default: u64) -> bool {
    number_and_unit_ps(text, default).is_some() && time_ps(text, default).is_none()
}

fn number_and_unit_ps(text: &str, default: u64) -> Option<(u64, u64)> {
    let (number, suffix) = number_and_suffix(text)?;
    let unit = match suffix.to_ascii_lowercase().as_str() {
        "" => default,
        "us" | "usec" => 1_000_000,
        "ms" | "msec" => 1_000_000_000,
        "s" => 1_000_000_000_000,
        "m" => 60_000_000_000_000,
        "h" => 3_600_000_000_000_000,
        "d" => 86_400_000_000_000_000,
        _ => return None,
    };
    Some((number, unit))
}

/// A finite number.
pub(super) fn float(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|x: &f64| x.is_finite())
}

/// As long as a run may last.
pub(super) const TIME_MAX: &str = "a time of at most 200 days";

impl Setting {
    /// The value, empty where the option has none.
    pub(super) fn text(&self) -> &str {
        self.value.as_deref().unwrap_or("").trim()
    }

    /// The error that this option's value is not what is allowed; the hint says what would be.
    pub(super) fn must(&self, allowed: &str) -> WorkloadError {
        let found = match self.value {
            Some(_) => format!("found `{}`", self.text()),
            None => "found no value".to_owned(),
        };
        let error = self.error(format!("`{}` must be {allowed}, {found}", self.key));
        match examples::hint(&self.key, self.text(), allowed) {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }

    /// An error blamed on this option's line.
    pub(super) fn error(&self, message: impl Into<String>) -> WorkloadError {
        WorkloadError::new(message).at(&self.place.file, self.place.line)
    }

    /// A whole number in a range. As in fio, `1k` is 1024 of anything, and a share may say `%`.
    pub(super) fn whole(&self, range: RangeInclusive<u64>) -> Result<u64, WorkloadError> {
        let allowed = || match *range.end() {
            u64::MAX => format!("a whole number from {}", range.start()),
            end => format!("between {} and {end}", range.start()),
        };
        let number = match *range.end() {
            100 => percent(self.text()),
            _ => bytes(self.text(), KB_BASE),
        };
        number
            .filter(|n| range.contains(n))
            .ok_or_else(|| self.must(&allowed()))
    }

    /// A boolean: 0 or 1. Without a value it is true, where fio allows that.
    pub(super) fn flag(&self) -> Result<bool, WorkloadError> {
        match (&self.value, self.text()) {
            (None, _) | (_, "1") => Ok(true),
            (_, "0") => Ok(false),
            _ => Err(self.must("0 or 1")),
        }
    }

    /// A number of bytes, a positive multiple of 512.
    pub(super) fn block_bytes(&self, text: &str, kb_base: u64) -> Result<u64, WorkloadError> {
        const ALLOWED: &str = "a multiple of 512 B between 512 and 1g";
        let is_block = |n: &u64| (512..=BLOCK_BYTES_MAX).contains(n) && n.is_multiple_of(512);
        let found = bytes(text, kb_base);
        let meant = || bytes(text, KB_BASE).filter(is_block);
        found
            .filter(is_block)
            .ok_or_else(|| match (found, meant()) {
                // `4k` looks right.
                (Some(found), Some(meant)) => {
                    let key = &self.key;
                    let what =
                        format!("found `{text}`, which is {found} B with `kb_base={kb_base}`");
                    let error = self.error(format!("`{key}` must be {ALLOWED}, {what}"));
                    error.hint(format!("for example `{key}={meant}`"))
                }
                _ => self.must(ALLOWED),
            })
    }

    /// A number of bytes with an optional unit.
    pub(super) fn bytes(&self, kb_base: u64) -> Result<u64, WorkloadError> {
        bytes(self.text(), kb_base).ok_or_else(|| self.must("a size such as `64k` or `10g`"))
    }

    /// A number of bytes, or per cent of the drive.
    pub(super) fn extent(&self, kb_base: u64) -> Result<Extent, WorkloadError> {
        let text = self.text();
        let extent = match text.strip_suffix('%') {
            Some(_) => percent(text).map(Extent::Percent),
            None => bytes(text, kb_base).map(Extent::Bytes),
        };
        extent.ok_or_else(|| self.must("a size such as `64k`, `10g` or `50%`"))
    }

    /// A time in picoseconds; `default` is the unit of a bare number, in picoseconds.
    pub(super) fn time_ps(&self, default: u64) -> Result<u64, WorkloadError> {
        let text = self.text();
        time_ps(text, default).ok_or_else(|| match is_too_long(text, default) {
            true => self.must(TIME_MAX),
            false => self.must("a time such as `10s` (units us, ms, s, m, h, d)"),
        })
    }

    /// Values for reads, writes and trims: what is left out after the last comma given keeps the
    /// old value, and what no comma announces is like the one before it, as in fio.
    pub(super) fn per_direction<T: Clone>(
        &self,
        old: [T; 3],
        parse: impl Fn(&str) -> Result<T, WorkloadError>,
    ) -> Result<[T; 3], WorkloadError> {
        let mut result = old;
        let mut last: Option<T> = None;
        let mut given = 0;
        for (direction, part) in self.text().split(',').enumerate() {
            if direction >= 3 {
                return Err(self.must("at most three values: reads, writes, trims"));
            }
            given = direction + 1;
            last = match part.trim() {
                "" if self.text().contains(',') => None,
                part => Some(parse(part)?),
            };
            if let Some(value) = &last {
                result[direction] = value.clone();
            }
        }
        if let Some(value) = last {
            result[given..].fill(value);
        }
        Ok(result)
    }
}

/// No drive takes larger commands; fio's own limit is 4 GiB.
const BLOCK_BYTES_MAX: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, expected) in [
            ("4096", Some(4096)),
            ("0x1000", Some(4096)),
            ("4k", Some(4096)),
            ("4K", Some(4096)),
            ("4kb", Some(4096)),
            ("4KiB", Some(4096)),
            (" 4 k ", Some(4096)),
            ("1m", Some(1 << 20)),
            ("2g", Some(2 << 30)),
            ("1TiB", Some(1 << 40)),
            ("3p", Some(3 << 50)),
            ("512b", Some(512)),
            ("16383p", Some(16383 << 50)),
            ("16384p", None),
            ("18446744073709551616", None),
            ("-1", None),
            ("1.5g", None),
            ("", None),
            ("k", None),
            ("4x", None),
            ("4ib", None),
            ("NaN", None),
        ] {
            assert_eq!(bytes(text, 1024), expected, "{text}");
        }
        assert_eq!(bytes("4k", 1000), Some(4000));
        assert_eq!(bytes("4kib", 1000), Some(4096));
    }

    #[test]
    fn counts_have_units_and_shares_a_percent_sign_as_in_fio() {
        let setting = |text: &str| Setting {
            key: "rwmixread".into(),
            value: Some(text.into()),
            place: crate::Place {
                file: "job.fio".into(),
                line: 1,
            },
        };
        for (text, end, expected) in [
            ("1k", 65535, Some(1024)),
            ("64k", 65535, None),
            ("2*2", 65535, None),
            ("50%", 100, Some(50)),
            ("50", 100, Some(50)),
            ("50%", 99, None),
            ("101%", 100, None),
            ("%", 100, None),
            ("1.5k", 65535, None),
        ] {
            assert_eq!(setting(text).whole(1..=end).ok(), expected, "{text}");
        }
    }

    #[test]
    fn times() {
        let s = 1_000_000_000_000;
        for (text, expected) in [
            ("10", Some(10 * s)),
            ("10us", Some(10_000_000)),
            ("10ms", Some(s / 100)),
            ("10S", Some(10 * s)),
            ("2m", Some(120 * s)),
            ("1h", Some(3600 * s)),
            ("1d", Some(86_400 * s)),
            ("1000d", None),
            ("60sec", None),
            ("1.5", None),
        ] {
            assert_eq!(time_ps(text, s), expected, "{text}");
        }
    }
}
