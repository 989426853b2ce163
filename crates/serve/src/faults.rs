//! Faults that a user has asked for: rules by which commands fail, are held up, or are never heard of again.
//!
//! A rule is a line: what is done, which commands it is done to, and when. The first rule that applies decides. Nothing of
//! a command that fails or is dropped enters the drive; one that is held up enters it later.

use lodger_core::rng::Rng;
use lodger_wire::QueueId;
use lodger_wire::entry::SubmissionEntry;
use lodger_wire::status::Status;

/// Most rules of a file.
const RULES_MAX: usize = 1000;
const OPCODES: [(&str, u8); 7] = [
    ("flush", 0),
    ("write", 1),
    ("read", 2),
    ("compare", 5),
    ("zeroes", 8),
    ("trim", 9),
    ("verify", 12),
];
const UNITS_PS: [(&str, u64); 4] = [
    ("ns", 1_000),
    ("us", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
];
/// A longer time is a mistake: a day.
const TIME_PS_MAX: u64 = 86_400 * 1_000_000_000_000;

/// What is done to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It ends with this status.
    Fail(Status),
    /// It enters the drive so much later, picoseconds.
    Delay(u64),
    /// Nobody hears of it again, until a reset.
    Drop,
}

/// What is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} (line {line})")]
pub struct RuleError {
    /// Counted from 1.
    pub line: usize,
    /// In words.
    pub what: String,
}

/// A dword of the command, under a mask.
#[derive(Clone, Copy, Debug)]
struct Bits {
    dword: usize,
    value: u32,
    mask: u32,
}

/// Which queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queues {
    Io,
    One(u16),
}

#[derive(Clone, Debug)]
struct Rule {
    fault: Fault,
    queues: Queues,
    opcode: Option<u8>,
    /// First and last block that a command may begin at.
    blocks: Option<(u64, u64)>,
    bits: Vec<Bits>,
    /// Matches that are let pass at first, then each how-manieth counts, and how many do.
    skip: u64,
    every: u64,
    times: u64,
    /// Of 2 to the power of 32, how many.
    chance: Option<u32>,
    from_ps: u64,
    until_ps: u64,
    seen: u64,
    done: u64,
}

impl Rule {
    fn matches(&self, entry: &SubmissionEntry, queue: QueueId) -> bool {
        let block = u64::from(entry.dword(11)) << 32 | u64::from(entry.dword(10));
        let is_here = match self.queues {
            Queues::Io => queue != QueueId::ADMIN,
            Queues::One(one) => queue.0 == one,
        };
        is_here
            && self.opcode.is_none_or(|opcode| entry.opcode() == opcode)
            && self
                .blocks
                .is_none_or(|(first, last)| (first..=last).contains(&block))
            && self
                .bits
                .iter()
                .all(|bits| entry.dword(bits.dword) & bits.mask == bits.value)
    }

    /// Whether it is its turn, with a command that it matches.
    fn applies(&mut self, now_ps: u64, rng: &mut Rng) -> bool {
        if !(self.from_ps..self.until_ps).contains(&now_ps) || self.done >= self.times {
            return false;
        }
        self.seen += 1;
        let turn = self.seen > self.skip && (self.seen - self.skip - 1).is_multiple_of(self.every);
        let is_drawn = turn
            && self
                .chance
                .is_none_or(|chance| rng.below(u32::MAX) < chance);
        self.done += u64::from(is_drawn);
        is_drawn
    }
}

/// The rules, and what has come of them.
#[derive(Debug)]
pub struct Faults {
    rules: Vec<Rule>,
    rng: Rng,
    count: u64,
}

impl Default for Faults {
    fn default() -> Self {
        Faults {
            rules: Vec::new(),
            rng: Rng::new(0),
            count: 0,
        }
    }
}

fn wrong(key: &str, allowed: &str, found: &str) -> String {
    format!(
        "`{key}` must be {allowed}, found `{}`",
        found.escape_debug()
    )
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

fn opcode(text: &str) -> Result<u8, String> {
    match OPCODES.iter().find(|(name, _)| *name == text) {
        Some((_, opcode)) => Ok(*opcode),
        None => match number("opcode", text, 255) {
            Ok(opcode) => Ok(opcode as u8),
            Err(_) => {
                let names: Vec<&str> = OPCODES.iter().map(|(name, _)| *name).collect();
                let allowed = format!("{} or a number up to 255", names.join(", "));
                Err(wrong("opcode", &allowed, text))
            }
        },
    }
}

fn fault<'a>(words: &mut impl Iterator<Item = &'a str>) -> Result<Fault, String> {
    let word = words.next().unwrap_or_default();
    let mut value = |what: &str| words.next().ok_or_else(|| format!("`{word}` needs {what}"));
    match word {
        "fail" => {
            // Status code type and code, as completions have them.
            let status = number("fail", value("a status, such as 0x281")?, 0x7ff)?;
            match Status::from_bits(status as u16) {
                status if status.is_success() => Err(wrong("fail", "no success", "0")),
                status => Ok(Fault::Fail(status)),
            }
        }
        "delay" => Ok(Fault::Delay(time_ps(
            "delay",
            value("a time, such as 5ms")?,
        )?)),
        "drop" => Ok(Fault::Drop),
        other => Err(wrong("a rule's first word", "fail, delay or drop", other)),
    }
}

