//! The words of rules.

use super::rule::{Bits, Deed, Needs, Queues, Rule, When};
use super::{Act, Due, Event, Fault, TouchWhere};
use crate::controller::IO_QUEUES_MAX;
use lodger_wire::status::Status;

/// I/O commands, and those of the admin queue, by name.
const IO_OPCODES: [(&str, u8); 7] = [
    ("flush", 0),
    ("write", 1),
    ("read", 2),
    ("compare", 5),
    ("zeroes", 8),
    ("trim", 9),
    ("verify", 12),
];
const ADMIN_OPCODES: [(&str, u8); 10] = [
    ("create-sq", 1),
    ("get-log", 2),
    ("create-cq", 5),
    ("identify", 6),
    ("abort", 8),
    ("set-features", 9),
    ("get-features", 10),
    ("event-request", 12),
    ("doorbell-config", 0x7c),
    ("format", 0x80),
];
const UNITS_PS: [(&str, u64); 6] = [
    ("ns", 1_000),
    ("us", 1_000_000),
    ("ms", 1_000_000_000),
    ("min", 60_000_000_000_000),
    ("h", 3_600_000_000_000_000),
    ("s", 1_000_000_000_000),
];
/// A longer time is a mistake: a day.
const TIME_PS_MAX: u64 = 86_400 * 1_000_000_000_000;
/// As options have them.
const SIZES: [(&str, u64); 10] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];
const EVENTS: [(&str, Event); 5] = [
    ("grant", Event::Grant),
    ("take-back", Event::TakeBack),
    ("reset", Event::Reset),
    ("rest", Event::Rest),
    ("program", Event::Program),
];
/// Most bytes of a command's data that a rule changes.
const CHANGED_BYTES_MAX: usize = 64;
/// Last byte of a command's data that can be meant: more moves no command.
const DATA_BYTE_MAX: u64 = (1 << 20) - 1;
/// Most bits that an act changes at once.
const CORRUPT_MAX: u64 = 1 << 20;
/// Longest rule, characters.
const RULE_CHARACTERS_MAX: usize = 1000;
/// What rules begin with.
const DEEDS: &str = "fail, delay, drop, pretend, answer, change, stale, vanish, return, power-cut, stall, resume, \
    read-only, writable, throttle, cool, corrupt, withdraw or touch";
const CONDITIONS: &str = "opcode, queue, lba, dword0 to dword15, skip, every, times, chance, from, until, at, on, after, \
    written, depth, granted or pieces";

fn wrong(key: &str, allowed: &str, found: &str) -> String {
    wrong_word(&format!("`{key}`"), allowed, found)
}

/// The same of what is no word itself.
fn wrong_word(what: &str, allowed: &str, found: &str) -> String {
    format!("{what} must be {allowed}, found `{}`", found.escape_debug())
}

fn number(key: &str, text: &str, most: u64) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    let number = number.ok().filter(|number| *number <= most);
    number.ok_or_else(|| wrong(key, &format!("a number up to {most}"), text))
}

fn time_ps(key: &str, text: &str) -> Result<u64, String> {
    let parsed = UNITS_PS.iter().find_map(|(unit, ps)| {
        let value: f64 = text.strip_suffix(unit)?.parse().ok()?;
        let time_ps = value * *ps as f64;
        (0.0..=TIME_PS_MAX as f64)
            .contains(&time_ps)
            .then_some(time_ps as u64)
    });
    parsed.ok_or_else(|| wrong(key, "a time such as 5ms, a day at most", text))
}

/// A time in which something can be.
fn lasting_ps(key: &str, text: &str) -> Result<u64, String> {
    match time_ps(key, text)? {
        0 => Err(wrong(key, "longer than that", text)),
        ps => Ok(ps),
    }
}

fn size_bytes(key: &str, text: &str) -> Result<u64, String> {
    let sized = SIZES.iter().find_map(|(unit, bytes)| {
        let count: u64 = text.strip_suffix(unit)?.parse().ok()?;
        count.checked_mul(*bytes)
    });
    sized
        .or_else(|| text.parse().ok())
        .ok_or_else(|| wrong(key, "a size such as 64MiB", text))
}

