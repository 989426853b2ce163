//! Faults that a user has asked for: rules by which commands fare badly, and the drive.
//!
//! A rule is a line ([`parse`](Faults::parse) has the words): what is done, and when. What is done is done to a command
//! ([`Fault`]) or to the drive ([`Act`]). Of the rules about commands the first that applies decides; nothing of a command
//! that fails or is dropped enters the drive, one that is held up enters it later. Rules about the drive go beside
//! them, each for itself.
//!
//! Nothing here knows a controller: rules are asked, and say what is to be done.

mod act;
mod parse;
mod rule;

pub use act::{Act, TouchWhere};
pub use parse::act as parse_act;
pub use rule::{RuleView, Situation};

use lodger_core::rng::Rng;
use lodger_wire::QueueId;
use lodger_wire::entry::SubmissionEntry;
use lodger_wire::status::Status;
use rule::{Rule, When};

/// Most rules at once.
pub const RULES_MAX: usize = 1000;

/// What is done to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It ends with this status.
    Fail(Status),
    /// It enters the drive so much later, picoseconds.
    Delay(u64),
    /// Nobody hears of it again, until a reset.
    Drop,
    /// It ends well, with this in dword 0, and nothing of it is done.
    Pretend(u32),
    /// It is done, and if it ends well, another value stands in dword 0.
    Answer(u32),
    /// It is done, and then these bytes stand in its data for the host, from that byte on.
    Change(u64, Vec<u8>),
    /// It is done, but what stood in these bytes of the host's buffer before still does: from, up to and with.
    Stale(u64, u64),
}

/// What happens to a drive, beside commands, that rules can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Host memory is granted.
    Grant,
    /// Host memory was taken back, and the host has been told that it is.
    TakeBack,
    /// A controller-level reset begins.
    Reset,
    /// A power state without I/O commands is entered.
    Rest,
    /// Flash begins to program, after it did not.
    Program,
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

/// An act that is due so much later, picoseconds.
pub type Due = (u64, Act);

/// The rules, and what has come of them.
#[derive(Debug)]
pub struct Faults {
    rules: Vec<Rule>,
    /// Fields of Identify to be set, with their lines.
    identify: Vec<(usize, String)>,
    rng: Rng,
    count: u64,
    next_id: u32,
}

impl Default for Faults {
    fn default() -> Self {
        Faults::seeded(0)
    }
}

impl Faults {
    /// No rules; `seed` is that of the chances of rules to come.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Faults {
            rules: Vec::new(),
            identify: Vec::new(),
            rng: Rng::new(seed),
            count: 0,
            next_id: 1,
        }
    }

    /// The rules of a text; `seed` is that of their chances.
    ///
    /// # Errors
    /// If a line is none.
    pub fn parse(text: &str, seed: u64) -> Result<Self, RuleError> {
        let mut faults = Faults::seeded(seed);
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let line = line.split('#').next().unwrap_or_default().trim();
            let error = |what| RuleError {
                line: line_number,
                what,
            };
            match parse::assignment(line).map_err(error)? {
                Some(assignment) => faults.identify.push((line_number, assignment)),
                None if line.is_empty() => {}
                None => {
                    faults.add(line).map_err(error)?;
                }
            }
        }
        Ok(faults)
    }

    /// Fields of Identify that the text sets (`FIELD=VALUE`), each with its line.
    #[must_use]
    pub fn identify(&self) -> &[(usize, String)] {
        &self.identify
    }

    /// One more rule, after all others; its number.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn add(&mut self, line: &str) -> Result<u32, String> {
        if self.rules.len() >= RULES_MAX {
            return Err(format!("there are more than {RULES_MAX} rules"));
        }
        let id = self.next_id;
        self.rules.push(parse::rule(line, id)?);
        self.next_id += 1;
        Ok(id)
    }

    /// Takes a rule away; whether there was one.
    pub fn remove(&mut self, id: u32) -> bool {
        let before = self.rules.len();
        self.rules.retain(|rule| rule.id != id);
        self.rules.len() < before
    }

    /// Takes all rules away; how many there were.
    pub fn remove_all(&mut self) -> usize {
        std::mem::take(&mut self.rules).len()
    }

    /// What rules there are, in their order.
    pub fn list(&self) -> impl Iterator<Item = RuleView<'_>> {
        self.rules.iter().map(Rule::view)
    }

    /// Commands that something was done to.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Something that some rule does to the drive after which its host has to begin anew.
    #[must_use]
    pub fn takes_drive_away(&self) -> Option<Act> {
        let mut acts = self.rules.iter().filter_map(Rule::act);
        acts.find(|act| act.takes_drive_away()).cloned()
    }

    /// Whether some rule waits for such an event.
    #[must_use]
    pub fn waits_for(&self, event: Event) -> bool {
        let mut rules = self.rules.iter();
        rules.any(|rule| rule.when == When::On(event) && !rule.is_spent())
    }

    /// What is to be done to a command, and because of it.
    pub fn decide(
        &mut self,
        entry: &SubmissionEntry,
        queue: QueueId,
        now: &Situation,
        due: &mut Vec<Due>,
    ) -> Option<Fault> {
        let mut fault = None;
        for rule in &mut self.rules {
            if fault.is_some() && rule.act().is_none() {
                continue;
            }
            if rule.when != When::Command || !rule.matches(entry, queue) {
                continue;
            }
            if rule.applies(now, &mut self.rng) {
                rule.give(&mut fault, due);
            }
        }
        self.count += u64::from(fault.is_some());
        fault
    }

    /// What is to be done because of an event.
    pub fn note(&mut self, event: Event, now: &Situation, due: &mut Vec<Due>) {
        for rule in &mut self.rules {
            if rule.when == When::On(event) && rule.applies(now, &mut self.rng) {
                rule.give(&mut None, due);
            }
        }
    }

    /// What is to be done because it is time.
    pub fn look_at_clock(&mut self, now: &Situation, due: &mut Vec<Due>) {
        for rule in &mut self.rules {
            let is_time = matches!(rule.when, When::At(at_ps) if at_ps <= now.now_ps);
            if is_time
                && !std::mem::replace(&mut rule.is_over, true)
                && rule.applies(now, &mut self.rng)
            {
                rule.give(&mut None, due);
            }
        }
    }

    /// When a rule is to be looked at for its time.
    #[must_use]
    pub fn next_time_ps(&self) -> Option<u64> {
        let at = |rule: &Rule| match rule.when {
            When::At(at_ps) if !rule.is_over => Some(at_ps),
            _ => None,
        };
        self.rules.iter().filter_map(at).min()
    }
}
