//! How numbers and foreign text are shown to people.

use lodger_core::time::{MS, NS, S, US};

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `1 request`, `2,000 requests`.
pub(crate) fn plural(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// Bytes with a binary unit: `512 B`, `4 KiB`, `190.7 GiB`.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let tenths = |value: f64| (value * 10.0).round() / 10.0;
    let mut value = n as f64 / 1024.0;
    let mut unit = 0;
    // What rounds to 1024 is one of the next unit.
    while tenths(value) >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", tenths(value), UNITS[unit])
}

/// Bytes of which each counts: in the largest unit that says it all, `4.5 KiB`, `1,040 KiB`, else as they are.
pub(crate) fn exact_bytes(n: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let tenths = u128::from(n) * 10;
    let whole = units
        .iter()
        .find(|(shift, _)| n >> shift > 0 && tenths.is_multiple_of(1 << shift));
    match whole {
        None => format!("{} B", grouped(n)),
        Some((shift, unit)) => match (tenths >> shift) as u64 {
            tenths if tenths % 10 == 0 => format!("{} {unit}", grouped(tenths / 10)),
            tenths => format!("{}.{} {unit}", grouped(tenths / 10), tenths % 10),
        },
    }
}

/// A duration in picoseconds with a decimal unit: `80.2 us`, `1.5 s`.
pub(crate) fn duration(ps: u64) -> String {
    let (unit_ps, unit) = match ps {
        0 => return "0 s".to_owned(),
        1..NS => (1, "ps"),
        NS..US => (NS, "ns"),
        US..MS => (US, "us"),
        MS..S => (MS, "ms"),
        _ => (S, "s"),
    };
    let tenths = (ps as f64 * 10.0 / unit_ps as f64).round();
    format!("{} {unit}", tenths / 10.0)
}

/// Foreign bytes, shortened and with everything escaped that could disturb a terminal.
pub(crate) fn excerpt(raw: &[u8]) -> String {
    const SHOWN: usize = 60;
    let cut = &raw[..raw.len().min(SHOWN)];
    let mut out: String = String::from_utf8_lossy(cut)
        .chars()
        .flat_map(|c| {
            let escape = c.is_control() || c == char::REPLACEMENT_CHARACTER;
            let plain = (!escape).then_some(c);
            let escaped = escape.then(|| c.escape_unicode());
            plain.into_iter().chain(escaped.into_iter().flatten())
        })
        .collect();
    if raw.len() > SHOWN {
        out.push_str("...");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(plural(1, "request"), "1 request");
        assert_eq!(plural(113_872, "request"), "113,872 requests");
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(4096), "4 KiB");
        assert_eq!(bytes(4608), "4.5 KiB");
        assert_eq!(bytes(u64::MAX), "16 EiB");
        assert_eq!(bytes(4100), "4 KiB");
        assert_eq!(bytes((1 << 20) - 1), "1 MiB");
        assert_eq!(exact_bytes(4100), "4,100 B");
        assert_eq!(exact_bytes(4608), "4.5 KiB");
        assert_eq!(exact_bytes(1040 << 10), "1,040 KiB");
        assert_eq!(exact_bytes(3 << 29), "1.5 GiB");
        assert_eq!(exact_bytes(u64::MAX), "18,446,744,073,709,551,615 B");
        assert_eq!(duration(4_000_100), "4 us");
        assert_eq!(duration(0), "0 s");
        assert_eq!(duration(80_200_000), "80.2 us");
        assert_eq!(duration(2 * S), "2 s");
    }

    #[test]
    fn an_excerpt_cannot_disturb_a_terminal() {
        assert_eq!(excerpt(b"\x1b[2Jhello"), "\\u{1b}[2Jhello");
        assert_eq!(excerpt(b"\xff"), "\\u{fffd}");
        assert!(excerpt(&[b'a'; 1000]).len() < 70);
    }
}
