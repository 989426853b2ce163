//! Sizes, times and numbers as people read and write them.

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// `24 MiB`, `1.5 GiB`, `64 KiB`; `off` for none.
#[must_use]
pub fn size(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0 => return "off".to_owned(),
        GIB.. => (GIB, "GiB"),
        MIB.. => (MIB, "MiB"),
        _ => (KIB, "KiB"),
    };
    format!("{} {name}", short(bytes as f64 / unit as f64))
}

/// A number with one decimal, unless that is a zero.
#[must_use]
pub fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// A share in percent as it was typed: `5`, `2.5`, `0.05`.
#[must_use]
pub fn as_typed(share: f64) -> String {
    // What dividing by a hundred has rounded is not shown.
    let digits = format!("{:.9}", share * 100.0);
    digits
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

/// `87.3 us`: three to four digits.
#[must_use]
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        n if n < 1e3 => (ns, "ns"),
        n if n < 1e6 => (ns / 1e3, "us"),
        n if n < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    match value {
        v if v < 10.0 => format!("{value:.2} {unit}"),
        v if v < 100.0 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    }
}

/// `98.5k`, `812`.
#[must_use]
pub fn count(value: f64) -> String {
    match value {
        v if v < 10.0 => format!("{value:.1}"),
        v if v < 10_000.0 => format!("{value:.0}"),
        v if v < 10_000_000.0 => format!("{:.1}k", value / 1e3),
        _ => format!("{:.1}M", value / 1e6),
    }
}

/// `113,872`.
#[must_use]
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `93.2 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Reads `200us`, `1.5 ms`; a unit is needed, nothing below a nanosecond exists.
#[must_use]
pub fn parse_time_ns(word: &str) -> Option<u64> {
    let at = word.find(|c: char| c.is_ascii_alphabetic())?;
    let ns = match &word[at..] {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let value: f64 = word[..at].trim().parse().ok()?;
    (value * ns >= 1.0 && value * ns < 1e18).then(|| (value * ns).round() as u64)
}

/// Reads `100k`, `1.5M`, `12500`.
#[must_use]
pub fn parse_count(word: &str) -> Option<f64> {
    let (number, factor) = match word.as_bytes().last()? {
        b'k' | b'K' => (&word[..word.len() - 1], 1e3),
        b'm' | b'M' => (&word[..word.len() - 1], 1e6),
        _ => (word, 1.0),
    };
    let value = number.trim().parse::<f64>().ok()? * factor;
    (value > 0.0 && value.is_finite()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_times_and_counts_are_short() {
        assert_eq!(
            [0, 64 * KIB, 24 * MIB, 38 * MIB + MIB / 2, 3 * GIB / 2].map(size),
            ["off", "64 KiB", "24 MiB", "38.5 MiB", "1.5 GiB"]
        );
        assert_eq!(
            [950.0, 8_730.0, 87_300.0, 873_000.0, 1.2e9].map(time),
            ["950 ns", "8.73 us", "87.3 us", "873 us", "1.20 s"]
        );
        assert_eq!([5.25, 812.0, 98_500.0].map(count), ["5.2", "812", "98.5k"]);
        assert_eq!([7, 1_000, 113_872].map(grouped), ["7", "1,000", "113,872"]);
    }

    #[test]
    fn times_need_a_unit() {
        assert_eq!(parse_time_ns("200us"), Some(200_000));
        assert_eq!(parse_time_ns("1.5 ms"), Some(1_500_000));
        for word in ["200", "us", "0us", "-1us", "1 h", "1e30s", ""] {
            assert_eq!(parse_time_ns(word), None, "{word}");
        }
    }
}