fn named<T: Copy>(key: &str, names: &[(&str, T)], text: &str) -> Result<T, String> {
    let found = names.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        wrong(key, &format!("one of {}", names.join(", ")), text)
    })
}

fn range(key: &str, text: &str, most: u64) -> Result<(u64, u64), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = (number(key, first, most)?, number(key, last, most)?);
    match range.0 <= range.1 {
        true => Ok(range),
        false => Err(wrong(key, "FIRST-LAST, the first not after the last", text)),
    }
}

fn hex_bytes(key: &str, text: &str) -> Result<Vec<u8>, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let allowed = format!("1 to {CHANGED_BYTES_MAX} bytes, two hexadecimal digits each");
    let wrong = || wrong(key, &allowed, text);
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let is_whole = digits.len().is_multiple_of(2) && !digits.is_empty();
    if !is_hex || !is_whole || digits.len() > 2 * CHANGED_BYTES_MAX {
        return Err(wrong());
    }
    let pairs = (0..digits.len()).step_by(2);
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16);
    pairs.map(|at| byte(at).map_err(|_| wrong())).collect()
}

/// The words of a rule, one after the other.
struct Words<'a> {
    words: std::iter::Peekable<std::str::SplitWhitespace<'a>>,
    deed: &'a str,
}

impl<'a> Words<'a> {
    fn new(line: &'a str) -> Self {
        let mut words = line.split_whitespace().peekable();
        let deed = words.next().unwrap_or_default();
        Words { words, deed }
    }

    fn value(&mut self, what: &str) -> Result<&'a str, String> {
        self.optional()
            .ok_or_else(|| format!("`{}` needs {what}", self.deed))
    }

    /// A value, if there is one: conditions have `=`.
    fn optional(&mut self) -> Option<&'a str> {
        self.words.next_if(|word| !word.contains('='))
    }

    fn optional_time(&mut self) -> Result<Option<u64>, String> {
        let deed = self.deed;
        let time = self.optional().map(|text| lasting_ps(deed, text));
        time.transpose()
    }
}

fn fault(words: &mut Words<'_>) -> Result<Option<Fault>, String> {
    Ok(Some(match words.deed {
        "fail" => {
            // Status code type and code, as completions have them.
            let status = number("fail", words.value("a status, such as 0x281")?, 0x7ff)?;
            match Status::from_bits(status as u16) {
                status if status.is_success() => return Err(wrong("fail", "no success", "0")),
                status => Fault::Fail(status),
            }
        }
        "delay" => Fault::Delay(time_ps("delay", words.value("a time, such as 5ms")?)?),
        "drop" => Fault::Drop,
        "pretend" => {
            let result = words.optional().unwrap_or("0");
            Fault::Pretend(number("pretend", result, u32::MAX.into())? as u32)
        }
        "answer" => {
            let result = words.value("the dword 0 of the completion")?;
            Fault::Answer(number("answer", result, u32::MAX.into())? as u32)
        }
        "change" => {
            let what = "the number of a byte of the data, and bytes, such as `change 4 00ff`";
            let at = number("change", words.value(what)?, DATA_BYTE_MAX)?;
            Fault::Change(at, hex_bytes("change", words.value(what)?)?)
        }
        "stale" => {
            let bytes = words.value("bytes of the data, such as 0-63")?;
            let (first, last) = range("stale", bytes, DATA_BYTE_MAX)?;
            Fault::Stale(first, last)
        }
        _ => return Ok(None),
    }))
}

fn act_of(words: &mut Words<'_>) -> Result<Act, String> {
    Ok(match words.deed {
        "vanish" => Act::Vanish(words.optional_time()?),
        "return" => Act::Return,
        "power-cut" => Act::PowerCut,
        "stall" => Act::Stall(words.optional_time()?),
        "resume" => Act::Resume,
        "read-only" => Act::ReadOnly,
        "writable" => Act::Writable,
        "throttle" => {
            let gap = words.value("the time between two commands, such as 1ms")?;
            Act::Throttle(lasting_ps("throttle", gap)?)
        }
        "cool" => Act::Cool,
        "corrupt" => {
            let bits = words.value("how many bits, such as 8")?;
            match number("corrupt", bits, CORRUPT_MAX)? {
                0 => return Err(wrong("corrupt", "1 or more", bits)),
                bits => Act::Corrupt(bits as u32),
            }
        }
        "withdraw" => Act::Withdraw,
        "touch" => {
            let place = words.value("inside, beside or former")?;
            Act::Touch(named("touch", &TouchWhere::ALL, place)?)
        }
        "identify" => {
            let what = "`identify` is for a file of rules (`serve --faults`), or for `serve --identify`: \
                what a running drive says of itself stays";
            return Err(what.to_owned());
        }
        other => return Err(wrong_word("a rule's first word", DEEDS, other)),
    })
}

