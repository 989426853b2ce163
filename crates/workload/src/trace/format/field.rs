//! Columns and numbers: the parts every format is made of.

use super::super::text::excerpt;
use super::eight::{digits, places};
use lodger_core::Op;

/// Block addresses of most formats count in these.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// Why a line cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault(pub(crate) String);

impl Fault {
    /// Another record follows the first one: a line feed was lost, and with it a request would be.
    #[cold]
    pub(crate) fn joined(line: &[u8]) -> Self {
        let line = excerpt(line);
        Self(format!(
            "a line must hold one record, found a second one in `{line}`"
        ))
    }

    /// A column does not hold what it should.
    #[cold]
    pub(crate) fn column(name: &str, expected: &str, found: &[u8]) -> Self {
        Self(format!(
            "`{name}` must be {expected}, found `{}`",
            excerpt(found)
        ))
    }
}

/// Why a well-formed line gives no request. Each is counted, and most are told at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skip {
    /// A line of another kind: other events, summaries.
    OtherKind,
    /// An event of an action that was not asked for.
    OtherAction,
    /// An operation that has no counterpart here: pass-through commands, write zeroes, zones.
    OtherOperation,
    /// The record says that the request was never answered.
    NoResponse,
    /// A read, write or trim of no bytes.
    ZeroLength,
    /// The tracer says that it lost events here.
    Lost,
    /// How long a request took cannot be so long, nor less than nothing; the request is taken.
    ImpossibleLatency,
    /// A line that belongs to the format and never is a request; not told.
    Expected,
}

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    Request(Raw<'a>),
    Done(Done<'a>),
    Skip(Skip),
}

/// A request as the file has it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Raw<'a> {
    /// Picoseconds since whatever the format counts from. Signed and wide, because Windows file
    /// times in picoseconds do not fit 64 bits.
    pub(crate) time_ps: i128,
    pub(crate) op: Op,
    pub(crate) fua: bool,
    /// A flush goes before the request itself.
    pub(crate) preflush: bool,
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u64,
    /// Which device, volume or file; empty where the format has none or it is ignored.
    pub(crate) device: &'a [u8],
    /// Where a format records one request several times, the smallest rank wins.
    pub(crate) rank: u8,
    /// How long it took.
    pub(crate) took: Took,
}

/// What a line says of how long its request took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Took {
    /// Nothing.
    Unknown,
    /// What cannot be.
    Impossible,
    /// So many picoseconds.
    Ps(u64),
    /// It was given to the drive at this moment; another line says when it was done.
    UntilDone,
}

impl Took {
    /// A recorded latency; 0 says that none was recorded.
    pub(crate) fn recorded(latency_ps: i128) -> Self {
        match u64::try_from(latency_ps) {
            Ok(0) => Took::Unknown,
            Ok(latency_ps) => Took::Ps(latency_ps),
            Err(_) => Took::Impossible,
        }
    }
}

/// A request is done, or the first part of what is left of it, or it was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done<'a> {
    pub(crate) time_ps: i128,
    pub(crate) op: Op,
    pub(crate) offset_bytes: u64,
    /// 0: all of it.
    pub(crate) length_bytes: u64,
    /// The host will issue it again.
    pub(crate) is_taken_back: bool,
    pub(crate) device: &'a [u8],
    /// Rank of the line that said when it was given to the drive.
    pub(crate) rank: u8,
}

impl<'a> Parsed<'a> {
    /// Data that is read or written, without anything else; of no length, it is passed over.
    pub(crate) fn transfer(
        time_ps: i128,
        op: Op,
        (offset_bytes, length_bytes): (u64, u64),
        device: &'a [u8],
    ) -> Self {
        if length_bytes == 0 {
            return Parsed::Skip(Skip::ZeroLength);
        }
        Parsed::Request(Raw {
            time_ps,
            op,
            fua: false,
            preflush: false,
            offset_bytes,
            length_bytes,
            device,
            rank: 0,
            took: Took::Unknown,
        })
    }