fn set(rule: &mut Rule, key: &str, value: &str) -> Result<(), String> {
    match key {
        "opcode" => rule.opcode = Some(opcode(value)?),
        "queue" if value == "admin" => rule.queues = Queues::One(0),
        "queue" => rule.queues = Queues::One(number(key, value, 65535)? as u16),
        "lba" => {
            let (first, last) = value.split_once('-').unwrap_or((value, value));
            let range = (number(key, first, u64::MAX)?, number(key, last, u64::MAX)?);
            if range.0 > range.1 {
                return Err(wrong(
                    key,
                    "FIRST-LAST, the first not after the last",
                    value,
                ));
            }
            rule.blocks = Some(range);
        }
        "skip" => rule.skip = number(key, value, u64::MAX / 2)?,
        "every" => rule.every = number(key, value, u64::MAX / 2)?,
        "times" => rule.times = number(key, value, u64::MAX)?,
        "chance" => {
            let chance = value
                .strip_suffix('%')
                .and_then(|value| value.parse::<f64>().ok());
            let chance = chance.filter(|chance| (0.0..=100.0).contains(chance));
            let chance = chance.ok_or_else(|| wrong(key, "from 0% to 100%", value))?;
            rule.chance = Some((chance / 100.0 * f64::from(u32::MAX)) as u32);
        }
        "from" => rule.from_ps = time_ps(key, value)?,
        "until" => rule.until_ps = time_ps(key, value)?,
        _ => {
            let dword = key
                .strip_prefix("dword")
                .and_then(|dword| dword.parse().ok());
            let Some(dword) = dword.filter(|dword| *dword < 16) else {
                let keys = "opcode, queue, lba, dword0 to dword15, skip, every, times, chance, from or until";
                return Err(wrong("a condition", &format!("one of {keys}"), key));
            };
            let (bits, mask) = value.split_once('/').unwrap_or((value, "0xffffffff"));
            let mask = number(key, mask, u32::MAX.into())? as u32;
            let value = number(key, bits, u32::MAX.into())? as u32 & mask;
            rule.bits.push(Bits { dword, value, mask });
        }
    }
    if rule.every == 0 {
        return Err(wrong(key, "1 or more", value));
    }
    Ok(())
}

fn parse_rule(line: &str) -> Result<Rule, String> {
    let mut words = line.split_whitespace();
    let mut rule = Rule {
        fault: fault(&mut words)?,
        queues: Queues::Io,
        opcode: None,
        blocks: None,
        bits: Vec::new(),
        skip: 0,
        every: 1,
        times: u64::MAX,
        chance: None,
        from_ps: 0,
        until_ps: u64::MAX,
        seen: 0,
        done: 0,
    };
    for word in words {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| wrong("a condition", "KEY=VALUE", word))?;
        set(&mut rule, key, value)?;
    }
    Ok(rule)
}

impl Faults {
    /// The rules of a text; `seed` is that of their chances.
    ///
    /// # Errors
    /// If a line is none.
    pub fn parse(text: &str, seed: u64) -> Result<Self, RuleError> {
        let mut rules = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let error = |what| RuleError {
                line: line_number,
                what,
            };
            let line = line.split('#').next().unwrap_or_default();
            if line.trim().is_empty() {
                continue;
            }
            if rules.len() >= RULES_MAX {
                return Err(error(format!("there are more than {RULES_MAX} rules")));
            }
            rules.push(parse_rule(line).map_err(error)?);
        }
        Ok(Faults {
            rules,
            rng: Rng::new(seed),
            count: 0,
        })
    }

    /// Commands that something was done to.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// What is to be done to a command.
    pub fn decide(
        &mut self,
        entry: &SubmissionEntry,
        queue: QueueId,
        now_ps: u64,
    ) -> Option<Fault> {
        let (rng, mut rules) = (&mut self.rng, self.rules.iter_mut());
        let applies = |rule: &mut Rule| {
            let is_it = rule.matches(entry, queue) && rule.applies(now_ps, rng);
            is_it.then_some(rule.fault)
        };
        let fault = rules.find_map(applies)?;
        self.count += 1;
        Some(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_rule_is_said_with_its_line() {
        for (text, words) in [
            (
                "\nnonsense",
                "fail, delay or drop, found `nonsense` (line 2)",
            ),
            ("fail", "needs a status"),
            ("fail 0", "no success"),
            ("fail 0x800", "up to 2047"),
            ("delay 5", "a time such as 5ms"),
            ("delay -1s", "a time such as 5ms"),
            ("delay 2e9s", "a day at most"),
            ("drop opcode=reed", "flush, write, read"),
            ("drop every=0", "`every` must be 1 or more"),
            ("drop chance=2", "0% to 100%"),
            ("drop chance=NaN%", "0% to 100%"),
            ("drop lba=9-1", "FIRST-LAST"),
            ("drop dword16=1", "a condition"),
            ("drop dword10=1/2/3", "`dword10`"),
            ("drop read", "KEY=VALUE"),
        ] {
            let error = Faults::parse(text, 0).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        let many = "drop\n".repeat(RULES_MAX + 1);
        assert_eq!(Faults::parse(&many, 0).unwrap_err().line, RULES_MAX + 1);
        assert!(Faults::parse("# nothing\n\n", 0).unwrap().rules.is_empty());
    }
}