fn opcode(rule: &mut Rule, text: &str) -> Result<(), String> {
    let found = |names: &[(&str, u8)]| {
        let mut names = names.iter();
        names.find(|(name, _)| *name == text).map(|(_, code)| *code)
    };
    if let Some(code) = found(&IO_OPCODES) {
        rule.opcode = Some(code);
    } else if let Some(code) = found(&ADMIN_OPCODES) {
        rule.opcode = Some(code);
        if rule.queues == Queues::Io {
            rule.queues = Queues::One(0);
        }
    } else if let Ok(code) = number("opcode", text, 255) {
        rule.opcode = Some(code as u8);
    } else {
        let names = IO_OPCODES.iter().chain(&ADMIN_OPCODES);
        let names: Vec<&str> = names.map(|(name, _)| *name).collect();
        let allowed = format!("{} or a number up to 255", names.join(", "));
        return Err(wrong("opcode", &allowed, text));
    }
    Ok(())
}

fn bits(rule: &mut Rule, key: &str, value: &str) -> Result<(), String> {
    let dword = key
        .strip_prefix("dword")
        .and_then(|dword| dword.parse().ok());
    let Some(dword) = dword.filter(|dword| *dword < 16) else {
        return Err(wrong_word(
            "a condition",
            &format!("one of {CONDITIONS}"),
            key,
        ));
    };
    let (bits, mask) = value.split_once('/').unwrap_or((value, "0xffffffff"));
    let mask = number(key, mask, u32::MAX.into())? as u32;
    let value = number(key, bits, u32::MAX.into())? as u32 & mask;
    rule.bits.push(Bits { dword, value, mask });
    Ok(())
}

fn chance(key: &str, value: &str) -> Result<u32, String> {
    let chance = value
        .strip_suffix('%')
        .and_then(|value| value.parse::<f64>().ok());
    let chance = chance.filter(|chance| (0.0..=100.0).contains(chance));
    let chance = chance.ok_or_else(|| wrong(key, "from 0% to 100%", value))?;
    Ok((chance / 100.0 * f64::from(u32::MAX)) as u32)
}

fn set(rule: &mut Rule, key: &str, value: &str) -> Result<(), String> {
    match key {
        "opcode" => opcode(rule, value)?,
        "queue" if value == "admin" => rule.queues = Queues::One(0),
        "queue" => rule.queues = Queues::One(number(key, value, IO_QUEUES_MAX.into())? as u16),
        "lba" => rule.blocks = Some(range(key, value, u64::MAX)?),
        "skip" => rule.skip = number(key, value, u64::MAX / 2)?,
        "every" => rule.every = number(key, value, u64::MAX / 2)?,
        "times" => rule.times = number(key, value, u64::MAX)?,
        "chance" => rule.chance = Some(chance(key, value)?),
        "from" => rule.from_ps = time_ps(key, value)?,
        "until" => rule.until_ps = time_ps(key, value)?,
        "at" => rule.when = When::At(time_ps(key, value)?),
        "on" => rule.when = When::On(named(key, &EVENTS, value)?),
        "after" => rule.after_ps = time_ps(key, value)?,
        "written" => rule.needs.written_bytes = size_bytes(key, value)?,
        "depth" => rule.needs.depth = number(key, value, u64::MAX)?,
        "pieces" => rule.needs.pieces = number(key, value, u64::MAX)?,
        "granted" if value == "none" => rule.needs.nothing_granted = true,
        "granted" => rule.needs.granted_bytes = size_bytes(key, value)?,
        _ => bits(rule, key, value)?,
    }
    if rule.every == 0 || rule.times == 0 {
        return Err(wrong(key, "1 or more", value));
    }
    Ok(())
}