    /// The same with what is known of how long it took.
    pub(crate) fn that_took(mut self, took: Took) -> Self {
        if let Parsed::Request(raw) = &mut self {
            raw.took = took;
        }
        self
    }
}

/// A plain number: digits only, and it must fit.
pub(crate) fn number(field: &[u8]) -> Option<u64> {
    digits(bare(field))
}

/// A column without white space and without a pair of quotes around it.
#[inline]
pub(crate) fn bare(field: &[u8]) -> &[u8] {
    // Mostly there is neither: white space comes before all that is printed.
    if let [first, .., last] = field
        && *first > b' '
        && *last > b' '
        && *first != b'"'
    {
        return field;
    }
    let field = field.trim_ascii();
    match field {
        [b'"', inner @ .., b'"'] => inner.trim_ascii(),
        _ => field,
    }
}

/// A named number.
pub(crate) fn count(name: &str, field: &[u8]) -> Result<u64, Fault> {
    number(field).ok_or_else(|| Fault::column(name, "a whole number below 2^64", field))
}

/// A named number of sectors, as bytes.
pub(crate) fn sectors(name: &str, field: &[u8]) -> Result<u64, Fault> {
    count(name, field)?
        .checked_mul(SECTOR_BYTES)
        .ok_or_else(|| Fault::column(name, "a sector below 2^55", field))
}

/// A point in time counted in units of `unit_ps`, with or without decimals.
///
/// Not through floating point: Unix seconds with nine decimals do not fit a double.
pub(crate) fn time(name: &str, field: &[u8], unit_ps: u64) -> Result<i128, Fault> {
    parse_time(bare(field), unit_ps)
        .ok_or_else(|| Fault::column(name, time_must(bare(field)), field))
}

/// What is wrong with a time that cannot be read.
#[cold]
fn time_must(field: &[u8]) -> &'static str {
    let (whole, decimals) = match places(field, b'.').next() {
        Some(dot) => (&field[..dot], &field[dot + 1..]),
        None => (field, &b""[..]),
    };
    let are_digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    match field {
        [b'-', ..] => "a point in time, not negative",
        _ if !whole.is_empty() && are_digits(whole) && are_digits(decimals) => {
            "a point in time below 2^64 of its unit"
        }
        _ => "a point in time in plain digits, such as `12.25`: no exponent, sign, word or unit",
    }
}

fn parse_time(field: &[u8], unit_ps: u64) -> Option<i128> {
    if let Some(whole) = digits(field) {
        return Some(i128::from(whole) * i128::from(unit_ps));
    }
    let dot = places(field, b'.').next()?;
    let (whole, decimals) = (&field[..dot], &field[dot + 1..]);
    let time_ps = i128::from(number(whole)?) * i128::from(unit_ps);
    if decimals.is_empty() {
        return Some(time_ps);
    }
    // Twelve decimals of a second are a picosecond: more say nothing.
    let (kept, more) = decimals.split_at(decimals.len().min(12));
    if !more.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let (kept, scale) = (digits(kept)?, 10u64.pow(kept.len() as u32));
    let part_ps = match kept.checked_mul(unit_ps) {
        Some(scaled) => i128::from(scaled / scale),
        None => i128::from(kept) * i128::from(unit_ps) / i128::from(scale),
    };
    Some(time_ps + part_ps)
}

/// The first `N` comma-separated columns, empty where there are fewer, and how many there are.
pub(crate) fn columns<const N: usize>(line: &[u8]) -> ([&[u8]; N], usize) {
    let mut out = [&b""[..]; N];
    let (mut found, mut start) = (0, 0);
    for end in places(line, b',').chain([line.len()]) {
        if found < N {
            out[found] = &line[start..end];
        }
        found += 1;
        start = end + 1;
    }
    (out, found)
}

