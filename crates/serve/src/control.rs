//! What can be asked of a running drive, and told to it: a line of words, answered by a line of JSON.
//!
//! | line | answer |
//! |---|---|
//! | `status` | how the drive fares |
//! | `rules` | its rules, with how often each did something |
//! | `add RULE` | the new rule's number |
//! | `remove NUMBER`, `remove all` | how many rules are gone |
//! | `do ACT` | when it is done, in the drive's time |
//!
//! Rules and acts are written as in a file of rules ([`crate::faults`]). An answer has `ok`; if that is false, `error` says
//! in words what is wrong. Whatever is asked is answered at once.

use crate::controller::{Controller, PlightView};
use crate::faults::{Act, RuleView, parse_act};
use lodger_wire::memory::GuestMemory;
use serde::Serialize;
use serde_json::{Value, json};

const ASKED: &str = "status, rules, add RULE, remove NUMBER, remove all or do ACT";

/// A rule, for who looks.
#[derive(Debug, Serialize)]
struct RuleRow<'a> {
    number: u32,
    rule: &'a str,
    seen: u64,
    done: u64,
}

impl<'a> From<RuleView<'a>> for RuleRow<'a> {
    fn from(rule: RuleView<'a>) -> Self {
        RuleRow {
            number: rule.id,
            rule: rule.text,
            seen: rule.seen,
            done: rule.done,
        }
    }
}

/// How a drive fares.
#[derive(Debug, Serialize)]
struct Status<'a> {
    drive: &'a str,
    drive_seconds: f64,
    clients: u64,
    commands: u64,
    in_the_drive: usize,
    resets: u64,
    errors: u64,
    host_memory_bytes: u64,
    host_memory_pieces: usize,
    rules: usize,
    faults: u64,
    #[serde(flatten)]
    plight: PlightView,
}

fn status<M: GuestMemory + Clone>(controller: &Controller<M>, clients: u64) -> Value {
    let look = controller.look();
    let statistics = controller.statistics();
    let device = controller.device();
    let status = Status {
        drive: &device.spec().name,
        drive_seconds: controller.now_ps() as f64 / 1e12,
        clients,
        commands: statistics.commands,
        in_the_drive: device.in_flight(),
        resets: statistics.resets,
        errors: look.errors,
        host_memory_bytes: look.hmb_granted_bytes,
        host_memory_pieces: device.host_memory.memory.piece_count(),
        rules: controller.faults().list().count(),
        faults: look.faults,
        plight: controller.plight(),
    };
    json!({"ok": true, "status": status})
}

/// A word about an act on a drive whose host cannot begin anew.
#[must_use]
pub fn cannot_go(act: &Act) -> String {
    format!(
        "`{act}` takes the drive away from its host, and goes with `--socket`: with `--nbd` the host is this command"
    )
}

fn obey<M: GuestMemory + Clone>(
    line: &str,
    controller: &mut Controller<M>,
    clients: u64,
    may_go: bool,
) -> Result<Value, String> {
    let line = line.trim();
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    match (word, rest) {
        ("status", "") => Ok(status(controller, clients)),
        ("rules", "") => {
            let rules: Vec<RuleRow> = controller.faults().list().map(RuleRow::from).collect();
            Ok(json!({"ok": true, "rules": rules}))
        }
        ("add", rule) => {
            let faults = controller.faults_mut();
            let number = faults.add(rule)?;
            if let Some(act) = faults.takes_drive_away().filter(|_| !may_go) {
                let why = cannot_go(&act);
                faults.remove(number);
                return Err(why);
            }
            Ok(json!({"ok": true, "number": number}))
        }
        ("remove", "all") => {
            Ok(json!({"ok": true, "removed": controller.faults_mut().remove_all()}))
        }
        ("remove", number) => {
            let is_gone = number
                .parse()
                .is_ok_and(|number| controller.faults_mut().remove(number));
            match is_gone {
                true => Ok(json!({"ok": true, "removed": 1})),
                false => Err(format!("there is no rule `{}`", number.escape_debug())),
            }
        }
        ("do", act) => {
            let (after_ps, act) = parse_act(act)?;
            if act.takes_drive_away() && !may_go {
                return Err(cannot_go(&act));
            }
            if after_ps == 0
                && let Some(why) = controller.would_do_nothing(&act)
            {
                return Err(format!("`{act}` would do nothing: {why}"));
            }
            let at_s = (controller.now_ps().saturating_add(after_ps)) as f64 / 1e12;
            let answer = json!({"ok": true, "act": act.to_string(), "at_drive_seconds": at_s});
            match controller.act((after_ps, act)) {
                true => Ok(answer),
                false => Err("too many acts wait for their time already".to_owned()),
            }
        }
        _ => Err(format!(
            "a line must be {ASKED}, found `{}`",
            line.chars().take(80).collect::<String>().escape_debug()
        )),
    }
}

/// The answer to a line whose end does not come.
#[must_use]
pub fn too_long(bytes_max: usize) -> String {
    let error = format!("a line must end within {bytes_max} bytes");
    json!({"ok": false, "error": error}).to_string()
}

/// The answer to a line. `may_go`: whether the drive may be taken away from its host.
pub fn answer<M: GuestMemory + Clone>(
    line: &[u8],
    controller: &mut Controller<M>,
    clients: u64,
    may_go: bool,
) -> String {
    let done = match std::str::from_utf8(line) {
        Ok(line) => obey(line, controller, clients, may_go),
        Err(_) => Err("a line must be text".to_owned()),
    };
    let answer = done.unwrap_or_else(|error| json!({"ok": false, "error": error}));
    answer.to_string()
}