/// Whether there can be such a command, and such a time.
fn check_that_it_can_be(rule: &Rule, opcode: Option<&str>) -> Result<(), String> {
    let is_named = |names: &[(&str, u8)]| names.iter().any(|(name, _)| Some(*name) == opcode);
    let is_admin = rule.queues == Queues::One(0);
    let opcode = opcode.unwrap_or_default();
    if is_admin && is_named(&IO_OPCODES) {
        return Err(format!(
            "`opcode={opcode}` is a command of I/O queues, and goes without `queue=admin`"
        ));
    }
    if !is_admin && is_named(&ADMIN_OPCODES) {
        return Err(format!(
            "`opcode={opcode}` is a command of the admin queue, and goes with no other `queue`"
        ));
    }
    match rule.from_ps < rule.until_ps {
        true => Ok(()),
        false => Err("`from` must be before `until`".to_owned()),
    }
}

/// Whether what a rule does goes with what it is looked at for.
fn check(rule: &Rule, keys: &[&str]) -> Result<(), String> {
    let of_commands =
        |key: &&&str| ["opcode", "queue", "lba"].contains(*key) || key.starts_with("dword");
    let is_of_command = rule.act().is_none();
    for key in ["at", "on", "after"] {
        if is_of_command && keys.contains(&key) {
            let deed = rule.text.split_whitespace().next().unwrap_or_default();
            return Err(format!(
                "`{key}` goes with what is done to the drive, and `{deed}` is done to a command"
            ));
        }
    }
    if keys.contains(&"at") && keys.contains(&"on") {
        return Err("`at` and `on` do not go together".to_owned());
    }
    match keys.iter().find(of_commands) {
        Some(key) if rule.when != When::Command => Err(format!(
            "`{key}` is of commands, and goes with neither `at` nor `on`"
        )),
        _ => Ok(()),
    }
}

/// A rule.
pub(super) fn rule(line: &str, id: u32) -> Result<Rule, String> {
    if line.len() > RULE_CHARACTERS_MAX {
        return Err(format!(
            "a rule has {RULE_CHARACTERS_MAX} characters at most"
        ));
    }
    let mut words = Words::new(line);
    let deed = match fault(&mut words)? {
        Some(fault) => Deed::ToCommand(fault),
        None => Deed::ToDrive(act_of(&mut words)?),
    };
    // What is done to the drive is done once, if nothing is said.
    let times = match deed {
        Deed::ToCommand(_) => u64::MAX,
        Deed::ToDrive(_) => 1,
    };
    let mut rule = Rule {
        id,
        text: line.split_whitespace().collect::<Vec<_>>().join(" "),
        deed,
        when: When::Command,
        queues: Queues::Io,
        opcode: None,
        blocks: None,
        bits: Vec::new(),
        needs: Needs::default(),
        skip: 0,
        every: 1,
        times,
        chance: None,
        from_ps: 0,
        until_ps: u64::MAX,
        after_ps: 0,
        seen: 0,
        done: 0,
        is_over: false,
    };
    let (mut keys, mut opcode) = (Vec::new(), None);
    for word in words.words {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| wrong_word("a condition", "KEY=VALUE", word))?;
        // The later would undo the earlier. Of a command's dwords all have to fit.
        if keys.contains(&key) && !key.starts_with("dword") {
            return Err(format!(
                "`{key}` stands twice, found `{}`; what is to hold of either of two needs a rule for each",
                word.escape_debug()
            ));
        }
        set(&mut rule, key, value)?;
        keys.push(key);
        opcode = opcode.or((key == "opcode").then_some(value));
    }
    check(&rule, &keys)?;
    check_that_it_can_be(&rule, opcode)?;
    Ok(rule)
}

/// Something to be done to the drive now, or `after=TIME`.
///
/// # Errors
/// What is wrong with it.
pub fn act(line: &str) -> Result<Due, String> {
    let rule = rule(line, 0)?;
    let only_after = line
        .split_whitespace()
        .filter_map(|word| word.split_once('='))
        .all(|(key, _)| key == "after");
    match rule.deed {
        Deed::ToDrive(act) if only_after => Ok((rule.after_ps, act)),
        Deed::ToDrive(_) => Err("conditions make a rule of it: only `after` goes here".to_owned()),
        Deed::ToCommand(_) => Err("it is done to commands: that is for a rule".to_owned()),
    }
}