/// Exactly `N` comma-separated columns.
pub(crate) fn comma_separated<'a, const N: usize>(
    line: &'a [u8],
    names: &str,
) -> Result<[&'a [u8]; N], Fault> {
    match columns(line) {
        (out, found) if found == N => Ok(out),
        (_, found) => Err(Fault(format!(
            "a line must have {N} columns `{names}`, found {found}: `{}`",
            excerpt(line)
        ))),
    }
}

/// Words separated by white space.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    line.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

/// Whether two header lines name the same columns.
pub(crate) fn same_header(line: &[u8], columns: &str) -> bool {
    let mut wanted = columns.split(',');
    let mut given = line.split(|&byte| byte == b',');
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some(want), Some(have)) if bare(have).eq_ignore_ascii_case(want.as_bytes()) => {}
            _ => return false,
        }
    }
}

/// The kernel's `RWBS` column (`blk_fill_rwbs`): `F` first is a flush before the request; then
/// one letter for the operation; then `F` again for FUA, and hints that do not change the
/// request: `A` read-ahead, `S` sync, `M` metadata, `U` atomic, `B` barrier of old kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rwbs {
    pub(crate) preflush: bool,
    /// `None` for what has no counterpart: `N` pass-through, `WZ` write zeroes, zone operations.
    pub(crate) op: Option<Op>,
    pub(crate) fua: bool,
}

impl Rwbs {
    /// `None` if the word is no `RWBS` column.
    pub(crate) fn parse(word: &[u8]) -> Option<Self> {
        let is_letter = |byte: &u8| b"RWDFNEZAOCSMUB".contains(byte);
        if word.is_empty() || word.len() > 10 || !word.iter().all(is_letter) {
            return None;
        }
        let (preflush, rest) = match word {
            [b'F', rest @ ..] => (true, rest),
            _ => (false, word),
        };
        let (op, flags) = match rest {
            // Write zeroes and zone append are no writes of data; zone commands begin with Z.
            [b'W', b'Z', flags @ ..] | [b'Z', _, flags @ ..] => (None, flags),
            [b'R', flags @ ..] => (Some(Op::Read), flags),
            [b'W', flags @ ..] => (Some(Op::Write), flags),
            [b'D', b'E', flags @ ..] | [b'D', flags @ ..] => (Some(Op::Trim), flags),
            [b'F', flags @ ..] => (Some(Op::Flush), flags),
            // Old kernels write an empty flush as FN.
            [b'N', flags @ ..] if preflush => (Some(Op::Flush), flags),
            [b'N', flags @ ..] => (None, flags),
            _ if preflush => (Some(Op::Flush), rest),
            _ => return None,
        };
        Some(Self {
            preflush,
            op,
            fua: op == Some(Op::Write) && flags.contains(&b'F'),
        })
    }

    /// The request this column stands for at `offset_bytes`, if any.
    pub(crate) fn request<'a>(
        self,
        time_ps: i128,
        offset_bytes: u64,
        length_bytes: u64,
        device: &'a [u8],
        rank: u8,
    ) -> Parsed<'a> {
        let mut raw = Raw {
            time_ps,
            op: Op::Flush,
            fua: self.fua,
            preflush: self.preflush,
            offset_bytes,
            length_bytes,
            device,
            rank,
            took: Took::Unknown,
        };
        match self.op {
            None => return Parsed::Skip(Skip::OtherOperation),
            // fsync of a clean file: a write of nothing that is all flush.
            Some(Op::Flush) => raw.preflush = false,
            Some(_) if length_bytes == 0 && self.preflush => raw.preflush = false,
            Some(_) if length_bytes == 0 => return Parsed::Skip(Skip::ZeroLength),
            Some(op) => raw.op = op,
        }
        Parsed::Request(raw)
    }
}

