//! Sizes as they are typed: a number and its unit.

use crate::error::Error;

const UNITS: [(&str, u64); 10] = [
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
];

/// Bytes of `text`, the value of `option`. `also` names what else is allowed, such as "`off`".
///
/// # Errors
/// If there is no unit, no number, or the number is negative, not whole or above 2^64 - 1 bytes.
pub fn parse(option: &str, text: &str, also: Option<&str>) -> Result<u64, Error> {
    let or = also.map_or(String::new(), |word| format!(", or {word}"));
    let wrong = |what: &str| {
        Error::input(format!(
            "`{option}` {what}, found `{}`",
            text.escape_debug()
        ))
        .hint("units are B, kB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB (of 1024)")
    };
    let form = || {
        let error = wrong(&format!(
            "must be a size with its unit, such as `64MiB`{or}"
        ));
        match meant(option, text) {
            Some(meant) => error.hint(format!("did you mean `{meant}`?")),
            None => error,
        }
    };
    let trimmed = text.trim();
    if trimmed.starts_with('-') {
        return Err(wrong("must not be negative"));
    }
    // Nothing is nothing in any unit.
    if trimmed == "0" {
        return Ok(0);
    }
    let unit_at = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .ok_or_else(form)?;
    let (number, unit) = trimmed.split_at(unit_at);
    let unit = unit.trim_start();
    let (_, scale) = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(form)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return Err(form());
    }
    let too_large = || wrong("must be below 2^64 bytes");
    let whole: u128 = whole.parse().map_err(|_| too_large())?;
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 12 {
        return Err(wrong("must be a whole number of bytes"));
    }
    let power = 10u128.pow(fraction.len() as u32);
    let part = fraction.parse::<u128>().unwrap_or(0) * u128::from(*scale);
    if !part.is_multiple_of(power) {
        return Err(wrong("must be a whole number of bytes"));
    }
    let total = whole
        .checked_mul(u128::from(*scale))
        .and_then(|bytes| bytes.checked_add(part / power))
        .ok_or_else(too_large)?;
    u64::try_from(total).map_err(|_| too_large())
}

/// A bare number above is one of bytes, and not of mebibytes: 64 GiB are more than the map of any drive.
const HMB_MIB_MAX: u64 = 64 << 10;

/// The size that fio's `32m` and `32mib` stand for, and what Linux calls `max_host_mem_size_mb=32`: host memory is counted in
/// powers of 1024. A bare number of anything else is one of bytes, as in fio.
fn meant(option: &str, text: &str) -> Option<String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let unit = unit.trim().to_ascii_lowercase();
    let unit = match unit
        .strip_suffix("ib")
        .or(unit.strip_suffix('b'))
        .unwrap_or(&unit)
    {
        "k" => "KiB",
        "m" => "MiB",
        "" if digits.is_none() && option.starts_with("--hmb") => match number.parse::<u64>() {
            // Nobody means hundreds of gigabytes of his memory.
            Ok(count) if count > HMB_MIB_MAX => "B",
            _ => "MiB",
        },
        "" if digits.is_none() => "B",
        "g" => "GiB",
        "t" => "TiB",
        _ => return None,
    };
    number.parse::<u64>().ok()?;
    Some(format!("{number}{unit}"))
}

/// Bytes for people: `38 MiB`, `37.5 MiB`, `512 B`. A tenth of the unit is told where there is one: 31.98 MiB are
/// `32 MiB`.
#[must_use]
pub fn show(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let tenths = |power: usize| (bytes as f64 * 10.0 / (1u64 << (10 * power)) as f64).round();
    let mut power = (bytes.max(1).ilog2() / 10) as usize;
    // What rounds to 1024 is one of the next unit.
    if power + 1 < units.len() && tenths(power) >= 10240.0 {
        power += 1;
    }
    format!("{} {}", tenths(power) / 10.0, units[power])
}

/// Bytes for people, to the last: `4097 MiB`, where [`show`] has `4 GiB`. For what is beside a limit, and must not look as if
/// it were within.
#[must_use]
pub fn show_exact(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = match bytes {
        0 => 0,
        _ => (bytes.trailing_zeros() / 10) as usize,
    };
    format!("{} {}", bytes >> (10 * power), units[power])
}

/// Bytes of a drive, which is sold by powers of 1000: `480 GB`, `512 MiB`.
#[must_use]
pub fn show_decimal(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) && bytes < 1 << 30 {
        return show(bytes);
    }
    match bytes {
        1_000_000_000_000.. => format!("{:.2} TB", bytes as f64 / 1e12),
        _ => format!("{:.0} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_exact() {
        let of = |text: &str| parse("--hmb", text, Some("`off`"));
        assert_eq!(of("64MiB").unwrap(), 64 << 20);
        assert_eq!(of(" 1.5 GiB ").unwrap(), 3 << 29);
        assert_eq!(of("480GB").unwrap(), 480_000_000_000);
        assert_eq!(of("0B").unwrap(), 0);
        assert_eq!(of("0").unwrap(), 0);
        assert_eq!(of("18446744073709551615B").unwrap(), u64::MAX);
        for wrong in [
            "",
            "64",
            "MiB",
            "64Mb",
            "-1MiB",
            "1e3B",
            "NaN",
            "0.1B",
            "18446744073709551616B",
            "99999999999999999999999999999999999999999B",
            "16777216TiB",
            "1..5MiB",
            "\u{e9}",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_size_as_others_write_it_gets_the_one_that_is_meant() {
        let hint = |text: &str| format!("{:?}", parse("--hmb", text, None).unwrap_err());
        for (typed, wanted) in [
            ("32m", "`32MiB`"),
            ("32 Mib", "`32MiB`"),
            ("32", "`32MiB`"),
            ("1g", "`1GiB`"),
            ("65536", "`65536MiB`"),
            ("843776", "`843776B`"),
        ] {
            assert!(hint(typed).contains(wanted), "{typed}: {}", hint(typed));
        }
        for typed in ["", "b", "32 b", "x", "99999999999999999999"] {
            assert!(!hint(typed).contains("did you mean"), "{typed}");
        }
    }

    #[test]
    fn sizes_are_shown_short() {
        assert_eq!(show(0), "0 B");
        assert_eq!(show(1023), "1023 B");
        assert_eq!(show(38 << 20), "38 MiB");
        assert_eq!(show(3 << 19), "1.5 MiB");
        assert_eq!(show(u64::MAX), "16 EiB");
        assert_eq!(show((32 << 20) - 20_000), "32 MiB");
        assert_eq!(show((1 << 20) - 1), "1 MiB");
        assert_eq!(show(1100), "1.1 KiB");
        assert_eq!(show_exact(4097 << 20), "4097 MiB");
        assert_eq!(show_exact(4 << 30), "4 GiB");
        assert_eq!(show_exact((4 << 30) + 1), "4294967297 B");
        assert_eq!(
            [0, 1 << 60, u64::MAX].map(show_exact),
            ["0 B", "1 EiB", "18446744073709551615 B"]
        );
    }
}