/// `identify FIELD=VALUE`: what the drive is to say of itself.
pub(super) fn assignment(line: &str) -> Result<Option<String>, String> {
    let mut words = line.split_whitespace();
    if words.next() != Some("identify") {
        return Ok(None);
    }
    match (words.next(), words.next()) {
        (Some(assignment), None) if assignment.contains('=') => Ok(Some(assignment.to_owned())),
        _ => Err("`identify` needs one FIELD=VALUE, such as HMPRE=16384".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Faults, RULES_MAX};

    #[test]
    fn what_is_wrong_with_a_rule_is_said_with_its_line() {
        for (text, words) in [
            ("\nnonsense", "touch, found `nonsense` (line 2)"),
            ("drip", "a rule's first word must be fail"),
            ("fail", "needs a status"),
            ("fail 0", "no success"),
            ("fail 0x800", "up to 2047"),
            ("delay 5", "a time such as 5ms"),
            ("delay -1s", "a time such as 5ms"),
            ("delay 2e9s", "a day at most"),
            ("drop opcode=reed", "flush, write, read"),
            ("drop every=0", "`every` must be 1 or more"),
            ("drop times=0", "`times` must be 1 or more"),
            ("drop from=5s until=1s", "`from` must be before `until`"),
            ("drop until=0s", "`from` must be before `until`"),
            ("drop queue=64", "a number up to 63"),
            ("corrupt 0", "`corrupt` must be 1 or more"),
            ("drop queue=admin opcode=read", "a command of I/O queues"),
            (
                "drop opcode=identify queue=1",
                "a command of the admin queue",
            ),
            ("stall 0s", "longer than that"),
            ("vanish 0ms", "longer than that"),
            ("throttle 0s", "longer than that"),
            ("drop chance=2", "0% to 100%"),
            ("drop chance=NaN%", "0% to 100%"),
            ("drop lba=9-1", "FIRST-LAST"),
            ("drop dword16=1", "a condition"),
            ("drop dword10=1/2/3", "`dword10`"),
            ("drop read", "KEY=VALUE"),
            ("change 0 abc", "two hexadecimal digits"),
            ("change 0 +1", "two hexadecimal digits"),
            ("change 0", "needs the number"),
            ("stale 64-0", "FIRST-LAST"),
            ("touch nowhere", "inside, beside, former"),
            ("vanish 1h later", "KEY=VALUE"),
            ("vanish soon", "a time such as 5ms"),
            ("throttle", "needs the time between"),
            ("drop on=reset", "`on` goes with what is done to the drive"),
            ("vanish on=sunday", "grant, take-back, reset"),
            ("vanish on=reset opcode=read", "`opcode` is of commands"),
            ("vanish at=1s on=reset", "do not go together"),
            ("vanish granted=many", "a size such as"),
            ("identify", "needs one FIELD=VALUE"),
            ("fail 1 opcode=read opcode=write", "`opcode` stands twice"),
            ("drop every=2 every=3", "`every` stands twice"),
        ] {
            let error = Faults::parse(text, 0).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        let many = "drop\n".repeat(RULES_MAX + 1);
        assert_eq!(Faults::parse(&many, 0).unwrap_err().line, RULES_MAX + 1);
        assert!(Faults::parse("# nothing\n\n", 0).unwrap().is_empty());
        assert!(Faults::parse(&format!("drop {}", "x".repeat(2000)), 0).is_err());
    }

    /// Options take `1MB`, and rules did not.
    #[test]
    fn sizes_have_the_units_of_options() {
        let bytes = |text| super::size_bytes("written", text);
        assert_eq!(bytes("1MB"), Ok(1_000_000));
        assert_eq!(bytes("3kB"), Ok(3000));
        assert_eq!(bytes("512B"), Ok(512));
        assert_eq!(bytes("2MiB"), Ok(2 << 20));
        assert_eq!(bytes("512"), Ok(512));
        assert!(bytes("1mb").is_err() && bytes("B").is_err());
    }

    #[test]
    fn what_is_done_now_has_no_conditions() {
        assert!(super::act("vanish 5s after=1min").is_ok());
        assert!(super::act("vanish opcode=read").is_err());
        assert!(super::act("drop").is_err());
    }
}
