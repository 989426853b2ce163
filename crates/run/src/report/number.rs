//! Numbers as fio writes them.

/// A number in at most `digits` characters and a unit prefix: fio's `num2str`. `step` is 1000 or
/// 1024 and decides the prefixes. fio prints the fraction alone and loses what it carries, so that 50.97 is `50.0`: here it
/// is `51.0`.
pub(crate) fn short(number: f64, digits: usize, step: u64, unit: &str) -> String {
    let prefixes = match step {
        1024 => ["", "Ki", "Mi", "Gi", "Ti", "Pi"],
        _ => ["", "k", "M", "G", "T", "P"],
    };
    let mut number = number as u64;
    let mut rest = None;
    let mut power = 0;
    while power + 1 < prefixes.len() && number.to_string().len() > digits {
        rest = Some(number % step);
        number /= step;
        power += 1;
    }
    let prefix = prefixes[power];
    let Some(rest) = rest else {
        return format!("{number}{prefix}{unit}");
    };
    let mut decimals = digits.saturating_sub(number.to_string().len() + 1);
    let whole = number as f64 + rest as f64 / step as f64;
    // 9.996 with two decimals is 10.0, and 99.96 with one 100.
    if decimals > 0 && format!("{whole:.decimals$}").len() > digits {
        decimals -= 1;
    }
    if decimals == 0 {
        let rounded = number + u64::from(rest >= step / 2);
        return format!("{rounded}{prefix}{unit}");
    }
    format!("{whole:.decimals$}{prefix}{unit}")
}

/// `355MiB/s (373MB/s)`.
pub(crate) fn bandwidth(bytes_per_s: f64) -> String {
    format!(
        "{} ({})",
        short(bytes_per_s, 4, 1024, "B/s"),
        short(bytes_per_s, 4, 1000, "B/s")
    )
}

/// 1234567 as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// So many of something, of which one has no `s`.
pub(crate) fn count_of(number: u64, one: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {one}{s}", grouped(number))
}

/// A duration in its nearest unit: `98.3 us`.
pub(crate) fn duration_ns(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.1} us", ns / 1e3),
        ns if ns < 1e9 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.2} s", ns / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_fio() {
        // From the fixtures.
        for (number, step, unit, text) in [
            (91_000.0, 1000, "", "91.0k"),
            (372_736_000.0, 1024, "B/s", "355MiB/s"),
            (372_736_000.0, 1000, "B/s", "373MB/s"),
            (745_472.0, 1024, "B", "728KiB"),
            (745_472.0, 1000, "B", "745kB"),
            (2_097_152.0, 1024, "B", "2048KiB"),
            (2_097_152.0, 1000, "B", "2097kB"),
            (59.97, 1000, "", "59"),
            (42_666.7, 1000, "", "42.7k"),
            (65_536.0, 1024, "B", "64.0KiB"),
            (245_637.0, 1024, "B/s", "240KiB/s"),
            (1_048_576_000.0, 1024, "B/s", "1000MiB/s"),
            (4_194_304_000.0, 1000, "B/s", "4194MB/s"),
            // Where fio loses what is carried: there it is 50.0, 9.00 and 99.0.
            (53_442_711.2, 1024, "B/s", "51.0MiB/s"),
            (9_999_000.0, 1000, "", "9999k"),
            (99_970.0, 1000, "", "100k"),
            (65_500.0, 1024, "B", "64.0KiB"),
        ] {
            assert_eq!(short(number, 4, step, unit), text);
        }
    }

    #[test]
    fn one_is_not_many() {
        let told = [0, 1, 2, 1_001].map(|number| count_of(number, "read request"));
        let wanted = [
            "0 read requests",
            "1 read request",
            "2 read requests",
            "1,001 read requests",
        ];
        assert_eq!(told, wanted);
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