/// `8,16`: what Linux calls a block device.
pub(crate) fn is_device_number(word: &[u8]) -> bool {
    let mut parts = word.split(|&byte| byte == b',');
    let numbers = [parts.next(), parts.next()];
    parts.next().is_none()
        && numbers
            .iter()
            .all(|part| part.is_some_and(|part| part.len() <= 9 && number(part).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_that_fit() {
        assert_eq!(number(b"0"), Some(0));
        assert_eq!(number(b" \"42\" "), Some(42));
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        for bad in [
            "18446744073709551616",
            "-1",
            "+1",
            "1e3",
            "NaN",
            "inf",
            "",
            "\"",
            "0x10",
            "1 2",
            "1.0",
        ] {
            assert_eq!(number(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn time_keeps_every_decimal_down_to_a_picosecond() {
        let s = 1_000_000_000_000;
        assert_eq!(
            parse_time(b"1455592809.059104123", s),
            Some(1_455_592_809_059_104_123_000)
        );
        assert_eq!(parse_time(b"0.0000000000019", s), Some(1));
        assert_eq!(parse_time(b"1.5", 1_000_000), Some(1_500_000));
        assert_eq!(parse_time(b"7.", 1000), Some(7000));
        assert_eq!(
            parse_time(b"18446744073709551615", s),
            Some(i128::from(u64::MAX) * i128::from(s))
        );
        for bad in ["", ".5", "-1", "nan", "1.2.3", "1.-5", "1e9"] {
            assert_eq!(parse_time(bad.as_bytes(), s), None, "{bad}");
        }
    }

    #[test]
    fn a_time_that_cannot_be_read_is_told_why() {
        for (field, why) in [
            ("-1", "not negative"),
            ("-1.5", "not negative"),
            ("1e3", "no exponent"),
            ("nan", "no exponent, sign, word"),
            ("12us", "or unit"),
            ("", "plain digits"),
            ("18446744073709551616", "below 2^64"),
            ("18446744073709551616.5", "below 2^64"),
        ] {
            let Fault(message) = time("time_us", field.as_bytes(), 1_000_000).expect_err(field);
            assert!(message.contains(why), "{field}: {message}");
        }
        // The null.
        assert!(time("time_us", b"18446744073709551615", 1_000_000).is_ok());
    }

    #[test]
    fn rwbs_letters_mean_what_the_kernel_means() {
        let is = |word: &str, preflush, op, fua| {
            let want = Rwbs { preflush, op, fua };
            assert_eq!(Rwbs::parse(word.as_bytes()), Some(want), "{word}");
        };
        is("R", false, Some(Op::Read), false);
        is("RA", false, Some(Op::Read), false);
        is("RSM", false, Some(Op::Read), false);
        is("W", false, Some(Op::Write), false);
        is("WS", false, Some(Op::Write), false);
        is("WFS", false, Some(Op::Write), true);
        is("WFSU", false, Some(Op::Write), true);
        is("FWS", true, Some(Op::Write), false);
        is("FWFSM", true, Some(Op::Write), true);
        is("D", false, Some(Op::Trim), false);
        is("DS", false, Some(Op::Trim), false);
        is("DE", false, Some(Op::Trim), false);
        is("F", true, Some(Op::Flush), false);
        is("FF", true, Some(Op::Flush), false);
        is("FFS", true, Some(Op::Flush), false);
        is("FN", true, Some(Op::Flush), false);
        is("N", false, None, false);
        is("WZS", false, None, false);
        is("ZR", false, None, false);
        for bad in ["", "S", "X", "R1", "RRRRRRRRRRR", "read"] {
            assert_eq!(Rwbs::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn device_numbers_are_two_numbers() {
        assert!(is_device_number(b"8,0"));
        assert!(is_device_number(b"259,16"));
        for bad in ["8", "8,", ",0", "8,0,1", "a,b", "8,1234567890"] {
            assert!(!is_device_number(bad.as_bytes()), "{bad}");
        }
    }
}
